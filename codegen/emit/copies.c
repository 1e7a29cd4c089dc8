/* SPDX-License-Identifier: Apache-2.0 */
/* copies.c - the body of a loop for one piece of it: as many copies as the piece has, one after the other, side by
 * side, at two places in turn, or for all rows of a block. */
#include "codegen/plan.h"

static void one_copy(cg_func *f, ir_ref body)
{
    opjit_cg_scope_push(f);
    f->piece->copy_scope = f->scope_count - 1;
    opjit_cg_block(f, body);
    opjit_cg_scope_pop(f);
}

/* --- two places --------------------------------------------------------------------------------------------------- */

/* What is remembered at one place is of no use at the other. */
static bool second_memory(cg_func *f)
{
    for (uint32_t i = 0; i < CG_SLOTS; i++) {
        if (!f->other_cache[i])
            f->other_cache[i] = ARENA_ARRAY(f->arena, cg_entry, f->ir->node_count);
        if (!f->other_cache[i])
            return false;
        memcpy(f->other_cache[i], f->cache[i], f->ir->node_count * sizeof(cg_entry));
    }
    return true;
}

static void swap_places(cg_func *f)
{
    cg_loop *loop = &f->loops[f->loop_count - 1];
    LLVMValueRef iv = loop->iv;
    cg_entry *cache[CG_SLOTS];
    loop->iv = f->piece->other_iv;
    f->piece->other_iv = iv;
    memcpy(cache, f->cache, sizeof(cache));
    memcpy(f->cache, f->other_cache, sizeof(cache));
    memcpy(f->own, f->cache, sizeof(cache));
    memcpy(f->other_cache, cache, sizeof(cache));
}

static void two_streams(cg_func *f, ir_ref body, uint32_t copies)
{
    cg_loop *loop = &f->loops[f->loop_count - 1];
    if (!second_memory(f)) {
        f->failed = true;
        return;
    }
    f->piece->other_iv = opjit_cg_add(f, loop->iv, f->piece->distance);
    for (uint32_t u = 0; u < copies; u++) {
        loop->offset = (int64_t)(u / (2 * CG_STREAM_GROUP) * CG_STREAM_GROUP + u % CG_STREAM_GROUP) * f->piece->lanes;
        one_copy(f, body);
        if (u % CG_STREAM_GROUP == CG_STREAM_GROUP - 1)
            swap_places(f);
    }
}

/* --- one piece ---------------------------------------------------------------------------------------------------- */

void opjit_cg_copies(cg_func *f, ir_ref body, uint32_t lanes, uint32_t copies, LLVMValueRef iv)
{
    cg_loop *loop = &f->loops[f->loop_count - 1];
    const cg_plan *plan = loop->plan;
    cg_piece own;
    cg_piece_begin(f, &own);
    f->piece->lanes = lanes;
    f->piece->copies = copies + (f->piece->rest > 0);
    f->piece->vec = f->loop_count - 1;
    f->vectors = f->vectors || lanes > 1;
    loop->iv = iv;
    opjit_cg_scope_push(f);
    f->piece->loop_scope = f->piece->place_scope = f->scope_count - 1;
    if (plan->still == CG_IN_ROUNDS && copies > 1) {
        f->piece->copy_scope = f->piece->loop_scope;
        loop->scope = f->scopes[f->piece->loop_scope];
        opjit_cg_hoist(f, body, f->piece->vec, lanes);
    }
    opjit_cg_scope_push(f);
    f->piece->copy_scope = f->scope_count - 1;
    const bool one = !f->piece->distance && !f->piece->block.on;
    const bool side_by_side = plan->abreast > 0 && lanes > 1 && copies > 1 && copies <= CG_MAX_SIDE_BY_SIDE;
    const bool done = side_by_side && opjit_cg_side_by_side(f, body, copies, plan->abreast);
    opjit_cg_scope_pop(f);
    if (f->piece->block.on)
        opjit_cg_transpose_copies(f, body, copies);
    if (f->piece->distance)
        two_streams(f, body, copies);
    for (uint32_t u = 0; u < copies && one && !done; u++) {
        loop->offset = (int64_t)u * lanes * loop->threads * loop->step;
        one_copy(f, body);
    }
    if (f->piece->rest > 0) {
        loop->offset = (int64_t)copies * lanes * loop->step;
        cg_piece tail;
        opjit_cg_mask_begin(f, &tail, lanes, opjit_cg_number(f, f->piece->lane_bits, lanes, (uint64_t)f->piece->rest));
        one_copy(f, body);
        cg_piece_end(f);
    }
    opjit_cg_scope_pop(f);
    loop->offset = 0;
    cg_piece_end(f);
}
