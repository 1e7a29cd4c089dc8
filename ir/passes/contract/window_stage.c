/* SPDX-License-Identifier: Apache-2.0 */
/* window_stage.c - the stage of a sum of products that is read through windows.  Part of place.
 *
 *     for each block of rows of positions, and of rows of each group, in parallel
 *         for each block of k
 *             copy what it reads; for each tile of positions: put its taps side by side, or read them there
 *                 for each tile of rows: tile = +0; for k, with the tile in registers: tile = fma(row, tap, tile)
 *                                        total = tile; after the first block of k total + tile
 *         store the results of the totals
 *
 * Positions of a block are counted with the gaps between lines of the copy, so that tiles go from one to the next. */
#include "ir/passes/contract/window.h"

enum {
    APART = 16,     /* elements behind a row of sums and of k: they are not all in one set of a cache */
    MOST_LOOPS = 31, /* beside the stage's own: rule V16; later passes cut some of them */
    MOST_LOOPS_OF_FORMS = 76, /* most of which these are, and are not cut */
    MOST_TAPS = 9,   /* whose steps a tile spells out, */
    FEW_TILES = 16   /* of rows, for which putting taps side by side would take too large a part of the time */
};

static uint32_t scratch_of_bytes(window *w, int64_t rows, int64_t columns)
{
    const uint32_t tensor = opjit_ir_contract_scratch(&w->c, 2, (int64_t[]){ rows, columns }, 0);
    ir_tensor *t = &w->c.f->tensors[tensor];
    t->type = IR_U8;
    t->bytes = (uint64_t)(rows * columns);
    return tensor;
}

static void declare_scratch(window *w)
{
    contraction *c = &w->c;
    const contract_side *rows = &c->side[CONTRACT_ROWS], *columns = &c->side[CONTRACT_COLUMNS];
    const int64_t k = w->channels * (w->digits[0].axis < 0 ? w->depth : c->length);
    if (w->by_channels) {
        opjit_ir_window_channels_declare(w);
        return;
    }
    if (!w->gathers && !w->plain)
        w->copy = opjit_ir_contract_scratch(c, 3, (int64_t[]){ w->channels, w->slots, w->plane }, 0);
    if (!w->pool && !w->lies_well && w->bytes == 0 && !w->by_rows)
        w->weights = opjit_ir_contract_scratch(c, 2, (int64_t[]){ rows->block, k }, APART);
    if (w->plain) {
        opjit_ir_window_declare_plain(w);
        return;
    }
    const bool often = w->bytes == 0 && !w->by_rows && !w->pool && window_is_read_often(w);
    if ((!w->bare || often) && !w->alone && !w->in_place)
        w->panel = opjit_ir_contract_scratch(c, 2, (int64_t[]){ k, columns->tile }, 0);
    if (w->values[WINDOW_CONDITION] != 0 && !w->parted) {
        const int64_t lines = (w->totals + w->pitch - 1) / w->pitch, some = w->block * w->pitch + columns->tile;
        const int64_t positions = w->axis[1].varies ? some : lines * w->pitch;
        w->parts = scratch_of_bytes(w, w->digits[0].axis < 0 ? w->depth : k, positions);
        w->part = scratch_of_bytes(w, k, columns->tile);
    }
    if (w->by_rows) {
        opjit_ir_window_rows_declare(w);
        return;
    }
    if (!w->alone && !w->lined)
        c->total = opjit_ir_contract_scratch(c, 2, (int64_t[]){ rows->block, w->totals }, APART);
    c->tile = opjit_ir_contract_scratch(c, 2, (int64_t[]){ rows->tile, columns->tile }, 0);
}

/* --- tiles -------------------------------------------------------------------------------------------------------- */

/* Whether tiles read taps where the copy has them, at one distance for all channels: nothing is put side by side. */
static bool reads_in_place(const window *w)
{
    const contract_side *rows = &w->c.side[CONTRACT_ROWS];
    return !w->bare && !w->alone && !w->gathers && w->bytes == 0 && (w->values[WINDOW_CONDITION] == 0 || w->parted) &&
           (w->slots == 1 || w->skips) && w->digits[0].axis < 0 && w->depth <= MOST_TAPS &&
           (w->by_rows || rows->block <= FEW_TILES * rows->tile);
}

/* Two loops over a whole tile, lanes innermost; at: row and position, of: where the tile's scratch has their sum. */
static void over_tile(window *w, block *list, ir_ref *at, ir_ref *of, block *out)
{
    const contract_side *rows = &w->c.side[CONTRACT_ROWS], *columns = &w->c.side[CONTRACT_COLUMNS];
    if (w->by_rows) {
        opjit_ir_contract_loops(&w->c, list, opjit_ir_index(w->c.f, columns->tile), opjit_ir_index(w->c.f, rows->tile),
                                of, out);
        at[0] = of[1];
        at[1] = of[0];
        return;
    }
    opjit_ir_contract_over_tile(&w->c, list, of, out);
    at[0] = of[0];
    at[1] = of[1];
}

/* The held loop: over k, or over channels, with loops over their taps in it.  *k: of the block; from: the place in the
 * copy. */
static block *open_steps(window *w, block *list, block *of_k, block *of_taps, ir_ref *digits, ir_ref *k, ir_ref *from)
{
    contraction *c = &w->c;
    ir_func *f = c->f;
    block *last = of_k;
    digits[0] = *k = contract_loop(c, list, w->in_place ? w->here_channels : c->here_k, of_k);
    if (!w->in_place)
        return last;
    *k = contract_times(c, *k, w->depth);
    for (uint32_t d = 1; d < w->digit_count; d++) {
        const int32_t axis = w->digits[d].axis;
        const bool some = (w->skips || w->parted) && axis >= 0;
        digits[d] = contract_loop(c, last, opjit_ir_index(f, some ? w->taps[axis] : w->digits[d].size), &of_taps[d]);
        digits[d] = some ? contract_plus(c, w->from_tap[axis], digits[d]) : digits[d];
        last = &of_taps[d];
        *k = contract_plus(c, *k, contract_times(c, digits[d], w->digits[d].divide));
    }
    opjit_ir_window_place(w, digits, from);
    return last;
}

/* Tile n of positions in row i and column j of the block, whose totals begin at place `to`. */
static void add_tile(window *w, block *list, ir_ref n, ir_ref i, ir_ref j, ir_ref to)
{
    contraction *c = &w->c;
    ir_func *f = c->f;
    const contract_side *rows = &c->side[CONTRACT_ROWS], *columns = &c->side[CONTRACT_COLUMNS];
    const ir_type type = (ir_type)c->def.type;
    const uint32_t totals = w->by_rows ? w->sums : c->total;
    ir_ref at[2], of[2], x[2], from[3], k, digits[WINDOW_DIGITS];
    block of_k, of_taps[WINDOW_DIGITS], inside;
    opjit_ir_contract_fill(c, list, c->tile, opjit_ir_index(f, (w->by_rows ? columns : rows)->tile),
                           opjit_ir_index(f, (w->by_rows ? rows : columns)->tile), 0);
    over_tile(w, open_steps(w, list, &of_k, of_taps, digits, &k, from), at, of, &inside);
    const ir_ref row = contract_plus(c, i, at[0]);
    const ir_ref column = window_position(w, j, at[1]);
    x[rows->factor] = w->by_rows     ? opjit_ir_window_rows_factor(w, i, k, at[0])
                      : w->bytes > 0 ? opjit_ir_window_row_word(w, row, k)
                      : w->lies_well ? opjit_ir_window_direct(w, contract_plus(c, w->first_row, row), k)
                                     : opjit_ir_load(f, w->weights, (ir_ref[]){ row, k });
    if (w->in_place)
        from[2] = contract_plus(c, from[2], column);
    x[columns->factor] = w->in_place     ? opjit_ir_load(f, w->copy, from)
                         : w->panel == 0 ? opjit_ir_load(f, w->copy, (ir_ref[]){ k, opjit_ir_index(f, 0), column })
                                         : opjit_ir_load(f, w->panel, (ir_ref[]){ k, at[1] });
    const ir_ref before = opjit_ir_load(f, c->tile, of);
    const ir_op words = w->halves ? IR_DOT2 : IR_DOT4_US;
    ir_ref sum = w->bytes > 0 ? ir_make3(f, words, IR_I32, before, x[columns->factor], x[rows->factor])
                              : ir_dot_step(f, type, x[0], x[1], before);
    if (w->parts != 0) {
        const ir_ref part = opjit_ir_load(f, w->part, (ir_ref[]){ k, at[1] });
        const ir_ref takes =
            ir_expr2(f, IR_NE, IR_BOOL, ir_expr1(f, IR_CAST, IR_U32, part), opjit_ir_const(f, IR_U32, 0));
        sum = ir_expr3(f, IR_SELECT, IR_NONE, takes, sum, before);
    }
    if (w->chooses)
        sum = ir_make3(f, IR_SELECT, IR_NONE, opjit_ir_window_takes_part(w, digits, n, at[1]), sum, before);
    opjit_ir_contract_store(c, &inside, c->tile, sum, of);
    f->nodes[of_k.parent].hold = !w->chooses;
    over_tile(w, list, at, of, &inside);
    const ir_ref first_of[2] = { w->by_rows ? to : i, w->by_rows ? i : to };
    const ir_ref place[2] = { contract_plus(c, first_of[0], of[0]), contract_plus(c, first_of[1], of[1]) };
    ir_ref total = opjit_ir_load(f, c->tile, of);
    if (w->lined) {
        const ir_ref first = contract_plus(c, contract_times(c, w->of_group, w->group), w->first_row);
        const ir_ref own_row = contract_plus(c, first, place[0]);
        c->in.refused = c->in.refused || !opjit_ir_contract_fits_tile(c, total, own_row, place[1], false);
        opjit_ir_contract_result(c, &inside, total, own_row, place[1]);
        return;
    }
    if (w->number != 0) {
        const ir_ref more = ir_expr2(f, IR_ADD, type, opjit_ir_load(f, totals, place), total);
        const ir_ref first = ir_expr2(f, IR_EQ, IR_BOOL, w->number, opjit_ir_index(f, 0));
        total = ir_expr3(f, IR_SELECT, IR_NONE, first, total, more);
    }
    opjit_ir_contract_store(c, &inside, totals, total, place);
}

/* A loop over tiles of positions; *n: which one.  Returns where the tile begins in the copy; *to: in the totals.  Where
 * sizes of axes vary it counts positions: how many tiles there are is a quotient that no sample tells from others. */
static ir_ref over_tiles(window *w, block *list, ir_ref count, block *out, ir_ref *n, ir_ref *to)
{
    contraction *c = &w->c;
    const int64_t tile = c->side[CONTRACT_COLUMNS].tile;
    *n = 0;
    if (window_varies(w) && w->by_rows && !w->joined)
        return opjit_ir_window_rows_lines(w, list, count, out, to);
    if (!window_varies(w)) {
        *n = contract_loop(c, list, count, out);
        *to = opjit_ir_block_let(c->f, out, contract_times(c, *n, tile));
        return w->by_rows ? opjit_ir_window_rows_place(w, out, *n) : *to;
    }
    *n = w->tile_line = contract_loop_in_steps(c, list, count, tile, out);
    *to = opjit_ir_block_let(c->f, out, *n);
    return w->by_rows ? opjit_ir_block_let(c->f, out, contract_times(c, *n, window_line_step(w))) : *to;
}

/* The tile in each form that it may have. */
static void add_forms(window *w, block *list, ir_ref n, ir_ref i, ir_ref j, ir_ref to)
{
    block of_form;
    if (w->skips)
        opjit_ir_window_skip(w, list, n);
    for (uint32_t v = 0; v < w->forms; v++)
        add_tile(w, opjit_ir_window_form(w, list, v, &of_form), n, i, j, to);
    w->chooses = w->parted;
    if (w->chooses)
        add_tile(w, opjit_ir_window_open_chosen(w, list, &of_form), n, i, j, to);
    w->chooses = false;
}

/* The tiles of line y of the block, of one line each. */
static void add_line(window *w, block *list, ir_ref y, ir_ref row_tiles)
{
    contraction *c = &w->c;
    ir_func *f = c->f;
    block of_n, of_m;
    const ir_ref n = contract_loop(c, list, opjit_ir_index(f, w->pieces), &of_n);
    const ir_ref x = opjit_ir_block_let(f, &of_n, contract_times(c, n, c->side[CONTRACT_COLUMNS].tile));
    const ir_ref j = opjit_ir_block_let(f, &of_n, contract_plus(c, contract_times(c, y, w->pitch), x));
    c->at[w->axis[0].dimension] = contract_plus(c, w->first_position, y);
    if (w->panel != 0)
        opjit_ir_window_panel(w, &of_n, j);
    const ir_ref m = contract_loop(c, &of_n, row_tiles, &of_m);
    const ir_ref i = opjit_ir_block_let(f, &of_m, contract_times(c, m, c->side[CONTRACT_ROWS].tile));
    add_tile(w, &of_m, n, i, j, x);
}

static void add_block(window *w, block *list, ir_ref row_tiles, ir_ref column_tiles)
{
    contraction *c = &w->c;
    ir_func *f = c->f;
    block of_n, of_m;
    ir_ref n, to;
    if (w->skips)
        opjit_ir_window_copy_inside(w, list);
    else
        opjit_ir_window_copy(w, list);
    if (w->parted) {
        opjit_ir_window_look_at_copy(w, list);
        opjit_ir_window_choose_way(w, list);
    }
    if (w->bytes == 0)
        opjit_ir_window_weights(w, list);
    if (w->by_rows && w->panel == 0) { /* what tiles of a row read of the kept factor stays in the first cache */
        const ir_ref m = contract_loop(c, list, row_tiles, &of_m);
        const ir_ref i = opjit_ir_block_let(f, &of_m, contract_times(c, m, c->side[CONTRACT_ROWS].tile));
        const ir_ref j = over_tiles(w, &of_m, column_tiles, &of_n, &n, &to);
        if (w->skips || w->parted)
            add_forms(w, &of_n, n, i, j, to);
        else
            add_tile(w, &of_n, n, i, j, to);
        return;
    }
    if (w->lined) {
        n = contract_loop(c, list, column_tiles, &of_n);
        add_line(w, &of_n, n, row_tiles);
        return;
    }
    const ir_ref j = over_tiles(w, list, column_tiles, &of_n, &n, &to);
    if (w->panel != 0)
        opjit_ir_window_panel(w, &of_n, j);
    opjit_ir_window_add_sums(w, &of_n, j);
    const ir_ref m = contract_loop(c, &of_n, row_tiles, &of_m);
    const ir_ref i = opjit_ir_block_let(f, &of_m, contract_times(c, m, c->side[CONTRACT_ROWS].tile));
    add_tile(w, &of_m, n, i, j, to);
}

/* --- blocks ------------------------------------------------------------------------------------------------------- */

/* Digit number p / *below of the stage's blocks, of `size` values; *below is that of the next one. */
static ir_ref next_digit(const window *w, ir_ref p, int64_t *below, int64_t size)
{
    ir_func *f = w->c.f;
    if (size == 1)
        return opjit_ir_index(f, 0);
    *below /= size;
    return ir_make2(f, IR_IMOD, IR_INDEX, ir_make2(f, IR_IDIV, IR_INDEX, p, opjit_ir_index(f, *below)),
                    opjit_ir_index(f, size));
}

/* What is left of `size`, which varies, from `first` on, at most `most`. */
static ir_ref rest_of(window *w, block *list, int64_t size, bool varies, ir_ref first, int64_t most)
{
    ir_func *f = w->c.f;
    const ir_ref whole = opjit_ir_index(f, most);
    if (size % most == 0 && !varies)
        return whole;
    const ir_ref rest = ir_make2(f, IR_ISUB, IR_INDEX, opjit_ir_index(f, size), first);
    return opjit_ir_block_let(f, list, ir_make2(f, IR_IMIN, IR_INDEX, whole, rest));
}

/* Which block iteration p makes; returns how many rows of positions. */
static ir_ref set_block(window *w, block *list, ir_ref p, int64_t iterations)
{
    contraction *c = &w->c;
    ir_func *f = c->f;
    contract_side *rows = &c->side[CONTRACT_ROWS];
    int64_t below = iterations;
    for (uint32_t d = 0; d < c->out.rank; d++) {
        const bool own =
            (int32_t)d == w->rows || (int32_t)d == w->axis[0].dimension || (int32_t)d == w->axis[1].dimension;
        c->at[d] = own ? opjit_ir_index(f, 0) : next_digit(w, p, &below, (int64_t)c->out.sizes[d]);
    }
    w->of_group = opjit_ir_block_let(f, list, next_digit(w, p, &below, w->groups));
    w->first_row = opjit_ir_block_let(f, list, contract_times(c, next_digit(w, p, &below, rows->blocks), rows->block));
    w->first_position = opjit_ir_block_let(f, list, contract_times(c, next_digit(w, p, &below, w->blocks), w->block));
    rows->here = rest_of(w, list, w->group, false, w->first_row, rows->block);
    return rest_of(w, list, w->axis[0].size, w->axis[0].varies, w->first_position, w->block);
}

static ir_ref tiles_of(window *w, block *list, ir_ref count, int64_t tile)
{
    const ir_ref up = contract_plus(&w->c, count, opjit_ir_index(w->c.f, tile - 1));
    return opjit_ir_block_let(w->c.f, list, ir_make2(w->c.f, IR_IDIV, IR_INDEX, up, opjit_ir_index(w->c.f, tile)));
}

/* Every block of k. */
static void add_sums(window *w, block *list, ir_ref lines)
{
    contraction *c = &w->c;
    ir_func *f = c->f;
    const contract_side *rows = &c->side[CONTRACT_ROWS], *columns = &c->side[CONTRACT_COLUMNS];
    const ir_ref row_tiles = tiles_of(w, list, rows->here, rows->tile);
    const ir_ref gaps = opjit_ir_index(f, w->axis[1].size - w->pitch);
    const ir_ref column_tiles =
        w->lined || (w->by_rows && !w->joined && window_varies(w)) ? lines
        : w->by_rows && !w->joined
            ? opjit_ir_block_let(f, list, contract_times(c, lines, w->pieces))
            : tiles_of(w, list, contract_plus(c, contract_times(c, lines, w->pitch), gaps),
                       window_varies(w) ? 1 : columns->tile);
    opjit_ir_window_start_sums(w, list);
    opjit_ir_window_clear_copy(w, list);
    c->first_k = w->first_channel = opjit_ir_index(f, 0);
    w->here_channels = opjit_ir_index(f, w->channels);
    c->here_k = opjit_ir_index(f, c->length < w->most ? c->length : w->most);
    if (c->length <= w->most) {
        add_block(w, list, row_tiles, column_tiles);
        return;
    }
    block of_q;
    const int64_t all = w->digits[0].size;
    const ir_ref q = contract_loop(c, list, opjit_ir_index(f, (all + w->channels - 1) / w->channels), &of_q);
    w->number = q;
    w->first_channel = opjit_ir_block_let(f, &of_q, contract_times(c, q, w->channels));
    w->here_channels = rest_of(w, &of_q, all, false, w->first_channel, w->channels);
    c->first_k = opjit_ir_block_let(f, &of_q, contract_times(c, q, w->channels * w->depth));
    c->here_k = opjit_ir_block_let(f, &of_q, contract_times(c, w->here_channels, w->depth));
    add_block(w, &of_q, row_tiles, column_tiles);
}

/* Stores the results of the block. */
static void store_results(window *w, block *list, ir_ref lines)
{
    contraction *c = &w->c;
    ir_func *f = c->f;
    block of_i, of_y, of_x, *last = &of_y;
    const ir_ref i = contract_loop(c, list, c->side[CONTRACT_ROWS].here, &of_i);
    window_zeros zeros;
    opjit_ir_window_row_zeros(w, &of_i, i, &zeros);
    const ir_ref all = opjit_ir_index(f, w->block * w->axis[1].size);
    const ir_ref y = contract_loop(c, &of_i, w->joins ? all : lines, &of_y);
    ir_ref from = contract_times(c, y, w->apart), own = contract_plus(c, w->first_position, y);
    if (w->joins) {
        from = y;
        own = opjit_ir_window_set_position(w, y, c->at);
    } else if (w->axis[1].dimension >= 0) {
        c->at[w->axis[0].dimension] = own;
        own = contract_loop(c, &of_y, opjit_ir_index(f, w->axis[1].size), &of_x);
        from = contract_plus(c, from, own);
        last = &of_x;
    }
    const ir_ref row = contract_plus(c, w->first_row, i), at[2] = { i, from };
    const ir_ref first = contract_times(c, w->of_group, w->group);
    const ir_ref sum = opjit_ir_window_less_zeros(w, opjit_ir_load(f, c->total, at), &zeros, from);
    opjit_ir_contract_result(c, last, sum, contract_plus(c, first, row), own);
    c->in.refused = c->in.refused || (w->joins && !opjit_ir_window_is_in_order(w, last, y));
}

bool opjit_ir_window_write(window *w, block *stages)
{
    contraction *c = &w->c;
    ir_func *f = c->f;
    const int64_t iterations = c->batch * w->groups * c->side[CONTRACT_ROWS].blocks * w->blocks;
    block made = { 0 }; /* which nobody runs where the sum is refused in the end */
    c->in = (inliner){ .f = f, .sources = c->r->sources, .private_views = c->r->private_views };
    if (w->bytes > 0 && !opjit_ir_window_pack_rows(w, &made))
        return false;
    w->in_place = reads_in_place(w);
    if (w->by_rows)
        opjit_ir_window_rows_share(w, &made);
    declare_scratch(w);
    const ir_ref stage = opjit_ir_stage(f, opjit_ir_index(f, 0), opjit_ir_index(f, iterations), 1);
    if (f->failed)
        return false;
    block body = { .parent = stage };
    const ir_ref lines = set_block(w, &body, ir_at(f, stage)->ref, iterations);
    if (w->by_channels) {
        opjit_ir_window_channels(w, &body);
        store_results(w, &body, lines);
    } else if (w->alone) {
        opjit_ir_window_alone(w, &body, lines);
    } else if (w->plain) {
        opjit_ir_window_plain(w, &body);
        if (w->later)
            store_results(w, &body, lines);
    } else {
        opjit_ir_window_parts(w, &body);
        opjit_ir_window_set_phase(w, &body);
        add_sums(w, &body, lines);
        if (w->by_rows)
            opjit_ir_window_rows_transpose(w, &body);
        if (!w->lined)
            store_results(w, &body, lines);
    }
    const uint32_t most = w->skips || w->parted || w->plain || w->by_channels ? MOST_LOOPS_OF_FORMS : MOST_LOOPS;
    if (c->in.refused || f->failed || opjit_ir_count_for(f, ir_at(f, stage)->body) > most)
        return false;
    opjit_ir_block_add(f, &made, stage);
    opjit_ir_block_move(f, &made, stages);
    if (c->r->count > 1)
        f->tensors[c->def.ref].role = IR_VALUE;
    if ((w->plain || w->joins) && w->axis[1].dimension >= 0)
        c->r->sources[ir_at(f, c->r->members[c->r->count - 1].statement)->ref].joined = w->axis[1].dimension;
    return true;
}
