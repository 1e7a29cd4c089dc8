/* SPDX-License-Identifier: Apache-2.0 */
/* cases.c - draws random operators: scalars, bounds and tensors together; runs their reference; takes out late
 * parameters. */
#include "tests/support/cases.h"

#include <string.h>

#include "tests/reference/reference.h"

const DML_TENSOR_DATA_TYPE test_types[TEST_TYPE_COUNT] = {
    DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_DATA_TYPE_FLOAT16, DML_TENSOR_DATA_TYPE_UINT32,
    DML_TENSOR_DATA_TYPE_UINT16,  DML_TENSOR_DATA_TYPE_UINT8,   DML_TENSOR_DATA_TYPE_INT32,
    DML_TENSOR_DATA_TYPE_INT16,   DML_TENSOR_DATA_TYPE_INT8,    DML_TENSOR_DATA_TYPE_FLOAT64,
    DML_TENSOR_DATA_TYPE_UINT64,  DML_TENSOR_DATA_TYPE_INT64,
};

const DML_OPERATOR_TYPE test_operators[TEST_OPERATOR_COUNT] = {
    DML_OPERATOR_DIAGONAL_MATRIX,
    DML_OPERATOR_DIAGONAL_MATRIX1,
    DML_OPERATOR_FILL_VALUE_CONSTANT,
    DML_OPERATOR_FILL_VALUE_SEQUENCE,
};

/* --- scalars ------------------------------------------------------------------------------------------------------ */
/* Zeros, ones, the smallest and largest values, subnormals, infinities, NaNs with payload, quiet and signalling. */
static const uint64_t corners16[] = { 0x0000, 0x8000, 0x3c00, 0xbc00, 0x0001, 0x83ff, 0x0400, 0x7bff, 0xfbff,
                                      0x7c00, 0xfc00, 0x7e00, 0xfe12, 0x7c01, 0xfd55, 0x2e66, 0x4200 };
static const uint64_t corners32[] = { 0x00000000, 0x80000000, 0x3f800000, 0xbf800000, 0x00000001, 0x807fffff,
                                      0x00800000, 0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000,
                                      0xffc12345, 0x7f800001, 0xffa00bad, 0x3dcccccd, 0x40400000 };
static const uint64_t corners64[] = { 0x0000000000000000, 0x8000000000000000, 0x3ff0000000000000, 0xbff0000000000000,
                                      0x0000000000000001, 0x800fffffffffffff, 0x0010000000000000, 0x7fefffffffffffff,
                                      0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000000, 0xfff8deadbeef0001,
                                      0x7ff0000000000001, 0x3fb999999999999a, 0x4008000000000000 };
/* Low bytes of 0, 1, -1, the largest and smallest of each width, and small steps. */
static const uint64_t corners_integer[] = { 0, 1, UINT64_MAX, 0x7f, 0x80, 0x7fff, 0x8000, 0x7fffffff, 0x80000000,
                                            0x7fffffffffffffff, 0x8000000000000000, 2, 3, (uint64_t)-2, 0x100000001 };
/* FLOAT fields of DIAGONAL_MATRIX: also the limits of integer types, and halfway points between f16 values. */
static const float corners_float[] = { 10.6f, -10.6f, 0.5f, 127.0f, 128.0f, -128.9f, -129.0f, 255.5f, 256.0f, 32767.5f,
                                       65504.0f, 65519.99f, 65520.0f, 65535.0f, 65536.0f, 2147483520.0f, 2147483648.0f,
                                       -2147483648.0f, 4294967040.0f, 4294967296.0f, 9.2233715e18f, 9.2233720e18f,
                                       1.8446743e19f, 1.8446744e19f, 1e30f, 2049.0f, 2051.0f, 5.9604645e-8f,
                                       2.9802322e-8f, 2.9802326e-8f, 8.9406967e-8f, 6.1e-5f, 1e-40f };

#define PICK(r, array) ((array)[test_random_below(r, sizeof(array) / sizeof *(array))])

/* Sets all eight bytes.  Those after the element keep random contents, because nobody may read them. */
DML_SCALAR_UNION test_scalar_random(test_random *r, DML_TENSOR_DATA_TYPE type)
{
    DML_SCALAR_UNION scalar;
    uint64_t bits = test_random_u64(r);
    scalar.UInt64 = test_random_u64(r);
    if (test_random_chance(r, 65)) {
        switch (type) {
        case DML_TENSOR_DATA_TYPE_FLOAT16: bits = PICK(r, corners16); break;
        case DML_TENSOR_DATA_TYPE_FLOAT32: bits = PICK(r, corners32); break;
        case DML_TENSOR_DATA_TYPE_FLOAT64: bits = PICK(r, corners64); break;
        default: bits = PICK(r, corners_integer); break;
        }
    } else if (type == DML_TENSOR_DATA_TYPE_FLOAT32 && test_random_chance(r, 70)) {
        scalar.Float32 = (float)test_random_between(r, -100000, 100000) / 64.0f;
        return scalar;
    } else if (type == DML_TENSOR_DATA_TYPE_FLOAT64 && test_random_chance(r, 70)) {
        scalar.Float64 = (double)test_random_between(r, -100000, 100000) / 48.0;
        return scalar;
    }
    memcpy(scalar.Bytes, &bits, ref_dtype_size(type));
    return scalar;
}

static float random_float(test_random *r)
{
    DML_SCALAR_UNION scalar;
    if (test_random_chance(r, 50))
        return PICK(r, corners_float);
    scalar = test_scalar_random(r, DML_TENSOR_DATA_TYPE_FLOAT32);
    return scalar.Float32;
}

/* A diagonal: mostly one that crosses a height x width matrix or just misses it. */
static int32_t random_diagonal(test_random *r, uint32_t height, uint32_t width)
{
    switch (test_random_below(r, 8)) {
    case 0: return INT32_MIN;
    case 1: return INT32_MAX;
    case 2: return 0;
    case 3: return (int32_t)test_random_between(r, -1, 1);
    case 4: return (int32_t)(width - 2 + test_random_below(r, 4));
    case 5: return -(int32_t)(height - 2 + test_random_below(r, 4));
    case 6: return (int32_t)test_random_u64(r);
    default: return (int32_t)test_random_between(r, -(int64_t)height, width);
    }
}

/* --- cases -------------------------------------------------------------------------------------------------------- */
static void random_diagonal_matrix(test_random *r, test_case *c)
{
    DML_DIAGONAL_MATRIX_OPERATOR_DESC *desc = &c->desc.diagonal_matrix;
    const uint32_t rank = c->output.buffer.DimensionCount;
    desc->OutputTensor = &c->output.desc;
    desc->Offset = random_diagonal(r, c->output.sizes[rank - 2], c->output.sizes[rank - 1]);
    desc->Value = random_float(r);
}

/* An input with the output's layout may also share its memory. */
static void random_input(test_random *r, test_case *c)
{
    test_tensor *in = &c->input;
    const test_tensor *out = &c->output;
    test_tensor_link(in, out->buffer.DataType, out->buffer.DimensionCount);
    memcpy(in->sizes, out->sizes, sizeof in->sizes);
    c->has_input = true;
    c->in_place = test_random_chance(r, 35);
    if (!c->in_place) {
        test_tensor_random_layout(r, in, false);
        return;
    }
    memcpy(in->strides, out->strides, sizeof in->strides);
    in->buffer.Strides = out->buffer.Strides != NULL ? in->strides : NULL;
    /* The layouts are equal whatever follows the last element. */
    in->buffer.TotalTensorSizeInBytes = test_random_chance(r, 50) ? out->buffer.TotalTensorSizeInBytes : 0;
    test_tensor_measure(in);
}

static void random_diagonal_matrix1(test_random *r, test_case *c)
{
    DML_DIAGONAL_MATRIX1_OPERATOR_DESC *desc = &c->desc.diagonal_matrix1;
    const uint32_t rank = c->output.buffer.DimensionCount;
    const uint32_t height = c->output.sizes[rank - 2], width = c->output.sizes[rank - 1];
    if (test_random_chance(r, 65))
        random_input(r, c);
    desc->InputTensor = c->has_input ? &c->input.desc : NULL;
    desc->OutputTensor = &c->output.desc;
    desc->ValueDataType = c->output.buffer.DataType;
    desc->Value = test_scalar_random(r, desc->ValueDataType);
    if (test_random_chance(r, 20))
        desc->Value.UInt64 = 0;
    desc->DiagonalFillBegin = random_diagonal(r, height, width);
    desc->DiagonalFillEnd = random_diagonal(r, height, width);
    if (test_random_chance(r, 15))
        desc->DiagonalFillEnd = desc->DiagonalFillBegin;
    else if (test_random_chance(r, 20) && desc->DiagonalFillBegin != INT32_MAX)
        desc->DiagonalFillEnd = desc->DiagonalFillBegin + 1;
}

static void random_fill_value_constant(test_random *r, test_case *c)
{
    DML_FILL_VALUE_CONSTANT_OPERATOR_DESC *desc = &c->desc.fill_value_constant;
    desc->OutputTensor = &c->output.desc;
    desc->ValueDataType = c->output.buffer.DataType;
    desc->Value = test_scalar_random(r, desc->ValueDataType);
}

static void random_fill_value_sequence(test_random *r, test_case *c)
{
    DML_FILL_VALUE_SEQUENCE_OPERATOR_DESC *desc = &c->desc.fill_value_sequence;
    desc->OutputTensor = &c->output.desc;
    desc->ValueDataType = c->output.buffer.DataType;
    desc->ValueStart = test_scalar_random(r, desc->ValueDataType);
    desc->ValueDelta = test_scalar_random(r, desc->ValueDataType);
}

void test_case_random(test_random *r, DML_OPERATOR_TYPE type, uint64_t most_elements, test_case *c)
{
    const bool is_matrix = type == DML_OPERATOR_DIAGONAL_MATRIX || type == DML_OPERATOR_DIAGONAL_MATRIX1;
    const uint32_t least_rank = is_matrix ? 2 : 1;
    uint32_t rank = least_rank + (uint32_t)test_random_below(r, 9 - least_rank);
    uint64_t elements = most_elements >> (2 * test_random_below(r, 4));
    if (test_random_chance(r, 40))
        rank = least_rank + (uint32_t)test_random_below(r, 3);
    if (test_random_below(r, 300) == 0)
        elements = UINT64_C(1) << 20;
    memset(c, 0, sizeof *c);
    c->op.Type = type;
    c->op.Desc = &c->desc;
    test_tensor_link(&c->output, PICK(r, test_types), rank);
    test_tensor_random_sizes(r, &c->output, elements != 0 ? elements : 1);
    test_tensor_random_layout(r, &c->output, true);
    c->elements = 1;
    for (uint32_t i = 0; i < rank; i++)
        c->elements *= c->output.sizes[i];
    switch (type) {
    case DML_OPERATOR_DIAGONAL_MATRIX: random_diagonal_matrix(r, c); break;
    case DML_OPERATOR_DIAGONAL_MATRIX1: random_diagonal_matrix1(r, c); break;
    case DML_OPERATOR_FILL_VALUE_CONSTANT: random_fill_value_constant(r, c); break;
    default: random_fill_value_sequence(r, c); break;
    }
}

void test_case_reference(const test_case *c, const void *input, void *output)
{
    switch (c->op.Type) {
    case DML_OPERATOR_DIAGONAL_MATRIX: ref_diagonal_matrix(&c->desc.diagonal_matrix, output); break;
    case DML_OPERATOR_DIAGONAL_MATRIX1: ref_diagonal_matrix1(&c->desc.diagonal_matrix1, input, output); break;
    case DML_OPERATOR_FILL_VALUE_CONSTANT: ref_fill_value_constant(&c->desc.fill_value_constant, output); break;
    default: ref_fill_value_sequence(&c->desc.fill_value_sequence, output); break;
    }
}

bool test_case_any_nan(const test_case *c)
{
    const DML_TENSOR_DATA_TYPE type = c->output.buffer.DataType;
    if (!ref_dtype_is_float(type))
        return false;
    return c->op.Type == DML_OPERATOR_FILL_VALUE_SEQUENCE ||
           (c->op.Type == DML_OPERATOR_DIAGONAL_MATRIX && type != DML_TENSOR_DATA_TYPE_FLOAT32);
}

/* --- late parameters ---------------------------------------------------------------------------------------------- */
uint32_t test_case_scalars(const test_case *c)
{
    switch (c->op.Type) {
    case DML_OPERATOR_DIAGONAL_MATRIX1: return 3;
    case DML_OPERATOR_FILL_VALUE_CONSTANT: return 1;
    default: return 2;
    }
}

/* A scalar field by its number: its place, name and type. */
static void *scalar_field(test_case *c, uint32_t index, const char **name, DML_TENSOR_DATA_TYPE *type)
{
    test_desc *d = &c->desc;
    *type = index == 0 || c->op.Type == DML_OPERATOR_FILL_VALUE_SEQUENCE ? c->output.buffer.DataType
                                                                         : DML_TENSOR_DATA_TYPE_INT32;
    switch (c->op.Type) {
    case DML_OPERATOR_DIAGONAL_MATRIX:
        *type = index == 0 ? DML_TENSOR_DATA_TYPE_FLOAT32 : DML_TENSOR_DATA_TYPE_INT32;
        *name = index == 0 ? "Value" : "Offset";
        return index == 0 ? (void *)&d->diagonal_matrix.Value : &d->diagonal_matrix.Offset;
    case DML_OPERATOR_DIAGONAL_MATRIX1:
        *name = index == 0 ? "Value" : index == 1 ? "DiagonalFillBegin" : "DiagonalFillEnd";
        return index == 0   ? (void *)&d->diagonal_matrix1.Value
               : index == 1 ? &d->diagonal_matrix1.DiagonalFillBegin
                            : &d->diagonal_matrix1.DiagonalFillEnd;
    case DML_OPERATOR_FILL_VALUE_CONSTANT:
        *name = "Value";
        return &d->fill_value_constant.Value;
    default:
        *name = index == 0 ? "ValueStart" : "ValueDelta";
        return index == 0 ? &d->fill_value_sequence.ValueStart : &d->fill_value_sequence.ValueDelta;
    }
}

/* The 8 bytes of opjit_call.params: integers are sign- or zero-extended, floats zero-extended. */
static uint64_t param_of(DML_TENSOR_DATA_TYPE type, const void *field)
{
    const uint32_t size = ref_dtype_size(type);
    const unsigned unused = 64 - 8 * size;
    uint64_t bits = 0;
    memcpy(&bits, field, size);
    if (type == DML_TENSOR_DATA_TYPE_INT8 || type == DML_TENSOR_DATA_TYPE_INT16 || type == DML_TENSOR_DATA_TYPE_INT32) {
        if ((bits >> (8 * size - 1)) != 0)
            bits |= UINT64_MAX << (64 - unused);
    }
    return bits;
}

void test_case_take_late(test_random *r, test_case *c, unsigned subset, test_late *out)
{
    const uint32_t scalars = test_case_scalars(c);
    const uint32_t first = (uint32_t)test_random_below(r, scalars); /* any rotation is as good as another order */
    out->count = 0;
    for (uint32_t n = 0; n < scalars; n++) {
        const uint32_t index = (first + n) % scalars, at = out->count;
        if ((subset >> index & 1) == 0)
            continue;
        void *field = scalar_field(c, index, &out->names[at], &out->types[at]);
        out->values[at] = param_of(out->types[at], field);
        test_random_fill(r, field, ref_dtype_size(out->types[at]));
        out->count++;
    }
}
