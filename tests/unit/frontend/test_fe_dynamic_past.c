/* SPDX-License-Identifier: Apache-2.0 */
/* test_fe_dynamic_past.c - decoders: one more token at each call without a compile or an allocation; dimensions from
 * 0, as a past of no tokens has. */
#define _POSIX_C_SOURCE 200809L
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/frontend/dynamic_sizes.h"

static uint64_t allocations;

static void *count_allocation(void *user, size_t size, size_t alignment)
{
    (void)user;
    allocations++;
    const size_t unit = alignment < 16 ? 16 : alignment;
    return aligned_alloc(unit, (size + unit - 1) / unit * unit);
}
static void count_release(void *user, void *block, size_t size)
{
    (void)user;
    (void)size;
    free(block);
}

static const subject decoders[] = { { "decoder", decode, 1, 4096, 512 },
                                    { "decoder with a past", decode_past, 1, 1000, 256 } };

/* Keys of one more token at each call: one compile, and no call takes memory. */
START_TEST(decoder_loop)
{
    enum { LENGTHS = 1000 };
    const subject s = decoders[_i];
    const opjit_allocator allocator = { NULL, count_allocation, count_release };
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    opjit_cache_stats before = OPJIT_CACHE_STATS_INIT, after = OPJIT_CACHE_STATS_INIT;
    const uint64_t largest[2] = { s.hi, 0 };
    dynamic_memory m;

    opjit_context_destroy(context);
    options.allocator = &allocator;
    ck_assert_int_eq(opjit_context_create(&options, &context, &error), OPJIT_OK);
    opjit_kernel *const kernel =
        compile(&s, OPJIT_COMPILE_INTERPRET * (opjit_context_warm(context, NULL) != OPJIT_OK), OPJIT_LEVEL_QUICK);
    ck_assert_int_eq(opjit_kernel_get_info(kernel, &info, NULL), OPJIT_OK);
    const size_t bytes = (size_t)info.workspace_bytes + DYNAMIC_GUARD;
    void *const workspace = aligned_alloc(DYNAMIC_GUARD, (bytes + DYNAMIC_GUARD - 1) / DYNAMIC_GUARD * DYNAMIC_GUARD);
    ck_assert_ptr_nonnull(workspace);
    dynamic_allocate(&m, kernel, largest, 1, UINT64_MAX);
    ck_assert_int_eq(opjit_cache_get_stats(context, &before, NULL), OPJIT_OK);
    const uint64_t made = allocations;
    for (uint64_t n = 1; n <= LENGTHS; n++) {
        opjit_call c = OPJIT_CALL_INIT;
        c.bindings = m.bindings;
        c.binding_count = m.count;
        c.dims = &n;
        c.dim_count = 1;
        c.workspace = (opjit_binding){ workspace, info.workspace_bytes };
        ck_assert_msg(opjit_kernel_call(kernel, &c, &error) == OPJIT_OK, "%s", error.message);
    }
    ck_assert_uint_eq(allocations, made);
    ck_assert_int_eq(opjit_cache_get_stats(context, &after, NULL), OPJIT_OK);
    ck_assert_uint_eq(after.misses, before.misses);
    dynamic_release(&m);
    free(workspace);
    opjit_kernel_release(kernel);
}
END_TEST

/* Rows of a past, of which there may be none, and behind them two more; sums of all. */
static void behind_the_past(opjit_graph *g, uint32_t n, uint32_t m)
{
    (void)m;
    const opjit_tensor past = INPUT("past", n == 0 ? 1 : n, 40), rows = INPUT("rows", 2, 40);
    const opjit_tensor all = n == 0 ? rows : opjit_graph_join(g, (opjit_tensor[]){ past, rows }, 2, 0);
    opjit_graph_output(g, "sums", opjit_graph_reduce_mean(g, all, 1));
    opjit_graph_output(g, "all", opjit_graph_gelu(g, all));
}

/* The same, transposed: without a past "rows" is read so, and with one as it is. */
static void behind_the_past_across(opjit_graph *g, uint32_t n, uint32_t m)
{
    (void)m;
    const opjit_tensor past = INPUT("past", n == 0 ? 1 : n, 40), rows = INPUT("rows", 2, 40);
    const opjit_tensor all = n == 0 ? rows : opjit_graph_join(g, (opjit_tensor[]){ past, rows }, 2, 0);
    const opjit_tensor across = opjit_graph_transpose(g, all, (const uint32_t[]){ 1, 0 });
    opjit_graph_output(g, "sums", opjit_graph_reduce_mean(g, across, 0));
    opjit_graph_output(g, "all", opjit_graph_transpose(g, opjit_graph_gelu(g, across), (const uint32_t[]){ 1, 0 }));
}

static const subject of_pasts[] = { { "behind the past", behind_the_past, 1, 300, 64 },
                                    { "behind the past, across", behind_the_past_across, 1, 300, 64 } };

/* A call with a size of 0 brings an input without elements. */
START_TEST(sizes_from_0)
{
    const subject s = of_pasts[_i];
    const opjit_dim dim = { "n", 0, s.hi, s.typical };
    float rows[2][40], sums[2], all[2][40];
    const opjit_binding bindings[] = { { NULL, 0 }, { rows, sizeof rows }, { sums, sizeof sums }, { all, sizeof all } };
    const uint64_t none = 0;
    opjit_call call = OPJIT_CALL_INIT;
    uint64_t own[8], bytes;

    call.bindings = bindings;
    call.binding_count = 4;
    call.dims = &none;
    call.dim_count = 1;
    for (uint32_t i = 0; i < 80; i++)
        rows[i / 40][i % 40] = (float)i / 16.0f - 2.0f;
    for (uint32_t way = 0; way < 2; way++) {
        opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
        description d = { .s = &s };
        opjit_kernel *kernel;
        if (way == 1 && opjit_context_warm(context, &error) != OPJIT_OK)
            break;
        options.flags = way == 0 ? OPJIT_COMPILE_INTERPRET : 0;
        ck_assert_msg(opjit_compile_dynamic(context, &dim, 1, describe, &d, &options, &kernel, &error) == OPJIT_OK,
                      "%s", error.message);
        opjit_graph_destroy(d.graph);
        const opjit_kernel *const list[] = { kernel, kernel };
        for (uint64_t n = 1; n <= s.hi; n += 1 + n / 2)
            check_size(&s, list, 2 - (n < 10), (const uint64_t[]){ n, 0 });
        ck_assert_int_eq(opjit_kernel_sizes(kernel, &none, 1, 0, own, &bytes, &error), OPJIT_OK);
        ck_assert_uint_eq(bytes, 0);
        memset(all, 0, sizeof all);
        ck_assert_msg(opjit_kernel_call(kernel, &call, &error) == OPJIT_OK, "%s", error.message);
        ck_assert(sums[0] == -0.78125f && sums[1] == 1.71875f);
        ck_assert(all[0][32] == 0.0f && all[1][39] > 2.9f && all[0][0] < 0.0f);
        opjit_kernel_release(kernel);
    }
}
END_TEST

START_TEST(sizes_from_0_are_checked)
{
    const opjit_dim typical = { "n", 0, 300, 0 }, never = { "n", 0, 0, 1 },
                    many[] = { { "a", 0, 9, 4 }, { "b", 0, 9, 4 }, { "c", 0, 9, 4 } };
    description d = { .s = &of_pasts[0] };
    opjit_kernel *kernel;

    ck_assert_int_eq(opjit_compile_dynamic(context, &typical, 1, describe, &d, NULL, &kernel, &error),
                     OPJIT_INVALID_ARGUMENT);
    ck_assert_str_eq(error.message, "dims[0].typical (n): 0, must be 1 to 300");
    ck_assert_int_eq(opjit_compile_dynamic(context, &never, 1, describe, &d, NULL, &kernel, &error),
                     OPJIT_INVALID_ARGUMENT);
    ck_assert_str_eq(error.message,
                     "dims[0] (n): bounds 0 to 0, must be 0 to 2147483647 in order, and more than 0 alone");
    ck_assert_int_eq(opjit_compile_dynamic(context, many, 3, describe, &d, NULL, &kernel, &error), OPJIT_UNSUPPORTED);
    ck_assert_str_eq(error.message, "dims[2] (c): more than 2 dimensions begin with 0, each of which doubles the "
                                    "kernel's functions");
    opjit_graph_destroy(d.graph);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fe.dynamic.past");
    TCase *tcase = tcase_create("past");
    SRunner *runner = srunner_create(suite);
    tcase_set_timeout(tcase, 600);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, decoder_loop, 0, sizeof decoders / sizeof *decoders);
    tcase_add_loop_test(tcase, sizes_from_0, 0, sizeof of_pasts / sizeof *of_pasts);
    tcase_add_test(tcase, sizes_from_0_are_checked);
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
