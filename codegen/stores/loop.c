/* SPDX-License-Identifier: Apache-2.0 */
/* loop.c - a FOR becomes up to three kinds of pieces: whole vectors several at a time, whole vectors, and the
 * remainder: one masked vector where the target has them, else vectors of half, a quarter ... of the width.  What is
 * known of the bounds decides which of them exist at all: code that can't run is not made. */
#include "codegen/stores/pieces.h"

enum {
    MOST_COPIES = 64,   /* in straight-line code without a loop */
    SCALAR_COPIES = 16, /* of single elements there, which wait for each other in a running sum */
};

static bool has_loop(const cg_func *f, ir_ref first)
{
    for (ir_ref s = first; s != 0; s = ir_at(f->ir, s)->next)
        if (ir_at(f->ir, s)->op == IR_FOR || ir_at(f->ir, s)->op == IR_ACC)
            return true;
    return false;
}

/* --- one piece ---------------------------------------------------------------------------------------------------- */

void opjit_cg_copy(cg_func *f, ir_ref body)
{
    opjit_cg_scope_push(f);
    f->copy_scope = f->scope_count - 1;
    opjit_cg_block(f, body);
    opjit_cg_scope_pop(f);
}

/* What follows is for the first lanes alone, as many as the vector `count` has in each lane. */
static void begin_mask(cg_func *f, uint32_t lanes, LLVMValueRef count)
{
    f->mask = LLVMBuildICmp(f->b, LLVMIntULT, opjit_cg_iota(f, f->lane_bits, lanes, 0, 1), count, "");
    f->tail = true;
}

static void end_mask(cg_func *f)
{
    f->mask = NULL;
    f->tail = false;
}

void opjit_cg_copies(cg_func *f, ir_ref body, uint32_t lanes, uint32_t copies, LLVMValueRef iv)
{
    cg_loop *loop = &f->loops[f->loop_count - 1];
    const uint32_t outer_lanes = f->lanes, outer_copies = f->copies, outer_vec = f->vec;
    const uint32_t copy_scope = f->copy_scope, loop_scope = f->loop_scope, place_scope = f->place_scope;
    f->lanes = lanes;
    f->copies = copies + (f->rest > 0);
    f->vec = f->loop_count - 1;
    f->vectors = f->vectors || lanes > 1;
    loop->iv = iv;
    opjit_cg_scope_push(f);
    f->loop_scope = f->place_scope = f->scope_count - 1;
    if (f->sinks && copies > 1 && !f->table) {
        f->copy_scope = f->loop_scope;
        loop->scope = f->scopes[f->loop_scope];
        opjit_cg_hoist(f, body, f->vec, lanes);
    }
    opjit_cg_scope_push(f);
    f->copy_scope = f->scope_count - 1;
    const bool one = !f->fronts.distance && !f->turn.on, computed = one && !f->table;
    const bool done = lanes > 1 && copies > 1 && !f->mask && computed && opjit_cg_side_by_side(f, body, copies);
    opjit_cg_scope_pop(f);
    if (f->turn.on)
        opjit_cg_turn_copies(f, body, copies);
    if (f->fronts.distance)
        opjit_cg_front_round(f, body, copies);
    for (uint32_t u = 0; u < copies && one && !done; u++) {
        loop->offset = (int64_t)u * lanes * loop->threads * loop->step;
        opjit_cg_copy(f, body);
    }
    if (f->rest > 0) {
        loop->offset = (int64_t)copies * lanes * loop->step;
        begin_mask(f, lanes, opjit_cg_number(f, f->lane_bits, lanes, (uint64_t)f->rest));
        opjit_cg_copy(f, body);
        end_mask(f);
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
    if (p->halves && copies == CG_HALF_COPIES) {
        opjit_cg_put_halves(f, p->body, lanes, p->unroll, iv);
        return;
    }
    if (p->turn && copies > 1) {
        opjit_cg_turn_rows(f, p->body, copies, iv);
        return;
    }
    const bool holds = lanes == 1 && copies > 1 && opjit_cg_can_hold_one(f, p->body);
    if (holds)
        opjit_cg_hold_load(f, p->body);
    opjit_cg_copies(f, p->body, lanes, copies, iv);
    if (holds)
        opjit_cg_hold_store(f, p->body);
}

/* --- whole vectors ------------------------------------------------------------------------------------------------ */

/* The remainder after whole vectors of `size` iterations, if it is the same for all runs of the loop; else -1. */
int64_t opjit_cg_known_rest(const cg_pieces *p, uint64_t size)
{
    uint64_t gap;
    if (p->moved || p->step != 1 || !opjit_cg_gap(p->f, p->lo, p->hi, size, &gap))
        return -1;
    return gap == 0 || p->ordered ? (int64_t)gap : -1; /* an empty loop has no remainder */
}

/* The loop from r->pos to end, which runs at least once where the guard holds (NULL: always). */
static void emit_rounds(const cg_pieces *p, uint32_t lanes, uint32_t copies, const cg_range *r, LLVMValueRef end,
                        LLVMValueRef guard)
{
    cg_func *f = p->f;
    const int64_t size = (int64_t)lanes * copies * p->step;
    const bool holds =
        r->pos == p->start && p->step == 1 && opjit_cg_can_hold(f, p->body, p->lo, lanes, (uint64_t)size);
    const bool around = holds && f->peak; /* at quick what goes round in registers goes to the stack twice */
    const bool blocks = has_loop(f, p->body) || (p->halves && copies == CG_HALF_COPIES);
    LLVMBasicBlockRef after = around && guard ? opjit_cg_if_begin(f, guard) : NULL;
    if (around)
        opjit_cg_hold_load(f, p->body);
    LLVMBasicBlockRef before = LLVMGetInsertBlock(f->b);
    cg_count c;
    LLVMValueRef iv = r->early && !blocks ? opjit_cg_count_begin_early(f, &c, r->pos, guard)
                                          : opjit_cg_count_begin(f, &c, blocks, r->pos, around ? NULL : guard);
    cg_loop *loop = &f->loops[f->loop_count - 1];
    loop->slot = c.slot;
    loop->home = c.body;
    if (around)
        opjit_cg_hold_begin(f, p->body, before);
    else if (holds)
        opjit_cg_hold_load(f, p->body);
    opjit_cg_piece(p, lanes, copies, iv);
    if (around)
        opjit_cg_hold_next(f, p->body);
    else if (holds)
        opjit_cg_hold_store(f, p->body);
    loop->slot = NULL;
    opjit_cg_count_end(f, &c, size, end);
    if (around)
        opjit_cg_hold_store(f, p->body);
    if (after)
        opjit_cg_if_end(f, after);
}

/* As many times lanes x copies iterations as there are; the rest stays in *r. */
void opjit_cg_whole(const cg_pieces *p, uint32_t lanes, uint32_t copies, cg_range *r)
{
    cg_func *f = p->f;
    const int64_t size = (int64_t)lanes * copies;
    const int64_t known = r->min == r->max ? r->min % size : opjit_cg_known_rest(p, (uint64_t)size);
    if (r->max < size) {
        if (known >= 0)
            *r = (cg_range){ r->pos, cg_number(f, known), r->end, known, known, r->early };
        return;
    }
    LLVMValueRef rest, whole;
    LLVMBasicBlockRef here = opjit_cg_early_begin(f, r->early);
    if (r->min == r->max) {
        rest = cg_number(f, known);
        whole = cg_number(f, r->min - known);
    } else if (known >= 0) {
        rest = cg_number(f, known);
        whole = opjit_cg_sub(f, r->count, rest);
    } else {
        rest = is_power_of_two((uint64_t)size) ? LLVMBuildAnd(f->b, r->count, cg_number(f, size - 1), "")
                                               : LLVMBuildURem(f->b, r->count, cg_number(f, size), "");
        whole = LLVMBuildSub(f->b, r->count, rest, "");
    }
    LLVMValueRef end = opjit_cg_opaque(f, known == 0 && r->end ? r->end : cg_advance(p, r->pos, whole));
    opjit_cg_early_end(f, here);
    LLVMValueRef guard = r->min < size ? LLVMBuildICmp(f->b, LLVMIntNE, end, r->pos, "") : NULL;
    if (r->max >= 2 * size) {
        emit_rounds(p, lanes, copies, r, end, guard);
    } else {
        LLVMBasicBlockRef after = guard ? opjit_cg_if_begin(f, guard) : NULL;
        opjit_cg_piece(p, lanes, copies, r->pos);
        if (after)
            opjit_cg_if_end(f, after);
        else if (lanes == 1 && copies > 1 && !f->peak) /* what is selected slowly is to take no copies along */
            opjit_cg_next_block(f);
    }
    *r = (cg_range){ end, rest, r->end, known >= 0 ? known : 0, known >= 0 ? known : size - 1, r->early };
}

/* --- the remainder ------------------------------------------------------------------------------------------------ */

static void emit_masked(const cg_pieces *p, cg_range *r)
{
    cg_func *f = p->f;
    LLVMBasicBlockRef after = NULL;
    if (r->min == 0)
        after = opjit_cg_if_begin(f, LLVMBuildICmp(f->b, LLVMIntNE, r->count, cg_number(f, 0), ""));
    begin_mask(f, p->lanes, opjit_cg_splat(f, opjit_cg_resize(f, r->count, f->lane_bits, false), p->lanes));
    opjit_cg_piece(p, p->lanes, 1, r->pos);
    end_mask(f);
    if (after)
        opjit_cg_if_end(f, after);
}

static void emit_overlap(const cg_pieces *p, cg_range *r)
{
    cg_func *f = p->f;
    LLVMBasicBlockRef after = NULL;
    if (r->min == 0)
        after = opjit_cg_if_begin(f, LLVMBuildICmp(f->b, LLVMIntNE, r->count, cg_number(f, 0), ""));
    f->shifted = true;
    opjit_cg_piece(p, p->lanes, 1, opjit_cg_sub(f, cg_advance(p, r->pos, r->count), cg_number(f, p->lanes)));
    f->shifted = false;
    if (after)
        opjit_cg_if_end(f, after);
}

static void emit_halves(const cg_pieces *p, cg_range *r)
{
    cg_func *f = p->f;
    for (uint32_t lanes = p->lanes / 2; lanes > 0; lanes /= 2) {
        if (r->max < lanes)
            continue;
        if (r->min == r->max) {
            if (!(r->min & lanes))
                continue;
            opjit_cg_piece(p, lanes, 1, r->pos);
            r->pos = cg_advance(p, r->pos, cg_number(f, lanes));
            continue;
        }
        LLVMBasicBlockRef here = opjit_cg_early_begin(f, r->early);
        LLVMValueRef part = LLVMBuildAnd(f->b, r->count, cg_number(f, lanes), ""), pos = r->pos;
        if (lanes > 1)
            r->pos = cg_advance(p, pos, part);
        opjit_cg_early_end(f, here);
        LLVMBasicBlockRef after = opjit_cg_if_begin(f, LLVMBuildICmp(f->b, LLVMIntNE, part, cg_number(f, 0), ""));
        opjit_cg_piece(p, lanes, 1, pos);
        opjit_cg_if_end(f, after);
    }
}

/* --- what is known of the bounds ---------------------------------------------------------------------------------- */

/* Bounds of hi - lo.  Where both are the same modulo the vector's lanes, so is their distance 0. */
static void distance(cg_func *f, ir_ref lo, ir_ref hi, uint32_t lanes, int64_t *min, int64_t *max)
{
    int64_t d;
    uint64_t gap;
    *max = opjit_ir_span(f->ir, lo, hi, &d) ? d : INT64_MAX;
    *min = opjit_ir_span(f->ir, hi, lo, &d) && d != INT64_MIN ? -d : INT64_MIN;
    if (lanes < 2 || *max > INT64_MAX / 2 || !opjit_cg_gap(f, lo, hi, lanes, &gap) || gap != 0)
        return;
    *max = *max < 0 ? *max : *max - *max % lanes;
    *min = *min <= 0 ? *min : (*min + lanes - 1) / lanes * lanes;
}

static int64_t steps_in(int64_t distance, int64_t step)
{
    return distance <= 0 ? 0 : (distance - 1) / step + 1;
}

/* More than copies and choices: floats that are computed, or reduced. */
static bool has_arithmetic(const cg_func *f, ir_ref first)
{
    const ir_node *n = ir_at(f->ir, first), *value = ir_at(f->ir, ir_operand(f->ir, first, 0));
    if (n->op != IR_STORE || n->next != 0)
        return n->op == IR_LET || n->op == IR_UPD;
    return ir_is_float((ir_type)value->type) && value->op != IR_LOAD && value->op != IR_SELECT &&
           value->op != IR_CONST && value->op != IR_GET;
}

/* Width of the elements that the loop is about: the widest one it stores or accumulates. */
static uint32_t data_bits(const cg_func *f, ir_ref first)
{
    uint32_t bits = 8;
    for (ir_ref s = first; s != 0; s = ir_at(f->ir, s)->next) {
        const ir_node *n = ir_at(f->ir, s);
        const ir_type type = n->op == IR_STORE ? f->ir->tensors[n->ref].type
                             : n->op == IR_UPD ? (ir_type)ir_at(f->ir, ir_operand(f->ir, s, 0))->type
                                               : IR_I8;
        const uint32_t size = 8 * opjit_ir_type_size(type);
        bits = size > bits ? size : bits;
    }
    return bits;
}

/* A loop over the rows of blocks to be turned: lets, and a loop with lanes. */
static bool is_turn(const cg_func *f, const ir_node *n)
{
    ir_ref s = n->body;
    while (s && ir_at(f->ir, s)->op == IR_LET)
        s = ir_at(f->ir, s)->next;
    return (n->flags & IR_FOR_TURN) && n->vec > 1 && n->vec <= CG_MAX_LANES && is_power_of_two(n->vec) && n->imm == 1 &&
           !f->turn.on && s && ir_at(f->ir, s)->op == IR_FOR && !ir_at(f->ir, s)->next && !opjit_cg_is_edge(f, s) &&
           !has_loop(f, ir_at(f->ir, s)->body);
}

static bool can_mask(const cg_func *f, const ir_node *loop)
{
    if (!(loop->flags & IR_FOR_TAIL_MASK) || !opjit_rt_target_has_masks(f->target))
        return false;
    for (ir_ref s = loop->body; s != 0; s = ir_at(f->ir, s)->next)
        if (ir_at(f->ir, s)->op == IR_UPD ||
            (ir_at(f->ir, s)->op == IR_STORE && !opjit_cg_contiguous(f, s, loop->ref, (int64_t)loop->imm)))
            return false;
    return true;
}

/* --- the loop ----------------------------------------------------------------------------------------------------- */

/* As many vectors as what is left of the loop after rounds of `unroll` is known to be a multiple of. */
static uint32_t copies_in_rest(const cg_pieces *p)
{
    uint32_t copies = p->unroll / 2;
    while (copies > 1 && opjit_cg_known_rest(p, (uint64_t)p->lanes * copies) != 0)
        copies /= 2;
    return copies > 1 ? copies : 1;
}

void opjit_cg_pieces(const cg_pieces *p, cg_range *r)
{
    cg_func *const f = p->f;
    const uint32_t most = p->lanes == 1 && p->unroll <= SCALAR_COPIES ? SCALAR_COPIES : MOST_COPIES;
    const uint32_t times = p->unroll > MOST_COPIES / 4 ? p->unroll : 4 * p->unroll;
    const uint32_t copies = times < most ? times : most;
    const bool straight = !has_loop(f, p->body) && !f->turn.on;
    const bool few = r->min == r->max && straight;
    const uint32_t fronts = opjit_cg_front_copies(p, r);
    if (fronts > 0)
        opjit_cg_put_fronts(p, fronts, r);
    if (p->halves)
        opjit_cg_whole(p, p->lanes, CG_HALF_COPIES, r);
    if (few && p->mask && !p->halves && r->max <= (int64_t)p->lanes * copies && r->max > p->lanes && p->step == 1 &&
        !fronts) {
        f->rest = r->max % p->lanes; /* what depends on the place of lanes is found once */
        opjit_cg_piece(p, p->lanes, (uint32_t)(r->max / p->lanes), r->pos);
        f->rest = 0;
        return;
    }
    if (few && r->max <= (int64_t)p->lanes * copies && r->max >= p->lanes)
        opjit_cg_whole(p, p->lanes, (uint32_t)(r->max / p->lanes), r);
    else
        opjit_cg_whole(p, p->lanes, p->unroll, r);
    const bool known = r->min == r->max && r->max >= p->lanes && straight;
    opjit_cg_whole(p, p->lanes, known ? (uint32_t)(r->max / p->lanes) : copies_in_rest(p), r);
    if (p->lanes == 1 || r->max == 0)
        return;
    if (p->overlap)
        emit_overlap(p, r);
    else if (p->mask)
        emit_masked(p, r);
    else
        emit_halves(p, r);
}

/* Whether what does not change in the loop is computed in each of its rounds: at quick what another block computes goes
 * to the stack, which takes as long as a vector of the output.  Where a loop is all that its iteration does, and its
 * rounds are long, this happens as often either way. */
static bool sinks(const cg_func *f, ir_ref loop, const cg_pieces *p)
{
    const ir_node *around = ir_at(f->ir, ir_at(f->ir, f->loops[f->loop_count - 2].var)->ref);
    return !f->peak && !f->turn.on && p->lanes > 1 && p->unroll > CG_PEAK_COPIES && around->body == loop &&
           ir_at(f->ir, loop)->next == 0;
}

/* A block of rows, or what is inside of one: whole blocks, of which the last one reaches back. */
static bool reaches_back(const cg_pieces *p)
{
    return p->overlap && (p->turn || p->f->turn.on) && p->ordered &&
           opjit_ir_interval(p->f->ir, p->hi).lo >= (int64_t)p->lanes * p->unroll;
}

static void emit_blocks(const cg_pieces *p, cg_range *r)
{
    cg_func *f = p->f;
    const int64_t size = (int64_t)p->lanes * p->unroll;
    LLVMValueRef hi = cg_advance(p, r->pos, r->count), last = opjit_cg_sub(f, hi, cg_number(f, size));
    f->shifted = true;
    if (r->max <= size) {
        LLVMBasicBlockRef after =
            r->min == 0 ? opjit_cg_if_begin(f, LLVMBuildICmp(f->b, LLVMIntNE, hi, r->pos, "")) : NULL;
        opjit_cg_piece(p, p->lanes, p->unroll, last);
        if (after)
            opjit_cg_if_end(f, after);
    } else {
        LLVMValueRef count =
            LLVMBuildAnd(f->b, opjit_cg_add(f, r->count, cg_number(f, size - 1)), cg_number(f, -size), "");
        LLVMValueRef end = opjit_cg_opaque(f, opjit_cg_add(f, r->pos, count));
        cg_count c;
        LLVMValueRef guard = r->min == 0 ? LLVMBuildICmp(f->b, LLVMIntNE, end, r->pos, "") : NULL;
        LLVMValueRef at = opjit_cg_count_begin(f, &c, false, r->pos, guard);
        opjit_cg_piece(p, p->lanes, p->unroll, opjit_cg_limit(f, false, at, last));
        opjit_cg_count_end(f, &c, size, end);
    }
    f->shifted = false;
}

void opjit_cg_for(cg_func *f, ir_ref statement)
{
    if (!f->turn.on && opjit_cg_is_edge(f, statement)) {
        opjit_cg_row_edge(f, statement);
        return;
    }
    const ir_node *n = ir_at(f->ir, statement);
    const ir_ref lo = ir_operand(f->ir, statement, 0), hi = ir_operand(f->ir, statement, 1);
    const uint32_t lane_bits = f->lane_bits;
    if (n->flags & IR_FOR_SPREAD) {
        f->lane_bits = data_bits(f, n->body);
        opjit_cg_spread(f, statement);
        f->lane_bits = lane_bits;
        return;
    }
    const bool vectors =
        n->vec > 1 && n->vec <= CG_MAX_LANES && is_power_of_two(n->vec) && n->imm == 1 && !has_loop(f, n->body);
    const bool turn = is_turn(f, n);
    const int64_t step = n->imm > 0 && n->imm <= INT64_MAX ? (int64_t)n->imm : 1;
    cg_pieces p = { .f = f, .body = n->body, .lo = lo, .hi = hi, .step = step, .lanes = vectors ? n->vec : 1 };
    p.unroll = turn ? n->vec : n->unroll > 1 && n->unroll <= 64 && !has_loop(f, n->body) ? n->unroll : 1;
    p.cheap = p.unroll > MOST_COPIES / 4;
    if (f->peak && !turn &&
        p.unroll > MOST_COPIES / 4) /* more only amortise what quick does with the loop's variable */
        p.unroll = CG_PEAK_COPIES;
    if (f->peak && (n->flags & IR_FOR_NT) != 0 && p.unroll == CG_PEAK_COPIES && has_arithmetic(f, n->body))
        p.unroll = CG_PEAK_COPIES / 2;
    p.turn = turn;
    p.mask = vectors && can_mask(f, n);
    p.overlap = (vectors || turn) && (n->flags & IR_FOR_TAIL_OVERLAP);
    cg_range r = { .early = f->early && f->loop_count == 1 && opjit_cg_is_early(f, lo) && opjit_cg_is_early(f, hi) };
    distance(f, lo, hi, p.lanes, &r.min, &r.max);
    p.ordered = r.min >= 0;
    r.min = steps_in(r.min, step);
    r.max = steps_in(r.max, step);
    if (r.max == 0)
        return;
    LLVMBasicBlockRef here = opjit_cg_early_begin(f, r.early);
    r.pos = p.start = opjit_cg_emit(f, lo);
    r.end = NULL;
    if (r.min == r.max) {
        r.count = cg_number(f, r.min);
    } else {
        LLVMValueRef end = opjit_cg_emit(f, hi);
        r.count = opjit_cg_sub(f, end, r.pos);
        r.end = p.ordered && step == 1 ? end : NULL;
        if (!p.ordered)
            r.count = opjit_cg_limit(f, true, r.count, cg_number(f, 0));
        if (step > 1)
            r.count =
                LLVMBuildUDiv(f->b, LLVMBuildAdd(f->b, r.count, cg_number(f, step - 1), ""), cg_number(f, step), "");
    }
    opjit_cg_early_end(f, here);
    const bool nontemporal = f->nontemporal, fetches = f->fetches;
    f->nontemporal = (n->flags & IR_FOR_NT) != 0;
    f->fetches = !f->cpu->grid && r.max > (int64_t)p.lanes * CG_PEAK_COPIES && has_arithmetic(f, n->body) &&
                 (f->streams || ir_at(f->ir, n->body)->op == IR_UPD);
    f->lane_bits = data_bits(f, n->body);
    f->loops[f->loop_count++] = (cg_loop){ .var = n->ref, .iv = r.pos, .step = step, .most = r.max, .threads = 1 };
    opjit_cg_scope_push(f);
    f->loops[f->loop_count - 1].scope = f->next_scope;
    const bool fills =
        r.min < r.max && r.max >= p.lanes && opjit_cg_known_rest(&p, p.lanes) != 0 && opjit_cg_stores_one_value(f, &p);
    int64_t part;
    const bool brief = opjit_cg_is_brief(f, statement, &part);
    p.unroll = opjit_cg_ahead_copies(&p, f->lane_bits);
    if (!f->peak && p.unroll < CG_SHORT_COPIES && r.max >= 2 * (int64_t)p.lanes * CG_SHORT_COPIES &&
        opjit_cg_converts_shorts(f, &p))
        p.unroll = CG_SHORT_COPIES;
    f->sinks = !fills && sinks(f, statement, &p);
    f->point = opjit_cg_find_point(f, n->body, p.lanes, r.min);
    LLVMValueRef count = r.count;
    f->table = r.min == r.max ? opjit_cg_make_table(f, n->body, p.lanes, lo, r.max) : NULL;
    p.halves = !f->table && opjit_cg_halves(f, n->body, p.lanes, p.unroll, r.max);
    if (!f->sinks && !f->table)
        opjit_cg_hoist(f, n->body, f->loop_count - 1, p.lanes);
    if (f->fronts.rows)
        opjit_cg_put_two_rows(&p, &r);
    else if (brief)
        opjit_cg_put_brief(&p, &r, part);
    else if (reaches_back(&p))
        emit_blocks(&p, &r);
    else if (fills)
        opjit_cg_put_fill(&p, &r);
    else if (opjit_cg_seeks_alignment(f, &p, &r))
        opjit_cg_put_aligned(&p, &r);
    else
        opjit_cg_pieces(&p, &r);
    f->sinks = false;
    f->table = NULL;
    if (f->point)
        opjit_cg_put_point(f, n->body, p.start, count);
    f->point = 0;
    opjit_cg_scope_pop(f);
    f->loop_count--;
    f->nontemporal = nontemporal;
    f->fetches = fetches;
    f->lane_bits = lane_bits;
}
