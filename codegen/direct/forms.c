/* SPDX-License-Identifier: Apache-2.0 */
/* forms.c - operations on vectors: the table of instructions, and how they are appended. */
#include "codegen/direct.h"

const dx_form opjit_dx_forms[DX_FORMS] = {
#define DX_FORM(name, map, prefix, code, flags, unit) [DX_F_##name] = { map, prefix, code, flags, unit },
#include "codegen/direct/forms.def"
#undef DX_FORM
};

bool opjit_dx_is_shift(uint32_t form)
{
    return form >= DX_F_SHIFTW && form <= DX_F_SHIFTQA;
}

bool opjit_dx_may_read_memory(const dx_func *f, const dx_op *o)
{
    return f->regs[o->b].kind == DX_VEC && !opjit_dx_is_shift(o->form) &&
           !(opjit_dx_forms[o->form].flags & (DX_REVERSED | DX_REGISTER));
}

dx_op *opjit_dx_vector(dx_func *f, dx_form_name form, uint32_t bytes, dx_reg dst, dx_reg a, dx_reg b)
{
    if (!f->wide && (opjit_dx_forms[form].flags & DX_ONLY_512))
        opjit_dx_refuse(f, "instruction of AVX-512");
    dx_op *o = opjit_dx_op(f, DX_VECTOR);
    o->form = (uint16_t)form;
    o->bytes = (uint8_t)bytes;
    o->dst = dst;
    o->a = a;
    o->b = b;
    return o;
}

dx_reg opjit_dx_two(dx_func *f, dx_form_name form, uint32_t bytes, dx_reg a, dx_reg b)
{
    const dx_reg dst = opjit_dx_new(f, DX_VEC);
    opjit_dx_vector(f, form, bytes, dst, a, b);
    return dst;
}

dx_reg opjit_dx_high_half(dx_func *f, dx_reg x)
{
    const dx_reg high = opjit_dx_new(f, DX_VEC);
    opjit_dx_vector(f, DX_F_VHIGH128, 32, high, 0, x)->imm = 1;
    return high;
}

dx_reg opjit_dx_zero(dx_func *f)
{
    if (f->zero_loads != f->loads || !f->zero) {
        f->zero = opjit_dx_new(f, DX_VEC);
        f->zero_loads = f->loads;
        opjit_dx_op(f, DX_NUMBER)->dst = f->zero;
    }
    return f->zero;
}

dx_reg opjit_dx_shifted(dx_func *f, dx_form_name form, uint32_t width, dx_reg x, uint32_t how, uint32_t by)
{
    const dx_reg dst = opjit_dx_new(f, DX_VEC);
    dx_op *o = opjit_dx_vector(f, form, width, dst, 0, x);
    o->code = (uint8_t)how;
    o->imm = by;
    return dst;
}
