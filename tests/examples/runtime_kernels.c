/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_kernels.c - an application without a compiler: it links opjit-runtime and kernels that were compiled when it
 * was built (opjit_add_kernels of the models band_inplace.json and causal_mask.json), finds them by name and runs them,
 * on threads and in place.  `runtime_kernels LIBRARY.so` loads the kernels from a file that `opjit compile` wrote
 * instead. */
#include <stdio.h>

#include <opjit/artifact.h>
#include <opjit/opjit.h>

#include "runtime_kernels_kernels.h"

static int fail(const char *what, const opjit_error *error)
{
    fprintf(stderr, "%s: %s: %s\n", what, opjit_status_name(error->status), error->message);
    return 1;
}

/* The band of band_inplace.json, in its input's memory. */
static int run_band(opjit_library *library, const opjit_executor *executor)
{
    int32_t matrix[5][5];
    opjit_kernel *band;
    opjit_error error;
    const opjit_binding bindings[] = { { matrix, sizeof matrix }, { matrix, sizeof matrix } };
    opjit_call call = OPJIT_CALL_INIT;
    call.bindings = bindings;
    call.binding_count = 2;
    call.executor = executor;
    for (int i = 0; i < 25; i++)
        matrix[i / 5][i % 5] = i + 1;
    if (opjit_library_find(library, "band", &band, &error) != OPJIT_OK)
        return fail("band", &error);
    if (opjit_kernel_call(band, &call, &error) != OPJIT_OK)
        return fail("band", &error);
    opjit_kernel_release(band);
    for (int y = 0; y < 5; y++)
        printf("%2d %2d %2d %2d %2d\n", matrix[y][0], matrix[y][1], matrix[y][2], matrix[y][3], matrix[y][4]);
    return matrix[0][0] != 1 || matrix[4][0] != 0;
}

int main(int argc, char **argv)
{
    opjit_context *context;
    opjit_library *library;
    opjit_pool *pool;
    opjit_error error;
    int result;
    if (opjit_context_create(NULL, &context, &error) != OPJIT_OK)
        return fail("context", &error);
    if (argc > 1 ? opjit_library_open(context, argv[1], &library, &error)
                 : opjit_library_of(context, &runtime_kernels_kernels_registry, &library, &error))
        return fail("library", &error);
    for (uint32_t i = 0; i < opjit_library_count(library); i++)
        printf("kernel %s\n", opjit_library_name(library, i));
    if (opjit_pool_create(NULL, 2, &pool, &error) != OPJIT_OK)
        return fail("pool", &error);
    result = run_band(library, opjit_pool_executor(pool));
    opjit_pool_destroy(pool);
    opjit_library_close(library);
    opjit_context_destroy(context);
    return result;
}
