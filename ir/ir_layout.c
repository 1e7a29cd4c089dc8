/* SPDX-License-Identifier: Apache-2.0 */
/* ir_layout.c - where memory lies: offsets of temps and scratch, and which output may share memory with which input. */
#include "ir/ir_internal.h"

enum { MEMORY_ALIGN = 64 };
#define MOST_BYTES (UINT64_C(1) << 40) /* of all temps, and of all scratch: products with workers and teams fit */

/* --- layout ------------------------------------------------------------------------------------------------------- */

/* The first and last stage that touch a tensor; first > last: none does. */
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
    uint32_t *seen; /* by node: stage + 1 of the last visit */
    uint32_t stage;
} span_walk;

static void touch_expr(span_walk *w, ir_ref expr)
{
    const ir_node *node = ir_at(w->f, expr);
    if (w->seen[expr] == w->stage + 1)
        return;
    w->seen[expr] = w->stage + 1;
    if (node->op == IR_LOAD || node->op == IR_STORE)
        touch(&w->spans[opjit_ir_root(w->f, node->ref)], w->stage);
    for (uint32_t i = 0; i < node->count; i++)
        touch_expr(w, ir_operand(w->f, expr, i));
}

static void touch_block(span_walk *w, ir_ref first)
{
    for (ir_ref s = first; s; s = ir_at(w->f, s)->next) {
        touch_expr(w, s);
        touch_block(w, ir_at(w->f, s)->body);
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
        touch_block(&w, ir_at(f, s)->body);
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

/* --- aliasing ----------------------------------------------------------------------------------------------------- */

/* Where the elements lie; how much memory follows the last one does not matter. */
static bool same_layout(const ir_tensor *a, const ir_tensor *b)
{
    if (a->type != b->type || a->rank != b->rank)
        return false;
    for (uint32_t d = 0; d < a->rank; d++)
        if (a->sizes[d] != b->sizes[d] || (a->sizes[d] > 1 && a->strides[d] != b->strides[d]))
            return false;
    return true;
}

typedef struct alias_walk {
    const ir_func *f;
    uint32_t out, in;
    ir_ref seen[64];
} alias_walk;

/* Whether the value of expr can't change while the block that it stands in runs once. */
static bool is_fixed(const ir_func *f, ir_ref expr, uint32_t depth)
{
    const ir_node *node = ir_at(f, expr);
    if (depth == 0 || node->op == IR_LOAD || (node->op == IR_GET && ir_at(f, node->ref)->op == IR_ACC))
        return false;
    for (uint32_t i = 0; i < node->count; i++)
        if (!is_fixed(f, ir_operand(f, expr, i), depth - 1))
            return false;
    return true;
}

/* Whether the output is stored at the coordinates of load, in the block of `from`, in `from` or later. */
static bool stored_later(const alias_walk *w, ir_ref load, ir_ref from)
{
    const ir_func *f = w->f;
    for (ir_ref s = from; s; s = ir_at(f, s)->next) {
        const ir_node *node = ir_at(f, s);
        bool equal = node->op == IR_STORE && node->ref == w->out;
        for (uint32_t d = 0; equal && d < ir_at(f, load)->count; d++)
            equal = opjit_ir_same(f, ir_operand(f, s, 1 + d), ir_operand(f, load, d)) &&
                    is_fixed(f, ir_operand(f, load, d), 16);
        if (equal)
            return true;
    }
    return false;
}

/* Whether the tensor is a view of the memory in question. */
static bool shows(const alias_walk *w, uint32_t tensor)
{
    const ir_tensor *tensors = w->f->tensors;
    if (tensors[tensor].role != IR_VIEW)
        return false;
    while (tensors[tensor].role == IR_VIEW)
        tensor = tensors[tensor].of;
    return tensor == w->in || tensor == w->out;
}

static bool loads_allow(alias_walk *w, ir_ref expr, ir_ref statement)
{
    const ir_node *node = ir_at(w->f, expr);
    if (w->seen[expr % 64] == expr)
        return true;
    if (node->op == IR_LOAD && (node->ref == w->out || (node->ref == w->in && !stored_later(w, expr, statement))))
        return false;
    if (node->op == IR_LOAD && shows(w, node->ref))
        return false;
    for (uint32_t i = 0; i < node->count; i++)
        if (!loads_allow(w, ir_operand(w->f, expr, i), statement))
            return false;
    w->seen[expr % 64] = expr;
    return true;
}

static bool block_allows(alias_walk *w, ir_ref first)
{
    for (ir_ref s = first; s; s = ir_at(w->f, s)->next) {
        for (uint32_t i = 0; i < 64; i++)
            w->seen[i] = 0; /* what holds of a load depends on the statement */
        for (uint32_t i = 0; i < ir_at(w->f, s)->count; i++)
            if (!loads_allow(w, ir_operand(w->f, s, i), s))
                return false;
        if (!block_allows(w, ir_at(w->f, s)->body))
            return false;
    }
    return true;
}

/* Value form: only the plain case, a yield of the output whose loads of the input stand at its own coordinate. */
static bool yield_loads_allow(const alias_walk *w, ir_ref expr, ir_ref yield, uint32_t *budget)
{
    const ir_func *f = w->f;
    const ir_node *node = ir_at(f, expr);
    if ((*budget)-- == 0 || (node->op == IR_LOAD && f->tensors[node->ref].role == IR_VIEW)) {
        *budget = 0;
        return false;
    }
    if (node->op == IR_LOAD && node->ref == w->in) {
        if (ir_at(f, yield)->op != IR_YIELD || ir_at(f, yield)->ref != w->out || ir_at(f, yield)->imm)
            return false;
        for (uint32_t d = 0; d < node->count; d++)
            if (ir_operand(f, expr, d) != ir_operand(f, yield, 1 + d))
                return false;
    }
    for (uint32_t i = 0; i < node->count; i++)
        if (!yield_loads_allow(w, ir_operand(f, expr, i), yield, budget))
            return false;
    return true;
}

bool opjit_ir_may_alias(const ir_func *f, uint32_t out, uint32_t in)
{
    alias_walk w = { .f = f, .out = out, .in = in };
    if (out >= f->tensor_count || in >= f->tensor_count || f->tensors[out].role != IR_OUT ||
        f->tensors[in].role != IR_IN || !same_layout(&f->tensors[out], &f->tensors[in]))
        return false;
    if (f->stage >= IR_PLACED)
        return block_allows(&w, f->body);
    for (ir_ref s = f->body; s; s = ir_at(f, s)->next) {
        uint32_t budget = 10000;
        if (!yield_loads_allow(&w, ir_operand(f, s, 0), s, &budget))
            return false;
    }
    return true;
}
