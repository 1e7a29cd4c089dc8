/* SPDX-License-Identifier: Apache-2.0 */
/* join.c - two dimensions of what a stage stores across lines become one: a position p is stored at p / c and p mod c,
 * of which nothing can be proven.  Other stages read the tensor by views of the old shape.  A step of place, after its
 * stages. */
#include "ir/passes/place/place.h"

#include <string.h>

/* The load by a view of the shape that the tensor had. */
static void read_old_shape(ir_func *f, ir_ref load, const ir_tensor *old)
{
    ir_tensor view = *old;
    view.role = IR_VIEW;
    view.of = ir_at(f, load)->ref;
    view.offset = 0;
    const uint32_t made = opjit_ir_span_bytes(&view, &view.bytes) ? opjit_ir_tensor(f, &view) : 0;
    f->failed = f->failed || made == 0;
    f->nodes[load].ref = made;
}

/* The store with one coordinate for dimensions d - 1 and d. */
static void join_store(ir_func *f, ir_ref store, uint32_t d, int64_t size)
{
    ir_node *n = &f->nodes[store];
    ir_ref *at = &f->operands[n->first + 1];
    at[d - 1] = opjit_ir_join_coordinates(f, at[d - 1], at[d], size);
    n = &f->nodes[store]; /* the node above may have moved both */
    at = &f->operands[n->first + 1];
    memmove(at + d, at + d + 1, (n->count - 2 - d) * sizeof *at);
    n->count--;
}

void opjit_ir_join_dimensions(placer *p, ir_ref stages)
{
    ir_func *f = p->f;
    ir_tensor *old = NULL;
    for (uint32_t t = 1; t < p->source_count; t++) {
        const uint32_t d = (uint32_t)p->sources[t].joined;
        ir_tensor *now = &f->tensors[t];
        if (d == 0)
            continue;
        if (old == NULL && (old = ARENA_ARRAY(&f->scratch, ir_tensor, p->source_count)) == NULL) {
            f->failed = true;
            return;
        }
        old[t] = *now;
        now->sizes[d - 1] *= now->sizes[d];
        now->strides[d - 1] = now->strides[d];
        now->rank--;
        memmove(now->sizes + d, now->sizes + d + 1, (now->rank - d) * sizeof *now->sizes);
        memmove(now->strides + d, now->strides + d + 1, (now->rank - d) * sizeof *now->strides);
        ir_took(f, IR_STEP_JOIN);
    }
    if (old == NULL)
        return;
    const ir_reach seen = opjit_ir_reach(f, stages);
    for (uint32_t i = 0; i < seen.count && !f->failed; i++) {
        const ir_node *n = ir_at(f, seen.nodes[i]);
        if ((n->op != IR_LOAD && n->op != IR_STORE) || n->ref >= p->source_count || p->sources[n->ref].joined == 0)
            continue;
        const uint32_t t = n->ref, d = (uint32_t)p->sources[t].joined;
        if (n->op == IR_STORE)
            join_store(f, seen.nodes[i], d, (int64_t)old[t].sizes[d]);
        else
            read_old_shape(f, seen.nodes[i], &old[t]);
    }
}
