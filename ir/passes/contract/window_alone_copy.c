/* SPDX-License-Identifier: Apache-2.0 */
/* window_alone_copy.c - the copy of what windows read that are each row's own (window_alone.c), without a condition for
 * each element: padding, and over it what is no padding; or, where lines are a vector or longer, line by line, with
 * padding only between them.  Then each line begins at a whole vector.  Part of place. */
#include "ir/passes/contract/window.h"

#include <string.h>

/* What padding is: of sums 0, of pools what changes no result. */
uint64_t opjit_ir_window_nothing(const window *w)
{
    return opjit_ir_identity((ir_type)w->c.def.type, (ir_kind)w->c.def.kind);
}

static ir_ref padding(const window *w)
{
    return opjit_ir_const(w->c.f, (ir_type)w->c.def.type, opjit_ir_window_nothing(w));
}

/* What the tap that is this remainder of each axis reads at y and x; channel: of digit 0, if it has no axis. */
static ir_ref tap_value(window *w, block *list, ir_ref channel, const ir_ref *class, ir_ref y, ir_ref x)
{
    ir_ref at[9], digits[WINDOW_DIGITS];
    memcpy(at, w->c.at, sizeof at);
    at[w->axis[0].dimension] = y;
    if (w->axis[1].dimension >= 0)
        at[w->axis[1].dimension] = x;
    for (uint32_t d = 0; d < w->digit_count; d++)
        digits[d] = w->digits[d].axis >= 0 ? class[w->digits[d].axis] : d == 0 ? channel : opjit_ir_index(w->c.f, 0);
    for (uint32_t a = 0; a < WINDOW_AXES; a++)
        if (w->axis[a].whole) {
            digits[w->axis[a].digit] = a == 0 ? y : x;
            at[w->axis[a].dimension] = opjit_ir_index(w->c.f, 0);
        }
    const ir_ref row = w->lane != 0 ? w->lane : opjit_ir_index(w->c.f, 0);
    return opjit_ir_window_factor(w, list, w->factor, digits, row, at);
}

static ir_ref loop_over(window *w, block *list, int64_t lo, int64_t hi, block *out)
{
    return contract_loop_from(&w->c, list, opjit_ir_index(w->c.f, lo), opjit_ir_index(w->c.f, hi), out);
}

/* Line y of remainders class[0] and, of the inner axis, class[1] to end - 1, at the positions x: a loop over many of
 * them is around one over positions, as what is transposed.  A single position has no loop, so that the one over lines
 * has vectors. */
static void copy_line(window *w, block *list, ir_ref channel, const int64_t *class, int64_t end, ir_ref y,
                      window_span x)
{
    contraction *c = &w->c;
    ir_func *f = c->f;
    block of_class, of_x;
    const bool many = end - class[1] > 1, single = !many && x.hi - x.lo == 1;
    ir_ref of[WINDOW_AXES] = { opjit_ir_index(f, class[0]), opjit_ir_index(f, class[1]) }, at[3] = { channel };
    if (many)
        of[1] = loop_over(w, list, class[1], end, &of_class);
    const ir_ref p = single ? opjit_ir_index(f, x.lo) : loop_over(w, many ? &of_class : list, x.lo, x.hi, &of_x);
    block *const inside = single ? list : &of_x;
    const int64_t before = w->in_turn ? 0 : class[0] * w->axis[1].classes;
    const ir_ref first = opjit_ir_index(f, w->in_turn ? class[0] * w->pitch : 0);
    at[1] = contract_plus(c, of[1], opjit_ir_index(f, before));
    at[2] = contract_plus(c, contract_times(c, y, w->in_turn ? w->line : w->pitch), contract_plus(c, p, first));
    opjit_ir_contract_store(c, inside, w->copy, tap_value(w, inside, channel, of, y, p), at);
}

/* All lines of remainder class[0] of the outer axis. */
static void copy_lines(window *w, block *list, ir_ref channel, int64_t class_0)
{
    const int64_t count = w->axis[1].classes;
    int64_t class[WINDOW_AXES] = { class_0, 0 }, end;
    const window_span y = opjit_ir_window_inside_of(w, 0, class_0);
    block of_y;
    if (y.lo == y.hi)
        return;
    const ir_ref line = loop_over(w, list, y.lo, y.hi, &of_y);
    window_span x = opjit_ir_window_inside_of(w, 1, 0);
    for (; class[1] < count; class[1] = end) {
        window_span next = { 0, 0 };
        for (end = class[1] + 1; end < count; end++) {
            next = opjit_ir_window_inside_of(w, 1, end);
            if (count < WINDOW_MANY_CLASSES || next.lo != x.lo || next.hi != x.hi)
                break;
        }
        if (x.lo != x.hi)
            copy_line(w, &of_y, channel, class, end, line, x);
        x = next;
    }
}

/* The copy of all lines: padding, and over them what is no padding, without a condition. */
static void copy_whole(window *w, block *list)
{
    contraction *c = &w->c;
    ir_func *f = c->f;
    block of_c, of_s, of_e;
    ir_ref at[3];
    at[0] = opjit_ir_index(f, 0);
    if (w->channels > 1) {
        at[0] = contract_loop(c, list, opjit_ir_index(f, w->channels), &of_c);
        list = &of_c;
    }
    at[1] = contract_loop(c, list, opjit_ir_index(f, w->slots), &of_s);
    at[2] = contract_loop(c, &of_s, opjit_ir_index(f, w->plane), &of_e);
    opjit_ir_contract_store(c, &of_e, w->copy, padding(w), at);
    for (int64_t class = 0; class < w->axis[0].classes; class++)
        copy_lines(w, list, at[0], class);
}

/* --- line by line ------------------------------------------------------------------------------------------------- */

/* Lines of the copy of a block. */
static int64_t block_lines(const window *w)
{
    const window_axis *y = &w->axis[0];
    window_axis here = *y;
    here.size = w->block;
    return window_positions(&here, 0);
}

/* What is copied begins at a whole vector in each line. */
void opjit_ir_window_align(window *w, int64_t lanes, int64_t least)
{
    const int64_t first = opjit_ir_window_inside_of(w, 1, 0).lo,
                  second = w->slots > 1 ? opjit_ir_window_inside_of(w, 1, 1).lo : first;
    const int64_t all = block_lines(w) * w->pitch + (first > second ? first : second);
    w->shift = w->joined ? 0 : (lanes - first % lanes) % lanes;
    const int64_t size = (least > all ? least : all) + w->shift;
    w->plane = (size / lanes + 2) * lanes + first - second;
}

/* Elements of a slot from `first` to `end`, behind element `from`: padding. */
static void fill(window *w, block *list, const ir_ref *slot, ir_ref from, ir_ref first, ir_ref end)
{
    block of_e;
    const ir_ref e = contract_loop_from(&w->c, list, first, end, &of_e);
    const ir_ref at[3] = { slot[0], slot[1], contract_plus(&w->c, from, e) };
    opjit_ir_contract_store(&w->c, &of_e, w->copy, padding(w), at);
}

/* So many elements of a slot from `first` on. */
static void fill_some(window *w, block *list, const ir_ref *slot, ir_ref first, int64_t count)
{
    if (count > 0)
        fill(w, list, slot, first, opjit_ir_index(w->c.f, 0), opjit_ir_index(w->c.f, count));
}

/* A line of the copy: where it begins in each slot, and what it is a copy of. */
typedef struct line_copy {
    ir_ref y, first, channel;
} line_copy;

/* Place p of remainder k. */
static void copy_place(window *w, block *list, const line_copy *l, int64_t k, ir_ref p)
{
    contraction *c = &w->c;
    ir_func *f = c->f;
    const window_axis *y = &w->axis[0];
    const ir_ref of[WINDOW_AXES] = { opjit_ir_index(f, 0), opjit_ir_index(f, k) };
    const ir_ref at[3] = { l->channel, of[1], contract_plus(c, l->first, p) };
    ir_ref value, digits[WINDOW_DIGITS];
    if (y->varies) {
        for (uint32_t d = 0; d < w->digit_count; d++)
            digits[d] = d == 0 ? l->channel : opjit_ir_index(f, 0);
        value = opjit_ir_window_inside_value(w, list, (int64_t[]){ 0, k }, digits, l->y, p);
    } else {
        value = tap_value(w, list, l->channel, of, l->y, p);
        if (y->size % w->block != 0) {
            const ir_ref before = ir_make2(f, IR_LT, IR_BOOL, l->y, opjit_ir_index(f, window_positions(y, 0)));
            value = ir_make3(f, IR_SELECT, IR_NONE, before, value, padding(w));
        }
    }
    opjit_ir_contract_store(c, list, w->copy, value, at);
}

/* What is no padding in a line: of all remainders together, then what is left of each. */
static void copy_inside(window *w, block *list, const line_copy *line, const window_span *x)
{
    contraction *c = &w->c;
    block of_x;
    int64_t all = INT64_MAX;
    for (int64_t k = 0; k < w->slots; k++)
        all = x[k].hi - x[k].lo < all ? x[k].hi - x[k].lo : all;
    if (w->axis[1].uneven) /* an odd line has one less of a remainder: both have a rest */
        all -= 2;
    if (all > 0) { /* what lies between the elements of one remainder is loaded with them */
        const ir_ref p = loop_over(w, list, x[0].lo, x[0].lo + all, &of_x);
        for (int64_t k = 0; k < w->slots; k++)
            copy_place(w, &of_x, line, k, contract_plus(c, p, opjit_ir_index(c->f, x[k].lo - x[0].lo)));
    }
    for (int64_t k = 0; k < w->slots; k++)
        if (x[k].lo + all < x[k].hi)
            copy_place(w, &of_x, line, k, loop_over(w, list, x[k].lo + all, x[k].hi, &of_x));
}

/* The element `behind` of a line. */
static ir_ref place_of(const window *w, ir_ref line, int64_t behind)
{
    return contract_plus(&w->c, contract_times(&w->c, line, w->pitch), opjit_ir_index(w->c.f, behind));
}

/* The copy of a block.  Conditions on lines, which become bounds of loops over them, are those of padding, and the end
 * of the last block. */
static void copy_by_lines(window *w, block *list)
{
    contraction *c = &w->c;
    ir_func *f = c->f;
    const window_axis *y = &w->axis[0];
    block of_c, of_y;
    const ir_ref zero = opjit_ir_index(f, 0);
    ir_ref slot[2] = { zero }, begin, end;
    window_span x[WINDOW_MANY_CLASSES];
    if (w->channels > 1) {
        slot[0] = contract_loop(c, list, opjit_ir_index(f, w->channels), &of_c);
        list = &of_c;
    }
    const ir_ref first_y = contract_times(c, w->first_position, window_step(y));
    window_span inside = { 0, block_lines(w) };
    if (w->blocks == 1 && !y->varies) /* what the lines have is known: no conditions are left on them */
        inside = opjit_ir_window_inside_of(w, 0, 0);
    begin = opjit_ir_index(f, inside.lo);
    end = opjit_ir_index(f, inside.hi);
    if (y->varies)
        opjit_ir_window_lines_inside(w, list, 0, first_y, block_lines(w), 0, &begin, &end);
    for (int64_t k = 0; k < w->slots; k++) {
        x[k] = opjit_ir_window_inside_of(w, 1, k);
        const int64_t before = w->shift + x[k].lo, behind = before + inside.hi * w->pitch;
        slot[1] = opjit_ir_index(f, k);
        if (y->varies) {
            fill(w, list, slot, zero, zero, place_of(w, begin, before));
            fill(w, list, slot, zero, place_of(w, end, before), opjit_ir_index(f, w->plane));
        } else {
            fill_some(w, list, slot, zero, before + inside.lo * w->pitch);
            fill_some(w, list, slot, opjit_ir_index(f, behind), w->plane - behind);
        }
    }
    const ir_ref line = contract_loop_from(c, list, begin, end, &of_y);
    const ir_ref first = place_of(w, line, w->shift);
    for (int64_t k = 0; k < w->slots; k++) {
        slot[1] = opjit_ir_index(f, k);
        fill_some(w, &of_y, slot, contract_plus(c, first, opjit_ir_index(f, x[k].hi)), w->pitch - x[k].hi + x[k].lo);
    }
    const line_copy line_of = { .y = contract_plus(c, first_y, line), .first = first, .channel = slot[0] };
    copy_inside(w, &of_y, &line_of, x);
}

void opjit_ir_window_alone_copy(window *w, block *list)
{
    if (w->by_lines)
        copy_by_lines(w, list);
    else if (w->blocks == 1 && w->free == 1 && !w->axis[0].varies)
        copy_whole(w, list);
    else
        opjit_ir_window_copy(w, list);
}

/* --- rows side by side -------------------------------------------------------------------------------------------- */

/* Padding in lines and places of the copy, for all rows. */
static void fill_places(window *w, block *list, window_span y, window_span x, int64_t lanes)
{
    contraction *c = &w->c;
    block of_y, of_x, of_lane;
    if (y.lo >= y.hi || x.lo >= x.hi)
        return;
    ir_ref at[3];
    at[0] = loop_over(w, list, y.lo, y.hi, &of_y);
    at[1] = loop_over(w, &of_y, x.lo, x.hi, &of_x);
    at[2] = contract_loop(c, &of_x, opjit_ir_index(c->f, lanes), &of_lane);
    opjit_ir_contract_store(c, &of_lane, w->copy, padding(w), at);
}

void opjit_ir_window_channels_copy(window *w, block *list, int64_t lanes)
{
    contraction *c = &w->c;
    ir_func *f = c->f;
    const ir_ref zero = opjit_ir_index(f, 0), class[WINDOW_AXES] = { zero, zero };
    const window_span y = opjit_ir_window_inside_of(w, 0, 0), x = opjit_ir_window_inside_of(w, 1, 0);
    block of_y, of_x, of_lane;
    ir_ref at[3];
    fill_places(w, list, (window_span){ 0, y.lo }, (window_span){ 0, w->pitch }, lanes);
    fill_places(w, list, (window_span){ y.hi, w->lines }, (window_span){ 0, w->pitch }, lanes);
    fill_places(w, list, y, (window_span){ 0, x.lo }, lanes);
    fill_places(w, list, y, (window_span){ x.hi, w->pitch }, lanes);
    if (y.lo == y.hi || x.lo == x.hi)
        return;
    at[0] = loop_over(w, list, y.lo, y.hi, &of_y);
    at[1] = loop_over(w, &of_y, x.lo, x.hi, &of_x);
    at[2] = w->lane = contract_loop(c, &of_x, opjit_ir_index(f, lanes), &of_lane);
    opjit_ir_contract_store(c, &of_lane, w->copy, tap_value(w, &of_lane, zero, class, at[0], at[1]), at);
}
