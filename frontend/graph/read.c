/* SPDX-License-Identifier: Apache-2.0 */
/* read.c - a DML_GRAPH_DESC, checked and put into canonical order: nodes as they are met going back from the
 * outputs, so that what nothing depends on drops out.  Nothing here recurses: chains of thousands are usual. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/frontend.h"

#define COUNT_MAX (1u << 24)   /* of nodes and edges, whose arrays are the caller's: far below any overflow */
#define BINDING_MAX (1u << 16) /* of inputs and outputs, which have no arrays: as many as a kernel can have */
#define NO_NUMBER UINT32_MAX

enum { UNSEEN, OPEN, DONE };

/* A node as it was described. */
typedef struct raw_node {
    opjit_operator *op; /* NULL: a constant */
    const char *name;
    const void *data;
    uint64_t bytes;
    fe_source *sources; /* by input, in the description's numbers */
    uint32_t inputs, outputs;
    uint32_t next;   /* input to look at next, while it is open */
    uint32_t number; /* in the graph, among nodes or constants; NO_NUMBER: nothing depends on it */
    uint32_t state;
} raw_node;

typedef struct reader {
    const DML_GRAPH_DESC *desc;
    fe_graph *graph;
    rt_arena *arena;
    raw_node *nodes;
    fe_source *outputs; /* by graph output, likewise */
    uint32_t *inputs;   /* by graph input: 1 + its number in the graph; 0: no edge leads from it */
    uint32_t *stack;
    opjit_error *error;
} reader;

static fe_node node_of(const reader *r, uint32_t given)
{
    return (fe_node){ .op = r->nodes[given].op, .name = r->nodes[given].name, .given = given };
}

static fe_node_text text_of(const reader *r, uint32_t given)
{
    return opjit_fe_node_text(r->nodes[given].op, r->nodes[given].name, given);
}

static opjit_status refuse_index(const reader *r, const char *array, uint32_t edge, const char *field, uint32_t value,
                                 uint32_t count, const char *what)
{
    return opjit_rt_refuse(r->error, OPJIT_INVALID_ARGUMENT, "{graph}: {%s[%u].%s}: {%u}, must be below %u (%s)", array,
                           edge, field, value, count, what);
}

/* --- arrays and nodes --------------------------------------------------------------------------------------------- */

static opjit_status check_count(const reader *r, const char *name, uint32_t count, uint32_t most, bool needed)
{
    if (count > most)
        return opjit_rt_refuse(r->error, OPJIT_LIMIT, "{graph}: {%sCount}: {%u}, must be at most %u", name, count,
                               most);
    if (needed && count == 0)
        return opjit_rt_refuse(r->error, OPJIT_INVALID_ARGUMENT, "{graph}: {%sCount}: {0}, must be at least 1", name);
    return OPJIT_OK;
}

static opjit_status check_array(const reader *r, const char *name, uint32_t count, const void *array, bool needed)
{
    TRY(check_count(r, name, count, COUNT_MAX, needed));
    if (count != 0 && array == NULL)
        return opjit_rt_refuse(r->error, OPJIT_INVALID_ARGUMENT, "{graph}: {%ss}: {NULL}, must be an array of %u", name,
                               count);
    return OPJIT_OK;
}

static opjit_status check_arrays(const reader *r)
{
    const DML_GRAPH_DESC *d = r->desc;

    TRY(check_array(r, "Node", d->NodeCount, d->Nodes, true));
    TRY(check_array(r, "InputEdge", d->InputEdgeCount, d->InputEdges, false));
    TRY(check_array(r, "OutputEdge", d->OutputEdgeCount, d->OutputEdges, true));
    TRY(check_array(r, "IntermediateEdge", d->IntermediateEdgeCount, d->IntermediateEdges, false));
    TRY(check_count(r, "Input", d->InputCount, BINDING_MAX, false));
    return check_count(r, "Output", d->OutputCount, BINDING_MAX, true);
}

static opjit_status read_constant(reader *r, const opjit_context *context, uint32_t i)
{
    const DML_CONSTANT_DATA_GRAPH_NODE_DESC *desc = r->desc->Nodes[i].Desc;
    raw_node *node = &r->nodes[i];

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

static opjit_status read_operator(reader *r, uint32_t i)
{
    const DML_OPERATOR_GRAPH_NODE_DESC *desc = r->desc->Nodes[i].Desc;
    raw_node *node = &r->nodes[i];

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
static opjit_status allocate_sources(reader *r)
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

static opjit_status read_node(reader *r, const opjit_context *context, uint32_t i)
{
    const DML_GRAPH_NODE_DESC *given = &r->desc->Nodes[i];

    r->nodes[i].number = NO_NUMBER;
    if (given->Type != DML_GRAPH_NODE_TYPE_OPERATOR && given->Type != DML_GRAPH_NODE_TYPE_CONSTANT)
        return opjit_rt_refuse(r->error, OPJIT_INVALID_ARGUMENT,
                               "{graph}: {Nodes[%u].Type}: {%d}, must be 1 (OPERATOR) or 2 (CONSTANT)", i,
                               (int)given->Type);
    if (given->Desc == NULL)
        return opjit_rt_refuse(r->error, OPJIT_INVALID_ARGUMENT,
                               "{graph}: {Nodes[%u].Desc}: {NULL}, must be the node's description", i);
    return given->Type == DML_GRAPH_NODE_TYPE_CONSTANT ? read_constant(r, context, i) : read_operator(r, i);
}

static opjit_status read_nodes(reader *r, const opjit_context *context)
{
    for (uint32_t i = 0; i < r->desc->NodeCount; i++)
        TRY(opjit_rt_at_node(r->error, read_node(r, context, i), i));
    return allocate_sources(r);
}

/* --- edges -------------------------------------------------------------------------------------------------------- */

static opjit_status check_edge(const reader *r, const char *array, const DML_GRAPH_EDGE_DESC *edges, uint32_t i,
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
static void first_edge_to(const reader *r, uint32_t node, uint32_t input, char text[static 40])
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
static opjit_status enter_source(reader *r, const char *array, uint32_t edge, uint32_t to, uint32_t input,
                                 fe_source source)
{
    raw_node *node;

    if (to >= r->desc->NodeCount)
        return refuse_index(r, array, edge, "ToNodeIndex", to, r->desc->NodeCount, "NodeCount");
    node = &r->nodes[to];
    if (input >= node->inputs) {
        const fe_node_text text = text_of(r, to);
        return refuse_index(r, array, edge, "ToNodeInputIndex", input, node->inputs, text.text);
    }
    if (!node->op->inputs[input].present)
        return opjit_rt_refuse(r->error, OPJIT_INVALID_ARGUMENT, "{graph}: {%s[%u]} leads to %s of %s, which has none",
                               array, edge, node->op->input_names[input], text_of(r, to).text);
    if (source.kind != FE_INPUT && node->op->inputs[input].flags != DML_TENSOR_FLAG_NONE)
        return opjit_rt_refuse(r->error, OPJIT_INVALID_ARGUMENT,
                               "{graph}: {%s[%u]} leads to %s of %s, whose Flags are {0x1} (OWNED_BY_DML): must be 0, "
                               "only what an input edge leads to is bound as a constant",
                               array, edge, node->op->input_names[input], text_of(r, to).text);
    if (node->sources[input].kind != FE_ABSENT) {
        char first[40] = "";
        first_edge_to(r, to, input, first);
        return opjit_rt_refuse(r->error, OPJIT_INVALID_ARGUMENT,
                               "{graph}: {%s} of %s is driven twice: by %s and %s[%u]", node->op->input_names[input],
                               text_of(r, to).text, first, array, edge);
    }
    node->sources[input] = source;
    return OPJIT_OK;
}

static opjit_status drive(reader *r, const char *array, uint32_t edge, uint32_t to, uint32_t input, fe_source source)
{
    const opjit_status status = enter_source(r, array, edge, to, input, source);

    return to < r->desc->NodeCount ? opjit_rt_at_node(r->error, status, to) : status;
}

/* Checks an output of a node as the start of an edge. */
static opjit_status find_output(const reader *r, const char *array, uint32_t edge, uint32_t from, uint32_t output,
                                fe_source *out)
{
    const raw_node *node;

    if (from >= r->desc->NodeCount)
        return refuse_index(r, array, edge, "FromNodeIndex", from, r->desc->NodeCount, "NodeCount");
    node = &r->nodes[from];
    if (output >= node->outputs) {
        const fe_node_text text = text_of(r, from);
        return refuse_index(r, array, edge, "FromNodeOutputIndex", output, node->outputs, text.text);
    }
    if (node->op != NULL && !node->op->outputs[output].present)
        return opjit_rt_refuse(r->error, OPJIT_INVALID_ARGUMENT,
                               "{graph}: {%s[%u]} leads from %s of %s, which has none", array, edge,
                               node->op->output_names[output], text_of(r, from).text);
    *out = (fe_source){ node->op == NULL ? FE_CONSTANT : FE_NODE, from, output };
    return OPJIT_OK;
}

static opjit_status begin_edge(const reader *r, const char *array, uint32_t edge, uint32_t from, uint32_t output,
                               fe_source *out)
{
    const opjit_status status = find_output(r, array, edge, from, output, out);

    return from < r->desc->NodeCount ? opjit_rt_at_node(r->error, status, from) : status;
}

static opjit_status read_input_edges(reader *r)
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

static opjit_status read_intermediate_edges(reader *r)
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

static opjit_status read_output_edges(reader *r)
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
            const fe_node_text first = text_of(r, r->outputs[e.GraphOutputIndex].index);
            const fe_node_text second = text_of(r, e.FromNodeIndex);
            opjit_rt_error_set(r->error, OPJIT_INVALID_ARGUMENT, "graph: output %u is driven twice: by %s and by %s",
                               e.GraphOutputIndex, first.text, second.text);
            return opjit_rt_place(r->error, OPJIT_INVALID_ARGUMENT, "graph", "Outputs", (int32_t)e.GraphOutputIndex);
        }
        r->outputs[e.GraphOutputIndex] = source;
    }
    for (uint32_t i = 0; i < r->desc->OutputCount; i++)
        if (r->outputs[i].kind == FE_ABSENT) {
            opjit_rt_error_set(r->error, OPJIT_INVALID_ARGUMENT, "graph: output %u of OutputCount %u has no edge", i,
                               r->desc->OutputCount);
            return opjit_rt_place(r->error, OPJIT_INVALID_ARGUMENT, "graph", "Outputs", (int32_t)i);
        }
    return OPJIT_OK;
}

static opjit_status check_missing(const reader *r)
{
    for (uint32_t i = 0; i < r->desc->NodeCount; i++) {
        const raw_node *node = &r->nodes[i];
        for (uint32_t k = 0; k < node->inputs; k++)
            if (node->op->inputs[k].present && node->sources[k].kind == FE_ABSENT)
                return opjit_rt_at_node(r->error,
                                        opjit_rt_refuse(r->error, OPJIT_INVALID_ARGUMENT,
                                                        "{graph}: {%s} of %s has no edge", node->op->input_names[k],
                                                        text_of(r, i).text),
                                        i);
    }
    return OPJIT_OK;
}

/* --- order -------------------------------------------------------------------------------------------------------- */

/* The nodes from `first` on up to the top of the stack lead back to `first`. */
static opjit_status refuse_cycle(const reader *r, uint32_t first, uint32_t depth)
{
    char text[300] = "";
    size_t used = 0;
    uint32_t at = depth;

    while (r->stack[at - 1] != first)
        at--;
    for (uint32_t i = depth; i >= at && used < sizeof text - 150; i--)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s -> ", text_of(r, r->stack[i - 1]).text);
    opjit_rt_refuse(r->error, OPJIT_INVALID_ARGUMENT, "{graph}: {cycle}: %s%s", text,
                    text_of(r, r->stack[depth - 1]).text);
    opjit_rt_place(r->error, OPJIT_INVALID_ARGUMENT, "graph", "Nodes", (int32_t)first);
    return opjit_rt_at_node(r->error, OPJIT_INVALID_ARGUMENT, first);
}

static void number_node(reader *r, uint32_t given, bool live)
{
    fe_graph *graph = r->graph;
    raw_node *node = &r->nodes[given];

    node->state = DONE;
    if (!live)
        return;
    if (node->op == NULL) {
        node->number = graph->constant_count;
        graph->constants[graph->constant_count++] =
            (fe_buffer){ .name = node->name, .data = node->data, .bytes = node->bytes, .given = given };
    } else {
        node->number = graph->node_count;
        graph->nodes[graph->node_count] = node_of(r, given);
        graph->nodes[graph->node_count++].sources = node->sources;
    }
}

/* Numbers everything that `start` depends on, and then itself. */
static opjit_status visit(reader *r, uint32_t start, bool live)
{
    uint32_t depth = 0;

    if (r->nodes[start].state == DONE)
        return OPJIT_OK;
    r->stack[depth++] = start;
    r->nodes[start].state = OPEN;
    while (depth > 0) {
        const uint32_t top = r->stack[depth - 1];
        raw_node *node = &r->nodes[top];
        const fe_source *source;
        if (node->next == node->inputs) {
            number_node(r, top, live);
            depth--;
            continue;
        }
        source = &node->sources[node->next++];
        if (source->kind != FE_NODE && source->kind != FE_CONSTANT)
            continue;
        if (r->nodes[source->index].state == OPEN)
            return refuse_cycle(r, source->index, depth);
        if (r->nodes[source->index].state == UNSEEN) {
            r->nodes[source->index].state = OPEN;
            r->stack[depth++] = source->index;
        }
    }
    return OPJIT_OK;
}

static opjit_status put_in_order(reader *r)
{
    for (uint32_t i = 0; i < r->desc->OutputCount; i++)
        TRY(visit(r, r->outputs[i].index, true));
    for (uint32_t i = 0; i < r->desc->NodeCount; i++) /* what nothing depends on may still be wrong */
        TRY(visit(r, i, false));
    for (uint32_t i = 0; i < r->desc->InputCount; i++) {
        if (r->inputs[i] == 0)
            continue;
        r->graph->inputs[r->graph->input_count++] = (fe_buffer){ .name = "", .given = i };
        r->inputs[i] = r->graph->input_count;
    }
    return OPJIT_OK;
}

/* --- the graph's own numbers -------------------------------------------------------------------------------------- */

/* Edges to nodes that nothing depends on: not in the key, so they are checked at once, and tell the shape of inputs
 * that lead to nothing else. */
static opjit_status check_dead(reader *r, const bool *is_read)
{
    for (uint32_t i = 0; i < r->desc->NodeCount; i++) {
        const raw_node *node = &r->nodes[i];
        const fe_node to = node_of(r, i);
        for (uint32_t k = 0; node->number == NO_NUMBER && k < node->inputs; k++) {
            const fe_source *source = &node->sources[k];
            const raw_node *from = source->kind >= FE_NODE ? &r->nodes[source->index] : NULL;
            if (source->kind == FE_INPUT && !is_read[source->index])
                opjit_fe_graph_add_reader(&r->graph->inputs[r->inputs[source->index] - 1], &node->op->inputs[k]);
            if (source->kind == FE_CONSTANT) {
                const fe_buffer constant = { .bytes = from->bytes, .given = source->index };
                TRY(opjit_fe_graph_check_constant(&constant, &to, k, r->error));
            }
            if (source->kind == FE_NODE) {
                const fe_node writer = node_of(r, source->index);
                TRY(opjit_fe_graph_check_edge(&writer, source->output, &to, k, r->error));
            }
        }
    }
    return OPJIT_OK;
}

static void renumber(const reader *r, fe_source *source, bool *is_read)
{
    if (source->kind == FE_INPUT) {
        is_read[source->index] = true;
        source->index = r->inputs[source->index] - 1;
    } else if (source->kind != FE_ABSENT) {
        source->index = r->nodes[source->index].number;
    }
}

static opjit_status renumber_all(reader *r)
{
    fe_graph *graph = r->graph;
    bool *is_read = ARENA_ARRAY(r->arena, bool, r->desc->InputCount);

    if (is_read == NULL)
        return opjit_rt_no_memory(r->error);
    for (uint32_t i = 0; i < graph->node_count; i++)
        for (uint32_t k = 0; k < graph->nodes[i].op->input_count; k++)
            renumber(r, &graph->nodes[i].sources[k], is_read);
    graph->results = r->outputs;
    graph->output_count = r->desc->OutputCount;
    for (uint32_t i = 0; i < graph->output_count; i++)
        renumber(r, &graph->results[i], is_read);
    return graph->node_count + graph->constant_count == r->desc->NodeCount ? OPJIT_OK : check_dead(r, is_read);
}

/* --- late fields -------------------------------------------------------------------------------------------------- */

/* The node that `name`, of `length` characters, is the label of, or the index of where no label is. */
static opjit_status find_node(const reader *r, const char *name, size_t length, uint32_t late, uint32_t *out)
{
    uint32_t found = 0, index = 0;

    for (uint32_t i = 0; i < r->desc->NodeCount; i++) {
        if (strncmp(r->nodes[i].name, name, length) != 0 || r->nodes[i].name[length] != '\0' || length == 0)
            continue;
        *out = i;
        found++;
    }
    if (found > 1)
        return opjit_rt_refuse(r->error, OPJIT_INVALID_ARGUMENT,
                               "{options}.{late[%u]}: \"{%.64s}\": %u nodes have that label; give the node's index",
                               late, name, found);
    if (found == 1)
        return OPJIT_OK;
    for (size_t i = 0; i < length; i++) {
        if (name[i] < '0' || name[i] > '9' || index > COUNT_MAX)
            length = 0;
        else
            index = index * 10 + (uint32_t)(name[i] - '0');
    }
    if (length == 0 || index >= r->desc->NodeCount)
        return opjit_rt_refuse(r->error, OPJIT_INVALID_ARGUMENT,
                               "{options}.{late[%u]}: \"{%.64s}\", must be \"node.Field\", a node's label or index",
                               late, name);
    *out = index;
    return OPJIT_OK;
}

static opjit_status read_late(reader *r, const fe_subject *subject, uint32_t i)
{
    const char *name = subject->late[i], *dot = strrchr(name, '.');
    fe_graph *graph = r->graph;
    uint32_t node = 0, field;

    TRY(find_node(r, name, dot == NULL ? 0 : (size_t)(dot - name), i, &node));
    if (r->nodes[node].op == NULL || r->nodes[node].number == NO_NUMBER)
        return opjit_rt_refuse(r->error, OPJIT_INVALID_ARGUMENT, "{options}.{late[%u]}: \"{%.64s}\": %s %s", i, name,
                               text_of(r, node).text,
                               r->nodes[node].op == NULL ? "has no fields" : "is not used by any output");
    TRY(opjit_fe_late_field(r->nodes[node].op->def, dot + 1, i, &field, r->error));
    node = r->nodes[node].number;
    for (uint32_t k = 0; k < graph->late_count; k++)
        if (graph->late[k].node == node && graph->late[k].field == field)
            return opjit_rt_refuse(r->error, OPJIT_INVALID_ARGUMENT, "{options}.{late[%u]}: \"{%.64s}\" is there twice",
                                   i, name);
    graph->late[graph->late_count++] = (fe_late){ node, field, name, graph->nodes[node].op };
    return OPJIT_OK;
}

static bool allocate(reader *r, uint32_t late_count)
{
    const DML_GRAPH_DESC *d = r->desc;
    const uint32_t inputs = d->InputCount < d->InputEdgeCount ? d->InputCount : d->InputEdgeCount; /* others are unused */
    fe_graph *graph = r->graph;

    r->nodes = ARENA_ARRAY(r->arena, raw_node, d->NodeCount);
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
    reader r = { .desc = &own, .graph = out, .arena = &out->arena, .error = error };
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
    TRY(put_in_order(&r));
    TRY(renumber_all(&r));
    for (uint32_t i = 0; i < subject->late_count; i++)
        TRY(read_late(&r, subject, i));
    if (subject->is_named)
        TRY(opjit_fe_graph_name(subject, out, error));
    return keep ? opjit_fe_graph_keep(out, error) : OPJIT_OK;
}
