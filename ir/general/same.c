/* SPDX-License-Identifier: Apache-2.0 */
/* same.c - whether two functions in loop form are the same, statement by statement: what their texts would tell, at a
 * tenth of the time.  Tensors have to have the same numbers; where they have not, texts tell. */
#include "ir/general/general.h"

#include "ir/core/internal.h"

#include <string.h>

enum { DEEPEST = 256 /* expressions in each other */ };

typedef struct pair {
    const ir_func *a, *b;
    ir_ref *map;  /* by node of a: the one of b that it is, */
    bool unknown; /* but for names, or what no text has */
    bool others;  /* statements, expressions or constants differ */
} pair;

static bool same_tensor(const ir_tensor *a, const ir_tensor *b)
{
    return a->role == b->role && a->type == b->type && a->rank == b->rank && a->align == b->align &&
           a->slot == b->slot && a->alias == b->alias && a->shared == b->shared && a->of == b->of &&
           a->bytes == b->bytes && a->offset == b->offset &&
           memcmp(a->sizes, b->sizes, a->rank * sizeof *a->sizes) == 0 &&
           memcmp(a->strides, b->strides, a->rank * sizeof *a->strides) == 0 &&
           (a->data == NULL) == (b->data == NULL) &&
           (a->data == NULL || memcmp(a->data, b->data, (size_t)a->bytes) == 0);
}

/* But for what they read, and what is in them. */
static bool same_node(const pair *p, const ir_node *a, const ir_node *b)
{
    return a->op == b->op && a->type == b->type && a->kind == b->kind && a->hold == b->hold && a->flags == b->flags &&
           a->block == b->block && a->vec == b->vec && a->unroll == b->unroll && a->count == b->count &&
           a->imm == b->imm && (ir_names_node(a) ? p->map[a->ref] : a->ref) == b->ref;
}

static void compare_expr(pair *p, ir_ref a, ir_ref b, uint32_t depth)
{
    const ir_node *m = ir_at(p->a, a), *n = ir_at(p->b, b);

    if (p->map[a] == b)
        return;
    p->others = p->others || m->op != n->op || m->count != n->count ||
                (m->op == IR_CONST && m->type == n->type && m->imm != n->imm);
    p->unknown = p->unknown || depth == DEEPEST || m->op == IR_VAR || !same_node(p, m, n);
    for (uint32_t i = 0; i < m->count && depth < DEEPEST && !p->others; i++)
        compare_expr(p, ir_operand(p->a, a, i), ir_operand(p->b, b, i), depth + 1);
    p->map[a] = b;
}

static void compare_block(pair *p, ir_ref a, ir_ref b)
{
    for (; a != 0 && b != 0 && !p->others; a = ir_at(p->a, a)->next, b = ir_at(p->b, b)->next) {
        const ir_node *m = ir_at(p->a, a), *n = ir_at(p->b, b);
        p->map[a] = b;
        p->others = m->op != n->op || m->count != n->count;
        if (p->others)
            return;
        if (m->op == IR_FOR || m->op == IR_STAGE)
            p->map[m->ref] = n->ref;
        p->unknown = p->unknown || !same_node(p, m, n);
        for (uint32_t i = 0; i < m->count; i++)
            compare_expr(p, ir_operand(p->a, a, i), ir_operand(p->b, b, i), 0);
        if (m->op == IR_FOR || m->op == IR_STAGE)
            compare_block(p, m->body, n->body);
    }
    p->others = p->others || a != b; /* one of them is longer */
}

ir_same opjit_ir_are_same(ir_func *a, const ir_func *b)
{
    pair p = { .a = a, .b = b, .map = ARENA_ARRAY(&a->scratch, ir_ref, a->node_count) };

    if (p.map == NULL)
        return IR_SAME_UNKNOWN;
    p.unknown = a->tensor_count != b->tensor_count || a->param_count != b->param_count;
    for (uint32_t t = 1; t < a->tensor_count && !p.unknown; t++)
        p.unknown = !same_tensor(&a->tensors[t], &b->tensors[t]);
    for (uint32_t i = 1; i < a->param_count && !p.unknown; i++)
        p.unknown = a->params[i].type != b->params[i].type || a->params[i].lo != b->params[i].lo ||
                    a->params[i].hi != b->params[i].hi;
    compare_block(&p, a->body, b->body);
    return p.others ? IR_SAME_NOT : p.unknown ? IR_SAME_UNKNOWN : IR_SAME;
}
