/* SPDX-License-Identifier: Apache-2.0 */
/* tile.c - what a block of k adds to a block of the result, tile by tile.  Part of place.
 *
 *     pack the columns; for each tile of rows: pack them; for each tile of columns:
 *         tile = +0; for k, with the tile in registers: tile = fma(row, column, tile); total = total + tile
 *
 * Where a tile of columns stays in the first cache, and rows are read as they lie or are packed before all tiles, the
 * two loops change places.  The first block of k sets the totals.  Where no tile is partial, the results are stored
 * from the tiles of the last one. */
#include "ir/passes/contract/contract.h"

void opjit_ir_contract_over_tile(contraction *c, block *list, ir_ref *at, block *out)
{
    opjit_ir_contract_loops(c, list, opjit_ir_index(c->f, c->side[CONTRACT_ROWS].tile),
                            opjit_ir_index(c->f, c->side[CONTRACT_COLUMNS].tile), at, out);
}

/* A row that is read as it lies; those behind the last one are the last one again. */
static ir_ref row_of(const contraction *c, ir_ref row)
{
    const contract_side *s = &c->side[CONTRACT_ROWS];
    if (s->size % s->tile == 0 && !c->low_tiles)
        return row;
    return ir_make2(c->f, IR_IMIN, IR_INDEX, row, opjit_ir_index(c->f, s->size - 1));
}

/* What k of the block of k, a variable, adds to the tile. */
static void add_step(contraction *c, block *list, ir_ref i, ir_ref j, ir_ref n, ir_ref k)
{
    ir_func *f = c->f;
    const contract_side *rows = &c->side[CONTRACT_ROWS], *columns = &c->side[CONTRACT_COLUMNS];
    const ir_ref all_k = contract_plus(c, c->first_k, k);
    ir_ref at[2], x[2];
    block inside;
    opjit_ir_contract_over_tile(c, list, at, &inside);
    x[rows->factor] =
        rows->kept != 0 ? opjit_ir_load(f, rows->kept, (ir_ref[]){ contract_plus(c, i, at[0]), all_k })
        : rows->packed
            ? opjit_ir_load(f, rows->scratch, (ir_ref[]){ rows->whole ? contract_plus(c, i, at[0]) : at[0], k })
            : opjit_ir_contract_factor(c, &inside, CONTRACT_ROWS, row_of(c, contract_plus(c, i, at[0])), all_k);
    x[columns->factor] =
        columns->packed ? opjit_ir_contract_copied(c, n, k, at[1])
                        : opjit_ir_contract_factor(c, &inside, CONTRACT_COLUMNS, contract_plus(c, j, at[1]), all_k);
    const ir_ref before = opjit_ir_load(f, c->tile, at);
    const ir_ref step = opjit_ir_contract_step(c, x[rows->factor], x[columns->factor], before);
    opjit_ir_contract_store(c, &inside, c->tile, step, at);
}

/* Columns that lie apart: rounds of as many k as a square has, whose loop is spelled out, and the k that are left. */
static void add_rounds(contraction *c, block *list, ir_ref i, ir_ref j, ir_ref n)
{
    ir_func *f = c->f;
    const ir_ref steps = opjit_ir_index(f, c->across);
    const ir_ref rounds = opjit_ir_block_let(f, list, ir_make2(f, IR_IDIV, IR_INDEX, c->here_k, steps));
    block of_g, of_k;
    const ir_ref g = contract_loop(c, list, rounds, &of_g), k = contract_loop(c, &of_g, steps, &of_k);
    add_step(c, &of_k, i, j, n, contract_plus(c, contract_times(c, g, c->across), k));
    f->nodes[of_g.parent].hold = 1;
    if (c->length % c->across == 0 && (c->length <= c->def.block || c->def.block % c->across == 0))
        return;
    const ir_ref rest = contract_loop_from(c, list, contract_times(c, rounds, c->across), c->here_k, &of_k);
    add_step(c, &of_k, i, j, n, rest);
}

void opjit_ir_contract_products(contraction *c, block *list, ir_ref i, ir_ref j, ir_ref n)
{
    block of_k;
    if (c->decoded > 0) {
        opjit_ir_contract_decode(c, list, i);
        return;
    }
    if (c->across > 0) {
        add_rounds(c, list, i, j, n);
        return;
    }
    const ir_ref k = contract_loop(c, list, c->here_k, &of_k);
    add_step(c, &of_k, i, j, n, k);
    c->f->nodes[of_k.parent].hold = 1;
}

/* The sum of a block of k and those of the blocks before it, of which the first one has none. */
static ir_ref with_total(contraction *c, ir_ref sum, const ir_ref *at)
{
    ir_func *f = c->f;
    const bool sets = contract_sets_totals(c), is_first = ir_is_index_0(f, c->q);
    if (c->total == 0 || (sets && is_first) || (c->length <= c->def.block && c->rest == 0))
        return sum;
    const ir_ref all = ir_expr2(f, IR_ADD, (ir_type)c->def.type, opjit_ir_load(f, c->total, at), sum);
    if (!sets || ir_is_index_const(f, c->q))
        return all;
    return ir_make3(f, IR_SELECT, IR_NONE, ir_make2(f, IR_EQ, IR_BOOL, c->q, opjit_ir_index(f, 0)), sum, all);
}

/* The tile in row i and column j of the block, which are tiles m and n of it; more: 0, to be added to rows that are
 * read as they lie. */
static void add_tile(contraction *c, block *list, ir_ref i, ir_ref n, ir_ref more)
{
    ir_func *f = c->f;
    const contract_side *rows = &c->side[CONTRACT_ROWS], *columns = &c->side[CONTRACT_COLUMNS];
    const ir_ref j = opjit_ir_block_let(f, list, contract_times(c, n, columns->tile));
    const ir_ref all_i = contract_plus(c, rows->first, i), all_j = contract_plus(c, columns->start, j);
    ir_ref at[2];
    block inside;
    opjit_ir_contract_fill(c, list, c->tile, opjit_ir_index(f, rows->tile), opjit_ir_index(f, columns->tile), 0);
    opjit_ir_contract_products(c, list, rows->kept != 0 || rows->whole ? i : contract_plus(c, all_i, more), all_j, n);
    opjit_ir_contract_over_tile(c, list, at, &inside);
    const ir_ref to[2] = { contract_plus(c, i, at[0]), contract_plus(c, j, at[1]) };
    const ir_ref sum = with_total(c, opjit_ir_load(f, c->tile, at), to);
    if (c->total == 0 || c->ends)
        opjit_ir_contract_result(c, &inside, sum, contract_plus(c, all_i, at[0]), contract_plus(c, all_j, at[1]));
    else
        opjit_ir_contract_store(c, &inside, c->total, sum, to);
}

ir_ref opjit_ir_contract_tiles_of(contraction *c, block *list, const contract_side *s)
{
    ir_ref up = s->here;
    if (c->across > 0 && s == &c->side[CONTRACT_COLUMNS])
        return opjit_ir_index(c->f, s->block / s->tile);
    if (s->size % s->tile != 0)
        up = contract_plus(c, up, opjit_ir_index(c->f, s->tile - 1));
    return opjit_ir_block_let(c->f, list, ir_make2(c->f, IR_IDIV, IR_INDEX, up, opjit_ir_index(c->f, s->tile)));
}

/* Of the n_tiles tiles of columns those that the rows of a tile need, of which `last` is the last. */
static ir_ref tiles_needed(contraction *c, block *list, ir_ref last, ir_ref n_tiles)
{
    ir_func *f = c->f;
    const int64_t tile = c->side[CONTRACT_COLUMNS].tile;
    if (c->rest != 0) /* all, if there is a step */
        return opjit_ir_block_let(f, list,
                                  ir_make2(f, IR_IMIN, IR_INDEX, n_tiles,
                                           contract_times(c, c->here_k, c->side[CONTRACT_COLUMNS].block / tile)));
    if (!c->masked)
        return n_tiles;
    const ir_ref columns = contract_plus(c, last, opjit_ir_index(f, c->behind + tile));
    const ir_ref up = ir_make2(f, IR_IDIV, IR_INDEX, columns, opjit_ir_index(f, tile));
    return opjit_ir_block_let(f, list, ir_make3(f, IR_CLAMP, IR_INDEX, up, opjit_ir_index(f, 0), n_tiles));
}

/* 1 where the number of rows from i of the block on is one of `numbers`, a bit for each, else 0.  Intervals, which
 * would say of some samples that it never is, don't follow bits. */
static ir_ref is_left(contraction *c, block *list, ir_ref i, uint64_t numbers)
{
    ir_func *f = c->f;
    const ir_ref left = ir_make2(f, IR_ISUB, IR_INDEX, c->side[CONTRACT_ROWS].here, i);
    const ir_ref all = opjit_ir_const(f, IR_U32, numbers);
    const ir_ref bits = ir_expr2(f, IR_SHR, IR_U32, all, ir_make1(f, IR_ELEM, IR_U32, left));
    const ir_ref bit = ir_expr2(f, IR_AND, IR_U32, bits, opjit_ir_const(f, IR_U32, 1));
    return opjit_ir_block_let(f, list, ir_make1(f, IR_TO_INDEX, IR_INDEX, bit));
}

/* Which tiles of columns each tile of rows reads: one, or the block's. */
typedef struct tile_range {
    ir_ref one; /* 0: all */
    ir_ref all;
} tile_range;

/* A tile of rows, from i of the block on. */
static void add_tile_of_rows(contraction *c, block *list, ir_ref i, tile_range columns, ir_ref more)
{
    ir_func *f = c->f;
    block of_n;
    if (columns.one != 0) {
        add_tile(c, list, i, columns.one, more);
        return;
    }
    const ir_ref all_i = contract_plus(c, c->side[CONTRACT_ROWS].first, i);
    opjit_ir_contract_pack_rows(c, list, contract_plus(c, all_i, more), i);
    const ir_ref last = row_of(c, contract_plus(c, all_i, opjit_ir_index(f, c->side[CONTRACT_ROWS].tile - 1)));
    if (c->rest != 0)
        c->here_k = opjit_ir_contract_rest_k(c, list, i);
    const ir_ref n = contract_loop(c, list, tiles_needed(c, list, last, columns.all), &of_n);
    add_tile(c, &of_n, i, n, more);
}

/* All tiles of rows.  Each is in a loop that runs once, beside one for each lower tile that never does, or the other
 * way round.  The variable of these is 0, but its interval is not: with it no sample has rows of which intervals say
 * that none lies behind the last one. */
static void add_rows(contraction *c, block *list, ir_ref m_tiles, tile_range columns)
{
    ir_func *f = c->f;
    contract_side *rows = &c->side[CONTRACT_ROWS];
    const int64_t tile = rows->tile;
    block of_m, of_one;
    const ir_ref m = contract_loop(c, list, m_tiles, &of_m);
    const ir_ref i = opjit_ir_block_let(f, &of_m, contract_times(c, m, tile));
    if (!c->low_tiles) {
        add_tile_of_rows(c, &of_m, i, columns, opjit_ir_index(f, 0));
        return;
    }
    const uint64_t lower = ((uint64_t)1 << ((tile - 1) / CONTRACT_LOWER * CONTRACT_LOWER + 1)) - 2;
    (void)contract_loop_from(c, &of_m, is_left(c, &of_m, i, lower), opjit_ir_index(f, 1), &of_one);
    add_tile_of_rows(c, &of_one, i, columns, opjit_ir_index(f, 0));
    for (int64_t low = CONTRACT_LOWER; low < tile; low += CONTRACT_LOWER) {
        const uint64_t numbers = (((uint64_t)1 << CONTRACT_LOWER) - 1) << (low - CONTRACT_LOWER + 1);
        const ir_ref more = contract_loop(c, &of_m, is_left(c, &of_m, i, numbers), &of_one);
        rows->tile = low;
        add_tile_of_rows(c, &of_one, i, columns, contract_times(c, more, tile));
        rows->tile = tile;
    }
}

/* All tiles of rows that read a tile of columns, before the next one of these. */
static void add_by_columns(contraction *c, block *list, ir_ref m_tiles, ir_ref n_tiles)
{
    block of_n;
    const ir_ref n = contract_loop(c, list, n_tiles, &of_n);
    add_rows(c, &of_n, m_tiles, (tile_range){ .one = n });
}

void opjit_ir_contract_tiles(contraction *c, block *list)
{
    ir_func *f = c->f;
    const contract_side *rows = &c->side[CONTRACT_ROWS];
    opjit_ir_contract_pack_columns(c, list);
    const ir_ref n_tiles = opjit_ir_contract_tiles_of(c, list, &c->side[CONTRACT_COLUMNS]);
    const ir_ref m_tiles = opjit_ir_contract_tiles_of(c, list, rows);
    if (c->by_columns && (!rows->packed || rows->whole) && !c->masked && c->rest == 0) {
        opjit_ir_contract_pack_rows(c, list, rows->first, opjit_ir_index(f, 0));
        add_by_columns(c, list, m_tiles, n_tiles);
        return;
    }
    add_rows(c, list, m_tiles, (tile_range){ .all = n_tiles });
}
