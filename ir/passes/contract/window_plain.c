/* SPDX-License-Identifier: Apache-2.0 */
/* window_plain.c - windows without taps whose lines follow each other in memory, in the windows' factor as in the
 * result (1 x 1 convolutions): tiles read positions as they lie, and store results there.  So are windows of one axis
 * with a stride (signals), whose taps are copied for each position.  Part of place.
 *
 *     for each block of rows and of positions, in parallel
 *         for each block of k; for each tile of positions; for each tile of rows
 *             tile = +0; for k, with the tile in registers: tile = fma(row, position, tile)
 *             total = tile, then total + tile; after the last block of k the result
 *
 * With one block of k, results beyond the second cache, and positions that are copied and fit it, all of these are
 * copied first and follow each tile of rows: a row's results are stored, and what else they are made of is loaded, in
 * long pieces.
 *
 * Positions are counted across lines.  What is left behind whole tiles has a tile that reaches back: it makes again
 * what the one before it made, and stores what is its own.  So nothing is padded, and with one block of k there are no
 * totals, unless results take more than a tile has: then loops over rows and all positions of the block make them.  A
 * tile's positions are copied where something is computed of them, or where many tiles of rows read them. */
#include "ir/passes/contract/window.h"

#include <math.h>
#include <string.h>

enum {
    APART = 16,        /* elements behind a row of totals: they are not all in one set of a cache */
    PARTS = 4,         /* totals may take one of so many parts of the second cache, */
    FACTORS = 2,       /* and the other factor of a block of k, or the copy of all positions, so many of these */
    LARGE = 2,         /* with rows and results of at least as many second caches it is worth to copy all positions */
    MOST_BLOCKS = 256, /* of lines, that are tried, */
    MORE_BLOCKS = 2,   /* and so many times as many of rows as others have */
    ROWS_OF_ONE = 8,   /* of a tile of one vector */
    READ = 2,          /* as many rows take as long as reading a tile's positions where they lie */
    FEW_STEPS = 64,    /* of a signal's sum, beside which storing and loading totals takes long */
};

/* --- sizes -------------------------------------------------------------------------------------------------------- */

/* Positions of the tile that ends with the last of so many; 0: whole tiles leave none. */
static int64_t last_tile(const window *w, int64_t positions, int64_t lanes)
{
    const int64_t tile = w->c.side[CONTRACT_COLUMNS].tile, rest = positions % tile;
    return rest == 0 ? 0 : rest <= lanes ? lanes : tile;
}

/* Rows of a tile of one vector of positions: sums that don't wait for each other, if the block has so many. */
static int64_t short_rows(const window *w)
{
    const contract_side *rows = &w->c.side[CONTRACT_ROWS];
    return rows->tile < ROWS_OF_ONE && rows->block >= ROWS_OF_ONE ? ROWS_OF_ONE : rows->tile;
}

/* Whether dimensions d and d + 1 of the layout are one in memory. */
static bool is_one(const ir_tensor *t, int32_t d)
{
    return t->strides[d] == t->sizes[d + 1] * t->strides[d + 1] && t->strides[d + 1] == 1;
}

/* Whether the windows' factor is elements of memory as they are. */
static bool is_memory(const window *w)
{
    const ir_func *f = w->c.f;
    const ir_node *n = ir_at(f, w->probed);
    return n->op == IR_LOAD && n->type == w->c.def.type && f->tensors[n->ref].role != IR_SCRATCH &&
           w->c.r->sources[opjit_ir_root(f, n->ref)].def == 0;
}

/* Whether lines of results follow each other in memory, which has no other order to be stored in. */
static bool stores_one(const window *w)
{
    const place_rows_of *r = w->c.r;
    const ir_func *f = w->c.f;
    const ir_tensor *out = &f->tensors[ir_at(f, r->members[r->count - 1].statement)->ref];
    const int32_t y = w->axis[0].dimension, x = w->axis[1].dimension;
    return !w->alone && !w->single && !w->pool && w->rows >= 0 && !window_varies(w) && !r->is_step &&
           out->alias == 0 && out->shared == 0 &&
           (x < 0 ? out->strides[y] == 1 : x > 0 && x == y + 1 && is_one(out, y));
}

/* Whether windows of few taps slide along one axis with a stride, and enough rows read a position's taps that these are
 * copied. */
static bool is_signal(const window *w)
{
    return w->axis[1].dimension < 0 && w->axis[0].stride > 1 && !w->gathers && w->values[WINDOW_CONDITION] == 0 &&
           w->c.length <= w->most && w->c.length <= FEW_STEPS && window_is_read_often(w);
}

static bool may_be_plain(const window *w)
{
    const bool bare = w->bare && w->depth == 1 && w->axis[0].stride == 1 && w->axis[1].stride == 1;
    return stores_one(w) && (w->axis[1].dimension < 0 ? is_signal(w) : bare) && w->bytes == 0 &&
           ir_is_float((ir_type)w->c.def.type);
}

bool opjit_ir_window_may_join(const window *w)
{
    return stores_one(w) && w->axis[1].dimension >= 0 && w->apart == w->axis[1].size &&
           w->axis[0].size % w->block == 0;
}

/* What a block may have at most: totals, elements of a row of the copy of all positions, and rows. */
typedef struct limits {
    int64_t totals, positions, rows;
} limits;

/* Sets equal blocks, of rows and of whole lines, of at least a tile.  false: they aren't, or have too much. */
static bool set_blocks(window *w, int64_t of_rows, int64_t of_lines, int64_t lanes, const limits *most)
{
    contract_side *rows = &w->c.side[CONTRACT_ROWS];
    const int64_t tile = w->c.side[CONTRACT_COLUMNS].tile;
    if (w->group % of_rows != 0 || w->axis[0].size % of_lines != 0)
        return false;
    rows->blocks = of_rows;
    rows->block = w->group / of_rows;
    w->blocks = of_lines;
    w->block = w->axis[0].size / of_lines;
    const int64_t positions = w->block * w->axis[1].size;
    w->last_tile = last_tile(w, positions, lanes);
    w->tiled = positions / tile * tile + w->last_tile;
    if (w->last_tile == lanes)
        w->tiled += short_rows(w) < ROWS_OF_ONE ? lanes / 2 : lanes / 4;
    w->ahead = w->tiled <= most->positions;
    return rows->block >= rows->tile && positions >= tile && positions * rows->block <= most->totals;
}

/* The blocks that need the fewest steps, threads considered; of equal ones the largest.  Returns that cost. */
static double choose_blocks(window *w, const ir_tiles *given, int64_t lanes, const limits *most)
{
    const double in_turn = 1.06; /* as much longer takes a block each of whose tiles is copied before it is used */
    contract_side *rows = &w->c.side[CONTRACT_ROWS];
    const int64_t least_rows = given != NULL ? rows->blocks : 1;
    const int64_t most_rows = (w->groups > 1 ? 1 : MORE_BLOCKS) * rows->blocks; /* those of a group are one */
    const int64_t most_lines = w->axis[0].size < MOST_BLOCKS ? w->axis[0].size : MOST_BLOCKS;
    const int64_t most_block = rows->block > most->rows ? rows->block : most->rows;
    double least = INFINITY;
    int64_t best[2] = { 0 };
    for (int64_t r = least_rows; r <= most_rows; r++)
        for (int64_t l = 1; l <= most_lines; l++) {
            if (!set_blocks(w, r, l, lanes, most) || rows->block > most_block)
                continue;
            const int64_t all = (rows->block + rows->tile - 1) / rows->tile * rows->tile;
            const int64_t reads = window_is_read_often(w) ? WINDOW_MOST_TIMES : all / rows->tile;
            const double steps = (double)(r * l * w->tiled) * (double)(all + READ * reads);
            const double cost = opjit_ir_window_for_threads(w, steps) * (w->ahead ? 1 : in_turn);
            if (cost < least) {
                least = cost;
                best[0] = r;
                best[1] = l;
            }
        }
    if (best[0] != 0)
        (void)set_blocks(w, best[0], best[1], lanes, most);
    return least;
}

bool opjit_ir_window_choose_plain(window *w, const ir_tiles *given, int64_t lanes, const rt_target *target)
{
    const contract_side *rows = &w->c.side[CONTRACT_ROWS];
    const int64_t size = opjit_ir_type_size((ir_type)w->c.def.type);
    const double more = 1.04; /* steps of tiles of three vectors, which load less */
    const bool signal = given == NULL && w->axis[1].dimension < 0;
    const double others = opjit_ir_window_for_threads(w, opjit_ir_window_cost(w)) / (double)w->depth;
    if (!may_be_plain(w) || w->c.side[CONTRACT_COLUMNS].tile % lanes != 0)
        return false;
    const int64_t part = (int64_t)target->l2 / PARTS / size;
    const bool whole = w->c.length <= w->most;
    const int64_t factors = FACTORS * part / (whole ? w->c.length : w->most);
    const int64_t positions = w->axis[0].size * w->axis[1].size;
    const bool large = w->group * (positions + w->c.length) > LARGE * PARTS * part;
    limits most = { w->later || !whole ? part : INT64_MAX, whole && large ? factors : 0, factors };
    if (given != NULL)
        most.totals = (int64_t)given->block_columns * rows->block;
    window wide = *w;
    const bool may_widen = given == NULL && opjit_ir_window_widen(&wide, lanes, target);
    const double cost = choose_blocks(w, given, lanes, &most);
    const double of_wide = may_widen ? choose_blocks(&wide, NULL, lanes, &most) : INFINITY;
    if ((cost == INFINITY && of_wide == INFINITY) || (signal && fmin(cost, of_wide) > others))
        return false;
    if (of_wide <= cost * more)
        *w = wide;
    w->plain = true;
    w->beside = !is_memory(w) || window_is_read_often(w);
    w->ahead = w->ahead && w->beside;
    return true;
}

/* --- tiles -------------------------------------------------------------------------------------------------------- */

ir_ref opjit_ir_window_set_position(const window *w, ir_ref position, ir_ref *at)
{
    ir_func *f = w->c.f;
    const ir_ref width = opjit_ir_index(f, w->axis[1].size);
    const ir_ref all = contract_plus(&w->c, contract_times(&w->c, w->first_position, w->axis[1].size), position);
    if (w->axis[1].dimension < 0)
        return at[w->axis[0].dimension] = all;
    at[w->axis[0].dimension] = ir_make2(f, IR_IDIV, IR_INDEX, all, width);
    return at[w->axis[1].dimension] = ir_make2(f, IR_IMOD, IR_INDEX, all, width);
}

/* The windows' factor for k of the block at a position of the block. */
static ir_ref element(window *w, block *list, ir_ref k, ir_ref position)
{
    ir_ref digits[WINDOW_DIGITS], at[9];
    ir_func *f = w->c.f;
    memcpy(at, w->c.at, sizeof at);
    for (uint32_t d = 0; d < w->digit_count; d++) {
        const window_digit *digit = &w->digits[d];
        digits[d] = ir_make2(f, IR_IDIV, IR_INDEX, k, opjit_ir_index(f, digit->divide));
        if (d > 0)
            digits[d] = ir_make2(f, IR_IMOD, IR_INDEX, digits[d], opjit_ir_index(f, digit->size));
    }
    digits[0] = contract_plus(&w->c, w->first_channel, digits[0]);
    (void)opjit_ir_window_set_position(w, position, at);
    return opjit_ir_window_factor(w, list, w->factor, digits, opjit_ir_index(w->c.f, 0), at);
}

/* Whether what the list makes of the loop's variable takes no quotients of it, which are no vectors. */
static bool is_linear(window *w, const block *list, ir_ref variable)
{
    ir_func *f = w->c.f;
    for (ir_ref s = list->first; s != 0; s = ir_at(f, s)->next) {
        const ir_reach seen = opjit_ir_reach_one(f, ir_operand(f, s, 0));
        for (uint32_t i = 0; i < seen.count; i++) {
            const ir_op op = (ir_op)ir_at(f, seen.nodes[i])->op;
            if ((op == IR_IDIV || op == IR_IMOD) && opjit_ir_uses(f, seen.nodes[i], variable))
                return false;
        }
    }
    return !f->failed && list->first != 0;
}

/* Rows or positions of a tile: where it begins in the block, how many it has, the first that is its own, and, of
 * positions, which tile of the copy it is. */
typedef struct part {
    ir_ref first;
    int64_t tile, own;
    ir_ref copy;
} part;

/* Copies the positions of a tile. */
static void put_beside(window *w, block *list, const part *columns)
{
    contraction *c = &w->c;
    ir_ref at[3] = { columns->copy };
    block inside;
    opjit_ir_contract_loops(c, list, c->here_k, opjit_ir_index(c->f, columns->tile), at + 1, &inside);
    const ir_ref x = element(w, &inside, at[1], contract_plus(c, columns->first, at[2]));
    opjit_ir_contract_store(c, &inside, w->panel, x, at);
    c->in.refused = c->in.refused || !is_linear(w, &inside, at[2]);
}

bool opjit_ir_window_is_in_order(window *w, const block *list, ir_ref variable)
{
    ir_func *f = w->c.f;
    const uint32_t d = (uint32_t)w->axis[0].dimension;
    if (!is_linear(w, list, variable) || w->axis[1].dimension < 0)
        return is_linear(w, list, variable);
    return opjit_ir_join_coordinates(f, ir_operand(f, list->tail, 1 + d), ir_operand(f, list->tail, 2 + d),
                                     w->axis[1].size) != 0;
}

static void add_tile(window *w, block *list, const part *rows, const part *columns, bool last)
{
    contraction *c = &w->c;
    ir_func *f = c->f;
    const uint32_t factor = c->side[CONTRACT_ROWS].factor;
    const uint32_t tile = columns->tile == c->side[CONTRACT_COLUMNS].tile ? c->tile : w->short_tile;
    const ir_ref all[2] = { opjit_ir_index(f, rows->tile), opjit_ir_index(f, columns->tile) };
    ir_ref of[2], x[2];
    block of_k, of_i, inside;
    opjit_ir_contract_fill(c, list, tile, all[0], all[1], 0);
    const ir_ref k = contract_loop(c, list, c->here_k, &of_k);
    opjit_ir_contract_loops(c, &of_k, all[0], all[1], of, &inside);
    f->nodes[of_k.parent].hold = 1;
    const ir_ref row = contract_plus(c, rows->first, of[0]);
    x[factor] = w->lies_well ? opjit_ir_window_direct(w, contract_plus(c, w->first_row, row), k)
                             : opjit_ir_load(f, w->weights, (ir_ref[]){ row, k });
    x[1 - factor] = w->beside ? opjit_ir_load(f, w->panel, (ir_ref[]){ columns->copy, k, of[1] })
                              : element(w, &inside, k, contract_plus(c, columns->first, of[1]));
    const ir_ref step = ir_dot_step(f, (ir_type)c->def.type, x[0], x[1], opjit_ir_load(f, tile, of));
    opjit_ir_contract_store(c, &inside, tile, step, of);

    of[0] = contract_loop_from(c, list, opjit_ir_index(f, rows->own), all[0], &of_i);
    of[1] = contract_loop_from(c, &of_i, opjit_ir_index(f, columns->own), all[1], &inside);
    const ir_ref to[2] = { contract_plus(c, rows->first, of[0]), contract_plus(c, columns->first, of[1]) };
    ir_ref sum = opjit_ir_load(f, tile, of);
    if (!ir_is_index_const(f, w->number) || ir_index_value(f, w->number) != 0) {
        const ir_ref more = ir_expr2(f, IR_ADD, (ir_type)c->def.type, opjit_ir_load(f, c->total, to), sum);
        const ir_ref first = ir_make2(f, IR_EQ, IR_BOOL, w->number, opjit_ir_index(f, 0));
        sum = ir_make3(f, IR_SELECT, IR_NONE, first, sum, more);
    }
    if (!last || w->later) {
        opjit_ir_contract_store(c, &inside, c->total, sum, to);
        return;
    }
    const ir_ref first = contract_plus(c, contract_times(c, w->of_group, w->group), w->first_row);
    const ir_ref own_row = contract_plus(c, first, to[0]);
    const ir_ref own = opjit_ir_window_set_position(w, to[1], c->at);
    w->costly = !opjit_ir_contract_fits_tile(c, sum, own_row, own, false);
    c->in.refused = c->in.refused || w->costly;
    opjit_ir_contract_result(c, &inside, sum, own_row, own);
    c->in.refused = c->in.refused || !opjit_ir_window_is_in_order(w, &inside, of[1]);
}

/* A loop over whole tiles, the first of which begin at 0; the tile's part. */
static part whole_tiles(window *w, block *list, int64_t count, int64_t tile, block *out)
{
    contraction *c = &w->c;
    const ir_ref n = contract_loop(c, list, opjit_ir_index(c->f, count), out);
    const ir_ref first = opjit_ir_block_let(c->f, out, contract_times(c, n, tile));
    return (part){ first, tile, 0, w->ahead ? n : opjit_ir_index(c->f, 0) };
}

/* Rows of a tile of these positions, or of those of whole tiles. */
static int64_t tile_rows(const window *w, const part *columns)
{
    const contract_side *rows = &w->c.side[CONTRACT_ROWS];
    return columns == NULL || columns->tile == w->c.side[CONTRACT_COLUMNS].tile ? rows->tile : short_rows(w);
}

/* A tile of rows with a tile of positions, or, without one, with all whole ones. */
static void add_columns(window *w, block *list, const part *rows, const part *columns, bool last)
{
    const int64_t tile = w->c.side[CONTRACT_COLUMNS].tile, positions = w->block * w->axis[1].size;
    block of_n;
    if (columns != NULL) {
        add_tile(w, list, rows, columns, last);
        return;
    }
    const part p = whole_tiles(w, list, positions / tile, tile, &of_n);
    add_tile(w, &of_n, rows, &p, last);
}

/* All tiles of rows. */
static void add_rows(window *w, block *list, const part *columns, bool last)
{
    const int64_t all = w->c.side[CONTRACT_ROWS].block, tile = tile_rows(w, columns), rest = all % tile;
    block of_m;
    part p = whole_tiles(w, list, all / tile, tile, &of_m);
    add_columns(w, &of_m, &p, columns, last);
    if (rest == 0)
        return;
    p = (part){ opjit_ir_index(w->c.f, all - tile), tile, tile - rest, 0 };
    add_columns(w, list, &p, columns, last);
}

/* All tiles of positions, for a block of k. */
static void add_positions(window *w, block *list, bool last)
{
    ir_func *f = w->c.f;
    const int64_t tile = w->c.side[CONTRACT_COLUMNS].tile, positions = w->block * w->axis[1].size;
    const int64_t whole = positions / tile, rest = w->last_tile;
    block of_n;
    opjit_ir_window_weights(w, list);
    part p = whole_tiles(w, list, whole, tile, &of_n);
    if (w->beside)
        put_beside(w, &of_n, &p);
    add_rows(w, w->ahead ? list : &of_n, w->ahead ? NULL : &p, last);
    if (rest == 0)
        return;
    p = (part){ opjit_ir_index(f, positions - rest), rest, rest - positions % tile,
                opjit_ir_index(f, w->ahead ? whole : 0) };
    if (w->beside)
        put_beside(w, list, &p);
    add_rows(w, list, &p, last);
}

/* --- blocks ------------------------------------------------------------------------------------------------------- */

void opjit_ir_window_declare_plain(window *w)
{
    contraction *c = &w->c;
    const contract_side *rows = &c->side[CONTRACT_ROWS], *columns = &c->side[CONTRACT_COLUMNS];
    const int64_t k = c->length < w->most ? c->length : w->most;
    const int64_t tiles = w->block * w->axis[1].size / columns->tile + (w->last_tile != 0);
    if (w->beside)
        w->panel = opjit_ir_contract_scratch(c, 3, (int64_t[]){ w->ahead ? tiles : 1, k, columns->tile }, 0);
    if (w->later || c->length > w->most)
        c->total = opjit_ir_contract_scratch(c, 2, (int64_t[]){ rows->block, w->block * w->axis[1].size }, APART);
    c->tile = opjit_ir_contract_scratch(c, 2, (int64_t[]){ rows->tile, columns->tile }, 0);
    if (w->last_tile != 0 && w->last_tile != columns->tile)
        w->short_tile = opjit_ir_contract_scratch(c, 2, (int64_t[]){ short_rows(w), w->last_tile }, 0);
}

static void set_k(window *w, ir_ref q, int64_t here)
{
    contraction *c = &w->c;
    w->first_channel = c->first_k = contract_times(c, q, w->most);
    c->here_k = opjit_ir_index(c->f, here);
    w->here_channels = w->depth == 1 ? c->here_k : opjit_ir_index(c->f, w->channels);
}

void opjit_ir_window_plain(window *w, block *list)
{
    contraction *c = &w->c;
    ir_func *f = c->f;
    const int64_t before = (c->length - 1) / w->most; /* blocks of k before the last one */
    block of_q, *sums = list;
    w->number = opjit_ir_index(f, 0);
    if (before > 0) {
        if (before > 1) {
            w->number = contract_loop(c, list, opjit_ir_index(f, before), &of_q);
            sums = &of_q;
        }
        set_k(w, w->number, w->most);
        add_positions(w, sums, false);
    }
    w->number = opjit_ir_index(f, before);
    set_k(w, w->number, c->length - before * w->most);
    add_positions(w, list, true);
}
