/* SPDX-License-Identifier: Apache-2.0 */
/* facts.c - the facts of a loop, found before anything is chosen for it: its bounds, what its body is, what the
 * schedule asks for.  Reads the IR and the survey's results, and nothing that is chosen. */
#include "codegen/plan.h"
#include "codegen/softops/kept.h"
#include "ir/eval/numerics.h"

static bool has_loop(const ir_func *ir, ir_ref first)
{
    for (ir_ref s = first; s != 0; s = ir_at(ir, s)->next)
        if (ir_at(ir, s)->op == IR_FOR || ir_at(ir, s)->op == IR_ACC)
            return true;
    return false;
}

static bool has_vectors(const ir_node *n)
{
    return n->vec > 1 && n->vec <= CG_MAX_LANES && is_power_of_two(n->vec) && n->imm == 1;
}

/* Whether there is more than copies and selects: floats that are computed or reduced. */
static bool has_arithmetic(const ir_func *ir, ir_ref first)
{
    const ir_node *n = ir_at(ir, first), *value = ir_at(ir, ir_operand(ir, first, 0));
    if (n->op != IR_STORE || n->next != 0)
        return n->op == IR_LET || n->op == IR_UPD;
    return ir_is_float((ir_type)value->type) && value->op != IR_LOAD && value->op != IR_SELECT &&
           value->op != IR_CONST && value->op != IR_GET;
}

/* For how many copies mathematical functions are called in it; 0: none are. */
static uint32_t calls_of(const cg_func *f, ir_ref first)
{
    uint32_t calls = 0;
    for (ir_ref s = first; s != 0; s = ir_at(f->ir, s)->next)
        for (uint32_t i = 0; i < ir_at(f->ir, s)->count; i++)
            calls = opjit_cg_fewer_calls(calls, f->info[ir_operand(f->ir, s, i)].calls);
    return calls;
}

/* The width of the widest element that the loop stores or accumulates. */
static uint32_t data_bits(const ir_func *ir, ir_ref first)
{
    uint32_t bits = 8;
    for (ir_ref s = first; s != 0; s = ir_at(ir, s)->next) {
        const ir_node *n = ir_at(ir, s);
        const ir_type type = n->op == IR_STORE ? ir->tensors[n->ref].type
                             : n->op == IR_UPD ? (ir_type)ir_at(ir, ir_operand(ir, s, 0))->type
                                               : IR_I8;
        const uint32_t size = 8 * opjit_ir_type_size(type);
        bits = size > bits ? size : bits;
    }
    return bits;
}

/* Whether the loop is a line of one store, of at most four vectors. */
static bool is_edge(const cg_func *f, ir_ref loop)
{
    const ir_node *n = ir_at(f->ir, loop), *s = n->body ? ir_at(f->ir, n->body) : NULL;
    if (!(n->flags & (IR_FOR_HEAD | IR_FOR_TAIL)) || n->vec < 2 || n->imm != 1 || !s || s->op != IR_STORE || s->next)
        return false;
    const uint32_t bytes = n->vec * opjit_ir_type_size(f->ir->tensors[s->ref].type);
    return IR_LINE % bytes == 0 && IR_LINE / bytes <= 4 && opjit_cg_contiguous(f, n->body, n->ref, 1);
}

/* Whether the loop is over the rows of blocks to be transposed: lets, and a loop with lanes. */
static bool is_over_rows(const cg_func *f, const ir_node *n)
{
    ir_ref s = n->body;
    while (s && ir_at(f->ir, s)->op == IR_LET)
        s = ir_at(f->ir, s)->next;
    return (n->flags & IR_FOR_TRANSPOSE) && has_vectors(n) && s && ir_at(f->ir, s)->op == IR_FOR &&
           !ir_at(f->ir, s)->next && !is_edge(f, s) && !has_loop(f->ir, ir_at(f->ir, s)->body);
}

/* Whether a vector of the loop is one step of the accumulator's lanes, which what changes nothing may be beside. */
static bool is_one_step(const cg_func *f, ir_ref upd, const ir_node *loop)
{
    const ir_node *acc = ir_at(f->ir, ir_at(f->ir, upd)->ref);
    const cg_residues with = opjit_cg_residues(f);
    uint64_t rest;
    return acc->imm >= loop->vec && !ir_kind_is_arg((ir_kind)acc->kind) && acc->kind != IR_DOT &&
           opjit_ir_type_size((ir_type)acc->type) >= 4 &&
           opjit_cg_residue(&with, ir_operand(f->ir, ir_at(f->ir, loop->ref)->ref, 0), loop->vec, &rest) && rest == 0;
}

static bool is_maskable(const cg_func *f, const ir_node *loop)
{
    if (!(loop->flags & IR_FOR_TAIL_MASK) || !opjit_rt_target_has_masks(f->target))
        return false;
    for (ir_ref s = loop->body; s != 0; s = ir_at(f->ir, s)->next)
        if ((ir_at(f->ir, s)->op == IR_UPD && !is_one_step(f, s, loop)) ||
            (ir_at(f->ir, s)->op == IR_STORE && !opjit_cg_contiguous(f, s, loop->ref, (int64_t)loop->imm)))
            return false;
    return true;
}

/* --- bounds ------------------------------------------------------------------------------------------------------- */

static int64_t steps_in(int64_t distance, int64_t step)
{
    return distance <= 0 ? 0 : (distance - 1) / step + 1;
}

/* Sets the iterations from the least and most of hi - lo.  If both are the same modulo the vector's lanes, their
 * distance is 0 modulo these. */
static void find_bounds(const cg_func *f, cg_facts *is)
{
    int64_t d, least = INT64_MIN, most = INT64_MAX;
    uint64_t gap;
    if (opjit_ir_span(f->ir, is->lo, is->hi, &d))
        is->span = most = d;
    if (opjit_ir_span(f->ir, is->hi, is->lo, &d)) {
        is->fixed = most > -INT64_MAX && most < INT64_MAX && d == -most;
        least = d != INT64_MIN ? -d : INT64_MIN;
    }
    if (is->lanes > 1 && most <= INT64_MAX / 2 && opjit_cg_gap(f, is->lo, is->hi, is->lanes, &gap) && gap == 0) {
        most = most < 0 ? most : most - most % is->lanes;
        least = least <= 0 ? least : (least + is->lanes - 1) / is->lanes * is->lanes;
    }
    is->ordered = least >= 0;
    is->least = steps_in(least, is->step);
    is->most = steps_in(most, is->step);
}

static void find_store(const cg_func *f, cg_facts *is)
{
    const ir_node *s = ir_at(f->ir, is->body);
    if (s->op != IR_STORE || s->next != 0)
        return;
    is->store.value = ir_operand(f->ir, is->body, 0);
    is->store.tensor = s->ref;
    is->store.contiguous = opjit_cg_contiguous(f, is->body, is->var, 1);
    const cg_info *value = &f->info[is->store.value];
    is->store.uniform = !(value->vary >> is->depth & 1);
    is->store.repeatable = !value->fresh && !value->stays;
}

void opjit_cg_find_facts(const cg_func *f, ir_ref around, ir_ref loop, uint32_t depth, bool in_block, cg_facts *out)
{
    const ir_node *n = ir_at(f->ir, loop);
    cg_facts *is = out;
    *is = (cg_facts){ .loop = loop,
                      .var = n->ref,
                      .body = n->body,
                      .lo = ir_operand(f->ir, loop, 0),
                      .hi = ir_operand(f->ir, loop, 1),
                      .around = around,
                      .depth = depth,
                      .in_block = in_block,
                      .step = n->imm > 0 && n->imm <= INT64_MAX ? (int64_t)n->imm : 1,
                      .span = INT64_MAX };
    is->nested = has_loop(f->ir, n->body);
    is->rows = !in_block && is_over_rows(f, n);
    is->edge = !in_block && is_edge(f, loop);
    is->alone = ir_at(f->ir, around)->body == loop && n->next == 0;
    const bool vectors = has_vectors(n) && !is->nested;
    is->lanes = vectors ? n->vec : 1;
    is->unroll = is->rows ? n->vec : n->unroll > 1 && n->unroll <= CG_MOST_COPIES && !is->nested ? n->unroll : 1;
    is->bits = data_bits(f->ir, n->body);
    is->arithmetic = has_arithmetic(f->ir, n->body);
    is->distributed = (n->flags & IR_FOR_DISTRIBUTE) != 0;
    is->calls = calls_of(f, n->body);
    is->updates = ir_at(f->ir, n->body)->op == IR_UPD;
    is->nontemporal = (n->flags & IR_FOR_NT) != 0;
    is->maskable = vectors && is_maskable(f, n);
    is->overlaps = (vectors || is->rows) && (n->flags & IR_FOR_TAIL_OVERLAP) != 0;
    const bool early = opjit_cg_when(f, is->lo) != CG_HERE && opjit_cg_when(f, is->hi) != CG_HERE;
    is->early = depth == 1 && early;
    is->same = early && f->info[is->lo].inside == 0 && f->info[is->hi].inside == 0;
    find_store(f, is);
    find_bounds(f, is);
}
