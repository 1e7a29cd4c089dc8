/* SPDX-License-Identifier: Apache-2.0 */
/* test_conformance_threads.c - many threads compile, call, optimize and release the same and different kernels of one
 * context, while its cache is cleared now and then.  Results are compared; -DOPJIT_SANITIZE=thread also checks the
 * accesses.  Threads only count failures, because Check's assertions belong to the thread that runs the test. */
#define _POSIX_C_SOURCE 200809L
#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "tests/reference/reference.h"
#include "tests/support/checker.h"

#define THREADS 8
#define KEYS 12
#define ROUNDS 400
#define HEIGHT 37
#define WIDTH 67

typedef struct shared {
    opjit_context *context;
    bool interpret;
    test_case cases[KEYS];
    opjit_operator *operators[KEYS];
    opjit_kernel *common;            /* called and optimized by all */
    float expected[KEYS][HEIGHT * WIDTH];
    atomic_uint failures;
    opjit_error error;               /* of one of the failures */
    atomic_flag error_set;
} shared;

typedef struct worker {
    shared *s;
    uint64_t number;
    pthread_t thread;
} worker;

static void make_case(test_case *c, int key)
{
    DML_DIAGONAL_MATRIX1_OPERATOR_DESC *d = &c->desc.diagonal_matrix1;
    memset(c, 0, sizeof *c);
    c->op = (DML_OPERATOR_DESC){ DML_OPERATOR_DIAGONAL_MATRIX1, d };
    test_tensor_link(&c->output, DML_TENSOR_DATA_TYPE_FLOAT32, 2);
    c->output.sizes[0] = HEIGHT;
    c->output.sizes[1] = WIDTH;
    test_tensor_measure(&c->output);
    d->OutputTensor = &c->output.desc;
    d->ValueDataType = DML_TENSOR_DATA_TYPE_FLOAT32;
    d->Value.Float32 = 1.5f + (float)key;
    d->DiagonalFillBegin = key - 3;
    d->DiagonalFillEnd = 2 * key;
}

static void failed(shared *s, const opjit_error *error)
{
    if (!atomic_flag_test_and_set(&s->error_set))
        s->error = *error;
    atomic_fetch_add(&s->failures, 1);
}

static void call_and_compare(shared *s, const opjit_kernel *kernel, int key)
{
    float out[HEIGHT * WIDTH];
    const opjit_binding binding = { out, sizeof out };
    opjit_call call = OPJIT_CALL_INIT;
    opjit_error error = { 0 };
    call.binding_count = 1;
    call.bindings = &binding;
    memset(out, 0xff, sizeof out);
    if (opjit_kernel_call(kernel, &call, &error) != OPJIT_OK) {
        failed(s, &error);
    } else if (memcmp(out, s->expected[key], sizeof out) != 0) {
        snprintf(error.message, sizeof error.message, "wrong result for key %d", key);
        failed(s, &error);
    }
}

/* One key: with the common operator or the thread's own, through the cache or bypassing it. */
static void one_round(shared *s, test_random *r)
{
    const int key = (int)test_random_below(r, KEYS);
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_operator *op = s->operators[key];
    opjit_kernel *kernel = NULL;
    opjit_error error = { 0 };
    options.flags = s->interpret ? OPJIT_COMPILE_INTERPRET : 0;
    if (test_random_below(r, 50) == 0)
        options.flags |= OPJIT_COMPILE_NO_CACHE;
    if (test_random_chance(r, 50))
        opjit_operator_retain(op);
    else if (opjit_operator_create(s->context, &s->cases[key].op, &op, &error) != OPJIT_OK)
        failed(s, &error);
    if (op != NULL && opjit_compile_operator(s->context, op, &options, &kernel, &error) != OPJIT_OK)
        failed(s, &error);
    opjit_operator_release(op);
    if (kernel != NULL)
        call_and_compare(s, kernel, key);
    opjit_kernel_release(kernel);
}

static void *work(void *argument)
{
    const worker *w = argument;
    shared *s = w->s;
    opjit_cache_stats stats = OPJIT_CACHE_STATS_INIT;
    opjit_error error = { 0 };
    test_random r;
    test_random_init(&r, 1, w->number, 0);
    for (int i = 0; i < ROUNDS; i++) {
        one_round(s, &r);
        call_and_compare(s, s->common, 0);
        if (i == ROUNDS / 2 && w->number % 2 == 0 && opjit_kernel_optimize(s->common, &error) != OPJIT_OK)
            failed(s, &error);
        if (test_random_below(&r, 100) == 0 && opjit_cache_clear(s->context, &error) != OPJIT_OK)
            failed(s, &error);
        if (test_random_below(&r, 20) == 0 && opjit_cache_get_stats(s->context, &stats, &error) != OPJIT_OK)
            failed(s, &error);
    }
    return NULL;
}

static void run_threads(bool interpret)
{
    shared *s = calloc(1, sizeof *s);
    worker workers[THREADS];
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    ck_assert_ptr_nonnull(s);
    s->context = test_context_create();
    s->interpret = interpret;
    atomic_flag_clear(&s->error_set);
    if (!interpret && !test_have_codegen(s->context)) {
        opjit_context_destroy(s->context);
        free(s);
        return;
    }
    for (int i = 0; i < KEYS; i++) {
        make_case(&s->cases[i], i);
        test_case_reference(&s->cases[i], NULL, s->expected[i]);
        ck_assert_int_eq(opjit_operator_create(s->context, &s->cases[i].op, &s->operators[i], NULL), OPJIT_OK);
    }
    options.flags = OPJIT_COMPILE_NO_CACHE | (interpret ? OPJIT_COMPILE_INTERPRET : 0);
    options.level = OPJIT_LEVEL_QUICK;
    ck_assert_int_eq(opjit_compile_operator(s->context, s->operators[0], &options, &s->common, NULL), OPJIT_OK);
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (worker){ .s = s, .number = (uint64_t)i };
        ck_assert_int_eq(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(workers[i].thread, NULL);
    ck_assert_msg(atomic_load(&s->failures) == 0, "%u failures, e.g. %s", atomic_load(&s->failures), s->error.message);
    for (int i = 0; i < KEYS; i++)
        opjit_operator_release(s->operators[i]);
    opjit_kernel_release(s->common);
    opjit_context_destroy(s->context);
    free(s);
}

START_TEST(interpreted_kernels_on_many_threads) { run_threads(true); }
END_TEST

START_TEST(compiled_kernels_on_many_threads) { run_threads(false); }
END_TEST

/* --- one key, requested by all threads at once ------------------------------------------------------------------- */
typedef struct race {
    opjit_context *context;
    opjit_operator *op;
    pthread_barrier_t start;
    opjit_kernel *kernels[THREADS];
    atomic_uint next;
} race;

static void *compile_at_once(void *argument)
{
    race *r = argument;
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    const unsigned slot = atomic_fetch_add(&r->next, 1);
    options.flags = OPJIT_COMPILE_INTERPRET;
    pthread_barrier_wait(&r->start);
    if (opjit_compile_operator(r->context, r->op, &options, &r->kernels[slot], NULL) != OPJIT_OK)
        r->kernels[slot] = NULL;
    return NULL;
}

START_TEST(a_key_asked_for_at_once_is_compiled_once)
{
    for (int round = 0; round < 50; round++) {
        race r = { .context = test_context_create() };
        pthread_t threads[THREADS];
        opjit_cache_stats stats = OPJIT_CACHE_STATS_INIT;
        test_case c;
        make_case(&c, round);
        ck_assert_int_eq(opjit_operator_create(r.context, &c.op, &r.op, NULL), OPJIT_OK);
        ck_assert_int_eq(pthread_barrier_init(&r.start, NULL, THREADS), 0);
        for (int i = 0; i < THREADS; i++)
            ck_assert_int_eq(pthread_create(&threads[i], NULL, compile_at_once, &r), 0);
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
        for (int i = 0; i < THREADS; i++) {
            ck_assert_ptr_nonnull(r.kernels[i]);
            ck_assert_ptr_eq(r.kernels[i], r.kernels[0]);
            opjit_kernel_release(r.kernels[i]);
        }
        ck_assert_int_eq(opjit_cache_get_stats(r.context, &stats, NULL), OPJIT_OK);
        ck_assert_uint_eq(stats.compiles, 1);
        pthread_barrier_destroy(&r.start);
        opjit_operator_release(r.op);
        opjit_context_destroy(r.context);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("conformance.threads");
    TCase *cases = tcase_create("threads");
    tcase_add_test(cases, interpreted_kernels_on_many_threads);
    tcase_add_test(cases, compiled_kernels_on_many_threads);
    tcase_add_test(cases, a_key_asked_for_at_once_is_compiled_once);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failures = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
