/* SPDX-License-Identifier: Apache-2.0 */
/* closing.c - turns what depends on a loop's variable into intervals that don't.  Part of V6 and V7: cover.c says
 * which shapes there are. */
#include "ir/verify/cover.h"

/* --- expressions -------------------------------------------------------------------------------------------------- */

bool opjit_ir_cover_equal(const ir_func *f, ir_ref a, ir_ref b)
{
    return opjit_ir_same(f, a, b) || (opjit_ir_proves_le(f, a, b, 0) && opjit_ir_proves_le(f, b, a, 0));
}

ir_ref opjit_ir_cover_plus(ir_func *f, ir_ref a, int64_t k)
{
    int64_t sum;
    if (ir_is_index_const(f, a) && checked_addi(ir_index_value(f, a), k, &sum))
        return opjit_ir_index(f, sum);
    return ir_expr2(f, IR_IADD, IR_INDEX, a, opjit_ir_index(f, k));
}

/* expr as a constant if its terms cancel, so that it no longer seems to vary. */
ir_ref opjit_ir_cover_tidy(ir_func *f, ir_ref expr)
{
    int64_t value;
    return expr && opjit_ir_is_constant(f, expr, &value) ? opjit_ir_index(f, value) : expr;
}

/* expr with `to` in place of `part`, which varies with var, also inside lets. */
static ir_ref replace(ir_func *f, ir_ref expr, ir_ref var, ir_ref part, ir_ref to)
{
    const ir_node node = *ir_at(f, expr);
    if (expr == part || !opjit_ir_varies(f, expr, var))
        return expr == part ? to : expr;
    if (node.op == IR_GET && ir_at(f, node.ref)->op == IR_LET)
        return replace(f, ir_operand(f, node.ref, 0), var, part, to);
    if (node.op == IR_GET || node.op == IR_LOAD)
        return 0;
    const ir_ref copy = opjit_ir_node_new(f, &node, node.count, &f->operands[node.first]);
    for (uint32_t i = 0; copy && i < node.count; i++) {
        const ir_ref operand = replace(f, ir_operand(f, expr, i), var, part, to);
        if (!operand)
            return 0;
        f->operands[f->nodes[copy].first + i] = operand;
    }
    return f->failed ? 0 : copy;
}

ir_ref opjit_ir_cover_substitute(ir_func *f, ir_ref expr, ir_ref var, ir_ref to)
{
    return replace(f, expr, var, var, to);
}

static bool close_tiles(cover *c, extent *e, ir_ref loop);

/* --- merged dimensions: points (p / divide) % modulo + offset, and blocks that begin at multiples of such -------- */

/* The part of an interval's low end that varies with var: one digit, to which the rest is added; 0: there is none. */
static ir_ref digit_of_block(const cover *c, const extent *e, ir_ref var)
{
    ir_terms t;
    ir_ref found = 0;
    opjit_ir_terms_begin(&t, c->f, e->lo, 1);
    while (opjit_ir_terms_next(&t)) {
        const ir_ref value = ir_let_value(c->f, t.expr);
        if (!opjit_ir_varies(c->f, t.expr, var) ||
            (value != t.expr ? opjit_ir_terms_put(&t, value) : opjit_ir_terms_open(&t)))
            continue;
        if (found != 0)
            return 0;
        found = t.expr;
    }
    return found;
}

/* The blocks for all values of the digit, which counts to `size`, as one interval. */
static bool close_blocks(cover *c, extent *e, ir_ref var, ir_ref digit, int64_t size)
{
    ir_func *f = c->f;
    const ir_ref loop = opjit_ir_for(f, opjit_ir_index(f, 0), opjit_ir_index(f, size), 1);
    if (f->failed)
        return false;
    e->lo = replace(f, e->lo, var, digit, ir_at(f, loop)->ref);
    e->hi = replace(f, e->hi, var, digit, ir_at(f, loop)->ref);
    return e->lo != 0 && e->hi != 0 && !opjit_ir_cover_varies(c, e, var) && close_tiles(c, e, loop);
}

bool opjit_ir_cover_close_digits(cover *c, piece *p, ir_ref loop)
{
    const ir_ref var = ir_at(c->f, loop)->ref, lo = ir_operand(c->f, loop, 0), hi = ir_operand(c->f, loop, 1);
    ir_digit digits[8];
    ir_ref parts[8];
    uint32_t dimensions[8], count = 0;
    int64_t unit = 1;
    if (!ir_is_index_const(c->f, lo) || ir_index_value(c->f, lo) != 0 || !ir_is_index_const(c->f, hi))
        return false;
    const int64_t end = ir_index_value(c->f, hi);
    piece closed = *p;
    for (uint32_t d = 0; d < c->rank; d++) {
        if (!opjit_ir_cover_varies(c, &p->d[d], var))
            continue;
        const bool moves = opjit_ir_varies(c->f, p->d[d].lo, var);
        if (c->gaps && !p->d[d].point && moves != opjit_ir_varies(c->f, p->d[d].hi, var)) { /* one end: at most all */
            if (moves)
                closed.d[d].lo = opjit_ir_index(c->f, 0);
            else
                closed.d[d].hi = opjit_ir_index(c->f, (int64_t)c->f->tensors[c->tensor].sizes[d]);
            continue;
        }
        parts[count] = p->d[d].point ? p->d[d].lo : digit_of_block(c, &p->d[d], var);
        if (parts[count] == 0 || !opjit_ir_digit(c->f, parts[count], var, &digits[count]))
            return false;
        dimensions[count++] = d;
    }
    for (uint32_t done = 0; done < count; done++) { /* the digit of the next higher unit */
        uint32_t i = 0;
        while (i < count && digits[i].divide != unit)
            i++;
        if (i == count)
            return false;
        const int64_t size = digits[i].modulo ? digits[i].modulo : end % unit == 0 ? end / unit : 0;
        digits[i].divide = 0; /* taken */
        if (size == 0 || !checked_muli(unit, size, &unit))
            return false;
        extent *e = &closed.d[dimensions[i]];
        if (e->point)
            *e = (extent){ .lo = opjit_ir_index(c->f, digits[i].offset),
                           .hi = opjit_ir_index(c->f, digits[i].offset + size) };
        else if (!close_blocks(c, e, var, parts[i], size))
            return false;
    }
    if (unit != end)
        return false;
    *p = closed;
    return true;
}

extent opjit_ir_cover_interval(cover *c, const extent *e)
{
    return e->point ? (extent){ .lo = e->lo, .hi = opjit_ir_cover_plus(c->f, e->lo, 1) } : *e;
}

/* --- closing one loop -------------------------------------------------------------------------------------------- */

/* One dimension: a point that moves by one becomes [first, last + 1). */
static bool close_point(cover *c, extent *e, ir_ref loop)
{
    ir_func *f = c->f;
    const ir_ref var = ir_at(f, loop)->ref, lo = ir_operand(f, loop, 0), hi = ir_operand(f, loop, 1);
    int64_t factor;
    if (!opjit_ir_factor(f, e->lo, var, &factor) || (factor != 1 && factor != -1) || ir_at(f, loop)->imm != 1 ||
        !opjit_ir_proves_le(f, lo, hi, 0))
        return false;
    const ir_ref at_lo = opjit_ir_cover_substitute(f, e->lo, var, lo),
                 at_hi = opjit_ir_cover_substitute(f, e->lo, var, hi);
    if (!at_lo || !at_hi)
        return false;
    const bool up = factor == 1;
    *e = (extent){ .lo = opjit_ir_cover_tidy(f, up ? at_lo : opjit_ir_cover_plus(f, at_hi, 1)),
                   .hi = opjit_ir_cover_tidy(f, up ? at_hi : opjit_ir_cover_plus(f, at_lo, 1)) };
    return !f->failed;
}

/* One dimension: consecutive intervals become one. */
static bool close_tiles(cover *c, extent *e, ir_ref loop)
{
    ir_func *f = c->f;
    const ir_node node = *ir_at(f, loop);
    const ir_ref lo = ir_operand(f, loop, 0), hi = ir_operand(f, loop, 1);
    const int64_t step = node.op == IR_FOR ? (int64_t)node.imm : 1;
    if (!ir_is_index_const(f, lo) || !ir_is_index_const(f, hi) || ir_index_value(f, lo) >= ir_index_value(f, hi))
        return false;
    const int64_t first = ir_index_value(f, lo), end = ir_index_value(f, hi), last = end - 1 - (end - 1 - first) % step;
    if (last > first) { /* a variable for all iterations except the last */
        const ir_ref all_but_last = opjit_ir_for(f, lo, opjit_ir_index(f, last), (uint64_t)step);
        const ir_ref var = all_but_last ? ir_at(f, all_but_last)->ref : 0;
        const ir_ref high = opjit_ir_cover_substitute(f, e->hi, node.ref, var),
                     low = opjit_ir_cover_substitute(f, e->lo, node.ref, opjit_ir_cover_plus(f, var, step));
        if (f->failed || !high || !low || !opjit_ir_cover_equal(f, high, low))
            return false;
    }
    e->lo = opjit_ir_cover_tidy(f, opjit_ir_cover_substitute(f, e->lo, node.ref, lo));
    e->hi = opjit_ir_cover_tidy(f, opjit_ir_cover_substitute(f, e->hi, node.ref, opjit_ir_index(f, last)));
    return !f->failed && e->lo && e->hi;
}

bool opjit_ir_cover_varies(const cover *c, const extent *e, ir_ref var)
{
    return opjit_ir_varies(c->f, e->lo, var) || (!e->point && opjit_ir_varies(c->f, e->hi, var));
}

bool opjit_ir_cover_at_most_once(const cover *c, ir_ref loop)
{
    return opjit_ir_proves_le(c->f, ir_operand(c->f, loop, 1), ir_operand(c->f, loop, 0), 1);
}

/* The dimension along which the first store in the list or below it that moves with var moves; rank: none does. */
static uint32_t dimension_along(const cover *c, ir_ref first, ir_ref var)
{
    const ir_func *f = c->f;
    uint32_t d = c->rank;
    for (ir_ref s = first; s && d == c->rank; s = ir_at(f, s)->next) {
        if (ir_at(f, s)->op != IR_STORE || ir_at(f, s)->ref != c->tensor) {
            d = dimension_along(c, ir_at(f, s)->body, var);
            continue;
        }
        d = 0;
        while (d < c->rank && !opjit_ir_varies(f, ir_operand(f, s, 1 + d), var))
            d++;
    }
    return d;
}

/* The dimension along which the loops beside this one store; the last one if there are none. */
static uint32_t dimension_beside(const cover *c, ir_ref loop)
{
    for (ir_ref beside = c->block; beside; beside = ir_at(c->f, beside)->next) {
        const bool other = beside != loop && ir_at(c->f, beside)->op == IR_FOR;
        const uint32_t d = other ? dimension_along(c, ir_at(c->f, beside)->body, ir_at(c->f, beside)->ref) : c->rank;
        if (d < c->rank)
            return d;
    }
    return c->rank - 1;
}

/* Nothing in the piece varies: it is one element per iteration, along one dimension. */
static bool close_once(cover *c, piece *p, ir_ref loop)
{
    ir_func *f = c->f;
    const ir_ref lo = ir_operand(f, loop, 0), hi = ir_operand(f, loop, 1);
    if (opjit_ir_cover_equal(f, opjit_ir_cover_plus(f, lo, 1), hi))
        return true;
    extent *e = &p->d[dimension_beside(c, loop)];
    const extent one = opjit_ir_cover_interval(c, e);
    if (!opjit_ir_cover_at_most_once(c, loop) || !opjit_ir_proves_le(f, lo, hi, 0) ||
        !opjit_ir_cover_equal(f, opjit_ir_cover_plus(f, one.lo, 1), one.hi))
        return false;
    const ir_ref count = ir_expr2(f, IR_ISUB, IR_INDEX, hi, lo);
    *e = ir_is_index_const(f, hi) ? (extent){ .lo = ir_expr2(f, IR_ISUB, IR_INDEX, one.hi, count), .hi = one.hi }
                                  : (extent){ .lo = one.lo, .hi = ir_expr2(f, IR_IADD, IR_INDEX, one.lo, count) };
    return !f->failed;
}

/* Closes the piece exactly; false if it has none of the shapes above. */
bool opjit_ir_cover_close(cover *c, piece *p, ir_ref loop)
{
    const ir_ref var = ir_at(c->f, loop)->ref;
    uint32_t points = 0, intervals = 0, dimension = 0;
    for (uint32_t d = 0; d < c->rank; d++)
        if (opjit_ir_cover_varies(c, &p->d[d], var)) {
            dimension = d;
            points += p->d[d].point;
            intervals += !p->d[d].point;
        }
    if (points + intervals == 0)
        return close_once(c, p, loop);
    if (points == 1 && intervals == 0 && close_point(c, &p->d[dimension], loop))
        return true;
    if (points == 0 && intervals == 1 && close_tiles(c, &p->d[dimension], loop))
        return true;
    return opjit_ir_cover_close_digits(c, p, loop);
}
