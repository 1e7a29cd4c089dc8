/* SPDX-License-Identifier: Apache-2.0 */
/* test_fe_name_set.c - names by hash: found, not found, in order; and that 10,000 kernels' names are checked as fast as
 * 1,000 each. */
#define _POSIX_C_SOURCE 200809L
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <opjit/artifact.h>

#include "runtime/base/name_set.h"

enum { NAMES = 10000 };

static char texts[NAMES][16];

/* Numbers with zeros in front, in an order that strcmp would not give. */
static const char *name_of(uint32_t i)
{
    snprintf(texts[i], sizeof texts[i], "k%05u", (unsigned)(i * UINT32_C(7919) % NAMES));
    return texts[i];
}

START_TEST(ten_thousand_names)
{
    name_set set = { 0 };
    rt_arena arena;
    opjit_rt_arena_init(&arena, &opjit_rt_default_allocator);
    ck_assert_uint_eq(opjit_rt_name_set_find(&set, "k00001", 6), NAME_SET_NONE);
    ck_assert_ptr_nonnull(opjit_rt_name_set_order(&set, &arena));
    for (uint32_t i = 0; i < NAMES; i++) {
        ck_assert_uint_eq(opjit_rt_name_set_find(&set, name_of(i), 6), NAME_SET_NONE);
        ck_assert(opjit_rt_name_set_add(&set, &arena, texts[i]));
    }
    for (uint32_t i = 0; i < NAMES; i++) {
        ck_assert_uint_eq(opjit_rt_name_set_find(&set, texts[i], 6), i);
        ck_assert_uint_eq(opjit_rt_name_set_find(&set, texts[i], 5), NAME_SET_NONE); /* the beginning of ten names */
    }
    const uint32_t *const order = opjit_rt_name_set_order(&set, &arena);
    ck_assert_ptr_nonnull(order);
    for (uint32_t i = 0; i + 1 < NAMES; i++)
        ck_assert_int_lt(strcmp(texts[order[i]], texts[order[i + 1]]), 0);
    opjit_rt_arena_free(&arena);
}
END_TEST

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Kernels of 10,000 names in one artifact: each is found by its name, a second one of that name is refused, and adding
 * the last thousand takes about as long as the first. */
START_TEST(ten_thousand_kernels)
{
    const uint32_t size = 4;
    const DML_BUFFER_TENSOR_DESC buffer = { DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_FLAG_NONE, 1, &size, NULL, 0, 0 };
    const DML_TENSOR_DESC tensor = { DML_TENSOR_TYPE_BUFFER, &buffer };
    const DML_FILL_VALUE_CONSTANT_OPERATOR_DESC fill = { &tensor, DML_TENSOR_DATA_TYPE_FLOAT32, { .Float32 = 1 } };
    const DML_OPERATOR_DESC desc = { DML_OPERATOR_FILL_VALUE_CONSTANT, &fill };
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_context *context = NULL;
    opjit_artifact *artifact = NULL;
    opjit_operator *op = NULL;
    opjit_error error = { 0 };
    double first = 0, last = 0;
    ck_assert_int_eq(opjit_context_create(NULL, &context, &error), OPJIT_OK);
    ck_assert_int_eq(opjit_operator_create(context, &desc, &op, &error), OPJIT_OK);
    ck_assert_int_eq(opjit_artifact_create(context, NULL, &artifact, &error), OPJIT_OK);
    for (uint32_t i = 0; i < NAMES; i++) {
        const double start = now();
        options.name = name_of(i);
        ck_assert_msg(opjit_artifact_add_operator(artifact, op, &options, &error) == OPJIT_OK, "%s", error.message);
        *(i < 1000 ? &first : i >= NAMES - 1000 ? &last : &(double){ 0 }) += now() - start;
    }
    ck_assert_msg(last < 4 * first + 0.2, "the first thousand took %g s, the last %g s", first, last);
    for (uint32_t i = 0; i < NAMES; i += 997) {
        ck_assert_uint_eq(opjit_artifact_find(artifact, texts[i]), i);
        options.name = texts[i];
        ck_assert_int_eq(opjit_artifact_add_operator(artifact, op, &options, &error), OPJIT_INVALID_ARGUMENT);
        ck_assert_str_eq(error.field, "name");
        ck_assert_str_eq(error.value, texts[i]);
    }
    ck_assert_uint_eq(opjit_artifact_find(artifact, "other"), OPJIT_ARTIFACT_NONE);
    ck_assert_uint_eq(opjit_artifact_find(artifact, NULL), OPJIT_ARTIFACT_NONE);
    ck_assert_uint_eq(opjit_artifact_find(NULL, "k00001"), OPJIT_ARTIFACT_NONE);
    opjit_artifact_destroy(artifact);
    opjit_operator_release(op);
    opjit_context_destroy(context);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("fe.name_set");
    TCase *tc = tcase_create("names");
    tcase_add_test(tc, ten_thousand_names);
    tcase_add_test(tc, ten_thousand_kernels);
    suite_add_tcase(s, tc);
    SRunner *runner = srunner_create(s);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
