/* SPDX-License-Identifier: Apache-2.0 */
/* contract_stream.c - what a block of k adds to few rows of columns that lie side by side, which are read once and as
 * they lie: several k of all columns of the block, row by row of the result.  Part of place. */
#include "ir/passes/contraction.h"

enum { AT_ONCE = 8 /* steps between a load and a store of a sum */ };

/* `steps` of each sum of the block for the rounds lo to hi, which begin at multiples of `steps`. */
static void add_rounds(contraction *c, block *list, ir_ref lo, ir_ref hi, int64_t steps)
{
    ir_func *f = c->f;
    const contract_side *rows = &c->side[CONTRACT_ROWS], *columns = &c->side[CONTRACT_COLUMNS];
    const ir_ref loop = opjit_ir_for(f, lo, hi, 1);
    block of_g = { .parent = loop }, inside;
    ir_ref at[2];
    opjit_ir_block_add(f, list, loop);
    const ir_ref first = contract_plus(c, c->first_k, contract_times(c, ir_at(f, loop)->ref, steps));
    opjit_ir_contract_loops(c, &of_g, rows->here, columns->here, at, &inside);
    const ir_ref i = contract_plus(c, rows->first, at[0]), j = contract_plus(c, columns->first, at[1]);
    ir_ref sum = opjit_ir_load(f, c->tile, at);
    for (int64_t s = 0; s < steps; s++) {
        const ir_ref k = contract_plus(c, first, opjit_ir_index(f, s));
        ir_ref x[2];
        x[rows->factor] = opjit_ir_contract_factor(c, &inside, CONTRACT_ROWS, i, k);
        x[columns->factor] = opjit_ir_contract_factor(c, &inside, CONTRACT_COLUMNS, j, k);
        sum = ir_expr3(f, IR_FMA, (ir_type)c->def.type, x[0], x[1], sum);
    }
    opjit_ir_contract_store(c, &inside, c->tile, sum, at);
}

void opjit_ir_contract_stream(contraction *c, block *list)
{
    ir_func *f = c->f;
    const contract_side *rows = &c->side[CONTRACT_ROWS], *columns = &c->side[CONTRACT_COLUMNS];
    const int64_t size = c->def.block, last = c->length % size; /* last: k of a block that is not whole; 0: none */
    ir_ref at[2];
    block inside;
    opjit_ir_contract_fill(c, list, c->tile, rows->here, columns->here, 0);
    const ir_ref at_once = opjit_ir_index(f, AT_ONCE);
    const ir_ref rounds = opjit_ir_block_let(f, list, ir_make2(f, IR_IDIV, IR_INDEX, c->here_k, at_once));
    if (c->length >= AT_ONCE && size >= AT_ONCE)
        add_rounds(c, list, opjit_ir_index(f, 0), rounds, AT_ONCE);
    if (last % AT_ONCE != 0 || (c->length >= size && size % AT_ONCE != 0))
        add_rounds(c, list, ir_make2(f, IR_IMUL, IR_INDEX, rounds, at_once), c->here_k, 1);
    if (c->total == 0)
        return;
    opjit_ir_contract_loops(c, list, rows->here, columns->here, at, &inside);
    const ir_ref before = opjit_ir_load(f, c->total, at);
    opjit_ir_contract_store(c, &inside, c->total,
                            ir_expr2(f, IR_ADD, (ir_type)c->def.type, before, opjit_ir_load(f, c->tile, at)), at);
}
