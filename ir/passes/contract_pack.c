/* SPDX-License-Identifier: Apache-2.0 */
/* contract_pack.c - copies the parts of both factors that a block's tiles read to scratch, in the order in which they
 * are read: rows of one tile, and tiles of columns.  Casts and whatever else is computed of the factors' elements is
 * done here, once an element of the block.  Part of place.
 *
 * Tiles are whole: behind the last row is the last row again, behind the last column are zeros; nothing of them is
 * stored in the end. */
#include "ir/passes/contraction.h"

/* Tiles from number lo to hi; partial: columns behind the last one are zeros. */
static void pack_tiles(contraction *c, block *list, ir_ref lo, ir_ref hi, bool partial)
{
    ir_func *f = c->f;
    const contract_side *s = &c->side[CONTRACT_COLUMNS];
    const ir_ref loop = opjit_ir_for(f, lo, hi, 1);
    block of_n = { .parent = loop }, of_k, of_j;
    opjit_ir_block_add(f, list, loop);
    const ir_ref n = ir_at(f, loop)->ref;
    const ir_ref first = opjit_ir_block_let(f, &of_n, contract_plus(c, s->first, contract_times(c, n, s->tile)));
    const ir_ref k = contract_loop(c, &of_n, c->here_k, &of_k);
    const ir_ref j = contract_loop(c, &of_k, opjit_ir_index(f, s->tile), &of_j);
    const ir_ref own = contract_plus(c, first, j), at[3] = { n, k, j };
    ir_ref value = opjit_ir_contract_factor(c, &of_j, CONTRACT_COLUMNS, own, contract_plus(c, c->first_k, k));
    if (partial) {
        const ir_ref inside = ir_make2(f, IR_LT, IR_BOOL, own, opjit_ir_index(f, s->size));
        value = ir_make3(f, IR_SELECT, IR_NONE, inside, value, opjit_ir_const(f, (ir_type)c->def.type, 0));
    }
    opjit_ir_block_add(f, &of_j, opjit_ir_store(f, s->scratch, value, at));
}

void opjit_ir_contract_pack_columns(contraction *c, block *list)
{
    ir_func *f = c->f;
    const contract_side *s = &c->side[CONTRACT_COLUMNS];
    if (!s->packed)
        return;
    const ir_ref tile = opjit_ir_index(f, s->tile);
    const ir_ref whole = opjit_ir_block_let(f, list, ir_make2(f, IR_IDIV, IR_INDEX, s->here, tile));
    pack_tiles(c, list, opjit_ir_index(f, 0), whole, false);
    if (s->size % s->tile == 0)
        return;
    const ir_ref up = contract_plus(c, s->here, opjit_ir_index(f, s->tile - 1));
    pack_tiles(c, list, whole, opjit_ir_block_let(f, list, ir_make2(f, IR_IDIV, IR_INDEX, up, tile)), true);
}

void opjit_ir_contract_pack_rows(contraction *c, block *list, ir_ref first)
{
    ir_func *f = c->f;
    const contract_side *s = &c->side[CONTRACT_ROWS];
    block of_i, of_k;
    if (!s->packed)
        return;
    const ir_ref i = contract_loop(c, list, opjit_ir_index(f, s->tile), &of_i);
    ir_ref row = contract_plus(c, first, i);
    if (!contract_is_even(s))
        row = opjit_ir_block_let(f, &of_i, ir_make2(f, IR_IMIN, IR_INDEX, row, opjit_ir_index(f, s->size - 1)));
    const ir_ref k = contract_loop(c, &of_i, c->here_k, &of_k), at[2] = { i, k };
    const ir_ref value = opjit_ir_contract_factor(c, &of_k, CONTRACT_ROWS, row, contract_plus(c, c->first_k, k));
    opjit_ir_block_add(f, &of_k, opjit_ir_store(f, s->scratch, value, at));
}
