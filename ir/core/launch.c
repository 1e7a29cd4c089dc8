/* SPDX-License-Identifier: Apache-2.0 */
/* launch.c - how the stages of a function are launched after pass grid.  Code generation, metadata and tests all use
 * these numbers. */
#include "ir/core/internal.h"
#include "ir/eval/numerics.h"

enum {
    BLOCK = 256,              /* threads: whole warps, and enough of them to hide latencies on any device */
    FOLD_BYTES = 24,          /* what a warp's lanes fold to: a value, its index, whether there is one */
    SHARED = 48 * 1024,       /* shared memory per block that every device provides */
    SHARED_ALONE = 31 * 1024, /* OpenCL provides 32 KiB; the rest is where threads exchange values */
    SCRATCH_ALIGN = 64,
    MOST_TEAMS = 8192, /* with scratch in the workspace: more than any device runs at a time */
};
#define MOST_BLOCKS ((uint64_t)INT32_MAX) /* of a grid; teams loop over further iterations */

/* The scratch that the stage itself touches, up to its last byte.  Offsets are those in the scratch of all stages. */
static uint64_t scratch_of(const ir_func *f)
{
    return align_up(f->scratch_size, SCRATCH_ALIGN);
}

static bool touches_scratch(const ir_func *f, ir_ref first)
{
    for (ir_ref s = first; s; s = ir_at(f, s)->next)
        if ((ir_at(f, s)->op == IR_STORE && f->tensors[ir_at(f, s)->ref].role == IR_SCRATCH) ||
            touches_scratch(f, ir_at(f, s)->body))
            return true;
    return false;
}

static bool accumulates(const ir_func *f, ir_ref first)
{
    for (ir_ref s = first; s; s = ir_at(f, s)->next)
        if (ir_at(f, s)->op == IR_ACC || accumulates(f, ir_at(f, s)->body))
            return true;
    return false;
}

void opjit_ir_launch_of(const ir_func *f, ir_ref stage, ir_launch *out)
{
    const ir_node *n = ir_at(f, stage);
    const uint64_t iterations = (uint64_t)ir_index_value(f, ir_operand(f, stage, 1));
    const uint64_t own = touches_scratch(f, n->body) ? scratch_of(f) : 0;
    const bool alone = (n->flags & IR_STAGE_ALONE) != 0;
    *out =
        (ir_launch){ .team = n->vec, .block = alone || n->vec > IR_REDUCE_LANES ? n->vec : BLOCK, .team_scratch = own };
    out->folds = n->vec > IR_REDUCE_LANES && accumulates(f, n->body) ? n->vec / IR_REDUCE_LANES * FOLD_BYTES : 0;
    const uint64_t shared = (alone ? SHARED_ALONE : SHARED) - out->folds;
    if (own > 0 && own <= shared && n->vec > 1) {
        const uint64_t teams = shared / own;
        if (teams < out->block / n->vec)
            out->block = (uint32_t)teams * n->vec;
        out->shared = (uint32_t)own * (out->block / n->vec);
    }
    const uint64_t teams = out->block / out->team;
    uint64_t needed = iterations;
    if (own > 0 && out->shared == 0 && needed > MOST_TEAMS)
        needed = MOST_TEAMS;
    out->grid = (needed + teams - 1) / teams;
    out->grid = out->grid == 0 ? 1 : out->grid > MOST_BLOCKS ? MOST_BLOCKS : out->grid;
    if (own > 0 && out->shared == 0)
        out->scratch = own * out->grid * teams;
    out->shared += out->folds;
}

uint64_t opjit_ir_grid_workspace(const ir_func *f)
{
    uint64_t most = 0;
    for (ir_ref s = f->body; s; s = ir_at(f, s)->next) {
        ir_launch launch;
        opjit_ir_launch_of(f, s, &launch);
        most = launch.scratch > most ? launch.scratch : most;
    }
    return align_up(f->shared_size, SCRATCH_ALIGN) + most;
}
