/* SPDX-License-Identifier: Apache-2.0 */
/* test_rt_pool.c - the pool: every iteration once, whatever the numbers, with bodies that take long, from many threads,
 * from inside of a body and in a forked child; what it refuses; how its threads are set up.  Helpers are not asserted
 * to have helped where only luck decides it: the caller may always be done first. */
#define _GNU_SOURCE
#include <check.h>
#include <fenv.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/random.h"
#include "tests/support/require.h"
#include "tests/unit/runtime/rt_sample.h"

#define MOST 3000u
#define MOST_THREADS 9u

static opjit_pool *create(uint32_t threads)
{
    opjit_pool *pool;
    opjit_error error;
    ck_assert_msg(opjit_pool_create(NULL, threads, &pool, &error) == OPJIT_OK, "%s", error.message);
    return pool;
}

/* What a body saw.  marks is not atomic: two threads at one iteration are a race that a sanitizer reports. */
typedef struct work {
    uint8_t marks[MOST];
    uint64_t extent, grain;
    uint32_t workers;
    atomic_bool busy[MOST_THREADS]; /* a worker's number is in use */
    atomic_uint wrong;              /* bad bounds or a number used twice at a time */
    atomic_uint helped;             /* bit: worker */
    uint32_t delay_ns;
    const opjit_executor *nested;
} work;

static void wait_ns(uint32_t ns)
{
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - start.tv_sec) * 1000000000 + now.tv_nsec - start.tv_nsec < (long)ns);
}

static opjit_status run_on(const opjit_executor *e, work *w);

static void body(void *arg, uint32_t worker, uint64_t begin, uint64_t end)
{
    work *w = arg;
    if (worker >= w->workers || begin >= end || end > w->extent || begin % w->grain != 0 ||
        (end != w->extent && end % w->grain != 0) || atomic_exchange(&w->busy[worker], true)) {
        atomic_fetch_add(&w->wrong, 1);
        return;
    }
    for (uint64_t i = begin; i < end; i++)
        w->marks[i]++;
    if (w->delay_ns != 0)
        wait_ns(w->delay_ns);
    if (w->nested != NULL) {
        work inner = { .extent = 64, .grain = 1, .workers = w->workers };
        if (run_on(w->nested, &inner) != OPJIT_OK)
            atomic_fetch_add(&w->wrong, 1);
    }
    atomic_fetch_or(&w->helped, 1u << worker);
    atomic_store(&w->busy[worker], false);
}

/* Not OPJIT_OK: it failed, or an iteration was not run exactly once. */
static opjit_status run_on(const opjit_executor *e, work *w)
{
    const opjit_status status = e->run(e->user, w->extent, w->grain, body, w);
    uint32_t wrong = atomic_load(&w->wrong);
    for (uint64_t i = 0; i < w->extent; i++)
        wrong += w->marks[i] != 1;
    return status != OPJIT_OK ? status : wrong == 0 ? OPJIT_OK : OPJIT_INTERNAL;
}

static opjit_status run_random(const opjit_executor *e, test_random *r)
{
    work w = { .workers = e->workers };
    w.extent = test_random_below(r, test_random_chance(r, 50) ? 40 : MOST) + 1;
    w.grain = test_random_below(r, test_random_chance(r, 50) ? 8 : 500) + 1;
    w.delay_ns = test_random_chance(r, 20) ? (uint32_t)test_random_below(r, 20000) : 0;
    return run_on(e, &w);
}

START_TEST(every_iteration_once)
{
    test_cases cases = test_cases_init("rt.pool", 60);
    for (uint64_t n = cases.first; n < cases.end; n++) {
        test_random r;
        test_random_init(&r, cases.seed, 0, n);
        opjit_pool *pool = create(1 + (uint32_t)test_random_below(&r, MOST_THREADS));
        for (int i = 0; i < 25; i++)
            ck_assert_int_eq(run_random(opjit_pool_executor(pool), &r), OPJIT_OK);
        opjit_pool_destroy(pool);
    }
}
END_TEST

/* Runs that follow each other closely, which helpers leave late and miss. */
START_TEST(many_runs)
{
    opjit_pool *pool = create(3);
    for (int i = 0; i < 20000; i++) {
        work w = { .extent = 2 + (uint64_t)i % 30, .grain = 1, .workers = 3 };
        ck_assert_int_eq(run_on(opjit_pool_executor(pool), &w), OPJIT_OK);
    }
    opjit_pool_destroy(pool);
}
END_TEST

START_TEST(long_work_is_shared)
{
    opjit_pool *pool = create(2);
    for (int i = 0; i < 3; i++) {
        work w = { .extent = 400, .grain = 1, .workers = 2, .delay_ns = 500000 };
        ck_assert_int_eq(run_on(opjit_pool_executor(pool), &w), OPJIT_OK);
        ck_assert_uint_eq(atomic_load(&w.helped), 3);
        const struct timespec pause = { 0, 2000000 }; /* long enough for the helper to fall asleep */
        nanosleep(&pause, NULL);
    }
    opjit_pool_destroy(pool);
}
END_TEST

/* A unit of two, which ends when both have begun, or much too late. */
static void meet(void *arg, uint32_t worker, uint64_t begin, uint64_t end)
{
    atomic_uint *begun = arg;
    const time_t start = time(NULL);
    (void)worker;
    wait_ns(100000);
    atomic_fetch_add(begun, (unsigned)(end - begin));
    while (atomic_load(begun) < 2 && time(NULL) - start < 60)
        sched_yield();
}

static void last_a_while(void *arg, uint32_t worker, uint64_t begin, uint64_t end)
{
    (void)arg;
    (void)worker;
    (void)begin;
    (void)end;
    wait_ns(100000);
}

/* Where there is a helper asleep, a first run of two units may be the caller's alone, the next is not. */
START_TEST(two_long_units_are_shared)
{
    opjit_pool *pool = create(2);
    const opjit_executor *e = opjit_pool_executor(pool);

    ck_assert_int_eq(e->run(e->user, 2, 1, last_a_while, NULL), OPJIT_OK);
    for (uint32_t i = 0; i < 3; i++) {
        atomic_uint begun = 0;
        usleep(20000);
        const time_t start = time(NULL);
        ck_assert_int_eq(e->run(e->user, 2, 1, meet, &begun), OPJIT_OK);
        ck_assert_msg(time(NULL) - start < 30, "run %u: one thread had both units", i);
        ck_assert_int_eq(e->run(e->user, 2, 1, last_a_while, NULL), OPJIT_OK);
    }
    opjit_pool_destroy(pool);
}
END_TEST

START_TEST(body_that_runs_on_its_own_pool)
{
    opjit_pool *pool = create(3);
    work w = { .extent = 60, .grain = 1, .workers = 3, .delay_ns = 20000, .nested = opjit_pool_executor(pool) };
    ck_assert_int_eq(run_on(w.nested, &w), OPJIT_OK);
    opjit_pool_destroy(pool);
}
END_TEST

typedef struct host {
    const opjit_executor *executor;
    uint64_t number;
    opjit_status status;
    pthread_t thread;
} host;

static void *call_often(void *argument)
{
    host *h = argument;
    test_random r;
    test_random_init(&r, 1, 1, h->number);
    for (int i = 0; i < 500 && h->status == OPJIT_OK; i++)
        h->status = run_random(h->executor, &r);
    return NULL;
}

START_TEST(callers_on_many_threads)
{
    opjit_pool *pool = create(3);
    host hosts[6];
    for (uint64_t i = 0; i < 6; i++) {
        hosts[i] = (host){ .executor = opjit_pool_executor(pool), .number = i };
        ck_assert_int_eq(pthread_create(&hosts[i].thread, NULL, call_often, &hosts[i]), 0);
    }
    for (int i = 0; i < 6; i++) {
        pthread_join(hosts[i].thread, NULL);
        ck_assert_int_eq(hosts[i].status, OPJIT_OK);
    }
    opjit_pool_destroy(pool);
}
END_TEST

/* --- fork --------------------------------------------------------------------------------------------------------- */
/* A thread sanitizer ends a process that starts threads after a fork, so there is nothing to see with it. */
#if !defined(__SANITIZE_THREAD__)
static int use_in_child(const opjit_pool *pool)
{
    /* When helpers get a core is up to the system: they must help once, however late. */
    for (int i = 0; i < 500; i++) {
        work w = { .extent = 200, .grain = 1, .workers = 3, .delay_ns = 200000 };
        if (run_on(opjit_pool_executor(pool), &w) != OPJIT_OK)
            return 1;
        if (i >= 2 && atomic_load(&w.helped) != 1)
            return 0;
    }
    return 2;
}

static void expect_child_works(opjit_pool *pool)
{
    int status;
    const pid_t child = fork();
    if (child == 0) {
        const int result = use_in_child(pool);
        opjit_pool_destroy(pool);
        _exit(result);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child ended with 0x%x", (unsigned)status);
}

START_TEST(child_has_threads_of_its_own)
{
    opjit_pool *pool = create(3);
    expect_child_works(pool); /* before there are threads */
    ck_assert_int_eq(use_in_child(pool), 0);
    expect_child_works(pool);
    ck_assert_int_eq(use_in_child(pool), 0);
    opjit_pool_destroy(pool);
}
END_TEST

/* The child inherits a run in the middle, of a thread that it does not have. */
START_TEST(child_forked_during_a_run)
{
    opjit_pool *pool = create(3);
    host h = { .executor = opjit_pool_executor(pool), .number = 7 };
    ck_assert_int_eq(pthread_create(&h.thread, NULL, call_often, &h), 0);
    for (int i = 0; i < 10; i++)
        expect_child_works(pool);
    pthread_join(h.thread, NULL);
    ck_assert_int_eq(h.status, OPJIT_OK);
    opjit_pool_destroy(pool);
}
END_TEST
#endif

/* --- how threads are set up --------------------------------------------------------------------------------------- */
typedef struct view {
    pthread_t caller;
    atomic_uint others, wrong;
} view;

static void look(void *arg, uint32_t worker, uint64_t begin, uint64_t end)
{
    view *v = arg;
    sigset_t blocked;
    char name[16] = "";
    (void)begin;
    (void)end;
    wait_ns(200000);
    volatile const float one = 1, three = 3;
    if (one / three >= 0.33333334f) /* the nearest one is above a third */
        atomic_fetch_add(&v->wrong, 1);
    if (pthread_equal(pthread_self(), v->caller)) {
        atomic_fetch_add(&v->wrong, worker != 0);
        for (int i = 0; i < 60000 && atomic_load(&v->others) == 0; i++) /* the other may start late */
            nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
        return;
    }
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    pthread_getname_np(pthread_self(), name, sizeof name);
    if (strcmp(name, "opjit") != 0 || !sigismember(&blocked, SIGTERM) || sigismember(&blocked, SIGSEGV))
        atomic_fetch_add(&v->wrong, 1);
    atomic_fetch_add(&v->others, 1);
}

START_TEST(threads_are_quiet_and_compute_as_the_caller)
{
    opjit_pool *pool = create(2);
    const opjit_executor *e = opjit_pool_executor(pool);
    view v = { .caller = pthread_self() };
    sigset_t mask;
    work before = { .extent = 200, .grain = 1, .workers = 2, .delay_ns = 200000 };
    ck_assert_int_eq(run_on(e, &before), OPJIT_OK); /* starts them with another rounding */
    fesetround(FE_DOWNWARD);
    ck_assert_int_eq(e->run(e->user, 200, 1, look, &v), OPJIT_OK);
    fesetround(FE_TONEAREST);
    ck_assert_uint_eq(atomic_load(&v.wrong), 0);
    ck_assert_uint_ne(atomic_load(&v.others), 0);
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    ck_assert(!sigismember(&mask, SIGTERM));
    opjit_pool_destroy(pool);
}
END_TEST

START_TEST(life_and_refusals)
{
    counting memory;
    opjit_allocator a = counting_allocator(&memory, 1);
    opjit_pool *pool = (opjit_pool *)&memory;
    opjit_error error;
    cpu_set_t cores;
    ck_assert_int_eq(opjit_pool_create(&a, 2, &pool, &error), OPJIT_OUT_OF_MEMORY);
    ck_assert_ptr_null(pool);
    a = counting_allocator(&memory, 0);
    ck_assert_int_eq(opjit_pool_create(&a, 4, &pool, &error), OPJIT_OK);
    ck_assert_uint_eq(opjit_pool_executor(pool)->workers, 4);
    opjit_pool_destroy(pool); /* never used */
    ck_assert_int_eq(atomic_load(&memory.live), 0);
    ck_assert_int_eq(atomic_load(&memory.bytes), 0);
    ck_assert_int_eq(opjit_pool_create(NULL, OPJIT_POOL_MAX_THREADS + 1, &pool, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_str_eq(error.message, "threads: 1025, must be 1 to 1024, or 0 for one per core");
    ck_assert_str_eq(error.op, "argument");
    ck_assert_str_eq(error.field, "threads");
    ck_assert_str_eq(error.value, "1025");
    test_require_place(&error);
    ck_assert_int_eq(opjit_pool_create(NULL, 2, NULL, &error), OPJIT_INVALID_ARGUMENT);
    a.release = NULL;
    ck_assert_int_eq(opjit_pool_create(&a, 2, &pool, NULL), OPJIT_INVALID_ARGUMENT);
    ck_assert_int_eq(opjit_pool_create(&a, 2, &pool, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_str_eq(error.message, "allocator release is NULL");
    test_require_place(&error);
    ck_assert_int_eq(sched_getaffinity(0, sizeof cores, &cores), 0);
    pool = create(0);
    ck_assert_uint_eq(opjit_pool_executor(pool)->workers, (uint32_t)CPU_COUNT(&cores));
    ck_assert_int_eq(opjit_pool_executor(pool)->run(pool, 4, 0, body, NULL), OPJIT_INVALID_ARGUMENT);
    ck_assert_int_eq(opjit_pool_executor(pool)->run(pool, 0, 4, body, NULL), OPJIT_OK);
    opjit_pool_destroy(pool);
    opjit_pool_destroy(NULL);
    ck_assert_ptr_null(opjit_pool_executor(NULL));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("rt.pool");
    TCase *cases = tcase_create("pool");
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, life_and_refusals);
    tcase_add_test(cases, every_iteration_once);
    tcase_add_test(cases, many_runs);
    tcase_add_test(cases, long_work_is_shared);
    tcase_add_test(cases, two_long_units_are_shared);
    tcase_add_test(cases, body_that_runs_on_its_own_pool);
    tcase_add_test(cases, callers_on_many_threads);
#if !defined(__SANITIZE_THREAD__)
    tcase_add_test(cases, child_has_threads_of_its_own);
    tcase_add_test(cases, child_forked_during_a_run);
#endif
    tcase_add_test(cases, threads_are_quiet_and_compute_as_the_caller);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failures = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
