/* SPDX-License-Identifier: Apache-2.0 */
/* derive.c - the form that an expression of dimensions is: by its operations, for all sizes.  So a number is known
 * whatever passes have made of the node that it stood in. */
#include "ir/general/general.h"

#include "ir/core/internal.h"

#include <string.h>

enum { DEEPEST = 32, MOST_VISITS = 1024, MOST_POWER = 4 };

static bool has_powers(const uint8_t *powers)
{
    static const uint8_t none[OPJIT_MAX_POWERS];
    return memcmp(powers, none, sizeof none) != 0;
}

static bool is_scaled(const opjit_size_form *x)
{
    return x->factors[1] == 0 && has_powers(x->powers[1]);
}

/* A constant and up to two terms, and no more. */
static bool is_sum(const opjit_size_form *x)
{
    return x->divisor == 1 && x->times == 1 && !is_scaled(x);
}

/* Powers of a product of both.  false: too high. */
static bool raise(uint8_t *powers, const uint8_t *by)
{
    for (uint32_t d = 0; d < OPJIT_MAX_POWERS; d++) {
        powers[d] = (uint8_t)(powers[d] + by[d]);
        if (powers[d] > MOST_POWER)
            return false;
    }
    return true;
}

static bool add_term(opjit_size_form *x, int64_t factor, const uint8_t *powers)
{
    for (uint32_t i = 0; i < 2; i++) {
        if (x->factors[i] != 0 && memcmp(x->powers[i], powers, OPJIT_MAX_POWERS) != 0)
            continue;
        memcpy(x->powers[i], powers, OPJIT_MAX_POWERS);
        return !__builtin_add_overflow(x->factors[i], factor, &x->factors[i]) && x->factors[i] != 0;
    }
    return false;
}

static bool add(const opjit_size_form *a, const opjit_size_form *b, opjit_size_form *out)
{
    *out = *a;
    bool done = is_sum(a) && is_sum(b) && !__builtin_add_overflow(a->constant, b->constant, &out->constant);
    for (uint32_t i = 0; i < 2 && done; i++)
        done = b->factors[i] == 0 || add_term(out, b->factors[i], b->powers[i]);
    return done;
}

static bool multiply(const opjit_size_form *a, int64_t by, opjit_size_form *out)
{
    *out = *a;
    if (!is_sum(a))
        return by >= 1 && checked_muli(a->times, by, &out->times);
    return checked_muli(a->constant, by, &out->constant) && checked_muli(a->factors[0], by, &out->factors[0]) &&
           checked_muli(a->factors[1], by, &out->factors[1]);
}

/* By a number that is one product of dimensions. */
static bool scale(const opjit_size_form *a, const opjit_size_form *by, opjit_size_form *out)
{
    if (!is_sum(by) || by->constant != 0 || by->factors[1] != 0 || by->factors[0] < 1 ||
        !multiply(a, by->factors[0], out))
        return false;
    if (is_sum(out) && out->constant == 0 && out->factors[1] == 0)
        return raise(out->powers[0], by->powers[0]);
    return out->factors[1] == 0 && raise(out->powers[1], by->powers[0]);
}

/* One of the space's quotients, plus a constant. */
static bool find_quotient(const ir_space *space, const opjit_size_form *a, int64_t by, opjit_size_form *out)
{
    for (uint32_t k = 0; k < space->count; k++) {
        const opjit_quotient *const q = &space->quotients[k];
        uint8_t powers[OPJIT_MAX_POWERS] = { 0 };
        powers[q->dim] = 1;
        if (q->by != by || !is_sum(a) || a->factors[0] != 1 || a->factors[1] != 0 ||
            memcmp(a->powers[0], powers, sizeof powers) != 0 || (a->constant - q->plus) % by != 0)
            continue;
        *out = (opjit_size_form){ .constant = (a->constant - q->plus) / by, .divisor = 1, .times = 1 };
        out->factors[0] = 1;
        out->powers[0][space->dims + k] = 1;
        return true;
    }
    return false;
}

static bool divide(const ir_space *space, const opjit_size_form *a, int64_t by, opjit_size_form *out)
{
    if (find_quotient(space, a, by, out))
        return true;
    *out = *a;
    return by >= 1 && a->times == 1 && !is_scaled(a) && checked_muli(a->divisor, by, &out->divisor);
}

/* visits: of operands; a shared one is visited by each of its readers, so their number has a limit. */
static bool derive(const ir_func *f, ir_ref r, uint32_t depth, uint32_t *visits, opjit_size_form *out)
{
    const ir_node *n = ir_at(f, r);
    opjit_size_form a, b;

    *out = (opjit_size_form){ .divisor = 1, .times = 1 };
    if (n->type != IR_INDEX || depth == DEEPEST || ++*visits > MOST_VISITS)
        return false;
    if (n->op == IR_CONST) {
        out->constant = (int64_t)n->imm;
        return true;
    }
    if (n->op == IR_PARAM) {
        const uint32_t d = n->ref - f->first_dim;
        if (f->first_dim == 0 || n->ref < f->first_dim || d >= OPJIT_MAX_DIMS)
            return false;
        out->factors[0] = out->powers[0][d] = 1;
        return true;
    }
    if (n->count != 2 || !derive(f, ir_operand(f, r, 0), depth + 1, visits, &a) ||
        !derive(f, ir_operand(f, r, 1), depth + 1, visits, &b))
        return false;
    const bool by_constant = is_sum(&b) && b.factors[0] == 0;
    switch (n->op) {
    case IR_IADD: return add(&a, &b, out);
    case IR_IMUL: return by_constant && multiply(&a, b.constant, out);
    case IR_IDIV: return by_constant && divide(&f->space, &a, b.constant, out);
    case IR_ISCALE: return scale(&a, &b, out) || scale(&b, &a, out);
    default: return false;
    }
}

bool opjit_ir_form_derive(const ir_func *f, ir_ref r, opjit_size_form *out)
{
    uint32_t visits = 0;
    return derive(f, r, 0, &visits, out);
}
