/* SPDX-License-Identifier: Apache-2.0 */
/* copies.c - the body of a loop for one piece of it: as many copies as the piece has, one after the other, side by
 * side, at two places in turn, or for all rows of a block. */
#include "codegen/stores/pieces.h"

static void one_copy(cg_func *f, ir_ref body)
{
    opjit_cg_scope_push(f);
    f->copy_scope = f->scope_count - 1;
    opjit_cg_block(f, body);
    opjit_cg_scope_pop(f);
}

void opjit_cg_mask_begin(cg_func *f, uint32_t lanes, LLVMValueRef count)
{
    f->mask = LLVMBuildICmp(f->b, LLVMIntULT, opjit_cg_iota(f, f->lane_bits, lanes, 0, 1), count, "");
    f->tail = true;
}

void opjit_cg_mask_end(cg_func *f)
{
    f->mask = NULL;
    f->tail = false;
}

/* --- two places --------------------------------------------------------------------------------------------------- */

/* What is remembered at one front is of no use at the other. */
static bool second_memory(cg_func *f)
{
    for (uint32_t i = 0; i < CG_SLOTS; i++) {
        if (!f->fronts.cache[i])
            f->fronts.cache[i] = ARENA_ARRAY(f->arena, cg_entry, f->ir->node_count);
        if (!f->fronts.cache[i])
            return false;
        memcpy(f->fronts.cache[i], f->cache[i], f->ir->node_count * sizeof(cg_entry));
    }
    return true;
}

static void swap_fronts(cg_func *f)
{
    cg_loop *loop = &f->loops[f->loop_count - 1];
    LLVMValueRef iv = loop->iv;
    cg_entry *cache[CG_SLOTS];
    loop->iv = f->fronts.iv;
    f->fronts.iv = iv;
    memcpy(cache, f->cache, sizeof(cache));
    memcpy(f->cache, f->fronts.cache, sizeof(cache));
    memcpy(f->own, f->cache, sizeof(cache));
    memcpy(f->fronts.cache, cache, sizeof(cache));
}

static void two_streams(cg_func *f, ir_ref body, uint32_t copies)
{
    cg_loop *loop = &f->loops[f->loop_count - 1];
    if (!second_memory(f)) {
        f->failed = true;
        return;
    }
    f->fronts.iv = opjit_cg_add(f, loop->iv, f->fronts.distance);
    for (uint32_t u = 0; u < copies; u++) {
        loop->offset = (int64_t)(u / (2 * CG_STREAM_GROUP) * CG_STREAM_GROUP + u % CG_STREAM_GROUP) * f->lanes;
        one_copy(f, body);
        if (u % CG_STREAM_GROUP == CG_STREAM_GROUP - 1)
            swap_fronts(f);
    }
}

/* --- one piece ---------------------------------------------------------------------------------------------------- */

void opjit_cg_copies(cg_func *f, ir_ref body, uint32_t lanes, uint32_t copies, LLVMValueRef iv)
{
    cg_loop *loop = &f->loops[f->loop_count - 1];
    const cg_plan *plan = loop->plan;
    const uint32_t outer_lanes = f->lanes, outer_copies = f->copies, outer_vec = f->vec;
    const uint32_t copy_scope = f->copy_scope, loop_scope = f->loop_scope, place_scope = f->place_scope;
    f->lanes = lanes;
    f->copies = copies + (f->rest > 0);
    f->vec = f->loop_count - 1;
    f->vectors = f->vectors || lanes > 1;
    loop->iv = iv;
    opjit_cg_scope_push(f);
    f->loop_scope = f->place_scope = f->scope_count - 1;
    if (plan->still == CG_IN_ROUNDS && copies > 1) {
        f->copy_scope = f->loop_scope;
        loop->scope = f->scopes[f->loop_scope];
        opjit_cg_hoist(f, body, f->vec, lanes);
    }
    opjit_cg_scope_push(f);
    f->copy_scope = f->scope_count - 1;
    const bool one = !f->fronts.distance && !f->turn.on, computed = one && !plan->table;
    const bool done =
        lanes > 1 && copies > 1 && !f->mask && computed && opjit_cg_side_by_side(f, body, copies, plan->abreast);
    opjit_cg_scope_pop(f);
    if (f->turn.on)
        opjit_cg_turn_copies(f, body, copies);
    if (f->fronts.distance)
        two_streams(f, body, copies);
    for (uint32_t u = 0; u < copies && one && !done; u++) {
        loop->offset = (int64_t)u * lanes * loop->threads * loop->step;
        one_copy(f, body);
    }
    if (f->rest > 0) {
        loop->offset = (int64_t)copies * lanes * loop->step;
        opjit_cg_mask_begin(f, lanes, opjit_cg_number(f, f->lane_bits, lanes, (uint64_t)f->rest));
        one_copy(f, body);
        opjit_cg_mask_end(f);
    }
    opjit_cg_scope_pop(f);
    loop->offset = 0;
    f->lanes = outer_lanes;
    f->copies = outer_copies;
    f->vec = outer_vec;
    f->copy_scope = copy_scope;
    f->loop_scope = loop_scope;
    f->place_scope = place_scope;
}

void opjit_cg_piece(const cg_pieces *p, uint32_t lanes, uint32_t copies, LLVMValueRef iv)
{
    cg_func *f = p->f;
    const ir_ref body = p->plan->is.body;
    if (p->plan->is.rows && copies > 1) {
        opjit_cg_turn_rows(f, body, copies, iv);
        return;
    }
    const bool holds = lanes == 1 && copies > 1 && opjit_cg_can_hold_one(f, body);
    if (holds)
        opjit_cg_hold_load(f, body);
    opjit_cg_copies(f, body, lanes, copies, iv);
    if (holds)
        opjit_cg_hold_store(f, body);
}
