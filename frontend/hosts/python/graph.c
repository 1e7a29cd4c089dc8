/* SPDX-License-Identifier: Apache-2.0 */
/* graph.c - opjit._opjit.Graph: the builder of opjit/graph.h; model.c has what is different where a model has the
 * graph.  Tensors are numbers here; what reads like NumPy is in the Python files. */
#include <string.h>

#include <opjit/artifact.h>

#include "frontend/hosts/python/host.h"

/* --- helpers ------------------------------------------------------------------------------------------------------ */
host_graph *host_graph_of(PyObject *self)
{
    host_graph *const graph = (host_graph *)(void *)self;
    if (graph->busy) {
        PyErr_SetString(PyExc_RuntimeError, "the graph is being compiled on another thread");
        return NULL;
    }
    return graph;
}

/* The handle, or the graph's first error. */
static PyObject *handle_of(host_graph *graph, opjit_tensor tensor)
{
    opjit_error error;
    if (opjit_graph_status(host_graph_built(graph), &error) != OPJIT_OK)
        return host_raise(graph->state, &error);
    return host_handle(tensor);
}

/* Keeps what an input or output is. */
static int declare(host_graph *graph, opjit_tensor tensor, const char *name, bool is_output, bool is_bool)
{
    host_declared *const rows = PyMem_Realloc(graph->declared, (graph->declared_count + 1) * sizeof *rows);
    if (rows == NULL)
        return PyErr_NoMemory(), -1;
    graph->declared = rows;
    host_declared *const row = &rows[graph->declared_count];
    row->is_output = is_output;
    row->is_bool = is_bool;
    if (opjit_graph_get_type(host_graph_built(graph), tensor, &row->type) != OPJIT_OK)
        return 0; /* the graph has failed, and that will be said */
    row->name = name != NULL ? PyUnicode_FromString(name) : Py_NewRef(Py_None);
    if (row->name == NULL || (row->name != Py_None && PyUnicode_AsUTF8AndSize(row->name, NULL) == NULL)) {
        Py_XDECREF(row->name);
        return -1;
    }
    graph->declared_count++;
    return 0;
}

/* --- making ------------------------------------------------------------------------------------------------------- */
static PyObject *graph_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "source", "dims", "shapes", "values", "folder", "sample", NULL };
    PyObject *source = Py_None, *dims = NULL, *shapes = NULL, *values = NULL, *folder = Py_None;
    host_state *const state = PyType_GetModuleState(type);
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    host_graph *graph;
    opjit_context *context;
    opjit_error error;
    int status = 0, sample = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OO!O!O!Op", names, &source, &PyDict_Type, &dims, &PyDict_Type,
                                     &shapes, &PyDict_Type, &values, &folder, &sample))
        return NULL;
    if (state == NULL || (graph = (host_graph *)(void *)allocate(type, 0)) == NULL)
        return NULL;
    graph->state = state;
    if (source == Py_None) {
        context = host_context(state);
        status = context != NULL ? 0 : -1;
        if (context != NULL && opjit_graph_create(context, &graph->graph, &error) != OPJIT_OK) {
            host_raise(state, &error);
            status = -1;
        }
    } else {
        PyObject *const none = PyDict_New();
        PyObject *const given =
            none == NULL ? NULL
                         : Py_BuildValue("OOOOOi", source, dims != NULL ? dims : none, shapes != NULL ? shapes : none,
                                         values != NULL ? values : none, folder, sample);
        status = given != NULL ? host_graph_open(graph, given) : -1;
        Py_XDECREF(given);
        Py_XDECREF(none);
    }
    if (status != 0) {
        Py_DECREF(graph);
        return NULL;
    }
    return (PyObject *)graph;
}

static void graph_dealloc(PyObject *self)
{
    host_graph *const graph = (host_graph *)(void *)self;
    PyTypeObject *const type = Py_TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    if (graph->model != NULL)
        opjit_model_close(graph->model);
    else
        opjit_graph_destroy(graph->graph);
    for (uint32_t i = 0; i < graph->declared_count; i++)
        Py_DECREF(graph->declared[i].name);
    PyMem_Free(graph->declared);
    Py_XDECREF(graph->held);
    Py_XDECREF(graph->steps);
    release(self);
    Py_DECREF(type);
}

/* --- tensors ------------------------------------------------------------------------------------------------------ */
static PyObject *graph_input(PyObject *self, PyObject *args)
{
    host_graph *const graph = host_graph_of(self);
    PyObject *dtype, *shape;
    DML_TENSOR_DATA_TYPE type;
    opjit_tensor tensor;
    uint32_t rank, sizes[8];
    const char *name;
    if (graph == NULL || !PyArg_ParseTuple(args, "OOz", &shape, &dtype, &name) || host_type_of(dtype, &type) != 0 ||
        host_sizes(shape, sizes, &rank) != 0)
        return NULL;
    tensor = opjit_graph_input(host_graph_built(graph), name, type, rank, sizes);
    if (declare(graph, tensor, name, false, false) != 0)
        return NULL;
    return host_graph_keep(graph, "input", args, handle_of(graph, tensor));
}

/* The bytes are borrowed: the graph holds them. */
static PyObject *graph_constant(PyObject *self, PyObject *args)
{
    host_graph *const graph = host_graph_of(self);
    PyObject *dtype, *shape, *data;
    DML_TENSOR_DATA_TYPE type;
    uint32_t rank, sizes[8];
    opjit_tensor tensor;
    if (graph == NULL || !PyArg_ParseTuple(args, "OOS", &dtype, &shape, &data) || host_type_of(dtype, &type) != 0 ||
        host_sizes(shape, sizes, &rank) != 0)
        return NULL;
    if (graph->held == NULL && (graph->held = PyList_New(0)) == NULL)
        return NULL;
    if (PyList_Append(graph->held, data) != 0)
        return NULL;
    tensor = opjit_graph_constant(host_graph_built(graph), type, rank, sizes, PyBytes_AsString(data),
                                  (uint64_t)PyBytes_Size(data), OPJIT_GRAPH_BORROW);
    return host_graph_keep(graph, "constant", args, handle_of(graph, tensor));
}

static PyObject *graph_scalar(PyObject *self, PyObject *args)
{
    host_graph *const graph = host_graph_of(self);
    PyObject *dtype;
    DML_TENSOR_DATA_TYPE type;
    double value;
    if (graph == NULL || !PyArg_ParseTuple(args, "Od", &dtype, &value) || host_type_of(dtype, &type) != 0)
        return NULL;
    return host_graph_keep(graph, "scalar", args,
                           handle_of(graph, opjit_graph_scalar(host_graph_built(graph), type, value)));
}

static PyObject *graph_output(PyObject *self, PyObject *args)
{
    host_graph *const graph = host_graph_of(self);
    unsigned long long handle;
    const char *name;
    int is_bool = 0;
    if (graph == NULL || !PyArg_ParseTuple(args, "Kz|p", &handle, &name, &is_bool))
        return NULL;
    (void)opjit_graph_output(host_graph_built(graph), name, host_tensor_of(handle));
    if (declare(graph, host_tensor_of(handle), name, true, is_bool != 0) != 0)
        return NULL;
    return host_graph_keep(graph, "output", args, handle_of(graph, host_tensor_of(handle)));
}

static PyObject *graph_type(PyObject *self, PyObject *args)
{
    host_graph *const graph = host_graph_of(self);
    opjit_tensor_type type;
    unsigned long long handle;
    int64_t sizes[8];
    opjit_error error;
    if (graph == NULL || !PyArg_ParseTuple(args, "K", &handle))
        return NULL;
    if (opjit_graph_get_type(host_graph_built(graph), host_tensor_of(handle), &type) != OPJIT_OK) {
        (void)opjit_graph_status(host_graph_built(graph), &error);
        return host_raise(graph->state, &error);
    }
    for (uint32_t d = 0; d < 8; d++)
        sizes[d] = type.sizes[d];
    PyObject *const dtype = host_type_text(type.dtype), *const shape = host_numbers(type.rank, sizes);
    return dtype != NULL && shape != NULL ? Py_BuildValue("(NN)", dtype, shape) : NULL;
}

uint32_t host_graph_ports(const host_graph *graph)
{
    return graph->model != NULL ? opjit_model_input_count(graph->model) + opjit_model_output_count(graph->model)
                                : graph->declared_count;
}

void host_graph_port(const host_graph *graph, uint32_t index, host_shape *out)
{
    const uint32_t inputs = opjit_model_input_count(graph->model);
    opjit_model_port port = OPJIT_MODEL_PORT_INIT;
    memset(out, 0, sizeof *out);
    if (graph->model == NULL) {
        out->rank = graph->declared[index].type.rank;
        for (uint32_t d = 0; d < 8; d++)
            out->sizes[d] = graph->declared[index].type.sizes[d];
        return;
    }
    if ((index < inputs ? opjit_model_get_input(graph->model, index, &port, NULL)
                        : opjit_model_get_output(graph->model, index - inputs, &port, NULL)) != OPJIT_OK)
        return; /* there is no other reason than a wrong index */
    out->rank = port.rank;
    for (uint32_t d = 0; d < 8; d++)
        out->sizes[d] = (int64_t)port.sizes[d];
}

/* --- views -------------------------------------------------------------------------------------------------------- */
typedef opjit_tensor view_fn(opjit_graph *graph, opjit_tensor tensor, uint32_t rank, const uint32_t *numbers);

static PyObject *view(PyObject *self, PyObject *args, const char *method, view_fn *function)
{
    host_graph *const graph = host_graph_of(self);
    unsigned long long handle;
    uint32_t count, numbers[8];
    PyObject *sequence;
    if (graph == NULL || !PyArg_ParseTuple(args, "KO", &handle, &sequence) ||
        host_sizes(sequence, numbers, &count) != 0)
        return NULL;
    return host_graph_keep(graph, method, args,
                           handle_of(graph, function(host_graph_built(graph), host_tensor_of(handle), count, numbers)));
}

static opjit_tensor transpose(opjit_graph *graph, opjit_tensor tensor, uint32_t rank, const uint32_t *axes)
{
    (void)rank; /* the caller has as many as the tensor */
    return opjit_graph_transpose(graph, tensor, axes);
}

static PyObject *graph_reshape(PyObject *self, PyObject *args)
{
    return view(self, args, "reshape", opjit_graph_reshape);
}

static PyObject *graph_broadcast(PyObject *self, PyObject *args)
{
    return view(self, args, "broadcast", opjit_graph_broadcast);
}

static PyObject *graph_transpose(PyObject *self, PyObject *args)
{
    host_graph *const graph = host_graph_of(self);
    opjit_tensor_type type;
    unsigned long long handle;
    PyObject *axes;
    if (graph == NULL || !PyArg_ParseTuple(args, "KO", &handle, &axes))
        return NULL;
    if (opjit_graph_get_type(host_graph_built(graph), host_tensor_of(handle), &type) == OPJIT_OK &&
        PySequence_Size(axes) != (Py_ssize_t)type.rank)
        return PyErr_Format(PyExc_ValueError, "axes: %u numbers are needed", type.rank), NULL;
    return view(self, args, "transpose", transpose);
}

static PyObject *graph_slice(PyObject *self, PyObject *args)
{
    host_graph *const graph = host_graph_of(self);
    unsigned long long handle;
    PyObject *first, *counts, *steps;
    uint32_t offsets[8] = { 0 }, sizes[8] = { 0 }, rank, count;
    int32_t strides[8] = { 0 };
    opjit_tensor_type type;
    if (graph == NULL || !PyArg_ParseTuple(args, "KOOO", &handle, &first, &counts, &steps) ||
        host_sizes(first, offsets, &rank) != 0 || host_sizes(counts, sizes, &count) != 0)
        return NULL;
    if (opjit_graph_get_type(host_graph_built(graph), host_tensor_of(handle), &type) == OPJIT_OK &&
        (type.rank != rank || type.rank != count || PySequence_Size(steps) != (Py_ssize_t)rank))
        return PyErr_Format(PyExc_ValueError, "three times %u numbers are needed", type.rank), NULL;
    for (uint32_t d = 0; d < rank; d++) {
        PyObject *const item = PySequence_GetItem(steps, (Py_ssize_t)d);
        strides[d] = item != NULL ? (int32_t)PyLong_AsLong(item) : 0;
        Py_XDECREF(item);
        if (PyErr_Occurred())
            return NULL;
    }
    return host_graph_keep(
        graph, "slice", args,
        handle_of(graph, opjit_graph_slice(host_graph_built(graph), host_tensor_of(handle), offsets, sizes, strides)));
}

/* --- compiling ---------------------------------------------------------------------------------------------------- */
int host_read_level(const char *text, opjit_level *out)
{
    static const char *const names[] = { "auto", "quick", "peak" };
    for (int i = 0; i < 3; i++)
        if (strcmp(text, names[i]) == 0) {
            *out = (opjit_level)i;
            return 0;
        }
    PyErr_Format(PyExc_ValueError, "level: \"%s\", must be \"auto\", \"quick\" or \"peak\"", text);
    return -1;
}

/* An image stands in for compiling where it is this kernel's; with target it must be, whatever caches have. */
static PyObject *graph_compile(PyObject *self, PyObject *args)
{
    host_graph *const graph = host_graph_of(self);
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    const opjit_executor *executor;
    opjit_kernel *kernel = NULL;
    const char *level, *image = NULL;
    Py_ssize_t bytes = 0;
    int interpret;
    unsigned threads;
    opjit_status status;
    opjit_error error;
    PyObject *result;
    if (graph == NULL ||
        !PyArg_ParseTuple(args, "spI|z#z", &level, &interpret, &threads, &image, &bytes, &options.target) ||
        host_read_level(level, &options.level) != 0)
        return NULL;
    executor = host_executor(graph->state, threads);
    if (PyErr_Occurred())
        return NULL;
    options.flags = (interpret ? OPJIT_COMPILE_INTERPRET : 0) | (options.target != NULL ? OPJIT_COMPILE_NO_CACHE : 0) |
                    (graph->model != NULL ? OPJIT_COMPILE_BORROW_CONSTANTS : 0);
    options.executor = executor;
    graph->busy = true;
    Py_BEGIN_ALLOW_THREADS status =
        image != NULL
            ? opjit_graph_load(host_graph_built(graph), &options, image, (uint64_t)bytes, &kernel, &error)
        : graph->graph == NULL ? opjit_model_compile(graph->model, &options, &kernel, &error)
                               : opjit_graph_compile(graph->graph, &options, &kernel, &error);
    Py_END_ALLOW_THREADS graph->busy = false;
    if (status != OPJIT_OK)
        return host_raise(graph->state, &error);
    result = host_kernel_new(graph->state, kernel, graph, executor);
    if (result != NULL)
        host_kernel_of(result)->interprets = interpret != 0;
    return result;
}

static void add_stage(void *user, const char *stage, const char *text)
{
    PyObject *const row = PyErr_Occurred() ? NULL : Py_BuildValue("(ss)", stage, text);
    if (row != NULL)
        (void)PyList_Append(user, row); /* an exception stays set */
    Py_XDECREF(row);
}

static PyObject *graph_explain(PyObject *self, PyObject *args)
{
    host_graph *const graph = host_graph_of(self);
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    const DML_GRAPH_DESC *desc;
    const char *level;
    PyObject *stages;
    opjit_error error;
    if (graph == NULL || !PyArg_ParseTuple(args, "s", &level) || host_read_level(level, &options.level) != 0)
        return NULL;
    stages = PyList_New(0);
    if (stages == NULL)
        return NULL;
    if (opjit_graph_get_desc(host_graph_built(graph), &desc, &error) != OPJIT_OK ||
        opjit_graph_explain(host_context(graph->state), desc, &options, add_stage, stages, &error) != OPJIT_OK)
        host_raise(graph->state, &error);
    if (PyErr_Occurred()) {
        Py_DECREF(stages);
        return NULL;
    }
    return stages;
}

/* (name, [indices of the nodes that it reads]) of each node, graph inputs counted behind the nodes. */
static PyObject *nodes_of(const DML_GRAPH_DESC *desc)
{
    PyObject *nodes = PyList_New(0);
    for (uint32_t i = 0; nodes != NULL && i < desc->NodeCount; i++) {
        const DML_GRAPH_NODE_DESC *const node = &desc->Nodes[i];
        opjit_operator_info info = OPJIT_OPERATOR_INFO_INIT;
        const bool is_operator = node->Type == DML_GRAPH_NODE_TYPE_OPERATOR &&
                                 opjit_operator_get_info(((const DML_OPERATOR_GRAPH_NODE_DESC *)node->Desc)->Operator,
                                                         &info, NULL) == OPJIT_OK;
        PyObject *const row = Py_BuildValue("(s[])", is_operator ? info.name : "constant");
        if (row == NULL || PyList_Append(nodes, row) != 0)
            Py_CLEAR(nodes);
        Py_XDECREF(row);
    }
    return nodes;
}

/* Adds the edge to its reader's list. */
static int add_edge(PyObject *nodes, uint32_t from, uint32_t to)
{
    PyObject *const row = PyList_GetItem(nodes, (Py_ssize_t)to);
    PyObject *const number = row != NULL ? PyLong_FromUnsignedLong(from) : NULL;
    const int status = number != NULL ? PyList_Append(PyTuple_GetItem(row, 1), number) : -1;
    Py_XDECREF(number);
    return status;
}

static PyObject *graph_nodes(PyObject *self, PyObject *unused)
{
    host_graph *const graph = host_graph_of(self);
    const DML_GRAPH_DESC *desc;
    opjit_error error;
    PyObject *nodes;
    int status = 0;
    (void)unused;
    if (graph == NULL)
        return NULL;
    if (opjit_graph_get_desc(host_graph_built(graph), &desc, &error) != OPJIT_OK)
        return host_raise(graph->state, &error);
    nodes = nodes_of(desc);
    if (nodes == NULL)
        return NULL;
    for (uint32_t i = 0; i < desc->InputEdgeCount && status == 0; i++) {
        const DML_INPUT_GRAPH_EDGE_DESC *const edge = desc->InputEdges[i].Desc;
        status = add_edge(nodes, desc->NodeCount + edge->GraphInputIndex, edge->ToNodeIndex);
    }
    for (uint32_t i = 0; i < desc->IntermediateEdgeCount && status == 0; i++) {
        const DML_INTERMEDIATE_GRAPH_EDGE_DESC *const edge = desc->IntermediateEdges[i].Desc;
        status = add_edge(nodes, edge->FromNodeIndex, edge->ToNodeIndex);
    }
    if (status == 0)
        return nodes;
    Py_DECREF(nodes);
    return NULL;
}

static PyObject *graph_artifact(PyObject *self, PyObject *args)
{
    static const struct {
        const char *name;
        opjit_artifact_kind kind;
    } kinds[] = {
        { "asm", OPJIT_ARTIFACT_ASM },       { "llvm", OPJIT_ARTIFACT_LLVM },  { "ir", OPJIT_ARTIFACT_IR },
        { "header", OPJIT_ARTIFACT_HEADER }, { "obj", OPJIT_ARTIFACT_OBJECT }, { "json", OPJIT_ARTIFACT_JSON }
    };
    host_graph *const graph = host_graph_of(self);
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_artifact *artifact = NULL;
    const DML_GRAPH_DESC *desc;
    const char *kind, *level;
    const void *data;
    uint64_t bytes;
    opjit_error error;
    PyObject *result = NULL;
    size_t i = 0;
    if (graph == NULL || !PyArg_ParseTuple(args, "sss", &kind, &level, &options.name) ||
        host_read_level(level, &options.level) != 0)
        return NULL;
    while (i < sizeof kinds / sizeof *kinds && strcmp(kinds[i].name, kind) != 0)
        i++;
    if (i == sizeof kinds / sizeof *kinds)
        return PyErr_Format(PyExc_ValueError, "there is no output \"%s\"", kind), NULL;
    if (opjit_graph_get_desc(host_graph_built(graph), &desc, &error) != OPJIT_OK ||
        opjit_artifact_create(host_context(graph->state), NULL, &artifact, &error) != OPJIT_OK ||
        opjit_artifact_add_graph(artifact, desc, &options, &error) != OPJIT_OK ||
        opjit_artifact_get(artifact, 0, kinds[i].kind, &data, &bytes, &error) != OPJIT_OK)
        host_raise(graph->state, &error);
    else
        result = PyBytes_FromStringAndSize(data, (Py_ssize_t)bytes);
    opjit_artifact_destroy(artifact);
    return result;
}

/* --- type --------------------------------------------------------------------------------------------------------- */
static PyMethodDef graph_methods[] = {
    { "input", graph_input, METH_VARARGS, "input(shape, dtype, name) -> tensor" },
    { "constant", graph_constant, METH_VARARGS, "constant(dtype, shape, bytes) -> tensor" },
    { "scalar", graph_scalar, METH_VARARGS, "scalar(dtype, value) -> tensor" },
    { "output", graph_output, METH_VARARGS, "output(tensor, name, is_bool=False)" },
    { "type", graph_type, METH_VARARGS, "type(tensor) -> (dtype, shape)" },
    { "node", host_graph_node, METH_VARARGS, "node(type, inputs, fields, outputs, name=None) -> tensors" },
    { "reshape", graph_reshape, METH_VARARGS, "reshape(tensor, shape) -> tensor" },
    { "broadcast", graph_broadcast, METH_VARARGS, "broadcast(tensor, shape) -> tensor" },
    { "transpose", graph_transpose, METH_VARARGS, "transpose(tensor, axes) -> tensor" },
    { "slice", graph_slice, METH_VARARGS, "slice(tensor, offsets, sizes, strides) -> tensor" },
    { "compile", graph_compile, METH_VARARGS, "compile(level, interpret, threads) -> Kernel" },
    { "explain", graph_explain, METH_VARARGS,
      "explain(level) -> [(stage, text)]: the IR after each pass, and the plan" },
    { "nodes", graph_nodes, METH_NOARGS, "nodes() -> [(name, [what it reads])]: inputs are counted behind the nodes" },
    { "artifact", graph_artifact, METH_VARARGS, "artifact(kind, level, name) -> bytes: \"asm\", \"llvm\", \"ir\" ..." },
    { "steps", host_graph_steps, METH_NOARGS, "steps() -> ((method, arguments, result), ...): what it is made of" },
    { "__reduce__", host_graph_reduce, METH_NOARGS, "Pickles the steps, or the model." },
    { NULL, NULL, 0, NULL }
};

static PyType_Slot graph_slots[] = {
    { Py_tp_new, graph_new },
    { Py_tp_dealloc, graph_dealloc },
    { Py_tp_methods, graph_methods },
    { Py_tp_doc,
      "Graph(source=None, dims={}, shapes={}, values={}, folder=None, sample=False): an empty graph, or that of an "
      ".onnx model; sample: its sizes are some of many that one kernel is for" },
    { 0, NULL }
};

PyType_Spec host_graph_spec = { "opjit._opjit.Graph", sizeof(host_graph), 0, Py_TPFLAGS_DEFAULT, graph_slots };
