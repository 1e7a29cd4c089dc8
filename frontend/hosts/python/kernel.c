/* SPDX-License-Identifier: Apache-2.0 */
/* kernel.c - opjit.Kernel: a compiled kernel as a callable of arrays. */
#define _POSIX_C_SOURCE 200809L

#include <string.h>
#include <time.h>

#include "frontend/hosts/python/host.h"

/* Vectorcall is in every Python since 3.9, but in the stable ABI's header only from 3.12 on. */
PyAPI_FUNC(PyObject *) PyVectorcall_Call(PyObject *callable, PyObject *args, PyObject *names);
#define HAS_VECTORCALL (1ul << 11)
#define COUNT_MASK (SIZE_MAX >> 1) /* of a vectorcall's count, whose highest bit is a flag */

#define CALL_ARRAYS 8      /* with more the call allocates */
#define SHORT_CALL_NS 5000 /* shorter ones keep the GIL, whose release costs about as much as a small call */

/* --- calls -------------------------------------------------------------------------------------------------------- */
typedef struct call_args {
    PyObject **objects; /* borrowed; NULL: to be made */
    host_array *arrays;
    opjit_binding *bindings;
    const host_port *ports; /* NULL: they follow from dimensions, which are not known yet */
    host_port *own;         /* room for ports that follow */
    PyObject *given;        /* dims=; borrowed; NULL: not given */
    uint64_t dims[OPJIT_MAX_DIMS];
    uint32_t taken; /* of the arrays */
} call_args;

/* out=: the array, or a tuple of all of them. */
static int read_out(host_kernel *k, PyObject *out, PyObject **objects)
{
    if (out == Py_None)
        return 0;
    if (!PyTuple_Check(out)) {
        if (k->outputs != 1) {
            PyErr_Format(PyExc_TypeError, "out: a tuple of %u arrays is needed", k->outputs);
            return -1;
        }
        objects[k->inputs] = out;
        return 0;
    }
    if (PyTuple_Size(out) != (Py_ssize_t)k->outputs) {
        PyErr_Format(PyExc_TypeError, "out: %zd arrays given, %u are needed", PyTuple_Size(out), k->outputs);
        return -1;
    }
    for (uint32_t i = 0; i < k->outputs; i++)
        objects[k->inputs + i] = PyTuple_GetItem(out, (Py_ssize_t)i);
    return 0;
}

/* Whether the model has an input of that name that nothing reads: it may be given, as to all other runtimes. */
static bool is_unread(const host_kernel *k, PyObject *name)
{
    const opjit_model *const model = k->graph == NULL || k->graph->has_values ? NULL : k->graph->model;
    const uint32_t inputs = opjit_model_input_count(model);
    for (uint32_t i = 0; i < inputs; i++) {
        opjit_model_port port = OPJIT_MODEL_PORT_INIT;
        if (opjit_model_get_input(model, i, &port, NULL) == OPJIT_OK && port.binding < 0 && port.name != NULL &&
            PyUnicode_CompareWithASCIIString(name, port.name) == 0)
            return true;
    }
    return false;
}

static int read_keyword(host_kernel *k, PyObject *name, PyObject *value, call_args *c)
{
    PyObject **const objects = c->objects;
    if (name == k->state->str_out || PyUnicode_CompareWithASCIIString(name, "out") == 0)
        return read_out(k, value, objects);
    for (uint32_t i = 0; i < k->inputs; i++) {
        PyObject *const text = PyUnicode_FromString(k->ports[i].name != NULL ? k->ports[i].name : "");
        const int order = text != NULL ? PyUnicode_Compare(text, name) : -1;
        Py_XDECREF(text);
        if (PyErr_Occurred())
            return -1;
        if (order == 0) {
            if (objects[i] != NULL) {
                PyErr_Format(PyExc_TypeError, "input %U is given twice", name);
                return -1;
            }
            objects[i] = value;
            return 0;
        }
    }
    if (k->dims != 0 && PyUnicode_CompareWithASCIIString(name, "dims") == 0) {
        c->given = value;
        return 0;
    }
    if (is_unread(k, name))
        return 0;
    PyErr_Format(PyExc_TypeError, "there is no input %R", name);
    return -1;
}

static int read_arguments(host_kernel *k, PyObject *const *args, size_t count, PyObject *names, call_args *c)
{
    PyObject **const objects = c->objects;
    const Py_ssize_t named = names != NULL ? PyTuple_Size(names) : 0;
    if (count > k->inputs) {
        PyErr_Format(PyExc_TypeError, "%zu arrays given, the kernel takes %u; results go to out=", count, k->inputs);
        return -1;
    }
    for (size_t i = 0; i < count; i++)
        objects[i] = args[i];
    for (size_t i = count; i < k->inputs + k->outputs; i++)
        objects[i] = NULL;
    for (Py_ssize_t i = 0; i < named; i++)
        if (read_keyword(k, PyTuple_GetItem(names, i), args[count + (size_t)i], c) != 0)
            return -1;
    for (uint32_t i = 0; i < k->inputs; i++)
        if (objects[i] == NULL) {
            PyErr_Format(PyExc_TypeError, "input %u (%s) is missing", i,
                         k->ports[i].name != NULL ? k->ports[i].name : "");
            return -1;
        }
    return 0;
}

static int check_array(host_kernel *k, call_args *c, uint32_t index, host_array_role role)
{
    const host_port *const port = &c->ports[index];
    const host_array *const array = &c->arrays[index];
    opjit_error error;
    if (role != HOST_RESULT && !opjit_host_fits(port, &array->tensor, array->read_only)) {
        (void)opjit_host_check(port, index, &array->tensor, array->read_only, array->type, &error);
        host_raise(k->state, &error);
        return -1;
    }
    c->bindings[index] = (opjit_binding){ (char *)array->tensor.data + array->tensor.offset, port->bytes };
    return 0;
}

/* Checks it, if it is known what it has to be. */
static int take_array(host_kernel *k, call_args *c, uint32_t index, host_array_role role)
{
    const int status = host_array_take(k->state, c->objects[index], index, role, &c->arrays[index]);
    c->taken++;
    return status == 0 && c->ports != NULL ? check_array(k, c, index, role) : status;
}

/* A result whose memory is known without asking the array. */
static bool take_result(host_kernel *k, call_args *c, uint32_t index)
{
    void *const data = host_result_data(k->state, c->objects[index]);
    if (data == NULL)
        return false;
    c->arrays[index].has_buffer = false;
    c->arrays[index].capsule = NULL;
    c->bindings[index] = (opjit_binding){ data, c->ports[index].bytes };
    c->taken++;
    return true;
}

/* Dimensions out of the inputs, what follows from them, and whether the inputs are that. */
static int find_ports(host_kernel *k, call_args *c)
{
    int status = host_dynamic_dims(k, c->arrays, c->given, c->dims);
    if (status == 0)
        status = host_dynamic_ports(k, c->dims, c->own);
    c->ports = c->own;
    for (uint32_t i = 0; i < k->inputs && status == 0; i++)
        status = check_array(k, c, i, HOST_INPUT);
    return status;
}

static uint64_t now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static int run(host_kernel *k, const call_args *c)
{
    opjit_call call = OPJIT_CALL_INIT;
    opjit_status status;
    opjit_error error;
    call.binding_count = k->inputs + k->outputs;
    call.bindings = c->bindings;
    call.dims = k->dims != 0 ? c->dims : NULL;
    call.dim_count = k->dims;
    call.executor = k->executor;
    if (k->keeps_gil) {
        status = opjit_kernel_call(k->kernel, &call, &error);
    } else { /* a call takes as long as the next one where shapes are fixed */
        uint64_t time;
        Py_BEGIN_ALLOW_THREADS time = now_ns();
        status = opjit_kernel_call(k->kernel, &call, &error);
        time = now_ns() - time;
        Py_END_ALLOW_THREADS k->keeps_gil = status == OPJIT_OK && k->dims == 0 && time < SHORT_CALL_NS;
    }
    if (status == OPJIT_OK)
        return 0;
    host_raise(k->state, &error);
    return -1;
}

/* The results: one, or a tuple. */
static PyObject *results_of(const host_kernel *k, PyObject *const *objects)
{
    PyObject *tuple;
    if (k->outputs == 1)
        return Py_NewRef(objects[k->inputs]);
    tuple = PyTuple_New((Py_ssize_t)k->outputs);
    for (uint32_t i = 0; tuple != NULL && i < k->outputs; i++)
        if (PyTuple_SetItem(tuple, (Py_ssize_t)i, Py_NewRef(objects[k->inputs + i])) < 0) {
            Py_DECREF(tuple);
            return NULL;
        }
    return tuple;
}

static PyObject *call_with(host_kernel *k, call_args *c, PyObject *const *args, size_t count, PyObject *names)
{
    const uint32_t total = k->inputs + k->outputs;
    PyObject *result = NULL;
    uint32_t made = 0; /* outputs that are new references: all of them, or none */
    int status = read_arguments(k, args, count, names, c);
    for (uint32_t i = 0; i < k->inputs && status == 0; i++)
        status = take_array(k, c, i, HOST_INPUT);
    if (status == 0 && c->ports == NULL)
        status = find_ports(k, c);
    for (uint32_t i = k->inputs; i < total && status == 0; i++) {
        const host_array_role role = c->objects[i] == NULL ? HOST_RESULT : HOST_OUTPUT;
        if (role == HOST_RESULT) {
            c->objects[i] = host_result_make(k, i - k->inputs, &c->ports[i], k->inputs > 0 ? c->objects[0] : NULL);
            status = c->objects[i] != NULL ? 0 : -1;
            made += status == 0;
        }
        if (status == 0 && (role != HOST_RESULT || !take_result(k, c, i)))
            status = take_array(k, c, i, role);
    }
    if (status == 0 && run(k, c) == 0)
        result = results_of(k, c->objects);
    for (uint32_t i = 0; i < c->taken; i++)
        host_array_drop(&c->arrays[i]);
    for (uint32_t i = 0; i < made; i++)
        Py_DECREF(c->objects[k->inputs + i]);
    return result;
}

static PyObject *kernel_call(PyObject *self, PyObject *const *args, size_t count, PyObject *names)
{
    host_kernel *const k = host_kernel_of(self);
    const uint32_t total = k->inputs + k->outputs;
    PyObject *result;
    call_args c;
    c.taken = 0;
    c.given = NULL;
    c.ports = k->dims == 0 ? k->ports : NULL;
    if (total <= CALL_ARRAYS) {
        PyObject *objects[CALL_ARRAYS];
        host_array arrays[CALL_ARRAYS];
        opjit_binding bindings[CALL_ARRAYS];
        host_port ports[CALL_ARRAYS];
        c.own = ports;
        c.objects = objects;
        c.arrays = arrays;
        c.bindings = bindings;
        return call_with(k, &c, args, count & COUNT_MASK, names);
    }
    c.objects = PyMem_Malloc(total * sizeof *c.objects);
    c.arrays = PyMem_Malloc(total * sizeof *c.arrays);
    c.bindings = PyMem_Malloc(total * sizeof *c.bindings);
    c.own = k->dims != 0 ? PyMem_Malloc(total * sizeof *c.own) : NULL;
    if (c.objects != NULL && c.arrays != NULL && c.bindings != NULL && (k->dims == 0 || c.own != NULL))
        result = call_with(k, &c, args, count & COUNT_MASK, names);
    else
        result = PyErr_NoMemory();
    PyMem_Free(c.objects);
    PyMem_Free(c.arrays);
    PyMem_Free(c.bindings);
    PyMem_Free(c.own);
    return result;
}

/* --- type --------------------------------------------------------------------------------------------------------- */
static void kernel_dealloc(PyObject *self)
{
    host_kernel *const k = host_kernel_of(self);
    PyTypeObject *const type = Py_TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    opjit_kernel_release(k->kernel);
    for (uint32_t i = 0; k->shapes != NULL && i < k->outputs; i++)
        Py_XDECREF(k->shapes[i]);
    for (uint32_t i = 0; k->makers != NULL && i < 2 * k->outputs; i++)
        Py_XDECREF(k->makers[i]);
    PyMem_Free(k->makers);
    PyMem_Free(k->shapes);
    PyMem_Free(k->ports);
    PyMem_Free(k->rows);
    PyMem_Free(k->forms);
    Py_XDECREF((PyObject *)k->graph);
    release(self);
    Py_DECREF(type);
}

void host_reshape_port(host_port *port, uint32_t rank, const uint64_t *sizes)
{
    uint64_t packed = 1;
    port->rank = rank;
    for (uint32_t d = rank; d-- > 0; packed *= sizes[d]) {
        port->sizes[d] = (int64_t)sizes[d];
        port->strides[d] = (int64_t)packed;
    }
}

/* A model's own names, its scalars and booleans. */
static void ports_of_model(host_kernel *k, const opjit_model *model)
{
    const uint32_t inputs = opjit_model_input_count(model), outputs = opjit_model_output_count(model);
    for (uint32_t i = 0; i < inputs + outputs; i++) {
        opjit_model_port port = OPJIT_MODEL_PORT_INIT;
        const opjit_status status = i < inputs ? opjit_model_get_input(model, i, &port, NULL)
                                               : opjit_model_get_output(model, i - inputs, &port, NULL);
        if (status == OPJIT_OK && port.binding >= 0 && (uint32_t)port.binding < k->inputs + k->outputs) {
            host_port *const to = &k->ports[port.binding];
            to->name = port.name;
            k->rows[port.binding] = i;
            to->takes_bool = to->is_output ? port.is_bool != 0 : to->takes_bool;
            host_reshape_port(to, port.rank, port.sizes);
        }
    }
}

/* What was declared: of the inputs those that the kernel has, which are in the same order, and all outputs. */
static void ports_of_graph(host_kernel *k, const host_graph *graph)
{
    uint32_t input = 0, output = k->inputs;
    for (uint32_t i = 0; i < graph->declared_count; i++) {
        const host_declared *const row = &graph->declared[i];
        uint32_t *const at = row->is_output ? &output : &input;
        uint64_t sizes[8];
        if (*at == (row->is_output ? k->inputs + k->outputs : k->inputs))
            continue;
        if (!row->is_output && (k->ports[*at].name == NULL || row->name == Py_None ||
                                strcmp(PyUnicode_AsUTF8AndSize(row->name, NULL), k->ports[*at].name) != 0))
            continue; /* nothing reads it */
        for (uint32_t d = 0; d < 8; d++)
            sizes[d] = row->type.sizes[d];
        k->rows[*at] = i;
        k->ports[*at].takes_bool = row->is_output ? row->is_bool : k->ports[*at].takes_bool;
        host_reshape_port(&k->ports[(*at)++], row->type.rank, sizes);
    }
}

PyObject *host_kernel_new(host_state *state, opjit_kernel *kernel, host_graph *graph, const opjit_executor *executor)
{
    allocfunc allocate = (allocfunc)PyType_GetSlot((PyTypeObject *)state->kernel_type, Py_tp_alloc);
    host_kernel *const k = host_kernel_of(allocate((PyTypeObject *)state->kernel_type, 0));
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    opjit_error error;
    if (k == NULL) {
        opjit_kernel_release(kernel);
        return NULL;
    }
    k->call = kernel_call;
    k->state = state;
    k->kernel = kernel;
    k->executor = executor;
    k->graph = (host_graph *)(void *)Py_NewRef((PyObject *)graph);
    if (opjit_kernel_get_info(kernel, &info, &error) != OPJIT_OK) {
        host_raise(state, &error);
    } else {
        k->ports = PyMem_Calloc((size_t)info.inputs + info.outputs + 1, sizeof *k->ports);
        k->shapes = PyMem_Calloc((size_t)info.outputs + 1, sizeof *k->shapes);
        k->makers = PyMem_Calloc(2 * (size_t)info.outputs + 1, sizeof *k->makers);
        k->rows = PyMem_Calloc((size_t)info.inputs + info.outputs + 1, sizeof *k->rows);
        for (uint32_t d = 0; d < info.dim_count; d++)
            k->lo[d] = (uint64_t)info.dims[d].lo;
        if (k->ports != NULL && k->shapes != NULL && k->makers != NULL && k->rows != NULL) {
            k->inputs = info.inputs;
            k->outputs = info.outputs;
            for (uint32_t i = 0; i < info.inputs + info.outputs; i++)
                opjit_host_port(&info, i, &k->ports[i]);
            if (graph->model != NULL)
                ports_of_model(k, graph->model);
            else
                ports_of_graph(k, graph);
            return (PyObject *)k;
        }
        PyErr_NoMemory();
    }
    Py_DECREF((PyObject *)k);
    return NULL;
}

static PyMemberDef kernel_members[] = {
    { "__vectorcalloffset__", T_PYSSIZET, offsetof(host_kernel, call), READONLY, NULL }, { NULL, 0, 0, 0, NULL }
};

static PyType_Slot kernel_slots[] = {
    { Py_tp_dealloc, kernel_dealloc },
    { Py_tp_call, PyVectorcall_Call },
    { Py_tp_repr, host_kernel_repr },
    { Py_tp_methods, host_kernel_methods },
    { Py_tp_getset, host_kernel_fields },
    { Py_tp_members, kernel_members },
    { Py_tp_doc, "A compiled kernel.  kernel(a, b, out=y) runs it on arrays of anybody's, without copies; without out= "
                 "the results are new arrays.  Inputs may be given by name, several outputs are a tuple." },
    { 0, NULL }
};

PyType_Spec host_kernel_spec = { "opjit.Kernel", sizeof(host_kernel), 0,
                                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | HAS_VECTORCALL,
                                 kernel_slots };
