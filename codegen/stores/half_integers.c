/* SPDX-License-Identifier: Apache-2.0 */
/* half_integers.c - whole numbers as f16.  AVX512-FP16 converts short integers, a vector at a time.  Elsewhere a loop
 * that stores numbers in equal steps is bound by the conversions.  But numbers of one binade whose distance is an even
 * multiple of the last place are rounded alike, so the bits of their halves have a constant distance, too: a round of
 * numbers of one binade converts its first vectors, and continues by additions.  Other rounds convert all. */
#include "codegen/emit/access.h"
#include "codegen/stores/pieces.h"

enum {
    MOST_HALF = 65535, /* in the last binade, although it rounds to infinity, as the next number would */
    LAST_PLACE = 32,   /* of halves from 32768 on */
};
static const int64_t MOST_INDEX = (int64_t)1 << 40;

/* How far below its interval's end the variable stays wherever the body runs: if a bound is clamp(p, lo, _), with lo
 * the loop's start, it is p there. */
static int64_t slack(const cg_func *f, ir_ref var)
{
    const ir_ref loop = ir_at(f->ir, var)->ref, lo = ir_operand(f->ir, loop, 0);
    const int64_t end = opjit_ir_interval(f->ir, var).hi;
    ir_ref hi = ir_operand(f->ir, loop, 1);
    for (;;) {
        const ir_node *n = ir_at(f->ir, hi);
        if (n->op == IR_GET && ir_at(f->ir, n->ref)->op == IR_LET)
            hi = ir_operand(f->ir, n->ref, 0);
        else if (n->op == IR_DOWN || (n->op == IR_CLAMP && opjit_ir_same(f->ir, ir_operand(f->ir, hi, 1), lo)))
            hi = ir_operand(f->ir, hi, 0);
        else
            break;
    }
    const int64_t bound = opjit_ir_interval(f->ir, hi).hi;
    return bound > -MOST_INDEX && bound <= end && end < MOST_INDEX ? end - (bound - 1) : 0;
}

/* The index of which value is the half, through a float; *step: from one iteration to the next; *i: its interval where
 * the body runs.  0: the value is something else. */
static ir_ref index_of(const cg_func *f, ir_ref value, ir_ref var, int64_t *step, ir_interval *i)
{
    if (ir_at(f->ir, value)->op != IR_CAST || ir_at(f->ir, value)->type != IR_F16)
        return 0;
    const ir_ref elem = ir_operand(f->ir, value, 0);
    if (ir_at(f->ir, elem)->op != IR_ELEM || ir_at(f->ir, elem)->type != IR_F32)
        return 0;
    const ir_ref x = ir_operand(f->ir, elem, 0);
    *i = opjit_ir_interval(f->ir, x);
    if (!opjit_cg_affine(f, x, var, step) || *step == 0 || *step < -MOST_HALF || *step > MOST_HALF)
        return 0;
    const int64_t less = *step * slack(f, var);
    i->hi -= less > 0 && i->hi < INT64_MAX ? less : 0;
    i->lo -= less < 0 && i->lo > INT64_MIN ? less : 0;
    return x;
}

/* --- short integers ----------------------------------------------------------------------------------------------- */

/* The index of which value is the half, if it is a short integer wherever the body of var's loop runs; else 0. */
static ir_ref short_index(const cg_func *f, ir_ref value, ir_ref var, bool *is_signed)
{
    int64_t step;
    ir_interval i;
    const ir_ref x = f->traits->short_halves ? index_of(f, value, var, &step, &i) : 0;
    *is_signed = x != 0 && i.lo >= INT16_MIN && i.hi <= INT16_MAX; /* fast selection knows these */
    return x != 0 && (*is_signed || (i.lo >= 0 && i.hi <= UINT16_MAX)) ? x : 0;
}

bool opjit_cg_converts_shorts(const cg_func *f, const cg_facts *is)
{
    bool is_signed;
    return is->lanes > 1 && is->store.value != 0 && short_index(f, is->store.value, is->var, &is_signed) != 0 &&
           is_signed;
}

LLVMValueRef opjit_cg_short_lanes(cg_func *f, ir_ref node)
{
    bool is_signed;
    const ir_ref var = f->loops[f->loop_count - 1].var;
    const ir_ref x = f->piece->lanes > 1 && !f->piece->mask ? short_index(f, node, var, &is_signed) : 0;
    if (x == 0)
        return NULL;
    LLVMValueRef v = opjit_cg_index_lanes(f, x, 16, f->piece->lanes);
    LLVMTypeRef halves = opjit_cg_float(f, IR_F16, f->piece->lanes);
    v = is_signed ? LLVMBuildSIToFP(f->b, v, halves, "") : LLVMBuildUIToFP(f->b, v, halves, "");
    return LLVMBuildBitCast(f->b, v, opjit_cg_int(f, 16, f->piece->lanes), "");
}

/* --- binades ------------------------------------------------------------------------------------------------------ */

/* The index that becomes the body's value, if its lanes are numbers that one binade rounds alike; else 0. */
static ir_ref halved_index(const cg_func *f, const cg_facts *is, int64_t *step)
{
    ir_interval i;
    const ir_ref x = index_of(f, is->store.value, is->var, step, &i);
    return x != 0 && i.lo >= 0 && i.hi <= MOST_HALF && *step * CG_CHAINS * is->lanes % (2 * LAST_PLACE) == 0 ? x : 0;
}

bool opjit_cg_is_in_binades(const cg_func *f, const cg_plan *plan)
{
    const cg_facts *is = &plan->is;
    int64_t step;
    return f->traits->binades && is->lanes > 1 && !is->nontemporal && !is->in_block && is->store.value != 0 &&
           is->step == 1 && plan->copies < CG_HALF_COPIES && CG_HALF_COPIES % plan->copies == 0 &&
           is->most >= (int64_t)is->lanes * CG_HALF_COPIES * CG_HALF_ROUNDS && is->store.contiguous &&
           halved_index(f, is, &step) != 0;
}

/* Whether the numbers of `count` iterations from iv on are in one binade: positive numbers with the same highest
 * bit. */
static LLVMValueRef in_one_binade(cg_func *f, const cg_facts *is, LLVMValueRef iv, int64_t count)
{
    int64_t step;
    const ir_ref x = halved_index(f, is, &step);
    LLVMValueRef at = opjit_cg_at(f, x, is->var, NULL);
    LLVMValueRef first = opjit_cg_plus(f, at, opjit_cg_times(f, iv, step));
    LLVMValueRef last = opjit_cg_add(f, first, opjit_cg_number(f, 64, 1, (uint64_t)(step * (count - 1))));
    LLVMValueRef differ = LLVMBuildXor(f->b, first, last, ""), both = LLVMBuildAnd(f->b, first, last, "");
    return LLVMBuildICmp(f->b, LLVMIntULE, differ, both, "");
}

/* For numbers of different binades, in rounds of the plan's copies. */
void opjit_cg_put_halves(const cg_pieces *p, LLVMValueRef iv)
{
    cg_func *f = p->f;
    const cg_facts *is = &p->plan->is;
    const uint32_t lanes = is->lanes, copies = p->plan->copies;
    const int64_t size = (int64_t)lanes * CG_HALF_COPIES;
    LLVMBasicBlockRef end = LLVMAppendBasicBlockInContext(f->llvm, f->fn, "");
    LLVMBasicBlockRef others = opjit_cg_if_begin(f, in_one_binade(f, is, iv, size));
    cg_piece own;
    cg_piece_begin(f, &own);
    f->piece->binade = true;
    opjit_cg_copies(f, is->body, lanes, CG_HALF_COPIES, iv);
    cg_piece_end(f);
    opjit_cg_if_leave(f, others, end);
    cg_count c;
    LLVMValueRef at = opjit_cg_count_begin(f, &c, false, iv, NULL);
    f->loops[f->loop_count - 1].slot = NULL; /* its variable is this loop's */
    opjit_cg_copies(f, is->body, lanes, copies, at);
    opjit_cg_count_end(f, &c, (int64_t)lanes * copies, opjit_cg_add(f, iv, cg_number(f, size)));
    opjit_cg_if_end(f, end);
}
