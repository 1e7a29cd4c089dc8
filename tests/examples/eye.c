/* SPDX-License-Identifier: Apache-2.0 */
/* eye.c - compiles a 4 x 5 identity matrix and prints it. */
#include <opjit/opjit.h>
#include <stdio.h>

int main(void)
{
    const DML_BUFFER_TENSOR_DESC buffer = { DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_FLAG_NONE, 2,
                                            (const uint32_t[]){ 4, 5 }, NULL, 0, 0 };
    const DML_TENSOR_DESC tensor = { DML_TENSOR_TYPE_BUFFER, &buffer };
    const DML_DIAGONAL_MATRIX_OPERATOR_DESC eye = { .OutputTensor = &tensor, .Offset = 0, .Value = 1.0f };
    const DML_OPERATOR_DESC desc = { DML_OPERATOR_DIAGONAL_MATRIX, &eye };
    opjit_context *context = NULL; opjit_operator *op = NULL; opjit_kernel *kernel = NULL; opjit_error error;
    float out[4][5];
    const opjit_binding binding = { out, sizeof out };
    const opjit_call call = { .struct_size = sizeof call, .binding_count = 1, .bindings = &binding };
    const int failed =
        opjit_context_create(NULL, &context, &error) || opjit_operator_create(context, &desc, &op, &error) ||
        opjit_compile_operator(context, op, NULL, &kernel, &error) || opjit_kernel_call(kernel, &call, &error);
    for (int i = 0; i < 20 && !failed; i++)
        printf("%g%c", out[i / 5][i % 5], i % 5 < 4 ? ' ' : '\n');
    if (failed)
        fprintf(stderr, "%s: %s\n", opjit_status_name(error.status), error.message);
    opjit_kernel_release(kernel); opjit_operator_release(op); opjit_context_destroy(context);
    return failed;
}
