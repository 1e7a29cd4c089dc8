/* SPDX-License-Identifier: Apache-2.0 */
/* read.c - checks a DML_GRAPH_DESC and reads it into a graph: its nodes, then its edges.  order.c puts them into
 * canonical order, late.c finds the late fields. */
#include <stdio.h>
#include <string.h>

#include "frontend/graph/reader.h"

#define BINDING_MAX (1u << 16) /* of inputs and outputs, which have no arrays: as many as a kernel can have */

static opjit_status refuse_index(const fe_reader *r, const char *array, uint32_t edge, const char *field,
                                 uint32_t value, uint32_t count, const char *what)
{
    return opjit_rt_refuse(r->error, OPJIT_INVALID_ARGUMENT, "{graph}: {%s[%u].%s}: {%u}, must be below %u (%s)", array,
                           edge, field, value, count, what);
}

/* --- arrays and nodes --------------------------------------------------------------------------------------------- */

static opjit_status check_count(const fe_reader *r, const char *name, uint32_t count, uint32_t most, bool needed)
{
    if (count > most)
        return opjit_rt_refuse(r->error, OPJIT_LIMIT, "{graph}: {%sCount}: {%u}, must be at most %u", name, count,
                               most);
    if (needed && count == 0)
        return opjit_rt_refuse(r->error, OPJIT_INVALID_ARGUMENT, "{graph}: {%sCount}: {0}, must be at least 1", name);
    return OPJIT_OK;
}

static opjit_status check_array(const fe_reader *r, const char *name, uint32_t count, const void *array, bool needed)
{
    TRY(check_count(r, name, count, FE_COUNT_MAX, needed));
    if (count != 0 && array == NULL)
        return opjit_rt_refuse(r->error, OPJIT_INVALID_ARGUMENT, "{graph}: {%ss}: {NULL}, must be an array of %u", name,
                               count);
    return OPJIT_OK;
}

static opjit_status check_arrays(const fe_reader *r)
{
    const DML_GRAPH_DESC *d = r->desc;

    TRY(check_array(r, "Node", d->NodeCount, d->Nodes, true));
    TRY(check_array(r, "InputEdge", d->InputEdgeCount, d->InputEdges, false));
    TRY(check_array(r, "OutputEdge", d->OutputEdgeCount, d->OutputEdges, true));
    TRY(check_array(r, "IntermediateEdge", d->IntermediateEdgeCount, d->IntermediateEdges, false));
    TRY(check_count(r, "Input", d->InputCount, BINDING_MAX, false));
    return check_count(r, "Output", d->OutputCount, BINDING_MAX, true);
}

static opjit_status read_constant(fe_reader *r, const opjit_context *context, uint32_t i)
{
    const DML_CONSTANT_DATA_GRAPH_NODE_DESC *desc = r->desc->Nodes[i].Desc;
    fe_raw_node *node = &r->nodes[i];

    if (context->feature_level != 0 && context->feature_level < DML_FEATURE_LEVEL_6_2)
        return opjit_rt_refuse(r->error, OPJIT_UNSUPPORTED,
                               "{graph}: {Nodes[%u].Type}: {2} (CONSTANT), must be 1 (OPERATOR) at feature level %s", i,
                               opjit_fe_level_text(context->feature_level).text);
    if (desc->Data == NULL || desc->DataSize == 0)
        return opjit_rt_refuse(r->error, OPJIT_INVALID_ARGUMENT,
                               desc->Data == NULL ? "{graph}: {Nodes[%u].Data}: {NULL}, must be the constant's bytes"
                                                  : "{graph}: {Nodes[%u].DataSize}: {0}, must be at least 1",
                               i);
    if (desc->DataSize > RT_TENSOR_BYTES_MAX)
        return opjit_rt_refuse(r->error, OPJIT_LIMIT,
                               "{graph}: {Nodes[%u].DataSize}: {%llu}, must be at most %llu (1 TiB)", i,
                               (unsigned long long)desc->DataSize, (unsigned long long)RT_TENSOR_BYTES_MAX);
    node->name = desc->Name == NULL ? "" : desc->Name;
    node->data = desc->Data;
    node->bytes = desc->DataSize;
    node->outputs = 1;
    return OPJIT_OK;
}

static opjit_status read_operator(fe_reader *r, uint32_t i)
{
    const DML_OPERATOR_GRAPH_NODE_DESC *desc = r->desc->Nodes[i].Desc;
    fe_raw_node *node = &r->nodes[i];

    if (desc->Operator == NULL)
        return opjit_rt_refuse(r->error, OPJIT_INVALID_ARGUMENT,
                               "{graph}: {Nodes[%u].Operator}: {NULL}, must be an operator", i);
    node->op = desc->Operator;
    node->name = desc->Name == NULL ? "" : desc->Name;
    node->inputs = node->op->input_count;
    node->outputs = node->op->output_count;
    return OPJIT_OK;
}

/* Every node's part of one array: a hit in the cache takes as long as what it allocates. */
static opjit_status allocate_sources(fe_reader *r)
{
    size_t count = 0;

    for (uint32_t i = 0; i < r->desc->NodeCount; i++)
        count += r->nodes[i].inputs;
    fe_source *sources = ARENA_ARRAY(r->arena, fe_source, count);
    if (sources == NULL)
        return opjit_rt_no_memory(r->error);
    for (uint32_t i = 0; i < r->desc->NodeCount; sources += r->nodes[i++].inputs)
        r->nodes[i].sources = sources;
    return OPJIT_OK;
}

static opjit_status read_node(fe_reader *r, const opjit_context *context, uint32_t i)
{
    const DML_GRAPH_NODE_DESC *given = &r->desc->Nodes[i];

    r->nodes[i].number = FE_NO_NUMBER;
    if (given->Type != DML_GRAPH_NODE_TYPE_OPERATOR && given->Type != DML_GRAPH_NODE_TYPE_CONSTANT)
        return opjit_rt_refuse(r->error, OPJIT_INVALID_ARGUMENT,
                               "{graph}: {Nodes[%u].Type}: {%d}, must be 1 (OPERATOR) or 2 (CONSTANT)", i,
                               (int)given->Type);
    if (given->Desc == NULL)
        return opjit_rt_refuse(r->error, OPJIT_INVALID_ARGUMENT,
                               "{graph}: {Nodes[%u].Desc}: {NULL}, must be the node's description", i);
    return given->Type == DML_GRAPH_NODE_TYPE_CONSTANT ? read_constant(r, context, i) : read_operator(r, i);
}

static opjit_status read_nodes(fe_reader *r, const opjit_context *context)
{
    for (uint32_t i = 0; i < r->desc->NodeCount; i++)
        TRY(opjit_rt_at_node(r->error, read_node(r, context, i), i));
    return allocate_sources(r);
}

/* --- edges -------------------------------------------------------------------------------------------------------- */

static opjit_status check_edge(const fe_reader *r, const char *array, const DML_GRAPH_EDGE_DESC *edges, uint32_t i,
                               DML_GRAPH_EDGE_TYPE type)
{
    if (edges[i].Type != type)
        return opjit_rt_refuse(r->error, OPJIT_INVALID_ARGUMENT, "{graph}: {%s[%u].Type}: {%d}, must be %d", array, i,
                               (int)edges[i].Type, (int)type);
    if (edges[i].Desc == NULL)
        return opjit_rt_refuse(r->error, OPJIT_INVALID_ARGUMENT,
                               "{graph}: {%s[%u].Desc}: {NULL}, must be the edge's description", array, i);
    return OPJIT_OK;
}

/* "InputEdges[0]": the first edge that leads to the node's input. */
static void first_edge_to(const fe_reader *r, uint32_t node, uint32_t input, char text[static 40])
{
    for (uint32_t i = 0; i < r->desc->InputEdgeCount; i++) {
        const DML_INPUT_GRAPH_EDGE_DESC *e = r->desc->InputEdges[i].Desc;
        if (e->ToNodeIndex == node && e->ToNodeInputIndex == input) {
            snprintf(text, 40, "InputEdges[%u]", i);
            return;
        }
    }
    for (uint32_t i = 0; i < r->desc->IntermediateEdgeCount; i++) {
        const DML_INTERMEDIATE_GRAPH_EDGE_DESC *e = r->desc->IntermediateEdges[i].Desc;
        if (e->ToNodeIndex == node && e->ToNodeInputIndex == input) {
            snprintf(text, 40, "IntermediateEdges[%u]", i);
            return;
        }
    }
}

/* Enters where an input of a node comes from. */
static opjit_status enter_source(fe_reader *r, const char *array, uint32_t edge, uint32_t to, uint32_t input,
                                 fe_source source)
{
    fe_raw_node *node;

    if (to >= r->desc->NodeCount)
        return refuse_index(r, array, edge, "ToNodeIndex", to, r->desc->NodeCount, "NodeCount");
    node = &r->nodes[to];
    if (input >= node->inputs) {
        const fe_node_text text = fe_reader_text(r, to);
        return refuse_index(r, array, edge, "ToNodeInputIndex", input, node->inputs, text.text);
    }
    if (!node->op->inputs[input].present)
        return opjit_rt_refuse(r->error, OPJIT_INVALID_ARGUMENT, "{graph}: {%s[%u]} leads to %s of %s, which has none",
                               array, edge, node->op->input_names[input], fe_reader_text(r, to).text);
    if (source.kind != FE_INPUT && node->op->inputs[input].flags != DML_TENSOR_FLAG_NONE)
        return opjit_rt_refuse(r->error, OPJIT_INVALID_ARGUMENT,
                               "{graph}: {%s[%u]} leads to %s of %s, whose Flags are {0x1} (OWNED_BY_DML): must be 0, "
                               "only what an input edge leads to is bound as a constant",
                               array, edge, node->op->input_names[input], fe_reader_text(r, to).text);
    if (node->sources[input].kind != FE_ABSENT) {
        char first[40] = "";
        first_edge_to(r, to, input, first);
        return opjit_rt_refuse(r->error, OPJIT_INVALID_ARGUMENT,
                               "{graph}: {%s} of %s is driven twice: by %s and %s[%u]", node->op->input_names[input],
                               fe_reader_text(r, to).text, first, array, edge);
    }
    node->sources[input] = source;
    return OPJIT_OK;
}

static opjit_status drive(fe_reader *r, const char *array, uint32_t edge, uint32_t to, uint32_t input, fe_source source)
{
    const opjit_status status = enter_source(r, array, edge, to, input, source);

    return to < r->desc->NodeCount ? opjit_rt_at_node(r->error, status, to) : status;
}

/* Checks an output of a node as the start of an edge. */
static opjit_status find_output(const fe_reader *r, const char *array, uint32_t edge, uint32_t from, uint32_t output,
                                fe_source *out)
{
    const fe_raw_node *node;

    if (from >= r->desc->NodeCount)
        return refuse_index(r, array, edge, "FromNodeIndex", from, r->desc->NodeCount, "NodeCount");
    node = &r->nodes[from];
    if (output >= node->outputs) {
        const fe_node_text text = fe_reader_text(r, from);
        return refuse_index(r, array, edge, "FromNodeOutputIndex", output, node->outputs, text.text);
    }
    if (node->op != NULL && !node->op->outputs[output].present)
        return opjit_rt_refuse(r->error, OPJIT_INVALID_ARGUMENT,
                               "{graph}: {%s[%u]} leads from %s of %s, which has none", array, edge,
                               node->op->output_names[output], fe_reader_text(r, from).text);
    *out = (fe_source){ node->op == NULL ? FE_CONSTANT : FE_NODE, from, output };
    return OPJIT_OK;
}

static opjit_status begin_edge(const fe_reader *r, const char *array, uint32_t edge, uint32_t from, uint32_t output,
                               fe_source *out)
{
    const opjit_status status = find_output(r, array, edge, from, output, out);

    return from < r->desc->NodeCount ? opjit_rt_at_node(r->error, status, from) : status;
}

static opjit_status read_input_edges(fe_reader *r)
{
    for (uint32_t i = 0; i < r->desc->InputEdgeCount; i++) {
        DML_INPUT_GRAPH_EDGE_DESC e;
        TRY(check_edge(r, "InputEdges", r->desc->InputEdges, i, DML_GRAPH_EDGE_TYPE_INPUT));
        memcpy(&e, r->desc->InputEdges[i].Desc, sizeof e);
        if (e.GraphInputIndex >= r->desc->InputCount)
            return refuse_index(r, "InputEdges", i, "GraphInputIndex", e.GraphInputIndex, r->desc->InputCount,
                                "InputCount");
        TRY(drive(r, "InputEdges", i, e.ToNodeIndex, e.ToNodeInputIndex,
                  (fe_source){ FE_INPUT, e.GraphInputIndex, 0 }));
        r->inputs[e.GraphInputIndex] = 1;
    }
    return OPJIT_OK;
}

static opjit_status read_intermediate_edges(fe_reader *r)
{
    for (uint32_t i = 0; i < r->desc->IntermediateEdgeCount; i++) {
        DML_INTERMEDIATE_GRAPH_EDGE_DESC e;
        fe_source source;
        TRY(check_edge(r, "IntermediateEdges", r->desc->IntermediateEdges, i, DML_GRAPH_EDGE_TYPE_INTERMEDIATE));
        memcpy(&e, r->desc->IntermediateEdges[i].Desc, sizeof e);
        TRY(begin_edge(r, "IntermediateEdges", i, e.FromNodeIndex, e.FromNodeOutputIndex, &source));
        TRY(drive(r, "IntermediateEdges", i, e.ToNodeIndex, e.ToNodeInputIndex, source));
    }
    return OPJIT_OK;
}

static opjit_status read_output_edges(fe_reader *r)
{
    for (uint32_t i = 0; i < r->desc->OutputEdgeCount; i++) {
        DML_OUTPUT_GRAPH_EDGE_DESC e;
        fe_source source;
        TRY(check_edge(r, "OutputEdges", r->desc->OutputEdges, i, DML_GRAPH_EDGE_TYPE_OUTPUT));
        memcpy(&e, r->desc->OutputEdges[i].Desc, sizeof e);
        if (e.GraphOutputIndex >= r->desc->OutputCount)
            return refuse_index(r, "OutputEdges", i, "GraphOutputIndex", e.GraphOutputIndex, r->desc->OutputCount,
                                "OutputCount");
        TRY(begin_edge(r, "OutputEdges", i, e.FromNodeIndex, e.FromNodeOutputIndex, &source));
        if (r->outputs[e.GraphOutputIndex].kind != FE_ABSENT) {
            const fe_node_text first = fe_reader_text(r, r->outputs[e.GraphOutputIndex].index);
            const fe_node_text second = fe_reader_text(r, e.FromNodeIndex);
            return opjit_rt_refuse(r->error, OPJIT_INVALID_ARGUMENT,
                                   "{graph}: {!Outputs[%u]}output %u is driven twice: by {%s} and by %s",
                                   e.GraphOutputIndex, e.GraphOutputIndex, first.text, second.text);
        }
        r->outputs[e.GraphOutputIndex] = source;
    }
    for (uint32_t i = 0; i < r->desc->OutputCount; i++)
        if (r->outputs[i].kind == FE_ABSENT)
            return opjit_rt_refuse(r->error, OPJIT_INVALID_ARGUMENT,
                                   "{graph}: {!Outputs[%u]}output %u of OutputCount {%u} has no edge", i, i,
                                   r->desc->OutputCount);
    return OPJIT_OK;
}

static opjit_status check_missing(const fe_reader *r)
{
    for (uint32_t i = 0; i < r->desc->NodeCount; i++) {
        const fe_raw_node *node = &r->nodes[i];
        for (uint32_t k = 0; k < node->inputs; k++)
            if (node->op->inputs[k].present && node->sources[k].kind == FE_ABSENT)
                return opjit_rt_at_node(r->error,
                                        opjit_rt_refuse(r->error, OPJIT_INVALID_ARGUMENT,
                                                        "{graph}: {%s} of %s has no edge", node->op->input_names[k],
                                                        fe_reader_text(r, i).text),
                                        i);
    }
    return OPJIT_OK;
}

/* --- the whole ---------------------------------------------------------------------------------------------------- */

static bool allocate(fe_reader *r, uint32_t late_count)
{
    const DML_GRAPH_DESC *d = r->desc;
    const uint32_t inputs =
        d->InputCount < d->InputEdgeCount ? d->InputCount : d->InputEdgeCount; /* others are unused */
    fe_graph *graph = r->graph;

    r->nodes = ARENA_ARRAY(r->arena, fe_raw_node, d->NodeCount);
    r->stack = ARENA_ARRAY(r->arena, uint32_t, d->NodeCount);
    r->outputs = ARENA_ARRAY(r->arena, fe_source, d->OutputCount);
    r->inputs = ARENA_ARRAY(r->arena, uint32_t, d->InputCount);
    graph->nodes = ARENA_ARRAY(r->arena, fe_node, d->NodeCount);
    graph->inputs = ARENA_ARRAY(r->arena, fe_buffer, inputs);
    graph->late = ARENA_ARRAY(r->arena, fe_late, late_count);
    return r->nodes != NULL && r->stack != NULL && r->outputs != NULL && r->inputs != NULL && graph->nodes != NULL &&
           graph->inputs != NULL && graph->late != NULL;
}

opjit_status opjit_fe_graph_read(const opjit_context *context, const fe_subject *subject, bool keep, fe_graph *out,
                                 opjit_error *error)
{
    const DML_GRAPH_DESC own = *subject->desc; /* read once: counts are what was allocated for */
    fe_reader r = { .desc = &own, .graph = out, .arena = &out->arena, .error = error };
    uint32_t constants = 0;

    out->label = "graph";
    TRY(check_arrays(&r));
    if (!allocate(&r, subject->late_count))
        return opjit_rt_no_memory(error);
    TRY(read_nodes(&r, context));
    for (uint32_t i = 0; i < r.desc->NodeCount; i++)
        constants += r.nodes[i].op == NULL;
    out->constants = ARENA_ARRAY(r.arena, fe_buffer, constants);
    if (out->constants == NULL)
        return opjit_rt_no_memory(error);
    TRY(read_input_edges(&r));
    TRY(read_intermediate_edges(&r));
    TRY(read_output_edges(&r));
    TRY(check_missing(&r));
    TRY(opjit_fe_reader_order(&r));
    TRY(opjit_fe_reader_late(&r, subject));
    if (subject->is_named)
        TRY(opjit_fe_graph_name(subject, out, error));
    return keep ? opjit_fe_graph_keep(out, error) : OPJIT_OK;
}
