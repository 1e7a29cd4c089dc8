/* SPDX-License-Identifier: Apache-2.0 */
/* xla.c - the handler that XLA calls for opjit.jax: one for all kernels, which its attribute "kernel" names.  It runs
 * without the GIL, on threads of XLA's. */
#define _GNU_SOURCE /* getentropy */
#include "frontend/hosts/python/host.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "frontend/hosts/python/xla.h"

/* --- the table of kernels ----------------------------------------------------------------------------------------- */
/* Programs that XLA has compiled name a kernel by number, and nobody says when the last of them goes.  So a kernel that
 * was named stays for the process's life.  The number's upper bits are the process's own: a program that comes from
 * elsewhere, from a cache on disk for example, names none. */
enum { ROW = 1024, ROWS = 1024, NUMBER_BITS = 20 };
static _Atomic(host_kernel **) rows[ROWS];
static _Atomic(uint32_t) count;
static uint64_t process; /* set with the GIL, before the first number is given away */

static host_kernel *kernel_at(int64_t handle)
{
    const uint64_t number = (uint64_t)handle & ((1u << NUMBER_BITS) - 1);
    if ((uint64_t)handle >> NUMBER_BITS != process || number >= atomic_load_explicit(&count, memory_order_acquire))
        return NULL;
    return atomic_load_explicit(&rows[number / ROW], memory_order_relaxed)[number % ROW];
}

/* With the GIL held, so one at a time.  process takes 43 bits: handles are positive. */
static int add_kernel(host_kernel *k)
{
    const uint32_t number = atomic_load(&count);
    host_kernel **row = number / ROW < ROWS ? atomic_load(&rows[number / ROW]) : NULL;
    if (number == ROW * ROWS)
        return PyErr_SetString(PyExc_RuntimeError, "more than 2^20 kernels are known to XLA"), -1;
    if (process == 0 && getentropy(&process, sizeof process) != 0)
        return PyErr_SetFromErrno(PyExc_OSError), -1;
    if (number == 0)
        process = process >> (NUMBER_BITS + 1) | 1;
    if (row == NULL) {
        row = PyMem_Calloc(ROW, sizeof(host_kernel *));
        if (row == NULL)
            return PyErr_NoMemory(), -1;
        atomic_store(&rows[number / ROW], row);
    }
    row[number % ROW] = host_kernel_of(Py_NewRef((PyObject *)k));
    k->xla_handle = (int64_t)(process << NUMBER_BITS | number);
    atomic_store_explicit(&count, number + 1, memory_order_release);
    return 0;
}

PyObject *host_kernel_xla(PyObject *self, PyObject *unused)
{
    host_kernel *const k = host_kernel_of(self);
    (void)unused;
    if (k->dims != 0)
        return PyErr_SetString(PyExc_ValueError, "XLA's programs call no kernels with dynamic dimensions"), NULL;
    if (k->xla_handle == 0 && add_kernel(k) != 0)
        return NULL;
    return PyLong_FromLongLong(k->xla_handle);
}

/* --- calls -------------------------------------------------------------------------------------------------------- */
static xla_error *refuse(const xla_frame *frame, int code, const char *message)
{
    xla_error_args args = { sizeof args, NULL, message, code };
    return frame->api->error_create(&args);
}

/* The attribute "kernel"; 0: there is none. */
static int64_t handle_of(const xla_attributes *attributes)
{
    int64_t handle = 0;
    for (int64_t i = 0; i < attributes->count; i++) {
        const xla_text *const name = attributes->names[i];
        const xla_scalar *const scalar = attributes->values[i];
        if (name->length == 6 && memcmp(name->text, "kernel", 6) == 0 && attributes->kinds[i] == XLA_KIND_SCALAR &&
            scalar->type == XLA_S8 + 3)
            memcpy(&handle, scalar->value, sizeof handle);
    }
    return handle;
}

static void view(const xla_buffer *buffer, host_tensor *out)
{
    const int type = buffer->type;
    *out = (host_tensor){ .data = buffer->data,
                          .device = HOST_DEVICE_CPU,
                          .rank = (int32_t)buffer->rank,
                          .code = HOST_CODE_OTHER,
                          .lanes = 1,
                          .sizes = buffer->sizes };
    if (type >= XLA_S8 && type < XLA_U8 + 4) {
        out->code = type < XLA_U8 ? HOST_CODE_INT : HOST_CODE_UINT;
        out->bits = (uint8_t)(8u << (type - XLA_S8) % 4);
    } else if (type >= XLA_F16 && type <= XLA_F64) {
        out->code = HOST_CODE_FLOAT;
        out->bits = (uint8_t)(16u << (type - XLA_F16));
    } else if (type == XLA_PRED) {
        out->code = HOST_CODE_BOOL;
        out->bits = 8;
    }
}

static xla_error *take(const xla_frame *frame, const host_kernel *k, uint32_t index, opjit_binding *out)
{
    const bool is_output = index >= k->inputs;
    const xla_buffers *const list = is_output ? &frame->outputs : &frame->inputs;
    const xla_buffer *const buffer = list->items[is_output ? index - k->inputs : index];
    const host_port *const port = &k->ports[index];
    host_tensor tensor;
    opjit_error error;
    view(buffer, &tensor);
    *out = (opjit_binding){ tensor.data, port->bytes };
    if (opjit_host_fits(port, &tensor, false))
        return NULL;
    (void)opjit_host_check(port, index, &tensor, false, "another type", &error);
    return refuse(frame, XLA_INVALID_ARGUMENT, error.message);
}

static xla_error *call_with(const xla_frame *frame, const host_kernel *k, opjit_binding *bindings)
{
    opjit_call call = OPJIT_CALL_INIT;
    opjit_error error;
    for (uint32_t i = 0; i < k->inputs + k->outputs; i++) {
        xla_error *const refused = take(frame, k, i, &bindings[i]);
        if (refused != NULL)
            return refused;
    }
    call.binding_count = k->inputs + k->outputs;
    call.bindings = bindings;
    call.executor = k->executor;
    if (opjit_kernel_call(k->kernel, &call, &error) == OPJIT_OK)
        return NULL;
    return refuse(frame,
                  error.status == OPJIT_OUT_OF_MEMORY      ? XLA_RESOURCE_EXHAUSTED
                  : error.status == OPJIT_INVALID_ARGUMENT ? XLA_INVALID_ARGUMENT
                                                           : XLA_INTERNAL,
                  error.message);
}

/* What XLA calls. */
static xla_error *handler(xla_frame *frame)
{
    opjit_binding few[16], *bindings = few;
    const host_kernel *k;
    xla_error *result;
    char text[160];
    if (frame->extension != NULL && frame->extension->type == XLA_EXTENSION_METADATA) { /* asked at registration */
        xla_metadata *const metadata = ((xla_metadata_extension *)(void *)frame->extension)->metadata;
        metadata->version.major = XLA_VERSION_MAJOR;
        metadata->version.minor = XLA_VERSION_MINOR;
        metadata->traits = 0;
        return NULL;
    }
    if (frame->stage != XLA_STAGE_EXECUTE)
        return NULL;
    k = kernel_at(handle_of(&frame->attributes));
    if (k == NULL)
        return refuse(frame, XLA_INVALID_ARGUMENT,
                      "opjit: the kernel is another process's: opjit.jax programs can't "
                      "be exported or cached on disk");
    if (frame->inputs.count != (int64_t)k->inputs || frame->outputs.count != (int64_t)k->outputs) {
        snprintf(text, sizeof text, "opjit: %lld arrays and %lld results given, the kernel takes %u and %u",
                 (long long)frame->inputs.count, (long long)frame->outputs.count, k->inputs, k->outputs);
        return refuse(frame, XLA_INVALID_ARGUMENT, text);
    }
    if (k->inputs + k->outputs > sizeof few / sizeof *few) {
        bindings = malloc((k->inputs + k->outputs) * sizeof *bindings);
        if (bindings == NULL)
            return refuse(frame, XLA_RESOURCE_EXHAUSTED, "opjit: out of memory");
    }
    result = call_with(frame, k, bindings);
    if (bindings != few)
        free(bindings);
    return result;
}

PyObject *host_xla_handler(PyObject *module, PyObject *unused)
{
    union {
        xla_error *(*function)(xla_frame *frame);
        void *pointer;
    } target = { handler };
    (void)module, (void)unused;
    return PyCapsule_New(target.pointer, "xla._CUSTOM_CALL_TARGET", NULL);
}

/* --- checks while JAX traces -------------------------------------------------------------------------------------- */
/* An array as JAX describes it, of no memory yet. */
static int describe(host_state *state, PyObject *dtype, PyObject *shape, int64_t sizes[static 8], host_tensor *out)
{
    uint32_t numbers[8], rank;
    DML_TENSOR_DATA_TYPE type = DML_TENSOR_DATA_TYPE_UINT8;
    const bool is_bool = PyUnicode_Check(dtype) && PyUnicode_CompareWithASCIIString(dtype, "bool") == 0;
    if (host_sizes(shape, numbers, &rank) != 0)
        return -1;
    if (!is_bool && host_type_of(dtype, &type) != 0) { /* bfloat16 and the like: the message has its name */
        PyErr_Clear();
        type = DML_TENSOR_DATA_TYPE_UNKNOWN;
    }
    (void)state;
    for (uint32_t d = 0; d < rank; d++)
        sizes[d] = numbers[d];
    *out = (host_tensor){ .data = sizes, .device = HOST_DEVICE_CPU, .rank = (int32_t)rank, .lanes = 1, .sizes = sizes };
    opjit_host_elements(type, &out->code, &out->bits);
    if (is_bool)
        out->code = HOST_CODE_BOOL;
    return 0;
}

/* kernel._check(((dtype, shape), ...)): opjit.Error says which does not fit. */
PyObject *host_kernel_check(PyObject *self, PyObject *arrays)
{
    host_kernel *const k = host_kernel_of(self);
    if (k->dims != 0)
        return host_kernel_xla(self, NULL); /* says why not */
    if (!PyTuple_Check(arrays) || PyTuple_Size(arrays) != (Py_ssize_t)k->inputs)
        return PyErr_Format(PyExc_TypeError, "%zd arrays given, the kernel takes %u", PyObject_Size(arrays), k->inputs);
    for (uint32_t i = 0; i < k->inputs; i++) {
        PyObject *dtype, *shape;
        int64_t sizes[8];
        host_tensor tensor;
        opjit_error error;
        if (!PyArg_ParseTuple(PyTuple_GetItem(arrays, (Py_ssize_t)i), "UO", &dtype, &shape) ||
            describe(k->state, dtype, shape, sizes, &tensor) != 0)
            return NULL;
        if (opjit_host_check(&k->ports[i], i, &tensor, true, PyUnicode_AsUTF8AndSize(dtype, NULL), &error) != OPJIT_OK)
            return host_raise(k->state, &error);
    }
    return Py_NewRef(Py_None);
}
