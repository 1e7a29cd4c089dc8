/* SPDX-License-Identifier: Apache-2.0 */
/* model_dims.c - dynamic dimensions of a model: their bounds, the sizes that they have in this run, and kernels for all
 * sizes of what has them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/cli/model.h"
#include "frontend/cli/number.h"

/* --- bounds ------------------------------------------------------------------------------------------------------- */

static opjit_status read_dim(cli_model *m, const json_value *json)
{
    opjit_dim *const dim = &m->dims[m->dim_count];
    uint64_t numbers[3] = { 0 };
    uint32_t i = 0;
    if (m->dim_count == OPJIT_MAX_DIMS)
        return opjit_cli_fail(m, json, OPJIT_LIMIT, "more than %u dimensions", OPJIT_MAX_DIMS);
    if (json->key_length == 0 || json->key_length > 63 || strlen(json->key) != json->key_length)
        return opjit_cli_fail(m, json, OPJIT_INVALID_ARGUMENT, "a dimension's name has 1 to 63 characters");
    if (json->kind != JSON_ARRAY || json->count < 2 || json->count > 3)
        return opjit_cli_fail(m, json, OPJIT_INVALID_ARGUMENT,
                              "this has to be an array of the least, the largest and a typical size");
    for (const json_value *v = json->first; v != NULL; v = v->next)
        TRY(opjit_cli_at(m, v, opjit_cli_unsigned(v, "INT32", INT32_MAX, &numbers[i++], &m->report.error)));
    if (numbers[0] < 1 || numbers[0] > numbers[1])
        return opjit_cli_fail(m, json, OPJIT_INVALID_ARGUMENT,
                              "bounds %" PRIu64 " to %" PRIu64 ", must be at least 1, in order", numbers[0],
                              numbers[1]);
    if (json->count == 2)
        numbers[2] = (numbers[0] + numbers[1]) / 2;
    if (numbers[2] < numbers[0] || numbers[2] > numbers[1])
        return opjit_cli_fail(m, json->first->next->next, OPJIT_INVALID_ARGUMENT,
                              "%" PRIu64 " is outside of %" PRIu64 " to %" PRIu64, numbers[2], numbers[0], numbers[1]);
    *dim = (opjit_dim){ json->key, numbers[0], numbers[1], numbers[2] };
    m->dim_sizes[m->dim_count++] = numbers[2];
    return OPJIT_OK;
}

/* "n=5": the size in this run. */
static opjit_status set_size(cli_model *m, const char *text)
{
    const char *const sign = strchr(text, '=');
    const size_t length = sign == NULL ? strlen(text) : (size_t)(sign - text);
    char *end = NULL;
    for (uint32_t i = 0; i < m->dim_count; i++) {
        const opjit_dim *const dim = &m->dims[i];
        if (strlen(dim->name) != length || memcmp(dim->name, text, length) != 0)
            continue;
        const uint64_t size = sign != NULL && sign[1] >= '0' && sign[1] <= '9' ? strtoull(sign + 1, &end, 10) : 0;
        if (end == NULL || *end != '\0' || size < dim->lo || size > dim->hi)
            return opjit_cli_fail(m, m->dims_json, OPJIT_INVALID_ARGUMENT,
                                  "--dim %.80s: must be a size from %" PRIu64 " to %" PRIu64, text, dim->lo, dim->hi);
        m->dim_sizes[i] = size;
        m->dims_set |= 1u << i;
        return OPJIT_OK;
    }
    return opjit_cli_fail(m, m->dims_json, OPJIT_INVALID_ARGUMENT, "--dim %.80s: there is no dimension of this name",
                          text);
}

opjit_status opjit_cli_read_dims(cli_model *m)
{
    m->dims_json = opjit_cli_json_get(m->root, "dims");
    if (m->dims_json == NULL)
        return OPJIT_OK;
    if (m->dims_json->kind != JSON_OBJECT)
        return opjit_cli_fail(m, m->dims_json, OPJIT_INVALID_ARGUMENT,
                              "this is %s, but has to be an object: dimensions by name",
                              opjit_cli_kind_name(m->dims_json->kind));
    for (const json_value *v = m->dims_json->first; v != NULL; v = v->next)
        TRY(read_dim(m, v));
    for (uint32_t i = 0; i < m->given_count; i++)
        TRY(set_size(m, m->given_dims[i]));
    return OPJIT_OK;
}

opjit_status opjit_cli_dim(cli_model *m, const json_value *name, uint32_t *out)
{
    for (uint32_t i = 0; i < m->dim_count; i++)
        if (opjit_cli_json_is(name, m->dims[i].name)) {
            *out = m->symbolic ? OPJIT_DIM(i) : (uint32_t)m->dim_sizes[i];
            m->uses_dims = true;
            return OPJIT_OK;
        }
    return opjit_cli_no_member(m, name, "dimension", m->dims_json);
}

opjit_status opjit_cli_need_sizes(cli_model *m, const cli_dispatchable *d)
{
    for (uint32_t i = 0; i < m->dim_count && d->uses_dims; i++)
        if ((m->dims_set >> i & 1) == 0)
            return opjit_cli_fail(m, d->json, OPJIT_UNSUPPORTED,
                                  "what is compiled ahead of time has one size of dimension \"%s\": give --dim %s=N",
                                  m->dims[i].name, m->dims[i].name);
    return OPJIT_OK;
}

/* --- kernels ------------------------------------------------------------------------------------------------------ */

/* The descriptor with OPJIT_DIM for sizes.  json: what has "desc". */
static opjit_status read_symbolic(cli_model *m, const json_value *json, const cli_operator *op,
                                  const DML_OPERATOR_DESC **out)
{
    DML_OPERATOR_DESC *const desc = ARENA_NEW(&m->arena, DML_OPERATOR_DESC);
    const json_value *fields = opjit_cli_json_get(json, "desc");
    void *own;
    if (desc == NULL)
        return opjit_cli_no_memory(m, json);
    if (fields == NULL)
        fields = opjit_cli_json_get(json, "Desc");
    m->symbolic = true;
    const opjit_status status = opjit_cli_read_desc(m, op->def, fields, &own);
    m->symbolic = false;
    *desc = (DML_OPERATOR_DESC){ op->def->type, own };
    *out = desc;
    return status;
}

static opjit_status compile_graph(cli_model *m, cli_dispatchable *d, const opjit_compile_options *options)
{
    const DML_OPERATOR_DESC **const descs = ARENA_ARRAY(&m->arena, const DML_OPERATOR_DESC *, d->graph->count);
    if (descs == NULL)
        return opjit_cli_no_memory(m, d->json);
    for (const json_value *v = d->graph->nodes->first; v != NULL; v = v->next)
        if (d->graph->operators[v->index].op != NULL)
            TRY(read_symbolic(m, v, &d->graph->operators[v->index], &descs[v->index]));
    return opjit_cli_at_dispatchable(m, d,
                                     opjit_compile_dynamic_desc(m->context, m->dims, m->dim_count, &d->graph->desc,
                                                                descs, options, &d->kernel, &m->report.error));
}

/* A graph of the operator alone, whose inputs and outputs are those tensors that are there. */
static opjit_status compile_operator(cli_model *m, cli_dispatchable *d, const opjit_compile_options *options)
{
    const cli_operator *const op = &d->own;
    const size_t all = (size_t)op->input_count + op->output_count;
    DML_GRAPH_EDGE_DESC *const edges = ARENA_ARRAY(&m->arena, DML_GRAPH_EDGE_DESC, all);
    DML_INPUT_GRAPH_EDGE_DESC *const inputs = ARENA_ARRAY(&m->arena, DML_INPUT_GRAPH_EDGE_DESC, all);
    DML_OUTPUT_GRAPH_EDGE_DESC *const outputs = ARENA_ARRAY(&m->arena, DML_OUTPUT_GRAPH_EDGE_DESC, all);
    const DML_OPERATOR_GRAPH_NODE_DESC node = { op->op, d->json->key };
    const DML_GRAPH_NODE_DESC nodes[] = { { DML_GRAPH_NODE_TYPE_OPERATOR, &node } };
    const DML_OPERATOR_DESC *desc;
    DML_GRAPH_DESC graph = { .NodeCount = 1, .Nodes = nodes };
    if (edges == NULL || inputs == NULL || outputs == NULL)
        return opjit_cli_no_memory(m, d->json);
    TRY(read_symbolic(m, d->json, op, &desc));
    for (uint32_t i = 0; i < op->input_count; i++)
        if (op->inputs[i].rank != 0) {
            inputs[i] = (DML_INPUT_GRAPH_EDGE_DESC){ graph.InputCount, 0, i, NULL };
            edges[graph.InputCount++] = (DML_GRAPH_EDGE_DESC){ DML_GRAPH_EDGE_TYPE_INPUT, &inputs[i] };
        }
    for (uint32_t i = 0; i < op->output_count; i++)
        if (op->outputs[i].rank != 0) {
            outputs[i] = (DML_OUTPUT_GRAPH_EDGE_DESC){ 0, i, graph.OutputCount, NULL };
            edges[graph.InputCount + graph.OutputCount++] =
                (DML_GRAPH_EDGE_DESC){ DML_GRAPH_EDGE_TYPE_OUTPUT, &outputs[i] };
        }
    graph.InputEdgeCount = graph.InputCount;
    graph.InputEdges = edges;
    graph.OutputEdgeCount = graph.OutputCount;
    graph.OutputEdges = edges + graph.InputCount;
    return opjit_cli_at(m, d->json,
                        opjit_compile_dynamic_desc(m->context, m->dims, m->dim_count, &graph, &desc, options,
                                                   &d->kernel, &m->report.error));
}

opjit_status opjit_cli_compile_dynamic(cli_model *m, cli_dispatchable *d, const opjit_compile_options *options)
{
    return d->graph != NULL ? compile_graph(m, d, options) : compile_operator(m, d, options);
}
