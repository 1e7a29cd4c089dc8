/* SPDX-License-Identifier: Apache-2.0 */
/* select_wide.c - with AVX-512, vectors of integers that need two registers: indices of 64 bits beside elements of 32.
 * Their values are lists of two registers, and each operation is made for both halves; masks, which have all lanes, are
 * taken apart and joined. */
#include "codegen/direct.h"

enum { HALVES = 2 };

bool opjit_dx_is_wide(dx_func *f, dx_type t)
{
    return f->wide && t.lanes > 1 && t.kind == DX_T_INT && t.bits >= 8 && dx_bytes(t) == HALVES * f->bytes;
}

static dx_type half_of(dx_type t)
{
    t.lanes /= HALVES;
    return t;
}

static void half_constants(dx_func *f, LLVMValueRef v, dx_type half, dx_reg out[HALVES])
{
    enum { MOST_LANES = 64 };
    LLVMValueRef lanes[MOST_LANES];
    for (uint32_t h = 0; h < HALVES && !f->refused; h++) {
        for (uint32_t i = 0; i < half.lanes; i++) {
            lanes[i] = LLVMGetAggregateElement(v, h * half.lanes + i);
            if (!lanes[i])
                opjit_dx_refuse(f, "constant lane");
        }
        out[h] = f->refused ? 0 : opjit_dx_use(f, LLVMConstVector(lanes, half.lanes));
    }
}

/* Both halves of a vector in registers. */
static void halves(dx_func *f, LLVMValueRef v, dx_type half, dx_reg out[HALVES])
{
    const dx_value *value = LLVMIsConstant(v) ? NULL : opjit_dx_find(f, v);
    out[0] = out[1] = 0;
    if (LLVMIsConstant(v)) {
        half_constants(f, v, half, out);
    } else if (value && value->how == DX_V_LIST) {
        out[0] = value->reg;
        out[1] = value->reg + 1;
    } else {
        opjit_dx_refuse(f, "vector type");
    }
}

/* New registers, side by side, for the result. */
static void results(dx_func *f, LLVMValueRef v, dx_reg out[HALVES])
{
    for (uint32_t h = 0; h < HALVES; h++)
        out[h] = opjit_dx_new(f, DX_VEC);
    dx_value *value = opjit_dx_enter(f, v);
    value->how = DX_V_LIST;
    value->reg = out[0];
    f->vectors = true;
}

static dx_reg moved_mask(dx_func *f, dx_form_name form, dx_reg mask, uint32_t lanes)
{
    const dx_reg moved = opjit_dx_new(f, DX_MASK);
    opjit_dx_vector(f, form, 16, moved, 0, mask)->imm = lanes;
    return moved;
}

static void arithmetic(dx_func *f, LLVMValueRef v, LLVMOpcode op, dx_type half)
{
    const dx_form_name form = opjit_dx_integer_form(op, half.bits);
    dx_reg a[HALVES], b[HALVES], dst[HALVES];
    if (form == DX_FORMS) { /* it may have one operand: bits as others */
        opjit_dx_refuse(f, "vector arithmetic");
        return;
    }
    halves(f, LLVMGetOperand(v, 0), half, a);
    halves(f, LLVMGetOperand(v, 1), half, b);
    results(f, v, dst);
    for (uint32_t h = 0; h < HALVES && !f->refused; h++)
        opjit_dx_vector(f, form, f->bytes, dst[h], a[h], b[h]);
}

static void compare(dx_func *f, LLVMValueRef v, dx_type half)
{
    enum { WIDTH = 32 /* operations on masks have this encoding */ };
    dx_reg a[HALVES], b[HALVES], mask[HALVES];
    halves(f, LLVMGetOperand(v, 0), half, a);
    halves(f, LLVMGetOperand(v, 1), half, b);
    for (uint32_t h = 0; h < HALVES && !f->refused; h++) {
        mask[h] = opjit_dx_new(f, DX_MASK);
        opjit_dx_compare_vectors(f, LLVMGetICmpPredicate(v), half, mask[h], a[h], b[h]);
    }
    if (f->refused)
        return;
    const dx_reg high = moved_mask(f, DX_F_KSHIFTL, mask[1], half.lanes);
    opjit_dx_vector(f, DX_F_KOR, WIDTH, opjit_dx_result(f, v), mask[0], high);
}

static void choose(dx_func *f, LLVMValueRef v, dx_type half)
{
    static const dx_form_name forms[] = { DX_F_BLENDB, DX_F_BLENDW, DX_F_BLENDD, DX_F_BLENDQ };
    LLVMValueRef c = LLVMGetOperand(v, 0);
    const bool whole = !opjit_dx_type(f, LLVMTypeOf(c)).lanes;
    dx_reg yes[HALVES], no[HALVES], dst[HALVES], mask[HALVES];
    halves(f, LLVMGetOperand(v, 1), half, yes);
    halves(f, LLVMGetOperand(v, 2), half, no);
    mask[0] = mask[1] = opjit_dx_choosing_mask(f, c, whole);
    if (!whole)
        mask[1] = moved_mask(f, DX_F_KSHIFTR, mask[0], half.lanes);
    results(f, v, dst);
    for (uint32_t h = 0; h < HALVES && !f->refused; h++)
        opjit_dx_vector(f, forms[dx_size(half.bits)], f->bytes, dst[h], no[h], yes[h])->mask = mask[h];
}

static dx_mem place_of(dx_func *f, LLVMValueRef pointer, uint32_t half)
{
    dx_mem place = opjit_dx_place(f, pointer);
    place.offset += half * f->bytes;
    return place;
}

static void load(dx_func *f, LLVMValueRef v)
{
    dx_reg dst[HALVES];
    results(f, v, dst);
    for (uint32_t h = 0; h < HALVES && !f->refused; h++) {
        const uint32_t mem = opjit_dx_mem(f, place_of(f, LLVMGetOperand(v, 0), h));
        opjit_dx_vector(f, DX_F_LOAD, f->bytes, dst[h], 0, 0)->mem = mem;
    }
}

static void store(dx_func *f, LLVMValueRef v, dx_type half)
{
    dx_reg a[HALVES];
    halves(f, LLVMGetOperand(v, 0), half, a);
    for (uint32_t h = 0; h < HALVES && !f->refused; h++) {
        const uint32_t mem = opjit_dx_mem(f, place_of(f, LLVMGetOperand(v, 1), h));
        dx_op *o = opjit_dx_op(f, DX_PUT);
        o->form = DX_F_STORE;
        o->bytes = (uint8_t)f->bytes;
        o->a = a[h];
        o->mem = mem;
    }
}

/* One number in all lanes, which is the only lane of another vector. */
static void splat(dx_func *f, LLVMValueRef v, dx_type half)
{
    static const dx_form_name forms[] = { DX_F_SPREADB, DX_F_SPREADW, DX_F_SPREADD, DX_F_SPREADQ };
    LLVMValueRef first = LLVMGetOperand(v, 0);
    dx_reg dst[HALVES];
    if (!LLVMIsAInsertElementInst(first) || LLVMGetMaskValue(v, 0) != 0) {
        opjit_dx_refuse(f, "vector type");
        return;
    }
    const dx_reg number = opjit_dx_use(f, LLVMGetOperand(first, 1));
    results(f, v, dst);
    for (uint32_t h = 0; h < HALVES && !f->refused; h++)
        opjit_dx_vector(f, forms[dx_size(half.bits)], f->bytes, dst[h], 0, number);
}

/* Of numbers of half the bits, in one register. */
static void extend(dx_func *f, LLVMValueRef v, LLVMOpcode op, dx_type from)
{
    static const dx_form_name forms[2][3] = { { DX_F_ZEXTBW, DX_F_ZEXTWD, DX_F_ZEXTDQ },
                                              { DX_F_SEXTBW, DX_F_SEXTWD, DX_F_SEXTDQ } };
    dx_reg a[HALVES], dst[HALVES];
    if (dx_bytes(from) != f->bytes) {
        opjit_dx_refuse(f, "vector type");
        return;
    }
    a[0] = opjit_dx_use(f, LLVMGetOperand(v, 0));
    a[1] = opjit_dx_new(f, DX_VEC);
    opjit_dx_vector(f, DX_F_HIGH256, f->bytes, a[1], 0, a[0])->imm = 1;
    results(f, v, dst);
    for (uint32_t h = 0; h < HALVES && !f->refused; h++)
        opjit_dx_vector(f, forms[op == LLVMSExt][dx_size(from.bits)], f->bytes, dst[h], 0, a[h]);
}

/* To numbers of half the bits, in one register. */
static void truncate(dx_func *f, LLVMValueRef v, dx_type half, dx_type to)
{
    static const dx_form_name forms[] = { DX_FORMS, DX_F_TRUNCWB, DX_F_TRUNCDW, DX_F_TRUNCQD };
    dx_reg a[HALVES], part[HALVES];
    halves(f, LLVMGetOperand(v, 0), half, a);
    if (2 * to.bits != half.bits)
        opjit_dx_refuse(f, "vector type");
    for (uint32_t h = 0; h < HALVES && !f->refused; h++) {
        part[h] = opjit_dx_new(f, DX_VEC);
        opjit_dx_vector(f, forms[dx_size(half.bits)], f->bytes, part[h], 0, a[h]);
    }
    if (!f->refused)
        opjit_dx_vector(f, DX_F_PUTHIGH256, f->bytes, opjit_dx_result(f, v), part[0], part[1])->imm = 1;
}

/* One of the halves. */
static void part(dx_func *f, LLVMValueRef v, dx_type half)
{
    const int32_t first = LLVMGetMaskValue(v, 0);
    dx_reg a[HALVES];
    bool is_half = LLVMGetNumMaskElements(v) == half.lanes && (first == 0 || first == (int32_t)half.lanes);
    for (uint32_t i = 0; i < half.lanes && is_half; i++)
        is_half = LLVMGetMaskValue(v, i) == first + (int32_t)i;
    halves(f, LLVMGetOperand(v, 0), half, a);
    if (!is_half)
        opjit_dx_refuse(f, "vector type");
    opjit_dx_name(f, v, a[first != 0]);
}

/* false: the instruction neither makes nor reads such a vector. */
bool opjit_dx_select_wide(dx_func *f, LLVMValueRef v, LLVMOpcode op)
{
    LLVMValueRef x = LLVMGetNumOperands(v) > 0 ? LLVMGetOperand(v, 0) : v;
    const dx_type to = opjit_dx_type(f, LLVMTypeOf(v)), from = opjit_dx_type(f, LLVMTypeOf(x));
    const bool makes = opjit_dx_is_wide(f, to), reads = opjit_dx_is_wide(f, from);
    if (!makes && (!reads || op == LLVMExtractElement))
        return false;
    if (op == LLVMLoad)
        load(f, v);
    else if (op == LLVMStore)
        store(f, v, half_of(from));
    else if (op == LLVMICmp)
        compare(f, v, half_of(from));
    else if (op == LLVMSelect)
        choose(f, v, half_of(to));
    else if (op == LLVMShuffleVector && makes)
        splat(f, v, half_of(to));
    else if (op == LLVMShuffleVector)
        part(f, v, half_of(from));
    else if (op == LLVMSExt || op == LLVMZExt)
        extend(f, v, op, from);
    else if (op == LLVMTrunc)
        truncate(f, v, half_of(from), to);
    else if (makes && reads)
        arithmetic(f, v, op, half_of(to));
    else
        opjit_dx_refuse(f, "vector type");
    return true;
}
