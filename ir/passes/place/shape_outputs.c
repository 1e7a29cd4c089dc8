/* SPDX-License-Identifier: Apache-2.0 */
/* shape_outputs.c - an output that shows a definition in another shape, by quotients and remainders of its coordinates
 * or with other dimensions of one element, takes the definition's shape, as the bytes are the same: so the definition
 * is written there, and needs no memory of its own.  A step of place. */
#include "ir/passes/pass.h"

#include <string.h>

/* The definition's tensor that the output shows in another shape; 0: it does something else. */
static uint32_t shown_by(ir_func *f, ir_ref yield)
{
    const ir_node *n = ir_at(f, yield);
    const ir_tensor *out = &f->tensors[n->ref];
    const ir_ref load = ir_operand(f, yield, 0);
    if (n->op != IR_YIELD || n->imm != 0 || out->alias != 0 || ir_at(f, load)->op != IR_LOAD)
        return 0;
    const uint32_t shape = ir_at(f, load)->ref, root = opjit_ir_root(f, shape);
    const ir_tensor *view = &f->tensors[shape], *t = &f->tensors[root];
    int64_t offset;
    const uint64_t all = opjit_ir_count_elements(t);
    bool divided;
    if (shape == root || t->role != IR_VALUE || ir_is_of_recurrence(t) || t->type != out->type ||
        view->rank != out->rank || !opjit_ir_root_offset(f, shape, &offset) || offset != 0 ||
        !opjit_ir_is_dense(out) || !opjit_ir_is_dense(view) || !opjit_ir_is_dense(t) ||
        opjit_ir_count_elements(out) != all || opjit_ir_count_elements(view) != all)
        return 0;
    for (uint32_t d = 0; d < out->rank; d++)
        if (view->sizes[d] != out->sizes[d] ||
            (out->sizes[d] > 1 && ir_operand(f, load, d) != opjit_ir_coordinate(f, yield, d)))
            return 0;
    if (!opjit_ir_view_coordinates(f, shape, NULL, NULL, &divided))
        return 0;
    return divided || t->rank != out->rank ? root : 0;
}

/* A yield of the tensor as it is, in place of the statement. */
static ir_ref show(ir_func *f, ir_ref yield, uint32_t tensor)
{
    const uint32_t out = ir_at(f, yield)->ref;
    const ir_tensor like = f->tensors[tensor];
    ir_ref at[8] = { 0 };
    f->tensors[out].rank = like.rank;
    memcpy(f->tensors[out].sizes, like.sizes, sizeof like.sizes);
    memcpy(f->tensors[out].strides, like.strides, sizeof like.strides);
    const ir_ref made = opjit_ir_yield(f, out);
    for (uint32_t d = 0; d < like.rank && !f->failed; d++)
        at[d] = opjit_ir_coordinate(f, made, d);
    if (!f->failed)
        opjit_ir_set_value(f, made, opjit_ir_load(f, tensor, at));
    ir_took(f, IR_STEP_SHAPE_OUTPUTS);
    return made;
}

void opjit_ir_shape_outputs(ir_func *f)
{
    block list = { 0 };
    ir_ref next;
    for (ir_ref s = f->body; s != 0 && !f->failed; s = next) {
        next = ir_at(f, s)->next;
        const uint32_t tensor = shown_by(f, s);
        opjit_ir_block_add(f, &list, tensor != 0 ? show(f, s, tensor) : s);
    }
    f->body = list.first;
}
