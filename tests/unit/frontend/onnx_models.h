/* SPDX-License-Identifier: Apache-2.0 */
/* onnx_models.h - for tests of opjit/model.h: a context for each, models that several of them read, and calls. */
#ifndef OPJIT_TESTS_UNIT_FRONTEND_ONNX_MODELS_H
#define OPJIT_TESTS_UNIT_FRONTEND_ONNX_MODELS_H

#include <check.h>

#include <opjit/model.h>

#include "tests/support/meter.h"
#include "tests/support/onnx_write.h"

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

/* y = (x + 1) reshaped to { n, -1 }, of x { n, 2, 3 }, with n out of Shape. */
static inline rt_bytes reshaping_graph(void)
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

/* A FLOAT attribute: a number, or (reference not NULL) that of the function's attribute of that name. */
static inline rt_bytes float_attribute(const char *name, float value, const char *reference)
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

/* Compiles the model of these bytes for the interpreter, and calls it. */
static inline void run_model(opjit_context *in, rt_bytes file, opjit_binding *bindings, uint32_t count,
                             test_meter *meter, size_t most)
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

static inline int run_suite(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

#endif
