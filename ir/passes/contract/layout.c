/* SPDX-License-Identifier: Apache-2.0 */
/* layout.c - how the factors of a product lie in memory, and so which side is read as it lies, or copied, and in which
 * order.  Part of place. */
#include "ir/passes/contract/contract.h"

enum {
    FEW_TIMES = 64,        /* rows: what their tiles read of the columns is as fast without a copy, however far */
    FEW_PAGES = 64 * 4096, /* bytes from the first k of a block to the last, for which a first TLB has entries */
    WIDE_TILE = 128,       /* bytes: where lines of a tile lie side by side, */
    SETS_OF_BLOCK = 128,   /* else not at distances that leave few of a cache's sets */
    SET_BYTES = 4096,      /* from one line of a set of the first cache to the next, */
    NEAR_SET_BYTES = 1024, /* and to lines of few other sets */
    MANY_TILES = 16,       /* of columns: a copy of the rows that they read takes less than what it saves */
    LINE_COLUMNS = 2048,   /* columns of bytes that are packed line by line: so many or more, */
    FAR = 4,               /* and so many times what the second cache has */
};
/* Whether what the factor reads lies in equal steps along var, at most `most` elements apart, and is there for all
 * elements of the product, whatever conditions say. */
bool opjit_ir_contract_reads_in_steps(const contraction *c, ir_ref factor, ir_ref var, int64_t most)
{
    ir_func *f = c->f;
    const ir_reach seen = opjit_ir_reach_one(f, factor);
    for (uint32_t k = 0; k < seen.count; k++) {
        int64_t step;
        if (ir_at(f, seen.nodes[k])->op == IR_LOAD &&
            (!opjit_ir_in_bounds(f, seen.nodes[k]) || !opjit_ir_step(f, seen.nodes[k], var, &step) || step < 0 ||
             step > most))
            return false;
    }
    return seen.nodes != NULL;
}

/* Whether the columns' factor is an element of memory as it is. */
bool opjit_ir_contract_is_element(const contraction *c)
{
    const ir_func *f = c->f;
    const ir_ref load = ir_operand(f, ir_operand(f, c->statement, 0), c->side[CONTRACT_COLUMNS].factor);
    return ir_at(f, load)->op == IR_LOAD && c->r->sources[opjit_ir_root(f, ir_at(f, load)->ref)].def == 0;
}

/* Whether the columns' factor is an element of memory as it is, or FLOAT16 as FLOAT32. */
bool opjit_ir_contract_is_widened_element(const contraction *c)
{
    const ir_func *f = c->f;
    const ir_ref value = ir_operand(f, ir_operand(f, c->statement, 0), c->side[CONTRACT_COLUMNS].factor);
    const ir_ref load = ir_at(f, value)->op == IR_CAST && c->def.type == IR_F32 ? ir_operand(f, value, 0) : value;
    return ir_at(f, load)->op == IR_LOAD && (load == value || ir_at(f, load)->type == IR_F16) &&
           c->r->sources[opjit_ir_root(f, ir_at(f, load)->ref)].def == 0;
}

/* Whether the side's factor is more than an element of memory. */
bool opjit_ir_contract_is_computed(const contraction *c, uint32_t side)
{
    const ir_ref pair = ir_operand(c->f, c->statement, 0);
    return ir_at(c->f, ir_operand(c->f, pair, c->side[side].factor))->op != IR_LOAD;
}

/* Whether columns lie apart, and their k side by side. */
bool opjit_ir_contract_lies_apart(const contraction *c)
{
    const ir_ref factor = ir_operand(c->f, ir_operand(c->f, c->statement, 0), c->side[CONTRACT_COLUMNS].factor);
    return opjit_ir_contract_reads_in_steps(c, factor, opjit_ir_reduced(c->f, c->statement), 1) &&
           (c->side[CONTRACT_COLUMNS].dimension < 0 ||
            !opjit_ir_contract_reads_in_steps(c, factor, contract_coordinate(c, CONTRACT_COLUMNS), 1));
}

/* Whether the columns are bytes that lie side by side, far more than the second cache has, and one block of few rows
 * reads them. */
bool opjit_ir_contract_is_in_lines(const contraction *c, const ir_tiles *given, const rt_target *target)
{
    const contract_side *columns = &c->side[CONTRACT_COLUMNS];
    if (c->bytes == 0 || c->once || c->r->general || c->r->is_step ||
        !opjit_ir_contract_reads_in_steps(c, ir_operand(c->f, ir_operand(c->f, c->statement, 0), columns->factor),
                                          contract_coordinate(c, CONTRACT_COLUMNS), 1))
        return false;
    return given != NULL ? given->share != 0
                         : c->side[CONTRACT_ROWS].size <= FEW_TIMES && columns->size >= LINE_COLUMNS &&
                               columns->size * c->bytes >= FAR * (int64_t)target->l2;
}

/* Whether columns that one block of rows reads lie side by side: elements of memory, not bytes. */
bool opjit_ir_contract_is_read_in_lines(const contraction *c)
{
    const ir_ref factor = ir_operand(c->f, ir_operand(c->f, c->statement, 0), c->side[CONTRACT_COLUMNS].factor);
    return c->by_columns && c->bytes == 0 && !c->r->is_step && opjit_ir_contract_is_element(c) &&
           opjit_ir_contract_reads_in_steps(c, factor, contract_coordinate(c, CONTRACT_COLUMNS), 1);
}

/* Whether columns beyond the second cache, which lie side by side at this distance from k to k, are read by one block
 * of rows, and so few of them that a copy takes longer than what it saves. */
static bool is_read_by_few(const contraction *c, int64_t distance, int64_t l2)
{
    const contract_side *rows = &c->side[CONTRACT_ROWS];
    const int64_t size = opjit_ir_type_size((ir_type)c->def.type);
    return rows->blocks == 1 && c->side[CONTRACT_COLUMNS].tile * size >= WIDE_TILE &&
           (rows->size <= FEW_TIMES || distance % (l2 / SETS_OF_BLOCK) != 0);
}

/* Whether a side is read as it lies: elements of memory alone, in whole tiles.  Rows: side by side in k, or, as
 * columns, few enough to stay in a cache, and not at distances that are one set of it. */
bool opjit_ir_contract_lies_well(const contraction *c, uint32_t side, const rt_target *target)
{
    ir_func *f = c->f;
    const int64_t l2 = (int64_t)target->l2;
    const contract_side *s = &c->side[side];
    const ir_ref load = ir_operand(f, ir_operand(f, c->statement, 0), s->factor);
    const int64_t size = opjit_ir_type_size((ir_type)c->def.type);
    int64_t own = 0, by_k;
    if (ir_at(f, load)->op != IR_LOAD || c->r->sources[opjit_ir_root(f, ir_at(f, load)->ref)].def != 0 ||
        (side == CONTRACT_COLUMNS && s->size % s->tile != 0) ||
        !opjit_ir_step(f, load, opjit_ir_reduced(f, c->statement), &by_k) ||
        (s->dimension >= 0 && !opjit_ir_step(f, load, contract_coordinate(c, side), &own)))
        return false;
    if (side == CONTRACT_ROWS && by_k == 1) /* where a tile is partial each row has an address of its own */
        return s->size % s->tile == 0 || own * size % NEAR_SET_BYTES != 0;
    const int64_t far = own > by_k ? own : by_k;
    if (!contract_is_even(s))
        return false;
    if (side == CONTRACT_COLUMNS && own != 1)
        return false;
    /* In a step of a recurrence a copy would take longer than what it saves. */
    if (side == CONTRACT_COLUMNS && !c->r->is_step && s->size * c->length * size > l2 / 2)
        return !c->once && !c->by_columns && is_read_by_few(c, far * size, l2);
    if (side == CONTRACT_COLUMNS && c->by_columns && !c->r->is_step && !c->r->general &&
        c->side[CONTRACT_ROWS].size > FEW_TIMES && contract_most_k(c) * far * size > FEW_PAGES)
        return false;
    return c->length <= c->def.block ? far * size % SET_BYTES != 0 : far * size % NEAR_SET_BYTES != 0;
}

/* Whether many tiles of columns read rows that lie in memory, at distances that are one set of that cache. */
bool opjit_ir_contract_rows_meet(const contraction *c)
{
    ir_func *f = c->f;
    const contract_side *rows = &c->side[CONTRACT_ROWS], *columns = &c->side[CONTRACT_COLUMNS];
    const ir_ref load = ir_operand(f, ir_operand(f, c->statement, 0), rows->factor);
    int64_t own, by_k;
    return c->by_columns && !c->r->is_step && rows->dimension >= 0 && rows->size > rows->tile &&
           columns->block >= MANY_TILES * columns->tile &&
           opjit_ir_step(f, load, opjit_ir_reduced(f, c->statement), &by_k) && by_k == 1 &&
           opjit_ir_step(f, load, contract_coordinate(c, CONTRACT_ROWS), &own) &&
           own * opjit_ir_type_size((ir_type)c->def.type) % SET_BYTES == 0;
}
