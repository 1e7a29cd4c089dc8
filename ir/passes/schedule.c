/* SPDX-License-Identifier: Apache-2.0 */
/* schedule.c - the target decides: lanes, unrolling, kinds of stores, and seams.
 * Needs: split loop form and a target.  Leaves: the same values; `vec`, `unroll`, `store nt` and `tail mask` on loops,
 * and no whole vector that is written in two parts.  What loops do is found in work.c, rows of several pieces are
 * cut in boundary.c. */
#include "ir/passes/schedule.h"

#include <string.h>

enum { STREAM_COST = 8 }; /* of a body that takes less time than its memory, so that the round's own work shows */

/* --- stores past the caches --------------------------------------------------------------------------------------- */

bool opjit_ir_rows_are_aligned(const ir_tensor *t, uint32_t vector_bytes)
{
    bool aligned = t->align >= vector_bytes;
    for (uint32_t d = 0; d < t->rank; d++)
        aligned = aligned && (t->strides[d] == 1 || t->strides[d] * opjit_ir_type_size(t->type) % vector_bytes == 0);
    return aligned;
}

/* Asked of the stage as it comes: while its blocks are made anew, not all of it can be reached. */
static bool find_loads(scheduler *s)
{
    ir_func *f = s->f;
    const ir_reach seen = opjit_ir_reach(f, ir_at(f, s->stage)->body);
    s->loaded = (ir_table){ 0 };
    for (uint32_t k = 0; k < seen.count; k++)
        if (ir_at(f, seen.nodes[k])->op == IR_LOAD)
            opjit_ir_table_set(f, &s->loaded, opjit_ir_root(f, ir_at(f, seen.nodes[k])->ref), 1);
    return !f->failed;
}

bool opjit_ir_loads_tensor(const scheduler *s, uint32_t tensor)
{
    const uint32_t root = opjit_ir_root(s->f, tensor);
    bool loaded = opjit_ir_table_get(&s->loaded, root) != 0;
    for (uint32_t i = 0; i < s->loaded.capacity && !loaded; i++)
        loaded = s->loaded.values[i] != 0 && opjit_ir_shares(s->f, root, (uint32_t)s->loaded.keys[i]);
    return loaded;
}

static bool store_past_caches(scheduler *s, ir_ref store)
{
    const ir_tensor *t = &s->f->tensors[ir_at(s->f, store)->ref];
    return s->beyond_caches && t->role != IR_SCRATCH && opjit_ir_rows_are_aligned(t, s->target->vector_bytes) &&
           !opjit_ir_loads_tensor(s, ir_at(s->f, store)->ref);
}

/* --- attributes --------------------------------------------------------------------------------------------------- */

int64_t opjit_ir_lanes_of(const scheduler *s, const work *w)
{
    return s->target->vector_bytes / w->size;
}

/* On GPUs other threads hide what a thread waits for; but stores of one value that are known to be a few rounds of the
 * team are written out, and of loops that reduce a row there may be few. */
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

/* Cheap bodies are repeated, as far as the loop is long enough to use it.  At quick each round loads the loop's
 * variable, its end and its address, and stores the variable, each of which takes as long as a vector of the output
 * or two, in any cache. */
uint16_t opjit_ir_unroll_of(const scheduler *s, ir_ref lo, ir_ref hi, const work *w, int64_t lanes)
{
    if (s->threads)
        return team_unroll(s, lo, hi, w, lanes);
    const int64_t vectors = opjit_ir_longest(s->f, lo, hi) / lanes;
    const uint32_t cost = w->cost;
    const bool stores = cost <= 1 && w->store != 0;
    const bool lone = ir_only(s->f, ir_at(s->f, s->stage)->body) != 0;
    const bool whole = /* long sums without an end: at quick each round waits for what the one before stored */
        cost <= 1 && w->store == 0 && vectors >= 8 * MAX_UNROLL &&
        opjit_ir_divisor(s->f, hi) >= (uint64_t)(MAX_UNROLL * lanes);
    /* Four copies take half as long again to compile as two, which pays where rounds of math become shorter. */
    const bool few = cost < MATH_COST || (w->math && cost <= 24);
    const bool streams = w->store != 0 && s->beyond_caches && cost <= STREAM_COST;
    int64_t unroll = cost >= SPELLED_OUT    ? MAX_UNROLL
                     : stores               ? (lone ? LONE_UNROLL : STORE_UNROLL)
                     : whole                ? MAX_UNROLL
                     : cost <= 1 || streams ? 8
                     : few                  ? 4
                     : cost <= 24           ? 2
                                            : 1;
    while (unroll > 1 && vectors < unroll)
        unroll /= 2;
    return (uint16_t)unroll;
}

/* Lanes of the loop: what a vector holds, or less for a loop that is known to be shorter and has no masks to make up
 * for it. */
static int64_t lanes_for(const scheduler *s, ir_ref loop, const work *w)
{
    int64_t lanes = opjit_ir_lanes_of(s, w), trips;
    if (opjit_ir_distance(s->f, ir_operand(s->f, loop, 1), ir_operand(s->f, loop, 0), &trips) &&
        !opjit_rt_target_has_masks(s->target))
        while (lanes > 1 && lanes > trips)
            lanes /= 2;
    return lanes;
}

void opjit_ir_set_vector(scheduler *s, ir_ref loop, const work *w, int64_t unroll, bool at_line)
{
    ir_func *f = s->f;
    const int64_t lanes = lanes_for(s, loop, w);
    if (lanes < 2)
        return;
    const ir_ref from = ir_operand(f, loop, 0), to = ir_operand(f, loop, 1);
    const uint64_t lo = opjit_ir_divisor(f, from), hi = opjit_ir_divisor(f, to);
    const bool whole = lo >= (uint64_t)lanes && hi >= (uint64_t)lanes;
    const bool past =
        at_line || (w->store != 0 && lo >= (uint64_t)opjit_ir_lanes_of(s, w) && store_past_caches(s, w->store));
    f->nodes[loop].vec = (uint16_t)lanes;
    f->nodes[loop].unroll = unroll != 0 ? (uint16_t)unroll : opjit_ir_unroll_of(s, from, to, w, lanes);
    const bool masks = !whole && opjit_rt_target_has_masks(s->target);
    f->nodes[loop].flags = (uint8_t)((past ? IR_FOR_NT : 0) | (masks ? IR_FOR_TAIL_MASK : 0));
}

/* --- blocks ------------------------------------------------------------------------------------------------------- */

static void schedule_block(scheduler *s, ir_ref parent);

/* Copies of updates one after the other: at quick each round waits for what the one before stored, which takes as long
 * as three of them. */
static uint16_t running_unroll(const scheduler *s, ir_ref loop, uint32_t cost)
{
    const int64_t trips = opjit_ir_longest(s->f, ir_operand(s->f, loop, 0), ir_operand(s->f, loop, 1));
    uint16_t copies = cost <= 6 && trips >= 8 * MAX_UNROLL ? MAX_UNROLL : cost <= 8 ? 8 : cost <= 16 ? 4 : 1;
    while (copies > 1 && trips < copies)
        copies /= 2;
    return copies;
}

/* A loop that makes no vectors: what it holds; or copies of its one store, such as that of an input read across its
 * rows, or of running updates. */
static void schedule_inside(scheduler *s, ir_ref loop)
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
        schedule_block(s, loop); /* as deep as loops nest: rule V16 */
}

/* A loop whose end is made of whole rounds, or that is two, with an end of its own; false: it has none. */
static bool add_ends(scheduler *s, block *out, ir_ref loop, const work *w)
{
    const int64_t lanes = lanes_for(s, loop, w);
    const int64_t copies = opjit_ir_unroll_of(s, ir_operand(s->f, loop, 0), ir_operand(s->f, loop, 1), w, lanes);
    if (lanes < 2 || s->loops >= MAX_LOOPS)
        return false;
    const int64_t most = copies < 2 ? copies : 2; /* half a round is computed in vain */
    if (w->cost >= MATH_COST && opjit_ir_round_end(s, out, loop, lanes * most)) {
        opjit_ir_set_vector(s, loop, w, most, false);
        opjit_ir_block_add(s->f, out, loop);
        return true;
    }
    const ir_ref rest = opjit_ir_cut_end(s, out, loop, lanes, lanes * copies);
    if (rest == 0)
        return false;
    s->loops++;
    opjit_ir_set_vector(s, loop, w, copies, false);
    opjit_ir_set_vector(s, rest, w, 1, false);
    opjit_ir_block_add(s->f, out, loop);
    opjit_ir_block_add(s->f, out, rest);
    return true;
}

static void schedule_block(scheduler *s, ir_ref parent)
{
    ir_func *f = s->f;
    block out = { .parent = parent };
    ir_ref next;
    for (ir_ref r = ir_at(f, parent)->body; r != 0 && !f->failed; r = next) {
        chain c = { 0 };
        next = ir_at(f, r)->next;
        if (ir_at(f, r)->op == IR_FOR)
            opjit_ir_find_chain(s, r, &c);
        c.edges = c.count > 0 && c.lanes > 1 && opjit_ir_chain_wants_edges(s, &c);
        const uint32_t more = c.count + (c.edges ? 2 : 0); /* a seam less than pieces, and the row's end and edges */
        if ((c.count > 1 || c.edges) && c.lanes > 1 && s->loops + more <= MAX_LOOPS) {
            s->loops += more;
            next = ir_at(f, c.loops[c.count - 1])->next;
            c.carry = c.edges && parent == s->stage && opjit_ir_chain_touches(s, &c);
            opjit_ir_add_row(s, &out, &c);
            continue;
        }
        work w;
        const bool turned = !s->threads && opjit_ir_turn(s, parent, r);
        const bool vectors = !turned && ir_at(f, r)->op == IR_FOR && opjit_ir_find_work(f, r, &w);
        if (vectors && parent == s->stage && !s->threads && add_ends(s, &out, r, &w))
            continue;
        if (vectors)
            opjit_ir_set_vector(s, r, &w, 0, false);
        else if (!turned && ir_at(f, r)->op == IR_FOR)
            schedule_inside(s, r);
        opjit_ir_block_add(f, &out, r);
    }
}

/* Whether what is stored had better go around the caches: it does not fit the last of them, which other cores use too.
 * What a kernel only writes may take all of it.  What it reads pushes out what it writes: as soon as inputs of a
 * quarter and outputs of a quarter meet there, copies around it are faster (1.4 to 2.4 times on Zen 3). */
static bool exceeds_caches(const ir_func *f, const rt_target *target)
{
    if (rt_target_team(target) > 0)
        return false; /* stores of a GPU have no such choice */
    const uint64_t cache = target->l3 != 0 ? target->l3 : target->l2;
    uint64_t in = 0, sum = 0;
    for (uint32_t t = 1; t < f->tensor_count; t++) {
        const ir_tensor *tensor = &f->tensors[t];
        const bool is_in = tensor->role == IR_IN, is_out = tensor->role == IR_OUT && tensor->alias == 0;
        if ((is_in || is_out) && !checked_add(sum, tensor->bytes, &sum))
            return true;
        in += is_in ? tensor->bytes : 0;
    }
    return cache != 0 && (sum > cache || (in >= cache / 4 && sum >= cache / 2));
}

opjit_status opjit_ir_pass_schedule(ir_func *f, const ir_pass_env *env, bool *out_changed, opjit_error *error)
{
    *out_changed = false;
    if (f->stage >= IR_SCHEDULED)
        return OPJIT_OK; /* the loops of seams are not cut again */
    if (env->target == NULL)
        return opjit_rt_error_set(error, OPJIT_INVALID_ARGUMENT, "no target is given, and schedule needs one");
    scheduler s = { .f = f,
                    .target = env->target,
                    .threads = rt_target_team(env->target) > 0,
                    .beyond_caches = exceeds_caches(f, env->target) };
    for (s.stage = f->body; s.stage != 0 && !f->failed; s.stage = ir_at(f, s.stage)->next) {
        const rt_arena_mark mark = rt_arena_position(&f->scratch);
        if (ir_at(f, s.stage)->op != IR_STAGE)
            continue;
        s.loops = opjit_ir_count_for(f, ir_at(f, s.stage)->body);
        if (!find_loads(&s))
            break;
        s.team = opjit_ir_team_for(&s);
        f->nodes[s.stage].vec = (uint16_t)s.team;
        schedule_block(&s, s.stage);
        opjit_rt_arena_rewind(&f->scratch, mark);
    }
    opjit_ir_remove_idle(f); /* bounds of pieces that became equal in their seam */
    if (f->target == NULL) {
        f->target = opjit_rt_arena_string(&f->arena, env->target->text, strlen(env->target->text));
        f->failed = f->failed || f->target == NULL;
    }
    *out_changed = true;
    return f->failed ? opjit_rt_no_memory(error) : OPJIT_OK;
}
