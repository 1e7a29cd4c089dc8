/* SPDX-License-Identifier: Apache-2.0 */
/* affine.c - index expressions as constant + sum of factor * atom: what collapse, split and schedule reason with.
 * Everything is checked: a form that would overflow is refused, and the caller leaves the expression alone. */
#include "ir/passes/pass.h"

static bool add_term(const ir_func *f, affine *out, ir_ref atom, int64_t factor)
{
    if (factor == 0)
        return true;
    for (uint32_t i = 0; i < out->count; i++) {
        if (!opjit_ir_same(f, out->atoms[i], atom))
            continue;
        if (!checked_addi(out->factors[i], factor, &out->factors[i]))
            return false;
        if (out->factors[i] == 0) { /* keeps the order of the others: the text depends on it */
            out->count--;
            for (uint32_t k = i; k < out->count; k++) {
                out->atoms[k] = out->atoms[k + 1];
                out->factors[k] = out->factors[k + 1];
            }
        }
        return true;
    }
    if (out->count == AFFINE_TERMS)
        return false;
    out->atoms[out->count] = atom;
    out->factors[out->count++] = factor;
    return true;
}

bool opjit_ir_affine_add(const ir_func *f, affine *out, ir_ref expr, int64_t factor)
{
    enum { PENDING = 32 };
    struct { ir_ref expr; int64_t factor; } stack[PENDING] = { { expr, factor } };
    for (uint32_t depth = 1; depth > 0;) {
        const ir_ref e = stack[--depth].expr;
        const int64_t k = stack[depth].factor;
        const ir_node *n = ir_at(f, e);
        int64_t product;
        if (n->op == IR_CONST) {
            if (!checked_muli((int64_t)n->imm, k, &product) || !checked_addi(out->constant, product, &out->constant))
                return false;
        } else if (n->op == IR_IMUL) {
            if (!checked_muli(ir_index_value(f, ir_operand(f, e, 1)), k, &product))
                return false;
            stack[depth].expr = ir_operand(f, e, 0);
            stack[depth++].factor = product;
        } else if ((n->op == IR_IADD || n->op == IR_ISUB) && depth + 2 <= PENDING) {
            stack[depth].expr = ir_operand(f, e, 1);
            stack[depth].factor = k;
            if (n->op == IR_ISUB && !checked_subi(0, k, &stack[depth].factor))
                return false;
            stack[++depth].expr = ir_operand(f, e, 0);
            stack[depth++].factor = k;
        } else if (!add_term(f, out, e, k)) {
            return false;
        }
    }
    return true;
}

int64_t opjit_ir_affine_take(const ir_func *f, affine *form, ir_ref atom)
{
    for (uint32_t i = 0; i < form->count; i++) {
        if (!opjit_ir_same(f, form->atoms[i], atom))
            continue;
        const int64_t factor = form->factors[i];
        form->count--;
        for (uint32_t k = i; k < form->count; k++) {
            form->atoms[k] = form->atoms[k + 1];
            form->factors[k] = form->factors[k + 1];
        }
        return factor;
    }
    return 0;
}

/* Positive terms come first, so that a difference reads as one and no multiplication by -1 is made. */
ir_ref opjit_ir_affine_build(ir_func *f, const affine *form)
{
    ir_ref sum = 0;
    for (uint32_t i = 0; i < form->count; i++) {
        if (form->factors[i] < 0)
            continue;
        const ir_ref term = ir_make2(f, IR_IMUL, IR_INDEX, form->atoms[i], opjit_ir_index(f, form->factors[i]));
        sum = sum ? ir_make2(f, IR_IADD, IR_INDEX, sum, term) : term;
    }
    bool constant_done = false;
    for (uint32_t i = 0; i < form->count; i++) {
        if (form->factors[i] >= 0)
            continue;
        const bool negatable = form->factors[i] != INT64_MIN;
        const int64_t factor = negatable ? -form->factors[i] : form->factors[i];
        const ir_ref term = ir_make2(f, IR_IMUL, IR_INDEX, form->atoms[i], opjit_ir_index(f, factor));
        if (!sum) {
            sum = opjit_ir_index(f, form->constant);
            constant_done = true;
        }
        sum = ir_make2(f, negatable ? IR_ISUB : IR_IADD, IR_INDEX, sum, term);
    }
    if (!sum)
        return opjit_ir_index(f, form->constant);
    return constant_done ? sum : ir_make2(f, IR_IADD, IR_INDEX, sum, opjit_ir_index(f, form->constant));
}

bool opjit_ir_distance(const ir_func *f, ir_ref a, ir_ref b, int64_t *out)
{
    affine form = { 0 };
    if (!opjit_ir_affine_add(f, &form, a, 1) || !opjit_ir_affine_add(f, &form, b, -1) || form.count != 0)
        return false;
    *out = form.constant;
    return true;
}

bool opjit_ir_step(const ir_func *f, ir_ref node, uint32_t first, ir_ref var, int64_t *out)
{
    const ir_tensor *t = &f->tensors[ir_at(f, node)->ref];
    *out = 0;
    for (uint32_t d = 0; d < t->rank; d++) {
        affine form = { 0 };
        int64_t part;
        if (!opjit_ir_affine_add(f, &form, ir_operand(f, node, first + d), 1) ||
            !checked_muli(opjit_ir_affine_take(f, &form, var), (int64_t)t->strides[d], &part) ||
            !checked_addi(*out, part, out))
            return false;
        for (uint32_t i = 0; i < form.count; i++)
            if (opjit_ir_uses(f, form.atoms[i], var))
                return false;
    }
    return true;
}
