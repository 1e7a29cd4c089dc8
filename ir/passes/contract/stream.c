/* SPDX-License-Identifier: Apache-2.0 */
/* stream.c - what a block of k adds to few rows of columns that lie side by side, which are read once and as
 * they lie.  Part of place.  Tiles of sums take some steps each, in the order of memory; the rows that they read
 * meanwhile are as many streams.  For a single row, and where a tile would be partial, some steps are made of all
 * columns of the block at a time.  Where blocks of k are split, an iteration of a stage of its own makes the sums of
 * one of them. */
#include "ir/passes/contract/contract.h"

enum {
    AT_ONCE = 8, /* steps between a load and a store of a sum */
};

/* `steps` of each sum of the block for the rounds lo to hi, which begin at multiples of `steps`. */
static void add_rounds(contraction *c, block *list, ir_ref lo, ir_ref hi, int64_t steps)
{
    ir_func *f = c->f;
    const contract_side *rows = &c->side[CONTRACT_ROWS], *columns = &c->side[CONTRACT_COLUMNS];
    const ir_ref loop = opjit_ir_for(f, lo, hi, 1);
    block of_g = { .parent = loop }, of_i, inside;
    ir_ref at[2], row[AT_ONCE];
    opjit_ir_block_add(f, list, loop);
    const ir_ref first = contract_plus(c, c->first_k, contract_times(c, ir_at(f, loop)->ref, steps));
    at[0] = contract_loop(c, &of_g, rows->here, &of_i);
    const ir_ref i = contract_plus(c, rows->first, at[0]);
    for (int64_t s = 0; s < steps; s++) { /* lets: the rows may be in scratch, which no loop reads ahead */
        const ir_ref k = contract_plus(c, first, opjit_ir_index(f, s));
        row[s] = opjit_ir_block_let(f, &of_i, opjit_ir_contract_factor(c, &of_i, CONTRACT_ROWS, i, k));
    }
    at[1] = contract_loop(c, &of_i, columns->here, &inside);
    const ir_ref j = contract_plus(c, columns->first, at[1]);
    ir_ref sum = opjit_ir_load(f, c->sums, at);
    for (int64_t s = 0; s < steps; s++) {
        const ir_ref k = contract_plus(c, first, opjit_ir_index(f, s));
        ir_ref x[2];
        x[rows->factor] = row[s];
        x[columns->factor] = opjit_ir_contract_factor(c, &inside, CONTRACT_COLUMNS, j, k);
        sum = ir_dot_step(f, (ir_type)c->def.type, x[0], x[1], sum);
    }
    opjit_ir_contract_store(c, &inside, c->sums, sum, at);
}

/* The sums from and to a tile, whose loop over k makes the steps between them.  What is computed of the rows' elements
 * is copied for all tiles of columns. */
static void add_tiles(contraction *c, block *list)
{
    ir_func *f = c->f;
    contract_side *rows = &c->side[CONTRACT_ROWS];
    const contract_side *columns = &c->side[CONTRACT_COLUMNS];
    const ir_ref steps = opjit_ir_index(f, c->steps), first_k = c->first_k, here_k = c->here_k;
    const int64_t most = c->length < c->def.block ? c->length : c->def.block;
    block of_g, of_n, of_m, inside;
    ir_ref at[2];
    const ir_ref round_up = contract_plus(c, here_k, opjit_ir_index(f, c->steps - 1));
    const ir_ref rounds = opjit_ir_block_let(f, list, ir_make2(f, IR_IDIV, IR_INDEX, round_up, steps));
    const ir_ref g = contract_loop(c, list, rounds, &of_g), done = contract_times(c, g, c->steps);
    c->first_k = opjit_ir_block_let(f, &of_g, contract_plus(c, first_k, done));
    c->here_k = steps;
    if (most % c->steps != 0 || c->length % most != 0) /* so that places in a shorter last block are seen to exist */
        c->here_k = opjit_ir_block_let(
            f, &of_g, ir_make2(f, IR_IMIN, IR_INDEX, steps, ir_make2(f, IR_ISUB, IR_INDEX, here_k, done)));
    if (rows->packed)
        rows->scratch = opjit_ir_contract_scratch(c, 2, (int64_t[]){ rows->block, c->steps }, 0);
    opjit_ir_contract_pack_rows(c, &of_g, rows->first, opjit_ir_index(f, 0));
    const ir_ref tiles = ir_make2(f, IR_IDIV, IR_INDEX, columns->here, opjit_ir_index(f, columns->tile));
    const ir_ref n = contract_loop(c, &of_g, opjit_ir_block_let(f, &of_g, tiles), &of_n);
    const ir_ref j = opjit_ir_block_let(f, &of_n, contract_times(c, n, columns->tile));
    const ir_ref m = contract_loop(c, &of_n, opjit_ir_index(f, rows->block / rows->tile), &of_m);
    const ir_ref i = opjit_ir_block_let(f, &of_m, contract_times(c, m, rows->tile));
    opjit_ir_contract_over_tile(c, &of_m, at, &inside);
    const ir_ref from[2] = { contract_plus(c, i, at[0]), contract_plus(c, j, at[1]) };
    opjit_ir_contract_store(c, &inside, c->tile, opjit_ir_load(f, c->sums, from), at);
    opjit_ir_contract_products(c, &of_m, rows->packed ? i : contract_plus(c, rows->first, i),
                               contract_plus(c, columns->first, j), n);
    opjit_ir_contract_over_tile(c, &of_m, at, &inside);
    const ir_ref to[2] = { contract_plus(c, i, at[0]), contract_plus(c, j, at[1]) };
    opjit_ir_contract_store(c, &inside, c->sums, opjit_ir_load(f, c->tile, at), to);
    c->first_k = first_k;
    c->here_k = here_k;
}

/* The sums element by element. */
static void add_elements(contraction *c, block *list)
{
    ir_func *f = c->f;
    const int64_t size = c->def.block, last = c->length % size; /* last: k of a block that is not whole; 0: none */
    const ir_ref at_once = opjit_ir_index(f, AT_ONCE);
    const ir_ref rounds = opjit_ir_block_let(f, list, ir_make2(f, IR_IDIV, IR_INDEX, c->here_k, at_once));
    if (c->length >= AT_ONCE && size >= AT_ONCE)
        add_rounds(c, list, opjit_ir_index(f, 0), rounds, AT_ONCE);
    if (last % AT_ONCE != 0 || (c->length >= size && size % AT_ONCE != 0))
        add_rounds(c, list, ir_make2(f, IR_IMUL, IR_INDEX, rounds, at_once), c->here_k, 1);
}

/* The sums of the block of k. */
static void make_sums(contraction *c, block *list)
{
    const contract_side *rows = &c->side[CONTRACT_ROWS], *columns = &c->side[CONTRACT_COLUMNS];
    opjit_ir_contract_fill(c, list, c->sums, rows->here, columns->here, 0);
    if (rows->size > 1 && contract_is_even(rows) && rows->blocks == 1 && columns->size % columns->tile == 0)
        add_tiles(c, list);
    else
        add_elements(c, list);
}

/* total = total + sum, where `from`, of c->sums or the parts, is at up to two coordinates and those of the block. */
static void add_to_total(contraction *c, block *list, uint32_t from, const ir_ref *before, uint32_t count)
{
    ir_func *f = c->f;
    ir_ref at[2], there[4];
    block inside;
    opjit_ir_contract_loops(c, list, c->side[CONTRACT_ROWS].here, c->side[CONTRACT_COLUMNS].here, at, &inside);
    for (uint32_t i = 0; i < count; i++)
        there[i] = before[i];
    for (uint32_t i = 0; i < CONTRACT_SIDES; i++)
        there[count + i] = count > 0 ? contract_plus(c, c->side[i].first, at[i]) : at[i];
    const ir_ref total = opjit_ir_load(f, c->total, at), sum = opjit_ir_load(f, from, there);
    opjit_ir_contract_store(c, &inside, c->total, ir_expr2(f, IR_ADD, (ir_type)c->def.type, total, sum), at);
}

void opjit_ir_contract_stream(contraction *c, block *list)
{
    make_sums(c, list);
    if (c->total != 0)
        add_to_total(c, list, c->sums, NULL, 0);
}

/* --- blocks of k apart -------------------------------------------------------------------------------------------- */

void opjit_ir_contract_make_parts(contraction *c, block *stages)
{
    ir_func *f = c->f;
    const contract_side *rows = &c->side[CONTRACT_ROWS], *columns = &c->side[CONTRACT_COLUMNS];
    const int64_t blocks = contract_blocks_of_k(c), each = blocks * columns->blocks;
    ir_tensor t = { .role = IR_TEMP, .type = (ir_type)c->def.type, .rank = 4, .align = 64 };
    const int64_t sizes[] = { c->batch, blocks, rows->size, columns->size };
    ir_ref at[2];
    block inside;
    for (uint32_t d = 0; d < t.rank; d++)
        t.sizes[d] = (uint64_t)sizes[d];
    opjit_ir_dense_strides(&t);
    if (!opjit_ir_span_bytes(&t, &t.bytes))
        return;
    c->parts = opjit_ir_tensor(f, &t);
    const ir_ref stage =
        opjit_ir_stage(f, opjit_ir_index(f, 0), opjit_ir_index(f, c->batch * rows->blocks * each), 1);
    if (f->failed)
        return;
    block body = { .parent = stage };
    const ir_ref p = ir_at(f, stage)->ref;
    opjit_ir_contract_set_block(c, &body, p, blocks);
    const ir_ref matrix = opjit_ir_block_let(f, &body, opjit_ir_contract_digit(c, p, rows->blocks * each, c->batch));
    opjit_ir_contract_set_k(c, &body,
                            opjit_ir_block_let(f, &body, opjit_ir_contract_digit(c, p, columns->blocks, blocks)));
    make_sums(c, &body);
    opjit_ir_contract_loops(c, &body, rows->here, columns->here, at, &inside);
    const ir_ref to[] = { matrix, c->q, contract_plus(c, rows->first, at[0]), contract_plus(c, columns->first, at[1]) };
    opjit_ir_contract_store(c, &inside, c->parts, opjit_ir_load(f, c->sums, at), to);
    opjit_ir_block_add(f, stages, stage);
}

/* The number of the matrix, of all of the batch. */
static ir_ref number_of(const contraction *c)
{
    ir_ref number = opjit_ir_index(c->f, 0);
    for (uint32_t d = 0; d < c->out.rank; d++)
        if ((int32_t)d != c->side[CONTRACT_ROWS].dimension && (int32_t)d != c->side[CONTRACT_COLUMNS].dimension)
            number = contract_plus(c, contract_times(c, number, (int64_t)c->out.sizes[d]), c->at[d]);
    return number;
}

void opjit_ir_contract_add_parts(contraction *c, block *list)
{
    ir_func *f = c->f;
    block of_q;
    opjit_ir_contract_fill(c, list, c->total, c->side[CONTRACT_ROWS].here, c->side[CONTRACT_COLUMNS].here,
                           ir_dot_total((ir_type)c->def.type));
    const ir_ref matrix = opjit_ir_block_let(f, list, number_of(c));
    const ir_ref q = contract_loop(c, list, opjit_ir_index(f, contract_blocks_of_k(c)), &of_q);
    add_to_total(c, &of_q, c->parts, (ir_ref[]){ matrix, q }, 2);
}
