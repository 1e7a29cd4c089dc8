/* SPDX-License-Identifier: Apache-2.0 */
/* counter.c - a counterexample to a sum that should be at most 0: a point of the loops at which it is above.  Most
 * proofs that are tried fail, and a search that fails looks at all sums that it can make; one point costs less than two
 * of them.  Variables are at an end of their loops: at the last value where the first term that reads one grows with
 * it.  What depends on memory, parameters or coordinates of definitions has no value here. */
#include "ir/analysis/proof.h"

enum { POINT_VARIABLES = 24, POINT_STEPS = 256 };

typedef struct point {
    const ir_func *f;
    uint32_t count, steps;
    bool wide; /* bounds are chosen apart, so that loops are not empty */
    ir_ref var[POINT_VARIABLES];
    int64_t value[POINT_VARIABLES];
} point;

static bool value_at(point *p, ir_ref expr, bool up, int64_t *out);

/* The bounds of a variable at the point; false: not known, or the loop is empty there. */
static bool ends_at(point *p, ir_ref expr, bool up, int64_t *lo, int64_t *last)
{
    const ir_node *owner = ir_at(p->f, ir_at(p->f, expr)->ref);
    const ir_ref loop = ir_at(p->f, expr)->ref;
    if (owner->op != IR_FOR && owner->op != IR_STAGE)
        return false; /* a coordinate of a definition */
    const int64_t step = owner->op == IR_FOR ? (int64_t)owner->imm : 1;
    if (!value_at(p, ir_operand(p->f, loop, 0), up && !p->wide, lo) ||
        !value_at(p, ir_operand(p->f, loop, 1), up || p->wide, last) ||
        *last <= *lo || step < 1 || !checked_subi(*last, 1, last))
        return false;
    int64_t length;
    if (!checked_subi(*last, *lo, &length))
        return false;
    *last -= length % step;
    return true;
}

static bool variable_at(point *p, ir_ref expr, bool up, int64_t *out)
{
    int64_t lo, last;
    for (uint32_t i = 0; i < p->count; i++)
        if (p->var[i] == expr) {
            *out = p->value[i];
            return true;
        }
    if (!ends_at(p, expr, up, &lo, &last) || p->count == POINT_VARIABLES)
        return false;
    *out = up ? last : lo;
    p->var[p->count] = expr;
    p->value[p->count++] = *out;
    return true;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static bool binary_at(ir_op op, int64_t a, int64_t b, int64_t *out)
{
    if ((op == IR_IDIV || op == IR_IMOD || op == IR_DOWN || op == IR_UP) && b < 1)
        return false;
    const int64_t rest = b < 1 ? 0 : a % b < 0 ? a % b + b : a % b;
    switch (op) {
    case IR_IADD: return checked_addi(a, b, out);
    case IR_ISUB: return checked_subi(a, b, out);
    case IR_IMUL: return checked_muli(a, b, out);
    case IR_IMIN: *out = least(a, b); return true;
    case IR_IMAX: *out = most(a, b); return true;
    case IR_IDIV: return checked_subi(a, rest, out) && ((*out /= b), true);
    case IR_IMOD: *out = rest; return true;
    case IR_DOWN: return checked_subi(a, rest, out);
    case IR_UP: return checked_addi(a, rest == 0 ? 0 : b - rest, out);
    default: return false;
    }
}

/* up: the larger the value, the better, as far as that can be chosen. */
static bool value_at(point *p, ir_ref expr, bool up, int64_t *out)
{
    const ir_ref value = ir_let_value(p->f, expr);
    const ir_node *node = ir_at(p->f, value);
    int64_t a, b, c;
    if (p->steps == 0 || node->type != IR_INDEX)
        return false;
    p->steps--;
    if (node->op == IR_CONST) {
        *out = (int64_t)node->imm;
        return true;
    }
    if (node->op == IR_VAR)
        return variable_at(p, value, up, out);
    if (node->op == IR_CLAMP) {
        if (!value_at(p, ir_operand(p->f, value, 0), up, &a) || !value_at(p, ir_operand(p->f, value, 1), up, &b) ||
            !value_at(p, ir_operand(p->f, value, 2), up, &c))
            return false;
        *out = least(most(a, b), c);
        return true;
    }
    return node->count == 2 && value_at(p, ir_operand(p->f, value, 0), up, &a) &&
           value_at(p, ir_operand(p->f, value, 1), node->op == IR_ISUB ? !up : up, &b) &&
           binary_at((ir_op)node->op, a, b, out);
}

static bool is_above_at(const ir_func *f, const ir_affine *sum, bool wide)
{
    point p = { .f = f, .steps = POINT_STEPS, .wide = wide };
    int64_t total = sum->constant;
    for (uint32_t i = 0; i < sum->count; i++) {
        const uint32_t term = wide ? sum->count - 1 - i : i;
        int64_t value, product;
        if (!value_at(&p, sum->atoms[term], sum->factors[term] > 0, &value) ||
            !checked_muli(value, sum->factors[term], &product) || !checked_addi(total, product, &total))
            return false;
    }
    return total > 0;
}

bool opjit_ir_is_above(const ir_func *f, const ir_affine *sum)
{
    return is_above_at(f, sum, false) || is_above_at(f, sum, true);
}
