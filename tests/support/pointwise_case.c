/* SPDX-License-Identifier: Apache-2.0 */
/* pointwise_case.c - draws descriptors of pointwise operators (pointwise_case.h). */
#include "tests/support/pointwise_case.h"

#include <inttypes.h>
#include <string.h>

#include "frontend/ops/op.h"

/* --- scalars ------------------------------------------------------------------------------------------------------ */

/* Numbers at which operators change behaviour: rounding, clipping, conversion. */
static const float landmarks[] = { 0.0f,           -0.0f,         1.0f,          -1.0f,         2.0f,
                                   0.5f,           -0.5f,         1.5f,          2.5f,          -2.5f,
                                   3.0f,           127.5f,        -128.5f,       255.0f,        32767.0f,
                                   65504.0f,       65520.0f,      8388608.5f,    16777216.0f,   2147483648.0f,
                                   -2147483904.0f, 4294967296.0f, 9.2233720e18f, 1.8446744e19f, 1e-6f,
                                   1e30f,          3e38f,         0.99999994f,   1.0000001f,    -0.49999997f,
                                   0.1f,           10.0f,         -7.0f,         6.1e-5f,       5.9604645e-8f };

static uint64_t element_of(DML_TENSOR_DATA_TYPE dtype, float value)
{
    return ref_element_of_float(dtype, value);
}

static uint64_t random_element(test_random *r, DML_TENSOR_DATA_TYPE dtype)
{
    switch (test_random_below(r, 4)) {
    case 0: return test_scalar_random(r, dtype).UInt64;
    case 1: return element_of(dtype, landmarks[test_random_below(r, sizeof landmarks / sizeof *landmarks)]);
    case 2: return element_of(dtype, (float)test_random_between(r, -40, 40));
    default: return element_of(dtype, (float)test_random_between(r, -4000, 4000) / 128.0f);
    }
}

static float random_float(test_random *r)
{
    const uint32_t bits = (uint32_t)random_element(r, DML_TENSOR_DATA_TYPE_FLOAT32);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static float random_whole(test_random *r)
{
    return test_random_chance(r, 80)
               ? (float)test_random_between(r, -300, 300)
               : (float)(int64_t)test_random_u64(r) * (test_random_chance(r, 50) ? 1.0f : 0x1p20f);
}

/* --- fields ------------------------------------------------------------------------------------------------------- */

static void put(pointwise_desc *desc, const op_field *field, const void *value, size_t size)
{
    memcpy(desc->bytes + field->offset, value, size);
}

static void put_pointer(pointwise_desc *desc, const op_field *field, const void *pointer)
{
    put(desc, field, &pointer, sizeof pointer);
}

static void put_float(test_random *r, pointwise_desc *desc, const op_field *field)
{
    float value = random_float(r);
    if ((field->flags & OP_NONZERO) != 0 && value == 0)
        value = 1;
    put(desc, field, &value, sizeof value);
}

static void put_scale_bias(test_random *r, pointwise_case *c, const op_field *field)
{
    const bool whole = !ref_dtype_is_float(c->inputs[0].buffer.DataType);
    if (test_random_chance(r, 60))
        return;
    c->scale_bias.Scale = whole ? random_whole(r) : random_float(r);
    c->scale_bias.Bias = whole ? random_whole(r) : random_float(r);
    c->any_nan = true;
    put_pointer(&c->desc, field, &c->scale_bias);
}

/* One of the activations of this build, without tensors. */
static void put_activation(test_random *r, pointwise_case *c, const op_field *field)
{
    const op_def *def = NULL;
    uint32_t count = 0;
    if (test_random_chance(r, 15))
        return;
    while (opjit_fe_op_at(count) != NULL)
        count++;
    while (def == NULL || (def->traits & OP_FUSABLE) == 0)
        def = opjit_fe_op_at((uint32_t)test_random_below(r, count));
    for (uint32_t i = 0; i < def->field_count; i++)
        if (def->fields[i].kind == OP_FLOAT)
            put_float(r, &c->activation_desc, &def->fields[i]);
    c->activation = (DML_OPERATOR_DESC){ def->type, &c->activation_desc };
    put_pointer(&c->desc, field, &c->activation);
}

static void put_enum(test_random *r, pointwise_desc *desc, const op_field *field)
{
    uint32_t count = 0;
    while (field->enumeration->names[count].name != NULL)
        count++;
    put(desc, field, &field->enumeration->names[test_random_below(r, count)].value, sizeof(int32_t));
}

static void put_fields(test_random *r, pointwise_case *c, const op_def *def)
{
    const DML_TENSOR_DATA_TYPE dtype = c->output.buffer.DataType;
    DML_SCALAR_UNION scalar;
    uint32_t input = 0;
    for (uint32_t i = 0; i < def->field_count; i++) {
        const op_field *field = &def->fields[i];
        switch ((op_field_kind)field->kind) {
        case OP_INPUT:
            if (c->present[input])
                put_pointer(&c->desc, field, &c->inputs[input].desc);
            input++;
            break;
        case OP_OUTPUT: put_pointer(&c->desc, field, &c->output.desc); break;
        case OP_DTYPE: put(&c->desc, field, &dtype, sizeof dtype); break;
        case OP_SCALAR:
            scalar.UInt64 = random_element(r, dtype);
            put(&c->desc, field, &scalar, sizeof scalar);
            break;
        case OP_FLOAT: put_float(r, &c->desc, field); break;
        case OP_BOOL: put(&c->desc, field, &(int32_t){ (int32_t)test_random_below(r, 2) }, sizeof(int32_t)); break;
        case OP_ENUM: put_enum(r, &c->desc, field); break;
        case OP_SCALE_BIAS: put_scale_bias(r, c, field); break;
        case OP_ACTIVATION: put_activation(r, c, field); break;
        default: break; /* no pointwise operator has another one */
        }
    }
}

/* --- tensors ------------------------------------------------------------------------------------------------------ */

static DML_TENSOR_DATA_TYPE random_type(test_random *r, const ref_pointwise_row *row, char letter)
{
    DML_TENSOR_DATA_TYPE dtype;
    do
        dtype = test_types[test_random_below(r, TEST_TYPE_COUNT)];
    while (!ref_pointwise_allows(row, letter, 0, dtype));
    return dtype;
}

static void same_layout(test_tensor *in, const test_tensor *out)
{
    memcpy(in->strides, out->strides, sizeof in->strides);
    in->buffer.Strides = out->buffer.Strides != NULL ? in->strides : NULL;
    in->buffer.TotalTensorSizeInBytes = out->buffer.TotalTensorSizeInBytes;
    in->buffer.GuaranteedBaseOffsetAlignment = out->buffer.GuaranteedBaseOffsetAlignment;
    test_tensor_measure(in);
}

/* One for all along some dimensions, from `first` on. */
static void draw_ones(test_random *r, test_tensor *t, uint32_t first)
{
    for (uint32_t d = first; d < t->buffer.DimensionCount; d++)
        if (test_random_chance(r, 60))
            t->sizes[d] = 1;
}

static void random_input(test_random *r, pointwise_case *c, uint32_t i, DML_TENSOR_DATA_TYPE dtype)
{
    test_tensor *in = &c->inputs[i];
    const test_tensor *out = &c->output;
    c->present[i] = true;
    test_tensor_link(in, dtype, out->buffer.DimensionCount);
    memcpy(in->sizes, out->sizes, sizeof in->sizes);
    if (ref_pointwise_broadcasts(c->row, i) && test_random_chance(r, 70)) {
        draw_ones(r, in, 0);
        test_tensor_random_layout(r, in, false);
    } else if (dtype == out->buffer.DataType && test_random_chance(r, 40)) {
        same_layout(in, out);
        if (test_random_chance(r, 60))
            c->in_place |= 1u << i;
    } else {
        test_tensor_random_layout(r, in, false);
    }
}

static bool copies(const pointwise_case *c)
{
    switch (c->op.Type) {
    case DML_OPERATOR_ELEMENT_WISE_IDENTITY:
    case DML_OPERATOR_ELEMENT_WISE_ABS:
    case DML_OPERATOR_ELEMENT_WISE_NEGATE:
    case DML_OPERATOR_ELEMENT_WISE_IF:
    case DML_OPERATOR_ACTIVATION_IDENTITY:
    case DML_OPERATOR_ACTIVATION_RELU_GRAD: return true;
    case DML_OPERATOR_CAST: return c->inputs[0].buffer.DataType == c->output.buffer.DataType;
    default: return false;
    }
}

static bool is_optional(const op_def *def, uint32_t input)
{
    for (uint32_t i = 0; i < def->field_count; i++)
        if (def->fields[i].kind == OP_INPUT && input-- == 0)
            return (def->fields[i].flags & OP_OPTIONAL) != 0;
    return false;
}

void pointwise_case_random(test_random *r, const ref_pointwise_row *row, uint64_t most_elements, pointwise_case *c)
{
    const op_def *def = opjit_fe_op_find(row->type);
    const DML_TENSOR_DATA_TYPE types[2] = { random_type(r, row, 'a'),
                                            row->types[1] != NULL ? random_type(r, row, 'b') : 0 };
    uint64_t elements = most_elements >> (2 * test_random_below(r, 4));
    memset(c, 0, sizeof *c);
    c->row = row;
    c->op = (DML_OPERATOR_DESC){ row->type, &c->desc };
    c->input_count = (uint32_t)strlen(row->tensors) - 1;
    test_tensor_link(&c->output, types[ref_pointwise_letter(row, c->input_count) - 'a'],
                     1 + (uint32_t)test_random_below(r, 8));
    test_tensor_random_sizes(r, &c->output, elements != 0 ? elements : 1);
    test_tensor_random_layout(r, &c->output, true);
    for (uint32_t i = 0; i < c->input_count; i++)
        if (!is_optional(def, i) || test_random_chance(r, 70))
            random_input(r, c, i, types[ref_pointwise_letter(row, i) - 'a']);
    c->any_nan = !copies(c);
    put_fields(r, c, def);
}

/* --- across ------------------------------------------------------------------------------------------------------- */

static void across_input(test_random *r, pointwise_case *c, uint32_t i, DML_TENSOR_DATA_TYPE dtype)
{
    test_tensor *in = &c->inputs[i];
    c->present[i] = true;
    test_tensor_link(in, dtype, c->output.buffer.DimensionCount);
    memcpy(in->sizes, c->output.sizes, sizeof in->sizes);
    if (i > 0 && dtype == c->output.buffer.DataType && test_random_chance(r, 30)) {
        same_layout(in, &c->output);
        c->in_place |= test_random_chance(r, 60) ? 1u << i : 0;
        return;
    }
    if (ref_pointwise_broadcasts(c->row, i) && test_random_chance(r, 50))
        draw_ones(r, in, 1);
    test_tensor_matrix_layout(r, in, i == 0 || test_random_chance(r, 60));
    if (i > 0 && test_random_chance(r, 30)) /* one element for all rows, or for all columns */
        in->strides[1 + test_random_below(r, 2)] = 0;
    test_tensor_measure(in);
}

void pointwise_case_across(test_random *r, const ref_pointwise_row *row, pointwise_case *c)
{
    const DML_TENSOR_DATA_TYPE types[2] = { random_type(r, row, 'a'),
                                            row->types[1] != NULL ? random_type(r, row, 'b') : 0 };
    memset(c, 0, sizeof *c);
    c->row = row;
    c->op = (DML_OPERATOR_DESC){ row->type, &c->desc };
    c->input_count = (uint32_t)strlen(row->tensors) - 1;
    test_tensor_link(&c->output, types[ref_pointwise_letter(row, c->input_count) - 'a'], 3);
    c->output.sizes[0] = test_random_chance(r, 60) ? 1 : 2 + (uint32_t)test_random_below(r, 2);
    for (uint32_t i = 1; i < 3; i++)
        c->output.sizes[i] =
            test_random_chance(r, 40) ? 16u << test_random_below(r, 3) : 2 + (uint32_t)test_random_below(r, 79);
    test_tensor_matrix_layout(r, &c->output, false);
    for (uint32_t i = 0; i < c->input_count; i++)
        across_input(r, c, i, types[ref_pointwise_letter(row, i) - 'a']);
    c->any_nan = !copies(c);
    put_fields(r, c, opjit_fe_op_find(row->type));
}

/* --- the plain one ------------------------------------------------------------------------------------------------ */

static void put_plain_fields(pointwise_case *c, const op_def *def)
{
    const DML_TENSOR_DATA_TYPE dtype = c->output.buffer.DataType;
    DML_SCALAR_UNION scalar;
    uint32_t input = 0;
    float value = 0.5f;
    for (uint32_t i = 0; i < def->field_count; i++) {
        const op_field *field = &def->fields[i];
        value += 1;
        scalar.UInt64 = element_of(dtype, value);
        switch ((op_field_kind)field->kind) {
        case OP_INPUT: put_pointer(&c->desc, field, &c->inputs[input++].desc); break;
        case OP_OUTPUT: put_pointer(&c->desc, field, &c->output.desc); break;
        case OP_DTYPE: put(&c->desc, field, &dtype, sizeof dtype); break;
        case OP_SCALAR: put(&c->desc, field, &scalar, sizeof scalar); break;
        case OP_FLOAT: put(&c->desc, field, &value, sizeof value); break;
        case OP_ENUM: put(&c->desc, field, &field->enumeration->names[0].value, sizeof(int32_t)); break;
        case OP_SCALE_BIAS: put_pointer(&c->desc, field, &c->scale_bias); break;
        default: break;
        }
    }
}

static void plain_tensor(test_tensor *t, DML_TENSOR_DATA_TYPE dtype, uint32_t rank)
{
    test_tensor_link(t, dtype, rank);
    for (uint32_t i = 0; i < rank; i++)
        t->sizes[i] = i + 1 < rank ? 2 : 6;
    test_tensor_measure(t);
}

void pointwise_case_plain(const ref_pointwise_row *row, const DML_TENSOR_DATA_TYPE types[2], uint32_t rank,
                          pointwise_case *c)
{
    memset(c, 0, sizeof *c);
    c->row = row;
    c->op = (DML_OPERATOR_DESC){ row->type, &c->desc };
    c->input_count = (uint32_t)strlen(row->tensors) - 1;
    c->scale_bias = (DML_SCALE_BIAS){ 2, 1 };
    plain_tensor(&c->output, types[ref_pointwise_letter(row, c->input_count) - 'a'], rank);
    for (uint32_t i = 0; i < c->input_count; i++) {
        c->present[i] = true;
        plain_tensor(&c->inputs[i], types[ref_pointwise_letter(row, i) - 'a'], rank);
        if (ref_pointwise_broadcasts(row, i) && rank > 1) {
            c->inputs[i].sizes[0] = 1;
            test_tensor_measure(&c->inputs[i]);
        }
    }
    put_plain_fields(c, opjit_fe_op_find(row->type));
}

/* --- data --------------------------------------------------------------------------------------------------------- */

void pointwise_case_fill(test_random *r, const pointwise_case *c, uint32_t input, void *data)
{
    const ref_tensor t = ref_tensor_of(&c->inputs[input].desc);
    const uint64_t same = random_element(r, t.dtype); /* repeated often, so that some elements are equal */
    for (uint64_t e = 0; e < ref_tensor_elements(&t); e++) {
        uint32_t at[8];
        ref_tensor_coordinates(&t, e, at);
        ref_store(&t, data, ref_tensor_offset(&t, at), test_random_chance(r, 5) ? same : random_element(r, t.dtype));
    }
}

/* --- report ------------------------------------------------------------------------------------------------------- */

static void print_array(FILE *file, const char *name, const uint32_t *values, uint32_t count)
{
    fprintf(file, " %s [", name);
    for (uint32_t i = 0; i < count; i++)
        fprintf(file, "%s%" PRIu32, i == 0 ? "" : ", ", values[i]);
    fputs("]", file);
}

static void print_tensor(FILE *file, const char *name, const test_tensor *t)
{
    const DML_BUFFER_TENSOR_DESC *b = &t->buffer;
    fprintf(file, "  %s: %s", name, test_type_name(b->DataType));
    print_array(file, "Sizes", b->Sizes, b->DimensionCount);
    if (b->Strides != NULL)
        print_array(file, "Strides", b->Strides, b->DimensionCount);
    fprintf(file, " TotalTensorSizeInBytes %" PRIu64 " GuaranteedBaseOffsetAlignment %" PRIu32 "\n",
            b->TotalTensorSizeInBytes, b->GuaranteedBaseOffsetAlignment);
}

static void print_floats(FILE *file, const op_def *def, const pointwise_desc *desc)
{
    for (uint32_t i = 0; i < def->field_count; i++) {
        uint64_t bits = 0;
        float value;
        if (def->fields[i].kind == OP_SCALAR)
            memcpy(&bits, desc->bytes + def->fields[i].offset, sizeof bits);
        else if (def->fields[i].kind == OP_FLOAT || def->fields[i].kind == OP_ENUM)
            memcpy(&bits, desc->bytes + def->fields[i].offset, sizeof value);
        else
            continue;
        memcpy(&value, &bits, sizeof value);
        fprintf(file, "  %s.%s: 0x%" PRIx64 " (%a)\n", def->name, def->fields[i].name, bits, (double)value);
    }
}

void pointwise_case_print(FILE *file, const pointwise_case *c)
{
    const op_def *def = opjit_fe_op_find(c->op.Type);
    char name[32];
    fprintf(file, "%s, in place 0x%x\n", def->name, (unsigned)c->in_place);
    for (uint32_t i = 0; i < c->input_count; i++) {
        snprintf(name, sizeof name, "input %u", (unsigned)i);
        if (c->present[i])
            print_tensor(file, name, &c->inputs[i]);
    }
    print_tensor(file, "output", &c->output);
    print_floats(file, def, &c->desc);
    fprintf(file, "  ScaleBias (zeros if absent): %a %a\n", (double)c->scale_bias.Scale, (double)c->scale_bias.Bias);
    if (c->activation.Desc != NULL)
        print_floats(file, opjit_fe_op_find(c->activation.Type), &c->activation_desc);
}
