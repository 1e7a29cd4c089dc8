/* SPDX-License-Identifier: Apache-2.0 */
/* attributes.c - sets lanes, copies and kinds of stores of one loop.  Part of schedule, and of its steps that make
 * loops. */
#include "ir/passes/schedule/scheduler.h"

enum {
    STREAM_COST = 8, /* of a body that takes less time than its memory, so that the round's own work is visible */
    WAIT_COST = 3,   /* of a body that takes less time than a round waits for the sums of the previous one */
    LONG_COST = 4    /* and of one that does if the loop is long: a choice of floats */
};

/* A small temp is still in the second cache when another stage reads it. */
static bool store_past_caches(scheduler *s, ir_ref store)
{
    const ir_tensor *t = &s->f->tensors[ir_at(s->f, store)->ref];
    const bool stays = t->role == IR_SCRATCH || (t->role == IR_TEMP && t->bytes <= s->target->l2);
    return s->beyond_caches && !stays && opjit_ir_rows_are_aligned(t, s->target->vector_bytes) &&
           !opjit_ir_loads_tensor(s, ir_at(s->f, store)->ref);
}

int64_t opjit_ir_lanes_of(const scheduler *s, const work *w)
{
    return s->target->vector_bytes / w->size;
}

/* On GPUs other threads hide latencies.  But stores of one value that are known to be a few rounds of the team are
 * written out, and there may be few loops that reduce a row. */
static uint16_t team_unroll(const scheduler *s, ir_ref lo, ir_ref hi, const work *w, int64_t lanes)
{
    const int64_t round = lanes * s->team;
    int64_t distance;
    if (w->store == 0)
        return w->cost <= 8 && opjit_ir_longest(s->f, lo, hi) >= 4 * round ? 4 : 1;
    if (w->cost == 0 && opjit_ir_distance(s->f, hi, lo, &distance) && (distance == 2 * round || distance == 4 * round))
        return (uint16_t)(distance / round);
    return 1;
}

/* Repeats cheap bodies as far as the loop is long enough.  At quick each round loads the loop's variable, its end and
 * its address, and stores the variable; each of these takes as long as one or two vectors of the output, in any
 * cache. */
uint16_t opjit_ir_unroll_of(const scheduler *s, ir_ref lo, ir_ref hi, const work *w, int64_t lanes)
{
    if (s->threads)
        return team_unroll(s, lo, hi, w, lanes);
    const int64_t vectors = opjit_ir_longest(s->f, lo, hi) / lanes;
    const uint32_t cost = w->cost;
    const bool stores = cost <= 1 && w->store != 0;
    const bool lone = ir_only(s->f, ir_at(s->f, s->stage)->body) != 0;
    const bool whole = /* long sums without an end: at quick each round waits for the previous one's stores */
        cost <= 1 && w->store == 0 && vectors >= 8 * MAX_UNROLL &&
        opjit_ir_divisor(s->f, hi) >= (uint64_t)(MAX_UNROLL * lanes);
    /* Four copies take longer to compile than two, which pays where rounds of mathematical functions become shorter. */
    const bool few = cost < MATH_COST || (w->math && cost < 2 * MATH_COST);
    const bool streams = w->store != 0 && s->beyond_caches && cost <= STREAM_COST;
    const bool waits = w->update && (cost <= WAIT_COST ? vectors >= 32 : cost <= LONG_COST && vectors >= 128);
    int64_t unroll = cost >= SPELLED_OUT    ? MAX_UNROLL
                     : stores               ? (lone ? LONE_UNROLL : STORE_UNROLL)
                     : whole                ? MAX_UNROLL
                     : cost <= 1 || streams || waits ? 8
                     : few                  ? 4
                     : cost <= 24 || w->wide > w->size ? 2
                                                       : 1;
    while (unroll > 1 && vectors < unroll)
        unroll /= 2;
    return (uint16_t)unroll;
}

/* The loop's lanes: what a vector holds of the largest elements on the way to what is stored, so that no value takes
 * several registers; fewer for a loop that is known to be shorter and has no masks to compensate, or needs none, as it
 * stores a row of scratch that is half or a quarter of a vector (a narrow tile's). */
int64_t opjit_ir_lanes_for(const scheduler *s, ir_ref loop, const work *w)
{
    int64_t lanes = opjit_ir_lanes_of(s, w), trips;
    if (!s->threads && w->wide > w->size)
        lanes = lanes * w->size / w->wide;
    if (!opjit_ir_distance(s->f, ir_operand(s->f, loop, 1), ir_operand(s->f, loop, 0), &trips))
        return lanes;
    const bool scratch = w->store != 0 && s->f->tensors[ir_at(s->f, w->store)->ref].role == IR_SCRATCH;
    if (!opjit_rt_target_has_masks(s->target) || (scratch && (2 * trips == lanes || 4 * trips == lanes)))
        while (lanes > 1 && lanes > trips)
            lanes /= 2;
    return lanes;
}

void opjit_ir_set_vector(scheduler *s, ir_ref loop, const work *w, int64_t unroll, bool at_line)
{
    ir_func *f = s->f;
    const int64_t lanes = opjit_ir_lanes_for(s, loop, w);
    if (lanes < 2)
        return;
    const ir_ref from = ir_operand(f, loop, 0), to = ir_operand(f, loop, 1);
    const uint64_t lo = opjit_ir_divisor(f, from), hi = opjit_ir_divisor(f, to);
    const bool whole = lo >= (uint64_t)lanes && hi >= (uint64_t)lanes;
    const bool past =
        at_line || (w->store != 0 && lo >= (uint64_t)opjit_ir_lanes_of(s, w) && store_past_caches(s, w->store));
    ir_took(f, IR_STEP_ATTRIBUTES);
    f->nodes[loop].vec = (uint16_t)lanes;
    f->nodes[loop].unroll = unroll != 0 ? (uint16_t)unroll : opjit_ir_unroll_of(s, from, to, w, lanes);
    const bool masks = !whole && opjit_rt_target_has_masks(s->target);
    f->nodes[loop].flags = (uint8_t)((past ? IR_FOR_NT : 0) | (masks ? IR_FOR_TAIL_MASK : 0));
}

/* Consecutive copies of updates: at quick each round waits for the previous one's stores, which take longer than the
 * updates. */
static uint16_t running_unroll(const scheduler *s, ir_ref loop, uint32_t cost)
{
    const int64_t trips = opjit_ir_longest(s->f, ir_operand(s->f, loop, 0), ir_operand(s->f, loop, 1));
    uint16_t copies = cost <= 6 && trips >= 8 * MAX_UNROLL ? MAX_UNROLL : cost <= 8 ? 8 : cost <= 16 ? 4 : 1;
    while (copies > 1 && trips < copies)
        copies /= 2;
    return copies;
}

bool opjit_ir_set_copies(scheduler *s, ir_ref loop)
{
    ir_func *f = s->f;
    const ir_ref only = ir_only(f, ir_at(f, loop)->body);
    uint32_t cost;
    if (!s->threads && opjit_ir_find_running(f, loop, &cost))
        f->nodes[loop].unroll = running_unroll(s, loop, cost);
    else if (only != 0 && ir_at(f, only)->op == IR_STORE)
        f->nodes[loop].unroll =
            opjit_ir_unroll_of(s, ir_operand(f, loop, 0), ir_operand(f, loop, 1), &(work){ .cost = 4 }, 1);
    else
        return false;
    ir_took(f, IR_STEP_ATTRIBUTES);
    return true;
}
