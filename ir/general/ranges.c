/* SPDX-License-Identifier: Apache-2.0 */
/* ranges.c - functions for all sizes of the dimensions, where one can't serve them all: the range is cut where its
 * function ceases to be right, and each part is tried again.  So a sum has one function up to the length of a block of
 * its order, and another one beyond. */
#include "ir/general/finder.h"

#include <string.h>

enum {
    TRIES = 8,   /* of ranges of more than one size, and half as many as there may be ranges: refusals are made soon */
    GUESSES = 8, /* cuts in the middle, where nothing says where */
    SINGLES = 8, /* sizes of a range each of which may get a function */
    KINDS = 4,   /* of samples */
    NARROW = 64, /* sizes of a dimension that has too few primes for samples */
    SMALL = 16   /* and of one of which a few small ones are tried at last */
};

typedef struct searcher {
    const ir_dim *dims;
    const int64_t *typical;
    uint32_t dim_count;
    ir_sample_fn make;
    void *user;
    const ir_lines *lines;
    ir_range *done;
    ir_range open[IR_RANGES]; /* without functions, as a stack */
    uint32_t most, done_count, open_count, guesses, origin; /* most: ranges */
} searcher;

static bool has(const searcher *s, const ir_range *range, const int64_t *values)
{
    bool inside = true;
    for (uint32_t d = 0; d < s->dim_count; d++)
        inside = inside && range->lo[d] <= values[d] && values[d] <= range->hi[d];
    return inside;
}

/* The size between both whose quotients by them are about the same. */
static int64_t mean(int64_t lo, int64_t hi)
{
    int64_t size = lo;
    while (size < hi && size * size < lo * hi) /* both are below 2^31 */
        size = size * 2 < hi ? size * 2 : hi;
    while (size > lo && size * size > lo * hi)
        size -= size / 16 + 1;
    return size < lo ? lo : size;
}

/* In the middle of the dimension whose ends are farthest from each other. */
static bool guess(searcher *s, const ir_range *range, ir_cut *out)
{
    *out = (ir_cut){ .dim = IR_CUT_NONE };
    for (uint32_t d = 0; d < s->dim_count; d++)
        if (range->lo[d] < range->hi[d] &&
            (out->dim == IR_CUT_NONE || range->hi[d] / range->lo[d] > range->hi[out->dim] / range->lo[out->dim]))
            out->dim = d;
    if (out->dim == IR_CUT_NONE || s->guesses++ == GUESSES)
        return false;
    out->last = mean(range->lo[out->dim], range->hi[out->dim] - 1);
    return true;
}

/* How many sizes are in it, at most SINGLES + 1. */
static uint32_t sizes_in(const searcher *s, const ir_range *range)
{
    int64_t count = 1;
    for (uint32_t d = 0; d < s->dim_count && count <= SINGLES; d++) {
        const int64_t own = range->hi[d] - range->lo[d] + 1;
        count *= own < SINGLES + 1 ? own : SINGLES + 1;
    }
    return (uint32_t)(count < SINGLES + 1 ? count : SINGLES + 1);
}

/* Each size by itself, if there is room for so many. */
static bool split(searcher *s, const ir_range *range)
{
    const uint32_t count = sizes_in(s, range);

    if (count < 2 || count > SINGLES || s->done_count + s->open_count + count > s->most)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        ir_range *own = &s->open[s->open_count++];
        int64_t rest = i;
        *own = *range;
        for (uint32_t d = 0; d < s->dim_count; d++) {
            const int64_t width = range->hi[d] - range->lo[d] + 1;
            own->lo[d] = own->hi[d] = range->lo[d] + rest % width;
            rest /= width;
        }
    }
    return true;
}

/* Both parts are tried later, the one with the typical sizes first. */
static bool cut(searcher *s, const ir_range *range, const ir_cut *at)
{
    ir_range parts[2] = { *range, *range };

    if (at->last < range->lo[at->dim] || at->last >= range->hi[at->dim] ||
        s->done_count + s->open_count + 2 > s->most)
        return false;
    parts[0].hi[at->dim] = at->last;
    parts[1].lo[at->dim] = at->last + 1;
    const uint32_t first = s->typical[at->dim] > at->last;
    s->open[s->open_count++] = parts[1 - first];
    s->open[s->open_count++] = parts[first];
    return true;
}

/* Whether few sizes of the dimension are inside, and more of another one. */
static bool is_narrow(const searcher *s, const ir_range *range, uint32_t d)
{
    const int64_t own = range->hi[d] - range->lo[d];
    bool wider = false;
    for (uint32_t i = 0; i < s->dim_count; i++)
        wider = wider || range->hi[i] - range->lo[i] > own;
    return wider && own < NARROW;
}

/* Whether a few small sizes of it may serve as samples: it is narrow, and all of its sizes are small. */
static bool is_small(const searcher *s, const ir_range *range, uint32_t d)
{
    return is_narrow(s, range, d) && range->hi[d] < SMALL && range->lo[d] < range->hi[d];
}

/* One function for the range, of samples of one kind; the first kind's cut is kept unless another one's is of a
 * function that is right for a part. */
static opjit_status find_by(searcher *s, ir_range *range, ir_sampling from, uint32_t larger, ir_cut *out_cut,
                            opjit_error *error)
{
    ir_cut own = { .dim = IR_CUT_NONE };
    int64_t typical[OPJIT_MAX_DIMS] = { 0 };
    ir_dim dims[OPJIT_MAX_DIMS];

    for (uint32_t d = 0; d < s->dim_count; d++) {
        const bool inside = range->lo[d] <= s->typical[d] && s->typical[d] <= range->hi[d];
        const ir_sampling own_from = from == IR_SAMPLES_INSIDE && is_narrow(s, range, d)  ? IR_SAMPLES_AROUND
                                     : from == IR_SAMPLES_SMALL && !is_small(s, range, d) ? IR_SAMPLES_BELOW
                                                                                          : from;
        dims[d] = (ir_dim){ s->dims[d].name, range->lo[d], range->hi[d], own_from };
        typical[d] = inside ? s->typical[d] : mean(range->lo[d], range->hi[d]);
        for (uint32_t i = 0; i < larger; i++)
            typical[d] = mean(typical[d], range->hi[d]);
    }
    const opjit_status status =
        opjit_ir_general_find(dims, typical, s->dim_count, s->make, s->user, s->lines, &range->general, &own, error);
    if (out_cut->dim == IR_CUT_NONE || own.by_proof)
        *out_cut = own;
    if (error != NULL)
        s->origin = own.origin;
    return status;
}

/* Whether it lacks sizes that the dimensions have, beside 0. */
static bool is_part_of(const searcher *s, const ir_range *range)
{
    bool is_part = false;

    for (uint32_t d = 0; d < s->dim_count; d++)
        is_part = is_part || (range->hi[d] != 0 && (range->lo[d] > (s->dims[d].lo == 0 ? 1 : s->dims[d].lo) ||
                                                    range->hi[d] != s->dims[d].hi));
    return is_part;
}

/* Where sizes around the typical ones have loops of many kinds, as small ones have, others may do for all. */
static opjit_status find_one(searcher *s, ir_range *range, ir_cut *out_cut, opjit_error *error)
{
    static const struct {
        ir_sampling from;
        uint32_t larger;
    } whole[KINDS] = { { IR_SAMPLES_BELOW, 0 }, { IR_SAMPLES_BELOW, 1 }, { IR_SAMPLES_BELOW, 2 },
                       { IR_SAMPLES_SMALL, 0 } },
      part[KINDS] = { { IR_SAMPLES_AROUND, 0 }, { IR_SAMPLES_INSIDE, 0 }, { IR_SAMPLES_AROUND, 1 },
                      { IR_SAMPLES_SMALL, 0 } };
    uint32_t kinds = KINDS - 1;
    const bool is_part = is_part_of(s, range);
    opjit_status status = OPJIT_UNSUPPORTED;

    for (uint32_t d = 0; d < s->dim_count; d++)
        if (is_small(s, range, d))
            kinds = KINDS;
    for (uint32_t i = 0; i < kinds && status == OPJIT_UNSUPPORTED && !out_cut->by_proof; i++)
        status = find_by(s, range, is_part ? part[i].from : whole[i].from, is_part ? part[i].larger : whole[i].larger,
                         out_cut, i == 0 ? error : NULL);
    return status;
}

/* The first refusal has the message: it is about all sizes. */
static opjit_status search(searcher *s, opjit_error *error)
{
    opjit_status refusal = OPJIT_OK;
    uint32_t tries = 0;

    while (s->open_count > 0 && tries < TRIES + s->most / 2) {
        ir_range range = s->open[--s->open_count];
        ir_cut at = { .dim = IR_CUT_NONE };
        opjit_error *const own = refusal == OPJIT_OK ? error : NULL;
        const opjit_status status = find_one(s, &range, &at, own);
        tries += sizes_in(s, &range) > 1;
        if (status == OPJIT_OK) {
            s->done[s->done_count++] = range;
            continue;
        }
        if (is_over(status))
            return opjit_ir_find_over(status, error);
        refusal = refusal == OPJIT_OK ? status : refusal;
        if (!at.by_proof && split(s, &range))
            continue;
        if ((at.dim == IR_CUT_NONE && !guess(s, &range, &at)) || !cut(s, &range, &at))
            return refusal;
    }
    if (s->open_count > 0)
        return refusal;
    opjit_rt_error_clear(error);
    return OPJIT_OK;
}

/* All sizes.  Of a size of 0 there are no tensors, where others have some: it has functions of its own. */
static void open_all(searcher *s)
{
    s->open_count = 1;
    for (uint32_t d = 0; d < s->dim_count; d++) {
        s->open[0].lo[d] = s->dims[d].lo;
        s->open[0].hi[d] = s->dims[d].hi;
    }
    for (uint32_t d = 0; d < s->dim_count; d++)
        for (uint32_t i = 0, count = s->open_count; i < count && s->dims[d].lo == 0 && 2 * count <= IR_RANGES; i++) {
            ir_range *const rest = &s->open[s->open_count++];
            *rest = s->open[i];
            s->open[i].hi[d] = 0;
            rest->lo[d] = 1;
        }
}

/* The range of the typical sizes becomes the last one. */
static void put_typical_last(searcher *s)
{
    for (uint32_t i = 0; i + 1 < s->done_count; i++)
        if (has(s, &s->done[i], s->typical)) {
            const ir_range range = s->done[i];
            memmove(&s->done[i], &s->done[i + 1], (s->done_count - 1 - i) * sizeof *s->done);
            s->done[s->done_count - 1] = range;
            return;
        }
}

opjit_status opjit_ir_ranges_find(const ir_dim *dims, const int64_t *typical, uint32_t dim_count, ir_sample_fn make,
                                  void *user, ir_search how, ir_range out[static IR_RANGES], uint32_t *out_count,
                                  ir_space *out_space, uint32_t *out_origin, opjit_error *error)
{
    const finder all = { .dims = dims, .typical = typical, .dim_count = dim_count, .make = make, .user = user };
    ir_lines lines;
    searcher s = { .dims = dims,
                   .typical = typical,
                   .dim_count = dim_count,
                   .make = make,
                   .user = user,
                   .lines = &lines,
                   .most = how.most,
                   .done = out };

    open_all(&s);
    opjit_status status = opjit_ir_lines_find(&all, how.quotients, &lines);
    *out_space = lines.space;
    status = status == OPJIT_OK ? search(&s, error) : opjit_ir_find_over(status, error);
    for (uint32_t i = 0; i < s.done_count && status != OPJIT_OK; i++)
        opjit_ir_general_free(&out[i].general);
    put_typical_last(&s);
    *out_count = status == OPJIT_OK ? s.done_count : 0;
    *out_origin = status == OPJIT_UNSUPPORTED ? s.origin : 0;
    return status;
}
