/* SPDX-License-Identifier: Apache-2.0 */
/* request.c - checks and copies an operator's or graph's description with its compile options, so that they can be
 * compiled when the caller's memory is gone.  What is copied has been checked: counts, types, and pointers that are
 * NULL. */
#include "frontend/compile/request.h"

#include <string.h>

/* --- descriptions ------------------------------------------------------------------------------------------------- */

static const rt_struct desc_sizes = { "opjit_async_desc",
                                      { RT_SIZE_TO(opjit_async_desc, user), RT_SIZE_TO(opjit_async_desc, built) } };
RT_STRUCT_ENDS_WITH(opjit_async_desc, built);

/* ask: how the graph is to be asked for, which is out->graph in any case. */
static opjit_status read_desc(const opjit_async_desc *given, opjit_async_desc *out, fe_ask *ask, opjit_error *error)
{
    TRY(opjit_rt_struct_read(&desc_sizes, out, given, error));
    const int subjects = (out->op != NULL) + (out->graph != NULL) + (out->built != NULL);
    if (subjects != 1)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                               "{async_desc}: {op, graph, built}: {%d} of them, must be one", subjects);
    *ask = (fe_ask){ .is_named = false };
    if (out->built != NULL)
        TRY(opjit_fe_built(out->built, &out->graph, ask, error));
    if (out->executor == NULL || out->executor->submit == NULL)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{async_desc}: {%s} is {NULL}",
                               out->executor == NULL ? "executor" : "executor.submit");
    if (out->first > OPJIT_TIER_QUICK)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                               "{async_desc}: {first}: {%u}, must be an opjit_tier (0 to %u)", out->first,
                               (unsigned)OPJIT_TIER_QUICK);
    return OPJIT_OK;
}

/* Refuses what opjit_compile_operator or _graph would, as far as it follows from the description. */
static opjit_status check(opjit_context *context, const opjit_async_desc *desc, bool is_named, opjit_error *error)
{
    fe_options options;
    fe_subject subject;
    fe_graph graph = { 0 };
    opjit_status status;

    TRY(opjit_fe_options_read(context, desc->op, desc->options, &options, error));
    if (desc->first == OPJIT_TIER_INTERPRETED && rt_target_team(options.target) > 0)
        return opjit_rt_refuse(error, OPJIT_UNSUPPORTED,
                               "{async_desc}: {first}: {OPJIT_TIER_INTERPRETED} is not for a device's kernels");
    if (desc->first == OPJIT_TIER_QUICK && desc->options != NULL && desc->options->level == OPJIT_LEVEL_QUICK)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                               "{async_desc}: {options.level}: {quick}, must be peak or auto where first is "
                               "OPJIT_TIER_QUICK");
    if (desc->op != NULL)
        return OPJIT_OK;
    TRY(opjit_fe_graph_subject(desc->graph, desc->options, &subject, error));
    subject.is_named = is_named;
    opjit_rt_arena_init(&graph.arena, &context->core->allocator);
    status = opjit_fe_graph_read(context, &subject, false, &graph, error);
    opjit_fe_graph_free(&graph);
    return status;
}

opjit_status opjit_fe_request_read(opjit_context *context, const opjit_async_desc *given, opjit_async_desc *out,
                                   fe_ask *ask, opjit_error *error)
{
    TRY(read_desc(given, out, ask, error));
    return check(context, out, ask->is_named, error);
}

/* --- options ------------------------------------------------------------------------------------------------------ */

static opjit_status copy_text(fe_request *r, const char *text, const char **out, opjit_error *error)
{
    *out = text == NULL ? NULL : opjit_rt_arena_string(&r->arena, text, strlen(text));
    return text == NULL || *out != NULL ? OPJIT_OK : opjit_rt_no_memory(error);
}

static opjit_status copy_options(fe_request *r, const opjit_compile_options *given, opjit_error *error)
{
    opjit_compile_options *options = &r->options;
    const char **late;

    *options = (opjit_compile_options)OPJIT_COMPILE_OPTIONS_INIT;
    if (given != NULL)
        TRY(opjit_fe_options_copy(given, options, error));
    options->struct_size = sizeof *options;
    options->executor = NULL; /* the caller may go before the job */
    late = ARENA_ARRAY(&r->arena, const char *, options->late_count);
    if (late == NULL)
        return opjit_rt_no_memory(error);
    for (uint32_t i = 0; i < options->late_count; i++)
        TRY(copy_text(r, options->late[i], &late[i], error));
    options->late = late;
    TRY(copy_text(r, options->target, &options->target, error));
    return copy_text(r, options->name, &options->name, error);
}

/* --- graphs ------------------------------------------------------------------------------------------------------- */

static opjit_status copy_operator(fe_request *r, const DML_OPERATOR_GRAPH_NODE_DESC *given, DML_GRAPH_NODE_DESC *out,
                                  opjit_error *error)
{
    DML_OPERATOR_GRAPH_NODE_DESC *node = ARENA_NEW(&r->arena, DML_OPERATOR_GRAPH_NODE_DESC);

    if (node == NULL)
        return opjit_rt_no_memory(error);
    TRY(copy_text(r, given->Name, &node->Name, error));
    node->Operator = given->Operator;
    opjit_operator_retain(node->Operator);
    *out = (DML_GRAPH_NODE_DESC){ DML_GRAPH_NODE_TYPE_OPERATOR, node };
    return OPJIT_OK;
}

/* Large data is stored where the kernel's will be; that which the caller lends the kernel stays where it is. */
static opjit_status copy_data(fe_request *r, const DML_CONSTANT_DATA_GRAPH_NODE_DESC *given, rt_constant **out_shared,
                              const void **out, opjit_error *error)
{
    *out = given->Data;
    if (given->DataSize <= FE_FOLDED_BYTES) {
        *out = opjit_rt_arena_copy(&r->arena, given->Data, given->DataSize, 1);
        return *out != NULL ? OPJIT_OK : opjit_rt_no_memory(error);
    }
    if ((r->options.flags & OPJIT_COMPILE_BORROW_CONSTANTS) != 0)
        return OPJIT_OK;
    TRY(opjit_rt_constant_share(&r->core->constants, given->Data, given->DataSize, out_shared, error));
    *out = (*out_shared)->data;
    return OPJIT_OK;
}

static opjit_status copy_constant(fe_request *r, const DML_CONSTANT_DATA_GRAPH_NODE_DESC *given, uint32_t index,
                                  DML_GRAPH_NODE_DESC *out, opjit_error *error)
{
    DML_CONSTANT_DATA_GRAPH_NODE_DESC *node = ARENA_NEW(&r->arena, DML_CONSTANT_DATA_GRAPH_NODE_DESC);

    if (node == NULL)
        return opjit_rt_no_memory(error);
    TRY(copy_text(r, given->Name, &node->Name, error));
    TRY(copy_data(r, given, &r->shared[index], &node->Data, error));
    node->DataSize = given->DataSize;
    *out = (DML_GRAPH_NODE_DESC){ DML_GRAPH_NODE_TYPE_CONSTANT, node };
    return OPJIT_OK;
}

/* Nodes that are not copied yet have type 0. */
static opjit_status copy_nodes(fe_request *r, const DML_GRAPH_DESC *given, opjit_error *error)
{
    DML_GRAPH_NODE_DESC *nodes = ARENA_ARRAY(&r->arena, DML_GRAPH_NODE_DESC, given->NodeCount);

    r->shared = ARENA_ARRAY(&r->arena, rt_constant *, given->NodeCount);
    if (nodes == NULL || r->shared == NULL)
        return opjit_rt_no_memory(error);
    r->graph.Nodes = nodes;
    r->graph.NodeCount = given->NodeCount;
    for (uint32_t i = 0; i < given->NodeCount; i++)
        TRY(given->Nodes[i].Type == DML_GRAPH_NODE_TYPE_OPERATOR
                ? copy_operator(r, given->Nodes[i].Desc, &nodes[i], error)
                : copy_constant(r, given->Nodes[i].Desc, i, &nodes[i], error));
    return OPJIT_OK;
}

/* Edges of one type, whose structures have `size` bytes and a Name at `name`. */
static opjit_status copy_edges(fe_request *r, const DML_GRAPH_EDGE_DESC *given, uint32_t count, size_t size,
                               size_t name, const DML_GRAPH_EDGE_DESC **out, opjit_error *error)
{
    DML_GRAPH_EDGE_DESC *edges = ARENA_ARRAY(&r->arena, DML_GRAPH_EDGE_DESC, count);

    if (edges == NULL)
        return opjit_rt_no_memory(error);
    for (uint32_t i = 0; i < count; i++) {
        char *edge = opjit_rt_arena_copy(&r->arena, given[i].Desc, 1, size);
        if (edge == NULL)
            return opjit_rt_no_memory(error);
        TRY(copy_text(r, *(const char *const *)(const void *)(edge + name), (const char **)(void *)(edge + name),
                      error));
        edges[i] = (DML_GRAPH_EDGE_DESC){ given[i].Type, edge };
    }
    *out = edges;
    return OPJIT_OK;
}

#define COPY_EDGES(edges, count, type) \
    copy_edges(r, given->edges, given->count, sizeof(type), offsetof(type, Name), &r->graph.edges, error)

static opjit_status copy_graph(fe_request *r, const DML_GRAPH_DESC *given, opjit_error *error)
{
    TRY(copy_nodes(r, given, error));
    TRY(COPY_EDGES(InputEdges, InputEdgeCount, DML_INPUT_GRAPH_EDGE_DESC));
    TRY(COPY_EDGES(OutputEdges, OutputEdgeCount, DML_OUTPUT_GRAPH_EDGE_DESC));
    TRY(COPY_EDGES(IntermediateEdges, IntermediateEdgeCount, DML_INTERMEDIATE_GRAPH_EDGE_DESC));
    r->graph.InputCount = given->InputCount;
    r->graph.OutputCount = given->OutputCount;
    r->graph.InputEdgeCount = given->InputEdgeCount;
    r->graph.OutputEdgeCount = given->OutputEdgeCount;
    r->graph.IntermediateEdgeCount = given->IntermediateEdgeCount;
    return OPJIT_OK;
}

/* --- life --------------------------------------------------------------------------------------------------------- */

opjit_status opjit_fe_request_copy(rt_core *core, opjit_operator *op, const DML_GRAPH_DESC *graph,
                                   const opjit_compile_options *options, fe_request *out, opjit_error *error)
{
    *out = (fe_request){ .core = core };
    opjit_rt_arena_init(&out->arena, &core->allocator);
    TRY(copy_options(out, options, error));
    if (op == NULL)
        return copy_graph(out, graph, error);
    opjit_operator_retain(op);
    out->op = op;
    return OPJIT_OK;
}

void opjit_fe_request_free(fe_request *request)
{
    for (uint32_t i = 0; i < request->graph.NodeCount; i++) {
        const DML_GRAPH_NODE_DESC *node = &request->graph.Nodes[i];
        if (node->Type == DML_GRAPH_NODE_TYPE_OPERATOR)
            opjit_operator_release(((const DML_OPERATOR_GRAPH_NODE_DESC *)node->Desc)->Operator);
        if (request->shared[i] != NULL)
            opjit_rt_constant_release(&request->core->constants, request->shared[i]);
    }
    opjit_operator_release(request->op);
    opjit_rt_arena_free(&request->arena);
    request->graph.NodeCount = 0;
    request->op = NULL;
}
