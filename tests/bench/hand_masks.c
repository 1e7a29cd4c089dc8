/* SPDX-License-Identifier: Apache-2.0 */
/* hand_masks.c - the loops of hand_masks.h for AVX2 and FMA, and the choice of a version. */
#include "tests/bench/hand_masks.h"

#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#include <math.h>

#define ISA __attribute__((target("avx2,fma")))
#define INLINE static inline __attribute__((always_inline, target("avx2,fma")))

#define UNROLLED _Pragma("GCC unroll 4")

enum { LANES = 8, MOST_COLUMNS = 4096 };

/* --- parts -------------------------------------------------------------------------------------------------------- */

INLINE __m256 all(float x) { return _mm256_set1_ps(x); }

INLINE void put(float *p, __m256 v, const bool nt)
{
    if (nt)
        _mm256_stream_ps(p, v);
    else
        _mm256_store_ps(p, v);
}

/* Prefetches: past the end of rows the processor by itself does not read far enough ahead. */
INLINE void fetch(const float *p) { _mm_prefetch((const char *)(p + 512), _MM_HINT_T0); }

INLINE void put_all(float *p, uint64_t count, __m256 v, const bool nt)
{
    uint64_t i = 0;
    for (; i + 4 * LANES <= count; i += 4 * LANES) {
        put(p + i, v, nt);
        put(p + i + LANES, v, nt);
        put(p + i + 2 * LANES, v, nt);
        put(p + i + 3 * LANES, v, nt);
    }
    for (; i < count; i += LANES)
        put(p + i, v, nt);
}

/* All ones in the first `count` lanes, at most 8. */
INLINE __m256 first_lanes(uint64_t count)
{
    return _mm256_castsi256_ps(
        _mm256_cmpgt_epi32(_mm256_set1_epi32((int)count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)));
}

/* The library's exp of f32: ir/eval/math_exp.c.  minps and maxps give their second operand for a NaN; the sign bit
 * chooses the scale, which is the same for -0 either way. */
INLINE __m256 exp8(__m256 x)
{
    x = _mm256_max_ps(all(-104.5f), _mm256_min_ps(all(90), x));
    const __m256 magic = all(0x1.8p23f), t = _mm256_fmadd_ps(x, all(0x1.715476p+0f), magic),
                 n = _mm256_sub_ps(t, magic);
    const __m256 r = _mm256_fmadd_ps(n, all(-0x1.7f7d1cp-20f), _mm256_fmadd_ps(n, all(-0x1.62e4p-1f), x));
    __m256 p = _mm256_fmadd_ps(all(0x1.6d53e6p-10f), r, all(0x1.123fb8p-7f));
    p = _mm256_fmadd_ps(p, r, all(0x1.5554e2p-5f));
    p = _mm256_fmadd_ps(p, r, all(0x1.555488p-3f));
    p = _mm256_fmadd_ps(p, r, all(0x1p-1f));
    p = _mm256_fmadd_ps(p, r, all(1));
    p = _mm256_fmadd_ps(p, r, all(1));
    const __m256 shift = _mm256_blendv_ps(_mm256_castsi256_ps(_mm256_set1_epi32((int)0xe0000000)),
                                          _mm256_castsi256_ps(_mm256_set1_epi32(0x20000000)), x);
    const __m256i bits = _mm256_add_epi32(_mm256_castps_si256(p), _mm256_slli_epi32(_mm256_castps_si256(t), 23));
    const __m256 y = _mm256_castsi256_ps(_mm256_add_epi32(bits, _mm256_castps_si256(shift)));
    return _mm256_fmadd_ps(y, _mm256_blendv_ps(all(0x1p64f), all(0x1p-64f), x), _mm256_mul_ps(x, all(0)));
}

/* --- exp(mask(scores + slope (x - y))) ---------------------------------------------------------------------------- */

INLINE void alibi(const hand_masks_job *job, uint64_t begin, uint64_t end, const bool nt)
{
    const uint64_t columns = job->columns;
    for (uint64_t i = begin; i < end; i++) {
        const uint64_t y = i % job->rows, length = y + 1 < columns ? y + 1 : columns, whole = length & ~UINT64_C(7);
        const float *const in = job->in + i * columns;
        float *const out = job->out + i * columns;
        const __m256 slope = all(job->more[i / job->rows]), step = all(LANES);
        __m256 x = _mm256_sub_ps(_mm256_setr_ps(0, 1, 2, 3, 4, 5, 6, 7), all((float)y));
        uint64_t j = 0;
        for (; j < whole; j += LANES, x = _mm256_add_ps(x, step)) {
            fetch(in + j);
            put(out + j, exp8(_mm256_add_ps(_mm256_load_ps(in + j), _mm256_mul_ps(slope, x))), nt);
        }
        if (j < length) {
            const __m256 e = exp8(_mm256_add_ps(_mm256_load_ps(in + j), _mm256_mul_ps(slope, x)));
            put(out + j, _mm256_and_ps(e, first_lanes(length - j)), nt);
            j += LANES;
        }
        put_all(out + j, columns - j, _mm256_setzero_ps(), nt);
    }
}

ISA static void alibi_exp(const hand_masks_job *job, uint64_t begin, uint64_t end)
{
    if (job->mode == HAND_NT)
        alibi(job, begin, end, true);
    else
        alibi(job, begin, end, false);
    if (job->mode == HAND_NT)
        _mm_sfence();
}

/* --- softmax ------------------------------------------------------------------------------------------------------ */

/* A NaN may be passed over: its exp is one, and so is everything that is divided by their sum. */
INLINE float largest(const float *in, uint64_t length)
{
    const __m256 low = all(-INFINITY);
    __m256 m[4] = { low, low, low, low };
    uint64_t j = 0;
    for (; j + 4 * LANES <= length; j += 4 * LANES)
        UNROLLED
        for (int k = 0; k < 4; k++)
            m[k] = _mm256_max_ps(_mm256_load_ps(in + j + k * LANES), m[k]);
    for (; j < length; j += LANES) {
        const __m256 lanes = first_lanes(length - j < 8 ? length - j : 8);
        m[0] = _mm256_max_ps(_mm256_blendv_ps(low, _mm256_load_ps(in + j), lanes), m[0]);
    }
    const __m256 a = _mm256_max_ps(_mm256_max_ps(m[0], m[1]), _mm256_max_ps(m[2], m[3]));
    __m128 b = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_max_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_max_ss(b, _mm_shuffle_ps(b, b, 1)));
}

/* Lanes 0 to 31 by halves. */
INLINE float folded(const __m256 *s)
{
    const __m256 a = _mm256_add_ps(_mm256_add_ps(s[0], s[2]), _mm256_add_ps(s[1], s[3]));
    __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(b, _mm_shuffle_ps(b, b, 1)));
}

INLINE __m256 numerator(const float *in, __m256 most)
{
    const __m256 x = _mm256_load_ps(in);
    return _mm256_and_ps(_mm256_cmp_ps(x, all(-INFINITY), _CMP_NEQ_UQ), exp8(_mm256_sub_ps(x, most)));
}

INLINE void softmax(const hand_masks_job *job, uint64_t begin, uint64_t end, const bool nt)
{
    _Alignas(64) float row[MOST_COLUMNS];
    const uint64_t columns = job->columns;
    for (uint64_t i = begin; i < end; i++) {
        const uint64_t y = i % job->rows, length = y + 1 < columns ? y + 1 : columns;
        const float *const in = job->in + i * columns;
        float *const out = job->out + i * columns;
        const __m256 most = all(largest(in, length));
        __m256 s[4] = { _mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps() };
        uint64_t j = 0;
        for (; j + 4 * LANES <= length; j += 4 * LANES) {
            fetch(in + j);
            fetch(in + j + 2 * LANES);
            UNROLLED
            for (int k = 0; k < 4; k++) {
                const __m256 e = numerator(in + j + k * LANES, most);
                _mm256_store_ps(row + j + k * LANES, e);
                s[k] = _mm256_add_ps(s[k], e);
            }
        }
        for (int k = 0; j < length; j += LANES, k++) {
            const __m256 lanes = first_lanes(length - j < 8 ? length - j : 8);
            const __m256 e = _mm256_and_ps(numerator(in + j, most), lanes);
            _mm256_store_ps(row + j, e);
            s[k] = _mm256_add_ps(s[k], e);
        }
        const __m256 q = all(1.0f / folded(s));
        for (uint64_t k = 0; k < j; k += LANES)
            put(out + k, _mm256_mul_ps(_mm256_load_ps(row + k), q), nt);
        put_all(out + j, columns - j, _mm256_mul_ps(_mm256_setzero_ps(), q), nt); /* NaN where the row is */
    }
}

ISA static void causal_softmax(const hand_masks_job *job, uint64_t begin, uint64_t end)
{
    if (job->mode == HAND_NT)
        softmax(job, begin, end, true);
    else
        softmax(job, begin, end, false);
    if (job->mode == HAND_NT)
        _mm_sfence();
}

/* --- chains ------------------------------------------------------------------------------------------------------- */

/* The first `length` operators of graph_chain.  The row has no NaN, so one in x passes max as its second operand; but
 * a zero of x must not: where both are 0 the row's is the result. */
INLINE __m256 chain(__m256 x, __m256 row, const uint32_t length)
{
#pragma GCC unroll 16
    for (uint32_t i = 0; i < length; i++) {
        switch (i % 5) {
        case 0: x = _mm256_add_ps(x, row); break;
        case 1: x = _mm256_mul_ps(x, row); break;
        case 2: x = _mm256_blendv_ps(_mm256_max_ps(x, row), x, _mm256_cmp_ps(x, x, _CMP_UNORD_Q)); break;
        case 3: x = _mm256_sub_ps(x, row); break;
        default: x = _mm256_min_ps(all(0.75f), _mm256_max_ps(all(-0.75f), x)); break;
        }
    }
    return x;
}

INLINE void run_chain(const hand_masks_job *job, uint64_t begin, uint64_t end, const uint32_t length, const bool nt)
{
    const uint64_t columns = job->columns;
    for (uint64_t i = begin; i < end; i++) {
        const float *const in = job->in + (job->again ? begin : i) * columns;
        float *const out = job->out + (job->again ? begin : i) * columns;
        for (uint64_t j = 0; j < columns; j += 2 * LANES) {
            fetch(in + j);
            const __m256 a = _mm256_load_ps(job->more + j), b = _mm256_load_ps(job->more + j + LANES);
            put(out + j, chain(_mm256_load_ps(in + j), a, length), nt);
            put(out + j + LANES, chain(_mm256_load_ps(in + j + LANES), b, length), nt);
        }
    }
}

#define CHAIN(n)                                                                                    \
    case n:                                                                                         \
        if (job->mode == HAND_NT)                                                                   \
            run_chain(job, begin, end, n, true);                                                    \
        else                                                                                        \
            run_chain(job, begin, end, n, false);                                                   \
        break;

ISA static void chain_of(const hand_masks_job *job, uint64_t begin, uint64_t end)
{
    switch (job->length) {
        CHAIN(0)
        CHAIN(2)
        CHAIN(5)
        CHAIN(8)
        CHAIN(10)
        CHAIN(15)
    default: break; /* no other lengths are asked for */
    }
    if (job->mode == HAND_NT)
        _mm_sfence();
}
const hand_masks hand_masks_avx2 = { "avx2", alibi_exp, causal_softmax, chain_of };

const hand_masks *hand_masks_get(const char *target)
{
    const bool wide = __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vl");
    if (strstr(target, "x86-64-v4") != NULL && wide)
        return &hand_masks_avx512;
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? &hand_masks_avx2 : NULL;
}
#else
const hand_masks hand_masks_avx2 = { .name = "none" };

const hand_masks *hand_masks_get(const char *target)
{
    (void)target;
    return NULL;
}
#endif
