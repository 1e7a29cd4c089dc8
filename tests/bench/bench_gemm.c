/* SPDX-License-Identifier: Apache-2.0 */
/* bench_gemm.c - products of matrices (GEMM, FLOAT32, one thread) against tiles written by hand in C, whose results are
 * the same bits, and against OpenBLAS where it is installed (Debian: libopenblas0-pthread), whose sums are in another
 * order. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <opjit/graph_ops.h>
#include <opjit/opjit.h>

#include "tests/bench/report.h"

#if defined __x86_64__
#include <immintrin.h>
#endif

enum { SAMPLE = 2000 /* us */, K_BLOCK = 256, COLUMN_BLOCK = 512 };

typedef struct sizes {
    const char *name;
    uint32_t m, n, k;
    bool by_hand; /* whole tiles and blocks */
    double hand_limit, blas_limit;
} sizes;

static const sizes cases[] = {
    { "64^3", 64, 64, 64, true, 1.3, 1.1 },
    { "512^3", 512, 512, 512, true, 1.1, 1.1 },
    { "1024^3", 1024, 1024, 1024, true, 1.1, 1.1 },
    { "128x3072x768", 128, 3072, 768, true, 1.1, 1.1 },
    { "511x513x517", 511, 513, 517, false, 0, 1.15 },
    { "1000^3", 1000, 1000, 1000, false, 0, 1.2 },
};

typedef struct product {
    const sizes *s;
    float *a, *b, *out, *other;
    float *panels; /* by hand */
    opjit_kernel *kernel;
    opjit_call call;
    opjit_binding bindings[3];
    bool failed;
} product;

/* --- by hand ------------------------------------------------------------------------------------------------------ */

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
static void pack(const product *p, const hand *h, uint32_t k0, uint32_t count, uint32_t j0, uint32_t columns)
{
    for (uint32_t j = 0; j < columns; j += h->columns)
        for (uint32_t k = 0; k < count; k++)
            memcpy(p->panels + (size_t)j * count + (size_t)k * h->columns,
                   p->b + (size_t)(k0 + k) * p->s->n + j0 + j, h->columns * sizeof(float));
}

static void run_hand(void *arg)
{
    const product *const p = arg;
    const sizes *const s = p->s;
    const hand h = find_hand();
    for (size_t i = 0; i < (size_t)s->m * s->n; i++)
        p->other[i] = -0.0f;
    for (uint32_t j0 = 0; j0 < s->n; j0 += COLUMN_BLOCK) {
        const uint32_t columns = least(COLUMN_BLOCK, s->n - j0);
        for (uint32_t k0 = 0; k0 < s->k; k0 += K_BLOCK) {
            const uint32_t count = least(K_BLOCK, s->k - k0);
            pack(p, &h, k0, count, j0, columns);
            for (uint32_t i = 0; i < s->m; i += h.rows)
                for (uint32_t j = 0; j < columns; j += h.columns)
                    h.tile(p->a + (size_t)i * s->k + k0, s->k, p->panels + (size_t)j * count, count,
                           p->other + (size_t)i * s->n + j0 + j, s->n);
        }
    }
}

/* --- OpenBLAS ----------------------------------------------------------------------------------------------------- */

typedef void (*sgemm_fn)(int order, int trans_a, int trans_b, int m, int n, int k, float alpha, const float *a, int lda,
                         const float *b, int ldb, float beta, float *c, int ldc);
static sgemm_fn sgemm; /* NULL: not installed */

/* Its AVX-512 kernels on Zen 4, too, which it would not take by itself; on one thread. */
static void find_blas(void)
{
    if (find_hand().columns == 32)
        setenv("OPENBLAS_CORETYPE", "SkylakeX", 0);
    setenv("OPENBLAS_NUM_THREADS", "1", 1);
    void *const library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    void *const symbol = library ? dlsym(library, "cblas_sgemm") : NULL;
    memcpy(&sgemm, &symbol, sizeof sgemm);
}

static void run_blas(void *arg)
{
    const product *const p = arg;
    const int m = (int)p->s->m, n = (int)p->s->n, k = (int)p->s->k;
    sgemm(101, 111, 111, m, n, k, 1, p->a, k, p->b, n, 0, p->other, n);
}

/* --- ours --------------------------------------------------------------------------------------------------------- */

static void run_kernel(void *arg)
{
    product *const p = arg;
    if (opjit_kernel_call(p->kernel, &p->call, NULL) != OPJIT_OK)
        p->failed = true;
}

static bool make_kernel(opjit_context *context, product *p)
{
    opjit_graph *g = NULL;
    opjit_error error;
    if (opjit_graph_create(context, &g, &error) != OPJIT_OK)
        return false;
    const opjit_tensor a =
        opjit_graph_input(g, "a", DML_TENSOR_DATA_TYPE_FLOAT32, 4, (const uint32_t[]){ 1, 1, p->s->m, p->s->k });
    const opjit_tensor b =
        opjit_graph_input(g, "b", DML_TENSOR_DATA_TYPE_FLOAT32, 4, (const uint32_t[]){ 1, 1, p->s->k, p->s->n });
    opjit_graph_output(g, "out", opjit_graph_matrix_multiply(g, a, b, 0, 0));
    const opjit_status status = opjit_graph_compile(g, NULL, &p->kernel, &error);
    if (status != OPJIT_OK)
        fprintf(stderr, "%s: %s\n", p->s->name, error.message);
    opjit_graph_destroy(g);
    return status == OPJIT_OK;
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

static float *matrix(uint32_t rows, uint32_t columns)
{
    float *const f = measure_buffer((size_t)rows * columns * sizeof *f);
    for (size_t i = 0; f && i < (size_t)rows * columns; i++)
        f[i] = (float)((int)(i * 2654435761u >> 20) - 2048) / 1024;
    return f;
}

static void put(report *r, product *p, const char *reference, measure_fn other, double limit)
{
    measure_pair pair;
    measure_run(run_kernel, p, other, p, r->pairs, SAMPLE, &pair);
    report_put(r, &(report_row){ .name = p->s->name, .ns = pair.a_ns, .bytes = NAN, .memset_ratio = NAN,
                                 .reference = reference, .ratio = pair.ratio, .lo = pair.lo, .hi = pair.hi,
                                 .bar = BAR_AT_MOST, .limit = limit });
}

static bool measure(report *r, product *p)
{
    const size_t bytes = (size_t)p->s->m * p->s->n * sizeof(float);
    if (find_hand().tile && p->s->by_hand) {
        run_kernel(p);
        run_hand(p);
        if (memcmp(p->out, p->other, bytes) != 0) {
            fprintf(stderr, "%s: the kernel and the tiles by hand differ\n", p->s->name);
            return false;
        }
        put(r, p, "hand", run_hand, p->s->hand_limit);
    }
    if (sgemm)
        put(r, p, "OpenBLAS", run_blas, p->s->blas_limit);
    return !p->failed;
}

static bool one(report *r, opjit_context *context, const sizes *s)
{
    product p = { .s = s, .a = matrix(s->m, s->k), .b = matrix(s->k, s->n), .out = matrix(s->m, s->n),
                  .other = matrix(s->m, s->n), .panels = matrix(K_BLOCK, COLUMN_BLOCK) };
    bool ok = p.a && p.b && p.out && p.other && p.panels && make_kernel(context, &p);
    if (ok) {
        p.bindings[0] = (opjit_binding){ p.a, (uint64_t)s->m * s->k * 4 };
        p.bindings[1] = (opjit_binding){ p.b, (uint64_t)s->k * s->n * 4 };
        p.bindings[2] = (opjit_binding){ p.out, (uint64_t)s->m * s->n * 4 };
        p.call = (opjit_call){ .struct_size = sizeof p.call, .binding_count = 3, .bindings = p.bindings };
        ok = measure(r, &p);
    }
    opjit_kernel_release(p.kernel);
    const size_t elements[] = { (size_t)s->m * s->k, (size_t)s->k * s->n, (size_t)s->m * s->n, (size_t)s->m * s->n,
                                (size_t)K_BLOCK * COLUMN_BLOCK };
    float *const buffers[] = { p.a, p.b, p.out, p.other, p.panels };
    for (uint32_t i = 0; i < 5; i++)
        if (buffers[i])
            measure_buffer_free(buffers[i], elements[i] * sizeof(float));
    return ok;
}

int main(int argc, char **argv)
{
    report r;
    opjit_context *context = NULL;
    opjit_error error;
    const int status = report_options(&r, argc, argv);
    if (status != 0)
        return status;
    find_blas();
    if (opjit_context_create(NULL, &context, &error) != OPJIT_OK) {
        fprintf(stderr, "bench_gemm: %s\n", error.message);
        return 1;
    }
    report_begin(&r, "gemm", opjit_context_target(context));
    bool ok = true;
    for (size_t i = 0; i < sizeof cases / sizeof *cases && ok; i++)
        if (report_wants(&r, cases[i].name))
            ok = one(&r, context, &cases[i]);
    opjit_context_destroy(context);
    return ok ? report_end(&r) : 1;
}
