/* SPDX-License-Identifier: Apache-2.0 */
/* test_fe_device_shared.c - kernels on a device that are shared: caches, images, threads. */
#define _GNU_SOURCE
#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <opjit/device.h>

#include "tests/unit/frontend/device_kernels.h"

/* --- caches and images -------------------------------------------------------------------------------------------- */
static void run_cached(const char *folder, uint32_t hits, uint32_t rejects)
{
    opjit_context *context = on_device("cuda", folder);
    opjit_kernel *kernel = compile(context, TRIANGLE, NULL), *again = compile(context, TRIANGLE, NULL);
    opjit_cache_stats stats = OPJIT_CACHE_STATS_INIT;
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    good(opjit_cache_get_stats(context, &stats, &error));
    good(opjit_kernel_get_info(kernel, &info, &error));
    ck_assert_ptr_eq(kernel, again);
    ck_assert_uint_eq(stats.hits, 1);
    ck_assert_uint_eq(stats.disk_hits, hits);
    ck_assert_uint_eq(stats.disk_rejects, rejects);
    ck_assert_uint_eq(info.flags, OPJIT_KERNEL_ON_DEVICE | (hits != 0 ? OPJIT_KERNEL_FROM_DISK : 0));
    check_kernel(context, kernel, TRIANGLE, NULL);
    opjit_kernel_release(kernel);
    opjit_kernel_release(again);
    opjit_context_destroy(context);
}

static void damage(const char *folder)
{
    char command[512];
    snprintf(
        command, sizeof command,
        "for f in $(find %s -type f -size +1k); do printf X | dd of=$f bs=1 seek=900 conv=notrunc 2>/dev/null; done",
        folder);
    ck_assert_int_eq(system(command), 0);
}

START_TEST(disk_cache)
{
    char folder[] = "/tmp/opjit-device-XXXXXX", command[64];
    opjit_context *context = test_context_create();
    if (!test_have_codegen(context))
        return;
    opjit_context_destroy(context);
    ck_assert_ptr_nonnull(mkdtemp(folder));
    run_cached(folder, 0, 0);
    run_cached(folder, 1, 0);
    damage(folder);
    run_cached(folder, 0, 1);
    run_cached(folder, 1, 0);
    snprintf(command, sizeof command, "rm -r %s", folder);
    ck_assert_int_eq(system(command), 0);
}
END_TEST

START_TEST(images)
{
    setenv("FAKE_CUDA_DEVICES", "80,90", 1);
    opjit_context *context = on_device("cuda:1", NULL), *older = on_device("cuda:0", NULL), *none;
    if (!test_have_codegen(context))
        return;
    opjit_kernel *kernel = compile(context, ADD, NULL), *loaded = NULL;
    const void *image;
    uint64_t bytes;
    none = test_context_create();
    good(opjit_kernel_get_image(kernel, &image, &bytes, &error));
    good(opjit_kernel_load(context, image, bytes, NULL, 0, &loaded, &error));
    check_kernel(context, loaded, ADD, NULL);
    opjit_kernel_release(loaded);
    bad(opjit_kernel_load(none, image, bytes, NULL, 0, &loaded, &error), OPJIT_UNSUPPORTED,
        "code for nvptx:sm_90 does not run on this machine's CPU, and the context has no device");
    bad(opjit_kernel_load(older, image, bytes, NULL, 0, &loaded, &error), OPJIT_UNSUPPORTED,
        "code for nvptx:sm_90 is not for device cuda:0, which runs nvptx:sm_80");
    uint8_t *copy = aligned_alloc(64, (bytes + 63) / 64 * 64);
    ck_assert_ptr_nonnull(copy);
    memcpy(copy, image, bytes);
    copy[bytes - 10] ^= 1;
    bad(opjit_kernel_load(context, copy, bytes, NULL, 0, &loaded, &error), OPJIT_CORRUPT, "checksum");
    free(copy);
    opjit_kernel_release(kernel);
    opjit_context_destroy(context);
    opjit_context_destroy(older);
    opjit_context_destroy(none);
}
END_TEST

/* --- threads ------------------------------------------------------------------------------------------------------ */
typedef struct crowd {
    opjit_context *context;
    opjit_kernel *kernel;
    const float *input, *expected;
} crowd;

static void *call_often(void *user)
{
    const crowd *c = user;
    const uint64_t bytes = LONG_SIZE * sizeof(float);
    float *out = malloc(bytes);
    opjit_error e;
    void *stream;
    for (int i = 0; i < 3 && out != NULL; i++) {
        ck_assert_int_eq(opjit_stream_create(c->context, &stream, &e), OPJIT_OK);
        for (int k = 0; k < 2; k++) {
            ck_assert_msg(call_there(c->context, c->kernel, LONG_SOFTMAX, k == 0 ? stream : NULL, c->input, out, &e) ==
                              OPJIT_OK,
                          "%s", e.message);
            ck_assert_int_eq(memcmp(out, c->expected, bytes), 0);
        }
        opjit_stream_destroy(c->context, stream);
    }
    free(out);
    return NULL;
}

START_TEST(threads)
{
    opjit_context *context = on_device("cuda", NULL);
    if (!test_have_codegen(context))
        return;
    const uint64_t bytes = LONG_SIZE * sizeof(float);
    float *input = malloc(bytes), *expected = malloc(bytes);
    ck_assert(input != NULL && expected != NULL);
    fill(input, LONG_SIZE);
    expect_of(LONG_SOFTMAX, input, expected);
    crowd c = { context, compile(context, LONG_SOFTMAX, NULL), input, expected };
    pthread_t all[4];
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&all[i], NULL, call_often, &c), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(all[i], NULL);
    opjit_kernel_release(c.kernel);
    opjit_context_destroy(context);
    ck_assert_int_eq(live(), 0);
    free(input);
    free(expected);
}
END_TEST

/* Rows, then columns: what lies between the stages is in the workspace, which is the stream's and so all threads'. */
static opjit_kernel *compile_stages(opjit_context *context)
{
    static const uint32_t sizes[] = { ROWS, COLUMNS }, axes[] = { 1, 0 };
    const DML_BUFFER_TENSOR_DESC buffer = { DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_FLAG_NONE, 2, sizes, NULL, 0, 0 };
    const DML_TENSOR_DESC t = { DML_TENSOR_TYPE_BUFFER, &buffer };
    opjit_operator *ops[2];
    for (int i = 0; i < 2; i++) {
        const DML_ACTIVATION_SOFTMAX1_OPERATOR_DESC softmax = { &t, &t, 1, &axes[i] };
        const DML_OPERATOR_DESC desc = { DML_OPERATOR_ACTIVATION_SOFTMAX1, &softmax };
        good(opjit_operator_create(context, &desc, &ops[i], &error));
    }
    const DML_OPERATOR_GRAPH_NODE_DESC rows = { ops[0], "rows" }, columns = { ops[1], "columns" };
    const DML_GRAPH_NODE_DESC nodes[] = { { DML_GRAPH_NODE_TYPE_OPERATOR, &rows },
                                          { DML_GRAPH_NODE_TYPE_OPERATOR, &columns } };
    const DML_INPUT_GRAPH_EDGE_DESC input = { 0, 0, 0, NULL };
    const DML_OUTPUT_GRAPH_EDGE_DESC output = { 1, 0, 0, NULL };
    const DML_INTERMEDIATE_GRAPH_EDGE_DESC edge = { 0, 0, 1, 0, NULL };
    const DML_GRAPH_EDGE_DESC inputs[] = { { DML_GRAPH_EDGE_TYPE_INPUT, &input } };
    const DML_GRAPH_EDGE_DESC outputs[] = { { DML_GRAPH_EDGE_TYPE_OUTPUT, &output } };
    const DML_GRAPH_EDGE_DESC edges[] = { { DML_GRAPH_EDGE_TYPE_INTERMEDIATE, &edge } };
    const DML_GRAPH_DESC graph = { 1, 1, 2, nodes, 1, inputs, 1, outputs, 1, edges };
    opjit_kernel *kernel;
    good(opjit_compile_graph(context, &graph, NULL, &kernel, &error));
    opjit_operator_release(ops[0]);
    opjit_operator_release(ops[1]);
    return kernel;
}

static void *call_stages(void *user)
{
    const crowd *c = user;
    float input[SIZE], out[SIZE], first[SIZE];
    opjit_error e;
    for (uint32_t i = 0; i < SIZE; i++)
        input[i] = (float)((i * 31u + (unsigned)(uintptr_t)&e / 4096u) % 97u) * 0.125f; /* each thread its own */
    for (int i = 0; i < 6; i++) {
        ck_assert_msg(call_there(c->context, c->kernel, SOFTMAX, NULL, input, i == 0 ? first : out, &e) == OPJIT_OK,
                      "%s", e.message);
        ck_assert(i == 0 || memcmp(first, out, sizeof out) == 0);
        for (uint32_t x = 0; x < COLUMNS; x++) {
            float sum = 0;
            for (uint32_t y = 0; y < ROWS; y++)
                sum += (i == 0 ? first : out)[y * COLUMNS + x];
            ck_assert(sum > 0.999f && sum < 1.001f); /* of a column */
        }
    }
    return NULL;
}

START_TEST(stages_of_threads)
{
    opjit_context *context = on_device("cuda", NULL);
    if (!test_have_codegen(context))
        return;
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    crowd c = { context, compile_stages(context), NULL, NULL };
    pthread_t all[4];
    good(opjit_kernel_get_info(c.kernel, &info, &error));
    ck_assert(info.meta->steps >= 2 && info.workspace_bytes >= SIZE * sizeof(float));
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&all[i], NULL, call_stages, &c), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(all[i], NULL);
    opjit_kernel_release(c.kernel);
    opjit_context_destroy(context);
    ck_assert_int_eq(live(), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fe.device.shared");
    TCase *t = tcase_create("device");
    tcase_add_test(t, disk_cache);
    tcase_add_test(t, images);
    tcase_add_test(t, threads);
    tcase_add_test(t, stages_of_threads);
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
