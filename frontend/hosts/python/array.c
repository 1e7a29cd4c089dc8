/* SPDX-License-Identifier: Apache-2.0 */
/* array.c - the memory of any array, without a copy: by the buffer protocol, by DLPack's table of functions, by
 * DLPack's capsules.  In this order, which is that of their costs; an output comes by a way that says whether it may be
 * written. */
#include <string.h>

#include "frontend/hosts/python/host.h"

/* DLManagedTensorVersioned. */
typedef struct dlpack_versioned {
    uint32_t major, minor;
    void *context;
    void (*deleter)(struct dlpack_versioned *);
    uint64_t flags;
    host_tensor tensor;
} dlpack_versioned;

#define DLPACK_READ_ONLY 1u

/* What one character of the struct module is; false: none that kernels take. */
static bool code_of(char letter, uint8_t *code)
{
    switch (letter) {
    case 'f':
    case 'd':
    case 'e': *code = HOST_CODE_FLOAT; return true;
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q':
    case 'n': *code = HOST_CODE_INT; return true;
    case 'B':
    case 'H':
    case 'I':
    case 'L':
    case 'Q':
    case 'N': *code = HOST_CODE_UINT; return true;
    case '?': *code = HOST_CODE_BOOL; return true;
    default: return false;
    }
}

/* What a message calls elements that are none of a kernel's. */
static const char *name_of_format(const char *format, Py_ssize_t bytes)
{
    static const char *const names[3][4] = { { "", "big-endian float16", "big-endian float32", "big-endian float64" },
                                             { "", "big-endian int16", "big-endian int32", "big-endian int64" },
                                             { "", "big-endian uint16", "big-endian uint32", "big-endian uint64" } };
    const int size = bytes == 2 ? 1 : bytes == 4 ? 2 : bytes == 8 ? 3 : 0;
    uint8_t code;
    if ((format[0] != '>' && format[0] != '!') || format[1] == '\0' || format[2] != '\0' || size == 0 ||
        !code_of(format[1], &code) || code == HOST_CODE_BOOL)
        return format;
    return names[code == HOST_CODE_FLOAT ? 0 : code == HOST_CODE_INT ? 1 : 2][size];
}

/* The view of a buffer; anything that is no array of numbers in this machine's order gets its format as type. */
static void view_of_buffer(host_array *a)
{
    const Py_buffer *const b = &a->buffer;
    const char *const format = b->format != NULL ? b->format : "B";
    const char *const letter = format + (*format == '@' || *format == '=' || *format == '<');
    const int shift = b->itemsize == 4 ? 2 : b->itemsize == 8 ? 3 : b->itemsize == 2 ? 1 : 0;
    host_tensor *const t = &a->tensor;
    *t = (host_tensor){ .data = b->buf,
                        .device = HOST_DEVICE_CPU,
                        .rank = b->ndim,
                        .bits = (uint8_t)(8u << shift),
                        .lanes = 1,
                        .sizes = (const int64_t *)b->shape,
                        .strides = a->strides };
    a->read_only = b->readonly != 0;
    if (letter[0] == '\0' || letter[1] != '\0' || !code_of(letter[0], &t->code) || b->itemsize != 1 << shift ||
        b->ndim > 8) {
        t->code = HOST_CODE_OTHER;
        a->type = name_of_format(format, b->itemsize);
    }
    for (int d = 0; d < b->ndim && d < 8; d++) {
        a->strides[d] = b->strides[d] >> shift;
        if ((b->strides[d] & ((1 << shift) - 1)) != 0) { /* between elements, as in a field of structures */
            t->code = HOST_CODE_OTHER;
            a->type = format;
        }
    }
}

/* The table of the object's type; NULL: it has none. */
static const dlpack_exchange *exchange_of(host_state *state, PyTypeObject *type)
{
    PyObject *capsule;
    if ((PyObject *)type == state->exchange_type)
        return state->exchange;
    capsule = PyObject_GetAttr((PyObject *)type, state->str_exchange);
    if (capsule != NULL) {
        const dlpack_exchange *const table = PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
        if (table != NULL && table->major == 1 && table->view != NULL) {
            Py_XDECREF(state->exchange_type);
            state->exchange_type = Py_NewRef((PyObject *)type);
            state->exchange = table; /* the type's, which is kept */
            Py_DECREF(capsule);
            return table;
        }
        Py_DECREF(capsule);
    }
    PyErr_Clear();
    return NULL;
}

static PyObject *capsule_of(host_state *state, PyObject *object)
{
    PyObject *const method = PyObject_GetAttr(object, state->str_dlpack);
    PyObject *const none = method != NULL ? PyTuple_New(0) : NULL;
    PyObject *capsule = none != NULL ? PyObject_Call(method, none, state->versions) : NULL;
    if (capsule == NULL && none != NULL && PyErr_ExceptionMatches(PyExc_TypeError)) { /* from before max_version */
        PyErr_Clear();
        capsule = PyObject_Call(method, none, NULL);
    }
    Py_XDECREF(none);
    Py_XDECREF(method);
    return capsule;
}

static int take_capsule(host_state *state, PyObject *object, host_array *out)
{
    out->capsule = capsule_of(state, object);
    if (out->capsule == NULL)
        return -1;
    if (PyCapsule_IsValid(out->capsule, "dltensor_versioned")) {
        const dlpack_versioned *const managed = PyCapsule_GetPointer(out->capsule, "dltensor_versioned");
        if (managed->major != 1) {
            PyErr_Format(PyExc_BufferError, "DLPack %u is not known", managed->major);
            return -1;
        }
        out->tensor = managed->tensor;
        out->read_only = (managed->flags & DLPACK_READ_ONLY) != 0;
    } else {
        const host_tensor *const tensor = PyCapsule_GetPointer(out->capsule, "dltensor");
        if (tensor == NULL)
            return -1;
        out->tensor = *tensor;
        out->read_only = true; /* it can't say that it may be written */
    }
    return 0;
}

int host_array_take(host_state *state, PyObject *object, uint32_t index, host_array *out)
{
    const dlpack_exchange *exchange;
    out->capsule = NULL;
    out->has_buffer = out->read_only = false;
    out->type = NULL;
    if (PyObject_CheckBuffer(object)) {
        if (PyObject_GetBuffer(object, &out->buffer, PyBUF_STRIDES | PyBUF_FORMAT) != 0)
            return -1;
        out->has_buffer = true;
        view_of_buffer(out);
        return 0;
    }
    exchange = exchange_of(state, Py_TYPE(object));
    if (exchange != NULL)
        return exchange->view(object, &out->tensor) != 0 ? -1 : 0;
    if (PyObject_HasAttrString(object, "__dlpack__"))
        return take_capsule(state, object, out);
    PyErr_Format(PyExc_TypeError, "buffer %u: an array is needed, %R given", index, (PyObject *)Py_TYPE(object));
    return -1;
}

/* The capsule keeps its name, so that its own destructor gives the tensor back. */
void host_array_drop(host_array *array)
{
    if (array->has_buffer)
        PyBuffer_Release(&array->buffer);
    Py_XDECREF(array->capsule);
}
