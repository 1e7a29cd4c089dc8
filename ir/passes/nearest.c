/* SPDX-License-Identifier: Apache-2.0 */
/* nearest.c - quantized results that are known to be numbers of 32 bits take one instruction to be rounded.  Part of
 * fold.
 *
 * A quantized x is clamp(i32(i16(rint(x))) + zero point): a conversion to 16 bits, which saturates and makes 0 of a
 * NaN.  Where limits of x are known, as those of a sum of integers times constants are, it is no NaN, and a number of
 * 32 bits.  Then nearest is the same wherever 16 bits hold x; and beyond, if both ends of 16 bits are beyond the ends
 * of the clamp.  Or it is clamp(rint(x) + zero point) in floats and then a byte, to which floats saturate.  Then the
 * sum of integers is the same where both are at most 2^24; and beyond, both sums are beyond the ends of a byte. */
#include "ir/passes/pass.h"

#include <math.h>
#include <string.h>

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

/* Tightens *ends by the constant of a min or a max of floats, if that is a whole number; false: it is none. */
static bool tighten(const ir_func *f, ir_ref r, bool max, ir_limits *ends)
{
    float end;
    uint32_t bits;
    if (!is_constant(f, r))
        return false;
    bits = (uint32_t)ir_at(f, r)->imm;
    memcpy(&end, &bits, sizeof end);
    if (end != rintf(end) || fabsf(end) > MOST_16 + 1)
        return false;
    ends->lo = max && (double)end > ends->lo ? (double)end : ends->lo;
    ends->hi = !max && (double)end < ends->hi ? (double)end : ends->hi;
    return true;
}

/* A value in a definition that the outermost load reads, which may be a chain of definitions at the same place. */
typedef struct seen {
    ir_ref value, load, in; /* load, in: 0 if it is no definition's; in: the statement whose coordinates are in it */
} seen;

static bool is_own(const ir_func *f, ir_ref load, ir_ref statement)
{
    const ir_tensor *own = &f->tensors[ir_at(f, statement)->ref];
    bool same = f->tensors[ir_at(f, load)->ref].rank == own->rank;
    for (uint32_t d = 0; d < own->rank && same; d++)
        same = ir_operand(f, load, d) == opjit_ir_coordinate(f, statement, d);
    return same;
}

static seen look(const ir_func *f, const ir_ref *defs, seen at, ir_ref r)
{
    at.value = r;
    while (ir_at(f, at.value)->op == IR_LOAD && (at.in == 0 || is_own(f, at.value, at.in))) {
        const ir_ref def = defs[ir_at(f, at.value)->ref];
        if (def == 0 || ir_at(f, def)->kind != 0 || ir_at(f, def)->imm != 0 ||
            f->tensors[ir_at(f, def)->ref].type != (ir_type)ir_at(f, at.value)->type)
            break;
        at = (seen){ ir_operand(f, def, 0), at.load == 0 ? at.value : at.load, def };
    }
    return at;
}

/* The same value where the outermost load is; 0: it is more than a load at the definition's own place. */
static ir_ref outside(ir_func *f, seen at, ir_ref r)
{
    ir_ref places[8] = { 0 };
    if (at.in == 0)
        return r;
    if (ir_at(f, r)->op != IR_LOAD || !is_own(f, r, at.in) || ir_at(f, at.load)->count > 8)
        return 0;
    for (uint32_t i = 0; i < ir_at(f, at.load)->count; i++)
        places[i] = ir_operand(f, at.load, i);
    return opjit_ir_load(f, ir_at(f, r)->ref, places);
}

/* Whether it is an integer of at most 16 bits as a float, or a load of such. */
static bool is_short(const ir_func *f, const ir_ref *defs, ir_ref r)
{
    const ir_ref def = ir_at(f, r)->op == IR_LOAD ? defs[opjit_ir_root(f, ir_at(f, r)->ref)] : 0;
    const ir_ref from = operand_of(f, def != 0 ? ir_operand(f, def, 0) : r, IR_CAST, 0);
    return from != 0 && ir_is_integer((ir_type)ir_at(f, from)->type) &&
           opjit_ir_type_size((ir_type)ir_at(f, from)->type) <= 2 && (def == 0 || ir_at(f, def)->kind == 0);
}

/* The byte of clamp(nearest(x) + zero) of integers for that of floats; 0: it is none, or limits are not known. */
static ir_ref cast_nearest(ir_func *f, const ir_ref *defs, ir_ref r)
{
    const ir_type type = (ir_type)ir_at(f, r)->type;
    seen at = look(f, defs, (seen){ 0 }, ir_operand(f, r, 0));
    ir_ref zero = 0;
    if (!ir_is_integer(type) || opjit_ir_type_size(type) != 1 || ir_at(f, at.value)->type != IR_F32)
        return 0;
    ir_limits of_x, ends = ir_is_signed(type) ? (ir_limits){ -128, 127 } : (ir_limits){ 0, 255 };
    for (ir_op op = IR_MIN; op == IR_MIN || op == IR_MAX; op = op == IR_MIN ? IR_MAX : IR_OP_COUNT)
        if (ir_at(f, at.value)->op == op) {
            if (!tighten(f, ir_operand(f, at.value, 1), op == IR_MAX, &ends))
                return 0;
            at = look(f, defs, at, ir_operand(f, at.value, 0));
        }
    if (ir_at(f, at.value)->op == IR_ADD) {
        zero = ir_operand(f, at.value, 1);
        zero = is_short(f, defs, zero) ? outside(f, at, zero) : 0;
        at = look(f, defs, at, zero != 0 ? ir_operand(f, at.value, 0) : at.value);
    }
    ir_ref x = operand_of(f, at.value, IR_RINT, 0);
    if (x == 0 || ends.lo > ends.hi || !opjit_ir_limits(f, defs, x, &of_x) || of_x.lo < -MOST_32 || of_x.hi > MOST_32)
        return 0;
    x = outside(f, at, x);
    if (x == 0)
        return 0;
    ir_ref made = ir_make1(f, IR_NEAREST, IR_I32, x);
    made = zero != 0 ? ir_make2(f, IR_ADD, IR_I32, made, ir_make1(f, IR_CAST, IR_I32, zero)) : made;
    made = ir_make2(f, IR_MAX, IR_I32, made, opjit_ir_const(f, IR_I32, (uint32_t)(int32_t)ends.lo));
    made = ir_make2(f, IR_MIN, IR_I32, made, opjit_ir_const(f, IR_I32, (uint32_t)(int32_t)ends.hi));
    return ir_make1(f, IR_CAST, type, made);
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
        const ir_op op = (ir_op)ir_at(f, r)->op;
        const ir_ref made = op == IR_MIN    ? with_nearest(f, defs, r)
                            : op == IR_CAST ? cast_nearest(f, defs, r)
                                            : 0;
        if (made != 0) {
            ir_map_set(f, &map, r, made);
            ir_took(f, IR_STEP_NEAREST);
        }
    }
    if (map.to.count > 0 && !f->failed)
        opjit_ir_remake_operands(f, &map, f->body);
    opjit_rt_arena_rewind(&f->scratch, mark);
}
