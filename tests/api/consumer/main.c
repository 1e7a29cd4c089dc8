/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - a 4x5 identity matrix through the public interface: compiled for this CPU, called, compared. */
#include <stdio.h>
#include <string.h>

#include <opjit/opjit.h>

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
    enum { ROWS = 4, COLUMNS = 5 };
    const uint32_t sizes[4] = { 1, 1, ROWS, COLUMNS };
    DML_BUFFER_TENSOR_DESC buffer = { DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_FLAG_NONE, 4, sizes, NULL, 0, 0 };
    buffer.TotalTensorSizeInBytes = ROWS * COLUMNS * sizeof(float);
    const DML_TENSOR_DESC tensor = { DML_TENSOR_TYPE_BUFFER, &buffer };
    const DML_DIAGONAL_MATRIX_OPERATOR_DESC eye = { &tensor, 0, 1.0f };
    const DML_OPERATOR_DESC desc = { DML_OPERATOR_DIAGONAL_MATRIX, &eye };

    opjit_context *context;
    opjit_operator *op;
    opjit_kernel *kernel;
    opjit_error error;
    if (opjit_context_create(NULL, &context, &error) != OPJIT_OK)
        return fail("context", &error);
    if (opjit_operator_create(context, &desc, &op, &error) != OPJIT_OK)
        return fail("operator", &error);
    if (opjit_compile_operator(context, op, NULL, &kernel, &error) != OPJIT_OK)
        return fail("compile", &error);

    float matrix[ROWS][COLUMNS];
    const opjit_binding binding = { matrix, sizeof matrix };
    opjit_call call = OPJIT_CALL_INIT;
    call.bindings = &binding;
    call.binding_count = 1;
    if (opjit_kernel_call(kernel, &call, &error) != OPJIT_OK)
        return fail("call", &error);
    opjit_kernel_release(kernel);
    opjit_operator_release(op);
    opjit_context_destroy(context);

    for (int y = 0; y < ROWS; y++)
        for (int x = 0; x < COLUMNS; x++)
            if (matrix[y][x] != (x == y ? 1.0f : 0.0f)) {
                fprintf(stderr, "element %d,%d is %g\n", y, x, (double)matrix[y][x]);
                return 1;
            }
    return check_devices();
}
