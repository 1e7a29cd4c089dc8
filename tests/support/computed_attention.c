/* SPDX-License-Identifier: Apache-2.0 */
/* computed_attention.c - draws of MULTIHEAD_ATTENTION and MULTIHEAD_ATTENTION1, for rows of computed.c.  The first form
 * is drawn as the second one with one count of heads. */
#include "tests/support/computed_draw.h"

enum {
    QUERY,
    KEY,
    VALUE,
    STACKED_QK,
    STACKED_KV,
    STACKED_QKV,
    BIAS,
    MASK,
    RELATIVE_BIAS,
    PAST_KEY,
    PAST_VALUE,
    LENGTHS
};
enum { MOST_RANK = 5, FORMS = 4 };

typedef struct sizes {
    uint32_t batch, queries, added, past, total, heads, key_heads, size, value_size;
} sizes;

/* A tensor with these last sizes, and ones before them up to a rank; 0: any. */
static const DML_TENSOR_DESC *draw(computed_draw *d, test_tensor *t, DML_TENSOR_DATA_TYPE type, uint32_t rank,
                                   uint32_t count, const uint32_t *last, bool is_output)
{
    if (rank == 0)
        rank = d->r == NULL ? count : count + below(d, MOST_RANK + 1 - count);
    test_tensor_link(t, type, rank);
    for (uint32_t k = 0; k < rank; k++)
        t->sizes[rank - 1 - k] = k < count ? last[count - 1 - k] : 1;
    lay_out(d, t, is_output);
    return &t->desc;
}

static const DML_TENSOR_DESC *draw_input(computed_draw *d, uint32_t i, DML_TENSOR_DATA_TYPE type, uint32_t count,
                                         const uint32_t *last)
{
    d->c->present[i] = true;
    return draw(d, &d->c->inputs[i], type, i >= STACKED_QK && i <= STACKED_QKV ? MOST_RANK : 0, count, last, false);
}

#define INPUT(i, type, ...) \
    draw_input(d, i, type, sizeof((uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t), (const uint32_t[]){ __VA_ARGS__ })

static sizes draw_sizes(computed_draw *d, uint32_t form, bool shares, bool counted)
{
    const bool many = d->r != NULL && test_random_chance(d->r, 8);
    sizes s = { .batch = 1 + below(d, 3), .heads = 1 + below(d, 3), .size = 1 + below(d, many ? 40 : 9) };
    s.key_heads = s.heads;
    if (shares)
        s.heads *= 1 + below(d, 3);
    s.queries = 1 + below(d, many ? 50 : 7);
    s.added = form == 1 || form == 3 ? s.queries : 1 + below(d, many ? 300 : 9);
    s.value_size = form >= 2 ? s.size : 1 + below(d, many ? 40 : 9);
    s.past = chance(d, 40) ? 1 + below(d, 6) : 0;
    s.total = s.past + s.added;
    if (counted && d->r != NULL && chance(d, 50))
        s.total = (s.past > s.added ? s.past : s.added) + below(d, 8);
    return s;
}

static void draw_qkv(computed_draw *d, DML_MULTIHEAD_ATTENTION1_OPERATOR_DESC *desc, const sizes *s, uint32_t form)
{
    const uint32_t hidden = s->heads * s->size, of_keys = s->key_heads * s->size;
    if (form == 0 || form == 2)
        desc->QueryTensor = INPUT(QUERY, d->type, s->batch, s->queries, hidden);
    if (form == 0)
        desc->KeyTensor = INPUT(KEY, d->type, s->batch, s->added, of_keys);
    if (form < 2)
        desc->ValueTensor = INPUT(VALUE, d->type, s->batch, s->added, s->key_heads * s->value_size);
    if (form == 1)
        desc->StackedQueryKeyTensor = INPUT(STACKED_QK, d->type, s->batch, s->added, s->heads, 2, s->size);
    if (form == 2)
        desc->StackedKeyValueTensor = INPUT(STACKED_KV, d->type, s->batch, s->added, s->key_heads, 2, s->size);
    if (form == 3)
        desc->StackedQueryKeyValueTensor = INPUT(STACKED_QKV, d->type, s->batch, s->added, s->heads, 3, s->size);
}

static uint32_t one_or(computed_draw *d, uint32_t size)
{
    return d->r != NULL && test_random_chance(d->r, 30) ? 1 : size;
}

static const DML_TENSOR_DESC *draw_mask(computed_draw *d, const sizes *s, DML_MULTIHEAD_ATTENTION_MASK_TYPE type)
{
    const DML_TENSOR_DATA_TYPE word = DML_TENSOR_DATA_TYPE_INT32;
    switch (type) {
    case DML_MULTIHEAD_ATTENTION_MASK_TYPE_NONE: return NULL;
    case DML_MULTIHEAD_ATTENTION_MASK_TYPE_KEY_SEQUENCE_LENGTH: return INPUT(MASK, word, s->batch);
    case DML_MULTIHEAD_ATTENTION_MASK_TYPE_KEY_SEQUENCE_END_START: return INPUT(MASK, word, 2, s->batch);
    case DML_MULTIHEAD_ATTENTION_MASK_TYPE_KEY_QUERY_SEQUENCE_LENGTH_START_END:
        return INPUT(MASK, word, 3 * s->batch + 2);
    default: break;
    }
    if (chance(d, 70))
        return INPUT(MASK, word, one_or(d, s->batch), one_or(d, s->heads), one_or(d, s->queries), one_or(d, s->total));
    return INPUT(MASK, word, one_or(d, s->queries), s->total);
}

static void draw_outputs(computed_draw *d, DML_MULTIHEAD_ATTENTION1_OPERATOR_DESC *desc, const sizes *s)
{
    const uint32_t out[3] = { s->batch, s->queries, s->heads * s->value_size };
    const uint32_t key[4] = { s->batch, s->key_heads, s->total, s->size };
    const uint32_t value[4] = { s->batch, s->key_heads, s->total, s->value_size };
    const bool counted = s->total != s->past + s->added;
    desc->OutputTensor = draw(d, &d->c->output, d->type, d->rank, 3, out, true);
    d->c->more_present[0] = counted || chance(d, 60);
    d->c->more_present[1] = d->c->more_present[0] && chance(d, 60); /* absent ones are the last, as in a built graph */
    if (d->c->more_present[0])
        desc->OutputPresentKeyTensor = draw(d, &d->c->more[0], d->type, 0, 4, key, true);
    if (d->c->more_present[1])
        desc->OutputPresentValueTensor = draw(d, &d->c->more[1], d->type, 0, 4, value, true);
}

static void draw_attention(computed_draw *d, bool second)
{
    DML_MULTIHEAD_ATTENTION1_OPERATOR_DESC *desc = &d->c->attention;
    const uint32_t form = FORMS - 1 - below(d, FORMS);
    const bool counted = second && chance(d, 40);
    const sizes s = draw_sizes(d, form, second && form != 1 && form != 3 && chance(d, 50), counted);
    draw_qkv(d, desc, &s, form);
    if (chance(d, 40))
        desc->BiasTensor = INPUT(BIAS, d->type, (s.heads + s.key_heads) * s.size + s.key_heads * s.value_size);
    desc->MaskType = (DML_MULTIHEAD_ATTENTION_MASK_TYPE)below(d, 5);
    desc->MaskTensor = draw_mask(d, &s, desc->MaskType);
    if (chance(d, 40))
        desc->RelativePositionBiasTensor =
            INPUT(RELATIVE_BIAS, d->type, one_or(d, s.batch), one_or(d, s.heads), s.queries, one_or(d, s.total));
    if (s.past != 0) {
        desc->PastKeyTensor = INPUT(PAST_KEY, d->type, s.batch, s.key_heads, s.past, s.size);
        desc->PastValueTensor = INPUT(PAST_VALUE, d->type, s.batch, s.key_heads, s.past, s.value_size);
    }
    if (counted)
        desc->PastSequenceLengthsTensor = INPUT(LENGTHS, chance(d, 60) ? DML_TENSOR_DATA_TYPE_INT32 : d->type, s.batch);
    draw_outputs(d, desc, &s);
    desc->Scale = chance(d, 50) ? 0.25f : -0.3f;
    desc->MaskFilterValue = chance(d, 50) ? -10000.0f : -1.5f;
    desc->QueryHeadCount = s.heads;
    desc->KeyValueHeadCount = s.key_heads;
}

void computed_draw_attention1(computed_draw *d)
{
    draw_attention(d, true);
    d->c->desc.attention1 = d->c->attention;
}

void computed_draw_attention(computed_draw *d)
{
    const DML_MULTIHEAD_ATTENTION1_OPERATOR_DESC *same = &d->c->attention;
    draw_attention(d, false);
    d->c->desc.attention = (DML_MULTIHEAD_ATTENTION_OPERATOR_DESC){ same->QueryTensor,
                                                                    same->KeyTensor,
                                                                    same->ValueTensor,
                                                                    same->StackedQueryKeyTensor,
                                                                    same->StackedKeyValueTensor,
                                                                    same->StackedQueryKeyValueTensor,
                                                                    same->BiasTensor,
                                                                    same->MaskTensor,
                                                                    same->RelativePositionBiasTensor,
                                                                    same->PastKeyTensor,
                                                                    same->PastValueTensor,
                                                                    same->OutputTensor,
                                                                    same->OutputPresentKeyTensor,
                                                                    same->OutputPresentValueTensor,
                                                                    same->Scale,
                                                                    same->MaskFilterValue,
                                                                    same->QueryHeadCount,
                                                                    same->MaskType };
}

void computed_attention(const void *user, const void *const *inputs, void *const *outputs)
{
    ref_multihead_attention1(&((const computed_case *)user)->attention, inputs, outputs);
}
