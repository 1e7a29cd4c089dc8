/* SPDX-License-Identifier: Apache-2.0 */
/* across.c - the yardstick for inputs stored across their output: transposes squares of 8 x 8 elements in registers. */
#include "tests/bench/across.h"

#if defined(__x86_64__)
#include <immintrin.h>

__attribute__((target("avx2"))) static void turn_8x8(const float *in, float *out, uint32_t side)
{
    __m256 r[8], t[8];

    for (size_t k = 0; k < 8; k++)
        r[k] = _mm256_loadu_ps(in + k * side);
    for (size_t k = 0; k < 4; k++) {
        t[2 * k] = _mm256_unpacklo_ps(r[2 * k], r[2 * k + 1]);
        t[2 * k + 1] = _mm256_unpackhi_ps(r[2 * k], r[2 * k + 1]);
    }
    for (size_t k = 0; k < 8; k += 4) {
        r[k] = _mm256_shuffle_ps(t[k], t[k + 2], 0x44);
        r[k + 1] = _mm256_shuffle_ps(t[k], t[k + 2], 0xee);
        r[k + 2] = _mm256_shuffle_ps(t[k + 1], t[k + 3], 0x44);
        r[k + 3] = _mm256_shuffle_ps(t[k + 1], t[k + 3], 0xee);
    }
    for (size_t k = 0; k < 4; k++) {
        _mm256_storeu_ps(out + k * side, _mm256_permute2f128_ps(r[k], r[k + 4], 0x20));
        _mm256_storeu_ps(out + (k + 4) * side, _mm256_permute2f128_ps(r[k], r[k + 4], 0x31));
    }
}

bool across_turn(const float *in, float *out, uint32_t side)
{
    if (!__builtin_cpu_supports("avx2"))
        return false;
    for (uint32_t i = 0; i < side; i += 64)
        for (uint32_t j = 0; j < side; j += 16)
            for (uint32_t y = i; y < i + 64; y += 8)
                for (uint32_t x = j; x < j + 16; x += 8)
                    turn_8x8(in + (size_t)x * side + y, out + (size_t)y * side + x, side);
    return true;
}
#else
bool across_turn(const float *in, float *out, uint32_t side)
{
    (void)in;
    (void)out;
    (void)side;
    return false;
}
#endif

void across_turn_simply(const float *in, float *out, uint32_t side)
{
    for (uint32_t i = 0; i < side; i += 64)
        for (uint32_t j = 0; j < side; j += 8)
            for (uint32_t y = i; y < i + 64; y++)
                for (uint32_t x = j; x < j + 8; x++)
                    out[(size_t)y * side + x] = in[(size_t)x * side + y];
}
