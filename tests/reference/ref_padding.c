/* SPDX-License-Identifier: Apache-2.0 */
/* ref_padding.c - PADDING and PADDING1: the input surrounded by the value, or by elements found by walking on from its
 * edge: EDGE stays there, REFLECTION and SYMMETRIC turn round (REFLECTION without standing on the edge twice), WRAP
 * continues at the other end.  One step per element of padding. */
#include "tests/reference/reference.h"

/* The element `steps` to the left of element 0 of n; from the other end it is the mirror image. */
static uint32_t walk(DML_PADDING_MODE mode, uint32_t n, uint32_t steps)
{
    uint32_t at = 0;
    bool right = false; /* the way we walk */
    for (; steps > 0; steps--) {
        const bool at_edge = right ? at + 1 == n : at == 0;
        if (!at_edge) {
            at = right ? at + 1 : at - 1;
        } else if (mode == DML_PADDING_MODE_WRAP) {
            at = right ? 0 : n - 1;
        } else if (mode != DML_PADDING_MODE_EDGE) {
            right = !right;
            if (mode == DML_PADDING_MODE_REFLECTION && n > 1)
                at = right ? at + 1 : at - 1;
        }
    }
    return at;
}

/* false: padding of a constant. */
static bool source(DML_PADDING_MODE mode, uint32_t n, uint32_t start, uint32_t c, uint32_t *out)
{
    if (c >= start && c - start < n) {
        *out = c - start;
        return true;
    }
    if (c < start)
        *out = walk(mode, n, start - c);
    else
        *out = n - 1 - walk(mode, n, c - start - (n - 1));
    return mode != DML_PADDING_MODE_CONSTANT;
}

static void pad(const ref_tensor *in, const ref_tensor *out, DML_PADDING_MODE mode, uint64_t value,
                const uint32_t *start, const void *input, void *output)
{
    for (uint64_t e = 0; e < ref_tensor_elements(out); e++) {
        uint32_t c[8], from[8];
        bool inside = true;
        ref_tensor_coordinates(out, e, c);
        for (uint32_t d = 0; d < in->rank; d++)
            inside = source(mode, in->sizes[d], start[d], c[d], &from[d]) && inside;
        ref_set(out, output, c, inside ? ref_get(in, input, from) : value);
    }
}

void ref_padding(const DML_PADDING_OPERATOR_DESC *desc, ref_inputs inputs, ref_outputs outputs)
{
    const ref_tensor in = ref_tensor_of(desc->InputTensor), out = ref_tensor_of(desc->OutputTensor);
    pad(&in, &out, desc->PaddingMode, ref_element_of_float(out.dtype, desc->PaddingValue), desc->StartPadding,
        inputs[0], outputs[0]);
}

void ref_padding1(const DML_PADDING1_OPERATOR_DESC *desc, ref_inputs inputs, ref_outputs outputs)
{
    const ref_tensor in = ref_tensor_of(desc->InputTensor), out = ref_tensor_of(desc->OutputTensor);
    pad(&in, &out, desc->PaddingMode, ref_scalar_bits(desc->PaddingValueDataType, &desc->PaddingValue),
        desc->StartPadding, inputs[0], outputs[0]);
}
