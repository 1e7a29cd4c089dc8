/* SPDX-License-Identifier: Apache-2.0 */
/* ir_layout.c - where memory lies: offsets of temps and scratch. */
#include "ir/ir_internal.h"

enum { MEMORY_ALIGN = 64 };
#define MOST_BYTES (UINT64_C(1) << 40) /* of all temps, and of all scratch: products with workers and teams fit */

/* --- layout ------------------------------------------------------------------------------------------------------- */

/* The first and last step that touch a tensor; first > last: none does.  Of temps a step is a stage, for iterations of
 * one run at a time; of scratch, which each of these has for itself, a statement of the stage.  The threads of a team
 * are at several statements at a time: there, too, it is a stage. */
typedef struct span {
    uint32_t first, last;
} span;

static void touch(span *s, uint32_t stage)
{
    s->first = stage < s->first ? stage : s->first;
    s->last = stage > s->last ? stage : s->last;
}

typedef struct span_walk {
    const ir_func *f;
    span *spans;
    uint32_t *seen; /* by node: step + 1 of the last visit */
    uint32_t stage, step;
} span_walk;

static void touch_expr(span_walk *w, ir_ref expr)
{
    const ir_node *node = ir_at(w->f, expr);
    if (w->seen[expr] == w->step + 1)
        return;
    w->seen[expr] = w->step + 1;
    if (node->op == IR_LOAD || node->op == IR_STORE) {
        const uint32_t root = opjit_ir_root(w->f, node->ref);
        touch(&w->spans[root], w->f->tensors[root].role == IR_SCRATCH ? w->step : w->stage);
    }
    for (uint32_t i = 0; i < node->count; i++)
        touch_expr(w, ir_operand(w->f, expr, i));
}

/* own: each statement is a step. */
static void touch_block(span_walk *w, ir_ref first, bool own)
{
    for (ir_ref s = first; s; s = ir_at(w->f, s)->next) {
        touch_expr(w, s);
        touch_block(w, ir_at(w->f, s)->body, false);
        w->step += own;
    }
}

/* Lowest offset at which tensor t meets no earlier tensor of its role that is alive in a stage of its own. */
static bool place(ir_func *f, const span *spans, uint32_t t, uint64_t *size)
{
    ir_tensor *tensor = &f->tensors[t];
    uint64_t offset = 0, end;
    for (uint32_t i = 1; i < f->tensor_count; i++) {
        const ir_tensor *other = &f->tensors[i];
        const bool placed = i < t && other->role == tensor->role && spans[i].first <= spans[i].last;
        if (!placed || spans[i].first > spans[t].last || spans[t].first > spans[i].last)
            continue;
        if ((uint64_t)other->offset >= offset + tensor->bytes || (uint64_t)other->offset + other->bytes <= offset)
            continue;
        offset = align_up((uint64_t)other->offset + other->bytes, MEMORY_ALIGN);
        i = 0; /* the new place must be compared with all again */
    }
    if (!checked_add(offset, tensor->bytes, &end) || end > MOST_BYTES)
        return false;
    tensor->offset = (int64_t)offset;
    tensor->align = MEMORY_ALIGN;
    *size = end > *size ? end : *size;
    return true;
}

opjit_status opjit_ir_layout(ir_func *f, opjit_error *error)
{
    span_walk w = { .f = f };
    w.spans = ARENA_ARRAY(&f->arena, span, f->tensor_count);
    w.seen = ARENA_ARRAY(&f->arena, uint32_t, f->node_count);
    if (!w.spans || !w.seen)
        return opjit_rt_no_memory(error);
    for (uint32_t i = 0; i < f->tensor_count; i++)
        w.spans[i] = (span){ UINT32_MAX, 0 };
    for (ir_ref s = f->body; s; s = ir_at(f, s)->next, w.stage++) {
        touch_expr(&w, s);
        w.step++;
        touch_block(&w, ir_at(f, s)->body, ir_at(f, s)->vec == 0);
        w.step++;
    }
    f->shared_size = f->scratch_size = 0;
    for (uint32_t i = 1; i < f->tensor_count; i++) {
        const ir_role role = f->tensors[i].role;
        if ((role != IR_TEMP && role != IR_SCRATCH) || w.spans[i].first > w.spans[i].last)
            continue;
        if (f->tensors[i].bytes > MOST_BYTES ||
            !place(f, w.spans, i, role == IR_TEMP ? &f->shared_size : &f->scratch_size))
            return opjit_rt_error_set(error, OPJIT_LIMIT, "temporary memory needs more than 2^40 bytes");
    }
    return OPJIT_OK;
}
