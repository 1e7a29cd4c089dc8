/* SPDX-License-Identifier: Apache-2.0 */
/* constant_rows.c - parts of rows of scratch that are constant.  Part of split.  Where a piece makes such a part, loops
 * that read the row at their variable are cut there, too, and use the constant in place of the load; what is no longer
 * read is not stored. */
#include "ir/passes/split/split.h"

ir_table opjit_ir_count_stores(ir_func *f, ir_ref stage)
{
    const ir_reach seen = opjit_ir_reach(f, ir_at(f, stage)->body);
    ir_table stores = { 0 };
    for (uint32_t k = 0; k < seen.count; k++) {
        const ir_node *n = ir_at(f, seen.nodes[k]);
        if (n->op == IR_STORE)
            opjit_ir_table_set(f, &stores, n->ref, opjit_ir_table_get(&stores, n->ref) == 0 ? 1 : 2);
    }
    return stores;
}

void opjit_ir_note_known(stage_split *stage, ir_ref parent, ir_ref loop)
{
    const ir_func *f = stage->f;
    const ir_ref only = ir_only(f, ir_at(f, loop)->body);
    if (parent != stage->root || stage->known_count == MAX_KNOWN || only == 0 || ir_at(f, only)->op != IR_STORE ||
        ir_at(f, only)->count != 2) /* the stage's own block: its bounds are known to all later loops */
        return;
    const uint32_t tensor = ir_at(f, only)->ref;
    const ir_ref value = ir_operand(f, only, 0);
    if (f->tensors[tensor].role == IR_SCRATCH && opjit_ir_table_get(&stage->stores, tensor) == 1 &&
        ir_at(f, value)->op == IR_CONST && ir_operand(f, only, 1) == ir_at(f, loop)->ref)
        stage->parts[stage->known_count++] =
            (known){ loop, ir_operand(f, loop, 0), ir_operand(f, loop, 1), value, tensor };
}

/* Whether the load is outside of the known part: its loop ends where that begins, or begins where that ends. */
static bool reads_beside(const ir_func *f, ir_ref stage, const known *k, ir_ref load)
{
    const ir_ref loop = opjit_ir_loop_of(f, ir_at(f, stage)->body, ir_operand(f, load, 0));
    return loop != 0 &&
           (opjit_ir_same(f, ir_operand(f, loop, 1), k->lo) || opjit_ir_same(f, ir_operand(f, loop, 0), k->hi));
}

void opjit_ir_drop_known(stage_split *stage)
{
    ir_func *f = stage->f;
    const ir_ref root = stage->root;
    if (stage->known_count == 0)
        return;
    const ir_reach seen = opjit_ir_reach(f, ir_at(f, root)->body);
    for (uint32_t i = 0; i < stage->known_count && seen.nodes != NULL; i++) {
        const known *k = &stage->parts[i];
        bool read = false;
        for (uint32_t at = 0; at < seen.count && !read; at++) {
            const ir_ref r = seen.nodes[at];
            read = ir_at(f, r)->op == IR_LOAD && ir_at(f, r)->ref == k->tensor && !reads_beside(f, root, k, r);
        }
        if (!read) {
            f->operands[ir_at(f, k->loop)->first + 1] = k->lo;
            ir_took(f, IR_STEP_CONSTANT_ROWS);
        }
    }
}
