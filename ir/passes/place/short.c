/* SPDX-License-Identifier: Apache-2.0 */
/* short.c - the stage of a reduction of few values: a nest of loops over its coordinates, like that of a definition
 * that does not reduce, with one expression for all steps and folds.  So neighbours are a vector's lanes, and no lanes
 * are folded.  The expression has the order of the accumulator; lanes that have the identity of the kind change
 * nothing, but that a sum is never -0.  Part of place. */
#include "ir/passes/place/place.h"

#include <string.h>

enum {
    MOST_STEPS = 8,   /* where results that are neighbours read them: as many as lanes, each with one value */
    MOST_WORK = 200,  /* operations of the expression */
    LEAST_COUNT = 32, /* results: fewer are no vectors */
};

/* Whether all that it reads of memory moves by 0 or 1 element from result to result. */
static bool reads_neighbours(ir_func *f, ir_ref statement)
{
    const ir_tensor *t = &f->tensors[ir_at(f, statement)->ref];
    const uint32_t last = ir_rank_in_use(t);
    const ir_reach seen = opjit_ir_reach_one(f, ir_operand(f, statement, 0));
    int64_t step = 0;
    for (uint32_t i = 0; i < seen.count; i++)
        if (ir_at(f, seen.nodes[i])->op == IR_LOAD &&
            (last == 0 || !opjit_ir_step(f, seen.nodes[i], opjit_ir_coordinate(f, statement, last - 1), &step) ||
             step < 0 || step > 1))
            return false;
    return seen.nodes != NULL;
}

static bool is_short(const placer *p, uint32_t number)
{
    const ir_func *f = p->f;
    const item *x = &p->items[number];
    const ir_node *n = ir_at(f, x->statement);
    const ir_tensor *t = &f->tensors[n->ref];
    if (p->threads || n->op != IR_DEF || x->recurrence != 0 || opjit_ir_scanned(f, x->statement) >= 0 ||
        opjit_ir_is_counted(f, x->statement) || n->kind == IR_DOT || ir_kind_op((ir_kind)n->kind) == IR_OP_NONE)
        return false;
    const int64_t steps = ir_index_value(f, ir_operand(f, x->statement, n->count - 1));
    return opjit_ir_count_elements(t) >= LEAST_COUNT && steps >= 2 && steps <= IR_REDUCE_LANES &&
           (steps <= MOST_STEPS || reads_neighbours(p->f, x->statement)) && steps <= (int64_t)n->block &&
           (x->weight + 1) * (uint64_t)steps <= MOST_WORK;
}

ir_ref opjit_ir_fold_parts(ir_func *f, const ir_node *reduction, ir_ref *part, int64_t steps)
{
    const ir_op op = ir_kind_op((ir_kind)reduction->kind);
    const ir_type type = (ir_type)reduction->type;
    const int64_t lanes = reduction->imm > 1 ? IR_REDUCE_LANES : 1;
    for (int64_t k = lanes; k < steps; k++)
        part[k % lanes] = ir_expr2(f, op, type, part[k % lanes], part[k]);
    for (int64_t half = lanes / 2; half > 0; half /= 2)
        for (int64_t k = 0; k < half && k + half < steps; k++)
            part[k] = ir_expr2(f, op, type, part[k], part[k + half]);
    return reduction->kind == IR_SUM && ir_is_float(type)
               ? ir_expr2(f, IR_ADD, type, part[0], opjit_ir_const(f, type, 0))
               : part[0];
}

/* A let of the result at these coordinates. */
static ir_ref reduce(placer *p, inliner *in, ir_ref statement, const ir_ref *at, block *list)
{
    ir_func *f = p->f;
    const ir_node n = *ir_at(f, statement);
    const uint32_t rank = f->tensors[n.ref].rank;
    const int64_t steps = ir_index_value(f, ir_operand(f, statement, n.count - 1));
    ir_ref part[IR_REDUCE_LANES] = { 0 }, with[PASS_OPERANDS];
    memcpy(with, at, rank * sizeof *with);
    for (int64_t k = 0; k < steps; k++) {
        with[rank] = opjit_ir_index(f, k);
        part[k] = opjit_ir_share(f, list, opjit_ir_inline(in, statement, rank + 1, with));
    }
    const ir_ref let = opjit_ir_let(f, opjit_ir_fold_parts(f, &n, part, steps));
    opjit_ir_block_add(f, list, let);
    return let;
}

uint32_t opjit_ir_group_short(placer *p, uint32_t first, bool with_output, block *stages)
{
    ir_func *f = p->f;
    const ir_ref statement = p->items[first].statement;
    const uint32_t output = opjit_ir_output_of(p, first), tensor = ir_at(f, statement)->ref;
    const uint32_t rank = f->tensors[tensor].rank;
    if ((with_output && output == 0) || rank == 0 || !is_short(p, first) || ir_at(f, statement)->imm > IR_REDUCE_LANES)
        return first;
    inliner in = { .f = f, .sources = p->sources, .private_views = p->roots > 1, .loop_count = rank };
    ir_ref parent = 0;
    block nest = { 0 };
    for (uint32_t d = 0; d < rank; d++) {
        in.extents[d] = f->tensors[tensor].sizes[d];
        const ir_ref lo = opjit_ir_index(f, 0), hi = opjit_ir_index(f, (int64_t)in.extents[d]);
        const ir_ref loop = d == 0 ? opjit_ir_stage(f, lo, hi, 1) : opjit_ir_for(f, lo, hi, 1);
        block inside = { .parent = parent };
        opjit_ir_block_add(f, d == 0 ? &nest : &inside, loop);
        parent = loop;
        in.loops[d] = f->failed ? 0 : ir_at(f, loop)->ref;
    }
    if (f->failed)
        return first + 1;
    block innermost = { .parent = parent };
    const ir_ref let = reduce(p, &in, statement, in.loops, &innermost);
    ir_ref value = opjit_ir_get(f, let);
    uint32_t stored = tensor;
    if (output != 0 && !f->failed) {
        p->sources[tensor].row_value = let;
        in.row_count = rank;
        memcpy(in.rows, in.loops, rank * sizeof *in.rows);
        stored = ir_at(f, p->items[output].statement)->ref;
        value = opjit_ir_share(f, &innermost, opjit_ir_inline(&in, p->items[output].statement, rank, in.loops));
        p->sources[tensor].row_value = 0;
        if (in.refused)
            return first;
        f->tensors[tensor].role = IR_VALUE;
    }
    opjit_ir_block_add(f, &innermost, opjit_ir_store(f, stored, value, in.loops));
    opjit_ir_block_add(f, stages, nest.first);
    ir_took(f, IR_STEP_SHORT);
    return output != 0 ? output + 1 : first + 1;
}
