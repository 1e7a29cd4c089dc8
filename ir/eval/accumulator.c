/* SPDX-License-Identifier: Apache-2.0 */
/* accumulator.c - steps and folds of accumulators, value by value. */
#include "ir/eval/accumulator.h"

#include "ir/eval/arithmetic.h"

void opjit_ir_acc_reset(accumulator *a, const ir_node *acc)
{
    const uint64_t identity = opjit_ir_identity((ir_type)acc->type, (ir_kind)acc->kind);
    for (uint32_t l = 0; (l < acc->imm || l == 0) && l < LANES_MAX; l++) {
        a->lane[l] = identity;
        a->some[l] = false;
        a->where[l] = 0;
    }
}

uint64_t opjit_ir_acc_step(const ir_node *acc, uint64_t a, uint64_t b)
{
    const uint64_t args[3] = { a, b, 0 };
    uint64_t out = 0;
    opjit_ir_arithmetic(ir_kind_op((ir_kind)acc->kind), (ir_type)acc->type, (ir_type)acc->type, args, &out);
    return out;
}

uint64_t opjit_ir_acc_step_dot(const ir_node *acc, uint64_t before, uint64_t x, uint64_t y)
{
    const ir_type type = (ir_type)acc->type;
    uint64_t out = 0;
    opjit_ir_arithmetic(ir_is_float(type) ? IR_FMA : IR_MUL, type, type, (const uint64_t[]){ x, y, before }, &out);
    return ir_is_float(type) ? out : opjit_ir_acc_step(acc, before, out);
}

static bool compare(ir_op op, ir_type type, uint64_t a, uint64_t b)
{
    uint64_t out = 0;
    opjit_ir_scalar(op, IR_BOOL, type, (const uint64_t[]){ a, b }, &out);
    return out != 0;
}

/* Whether (y, j) replaces (x, i): the first NaN wins, then the better value, then the first or last of equal ones. */
static bool replaces(ir_kind kind, ir_type type, uint64_t x, int64_t i, uint64_t y, int64_t j)
{
    const bool x_nan = ir_is_float(type) && compare(IR_NE, type, x, x);
    const bool y_nan = ir_is_float(type) && compare(IR_NE, type, y, y);
    if (x_nan || y_nan)
        return y_nan && (!x_nan || j < i);
    const bool least = ir_arg_is_least(kind);
    if (compare(IR_EQ, type, x, y))
        return ir_arg_is_first(kind) ? j < i : j > i;
    return least ? compare(IR_LT, type, y, x) : compare(IR_LT, type, x, y);
}

void opjit_ir_acc_update_arg(const ir_node *acc, ir_type type, uint64_t *x, int64_t *i, bool *some, uint64_t y,
                             int64_t j)
{
    if (*some && !replaces((ir_kind)acc->kind, type, *x, *i, y, j))
        return;
    *x = y;
    *i = j;
    *some = true;
}

void opjit_ir_acc_fold(const ir_node *acc, const accumulator *from, accumulator *a)
{
    *a = *from;
    for (uint32_t half = (uint32_t)acc->imm / 2; half > 0; half /= 2)
        for (uint32_t l = 0; l < half; l++) {
            if (!ir_kind_is_arg((ir_kind)acc->kind))
                a->lane[l] = opjit_ir_acc_step(acc, a->lane[l], a->lane[l + half]);
            else if (a->some[l + half])
                opjit_ir_acc_update_arg(acc, a->value_type, &a->lane[l], &a->where[l], &a->some[l], a->lane[l + half],
                                        a->where[l + half]);
        }
    if (!ir_kind_is_arg((ir_kind)acc->kind)) {
        a->total = a->total_some ? opjit_ir_acc_step(acc, a->total, a->lane[0]) : a->lane[0];
        a->total_some = true;
    } else if (a->some[0]) {
        opjit_ir_acc_update_arg(acc, a->value_type, &a->total, &a->total_where, &a->total_some, a->lane[0],
                                a->where[0]);
    }
}
