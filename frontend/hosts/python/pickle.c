/* SPDX-License-Identifier: Apache-2.0 */
/* pickle.c - what copies of a graph are made of: the calls that built it, with plain values as their arguments.
 * opjit/_pickle.py makes them again. */
#include "frontend/hosts/python/host.h"

static PyObject *plain(PyObject *value);

static PyObject *plain_tuple(PyObject *sequence)
{
    const Py_ssize_t count = PySequence_Size(sequence);
    PyObject *const tuple = count >= 0 ? PyTuple_New(count) : NULL;
    for (Py_ssize_t i = 0; tuple != NULL && i < count; i++) {
        PyObject *const item = PySequence_GetItem(sequence, i);
        PyObject *const copy = item != NULL ? plain(item) : NULL;
        Py_XDECREF(item);
        if (copy == NULL || PyTuple_SetItem(tuple, i, copy) < 0) {
            Py_DECREF(tuple);
            return NULL;
        }
    }
    return tuple;
}

static PyObject *plain_dict(PyObject *dict)
{
    PyObject *const result = PyDict_New();
    PyObject *name, *value;
    Py_ssize_t at = 0;
    while (result != NULL && PyDict_Next(dict, &at, &name, &value)) {
        PyObject *const copy = plain(value);
        const int status = copy != NULL ? PyDict_SetItem(result, name, copy) : -1;
        Py_XDECREF(copy);
        if (status != 0) {
            Py_DECREF(result);
            return NULL;
        }
    }
    return result;
}

/* A value that nobody else can change, of Python's own types: numbers of NumPy become Python's. */
static PyObject *plain(PyObject *value)
{
    PyObject *result;
    if (value == Py_None || PyUnicode_CheckExact(value) || PyBytes_CheckExact(value) || PyBool_Check(value) ||
        PyLong_CheckExact(value) || PyFloat_CheckExact(value))
        return Py_NewRef(value);
    if (PyDict_Check(value))
        return plain_dict(value);
    if (PyUnicode_Check(value))
        return PyUnicode_FromObject(value);
    result = PyNumber_Index(value);
    if (result == NULL) {
        PyErr_Clear();
        result = PyTuple_Check(value) || PyList_Check(value) ? NULL : PyNumber_Float(value);
    }
    if (result != NULL)
        return result;
    PyErr_Clear();
    return plain_tuple(value);
}

PyObject *host_graph_keep(host_graph *graph, const char *method, PyObject *args, PyObject *result)
{
    PyObject *const copy = result != NULL ? plain(args) : NULL;
    PyObject *const row = copy != NULL ? Py_BuildValue("(sOO)", method, copy, result) : NULL;
    if (graph->steps == NULL)
        graph->steps = PyList_New(0);
    if (row == NULL || graph->steps == NULL || PyList_Append(graph->steps, row) != 0)
        Py_CLEAR(result);
    Py_XDECREF(row);
    Py_XDECREF(copy);
    return result;
}

PyObject *host_graph_steps(PyObject *self, PyObject *unused)
{
    host_graph *const graph = (host_graph *)(void *)self;
    opjit_error error;
    (void)unused;
    if (graph->graph != NULL && opjit_graph_status(graph->graph, &error) != OPJIT_OK)
        return host_raise(graph->state, &error);
    return graph->steps != NULL ? PyList_AsTuple(graph->steps) : PyTuple_New(0);
}

PyObject *host_graph_reduce(PyObject *self, PyObject *unused)
{
    PyObject *const module = PyImport_ImportModule("opjit._pickle");
    PyObject *const result = module != NULL ? PyObject_CallMethod(module, "reduce_graph", "O", self) : NULL;
    (void)unused;
    Py_XDECREF(module);
    return result;
}
