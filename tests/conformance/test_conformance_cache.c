/* SPDX-License-Identifier: Apache-2.0 */
/* test_conformance_cache.c - the memory cache's contract: equal descriptors share a kernel, whatever memory they were
 * given in; a difference in any field that matters makes another kernel; statistics add up; kernels that are held
 * survive eviction and clearing. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/checker.h"

static opjit_kernel *compile(opjit_context *context, const test_case *c, const opjit_compile_options *options)
{
    opjit_operator *op = NULL;
    opjit_kernel *kernel = NULL;
    opjit_error error = { 0 };
    opjit_status status = opjit_operator_create(context, &c->op, &op, &error);
    if (status == OPJIT_OK)
        status = opjit_compile_operator(context, op, options, &kernel, &error);
    ck_assert_msg(status == OPJIT_OK, "%s", error.message);
    opjit_operator_release(op);
    return kernel;
}

static opjit_cache_stats stats_of(opjit_context *context)
{
    opjit_cache_stats stats = OPJIT_CACHE_STATS_INIT;
    ck_assert_int_eq(opjit_cache_get_stats(context, &stats, NULL), OPJIT_OK);
    return stats;
}

/* A packed 6 x 9 DIAGONAL_MATRIX1 with input, FLOAT32. */
static void make_case(test_case *c)
{
    DML_DIAGONAL_MATRIX1_OPERATOR_DESC *d = &c->desc.diagonal_matrix1;
    memset(c, 0, sizeof *c);
    c->op = (DML_OPERATOR_DESC){ DML_OPERATOR_DIAGONAL_MATRIX1, d };
    for (int i = 0; i < 2; i++) {
        test_tensor *t = i == 0 ? &c->output : &c->input;
        test_tensor_link(t, DML_TENSOR_DATA_TYPE_FLOAT32, 2);
        t->sizes[0] = 6;
        t->sizes[1] = 9;
        t->strides[0] = 9;
        t->strides[1] = 1;
        test_tensor_measure(t);
    }
    c->has_input = true;
    d->InputTensor = &c->input.desc;
    d->OutputTensor = &c->output.desc;
    d->ValueDataType = DML_TENSOR_DATA_TYPE_FLOAT32;
    d->Value.Float32 = 3;
    d->DiagonalFillBegin = -1;
    d->DiagonalFillEnd = 2;
}

static void no_input(test_case *c) { c->desc.diagonal_matrix1.InputTensor = NULL; }
static void value(test_case *c) { c->desc.diagonal_matrix1.Value.Float32 = 4; }
static void value_sign(test_case *c) { c->desc.diagonal_matrix1.Value.Float32 = -3; }
static void begin(test_case *c) { c->desc.diagonal_matrix1.DiagonalFillBegin = 0; }
static void end(test_case *c) { c->desc.diagonal_matrix1.DiagonalFillEnd = 3; }
static void height(test_case *c) { c->input.sizes[0] = c->output.sizes[0] = 7; }
static void width(test_case *c) { c->input.sizes[1] = c->output.sizes[1] = 8; }
static void output_stride(test_case *c) { c->output.buffer.Strides = c->output.strides; c->output.strides[0] = 10; }
static void input_stride(test_case *c) { c->input.buffer.Strides = c->input.strides; c->input.strides[0] = 0; }
static void output_bytes(test_case *c) { c->output.buffer.TotalTensorSizeInBytes = c->output.bytes + 4; }
static void output_align(test_case *c) { c->output.buffer.GuaranteedBaseOffsetAlignment = 32; }
static void input_align(test_case *c) { c->input.buffer.GuaranteedBaseOffsetAlignment = 32; }
static void int_type(test_case *c)
{
    c->input.buffer.DataType = c->output.buffer.DataType = DML_TENSOR_DATA_TYPE_INT32;
    c->desc.diagonal_matrix1.ValueDataType = DML_TENSOR_DATA_TYPE_INT32;
}
/* Ignored, so the same kernel: bytes after the element, and strides that spell out the packed ones. */
static void union_tail(test_case *c) { c->desc.diagonal_matrix1.Value.UInt64 |= UINT64_C(0xdead) << 48; }
static void written_strides(test_case *c) { c->output.buffer.Strides = c->output.strides; }

#define ROW(name, same) { #name, name, same }
static const struct { const char *name; void (*change)(test_case *c); bool same; } changes[] = {
    ROW(no_input, false),     ROW(value, false),        ROW(value_sign, false),   ROW(begin, false),
    ROW(end, false),          ROW(height, false),       ROW(width, false),        ROW(output_stride, false),
    ROW(input_stride, false), ROW(output_bytes, false), ROW(output_align, false), ROW(input_align, false),
    ROW(int_type, false),     ROW(union_tail, true),    ROW(written_strides, true),
};

static opjit_compile_options interpreted(void)
{
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    options.flags = OPJIT_COMPILE_INTERPRET;
    return options;
}

START_TEST(a_changed_field_is_another_kernel)
{
    const opjit_compile_options options = interpreted();
    opjit_context *context = test_context_create();
    test_case one, other;
    make_case(&one);
    make_case(&other);
    changes[_i].change(&other);
    opjit_kernel *first = compile(context, &one, &options);
    opjit_kernel *again = compile(context, &one, &options);
    opjit_kernel *changed = compile(context, &other, &options);
    ck_assert_ptr_eq(first, again);
    ck_assert_msg((first == changed) == changes[_i].same, "%s", changes[_i].name);
    opjit_kernel_release(first);
    opjit_kernel_release(again);
    opjit_kernel_release(changed);
    opjit_context_destroy(context);
}
END_TEST

START_TEST(a_changed_option_is_another_kernel)
{
    static const char *const late_begin[] = { "DiagonalFillBegin" };
    static const char *const late_both[] = { "DiagonalFillBegin", "DiagonalFillEnd" };
    static const char *const late_turned[] = { "DiagonalFillEnd", "DiagonalFillBegin" };
    opjit_context *context = test_context_create();
    opjit_compile_options options[8];
    opjit_kernel *kernels[8];
    const int count = test_have_codegen(context) ? 8 : 4;
    for (int i = 0; i < count; i++)
        options[i] = interpreted();
    options[1].late = late_begin, options[1].late_count = 1;
    options[2].late = late_both, options[2].late_count = 2;
    options[3].late = late_turned, options[3].late_count = 2;
    for (int i = 4; i < count; i++)
        options[i].flags = 0;
    options[4].level = OPJIT_LEVEL_QUICK;
    options[5].level = OPJIT_LEVEL_PEAK;
    options[6].target = "cpu:x86-64-v1";
    options[7].late = late_begin, options[7].late_count = 1;
    for (int i = 0; i < count; i++) {
        test_case c;
        make_case(&c);
        kernels[i] = compile(context, &c, &options[i]);
        opjit_kernel *again = compile(context, &c, &options[i]);
        ck_assert_ptr_eq(kernels[i], again);
        opjit_kernel_release(again);
        for (int k = 0; k < i; k++)
            ck_assert_msg(kernels[k] != kernels[i], "options %d and %d share a kernel", k, i);
    }
    for (int i = 0; i < count; i++)
        opjit_kernel_release(kernels[i]);
    opjit_context_destroy(context);
}
END_TEST

START_TEST(statistics_add_up)
{
    opjit_compile_options options = interpreted();
    opjit_context *context = test_context_create();
    test_case c;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 10; i++) {
            make_case(&c);
            c.desc.diagonal_matrix1.DiagonalFillEnd = 2 + i;
            opjit_kernel_release(compile(context, &c, &options));
        }
    }
    opjit_cache_stats stats = stats_of(context);
    ck_assert_uint_eq(stats.misses, 10);
    ck_assert_uint_eq(stats.hits, 20);
    ck_assert_uint_eq(stats.entries, 10);
    ck_assert_uint_gt(stats.bytes, 0);
    ck_assert_uint_le(stats.bytes, stats.capacity);
    opjit_kernel *held = compile(context, &c, &options);
    ck_assert_int_eq(opjit_cache_clear(context, NULL), OPJIT_OK);
    stats = stats_of(context);
    ck_assert_uint_eq(stats.entries, 0);
    ck_assert_uint_eq(stats.bytes, 0);
    opjit_kernel *fresh = compile(context, &c, &options);
    ck_assert_ptr_ne(held, fresh);
    options.flags |= OPJIT_COMPILE_NO_CACHE;
    opjit_kernel *apart = compile(context, &c, &options);
    ck_assert_ptr_ne(apart, fresh);
    ck_assert_uint_eq(stats_of(context).entries, 1);
    opjit_context_destroy(context); /* kernels outlive it */
    opjit_kernel_release(held);
    opjit_kernel_release(fresh);
    opjit_kernel_release(apart);
}
END_TEST

START_TEST(the_bound_is_kept)
{
    opjit_context_options context_options = OPJIT_CONTEXT_OPTIONS_INIT;
    const opjit_compile_options options = interpreted();
    opjit_context *context = NULL;
    context_options.cache_bytes = 1u << 20; /* an interpreted kernel takes tens of KiB */
    ck_assert_int_eq(opjit_context_create(&context_options, &context, NULL), OPJIT_OK);
    for (int i = 0; i < 2000; i++) {
        test_case c;
        make_case(&c);
        c.desc.diagonal_matrix1.Value.Int32 = i;
        opjit_kernel_release(compile(context, &c, &options));
        const opjit_cache_stats now = stats_of(context);
        ck_assert_uint_le(now.bytes, now.capacity);
    }
    const opjit_cache_stats stats = stats_of(context);
    ck_assert_uint_eq(stats.capacity, 1u << 20);
    ck_assert_uint_gt(stats.evictions, 0);
    ck_assert_uint_eq(stats.misses, 2000);
    ck_assert_uint_eq(stats.entries + stats.evictions, 2000);
    opjit_context_destroy(context);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("conformance.cache");
    TCase *cases = tcase_create("memory cache");
    tcase_add_loop_test(cases, a_changed_field_is_another_kernel, 0, sizeof changes / sizeof *changes);
    tcase_add_test(cases, a_changed_option_is_another_kernel);
    tcase_add_test(cases, statistics_add_up);
    tcase_add_test(cases, the_bound_is_kept);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
