/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_descriptor.c - descriptors from bytes (fuzz_descriptor.h).  A byte of 0 is the plain choice everywhere. */
#include "tests/support/fuzz_descriptor.h"

#include <math.h>
#include <string.h>

static const DML_TENSOR_DATA_TYPE dtypes[] = {
    DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_DATA_TYPE_FLOAT16, DML_TENSOR_DATA_TYPE_UINT8,
    DML_TENSOR_DATA_TYPE_INT32,   DML_TENSOR_DATA_TYPE_UINT32,  DML_TENSOR_DATA_TYPE_INT64,
    DML_TENSOR_DATA_TYPE_INT8,    DML_TENSOR_DATA_TYPE_FLOAT64, DML_TENSOR_DATA_TYPE_UINT64,
    DML_TENSOR_DATA_TYPE_INT16,   DML_TENSOR_DATA_TYPE_UINT16,
};
enum { DTYPES = sizeof dtypes / sizeof *dtypes };

static DML_TENSOR_DATA_TYPE take_dtype(fuzz_reader *r)
{
    const uint8_t which = (uint8_t)fuzz_take(r, 1);
    return which < 250 ? dtypes[which % DTYPES] : (DML_TENSOR_DATA_TYPE)fuzz_take(r, 4);
}

fuzz_shape fuzz_take_shape(fuzz_reader *r)
{
    static const uint32_t ranks[] = { 4, 2, 1, 3, 5, 8, 6, 7 };
    fuzz_shape shape = { take_dtype(r), ranks[fuzz_choose(r, 8)], { 0 } };
    for (uint32_t i = 0; i < 8; i++)
        shape.sizes[i] = i < shape.rank ? 1 + fuzz_choose(r, 9) : 1;
    return shape;
}

/* --- tensors ------------------------------------------------------------------------------------------------------ */

static void take_strides(fuzz_reader *r, graph_tensor *t)
{
    uint32_t packed = 1;
    t->buffer.Strides = t->strides;
    for (uint32_t i = t->buffer.DimensionCount > 8 ? 8 : t->buffer.DimensionCount; i-- > 0; packed *= t->sizes[i])
        switch (fuzz_choose(r, 4)) {
        case 0: t->strides[i] = packed; break;
        case 1: t->strides[i] = 0; break;
        case 2: t->strides[i] = packed + fuzz_choose(r, 16); break;
        default: t->strides[i] = (uint32_t)fuzz_take(r, fuzz_sometimes(r, 16) ? 4 : 1); break;
        }
}

/* Makes one change to a tensor that started as the shape. */
static void change_tensor(fuzz_reader *r, graph_tensor *t)
{
    DML_BUFFER_TENSOR_DESC *b = &t->buffer;
    const uint32_t i = fuzz_choose(r, 8);
    switch (fuzz_choose(r, 10)) {
    case 0: b->DataType = take_dtype(r); break;
    case 1: t->sizes[i] = 1; break;
    case 2: t->sizes[i] = fuzz_choose(r, 33); break;
    case 3: t->sizes[i] = (uint32_t)fuzz_take(r, 4); break;
    case 4: take_strides(r, t); break;
    case 5: b->DimensionCount = fuzz_sometimes(r, 32) ? (uint32_t)fuzz_take(r, 4) : fuzz_choose(r, 10); break;
    case 6: b->TotalTensorSizeInBytes = fuzz_take(r, fuzz_sometimes(r, 64) ? 8 : 2); break;
    case 7: b->GuaranteedBaseOffsetAlignment = (uint32_t)fuzz_take(r, 1 + fuzz_choose(r, 4)); break;
    case 8: b->Flags = (DML_TENSOR_FLAGS)fuzz_take(r, 1); break;
    default: t->desc.Type = (DML_TENSOR_TYPE)fuzz_take(r, 1); break;
    }
}

static DML_TENSOR_DESC *take_tensor(fuzz_reader *r, fuzz_descriptor *d)
{
    static const uint32_t none[8];
    graph_tensor *t = &d->tensors[d->tensor_count < FUZZ_TENSORS - 1 ? d->tensor_count++ : d->tensor_count];
    graph_tensor_set(t, d->shape.dtype, d->shape.rank, d->shape.sizes, NULL, 0);
    memcpy(t->strides, none, sizeof t->strides);
    for (uint32_t n = fuzz_choose(r, 4); n != 0; n--)
        change_tensor(r, t);
    return &t->desc;
}

/* --- other fields ------------------------------------------------------------------------------------------------- */

static float take_float(fuzz_reader *r)
{
    static const float usual[] = { 0, 1, -1, 0.5f, 2, 1e-5f, -0.0f, 3, INFINITY, -INFINITY, NAN, 1e38f, 1e-45f, 255 };
    const uint8_t which = (uint8_t)fuzz_take(r, 1);
    uint32_t bits;
    float value;
    if (which < 224)
        return usual[which % (sizeof usual / sizeof *usual)];
    bits = (uint32_t)fuzz_take(r, 4);
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t take_int(fuzz_reader *r)
{
    const uint8_t value = (uint8_t)fuzz_take(r, 1);
    return value < 128 ? value % 32 : value < 192 ? (uint32_t)(int32_t)(int8_t)value : (uint32_t)fuzz_take(r, 4);
}

/* Counts of arrays; a count that our arrays can't hold comes without an array. */
static uint32_t take_count(fuzz_reader *r, uint32_t rank)
{
    switch (fuzz_choose(r, 5)) {
    case 0: return rank;
    case 1: return 1;
    case 2: return 2;
    case 3: return fuzz_choose(r, 9);
    default: return fuzz_choose(r, FUZZ_COUNT);
    }
}

/* 32 bits per element: sizes, axes in order, equal values, or any. */
static uint32_t *take_array(fuzz_reader *r, fuzz_descriptor *d, uint32_t count)
{
    uint32_t *const a = d->arrays[d->array_count < FUZZ_ARRAYS - 1 ? d->array_count++ : d->array_count];
    const uint32_t how = fuzz_choose(r, 6);
    const uint32_t value = how == 0 ? 0 : take_int(r);
    for (uint32_t i = 0; i < count; i++)
        a[i] = how == 1 ? i + value : how == 2 ? d->shape.sizes[i % 8] : how < 5 ? value : take_int(r);
    return how == 5 && fuzz_sometimes(r, 16) ? NULL : a;
}

static void put_pointer(uint8_t *at, const void *pointer)
{
    memcpy(at, &pointer, sizeof pointer);
}

static void put_u32(uint8_t *at, uint32_t value)
{
    memcpy(at, &value, sizeof value);
}

static uint32_t count_of(const uint8_t *body, const op_field *field)
{
    uint32_t count;
    memcpy(&count, body + field->count, sizeof count);
    return count;
}

static void take_list(fuzz_reader *r, fuzz_descriptor *d, uint8_t *at, uint32_t count)
{
    DML_TENSOR_DESC *const list = d->lists[d->list_count < 1 ? d->list_count++ : d->list_count];
    for (uint32_t i = 0; i < count; i++)
        list[i] = *take_tensor(r, d);
    put_pointer(at, list);
}

static void take_enum(fuzz_reader *r, const op_field *field, uint8_t *at)
{
    uint32_t count = 0;
    while (field->enumeration != NULL && field->enumeration->names[count].name != NULL)
        count++;
    const bool any = count == 0 || fuzz_sometimes(r, 16);
    put_u32(at, any ? (uint32_t)fuzz_take(r, 4) : (uint32_t)field->enumeration->names[fuzz_choose(r, count)].value);
}

static void take_fields(fuzz_reader *r, fuzz_descriptor *d, const op_def *def, uint8_t *body, bool fused);

static void take_activation(fuzz_reader *r, fuzz_descriptor *d, uint32_t number)
{
    const op_def *def;
    uint32_t count = 0, i;
    while (opjit_fe_op_at(count) != NULL)
        count++;
    const bool fusable = !fuzz_sometimes(r, 32);
    for (i = fuzz_choose(r, count), def = opjit_fe_op_at(i); fusable && (def->traits & OP_FUSABLE) == 0;)
        def = opjit_fe_op_at(i = (i + 1) % count);
    d->activations[number] = (DML_OPERATOR_DESC){ def->type, d->activation_bodies[number] };
    take_fields(r, d, def, d->activation_bodies[number], true);
}

/* One activation, or an array of them. */
static void take_activations(fuzz_reader *r, fuzz_descriptor *d, uint8_t *at, uint32_t count)
{
    const bool given = fuzz_sometimes(r, 128);
    for (uint32_t i = 0; i < count && given; i++)
        take_activation(r, d, i);
    put_pointer(at, given ? d->activations : NULL);
}

static void take_field(fuzz_reader *r, fuzz_descriptor *d, const op_field *field, uint8_t *body, bool fused)
{
    uint8_t *const at = body + field->offset;
    const bool absent = (field->flags & OP_OPTIONAL) != 0 ? fuzz_sometimes(r, 64) : fuzz_sometimes(r, 4);
    uint64_t scalar;
    float number;
    switch ((op_field_kind)field->kind) {
    case OP_INPUT:
    case OP_OUTPUT: put_pointer(at, fused != absent ? NULL : take_tensor(r, d)); break; /* fused ones have none */
    case OP_INPUTS:
    case OP_OUTPUTS: take_list(r, d, at, count_of(body, field)); break;
    case OP_DTYPE: put_u32(at, fuzz_sometimes(r, 16) ? (uint32_t)take_dtype(r) : (uint32_t)d->shape.dtype); break;
    case OP_SCALAR:
        scalar = fuzz_take(r, 1) % 2 != 0 ? fuzz_take(r, 8) : take_int(r);
        memcpy(at, &scalar, sizeof scalar);
        break;
    case OP_UINT:
        if ((field->flags & OP_COUNT) == 0)
            put_u32(at, take_int(r));
        break;
    case OP_INT: put_u32(at, take_int(r)); break;
    case OP_BOOL: put_u32(at, fuzz_sometimes(r, 8) ? (uint32_t)fuzz_take(r, 4) : fuzz_choose(r, 2)); break;
    case OP_FLOAT:
        number = take_float(r);
        memcpy(at, &number, sizeof number);
        break;
    case OP_ENUM: take_enum(r, field, at); break;
    case OP_UINTS:
    case OP_INTS:
    case OP_FLOATS: put_pointer(at, take_array(r, d, count_of(body, field))); break;
    case OP_SIZE_2D:
        put_u32(at, take_int(r));
        put_u32(at + offsetof(DML_SIZE_2D, Height), take_int(r));
        break;
    case OP_SCALE_BIAS:
        d->scale_bias = (DML_SCALE_BIAS){ take_float(r), take_float(r) };
        put_pointer(at, fuzz_sometimes(r, 64) ? &d->scale_bias : NULL);
        break;
    case OP_ACTIVATION:
        if (fused)
            put_pointer(at, NULL);
        else
            take_activations(r, d, at, 1);
        break;
    case OP_ACTIVATIONS: take_activations(r, d, at, count_of(body, field)); break;
    }
}

static void take_fields(fuzz_reader *r, fuzz_descriptor *d, const op_def *def, uint8_t *body, bool fused)
{
    test_require(def->desc_size <= FUZZ_DESC_BYTES, "%s has a descriptor of %u bytes", def->name, def->desc_size);
    memset(body, 0, FUZZ_DESC_BYTES);
    for (uint32_t i = 0; i < def->field_count; i++)
        if ((def->fields[i].flags & OP_COUNT) != 0)
            put_u32(body + def->fields[i].offset, take_count(r, d->shape.rank));
    for (uint32_t i = 0; i < def->field_count; i++)
        take_field(r, d, &def->fields[i], body, fused);
}

void fuzz_take_descriptor(fuzz_reader *r, const op_def *def, const fuzz_shape *shape, fuzz_descriptor *out)
{
    out->shape = *shape;
    out->tensor_count = out->list_count = out->array_count = 0;
    out->desc = (DML_OPERATOR_DESC){ def->type, out->body };
    take_fields(r, out, def, out->body, false);
}

bool fuzz_is_small(const opjit_operator *op)
{
    uint64_t elements = 0, bytes = 0;
    for (uint32_t i = 0; i < op->input_count + op->output_count; i++) {
        const fe_tensor *t = i < op->input_count ? &op->inputs[i] : &op->outputs[i - op->input_count];
        if (!t->present)
            continue;
        if (t->elements > FUZZ_ELEMENTS || t->bytes > FUZZ_BYTES || t->align > 4096)
            return false;
        elements += t->elements;
        bytes += t->bytes;
    }
    return elements <= 4 * FUZZ_ELEMENTS && bytes <= FUZZ_BYTES;
}
