/* SPDX-License-Identifier: Apache-2.0 */
/* window_plain.c - windows without taps whose lines follow each other in memory, in the windows' factor as in the
 * result (1 x 1 convolutions): tiles read positions as they lie, and store results there.  Part of place.
 *
 *     for each block of rows and of positions, in parallel
 *         for each block of k; for each tile of positions; for each tile of rows
 *             tile = +0; for k, with the tile in registers: tile = fma(row, position, tile)
 *             total = tile, then total + tile; after the last block of k the result
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
    FACTORS = 2,       /* and the other factor of a block of k so many of these */
    MOST_BLOCKS = 256, /* of lines, that are tried, */
    MORE_BLOCKS = 2,   /* and so many times as many of rows as others have */
    READ = 2,          /* as many rows take as long as reading a tile's positions where they lie */
};

/* --- sizes -------------------------------------------------------------------------------------------------------- */

/* Positions of the tile that ends with the last of so many; 0: whole tiles leave none. */
static int64_t last_tile(const window *w, int64_t positions, int64_t lanes)
{
    const int64_t tile = w->c.side[CONTRACT_COLUMNS].tile, rest = positions % tile;
    return rest == 0 ? 0 : rest <= lanes ? lanes : tile;
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
    return !w->alone && !w->single && !w->pool && w->rows >= 0 && !window_varies(w) && !r->is_step && x > 0 &&
           x == y + 1 && out->alias == 0 && out->shared == 0 && is_one(out, y);
}

static bool may_be_plain(const window *w)
{
    return stores_one(w) && w->bare && w->bytes == 0 && w->depth == 1 && w->axis[0].stride == 1 &&
           w->axis[1].stride == 1 && ir_is_float((ir_type)w->c.def.type);
}

bool opjit_ir_window_may_join(const window *w)
{
    return stores_one(w) && w->apart == w->axis[1].size && w->axis[0].size % w->block == 0;
}

/* Sets equal blocks, of rows and of whole lines, of at least a tile.  false: they aren't, or have too many totals. */
static bool set_blocks(window *w, int64_t of_rows, int64_t of_lines, int64_t lanes, int64_t most_totals)
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
    w->tiled = positions / tile * tile + w->last_tile + (w->last_tile == lanes ? lanes / 2 : 0);
    return rows->block >= rows->tile && positions >= tile && positions * rows->block <= most_totals;
}

/* The blocks that need the fewest steps, threads considered; of equal ones the largest. */
static bool choose_blocks(window *w, const ir_tiles *given, int64_t lanes, int64_t most_totals, int64_t most_factors)
{
    contract_side *rows = &w->c.side[CONTRACT_ROWS];
    const int64_t least_rows = given != NULL ? rows->blocks : 1, most_rows = MORE_BLOCKS * rows->blocks;
    const int64_t most_lines = w->axis[0].size < MOST_BLOCKS ? w->axis[0].size : MOST_BLOCKS;
    const int64_t most_block = rows->block > most_factors ? rows->block : most_factors;
    double least = INFINITY;
    int64_t best[2] = { 0 };
    for (int64_t r = least_rows; r <= most_rows; r++)
        for (int64_t l = 1; l <= most_lines; l++) {
            if (!set_blocks(w, r, l, lanes, most_totals) || rows->block > most_block)
                continue;
            const int64_t all = (rows->block + rows->tile - 1) / rows->tile * rows->tile;
            const int64_t reads = window_is_read_often(w) ? WINDOW_MOST_TIMES : all / rows->tile;
            const double steps = (double)(r * l * w->tiled) * (double)(all + READ * reads);
            const double cost = opjit_ir_window_for_threads(w, steps);
            if (cost < least) {
                least = cost;
                best[0] = r;
                best[1] = l;
            }
        }
    return best[0] != 0 && set_blocks(w, best[0], best[1], lanes, most_totals);
}

bool opjit_ir_window_choose_plain(window *w, const ir_tiles *given, int64_t lanes, const rt_target *target)
{
    const contract_side *rows = &w->c.side[CONTRACT_ROWS];
    const int64_t size = opjit_ir_type_size((ir_type)w->c.def.type);
    if (!may_be_plain(w) || w->c.side[CONTRACT_COLUMNS].tile % lanes != 0)
        return false;
    const int64_t part = (int64_t)target->l2 / PARTS / size;
    const int64_t most_totals = w->later || w->c.length > w->most ? part : INT64_MAX;
    const int64_t k = w->c.length < w->most ? w->c.length : w->most;
    const int64_t given_totals = given != NULL ? (int64_t)given->block_columns * rows->block : most_totals;
    if (!choose_blocks(w, given, lanes, given_totals, FACTORS * part / k))
        return false;
    w->plain = true;
    w->beside = !is_memory(w) || window_is_read_often(w);
    return true;
}

/* --- tiles -------------------------------------------------------------------------------------------------------- */

ir_ref opjit_ir_window_set_position(const window *w, ir_ref position, ir_ref *at)
{
    ir_func *f = w->c.f;
    const ir_ref width = opjit_ir_index(f, w->axis[1].size);
    const ir_ref all = contract_plus(&w->c, contract_times(&w->c, w->first_position, w->axis[1].size), position);
    at[w->axis[0].dimension] = ir_make2(f, IR_IDIV, IR_INDEX, all, width);
    return at[w->axis[1].dimension] = ir_make2(f, IR_IMOD, IR_INDEX, all, width);
}

/* The windows' factor for k of the block at a position of the block. */
static ir_ref element(window *w, block *list, ir_ref k, ir_ref position)
{
    ir_ref digits[WINDOW_DIGITS], at[9];
    memcpy(at, w->c.at, sizeof at);
    for (uint32_t d = 0; d < w->digit_count; d++)
        digits[d] = opjit_ir_index(w->c.f, 0);
    digits[0] = contract_plus(&w->c, w->first_channel, k);
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

/* Copies the positions of a tile, from `first` on. */
static void put_beside(window *w, block *list, ir_ref first, int64_t tile)
{
    contraction *c = &w->c;
    ir_ref at[2];
    block inside;
    opjit_ir_contract_loops(c, list, c->here_k, opjit_ir_index(c->f, tile), at, &inside);
    opjit_ir_contract_store(c, &inside, w->panel, element(w, &inside, at[0], contract_plus(c, first, at[1])), at);
    c->in.refused = c->in.refused || !is_linear(w, &inside, at[1]);
}

bool opjit_ir_window_is_in_order(window *w, const block *list, ir_ref variable)
{
    ir_func *f = w->c.f;
    const uint32_t d = (uint32_t)w->axis[0].dimension;
    return is_linear(w, list, variable) &&
           opjit_ir_join_coordinates(f, ir_operand(f, list->tail, 1 + d), ir_operand(f, list->tail, 2 + d),
                                     w->axis[1].size) != 0;
}

/* Rows or positions of a tile: where it begins in the block, how many it has, and the first that is its own. */
typedef struct part {
    ir_ref first;
    int64_t tile, own;
} part;

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
    x[1 - factor] = w->beside ? opjit_ir_load(f, w->panel, (ir_ref[]){ k, of[1] })
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

/* All tiles of rows. */
static void add_rows(window *w, block *list, const part *columns, bool last)
{
    contraction *c = &w->c;
    const contract_side *rows = &c->side[CONTRACT_ROWS];
    const int64_t whole = rows->block / rows->tile, rest = rows->block % rows->tile;
    block of_m;
    const ir_ref m = contract_loop(c, list, opjit_ir_index(c->f, whole), &of_m);
    part p = { opjit_ir_block_let(c->f, &of_m, contract_times(c, m, rows->tile)), rows->tile, 0 };
    add_tile(w, &of_m, &p, columns, last);
    if (rest == 0)
        return;
    p = (part){ opjit_ir_index(c->f, rows->block - rows->tile), rows->tile, rows->tile - rest };
    add_tile(w, list, &p, columns, last);
}

/* All tiles of positions, for a block of k. */
static void add_positions(window *w, block *list, bool last)
{
    contraction *c = &w->c;
    const int64_t tile = c->side[CONTRACT_COLUMNS].tile, positions = w->block * w->axis[1].size;
    block of_n;
    opjit_ir_window_weights(w, list);
    const ir_ref n = contract_loop(c, list, opjit_ir_index(c->f, positions / tile), &of_n);
    part p = { opjit_ir_block_let(c->f, &of_n, contract_times(c, n, tile)), tile, 0 };
    if (w->beside)
        put_beside(w, &of_n, p.first, tile);
    add_rows(w, &of_n, &p, last);
    if (w->last_tile == 0)
        return;
    p = (part){ opjit_ir_index(c->f, positions - w->last_tile), w->last_tile, w->last_tile - positions % tile };
    if (w->beside)
        put_beside(w, list, p.first, p.tile);
    add_rows(w, list, &p, last);
}

/* --- blocks ------------------------------------------------------------------------------------------------------- */

void opjit_ir_window_declare_plain(window *w)
{
    contraction *c = &w->c;
    const contract_side *rows = &c->side[CONTRACT_ROWS], *columns = &c->side[CONTRACT_COLUMNS];
    const int64_t k = c->length < w->most ? c->length : w->most;
    if (w->beside)
        w->panel = opjit_ir_contract_scratch(c, 2, (int64_t[]){ k, columns->tile }, 0);
    if (w->later || c->length > w->most)
        c->total = opjit_ir_contract_scratch(c, 2, (int64_t[]){ rows->block, w->block * w->axis[1].size }, APART);
    c->tile = opjit_ir_contract_scratch(c, 2, (int64_t[]){ rows->tile, columns->tile }, 0);
    if (w->last_tile != 0 && w->last_tile != columns->tile)
        w->short_tile = opjit_ir_contract_scratch(c, 2, (int64_t[]){ rows->tile, w->last_tile }, 0);
}

static void set_k(window *w, ir_ref q, int64_t here)
{
    contraction *c = &w->c;
    w->first_channel = c->first_k = contract_times(c, q, w->most);
    w->here_channels = c->here_k = opjit_ir_index(c->f, here);
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
