/* SPDX-License-Identifier: Apache-2.0 */
/* test_rt_dims_image.c - images of kernels with dynamic dimensions: metadata that is damaged, and variants for ranges
 * of sizes. */
#include <check.h>
#include <stdlib.h>

#include "tests/support/require.h"
#include "tests/unit/runtime/dims_kernel.h"
#include "tests/unit/runtime/rt_damage.h"

/* --- damage ------------------------------------------------------------------------------------------------------- */

enum { META, PARAM, FORM, STEP };
static const struct {
    const char *name, *field; /* field: where the error says that it is */
    int where;
    size_t index, offset, size;
    uint64_t value;
} damages[] = {
    { "no dims, but forms", "forms", META, 0, offsetof(opjit_kernel_meta, dims), 4, 0 },
    { "more dims than parameters", "dims", META, 0, offsetof(opjit_kernel_meta, dims), 4, 4 },
    { "many dims", "dims", META, 0, offsetof(opjit_kernel_meta, dims), 4, UINT32_MAX },
    { "a late parameter as a dimension", "param_info[0].dtype", META, 0, offsetof(opjit_kernel_meta, dims), 4, 3 },
    { "forms outside", "forms", META, 0, offsetof(opjit_kernel_meta, forms), 4, 0x7ffffff8 },
    { "forms beyond the end", "forms", META, 0, offsetof(opjit_kernel_meta, forms), 4, 1024 },
    { "forms at an odd place", "forms", META, 0, offsetof(opjit_kernel_meta, forms), 4, 257 },
    { "forms in the struct", "forms", META, 0, offsetof(opjit_kernel_meta, forms), 4, 0 },
    { "a dimension of another type", "param_info[1].dtype", PARAM, 1, offsetof(opjit_param_info, dtype), 4,
      DML_TENSOR_DATA_TYPE_UINT32 },
    { "a dimension from 0, where forms are good from 1 on", "forms", PARAM, 2, offsetof(opjit_param_info, lo), 8, 0 },
    { "a dimension below 0", "param_info[2].lo", PARAM, 2, offsetof(opjit_param_info, lo), 8, UINT64_MAX },
    { "a larger dimension", "forms", PARAM, 1, offsetof(opjit_param_info, hi), 8, 9 },
    { "a dimension without end", "forms", PARAM, 1, offsetof(opjit_param_info, hi), 8, INT64_MAX },
    { "divisor 0", "forms", FORM, 9, offsetof(opjit_size_form, divisor), 8, 0 },
    { "negative divisor", "forms", FORM, 17, offsetof(opjit_size_form, divisor), 8, UINT64_MAX },
    { "no times", "forms", FORM, 9, offsetof(opjit_size_form, times), 8, 0 },
    { "power 5", "forms", FORM, 0, offsetof(opjit_size_form, powers), 1, 5 },
    { "a power of another dimension", "forms", FORM, 0, offsetof(opjit_size_form, powers) + 2, 1, 1 },
    { "a factor too large", "forms", FORM, 1, offsetof(opjit_size_form, factors), 8, INT64_MAX },
    { "negative", "forms", FORM, 1, offsetof(opjit_size_form, constant), 8, (uint64_t)-2 },
    { "fewer bytes", "forms", FORM, 0, offsetof(opjit_size_form, divisor), 8, 2 },
    { "other sizes", "forms", FORM, 2, offsetof(opjit_size_form, constant), 8, 1 },
    { "unused sizes", "forms", FORM, 8, offsetof(opjit_size_form, constant), 8, 2 },
    { "another extent", "forms", FORM, 18, offsetof(opjit_size_form, constant), 8, 3 },
    { "another extent of the last one", "forms", STEP, 1, offsetof(opjit_step_info, extent), 8, 7 },
};

START_TEST(damage_row)
{
    ck_assert_int_eq(build(&image, &context->core->allocator), OPJIT_OK);
    uint8_t *const bytes = image.data + sizeof(image_header);
    const opjit_kernel_meta *meta = (const opjit_kernel_meta *)(void *)bytes;
    const size_t at[] = { 0, meta->param_info + damages[_i].index * sizeof(opjit_param_info),
                          meta->forms + damages[_i].index * sizeof(opjit_size_form),
                          meta->step_info + damages[_i].index * sizeof(opjit_step_info) };
    ck_assert_int_eq(sample_check(&image, &error), OPJIT_OK);
    ck_assert(meta->forms != 0 && meta->forms < 1024);
    memcpy(bytes + at[damages[_i].where] + damages[_i].offset, &damages[_i].value,
           damages[_i].size); /* little endian */
    ck_assert_msg(sample_check(&image, &error) == OPJIT_CORRUPT, "%s", damages[_i].name);
    ck_assert_str_eq(error.op, "image");
    ck_assert_msg(strcmp(error.field, damages[_i].field) == 0, "%s: %s", damages[_i].name, error.message);
    ck_assert(damages[_i].where != FORM || error.index == (int32_t)damages[_i].index);
    test_require_place(&error);
}
END_TEST

/* --- ranges ------------------------------------------------------------------------------------------------------- */

static opjit_range_info ranges[2];

/* Two variants: of n to 4 the first step alone, of n from 5 on both. */
static void describe_ranges(void)
{
    memset(ranges, 0, sizeof ranges);
    ranges[0].lo[0] = 1, ranges[0].hi[0] = 4;
    ranges[1].lo[0] = 5, ranges[1].hi[0] = 8;
    ranges[0].lo[1] = ranges[1].lo[1] = 1;
    ranges[0].hi[1] = ranges[1].hi[1] = 4;
    s.variants[0] = (opjit_variant_info){ 0, 0, 1 };
    s.variants[1] = (opjit_variant_info){ 0, 0, 2 };
    s.source.variants = 2;
    s.source.ranges = ranges;
}

START_TEST(variants_of_ranges)
{
    describe_ranges();
    create(&interpreting);
    for (uint64_t n = 1; n <= 8; n++) {
        set_dims(n, 4);
        memset(&hook, 0, sizeof hook);
        ck_assert_msg(opjit_kernel_call(kernel, &call, &error) == OPJIT_OK, "%s", error.message);
        ck_assert_uint_eq(hook.calls[0], 1);
        ck_assert_uint_eq(hook.calls[1], n > 4);
    }
}
END_TEST

/* That all sizes are in a range, an image does not promise: the call says so. */
START_TEST(sizes_between_ranges)
{
    describe_ranges();
    ranges[1].lo[0] = 6;
    create(&interpreting);
    set_dims(5, 4);
    ck_assert_int_eq(opjit_kernel_call(kernel, &call, &error), OPJIT_CORRUPT);
    ck_assert_str_eq(error.message, "image ranges: none has the sizes of the call");
    ck_assert_uint_eq(hook.calls[0] + hook.calls[1], 0);
    set_dims(6, 4);
    ck_assert_msg(opjit_kernel_call(kernel, &call, &error) == OPJIT_OK, "%s", error.message);
}
END_TEST

static const struct {
    const char *name;
    uint32_t entry, dim, lo, hi;
} wrong_ranges[] = {
    { "below the interval", 0, 0, 0, 4 },
    { "beyond the interval", 1, 0, 5, 9 },
    { "upside down", 1, 1, 3, 2 },
    { "an unset one", 1, 1, 0, 0 },
    { "far beyond the interval", 1, 0, UINT32_MAX, UINT32_MAX },
};

START_TEST(wrong_range)
{
    describe_ranges();
    ck_assert_int_eq(build(&image, &context->core->allocator), OPJIT_OK);
    ck_assert_int_eq(sample_check(&image, &error), OPJIT_OK);
    opjit_kernel_meta *meta = (opjit_kernel_meta *)(void *)(image.data + sizeof(image_header));
    opjit_range_info *r = (opjit_range_info *)(void *)((uint8_t *)meta + meta->ranges) + wrong_ranges[_i].entry;
    r->lo[wrong_ranges[_i].dim] = wrong_ranges[_i].lo;
    r->hi[wrong_ranges[_i].dim] = wrong_ranges[_i].hi;
    ck_assert_msg(sample_check(&image, &error) == OPJIT_CORRUPT, "%s", wrong_ranges[_i].name);
    ck_assert_msg(strncmp(error.field, "ranges[", 7) == 0, "%s: %s", wrong_ranges[_i].name, error.message);
    test_require_place(&error);
}
END_TEST

/* Where the metadata has no such array. */
START_TEST(ranges_elsewhere)
{
    static const uint32_t places[] = { 4, 129, 0x7ffffff8, UINT32_MAX };

    describe_ranges();
    ck_assert_int_eq(build(&image, &context->core->allocator), OPJIT_OK);
    opjit_kernel_meta *meta = (opjit_kernel_meta *)(void *)(image.data + sizeof(image_header));
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        meta->ranges = places[i];
        ck_assert_msg(sample_check(&image, &error) == OPJIT_CORRUPT, "at %u", places[i]);
        ck_assert_msg(strstr(error.field, "ranges") != NULL, "at %u: %s", places[i], error.message);
    }
}
END_TEST

/* A step that runs once runs when there are no sizes yet. */
START_TEST(once_is_of_no_size)
{
    rt_bytes built;
    s.source.kept_size = 64;
    s.source.once_first = 1;
    s.source.once_steps = 1;
    s.variants[0].steps = 1;
    ck_assert_int_eq(build(&built, &context->core->allocator), OPJIT_INTERNAL);
    ck_assert_msg(strstr(error.message, "must be a constant, the step runs once") != NULL, "%s", error.message);
    opjit_rt_bytes_free(&built);
    all[FORMS - 1] = (opjit_size_form){ 8, { 0, 0 }, { { 0 }, { 0 } }, 1, 1 };
    ck_assert_msg(build(&built, &context->core->allocator) == OPJIT_OK, "%s", error.message);
    opjit_rt_bytes_free(&built);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("rt.dims.image");
    TCase *tcase = tcase_create("image");
    SRunner *runner = srunner_create(suite);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, damage_row, 0, sizeof damages / sizeof *damages);
    tcase_add_test(tcase, variants_of_ranges);
    tcase_add_test(tcase, sizes_between_ranges);
    tcase_add_loop_test(tcase, wrong_range, 0, sizeof wrong_ranges / sizeof *wrong_ranges);
    tcase_add_test(tcase, ranges_elsewhere);
    tcase_add_test(tcase, once_is_of_no_size);
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
