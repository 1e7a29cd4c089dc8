/* SPDX-License-Identifier: Apache-2.0 */
/* test_fe_constants.c - equal constants of a context's kernels are stored once, counted by the allocator hook;
 * different ones apart; by threads at once, in a child of fork, and after the context. */
#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/context.h"
#include "tests/support/graph_case.h"
#include "tests/support/meter.h"
#include "tests/unit/runtime/rt_sample.h"

enum { COUNT = 1 << 18, BYTES = COUNT * sizeof(int32_t), THREADS = 6 };

static _Alignas(64) int32_t data[2][COUNT + 16]; /* the second one differs in its last element */
static int32_t input[COUNT], output[COUNT];
static graph_tensor large;
static opjit_context *context;

static void open_context(const opjit_allocator *allocator)
{
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
    options.allocator = allocator;
    ck_assert_int_eq(opjit_context_create(&options, &context, NULL), OPJIT_OK);
    graph_tensor_set(&large, DML_TENSOR_DATA_TYPE_INT32, 1, (uint32_t[]){ COUNT }, NULL, 0);
    for (int i = 0; i < COUNT; i++) {
        data[0][i] = data[1][i] = 3 * i;
        input[i] = i;
    }
    data[1][COUNT - 1]++;
}

typedef enum what { SUM, DIFFERENCE } what;

/* The input and a constant, added or subtracted: two keys. */
static opjit_kernel *compile(what w, const void *constant, uint32_t flags)
{
    const DML_ELEMENT_WISE_ADD_OPERATOR_DESC add = { &large.desc, &large.desc, &large.desc };
    const DML_ELEMENT_WISE_SUBTRACT_OPERATOR_DESC subtract = { &large.desc, &large.desc, &large.desc };
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_kernel *kernel = NULL;
    graph_case g;
    graph_begin(&g, context, 4);
    if (w == SUM)
        graph_operator(&g, DML_OPERATOR_ELEMENT_WISE_ADD, &add, NULL);
    else
        graph_operator(&g, DML_OPERATOR_ELEMENT_WISE_SUBTRACT, &subtract, NULL);
    graph_constant(&g, constant, BYTES, NULL);
    graph_input(&g, 0, 0, 0);
    graph_edge(&g, 1, 0, 0, 1);
    graph_output(&g, 0, 0, 0);
    options.flags = flags | OPJIT_COMPILE_INTERPRET;
    if (opjit_compile_graph(context, &g.desc, &options, &kernel, NULL) != OPJIT_OK)
        kernel = NULL;
    graph_end(&g);
    return kernel;
}

static void check_last(const opjit_kernel *kernel, int32_t expected)
{
    const opjit_binding bindings[] = { { input, sizeof input }, { output, sizeof output } };
    opjit_call call = OPJIT_CALL_INIT;
    call.bindings = bindings;
    call.binding_count = 2;
    ck_assert_int_eq(opjit_kernel_call(kernel, &call, NULL), OPJIT_OK);
    ck_assert_int_eq(output[COUNT - 1], expected);
}

static size_t megabytes(const test_meter *m)
{
    return m->live / BYTES;
}

START_TEST(equal_ones_are_stored_once)
{
    static _Alignas(64) int32_t copy[COUNT];
    opjit_kernel *kernels[5];
    test_meter meter;
    test_meter_begin(&meter);
    open_context(&meter.allocator);
    memcpy(copy, data[0], sizeof copy);
    kernels[0] = compile(SUM, data[0], 0);
    ck_assert_uint_eq(megabytes(&meter), 1);
    kernels[1] = compile(DIFFERENCE, copy, 0); /* another graph, other memory */
    kernels[2] = compile(SUM, copy, 0);        /* the same graph once more */
    memmove(data[1] + 5, data[0], BYTES);
    kernels[3] = compile(DIFFERENCE, data[1] + 5, 0); /* not aligned */
    ck_assert_uint_eq(megabytes(&meter), 1);
    memmove(data[1], data[0], BYTES);
    data[1][COUNT - 1]++;
    kernels[4] = compile(SUM, data[1], 0);
    ck_assert_uint_eq(megabytes(&meter), 2);
    memset(copy, 0, sizeof copy);
    memset(data, 0, sizeof data);
    for (int k = 0; k < 5; k++)
        check_last(kernels[k], k % 2 == 0 ? 4 * (COUNT - 1) + (k == 4) : -2 * (COUNT - 1));
    opjit_context_destroy(context);
    for (int k = 0; k < 4; k++) {
        ck_assert_uint_eq(megabytes(&meter), 2);
        opjit_kernel_release(kernels[k]);
    }
    ck_assert_uint_eq(megabytes(&meter), 1);
    check_last(kernels[4], 4 * (COUNT - 1) + 1);
    opjit_kernel_release(kernels[4]);
    ck_assert_uint_eq(meter.live, 0);
}
END_TEST

/* Wherever they lie, unless the code has to have them at multiples of an element's size. */
START_TEST(borrowed_ones_are_not_copied)
{
    opjit_kernel *borrowed, *owned, *unaligned;
    static uint8_t bytes[BYTES + 1];
    test_meter meter;
    test_meter_begin(&meter);
    open_context(&meter.allocator);
    borrowed = compile(SUM, data[0], OPJIT_COMPILE_BORROW_CONSTANTS);
    ck_assert_uint_eq(megabytes(&meter), 0);
    owned = compile(SUM, data[0], 0);
    ck_assert_uint_eq(megabytes(&meter), 1);
    memcpy(bytes + 1, data[0], BYTES);
    unaligned = compile(SUM, bytes + 1, OPJIT_COMPILE_BORROW_CONSTANTS);
    check_last(unaligned, 4 * (COUNT - 1));
#if defined(__x86_64__) || defined(__aarch64__)
    ck_assert_uint_eq(megabytes(&meter), 1);
    memset(bytes, 0, sizeof bytes);
    check_last(unaligned, COUNT - 1);
#endif
    data[0][COUNT - 1] = 0;
    check_last(borrowed, COUNT - 1);
    check_last(owned, 4 * (COUNT - 1));
    opjit_kernel_release(unaligned);
    opjit_kernel_release(borrowed);
    opjit_kernel_release(owned);
    opjit_context_destroy(context);
    ck_assert_uint_eq(meter.live, 0);
}
END_TEST

/* Enough different ones that the table grows. */
START_TEST(many_are_found)
{
    enum { MANY = 1000 };
    static rt_constant *all[2][MANY];
    counting memory;
    const opjit_allocator a = counting_allocator(&memory, 0);
    open_context(&a);
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < MANY; i++) {
            const int32_t bytes[3] = { i, 7, 0 };
            ck_assert_int_eq(
                opjit_rt_constant_share(&context->core->constants, bytes, i % 2 == 0 ? 12 : 8, &all[round][i], NULL),
                OPJIT_OK);
            ck_assert_ptr_eq(all[round][i], all[0][i]);
            ck_assert((uintptr_t)all[round][i]->data % 64 == 0 && memcmp(all[round][i]->data, bytes, 8) == 0);
        }
    ck_assert_uint_eq(context->core->constants.count, MANY);
    for (int i = 0; i < 2 * MANY; i++)
        opjit_rt_constant_release(&context->core->constants, all[i % 2][(i * 7 % (2 * MANY)) / 2]);
    ck_assert_uint_eq(context->core->constants.count, 0);
    opjit_context_destroy(context);
    ck_assert_int_eq(memory.live, 0);
}
END_TEST

static atomic_int broken;

static void *work(void *argument)
{
    for (int i = 0; i < 40; i++) {
        opjit_kernel *kernel = compile(i % 2 == 0 ? SUM : DIFFERENCE, data[(i + (argument != NULL)) % 2], 0);
        broken += kernel == NULL;
        opjit_kernel_release(kernel);
    }
    return NULL;
}

START_TEST(threads_share)
{
    pthread_t handles[THREADS];
    counting memory;
    const opjit_allocator a = counting_allocator(&memory, 0);
    open_context(&a);
    for (uintptr_t i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&handles[i], NULL, work, (void *)(i % 2)), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(handles[i], NULL);
    ck_assert_int_eq(broken, 0);
    ck_assert_uint_eq(context->core->constants.count, 0);
    opjit_context_destroy(context);
    ck_assert_int_eq(memory.live, 0);
}
END_TEST

/* A child goes on, also where a thread of its parent had the lock. */
START_TEST(fork_goes_on)
{
    opjit_kernel *kernel, *second;
    int status;
    open_context(NULL);
    kernel = compile(SUM, data[0], 0);
    if (_i == 1)
        opjit_rt_lock(&context->core->constants.lock);
    const pid_t child = fork();
    if (child == 0) {
        second = compile(DIFFERENCE, data[0], 0);
        check_last(kernel, 4 * (COUNT - 1));
        check_last(second, -2 * (COUNT - 1));
        opjit_kernel_release(kernel);
        opjit_kernel_release(second);
        opjit_context_destroy(context);
        _exit(0);
    }
    if (_i == 1)
        opjit_rt_unlock(&context->core->constants.lock);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    opjit_kernel_release(kernel);
    opjit_context_destroy(context);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fe.constants");
    TCase *tcase = tcase_create("constants");
    SRunner *runner = srunner_create(suite);
    int failed;
    tcase_add_test(tcase, equal_ones_are_stored_once);
    tcase_add_test(tcase, borrowed_ones_are_not_copied);
    tcase_add_test(tcase, many_are_found);
    tcase_add_test(tcase, threads_share);
    tcase_add_loop_test(tcase, fork_goes_on, 0, 2);
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
