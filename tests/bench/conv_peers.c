/* SPDX-License-Identifier: Apache-2.0 */
/* conv_peers.c - convolutions by oneDNN, which is loaded at run time (Debian: libdnnl2; libdnnl-dev at build time).
 * Its sums are in another order. */
#define _GNU_SOURCE
#include "tests/bench/conv.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined __has_include
#if __has_include(<oneapi/dnnl/dnnl.h>)
#define HAVE_DNNL 1
#endif
#endif

#if HAVE_DNNL
#include <oneapi/dnnl/dnnl.h>

/* The functions of version 2 that are used here. */
#define FUNCTIONS(X)                                                                                                   \
    X(engine_create) X(stream_create) X(memory_desc_init_by_tag) X(convolution_forward_desc_init)                      \
    X(primitive_attr_create) X(primitive_attr_destroy) X(primitive_attr_set_post_ops) X(post_ops_create)               \
    X(post_ops_destroy) X(post_ops_append_eltwise) X(post_ops_append_sum) X(primitive_desc_create)                     \
    X(primitive_desc_destroy) X(primitive_desc_query_md) X(primitive_create) X(primitive_destroy) X(memory_create)     \
    X(memory_destroy) X(primitive_execute) X(stream_wait)
#define MEMBER(name) __typeof__(&dnnl_##name) name;
static struct {
    FUNCTIONS(MEMBER)
    dnnl_engine_t engine; /* NULL: not installed */
    dnnl_stream_t stream;
} dnn;

enum { ARGS = 4 };

struct conv_dnn {
    dnnl_primitive_t primitive;
    dnnl_exec_arg_t args[ARGS];
    uint32_t arg_count;
};

void conv_peers_open(bool wide)
{
    setenv("OMP_NUM_THREADS", "1", 1);
    if (!wide)
        setenv("ONEDNN_MAX_CPU_ISA", "AVX2", 0);
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

static bool add_end(const conv *c, dnnl_post_ops_t ops)
{
    switch (c->end) {
    case CONV_PLAIN: return true;
    case CONV_RESIDUAL_RELU:
        if (dnn.post_ops_append_sum(ops, 1) != dnnl_success)
            return false;
        return dnn.post_ops_append_eltwise(ops, 1, dnnl_eltwise_relu, 0, 0) == dnnl_success;
    case CONV_RELU: return dnn.post_ops_append_eltwise(ops, 1, dnnl_eltwise_relu, 0, 0) == dnnl_success;
    default: return dnn.post_ops_append_eltwise(ops, 1, dnnl_eltwise_hardswish, 0, 0) == dnnl_success;
    }
}

static bool describe(const conv *c, bool blocked, dnnl_memory_desc_t *md, dnnl_convolution_desc_t *out)
{
    const dnnl_dims_t in = { 1, c->in_channels, c->size, c->size }, bias = { c->out_channels };
    const dnnl_dims_t result = { 1, c->out_channels, c->out_size, c->out_size };
    const dnnl_dims_t filter = { c->out_channels, c->in_channels, c->taps, c->taps };
    const dnnl_dims_t groups = { c->groups, c->out_channels / c->groups, c->in_channels / c->groups, c->taps,
                                 c->taps };
    const dnnl_dims_t strides = { c->stride, c->stride }, pad = { c->pad, c->pad };
    const int64_t window = (int64_t)(c->out_size - 1) * c->stride + c->taps;
    const dnnl_dim_t end = window - c->size - c->pad > 0 ? window - c->size - c->pad : 0;
    const dnnl_dims_t after = { end, end };
    const dnnl_format_tag_t tag = blocked ? dnnl_format_tag_any : dnnl_nchw;
    return dnn.memory_desc_init_by_tag(&md[0], 4, in, dnnl_f32, tag) == dnnl_success &&
           (c->groups > 1 ? dnn.memory_desc_init_by_tag(&md[1], 5, groups, dnnl_f32, dnnl_format_tag_any)
                          : dnn.memory_desc_init_by_tag(&md[1], 4, filter, dnnl_f32, dnnl_format_tag_any)) ==
               dnnl_success &&
           dnn.memory_desc_init_by_tag(&md[2], 1, bias, dnnl_f32, dnnl_x) == dnnl_success &&
           dnn.memory_desc_init_by_tag(&md[3], 4, result, dnnl_f32, tag) == dnnl_success &&
           dnn.convolution_forward_desc_init(out, dnnl_forward_inference, dnnl_convolution_direct, &md[0], &md[1],
                                             &md[2], &md[3], strides, pad, after) == dnnl_success;
}

static bool make(struct conv_dnn *d, const conv *c, bool blocked)
{
    static const int kinds[ARGS] = { DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS, DNNL_ARG_DST };
    static const dnnl_query_t queries[ARGS] = { dnnl_query_src_md, dnnl_query_weights_md, dnnl_query_weights_md,
                                                dnnl_query_dst_md };
    dnnl_memory_desc_t md[ARGS];
    dnnl_convolution_desc_t convolution;
    dnnl_primitive_attr_t attr = NULL;
    dnnl_post_ops_t ops = NULL;
    dnnl_primitive_desc_t primitive = NULL;
    bool ok = describe(c, blocked, md, &convolution) && dnn.primitive_attr_create(&attr) == dnnl_success &&
              dnn.post_ops_create(&ops) == dnnl_success && add_end(c, ops) &&
              dnn.primitive_attr_set_post_ops(attr, ops) == dnnl_success &&
              dnn.primitive_desc_create(&primitive, &convolution, attr, dnn.engine, NULL) == dnnl_success &&
              dnn.primitive_create(&d->primitive, primitive) == dnnl_success;
    for (int i = 0; i < ARGS && ok; i++) {
        dnnl_exec_arg_t *const arg = &d->args[i];
        arg->arg = kinds[i];
        ok = dnn.memory_create(&arg->memory, dnn.primitive_desc_query_md(primitive, queries[i], i == 2), dnn.engine,
                               DNNL_MEMORY_ALLOCATE) == dnnl_success;
        d->arg_count += ok;
    }
    if (primitive)
        dnn.primitive_desc_destroy(primitive);
    if (ops)
        dnn.post_ops_destroy(ops);
    if (attr)
        dnn.primitive_attr_destroy(attr);
    return ok;
}

struct conv_dnn *conv_dnn_make(const conv *c, bool blocked)
{
    struct conv_dnn *const d = dnn.engine ? calloc(1, sizeof *d) : NULL;
    if (!d || make(d, c, blocked))
        return d;
    fprintf(stderr, "oneDNN has no such convolution\n");
    conv_dnn_free(d);
    return NULL;
}

void conv_dnn_run(void *arg)
{
    const struct conv_dnn *const d = arg;
    dnn.primitive_execute(d->primitive, dnn.stream, (int)d->arg_count, d->args);
    dnn.stream_wait(dnn.stream);
}

void conv_dnn_free(struct conv_dnn *d)
{
    for (uint32_t i = 0; d && i < d->arg_count; i++)
        dnn.memory_destroy(d->args[i].memory);
    if (d && d->primitive)
        dnn.primitive_destroy(d->primitive);
    free(d);
}
#else
void conv_peers_open(bool wide)
{
    (void)wide;
}
struct conv_dnn *conv_dnn_make(const conv *c, bool blocked)
{
    (void)c;
    (void)blocked;
    return NULL;
}
void conv_dnn_run(void *dnn)
{
    (void)dnn;
}
void conv_dnn_free(struct conv_dnn *dnn)
{
    (void)dnn;
}
#endif
