/* SPDX-License-Identifier: Apache-2.0 */
/* test_fe_scale.c - graphs of hundreds of stages and thousands of nodes: memory, counted by the hook, is linear in
 * them, results are those of the operators one by one, and chains of 10,000 nodes need no deep C stack.  Times are
 * measured by tests/bench/bench_scale.c, except those that must not grow with the square. */
#define _POSIX_C_SOURCE 200809L
#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <opjit/ffi.h>

#include "tests/support/meter.h"
#include "tests/support/scale.h"

/* The most that 400 nodes may take, relative to 100. */
#define GROWTH (4 * 1.3)
enum { FEW = 100, MANY = 400, LARGE = 1000, STAGE_BYTES = 100000 };

typedef struct cost {
    size_t peak, count; /* bytes and allocations of a compile */
    size_t kept;        /* bytes of the kernel */
    size_t call;        /* bytes of a call, at most */
} cost;

static opjit_context *context_for(test_meter *meter)
{
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
    opjit_context *context = NULL;
    opjit_error error = { 0 };

    test_meter_begin(meter);
    options.allocator = &meter->allocator;
    ck_assert_msg(opjit_context_create(&options, &context, &error) == OPJIT_OK, "%s", error.message);
    return context;
}

/* Compiles for the interpreter, calls and compares. */
static cost run(scale_shape shape, uint32_t count)
{
    test_meter meter;
    opjit_context *context = context_for(&meter);
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_call call = OPJIT_CALL_INIT;
    opjit_error error = { 0 };
    opjit_kernel *kernel = NULL;
    scale_graph graph;
    scale_buffers buffers;
    cost spent;

    ck_assert_msg(scale_make(context, shape, count, &graph, &error), "%s", error.message);
    ck_assert(scale_buffers_make(&graph, &buffers));
    options.flags = OPJIT_COMPILE_INTERPRET | OPJIT_COMPILE_NO_CACHE;
    size_t before = meter.live;
    test_meter_reset(&meter);
    ck_assert_msg(opjit_compile_graph(context, &graph.g.desc, &options, &kernel, &error) == OPJIT_OK, "%s of %u: %s",
                  scale_names[shape], (unsigned)count, error.message);
    spent.peak = meter.peak - before;
    spent.count = meter.calls;
    spent.kept = meter.live - before;
    call.bindings = buffers.bindings;
    call.binding_count = graph.input_count + graph.output_count;
    before = meter.live;
    test_meter_reset(&meter);
    ck_assert_msg(opjit_kernel_call(kernel, &call, &error) == OPJIT_OK, "%s", error.message);
    spent.call = meter.peak - before;
    ck_assert_msg(scale_check(context, &graph, &buffers, &error), "%s of %u: %s", scale_names[shape], (unsigned)count,
                  error.message);
    opjit_kernel_release(kernel);
    scale_buffers_free(&buffers);
    scale_free(&graph);
    opjit_context_destroy(context);
    ck_assert_uint_eq(meter.live, 0);
    return spent;
}

static void check_growth(scale_shape shape, const char *what, size_t few, size_t many)
{
    ck_assert_msg((double)many <= GROWTH * (double)few, "%s: %s of %d: %zu, of %d: %zu", scale_names[shape], what, FEW,
                  few, MANY, many);
}

START_TEST(memory_is_linear)
{
    const scale_shape shape = (scale_shape)_i;
    const cost few = run(shape, FEW), many = run(shape, MANY);

    check_growth(shape, "peak bytes", few.peak, many.peak);
    check_growth(shape, "allocations", few.count, many.count);
    check_growth(shape, "bytes kept", few.kept, many.kept);
    check_growth(shape, "bytes of a call", few.call, many.call);
}
END_TEST

START_TEST(a_thousand_stages)
{
    const cost all = run((scale_shape)_i, LARGE);

    ck_assert_msg(all.peak / LARGE <= STAGE_BYTES, "%s: %zu bytes per stage", scale_names[_i], all.peak / LARGE);
}
END_TEST

/* --- on a small stack --------------------------------------------------------------------------------------------- */

enum { SMALL_STACK = 1 << 20, LONG = 10000 };

static void count_text(void *user, const char *stage, const char *text)
{
    (void)stage;
    *(size_t *)user += strlen(text);
}

static void *on_small_stack(void *arg)
{
    const scale_shape shape = *(const scale_shape *)arg;
    test_meter meter;
    opjit_error error = { 0 };
    size_t letters = 0;
    scale_graph graph;

    run(shape, LONG);
    opjit_context *context = context_for(&meter);
    ck_assert(scale_make(context, shape, LONG, &graph, &error));
    ck_assert_msg(opjit_graph_explain(context, &graph.g.desc, NULL, count_text, &letters, &error) == OPJIT_OK, "%s",
                  error.message);
    ck_assert_uint_gt(letters, LONG);
    scale_free(&graph);
    opjit_context_destroy(context);
    return NULL;
}

START_TEST(ten_thousand_nodes_on_a_small_stack)
{
    scale_shape shape = _i == 0 ? SCALE_CHAIN : SCALE_WIDE;
    pthread_attr_t attributes;
    pthread_t thread;

    ck_assert_int_eq(pthread_attr_init(&attributes), 0);
    ck_assert_int_eq(pthread_attr_setstacksize(&attributes, SMALL_STACK), 0);
    ck_assert_int_eq(setenv("OPJIT_VERIFY", "1", 1), 0); /* the verifier walks after every pass, too */
    ck_assert_int_eq(pthread_create(&thread, &attributes, on_small_stack, &shape), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_int_eq(unsetenv("OPJIT_VERIFY"), 0);
    pthread_attr_destroy(&attributes);
}
END_TEST

/* --- time --------------------------------------------------------------------------------------------------------- */

/* The most that four times as many may take of a processor: the square would be 16. */
enum { TIMES_MOST = 10, CALLS = 16000 };

static void nothing(const float *in, float *out)
{
    out[0] = in[0];
}

/* A custom operator of one element. */
static opjit_operator *custom_operator(opjit_context *context)
{
    static const opjit_custom_arg args[] = { { .kind = OPJIT_CUSTOM_INPUT }, { .kind = OPJIT_CUSTOM_OUTPUT } };
    static const uint32_t sizes[] = { 1 };
    opjit_custom_desc desc = OPJIT_CUSTOM_DESC_INIT;
    opjit_operator *op = NULL;
    opjit_error error = { 0 };
    graph_tensor t;

    desc.name = "nothing";
    desc.inputs = desc.outputs = graph_tensor_set(&t, DML_TENSOR_DATA_TYPE_FLOAT32, 1, sizes, NULL, 0);
    desc.input_count = desc.output_count = 1;
    desc.args = args;
    desc.arg_count = 2;
    desc.function = (void (*)(void))nothing;
    const opjit_status status = opjit_custom_create(context, &desc, &op, &error);
    ck_assert_msg(status == OPJIT_OK || status == OPJIT_UNAVAILABLE, "%s", error.message);
    return op;
}

/* Processor seconds that `count` calls take to compile, all of which read one input and write an output of the
 * graph. */
static double time_of_calls(opjit_context *context, opjit_operator *op, uint32_t count)
{
    DML_OPERATOR_GRAPH_NODE_DESC node = { .Operator = op };
    DML_GRAPH_NODE_DESC *nodes = calloc(count, sizeof *nodes);
    DML_INPUT_GRAPH_EDGE_DESC *ins = calloc(count, sizeof *ins);
    DML_OUTPUT_GRAPH_EDGE_DESC *outs = calloc(count, sizeof *outs);
    DML_GRAPH_EDGE_DESC *edges = calloc(2 * (size_t)count, sizeof *edges);
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_kernel *kernel = NULL;
    opjit_error error = { 0 };

    ck_assert(nodes != NULL && ins != NULL && outs != NULL && edges != NULL);
    for (uint32_t i = 0; i < count; i++) {
        nodes[i] = (DML_GRAPH_NODE_DESC){ DML_GRAPH_NODE_TYPE_OPERATOR, &node };
        ins[i].ToNodeIndex = outs[i].FromNodeIndex = outs[i].GraphOutputIndex = i;
        edges[i] = (DML_GRAPH_EDGE_DESC){ DML_GRAPH_EDGE_TYPE_INPUT, &ins[i] };
        edges[count + i] = (DML_GRAPH_EDGE_DESC){ DML_GRAPH_EDGE_TYPE_OUTPUT, &outs[i] };
    }
    const DML_GRAPH_DESC graph = { 1, count, count, nodes, count, edges, count, edges + count, 0, NULL };
    options.flags = OPJIT_COMPILE_INTERPRET | OPJIT_COMPILE_NO_CACHE;
    const clock_t before = clock();
    ck_assert_msg(opjit_compile_graph(context, &graph, &options, &kernel, &error) == OPJIT_OK, "%s", error.message);
    const double seconds = (double)(clock() - before) / CLOCKS_PER_SEC;
    opjit_kernel_release(kernel);
    free(nodes);
    free(ins);
    free(outs);
    free(edges);
    return seconds;
}

START_TEST(time_of_custom_operators)
{
    test_meter meter;
    opjit_context *context = context_for(&meter);
    opjit_operator *op = custom_operator(context);
    if (op != NULL) {
        const double few = time_of_calls(context, op, CALLS), many = time_of_calls(context, op, 4 * CALLS);
        ck_assert_msg(many <= TIMES_MOST * few + 0.05, "%d calls: %.3f s, %d: %.3f s", CALLS, few, 4 * CALLS, many);
    }
    opjit_operator_release(op);
    opjit_context_destroy(context);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fe.scale");
    TCase *tests = tcase_create("scale");
    tcase_add_loop_test(tests, memory_is_linear, 0, SCALE_SHAPES);
    tcase_add_loop_test(tests, a_thousand_stages, 0, SCALE_CHAIN);
    tcase_add_loop_test(tests, ten_thousand_nodes_on_a_small_stack, 0, 2);
    tcase_add_test(tests, time_of_custom_operators);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
