/* SPDX-License-Identifier: Apache-2.0 */
/* hand_masks_512.c - the loops of hand_masks.h for AVX-512: masks in place of comparisons of lanes, and vscalefps for
 * the last step of exp.  A row without a finite score is known by its largest one, so that no element needs a
 * select. */
#include "tests/bench/hand_masks.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <math.h>

#define ISA __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,bmi2")))
#define INLINE ISA static inline __attribute__((always_inline))

#define UNROLLED _Pragma("GCC unroll 4")

enum { LANES = 16, MOST_COLUMNS = 4096 };

/* --- parts -------------------------------------------------------------------------------------------------------- */

INLINE __m512 all(float x)
{
    return _mm512_set1_ps(x);
}

INLINE void put(float *p, __m512 v, const bool nt)
{
    if (nt)
        _mm512_stream_ps(p, v);
    else
        _mm512_store_ps(p, v);
}

/* Prefetches: past the end of rows the processor by itself does not read far enough ahead. */
INLINE void fetch(const float *p)
{
    _mm_prefetch((const char *)(p + 512), _MM_HINT_T0);
}

INLINE void put_all(float *p, uint64_t count, __m512 v, const bool nt)
{
    for (uint64_t i = 0; i < count; i += LANES)
        put(p + i, v, nt);
}

/* The first `count` lanes, at most 16. */
INLINE __mmask16 first_lanes(uint64_t count)
{
    return (__mmask16)_bzhi_u32(0xffff, (uint32_t)count);
}

/* The library's exp of f32: ir/eval/math_exp.c.  vminps and vmaxps give their second operand for a NaN; vscalefps
 * rounds once, as a product by a power of two does. */
INLINE __m512 exp_any(__m512 x)
{
    const __m512 magic = all(0x1.8p23f), t = _mm512_fmadd_ps(x, all(0x1.715476p+0f), magic);
    const __m512 n = _mm512_sub_ps(t, magic);
    const __m512 r = _mm512_fmadd_ps(n, all(-0x1.7f7d1cp-20f), _mm512_fmadd_ps(n, all(-0x1.62e4p-1f), x));
    __m512 p = _mm512_fmadd_ps(all(0x1.6d53e6p-10f), r, all(0x1.123fb8p-7f));
    p = _mm512_fmadd_ps(p, r, all(0x1.5554e2p-5f));
    p = _mm512_fmadd_ps(p, r, all(0x1.555488p-3f));
    p = _mm512_fmadd_ps(p, r, all(0x1p-1f));
    p = _mm512_fmadd_ps(p, r, all(1));
    p = _mm512_fmadd_ps(p, r, all(1));
    return _mm512_scalef_ps(p, n);
}

INLINE __m512 exp_below(__m512 x)
{
    return exp_any(_mm512_max_ps(all(-104.5f), x));
} /* x: at most 0 */
INLINE __m512 exp16(__m512 x)
{
    return exp_below(_mm512_min_ps(all(90), x));
}

/* Columns of row i that the mask lets through. */
INLINE uint64_t visible(const hand_masks_job *job, uint64_t i)
{
    const uint64_t y = i % job->rows;
    return y + 1 < job->columns ? y + 1 : job->columns;
}

/* --- exp(mask(scores + slope (x - y))) ---------------------------------------------------------------------------- */

INLINE void alibi(const hand_masks_job *job, uint64_t begin, uint64_t end, const bool nt)
{
    const uint64_t columns = job->columns;
    const __m512 count = _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15), step = all(LANES);
    for (uint64_t i = begin; i < end; i++) {
        const uint64_t y = i % job->rows, length = visible(job, i), whole = length & ~UINT64_C(15);
        const float *const in = job->in + i * columns;
        float *const out = job->out + i * columns;
        const __m512 slope = all(job->more[i / job->rows]);
        __m512 x = _mm512_sub_ps(count, all((float)y));
        uint64_t j = 0;
        for (; j < whole; j += LANES, x = _mm512_add_ps(x, step)) {
            fetch(in + j);
            put(out + j, exp16(_mm512_add_ps(_mm512_load_ps(in + j), _mm512_mul_ps(slope, x))), nt);
        }
        if (j < length) {
            const __m512 e = exp16(_mm512_add_ps(_mm512_load_ps(in + j), _mm512_mul_ps(slope, x)));
            put(out + j, _mm512_maskz_mov_ps(first_lanes(length - j), e), nt);
            j += LANES;
        }
        put_all(out + j, columns - j, _mm512_setzero_ps(), nt);
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
    const __m512 low = all(-INFINITY);
    __m512 m[4] = { low, low, low, low };
    uint64_t j = 0;
    for (; j + 4 * LANES <= length; j += 4 * LANES)
        UNROLLED
    for (int k = 0; k < 4; k++)
        m[k] = _mm512_max_ps(_mm512_load_ps(in + j + k * LANES), m[k]);
    for (; j + LANES <= length; j += LANES)
        m[0] = _mm512_max_ps(_mm512_load_ps(in + j), m[0]);
    m[1] =
        _mm512_mask_max_ps(m[1], first_lanes(length - j), _mm512_maskz_load_ps(first_lanes(length - j), in + j), m[1]);
    return _mm512_reduce_max_ps(_mm512_max_ps(_mm512_max_ps(m[0], m[1]), _mm512_max_ps(m[2], m[3])));
}

/* Lanes 0 to 31 by halves. */
INLINE float folded(const __m512 *s)
{
    const __m512 sum = _mm512_add_ps(s[0], s[1]);
    const __m256 a = _mm256_add_ps(_mm512_castps512_ps256(sum), _mm512_extractf32x8_ps(sum, 1));
    __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(b, _mm_shuffle_ps(b, b, 1)));
}

/* exp(in - most) into row, whole vectors, and 0 behind length; returns the sum. */
INLINE float exps(const float *in, uint64_t length, float top, float *row)
{
    const __m512 most = all(top == -INFINITY ? 0 : top);
    __m512 s[2] = { _mm512_setzero_ps(), _mm512_setzero_ps() };
    uint64_t j = 0;
    for (; j + 2 * LANES <= length; j += 2 * LANES) {
        fetch(in + j);
        fetch(in + j + LANES);
        UNROLLED
        for (int k = 0; k < 2; k++) {
            const __m512 e = exp_below(_mm512_sub_ps(_mm512_load_ps(in + j + k * LANES), most));
            _mm512_store_ps(row + j + k * LANES, e);
            s[k] = _mm512_add_ps(s[k], e);
        }
    }
    for (int k = 0; j < length; j += LANES, k++) {
        const __mmask16 lanes = first_lanes(length - j < 16 ? length - j : 16);
        const __m512 e =
            _mm512_maskz_mov_ps(lanes, exp_below(_mm512_sub_ps(_mm512_maskz_load_ps(lanes, in + j), most)));
        _mm512_store_ps(row + j, e);
        s[k] = _mm512_add_ps(s[k], e);
    }
    return folded(s);
}

/* A few rows at a time, so that folds of one overlap with the others' work. */
INLINE void softmax(const hand_masks_job *job, uint64_t begin, uint64_t end, const bool nt)
{
    enum { MOST_ROWS = 4 };
    _Alignas(64) float scratch[MOST_ROWS * MOST_COLUMNS];
    float top[MOST_ROWS], sum[MOST_ROWS];
    const uint64_t columns = job->columns;
    for (uint64_t i = begin; i < end; i += MOST_ROWS) {
        const uint64_t rows = end - i < MOST_ROWS ? end - i : MOST_ROWS;
        for (uint64_t r = 0; r < rows; r++)
            top[r] = largest(job->in + (i + r) * columns, visible(job, i + r));
        for (uint64_t r = 0; r < rows; r++)
            sum[r] = exps(job->in + (i + r) * columns, visible(job, i + r), top[r], scratch + r * columns);
        for (uint64_t r = 0; r < rows; r++) {
            const float *const row = scratch + r * columns;
            float *const out = job->out + (i + r) * columns;
            const uint64_t stop = (visible(job, i + r) + LANES - 1) & ~UINT64_C(15);
            const __m512 q = all(1.0f / sum[r]);
            for (uint64_t k = 0; k < stop; k += LANES)
                put(out + k, _mm512_mul_ps(_mm512_load_ps(row + k), q), nt);
            put_all(out + stop, columns - stop, _mm512_mul_ps(_mm512_setzero_ps(), q), nt); /* NaN where the row is */
        }
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
INLINE __m512 chain(__m512 x, __m512 row, const uint32_t length)
{
#pragma GCC unroll 16
    for (uint32_t i = 0; i < length; i++) {
        switch (i % 5) {
        case 0: x = _mm512_add_ps(x, row); break;
        case 1: x = _mm512_mul_ps(x, row); break;
        case 2: x = _mm512_mask_max_ps(x, _mm512_cmp_ps_mask(x, x, _CMP_ORD_Q), x, row); break;
        case 3: x = _mm512_sub_ps(x, row); break;
        default: x = _mm512_min_ps(all(0.75f), _mm512_max_ps(all(-0.75f), x)); break;
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
        for (uint64_t j = 0; j < columns; j += LANES) {
            fetch(in + j);
            put(out + j, chain(_mm512_load_ps(in + j), _mm512_load_ps(job->more + j), length), nt);
        }
    }
}

#define CHAIN(n)                                  \
    case n:                                       \
        if (job->mode == HAND_NT)                 \
            run_chain(job, begin, end, n, true);  \
        else                                      \
            run_chain(job, begin, end, n, false); \
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

const hand_masks hand_masks_avx512 = { "avx512", alibi_exp, causal_softmax, chain_of };
#else
const hand_masks hand_masks_avx512 = { .name = "none" };
#endif
