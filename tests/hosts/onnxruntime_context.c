/* SPDX-License-Identifier: Apache-2.0 */
/* onnxruntime_context.c - the bytes of a context, without ONNX Runtime: what goes in comes out; what is damaged, or
 * made to look whole, is refused or stays inside of its bytes. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/hosts/onnxruntime/provider.h"

enum { SUM_AT = 24 };
static const uint64_t images[] = { 0x1122334455667788, 2, 3 };
static const shape shapes[] = { { 2, { 8, 64 } }, { 0, { 0 } }, { 1, { 5 } }, { 0, { 0 } } };
static const char *const names[] = { "x", "a longer name" };
static const int32_t types[] = { 1, 7, 9 };
static unsigned char model[1000];
static uint64_t sum_of_pack;

/* Of bytes.c, which is for graphs of ONNX Runtime, too. */
ort_status *opjit_ort_fail(const ort_api *api, int code, const char *format, ...)
{
    (void)api;
    (void)code;
    (void)format;
    abort();
}

static bytes pack(uint64_t model_bytes, uint32_t kernels)
{
    const carried c = { .model = model,
                        .model_bytes = model_bytes,
                        .names = names,
                        .types = types,
                        .input_count = 2,
                        .output_count = 1,
                        .kernel_count = kernels,
                        .kernels = { { images, sizeof images, shapes }, { images, 1, shapes + 2 } },
                        .level = OPJIT_LEVEL_PEAK,
                        .target = "cpu:x86-64-v3",
                        .version = "0.1.0",
                        .build = "build" };
    bytes out;
    for (size_t i = 0; i < sizeof model; i++)
        model[i] = (unsigned char)(i * 7);
    ck_assert(opjit_ort_pack(&c, &out, &sum_of_pack));
    return out;
}

/* The bytes in memory of exactly their size, so that what is read behind them is found. */
static const char *unpack(const unsigned char *data, size_t size, stored *out_bytes, arena *memory, carried *out)
{
    *out_bytes = (stored){ aligned_alloc(64, size == 0 ? 64 : (size + 63) / 64 * 64), size, false };
    ck_assert_ptr_nonnull(out_bytes->data);
    memcpy(out_bytes->data, data, size);
    return opjit_ort_unpack(out_bytes, memory, out);
}

START_TEST(what_goes_in_comes_out)
{
    for (uint64_t model_bytes = 0; model_bytes <= sizeof model; model_bytes += 125)
        for (uint32_t kernels = 0; kernels <= 2; kernels++) {
            bytes packed = pack(model_bytes, kernels);
            arena memory = { NULL };
            stored s;
            carried c;
            const char *const reason = unpack(packed.data, packed.size, &s, &memory, &c);
            ck_assert_msg(reason == NULL, "%s", reason);
            ck_assert_uint_eq(c.sum, sum_of_pack);
            ck_assert_uint_eq(c.model_bytes, model_bytes);
            ck_assert_uint_eq((uintptr_t)c.model % 64, 0);
            ck_assert_mem_eq(c.model, model, (size_t)model_bytes);
            ck_assert_uint_eq(c.input_count, 2);
            ck_assert_uint_eq(c.output_count, 1);
            ck_assert_uint_eq(c.kernel_count, kernels);
            ck_assert_mem_eq(c.types, types, sizeof types);
            ck_assert_str_eq(c.names[0], "x");
            ck_assert_str_eq(c.names[1], "a longer name");
            ck_assert_str_eq(c.target, "cpu:x86-64-v3");
            ck_assert_str_eq(c.version, "0.1.0");
            ck_assert_str_eq(c.build, "build");
            ck_assert_int_eq(c.level, OPJIT_LEVEL_PEAK);
            for (uint32_t k = 0; k < kernels; k++) {
                ck_assert_uint_eq(c.kernels[k].bytes, k == 0 ? sizeof images : 1);
                ck_assert_mem_eq(c.kernels[k].image, images, (size_t)c.kernels[k].bytes);
                ck_assert_mem_eq(c.kernels[k].shapes, shapes + 2 * k, 2 * sizeof *shapes);
            }
            opjit_ort_free_stored(&s);
            opjit_ort_free(&memory);
            free(packed.data);
        }
}
END_TEST

START_TEST(same_bytes_twice)
{
    bytes a = pack(999, 2), b = pack(999, 2);
    ck_assert_uint_eq(a.size, b.size);
    ck_assert_mem_eq(a.data, b.data, a.size);
    free(a.data);
    free(b.data);
}
END_TEST

START_TEST(damaged_bytes_are_refused)
{
    bytes packed = pack(500, 2);
    for (size_t at = 0; at < packed.size; at++) {
        arena memory = { NULL };
        stored s;
        carried c;
        packed.data[at] ^= 4;
        ck_assert_ptr_nonnull(unpack(packed.data, packed.size, &s, &memory, &c));
        packed.data[at] ^= 4;
        opjit_ort_free_stored(&s);
        ck_assert_ptr_nonnull(unpack(packed.data, at, &s, &memory, &c));
        opjit_ort_free_stored(&s);
        opjit_ort_free(&memory);
    }
    free(packed.data);
}
END_TEST

/* Reads all that the context says it has. */
static unsigned touch(const stored *s, const carried *c)
{
    const unsigned char *const end = s->data + s->size, *const first = c->model;
    unsigned sum = 0;
    ck_assert(first >= s->data && first <= end && c->model_bytes <= (uint64_t)(end - first));
    for (uint32_t i = 0; i < c->input_count; i++) {
        ck_assert((const unsigned char *)c->names[i] + strlen(c->names[i]) < end);
        sum += (unsigned)strlen(c->names[i]);
    }
    for (uint32_t i = 0; i < c->input_count + c->output_count; i++)
        sum += (unsigned)c->types[i];
    for (uint32_t k = 0; k < c->kernel_count; k++) {
        const unsigned char *const code = c->kernels[k].image;
        ck_assert(code >= s->data && code <= end && c->kernels[k].bytes <= (uint64_t)(end - code));
        ck_assert((const unsigned char *)(c->kernels[k].shapes + c->input_count) <= end);
        for (uint32_t i = 0; i < c->input_count; i++)
            ck_assert_uint_le(c->kernels[k].shapes[i].rank, ORT_RANK);
    }
    return sum + (unsigned)strlen(c->target) + (unsigned)strlen(c->build) + (unsigned)strlen(c->version);
}

START_TEST(bytes_that_lie_stay_inside)
{
    static const uint64_t values[] = {
        0, 1, 8, 33, 200, 1u << 31, UINT32_MAX, 1ull << 40, UINT64_MAX - 7, UINT64_MAX, 0x100000001u
    };
    bytes packed = pack(500, 2);
    uint32_t opened = 0;
    for (size_t at = 0; at + 8 <= 1200 && at + 8 <= packed.size; at += 4)
        for (size_t k = 0; k < sizeof values / sizeof *values; k++) {
            arena memory = { NULL };
            unsigned char before[8];
            uint64_t sum = 0;
            stored s;
            carried c;
            memcpy(before, packed.data + at, sizeof before);
            memcpy(packed.data + at, &values[k], sizeof before);
            memcpy(packed.data + SUM_AT, &sum, sizeof sum);
            sum = opjit_ort_hash(0, packed.data, packed.size);
            memcpy(packed.data + SUM_AT, &sum, sizeof sum);
            if (unpack(packed.data, packed.size, &s, &memory, &c) == NULL) {
                opened++;
                ck_assert_uint_le(touch(&s, &c), UINT32_MAX);
            }
            memcpy(packed.data + at, before, sizeof before);
            opjit_ort_free_stored(&s);
            opjit_ort_free(&memory);
        }
    ck_assert_uint_gt(opened, 100); /* what lies in a name, a type or the model is not found here */
    free(packed.data);
}
END_TEST

START_TEST(texts_without_zeros)
{
    enum { MOST = 1200 };
    static unsigned char data[MOST];
    for (int fill = 0; fill < 4; fill++)
        for (size_t size = 0; size < MOST; size += size < 520 ? 1 : 113) {
            bytes text, back;
            for (size_t i = 0; i < size; i++)
                data[i] = fill == 0 ? 0 : fill == 1 ? 255 : (unsigned char)(i % (fill == 2 ? 3 : 256));
            const bytes from = { data, size, size, false };
            ck_assert(opjit_ort_without_zeros(&from, &text));
            ck_assert_uint_eq(strlen((const char *)text.data), text.size - 1);
            ck_assert_uint_le(text.size, size + size / 254 + 2);
            ck_assert(opjit_ort_with_zeros(text.data, text.size - 1, &back));
            ck_assert_uint_eq(back.size, size);
            ck_assert(size == 0 || memcmp(back.data, data, size) == 0);
            free(back.data);
            if (text.size > 3) { /* a run that goes past the end */
                ck_assert(!opjit_ort_with_zeros("\377abc", 4, &back));
                free(back.data);
            }
            free(text.data);
        }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("host.onnxruntime_context");
    TCase *tcase = tcase_create("contexts");
    tcase_add_test(tcase, what_goes_in_comes_out);
    tcase_add_test(tcase, same_bytes_twice);
    tcase_add_test(tcase, damaged_bytes_are_refused);
    tcase_add_test(tcase, bytes_that_lie_stay_inside);
    tcase_add_test(tcase, texts_without_zeros);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
