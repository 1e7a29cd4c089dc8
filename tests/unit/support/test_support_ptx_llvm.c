/* SPDX-License-Identifier: Apache-2.0 */
/* test_support.ptx.llvm.c - the PTX interpreter on what LLVM 22 wrote (golden/ptx: llc at -O0 and -O2, sm_80 to
 * sm_120; the IR's names stand in the files), against the same in C; and how fast that goes. */
#define _GNU_SOURCE
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/machines/ptx.h"
#include "tests/machines/ptx_texts.h"
#include "tests/reference/reference.h"

static char *file_text(const char *name)
{
    char path[512];
    static char text[1 << 16];

    snprintf(path, sizeof path, "%s/golden/ptx/%s", getenv("OPJIT_TEST_DATA"), name);
    FILE *file = fopen(path, "r");
    ck_assert_msg(file != NULL, "%s", path);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

typedef struct bench {
    ptx_module *module;
    ptx_memory *memory;
    ptx_launch launch;
    ptx_stats stats;
} bench;
static const struct {
    const char *file, *arch;
} versions[] = { { "ir_sm80_none.ptx", "80" }, { "ir_sm120_default.ptx", "120" } };

static bench opened(const char *file, const char *arch, void *out, size_t out_bytes, void *in, size_t in_bytes,
                    uint32_t block)
{
    bench b = { .launch = { .grid = { 1, 1, 1 }, .block = { block, 1, 1 }, .races = true } };
    const char *text = file_text(file);
    ptx_error error;

    b.module = ptx_parse(text, &error);
    ck_assert_msg(b.module != NULL, "%s", error.message);
    ptx_texts_assemble(arch, text);
    b.memory = ptx_memory_create();
    ck_assert(ptx_memory_share(b.memory, out, out_bytes, true, "out"));
    ck_assert(in == NULL || ptx_memory_share(b.memory, in, in_bytes, false, "in"));
    return b;
}

static void run(bench *b, const char *entry, void *const *arguments)
{
    ptx_error error;
    const int number = ptx_find(b->module, entry);

    ck_assert_int_ge(number, 0);
    b->launch.arguments = arguments;
    ck_assert_msg(ptx_run(b->module, (uint32_t)number, b->memory, &b->launch, &b->stats, &error), "%s", error.message);
}

static void closed(bench *b)
{
    ptx_free(b->module);
    ptx_memory_destroy(b->memory);
}

/* --- integers ---------------------------------------------------------------------------------------------------- */
__extension__ typedef __int128 wide;

static uint64_t expected_integer(int64_t v, int32_t n)
{
    const int32_t x = (int32_t)v;
    const uint32_t u = (uint32_t)x, un = (uint32_t)n, e = u / un;
    const int64_t d = v / 7, d2 = d / n;
    const uint64_t d3 = (uint64_t)v % (uint64_t)(int64_t)n, un64 = (uint64_t)(int64_t)n;
    const int32_t e2 = n == -1 ? 0 : x % n;
    const int8_t y = (int8_t)v;
    const int64_t z = y > 5 ? y : 5, sum = (int64_t)x + n;
    const uint32_t tz = u == 0 ? 32 : (uint32_t)__builtin_ctz(u),
                   l16 = (u & 0xffff) == 0 ? 16 : (uint32_t)__builtin_clz(u & 0xffff) - 16;
    const uint32_t fs = (un & 31) == 0 ? u : u << (un & 31) | e >> (32 - (un & 31));
    const uint64_t fs2 =
        (un64 & 63) == 0 ? (uint64_t)v : (uint64_t)v << (un64 & 63) | (uint64_t)d >> (64 - (un64 & 63));
    const uint32_t ss = (uint32_t)(sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : (int32_t)sum);
    const uint32_t uo = (uint64_t)u * un > UINT32_MAX ? UINT32_MAX : u * un;
    uint32_t reversed = 0, s = e + (uint32_t)e2;
    for (int i = 0; i < 32; i++)
        reversed |= (u >> i & 1) << (31 - i);
    s ^= (uint32_t)__builtin_popcount(u);
    s += tz;
    s ^= l16;
    s += fs;
    s ^= reversed;
    s += (uint32_t)(x < n ? x : n);
    s ^= ss;
    s += uo;
    s ^= x < 0 ? 0 - u : u;
    s += __builtin_bswap32(u);
    uint64_t r = (uint64_t)(int64_t)(int32_t)s + (uint64_t)d2;
    r ^= d3;
    r += v == 0 ? 64 : (uint64_t)__builtin_clzll((uint64_t)v);
    r ^= fs2;
    r += __builtin_bswap64((uint64_t)v);
    r ^= (uint64_t)v > un64 ? (uint64_t)v : un64;
    r += (uint64_t)z;
    return r ^ (uint64_t)((wide)v * d >> 64);
}

START_TEST(integers)
{
    static const int32_t divisors[] = { 1, -1, 3, -7, 1000003, INT32_MIN, INT32_MAX };
    int64_t in[128];
    uint64_t out[128];

    for (int i = 0; i < 128; i++)
        in[i] = i < 4 ? i - 2 : (int64_t)((uint64_t)i * 0x9e3779b97f4a7c15u >> (i % 50));
    for (int k = 0; k < 14; k++) {
        const int version = k / 7;
        int32_t n = divisors[k % 7];
        bench b = opened(versions[version].file, versions[version].arch, out, sizeof out, in, sizeof in, 64);
        uint64_t o = (uintptr_t)out, a = (uintptr_t)in;
        b.launch.grid[0] = 2;
        run(&b, "ints", (void *[]){ &o, &a, &n });
        for (int i = 0; i < 128; i++)
            ck_assert_msg(out[i] == expected_integer(in[i], n), "%s: %lld, %d", versions[version].file,
                          (long long)in[i], n);
        closed(&b);
    }
}
END_TEST

/* --- floats ------------------------------------------------------------------------------------------------------ */
static float most(float x, float y)
{
    return x != x || y != y ? NAN : x > y ? x : y > x ? y : signbit(x) ? y : x;
}

static void expect_floats(const float *v, uint32_t t, float *w)
{
    const float x = v[0], y = v[1], z = v[2], k = fmaf(x / y, sqrtf(z), x), cs = copysignf(fabsf(rintf(k)), z);
    const float mi = cs != cs ? x : x != x ? cs : cs < x || (cs == x && signbit(cs)) ? cs : x, ma = most(mi, z);
    const double d6 = copysign(fma(ceil(trunc(sqrt((double)x) / 3)), x, 0.1), x);
    const uint64_t us = !(d6 > 0) ? 0 : d6 >= 18446744073709551616.0 ? UINT64_MAX : (uint64_t)d6;
    const int32_t si = ma != ma ? 0 : ma >= 2147483648.0f ? INT32_MAX : ma < -2147483648.0f ? INT32_MIN : (int32_t)ma;
    const int32_t s8 = ma != ma ? 0 : ma > 127 ? 127 : ma < -128 ? -128 : (int32_t)ma;
    w[0] = ma;
    w[1] = (float)si;
    w[2] = (float)(uint32_t)s8;
    w[3] = (float)us;
    w[4] = (float)(d6 - trunc(d6 / 1.5) * 1.5);
    w[5] = 1.5f; /* ueq xor one is always true */
    w[6] = x != x;
    w[7] = -ldexpf(x, (int)t);
}

START_TEST(floats)
{
    static const float values[] = { 0,         -0.0f, 1,    -2.5f, 3.5e9f, 1e-40f, INFINITY,
                                    -INFINITY, NAN,   0.1f, -129,  1e20f,  7.3f };
    _Alignas(64) float in[64][4], out[64][8], expected[8];

    for (int i = 0; i < 256; i++)
        in[i / 4][i % 4] = values[(i * 7 + i / 13) % 13];
    for (int k = 0; k < 2; k++) {
        bench b = opened(versions[k].file, versions[k].arch, out, sizeof out, in, sizeof in, 64);
        uint64_t o = (uintptr_t)out, a = (uintptr_t)in;
        run(&b, "floats", (void *[]){ &o, &a });
        for (uint32_t i = 0; i < 64; i++) {
            expect_floats(in[i], i, expected);
            for (int j = 0; j < 8; j++)
                ck_assert_msg(memcmp(&out[i][j], &expected[j], 4) == 0 ||
                                  (out[i][j] != out[i][j] && expected[j] != expected[j]),
                              "%s [%u][%d] of %a %a %a: %a, not %a", versions[k].file, i, j, in[i][0], in[i][1],
                              in[i][2], out[i][j], expected[j]);
        }
        closed(&b);
    }
}
END_TEST

static uint16_t half(float x)
{
    return ref_half_of_float(x);
}
static float single(uint16_t x)
{
    return ref_float_of_half(x);
}
static bool same_half(uint16_t x, uint16_t y)
{
    return x == y || ((x & 0x7fff) > 0x7c00 && (y & 0x7fff) > 0x7c00);
}

START_TEST(halves)
{
    _Alignas(64) uint16_t in[64][2], out[64][8];

    for (int i = 0; i < 128; i++)
        in[i / 2][i % 2] = (uint16_t)(i * 509 + (i % 7) * 11);
    for (int k = 0; k < 2; k++) {
        bench b = opened(versions[k].file, versions[k].arch, out, sizeof out, in, sizeof in, 64);
        uint64_t o = (uintptr_t)out, a = (uintptr_t)in;
        run(&b, "halves", (void *[]){ &o, &a });
        for (int i = 0; i < 64; i++) {
            const float x = single(in[i][0]), y = single(in[i][1]), twice = single(half(x + x));
            const uint16_t sum = half(x + y);
            const uint16_t expected[7] = { sum,
                                           half(x * y),
                                           half(x - y),
                                           half(single(half(x / y))),
                                           ref_half_of_double(fma(x, y, single(sum))),
                                           x < y ? in[i][0] : in[i][1],
                                           half(twice * x) };
            for (int j = 0; j < 7; j++)
                ck_assert_msg(same_half(out[i][j], expected[j]), "%s [%d][%d]: %x, not %x", versions[k].file, i, j,
                              out[i][j], expected[j]);
        }
        closed(&b);
    }
}
END_TEST

/* --- calls, jump tables, local memory; sums over a block --------------------------------------------------------- */
START_TEST(calls_and_tables)
{
    static const float table[4] = { 1, 2, -0.0f, INFINITY };
    int64_t out[32][3];

    for (int k = 0; k < 2; k++) {
        bench b = opened(versions[k].file, versions[k].arch, out, sizeof out, NULL, 0, 4);
        uint64_t o = (uintptr_t)out;
        int32_t n = -5;
        memset(out, 0, sizeof out);
        run(&b, "calls", (void *[]){ &o, &n });
        for (int t = 0; t < 4; t++) {
            const int64_t r = (int64_t)t * n + (t == 2 ? 9 : 3);
            const int64_t ph = t == 0 ? 0 : t == 1 ? r * 3 : t == 2 ? (int64_t)((uint64_t)r / 2) : (r ^ 12345678912345);
            ck_assert_msg(out[t][0] == ph, "%s %d: %lld, not %lld", versions[k].file, t, (long long)out[t][0],
                          (long long)ph);
            ck_assert_int_eq(memcmp(&out[t][1], &table[t], 4), 0);
            const int32_t local = t == 0 ? 7 : t == 1 ? t : 0; /* of the others nobody wrote */
            if (t < 2)
                ck_assert_int_eq((int32_t)out[t][2], "abcd"[t] + local);
        }
        closed(&b);
    }
}
END_TEST

START_TEST(sums_of_a_block)
{
    _Alignas(64) float in[1000];
    float out[64], lanes[64], expected[64];

    for (int i = 0; i < 1000; i++)
        in[i] = (float)(i % 17) - 8.25f;
    for (int k = 0; k < 2; k++) {
        bench b = opened(versions[k].file, versions[k].arch, out, sizeof out, in, sizeof in, 64);
        uint64_t o = (uintptr_t)out, a = (uintptr_t)in;
        int32_t n = 1000;
        b.launch.shared_bytes = 256;
        run(&b, "red", (void *[]){ &o, &a, &n });
        for (int t = 0; t < 64; t++) {
            lanes[t] = 0;
            for (int i = t; i < 1000; i += 64)
                lanes[t] += in[i];
        }
        for (int t = 0; t < 64; t++)
            expected[t] = lanes[t] + lanes[t % 32 + 16 < 32 ? t + 16 : t];
        memcpy(lanes, expected, sizeof lanes);
        for (int t = 0; t < 64; t++)
            expected[t] = lanes[t] + lanes[t ^ 8];
        for (int t = 0; t < 64; t++) {
            uint32_t ballot = 0;
            for (int l = 0; l < 32; l++)
                ballot |= (uint32_t)(expected[(t & 32) + l] > 1) << l;
            const float x = ballot != 0 ? expected[t ^ 33] + (float)ballot : 0;
            ck_assert_msg(out[t] == x, "%s %d: %a, not %a", versions[k].file, t, out[t], x);
        }
        ck_assert_uint_eq(b.stats.barriers, 1);
        ck_assert_uint_eq(b.stats.load_sectors, 125); /* each once */
        closed(&b);
    }
}
END_TEST

/* --- packed types, wide accesses --------------------------------------------------------------------------------- */
START_TEST(vectors)
{
    static const struct {
        const char *file, *arch;
    } files[] = { { "vectors_sm80_none.ptx", "80" }, { "vectors_sm100_default.ptx", "100" } };
    _Alignas(64) uint8_t in[64], out[2][416];

    for (int i = 0; i < 64; i++)
        in[i] = (uint8_t)(i * 37 + 1);
    memset(out, 0xee, sizeof out);
    for (int k = 0; k < 2; k++) {
        bench b = opened(files[k].file, files[k].arch, out, sizeof out, in, sizeof in, 1);
        uint64_t o = (uintptr_t)out[k], a = (uintptr_t)in;
        uint32_t sum = 0;
        run(&b, "v2", (void *[]){ &o, &a });
        for (int i = 0; i < 4; i++)
            sum |= (uint32_t)(uint8_t)(in[i] + in[4 + i]) << 8 * i;
        ck_assert_int_eq(memcmp(out[k] + 4, &sum, 4), 0);
        ck_assert_int_eq(memcmp(out[k] + 32, in, 32), 0);
        closed(&b);
    }
    ck_assert_int_eq(memcmp(out[0], out[1], sizeof out[0]), 0); /* two ways to the same bytes */
}
END_TEST

/* Not a limit on time: the number is there to be read. */
START_TEST(speed)
{
    static float in[1 << 16], out[64];
    bench b = opened(versions[1].file, versions[1].arch, out, sizeof out, in, sizeof in, 64);
    uint64_t o = (uintptr_t)out, a = (uintptr_t)in;
    int32_t n = 1 << 16;
    struct timespec from, to;

    b.launch.shared_bytes = 256;
    b.launch.races = false;
    clock_gettime(CLOCK_MONOTONIC, &from);
    run(&b, "red", (void *[]){ &o, &a, &n });
    clock_gettime(CLOCK_MONOTONIC, &to);
    const double seconds = (double)(to.tv_sec - from.tv_sec) + 1e-9 * (double)(to.tv_nsec - from.tv_nsec);
    printf("%.1f million thread instructions a second\n", (double)b.stats.instructions / seconds * 1e-6);
    ck_assert_uint_gt(b.stats.instructions, 8 * 65536);
    closed(&b);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("support.ptx.llvm");
    TCase *cases = tcase_create("llvm");
    tcase_add_test(cases, integers);
    tcase_add_test(cases, floats);
    tcase_add_test(cases, halves);
    tcase_add_test(cases, calls_and_tables);
    tcase_add_test(cases, sums_of_a_block);
    tcase_add_test(cases, vectors);
    tcase_add_test(cases, speed);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failures = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
