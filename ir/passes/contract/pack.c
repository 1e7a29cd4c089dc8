/* SPDX-License-Identifier: Apache-2.0 */
/* pack.c - copies the parts of both factors that a block's tiles read to scratch, in the order in which they
 * are read: rows of one tile, and tiles of columns.  Casts and whatever else is computed of the factors' elements is
 * done here, once an element of the block.  Part of place.
 *
 * Tiles are whole: behind the last row is the last row again, behind the last column are zeros; nothing of them is
 * stored in the end. */
#include "ir/passes/contract/contract.h"

void opjit_ir_contract_copied_at(contraction *c, ir_ref n, ir_ref k, ir_ref j, ir_ref *at)
{
    const contract_side *s = &c->side[CONTRACT_COLUMNS];
    uint32_t rank = 0;
    if (s->shared) {
        at[rank++] = c->matrix;
        at[rank++] = c->q;
        n = contract_plus(c, s->first_tile, n);
    }
    at[rank++] = n;
    at[rank++] = k;
    at[rank++] = j;
}

ir_ref opjit_ir_contract_copied(contraction *c, ir_ref n, ir_ref k, ir_ref j)
{
    ir_ref at[5];
    opjit_ir_contract_copied_at(c, n, k, j, at);
    return opjit_ir_load(c->f, c->side[CONTRACT_COLUMNS].scratch, at);
}

/* The columns' factor, with zeros behind the last column where the tile is partial. */
static ir_ref column_value(contraction *c, block *list, ir_ref own, ir_ref k, bool partial)
{
    ir_func *f = c->f;
    const ir_ref value = opjit_ir_contract_factor(c, list, CONTRACT_COLUMNS, own, contract_plus(c, c->first_k, k));
    if (!partial)
        return value;
    const ir_ref inside = ir_make2(f, IR_LT, IR_BOOL, own, opjit_ir_index(f, c->side[CONTRACT_COLUMNS].size));
    return ir_make3(f, IR_SELECT, IR_NONE, inside, value, opjit_ir_const(f, (ir_type)c->def.type, 0));
}

/* The k of the block and a few behind them: registers are transposed in squares. */
static ir_ref whole_squares(const contraction *c)
{
    ir_func *f = c->f;
    if (c->length % CONTRACT_SQUARE == 0 && c->def.block % CONTRACT_SQUARE == 0)
        return c->here_k;
    return ir_make2(f, IR_UP, IR_INDEX, c->here_k, opjit_ir_index(f, CONTRACT_SQUARE));
}

/* Rows of k of some columns, in order, and these transposed: the rows may lie at distances that are one set of a
 * cache. */
static void turn_tile(contraction *c, block *list, ir_ref n, ir_ref first, bool partial)
{
    ir_func *f = c->f;
    const contract_side *s = &c->side[CONTRACT_COLUMNS];
    const int64_t some = (int64_t)f->tensors[c->turn].sizes[0];
    block of_h, of_j, of_k;
    const ir_ref h = contract_loop(c, list, opjit_ir_index(f, s->tile / some), &of_h);
    const ir_ref left = opjit_ir_block_let(f, &of_h, contract_times(c, h, some));
    ir_ref j = contract_loop(c, &of_h, opjit_ir_index(f, some), &of_j);
    ir_ref k = contract_loop(c, &of_j, c->here_k, &of_k);
    const ir_ref value = column_value(c, &of_k, contract_plus(c, first, contract_plus(c, left, j)), k, partial);
    opjit_ir_contract_store(c, &of_k, c->turn, value, (ir_ref[]){ j, k });
    k = contract_loop(c, &of_h, whole_squares(c), &of_k);
    j = contract_loop(c, &of_k, opjit_ir_index(f, some), &of_j);
    ir_ref at[5];
    opjit_ir_contract_copied_at(c, n, k, contract_plus(c, left, j), at);
    opjit_ir_contract_store(c, &of_j, s->scratch, opjit_ir_load(f, c->turn, (ir_ref[]){ j, k }), at);
}

/* Tile n of the block; partial: columns behind the last one are zeros. */
static void pack_tile(contraction *c, block *list, ir_ref n, bool partial)
{
    ir_func *f = c->f;
    const contract_side *s = &c->side[CONTRACT_COLUMNS];
    block of_k, of_j;
    if (c->bytes > 0) {
        opjit_ir_contract_pack_column_words(c, list, n, partial);
        return;
    }
    const ir_ref first = opjit_ir_block_let(f, list, contract_plus(c, s->first, contract_times(c, n, s->tile)));
    if (s->turned) {
        turn_tile(c, list, n, first, partial);
        return;
    }
    const ir_ref k = contract_loop(c, list, c->here_k, &of_k);
    const ir_ref j = contract_loop(c, &of_k, opjit_ir_index(f, s->tile), &of_j);
    ir_ref at[5];
    opjit_ir_contract_copied_at(c, n, k, j, at);
    opjit_ir_contract_store(c, &of_j, s->scratch, column_value(c, &of_j, contract_plus(c, first, j), k, partial), at);
}

/* So many k from number `first` on, of so many whole tiles: in the order of memory. */
static void pack_lines(contraction *c, block *list, ir_ref first, ir_ref count, ir_ref tiles)
{
    const contract_side *s = &c->side[CONTRACT_COLUMNS];
    block of_k, of_n, of_j;
    const ir_ref k = contract_plus(c, first, contract_loop(c, list, count, &of_k));
    const ir_ref n = contract_loop(c, &of_k, tiles, &of_n);
    const ir_ref j = contract_loop(c, &of_n, opjit_ir_index(c->f, s->tile), &of_j);
    const ir_ref own = contract_plus(c, s->first, contract_plus(c, contract_times(c, n, s->tile), j));
    ir_ref at[5];
    opjit_ir_contract_copied_at(c, n, k, j, at);
    opjit_ir_contract_store(c, &of_j, s->scratch, column_value(c, &of_j, own, k, false), at);
}

/* Tiles from number lo to hi. */
static void pack_tiles(contraction *c, block *list, ir_ref lo, ir_ref hi, bool partial)
{
    const ir_ref loop = opjit_ir_for(c->f, lo, hi, 1);
    block of_n = { .parent = loop };
    opjit_ir_block_add(c->f, list, loop);
    pack_tile(c, &of_n, ir_at(c->f, loop)->ref, partial);
}

void opjit_ir_contract_pack_columns(contraction *c, block *list)
{
    ir_func *f = c->f;
    const contract_side *s = &c->side[CONTRACT_COLUMNS];
    if (!s->packed || s->shared)
        return;
    const ir_ref tile = opjit_ir_index(f, s->tile);
    const ir_ref whole = opjit_ir_block_let(f, list, ir_make2(f, IR_IDIV, IR_INDEX, s->here, tile));
    if (s->lines && c->bytes > 0)
        opjit_ir_contract_pack_lines_of_words(c, list, whole);
    else if (s->lines)
        pack_lines(c, list, opjit_ir_index(f, 0), c->here_k, whole);
    else
        pack_tiles(c, list, opjit_ir_index(f, 0), whole, false);
    if (s->size % s->tile == 0)
        return;
    const ir_ref up = contract_plus(c, s->here, opjit_ir_index(f, s->tile - 1));
    pack_tiles(c, list, whole, opjit_ir_block_let(f, list, ir_make2(f, IR_IDIV, IR_INDEX, up, tile)), true);
}

/* --- a temp for all blocks of rows -------------------------------------------------------------------------------- */

/* Coordinates of matrices: those of a recurrence's rows, if it is a step of one, then those of the result that neither
 * side has.  The size of coordinate i, 1 where the columns' factor does not move with it. */
static int64_t matrix_size(const contraction *c, uint32_t i)
{
    const contract_side *s = &c->side[CONTRACT_COLUMNS];
    const place_rows_of *r = c->r;
    const ir_ref factor = ir_operand(c->f, ir_operand(c->f, c->statement, 0), s->factor);
    const uint32_t d = i - r->around_count;
    if (i < r->around_count)
        return opjit_ir_uses(c->f, factor, r->around[i]) ? r->around_sizes[i] : 1;
    const bool moves = (int32_t)d != s->dimension && (int32_t)d != c->side[CONTRACT_ROWS].dimension &&
                       opjit_ir_uses(c->f, factor, opjit_ir_coordinate(c->f, c->statement, d));
    return moves ? (int64_t)c->out.sizes[d] : 1;
}

static uint32_t matrix_rank(const contraction *c)
{
    return c->r->around_count + c->out.rank;
}

void opjit_ir_contract_set_matrix(contraction *c, block *list)
{
    const uint32_t around = c->r->around_count;
    ir_ref number = opjit_ir_index(c->f, 0);
    for (uint32_t i = 0; i < matrix_rank(c); i++)
        if (matrix_size(c, i) > 1)
            number = contract_plus(c, contract_times(c, number, matrix_size(c, i)),
                                   i < around ? c->r->around[i] : c->at[i - around]);
    c->matrix = opjit_ir_block_let(c->f, list, number);
}

/* [matrices, blocks of k, tiles, k, columns of a tile]: what a block reads lies together. */
static bool declare_temp(contraction *c, int64_t matrices, int64_t tiles)
{
    contract_side *s = &c->side[CONTRACT_COLUMNS];
    const int64_t k = contract_most_k(c);
    const int64_t sizes[] = { matrices, contract_blocks_of_k(c), tiles, k, s->tile };
    ir_tensor t = { .role = IR_TEMP, .type = opjit_ir_contract_column_type(c), .rank = 5, .align = 64 };
    for (uint32_t d = 0; d < t.rank; d++)
        t.sizes[d] = (uint64_t)sizes[d];
    opjit_ir_dense_strides(&t);
    if (!opjit_ir_span_bytes(&t, &t.bytes))
        return false;
    s->scratch = opjit_ir_tensor(c->f, &t);
    return true;
}

void opjit_ir_contract_at_matrix(contraction *c, ir_ref p, int64_t below)
{
    for (uint32_t i = 0; i < matrix_rank(c); i++) {
        const int64_t size = matrix_size(c, i);
        below /= size;
        const ir_ref digit = opjit_ir_contract_digit(c, p, below, size);
        *(i < c->r->around_count ? &c->around[i] : &c->at[i - c->r->around_count]) = digit;
    }
}

int64_t opjit_ir_contract_matrices(const contraction *c)
{
    int64_t matrices = 1;
    for (uint32_t i = 0; i < matrix_rank(c); i++)
        matrices *= matrix_size(c, i);
    return matrices;
}

/* What a stage copies: so many matrices, blocks of k, and tiles, the last two from a number on. */
typedef struct shared_part {
    int64_t matrices, first_block, blocks, first_tile, tiles;
} shared_part;

/* A stage over the matrices, the blocks of k, and `pieces` of each of these; returns the number of the piece. */
static ir_ref share_stage(contraction *c, const shared_part *of, int64_t pieces, block *out)
{
    ir_func *f = c->f;
    const int64_t all = of->matrices * of->blocks * pieces;
    const ir_ref stage = opjit_ir_stage(f, opjit_ir_index(f, 0), opjit_ir_index(f, all), 1);
    if (f->failed)
        return 0;
    *out = (block){ .parent = stage };
    const ir_ref p = ir_at(f, stage)->ref;
    opjit_ir_contract_at_matrix(c, p, all);
    const ir_ref matrix = opjit_ir_contract_digit(c, p, of->blocks * pieces, of->matrices); /* one digit, no sum */
    c->matrix = opjit_ir_block_let(f, out, matrix);
    const ir_ref q = opjit_ir_contract_digit(c, p, pieces, of->blocks);
    opjit_ir_contract_set_k(c, out,
                            opjit_ir_block_let(f, out, contract_plus(c, q, opjit_ir_index(f, of->first_block))));
    c->side[CONTRACT_COLUMNS].first = c->side[CONTRACT_COLUMNS].first_tile = opjit_ir_index(f, 0);
    return opjit_ir_contract_digit(c, p, 1, pieces);
}

/* One tile of a block of k per iteration. */
static void share_tiles(contraction *c, block *stages, const shared_part *of)
{
    ir_func *f = c->f;
    const contract_side *s = &c->side[CONTRACT_COLUMNS];
    block body;
    const ir_ref piece = share_stage(c, of, of->tiles, &body);
    if (f->failed)
        return;
    const ir_ref n = opjit_ir_block_let(f, &body, contract_plus(c, piece, opjit_ir_index(f, of->first_tile)));
    pack_tile(c, &body, n, (of->first_tile + of->tiles) * s->tile > s->size);
    opjit_ir_block_add(f, stages, body.parent);
}

/* Some k of whole blocks per iteration, so that what is read is in the order of memory. */
static void share_rows(contraction *c, block *stages, const shared_part *of)
{
    enum { SOME = 32 };
    ir_func *f = c->f;
    const int64_t all = contract_most_k(c);
    block body;
    const ir_ref piece = share_stage(c, of, (all + SOME - 1) / SOME, &body);
    if (f->failed)
        return;
    const ir_ref first = contract_times(c, piece, SOME);
    ir_ref some = opjit_ir_index(f, SOME);
    if (all % SOME != 0)
        some = ir_make2(f, IR_IMIN, IR_INDEX, some, ir_make2(f, IR_ISUB, IR_INDEX, opjit_ir_index(f, all), first));
    pack_lines(c, &body, first, some, opjit_ir_index(f, of->tiles));
    opjit_ir_block_add(f, stages, body.parent);
}

void opjit_ir_contract_share_columns(contraction *c, block *stages)
{
    const contract_side *s = &c->side[CONTRACT_COLUMNS];
    const int64_t whole = s->size / s->tile;
    const int64_t matrices = opjit_ir_contract_matrices(c);
    if (!declare_temp(c, matrices, s->blocks * (s->block / s->tile)))
        return;
    c->is_ahead = c->r->around_count > 0;
    const int64_t blocks = contract_blocks_of_k(c),
                  rows = s->turned || c->bytes > 0 ? 0 : c->length / contract_most_k(c);
    if (whole > 0 && rows > 0)
        (s->apart ? share_tiles : share_rows)(c, stages, &(shared_part){ matrices, 0, rows, 0, whole });
    if (whole > 0 && rows < blocks)
        share_tiles(c, stages, &(shared_part){ matrices, rows, blocks - rows, 0, whole });
    if (whole * s->tile < s->size) /* the last one, partly zeros */
        share_tiles(c, stages, &(shared_part){ matrices, 0, blocks, whole, 1 });
    if (c->bytes > 0)
        opjit_ir_contract_share_sums(c, stages, matrices, s->blocks * (s->block / s->tile));
    c->is_ahead = false;
}

void opjit_ir_contract_pack_rows(contraction *c, block *list, ir_ref first, ir_ref in_block)
{
    ir_func *f = c->f;
    const contract_side *s = &c->side[CONTRACT_ROWS];
    block of_i, of_k;
    if (!s->packed)
        return;
    if (c->bytes > 0) {
        opjit_ir_contract_pack_row_words(c, list, first, in_block);
        return;
    }
    ir_ref rows = opjit_ir_index(f, s->whole ? s->block : s->tile);
    if (s->whole && !contract_is_even(s)) /* of the tiles that this block has */
        rows = contract_times(c, opjit_ir_contract_tiles_of(c, list, s), s->tile);
    const ir_ref i = contract_loop(c, list, rows, &of_i);
    ir_ref row = contract_plus(c, first, i);
    if (!contract_is_even(s))
        row = opjit_ir_block_let(f, &of_i, ir_make2(f, IR_IMIN, IR_INDEX, row, opjit_ir_index(f, s->size - 1)));
    const ir_ref k = contract_loop(c, &of_i, c->here_k, &of_k), at[2] = { i, k };
    const ir_ref value = opjit_ir_contract_factor(c, &of_k, CONTRACT_ROWS, row, contract_plus(c, c->first_k, k));
    opjit_ir_block_add(f, &of_k, opjit_ir_store(f, s->scratch, value, at));
}
