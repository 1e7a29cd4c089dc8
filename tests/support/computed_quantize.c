/* SPDX-License-Identifier: Apache-2.0 */
/* computed_quantize.c - draws of QUANTIZE and DEQUANTIZE, for their rows of computed.c. */
#include "tests/support/computed_draw.h"

static bool has_halves(const test_tensor *t)
{
    return t->buffer.DataType == DML_TENSOR_DATA_TYPE_UINT4 || t->buffer.DataType == DML_TENSOR_DATA_TYPE_INT4;
}

/* An output whose elements share bytes has no gaps: packed, with its dimensions in order or the other way round. */
static void lay_out_halves(computed_draw *d, test_tensor *t)
{
    const bool turned = d->r != NULL && test_random_chance(d->r, 40);
    uint32_t stride = 1;
    t->buffer.Strides = turned ? t->strides : NULL;
    for (uint32_t k = 0; k < d->rank; k++) {
        t->strides[k] = stride;
        stride *= t->sizes[k];
    }
    test_tensor_measure(t);
}

/* One number for blocks of the sizes. */
static void draw_blocks(computed_draw *d, uint32_t i, DML_TENSOR_DATA_TYPE type, const uint32_t *sizes)
{
    test_tensor *t = &d->c->inputs[i];
    test_tensor_link(t, type, d->rank);
    for (uint32_t k = 0; k < d->rank; k++) {
        uint32_t size = sizes[k];
        while (size > 1 && (sizes[k] % size != 0 || chance(d, 40)))
            size--;
        t->sizes[k] = d->r == NULL ? k == 0 ? sizes[k] : 1 : size;
    }
    lay_out(d, t, false);
    d->c->present[i] = true;
    d->c->blocks[i - 1] = t->desc;
}

void computed_draw_quantize(computed_draw *d)
{
    static const DML_TENSOR_DATA_TYPE integers[] = { DML_TENSOR_DATA_TYPE_UINT8, DML_TENSOR_DATA_TYPE_INT8,
                                                     DML_TENSOR_DATA_TYPE_UINT4, DML_TENSOR_DATA_TYPE_INT4 };
    const DML_TENSOR_DATA_TYPE integer = integers[below(d, 4)];
    computed_case *c = d->c;
    const bool back = c->op.Type == DML_OPERATOR_DEQUANTIZE, zero = chance(d, 60);
    test_tensor *in = &c->inputs[0], *out = &c->output;
    test_tensor_link(in, back ? integer : d->type, d->rank);
    test_tensor_link(out, back ? d->type : integer, d->rank);
    for (uint32_t k = 0; k < d->rank && d->r == NULL; k++)
        in->sizes[k] = 2 + k % 4;
    if (d->r != NULL)
        test_tensor_random_sizes(d->r, in, 300);
    memcpy(out->sizes, in->sizes, sizeof out->sizes);
    lay_out(d, in, false);
    if (has_halves(out))
        lay_out_halves(d, out);
    else
        lay_out(d, out, true);
    c->present[0] = true;
    draw_blocks(d, 1, d->type, in->sizes);
    if (zero)
        draw_blocks(d, 2, integer, in->sizes);
    c->desc.quantize = (DML_QUANTIZE_OPERATOR_DESC){
        &in->desc, zero ? DML_QUANTIZATION_TYPE_SCALE_ZERO_POINT : DML_QUANTIZATION_TYPE_SCALE, zero ? 2 : 1, c->blocks,
        &out->desc
    };
}

void computed_quantize(const void *user, const void *const *inputs, void *const *outputs)
{
    const computed_case *c = user;
    if (c->op.Type == DML_OPERATOR_DEQUANTIZE)
        ref_dequantize(&c->desc.dequantize, inputs, outputs[0]);
    else
        ref_quantize(&c->desc.quantize, inputs, outputs[0]);
}
