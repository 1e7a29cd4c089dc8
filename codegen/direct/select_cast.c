/* SPDX-License-Identifier: Apache-2.0 */
/* select_cast.c - conversions: of integers, of vectors, between numbers and masks. */
#include "codegen/direct.h"

/* --- integers ----------------------------------------------------------------------------------------------------- */

static void extend_integer(dx_func *f, LLVMValueRef v, dx_type from, dx_type to, bool is_signed)
{
    const dx_reg a = opjit_dx_use(f, LLVMGetOperand(v, 0));
    if (from.bits == 1 && !is_signed) { /* conditions are 0 or 1 in all bits */
        opjit_dx_name(f, v, a);
        return;
    }
    const dx_reg dst = opjit_dx_result(f, v);
    if (from.bits == 1) {
        opjit_dx_bit_as_all(f, dst, a);
        return;
    }
    (void)to;
    dx_op *o = opjit_dx_op(f, DX_EXTEND);
    o->dst = dst;
    o->b = a;
    o->bytes = from.bits / 8;
    o->code = is_signed;
}

static void integer_cast(dx_func *f, LLVMValueRef v, LLVMOpcode op, dx_type from, dx_type to)
{
    if (op == LLVMZExt || op == LLVMSExt) {
        extend_integer(f, v, from, to, op == LLVMSExt);
    } else if (to.bits > 1) { /* upper bits may be anything */
        opjit_dx_name(f, v, opjit_dx_use(f, LLVMGetOperand(v, 0)));
    } else {
        const dx_reg a = opjit_dx_use(f, LLVMGetOperand(v, 0)), dst = opjit_dx_result(f, v);
        opjit_dx_lowest_bit(f, dst, a);
    }
}

/* --- vectors of integers ------------------------------------------------------------------------------------------ */

static void from_mask(dx_func *f, LLVMValueRef v, dx_type to, bool is_signed)
{
    if (!f->wide) {
        opjit_dx_narrow_from_mask(f, v, to, is_signed);
        return;
    }
    const dx_reg mask = opjit_dx_mask(f, LLVMGetOperand(v, 0));
    const dx_reg all = opjit_dx_new(f, DX_VEC), dst = opjit_dx_result(f, v);
    static const dx_form_name forms[] = { DX_F_MOVM2B, DX_F_MOVM2W, DX_F_MOVM2D, DX_F_MOVM2Q };
    const dx_form_name form = forms[dx_size(to.bits)];
    if (is_signed) {
        opjit_dx_vector(f, form, dx_width(to), dst, 0, mask);
        return;
    }
    /* 0 - (all ones) */
    static const dx_form_name subtract[] = { DX_F_PSUBB, DX_F_PSUBW, DX_F_PSUBD, DX_F_PSUBQ };
    const dx_reg zero = opjit_dx_zero(f);
    opjit_dx_vector(f, form, dx_width(to), all, 0, mask);
    opjit_dx_vector(f, subtract[dx_size(to.bits)], dx_width(to), dst, zero, all);
}

static dx_form_name widen_form(uint32_t from, uint32_t to, bool is_signed)
{
    const uint32_t f = dx_size(from), t = dx_size(to);
    const dx_form_name first = is_signed ? DX_F_SEXTBW : DX_F_ZEXTBW;
    return (dx_form_name)(first + (f == 0 ? t - 1 : f == 1 ? 3 + t - 2 : 5));
}

static dx_form_name narrow_form(uint32_t from, uint32_t to)
{
    const uint32_t f = dx_size(from), t = dx_size(to);
    return f == 1   ? DX_F_TRUNCWB
           : f == 2 ? t == 0 ? DX_F_TRUNCDB : DX_F_TRUNCDW
           : t == 0 ? DX_F_TRUNCQB
           : t == 1 ? DX_F_TRUNCQW
                    : DX_F_TRUNCQD;
}

static void vector_cast(dx_func *f, LLVMValueRef v, LLVMOpcode op, dx_type from, dx_type to)
{
    if (from.bits == 1 && (op == LLVMSExt || op == LLVMZExt)) {
        from_mask(f, v, to, op == LLVMSExt);
        return;
    }
    if (op == LLVMTrunc && !f->wide) {
        opjit_dx_narrow_truncate(f, v, from, to);
        return;
    }
    if (to.bits == 1) {
        opjit_dx_refuse(f, "truncation to a mask");
        return;
    }
    const dx_reg a = opjit_dx_use(f, LLVMGetOperand(v, 0)), dst = opjit_dx_result(f, v);
    if (op == LLVMTrunc) /* named by the wider vector, which is REG; RM gets the result */
        opjit_dx_vector(f, narrow_form(from.bits, to.bits), dx_width(from), dst, 0, a);
    else
        opjit_dx_vector(f, widen_form(from.bits, to.bits, op == LLVMSExt), dx_width(to), dst, 0, a);
}

/* --- floats ------------------------------------------------------------------------------------------------------- */

/* A scalar between registers of both kinds: converts, and keeps nothing of dst. */
static void scalar_number(dx_func *f, LLVMValueRef v, LLVMOpcode op, dx_type from, dx_type to)
{
    dx_reg a = opjit_dx_use(f, LLVMGetOperand(v, 0));
    if (op == LLVMFPExt || op == LLVMFPTrunc) {
        opjit_dx_vector(f, op == LLVMFPExt ? DX_F_SSSD : DX_F_SDSS, 16, opjit_dx_result(f, v), a, a);
        return;
    }
    const bool to_float = op == LLVMSIToFP || op == LLVMUIToFP;
    const dx_type i = to_float ? from : to, x = to_float ? to : from;
    if (i.bits < 32 && to_float) {
        const dx_reg wide = opjit_dx_new(f, DX_INT);
        dx_op *o = opjit_dx_op(f, DX_EXTEND);
        o->dst = wide;
        o->b = a;
        o->bytes = i.bits == 1 ? 1 : i.bits / 8;
        o->code = op == LLVMSIToFP;
        a = wide;
        if (i.bits == 1)
            opjit_dx_refuse(f, "condition as a number");
    }
    if (op == LLVMUIToFP && i.bits == 64 && !f->wide) {
        opjit_dx_name(f, v, opjit_dx_narrow_unsigned(f, a, x.bits));
        return;
    }
    const dx_reg dst = opjit_dx_result(f, v);
    if (to_float) {
        const dx_reg zero = opjit_dx_new(f, DX_VEC);
        const bool is_long = i.bits == 64 || (!f->wide && op == LLVMUIToFP && i.bits == 32);
        const bool is_unsigned = op == LLVMUIToFP && i.bits >= 32 && (f->wide || i.bits == 64);
        if (is_long && i.bits == 32) { /* as a number of 64 bits, with a sign */
            const dx_reg wide = opjit_dx_new(f, DX_INT);
            dx_op *o = opjit_dx_op(f, DX_EXTEND);
            o->dst = wide;
            o->b = a;
            o->bytes = 4;
            a = wide;
        }
        const dx_form_name first = is_unsigned ? DX_F_SUI32SS : DX_F_SI32SS;
        opjit_dx_op(f, DX_NUMBER)->dst = zero;
        opjit_dx_vector(f, (dx_form_name)(first + (x.bits == 64 ? 2 : 0) + is_long), 16, dst, zero, a);
    } else if (op == LLVMFPToSI) {
        opjit_dx_vector(f, (dx_form_name)(DX_F_SSSI32 + (x.bits == 64 ? 2 : 0) + (i.bits == 64)), 16, dst, 0, a);
    } else {
        opjit_dx_refuse(f, "float to unsigned");
    }
}

enum { CURRENT = 4 /* rounding mode */ };

static dx_form_name number_form(LLVMOpcode op, dx_type from, dx_type to)
{
    const bool is_signed = op == LLVMSIToFP || op == LLVMFPToSI;
    if (from.bits == 16 || to.bits == 16)
        return op == LLVMFPExt && to.bits == 32     ? DX_F_F16F32
               : op == LLVMFPTrunc && from.bits == 32 ? DX_F_F32F16
                                                      : DX_FORMS;
    if (op == LLVMFPExt)
        return DX_F_F32F64;
    if (op == LLVMFPTrunc)
        return DX_F_F64F32;
    if (op == LLVMSIToFP || op == LLVMUIToFP) {
        if (from.bits == 32)
            return to.bits == 32 ? is_signed ? DX_F_I32F32 : DX_F_U32F32 : is_signed ? DX_F_I32F64 : DX_F_U32F64;
        if (from.bits != 64)
            return DX_FORMS;
        return to.bits == 64 ? is_signed ? DX_F_I64F64 : DX_F_U64F64 : is_signed ? DX_F_I64F32 : DX_F_U64F32;
    }
    if (from.bits == 32 && to.bits == 64)
        return is_signed ? DX_F_F32I64 : DX_F_F32U64;
    if (from.bits == 32)
        return to.bits == 32 ? is_signed ? DX_F_F32I32 : DX_F_F32U32 : DX_FORMS;
    if (to.bits == 64)
        return is_signed ? DX_F_F64I64 : DX_F_F64U64;
    return to.bits == 32 && is_signed ? DX_F_F64I32 : DX_FORMS;
}

static void vector_number(dx_func *f, LLVMValueRef v, LLVMOpcode op, dx_type from, dx_type to)
{
    const dx_form_name form = number_form(op, from, to);
    const uint32_t bytes = dx_bytes(from) > dx_bytes(to) ? dx_width(from) : dx_width(to);
    opjit_dx_class(f, from);
    opjit_dx_class(f, to);
    if (f->refused || opjit_dx_narrow_number(f, v, op, from, to) || opjit_dx_narrow_long(f, v, op, from, to))
        return;
    if (form == DX_FORMS) {
        opjit_dx_refuse(f, "conversion of vectors");
        return;
    }
    const dx_reg a = opjit_dx_use(f, LLVMGetOperand(v, 0));
    opjit_dx_vector(f, form, bytes, opjit_dx_result(f, v), 0, a)->imm = CURRENT; /* of F32F16 */
}

/* One half, as an integer. */
void opjit_dx_half(dx_func *f, LLVMValueRef v, dx_type t)
{
    const dx_reg a = opjit_dx_use(f, LLVMGetOperand(v, 0)), x = opjit_dx_new(f, DX_VEC);
    if (t.kind == DX_T_FLOAT) {
        opjit_dx_vector(f, DX_F_MOVD, 16, x, 0, a);
        opjit_dx_vector(f, DX_F_F16F32, 16, opjit_dx_result(f, v), 0, x);
        return;
    }
    opjit_dx_vector(f, DX_F_F32F16, 16, x, 0, a)->imm = CURRENT;
    opjit_dx_vector(f, DX_F_FROMD, 16, opjit_dx_result(f, v), 0, x);
}

/* --- bits --------------------------------------------------------------------------------------------------------- */

/* What has the same bits as its operand. */
static void name_operand(dx_func *f, LLVMValueRef v)
{
    LLVMValueRef x = LLVMGetOperand(v, 0);
    const dx_value *value = LLVMIsConstant(x) ? NULL : opjit_dx_find(f, x);
    if (value && (value->how == DX_V_PLACE || value->how == DX_V_CONSTANT)) {
        const dx_value copy = *value;
        dx_value *own = opjit_dx_enter(f, v);
        own->how = copy.how;
        own->place = copy.place;
    } else {
        opjit_dx_name(f, v, opjit_dx_use(f, x));
    }
}

static void bitcast(dx_func *f, LLVMValueRef v, dx_type from, dx_type to)
{
    const dx_class a = opjit_dx_class(f, from), b = opjit_dx_class(f, to);
    if (!f->wide && a != b && (a == DX_MASK || b == DX_MASK)) {
        opjit_dx_narrow_mask_cast(f, v, from, to);
        return;
    }
    if (a == b) {
        name_operand(f, v);
        return;
    }
    const dx_reg x = opjit_dx_use(f, LLVMGetOperand(v, 0));
    const uint32_t bytes = a == DX_MASK ? from.lanes / 8u : b == DX_MASK ? to.lanes / 8u : dx_bytes(from);
    const bool wide = bytes == 8;
    const dx_reg dst = opjit_dx_result(f, v);
    if ((a == DX_VEC || b == DX_VEC) && bytes != 4 && bytes != 8)
        opjit_dx_refuse(f, "bits of short vectors");
    if (a == DX_MASK && (bytes == 0 || from.lanes % 8 != 0))
        opjit_dx_refuse(f, "bits of short masks");
    if (a == DX_INT && b == DX_VEC)
        opjit_dx_vector(f, wide ? DX_F_MOVQ : DX_F_MOVD, 16, dst, 0, x);
    else if (a == DX_VEC && b == DX_INT)
        opjit_dx_vector(f, wide ? DX_F_FROMQ : DX_F_FROMD, 16, dst, 0, x);
    else if (a == DX_INT && b == DX_MASK)
        opjit_dx_vector(f, wide ? DX_F_KMOVQ : DX_F_KMOVD, 16, dst, 0, x);
    else if (a == DX_MASK && b == DX_INT)
        opjit_dx_vector(f, wide ? DX_F_FROMKQ : DX_F_FROMKD, 16, dst, 0, x);
    else
        opjit_dx_refuse(f, "bits of masks as vectors");
}

void opjit_dx_select_cast(dx_func *f, LLVMValueRef v, LLVMOpcode op)
{
    const dx_type from = opjit_dx_type(f, LLVMTypeOf(LLVMGetOperand(v, 0))), to = opjit_dx_type(f, LLVMTypeOf(v));
    if (op == LLVMFreeze) {
        name_operand(f, v);
    } else if (op == LLVMBitCast) {
        bitcast(f, v, from, to);
    } else if (op == LLVMPtrToInt || op == LLVMIntToPtr) {
        if (from.bits != to.bits)
            opjit_dx_refuse(f, "pointer as a short integer");
        opjit_dx_name(f, v, opjit_dx_use(f, LLVMGetOperand(v, 0)));
    } else if (from.kind == DX_T_INT && to.kind == DX_T_INT) {
        opjit_dx_class(f, from);
        opjit_dx_class(f, to);
        if (from.lanes)
            vector_cast(f, v, op, from, to);
        else
            integer_cast(f, v, op, from, to);
    } else {
        if (from.kind == DX_T_OTHER || to.kind == DX_T_OTHER)
            opjit_dx_refuse(f, "type of a conversion");
        else if (from.lanes)
            vector_number(f, v, op, from, to);
        else
            scalar_number(f, v, op, from, to);
    }
}
