/* SPDX-License-Identifier: Apache-2.0 */
/* order.c - the canonical order of a graph: nodes as they are met going back from the outputs, so that what nothing
 * depends on drops out.  Nothing here recurses: chains of thousands are usual. */
#include <stdio.h>

#include "frontend/graph/reader.h"

enum { UNSEEN, OPEN, DONE };

/* The nodes from `first` on up to the top of the stack lead back to `first`. */
static opjit_status refuse_cycle(const fe_reader *r, uint32_t first, uint32_t depth)
{
    char text[300] = "";
    size_t used = 0;
    uint32_t at = depth;

    while (r->stack[at - 1] != first)
        at--;
    for (uint32_t i = depth; i >= at && used < sizeof text - 150; i--)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s -> ", fe_reader_text(r, r->stack[i - 1]).text);
    opjit_rt_refuse(r->error, OPJIT_INVALID_ARGUMENT, "{graph}: {cycle}: %s%s", text,
                    fe_reader_text(r, r->stack[depth - 1]).text);
    opjit_rt_place(r->error, OPJIT_INVALID_ARGUMENT, "graph", "Nodes", (int32_t)first);
    return opjit_rt_at_node(r->error, OPJIT_INVALID_ARGUMENT, first);
}

static void number_node(fe_reader *r, uint32_t given, bool live)
{
    fe_graph *graph = r->graph;
    fe_raw_node *node = &r->nodes[given];

    node->state = DONE;
    if (!live)
        return;
    if (node->op == NULL) {
        node->number = graph->constant_count;
        graph->constants[graph->constant_count++] =
            (fe_buffer){ .name = node->name, .data = node->data, .bytes = node->bytes, .given = given };
    } else {
        node->number = graph->node_count;
        graph->nodes[graph->node_count] = fe_reader_node(r, given);
        graph->nodes[graph->node_count++].sources = node->sources;
    }
}

/* Numbers everything that `start` depends on, and then itself. */
static opjit_status visit(fe_reader *r, uint32_t start, bool live)
{
    uint32_t depth = 0;

    if (r->nodes[start].state == DONE)
        return OPJIT_OK;
    r->stack[depth++] = start;
    r->nodes[start].state = OPEN;
    while (depth > 0) {
        const uint32_t top = r->stack[depth - 1];
        fe_raw_node *node = &r->nodes[top];
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

static opjit_status put_in_order(fe_reader *r)
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
static opjit_status check_dead(fe_reader *r, const bool *is_read)
{
    for (uint32_t i = 0; i < r->desc->NodeCount; i++) {
        const fe_raw_node *node = &r->nodes[i];
        const fe_node to = fe_reader_node(r, i);
        for (uint32_t k = 0; node->number == FE_NO_NUMBER && k < node->inputs; k++) {
            const fe_source *source = &node->sources[k];
            const fe_raw_node *from = source->kind >= FE_NODE ? &r->nodes[source->index] : NULL;
            if (source->kind == FE_INPUT && !is_read[source->index])
                opjit_fe_graph_add_reader(&r->graph->inputs[r->inputs[source->index] - 1], &node->op->inputs[k]);
            if (source->kind == FE_CONSTANT) {
                const fe_buffer constant = { .bytes = from->bytes, .given = source->index };
                TRY(opjit_fe_graph_check_constant(&constant, &to, k, r->error));
            }
            if (source->kind == FE_NODE) {
                const fe_node writer = fe_reader_node(r, source->index);
                TRY(opjit_fe_graph_check_edge(&writer, source->output, &to, k, r->error));
            }
        }
    }
    return OPJIT_OK;
}

static void renumber(const fe_reader *r, fe_source *source, bool *is_read)
{
    if (source->kind == FE_INPUT) {
        is_read[source->index] = true;
        source->index = r->inputs[source->index] - 1;
    } else if (source->kind != FE_ABSENT) {
        source->index = r->nodes[source->index].number;
    }
}

static opjit_status renumber_all(fe_reader *r)
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

opjit_status opjit_fe_reader_order(fe_reader *r)
{
    TRY(put_in_order(r));
    return renumber_all(r);
}
