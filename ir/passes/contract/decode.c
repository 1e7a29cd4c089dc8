/* SPDX-License-Identifier: Apache-2.0 */
/* decode.c - few rows times a matrix that is computed of bytes, which place/byte_columns.c has copied as tiles of
 * columns: [tiles, k, columns of a tile], and what is the same for a block of k as [tiles, blocks of k, columns of a
 * tile].  Steps read both, and compute their columns.  Part of place.
 *
 *     for each tile of columns, in parallel; for each block of k of the sum:
 *         for each block of k of the matrix: for k, with hold: tile = fma(row, column of bytes, tile)
 *         total = total + tile */
#include "ir/passes/contract/contract.h"

/* Whether r is op(x, constant), *out: the constant. */
static bool is_digit(const ir_func *f, ir_ref r, ir_op op, ir_ref x, int64_t *out)
{
    if (ir_at(f, r)->op != op || ir_operand(f, r, 0) != x || !ir_is_index_const(f, ir_operand(f, r, 1)))
        return false;
    *out = ir_index_value(f, ir_operand(f, r, 1));
    return true;
}

/* Whether the load is of a copy of either kind. */
static bool is_copy(contraction *c, ir_ref load, ir_ref column, ir_ref k)
{
    const ir_func *f = c->f;
    const uint32_t count = ir_at(f, load)->count;
    int64_t tile, within, each;
    if (count < 2 || count > 3 || c->r->sources[opjit_ir_root(f, ir_at(f, load)->ref)].def != 0 ||
        !is_digit(f, ir_operand(f, load, 0), IR_IDIV, column, &tile) ||
        !is_digit(f, ir_operand(f, load, count - 1), IR_IMOD, column, &within) || tile != within ||
        (c->decoded != 0 && tile != c->decoded))
        return false;
    c->decoded = tile;
    if (opjit_ir_type_size((ir_type)ir_at(f, load)->type) == 1)
        return count == 3 && ir_operand(f, load, 1) == k;
    if (count == 2)
        return true;
    if (!is_digit(f, ir_operand(f, load, 1), IR_IDIV, k, &each) || (c->decoded_k != 0 && each != c->decoded_k))
        return false;
    c->decoded_k = each;
    return true;
}

void opjit_ir_contract_find_decoded(contraction *c)
{
    const ir_func *f = c->f;
    contract_side *columns = &c->side[CONTRACT_COLUMNS];
    if (columns->dimension < 0 || c->r->is_step || c->def.type != IR_F32)
        return;
    const ir_reach seen = opjit_ir_reach_one(c->f, ir_operand(f, ir_operand(f, c->statement, 0), columns->factor));
    const ir_ref column = opjit_ir_coordinate(f, c->statement, (uint32_t)columns->dimension);
    const ir_ref k = opjit_ir_reduced(f, c->statement);
    uint32_t bytes = 0;
    bool are_copies = true;
    for (uint32_t i = 0; i < seen.count; i++) {
        if (ir_at(f, seen.nodes[i])->op != IR_LOAD)
            continue;
        are_copies = are_copies && is_copy(c, seen.nodes[i], column, k);
        bytes += opjit_ir_type_size((ir_type)ir_at(f, seen.nodes[i])->type) == 1;
    }
    const int64_t size = c->def.block;
    c->decoded_k = c->decoded_k == 0 || c->decoded_k > size ? size : c->decoded_k;
    if (!are_copies || bytes != 1 || size % c->decoded_k != 0 || c->length % c->decoded_k != 0 ||
        columns->size % c->decoded != 0)
        c->decoded = 0;
}

void opjit_ir_contract_cut_decoded(contraction *c)
{
    contract_side *rows = &c->side[CONTRACT_ROWS], *columns = &c->side[CONTRACT_COLUMNS];
    rows->tile = rows->block = rows->size;
    rows->blocks = 1;
    columns->tile = columns->block = c->decoded;
    columns->blocks = columns->size / c->decoded;
}

/* The columns' factor in column j of the tile: `block_k` is the block of k of the matrix. */
static ir_ref column_at(contraction *c, ir_ref j, ir_ref all_k, ir_ref block_k)
{
    ir_func *f = c->f;
    const contract_side *columns = &c->side[CONTRACT_COLUMNS];
    const ir_ref factor = ir_operand(f, ir_operand(f, c->statement, 0), columns->factor);
    const ir_reach seen = opjit_ir_reach_one(f, factor);
    ir_map here = { 0 };
    for (uint32_t i = 0; i < seen.count && !f->failed; i++) {
        const ir_ref load = seen.nodes[i];
        if (ir_at(f, load)->op != IR_LOAD)
            continue;
        const bool is_byte = opjit_ir_type_size((ir_type)ir_at(f, load)->type) == 1;
        ir_ref at[3] = { columns->first_tile, is_byte ? all_k : block_k };
        at[ir_at(f, load)->count - 1] = j;
        ir_map_set(f, &here, load, opjit_ir_load(f, ir_at(f, load)->ref, at));
    }
    return opjit_ir_remake(f, &here, factor);
}

void opjit_ir_contract_decode(contraction *c, block *list, ir_ref i)
{
    ir_func *f = c->f;
    const contract_side *rows = &c->side[CONTRACT_ROWS], *columns = &c->side[CONTRACT_COLUMNS];
    const ir_ref each = opjit_ir_index(f, c->decoded_k);
    block of_g, of_k, inside;
    ir_ref at[2], x[2];
    const ir_ref blocks = opjit_ir_block_let(f, list, ir_make2(f, IR_IDIV, IR_INDEX, c->here_k, each));
    const ir_ref g = contract_loop(c, list, blocks, &of_g);
    const ir_ref first = opjit_ir_block_let(f, &of_g, contract_times(c, g, c->decoded_k));
    const ir_ref number =
        opjit_ir_block_let(f, &of_g, contract_plus(c, contract_times(c, c->q, c->def.block / c->decoded_k), g));
    const ir_ref k = contract_plus(c, first, contract_loop(c, &of_g, each, &of_k));
    const ir_ref all_k = contract_plus(c, c->first_k, k);
    opjit_ir_contract_over_tile(c, &of_k, at, &inside);
    x[rows->factor] = rows->packed
                          ? opjit_ir_load(f, rows->scratch, (ir_ref[]){ at[0], k })
                          : opjit_ir_contract_factor(c, &inside, CONTRACT_ROWS, contract_plus(c, i, at[0]), all_k);
    x[columns->factor] = column_at(c, at[1], all_k, number);
    const ir_ref sum = opjit_ir_contract_step(c, x[rows->factor], x[columns->factor], opjit_ir_load(f, c->tile, at));
    opjit_ir_contract_store(c, &inside, c->tile, sum, at);
    f->nodes[of_k.parent].hold = 1;
}
