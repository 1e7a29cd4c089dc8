/* SPDX-License-Identifier: Apache-2.0 */
/* candidates.c - the sizes for which a graph is lowered and brought to loops, and groups of those whose loops are the
 * same but for numbers. */
#include "ir/general/finder.h"

#include <string.h>

enum { LEAST_WIDTH = 8 }; /* sizes for each candidate, of a range that has enough of its own */

/* The size that candidate `index` has for a dimension: a prime near a multiple of the typical size, if possible within
 * the bounds.  Dimensions of one kernel grow by different factors, so that their products are told apart. */
static int64_t size_of(const ir_dim *dim, int64_t typical, uint32_t index, uint32_t which)
{
    static const uint16_t percent[CANDIDATES] = { 100, 147, 193, 263, 71, 337, 121, 431, 229, 53, 167, 557, 83, 305 };
    static const uint8_t step[] = { 1, 3, 5, 9, 11, 13 }; /* each meets all candidates */
    const uint32_t own = (index * step[which % sizeof step] + which) % CANDIDATES;
    int64_t size = typical / 100 * percent[own] + typical % 100 * percent[own] / 100;

    const int64_t least = 7 + 2 * (int64_t)own;
    const bool outside = size > dim->hi || size < dim->lo;
    static const uint8_t small[] = { 7, 11, 13, 5, 3 };
    bool inside = dim->from == IR_SAMPLES_INSIDE;

    if (dim->lo == dim->hi)
        return dim->lo;
    if (dim->from == IR_SAMPLES_SMALL)
        return small[index % (sizeof small / sizeof *small)];
    if (dim->from == IR_SAMPLES_AROUND && index == CANDIDATES - 1 && dim->hi > least) {
        size = dim->hi; /* of sizes above all samples less is known */
        inside = true;
    }
    if (inside && (outside || size < least) && dim->hi - dim->lo >= LEAST_WIDTH)
        size = dim->hi - (dim->hi - dim->lo) * (int64_t)own / CANDIDATES;
    else if (dim->from == IR_SAMPLES_BELOW && size > dim->hi && dim->hi - dim->lo >= LEAST_WIDTH * CANDIDATES)
        size = dim->hi - (dim->hi - dim->lo) / 3 * (int64_t)own / CANDIDATES;
    size = size < least && !inside ? least : size;
    while (!opjit_ir_is_prime(size) && size < INT32_MAX)
        size++;
    while (inside && size > dim->hi && size > 2)
        for (size--; !opjit_ir_is_prime(size) && size > 2;)
            size--;
    return size;
}

opjit_status opjit_ir_candidate_make(const finder *x, candidate *c, opjit_error *error)
{
    ir_func value;

    TRY(x->make(x->user, x->dims, c->values, &value, &c->f, error));
    c->made = true;
    const opjit_status status = opjit_ir_define(&value, &c->definition, error);
    opjit_ir_free(&value);
    c->shape = opjit_ir_hash(opjit_ir_shape(&c->f), c->definition.shape);
    for (size_t i = 0; i < c->definition.orders.size; i++)
        c->shape = opjit_ir_hash(c->shape, c->definition.orders.data[i]);
    return status;
}

void opjit_ir_candidate_free(candidate *c)
{
    if (!c->made)
        return;
    opjit_ir_free(&c->f);
    opjit_ir_definition_free(&c->definition);
    c->made = false;
}

/* Of images that are halved, odd ones alone don't tell n / 2 + 1 from (n + 1) / 2: so every other candidate has an
 * even size, or an even quotient. */
static uint32_t even_lines(const finder *x, uint32_t index)
{
    const bool has = x->space.count != 0 && index % 2 != 0;
    return has ? UINT32_C(1) << (index / 2 % x->lines->count) : 0;
}

/* Where sizes follow from others by sums, makes the values such as samples have. */
static void choose_by_lines(const finder *x, uint32_t index, int64_t *values)
{
    for (uint32_t d = 0; d < x->dim_count && x->lines->count != 0; d++)
        if (x->dims[d].lo < x->dims[d].hi)
            opjit_ir_lines_choose(x, d, IR_ANY_PARITY, even_lines(x, index), values);
}

/* In a narrow range some would be the same. */
static bool is_new(const finder *x, uint32_t index)
{
    for (uint32_t i = 0; i < index; i++)
        if (memcmp(x->candidates[i].values, x->candidates[index].values, sizeof x->candidates[i].values) == 0)
            return false;
    return true;
}

/* In place of values that a candidate before has: a smaller prime of a dimension, which a narrow range has few of. */
static bool make_new(finder *x, uint32_t index)
{
    int64_t *const values = x->candidates[index].values;

    for (uint32_t d = 0; d < x->dim_count && x->lines->count == 0; d++) {
        const int64_t size = values[d];
        for (int64_t n = size - 1; n > 1 && x->dims[d].lo < x->dims[d].hi; n--) {
            values[d] = n;
            if (opjit_ir_is_prime(n) && is_new(x, index))
                return true;
        }
        values[d] = size;
    }
    return false;
}

opjit_status opjit_ir_candidates_make(finder *x, opjit_error *error)
{
    opjit_status status = OPJIT_OK;
    bool made = false;

    x->candidate_count = CANDIDATES;
    for (uint32_t i = 0; i < CANDIDATES; i++) {
        candidate *c = &x->candidates[i];
        for (uint32_t d = 0; d < x->dim_count; d++)
            c->values[d] = size_of(&x->dims[d], x->typical[d], i, d);
        choose_by_lines(x, i, c->values);
        const uint64_t score = opjit_ir_lines_score(x->lines, x->dim_count, c->values);
        x->most_score = score > x->most_score ? score : x->most_score;
        if (!is_new(x, i) && !make_new(x, i))
            continue;
        status = opjit_ir_candidate_make(x, c, error);
        if (is_over(status))
            return status;
        made = made || c->made;
    }
    if (!made)
        return status;
    opjit_rt_error_clear(error);
    return OPJIT_OK;
}

static void put_in_group(finder *x, const candidate *c)
{
    uint32_t g = 0;

    if (!c->made)
        return;
    while (g < x->group_count && x->groups[g] != c->shape)
        g++;
    x->groups[g] = c->shape;
    x->sizes[g]++;
    x->group_count += g == x->group_count;
}

uint32_t opjit_ir_largest_group(const finder *x)
{
    uint32_t best = UINT32_MAX;
    for (uint32_t g = 0; g < x->group_count; g++)
        if (best == UINT32_MAX || x->sizes[g] > x->sizes[best])
            best = g;
    return best;
}

/* Sizes between the least and the largest ones of the group, in an order of their own for each dimension. */
static void values_between(const finder *x, uint32_t group, uint32_t index, int64_t *values)
{
    for (uint32_t d = 0; d < x->dim_count; d++) {
        int64_t lo = INT64_MAX, hi = 0;
        for (uint32_t i = 0; i < x->candidate_count; i++) {
            const candidate *c = &x->candidates[i];
            if (c->made && c->shape == x->groups[group]) {
                lo = c->values[d] < lo ? c->values[d] : lo;
                hi = c->values[d] > hi ? c->values[d] : hi;
            }
        }
        values[d] = lo + (hi - lo) * ((index + 1) * (3 + d) % (MORE + 1)) / (MORE + 1);
        while (x->lines->count == 0 && values[d] < hi && !opjit_ir_is_prime(values[d]))
            values[d]++;
    }
    choose_by_lines(x, index, values);
}

/* Where no kind of loops has enough samples, as kinds change with sizes, more candidates of the one that has most:
 * sizes between its own. */
static opjit_status fill_group(finder *x)
{
    const uint32_t group = opjit_ir_largest_group(x);

    for (uint32_t i = 0; i < MORE && group != UINT32_MAX && x->sizes[group] > 1 && x->sizes[group] < LEAST_SAMPLES;
         i++) {
        candidate *c = &x->candidates[x->candidate_count];
        values_between(x, group, i, c->values);
        if (!is_new(x, x->candidate_count))
            continue;
        const opjit_status status = opjit_ir_candidate_make(x, c, NULL);
        if (is_over(status))
            return status;
        put_in_group(x, c);
        x->candidate_count++;
    }
    return OPJIT_OK;
}

opjit_status opjit_ir_candidates_group(finder *x)
{
    for (uint32_t i = 0; i < x->candidate_count; i++)
        put_in_group(x, &x->candidates[i]);
    return fill_group(x);
}
