/* SPDX-License-Identifier: Apache-2.0 */
/* ref_gather.c - operators with an index tensor.
 *     GATHER:          output[a.., i.., b..] = input[a.., Indices[i..], b..]
 *     GATHER_ELEMENTS: output[c] = input[c with Indices[c] on Axis]
 *     GATHER_ND1:      output[batch.., i.., b..] = input[batch.., Indices[batch.., i.., 0 .. tuple], b..]; GATHER_ND:
 *     no batch ONE_HOT:         output[c] = Indices[c with 0 on Axis] is c[Axis] ? Values[1] : Values[0]
 *     REVERSE_SUBSEQUENCES: the first SequenceLengths elements along Axis reversed, the others copied
 * Negative indices of signed types count from the end, then all are clamped (ONE_HOT: outside is no hit; lengths
 * are clamped only).  Tensors are aligned to the right: a walk over the index tensor, and within it over what is
 * copied. */
#include "tests/reference/reference.h"

/* An index or length as sign and magnitude. */
typedef struct number {
    bool negative;
    uint64_t magnitude;
} number;

static number number_of(const ref_tensor *t, uint64_t bits)
{
    int64_t value = (int64_t)bits;
    if (t->dtype == DML_TENSOR_DATA_TYPE_UINT32 || t->dtype == DML_TENSOR_DATA_TYPE_UINT64)
        return (number){ false, bits };
    if (t->dtype == DML_TENSOR_DATA_TYPE_INT32)
        value = (int32_t)(uint32_t)bits;
    return value < 0 ? (number){ true, 0 - (uint64_t)value } : (number){ false, (uint64_t)value };
}

/* The coordinate below n that the number denotes; *out_hit: without clamping. */
static uint32_t coordinate(number x, uint32_t n, bool *out_hit)
{
    *out_hit = x.negative ? x.magnitude <= n : x.magnitude < n;
    if (*out_hit)
        return (uint32_t)(x.negative ? n - x.magnitude : x.magnitude);
    return x.negative ? 0 : n - 1;
}

static uint32_t clamped(number x, uint32_t n)
{
    bool hit;
    return coordinate(x, n, &hit);
}

/* The last `count` coordinates become those of tensor t, with zeros before them. */
static void align_right(const ref_tensor *t, const uint32_t *coordinates, uint32_t count, uint32_t out[8])
{
    for (uint32_t d = 0; d < t->rank; d++) {
        const uint32_t from_end = t->rank - d;
        out[d] = from_end <= count ? coordinates[count - from_end] : 0;
    }
}

void ref_gather(const DML_GATHER_OPERATOR_DESC *desc, ref_inputs inputs, ref_outputs outputs)
{
    const ref_tensor in = ref_tensor_of(desc->InputTensor), indices = ref_tensor_of(desc->IndicesTensor);
    const ref_tensor out = ref_tensor_of(desc->OutputTensor);
    ref_tensor rest = in;
    rest.sizes[desc->Axis] = 1;
    for (uint64_t i = 0; i < ref_tensor_elements(&indices); i++) {
        uint32_t at[8];
        ref_tensor_coordinates(&indices, i, at);
        const number index = number_of(&indices, ref_get(&indices, inputs[1], at));
        for (uint64_t e = 0; e < ref_tensor_elements(&rest); e++) {
            uint32_t c[8], to[16], aligned[8], count = 0;
            ref_tensor_coordinates(&rest, e, c);
            for (uint32_t d = 0; d < desc->Axis; d++)
                to[count++] = c[d];
            for (uint32_t d = indices.rank - desc->IndexDimensions; d < indices.rank; d++)
                to[count++] = at[d];
            for (uint32_t d = desc->Axis + 1; d < in.rank; d++)
                to[count++] = c[d];
            align_right(&out, to, count, aligned);
            c[desc->Axis] = clamped(index, in.sizes[desc->Axis]);
            ref_set(&out, outputs[0], aligned, ref_get(&in, inputs[0], c));
        }
    }
}

void ref_gather_elements(const DML_GATHER_ELEMENTS_OPERATOR_DESC *desc, ref_inputs inputs, ref_outputs outputs)
{
    const ref_tensor in = ref_tensor_of(desc->InputTensor), indices = ref_tensor_of(desc->IndicesTensor);
    const ref_tensor out = ref_tensor_of(desc->OutputTensor);
    for (uint64_t e = 0; e < ref_tensor_elements(&indices); e++) {
        uint32_t c[8];
        ref_tensor_coordinates(&indices, e, c);
        const uint64_t to = ref_tensor_offset(&out, c);
        c[desc->Axis] = clamped(number_of(&indices, ref_get(&indices, inputs[1], c)), in.sizes[desc->Axis]);
        ref_store(&out, outputs[0], to, ref_get(&in, inputs[0], c));
    }
}

void ref_gather_nd1(const DML_GATHER_ND1_OPERATOR_DESC *desc, ref_inputs inputs, ref_outputs outputs)
{
    const ref_tensor in = ref_tensor_of(desc->InputTensor), indices = ref_tensor_of(desc->IndicesTensor);
    const ref_tensor out = ref_tensor_of(desc->OutputTensor);
    const uint32_t tuple = indices.sizes[indices.rank - 1], in_first = in.rank - desc->InputDimensionCount;
    const uint32_t index_first = indices.rank - desc->IndicesDimensionCount, batch = desc->BatchDimensionCount;
    ref_tensor tuples = indices, rest = in;
    tuples.sizes[indices.rank - 1] = 1;
    for (uint32_t d = 0; d < in_first + batch + tuple; d++)
        rest.sizes[d] = 1;
    for (uint64_t i = 0; i < ref_tensor_elements(&tuples); i++) {
        uint32_t at[8], from[8];
        ref_tensor_coordinates(&tuples, i, at);
        for (uint64_t e = 0; e < ref_tensor_elements(&rest); e++) {
            uint32_t to[16], aligned[8], count = 0;
            ref_tensor_coordinates(&rest, e, from);
            for (uint32_t d = index_first; d + 1 < indices.rank; d++)
                to[count++] = at[d];
            for (uint32_t d = in_first + batch + tuple; d < in.rank; d++)
                to[count++] = from[d];
            for (uint32_t b = 0; b < batch; b++)
                from[in_first + b] = at[index_first + b];
            for (uint32_t k = 0; k < tuple; k++) {
                const uint32_t d = in_first + batch + k;
                at[indices.rank - 1] = k;
                from[d] = clamped(number_of(&indices, ref_get(&indices, inputs[1], at)), in.sizes[d]);
            }
            align_right(&out, to, count, aligned);
            ref_set(&out, outputs[0], aligned, ref_get(&in, inputs[0], from));
        }
    }
}

void ref_one_hot(const DML_ONE_HOT_OPERATOR_DESC *desc, ref_inputs inputs, ref_outputs outputs)
{
    const ref_tensor indices = ref_tensor_of(desc->IndicesTensor), values = ref_tensor_of(desc->ValuesTensor);
    const ref_tensor out = ref_tensor_of(desc->OutputTensor);
    const uint32_t off[8] = { 0 };
    uint32_t on[8] = { 0 };
    on[values.rank - 1] = 1;
    for (uint64_t i = 0; i < ref_tensor_elements(&indices); i++) {
        uint32_t c[8];
        bool hit;
        ref_tensor_coordinates(&indices, i, c);
        const uint32_t at =
            coordinate(number_of(&indices, ref_get(&indices, inputs[0], c)), out.sizes[desc->Axis], &hit);
        for (c[desc->Axis] = 0; c[desc->Axis] < out.sizes[desc->Axis]; c[desc->Axis]++)
            ref_set(&out, outputs[0], c, ref_get(&values, inputs[1], hit && c[desc->Axis] == at ? on : off));
    }
}

void ref_reverse_subsequences(const DML_REVERSE_SUBSEQUENCES_OPERATOR_DESC *desc, ref_inputs inputs,
                              ref_outputs outputs)
{
    const ref_tensor in = ref_tensor_of(desc->InputTensor), out = ref_tensor_of(desc->OutputTensor);
    const ref_tensor lengths = ref_tensor_of(desc->SequenceLengthsTensor);
    const uint32_t n = in.sizes[desc->Axis];
    for (uint64_t e = 0; e < ref_tensor_elements(&lengths); e++) {
        uint32_t c[8], from[8];
        ref_tensor_coordinates(&lengths, e, c);
        const number x = number_of(&lengths, ref_get(&lengths, inputs[1], c));
        const uint32_t length = x.negative ? 0 : x.magnitude > n ? n : (uint32_t)x.magnitude;
        for (uint32_t i = 0; i < n; i++) {
            for (uint32_t d = 0; d < in.rank; d++)
                from[d] = c[d];
            c[desc->Axis] = i;
            from[desc->Axis] = i < length ? length - 1 - i : i;
            ref_set(&out, outputs[0], c, ref_get(&in, inputs[0], from));
        }
        c[desc->Axis] = 0;
    }
}
