/* pass_team.c - how many threads of a GPU do an iteration of a stage.
 *
 * A warp, or a block of several: as many threads as the longest row has vectors, so that a row is one round where that
 * is possible, and every block has work for its threads.  Lanes of accumulators and scratch are a warp's: they have no
 * use for more threads than there are lanes. */
#include "ir/pass_schedule.h"

enum { MOST_THREADS = 256 };

static bool needs_warp(const ir_func *f, ir_ref first)
{
    for (ir_ref s = first; s != 0; s = ir_at(f, s)->next) {
        const ir_node *n = ir_at(f, s);
        if (n->op == IR_ACC || (n->op == IR_STORE && f->tensors[n->ref].role == IR_SCRATCH) || needs_warp(f, n->body))
            return true;
    }
    return false;
}

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
            const int64_t lanes = opjit_ir_find_work(s->f, r, &w) ? s->target->vector_bytes / w.size : 1;
            groups = (opjit_ir_longest(s->f, ir_operand(s->f, r, 0), ir_operand(s->f, r, 1)) - 1) / lanes + 1;
        }
        most = groups > most ? groups : most;
    }
    return most;
}

uint32_t opjit_ir_team_for(scheduler *s)
{
    const uint32_t warp = rt_target_team(s->target);
    const ir_ref body = ir_at(s->f, s->stage)->body;
    if (warp == 0 || needs_warp(s->f, body))
        return warp;
    const int64_t groups = longest_row(s, body);
    uint32_t team = warp;
    while (team < MOST_THREADS && team < groups)
        team *= 2;
    return team;
}
