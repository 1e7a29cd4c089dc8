/* SPDX-License-Identifier: Apache-2.0 */
/* test_property_refused.c - wrong calls, wrong options and NULL for every parameter of the public interface: each is
 * refused with a status and a message, and the output's bytes do not change.  Kernels are interpreted, because refusals
 * are the same for all kernels. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include <opjit/ffi.h>
#include <opjit/opjit.h>

#include "tests/support/checker.h"
#include "tests/support/require.h"

#define HEIGHT 3
#define WIDTH 4
#define BYTES (HEIGHT * WIDTH * sizeof(float))

/* A context, an operator with input and output, and its kernel with one late parameter. */
typedef struct fixture {
    opjit_context *context;
    opjit_operator *op;
    opjit_kernel *kernel;
} fixture;

static opjit_operator *make_operator(opjit_context *context)
{
    static const uint32_t sizes[] = { HEIGHT, WIDTH };
    const DML_BUFFER_TENSOR_DESC buffer = { DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_FLAG_NONE, 2, sizes, NULL, 0, 0 };
    const DML_TENSOR_DESC tensor = { DML_TENSOR_TYPE_BUFFER, &buffer };
    const DML_DIAGONAL_MATRIX1_OPERATOR_DESC d = { &tensor,          &tensor, DML_TENSOR_DATA_TYPE_FLOAT32,
                                                   { .Float32 = 1 }, 0,       1 };
    const DML_OPERATOR_DESC desc = { DML_OPERATOR_DIAGONAL_MATRIX1, &d };
    opjit_operator *op = NULL;
    ck_assert_int_eq(opjit_operator_create(context, &desc, &op, NULL), OPJIT_OK);
    return op;
}

static fixture make_fixture(void)
{
    static const char *const late[] = { "DiagonalFillEnd" };
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_error error = { 0 };
    fixture f = { test_context_create(), NULL, NULL };
    f.op = make_operator(f.context);
    options.flags = OPJIT_COMPILE_INTERPRET;
    options.late = late;
    options.late_count = 1;
    const opjit_status status = opjit_compile_operator(f.context, f.op, &options, &f.kernel, &error);
    ck_assert_msg(status == OPJIT_OK, "%s", error.message);
    return f;
}

static void drop_fixture(fixture *f)
{
    opjit_kernel_release(f->kernel);
    opjit_operator_release(f->op);
    opjit_context_destroy(f->context);
}

/* The status must be INVALID_ARGUMENT, with a message of one line. */
static void expect_invalid(opjit_status status, const opjit_error *error, const char *what)
{
    ck_assert_msg(status == OPJIT_INVALID_ARGUMENT, "%s: %s", what, opjit_status_name(status));
    ck_assert_msg(error->status == status && error->message[0] != '\0' && strchr(error->message, '\n') == NULL,
                  "%s: the message is \"%s\"", what, error->message);
    ck_assert_msg(error->op[0] != '\0' && error->field[0] != '\0', "%s: \"%s\" says no place", what, error->message);
    test_require_place(error);
}

/* --- calls -------------------------------------------------------------------------------------------------------- */
/* A call that is right until a row of the table below spoils it. */
typedef struct spoiled {
    _Alignas(64) unsigned char input[BYTES + 64], output[BYTES + 64], workspace[4096];
    opjit_binding bindings[3];
    uint64_t params[2];
    opjit_executor executor;
    opjit_call call;
} spoiled;

static opjit_status run_nothing(void *user, uint64_t extent, uint64_t grain,
                                void (*body)(void *arg, uint32_t worker, uint64_t begin, uint64_t end), void *arg)
{
    (void)user, (void)extent, (void)grain, (void)body, (void)arg;
    return OPJIT_OK;
}

static void make_call(spoiled *s)
{
    memset(s, 0x5a, sizeof *s);
    s->bindings[0] = (opjit_binding){ s->input, BYTES };
    s->bindings[1] = (opjit_binding){ s->output, BYTES };
    s->bindings[2] = (opjit_binding){ s->workspace, BYTES };
    s->params[0] = 1;
    s->executor = (opjit_executor){ NULL, 1, run_nothing };
    s->call = (opjit_call){ .struct_size = sizeof s->call,
                            .binding_count = 2,
                            .bindings = s->bindings,
                            .params = s->params,
                            .param_count = 1 };
}

static void size_0(spoiled *s) { s->call.struct_size = 0; }
static void size_3(spoiled *s) { s->call.struct_size = 3; }
static void size_cut(spoiled *s) { s->call.struct_size = sizeof(uint32_t); }
static void size_half(spoiled *s) { s->call.struct_size = 10; }
static void size_unset(spoiled *s) { s->call.struct_size = 0x5a5a5a5a; }
static void reserved(spoiled *s) { s->call.reserved = 1; }
static void no_bindings(spoiled *s) { s->call.bindings = NULL; }
static void count_0(spoiled *s) { s->call.binding_count = 0; }
static void count_1(spoiled *s) { s->call.binding_count = 1; }
static void count_3(spoiled *s) { s->call.binding_count = 3; }
static void count_max(spoiled *s) { s->call.binding_count = UINT32_MAX; }
static void input_null(spoiled *s) { s->bindings[0].data = NULL; }
static void output_null(spoiled *s) { s->bindings[1].data = NULL; }
static void input_short(spoiled *s) { s->bindings[0].bytes = BYTES - 1; }
static void output_short(spoiled *s) { s->bindings[1].bytes = BYTES - 1; }
static void output_empty(spoiled *s) { s->bindings[1].bytes = 0; }
static void input_odd(spoiled *s) { s->bindings[0].data = s->input + 1; }
static void output_odd(spoiled *s) { s->bindings[1].data = s->output + 2; }
static void overlap_4(spoiled *s) { s->bindings[0].data = s->output + 4; }
static void overlap_last(spoiled *s) { s->bindings[0].data = s->output + BYTES - 4; }
static void no_params(spoiled *s) { s->call.params = NULL; }
static void params_0(spoiled *s) { s->call.param_count = 0; }
static void params_2(spoiled *s) { s->call.param_count = 2; }
static void param_high(spoiled *s) { s->params[0] = UINT64_C(0x80000000); }
static void param_low(spoiled *s) { s->params[0] = (uint64_t)((int64_t)INT32_MIN - 1); }
static void param_garbage(spoiled *s) { s->params[0] = UINT64_C(0x5a5a5a5a00000001); }
static void workspace_null(spoiled *s) { s->call.workspace.bytes = 64; }
static void executor_no_run(spoiled *s) { s->executor.run = NULL; s->call.executor = &s->executor; }
static void executor_no_workers(spoiled *s) { s->executor.workers = 0; s->call.executor = &s->executor; }

#define ROW(name) { #name, name }
static const struct { const char *name; void (*spoil)(spoiled *s); } wrong_calls[] = {
    ROW(size_0),       ROW(size_3),       ROW(size_cut),       ROW(size_half),       ROW(size_unset),
    ROW(reserved),     ROW(no_bindings),
    ROW(count_0),      ROW(count_1),      ROW(count_3),        ROW(count_max),       ROW(input_null),
    ROW(output_null),  ROW(input_short),  ROW(output_short),   ROW(output_empty),    ROW(input_odd),
    ROW(output_odd),   ROW(overlap_4),    ROW(overlap_last),   ROW(no_params),       ROW(params_0),
    ROW(params_2),     ROW(param_high),   ROW(param_low),      ROW(param_garbage),   ROW(workspace_null),
    ROW(executor_no_run), ROW(executor_no_workers),
};

START_TEST(a_wrong_call_leaves_the_output_alone)
{
    fixture f = make_fixture();
    opjit_error error = { 0 };
    spoiled s, before;
    make_call(&s);
    ck_assert_int_eq(opjit_kernel_call(f.kernel, &s.call, &error), OPJIT_OK);
    make_call(&s);
    wrong_calls[_i].spoil(&s);
    memcpy(&before, &s, sizeof s);
    expect_invalid(opjit_kernel_call(f.kernel, &s.call, &error), &error, wrong_calls[_i].name);
    ck_assert_msg(memcmp(&before, &s, sizeof s) == 0, "%s: memory was changed", wrong_calls[_i].name);
    ck_assert_int_eq(opjit_kernel_call(f.kernel, &s.call, NULL), OPJIT_INVALID_ARGUMENT);
    drop_fixture(&f);
}
END_TEST

/* --- options ------------------------------------------------------------------------------------------------------ */
static const char *const late_unknown[] = { "NoSuchField" };
static const char *const late_tensor[] = { "OutputTensor" };
static const char *const late_type[] = { "ValueDataType" };
static const char *const late_twice[] = { "Value", "Value" };
static const char *const late_null[] = { NULL };
static const char *const late_empty[] = { "" };

static const struct { const char *name; opjit_compile_options options; } wrong_options[] = {
    { "struct_size 0", { .struct_size = 0 } },
    { "unknown flag", { sizeof(opjit_compile_options), 0x80000000, OPJIT_LEVEL_AUTO, 0, NULL, NULL, NULL, NULL } },
    { "unknown level", { sizeof(opjit_compile_options), 0, (opjit_level)3, 0, NULL, NULL, NULL, NULL } },
    { "late is NULL", { sizeof(opjit_compile_options), 0, OPJIT_LEVEL_AUTO, 1, NULL, NULL, NULL, NULL } },
    { "late unknown", { sizeof(opjit_compile_options), 0, OPJIT_LEVEL_AUTO, 1, late_unknown, NULL, NULL, NULL } },
    { "late tensor", { sizeof(opjit_compile_options), 0, OPJIT_LEVEL_AUTO, 1, late_tensor, NULL, NULL, NULL } },
    { "late type", { sizeof(opjit_compile_options), 0, OPJIT_LEVEL_AUTO, 1, late_type, NULL, NULL, NULL } },
    { "late twice", { sizeof(opjit_compile_options), 0, OPJIT_LEVEL_AUTO, 2, late_twice, NULL, NULL, NULL } },
    { "late name NULL", { sizeof(opjit_compile_options), 0, OPJIT_LEVEL_AUTO, 1, late_null, NULL, NULL, NULL } },
    { "late name empty", { sizeof(opjit_compile_options), 0, OPJIT_LEVEL_AUTO, 1, late_empty, NULL, NULL, NULL } },
    { "target empty", { sizeof(opjit_compile_options), 0, OPJIT_LEVEL_AUTO, 0, NULL, "", NULL, NULL } },
    { "target without a kind",
      { sizeof(opjit_compile_options), 0, OPJIT_LEVEL_AUTO, 0, NULL, "x86-64-v3", NULL, NULL } },
    { "target unknown",
      { sizeof(opjit_compile_options), 0, OPJIT_LEVEL_AUTO, 0, NULL, "cpu:no-such-cpu", NULL, NULL } },
    { "target with a bad option",
      { sizeof(opjit_compile_options), 0, OPJIT_LEVEL_AUTO, 0, NULL, "cpu:x86-64-v3,vec=3", NULL, NULL } },
};

START_TEST(wrong_compile_options_are_refused)
{
    opjit_context *context = test_context_create();
    opjit_operator *op = make_operator(context);
    opjit_error error = { 0 };
    opjit_kernel *kernel = (opjit_kernel *)(uintptr_t)1;
    expect_invalid(opjit_compile_operator(context, op, &wrong_options[_i].options, &kernel, &error), &error,
                   wrong_options[_i].name);
    ck_assert_ptr_null(kernel);
    opjit_operator_release(op);
    opjit_context_destroy(context);
}
END_TEST

START_TEST(wrong_context_options_are_refused)
{
    static const opjit_context_options none = OPJIT_CONTEXT_OPTIONS_INIT;
    opjit_context_options rows[6];
    for (int i = 0; i < 6; i++)
        rows[i] = none;
    rows[0].struct_size = 0;
    rows[1].feature_level = 0x1234;
    rows[2].feature_level = UINT32_MAX;
    rows[3].target = "cpu:no-such-cpu";
    rows[4].reserved = 1;
    rows[5].flags = 0x80000000;
    for (int i = 0; i < 6; i++) {
        opjit_context *context = (opjit_context *)(uintptr_t)1;
        opjit_error error = { 0 };
        char what[32];
        snprintf(what, sizeof what, "context options %d", i);
        expect_invalid(opjit_context_create(&rows[i], &context, &error), &error, what);
        ck_assert_ptr_null(context);
    }
}
END_TEST

/* --- NULL --------------------------------------------------------------------------------------------------------- */
#define REFUSED(call)                                                                                                  \
    do {                                                                                                               \
        error = (opjit_error){ 0 };                                                                         \
        expect_invalid(call, &error, #call);                                                                           \
    } while (0)

static void ignore(void *user, const char *stage, const char *text) { (void)user, (void)stage, (void)text; }
static void nothing(void) {}

START_TEST(null_is_refused_by_contexts_and_operators)
{
    opjit_context *context = test_context_create(), *none;
    opjit_operator *op = make_operator(context), *out;
    opjit_kernel *kernel;
    opjit_cache_stats stats = OPJIT_CACHE_STATS_INIT;
    const DML_OPERATOR_DESC desc = { DML_OPERATOR_DIAGONAL_MATRIX1, NULL };
    opjit_error error;
    REFUSED(opjit_context_create(NULL, NULL, &error));
    REFUSED(opjit_context_warm(NULL, &error));
    REFUSED(opjit_cache_get_stats(NULL, &stats, &error));
    REFUSED(opjit_cache_get_stats(context, NULL, &error));
    REFUSED(opjit_cache_clear(NULL, &error));
    REFUSED(opjit_operator_create(NULL, &desc, &out, &error));
    REFUSED(opjit_operator_create(context, NULL, &out, &error));
    REFUSED(opjit_operator_create(context, &desc, &out, &error));
    REFUSED(opjit_operator_create(context, &desc, NULL, &error));
    REFUSED(opjit_compile_operator(NULL, op, NULL, &kernel, &error));
    REFUSED(opjit_compile_operator(context, NULL, NULL, &kernel, &error));
    REFUSED(opjit_compile_operator(context, op, NULL, NULL, &error));
    REFUSED(opjit_operator_explain(NULL, op, NULL, ignore, NULL, &error));
    REFUSED(opjit_operator_explain(context, NULL, NULL, ignore, NULL, &error));
    REFUSED(opjit_operator_explain(context, op, NULL, NULL, NULL, &error));
    ck_assert_int_eq(opjit_context_create(NULL, NULL, NULL), OPJIT_INVALID_ARGUMENT);
    ck_assert_int_eq(opjit_context_create(NULL, &none, NULL), OPJIT_OK);
    opjit_context_destroy(none);
    opjit_context_target(NULL);
    opjit_context_destroy(NULL);
    opjit_operator_retain(NULL);
    opjit_operator_release(NULL);
    opjit_operator_release(op);
    opjit_context_destroy(context);
}
END_TEST

START_TEST(null_is_refused_by_kernels)
{
    fixture f = make_fixture();
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    opjit_closure *closure;
    void (*function)(void);
    const DML_TENSOR_DATA_TYPE types[] = { DML_TENSOR_DATA_TYPE_INT32 };
    int32_t number = 7;
    void *const values[] = { &number };
    void *const null_value[] = { NULL };
    const opjit_call call = OPJIT_CALL_INIT;
    static const uint64_t zeros[64];
    opjit_kernel *loaded;
    const void *image;
    uint64_t bytes;
    opjit_error error;
    REFUSED(opjit_kernel_call(NULL, &call, &error));
    REFUSED(opjit_kernel_call(f.kernel, NULL, &error));
    REFUSED(opjit_kernel_call(f.kernel, &call, &error));
    REFUSED(opjit_kernel_get_info(NULL, &info, &error));
    REFUSED(opjit_kernel_get_info(f.kernel, NULL, &error));
    REFUSED(opjit_kernel_get_image(NULL, &image, &bytes, &error));
    REFUSED(opjit_kernel_get_image(f.kernel, NULL, &bytes, &error));
    REFUSED(opjit_kernel_get_image(f.kernel, &image, NULL, &error));
    REFUSED(opjit_kernel_load(NULL, zeros, sizeof zeros, NULL, 0, &loaded, &error));
    REFUSED(opjit_kernel_load(f.context, NULL, 0, NULL, 0, &loaded, &error));
    REFUSED(opjit_kernel_load(f.context, zeros, sizeof zeros, NULL, 0, NULL, &error));
    REFUSED(opjit_kernel_optimize(NULL, &error));
    REFUSED(opjit_closure_create(NULL, &closure, &function, &error));
    REFUSED(opjit_closure_create(f.kernel, NULL, &function, &error));
    REFUSED(opjit_closure_create(f.kernel, &closure, NULL, &error));
    REFUSED(opjit_typed_call(NULL, 0, NULL, NULL, &error));
    REFUSED(opjit_typed_call(nothing, 1, NULL, values, &error));
    REFUSED(opjit_typed_call(nothing, 1, types, NULL, &error));
    REFUSED(opjit_typed_call(nothing, 1, types, null_value, &error));
    ck_assert_int_eq(opjit_kernel_call(NULL, NULL, NULL), OPJIT_INVALID_ARGUMENT);
    ck_assert_uint_eq(opjit_closure_failures(NULL, &error), 0);
    opjit_closure_destroy(NULL);
    opjit_kernel_retain(NULL);
    opjit_kernel_release(NULL);
    ck_assert_str_eq(opjit_status_name((opjit_status)12345), "unknown");
    drop_fixture(&f);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("property.refused");
    TCase *cases = tcase_create("wrong calls");
    tcase_add_loop_test(cases, a_wrong_call_leaves_the_output_alone, 0, sizeof wrong_calls / sizeof *wrong_calls);
    tcase_add_loop_test(cases, wrong_compile_options_are_refused, 0, sizeof wrong_options / sizeof *wrong_options);
    tcase_add_test(cases, wrong_context_options_are_refused);
    tcase_add_test(cases, null_is_refused_by_contexts_and_operators);
    tcase_add_test(cases, null_is_refused_by_kernels);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
