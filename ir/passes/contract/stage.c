/* SPDX-License-Identifier: Apache-2.0 */
/* stage.c - the stage of a product of two matrices.  Part of place.
 *
 *     for each block of rows and columns, in parallel
 *         for each block of k: tiles, or columns side by side
 *         store the results of the totals
 *
 * Before that, where several blocks of rows read the columns from a copy, or the sums of blocks of k are made apart: a
 * stage that makes these. */
#include "ir/passes/contract/contract.h"

enum {
    APART = 16, /* elements behind a row of sums, and of packed rows: they are not all in one set of a cache */
};

/* Where a kernel is for many sizes, the last rows have a lower tile if it is enough: one row would take as long as a
 * tile otherwise.  Of columns that are no constants, nor read in each step, few rows have loops of other kinds, and
 * ranges of their own.  Of rows of many images or sentences every second or fourth size has whole tiles alone. */
static bool has_low_tiles(const contraction *c)
{
    const contract_side *rows = &c->side[CONTRACT_ROWS];
    const ir_varying *varying =
        rows->dimension < 0 ? NULL : place_varying(c->r->varying, &c->out, (uint32_t)rows->dimension);
    const bool often_whole = varying != NULL && varying->unit % CONTRACT_LOWER == 0;
    return c->r->low_tiles && (c->once || c->r->is_step) && !contract_is_even(rows) && c->bytes == 0 &&
           rows->tile > CONTRACT_LOWER && !often_whole;
}

void opjit_ir_contract_declare(contraction *c)
{
    contract_side *rows = &c->side[CONTRACT_ROWS], *columns = &c->side[CONTRACT_COLUMNS];
    const int64_t k = contract_most_k(c);
    if (c->together > 0)
        return;
    if (c->streams) { /* nothing is packed */
        c->sums = opjit_ir_contract_scratch(c, 2, (int64_t[]){ rows->block, columns->block }, APART);
        if (c->length > c->def.block)
            c->total = opjit_ir_contract_scratch(c, 2, (int64_t[]){ rows->block, columns->block }, APART);
        c->tile = opjit_ir_contract_scratch(c, 2, (int64_t[]){ rows->tile, columns->tile }, 0);
        return;
    }
    if (columns->packed && !columns->shared)
        columns->scratch =
            opjit_ir_contract_column_scratch(c, 3, (int64_t[]){ columns->block / columns->tile, k, columns->tile });
    if (rows->packed)
        rows->scratch =
            opjit_ir_contract_scratch(c, 2, (int64_t[]){ rows->whole ? rows->block : rows->tile, k }, APART);
    if (c->total == 0 &&
        (c->length > c->def.block || !contract_is_even(rows) || !contract_is_even(columns) || c->bytes > 0))
        c->total = opjit_ir_contract_scratch(c, 2, (int64_t[]){ rows->block, columns->block }, APART);
    c->tile = opjit_ir_contract_scratch(c, 2, (int64_t[]){ rows->tile, columns->tile }, 0);
    c->low_tiles = has_low_tiles(c);
}

/* --- blocks ------------------------------------------------------------------------------------------------------- */

/* Which block of which matrix iteration p makes, along the columns first.  Blocks of a kernel for many sizes have few
 * rows: of one matrix all that read the same kept columns are made in turn, and these stay in the second cache. */
void opjit_ir_contract_set_block(contraction *c, block *list, ir_ref p, int64_t parts)
{
    ir_func *f = c->f;
    const contract_side *rows = &c->side[CONTRACT_ROWS], *columns = &c->side[CONTRACT_COLUMNS];
    const bool columns_first = c->r->general && c->once && parts == 1 && c->batch == 1;
    const int64_t inner = columns_first ? 1 : parts * columns->blocks;
    int64_t below = c->batch * rows->blocks * inner;
    for (uint32_t d = 0; d < c->out.rank; d++) {
        c->at[d] = opjit_ir_index(f, 0);
        if ((int32_t)d == rows->dimension || (int32_t)d == columns->dimension || c->out.sizes[d] == 1)
            continue;
        below /= (int64_t)c->out.sizes[d];
        c->at[d] = opjit_ir_contract_digit(c, p, below, (int64_t)c->out.sizes[d]);
    }
    if (columns->shared || c->rest != 0)
        opjit_ir_contract_set_matrix(c, list);
    const int64_t outer = columns_first ? rows->blocks : 1;
    opjit_ir_contract_set_side(c, list, CONTRACT_ROWS, opjit_ir_contract_digit(c, p, inner, rows->blocks));
    opjit_ir_contract_set_side(c, list, CONTRACT_COLUMNS, opjit_ir_contract_digit(c, p, outer, columns->blocks));
}

static void add_block(contraction *c, block *list)
{
    if (c->streams)
        opjit_ir_contract_stream(c, list);
    else
        opjit_ir_contract_tiles(c, list);
}

/* Whether the tiles of the last block of k can store the results: they are whole, and make them in registers. */
static bool ends_in_tiles(contraction *c)
{
    const contract_side *rows = &c->side[CONTRACT_ROWS], *columns = &c->side[CONTRACT_COLUMNS];
    const ir_ref sum = opjit_ir_const(c->f, (ir_type)c->def.type, 0);
    return c->direct && contract_is_even(rows) && contract_is_even(columns) &&
           opjit_ir_contract_fits_tile(c, sum, rows->first, columns->first, true);
}

/* Every block of k. */
void opjit_ir_contract_sums(contraction *c, block *list)
{
    ir_func *f = c->f;
    const int64_t blocks = contract_blocks_of_k(c);
    if (c->rest != 0)
        opjit_ir_contract_start_rest(c, list);
    if (blocks == 1) {
        opjit_ir_contract_set_k(c, list, opjit_ir_index(f, 0));
        add_block(c, list);
        return;
    }
    block of_q;
    if (c->split) {
        opjit_ir_contract_add_parts(c, list);
        return;
    }
    if (c->rest == 0 && !contract_sets_totals(c))
        opjit_ir_contract_fill(c, list, c->total, opjit_ir_index(f, c->side[CONTRACT_ROWS].block),
                               opjit_ir_index(f, c->side[CONTRACT_COLUMNS].block), ir_dot_total((ir_type)c->def.type));
    const bool apart = ends_in_tiles(c);
    const int64_t alike = apart ? blocks - 1 : blocks;
    if (alike > 1) {
        opjit_ir_contract_set_k(c, &of_q, contract_loop(c, list, opjit_ir_index(f, alike), &of_q));
        add_block(c, &of_q);
    } else {
        opjit_ir_contract_set_k(c, list, opjit_ir_index(f, 0));
        add_block(c, list);
    }
    if (!apart)
        return;
    opjit_ir_contract_set_k(c, list, opjit_ir_index(f, blocks - 1));
    c->ends = true;
    add_block(c, list);
}

/* Columns that are transposed at a time: a vector's. */
void opjit_ir_contract_declare_turn(contraction *c)
{
    const int64_t k = contract_most_k(c), tile = c->side[CONTRACT_COLUMNS].tile;
    /* Where sizes are samples, a whole tile, whose last columns then are no other loop than those of any tile. */
    const int64_t some = tile % c->lanes == 0 && !c->r->general ? c->lanes : tile;
    if (c->side[CONTRACT_COLUMNS].turned)
        c->turn = opjit_ir_contract_scratch(c, 2, (int64_t[]){ some, k }, APART);
}

void opjit_ir_contract_results(contraction *c, block *list)
{
    const contract_side *columns = &c->side[CONTRACT_COLUMNS];
    const uint32_t sums = c->total == 0 ? c->sums : c->total;
    block of_i, of_j;
    contract_zeros zeros;
    if (sums == 0 || c->ends)
        return;
    const ir_ref i = contract_loop(c, list, c->side[CONTRACT_ROWS].here, &of_i);
    opjit_ir_contract_row_zeros(c, &of_i, i, &zeros);
    const ir_ref j = contract_loop(c, &of_i, columns->here, &of_j);
    const ir_ref at = columns->again != 0 ? contract_plus(c, columns->again, j) : j;
    const ir_ref sum = opjit_ir_load(c->f, sums, (ir_ref[]){ i, at });
    opjit_ir_contract_result(c, &of_j, opjit_ir_contract_less_zeros(c, sum, &zeros, j),
                             contract_plus(c, c->side[CONTRACT_ROWS].first, i),
                             contract_plus(c, c->side[CONTRACT_COLUMNS].first, j));
}

bool opjit_ir_contract_write(contraction *c, block *stages)
{
    ir_func *f = c->f;
    contract_side *rows = &c->side[CONTRACT_ROWS], *columns = &c->side[CONTRACT_COLUMNS];
    block made = { 0 }, ahead = { 0 }; /* which nobody runs where the product is refused in the end */
    c->in = (inliner){ .f = f,
                       .sources = c->r->sources,
                       .private_views = c->r->private_views || columns->shared || c->split };
    opjit_ir_contract_declare_turn(c);
    if (columns->shared)
        opjit_ir_contract_share_columns(c, &ahead);
    opjit_ir_contract_declare(c);
    c->direct = contract_sets_totals(c) && c->bytes == 0 && c->together == 0 && c->decoded == 0 && !c->r->general;
    if (c->split)
        opjit_ir_contract_make_parts(c, &made);
    const ir_ref stage =
        opjit_ir_stage(f, opjit_ir_index(f, 0), opjit_ir_index(f, c->batch * rows->blocks * columns->blocks), 1);
    if (f->failed)
        return false;
    block body = { .parent = stage };
    opjit_ir_contract_set_block(c, &body, ir_at(f, stage)->ref, 1);
    if (c->bytes > 0)
        opjit_ir_contract_byte_sums(c, &body);
    if (c->together > 0)
        opjit_ir_contract_dots(c, &body);
    else
        opjit_ir_contract_sums(c, &body);
    opjit_ir_contract_results(c, &body);
    if (c->in.refused || f->failed)
        return false;
    opjit_ir_block_move(f, &ahead, c->r->is_step ? c->r->ahead : stages);
    opjit_ir_block_add(f, &made, stage);
    opjit_ir_block_move(f, &made, stages);
    if (c->r->count > 1)
        f->tensors[c->def.ref].role = IR_VALUE;
    return true;
}
