/* SPDX-License-Identifier: Apache-2.0 */
/* test_fe_onnx.c - opjit/model.h on models that are written here, field by field: what is read, and what becomes a
 * constant.  What operators compute, conformance/onnx/models.py compares. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/frontend/onnx_models.h"

START_TEST(sizes_that_the_model_computes)
{
    rt_bytes file = model_of(reshaping_graph());
    const opjit_model_dim n = { "n", 4 };
    opjit_model_options options = OPJIT_MODEL_OPTIONS_INIT;
    opjit_model_port in = OPJIT_MODEL_PORT_INIT, out = OPJIT_MODEL_PORT_INIT;
    opjit_compile_options compile = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_call call = OPJIT_CALL_INIT;
    opjit_model *model;
    opjit_kernel *kernel;
    opjit_error error;
    float x[24], y[24];

    options.dims = &n;
    options.dim_count = 1;
    ck_assert_msg(opjit_model_read(context, file.data, file.size, &options, &model, &error) == OPJIT_OK, "%s",
                  error.message);
    ck_assert_uint_eq(opjit_model_input_count(model), 1);
    ck_assert_uint_eq(opjit_model_output_count(model), 1);
    ck_assert_int_eq(opjit_model_get_input(model, 0, &in, &error), OPJIT_OK);
    ck_assert_int_eq(opjit_model_get_output(model, 0, &out, &error), OPJIT_OK);
    ck_assert_str_eq(in.name, "x");
    ck_assert_int_eq(in.binding, 0);
    ck_assert_int_eq(out.binding, 1);
    ck_assert_uint_eq(out.rank, 2);
    ck_assert_uint_eq(out.sizes[0], 4);
    ck_assert_uint_eq(out.sizes[1], 6);
    for (int i = 0; i < 24; i++)
        x[i] = (float)i;
    compile.flags = OPJIT_COMPILE_INTERPRET;
    ck_assert_msg(opjit_model_compile(model, &compile, &kernel, &error) == OPJIT_OK, "%s", error.message);
    const opjit_binding bindings[2] = { { x, sizeof x }, { y, sizeof y } };
    call.bindings = bindings;
    call.binding_count = 2;
    ck_assert_msg(opjit_kernel_call(kernel, &call, &error) == OPJIT_OK, "%s", error.message);
    for (int i = 0; i < 24; i++)
        ck_assert_float_eq(y[i], (float)i + 1);
    opjit_kernel_release(kernel);
    opjit_model_close(model);
    opjit_rt_bytes_free(&file);
}
END_TEST

START_TEST(value_of_an_input)
{
    rt_bytes g = new_message();
    put_message(&g, 1, node("Reshape", "x", "sizes", "y"));
    put_message(&g, 11, port("x", FLOAT, "6"));
    put_message(&g, 11, port("sizes", INT64, "2"));
    put_message(&g, 12, port("y", FLOAT, "a b"));
    rt_bytes file = model_of(g);
    const int64_t sizes[2] = { 3, 2 };
    const opjit_model_input given = { "sizes", NULL, sizes, sizeof sizes, 0, DML_TENSOR_DATA_TYPE_INT64, 0, 0 };
    opjit_model_options options = OPJIT_MODEL_OPTIONS_INIT;
    opjit_model_port p = OPJIT_MODEL_PORT_INIT;
    opjit_model *model;
    opjit_error error;

    ck_assert_int_eq(opjit_model_read(context, file.data, file.size, NULL, &model, &error), OPJIT_UNSUPPORTED);
    ck_assert_ptr_null(model);
    ck_assert_str_eq(error.message,
                     "node 0 (Reshape): input 1 (\"sizes\") depends on values that are known at run time "
                     "only; it has to be known when the model is compiled");
    options.inputs = &given;
    options.input_count = 1;
    ck_assert_msg(opjit_model_read(context, file.data, file.size, &options, &model, &error) == OPJIT_OK, "%s",
                  error.message);
    ck_assert_int_eq(opjit_model_get_input(model, 1, &p, &error), OPJIT_OK);
    ck_assert_int_eq(p.binding, -1);
    ck_assert_int_eq(opjit_model_get_output(model, 0, &p, &error), OPJIT_OK);
    ck_assert_uint_eq(p.sizes[0], 3);
    opjit_model_close(model);
    opjit_rt_bytes_free(&file);
}
END_TEST

/* A line that says so where too many elements would have to be known, whose values may well be there. */
START_TEST(many_values_of_an_input)
{
    rt_bytes g = new_message();
    put_message(&g, 1, node("Tile", "x", "counts", "y"));
    put_message(&g, 11, port("x", FLOAT, "6"));
    put_message(&g, 11, port("counts", INT64, "4194305"));
    put_message(&g, 12, port("y", FLOAT, "a"));
    rt_bytes file = model_of(g);
    opjit_model *model;
    opjit_error error;

    ck_assert_int_eq(opjit_model_read(context, file.data, file.size, NULL, &model, &error), OPJIT_LIMIT);
    ck_assert_ptr_null(model);
    ck_assert_str_eq(error.message, "node 0 (Tile): input 1 (\"counts\") has 4194305 elements; at most 4194304 can be "
                                    "known when the model is compiled");
    opjit_rt_bytes_free(&file);
}
END_TEST

/* What has to be known is computed from the values that a call brings, and again for others. */
/* A branch OP(x): the attribute `name` of an If. */
static rt_bytes branch(const char *name, const char *op)
{
    rt_bytes a = new_message(), g = new_message();
    put_message(&g, 1, node(op, "x", NULL, name));
    put_message(&g, 12, port(name, FLOAT, "a b"));
    put_text(&a, 1, name);
    put_message(&a, 6, g);
    put_int(&a, 20, 5);
    return a;
}

/* A branch that does not fit is in nobody's way where the condition is known; else the refusal says what to give. */
START_TEST(branch_that_does_not_fit)
{
    enum { BOOL = 9 };
    rt_bytes g = new_message(), n = node("If", "yes", NULL, "y");
    put_message(&n, 5, branch("then_branch", "Relu"));
    put_message(&n, 5, branch("else_branch", "Det"));
    put_message(&g, 1, n);
    put_message(&g, 11, port("x", FLOAT, "2 3"));
    put_message(&g, 11, port("yes", BOOL, ""));
    put_message(&g, 12, port("y", FLOAT, "a b"));
    rt_bytes file = model_of(g);
    const uint8_t yes = 1;
    const opjit_model_input given = { "yes", NULL, &yes, sizeof yes, 0, DML_TENSOR_DATA_TYPE_UINT8, 0, 0 };
    opjit_model_options options = OPJIT_MODEL_OPTIONS_INIT;
    opjit_model *model;
    opjit_error error;

    ck_assert_int_ne(opjit_model_read(context, file.data, file.size, NULL, &model, &error), OPJIT_OK);
    ck_assert_str_eq(error.message,
                     "node 0 (If): input 0 (\"yes\") is known at run time only, so both branches are compiled: "
                     "else_branch: node 0 (Det): matrices of 2 rows and 3 columns, must be square");
    options.inputs = &given;
    options.input_count = 1;
    ck_assert_msg(opjit_model_read(context, file.data, file.size, &options, &model, &error) == OPJIT_OK, "%s",
                  error.message);
    opjit_model_close(model);
    opjit_rt_bytes_free(&file);
}
END_TEST

START_TEST(value_of_a_call)
{
    rt_bytes g = new_message();
    put_message(&g, 1, node("Add", "x", "x", "twice"));
    put_message(&g, 1, node("NonZero", "twice", NULL, "y"));
    put_message(&g, 11, port("x", FLOAT, "6"));
    put_message(&g, 12, port("y", INT64, "a b"));
    rt_bytes file = model_of(g);
    float x[6] = { 0, 3, 0, 0, -1, 2 };
    const opjit_model_input given = {
        "x", NULL, x, sizeof x, 0, DML_TENSOR_DATA_TYPE_FLOAT32, OPJIT_MODEL_INPUT_OF_CALL, 0
    };
    opjit_compile_options compile = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_model_options options = OPJIT_MODEL_OPTIONS_INIT;
    opjit_model_port p = OPJIT_MODEL_PORT_INIT;
    opjit_binding carried;
    opjit_model *model;
    opjit_error error;

    compile.flags = OPJIT_COMPILE_INTERPRET;
    options.computing = &compile;
    options.inputs = &given;
    options.input_count = 1;
    ck_assert_uint_eq(opjit_model_computed_count(NULL), 0);
    ck_assert_msg(opjit_model_read(context, file.data, file.size, &options, &model, &error) == OPJIT_OK, "%s",
                  error.message);
    ck_assert_uint_eq(opjit_model_computed_count(model), 1);
    ck_assert_uint_eq(opjit_model_carried_count(model), 0);
    ck_assert_int_eq(opjit_model_get_carried(model, 0, &carried, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_str_eq(error.message, "opjit_model_get_carried index: 0, must be below 0");
    ck_assert_int_eq(opjit_model_get_output(model, 0, &p, &error), OPJIT_OK);
    ck_assert_uint_eq(p.sizes[1], 3);
    x[1] = x[5];
    ck_assert_int_eq(opjit_model_compute(model, &error), OPJIT_UNSUPPORTED);
    ck_assert_str_eq(error.message, "a value that the model was read with is another for these inputs");
    x[1] = 3;
    ck_assert_int_eq(opjit_model_compute(model, &error), OPJIT_OK);
    opjit_model_close(model);
    memset(x, 0, sizeof x); /* none is not 0: an output of nothing, and nothing to call */
    ck_assert_msg(opjit_model_read(context, file.data, file.size, &options, &model, &error) == OPJIT_OK, "%s",
                  error.message);
    ck_assert_int_eq(opjit_model_get_output(model, 0, &p, &error), OPJIT_OK);
    ck_assert_uint_eq(p.sizes[1], 0);
    ck_assert_int_eq(p.binding, -1);
    ck_assert_int_eq(opjit_model_get_input(model, 0, &p, &error), OPJIT_OK);
    ck_assert_int_eq(p.binding, -1);
    opjit_model_close(model);
    opjit_rt_bytes_free(&file);
}
END_TEST

/* Outputs without elements have no binding where the option allows them, and the others have the first ones. */
START_TEST(outputs_of_nothing)
{
    static const char *const texts[] = { "2 3 0", "2 3 4" };
    opjit_model_options options = OPJIT_MODEL_OPTIONS_INIT;
    opjit_model_port p = OPJIT_MODEL_PORT_INIT;
    opjit_model *model;
    opjit_error error;
    for (uint32_t i = 0; i < 2; i++) {
        rt_bytes g = new_message();
        put_message(&g, 1, node("Abs", "x", NULL, "y"));
        put_message(&g, 1, node("Neg", "w", NULL, "z"));
        put_message(&g, 11, port("x", FLOAT, "2 3 0"));
        put_message(&g, 11, port("w", FLOAT, texts[i]));
        put_message(&g, 12, port("y", FLOAT, "2 3 0"));
        put_message(&g, 12, port("z", FLOAT, texts[i]));
        rt_bytes file = model_of(g);
        options.flags = OPJIT_MODEL_NO_CACHE;
        ck_assert_int_eq(opjit_model_read(context, file.data, file.size, &options, &model, &error), OPJIT_UNSUPPORTED);
        ck_assert_str_eq(error.message, "output \"y\": a tensor without elements");
        options.flags = OPJIT_MODEL_EMPTY_OUTPUTS;
        ck_assert_msg(opjit_model_read(context, file.data, file.size, &options, &model, &error) == OPJIT_OK, "%s",
                      error.message);
        for (uint32_t k = 0; k < 2; k++) {
            ck_assert_int_eq(opjit_model_get_output(model, k, &p, &error), OPJIT_OK);
            ck_assert_uint_eq(p.sizes[2], i == 1 && k == 1 ? 4 : 0);
            ck_assert_int_eq(p.binding, i == 1 && k == 1 ? 1 : -1);
            ck_assert_int_eq(opjit_model_get_input(model, k, &p, &error), OPJIT_OK);
            ck_assert_int_eq(p.binding, i == 1 && k == 1 ? 0 : -1);
        }
        opjit_model_close(model);
        opjit_rt_bytes_free(&file);
    }
}
END_TEST

/* What was computed on the way to a value is not computed again: the kernel reads it. */
START_TEST(carried_to_the_next_part)
{
    rt_bytes g = new_message();
    put_message(&g, 1, node("Add", "x", "x", "twice"));
    put_message(&g, 1, node("Sign", "twice", NULL, "sign"));
    put_message(&g, 1, node("NonZero", "sign", NULL, "y"));
    put_message(&g, 1, node("Mul", "twice", "twice", "z"));
    put_message(&g, 11, port("x", FLOAT, "6"));
    put_message(&g, 12, port("y", INT64, "a b"));
    put_message(&g, 12, port("z", FLOAT, "6"));
    rt_bytes file = model_of(g);
    float x[6] = { 0, 3, 0, 0, -1, 2 }, z[6];
    int64_t y[3];
    const opjit_model_input given = {
        "x", NULL, x, sizeof x, 0, DML_TENSOR_DATA_TYPE_FLOAT32, OPJIT_MODEL_INPUT_OF_CALL, 0
    };
    opjit_compile_options compile = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_model_options options = OPJIT_MODEL_OPTIONS_INIT;
    opjit_model_port p = OPJIT_MODEL_PORT_INIT;
    opjit_kernel *kernel;
    opjit_model *model;
    opjit_error error;

    compile.flags = OPJIT_COMPILE_INTERPRET;
    options.computing = &compile;
    options.inputs = &given;
    options.input_count = 1;
    ck_assert_uint_eq(opjit_model_carried_count(NULL), 0);
    ck_assert_msg(opjit_model_read(context, file.data, file.size, &options, &model, &error) == OPJIT_OK, "%s",
                  error.message);
    ck_assert_uint_eq(opjit_model_carried_count(model), 1);
    ck_assert_int_eq(opjit_model_get_input(model, 0, &p, &error), OPJIT_OK);
    ck_assert_int_eq(p.binding, -1); /* "twice" alone is read */
    ck_assert_int_eq(opjit_model_get_output(model, 0, &p, &error), OPJIT_OK);
    ck_assert_int_eq(p.binding, 1);
    opjit_binding bindings[3] = { { NULL, 0 }, { y, sizeof y }, { z, sizeof z } };
    ck_assert_int_eq(opjit_model_get_carried(model, 0, &bindings[0], &error), OPJIT_OK);
    ck_assert_uint_eq(bindings[0].bytes, sizeof x);
    ck_assert_msg(opjit_model_compile(model, &compile, &kernel, &error) == OPJIT_OK, "%s", error.message);
    opjit_call call = OPJIT_CALL_INIT;
    call.bindings = bindings;
    call.binding_count = 3;
    x[1] = 5; /* another call, for which the same is not 0 */
    ck_assert_int_eq(opjit_model_compute(model, &error), OPJIT_OK);
    ck_assert_msg(opjit_kernel_call(kernel, &call, &error) == OPJIT_OK, "%s", error.message);
    ck_assert_int_eq(y[0], 1);
    ck_assert_int_eq(y[2], 5);
    ck_assert(z[1] == 100 && z[4] == 4 && z[5] == 16);
    opjit_kernel_release(kernel);
    opjit_model_close(model);
    opjit_rt_bytes_free(&file);
}
END_TEST

/* Two values that don't wait for each other end one part: one kernel makes what both are counted in. */
START_TEST(one_part_for_two_values)
{
    rt_bytes g = new_message();
    put_message(&g, 1, node("Relu", "x", NULL, "a"));
    put_message(&g, 1, node("NonZero", "a", NULL, "y"));
    put_message(&g, 1, node("Exp", "x", NULL, "e"));
    put_message(&g, 1, node("Floor", "e", NULL, "b"));
    put_message(&g, 1, node("NonZero", "b", NULL, "z"));
    put_message(&g, 11, port("x", FLOAT, "6"));
    put_message(&g, 12, port("y", INT64, "a b"));
    put_message(&g, 12, port("z", INT64, "a c"));
    rt_bytes file = model_of(g);
    const float x[6] = { 0, 3, 0, 0, -1, 2 };
    const opjit_model_input given = {
        "x", NULL, x, sizeof x, 0, DML_TENSOR_DATA_TYPE_FLOAT32, OPJIT_MODEL_INPUT_OF_CALL, 0
    };
    opjit_compile_options compile = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_model_options options = OPJIT_MODEL_OPTIONS_INIT;
    opjit_cache_stats before = OPJIT_CACHE_STATS_INIT, after = OPJIT_CACHE_STATS_INIT;
    opjit_model_port p = OPJIT_MODEL_PORT_INIT;
    opjit_model *model;
    opjit_error error;

    compile.flags = OPJIT_COMPILE_INTERPRET;
    options.computing = &compile;
    options.inputs = &given;
    options.input_count = 1;
    ck_assert_int_eq(opjit_cache_get_stats(context, &before, &error), OPJIT_OK);
    ck_assert_msg(opjit_model_read(context, file.data, file.size, &options, &model, &error) == OPJIT_OK, "%s",
                  error.message);
    ck_assert_int_eq(opjit_cache_get_stats(context, &after, &error), OPJIT_OK);
    ck_assert_uint_eq(after.compiles, before.compiles + 1);
    ck_assert_uint_eq(opjit_model_computed_count(model), 2);
    ck_assert_int_eq(opjit_model_get_output(model, 0, &p, &error), OPJIT_OK);
    ck_assert_uint_eq(p.sizes[1], 2);
    ck_assert_int_eq(opjit_model_get_output(model, 1, &p, &error), OPJIT_OK);
    ck_assert_uint_eq(p.sizes[1], 5);
    opjit_model_close(model);
    opjit_rt_bytes_free(&file);
}
END_TEST

/* A function y = OP(x) with one attribute; inner's is that of the function's own attribute "own". */
static rt_bytes function(const char *name, const char *domain, const char *op, const char *op_domain, const char *inner)
{
    rt_bytes f = new_message(), n = node(op, "x", NULL, "y"), opset = new_message();
    put_message(&n, 5, float_attribute(inner, 0, "own"));
    put_text(&n, 7, op_domain);
    put_text(&f, 1, name);
    put_text(&f, 4, "x");
    put_text(&f, 5, "y");
    put_text(&f, 6, "own");
    put_message(&f, 7, n);
    put_int(&opset, 2, 17);
    put_message(&f, 9, opset);
    put_text(&f, 10, domain);
    return f;
}

/* An attribute of a node goes down through two functions; a third one has a name of theirs, in another domain. */
START_TEST(attributes_through_functions)
{
    rt_bytes g = new_message(), n = node("Outer", "x", NULL, "y");
    put_message(&n, 5, float_attribute("own", 0.25f, NULL));
    put_text(&n, 7, "local");
    put_message(&g, 1, n);
    put_message(&g, 11, port("x", FLOAT, "2"));
    put_message(&g, 12, port("y", FLOAT, "2"));
    rt_bytes file = model_of(g);
    put_message(&file, 25, function("Inner", "other", "ThresholdedRelu", "", "alpha"));
    put_message(&file, 25, function("Inner", "local", "LeakyRelu", "", "alpha"));
    put_message(&file, 25, function("Outer", "local", "Inner", "local", "own"));
    opjit_compile_options compile = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_call call = OPJIT_CALL_INIT;
    opjit_model *model;
    opjit_kernel *kernel;
    opjit_error error;
    float x[2] = { -4, 3 }, y[2];

    ck_assert_msg(opjit_model_read(context, file.data, file.size, NULL, &model, &error) == OPJIT_OK, "%s",
                  error.message);
    compile.flags = OPJIT_COMPILE_INTERPRET;
    ck_assert_msg(opjit_model_compile(model, &compile, &kernel, &error) == OPJIT_OK, "%s", error.message);
    const opjit_binding bindings[2] = { { x, sizeof x }, { y, sizeof y } };
    call.bindings = bindings;
    call.binding_count = 2;
    ck_assert_msg(opjit_kernel_call(kernel, &call, &error) == OPJIT_OK, "%s", error.message);
    ck_assert_float_eq(y[0], -1);
    ck_assert_float_eq(y[1], 3);
    opjit_kernel_release(kernel);
    opjit_model_close(model);
    opjit_rt_bytes_free(&file);
}
END_TEST

START_TEST(operators_are_listed)
{
    opjit_model_operator o = OPJIT_MODEL_OPERATOR_INIT;
    opjit_error error;
    uint32_t taken = 0, refused = 0;
    for (uint32_t i = 0; opjit_model_get_operator(i, &o, &error) == OPJIT_OK; i++) {
        ck_assert_uint_gt(strlen(o.name), 0);
        ck_assert_uint_gt(strlen(o.text), 0);
        taken += o.is_taken;
        refused += !o.is_taken;
    }
    ck_assert_uint_gt(taken, 130);
    ck_assert_uint_gt(refused, 5);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("fe.onnx");
    TCase *t = tcase_create("models");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, sizes_that_the_model_computes);
    tcase_add_test(t, value_of_an_input);
    tcase_add_test(t, many_values_of_an_input);
    tcase_add_test(t, branch_that_does_not_fit);
    tcase_add_test(t, value_of_a_call);
    tcase_add_test(t, outputs_of_nothing);
    tcase_add_test(t, carried_to_the_next_part);
    tcase_add_test(t, one_part_for_two_values);
    tcase_add_test(t, attributes_through_functions);
    tcase_add_test(t, operators_are_listed);
    suite_add_tcase(s, t);
    return s;
}

int main(void)
{
    return run_suite(suite());
}
