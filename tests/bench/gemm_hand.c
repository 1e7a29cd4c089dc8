/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_hand.c - products in tiles written by hand in C, in opjit's order of sums. */
#include <stddef.h>
#include <string.h>

#include "tests/bench/gemm.h"

#if defined __x86_64__
#include <immintrin.h>
#endif

/* The sums of `count` k of ROWS x 2 vectors, added to totals. */
#define TILE(suffix, isa, ROWS, W, vector, zero, set, get, put, multiply, plus)                                        \
    __attribute__((target(isa), noinline)) static void tile_##suffix(const float *a, uint32_t lda, const float *b,     \
                                                                     uint32_t count, float *c, uint32_t ldc)           \
    {                                                                                                                  \
        vector t[ROWS][2];                                                                                             \
        _Pragma("GCC unroll 16") for (uint32_t i = 0; i < ROWS; i++) t[i][0] = t[i][1] = zero();                       \
        for (uint32_t k = 0; k < count; k++) {                                                                         \
            const vector b0 = get(b + k * 2 * W), b1 = get(b + k * 2 * W + W);                                         \
            _Pragma("GCC unroll 16") for (uint32_t i = 0; i < ROWS; i++)                                               \
            {                                                                                                          \
                const vector x = set(a[i * lda + k]);                                                                  \
                t[i][0] = multiply(x, b0, t[i][0]);                                                                    \
                t[i][1] = multiply(x, b1, t[i][1]);                                                                    \
            }                                                                                                          \
        }                                                                                                              \
        _Pragma("GCC unroll 16") for (uint32_t i = 0; i < ROWS; i++) for (uint32_t j = 0; j < 2; j++)                  \
            put(c + i * ldc + j * W, plus(get(c + i * ldc + j * W), t[i][j]));                                         \
    }

typedef void (*tile_fn)(const float *a, uint32_t lda, const float *b, uint32_t count, float *c, uint32_t ldc);
typedef struct hand {
    tile_fn tile;
    uint32_t rows, columns; /* of a tile */
} hand;

#if defined __x86_64__
TILE(512, "avx512f", 8, 16, __m512, _mm512_setzero_ps, _mm512_set1_ps, _mm512_loadu_ps, _mm512_storeu_ps,
     _mm512_fmadd_ps, _mm512_add_ps)
TILE(256, "avx2,fma", 4, 8, __m256, _mm256_setzero_ps, _mm256_set1_ps, _mm256_loadu_ps, _mm256_storeu_ps,
     _mm256_fmadd_ps, _mm256_add_ps)
static hand find_hand(void)
{
    if (__builtin_cpu_supports("avx512f"))
        return (hand){ tile_512, 8, 32 };
    return __builtin_cpu_supports("fma") ? (hand){ tile_256, 4, 16 } : (hand){ NULL, 0, 0 };
}
#else
static hand find_hand(void)
{
    return (hand){ NULL, 0, 0 };
}
#endif

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Columns of a block of k, panel by panel. */
static void pack(const gemm *g, const hand *h, uint32_t k0, uint32_t count, uint32_t j0, uint32_t columns)
{
    float *const panels = g->panels;
    for (uint32_t j = 0; j < columns; j += h->columns)
        for (uint32_t k = 0; k < count; k++)
            memcpy(panels + (size_t)j * count + (size_t)k * h->columns, g->b + (size_t)(k0 + k) * g->n + j0 + j,
                   h->columns * sizeof(float));
}

bool gemm_hand_runs(void)
{
    return find_hand().tile != NULL;
}

void gemm_hand_run(void *arg)
{
    const gemm *const g = arg;
    const hand h = find_hand();
    const float *const panels = g->panels;
    for (size_t i = 0; i < (size_t)g->m * g->n; i++)
        g->out[i] = -0.0f;
    for (uint32_t j0 = 0; j0 < g->n; j0 += GEMM_COLUMN_BLOCK) {
        const uint32_t columns = least(GEMM_COLUMN_BLOCK, g->n - j0);
        for (uint32_t k0 = 0; k0 < g->k; k0 += GEMM_K_BLOCK) {
            const uint32_t count = least(GEMM_K_BLOCK, g->k - k0);
            pack(g, &h, k0, count, j0, columns);
            for (uint32_t i = 0; i < g->m; i += h.rows)
                for (uint32_t j = 0; j < columns; j += h.columns)
                    h.tile(g->a + (size_t)i * g->k + k0, g->k, panels + (size_t)j * count, count,
                           g->out + (size_t)i * g->n + j0 + j, g->n);
        }
    }
}
