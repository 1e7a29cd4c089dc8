/* SPDX-License-Identifier: Apache-2.0 */
/* short_halves.c - halves of whole numbers: which index they are made of, and conversions of short integers. */
#include "codegen/cg.h"
#include "codegen/targets/traits.h"

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

ir_ref opjit_cg_half_index(const cg_func *f, ir_ref value, ir_ref var, int64_t *step, ir_interval *i)
{
    if (ir_at(f->ir, value)->op != IR_CAST || ir_at(f->ir, value)->type != IR_F16)
        return 0;
    const ir_ref elem = ir_operand(f->ir, value, 0);
    if (ir_at(f->ir, elem)->op != IR_ELEM || ir_at(f->ir, elem)->type != IR_F32)
        return 0;
    const ir_ref x = ir_operand(f->ir, elem, 0);
    *i = opjit_ir_interval(f->ir, x);
    if (!opjit_cg_affine(f, x, var, step) || *step == 0 || *step < -CG_MOST_HALF || *step > CG_MOST_HALF)
        return 0;
    const int64_t less = *step * slack(f, var);
    i->hi -= less > 0 && i->hi < INT64_MAX ? less : 0;
    i->lo -= less < 0 && i->lo > INT64_MIN ? less : 0;
    return x;
}

ir_ref opjit_cg_short_index(const cg_func *f, ir_ref value, ir_ref var, bool *is_signed)
{
    int64_t step;
    ir_interval i;
    const ir_ref x = f->traits->short_halves ? opjit_cg_half_index(f, value, var, &step, &i) : 0;
    *is_signed = x != 0 && i.lo >= INT16_MIN && i.hi <= INT16_MAX; /* fast selection knows these */
    return x != 0 && (*is_signed || (i.lo >= 0 && i.hi <= UINT16_MAX)) ? x : 0;
}

LLVMValueRef opjit_cg_short_lanes(cg_func *f, ir_ref node)
{
    bool is_signed;
    const ir_ref var = f->loops[f->loop_count - 1].var;
    const ir_ref x = f->piece->lanes > 1 && !f->piece->mask ? opjit_cg_short_index(f, node, var, &is_signed) : 0;
    if (x == 0)
        return NULL;
    LLVMValueRef v = opjit_cg_index_lanes(f, x, 16, f->piece->lanes);
    LLVMTypeRef halves = opjit_cg_float(f, IR_F16, f->piece->lanes);
    v = is_signed ? LLVMBuildSIToFP(f->b, v, halves, "") : LLVMBuildUIToFP(f->b, v, halves, "");
    return LLVMBuildBitCast(f->b, v, opjit_cg_int(f, 16, f->piece->lanes), "");
}
