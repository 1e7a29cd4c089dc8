/* SPDX-License-Identifier: Apache-2.0 */
/* runtime.c - an application that ships kernels made elsewhere: it links opjit-runtime and no compiler. */
#include <stdio.h>
#include <string.h>

#include <opjit/artifact.h>
#include <opjit/opjit.h>

#include "consumer_kernels.h"

static int fail(const char *what, const opjit_error *error)
{
    fprintf(stderr, "%s: %s: %s\n", what, opjit_status_name(error->status), error->message);
    return 1;
}

/* The device library is found beside ours, and finds no driver where there is none. */
static int check_devices(void)
{
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
    opjit_context *context;
    opjit_error error;
    options.device = "cuda:0";
    options.device_driver = "/nowhere/libcuda.so.1";
    if (opjit_context_create(&options, &context, &error) != OPJIT_UNAVAILABLE ||
        strstr(error.message, "CUDA driver: /nowhere") == NULL)
        return fail("devices", &error);
    return 0;
}

int main(void)
{
    opjit_context *context;
    opjit_library *library;
    opjit_kernel *kernel;
    opjit_error error;
    int16_t numbers[4] = { 1, -2, 3, 4 };
    const opjit_binding bindings[] = { { numbers, sizeof numbers }, { numbers, sizeof numbers } };
    opjit_call call = OPJIT_CALL_INIT;
    call.bindings = bindings;
    call.binding_count = 2;
    if (opjit_context_create(NULL, &context, &error) != OPJIT_OK)
        return fail("context", &error);
    if (opjit_library_of(context, &consumer_kernels_registry, &library, &error) != OPJIT_OK)
        return fail("library", &error);
    if (opjit_library_find(library, "negate", &kernel, &error) != OPJIT_OK)
        return fail("kernel", &error);
    if (opjit_kernel_call(kernel, &call, &error) != OPJIT_OK)
        return fail("call", &error);
    opjit_kernel_release(kernel);
    opjit_library_close(library);
    opjit_context_destroy(context);
    return numbers[0] != -1 || numbers[1] != 2 || numbers[2] != -3 || check_devices();
}
