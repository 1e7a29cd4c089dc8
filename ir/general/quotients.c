/* SPDX-License-Identifier: Apache-2.0 */
/* quotients.c - sizes of tensors that are a quotient of one dimension, floor((n + plus) / by): an image that is halved,
 * the frames of a signal.  Forms have powers of these as of dimensions, so what follows from them is linear again.
 *
 * By the sizes for a few values: each says between which ends `plus` is, for every `by`.  The next value is one that
 * tells most of the first size that several quotients still have. */
#include "ir/general/finder.h"

#include <string.h>

enum {
    READINGS = 28,   /* of a dimension, */
    FIRST = 3,       /* which begin with its least, its typical and its largest size */
    MOST_BY = 4096,
    LEAST_RISES = 2 /* so many sizes at least that a size has, or it may be anything */
};

typedef struct reading {
    int64_t value;
    rt_bytes sizes;
} reading;

typedef struct search {
    const finder *x;
    uint32_t dim, count;
    reading list[READINGS];
} search;

static int64_t size_in(const search *s, uint32_t i, size_t k)
{
    return opjit_ir_size_at(&s->list[i].sizes, k);
}

/* false: the graph can't have this size, or has other tensors. */
static opjit_status read(search *s, int64_t value, bool *out, opjit_error *error)
{
    reading *const own = &s->list[s->count];
    int64_t values[OPJIT_MAX_DIMS] = { 0 };

    memcpy(values, s->x->typical, s->x->dim_count * sizeof *values);
    values[s->dim] = own->value = value;
    own->sizes = (rt_bytes){ .allocator = NULL };
    opjit_status status = opjit_ir_sizes_read(s->x, values, &own->sizes, error);
    *out = status == OPJIT_OK && (s->count == 0 || own->sizes.size == s->list[0].sizes.size);
    if (*out)
        s->count++;
    else if (own->sizes.allocator != NULL)
        opjit_rt_bytes_free(&own->sizes);
    return is_over(status) ? status : OPJIT_OK;
}

/* Whether all readings say the same for both sizes. */
static bool same_series(const search *s, size_t a, size_t b)
{
    uint32_t i = 0;
    while (i < s->count && size_in(s, i, a) == size_in(s, i, b))
        i++;
    return i == s->count;
}

/* Whether it changes, and with no whole number for each step of the dimension. */
static bool is_bent(const search *s, size_t k)
{
    const int64_t rise = size_in(s, 2, k) - size_in(s, 0, k), run = s->list[2].value - s->list[0].value;
    bool bent = run == 0 || rise % run != 0;

    for (uint32_t i = 1; i < s->count && !bent; i++)
        bent = size_in(s, i, k) - size_in(s, 0, k) != rise / run * (s->list[i].value - s->list[0].value);
    return bent && rise >= LEAST_RISES && rise < run;
}

/* Between which ends `plus` is, if the size is a quotient by `by`.  false: it is none. */
static bool ends(const search *s, size_t k, int64_t by, int64_t *out_least, int64_t *out_most)
{
    *out_least = INT64_MIN;
    *out_most = INT64_MAX;
    for (uint32_t i = 0; i < s->count; i++) {
        const int64_t least = size_in(s, i, k) * by - s->list[i].value;
        *out_least = least > *out_least ? least : *out_least;
        *out_most = least + by - 1 < *out_most ? least + by - 1 : *out_most;
    }
    return *out_least <= *out_most;
}

/* The value nearest to the largest size for which `plus` and less make other quotients; 0: there is none in range. */
static int64_t telling(const search *s, int64_t by, int64_t plus)
{
    const ir_dim *const dim = &s->x->dims[s->dim];
    const int64_t rest = ((dim->hi + plus) % by + by) % by, value = dim->hi - rest;
    return value >= dim->lo && value > 0 ? value : 0;
}

static int64_t quotient_at(const opjit_quotient *q, int64_t n)
{
    return (n + q->plus) / q->by - ((n + q->plus) % q->by < 0);
}

/* The largest value up to twice the dimension's for which both are different: no reading has it, as both are what these
 * say.  0: there is none. */
static int64_t differing(const search *s, const opjit_quotient *a, const opjit_quotient *b)
{
    const ir_dim *const dim = &s->x->dims[s->dim];
    const int64_t least = dim->lo == 0 ? 1 : dim->lo, most = dim->hi < INT32_MAX / 2 ? 2 * dim->hi : dim->hi;

    for (int64_t inside = 1; inside >= 0; inside--) /* the graph may have no sizes beyond */
        for (int64_t n = inside != 0 ? dim->hi : most, k = 0; n >= least && k < 2 * MOST_BY; n--, k++)
            if (quotient_at(a, n) != quotient_at(b, n))
                return n;
    return 0;
}

typedef enum answer { ANSWER_NONE, ANSWER_ONE, ANSWER_MANY } answer;

/* The quotient that the size is; MANY: *out_value is a value that will tell. */
static answer quotient_of(const search *s, size_t k, opjit_quotient *out, int64_t *out_value)
{
    uint32_t found = 0;

    *out_value = 0;
    for (int64_t by = 2; by <= MOST_BY && *out_value == 0; by++) {
        int64_t least, most;
        if (!ends(s, k, by, &least, &most))
            continue;
        if (found++ == 0)
            *out = (opjit_quotient){ .dim = s->dim, .plus = least, .by = by };
        if (least < most)
            *out_value = telling(s, by, least + (most - least + 1) / 2);
        else if (out->by != by)
            *out_value = differing(s, out, &(opjit_quotient){ .dim = s->dim, .plus = least, .by = by });
        for (uint32_t i = 0; i < s->count; i++)
            *out_value = s->list[i].value == *out_value ? 0 : *out_value;
    }
    return found == 0 ? ANSWER_NONE : *out_value == 0 ? ANSWER_ONE : ANSWER_MANY;
}

/* Unless it is known. */
static void add(ir_space *space, const opjit_quotient *own)
{
    bool known = space->dims + space->count == OPJIT_MAX_POWERS;

    for (uint32_t i = 0; i < space->count && !known; i++)
        known = memcmp(&space->quotients[i], own, sizeof *own) == 0;
    if (!known)
        space->quotients[space->count++] = *own;
}

/* To what is known, or, where it is something known plus a constant, to the shifted ones. */
static void sort_in(const search *s, const opjit_quotient *own, ir_space *space, ir_space *shifted)
{
    bool known = own->by == 1;

    if (s->x->dims[s->dim].lo + own->plus < 0)
        return;
    for (uint32_t i = 0; i < space->count && !known; i++)
        known = space->quotients[i].dim == own->dim && space->quotients[i].by == own->by &&
                (space->quotients[i].plus - own->plus) % own->by == 0;
    add(known ? shifted : space, own);
}

/* Whether it is the dimension plus a constant. */
static bool is_sum(const search *s, size_t k, opjit_quotient *out)
{
    const int64_t plus = size_in(s, 0, k) - s->list[0].value;
    uint32_t i = 0;

    while (i < s->count && size_in(s, i, k) - s->list[i].value == plus)
        i++;
    *out = (opjit_quotient){ .dim = s->dim, .plus = plus, .by = 1 };
    return i == s->count && plus != 0;
}

/* A product of two sums has more terms than forms have: where sizes of two dimensions are sums, as lines and columns of
 * images without their margins, each of these is a size of its own. */
static void add_shifted(const ir_space *shifted, ir_space *space)
{
    bool several = false;

    for (uint32_t i = 1; i < shifted->count; i++)
        several = several || shifted->quotients[i].dim != shifted->quotients[0].dim;
    for (uint32_t i = 0; i < shifted->count && several; i++)
        add(space, &shifted->quotients[i]);
}

/* One size after the other; more readings tell more of those before, too, so these are asked again. */
static opjit_status search_all(search *s, ir_space *space, ir_space *shifted, opjit_error *error)
{
    const size_t count = s->list[0].sizes.size / sizeof(uint64_t);

    for (size_t k = 0; k < count; k++) {
        opjit_quotient own;
        int64_t value = 0;
        answer found = ANSWER_NONE;
        bool made = is_bent(s, k), is_new = true;
        for (size_t i = 0; i < k && is_new; i++)
            is_new = !same_series(s, i, k);
        made = made && is_new;
        while (made && (found = quotient_of(s, k, &own, &value)) == ANSWER_MANY && s->count < READINGS)
            TRY(read(s, value, &made, error));
        if (found == ANSWER_MANY && !made && value > s->x->dims[s->dim].hi) /* they are the same for all sizes */
            found = ANSWER_ONE;
        if (found == ANSWER_ONE || (is_new && is_sum(s, k, &own)))
            sort_in(s, &own, space, shifted);
    }
    return OPJIT_OK;
}

opjit_status opjit_ir_quotients_find(const finder *x, ir_space *space, opjit_error *error)
{
    ir_space shifted = { .dims = x->dim_count };
    opjit_status status = OPJIT_OK;

    *space = (ir_space){ .dims = x->dim_count };
    for (uint32_t d = 0; d < x->dim_count && status == OPJIT_OK; d++) {
        const int64_t first[FIRST] = { x->dims[d].lo == 0 ? 1 : x->dims[d].lo, x->typical[d], x->dims[d].hi };
        search s = { .x = x, .dim = d };
        bool made = x->dims[d].lo < x->dims[d].hi;
        for (uint32_t i = 0; i < FIRST && made && status == OPJIT_OK; i++)
            status = read(&s, first[i], &made, error);
        if (status == OPJIT_OK && made)
            status = search_all(&s, space, &shifted, error);
        while (s.count > 0)
            opjit_rt_bytes_free(&s.list[--s.count].sizes);
    }
    add_shifted(&shifted, space);
    return status;
}
