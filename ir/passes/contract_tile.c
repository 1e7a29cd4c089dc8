/* SPDX-License-Identifier: Apache-2.0 */
/* contract_tile.c - writes the stage of a product of two matrices.  Part of place.
 *
 *     for each block of rows and columns, in parallel
 *         for each block of k
 *             pack the columns; for each tile of rows: pack them; for each tile of columns:
 *                 tile = +0; for k, with the tile in registers: tile = fma(row, column, tile); total = total + tile
 *         store the results of the totals
 *
 * The sums of blocks start from -0, which changes nothing: a block may be -0, and +0 would lose that.  Where there is one
 * block of k, and no tile is partial, the results are stored from the tile. */
#include "ir/passes/contract.h"

#include <string.h>

enum { APART = 16 /* elements behind a row of totals, and of packed rows: they are not all in one set of a cache */ };

static uint32_t scratch(contraction *c, uint32_t rank, const int64_t *sizes, int64_t apart)
{
    ir_tensor t = { .role = IR_SCRATCH, .type = (ir_type)c->def.type, .rank = rank, .align = 64 };
    for (uint32_t d = 0; d < rank; d++)
        t.sizes[d] = (uint64_t)sizes[d];
    opjit_ir_dense_strides(&t);
    if (rank == 2 && t.sizes[0] > 1)
        t.strides[0] += (uint64_t)apart;
    if (!opjit_ir_span_bytes(&t, &t.bytes))
        return 0;
    return opjit_ir_tensor(c->f, &t);
}

static void declare_scratch(contraction *c)
{
    contract_side *rows = &c->side[CONTRACT_ROWS], *columns = &c->side[CONTRACT_COLUMNS];
    const int64_t k = c->length < c->def.block ? c->length : c->def.block;
    if (columns->packed)
        columns->scratch = scratch(c, 3, (int64_t[]){ columns->block / columns->tile, k, columns->tile }, 0);
    if (rows->packed)
        rows->scratch = scratch(c, 2, (int64_t[]){ rows->tile, k }, APART);
    if (c->length > c->def.block || !contract_is_even(rows) || !contract_is_even(columns))
        c->total = scratch(c, 2, (int64_t[]){ rows->block, columns->block }, APART);
    c->tile = scratch(c, 2, (int64_t[]){ rows->tile, columns->tile }, 0);
}

/* --- tiles -------------------------------------------------------------------------------------------------------- */

/* Two loops over the tile, or over as many rows and columns; *at: their variables. */
static void over_tile(contraction *c, block *list, ir_ref rows, ir_ref columns, ir_ref *at, block *out)
{
    block of_i;
    at[0] = contract_loop(c, list, rows, &of_i);
    at[1] = contract_loop(c, &of_i, columns, out);
}

static void over_whole_tile(contraction *c, block *list, ir_ref *at, block *out)
{
    over_tile(c, list, opjit_ir_index(c->f, c->side[CONTRACT_ROWS].tile),
              opjit_ir_index(c->f, c->side[CONTRACT_COLUMNS].tile), at, out);
}

static void put(contraction *c, block *list, uint32_t tensor, ir_ref value, const ir_ref *at)
{
    opjit_ir_block_add(c->f, list, opjit_ir_store(c->f, tensor, value, at));
}

static void fill(contraction *c, block *list, uint32_t tensor, ir_ref rows, ir_ref columns, uint64_t bits)
{
    ir_ref at[2];
    block inside;
    over_tile(c, list, rows, columns, at, &inside);
    put(c, &inside, tensor, opjit_ir_const(c->f, (ir_type)c->def.type, bits), at);
}

/* Stores the result in row i and column j, which is `sum`, in memory or as the output that reads it. */
static void add_result(contraction *c, block *list, ir_ref sum, ir_ref i, ir_ref j)
{
    ir_func *f = c->f;
    const ir_ref own[CONTRACT_SIDES] = { i, j };
    ir_ref at[9];
    memcpy(at, c->at, sizeof at);
    for (uint32_t s = 0; s < CONTRACT_SIDES; s++)
        if (c->side[s].dimension >= 0)
            at[c->side[s].dimension] = own[s];
    if (c->r->count == 1) {
        put(c, list, c->def.ref, sum, at);
        return;
    }
    inline_source *source = &c->r->sources[c->def.ref];
    const ir_ref output = c->r->members[1].statement, let = opjit_ir_let(f, sum);
    opjit_ir_block_add(f, list, let);
    source->row_value = let;
    c->in.row_count = c->out.rank < 8 ? c->out.rank : 8;
    memcpy(c->in.rows, at, c->in.row_count * sizeof *at);
    const ir_ref value = opjit_ir_share(f, list, opjit_ir_inline(&c->in, output, c->out.rank, at));
    c->in.row_count = 0;
    source->row_value = 0;
    put(c, list, f->failed ? 0 : ir_at(f, output)->ref, value, at);
}

/* The loop over the block of k, with the tile in registers; i, j: its first row and column in the whole. */
static void add_products(contraction *c, block *list, ir_ref i, ir_ref j, ir_ref n)
{
    ir_func *f = c->f;
    const contract_side *rows = &c->side[CONTRACT_ROWS], *columns = &c->side[CONTRACT_COLUMNS];
    ir_ref at[2], x[2];
    block of_k, inside;
    const ir_ref k = contract_loop(c, list, c->here_k, &of_k), all_k = contract_plus(c, c->first_k, k);
    over_whole_tile(c, &of_k, at, &inside);
    x[rows->factor] = rows->packed
                          ? opjit_ir_load(f, rows->scratch, (ir_ref[]){ at[0], k })
                          : opjit_ir_contract_factor(c, &inside, CONTRACT_ROWS, contract_plus(c, i, at[0]), all_k);
    x[columns->factor] =
        columns->packed ? opjit_ir_load(f, columns->scratch, (ir_ref[]){ n, k, at[1] })
                        : opjit_ir_contract_factor(c, &inside, CONTRACT_COLUMNS, contract_plus(c, j, at[1]), all_k);
    const ir_ref before = opjit_ir_load(f, c->tile, at);
    put(c, &inside, c->tile, ir_expr3(f, IR_FMA, (ir_type)c->def.type, x[0], x[1], before), at);
    f->nodes[of_k.parent].hold = 1;
}

/* The tile in row i and column j of the block, which are tiles m and n of it. */
static void add_tile(contraction *c, block *list, ir_ref i, ir_ref n)
{
    ir_func *f = c->f;
    const contract_side *rows = &c->side[CONTRACT_ROWS], *columns = &c->side[CONTRACT_COLUMNS];
    const ir_ref j = opjit_ir_block_let(f, list, contract_times(c, n, columns->tile));
    const ir_ref all_i = contract_plus(c, rows->first, i), all_j = contract_plus(c, columns->first, j);
    ir_ref at[2];
    block inside;
    fill(c, list, c->tile, opjit_ir_index(f, rows->tile), opjit_ir_index(f, columns->tile), 0);
    add_products(c, list, all_i, all_j, n);
    over_whole_tile(c, list, at, &inside);
    const ir_ref sum = opjit_ir_load(f, c->tile, at);
    if (c->total == 0) {
        add_result(c, &inside, sum, contract_plus(c, all_i, at[0]), contract_plus(c, all_j, at[1]));
        return;
    }
    const ir_ref to[2] = { contract_plus(c, i, at[0]), contract_plus(c, j, at[1]) };
    const bool single = c->length <= c->def.block;
    put(c, &inside, c->total,
        single ? sum : ir_expr2(f, IR_ADD, (ir_type)c->def.type, opjit_ir_load(f, c->total, to), sum), to);
}

/* How many tiles the side of the block has. */
static ir_ref tiles_of(contraction *c, block *list, const contract_side *s)
{
    const ir_ref up = contract_plus(c, s->here, opjit_ir_index(c->f, s->tile - 1));
    return opjit_ir_block_let(c->f, list, ir_make2(c->f, IR_IDIV, IR_INDEX, up, opjit_ir_index(c->f, s->tile)));
}

static void add_tiles(contraction *c, block *list)
{
    ir_func *f = c->f;
    const contract_side *rows = &c->side[CONTRACT_ROWS];
    block of_m, of_n;
    opjit_ir_contract_pack_columns(c, list);
    const ir_ref n_tiles = tiles_of(c, list, &c->side[CONTRACT_COLUMNS]);
    const ir_ref m = contract_loop(c, list, tiles_of(c, list, rows), &of_m);
    const ir_ref i = opjit_ir_block_let(f, &of_m, contract_times(c, m, rows->tile));
    opjit_ir_contract_pack_rows(c, &of_m, contract_plus(c, rows->first, i));
    const ir_ref n = contract_loop(c, &of_m, n_tiles, &of_n);
    add_tile(c, &of_n, i, n);
}

/* --- blocks ------------------------------------------------------------------------------------------------------- */

/* Digit number p / below of the stage's blocks, of `size` values. */
static ir_ref digit(const contraction *c, ir_ref p, int64_t below, int64_t size)
{
    ir_func *f = c->f;
    if (size == 1)
        return opjit_ir_index(f, 0);
    return ir_make2(f, IR_IMOD, IR_INDEX, ir_make2(f, IR_IDIV, IR_INDEX, p, opjit_ir_index(f, below)),
                    opjit_ir_index(f, size));
}

/* Where the stage's block begins, and how much of it there is. */
static void set_side(contraction *c, block *list, uint32_t side, ir_ref number)
{
    ir_func *f = c->f;
    contract_side *s = &c->side[side];
    const ir_ref whole = opjit_ir_index(f, s->block);
    s->first = opjit_ir_block_let(f, list, contract_times(c, number, s->block));
    if (contract_is_even(s))
        s->here = whole;
    else
        s->here = opjit_ir_block_let(f, list,
                                     ir_make2(f, IR_IMIN, IR_INDEX, whole,
                                              ir_make2(f, IR_ISUB, IR_INDEX, opjit_ir_index(f, s->size), s->first)));
}

/* Which block of which matrix iteration p makes. */
static void set_block(contraction *c, block *list, ir_ref p)
{
    ir_func *f = c->f;
    const contract_side *rows = &c->side[CONTRACT_ROWS], *columns = &c->side[CONTRACT_COLUMNS];
    int64_t below = c->batch * rows->blocks * columns->blocks;
    for (uint32_t d = 0; d < c->out.rank; d++) {
        c->at[d] = opjit_ir_index(f, 0);
        if ((int32_t)d == rows->dimension || (int32_t)d == columns->dimension || c->out.sizes[d] == 1)
            continue;
        below /= (int64_t)c->out.sizes[d];
        c->at[d] = digit(c, p, below, (int64_t)c->out.sizes[d]);
    }
    set_side(c, list, CONTRACT_ROWS, digit(c, p, columns->blocks, rows->blocks));
    set_side(c, list, CONTRACT_COLUMNS, digit(c, p, 1, columns->blocks));
}

/* Every block of k. */
static void add_sums(contraction *c, block *list)
{
    ir_func *f = c->f;
    const int64_t size = c->def.block, blocks = (c->length + size - 1) / size;
    c->first_k = opjit_ir_index(f, 0);
    c->here_k = opjit_ir_index(f, c->length < size ? c->length : size);
    if (blocks == 1) {
        add_tiles(c, list);
        return;
    }
    block of_q;
    const uint64_t negative = UINT64_C(1) << (8 * opjit_ir_type_size((ir_type)c->def.type) - 1);
    fill(c, list, c->total, opjit_ir_index(f, c->side[CONTRACT_ROWS].block),
         opjit_ir_index(f, c->side[CONTRACT_COLUMNS].block), negative);
    const ir_ref q = contract_loop(c, list, opjit_ir_index(f, blocks), &of_q);
    c->first_k = opjit_ir_block_let(f, &of_q, contract_times(c, q, size));
    if (c->length % size != 0) {
        const ir_ref rest = ir_make2(f, IR_ISUB, IR_INDEX, opjit_ir_index(f, c->length), c->first_k);
        c->here_k = opjit_ir_block_let(f, &of_q, ir_make2(f, IR_IMIN, IR_INDEX, c->here_k, rest));
    }
    add_tiles(c, &of_q);
}

bool opjit_ir_contract_write(contraction *c, block *stages)
{
    ir_func *f = c->f;
    contract_side *rows = &c->side[CONTRACT_ROWS], *columns = &c->side[CONTRACT_COLUMNS];
    declare_scratch(c);
    const ir_ref stage =
        opjit_ir_stage(f, opjit_ir_index(f, 0), opjit_ir_index(f, c->batch * rows->blocks * columns->blocks), 1);
    if (f->failed)
        return false;
    block body = { .parent = stage };
    c->in = (inliner){ .f = f, .sources = c->r->sources, .private_views = c->r->private_views };
    set_block(c, &body, ir_at(f, stage)->ref);
    add_sums(c, &body);
    if (c->total != 0) {
        ir_ref at[2];
        block inside;
        over_tile(c, &body, rows->here, columns->here, at, &inside);
        add_result(c, &inside, opjit_ir_load(f, c->total, at), contract_plus(c, rows->first, at[0]),
                   contract_plus(c, columns->first, at[1]));
    }
    if (c->in.refused || f->failed)
        return false;
    opjit_ir_block_add(f, stages, stage);
    if (c->r->count > 1)
        f->tensors[c->def.ref].role = IR_VALUE;
    return true;
}
