/* SPDX-License-Identifier: Apache-2.0 */
/* test_fe_ptx.c - kernels for NVIDIA GPUs as artifacts: every kind of kernel for every architecture assembles without a
 * warning or a spill, and stores 16 bytes at a time; JSON says how to launch it; outputs for CPUs are refused.  What
 * kernels compute is tested by grid.*. */
#include <check.h>
#include <opjit/artifact.h>
#include <opjit/opjit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/machines/ptx_texts.h"
#include "tests/support/checker.h"
#include "tests/support/require.h"

static opjit_error error;

static const struct {
    DML_TENSOR_DATA_TYPE type;
    DML_SCALAR_UNION one;
    bool is_float;
} types[] = {
    { DML_TENSOR_DATA_TYPE_FLOAT32, { .Float32 = 1 }, true },
    { DML_TENSOR_DATA_TYPE_FLOAT16, { .UInt16 = 0x3c00 }, true },
    { DML_TENSOR_DATA_TYPE_FLOAT64, { .Float64 = 1 }, true },
    { DML_TENSOR_DATA_TYPE_UINT8, { .UInt8 = 1 }, false },
    { DML_TENSOR_DATA_TYPE_INT16, { .Int16 = 1 }, false },
    { DML_TENSOR_DATA_TYPE_INT32, { .Int32 = 1 }, false },
    { DML_TENSOR_DATA_TYPE_UINT64, { .UInt64 = 1 }, false },
};

typedef enum kind { CONSTANT, SEQUENCE, EYE, TRIANGLE, ADD, SOFTMAX, NORMALIZED, CUMULATIVE, ODD, KINDS } kind;

static opjit_operator *make_operator(opjit_context *context, kind k, int t)
{
    static const uint32_t sizes[] = { 2, 512, 1024 }, wide[] = { 2, 8192, 8192 }, odd[] = { 2, 511, 511 },
                          axes[] = { 2 };
    const bool is_wide = k == EYE || (k == TRIANGLE && t % 2 == 0); /* rows of several rounds */
    const DML_BUFFER_TENSOR_DESC buffer = {
        types[t].type, DML_TENSOR_FLAG_NONE, 3, k == ODD ? odd : is_wide ? wide : sizes, NULL, 0, 0
    };
    const DML_TENSOR_DESC tensor = { DML_TENSOR_TYPE_BUFFER, &buffer };
    const DML_FILL_VALUE_CONSTANT_OPERATOR_DESC constant = { &tensor, types[t].type, types[t].one };
    const DML_FILL_VALUE_SEQUENCE_OPERATOR_DESC sequence = { &tensor, types[t].type, types[t].one, types[t].one };
    const DML_DIAGONAL_MATRIX1_OPERATOR_DESC eye = { NULL, &tensor, types[t].type, types[t].one, 0, 1 };
    const DML_DIAGONAL_MATRIX1_OPERATOR_DESC triangle = { &tensor, &tensor, types[t].type, types[t].one, 1, INT32_MAX };
    const DML_ELEMENT_WISE_ADD_OPERATOR_DESC sum = { &tensor, &tensor, &tensor };
    const DML_ACTIVATION_SOFTMAX1_OPERATOR_DESC softmax = { &tensor, &tensor, 1, axes };
    const DML_MEAN_VARIANCE_NORMALIZATION1_OPERATOR_DESC normalized = { &tensor, NULL, NULL,  &tensor, 1,
                                                                        axes,    1,    1e-5f, NULL };
    const DML_CUMULATIVE_SUMMATION_OPERATOR_DESC cumulative = { &tensor, &tensor, 2, DML_AXIS_DIRECTION_INCREASING, 0 };
    const DML_OPERATOR_DESC descs[KINDS] = {
        [CONSTANT] = { DML_OPERATOR_FILL_VALUE_CONSTANT, &constant },
        [SEQUENCE] = { DML_OPERATOR_FILL_VALUE_SEQUENCE, &sequence },
        [EYE] = { DML_OPERATOR_DIAGONAL_MATRIX1, &eye },
        [TRIANGLE] = { DML_OPERATOR_DIAGONAL_MATRIX1, &triangle },
        [ODD] = { DML_OPERATOR_DIAGONAL_MATRIX1, &triangle },
        [ADD] = { DML_OPERATOR_ELEMENT_WISE_ADD, &sum },
        [SOFTMAX] = { DML_OPERATOR_ACTIVATION_SOFTMAX1, &softmax },
        [NORMALIZED] = { DML_OPERATOR_MEAN_VARIANCE_NORMALIZATION1, &normalized },
        [CUMULATIVE] = { DML_OPERATOR_CUMULATIVE_SUMMATION, &cumulative },
    };
    opjit_operator *op = NULL;
    const opjit_status status = opjit_operator_create(context, &descs[k], &op, &error);
    ck_assert_msg(status == OPJIT_OK || status == OPJIT_INVALID_ARGUMENT || status == OPJIT_UNSUPPORTED, "%s",
                  error.message);
    return op; /* NULL: not of this type */
}

static opjit_artifact *make_artifact(opjit_context *context, const char *target, opjit_level level, kind k, int t)
{
    opjit_artifact_options options = OPJIT_ARTIFACT_OPTIONS_INIT;
    opjit_compile_options compile = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_artifact *artifact = NULL;
    opjit_operator *op = make_operator(context, k, t);
    if (op == NULL)
        return NULL;
    options.target_count = 1;
    options.targets = &target;
    compile.name = "made";
    compile.level = level;
    ck_assert_msg(opjit_artifact_create(context, &options, &artifact, &error) == OPJIT_OK, "%s", error.message);
    ck_assert_msg(opjit_artifact_add_operator(artifact, op, &compile, &error) == OPJIT_OK, "%s", error.message);
    opjit_operator_release(op);
    return artifact;
}

/* The output, NUL-terminated. */
static char *get(opjit_artifact *artifact, opjit_artifact_kind what)
{
    const void *data;
    uint64_t bytes;
    ck_assert_msg(opjit_artifact_get(artifact, 0, what, &data, &bytes, &error) == OPJIT_OK, "%s", error.message);
    char *text = malloc((size_t)bytes + 1);
    ck_assert_ptr_nonnull(text);
    memcpy(text, data, (size_t)bytes);
    text[bytes] = '\0';
    return text;
}

static void check_kernel(opjit_context *context, const char *arch, opjit_level level, kind k, int t, bool *assembled)
{
    char target[32];
    snprintf(target, sizeof target, "nvptx:sm_%s", arch);
    opjit_artifact *artifact = make_artifact(context, target, level, k, t);
    if (artifact == NULL)
        return;
    char *ptx = get(artifact, OPJIT_ARTIFACT_PTX);
    /* LLVM makes two words of four where they are only copied */
    const bool whole = strstr(ptx, "st.global.v4.b32") != NULL || strstr(ptx, "st.global.v2.b64") != NULL;
    ck_assert_msg(whole, "kind %d, type %d: stores no 16 bytes:\n%.3000s", (int)k, t, ptx);
    ck_assert_msg(strstr(ptx, ".visible .entry made_v0_s0(") != NULL, "%.1000s", ptx);
    ck_assert_ptr_nonnull(strstr(ptx, ".reqntid"));
    ck_assert_msg(strstr(ptx, ".ftz") == NULL && strstr(ptx, ".approx") == NULL && strstr(ptx, ".local ") == NULL,
                  "kind %d, type %d", (int)k, t);
    *assembled = ptx_texts_good(arch, ptx);
    free(ptx);
    opjit_artifact_destroy(artifact);
}

START_TEST(assembles)
{
    static const char *const archs[] = { "80", "90", "100", "120" };
    opjit_context *context = test_context_create();
    bool assembled = true;
    if (!test_have_codegen(context))
        return;
    for (int t = 0; t < (int)(sizeof types / sizeof *types); t++) {
        check_kernel(context, archs[(t + _i) % 4], OPJIT_LEVEL_QUICK, (kind)_i, t, &assembled);
        if (t == _i % 3)
            check_kernel(context, archs[t], OPJIT_LEVEL_PEAK, (kind)_i, t, &assembled);
    }
    if (!assembled)
        printf("skipped: nothing is assembled, because ptxas was not found\n");
    opjit_context_destroy(context);
}
END_TEST

/* A round of a team that is wholly on one side of a cut stores a constant: only bounds are compared. */
START_TEST(cuts_are_bounds)
{
    opjit_context *context = test_context_create();
    if (!test_have_codegen(context))
        return;
    opjit_artifact *artifact = make_artifact(context, "nvptx:sm_90", OPJIT_LEVEL_QUICK, EYE, 0);
    char *ptx = get(artifact, OPJIT_ARTIFACT_PTX);
    size_t stores = 0, free_of_choice = 0;
    for (const char *at = ptx; (at = strstr(at, "st.global.v4.b32")) != NULL; at++) {
        stores++;
        const char *values = strchr(at, '{'), *end = strchr(at, '}'); /* one value four times */
        const size_t length = values != NULL ? strcspn(values + 1, ",}") : 0;
        free_of_choice += values != NULL && end != NULL && strncmp(end - length, values + 1, length) == 0;
    }
    ck_assert_uint_ge(stores, 3);
    ck_assert_uint_ge(free_of_choice, 2);
    ck_assert_uint_lt(free_of_choice, stores); /* the round that contains the diagonal */
    free(ptx);
    opjit_artifact_destroy(artifact);
    opjit_context_destroy(context);
}
END_TEST

START_TEST(json)
{
    opjit_context *context = test_context_create();
    opjit_artifact *artifact = make_artifact(context, "nvptx:sm_80", OPJIT_LEVEL_QUICK, SOFTMAX, 0);
    char *text = get(artifact, OPJIT_ARTIFACT_JSON);
    ck_assert_ptr_nonnull(strstr(text, "\"arguments\": [ { \"input\": 0 }, { \"output\": 0 }, \"workspace\" ]"));
    ck_assert_ptr_nonnull(strstr(text, "\"alignment\": 16"));
    ck_assert_msg(strstr(text,
                         "\"symbol\": \"made_v0_s0\", \"extent\": 1024, \"grid\": [128, 1, 1], \"block\": [256, 1, 1], "
                         "\"team\": 32, \"static_shared_bytes\": 32768 }") != NULL,
                  "%s", text);
    ck_assert_ptr_null(strstr(text, "packed"));
    free(text);
    opjit_artifact_destroy(artifact);
    opjit_context_destroy(context);
}
END_TEST

static const struct {
    const char *target;
    opjit_artifact_kind what;
    const char *part;
} refusals[] = {
    { "nvptx:sm_90", OPJIT_ARTIFACT_OBJECT, "obj is not for target nvptx:sm_90" },
    { "nvptx:sm_90", OPJIT_ARTIFACT_HEADER, "header is not for target nvptx:sm_90" },
    { "nvptx:sm_90", OPJIT_ARTIFACT_ARCHIVE, "lib is not for target nvptx:sm_90" },
    { "nvptx:sm_90", OPJIT_ARTIFACT_SHARED, "lib is not for target nvptx:sm_90" },
    { "nvptx:sm_90", OPJIT_ARTIFACT_LIBRARY_HEADER, "library header is not for target nvptx:sm_90" },
    { "cpu:x86-64-v3", OPJIT_ARTIFACT_PTX, "ptx is not for target cpu:x86-64-v3" },
    { "cpu:aarch64", OPJIT_ARTIFACT_CUBIN, "cubin is not for target cpu:aarch64" },
};

START_TEST(refused)
{
    opjit_context *context = test_context_create();
    opjit_artifact *artifact = make_artifact(context, refusals[_i].target, OPJIT_LEVEL_QUICK, EYE, 0);
    const void *data;
    uint64_t bytes;
    ck_assert_int_eq(opjit_artifact_get(artifact, 0, refusals[_i].what, &data, &bytes, &error), OPJIT_UNSUPPORTED);
    ck_assert_msg(strstr(error.message, refusals[_i].part) != NULL, "%s", error.message);
    ck_assert_str_eq(error.field, "kind");
    test_require_place(&error);
    opjit_artifact_destroy(artifact);
    opjit_context_destroy(context);
}
END_TEST

/* An ELF file for the GPU's machine, 190; or the reason why there is none. */
START_TEST(cubin)
{
    opjit_context *context = test_context_create();
    const void *data;
    uint64_t bytes;
    if (!test_have_codegen(context))
        return;
    opjit_artifact *artifact = make_artifact(context, "nvptx:sm_90", OPJIT_LEVEL_QUICK, EYE, 0);
    const opjit_status status = opjit_artifact_get(artifact, 0, OPJIT_ARTIFACT_CUBIN, &data, &bytes, &error);
    if (status == OPJIT_UNAVAILABLE) {
        ck_assert_msg(strstr(error.message, "ptxas is needed, and is neither on PATH nor in") != NULL, "%s",
                      error.message);
        printf("skipped: no cubin is made, because ptxas was not found\n");
    } else {
        const uint8_t *elf = data;
        ck_assert_msg(status == OPJIT_OK, "%s", error.message);
        ck_assert_uint_gt(bytes, 64);
        ck_assert(memcmp(elf, "\177ELF", 4) == 0 && elf[18] == 190);
    }
    opjit_artifact_destroy(artifact);
    opjit_context_destroy(context);
}
END_TEST

/* A kernel that is compiled to be called here must run here. */
START_TEST(not_called_here)
{
    opjit_context *context = test_context_create();
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_operator *op = make_operator(context, EYE, 0);
    opjit_kernel *kernel = NULL;
    options.target = "nvptx:sm_90";
    ck_assert_int_ne(opjit_compile_operator(context, op, &options, &kernel, &error), OPJIT_OK);
    ck_assert_msg(strstr(error.message, "does not run on this machine") != NULL, "%s", error.message);
    ck_assert_str_eq(error.field, "target");
    test_require_place(&error);
    ck_assert_ptr_null(kernel);
    opjit_operator_release(op);
    opjit_context_destroy(context);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fe.ptx");
    TCase *t = tcase_create("ptx");
    tcase_add_loop_test(t, assembles, 0, KINDS);
    tcase_add_test(t, cuts_are_bounds);
    tcase_add_test(t, json);
    tcase_add_loop_test(t, refused, 0, (int)(sizeof refusals / sizeof *refusals));
    tcase_add_test(t, cubin);
    tcase_add_test(t, not_called_here);
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
