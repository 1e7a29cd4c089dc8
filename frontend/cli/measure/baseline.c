/* SPDX-License-Identifier: Apache-2.0 */
/* baseline.c - fills and copies at AVX-512, AVX2, or through libc.  A yardstick, not used by any kernel. */
#include "frontend/cli/measure/baseline.h"

#include <string.h>

static void fill_libc(void *to, int byte, size_t bytes)
{
    memset(to, byte, bytes);
}

static void copy_libc(void *to, const void *from, size_t bytes)
{
    memcpy(to, from, bytes);
}

static const baseline libc_baseline = { "libc", fill_libc, fill_libc, copy_libc, copy_libc };

#if defined(__x86_64__)
#include <immintrin.h>

/* One set of four functions per vector width; lines of 64 bytes, four per iteration. */
#define BASELINE(suffix, isa, type, width, set1, load, store, stream)                                        \
    __attribute__((target(isa))) static void fill_##suffix(void *to, int byte, size_t bytes)                 \
    {                                                                                                        \
        const type v = set1((char)byte);                                                                     \
                                                                                                             \
        for (char *p = to, *end = p + bytes; p < end; p += 64)                                               \
            _Pragma("GCC unroll 2")                                                                          \
            for (int i = 0; i < 64; i += width)                                                              \
                store((void *)(p + i), v);                                                                   \
    }                                                                                                        \
    __attribute__((target(isa))) static void fill_nt_##suffix(void *to, int byte, size_t bytes)              \
    {                                                                                                        \
        const type v = set1((char)byte);                                                                     \
                                                                                                             \
        for (char *p = to, *end = p + bytes; p < end; p += 64)                                               \
            _Pragma("GCC unroll 2")                                                                          \
            for (int i = 0; i < 64; i += width)                                                              \
                stream((void *)(p + i), v);                                                                  \
        _mm_sfence();                                                                                        \
    }                                                                                                        \
    __attribute__((target(isa))) static void copy_##suffix(void *to, const void *from, size_t bytes)         \
    {                                                                                                        \
        const char *q = from;                                                                                \
                                                                                                             \
        for (char *p = to, *end = p + bytes; p < end; p += 64, q += 64)                                      \
            _Pragma("GCC unroll 2")                                                                          \
            for (int i = 0; i < 64; i += width)                                                              \
                store((void *)(p + i), load((const void *)(q + i)));                                         \
    }                                                                                                        \
    __attribute__((target(isa))) static void copy_nt_##suffix(void *to, const void *from, size_t bytes)      \
    {                                                                                                        \
        const char *q = from;                                                                                \
                                                                                                             \
        for (char *p = to, *end = p + bytes; p < end; p += 64, q += 64)                                      \
            _Pragma("GCC unroll 2")                                                                          \
            for (int i = 0; i < 64; i += width)                                                              \
                stream((void *)(p + i), load((const void *)(q + i)));                                        \
        _mm_sfence();                                                                                        \
    }                                                                                                        \
    static const baseline suffix##_baseline = { #suffix, fill_##suffix, fill_nt_##suffix, copy_##suffix,               \
                                                copy_nt_##suffix };

BASELINE(avx2, "avx2", __m256i, 32, _mm256_set1_epi8, _mm256_load_si256, _mm256_store_si256, _mm256_stream_si256)
BASELINE(avx512, "avx512f,avx512bw", __m512i, 64, _mm512_set1_epi8, _mm512_load_si512, _mm512_store_si512,
         _mm512_stream_si512)
#endif

const baseline *baseline_get(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw"))
        return &avx512_baseline;
    if (__builtin_cpu_supports("avx2"))
        return &avx2_baseline;
#endif
    return &libc_baseline;
}
