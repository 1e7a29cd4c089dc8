/* SPDX-License-Identifier: Apache-2.0 */
/* inputs.c - inputs of a model, with sizes as the model and its reader's options say them. */
#include "frontend/onnx/model.h"

/* --- inputs ------------------------------------------------------------------------------------------------------- */

static const opjit_model_input *given_input(const opjit_model_options *o, wire_bytes name)
{
    for (uint32_t i = 0; i < o->input_count; i++)
        if (o->inputs[i].name != NULL && wire_is(name, o->inputs[i].name))
            return &o->inputs[i];
    return NULL;
}

/* Dimension d of an input is open; hosts know that by the value "unknown", and say how sizes are given to them. */
static opjit_status refuse_open(const onnx_port *p, uint32_t d, opjit_error *error)
{
    const wire_bytes name = p->dims[d].name;
    opjit_status status;
    if (name.size != 0)
        status = opjit_rt_refuse(error, OPJIT_UNSUPPORTED,
                                 "{input} {\"" ONNX_NAME "\"}: dimension \"" ONNX_NAME
                                 "\" is not known: give its size{!unknown}",
                                 ONNX_SHOW(p->name), ONNX_SHOW(name));
    else
        status = opjit_rt_refuse(error, OPJIT_UNSUPPORTED,
                                 "{input} {\"" ONNX_NAME
                                 "\"}: size %u is not known: give the input's sizes{!unknown}",
                                 ONNX_SHOW(p->name), d);
    return opjit_rt_place(error, status, NULL, NULL, (int32_t)d);
}

/* Dimension d of an input is `text`, as options say, and that is no size. */
static opjit_status refuse_text(const onnx_port *p, uint32_t d, wire_bytes text, opjit_error *error)
{
    const opjit_status status =
        opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                        "{input} {\"" ONNX_NAME "\"}: dimension \"" ONNX_NAME "\" is \"" ONNX_NAME
                        "\", must be a size of sums, differences and products of numbers and known dimensions",
                        ONNX_SHOW(p->name), ONNX_SHOW(p->dims[d].name), ONNX_SHOW(text));
    return opjit_rt_place(error, status, NULL, NULL, (int32_t)d);
}

/* Dimension d of an input. */
static opjit_status size_of(const onnx_port *p, uint32_t d, const opjit_model_options *o, const onnx_sizes *sample,
                            const opjit_model_input *given, uint64_t *out, opjit_error *error)
{
    const onnx_dim *const dim = &p->dims[d];
    bool known = dim->known, follows = false;
    wire_bytes wrong = { 0 };
    for (uint32_t i = 0; sample != NULL && i < sample->count; i++)
        if (opjit_onnx_dim_size(sample->dims[i].name, sample->sizes[i], dim->name, out))
            return OPJIT_OK;
    *out = dim->size;
    for (uint32_t i = 0; i < o->dim_count && dim->name.size != 0; i++) {
        wire_bytes name, text;
        if (opjit_onnx_split_dim(o->dims[i].name, &name, &text)) {
            follows = follows || (!known && wire_same(name, dim->name) && opjit_onnx_follow_size(text, o, sample, out));
            known = known || follows;
            wrong = wire_same(name, dim->name) ? text : wrong;
        } else if (opjit_onnx_dim_size(o->dims[i].name, o->dims[i].size, dim->name, out)) {
            known = true;
        }
    }
    follows = follows || (!known && dim->name.size != 0 && opjit_onnx_follow_size(dim->name, o, sample, out));
    known = known || follows;
    if (follows && sample != NULL) /* what is given is for one call */
        return OPJIT_OK;
    if (given != NULL && given->sizes != NULL) {
        if (known && given->sizes[d] != *out)
            return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                                   "{input} {\"" ONNX_NAME "\"}: size %u is %llu, must be %llu", ONNX_SHOW(p->name), d,
                                   (unsigned long long)given->sizes[d], (unsigned long long)*out);
        *out = given->sizes[d];
        known = true;
    }
    return known ? OPJIT_OK : wrong.data != NULL ? refuse_text(p, d, wrong, error) : refuse_open(p, d, error);
}

const char *opjit_onnx_port_name(opjit_model *model, wire_bytes text, opjit_error *error)
{
    const char *const name =
        opjit_rt_arena_string(&model->arena, (const char *)text.data, (size_t)(text.size > 4096 ? 4096 : text.size));
    if (name == NULL)
        opjit_rt_no_memory(error);
    return name;
}

/* An input without elements, which the graph has for other sizes: so that these have the same inputs. */
static void add_unread(opjit_model *model, onnx_model_port *in, DML_TENSOR_DATA_TYPE dtype, uint32_t *sizes)
{
    for (uint32_t d = 0; d < in->rank; d++)
        sizes[d] = sizes[d] == 0 ? 1 : sizes[d];
    (void)opjit_graph_input(model->graph, in->name, dtype, in->rank, sizes);
    in->binding = 0; /* found when the graph is whole */
}

/* The input's value: a constant of what is given, as if the file had it; or an input of the graph. */
static opjit_status find_value(opjit_model *model, onnx_import *m, onnx_model_port *in, const opjit_model_input *given,
                               uint32_t *sizes, onnx_value *v)
{
    const DML_TENSOR_DATA_TYPE dtype = opjit_onnx_stored_dtype(v->type);
    const uint64_t elements = opjit_onnx_elements_of(v), bytes = elements * opjit_rt_dtype_size(dtype);
    const bool is_given = given != NULL && given->value != NULL;
    if (is_given && given->bytes != bytes)
        return opjit_rt_refuse(m->error, OPJIT_INVALID_ARGUMENT,
                               "{input} {\"%.80s\"}: a value of %llu bytes, must be %llu", in->name,
                               (unsigned long long)given->bytes, (unsigned long long)bytes);
    if (is_given && (given->flags & OPJIT_MODEL_INPUT_OF_CALL) == 0) {
        onnx_tensor *const t = ARENA_NEW(m->arena, onnx_tensor);
        if (t == NULL)
            return opjit_rt_no_memory(m->error);
        *t = (onnx_tensor){ .type = v->type, .elements = elements, .raw = { given->value, bytes } };
        v->source = t;
    } else if (elements == 0) {
        v->data = ""; /* all of none */
        if (m->is_sample)
            add_unread(model, in, dtype, sizes);
    } else {
        const opjit_tensor brought =
            opjit_graph_input(model->graph, in->name, dtype, v->rank == 0 ? 1 : v->rank, sizes);
        in->binding = 0; /* found when the graph is whole */
        opjit_onnx_bring(m, in->name, brought, given);
        v->tensor = opjit_onnx_from_stored(m, brought, v->type);
    }
    return OPJIT_OK;
}

opjit_status opjit_onnx_add_input(opjit_model *model, onnx_import *m, const onnx_port *p, const opjit_model_options *o,
                                  const onnx_sizes *sample)
{
    const opjit_model_input *const given = given_input(o, p->name);
    onnx_model_port *const in = &model->inputs[model->input_count];
    onnx_value v = { .type = p->type, .rank = p->rank };
    uint32_t sizes[ONNX_RANK] = { 1 };
    const DML_TENSOR_DATA_TYPE dtype = opjit_onnx_stored_dtype(p->type);
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
        TRY(size_of(p, d, o, sample, given, &v.dims[d], m->error));
        if (v.dims[d] > UINT32_MAX)
            return opjit_rt_refuse(m->error, OPJIT_LIMIT,
                                   "{input} {\"" ONNX_NAME "\"}: size %u: %llu, must be at most 2^32 - 1",
                                   ONNX_SHOW(p->name), d, (unsigned long long)v.dims[d]);
        sizes[d] = (uint32_t)v.dims[d];
    }
    *in = (onnx_model_port){ opjit_onnx_port_name(model, p->name, m->error), p->type, v.rank, { 0 }, -1, p };
    memcpy(in->dims, v.dims, sizeof in->dims);
    model->input_count++;
    if (in->name == NULL)
        return m->error->status;
    TRY(find_value(model, m, in, given, sizes, &v));
    return opjit_onnx_define(m, p->name, &v);
}

opjit_status opjit_onnx_check_dim(const onnx_graph *g, const opjit_model_options *o, const char *name,
                                  opjit_error *error)
{
    wire_bytes own = { (const uint8_t *)name, name == NULL ? 0 : strlen(name) }, text, other;
    uint64_t step;
    for (uint32_t i = 0; i < o->dim_count; i++)
        if (opjit_onnx_split_dim(o->dims[i].name, &other, &text) && opjit_onnx_reads_dim(text, own))
            return OPJIT_OK;
    opjit_onnx_split_dim(name, &own, &text);
    for (uint32_t i = 0; i < g->input_count && name != NULL; i++)
        for (uint32_t d = 0; d < g->inputs[i].rank; d++)
            if (wire_same(g->inputs[i].dims[d].name, own) || opjit_onnx_dim_is(name, g->inputs[i].dims[d].name, &step))
                return OPJIT_OK;
    return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{!dims}no input of the model has a dimension \"%.80s\"",
                           name == NULL ? "" : name);
}

/* Refuses a name in the options that the model has not. */
opjit_status opjit_onnx_check_options(const onnx_graph *g, const opjit_model_options *o, opjit_error *error)
{
    for (uint32_t i = 0; i < o->input_count; i++) {
        bool found = false;
        for (uint32_t k = 0; k < g->input_count; k++)
            found = found || (o->inputs[i].name != NULL && wire_is(g->inputs[k].name, o->inputs[i].name));
        if (!found)
            return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{!inputs}the model has no input \"%.80s\"",
                                   o->inputs[i].name == NULL ? "" : o->inputs[i].name);
    }
    for (uint32_t i = 0; i < o->dim_count; i++)
        TRY(opjit_onnx_check_dim(g, o, o->dims[i].name, error));
    return OPJIT_OK;
}
