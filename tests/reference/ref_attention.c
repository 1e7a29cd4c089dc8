/* SPDX-License-Identifier: Apache-2.0 */
/* ref_attention.c - MULTIHEAD_ATTENTION1, a score after the other; the first form is this with one HeadCount.
 * Exponentials are C's, in double. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/reference/reference.h"

typedef struct attention {
    const DML_MULTIHEAD_ATTENTION1_OPERATOR_DESC *desc;
    const void *const *in;
    DML_TENSOR_DATA_TYPE dtype;
    uint32_t heads, key_heads, size, value_size, queries, added, past, total;
    uint32_t batch;
} attention;

/* Sizes from the last one on; 1 where the tensor has no more. */
static uint32_t size_of(const DML_TENSOR_DESC *desc, uint32_t from_end)
{
    const ref_tensor t = ref_tensor_of(desc);
    return from_end < t.rank ? t.sizes[t.rank - 1 - from_end] : 1;
}

/* An element by its last coordinates, 0 where the tensor has one. */
static uint64_t get(const DML_TENSOR_DESC *desc, const void *base, uint32_t count, const uint32_t *last)
{
    const ref_tensor t = ref_tensor_of(desc);
    uint32_t at[8] = { 0 };
    for (uint32_t d = 0; d < count && d < t.rank; d++)
        at[t.rank - 1 - d] = t.sizes[t.rank - 1 - d] == 1 ? 0 : last[count - 1 - d];
    return ref_get(&t, base, at);
}

static double get_real(const attention *a, const DML_TENSOR_DESC *desc, uint32_t input, uint32_t count,
                       const uint32_t *last)
{
    return ref_real(a->dtype, get(desc, a->in[input], count, last));
}

/* An element of the mask as a list, or of a table of rows of one element a sequence. */
static int64_t mask_number(const attention *a, uint32_t row, uint32_t column)
{
    return (int32_t)get(a->desc->MaskTensor, a->in[7], 2, (const uint32_t[]){ row, column });
}

static attention measure(const DML_MULTIHEAD_ATTENTION1_OPERATOR_DESC *d, ref_inputs inputs)
{
    attention a = { .desc = d, .in = inputs, .heads = d->QueryHeadCount, .key_heads = d->KeyValueHeadCount };
    const DML_TENSOR_DESC *stacked =
        d->StackedQueryKeyValueTensor != NULL ? d->StackedQueryKeyValueTensor : d->StackedQueryKeyTensor;
    a.dtype = ref_tensor_of(d->OutputTensor).dtype;
    a.batch = size_of(d->OutputTensor, 2);
    a.queries = size_of(d->OutputTensor, 1);
    a.value_size = size_of(d->OutputTensor, 0) / a.heads;
    a.size = d->QueryTensor != NULL ? size_of(d->QueryTensor, 0) / a.heads : size_of(stacked, 0);
    a.added = d->KeyTensor != NULL               ? size_of(d->KeyTensor, 1)
              : d->StackedKeyValueTensor != NULL ? size_of(d->StackedKeyValueTensor, 3)
                                                 : a.queries;
    a.past = d->PastKeyTensor != NULL ? size_of(d->PastKeyTensor, 1) : 0;
    a.total = a.past + a.added;
    if (d->PastSequenceLengthsTensor != NULL && d->OutputPresentKeyTensor != NULL)
        a.total = size_of(d->OutputPresentKeyTensor, 1);
    else if (d->PastSequenceLengthsTensor != NULL && d->OutputPresentValueTensor != NULL)
        a.total = size_of(d->OutputPresentValueTensor, 1);
    return a;
}

/* With the bias, whose elements of this kind begin at `bias`. */
static double added_bias(const attention *a, double x, uint32_t at)
{
    if (a->desc->BiasTensor == NULL)
        return x;
    return ref_rounded(a->dtype, x + get_real(a, a->desc->BiasTensor, 6, 1, &at));
}

static double query(const attention *a, uint32_t b, uint32_t h, uint32_t i, uint32_t d)
{
    const DML_MULTIHEAD_ATTENTION1_OPERATOR_DESC *desc = a->desc;
    const uint32_t column = h * a->size + d;
    const double x = desc->QueryTensor != NULL
                         ? get_real(a, desc->QueryTensor, 0, 3, (const uint32_t[]){ b, i, column })
                     : desc->StackedQueryKeyTensor != NULL
                         ? get_real(a, desc->StackedQueryKeyTensor, 3, 5, (const uint32_t[]){ b, i, h, 0, d })
                         : get_real(a, desc->StackedQueryKeyValueTensor, 5, 5, (const uint32_t[]){ b, i, h, 0, d });
    return added_bias(a, x, column);
}

static double new_key(const attention *a, uint32_t b, uint32_t g, uint32_t j, uint32_t d)
{
    const DML_MULTIHEAD_ATTENTION1_OPERATOR_DESC *desc = a->desc;
    const uint32_t column = g * a->size + d;
    const double x = desc->KeyTensor != NULL ? get_real(a, desc->KeyTensor, 1, 3, (const uint32_t[]){ b, j, column })
                     : desc->StackedQueryKeyTensor != NULL
                         ? get_real(a, desc->StackedQueryKeyTensor, 3, 5, (const uint32_t[]){ b, j, g, 1, d })
                     : desc->StackedKeyValueTensor != NULL
                         ? get_real(a, desc->StackedKeyValueTensor, 4, 5, (const uint32_t[]){ b, j, g, 0, d })
                         : get_real(a, desc->StackedQueryKeyValueTensor, 5, 5, (const uint32_t[]){ b, j, g, 1, d });
    return added_bias(a, x, a->heads * a->size + column);
}

static double new_value(const attention *a, uint32_t b, uint32_t g, uint32_t j, uint32_t d)
{
    const DML_MULTIHEAD_ATTENTION1_OPERATOR_DESC *desc = a->desc;
    const uint32_t column = g * a->value_size + d;
    const double x = desc->ValueTensor != NULL
                         ? get_real(a, desc->ValueTensor, 2, 3, (const uint32_t[]){ b, j, column })
                     : desc->StackedKeyValueTensor != NULL
                         ? get_real(a, desc->StackedKeyValueTensor, 4, 5, (const uint32_t[]){ b, j, g, 1, d })
                         : get_real(a, desc->StackedQueryKeyValueTensor, 5, 5, (const uint32_t[]){ b, j, g, 2, d });
    return added_bias(a, x, (a->heads + a->key_heads) * a->size + column);
}

/* How many past keys sequence b has. */
static uint32_t past_of(const attention *a, uint32_t b)
{
    const DML_TENSOR_DESC *desc = a->desc->PastSequenceLengthsTensor;
    if (desc == NULL)
        return a->past;
    const DML_TENSOR_DATA_TYPE type = ref_tensor_of(desc).dtype;
    const uint64_t bits = get(desc, a->in[11], 1, &b);
    double given = type == DML_TENSOR_DATA_TYPE_INT32 ? (double)(int32_t)bits : trunc(ref_real(type, bits));
    const double most = a->past < a->total - a->added ? a->past : a->total - a->added;
    return (uint32_t)(given > most ? most : given > 0 ? given : 0);
}

static double key(const attention *a, uint32_t b, uint32_t g, uint32_t j, uint32_t d)
{
    const uint32_t past = past_of(a, b);
    return j < past              ? get_real(a, a->desc->PastKeyTensor, 9, 4, (const uint32_t[]){ b, g, j, d })
           : j < past + a->added ? new_key(a, b, g, j - past, d)
                                 : 0;
}

static double value(const attention *a, uint32_t b, uint32_t g, uint32_t j, uint32_t d)
{
    const uint32_t past = past_of(a, b);
    return j < past              ? get_real(a, a->desc->PastValueTensor, 10, 4, (const uint32_t[]){ b, g, j, d })
           : j < past + a->added ? new_value(a, b, g, j - past, d)
                                 : 0;
}

static bool is_masked(const attention *a, uint32_t b, uint32_t h, uint32_t i, uint32_t j)
{
    const uint32_t first = a->batch + b, last = 2 * a->batch + 1 + b;
    const int64_t q = (int64_t)b * a->queries + i, k = (int64_t)b * a->total + j;
    switch (a->desc->MaskType) {
    case DML_MULTIHEAD_ATTENTION_MASK_TYPE_NONE: return false;
    case DML_MULTIHEAD_ATTENTION_MASK_TYPE_KEY_SEQUENCE_LENGTH: return j >= mask_number(a, 0, b);
    case DML_MULTIHEAD_ATTENTION_MASK_TYPE_KEY_SEQUENCE_END_START:
        return j >= mask_number(a, 0, b) || j < mask_number(a, 1, b);
    case DML_MULTIHEAD_ATTENTION_MASK_TYPE_KEY_QUERY_SEQUENCE_LENGTH_START_END:
        return j >= mask_number(a, 0, b) || q < mask_number(a, 0, first) || q >= mask_number(a, 0, first + 1) ||
               k < mask_number(a, 0, last) || k >= mask_number(a, 0, last + 1);
    default: return (int32_t)get(a->desc->MaskTensor, a->in[7], 4, (const uint32_t[]){ b, h, i, j }) == 0;
    }
}

static double score(const attention *a, uint32_t b, uint32_t h, uint32_t i, uint32_t j)
{
    ref_dot dot = { .dtype = a->dtype, .block = 256 };
    for (uint32_t d = 0; d < a->size; d++)
        ref_dot_step(&dot, d, query(a, b, h, i, d), key(a, b, h / (a->heads / a->key_heads), j, d));
    double x = ref_rounded(a->dtype, ref_dot_result(&dot) * (double)a->desc->Scale);
    if (a->desc->RelativePositionBiasTensor != NULL)
        x = ref_rounded(a->dtype,
                        x + get_real(a, a->desc->RelativePositionBiasTensor, 8, 4, (const uint32_t[]){ b, h, i, j }));
    if (is_masked(a, b, h, i, j))
        x = ref_rounded(a->dtype, x + (double)a->desc->MaskFilterValue);
    return a->desc->PastSequenceLengthsTensor != NULL && j > past_of(a, b) + i ? -INFINITY : x;
}

static double term(void *user, uint64_t k)
{
    return ((const double *)user)[k];
}

/* Weights of a row of scores. */
static void softmax(const attention *a, double *row)
{
    double max = row[0];
    for (uint32_t j = 1; j < a->total; j++)
        max = row[j] > max || isnan(row[j]) ? row[j] : max;
    for (uint32_t j = 0; j < a->total; j++)
        row[j] = row[j] == -INFINITY ? 0 : ref_rounded(a->dtype, exp(ref_rounded(a->dtype, row[j] - max)));
    const double scale = ref_rounded(a->dtype, 1 / ref_sum(a->dtype, 32, a->total, term, row));
    for (uint32_t j = 0; j < a->total; j++)
        row[j] = ref_rounded(a->dtype, row[j] * scale);
}

/* The elements of a query's head: the last coordinates of the output. */
static void attend(const attention *a, double *row, uint32_t b, uint32_t h, uint32_t i, void *output)
{
    const ref_tensor out = ref_tensor_of(a->desc->OutputTensor);
    for (uint32_t j = 0; j < a->total; j++)
        row[j] = score(a, b, h, i, j);
    softmax(a, row);
    for (uint32_t d = 0; d < a->value_size; d++) {
        ref_dot dot = { .dtype = a->dtype, .block = 256 };
        uint32_t at[8] = { 0 };
        for (uint32_t j = 0; j < a->total; j++)
            ref_dot_step(&dot, j, row[j], value(a, b, h / (a->heads / a->key_heads), j, d));
        at[out.rank - 3] = b;
        at[out.rank - 2] = i;
        at[out.rank - 1] = h * a->value_size + d;
        ref_set(&out, output, at, ref_real_bits(a->dtype, ref_dot_result(&dot)));
    }
}

static void present(const attention *a, const DML_TENSOR_DESC *desc, bool of_keys, void *output)
{
    if (desc == NULL)
        return;
    const ref_tensor out = ref_tensor_of(desc);
    for (uint64_t e = 0; e < ref_tensor_elements(&out); e++) {
        uint32_t at[8];
        ref_tensor_coordinates(&out, e, at);
        const uint32_t *last = at + out.rank - 4;
        const double x =
            of_keys ? key(a, last[0], last[1], last[2], last[3]) : value(a, last[0], last[1], last[2], last[3]);
        ref_set(&out, output, at, ref_real_bits(a->dtype, x));
    }
}

void ref_multihead_attention1(const DML_MULTIHEAD_ATTENTION1_OPERATOR_DESC *desc, ref_inputs inputs,
                              ref_outputs outputs)
{
    const attention a = measure(desc, inputs);
    double *row = malloc(a.total * sizeof *row);
    if (row == NULL)
        abort();
    for (uint32_t b = 0; b < a.batch; b++)
        for (uint32_t h = 0; h < a.heads; h++)
            for (uint32_t i = 0; i < a.queries; i++)
                attend(&a, row, b, h, i, outputs[0]);
    present(&a, desc->OutputPresentKeyTensor, true, outputs[1]);
    present(&a, desc->OutputPresentValueTensor, false, outputs[2]);
    free(row);
}
