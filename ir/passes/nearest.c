/* SPDX-License-Identifier: Apache-2.0 */
/* nearest.c - quantized results that are known to be numbers of 32 bits take one instruction to be rounded.  Part of
 * fold.
 *
 * A quantized x is clamp(i32(i16(rint(x))) + zero point): a conversion to 16 bits, which saturates and makes 0 of a
 * NaN.  Where limits of x are known, as those of a sum of integers times constants are, it is no NaN, and a number of
 * 32 bits.  Then nearest is the same wherever 16 bits hold x; and beyond, if both ends of 16 bits are beyond the ends
 * of the clamp. */
#include "ir/passes/pass.h"

enum { LEAST_16 = -32768, MOST_16 = 32767 };
static const double MOST_32 = 0x1p30; /* a zero point is added */

static ir_ref operand_of(const ir_func *f, ir_ref r, ir_op op, uint32_t i)
{
    return r != 0 && ir_at(f, r)->op == op ? ir_operand(f, r, i) : 0;
}

/* x, where r is i32(i16(rint(x))); else 0. */
static ir_ref rounded(const ir_func *f, ir_ref r)
{
    const ir_ref narrow = ir_at(f, r)->type == IR_I32 ? operand_of(f, r, IR_CAST, 0) : 0;
    const ir_ref whole = narrow != 0 && ir_at(f, narrow)->type == IR_I16 ? operand_of(f, narrow, IR_CAST, 0) : 0;
    const ir_ref x = operand_of(f, whole, IR_RINT, 0);
    return x != 0 && ir_at(f, x)->type == IR_F32 ? x : 0;
}

static bool is_constant(const ir_func *f, ir_ref r)
{
    return r != 0 && ir_at(f, r)->op == IR_CONST;
}

/* min(max(sum, lo), hi) with nearest in the sum; 0: it is not of that form, or limits are not known. */
static ir_ref with_nearest(ir_func *f, const ir_ref *defs, ir_ref r)
{
    const ir_ref high = operand_of(f, r, IR_MIN, 1), limited = operand_of(f, r, IR_MIN, 0);
    const ir_ref low = operand_of(f, limited, IR_MAX, 1), sum = operand_of(f, limited, IR_MAX, 0);
    if (ir_at(f, r)->type != IR_I32 || !is_constant(f, high) || !is_constant(f, low))
        return 0;
    const ir_ref zero = operand_of(f, sum, IR_ADD, 1), x = rounded(f, zero != 0 ? operand_of(f, sum, IR_ADD, 0) : sum);
    ir_limits of_x, of_zero = { 0, 0 };
    if (x == 0 || (zero != 0 && !opjit_ir_limits(f, defs, zero, &of_zero)) || !opjit_ir_limits(f, defs, x, &of_x) ||
        of_x.lo < -MOST_32 || of_x.hi > MOST_32 || of_zero.lo < LEAST_16 || of_zero.hi > MOST_16)
        return 0;
    const bool inside = of_x.lo >= LEAST_16 && of_x.hi <= MOST_16;
    if (!inside && (LEAST_16 + of_zero.hi > (int32_t)ir_at(f, low)->imm ||
                    MOST_16 + of_zero.lo < (int32_t)ir_at(f, high)->imm))
        return 0;
    ir_ref made = ir_make1(f, IR_NEAREST, IR_I32, x);
    made = zero != 0 ? ir_make2(f, IR_ADD, IR_I32, made, zero) : made;
    return ir_make2(f, IR_MIN, IR_I32, ir_make2(f, IR_MAX, IR_I32, made, low), high);
}

void opjit_ir_round_nearest(ir_func *f)
{
    const rt_arena_mark mark = rt_arena_position(&f->scratch);
    ir_ref *defs = ARENA_ARRAY(&f->scratch, ir_ref, f->tensor_count);
    ir_map map = { 0 };
    const uint32_t count = f->node_count;
    f->failed = f->failed || defs == NULL;
    for (ir_ref s = f->body; s != 0 && !f->failed; s = ir_at(f, s)->next)
        if (ir_at(f, s)->op == IR_DEF && !ir_is_of_recurrence(&f->tensors[ir_at(f, s)->ref]))
            defs[ir_at(f, s)->ref] = s;
    for (ir_ref r = 1; r < count && !f->failed; r++) {
        const ir_ref made = ir_at(f, r)->op == IR_MIN ? with_nearest(f, defs, r) : 0;
        if (made != 0) {
            ir_map_set(f, &map, r, made);
            ir_took(f, IR_STEP_NEAREST);
        }
    }
    if (map.to.count > 0 && !f->failed)
        opjit_ir_remake_operands(f, &map, f->body);
    opjit_rt_arena_rewind(&f->scratch, mark);
}
