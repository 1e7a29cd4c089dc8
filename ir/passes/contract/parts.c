/* SPDX-License-Identifier: Apache-2.0 */
/* parts.c - what all loops of a product of two matrices are made of: scratch, loops over rows and columns,
 * where blocks begin, a factor's element, the store of a result.  Part of place. */
#include "ir/passes/contract/contract.h"

#include <string.h>

static uint32_t make_scratch(contraction *c, ir_type type, uint32_t rank, const int64_t *sizes, int64_t apart)
{
    ir_tensor t = { .role = IR_SCRATCH, .type = type, .rank = rank, .align = 64 };
    for (uint32_t d = 0; d < rank; d++)
        t.sizes[d] = (uint64_t)sizes[d];
    opjit_ir_dense_strides(&t);
    if (rank == 2 && t.sizes[0] > 1)
        t.strides[0] += (uint64_t)apart;
    if (!opjit_ir_span_bytes(&t, &t.bytes))
        return 0;
    return opjit_ir_tensor(c->f, &t);
}

uint32_t opjit_ir_contract_scratch(contraction *c, uint32_t rank, const int64_t *sizes, int64_t apart)
{
    return make_scratch(c, (ir_type)c->def.type, rank, sizes, apart);
}

uint32_t opjit_ir_contract_column_scratch(contraction *c, uint32_t rank, const int64_t *sizes)
{
    return make_scratch(c, opjit_ir_contract_column_type(c), rank, sizes, 0);
}

void opjit_ir_contract_loops(contraction *c, block *list, ir_ref rows, ir_ref columns, ir_ref *at, block *out)
{
    block of_i;
    at[0] = contract_loop(c, list, rows, &of_i);
    at[1] = contract_loop(c, &of_i, columns, out);
}

void opjit_ir_contract_store(contraction *c, block *list, uint32_t tensor, ir_ref value, const ir_ref *at)
{
    opjit_ir_block_add(c->f, list, opjit_ir_store(c->f, tensor, value, at));
}

void opjit_ir_contract_fill(contraction *c, block *list, uint32_t tensor, ir_ref rows, ir_ref columns, uint64_t bits)
{
    ir_ref at[2];
    block inside;
    opjit_ir_contract_loops(c, list, rows, columns, at, &inside);
    opjit_ir_contract_store(c, &inside, tensor, opjit_ir_const(c->f, (ir_type)c->def.type, bits), at);
}

void opjit_ir_contract_result(contraction *c, block *list, ir_ref sum, ir_ref i, ir_ref j)
{
    ir_func *f = c->f;
    const ir_ref own[CONTRACT_SIDES] = { i, j };
    ir_ref at[9];
    memcpy(at, c->at, sizeof at);
    for (uint32_t s = 0; s < CONTRACT_SIDES; s++)
        if (c->side[s].dimension >= 0)
            at[c->side[s].dimension] = own[s];
    if (c->r->count == 1) {
        opjit_ir_contract_store(c, list, c->def.ref, sum, at);
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
    opjit_ir_contract_store(c, list, f->failed ? 0 : ir_at(f, output)->ref, value, at);
}

bool opjit_ir_contract_fits_tile(contraction *c, ir_ref sum, ir_ref i, ir_ref j, bool plainly)
{
    const ir_func *f = c->f;
    const inliner in = c->in;
    block tried = { 0 };
    c->in = (inliner){ .f = c->f, .sources = in.sources };
    opjit_ir_contract_result(c, &tried, sum, i, j);
    c->in = in;
    const ir_reach seen = opjit_ir_reach(c->f, tried.first);
    for (uint32_t k = 0; k < seen.count; k++) {
        const ir_node *n = ir_at(f, seen.nodes[k]);
        if (n->type == IR_INDEX || n->type == IR_NONE || n->count == 0 || n->op == IR_LOAD)
            continue;
        switch ((ir_op)n->op) {
        case IR_DIV:
            if (!ir_is_float((ir_type)n->type))
                return false;
            break;
        case IR_ADD:
        case IR_SUB:
        case IR_MUL:
        case IR_FMA:
        case IR_MIN:
        case IR_MAX:
        case IR_LET: break;
        case IR_EQ:
        case IR_NE:
        case IR_LT:
        case IR_LE:
        case IR_SELECT:
        case IR_CAST:
            if (plainly)
                return false;
            break;
        default: return false;
        }
    }
    return seen.nodes != NULL;
}

/* --- blocks ------------------------------------------------------------------------------------------------------- */

ir_ref opjit_ir_contract_digit(const contraction *c, ir_ref p, int64_t below, int64_t size)
{
    ir_func *f = c->f;
    if (size == 1)
        return opjit_ir_index(f, 0);
    return ir_make2(f, IR_IMOD, IR_INDEX, ir_make2(f, IR_IDIV, IR_INDEX, p, opjit_ir_index(f, below)),
                    opjit_ir_index(f, size));
}

void opjit_ir_contract_set_side(contraction *c, block *list, uint32_t side, ir_ref number)
{
    ir_func *f = c->f;
    contract_side *s = &c->side[side];
    const ir_ref whole = opjit_ir_index(f, s->block);
    s->first = opjit_ir_block_let(f, list, contract_times(c, number, s->block));
    s->start = s->first;
    s->first_tile = contract_times(c, number, s->block / s->tile);
    if (contract_is_even(s))
        s->here = whole;
    else
        s->here = opjit_ir_block_let(f, list,
                                     ir_make2(f, IR_IMIN, IR_INDEX, whole,
                                              ir_make2(f, IR_ISUB, IR_INDEX, opjit_ir_index(f, s->size), s->first)));
    if (side == CONTRACT_COLUMNS && c->across > 0 && !contract_is_even(s)) {
        const ir_ref last = opjit_ir_index(f, s->size - s->block);
        const ir_ref past = ir_make2(f, IR_ISUB, IR_INDEX, s->first, last);
        s->start = opjit_ir_block_let(f, list, ir_make2(f, IR_IMIN, IR_INDEX, s->first, last));
        s->again = opjit_ir_block_let(f, list, ir_make2(f, IR_IMAX, IR_INDEX, past, opjit_ir_index(f, 0)));
    }
}

ir_ref opjit_ir_contract_steps(const contraction *c, ir_ref first_k)
{
    ir_func *f = c->f;
    const int64_t size = c->def.block;
    const ir_ref whole = opjit_ir_index(f, c->length < size ? c->length : size);
    if (c->length <= size || c->length % size == 0)
        return whole;
    const ir_ref rest = ir_make2(f, IR_ISUB, IR_INDEX, opjit_ir_index(f, c->length), first_k);
    return ir_make2(f, IR_IMIN, IR_INDEX, whole, rest);
}

void opjit_ir_contract_set_k(contraction *c, block *list, ir_ref q)
{
    c->q = q;
    c->first_k = opjit_ir_block_let(c->f, list, contract_times(c, q, c->def.block));
    c->here_k = opjit_ir_block_let(c->f, list, opjit_ir_contract_steps(c, c->first_k));
}

/* --- elements ----------------------------------------------------------------------------------------------------- */

ir_ref opjit_ir_contract_factor_at(contraction *c, uint32_t side, ir_ref own, ir_ref k)
{
    const contract_side *s = &c->side[side];
    ir_ref at[9];
    memcpy(at, c->at, sizeof at);
    if (s->dimension >= 0)
        at[s->dimension] = own;
    at[c->out.rank] = k;
    const ir_ref pair = opjit_ir_inline(&c->in, c->statement, c->out.rank + 1, at);
    const ir_ref factor = c->f->failed ? 0 : ir_operand(c->f, pair, s->factor);
    ir_map map = { 0 };
    for (uint32_t i = 0; i < c->r->around_count && c->is_ahead && factor != 0; i++)
        ir_map_set(c->f, &map, c->r->around[i], c->around[i]);
    return c->is_ahead && factor != 0 ? opjit_ir_remake(c->f, &map, factor) : factor;
}

ir_ref opjit_ir_contract_factor(contraction *c, block *list, uint32_t side, ir_ref own, ir_ref k)
{
    const ir_ref factor = opjit_ir_contract_factor_at(c, side, own, k);
    return factor == 0 ? 0 : opjit_ir_share(c->f, list, factor);
}
