/* SPDX-License-Identifier: Apache-2.0 */
/* test_fe_build_refused.c - what the graph builder refuses and in which words: the first error stays with the graph. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include <opjit/graph_ops.h>

#include "tests/support/require.h"

#define F32 DML_TENSOR_DATA_TYPE_FLOAT32
#define U8 DML_TENSOR_DATA_TYPE_UINT8

static const uint32_t sizes_2_3[] = { 2, 3 }, sizes_4_3[] = { 4, 3 }, size_6[] = { 6 };

static opjit_graph *make_graph(opjit_context *context)
{
    opjit_graph *g = NULL;
    ck_assert_int_eq(opjit_graph_create(context, &g, NULL), OPJIT_OK);
    return g;
}

static opjit_tensor input(opjit_graph *g, const uint32_t *sizes)
{
    return opjit_graph_input(g, NULL, F32, 2, sizes);
}

/* --- refusals ----------------------------------------------------------------------------------------------------- */

static void unlike_sizes(opjit_graph *g)
{
    opjit_graph_add(g, input(g, sizes_2_3), input(g, sizes_4_3));
}
static void unlike_types(opjit_graph *g)
{
    opjit_graph_add(g, input(g, sizes_2_3), opjit_graph_input(g, NULL, DML_TENSOR_DATA_TYPE_FLOAT16, 2, sizes_2_3));
}
static void unlike_ranks_reduce(opjit_graph *g)
{
    opjit_graph_reduce_sum(g, input(g, sizes_2_3), 2);
}
static void wrong_type(opjit_graph *g)
{
    opjit_graph_exp(g, opjit_graph_input(g, NULL, U8, 2, sizes_2_3));
}
static void no_type(opjit_graph *g)
{
    opjit_graph_op1(g, DML_OPERATOR_CAST, input(g, sizes_2_3));
}
static void no_sizes(opjit_graph *g)
{
    const DML_DIAGONAL_MATRIX_OPERATOR_DESC desc = { NULL, 0, 1.0f };
    opjit_graph_op(g, DML_OPERATOR_DIAGONAL_MATRIX, &desc, NULL, 0);
}
static void absent_input(opjit_graph *g)
{
    opjit_graph_add(g, input(g, sizes_2_3), (opjit_tensor){ 0, 0 });
}
static void too_many_inputs(opjit_graph *g)
{
    const opjit_tensor x = input(g, sizes_2_3), inputs[] = { x, x };
    opjit_graph_op(g, DML_OPERATOR_ELEMENT_WISE_ABS, NULL, inputs, 2);
}
static void absent_array(opjit_graph *g)
{
    const opjit_tensor x = input(g, sizes_2_3);
    const DML_TILE_OPERATOR_DESC desc = { NULL, NULL, 2, NULL };
    opjit_graph_op(g, DML_OPERATOR_TILE, &desc, &x, 1);
}
static void short_array(opjit_graph *g)
{
    const uint32_t one = 1;
    opjit_graph_tile(g, input(g, sizes_2_3), 1, &one);
}
static void too_large(opjit_graph *g)
{
    const uint32_t repeats[] = { UINT32_MAX, 1 };
    opjit_graph_tile(g, input(g, sizes_2_3), 2, repeats);
}
static void no_joined(opjit_graph *g)
{
    opjit_graph_join(g, NULL, 0, 0);
}
static void unknown_operator(opjit_graph *g)
{
    opjit_graph_op1(g, (DML_OPERATOR_TYPE)178, input(g, sizes_2_3));
}
static void odd_split(opjit_graph *g)
{
    opjit_tensor parts[2];
    opjit_graph_split(g, input(g, sizes_2_3), 1, 2, parts);
    ck_assert_uint_eq(parts[0].index, 0);
}
static void other_graph(opjit_graph *g)
{
    const opjit_tensor x = input(g, sizes_2_3), foreign = { x.graph + 1, x.index };
    opjit_graph_add(g, x, foreign);
}
static void bad_input(opjit_graph *g)
{
    const uint32_t sizes[] = { 2, 0 };
    opjit_graph_input(g, "scores", F32, 2, sizes);
}
static void bad_reshape(opjit_graph *g)
{
    const uint32_t sizes[] = { 4, 2 };
    opjit_graph_reshape(g, input(g, sizes_2_3), 2, sizes);
}
static void bad_divisor(opjit_graph *g)
{
    const uint32_t sizes[] = { 4, 0 };
    opjit_graph_reshape(g, input(g, sizes_2_3), 2, sizes);
}
static void bad_axes(opjit_graph *g)
{
    const uint32_t axes[] = { 1, 1 };
    opjit_graph_transpose(g, input(g, sizes_2_3), axes);
}
static void bad_broadcast(opjit_graph *g)
{
    opjit_graph_broadcast(g, input(g, sizes_2_3), 2, sizes_4_3);
}
static void huge_broadcast(opjit_graph *g)
{
    const uint32_t one[] = { 1, 1 }, sizes[] = { 65536, 65536, 65536, 65536 }, open[] = { 0 };
    opjit_graph_reshape(g, opjit_graph_broadcast(g, input(g, one), 4, sizes), 1, open);
}
static void bad_slice(opjit_graph *g)
{
    const uint32_t zeros[] = { 0, 0 };
    opjit_graph_slice(g, input(g, sizes_2_3), zeros, sizes_4_3, NULL);
}
static void bad_scalar(opjit_graph *g)
{
    opjit_graph_scalar(g, U8, 256);
}
static void bad_constant(opjit_graph *g)
{
    const float data[5] = { 0 };
    opjit_graph_constant(g, F32, 2, sizes_2_3, data, sizeof data, 0);
}
static void no_output(opjit_graph *g)
{
    input(g, sizes_2_3);
}
static void named_input(opjit_graph *g)
{
    opjit_graph_name(g, input(g, sizes_2_3), "x");
}

static const struct {
    const char *name;
    void (*build)(opjit_graph *g);
    opjit_status status;
    const char *message;
    const char *place; /* op, field, index and value of the error */
} refused[] = {
    { "sizes", unlike_sizes, OPJIT_INVALID_ARGUMENT,
      "ELEMENT_WISE_ADD ATensor.Sizes[0]: 2, must be 4 as OutputTensor.Sizes[0]",
      "ELEMENT_WISE_ADD, ATensor.Sizes, 0, 2" },
    { "types", unlike_types, OPJIT_INVALID_ARGUMENT,
      "ELEMENT_WISE_ADD BTensor.DataType: FLOAT16, must be FLOAT32 as OutputTensor.DataType",
      "ELEMENT_WISE_ADD, BTensor.DataType, -1, FLOAT16" },
    { "axis", unlike_ranks_reduce, OPJIT_INVALID_ARGUMENT, "REDUCE Axes[0]: 2, must be at most 1, the last axis",
      "REDUCE, Axes, 0, 2" },
    { "type", wrong_type, OPJIT_INVALID_ARGUMENT,
      "ELEMENT_WISE_EXP InputTensor.DataType: UINT8, must be FLOAT32, FLOAT16 or FLOAT64",
      "ELEMENT_WISE_EXP, InputTensor.DataType, -1, UINT8" },
    { "no type", no_type, OPJIT_INVALID_ARGUMENT,
      "CAST OutputTensor.DataType: UNKNOWN, must be given: it does not follow from the inputs",
      "CAST, OutputTensor.DataType, -1, UNKNOWN" },
    { "no sizes", no_sizes, OPJIT_INVALID_ARGUMENT,
      "DIAGONAL_MATRIX OutputTensor.DataType: UNKNOWN, must be given: it does not follow from the inputs",
      "DIAGONAL_MATRIX, OutputTensor.DataType, -1, UNKNOWN" },
    { "absent", absent_input, OPJIT_INVALID_ARGUMENT,
      "ELEMENT_WISE_ADD BTensor: a null handle, must be a tensor of the graph",
      "ELEMENT_WISE_ADD, BTensor, -1, a null handle" },
    { "too many", too_many_inputs, OPJIT_INVALID_ARGUMENT, "ELEMENT_WISE_ABS inputs: 2, must be at most 1",
      "ELEMENT_WISE_ABS, inputs, -1, 2" },
    { "absent array", absent_array, OPJIT_INVALID_ARGUMENT, "TILE Repeats: NULL, must be an array of 2",
      "TILE, Repeats, -1, NULL" },
    { "short array", short_array, OPJIT_INVALID_ARGUMENT,
      "TILE RepeatsCount: 1, must be 2 as InputTensor.DimensionCount", "TILE, RepeatsCount, -1, 1" },
    { "too large", too_large, OPJIT_INVALID_ARGUMENT,
      "TILE OutputTensor.Sizes[0]: 8589934590, must be at most 4294967295", "TILE, OutputTensor.Sizes, 0, 8589934590" },
    { "nothing to join", no_joined, OPJIT_INVALID_ARGUMENT, "JOIN InputTensors: 0 tensors, must be 1 to 1024",
      "JOIN, InputTensors, -1, 0" },
    { "operator", unknown_operator, OPJIT_INVALID_ARGUMENT,
      "operator type 178, must be a DML_OPERATOR_TYPE (1 to 177)", "DML_OPERATOR_DESC, Type, -1, 178" },
    { "split", odd_split, OPJIT_INVALID_ARGUMENT,
      "SPLIT InputTensor.Sizes[1]: 3, must be 2, the sum of OutputTensors' sizes on Axis",
      "SPLIT, InputTensor.Sizes, 1, 3" },
    { "other graph", other_graph, OPJIT_INVALID_ARGUMENT,
      "ELEMENT_WISE_ADD BTensor: handle 1 of another graph, must be a tensor of this one",
      "ELEMENT_WISE_ADD, BTensor, -1, handle 1 of another graph" },
    { "input", bad_input, OPJIT_INVALID_ARGUMENT, "graph_input scores.Sizes[1]: 0, must be at least 1",
      "graph_input, scores.Sizes, 1, 0" },
    { "reshape", bad_reshape, OPJIT_INVALID_ARGUMENT, "graph_reshape sizes: 8 elements, must be 6",
      "graph_reshape, sizes, -1, 8" },
    { "divisor", bad_divisor, OPJIT_INVALID_ARGUMENT, "graph_reshape sizes: 4 elements, must be a divisor of 6",
      "graph_reshape, sizes, -1, 4" },
    { "axes", bad_axes, OPJIT_INVALID_ARGUMENT, "graph_transpose axes[1]: 1, must be below 2 and there once",
      "graph_transpose, axes, 1, 1" },
    { "broadcast", bad_broadcast, OPJIT_INVALID_ARGUMENT, "graph_broadcast sizes[0]: 4, must be 2",
      "graph_broadcast, sizes, 0, 4" },
    { "huge broadcast", huge_broadcast, OPJIT_INVALID_ARGUMENT,
      "graph_broadcast sizes[1]: 65536, makes more than 4294967295 elements, which is the limit",
      "graph_broadcast, sizes, 1, 65536" },
    { "slice", bad_slice, OPJIT_INVALID_ARGUMENT,
      "SLICE1 InputWindowSizes[0]: 4, must be at most 2, as many as InputTensor has there",
      "SLICE1, InputWindowSizes, 0, 4" },
    { "scalar", bad_scalar, OPJIT_INVALID_ARGUMENT, "FILL_VALUE_CONSTANT Value: 256, must be a whole number of UINT8",
      "FILL_VALUE_CONSTANT, Value, -1, 256" },
    { "constant", bad_constant, OPJIT_INVALID_ARGUMENT,
      "graph_constant bytes: 20, must be 24 for that type and those sizes", "graph_constant, bytes, -1, 20" },
    { "no output", no_output, OPJIT_INVALID_ARGUMENT, "graph: 0 outputs, must be at least 1", "graph, outputs, -1, 0" },
    { "name of an input", named_input, OPJIT_INVALID_ARGUMENT,
      "graph_name tensor: an input, must be an operator's or a constant", "graph_name, tensor, -1, an input" },
};
enum { REFUSED = sizeof refused / sizeof *refused };

/* The first error is what compiling says, whatever was called behind it. */
START_TEST(refusals)
{
    opjit_context *context = NULL;
    ck_assert_int_eq(opjit_context_create(NULL, &context, NULL), OPJIT_OK);
    opjit_graph *g = make_graph(context);
    opjit_kernel *kernel = NULL;
    const DML_GRAPH_DESC *desc = NULL;
    char place[256];
    opjit_error error;
    refused[_i].build(g);
    if (opjit_graph_status(g, NULL) != OPJIT_OK) { /* but for what only compiling can tell */
        const opjit_tensor late = opjit_graph_add(g, input(g, sizes_2_3), (opjit_tensor){ 7, 7 });
        ck_assert_uint_eq(late.index, 0);
        ck_assert_int_eq(opjit_graph_output(g, NULL, late), refused[_i].status);
        ck_assert_int_eq(opjit_graph_status(g, &error), refused[_i].status);
        ck_assert_str_eq(error.message, refused[_i].message);
    }
    ck_assert_int_eq(opjit_graph_compile(g, NULL, &kernel, &error), refused[_i].status);
    ck_assert_str_eq(error.message, refused[_i].message);
    snprintf(place, sizeof place, "%s, %s, %d, %s", error.op, error.field, (int)error.index, error.value);
    ck_assert_str_eq(place, refused[_i].place);
    ck_assert_int_eq(error.retry, OPJIT_RETRY_NEVER);
    test_require_place(&error);
    ck_assert_ptr_null(kernel);
    ck_assert_int_eq(opjit_graph_get_desc(g, &desc, NULL), refused[_i].status);
    ck_assert_ptr_null(desc);
    opjit_graph_destroy(g);
    opjit_context_destroy(context);
}
END_TEST

START_TEST(index_of_the_operator)
{
    opjit_context *context = NULL;
    ck_assert_int_eq(opjit_context_create(NULL, &context, NULL), OPJIT_OK);
    opjit_graph *g = make_graph(context);
    opjit_error error;
    const opjit_tensor x = input(g, sizes_2_3), y = opjit_graph_exp(g, x);
    opjit_graph_add(g, y, input(g, sizes_4_3));
    ck_assert_int_eq(opjit_graph_status(g, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_int_eq(error.node, 1);
    opjit_graph_destroy(g);
    opjit_context_destroy(context);
}
END_TEST

START_TEST(null_handles_of_objects)
{
    opjit_tensor_type type;
    opjit_graph *g = (opjit_graph *)&type;
    opjit_kernel *kernel = NULL;
    ck_assert_int_eq(opjit_graph_create(NULL, &g, NULL), OPJIT_INVALID_ARGUMENT);
    ck_assert_ptr_null(g);
    ck_assert_uint_eq(input(NULL, sizes_2_3).index, 0);
    ck_assert_uint_eq(opjit_graph_exp(NULL, (opjit_tensor){ 0, 0 }).index, 0);
    ck_assert_uint_eq(opjit_graph_reshape(NULL, (opjit_tensor){ 0, 0 }, 1, size_6).index, 0);
    ck_assert_uint_eq(opjit_graph_scalar(NULL, F32, 1).index, 0);
    ck_assert_int_eq(opjit_graph_output(NULL, NULL, (opjit_tensor){ 0, 0 }), OPJIT_INVALID_ARGUMENT);
    ck_assert_int_eq(opjit_graph_get_type(NULL, (opjit_tensor){ 0, 0 }, &type), OPJIT_INVALID_ARGUMENT);
    ck_assert_int_eq(opjit_graph_compile(NULL, NULL, &kernel, NULL), OPJIT_INVALID_ARGUMENT);
    opjit_graph_destroy(NULL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fe.build_refused");
    TCase *tcase = tcase_create("build_refused");
    SRunner *runner = srunner_create(suite);
    int failed;

    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, refusals, 0, REFUSED);
    tcase_add_test(tcase, index_of_the_operator);
    tcase_add_test(tcase, null_handles_of_objects);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
