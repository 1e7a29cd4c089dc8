/* SPDX-License-Identifier: Apache-2.0 */
/* test_fe_symbols.c - OPJIT_DIM in descriptors: for each size the bits of the operators with numbers in its place; what
 * is wrong with symbols and dimensions is one line; builders whose names are the kernel's. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include <opjit/dynamic.h>
#include <opjit/graph_ops.h>
#include <opjit/opjit.h>

#include "tests/support/checker.h"

enum { MOST_FLOATS = 64 * 1024, MOST_TENSORS = 3 };

static opjit_context *context;
static opjit_error error;
static float in[2][MOST_FLOATS], out[2][MOST_FLOATS];

/* --- one operator ------------------------------------------------------------------------------------------------- */

/* A descriptor with all it points to: don't copy. */
typedef struct described {
    DML_OPERATOR_DESC op;
    uint32_t sizes[MOST_TENSORS][3], numbers[2][3], strides[3];
    int32_t steps[3];
    DML_BUFFER_TENSOR_DESC buffers[MOST_TENSORS];
    DML_TENSOR_DESC tensors[MOST_TENSORS];
    uint32_t inputs;
    union {
        DML_ACTIVATION_SOFTMAX1_OPERATOR_DESC softmax;
        DML_SLICE1_OPERATOR_DESC slice;
        DML_ELEMENT_WISE_ADD_OPERATOR_DESC add;
        DML_FILL_VALUE_SEQUENCE_OPERATOR_DESC sequence;
        DML_DIAGONAL_MATRIX1_OPERATOR_DESC band;
    } fields;
} described;

static const DML_TENSOR_DESC *tensor(described *d, uint32_t i, uint32_t a, uint32_t b, uint32_t c)
{
    const uint32_t sizes[3] = { a, b, c };
    memcpy(d->sizes[i], sizes, sizeof sizes);
    d->buffers[i] =
        (DML_BUFFER_TENSOR_DESC){ .DataType = DML_TENSOR_DATA_TYPE_FLOAT32, .DimensionCount = 3, .Sizes = d->sizes[i] };
    d->tensors[i] = (DML_TENSOR_DESC){ DML_TENSOR_TYPE_BUFFER, &d->buffers[i] };
    return &d->tensors[i];
}

static void softmax(described *d, uint32_t n, uint32_t m)
{
    d->numbers[0][0] = 2;
    d->fields.softmax =
        (DML_ACTIVATION_SOFTMAX1_OPERATOR_DESC){ tensor(d, 0, 3, m, n), tensor(d, 1, 3, m, n), 1, d->numbers[0] };
    d->op.Type = DML_OPERATOR_ACTIVATION_SOFTMAX1;
    d->inputs = 1;
}
static void slice(described *d, uint32_t n, uint32_t m)
{
    const uint32_t offsets[3] = { 1, 0, 2 }, sizes[3] = { 2, m, n };
    memcpy(d->numbers[0], offsets, sizeof offsets);
    memcpy(d->numbers[1], sizes, sizeof sizes);
    d->steps[0] = d->steps[1] = d->steps[2] = 1;
    d->fields.slice = (DML_SLICE1_OPERATOR_DESC){ tensor(d, 0, 3, m, 90), tensor(d, 1, 2, m, n), 3,
                                                  d->numbers[0],          d->numbers[1],         d->steps };
    d->op.Type = DML_OPERATOR_SLICE1;
    d->inputs = 1;
}
static void add_broadcast(described *d, uint32_t n, uint32_t m)
{
    d->fields.add =
        (DML_ELEMENT_WISE_ADD_OPERATOR_DESC){ tensor(d, 0, 2, m, n), tensor(d, 1, 2, m, n), tensor(d, 2, 2, m, n) };
    d->strides[2] = 1; /* one row for all */
    d->buffers[1].Strides = d->strides;
    d->buffers[1].TotalTensorSizeInBytes = 4; /* not looked at beside a symbol */
    d->op.Type = DML_OPERATOR_ELEMENT_WISE_ADD;
    d->inputs = 2;
}
static void sequence(described *d, uint32_t n, uint32_t m)
{
    d->fields.sequence = (DML_FILL_VALUE_SEQUENCE_OPERATOR_DESC){
        tensor(d, 0, 1, m, n), DML_TENSOR_DATA_TYPE_FLOAT32, { .Float32 = 3 }, { .Float32 = 0.25f }
    };
    d->op.Type = DML_OPERATOR_FILL_VALUE_SEQUENCE;
    d->inputs = 0;
}
static void band(described *d, uint32_t n, uint32_t m)
{
    (void)m;
    d->fields.band = (DML_DIAGONAL_MATRIX1_OPERATOR_DESC){
        tensor(d, 0, 2, n, n), tensor(d, 1, 2, n, n), DML_TENSOR_DATA_TYPE_FLOAT32, { .Float32 = 7 }, 1, INT32_MAX
    };
    d->op.Type = DML_OPERATOR_DIAGONAL_MATRIX1;
    d->inputs = 1;
}

typedef void (*describe_fn)(described *d, uint32_t n, uint32_t m);
static const describe_fn subjects[] = { softmax, slice, add_broadcast, sequence, band };

static const opjit_dim dims[] = { { "n", 1, 80, 40 }, { "m", 1, 60, 24 } };

static opjit_status compile(const described *d, const opjit_dim *with, uint32_t count, opjit_kernel **kernel)
{
    const DML_OPERATOR_DESC *const operators[] = { &d->op };
    const DML_OPERATOR_GRAPH_NODE_DESC node = { NULL, "it" };
    const DML_GRAPH_NODE_DESC nodes[] = { { DML_GRAPH_NODE_TYPE_OPERATOR, &node } };
    const DML_INPUT_GRAPH_EDGE_DESC inputs[] = { { 0, 0, 0, NULL }, { 1, 0, 1, NULL } };
    const DML_GRAPH_EDGE_DESC input_edges[] = { { DML_GRAPH_EDGE_TYPE_INPUT, &inputs[0] },
                                                { DML_GRAPH_EDGE_TYPE_INPUT, &inputs[1] } };
    const DML_OUTPUT_GRAPH_EDGE_DESC output = { 0, 0, 0, NULL };
    const DML_GRAPH_EDGE_DESC output_edge = { DML_GRAPH_EDGE_TYPE_OUTPUT, &output };
    const DML_GRAPH_DESC graph = { .InputCount = d->inputs,
                                   .OutputCount = 1,
                                   .NodeCount = 1,
                                   .Nodes = nodes,
                                   .InputEdgeCount = d->inputs,
                                   .InputEdges = input_edges,
                                   .OutputEdgeCount = 1,
                                   .OutputEdges = &output_edge };
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    options.flags = OPJIT_COMPILE_INTERPRET;
    return opjit_compile_dynamic_desc(context, with, count, &graph, operators, &options, kernel, &error);
}

static void call(const opjit_kernel *kernel, const uint64_t *sizes, uint32_t size_count, float *to)
{
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    opjit_binding bindings[MOST_TENSORS];
    opjit_call c = OPJIT_CALL_INIT;
    ck_assert_int_eq(opjit_kernel_get_info(kernel, &info, NULL), OPJIT_OK);
    for (uint32_t i = 0; i < info.inputs + info.outputs; i++) {
        uint64_t ignored[8], bytes;
        ck_assert_int_eq(opjit_kernel_sizes(kernel, sizes, size_count, i, ignored, &bytes, &error), OPJIT_OK);
        ck_assert_uint_le(bytes, sizeof in[0]);
        bindings[i] = (opjit_binding){ i < info.inputs ? in[i] : to, bytes };
    }
    c.bindings = bindings;
    c.binding_count = info.inputs + info.outputs;
    c.dims = sizes;
    c.dim_count = size_count;
    ck_assert_msg(opjit_kernel_call(kernel, &c, &error) == OPJIT_OK, "%s", error.message);
}

START_TEST(symbols_are_sizes)
{
    described symbolic = { .op = { .Desc = &symbolic.fields } };
    opjit_kernel *kernel;
    subjects[_i](&symbolic, OPJIT_DIM(0), OPJIT_DIM(1));
    ck_assert_msg(compile(&symbolic, dims, 2, &kernel) == OPJIT_OK, "%s", error.message);
    ck_assert_uint_eq(symbolic.sizes[symbolic.inputs][2], OPJIT_DIM(0)); /* the caller's descriptor stays */
    for (uint64_t n = 1; n <= 80; n += n < 4 ? 1 : 19) {
        const uint64_t sizes[2] = { n, 1 + n * 7 % 60 };
        opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
        described fixed = { .op = { .Desc = &fixed.fields } };
        opjit_operator *op;
        opjit_kernel *own;
        subjects[_i](&fixed, (uint32_t)sizes[0], (uint32_t)sizes[1]);
        fixed.buffers[1].TotalTensorSizeInBytes = 0;
        options.flags = OPJIT_COMPILE_INTERPRET | OPJIT_COMPILE_NO_CACHE;
        ck_assert_msg(opjit_operator_create(context, &fixed.op, &op, &error) == OPJIT_OK, "%s", error.message);
        ck_assert_msg(opjit_compile_operator(context, op, &options, &own, &error) == OPJIT_OK, "%s", error.message);
        memset(out, 0x5a, sizeof out);
        call(own, NULL, 0, out[0]);
        call(kernel, sizes, 2, out[1]);
        ck_assert_msg(memcmp(out[0], out[1], sizeof out[0]) == 0, "subject %d, n %d", _i, (int)n);
        opjit_kernel_release(own);
        opjit_operator_release(op);
    }
    opjit_kernel_release(kernel);
}
END_TEST

/* --- refusals ----------------------------------------------------------------------------------------------------- */

static void refused(const described *d, const opjit_dim *with, uint32_t count, const char *message)
{
    opjit_kernel *kernel = (opjit_kernel *)&error;
    ck_assert_int_eq(compile(d, with, count, &kernel), OPJIT_INVALID_ARGUMENT);
    ck_assert_ptr_null(kernel);
    ck_assert_str_eq(error.message, message);
}

START_TEST(what_is_wrong_is_said)
{
    described d = { .op = { .Desc = &d.fields } };
    const char *const unknown =
        "ACTIVATION_SOFTMAX1 InputTensor.Sizes[1]: OPJIT_DIM(1), must be a number, or one of the "
        "dimensions that opjit_compile_dynamic_desc is given";
    opjit_operator *op;
    opjit_graph *g;

    softmax(&d, OPJIT_DIM(0), OPJIT_DIM(1));
    refused(&d, dims, 1, unknown);
    ck_assert_uint_eq(error.node, 0);
    refused(&d, (const opjit_dim[]){ { "n", 9, 8, 8 }, dims[1] }, 2,
            "dims[0] (n): bounds 9 to 8, must be 0 to 2147483647 in order");
    refused(&d, (const opjit_dim[]){ dims[0], { "m", 1, 8, 9 } }, 2, "dims[1].typical (m): 9, must be 1 to 8");
    refused(&d, (const opjit_dim[]){ dims[0], { "n", 1, 8, 4 } }, 2,
            "dims[1].name: \"n\", is the name of dims[0], too");
    refused(&d, dims, 9, "dim_count: 9, must be 1 to 8");

    ck_assert_int_eq(opjit_operator_create(context, &d.op, &op, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(error.message, "ACTIVATION_SOFTMAX1 InputTensor.Sizes[1]: OPJIT_DIM(1), must be"));
    slice(&d, 4, 5);
    d.numbers[1][2] = OPJIT_DIM(3);
    ck_assert_int_eq(opjit_operator_create(context, &d.op, &op, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(error.message, "SLICE1 InputWindowSizes[2]: OPJIT_DIM(3), must be"));

    ck_assert_int_eq(opjit_graph_create(context, &g, &error), OPJIT_OK);
    opjit_graph_input(g, "x", DML_TENSOR_DATA_TYPE_FLOAT32, 1, (const uint32_t[]){ OPJIT_DIM(2) });
    ck_assert_int_eq(opjit_graph_status(g, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(error.message, "graph_input x.Sizes[0]: OPJIT_DIM(2), must be"));
    opjit_graph_destroy(g);
}
END_TEST

/* --- builders ----------------------------------------------------------------------------------------------------- */

static opjit_status build(void *user, const uint64_t *sizes, opjit_graph **graph, opjit_error *e)
{
    opjit_graph **const g = user;
    opjit_graph_destroy(*g);
    *g = NULL;
    const opjit_status status = opjit_graph_create(context, g, e);
    if (status != OPJIT_OK)
        return status;
    const opjit_tensor x =
        opjit_graph_input(*g, "x", DML_TENSOR_DATA_TYPE_FLOAT32, 2, (const uint32_t[]){ 5, (uint32_t)sizes[0] });
    opjit_graph_output(*g, "y", opjit_graph_softmax(*g, x, 1));
    *graph = *g;
    return OPJIT_OK;
}

static opjit_status build_nothing(void *user, const uint64_t *sizes, opjit_graph **graph, opjit_error *e)
{
    (void)user, (void)sizes, (void)graph, (void)e;
    return OPJIT_OK;
}

START_TEST(builders_name_buffers)
{
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    opjit_graph *g = NULL;
    opjit_kernel *kernel;
    options.flags = OPJIT_COMPILE_INTERPRET;
    ck_assert_msg(opjit_graph_compile_dynamic(context, dims, 1, build, &g, &options, &kernel, &error) == OPJIT_OK, "%s",
                  error.message);
    opjit_graph_destroy(g);
    ck_assert_int_eq(opjit_kernel_get_info(kernel, &info, NULL), OPJIT_OK);
    ck_assert_str_eq(opjit_kernel_buffer_name(&info, 0), "x");
    ck_assert_str_eq(opjit_kernel_buffer_name(&info, 1), "y");
    ck_assert_str_eq(opjit_kernel_dim_name(&info, 0), "n");
    call(kernel, (const uint64_t[]){ 33 }, 1, out[0]);
    opjit_kernel_release(kernel);
    ck_assert_int_eq(opjit_graph_compile_dynamic(context, dims, 1, build_nothing, NULL, &options, &kernel, &error),
                     OPJIT_INVALID_ARGUMENT);
    ck_assert_str_eq(error.message, "build: its graph is NULL");
}
END_TEST

static void setup(void)
{
    ck_assert_int_eq(opjit_context_create(NULL, &context, &error), OPJIT_OK);
    for (uint32_t i = 0; i < 2 * MOST_FLOATS; i++)
        in[i / MOST_FLOATS][i % MOST_FLOATS] = (float)(i * 2654435761u >> 23) / 64.0f - 4.0f;
}
static void teardown(void)
{
    opjit_context_destroy(context);
}

int main(void)
{
    Suite *suite = suite_create("fe.symbols");
    TCase *tcase = tcase_create("symbols");
    tcase_set_timeout(tcase, 300);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, symbols_are_sizes, 0, sizeof subjects / sizeof subjects[0]);
    tcase_add_test(tcase, what_is_wrong_is_said);
    tcase_add_test(tcase, builders_name_buffers);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
