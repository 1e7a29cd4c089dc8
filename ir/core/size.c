/* SPDX-License-Identifier: Apache-2.0 */
/* size.c - a number that follows from dynamic dimensions, as an expression of their parameters. */
#include "ir/core/internal.h"

static ir_ref times(ir_func *f, ir_ref a, ir_ref b)
{
    return a == 0 ? b : ir_expr2(f, IR_ISCALE, IR_INDEX, a, b);
}

static ir_ref size_at(ir_func *f, uint32_t d)
{
    if (f->space.count == 0 || d < f->space.dims)
        return opjit_ir_param(f, f->first_dim + d);
    const opjit_quotient *const q = &f->space.quotients[d - f->space.dims];
    const ir_ref size = opjit_ir_param(f, f->first_dim + q->dim),
                 sum = ir_make2(f, IR_IADD, IR_INDEX, size, opjit_ir_index(f, q->plus));
    return ir_make2(f, IR_IDIV, IR_INDEX, sum, opjit_ir_index(f, q->by));
}

static ir_ref product_of(ir_func *f, const uint8_t *powers)
{
    ir_ref product = 0;
    for (uint32_t d = 0; d < OPJIT_MAX_POWERS; d++)
        for (uint32_t k = 0; k < powers[d]; k++)
            product = times(f, product, size_at(f, d));
    return product;
}

static ir_ref form_of(ir_func *f, const opjit_size_form *form)
{
    ir_ref sum = 0;

    for (uint32_t i = 0; i < 2; i++) {
        if (form->factors[i] == 0)
            continue;
        const ir_ref factor = opjit_ir_index(f, form->factors[i]),
                     term = ir_make2(f, IR_IMUL, IR_INDEX, product_of(f, form->powers[i]), factor);
        sum = sum == 0 ? term : ir_make2(f, IR_IADD, IR_INDEX, sum, term);
    }
    sum = sum == 0 ? opjit_ir_index(f, form->constant)
                   : ir_make2(f, IR_IADD, IR_INDEX, sum, opjit_ir_index(f, form->constant));
    if (form->divisor != 1)
        sum = ir_make2(f, IR_IDIV, IR_INDEX, sum, opjit_ir_index(f, form->divisor));
    sum = ir_make2(f, IR_IMUL, IR_INDEX, sum, opjit_ir_index(f, form->times));
    const ir_ref whole = form->factors[1] == 0 ? product_of(f, form->powers[1]) : 0;
    return whole == 0 ? sum : times(f, sum, whole);
}

ir_ref opjit_ir_size(ir_func *f, const ir_size_form *size)
{
    ir_ref number = form_of(f, &size->form);

    if (size->rest != 0)
        number = ir_make2(f, IR_IMOD, IR_INDEX, number, opjit_ir_index(f, size->rest));
    return size->plus == 0 ? number : ir_make2(f, IR_IADD, IR_INDEX, number, opjit_ir_index(f, size->plus));
}
