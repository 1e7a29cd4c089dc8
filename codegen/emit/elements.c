/* SPDX-License-Identifier: Apache-2.0 */
/* elements.c - what index expressions become: conditions, and elements.  An affine expression that is compared with
 * something invariant becomes a constant vector compared with the splatted, clamped distance, which fits any lane
 * width. */
#include "codegen/emit/indices.h"

/* --- comparison and conversion ------------------------------------------------------------------------------------ */

static bool is_small(ir_interval i)
{
    return i.lo >= -((int64_t)1 << 61) && i.hi <= (int64_t)1 << 61;
}

/* invariant - affine, in lane 0 of copy 0 */
static LLVMValueRef distance(cg_func *f, ir_ref affine, ir_ref invariant)
{
    return opjit_cg_sub(f, opjit_cg_emit(f, invariant), opjit_cg_base(f, affine));
}

/* Lane number REL distance, from memory: one look-up for all copies. */
static LLVMValueRef compare_window(cg_func *f, ir_ref node, ir_ref affine, ir_ref invariant, bool swapped)
{
    if (!opjit_cg_recall(f, CG_BASE, node)) {
        LLVMValueRef window =
            opjit_cg_lane_window(f, (ir_op)ir_at(f->ir, node)->op, distance(f, affine, invariant), swapped);
        opjit_cg_remember_address(f, CG_BASE, node, f->info[node].fresh ? f->scope_count - 1 : f->piece->loop_scope,
                                  window);
    }
    return opjit_cg_lane_mask(f, opjit_cg_address(f, CG_BASE, node, opjit_cg_int(f, f->piece->lane_bits, 1), 1));
}

/* affine REL invariant: lane * step REL clamp(invariant - base).  NULL: not of that form. */
static LLVMValueRef compare_iota(cg_func *f, ir_ref node, ir_ref affine, ir_ref invariant, bool swapped)
{
    const ir_op op = (ir_op)ir_at(f->ir, node)->op;
    int64_t step, offset;
    if (opjit_cg_varies(f, invariant) || !opjit_cg_lane_step(f, affine, &step, &offset) ||
        !is_small(opjit_ir_interval(f->ir, affine)) || !is_small(opjit_ir_interval(f->ir, invariant)))
        return NULL;
    if (step > (int64_t)1 << 32 || step < -((int64_t)1 << 32))
        return NULL;
    if (step == 1 && !f->cpu->grid && (!f->peak || f->piece->copies > 1) && f->piece->copies <= CG_MAX_WINDOW &&
        op != IR_NE)
        return compare_window(f, node, affine, invariant, swapped);
    const int64_t reach = step * (int64_t)(f->piece->lanes - 1), lo = reach < 0 ? reach : 0, hi = reach < 0 ? 0 : reach;
    const uint32_t bits = cg_wider(f->piece->lane_bits, opjit_cg_bits_for((ir_interval){ lo - 1, hi + 1 }));
    LLVMValueRef d = distance(f, affine, invariant);
    d = opjit_cg_sub(f, d, opjit_cg_like(f, d, offset));
    const ir_interval x = opjit_ir_interval(f->ir, affine), y = opjit_ir_interval(f->ir, invariant);
    const bool fits = !f->piece->tail && !f->piece->shifted &&
                      opjit_cg_bits_for((ir_interval){ y.lo - x.hi + lo, y.hi - x.lo + hi }) <= bits;
    if (!fits)
        d = opjit_cg_choice(f, false, opjit_cg_choice(f, true, d, opjit_cg_like(f, d, lo - 1)),
                            opjit_cg_like(f, d, hi + 1));
    d = opjit_cg_splat(f, opjit_cg_resize(f, d, bits, true), f->piece->lanes);
    LLVMValueRef l = opjit_cg_iota(f, bits, f->piece->lanes, 0, step);
    return swapped ? opjit_cg_compare(f, op, IR_INDEX, d, l) : opjit_cg_compare(f, op, IR_INDEX, l, d);
}

LLVMValueRef opjit_cg_index_compare(cg_func *f, ir_ref node)
{
    const ir_op op = (ir_op)ir_at(f->ir, node)->op;
    const ir_ref a = ir_operand(f->ir, node, 0), b = ir_operand(f->ir, node, 1);
    const bool vary_a = opjit_cg_varies(f, a), vary_b = opjit_cg_varies(f, b);
    LLVMValueRef v = NULL;
    if (!vary_a && !vary_b)
        return opjit_cg_compare(f, op, IR_INDEX, opjit_cg_emit(f, a), opjit_cg_emit(f, b));
    if (!vary_b)
        v = compare_iota(f, node, a, b, false);
    else if (!vary_a)
        v = compare_iota(f, node, b, a, true);
    if (v)
        return v;
    const uint32_t bits = cg_wider(opjit_cg_lane_bits(f, a), opjit_cg_lane_bits(f, b));
    LLVMValueRef x = opjit_cg_index_lanes(f, a, bits, f->piece->lanes),
                 y = opjit_cg_index_lanes(f, b, bits, f->piece->lanes);
    return opjit_cg_compare(f, op, IR_INDEX, x, y);
}

static LLVMValueRef float_of_index(cg_func *f, ir_ref x, ir_type to, uint32_t lanes)
{
    const ir_interval i = opjit_ir_interval(f->ir, x);
    if (opjit_cg_bits_for(i) <= 32)
        return opjit_cg_convert(f, IR_I32, to, opjit_cg_index_lanes(f, x, 32, lanes));
    if (i.lo >= 0 && i.hi <= UINT32_MAX)
        return opjit_cg_convert(f, IR_U32, to, opjit_cg_index_lanes(f, x, 32, lanes));
    return opjit_cg_convert(f, IR_I64, to, opjit_cg_index_lanes(f, x, 64, lanes));
}

/* Whether all numbers of the interval, and their sums with `more` that lie in it, are exact. */
static bool is_exact(ir_interval i, int64_t more, ir_type type)
{
    const int64_t limit = type == IR_F64 ? (int64_t)1 << 53 : 1 << 24;
    return i.lo >= -limit && i.hi <= limit && more >= -limit && more <= limit;
}

/* ELEM, vectors of f32 and f64: a conversion in the first copies, an exact addition in those that continue from
 * them. */
static LLVMValueRef float_lanes(cg_func *f, ir_ref node, ir_type to)
{
    const ir_ref x = ir_operand(f->ir, node, 0);
    const uint32_t depth = opjit_cg_depth_of_lanes(f, node);
    const int64_t copy = opjit_cg_number_of_copy(f);
    int64_t step, offset;
    LLVMValueRef v = opjit_cg_lanes_of_copy(f, node, depth, copy - CG_CHAINS);
    if (!opjit_cg_lane_step(f, x, &step, &offset) ||
        !checked_muli(step, CG_CHAINS * (int64_t)f->piece->lanes, &offset) ||
        !is_exact(opjit_ir_interval(f->ir, x), offset, to))
        return float_of_index(f, x, to, f->piece->lanes);
    v = v ? LLVMBuildFAdd(f->b, v, opjit_cg_kept(f, opjit_cg_real(f, to, f->piece->lanes, (double)offset)), "")
          : float_of_index(f, x, to, f->piece->lanes);
    return opjit_cg_remember_lanes(f, node, depth, copy, v);
}

/* ELEM: integers take the low bits; floats are converted from i32 lanes if the interval allows it.  What is exact in
 * f32 is rounded once on its way to f16, and the rest is infinite there. */
LLVMValueRef opjit_cg_element(cg_func *f, ir_ref node)
{
    const ir_type to = (ir_type)ir_at(f->ir, node)->type;
    const ir_ref x = ir_operand(f->ir, node, 0);
    const uint32_t lanes = opjit_cg_varies(f, node) ? f->piece->lanes : 1;
    if (!ir_is_float(to))
        return opjit_cg_index_lanes(f, x, 8 * opjit_ir_type_size(to), lanes);
    if (lanes == 1)
        return float_of_index(f, x, to, lanes);
    return to == IR_F16 ? opjit_cg_f32_to_half(f, float_lanes(f, node, IR_F32)) : float_lanes(f, node, to);
}

/* Converts the first vectors, and the next one, which shows how the bits grow. */
LLVMValueRef opjit_cg_half_lanes(cg_func *f, ir_ref cast)
{
    const uint32_t depth = opjit_cg_depth_of_lanes(f, cast);
    const int64_t copy = opjit_cg_number_of_copy(f);
    LLVMValueRef before = opjit_cg_lanes_of_copy(f, cast, depth, copy - CG_CHAINS), v;
    if (copy > CG_CHAINS) {
        v = LLVMBuildAdd(f->b, before, f->piece->growth, "");
    } else {
        v = opjit_cg_f32_to_half(f, opjit_cg_emit(f, ir_operand(f->ir, cast, 0)));
        f->piece->growth = copy == CG_CHAINS ? LLVMBuildSub(f->b, v, before, "") : NULL;
    }
    return opjit_cg_remember_lanes(f, cast, depth, copy, v);
}

/* --- integers in equal steps -------------------------------------------------------------------------------------- */

/* How much the node grows per lane, modulo 2^64; false: not by a constant. */
static bool element_step(const cg_func *f, ir_ref node, uint64_t *step)
{
    const ir_node *n = ir_at(f->ir, node);
    const cg_loop *loop = &f->loops[f->piece->vec];
    uint64_t a = 0, b = 0;
    int64_t factor;
    *step = 0;
    if (!opjit_cg_varies(f, node))
        return true;
    if (n->type > IR_U64 || ir_is_float((ir_type)n->type) || f->info[node].weight > CG_MAX_WEIGHT)
        return false;
    if (n->op == IR_ELEM) {
        if (!opjit_cg_affine(f, ir_operand(f->ir, node, 0), loop->var, &factor))
            return false;
        *step = (uint64_t)factor * (uint64_t)loop->step;
        return true;
    }
    if ((n->op != IR_ADD && n->op != IR_SUB && n->op != IR_MUL) || !element_step(f, ir_operand(f->ir, node, 0), &a) ||
        !element_step(f, ir_operand(f->ir, node, 1), &b))
        return false;
    if (n->op == IR_MUL) {
        const uint32_t by = opjit_cg_varies(f, ir_operand(f->ir, node, 0)) ? 1 : 0;
        const ir_node *k = ir_at(f->ir, ir_operand(f->ir, node, by));
        *step = (a + b) * k->imm;
        return k->op == IR_CONST;
    }
    *step = n->op == IR_ADD ? a + b : a - b;
    return true;
}

/* Its value in lane 0 of copy 0. */
static LLVMValueRef element_base(cg_func *f, ir_ref node)
{
    const ir_node *n = ir_at(f->ir, node);
    LLVMValueRef v = opjit_cg_varies(f, node) ? opjit_cg_recall(f, CG_BASE, node) : opjit_cg_emit(f, node);
    if (v)
        return v;
    if (n->op == IR_ELEM) {
        v = opjit_cg_resize(f, opjit_cg_base(f, ir_operand(f->ir, node, 0)), 8 * opjit_ir_type_size((ir_type)n->type),
                            true);
    } else {
        LLVMValueRef a = element_base(f, ir_operand(f->ir, node, 0)), b = element_base(f, ir_operand(f->ir, node, 1));
        v = n->op == IR_ADD   ? LLVMBuildAdd(f->b, a, b, "")
            : n->op == IR_SUB ? LLVMBuildSub(f->b, a, b, "")
                              : LLVMBuildMul(f->b, a, b, "");
    }
    opjit_cg_remember(f, CG_BASE, node, f->info[node].fresh ? f->scope_count - 1 : f->piece->loop_scope, v);
    return v;
}

LLVMValueRef opjit_cg_progression(cg_func *f, ir_ref node)
{
    uint64_t step;
    if (!opjit_cg_varies(f, node) || !element_step(f, node, &step))
        return NULL;
    LLVMValueRef v =
        opjit_cg_lanes_after(f, node, 8 * opjit_ir_type_size((ir_type)ir_at(f->ir, node)->type), (int64_t)step);
    return v ? v : opjit_cg_lanes_from(f, node, element_base(f, node), (int64_t)step);
}
