/* SPDX-License-Identifier: Apache-2.0 */
/* kernel.c - a model's bytes with given sizes become a kernel, and what a call needs to know of it. */
#include <stdlib.h>
#include <string.h>

#include "frontend/hosts/onnxruntime/provider.h"

void opjit_ort_release_entry(entry *e)
{
    if (e == NULL || atomic_fetch_sub(&e->users, 1) != 1)
        return;
    opjit_kernel_release(e->kernel);
    opjit_model_close(e->model);
    free(e->shapes);
    free(e->inputs);
    free(e->outputs);
    free(e);
}

typedef opjit_status (*get_port)(const opjit_model *, uint32_t, opjit_model_port *, opjit_error *);

static opjit_status read_ports(const opjit_model *model, uint32_t count, get_port get, port *out, opjit_error *error)
{
    for (uint32_t i = 0; i < count; i++) {
        opjit_model_port of = OPJIT_MODEL_PORT_INIT;
        const opjit_status status = get(model, i, &of, error);
        if (status != OPJIT_OK)
            return status;
        out[i] = (port){ .binding = of.binding, .sizes = { .rank = of.rank } };
        memcpy(out[i].sizes.sizes, of.sizes, sizeof of.sizes);
    }
    return OPJIT_OK;
}

static opjit_status no_memory(opjit_error *error)
{
    *error = (opjit_error){ .status = OPJIT_OUT_OF_MEMORY, .message = "there is no memory", .node = -1, .index = -1 };
    return OPJIT_OUT_OF_MEMORY;
}

/* Reads the bytes with these sizes into e->model. */
static opjit_status read_model(const provider *p, const bytes *model, const char *const *names, entry *e,
                               opjit_error *error)
{
    opjit_model_options options = OPJIT_MODEL_OPTIONS_INIT;
    opjit_model_input *const inputs = calloc((size_t)e->input_count + 1, sizeof *inputs);
    if (inputs == NULL)
        return no_memory(error);
    for (uint32_t i = 0; i < e->input_count; i++)
        inputs[i] = (opjit_model_input){ .name = names[i], .sizes = e->shapes[i].sizes, .rank = e->shapes[i].rank };
    options.inputs = inputs;
    options.input_count = e->input_count;
    options.flags = OPJIT_MODEL_EMPTY_OUTPUTS;
    const opjit_status status = opjit_model_read(p->context, model->data, model->size, &options, &e->model, error);
    free(inputs);
    return status;
}

/* Compiles e->model, its stages on all cores, or loads the image. */
static opjit_status compile(const provider *p, entry *e, const image *from, opjit_error *error)
{
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    opjit_pool *pool = NULL;
    options.level = p->options.level;
    if (opjit_pool_create(NULL, 0, &pool, NULL) == OPJIT_OK)
        options.executor = opjit_pool_executor(pool);
    opjit_status status;
    if (from == NULL) {
        status = opjit_model_compile(e->model, &options, &e->kernel, error);
    } else {
        options.level = from->level;
        options.target = from->target;
        options.flags = OPJIT_COMPILE_BORROW_CONSTANTS; /* as opjit_model_compile does */
        status = opjit_graph_load(opjit_model_graph(e->model), &options, from->data, from->bytes, &e->kernel, error);
    }
    opjit_pool_destroy(pool);
    if (status == OPJIT_OK)
        status = opjit_kernel_get_info(e->kernel, &info, error);
    if (status != OPJIT_OK)
        return status;
    e->binding_count = info.inputs + info.outputs;
    e->workspace_bytes = info.workspace_bytes;
    e->scratch_bytes = info.meta->scratch_size;
    return OPJIT_OK;
}

/* Whether there is anything to compute. */
static bool has_elements(const entry *e)
{
    for (uint32_t i = 0; i < e->output_count; i++)
        if (e->outputs[i].binding >= 0)
            return true;
    return false;
}

opjit_status opjit_ort_make(const provider *p, const bytes *model, const char *const *names, const shape *shapes,
                            uint32_t input_count, bool only_read, const image *from, entry **out, opjit_error *error)
{
    entry *const e = calloc(1, sizeof *e);
    *out = NULL;
    if (e == NULL)
        return no_memory(error);
    atomic_init(&e->users, 1);
    e->input_count = input_count;
    e->shapes = calloc((size_t)input_count + 1, sizeof *e->shapes);
    e->inputs = calloc((size_t)input_count + 1, sizeof *e->inputs);
    opjit_status status = e->shapes == NULL || e->inputs == NULL ? no_memory(error) : OPJIT_OK;
    if (status == OPJIT_OK) {
        memcpy(e->shapes, shapes, input_count * sizeof *shapes);
        status = read_model(p, model, names, e, error);
    }
    if (status == OPJIT_OK) {
        e->output_count = opjit_model_output_count(e->model);
        e->outputs = calloc((size_t)e->output_count + 1, sizeof *e->outputs);
        status = e->outputs == NULL ? no_memory(error) : OPJIT_OK;
    }
    if (status == OPJIT_OK)
        status = read_ports(e->model, input_count, opjit_model_get_input, e->inputs, error);
    if (status == OPJIT_OK)
        status = read_ports(e->model, e->output_count, opjit_model_get_output, e->outputs, error);
    if (status == OPJIT_OK && !only_read && has_elements(e))
        status = compile(p, e, from, error);
    if (status != OPJIT_OK) {
        opjit_ort_release_entry(e);
        return status;
    }
    *out = e;
    return OPJIT_OK;
}
