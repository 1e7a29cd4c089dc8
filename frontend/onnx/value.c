/* SPDX-License-Identifier: Apache-2.0 */
/* value.c - values of names: constants and tensors of the graph, read and given. */
#include "frontend/frontend.h"
#include "frontend/onnx/files.h"

uint64_t opjit_onnx_elements_of(const onnx_value *v)
{
    uint64_t count = 1;
    for (uint32_t d = 0; d < v->rank; d++)
        if (!checked_mul(count, v->dims[d], &count))
            return UINT64_MAX;
    return count;
}

opjit_status opjit_onnx_need(onnx_import *m, const onnx_call *c, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (onnx_input(c, i) == NULL)
            return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "input %u is missing", i);
    return OPJIT_OK;
}

/* --- constants ---------------------------------------------------------------------------------------------------- */

/* The arena's memory is at multiples of 16.  At a line no vector is read across two, and artifacts copy nothing. */
static void *at_line(onnx_import *m, uint8_t *memory)
{
    if (memory == NULL) {
        opjit_rt_no_memory(m->error);
        return NULL;
    }
    return memory + (64 - (uintptr_t)memory % 64) % 64;
}

void *opjit_onnx_memory(onnx_import *m, uint64_t bytes)
{
    return at_line(m, bytes > SIZE_MAX - 64 ? NULL : opjit_rt_arena_allocate(m->arena, 1, (size_t)bytes + 64));
}

/* Not zeroed: for what is written as a whole. */
void *opjit_onnx_room(onnx_import *m, uint64_t bytes)
{
    return at_line(m, bytes > SIZE_MAX - 64 ? NULL : opjit_rt_arena_reserve(m->arena, (size_t)bytes + 64));
}

const void *opjit_onnx_stored(onnx_import *m, onnx_value *v)
{
    const onnx_tensor *const t = v->source;
    if (v->data != NULL || t == NULL)
        return v->data;
    if (t->external && opjit_onnx_read_type(t->type) == t->type)
        return opjit_onnx_external(m->files, t, m->error);
    if (!t->external && opjit_onnx_check_elements(t, m->error) != OPJIT_OK)
        return NULL;
    if (opjit_onnx_read_type(t->type) != t->type)
        return opjit_onnx_data(m, v);
    return t->raw.data != NULL && t->elements != 0 ? t->raw.data : opjit_onnx_data(m, v);
}

/* Elements of a type that the graph has not, as those of a wider one. */
static const void *widened(onnx_import *m, onnx_value *v)
{
    const onnx_tensor *const t = v->source;
    const uint32_t size = opjit_rt_dtype_size(opjit_onnx_dtype(opjit_onnx_read_type(t->type)));
    const void *packed = t->external ? opjit_onnx_external(m->files, t, m->error) : t->raw.data;
    if (!t->external && opjit_onnx_check_elements(t, m->error) != OPJIT_OK)
        return NULL;
    if (packed == NULL && !t->external) {
        void *const copy = opjit_onnx_room(m, opjit_onnx_tensor_bytes(t));
        if (copy != NULL)
            opjit_onnx_elements(t, copy);
        packed = copy;
    }
    void *const out = packed == NULL ? NULL : opjit_onnx_room(m, t->elements * size);
    if (out != NULL)
        opjit_onnx_widen(t, packed, out);
    v->data = out;
    return out;
}

const void *opjit_onnx_data(onnx_import *m, onnx_value *v)
{
    if (v->data != NULL || v->source == NULL)
        return v->data;
    const onnx_tensor *const t = v->source;
    if (opjit_onnx_dtype(t->type) != opjit_onnx_stored_dtype(t->type) || opjit_onnx_read_type(t->type) != t->type)
        return widened(m, v);
    const uint32_t size = opjit_rt_dtype_size(opjit_onnx_dtype(t->type));
    const bool is_stored = t->external || (t->raw.data != NULL && t->elements != 0);
    const uint8_t *const there = is_stored ? opjit_onnx_stored(m, v) : NULL;
    if (is_stored ? there == NULL : opjit_onnx_check_elements(t, m->error) != OPJIT_OK)
        return NULL;
    if (is_stored && (t->elements == 0 || (uintptr_t)there % size == 0)) {
        v->data = there;
        return v->data;
    }
    void *const copy = opjit_onnx_room(m, opjit_onnx_tensor_bytes(t));
    if (copy != NULL && is_stored) {
        memcpy(copy, there, (size_t)opjit_onnx_tensor_bytes(t));
        opjit_onnx_copied(m->files, t->raw);
    } else if (copy != NULL) {
        opjit_onnx_elements(t, copy);
    }
    v->data = copy;
    return copy;
}

/* Element i of data as a number. */
static double number_at(const void *data, DML_TENSOR_DATA_TYPE dtype, uint64_t i)
{
    switch (dtype) {
    case DML_TENSOR_DATA_TYPE_FLOAT32: return ((const float *)data)[i];
    case DML_TENSOR_DATA_TYPE_FLOAT64: return ((const double *)data)[i];
    case DML_TENSOR_DATA_TYPE_INT64: return (double)((const int64_t *)data)[i];
    case DML_TENSOR_DATA_TYPE_INT32: return ((const int32_t *)data)[i];
    case DML_TENSOR_DATA_TYPE_INT16: return ((const int16_t *)data)[i];
    case DML_TENSOR_DATA_TYPE_INT8: return ((const int8_t *)data)[i];
    case DML_TENSOR_DATA_TYPE_UINT64: return (double)((const uint64_t *)data)[i];
    case DML_TENSOR_DATA_TYPE_UINT32: return ((const uint32_t *)data)[i];
    case DML_TENSOR_DATA_TYPE_UINT16: return ((const uint16_t *)data)[i];
    case DML_TENSOR_DATA_TYPE_UINT8: return ((const uint8_t *)data)[i];
    case DML_TENSOR_DATA_TYPE_FLOAT16: return opjit_float16_to_float(((const uint16_t *)data)[i]);
    default: return 0;
    }
}

/* The elements of a constant input; *out_count 0 and *out_data NULL where it is absent. */
static opjit_status constant_input(onnx_import *m, const onnx_call *c, uint32_t i, const void **out_data,
                                   uint32_t *out_count)
{
    onnx_value *const v = onnx_input(c, i);
    *out_data = NULL;
    *out_count = 0;
    if (v == NULL)
        return OPJIT_OK;
    enum { ELEMENTS_MOST = 1 << 22 }; /* of what is not in the file: as many as detectors have scores */
    const uint64_t count = opjit_onnx_elements_of(v), most = onnx_is_constant(v) ? INT32_MAX : ELEMENTS_MOST;
    if (count > most)
        return opjit_onnx_refuse(m, c, OPJIT_LIMIT,
                                 "input %u (\"" ONNX_NAME "\") has %llu elements; at most %llu can be known when the "
                                 "model is compiled",
                                 i, ONNX_SHOW(c->node->inputs[i]), (unsigned long long)count, (unsigned long long)most);
    TRY(onnx_compute(m, v));
    *out_data = opjit_onnx_data(m, v);
    if (m->error->status != OPJIT_OK)
        return m->error->status;
    if (*out_data == NULL)
        return opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED,
                                 "input %u (\"" ONNX_NAME "\") depends on values that are known at run time only; it "
                                 "has to be known when the model is compiled",
                                 i, ONNX_SHOW(c->node->inputs[i]));
    *out_count = (uint32_t)count;
    return OPJIT_OK;
}

opjit_status opjit_onnx_input_ints(onnx_import *m, const onnx_call *c, uint32_t i, int64_t **out, uint32_t *out_count)
{
    const void *data;
    TRY(constant_input(m, c, i, &data, out_count));
    *out = ARENA_ARRAY(m->arena, int64_t, (size_t)*out_count + 1);
    if (*out == NULL)
        return opjit_rt_no_memory(m->error);
    if (data == NULL)
        return OPJIT_OK;
    const DML_TENSOR_DATA_TYPE dtype = opjit_onnx_dtype(c->inputs[i]->type);
    if (dtype == DML_TENSOR_DATA_TYPE_FLOAT32 || dtype == DML_TENSOR_DATA_TYPE_FLOAT64 ||
        dtype == DML_TENSOR_DATA_TYPE_FLOAT16)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "input %u has elements of %s, must be integers", i,
                                 opjit_onnx_type_name(c->inputs[i]->type).text);
    for (uint32_t k = 0; k < *out_count; k++)
        (*out)[k] = dtype == DML_TENSOR_DATA_TYPE_INT64    ? ((const int64_t *)data)[k]
                    : dtype == DML_TENSOR_DATA_TYPE_UINT64 ? (int64_t)((const uint64_t *)data)[k]
                                                           : (int64_t)number_at(data, dtype, k);
    return OPJIT_OK;
}

opjit_status opjit_onnx_input_floats(onnx_import *m, const onnx_call *c, uint32_t i, double **out, uint32_t *out_count)
{
    const void *data;
    TRY(constant_input(m, c, i, &data, out_count));
    *out = ARENA_ARRAY(m->arena, double, (size_t)*out_count + 1);
    if (*out == NULL)
        return opjit_rt_no_memory(m->error);
    for (uint32_t k = 0; data != NULL && k < *out_count; k++)
        (*out)[k] = number_at(data, opjit_onnx_dtype(c->inputs[i]->type), k);
    return OPJIT_OK;
}

opjit_status opjit_onnx_input_int(onnx_import *m, const onnx_call *c, uint32_t i, int64_t *out)
{
    int64_t *numbers;
    uint32_t count;
    TRY(opjit_onnx_input_ints(m, c, i, &numbers, &count));
    if (onnx_input(c, i) == NULL)
        return OPJIT_OK;
    if (count != 1)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "input %u has %u elements, must be 1", i, count);
    *out = numbers[0];
    return OPJIT_OK;
}

/* --- in the graph ------------------------------------------------------------------------------------------------- */

/* Sizes as the graph has them. */
static opjit_status graph_sizes(onnx_import *m, uint32_t rank, const uint64_t *dims, uint32_t out[ONNX_RANK])
{
    out[0] = 1;
    for (uint32_t d = 0; d < rank; d++) {
        if (dims[d] == 0 || dims[d] > UINT32_MAX)
            return opjit_rt_refuse(m->error, dims[d] == 0 ? OPJIT_UNSUPPORTED : OPJIT_LIMIT,
                                   dims[d] == 0 ? "{!tensor}a tensor without elements"
                                                : "{!tensor}a size of 2^32 or more");
        out[d] = (uint32_t)dims[d];
    }
    return OPJIT_OK;
}

static opjit_tensor cast(onnx_import *m, opjit_tensor tensor, DML_TENSOR_DATA_TYPE from, DML_TENSOR_DATA_TYPE to)
{
    return from == to ? tensor : opjit_graph_cast(m->graph, tensor, to);
}

opjit_tensor opjit_onnx_from_stored(onnx_import *m, opjit_tensor tensor, int32_t type)
{
    return cast(m, tensor, opjit_onnx_stored_dtype(type), opjit_onnx_dtype(type));
}

opjit_tensor opjit_onnx_to_stored(onnx_import *m, opjit_tensor tensor, int32_t type)
{
    return cast(m, tensor, opjit_onnx_dtype(type), opjit_onnx_stored_dtype(type));
}

opjit_tensor opjit_onnx_tensor(onnx_import *m, onnx_value *v)
{
    const opjit_tensor null = { 0, 0 };
    uint32_t sizes[ONNX_RANK];
    if (m->error->status != OPJIT_OK)
        return null;
    const bool is_here = m->computing == NULL || v->tensor.graph == opjit_fe_built_mark(m->graph);
    if (v->tensor.index != 0 && (is_here || !onnx_is_constant(v)))
        return is_here ? v->tensor : m->carry(m, v);
    if (v->type >= ONNX_SEQUENCE) {
        opjit_rt_refuse(m->error, OPJIT_UNSUPPORTED, "{!tensor}%s, must be a tensor",
                        v->type == ONNX_SEQUENCE ? "a sequence" : "an optional value without an element");
        return null;
    }
    if (v->follows != NULL)
        return m->followed(m, v);
    const void *const data = opjit_onnx_stored(m, v);
    if (data == NULL || graph_sizes(m, v->rank, v->dims, sizes) != OPJIT_OK)
        return null;
    const bool is_stored = v->data == NULL;
    const DML_TENSOR_DATA_TYPE dtype = is_stored ? opjit_onnx_stored_dtype(v->type) : opjit_onnx_dtype(v->type);
    const opjit_tensor t =
        opjit_graph_constant(m->graph, dtype, v->rank == 0 ? 1 : v->rank, sizes, data,
                             opjit_onnx_elements_of(v) * opjit_rt_dtype_size(dtype), OPJIT_GRAPH_BORROW);
    v->tensor = is_stored ? opjit_onnx_from_stored(m, t, v->type) : t;
    return v->tensor;
}

opjit_tensor opjit_onnx_reshape(onnx_import *m, opjit_tensor tensor, uint32_t rank, const uint64_t *dims)
{
    uint32_t sizes[ONNX_RANK];
    if (m->error->status != OPJIT_OK || graph_sizes(m, rank, dims, sizes) != OPJIT_OK)
        return (opjit_tensor){ 0, 0 };
    return opjit_graph_reshape(m->graph, tensor, rank == 0 ? 1 : rank, sizes);
}

opjit_tensor opjit_onnx_join(onnx_import *m, opjit_tensor *parts, uint32_t count, uint32_t axis)
{
    while (count > 1) {
        uint32_t made = 0;
        for (uint32_t i = 0; i < count; i += FE_TENSORS_MAX) {
            const uint32_t some = count - i < FE_TENSORS_MAX ? count - i : FE_TENSORS_MAX;
            parts[made++] = some == 1 ? parts[i] : opjit_graph_join(m->graph, &parts[i], some, axis);
        }
        count = made;
    }
    return parts[0];
}

opjit_tensor opjit_onnx_repeat(onnx_import *m, opjit_tensor tensor, uint32_t count, const uint64_t *apart,
                               const uint32_t *wide, uint32_t rank, const uint64_t *dims)
{
    const opjit_tensor all = opjit_graph_broadcast(m->graph, opjit_onnx_reshape(m, tensor, count, apart), count, wide);
    return opjit_onnx_reshape(m, all, rank, dims);
}

opjit_tensor opjit_onnx_vector(onnx_import *m, const onnx_call *c, uint32_t i, uint32_t rank, uint32_t axis)
{
    uint64_t dims[ONNX_RANK];
    onnx_value *const v = onnx_input(c, i);
    if (v == NULL)
        return (opjit_tensor){ 0, 0 };
    for (uint32_t d = 0; d < rank; d++)
        dims[d] = d == axis ? opjit_onnx_elements_of(v) : 1;
    return opjit_onnx_reshape(m, opjit_onnx_tensor(m, v), rank, dims);
}

void opjit_onnx_add(onnx_import *m, DML_OPERATOR_TYPE type, const void *desc, const opjit_tensor *inputs,
                    uint32_t input_count, opjit_tensor *outputs, uint32_t output_count)
{
    opjit_graph_node node = OPJIT_GRAPH_NODE_INIT;
    node.type = type;
    node.desc = desc;
    node.inputs = inputs;
    node.input_count = input_count;
    node.output_count = output_count;
    memset(outputs, 0, output_count * sizeof *outputs);
    (void)opjit_graph_add_node(m->graph, &node, outputs);
}

opjit_tensor opjit_onnx_table(onnx_import *m, int32_t type, uint64_t rows, uint64_t columns, const void *data)
{
    onnx_value v = { .type = type, .rank = columns == 0 ? 1 : 2, .dims = { rows, columns }, .data = data };
    return opjit_onnx_tensor(m, &v);
}

opjit_tensor opjit_onnx_scalar(onnx_import *m, int32_t type, double value)
{
    return opjit_graph_scalar(m->graph, opjit_onnx_dtype(type), value);
}

opjit_tensor opjit_onnx_cast(onnx_import *m, opjit_tensor tensor, int32_t from, int32_t to)
{
    if (to == ONNX_BOOL && from != ONNX_BOOL)
        return opjit_graph_logical_not(m->graph, opjit_graph_equals(m->graph, tensor, opjit_onnx_scalar(m, from, 0)));
    return cast(m, tensor, opjit_onnx_dtype(from), opjit_onnx_dtype(to));
}

/* --- results ------------------------------------------------------------------------------------------------------ */

opjit_status opjit_onnx_status(onnx_import *m)
{
    return m->error->status != OPJIT_OK ? m->error->status : opjit_graph_status(m->graph, m->error);
}

opjit_status opjit_onnx_give_as(onnx_import *m, onnx_call *c, uint32_t i, opjit_tensor tensor, int32_t type,
                                uint32_t rank, const uint64_t *dims)
{
    TRY(opjit_onnx_status(m));
    if (i >= c->output_count)
        return OPJIT_OK;
    onnx_value *const v = &c->outputs[i];
    *v = (onnx_value){ .type = type, .rank = rank };
    opjit_tensor_type have;
    (void)opjit_graph_get_type(m->graph, tensor, &have);
    bool same = have.rank == (rank == 0 ? 1 : rank) && (rank != 0 || have.sizes[0] == 1);
    for (uint32_t d = 0; d < rank; d++) {
        v->dims[d] = dims[d];
        same = same && have.sizes[d] == dims[d];
    }
    v->tensor = same ? tensor : opjit_onnx_reshape(m, tensor, rank, dims);
    return opjit_onnx_status(m);
}

opjit_status opjit_onnx_give(onnx_import *m, onnx_call *c, uint32_t i, opjit_tensor tensor, int32_t type, uint32_t rank)
{
    opjit_tensor_type have;
    uint64_t dims[ONNX_RANK] = { 0 };
    TRY(opjit_onnx_status(m));
    (void)opjit_graph_get_type(m->graph, tensor, &have);
    for (uint32_t d = 0; d < rank; d++)
        dims[d] = have.rank + d < rank ? 1 : have.sizes[have.rank - rank + d];
    return opjit_onnx_give_as(m, c, i, tensor, type, rank, dims);
}

opjit_status opjit_onnx_give_data(onnx_import *m, onnx_call *c, uint32_t i, int32_t type, uint32_t rank,
                                  const uint64_t *dims, const void *data)
{
    if (i >= c->output_count)
        return OPJIT_OK;
    if (data == NULL)
        return m->error->status != OPJIT_OK ? m->error->status : opjit_rt_no_memory(m->error);
    onnx_value *const v = &c->outputs[i];
    *v = (onnx_value){ .type = type, .rank = rank, .data = data };
    for (uint32_t d = 0; d < rank; d++)
        v->dims[d] = dims[d];
    return OPJIT_OK;
}

opjit_status opjit_onnx_give_nothing(onnx_import *m, onnx_call *c, uint32_t i, int32_t type, uint32_t rank,
                                     const uint64_t *dims)
{
    return opjit_onnx_give_data(m, c, i, type, rank, dims, opjit_onnx_memory(m, 0));
}

opjit_status opjit_onnx_give_everywhere(onnx_import *m, onnx_call *c, uint32_t i, opjit_tensor one, int32_t type,
                                        uint32_t rank, const uint64_t *dims)
{
    uint32_t sizes[ONNX_RANK];
    TRY(graph_sizes(m, rank, dims, sizes));
    return opjit_onnx_give_as(m, c, i, opjit_graph_broadcast(m->graph, one, rank == 0 ? 1 : rank, sizes), type, rank,
                              dims);
}

opjit_status opjit_onnx_give_value(onnx_import *m, onnx_call *c, uint32_t i, const onnx_value *v)
{
    if (i < c->output_count)
        c->outputs[i] = *v;
    return m->error->status;
}

opjit_status opjit_onnx_give_reshaped(onnx_import *m, onnx_call *c, onnx_value *v, uint32_t rank, const uint64_t *dims)
{
    onnx_value result = *v;
    result.rank = rank;
    for (uint32_t d = 0; d < rank; d++)
        result.dims[d] = dims[d];
    if (onnx_is_constant(v) && opjit_onnx_stored(m, v) == NULL)
        return m->error->status;
    result.data = v->data;
    result.source = v->data != NULL ? NULL : v->source;
    if (onnx_is_constant(v)) {
        result.tensor = (opjit_tensor){ 0, 0 };
        return opjit_onnx_give_value(m, c, 0, &result);
    }
    return opjit_onnx_give_as(m, c, 0, opjit_onnx_tensor(m, v), v->type, rank, dims);
}

opjit_status opjit_onnx_call_row(onnx_import *m, const onnx_call *c, const onnx_node *node, const onnx_row *row,
                                 onnx_value **inputs, uint32_t input_count, onnx_value *out)
{
    onnx_call by = {
        .node = node, .row = row, .inputs = inputs, .outputs = out, .input_count = input_count, .output_count = 1
    };
    *out = (onnx_value){ .type = ONNX_UNDEFINED };
    TRY(row->make(m, &by));
    return out->type != ONNX_UNDEFINED ? m->error->status
                                       : opjit_onnx_refuse(m, c, OPJIT_UNSUPPORTED, "it is not taken of floats");
}

opjit_status opjit_onnx_remember(onnx_import *m, onnx_call *c)
{
    onnx_made *const made = ARENA_NEW(m->arena, onnx_made);
    if (made == NULL)
        return opjit_rt_no_memory(m->error);
    *made = (onnx_made){ *c, m->frame, m->opset, m->graph };
    c->outputs[0].made = made;
    return OPJIT_OK;
}
