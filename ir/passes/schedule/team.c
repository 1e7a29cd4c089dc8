/* SPDX-License-Identifier: Apache-2.0 */
/* team.c - how many threads of a GPU do an iteration of a stage.
 *
 * A warp, or a block of several: as many threads as the longest row has vectors, so that a row is one round if
 * possible, and every block has work for its threads.  Lanes of accumulators belong to a warp; the blocks of 4096
 * values in which a long row is reduced are distributed over warps, if there are too few rows to occupy a GPU's
 * threads. */
#include "ir/passes/schedule/scheduler.h"

enum {
    MOST_THREADS = 256,
    MANY_ROWS = 8192, /* as many warps as a large GPU runs at a time: 132 processors of 64 */
};

/* --- reductions --------------------------------------------------------------------------------------------------- */

/* Whether each accumulator with lanes is updated in one loop beside it, which alone then determines which warp has
 * which block.  *longest: values of the longest such loop. */
static bool reduces_by_blocks(const ir_func *f, ir_ref first, int64_t *longest)
{
    for (ir_ref s = first; s != 0; s = ir_at(f, s)->next) {
        const bool has_lanes = ir_at(f, s)->op == IR_ACC && ir_at(f, s)->imm == IR_REDUCE_LANES;
        uint32_t loops = 0, updates = 0, all = 0;
        for (ir_ref r = s; has_lanes && r != 0; r = ir_at(f, r)->next) {
            const ir_ref body = ir_at(f, r)->op == IR_FOR ? ir_at(f, r)->body : 0;
            for (ir_ref u = body; u != 0; u = ir_at(f, u)->next)
                updates += ir_at(f, u)->op == IR_UPD && ir_at(f, u)->ref == s;
            all += opjit_ir_count_updates(f, ir_at(f, r)->body, s);
            if (opjit_ir_count_updates(f, body, s) == 0)
                continue;
            const int64_t length = opjit_ir_longest(f, ir_operand(f, r, 0), ir_operand(f, r, 1));
            *longest = length > *longest ? length : *longest;
            loops++;
        }
        if ((has_lanes && (loops != 1 || updates != all)) || !reduces_by_blocks(f, ir_at(f, s)->body, longest))
            return false;
    }
    return true;
}

static bool has(const ir_func *f, ir_ref first, ir_op op, ir_role role)
{
    for (ir_ref s = first; s != 0; s = ir_at(f, s)->next) {
        const ir_node *n = ir_at(f, s);
        if ((n->op == op && (op != IR_STORE || f->tensors[n->ref].role == role)) || has(f, n->body, op, role))
            return true;
    }
    return false;
}

/* Warps for a stage that reduces rows: one if a target has no larger teams. */
static int64_t warps_of(const scheduler *s)
{
    const ir_ref body = ir_at(s->f, s->stage)->body;
    int64_t longest = 0;
    if (!rt_target_lock_step(s->target) || ir_index_value(s->f, ir_operand(s->f, s->stage, 1)) >= MANY_ROWS ||
        !reduces_by_blocks(s->f, body, &longest))
        return 1;
    return longest < IR_REDUCE_BLOCK * MOST_THREADS ? (longest + IR_REDUCE_BLOCK - 1) / IR_REDUCE_BLOCK : MOST_THREADS;
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

/* Groups of lanes in the longest of the innermost loops. */
static int64_t longest_row(scheduler *s, ir_ref first)
{
    int64_t most = 0;
    for (ir_ref r = first; r != 0; r = ir_at(s->f, r)->next) {
        work w;
        if (ir_at(s->f, r)->op != IR_FOR)
            continue;
        int64_t groups = longest_row(s, ir_at(s->f, r)->body); /* as deep as loops nest: rule V16 */
        if (groups == 0) {
            const int64_t lanes = opjit_ir_find_work(s, r, &w) ? s->target->vector_bytes / w.size : 1;
            groups = (opjit_ir_longest(s->f, ir_operand(s->f, r, 0), ir_operand(s->f, r, 1)) - 1) / lanes + 1;
        }
        most = groups > most ? groups : most;
    }
    return most;
}

/* A power of two of at least a warp; 0: not a GPU. */
static uint32_t team_for(scheduler *s)
{
    const uint32_t warp = rt_target_team(s->target);
    const ir_ref body = ir_at(s->f, s->stage)->body;
    if (warp == 0)
        return 0;
    const bool reduces = has(s->f, body, IR_ACC, IR_OUT), keeps = has(s->f, body, IR_STORE, IR_SCRATCH);
    const int64_t threads = reduces ? warps_of(s) * warp : keeps ? warp : longest_row(s, body);
    uint32_t team = warp;
    while (team < MOST_THREADS && team < threads)
        team *= 2;
    return team;
}

void opjit_ir_choose_team(scheduler *s)
{
    s->team = team_for(s);
    s->f->nodes[s->stage].vec = (uint16_t)s->team;
    if (s->team > 0)
        ir_took(s->f, IR_STEP_TEAM);
}
