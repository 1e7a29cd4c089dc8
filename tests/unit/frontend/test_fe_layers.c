/* SPDX-License-Identifier: Apache-2.0 */
/* test_fe_layers.c - equal layers of a graph share code: results are those of the interpreter at every level and ahead
 * of time, whatever the places of buffers, constants and intermediate results are, and more layers add little code. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include <opjit/artifact.h>

#include "tests/support/aot.h"
#include "tests/support/checker.h"
#include "tests/support/graph_case.h"
#include "tests/support/require.h"

enum { ROWS = 33, COLUMNS = 48, ELEMENTS = ROWS * COLUMNS, FEW = 4, MANY = 40 };

static float constants[MANY][ELEMENTS], x[ELEMENTS], y[2][ELEMENTS];
static const uint32_t sizes[2] = { ROWS, COLUMNS }, axes[1] = { 1 };

/* Softmax of x + c for as many constants c, one after the other, times c. */
static void build(graph_case *g, opjit_context *context, uint32_t layers)
{
    graph_tensor t;
    const DML_TENSOR_DESC *tensor = graph_tensor_set(&t, DML_TENSOR_DATA_TYPE_FLOAT32, 2, sizes, NULL, 0);
    const DML_ELEMENT_WISE_ADD_OPERATOR_DESC add = { tensor, tensor, tensor };
    const DML_ELEMENT_WISE_MULTIPLY_OPERATOR_DESC multiply = { tensor, tensor, tensor };
    const DML_ACTIVATION_SOFTMAX1_OPERATOR_DESC softmax = { tensor, tensor, 1, axes };
    uint32_t last = 0;
    graph_begin(g, context, 6 * layers);
    for (uint32_t i = 0; i < layers; i++) {
        const uint32_t constant = graph_constant(g, constants[i], sizeof constants[i], "c");
        const uint32_t sum = graph_operator(g, DML_OPERATOR_ELEMENT_WISE_ADD, &add, "add");
        const uint32_t soft = graph_operator(g, DML_OPERATOR_ACTIVATION_SOFTMAX1, &softmax, "softmax");
        const uint32_t product = graph_operator(g, DML_OPERATOR_ELEMENT_WISE_MULTIPLY, &multiply, "multiply");
        if (i == 0)
            graph_input(g, 0, sum, 0);
        else
            graph_edge(g, last, 0, sum, 0);
        graph_edge(g, constant, 0, sum, 1);
        graph_edge(g, sum, 0, soft, 0);
        graph_edge(g, soft, 0, product, 0);
        graph_edge(g, constant, 0, product, 1);
        last = product;
    }
    graph_output(g, last, 0, 0);
}

static void fill(void)
{
    for (uint32_t i = 0; i < ELEMENTS; i++) {
        x[i] = (float)(i % 13) / 4;
        for (uint32_t k = 0; k < MANY; k++)
            constants[k][i] = (float)((i * 7 + k * 5) % 17) / 8;
    }
}

static opjit_kernel *compile(opjit_context *context, uint32_t layers, opjit_level level, uint32_t flags)
{
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_kernel *kernel;
    opjit_error error = { 0 };
    graph_case g;
    build(&g, context, layers);
    options.level = level;
    options.flags = flags | OPJIT_COMPILE_NO_CACHE;
    ck_assert_msg(opjit_compile_graph(context, &g.desc, &options, &kernel, &error) == OPJIT_OK, "%s", error.message);
    graph_end(&g);
    return kernel;
}

static void run(const opjit_kernel *kernel, float *out)
{
    const opjit_binding bindings[] = { { x, sizeof x }, { out, sizeof y[0] } };
    opjit_call call = OPJIT_CALL_INIT;
    opjit_error error = { 0 };
    call.bindings = bindings;
    call.binding_count = 2;
    memset(out, 0, sizeof y[0]);
    ck_assert_msg(opjit_kernel_call(kernel, &call, &error) == OPJIT_OK, "%s", error.message);
}

static uint64_t code_bytes(const opjit_kernel *kernel)
{
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    ck_assert_int_eq(opjit_kernel_get_info(kernel, &info, NULL), OPJIT_OK);
    return info.code_bytes;
}

START_TEST(jit)
{
    static const opjit_level levels[] = { OPJIT_LEVEL_QUICK, OPJIT_LEVEL_PEAK };
    opjit_context *context = test_context_create();
    uint64_t bytes[2];
    fill();
    for (uint32_t i = 0; i < 2 && test_have_codegen(context); i++) {
        const uint32_t layers = i == 0 ? FEW : MANY;
        opjit_kernel *made = compile(context, layers, levels[_i], 0);
        opjit_kernel *oracle = compile(context, layers, levels[_i], OPJIT_COMPILE_INTERPRET);
        run(oracle, y[0]);
        run(made, y[1]);
        ck_assert_mem_eq(y[0], y[1], sizeof y[0]);
        bytes[i] = code_bytes(made);
        opjit_kernel_release(made);
        opjit_kernel_release(oracle);
        if (i == 1) /* ten times the layers: functions that call the same code */
            ck_assert_msg(bytes[1] < 5 * bytes[0], "%llu bytes, %llu", (unsigned long long)bytes[0],
                          (unsigned long long)bytes[1]);
    }
    opjit_context_destroy(context);
}
END_TEST

/* Two versions in one object, each with code of its own. */
static void make_library(opjit_context *context, const aot_folder *folder)
{
    opjit_artifact_options options = OPJIT_ARTIFACT_OPTIONS_INIT;
    opjit_compile_options compile_options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_artifact *artifact;
    opjit_error error = { 0 };
    graph_case g;
    const void *data;
    uint64_t bytes;
    options.targets = (const char *const[]){ "cpu:x86-64-v2", "cpu:x86-64-v1" };
    options.target_count = 2;
    compile_options.name = "layers";
    build(&g, context, MANY);
    ck_assert_msg(opjit_artifact_create(context, &options, &artifact, &error) == OPJIT_OK, "%s", error.message);
    ck_assert_msg(opjit_artifact_add_graph(artifact, &g.desc, &compile_options, &error) == OPJIT_OK, "%s",
                  error.message);
    ck_assert_msg(opjit_artifact_get(artifact, 0, OPJIT_ARTIFACT_SHARED, &data, &bytes, &error) == OPJIT_OK, "%s",
                  error.message);
    aot_write(folder, "liblayers", "so", data, bytes);
    opjit_artifact_destroy(artifact);
    graph_end(&g);
}

START_TEST(ahead_of_time)
{
    opjit_context *context = test_context_create();
    opjit_library *library;
    opjit_kernel *made;
    opjit_error error = { 0 };
    aot_folder folder;
    char path[128];
    fill();
    if (test_have_codegen(context)) {
        aot_folder_begin(&folder);
        make_library(context, &folder);
        snprintf(path, sizeof path, "%s/liblayers.so", folder.path);
        ck_assert_msg(opjit_library_open(context, path, &library, &error) == OPJIT_OK, "%s", error.message);
        ck_assert_msg(opjit_library_find(library, "layers", &made, &error) == OPJIT_OK, "%s", error.message);
        opjit_kernel *oracle = compile(context, MANY, OPJIT_LEVEL_QUICK, OPJIT_COMPILE_INTERPRET);
        run(oracle, y[0]);
        run(made, y[1]);
        ck_assert_mem_eq(y[0], y[1], sizeof y[0]);
        opjit_kernel_release(oracle);
        opjit_kernel_release(made);
        opjit_library_close(library);
        aot_folder_end(&folder);
    }
    opjit_context_destroy(context);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("fe.layers");
    TCase *t = tcase_create("layers");
    tcase_set_timeout(t, 300);
    tcase_add_loop_test(t, jit, 0, 2);
    tcase_add_test(t, ahead_of_time);
    suite_add_tcase(s, t);
    SRunner *runner = srunner_create(s);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
