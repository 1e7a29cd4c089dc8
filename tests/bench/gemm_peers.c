/* SPDX-License-Identifier: Apache-2.0 */
/* gemm_peers.c - products by OpenBLAS and oneDNN, which are loaded at run time (Debian: libopenblas0-pthread, libdnnl2;
 * libdnnl-dev at build time).  Their sums are in other orders. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/gemm.h"

/* --- OpenBLAS ----------------------------------------------------------------------------------------------------- */

enum { ROW_MAJOR = 101, AS_IT_LIES = 111, TURNED = 112 };

typedef void (*sgemm_fn)(int order, int trans_a, int trans_b, int m, int n, int k, float alpha, const float *a, int lda,
                         const float *b, int ldb, float beta, float *c, int ldc);
typedef void (*sgemv_fn)(int order, int trans, int m, int n, float alpha, const float *a, int lda, const float *x,
                         int x_step, float beta, float *y, int y_step);
static sgemm_fn sgemm; /* NULL: not installed */
static sgemv_fn sgemv;
static void (*set_threads)(int threads);

static void open_blas(void)
{
    void *const library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    void *const matrices = library ? dlsym(library, "cblas_sgemm") : NULL;
    void *const vector = library ? dlsym(library, "cblas_sgemv") : NULL;
    memcpy(&sgemm, &matrices, sizeof sgemm);
    void *const threads = library ? dlsym(library, "openblas_set_num_threads") : NULL;
    memcpy(&sgemv, &vector, sizeof sgemv);
    memcpy(&set_threads, &threads, sizeof set_threads);
}

void gemm_blas_threads(int threads)
{
    if (set_threads)
        set_threads(threads);
}

bool gemm_has_blas(void)
{
    return sgemm != NULL && sgemv != NULL;
}

void gemm_blas_run(void *arg)
{
    const gemm *const g = arg;
    const int m = (int)g->m, n = (int)g->n, k = (int)g->k;
    for (uint32_t i = 0; i < g->batch; i++)
        sgemm(ROW_MAJOR, AS_IT_LIES, g->turned ? TURNED : AS_IT_LIES, m, n, k, 1, g->a + (size_t)i * g->m * g->k, k,
              g->b + (size_t)i * g->k * g->n, g->turned ? k : n, 0, g->out + (size_t)i * g->m * g->n, n);
}

void gemm_blas_vector_run(void *arg)
{
    const gemm *const g = arg;
    const int rows = (int)(g->turned ? g->n : g->k), columns = (int)(g->turned ? g->k : g->n);
    sgemv(ROW_MAJOR, g->turned ? AS_IT_LIES : TURNED, rows, columns, 1, g->b, columns, g->a, 1, 0, g->out, 1);
}

/* --- oneDNN ------------------------------------------------------------------------------------------------------- */

#if defined __has_include
#if __has_include(<oneapi/dnnl/dnnl.h>)
#define HAVE_DNNL 1
#endif
#endif

#if HAVE_DNNL
#include <oneapi/dnnl/dnnl.h>

/* The functions of version 2 that are used here. */
#define FUNCTIONS(X)                                                                                                   \
    X(engine_create) X(stream_create) X(memory_desc_init_by_strides) X(matmul_desc_init) X(primitive_attr_create)      \
    X(primitive_attr_destroy) X(primitive_attr_set_post_ops) X(post_ops_create) X(post_ops_destroy)                    \
    X(post_ops_append_eltwise) X(post_ops_append_binary) X(primitive_desc_create) X(primitive_desc_destroy)            \
    X(primitive_create) X(primitive_destroy) X(memory_create) X(memory_destroy) X(primitive_execute) X(stream_wait)
#define MEMBER(name) __typeof__(&dnnl_##name) name;
static struct {
    FUNCTIONS(MEMBER)
    dnnl_engine_t engine; /* NULL: not installed */
    dnnl_stream_t stream;
} dnn;

enum { MOST_ARGS = 5, RANK = 3 };

struct gemm_dnn {
    dnnl_primitive_t primitive;
    dnnl_exec_arg_t args[MOST_ARGS];
    uint32_t arg_count;
};

static void open_dnn(void)
{
    void *const library = dlopen("libdnnl.so.2", RTLD_NOW | RTLD_LOCAL);
    bool all = library != NULL;
#define LOAD(name)                                                                                                     \
    if (all) {                                                                                                         \
        void *const symbol = dlsym(library, "dnnl_" #name);                                                            \
        memcpy(&dnn.name, &symbol, sizeof symbol);                                                                     \
        all = symbol != NULL;                                                                                          \
    }
    FUNCTIONS(LOAD)
    if (!all || dnn.engine_create(&dnn.engine, dnnl_cpu, 0) != dnnl_success ||
        dnn.stream_create(&dnn.stream, dnn.engine, dnnl_stream_default_flags) != dnnl_success)
        dnn.engine = NULL;
}

/* Describes {batch, rows, columns} whose columns lie `apart` elements apart; rows: those of memory. */
static bool describe(dnnl_memory_desc_t *out, dnnl_dim_t batch, dnnl_dim_t rows, dnnl_dim_t columns, bool turned)
{
    const dnnl_dims_t sizes = { batch, rows, columns };
    const dnnl_dims_t strides = { batch == 1 && rows == 1 ? columns : rows * columns, turned ? 1 : columns,
                                  turned ? rows : 1 };
    return dnn.memory_desc_init_by_strides(out, RANK, sizes, dnnl_f32, strides) == dnnl_success;
}

static bool add_arg(struct gemm_dnn *d, int kind, const dnnl_memory_desc_t *desc, float *data)
{
    dnnl_exec_arg_t *const arg = &d->args[d->arg_count];
    arg->arg = kind;
    if (dnn.memory_create(&arg->memory, desc, dnn.engine, data) != dnnl_success)
        return false;
    d->arg_count++;
    return true;
}

/* Activation and residual. */
static bool add_end(const gemm *g, dnnl_post_ops_t ops, const dnnl_memory_desc_t *result)
{
    const dnnl_alg_kind_t activation = g->end == GEMM_BIAS_RELU ? dnnl_eltwise_relu : dnnl_eltwise_gelu_erf;
    if (g->end == GEMM_PLAIN)
        return true;
    return dnn.post_ops_append_eltwise(ops, 1, activation, 0, 0) == dnnl_success &&
           (g->end != GEMM_BIAS_GELU_RESIDUAL ||
            dnn.post_ops_append_binary(ops, dnnl_binary_add, result) == dnnl_success);
}

static bool make_primitive(struct gemm_dnn *d, const gemm *g, const dnnl_memory_desc_t *desc)
{
    dnnl_matmul_desc_t matmul;
    dnnl_primitive_attr_t attr = NULL;
    dnnl_post_ops_t ops = NULL;
    dnnl_primitive_desc_t primitive = NULL;
    const bool ok =
        dnn.matmul_desc_init(&matmul, &desc[0], &desc[1], g->end != GEMM_PLAIN ? &desc[3] : NULL, &desc[2]) ==
            dnnl_success &&
        dnn.primitive_attr_create(&attr) == dnnl_success && dnn.post_ops_create(&ops) == dnnl_success &&
        add_end(g, ops, &desc[2]) && dnn.primitive_attr_set_post_ops(attr, ops) == dnnl_success &&
        dnn.primitive_desc_create(&primitive, &matmul, attr, dnn.engine, NULL) == dnnl_success &&
        dnn.primitive_create(&d->primitive, primitive) == dnnl_success;
    if (primitive)
        dnn.primitive_desc_destroy(primitive);
    if (ops)
        dnn.post_ops_destroy(ops);
    if (attr)
        dnn.primitive_attr_destroy(attr);
    return ok;
}

struct gemm_dnn *gemm_dnn_make(const gemm *g)
{
    dnnl_memory_desc_t desc[4];
    struct gemm_dnn *const d = dnn.engine ? calloc(1, sizeof *d) : NULL;
    if (!d)
        return NULL;
    const bool ok =
        describe(&desc[0], g->batch, g->m, g->k, false) && describe(&desc[1], g->batch, g->k, g->n, g->turned) &&
        describe(&desc[2], g->batch, g->m, g->n, false) && describe(&desc[3], 1, 1, g->n, false) &&
        make_primitive(d, g, desc) && add_arg(d, DNNL_ARG_SRC, &desc[0], g->a) &&
        add_arg(d, DNNL_ARG_WEIGHTS, &desc[1], g->b) && add_arg(d, DNNL_ARG_DST, &desc[2], g->out) &&
        (g->end == GEMM_PLAIN || add_arg(d, DNNL_ARG_BIAS, &desc[3], g->bias)) &&
        (g->end != GEMM_BIAS_GELU_RESIDUAL ||
         add_arg(d, DNNL_ARG_ATTR_MULTIPLE_POST_OP(1) | DNNL_ARG_SRC_1, &desc[2], g->residual));
    if (ok)
        return d;
    fprintf(stderr, "oneDNN has no such product\n");
    gemm_dnn_free(d);
    return NULL;
}

void gemm_dnn_run(void *arg)
{
    const struct gemm_dnn *const d = arg;
    dnn.primitive_execute(d->primitive, dnn.stream, (int)d->arg_count, d->args);
    dnn.stream_wait(dnn.stream);
}

void gemm_dnn_free(struct gemm_dnn *d)
{
    for (uint32_t i = 0; d && i < d->arg_count; i++)
        dnn.memory_destroy(d->args[i].memory);
    if (d && d->primitive)
        dnn.primitive_destroy(d->primitive);
    free(d);
}
#else
static void open_dnn(void)
{
}
struct gemm_dnn *gemm_dnn_make(const gemm *g)
{
    (void)g;
    return NULL;
}
void gemm_dnn_run(void *dnn)
{
    (void)dnn;
}
void gemm_dnn_free(struct gemm_dnn *dnn)
{
    (void)dnn;
}
#endif

void gemm_peers_open(bool wide, uint32_t threads)
{
    char count[16];
    snprintf(count, sizeof count, "%u", (unsigned)threads);
    setenv("OPENBLAS_CORETYPE", wide ? "SkylakeX" : "Haswell", 0); /* not by itself on each such machine */
    setenv("OPENBLAS_NUM_THREADS", count, 1);
    if (!wide)
        setenv("ONEDNN_MAX_CPU_ISA", "AVX2", 0);
    setenv("OMP_NUM_THREADS", count, 1);
    open_blas();
    open_dnn();
}
