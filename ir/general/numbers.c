/* SPDX-License-Identifier: Apache-2.0 */
/* numbers.c - the numbers in which samples differ: how each follows from the dimensions, and as an expression. */
#include "ir/general/generalizer.h"

#include "ir/core/internal.h"
#include "ir/eval/numerics.h"

#include <string.h>

bool opjit_ir_series_differs(const generalizer *g, const int64_t *series)
{
    for (uint32_t i = 1; i < g->s->count; i++)
        if (series[i] != series[0])
            return true;
    return false;
}

static uint64_t hash_of(const generalizer *g, const int64_t *series)
{
    uint64_t hash = 0;
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
static uint32_t look_up(const generalizer *g, const int64_t *series, uint64_t *out_key)
{
    for (*out_key = hash_of(g, series);; ++*out_key) {
        const uint32_t at = opjit_ir_table_get(&g->known, *out_key);
        if (at == 0 || memcmp(g->numbers[at - 1].series, series, g->s->count * sizeof *series) == 0)
            return at;
    }
}

void opjit_ir_number_add(generalizer *g, const int64_t *series)
{
    uint64_t key;

    if (!opjit_ir_series_differs(g, series) || look_up(g, series, &key) != 0)
        return;
    if (g->count == g->capacity)
        g->numbers = grow(g->f, g->numbers, g->count, &g->capacity, sizeof *g->numbers);
    if (g->f->failed)
        return;
    number *n = &g->numbers[g->count++];
    memset(n, 0, sizeof *n);
    memcpy(n->series, series, g->s->count * sizeof *series);
    if (!opjit_ir_form_fit(g->s, series, &n->form))
        n->form.divisor = 0; /* not known yet */
    opjit_ir_table_set(g->f, &g->known, key, g->count);
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

/* series = a number of times base divided by k, rounded down (up = 0) or up. */
static bool fit_quotient(const generalizer *g, number *n, const number *base, int64_t k, int64_t up)
{
    int64_t times = 0;

    for (uint32_t i = 0; i < g->s->count; i++) {
        const int64_t q = floor_div(base->series[i] + (up != 0 ? k - 1 : 0), k), c = n->series[i];
        if (times == 0 && q > 0 && c % q == 0)
            times = c / q;
        if (times < 1 || c % times != 0 || c / times != q)
            return false;
    }
    n->form = base->form;
    n->form.constant += up != 0 ? k - 1 : 0;
    n->form.divisor = k;
    n->form.times = times;
    return true;
}

/* series = the remainder of base by k. */
static bool fit_rest(const generalizer *g, number *n, const number *base, int64_t k)
{
    for (uint32_t i = 0; i < g->s->count; i++)
        if (n->series[i] != base->series[i] - floor_div(base->series[i], k) * k)
            return false;
    n->form = base->form;
    n->modulo = k;
    return true;
}

static bool fit_divided(const generalizer *g, number *n, const number *base, int64_t k)
{
    return fit_quotient(g, n, base, k, 0) || fit_quotient(g, n, base, k, 1) || fit_rest(g, n, base, k);
}

static bool is_sum(const number *n)
{
    return n->form.divisor == 1 && n->modulo == 0;
}

void opjit_ir_numbers_fit(generalizer *g)
{
    const uint32_t count = g->count;

    for (int64_t k = 2; k <= IR_REDUCE_BLOCK; k *= 2) /* copies and lanes, which no statement has to say */
        opjit_ir_divisor_add(g, k);
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t b = 0; b < count && g->numbers[i].form.divisor == 0; b++)
            for (uint32_t k = 0; k < g->divisor_count && is_sum(&g->numbers[b]); k++)
                if (fit_divided(g, &g->numbers[i], &g->numbers[b], g->divisors[k]))
                    break;
}

/* The number, among those that were entered; NULL: it is the same in all samples. */
number *opjit_ir_number_find(generalizer *g, const int64_t *series)
{
    uint64_t key;
    const uint32_t at = opjit_ir_series_differs(g, series) ? look_up(g, series, &key) : 0;
    return at == 0 ? NULL : &g->numbers[at - 1];
}

opjit_status opjit_ir_refuse_number(const generalizer *g, const char *what, const int64_t *series)
{
    return opjit_rt_refuse(
        g->error, OPJIT_UNSUPPORTED,
        "{!kernel}{!dims}%s is {%lld} for one size and %lld for another one, and no dimension tells how", what,
        (long long)series[0], (long long)series[1]);
}

opjit_status opjit_ir_refuse_shape(const generalizer *g, const char *what)
{
    return opjit_rt_refuse(g->error, OPJIT_UNSUPPORTED,
                           "{!kernel}{!dims}other sizes have other %s, so one kernel can't serve them", what);
}

/* The form of the series: a constant, or a number that was entered.  UNSUPPORTED: a remainder, or not known. */
opjit_status opjit_ir_number_form(generalizer *g, const char *what, const int64_t *series, opjit_size_form *out)
{
    const number *n = opjit_ir_number_find(g, series);

    *out = (opjit_size_form){ .constant = series[0], .divisor = 1, .times = 1 };
    if (n == NULL)
        return OPJIT_OK;
    *out = n->form;
    return n->form.divisor == 0 || n->modulo != 0 ? opjit_ir_refuse_number(g, what, series) : OPJIT_OK;
}

/* Before any other node, so that all may read them. */
void opjit_ir_numbers_build(generalizer *g)
{
    for (uint32_t i = 0; i < g->count && !g->f->failed; i++) {
        number *n = &g->numbers[i];
        if (n->form.divisor == 0)
            continue;
        n->expr = opjit_ir_size(g->f, &n->form);
        if (n->modulo != 0)
            n->expr = ir_make2(g->f, IR_IMOD, IR_INDEX, n->expr, opjit_ir_index(g->f, n->modulo));
    }
}
