/* SPDX-License-Identifier: Apache-2.0 */
/* window_parts.c - sums of products through windows some of whose steps take no part: taps of a transposed
 * convolution that hit no element.  Part of place. */
#include "ir/passes/contract/window.h"

bool opjit_ir_window_moves(const window *w, ir_ref expr, int32_t dimension)
{
    const ir_func *f = w->c.f;
    return expr != 0 && w->c.out.sizes[dimension] > 1 &&
           opjit_ir_uses(f, expr, opjit_ir_coordinate(f, w->c.statement, (uint32_t)dimension));
}

static bool is_zero(const ir_func *f, ir_ref x, bool negative)
{
    const ir_node *n = ir_at(f, x);
    const uint32_t sign = 8 * opjit_ir_type_size((ir_type)n->type) - 1;
    return n->op == IR_CONST && n->imm == (negative ? UINT64_C(1) << sign : 0);
}

void opjit_ir_window_take_condition(window *w, ir_ref pair)
{
    const ir_func *f = w->c.f;
    const ir_ref a = w->values[0] = ir_operand(f, pair, 0), b = w->values[1] = ir_operand(f, pair, 1);
    if (!ir_is_float((ir_type)w->c.def.type) || ir_at(f, a)->op != IR_SELECT || ir_at(f, b)->op != IR_SELECT ||
        !opjit_ir_same(f, ir_operand(f, a, 0), ir_operand(f, b, 0)))
        return;
    const ir_ref none[2] = { ir_operand(f, a, 2), ir_operand(f, b, 2) };
    const bool first = is_zero(f, none[0], true);
    if (!is_zero(f, none[first ? 0 : 1], true) || !is_zero(f, none[first ? 1 : 0], false))
        return;
    w->values[0] = ir_operand(f, a, 1);
    w->values[1] = ir_operand(f, b, 1);
    w->values[WINDOW_CONDITION] = ir_operand(f, a, 0);
}

/* Whether a part of the condition says that the index is at least (or at most) the bound. */
static bool implies(const ir_func *f, ir_ref condition, ir_ref index, int64_t bound, bool least)
{
    const ir_node *n = ir_at(f, condition);
    if (n->op == IR_AND)
        return implies(f, ir_operand(f, condition, 0), index, bound, least) ||
               implies(f, ir_operand(f, condition, 1), index, bound, least);
    if (n->op != IR_LE && n->op != IR_LT)
        return false;
    const ir_ref number = ir_operand(f, condition, least ? 0 : 1), other = ir_operand(f, condition, least ? 1 : 0);
    if (!ir_is_index_const(f, number) || !opjit_ir_same(f, other, index))
        return false;
    const int64_t value = ir_index_value(f, number), next = n->op == IR_LT ? 1 : 0;
    return least ? value + next >= bound : value - next <= bound;
}

/* What a clamped index is where the condition holds, if that is known; else 0. */
static ir_ref unclamped(const ir_func *f, ir_ref condition, ir_ref r)
{
    const ir_op op = (ir_op)ir_at(f, r)->op;
    if (op != IR_CLAMP && op != IR_IMIN && op != IR_IMAX)
        return 0;
    const ir_ref index = ir_operand(f, r, 0);
    const ir_interval known = opjit_ir_interval(f, index);
    for (uint32_t i = 1; i < ir_at(f, r)->count; i++) {
        const ir_ref bound = ir_operand(f, r, i);
        const bool least = op == IR_IMAX || (op == IR_CLAMP && i == 1);
        if (!ir_is_index_const(f, bound))
            return 0;
        const int64_t value = ir_index_value(f, bound);
        if ((least ? known.lo < value : known.hi > value) && !implies(f, condition, index, value, least))
            return 0;
    }
    return index;
}

void opjit_ir_window_take_pool(window *w, ir_ref value)
{
    ir_func *f = w->c.f;
    ir_map map = { 0 };
    w->values[0] = value;
    if (ir_at(f, value)->op != IR_SELECT)
        return;
    const ir_ref condition = ir_operand(f, value, 0), chosen = ir_operand(f, value, 1);
    const ir_reach seen = opjit_ir_reach_one(f, chosen);
    for (uint32_t i = 0; i < seen.count; i++) {
        const ir_ref index = unclamped(f, condition, seen.nodes[i]);
        if (index != 0)
            ir_map_set(f, &map, seen.nodes[i], index);
    }
    const ir_ref bare = opjit_ir_remake(f, &map, chosen);
    w->values[0] = ir_make3(f, IR_SELECT, IR_NONE, condition, bare, ir_operand(f, value, 2));
}

static bool slides(const window *w, ir_ref expr)
{
    bool slides = false;
    for (uint32_t a = 0; a < WINDOW_AXES; a++)
        slides = slides || (w->axis[a].dimension >= 0 && opjit_ir_window_moves(w, expr, w->axis[a].dimension));
    return slides;
}

/* One bit for each digit that the expression reads. */
static uint32_t digits_of(const window *w, ir_map *map, ir_ref expr)
{
    const ir_ref probed = opjit_ir_remake(w->c.f, map, expr);
    uint32_t digits = 0;
    for (uint32_t d = 0; d < w->digit_count && !w->c.f->failed; d++)
        digits |= (uint32_t)opjit_ir_uses(w->c.f, probed, w->digits[d].probe) << d;
    return digits;
}

/* The parts of the condition that keep the loads of a factor inside; 0: there are none.  Of the windows these are what
 * moves with them, and what has nothing to do with their taps (taps: those digits); of the other factor all else. */
static ir_ref part_of(const window *w, ir_map *map, ir_ref condition, bool windows, uint32_t taps)
{
    ir_func *f = w->c.f;
    if (ir_at(f, condition)->op == IR_AND) {
        const ir_ref a = part_of(w, map, ir_operand(f, condition, 0), windows, taps);
        const ir_ref b = part_of(w, map, ir_operand(f, condition, 1), windows, taps);
        return a == 0 ? b : b == 0 ? a : ir_make2(f, IR_AND, IR_BOOL, a, b);
    }
    const bool moves = slides(w, condition);
    return (windows ? moves || (digits_of(w, map, condition) & taps) == 0 : !moves) ? condition : 0;
}

void opjit_ir_window_guard(window *w, ir_map *map)
{
    ir_func *f = w->c.f;
    const ir_ref zero = opjit_ir_const(f, (ir_type)w->c.def.type, 0), condition = w->values[WINDOW_CONDITION];
    if (condition == 0)
        return;
    const ir_reach seen = opjit_ir_reach_one(f, w->values[w->factor]);
    uint32_t taps = 0;
    for (uint32_t i = 0; i < seen.count; i++) {
        const ir_node *n = ir_at(f, seen.nodes[i]);
        for (uint32_t o = 0; n->op == IR_LOAD && o < n->count; o++)
            if (slides(w, ir_operand(f, seen.nodes[i], o)))
                taps |= digits_of(w, map, ir_operand(f, seen.nodes[i], o));
    }
    for (uint32_t i = 0; i < 2; i++) {
        const ir_ref part = part_of(w, map, condition, i == w->factor, taps);
        if (part != 0)
            w->values[i] = ir_make3(f, IR_SELECT, IR_NONE, part, w->values[i], zero);
    }
}

bool opjit_ir_window_parts_fit(const window *w, ir_map *map)
{
    const ir_ref condition = w->values[WINDOW_CONDITION];
    return condition == 0 || w->digits[0].axis >= 0 ||
           !opjit_ir_uses(w->c.f, opjit_ir_remake(w->c.f, map, condition), w->digits[0].probe);
}
