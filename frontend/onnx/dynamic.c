/* SPDX-License-Identifier: Apache-2.0 */
/* dynamic.c - opjit/model.h: kernels for many sizes, out of readings of the model for some of them. */
#include "frontend/onnx/model.h"

/* A dimension that only a size in the options reads, as of "height=32 * h": by that size of an input. */
static opjit_status find_read(const opjit_model *model, const char *name, uint64_t *out, opjit_error *error)
{
    const opjit_model_options *const o = &model->options;
    const wire_bytes own = { (const uint8_t *)name, strlen(name) };
    wire_bytes of, text;

    for (uint32_t k = 0; k < o->dim_count; k++)
        for (uint32_t i = 0; i < model->input_count; i++)
            for (uint32_t d = 0; d < model->inputs[i].rank; d++) {
                if (!opjit_onnx_split_dim(o->dims[k].name, &of, &text) || !opjit_onnx_reads_dim(text, own) ||
                    !wire_same(model->inputs[i].record->dims[d].name, of))
                    continue;
                if (opjit_onnx_solve_size(text, o, name, model->inputs[i].dims[d], out))
                    return OPJIT_OK;
                return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                                       "{input} {\"%.80s\"}: size %u is %llu, which " ONNX_NAME " never is",
                                       model->inputs[i].name, d, (unsigned long long)model->inputs[i].dims[d],
                                       ONNX_SHOW(text));
            }
    return opjit_onnx_check_dim(&(onnx_graph){ .input_count = 0 }, &(opjit_model_options){ .dim_count = 0 }, name,
                                error);
}

opjit_status opjit_model_get_dim(const opjit_model *model, const char *name, uint64_t *out_size, opjit_error *error)
{
    opjit_rt_error_clear(error);
    if (out_size != NULL)
        *out_size = 0;
    if (model == NULL || name == NULL || out_size == NULL)
        return opjit_rt_refuse_null(error, model == NULL ? "model" : name == NULL ? "name" : "out_size");
    uint64_t step;
    for (uint32_t i = 0; i < model->input_count; i++)
        for (uint32_t d = 0; d < model->inputs[i].rank; d++) {
            const uint64_t size = model->inputs[i].dims[d];
            if (!opjit_onnx_dim_is(name, model->inputs[i].record->dims[d].name, &step))
                continue;
            if (size % step != 0)
                return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                                       "{input} {\"%.80s\"}: size %u is %llu, must be a multiple of %llu (%.80s)",
                                       model->inputs[i].name, d, (unsigned long long)size, (unsigned long long)step,
                                       name);
            *out_size = size / step;
            return OPJIT_OK;
        }
    return find_read(model, name, out_size, error);
}

typedef struct reader {
    const opjit_model *model;
    const opjit_dim *dims;
    uint32_t dim_count;
    opjit_model *sample; /* the last one */
} reader;

/* An opjit_build_fn: the model with these sizes. */
static opjit_status read_sample(void *user, const uint64_t *sizes, opjit_graph **out_graph, opjit_error *error)
{
    reader *const r = user;
    const onnx_sizes sample = { r->dims, sizes, r->dim_count };
    opjit_model_close(r->sample);
    TRY(opjit_onnx_read_apart(r->model, &sample, &r->sample, error));
    *out_graph = r->sample->graph;
    return OPJIT_OK;
}

static void number_as(onnx_model_port *ports, const onnx_model_port *others, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        ports[i].binding = others[i].binding;
}

opjit_status opjit_model_compile_dynamic(opjit_model *model, const opjit_dim *dims, uint32_t dim_count,
                                         const opjit_compile_options *options, opjit_kernel **out_kernel,
                                         opjit_error *error)
{
    opjit_compile_options own = OPJIT_COMPILE_OPTIONS_INIT;
    reader r = { model, dims, dim_count, NULL };
    opjit_model *whole;
    opjit_rt_error_clear(error);
    if (out_kernel != NULL)
        *out_kernel = NULL;
    if (model == NULL || dims == NULL)
        return opjit_rt_refuse_null(error, model == NULL ? "model" : "dims");
    TRY(opjit_onnx_whole(model, &whole, error));
    for (uint32_t i = 0; i < dim_count && i < OPJIT_MAX_DIMS; i++)
        TRY(opjit_onnx_check_dim(whole->records.graph, &model->options, dims[i].name, error));
    TRY(opjit_onnx_borrowing(options, &own, error));
    const opjit_status status =
        opjit_graph_compile_dynamic(model->context, dims, dim_count, read_sample, &r, &own, out_kernel, error);
    for (uint32_t i = 0; i < dim_count && status == OPJIT_OK; i++)
        if (dims[i].lo == 0) { /* the last reading is for the largest sizes, for which no input is empty */
            number_as(model->inputs, r.sample->inputs, model->input_count);
            number_as(model->outputs, r.sample->outputs, model->output_count);
        }
    if (r.sample != NULL) { /* its weights are the kernel's */
        r.sample->samples = model->samples;
        model->samples = r.sample;
    }
    return status;
}

/* An opjit_describe_fn: the same as a description. */
static opjit_status describe_sample(void *user, const uint64_t *sizes, const DML_GRAPH_DESC **out, opjit_error *error)
{
    opjit_graph *graph = NULL;

    TRY(read_sample(user, sizes, &graph, error));
    return opjit_graph_get_desc(graph, out, error);
}

opjit_status opjit_model_add_dynamic(opjit_model *model, opjit_artifact *artifact, const opjit_dim *dims,
                                     uint32_t dim_count, const opjit_compile_options *options, opjit_error *error)
{
    reader r = { model, dims, dim_count, NULL };
    opjit_model *whole;
    opjit_rt_error_clear(error);
    if (model == NULL || dims == NULL)
        return opjit_rt_refuse_null(error, model == NULL ? "model" : "dims");
    TRY(opjit_onnx_whole(model, &whole, error));
    for (uint32_t i = 0; i < dim_count && i < OPJIT_MAX_DIMS; i++)
        TRY(opjit_onnx_check_dim(whole->records.graph, &model->options, dims[i].name, error));
    const opjit_status status =
        opjit_artifact_add_dynamic(artifact, dims, dim_count, describe_sample, &r, options, error);
    opjit_model_close(r.sample); /* what is added was copied */
    return status;
}
