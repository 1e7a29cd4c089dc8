/* SPDX-License-Identifier: Apache-2.0 */
/* hand.c - the yardstick at both vector widths, and the loader of an external one.  The loops are in
 * hand_template.h. */
#include "tests/bench/hand.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>

static const int hand_count32[16] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };

static inline int64_t hand_clamp(int64_t x, uint64_t columns)
{
    return x < 0 ? 0 : x > (int64_t)columns ? (int64_t)columns : x;
}

/* --- AVX2 --------------------------------------------------------------------------------------------------------- */
#define HAND(name) name##_avx2
#define HAND_NAME "avx2"
#define ISA __attribute__((target("avx2,fma,f16c")))
#define VEC __m256i
#define WIDTH 32
#define V_LOAD _mm256_load_si256
#define V_LOADU _mm256_loadu_si256
#define V_STORE _mm256_store_si256
#define V_STOREU _mm256_storeu_si256
#define V_STREAM _mm256_stream_si256
#define V_SET8 _mm256_set1_epi8
#define V_SET32 _mm256_set1_epi32
#define V_SET64 _mm256_set1_epi64x
#define V_ADD8 _mm256_add_epi8
#define V_ADD32 _mm256_add_epi32
#define V_ADD64 _mm256_add_epi64
#define V_AND _mm256_and_si256
#define V_ANDNOT _mm256_andnot_si256
#define V_OR _mm256_or_si256
#define V_SEQUENCE(counter, delta, start) \
    _mm256_castps_si256(_mm256_fmadd_ps(_mm256_cvtepi32_ps(counter), _mm256_set1_ps(delta), _mm256_set1_ps(start)))
#define V_HALVES(low, high)                                            \
    _mm256_set_m128i(_mm256_cvtps_ph(_mm256_castsi256_ps(high), 0),    \
                     _mm256_cvtps_ph(_mm256_castsi256_ps(low), 0))
#include "tests/bench/hand_template.h"
#undef HAND
#undef HAND_NAME
#undef ISA
#undef VEC
#undef WIDTH
#undef V_LOAD
#undef V_LOADU
#undef V_STORE
#undef V_STOREU
#undef V_STREAM
#undef V_SET8
#undef V_SET32
#undef V_SET64
#undef V_ADD8
#undef V_ADD32
#undef V_ADD64
#undef V_AND
#undef V_ANDNOT
#undef V_OR
#undef V_SEQUENCE
#undef V_HALVES

/* --- AVX-512 ------------------------------------------------------------------------------------------------------ */
#define HAND(name) name##_avx512
#define HAND_NAME "avx512"
#define ISA __attribute__((target("avx512f,avx512bw")))
#define VEC __m512i
#define WIDTH 64
#define V_LOAD _mm512_load_si512
#define V_LOADU _mm512_loadu_si512
#define V_STORE _mm512_store_si512
#define V_STOREU _mm512_storeu_si512
#define V_STREAM _mm512_stream_si512
#define V_SET8 _mm512_set1_epi8
#define V_SET32 _mm512_set1_epi32
#define V_SET64 _mm512_set1_epi64
#define V_ADD8 _mm512_add_epi8
#define V_ADD32 _mm512_add_epi32
#define V_ADD64 _mm512_add_epi64
#define V_AND _mm512_and_si512
#define V_ANDNOT _mm512_andnot_si512
#define V_OR _mm512_or_si512
#define V_SEQUENCE(counter, delta, start) \
    _mm512_castps_si512(_mm512_fmadd_ps(_mm512_cvtepi32_ps(counter), _mm512_set1_ps(delta), _mm512_set1_ps(start)))
#define V_HALVES(low, high)                                                                          \
    _mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtps_ph(_mm512_castsi512_ps(low), 0)),         \
                       _mm512_cvtps_ph(_mm512_castsi512_ps(high), 0), 1)
#include "tests/bench/hand_template.h"

const hand *hand_get(void)
{
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw"))
        return &functions_avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return &functions_avx2;
    return NULL;
}

static bool has_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#else
const hand *hand_get(void)
{
    return NULL;
}

static bool has_avx512(void)
{
    return false;
}
#endif

/* --- an external yardstick --------------------------------------------------------------------------------------- */
/* dlsym gives an object pointer; POSIX says that it may be copied into a function pointer. */
static bool find(void *library, const char *name, void *out, char *reason, size_t size)
{
    void *const symbol = dlsym(library, name);

    if (symbol == NULL)
        snprintf(reason, size, "it has no function %s", name);
    memcpy(out, &symbol, sizeof symbol);
    return symbol != NULL;
}

bool hand_library_load(const char *path, hand_library *out, char *reason, size_t size)
{
    void *library;

    if (!has_avx512()) {
        snprintf(reason, size, "it needs AVX-512, which this machine lacks");
        return false;
    }
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        snprintf(reason, size, "%s", dlerror());
        return false;
    }
    return find(library, "hand_eye_f32", &out->eye_f32, reason, size) &&
           find(library, "hand_eye_u8", &out->eye_u8, reason, size) &&
           find(library, "hand_diag1_f32", &out->diag1_f32, reason, size) &&
           find(library, "hand_arange_f32", &out->arange_f32, reason, size) &&
           find(library, "hand_arange_u8", &out->arange_u8, reason, size) &&
           find(library, "hand_arange_i64", &out->arange_i64, reason, size) &&
           find(library, "hand_fill_u32", &out->fill_u32, reason, size) &&
           find(library, "hand_has_clzero", &out->has_clzero, reason, size);
}
