/* SPDX-License-Identifier: Apache-2.0 */
/* test_property_computed.c - random descriptors of the operators of support/computed.c: any sizes, types, layouts and
 * fields; whatever way the kernel is made and run, the output's memory is bit for bit the reference's. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/computed.h"

START_TEST(random_descriptors)
{
    const computed_row *row = &computed_rows[_i];
    const char *only = getenv("OPJIT_OPERATOR");
    if (only != NULL && strcmp(only, row->name) != 0)
        return;
    opjit_context *context = test_context_create();
    const test_cases cases = test_cases_init(row->name, 120);
    const bool codegen = test_have_codegen(context);
    computed_case *c = malloc(sizeof *c);
    ck_assert_ptr_nonnull(c);
    for (uint64_t n = cases.first; n < cases.end; n++) {
        test_random r;
        test_random_init(&r, cases.seed, (uint64_t)row->type, n);
        computed_case_random(&r, row, c);
        const operator_case drawn = computed_case_of(row, c);
        operator_case_check(context, &drawn, &r, codegen, n);
    }
    free(c);
    opjit_context_destroy(context);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("property.computed");
    TCase *tcase = tcase_create("random descriptors");
    tcase_add_loop_test(tcase, random_descriptors, 0, (int)computed_row_count);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
