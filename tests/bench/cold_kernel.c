/* SPDX-License-Identifier: Apache-2.0 */
/* cold_kernel.c - an application linked to libopjit.so at its first kernel: creates, compiles and calls a 4 x 4
 * identity matrix with the disk cache in the folder argv[1].  Prints the nanoseconds for the descriptor, for the kernel
 * from compile to the end of its first call, and whether LLVM was mapped.  bench_disk.c runs it many times. */
#define _POSIX_C_SOURCE 200809L
#include <opjit/opjit.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static double now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int llvm_is_mapped(void)
{
    FILE *const maps = fopen("/proc/self/maps", "r");
    char line[4096];
    int found = maps == NULL;

    while (maps != NULL && fgets(line, sizeof line, maps) != NULL)
        found = found || strstr(line, "opjit-codegen") != NULL || strstr(line, "LLVM") != NULL;
    if (maps != NULL)
        fclose(maps);
    return found;
}

int main(int argc, char **argv)
{
    static float out[4][4];
    const DML_BUFFER_TENSOR_DESC buffer = {
        DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_FLAG_NONE, 2, (const uint32_t[]){ 4, 4 }, NULL, 0, 0
    };
    const DML_TENSOR_DESC tensor = { DML_TENSOR_TYPE_BUFFER, &buffer };
    const DML_DIAGONAL_MATRIX_OPERATOR_DESC eye = { .OutputTensor = &tensor, .Value = 1 };
    const DML_OPERATOR_DESC desc = { DML_OPERATOR_DIAGONAL_MATRIX, &eye };
    const opjit_binding binding = { out, sizeof out };
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
    opjit_call call = OPJIT_CALL_INIT;
    opjit_context *context;
    opjit_operator *op;
    opjit_kernel *kernel;
    opjit_error error;
    double times[3];

    options.cache_dir = argc == 2 ? argv[1] : "";
    call.bindings = &binding;
    call.binding_count = 1;
    if (opjit_context_create(&options, &context, &error) != OPJIT_OK)
        return fprintf(stderr, "cold_kernel: %s\n", error.message) > 0;
    times[0] = now_ns(); /* the first asks for the clock's own page */
    times[0] = now_ns();
    if (opjit_operator_create(context, &desc, &op, &error) != OPJIT_OK)
        return fprintf(stderr, "cold_kernel: %s\n", error.message) > 0;
    times[1] = now_ns();
    if (opjit_compile_operator(context, op, NULL, &kernel, &error) != OPJIT_OK ||
        opjit_kernel_call(kernel, &call, &error) != OPJIT_OK)
        return fprintf(stderr, "cold_kernel: %s\n", error.message) > 0;
    times[2] = now_ns();
    printf("%.0f %.0f %d\n", times[1] - times[0], times[2] - times[1], llvm_is_mapped());
    opjit_kernel_release(kernel);
    opjit_operator_release(op);
    opjit_context_destroy(context);
    return out[3][3] != 1 || out[3][2] != 0;
}
