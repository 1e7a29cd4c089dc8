/* SPDX-License-Identifier: Apache-2.0 */
/* test_rt_quotients.c - kernels whose sizes are quotients of a dynamic dimension: what calls run and what sizes they
 * report, metadata that is damaged there. */
#include <check.h>
#include <stdlib.h>

#include "tests/support/require.h"
#include "tests/unit/runtime/rt_damage.h"
#include "tests/unit/runtime/rt_sample.h"

/* In: n bytes, n from 1 to 9.  Out: every other one, (n + 1) / 2 of them.  One step, as often. */
enum { MOST_IN = 9, MOST_OUT = 5, FORMS = 2 * OPJIT_BUFFER_FORMS + 1, QUOTIENTS = 2 };

static counting memory;
static opjit_context *context;
static opjit_kernel *kernel;
static opjit_error error;
static sample s;
static rt_bytes image;
static opjit_param_info n_info;
static const char *const n_name[] = { "n" };
static opjit_size_form forms[FORMS];
static opjit_quotient quotients[OPJIT_MAX_POWERS];

static opjit_status interpret(void *user, uint32_t step, void *const *buffers, const uint64_t *values, void *shared,
                              void *scratch, uint64_t begin, uint64_t end, opjit_error *e)
{
    (void)user, (void)step, (void)values, (void)shared, (void)scratch, (void)e;
    for (uint64_t i = begin; i < end; i++)
        ((uint8_t *)buffers[1])[i] = ((const uint8_t *)buffers[0])[2 * i];
    return OPJIT_OK;
}

static const rt_kernel_hooks interpreting = { .interpret = interpret };

static void describe(void)
{
    static const opjit_size_form one = { 1, { 0, 0 }, { { 0 }, { 0 } }, 1, 1 },
                                 n = { 0, { 1, 0 }, { { 1 }, { 0 } }, 1, 1 },
                                 half = { 0, { 1, 0 }, { { 0, 0, 1 }, { 0 } }, 1, 1 };
    sample_init(&s);
    s.buffers[0] = sample_buffer(OPJIT_BUFFER_INPUT, MOST_IN);
    s.buffers[1] = sample_buffer(OPJIT_BUFFER_OUTPUT, MOST_OUT);
    n_info = (opjit_param_info){ DML_TENSOR_DATA_TYPE_INT64, 0, 1, MOST_IN };
    s.steps[0] = (opjit_step_info){ OPJIT_STEP_STAGE, SAMPLE_ADD_ONE, MOST_OUT, 2 };
    s.variants[0] = (opjit_variant_info){ 0, 0, 1 };
    for (uint32_t i = 0; i < FORMS; i++)
        forms[i] = one;
    forms[0] = forms[1] = n;
    forms[OPJIT_BUFFER_FORMS] = forms[OPJIT_BUFFER_FORMS + 1] = forms[FORMS - 1] = half;
    quotients[0] = (opjit_quotient){ .dim = 0, .plus = 0, .by = 3 };
    quotients[1] = (opjit_quotient){ .dim = 0, .plus = 1, .by = 2 };
}

static opjit_status build(void)
{
    s.source.steps = s.source.params = s.source.dims = 1;
    s.source.quotient_count = s.source.quotient_count == 0 ? QUOTIENTS : s.source.quotient_count;
    s.source.buffers = s.buffers;
    s.source.buffer_names = s.names;
    s.source.param_infos = &n_info;
    s.source.param_names = n_name;
    s.source.step_infos = s.steps;
    s.source.variant_infos = s.variants;
    s.source.forms = forms;
    s.source.quotients = quotients;
    return opjit_rt_image_build(&s.source, sample_code, 0, &image, &error);
}

static void setup(void)
{
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
    const opjit_allocator a = counting_allocator(&memory, 0);
    options.allocator = &a;
    ck_assert_msg(opjit_context_create(&options, &context, &error) == OPJIT_OK, "%s", error.message);
    kernel = NULL;
    opjit_rt_bytes_init(&image, &context->core->allocator);
    describe();
}

static void teardown(void)
{
    opjit_kernel_release(kernel);
    opjit_rt_bytes_free(&image);
    opjit_context_destroy(context);
    ck_assert_int_eq(memory.live, 0);
    ck_assert_int_eq(memory.bytes, 0);
}

START_TEST(every_size)
{
    _Alignas(64) uint8_t in[64], out[64];
    uint64_t n, bytes, sizes[OPJIT_MAX_RANK];
    opjit_binding bindings[] = { { in, 0 }, { out, 0 } };
    opjit_call call = OPJIT_CALL_INIT;

    ck_assert_msg(build() == OPJIT_OK, "%s", error.message);
    ck_assert_msg(opjit_rt_kernel_create(context->core, image.data, image.size, NULL, 0, &interpreting, NULL, &kernel,
                                         &error) == OPJIT_OK,
                  "%s", error.message);
    call.bindings = bindings;
    call.binding_count = 2;
    call.dims = &n;
    call.dim_count = 1;
    for (n = 1; n <= MOST_IN; n++) {
        const uint64_t half = (n + 1) / 2;
        for (uint8_t i = 0; i < 64; i++)
            in[i] = i, out[i] = 0xee;
        bindings[0].bytes = n;
        bindings[1].bytes = half;
        ck_assert_msg(opjit_kernel_call(kernel, &call, &error) == OPJIT_OK, "%s", error.message);
        for (uint64_t i = 0; i < 64; i++)
            ck_assert_uint_eq(out[i], i < half ? 2 * i : 0xee);
        ck_assert_int_eq(opjit_kernel_sizes(kernel, &n, 1, 1, sizes, &bytes, &error), OPJIT_OK);
        ck_assert_uint_eq(bytes, half);
        ck_assert_uint_eq(sizes[0], half);
        bindings[1].bytes = half - 1;
        ck_assert_int_eq(opjit_kernel_call(kernel, &call, &error), OPJIT_INVALID_ARGUMENT);
    }
}
END_TEST

enum { META, QUOTIENT };
static const struct {
    const char *name, *field;
    int where;
    size_t offset, size;
    uint64_t value;
} damages[] = {
    { "more than sizes forms can have", "quotient_count", META, offsetof(opjit_kernel_meta, quotient_count), 4, 16 },
    { "very many", "quotient_count", META, offsetof(opjit_kernel_meta, quotient_count), 4, UINT32_MAX },
    { "fewer than forms have powers of", "forms", META, offsetof(opjit_kernel_meta, quotient_count), 4, 1 },
    { "none", "forms", META, offsetof(opjit_kernel_meta, quotient_count), 4, 0 },
    { "outside", "quotients", META, offsetof(opjit_kernel_meta, quotients), 4, 0x7ffffff8 },
    { "at an odd place", "quotients", META, offsetof(opjit_kernel_meta, quotients), 4, 257 },
    { "in the struct", "quotients", META, offsetof(opjit_kernel_meta, quotients), 4, 0 },
    { "of a quotient", "quotients", QUOTIENT, offsetof(opjit_quotient, dim), 4, 1 },
    { "of no dimension", "quotients", QUOTIENT, offsetof(opjit_quotient, dim), 4, UINT32_MAX },
    { "by 0", "quotients", QUOTIENT, offsetof(opjit_quotient, by), 8, 0 },
    { "by 0", "quotients", QUOTIENT, offsetof(opjit_quotient, by), 8, 0 },
    { "by less than 0", "quotients", QUOTIENT, offsetof(opjit_quotient, by), 8, UINT64_MAX },
    { "below 0", "quotients", QUOTIENT, offsetof(opjit_quotient, plus), 8, (uint64_t)-2 },
    { "beyond 64 bits", "quotients", QUOTIENT, offsetof(opjit_quotient, plus), 8, INT64_MAX },
    { "another one than the sizes say", "forms", QUOTIENT, offsetof(opjit_quotient, by), 8, 4 },
};

START_TEST(damage_row)
{
    ck_assert_msg(build() == OPJIT_OK, "%s", error.message);
    ck_assert_int_eq(sample_check(&image, &error), OPJIT_OK);
    uint8_t *const bytes = image.data + sizeof(image_header);
    const opjit_kernel_meta *const meta = (const opjit_kernel_meta *)(void *)bytes;
    const size_t at = damages[_i].where == META ? 0 : meta->quotients + sizeof(opjit_quotient);
    memcpy(bytes + at + damages[_i].offset, &damages[_i].value, damages[_i].size); /* little endian */
    ck_assert_msg(sample_check(&image, &error) == OPJIT_CORRUPT, "%s", damages[_i].name);
    ck_assert_str_eq(error.op, "image");
    ck_assert_msg(strncmp(error.field, damages[_i].field, strlen(damages[_i].field)) == 0, "%s: %s", damages[_i].name,
                  error.message);
    test_require_place(&error);
}
END_TEST

START_TEST(too_many)
{
    s.source.quotient_count = OPJIT_MAX_POWERS + 1;
    ck_assert_int_eq(build(), OPJIT_LIMIT);
    ck_assert_str_eq(error.message, "kernel quotient_count: 17, must be at most 16");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("rt.quotients");
    TCase *tcase = tcase_create("quotients");
    SRunner *runner = srunner_create(suite);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, every_size);
    tcase_add_loop_test(tcase, damage_row, 0, sizeof damages / sizeof *damages);
    tcase_add_test(tcase, too_many);
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
