/* SPDX-License-Identifier: Apache-2.0 */
/* model.c - opjit/model.h: a file, its inputs with their sizes, its nodes, its outputs. */
#include "frontend/onnx/files.h"
#include "frontend/frontend.h"

enum { OPSET_MOST = 26 }; /* newest version of the default domain's operators that was read for this */

typedef struct port {
    const char *name;
    int32_t type;
    uint32_t rank;
    uint64_t dims[ONNX_RANK];
    int32_t binding;
} port;

struct opjit_model {
    rt_core *core;
    rt_arena arena;
    wire_bytes file; /* mapped; or data NULL */
    onnx_files files;
    opjit_graph *graph;
    onnx_model records;
    port *inputs, *outputs;
    uint32_t input_count, output_count;
};

static const rt_struct options_struct = { "opjit_model_options", { RT_SIZE_TO(opjit_model_options, folder) } };
RT_STRUCT_ENDS_WITH(opjit_model_options, folder);
static const rt_struct port_struct = { "opjit_model_port", { RT_SIZE_TO(opjit_model_port, reserved) } };
RT_STRUCT_ENDS_WITH(opjit_model_port, reserved);
static const rt_struct operator_struct = { "opjit_model_operator", { RT_SIZE_TO(opjit_model_operator, text) } };
RT_STRUCT_ENDS_WITH(opjit_model_operator, text);

/* --- inputs ------------------------------------------------------------------------------------------------------- */

static const opjit_model_input *given_input(const opjit_model_options *o, wire_bytes name)
{
    for (uint32_t i = 0; i < o->input_count; i++)
        if (o->inputs[i].name != NULL && wire_is(name, o->inputs[i].name))
            return &o->inputs[i];
    return NULL;
}

/* Dimension d of an input. */
static opjit_status size_of(const onnx_port *p, uint32_t d, const opjit_model_options *o,
                            const opjit_model_input *given, uint64_t *out, opjit_error *error)
{
    const onnx_dim *const dim = &p->dims[d];
    bool known = dim->known;
    *out = dim->size;
    for (uint32_t i = 0; i < o->dim_count && dim->name.size != 0; i++)
        if (wire_is(dim->name, o->dims[i].name)) {
            *out = o->dims[i].size;
            known = true;
        }
    if (given != NULL && given->sizes != NULL) {
        if (known && given->sizes[d] != *out)
            return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                                   "{input} {\"" ONNX_NAME "\"}: size %u is %llu, must be %llu", ONNX_SHOW(p->name),
                                   d, (unsigned long long)given->sizes[d], (unsigned long long)*out);
        *out = given->sizes[d];
        known = true;
    }
    if (!known && dim->name.size != 0)
        return opjit_rt_refuse(error, OPJIT_UNSUPPORTED,
                               "{input} {\"" ONNX_NAME "\"}: dimension \"" ONNX_NAME
                               "\" is not known: give its size",
                               ONNX_SHOW(p->name), ONNX_SHOW(dim->name));
    if (!known)
        return opjit_rt_refuse(error, OPJIT_UNSUPPORTED,
                                  "{input} {\"" ONNX_NAME "\"}: size %u is not known: give the input's sizes",
                                  ONNX_SHOW(p->name), d);
    return OPJIT_OK;
}

static const char *name_of(opjit_model *model, wire_bytes text, opjit_error *error)
{
    const char *const name =
        opjit_rt_arena_string(&model->arena, (const char *)text.data, (size_t)(text.size > 4096 ? 4096 : text.size));
    if (name == NULL)
        opjit_rt_no_memory(error);
    return name;
}

static opjit_status add_input(opjit_model *model, onnx_import *m, const onnx_port *p, const opjit_model_options *o)
{
    const opjit_model_input *const given = given_input(o, p->name);
    port *const in = &model->inputs[model->input_count];
    onnx_value v = { .type = p->type, .rank = p->rank };
    uint32_t sizes[ONNX_RANK] = { 1 };
    const DML_TENSOR_DATA_TYPE dtype = opjit_onnx_dtype(p->type);
    if (dtype == DML_TENSOR_DATA_TYPE_UNKNOWN)
        return opjit_rt_refuse(m->error, OPJIT_UNSUPPORTED, "{input} {\"" ONNX_NAME "\"}: %s is not taken",
                               ONNX_SHOW(p->name),
                               p->type == 0 ? "what is no tensor" : opjit_onnx_type_name(p->type).text);
    if (given != NULL && given->dtype != DML_TENSOR_DATA_TYPE_UNKNOWN && given->dtype != dtype)
        return opjit_rt_refuse(m->error, OPJIT_INVALID_ARGUMENT, "{input} {\"" ONNX_NAME "\"}: %s given, must be %s",
                                  ONNX_SHOW(p->name), opjit_rt_dtype_name(given->dtype), opjit_rt_dtype_name(dtype));
    if (given != NULL && given->sizes != NULL) {
        if ((p->has_shape && given->rank != p->rank) || given->rank > ONNX_RANK)
            return opjit_rt_refuse(m->error, OPJIT_INVALID_ARGUMENT,
                                      "{input} {\"" ONNX_NAME "\"}: %u dimensions are given, must be %u",
                                      ONNX_SHOW(p->name), given->rank, p->has_shape ? p->rank : ONNX_RANK);
        v.rank = given->rank;
    } else if (!p->has_shape) {
        return opjit_rt_refuse(m->error, OPJIT_UNSUPPORTED,
                                  "{input} {\"" ONNX_NAME "\"}: the model does not say its sizes: give them",
                                  ONNX_SHOW(p->name));
    }
    for (uint32_t d = 0; d < v.rank; d++) {
        TRY(size_of(p, d, o, given, &v.dims[d], m->error));
        if (v.dims[d] > UINT32_MAX)
            return opjit_rt_refuse(m->error, OPJIT_LIMIT, "{input} {\"" ONNX_NAME "\"}: size %u is 2^32 or more",
                                      ONNX_SHOW(p->name), d);
        sizes[d] = (uint32_t)v.dims[d];
    }
    *in = (port){ name_of(model, p->name, m->error), p->type, v.rank, { 0 }, -1 };
    memcpy(in->dims, v.dims, sizeof in->dims);
    model->input_count++;
    if (in->name == NULL)
        return m->error->status;
    if (given != NULL && given->value != NULL) {
        const uint64_t bytes = opjit_onnx_elements_of(&v) * opjit_rt_dtype_size(dtype);
        if (given->bytes != bytes)
            return opjit_rt_refuse(m->error, OPJIT_INVALID_ARGUMENT,
                                      "{input} {\"" ONNX_NAME "\"}: a value of %llu bytes, must be %llu",
                                      ONNX_SHOW(p->name), (unsigned long long)given->bytes, (unsigned long long)bytes);
        v.data = given->value;
    } else if (opjit_onnx_elements_of(&v) == 0) {
        v.data = ""; /* all of none */
    } else {
        v.tensor = opjit_graph_input(model->graph, in->name, dtype, v.rank == 0 ? 1 : v.rank, sizes);
        in->binding = 0; /* found when the graph is whole */
    }
    return opjit_onnx_define(m, p->name, &v);
}

/* Refuses a name in the options that the model has not. */
static opjit_status check_options(const onnx_graph *g, const opjit_model_options *o, opjit_error *error)
{
    for (uint32_t i = 0; i < o->input_count; i++) {
        bool found = false;
        for (uint32_t k = 0; k < g->input_count; k++)
            found = found || (o->inputs[i].name != NULL && wire_is(g->inputs[k].name, o->inputs[i].name));
        if (!found)
            return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{!inputs}the model has no input \"%.80s\"",
                                      o->inputs[i].name == NULL ? "" : o->inputs[i].name);
    }
    for (uint32_t i = 0; i < o->dim_count; i++) {
        bool found = false;
        for (uint32_t k = 0; k < g->input_count && o->dims[i].name != NULL; k++)
            for (uint32_t d = 0; d < g->inputs[k].rank; d++)
                found = found || wire_is(g->inputs[k].dims[d].name, o->dims[i].name);
        if (!found)
            return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                                   "{!dims}no input of the model has a dimension \"%.80s\"",
                                      o->dims[i].name == NULL ? "" : o->dims[i].name);
    }
    return OPJIT_OK;
}

/* --- outputs ------------------------------------------------------------------------------------------------------ */

static opjit_status add_output(opjit_model *model, onnx_import *m, const onnx_port *p)
{
    onnx_value *const v = opjit_onnx_lookup(m, p->name);
    port *const out = &model->outputs[model->output_count];
    if (v == NULL)
        return opjit_rt_refuse(m->error, OPJIT_INVALID_ARGUMENT, "{output} {\"" ONNX_NAME "\"} is made by no node",
                                  ONNX_SHOW(p->name));
    const opjit_tensor tensor = opjit_onnx_tensor(m, v);
    *out = (port){ name_of(model, p->name, m->error), v->type, v->rank, { 0 }, (int32_t)model->output_count };
    memcpy(out->dims, v->dims, sizeof out->dims);
    model->output_count++;
    if (m->error->status != OPJIT_OK) {
        opjit_rt_error_prefix(m->error, "output \"" ONNX_NAME "\"", ONNX_SHOW(p->name));
        return m->error->status;
    }
    (void)opjit_graph_output(model->graph, out->name, tensor);
    return opjit_graph_status(model->graph, m->error);
}

/* Inputs that nothing reads have no binding: the kernel's others are counted, outputs follow them. */
static opjit_status number_bindings(opjit_model *model, opjit_error *error)
{
    const DML_GRAPH_DESC *desc;
    int32_t binding = 0;
    TRY(opjit_graph_get_desc(model->graph, &desc, error));
    bool *const is_read = ARENA_ARRAY(&model->arena, bool, (size_t)desc->InputCount + 1);
    if (is_read == NULL)
        return opjit_rt_no_memory(error);
    for (uint32_t i = 0; i < desc->InputEdgeCount; i++)
        is_read[((const DML_INPUT_GRAPH_EDGE_DESC *)desc->InputEdges[i].Desc)->GraphInputIndex] = true;
    for (uint32_t i = 0, k = 0; i < model->input_count; i++) {
        if (model->inputs[i].binding < 0)
            continue;
        model->inputs[i].binding = is_read[k] ? binding++ : -1;
        k++;
    }
    for (uint32_t i = 0; i < model->output_count; i++)
        model->outputs[i].binding = binding++;
    return OPJIT_OK;
}

/* --- the model ---------------------------------------------------------------------------------------------------- */

static opjit_status import_graph(opjit_model *model, onnx_import *m, const opjit_model_options *o)
{
    const onnx_graph *const g = model->records.graph;
    model->inputs = ARENA_ARRAY(&model->arena, port, (size_t)g->input_count + 1);
    model->outputs = ARENA_ARRAY(&model->arena, port, (size_t)g->output_count + 1);
    wire_bytes *const wanted = ARENA_ARRAY(&model->arena, wire_bytes, (size_t)g->output_count + 1);
    m->scope = opjit_onnx_scope(m, NULL);
    if (model->inputs == NULL || model->outputs == NULL || wanted == NULL || m->scope == NULL)
        return opjit_rt_no_memory(m->error);
    TRY(check_options(g, o, m->error));
    TRY(opjit_onnx_initializers(m, g));
    for (uint32_t i = 0; i < g->input_count; i++)
        if (opjit_onnx_lookup(m, g->inputs[i].name) == NULL) /* else an initializer has its elements */
            TRY(add_input(model, m, &g->inputs[i], o));
    for (uint32_t i = 0; i < g->output_count; i++)
        wanted[i] = g->outputs[i].name;
    TRY(opjit_onnx_nodes(m, g->nodes, g->node_count, wanted, g->output_count));
    for (uint32_t i = 0; i < g->output_count; i++)
        TRY(add_output(model, m, &g->outputs[i]));
    return number_bindings(model, m->error);
}

static opjit_status read_model(opjit_model *model, opjit_context *context, wire_bytes bytes,
                               const opjit_model_options *o, opjit_error *error)
{
    onnx_import m = { .context = context, .arena = &model->arena, .model = &model->records, .files = &model->files,
                      .error = error };
    TRY(opjit_onnx_read(bytes, &model->arena, &model->records, error));
    m.opset = model->records.opset;
    if (m.opset < 1 || m.opset > OPSET_MOST)
        return opjit_rt_refuse(error, OPJIT_UNSUPPORTED, "{!model}operators of opset %lld: 1 to %d are taken",
                                  (long long)m.opset, OPSET_MOST);
    TRY(opjit_onnx_functions(&m, &model->records));
    TRY(opjit_graph_create(context, &model->graph, error));
    m.graph = model->graph;
    return import_graph(model, &m, o);
}

/* path NULL: the bytes are the caller's. */
static opjit_status open_model(opjit_context *context, const char *path, wire_bytes bytes,
                               const opjit_model_options *options, opjit_model **out, opjit_error *error)
{
    opjit_model_options o = OPJIT_MODEL_OPTIONS_INIT;
    opjit_error own;
    opjit_rt_error_clear(error);
    if (error == NULL)
        error = &own;
    opjit_rt_error_clear(error);
    *out = NULL;
    if (context == NULL)
        return opjit_rt_refuse_null(error, "context");
    if (options != NULL)
        TRY(opjit_rt_struct_read(&options_struct, &o, options, error));
    if (o.flags != 0)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{opjit_model_options} {flags}: {%u}, must be 0",
                               o.flags);
    if ((o.dims == NULL && o.dim_count != 0) || (o.inputs == NULL && o.input_count != 0))
        return opjit_rt_refuse_null(error, o.dims == NULL && o.dim_count != 0 ? "dims" : "inputs");
    opjit_model *const model = opjit_rt_allocate(&context->core->allocator, sizeof *model, _Alignof(opjit_model));
    if (model == NULL)
        return opjit_rt_no_memory(error);
    memset(model, 0, sizeof *model);
    model->core = opjit_rt_core_retain(context->core);
    opjit_rt_arena_init(&model->arena, &model->core->allocator);
    model->files = (onnx_files){ .arena = &model->arena, .folder = o.folder };
    opjit_status status = path == NULL ? OPJIT_OK : opjit_onnx_map(path, &model->file, error);
    model->files.model = model->file;
    if (path != NULL && o.folder == NULL)
        model->files.folder = opjit_onnx_folder(&model->arena, path);
    if (status == OPJIT_OK)
        status = read_model(model, context, path == NULL ? bytes : model->file, &o, error);
    if (status != OPJIT_OK) {
        opjit_model_close(model);
        return status;
    }
    *out = model;
    return OPJIT_OK;
}

opjit_status opjit_model_open(opjit_context *context, const char *path, const opjit_model_options *options,
                              opjit_model **out_model, opjit_error *error)
{
    if (out_model == NULL || path == NULL)
        return opjit_rt_refuse_null(error, path == NULL ? "path" : "out_model");
    return open_model(context, path, (wire_bytes){ NULL, 0 }, options, out_model, error);
}

opjit_status opjit_model_read(opjit_context *context, const void *data, uint64_t bytes,
                              const opjit_model_options *options, opjit_model **out_model, opjit_error *error)
{
    if (out_model == NULL || data == NULL)
        return opjit_rt_refuse_null(error, data == NULL ? "data" : "out_model");
    return open_model(context, NULL, (wire_bytes){ data, bytes }, options, out_model, error);
}

void opjit_model_close(opjit_model *model)
{
    if (model == NULL)
        return;
    rt_core *const core = model->core;
    opjit_graph_destroy(model->graph);
    opjit_onnx_files_close(&model->files);
    opjit_onnx_unmap(model->file);
    opjit_rt_arena_free(&model->arena);
    opjit_rt_release(&core->allocator, model, sizeof *model);
    opjit_rt_core_release(core);
}

/* --- what it is --------------------------------------------------------------------------------------------------- */

uint32_t opjit_model_input_count(const opjit_model *model)
{
    return model == NULL ? 0 : model->input_count;
}

uint32_t opjit_model_output_count(const opjit_model *model)
{
    return model == NULL ? 0 : model->output_count;
}

static opjit_status get_port(const port *ports, uint32_t count, uint32_t index, opjit_model_port *out,
                             opjit_error *error)
{
    opjit_rt_error_clear(error);
    if (out == NULL)
        return opjit_rt_refuse_null(error, "out_port");
    if (index >= count)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{opjit_model} {index}: {%u}, must be below %u", index,
                               count);
    opjit_model_port full = OPJIT_MODEL_PORT_INIT;
    full.dtype = opjit_onnx_dtype(ports[index].type);
    full.name = ports[index].name;
    full.rank = ports[index].rank;
    full.binding = ports[index].binding;
    full.is_bool = ports[index].type == ONNX_BOOL;
    memcpy(full.sizes, ports[index].dims, sizeof full.sizes);
    return opjit_rt_struct_write(&port_struct, out, &full, error);
}

opjit_status opjit_model_get_input(const opjit_model *model, uint32_t index, opjit_model_port *out_port,
                                   opjit_error *error)
{
    return model == NULL ? opjit_rt_refuse_null(error, "model")
                         : get_port(model->inputs, model->input_count, index, out_port, error);
}

opjit_status opjit_model_get_output(const opjit_model *model, uint32_t index, opjit_model_port *out_port,
                                    opjit_error *error)
{
    return model == NULL ? opjit_rt_refuse_null(error, "model")
                         : get_port(model->outputs, model->output_count, index, out_port, error);
}

opjit_graph *opjit_model_graph(opjit_model *model)
{
    return model == NULL ? NULL : model->graph;
}

opjit_status opjit_model_compile(opjit_model *model, const opjit_compile_options *options, opjit_kernel **out_kernel,
                                 opjit_error *error)
{
    opjit_compile_options own = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_rt_error_clear(error);
    if (model == NULL)
        return opjit_rt_refuse_null(error, "model");
    if (options != NULL)
        TRY(opjit_fe_options_copy(options, &own, error));
    own.struct_size = sizeof own;
    own.flags |= OPJIT_COMPILE_BORROW_CONSTANTS;
    return opjit_graph_compile(model->graph, &own, out_kernel, error);
}

opjit_status opjit_model_get_operator(uint32_t index, opjit_model_operator *out_operator, opjit_error *error)
{
    opjit_rt_error_clear(error);
    if (out_operator == NULL)
        return opjit_rt_refuse_null(error, "out_operator");
    if (index >= opjit_onnx_row_count)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                               "{opjit_model_get_operator} {index}: {%u}, must be below %u", index,
                               opjit_onnx_row_count);
    const onnx_row *const row = &opjit_onnx_rows[index];
    opjit_model_operator full = OPJIT_MODEL_OPERATOR_INIT;
    full.is_taken = row->make != NULL;
    full.domain = row->domain;
    full.name = row->name;
    full.text = row->why == NULL ? "" : row->why;
    return opjit_rt_struct_write(&operator_struct, out_operator, &full, error);
}
