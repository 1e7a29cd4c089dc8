/* SPDX-License-Identifier: Apache-2.0 */
/* held.c - accumulators in registers: of the rounds of a loop, from before it to behind it, or in each round. */
#include "codegen/reduce/accumulator.h"

static uint32_t lanes_of_upd(const cg_func *f, ir_ref s)
{
    return cg_acc_lanes(ir_at(f->ir, ir_at(f->ir, s)->ref), &f->accs[ir_at(f->ir, s)->ref]);
}

/* The accumulator of an UPD that can be held in registers by rounds of `size` iterations starting at a multiple of its
 * lanes; NULL: it can't. */
static cg_acc *holdable(cg_func *f, ir_ref s, uint32_t lanes, uint64_t size)
{
    const ir_node *n = ir_at(f->ir, s), *acc = n->op == IR_UPD ? ir_at(f->ir, n->ref) : NULL;
    if (!acc || cg_acc_is_arg(acc) || f->accs[n->ref].blocked || acc->imm < lanes || size % acc->imm != 0 ||
        acc->imm / lanes > CG_MAX_HELD)
        return NULL;
    return &f->accs[n->ref];
}

bool opjit_cg_can_hold(cg_func *f, ir_ref body, ir_ref lo, uint32_t lanes, uint64_t size)
{
    const cg_residues with = opjit_cg_residues(f);
    bool any = false, all = lanes > 1;
    for (ir_ref s = body; s != 0; s = ir_at(f->ir, s)->next)
        if (ir_at(f->ir, s)->op == IR_UPD)
            f->accs[ir_at(f->ir, s)->ref].held_count = 0;
    for (ir_ref s = body; all && s != 0; s = ir_at(f->ir, s)->next) {
        cg_acc *const a = holdable(f, s, lanes, size);
        uint64_t rest;
        if (ir_at(f->ir, s)->op != IR_UPD)
            continue;
        any = true;
        all = a && a->held_count == 0 && opjit_cg_residue(&with, lo, lanes_of_upd(f, s), &rest) && rest == 0;
        if (all)
            a->held_count = lanes_of_upd(f, s) / lanes;
    }
    for (ir_ref s = body; !all && s != 0; s = ir_at(f->ir, s)->next)
        if (ir_at(f->ir, s)->op == IR_UPD)
            f->accs[ir_at(f->ir, s)->ref].held_count = 0;
    return any && all;
}

bool opjit_cg_can_hold_one(cg_func *f, ir_ref body)
{
    bool any = false;
    for (ir_ref s = body; s != 0; s = ir_at(f->ir, s)->next) {
        const ir_node *n = ir_at(f->ir, s), *acc = n->op == IR_UPD ? ir_at(f->ir, n->ref) : NULL;
        if (!acc || cg_acc_is_arg(acc) || f->accs[n->ref].blocked || lanes_of_upd(f, s) > 1 || f->cpu->grid)
            continue;
        f->accs[n->ref].held_count = 1;
        any = true;
    }
    return any;
}

/* The accumulator that the statement updates if it is held in registers; else NULL. */
static cg_acc *held_by(cg_func *f, ir_ref s)
{
    cg_acc *const a = ir_at(f->ir, s)->op == IR_UPD ? &f->accs[ir_at(f->ir, s)->ref] : NULL;
    return a && a->held_count > 0 ? a : NULL;
}

static uint32_t held_lanes(const cg_func *f, ir_ref s, const cg_acc *a)
{
    return lanes_of_upd(f, s) / a->held_count;
}

void opjit_cg_hold_load(cg_func *f, ir_ref body)
{
    for (ir_ref s = body; s != 0; s = ir_at(f->ir, s)->next) {
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

void opjit_cg_hold_next(cg_func *f, ir_ref body)
{
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
        cg_acc *const a = held_by(f, s);
        for (uint32_t i = 0; a && i < a->held_count; i++)
            opjit_cg_array_write(f, a->lane, cg_acc_bits(a), opjit_cg_number(f, 64, 1, i * held_lanes(f, s, a)),
                                 a->held[i]);
        if (a)
            a->held_count = 0;
    }
}
