/* SPDX-License-Identifier: Apache-2.0 */
/* loop.c - a loop as its plan says: its bounds, what is computed before it, its cuts, and the body for a piece. */
#include "codegen/stores/pieces.h"

/* --- a piece ------------------------------------------------------------------------------------------------------ */

void opjit_cg_piece(const cg_pieces *p, uint32_t lanes, uint32_t copies, LLVMValueRef iv)
{
    cg_func *f = p->f;
    const ir_ref body = p->plan->is.body;
    if (p->plan->is.rows && copies > 1)
        opjit_cg_transpose_rows(f, body, copies, iv);
    else
        opjit_cg_copies(f, body, lanes, copies, iv);
}

/* --- whole vectors ------------------------------------------------------------------------------------------------ */

static void put_round(const cg_pieces *p, const cg_cut *cut, LLVMValueRef iv)
{
    const bool held = cut->accumulators == CG_ACC_ROUND;
    if (held)
        opjit_cg_hold_load(p->f, p->plan->is.body, cut->lanes);
    if (cut->binades)
        opjit_cg_put_halves(p, iv);
    else
        opjit_cg_piece(p, cut->lanes, cut->copies, iv);
    if (held)
        opjit_cg_hold_store(p->f, p->plan->is.body);
}

/* The loop from r->pos to end, which runs at least once if the guard holds (NULL: always). */
static void emit_rounds(const cg_pieces *p, const cg_cut *cut, const cg_range *r, LLVMValueRef end, LLVMValueRef guard)
{
    cg_func *f = p->f;
    const cg_facts *is = &p->plan->is;
    const bool around = cut->accumulators == CG_ACC_LOOP, blocks = is->nested || cut->binades;
    LLVMBasicBlockRef after = around && guard ? opjit_cg_if_begin(f, guard) : NULL;
    if (around)
        opjit_cg_hold_load(f, is->body, cut->lanes);
    LLVMBasicBlockRef before = LLVMGetInsertBlock(f->b);
    cg_count c;
    LLVMValueRef iv = r->early && !blocks && !around
                          ? opjit_cg_count_begin_early(f, &c, r->pos, guard)
                          : opjit_cg_count_begin(f, &c, blocks, r->pos, around ? NULL : guard);
    cg_loop *loop = &f->loops[f->loop_count - 1];
    loop->slot = c.slot;
    loop->home = c.body;
    if (around)
        opjit_cg_hold_begin(f, is->body, before);
    put_round(p, cut, iv);
    if (around)
        opjit_cg_hold_next(f, is->body);
    loop->slot = NULL;
    opjit_cg_count_end(f, &c, (int64_t)cut->lanes * cut->copies * is->step, end);
    if (around)
        opjit_cg_hold_store(f, is->body);
    if (after)
        opjit_cg_if_end(f, after);
}

/* The iterations in whole rounds of the cut; *rest: the others. */
static LLVMValueRef whole_rounds(cg_func *f, const cg_cut *cut, LLVMValueRef count, LLVMValueRef *rest)
{
    const int64_t size = (int64_t)cut->lanes * cut->copies;
    if (cut->rest >= 0) {
        *rest = cg_number(f, cut->rest);
        return opjit_cg_sub(f, count, *rest);
    }
    *rest = is_power_of_two((uint64_t)size) ? LLVMBuildAnd(f->b, count, cg_number(f, size - 1), "")
                                            : LLVMBuildURem(f->b, count, cg_number(f, size), "");
    return LLVMBuildSub(f->b, count, *rest, "");
}

static void emit_whole(const cg_pieces *p, const cg_cut *cut, cg_range *r)
{
    cg_func *f = p->f;
    LLVMValueRef rest;
    LLVMBasicBlockRef here = opjit_cg_early_begin(f, r->when);
    LLVMValueRef whole = whole_rounds(f, cut, r->count, &rest);
    LLVMValueRef end = opjit_cg_opaque(f, cut->rest == 0 && r->end ? r->end : cg_advance(p, r->pos, whole));
    opjit_cg_early_end(f, here);
    const bool sure = cut->min >= (int64_t)cut->lanes * cut->copies;
    LLVMValueRef guard = sure ? NULL : LLVMBuildICmp(f->b, LLVMIntNE, end, r->pos, "");
    if (cut->kind == CG_CUT_ROUNDS) {
        emit_rounds(p, cut, r, end, guard);
    } else {
        LLVMBasicBlockRef after = guard ? opjit_cg_if_begin(f, guard) : NULL;
        put_round(p, cut, r->pos);
        if (after)
            opjit_cg_if_end(f, after);
        else if (cut->lanes == 1 && cut->copies > 1 &&
                 !f->peak) /* keeps slow selection from taking copies along */
            opjit_cg_next_block(f);
    }
    r->pos = end;
    r->count = rest;
}

/* --- the remainder ------------------------------------------------------------------------------------------------ */

static LLVMBasicBlockRef unless_done(cg_func *f, const cg_cut *cut, const cg_range *r)
{
    return cut->min > 0 ? NULL : opjit_cg_if_begin(f, LLVMBuildICmp(f->b, LLVMIntNE, r->count, cg_number(f, 0), ""));
}

/* The remainder is one more copy of the body, with a mask, so that lane numbers are made once for all copies. */
static void emit_tailed(const cg_pieces *p, const cg_cut *cut, const cg_range *r)
{
    cg_func *f = p->f;
    cg_piece own;
    cg_piece_begin(f, &own);
    f->piece->rest = cut->rest;
    opjit_cg_piece(p, cut->lanes, cut->copies, r->pos);
    cg_piece_end(f);
}

static void emit_masked(const cg_pieces *p, const cg_cut *cut, const cg_range *r)
{
    cg_func *f = p->f;
    LLVMBasicBlockRef after = unless_done(f, cut, r);
    cg_piece own;
    opjit_cg_mask_begin(f, &own, cut->lanes,
                        opjit_cg_splat(f, opjit_cg_resize(f, r->count, f->piece->lane_bits, false), cut->lanes));
    opjit_cg_piece(p, cut->lanes, 1, r->pos);
    cg_piece_end(f);
    if (after)
        opjit_cg_if_end(f, after);
}

static void emit_overlap(const cg_pieces *p, const cg_cut *cut, const cg_range *r)
{
    cg_func *f = p->f;
    LLVMBasicBlockRef after = unless_done(f, cut, r);
    cg_piece own;
    cg_piece_begin(f, &own);
    f->piece->shifted = true;
    opjit_cg_piece(p, cut->lanes, 1, opjit_cg_sub(f, cg_advance(p, r->pos, r->count), cg_number(f, cut->lanes)));
    cg_piece_end(f);
    if (after)
        opjit_cg_if_end(f, after);
}

static void emit_part(const cg_pieces *p, const cg_cut *cut, cg_range *r)
{
    cg_func *f = p->f;
    LLVMValueRef lanes = cg_number(f, cut->lanes);
    if (cut->min == cut->max) {
        opjit_cg_piece(p, cut->lanes, 1, r->pos);
        r->pos = cg_advance(p, r->pos, lanes);
        return;
    }
    LLVMBasicBlockRef here = opjit_cg_early_begin(f, r->when);
    LLVMValueRef part = LLVMBuildAnd(f->b, r->count, lanes, ""), pos = r->pos;
    if (cut->lanes > 1)
        r->pos = cg_advance(p, pos, part);
    opjit_cg_early_end(f, here);
    LLVMBasicBlockRef after = opjit_cg_if_begin(f, LLVMBuildICmp(f->b, LLVMIntNE, part, cg_number(f, 0), ""));
    opjit_cg_piece(p, cut->lanes, 1, pos);
    opjit_cg_if_end(f, after);
}

/* --- cuts --------------------------------------------------------------------------------------------------------- */

static void emit_cut(const cg_pieces *p, const cg_cut *cut, cg_range *r)
{
    if (cut->min == cut->max)
        r->count = cg_number(p->f, cut->min);
    switch (cut->kind) {
    case CG_CUT_ROUNDS:
    case CG_CUT_ONCE: emit_whole(p, cut, r); break;
    case CG_CUT_STREAMS: opjit_cg_put_streams(p, cut->copies, cut->min, cut->max, r); break;
    case CG_CUT_TAILED: emit_tailed(p, cut, r); break;
    case CG_CUT_MASKED: emit_masked(p, cut, r); break;
    case CG_CUT_OVERLAP: emit_overlap(p, cut, r); break;
    case CG_CUT_PART: emit_part(p, cut, r); break;
    }
}

void opjit_cg_put_cuts(const cg_pieces *p, cg_range *r)
{
    for (uint32_t i = 0; i < p->plan->cut_count; i++)
        emit_cut(p, &p->plan->cuts[i], r);
}

/* --- the loop ----------------------------------------------------------------------------------------------------- */

static cg_range emit_bounds(cg_func *f, const cg_facts *is, bool early)
{
    cg_range r = { .early = early, .when = is->same && f->stage->same ? CG_AT_ENTRY : early ? CG_EARLY : CG_HERE };
    LLVMBasicBlockRef here = opjit_cg_early_begin(f, r.when);
    r.pos = opjit_cg_emit(f, is->lo);
    if (is->least == is->most) {
        r.count = cg_number(f, is->least);
    } else {
        LLVMValueRef end = opjit_cg_emit(f, is->hi), step = cg_number(f, is->step);
        r.count = opjit_cg_sub(f, end, r.pos);
        r.end = is->ordered && is->step == 1 ? end : NULL;
        if (!is->ordered)
            r.count = opjit_cg_limit(f, true, r.count, cg_number(f, 0));
        if (is->step > 1)
            r.count = LLVMBuildUDiv(f->b, LLVMBuildAdd(f->b, r.count, cg_number(f, is->step - 1), ""), step, "");
    }
    opjit_cg_early_end(f, here);
    return r;
}

static void emit_loop(cg_func *f, const cg_plan *plan)
{
    const cg_facts *is = &plan->is;
    cg_range r = emit_bounds(f, is, plan->early);
    const cg_pieces p = { f, plan, r.pos };
    LLVMValueRef count = r.count;
    cg_piece own;
    cg_table table;
    cg_piece_begin(f, &own);
    f->piece->lane_bits = is->bits;
    f->loops[f->loop_count++] = (cg_loop){ .var = is->var, .iv = r.pos, .step = is->step, .threads = 1, .plan = plan };
    opjit_cg_scope_push(f);
    f->loops[f->loop_count - 1].scope = f->next_scope;
    if (plan->tabled)
        opjit_cg_put_table(f, plan, &table);
    if (plan->still == CG_BEFORE_LOOP)
        opjit_cg_hoist(f, is->body, f->loop_count - 1, is->lanes);
    plan->strategy->emit(&p, &r);
    if (plan->point)
        opjit_cg_put_point(f, plan, p.start, count);
    opjit_cg_scope_pop(f);
    f->loop_count--;
    cg_piece_end(f);
}

void opjit_cg_for(cg_func *f, ir_ref statement)
{
    const cg_plan *plan = f->plans[statement];
    if (f->piece->block.on)
        plan = plan->blocked;
    if (plan->strategy->emit_loop)
        plan->strategy->emit_loop(f, plan);
    else
        emit_loop(f, plan);
}
