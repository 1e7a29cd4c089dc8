/* SPDX-License-Identifier: Apache-2.0 */
/* test_rt_kernel_refused.c - what a call of a kernel refuses: bindings, versions and sizes of its structures, buffers
 * that overlap, values of parameters; and which variant serves buffers that are the same. */
#include <check.h>
#include <stdlib.h>

#include "tests/unit/runtime/kernel_call.h"

START_TEST(refuses_bindings)
{
    opjit_binding *b = bindings;
    s.buffers[1].align = 4;
    create(&interpreting);
    ck_assert_int_eq(opjit_kernel_call(NULL, &call, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_int_eq(opjit_kernel_call(kernel, NULL, &error), OPJIT_INVALID_ARGUMENT);
    call.binding_count = 3;
    EXPECT_REFUSED(OPJIT_INVALID_ARGUMENT, "call: 3 bindings given, 2 needed (1 inputs, 1 outputs)");
    call.binding_count = 2;
    call.bindings = NULL;
    EXPECT_REFUSED(OPJIT_INVALID_ARGUMENT, "call: bindings is NULL");
    call.bindings = bindings;
    call.reserved = 5;
    EXPECT_REFUSED(OPJIT_INVALID_ARGUMENT, "call: reserved is 5; allowed: 0");
    call.reserved = 0;
    call.param_count = 1;
    EXPECT_REFUSED(OPJIT_INVALID_ARGUMENT, "call: 1 parameters given, 0 needed");
    call.param_count = 0;
    b[0].data = NULL;
    EXPECT_REFUSED(OPJIT_INVALID_ARGUMENT, "binding 0 (InputTensor): data is NULL");
    b[0] = (opjit_binding){ in, 15 };
    EXPECT_REFUSED(OPJIT_INVALID_ARGUMENT, "binding 0 (InputTensor): 15 bytes given, 16 needed");
    b[0].bytes = 100; /* more is fine */
    b[1].data = out + 2;
    ck_assert_int_eq(opjit_kernel_call(kernel, &call, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_msg(strstr(error.message, "binding 1 (OutputTensor): data at 0x") == error.message, "%s", error.message);
    ck_assert_msg(strstr(error.message, "is not aligned to 4 bytes") != NULL, "%s", error.message);
    ck_assert_int_eq(hook.calls, 0);
    b[1].data = out + 4;
    ck_assert_int_eq(opjit_kernel_call(kernel, &call, &error), OPJIT_OK);
}
END_TEST

START_TEST(call_sizes)
{
    struct {
        opjit_call call;
        uint64_t tail;
    } newer = { call, 0 };
    struct older { /* before there were streams; what lies behind is not looked at */
        uint32_t struct_size, binding_count;
        const opjit_binding *bindings;
        const uint64_t *params;
        uint32_t param_count, reserved;
        opjit_binding workspace;
        const opjit_executor *executor;
    } older[2] = { { sizeof(struct older), 2, bindings, NULL, 0, 0, { NULL, 0 }, NULL },
                   { 1, 1, NULL, NULL, 1, 1, { NULL, 0 }, NULL } };
    create(&interpreting);
    newer.call.struct_size = sizeof newer;
    ck_assert_int_eq(opjit_kernel_call(kernel, &newer.call, &error), OPJIT_OK);
    newer.tail = 1;
    ck_assert_int_eq(opjit_kernel_call(kernel, &newer.call, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_int_eq(opjit_kernel_call(kernel, (const opjit_call *)(const void *)older, &error), OPJIT_OK);
    ck_assert_int_eq(hook.calls, 2);
    older[0].struct_size = 10; /* half of a pointer */
    ck_assert_int_eq(opjit_kernel_call(kernel, (const opjit_call *)(const void *)older, &error),
                     OPJIT_INVALID_ARGUMENT);
    ck_assert_str_eq(error.message,
                     "opjit_call: struct_size 10 is that of no version; set it with the _INIT macro (80)");
    ck_assert_int_eq(hook.calls, 2);
}
END_TEST

/* --- overlap ------------------------------------------------------------------------------------------------------ */

static const struct {
    const char *name;
    int input, output; /* offsets into one memory; output reaches 16 bytes, input too */
    uint32_t alias;
    const char *message; /* NULL: runs */
} overlaps[] = {
    { "apart", 0, 32, 0, NULL },
    { "output follows", 0, 16, 0, NULL },
    { "output before", 16, 0, 0, NULL },
    { "same, allowed", 8, 8, 1, NULL },
    { "same, not allowed", 8, 8, 0, "OutputTensor overlaps InputTensor: this kernel can't work in place there" },
    { "last byte", 0, 15, 1,
      "OutputTensor overlaps InputTensor: only the very same memory may be shared, and only where alias_inputs says "
      "so" },
    { "first byte", 15, 0, 1,
      "OutputTensor overlaps InputTensor: only the very same memory may be shared, and only where alias_inputs says "
      "so" },
};

START_TEST(overlap_row)
{
    uint8_t one[64] = { 0 };
    s.buffers[1].alias_inputs = overlaps[_i].alias;
    create(&interpreting);
    bindings[0].data = one + overlaps[_i].input;
    bindings[1].data = one + overlaps[_i].output;
    const opjit_status status = opjit_kernel_check_overlaps(kernel, bindings, 2, &error);
    ck_assert_int_eq(status, overlaps[_i].message == NULL ? OPJIT_OK : OPJIT_INVALID_ARGUMENT);
    ck_assert_str_eq(error.message, overlaps[_i].message == NULL ? "" : overlaps[_i].message);
    if (status != OPJIT_OK) {
        ck_assert_int_eq(error.index, 1);
        ck_assert_str_eq(error.value, "InputTensor");
    }
    if (overlaps[_i].message == NULL) {
        ck_assert_msg(opjit_kernel_call(kernel, &call, &error) == OPJIT_OK, "%s: %s", overlaps[_i].name, error.message);
    } else {
        ck_assert_int_eq(opjit_kernel_call(kernel, &call, &error), OPJIT_INVALID_ARGUMENT);
        ck_assert_str_eq(error.message, overlaps[_i].message);
        ck_assert_int_eq(hook.calls, 0);
    }
}
END_TEST

START_TEST(outputs_overlap_each_other)
{
    s.source.inputs = 0;
    s.source.outputs = 2;
    s.buffers[0].role = OPJIT_BUFFER_OUTPUT;
    s.names[0] = "First";
    create(&interpreting);
    bindings[1].data = in + 15;
    ck_assert_int_eq(opjit_kernel_call(kernel, &call, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_msg(strstr(error.message, "First overlaps OutputTensor") == error.message, "%s", error.message);
    ck_assert_int_eq(opjit_kernel_check_overlaps(kernel, bindings, 2, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_int_eq(opjit_kernel_check_overlaps(kernel, bindings, 1, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_str_eq(error.field, "binding_count");
    bindings[1].data = in + 16;
    ck_assert_int_eq(opjit_kernel_call(kernel, &call, &error), OPJIT_OK);
    bindings[0].data = NULL; /* addresses of a plan */
    bindings[1].data = (void *)(uintptr_t)16;
    ck_assert_int_eq(opjit_kernel_check_overlaps(kernel, bindings, 2, &error), OPJIT_OK);
}
END_TEST

START_TEST(variants_by_alias)
{
    s.buffers[1].alias_inputs = 1;
    s.source.steps = 2;
    s.source.variants = 2;
    s.variants[0] = (opjit_variant_info){ 1, 1, 1 }; /* in place: step 1 */
    s.variants[1] = (opjit_variant_info){ 0, 0, 1 };
    create(&interpreting);
    ck_assert_int_eq(opjit_kernel_call(kernel, &call, &error), OPJIT_OK);
    ck_assert_uint_eq(hook.last_step, 0);
    bindings[1].data = in;
    ck_assert_int_eq(opjit_kernel_call(kernel, &call, &error), OPJIT_OK);
    ck_assert_uint_eq(hook.last_step, 1);
}
END_TEST

/* --- parameters --------------------------------------------------------------------------------------------------- */

static const struct {
    opjit_param_info info;
    uint64_t value;
    const char *message; /* NULL: fine */
} params[] = {
    { { DML_TENSOR_DATA_TYPE_INT32, 0, -3, 100 }, (uint64_t)-3, NULL },
    { { DML_TENSOR_DATA_TYPE_INT32, 0, -3, 100 }, 100, NULL },
    { { DML_TENSOR_DATA_TYPE_INT32, 0, -3, 100 }, 101, "parameter 0 (Begin): 101 is outside of -3 to 100 (INT32)" },
    { { DML_TENSOR_DATA_TYPE_INT32, 0, -3, 100 },
      (uint64_t)-4,
      "parameter 0 (Begin): -4 is outside of -3 to 100 (INT32)" },
    { { DML_TENSOR_DATA_TYPE_INT32, 0, INT32_MIN, INT32_MAX },
      UINT32_MAX, /* zero-extended where it should be by sign */
      "parameter 0 (Begin): 4294967295 is outside of -2147483648 to 2147483647 (INT32)" },
    { { DML_TENSOR_DATA_TYPE_UINT8, 0, 0, 0 }, 1, "parameter 0 (Begin): 1 is outside of 0 to 0 (UINT8)" },
    { { DML_TENSOR_DATA_TYPE_UINT64, 0, INT64_MIN, INT64_MAX }, UINT64_MAX, NULL },
    { { DML_TENSOR_DATA_TYPE_UINT64, 0, 0, INT64_MAX },
      UINT64_MAX,
      "parameter 0 (Begin): -1 is outside of 0 to 9223372036854775807 (UINT64)" },
    { { DML_TENSOR_DATA_TYPE_FLOAT32, 0, 0, 0 }, 0xff800000, NULL },
    { { DML_TENSOR_DATA_TYPE_FLOAT32, 0, 0, 0 },
      UINT64_C(0x100000000),
      "parameter 0 (Begin): 0x100000000 is no FLOAT32; allowed: the value's bits, zero-extended" },
    { { DML_TENSOR_DATA_TYPE_FLOAT16, 0, 0, 0 },
      0x10000,
      "parameter 0 (Begin): 0x10000 is no FLOAT16; allowed: the value's bits, zero-extended" },
    { { DML_TENSOR_DATA_TYPE_FLOAT64, 0, 0, 0 }, UINT64_MAX, NULL },
};

START_TEST(param_row)
{
    sample_use_param(&s);
    s.param = params[_i].info;
    create(&interpreting);
    call.params = &params[_i].value;
    call.param_count = 1;
    if (params[_i].message == NULL) {
        ck_assert_msg(opjit_kernel_call(kernel, &call, &error) == OPJIT_OK, "%s", error.message);
        expect_added((int)params[_i].value, in);
    } else {
        EXPECT_REFUSED(OPJIT_INVALID_ARGUMENT, params[_i].message);
    }
    call.params = NULL;
    ck_assert_int_eq(opjit_kernel_call(kernel, &call, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_str_eq(error.message, "call: params is NULL");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("rt.kernel.refused");
    TCase *tcase = tcase_create("refused");
    SRunner *runner = srunner_create(suite);
    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, refuses_bindings);
    tcase_add_test(tcase, call_sizes);
    tcase_add_loop_test(tcase, overlap_row, 0, sizeof overlaps / sizeof *overlaps);
    tcase_add_test(tcase, outputs_overlap_each_other);
    tcase_add_test(tcase, variants_by_alias);
    tcase_add_loop_test(tcase, param_row, 0, sizeof params / sizeof *params);
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
