/* SPDX-License-Identifier: Apache-2.0 */
/* test_rt_overlap.c - buffers of a call sorted by address against all pairs of them: every pair that shares memory is
 * found, and no other. */
#include <check.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/call/kernel_object.h"
#include "tests/support/random.h"

enum { MOST = 1000 };

static opjit_kernel *kernel;
static void *buffers[MOST];
static rt_place room[2 * MOST];

static void setup(void)
{
    kernel =
        opjit_rt_allocate(&opjit_rt_default_allocator, sizeof *kernel + MOST * sizeof(slot), alignof(opjit_kernel));
    ck_assert_ptr_nonnull(kernel);
    memset(kernel, 0, sizeof *kernel + MOST * sizeof(slot));
}

static void teardown(void)
{
    opjit_rt_release(&opjit_rt_default_allocator, kernel, sizeof *kernel + MOST * sizeof(slot));
}

static void *at(uint64_t address)
{
    return (void *)(uintptr_t)address;
}

static bool meet(uint32_t a, uint32_t b)
{
    const uintptr_t x = (uintptr_t)buffers[a], y = (uintptr_t)buffers[b];
    return x - y < kernel->slots[b].bytes || y - x < kernel->slots[a].bytes;
}

static bool allowed(uint32_t output, uint32_t other)
{
    return other < kernel->inputs && other < 32 && buffers[output] == buffers[other] &&
           (kernel->slots[output].alias_inputs >> other & 1) != 0;
}

/* By pairs: whether all that share memory may, and in *alias which do. */
static bool all_pairs(uint64_t *alias)
{
    bool good = true;
    *alias = 0;
    for (uint32_t o = kernel->inputs; o < kernel->bindings; o++)
        for (uint32_t j = 0; j < kernel->buffers; j++) {
            if (j == o || !meet(o, j))
                continue;
            good = good && allowed(o, j);
            if (allowed(o, j) && o - kernel->inputs < 8 && j < 8)
                *alias |= UINT64_C(1) << ((o - kernel->inputs) * 8 + j);
        }
    return good;
}

static void check_sorted(void)
{
    uint64_t alias = 0, expected;
    uint32_t output, other;
    const bool good = all_pairs(&expected);
    ck_assert_int_eq(opjit_rt_overlaps_by_place(kernel, kernel->slots, buffers, room, &alias, &output, &other), good);
    if (good) {
        ck_assert_uint_eq(alias, expected);
    } else {
        ck_assert(output >= kernel->inputs && output < kernel->bindings && other < kernel->buffers && output != other);
        ck_assert(meet(output, other) && !allowed(output, other));
    }
}

static void shape(uint32_t inputs, uint32_t outputs, uint32_t constants)
{
    kernel->inputs = inputs;
    kernel->bindings = inputs + outputs;
    kernel->buffers = inputs + outputs + constants;
}

/* Few or many buffers in so much room that about half of the cases have overlaps; ends that wrap too. */
START_TEST(random_places)
{
    test_random r;
    uint32_t good = 0;
    enum { CASES = 4000 };
    test_random_init(&r, 41, 0, 0);
    for (uint32_t i = 0; i < CASES; i++) {
        shape((uint32_t)test_random_below(&r, 12), 1 + (uint32_t)test_random_below(&r, 12),
              (uint32_t)test_random_below(&r, 4));
        const uint64_t space = 64 * kernel->buffers * kernel->buffers,
                       base = test_random_chance(&r, 30) ? 0 - space / 2 : 4096;
        for (uint32_t k = 0; k < kernel->buffers; k++) {
            const uint32_t same = (uint32_t)test_random_below(&r, kernel->buffers);
            kernel->slots[k].bytes = 1 + test_random_below(&r, 64);
            kernel->slots[k].alias_inputs = (uint32_t)test_random_u64(&r);
            buffers[k] = same < k && same < kernel->inputs && test_random_chance(&r, 10)
                             ? buffers[same]
                             : at(base + test_random_below(&r, space));
        }
        uint64_t alias;
        good += all_pairs(&alias);
        check_sorted();
    }
    ck_assert_uint_gt(good, CASES / 8);
    ck_assert_uint_lt(good, CASES - CASES / 8);
}
END_TEST

/* A thousand buffers, in turn and backwards, side by side: none overlap, until one is a byte longer. */
START_TEST(thousand)
{
    shape(300, 600, 100);
    for (uint32_t backwards = 0; backwards < 2; backwards++) {
        for (uint32_t i = 0; i < MOST; i++) {
            const uint32_t place = backwards ? MOST - 1 - i : i * 7 % MOST;
            kernel->slots[i] = (slot){ .bytes = 16 };
            buffers[i] = at(4096 + 16 * (uint64_t)place);
        }
        check_sorted();
        uint64_t alias = 0;
        uint32_t output, other;
        ck_assert(opjit_rt_overlaps_by_place(kernel, kernel->slots, buffers, room, &alias, &output, &other));
        for (uint32_t i = 0; i < MOST; i += 83) {
            kernel->slots[i].bytes = 17;
            check_sorted();
            kernel->slots[i].bytes = 16;
        }
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("rt.overlap");
    TCase *tcase = tcase_create("overlap");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, random_places);
    tcase_add_test(tcase, thousand);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
