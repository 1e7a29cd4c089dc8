/* SPDX-License-Identifier: Apache-2.0 */
/* keep.c - what a graph that has been read needs to outlive its description: names, copies, references. */
#include <stdio.h>
#include <string.h>

#include "frontend/frontend.h"

/* --- names -------------------------------------------------------------------------------------------------------- */

/* Names one place of a graph; without a name it keeps its number, "Inputs[3]". */
static opjit_status label(fe_graph *graph, fe_buffer *buffer, const char *name, opjit_error *error)
{
    if (name == NULL || name[0] == '\0')
        return OPJIT_OK;
    buffer->name = opjit_rt_arena_string(&graph->arena, name, strlen(name));
    buffer->named = true;
    return buffer->name == NULL ? opjit_rt_no_memory(error) : OPJIT_OK;
}

/* Collects, by number, the name of the first edge of each graph input or output that has one. */
static void edge_names(const DML_GRAPH_EDGE_DESC *edges, uint32_t count, bool is_input, const char **names)
{
    for (uint32_t i = 0; i < count; i++) {
        const DML_INPUT_GRAPH_EDGE_DESC *const in = edges[i].Desc;
        const DML_OUTPUT_GRAPH_EDGE_DESC *const out = edges[i].Desc;
        const uint32_t at = is_input ? in->GraphInputIndex : out->GraphOutputIndex;
        const char *const name = is_input ? in->Name : out->Name;
        if (names[at] == NULL && name != NULL && name[0] != '\0')
            names[at] = name;
    }
}

opjit_status opjit_fe_graph_label(const fe_subject *subject, fe_graph *graph, opjit_error *error)
{
    const DML_GRAPH_DESC *const desc = subject->desc;
    const char **inputs, **outputs;

    if (subject->op != NULL) {
        for (uint32_t i = 0; i < graph->input_count; i++)
            graph->inputs[i].named = true;
        for (uint32_t i = 0; i < graph->output_count; i++)
            graph->outputs[i].named = true;
        return OPJIT_OK;
    }
    inputs = ARENA_ARRAY(&graph->arena, const char *, desc->InputCount);
    outputs = ARENA_ARRAY(&graph->arena, const char *, desc->OutputCount);
    if (inputs == NULL || outputs == NULL)
        return opjit_rt_no_memory(error);
    edge_names(desc->InputEdges, desc->InputEdgeCount, true, inputs);
    edge_names(desc->OutputEdges, desc->OutputEdgeCount, false, outputs);
    for (uint32_t i = 0; i < graph->input_count; i++)
        TRY(label(graph, &graph->inputs[i], inputs[graph->inputs[i].given], error));
    for (uint32_t i = 0; i < graph->output_count; i++)
        TRY(label(graph, &graph->outputs[i], outputs[i], error));
    return OPJIT_OK;
}

static opjit_status allocate_outputs(fe_graph *graph, opjit_error *error)
{
    if (graph->outputs == NULL)
        graph->outputs = ARENA_ARRAY(&graph->arena, fe_buffer, graph->output_count);
    return graph->outputs == NULL ? opjit_rt_no_memory(error) : OPJIT_OK;
}

opjit_status opjit_fe_graph_name(const fe_subject *subject, fe_graph *graph, opjit_error *error)
{
    TRY(allocate_outputs(graph, error));
    graph->is_named = true;
    return opjit_fe_graph_label(subject, graph, error);
}

/* --- keeping ------------------------------------------------------------------------------------------------------ */

static const char *numbered(rt_arena *arena, const char *what, uint32_t number)
{
    char text[32];

    snprintf(text, sizeof text, "%s[%u]", what, number);
    return opjit_rt_arena_string(arena, text, strlen(text));
}

/* On a boundary of 64 bytes, as any kernel wants it. */
static const void *copied(rt_arena *arena, const void *data, size_t bytes)
{
    uint8_t *memory = opjit_rt_arena_allocate(arena, bytes + OPJIT_WORKSPACE_ALIGNMENT, 1);

    if (memory == NULL)
        return NULL;
    memory += -(uintptr_t)memory % OPJIT_WORKSPACE_ALIGNMENT;
    return memcpy(memory, data, bytes);
}

opjit_status opjit_fe_graph_keep(fe_graph *graph, opjit_error *error)
{
    rt_arena *arena = &graph->arena;
    bool good = true;

    TRY(allocate_outputs(graph, error));
    for (uint32_t i = 0; i < graph->node_count; i++) {
        fe_node *node = &graph->nodes[i];
        node->name = opjit_rt_arena_string(arena, node->name, strlen(node->name));
        good = good && node->name != NULL;
    }
    for (uint32_t i = 0; i < graph->late_count; i++) {
        fe_late *late = &graph->late[i];
        late->name = opjit_rt_arena_string(arena, late->name, strlen(late->name));
        good = good && late->name != NULL;
    }
    for (uint32_t i = 0; i < graph->input_count; i++) {
        if (!graph->inputs[i].named)
            graph->inputs[i].name = numbered(arena, "Inputs", graph->inputs[i].given);
        good = good && graph->inputs[i].name != NULL;
    }
    for (uint32_t i = 0; i < graph->output_count; i++) {
        if (!graph->outputs[i].named)
            graph->outputs[i].name = numbered(arena, "Outputs", i);
        good = good && graph->outputs[i].name != NULL;
    }
    for (uint32_t i = 0; i < graph->constant_count; i++) {
        fe_buffer *constant = &graph->constants[i];
        const bool folded = constant->bytes <= FE_FOLDED_BYTES;
        constant->data = folded ? copied(arena, constant->data, (size_t)constant->bytes) : NULL;
        constant->name = numbered(arena, "Constants", i);
        good = good && constant->name != NULL && (!folded || constant->data != NULL);
    }
    if (!good)
        return opjit_rt_no_memory(error);
    for (uint32_t i = 0; i < graph->node_count; i++)
        opjit_operator_retain(graph->nodes[i].op);
    graph->kept = true;
    return opjit_fe_graph_finish(graph, error);
}
