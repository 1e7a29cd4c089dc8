/* SPDX-License-Identifier: Apache-2.0 */
/* test_conformance_reproducible.c - artifacts that several threads make at once equal, byte for byte, those that one
 * thread makes alone: for every target, at both levels.  cli.reproducible tests folders, environments and processes. */
#include <check.h>
#include <pthread.h>
#include <stdlib.h>

#include <opjit/artifact.h>

#include "runtime/base/base.h"
#include "tests/support/aot_batch.h"
#include "tests/support/checker.h"

enum { THREADS = 4 };

static const struct row {
    const char *targets[2];
    uint32_t target_count;
    opjit_level level;
} rows[] = {
    { { "cpu:x86-64-v3" }, 1, OPJIT_LEVEL_QUICK },       { { "cpu:x86-64-v2", "cpu:x86-64-v4" }, 2, OPJIT_LEVEL_PEAK },
    { { "cpu:aarch64" }, 1, OPJIT_LEVEL_QUICK },         { { "cpu:aarch64+sve512" }, 1, OPJIT_LEVEL_PEAK },
    { { "cpu:rv64gcv+zvl256b" }, 1, OPJIT_LEVEL_QUICK },
};

/* One thread's work: all outputs of one artifact, hashed. */
typedef struct work {
    const aot_batch *batch;
    const struct row *row;
    rt_hash hash;
    uint64_t bytes;
} work;

static void take(work *w, opjit_artifact *artifact, uint32_t index, opjit_artifact_kind kind, rt_bytes *hashes)
{
    const void *data;
    uint64_t bytes;
    opjit_error error = { 0 };
    ck_assert_msg(opjit_artifact_get(artifact, index, kind, &data, &bytes, &error) == OPJIT_OK, "%s", error.message);
    const rt_hash hash = opjit_rt_hash(data, (size_t)bytes);
    opjit_rt_bytes_append(hashes, &hash, sizeof hash);
    w->bytes += bytes;
}

static void *make(void *user)
{
    static const opjit_artifact_kind kinds[] = { OPJIT_ARTIFACT_OBJECT, OPJIT_ARTIFACT_HEADER, OPJIT_ARTIFACT_IR };
    work *w = user;
    opjit_artifact_options options = OPJIT_ARTIFACT_OPTIONS_INIT;
    opjit_artifact *artifact;
    rt_bytes hashes;
    options.targets = w->row->targets;
    options.target_count = w->row->target_count;
    opjit_rt_bytes_init(&hashes, &opjit_rt_default_allocator);
    ck_assert_int_eq(opjit_artifact_create(w->batch->context, &options, &artifact, NULL), OPJIT_OK);
    for (uint32_t i = 0; i < w->batch->count; i++) {
        aot_subject_add(&w->batch->subjects[i], artifact, w->row->level);
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
            take(w, artifact, i, kinds[k], &hashes);
    }
    take(w, artifact, 0, OPJIT_ARTIFACT_ARCHIVE, &hashes);
    take(w, artifact, 0, OPJIT_ARTIFACT_SHARED, &hashes);
    take(w, artifact, 0, OPJIT_ARTIFACT_LIBRARY_HEADER, &hashes);
    ck_assert(!hashes.failed);
    w->hash = opjit_rt_hash(hashes.data, hashes.size);
    opjit_rt_bytes_free(&hashes);
    opjit_artifact_destroy(artifact);
    return NULL;
}

START_TEST(threads_make_the_same_bytes)
{
    const test_cases cases = test_cases_init("conformance.reproducible", 2); /* hundredths of all operators and types */
    aot_batch b = { .context = test_context_create(), .percent = (unsigned)(cases.end - cases.first) };
    work alone = { .batch = &b, .row = &rows[_i] }, others[THREADS];
    pthread_t threads[THREADS];
    test_random_init(&b.r, cases.seed, (uint64_t)_i, 0);
    aot_batch_begin(&b);
    make(&alone);
    for (int i = 0; i < THREADS; i++) {
        others[i] = (work){ .batch = &b, .row = &rows[_i] };
        ck_assert_int_eq(pthread_create(&threads[i], NULL, make, &others[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
        ck_assert_uint_eq(others[i].bytes, alone.bytes);
        ck_assert(others[i].hash.lo == alone.hash.lo && others[i].hash.hi == alone.hash.hi);
    }
    ck_assert_uint_gt(alone.bytes, 10000);
    aot_batch_end(&b);
    opjit_context_destroy(b.context);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("conformance.reproducible");
    TCase *tcase = tcase_create("threads");
    SRunner *runner = srunner_create(suite);
    tcase_add_loop_test(tcase, threads_make_the_same_bytes, 0, (int)(sizeof rows / sizeof *rows));
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
