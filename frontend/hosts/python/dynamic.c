/* SPDX-License-Identifier: Apache-2.0 */
/* dynamic.c - kernels with dynamic dimensions: compile_dynamic(), whose graph a Python function builds for given sizes;
 * how the shapes of a kernel's arrays follow from its dimensions; the dimensions of a call, out of its arrays. */
#include <stdio.h>
#include <string.h>

#include <opjit/dynamic.h>

#include "frontend/hosts/python/host.h"

#define SAMPLES 64     /* that are kept, of the graph's shapes */
#define MORE_SAMPLES 3 /* that are made beside those of the compile, so that a form fits by no accident */
#define RAISED "the function that builds the graph raised an exception"

/* The shapes of a graph's inputs and outputs, in the order of host_graph_port, for some sizes. */
typedef struct sample {
    uint64_t dims[OPJIT_MAX_DIMS];
    host_shape *shapes;
} sample;

typedef struct builder {
    host_state *state;
    PyObject *function; /* borrowed */
    opjit_dim dims[OPJIT_MAX_DIMS];
    uint32_t dim_count;
    PyThreadState *thread; /* while the GIL is given away */
    host_graph *graph;     /* the last one, busy; owned */
    PyObject *raised[3];   /* by the function, the last time */
    sample samples[SAMPLES];
    uint32_t count, ports; /* samples; inputs and outputs of each */
} builder;

/* --- building ----------------------------------------------------------------------------------------------------- */

static void forget_graph(builder *b)
{
    if (b->graph != NULL)
        b->graph->busy = false;
    Py_CLEAR(b->graph);
}

static int note_shapes(builder *b, const uint64_t *dims)
{
    const uint32_t ports = host_graph_ports(b->graph);
    sample *const s = &b->samples[b->count];
    if (b->count == SAMPLES)
        return 0;
    if (b->count != 0 && ports != b->ports)
        return PyErr_SetString(PyExc_ValueError, "for other sizes the graph has other inputs or outputs"), -1;
    b->ports = ports;
    s->shapes = PyMem_Calloc((size_t)ports + 1, sizeof *s->shapes);
    if (s->shapes == NULL)
        return PyErr_NoMemory(), -1;
    memcpy(s->dims, dims, b->dim_count * sizeof *dims);
    for (uint32_t i = 0; i < ports; i++)
        host_graph_port(b->graph, i, &s->shapes[i]);
    b->count++;
    return 0;
}

/* Calls the function; -1: it raised. */
static int call_function(builder *b, const uint64_t *dims)
{
    PyObject *const sizes = PyTuple_New((Py_ssize_t)b->dim_count), *made;
    bool all = true; /* elements are there: arrays without any are not as long as they say */
    for (uint32_t d = 0; sizes != NULL && d < b->dim_count; d++) {
        all = all && dims[d] != 0;
        if (PyTuple_SetItem(sizes, (Py_ssize_t)d, PyLong_FromUnsignedLongLong(dims[d])) != 0)
            return -1;
    }
    if (b->graph != NULL)
        b->graph->busy = false;
    made = sizes != NULL ? PyObject_CallObject(b->function, sizes) : NULL;
    Py_XDECREF(sizes);
    if (made == NULL)
        return -1;
    if (!PyObject_TypeCheck(made, (PyTypeObject *)b->state->graph_type) || host_graph_of(made) == NULL) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "the function has to give a graph");
        Py_DECREF(made);
        return -1;
    }
    forget_graph(b); /* not before: the last sizes that were asked for may be ones that the graph can't have */
    b->graph = (host_graph *)(void *)made;
    b->graph->busy = true;
    return all ? note_shapes(b, dims) : 0;
}

static void forget_raised(builder *b)
{
    for (int i = 0; i < 3; i++) {
        Py_XDECREF(b->raised[i]);
        b->raised[i] = NULL;
    }
}

/* An opjit_build_fn, which is called without the GIL. */
static opjit_status build(void *user, const uint64_t *dims, opjit_graph **out, opjit_error *error)
{
    builder *const b = user;
    PyEval_RestoreThread(b->thread);
    const int status = call_function(b, dims);
    if (status != 0) {
        forget_raised(b);
        PyErr_Fetch(&b->raised[0], &b->raised[1], &b->raised[2]);
        if (error != NULL)
            *error = (opjit_error){ .status = OPJIT_INVALID_ARGUMENT, .node = -1, .index = -1, .message = RAISED };
    } else {
        *out = host_graph_built(b->graph);
    }
    b->thread = PyEval_SaveThread();
    return status == 0 ? OPJIT_OK : OPJIT_INVALID_ARGUMENT;
}

/* --- how shapes follow from dimensions ---------------------------------------------------------------------------- */

static int64_t product(const host_term *t, const uint64_t *dims)
{
    return (int64_t)((t->a == 0 ? 1 : dims[t->a - 1]) * (t->b == 0 ? 1 : dims[t->b - 1]));
}

static int64_t value_of(const host_form *f, const uint64_t *dims)
{
    if (f->by != 0)
        return f->base + f->terms[0].factor * (((int64_t)dims[f->terms[0].a - 1] + f->plus) / f->by);
    return f->base + f->terms[0].factor * product(&f->terms[0], dims) +
           f->terms[1].factor * product(&f->terms[1], dims);
}

static bool fits(const builder *b, uint32_t i, uint32_t d, const host_form *f)
{
    for (uint32_t s = 0; s < b->count; s++)
        if (value_of(f, b->samples[s].dims) != b->samples[s].shapes[i].sizes[d])
            return false;
    return true;
}

/* Factors by which the terms give the sizes of samples 0, s and t, as far as whole numbers do. */
static void solve(const builder *b, uint32_t i, uint32_t d, uint32_t s, uint32_t t, host_form *f)
{
    const uint32_t at[2] = { s, t };
    int64_t p[2], q[2], v[2];
    for (int k = 0; k < 2; k++) {
        const sample *const first = &b->samples[0], *const own = &b->samples[at[k]];
        p[k] = product(&f->terms[0], own->dims) - product(&f->terms[0], first->dims);
        q[k] = product(&f->terms[1], own->dims) - product(&f->terms[1], first->dims);
        v[k] = own->shapes[i].sizes[d] - first->shapes[i].sizes[d];
    }
    const double det = (double)p[0] * (double)q[1] - (double)p[1] * (double)q[0];
    f->terms[0].factor = f->terms[1].factor = 0;
    if (det != 0) { /* fits() will tell if rounding has mattered */
        f->terms[0].factor = (int64_t)(((double)v[0] * (double)q[1] - (double)v[1] * (double)q[0]) / det);
        f->terms[1].factor = (int64_t)(((double)p[0] * (double)v[1] - (double)p[1] * (double)v[0]) / det);
    } else if (p[0] != 0) {
        f->terms[0].factor = v[0] / p[0];
    }
    f->base = 0;
    f->base = b->samples[0].shapes[i].sizes[d] - value_of(f, b->samples[0].dims);
}

static bool fit_terms(const builder *b, uint32_t i, uint32_t d, host_form *f)
{
    for (uint32_t s = 1; s < b->count; s++)
        for (uint32_t t = s + 1; t < b->count; t++) {
            solve(b, i, d, s, t, f);
            if (fits(b, i, d, f))
                return true;
        }
    return false;
}

/* Products in order: 1, the dimensions, two of them; false past the last one. */
static bool next_term(uint32_t dim_count, host_term *t)
{
    if (t->b == 0)
        *t = t->a < dim_count ? (host_term){ .a = (uint8_t)(t->a + 1) } : (host_term){ .a = 1, .b = 1 };
    else if (t->b < dim_count)
        t->b++;
    else
        *t = (host_term){ .a = (uint8_t)(t->a + 1), .b = (uint8_t)(t->a + 1) };
    return t->a <= dim_count;
}

/* The simplest form that has all samples. */
static bool find_form(const builder *b, uint32_t i, uint32_t d, host_form *f)
{
    host_term t = { .a = 0 }, u = { .a = 0 };
    do {
        *f = (host_form){ .terms = { t } };
        if (fit_terms(b, i, d, f))
            return true;
    } while (next_term(b->dim_count, &t));
    for (t = (host_term){ .a = 1 }; t.a <= b->dim_count; next_term(b->dim_count, &t))
        for (u = t; next_term(b->dim_count, &u);) {
            *f = (host_form){ .terms = { t, u } };
            if (fit_terms(b, i, d, f))
                return true;
        }
    return false;
}

/* A size of the kernel's buffer i, for `size` of dimension a and the largest sizes of others. */
static int64_t kernel_size(const builder *b, const host_kernel *k, uint32_t i, uint32_t d, uint32_t a, uint64_t size)
{
    uint64_t dims[OPJIT_MAX_DIMS], sizes[8] = { 0 }, bytes;
    for (uint32_t e = 0; e < b->dim_count; e++)
        dims[e] = e == a ? size : b->dims[e].hi;
    (void)!opjit_kernel_sizes(k->kernel, dims, b->dim_count, i, sizes, &bytes, NULL); /* the sizes are in bounds */
    return (int64_t)sizes[d];
}

/* A quotient of one dimension, as the kernel has it: between two changes of the size lies what is divided by. */
static bool find_quotient(const builder *b, const host_kernel *k, uint32_t i, uint32_t d, host_form *f)
{
    for (uint32_t a = 0; a < b->dim_count; a++) {
        uint64_t n = b->dims[a].lo == 0 ? 1 : b->dims[a].lo;
        int64_t at[2] = { 0 }, size[3] = { kernel_size(b, k, i, d, a, n) };
        for (int found = 0; found < 2 && ++n <= b->dims[a].hi;)
            if ((size[found + 1] = kernel_size(b, k, i, d, a, n)) != size[found])
                at[found++] = (int64_t)n;
        const int64_t by = at[1] - at[0], plus = by < 2 ? 0 : (by - at[0] % by) % by, factor = size[2] - size[1];
        *f = (host_form){ .terms = { { .a = (uint8_t)(a + 1), .factor = factor } }, .plus = plus, .by = by };
        f->base = by < 2 ? 0 : size[1] - factor * ((at[0] + plus) / by);
        if (by >= 2 && fits(b, k->rows[i], d, f))
            return true;
    }
    return false;
}

/* A size of an input that one dimension alone makes is where that is read; a plain one is read first. */
static void note_source(host_kernel *k, const host_form *f, uint32_t input, uint32_t axis)
{
    const host_term *const own = &f->terms[0];
    if (own->factor < 1 || own->a == 0 || own->b != 0 || f->terms[1].factor != 0 || f->by != 0)
        return;
    host_source *const s = &k->sources[own->a - 1];
    if (s->factor == 0 || (own->factor == 1 && f->base == 0 && (s->factor != 1 || s->base != 0)))
        *s = (host_source){ f->base, own->factor, input, axis };
}

/* The dimension; of a size that none gives, the next one below, whose shape the array then hasn't. */
static uint64_t dim_of(const host_source *s, int64_t size)
{
    return size < s->base ? 0 : (uint64_t)((size - s->base) / s->factor);
}

static int find_forms(const builder *b, host_kernel *k)
{
    const uint32_t ports = k->inputs + k->outputs;
    k->forms = PyMem_Calloc((size_t)ports + 1, sizeof *k->forms);
    if (k->forms == NULL)
        return PyErr_NoMemory(), -1;
    for (uint32_t i = 0; i < ports; i++) {
        const uint32_t at = k->rows[i];
        for (uint32_t s = 1; s < b->count; s++)
            if (b->samples[s].shapes[at].rank != k->ports[i].rank)
                return PyErr_SetString(PyExc_ValueError, "for other sizes arrays have other numbers of dimensions"), -1;
        for (uint32_t d = 0; d < k->ports[i].rank; d++) {
            host_form *const f = &k->forms[i].sizes[d];
            if (!find_form(b, at, d, f) && !find_quotient(b, k, i, d, f)) {
                PyErr_Format(PyExc_ValueError, "buffer %u (%s): size %u is no sum, product or quotient of sizes", i,
                             k->ports[i].name != NULL ? k->ports[i].name : "", d);
                return -1;
            }
            if (i < k->inputs)
                note_source(k, f, i, d);
        }
    }
    k->dims = b->dim_count;
    return 0;
}

/* More samples, anywhere within the bounds. */
static void sample_more(builder *b)
{
    uint32_t draw = 12345;
    for (uint32_t i = 0; i < MORE_SAMPLES; i++) {
        uint64_t dims[OPJIT_MAX_DIMS];
        for (uint32_t d = 0; d < b->dim_count; d++) {
            draw = draw * 1664525u + 1013904223u;
            const uint64_t lo = b->dims[d].lo == 0 ? 1 : b->dims[d].lo;
            dims[d] = lo + (draw >> 8) % (b->dims[d].hi - lo + 1);
        }
        if (call_function(b, dims) != 0)
            PyErr_Clear(); /* sizes that the graph can't have */
    }
}

/* --- compile_dynamic ---------------------------------------------------------------------------------------------- */

static int read_ranges(builder *b, PyObject *ranges)
{
    const Py_ssize_t count = PyTuple_Size(ranges);
    if (count < 1 || count > (Py_ssize_t)OPJIT_MAX_DIMS)
        return PyErr_Format(PyExc_ValueError, "dims: %zd ranges, must be 1 to %u", count, OPJIT_MAX_DIMS), -1;
    for (; b->dim_count < (uint32_t)count; b->dim_count++) {
        opjit_dim *const dim = &b->dims[b->dim_count];
        unsigned long long lo, hi, typical;
        if (!PyArg_ParseTuple(PyTuple_GetItem(ranges, (Py_ssize_t)b->dim_count), "sKKK", &dim->name, &lo, &hi,
                              &typical))
            return -1;
        dim->lo = lo;
        dim->hi = hi;
        dim->typical = typical;
    }
    return 0;
}

static PyObject *finish(builder *b, opjit_kernel *kernel, const opjit_executor *executor)
{
    /* a model's weights are read where the graph of the kernel has them: this one, not those of more samples */
    host_graph *const graph = (host_graph *)(void *)Py_NewRef((PyObject *)b->graph);
    PyObject *const result = host_kernel_new(b->state, kernel, graph, executor);
    sample_more(b);
    graph->busy = false;
    Py_DECREF((PyObject *)graph);
    if (result == NULL || find_forms(b, host_kernel_of(result)) == 0)
        return result;
    Py_DECREF(result);
    return NULL;
}

/* compile_dynamic(function, ((name, lo, hi, typical), ...), level, interpret, threads, borrow) */
static PyObject *compile_dynamic(builder *b, PyObject *args)
{
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    PyObject *ranges, *result;
    const char *level;
    int interpret, borrow;
    unsigned threads;
    opjit_kernel *kernel = NULL;
    opjit_context *context;
    opjit_status status;
    opjit_error error;
    if (!PyArg_ParseTuple(args, "OO!spIp", &b->function, &PyTuple_Type, &ranges, &level, &interpret, &threads,
                          &borrow) ||
        host_read_level(level, &options.level) != 0 || read_ranges(b, ranges) != 0 ||
        (context = host_context(b->state)) == NULL)
        return NULL;
    options.executor = host_executor(b->state, threads);
    if (PyErr_Occurred())
        return NULL;
    options.flags = (interpret ? OPJIT_COMPILE_INTERPRET : 0) | (borrow ? OPJIT_COMPILE_BORROW_CONSTANTS : 0);
    b->thread = PyEval_SaveThread();
    status = opjit_graph_compile_dynamic(context, b->dims, b->dim_count, build, b, &options, &kernel, &error);
    PyEval_RestoreThread(b->thread);
    if (status != OPJIT_OK && b->raised[0] != NULL && strcmp(error.message, RAISED) == 0) {
        PyErr_Restore(b->raised[0], b->raised[1], b->raised[2]);
        memset(b->raised, 0, sizeof b->raised);
        return NULL;
    }
    if (status != OPJIT_OK)
        return host_raise(b->state, &error);
    result = finish(b, kernel, options.executor);
    if (result != NULL)
        host_kernel_of(result)->interprets = interpret != 0;
    return result;
}

PyObject *host_compile_dynamic(PyObject *module, PyObject *args)
{
    builder *const b = PyMem_Calloc(1, sizeof *b);
    PyObject *result;
    if (b == NULL)
        return PyErr_NoMemory();
    b->state = PyModule_GetState(module);
    result = compile_dynamic(b, args);
    forget_graph(b);
    forget_raised(b);
    for (uint32_t i = 0; i < b->count; i++)
        PyMem_Free(b->samples[i].shapes);
    PyMem_Free(b);
    return result;
}

/* --- calls -------------------------------------------------------------------------------------------------------- */

/* The kernel's. */
static const char *dim_name(const host_kernel *k, uint32_t d)
{
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    return opjit_kernel_get_info(k->kernel, &info, NULL) == OPJIT_OK ? opjit_kernel_dim_name(&info, d) : "";
}

/* The dimensions that dims= says. */
static int read_given(const host_kernel *k, PyObject *given, uint64_t *dims, bool *known)
{
    PyObject *name, *value;
    Py_ssize_t at = 0;
    if (!PyDict_Check(given))
        return PyErr_SetString(PyExc_TypeError, "dims: a dictionary of sizes by name is needed"), -1;
    while (PyDict_Next(given, &at, &name, &value)) {
        uint32_t d = 0;
        while (d < k->dims && (!PyUnicode_Check(name) || PyUnicode_CompareWithASCIIString(name, dim_name(k, d)) != 0))
            d++;
        if (d == k->dims)
            return PyErr_Format(PyExc_TypeError, "there is no dimension %R", name), -1;
        dims[d] = PyLong_AsUnsignedLongLong(value);
        known[d] = true;
        if (PyErr_Occurred())
            return -1;
    }
    return 0;
}

int host_dynamic_dims(const host_kernel *k, const host_array *arrays, PyObject *given, uint64_t *dims)
{
    bool known[OPJIT_MAX_DIMS] = { false };
    if (given != NULL && read_given(k, given, dims, known) != 0)
        return -1;
    for (uint32_t d = 0; d < k->dims; d++) {
        const host_source *const s = &k->sources[d];
        if (known[d])
            continue;
        if (s->factor == 0) {
            PyErr_Format(PyExc_TypeError, "dimension %s follows from no size of an input: give dims={\"%s\": ...}",
                         dim_name(k, d), dim_name(k, d));
            return -1;
        }
        dims[d] = (uint32_t)arrays[s->input].tensor.rank == k->ports[s->input].rank
                      ? dim_of(s, arrays[s->input].tensor.sizes[s->axis])
                      : k->lo[d]; /* the check of the array will say that its rank is wrong */
    }
    return 0;
}

int host_dynamic_ports(const host_kernel *k, const uint64_t *dims, host_port *ports)
{
    for (uint32_t i = 0; i < k->inputs + k->outputs; i++) {
        uint64_t sizes[8], ignored[8];
        opjit_error error;
        ports[i] = k->ports[i];
        if (opjit_kernel_sizes(k->kernel, dims, k->dims, i, ignored, &ports[i].bytes, &error) != OPJIT_OK)
            return host_raise(k->state, &error), -1;
        for (uint32_t d = 0; d < ports[i].rank; d++)
            sizes[d] = (uint64_t)value_of(&k->forms[i].sizes[d], dims);
        host_reshape_port(&ports[i], ports[i].rank, sizes);
    }
    return 0;
}

/* "n", "2*n", "n*m + k + 1", or a number. */
static PyObject *form_object(const host_kernel *k, const host_form *f)
{
    char text[400] = "";
    size_t length = 0;
    for (int i = 0; i < 2; i++) {
        const host_term *const t = &f->terms[i];
        const long long factor = t->factor < 0 && length != 0 ? -(long long)t->factor : (long long)t->factor;
        if (t->factor == 0 || t->a == 0)
            continue;
        if (length != 0)
            length += (size_t)snprintf(text + length, sizeof text - length, t->factor < 0 ? " - " : " + ");
        if (factor != 1)
            length += (size_t)snprintf(text + length, sizeof text - length, "%lld*", factor);
        if (f->by != 0)
            length += (size_t)snprintf(text + length, sizeof text - length, "((%s + %lld)//%lld)",
                                       dim_name(k, t->a - 1u), (long long)f->plus, (long long)f->by);
        else
            length += (size_t)snprintf(text + length, sizeof text - length, "%s", dim_name(k, t->a - 1u));
        if (t->b != 0)
            length += (size_t)snprintf(text + length, sizeof text - length, "*%s", dim_name(k, t->b - 1u));
    }
    if (length == 0)
        return PyLong_FromLongLong(value_of(f, (const uint64_t[OPJIT_MAX_DIMS]){ 0 }));
    if (f->base != 0)
        snprintf(text + length, sizeof text - length, " %c %lld", f->base < 0 ? '-' : '+',
                 (long long)(f->base < 0 ? -f->base : f->base));
    return PyUnicode_FromString(text);
}

PyObject *host_dynamic_shape(const host_kernel *k, uint32_t port)
{
    PyObject *const shape = PyTuple_New((Py_ssize_t)k->ports[port].rank);
    for (uint32_t d = 0; shape != NULL && d < k->ports[port].rank; d++)
        if (PyTuple_SetItem(shape, (Py_ssize_t)d, form_object(k, &k->forms[port].sizes[d])) != 0) {
            Py_DECREF(shape);
            return NULL;
        }
    return shape;
}

/* {name: (lo, hi)} */
PyObject *host_dynamic_ranges(const host_kernel *k)
{
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    PyObject *const ranges = PyDict_New();
    if (ranges == NULL || opjit_kernel_get_info(k->kernel, &info, NULL) != OPJIT_OK)
        return ranges;
    for (uint32_t d = 0; d < info.dim_count; d++) {
        PyObject *const range = Py_BuildValue("(LL)", (long long)info.dims[d].lo, (long long)info.dims[d].hi);
        if (range == NULL || PyDict_SetItemString(ranges, opjit_kernel_dim_name(&info, d), range) != 0) {
            Py_XDECREF(range);
            Py_DECREF(ranges);
            return NULL;
        }
        Py_DECREF(range);
    }
    return ranges;
}
