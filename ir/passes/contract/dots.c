/* SPDX-License-Identifier: Apache-2.0 */
/* dots.c - products of one or two rows with columns that lie apart, whose k are neighbours: a matrix,
 * transposed or not, times a vector, and single sums of products.  Nothing is copied; an iteration makes some columns,
 * each element of which is a chain of its own in a scalar register, in several blocks of k at a time.  Part of place.
 *
 *     for each group of blocks of k: sums = +0; for k, with the sums in registers: sums = fma(row, column, sums)
 *         totals = totals + sums, block after block
 *     the same for each block that is left, and store the results of the totals */
#include "ir/passes/contract/contract.h"

/* Three loops over blocks, rows and columns; at: their variables. */
static void loops_over(contraction *c, block *list, int64_t blocks, ir_ref *at, block *out)
{
    block of_g;
    at[0] = contract_loop(c, list, opjit_ir_index(c->f, blocks), &of_g);
    opjit_ir_contract_loops(c, &of_g, opjit_ir_index(c->f, c->side[CONTRACT_ROWS].tile),
                            opjit_ir_index(c->f, c->side[CONTRACT_COLUMNS].tile), at + 1, out);
}

/* Columns behind the last one are the last one again, and not stored. */
static ir_ref column_of(const contraction *c, ir_ref j)
{
    const contract_side *s = &c->side[CONTRACT_COLUMNS];
    const ir_ref own = contract_plus(c, s->first, j);
    if (s->size % s->tile == 0)
        return own;
    return ir_make2(c->f, IR_IMIN, IR_INDEX, own, opjit_ir_index(c->f, s->size - 1));
}

enum { STEPS = 16 /* of k in a round of the loop, which is short */ };

/* What one k adds, in so many blocks. */
static void add_step(contraction *c, block *list, uint32_t sums, int64_t blocks, ir_ref k)
{
    ir_func *f = c->f;
    const contract_side *rows = &c->side[CONTRACT_ROWS], *columns = &c->side[CONTRACT_COLUMNS];
    ir_ref at[3], x[2];
    block inside;
    loops_over(c, list, blocks, at, &inside);
    const ir_ref all_k = contract_plus(c, contract_plus(c, c->first_k, contract_times(c, at[0], c->def.block)), k);
    x[rows->factor] = opjit_ir_contract_factor(c, &inside, CONTRACT_ROWS, at[1], all_k);
    x[columns->factor] = opjit_ir_contract_factor(c, &inside, CONTRACT_COLUMNS, column_of(c, at[2]), all_k);
    const ir_ref sum = ir_dot_step(f, (ir_type)c->def.type, x[0], x[1], opjit_ir_load(f, sums, at));
    opjit_ir_contract_store(c, &inside, sums, sum, at);
}

/* So many whole blocks of k, or one of here_k, from first_k on. */
static void add_blocks(contraction *c, block *list, uint32_t sums, int64_t blocks)
{
    ir_func *f = c->f;
    const ir_type type = (ir_type)c->def.type;
    const bool whole = ir_is_index_const(f, c->here_k) && ir_index_value(f, c->here_k) % STEPS == 0;
    ir_ref at[3];
    block of_k, of_u, inside;
    loops_over(c, list, blocks, at, &inside);
    opjit_ir_contract_store(c, &inside, sums, opjit_ir_const(f, type, 0), at);
    if (whole) {
        const int64_t rounds = ir_index_value(f, c->here_k) / STEPS;
        const ir_ref round = contract_loop(c, list, opjit_ir_index(f, rounds), &of_k);
        const ir_ref u = contract_loop(c, &of_k, opjit_ir_index(f, STEPS), &of_u);
        add_step(c, &of_u, sums, blocks, contract_plus(c, contract_times(c, round, STEPS), u));
    } else {
        const ir_ref k = contract_loop(c, list, c->here_k, &of_k);
        add_step(c, &of_k, sums, blocks, k);
    }
    f->nodes[of_k.parent].hold = 1;
    loops_over(c, list, blocks, at, &inside);
    opjit_ir_contract_store(
        c, &inside, c->total,
        ir_expr2(f, IR_ADD, type, opjit_ir_load(f, c->total, at + 1), opjit_ir_load(f, sums, at)), at + 1);
}

static uint32_t declare_sums(contraction *c, int64_t blocks)
{
    const int64_t sizes[] = { blocks, c->side[CONTRACT_ROWS].tile, c->side[CONTRACT_COLUMNS].tile };
    return opjit_ir_contract_scratch(c, 3, sizes, 0);
}

void opjit_ir_contract_dots(contraction *c, block *list)
{
    ir_func *f = c->f;
    const contract_side *rows = &c->side[CONTRACT_ROWS], *columns = &c->side[CONTRACT_COLUMNS];
    const int64_t size = c->def.block, all = contract_blocks_of_k(c), groups = c->length / size / c->together;
    block of_q;
    c->total = opjit_ir_contract_scratch(c, 2, (int64_t[]){ rows->tile, columns->tile }, 0);
    opjit_ir_contract_fill(c, list, c->total, opjit_ir_index(f, rows->tile), opjit_ir_index(f, columns->tile),
                           ir_dot_total((ir_type)c->def.type));
    if (groups > 0) {
        const ir_ref q = contract_loop(c, list, opjit_ir_index(f, groups), &of_q);
        c->first_k = opjit_ir_block_let(f, &of_q, contract_times(c, q, size * c->together));
        c->here_k = opjit_ir_index(f, size);
        add_blocks(c, &of_q, declare_sums(c, c->together), c->together);
    }
    if (groups * c->together == all)
        return;
    const ir_ref rest = opjit_ir_for(f, opjit_ir_index(f, groups * c->together), opjit_ir_index(f, all), 1);
    of_q = (block){ .parent = rest };
    opjit_ir_block_add(f, list, rest);
    opjit_ir_contract_set_k(c, &of_q, ir_at(f, rest)->ref);
    add_blocks(c, &of_q, declare_sums(c, 1), 1);
}
