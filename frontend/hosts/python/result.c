/* SPDX-License-Identifier: Apache-2.0 */
/* result.c - arrays for the results of a call that brings none. */
#include "frontend/hosts/python/host.h"

/* NumPy's function that makes an array in half of numpy.empty's time, out of its table for C: the places are the same
 * in versions 1 and 2. */
static void find_maker(host_state *state)
{
    enum { C_VERSION = 0, ARRAY_TYPE = 2, NEW_FROM_DESCR = 94 };
    static const char *const modules[] = { "numpy._core._multiarray_umath", "numpy.core._multiarray_umath" };
    for (uint32_t i = 0; i < 2 && state->numpy_new == NULL; i++) {
        PyObject *const module = PyImport_ImportModule(modules[i]);
        PyObject *const capsule = module != NULL ? PyObject_GetAttrString(module, "_ARRAY_API") : NULL;
        void **const table = capsule != NULL ? PyCapsule_GetPointer(capsule, NULL) : NULL;
        unsigned (*version)(void) = NULL;
        if (table != NULL)
            *(void **)&version = table[C_VERSION];
        if (version != NULL && (version() >> 24 == 1 || version() >> 24 == 2)) {
            *(void **)&state->numpy_new = table[NEW_FROM_DESCR];
            state->numpy_array = table[ARRAY_TYPE]; /* as long as the process */
        }
        Py_XDECREF(capsule);
        Py_XDECREF(module);
        PyErr_Clear();
    }
}

/* numpy.empty and numpy.dtype, once; without NumPy there are no results, only out=. */
static int import_numpy(host_state *state)
{
    PyObject *const numpy = PyImport_ImportModule("numpy");
    state->numpy_dtype = numpy != NULL ? PyObject_GetAttrString(numpy, "dtype") : NULL;
    state->numpy_empty = state->numpy_dtype != NULL ? PyObject_GetAttrString(numpy, "empty") : NULL;
    Py_XDECREF(numpy);
    if (state->numpy_empty != NULL)
        find_maker(state);
    return state->numpy_empty != NULL ? 0 : -1;
}

/* A new array of the shape and type that row has. */
static PyObject *new_array(const host_state *state, const host_port *port, PyObject *row)
{
    if (state->numpy_new == NULL)
        return PyObject_Call(state->numpy_empty, row, NULL);
    return state->numpy_new(state->numpy_array, Py_NewRef(PyTuple_GetItem(row, 1)), (int)port->rank, port->sizes, NULL,
                            NULL, 0, NULL);
}

/* The shape of an output and its type as NumPy has it: the arguments of numpy.empty. */
static PyObject *shape_of(host_kernel *k, uint32_t output, const host_port *port)
{
    PyObject *name, *dtype, *shape;
    if (k->shapes[output] != NULL && k->dims != 0) {
        shape = host_numbers(port->rank, port->sizes);
        return shape != NULL ? Py_BuildValue("(NO)", shape, PyTuple_GetItem(k->shapes[output], 1)) : NULL;
    }
    if (k->shapes[output] != NULL)
        return Py_NewRef(k->shapes[output]);
    if (k->state->numpy_empty == NULL && import_numpy(k->state) != 0)
        return NULL;
    name = port->takes_bool ? PyUnicode_FromString("bool") : host_type_text(port->dtype);
    dtype = name != NULL ? PyObject_CallFunctionObjArgs(k->state->numpy_dtype, name, NULL) : NULL;
    shape = host_numbers(port->rank, port->sizes);
    if (dtype != NULL && shape != NULL)
        k->shapes[output] = PyTuple_Pack(2, shape, dtype);
    Py_XDECREF(name);
    Py_XDECREF(dtype);
    Py_XDECREF(shape);
    return Py_XNewRef(k->shapes[output]);
}

/* A function and its arguments, which make arrays like the first one for an output whose shape is row's; kept for the
 * next call, unless sizes are those of the call. */
static PyObject *maker_of(host_kernel *k, uint32_t output, PyObject *row, PyObject *first)
{
    PyObject *const type = (PyObject *)Py_TYPE(first);
    PyObject *module, *maker, *before;
    if (k->makers[2 * output] == type)
        return Py_NewRef(k->makers[2 * output + 1]);
    module = PyImport_ImportModule("opjit._arrays");
    maker = module != NULL ? PyObject_CallMethod(module, "maker", "OO", first, row) : NULL;
    Py_XDECREF(module);
    if (maker == NULL || k->dims != 0)
        return maker;
    for (uint32_t i = 0; i < 2; i++) {
        before = k->makers[2 * output + i];
        k->makers[2 * output + i] = Py_NewRef(i == 0 ? type : maker);
        Py_XDECREF(before);
    }
    return maker;
}

PyObject *host_result_make(host_kernel *k, uint32_t output, const host_port *port, PyObject *first)
{
    PyObject *const row = shape_of(k, output, port);
    PyObject *maker, *result;
    if (row == NULL)
        return NULL;
    if (first == NULL || PyObject_CheckBuffer(first)) {
        result = new_array(k->state, port, row);
    } else {
        maker = maker_of(k, output, row, first);
        result = maker != NULL ? PyObject_Call(PyTuple_GetItem(maker, 0), PyTuple_GetItem(maker, 1), NULL) : NULL;
        Py_XDECREF(maker);
    }
    Py_DECREF(row);
    return result;
}

/* The memory of its arrays is the first member of NumPy's structure, from which NumPy's macros read it. */
void *host_result_data(const host_state *state, PyObject *result)
{
    const struct numpy_array {
        PyObject_HEAD void *data;
    } *const array = (struct numpy_array *)(void *)result;
    return state->numpy_new != NULL && Py_TYPE(result) == state->numpy_array ? array->data : NULL;
}
