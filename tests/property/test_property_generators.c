/* SPDX-License-Identifier: Apache-2.0 */
/* test_property_generators.c - thousands of random descriptors of each generator: whichever way the kernel is made and
 * run, the whole memory afterwards equals the reference's bit for bit.  To run one case of a failure again:
 * OPJIT_SEED=<seed> OPJIT_CASE=<number> ./property_generators; OPJIT_CASES for longer runs. */
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/checker.h"

#define INTERPRET OPJIT_COMPILE_INTERPRET
#define NO_CACHE OPJIT_COMPILE_NO_CACHE

static const test_mode interpreted[] = {
    { .name = "interpreted", .flags = INTERPRET },
};

static const test_mode interpreted_variations[] = {
    { .name = "interpreted, pieces", .flags = INTERPRET, .how = TEST_PIECES },
    { .name = "interpreted, threads", .flags = INTERPRET, .how = TEST_THREADS },
    { .name = "interpreted, closure", .flags = INTERPRET, .how = TEST_CLOSURE },
    { .name = "interpreted, late 1", .flags = INTERPRET, .late = 1 },
    { .name = "interpreted, late 2", .flags = INTERPRET, .late = 2 },
    { .name = "interpreted, late 3", .flags = INTERPRET, .late = 3 },
    { .name = "interpreted, late 4", .flags = INTERPRET, .late = 4 },
    { .name = "interpreted, late 5", .flags = INTERPRET, .late = 5 },
    { .name = "interpreted, late 6", .flags = INTERPRET, .late = 6 },
    { .name = "interpreted, late 7", .flags = INTERPRET, .late = 7 },
};

static const test_mode compiled[] = {
    { .name = "compiled" },
};

static const test_mode compiled_variations[] = {
    { .name = "compiled, no cache", .flags = NO_CACHE },
    { .name = "compiled, pieces", .how = TEST_PIECES },
    { .name = "compiled, threads", .how = TEST_THREADS },
    { .name = "compiled, closure", .how = TEST_CLOSURE },
    { .name = "compiled, late closure", .how = TEST_CLOSURE, .late = 7 },
    { .name = "compiled, late 1", .late = 1 },
    { .name = "compiled, late 2", .late = 2 },
    { .name = "compiled, late 3", .late = 3 },
    { .name = "compiled, late 4", .late = 4 },
    { .name = "compiled, late 5", .late = 5 },
    { .name = "compiled, late 6", .late = 6 },
    { .name = "compiled, late 7, pieces", .late = 7, .how = TEST_PIECES },
};

static void run(const char *name, int operator_index, uint64_t cases, const test_mode *own, size_t own_count,
                bool compile)
{
    char title[96];
    size_t mode_count;
    const test_mode *modes = test_modes(own, own_count, &mode_count);
    test_suite suite = {
        .name = title,
        .context = test_context_create(),
        .type = test_operators[operator_index],
        .cases = cases,
        .most_elements = 4096,
        .modes = modes,
        .mode_count = (uint32_t)mode_count,
        .one_mode_each = true,
    };
    snprintf(title, sizeof title, "%s %s", test_operator_name(suite.type), name);
    if (!compile || test_have_codegen(suite.context))
        test_suite_run(&suite);
    opjit_context_destroy(suite.context);
}

#define RUN(modes, cases, compile) run(#modes, _i, cases, modes, sizeof(modes) / sizeof *(modes), compile)

START_TEST(interpreted_results)
{
    RUN(interpreted, 1000, false);
}
END_TEST

START_TEST(interpreted_variation_results)
{
    RUN(interpreted_variations, 800, false);
}
END_TEST

START_TEST(compiled_results)
{
    RUN(compiled, 1500, true);
}
END_TEST

START_TEST(compiled_variation_results)
{
    RUN(compiled_variations, 1200, true);
}
END_TEST

/* More elements than FLOAT32 has consecutive integers: the index itself is rounded.  Compiled, because it takes a
 * while. */
static void run_long(opjit_context *context, DML_TENSOR_DATA_TYPE type, uint64_t start, uint64_t delta)
{
    static const test_mode mode = { .name = "compiled, threads", .how = TEST_THREADS };
    char message[512] = "";
    test_random r;
    test_case c;
    memset(&c, 0, sizeof c);
    test_random_init(&r, 1, 2, 3);
    test_tensor_link(&c.output, type, 2);
    c.output.sizes[0] = 3;
    c.output.sizes[1] = (1u << 24) / 3 + 1001;
    test_tensor_measure(&c.output);
    c.elements = (uint64_t)c.output.sizes[0] * c.output.sizes[1];
    c.op = (DML_OPERATOR_DESC){ DML_OPERATOR_FILL_VALUE_SEQUENCE, &c.desc };
    c.desc.fill_value_sequence = (DML_FILL_VALUE_SEQUENCE_OPERATOR_DESC){
        &c.output.desc,
        type,
        { .UInt64 = start },
        { .UInt64 = delta },
    };
    const test_outcome outcome = test_check(context, &r, &c, &mode, message, sizeof message);
    ck_assert_msg(outcome == TEST_PASSED, "%s: %s", test_type_name(type), message);
}

START_TEST(indices_beyond_2_to_24)
{
    opjit_context *context = test_context_create();
    if (test_have_codegen(context)) {
        run_long(context, DML_TENSOR_DATA_TYPE_FLOAT32, 0x3f000000, 0x3f800000); /* 0.5 + e */
        run_long(context, DML_TENSOR_DATA_TYPE_FLOAT32, 0x4b800000, 0xbdcccccd); /* 2^24 - 0.1 e */
        run_long(context, DML_TENSOR_DATA_TYPE_FLOAT16, 0xbc00, 0x0001);         /* -1 + 2^-24 e */
    }
    opjit_context_destroy(context);
}
END_TEST

/* Long rows that all begin at different offsets in their lines: a piece and two cuts each. */
static void run_odd(opjit_context *context, DML_TENSOR_DATA_TYPE type, bool has_input, int32_t begin)
{
    static const test_mode mode = { .name = "compiled, threads", .how = TEST_THREADS };
    char message[512] = "";
    test_random r;
    test_case c;
    memset(&c, 0, sizeof c);
    test_random_init(&r, 1, 2, 3);
    test_tensor_link(&c.output, type, 2);
    c.output.sizes[0] = 5;
    c.output.sizes[1] = 2501;
    test_tensor_measure(&c.output);
    c.elements = 5 * 2501;
    c.has_input = has_input;
    test_tensor_link(&c.input, type, 2);
    memcpy(c.input.sizes, c.output.sizes, sizeof c.input.sizes);
    test_tensor_measure(&c.input);
    c.op = (DML_OPERATOR_DESC){ DML_OPERATOR_DIAGONAL_MATRIX1, &c.desc };
    c.desc.diagonal_matrix1 = (DML_DIAGONAL_MATRIX1_OPERATOR_DESC){
        has_input ? &c.input.desc : NULL, &c.output.desc, type, { .UInt64 = 77 }, begin, begin + 1001,
    };
    const test_outcome outcome = test_check(context, &r, &c, &mode, message, sizeof message);
    ck_assert_msg(outcome == TEST_PASSED, "%s: %s", test_type_name(type), message);
}

START_TEST(rows_of_odd_width)
{
    static const DML_TENSOR_DATA_TYPE types[] = { DML_TENSOR_DATA_TYPE_UINT8, DML_TENSOR_DATA_TYPE_FLOAT16,
                                                  DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_DATA_TYPE_INT64 };
    opjit_context *context = test_context_create();
    for (int32_t begin = -3; begin < 2000 && test_have_codegen(context); begin += 400)
        run_odd(context, types[_i], begin > 0, begin);
    opjit_context_destroy(context);
}
END_TEST

/* Sequences that overflow, or whose values become constant for another reason, from the first element or a later one
 * on, for runs below, at and above the length that is worth a loop.  Rows are dense, or begin anywhere. */
typedef struct resting {
    DML_TENSOR_DATA_TYPE type;
    uint64_t start, delta;
    uint32_t first; /* the element */
} resting;

static void run_sequence(opjit_context *context, const resting *s, uint32_t rows, uint32_t columns, uint32_t gap)
{
    static const test_mode modes[] = {
        { .name = "compiled" },
        { .name = "compiled, pieces", .how = TEST_PIECES },
        { .name = "compiled, threads", .how = TEST_THREADS },
        { .name = "compiled, peak", .level = OPJIT_LEVEL_PEAK },
        { .name = "compiled, late", .late = 3 },
        { .name = "interpreted", .flags = INTERPRET },
    };
    test_random r;
    test_case c;
    memset(&c, 0, sizeof c);
    test_random_init(&r, 1, rows, columns);
    test_tensor_link(&c.output, s->type, 2);
    c.output.sizes[0] = rows;
    c.output.sizes[1] = columns;
    c.output.strides[0] = columns + gap;
    c.output.strides[1] = 1;
    c.output.buffer.Strides = gap != 0 ? c.output.strides : NULL;
    test_tensor_measure(&c.output);
    c.elements = (uint64_t)rows * columns;
    c.op = (DML_OPERATOR_DESC){ DML_OPERATOR_FILL_VALUE_SEQUENCE, &c.desc };
    c.desc.fill_value_sequence = (DML_FILL_VALUE_SEQUENCE_OPERATOR_DESC){
        &c.output.desc,
        s->type,
        { .UInt64 = s->start },
        { .UInt64 = s->delta },
    };
    for (size_t m = 0; m < sizeof modes / sizeof *modes; m++) {
        char message[512] = "";
        const test_outcome outcome = test_check(context, &r, &c, &modes[m], message, sizeof message);
        ck_assert_msg(outcome == TEST_PASSED, "%s %" PRIx64 " + e * %" PRIx64 ", %u x %u + %u, %s: %s",
                      test_type_name(s->type), s->start, s->delta, rows, columns, gap, modes[m].name, message);
    }
}

#define HALF DML_TENSOR_DATA_TYPE_FLOAT16
static const resting resting_sequences[] = {
    { HALF, 0x4200, 0x4000, 32759 }, /* 3 + 2 e */
    { HALF, 0x4200, 0xc800, 8191 },  /* 3 - 8 e */
    { HALF, 0xfbff, 0x6400, 128 },   /* -65504 + 1024 e */
    { HALF, 0x4e66, 0x5059, 1884 },  /* 25.59375 + 34.78125 e */
    { HALF, 0x7bff, 0x4000, 8 },     /* 65504 + 2 e */
    { HALF, 0x4200, 0x7c00, 1 },     /* 3 + inf e: NaN first */
    { HALF, 0x4200, 0xfc00, 1 },
    { HALF, 0x4200, 0x0000, 0 },
    { HALF, 0x8000, 0x8000, 0 }, /* -0 + -0 e */
    { HALF, 0x8000, 0x0000, 0 },
    { HALF, 0x7c00, 0xc000, 0 }, /* inf - 2 e */
    { HALF, 0xfc00, 0x7c00, 0 }, /* -inf + inf e */
    { HALF, 0x7e01, 0x4000, 0 }, /* NaN */
    { HALF, 0x4200, 0x7e01, 0 },
    { HALF, 0x7400, 0x0001, 0 },                                                     /* 16384 + 2^-24 e */
    { DML_TENSOR_DATA_TYPE_FLOAT32, 0x40400000, 0x78800000, 16384 },                 /* 3 + 2^114 e */
    { DML_TENSOR_DATA_TYPE_FLOAT32, 0xff7fffff, 0x3f800000, 0 },                     /* -largest + e */
    { DML_TENSOR_DATA_TYPE_FLOAT64, 0x7ff0000000000000, 0xff10000000000000, 16384 }, /* inf - 2^1010 e: NaN */
    { DML_TENSOR_DATA_TYPE_FLOAT64, 0x4008000000000000, 0x7f10000000000000, 16384 },
};

START_TEST(sequences_that_come_to_rest)
{
    const resting *s = &resting_sequences[_i];
    opjit_context *context = test_context_create();
    for (uint32_t i = 0; i < 4 && test_have_codegen(context); i++)
        run_sequence(context, s, 1, s->first + (uint32_t[]){ 1, 1023, 1024, 5001 }[i], 0);
    if (test_have_codegen(context)) {
        run_sequence(context, s, 41, 997, 0);
        run_sequence(context, s, 41, 997, 22);
        run_sequence(context, s, 2003, 19, 3);
    }
    opjit_context_destroy(context);
}
END_TEST

/* Whole numbers in equal steps, for which rounds within one binade are not fully converted: ties of both kinds, and
 * each binade's end anywhere in a round. */
static const resting whole_sequences[] = {
    { HALF, 0x0000, 0x3c00, 60001 }, /* e */
    { HALF, 0x3c00, 0x3c00, 65519 }, /* 1 + e, up to the last one that is no infinity */
    { HALF, 0x4200, 0x4000, 32758 }, /* 3 + 2 e */
    { HALF, 0x4700, 0x4200, 20000 }, /* 7 + 3 e */
    { HALF, 0x64e3, 0x4500, 12800 }, /* 1251 + 5 e */
    { HALF, 0x4bc0, 0x4d20, 3150 },  /* 15.5 + 20.5 e: not whole */
    { HALF, 0x7b55, 0xc400, 15018 }, /* 60064 - 4 e, to less than 0 */
    { HALF, 0x7b55, 0xc200, 20020 }, /* 60064 - 3 e, down to 7 */
};

START_TEST(whole_numbers)
{
    const resting *s = &whole_sequences[_i];
    opjit_context *context = test_context_create();
    if (test_have_codegen(context)) {
        run_sequence(context, s, 1, s->first, 0);
        run_sequence(context, s, s->first / 2903 + 1, 2903, 0);
        run_sequence(context, s, s->first / 2903, 2903, 13);
    }
    opjit_context_destroy(context);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("property.generators");
    TCase *cases = tcase_create("random descriptors");
    tcase_add_loop_test(cases, interpreted_results, 0, TEST_OPERATOR_COUNT);
    tcase_add_loop_test(cases, interpreted_variation_results, 0, TEST_OPERATOR_COUNT);
    tcase_add_loop_test(cases, compiled_results, 0, TEST_OPERATOR_COUNT);
    tcase_add_loop_test(cases, compiled_variation_results, 0, TEST_OPERATOR_COUNT);
    tcase_add_test(cases, indices_beyond_2_to_24);
    tcase_add_loop_test(cases, rows_of_odd_width, 0, 4);
    tcase_add_loop_test(cases, sequences_that_come_to_rest, 0, sizeof resting_sequences / sizeof *resting_sequences);
    tcase_add_loop_test(cases, whole_numbers, 0, sizeof whole_sequences / sizeof *whole_sequences);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
