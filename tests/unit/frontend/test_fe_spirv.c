/* SPDX-License-Identifier: Apache-2.0 */
/* test_fe_spirv.c - kernels for OpenCL as artifacts: every pointwise operator with every type of its tensors,
 * reductions, scans and softmax become modules that spirv-val accepts; the same bytes whatever was compiled before and
 * at the same time; JSON says how to launch them; outputs for other targets are refused.  What modules compute is
 * tested by opencl.*, where a device accepts them. */
#include <check.h>
#include <opjit/artifact.h>
#include <opjit/opjit.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/checker.h"
#include "tests/support/gpu_artifact.h"

static const char *const target = "spirv";
static _Thread_local opjit_error error;

/* --- modules ------------------------------------------------------------------------------------------------------ */

enum { HEADER = 5, OP_CAPABILITY = 17, OP_ENTRY_POINT = 15, OP_EXECUTION_MODE = 16, OP_EXTENSION = 10, OP_LABEL = 248 };

/* Addresses, Linkage, Kernel, Vector16, Float64, Int64, Int16, Int8: every full OpenCL device with f64 has these. */
static bool is_known_capability(uint32_t c)
{
    static const uint32_t known[] = { 4, 5, 6, 7, 10, 11, 22, 39 };
    for (uint32_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i] == c)
            return true;
    return false;
}

typedef struct seen {
    uint32_t kernels, sizes, uncontracted, blocks, last_block;
} seen;

static void look_at(const uint32_t *i, seen *s)
{
    enum { MODE_LOCAL_SIZE = 17, MODE_CONTRACTION_OFF = 31 };
    switch (i[0] & 0xffff) {
    case OP_CAPABILITY: ck_assert_msg(is_known_capability(i[1]), "capability %u", i[1]); break;
    case OP_EXTENSION: ck_abort_msg("extension %s", (const char *)&i[1]); break;
    case OP_ENTRY_POINT: s->kernels++; break;
    case OP_EXECUTION_MODE:
        s->sizes += i[2] == MODE_LOCAL_SIZE;
        s->uncontracted += i[2] == MODE_CONTRACTION_OFF;
        break;
    case OP_LABEL:
        ck_assert_msg(s->blocks++ == 0 || i[1] == s->last_block + 1, "block %u after %u", i[1], s->last_block);
        s->last_block = i[1];
        break;
    default: break;
    }
}

static void check_module(const uint32_t *words, size_t count)
{
    seen s = { 0 };
    ck_assert_uint_gt(count, HEADER);
    ck_assert_uint_eq(words[0], 0x07230203);
    ck_assert_uint_eq(words[1], 0x00010200);
    for (size_t at = HEADER; at < count; at += words[at] >> 16) {
        ck_assert(words[at] >> 16 > 0 && words[at] >> 16 <= count - at);
        look_at(&words[at], &s);
    }
    ck_assert(s.kernels > 0 && s.sizes == s.kernels && s.uncontracted == s.kernels);
    ck_assert_uint_eq(s.last_block + 1, words[3]); /* the bound */
}

/* Owned by the artifact. */
static const void *get(opjit_artifact *artifact, size_t *size)
{
    const void *data;
    uint64_t bytes;
    ck_assert_msg(opjit_artifact_get(artifact, 0, OPJIT_ARTIFACT_SPIRV, &data, &bytes, &error) == OPJIT_OK, "%s",
                  error.message);
    ck_assert_uint_eq(bytes % 4, 0);
    *size = (size_t)bytes;
    return data;
}

static void check(opjit_artifact *artifact, const DML_OPERATOR_DESC *desc, void *user)
{
    char said[4096];
    size_t size;
    const void *data = get(artifact, &size);
    uint32_t *words = malloc(size);
    ck_assert_ptr_nonnull(words);
    memcpy(words, data, size);
    check_module(words, size / 4);
    free(words);
    bool *read = user;
    *read =
        gpu_artifact_read_by("OPJIT_TEST_SPIRV_VAL", "--target-env opencl2.2", data, size, said, sizeof said) && *read;
    (void)desc;
}

static void say_skipped(bool read)
{
    if (!read)
        printf("skipped: nothing is read by spirv-val, because it was not found\n");
}

START_TEST(pointwise)
{
    opjit_context *context = test_context_create();
    bool read = true;
    if (test_have_codegen(context))
        gpu_artifact_pointwise(context, &ref_pointwise_rows[_i], &target, 1, 0, check, &read);
    say_skipped(read);
    opjit_context_destroy(context);
}
END_TEST

START_TEST(others)
{
    opjit_context *context = test_context_create();
    bool read = true;
    if (test_have_codegen(context))
        gpu_artifact_others(context, target, check, &read);
    say_skipped(read);
    opjit_context_destroy(context);
}
END_TEST

/* --- the same bytes ----------------------------------------------------------------------------------------------- */

typedef struct digests {
    uint64_t of[64];
    uint32_t count;
} digests;

static void add_digest(opjit_artifact *artifact, const DML_OPERATOR_DESC *desc, void *user)
{
    digests *d = user;
    size_t size;
    const uint8_t *data = get(artifact, &size);
    uint64_t sum = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < size; i++)
        sum = (sum ^ data[i]) * UINT64_C(0x100000001b3);
    ck_assert_uint_lt(d->count, 64);
    d->of[d->count++] = sum;
    (void)desc;
}

static void *make_others(void *user)
{
    opjit_context *context = test_context_create();
    gpu_artifact_others(context, target, add_digest, user);
    opjit_context_destroy(context);
    return NULL;
}

/* In a new process, after a hundred other modules, and in four threads at a time. */
START_TEST(same_bytes)
{
    enum { THREADS = 4 };
    static digests first, after, beside[THREADS];
    static digests some;
    pthread_t threads[THREADS];
    opjit_context *context = test_context_create();
    if (!test_have_codegen(context))
        return;
    make_others(&first);
    for (int i = 0; i < (int)ref_pointwise_row_count; i += 8, some.count = 0)
        gpu_artifact_pointwise(context, &ref_pointwise_rows[i], &target, 1, 0, add_digest, &some);
    make_others(&after);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, make_others, &beside[i]), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_gt(first.count, 0);
    ck_assert_mem_eq(&after, &first, sizeof first);
    for (int i = 0; i < THREADS; i++)
        ck_assert_mem_eq(&beside[i], &first, sizeof first);
    opjit_context_destroy(context);
}
END_TEST

/* --- what is said of them ----------------------------------------------------------------------------------------- */

static opjit_artifact *make_softmax(opjit_context *context, const char *of)
{
    static const uint32_t sizes[] = { 64, 1024 }, axes[] = { 1 };
    const DML_BUFFER_TENSOR_DESC buffer = { DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_FLAG_NONE, 2, sizes, NULL, 0, 0 };
    const DML_TENSOR_DESC tensor = { DML_TENSOR_TYPE_BUFFER, &buffer };
    const DML_ACTIVATION_SOFTMAX1_OPERATOR_DESC softmax = { &tensor, &tensor, 1, axes };
    const DML_OPERATOR_DESC desc = { DML_OPERATOR_ACTIVATION_SOFTMAX1, &softmax };
    return gpu_artifact_make(context, &desc, of);
}

/* Threads that communicate are a block of their own. */
START_TEST(json)
{
    static const char want[] =
        "\"symbol\": \"made_v0_s0\", \"extent\": 64, \"grid\": [64, 1, 1], \"block\": [32, 1, 1], "
        "\"team\": 32, \"static_shared_bytes\": 4096 }";
    opjit_context *context = test_context_create();
    opjit_artifact *artifact = make_softmax(context, target);
    const void *data;
    uint64_t bytes;
    ck_assert_msg(opjit_artifact_get(artifact, 0, OPJIT_ARTIFACT_JSON, &data, &bytes, &error) == OPJIT_OK, "%s",
                  error.message);
    char *text = calloc(1, (size_t)bytes + 1);
    ck_assert_ptr_nonnull(text);
    memcpy(text, data, (size_t)bytes);
    ck_assert_msg(strstr(text, want) != NULL, "%s", text);
    free(text);
    opjit_artifact_destroy(artifact);
    opjit_context_destroy(context);
}
END_TEST

static const struct {
    const char *target;
    opjit_artifact_kind what;
    const char *message;
} refusals[] = {
    { "spirv", OPJIT_ARTIFACT_PTX, "ptx is not for target spirv:opencl, which has llvm, ir, json, spirv" },
    { "spirv", OPJIT_ARTIFACT_OBJECT, "obj is not for target spirv:opencl, which has llvm, ir, json, spirv" },
    { "spirv", OPJIT_ARTIFACT_ASM, "asm is not for target spirv:opencl, which has llvm, ir, json, spirv" },
    { "nvptx:sm_90", OPJIT_ARTIFACT_SPIRV,
      "spirv is not for target nvptx:sm_90, which has llvm, asm, ir, json, ptx, cubin" },
    { "cpu:x86-64-v3", OPJIT_ARTIFACT_SPIRV,
      "spirv is not for target cpu:x86-64-v3, which has obj, header, lib, llvm, asm, ir, json, tvmffi" },
};

START_TEST(refused)
{
    opjit_context *context = test_context_create();
    opjit_artifact *artifact = make_softmax(context, refusals[_i].target);
    const void *data;
    uint64_t bytes;
    ck_assert_int_eq(opjit_artifact_get(artifact, 0, refusals[_i].what, &data, &bytes, &error), OPJIT_UNSUPPORTED);
    ck_assert_str_eq(error.message, refusals[_i].message);
    opjit_artifact_destroy(artifact);
    opjit_context_destroy(context);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fe.spirv");
    TCase *t = tcase_create("modules");
    tcase_add_loop_test(t, pointwise, 0, (int)ref_pointwise_row_count);
    tcase_add_test(t, others);
    tcase_add_test(t, same_bytes);
    tcase_add_test(t, json);
    tcase_add_loop_test(t, refused, 0, (int)(sizeof refusals / sizeof *refusals));
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
