/* SPDX-License-Identifier: Apache-2.0 */
/* edge.c - rows of unknown alignment that are stored around the caches: which rows, and where their whole lines
 * begin and end.  boundary.c makes the loops. */
#include "ir/passes/schedule/scheduler.h"

enum { EDGE_LINES = 16, TEAM_LINES = 4 }; /* of the shortest row that has edges; on a GPU */

/* Of the first loop. */
static ir_ref first_store(const ir_func *f, const chain *c)
{
    return ir_only(f, ir_at(f, c->loops[0])->body);
}

int64_t opjit_ir_chain_line(const scheduler *s, const chain *c)
{
    return IR_LINE / opjit_ir_type_size(s->f->tensors[ir_at(s->f, first_store(s->f, c))->ref].type);
}

/* Whether everything that the loop loads is available for the whole row: at the store's own coordinate, or at a
 * constant one. */
static bool loads_whole_row(ir_func *f, ir_ref loop)
{
    const ir_ref store = ir_only(f, ir_at(f, loop)->body), var = ir_at(f, loop)->ref;
    const ir_tensor *out = &f->tensors[ir_at(f, store)->ref];
    const ir_reach seen = opjit_ir_reach_one(f, ir_operand(f, store, 0));
    bool whole = seen.nodes != NULL;
    for (uint32_t k = 0; k < seen.count && whole; k++) {
        const ir_ref r = seen.nodes[k];
        const ir_tensor *in = &f->tensors[ir_at(f, r)->op == IR_LOAD ? ir_at(f, r)->ref : 0];
        for (uint32_t d = 0; ir_at(f, r)->op == IR_LOAD && d < ir_at(f, r)->count; d++)
            whole = whole && (!opjit_ir_uses(f, ir_operand(f, r, d), var) ||
                              (d < out->rank && in->sizes[d] >= out->sizes[d] &&
                               opjit_ir_same(f, ir_operand(f, r, d), ir_operand(f, store, 1 + d))));
    }
    return whole;
}

bool opjit_ir_chain_repeats(scheduler *s, const chain *c)
{
    const uint32_t tensor = ir_at(s->f, first_store(s->f, c))->ref;
    bool may = c->cost < SPELLED_OUT && !opjit_ir_loads_tensor(s, tensor);
    for (uint32_t i = 0; i < c->count; i++)
        may = may && loads_whole_row(s->f, c->loops[i]);
    return may;
}

ir_ref opjit_ir_chain_head(scheduler *s, const chain *c)
{
    ir_func *f = s->f;
    const ir_ref store = first_store(f, c);
    const ir_tensor *t = &f->tensors[ir_at(f, store)->ref];
    ir_ref at = opjit_ir_index(f, 0);
    ir_map map = { 0 };
    ir_map_set(f, &map, ir_at(f, c->loops[0])->ref, c->bounds[0]);
    for (uint32_t d = 0; d < t->rank; d++) {
        const ir_ref stride = opjit_ir_index(f, (int64_t)t->strides[d]);
        const ir_ref coordinate = opjit_ir_remake(f, &map, ir_operand(f, store, 1 + d));
        at = ir_make2(f, IR_IADD, IR_INDEX, at, ir_make2(f, IR_IMUL, IR_INDEX, coordinate, stride));
    }
    return opjit_ir_head(f, ir_at(f, store)->ref, at);
}

bool opjit_ir_chain_touches(scheduler *s, const chain *c)
{
    ir_func *f = s->f;
    const ir_ref head = opjit_ir_chain_head(s, c), var = ir_at(f, s->stage)->ref;
    ir_ref hi = c->bounds[c->count];
    ir_affine form = { 0 };
    int64_t length;
    if (head == 0 || !opjit_ir_affine_add(f, &form, ir_operand(f, head, 0), 1))
        return false;
    const int64_t step = opjit_ir_affine_take(f, &form, var);
    for (uint32_t i = 0; i < form.count; i++)
        if (opjit_ir_uses(f, form.atoms[i], var))
            return false;
    if (ir_at(f, hi)->op == IR_IMIN) /* of the last row */
        hi = ir_operand(f, hi, 0);
    return opjit_ir_distance(f, hi, c->bounds[0], &length) && length == step;
}

/* Buffers of GPUs' kernels are aligned to 16 bytes, whatever is declared. */
static bool rows_are_aligned(const scheduler *s, const ir_tensor *t)
{
    ir_tensor known = *t;
    if (s->threads && known.align < s->target->vector_bytes)
        known.align = s->target->vector_bytes;
    return opjit_ir_rows_are_aligned(&known, s->target->vector_bytes);
}

bool opjit_ir_chain_wants_edges(scheduler *s, const chain *c)
{
    const ir_tensor *t = &s->f->tensors[ir_at(s->f, first_store(s->f, c))->ref];
    const int64_t lines = s->threads ? TEAM_LINES : EDGE_LINES;
    const bool may = s->threads ? !c->math : s->beyond_caches;
    return may && !rows_are_aligned(s, t) && t->role == IR_OUT &&
           opjit_ir_at_least(s->f, c->bounds[0], c->bounds[c->count], lines * opjit_ir_chain_line(s, c)) &&
           opjit_ir_chain_repeats(s, c) && /* and what remains of a row is hard to prove: */
           (ir_is_index_const(s->f, c->bounds[0]) || opjit_ir_chain_touches(s, c));
}

void opjit_ir_set_edge(ir_func *f, ir_ref loop, const chain *c, uint32_t edge)
{
    f->nodes[loop].vec = (uint16_t)c->lanes;
    f->nodes[loop].unroll = 1;
    f->nodes[loop].flags = (uint8_t)(edge | (c->carry ? IR_FOR_CARRY : 0));
}
