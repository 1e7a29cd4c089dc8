/* SPDX-License-Identifier: Apache-2.0 */
/* test_property_cumulative.c - random descriptors of CUMULATIVE_SUMMATION and CUMULATIVE_PRODUCT: any sizes, axis,
 * direction, types and layouts; whatever way the kernel is made and run, the output's memory is bit for bit the
 * reference's. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/reference/reference.h"
#include "tests/support/operator_case.h"

typedef struct cumulative_case {
    DML_OPERATOR_DESC op;
    DML_CUMULATIVE_SUMMATION_OPERATOR_DESC desc; /* CUMULATIVE_PRODUCT has the same fields */
    test_tensor input, output;
} cumulative_case;

/* --- one case ----------------------------------------------------------------------------------------------------- */
static void draw_case(test_random *r, DML_OPERATOR_TYPE type, cumulative_case *c)
{
    static const DML_TENSOR_DATA_TYPE types[] = { DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_DATA_TYPE_FLOAT16,
                                                  DML_TENSOR_DATA_TYPE_FLOAT64, DML_TENSOR_DATA_TYPE_INT32,
                                                  DML_TENSOR_DATA_TYPE_UINT64,  DML_TENSOR_DATA_TYPE_INT64,
                                                  DML_TENSOR_DATA_TYPE_UINT32 };
    memset(c, 0, sizeof *c);
    const DML_TENSOR_DATA_TYPE of = types[test_random_below(r, sizeof types / sizeof *types)];
    const uint32_t rank = 1 + (uint32_t)test_random_below(r, test_random_chance(r, 10) ? 8 : 4);
    test_tensor_link(&c->input, of, rank);
    test_tensor_link(&c->output, of, rank);
    test_tensor_random_sizes(r, &c->input, test_random_chance(r, 10) ? 12000 : 500);
    const bool rows = test_random_chance(r, 40); /* around the length of a round, or of several */
    for (uint32_t d = 0; rows && d + 1 < rank; d++)
        c->input.sizes[d] = 1 + (uint32_t)test_random_below(r, rank > 4 ? 2 : 3);
    if (rows)
        c->input.sizes[rank - 1] = 1 + (uint32_t)test_random_below(r, test_random_chance(r, 70) ? 40 : 300);
    memcpy(c->output.sizes, c->input.sizes, sizeof c->output.sizes);
    const uint32_t axis = rows ? rank - 1 : (uint32_t)test_random_below(r, rank);
    test_tensor_random_layout(r, &c->input, false);
    test_tensor_random_layout(r, &c->output, true);
    c->desc = (DML_CUMULATIVE_SUMMATION_OPERATOR_DESC){ &c->input.desc, &c->output.desc, axis,
                                                        (DML_AXIS_DIRECTION)test_random_below(r, 2),
                                                        (int32_t)test_random_below(r, 2) };
    c->op = (DML_OPERATOR_DESC){ type, &c->desc };
}

static void reference(const void *user, const void *const *inputs, void *out)
{
    const cumulative_case *c = user;
    ref_cumulative(&c->desc, c->op.Type == DML_OPERATOR_CUMULATIVE_PRODUCT, inputs[0], out);
}

START_TEST(random_descriptors)
{
    opjit_context *context = test_context_create();
    const test_cases cases = test_cases_init("property.cumulative", 150);
    const bool codegen = test_have_codegen(context);
    cumulative_case *c = malloc(sizeof *c);
    ck_assert_ptr_nonnull(c);
    for (uint64_t n = cases.first; n < cases.end; n++) {
        test_random r;
        test_random_init(&r, cases.seed, (uint64_t)_i, n);
        draw_case(&r, _i == 0 ? DML_OPERATOR_CUMULATIVE_SUMMATION : DML_OPERATOR_CUMULATIVE_PRODUCT, c);
        const operator_case drawn = { .op = &c->op,
                                      .inputs = { &c->input },
                                      .output = &c->output,
                                      .low = -5, /* near 1: products neither vanish nor overflow at once */
                                      .high = 7,
                                      .reference = reference,
                                      .user = c };
        operator_case_check(context, &drawn, &r, codegen, n);
    }
    free(c);
    opjit_context_destroy(context);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("property.cumulative");
    TCase *tcase = tcase_create("random descriptors");
    tcase_add_loop_test(tcase, random_descriptors, 0, 2);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
