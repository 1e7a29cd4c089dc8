/* SPDX-License-Identifier: Apache-2.0 */
/* mask.c - conditions of lanes in two forms: vectors of i1, and, where compile time matters, integers of the data's
 * width that are all ones or 0.  LLVM's fast instruction selection knows no vector comparison or select and leaves the
 * whole block to the slow one; it knows loads and bit operations.  So a comparison of lane numbers with a scalar is a
 * load from a window of ones, zeros and ones, and a select is made of and, xor. */
#include "codegen/emit/indices.h"

#include <stdio.h>

static bool is_extended(LLVMValueRef c)
{
    return LLVMIsASExtInst(c) && opjit_cg_bits(LLVMGetOperand(c, 0)) == 1;
}

/* All ones are a NaN. */
LLVMValueRef opjit_cg_narrow(cg_func *f, LLVMValueRef c)
{
    const uint32_t bits = opjit_cg_bits(c), lanes = opjit_cg_lanes(c);
    LLVMValueRef v = bits == 1 ? c : is_extended(c) ? LLVMGetOperand(c, 0) : NULL;
    if (!v && opjit_cg_compares(f, bits, lanes) && !LLVMIsConstant(c))
        v = f->cpu->compare(f, LLVMRealUNO, opjit_cg_as_float(f, c), opjit_cg_as_float(f, c));
    return v ? v : LLVMBuildICmp(f->b, LLVMIntSLT, c, opjit_cg_number(f, bits, lanes, 0), "");
}

bool opjit_cg_compares(const cg_func *f, uint32_t bits, uint32_t lanes)
{
    return !f->peak && f->cpu->compares && lanes > 1 && f->cpu->compares(f->target, bits, lanes);
}

/* --- constants ---------------------------------------------------------------------------------------------------- */

/* A private constant of the module. */
LLVMValueRef opjit_cg_constant_data(cg_func *f, const char *name, LLVMValueRef value)
{
    LLVMValueRef global = LLVMAddGlobal(f->module, LLVMTypeOf(value), name);
    LLVMSetInitializer(global, value);
    LLVMSetGlobalConstant(global, 1);
    LLVMSetLinkage(global, LLVMPrivateLinkage);
    LLVMSetUnnamedAddress(global, LLVMGlobalUnnamedAddr);
    LLVMSetAlignment(global, 64);
    return global;
}

static bool is_zero(LLVMValueRef v)
{
    return LLVMIsConstant(v) && LLVMIsNull(v);
}

/* A vector constant in a register, loaded once per block: in place it would need slow selection, too, and one from
 * another block is on the stack, where half of the vectors cross lines.  If many copies use it, it becomes a new value
 * after a few uses, without an instruction, because a value with 8 uses goes to the stack. */
LLVMValueRef opjit_cg_kept(cg_func *f, LLVMValueRef v)
{
    if (f->peak || !LLVMIsConstant(v) || opjit_cg_lanes(v) == 1)
        return v;
    uint32_t i = 0;
    while (i < f->constant_count && f->constants[i].constant != v)
        i++;
    cg_constant *const c = &f->constants[i];
    if (i == CG_MAX_CONSTANTS)
        return v;
    if (i == f->constant_count) {
        *c = (cg_constant){ .constant = v, .memory = opjit_cg_constant_data(f, "constant", v) };
        f->constant_count++;
    }
    const bool here = c->block == LLVMGetInsertBlock(f->b);
    if (!here || (f->piece->copies > 1 && c->uses == CG_FEW_USES)) {
        c->block = LLVMGetInsertBlock(f->b);
        c->uses = 0;
        c->value = here ? LLVMBuildFreeze(f->b, c->value, "") : LLVMBuildLoad2(f->b, LLVMTypeOf(v), c->memory, "");
    }
    c->uses++;
    return c->value;
}

LLVMValueRef opjit_cg_kept_at(const cg_func *f, LLVMValueRef v)
{
    for (uint32_t i = 0; i < f->constant_count; i++)
        if (f->constants[i].value == v)
            return f->constants[i].memory;
    return NULL;
}

void opjit_cg_forget_kept(cg_func *f)
{
    for (uint32_t i = 0; i < f->constant_count; i++)
        f->constants[i].block = NULL;
}

bool opjit_cg_is_kept(const cg_func *f, LLVMValueRef v)
{
    if (LLVMIsABitCastInst(v))
        v = LLVMGetOperand(v, 0);
    bool kept = LLVMIsConstant(v);
    for (uint32_t i = 0; i < f->constant_count && !kept; i++)
        kept = f->constants[i].value == v;
    return kept;
}

/* --- select ------------------------------------------------------------------------------------------------------- */

/* A scalar condition in all lanes, as integers out of memory: fast selection knows no vectors that a scalar chooses,
 * and what is before such a choice leaves fast selection with it. */
static LLVMValueRef all_lanes(cg_func *f, LLVMValueRef c, uint32_t bits, uint32_t lanes)
{
    char name[24];
    LLVMTypeRef type = opjit_cg_int(f, bits, lanes);
    LLVMValueRef both[2] = { LLVMConstNull(type), LLVMConstAllOnes(type) };
    snprintf(name, sizeof(name), "none.all.%ux%u", lanes, bits);
    LLVMValueRef table = LLVMGetNamedGlobal(f->module, name);
    if (!table)
        table = opjit_cg_constant_data(f, name, LLVMConstArray2(type, both, 2));
    LLVMValueRef all = opjit_cg_offset(f, type, table, opjit_cg_number(f, 64, 1, 1));
    return LLVMBuildLoad2(f->b, type, LLVMBuildSelect(f->b, c, all, table, ""), "");
}

/* A condition as integers of that width; fast selection knows how to extend i1. */
static LLVMValueRef widened(cg_func *f, LLVMValueRef c, uint32_t bits, uint32_t lanes)
{
    if (opjit_cg_lanes(c) == 1 && !LLVMIsConstant(c))
        return all_lanes(f, opjit_cg_narrow(f, c), bits, lanes);
    if (opjit_cg_bits(c) != bits)
        c = LLVMBuildSExt(f->b, opjit_cg_splat(f, opjit_cg_narrow(f, c), lanes), opjit_cg_int(f, bits, lanes), "");
    return opjit_cg_kept(f, c);
}

LLVMValueRef opjit_cg_condition_lanes(cg_func *f, LLVMValueRef c, uint32_t lanes)
{
    const uint32_t bits = f->piece->lane_bits;
    return !LLVMIsConstant(c) && opjit_cg_compares(f, bits, lanes) ? all_lanes(f, c, bits, lanes)
                                                                   : opjit_cg_splat(f, c, lanes);
}

LLVMValueRef opjit_cg_condition_wide(cg_func *f, LLVMValueRef c, uint32_t bits)
{
    const uint32_t lanes = opjit_cg_lanes(c);
    return opjit_cg_compares(f, bits, lanes) ? widened(f, c, bits, lanes) : c;
}

LLVMValueRef opjit_cg_mask_where(cg_func *f, LLVMValueRef c)
{
    const uint32_t bits = f->piece->lane_bits, lanes = f->piece->lanes;
    LLVMValueRef mask = f->piece->mask;
    if (opjit_cg_compares(f, bits, lanes)) {
        c = widened(f, c, bits, lanes);
        return mask ? LLVMBuildAnd(f->b, widened(f, mask, bits, lanes), c, "") : c;
    }
    c = opjit_cg_splat(f, opjit_cg_narrow(f, c), lanes);
    return mask ? LLVMBuildAnd(f->b, opjit_cg_narrow(f, mask), c, "") : c;
}

LLVMValueRef opjit_cg_choose(cg_func *f, LLVMValueRef c, LLVMValueRef a, LLVMValueRef b)
{
    if (opjit_cg_bits(a) != opjit_cg_bits(b)) { /* conditions in both forms */
        a = opjit_cg_narrow(f, a);
        b = opjit_cg_narrow(f, b);
    }
    if (!f->peak && !LLVMIsConstant(c) && LLVMTypeOf(c) == f->type.i1 && opjit_cg_lanes(a) > 1 && opjit_cg_bits(a) > 1)
        c = all_lanes(f, c, opjit_cg_bits(a), opjit_cg_lanes(a));
    if (LLVMIsConstant(c) && opjit_cg_compares(f, opjit_cg_bits(a), opjit_cg_lanes(c)))
        c = widened(f, c, opjit_cg_bits(a), opjit_cg_lanes(c));
    if (LLVMTypeOf(a) != LLVMTypeOf(b) || opjit_cg_bits(c) > 1) {
        a = opjit_cg_as_bits(f, a);
        b = opjit_cg_as_bits(f, b);
    }
    if (opjit_cg_bits(c) == 1 || opjit_cg_bits(c) != opjit_cg_bits(a))
        return LLVMBuildSelect(f->b, opjit_cg_narrow(f, c), is_zero(a) ? a : opjit_cg_kept(f, a),
                               is_zero(b) ? b : opjit_cg_kept(f, b), "");
    if (is_zero(b))
        return LLVMBuildAnd(f->b, c, opjit_cg_kept(f, a), "");
    LLVMValueRef differ =
        is_zero(a) ? opjit_cg_kept(f, b) : LLVMBuildXor(f->b, opjit_cg_kept(f, a), opjit_cg_kept(f, b), "");
    return LLVMBuildXor(f->b, LLVMBuildAnd(f->b, differ, c, ""), opjit_cg_kept(f, b), ""); /* its second use */
}

/* AND, OR, XOR, NOT of conditions. */
LLVMValueRef opjit_cg_logic(cg_func *f, ir_op op, LLVMValueRef *a)
{
    if (op != IR_NOT && opjit_cg_bits(a[0]) != opjit_cg_bits(a[1])) {
        const uint32_t bits = cg_wider(opjit_cg_bits(a[0]), opjit_cg_bits(a[1])), lanes = opjit_cg_lanes(a[0]);
        const bool widens = opjit_cg_compares(f, bits, lanes);
        for (uint32_t i = 0; i < 2; i++)
            a[i] = widens ? widened(f, a[i], bits, lanes) : opjit_cg_narrow(f, a[i]);
    }
    switch (op) {
    case IR_AND: return LLVMBuildAnd(f->b, a[0], a[1], "");
    case IR_OR: return LLVMBuildOr(f->b, a[0], a[1], "");
    case IR_XOR: return LLVMBuildXor(f->b, a[0], a[1], "");
    default: {
        const uint32_t lanes = opjit_cg_lanes(a[0]), own = f->piece->lane_bits;
        if (opjit_cg_bits(a[0]) == 1 && opjit_cg_compares(f, own, lanes))
            a[0] = widened(f, a[0], own, lanes);
        const uint32_t bits = opjit_cg_bits(a[0]);
        LLVMValueRef ones = opjit_cg_number(f, bits, lanes, UINT64_MAX);
        return LLVMBuildXor(f->b, a[0], bits > 1 ? opjit_cg_kept(f, ones) : ones, "");
    }
    }
}

/* --- lane numbers ------------------------------------------------------------------------------------------------- */

/* Ones, zeros, ones, as many of each as the copies have lanes; or zeros, one, zeros.  As bytes, which are emitted at
 * once. */
static LLVMValueRef window(cg_func *f, uint32_t bits, uint32_t lanes, bool point)
{
    char name[32];
    const size_t part = (size_t)lanes * bits / 8;
    snprintf(name, sizeof(name), "%s_%u_%u", point ? "point" : "window", bits, lanes);
    LLVMValueRef global = LLVMGetNamedGlobal(f->module, name);
    if (global)
        return global;
    char *data = ARENA_ARRAY(f->arena, char, 3 * part);
    if (!data) {
        f->failed = true;
        return LLVMGetUndef(f->type.ptr);
    }
    memset(data, point ? 0 : 0xff, 3 * part);
    memset(data + part, point ? 0xff : 0, point ? bits / 8 : part);
    return opjit_cg_constant_data(f, name, LLVMConstStringInContext(f->llvm, data, (unsigned)(3 * part), 1));
}

LLVMValueRef opjit_cg_limit(cg_func *f, bool max, LLVMValueRef a, LLVMValueRef b)
{
    if (LLVMIsConstant(a) && LLVMIsConstant(b))
        return (LLVMConstIntGetSExtValue(a) > LLVMConstIntGetSExtValue(b)) == max ? a : b;
    LLVMValueRef better = LLVMBuildICmp(f->b, max ? LLVMIntSGT : LLVMIntSLT, a, b, "");
    return LLVMBuildSelect(f->b, better, a, b, "");
}

LLVMValueRef opjit_cg_lane_window(cg_func *f, ir_op op, LLVMValueRef d, bool swapped)
{
    const uint32_t bits = f->piece->lane_bits, lanes = f->piece->lanes * f->piece->copies;
    const bool point = op == IR_EQ, after = swapped && !point;
    /* l < d; l <= d is l < d + 1; d < l is not l < d + 1; d <= l is not l < d. */
    LLVMValueRef e = !point && (op == IR_LE) != swapped ? LLVMBuildAdd(f->b, d, opjit_cg_number(f, 64, 1, 1), "") : d;
    LLVMValueRef most = opjit_cg_number(f, 64, 1, lanes);
    if (point) { /* before the lanes is as good as after them */
        e = LLVMBuildSelect(f->b, LLVMBuildICmp(f->b, LLVMIntULT, e, most, ""), e, most, "");
    } else {
        e = opjit_cg_limit(f, true, e, opjit_cg_number(f, 64, 1, 0));
        e = opjit_cg_limit(f, false, e, most);
    }
    LLVMValueRef at = LLVMBuildSub(f->b, opjit_cg_number(f, 64, 1, after ? 2 * lanes : lanes), e, "");
    return opjit_cg_offset(f, opjit_cg_int(f, bits, 1), window(f, bits, lanes, point), at);
}

LLVMValueRef opjit_cg_lane_mask(cg_func *f, LLVMValueRef address)
{
    LLVMValueRef v = LLVMBuildLoad2(f->b, opjit_cg_int(f, f->piece->lane_bits, f->piece->lanes), address, "");
    LLVMSetAlignment(v, f->piece->lane_bits / 8);
    return v;
}

/* --- masks -------------------------------------------------------------------------------------------------------- */

/* The lanes that a constant mask has, if those are the first ones; else 0. */
static uint32_t first_lanes(LLVMValueRef mask)
{
    uint32_t first = 0;
    for (uint32_t i = 0; i < opjit_cg_lanes(mask) && LLVMIsConstant(mask); i++) {
        LLVMValueRef lane = LLVMGetAggregateElement(mask, i);
        if (!lane || !LLVMIsAConstantInt(lane) || (LLVMConstIntGetZExtValue(lane) != 0 && first < i))
            return 0;
        first += LLVMConstIntGetZExtValue(lane) != 0;
    }
    return first;
}

void opjit_cg_mask_begin(cg_func *f, cg_piece *own, uint32_t lanes, LLVMValueRef count)
{
    cg_piece_begin(f, own);
    f->piece->mask = LLVMBuildICmp(f->b, LLVMIntULT, opjit_cg_iota(f, f->piece->lane_bits, lanes, 0, 1), count, "");
    f->piece->iterations = f->piece->mask;
    f->piece->sure = NULL;
    f->piece->tail = true;
    f->piece->first = first_lanes(f->piece->mask);
}

bool opjit_cg_is_rest(const cg_func *f)
{
    return f->piece->tail && f->piece->first > 0 && first_lanes(f->piece->mask) == f->piece->first;
}

LLVMValueRef opjit_cg_load_where(cg_func *f, LLVMValueRef pointer, LLVMValueRef mask, LLVMValueRef other,
                                 uint32_t align)
{
    LLVMTypeRef types[2] = { LLVMTypeOf(other), f->type.ptr }, fn_type;
    LLVMValueRef fn = compat_intrinsic(&f->latest, f->module, f->llvm, "llvm.masked.load", types, 2, &fn_type);
    LLVMValueRef call = LLVMBuildCall2(f->b, fn_type, fn, (LLVMValueRef[]){ pointer, mask, other }, 3, "");
    LLVMAddCallSiteAttribute(call, 1, compat_attribute(f->llvm, "align", align));
    return call;
}
