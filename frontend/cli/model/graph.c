/* SPDX-License-Identifier: Apache-2.0 */
/* graph.c - dispatchables of type "graph": nodes, inputs, edges and outputs by name, made into a DML_GRAPH_DESC.
 * Names are resolved here; opjit_check_graph says whether the graph makes sense and what its inputs and outputs are. */
#include <string.h>
#include <strings.h>

#include "frontend/cli/model/model.h"

/* Edges in the making. */
typedef struct builder {
    cli_model *m;
    cli_dispatchable *d;
    cli_graph *graph;
    const json_value *inputs, *edges, *outputs; /* edges: NULL: none */
    DML_GRAPH_NODE_DESC *nodes;
    DML_OPERATOR_GRAPH_NODE_DESC *operators;
    DML_CONSTANT_DATA_GRAPH_NODE_DESC *constants;
    cli_resource **data; /* by node: a constant's */
    DML_GRAPH_EDGE_DESC *input_edges, *inner_edges, *output_edges;
    DML_INPUT_GRAPH_EDGE_DESC *input_descs;
    DML_INTERMEDIATE_GRAPH_EDGE_DESC *inner_descs;
    DML_OUTPUT_GRAPH_EDGE_DESC *output_descs;
    opjit_tensor_info *tensors; /* of inputs, then of outputs */
} builder;

/* --- nodes -------------------------------------------------------------------------------------------------------- */
static bool is_constant(const json_value *type)
{
    return strcasecmp(type->text, "constant") == 0 && strlen(type->text) == type->length;
}

static opjit_status read_constant(builder *b, const json_value *json, uint32_t index)
{
    const json_value *name;
    cli_resource *resource;
    TRY(opjit_cli_member(b->m, json, "data", JSON_STRING, &name));
    resource = opjit_cli_find_resource(b->m, name);
    if (resource == NULL)
        return opjit_cli_no_member(b->m, name, "resource", opjit_cli_json_get(b->m->root, "resources"));
    if (resource->data == NULL)
        return opjit_cli_fail(b->m, name, OPJIT_INVALID_ARGUMENT, "a deferred resource has no contents yet");
    b->data[index] = resource;
    b->constants[index] = (DML_CONSTANT_DATA_GRAPH_NODE_DESC){ resource->data, (size_t)resource->bytes, json->key };
    b->nodes[index] = (DML_GRAPH_NODE_DESC){ DML_GRAPH_NODE_TYPE_CONSTANT, &b->constants[index] };
    return OPJIT_OK;
}

static opjit_status check_name(const builder *b, const json_value *member)
{
    if (member->key_length == 0 || memchr(member->key, '.', member->key_length) != NULL)
        return opjit_cli_fail(b->m, member, OPJIT_INVALID_ARGUMENT, "a name in a graph may not be empty or have a dot");
    return OPJIT_OK;
}

static opjit_status read_nodes(builder *b)
{
    uint32_t i = 0;
    for (const json_value *v = b->graph->nodes->first; v != NULL; v = v->next, i++) {
        const json_value *type;
        TRY(check_name(b, v));
        TRY(opjit_cli_member(b->m, v, "type", JSON_STRING, &type));
        if (is_constant(type)) {
            TRY(read_constant(b, v, i));
            continue;
        }
        TRY(opjit_cli_read_operator(b->m, v, type, &b->graph->operators[i]));
        b->operators[i] = (DML_OPERATOR_GRAPH_NODE_DESC){ b->graph->operators[i].op, v->key };
        b->nodes[i] = (DML_GRAPH_NODE_DESC){ DML_GRAPH_NODE_TYPE_OPERATOR, &b->operators[i] };
    }
    return OPJIT_OK;
}

/* Whether a constant has the name of this input or output. */
static bool names_constant(const builder *b, const json_value *member)
{
    const json_value *node = opjit_cli_json_find(b->graph->nodes, member->key, member->key_length);

    return node != NULL && b->data[node->index] != NULL;
}

/* --- ends of edges ------------------------------------------------------------------------------------------------ */
typedef struct end {
    uint32_t node, tensor;
} end;

/* "node.Tensor", or a constant's name where an edge begins. */
static opjit_status read_end(const builder *b, const json_value *json, bool is_input, end *out)
{
    const char *dot;
    size_t length;
    const json_value *node;
    *out = (end){ 0 };
    if (json->kind != JSON_STRING)
        return opjit_cli_fail(b->m, json, OPJIT_INVALID_ARGUMENT, "this is %s, but has to be \"node.Tensor\"",
                              opjit_cli_kind_name(json->kind));
    dot = memchr(json->text, '.', json->length);
    length = dot == NULL ? json->length : (size_t)(dot - json->text);
    node = opjit_cli_json_find(b->graph->nodes, json->text, length);
    if (node == NULL)
        return opjit_cli_no_node(b->m, json, length, b->graph->nodes);
    out->node = node->index;
    const cli_operator *const own = &b->graph->operators[out->node], *const op = own->op == NULL ? NULL : own;
    if (op == NULL && dot == NULL && !is_input)
        return OPJIT_OK;
    const uint32_t count = op == NULL ? 0 : is_input ? op->input_count : op->output_count;
    for (uint32_t i = 0; dot != NULL && i < count; i++) {
        const char *const name = is_input ? op->inputs[i].name : op->outputs[i].name;
        if (strlen(name) != json->length - length - 1 || memcmp(name, dot + 1, strlen(name)) != 0)
            continue;
        out->tensor = i;
        return OPJIT_OK;
    }
    return opjit_cli_no_tensor(b->m, json, node, op, is_input);
}

/* --- inputs, edges, outputs --------------------------------------------------------------------------------------- */

static opjit_status read_input(builder *b, const json_value *input, uint32_t index)
{
    const json_value *at = input->kind == JSON_ARRAY ? input->first : input;
    b->d->ports[index] = (cli_port){ input->key, &b->tensors[index], at == NULL };
    for (; at != NULL; at = input->kind == JSON_ARRAY ? at->next : NULL) {
        const uint32_t i = b->graph->desc.InputEdgeCount++;
        end to;
        TRY(read_end(b, at, true, &to));
        b->input_descs[i] = (DML_INPUT_GRAPH_EDGE_DESC){ index, to.node, to.tensor, input->key };
        b->input_edges[i] = (DML_GRAPH_EDGE_DESC){ DML_GRAPH_EDGE_TYPE_INPUT, &b->input_descs[i] };
    }
    return OPJIT_OK;
}

static opjit_status read_edge(builder *b, const json_value *edge)
{
    const uint32_t i = b->graph->desc.IntermediateEdgeCount++;
    end from, to;
    if (edge->kind != JSON_ARRAY || edge->count != 2)
        return opjit_cli_fail(b->m, edge, OPJIT_INVALID_ARGUMENT, "an edge is an array of two ends: from, to");
    TRY(read_end(b, edge->first, false, &from));
    TRY(read_end(b, edge->first->next, true, &to));
    b->inner_descs[i] = (DML_INTERMEDIATE_GRAPH_EDGE_DESC){ from.node, from.tensor, to.node, to.tensor, NULL };
    b->inner_edges[i] = (DML_GRAPH_EDGE_DESC){ DML_GRAPH_EDGE_TYPE_INTERMEDIATE, &b->inner_descs[i] };
    return OPJIT_OK;
}

static opjit_status read_output(builder *b, const json_value *output, uint32_t index)
{
    const uint32_t i = b->graph->desc.OutputEdgeCount++;
    const uint32_t at = b->d->input_count + index;
    end from;
    TRY(read_end(b, output, false, &from));
    if (opjit_cli_json_get(b->inputs, output->key) != NULL || names_constant(b, output))
        return opjit_cli_fail(b->m, output, OPJIT_INVALID_ARGUMENT, "an input or constant has this name already");
    b->d->ports[at] = (cli_port){ output->key, &b->tensors[at], false };
    b->output_descs[i] = (DML_OUTPUT_GRAPH_EDGE_DESC){ from.node, from.tensor, index, output->key };
    b->output_edges[i] = (DML_GRAPH_EDGE_DESC){ DML_GRAPH_EDGE_TYPE_OUTPUT, &b->output_descs[i] };
    return OPJIT_OK;
}

static opjit_status read_parts(builder *b)
{
    uint32_t i = 0;
    TRY(read_nodes(b));
    for (const json_value *v = b->inputs->first; v != NULL; v = v->next) {
        TRY(check_name(b, v));
        if (names_constant(b, v))
            return opjit_cli_fail(b->m, v, OPJIT_INVALID_ARGUMENT, "a constant has this name already");
        TRY(read_input(b, v, i++));
    }
    for (const json_value *v = b->edges == NULL ? NULL : b->edges->first; v != NULL; v = v->next)
        TRY(read_edge(b, v));
    i = 0;
    for (const json_value *v = b->outputs->first; v != NULL; v = v->next) {
        TRY(check_name(b, v));
        TRY(read_output(b, v, i++));
    }
    return OPJIT_OK;
}

/* --- tensors of inputs and outputs -------------------------------------------------------------------------------- */
/* A constant that is an output has elements of its resource's type, where that has one: the library sees bytes. */
static void shape_constant(const cli_resource *data, opjit_tensor_info *tensor)
{
    if (data->dtype == DML_TENSOR_DATA_TYPE_UNKNOWN)
        return;
    tensor->dtype = data->dtype;
    tensor->elements = tensor->sizes[0] = data->bytes / opjit_data_type_size(data->dtype);
    tensor->strides[0] = tensor->elements > 1;
}

static opjit_status read_tensors(builder *b)
{
    opjit_tensor_info *const outputs = b->tensors + b->d->input_count;
    for (uint32_t i = 0; i < b->d->input_count + b->d->output_count; i++)
        b->tensors[i].struct_size = sizeof *b->tensors;
    TRY(opjit_cli_at_dispatchable(
        b->m, b->d, opjit_check_graph(b->m->context, &b->graph->desc, b->tensors, outputs, &b->m->report.error)));
    for (uint32_t i = 0; i < b->d->output_count; i++)
        if (b->data[b->output_descs[i].FromNodeIndex] != NULL)
            shape_constant(b->data[b->output_descs[i].FromNodeIndex], &outputs[i]);
    return OPJIT_OK;
}

/* --- the whole ---------------------------------------------------------------------------------------------------- */
static bool allocate(builder *b)
{
    rt_arena *const arena = &b->m->arena;
    const size_t nodes = b->graph->nodes->count, outputs = b->outputs->count;
    const size_t inner = b->edges == NULL ? 0 : b->edges->count;
    size_t inputs = 0;
    for (const json_value *v = b->inputs->first; v != NULL; v = v->next)
        inputs += v->kind == JSON_ARRAY ? v->count : 1;
    b->nodes = ARENA_ARRAY(arena, DML_GRAPH_NODE_DESC, nodes);
    b->operators = ARENA_ARRAY(arena, DML_OPERATOR_GRAPH_NODE_DESC, nodes);
    b->constants = ARENA_ARRAY(arena, DML_CONSTANT_DATA_GRAPH_NODE_DESC, nodes);
    b->data = ARENA_ARRAY(arena, cli_resource *, nodes);
    b->graph->operators = ARENA_ARRAY(arena, cli_operator, nodes);
    b->input_edges = ARENA_ARRAY(arena, DML_GRAPH_EDGE_DESC, inputs);
    b->input_descs = ARENA_ARRAY(arena, DML_INPUT_GRAPH_EDGE_DESC, inputs);
    b->inner_edges = ARENA_ARRAY(arena, DML_GRAPH_EDGE_DESC, inner);
    b->inner_descs = ARENA_ARRAY(arena, DML_INTERMEDIATE_GRAPH_EDGE_DESC, inner);
    b->output_edges = ARENA_ARRAY(arena, DML_GRAPH_EDGE_DESC, outputs);
    b->output_descs = ARENA_ARRAY(arena, DML_OUTPUT_GRAPH_EDGE_DESC, outputs);
    b->d->ports = ARENA_ARRAY(arena, cli_port, (size_t)b->inputs->count + outputs);
    b->tensors = ARENA_ARRAY(arena, opjit_tensor_info, (size_t)b->inputs->count + outputs);
    return b->nodes != NULL && b->operators != NULL && b->constants != NULL && b->data != NULL &&
           b->graph->operators != NULL && b->input_edges != NULL && b->input_descs != NULL && b->inner_edges != NULL &&
           b->inner_descs != NULL && b->output_edges != NULL && b->output_descs != NULL && b->d->ports != NULL &&
           b->tensors != NULL;
}

opjit_status opjit_cli_read_graph(cli_model *m, cli_dispatchable *d)
{
    builder b = { .m = m, .d = d, .graph = ARENA_NEW(&m->arena, cli_graph) };
    static const json_value none = { .kind = JSON_OBJECT };
    if (b.graph == NULL)
        return opjit_cli_no_memory(m, d->json);
    d->what = "graph";
    TRY(opjit_cli_member(m, d->json, "nodes", JSON_OBJECT, &b.graph->nodes));
    b.inputs = &none;
    if (opjit_cli_json_get(d->json, "inputs") != NULL)
        TRY(opjit_cli_member(m, d->json, "inputs", JSON_OBJECT, &b.inputs));
    if (opjit_cli_json_get(d->json, "edges") != NULL)
        TRY(opjit_cli_member(m, d->json, "edges", JSON_ARRAY, &b.edges));
    TRY(opjit_cli_member(m, d->json, "outputs", JSON_OBJECT, &b.outputs));
    d->input_count = b.inputs->count;
    d->output_count = b.outputs->count;
    if (!allocate(&b))
        return opjit_cli_no_memory(m, d->json);
    b.graph->count = b.graph->nodes->count;
    d->graph = b.graph; /* from here on the model releases its operators */
    TRY(read_parts(&b));
    b.graph->desc.InputCount = d->input_count;
    b.graph->desc.OutputCount = d->output_count;
    b.graph->desc.NodeCount = b.graph->count;
    b.graph->desc.Nodes = b.nodes;
    b.graph->desc.InputEdges = b.input_edges;
    b.graph->desc.OutputEdges = b.output_edges;
    b.graph->desc.IntermediateEdges = b.inner_edges;
    return read_tensors(&b);
}
