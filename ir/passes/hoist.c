/* SPDX-License-Identifier: Apache-2.0 */
/* hoist.c - finds what is the same in every iteration of a loop, and makes lets for it before the loop.  Part of
 * split. */
#include "ir/passes/split.h"

/* Marks the statements of the list and below, and the variables of loops among them. */
static void mark_inside(ir_func *f, ir_table *inside, ir_ref first)
{
    for (ir_ref r = first; r != 0; r = ir_at(f, r)->next) {
        opjit_ir_table_set(f, inside, r, 1);
        if (ir_at(f, r)->op == IR_FOR)
            opjit_ir_table_set(f, inside, ir_at(f, r)->ref, 1);
        mark_inside(f, inside, ir_at(f, r)->body); /* as deep as loops nest: rule V16 */
    }
}

/* false: no memory. */
bool opjit_ir_look_at_body(ir_func *f, ir_ref loop, loop_body *out)
{
    ir_table inside = { 0 };
    out->seen = opjit_ir_reach(f, ir_at(f, loop)->body);
    out->variant = ARENA_ARRAY(&f->scratch, bool, out->seen.count);
    const uint32_t *places = opjit_ir_reach_places(f, &out->seen);
    opjit_ir_table_set(f, &inside, ir_at(f, loop)->ref, 1);
    mark_inside(f, &inside, ir_at(f, loop)->body);
    if (out->variant == NULL) {
        f->failed = true;
        return false;
    }
    for (uint32_t k = 0; k < out->seen.count; k++) { /* operands are older than the node */
        const ir_ref r = out->seen.nodes[k];
        const ir_node *n = ir_at(f, r);
        if (!ir_is_pure(f, r))
            continue;
        bool varies = n->op == IR_LOAD || opjit_ir_table_get(&inside, r) != 0 ||
                      (n->op == IR_GET && (opjit_ir_table_get(&inside, n->ref) != 0 || ir_at(f, n->ref)->op == IR_ACC));
        for (uint32_t i = 0; i < n->count && !varies; i++)
            varies = out->variant[places[ir_operand(f, r, i)]];
        out->variant[k] = varies;
    }
    return !f->failed;
}

/* These values load nothing, so they may be computed where the loop would not. */
void opjit_ir_hoist(ir_func *f, block *out, ir_ref loop)
{
    ir_map map = { 0 };
    loop_body b;
    if (!opjit_ir_look_at_body(f, loop, &b))
        return;
    bool any = false;
    for (uint32_t k = b.seen.count; k-- > 0;) {
        const ir_ref r = b.seen.nodes[k];
        if (ir_is_pure(f, r) && !b.variant[k])
            continue; /* not in the loop, or part of something that moves out as a whole */
        for (uint32_t i = 0; i < ir_at(f, r)->count; i++) {
            const ir_ref part = ir_operand(f, r, i);
            if (is_variant(&b, part) || ir_at(f, part)->count == 0 || ir_at(f, part)->type == IR_INDEX ||
                ir_at(f, part)->op == IR_PAIR)
                continue;
            if (ir_map_get(&map, part) == 0)
                ir_map_set(f, &map, part, opjit_ir_block_let(f, out, part));
            any = true;
        }
    }
    if (any) {
        opjit_ir_remake_operands(f, &map, ir_at(f, loop)->body);
        ir_took(f, IR_STEP_HOIST);
    }
}
