/* SPDX-License-Identifier: Apache-2.0 */
/* test_ir_pass_refused.c - place refuses, with a reason, what it can't express as loops, and never miscompiles it; and
 * schedule needs a target. */
#include <check.h>
#include <string.h>

#include "ir/ir.h"

static const struct {
    const char *text, *message;
    opjit_status status;
    bool no_target;
} rows[] = {
    { "kernel @steps after fold { out %y: f32[8]\n yield %y[0:4:2] (%i) = f32 0x1p+0\n"
      " yield %y[1:4:2] (%j) = f32 0x0p+0 }",
      "pass place: output 1 is written in steps of 2; boxes of whole rows are placed", OPJIT_UNSUPPORTED, false },
    { "kernel @target { out %y: f32[8]\n yield %y (%i) = f32 0x1p+0 }",
      "pass schedule: no target is given, and schedule needs one", OPJIT_INVALID_ARGUMENT, true },
};

START_TEST(refused)
{
    ir_func f;
    rt_target target;
    opjit_error error = { 0 };
    ck_assert_msg(opjit_rt_target_parse("cpu:x86-64-v3", &target, &error) == OPJIT_OK, "%s", error.message);
    ck_assert_msg(opjit_ir_parse(rows[_i].text, strlen(rows[_i].text), &opjit_rt_default_allocator, &f, &error) ==
                      OPJIT_OK,
                  "%s", error.message);
    const ir_pass_env env = { .target = rows[_i].no_target ? NULL : &target };
    ck_assert_int_eq(opjit_ir_run_passes(&f, &env, IR_EXPANDED, &error), rows[_i].status);
    ck_assert_str_eq(error.message, rows[_i].message);
    opjit_ir_free(&f);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ir.pass_refused");
    TCase *tcase = tcase_create("refused");
    tcase_add_loop_test(tcase, refused, 0, sizeof rows / sizeof rows[0]);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
