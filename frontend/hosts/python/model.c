/* SPDX-License-Identifier: Apache-2.0 */
/* model.c - opjit._opjit.Graph of an .onnx model: opjit/model.h. */
#define _XOPEN_SOURCE 700

#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "frontend/hosts/python/host.h"

/* What a model is read with; items of the dictionaries, which hold the names. */
typedef struct model_args {
    opjit_model_options options;
    opjit_model_dim dims[64];
    opjit_model_input inputs[64];
    uint64_t sizes[64][8];
} model_args;

static int read_dims(model_args *m, PyObject *dims)
{
    PyObject *name, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(dims, &at, &name, &value)) {
        opjit_model_dim *const dim = &m->dims[m->options.dim_count];
        if (m->options.dim_count++ == 64) {
            PyErr_SetString(PyExc_ValueError, "dims: more than 64");
            return -1;
        }
        dim->name = PyUnicode_AsUTF8AndSize(name, NULL);
        dim->size = PyLong_AsUnsignedLongLong(value);
        if (PyErr_Occurred())
            return -1;
    }
    return 0;
}

/* shapes: {name: sizes}; values: {name: array}, which become constants. */
static int read_model_inputs(model_args *m, PyObject *shapes, PyObject *values, PyObject *held)
{
    PyObject *name, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(shapes, &at, &name, &value)) {
        opjit_model_input *const input = &m->inputs[m->options.input_count];
        uint32_t sizes[8];
        if (m->options.input_count++ == 64)
            return PyErr_SetString(PyExc_ValueError, "shapes: more than 64"), -1;
        input->name = PyUnicode_AsUTF8AndSize(name, NULL);
        if (input->name == NULL || host_sizes(value, sizes, &input->rank) != 0)
            return -1;
        input->sizes = m->sizes[input - m->inputs];
        for (uint32_t d = 0; d < input->rank; d++)
            m->sizes[input - m->inputs][d] = sizes[d];
    }
    at = 0;
    while (PyDict_Next(values, &at, &name, &value)) { /* (dtype, sizes, bytes) */
        opjit_model_input *const input = &m->inputs[m->options.input_count];
        PyObject *dtype, *shape, *data;
        uint32_t sizes[8];
        char *bytes;
        Py_ssize_t size;
        if (m->options.input_count++ == 64)
            return PyErr_SetString(PyExc_ValueError, "values: more than 64"), -1;
        input->name = PyUnicode_AsUTF8AndSize(name, NULL);
        if (input->name == NULL || !PyArg_ParseTuple(value, "OOO", &dtype, &shape, &data) ||
            host_type_of(dtype, &input->dtype) != 0 || host_sizes(shape, sizes, &input->rank) != 0 ||
            PyBytes_AsStringAndSize(data, &bytes, &size) != 0 || PyList_Append(held, data) != 0)
            return -1;
        input->sizes = m->sizes[input - m->inputs];
        for (uint32_t d = 0; d < input->rank; d++)
            m->sizes[input - m->inputs][d] = sizes[d];
        input->value = bytes;
        input->bytes = (uint64_t)size;
    }
    return 0;
}

static int path_of(PyObject *object, PyObject **out, const char **out_text)
{
    if (!PyUnicode_FSConverter(object, out))
        return -1;
    *out_text = PyBytes_AsString(*out);
    return 0;
}

/* What a copy needs to find the file again: (path, seconds, nanoseconds, bytes). */
static PyObject *stamp_of(const char *path)
{
    char whole[PATH_MAX];
    struct stat file;
    PyObject *name;
    if (realpath(path, whole) == NULL || stat(whole, &file) != 0)
        return PyErr_SetFromErrno(PyExc_OSError), NULL;
    name = PyUnicode_DecodeFSDefault(whole);
    return name != NULL ? Py_BuildValue("(NLLL)", name, (long long)file.st_mtim.tv_sec, (long long)file.st_mtim.tv_nsec,
                                        (long long)file.st_size)
                        : NULL;
}

/* Reads the model; *out_source is what a copy is made of. */
static int read_model(host_graph *graph, PyObject *source, const opjit_model_options *options, PyObject **out_source)
{
    opjit_context *const context = host_context(graph->state);
    PyObject *path = NULL;
    const char *text;
    opjit_status status;
    opjit_error error;
    if (context == NULL)
        return -1;
    if (PyBytes_Check(source)) {
        *out_source = Py_NewRef(source);
        if (PyList_Append(graph->held, source) != 0)
            return -1;
        status = opjit_model_read(context, PyBytes_AsString(source), (uint64_t)PyBytes_Size(source), options,
                                  &graph->model, &error);
    } else {
        if (path_of(source, &path, &text) != 0)
            return -1;
        status = opjit_model_open(context, text, options, &graph->model, &error);
        *out_source = status == OPJIT_OK ? stamp_of(text) : NULL;
        Py_DECREF(path);
    }
    if (status != OPJIT_OK)
        host_raise(graph->state, &error);
    return status == OPJIT_OK && *out_source != NULL ? 0 : -1;
}

opjit_graph *host_graph_built(host_graph *graph)
{
    if (graph->graph == NULL && graph->model != NULL)
        graph->graph = opjit_model_graph(graph->model);
    return graph->graph;
}

int host_graph_open(host_graph *graph, PyObject *args)
{
    model_args *const m = PyMem_Calloc(1, sizeof *m);
    PyObject *source, *dims, *shapes, *values, *folder, *path = NULL, *kept = NULL;
    int status = -1, sample = 0;
    if (m == NULL)
        return PyErr_NoMemory(), -1;
    m->options = (opjit_model_options)OPJIT_MODEL_OPTIONS_INIT;
    m->options.dims = m->dims;
    m->options.inputs = m->inputs;
    graph->held = PyList_New(0);
    if (graph->held != NULL && PyArg_ParseTuple(args, "OOOOOp", &source, &dims, &shapes, &values, &folder, &sample) &&
        read_dims(m, dims) == 0 && read_model_inputs(m, shapes, values, graph->held) == 0 &&
        (folder == Py_None || path_of(folder, &path, &m->options.folder) == 0))
        status = 0;
    m->options.flags = sample ? OPJIT_MODEL_SAMPLE : 0;
    if (status == 0)
        status = read_model(graph, source, &m->options, &kept);
    if (status == 0) {
        graph->has_values = PyDict_Size(values) > 0;
        PyObject *const step = Py_BuildValue("OOOOO", kept, dims, shapes, values, folder);
        PyObject *const done = step != NULL ? host_graph_keep(graph, "model", step, Py_NewRef(Py_None)) : NULL;
        status = done != NULL ? 0 : -1;
        Py_XDECREF(done);
        Py_XDECREF(step);
    }
    Py_XDECREF(kept);
    Py_XDECREF(path);
    PyMem_Free(m);
    return status;
}
