/* SPDX-License-Identifier: Apache-2.0 */
/* schedule.c - the target decides: lanes, unrolling, kinds of stores, and boundaries. Needs: split loop form and a
 * target.  Leaves: the same values; `vec`, `unroll`, `store nt` and `tail mask` on loops, and no whole vector that is
 * written in two parts.
 *
 * This file walks over the loops of a stage.  Each gets the first of the steps that fits it: boundaries (with edges)
 * for a row of several pieces, transpose, remainders, attributes; work.c finds what a loop does. */
#include "ir/passes/scheduler.h"

#include <string.h>

/* --- blocks ------------------------------------------------------------------------------------------------------- */

static void schedule_block(scheduler *s, ir_ref parent);

/* A loop without vectors: schedules the loops in it; or makes copies of its one store, such as that of an input read
 * across its rows, or of running updates. */
static void schedule_inside(scheduler *s, ir_ref loop)
{
    if (!opjit_ir_set_copies(s, loop))
        schedule_block(s, loop); /* as deep as loops nest: rule V16 */
}

static void schedule_block(scheduler *s, ir_ref parent)
{
    ir_func *f = s->f;
    block out = { .parent = parent };
    ir_ref next;
    for (ir_ref r = ir_at(f, parent)->body; r != 0; r = next) {
        chain c = { 0 };
        next = ir_at(f, r)->next;
        if (ir_at(f, r)->op == IR_FOR)
            opjit_ir_find_chain(s, r, &c);
        c.edges = c.count > 0 && c.lanes > 1 && opjit_ir_chain_wants_edges(s, &c);
        const uint32_t more =
            c.count + (c.edges ? 2 : 0); /* a boundary fewer than pieces; the row's end and edges */
        if ((c.count > 1 || c.edges) && c.lanes > 1 && s->loops + more <= MAX_LOOPS) {
            s->loops += more;
            next = ir_at(f, c.loops[c.count - 1])->next;
            ir_took(f, c.edges ? IR_STEP_EDGES : IR_STEP_BOUNDARIES);
            c.carry = c.edges && parent == s->stage && opjit_ir_chain_touches(s, &c);
            opjit_ir_add_row(s, &out, &c);
            continue;
        }
        work w;
        const bool transposed = !s->threads && opjit_ir_transpose(s, parent, r);
        const bool vectors = !transposed && ir_at(f, r)->op == IR_FOR && opjit_ir_find_work(f, r, &w);
        if (vectors && parent == s->stage && !s->threads && opjit_ir_add_remainder(s, &out, r, &w))
            continue;
        if (vectors)
            opjit_ir_set_vector(s, r, &w, 0, false);
        else if (!transposed && ir_at(f, r)->op == IR_FOR)
            schedule_inside(s, r);
        opjit_ir_block_add(f, &out, r);
    }
}

/* Whether stores should go around the caches: what is stored does not fit the last of them, which other cores use, too.
 * What a kernel only writes may take all of it.  What it reads evicts what it writes: as soon as inputs of a quarter
 * and outputs of a quarter meet there, stores around it are faster (bench_generators). */
static bool exceeds_caches(const ir_func *f, const rt_target *target)
{
    if (rt_target_team(target) > 0)
        return false; /* a GPU's stores have no such choice */
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
    if (f->phase >= IR_SCHEDULED)
        return OPJIT_OK; /* the loops of boundaries are not cut again */
    if (env->target == NULL)
        return opjit_rt_error_set(error, OPJIT_INVALID_ARGUMENT, "no target is given, and schedule needs one");
    scheduler s = { .f = f,
                    .target = env->target,
                    .threads = rt_target_team(env->target) > 0,
                    .beyond_caches = exceeds_caches(f, env->target) };
    for (s.stage = f->body; s.stage != 0; s.stage = ir_at(f, s.stage)->next) {
        const rt_arena_mark mark = rt_arena_position(&f->scratch);
        if (ir_at(f, s.stage)->op != IR_STAGE)
            continue;
        s.loops = opjit_ir_count_for(f, ir_at(f, s.stage)->body);
        if (!opjit_ir_find_loads(&s))
            break;
        s.team = opjit_ir_team_for(&s);
        f->nodes[s.stage].vec = (uint16_t)s.team;
        if (s.team > 0)
            ir_took(f, IR_STEP_TEAM);
        schedule_block(&s, s.stage);
        opjit_rt_arena_rewind(&f->scratch, mark);
    }
    opjit_ir_remove_idle(f); /* bounds of pieces that became equal in their boundary */
    if (f->target == NULL) {
        f->target = opjit_rt_arena_string(&f->arena, env->target->text, strlen(env->target->text));
        f->failed = f->failed || f->target == NULL;
    }
    *out_changed = true;
    return f->failed ? opjit_rt_no_memory(error) : OPJIT_OK;
}
