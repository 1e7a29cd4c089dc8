/* SPDX-License-Identifier: Apache-2.0 */
/* einsum.c - Einsum: operands are combined two at a time, each step a product of matrices in a batch. */
#include "frontend/onnx/ops/ops.h"

/* A tensor whose dimensions have letters; an ellipsis has '1' to '8', which no equation has. */
typedef struct lettered {
    opjit_tensor tensor;
    uint32_t rank;
    char letters[ONNX_RANK + 1];
    uint64_t dims[ONNX_RANK];
} lettered;

typedef struct equation {
    char terms[8][ONNX_RANK + 1]; /* of the operands */
    char result[ONNX_RANK + 1];
    uint32_t count;
    bool has_result;
} equation;

static int32_t place_of(const char *letters, char letter)
{
    const char *const at = letter == '\0' ? NULL : strchr(letters, letter);
    return at == NULL ? -1 : (int32_t)(at - letters);
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* One term: letters, "..." as the last digits up to '8'.  Those of an input may have a letter again. */
static opjit_status read_term(onnx_import *m, const onnx_call *c, const char *from, const char *to, uint32_t rank,
                              bool of_input, char *out)
{
    uint32_t letters = 0, used = 0;
    for (const char *at = from; at < to; at++)
        letters += is_letter(*at);
    for (const char *at = from; at < to; at++) {
        if (*at == ' ')
            continue;
        if (*at == '.' && to - at >= 3 && at[1] == '.' && at[2] == '.' && rank >= letters) {
            /* Aligned to the right: the last of them is the same letter in all terms. */
            for (uint32_t i = 0; i < rank - letters && used < ONNX_RANK; i++)
                out[used++] = (char)('8' - (rank - letters) + 1 + i);
            at += 2;
        } else if (is_letter(*at) && used < ONNX_RANK && (of_input || place_of(out, *at) < 0)) {
            out[used++] = *at;
        } else {
            return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "attribute equation: \"%.*s\" is not taken",
                                     (int)(to - from > 60 ? 60 : to - from), from);
        }
        out[used] = '\0';
    }
    if (used != rank)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "attribute equation: %u letters for %u dimensions", used,
                                 rank);
    return OPJIT_OK;
}

/* Without "->" the result has the letters that occur once, in their order. */
static void imply_result(equation *e)
{
    uint32_t used = 0;
    for (int letter = '1'; letter <= 'z'; letter++) {
        uint32_t times = 0;
        for (uint32_t i = 0; i < e->count; i++)
            for (const char *l = e->terms[i]; *l != '\0'; l++)
                times += *l == letter;
        if ((times == 1 || (times > 0 && letter <= '8')) && used < ONNX_RANK)
            e->result[used++] = (char)letter;
    }
}

static opjit_status read_equation(onnx_import *m, const onnx_call *c, equation *e)
{
    const onnx_attribute *const a = opjit_onnx_attribute(m, c, "equation");
    uint32_t dots = 0, letters = 0;
    *e = (equation){ 0 };
    if (a == NULL || a->s.size == 0)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "attribute equation is missing");
    const char *at = (const char *)a->s.data, *const end = at + a->s.size;
    const char *arrow = at;
    while (arrow + 1 < end && !(arrow[0] == '-' && arrow[1] == '>'))
        arrow++;
    e->has_result = arrow + 1 < end;
    const char *const terms = e->has_result ? arrow : end;
    while (e->count < c->input_count && e->count < 8 && at <= terms) {
        const char *to = memchr(at, ',', (size_t)(terms - at));
        to = to == NULL ? terms : to;
        TRY(read_term(m, c, at, to, c->inputs[e->count]->rank, true, e->terms[e->count]));
        for (const char *l = e->terms[e->count]; *l != '\0'; l++)
            dots = *l <= '8' && (uint32_t)('8' - *l) + 1 > dots ? (uint32_t)('8' - *l) + 1 : dots;
        e->count++;
        at = to + 1;
    }
    if (e->count != c->input_count || at <= terms)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT,
                                 "attribute equation: \"" ONNX_NAME "\" has not one term for each of %u inputs",
                                 ONNX_SHOW(a->s), c->input_count);
    if (!e->has_result) {
        imply_result(e);
        return OPJIT_OK;
    }
    for (const char *l = arrow + 2; l < end; l++)
        letters += is_letter(*l);
    const bool has_dots = memchr(arrow, '.', (size_t)(end - arrow)) != NULL;
    return read_term(m, c, arrow + 2, end, letters + (has_dots ? dots : 0), false, e->result);
}

/* Whether a letter is in the result or in an operand from `first` on. */
static bool is_needed(const equation *e, uint32_t first, char letter)
{
    if (place_of(e->result, letter) >= 0)
        return true;
    for (uint32_t i = first; i < e->count; i++)
        if (place_of(e->terms[i], letter) >= 0)
            return true;
    return false;
}

/* Makes the dimensions of one letter one, by their diagonal: each is n + 1 of the n^2 elements behind the last one. */
static opjit_status take_diagonals(onnx_import *m, const onnx_call *c, lettered *t)
{
    for (uint32_t d = 1; d < t->rank; d++) {
        const uint32_t e = (uint32_t)place_of(t->letters, t->letters[d]);
        uint32_t axes[ONNX_RANK], sizes[ONNX_RANK], begin[ONNX_RANK] = { 0 };
        int32_t steps[ONNX_RANK];
        lettered taken = { 0 };
        if (e >= d)
            continue;
        if (t->dims[d] != t->dims[e] || t->dims[d] >= INT32_MAX)
            return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT,
                                     "attribute equation: letter %c stands for sizes %llu and %llu, must be one",
                                     t->letters[d], (unsigned long long)t->dims[e], (unsigned long long)t->dims[d]);
        for (uint32_t k = 0; k < t->rank; k++) {
            if (k == d || k == e)
                continue;
            axes[taken.rank] = k;
            taken.dims[taken.rank] = t->dims[k];
            steps[taken.rank] = 1;
            sizes[taken.rank] = (uint32_t)t->dims[k];
            taken.letters[taken.rank++] = t->letters[k];
        }
        axes[taken.rank] = e;
        axes[taken.rank + 1] = d;
        taken.dims[taken.rank] = t->dims[d] * t->dims[d];
        taken.letters[taken.rank] = t->letters[d];
        steps[taken.rank] = (int32_t)t->dims[d] + 1;
        sizes[taken.rank++] = (uint32_t)t->dims[d];
        taken.tensor = opjit_onnx_reshape(m, opjit_graph_transpose(m->graph, t->tensor, axes), taken.rank, taken.dims);
        taken.tensor = opjit_graph_slice(m->graph, taken.tensor, begin, sizes, steps);
        taken.dims[taken.rank - 1] = t->dims[d];
        *t = taken;
        d = 0;
    }
    return OPJIT_OK;
}

/* Sums over the letters that nobody else has. */
static void sum_alone(onnx_import *m, lettered *t, const equation *e, uint32_t next, const char *other)
{
    lettered kept = { .tensor = t->tensor };
    uint32_t axes[ONNX_RANK], count = 0;
    for (uint32_t d = 0; d < t->rank; d++) {
        if (is_needed(e, next, t->letters[d]) || place_of(other, t->letters[d]) >= 0) {
            kept.dims[kept.rank] = t->dims[d];
            kept.letters[kept.rank++] = t->letters[d];
        } else {
            axes[count++] = d;
        }
    }
    if (count == 0)
        return;
    kept.tensor = opjit_onnx_reshape(m, opjit_graph_reduce(m->graph, t->tensor, DML_REDUCE_FUNCTION_SUM, count, axes),
                                     kept.rank, kept.dims);
    *t = kept;
}

/* t with the letters in this order, those that it lacks as sizes of 1, broadcast to dims. */
static opjit_tensor arranged(onnx_import *m, const lettered *t, const char *letters, const uint64_t *dims)
{
    uint32_t axes[ONNX_RANK], sizes[ONNX_RANK], found = 0;
    uint64_t wide[ONNX_RANK];
    const uint32_t rank = (uint32_t)strlen(letters);
    for (uint32_t d = 0; d < rank; d++) {
        const int32_t at = place_of(t->letters, letters[d]);
        if (at >= 0)
            axes[found++] = (uint32_t)at;
        wide[d] = at >= 0 ? t->dims[at] : 1;
        sizes[d] = (uint32_t)dims[d];
    }
    const opjit_tensor turned = found < 2 ? t->tensor : opjit_graph_transpose(m->graph, t->tensor, axes);
    return rank == 0 ? turned : opjit_graph_broadcast(m->graph, opjit_onnx_reshape(m, turned, rank, wide), rank, sizes);
}

/* Letters of the product of a and b: those of a batch, a's own, the contracted ones, b's own. */
typedef struct groups {
    char letters[4][ONNX_RANK + 1];
    uint64_t dims[4][ONNX_RANK], total[4];
    uint32_t count[4];
} groups;

static bool group(const lettered *a, const lettered *b, const equation *e, uint32_t next, groups *g)
{
    *g = (groups){ .total = { 1, 1, 1, 1 } };
    for (uint32_t side = 0; side < 2; side++) {
        const lettered *const t = side == 0 ? a : b, *const other = side == 0 ? b : a;
        for (uint32_t d = 0; d < t->rank; d++) {
            const int32_t at = place_of(other->letters, t->letters[d]);
            const uint32_t which = at < 0 ? (side == 0 ? 1 : 3) : is_needed(e, next, t->letters[d]) ? 0 : 2;
            const uint64_t size = at < 0 || t->dims[d] != 1 ? t->dims[d] : other->dims[at];
            if (at >= 0 && side == 1)
                continue;
            if (at >= 0 && t->dims[d] != other->dims[at] && t->dims[d] != 1 && other->dims[at] != 1)
                return false;
            g->letters[which][g->count[which]] = t->letters[d];
            g->dims[which][g->count[which]++] = size;
            g->total[which] *= size;
        }
    }
    return true;
}

/* Letters and sizes of some of the groups, one after the other. */
static uint32_t append(const groups *g, uint32_t which, char *letters, uint64_t *dims, uint32_t rank)
{
    for (uint32_t i = 0; i < g->count[which] && rank < ONNX_RANK; i++) {
        letters[rank] = g->letters[which][i];
        dims[rank++] = g->dims[which][i];
    }
    letters[rank] = '\0';
    return rank;
}

static opjit_status combine(onnx_import *m, const onnx_call *c, lettered *a, lettered *b, const equation *e,
                            uint32_t next)
{
    groups g;
    char letters[ONNX_RANK + 1];
    uint64_t dims[ONNX_RANK];
    lettered result = { 0 };
    sum_alone(m, a, e, next, b->letters);
    sum_alone(m, b, e, next, a->letters);
    if (!group(a, b, e, next, &g))
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT,
                                 "attribute equation: a letter stands for dimensions of different sizes");
    if (g.count[0] + g.count[1] + g.count[2] > ONNX_RANK || g.count[0] + g.count[2] + g.count[3] > ONNX_RANK ||
        g.count[0] + g.count[1] + g.count[3] > ONNX_RANK)
        return opjit_onnx_refuse(m, c, OPJIT_LIMIT, "more than %u dimensions", ONNX_RANK);
    uint32_t rank = append(&g, 0, letters, dims, 0);
    rank = append(&g, 1, letters, dims, rank);
    append(&g, 2, letters, dims, rank);
    const uint64_t left[3] = { g.total[0], g.total[1], g.total[2] }, right[3] = { g.total[0], g.total[2], g.total[3] };
    const opjit_tensor p = opjit_onnx_reshape(m, arranged(m, a, letters, dims), 3, left);
    rank = append(&g, 0, letters, dims, 0);
    rank = append(&g, 2, letters, dims, rank);
    append(&g, 3, letters, dims, rank);
    const opjit_tensor q = opjit_onnx_reshape(m, arranged(m, b, letters, dims), 3, right);
    for (uint32_t i = 0; i < 4; i++)
        if (i != 2)
            result.rank = append(&g, i, result.letters, result.dims, result.rank);
    result.tensor = opjit_onnx_reshape(m, opjit_graph_matrix_multiply(m->graph, p, q, 0, 0), result.rank, result.dims);
    *a = result;
    return m->error->status;
}

opjit_status opjit_onnx_einsum(onnx_import *m, onnx_call *c)
{
    equation e;
    uint64_t dims[ONNX_RANK];
    lettered left = { 0 };
    TRY(opjit_onnx_need(m, c, c->input_count == 0 ? 1 : c->input_count));
    TRY(read_equation(m, c, &e));
    const int32_t type = c->inputs[0]->type;
    if (c->input_count > 1 && !onnx_is_float(type))
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "products of %s are not taken",
                                 opjit_onnx_type_name(type).text);
    for (uint32_t i = 0; i < c->input_count; i++) {
        lettered t = { onnx_tensor_of(m, c, i), c->inputs[i]->rank, "", { 0 } };
        memcpy(t.letters, e.terms[i], sizeof t.letters);
        memcpy(t.dims, c->inputs[i]->dims, sizeof t.dims);
        TRY(take_diagonals(m, c, &t));
        if (i == 0)
            left = t;
        else
            TRY(combine(m, c, &left, &t, &e, i + 1));
    }
    sum_alone(m, &left, &e, e.count, "");
    const uint32_t rank = (uint32_t)strlen(e.result);
    for (uint32_t d = 0; d < rank; d++) {
        const int32_t at = place_of(left.letters, e.result[d]);
        if (at < 0)
            return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT,
                                     "attribute equation: a letter of the result is in "
                                     "no term");
        dims[d] = left.dims[at];
    }
    return opjit_onnx_give_as(m, c, 0, arranged(m, &left, e.result, dims), type, rank, dims);
}
