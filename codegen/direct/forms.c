/* SPDX-License-Identifier: Apache-2.0 */
/* forms.c - operations on vectors: the table of instructions, and how they are appended. */
#include "codegen/direct.h"

const dx_form opjit_dx_forms[DX_FORMS] = {
#define DX_FORM(name, map, prefix, code, flags, unit) [DX_F_##name] = { map, prefix, code, flags, unit },
#include "codegen/direct/forms.def"
#undef DX_FORM
};

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
