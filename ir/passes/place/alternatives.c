/* SPDX-License-Identifier: Apache-2.0 */
/* alternatives.c - the stage of a definition of a few rows whose first coordinate chooses one of as many expressions:
 * one loop over the other coordinate stores an element of each row, so that what the expressions share is computed
 * once.  Part of place. */
#include "ir/passes/place/place.h"

enum {
    MOST_ROWS = 8,
    LEAST_WEIGHT = 32,    /* operations of the value: less is computed again for each row */
    TILE_ELEMENTS = 4096, /* of a row in an iteration of the stage */
};

/* The expression for each row of a value that is select(row == 0, e0, select(row == 1, e1, … e)); false: another
 * form. */
static bool list_arms(const ir_func *f, ir_ref value, ir_ref row, uint32_t count, ir_ref *out)
{
    for (uint32_t i = 0; i + 1 < count; i++) {
        if (ir_at(f, value)->op != IR_SELECT)
            return false;
        const ir_ref is = ir_operand(f, value, 0);
        if (ir_at(f, is)->op != IR_EQ || ir_operand(f, is, 0) != row || !ir_is_index_const(f, ir_operand(f, is, 1)) ||
            ir_index_value(f, ir_operand(f, is, 1)) != (int64_t)i)
            return false;
        out[i] = ir_operand(f, value, 1);
        value = ir_operand(f, value, 2);
    }
    out[count - 1] = value;
    return true;
}

static bool is_choice(const placer *p, uint32_t number)
{
    const ir_func *f = p->f;
    const item *x = &p->items[number];
    const ir_node *n = ir_at(f, x->statement);
    const ir_tensor *t = &f->tensors[n->ref];
    const ir_node *value = ir_at(f, ir_operand(f, x->statement, 0));
    return !p->threads && n->op == IR_DEF && n->kind == 0 && x->recurrence == 0 && t->rank == 2 && t->sizes[0] >= 2 &&
           t->sizes[0] <= MOST_ROWS && t->sizes[1] > 1 && x->weight >= LEAST_WEIGHT && value->op == IR_SELECT;
}

/* Whether the statements are the same for each row, in which only views that repeat elements are read, and load what is
 * there without the condition that chose it. */
static bool is_same_for_all(ir_func *f, ir_ref first, ir_ref row)
{
    const ir_reach seen = opjit_ir_reach(f, first);
    bool same = seen.nodes != NULL;
    for (uint32_t k = 0; k < seen.count && same; k++) {
        const ir_ref r = seen.nodes[k];
        const ir_node *n = ir_at(f, r);
        for (uint32_t i = 0; i < n->count; i++)
            same = same && (ir_operand(f, r, i) != row || (n->op == IR_LOAD && f->tensors[n->ref].strides[i] == 0));
        same = same && (n->op != IR_LOAD || opjit_ir_in_bounds(f, r));
    }
    return same;
}

uint32_t opjit_ir_group_alternatives(placer *p, uint32_t first, block *stages)
{
    ir_func *f = p->f;
    const ir_ref statement = p->items[first].statement;
    if (!is_choice(p, first))
        return first;
    const uint32_t tensor = ir_at(f, statement)->ref;
    const int64_t rows = (int64_t)f->tensors[tensor].sizes[0], length = (int64_t)f->tensors[tensor].sizes[1];
    const ir_ref zero = opjit_ir_index(f, 0), tile = opjit_ir_index(f, TILE_ELEMENTS), end = opjit_ir_index(f, length);
    const ir_ref stage = opjit_ir_stage(f, zero, opjit_ir_index(f, (length - 1) / TILE_ELEMENTS + 1), 1);
    if (f->failed)
        return first + 1;
    const ir_ref lo = ir_make2(f, IR_IMUL, IR_INDEX, ir_at(f, stage)->ref, tile);
    const ir_ref hi = ir_make2(f, IR_IMIN, IR_INDEX, ir_make2(f, IR_IADD, IR_INDEX, lo, tile), end);
    const ir_ref loop = opjit_ir_for(f, lo, hi, 1);
    const ir_ref chosen = opjit_ir_for(f, zero, opjit_ir_index(f, rows), 1); /* no statement: its variable is the row */
    if (f->failed)
        return first + 1;
    inliner in = { .f = f, .sources = p->sources, .private_views = p->roots > 1, .loop_count = 2 };
    in.loops[0] = ir_at(f, chosen)->ref;
    in.loops[1] = ir_at(f, loop)->ref;
    in.extents[0] = (uint64_t)rows;
    in.extents[1] = (uint64_t)length;
    ir_ref arms[MOST_ROWS] = { 0 };
    block nest = { 0 }, inside = { .parent = stage }, innermost = { .parent = loop };
    const ir_ref value = opjit_ir_share(f, &innermost, opjit_ir_inline(&in, statement, 2, in.loops));
    if (f->failed || !list_arms(f, value, in.loops[0], (uint32_t)rows, arms))
        return f->failed ? first + 1 : first;
    for (uint32_t i = 0; i < (uint32_t)rows; i++)
        opjit_ir_block_add(f, &innermost,
                           opjit_ir_store(f, tensor, arms[i], (ir_ref[2]){ opjit_ir_index(f, i), in.loops[1] }));
    if (f->failed || !is_same_for_all(f, innermost.first, in.loops[0]))
        return f->failed ? first + 1 : first;
    ir_map map = { 0 };
    ir_map_set(f, &map, in.loops[0], zero);
    opjit_ir_remake_operands(f, &map, innermost.first);
    opjit_ir_block_add(f, &inside, loop);
    opjit_ir_block_add(f, &nest, stage);
    opjit_ir_block_add(f, stages, nest.first);
    ir_took(f, IR_STEP_ALTERNATIVES);
    return first + 1;
}
