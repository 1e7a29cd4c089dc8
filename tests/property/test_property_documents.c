/* SPDX-License-Identifier: Apache-2.0 */
/* test_property_documents.c - the examples in the operators' documents, through the reference and through the library,
 * and the reference's own number conversions: the basis of all random tests.  Two errata: DIAGONAL_MATRIX1's first
 * example prints 1 for a Value of 7, and a Delta of -2 for UINT8 means 254. */
#include <check.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/reference/reference.h"
#include "tests/support/checker.h"

typedef struct example {
    const char *name;
    DML_OPERATOR_TYPE type;
    DML_TENSOR_DATA_TYPE dtype;
    uint32_t rank, sizes[4];
    int32_t begin, end;              /* DIAGONAL_MATRIX: begin is Offset */
    double value, delta;
    const float *input, *expected;
} example;

static const float grid[] = { 4, 7, 3, 7, 9, 1, 2, 8, 6, 9, 9, 4, 1, 8, 7, 4, 3, 4, 2, 4 };

#define NUMBERS(...) ((const float[]){ __VA_ARGS__ })
#define F32 DML_TENSOR_DATA_TYPE_FLOAT32
#define U8 DML_TENSOR_DATA_TYPE_UINT8
#define MATRIX DML_OPERATOR_DIAGONAL_MATRIX
#define MATRIX1 DML_OPERATOR_DIAGONAL_MATRIX1
#define SEQUENCE DML_OPERATOR_FILL_VALUE_SEQUENCE

static const example examples[] = {
    { "identity", MATRIX, F32, 4, { 1, 1, 3, 3 }, 0, 0, 1, 0, NULL, NUMBERS(1, 0, 0, 0, 1, 0, 0, 0, 1) },
    { "ones shifted right", MATRIX, F32, 4, { 1, 1, 3, 3 }, 1, 0, 1, 0, NULL, NUMBERS(0, 1, 0, 0, 0, 1, 0, 0, 0) },
    { "ones shifted down", MATRIX, F32, 4, { 1, 1, 3, 2 }, -1, 0, 1, 0, NULL, NUMBERS(0, 0, 1, 0, 0, 1) },
    { "ones shifted out", MATRIX, F32, 4, { 1, 1, 3, 2 }, -3, 0, 1, 0, NULL, NUMBERS(0, 0, 0, 0, 0, 0) },
    { "a fraction is cut off", MATRIX, U8, 2, { 2, 2 }, 0, 0, 10.6, 0, NULL, NUMBERS(10, 0, 0, 10) },
    { "default identity", MATRIX1, F32, 2, { 4, 5 }, 0, 1, 1, 0, NULL,
      NUMBERS(1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0) },
    { "strip of three", MATRIX1, F32, 2, { 4, 5 }, 0, 3, 7, 0, NULL,
      NUMBERS(7, 7, 7, 0, 0, 0, 7, 7, 7, 0, 0, 0, 7, 7, 7, 0, 0, 0, 7, 7) },
    { "upper triangle", MATRIX1, F32, 2, { 4, 5 }, INT_MIN, 1, 0, 0, grid,
      NUMBERS(0, 7, 3, 7, 9, 0, 0, 8, 6, 9, 0, 0, 0, 8, 7, 0, 0, 0, 0, 4) },
    { "diagonal kept", MATRIX1, F32, 2, { 4, 5 }, 1, 0, 0, 0, grid,
      NUMBERS(4, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 2, 0) },
    { "ascending", SEQUENCE, F32, 4, { 1, 1, 1, 3 }, 0, 0, 3, 2, NULL, NUMBERS(3, 5, 7) },
    { "descending bytes", SEQUENCE, U8, 4, { 1, 1, 2, 2 }, 0, 0, 10, 254, NULL, NUMBERS(10, 8, 6, 4) },
};

static DML_SCALAR_UNION scalar(DML_TENSOR_DATA_TYPE type, double value)
{
    DML_SCALAR_UNION u = { .UInt64 = 0 };
    if (type == U8)
        u.UInt8 = (uint8_t)value;
    else
        u.Float32 = (float)value;
    return u;
}

static void make_case(test_case *c, const example *e)
{
    test_desc *d = &c->desc;
    memset(c, 0, sizeof *c);
    c->op = (DML_OPERATOR_DESC){ e->type, d };
    c->has_input = e->input != NULL;
    test_tensor_link(&c->output, e->dtype, e->rank);
    test_tensor_link(&c->input, e->dtype, e->rank);
    memcpy(c->output.sizes, e->sizes, sizeof e->sizes);
    memcpy(c->input.sizes, e->sizes, sizeof e->sizes);
    test_tensor_measure(&c->output);
    test_tensor_measure(&c->input);
    if (e->type == MATRIX)
        d->diagonal_matrix =
            (DML_DIAGONAL_MATRIX_OPERATOR_DESC){ &c->output.desc, e->begin, (float)e->value };
    else if (e->type == MATRIX1)
        d->diagonal_matrix1 = (DML_DIAGONAL_MATRIX1_OPERATOR_DESC){
            c->has_input ? &c->input.desc : NULL, &c->output.desc, e->dtype,
            scalar(e->dtype, e->value),           e->begin,        e->end,
        };
    else
        d->fill_value_sequence = (DML_FILL_VALUE_SEQUENCE_OPERATOR_DESC){
            &c->output.desc, e->dtype, scalar(e->dtype, e->value), scalar(e->dtype, e->delta),
        };
}

static opjit_status run_library(const test_case *c, const float *input, void *output)
{
    const opjit_binding bindings[] = { { (void *)(uintptr_t)input, c->input.bytes }, { output, c->output.bytes } };
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_call call = OPJIT_CALL_INIT;
    opjit_context *context = test_context_create();
    opjit_operator *op = NULL;
    opjit_kernel *kernel = NULL;
    options.flags = OPJIT_COMPILE_INTERPRET;
    call.bindings = c->has_input ? bindings : bindings + 1;
    call.binding_count = c->has_input ? 2 : 1;
    opjit_status status = opjit_operator_create(context, &c->op, &op, NULL);
    if (status == OPJIT_OK)
        status = opjit_compile_operator(context, op, &options, &kernel, NULL);
    if (status == OPJIT_OK)
        status = opjit_kernel_call(kernel, &call, NULL);
    opjit_kernel_release(kernel);
    opjit_operator_release(op);
    opjit_context_destroy(context);
    return status;
}

static void expect_numbers(const example *e, const test_case *c, const void *output, const char *who)
{
    const ref_tensor t = ref_tensor_of(&c->output.desc);
    for (uint64_t i = 0; i < ref_tensor_elements(&t); i++) {
        const uint32_t bits = (uint32_t)ref_load(&t, output, i);
        float got = (float)bits;
        if (e->dtype == F32)
            memcpy(&got, &bits, sizeof got);
        ck_assert_msg(got == e->expected[i], "%s, %s: element %d is %g, not %g", e->name, who, (int)i, (double)got,
                      (double)e->expected[i]);
    }
}

START_TEST(an_example_of_the_documents)
{
    const example *e = &examples[_i];
    float output[32];
    test_case c;
    make_case(&c, e);
    memset(output, 0xff, sizeof output);
    test_case_reference(&c, e->input, output);
    expect_numbers(e, &c, output, "reference");
    memset(output, 0xff, sizeof output);
    ck_assert_int_eq(run_library(&c, e->input, output), OPJIT_OK);
    expect_numbers(e, &c, output, "library");
}
END_TEST

/* --- the reference's conversions ---------------------------------------------------------------------------------- */
START_TEST(every_half_survives_the_way_to_float_and_back)
{
    for (uint32_t h = 0; h < 0x10000; h++) {
        const float f = ref_float_of_half((uint16_t)h);
        if (ref_is_nan(DML_TENSOR_DATA_TYPE_FLOAT16, h))
            ck_assert(isnan(f) && ref_is_nan(DML_TENSOR_DATA_TYPE_FLOAT16, ref_half_of_float(f)));
        else
            ck_assert_msg(ref_half_of_float(f) == h, "0x%04x", h);
    }
    ck_assert(ref_float_of_half(0x3c00) == 1.0f && ref_float_of_half(0x7bff) == 65504.0f &&
              ref_float_of_half(0x0001) == 5.9604644775390625e-8f && ref_float_of_half(0xc000) == -2.0f);
}
END_TEST

START_TEST(halfway_goes_to_the_even_half)
{
    for (uint32_t h = 0; h < 0x7bff; h++) {
        const float low = ref_float_of_half((uint16_t)h), high = ref_float_of_half((uint16_t)(h + 1));
        const float middle = (float)(((double)low + (double)high) / 2); /* exact: one bit more than a half has */
        ck_assert_uint_eq(ref_half_of_float(middle), h % 2 == 0 ? h : h + 1);
        ck_assert_uint_eq(ref_half_of_float(nextafterf(middle, 0)), h);
        ck_assert_uint_eq(ref_half_of_float(nextafterf(middle, HUGE_VALF)), h + 1);
        ck_assert_uint_eq(ref_half_of_float(-middle), 0x8000u | (h % 2 == 0 ? h : h + 1));
    }
    ck_assert_uint_eq(ref_half_of_float(65519.996f), 0x7bff);
    ck_assert_uint_eq(ref_half_of_float(65520.0f), 0x7c00);
    ck_assert_uint_eq(ref_half_of_float(-HUGE_VALF), 0xfc00);
}
END_TEST

static const struct { DML_TENSOR_DATA_TYPE type; float value; uint64_t bits; } conversions[] = {
    { DML_TENSOR_DATA_TYPE_INT8, 10.6f, 10 },
    { DML_TENSOR_DATA_TYPE_INT8, -10.6f, 0xfffffffffffffff6 },
    { DML_TENSOR_DATA_TYPE_INT8, 127.9f, 127 },
    { DML_TENSOR_DATA_TYPE_INT8, 128.0f, 127 },
    { DML_TENSOR_DATA_TYPE_INT8, -129.0f, 0xffffffffffffff80 },
    { DML_TENSOR_DATA_TYPE_UINT8, -0.9f, 0 },
    { DML_TENSOR_DATA_TYPE_UINT8, -5.0f, 0 },
    { DML_TENSOR_DATA_TYPE_UINT8, 256.0f, 255 },
    { DML_TENSOR_DATA_TYPE_UINT16, 1e9f, 65535 },
    { DML_TENSOR_DATA_TYPE_INT32, 2147483648.0f, 0x7fffffff },
    { DML_TENSOR_DATA_TYPE_INT32, -1e20f, 0xffffffff80000000 },
    { DML_TENSOR_DATA_TYPE_UINT32, 4294967040.0f, 0xffffff00 },
    { DML_TENSOR_DATA_TYPE_UINT32, 4294967296.0f, 0xffffffff },
    { DML_TENSOR_DATA_TYPE_INT64, 9223371487098961920.0f, 0x7fffff8000000000 },
    { DML_TENSOR_DATA_TYPE_INT64, HUGE_VALF, 0x7fffffffffffffff },
    { DML_TENSOR_DATA_TYPE_INT64, -HUGE_VALF, 0x8000000000000000 },
    { DML_TENSOR_DATA_TYPE_UINT64, 1e30f, 0xffffffffffffffff },
    { DML_TENSOR_DATA_TYPE_UINT64, NAN, 0 },
    { DML_TENSOR_DATA_TYPE_INT16, NAN, 0 },
    { DML_TENSOR_DATA_TYPE_FLOAT16, -0.0f, 0x8000 },
    { DML_TENSOR_DATA_TYPE_FLOAT64, 0.1f, 0x3fb99999a0000000 },
};

START_TEST(a_float_as_an_element)
{
    ck_assert_uint_eq(ref_element_of_float(conversions[_i].type, conversions[_i].value), conversions[_i].bits);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("property.documents");
    TCase *cases = tcase_create("examples and conversions");
    tcase_add_loop_test(cases, an_example_of_the_documents, 0, sizeof examples / sizeof *examples);
    tcase_add_test(cases, every_half_survives_the_way_to_float_and_back);
    tcase_add_test(cases, halfway_goes_to_the_even_half);
    tcase_add_loop_test(cases, a_float_as_an_element, 0, sizeof conversions / sizeof *conversions);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
