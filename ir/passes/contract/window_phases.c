/* SPDX-License-Identifier: Apache-2.0 */
/* window_phases.c - sums some of whose steps take no part, as of transposed convolutions, with rows as lanes.
 * Part of place.
 *
 * Such a step has a factor that is 0, in the copies of both factors.  That changes no sum in the cases that
 * window_skip.c has for steps of padding: then tiles do these steps like any other, except for taps that take
 * part nowhere in a phase, which are left out.  There is a tile for each number of lines and taps that a phase has.  In
 * other cases a loop over single vectors chooses by the condition. */
#include "ir/passes/contract/window.h"

#include <string.h>

enum { MOST_TAPS = 9 /* whose steps a tile spells out */ };

/* Whether the rows' factor is 0 for tap j of the axis, in value r of the result's dimension d. */
static bool is_left_out(window *w, ir_ref factor, uint32_t axis, int64_t j, uint32_t d, int64_t r)
{
    ir_func *f = w->c.f;
    ir_map map = { 0 };
    ir_map_set(f, &map, opjit_ir_coordinate(f, w->c.statement, d), opjit_ir_index(f, r));
    ir_map_set(f, &map, w->digits[w->axis[axis].digit].probe, opjit_ir_index(f, j));
    const ir_node *n = ir_at(f, opjit_ir_remake(f, &map, factor));
    return !f->failed && n->op == IR_CONST && n->imm == 0;
}

/* Finds which taps of the axis each phase has, if dimension d is one of phases. */
static bool find_phase(window *w, ir_ref factor, uint32_t axis, uint32_t d)
{
    const window_axis *x = &w->axis[axis];
    window_phase *phase = &w->phase[axis];
    const int64_t size = (int64_t)w->c.out.sizes[d];
    bool any = false;
    if (size < 2 || size > WINDOW_PHASES || !opjit_ir_window_moves(w, factor, (int32_t)d))
        return false;
    for (int64_t r = 0; r < size; r++) {
        int64_t lo = 0, hi = x->taps;
        while (lo + 1 < hi && is_left_out(w, factor, axis, lo, d, r))
            lo++;
        while (hi > lo + 1 && is_left_out(w, factor, axis, hi - 1, d, r))
            hi--;
        phase->lo[r] = lo;
        phase->count[r] = hi - lo;
        any = any || hi - lo < x->taps;
    }
    phase->dimension = any ? (int32_t)d : -1;
    return any;
}

static double part_of_steps(const window *w, uint32_t axis)
{
    const window_phase *phase = &w->phase[axis];
    int64_t steps = 0, size = phase->dimension < 0 ? 1 : (int64_t)w->c.out.sizes[phase->dimension];
    for (int64_t r = 0; r < size; r++)
        steps += phase->dimension < 0 ? w->axis[axis].taps : phase->count[r];
    return (double)steps / (double)(size * w->axis[axis].taps);
}

bool opjit_ir_window_find_phases(window *w)
{
    ir_func *f = w->c.f;
    ir_ref probes[WINDOW_DIGITS];
    ir_map map = { 0 };
    if (w->values[WINDOW_CONDITION] == 0 || !ir_is_float((ir_type)w->c.def.type) || w->free != 1 || w->gathers ||
        w->depth > MOST_TAPS || w->depth == 1)
        return false;
    for (uint32_t d = 0; d < w->digit_count; d++)
        probes[d] = w->digits[d].probe;
    opjit_ir_window_map_digits(w, probes, &map);
    const ir_ref factor = opjit_ir_remake(f, &map, w->values[1 - w->factor]);
    w->steps = 1;
    w->forms = 0;
    for (uint32_t a = 0; a < WINDOW_AXES; a++) {
        w->phase[a].dimension = -1;
        for (uint32_t d = 0; d < w->c.out.rank && w->axis[a].digit >= 0; d++)
            if (find_phase(w, factor, a, d))
                break;
        w->steps *= part_of_steps(w, a);
    }
    for (int64_t r = 0; r < WINDOW_PHASES * WINDOW_PHASES; r++) {
        int64_t taps[WINDOW_AXES];
        bool is = true;
        for (uint32_t a = 0; a < WINDOW_AXES; a++) {
            const int64_t own = a == 0 ? r / WINDOW_PHASES : r % WINDOW_PHASES;
            const int32_t d = w->phase[a].dimension;
            is = is && own < (d < 0 ? 1 : (int64_t)w->c.out.sizes[d]);
            taps[a] = d < 0 || !is ? w->axis[a].taps : w->phase[a].count[own];
        }
        if (is && !opjit_ir_window_add_form(w, taps[0], taps[1]))
            return false;
    }
    return w->parted = !f->failed;
}

/* The statement's factors without what leaves out steps; returns what it had. */
static ir_ref set_factors(window *w, ir_ref pair)
{
    ir_func *f = w->c.f;
    const ir_ref before = ir_operand(f, w->c.statement, 0);
    if (!f->failed)
        f->operands[ir_at(f, w->c.statement)->first] = pair;
    return before;
}

ir_ref opjit_ir_window_bare_factors(window *w)
{
    return w->parted ? set_factors(w, ir_expr2(w->c.f, IR_PAIR, (ir_type)w->c.def.type, w->values[0], w->values[1]))
                     : ir_operand(w->c.f, w->c.statement, 0);
}

void opjit_ir_window_own_factors(window *w, ir_ref pair)
{
    (void)set_factors(w, pair);
}

int64_t opjit_ir_window_matrices(const window *w)
{
    int64_t matrices = 1;
    for (uint32_t d = 0; d < w->c.out.rank; d++)
        if ((int32_t)d != w->rows && opjit_ir_window_moves(w, w->values[1 - w->factor], (int32_t)d))
            matrices *= (int64_t)w->c.out.sizes[d];
    return matrices;
}

void opjit_ir_window_set_phase(window *w, block *list)
{
    ir_func *f = w->c.f;
    if (!w->parted)
        return;
    memcpy(w->other.at, w->c.at, sizeof w->other.at);
    const ir_ref pair = opjit_ir_window_bare_factors(w);
    opjit_ir_contract_set_matrix(&w->other, list);
    opjit_ir_window_own_factors(w, pair);
    for (uint32_t a = 0; a < WINDOW_AXES; a++) {
        const window_phase *phase = &w->phase[a];
        ir_ref lo = opjit_ir_index(f, 0), count = opjit_ir_index(f, w->axis[a].taps);
        for (int64_t r = 0; phase->dimension >= 0 && r < (int64_t)w->c.out.sizes[phase->dimension]; r++) {
            const ir_ref is = ir_make2(f, IR_EQ, IR_BOOL, w->c.at[phase->dimension], opjit_ir_index(f, r));
            lo = r == 0 ? opjit_ir_index(f, phase->lo[r])
                        : ir_make3(f, IR_SELECT, IR_INDEX, is, opjit_ir_index(f, phase->lo[r]), lo);
            count = r == 0 ? opjit_ir_index(f, phase->count[r])
                           : ir_make3(f, IR_SELECT, IR_INDEX, is, opjit_ir_index(f, phase->count[r]), count);
        }
        w->first_tap[a] = opjit_ir_block_let(f, list, lo);
        w->phase_taps[a] = opjit_ir_block_let(f, list, count);
    }
}

void opjit_ir_window_choose_way(window *w, block *list)
{
    ir_func *f = w->c.f;
    const ir_ref some = ir_make2(f, IR_EQ, IR_BOOL, w->all_steps, opjit_ir_index(f, 0));
    for (uint32_t a = 0; a < WINDOW_AXES; a++)
        w->tap_count[a] = opjit_ir_block_let(
            f, list, ir_make3(f, IR_SELECT, IR_INDEX, some, w->phase_taps[a], opjit_ir_index(f, 0)));
}

block *opjit_ir_window_open_chosen(window *w, block *list, block *out)
{
    (void)contract_loop(&w->c, list, w->all_steps, out);
    for (uint32_t a = 0; a < WINDOW_AXES; a++) {
        w->taps[a] = w->axis[a].taps;
        w->from_tap[a] = opjit_ir_index(w->c.f, 0);
    }
    return out;
}

/* Line and place in it of position i of tile n; *x: 0: lines have one. */
static void position_of(const window *w, ir_ref n, ir_ref i, ir_ref *y, ir_ref *x)
{
    ir_func *f = w->c.f;
    const int64_t tile = w->c.side[CONTRACT_COLUMNS].tile;
    if (window_varies(w)) {
        *y = w->joined ? contract_plus(&w->c, w->tile_line, i) : w->tile_line;
        *x = w->joined ? 0 : contract_plus(&w->c, w->tile_first, i);
        return;
    }
    *y = contract_plus(&w->c, contract_times(&w->c, n, tile), i);
    *x = 0;
    if (w->axis[1].dimension < 0)
        return;
    const ir_ref by = opjit_ir_index(f, w->joined ? w->axis[1].size : w->pieces), of = w->joined ? *y : n;
    *x = ir_make2(f, IR_IMOD, IR_INDEX, of, by);
    *x = w->joined ? *x : contract_plus(&w->c, contract_times(&w->c, *x, tile), i);
    *y = ir_make2(f, IR_IDIV, IR_INDEX, of, by);
}

ir_ref opjit_ir_window_takes_part(window *w, const ir_ref *digits, ir_ref n, ir_ref i)
{
    ir_func *f = w->c.f;
    ir_ref at[9], own[WINDOW_DIGITS], y, x;
    position_of(w, n, i, &y, &x);
    memcpy(at, w->c.at, sizeof at);
    memcpy(own, digits, w->digit_count * sizeof *own);
    own[0] = contract_plus(&w->c, w->first_channel, own[0]);
    at[w->axis[0].dimension] = contract_plus(&w->c, w->first_position, y);
    if (x != 0)
        at[w->axis[1].dimension] = x;
    return opjit_ir_window_made(w, w->values[WINDOW_CONDITION], own, opjit_ir_index(f, 0), at);
}
