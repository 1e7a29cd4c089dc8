/* SPDX-License-Identifier: Apache-2.0 */
/* test_fe_custom.c - custom operators: what is refused, arguments of all kinds, and graphs that contain them between
 * other nodes, compiled and interpreted, alone and on an executor. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <opjit/ffi.h>

#include "frontend/frontend.h"
#include "tests/support/checker.h"
#include "tests/support/executors.h"
#include "tests/support/graph_case.h"
#include "tests/support/require.h"

enum { COUNT = 32 * 1024, CAPACITY = 16 };

static graph_tensor real;
static const opjit_custom_arg in_out[] = { { .kind = OPJIT_CUSTOM_INPUT }, { .kind = OPJIT_CUSTOM_OUTPUT } };

/* --- the functions ------------------------------------------------------------------------------------------------ */

static void reverse(const float *in, float *out)
{
    for (int i = 0; i < COUNT; i++)
        out[i] = in[COUNT - 1 - i];
}

/* Every kind of argument, in registers and on the stack. */
static int scale(double factor, const float *in, float plus, int8_t a, uint16_t b, int32_t c, int64_t d, float *out,
                 void *user, uint8_t e, uint32_t f, float *sum)
{
    int *calls = user;

    ++*calls;
    *sum = (float)(a + b + c + (double)d + e + f);
    for (int i = 0; i < COUNT; i++)
        out[i] = (float)(in[i] * factor) + plus;
    return 0;
}

static int refuse(const float *in, float *out, int *result)
{
    memcpy(out, in, COUNT * sizeof *out);
    return *result;
}

static void fill(float *out)
{
    for (int i = 0; i < COUNT; i++)
        out[i] = (float)(i % 100);
}

/* --- helpers ------------------------------------------------------------------------------------------------------ */

static const DML_TENSOR_DESC *set_real(void)
{
    const uint32_t sizes[] = { COUNT / 64, 64 };
    return graph_tensor_set(&real, DML_TENSOR_DATA_TYPE_FLOAT32, 2, sizes, NULL, 0);
}

static opjit_custom_desc unary_desc(void (*function)(void))
{
    opjit_custom_desc desc = OPJIT_CUSTOM_DESC_INIT;

    desc.name = "mine";
    desc.inputs = desc.outputs = set_real();
    desc.input_count = desc.output_count = 1;
    desc.args = in_out;
    desc.arg_count = 2;
    desc.function = function;
    return desc;
}

/* false: this build has no libffi. */
static bool create(opjit_context *context, const opjit_custom_desc *desc, opjit_operator **out)
{
    opjit_error error = { 0 };
    const opjit_status status = opjit_custom_create(context, desc, out, &error);

    ck_assert_msg(status == OPJIT_OK || status == OPJIT_UNAVAILABLE, "%s", error.message);
    return status == OPJIT_OK;
}

static uint32_t add_custom(graph_case *g, const opjit_custom_desc *desc, const char *label)
{
    const uint32_t i = g->desc.NodeCount++;

    g->operators[i].Name = label;
    ck_assert(create(g->context, desc, &g->operators[i].Operator));
    g->nodes[i] = (DML_GRAPH_NODE_DESC){ DML_GRAPH_NODE_TYPE_OPERATOR, &g->operators[i] };
    return i;
}

static uint32_t negate(graph_case *g)
{
    const DML_ELEMENT_WISE_NEGATE_OPERATOR_DESC desc = { set_real(), &real.desc };
    return graph_operator(g, DML_OPERATOR_ELEMENT_WISE_NEGATE, &desc, NULL);
}

static uint32_t add(graph_case *g)
{
    const DML_ELEMENT_WISE_ADD_OPERATOR_DESC desc = { set_real(), &real.desc, &real.desc };
    return graph_operator(g, DML_OPERATOR_ELEMENT_WISE_ADD, &desc, NULL);
}

static opjit_status call_kernel(const opjit_kernel *kernel, float *const *data, const uint64_t *bytes, uint32_t count,
                                const opjit_executor *executor, opjit_error *error)
{
    opjit_binding bindings[4];
    opjit_call call = OPJIT_CALL_INIT;

    for (uint32_t i = 0; i < count; i++)
        bindings[i] = (opjit_binding){ data[i], bytes == NULL ? COUNT * sizeof(float) : bytes[i] };
    call.bindings = bindings;
    call.binding_count = count;
    call.executor = executor;
    return opjit_kernel_call(kernel, &call, error);
}

static bool have_ffi(opjit_context *context)
{
    const opjit_custom_desc desc = unary_desc((void (*)(void))reverse);
    opjit_operator *op;
    const bool have = create(context, &desc, &op);

    opjit_operator_release(op);
    if (!have)
        puts("skipped: no libffi in this build");
    return have;
}

/* --- refusals ----------------------------------------------------------------------------------------------------- */

static void check_refused(opjit_context *context, const opjit_custom_desc *desc, opjit_status status,
                          const char *message)
{
    opjit_operator *op = (opjit_operator *)(uintptr_t)desc;
    opjit_error error;

    ck_assert_int_eq(opjit_custom_create(context, desc, &op, &error), status);
    ck_assert_str_eq(error.message, message);
    test_require_place(&error);
    ck_assert_ptr_null(op);
}

START_TEST(wrong_descriptions_are_refused)
{
    opjit_context *context = test_context_create();
    const opjit_custom_desc good = unary_desc((void (*)(void))reverse);
    opjit_custom_arg args[2] = { in_out[0], in_out[1] };
    opjit_custom_desc desc;
    opjit_operator *op = NULL;

    if (!have_ffi(context))
        exit(0);
    ck_assert_int_eq(opjit_custom_create(NULL, &good, &op, NULL), OPJIT_INVALID_ARGUMENT);
    ck_assert_int_eq(opjit_custom_create(context, NULL, &op, NULL), OPJIT_INVALID_ARGUMENT);
    ck_assert_int_eq(opjit_custom_create(context, &good, NULL, NULL), OPJIT_INVALID_ARGUMENT);
#define CHANGED(change, status, message) (desc = good, desc.change, check_refused(context, &desc, status, message))
    CHANGED(name = NULL, OPJIT_INVALID_ARGUMENT, "custom operator name: NULL, must be a text");
    CHANGED(flags = 2, OPJIT_INVALID_ARGUMENT, "mine flags: 0x2, must be 0 or RETURNS_STATUS (1)");
    CHANGED(function = NULL, OPJIT_INVALID_ARGUMENT, "mine function: NULL, must be a function");
    CHANGED(key_bytes = 1, OPJIT_INVALID_ARGUMENT, "mine key: NULL, must be key_bytes bytes");
    CHANGED(args = NULL, OPJIT_INVALID_ARGUMENT, "mine args: NULL, must be an array of arg_count");
    CHANGED(inputs = NULL, OPJIT_INVALID_ARGUMENT, "mine inputs: NULL, must be an array of 1");
    CHANGED(output_count = 0, OPJIT_INVALID_ARGUMENT, "mine output_count: 0, must be 1 to 64");
    CHANGED(input_count = 65, OPJIT_LIMIT, "mine input_count: 65, must be 0 to 64");
    CHANGED(arg_count = 65, OPJIT_LIMIT, "mine arg_count: 65, must be at most 64");
    args[0].index = 1;
    CHANGED(args = args, OPJIT_INVALID_ARGUMENT, "mine args[0].index: 1, must be below 1 (input_count)");
    args[0] = (opjit_custom_arg){ .kind = 4 };
    CHANGED(args = args, OPJIT_INVALID_ARGUMENT, "mine args[0].kind: 4, must be 0 to 3");
    args[0] = (opjit_custom_arg){ .kind = OPJIT_CUSTOM_SCALAR };
    CHANGED(args = args, OPJIT_INVALID_ARGUMENT, "mine args[0].dtype: 0 (unknown), must be a type of 8 bits or more");
    real.buffer.DimensionCount = 0;
    check_refused(context, &good, OPJIT_INVALID_ARGUMENT, "mine inputs[0].DimensionCount: 0, must be 1 to 8");
    opjit_context_destroy(context);
}
END_TEST

/* reverse(-x), where x and -x claim to have so many bytes. */
static opjit_status compile_with_total(opjit_context *context, uint64_t total, uint32_t customs, opjit_error *error)
{
    opjit_custom_desc desc = unary_desc((void (*)(void))reverse);
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_kernel *kernel = NULL;
    opjit_operator *op = NULL;
    opjit_status status;
    graph_case g;

    options.flags = OPJIT_COMPILE_INTERPRET;
    real.buffer.TotalTensorSizeInBytes = total;
    status = opjit_custom_create(context, &desc, &op, error);
    opjit_operator_release(op);
    if (status != OPJIT_OK)
        return status;
    graph_begin(&g, context, CAPACITY);
    for (uint32_t i = 0; i < customs; i++) {
        add_custom(&g, &desc, NULL);
        if (i == 0)
            graph_input(&g, 0, 0, 0);
        else
            graph_edge(&g, i - 1, 0, i, 0);
    }
    graph_output(&g, customs - 1, 0, 0);
    status = opjit_compile_graph(context, &g.desc, &options, &kernel, error);
    opjit_kernel_release(kernel);
    graph_end(&g);
    return status;
}

START_TEST(sums_of_sizes_are_refused_not_wrapped)
{
    opjit_context *context = test_context_create();
    const uint64_t most = UINT64_C(1) << 40;
    opjit_error error;

    if (!have_ffi(context))
        exit(0);
    ck_assert_int_eq(compile_with_total(context, most, 2, &error), OPJIT_OK);
    ck_assert_int_eq(compile_with_total(context, most, 3, &error), OPJIT_LIMIT);
    ck_assert_str_eq(error.message, "kernel shared_size: 2199023255552, must be at most 1099511627776");
    ck_assert_str_eq(error.field, "shared_size");
    ck_assert_str_eq(error.value, "2199023255552");
    test_require_place(&error);
    ck_assert_int_eq(compile_with_total(context, UINT64_MAX - 3, 2, &error), OPJIT_LIMIT);
    ck_assert_str_eq(error.message, "mine inputs[0].TotalTensorSizeInBytes: 18446744073709551612, must be at most "
                                    "1099511627776 (1 TiB)");
    opjit_context_destroy(context);
}
END_TEST

/* --- arguments ---------------------------------------------------------------------------------------------------- */

START_TEST(arguments_of_every_kind)
{
    static float in[COUNT], out[COUNT], sum[16];
    float *const data[] = { in, out, sum };
    const uint64_t bytes[] = { sizeof in, sizeof out, sizeof sum };
    opjit_context *context = test_context_create();
    opjit_custom_desc desc = unary_desc((void (*)(void))scale);
    graph_tensor one;
    const DML_TENSOR_DESC outputs[] = { *set_real(), *graph_tensor_set(&one, DML_TENSOR_DATA_TYPE_FLOAT32, 1,
                                                                       (uint32_t[]){ 1 }, NULL, 0) };
#define SCALAR(type, member, x)                                 \
    {                                                           \
        OPJIT_CUSTOM_SCALAR, 0, DML_TENSOR_DATA_TYPE_##type, 0, \
        {                                                       \
            .member = x                                         \
        }                                                       \
    }
    const opjit_custom_arg args[] = { SCALAR(FLOAT64, Float64, 0.5),
                                      { .kind = OPJIT_CUSTOM_INPUT },
                                      SCALAR(FLOAT32, Float32, 3),
                                      SCALAR(INT8, Int8, -100),
                                      SCALAR(UINT16, UInt16, 60000),
                                      SCALAR(INT32, Int32, -70000),
                                      SCALAR(INT64, Int64, -(INT64_C(1) << 40)),
                                      { .kind = OPJIT_CUSTOM_OUTPUT },
                                      { .kind = OPJIT_CUSTOM_USER },
                                      SCALAR(UINT8, UInt8, 200),
                                      SCALAR(UINT32, UInt32, 4000000000u),
                                      { .kind = OPJIT_CUSTOM_OUTPUT, .index = 1 } };
    opjit_operator *op;
    opjit_kernel *kernel;
    int calls = 0;

    desc.outputs = outputs;
    desc.output_count = 2;
    desc.args = args;
    desc.arg_count = sizeof args / sizeof *args;
    desc.flags = OPJIT_CUSTOM_RETURNS_STATUS;
    desc.user = &calls;
    if (!create(context, &desc, &op))
        exit(0);
    for (int i = 0; i < COUNT; i++)
        in[i] = (float)(i % 1000);
    for (uint32_t flags = 0; flags <= OPJIT_COMPILE_INTERPRET; flags += OPJIT_COMPILE_INTERPRET) {
        opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
        if (flags == 0 && !test_have_codegen(context))
            continue;
        options.flags = flags;
        calls = 0;
        memset(out, 0, sizeof out);
        ck_assert_int_eq(opjit_compile_operator(context, op, &options, &kernel, NULL), OPJIT_OK);
        ck_assert_int_eq(call_kernel(kernel, data, bytes, 3, NULL, NULL), OPJIT_OK);
        ck_assert_int_eq(calls, 1);
        ck_assert(sum[0] == (float)(-100 + 60000 - 70000 - 1099511627776.0 + 200 + 4000000000.0));
        for (int i = 0; i < COUNT; i++)
            ck_assert(out[i] == in[i] / 2 + 3);
        opjit_kernel_release(kernel);
    }
    opjit_operator_release(op);
    opjit_context_destroy(context);
}
END_TEST

START_TEST(failures_end_the_call)
{
    static float in[COUNT], out[COUNT];
    float *const data[] = { in, out };
    const opjit_custom_arg args[] = { in_out[0], in_out[1], { .kind = OPJIT_CUSTOM_USER } };
    opjit_context *context = test_context_create();
    opjit_custom_desc desc = unary_desc((void (*)(void))refuse);
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_kernel *kernel;
    opjit_error error;
    graph_case g;
    int result = -7;

    if (!have_ffi(context))
        exit(0);
    desc.args = args;
    desc.arg_count = 3;
    desc.flags = OPJIT_CUSTOM_RETURNS_STATUS;
    desc.user = &result;
    options.flags = OPJIT_COMPILE_INTERPRET;
    graph_begin(&g, context, CAPACITY);
    add_custom(&g, &desc, "check");
    negate(&g);
    graph_input(&g, 0, 0, 0);
    graph_edge(&g, 0, 0, 1, 0);
    graph_output(&g, 1, 0, 0);
    ck_assert_int_eq(opjit_compile_graph(context, &g.desc, &options, &kernel, &error), OPJIT_OK);
    in[5] = 1;
    out[5] = 9;
    ck_assert_int_eq(call_kernel(kernel, data, NULL, 2, NULL, &error), OPJIT_CANCELLED);
    ck_assert_str_eq(error.message, "node 0 \"check\" (mine): its function returned -7");
    ck_assert(out[5] == 9); /* the nodes after it did not run */
    result = 0;
    ck_assert_int_eq(call_kernel(kernel, data, NULL, 2, NULL, &error), OPJIT_OK);
    ck_assert(out[5] == -1);
    /* None of its outputs may share an input's memory. */
    ck_assert_int_eq(call_kernel(kernel, (float *[]){ in, in }, NULL, 2, NULL, &error), OPJIT_INVALID_ARGUMENT);
    opjit_kernel_release(kernel);
    graph_end(&g);
    opjit_context_destroy(context);
}
END_TEST

/* --- graphs ------------------------------------------------------------------------------------------------------- */

/* y0 = -reverse(-x + fill) + (-x); y1 = reverse(-x + fill), which other nodes read as well; y2 = reverse(y0) */
static void begin_graph(graph_case *g, opjit_context *context)
{
    opjit_custom_desc desc = unary_desc((void (*)(void))reverse), filler = unary_desc((void (*)(void))fill);

    filler.input_count = 0;
    filler.args = &in_out[1];
    filler.arg_count = 1;
    graph_begin(g, context, CAPACITY);
    negate(g);                      /* 0 */
    add_custom(g, &filler, "fill"); /* 1 */
    add(g);                         /* 2 */
    add_custom(g, &desc, "there");  /* 3 */
    negate(g);                      /* 4 */
    add(g);                         /* 5 */
    add_custom(g, &desc, "back");   /* 6 */
    graph_input(g, 0, 0, 0);
    graph_edge(g, 0, 0, 2, 0);
    graph_edge(g, 1, 0, 2, 1);
    graph_edge(g, 2, 0, 3, 0);
    graph_edge(g, 3, 0, 4, 0);
    graph_edge(g, 4, 0, 5, 0);
    graph_edge(g, 0, 0, 5, 1);
    graph_edge(g, 5, 0, 6, 0);
    graph_output(g, 5, 0, 0);
    graph_output(g, 3, 0, 1);
    graph_output(g, 6, 0, 2);
}

static float in[COUNT], y[3][COUNT];

static void check_graph(const opjit_kernel *kernel, const opjit_executor *executor)
{
    float *const data[] = { in, y[0], y[1], y[2] };
    opjit_error error = { 0 };

    memset(y, 0, sizeof y);
    ck_assert_msg(call_kernel(kernel, data, NULL, 4, executor, &error) == OPJIT_OK, "%s", error.message);
    for (int i = 0; i < COUNT; i++) {
        const int r = COUNT - 1 - i;
        ck_assert(y[1][i] == -in[r] + (float)(r % 100));
        ck_assert(y[0][i] == -y[1][i] - in[i]);
        ck_assert(y[2][r] == y[0][i]);
    }
}

static void check_graph_with(opjit_context *context, uint32_t flags)
{
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_kernel *kernel, *again;
    test_random random;
    test_executor executor;
    opjit_error error = { 0 };
    graph_case g;

    test_random_init(&random, 1, 2, 3);
    begin_graph(&g, context);
    options.flags = flags;
    options.level = OPJIT_LEVEL_QUICK;
    ck_assert_msg(opjit_compile_graph(context, &g.desc, &options, &kernel, &error) == OPJIT_OK, "%s", error.message);
    ck_assert_int_eq(opjit_compile_graph(context, &g.desc, &options, &again, &error), OPJIT_OK);
    ck_assert_ptr_eq(kernel, again); /* the same function, the same user: the same kernel */
    opjit_kernel_release(again);
    graph_end(&g);
    check_graph(kernel, NULL);
    for (int threads = 0; threads < 2; threads++) {
        test_executor_init(&executor, &random, threads != 0);
        check_graph(kernel, &executor.executor);
    }
    ck_assert_int_eq(opjit_kernel_optimize(kernel, &error), OPJIT_OK);
    check_graph(kernel, NULL);
    opjit_kernel_release(kernel);
}

START_TEST(graphs_call_them_between_stages)
{
    opjit_context *context = test_context_create();

    for (int i = 0; i < COUNT; i++)
        in[i] = (float)(i % 777);
    if (have_ffi(context)) {
        check_graph_with(context, OPJIT_COMPILE_INTERPRET);
        if (test_have_codegen(context))
            check_graph_with(context, 0);
    }
    opjit_context_destroy(context);
}
END_TEST

/* y0 = reverse(constant + band) + band: the constant is bound to the kernel, the band's Value is late, and each of the
 * two parts makes the band itself. */
static void check_bound_with(opjit_context *context, uint32_t flags)
{
    static float constant[COUNT];
    static const char *const late[] = { "band.Value" };
    const DML_DIAGONAL_MATRIX1_OPERATOR_DESC band = { NULL, set_real(), DML_TENSOR_DATA_TYPE_FLOAT32, { .Float32 = 0 },
                                                      0,    2 };
    const opjit_custom_desc desc = unary_desc((void (*)(void))reverse);
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    const opjit_binding binding = { y[0], sizeof y[0] };
    const float value = 5;
    uint64_t bits = 0;
    opjit_call call = OPJIT_CALL_INIT;
    opjit_error error = { 0 };
    opjit_kernel *kernel;
    graph_case g;

    for (int i = 0; i < COUNT; i++)
        constant[i] = (float)i;
    graph_begin(&g, context, CAPACITY);
    graph_constant(&g, constant, sizeof constant, "c");               /* 0 */
    graph_operator(&g, DML_OPERATOR_DIAGONAL_MATRIX1, &band, "band"); /* 1 */
    add(&g);                                                          /* 2 */
    add_custom(&g, &desc, "there");                                   /* 3 */
    add(&g);                                                          /* 4 */
    graph_edge(&g, 0, 0, 2, 0);
    graph_edge(&g, 1, 0, 2, 1);
    graph_edge(&g, 2, 0, 3, 0);
    graph_edge(&g, 3, 0, 4, 0);
    graph_edge(&g, 1, 0, 4, 1);
    graph_output(&g, 4, 0, 0);
    options.flags = flags;
    options.late = late;
    options.late_count = 1;
    ck_assert_msg(opjit_compile_graph(context, &g.desc, &options, &kernel, &error) == OPJIT_OK, "%s", error.message);
    memcpy(&bits, &value, sizeof value);
    call.bindings = &binding;
    call.binding_count = 1;
    call.params = &bits;
    call.param_count = 1;
    ck_assert_msg(opjit_kernel_call(kernel, &call, &error) == OPJIT_OK, "%s", error.message);
    for (int i = 0; i < COUNT; i++) {
        const int r = COUNT - 1 - i, here = i % 64 - i / 64, there = r % 64 - r / 64;
        ck_assert(y[0][i] == (float)r + (there >= 0 && there < 2 ? value : 0) + (here >= 0 && here < 2 ? value : 0));
    }
    opjit_kernel_release(kernel);
    graph_end(&g);
}

START_TEST(constants_and_late_fields)
{
    opjit_context *context = test_context_create();

    if (have_ffi(context)) {
        check_bound_with(context, OPJIT_COMPILE_INTERPRET);
        if (test_have_codegen(context))
            check_bound_with(context, 0);
    }
    opjit_context_destroy(context);
}
END_TEST

START_TEST(keys_tell_functions_apart)
{
    opjit_context *context = test_context_create();
    opjit_custom_desc desc = unary_desc((void (*)(void))reverse);
    opjit_operator *ops[5];
    int user;

    if (!create(context, &desc, &ops[0]))
        exit(0);
    ck_assert(create(context, &desc, &ops[1]));
    desc.user = &user;
    ck_assert(create(context, &desc, &ops[2]));
    desc.user = NULL;
    desc.key = "2";
    desc.key_bytes = 1;
    ck_assert(create(context, &desc, &ops[3]));
    desc = unary_desc((void (*)(void))refuse);
    ck_assert(create(context, &desc, &ops[4]));
    for (int i = 1; i < 5; i++) {
        const rt_bytes *a = &ops[0]->key, *b = &ops[i]->key;
        ck_assert_int_eq(a->size == b->size && memcmp(a->data, b->data, a->size) == 0, i == 1);
    }
    for (int i = 0; i < 5; i++)
        opjit_operator_release(ops[i]);
    opjit_context_destroy(context);
}
END_TEST

/* --- memory ------------------------------------------------------------------------------------------------------- */

typedef struct failing {
    long live, countdown;
} failing;

static void *allocate(void *user, size_t size, size_t alignment)
{
    failing *f = user;

    if (f->countdown > 0 && --f->countdown == 0)
        return NULL;
    f->live++;
    return opjit_rt_default_allocator.allocate(NULL, size, alignment);
}

static void release(void *user, void *memory, size_t size)
{
    ((failing *)user)->live--;
    opjit_rt_default_allocator.release(NULL, memory, size);
}

/* Makes an operator and a graph of it with allocation n failing; returns whether there was no such allocation. */
static bool fails_at(opjit_context *context, failing *f, long n)
{
    const opjit_custom_desc desc = unary_desc((void (*)(void))reverse);
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    const long live = f->live;
    opjit_kernel *kernel = NULL;
    opjit_operator *op = NULL;
    opjit_error error = { 0 };
    opjit_status status;
    graph_case g;

    begin_graph(&g, context);
    options.flags = OPJIT_COMPILE_INTERPRET | OPJIT_COMPILE_NO_CACHE;
    f->countdown = n;
    status = opjit_custom_create(context, &desc, &op, &error);
    if (status == OPJIT_OK)
        status = opjit_compile_graph(context, &g.desc, &options, &kernel, &error);
    f->countdown = 0;
    ck_assert_msg(status == OPJIT_OK || status == OPJIT_OUT_OF_MEMORY, "%s", error.message);
    ck_assert_int_eq(status == OPJIT_OK, kernel != NULL);
    opjit_kernel_release(kernel);
    opjit_operator_release(op);
    graph_end(&g);
    ck_assert_int_eq(f->live, live);
    return status != OPJIT_OK;
}

START_TEST(without_memory)
{
    failing f = { 0, 0 };
    const opjit_allocator allocator = { &f, allocate, release };
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
    opjit_context *context;
    long n = 1;

    options.allocator = &allocator;
    ck_assert_int_eq(opjit_context_create(&options, &context, NULL), OPJIT_OK);
    if (have_ffi(context)) {
        while (fails_at(context, &f, n))
            n++;
        ck_assert_int_gt(n, 10);
    }
    opjit_context_destroy(context);
    ck_assert_int_eq(f.live, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fe.custom");
    TCase *tc = tcase_create("all");
    SRunner *runner;
    int failed;

    tcase_add_test(tc, wrong_descriptions_are_refused);
    tcase_add_test(tc, sums_of_sizes_are_refused_not_wrapped);
    tcase_add_test(tc, arguments_of_every_kind);
    tcase_add_test(tc, failures_end_the_call);
    tcase_add_test(tc, graphs_call_them_between_stages);
    tcase_add_test(tc, constants_and_late_fields);
    tcase_add_test(tc, keys_tell_functions_apart);
    tcase_add_test(tc, without_memory);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
