/* SPDX-License-Identifier: Apache-2.0 */
/* half_byte.c - elements of 4-bit types: half_byte.h. */
#include "frontend/ops/quantize/half_byte.h"

#include "frontend/ops/moves.h"
#include "frontend/ops/reduce.h"

static ir_ref number(ir_func *f, int32_t value)
{
    return opjit_ir_const(f, IR_I32, (uint32_t)value);
}

/* The lower half of x as its type has it. */
static ir_ref extended(ir_func *f, DML_TENSOR_DATA_TYPE type, ir_ref x)
{
    if (type == DML_TENSOR_DATA_TYPE_UINT4)
        return x;
    return ir_expr2(f, IR_SUB, IR_I32, ir_expr2(f, IR_XOR, IR_I32, x, number(f, 8)), number(f, 8));
}

static ir_ref half_at(op_lowering *l, uint32_t i, const ir_ref *at)
{
    const fe_tensor *t = &l->op->inputs[i];
    ir_func *f = l->f;
    ir_ref element = opjit_ir_index(f, 0);

    for (uint32_t d = 0; d < t->rank; d++)
        if (t->sizes[d] > 1)
            element = ir_expr2(f, IR_IADD, IR_INDEX, element, moves_mul(f, at[d], (int64_t)t->strides[d]));
    const ir_ref two = opjit_ir_index(f, 2), byte = ir_expr2(f, IR_IDIV, IR_INDEX, element, two);
    const ir_ref bits = moves_mul(f, ir_expr2(f, IR_IMOD, IR_INDEX, element, two), 4);
    const ir_ref whole = opjit_ir_load(f, l->inputs[i], &byte);
    const ir_ref half = ir_expr2(f, IR_SHR, IR_U8, whole, ir_expr1(f, IR_ELEM, IR_U8, bits));
    const ir_ref low = ir_expr2(f, IR_AND, IR_U8, half, opjit_ir_const(f, IR_U8, 15));

    return extended(f, t->dtype, ir_expr1(f, IR_CAST, IR_I32, low));
}

ir_ref opjit_fe_small_input(op_lowering *l, uint32_t i, const ir_ref *at)
{
    if (l->f->failed)
        return 0;
    if (rt_dtype_is_half_byte(l->op->inputs[i].dtype))
        return half_at(l, i, at);
    return ir_expr1(l->f, IR_CAST, IR_I32, opjit_ir_load(l->f, l->inputs[i], at));
}

/* Whether each stride is the product of the sizes of all dimensions with smaller ones. */
opjit_status opjit_fe_check_halves(const opjit_operator *op, uint32_t output, opjit_error *error)
{
    const fe_tensor *t = &op->outputs[output];

    for (uint32_t d = 0; rt_dtype_is_half_byte(t->dtype) && d < t->rank; d++) {
        uint64_t packed = 1;
        for (uint32_t k = 0; k < t->rank; k++)
            packed *= k != d && t->strides[k] < t->strides[d] ? t->sizes[k] : 1;
        if (t->sizes[d] > 1 && t->strides[d] != packed)
            return opjit_rt_refuse(error, OPJIT_LIMIT,
                                   "{%s} {%s.Strides[%u]}: {%u}, must be %llu: two elements share a byte, so an output "
                                   "has no gaps",
                                   op->def->name, op->output_names[output], d, (unsigned)t->strides[d],
                                   (unsigned long long)packed);
    }
    return OPJIT_OK;
}

/* Half of a byte, in its place: that of element number `element` of the memory. */
static ir_ref half_of(op_lowering *l, const fe_tensor *t, ir_ref element, uint32_t bits, half_byte_value *value,
                      void *user)
{
    ir_func *f = l->f;
    ir_ref at[OPJIT_MAX_RANK];

    for (uint32_t d = 0; d < t->rank; d++)
        at[d] = t->sizes[d] == 1 ? opjit_ir_index(f, 0) : moves_digit(f, element, t->strides[d], t->sizes[d]);
    const ir_ref low = ir_expr2(f, IR_AND, IR_I32, value(user, at), number(f, 15));
    return bits == 0 ? low : ir_expr2(f, IR_SHL, IR_I32, low, number(f, (int32_t)bits));
}

void opjit_fe_set_halves(op_lowering *l, uint32_t output, half_byte_value *value, void *user)
{
    const fe_tensor *t = &l->op->outputs[output];
    ir_func *f = l->f;
    const ir_ref out = opjit_fe_output(l, output);

    if (f->failed)
        return;
    const ir_ref first = moves_mul(f, opjit_ir_coordinate(f, out, 0), 2), second = moves_add(f, first, 1);
    const ir_ref low = half_of(l, t, first, 0, value, user);
    ir_ref high = half_of(l, t, second, 4, value, user);
    if (t->span % 2 != 0)
        high = ir_expr3(f, IR_SELECT, IR_I32,
                        ir_expr2(f, IR_LT, IR_BOOL, second, opjit_ir_index(f, (int64_t)t->span)), high, number(f, 0));
    opjit_fe_set(l, out, ir_expr2(f, IR_OR, IR_I32, low, high));
}
