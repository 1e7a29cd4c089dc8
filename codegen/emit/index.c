/* SPDX-License-Identifier: Apache-2.0 */
/* index.c - index expressions: affine forms, scalars in i64, vectors in the narrowest lanes that hold their
 * interval.
 *
 * An expression that is affine in the vectorised variable is never computed lane by lane: it is its value in lane 0,
 * splatted, plus a constant vector.  Compared with something invariant it becomes a constant vector compared with
 * the splatted, clamped distance, which fits any lane width. */
#include "codegen/emit/access.h"

/* --- affine forms ------------------------------------------------------------------------------------------------- */

static bool depends(const cg_func *f, ir_ref node, ir_ref var)
{
    return (f->info[node].vary & f->info[var].vary) != 0;
}

/* A let of an affine value is looked through; one that reads memory is not, since it may have changed meanwhile. */
static ir_ref let_value(const cg_func *f, ir_ref get)
{
    const ir_ref let = ir_at(f->ir, get)->ref;
    return ir_at(f->ir, let)->op == IR_LET && !f->info[let].fresh ? ir_operand(f->ir, let, 0) : 0;
}

/* A variable as the survey of the stage knows what depends on it. */
typedef struct survey_moving {
    ir_moving m;
    const cg_func *f;
} survey_moving;

static bool moves(const ir_moving *m, ir_ref node)
{
    return depends(((const survey_moving *)(const void *)m)->f, node, m->var);
}

/* A large one counts as not known: what is shared in it would be walked again and again. */
static ir_ref value_of(const ir_moving *m, ir_ref get)
{
    const cg_func *f = ((const survey_moving *)(const void *)m)->f;
    const ir_ref value = let_value(f, get);
    return value && f->info[value].weight <= CG_MAX_WEIGHT ? value : 0;
}

#define MOVING(f, variable)                                                          \
    {                                                                                \
        { .f = (f)->ir, .var = (variable), .varies = moves, .value = value_of }, (f) \
    }

bool opjit_cg_affine(const cg_func *f, ir_ref node, ir_ref var, int64_t *factor)
{
    const survey_moving s = MOVING(f, var);
    *factor = 0;
    if (node != var && depends(f, node, var) && f->info[node].weight > CG_MAX_WEIGHT)
        return false;
    return opjit_ir_factor_of(&s.m, node, factor);
}

bool opjit_cg_turns_add(const cg_func *f, ir_ref node, ir_ref var, int64_t factor, ir_turns *io)
{
    const survey_moving s = MOVING(f, var);
    return opjit_ir_turns_add(&s.m, node, factor, io);
}

/* Whether the node is affine in the vectorised variable, and by how much it grows from lane to lane and by copy. */
static bool lane_step(const cg_func *f, ir_ref node, int64_t *step, int64_t *offset)
{
    const cg_loop *loop = &f->loops[f->vec];
    int64_t factor;
    return opjit_cg_affine(f, node, loop->var, &factor) && checked_muli(factor, loop->step, step) &&
           checked_muli(factor, loop->offset, offset);
}

static cg_loop *loop_of(cg_func *f, ir_ref var)
{
    for (uint32_t i = f->loop_count; i-- > 0;)
        if (f->loops[i].var == var)
            return &f->loops[i];
    return &f->loops[0];
}

LLVMValueRef opjit_cg_variable(cg_func *f, cg_loop *loop)
{
    if (loop->slot && LLVMGetInsertBlock(f->b) != loop->home) {
        loop->home = LLVMGetInsertBlock(f->b);
        loop->iv = LLVMBuildLoad2(f->b, f->type.i64, loop->slot, "");
    }
    return loop->iv;
}

static LLVMValueRef var_value(cg_func *f, ir_ref var, bool with_offset)
{
    cg_loop *loop = loop_of(f, var);
    LLVMValueRef iv = opjit_cg_variable(f, loop);
    if (!with_offset || loop->offset == 0)
        return iv;
    return opjit_cg_add(f, iv, opjit_cg_number(f, 64, 1, (uint64_t)loop->offset));
}

/* --- scalars ------------------------------------------------------------------------------------------------------ */

static LLVMValueRef base_of(cg_func *f, ir_ref node)
{
    const ir_ref var = f->loops[f->vec].var;
    if (node == var)
        return var_value(f, node, false);
    if (!depends(f, node, var))
        return opjit_cg_emit(f, node);
    const ir_node *n = ir_at(f->ir, node);
    if (n->op == IR_GET)
        return opjit_cg_base(f, let_value(f, node));
    LLVMValueRef a = opjit_cg_base(f, ir_operand(f->ir, node, 0));
    LLVMValueRef b = opjit_cg_base(f, ir_operand(f->ir, node, 1));
    return n->op == IR_IADD   ? LLVMBuildAdd(f->b, a, b, "")
           : n->op == IR_ISUB ? LLVMBuildSub(f->b, a, b, "")
                              : LLVMBuildMul(f->b, a, b, "");
}

LLVMValueRef opjit_cg_base(cg_func *f, ir_ref node)
{
    LLVMValueRef v = opjit_cg_recall(f, CG_BASE, node);
    if (!v) {
        v = base_of(f, node);
        opjit_cg_remember(f, CG_BASE, node, f->info[node].fresh ? f->scope_count - 1 : f->loop_scope, v);
    }
    return v;
}

/* --- lanes -------------------------------------------------------------------------------------------------------- */

static uint32_t bits_for(ir_interval i)
{
    for (uint32_t bits = 8; bits < 64; bits *= 2) {
        const int64_t limit = (int64_t)1 << (bits - 1);
        if (i.lo >= -limit && i.hi < limit)
            return bits;
    }
    return 64;
}

/* Lane width of an index: what its interval needs, and no less than the data's, so that masks and conversions match. */
uint32_t opjit_cg_lane_bits(const cg_func *f, ir_ref node)
{
    const uint32_t need = bits_for(opjit_ir_interval(f->ir, node));
    return need > f->lane_bits ? need : f->lane_bits;
}

static uint32_t wider(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* Where copy `copy` of the loop's body has what the node is in its lanes. */
static cg_entry *place_of_copy(const cg_func *f, ir_ref node, uint32_t depth, int64_t copy)
{
    return opjit_cg_place(f, (cg_slot)(CG_STEP + copy % CG_CHAINS), node, depth);
}

static LLVMValueRef lanes_of_copy(const cg_func *f, ir_ref node, uint32_t depth, int64_t copy)
{
    const cg_entry *e = copy < 0 ? NULL : place_of_copy(f, node, depth, copy);
    LLVMValueRef v = e && e->offset == copy ? opjit_cg_live(f, e) : NULL;
    return v && opjit_cg_lanes(v) == f->lanes ? v : NULL;
}

static LLVMValueRef remember_lanes(cg_func *f, ir_ref node, uint32_t depth, int64_t copy, LLVMValueRef v)
{
    cg_entry *e = place_of_copy(f, node, depth, copy);
    *e = opjit_cg_entry(f, depth, v);
    e->offset = copy;
    return v;
}

static int64_t number_of_copy(const cg_func *f)
{
    const cg_loop *loop = &f->loops[f->vec];
    return loop->offset / loop->step / f->lanes;
}

static uint32_t depth_of_lanes(const cg_func *f, ir_ref node)
{
    return f->info[node].fresh ? f->scope_count - 1 : f->loop_scope;
}

/* Integers that grow by `step` from lane to lane, in the lanes of this copy, from those of an earlier one: each copy
 * goes on from the CG_CHAINS-th before it, since what waits for the copy right before it is no faster than the
 * stores.  NULL: there is none. */
static LLVMValueRef lanes_after(cg_func *f, ir_ref node, uint32_t bits, int64_t step)
{
    const uint32_t depth = depth_of_lanes(f, node);
    const int64_t copy = number_of_copy(f);
    LLVMValueRef v = lanes_of_copy(f, node, depth, copy);
    if (v && opjit_cg_bits(v) == bits)
        return v;
    int64_t back = CG_CHAINS;
    v = lanes_of_copy(f, node, depth, copy - back);
    if (!v)
        v = lanes_of_copy(f, node, depth, copy - (back = 1));
    if (!v || opjit_cg_bits(v) != bits)
        return NULL;
    const uint64_t more = (uint64_t)step * (uint64_t)(back * f->lanes);
    v = LLVMBuildAdd(f->b, v, opjit_cg_kept(f, opjit_cg_number(f, bits, f->lanes, more)), "");
    return remember_lanes(f, node, depth, copy, v);
}

/* The same from their value in lane 0 of copy 0. */
static LLVMValueRef lanes_from(cg_func *f, ir_ref node, LLVMValueRef base, int64_t step)
{
    const int64_t copy = number_of_copy(f);
    const uint64_t offset = (uint64_t)step * (uint64_t)(copy * f->lanes);
    LLVMValueRef iota = opjit_cg_iota(f, opjit_cg_bits(base), f->lanes, (int64_t)offset, step);
    LLVMValueRef v = LLVMBuildAdd(f->b, opjit_cg_splat(f, base, f->lanes), opjit_cg_kept(f, iota), "");
    return remember_lanes(f, node, depth_of_lanes(f, node), copy, v);
}

/* What was made before this loop; NULL: nothing. */
static LLVMValueRef start_of(cg_func *f, ir_ref node, uint32_t bits)
{
    LLVMValueRef v = f->turn.on ? NULL : opjit_cg_recall(f, CG_START, node);
    const bool fits = v && f->cache[CG_START][node].scope == f->loops[f->vec].scope && opjit_cg_bits(v) == bits;
    return fits && opjit_cg_lanes(v) == f->lanes ? v : NULL;
}

static LLVMValueRef affine_lanes(cg_func *f, ir_ref node, uint32_t bits, int64_t step)
{
    LLVMValueRef v = lanes_after(f, node, bits, step), start = v ? NULL : start_of(f, node, bits);
    if (v)
        return v;
    if (!start)
        return lanes_from(f, node, opjit_cg_resize(f, opjit_cg_base(f, node), bits, true), step);
    cg_loop *loop = &f->loops[f->vec];
    LLVMValueRef base = opjit_cg_resize(f, opjit_cg_variable(f, loop), bits, true);
    base = opjit_cg_add(f, base, opjit_cg_number(f, bits, 1, (uint64_t)loop->offset));
    v = LLVMBuildAdd(f->b, opjit_cg_splat(f, base, f->lanes), start, "");
    return remember_lanes(f, node, depth_of_lanes(f, node), number_of_copy(f), v);
}

/* Whether a float is converted from the index in 32 bits. */
static bool is_narrow(const cg_func *f, ir_ref index)
{
    const ir_interval i = opjit_ir_interval(f->ir, index);
    return bits_for(i) <= 32 || (i.lo >= 0 && i.hi <= UINT32_MAX);
}

void opjit_cg_hoist_start(cg_func *f, ir_ref elem, uint32_t loop, uint32_t lanes)
{
    const ir_type to = (ir_type)ir_at(f->ir, elem)->type;
    const ir_ref x = ir_operand(f->ir, elem, 0), var = f->loops[loop].var;
    const cg_info *info = &f->info[x];
    int64_t factor;
    /* Nothing that is declared inside of the loop, and no other loop's variable that moves there. */
    if (!ir_is_float(to) || f->turn.on || !opjit_cg_affine(f, x, var, &factor) || factor != 1 || info->fresh ||
        info->guarded || (info->inside & ~f->info[var].vary) >> loop)
        return;
    LLVMValueRef base = opjit_cg_at(f, x, var, NULL);
    if (!base)
        return;
    const uint32_t bits = is_narrow(f, x) ? 32 : 64;
    LLVMValueRef v = opjit_cg_splat(f, opjit_cg_resize(f, base, bits, true), lanes);
    v = LLVMBuildAdd(f->b, v, opjit_cg_kept(f, opjit_cg_iota(f, bits, lanes, 0, f->loops[loop].step)), "");
    opjit_cg_remember(f, CG_START, x, f->scope_count - 1, v);
}

/* An index expression as integers of `bits`, modulo 2^bits. */
LLVMValueRef opjit_cg_index_lanes(cg_func *f, ir_ref node, uint32_t bits, uint32_t lanes)
{
    int64_t step, offset;
    if (lanes > 1 && opjit_cg_varies(f, node) && lane_step(f, node, &step, &offset))
        return affine_lanes(f, node, bits, step);
    return opjit_cg_splat(f, opjit_cg_resize(f, opjit_cg_emit(f, node), bits, true), lanes);
}

static LLVMValueRef number(cg_func *f, LLVMValueRef like, int64_t value)
{
    return opjit_cg_number(f, opjit_cg_bits(like), opjit_cg_lanes(like), (uint64_t)value);
}

/* --- operations --------------------------------------------------------------------------------------------------- */

/* x / k for 0 <= x < 2^31 and k < 2^31, no power of two, as a multiplication, where fast selection would divide.  With
 * the l bits of k and m = 2^(31 + l) / k rounded up, x * m / 2^(31 + l) is above x / k by less than 2^-l, and that is
 * below 1 / k. */
static LLVMValueRef quotient(cg_func *f, LLVMValueRef x, int64_t k)
{
    const uint32_t shift = 31 + 32 - (uint32_t)__builtin_clz((uint32_t)k);
    LLVMValueRef m = opjit_cg_number(f, 64, 1, ((uint64_t)1 << shift) / (uint64_t)k + 1);
    LLVMValueRef wide = LLVMBuildMul(f->b, LLVMBuildZExt(f->b, x, f->type.i64, ""), m, "");
    return LLVMBuildTrunc(f->b, LLVMBuildLShr(f->b, wide, opjit_cg_number(f, 64, 1, shift), ""), f->type.i32, "");
}

/* i32 stands for numbers from 0 to 2^31 - 1, see by_constant. */
static bool is_small_scalar(const cg_func *f, LLVMValueRef x)
{
    return !f->peak && opjit_cg_lanes(x) == 1 && opjit_cg_bits(x) == 32 && !LLVMIsConstant(x);
}

/* Floor division by k > 0: a shift, an unsigned division, or the truncating one corrected. */
static LLVMValueRef floor_div(cg_func *f, LLVMValueRef x, int64_t k, bool positive)
{
    if (is_power_of_two((uint64_t)k))
        return LLVMBuildAShr(f->b, x, number(f, x, __builtin_ctzll((uint64_t)k)), "");
    if (positive && is_small_scalar(f, x))
        return quotient(f, x, k);
    if (positive)
        return LLVMBuildUDiv(f->b, x, number(f, x, k), "");
    LLVMValueRef q = LLVMBuildSDiv(f->b, x, number(f, x, k), ""), r = LLVMBuildSRem(f->b, x, number(f, x, k), "");
    LLVMValueRef below = LLVMBuildICmp(f->b, LLVMIntSLT, r, number(f, x, 0), "");
    return LLVMBuildAdd(f->b, q, LLVMBuildSExt(f->b, below, LLVMTypeOf(q), ""), "");
}

static LLVMValueRef floor_mod(cg_func *f, LLVMValueRef x, int64_t k, bool positive)
{
    if (is_power_of_two((uint64_t)k))
        return LLVMBuildAnd(f->b, x, number(f, x, k - 1), "");
    if (positive && is_small_scalar(f, x))
        return LLVMBuildSub(f->b, x, LLVMBuildMul(f->b, quotient(f, x, k), number(f, x, k), ""), "");
    if (positive)
        return LLVMBuildURem(f->b, x, number(f, x, k), "");
    LLVMValueRef r = LLVMBuildSRem(f->b, x, number(f, x, k), "");
    LLVMValueRef below = LLVMBuildICmp(f->b, LLVMIntSLT, r, number(f, x, 0), "");
    return LLVMBuildSelect(f->b, below, LLVMBuildAdd(f->b, r, number(f, x, k), ""), r, "");
}

/* IDIV, IMOD, DOWN, UP: exact operand, constant k. */
static LLVMValueRef by_constant(cg_func *f, ir_op op, ir_ref node, uint32_t lanes)
{
    const ir_ref x_ref = ir_operand(f->ir, node, 0);
    const int64_t k = ir_index_value(f->ir, ir_operand(f->ir, node, 1));
    const ir_interval i = opjit_ir_interval(f->ir, x_ref);
    uint32_t bits = 64;
    if (lanes > 1)
        bits = wider(wider(opjit_cg_lane_bits(f, x_ref), opjit_cg_lane_bits(f, node)), bits_for((ir_interval){ k, k }));
    else if (i.lo >= 0 && i.hi <= INT32_MAX && k <= INT32_MAX && !is_power_of_two((uint64_t)k))
        bits = 32; /* a 64-bit division takes twice as long */
    LLVMValueRef x = opjit_cg_index_lanes(f, x_ref, bits, lanes), v;
    if (k <= 0)
        return number(f, x, 0); /* as the interpreter; can't stand in a valid function */
    /* A sum that is too large loses only bits that the result doesn't have either. */
    if ((op == IR_DOWN || op == IR_UP) && is_power_of_two((uint64_t)k))
        v = LLVMBuildAnd(f->b, op == IR_UP ? opjit_cg_add(f, x, number(f, x, k - 1)) : x, number(f, x, -k), "");
    else if (op == IR_DOWN)
        v = LLVMBuildSub(f->b, x, floor_mod(f, x, k, i.lo >= 0), "");
    else if (op == IR_UP)
        v = LLVMBuildAdd(f->b, x, floor_mod(f, LLVMBuildNeg(f->b, x, ""), k, false), "");
    else
        v = op == IR_IDIV ? floor_div(f, x, k, i.lo >= 0) : floor_mod(f, x, k, i.lo >= 0);
    return lanes > 1 ? v : opjit_cg_resize(f, v, 64, true);
}

static LLVMValueRef choice(cg_func *f, bool max, LLVMValueRef a, LLVMValueRef b)
{
    if (opjit_cg_lanes(a) == 1)
        return opjit_cg_limit(f, max, a, b);
    return opjit_cg_call(f, max ? "llvm.smax" : "llvm.smin", 2, (LLVMValueRef[]){ a, b });
}

/* The operand that IMIN, IMAX or CLAMP always is, or its one comparison that is left; NULL: all are needed.  Each
 * comparison takes time to compile, and there are two in each bound that split makes. */
static LLVMValueRef decided(cg_func *f, ir_op op, ir_ref node)
{
    const ir_ref x = ir_operand(f->ir, node, 0), y = ir_operand(f->ir, node, 1);
    const bool over = opjit_cg_at_most(f, y, x), under = !over && opjit_cg_at_most(f, x, y);
    if (!over && !under)
        return NULL;
    if (op != IR_CLAMP)
        return opjit_cg_emit(f, over == (op == IR_IMAX) ? x : y);
    const ir_ref inner = over ? x : y, limit = ir_operand(f->ir, node, 2);
    LLVMValueRef v = opjit_cg_emit(f, inner);
    return opjit_cg_at_most(f, inner, limit) ? v : choice(f, false, v, opjit_cg_emit(f, limit));
}

/* IMIN, IMAX, CLAMP: lanes that hold every operand. */
static LLVMValueRef bounded(cg_func *f, ir_op op, ir_ref node, uint32_t lanes)
{
    const uint32_t count = ir_at(f->ir, node)->count;
    uint32_t bits = 64;
    LLVMValueRef a[3] = { NULL };
    if (lanes == 1 && (a[0] = decided(f, op, node)) != NULL)
        return a[0];
    if (lanes > 1) {
        bits = opjit_cg_lane_bits(f, node);
        for (uint32_t i = 0; i < count; i++)
            bits = wider(bits, opjit_cg_lane_bits(f, ir_operand(f->ir, node, i)));
    }
    for (uint32_t i = 0; i < count && i < 3; i++)
        a[i] = opjit_cg_index_lanes(f, ir_operand(f->ir, node, i), bits, lanes);
    if (op != IR_CLAMP)
        return choice(f, op == IR_IMAX, a[0], a[1]);
    return choice(f, false, choice(f, true, a[0], a[1]), a[2]);
}

/* TO_INDEX of an element integer: u64 saturates. */
static LLVMValueRef to_index(cg_func *f, ir_ref node, uint32_t lanes)
{
    const ir_ref x = ir_operand(f->ir, node, 0);
    const ir_type from = (ir_type)ir_at(f->ir, x)->type;
    LLVMValueRef v = opjit_cg_emit_lanes(f, x, lanes);
    if (from == IR_U64)
        v = opjit_cg_call(f, "llvm.umin", 2, (LLVMValueRef[]){ v, number(f, v, INT64_MAX) });
    return opjit_cg_resize(f, v, lanes > 1 ? opjit_cg_lane_bits(f, node) : 64, ir_is_signed(from));
}

LLVMValueRef opjit_cg_index(cg_func *f, ir_ref node)
{
    const ir_node *n = ir_at(f->ir, node);
    const uint32_t lanes = opjit_cg_varies(f, node) ? f->lanes : 1;
    int64_t step, offset;
    if (n->op == IR_VAR && lanes == 1)
        return var_value(f, node, true);
    const uint32_t bits = lanes > 1 ? opjit_cg_lane_bits(f, node) : 64;
    if (lanes > 1 && lane_step(f, node, &step, &offset))
        return affine_lanes(f, node, bits, step);
    switch ((ir_op)n->op) {
    case IR_IADD:
    case IR_ISUB:
    case IR_IMUL: {
        LLVMValueRef a = opjit_cg_index_lanes(f, ir_operand(f->ir, node, 0), bits, lanes);
        LLVMValueRef b = opjit_cg_index_lanes(f, ir_operand(f->ir, node, 1), bits, lanes);
        return n->op == IR_IADD   ? LLVMBuildAdd(f->b, a, b, "")
               : n->op == IR_ISUB ? LLVMBuildSub(f->b, a, b, "")
                                  : LLVMBuildMul(f->b, a, b, "");
    }
    case IR_IDIV:
    case IR_IMOD:
    case IR_DOWN:
    case IR_UP: return by_constant(f, (ir_op)n->op, node, lanes);
    case IR_IMIN:
    case IR_IMAX:
    case IR_CLAMP: return bounded(f, (ir_op)n->op, node, lanes);
    default: return to_index(f, node, lanes);
    }
}

/* --- comparison and conversion ------------------------------------------------------------------------------------ */

static bool is_small(ir_interval i)
{
    return i.lo >= -((int64_t)1 << 61) && i.hi <= (int64_t)1 << 61;
}

/* invariant - affine in lane 0 of copy 0 */
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
        opjit_cg_remember_address(f, CG_BASE, node, f->info[node].fresh ? f->scope_count - 1 : f->loop_scope, window);
    }
    return opjit_cg_lane_mask(f, opjit_cg_address(f, CG_BASE, node, opjit_cg_int(f, f->lane_bits, 1), 1));
}

/* affine REL invariant: lane * step REL clamp(invariant - base).  NULL: not of that form. */
static LLVMValueRef compare_iota(cg_func *f, ir_ref node, ir_ref affine, ir_ref invariant, bool swapped)
{
    const ir_op op = (ir_op)ir_at(f->ir, node)->op;
    int64_t step, offset;
    if (opjit_cg_varies(f, invariant) || !lane_step(f, affine, &step, &offset) ||
        !is_small(opjit_ir_interval(f->ir, affine)) || !is_small(opjit_ir_interval(f->ir, invariant)))
        return NULL;
    if (step > (int64_t)1 << 32 || step < -((int64_t)1 << 32))
        return NULL;
    if (step == 1 && !f->cpu->grid && (!f->peak || f->copies > 1) && f->copies <= CG_MAX_WINDOW && op != IR_NE)
        return compare_window(f, node, affine, invariant, swapped);
    const int64_t reach = step * (int64_t)(f->lanes - 1), lo = reach < 0 ? reach : 0, hi = reach < 0 ? 0 : reach;
    const uint32_t bits = wider(f->lane_bits, bits_for((ir_interval){ lo - 1, hi + 1 }));
    LLVMValueRef d = distance(f, affine, invariant);
    d = opjit_cg_sub(f, d, number(f, d, offset));
    const ir_interval x = opjit_ir_interval(f->ir, affine), y = opjit_ir_interval(f->ir, invariant);
    const bool fits = !f->tail && !f->shifted && bits_for((ir_interval){ y.lo - x.hi + lo, y.hi - x.lo + hi }) <= bits;
    if (!fits)
        d = choice(f, false, choice(f, true, d, number(f, d, lo - 1)), number(f, d, hi + 1));
    d = opjit_cg_splat(f, opjit_cg_resize(f, d, bits, true), f->lanes);
    LLVMValueRef l = opjit_cg_iota(f, bits, f->lanes, 0, step);
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
    const uint32_t bits = wider(opjit_cg_lane_bits(f, a), opjit_cg_lane_bits(f, b));
    LLVMValueRef x = opjit_cg_index_lanes(f, a, bits, f->lanes), y = opjit_cg_index_lanes(f, b, bits, f->lanes);
    return opjit_cg_compare(f, op, IR_INDEX, x, y);
}

static LLVMValueRef float_of_index(cg_func *f, ir_ref x, ir_type to, uint32_t lanes)
{
    const ir_interval i = opjit_ir_interval(f->ir, x);
    if (bits_for(i) <= 32)
        return opjit_cg_convert(f, IR_I32, to, opjit_cg_index_lanes(f, x, 32, lanes));
    if (i.lo >= 0 && i.hi <= UINT32_MAX)
        return opjit_cg_convert(f, IR_U32, to, opjit_cg_index_lanes(f, x, 32, lanes));
    return opjit_cg_convert(f, IR_I64, to, opjit_cg_index_lanes(f, x, 64, lanes));
}

/* Whether all numbers of the interval, and sums of them and of `more` that are in it, are exact. */
static bool is_exact(ir_interval i, int64_t more, ir_type type)
{
    const int64_t limit = type == IR_F64 ? (int64_t)1 << 53 : 1 << 24;
    return i.lo >= -limit && i.hi <= limit && more >= -limit && more <= limit;
}

/* ELEM, vectors of f32 and f64: a conversion in the first copies, an addition without rounding in those that go on. */
static LLVMValueRef float_lanes(cg_func *f, ir_ref node, ir_type to)
{
    const ir_ref x = ir_operand(f->ir, node, 0);
    const uint32_t depth = depth_of_lanes(f, node);
    const int64_t copy = number_of_copy(f);
    int64_t step, offset;
    LLVMValueRef v = lanes_of_copy(f, node, depth, copy - CG_CHAINS);
    if (!lane_step(f, x, &step, &offset) || !checked_muli(step, CG_CHAINS * (int64_t)f->lanes, &offset) ||
        !is_exact(opjit_ir_interval(f->ir, x), offset, to))
        return float_of_index(f, x, to, f->lanes);
    v = v ? LLVMBuildFAdd(f->b, v, opjit_cg_kept(f, opjit_cg_real(f, to, f->lanes, (double)offset)), "")
          : float_of_index(f, x, to, f->lanes);
    return remember_lanes(f, node, depth, copy, v);
}

/* ELEM: integers are the low bits; floats are converted from i32 lanes where the interval allows it.  What is exact
 * in f32 is rounded once on its way to f16, and what isn't is infinite there. */
LLVMValueRef opjit_cg_element(cg_func *f, ir_ref node)
{
    const ir_type to = (ir_type)ir_at(f->ir, node)->type;
    const ir_ref x = ir_operand(f->ir, node, 0);
    const uint32_t lanes = opjit_cg_varies(f, node) ? f->lanes : 1;
    if (!ir_is_float(to))
        return opjit_cg_index_lanes(f, x, 8 * opjit_ir_type_size(to), lanes);
    if (lanes == 1)
        return float_of_index(f, x, to, lanes);
    return to == IR_F16 ? opjit_cg_f32_to_half(f, float_lanes(f, node, IR_F32)) : float_lanes(f, node, to);
}

/* The first vectors are converted, and the next one, which says how the bits grow. */
LLVMValueRef opjit_cg_half_lanes(cg_func *f, ir_ref cast)
{
    const uint32_t depth = depth_of_lanes(f, cast);
    const int64_t copy = number_of_copy(f);
    LLVMValueRef before = lanes_of_copy(f, cast, depth, copy - CG_CHAINS), v;
    if (copy > CG_CHAINS) {
        v = LLVMBuildAdd(f->b, before, f->growth, "");
    } else {
        v = opjit_cg_f32_to_half(f, opjit_cg_emit(f, ir_operand(f->ir, cast, 0)));
        f->growth = copy == CG_CHAINS ? LLVMBuildSub(f->b, v, before, "") : NULL;
    }
    return remember_lanes(f, cast, depth, copy, v);
}

/* --- integers in equal steps -------------------------------------------------------------------------------------- */

/* By how much the node grows from lane to lane, modulo 2^64; false: not by a constant. */
static bool element_step(const cg_func *f, ir_ref node, uint64_t *step)
{
    const ir_node *n = ir_at(f->ir, node);
    const cg_loop *loop = &f->loops[f->vec];
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
    opjit_cg_remember(f, CG_BASE, node, f->info[node].fresh ? f->scope_count - 1 : f->loop_scope, v);
    return v;
}

LLVMValueRef opjit_cg_progression(cg_func *f, ir_ref node)
{
    uint64_t step;
    if (!opjit_cg_varies(f, node) || !element_step(f, node, &step))
        return NULL;
    LLVMValueRef v = lanes_after(f, node, 8 * opjit_ir_type_size((ir_type)ir_at(f->ir, node)->type), (int64_t)step);
    return v ? v : lanes_from(f, node, element_base(f, node), (int64_t)step);
}
