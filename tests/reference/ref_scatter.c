/* SPDX-License-Identifier: Apache-2.0 */
/* ref_scatter.c - operators that store at indices from data.
 *     SCATTER_ELEMENTS: output = input; then output[c with Indices[c] on Axis] = Updates[c]
 *     SCATTER_REDUCE:   output = input; then x = f(x, Updates[c]), x being output[c with Indices[c] on Axis]
 *     SCATTER_ND:       output = input; then output[Indices[i.., 0 .. tuple], b..] = Updates[i.., b..]
 *     MAX_UNPOOLING:    output = 0; then element number Indices[c] of the packed output = input[c], or nothing outside
 *     NONZERO_COORDINATES: the count, and a row of coordinates for each element that is not zero; then zeros
 * Negative indices of signed types count from the end, then all are clamped, unless it is said otherwise.  Updates go
 * in row-major order, so that the last one of a place wins.  Tensors are aligned to the right. */
#include "tests/reference/reference.h"

/* The coordinate below n that an element of an index tensor denotes. */
static uint32_t place_of(const ref_tensor *t, uint64_t bits, uint32_t n)
{
    const bool is_signed = t->dtype == DML_TENSOR_DATA_TYPE_INT32 || t->dtype == DML_TENSOR_DATA_TYPE_INT64;
    const int64_t value = t->dtype == DML_TENSOR_DATA_TYPE_INT32 ? (int32_t)(uint32_t)bits : (int64_t)bits;
    if (!is_signed || value >= 0)
        return bits < n ? (uint32_t)bits : n - 1;
    return value < -(int64_t)n ? 0 : (uint32_t)(value + n);
}

static void copy(const ref_tensor *in, const void *from, const ref_tensor *out, void *to)
{
    for (uint64_t e = 0; e < ref_tensor_elements(in); e++) {
        uint32_t c[8];
        ref_tensor_coordinates(in, e, c);
        ref_set(out, to, c, ref_get(in, from, c));
    }
}

static uint64_t combined_floats(DML_TENSOR_DATA_TYPE type, DML_REDUCE_FUNCTION function, uint64_t a, uint64_t b)
{
    const double x = ref_real(type, a), y = ref_real(type, b);
    switch (function) {
    case DML_REDUCE_FUNCTION_MIN: return x < y || x != x ? a : b;
    case DML_REDUCE_FUNCTION_MAX: return x > y || x != x ? a : b;
    case DML_REDUCE_FUNCTION_MULTIPLY: return ref_real_bits(type, ref_rounded(type, x * y));
    default: return ref_real_bits(type, ref_rounded(type, x + y));
    }
}

/* The bits of an integer of so many bytes as a number, with its sign. */
static int64_t number_of(uint64_t bits, uint32_t bytes)
{
    const uint64_t sign = UINT64_C(1) << (8 * bytes - 1);
    return (int64_t)(((bits & (2 * sign - 1)) ^ sign) - sign);
}

static uint64_t combined(DML_TENSOR_DATA_TYPE type, DML_REDUCE_FUNCTION function, uint64_t a, uint64_t b)
{
    bool below;
    switch (type) {
    case DML_TENSOR_DATA_TYPE_FLOAT16:
    case DML_TENSOR_DATA_TYPE_FLOAT32:
    case DML_TENSOR_DATA_TYPE_FLOAT64: return combined_floats(type, function, a, b);
    case DML_TENSOR_DATA_TYPE_INT8: below = number_of(a, 1) < number_of(b, 1); break;
    case DML_TENSOR_DATA_TYPE_INT16: below = number_of(a, 2) < number_of(b, 2); break;
    case DML_TENSOR_DATA_TYPE_INT32: below = number_of(a, 4) < number_of(b, 4); break;
    case DML_TENSOR_DATA_TYPE_INT64: below = (int64_t)a < (int64_t)b; break;
    default: below = a < b; break;
    }
    switch (function) {
    case DML_REDUCE_FUNCTION_MIN: return below ? a : b;
    case DML_REDUCE_FUNCTION_MAX: return below ? b : a;
    case DML_REDUCE_FUNCTION_MULTIPLY: return a * b;
    default: return a + b;
    }
}

/* Updates one after the other, each at its index's place along the axis; function NULL: it replaces the element. */
static void scatter_along(const DML_SCATTER_ELEMENTS_OPERATOR_DESC *desc, const DML_REDUCE_FUNCTION *function,
                          ref_inputs inputs, ref_outputs outputs)
{
    const ref_tensor in = ref_tensor_of(desc->InputTensor), indices = ref_tensor_of(desc->IndicesTensor);
    const ref_tensor updates = ref_tensor_of(desc->UpdatesTensor), out = ref_tensor_of(desc->OutputTensor);
    copy(&in, inputs[0], &out, outputs[0]);
    for (uint64_t e = 0; e < ref_tensor_elements(&indices); e++) {
        uint32_t c[8];
        ref_tensor_coordinates(&indices, e, c);
        uint64_t value = ref_get(&updates, inputs[2], c);
        c[desc->Axis] = place_of(&indices, ref_get(&indices, inputs[1], c), out.sizes[desc->Axis]);
        if (function != NULL)
            value = combined(in.dtype, *function, ref_get(&out, outputs[0], c), value);
        ref_set(&out, outputs[0], c, value);
    }
}

void ref_scatter_elements(const DML_SCATTER_ELEMENTS_OPERATOR_DESC *desc, ref_inputs inputs, ref_outputs outputs)
{
    scatter_along(desc, NULL, inputs, outputs);
}

void ref_scatter_reduce(const OPJIT_SCATTER_REDUCE_OPERATOR_DESC *desc, ref_inputs inputs, ref_outputs outputs)
{
    const DML_SCATTER_ELEMENTS_OPERATOR_DESC same = { desc->InputTensor, desc->IndicesTensor, desc->UpdatesTensor,
                                                      desc->OutputTensor, desc->Axis };
    scatter_along(&same, &desc->Function, inputs, outputs);
}

void ref_scatter_nd(const DML_SCATTER_ND_OPERATOR_DESC *desc, ref_inputs inputs, ref_outputs outputs)
{
    const ref_tensor in = ref_tensor_of(desc->InputTensor), indices = ref_tensor_of(desc->IndicesTensor);
    const ref_tensor updates = ref_tensor_of(desc->UpdatesTensor), out = ref_tensor_of(desc->OutputTensor);
    const uint32_t rank = in.rank, tuple = indices.sizes[rank - 1], first = rank - desc->InputDimensionCount;
    ref_tensor tuples = indices, slice = in;
    uint64_t from = 0; /* the updates that are left, row-major, are those that are next */
    tuples.sizes[rank - 1] = 1;
    for (uint32_t d = 0; d < first + tuple; d++)
        slice.sizes[d] = 1;
    copy(&in, inputs[0], &out, outputs[0]);
    for (uint64_t i = 0; i < ref_tensor_elements(&tuples); i++) {
        uint32_t at[8];
        ref_tensor_coordinates(&tuples, i, at);
        for (uint64_t e = 0; e < ref_tensor_elements(&slice); e++) {
            uint32_t to[8], c[8];
            ref_tensor_coordinates(&slice, e, to);
            for (uint32_t k = 0; k < tuple; k++) {
                at[rank - 1] = k;
                to[first + k] = place_of(&indices, ref_get(&indices, inputs[1], at), in.sizes[first + k]);
            }
            ref_tensor_coordinates(&updates, from++, c);
            ref_set(&out, outputs[0], to, ref_get(&updates, inputs[2], c));
        }
    }
}

void ref_max_unpooling(const DML_MAX_UNPOOLING_OPERATOR_DESC *desc, ref_inputs inputs, ref_outputs outputs)
{
    const ref_tensor in = ref_tensor_of(desc->InputTensor), indices = ref_tensor_of(desc->IndicesTensor);
    const ref_tensor out = ref_tensor_of(desc->OutputTensor);
    uint32_t c[8];
    for (uint64_t e = 0; e < ref_tensor_elements(&out); e++) {
        ref_tensor_coordinates(&out, e, c);
        ref_set(&out, outputs[0], c, 0);
    }
    for (uint64_t e = 0; e < ref_tensor_elements(&in); e++) {
        ref_tensor_coordinates(&in, e, c);
        const uint64_t value = ref_get(&in, inputs[0], c), number = ref_get(&indices, inputs[1], c);
        if (number >= ref_tensor_elements(&out))
            continue;
        ref_tensor_coordinates(&out, number, c);
        ref_set(&out, outputs[0], c, value);
    }
}

static bool is_zero(const ref_tensor *t, uint64_t bits)
{
    switch (t->dtype) {
    case DML_TENSOR_DATA_TYPE_FLOAT16: return (bits & 0x7fff) == 0;
    case DML_TENSOR_DATA_TYPE_FLOAT32: return (bits & 0x7fffffff) == 0;
    case DML_TENSOR_DATA_TYPE_FLOAT64: return (bits & 0x7fffffffffffffff) == 0;
    default: return bits == 0;
    }
}

void ref_nonzero_coordinates(const DML_NONZERO_COORDINATES_OPERATOR_DESC *desc, ref_inputs inputs, ref_outputs outputs)
{
    const ref_tensor in = ref_tensor_of(desc->InputTensor), rows = ref_tensor_of(desc->OutputCoordinatesTensor);
    const ref_tensor out = ref_tensor_of(desc->OutputCountTensor);
    const uint32_t rank = in.rank, columns = rows.sizes[rank - 1], first = rank - columns;
    uint32_t at[8] = { 0 }, none[8] = { 0 }, count = 0;
    for (uint64_t e = 0; e < ref_tensor_elements(&in); e++) {
        uint32_t c[8];
        ref_tensor_coordinates(&in, e, c);
        if (is_zero(&in, ref_get(&in, inputs[0], c)))
            continue;
        at[rank - 2] = count++;
        for (uint32_t n = 0; n < columns; n++) {
            at[rank - 1] = n;
            ref_set(&rows, outputs[1], at, c[first + n]);
        }
    }
    ref_set(&out, outputs[0], none, count);
    for (uint32_t row = count; row < rows.sizes[rank - 2]; row++)
        for (uint32_t n = 0; n < columns; n++) {
            at[rank - 2] = row;
            at[rank - 1] = n;
            ref_set(&rows, outputs[1], at, 0);
        }
}
