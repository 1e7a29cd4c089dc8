/* SPDX-License-Identifier: Apache-2.0 */
/* computed_integer.c - draws of products of matrices of integers, for rows of computed.c. */
#include "tests/support/computed_draw.h"

static DML_TENSOR_DATA_TYPE byte_type(computed_draw *d)
{
    return below(d, 2) == 0 ? DML_TENSOR_DATA_TYPE_UINT8 : DML_TENSOR_DATA_TYPE_INT8;
}

static const DML_TENSOR_DESC *draw_matrix(computed_draw *d, uint32_t i, DML_TENSOR_DATA_TYPE type, uint32_t rows,
                                          uint32_t columns)
{
    test_tensor *t = &d->c->inputs[i];
    d->c->present[i] = true;
    test_tensor_link(t, type, d->rank);
    memcpy(t->sizes, d->c->output.sizes, sizeof t->sizes);
    t->sizes[d->rank - 2] = rows;
    t->sizes[d->rank - 1] = columns;
    lay_out(d, t, false);
    return &t->desc;
}

/* One element, or one for each row (from_end 2) or column (1). */
static const DML_TENSOR_DESC *draw_vector(computed_draw *d, uint32_t i, DML_TENSOR_DATA_TYPE type, uint32_t from_end,
                                          unsigned percent)
{
    test_tensor *t = &d->c->inputs[i];
    d->c->present[i] = chance(d, percent);
    if (!d->c->present[i])
        return NULL;
    const uint32_t rank = d->r != NULL && test_random_chance(d->r, 30) ? 1 : d->rank;
    test_tensor_link(t, type, rank);
    for (uint32_t k = 0; k < rank; k++)
        t->sizes[k] = 1;
    if (chance(d, 60))
        t->sizes[rank < from_end ? 0 : rank - from_end] = d->c->output.sizes[d->rank - from_end];
    lay_out(d, t, false);
    return &t->desc;
}

/* Sizes of the output; the length of its sums. */
static uint32_t draw_product(computed_draw *d, DML_TENSOR_DATA_TYPE type)
{
    test_tensor *out = &d->c->output;
    test_tensor_link(out, type, d->rank);
    for (uint32_t i = 0; i < d->rank; i++)
        out->sizes[i] = d->r == NULL ? 2 + i % 4 : 1 + below(d, i + 2 < d->rank ? 3 : i + 1 < d->rank ? 9 : 40);
    lay_out(d, out, true);
    return d->r == NULL ? 7 : 1 + below(d, test_random_chance(d->r, 10) ? 300 : 20);
}

void computed_draw_integer(computed_draw *d)
{
    DML_MATRIX_MULTIPLY_INTEGER_OPERATOR_DESC *desc = &d->c->desc.integer_product;
    const uint32_t length = draw_product(d, DML_TENSOR_DATA_TYPE_INT32);
    const uint32_t *sizes = &d->c->output.sizes[d->rank - 2];
    const DML_TENSOR_DATA_TYPE b = byte_type(d);
    desc->ATensor = draw_matrix(d, 0, d->type, sizes[0], length);
    desc->AZeroPointTensor = draw_vector(d, 1, d->type, 2, 50);
    desc->BTensor = draw_matrix(d, 2, b, length, sizes[1]);
    desc->BZeroPointTensor = draw_vector(d, 3, b, 1, 50);
    desc->OutputTensor = &d->c->output.desc;
}

void computed_draw_to_float(computed_draw *d)
{
    static const DML_TENSOR_DATA_TYPE types[] = { DML_TENSOR_DATA_TYPE_INT32,  DML_TENSOR_DATA_TYPE_INT16,
                                                  DML_TENSOR_DATA_TYPE_UINT32, DML_TENSOR_DATA_TYPE_UINT16,
                                                  DML_TENSOR_DATA_TYPE_UINT8,  DML_TENSOR_DATA_TYPE_INT8 };
    DML_MATRIX_MULTIPLY_INTEGER_TO_FLOAT_OPERATOR_DESC *desc = &d->c->desc.to_float;
    const DML_TENSOR_DATA_TYPE a = types[below(d, 6)], b = chance(d, 80) ? a : types[below(d, 6)];
    const uint32_t length = draw_product(d, d->type);
    const uint32_t *sizes = &d->c->output.sizes[d->rank - 2];
    desc->ATensor = draw_matrix(d, 0, a, sizes[0], length);
    desc->AScaleTensor = draw_vector(d, 1, d->type, 2, 100);
    desc->AZeroPointTensor = draw_vector(d, 2, a, 2, 50);
    desc->BTensor = draw_matrix(d, 3, b, length, sizes[1]);
    desc->BScaleTensor = draw_vector(d, 4, d->type, 1, 100);
    desc->BZeroPointTensor = draw_vector(d, 5, b, 1, 50);
    desc->BiasTensor = chance(d, 50) ? draw_matrix(d, 6, d->type, sizes[0], sizes[1]) : NULL;
    desc->OutputTensor = &d->c->output.desc;
}

void computed_draw_quantized(computed_draw *d)
{
    DML_QUANTIZED_LINEAR_MATRIX_MULTIPLY_OPERATOR_DESC *desc = &d->c->desc.quantized_product;
    const DML_TENSOR_DATA_TYPE b = byte_type(d), out = d->r == NULL ? d->type : byte_type(d);
    const DML_TENSOR_DATA_TYPE real = DML_TENSOR_DATA_TYPE_FLOAT32;
    const uint32_t length = draw_product(d, out);
    const uint32_t *sizes = &d->c->output.sizes[d->rank - 2];
    desc->ATensor = draw_matrix(d, 0, d->type, sizes[0], length);
    desc->AScaleTensor = draw_vector(d, 1, real, 2, 100);
    desc->AZeroPointTensor = draw_vector(d, 2, d->type, 2, 50);
    desc->BTensor = draw_matrix(d, 3, b, length, sizes[1]);
    desc->BScaleTensor = draw_vector(d, 4, real, 1, 100);
    desc->BZeroPointTensor = draw_vector(d, 5, b, 1, 50);
    desc->OutputScaleTensor = draw_vector(d, 6, real, 2, 100);
    desc->OutputZeroPointTensor = draw_vector(d, 7, out, 2, 50);
    desc->OutputTensor = &d->c->output.desc;
}

void computed_integer(const void *user, const void *const *inputs, void *const *outputs)
{
    const computed_case *c = user;
    ref_matrix_multiply_integer(&c->desc.integer_product, inputs, outputs[0]);
}

void computed_to_float(const void *user, const void *const *inputs, void *const *outputs)
{
    const computed_case *c = user;
    ref_matrix_multiply_integer_to_float(&c->desc.to_float, inputs, outputs[0]);
}

void computed_quantized(const void *user, const void *const *inputs, void *const *outputs)
{
    const computed_case *c = user;
    ref_quantized_linear_matrix_multiply(&c->desc.quantized_product, inputs, outputs[0]);
}
