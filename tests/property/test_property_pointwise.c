/* SPDX-License-Identifier: Apache-2.0 */
/* test_property_pointwise.c - random descriptors of every pointwise operator: the interpreter's result is what the
 * reference allows, bit for bit where the formula has no mathematical function; compiled code of any target, level and
 * division of the work computes the interpreter's bits.  Nothing outside of the output's elements is written.  To run
 * one case of a failure again: OPJIT_SEED=<seed> OPJIT_CASE=<number> ./property_pointwise. */
#include <check.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/frontend.h"
#include "runtime/target/target.h"
#include "tests/machines/emulated.h"
#include "tests/support/checker.h"
#include "tests/support/executors.h"
#include "tests/support/pointwise_case.h"

#define CASES 60
#define CASES_ACROSS 100
#define MOST_ELEMENTS 2048

static const test_mode interpreted = { .name = "interpreted", .flags = OPJIT_COMPILE_INTERPRET };
static const test_mode modes[] = {
    { .name = "interpreted, pieces", .flags = OPJIT_COMPILE_INTERPRET, .how = TEST_PIECES },
    { .name = "quick", .level = OPJIT_LEVEL_QUICK },
    { .name = "peak, pieces", .level = OPJIT_LEVEL_PEAK, .how = TEST_PIECES },
    { .name = "x86-64-v1", .target = "cpu:x86-64-v1", .level = OPJIT_LEVEL_QUICK },
    { .name = "x86-64-v1 peak", .target = "cpu:x86-64-v1", .level = OPJIT_LEVEL_PEAK, .how = TEST_PIECES },
    { .name = "x86-64-v2", .target = "cpu:x86-64-v2", .level = OPJIT_LEVEL_QUICK },
    { .name = "x86-64-v3", .target = "cpu:x86-64-v3", .level = OPJIT_LEVEL_QUICK, .how = TEST_THREADS },
    { .name = "x86-64-v4", .target = "cpu:x86-64-v4", .level = OPJIT_LEVEL_QUICK },
    { .name = "v3, 16 bytes", .target = "cpu:x86-64-v3,vec=16", .level = OPJIT_LEVEL_QUICK },
    { .name = "v3, no caches", .target = "cpu:x86-64-v3,l1=1024,l2=1024,l3=0", .level = OPJIT_LEVEL_QUICK },
};
#define MODE_COUNT (sizeof modes / sizeof *modes)

/* One case between guards, and the state from which each of its runs starts. */
typedef struct trial {
    const pointwise_case *c;
    test_random *random;
    opjit_context *context;
    opjit_operator *op;
    test_buffer inputs[REF_INPUTS_MAX], output;
    uint8_t *before[REF_INPUTS_MAX], *output_before; /* the buffers' whole memory */
    uint8_t *interpreted;                            /* the output's binding, NaNs made equal */
    const void *given;                               /* the inputs' contents; NULL: random elements */
    char where[256];                                 /* for messages */
} trial;

static bool shared(const pointwise_case *c, uint32_t input)
{
    return (c->in_place >> input & 1) != 0;
}

/* --- buffers ------------------------------------------------------------------------------------------------------ */

static uint8_t *snapshot(const test_buffer *b)
{
    uint8_t *copy = malloc(b->size);
    ck_assert_ptr_nonnull(copy);
    memcpy(copy, b->memory, b->size);
    return copy;
}

static void make_buffers(trial *t)
{
    const pointwise_case *c = t->c;
    ck_assert(test_buffer_create(&t->output, t->random, c->output.bytes, c->output.alignment));
    for (uint32_t i = 0; i < c->input_count; i++) {
        if (!c->present[i])
            continue;
        if (shared(c, i)) {
            pointwise_case_fill(t->random, c, i, t->output.data);
            continue;
        }
        ck_assert(test_buffer_create(&t->inputs[i], t->random, c->inputs[i].bytes, c->inputs[i].alignment));
        pointwise_case_fill(t->random, c, i, t->inputs[i].data);
        if (t->given != NULL)
            memcpy(t->inputs[i].data, t->given, c->inputs[i].bytes);
        test_buffer_expect_unchanged(&t->inputs[i]);
    }
    t->output_before = snapshot(&t->output);
    t->interpreted = malloc(t->output.bytes);
    ck_assert_ptr_nonnull(t->interpreted);
}

static void free_trial(trial *t)
{
    for (uint32_t i = 0; i < t->c->input_count; i++)
        test_buffer_destroy(&t->inputs[i]);
    test_buffer_destroy(&t->output);
    free(t->output_before);
    free(t->interpreted);
    opjit_operator_release(t->op);
}

/* --- comparing ---------------------------------------------------------------------------------------------------- */

static void unify_nans(const pointwise_case *c, void *base)
{
    const ref_tensor t = ref_tensor_of(&c->output.desc);
    for (uint64_t e = 0; c->any_nan && ref_dtype_is_float(t.dtype) && e < ref_tensor_elements(&t); e++) {
        uint32_t at[8];
        ref_tensor_coordinates(&t, e, at);
        const uint64_t offset = ref_tensor_offset(&t, at);
        if (ref_is_nan(t.dtype, ref_load(&t, base, offset)))
            ref_store(&t, base, offset, UINT64_MAX);
    }
}

/* Reports the element that contains byte `at`, with the inputs that it was computed from. */
static void report_element(const trial *t, int64_t at)
{
    const ref_tensor out = ref_tensor_of(&t->c->output.desc);
    for (uint64_t e = 0; e < ref_tensor_elements(&out); e++) {
        uint32_t c[8];
        ref_tensor_coordinates(&out, e, c);
        const uint64_t offset = ref_tensor_offset(&out, c);
        if ((int64_t)offset != at / (int64_t)ref_dtype_size(out.dtype))
            continue;
        fprintf(stderr, "  element %" PRIu64 ": 0x%" PRIx64 ", expected 0x%" PRIx64 ", of", e,
                ref_load(&out, t->output.data, offset), ref_load(&out, t->output.expected, offset));
        for (uint32_t i = 0; i < t->c->input_count; i++) {
            if (!t->c->present[i])
                continue;
            const ref_tensor in = ref_tensor_of(&t->c->inputs[i].desc);
            const void *base =
                shared(t->c, i) ? t->output_before + (t->output.data - t->output.memory) : t->inputs[i].data;
            fprintf(stderr, " 0x%" PRIx64, ref_load(&in, base, ref_pointwise_offset(&in, c)));
        }
        fputs("\n", stderr);
    }
}

static void wrong(const trial *t, const char *text)
{
    fprintf(stderr, "%s: %s\n", t->where, text);
    pointwise_case_print(stderr, t->c);
    ck_abort_msg("%s: %s", t->where, text);
}

/* Runs the reference on the copy of the output, with the buffers as they were. */
static void expect(trial *t)
{
    const size_t binding = (size_t)(t->output.data - t->output.memory);
    ref_argument arguments[REF_INPUTS_MAX] = { { NULL, NULL } };
    for (uint32_t i = 0; i < t->c->input_count; i++)
        if (t->c->present[i])
            arguments[i] = (ref_argument){ &t->c->inputs[i].desc,
                                           shared(t->c, i) ? t->output_before + binding : t->inputs[i].data };
    memcpy(t->output.copy, t->output_before, t->output.size);
    ref_pointwise(&t->c->op, arguments, &t->c->output.desc, t->output.data, t->output.expected);
}

static void compare(trial *t, const char *text)
{
    int64_t at;
    for (uint32_t i = 0; i < t->c->input_count; i++)
        if (t->inputs[i].data != NULL && !test_buffer_compare(&t->inputs[i], &at))
            wrong(t, "an input was changed");
    unify_nans(t->c, t->output.data);
    unify_nans(t->c, t->output.expected);
    if (test_buffer_compare(&t->output, &at))
        return;
    report_element(t, at);
    wrong(t, text);
}

/* --- running ------------------------------------------------------------------------------------------------------ */

static void check_info(const trial *t, const opjit_kernel *kernel)
{
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    uint32_t slot = 0;
    ck_assert_int_eq(opjit_kernel_get_info(kernel, &info, NULL), OPJIT_OK);
    for (uint32_t i = 0; i < t->c->input_count; i++) {
        if (t->c->present[i] && shared(t->c, i) && (info.buffers[info.inputs].alias_inputs >> slot & 1) == 0)
            wrong(t, "the output may not be an input of its type and layout");
        slot += t->c->present[i];
    }
    ck_assert_uint_eq(info.inputs, slot);
}

/* False: the emulator gave up. */
static bool call(trial *t, const opjit_kernel *kernel, const test_mode *mode)
{
    opjit_binding bindings[REF_INPUTS_MAX + 1];
    opjit_call call = OPJIT_CALL_INIT;
    opjit_error error = { 0 };
    test_executor executor;
    uint32_t count = 0;
    for (uint32_t i = 0; i < t->c->input_count; i++)
        if (t->c->present[i])
            bindings[count++] =
                (opjit_binding){ shared(t->c, i) ? t->output.data : t->inputs[i].data, t->c->inputs[i].bytes };
    bindings[count++] = (opjit_binding){ t->output.data, t->c->output.bytes };
    call.binding_count = count;
    call.bindings = bindings;
    test_executor_init(&executor, t->random, mode->how == TEST_THREADS);
    if (mode->how != TEST_CALL)
        call.executor = &executor.executor;
    memcpy(t->output.memory, t->output_before, t->output.size);
    const opjit_status status = opjit_kernel_call(kernel, &call, &error);
    if (status != OPJIT_OK && !test_excused(mode, status))
        wrong(t, error.message);
    return status == OPJIT_OK;
}

/* False: this machine can't run the mode's code. */
static bool run(trial *t, const test_mode *mode)
{
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_error error = { 0 };
    opjit_kernel *kernel = NULL;
    options.flags = mode->flags;
    options.level = mode->level;
    options.target = mode->target;
    const opjit_status status = test_compile_operator(t->context, t->op, &options, &kernel, &error);
    if (status == OPJIT_UNAVAILABLE)
        return false;
    if (status != OPJIT_OK)
        wrong(t, error.message);
    check_info(t, kernel);
    const bool called = call(t, kernel, mode);
    opjit_kernel_release(kernel);
    return called;
}

/* Interpreted, then in the mode; NULL: in any. */
static void check_operator(trial *t, const test_mode *mode)
{
    size_t count;
    make_buffers(t);
    ck_assert(run(t, &interpreted));
    expect(t);
    compare(t, "interpreted, unlike the reference");
    memcpy(t->interpreted, t->output.data, t->output.bytes);
    const test_mode *const list = test_modes(modes, MODE_COUNT, &count);
    mode = mode != NULL ? mode : &list[test_random_below(t->random, count)];
    if (run(t, mode)) {
        memcpy(t->output.copy, t->output_before, t->output.size);
        memcpy(t->output.expected, t->interpreted, t->output.bytes);
        compare(t, mode->name);
    }
    free_trial(t);
}

static void check_case(opjit_context *context, const ref_pointwise_row *row, test_cases cases, uint64_t n, bool across)
{
    opjit_error error = { 0 };
    pointwise_case c;
    test_random r;
    test_random_init(&r, cases.seed, (across ? 2000 : 1000) + (uint64_t)row->type, n);
    if (across)
        pointwise_case_across(&r, row, &c);
    else
        pointwise_case_random(&r, row, MOST_ELEMENTS, &c);
    trial t = { .c = &c, .random = &r, .context = context };
    snprintf(t.where, sizeof t.where, "OPJIT_SEED=0x%" PRIx64 " OPJIT_CASE=%" PRIu64 " %s", cases.seed, n,
             opjit_fe_op_type_name(row->type));
    const opjit_status status = opjit_operator_create(context, &c.op, &t.op, &error);
    if (status == OPJIT_LIMIT && c.output.interleaved)
        return;
    if (status != OPJIT_OK)
        wrong(&t, error.message);
    check_operator(&t, NULL);
}

START_TEST(results)
{
    const ref_pointwise_row *row = &ref_pointwise_rows[_i];
    const test_cases cases = test_cases_init(opjit_fe_op_type_name(row->type), CASES);
    opjit_context *context;
    if (ref_pointwise_row_of(row->type, 0) != row) /* an older row of the same operator */
        return;
    context = test_context_create();
    test_have_codegen(context);
    for (uint64_t n = cases.first; n < cases.end; n++)
        check_case(context, row, cases, n, false);
    opjit_context_destroy(context);
}
END_TEST

/* Inputs that are transposed in registers, or would be except for their sizes.  Only where elements go matters, so
 * these operators stand for all. */
static const DML_OPERATOR_TYPE across[] = {
    DML_OPERATOR_ELEMENT_WISE_IDENTITY, DML_OPERATOR_CAST,
    DML_OPERATOR_ELEMENT_WISE_IF,       DML_OPERATOR_ELEMENT_WISE_ADD,
    DML_OPERATOR_ELEMENT_WISE_CLIP,     DML_OPERATOR_ELEMENT_WISE_LOGICAL_EQUALS,
    DML_OPERATOR_ELEMENT_WISE_EXP,      DML_OPERATOR_ELEMENT_WISE_DEQUANTIZE_LINEAR,
};

START_TEST(results_across)
{
    const ref_pointwise_row *row = ref_pointwise_row_of(across[_i], 0);
    char title[64];
    snprintf(title, sizeof title, "%s across", opjit_fe_op_type_name(row->type));
    const test_cases cases = test_cases_init(title, CASES_ACROSS);
    opjit_context *context = test_context_create();
    test_have_codegen(context);
    for (uint64_t n = cases.first; n < cases.end; n++)
        check_case(context, row, cases, n, true);
    opjit_context_destroy(context);
}
END_TEST

/* inf times a number that rounds to 0 or to the smallest number: either is right. */
START_TEST(infinite_alpha)
{
    static const uint16_t given[] = { 0xd680, 0xd67f, 0xd600, 0xd4c0, 0x0000, 0xfbff }; /* -104, -103.9, -96, -76, 0 */
    const DML_TENSOR_DATA_TYPE types[2] = { DML_TENSOR_DATA_TYPE_FLOAT16 };
    opjit_context *context = test_context_create();
    test_random r;
    pointwise_case c;
    test_have_codegen(context);
    test_random_init(&r, 1, 1, 1);
    pointwise_case_plain(ref_pointwise_row_of(DML_OPERATOR_ACTIVATION_PARAMETRIC_SOFTPLUS, 0), types, 1, &c);
    DML_ACTIVATION_PARAMETRIC_SOFTPLUS_OPERATOR_DESC *desc = (void *)&c.desc;
    desc->Alpha = INFINITY;
    desc->Beta = 1;
    c.any_nan = true;
    trial t = { .c = &c, .random = &r, .context = context, .given = given, .where = "infinite Alpha" };
    ck_assert_int_eq(opjit_operator_create(context, &c.op, &t.op, NULL), OPJIT_OK);
    check_operator(&t, NULL);
    opjit_context_destroy(context);
}
END_TEST

/* More elements than a task has, the last of which are less than a vector: of each pair of widths. */
START_TEST(long_casts)
{
    static const DML_TENSOR_DATA_TYPE all[] = { DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_DATA_TYPE_FLOAT16,
                                                DML_TENSOR_DATA_TYPE_FLOAT64, DML_TENSOR_DATA_TYPE_UINT8,
                                                DML_TENSOR_DATA_TYPE_INT16,   DML_TENSOR_DATA_TYPE_INT32,
                                                DML_TENSOR_DATA_TYPE_UINT64 };
    enum { TYPES = sizeof all / sizeof *all, TASK = 65536 };
    static const test_mode quick = { .name = "quick, long", .level = OPJIT_LEVEL_QUICK };
    const test_cases cases = test_cases_init("long casts", TYPES * TYPES);
    opjit_context *context = test_context_create();
    test_have_codegen(context);
    for (uint64_t n = cases.first; n < cases.end; n++) {
        const DML_TENSOR_DATA_TYPE types[2] = { all[n / TYPES % TYPES], all[n % TYPES] };
        test_random r;
        pointwise_case c;
        test_random_init(&r, cases.seed, 3000, n);
        pointwise_case_plain(ref_pointwise_row_of(DML_OPERATOR_CAST, 0), types, 1, &c);
        c.output.sizes[0] = c.inputs[0].sizes[0] = TASK + 1 + (uint32_t)test_random_below(&r, 40);
        test_tensor_measure(&c.output);
        test_tensor_measure(&c.inputs[0]);
        c.any_nan = true;
        trial t = { .c = &c, .random = &r, .context = context };
        snprintf(t.where, sizeof t.where, "OPJIT_SEED=0x%" PRIx64 " OPJIT_CASE=%" PRIu64 " long casts", cases.seed, n);
        ck_assert_int_eq(opjit_operator_create(context, &c.op, &t.op, NULL), OPJIT_OK);
        check_operator(&t, &quick);
    }
    opjit_context_destroy(context);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("property.pointwise");
    TCase *tcase = tcase_create("random descriptors"), *across_case = tcase_create("across");
    SRunner *runner = srunner_create(suite);
    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase, results, 0, (int)ref_pointwise_row_count);
    tcase_set_timeout(across_case, 120);
    tcase_add_loop_test(across_case, results_across, 0, sizeof across / sizeof *across);
    tcase_add_test(tcase, infinite_alpha);
    tcase_add_test(across_case, long_casts);
    suite_add_tcase(suite, tcase);
    suite_add_tcase(suite, across_case);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
