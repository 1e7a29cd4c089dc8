/* SPDX-License-Identifier: Apache-2.0 */
/* async.c - a kernel that can be called before its code is made: the interpreter runs it until a thread of opjit's has
 * compiled it, and nobody who calls it notices, except by the clock. */
#include <opjit/async.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { N = 64 };

static void done(void *user, opjit_job *job)
{
    (void)job;
    atomic_store((atomic_bool *)user, true);
}

int main(void)
{
    const uint32_t sizes[] = { N, N };
    const DML_BUFFER_TENSOR_DESC buffer = { DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_FLAG_NONE, 2, sizes, NULL, 0, 0 };
    const DML_TENSOR_DESC tensor = { DML_TENSOR_TYPE_BUFFER, &buffer };
    const DML_ACTIVATION_SIGMOID_OPERATOR_DESC sigmoid = { &tensor, &tensor };
    const DML_OPERATOR_DESC desc = { DML_OPERATOR_ACTIVATION_SIGMOID, &sigmoid };
    static float input[N * N], first[N * N], later[N * N];
    opjit_binding bindings[] = { { input, sizeof input }, { first, sizeof first } };
    opjit_call call = OPJIT_CALL_INIT;
    opjit_async_desc ask = OPJIT_ASYNC_DESC_INIT;
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    opjit_context *context = NULL;
    opjit_operator *op = NULL;
    opjit_workers *workers = NULL;
    opjit_kernel *kernel = NULL;
    opjit_job *job = NULL;
    opjit_error error;
    atomic_bool is_done = false;
    unsigned calls = 0;

    for (int i = 0; i < N * N; i++)
        input[i] = (float)(i - N * N / 2) / 256;
    call.bindings = bindings;
    call.binding_count = 2;
    if (opjit_context_create(NULL, &context, &error) != OPJIT_OK ||
        opjit_operator_create(context, &desc, &op, &error) != OPJIT_OK ||
        opjit_workers_create(NULL, 1, &workers, &error) != OPJIT_OK)
        goto failed;

    ask.op = op;
    ask.executor = opjit_workers_executor(workers);
    ask.first = OPJIT_TIER_INTERPRETED;
    ask.done = done;
    ask.user = &is_done;
    if (opjit_compile_async(context, &ask, &job, &error) != OPJIT_OK ||
        opjit_job_get_kernel(job, &kernel, &error) != OPJIT_OK || opjit_kernel_call(kernel, &call, &error) != OPJIT_OK)
        goto failed;

    bindings[1].data = later;
    do { /* what a program does all the time */
        if (opjit_kernel_call(kernel, &call, &error) != OPJIT_OK)
            goto failed;
        calls++;
    } while (!atomic_load(&is_done));
    if (opjit_job_wait(job, NULL, &error) != OPJIT_OK) /* how it went */
        goto failed;

    if (opjit_kernel_call(kernel, &call, &error) != OPJIT_OK ||
        opjit_kernel_get_info(kernel, &info, &error) != OPJIT_OK)
        goto failed;
    printf("%u calls until the code was there; then %s, and %s bits\n", calls,
           (info.flags & OPJIT_KERNEL_INTERPRETED) != 0 ? "interpreted" : "compiled",
           memcmp(first, later, sizeof first) == 0 ? "the same" : "OTHER");
    error.status = memcmp(first, later, sizeof first) == 0 ? OPJIT_OK : OPJIT_INTERNAL;
    goto end;

failed:
    fprintf(stderr, "%s: %s\n", opjit_status_name(error.status), error.message);
end:
    opjit_job_release(job);
    opjit_kernel_release(kernel);
    opjit_operator_release(op);
    opjit_context_destroy(context); /* before the workers: what they still have ends at once */
    opjit_workers_destroy(workers);
    return error.status == OPJIT_OK ? 0 : 1;
}
