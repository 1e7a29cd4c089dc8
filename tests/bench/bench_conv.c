/* SPDX-License-Identifier: Apache-2.0 */
/* bench_conv.c - convolutions of ResNet-50 and MobileNet-v3 (FLOAT32, a batch of one, one thread) by constant filters,
 * with bias and activation, against oneDNN where it is installed, in the same layout and in the layout of its choice,
 * whose filters are reordered before, too; against a loop of nothing but as many fma, or, where each channel is its
 * own, a copy of as much memory; and against filters that are given to each call. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <opjit/graph_ops.h>
#include <opjit/opjit.h>

#include "tests/bench/conv.h"
#include "tests/bench/fma.h"
#include "tests/bench/kernel.h"
#include "tests/bench/report.h"

enum { SAMPLE = 2000 /* us */, SLOTS = 5, FILTER = 1 /* of the slots */ };

typedef struct layer {
    const char *name;
    conv c;
    bool quick;
} layer;

#define LAYER(name, in, out, size, taps, stride, groups, end, quick) \
    { name, { in, out, size, taps, stride, (taps) / 2, groups, end, 0, 0, 0, 0, 0, 0 }, quick }

static const layer layers[] = {
    LAYER("7x7/2 3>64 224", 3, 64, 224, 7, 2, 1, CONV_RELU, true),
    LAYER("3x3 64>64 56", 64, 64, 56, 3, 1, 1, CONV_RELU, true),
    LAYER("3x3 32>32 160", 32, 32, 160, 3, 1, 1, CONV_RELU, false),
    LAYER("3x3 16>16 80", 16, 16, 80, 3, 1, 1, CONV_RELU, false),
    LAYER("3x3 32>32 40", 32, 32, 40, 3, 1, 1, CONV_RELU, false),
    LAYER("3x3 48>48 52", 48, 48, 52, 3, 1, 1, CONV_RELU, false),
    LAYER("3x3 128>128 28", 128, 128, 28, 3, 1, 1, CONV_RELU, false),
    LAYER("3x3 256>256 14", 256, 256, 14, 3, 1, 1, CONV_RELU, true),
    LAYER("3x3 512>512 7", 512, 512, 7, 3, 1, 1, CONV_RELU, true),
    LAYER("3x3/2 128>128 56", 128, 128, 56, 3, 2, 1, CONV_RELU, true),
    LAYER("3x3/2 256>256 28", 256, 256, 28, 3, 2, 1, CONV_RELU, false),
    LAYER("1x1 64>64 56", 64, 64, 56, 1, 1, 1, CONV_RELU, false),
    LAYER("1x1 64>256 56", 64, 256, 56, 1, 1, 1, CONV_RESIDUAL_RELU, true),
    LAYER("1x1 256>64 56", 256, 64, 56, 1, 1, 1, CONV_RELU, true),
    LAYER("1x1 512>128 28", 512, 128, 28, 1, 1, 1, CONV_RELU, false),
    LAYER("1x1 256>1024 14", 256, 1024, 14, 1, 1, 1, CONV_RESIDUAL_RELU, true),
    LAYER("1x1 2048>512 7", 2048, 512, 7, 1, 1, 1, CONV_RELU, true),
    LAYER("1x1/2 256>512 56", 256, 512, 56, 1, 2, 1, CONV_PLAIN, true),
    LAYER("3x3/2 3>16 224", 3, 16, 224, 3, 2, 1, CONV_HARD_SWISH, true),
    LAYER("1x1 16>64 112", 16, 64, 112, 1, 1, 1, CONV_RELU, true),
    LAYER("1x1 40>120 28", 40, 120, 28, 1, 1, 1, CONV_RELU, false),
    LAYER("1x1 80>200 14", 80, 200, 14, 1, 1, 1, CONV_HARD_SWISH, true),
    LAYER("1x1 960>160 7", 960, 160, 7, 1, 1, 1, CONV_PLAIN, false),
    LAYER("depthwise 3x3 16 112", 16, 16, 112, 3, 1, 16, CONV_RELU, true),
    LAYER("depthwise 3x3/2 64 112", 64, 64, 112, 3, 2, 64, CONV_RELU, true),
    LAYER("depthwise 3x3 72 56", 72, 72, 56, 3, 1, 72, CONV_RELU, false),
    LAYER("depthwise 5x5/2 72 56", 72, 72, 56, 5, 2, 72, CONV_RELU, true),
    LAYER("depthwise 5x5 120 28", 120, 120, 28, 5, 1, 120, CONV_RELU, true),
    LAYER("depthwise 3x3 184 14", 184, 184, 14, 3, 1, 184, CONV_HARD_SWISH, false),
    LAYER("depthwise 5x5 960 7", 960, 960, 7, 5, 1, 960, CONV_HARD_SWISH, true),
};

typedef struct filtered {
    conv c;
    kernel k;     /* the filter a constant, whose copy the kernel keeps */
    kernel given; /* the filter given to each call */
    void *copy[2]; /* input and output, of which a copy takes as much traffic */
    uint64_t half;
} filtered;

static void run_copy(void *arg)
{
    const filtered *w = arg;
    memcpy(w->copy[0], w->copy[1], w->half);
}

/* --- kernels ------------------------------------------------------------------------------------------------------ */

static opjit_tensor input(opjit_graph *g, const char *name, uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
    return opjit_graph_input(g, name, DML_TENSOR_DATA_TYPE_FLOAT32, 4, (const uint32_t[]){ a, b, c, d });
}

static opjit_tensor end_of(opjit_graph *g, const conv *c, opjit_tensor x)
{
    static const DML_ACTIVATION_HARD_SWISH_OPERATOR_DESC swish = { NULL, NULL, 1.0f / 6, 0.5f };
    if (c->end == CONV_RESIDUAL_RELU)
        x = opjit_graph_add(g, x, input(g, "residual", 1, c->out_channels, c->out_size, c->out_size));
    if (c->end == CONV_HARD_SWISH)
        return opjit_graph_op(g, DML_OPERATOR_ACTIVATION_HARD_SWISH, &swish, &x, 1);
    return c->end == CONV_PLAIN ? x : opjit_graph_relu(g, x);
}

/* constant: the filter's elements, or NULL where they are given to each call. */
static bool make_kernel(opjit_context *context, const char *name, filtered *w, const float *constant)
{
    opjit_graph *g = NULL;
    opjit_error error;
    const conv *c = &w->c;
    const uint32_t pad[2] = { c->pad, c->pad }, strides[2] = { c->stride, c->stride }, ones[2] = { 1, 1 };
    if (opjit_graph_create(context, &g, &error) != OPJIT_OK)
        return false;
    const opjit_tensor x = input(g, "in", 1, c->in_channels, c->size, c->size);
    const uint32_t sizes[4] = { c->out_channels, c->in_channels / c->groups, c->taps, c->taps };
    const uint64_t bytes = sizeof(float) * sizes[0] * sizes[1] * sizes[2] * sizes[3];
    const opjit_tensor f =
        constant ? opjit_graph_constant(g, DML_TENSOR_DATA_TYPE_FLOAT32, 4, sizes, constant, bytes, 0)
                 : opjit_graph_input(g, "filter", DML_TENSOR_DATA_TYPE_FLOAT32, 4, sizes);
    const opjit_tensor b = input(g, "bias", 1, c->out_channels, 1, 1);
    opjit_graph_output(
        g, "out", end_of(g, c, opjit_graph_convolution(g, x, f, b, 2, pad, pad, strides, ones, c->groups)));
    const opjit_status status = opjit_graph_compile(g, NULL, constant ? &w->k.kernel : &w->given.kernel, &error);
    if (status != OPJIT_OK)
        fprintf(stderr, "%s: %s\n", name, error.message);
    opjit_graph_destroy(g);
    return status == OPJIT_OK;
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

static void put(report *r, const char *name, filtered *w, const char *reference, measure_fn other, void *arg,
                double limit)
{
    measure_pair pair;
    measure_run(kernel_run, &w->k, other, arg, r->pairs, SAMPLE, &pair);
    report_put_pair(r, name, &pair, reference, limit);
}

static void put_peak(report *r, const char *name, filtered *w, bool wide)
{
    const conv *c = &w->c;
    fma_alone peak = { .wide = wide };
    const uint64_t results = (uint64_t)c->out_channels * c->out_size * c->out_size;
    const uint64_t all = results * (c->in_channels / c->groups) * c->taps * c->taps;
    peak.rounds = all / ((wide ? 16 : 8) * FMA_CHAINS);
    if (c->groups == 1)
        put(r, name, w, "fma alone", fma_alone_run, &peak, 0);
    else
        put(r, name, w, "memcpy", run_copy, w, 0);
}

static void put_dnn(report *r, const char *name, filtered *w, bool blocked)
{
    struct conv_dnn *const d = conv_dnn_make(&w->c, blocked);
    if (d)
        put(r, name, w, blocked ? "oneDNN, its layout" : "oneDNN", conv_dnn_run, d, blocked ? 1 / 0.85 : 1 / 0.95);
    conv_dnn_free(d);
}

/* The same convolution of UINT8 and INT8, with zero points, in INT32, beside that of FLOAT32; constant: the filter,
 * whose zero point is 0, as quantized models have it. */
static bool put_bytes(report *r, opjit_context *context, const char *name, filtered *whole, bool constant)
{
    const conv *c = &whole->c;
    const uint32_t pad[2] = { c->pad, c->pad }, strides[2] = { c->stride, c->stride }, ones[2] = { 1, 1 };
    const DML_CONVOLUTION_INTEGER_OPERATOR_DESC desc = { .DimensionCount = 2, .Strides = strides, .Dilations = ones,
                                                         .StartPadding = pad, .EndPadding = pad, .GroupCount = 1 };
    const uint32_t sizes[4][4] = { { 1, c->in_channels, c->size, c->size }, { 1, 1, 1, 1 },
                                   { c->out_channels, c->in_channels, c->taps, c->taps },
                                   { 1, c->out_channels, 1, 1 } };
    static const DML_TENSOR_DATA_TYPE types[4] = { DML_TENSOR_DATA_TYPE_UINT8, DML_TENSOR_DATA_TYPE_UINT8,
                                                   DML_TENSOR_DATA_TYPE_INT8, DML_TENSOR_DATA_TYPE_INT8 };
    static const char *const names[4] = { "in", "zero", "filter", "filter zeros" };
    kernel k = { 0 };
    opjit_graph *g = NULL;
    opjit_error error;
    opjit_tensor inputs[4];
    opjit_binding bindings[5] = { { 0 } };
    char text[80];
    uint32_t count = 0;
    if (opjit_graph_create(context, &g, &error) != OPJIT_OK)
        return false;
    bool ok = true;
    for (uint32_t i = 0; i < 5 && ok; i++) {
        uint64_t bytes = 4 * (uint64_t)c->out_channels * c->out_size * c->out_size;
        if (i < 4)
            bytes = ((uint64_t)sizes[i][0] * sizes[i][1] * sizes[i][2] * sizes[i][3] + 3) / 4 * 4;
        uint8_t *const data = measure_buffer(bytes);
        ok = data != NULL;
        for (uint64_t e = 0; ok && e < bytes; e++)
            data[e] = constant && i == 3 ? 0 : (uint8_t)(e * 2654435761u >> 24);
        if (ok && constant && (i == 2 || i == 3)) {
            inputs[i] = opjit_graph_constant(g, types[i], 4, sizes[i], data, bytes, 0);
            measure_buffer_free(data, bytes);
            continue;
        }
        if (ok && i < 4)
            inputs[i] = opjit_graph_input(g, names[i], types[i], 4, sizes[i]);
        if (ok)
            bindings[count++] = (opjit_binding){ data, bytes };
    }
    if (ok)
        opjit_graph_output(g, "out", opjit_graph_op(g, DML_OPERATOR_CONVOLUTION_INTEGER, &desc, inputs, 4));
    ok = ok && opjit_graph_compile(g, NULL, &k.kernel, &error) == OPJIT_OK;
    opjit_graph_destroy(g);
    k.call = (opjit_call){ .struct_size = sizeof k.call, .binding_count = count, .bindings = bindings };
    snprintf(text, sizeof text, "%s, bytes%s", name, constant ? "" : " given");
    if (ok) {
        measure_pair pair;
        measure_run(kernel_run, &k, kernel_run, &whole->k, r->pairs, SAMPLE, &pair);
        report_put_pair(r, text, &pair, "FLOAT32", 0.5);
        opjit_kernel_release(k.kernel);
    } else {
        fprintf(stderr, "%s: %s\n", text, error.message);
    }
    for (uint32_t i = 0; i < count; i++)
        measure_buffer_free(bindings[i].data, bindings[i].bytes);
    return ok && !k.failed;
}

static bool one(report *r, opjit_context *context, const layer *l, bool wide)
{
    filtered w = { .c = l->c };
    conv *c = &w.c;
    c->out_size = (c->size + 2 * c->pad - c->taps) / c->stride + 1;
    const uint64_t in = (uint64_t)c->in_channels * c->size * c->size;
    const uint64_t out = (uint64_t)c->out_channels * c->out_size * c->out_size;
    const uint64_t filter = (uint64_t)c->out_channels * (c->in_channels / c->groups) * c->taps * c->taps;
    const bool more = c->end == CONV_RESIDUAL_RELU;
    const uint64_t elements[SLOTS] = { in, filter, c->out_channels, more ? out : 0, out };
    float *buffers[SLOTS] = { NULL };
    uint32_t count = 0;
    bool ok = true;
    for (uint32_t i = 0; i < SLOTS && ok; i++) {
        if (elements[i] == 0)
            continue;
        buffers[i] = measure_buffer(elements[i] * sizeof(float));
        ok = buffers[i] != NULL;
        for (uint64_t e = 0; ok && e < elements[i]; e++)
            buffers[i][e] = (float)((int)(e * 2654435761u >> 20) - 2048) / 1024;
        const opjit_binding binding = { buffers[i], elements[i] * sizeof(float) };
        w.given.bindings[count++] = binding;
        if (i != FILTER)
            w.k.bindings[count - 1 - (i > FILTER)] = binding;
    }
    w.k.call = (opjit_call){ .struct_size = sizeof w.k.call, .binding_count = count - 1, .bindings = w.k.bindings };
    w.given.call = (opjit_call){ .struct_size = sizeof w.k.call, .binding_count = count, .bindings = w.given.bindings };
    w.half = (in + out) * sizeof(float) / 2;
    w.copy[0] = ok ? measure_buffer(w.half) : NULL;
    w.copy[1] = ok ? measure_buffer(w.half) : NULL;
    ok = ok && w.copy[0] && w.copy[1] && make_kernel(context, l->name, &w, buffers[FILTER]) &&
         make_kernel(context, l->name, &w, NULL);
    if (ok) {
        memset(w.copy[1], 1, w.half);
        put_dnn(r, l->name, &w, false);
        put_dnn(r, l->name, &w, true);
        put_peak(r, l->name, &w, wide);
        put(r, l->name, &w, "filter given", kernel_run, &w.given, 0);
        ok = c->groups > 1 || c->in_channels % 4 != 0 || more ||
             (put_bytes(r, context, l->name, &w, true) && put_bytes(r, context, l->name, &w, false));
    }
    opjit_kernel_release(w.k.kernel);
    opjit_kernel_release(w.given.kernel);
    for (uint32_t i = 0; i < SLOTS; i++)
        if (buffers[i])
            measure_buffer_free(buffers[i], elements[i] * sizeof(float));
    for (uint32_t i = 0; i < 2; i++)
        if (w.copy[i])
            measure_buffer_free(w.copy[i], w.half);
    return ok && !w.k.failed && !w.given.failed;
}

int main(int argc, char **argv)
{
    report r;
    opjit_context *context = NULL;
    const int status = report_open(&r, "conv", argc, argv, &context);
    if (status != 0)
        return status;
    const bool wide = strstr(opjit_context_target(context), "x86-64-v4") != NULL;
    conv_peers_open(wide);
    bool ok = true;
    for (size_t i = 0; i < sizeof layers / sizeof *layers && ok; i++)
        if ((layers[i].quick || !r.quick) && report_wants(&r, layers[i].name))
            ok = one(&r, context, &layers[i], wide);
    opjit_context_destroy(context);
    return ok ? report_end(&r) : 1;
}
