/* SPDX-License-Identifier: Apache-2.0 */
/* single_stage.c - copies a stage into a function of its own, with only the nodes and tensors that it reaches.
 * Codegen's tables by node and by tensor are then as large as the stage, however many other stages the function has. */
#include "codegen/driver/driver.h"

/* --- the whole function ------------------------------------------------------------------------------------------- */

opjit_status opjit_cg_whole_init(cg_whole *w, const ir_func *ir, rt_arena *arena, opjit_error *error)
{
    uint32_t shared = 0; /* slots */
    *w = (cg_whole){ .ir = ir,
                     .node = ARENA_ARRAY(arena, uint32_t, ir->node_count),
                     .tensor = ARENA_ARRAY(arena, uint32_t, ir->tensor_count),
                     .nodes = ARENA_ARRAY(arena, ir_ref, ir->node_count),
                     .tensors = ARENA_ARRAY(arena, uint32_t, ir->tensor_count),
                     .path = ARENA_ARRAY(arena, ir_ref, ir->node_count),
                     .aliased = ARENA_ARRAY(arena, bool, ir->tensor_count) };
    if (!w->node || !w->tensor || !w->nodes || !w->tensors || !w->path || !w->aliased)
        return opjit_rt_no_memory(error);
    for (uint32_t t = 1; t < ir->tensor_count; t++) {
        if (ir->tensors[t].role != IR_OUT)
            continue;
        w->aliased[ir->tensors[t].alias] = true;
        shared |= ir->tensors[t].shared;
    }
    for (uint32_t t = 1; t < ir->tensor_count && shared != 0; t++)
        if (ir->tensors[t].role == IR_IN && ir->tensors[t].slot < 32 && (shared >> ir->tensors[t].slot & 1) != 0)
            w->aliased[t] = true;
    return OPJIT_OK;
}

/* --- what a stage reaches ----------------------------------------------------------------------------------------- */

static void take(cg_whole *w, ir_ref node)
{
    w->nodes[++w->node_count] = node;
    w->node[node] = w->node_count;
}

/* Expressions may be of any depth, so the path is kept in memory of its own. */
static void take_expr(cg_whole *w, ir_ref root)
{
    uint32_t depth = 0;
    if (w->node[root] == 0)
        w->path[depth++] = root;
    while (depth > 0) {
        const ir_ref node = w->path[depth - 1];
        uint32_t i = 0;
        while (i < ir_at(w->ir, node)->count && w->node[ir_operand(w->ir, node, i)] != 0)
            i++;
        if (i < ir_at(w->ir, node)->count) {
            w->path[depth++] = ir_operand(w->ir, node, i);
        } else {
            take(w, node);
            depth--;
        }
    }
}

static void take_statement(cg_whole *w, ir_ref s)
{
    const ir_node *n = ir_at(w->ir, s);
    for (uint32_t i = 0; i < n->count; i++)
        take_expr(w, ir_operand(w->ir, s, i));
    take(w, s);
    if (n->op != IR_FOR && n->op != IR_STAGE)
        return;
    take(w, n->ref);
    for (ir_ref inner = n->body; inner != 0; inner = ir_at(w->ir, inner)->next) /* as deep as loops nest: rule V16 */
        take_statement(w, inner);
}

/* The tensor's number in the stage; the tensor that it shows, or whose memory it shares, comes first. */
static uint32_t take_tensor(cg_whole *w, uint32_t tensor)
{
    const ir_tensor *t = &w->ir->tensors[tensor];
    if (tensor == 0 || w->tensor[tensor] != 0)
        return w->tensor[tensor];
    if (t->role == IR_VIEW && t->of < tensor)
        take_tensor(w, t->of);
    if (t->role == IR_OUT)
        take_tensor(w, t->alias);
    w->tensors[++w->tensor_count] = tensor;
    return w->tensor[tensor] = w->tensor_count;
}

/* --- the copy ----------------------------------------------------------------------------------------------------- */

static bool names_tensor(const ir_node *n)
{
    return n->op == IR_LOAD || n->op == IR_STORE || n->op == IR_HEAD;
}

static void copy_nodes(cg_whole *w, ir_func *out)
{
    for (uint32_t i = 1; i <= w->node_count; i++) {
        const ir_ref old = w->nodes[i];
        ir_node *n = &out->nodes[i];
        *n = *ir_at(w->ir, old);
        n->first = out->operand_count;
        for (uint32_t k = 0; k < n->count; k++)
            out->operands[out->operand_count++] = w->node[ir_operand(w->ir, old, k)];
        n->next = w->node[n->next];
        n->body = w->node[n->body];
        if (names_tensor(n))
            n->ref = w->tensor[n->ref];
        else if (ir_names_node(n))
            n->ref = w->node[n->ref];
    }
}

static void copy_tensors(const cg_whole *w, ir_func *out)
{
    for (uint32_t i = 1; i <= w->tensor_count; i++) {
        out->tensors[i] = w->ir->tensors[w->tensors[i]];
        out->tensors[i].of = w->tensor[out->tensors[i].of];
        out->tensors[i].alias = w->tensor[out->tensors[i].alias];
    }
}

static void forget_stage(cg_whole *w)
{
    for (; w->node_count > 0; w->node_count--)
        w->node[w->nodes[w->node_count]] = 0;
    for (; w->tensor_count > 0; w->tensor_count--)
        w->tensor[w->tensors[w->tensor_count]] = 0;
}

opjit_status opjit_cg_single(cg_whole *w, ir_ref stage, rt_arena *arena, cg_single *single, opjit_error *error)
{
    ir_func *out = &single->ir;
    uint32_t operands = 0;
    forget_stage(w);
    take_statement(w, stage);
    for (uint32_t i = 1; i <= w->node_count; i++) {
        const ir_node *n = ir_at(w->ir, w->nodes[i]);
        operands += n->count;
        if (names_tensor(n))
            take_tensor(w, n->ref);
    }
    *single = (cg_single){ .ir = *w->ir };
    out->node_count = w->node_count + 1;
    out->tensor_count = w->tensor_count + 1;
    out->operand_count = 0;
    out->nodes = ARENA_ARRAY(arena, ir_node, out->node_count);
    out->tensors = ARENA_ARRAY(arena, ir_tensor, out->tensor_count);
    out->operands = ARENA_ARRAY(arena, ir_ref, operands);
    single->aliased = ARENA_ARRAY(arena, bool, out->tensor_count);
    single->nodes = opjit_rt_arena_copy(arena, w->nodes, out->node_count, sizeof *w->nodes);
    if (!out->nodes || !out->tensors || !out->operands || !single->aliased || !single->nodes)
        return opjit_rt_no_memory(error);
    copy_nodes(w, out);
    copy_tensors(w, out);
    for (uint32_t i = 1; i <= w->tensor_count; i++)
        single->aliased[i] = w->aliased[w->tensors[i]];
    out->body = w->node[stage];
    out->nodes[out->body].next = 0;
    return OPJIT_OK;
}
