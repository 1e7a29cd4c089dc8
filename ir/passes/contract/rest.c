/* SPDX-License-Identifier: Apache-2.0 */
/* rest.c - steps of a product whose row has one value from some k on, as softmax makes it behind a causal
 * mask.  Part of place.
 *
 * Where that value is +0, what such steps do to a sum does not depend on the row, but on the columns alone: it becomes
 * NaN where one of their elements is infinite or NaN; else a sum of -0 becomes +0 where one of them is above 0 or +0,
 * or where all of a block of k is such steps; nothing changes else.  So a stage before makes, of the columns from every
 * few k on, the number that does this where it is added:
 *
 *     rest[last group + 1] = -0; rest[g] = rest[g + 1] + 0 * (each element of group g)
 *
 * A tile of rows has as steps the k up to the last row's own, and totals that start at the rest; with a row that is
 * another value behind (NaN, as where no key counts), all k and -0.  Where values behind may differ, as with a mask
 * that is added, each row is looked through for such a value.  The bits are those of all steps. */
#include "ir/passes/contract/contract.h"

enum {
    GROUP = 8,      /* k, which may be one less step each; fewer where these are not whole, one of samples' sizes */
    SEEN = 32,      /* likewise where rows are looked through behind: lanes of accumulators */
    LEAST_PART = 8, /* one of so many steps is to be left out */
};

static int64_t group_of(const contraction *c)
{
    int64_t size = c->not_zero != 0 ? SEEN : c->r->general ? 1 : GROUP;
    while (c->length % size != 0)
        size /= 2;
    return size;
}

static int64_t groups_of(const contraction *c)
{
    return c->length / group_of(c);
}

static bool is_worth(const contraction *c)
{
    const int64_t mean = c->behind + c->side[CONTRACT_ROWS].size / 2;
    return c->behind < c->length && LEAST_PART * (c->length - mean) >= c->length;
}

static ir_type bits_of(const contraction *c)
{
    return opjit_ir_type_size((ir_type)c->def.type) == 4 ? IR_U32 : IR_U64;
}

void opjit_ir_contract_look_behind(contraction *c, block *list, ir_ref i, ir_ref row)
{
    ir_func *f = c->f;
    const ir_type bits = bits_of(c);
    ir_tensor t = { .role = IR_SCRATCH, .type = bits, .rank = 1, .strides = { 1 }, .align = 64,
                    .sizes = { (uint64_t)c->side[CONTRACT_ROWS].block } };
    if (!ir_is_float((ir_type)c->def.type) || c->length % SEEN != 0 || !is_worth(c) ||
        !opjit_ir_span_bytes(&t, &t.bytes))
        return;
    c->not_zero = opjit_ir_tensor(f, &t);
    const ir_ref up = ir_make2(f, IR_UP, IR_INDEX, contract_plus(c, row, opjit_ir_index(f, c->behind + 1)),
                               opjit_ir_index(f, SEEN));
    const ir_ref all = opjit_ir_index(f, c->length);
    const ir_ref from = opjit_ir_block_let(f, list, ir_make3(f, IR_CLAMP, IR_INDEX, up, opjit_ir_index(f, 0), all));
    const ir_ref acc = opjit_ir_acc(f, bits, IR_KMAX, SEEN), loop = opjit_ir_for(f, from, all, 1);
    block inside = { .parent = loop };
    opjit_ir_block_add(f, list, acc);
    opjit_ir_block_add(f, list, loop);
    const ir_ref at[2] = { i, f->failed ? 0 : ir_at(f, loop)->ref };
    const ir_ref x = ir_expr1(f, IR_BITS, bits, opjit_ir_load(f, c->side[CONTRACT_ROWS].kept, at));
    opjit_ir_block_add(f, &inside, opjit_ir_upd(f, acc, x, 0));
    opjit_ir_contract_store(c, list, c->not_zero, opjit_ir_get(f, acc), &i);
}

static ir_ref columns_loop(contraction *c, block *list, block *out)
{
    return contract_loop(c, list, opjit_ir_index(c->f, c->side[CONTRACT_COLUMNS].size), out);
}

void opjit_ir_contract_rest(contraction *c, block *stages)
{
    ir_func *f = c->f;
    const ir_type type = (ir_type)c->def.type;
    const int64_t matrices = opjit_ir_contract_matrices(c), size = group_of(c), groups = groups_of(c);
    const int64_t columns = c->side[CONTRACT_COLUMNS].size;
    const ir_ref minus_zero = opjit_ir_const(f, type, ir_dot_total(type)), zero = opjit_ir_const(f, type, 0);
    ir_tensor t = { .role = IR_TEMP, .type = type, .rank = 3, .align = 64,
                    .sizes = { (uint64_t)matrices, (uint64_t)groups + 1, (uint64_t)columns } };
    opjit_ir_dense_strides(&t);
    if (!ir_is_float(type) || !is_worth(c) || !opjit_ir_span_bytes(&t, &t.bytes))
        return;
    const ir_ref stage = opjit_ir_stage(f, opjit_ir_index(f, 0), opjit_ir_index(f, matrices), 1);
    const uint32_t rest = opjit_ir_tensor(f, &t);
    const uint32_t sums = opjit_ir_contract_scratch(c, 1, &columns, 0);
    if (f->failed)
        return;
    block body = { .parent = stage }, of_g, of_k, inside;
    const ir_ref p = ir_at(f, stage)->ref;
    opjit_ir_contract_at_matrix(c, p, matrices);
    ir_ref j = columns_loop(c, &body, &inside);
    opjit_ir_contract_store(c, &inside, sums, minus_zero, &j);
    j = columns_loop(c, &body, &inside);
    opjit_ir_contract_store(c, &inside, rest, minus_zero, (ir_ref[]){ p, opjit_ir_index(f, groups), j });
    const ir_ref last = opjit_ir_index(f, groups - 1);
    const ir_ref g = ir_make2(f, IR_ISUB, IR_INDEX, last, contract_loop(c, &body, opjit_ir_index(f, groups), &of_g));
    const ir_ref k = contract_loop(c, &of_g, opjit_ir_index(f, size), &of_k);
    j = columns_loop(c, &of_k, &inside);
    const ir_ref x =
        opjit_ir_contract_factor(c, &inside, CONTRACT_COLUMNS, j, contract_plus(c, contract_times(c, g, size), k));
    const ir_ref step = ir_expr2(f, IR_MUL, type, zero, x);
    opjit_ir_contract_store(c, &inside, sums, ir_expr2(f, IR_ADD, type, opjit_ir_load(f, sums, &j), step), &j);
    j = columns_loop(c, &of_g, &inside);
    opjit_ir_contract_store(c, &inside, rest, opjit_ir_load(f, sums, &j), (ir_ref[]){ p, g, j });
    opjit_ir_block_add(f, stages, stage);
    c->rest = rest;
    if (c->total == 0)
        c->total = opjit_ir_contract_scratch(
            c, 2, (int64_t[]){ c->side[CONTRACT_ROWS].block, c->side[CONTRACT_COLUMNS].block }, 0);
}

/* How many groups of k are steps of the tile of rows from i of the block on: all, if a row has another value than +0
 * behind; that is its last one. */
static ir_ref groups_needed(contraction *c, block *list, ir_ref i)
{
    ir_func *f = c->f;
    const contract_side *rows = &c->side[CONTRACT_ROWS];
    const ir_type bits = bits_of(c);
    const ir_ref all = opjit_ir_index(f, groups_of(c));
    ir_ref any = 0;
    for (int64_t r = 0; r < rows->tile; r++) {
        const ir_ref at[2] = { contract_plus(c, i, opjit_ir_index(f, r)), opjit_ir_index(f, c->length - 1) };
        const ir_ref x = c->not_zero != 0 ? opjit_ir_load(f, c->not_zero, at)
                                          : ir_expr1(f, IR_BITS, bits, opjit_ir_load(f, rows->kept, at));
        any = any == 0 ? x : ir_expr2(f, IR_OR, bits, any, x);
    }
    const ir_ref end = contract_plus(c, contract_plus(c, rows->first, i),
                                     opjit_ir_index(f, rows->tile + c->behind + group_of(c) - 1));
    const ir_ref up = ir_make2(f, IR_IDIV, IR_INDEX, end, opjit_ir_index(f, group_of(c)));
    const ir_ref some = ir_make3(f, IR_CLAMP, IR_INDEX, up, opjit_ir_index(f, 0), all);
    const ir_ref zero = ir_expr2(f, IR_EQ, IR_BOOL, any, opjit_ir_const(f, bits, 0));
    return opjit_ir_block_let(f, list, ir_make3(f, IR_SELECT, IR_INDEX, zero, some, all));
}

ir_ref opjit_ir_contract_rest_k(contraction *c, block *list, ir_ref i)
{
    ir_func *f = c->f;
    const ir_ref end = contract_times(c, groups_needed(c, list, i), group_of(c));
    return opjit_ir_block_let(f, list, ir_make3(f, IR_CLAMP, IR_INDEX, ir_make2(f, IR_ISUB, IR_INDEX, end, c->first_k),
                                                opjit_ir_index(f, 0), c->here_k));
}

void opjit_ir_contract_start_rest(contraction *c, block *list)
{
    ir_func *f = c->f;
    const ir_type type = (ir_type)c->def.type;
    const int64_t tile = c->side[CONTRACT_ROWS].tile, whole = (contract_blocks_of_k(c) - 1) * c->def.block;
    block of_m, of_r, inside;
    const ir_ref m = contract_loop(c, list, opjit_ir_contract_tiles_of(c, list, &c->side[CONTRACT_ROWS]), &of_m);
    const ir_ref i = opjit_ir_block_let(f, &of_m, contract_times(c, m, tile));
    const ir_ref groups = groups_needed(c, &of_m, i);
    const ir_ref r = contract_loop(c, &of_m, opjit_ir_index(f, tile), &of_r), j = columns_loop(c, &of_r, &inside);
    const ir_ref rest = opjit_ir_load(f, c->rest, (ir_ref[]){ c->matrix, groups, j });
    const ir_ref left = ir_make2(f, IR_LE, IR_BOOL, contract_times(c, groups, group_of(c)), opjit_ir_index(f, whole));
    const ir_ref value = ir_expr2(f, IR_ADD, type, rest, /* a block of k without steps is +0, too */
                                  ir_make3(f, IR_SELECT, IR_NONE, left, opjit_ir_const(f, type, 0),
                                           opjit_ir_const(f, type, ir_dot_total(type))));
    opjit_ir_contract_store(c, &inside, c->total, value, (ir_ref[]){ contract_plus(c, i, r), j });
}
