/* SPDX-License-Identifier: Apache-2.0 */
/* torch.c - what a tensor of PyTorch has that DLPack's view of it does not say: signs that are not in memory, somebody
 * who wants its gradient, a storage that was made smaller.  Asked by functions that PyTorch exports, 3 ns each, or by
 * its methods where this version lacks one of them. */
#define _GNU_SOURCE /* RTLD_NOLOAD */
#include <dlfcn.h>

#include "frontend/hosts/python/host.h"

/* The exported functions; the last two are at::native::is_neg and c10::TensorImpl::requires_grad. */
static bool find_functions(host_torch *torch)
{
    static const char *const names[] = { "torch_tensor_from_pyobject",
                                         "aoti_torch_delete_tensor_object",
                                         "aoti_torch_get_storage_size",
                                         "aoti_torch_get_storage_offset",
                                         "aoti_torch_get_data_ptr",
                                         "aoti_torch_grad_mode_is_enabled",
                                         "_ZN2at6native6is_negERKNS_6TensorE",
                                         "_ZNK3c1010TensorImpl13requires_gradEv" };
    void *const places[] = { &torch->handle_of, &torch->drop,         &torch->storage_bytes, &torch->storage_offset,
                             &torch->data_of,   &torch->is_recording, &torch->is_negated,    &torch->requires_grad };
    void *const library = dlopen("libtorch_cpu.so", RTLD_NOLOAD | RTLD_LAZY);
    bool has_all = library != NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && has_all; i++) {
        *(void **)places[i] = dlsym(library, names[i]);
        has_all = *(void **)places[i] != NULL;
    }
    if (!has_all)
        *torch = (host_torch){ 0 };
    if (library != NULL)
        dlclose(library); /* Python's module keeps it */
    return has_all;
}

/* A tensor's object is a handle behind what every object begins with. */
static void *handle_in(PyObject *object)
{
    return object + 1;
}

/* Whether that is so: a handle that PyTorch makes of the object is for the same tensor. */
static bool is_handle_in(const host_torch *torch, PyObject *object)
{
    void *handle = NULL;
    bool is_same;
    if (torch->handle_of(object, &handle) != 0 || handle == NULL)
        return false;
    is_same = *(void **)handle == *(void **)handle_in(object);
    torch->drop(handle);
    return is_same;
}

/* The C function behind a method without arguments; NULL: there is no such method, or it is one of Python's. */
static PyCFunction function_of(PyObject *object, const char *name)
{
    PyObject *const method = PyObject_GetAttrString(object, name);
    PyCFunction function = NULL;
    if (method == NULL)
        PyErr_Clear();
    else if (PyCFunction_Check(method) && PyCFunction_GetFlags(method) == METH_NOARGS)
        function = PyCFunction_GetFunction(method);
    Py_XDECREF(method);
    return function;
}

void host_torch_look(host_state *state, host_kind *kind, PyObject *object)
{
    if (!PyObject_HasAttrString(kind->type, "untyped_storage") ||
        !PyObject_HasAttr(kind->type, state->str_requires_grad))
        return;
    kind->torch = HOST_TORCH_METHODS;
    kind->is_negated = function_of(object, "is_neg");
    if ((state->torch.drop != NULL || find_functions(&state->torch)) && is_handle_in(&state->torch, object))
        kind->torch = HOST_TORCH_FUNCTIONS;
}

static int refuse_sign(host_state *state, uint32_t index)
{
    return host_refuse(state, index, "a view with the negative bit",
                       "its elements' signs are not in memory: "
                       "resolve_neg() it");
}

static int refuse_gradient(host_state *state, uint32_t index)
{
    return host_refuse(state, index, "a tensor that requires grad",
                       "kernels have no gradient: detach() it, or call under torch.no_grad()");
}

/* The bytes of a storage up to the tensor's last element, of which `offset` elements lie before its first one. */
static int64_t bytes_to_end(const host_tensor *t, int64_t offset)
{
    int64_t last = offset;
    for (int32_t d = 0; d < t->rank; d++) {
        if (t->sizes[d] == 0)
            return 0;
        last += (t->sizes[d] - 1) * t->strides[d];
    }
    return (last + 1) * (t->bits / 8) * t->lanes;
}

/* A storage can be made smaller, by resize_, while tensors are views of it. */
static int check_storage(host_state *state, uint32_t index, int64_t bytes, int64_t offset, host_tensor *t)
{
    if (bytes == 0)
        t->data = NULL;
    if (bytes == 0 || bytes >= bytes_to_end(t, offset))
        return 0;
    return host_refuse(state, index, "a tensor that is larger than its storage", "which was resized");
}

static int check_by_functions(host_state *state, PyObject *object, uint32_t index, host_tensor *t)
{
    const host_torch *const torch = &state->torch;
    void *const handle = handle_in(object);
    int64_t bytes = 0, offset = 0;
    if (torch->storage_bytes(handle, &bytes) != 0 || torch->storage_offset(handle, &offset) != 0)
        bytes = 0; /* it has none */
    if (check_storage(state, index, bytes, offset, t) != 0)
        return -1;
    if (torch->is_negated(handle))
        return refuse_sign(state, index);
    if (torch->requires_grad(*(void **)handle) && torch->is_recording())
        return refuse_gradient(state, index);
    return 0;
}

/* The number that a method gives; -1: none, and an exception is set. */
static int64_t number_of(PyObject *object, const char *method)
{
    PyObject *const number = object != NULL ? PyObject_CallMethod(object, method, NULL) : NULL;
    const int64_t value = number != NULL ? (int64_t)PyLong_AsLongLong(number) : -1;
    Py_XDECREF(number);
    return value;
}

/* 1 or 0; -1: an exception is set. */
static int is_recording(void)
{
    PyObject *const module = PyImport_ImportModule("torch");
    PyObject *const is_enabled = module != NULL ? PyObject_CallMethod(module, "is_grad_enabled", NULL) : NULL;
    const int result = is_enabled != NULL ? is_enabled != Py_False : -1;
    Py_XDECREF(is_enabled);
    Py_XDECREF(module);
    return result;
}

static int check_by_methods(host_state *state, const host_kind *kind, PyObject *object, uint32_t index,
                            host_tensor *t)
{
    PyObject *const storage = PyObject_CallMethod(object, "untyped_storage", NULL);
    const int64_t bytes = number_of(storage, "nbytes");
    const int64_t offset = bytes >= 0 ? number_of(object, "storage_offset") : -1;
    PyObject *answer;
    int is_set, recording;
    Py_XDECREF(storage);
    if (offset < 0 || check_storage(state, index, bytes, offset, t) != 0)
        return -1;
    answer = kind->is_negated != NULL ? kind->is_negated(object, NULL) : Py_NewRef(Py_False);
    is_set = answer != NULL ? answer == Py_True : -1;
    Py_XDECREF(answer);
    if (is_set != 0)
        return is_set > 0 ? refuse_sign(state, index) : -1;
    answer = PyObject_GetAttr(object, state->str_requires_grad);
    is_set = answer != NULL ? answer == Py_True : -1;
    Py_XDECREF(answer);
    if (is_set <= 0)
        return is_set;
    recording = is_recording();
    return recording > 0 ? refuse_gradient(state, index) : recording;
}

bool host_torch_data(const host_state *state, const host_kind *kind, PyObject *object, host_tensor *t)
{
    t->offset = 0;
    return kind->torch == HOST_TORCH_FUNCTIONS && state->torch.data_of(handle_in(object), &t->data) == 0;
}

int host_torch_check(host_state *state, const host_kind *kind, PyObject *object, uint32_t index, host_tensor *t)
{
    return kind->torch == HOST_TORCH_FUNCTIONS ? check_by_functions(state, object, index, t)
                                               : check_by_methods(state, kind, object, index, t);
}
