/* SPDX-License-Identifier: Apache-2.0 */
/* numbers.c - the numbers in which samples differ: how each follows from the dimensions, and as an expression. */
#include "ir/general/generalizer.h"

#include "ir/general/finder.h"

#include "ir/core/internal.h"
#include "ir/eval/numerics.h"

#include <string.h>

enum { ANY_WAY = 2 };

bool opjit_ir_series_differs(const generalizer *g, const int64_t *series)
{
    for (uint32_t i = 1; i < g->s->count; i++)
        if (series[i] != series[0])
            return true;
    return false;
}

void opjit_ir_number_at(generalizer *g, ir_ref node)
{
    const ir_func *f = g->base;

    g->node = node;
    if (node == 0 || g->stage == 0 || node < f->sections[g->stage - 1].first)
        g->stage = node == 0 || f->section_count == 0 || !g->s->has_lines ? 0 : 1;
    while (g->stage != 0 && g->stage < f->section_count && node >= f->sections[g->stage - 1].end)
        g->stage++;
}

static uint64_t hash_of(const generalizer *g, const int64_t *series, uint32_t stage)
{
    uint64_t hash = stage;
    for (uint32_t i = 0; i < g->s->count; i++)
        hash = opjit_ir_hash(hash, (uint64_t)series[i]);
    return hash;
}

/* Doubles the room of an array in the function's scratch memory. */
static void *grow(ir_func *f, void *array, uint32_t count, uint32_t *capacity, size_t size)
{
    const uint32_t more = *capacity == 0 ? 64 : 2 * *capacity;
    void *grown = opjit_rt_arena_allocate(&f->scratch, more, size);

    if (grown == NULL) {
        f->failed = true;
        return array;
    }
    if (count > 0)
        memcpy(grown, array, count * size);
    *capacity = more;
    return grown;
}

/* The number + 1, or 0 where it is not known, which *out_key then is free for. */
static uint32_t look_up(const generalizer *g, const int64_t *series, uint32_t stage, uint64_t *out_key)
{
    for (*out_key = hash_of(g, series, stage);; ++*out_key) {
        const uint32_t at = opjit_ir_table_get(&g->known, *out_key);
        const number *n = at == 0 ? NULL : &g->numbers[at - 1];
        if (n == NULL || (n->stage == stage && memcmp(n->series, series, g->s->count * sizeof *series) == 0))
            return at;
    }
}

/* The number, which may be new; NULL: no memory. */
static number *enter(generalizer *g, const int64_t *series, uint32_t uses, uint32_t stage, uint32_t whole)
{
    uint64_t key;
    const uint32_t at = look_up(g, series, stage, &key);

    if (at != 0) {
        g->numbers[at - 1].uses += uses;
        return &g->numbers[at - 1];
    }
    if (g->count == g->capacity)
        g->numbers = grow(g->f, g->numbers, g->count, &g->capacity, sizeof *g->numbers);
    if (g->f->failed)
        return NULL;
    number *n = &g->numbers[g->count++];
    *n = (number){ .stage = stage, .whole = whole, .uses = uses };
    memcpy(n->series, series, g->s->count * sizeof *series);
    opjit_ir_table_set(g->f, &g->known, key, g->count);
    if (stage != 0)
        n->by = g->numbers[whole].by;
    else if (!opjit_ir_form_fit(g->s, series, &n->by.form))
        n->by.form.divisor = 0; /* not known yet */
    return n;
}

void opjit_ir_number_add(generalizer *g, const int64_t *series, uint32_t uses)
{
    const number *n = opjit_ir_series_differs(g, series) ? enter(g, series, uses, 0, 0) : NULL;
    if (n != NULL && g->stage != 0)
        enter(g, series, uses, g->stage, (uint32_t)(n - g->numbers));
}

void opjit_ir_divisor_add(generalizer *g, int64_t value)
{
    if (value < 2 || opjit_ir_table_get(&g->seen_divisors, (uint64_t)value) != 0)
        return;
    if (g->divisor_count == g->divisor_capacity)
        g->divisors = grow(g->f, g->divisors, g->divisor_count, &g->divisor_capacity, sizeof *g->divisors);
    if (g->f->failed)
        return;
    g->divisors[g->divisor_count++] = value;
    opjit_ir_table_set(g->f, &g->seen_divisors, (uint64_t)value, 1);
}

static int64_t floor_div(int64_t a, int64_t k)
{
    return a / k - (a % k < 0);
}

/* What is added to a base before it is divided by k, rounded down (up = 0) or up. */
static int64_t before(const generalizer *g, int64_t k, int64_t up)
{
    return up != 0 ? k - 1 : g->guess == IR_GUESS_TAILS ? -1 : 0;
}

static int64_t quotient(const generalizer *g, const number *base, uint32_t sample, int64_t k, int64_t up)
{
    return floor_div(base->series[sample] + before(g, k, up), k);
}

/* series = plus + times * quotient; a plus only where it is asked for. */
static bool fit_quotient(const generalizer *g, number *n, const number *base, int64_t k, int64_t up, bool with_plus)
{
    const int64_t first = quotient(g, base, 0, k, up);
    int64_t times = 0, plus = 0;

    for (uint32_t i = 0; i < g->s->count && times == 0; i++) {
        const int64_t q = quotient(g, base, i, k, up), by = with_plus ? q - first : q,
                      c = with_plus ? n->series[i] - n->series[0] : n->series[i];
        if (by != 0 && c % by == 0)
            times = c / by;
        else if (by != 0 || c != 0)
            return false;
    }
    if (times < 1)
        return false;
    plus = with_plus ? n->series[0] - times * first : 0;
    for (uint32_t i = 0; i < g->s->count; i++)
        if (n->series[i] != plus + times * quotient(g, base, i, k, up))
            return false;
    n->by = (ir_size_form){ .form = base->by.form, .plus = plus };
    n->by.form.constant += before(g, k, up);
    n->by.form.divisor = k;
    n->by.form.times = times;
    return true;
}

/* series = what quotients of base by k leave of it. */
static bool fit_rest(const generalizer *g, number *n, const number *base, int64_t k)
{
    for (uint32_t i = 0; i < g->s->count; i++)
        if (n->series[i] != base->series[i] - quotient(g, base, i, k, 0) * k)
            return false;
    n->by = (ir_size_form){ .form = base->by.form, .rest = k, .plus = g->guess == IR_GUESS_TAILS ? 1 : 0 };
    n->by.form.constant += before(g, k, 0);
    return true;
}

/* up: 0 or 1: rounded so; ANY_WAY: down if that fits, else up. */
static bool fit_divided(const generalizer *g, number *n, const number *base, int64_t k, uint32_t up, bool with_plus)
{
    return (up != 1 && fit_quotient(g, n, base, k, 0, with_plus)) ||
           (up != 0 && fit_quotient(g, n, base, k, 1, with_plus)) ||
           (up != 1 && !with_plus && fit_rest(g, n, base, k));
}

static bool is_sum(const number *n)
{
    return n->by.form.divisor == 1 && n->by.rest == 0;
}

/* series = a product of dimensions, times a quotient of a base of one term. */
static bool fit_scaled(const generalizer *g, number *n)
{
    uint8_t powers[OPJIT_MAX_POWERS];
    int64_t scale[IR_SAMPLES];

    for (uint32_t which = 0; opjit_ir_form_scale(g->s, which, powers, scale); which++) {
        number part = { .by.form.divisor = 0 };
        bool whole = true;
        for (uint32_t i = 0; i < g->s->count && whole; i++) {
            whole = scale[i] != 0 && n->series[i] % scale[i] == 0;
            part.series[i] = whole ? n->series[i] / scale[i] : 0;
        }
        for (uint32_t b = 0; b < g->count && whole; b++) {
            const number *base = &g->numbers[b];
            const opjit_size_form *form = &base->by.form;
            const bool fits = base->stage == 0 && is_sum(base) && form->factors[1] == 0;
            for (uint32_t k = 0; k < g->divisor_count && fits; k++)
                if (fit_quotient(g, &part, base, g->divisors[k], 0, false) ||
                    fit_quotient(g, &part, base, g->divisors[k], 1, false)) {
                    n->by = part.by;
                    memcpy(n->by.form.powers[1], powers, sizeof powers);
                    return true;
                }
        }
    }
    return false;
}

/* --- quotients ---------------------------------------------------------------------------------------------------- */

/* Of the numbers from `from` up to `to` those of the stage (0: of none) that others may be quotients of, those with
 * most uses first. */
static uint32_t list_bases(const generalizer *g, uint32_t stage, uint32_t from, uint32_t to, uint32_t *out)
{
    uint32_t count = 0;

    for (uint32_t i = from; i < to; i++) {
        uint32_t at = count;
        if (g->numbers[i].stage != stage || !is_sum(&g->numbers[i]))
            continue;
        for (; at > 0 && g->s->has_lines && g->numbers[out[at - 1]].uses < g->numbers[i].uses; at--)
            out[at] = out[at - 1];
        out[at] = i;
        count++;
    }
    return count;
}

static bool fit_rounded(const generalizer *g, number *n, const uint32_t *bases, uint32_t count, uint32_t up,
                        bool with_plus)
{
    for (uint32_t b = 0; b < count; b++)
        for (uint32_t k = 0; k < g->divisor_count; k++)
            if (fit_divided(g, n, &g->numbers[bases[b]], g->divisors[k], up, with_plus))
                return true;
    return false;
}

static bool fit_by(const generalizer *g, number *n, const uint32_t *bases, uint32_t count, bool with_plus)
{
    number floor = *n;
    if (g->guess == IR_GUESS_FLOORS)
        return fit_rounded(g, n, bases, count, 0, with_plus) || fit_rounded(g, n, bases, count, 1, with_plus);
    const bool fits = fit_rounded(g, n, bases, count, ANY_WAY, with_plus);
    if (fits && g->guess == IR_GUESS_WHOLE && !g->out->floors)
        g->out->floors = fit_rounded(g, &floor, bases, count, 0, with_plus) &&
                         memcmp(&floor.by, &n->by, sizeof n->by) != 0;
    return fits;
}

/* Remainders say more of what is divided than quotients do, of which more than one fits: so they are the first. */
static void fit_rests(generalizer *g, const uint32_t *bases, uint32_t count)
{
    for (uint32_t i = 0; i < g->count; i++) {
        number *n = &g->numbers[i];
        for (uint32_t b = 0; b < count && n->stage == 0 && n->by.form.divisor == 0; b++)
            for (uint32_t k = 0; k < g->divisor_count && n->by.form.divisor == 0; k++)
                if (fit_rest(g, n, &g->numbers[bases[b]], g->divisors[k]))
                    g->rests[g->rest_count++] = (divided){ bases[b], g->divisors[k] };
    }
}

/* A quotient of what something is left of. */
static bool fit_beside_rest(const generalizer *g, number *n, bool with_plus)
{
    for (uint32_t i = 0; i < g->rest_count; i++)
        for (int64_t up = 0; up < 2; up++)
            if (fit_quotient(g, n, &g->numbers[g->rests[i].base], g->rests[i].by, up, with_plus))
                return true;
    return false;
}

/* Those of no stage; a divisor is 0 where none is known. */
static void fit_wholes(generalizer *g, uint32_t *bases)
{
    const uint32_t count = list_bases(g, 0, 0, g->count, bases);

    fit_rests(g, bases, count);
    for (uint32_t plus = 0; plus < 2; plus++)
        for (uint32_t i = 0; i < g->count && g->guess != IR_GUESS_FLOORS; i++)
            if (g->numbers[i].stage == 0 && g->numbers[i].by.form.divisor == 0)
                fit_beside_rest(g, &g->numbers[i], plus != 0);
    for (uint32_t plus = 0; plus < 2; plus++)
        for (uint32_t i = 0; i < g->count; i++)
            if (g->numbers[i].stage == 0 && g->numbers[i].by.form.divisor == 0)
                fit_by(g, &g->numbers[i], bases, count, plus != 0);
    for (uint32_t i = 0; i < g->count; i++)
        if (g->numbers[i].stage == 0 && g->numbers[i].by.form.divisor == 0)
            fit_scaled(g, &g->numbers[i]);
}

/* Of past + 1, which is a prime in all samples, past and past + 1 have the same quotients by 64; of 64 they have not.
 * What a stage divides is a number of its own, where it has one that fits. */
static void fit_stages(generalizer *g, uint32_t *bases)
{
    for (uint32_t i = 0, end; i < g->count; i = end) {
        const uint32_t stage = g->numbers[i].stage;
        for (end = i + 1; end < g->count && stage != 0 && g->numbers[end].stage <= stage; end++)
            continue;
        const uint32_t count = stage == 0 ? 0 : list_bases(g, stage, i, end, bases);
        for (uint32_t k = i; k < end && stage != 0; k++) {
            number *n = &g->numbers[k];
            if (n->stage != stage || is_sum(n))
                continue;
            n->by = g->numbers[n->whole].by;
            if (!fit_by(g, n, bases, count, false) && n->by.form.divisor == 0)
                fit_by(g, n, bases, count, true);
        }
    }
}

/* Copies and lanes, which no statement has to say.  Powers of two become the first ones: most blocks have so many. */
static void order_divisors(generalizer *g)
{
    uint32_t powers = 0;

    for (int64_t k = 2; k <= IR_REDUCE_BLOCK; k *= 2)
        opjit_ir_divisor_add(g, k);
    for (uint32_t i = 0; i < g->divisor_count; i++) {
        const int64_t k = g->divisors[i];
        if ((k & (k - 1)) != 0)
            continue;
        memmove(&g->divisors[powers + 1], &g->divisors[powers], (i - powers) * sizeof k);
        g->divisors[powers++] = k;
    }
}

void opjit_ir_numbers_fit(generalizer *g)
{
    uint32_t *const bases = ARENA_ARRAY(&g->f->scratch, uint32_t, g->count + 1u);

    g->rests = ARENA_ARRAY(&g->f->scratch, divided, g->count + 1u);
    g->f->failed = g->f->failed || bases == NULL || g->rests == NULL;
    if (bases == NULL || g->rests == NULL)
        return;
    order_divisors(g);
    fit_wholes(g, bases);
    fit_stages(g, bases);
}

/* The number, among those that were entered, the stage's if it has one; NULL: it is the same in all samples. */
number *opjit_ir_number_find(generalizer *g, const int64_t *series)
{
    uint64_t key;

    if (!opjit_ir_series_differs(g, series))
        return NULL;
    uint32_t at = look_up(g, series, g->stage, &key);
    if (at == 0)
        at = look_up(g, series, 0, &key);
    return at == 0 ? NULL : &g->numbers[at - 1];
}

/* Remembers which of the graph's nodes it is about. */
static void blame(const generalizer *g)
{
    g->out->origin = g->node != 0     ? opjit_ir_blame_node(g->base, g->node)
                     : g->tensor != 0 ? opjit_ir_blame_tensor(g->base, g->tensor)
                                      : 0;
}

opjit_status opjit_ir_refuse_number(const generalizer *g, const char *what, const int64_t *series)
{
    const ir_samples *s = g->s;

    blame(g);
    return opjit_rt_refuse(
        g->error, OPJIT_UNSUPPORTED,
        "{!kernel}{!dims}%s is {%lld} for %s and %lld for %s, in no known way; give one of the sizes", what,
        (long long)series[0], opjit_ir_size_text(s->dims, s->values[0], s->space.dims).text, (long long)series[1],
        opjit_ir_size_text(s->dims, s->values[1], s->space.dims).text);
}

opjit_status opjit_ir_refuse_shape(const generalizer *g, const char *what)
{
    blame(g);
    return opjit_rt_refuse(g->error, OPJIT_UNSUPPORTED,
                           "{!kernel}{!dims}other sizes have other %s, so one kernel can't serve them", what);
}

opjit_status opjit_ir_number_form(generalizer *g, const char *what, const int64_t *series, ir_size_form *out)
{
    const number *n = opjit_ir_number_find(g, series);

    *out = (ir_size_form){ .form = { .constant = series[0], .divisor = 1, .times = 1 } };
    if (n != NULL)
        *out = n->by;
    return out->form.divisor == 0 ? opjit_ir_refuse_number(g, what, series) : OPJIT_OK;
}

opjit_status opjit_ir_numbers_list(generalizer *g)
{
    ir_general *out = g->out;

    out->divided = ARENA_ARRAY(&out->arena, ir_size_form, g->count + 1u);
    out->numbers = ARENA_ARRAY(&out->arena, ir_size_form, g->count + 1u);
    if (out->divided == NULL || out->numbers == NULL)
        return opjit_rt_no_memory(g->error);
    for (uint32_t i = 0; i < g->count; i++) {
        ir_size_form by = out->numbers[i] = g->numbers[i].by;
        by.rest = by.rest > 1 ? by.rest : by.form.divisor;
        by.form.divisor = by.form.times = 1;
        if (by.form.factors[1] == 0) /* a factor of the quotient */
            memset(by.form.powers[1], 0, sizeof by.form.powers[1]);
        if (by.rest > 1)
            out->divided[out->divided_count++] = by;
    }
    return OPJIT_OK;
}

/* Before any other node, so that all may read them. */
void opjit_ir_numbers_build(generalizer *g)
{
    for (uint32_t i = 0; i < g->count && !g->f->failed; i++) {
        number *n = &g->numbers[i];
        if (n->stage != 0 && memcmp(&n->by, &g->numbers[n->whole].by, sizeof n->by) == 0)
            n->expr = g->numbers[n->whole].expr;
        else if (n->by.form.divisor != 0)
            n->expr = opjit_ir_size(g->f, &n->by);
    }
}
