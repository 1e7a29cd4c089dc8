/* SPDX-License-Identifier: Apache-2.0 */
/* node.c - an operator's descriptor out of Python values, by the fields that reflect.h tells. */
#include <string.h>

#include "frontend/hosts/python/host.h"

/* Memory until the node was added, as bytes objects in the list `keep`. */
static void *room(PyObject *keep, size_t bytes)
{
    PyObject *const memory = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)bytes + 1);
    char *data = NULL;
    if (memory != NULL && PyList_Append(keep, memory) == 0) {
        data = PyBytes_AsString(memory);
        memset(data, 0, bytes);
    }
    Py_XDECREF(memory);
    return data;
}

/* --- one value ---------------------------------------------------------------------------------------------------- */
static int out_of_range(const opjit_field_info *field, PyObject *value)
{
    PyErr_Format(PyExc_ValueError, "%s: %R is out of range", field->name, host_brief(value));
    return -1;
}

/* The bits of an element. */
static int read_scalar(const opjit_field_info *field, PyObject *value, DML_TENSOR_DATA_TYPE dtype,
                       DML_SCALAR_UNION *out)
{
    const uint32_t bits = opjit_data_type_size(dtype) * 8;
    *out = (DML_SCALAR_UNION){ { 0 } };
    if (dtype == DML_TENSOR_DATA_TYPE_FLOAT32 || dtype == DML_TENSOR_DATA_TYPE_FLOAT16 ||
        dtype == DML_TENSOR_DATA_TYPE_FLOAT64) {
        const double number = PyFloat_AsDouble(value);
        if (PyErr_Occurred())
            return -1;
        if (dtype == DML_TENSOR_DATA_TYPE_FLOAT32)
            out->Float32 = (float)number;
        else if (dtype == DML_TENSOR_DATA_TYPE_FLOAT64)
            out->Float64 = number;
        else
            out->UInt16 = opjit_float16_from_double(number);
    } else if (dtype == DML_TENSOR_DATA_TYPE_UINT64) {
        out->UInt64 = PyLong_AsUnsignedLongLong(value);
    } else if (bits != 0) {
        const bool is_signed = dtype == DML_TENSOR_DATA_TYPE_INT8 || dtype == DML_TENSOR_DATA_TYPE_INT16 ||
                               dtype == DML_TENSOR_DATA_TYPE_INT32 || dtype == DML_TENSOR_DATA_TYPE_INT64;
        const int64_t number = PyLong_AsLongLong(value);
        const int64_t top = is_signed ? (int64_t)(UINT64_MAX >> (65 - bits)) : (int64_t)(UINT64_MAX >> (64 - bits));
        if (PyErr_Occurred())
            return -1;
        if (number > top || number < (is_signed ? -top - 1 : 0))
            return out_of_range(field, value);
        out->Int64 = number; /* the low bytes are the element's: this machine is little-endian */
    } else {
        PyErr_Format(PyExc_ValueError, "%s: its data type is not known: dtype= says it", field->name);
    }
    return PyErr_Occurred() ? -1 : 0;
}

/* A value's name, or its number. */
static int read_enum(DML_OPERATOR_TYPE type, uint32_t index, const opjit_field_info *field, PyObject *value,
                     int32_t *out)
{
    if (PyLong_Check(value)) {
        *out = (int32_t)PyLong_AsLong(value);
        return PyErr_Occurred() ? -1 : 0;
    }
    for (uint32_t i = 0; i < field->value_count && PyUnicode_Check(value); i++) {
        PyObject *const upper = PyObject_CallMethod(value, "upper", NULL);
        const int order =
            upper == NULL ? -1 : PyUnicode_CompareWithASCIIString(upper, opjit_field_value_at(type, index, i, out));
        Py_XDECREF(upper);
        if (upper == NULL)
            return -1;
        if (order == 0)
            return 0;
    }
    PyErr_Format(PyExc_ValueError, "%s: %R, must be a name as \"%s\"", field->name, host_brief(value),
                 opjit_field_value_at(type, index, 0, NULL));
    return -1;
}

static int read_number(const opjit_field_info *field, PyObject *value, bool is_unsigned, void *out)
{
    const long long number = PyLong_AsLongLong(value);
    const int64_t low = is_unsigned ? 0 : INT32_MIN, high = is_unsigned ? UINT32_MAX : INT32_MAX;
    if (PyErr_Occurred())
        return -1;
    if (number < low || number > high)
        return out_of_range(field, value);
    memcpy(out, &(uint32_t){ (uint32_t)number }, 4);
    return 0;
}

static int read_float(PyObject *value, float *out)
{
    *out = (float)PyFloat_AsDouble(value);
    return PyErr_Occurred() ? -1 : 0;
}

/* Two numbers. */
static int read_pair(const opjit_field_info *field, PyObject *value, bool is_float, void *out)
{
    const Py_ssize_t length = PySequence_Size(value);
    if (length >= 0 && length != 2)
        PyErr_Format(PyExc_ValueError, "%s: %zd numbers, must be 2", field->name, length);
    if (length != 2)
        return -1;
    for (Py_ssize_t i = 0; i < 2; i++) {
        PyObject *const item = PySequence_GetItem(value, i);
        const int status = item == NULL ? -1
                           : is_float   ? read_float(item, (float *)out + i)
                                        : read_number(field, item, true, (uint32_t *)out + i);
        Py_XDECREF(item);
        if (status != 0)
            return -1;
    }
    return 0;
}

static int fill(PyObject *keep, const opjit_operator_type_info *info, PyObject *values, DML_TENSOR_DATA_TYPE dtype,
                char *desc);

/* (name, fields) as a DML_OPERATOR_DESC, or None as nothing. */
static int read_activation(PyObject *keep, PyObject *value, DML_TENSOR_DATA_TYPE dtype, DML_OPERATOR_DESC *out)
{
    opjit_operator_type_info info = OPJIT_OPERATOR_TYPE_INFO_INIT;
    const char *name;
    PyObject *fields;
    char *desc;
    if (!PyTuple_Check(value) || !PyArg_ParseTuple(value, "sO!", &name, &PyDict_Type, &fields)) {
        PyErr_Format(PyExc_TypeError, "an activation is (name, {field: value}), not %R", host_brief(value));
        return -1;
    }
    if (opjit_operator_type_get_info(opjit_operator_type_find(name), &info, NULL) != OPJIT_OK) {
        PyErr_Format(PyExc_ValueError, "there is no operator %s", name);
        return -1;
    }
    desc = room(keep, info.desc_bytes);
    if (desc == NULL || fill(keep, &info, fields, dtype, desc) != 0)
        return -1;
    *out = (DML_OPERATOR_DESC){ info.type, desc };
    return 0;
}

/* --- arrays ------------------------------------------------------------------------------------------------------- */
static int read_array(PyObject *keep, const opjit_field_info *field, PyObject *value, DML_TENSOR_DATA_TYPE dtype,
                      char *desc)
{
    const Py_ssize_t length = PySequence_Size(value);
    const size_t size = field->kind == OPJIT_FIELD_ACTIVATIONS ? sizeof(DML_OPERATOR_DESC) : 4;
    uint32_t count;
    char *data;
    if (length < 0)
        return -1;
    if (length > 1 << 20)
        return out_of_range(field, value);
    memcpy(&count, desc + field->count_offset, sizeof count);
    if (count != 0 && count != (uint32_t)length) {
        PyErr_Format(PyExc_ValueError, "%s: %zd numbers, must be %u as the arrays before it", field->name, length,
                     count);
        return -1;
    }
    count = (uint32_t)length;
    data = room(keep, (size_t)length * size);
    if (data == NULL)
        return -1;
    memcpy(desc + field->count_offset, &count, sizeof count);
    memcpy(desc + field->offset, &data, sizeof data);
    for (Py_ssize_t i = 0; i < length; i++, data += size) {
        PyObject *const item = PySequence_GetItem(value, i);
        int status = -1;
        if (item != NULL && field->kind == OPJIT_FIELD_ACTIVATIONS)
            status = read_activation(keep, item, dtype, (DML_OPERATOR_DESC *)(void *)data);
        else if (item != NULL && field->kind == OPJIT_FIELD_FLOAT32S)
            status = read_float(item, (float *)(void *)data);
        else if (item != NULL)
            status = read_number(field, item, field->kind == OPJIT_FIELD_UINT32S, data);
        Py_XDECREF(item);
        if (status != 0)
            return -1;
    }
    return 0;
}

/* --- descriptors -------------------------------------------------------------------------------------------------- */
static int read_field(PyObject *keep, DML_OPERATOR_TYPE type, uint32_t index, const opjit_field_info *field,
                      PyObject *value, DML_TENSOR_DATA_TYPE dtype, char *desc)
{
    void *const at = desc + field->offset;
    void *memory;
    switch (field->kind) {
    case OPJIT_FIELD_SCALAR: return read_scalar(field, value, dtype, at);
    case OPJIT_FIELD_INT32:
    case OPJIT_FIELD_UINT32: return read_number(field, value, field->kind == OPJIT_FIELD_UINT32, at);
    case OPJIT_FIELD_FLOAT32: return read_float(value, at);
    case OPJIT_FIELD_BOOL: *(int32_t *)at = PyObject_IsTrue(value); return *(int32_t *)at < 0 ? -1 : 0;
    case OPJIT_FIELD_ENUM: return read_enum(type, index, field, value, at);
    case OPJIT_FIELD_UINT32S:
    case OPJIT_FIELD_INT32S:
    case OPJIT_FIELD_FLOAT32S:
    case OPJIT_FIELD_ACTIVATIONS: return read_array(keep, field, value, dtype, desc);
    case OPJIT_FIELD_SIZE_2D: return read_pair(field, value, false, at);
    case OPJIT_FIELD_SCALE_BIAS:
    case OPJIT_FIELD_ACTIVATION:
        memory = room(keep, sizeof(DML_OPERATOR_DESC));
        if (memory == NULL)
            return -1;
        memcpy(at, &memory, sizeof memory);
        return field->kind == OPJIT_FIELD_SCALE_BIAS ? read_pair(field, value, true, memory)
                                                     : read_activation(keep, value, dtype, memory);
    default: /* tensors, and the type of scalars, which follows */
        PyErr_Format(PyExc_TypeError, "%s is no value", field->name);
        return -1;
    }
}

static bool may_be_absent(const opjit_field_info *field)
{
    return field->kind <= OPJIT_FIELD_DATA_TYPE || (field->flags & (OPJIT_FIELD_OPTIONAL | OPJIT_FIELD_COUNT)) != 0;
}

/* Names a key that is no field. */
static int refuse_unknown(const opjit_operator_type_info *info, PyObject *values)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(values, &at, &key, &value)) {
        bool known = false;
        for (uint32_t i = 0; i < info->field_count && PyUnicode_Check(key) && !known; i++) {
            opjit_field_info field = OPJIT_FIELD_INFO_INIT;
            known = opjit_operator_type_get_field(info->type, i, &field, NULL) == OPJIT_OK &&
                    PyUnicode_CompareWithASCIIString(key, field.name) == 0;
        }
        if (!known) {
            PyErr_Format(PyExc_TypeError, "%s: %R is none of its fields", info->name, host_brief(key));
            break;
        }
    }
    return -1;
}

/* Fills the descriptor, which is all zero, from values: {"Axis": 1}.  Tensors stay null, and follow. */
static int fill(PyObject *keep, const opjit_operator_type_info *info, PyObject *values, DML_TENSOR_DATA_TYPE dtype,
                char *desc)
{
    Py_ssize_t used = 0;
    for (uint32_t i = 0; i < info->field_count; i++) {
        opjit_field_info field = OPJIT_FIELD_INFO_INIT;
        PyObject *value;
        if (opjit_operator_type_get_field(info->type, i, &field, NULL) != OPJIT_OK)
            return -1;
        if (field.kind == OPJIT_FIELD_DATA_TYPE)
            memcpy(desc + field.offset, &dtype, sizeof dtype);
        value = PyDict_GetItemString(values, field.name);
        used += value != NULL;
        if (value == NULL || value == Py_None) {
            if (may_be_absent(&field))
                continue;
            PyErr_Format(PyExc_TypeError, "%s %s: it needs a value", info->name, field.name);
            return -1;
        }
        if (read_field(keep, info->type, i, &field, value, dtype, desc) != 0)
            return -1;
    }
    return used == PyDict_Size(values) ? 0 : refuse_unknown(info, values);
}

/* --- nodes -------------------------------------------------------------------------------------------------------- */
/* ((dtype, sizes), ...), each of which may be None: it follows. */
static int read_outputs(PyObject *outputs, Py_ssize_t count, opjit_tensor_type *types)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *const row = PySequence_GetItem(outputs, i);
        PyObject *dtype, *sizes;
        int status = -1;
        if (row != NULL && PyTuple_Check(row) && PyArg_ParseTuple(row, "OO", &dtype, &sizes) &&
            host_type_of(dtype, &types[i].dtype) == 0)
            status = sizes == Py_None ? 0 : host_sizes(sizes, types[i].sizes, &types[i].rank);
        Py_XDECREF(row);
        if (status != 0) {
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_TypeError, "outputs: a (dtype, sizes) each");
            return -1;
        }
    }
    return 0;
}

/* Handles: numbers, or None. */
static int read_inputs(PyObject *inputs, Py_ssize_t count, opjit_tensor *out)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *const item = PySequence_GetItem(inputs, i);
        if (item != NULL && item != Py_None) {
            out[i] = host_tensor_of(PyLong_AsUnsignedLongLong(item));
        }
        Py_XDECREF(item);
        if (PyErr_Occurred())
            return -1;
    }
    return 0;
}

static DML_TENSOR_DATA_TYPE type_of_scalars(const host_graph *graph, const opjit_tensor_type *output,
                                            const opjit_tensor *inputs, Py_ssize_t count)
{
    opjit_tensor_type type;
    if (output->dtype != DML_TENSOR_DATA_TYPE_UNKNOWN)
        return output->dtype;
    for (Py_ssize_t i = 0; i < count; i++)
        if (inputs[i].index != 0)
            return opjit_graph_get_type(graph->graph, inputs[i], &type) == OPJIT_OK ? type.dtype
                                                                                    : DML_TENSOR_DATA_TYPE_UNKNOWN;
    return DML_TENSOR_DATA_TYPE_UNKNOWN;
}

static PyObject *add(host_graph *graph, PyObject *keep, const char *type, PyObject *inputs, PyObject *fields,
                     PyObject *outputs, const char *name)
{
    const Py_ssize_t input_count = PySequence_Size(inputs), output_count = PySequence_Size(outputs);
    opjit_operator_type_info info = OPJIT_OPERATOR_TYPE_INFO_INIT;
    opjit_graph_node node = OPJIT_GRAPH_NODE_INIT;
    opjit_tensor_type *types;
    opjit_tensor *handles, *results;
    opjit_error error;
    PyObject *tuple;
    DML_TENSOR_DATA_TYPE dtype;
    char *desc;
    if (input_count < 0 || output_count < 0)
        return NULL;
    if (input_count > 1 << 16 || output_count > 1 << 16)
        return PyErr_SetString(PyExc_ValueError, "more than 65536 tensors"), NULL;
    if (opjit_operator_type_get_info(opjit_operator_type_find(type), &info, &error) != OPJIT_OK)
        return PyErr_Format(PyExc_ValueError, "there is no operator %s", type), NULL;
    handles = room(keep, (size_t)input_count * sizeof *handles);
    results = room(keep, (size_t)output_count * sizeof *results);
    types = room(keep, (size_t)output_count * sizeof *types);
    desc = room(keep, info.desc_bytes);
    if (handles == NULL || results == NULL || types == NULL || desc == NULL ||
        read_inputs(inputs, input_count, handles) != 0 || read_outputs(outputs, output_count, types) != 0)
        return NULL;
    dtype = output_count > 0 ? type_of_scalars(graph, types, handles, input_count) : DML_TENSOR_DATA_TYPE_UNKNOWN;
    if (fill(keep, &info, fields, dtype, desc) != 0)
        return NULL;
    node.type = info.type;
    node.desc = desc;
    node.inputs = handles;
    node.input_count = (uint32_t)input_count;
    node.output_count = (uint32_t)output_count;
    node.output_types = types;
    node.name = name;
    if (opjit_graph_add_node(host_graph_built(graph), &node, results) != OPJIT_OK) {
        (void)opjit_graph_status(host_graph_built(graph), &error);
        return host_raise(graph->state, &error);
    }
    tuple = PyTuple_New(output_count);
    for (Py_ssize_t i = 0; tuple != NULL && i < output_count; i++) {
        PyObject *const handle = host_handle(results[i]);
        if (handle == NULL || PyTuple_SetItem(tuple, i, handle) < 0) {
            Py_DECREF(tuple);
            return NULL;
        }
    }
    return tuple;
}

PyObject *host_graph_node(PyObject *self, PyObject *args)
{
    host_graph *const graph = host_graph_of(self);
    PyObject *const keep = graph == NULL ? NULL : PyList_New(0);
    PyObject *inputs, *fields, *outputs, *result = NULL;
    const char *type, *name = NULL;
    if (keep != NULL && PyArg_ParseTuple(args, "sOO!O|z", &type, &inputs, &PyDict_Type, &fields, &outputs, &name))
        result = host_graph_keep(graph, "node", args, add(graph, keep, type, inputs, fields, outputs, name));
    Py_XDECREF(keep);
    return result;
}
