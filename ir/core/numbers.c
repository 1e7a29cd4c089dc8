/* SPDX-License-Identifier: Apache-2.0 */
/* numbers.c - assigns each tensor, parameter and statement its number in the text: one sequence, in print order.  For
 * the printer, and for messages that name a node. */
#include "ir/core/internal.h"

#include <stdio.h>
#include <string.h>

typedef struct numbering {
    const ir_func *f;
    ir_numbers *n;
    uint32_t next;
    uint8_t *seen;  /* one byte per node: operands already searched for views */
    uint32_t steps; /* statements left, so that a cyclic list ends */
} numbering;

static void number(numbering *s, uint32_t *slot)
{
    if (*slot == 0)
        *slot = ++s->next;
}

/* Numbers a view after the tensor it shows. */
static void number_view(numbering *s, uint32_t tensor, uint32_t depth)
{
    if (depth == 0 || tensor >= s->f->tensor_count || s->n->tensors[tensor] || s->f->tensors[tensor].role != IR_VIEW)
        return;
    number_view(s, s->f->tensors[tensor].of, depth - 1);
    number(s, &s->n->tensors[tensor]);
    s->n->views[s->n->view_count++] = tensor;
}

static void number_views_of(numbering *s, ir_ref expr)
{
    if (expr >= s->f->node_count || s->seen[expr])
        return;
    s->seen[expr] = 1;
    const ir_node *node = ir_at(s->f, expr);
    if (node->op == IR_LOAD || node->op == IR_STORE)
        number_view(s, node->ref, IR_LIMIT_DEPTH);
    for (uint32_t i = 0; i < node->count; i++)
        number_views_of(s, ir_operand(s->f, expr, i));
}

static void number_views_of_block(numbering *s, ir_ref first)
{
    for (ir_ref r = first; r && r < s->f->node_count && !s->seen[r]; r = ir_at(s->f, r)->next) {
        number_views_of(s, r);
        number_views_of_block(s, ir_at(s->f, r)->body);
    }
}

static void number_block(numbering *s, ir_ref first)
{
    for (ir_ref r = first; r && r < s->f->node_count && s->steps > 0; r = ir_at(s->f, r)->next) {
        const ir_node *node = ir_at(s->f, r);
        s->steps--;
        if (node->op == IR_LET || node->op == IR_ACC)
            number(s, &s->n->nodes[r]);
        else if ((node->op == IR_FOR || node->op == IR_STAGE) && node->ref < s->f->node_count) {
            number(s, &s->n->nodes[node->ref]);
            number_block(s, node->body);
        }
    }
}

static void number_item(numbering *s, ir_ref item)
{
    const ir_func *f = s->f;
    const ir_node *node = ir_at(f, item);
    number_views_of(s, item);
    number_views_of_block(s, node->body);
    if (ir_is_definition(f, item) && node->ref < f->tensor_count)
        number(s, &s->n->tensors[node->ref]);
    if (ir_is_definition(f, item) || node->op == IR_YIELD) {
        const uint32_t rank = node->ref < f->tensor_count ? f->tensors[node->ref].rank : 0;
        for (uint32_t d = 0; d < rank + (node->kind != 0 || node->op == IR_SCATTER) && 1 + d < node->count; d++)
            if (ir_operand(f, item, 1 + d) < f->node_count)
                number(s, &s->n->nodes[ir_operand(f, item, 1 + d)]);
        return;
    }
    if (node->op == IR_STAGE && node->ref < f->node_count)
        number(s, &s->n->nodes[node->ref]);
    number_block(s, node->body);
}

/* Declarations, in the order of the text: inputs and outputs, constants, memory, parameters. */
static void number_declarations(numbering *s)
{
    for (uint32_t pass = 0; pass < 2; pass++)
        for (uint32_t i = 1; i < s->f->tensor_count; i++) {
            const ir_role role = s->f->tensors[i].role;
            if (pass == 0 ? role == IR_IN || role == IR_OUT
                          : role == IR_CONSTANT || ir_is_memory(role))
                number(s, &s->n->tensors[i]);
        }
    for (uint32_t i = 1; i < s->f->param_count; i++)
        number(s, &s->n->params[i]);
}

static uint32_t *new_array(const ir_numbers *n, uint32_t count)
{
    uint32_t *array = opjit_rt_allocate(n->allocator, count * sizeof(uint32_t), 8);
    if (array)
        memset(array, 0, count * sizeof(uint32_t));
    return array;
}

bool opjit_ir_numbers_init(const ir_func *f, ir_numbers *out)
{
    *out = (ir_numbers){ .allocator = f->allocator,
                         .node_count = f->node_count,
                         .tensor_count = f->tensor_count,
                         .param_count = f->param_count };
    out->nodes = new_array(out, f->node_count);
    out->tensors = new_array(out, f->tensor_count);
    out->params = new_array(out, f->param_count);
    out->views = new_array(out, f->tensor_count);
    numbering s = { .f = f, .n = out, .steps = f->node_count };
    s.seen = opjit_rt_allocate(f->allocator, f->node_count, 1);
    const bool ok = out->nodes && out->tensors && out->params && out->views && s.seen;
    if (ok) {
        memset(s.seen, 0, f->node_count);
        number_declarations(&s);
        for (ir_ref r = f->body; r && r < f->node_count && s.steps > 0; r = ir_at(f, r)->next, s.steps--)
            number_item(&s, r);
    }
    opjit_rt_release(f->allocator, s.seen, f->node_count);
    if (!ok)
        opjit_ir_numbers_free(out);
    return ok;
}

void opjit_ir_numbers_free(ir_numbers *n)
{
    if (!n->allocator)
        return;
    opjit_rt_release(n->allocator, n->nodes, n->node_count * sizeof(uint32_t));
    opjit_rt_release(n->allocator, n->tensors, n->tensor_count * sizeof(uint32_t));
    opjit_rt_release(n->allocator, n->params, n->param_count * sizeof(uint32_t));
    opjit_rt_release(n->allocator, n->views, n->tensor_count * sizeof(uint32_t));
    *n = (ir_numbers){ .allocator = NULL };
}

void opjit_ir_numbers_text(const ir_func *f, const ir_numbers *n, ir_ref r, char *text, size_t size)
{
    const ir_node *node = ir_at(f, r);
    const char *name = node->op < IR_OP_COUNT ? opjit_ir_op_infos[node->op].name : "?";
    uint32_t id = r < n->node_count ? n->nodes[r] : 0;
    const bool memory = node->op == IR_STORE || node->op == IR_LOAD || ir_is_definition(f, r) || node->op == IR_YIELD ||
                        node->op == IR_HEAD;
    if (memory && node->ref < n->tensor_count)
        id = n->tensors[node->ref];
    else if (node->op == IR_PARAM && node->ref < n->param_count)
        id = n->params[node->ref];
    else if ((node->op == IR_GET || node->op == IR_UPD || node->op == IR_FOR || node->op == IR_STAGE) &&
             node->ref < n->node_count)
        id = n->nodes[node->ref];
    if (id)
        snprintf(text, size, "%%%u %s", id - 1, name);
    else
        snprintf(text, size, "%s", name);
}
