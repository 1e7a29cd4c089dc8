/* SPDX-License-Identifier: Apache-2.0 */
/* test_fe_tiers.c - kernels of one size beside a kernel with dynamic dimensions: the same bits and refusals with and
 * without them; counts, eviction, failures; kernels and contexts that go before, while and after one is made; threads
 * that call while they come and go; no memory. */
#define _POSIX_C_SOURCE 200809L
#include <check.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <opjit/async.h>
#include <opjit/dynamic.h>
#include <opjit/graph_ops.h>

#include "tests/support/checker.h"
#include "tests/unit/runtime/rt_sample.h"

#define F32 DML_TENSOR_DATA_TYPE_FLOAT32
enum { LARGEST = 60, WIDTH = 40, ROOM = 128 * 1024, THREADS = 4, CALLS = 3 };

static counting memory;
static opjit_context *context;
static opjit_error error;
static bool have_codegen;
static _Alignas(64) float weights[WIDTH * WIDTH], shift[WIDTH];
static _Alignas(64) uint8_t buffers[3][ROOM], expected[ROOM];

/* --- graphs ------------------------------------------------------------------------------------------------------- */

#define INPUT(name, ...) \
    opjit_graph_input(g, name, F32, sizeof((uint32_t[]){ __VA_ARGS__ }) / 4, (const uint32_t[]){ __VA_ARGS__ })

static opjit_tensor softmax(opjit_graph *g, uint32_t n)
{
    return opjit_graph_softmax(g, INPUT("x", n, WIDTH), 1);
}
static opjit_tensor relu(opjit_graph *g, uint32_t n)
{
    return opjit_graph_relu(g, INPUT("x", n, WIDTH));
}
static opjit_tensor causal(opjit_graph *g, uint32_t n)
{
    return opjit_graph_softmax(g, opjit_graph_fill_band(g, INPUT("x", 2, n, n), -INFINITY, 1, INT32_MAX), 2);
}
/* A constant that is bound, and one that is folded. */
static opjit_tensor product(opjit_graph *g, uint32_t n)
{
    const uint32_t square[] = { WIDTH, WIDTH }, row[] = { 1, WIDTH }, rows[] = { n, WIDTH };
    const opjit_tensor w = opjit_graph_constant(g, F32, 2, square, weights, sizeof weights, OPJIT_GRAPH_BORROW);
    const opjit_tensor b = opjit_graph_constant(g, F32, 2, row, shift, sizeof shift, 0);
    const opjit_tensor y = opjit_graph_matrix_multiply(g, INPUT("x", n, WIDTH), w, 0, 0);
    return opjit_graph_relu(g, opjit_graph_add(g, y, opjit_graph_broadcast(g, b, 2, rows)));
}

typedef opjit_tensor build_fn(opjit_graph *g, uint32_t n);
static build_fn *const builds[] = { softmax, relu, causal, product };

typedef struct description {
    build_fn *build;
    opjit_graph *graph;
    uint64_t refused;           /* a size that can't be described; 0: none */
    atomic_int calls, released; /* of describe and of release */
    opjit_kernel *inner;        /* describe specializes it */
    atomic_bool held;           /* describe waits while it is set */
    atomic_bool reached;
} description;

static void wait_a_little(void)
{
    const struct timespec time = { 0, 1000000 };
    nanosleep(&time, NULL);
}

static void call_often(const opjit_kernel *kernel, uint64_t n, uint32_t times);

static opjit_status describe(void *user, const uint64_t *dims, const DML_GRAPH_DESC **out, opjit_error *e)
{
    description *d = user;
    opjit_status status;

    atomic_fetch_add(&d->calls, 1);
    atomic_store(&d->reached, true);
    while (atomic_load(&d->held))
        wait_a_little();
    if (dims[0] == d->refused)
        return OPJIT_UNSUPPORTED;
    if (d->inner != NULL) {
        call_often(d->inner, 5, CALLS);
        return opjit_kernel_specialize(d->inner, dims, 1, e);
    }
    opjit_graph_destroy(d->graph);
    d->graph = NULL;
    status = opjit_graph_create(context, &d->graph, e);
    if (status != OPJIT_OK)
        return status;
    opjit_graph_output(d->graph, "y", d->build(d->graph, (uint32_t)dims[0]));
    return opjit_graph_get_desc(d->graph, out, e);
}

static void let_go(void *user)
{
    description *d = user;

    opjit_graph_destroy(d->graph);
    d->graph = NULL;
    atomic_fetch_add(&d->released, 1);
}

/* --- executors ---------------------------------------------------------------------------------------------------- */

static opjit_status submit_now(void *user, void (*run)(void *arg), void *arg)
{
    (void)user;
    run(arg);
    return OPJIT_OK;
}
static const opjit_async_executor at_once = { NULL, submit_now };

typedef struct later {
    void (*run)(void *arg);
    void *arg;
} later;
static opjit_status submit_later(void *user, void (*run)(void *arg), void *arg)
{
    *(later *)user = (later){ run, arg };
    return OPJIT_OK;
}
static opjit_status submit_never(void *user, void (*run)(void *arg), void *arg)
{
    (void)user;
    (void)run;
    (void)arg;
    return OPJIT_UNAVAILABLE;
}

/* --- kernels and calls -------------------------------------------------------------------------------------------- */

static opjit_tiers tiers_of(const opjit_async_executor *executor, uint32_t kernels)
{
    opjit_tiers tiers = OPJIT_TIERS_INIT;
    tiers.executor = executor;
    tiers.kernels = kernels;
    tiers.calls = CALLS;
    tiers.release = let_go;
    return tiers;
}

static const opjit_dim dim = { "n", 1, LARGEST, 32 };

static opjit_kernel *compile(description *d, const opjit_tiers *tiers, uint32_t flags)
{
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_kernel *kernel;
    options.flags = flags;
    const opjit_status status =
        tiers == NULL ? opjit_compile_dynamic(context, &dim, 1, describe, d, &options, &kernel, &error)
                      : opjit_compile_tiered(context, &dim, 1, describe, d, &options, tiers, &kernel, &error);
    ck_assert_msg(status == OPJIT_OK, "%s", error.message);
    return kernel;
}

static opjit_status call_into(const opjit_kernel *kernel, uint64_t n, uint8_t *out, opjit_error *e)
{
    const opjit_binding bindings[] = { { buffers[0], ROOM }, { out, ROOM } };
    opjit_call call = OPJIT_CALL_INIT;
    call.bindings = bindings;
    call.binding_count = 2;
    call.dims = &n;
    call.dim_count = 1;
    return opjit_kernel_call(kernel, &call, e);
}

static void check_call(const opjit_kernel *kernel, const opjit_kernel *plain, uint64_t n)
{
    memset(buffers[1], 0x5a, ROOM);
    memset(expected, 0x5a, ROOM);
    ck_assert_msg(call_into(kernel, n, buffers[1], &error) == OPJIT_OK, "%s", error.message);
    ck_assert_msg(call_into(plain, n, expected, &error) == OPJIT_OK, "%s", error.message);
    ck_assert_msg(memcmp(buffers[1], expected, ROOM) == 0, "n = %u: other bits", (unsigned)n);
}

static opjit_cache_stats stats(void)
{
    opjit_cache_stats s = OPJIT_CACHE_STATS_INIT;
    ck_assert_int_eq(opjit_cache_get_stats(context, &s, NULL), OPJIT_OK);
    return s;
}

static void call_often(const opjit_kernel *kernel, uint64_t n, uint32_t times)
{
    for (uint32_t i = 0; i < times; i++)
        ck_assert_int_eq(call_into(kernel, n, buffers[1], &error), OPJIT_OK);
}

static void open_context(int fail_at, const char *folder)
{
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
    const opjit_allocator a = counting_allocator(&memory, fail_at);
    options.allocator = &a;
    options.cache_dir = folder;
    ck_assert_int_eq(opjit_context_create(&options, &context, &error), OPJIT_OK);
}

static void setup(void)
{
    open_context(0, NULL);
    have_codegen = test_have_codegen(context);
    for (uint32_t i = 0; i < WIDTH * WIDTH; i++)
        weights[i] = (float)(i % 61) / 16.0f - 1.5f;
    for (uint32_t i = 0; i < WIDTH; i++)
        shift[i] = (float)(i % 7) / 4.0f - 0.5f;
    for (uint32_t i = 0; i < ROOM / 4; i++)
        ((float *)(void *)buffers[0])[i] = (float)((i * 2654435761u >> 7) % 257) / 64.0f - 2.0f;
}

static void teardown(void)
{
    opjit_context_destroy(context);
    ck_assert_int_eq(memory.live, 0);
    ck_assert_int_eq(memory.bytes, 0);
}

/* --- what calls run ----------------------------------------------------------------------------------------------- */

static void check_bits(build_fn *build, uint32_t flags, opjit_level level)
{
    description d = { .build = build }, p = { .build = build };
    opjit_tiers tiers = tiers_of(&at_once, 0);
    tiers.level = level;
    opjit_kernel *const kernel = compile(&d, &tiers, flags), *const plain = compile(&p, NULL, flags);
    uint64_t served = stats().tier_calls, made = stats().tier_kernels;

    for (uint64_t n = 1; n <= LARGEST; n = 2 * n + 1) {
        for (uint32_t i = 0; i < CALLS; i++)
            check_call(kernel, plain, n); /* the last one makes the kernel of this size */
        ck_assert_uint_eq(stats().tier_kernels, ++made);
        ck_assert_uint_eq(stats().tier_calls, served);
        check_call(kernel, plain, n);
        ck_assert_uint_eq(stats().tier_calls, ++served);
    }
    ck_assert_uint_eq(stats().tier_failures, 0);
    opjit_kernel_release(kernel);
    opjit_kernel_release(plain);
    ck_assert_int_eq(d.released, 1);
    opjit_graph_destroy(p.graph);
}

START_TEST(same_bits)
{
    check_bits(builds[_i], OPJIT_COMPILE_INTERPRET, OPJIT_LEVEL_AUTO);
    check_bits(builds[_i], OPJIT_COMPILE_INTERPRET | OPJIT_COMPILE_NO_CACHE | OPJIT_COMPILE_BORROW_CONSTANTS,
               OPJIT_LEVEL_AUTO);
    if (!have_codegen)
        return;
    check_bits(builds[_i], 0, OPJIT_LEVEL_QUICK);
    check_bits(builds[_i], OPJIT_COMPILE_NO_CACHE, OPJIT_LEVEL_PEAK);
}
END_TEST

/* Without tiers, and with tiers that nobody runs, a kernel stays as it is; and so does the cache's. */
START_TEST(never_by_itself)
{
    description d = { .build = softmax }, p = { .build = softmax };
    const opjit_async_executor refuses = { NULL, submit_never };
    const opjit_tiers none = tiers_of(NULL, 0), never = tiers_of(&refuses, 0);
    opjit_kernel *const plain = compile(&p, NULL, OPJIT_COMPILE_INTERPRET);
    opjit_kernel *kernel = compile(&d, &none, OPJIT_COMPILE_INTERPRET);

    ck_assert_uint_eq(stats().compiles, 1); /* the dynamic kernel is the same */
    call_often(plain, 5, 5 * CALLS);
    call_often(kernel, 5, 5 * CALLS);
    opjit_kernel_release(kernel);
    kernel = compile(&d, &never, OPJIT_COMPILE_INTERPRET);
    call_often(kernel, 5, 5 * CALLS);
    ck_assert_int_eq(opjit_kernel_specialize(plain, &dim.lo, 1, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_int_eq(opjit_kernel_specialize(kernel, &dim.lo, 2, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_int_eq(opjit_kernel_specialize(kernel, (const uint64_t[]){ LARGEST + 1 }, 1, &error),
                     OPJIT_INVALID_ARGUMENT);
    ck_assert_uint_eq(stats().compiles, 1);
    ck_assert_uint_eq(stats().tier_calls + stats().tier_kernels + stats().tier_failures, 0);
    ck_assert_int_eq(opjit_kernel_specialize(kernel, &dim.lo, 1, &error), OPJIT_OK);
    ck_assert_int_eq(opjit_kernel_specialize(kernel, &dim.lo, 1, &error), OPJIT_OK); /* there is one */
    ck_assert_uint_eq(stats().tier_kernels, 1);
    call_often(plain, dim.lo, 2);
    ck_assert_uint_eq(stats().tier_calls, 0);
    call_often(kernel, dim.lo, 2);
    ck_assert_uint_eq(stats().tier_calls, 2);
    opjit_kernel_release(kernel);
    opjit_kernel_release(plain);
    opjit_graph_destroy(p.graph);
}
END_TEST

START_TEST(options_are_checked)
{
    description d = { .build = softmax };
    opjit_kernel *kernel;
    const opjit_async_executor empty = { NULL, NULL };
    opjit_tiers tiers[4] = { tiers_of(NULL, 65), tiers_of(NULL, 1), tiers_of(NULL, 1), tiers_of(&empty, 1) };

    tiers[1].calls = (1u << 22) + 1;
    tiers[2].level = (opjit_level)3;
    for (uint32_t i = 0; i < 4; i++)
        ck_assert_int_eq(opjit_compile_tiered(context, &dim, 1, describe, &d, NULL, &tiers[i], &kernel, &error),
                         OPJIT_INVALID_ARGUMENT);
    ck_assert_int_eq(opjit_compile_tiered(context, &dim, 1, describe, &d, NULL, NULL, &kernel, &error),
                     OPJIT_INVALID_ARGUMENT);
    ck_assert_int_eq(d.released, 0); /* still the caller's */
}
END_TEST

/* The one that was used least recently leaves; its sizes then count anew. */
START_TEST(eviction)
{
    description d = { .build = relu };
    const opjit_tiers tiers = tiers_of(&at_once, 2);
    opjit_kernel *const kernel = compile(&d, &tiers, OPJIT_COMPILE_INTERPRET);

    call_often(kernel, 3, CALLS);
    call_often(kernel, 4, CALLS);
    call_often(kernel, 3, 1); /* 4 is the one that leaves */
    ck_assert_uint_eq(stats().tier_calls, 1);
    call_often(kernel, 5, CALLS);
    ck_assert_uint_eq(stats().tier_kernels, 3);
    ck_assert_uint_eq(stats().tier_evictions, 1);
    call_often(kernel, 3, 1);
    call_often(kernel, 5, 1);
    ck_assert_uint_eq(stats().tier_calls, 3);
    const int before = d.calls;
    call_often(kernel, 4, CALLS - 1);
    ck_assert_int_eq(d.calls, before);
    call_often(kernel, 4, 1);
    ck_assert_int_eq(d.calls, before + 1);
    ck_assert_uint_eq(stats().tier_kernels, 4);
    ck_assert_uint_eq(stats().tier_evictions, 2);
    opjit_kernel_release(kernel);
}
END_TEST

START_TEST(failure_is_remembered)
{
    description d = { .build = relu, .refused = 7 };
    const opjit_tiers tiers = tiers_of(&at_once, 0);
    opjit_kernel *kernel;

    d.refused = 0;
    kernel = compile(&d, &tiers, OPJIT_COMPILE_INTERPRET);
    d.refused = 7;
    const int before = d.calls;
    call_often(kernel, 7, 20 * CALLS);
    ck_assert_int_eq(d.calls, before + 1);
    for (uint64_t n = 1; n <= LARGEST; n++) /* more sizes than there is room to count */
        call_often(kernel, n, 1);
    call_often(kernel, 7, 20 * CALLS);
    ck_assert_int_eq(d.calls, before + 1);
    ck_assert_uint_eq(stats().tier_failures, 1);
    ck_assert_int_eq(opjit_kernel_specialize(kernel, &d.refused, 1, &error), OPJIT_UNSUPPORTED);
    opjit_kernel_release(kernel);
}
END_TEST

/* A call is refused with the same words whichever kernel it would run, and takes memory that one alone needs. */
START_TEST(same_refusals)
{
    description d = { .build = builds[_i] };
    const opjit_tiers tiers = tiers_of(NULL, 0);
    opjit_kernel *const kernel = compile(&d, &tiers, have_codegen ? 0 : OPJIT_COMPILE_INTERPRET);
    const uint64_t n = 9, above = LARGEST + 1, bytes = n * WIDTH * 4;
    const struct {
        opjit_binding bindings[2];
        opjit_binding workspace;
        const uint64_t *dims;
    } calls[] = {
        { { { buffers[0], bytes }, { buffers[1], 8 } }, { NULL, 0 }, &n },
        { { { NULL, bytes }, { buffers[1], bytes } }, { NULL, 0 }, &n },
        { { { buffers[1], bytes }, { buffers[1], bytes } }, { NULL, 0 }, &n }, /* in place */
        { { { buffers[1], bytes }, { buffers[1] + 64, bytes } }, { NULL, 0 }, &n },
        { { { buffers[0], bytes }, { buffers[1] + 2, bytes } }, { NULL, 0 }, &n },
        { { { buffers[0], bytes }, { buffers[1], bytes } }, { NULL, 0 }, &above },
        { { { buffers[0], bytes }, { buffers[1], bytes } }, { NULL, 64 }, &n },
        { { { buffers[0], bytes }, { buffers[1], bytes } }, { buffers[2], ROOM }, &n },
        { { { buffers[0], bytes }, { buffers[1], bytes } }, { buffers[2], 64 }, &n },
    };
    opjit_status before[sizeof calls / sizeof *calls];
    char messages[sizeof calls / sizeof *calls][sizeof error.message];

    for (uint32_t turn = 0; turn < 2; turn++) {
        for (uint32_t i = 0; i < sizeof calls / sizeof *calls; i++) {
            opjit_call call = OPJIT_CALL_INIT;
            call.bindings = calls[i].bindings;
            call.binding_count = 2;
            call.dims = calls[i].dims;
            call.dim_count = 1;
            call.workspace = calls[i].workspace;
            const opjit_status status = opjit_kernel_call(kernel, &call, &error);
            if (turn == 0) {
                before[i] = status;
                memcpy(messages[i], error.message, sizeof error.message);
            } else {
                ck_assert_msg(status == before[i], "call %u: %s, then %s", i, messages[i], error.message);
                ck_assert_str_eq(error.message, messages[i]);
            }
        }
        ck_assert_int_eq(opjit_kernel_specialize(kernel, &n, 1, &error), OPJIT_OK);
    }
    opjit_kernel_release(kernel);
}
END_TEST

/* --- lives -------------------------------------------------------------------------------------------------------- */

/* A kernel that goes before its job begins. */
START_TEST(released_before)
{
    description d = { .build = relu };
    later task = { NULL, NULL };
    const opjit_async_executor executor = { &task, submit_later };
    const opjit_tiers tiers = tiers_of(&executor, 0);
    opjit_kernel *const kernel = compile(&d, &tiers, OPJIT_COMPILE_INTERPRET);

    call_often(kernel, 3, 4 * CALLS);
    call_often(kernel, 4, 4 * CALLS); /* not while the other is under way */
    ck_assert(task.run != NULL);
    const int before = d.calls;
    opjit_kernel_release(kernel);
    ck_assert_int_eq(d.released, 0);
    if (_i == 0) {
        task.run(task.arg);
    } else { /* a context that goes ends the job, which is then run without effect */
        opjit_context_destroy(context);
        ck_assert_int_eq(d.released, 1);
        task.run(task.arg);
        open_context(0, NULL);
    }
    ck_assert_int_eq(d.released, 1);
    ck_assert_int_eq(d.calls, before);
}
END_TEST

static void *specialize(void *arg)
{
    const uint64_t n = 6;
    opjit_error e;
    return (void *)(uintptr_t)opjit_kernel_specialize(arg, &n, 1, &e);
}

/* Kernels and contexts that go while a kernel of one size is being described, which then isn't made. */
START_TEST(released_meanwhile)
{
    description d = { .build = relu };
    opjit_workers *workers;
    ck_assert_int_eq(opjit_workers_create(NULL, 2, &workers, &error), OPJIT_OK);
    const opjit_tiers tiers = tiers_of(opjit_workers_executor(workers), 0);
    opjit_kernel *const kernel = compile(&d, &tiers, OPJIT_COMPILE_INTERPRET);

    atomic_store(&d.held, true);
    atomic_store(&d.reached, false);
    call_often(kernel, 3, CALLS);
    while (!atomic_load(&d.reached))
        wait_a_little();
    call_often(kernel, 3, 4 * CALLS); /* nobody waits */
    opjit_kernel_release(kernel);
    ck_assert_int_eq(d.released, 0);
    atomic_store(&d.held, false);
    opjit_workers_destroy(workers);
    ck_assert_int_eq(d.released, 1);
    ck_assert_uint_eq(stats().tier_kernels + stats().tier_failures, 0);
}
END_TEST

START_TEST(context_goes_first)
{
    description d = { .build = relu };
    const opjit_tiers tiers = tiers_of(&at_once, 0);
    opjit_kernel *const kernel = compile(&d, &tiers, OPJIT_COMPILE_INTERPRET);

    call_often(kernel, 3, CALLS);
    opjit_context_destroy(context);
    const int before = d.calls;
    call_often(kernel, 3, 10 * CALLS);
    call_often(kernel, 4, 10 * CALLS);
    ck_assert_int_eq(opjit_kernel_specialize(kernel, &(uint64_t){ 4 }, 1, &error), OPJIT_CANCELLED);
    ck_assert_int_eq(d.calls, before);
    opjit_kernel_release(kernel);
    ck_assert_int_eq(d.released, 1);
    ck_assert_int_eq(memory.live, 0);
    open_context(0, NULL);
}
END_TEST

START_TEST(specialized_from_within)
{
    description d = { .build = relu };
    const opjit_tiers tiers = tiers_of(&at_once, 0);
    opjit_kernel *const kernel = compile(&d, &tiers, OPJIT_COMPILE_INTERPRET);

    d.inner = kernel;
    ck_assert_int_eq(opjit_kernel_specialize(kernel, &(uint64_t){ 4 }, 1, &error), OPJIT_INVALID_ARGUMENT);
    opjit_kernel_release(kernel);
}
END_TEST

/* Another process finds a kernel of one size in the disk cache. */
START_TEST(disk)
{
    char folder[] = "/tmp/opjit-tiers-XXXXXX", command[64];

    if (!have_codegen)
        return;
    ck_assert_ptr_nonnull(mkdtemp(folder));
    for (uint32_t turn = 0; turn < 2; turn++) {
        description d = { .build = softmax };
        const opjit_tiers tiers = tiers_of(&at_once, 0);
        opjit_context_destroy(context);
        open_context(0, folder);
        opjit_kernel *const kernel = compile(&d, &tiers, 0);
        call_often(kernel, 3, CALLS + 1);
        ck_assert_uint_eq(stats().tier_calls, 1);
        ck_assert_uint_eq(stats().disk_hits, 2 * turn);
        ck_assert_uint_eq(stats().compiles, 2 * (1 - turn));
        opjit_kernel_release(kernel);
    }
    snprintf(command, sizeof command, "rm -r %s", folder);
    ck_assert_int_eq(system(command), 0);
}
END_TEST

/* --- threads ------------------------------------------------------------------------------------------------------ */

static atomic_int broken;  /* Check's assertions belong to the main thread */
static atomic_bool enough; /* kernels came and went */

typedef struct caller {
    const opjit_kernel *kernel;
    uint8_t (*expected)[ROOM];
    uint32_t seed;
} caller;

static void *call_sizes(void *arg)
{
    const caller *c = arg;
    uint8_t *const out = malloc(ROOM);
    uint32_t random = c->seed;

    while (!atomic_load(&enough)) {
        random = random * 1664525u + 1013904223u;
        const uint64_t n = 1 + (random >> 16) % 6;
        if (call_into(c->kernel, n, out, NULL) != OPJIT_OK || memcmp(out, c->expected[n], n * WIDTH * 4) != 0)
            atomic_store(&broken, 1);
    }
    free(out);
    return NULL;
}

/* Six sizes are called often, of which two at a time have kernels. */
START_TEST(threads)
{
    static uint8_t known[8][ROOM];
    description d = { .build = softmax }, p = { .build = softmax };
    const uint32_t flags = _i == 0 ? OPJIT_COMPILE_INTERPRET : 0, changes = _i == 0 ? 10 : 3;
    pthread_t started[THREADS];
    caller callers[THREADS];
    opjit_workers *workers;

    if (_i != 0 && !have_codegen)
        return;
    ck_assert_int_eq(opjit_workers_create(NULL, 2, &workers, &error), OPJIT_OK);
    const opjit_tiers tiers = tiers_of(opjit_workers_executor(workers), 2);
    opjit_kernel *const kernel = compile(&d, &tiers, flags), *const plain = compile(&p, NULL, flags);
    for (uint64_t n = 1; n <= 6; n++)
        ck_assert_int_eq(call_into(plain, n, known[n], &error), OPJIT_OK);
    for (uint32_t i = 0; i < THREADS; i++) {
        callers[i] = (caller){ kernel, known, i + 1 };
        ck_assert_int_eq(pthread_create(&started[i], NULL, call_sizes, &callers[i]), 0);
    }
    for (uint32_t i = 0; i < 20000 && stats().tier_evictions < changes; i++)
        wait_a_little();
    atomic_store(&enough, true);
    for (uint32_t i = 0; i < THREADS; i++)
        pthread_join(started[i], NULL);
    ck_assert_int_eq(atomic_load(&broken), 0);
    ck_assert_ptr_eq(specialize(kernel), NULL); /* OPJIT_OK: waits for what is being made */
    ck_assert_uint_ge(stats().tier_evictions, changes);
    ck_assert_uint_eq(stats().tier_failures, 0);
    opjit_kernel_release(kernel);
    opjit_kernel_release(plain);
    opjit_workers_destroy(workers);
    ck_assert_int_eq(d.released, 1);
    opjit_graph_destroy(p.graph);
}
END_TEST

/* --- no memory ---------------------------------------------------------------------------------------------------- */

START_TEST(no_memory)
{
    bool ended = false;

    opjit_context_destroy(context);
    for (int fail_at = 1; !ended; fail_at += _i == 0 ? 1 + fail_at / 8 : 1) { /* the dynamic kernel's are many */
        description d = { .build = _i == 0 ? product : relu };
        opjit_tiers tiers = tiers_of(&at_once, 1);
        opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
        opjit_kernel *kernel;
        open_context(0, NULL);
        options.flags = OPJIT_COMPILE_INTERPRET;
        tiers.calls = 1;
        memory.calls = 0;
        memory.fail_at = _i == 0 ? fail_at : 0;
        opjit_status status = opjit_compile_tiered(context, &dim, 1, describe, &d, &options, &tiers, &kernel, &error);
        if (status == OPJIT_OK) {
            if (_i != 0) {
                memory.calls = 0;
                memory.fail_at = fail_at;
            }
            status = _i == 2 ? call_into(kernel, 3, buffers[1], &error)
                             : opjit_kernel_specialize(kernel, &(uint64_t){ 3 }, 1, &error);
            memory.fail_at = 0;
            ended = memory.calls < fail_at;
            call_often(kernel, 3, 2);
            opjit_kernel_release(kernel);
            ck_assert_int_eq(d.released, 1);
        } else {
            opjit_graph_destroy(d.graph);
            ck_assert_int_eq(d.released, 0);
        }
        ck_assert_msg(status == OPJIT_OK || status == OPJIT_OUT_OF_MEMORY, "%d: %s", fail_at, error.message);
        opjit_context_destroy(context);
        ck_assert_msg(memory.live == 0 && memory.bytes == 0, "allocation %d leaves %d", fail_at, memory.live);
    }
    open_context(0, NULL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fe.tiers");
    TCase *tcase = tcase_create("tiers"), *threaded = tcase_create("threads"), *without = tcase_create("no memory");
    tcase_set_timeout(tcase, 600);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, same_bits, 0, sizeof builds / sizeof *builds);
    tcase_add_test(tcase, never_by_itself);
    tcase_add_test(tcase, options_are_checked);
    tcase_add_test(tcase, eviction);
    tcase_add_test(tcase, failure_is_remembered);
    tcase_add_loop_test(tcase, same_refusals, 0, 2);
    tcase_add_loop_test(tcase, released_before, 0, 2);
    tcase_add_test(tcase, released_meanwhile);
    tcase_add_test(tcase, context_goes_first);
    tcase_add_test(tcase, specialized_from_within);
    tcase_add_test(tcase, disk);
    tcase_set_timeout(threaded, 600);
    tcase_add_checked_fixture(threaded, setup, teardown);
    tcase_add_loop_test(threaded, threads, 0, 2);
    tcase_set_timeout(without, 600);
    tcase_add_checked_fixture(without, setup, teardown);
    tcase_add_loop_test(without, no_memory, 0, 3);
    suite_add_tcase(suite, tcase);
    suite_add_tcase(suite, threaded);
    suite_add_tcase(suite, without);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
