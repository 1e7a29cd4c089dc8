/* SPDX-License-Identifier: Apache-2.0 */
/* grams.c - TfIdfVectorizer of integers: how often each n-gram of a pool occurs in a row of tokens.  Those of n tokens
 * are all compared with all runs of n tokens, the tokens of a run `distance` apart. */
#include "frontend/onnx/ops/ops.h"

#define MOST_COMPARED (UINT64_C(1) << 32) /* tokens of runs and n-grams, of all rows */

enum { MOST_COLUMNS = 1 << 24 }; /* of the result, however few n-grams there are */

/* What the node says; rows of `tokens` each. */
typedef struct grams {
    uint64_t rows, tokens;
    int64_t least, most, skipped; /* tokens of an n-gram, and left out between two of them */
    const onnx_attribute *starts, *pool, *places; /* the n-grams of 1, 2, ... tokens in the pool; their columns */
    opjit_tensor x; /* {rows, tokens, 1}, INT64 */
    uint64_t compared;
} grams;

/* Tokens k of the n-grams, of which there are `count`, one behind the other from `from` on: {1, 1, count}. */
static opjit_tensor tokens_of(onnx_import *m, const int64_t *from, uint64_t count, int64_t n, int64_t k)
{
    int64_t *const column = opjit_onnx_memory(m, count * sizeof *column);
    if (column == NULL)
        return (opjit_tensor){ 0, 0 };
    for (uint64_t i = 0; i < count; i++)
        column[i] = from[i * (uint64_t)n + (uint64_t)k];
    return opjit_onnx_reshape(m, opjit_onnx_table(m, ONNX_INT64, count, 0, column), 3, (uint64_t[]){ 1, 1, count });
}

/* How often the n-grams of n tokens occur with that distance between two tokens: {rows, 1, count}, UINT32. */
static opjit_tensor occurrences(onnx_import *m, const grams *s, const int64_t *from, uint64_t count, int64_t n,
                                int64_t distance)
{
    static const uint32_t along[1] = { 1 };
    const uint32_t runs = (uint32_t)(s->tokens - (uint64_t)((n - 1) * distance));
    const uint32_t sizes[3] = { (uint32_t)s->rows, runs, 1 };
    opjit_tensor all = { 0, 0 };
    for (int64_t k = 0; k < n; k++) {
        const uint32_t begin[3] = { 0, (uint32_t)(k * distance), 0 };
        const opjit_tensor same = opjit_graph_equals(m->graph, opjit_graph_slice(m->graph, s->x, begin, sizes, NULL),
                                                     tokens_of(m, from, count, n, k));
        all = k == 0 ? same : opjit_graph_logical_and(m->graph, all, same);
    }
    return opjit_graph_reduce(m->graph, opjit_onnx_cast(m, all, ONNX_UINT8, ONNX_UINT32), DML_REDUCE_FUNCTION_SUM, 1,
                              along);
}

/* The n-grams of n tokens in all distances; null: none of them fits into a row. */
static opjit_tensor all_occurrences(onnx_import *m, const onnx_call *c, grams *s, int64_t n, const int64_t *from,
                                    uint64_t count)
{
    opjit_tensor sum = { 0, 0 };
    for (int64_t distance = 1; distance <= (n == 1 ? 1 : s->skipped + 1); distance++) {
        if ((uint64_t)((n - 1) * distance) >= s->tokens)
            break;
        s->compared += s->rows * s->tokens * count * (uint64_t)n;
        if (s->compared > MOST_COMPARED) {
            opjit_onnx_refuse(m, c, OPJIT_LIMIT, "more than %llu tokens to compare",
                              (unsigned long long)MOST_COMPARED);
            break;
        }
        const opjit_tensor some = occurrences(m, s, from, count, n, distance);
        sum = distance == 1 ? some : opjit_graph_add(m->graph, sum, some);
    }
    return sum;
}

static opjit_status read_numbers(onnx_import *m, const onnx_call *c, const char *name, const onnx_attribute **out)
{
    *out = opjit_onnx_attribute(m, c, name);
    return *out != NULL && (*out)->ints != NULL && (*out)->count != 0
               ? OPJIT_OK
               : opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "attribute %s has no integers", name);
}

static opjit_status read_grams(onnx_import *m, const onnx_call *c, grams *s)
{
    TRY(opjit_onnx_need(m, c, 1));
    const onnx_value *const x = c->inputs[0];
    if (opjit_onnx_attribute(m, c, "pool_strings") != NULL)
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "strings are not taken");
    TRY(read_numbers(m, c, "pool_int64s", &s->pool));
    TRY(read_numbers(m, c, "ngram_counts", &s->starts));
    TRY(read_numbers(m, c, "ngram_indexes", &s->places));
    s->least = opjit_onnx_int(m, c, "min_gram_length", 0);
    s->most = opjit_onnx_int(m, c, "max_gram_length", 0);
    s->skipped = opjit_onnx_int(m, c, "max_skip_count", 0);
    if (s->least < 1 || s->most < s->least || s->most > (int64_t)s->starts->count || s->skipped < 0 ||
        s->skipped > UINT32_MAX)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT,
                                 "n-grams of %lld to %lld tokens with %lld between two, must be 1 to %u",
                                 (long long)s->least, (long long)s->most, (long long)s->skipped, s->starts->count);
    if (x->rank < 1 || x->rank > 2 || (x->type != ONNX_INT64 && x->type != ONNX_INT32))
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "%u dimensions of %s, must be 1 or 2 of int32 or int64",
                                 x->rank, opjit_onnx_type_name(x->type).text);
    s->rows = x->rank == 1 ? 1 : x->dims[0];
    s->tokens = x->dims[x->rank - 1];
    s->x = opjit_onnx_reshape(m, opjit_onnx_cast(m, onnx_tensor_of(m, c, 0), x->type, ONNX_INT64), 3,
                              (uint64_t[]){ s->rows, s->tokens, 1 });
    return opjit_onnx_status(m);
}

/* Frequencies {rows, n-grams} of FLOAT by the mode, with weights one of each n-gram. */
static opjit_tensor weighted(onnx_import *m, const onnx_call *c, opjit_tensor counts, uint64_t total)
{
    opjit_graph *const g = m->graph;
    const bool tf = opjit_onnx_text_is(m, c, "mode", "TF", "TF");
    opjit_tensor y = opjit_onnx_cast(m, counts, ONNX_UINT32, ONNX_FLOAT);
    if (tf)
        return y;
    if (opjit_onnx_text_is(m, c, "mode", "IDF", "TF"))
        y = opjit_graph_min(g, y, opjit_onnx_scalar(m, ONNX_FLOAT, 1));
    return opjit_onnx_attribute(m, c, "weights") == NULL
               ? y
               : opjit_graph_multiply(
                     g, y, opjit_onnx_number_table(m, c, "weights", ONNX_FLOAT, 2, (uint64_t[]){ 1, total }));
}

/* The columns of y in the places that the node says, 0 in others. */
static opjit_status give_placed(onnx_import *m, onnx_call *c, const grams *s, opjit_tensor y)
{
    const uint64_t total = s->places->count;
    int64_t columns = 0;
    for (uint64_t i = 0; i < total; i++) {
        if (s->places->ints[i] < 0 || s->places->ints[i] >= MOST_COLUMNS)
            return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "attribute ngram_indexes: %lld, must be 0 to %d",
                                     (long long)s->places->ints[i], MOST_COLUMNS - 1);
        columns = s->places->ints[i] >= columns ? s->places->ints[i] + 1 : columns;
    }
    uint32_t *const from = opjit_onnx_memory(m, (uint64_t)columns * sizeof *from);
    if (from == NULL)
        return m->error->status;
    for (int64_t i = 0; i < columns; i++)
        from[i] = (uint32_t)total; /* a column of zeros */
    for (uint64_t i = 0; i < total; i++) {
        uint32_t *const place = &from[s->places->ints[i]];
        if (*place != total)
            return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "attribute ngram_indexes: two n-grams in column %lld",
                                     (long long)s->places->ints[i]);
        *place = (uint32_t)i;
    }
    onnx_value at = { .type = ONNX_UINT32, .rank = 2, .dims = { 1, (uint64_t)columns }, .data = from };
    y = opjit_graph_pad(m->graph, y, 2, (const uint32_t[]){ 0, 0 }, (const uint32_t[]){ 0, 1 }, 0);
    y = opjit_graph_gather(m->graph, y, opjit_onnx_tensor(m, &at), 1, 1);
    const uint32_t rank = c->inputs[0]->rank;
    const uint64_t dims[2] = { s->rows, (uint64_t)columns };
    return opjit_onnx_give_as(m, c, 0, y, ONNX_FLOAT, rank, dims + (rank == 1));
}

opjit_status opjit_onnx_tf_idf(onnx_import *m, onnx_call *c)
{
    grams s = { 0 };
    TRY(read_grams(m, c, &s));
    const uint64_t total = s.places->count;
    opjit_tensor *const parts = ARENA_ARRAY(m->arena, opjit_tensor, s.starts->count);
    uint32_t part_count = 0;
    uint64_t seen = 0;
    if (parts == NULL)
        return opjit_rt_no_memory(m->error);
    for (int64_t n = 1; n <= (int64_t)s.starts->count; n++) {
        const int64_t begin = s.starts->ints[n - 1];
        const int64_t end = n == (int64_t)s.starts->count ? (int64_t)s.pool->count : s.starts->ints[n];
        if (begin < 0 || end < begin || end > (int64_t)s.pool->count || (end - begin) % n != 0)
            return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT,
                                     "attribute ngram_counts: n-grams of %lld tokens are numbers %lld to %lld of %u",
                                     (long long)n, (long long)begin, (long long)end, s.pool->count);
        const uint64_t count = (uint64_t)(end - begin) / (uint64_t)n;
        if (count == 0)
            continue;
        opjit_tensor some = { 0, 0 };
        if (n >= s.least && n <= s.most)
            some = all_occurrences(m, c, &s, n, s.pool->ints + begin, count);
        TRY(opjit_onnx_status(m));
        if (some.index == 0)
            some = opjit_graph_fill(m->graph, DML_TENSOR_DATA_TYPE_UINT32, 3,
                                    (const uint32_t[]){ (uint32_t)s.rows, 1, (uint32_t)count }, 0);
        parts[part_count++] = some;
        seen += count;
    }
    if (seen != total)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT,
                                 "attribute ngram_indexes: %llu numbers, must be one for each of %llu n-grams",
                                 (unsigned long long)total, (unsigned long long)seen);
    const opjit_tensor counts =
        opjit_onnx_reshape(m, opjit_onnx_join(m, parts, part_count, 2), 2, (uint64_t[]){ s.rows, total });
    return give_placed(m, c, &s, weighted(m, c, counts, total));
}
