/* SPDX-License-Identifier: Apache-2.0 */
/* linear.c - index expressions as sums: one walk over the terms, and three questions that it answers: constant + sum
 * of factor * atom, factor * var + rest, elements that an access moves by.  All arithmetic is checked: a form that
 * would overflow is refused, and the caller leaves the expression as it is. */
#include "ir/analysis/analysis.h"
#include "ir/core/internal.h"

enum { MOST_OPENED = 4096, VARIES_BUDGET = 4096 };

/* --- terms -------------------------------------------------------------------------------------------------------- */

void opjit_ir_terms_begin(ir_terms *t, const ir_func *f, ir_ref expr, int64_t factor)
{
    t->f = f;
    t->budget = MOST_OPENED;
    t->depth = 1;
    t->pending[0].expr = expr;
    t->pending[0].factor = factor;
}

bool opjit_ir_terms_next(ir_terms *t)
{
    if (t->depth == 0)
        return false;
    t->depth--;
    t->expr = t->pending[t->depth].expr;
    t->factor = t->pending[t->depth].factor;
    return true;
}

static void pend(ir_terms *t, ir_ref expr, int64_t factor)
{
    t->pending[t->depth].expr = expr;
    t->pending[t->depth++].factor = factor;
}

bool opjit_ir_terms_put(ir_terms *t, ir_ref value)
{
    if (t->budget == 0)
        return false;
    t->budget--;
    pend(t, value, t->factor);
    return true;
}

bool opjit_ir_terms_open(ir_terms *t)
{
    const ir_node *n = ir_at(t->f, t->expr);
    int64_t factor = t->factor;
    if ((n->op != IR_IADD && n->op != IR_ISUB && n->op != IR_IMUL) || t->budget == 0 || t->depth + 2 > IR_TERMS_PENDING)
        return false;
    const ir_ref a = ir_operand(t->f, t->expr, 0), b = ir_operand(t->f, t->expr, 1);
    if (n->op == IR_IMUL) {
        if (!ir_is_index_const(t->f, b) || !checked_muli(factor, ir_index_value(t->f, b), &factor))
            return false;
        pend(t, a, factor);
    } else {
        if (n->op == IR_ISUB && !checked_subi(0, factor, &factor))
            return false;
        pend(t, b, factor);
        pend(t, a, t->factor);
    }
    t->budget--;
    return true;
}

/* --- constant + sum of factor * atom ------------------------------------------------------------------------------ */

void opjit_ir_affine_remove(ir_affine *form, uint32_t i)
{
    form->count--;
    for (; i < form->count; i++) { /* keeps the order of the others: the text depends on it */
        form->atoms[i] = form->atoms[i + 1];
        form->factors[i] = form->factors[i + 1];
    }
}

static bool add_term(const ir_func *f, ir_affine *out, ir_ref atom, int64_t factor)
{
    if (factor == 0)
        return true;
    for (uint32_t i = 0; i < out->count; i++) {
        if (!opjit_ir_same(f, out->atoms[i], atom))
            continue;
        if (!checked_addi(out->factors[i], factor, &out->factors[i]))
            return false;
        if (out->factors[i] == 0)
            opjit_ir_affine_remove(out, i);
        return true;
    }
    if (out->count == IR_AFFINE_TERMS)
        return false;
    out->atoms[out->count] = atom;
    out->factors[out->count++] = factor;
    return true;
}

static bool add_constant(ir_affine *out, uint64_t bits, int64_t factor)
{
    int64_t product;
    return checked_muli((int64_t)bits, factor, &product) && checked_addi(out->constant, product, &out->constant);
}

/* values: lets are what they stand for. */
static bool add_sum(const ir_func *f, ir_affine *out, ir_ref expr, int64_t factor, bool values)
{
    ir_terms t;
    opjit_ir_terms_begin(&t, f, expr, factor);
    while (opjit_ir_terms_next(&t)) {
        const ir_ref value = values ? ir_let_value(f, t.expr) : t.expr;
        if (value != t.expr ? opjit_ir_terms_put(&t, value) : opjit_ir_terms_open(&t))
            continue;
        const ir_node *n = ir_at(f, t.expr);
        if (n->op == IR_CONST ? !add_constant(out, n->imm, t.factor) : !add_term(f, out, t.expr, t.factor))
            return false;
    }
    return true;
}

bool opjit_ir_affine_add(const ir_func *f, ir_affine *out, ir_ref expr, int64_t factor)
{
    return add_sum(f, out, expr, factor, false);
}

bool opjit_ir_affine_add_values(const ir_func *f, ir_affine *out, ir_ref expr, int64_t factor)
{
    return add_sum(f, out, expr, factor, true);
}

bool opjit_ir_affine_add_sum(const ir_func *f, ir_affine *out, const ir_affine *sum, int64_t factor)
{
    int64_t product;
    for (uint32_t i = 0; i < sum->count; i++)
        if (!checked_muli(sum->factors[i], factor, &product) || !add_term(f, out, sum->atoms[i], product))
            return false;
    return add_constant(out, (uint64_t)sum->constant, factor);
}

int64_t opjit_ir_affine_take(const ir_func *f, ir_affine *form, ir_ref atom)
{
    for (uint32_t i = 0; i < form->count; i++) {
        if (!opjit_ir_same(f, form->atoms[i], atom))
            continue;
        const int64_t factor = form->factors[i];
        opjit_ir_affine_remove(form, i);
        return factor;
    }
    return 0;
}

/* Positive terms come first, so that a difference reads as one and no multiplication by -1 is made. */
ir_ref opjit_ir_affine_build(ir_func *f, const ir_affine *form)
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
    ir_affine form = { 0 };
    if (!opjit_ir_affine_add(f, &form, a, 1) || !opjit_ir_affine_add(f, &form, b, -1) || form.count != 0)
        return false;
    *out = form.constant;
    return true;
}

bool opjit_ir_is_constant(const ir_func *f, ir_ref expr, int64_t *out)
{
    ir_affine form = { 0 };
    const bool known = opjit_ir_affine_add_values(f, &form, expr, 1) && form.count == 0;
    *out = form.constant;
    return known;
}

/* --- one variable ------------------------------------------------------------------------------------------------- */

/* Whether expr may differ between two values of var: reads it, also through lets, or reads an accumulator, or memory
 * that the loop may change (changes: whether it may change any). */
static bool varies(const ir_func *f, ir_ref expr, ir_ref var, bool changes, uint32_t *budget)
{
    const ir_node *node = ir_at(f, expr);
    if (expr == var || *budget == 0)
        return true;
    --*budget;
    if (node->op == IR_GET)
        return ir_at(f, node->ref)->op != IR_LET ||
               varies(f, ir_operand(f, node->ref, 0), var, changes, budget);
    if (node->op == IR_LOAD && changes) {
        const ir_role role = f->tensors[node->ref].role;
        if (role != IR_IN && role != IR_CONSTANT)
            return true;
    }
    for (uint32_t i = 0; i < node->count; i++)
        if (varies(f, ir_operand(f, expr, i), var, changes, budget))
            return true;
    return false;
}

bool opjit_ir_varies(const ir_func *f, ir_ref expr, ir_ref var)
{
    uint32_t budget = VARIES_BUDGET;
    return varies(f, expr, var, true, &budget);
}

bool opjit_ir_depends(const ir_moving *m, ir_ref expr)
{
    uint32_t budget = VARIES_BUDGET;
    return varies(m->f, expr, m->var, false, &budget);
}

static bool moves(const ir_moving *m, ir_ref expr)
{
    return m->varies != NULL ? m->varies(m, expr) : opjit_ir_varies(m->f, expr, m->var);
}

/* Goes on with what the part of the sum is made of; false: it is made of nothing that is known. */
static bool open_part(const ir_moving *m, ir_terms *t)
{
    if (ir_at(m->f, t->expr)->op != IR_GET)
        return opjit_ir_terms_open(t);
    const ir_ref own = ir_let_value(m->f, t->expr), value = m->value != NULL ? m->value(m, t->expr) : own;
    return value != 0 && value != t->expr && opjit_ir_terms_put(t, value);
}

bool opjit_ir_factor_of(const ir_moving *m, ir_ref expr, int64_t *factor)
{
    ir_terms t;
    *factor = 0;
    opjit_ir_terms_begin(&t, m->f, expr, 1);
    while (opjit_ir_terms_next(&t)) {
        if (t.expr == m->var ? !checked_addi(*factor, t.factor, factor) : moves(m, t.expr) && !open_part(m, &t))
            return false;
    }
    return true;
}

bool opjit_ir_linear(ir_func *f, ir_ref expr, ir_ref var, ir_linear *out)
{
    const ir_moving m = { .f = f, .var = var };
    ir_affine rest = { 0 };
    ir_terms t;
    if (f->failed || ir_at(f, expr)->type != IR_INDEX)
        return false;
    out->factor = 0;
    opjit_ir_terms_begin(&t, f, expr, 1);
    while (opjit_ir_terms_next(&t)) {
        if (t.expr == var       ? !checked_addi(out->factor, t.factor, &out->factor)
            : moves(&m, t.expr) ? !open_part(&m, &t)
                                : !opjit_ir_affine_add(f, &rest, t.expr, t.factor))
            return false;
    }
    out->rest = opjit_ir_affine_build(f, &rest);
    return !f->failed;
}

static bool reads(const ir_moving *m, ir_ref expr)
{
    return opjit_ir_uses(m->f, expr, m->var);
}

static ir_ref no_value(const ir_moving *m, ir_ref get)
{
    (void)m;
    (void)get;
    return 0;
}

bool opjit_ir_step(const ir_func *f, ir_ref access, ir_ref var, int64_t *out)
{
    const ir_moving m = { .f = f, .var = var, .varies = reads, .value = no_value };
    const ir_tensor *t = &f->tensors[ir_at(f, access)->ref];
    const uint32_t first = ir_at(f, access)->op == IR_STORE ? 1 : 0;
    *out = 0;
    for (uint32_t d = 0; d < t->rank; d++) {
        int64_t factor, part;
        if (!opjit_ir_factor_of(&m, ir_operand(f, access, first + d), &factor) ||
            !checked_muli(factor, (int64_t)t->strides[d], &part) || !checked_addi(*out, part, out))
            return false;
    }
    return true;
}

bool opjit_ir_pace_add(const ir_moving *m, ir_ref expr, int64_t factor, ir_pace *io)
{
    ir_terms t;
    opjit_ir_terms_begin(&t, m->f, expr, factor);
    while (opjit_ir_terms_next(&t)) {
        const bool scaled = ir_at(m->f, t.expr)->op == IR_ISCALE;
        const ir_ref of = scaled ? ir_operand(m->f, t.expr, 0) : t.expr;
        const ir_ref size = scaled ? ir_operand(m->f, t.expr, 1) : 0;
        int64_t part;
        if (!moves(m, t.expr))
            continue;
        if (t.expr != m->var && !scaled) {
            if (!open_part(m, &t))
                return false;
            continue;
        }
        if ((scaled && moves(m, size)) || !opjit_ir_factor_of(m, of, &part) || !checked_muli(part, t.factor, &part) ||
            (io->step != 0 && io->size != size) || !checked_addi(io->step, part, &io->step))
            return false;
        io->size = size;
    }
    return true;
}

bool opjit_ir_pace_of(const ir_func *f, ir_ref access, ir_ref var, ir_pace *out)
{
    const ir_moving m = { .f = f, .var = var, .varies = reads, .value = no_value };
    const ir_tensor *t = &f->tensors[ir_at(f, access)->ref];
    const uint32_t first = ir_at(f, access)->op == IR_STORE ? 1 : 0;
    *out = (ir_pace){ 0 };
    for (uint32_t d = 0; d < t->rank; d++)
        if (!opjit_ir_pace_add(&m, ir_operand(f, access, first + d), (int64_t)t->strides[d], out))
            return false;
    return true;
}

bool opjit_ir_is_affine(const ir_func *f, ir_ref index_expr, ir_ref var)
{
    const ir_moving m = { .f = f, .var = var, .varies = reads, .value = no_value };
    int64_t factor;
    return opjit_ir_factor_of(&m, index_expr, &factor);
}

/* --- digits ------------------------------------------------------------------------------------------------------- */

bool opjit_ir_digit(const ir_func *f, ir_ref expr, ir_ref var, ir_digit *out)
{
    const ir_node *node = ir_at(f, expr);
    if (expr == var) {
        *out = (ir_digit){ .divide = 1 };
        return true;
    }
    if (ir_let_value(f, expr) != expr)
        return opjit_ir_digit(f, ir_let_value(f, expr), var, out);
    if (node->count != 2 || !ir_is_index_const(f, ir_operand(f, expr, 1)) ||
        !opjit_ir_digit(f, ir_operand(f, expr, 0), var, out))
        return false;
    const int64_t k = ir_index_value(f, ir_operand(f, expr, 1));
    switch ((ir_op)node->op) {
    case IR_IADD: return checked_addi(out->offset, k, &out->offset);
    case IR_ISUB: return checked_subi(out->offset, k, &out->offset);
    case IR_IDIV:
        if (out->offset != 0 || k <= 0 || out->modulo % k != 0 || !checked_muli(out->divide, k, &out->divide))
            return false;
        out->modulo /= k;
        return true;
    case IR_IMOD:
        if (out->offset != 0 || k <= 0 || out->modulo % k != 0)
            return false;
        out->modulo = k;
        return true;
    default: return false;
    }
}

bool opjit_ir_moves_by_digits(const ir_func *f, ir_ref load, ir_ref var)
{
    ir_digit unused;
    for (uint32_t d = 0; d < ir_at(f, load)->count; d++)
        if (opjit_ir_uses(f, ir_operand(f, load, d), var) &&
            !opjit_ir_digit(f, ir_operand(f, load, d), var, &unused))
            return false;
    return true;
}

/* The size that the term's remainder, its operand 0, is multiplied by; 0: it is another product. */
static ir_ref scale_of(const ir_moving *m, ir_ref term)
{
    const ir_node *n = ir_at(m->f, term);
    const bool scaled = n->op == IR_ISCALE && ir_at(m->f, ir_operand(m->f, term, 0))->op == IR_IMOD;
    return scaled && !moves(m, ir_operand(m->f, term, 1)) ? ir_operand(m->f, term, 1) : 0;
}

bool opjit_ir_turns_add(const ir_moving *m, ir_ref expr, int64_t factor, ir_turns *io)
{
    ir_terms t;
    opjit_ir_terms_begin(&t, m->f, expr, factor);
    while (opjit_ir_terms_next(&t)) {
        if (!moves(m, t.expr))
            continue;
        const ir_ref scale = scale_of(m, t.expr), turn = scale != 0 ? ir_operand(m->f, t.expr, 0) : t.expr;
        const ir_node *n = ir_at(m->f, turn);
        if (n->op != IR_IDIV && n->op != IR_IMOD) {
            if (!opjit_ir_terms_open(&t))
                return false;
            continue;
        }
        const int64_t k = ir_index_value(m->f, ir_operand(m->f, turn, 1));
        int64_t *const to = n->op == IR_IDIV ? &io->whole : &io->rest;
        if (ir_operand(m->f, turn, 0) != m->var || (io->divisor != 0 && io->divisor != k) ||
            (n->op == IR_IMOD && io->rest != 0 && io->scale != scale) || !checked_addi(*to, t.factor, to))
            return false;
        io->scale = n->op == IR_IMOD ? scale : io->scale;
        io->divisor = k;
    }
    return true;
}
