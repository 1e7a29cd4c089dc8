/* SPDX-License-Identifier: Apache-2.0 */
/* host.h - what the files of the extension share.  All of it runs with the GIL held unless a comment says otherwise. */
#ifndef OPJIT_PYTHON_HOST_H
#define OPJIT_PYTHON_HOST_H

#define Py_LIMITED_API 0x030B0000 /* Python 3.11: the first with the buffer protocol in its stable ABI */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include <opjit/dynamic.h>
#include <opjit/graph.h>
#include <opjit/model.h>
#include <opjit/reflect.h>

#include "frontend/hosts/check.h"

/* DLPack's table of functions on a type, __dlpack_c_exchange_api__ (DLPack 1.3). */
typedef struct dlpack_exchange {
    uint32_t major, minor;
    struct dlpack_exchange *prev;
    int (*allocate)(void *prototype, void **out, void *error_user, void (*error)(void *, const char *, const char *));
    int (*from_object)(void *object, void **out);
    int (*to_object)(void *managed, void **out);
    int (*view)(void *object, host_tensor *out); /* borrowed from the object; 0: done, else an exception is set */
} dlpack_exchange;

/* How an array's type is asked for what PyTorch's tensors have beside their memory (torch.c). */
typedef enum host_torch_kind { HOST_TORCH_NO, HOST_TORCH_METHODS, HOST_TORCH_FUNCTIONS } host_torch_kind;
/* A type whose arrays are taken by DLPack's table. */
typedef struct host_kind {
    PyObject *type; /* NULL: the place is free */
    const dlpack_exchange *exchange;
    host_torch_kind torch;
    PyCFunction is_negated; /* of METHODS; NULL: there is none */
} host_kind;
#define HOST_KINDS 4

/* Functions that PyTorch exports.  A handle is a pointer to the pointer to a tensor. */
typedef struct host_torch {
    int32_t (*handle_of)(void *object, void **handle); /* a new one; 0: done, as for the others */
    int32_t (*drop)(void *handle);
    int32_t (*storage_bytes)(void *handle, int64_t *out);
    int32_t (*storage_offset)(void *handle, int64_t *out); /* elements */
    int32_t (*data_of)(void *handle, void **out);
    bool (*is_recording)(void); /* gradients */
    bool (*is_negated)(const void *handle);
    bool (*requires_grad)(const void *tensor);
} host_torch;

/* PyArray_NewFromDescr, which takes over the dtype: type, dtype, rank, sizes, strides, memory, flags, whose attributes
 * the array gets. */
typedef PyObject *(*host_numpy_fn)(PyTypeObject *, PyObject *, int, const int64_t *, const int64_t *, void *, int,
                                   PyObject *);

/* The module's state: one for each interpreter. */
typedef struct host_state {
    opjit_context *context; /* made when it is first needed */
    opjit_pool *pool;       /* of pool_threads threads; NULL: none yet */
    uint32_t pool_threads;
    PyObject *error; /* opjit.Error */
    PyObject *graph_type, *kernel_type;
    PyObject *str_out, *str_dlpack, *str_exchange, *str_requires_grad,
        *versions;                       /* constants of calls; versions: { "max_version": (1, 3) } */
    PyObject *numpy_empty, *numpy_dtype; /* NumPy's; NULL: not asked for yet */
    host_numpy_fn numpy_new;             /* the same as numpy_empty, of C; NULL: NumPy does not have it */
    PyTypeObject *numpy_array;           /* what that makes */
    host_kind kinds[HOST_KINDS];         /* the types that had a table last */
    uint32_t next_kind;                  /* which place the next one gets */
    host_torch torch;                    /* zero: not looked for, or this version has not all of them */
    PyObject *plain_type;                /* the type with a buffer that had no mask last */
} host_state;

/* An input or output of a graph as it was declared: a kernel knows the view of it that one of its readers has. */
typedef struct host_declared {
    opjit_tensor_type type;
    PyObject *name; /* text, or None */
    bool is_output;
    bool is_bool; /* an output of UINT8 that is 0 or 1 */
} host_declared;

/* A graph that is being built, or a model, which has one. */
typedef struct host_graph {
    PyObject_HEAD host_state *state; /* the type's */
    opjit_graph *graph;              /* NULL: it was not made, or nobody asked the model for it (host_graph_built) */
    opjit_model *model;              /* whose graph it is; NULL: none */
    bool has_values;                 /* some of the model's inputs were given for good */
    PyObject *held;                  /* what the model or the graph borrows */
    host_declared *declared;
    uint32_t declared_count;
    PyObject *steps; /* a list of (method, arguments, result): what it is made of, for copies */
    bool busy;       /* somebody compiles it without the GIL */
} host_graph;

/* A product of up to two dimensions: 1 + their numbers; 0: none. */
typedef struct host_term {
    uint8_t a, b;
    int64_t factor;
} host_term;
/* A size of an array of a kernel with dynamic dimensions: base and two products; or, where by is not 0, the first term
 * has a quotient in place of its dimension, floor((dimension + plus) / by). */
typedef struct host_form {
    int64_t base;
    host_term terms[2]; /* of factor 0: there is none */
    int64_t plus, by;
} host_form;
typedef struct host_forms {
    host_form sizes[8];
} host_forms;
/* Where a dimension follows from the size of an input, which is base + factor * it. */
typedef struct host_source {
    int64_t base, factor; /* factor 0: nowhere */
    uint32_t input, axis;
} host_source;
typedef struct host_shape {
    uint32_t rank;
    int64_t sizes[8];
} host_shape;

typedef PyObject *(*host_call_fn)(PyObject *self, PyObject *const *args, size_t count, PyObject *names);
/* A compiled kernel as a callable. */
typedef struct host_kernel {
    PyObject_HEAD host_call_fn call;
    host_state *state; /* the type's */
    opjit_kernel *kernel;
    host_graph *graph; /* kept: its model has the weights */
    const opjit_executor *executor;
    uint32_t inputs, outputs;
    bool keeps_gil;     /* a call was a short one */
    bool interprets;    /* that was asked for */
    host_port *ports;   /* inputs, then outputs */
    int64_t xla_handle; /* what XLA calls it; 0: nothing yet (xla.c) */
    PyObject **shapes;  /* of the outputs: (shape, dtype); NULL: not asked for yet */
    PyObject **makers;  /* of the outputs, two each: the type of the first array, what makes results for it; or NULL */
    uint32_t *rows;     /* of the ports: their numbers among the graph's (host_graph_port) */
    uint32_t dims;      /* dynamic dimensions; the rest is only there if there are any */
    uint64_t lo[OPJIT_MAX_DIMS];
    host_source sources[OPJIT_MAX_DIMS];
    host_forms *forms; /* of the ports */
} host_kernel;
static inline host_kernel *host_kernel_of(PyObject *self)
{
    return (host_kernel *)(void *)self;
}

extern PyType_Spec host_graph_spec, host_kernel_spec;

/* Sets opjit.Error, with the fields of *error; gives NULL. */
PyObject *host_raise(host_state *state, const opjit_error *error);
/* The context, or NULL and an exception. */
opjit_context *host_context(host_state *state);
/* The executor of a pool of that many threads, 0 for each core; NULL for 1, or with an exception. */
const opjit_executor *host_executor(host_state *state, uint32_t threads);

/* What a message shows of a value: itself where that is one line, else its type; borrowed. */
PyObject *host_brief(PyObject *value);
/* "float32"; a new reference. */
PyObject *host_type_text(DML_TENSOR_DATA_TYPE type);
/* The other way; UNKNOWN for None.  -1: none, and there is an exception. */
int host_type_of(PyObject *text, DML_TENSOR_DATA_TYPE *out);
/* Numbers of a sequence into out[8]; -1: they are none, or too many. */
int host_sizes(PyObject *sequence, uint32_t *out, uint32_t *count);
/* A tuple of `count` numbers; a new reference. */
PyObject *host_numbers(uint32_t count, const int64_t *numbers);

/* The graph, or NULL and an exception while it is compiled on another thread. */
host_graph *host_graph_of(PyObject *self);
/* What is built; of a model the graph, which it is asked for at the first time: until then it may be out of a cache,
 * and compiled without one. */
opjit_graph *host_graph_built(host_graph *graph);
/* Tensors are numbers in Python. */
static inline opjit_tensor host_tensor_of(unsigned long long handle)
{
    return (opjit_tensor){ (uint32_t)(handle >> 32), (uint32_t)handle };
}
static inline PyObject *host_handle(opjit_tensor tensor)
{
    return PyLong_FromUnsignedLongLong((uint64_t)tensor.graph << 32 | tensor.index);
}
/* Adds an operator: graph.node(type, inputs, fields, outputs, name). */
PyObject *host_graph_node(PyObject *self, PyObject *args);
/* The operators of this build as data: operators(). */
PyObject *host_operators(PyObject *module, PyObject *unused);

/* An array of anybody's, held for a call. */
typedef struct host_array {
    host_tensor tensor;
    PyObject *capsule; /* of __dlpack__; NULL: none */
    bool has_buffer;   /* `buffer` is held */
    bool read_only;    /* it may not be written, or nobody says that it may */
    const char *type;  /* in words, where tensor.code is OTHER */
    int64_t strides[8];
    Py_buffer buffer;
} host_array;

/* What an array is of a call: the caller's, or a result that was just made, of which all is known. */
typedef enum host_array_role { HOST_INPUT, HOST_OUTPUT, HOST_RESULT } host_array_role;

/* Raises "buffer 1: WHAT given, WHY"; gives -1. */
int host_refuse(host_state *state, uint32_t index, const char *what, const char *why);
/* Fills what `kind` has to say of PyTorch, of which `object` is the first of its type. */
void host_torch_look(host_state *state, host_kind *kind, PyObject *object);
/* The memory of a tensor that was just made; false: not known in this way. */
bool host_torch_data(const host_state *state, const host_kind *kind, PyObject *object, host_tensor *tensor);
/* Refuses a tensor whose memory is not all of it; *tensor has no data where it has no memory.  -1: an exception is
 * set. */
int host_torch_check(host_state *state, const host_kind *kind, PyObject *object, uint32_t index, host_tensor *tensor);
/* Takes the memory of buffer `index` without a copy; -1: it has none, or it has not all that the array means (a
 * gradient, a mask, signs), and there is an exception. */
int host_array_take(host_state *state, PyObject *object, uint32_t index, host_array_role role, host_array *out);
void host_array_drop(host_array *array);

/* A new array for the output: NumPy's, unless `first`, the first array of the call, is of another library that makes
 * its own; NULL: there is an exception. */
PyObject *host_result_make(host_kernel *k, uint32_t output, const host_port *port, PyObject *first);
/* Its memory; NULL: only host_array_take finds it. */
void *host_result_data(const host_state *state, PyObject *result);

/* A callable of the kernel, which it takes over; also where it fails.  graph: what it was made of, kept. */
PyObject *host_kernel_new(host_state *state, opjit_kernel *kernel, host_graph *graph, const opjit_executor *executor);
/* The shape is this one, packed. */
void host_reshape_port(host_port *port, uint32_t rank, const uint64_t *sizes);
/* Inputs and outputs of a graph as they were declared, or of its model, and one of them. */
uint32_t host_graph_ports(const host_graph *graph);
void host_graph_port(const host_graph *graph, uint32_t index, host_shape *out);
int host_read_level(const char *text, opjit_level *out);

/* compile_dynamic(function, ranges, level, interpret, threads, borrow) -> Kernel (dynamic.c, as the next ones). */
PyObject *host_compile_dynamic(PyObject *module, PyObject *args);
/* The dimensions of a call: of its inputs, or given by name; -1: an exception is set. */
int host_dynamic_dims(const host_kernel *k, const host_array *arrays, PyObject *given, uint64_t *dims);
/* What arrays have to be for these dimensions; -1: these are out of bounds, and an exception is set. */
int host_dynamic_ports(const host_kernel *k, const uint64_t *dims, host_port *ports);
/* A tuple of numbers and texts. */
PyObject *host_dynamic_shape(const host_kernel *k, uint32_t port);
PyObject *host_dynamic_ranges(const host_kernel *k);
extern PyMethodDef host_kernel_methods[];
extern PyGetSetDef host_kernel_fields[];
PyObject *host_kernel_repr(PyObject *self);

/* Kernel._xla(): the number that a program of XLA's calls it by, from now on for the process's life. */
PyObject *host_kernel_xla(PyObject *self, PyObject *unused);
PyObject *host_kernel_check(PyObject *self, PyObject *arrays);
/* xla_handler() -> capsule: what XLA calls. */
PyObject *host_xla_handler(PyObject *module, PyObject *unused);

/* Opens a model: (source, dims, shapes, values, folder). */
int host_graph_open(host_graph *graph, PyObject *args);
/* Keeps the step that gave `result`, which it takes over and gives back; NULL where that is NULL, or with an
 * exception. */
PyObject *host_graph_keep(host_graph *graph, const char *method, PyObject *args, PyObject *result);
/* Graph.steps() and Graph.__reduce__(). */
PyObject *host_graph_steps(PyObject *self, PyObject *unused);
PyObject *host_graph_reduce(PyObject *self, PyObject *unused);

#endif
