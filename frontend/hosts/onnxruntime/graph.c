/* SPDX-License-Identifier: Apache-2.0 */
/* graph.c - a graph of ONNX Runtime as records: values by name, nodes in the host's topological order. */
#include <stdlib.h>
#include <string.h>

#include "frontend/hosts/onnxruntime/provider.h"

/* --- memory ------------------------------------------------------------------------------------------------------- */
struct arena_block {
    arena_block *next;
    size_t used, size;
    max_align_t memory[];
};
enum { BLOCK = 64 * 1024 };

void *opjit_ort_allocate(arena *a, size_t count, size_t size)
{
    const size_t unit = sizeof(max_align_t);
    if (size != 0 && count > SIZE_MAX / 4 / size)
        return NULL;
    const size_t wanted = (count * size + unit) / unit * unit; /* never 0 */
    arena_block *b = a->blocks;
    if (b == NULL || b->size - b->used < wanted) {
        const size_t room = wanted > BLOCK ? wanted : BLOCK;
        b = calloc(1, sizeof *b + room);
        if (b == NULL)
            return NULL;
        b->size = room;
        b->next = a->blocks;
        a->blocks = b;
    }
    b->used += wanted;
    return (unsigned char *)b->memory + b->used - wanted;
}

void opjit_ort_free(arena *a)
{
    while (a->blocks != NULL) {
        arena_block *const next = a->blocks->next;
        free(a->blocks);
        a->blocks = next;
    }
}

#define ARRAY(g, type, count) ((type *)opjit_ort_allocate(&(g)->memory, (size_t)(count) + 1, sizeof(type)))

static ort_status *no_memory(const ort_api *api)
{
    return opjit_ort_fail(api, ORT_FAIL, "there is no memory");
}

/* --- values ------------------------------------------------------------------------------------------------------- */

/* Values by name. */
typedef struct names {
    const ort_api *api;
    graph *g;
    int32_t *slots; /* a value + 1; 0: free */
    size_t slot_count;
} names;

static size_t hash(const char *text)
{
    size_t h = 5381;
    for (; *text != '\0'; text++)
        h = h * 33 + (unsigned char)*text;
    return h ^ h >> 15;
}

static int32_t *find_slot(const names *n, const char *name)
{
    size_t i = hash(name) % n->slot_count;
    while (n->slots[i] != 0 && strcmp(n->g->values[n->slots[i] - 1].name, name) != 0)
        i = (i + 1) % n->slot_count;
    return &n->slots[i];
}

static ort_status *read_type(const ort_api *api, const ort_value_info *info, graph_value *v)
{
    const ort_type_info *type = NULL;
    const ort_tensor_info *tensor = NULL;
    size_t rank = 0;
    ORT_TRY(api->GetValueInfoTypeInfo(info, &type));
    if (type == NULL)
        return NULL;
    ORT_TRY(api->CastTypeInfoToTensorInfo(type, &tensor));
    if (tensor == NULL)
        return NULL;
    ORT_TRY(api->GetTensorElementType(tensor, &v->type));
    ORT_TRY(api->GetDimensionsCount(tensor, &rank));
    v->rank = (uint32_t)rank;
    if (rank > ORT_RANK)
        v->type = 0;
    else if (rank > 0) {
        ORT_TRY(api->GetDimensions(tensor, v->dims, rank));
        ORT_TRY(api->GetSymbolicDimensions(tensor, v->dim_names, rank));
    }
    return NULL;
}

ort_status *opjit_ort_read_tensor(const ort_api *api, const ort_value *value, int *type, int64_t dims[ORT_RANK],
                                  size_t *rank)
{
    ort_tensor_info *info = NULL;
    ORT_TRY(api->GetTensorTypeAndShape(value, &info));
    ort_status *status = api->GetTensorElementType(info, type);
    if (status == NULL)
        status = api->GetDimensionsCount(info, rank);
    if (status == NULL && *rank > 0 && *rank <= ORT_RANK)
        status = api->GetDimensions(info, dims, *rank);
    api->ReleaseTensorTypeAndShapeInfo(info);
    return status;
}

/* The value's index in *out; a new one is read. */
static ort_status *find_value(names *n, const ort_value_info *info, int32_t *out)
{
    bool constant = false, outer = false;
    const char *name = NULL;
    *out = ORT_NONE;
    if (info == NULL)
        return NULL;
    ORT_TRY(n->api->GetValueInfoName(info, &name));
    if (name == NULL || name[0] == '\0')
        return NULL;
    int32_t *const slot = find_slot(n, name);
    if (*slot == 0) {
        graph_value *const v = &n->g->values[n->g->value_count];
        *v = (graph_value){ .name = name, .maker = ORT_NONE };
        ORT_TRY(read_type(n->api, info, v));
        ORT_TRY(n->api->ValueInfo_IsConstantInitializer(info, &constant));
        ORT_TRY(n->api->ValueInfo_IsFromOuterScope(info, &outer));
        n->g->is_inner = n->g->is_inner || outer;
        if (constant)
            ORT_TRY(n->api->ValueInfo_GetInitializerValue(info, &v->data));
        *slot = (int32_t)++n->g->value_count;
    }
    *out = *slot - 1;
    return NULL;
}

/* --- nodes -------------------------------------------------------------------------------------------------------- */

typedef ort_status *(*ports_fn)(const ort_node *, const ort_value_info **, size_t);

static ort_status *read_ports(names *n, const ort_node *node, uint32_t count, ports_fn get, int32_t **out)
{
    const ort_value_info **const infos = ARRAY(n->g, const ort_value_info *, count);
    *out = ARRAY(n->g, int32_t, count);
    if (infos == NULL || *out == NULL)
        return no_memory(n->api);
    if (count > 0)
        ORT_TRY(get(node, infos, count));
    for (uint32_t i = 0; i < count; i++)
        ORT_TRY(find_value(n, infos[i], &(*out)[i]));
    return NULL;
}

static ort_status *read_node(names *n, uint32_t index)
{
    graph_node *const out = &n->g->nodes[index];
    const ort_api *const api = n->api;
    ORT_TRY(api->Node_GetOperatorType(out->node, &out->op));
    ORT_TRY(api->Node_GetDomain(out->node, &out->domain));
    ORT_TRY(api->Node_GetName(out->node, &out->name));
    ORT_TRY(read_ports(n, out->node, out->input_count, api->Node_GetInputs, &out->inputs));
    ORT_TRY(read_ports(n, out->node, out->implicit_count, api->Node_GetImplicitInputs, &out->implicit));
    ORT_TRY(read_ports(n, out->node, out->output_count, api->Node_GetOutputs, &out->outputs));
    for (uint32_t i = 0; i < out->input_count; i++)
        if (out->inputs[i] != ORT_NONE)
            n->g->values[out->inputs[i]].readers++;
    for (uint32_t i = 0; i < out->implicit_count; i++)
        if (out->implicit[i] != ORT_NONE)
            n->g->values[out->implicit[i]].readers++;
    for (uint32_t i = 0; i < out->output_count; i++)
        if (out->outputs[i] != ORT_NONE)
            n->g->values[out->outputs[i]].maker = (int32_t)index;
    return NULL;
}

/* Counts of each node's values, and of all in *out_total. */
static ort_status *count_ports(const ort_api *api, graph *g, size_t *out_total)
{
    const ort_node **const nodes = ARRAY(g, const ort_node *, g->node_count);
    if (nodes == NULL)
        return no_memory(api);
    if (g->node_count > 0)
        ORT_TRY(api->Graph_GetNodes(g->host, nodes, g->node_count));
    for (uint32_t i = 0; i < g->node_count; i++) {
        size_t inputs = 0, outputs = 0, implicit = 0, graphs = 0;
        ORT_TRY(api->Node_GetNumInputs(nodes[i], &inputs));
        ORT_TRY(api->Node_GetNumOutputs(nodes[i], &outputs));
        ORT_TRY(api->Node_GetNumImplicitInputs(nodes[i], &implicit));
        ORT_TRY(api->Node_GetNumSubgraphs(nodes[i], &graphs));
        g->nodes[i] = (graph_node){ .node = nodes[i],
                                    .input_count = (uint32_t)inputs,
                                    .output_count = (uint32_t)outputs,
                                    .implicit_count = (uint32_t)implicit,
                                    .has_graphs = graphs > 0 };
        *out_total += inputs + outputs + implicit;
    }
    return NULL;
}

ort_status *opjit_ort_read_graph(const ort_api *api, const ort_graph *host, graph *out)
{
    size_t node_count = 0, output_count = 0, total = 0;
    *out = (graph){ .host = host };
    ORT_TRY(api->Graph_GetNumNodes(host, &node_count));
    ORT_TRY(api->Graph_GetNumOutputs(host, &output_count));
    out->node_count = (uint32_t)node_count;
    out->nodes = ARRAY(out, graph_node, node_count);
    const ort_value_info **const outputs = ARRAY(out, const ort_value_info *, output_count);
    if (out->nodes == NULL || outputs == NULL)
        return no_memory(api);
    ORT_TRY(count_ports(api, out, &total));
    total += output_count;
    names n = { .api = api, .g = out, .slot_count = 2 * total + 1 };
    n.slots = ARRAY(out, int32_t, n.slot_count);
    out->values = ARRAY(out, graph_value, total);
    if (n.slots == NULL || out->values == NULL)
        return no_memory(api);
    for (uint32_t i = 0; i < out->node_count; i++)
        ORT_TRY(read_node(&n, i));
    if (output_count > 0)
        ORT_TRY(api->Graph_GetOutputs(host, outputs, output_count));
    for (size_t i = 0; i < output_count; i++) {
        int32_t v;
        ORT_TRY(find_value(&n, outputs[i], &v));
        if (v != ORT_NONE)
            out->values[v].is_output = true;
    }
    return NULL;
}

void opjit_ort_free_graph(graph *g)
{
    opjit_ort_free(&g->memory);
}

/* --- groups ------------------------------------------------------------------------------------------------------- */

/* Sorts what a node of the group reads into constants and inputs. */
static void add_inputs(graph *g, group *of, const graph_node *n, const bool *is_in)
{
    for (uint32_t i = 0; i < n->input_count; i++) {
        if (n->inputs[i] == ORT_NONE)
            continue;
        graph_value *const v = &g->values[n->inputs[i]];
        if (v->mark != g->marks)
            v->inside = 0;
        v->inside++;
        if (v->mark == g->marks)
            continue;
        v->mark = g->marks;
        if (v->data != NULL)
            of->constants[of->constant_count++] = n->inputs[i];
        else if (v->maker == ORT_NONE || !is_in[v->maker])
            of->inputs[of->input_count++] = n->inputs[i];
    }
}

bool opjit_ort_find_ports(graph *g, group *nodes)
{
    size_t inputs = 0, outputs = 0;
    bool *const is_in = ARRAY(g, bool, g->node_count);
    for (uint32_t i = 0; i < nodes->node_count; i++) {
        inputs += g->nodes[nodes->nodes[i]].input_count;
        outputs += g->nodes[nodes->nodes[i]].output_count;
    }
    nodes->inputs = ARRAY(g, int32_t, inputs);
    nodes->constants = ARRAY(g, int32_t, inputs);
    nodes->outputs = ARRAY(g, int32_t, outputs);
    if (is_in == NULL || nodes->inputs == NULL || nodes->constants == NULL || nodes->outputs == NULL)
        return false;
    nodes->input_count = nodes->output_count = nodes->constant_count = 0;
    for (uint32_t i = 0; i < nodes->node_count; i++)
        is_in[nodes->nodes[i]] = true;
    g->marks++;
    for (uint32_t i = 0; i < nodes->node_count; i++)
        add_inputs(g, nodes, &g->nodes[nodes->nodes[i]], is_in);
    for (uint32_t i = 0; i < nodes->node_count; i++) {
        const graph_node *const n = &g->nodes[nodes->nodes[i]];
        for (uint32_t k = 0; k < n->output_count; k++) {
            if (n->outputs[k] == ORT_NONE)
                continue;
            const graph_value *const v = &g->values[n->outputs[k]];
            if (v->is_output || v->readers > (v->mark == g->marks ? v->inside : 0))
                nodes->outputs[nodes->output_count++] = n->outputs[k];
        }
    }
    return true;
}
