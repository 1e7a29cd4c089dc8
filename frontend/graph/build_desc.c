/* SPDX-License-Identifier: Apache-2.0 */
/* build_desc.c - a graph that is being built, as a DML_GRAPH_DESC, and compiled: what a builder makes is read like any
 * other description (read.c). */
#include "frontend/graph/build.h"

/* The description's arrays, in the graph's arena for it. */
typedef struct writer {
    const opjit_graph *g;
    rt_arena *arena;
    DML_GRAPH_EDGE_DESC *inputs, *between, *outputs;
    DML_INPUT_GRAPH_EDGE_DESC *input_edges;
    DML_INTERMEDIATE_GRAPH_EDGE_DESC *between_edges;
    uint32_t input_count, between_count; /* written so far */
} writer;

/* Nodes: operators in the order in which they were added, then constants. */
static uint32_t index_of(const writer *w, const fe_source *source)
{
    return source->kind == FE_CONSTANT ? w->g->nodes.count + source->index : source->index;
}

static void write_edge(writer *w, const fe_source *from, uint32_t node, uint32_t input)
{
    if (from->kind == FE_INPUT) {
        DML_INPUT_GRAPH_EDGE_DESC *edge = &w->input_edges[w->input_count];
        *edge = (DML_INPUT_GRAPH_EDGE_DESC){ .GraphInputIndex = from->index,
                                             .ToNodeIndex = node,
                                             .ToNodeInputIndex = input,
                                             .Name = ((const build_input *)w->g->inputs.items)[from->index].name };
        w->inputs[w->input_count++] = (DML_GRAPH_EDGE_DESC){ DML_GRAPH_EDGE_TYPE_INPUT, edge };
    } else if (from->kind != FE_ABSENT) {
        DML_INTERMEDIATE_GRAPH_EDGE_DESC *edge = &w->between_edges[w->between_count];
        *edge = (DML_INTERMEDIATE_GRAPH_EDGE_DESC){ .FromNodeIndex = index_of(w, from),
                                                    .FromNodeOutputIndex = from->output,
                                                    .ToNodeIndex = node,
                                                    .ToNodeInputIndex = input };
        w->between[w->between_count++] = (DML_GRAPH_EDGE_DESC){ DML_GRAPH_EDGE_TYPE_INTERMEDIATE, edge };
    }
}

/* As many edges of each kind as write_edge writes. */
static bool allocate_edges(writer *w)
{
    uint32_t counts[FE_CONSTANT + 1] = { 0 };

    for (uint32_t i = 0; i < w->g->nodes.count; i++)
        for (uint32_t k = 0; k < build_nodes(w->g)[i].op->input_count; k++)
            counts[build_nodes(w->g)[i].sources[k].kind]++;
    w->inputs = ARENA_ARRAY(w->arena, DML_GRAPH_EDGE_DESC, counts[FE_INPUT]);
    w->input_edges = ARENA_ARRAY(w->arena, DML_INPUT_GRAPH_EDGE_DESC, counts[FE_INPUT]);
    w->between = ARENA_ARRAY(w->arena, DML_GRAPH_EDGE_DESC, counts[FE_NODE] + counts[FE_CONSTANT]);
    w->between_edges = ARENA_ARRAY(w->arena, DML_INTERMEDIATE_GRAPH_EDGE_DESC, counts[FE_NODE] + counts[FE_CONSTANT]);
    w->outputs = ARENA_ARRAY(w->arena, DML_GRAPH_EDGE_DESC, w->g->outputs.count);
    return w->inputs != NULL && w->input_edges != NULL && w->between != NULL && w->between_edges != NULL &&
           w->outputs != NULL;
}

static DML_GRAPH_NODE_DESC *write_nodes(const writer *w)
{
    const uint32_t operators = w->g->nodes.count, constants = w->g->constants.count;
    DML_GRAPH_NODE_DESC *nodes = ARENA_ARRAY(w->arena, DML_GRAPH_NODE_DESC, operators + constants);
    DML_OPERATOR_GRAPH_NODE_DESC *ops = ARENA_ARRAY(w->arena, DML_OPERATOR_GRAPH_NODE_DESC, operators);
    DML_CONSTANT_DATA_GRAPH_NODE_DESC *data = ARENA_ARRAY(w->arena, DML_CONSTANT_DATA_GRAPH_NODE_DESC, constants);

    if (nodes == NULL || ops == NULL || data == NULL)
        return NULL;
    for (uint32_t i = 0; i < operators; i++) {
        ops[i] = (DML_OPERATOR_GRAPH_NODE_DESC){ build_nodes(w->g)[i].op, build_nodes(w->g)[i].name };
        nodes[i] = (DML_GRAPH_NODE_DESC){ DML_GRAPH_NODE_TYPE_OPERATOR, &ops[i] };
    }
    for (uint32_t i = 0; i < constants; i++) {
        const build_constant *c = &((const build_constant *)w->g->constants.items)[i];
        data[i] = (DML_CONSTANT_DATA_GRAPH_NODE_DESC){ c->data, (size_t)c->bytes, c->name };
        nodes[operators + i] = (DML_GRAPH_NODE_DESC){ DML_GRAPH_NODE_TYPE_CONSTANT, &data[i] };
    }
    return nodes;
}

static bool write_outputs(const writer *w)
{
    const uint32_t count = w->g->outputs.count;
    DML_OUTPUT_GRAPH_EDGE_DESC *edges = ARENA_ARRAY(w->arena, DML_OUTPUT_GRAPH_EDGE_DESC, count);

    for (uint32_t i = 0; edges != NULL && i < count; i++) {
        const build_output *o = &((const build_output *)w->g->outputs.items)[i];
        edges[i] = (DML_OUTPUT_GRAPH_EDGE_DESC){ .FromNodeIndex = index_of(w, &o->source),
                                                 .FromNodeOutputIndex = o->source.output,
                                                 .GraphOutputIndex = i,
                                                 .Name = o->name };
        w->outputs[i] = (DML_GRAPH_EDGE_DESC){ DML_GRAPH_EDGE_TYPE_OUTPUT, &edges[i] };
    }
    return edges != NULL;
}

static opjit_status describe(opjit_graph *g, opjit_error *error)
{
    writer w = { .g = g, .arena = &g->described };
    const DML_GRAPH_NODE_DESC *nodes;

    opjit_rt_arena_free(&g->described);
    opjit_rt_arena_init(&g->described, &g->core->allocator);
    nodes = write_nodes(&w);
    if (nodes == NULL || !allocate_edges(&w) || !write_outputs(&w))
        return opjit_rt_no_memory(error);
    for (uint32_t i = 0; i < g->nodes.count; i++)
        for (uint32_t k = 0; k < build_nodes(g)[i].op->input_count; k++)
            write_edge(&w, &build_nodes(g)[i].sources[k], i, k);
    g->desc = (DML_GRAPH_DESC){
        .InputCount = g->inputs.count,
        .OutputCount = g->outputs.count,
        .NodeCount = g->nodes.count + g->constants.count,
        .Nodes = nodes,
        .InputEdgeCount = w.input_count,
        .InputEdges = w.inputs,
        .OutputEdgeCount = g->outputs.count,
        .OutputEdges = w.outputs,
        .IntermediateEdgeCount = w.between_count,
        .IntermediateEdges = w.between,
    };
    g->is_described = true;
    return OPJIT_OK;
}

/* None of these failures is sticky: there may be more memory, or an output, at another call. */
opjit_status opjit_fe_built(opjit_graph *g, const DML_GRAPH_DESC **out_desc, fe_ask *out_ask, opjit_error *error)
{
    *out_desc = &g->desc;
    *out_ask = (fe_ask){ .is_named = g->is_named };
    if (g->error.status != OPJIT_OK)
        return opjit_rt_error_copy(error, &g->error);
    if (g->outputs.count == 0)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{graph}: {!outputs}{0} outputs, must be at least 1");
    return g->is_described ? OPJIT_OK : describe(g, error);
}

opjit_context *opjit_fe_built_context(const opjit_graph *g)
{
    return g->context;
}

void opjit_fe_built_drop_outputs(opjit_graph *g)
{
    g->outputs.count = 0;
    g->is_described = false;
}

opjit_status opjit_graph_get_desc(opjit_graph *graph, const DML_GRAPH_DESC **out_desc, opjit_error *error)
{
    const DML_GRAPH_DESC *desc;
    fe_ask ask;

    opjit_rt_error_clear(error);
    if (graph == NULL || out_desc == NULL)
        return opjit_rt_refuse_null(error, graph == NULL ? "graph" : "out_desc");
    *out_desc = NULL;
    TRY(opjit_fe_built(graph, &desc, &ask, error));
    *out_desc = desc;
    return OPJIT_OK;
}

static opjit_status compile_built(opjit_graph *graph, const opjit_compile_options *options, const void *image,
                                  uint64_t bytes, opjit_kernel **out_kernel, opjit_error *error)
{
    const DML_GRAPH_DESC *desc;
    fe_ask ask;

    opjit_rt_error_clear(error);
    if (out_kernel == NULL)
        return opjit_rt_refuse_null(error, "out_kernel");
    *out_kernel = NULL;
    if (graph == NULL)
        return opjit_rt_refuse_null(error, "graph");
    TRY(opjit_fe_built(graph, &desc, &ask, error));
    ask.image = image;
    ask.image_bytes = bytes;
    return opjit_fe_compile_graph(graph->context, desc, options, &ask, out_kernel, error);
}

opjit_status opjit_graph_compile(opjit_graph *graph, const opjit_compile_options *options, opjit_kernel **out_kernel,
                                 opjit_error *error)
{
    return compile_built(graph, options, NULL, 0, out_kernel, error);
}

opjit_status opjit_graph_load(opjit_graph *graph, const opjit_compile_options *options, const void *image,
                              uint64_t bytes, opjit_kernel **out_kernel, opjit_error *error)
{
    opjit_rt_error_clear(error);
    if (image == NULL) {
        if (out_kernel != NULL)
            *out_kernel = NULL;
        return opjit_rt_refuse_null(error, "image");
    }
    return compile_built(graph, options, image, bytes, out_kernel, error);
}
