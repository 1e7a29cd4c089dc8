/* SPDX-License-Identifier: Apache-2.0 */
/* window_copy.c - copies what a block of k reads to scratch: the factor that is read through windows once, row
 * of positions by row, with its padding and without its stride; the other factor in rows of k.  Casts and whatever else
 * is computed of their elements is done here.  Part of place.
 *
 * With a stride, positions whose taps have the same remainder lie side by side: a plane for each remainder, in which
 * tap t lies t / period * step elements behind the position's own (window.h).  What is behind the last
 * position of a row that any tap reads is zero, and nothing of it is stored in the end. */
#include "ir/passes/contract/window.h"

#include <string.h>

/* --- factors ------------------------------------------------------------------------------------------------------ */

ir_ref opjit_ir_window_made(window *w, ir_ref of, const ir_ref *digits, ir_ref row, ir_ref *at)
{
    ir_func *f = w->c.f;
    const ir_ref statement = w->c.statement, pair = ir_operand(f, statement, 0);
    ir_map map = { 0 };
    opjit_ir_window_map_digits(w, digits, &map);
    if (w->rows >= 0) {
        const ir_ref var = opjit_ir_coordinate(f, statement, (uint32_t)w->rows);
        const ir_reach seen = opjit_ir_reach_one(f, of);
        for (uint32_t i = 0; i < seen.count; i++) {
            const ir_op op = (ir_op)ir_at(f, seen.nodes[i])->op;
            if ((op == IR_IDIV || op == IR_IMOD) && ir_operand(f, seen.nodes[i], 0) == var &&
                ir_index_value(f, ir_operand(f, seen.nodes[i], 1)) == w->group)
                ir_map_set(f, &map, seen.nodes[i], op == IR_IDIV ? w->of_group : row);
        }
        at[w->rows] = contract_plus(&w->c, contract_times(&w->c, w->of_group, w->group), row);
    }
    at[w->c.out.rank] = opjit_ir_index(f, 0);
    for (uint32_t d = 0; d < w->c.out.rank; d++) /* the copy has more positions than the result */
        ir_map_set(f, &map, opjit_ir_coordinate(f, statement, d), at[d]);
    const ir_ref value = opjit_ir_remake(f, &map, of);
    if (f->failed)
        return 0;
    f->operands[ir_at(f, statement)->first] = value;
    const ir_ref made = opjit_ir_inline(&w->c.in, statement, w->c.out.rank + 1, at);
    f->operands[ir_at(f, statement)->first] = pair;
    return f->failed ? 0 : made;
}

ir_ref opjit_ir_window_factor(window *w, block *list, uint32_t factor, const ir_ref *digits, ir_ref row, ir_ref *at)
{
    ir_func *f = w->c.f;
    const ir_ref made = opjit_ir_window_made(w, w->values[factor], digits, row, at);
    return f->failed ? 0 : opjit_ir_share(f, list, made);
}

/* Likewise, or its word. */
static ir_ref windows_value(window *w, block *list, const ir_ref *digits, ir_ref *at)
{
    const ir_ref row = opjit_ir_index(w->c.f, 0);
    return w->bytes > 0 ? opjit_ir_window_word(w, w->factor, digits, row, at)
                        : opjit_ir_window_factor(w, list, w->factor, digits, row, at);
}

/* --- the copy ----------------------------------------------------------------------------------------------------- */

static ir_ref less(const window *w, ir_ref a, ir_ref b)
{
    return ir_make2(w->c.f, IR_LT, IR_BOOL, a, b);
}

static ir_ref quotient(const window *w, ir_op op, ir_ref a, int64_t b)
{
    return ir_make2(w->c.f, op, IR_INDEX, a, opjit_ir_index(w->c.f, b));
}

/* How many positions of an axis the taps of this class read. */
static ir_ref positions_of(const window *w, const window_axis *x, int64_t class)
{
    return opjit_ir_index(w->c.f, window_positions(x, class));
}

/* Zeros (of pools, what changes no result) from element `first` of the plane on. */
static void fill_rest(window *w, block *list, const ir_ref *row, int64_t first)
{
    ir_func *f = w->c.f;
    ir_ref own[3] = { row[0], row[1] };
    if (w->plane == first)
        return;
    const ir_ref loop = opjit_ir_for(f, opjit_ir_index(f, first), opjit_ir_index(f, w->plane), 1);
    block of_rest = { .parent = loop };
    opjit_ir_block_add(f, list, loop);
    own[2] = f->failed ? 0 : ir_at(f, loop)->ref;
    const ir_type type = (ir_type)w->c.def.type;
    const uint64_t nothing = w->pool ? opjit_ir_window_nothing(w) : 0;
    opjit_ir_contract_store(&w->c, &of_rest, w->copy, opjit_ir_const(f, type, nothing), own);
}

/* All lines of the block as one, which they are in memory, too; behind it zeros. */
static void copy_flat(window *w, block *list, ir_ref *digits, const ir_ref *row)
{
    ir_func *f = w->c.f;
    const int64_t width = w->axis[1].size, length = w->block * width;
    ir_ref at[9], own[3] = { row[0], row[1] };
    block of_p;
    own[2] = contract_loop(&w->c, list, opjit_ir_index(f, length), &of_p);
    const ir_ref p = contract_plus(&w->c, contract_times(&w->c, w->first_position, width), own[2]);
    memcpy(at, w->c.at, sizeof at);
    at[w->axis[0].dimension] = quotient(w, IR_IDIV, p, width);
    at[w->axis[1].dimension] = quotient(w, IR_IMOD, p, width);
    const ir_ref value = windows_value(w, &of_p, digits, at);
    opjit_ir_contract_store(&w->c, &of_p, w->copy, value, own);
    fill_rest(w, list, row, length);
}

/* A row of positions in the planes of one class: line all_y, number y of the block; row: the plane's for class 0. */
static void copy_row(window *w, block *list, const int64_t *class, ir_ref *digits, ir_ref y, ir_ref all_y,
                     const ir_ref *row)
{
    ir_func *f = w->c.f;
    block of_x, *last = list;
    ir_ref at[9], x = opjit_ir_index(f, 0);
    memcpy(at, w->c.at, sizeof at);
    at[w->axis[0].dimension] = all_y;
    if (w->axis[1].dimension >= 0) {
        x = at[w->axis[1].dimension] = contract_loop(&w->c, list, opjit_ir_index(f, w->pitch), &of_x);
        last = &of_x;
    }
    for (uint32_t d = 0; d < w->digit_count; d++) {
        const int32_t axis = w->digits[d].axis;
        if (axis < 0)
            continue;
        digits[d] = opjit_ir_index(f, class[axis]);
        if (w->single || w->axis[axis].whole) /* places are taps of one position */
            digits[d] = axis == 0 ? all_y : x;
        if (w->axis[axis].whole)
            at[w->axis[axis].dimension] = opjit_ir_index(f, 0);
    }
    const int64_t number = w->in_turn ? class[1] : (class[0] * w->axis[1].classes + class[1]) * w->free;
    if (w->in_turn)
        y = contract_plus(&w->c, contract_times(&w->c, y, w->axis[0].classes), opjit_ir_index(f, class[0]));
    const ir_ref own[3] = { row[0], contract_plus(&w->c, row[1], opjit_ir_index(f, number)),
                            contract_plus(&w->c, contract_times(&w->c, y, w->pitch), x) };
    const ir_ref inside = ir_make2(f, IR_AND, IR_BOOL, less(w, all_y, positions_of(w, &w->axis[0], class[0])),
                                   less(w, x, positions_of(w, &w->axis[1], class[1])));
    const ir_ref value = windows_value(w, last, digits, at);
    const ir_ref nothing = opjit_ir_const(f, (ir_type)w->c.def.type, opjit_ir_window_nothing(w));
    opjit_ir_contract_store(&w->c, last, w->copy, ir_make3(f, IR_SELECT, IR_NONE, inside, value, nothing), own);
}

void opjit_ir_window_copy(window *w, block *list)
{
    ir_func *f = w->c.f;
    block blocks[WINDOW_DIGITS], of_c, of_y, *inner = blocks;
    ir_ref digits[WINDOW_DIGITS], row[2] = { 0, opjit_ir_index(f, 0) };
    int64_t class[WINDOW_AXES];
    if (w->gathers)
        return;
    row[0] = digits[0] = contract_loop(&w->c, list, w->here_channels, &of_c);
    list = &of_c;
    const bool varying = window_varies(w) && w->bytes == 0;
    if (window_varies(w) && !(varying && opjit_ir_window_fills_around(w))) {
        block of_s;
        const ir_ref s = contract_loop(&w->c, list, opjit_ir_index(f, w->slots), &of_s);
        fill_rest(w, &of_s, (ir_ref[]){ row[0], s }, varying ? 0 : w->lines * (w->in_turn ? w->line : w->pitch));
    }
    if (w->digits[0].axis < 0)
        digits[0] = contract_plus(&w->c, w->first_channel, digits[0]);
    for (uint32_t d = 1; d < w->digit_count; d++) {
        if (w->digits[d].axis >= 0)
            continue;
        digits[d] = contract_loop(&w->c, list, opjit_ir_index(f, w->digits[d].size), inner);
        list = inner++;
        row[1] = contract_plus(&w->c, contract_times(&w->c, row[1], w->digits[d].size), digits[d]);
    }
    if (w->flat) {
        copy_flat(w, list, digits, row);
        return;
    }
    const ir_ref lines = opjit_ir_index(f, w->lines);
    const ir_ref first = contract_times(&w->c, w->first_position, window_step(&w->axis[0]));
    if (varying) {
        opjit_ir_window_copy_varying(w, list, digits, first, row);
        return;
    }
    const bool lone = w->axis[1].dimension < 0; /* lines are a vector's lanes: each store has a loop of its own */
    ir_ref y = lone ? 0 : contract_loop(&w->c, list, lines, &of_y), all_y = 0;
    if (!lone)
        all_y = contract_plus(&w->c, first, y);
    const bool one = w->axis[0].classes * w->axis[1].classes == 1;
    if (!lone && !window_varies(w) && !one) /* else conditions on lines become bounds of the loop over them */
        all_y = opjit_ir_block_let(f, &of_y, all_y);
    for (class[0] = 0; class[0] < w->axis[0].classes; class[0]++)
        for (class[1] = 0; class[1] < w->axis[1].classes; class[1]++) {
            if (lone) {
                y = contract_loop(&w->c, list, lines, &of_y);
                all_y = contract_plus(&w->c, first, y);
            }
            copy_row(w, &of_y, class, digits, y, all_y, row);
        }
}

/* --- the other factor --------------------------------------------------------------------------------------------- */

enum {
    SET_BYTES = 4096,     /* from one line of a set of the first cache to the next, */
    NEAR_SET_BYTES = 1024 /* and to lines of few other sets */
};

void opjit_ir_window_find_direct(window *w, ir_ref factor)
{
    ir_func *f = w->c.f;
    while (ir_at(f, factor)->op == IR_CAST)
        factor = ir_operand(f, factor, 0);
    const ir_node n = *ir_at(f, factor);
    if (n.op != IR_LOAD || w->c.r->sources[opjit_ir_root(f, n.ref)].def != 0)
        return;
    const ir_tensor t = f->tensors[n.ref];
    ir_affine form = { 0 };
    for (uint32_t d = 0; d < t.rank; d++)
        if (!opjit_ir_affine_add(f, &form, ir_operand(f, factor, d), (int64_t)t.strides[d]))
            return;
    const ir_ref var = w->rows < 0 ? 0 : opjit_ir_coordinate(f, w->c.statement, (uint32_t)w->rows);
    const int64_t by_row = var == 0 ? 0 : opjit_ir_affine_take(f, &form, var);
    int64_t by_k = -1;
    for (uint32_t d = w->digit_count; d-- > 0;) {
        const int64_t by = opjit_ir_affine_take(f, &form, w->digits[d].probe);
        if (w->digits[d].size == 1)
            continue;
        if (by < 0 || by % w->digits[d].divide != 0 || (by_k >= 0 && by != by_k * w->digits[d].divide))
            return;
        by_k = by / w->digits[d].divide;
    }
    if (form.count != 0 || form.constant < 0 || by_row < 0 || by_k < 0)
        return;
    ir_tensor view = { .role = IR_VIEW, .type = t.type, .rank = 2, .align = opjit_ir_type_size(t.type), .of = n.ref };
    view.offset = form.constant;
    view.sizes[0] = (uint64_t)(w->group * w->groups);
    view.sizes[1] = (uint64_t)w->c.length;
    view.strides[0] = view.sizes[0] == 1 ? 0 : (uint64_t)by_row;
    view.strides[1] = view.sizes[1] == 1 ? 0 : (uint64_t)by_k;
    if (!opjit_ir_span_bytes(&view, &view.bytes))
        return;
    w->direct = opjit_ir_tensor(f, &view);
    const int64_t apart = by_row * opjit_ir_type_size(t.type);
    w->lies_well = t.type == (ir_type)w->c.def.type && by_k == 1 && w->group % w->c.side[CONTRACT_ROWS].block == 0 &&
                   apart % (w->c.length <= w->c.def.block ? SET_BYTES : NEAR_SET_BYTES) != 0;
}

/* The factor with another load in place of its own. */
static ir_ref widened(const window *w, ir_ref factor, ir_ref load)
{
    ir_func *f = w->c.f;
    if (ir_at(f, factor)->op != IR_CAST)
        return load;
    return ir_make1(f, IR_CAST, (ir_type)ir_at(f, factor)->type, widened(w, ir_operand(f, factor, 0), load));
}

/* Loops over all digits of the block of k; *k: the value in it. */
static block *open_digits(window *w, block *list, block *inner, ir_ref *digits, ir_ref *k)
{
    ir_func *f = w->c.f;
    *k = opjit_ir_index(f, 0);
    for (uint32_t d = 0; d < w->digit_count; d++, list = inner++) {
        const bool top = d == 0 && w->digits[d].axis < 0;
        digits[d] = contract_loop(&w->c, list, top ? w->here_channels : opjit_ir_index(f, w->digits[d].size), inner);
        *k = contract_plus(&w->c, *k, contract_times(&w->c, digits[d], w->digits[d].divide));
    }
    return list;
}

ir_ref opjit_ir_window_direct(window *w, ir_ref row, ir_ref k)
{
    ir_func *f = w->c.f;
    const ir_ref first = contract_times(&w->c, w->of_group, w->group);
    const ir_ref at[2] = { contract_plus(&w->c, first, row), contract_plus(&w->c, w->c.first_k, k) };
    return widened(w, w->values[1 - w->factor], opjit_ir_load(f, w->direct, at));
}

ir_ref opjit_ir_window_weight(window *w, block *list, const ir_ref *digits, ir_ref row)
{
    ir_ref at[9];
    memcpy(at, w->c.at, sizeof at);
    for (uint32_t a = 0; a < WINDOW_AXES; a++)
        if (w->axis[a].dimension >= 0)
            at[w->axis[a].dimension] = opjit_ir_index(w->c.f, 0);
    return opjit_ir_window_factor(w, list, 1 - w->factor, digits, row, at);
}

void opjit_ir_window_weights(window *w, block *list)
{
    ir_func *f = w->c.f;
    const contract_side *rows = &w->c.side[CONTRACT_ROWS];
    block of_i, blocks[WINDOW_DIGITS];
    ir_ref digits[WINDOW_DIGITS], own[2];
    if (w->weights == 0)
        return;
    const ir_ref i = contract_loop(&w->c, list, opjit_ir_index(f, rows->block), &of_i);
    ir_ref row = contract_plus(&w->c, w->first_row, i);
    if (w->group % rows->block != 0)
        row = opjit_ir_block_let(f, &of_i, ir_make2(f, IR_IMIN, IR_INDEX, row, opjit_ir_index(f, w->group - 1)));
    own[0] = i;
    if (w->direct != 0) {
        own[1] = contract_loop(&w->c, &of_i, w->c.here_k, blocks);
        opjit_ir_contract_store(&w->c, blocks, w->weights, opjit_ir_window_direct(w, row, own[1]), own);
        return;
    }
    block *last = open_digits(w, &of_i, blocks, digits, &own[1]);
    if (w->digits[0].axis < 0)
        digits[0] = contract_plus(&w->c, w->first_channel, digits[0]);
    opjit_ir_contract_store(&w->c, last, w->weights, opjit_ir_window_weight(w, last, digits, row), own);
}

/* --- taps side by side -------------------------------------------------------------------------------------------- */

void opjit_ir_window_place(const window *w, const ir_ref *digits, ir_ref *at)
{
    ir_func *f = w->c.f;
    at[0] = w->digits[0].axis < 0 ? digits[0] : opjit_ir_index(f, 0);
    at[1] = at[2] = opjit_ir_index(f, 0);
    for (uint32_t a = 0; a < WINDOW_AXES; a++) {
        const window_axis *x = &w->axis[a];
        at[1] = contract_times(&w->c, at[1], x->classes);
        if (x->digit < 0)
            continue;
        const ir_ref tap = digits[x->digit];
        if (a == 0 && w->in_turn) {
            at[2] = contract_times(&w->c, tap, w->pitch);
            continue;
        }
        if (x->whole) {
            at[2] = contract_plus(&w->c, at[2], contract_times(&w->c, tap, a == 0 ? w->pitch : 1));
            continue;
        }
        if (x->apart) {
            at[1] = contract_plus(&w->c, at[1], tap);
            continue;
        }
        if (x->classes > 1)
            at[1] = contract_plus(&w->c, at[1], quotient(w, IR_IMOD, tap, x->period));
        const ir_ref apart = contract_times(&w->c, quotient(w, IR_IDIV, tap, x->period), x->step);
        at[2] = contract_plus(&w->c, at[2], contract_times(&w->c, apart, a == 0 ? w->pitch : 1));
    }
    for (uint32_t d = 1; d < w->digit_count; d++)
        if (w->digits[d].axis < 0)
            at[1] = contract_plus(&w->c, contract_times(&w->c, at[1], w->digits[d].size), digits[d]);
}

/* The tap of position p of the block, from where it lies; behind the last line the last one again. */
static ir_ref tap_at(window *w, block *list, const ir_ref *digits, ir_ref p)
{
    ir_func *f = w->c.f;
    ir_ref at[9];
    memcpy(at, w->c.at, sizeof at);
    const ir_ref y = contract_plus(&w->c, w->first_position, quotient(w, IR_IDIV, p, w->pitch));
    at[w->axis[0].dimension] =
        opjit_ir_block_let(f, list, ir_make2(f, IR_IMIN, IR_INDEX, y, opjit_ir_index(f, w->axis[0].size - 1)));
    if (w->axis[1].dimension >= 0)
        at[w->axis[1].dimension] = opjit_ir_block_let(f, list, quotient(w, IR_IMOD, p, w->pitch));
    return opjit_ir_share(f, list, windows_value(w, list, digits, at));
}

void opjit_ir_window_parts(window *w, block *list)
{
    ir_func *f = w->c.f;
    block blocks[WINDOW_DIGITS], of_y, of_x, *inner = blocks, *last = &of_y;
    ir_ref digits[WINDOW_DIGITS] = { opjit_ir_index(f, 0) }, own[2] = { opjit_ir_index(f, 0), 0 }, at[9];
    if (w->parts == 0)
        return;
    for (uint32_t d = w->digits[0].axis < 0 ? 1 : 0; d < w->digit_count; d++, list = inner++) {
        digits[d] = contract_loop(&w->c, list, opjit_ir_index(f, w->digits[d].size), inner);
        own[0] = contract_plus(&w->c, own[0], contract_times(&w->c, digits[d], w->digits[d].divide));
    }
    memcpy(at, w->c.at, sizeof at);
    /* Of lines whose size varies those of the block; what tiles read behind these no result depends on. */
    const int64_t positions = (int64_t)f->tensors[w->parts].sizes[1];
    const int64_t lines = w->axis[1].varies ? w->block : positions / w->pitch;
    const ir_ref y = contract_loop(&w->c, list, opjit_ir_index(f, lines), &of_y);
    own[1] = contract_times(&w->c, y, w->pitch);
    at[w->axis[0].dimension] = contract_plus(&w->c, w->first_position, y);
    if (w->axis[1].dimension >= 0) {
        const ir_ref x = at[w->axis[1].dimension] = contract_loop(&w->c, &of_y, opjit_ir_index(f, w->pitch), &of_x);
        own[1] = contract_plus(&w->c, own[1], x);
        last = &of_x;
    }
    const ir_ref takes = opjit_ir_window_factor(w, last, WINDOW_CONDITION, digits, opjit_ir_index(f, 0), at);
    opjit_ir_contract_store(
        &w->c, last, w->parts,
        ir_make3(f, IR_SELECT, IR_NONE, takes, opjit_ir_const(f, IR_U8, 1), opjit_ir_const(f, IR_U8, 0)), own);
    if (lines * w->pitch == positions)
        return;
    own[1] = contract_loop_from(&w->c, list, opjit_ir_index(f, lines * w->pitch), opjit_ir_index(f, positions), &of_x);
    opjit_ir_contract_store(&w->c, &of_x, w->parts, opjit_ir_const(f, IR_U8, 0), own);
}

/* Which steps of the tile take part; k: of the block, digits: its own. */
static void put_parts(window *w, block *list, const ir_ref *digits, ir_ref k, ir_ref first)
{
    ir_func *f = w->c.f;
    block of_j;
    ir_ref from[2] = { opjit_ir_index(f, 0), first };
    for (uint32_t d = w->digits[0].axis < 0 ? 1 : 0; d < w->digit_count; d++)
        from[0] = contract_plus(&w->c, from[0], contract_times(&w->c, digits[d], w->digits[d].divide));
    const ir_ref j = contract_loop(&w->c, list, opjit_ir_index(f, w->c.side[CONTRACT_COLUMNS].tile), &of_j);
    from[1] = contract_plus(&w->c, first, j);
    opjit_ir_contract_store(&w->c, &of_j, w->part, opjit_ir_load(f, w->parts, from), (ir_ref[]){ k, j });
}

void opjit_ir_window_panel(window *w, block *list, ir_ref first)
{
    ir_func *f = w->c.f;
    block blocks[WINDOW_DIGITS], of_j;
    ir_ref digits[WINDOW_DIGITS], own[2], from[3];
    block *last = open_digits(w, list, blocks, digits, &own[0]);
    if (w->gathers) {
        own[1] = contract_loop(&w->c, last, opjit_ir_index(f, w->c.side[CONTRACT_COLUMNS].tile), &of_j);
        if (w->digits[0].axis < 0)
            digits[0] = contract_plus(&w->c, w->first_channel, digits[0]);
        const ir_ref value = tap_at(w, &of_j, digits, contract_plus(&w->c, first, own[1]));
        opjit_ir_contract_store(&w->c, &of_j, w->panel, value, own);
        return;
    }
    if (w->parts != 0)
        put_parts(w, last, digits, own[0], first);
    opjit_ir_window_place(w, digits, from);
    from[2] = opjit_ir_block_let(f, last, contract_plus(&w->c, first, from[2]));
    own[1] = contract_loop(&w->c, last, opjit_ir_index(f, w->c.side[CONTRACT_COLUMNS].tile), &of_j);
    from[2] = window_position(w, from[2], own[1]);
    opjit_ir_contract_store(&w->c, &of_j, w->panel, opjit_ir_load(f, w->copy, from), own);
}
