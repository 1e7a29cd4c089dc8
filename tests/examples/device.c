/* SPDX-License-Identifier: Apache-2.0 */
/* device.c - adds two vectors on the first GPU of CUDA's driver, or of HIP: `device cuda` or `device hip`. */
#include <opjit/device.h>
#include <opjit/opjit.h>
#include <stdio.h>

enum { COUNT = 1000 };

static opjit_status run(opjit_context *context, opjit_kernel *kernel, float values[COUNT], opjit_error *error)
{
    opjit_binding bindings[3] = { { NULL, COUNT * sizeof(float) },
                                  { NULL, COUNT * sizeof(float) },
                                  { NULL, COUNT * sizeof(float) } };
    const opjit_call call = { .struct_size = sizeof call, .binding_count = 3, .bindings = bindings };
    opjit_status status = OPJIT_OK;

    for (int i = 0; i < 3 && status == OPJIT_OK; i++)
        status = opjit_device_allocate(context, bindings[i].bytes, &bindings[i].data, error);
    for (int i = 0; i < 2 && status == OPJIT_OK; i++)
        status = opjit_device_write(context, NULL, bindings[i].data, values, bindings[i].bytes, error);
    if (status == OPJIT_OK)
        status = opjit_kernel_call(kernel, &call, error); /* returns before it has run */
    if (status == OPJIT_OK)
        status = opjit_device_read(context, NULL, values, bindings[2].data, bindings[2].bytes, error); /* waits */
    for (int i = 0; i < 3; i++)
        opjit_device_free(context, bindings[i].data);
    return status;
}

int main(int argc, char **argv)
{
    const DML_BUFFER_TENSOR_DESC buffer = {
        DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_FLAG_NONE, 1, (const uint32_t[]){ COUNT }, NULL, 0, 0
    };
    const DML_TENSOR_DESC tensor = { DML_TENSOR_TYPE_BUFFER, &buffer };
    const DML_ELEMENT_WISE_ADD_OPERATOR_DESC add = { &tensor, &tensor, &tensor };
    const DML_OPERATOR_DESC desc = { DML_OPERATOR_ELEMENT_WISE_ADD, &add };
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
    opjit_context *context = NULL;
    opjit_operator *op = NULL;
    opjit_kernel *kernel = NULL;
    opjit_error error;
    float values[COUNT];

    options.device = argc > 1 ? argv[1] : "cuda";
    for (int i = 0; i < COUNT; i++)
        values[i] = (float)i;
    const int failed =
        opjit_context_create(&options, &context, &error) || opjit_operator_create(context, &desc, &op, &error) ||
        opjit_compile_operator(context, op, NULL, &kernel, &error) || run(context, kernel, values, &error);
    if (failed)
        fprintf(stderr, "%s: %s\n", opjit_status_name(error.status), error.message);
    else
        printf("%s: 999 + 999 = %g\n", opjit_context_target(context), values[999]);
    opjit_kernel_release(kernel);
    opjit_operator_release(op);
    opjit_context_destroy(context);
    return failed;
}
