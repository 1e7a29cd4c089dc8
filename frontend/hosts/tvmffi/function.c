/* SPDX-License-Identifier: Apache-2.0 */
/* function.c - a kernel as a function object of TVM FFI, and TVM FFI's own functions, which are looked for when they
 * are first needed: this module is linked with nothing of it. */
#define _GNU_SOURCE /* RTLD_DEFAULT */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/hosts/tvmffi/host.h"

/* NULL: whoever called has not loaded it. */
static void *find(const char *name)
{
    void *const library = dlopen("libtvm_ffi.so", RTLD_NOLOAD | RTLD_LAZY);
    void *const symbol = dlsym(library != NULL ? library : RTLD_DEFAULT, name);
    if (library != NULL)
        dlclose(library);
    return symbol;
}

int tvm_raise(const char *kind, const char *message)
{
    union {
        void *symbol;
        tvm_raise_fn *function;
    } raise = { find("TVMFFIErrorSetRaisedFromCStr") };
    if (raise.symbol != NULL)
        raise.function(kind, message);
    return -1;
}

int tvm_raise_error(const opjit_error *error)
{
    return tvm_raise(error->status == OPJIT_OUT_OF_MEMORY ? "MemoryError" : "ValueError", error->message);
}

/* --- calls -------------------------------------------------------------------------------------------------------- */
static const host_tensor *tensor_of(const tvm_any *any)
{
    if (any->type == TVM_DLTENSOR)
        return any->value.pointer;
    if (any->type == TVM_TENSOR)
        return (const host_tensor *)(const void *)((const char *)any->value.pointer + TVM_OBJECT_HEADER);
    return NULL;
}

static int call_with(const tvm_kernel *k, const tvm_any *args, opjit_binding *bindings)
{
    opjit_call call = OPJIT_CALL_INIT;
    opjit_error error;
    for (uint32_t i = 0; i < k->inputs + k->outputs; i++) {
        const host_tensor *const tensor = tensor_of(&args[i]);
        if (tensor == NULL) {
            char text[80];
            snprintf(text, sizeof text, "buffer %u: a tensor expected", i);
            return tvm_raise("TypeError", text);
        }
        if (!opjit_host_fits(&k->ports[i], tensor, false)) {
            (void)opjit_host_check(&k->ports[i], i, tensor, false, "another type", &error);
            return tvm_raise_error(&error);
        }
        bindings[i] = (opjit_binding){ (char *)tensor->data + tensor->offset, k->ports[i].bytes };
    }
    call.binding_count = k->inputs + k->outputs;
    call.bindings = bindings;
    return opjit_kernel_call(k->kernel, &call, &error) == OPJIT_OK ? 0 : tvm_raise_error(&error);
}

static int call_kernel(void *self, const tvm_any *args, int32_t count, tvm_any *result)
{
    const tvm_kernel *const k = self;
    const uint32_t total = k->inputs + k->outputs;
    opjit_binding few[16], *many;
    int status;
    *result = (tvm_any){ .type = TVM_NONE };
    if (count < 0 || (uint32_t)count != total) {
        char text[120];
        snprintf(text, sizeof text, "%d arguments given, the kernel takes %u inputs and %u outputs", (int)count,
                 k->inputs, k->outputs);
        return tvm_raise("TypeError", text);
    }
    if (total <= sizeof few / sizeof *few)
        return call_with(k, args, few);
    many = malloc(total * sizeof *many);
    if (many == NULL)
        return tvm_raise("MemoryError", "out of memory");
    status = call_with(k, args, many);
    free(many);
    return status;
}

/* --- life --------------------------------------------------------------------------------------------------------- */
static void destroy(void *self)
{
    tvm_kernel *const k = self;
    opjit_kernel_release(k->kernel);
    opjit_model_close(k->model);
    free(k->held);
    free(k->ports);
    free(k);
}

/* A model's scalars and booleans. */
static void ports_of_model(tvm_kernel *k)
{
    const uint32_t inputs = opjit_model_input_count(k->model), outputs = opjit_model_output_count(k->model);
    for (uint32_t i = 0; i < inputs + outputs; i++) {
        opjit_model_port port = OPJIT_MODEL_PORT_INIT;
        const opjit_status status = i < inputs ? opjit_model_get_input(k->model, i, &port, NULL)
                                               : opjit_model_get_output(k->model, i - inputs, &port, NULL);
        int64_t packed = 1;
        if (status != OPJIT_OK || port.binding < 0 || (uint32_t)port.binding >= k->inputs + k->outputs)
            continue;
        host_port *const to = &k->ports[port.binding];
        to->takes_bool = to->is_output ? port.is_bool != 0 : to->takes_bool;
        to->rank = port.rank;
        for (uint32_t d = port.rank; d-- > 0; packed *= to->sizes[d]) {
            to->sizes[d] = (int64_t)port.sizes[d];
            to->strides[d] = packed;
        }
    }
}

static opjit_status fill(tvm_kernel *k, opjit_error *error)
{
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    const opjit_status status = opjit_kernel_get_info(k->kernel, &info, error);
    if (status != OPJIT_OK)
        return status;
    k->inputs = info.inputs;
    k->outputs = info.outputs;
    k->ports = calloc((size_t)info.inputs + info.outputs + 1, sizeof *k->ports);
    if (k->ports == NULL) {
        *error = (opjit_error){ .status = OPJIT_OUT_OF_MEMORY, .message = "out of memory" };
        return OPJIT_OUT_OF_MEMORY;
    }
    for (uint32_t i = 0; i < info.inputs + info.outputs; i++)
        opjit_host_port(&info, i, &k->ports[i]);
    if (k->model != NULL)
        ports_of_model(k);
    return OPJIT_OK;
}

int tvm_kernel_make(opjit_kernel *kernel, opjit_model *model, void *held, tvm_any *out)
{
    tvm_kernel *const k = calloc(1, sizeof *k);
    union {
        void *symbol;
        tvm_make_fn *function;
    } make = { find("TVMFFIFunctionCreate") };
    opjit_error error;
    void *function = NULL;
    int status = -1;
    if (k == NULL) {
        opjit_kernel_release(kernel);
        opjit_model_close(model);
        free(held);
        return tvm_raise("MemoryError", "out of memory");
    }
    *k = (tvm_kernel){ .kernel = kernel, .model = model, .held = held };
    if (fill(k, &error) != OPJIT_OK)
        (void)tvm_raise_error(&error);
    else if (make.symbol != NULL)
        status = make.function(k, call_kernel, destroy, &function);
    if (status == 0)
        *out = (tvm_any){ .type = TVM_FUNCTION, .value.pointer = function };
    else
        destroy(k);
    return status;
}
