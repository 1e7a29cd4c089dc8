/* SPDX-License-Identifier: Apache-2.0 */
/* window_varying.c - the copy of what windows read, where sizes follow from dynamic dimensions.  Of an odd line the
 * last window with a stride reads padding that one of an even line has not, and a last block may have one line less
 * than others, or two: so no loop may depend on conditions that hold for some sizes alone.  For each remainder of the
 * taps there is a nest of loops over what is no padding, whose bounds are two numbers of each axis.  Part of place. */
#include "ir/passes/contract/window.h"

#include <string.h>

bool opjit_ir_window_is_padding(window *w, uint32_t axis, int64_t class, int64_t position)
{
    ir_func *f = w->c.f;
    const window_axis *x = &w->axis[axis];
    const ir_ref at = opjit_ir_index(f, position);
    ir_map map = { 0 };

    ir_map_set(f, &map, opjit_ir_coordinate(f, w->c.statement, (uint32_t)x->dimension),
               x->whole ? opjit_ir_index(f, 0) : at);
    if (x->digit >= 0)
        ir_map_set(f, &map, w->digits[x->digit].probe, x->whole ? at : opjit_ir_index(f, class));
    const ir_ref made = opjit_ir_remake(f, &map, w->probed);
    if (f->failed)
        return false;
    const ir_node *n = ir_at(f, made);
    return n->op == IR_CONST && n->imm == opjit_ir_window_nothing(w);
}

window_span opjit_ir_window_inside_of(window *w, uint32_t axis, int64_t class)
{
    const window_axis *x = &w->axis[axis];
    window_span inside = { 0, window_positions(x, class) };

    while (x->dimension >= 0 && inside.lo < inside.hi && opjit_ir_window_is_padding(w, axis, class, inside.lo))
        inside.lo++;
    while (x->dimension >= 0 && inside.lo < inside.hi && opjit_ir_window_is_padding(w, axis, class, inside.hi - 1))
        inside.hi--;
    return inside.lo < inside.hi ? inside : (window_span){ 0, 0 };
}

ir_ref opjit_ir_window_inside_value(window *w, block *list, const int64_t *class, const ir_ref *of, ir_ref all_y,
                                    ir_ref x)
{
    ir_func *f = w->c.f;
    const window_span lines = opjit_ir_window_inside_of(w, 0, class[0]);
    const ir_ref loop = opjit_ir_for(f, opjit_ir_index(f, lines.lo), opjit_ir_index(f, lines.hi), 1);
    const ir_ref line = f->failed ? 0 : ir_at(f, loop)->ref;
    ir_ref at[9], digits[WINDOW_DIGITS];
    ir_map map = { 0 };

    memcpy(at, w->c.at, sizeof at);
    memcpy(digits, of, w->digit_count * sizeof *digits);
    for (uint32_t a = 0; a < WINDOW_AXES; a++) {
        const ir_ref own = a == 0 ? line : x;
        const bool whole = w->single || w->axis[a].whole; /* places are taps of one position */
        if (w->axis[a].dimension >= 0)
            at[w->axis[a].dimension] = w->axis[a].whole ? opjit_ir_index(f, 0) : own;
        for (uint32_t d = 0; d < w->digit_count; d++)
            if (w->digits[d].axis == (int32_t)a)
                digits[d] = whole ? own : opjit_ir_index(f, class[a]);
    }
    const ir_ref made = opjit_ir_window_made(w, w->values[w->factor], digits, opjit_ir_index(f, 0), at);
    if (f->failed)
        return 0;
    ir_map_set(f, &map, line, all_y);
    const ir_ref value = opjit_ir_remake(f, &map, made);
    return f->failed ? 0 : opjit_ir_share(f, list, value);
}

void opjit_ir_window_lines_inside(window *w, block *list, int64_t class, ir_ref first, int64_t count, int64_t from,
                                  ir_ref *begin, ir_ref *end)
{
    ir_func *f = w->c.f;
    const window_span lines = opjit_ir_window_inside_of(w, 0, class);
    const ir_ref lo = opjit_ir_index(f, from), hi = opjit_ir_index(f, from + count);

    *begin = lo;
    for (uint32_t i = lines.lo == 0; i < 2; i++) {
        const ir_ref at = opjit_ir_index(f, from + (i == 0 ? lines.lo : lines.hi));
        *(i == 0 ? begin : end) = opjit_ir_block_let(
            f, list, ir_make3(f, IR_CLAMP, IR_INDEX, ir_make2(f, IR_ISUB, IR_INDEX, at, first), lo, hi));
    }
}

/* What changes no result, at the elements from lo to hi of a plane, behind `from`. */
static void fill(window *w, block *list, const ir_ref *plane, ir_ref from, ir_ref lo, ir_ref hi)
{
    ir_func *f = w->c.f;
    block inside;
    const ir_ref e = contract_loop_from(&w->c, list, lo, hi, &inside);
    const ir_ref at[3] = { plane[0], plane[1], contract_plus(&w->c, from, e) };
    opjit_ir_contract_store(&w->c, &inside, w->copy,
                            opjit_ir_const(f, (ir_type)w->c.def.type, opjit_ir_window_nothing(w)), at);
}

bool opjit_ir_window_fills_around(const window *w)
{
    return w->axis[0].classes * w->axis[1].classes == 1 && w->free == 1;
}

/* Padding before the first line that has none, behind the last one, and between two lines. */
static void fill_around(window *w, block *list, block *of_y, const ir_ref *plane, ir_ref y, const ir_ref *ends,
                        window_span places)
{
    contraction *c = &w->c;
    ir_func *f = c->f;
    const ir_ref zero = opjit_ir_index(f, 0), first = opjit_ir_index(f, places.lo);
    const int64_t between = w->pitch - places.hi + places.lo;
    const ir_ref begin = contract_plus(c, contract_times(c, ends[0], w->pitch), first),
                 end = contract_plus(c, contract_times(c, ends[1], w->pitch), first);

    if (begin != zero)
        fill(w, list, plane, zero, zero, begin);
    fill(w, list, plane, zero, end, opjit_ir_index(f, w->plane));
    if (between != 0)
        fill(w, of_y, plane, contract_plus(c, contract_times(c, y, w->pitch), opjit_ir_index(f, places.hi)), zero,
             opjit_ir_index(f, between));
}

/* What is no padding in all lines of the block, of one remainder of each axis. */
static void copy_class(window *w, block *list, const int64_t *class, const ir_ref *digits, ir_ref first,
                       const ir_ref *row)
{
    contraction *c = &w->c;
    ir_func *f = c->f;
    const bool lone = w->axis[1].dimension < 0;
    const window_span places = lone ? (window_span){ 0, 1 } : opjit_ir_window_inside_of(w, 1, class[1]);
    const int64_t number = w->in_turn ? class[1] : (class[0] * w -> axis[1].classes + class[1]) * w->free;
    /* Two remainders may end at one line for some sizes: counted from lines of their own, their loops never do. */
    const int64_t from = class[0] * (w->axis[0].step + 2);
    ir_ref at[3] = { row[0], contract_plus(c, row[1], opjit_ir_index(f, number)) }, ends[2], x = opjit_ir_index(f, 0);
    block of_y, of_x, *last = &of_y;

    opjit_ir_window_lines_inside(w, list, class[0], first, w -> lines, from, &ends[0], &ends[1]);
    const ir_ref y = contract_plus(c, contract_loop_from(c, list, ends[0], ends[1], &of_y), opjit_ir_index(f, -from));
    ir_ref line = y;
    if (opjit_ir_window_fills_around(w))
        fill_around(w, list, last, at, y, ends, places);
    if (w->in_turn)
        line = contract_plus(c, contract_times(c, y, w->axis[0].classes), opjit_ir_index(f, class[0]));
    if (!lone) {
        x = contract_loop_from(c, last, opjit_ir_index(f, places.lo), opjit_ir_index(f, places.hi), &of_x);
        last = &of_x;
    }
    at[2] = contract_plus(c, contract_times(c, line, w->pitch), x);
    const ir_ref value = opjit_ir_window_inside_value(w, last, class, digits, contract_plus(c, first, y), x);
    opjit_ir_contract_store(c, last, w->copy, value, at);
}

void opjit_ir_window_copy_varying(window *w, block *list, const ir_ref *digits, ir_ref first, const ir_ref *row)
{
    int64_t class[WINDOW_AXES];

    for (class[0] = 0; class[0] < w -> axis[0].classes; class[0]++)
        for (class[1] = 0; class[1] < w -> axis[1].classes; class[1]++)
            copy_class(w, list, class, digits, first, row);
}
