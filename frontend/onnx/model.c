/* SPDX-License-Identifier: Apache-2.0 */
/* model.c - opjit/model.h: a file, its inputs with their sizes, its nodes, its outputs. */
#include "frontend/onnx/model.h"

#define FLAGS (OPJIT_MODEL_NO_CACHE | OPJIT_MODEL_SAMPLE | OPJIT_MODEL_EMPTY_OUTPUTS)
enum { OPSET_MOST = 26 }; /* newest version of the default domain's operators that was read for this */

static const rt_struct options_struct = {
    "opjit_model_options", { RT_SIZE_TO(opjit_model_options, folder), RT_SIZE_TO(opjit_model_options, computing) }
};
RT_STRUCT_ENDS_WITH(opjit_model_options, computing);
static const rt_struct port_struct = { "opjit_model_port", { RT_SIZE_TO(opjit_model_port, reserved) } };
RT_STRUCT_ENDS_WITH(opjit_model_port, reserved);
static const rt_struct operator_struct = { "opjit_model_operator", { RT_SIZE_TO(opjit_model_operator, text) } };
RT_STRUCT_ENDS_WITH(opjit_model_operator, text);

/* --- outputs ------------------------------------------------------------------------------------------------------ */

/* may_be_empty: it may have no elements, such as the boxes of an empty picture. */
static opjit_status add_output(opjit_model *model, onnx_import *m, const onnx_port *p, bool may_be_empty)
{
    onnx_value *const v = opjit_onnx_lookup(m, p->name);
    onnx_model_port *const out = &model->outputs[model->output_count];
    if (v == NULL)
        return opjit_rt_refuse(m->error, OPJIT_INVALID_ARGUMENT, "{output} {\"" ONNX_NAME "\"} is made by no node",
                               ONNX_SHOW(p->name));
    const bool is_empty = may_be_empty && v->type < ONNX_SEQUENCE && opjit_onnx_elements_of(v) == 0;
    const opjit_tensor tensor = is_empty ? (opjit_tensor){ 0, 0 } : opjit_onnx_tensor(m, v);
    *out = (onnx_model_port){
        opjit_onnx_port_name(model, p->name, m->error), v->type, v->rank, { 0 }, is_empty ? -1 : 0, NULL
    };
    memcpy(out->dims, v->dims, sizeof out->dims);
    model->output_count++;
    if (m->error->status != OPJIT_OK) {
        opjit_rt_error_prefix(m->error, "output \"" ONNX_NAME "\"", ONNX_SHOW(p->name));
        return m->error->status;
    }
    if (!is_empty)
        (void)opjit_graph_output(model->graph, out->name, opjit_onnx_to_stored(m, tensor, v->type));
    return opjit_graph_status(model->graph, m->error);
}

/* Inputs that nothing reads have no binding: the kernel's others are counted, outputs follow them. */
static opjit_status number_bindings(opjit_model *model, opjit_error *error)
{
    bool *is_read, is_empty = true;
    uint32_t count;
    int32_t binding = 0;
    for (uint32_t i = 0; i < model->output_count; i++)
        is_empty = is_empty && model->outputs[i].binding < 0;
    for (uint32_t i = 0; i < model->input_count && is_empty; i++)
        model->inputs[i].binding = -1;
    if (is_empty && model->output_count != 0)
        return OPJIT_OK;
    TRY(opjit_onnx_find_read(model->graph, &model->arena, &is_read, &count, error));
    for (uint32_t i = 0, k = 0; i < model->input_count; i++) {
        if (model->inputs[i].binding < 0)
            continue;
        model->inputs[i].binding = is_read[k] ? binding++ : -1;
        k++;
    }
    if (model->computing.part != NULL) {
        const uint32_t carried = count - model->computing.input_count;
        TRY(opjit_onnx_list_carried(&model->computing, is_read + model->computing.input_count, carried, &model->arena,
                                    error));
        binding += (int32_t)model->computing.carried_count;
    }
    for (uint32_t i = 0; i < model->output_count; i++)
        model->outputs[i].binding = model->outputs[i].binding < 0 ? -1 : binding++;
    return OPJIT_OK;
}

/* --- the model ---------------------------------------------------------------------------------------------------- */

static opjit_status import_graph(opjit_model *model, onnx_import *m, const opjit_model_options *o,
                                 const onnx_sizes *sample)
{
    const onnx_graph *const g = model->records.graph;
    model->inputs = ARENA_ARRAY(&model->arena, onnx_model_port, (size_t)g->input_count + 1);
    model->outputs = ARENA_ARRAY(&model->arena, onnx_model_port, (size_t)g->output_count + 1);
    wire_bytes *const wanted = ARENA_ARRAY(&model->arena, wire_bytes, (size_t)g->output_count + 1);
    model->computing.inputs = ARENA_ARRAY(&model->arena, onnx_brought, (size_t)g->input_count + 1);
    m->scope = opjit_onnx_scope(m, NULL, (uint64_t)g->initializer_count + g->input_count +
                                             opjit_onnx_output_count(g->nodes, g->node_count));
    if (model->inputs == NULL || model->outputs == NULL || wanted == NULL || model->computing.inputs == NULL ||
        m->scope == NULL)
        return opjit_rt_no_memory(m->error);
    TRY(opjit_onnx_check_options(g, o, m->error));
    for (uint32_t i = 0; i < o->input_count; i++)
        if ((o->inputs[i].flags & OPJIT_MODEL_INPUT_OF_CALL) != 0 && sample == NULL)
            m->computing = &model->computing;
    m->compute = opjit_onnx_compute;
    m->carry = opjit_onnx_carry;
    model->computing.options = o->computing;
    model->computing.allocator = &model->core->allocator;
    TRY(opjit_onnx_first_part(m));
    TRY(opjit_onnx_initializers(m, g));
    for (uint32_t i = 0; i < g->input_count; i++)
        if (opjit_onnx_lookup(m, g->inputs[i].name) == NULL) /* else an initializer has its elements */
            TRY(opjit_onnx_add_input(model, m, &g->inputs[i], o, sample));
    for (uint32_t i = 0; i < g->output_count; i++)
        wanted[i] = g->outputs[i].name;
    TRY(opjit_onnx_nodes(m, g->nodes, g->node_count, wanted, g->output_count));
    TRY(opjit_onnx_next_part(m));
    model->graph = m->graph;
    const bool may_be_empty =
        m->computing != NULL || (sample == NULL && (o->flags & OPJIT_MODEL_EMPTY_OUTPUTS) != 0);
    for (uint32_t i = 0; i < g->output_count; i++)
        TRY(add_output(model, m, &g->outputs[i], may_be_empty));
    return number_bindings(model, m->error);
}

static opjit_status read_model(opjit_model *model, const opjit_model_options *o, const onnx_sizes *sample,
                               opjit_error *error)
{
    onnx_import m = { .context = model->context,
                      .arena = &model->arena,
                      .model = &model->records,
                      .files = &model->files,
                      .is_sample = sample != NULL || (o->flags & OPJIT_MODEL_SAMPLE) != 0,
                      .followed = opjit_onnx_followed,
                      .error = error };
    TRY(opjit_onnx_read(model->named.bytes, &model->arena, &model->records, error));
    m.opset = model->records.opset;
    if (m.opset == ONNX_OTHER_DOMAINS)
        m.opset = OPSET_MOST;
    if (m.opset < 1 || m.opset > OPSET_MOST)
        return opjit_rt_refuse(error, OPJIT_UNSUPPORTED, "{!model}operators of opset %lld: 1 to %d are taken",
                               (long long)m.opset, OPSET_MOST);
    TRY(opjit_onnx_functions(&m, &model->records));
    TRY(opjit_graph_create(model->context, &model->graph, error));
    m.graph = model->graph;
    return import_graph(model, &m, o, sample);
}

/* Nothing of it is read; NULL: no memory. */
static opjit_model *new_model(opjit_context *context, const wire_bytes *bytes, opjit_error *error)
{
    opjit_model *const model = opjit_rt_allocate(&context->core->allocator, sizeof *model, _Alignof(opjit_model));
    if (model == NULL) {
        opjit_rt_no_memory(error);
        return NULL;
    }
    memset(model, 0, sizeof *model);
    model->context = context;
    model->core = opjit_rt_core_retain(context->core);
    opjit_rt_arena_init(&model->arena, &model->core->allocator);
    model->files = (onnx_files){ .arena = &model->arena, .mapped = &model->core->mapped };
    model->named = (onnx_named){ .context = context, .options = &model->options, .bytes = *bytes,
                                 .files = &model->files };
    return model;
}

static const char *copy_text(opjit_model *model, const char *text, bool *good)
{
    const char *const copy = text == NULL ? NULL : opjit_rt_arena_string(&model->arena, text, strlen(text));
    *good = *good && (text == NULL || copy != NULL);
    return copy;
}

/* All but values, for readings with other sizes. */
static opjit_status copy_options(opjit_model *model, const opjit_model_options *o, opjit_error *error)
{
    opjit_model_dim *const dims = opjit_rt_arena_copy(&model->arena, o->dims, o->dim_count, sizeof *dims);
    opjit_model_input *const inputs = opjit_rt_arena_copy(&model->arena, o->inputs, o->input_count, sizeof *inputs);
    bool good = (dims != NULL || o->dim_count == 0) && (inputs != NULL || o->input_count == 0);
    model->options = *o;
    for (uint32_t i = 0; good && i < o->dim_count; i++)
        dims[i].name = copy_text(model, dims[i].name, &good);
    for (uint32_t i = 0; good && i < o->input_count; i++) {
        inputs[i].name = copy_text(model, inputs[i].name, &good);
        if (inputs[i].sizes != NULL)
            inputs[i].sizes = opjit_rt_arena_copy(&model->arena, inputs[i].sizes, inputs[i].rank, sizeof(uint64_t));
        good = good && (o->inputs[i].sizes == NULL || inputs[i].rank == 0 || inputs[i].sizes != NULL);
    }
    model->options.dims = dims;
    model->options.inputs = inputs;
    model->options.folder = copy_text(model, o->folder, &good);
    return good ? OPJIT_OK : opjit_rt_no_memory(error);
}

opjit_status opjit_onnx_read_apart(const opjit_model *model, const onnx_sizes *sample, opjit_model **out,
                               opjit_error *error)
{
    opjit_error own = { 0 };
    *out = new_model(model->context, &model->named.bytes, error);
    if (*out == NULL)
        return OPJIT_OUT_OF_MEMORY;
    (*out)->files.model = model->file;
    (*out)->files.folder = model->options.folder;
    (*out)->files.path = model->files.path;
    const opjit_status status = read_model(*out, &model->options, sample, &own);
    return status == OPJIT_OK ? OPJIT_OK : opjit_rt_error_copy(error, &own);
}

/* An fe_known's functions. */
static opjit_status make_graph(void *user, opjit_graph **out_graph, void **out_owner, opjit_error *error)
{
    opjit_model *apart;
    const opjit_status status = opjit_onnx_read_apart(user, NULL, &apart, error);
    *out_owner = apart;
    *out_graph = apart == NULL ? NULL : apart->graph;
    return status;
}

static void release_graph(void *owner)
{
    opjit_model_close(owner);
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
    if ((o.flags & ~FLAGS) != 0)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{opjit_model_options} {flags}: {%u}, must be 0 to %u",
                               o.flags, FLAGS);
    if ((o.dims == NULL && o.dim_count != 0) || (o.inputs == NULL && o.input_count != 0))
        return opjit_rt_refuse_null(error, o.dims == NULL && o.dim_count != 0 ? "dims" : "inputs");
    opjit_model *const model = new_model(context, &bytes, error);
    if (model == NULL)
        return OPJIT_OUT_OF_MEMORY;
    opjit_status status = copy_options(model, &o, error);
    if (status == OPJIT_OK && path != NULL)
        status = opjit_onnx_map(path, &model->file, &model->named.stamp, error);
    if (path != NULL) {
        model->named.path = opjit_rt_arena_string(&model->arena, path, strlen(path));
        model->named.bytes = model->file;
        model->mapped = (rt_mapped){ NULL, (void *)(uintptr_t)model->file.data, (size_t)model->file.size };
        opjit_rt_mapped_add(&model->core->mapped, &model->mapped);
        if (o.folder == NULL) {
            model->options.folder = opjit_onnx_folder(&model->arena, path);
            model->files.path = model->named.path;
        }
    }
    model->files.model = model->file;
    model->files.folder = model->options.folder;
    const bool is_stored = (o.flags & ~OPJIT_MODEL_EMPTY_OUTPUTS) == 0;
    model->stored.is_done = !is_stored;
    model->stored.known.make = make_graph;
    model->stored.known.release = release_graph;
    model->stored.known.user = model;
    if (status == OPJIT_OK && !(is_stored && opjit_onnx_recall(model)))
        status = read_model(model, &model->options, NULL, error);
    model->options.computing = NULL; /* the caller's */
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
    for (opjit_model *s = model->samples, *next; s != NULL; s = next) {
        next = s->samples;
        s->samples = NULL;
        opjit_model_close(s);
    }
    opjit_onnx_close_parts(&model->computing, model->graph);
    opjit_graph_destroy(model->graph);
    opjit_onnx_files_close(&model->files);
    opjit_rt_disk_unmap(&model->stored.map);
    opjit_rt_mapped_remove(&core->mapped, &model->mapped);
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

static opjit_status get_port(const onnx_model_port *ports, uint32_t count, uint32_t index, opjit_model_port *out,
                             opjit_error *error)
{
    opjit_rt_error_clear(error);
    if (out == NULL)
        return opjit_rt_refuse_null(error, "out_port");
    if (index >= count)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{opjit_model} {index}: {%u}, must be below %u", index,
                               count);
    opjit_model_port full = OPJIT_MODEL_PORT_INIT;
    full.dtype = opjit_onnx_stored_dtype(ports[index].type);
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

opjit_status opjit_onnx_whole(opjit_model *model, opjit_model **out, opjit_error *error)
{
    *out = model->graph != NULL ? model : model->whole;
    if (*out != NULL)
        return OPJIT_OK;
    const opjit_status status = opjit_onnx_read_apart(model, NULL, out, error);
    if (status != OPJIT_OK) {
        opjit_model_close(*out);
        return status;
    }
    model->whole = *out;
    model->whole->samples = model->samples;
    model->samples = model->whole;
    return OPJIT_OK;
}

opjit_graph *opjit_model_graph(opjit_model *model)
{
    opjit_error error;
    opjit_model *whole;
    opjit_rt_error_clear(&error);
    if (model == NULL || opjit_onnx_whole(model, &whole, &error) != OPJIT_OK)
        return NULL;
    model->stored.is_found = model->stored.is_known = false; /* the host may add to it */
    model->stored.is_done = true;
    return whole->graph;
}

opjit_status opjit_onnx_borrowing(const opjit_compile_options *options, opjit_compile_options *out, opjit_error *error)
{
    if (options != NULL)
        TRY(opjit_fe_options_copy(options, out, error));
    out->struct_size = sizeof *out;
    out->flags |= OPJIT_COMPILE_BORROW_CONSTANTS;
    return OPJIT_OK;
}

opjit_status opjit_model_compile(opjit_model *model, const opjit_compile_options *options, opjit_kernel **out_kernel,
                                 opjit_error *error)
{
    opjit_compile_options own = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_model *whole;
    opjit_rt_error_clear(error);
    if (model == NULL)
        return opjit_rt_refuse_null(error, "model");
    if (out_kernel == NULL)
        return opjit_rt_refuse_null(error, "out_kernel");
    *out_kernel = NULL;
    TRY(opjit_onnx_borrowing(options, &own, error));
    if (model->stored.is_found) {
        const opjit_status status = opjit_fe_compile_known(model->context, &model->stored.known, &own, out_kernel,
                                                           error);
        if (status != OPJIT_NOT_FOUND)
            return status;
    }
    TRY(opjit_onnx_whole(model, &whole, error));
    TRY(opjit_graph_compile(whole->graph, &own, out_kernel, error));
    if ((own.flags & (OPJIT_COMPILE_NO_CACHE | OPJIT_COMPILE_INTERPRET)) == 0 && own.late_count == 0) {
        opjit_onnx_store(model);
        if (model->stored.is_known)
            opjit_fe_store_kept(model->core, model->stored.known.identity, *out_kernel);
    }
    return OPJIT_OK;
}

uint32_t opjit_model_computed_count(const opjit_model *model)
{
    return model == NULL ? 0 : model->computing.count;
}

opjit_status opjit_model_compute(opjit_model *model, opjit_error *error)
{
    opjit_rt_error_clear(error);
    return model == NULL ? opjit_rt_refuse_null(error, "model") : opjit_onnx_compute_again(&model->computing, error);
}

uint32_t opjit_model_carried_count(const opjit_model *model)
{
    return model == NULL ? 0 : model->computing.carried_count;
}

opjit_status opjit_model_get_carried(const opjit_model *model, uint32_t index, opjit_binding *out_binding,
                                     opjit_error *error)
{
    opjit_rt_error_clear(error);
    if (model == NULL || out_binding == NULL)
        return opjit_rt_refuse_null(error, model == NULL ? "model" : "out_binding");
    if (index >= model->computing.carried_count)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                               "{opjit_model_get_carried} {index}: {%u}, must be below %u", index,
                               model->computing.carried_count);
    *out_binding = model->computing.carried[index];
    return OPJIT_OK;
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
