/* SPDX-License-Identifier: Apache-2.0 */
/* test_fe_onnx.c - opjit/model.h on models that are written here, field by field: what is read, what becomes a
 * constant, what is refused and with which words.  What operators compute, conformance/onnx/models.py compares. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <opjit/model.h>
#include <opjit/reflect.h>

#include "runtime/base/base.h"
#include "tests/support/meter.h"
#include "tests/support/onnx_write.h"

/* y = (x + 1) reshaped to { n, -1 }, of x { n, 2, 3 }, with n out of Shape. */
static rt_bytes reshaping_graph(void)
{
    const float one = 1;
    const int64_t zero = 0, rest = -1;
    rt_bytes g = new_message();
    put_message(&g, 1, node("Add", "x", "one", "sum"));
    put_message(&g, 1, node("Shape", "x", NULL, "sizes"));
    put_message(&g, 1, node("Gather", "sizes", "zero", "n"));
    put_message(&g, 1, node("Concat", "n", "rest", "wanted"));
    put_message(&g, 1, node("Reshape", "sum", "wanted", "y"));
    put_message(&g, 5, initializer("one", FLOAT, 1, &one, sizeof one));
    put_message(&g, 5, initializer("zero", INT64, 1, &zero, sizeof zero));
    put_message(&g, 5, initializer("rest", INT64, 1, &rest, sizeof rest));
    put_message(&g, 11, port("x", FLOAT, "n 2 3"));
    put_message(&g, 12, port("y", FLOAT, "n 6"));
    return g;
}

static opjit_context *context;

static void setup(void)
{
    opjit_error error;
    ck_assert_msg(opjit_context_create(NULL, &context, &error) == OPJIT_OK, "%s", error.message);
}

static void teardown(void)
{
    opjit_context_destroy(context);
}

/* --- what works --------------------------------------------------------------------------------------------------- */

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

/* A FLOAT attribute: a number, or (reference not NULL) that of the function's attribute of that name. */
static rt_bytes float_attribute(const char *name, float value, const char *reference)
{
    rt_bytes a = new_message();
    put_text(&a, 1, name);
    if (reference == NULL) {
        put_varint(&a, 2 << 3 | 5);
        opjit_rt_bytes_append(&a, &value, sizeof value);
    } else {
        put_text(&a, 21, reference);
    }
    put_int(&a, 20, 1);
    return a;
}

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

/* --- what is refused ---------------------------------------------------------------------------------------------- */

/* The model is refused with that line. */
static void refuse(rt_bytes file, const opjit_model_options *options, opjit_status status, const char *message)
{
    opjit_model *model;
    opjit_error error;
    ck_assert_int_eq(opjit_model_read(context, file.data, file.size, options, &model, &error), status);
    ck_assert_ptr_null(model);
    ck_assert_str_eq(error.message, message);
    opjit_rt_bytes_free(&file);
}

/* --- weights ------------------------------------------------------------------------------------------------------ */

enum { WEIGHTS = 1 << 19, FLOAT16 = 10, DOUBLE = 11, UINT8 = 2, PLACES = 8 };

/* A tensor of WEIGHTS numbers i % 50, as raw bytes or in a field of their own. */
static rt_bytes weights(uint32_t type, uint32_t size, bool typed)
{
    uint8_t *const data = malloc((size_t)WEIGHTS * size);
    ck_assert_ptr_nonnull(data);
    for (uint32_t i = 0; i < WEIGHTS; i++) {
        const float single = (float)(i % 50);
        const double wide = i % 50;
        const int64_t integer = i % 50;
        const uint16_t half = opjit_float16_from_double(wide);
        memcpy(data + (size_t)i * size,
               type == FLOAT     ? (const void *)&single
               : type == DOUBLE  ? (const void *)&wide
               : type == FLOAT16 ? (const void *)&half
                                 : &integer, /* of UINT8 its lowest byte */
               size);
    }
    rt_bytes t = new_message();
    put_int(&t, 1, WEIGHTS);
    put_int(&t, 2, type);
    put_text(&t, 8, "w");
    put_data(&t, !typed ? 9 : type == FLOAT ? 4 : 10, data, (size_t)WEIGHTS * size);
    free(data);
    return t;
}

/* The file moved by so many bytes, behind a text that nobody reads. */
static rt_bytes moved(rt_bytes file, size_t by)
{
    rt_bytes out = new_message();
    char text[PLACES + 1] = "";
    memset(text, 'd', by);
    put_text(&out, 6, text);
    opjit_rt_bytes_append(&out, file.data, file.size);
    return out;
}

/* y = x + w, elements of `size` bytes; with reshape, of w through { 512, 1024 } and back. */
static rt_bytes sum_with_weights(uint32_t type, uint32_t size, bool typed, bool reshape)
{
    static const int64_t square[2] = { 512, -1 }, flat[1] = { -1 };
    rt_bytes g = new_message();
    if (reshape) {
        put_message(&g, 1, node("Reshape", "w", "square", "there"));
        put_message(&g, 1, node("Reshape", "there", "flat", "back"));
        put_message(&g, 5, initializer("square", INT64, 2, square, sizeof square));
        put_message(&g, 5, initializer("flat", INT64, 1, flat, sizeof flat));
    }
    put_message(&g, 1, node("Add", "x", reshape ? "back" : "w", "y"));
    put_message(&g, 5, weights(type, size, typed));
    put_message(&g, 11, port("x", type, "524288"));
    put_message(&g, 12, port("y", type, "524288"));
    return model_of(g);
}

/* Compiles the model of these bytes for the interpreter, and calls it. */
static void run_model(opjit_context *in, rt_bytes file, opjit_binding *bindings, uint32_t count, test_meter *meter,
                      size_t most)
{
    opjit_compile_options compile = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_call call = OPJIT_CALL_INIT;
    opjit_model *model;
    opjit_kernel *kernel;
    opjit_error error;

    compile.flags = OPJIT_COMPILE_INTERPRET;
    ck_assert_msg(opjit_model_read(in, file.data, file.size, NULL, &model, &error) == OPJIT_OK, "%s", error.message);
    ck_assert_msg(opjit_model_compile(model, &compile, &kernel, &error) == OPJIT_OK, "%s", error.message);
    if (meter != NULL)
        ck_assert_uint_le(meter->peak, most);
    call.bindings = bindings;
    call.binding_count = count;
    ck_assert_msg(opjit_kernel_call(kernel, &call, &error) == OPJIT_OK, "%s", error.message);
    opjit_kernel_release(kernel);
    opjit_model_close(model);
}

/* Raw weights and packed floats are read where the file has them, at whatever address that is. */
START_TEST(weights_anywhere)
{
    static const struct {
        uint32_t type, size;
        bool typed, reshape;
    } rows[] = {
        { FLOAT, 4, false, false },  { FLOAT, 4, true, false },    { FLOAT, 4, false, true },
        { DOUBLE, 8, false, false }, { DOUBLE, 8, true, false },   { FLOAT16, 2, false, false },
        { INT64, 8, false, true },   { UINT8, 1, false, false },
    };
    static _Alignas(64) uint8_t x[WEIGHTS * 8], y[WEIGHTS * 8];
    const uint32_t type = rows[_i].type, size = rows[_i].size;
    rt_bytes file = sum_with_weights(type, size, rows[_i].typed, rows[_i].reshape);
    opjit_binding bindings[2] = { { x, (uint64_t)WEIGHTS * size }, { y, (uint64_t)WEIGHTS * size } };

    for (size_t by = 0; by < PLACES; by++) {
        opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
        opjit_context *metered;
        test_meter meter;
        rt_bytes there = moved(file, by);
        size_t most = SIZE_MAX;
        test_meter_begin(&meter);
        options.allocator = &meter.allocator;
        ck_assert_int_eq(opjit_context_create(&options, &metered, NULL), OPJIT_OK);
#if defined(__x86_64__) || defined(__aarch64__)
        most = WEIGHTS; /* the least weights have as many bytes */
#endif
        memset(y, 0x5a, sizeof y);
        run_model(metered, there, bindings, 2, &meter, most);
        for (uint32_t i = 0; i < WEIGHTS; i++) { /* x is 0 */
            const float single = (float)(i % 50);
            const double wide = i % 50;
            const uint64_t integer = i % 50;
            const uint16_t half = opjit_float16_from_double(wide);
            const void *const expected = type == FLOAT     ? (const void *)&single
                                         : type == DOUBLE  ? (const void *)&wide
                                         : type == FLOAT16 ? (const void *)&half
                                                           : &integer;
            if (memcmp(y + (size_t)i * size, expected, size) != 0)
                ck_abort_msg("moved by %zu: element %u", by, i);
        }
        opjit_context_destroy(metered);
        ck_assert_uint_eq(meter.live, 0);
        opjit_rt_bytes_free(&there);
    }
    opjit_rt_bytes_free(&file);
}
END_TEST

/* Says of how many operators and constants the graph is that the model becomes, y of x; the file is freed. */
static void count_nodes(rt_bytes file, uint32_t out_counts[2])
{
    const DML_GRAPH_DESC *desc;
    opjit_model *model;
    opjit_error error;

    ck_assert_msg(opjit_model_read(context, file.data, file.size, NULL, &model, &error) == OPJIT_OK, "%s",
                  error.message);
    ck_assert_int_eq(opjit_graph_get_desc(opjit_model_graph(model), &desc, &error), OPJIT_OK);
    out_counts[0] = out_counts[1] = 0;
    for (uint32_t i = 0; i < desc->NodeCount; i++)
        out_counts[desc->Nodes[i].Type == DML_GRAPH_NODE_TYPE_CONSTANT]++;
    opjit_model_close(model);
    opjit_rt_bytes_free(&file);
}

/* Layers that share their weights read them through Identity: what is made of these is made once. */
START_TEST(weights_of_many_names)
{
    uint32_t counts[2];
    rt_bytes g = new_message();
    put_message(&g, 1, node("Identity", "w", NULL, "v"));
    put_message(&g, 1, node("Identity", "v", NULL, "u"));
    put_message(&g, 1, node("Add", "x", "w", "a"));
    put_message(&g, 1, node("Add", "a", "v", "b"));
    put_message(&g, 1, node("Add", "b", "u", "y"));
    put_message(&g, 5, weights(FLOAT, 4, false));
    put_message(&g, 11, port("x", FLOAT, "524288"));
    put_message(&g, 12, port("y", FLOAT, "524288"));
    count_nodes(model_of(g), counts);
    ck_assert_uint_eq(counts[0], 3);
    ck_assert_uint_eq(counts[1], 1);
}
END_TEST

/* Few numbers are computed while the model is read; weights, which many models store in another way, by the kernel. */
START_TEST(weights_are_left_to_the_kernel)
{
    static const struct {
        uint32_t elements, operators;
        const char *sizes;
    } rows[] = { { 4096, 1, "4096" }, { 4097, 2, "4097" }, { 65536, 2, "65536" } };
    static float numbers[65536];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint32_t counts[2];
        rt_bytes g = new_message();
        put_message(&g, 1, node("Neg", "w", NULL, "negative"));
        put_message(&g, 1, node("Add", "x", "negative", "y"));
        put_message(&g, 5, initializer("w", FLOAT, rows[i].elements, numbers, rows[i].elements * sizeof *numbers));
        put_message(&g, 11, port("x", FLOAT, rows[i].sizes));
        put_message(&g, 12, port("y", FLOAT, rows[i].sizes));
        count_nodes(model_of(g), counts);
        ck_assert_uint_eq(counts[0], rows[i].operators);
        ck_assert_uint_eq(counts[1], 1);
    }
}
END_TEST

static rt_bytes tensor_of(const char *name, const uint32_t *sizes, uint32_t rank, const float *data)
{
    rt_bytes t = new_message();
    size_t bytes = sizeof *data;
    for (uint32_t d = 0; d < rank; d++) {
        put_int(&t, 1, sizes[d]);
        bytes *= sizes[d];
    }
    put_int(&t, 2, FLOAT);
    put_text(&t, 8, name);
    put_data(&t, 9, data, bytes);
    return t;
}

/* BatchNormalization scales the weights of the convolution before it, wherever these lie. */
START_TEST(scaled_weights_anywhere)
{
    enum { OUT = 3, IN = 2 };
    static const uint32_t of_filter[] = { OUT, IN, 1, 1 }, of_each[] = { OUT };
    static const float filter[] = { 1, 2, 3, 4, 5, 6 }, scale[] = { 2, 4, 8 }, zeros[OUT], mean[] = { 1, 0, 2 },
                       variance[] = { 1, 1, 1 };
    static const char *const names[] = { "scale", "bias", "mean", "variance" };
    static const float *const each[] = { scale, zeros, mean, variance };
    rt_bytes g = new_message(), normalization = node("BatchNormalization", "c", "scale", "y");
    float x[] = { 10, 1 }, y[OUT];
    opjit_binding bindings[2] = { { x, sizeof x }, { y, sizeof y } };

    for (int i = 1; i < 4; i++)
        put_text(&normalization, 1, names[i]);
    put_message(&normalization, 5, float_attribute("epsilon", 0, NULL));
    put_message(&g, 1, node("Conv", "x", "filter", "c"));
    put_message(&g, 1, normalization);
    put_message(&g, 5, tensor_of("filter", of_filter, 4, filter));
    for (int i = 0; i < 4; i++)
        put_message(&g, 5, tensor_of(names[i], of_each, 1, each[i]));
    put_message(&g, 11, port("x", FLOAT, "1 2 1 1"));
    put_message(&g, 12, port("y", FLOAT, "1 3 1 1"));
    rt_bytes file = model_of(g);
    for (size_t by = 0; by < PLACES; by++) {
        rt_bytes there = moved(file, by);
        memset(y, 0x5a, sizeof y);
        run_model(context, there, bindings, 2, NULL, 0);
        for (int o = 0; o < OUT; o++)
            ck_assert_float_eq(y[o], (filter[2 * o] * x[0] + filter[2 * o + 1] * x[1] - mean[o]) * scale[o]);
        opjit_rt_bytes_free(&there);
    }
    opjit_rt_bytes_free(&file);
}
END_TEST

/* Hosts ask for sizes in their own words, and know by the fields that some are needed. */
START_TEST(open_sizes)
{
    rt_bytes file = model_of(reshaping_graph());
    opjit_model *model;
    opjit_error error;
    ck_assert_int_eq(opjit_model_read(context, file.data, file.size, NULL, &model, &error), OPJIT_UNSUPPORTED);
    ck_assert_str_eq(error.op, "input");
    ck_assert_str_eq(error.field, "\"x\"");
    ck_assert_str_eq(error.value, "unknown");
    ck_assert_int_eq(error.index, 0);
    opjit_rt_bytes_free(&file);
}
END_TEST

START_TEST(models_that_are_refused)
{
    opjit_model_options options = OPJIT_MODEL_OPTIONS_INIT;
    const opjit_model_dim other = { "batch", 1 };
    rt_bytes g;

    refuse(model_of(reshaping_graph()), NULL, OPJIT_UNSUPPORTED,
           "input \"x\": dimension \"n\" is not known: give its size");
    options.dims = &other;
    options.dim_count = 1;
    refuse(model_of(reshaping_graph()), &options, OPJIT_INVALID_ARGUMENT,
           "no input of the model has a dimension \"batch\"");
    g = new_message();
    put_message(&g, 1, node("Add", "x", "nothing", "y"));
    put_message(&g, 11, port("x", FLOAT, "6"));
    put_message(&g, 12, port("y", FLOAT, "6"));
    refuse(model_of(g), NULL, OPJIT_INVALID_ARGUMENT,
           "node 0 (Add): input 1: \"nothing\" is made by no node before it");
    g = new_message(); /* a circle */
    put_message(&g, 1, node("Add", "x", "y", "z"));
    put_message(&g, 1, node("Abs", "z", NULL, "y"));
    put_message(&g, 11, port("x", FLOAT, "6"));
    put_message(&g, 12, port("y", FLOAT, "6"));
    refuse(model_of(g), NULL, OPJIT_INVALID_ARGUMENT, "node 1 (Abs): input 0: \"z\" is made by no node before it");
    g = new_message();
    put_message(&g, 1, node("Frobnicate", "x", NULL, "y"));
    put_message(&g, 11, port("x", FLOAT, "6"));
    put_message(&g, 12, port("y", FLOAT, "6"));
    refuse(model_of(g), NULL, OPJIT_UNSUPPORTED, "node 0 (Frobnicate): there is no such operator");
    g = new_message();
    put_message(&g, 1, node("Add", "x", "w", "y"));
    put_message(&g, 5, initializer("w", FLOAT, 6, "12345678", 8));
    put_message(&g, 11, port("x", FLOAT, "6"));
    put_message(&g, 12, port("y", FLOAT, "6"));
    refuse(model_of(g), NULL, OPJIT_CORRUPT,
           "node 0 (Add): tensor \"w\": 2 elements are in the file, its sizes say 6");
    static const struct {
        const char *op, *message;
    } empty[] = { { "LRN", "output \"y\": a tensor without elements" },
                  { "GlobalLpPool",
                    "node 0 (GlobalLpPool): the size of the window along spatial dimension 0: 0, must be at least 1" },
                  { "Softmax", "output \"y\": a tensor without elements" },
                  { "Transpose", "output \"y\": a tensor without elements" } };
    for (size_t i = 0; i < sizeof empty / sizeof *empty; i++) {
        rt_bytes n = node(empty[i].op, "x", NULL, "y"), a = new_message();
        put_text(&a, 1, "size");
        put_int(&a, 3, 3);
        put_message(&n, 5, a);
        g = new_message();
        put_message(&g, 1, n);
        put_message(&g, 11, port("x", FLOAT, "2 3 0"));
        put_message(&g, 12, port("y", FLOAT, "2 3 0"));
        refuse(model_of(g), NULL, i == 1 ? OPJIT_INVALID_ARGUMENT : OPJIT_UNSUPPORTED, empty[i].message);
    }
}
END_TEST

/* A node with inputs x {2,3} and w {4}, INT64 numbers, and one attribute, of the kind that is asked for or of another:
 * each message says what it was and what is allowed. */
START_TEST(nodes_that_are_refused)
{
    enum { NONE, INT = 2, TEXT = 3, INTS = 7 };
    static const struct {
        const char *op, *second, *attribute;
        uint32_t kind;
        int64_t value;
        const char *message;
    } rows[] = {
        { "Softmax", NULL, "axis", TEXT, 0, "node 0 (Softmax): attribute axis is a text, must be an integer" },
        { "Elu", NULL, "alpha", INT, 1, "node 0 (Elu): attribute alpha is an integer, must be a float" },
        { "Gelu", NULL, "approximate", INT, 1, "node 0 (Gelu): attribute approximate is an integer, must be a text" },
        { "ReduceMax", NULL, "axes", INT, 1, "node 0 (ReduceMax): attribute axes is an integer, must be integers" },
        { "Softmax", NULL, "axis", INT, 2, "node 0 (Softmax): axis 2, must be -2 to 1" },
        { "Flatten", NULL, "axis", INT, -3, "node 0 (Flatten): attribute axis: -3, must be -2 to 2" },
        { "Reshape", "w", NULL, NONE, 0, "node 0 (Reshape): sizes 0 and 1 of input 1 are -1, one may be" },
        { "Reshape", "long", NULL, NONE, 0, "node 0 (Reshape): size 0 of input 1: 4294967296, must be -1 to 2^32 - 1" },
        { "MatMul", "x", NULL, NONE, 0,
          "node 0 (MatMul): input 0 has rows of 3 elements, input 1 columns of 2: must be equal" },
        { "Tile", "w", NULL, NONE, 0, "node 0 (Tile): 4 repeats, must be 2, one for each dimension" },
        { "TopK", NULL, "k", INT, 9, "node 0 (TopK): k: 9, must be 0 to 3" },
    };
    const int64_t w[4] = { -1, -1, 2, 3 }, too_long = INT64_C(1) << 32;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rt_bytes g = new_message(), n = node(rows[i].op, "x", rows[i].second, "y"), a = new_message();
        if (rows[i].attribute != NULL) {
            put_text(&a, 1, rows[i].attribute);
            put_int(&a, 3, (uint64_t)rows[i].value);
            put_int(&a, 20, rows[i].kind);
            put_data(&n, 5, a.data, a.size);
        }
        opjit_rt_bytes_free(&a);
        put_message(&g, 1, n);
        put_message(&g, 5, initializer("w", INT64, 4, w, sizeof w));
        put_message(&g, 5, initializer("long", INT64, 1, &too_long, sizeof too_long));
        put_message(&g, 11, port("x", FLOAT, "2 3"));
        put_message(&g, 12, port("y", FLOAT, "2 3"));
        refuse(model_of(g), NULL, i == sizeof rows / sizeof *rows - 1 ? OPJIT_UNSUPPORTED : OPJIT_INVALID_ARGUMENT,
               rows[i].message);
    }
}
END_TEST

/* Two nodes may not make one name, even if nobody reads it: which one would it be? */
START_TEST(names_made_twice)
{
    rt_bytes g = new_message();
    put_message(&g, 1, node("Relu", "x", NULL, "y"));
    put_message(&g, 1, node("Abs", "x", NULL, "y"));
    put_message(&g, 11, port("x", FLOAT, "6"));
    put_message(&g, 12, port("y", FLOAT, "6"));
    refuse(model_of(g), NULL, OPJIT_INVALID_ARGUMENT, "graph: \"y\" is made by node 0 and by node 1");
}
END_TEST

/* A tensor in another file: a place that is no number is refused, and not taken for 0. */
START_TEST(places_in_other_files)
{
    static const struct {
        const char *key, *value, *message;
    } rows[] = {
        { "offset", "-5", "tensor \"w\": external_data offset: \"-5\", must be a number of bytes" },
        { "offset", "", "tensor \"w\": external_data offset: \"\", must be a number of bytes" },
        { "length", "12x", "tensor \"w\": external_data length: \"12x\", must be a number of bytes" },
        { "length", "99999999999999999999",
          "tensor \"w\": external_data length: \"99999999999999999999\", must be a number of bytes" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rt_bytes g = new_message(), t = new_message(), entry = new_message();
        put_int(&t, 1, 6);
        put_int(&t, 2, FLOAT);
        put_text(&t, 8, "w");
        put_text(&entry, 1, rows[i].key);
        put_text(&entry, 2, rows[i].value);
        put_message(&t, 13, entry);
        put_int(&t, 14, 1);
        put_message(&g, 1, node("Add", "x", "w", "y"));
        put_message(&g, 5, t);
        put_message(&g, 11, port("x", FLOAT, "6"));
        put_message(&g, 12, port("y", FLOAT, "6"));
        refuse(model_of(g), NULL, OPJIT_CORRUPT, rows[i].message);
    }
}
END_TEST

/* y = Loop(M, cond, x) with a body whose condition is a name of it, and whose state is the input or its absolute
 * value. */
static rt_bytes loop_model(int64_t most, const char *condition, const char *state)
{
    rt_bytes g = new_message(), body = new_message(), a = new_message(), n = new_message();
    put_message(&body, 1, node("Abs", "v", NULL, "positive"));
    put_message(&body, 1, node("IsNaN", "v", NULL, "late"));
    put_message(&body, 11, port("round", INT64, ""));
    put_message(&body, 11, port("before", 9, ""));
    put_message(&body, 11, port("v", FLOAT, "1"));
    put_message(&body, 12, port(condition, 9, ""));
    put_message(&body, 12, port(state, FLOAT, "1"));
    put_text(&a, 1, "body");
    put_message(&a, 6, body);
    put_int(&a, 20, 5);
    put_text(&n, 1, "most");
    put_text(&n, 1, "");
    put_text(&n, 1, "x");
    put_text(&n, 2, "y");
    put_text(&n, 4, "Loop");
    put_message(&n, 5, a);
    put_message(&g, 1, n);
    put_message(&g, 5, initializer("most", INT64, 1, &most, sizeof most));
    put_message(&g, 11, port("x", FLOAT, "1"));
    put_message(&g, 12, port("y", FLOAT, "1"));
    return model_of(g);
}

START_TEST(loops_that_are_refused)
{
    opjit_model *model;
    opjit_error error;
    rt_bytes file = loop_model(20, "before", "positive");
    ck_assert_msg(opjit_model_read(context, file.data, file.size, NULL, &model, &error) == OPJIT_OK, "%s",
                  error.message);
    opjit_model_close(model);
    opjit_rt_bytes_free(&file);
    refuse(loop_model(20, "late", "positive"), NULL, OPJIT_UNSUPPORTED,
           "node 0 (Loop): a loop whose length is known at run time only");
    refuse(loop_model(INT64_MAX, "before", "v"), NULL, OPJIT_LIMIT, /* rounds without nodes */
           "node 0 (Loop): more than 1000000 nodes, with those of all rounds");
    refuse(loop_model(20, "before", "nothing"), NULL, OPJIT_INVALID_ARGUMENT,
           "node 0 (Loop): output \"nothing\" of body is made by no node");
}
END_TEST

/* y, all = Loop("", "", x), which goes on while x is no number, and keeps a value of 8 GiB of each round. */
START_TEST(loop_that_keeps_too_much)
{
    const int64_t sizes[1] = { INT64_C(1) << 31 };
    rt_bytes g = new_message(), body = new_message(), a = new_message(), n = new_message();
    put_message(&body, 1, node("Abs", "v", NULL, "positive"));
    put_message(&body, 1, node("IsNaN", "v", NULL, "on"));
    put_message(&body, 1, node("Expand", "positive", "sizes", "wide"));
    put_message(&body, 11, port("round", INT64, ""));
    put_message(&body, 11, port("before", 9, ""));
    put_message(&body, 11, port("v", FLOAT, "1"));
    put_message(&body, 12, port("on", 9, ""));
    put_message(&body, 12, port("positive", FLOAT, "1"));
    put_message(&body, 12, port("wide", FLOAT, "w"));
    put_text(&a, 1, "body");
    put_message(&a, 6, body);
    put_int(&a, 20, 5);
    put_text(&n, 1, "");
    put_text(&n, 1, "");
    put_text(&n, 1, "x");
    put_text(&n, 2, "y");
    put_text(&n, 2, "all");
    put_text(&n, 4, "Loop");
    put_message(&n, 5, a);
    put_message(&g, 1, n);
    put_message(&g, 5, initializer("sizes", INT64, 1, sizes, sizeof sizes));
    put_message(&g, 11, port("x", FLOAT, "1"));
    put_message(&g, 12, port("y", FLOAT, "1"));
    put_message(&g, 12, port("all", FLOAT, "rounds w"));
    const float x[1] = { NAN };
    const opjit_model_input given = {
        "x", NULL, x, sizeof x, 0, DML_TENSOR_DATA_TYPE_FLOAT32, OPJIT_MODEL_INPUT_OF_CALL, 0
    };
    opjit_compile_options compile = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_model_options options = OPJIT_MODEL_OPTIONS_INIT;
    compile.flags = OPJIT_COMPILE_INTERPRET;
    options.computing = &compile;
    options.inputs = &given;
    options.input_count = 1;
    refuse(model_of(g), &options, OPJIT_LIMIT,
           "node 0 (Loop): more than 4294967296 bytes of values that later nodes have yet to read, behind 0 computed "
           "ones");
}
END_TEST

/* Every beginning of a model, and every model with one byte changed, is refused or read; nothing is lost. */
START_TEST(damaged_models)
{
    rt_bytes whole = model_of(reshaping_graph());
    opjit_model_options options = OPJIT_MODEL_OPTIONS_INIT;
    const opjit_model_dim n = { "n", 4 };
    opjit_model *model;
    opjit_error error;

    options.dims = &n;
    options.dim_count = 1;
    for (size_t size = 0; size < whole.size; size++)
        ck_assert_int_ne(opjit_model_read(context, whole.data, size, &options, &model, &error), OPJIT_OK);
    for (size_t at = 0; at < whole.size; at++)
        for (uint32_t bit = 0; bit < 8; bit++) {
            whole.data[at] ^= (uint8_t)(1u << bit);
            if (opjit_model_read(context, whole.data, whole.size, &options, &model, &error) == OPJIT_OK)
                opjit_model_close(model);
            else
                ck_assert_uint_gt(strlen(error.message), 0);
            whole.data[at] ^= (uint8_t)(1u << bit);
        }
    opjit_rt_bytes_free(&whole);
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
    ck_assert_uint_gt(refused, 10);
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
    tcase_add_loop_test(t, weights_anywhere, 0, 8);
    tcase_add_test(t, weights_of_many_names);
    tcase_add_test(t, weights_are_left_to_the_kernel);
    tcase_add_test(t, scaled_weights_anywhere);
    tcase_add_test(t, open_sizes);
    tcase_add_test(t, models_that_are_refused);
    tcase_add_test(t, nodes_that_are_refused);
    tcase_add_test(t, names_made_twice);
    tcase_add_test(t, places_in_other_files);
    tcase_add_test(t, loops_that_are_refused);
    tcase_add_test(t, loop_that_keeps_too_much);
    tcase_add_test(t, damaged_models);
    tcase_add_test(t, operators_are_listed);
    suite_add_tcase(s, t);
    return s;
}

int main(void)
{
    SRunner *runner = srunner_create(suite());
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
