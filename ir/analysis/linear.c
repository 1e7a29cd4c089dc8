/* SPDX-License-Identifier: Apache-2.0 */
/* linear.c - index expressions as factor * var + rest. */
#include "ir/verify/verify.h"

/* Whether expr may differ between two values of var: reads it, also through lets, or reads an accumulator or memory
 * that the loop may change. */
static bool varies(const ir_func *f, ir_ref expr, ir_ref var, uint32_t *budget)
{
    const ir_node *node = ir_at(f, expr);
    if (expr == var || *budget == 0)
        return true;
    --*budget;
    if (node->op == IR_GET)
        return ir_at(f, node->ref)->op != IR_LET || varies(f, ir_operand(f, node->ref, 0), var, budget);
    if (node->op == IR_LOAD) {
        const ir_role role = f->tensors[node->ref].role;
        if (role != IR_IN && role != IR_CONSTANT)
            return true;
    }
    for (uint32_t i = 0; i < node->count; i++)
        if (varies(f, ir_operand(f, expr, i), var, budget))
            return true;
    return false;
}

/* A rest of 0 stands for the constant 0, so that no "+ 0" and no "* 1" is built. */
static ir_ref plus(ir_func *f, ir_op op, ir_ref a, ir_ref b)
{
    int64_t value;
    if (!b)
        return a;
    if (!a && op == IR_IADD)
        return b;
    if (!a)
        a = opjit_ir_index(f, 0);
    if (ir_is_index_const(f, a) && ir_is_index_const(f, b) &&
        (op == IR_IADD ? checked_addi(ir_index_value(f, a), ir_index_value(f, b), &value)
                       : checked_subi(ir_index_value(f, a), ir_index_value(f, b), &value)))
        return value ? opjit_ir_index(f, value) : 0;
    return ir_expr2(f, op, IR_INDEX, a, b);
}

static ir_ref times(ir_func *f, ir_ref a, ir_ref factor)
{
    const int64_t k = ir_index_value(f, factor);
    int64_t value;
    if (!a || k == 0)
        return 0;
    if (k == 1)
        return a;
    if (ir_is_index_const(f, a) && checked_muli(ir_index_value(f, a), k, &value))
        return opjit_ir_index(f, value);
    return ir_expr2(f, IR_IMUL, IR_INDEX, a, factor);
}

static bool linear(ir_func *f, ir_ref expr, ir_ref var, ir_linear *out)
{
    const ir_node node = f->nodes[expr];
    uint32_t budget = 4096;
    if (expr == var) {
        *out = (ir_linear){ 1, 0 };
        return true;
    }
    if (!varies(f, expr, var, &budget)) {
        *out = (ir_linear){ 0, ir_is_index_const(f, expr) && node.imm == 0 ? 0 : expr };
        return true;
    }
    ir_linear a, b;
    switch ((ir_op)node.op) {
    case IR_GET: return f->nodes[node.ref].op == IR_LET && linear(f, ir_operand(f, node.ref, 0), var, out);
    case IR_IADD:
    case IR_ISUB:
        if (!linear(f, ir_operand(f, expr, 0), var, &a) || !linear(f, ir_operand(f, expr, 1), var, &b))
            return false;
        out->rest = plus(f, (ir_op)node.op, a.rest, b.rest);
        return node.op == IR_IADD ? checked_addi(a.factor, b.factor, &out->factor)
                                  : checked_subi(a.factor, b.factor, &out->factor);
    case IR_IMUL:
        if (!ir_is_index_const(f, ir_operand(f, expr, 1)) || !linear(f, ir_operand(f, expr, 0), var, &a))
            return false;
        out->rest = times(f, a.rest, ir_operand(f, expr, 1));
        return checked_muli(a.factor, ir_index_value(f, ir_operand(f, expr, 1)), &out->factor);
    default: return false;
    }
}

bool opjit_ir_linear(ir_func *f, ir_ref expr, ir_ref var, ir_linear *out)
{
    if (f->failed || f->nodes[expr].type != IR_INDEX || !linear(f, expr, var, out))
        return false;
    if (!out->rest)
        out->rest = opjit_ir_index(f, 0);
    return !f->failed;
}

/* --- the same without building, for the verifier ------------------------------------------------------------------ */

bool opjit_ir_varies(const ir_func *f, ir_ref expr, ir_ref var)
{
    uint32_t budget = 4096;
    return varies(f, expr, var, &budget);
}

bool opjit_ir_factor(const ir_func *f, ir_ref expr, ir_ref var, int64_t *factor)
{
    const ir_node *node = ir_at(f, expr);
    int64_t a, b;
    *factor = expr == var;
    if (expr == var || !opjit_ir_varies(f, expr, var))
        return true;
    switch ((ir_op)node->op) {
    case IR_GET:
        return ir_at(f, node->ref)->op == IR_LET && opjit_ir_factor(f, ir_operand(f, node->ref, 0), var, factor);
    case IR_IADD:
    case IR_ISUB:
        if (!opjit_ir_factor(f, ir_operand(f, expr, 0), var, &a) ||
            !opjit_ir_factor(f, ir_operand(f, expr, 1), var, &b))
            return false;
        return node->op == IR_IADD ? checked_addi(a, b, factor) : checked_subi(a, b, factor);
    case IR_IMUL:
        return opjit_ir_factor(f, ir_operand(f, expr, 0), var, &a) &&
               checked_muli(a, ir_index_value(f, ir_operand(f, expr, 1)), factor);
    default: return false;
    }
}
