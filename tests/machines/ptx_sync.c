/* SPDX-License-Identifier: Apache-2.0 */
/* ptx_sync.c - synchronisation: instructions of a warp that name a mask, barriers of a block. */
#include <string.h>

#include "tests/machines/ptx_internal.h"

static const uint64_t *row_of(const ptx_runner *r, const ptx_warp *w, const ptx_ins *ins, uint32_t source)
{
    return w->regs + ((uint64_t)r->slot_base[ins->function] + ins->source[source]) * LANES;
}

static uint64_t *dest_of(const ptx_runner *r, const ptx_warp *w, const ptx_ins *ins, uint32_t dest)
{
    return w->regs + ((uint64_t)r->slot_base[ins->function] + ins->dest[dest]) * LANES;
}

/* --- within a warp ----------------------------------------------------------------------------------------------- */
static bool shuffle(ptx_runner *r, ptx_warp *w, const ptx_ins *ins, uint32_t group)
{
    const uint64_t *a = row_of(r, w, ins, 0), *b = row_of(r, w, ins, 1), *c = row_of(r, w, ins, 2);
    uint64_t values[LANES], inside[LANES];

    FOR_LANES (l, group) {
        const int segment = (int)(c[l] >> 8 & 31), clamp = (int)(c[l] & 31), by = (int)(b[l] & 31), lane = (int)l;
        const int most = (lane & segment) | (clamp & ~segment), least = lane & segment;
        int from = ins->sub == SUB_UP     ? lane - by
                   : ins->sub == SUB_DOWN ? lane + by
                   : ins->sub == SUB_BFLY ? lane ^ by
                                          : least | (by & ~segment);
        inside[l] = ins->sub == SUB_UP ? from >= most : from <= most;
        if (inside[l] == 0)
            from = lane;
        if ((group >> from & 1) == 0)
            return ptx_fault(r, w, ins, l, "reads lane %d, which takes no part", from);
        values[l] = a[from];
    }
    FOR_LANES (l, group) {
        dest_of(r, w, ins, 0)[l] = values[l];
        if (ins->dest_count == 2)
            dest_of(r, w, ins, 1)[l] = inside[l];
    }
    return true;
}

static void vote(ptx_runner *r, ptx_warp *w, const ptx_ins *ins, uint32_t group)
{
    const uint64_t *p = row_of(r, w, ins, 0);
    uint64_t *to = dest_of(r, w, ins, 0);
    uint32_t ballot = 0;

    FOR_LANES (l, group)
        ballot |= (uint32_t)(p[l] != 0) << l;
    const uint64_t result = ins->sub == SUB_BALLOT ? ballot
                            : ins->sub == SUB_ANY  ? ballot != 0
                            : ins->sub == SUB_ALL  ? ballot == group
                                                   : ballot == group || ballot == 0;
    FOR_LANES (l, group)
        to[l] = result;
}

static void reduce(ptx_runner *r, ptx_warp *w, const ptx_ins *ins, uint32_t group)
{
    const uint64_t *a = row_of(r, w, ins, 0);
    uint64_t *to = dest_of(r, w, ins, 0);
    uint32_t x = (uint32_t)a[__builtin_ctz(group)];

    FOR_LANES (l, group & (group - 1)) {
        const uint32_t y = (uint32_t)a[l];
        const bool less = ins->type == T_S32 ? (int32_t)y < (int32_t)x : y < x;
        switch (ins->sub) {
        case SUB_ADD: x += y; break;
        case SUB_AND: x &= y; break;
        case SUB_OR: x |= y; break;
        case SUB_XOR: x ^= y; break;
        default: x = less == (ins->sub == SUB_MIN) ? y : x; break;
        }
    }
    FOR_LANES (l, group)
        to[l] = x;
}

/* A whole warp counts with all of its threads, ended and missing ones included. */
static uint32_t threads_of(const ptx_warp *w, uint32_t lanes)
{
    return lanes == w->alive ? LANES : (uint32_t)__builtin_popcount(lanes);
}

/* All lanes of group have arrived at ins. */
static bool fire(ptx_runner *r, ptx_warp *w, const ptx_ins *ins, uint32_t group)
{
    if (ins->op == OP_BAR) {
        const uint64_t *number = row_of(r, w, ins, 0), *count = row_of(r, w, ins, 1);
        const bool counts = ins->source_count - ins->dest_count == 2; /* the last source of bar.red is its predicate */
        FOR_LANES (l, group) {
            w->barrier[l] = (uint32_t)number[l];
            w->expected[l] = counts ? (uint32_t)count[l] : 0;
            if (w->barrier[l] >= BARRIERS || w->expected[l] % LANES != 0 || w->expected[l] > r->warp_count * LANES)
                return ptx_fault(r, w, ins, l, "barrier %u for %u threads", w->barrier[l], w->expected[l]);
        }
        if (ins->sub != SUB_ARRIVE) {
            w->at_barrier |= group;
            w->waiting |= group;
            return true;
        }
        r->arrived[w->barrier[__builtin_ctz(group)]] += threads_of(w, group);
    } else if (ins->op == OP_SHFL) {
        if (!shuffle(r, w, ins, group))
            return false;
    } else if (ins->op == OP_VOTE) {
        vote(r, w, ins, group);
    } else if (ins->op == OP_REDUX) {
        reduce(r, w, ins, group);
    } else if (group == w->alive) {
        w->epoch++;
    }
    w->waiting &= ~group;
    FOR_LANES (l, group)
        w->pc[l]++;
    return true;
}

bool ptx_settle(ptx_runner *r, ptx_warp *w)
{
    uint32_t look = w->waiting & ~w->at_barrier;

    while (look != 0) {
        const uint32_t first = (uint32_t)__builtin_ctz(look), needed = w->mask[first] & w->alive;
        uint32_t here = 0;
        FOR_LANES (l, look)
            here |= (uint32_t)(w->pc[l] == w->pc[first] && w->mask[l] == w->mask[first]) << l;
        look &= ~here;
        if (here == needed && !fire(r, w, &r->module->code[w->pc[first]], here))
            return false;
    }
    return true;
}

bool ptx_arrive(ptx_runner *r, ptx_warp *w, const ptx_ins *ins, uint32_t base, uint32_t mask)
{
    const bool barrier = ins->op == OP_BAR;
    const uint64_t *masks = barrier ? NULL : w->regs + ((uint64_t)base + ins->source[ins->source_count - 1]) * LANES;

    if (barrier && (ins->flags & F_ALIGNED) == 0)
        return fire(r, w, ins, mask);
    FOR_LANES (l, mask) {
        w->mask[l] = barrier ? UINT32_MAX : (uint32_t)masks[l];
        if ((w->mask[l] >> l & 1) == 0)
            return ptx_fault(r, w, ins, l, "mask 0x%x does not name the thread itself", w->mask[l]);
    }
    w->waiting |= mask;
    return ptx_settle(r, w);
}

/* --- within a block ---------------------------------------------------------------------------------------------- */
static bool deadlock(ptx_runner *r)
{
    const ptx_ins *first = NULL, *other = NULL;
    const ptx_warp *warp = NULL;
    uint32_t lane = 0;

    for (uint32_t i = 0; i < r->warp_count; i++) {
        const ptx_warp *w = &r->warps[i];
        FOR_LANES (l, w->alive) {
            const ptx_ins *ins = &r->module->code[w->pc[l]];
            if (first == NULL) {
                first = ins;
                warp = w;
                lane = l;
            } else if (ins != first && other == NULL) {
                other = ins;
            }
        }
    }
    if (other != NULL)
        return ptx_fault(r, warp, first, lane, "deadlock: it waits here, others at line %u", other->line);
    return ptx_fault(r, warp, first, lane, "deadlock: it waits here for threads that do not come");
}

/* bar.red of barrier number: combines the predicates of all that arrived. */
static void reduce_block(ptx_runner *r, uint32_t number)
{
    uint32_t holds = 0, count = 0;

    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < r->warp_count; i++) {
            const ptx_warp *w = &r->warps[i];
            FOR_LANES (l, w->at_barrier) {
                const ptx_ins *ins = &r->module->code[w->pc[l]];
                if (w->barrier[l] != number || ins->dest_count == 0)
                    continue;
                if (pass == 0) {
                    holds += row_of(r, w, ins, ins->source_count - 1)[l] != 0;
                    count++;
                } else {
                    dest_of(r, w, ins, 0)[l] = ins->sub == SUB_POPC  ? holds
                                               : ins->sub == SUB_AND ? holds == count
                                                                     : holds != 0;
                }
            }
        }
    }
}

/* Opens barrier number if all have arrived. */
static bool open_barrier(ptx_runner *r, uint32_t number, bool *out_opened)
{
    uint32_t count = r->arrived[number], alive = 0, expected = 0;

    for (uint32_t i = 0; i < r->warp_count; i++) {
        const ptx_warp *w = &r->warps[i];
        uint32_t here = 0;
        alive += w->alive != 0 ? LANES : 0;
        FOR_LANES (l, w->at_barrier) {
            if (w->barrier[l] != number)
                continue;
            here |= 1u << l;
            if (expected != 0 && w->expected[l] != expected)
                return ptx_fault(r, w, &r->module->code[w->pc[l]], l, "barrier %u for %u threads, others say %u",
                                 number, w->expected[l], expected);
            expected = w->expected[l];
        }
        count += here != 0 ? threads_of(w, here) : 0;
    }
    if (count == r->arrived[number] || count < (expected == 0 ? alive : expected))
        return true;
    if (expected == 0 || count >= alive)
        r->epoch++;
    reduce_block(r, number);
    for (uint32_t i = 0; i < r->warp_count; i++) {
        ptx_warp *w = &r->warps[i];
        FOR_LANES (l, w->at_barrier) {
            if (w->barrier[l] != number)
                continue;
            w->at_barrier &= ~(1u << l);
            w->waiting &= ~(1u << l);
            w->pc[l]++;
        }
    }
    r->arrived[number] = 0;
    r->stats.barriers++;
    *out_opened = true;
    return true;
}

bool ptx_release(ptx_runner *r)
{
    bool opened = false;

    for (uint32_t i = 0; i < BARRIERS; i++) {
        if (!open_barrier(r, i, &opened))
            return false;
    }
    return opened || deadlock(r);
}
