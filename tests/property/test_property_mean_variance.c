/* SPDX-License-Identifier: Apache-2.0 */
/* test_property_mean_variance.c - random descriptors of MEAN_VARIANCE_NORMALIZATION and MEAN_VARIANCE_NORMALIZATION1:
 * any sizes, axes, types and layouts, with and without Scale, Bias and an activation; whatever way the kernel is made
 * and run, the output's memory is bit for bit the reference's. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/reference/reference.h"
#include "tests/support/operator_case.h"

typedef struct mvn_case {
    DML_OPERATOR_DESC op, relu;
    DML_ACTIVATION_RELU_OPERATOR_DESC relu_desc;
    DML_MEAN_VARIANCE_NORMALIZATION_OPERATOR_DESC desc;
    DML_MEAN_VARIANCE_NORMALIZATION1_OPERATOR_DESC desc1; /* the same; for the reference in any case */
    test_tensor input, scale, bias, output;
    uint32_t axes[8];
    bool has_scale, has_bias;
} mvn_case;

/* --- one case ----------------------------------------------------------------------------------------------------- */
/* Scale or Bias: some sizes are 1. */
static void draw_factor(test_random *r, const mvn_case *c, test_tensor *t)
{
    test_tensor_link(t, c->input.buffer.DataType, c->input.buffer.DimensionCount);
    for (uint32_t d = 0; d < c->input.buffer.DimensionCount; d++)
        t->sizes[d] = test_random_chance(r, 50) ? 1 : c->input.sizes[d];
    test_tensor_random_layout(r, t, false);
}

static void draw_case(test_random *r, DML_OPERATOR_TYPE type, mvn_case *c)
{
    static const DML_TENSOR_DATA_TYPE types[] = { DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_DATA_TYPE_FLOAT16,
                                                  DML_TENSOR_DATA_TYPE_FLOAT64 };
    static const uint32_t planes[] = { 3, 2, 1 };
    memset(c, 0, sizeof *c);
    const bool old = type == DML_OPERATOR_MEAN_VARIANCE_NORMALIZATION;
    const DML_TENSOR_DATA_TYPE of = types[test_random_below(r, 3)];
    const uint32_t rank = old ? 4 : 1 + (uint32_t)test_random_below(r, test_random_chance(r, 10) ? 8 : 4);
    uint32_t count = 0;
    test_tensor_link(&c->input, of, rank);
    test_tensor_link(&c->output, of, rank);
    test_tensor_random_sizes(r, &c->input, test_random_chance(r, 4) ? 5000 : 200);
    memcpy(c->output.sizes, c->input.sizes, sizeof c->output.sizes);
    test_tensor_random_layout(r, &c->input, false);
    test_tensor_random_layout(r, &c->output, true);
    draw_factor(r, c, &c->scale);
    draw_factor(r, c, &c->bias);
    c->has_scale = test_random_chance(r, 60);
    c->has_bias = test_random_chance(r, 60);
    for (uint32_t d = rank; d-- > 0 && !old;)
        if (test_random_chance(r, 50) || (d == 0 && count == 0))
            c->axes[count++] = d;
    const bool across = test_random_chance(r, 50), divides = test_random_chance(r, 70);
    if (old)
        memcpy(c->axes, planes, (count = across ? 3 : 2) * sizeof *planes);
    c->relu_desc = (DML_ACTIVATION_RELU_OPERATOR_DESC){ 0 };
    c->relu = (DML_OPERATOR_DESC){ DML_OPERATOR_ACTIVATION_RELU, &c->relu_desc };
    c->desc1 = (DML_MEAN_VARIANCE_NORMALIZATION1_OPERATOR_DESC){ &c->input.desc,
                                                                 c->has_scale ? &c->scale.desc : NULL,
                                                                 c->has_bias ? &c->bias.desc : NULL,
                                                                 &c->output.desc,
                                                                 count,
                                                                 c->axes,
                                                                 divides,
                                                                 0.0009765625f,
                                                                 test_random_chance(r, 30) ? &c->relu : NULL };
    c->desc = (DML_MEAN_VARIANCE_NORMALIZATION_OPERATOR_DESC){
        c->desc1.InputTensor, c->desc1.ScaleTensor,    c->desc1.BiasTensor, c->desc1.OutputTensor, across, divides,
        c->desc1.Epsilon,     c->desc1.FusedActivation
    };
    c->op = (DML_OPERATOR_DESC){ type, old ? (const void *)&c->desc : &c->desc1 };
}

static void reference(const void *user, const void *const *inputs, void *out)
{
    const mvn_case *c = user;
    ref_mean_variance_normalization1(&c->desc1, inputs[0], inputs[1], inputs[2], out);
}

START_TEST(random_descriptors)
{
    opjit_context *context = test_context_create();
    const test_cases cases = test_cases_init("property.mean_variance", 80);
    const bool codegen = test_have_codegen(context);
    mvn_case *c = malloc(sizeof *c);
    ck_assert_ptr_nonnull(c);
    for (uint64_t n = cases.first; n < cases.end; n++) {
        test_random r;
        test_random_init(&r, cases.seed, (uint64_t)_i, n);
        draw_case(&r, _i == 0 ? DML_OPERATOR_MEAN_VARIANCE_NORMALIZATION : DML_OPERATOR_MEAN_VARIANCE_NORMALIZATION1,
                  c);
        const operator_case drawn = {
            .op = &c->op,
            .inputs = { &c->input, c->has_scale ? &c->scale : NULL, c->has_bias ? &c->bias : NULL },
            .output = &c->output,
            .low = -5,
            .high = 7,
            .reference = reference,
            .user = c,
        };
        operator_case_check(context, &drawn, &r, codegen, n);
    }
    free(c);
    opjit_context_destroy(context);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("property.mean_variance");
    TCase *tcase = tcase_create("random descriptors");
    tcase_add_loop_test(tcase, random_descriptors, 0, 2);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
