/* SPDX-License-Identifier: Apache-2.0 */
/* held.c - accumulators in registers: of the rounds of a loop, from before it to behind it, or in each round. */
#include "codegen/reduce/accumulator.h"

static uint32_t lanes_of_upd(const cg_func *f, ir_ref s)
{
    return cg_acc_lanes(ir_at(f->ir, ir_at(f->ir, s)->ref), f->accs[ir_at(f->ir, s)->ref]);
}

/* The vectors of `lanes` that the accumulator of an UPD would be in; 0: it can't be in registers. */
static uint32_t vectors_of(const cg_func *f, ir_ref s, uint32_t lanes)
{
    const ir_node *n = ir_at(f->ir, s), *acc = n->op == IR_UPD ? ir_at(f->ir, n->ref) : NULL;
    if (!acc || cg_acc_is_arg(acc) || f->accs[n->ref]->blocked)
        return 0;
    const uint32_t all = lanes_of_upd(f, s);
    if (lanes == 1)
        return all == 1 && !f->cpu->grid ? 1 : 0;
    return acc->imm >= lanes && acc->imm / lanes <= CG_MAX_HELD ? all / lanes : 0;
}

/* Whether a statement from `first` up to s updates the same accumulator. */
static bool was_updated(const cg_func *f, ir_ref first, ir_ref s)
{
    while (first != s && !(ir_at(f->ir, first)->op == IR_UPD && ir_at(f->ir, first)->ref == ir_at(f->ir, s)->ref))
        first = ir_at(f->ir, first)->next;
    return first != s;
}

bool opjit_cg_can_hold(const cg_func *f, ir_ref body, ir_ref lo, uint32_t lanes, uint64_t size)
{
    const cg_residues with = opjit_cg_residues(f);
    bool any = false, all = true;
    for (ir_ref s = body; s != 0; s = ir_at(f->ir, s)->next) {
        const uint32_t vectors = vectors_of(f, s, lanes);
        uint64_t rest;
        any = any || vectors > 0;
        if (ir_at(f->ir, s)->op == IR_UPD && lanes > 1)
            all = all && vectors > 0 && size % ir_at(f->ir, ir_at(f->ir, s)->ref)->imm == 0 &&
                  !was_updated(f, body, s) && opjit_cg_residue(&with, lo, lanes_of_upd(f, s), &rest) && rest == 0;
    }
    return any && all;
}

/* The accumulator that the statement updates if it is held in registers; else NULL. */
static cg_acc *held_by(cg_func *f, ir_ref s)
{
    cg_acc *const a = ir_at(f->ir, s)->op == IR_UPD ? f->accs[ir_at(f->ir, s)->ref] : NULL;
    return a && a->held_count > 0 ? a : NULL;
}

static uint32_t held_lanes(const cg_func *f, ir_ref s, const cg_acc *a)
{
    return lanes_of_upd(f, s) / a->held_count;
}

void opjit_cg_hold_load(cg_func *f, ir_ref body, uint32_t lanes)
{
    for (ir_ref s = body; s != 0; s = ir_at(f->ir, s)->next) {
        const uint32_t vectors = vectors_of(f, s, lanes);
        if (vectors > 0)
            f->accs[ir_at(f->ir, s)->ref]->held_count = vectors;
        cg_acc *const a = held_by(f, s);
        for (uint32_t i = 0; a && i < a->held_count; i++)
            a->held[i] = cg_as_held(f, a,
                                    opjit_cg_acc_values(f, a, a->lane, held_lanes(f, s, a),
                                                        opjit_cg_number(f, 64, 1, i * held_lanes(f, s, a))));
    }
}

void opjit_cg_hold_begin(cg_func *f, ir_ref body, LLVMBasicBlockRef before)
{
    for (ir_ref s = body; s != 0; s = ir_at(f->ir, s)->next) {
        cg_acc *const a = held_by(f, s);
        for (uint32_t i = 0; a && i < a->held_count; i++) {
            a->phis[i] = LLVMBuildPhi(f->b, LLVMTypeOf(a->held[i]), "");
            LLVMAddIncoming(a->phis[i], &a->held[i], &before, 1);
            a->held[i] = a->phis[i];
        }
    }
}

/* What a round has chosen by itself is chosen from once: a chain through all copies would be as long as the round.  The
 * bits are those of the steps in order: the first NaN, else the last of the least or greatest ones. */
static void end_waiting(cg_func *f, ir_ref s)
{
    cg_acc *const a = held_by(f, s);
    for (uint32_t i = 0; a && i < a->held_count; i++) {
        const cg_part round = { .value = a->waits[i] };
        if (round.value)
            a->held[i] = cg_as_held(f, a, opjit_cg_acc_combine(f, ir_at(f->ir, ir_at(f->ir, s)->ref), a,
                                                               (cg_part){ .value = a->held[i] }, round).value);
        a->waits[i] = NULL;
    }
}

void opjit_cg_hold_next(cg_func *f, ir_ref body)
{
    for (ir_ref s = body; s != 0; s = ir_at(f->ir, s)->next)
        end_waiting(f, s);
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(f->b);
    for (ir_ref s = body; s != 0; s = ir_at(f->ir, s)->next) {
        cg_acc *const a = held_by(f, s);
        for (uint32_t i = 0; a && i < a->held_count; i++)
            LLVMAddIncoming(a->phis[i], &a->held[i], &latch, 1);
    }
}

void opjit_cg_hold_store(cg_func *f, ir_ref body)
{
    for (ir_ref s = body; s != 0; s = ir_at(f->ir, s)->next) {
        end_waiting(f, s);
        cg_acc *const a = held_by(f, s);
        for (uint32_t i = 0; a && i < a->held_count; i++)
            opjit_cg_array_write(f, a->lane, cg_acc_bits(a), opjit_cg_number(f, 64, 1, i * held_lanes(f, s, a)),
                                 a->held[i]);
        if (a)
            a->held_count = 0;
    }
}
