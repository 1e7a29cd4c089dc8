/* SPDX-License-Identifier: Apache-2.0 */
/* graph.c - a graph that has been read: that of a single operator, the tensors of buffers, and freeing it. Reading a
 * DML_GRAPH_DESC is in read.c. */
#include <stdio.h>
#include <string.h>

#include "frontend/frontend.h"

#define BYTES_MAX UINT32_MAX /* of a constant that is an output: as many UINT8 elements */

fe_node_text opjit_fe_node_text(const opjit_operator *op, const char *name, uint32_t given)
{
    fe_node_text out;

    snprintf(out.text, sizeof out.text, "node %u%s%.48s%s (%.60s)", given, name[0] != '\0' ? " \"" : "", name,
             name[0] != '\0' ? "\"" : "", op == NULL ? "constant" : op->def->name);
    return out;
}

void opjit_fe_graph_free(fe_graph *graph)
{
    for (uint32_t i = 0; graph->kept && i < graph->node_count; i++)
        opjit_operator_release(graph->nodes[i].op);
    opjit_rt_arena_free(&graph->arena);
    graph->node_count = 0;
}

const fe_tensor *opjit_fe_graph_shape(const fe_graph *graph)
{
    const fe_source *source = &graph->results[0];
    return source->kind == FE_NODE ? &graph->nodes[source->index].op->outputs[source->output] : NULL;
}

/* --- one operator ------------------------------------------------------------------------------------------------- */

static bool allocate(fe_graph *graph, const opjit_operator *op, uint32_t late_count)
{
    rt_arena *arena = &graph->arena;

    graph->nodes = ARENA_NEW(arena, fe_node);
    graph->inputs = ARENA_ARRAY(arena, fe_buffer, op->input_count);
    graph->outputs = ARENA_ARRAY(arena, fe_buffer, op->output_count);
    graph->results = ARENA_ARRAY(arena, fe_source, op->output_count);
    graph->late = ARENA_ARRAY(arena, fe_late, late_count);
    if (graph->nodes != NULL)
        graph->nodes->sources = ARENA_ARRAY(arena, fe_source, op->input_count);
    return graph->nodes != NULL && graph->nodes->sources != NULL && graph->inputs != NULL && graph->outputs != NULL &&
           graph->results != NULL && graph->late != NULL;
}

opjit_status opjit_fe_graph_of(opjit_operator *op, const fe_options *options, fe_graph *out, opjit_error *error)
{
    out->label = opjit_fe_operator_label(op);
    out->is_operator = out->kept = true;
    if (!allocate(out, op, options->late_count))
        return opjit_rt_no_memory(error);
    opjit_operator_retain(op);
    out->nodes[0].op = op;
    out->nodes[0].name = "";
    out->node_count = 1;
    for (uint32_t i = 0; i < op->input_count; i++) {
        if (!op->inputs[i].present)
            continue;
        out->nodes[0].sources[i] = (fe_source){ FE_INPUT, out->input_count, 0 };
        out->inputs[out->input_count++] = (fe_buffer){ .name = op->input_names[i], .given = i };
    }
    for (uint32_t i = 0; i < op->output_count; i++) {
        if (!op->outputs[i].present)
            continue;
        out->results[out->output_count] = (fe_source){ FE_NODE, 0, i };
        out->outputs[out->output_count++].name = op->output_names[i];
    }
    for (uint32_t i = 0; i < options->late_count; i++) {
        const uint32_t field = options->late[i];
        out->late[out->late_count++] = (fe_late){ 0, field, op->def->fields[field].name, op };
    }
    return opjit_fe_graph_finish(out, error);
}

/* --- tensors of buffers ------------------------------------------------------------------------------------------- */

/* The buffer is as its first reader sees it; it must have the bytes and the alignment that all of them need, and
 * is owned if it is by one of them. */
void opjit_fe_graph_add_reader(fe_buffer *buffer, const fe_tensor *reader)
{
    fe_tensor *tensor = &buffer->tensor;

    if (!tensor->present) {
        *tensor = *reader;
        return;
    }
    tensor->bytes = reader->bytes > tensor->bytes ? reader->bytes : tensor->bytes;
    tensor->align = reader->align > tensor->align ? reader->align : tensor->align;
    tensor->flags = (DML_TENSOR_FLAGS)(tensor->flags | reader->flags);
}

static opjit_status refuse_edge(const fe_node *from, uint32_t output, const fe_node *to, uint32_t input, fe_edge why,
                                opjit_error *error)
{
    const fe_tensor *writer = &from->op->outputs[output], *reader = &to->op->inputs[input];
    const fe_node_text a = opjit_fe_node_text(from->op, from->name, from->given);
    const fe_node_text b = opjit_fe_node_text(to->op, to->name, to->given);
    const char *in = to->op->input_names[input], *out = from->op->output_names[output];

    switch (why) {
    case FE_EDGE_TYPE:
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{graph}: {%s} of %s is {%s}, must be %s as %s of %s", in,
                               b.text, opjit_rt_dtype_name(reader->dtype), opjit_rt_dtype_name(writer->dtype), out,
                               a.text);
    case FE_EDGE_BYTES:
        return opjit_rt_refuse(
            error, OPJIT_INVALID_ARGUMENT,
            "{graph}: {%s} of %s has TotalTensorSizeInBytes {%llu}, must be at most the %llu of %s of %s", in, b.text,
            (unsigned long long)reader->bytes, (unsigned long long)writer->bytes, out, a.text);
    case FE_EDGE_UNWRITTEN:
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                               "{graph}: {%s} of %s reads bytes that %s of %s does not write", in, b.text, out, a.text);
    default:
        return opjit_rt_refuse(error, OPJIT_LIMIT,
                               "{graph}: whether {%s} of %s reads only bytes that %s of %s writes was not decided: the "
                               "layouts interleave",
                               in, b.text, out, a.text);
    }
}

opjit_status opjit_fe_graph_check_edge(const fe_node *from, uint32_t output, const fe_node *to, uint32_t input,
                                       opjit_error *error)
{
    const fe_edge verdict = opjit_fe_edge(&from->op->outputs[output], &to->op->inputs[input]);

    if (verdict == FE_EDGE_FITS)
        return OPJIT_OK;
    return opjit_rt_at_node(error, refuse_edge(from, output, to, input, verdict, error), to->given);
}

opjit_status opjit_fe_graph_check_constant(const fe_buffer *constant, const fe_node *to, uint32_t input,
                                           opjit_error *error)
{
    const fe_tensor *reader = &to->op->inputs[input];
    const uint64_t needed = opjit_rt_dtype_bytes(reader->dtype, reader->span);

    if (needed <= constant->bytes)
        return OPJIT_OK;
    opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                    "{graph}: constant node %u has {DataSize} {%llu}, must be at least %llu for %s of %s",
                    constant->given, (unsigned long long)constant->bytes, (unsigned long long)needed,
                    to->op->input_names[input], opjit_fe_node_text(to->op, to->name, to->given).text);
    return opjit_rt_at_node(error, OPJIT_INVALID_ARGUMENT, constant->given);
}

static opjit_status finish_edge(fe_graph *graph, uint32_t to, uint32_t input, opjit_error *error)
{
    const fe_node *node = &graph->nodes[to];
    const fe_source *source = &node->sources[input];
    const fe_tensor *reader = &node->op->inputs[input];

    switch ((fe_source_kind)source->kind) {
    case FE_ABSENT: break;
    case FE_INPUT: opjit_fe_graph_add_reader(&graph->inputs[source->index], reader); break;
    case FE_CONSTANT:
        opjit_fe_graph_add_reader(&graph->constants[source->index], reader);
        return opjit_fe_graph_check_constant(&graph->constants[source->index], node, input, error);
    case FE_NODE: return opjit_fe_graph_check_edge(&graph->nodes[source->index], source->output, node, input, error);
    }
    return OPJIT_OK;
}

/* A constant as its bytes: what an output that is a constant holds. */
static fe_tensor bytes_of(const fe_buffer *constant)
{
    return (fe_tensor){
        .present = true,
        .dtype = DML_TENSOR_DATA_TYPE_UINT8,
        .rank = 1,
        .sizes = { constant->bytes, 1, 1, 1, 1, 1, 1, 1 },
        .strides = { constant->bytes > 1 },
        .bytes = constant->bytes,
        .span = constant->bytes,
        .elements = constant->bytes,
        .align = 1,
    };
}

static opjit_status finish_output(fe_graph *graph, uint32_t output, opjit_error *error)
{
    const fe_source *source = &graph->results[output];
    fe_buffer *constant;

    if (source->kind == FE_NODE) {
        graph->outputs[output].tensor = graph->nodes[source->index].op->outputs[source->output];
        return OPJIT_OK;
    }
    constant = &graph->constants[source->index];
    if (constant->bytes > BYTES_MAX) {
        opjit_rt_refuse(error, OPJIT_LIMIT,
                        "{graph}: constant node %u has {DataSize} {%llu}, must be at most %llu as an output",
                        constant->given, (unsigned long long)constant->bytes, (unsigned long long)BYTES_MAX);
        return opjit_rt_at_node(error, OPJIT_LIMIT, constant->given);
    }
    graph->outputs[output].tensor = bytes_of(constant);
    opjit_fe_graph_add_reader(constant, &graph->outputs[output].tensor);
    return OPJIT_OK;
}

enum { VECTOR_LEAST = 16 }; /* bytes; a smaller alignment than a vector's is worth nothing */

uint32_t opjit_fe_constant_align(const fe_graph *graph, const fe_buffer *constant, const rt_target *target)
{
    const uint32_t align = constant->tensor.align;
    const bool anywhere = constant->bytes > FE_FOLDED_BYTES && align < VECTOR_LEAST && graph->part_count == 0 &&
                          rt_target_loads_anywhere(target);

    return anywhere ? 1 : align;
}

opjit_status opjit_fe_graph_finish(fe_graph *graph, opjit_error *error)
{
    for (uint32_t i = 0; i < graph->node_count; i++)
        for (uint32_t k = 0; k < graph->nodes[i].op->input_count; k++)
            TRY(finish_edge(graph, i, k, error));
    for (uint32_t i = 0; i < graph->output_count; i++)
        TRY(finish_output(graph, i, error));
    /* A constant is as large as its data, however its readers round theirs, and lies where the kernel likes. */
    for (uint32_t i = 0; i < graph->constant_count; i++) {
        fe_tensor *tensor = &graph->constants[i].tensor;
        tensor->bytes = graph->constants[i].bytes;
        tensor->align = tensor->align < OPJIT_WORKSPACE_ALIGNMENT ? tensor->align : OPJIT_WORKSPACE_ALIGNMENT;
    }
    for (uint32_t i = 0; i < graph->node_count; i++)
        if (graph->nodes[i].op->custom != NULL)
            return opjit_fe_graph_divide(graph, error);
    return OPJIT_OK;
}
