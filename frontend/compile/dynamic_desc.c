/* SPDX-License-Identifier: Apache-2.0 */
/* dynamic_desc.c - a graph whose descriptors have OPJIT_DIM for sizes: described for some sizes by operators that are
 * made of copies with the sizes themselves. */
#include <string.h>

#include "frontend/frontend.h"

#include <opjit/dynamic.h>

typedef struct symbolic {
    opjit_context *context;
    const DML_GRAPH_DESC *given;
    const DML_OPERATOR_DESC *const *operators;
    uint32_t dim_count;
    DML_GRAPH_DESC desc; /* the graph for the last sizes, in arena; its nodes */
    DML_OPERATOR_GRAPH_NODE_DESC *nodes;
    opjit_operator **made; /* NULL: the node's own */
    rt_arena arena;
} symbolic;

static void forget(symbolic *s)
{
    for (uint32_t i = 0; s->made != NULL && i < s->given->NodeCount; i++)
        opjit_operator_release(s->made[i]);
    s->made = NULL;
    opjit_rt_arena_free(&s->arena);
    opjit_rt_arena_init(&s->arena, &s->context->core->allocator);
}

static opjit_status put_node(symbolic *s, const uint64_t *dims, uint32_t i, DML_GRAPH_NODE_DESC *node,
                             opjit_error *error)
{
    DML_OPERATOR_DESC desc;

    if (node->Type != DML_GRAPH_NODE_TYPE_OPERATOR || node->Desc == NULL || s->operators[i] == NULL)
        return OPJIT_OK;
    TRY(opjit_fe_put_sizes(s->operators[i], dims, s->dim_count, &s->arena, &desc, error));
    const opjit_status status = opjit_operator_create(s->context, &desc, &s->made[i], error);
    if (status != OPJIT_OK)
        return opjit_rt_at_node(error, status, i);
    memcpy(&s->nodes[i], node->Desc, sizeof s->nodes[i]);
    s->nodes[i].Operator = s->made[i];
    node->Desc = &s->nodes[i];
    return OPJIT_OK;
}

static opjit_status describe(void *user, const uint64_t *dims, const DML_GRAPH_DESC **out, opjit_error *error)
{
    symbolic *const s = user;
    const uint32_t count = s->given->NodeCount;

    forget(s);
    s->desc = *s->given;
    *out = &s->desc;
    if (s->operators == NULL || s->given->Nodes == NULL || count == 0)
        return OPJIT_OK;
    DML_GRAPH_NODE_DESC *const nodes = opjit_rt_arena_copy(&s->arena, s->given->Nodes, count, sizeof *nodes);
    s->nodes = ARENA_ARRAY(&s->arena, DML_OPERATOR_GRAPH_NODE_DESC, count);
    s->made = ARENA_ARRAY(&s->arena, opjit_operator *, count);
    if (nodes == NULL || s->nodes == NULL || s->made == NULL)
        return opjit_rt_no_memory(error);
    for (uint32_t i = 0; i < count; i++)
        TRY(put_node(s, dims, i, &nodes[i], error));
    s->desc.Nodes = nodes;
    return OPJIT_OK;
}

opjit_status opjit_compile_dynamic_desc(opjit_context *context, const opjit_dim *dims, uint32_t dim_count,
                                        const DML_GRAPH_DESC *desc, const DML_OPERATOR_DESC *const *operators,
                                        const opjit_compile_options *options, opjit_kernel **out_kernel,
                                        opjit_error *error)
{
    symbolic s = { .context = context, .given = desc, .operators = operators, .dim_count = dim_count };

    opjit_rt_error_clear(error);
    if (out_kernel != NULL)
        *out_kernel = NULL;
    if (context == NULL || desc == NULL)
        return opjit_rt_refuse_null(error, context == NULL ? "context" : "desc");
    opjit_rt_arena_init(&s.arena, &context->core->allocator);
    const opjit_status status =
        opjit_compile_dynamic(context, dims, dim_count, describe, &s, options, out_kernel, error);
    forget(&s);
    return status;
}

opjit_status opjit_artifact_add_dynamic_desc(opjit_artifact *artifact, const opjit_dim *dims, uint32_t dim_count,
                                             const DML_GRAPH_DESC *desc, const DML_OPERATOR_DESC *const *operators,
                                             const opjit_compile_options *options, opjit_error *error)
{
    symbolic s = { .given = desc, .operators = operators, .dim_count = dim_count };

    opjit_rt_error_clear(error);
    if (artifact == NULL || desc == NULL)
        return opjit_rt_refuse_null(error, artifact == NULL ? "artifact" : "desc");
    s.context = opjit_fe_artifact_context(artifact);
    opjit_rt_arena_init(&s.arena, &s.context->core->allocator);
    const opjit_status status = opjit_artifact_add_dynamic(artifact, dims, dim_count, describe, &s, options, error);
    forget(&s);
    return status;
}
