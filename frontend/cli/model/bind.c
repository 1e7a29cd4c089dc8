/* SPDX-License-Identifier: Apache-2.0 */
/* bind.c - bindings: which bytes of which resource stand behind each tensor, and whether a kernel may be called
 * with them.  All of it is settled before the first command runs. */
#include <inttypes.h>
#include <string.h>

#include "frontend/cli/model/model.h"
#include "frontend/cli/text/number.h"

/* Whether a tensor's name is the field's, followed by nothing or by "[". */
static bool is_of_field(const char *name, const json_value *field)
{
    return strncmp(name, field->key, field->key_length) == 0 &&
           (name[field->key_length] == '\0' || name[field->key_length] == '[');
}

/* --- from JSON to ranges ------------------------------------------------------------------------------------------ */
/* A bind: the name of a resource, or an object that picks elements of it. */
static opjit_status read_range(cli_model *m, const json_value *json, const opjit_tensor_info *tensor, cli_range *out)
{
    const json_value *name = json;
    uint64_t count, offset, size, end;
    bool counted;
    out->json = json;
    if (json->kind == JSON_OBJECT)
        TRY(opjit_cli_member(m, json, "name", JSON_STRING, &name));
    if (name->kind != JSON_STRING)
        return opjit_cli_fail(m, json, OPJIT_INVALID_ARGUMENT,
                              "a binding is a resource's name or an object with \"name\"");
    out->resource = opjit_cli_find_resource(m, name);
    if (out->resource == NULL)
        return opjit_cli_no_member(m, name, "resource", opjit_cli_json_get(m->root, "resources"));
    size = opjit_data_type_size(out->resource->dtype);
    counted = opjit_cli_json_get(json, "elementCount") != NULL;
    TRY(opjit_cli_uint_member(m, json, "elementSizeInBytes", UINT64_MAX,
                              size != 0 ? size : opjit_data_type_size(cli_kept_type(tensor->dtype)), &size));
    TRY(opjit_cli_uint_member(m, json, "elementOffset", UINT64_MAX, 0, &offset));
    TRY(opjit_cli_uint_member(m, json, "elementCount", UINT64_MAX, 0, &count));
    if (size == 0 || (counted && count == 0))
        return opjit_cli_fail(m, json, OPJIT_INVALID_ARGUMENT, "the range holds no bytes");
    /* Without storage yet, the resource gets the size that its bindings need. */
    out->bytes = out->resource->data == NULL ? tensor->bytes : 0;
    if (!checked_mul(offset, size, &out->offset) || (counted && !checked_mul(count, size, &out->bytes)) ||
        !checked_add(out->offset, out->bytes, &end) || end > UINT64_MAX - 3)
        return opjit_cli_fail(m, json, OPJIT_INVALID_ARGUMENT, "the range is beyond the end of any memory");
    if (out->resource->data == NULL)
        return OPJIT_OK;
    if (end > out->resource->bytes || out->offset >= out->resource->bytes)
        return opjit_cli_fail(m, json, OPJIT_INVALID_ARGUMENT,
                              "the range ends at byte %" PRIu64 ", the resource has %" PRIu64,
                              counted ? end : out->offset + 1, out->resource->bytes);
    if (!counted)
        out->bytes = out->resource->bytes - out->offset;
    /* Tensors are counted in whole 4 bytes, three UINT8 elements too. */
    out->bytes = align_up(out->bytes, 4);
    if (out->bytes > out->resource->bytes - out->offset)
        out->bytes = out->resource->bytes - out->offset;
    return OPJIT_OK;
}

static opjit_status check_range(cli_model *m, const opjit_tensor_info *tensor, const char *name, const cli_range *r)
{
    if (r->bytes < tensor->bytes)
        return opjit_cli_fail(m, r->json, OPJIT_INVALID_ARGUMENT, "%" PRIu64 " bytes are bound, %s needs %" PRIu64,
                              r->bytes, name, tensor->bytes);
    if (tensor->align != 0 && (r->offset % tensor->align != 0 || tensor->align > CLI_PAGE))
        return opjit_cli_fail(m, r->json, OPJIT_INVALID_ARGUMENT,
                              "the range begins at byte %" PRIu64 ", %s needs a multiple of %u (at most %u)", r->offset,
                              name, tensor->align, CLI_PAGE);
    return OPJIT_OK;
}

/* Binds one tensor; json may be null only where the tensor is absent. */
static opjit_status bind_one(cli_model *m, const cli_port *port, const json_value *json, bool owned, cli_range *out)
{
    const opjit_tensor_info *const tensor = port->tensor;
    const char *const name = port->name;
    if (json->kind == JSON_NULL && (port->unused || tensor->rank == 0))
        return OPJIT_OK;
    if (port->unused) {
        cli_range ignored = { 0 };
        return read_range(m, json, tensor, &ignored);
    }
    if (tensor->rank == 0)
        return opjit_cli_fail(m, json, OPJIT_INVALID_ARGUMENT, "the descriptor has no %s", name);
    if (owned && (tensor->flags & DML_TENSOR_FLAG_OWNED_BY_DML) == 0)
        return opjit_cli_fail(m, json, OPJIT_INVALID_ARGUMENT,
                              "%s is not OWNED_BY_DML: it is bound by the dispatch command", name);
    if (!owned && (tensor->flags & DML_TENSOR_FLAG_OWNED_BY_DML) != 0)
        return opjit_cli_fail(m, json, OPJIT_INVALID_ARGUMENT,
                              "%s is OWNED_BY_DML: it is bound by the dispatchable's \"bindings\"", name);
    TRY(read_range(m, json, tensor, out));
    if (out->resource->deferred && owned)
        return opjit_cli_fail(m, json, OPJIT_INVALID_ARGUMENT, "a deferred resource has no contents yet");
    return check_range(m, tensor, name, out);
}

/* The ports that a field of "bindings" may name are those from *at on: one, where it is the name of a graph's input or
 * output, else all. */
static uint32_t ports_of(const cli_dispatchable *d, const json_value *field, uint32_t *at)
{
    const json_value *found = opjit_cli_json_find(opjit_cli_json_get(d->json, "inputs"), field->key, field->key_length);
    *at = 0;
    if (d->graph == NULL)
        return d->input_count + d->output_count;
    if (found == NULL) {
        found = opjit_cli_json_find(opjit_cli_json_get(d->json, "outputs"), field->key, field->key_length);
        *at = d->input_count;
    }
    *at = found != NULL ? *at + found->index : 0;
    return found != NULL ? 1 : d->input_count + d->output_count;
}

/* One member of "bindings": the binds of a field, an array where the field is one. */
static opjit_status bind_field(cli_model *m, const cli_dispatchable *d, const json_value *field, bool owned,
                               cli_range *out)
{
    const json_value *bind = field->kind == JSON_ARRAY ? field->first : field;
    uint32_t found = 0, at;
    for (uint32_t left = ports_of(d, field, &at); left != 0; left--, at++) {
        if (!is_of_field(d->ports[at].name, field))
            continue;
        found++;
        if (bind == NULL)
            continue;
        TRY(bind_one(m, &d->ports[at], bind, owned, &out[at]));
        bind = field->kind == JSON_ARRAY ? bind->next : NULL;
    }
    if (found == 0)
        return opjit_cli_fail(m, field, OPJIT_INVALID_ARGUMENT, "%s has no tensor of this name", d->what);
    if (field->kind == JSON_ARRAY ? field->count != found : found != 1)
        return opjit_cli_fail(m, field, OPJIT_INVALID_ARGUMENT, "this has to be %u binding%s", found,
                              found == 1 ? "" : "s");
    return OPJIT_OK;
}

opjit_status opjit_cli_read_bindings(cli_model *m, cli_dispatchable *d, const json_value *owner, bool owned,
                                     cli_range *ranges)
{
    const json_value *const bindings = opjit_cli_json_get(owner, "bindings");
    if (bindings != NULL && bindings->kind != JSON_OBJECT)
        return opjit_cli_fail(m, bindings, OPJIT_INVALID_ARGUMENT,
                              "this has to be an object: tensors and what is bound to them");
    for (const json_value *field = bindings != NULL ? bindings->first : NULL; field != NULL; field = field->next)
        TRY(bind_field(m, d, field, owned, ranges));
    for (uint32_t i = 0; i < d->input_count + d->output_count; i++) {
        const cli_port *const port = &d->ports[i];
        const bool is_owned = (port->tensor->flags & DML_TENSOR_FLAG_OWNED_BY_DML) != 0;
        if (port->tensor->rank != 0 && !port->unused && is_owned == owned && ranges[i].resource == NULL)
            return opjit_cli_fail(m, bindings != NULL ? bindings : owner, OPJIT_INVALID_ARGUMENT,
                                  "%.100s of %.*s%s is not bound", port->name, CLI_QUOTE_KEY(d->json));
    }
    return OPJIT_OK;
}

/* --- from ranges to bindings -------------------------------------------------------------------------------------- */
/* The next port that the kernel has a buffer for: they come in the same order. */
static uint32_t next_port(const cli_dispatchable *d, uint32_t at)
{
    while (at < d->input_count + d->output_count && (d->ports[at].tensor->rank == 0 || d->ports[at].unused))
        at++;
    return at;
}

static opjit_status check_overlaps(cli_model *m, const cli_command *c, const opjit_kernel_info *info)
{
    const opjit_status status =
        opjit_kernel_check_overlaps(c->dispatchable->kernel, c->bindings, c->binding_count, &m->report.error);
    const opjit_error error = m->report.error;
    if (status == OPJIT_OK || error.index < 0)
        return opjit_cli_at(m, c->json, status);
    return opjit_cli_fail(m, opjit_cli_json_get(c->json, "bindings"), status,
                          "%s shares memory with %s, which %.40s can't do in place",
                          (const char *)info->meta + info->buffers[error.index].name, error.value,
                          c->dispatchable->what);
}

static opjit_status make_bindings(cli_model *m, cli_command *c)
{
    cli_dispatchable *const d = c->dispatchable;
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    uint32_t next = 0;
    TRY(opjit_cli_at(m, c->json, opjit_kernel_get_info(d->kernel, &info, &m->report.error)));
    c->binding_count = info.inputs + info.outputs;
    c->bindings = ARENA_ARRAY(&m->arena, opjit_binding, (size_t)c->binding_count + 1);
    if (c->bindings == NULL)
        return opjit_cli_no_memory(m, c->json);
    for (uint32_t i = 0; i < c->binding_count; i++) {
        const uint32_t at = next_port(d, next);
        if (at >= d->input_count + d->output_count)
            return opjit_cli_fail(m, c->json, OPJIT_INTERNAL, "the kernel of %s has a buffer that is no tensor",
                                  d->what);
        const cli_range *const r =
            at < d->input_count && d->constants[at].copy != NULL ? &d->constants[at] : &c->ranges[at];
        c->bindings[i].data = r->copy != NULL ? r->copy : r->resource->data + r->offset;
        c->bindings[i].bytes = r->bytes;
        next = at + 1;
    }
    return d->uses_dims ? OPJIT_OK : check_overlaps(m, c, &info); /* what may overlap, a call with its sizes checks */
}

/* --- kernels ------------------------------------------------------------------------------------------------------ */

/* Compiles a graph that has dimensions, or adds it to an artifact. */
static opjit_status make_dynamic(cli_model *m, cli_dispatchable *d, const DML_GRAPH_DESC *graph,
                                 const DML_OPERATOR_DESC *const *descs, opjit_artifact *artifact,
                                 const opjit_compile_options *options)
{
    opjit_error *const error = &m->report.error;
    opjit_dim dims[OPJIT_MAX_DIMS];
    if (artifact == NULL)
        return opjit_compile_dynamic_desc(m->context, m->dims, m->dim_count, graph, descs, options, &d->kernel, error);
    memcpy(dims, m->dims, sizeof dims);
    for (uint32_t i = 0; i < m->dim_count; i++)
        if ((m->dims_set >> i & 1) != 0) /* of just this size */
            dims[i].lo = dims[i].hi = dims[i].typical = m->dim_sizes[i];
    return opjit_artifact_add_dynamic_desc(artifact, dims, m->dim_count, graph, descs, options, error);
}

static opjit_status compile_graph(cli_model *m, cli_dispatchable *d, opjit_artifact *artifact,
                                  const opjit_compile_options *options)
{
    const DML_OPERATOR_DESC **const descs = ARENA_ARRAY(&m->arena, const DML_OPERATOR_DESC *, d->graph->count);
    if (descs == NULL)
        return opjit_cli_no_memory(m, d->json);
    for (uint32_t i = 0; i < d->graph->count; i++)
        if (d->graph->operators[i].op != NULL)
            descs[i] = &d->graph->operators[i].symbolic;
    return opjit_cli_at_dispatchable(m, d, make_dynamic(m, d, &d->graph->desc, descs, artifact, options));
}

/* A graph of the operator alone, whose inputs and outputs are those tensors that are there. */
static opjit_status compile_operator(cli_model *m, cli_dispatchable *d, opjit_artifact *artifact,
                                     const opjit_compile_options *options)
{
    const cli_operator *const op = &d->own;
    const size_t all = (size_t)op->input_count + op->output_count;
    DML_GRAPH_EDGE_DESC *const edges = ARENA_ARRAY(&m->arena, DML_GRAPH_EDGE_DESC, all);
    DML_INPUT_GRAPH_EDGE_DESC *const inputs = ARENA_ARRAY(&m->arena, DML_INPUT_GRAPH_EDGE_DESC, all);
    DML_OUTPUT_GRAPH_EDGE_DESC *const outputs = ARENA_ARRAY(&m->arena, DML_OUTPUT_GRAPH_EDGE_DESC, all);
    const DML_OPERATOR_GRAPH_NODE_DESC node = { op->op, d->json->key };
    const DML_GRAPH_NODE_DESC nodes[] = { { DML_GRAPH_NODE_TYPE_OPERATOR, &node } };
    const DML_OPERATOR_DESC *const desc = &op->symbolic;
    DML_GRAPH_DESC graph = { .NodeCount = 1, .Nodes = nodes };
    if (edges == NULL || inputs == NULL || outputs == NULL)
        return opjit_cli_no_memory(m, d->json);
    for (uint32_t i = 0; i < op->input_count; i++)
        if (op->inputs[i].rank != 0) {
            inputs[i] = (DML_INPUT_GRAPH_EDGE_DESC){ graph.InputCount, 0, i, op->inputs[i].name };
            edges[graph.InputCount++] = (DML_GRAPH_EDGE_DESC){ DML_GRAPH_EDGE_TYPE_INPUT, &inputs[i] };
        }
    for (uint32_t i = 0; i < op->output_count; i++)
        if (op->outputs[i].rank != 0) {
            outputs[i] = (DML_OUTPUT_GRAPH_EDGE_DESC){ 0, i, graph.OutputCount, op->outputs[i].name };
            edges[graph.InputCount + graph.OutputCount++] =
                (DML_GRAPH_EDGE_DESC){ DML_GRAPH_EDGE_TYPE_OUTPUT, &outputs[i] };
        }
    graph.InputEdgeCount = graph.InputCount;
    graph.InputEdges = edges;
    graph.OutputEdgeCount = graph.OutputCount;
    graph.OutputEdges = edges + graph.InputCount;
    return opjit_cli_at(m, d->json, make_dynamic(m, d, &graph, &desc, artifact, options));
}

opjit_status opjit_cli_add_dynamic(cli_model *m, cli_dispatchable *d, opjit_artifact *artifact,
                                   const opjit_compile_options *options)
{
    return d->graph != NULL ? compile_graph(m, d, artifact, options) : compile_operator(m, d, artifact, options);
}

opjit_status opjit_cli_compile(cli_model *m, cli_dispatchable *d, const opjit_compile_options *options)
{
    opjit_error *const error = &m->report.error;
    if (d->uses_dims)
        return opjit_cli_add_dynamic(m, d, NULL, options);
    const opjit_status status = d->graph != NULL
                                    ? opjit_compile_graph(m->context, &d->graph->desc, options, &d->kernel, error)
                                    : opjit_compile_operator(m->context, d->own.op, options, &d->kernel, error);
    return opjit_cli_at_dispatchable(m, d, status);
}

opjit_status opjit_cli_model_compile(cli_model *m, const opjit_compile_options *options, cli_progress_fn progress,
                                     void *user)
{
    for (uint32_t i = 0; i < m->dispatchable_count; i++) {
        cli_dispatchable *const d = &m->dispatchables[i];
        if (progress != NULL)
            progress(user, i, m->dispatchable_count, d->json->key);
        TRY(opjit_cli_compile(m, d, options));
    }
    for (uint32_t i = 0; i < m->command_count; i++) {
        if (m->commands[i].kind == CLI_DISPATCH)
            TRY(make_bindings(m, &m->commands[i]));
    }
    return OPJIT_OK;
}
