/* SPDX-License-Identifier: Apache-2.0 */
/* array.c - the memory of any array, without a copy: by the buffer protocol, by DLPack's table of functions, by
 * DLPack's capsules.  In this order, which is that of their costs; an output comes by a way that says whether it may be
 * written. */
#include <stdio.h>
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
    static const char *const known[][2] = { { "Zf", "complex64" }, { "Zd", "complex128" }, { "O", "object" } };
    static const char *const names[3][4] = { { "", "big-endian float16", "big-endian float32", "big-endian float64" },
                                             { "", "big-endian int16", "big-endian int32", "big-endian int64" },
                                             { "", "big-endian uint16", "big-endian uint32", "big-endian uint64" } };
    const int size = bytes == 2 ? 1 : bytes == 4 ? 2 : bytes == 8 ? 3 : 0;
    uint8_t code;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(format, known[i][0]) == 0)
            return known[i][1];
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
                        .strides = b->strides != NULL ? a->strides : NULL }; /* those of ctypes have none */
    a->read_only = b->readonly != 0;
    if (letter[0] == '\0' || letter[1] != '\0' || !code_of(letter[0], &t->code) || b->itemsize != 1 << shift ||
        b->ndim > 8) {
        t->code = HOST_CODE_OTHER;
        a->type = name_of_format(format, b->itemsize);
    }
    for (int d = 0; d < b->ndim && d < 8 && b->strides != NULL; d++) {
        a->strides[d] = b->strides[d] >> shift;
        if ((b->strides[d] & ((1 << shift) - 1)) != 0) { /* between elements, as in a field of structures */
            t->code = HOST_CODE_OTHER;
            a->type = format;
        }
    }
}

/* What is known of the object's type; NULL: it has no table.  A place is kept for each of the last types: tensors and
 * parameters of PyTorch are two. */
static const host_kind *kind_of(host_state *state, PyObject *object)
{
    PyObject *const type = (PyObject *)Py_TYPE(object);
    PyObject *capsule;
    host_kind *kind;
    for (uint32_t i = 0; i < HOST_KINDS; i++)
        if (state->kinds[i].type == type)
            return &state->kinds[i];
    capsule = PyObject_GetAttr(type, state->str_exchange);
    if (capsule != NULL) {
        const dlpack_exchange *const table = PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
        Py_DECREF(capsule); /* the table is the type's */
        if (table != NULL && table->major == 1 && table->view != NULL) {
            kind = &state->kinds[state->next_kind++ % HOST_KINDS];
            Py_XDECREF(kind->type);
            *kind = (host_kind){ .type = Py_NewRef(type), .exchange = table };
            host_torch_look(state, kind, object);
            return kind;
        }
    }
    PyErr_Clear();
    return NULL;
}

/* The exception that is set, with the buffer's number before its text, of which the first line is kept: PyTorch's have
 * frames of C++ behind it. */
static void name_exception(uint32_t index)
{
    PyObject *type, *value, *trace, *text, *line;
    Py_ssize_t end;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    text = PyObject_Str(value);
    end = text != NULL ? PyUnicode_FindChar(text, '\n', 0, PyUnicode_GetLength(text), 1) : -1;
    line = text != NULL ? PyUnicode_Substring(text, 0, end >= 0 ? end : PyUnicode_GetLength(text)) : NULL;
    if (line != NULL && (type == PyExc_RuntimeError || type == PyExc_ValueError || type == PyExc_BufferError))
        PyErr_Format(type, "buffer %u: %U", index, line);
    else if (line != NULL && end >= 0)
        PyErr_Format(PyExc_RuntimeError, "buffer %u: %U", index, line);
    else
        PyErr_Restore(Py_XNewRef(type), Py_XNewRef(value), Py_XNewRef(trace));
    Py_XDECREF(line);
    Py_XDECREF(text);
    Py_XDECREF(trace);
    Py_XDECREF(value);
    Py_XDECREF(type);
}

int host_refuse(host_state *state, uint32_t index, const char *what, const char *why)
{
    opjit_error error = {
        .status = OPJIT_INVALID_ARGUMENT, .node = -1, .index = (int32_t)index, .op = "call", .field = "buffers"
    };
    snprintf(error.message, sizeof error.message, "buffer %u: %s given, %s", index, what, why);
    host_raise(state, &error);
    return -1;
}

static int take_exchange(host_state *state, const host_kind *kind, PyObject *object, uint32_t index,
                         host_array_role role, host_array *out)
{
    if (role == HOST_RESULT && host_torch_data(state, kind, object, &out->tensor))
        return 0;
    if (kind->exchange->view(object, &out->tensor) != 0) {
        name_exception(index);
        return -1;
    }
    if (role == HOST_RESULT || kind->torch == HOST_TORCH_NO)
        return 0;
    return host_torch_check(state, kind, object, index, &out->tensor);
}

/* Refuses a masked array that hides something; state->plain_type becomes the type of one that has no mask at all. */
static int check_mask(host_state *state, PyObject *object, uint32_t index)
{
    PyObject *const type = (PyObject *)Py_TYPE(object);
    PyObject *masked = NULL, *before;
    int hides = 0;
    if (PyObject_HasAttrString(type, "mask") && PyObject_HasAttrString(type, "fill_value")) {
        PyObject *const module = PyImport_ImportModule("numpy.ma");
        masked = module != NULL ? PyObject_CallMethod(module, "is_masked", "O", object) : NULL;
        hides = masked != NULL ? PyObject_IsTrue(masked) : -1;
        Py_XDECREF(module);
        Py_XDECREF(masked);
        if (hides > 0)
            return host_refuse(state, index, "a masked array", "kernels have no masks: filled() it");
        return hides;
    }
    before = state->plain_type;
    state->plain_type = Py_NewRef(type);
    Py_XDECREF(before);
    return 0;
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

static int take_capsule(host_state *state, PyObject *object, uint32_t index, host_array *out)
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
    } else if (PyCapsule_IsValid(out->capsule, "dltensor")) {
        out->tensor = *(const host_tensor *)PyCapsule_GetPointer(out->capsule, "dltensor");
        out->read_only = true; /* it can't say that it may be written */
    } else {
        PyErr_Format(PyExc_TypeError, "buffer %u: __dlpack__ gave no tensor that nobody took yet, %R", index,
                     (PyObject *)Py_TYPE(out->capsule));
        return -1;
    }
    return 0;
}

int host_array_take(host_state *state, PyObject *object, uint32_t index, host_array_role role, host_array *out)
{
    const host_kind *kind;
    out->capsule = NULL;
    out->has_buffer = out->read_only = false;
    out->type = NULL;
    if (PyObject_CheckBuffer(object)) {
        if (PyObject_GetBuffer(object, &out->buffer, PyBUF_STRIDES | PyBUF_FORMAT) != 0) {
            name_exception(index);
            return -1;
        }
        out->has_buffer = true;
        view_of_buffer(out);
        return (PyObject *)Py_TYPE(object) == state->plain_type ? 0 : check_mask(state, object, index);
    }
    kind = kind_of(state, object);
    if (kind != NULL)
        return take_exchange(state, kind, object, index, role, out);
    if (PyObject_HasAttrString(object, "__dlpack__"))
        return take_capsule(state, object, index, out);
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
