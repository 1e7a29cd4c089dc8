/* SPDX-License-Identifier: Apache-2.0 */
/* test_fe_rows.c - graphs whose operators all work on whole rows become one stage, with rows of scratch and no temp. */
#include <check.h>
#include <stdlib.h>

#include "tests/support/checker.h"
#include "tests/support/graph_case.h"

enum { N = 2048, PARTS_MAX = 9 };
typedef enum part { END, NORM, GELU, SOFTMAX, RESIDUAL } part;

static const struct {
    const char *name;
    part parts[PARTS_MAX + 1];
    uint32_t steps;
    uint64_t temps; /* bytes */
} graphs[] = {
    { "softmax", { SOFTMAX }, 1, 0 },
    { "layer norm, softmax", { NORM, SOFTMAX }, 1, 0 },
    { "layer norm, GELU, softmax", { NORM, GELU, SOFTMAX }, 1, 0 },
    { "layer norm of x and x, softmax", { NORM, RESIDUAL, SOFTMAX }, 1, 0 },
    { "three times: more loops than a stage has", { NORM, GELU, SOFTMAX, NORM, GELU, SOFTMAX, NORM, GELU, SOFTMAX }, 2,
      (uint64_t)N * N * 4 },
};
enum { GRAPHS = sizeof graphs / sizeof *graphs };

static uint32_t add_part(graph_case *g, part what, const DML_TENSOR_DESC *x)
{
    static const uint32_t axis = 1;
    const DML_MEAN_VARIANCE_NORMALIZATION1_OPERATOR_DESC norm = { x, NULL, NULL, x, 1, &axis, 1, 1e-5f, NULL };
    const DML_ACTIVATION_SOFTMAX1_OPERATOR_DESC softmax = { x, x, 1, &axis };
    const DML_ACTIVATION_GELU_OPERATOR_DESC gelu = { x, x };
    const DML_ELEMENT_WISE_ADD_OPERATOR_DESC sum = { x, x, x };
    switch (what) {
    case NORM: return graph_operator(g, DML_OPERATOR_MEAN_VARIANCE_NORMALIZATION1, &norm, "norm");
    case SOFTMAX: return graph_operator(g, DML_OPERATOR_ACTIVATION_SOFTMAX1, &softmax, "softmax");
    case GELU: return graph_operator(g, DML_OPERATOR_ACTIVATION_GELU, &gelu, "gelu");
    default: break;
    }
    const uint32_t node = graph_operator(g, DML_OPERATOR_ELEMENT_WISE_ADD, &sum, "residual");
    graph_input(g, 0, node, 1);
    return node;
}

static void check_steps(opjit_context *context, uint32_t number, const char *target)
{
    static const uint32_t sizes[] = { N, N };
    static graph_tensor x;
    graph_case g;
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    opjit_error error = { 0 };
    opjit_kernel *kernel = NULL;
    uint32_t last = 0;
    graph_tensor_set(&x, DML_TENSOR_DATA_TYPE_FLOAT32, 2, sizes, NULL, 0);
    graph_begin(&g, context, 16);
    for (uint32_t i = 0; graphs[number].parts[i] != END; i++) {
        const uint32_t node = add_part(&g, graphs[number].parts[i], &x.desc);
        if (i == 0)
            graph_input(&g, 0, node, 0);
        else
            graph_edge(&g, last, 0, node, 0);
        last = node;
    }
    graph_output(&g, last, 0, 0);
    options.flags = OPJIT_COMPILE_INTERPRET;
    options.target = target;
    ck_assert_msg(opjit_compile_graph(context, &g.desc, &options, &kernel, &error) == OPJIT_OK, "%s", error.message);
    ck_assert_int_eq(opjit_kernel_get_info(kernel, &info, NULL), OPJIT_OK);
    ck_assert_msg(info.meta->steps == graphs[number].steps && info.meta->shared_size == graphs[number].temps,
                  "%s, %s: %u steps and %llu bytes", graphs[number].name, target, info.meta->steps,
                  (unsigned long long)info.meta->shared_size);
    opjit_kernel_release(kernel);
    graph_end(&g);
}

START_TEST(one_stage)
{
    static const char *const targets[] = { "cpu:x86-64-v1", "cpu:x86-64-v3", "cpu:aarch64", "nvptx:sm_90" };
    opjit_context *context = test_context_create();
    for (uint32_t i = 0; i < sizeof targets / sizeof *targets; i++)
        check_steps(context, (uint32_t)_i, targets[i]);
    opjit_context_destroy(context);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fe.rows");
    TCase *tcase = tcase_create("rows");
    SRunner *runner = srunner_create(suite);
    int failed;

    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, one_stage, 0, GRAPHS);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
