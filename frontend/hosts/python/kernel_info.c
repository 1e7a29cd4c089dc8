/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_info.c - what an opjit.Kernel tells of itself: its arrays, its code, its picture, and what pickles are made
 * of. */
#include "frontend/hosts/python/host.h"

/* ((name, dtype, shape), ...) */
static PyObject *describe(const host_kernel *k, uint32_t begin, uint32_t count)
{
    PyObject *const rows = PyTuple_New((Py_ssize_t)count);
    for (uint32_t i = 0; rows != NULL && i < count; i++) {
        const host_port *const port = &k->ports[begin + i];
        PyObject *const dtype =
            port->takes_bool && port->is_output ? PyUnicode_FromString("bool") : host_type_text(port->dtype);
        PyObject *const shape =
            k->dims != 0 ? host_dynamic_shape(k, begin + i) : host_numbers(port->rank, port->sizes);
        PyObject *const row = dtype != NULL && shape != NULL ? Py_BuildValue("(zNN)", port->name, dtype, shape) : NULL;
        if (row == NULL || PyTuple_SetItem(rows, (Py_ssize_t)i, row) < 0) {
            Py_DECREF(rows);
            return NULL;
        }
    }
    return rows;
}

static PyObject *get_inputs(PyObject *self, void *unused)
{
    (void)unused;
    return describe(host_kernel_of(self), 0, host_kernel_of(self)->inputs);
}

static PyObject *get_outputs(PyObject *self, void *unused)
{
    (void)unused;
    return describe(host_kernel_of(self), host_kernel_of(self)->inputs, host_kernel_of(self)->outputs);
}

static PyObject *get_graph(PyObject *self, void *unused)
{
    (void)unused;
    return Py_NewRef((PyObject *)host_kernel_of(self)->graph);
}

static PyObject *get_dims(PyObject *self, void *unused)
{
    (void)unused;
    return host_dynamic_ranges(host_kernel_of(self));
}

static PyObject *get_info(PyObject *self, void *unused)
{
    host_kernel *const k = host_kernel_of(self);
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    opjit_error error;
    (void)unused;
    if (opjit_kernel_get_info(k->kernel, &info, &error) != OPJIT_OK)
        return host_raise(k->state, &error);
    return Py_BuildValue(
        "{s:s,s:s,s:s,s:K,s:K,s:K,s:K,s:K,s:d,s:O,s:O}", "name", info.name, "target", info.target, "level",
        info.level == OPJIT_LEVEL_PEAK ? "peak" : "quick", "code_bytes", (unsigned long long)info.code_bytes,
        "workspace_bytes", (unsigned long long)info.workspace_bytes, "bytes_read", (unsigned long long)info.bytes_read,
        "bytes_written", (unsigned long long)info.bytes_written, "kept_bytes", (unsigned long long)info.kept_bytes,
        "compile_ms", info.compile_ms, "from_disk", (info.flags & OPJIT_KERNEL_FROM_DISK) != 0 ? Py_True : Py_False,
        "interpreted", (info.flags & OPJIT_KERNEL_INTERPRETED) != 0 ? Py_True : Py_False);
}

/* Texts and pictures are made in Python. */
static PyObject *show(PyObject *self, const char *what)
{
    PyObject *const module = PyImport_ImportModule("opjit._show");
    PyObject *const result = module != NULL ? PyObject_CallMethod(module, what, "O", self) : NULL;
    Py_XDECREF(module);
    return result;
}

static PyObject *get_text(PyObject *self, void *what)
{
    if (host_kernel_of(self)->dims != 0) /* its graph is one of those that it was made of */
        return PyErr_SetString(PyExc_ValueError, "there is no text of a kernel with dynamic dimensions"), NULL;
    return show(self, what);
}

static PyObject *kernel_explain(PyObject *self, PyObject *unused)
{
    (void)unused;
    return get_text(self, "explain");
}

static PyObject *kernel_svg(PyObject *self, PyObject *unused)
{
    (void)unused;
    return show(self, "svg");
}

PyObject *host_kernel_repr(PyObject *self)
{
    return show(self, "text");
}

/* --- copies ------------------------------------------------------------------------------------------------------- */
/* What another process makes the kernel of, without its graph: (image, target, level, interpreted, threads); the image
 * is None where there is none. */
static PyObject *kernel_state(PyObject *self, PyObject *unused)
{
    host_kernel *const k = host_kernel_of(self);
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    const void *image = NULL;
    uint64_t bytes = 0;
    opjit_error error;
    (void)unused;
    if (opjit_kernel_get_info(k->kernel, &info, &error) != OPJIT_OK)
        return host_raise(k->state, &error);
    if ((info.flags & OPJIT_KERNEL_INTERPRETED) == 0 &&
        opjit_kernel_get_image(k->kernel, &image, &bytes, &error) != OPJIT_OK)
        return host_raise(k->state, &error);
    return Py_BuildValue("y#ssOI", image, (Py_ssize_t)bytes, info.target,
                         info.level == OPJIT_LEVEL_PEAK ? "peak" : "quick", k->interprets ? Py_True : Py_False,
                         k->executor != NULL ? k->state->pool_threads : 1);
}

static PyObject *kernel_reduce(PyObject *self, PyObject *unused)
{
    if (host_kernel_of(self)->dims != 0)
        return PyErr_SetString(PyExc_TypeError, "a kernel with dynamic dimensions can't be pickled: it was made by a "
                                                "function; compile it where it is called"),
               NULL;
    PyObject *const module = PyImport_ImportModule("opjit._pickle");
    PyObject *const result = module != NULL ? PyObject_CallMethod(module, "reduce_kernel", "O", self) : NULL;
    (void)unused;
    Py_XDECREF(module);
    return result;
}

/* A kernel never changes, so that it is its own copy. */
static PyObject *kernel_copy(PyObject *self, PyObject *unused)
{
    (void)unused;
    return Py_NewRef(self);
}

/* --- tables ------------------------------------------------------------------------------------------------------- */
PyMethodDef host_kernel_methods[] = {
    { "explain", kernel_explain, METH_NOARGS, "explain() -> str: the IR after each pass, and how each loop is done" },
    { "_repr_svg_", kernel_svg, METH_NOARGS, "What notebooks show: the graph, and what of the output is filled." },
    { "__reduce__", kernel_reduce, METH_NOARGS, "Pickles the image with the graph." },
    { "__copy__", kernel_copy, METH_NOARGS, "The kernel itself, which never changes." },
    { "__deepcopy__", kernel_copy, METH_O, "The kernel itself, which never changes." },
    { "_state", kernel_state, METH_NOARGS, "_state() -> (image, target, level, interpreted, threads)" },
    { "_xla", host_kernel_xla, METH_NOARGS, "_xla() -> the number that XLA's programs have for it" },
    { "_check", host_kernel_check, METH_O, "_check(((dtype, shape), ...)): opjit.Error says which does not fit" },
    { NULL, NULL, 0, NULL }
};

PyGetSetDef host_kernel_fields[] = {
    { "inputs", get_inputs, NULL, "((name, dtype, shape), ...): the arrays of a call, in order", NULL },
    { "outputs", get_outputs, NULL, "((name, dtype, shape), ...): its results", NULL },
    { "dims", get_dims, NULL, "{name: (least, largest)}: its dynamic dimensions", NULL },
    { "graph", get_graph, NULL, "The graph that it was compiled from", NULL },
    { "info", get_info, NULL, "{\"name\": ..., \"target\": ...}: what opjit_kernel_info says", NULL },
    { "ir", get_text, NULL, "opjit's IR as it goes to code generation", "ir" },
    { "asm", get_text, NULL, "The assembly of the same code", "asm" },
    { NULL, NULL, NULL, NULL, NULL }
};
