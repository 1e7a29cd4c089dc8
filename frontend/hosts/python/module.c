/* SPDX-License-Identifier: Apache-2.0 */
/* module.c - the module opjit._opjit: its state, errors, and the tables of reflect.h as Python data. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/hosts/context.h"
#include "frontend/hosts/python/host.h"

/* --- errors ------------------------------------------------------------------------------------------------------- */
static int set_text(PyObject *object, const char *name, const char *text)
{
    PyObject *const value = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
    const int status = value != NULL ? PyObject_SetAttrString(object, name, value) : -1;
    Py_XDECREF(value);
    return status;
}

/* None for what an error has none of. */
static int set_number(PyObject *object, const char *name, int32_t number)
{
    PyObject *const value = number >= 0 ? PyLong_FromLong(number) : Py_NewRef(Py_None);
    const int status = value != NULL ? PyObject_SetAttrString(object, name, value) : -1;
    Py_XDECREF(value);
    return status;
}

PyObject *host_raise(host_state *state, const opjit_error *error)
{
    PyObject *message, *exception;
    if (error->status == OPJIT_OUT_OF_MEMORY)
        return PyErr_NoMemory();
    message = PyUnicode_DecodeUTF8(error->message, (Py_ssize_t)strlen(error->message), "replace");
    exception = message != NULL ? PyObject_CallFunctionObjArgs(state->error, message, NULL) : NULL;
    Py_XDECREF(message);
    if (exception != NULL && set_text(exception, "status", opjit_status_name(error->status)) == 0 &&
        set_text(exception, "operator", error->op) == 0 && set_text(exception, "field", error->field) == 0 &&
        set_text(exception, "value", error->value) == 0 && set_number(exception, "index", error->index) == 0 &&
        set_number(exception, "node", error->node) == 0)
        PyErr_SetObject(state->error, exception);
    Py_XDECREF(exception);
    return NULL;
}

/* --- context ------------------------------------------------------------------------------------------------------ */
opjit_context *host_context(host_state *state)
{
    const opjit_context_options options = host_context_options();
    opjit_error error;
    if (state->context != NULL)
        return state->context;
    if (opjit_context_create(&options, &state->context, &error) != OPJIT_OK)
        host_raise(state, &error);
    return state->context;
}

const opjit_executor *host_executor(host_state *state, uint32_t threads)
{
    opjit_error error;
    if (threads == 1)
        return NULL;
    if (state->pool == NULL) {
        if (opjit_pool_create(NULL, threads, &state->pool, &error) != OPJIT_OK)
            return host_raise(state, &error), NULL;
        state->pool_threads = threads;
    }
    if (state->pool_threads != threads) {
        PyErr_Format(PyExc_ValueError, "threads: %u, but kernels of this process use %u already", threads,
                     state->pool_threads);
        return NULL;
    }
    return opjit_pool_executor(state->pool);
}

/* --- values ------------------------------------------------------------------------------------------------------- */
PyObject *host_brief(PyObject *value)
{
    const bool is_line = PyUnicode_CheckExact(value) || PyLong_CheckExact(value) || PyFloat_CheckExact(value);
    return is_line ? value : (PyObject *)Py_TYPE(value);
}

PyObject *host_type_text(DML_TENSOR_DATA_TYPE type)
{
    char text[16] = "";
    const char *const name = opjit_data_type_name(type);
    for (size_t i = 0; name[i] != '\0' && i < sizeof text - 1; i++)
        text[i] = (char)tolower((unsigned char)name[i]);
    return PyUnicode_FromString(text);
}

int host_type_of(PyObject *text, DML_TENSOR_DATA_TYPE *out)
{
    *out = DML_TENSOR_DATA_TYPE_UNKNOWN;
    if (text == Py_None)
        return 0;
    if (PyUnicode_Check(text))
        for (int type = DML_TENSOR_DATA_TYPE_FLOAT32; type <= DML_TENSOR_DATA_TYPE_INT4; type++) {
            PyObject *const name = host_type_text((DML_TENSOR_DATA_TYPE)type);
            const int order = name != NULL ? PyUnicode_Compare(text, name) : 1;
            Py_XDECREF(name);
            if (order == 0) {
                *out = (DML_TENSOR_DATA_TYPE)type;
                return 0;
            }
        }
    if (!PyErr_Occurred())
        PyErr_Format(PyExc_TypeError, "dtype: %R, must be \"float32\", \"float16\", \"uint8\" ... \"int64\"",
                     host_brief(text));
    return -1;
}

int host_sizes(PyObject *sequence, uint32_t *out, uint32_t *count)
{
    const Py_ssize_t length = PySequence_Size(sequence);
    if (length < 0)
        return -1;
    if (length > 8) {
        PyErr_Format(PyExc_ValueError, "%zd numbers given, at most 8 are allowed", length);
        return -1;
    }
    for (Py_ssize_t i = 0; i < length; i++) {
        PyObject *const item = PySequence_GetItem(sequence, i);
        PyObject *const number = item != NULL ? PyNumber_Index(item) : NULL;
        const unsigned long long value = number != NULL ? PyLong_AsUnsignedLongLong(number) : 0;
        Py_XDECREF(item);
        Py_XDECREF(number);
        if (PyErr_Occurred())
            return -1;
        if (value > UINT32_MAX) {
            PyErr_Format(PyExc_OverflowError, "%llu is above 2^32 - 1", value);
            return -1;
        }
        out[i] = (uint32_t)value;
    }
    *count = (uint32_t)length;
    return 0;
}

PyObject *host_numbers(uint32_t count, const int64_t *numbers)
{
    PyObject *const tuple = PyTuple_New(count);
    for (uint32_t i = 0; tuple != NULL && i < count; i++) {
        PyObject *const number = PyLong_FromLongLong(numbers[i]);
        if (number == NULL || PyTuple_SetItem(tuple, i, number) < 0) {
            Py_DECREF(tuple);
            return NULL;
        }
    }
    return tuple;
}

/* --- reflection --------------------------------------------------------------------------------------------------- */
static PyObject *field_values(DML_OPERATOR_TYPE type, uint32_t index, uint32_t count)
{
    PyObject *const names = PyTuple_New(count);
    for (uint32_t i = 0; names != NULL && i < count; i++) {
        const char *const name = opjit_field_value_at(type, index, i, NULL);
        PyObject *const text = PyUnicode_FromString(name != NULL ? name : "");
        if (text == NULL || PyTuple_SetItem(names, i, text) < 0) {
            Py_DECREF(names);
            return NULL;
        }
    }
    return names;
}

static PyObject *operator_fields(const opjit_operator_type_info *info)
{
    PyObject *const fields = PyTuple_New(info->field_count);
    for (uint32_t i = 0; fields != NULL && i < info->field_count; i++) {
        opjit_field_info field = OPJIT_FIELD_INFO_INIT;
        const opjit_status status = opjit_operator_type_get_field(info->type, i, &field, NULL);
        PyObject *const values = field_values(info->type, i, status == OPJIT_OK ? field.value_count : 0);
        PyObject *const row =
            values != NULL ? Py_BuildValue("(siIN)", field.name, (int)field.kind, field.flags, values) : NULL;
        if (row == NULL || PyTuple_SetItem(fields, i, row) < 0) {
            Py_DECREF(fields);
            return NULL;
        }
    }
    return fields;
}

PyObject *host_operators(PyObject *module, PyObject *unused)
{
    const uint32_t count = opjit_operator_type_count();
    PyObject *const rows = PyTuple_New(count);
    (void)module, (void)unused;
    for (uint32_t i = 0; rows != NULL && i < count; i++) {
        opjit_operator_type_info info = OPJIT_OPERATOR_TYPE_INFO_INIT;
        const opjit_status status = opjit_operator_type_get_info(opjit_operator_type_at(i), &info, NULL);
        PyObject *const fields = status == OPJIT_OK ? operator_fields(&info) : NULL;
        PyObject *const row =
            fields != NULL ? Py_BuildValue("(ssIN)", info.name, info.formula, info.flags, fields) : NULL;
        if (row == NULL || PyTuple_SetItem(rows, i, row) < 0) {
            Py_DECREF(rows);
            return NULL;
        }
    }
    return rows;
}

/* --- module ------------------------------------------------------------------------------------------------------- */
/* Raises opjit.Error with what this CPU lacks. */
static PyObject *module_runs_here(PyObject *module, PyObject *target)
{
    const char *const text = PyUnicode_AsUTF8AndSize(target, NULL);
    opjit_error error;
    if (text == NULL)
        return NULL;
    return opjit_target_runs_here(text, &error) == OPJIT_OK ? Py_NewRef(Py_None)
                                                            : host_raise(PyModule_GetState(module), &error);
}

static PyObject *module_threads(PyObject *module, PyObject *unused)
{
    const host_state *const state = PyModule_GetState(module);
    (void)unused;
    return state->pool != NULL ? PyLong_FromUnsignedLong(state->pool_threads) : Py_NewRef(Py_None);
}

static PyMethodDef functions[] = {
    { "operators", host_operators, METH_NOARGS,
      "operators() -> ((name, formula, flags, ((field, kind, flags, values), ...)), ...): opjit/reflect.h's tables." },
    { "runs_here", module_runs_here, METH_O, "runs_here(target): opjit.Error says what this CPU lacks." },
    { "threads", module_threads, METH_NOARGS, "threads() -> what kernels of this process use, or None: no pool yet" },
    { "compile_dynamic", host_compile_dynamic, METH_VARARGS,
      "compile_dynamic(function, ((name, lo, hi, typical), ...), level, interpret, threads, borrow) -> Kernel" },
    { "xla_handler", host_xla_handler, METH_NOARGS, "xla_handler() -> capsule: the function that XLA calls" },
    { NULL, NULL, 0, NULL }
};

static int add_type(PyObject *module, PyType_Spec *spec, const char *name, PyObject **out)
{
    *out = PyType_FromModuleAndSpec(module, spec, NULL);
    return *out != NULL ? PyModule_AddObjectRef(module, name, *out) : -1;
}

static int module_exec(PyObject *module)
{
    host_state *const state = PyModule_GetState(module);
    PyObject *const constants = PyDict_New();
    state->error = PyErr_NewExceptionWithDoc(
        "opjit.Error",
        "What opjit refused, in one line.  status: \"INVALID_ARGUMENT\" ...; operator, field, index, value: what it is "
        "about; node: of a graph, counted in the order of adding.",
        PyExc_ValueError, constants);
    Py_XDECREF(constants);
    state->str_out = PyUnicode_InternFromString("out");
    state->str_dlpack = PyUnicode_InternFromString("__dlpack__");
    state->str_exchange = PyUnicode_InternFromString("__dlpack_c_exchange_api__");
    state->str_requires_grad = PyUnicode_InternFromString("requires_grad");
    state->versions = Py_BuildValue("{s:(ii)}", "max_version", 1, 3);
    if (state->error == NULL || state->str_out == NULL || state->str_dlpack == NULL || state->str_exchange == NULL ||
        state->str_requires_grad == NULL || state->versions == NULL ||
        PyModule_AddObjectRef(module, "Error", state->error) < 0 ||
        add_type(module, &host_graph_spec, "Graph", &state->graph_type) < 0 ||
        add_type(module, &host_kernel_spec, "Kernel", &state->kernel_type) < 0)
        return -1;
    return PyModule_AddStringConstant(module, "__version__", opjit_version());
}

static int module_traverse(PyObject *module, visitproc visit, void *arg)
{
    host_state *const state = PyModule_GetState(module);
    if (state == NULL)
        return 0;
    Py_VISIT(state->error);
    Py_VISIT(state->graph_type);
    Py_VISIT(state->kernel_type);
    Py_VISIT(state->numpy_empty);
    Py_VISIT(state->numpy_dtype);
    for (uint32_t i = 0; i < HOST_KINDS; i++)
        Py_VISIT(state->kinds[i].type);
    Py_VISIT(state->plain_type);
    return 0;
}

static int module_clear(PyObject *module)
{
    host_state *const state = PyModule_GetState(module);
    if (state == NULL)
        return 0;
    Py_CLEAR(state->error);
    Py_CLEAR(state->graph_type);
    Py_CLEAR(state->kernel_type);
    Py_CLEAR(state->str_out);
    Py_CLEAR(state->str_dlpack);
    Py_CLEAR(state->str_exchange);
    Py_CLEAR(state->str_requires_grad);
    Py_CLEAR(state->versions);
    Py_CLEAR(state->numpy_empty);
    Py_CLEAR(state->numpy_dtype);
    for (uint32_t i = 0; i < HOST_KINDS; i++)
        Py_CLEAR(state->kinds[i].type);
    Py_CLEAR(state->plain_type);
    return 0;
}

/* Types keep the module, and graphs and kernels their types: nothing of the context is in use any more. */
static void module_free(void *module)
{
    host_state *const state = PyModule_GetState(module);
    (void)module_clear(module);
    if (state == NULL)
        return;
    opjit_context_destroy(state->context);
    opjit_pool_destroy(state->pool);
}

static PyModuleDef_Slot slots[] = { { Py_mod_exec, module_exec }, { 0, NULL } };

static PyModuleDef definition = { PyModuleDef_HEAD_INIT, "opjit._opjit", "The extension behind the package opjit.",
                                  sizeof(host_state),    functions,      slots,
                                  module_traverse,       module_clear,   module_free };

PyMODINIT_FUNC PyInit__opjit(void); /* -Wmissing-prototypes */
PyMODINIT_FUNC PyInit__opjit(void)
{
    return PyModuleDef_Init(&definition);
}
