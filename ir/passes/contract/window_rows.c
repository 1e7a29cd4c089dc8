/* SPDX-License-Identifier: Apache-2.0 */
/* window_rows.c - sums of products that are read through windows, in vectors of rows (output channels): the
 * other factor is constants, of which a copy is kept whose lanes are rows, and a tile's positions, which are a line or
 * an equal part of one, read one element of the windows' copy each.  So short lines waste no lanes.  Part of place.
 *
 * The totals of a block are [positions, rows], and are transposed when all blocks of k are done: what follows is the
 * same as where lanes are positions. */
#include "ir/passes/contract/window.h"

enum {
    LEAST_ROWS = 32,          /* fewer make no whole vectors */
    MOST_BLOCK = 256,         /* rows */
    MOST_BYTES = 8 << 20,     /* of scratch */
    PARTS = 4,                /* totals may take one of so many parts of the second cache */
    MOST_POSITIONS = 14,      /* of a tile: with two vectors of rows as many sums as registers hold, */
    MOST_POSITIONS_OF_16 = 6, /* of which there may be 16 */
    TILE_VECTORS = 2,
    WIDE_VECTORS = 4,         /* of a tile of half as many positions, which loads fewer elements */
    MOST_TRIED = 32, /* numbers of lines of a block */
    LANES = 16,      /* positions that are transposed at a time */
    CHOSEN = 2,      /* so much longer steps take that choose whether they take part */
    MOST_LINES = 16,   /* of a block, where an axis varies, */
    MOST_POINTS = 256, /* or positions, where a line has one */
};

/* Whether lines of positions follow each other in the copy at one distance, with nothing between them: they are one. */
static bool is_one_line(const window *w)
{
    return w->axis[1].dimension < 0 || (w->pitch == w->axis[1].size && !w->axis[0].whole);
}

/* Whether tiles may go from one line to the next, over what lies between them. */
static bool may_join(const window *w)
{
    return !w->axis[0].whole && !w->axis[1].whole && !w->may_skip && !w->parted;
}

/* Axes with a stride and no dilation have no planes for remainders: elements are read one by one, and may lie apart.
 * So there may be any number of remainders.  false: there are too many, with a dilation. */
static bool set_whole(window *w)
{
    for (uint32_t a = 0; a < WINDOW_AXES; a++) {
        window_axis *x = &w->axis[a];
        x->whole = x->stride > 1 && x->taps > 1 && x->dilation == 1;
        if (x->stride > 1 && x->taps > 1 && !x->whole && w->gathers)
            return false;
        if (!x->whole && !w->gathers)
            continue;
        x->classes = 1;
        x->reach = (x->taps - 1) * x->dilation;
        if (a == 1)
            w->pitch = (x->whole ? (x->size - 1) * x->stride + x->taps : x->size + x->reach) + x->uneven;
    }
    w->gathers = false;
    w->slots = w->free * w->axis[0].classes * w->axis[1].classes;
    return true;
}

/* Tiles of positions, all lines of the block together. */
static int64_t tiles_of(const window *w)
{
    return w->joined ? w->pieces : w->block * w->pieces;
}

/* So many positions in equal tiles, with those that are for nothing. */
static int64_t in_tiles(int64_t positions, int64_t most)
{
    const int64_t pieces = contract_parts(positions, most);
    return pieces * contract_parts(positions, pieces);
}

/* A line, or all lines, in equal tiles, and the copy that these read. */
static void set_lines(window *w, int64_t lines, int64_t most)
{
    contract_side *positions = &w->c.side[CONTRACT_COLUMNS];
    w->blocks = contract_parts(w->axis[0].size, lines);
    w->block = contract_parts(w->axis[0].size, w->blocks);
    w->blocks = contract_parts(w->axis[0].size, w->block);
    const int64_t size = w->axis[1].size, all = (w->block - 1) * w->pitch + size;
    w->joined = is_one_line(w) || (may_join(w) && in_tiles(all, most) < w->block * in_tiles(size, most));
    const int64_t line = w->joined ? all : size;
    w->pieces = contract_parts(line, most);
    positions->tile = contract_parts(line, w->pieces);
    w->apart = w->joined ? w->pitch : w->pieces * positions->tile;
    w->flat = w->bare && w->of_memory && w->axis[0].stride == 1 && w->axis[1].stride == 1 &&
              w->axis[1].dimension >= 0 && w->axis[0].size % w->block == 0;
    const int64_t last = w->joined ? 0 : (w->block - 1) * window_step(&w->axis[0]) * w->pitch;
    const int64_t length = (w->pieces * positions->tile - 1) * window_line_step(w) + 1;
    w->plane = last + length + w->axis[0].reach * w->pitch + w->axis[1].reach;
    if (!w->flat)
        w->plane = contract_parts(w->plane, w->pitch) * w->pitch;
    w->lines = w->plane / w->pitch;
}

/* Likewise where sizes of axes vary: tiles of a line have the room of one more behind it, so that no other number
 * follows from the sizes by rounding. */
static void set_varying_lines(window *w, int64_t most)
{
    contract_side *positions = &w->c.side[CONTRACT_COLUMNS];
    const window_axis *y = &w->axis[0], *x = &w->axis[1];
    w->joined = x->dimension < 0;
    const int64_t line = w->joined ? w->block : x->size;
    w->pieces = contract_parts(line, most);
    positions->tile = w->joined || x->varies ? most : contract_parts(line, w->pieces);
    w->apart = w->joined ? 1 : x->size + positions->tile;
    w->flat = false;
    w->lines = (w->block - 1) * window_step(y) + 1 + y->reach;
    w->plane = w->lines * w->pitch + positions->tile * window_line_step(w);
}

/* As opjit_ir_window_cost, with what is put side by side and what is transposed. */
static double cost_by_rows(const window *w)
{
    enum { COPIED = 12, SIDE_BY_SIDE = 48, TRANSPOSED = 24 };
    const contract_side *rows = &w->c.side[CONTRACT_ROWS];
    const double taps = (double)w->depth, tiles = (double)tiles_of(w);
    const double positions = tiles * (double)w->c.side[CONTRACT_COLUMNS].tile;
    const double plane = w->may_skip ? opjit_ir_window_inside(w) : (double)w->plane;
    const double copied = (double)w->slots * plane * COPIED;
    const double beside = w->bare || w->slots == 1 || w->may_skip ? 0 : tiles * taps * SIDE_BY_SIDE;
    const double transposed = positions * (double)rows->block * TRANSPOSED * taps / (double)w->c.length;
    const double steps = positions * (double)rows->block * taps * (w->skips || w->parted ? w->steps : 1);
    return (double)(w->blocks * rows->blocks) * (steps + copied + beside + transposed);
}

static double cost_of_threads(const window *w)
{
    return opjit_ir_window_for_threads(w, cost_by_rows(w));
}

/* Lines of a block: at most those whose totals fit, and of up to half as many the best. */
static void choose_lines(window *w, int64_t fit, int64_t most)
{
    fit = window_lines(w, fit);
    set_lines(w, fit, most);
    window best = *w;
    for (int64_t lines = fit - 1; lines >= fit / 2 && lines > 0 && lines > fit - MOST_TRIED; lines--) {
        set_lines(w, lines, most);
        if (cost_of_threads(w) < cost_of_threads(&best))
            best = *w;
    }
    *w = best;
}

static void set_rows(window *w, int64_t blocks)
{
    contract_side *rows = &w->c.side[CONTRACT_ROWS];
    rows->block = contract_parts(contract_parts(w->group, rows->tile), blocks) * rows->tile;
    rows->blocks = contract_parts(w->group, rows->block);
}

static void choose_sizes_of(window *w, const ir_tiles *given, int64_t lanes, const rt_target *target, int64_t vectors)
{
    contract_side *rows = &w->c.side[CONTRACT_ROWS];
    const int64_t part = (int64_t)target->l2 / PARTS / opjit_ir_type_size((ir_type)w->c.def.type);
    const bool few = rt_target_has_16_vectors(target);
    const int64_t most =
        given != NULL ? given->rows : (few ? MOST_POSITIONS_OF_16 : MOST_POSITIONS) * TILE_VECTORS / vectors;
    rows->size = w->group;
    rows->tile = given != NULL ? given->columns : vectors * lanes;
    const int64_t wanted = (given != NULL ? given->block_rows : MOST_BLOCK) / rows->tile;
    set_rows(w, contract_parts(contract_parts(w->group, rows->tile), wanted > 0 ? wanted : 1));
    if (given != NULL) {
        set_lines(w, window_lines(w, given->block_columns / w->pitch), most);
        return;
    }
    if (window_varies(w)) {
        set_varying_lines(w, most);
        return;
    }
    window other = *w;
    const int64_t line = w->may_skip ? w->axis[1].size : w->pitch;
    choose_lines(w, part / rows->block / line, most);
    set_rows(&other, rows->blocks + 1);
    choose_lines(&other, part / other.c.side[CONTRACT_ROWS].block / line, most);
    if (cost_of_threads(&other) < cost_of_threads(w))
        *w = other;
}

/* Whether other tiles would choose which steps take part, so that few rows are worth vectors, too. */
static bool may_choose(const window *w)
{
    return w->values[WINDOW_CONDITION] != 0;
}

static bool has_enough_rows(const window *w, int64_t lanes)
{
    return may_choose(w) ? w->group > lanes / 2 : w->group >= LEAST_ROWS;
}

/* With tiles of two vectors of rows, or of four where these are no more work. */
static void choose_sizes(window *w, const ir_tiles *given, int64_t lanes, const rt_target *target)
{
    window wide = *w;
    if (given == NULL && may_choose(w) && w->group <= lanes) {
        choose_sizes_of(w, given, lanes, target, 1);
        return;
    }
    choose_sizes_of(w, given, lanes, target, TILE_VECTORS);
    if (given != NULL || rt_target_has_16_vectors(target))
        return;
    choose_sizes_of(&wide, given, lanes, target, WIDE_VECTORS);
    if (cost_of_threads(&wide) <= cost_of_threads(w))
        *w = wide;
}

/* Whether the rows' factor is the same for all results of a row: not so that of a transposed convolution's phases. */
static bool is_of_rows(const window *w)
{
    for (uint32_t d = 0; d < w->c.out.rank; d++)
        if ((int32_t)d != w->rows && opjit_ir_window_moves(w, w->values[1 - w->factor], (int32_t)d))
            return false;
    return true;
}

/* Of the copy, and of totals before and after they are transposed. */
static double scratch_bytes(const window *w)
{
    const double totals = (double)(tiles_of(w) * w->c.side[CONTRACT_COLUMNS].tile * w->c.side[CONTRACT_ROWS].block);
    const double copied = (double)w->channels * (double)w->slots * (double)w->plane;
    return (copied + 2 * totals) * (double)opjit_ir_type_size((ir_type)w->c.def.type);
}

/* Where sizes of axes vary: the form that is right where they are usual ones, if lanes are rows there, with lines whose
 * number follows from no size. */
static bool choose_varying(window *w, int64_t lanes, const rt_target *target)
{
    window usual = opjit_ir_window_usual(w);
    usual.by_rows = false;
    if (!opjit_ir_window_choose_sizes(&usual, NULL, lanes, target) ||
        !opjit_ir_window_by_rows(&usual, NULL, lanes, target))
        return false;
    const int64_t most = w->axis[1].dimension < 0 ? MOST_POINTS : MOST_LINES;
    const int64_t lines = usual.block < most ? usual.block : most;
    w->block = w->axis[0].varies ? window_varying_lines(&w->axis[0], lines) : lines;
    w->blocks = contract_parts(w->axis[0].size, w->block);
    choose_sizes_of(w, NULL, lanes, target, usual.c.side[CONTRACT_ROWS].tile / lanes);
    return scratch_bytes(w) <= MOST_BYTES;
}

bool opjit_ir_window_by_rows(window *w, const ir_tiles *given, int64_t lanes, const rt_target *target)
{
    contraction *c = &w->c;
    ir_func *f = c->f;
    const place_rows_of *r = c->r;
    window other = *w;
    const uint64_t matrices = w->pool ? 1 : (uint64_t)opjit_ir_window_matrices(w);
    const uint64_t bytes = matrices * (uint64_t)(w->group * c->length) * opjit_ir_type_size((ir_type)c->def.type);
    const uint64_t from = w->pool ? 0 : opjit_ir_constant_bytes(f, r->sources, w->values[1 - w->factor]);
    if (w->groups > 1 || w->rows < 0 || w->single || w->alone || w->by_channels ||
        w->bytes > 0 ||
        !ir_is_float((ir_type)c->def.type) || r->is_step || w->digits[0].axis >= 0 || w->pitch > INT32_MAX ||
        (c->length > w->most && w->most != c->def.block))
        return false;
    if (given != NULL ? given->by_rows == 0
                      : !r->once || from == 0 || !opjit_ir_may_keep(bytes, from) || !has_enough_rows(w, lanes))
        return false;
    const bool parts = may_choose(w);
    other.by_rows = true;
    other.plain = other.later = other.beside = other.lined = false;
    if (!(parts ? opjit_ir_window_find_phases(&other) : is_of_rows(w)) || !set_whole(&other))
        return false;
    if (parts && other.slots != 1) /* taps that are put side by side have no forms */
        return false;
    if (window_varies(w)) {
        if (given != NULL || !choose_varying(&other, lanes, target))
            return false;
        *w = other;
        return true;
    }
    window some = other;
    choose_sizes(&other, given, lanes, target);
    if (!parts && !r->general && opjit_ir_window_may_skip(&some)) {
        choose_sizes(&some, given, lanes, target);
        if (opjit_ir_window_find_skips(&some) && scratch_bytes(&some) <= MOST_BYTES &&
            cost_of_threads(&some) < cost_of_threads(&other))
            other = some;
    }
    if (scratch_bytes(&other) > MOST_BYTES ||
        (given == NULL && !w->gathers &&
         cost_of_threads(&other) >= opjit_ir_window_for_threads(w, opjit_ir_window_cost(w)) * (parts ? CHOSEN : 1)))
        return false;
    *w = other;
    return true;
}

/* --- the rows' factor --------------------------------------------------------------------------------------------- */

/* Whether the columns' factor lies in memory as filters do: neighbours of k side by side, those of columns apart. */
static bool lies_apart(contraction *o)
{
    ir_func *f = o->f;
    const contract_side *s = &o->side[CONTRACT_COLUMNS];
    const ir_ref zero = opjit_ir_index(f, 0);
    block lets = { 0 };
    for (uint32_t d = 0; d < o->out.rank; d++)
        o->at[d] = zero;
    const ir_ref columns = opjit_ir_for(f, zero, opjit_ir_index(f, s->size), 1);
    const ir_ref all_k = opjit_ir_for(f, zero, opjit_ir_index(f, o->length), 1);
    if (f->failed)
        return false;
    const ir_ref own = ir_at(f, columns)->ref, k = ir_at(f, all_k)->ref;
    const ir_ref factor = opjit_ir_contract_factor(o, &lets, CONTRACT_COLUMNS, own, k);
    const ir_reach seen = opjit_ir_reach_one(f, factor);
    for (uint32_t i = 0; i < seen.count; i++) {
        int64_t by_k, by_column;
        if (ir_at(f, seen.nodes[i])->op == IR_LOAD &&
            (!opjit_ir_step(f, seen.nodes[i], k, &by_k) || by_k != 1 ||
             !opjit_ir_step(f, seen.nodes[i], own, &by_column) || by_column < 2))
            return false;
    }
    return seen.nodes != NULL && lets.first == 0;
}

void opjit_ir_window_rows_share(window *w, block *stages)
{
    contraction *o = &w->other;
    contract_side *columns = &o->side[CONTRACT_COLUMNS];
    *o = w->c;
    *columns = w->c.side[CONTRACT_ROWS];
    columns->dimension = w->rows;
    columns->factor = 1 - w->factor;
    columns->packed = columns->shared = true;
    o->side[CONTRACT_ROWS] = (contract_side){ .dimension = -1, .factor = w->factor, .size = 1, .tile = 1, .block = 1 };
    o->in.private_views = true;
    const ir_ref pair = opjit_ir_window_bare_factors(w);
    columns->apart = lies_apart(o);
    opjit_ir_contract_share_columns(o, stages);
    opjit_ir_window_own_factors(w, pair);
    opjit_ir_window_share_least(w, stages);
}

ir_ref opjit_ir_window_rows_factor(window *w, ir_ref i, ir_ref k, ir_ref lane)
{
    contraction *o = &w->other;
    const ir_ref tile = opjit_ir_index(w->c.f, w->c.side[CONTRACT_ROWS].tile);
    if (!w->parted)
        o->matrix = opjit_ir_index(w->c.f, 0);
    o->q = w->number != 0 ? w->number : opjit_ir_index(w->c.f, 0);
    o->side[CONTRACT_COLUMNS].first_tile = ir_make2(w->c.f, IR_IDIV, IR_INDEX, w->first_row, tile);
    return opjit_ir_contract_copied(o, ir_make2(w->c.f, IR_IDIV, IR_INDEX, i, tile), k, lane);
}

/* --- positions ---------------------------------------------------------------------------------------------------- */

void opjit_ir_window_rows_sums(window *w, int64_t positions)
{
    contraction *c = &w->c;
    const int64_t all = window_varies(w) ? positions : contract_parts(positions, LANES) * LANES;
    const int64_t rows = c->side[CONTRACT_ROWS].block;
    w->sums = opjit_ir_contract_scratch(c, 2, (int64_t[]){ all, rows }, w->by_channels ? 0 : LANES);
    c->total = opjit_ir_contract_scratch(c, 2, (int64_t[]){ rows, all }, LANES);
}

void opjit_ir_window_rows_declare(window *w)
{
    contraction *c = &w->c;
    const contract_side *rows = &c->side[CONTRACT_ROWS], *columns = &c->side[CONTRACT_COLUMNS];
    opjit_ir_window_rows_sums(w, window_varies(w) ? w->block * w->apart + columns->tile + LANES
                                                  : tiles_of(w) * columns->tile);
    c->tile = opjit_ir_contract_scratch(c, 2, (int64_t[]){ columns->tile, rows->tile }, 0);
}

ir_ref opjit_ir_window_rows_lines(window *w, block *list, ir_ref lines, block *out, ir_ref *to)
{
    contraction *c = &w->c;
    block of_y;
    const ir_ref line = opjit_ir_index(c->f, w->axis[1].size);
    const ir_ref y = w->tile_line = contract_loop(c, list, lines, &of_y);
    const ir_ref x = w->tile_first = contract_loop_in_steps(c, &of_y, line, c->side[CONTRACT_COLUMNS].tile, out);
    *to = opjit_ir_block_let(c->f, out, contract_plus(c, contract_times(c, y, w->apart), x));
    const ir_ref first = contract_times(c, y, window_step(&w->axis[0]) * w->pitch);
    return opjit_ir_block_let(c->f, out, contract_plus(c, first, contract_times(c, x, window_line_step(w))));
}

ir_ref opjit_ir_window_rows_place(const window *w, block *list, ir_ref n)
{
    ir_func *f = w->c.f;
    const int64_t tile = w->c.side[CONTRACT_COLUMNS].tile;
    if (w->joined)
        return opjit_ir_block_let(f, list, contract_times(&w->c, n, tile * window_line_step(w)));
    const ir_ref pieces = opjit_ir_index(f, w->pieces);
    const ir_ref line = ir_make2(f, IR_IDIV, IR_INDEX, n, pieces), piece = ir_make2(f, IR_IMOD, IR_INDEX, n, pieces);
    return opjit_ir_block_let(f, list,
                              contract_plus(&w->c, contract_times(&w->c, line, window_step(&w->axis[0]) * w->pitch),
                                            contract_times(&w->c, piece, tile * window_line_step(w))));
}

void opjit_ir_window_rows_transpose(window *w, block *list)
{
    contraction *c = &w->c;
    ir_func *f = c->f;
    block of_g, of_i, of_e;
    ir_ref first;
    if (window_varies(w)) {
        first = contract_loop_in_steps(c, list, opjit_ir_index(f, w->block * w->apart), LANES, &of_g);
    } else {
        const int64_t groups = (int64_t)f->tensors[w->sums].sizes[0] / LANES;
        const ir_ref g = contract_loop(c, list, opjit_ir_index(f, groups), &of_g);
        first = opjit_ir_block_let(f, &of_g, contract_times(c, g, LANES));
    }
    const ir_ref i = contract_loop(c, &of_g, opjit_ir_index(f, c->side[CONTRACT_ROWS].block), &of_i);
    const ir_ref e = contract_loop(c, &of_i, opjit_ir_index(f, LANES), &of_e);
    const ir_ref position = contract_plus(c, first, e);
    opjit_ir_contract_store(c, &of_e, c->total, opjit_ir_load(f, w->sums, (ir_ref[]){ position, i }),
                            (ir_ref[]){ i, position });
}
