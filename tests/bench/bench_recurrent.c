/* SPDX-License-Identifier: Apache-2.0 */
/* bench_recurrent.c - LSTM and GRU (FLOAT32, one direction, one thread) beside the products that they are made of, as
 * kernels of their own: one of all times with the weights, and one of each step with the recurrence weights, which lie
 * as the product reads them best.  What activations, states and rows in a cache cost is the difference.  Compile times
 * of 2 and of 1000 times: a recurrence is a loop. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <opjit/graph_ops.h>
#include <opjit/opjit.h>

#include "tests/bench/kernel.h"
#include "tests/bench/report.h"

enum { SAMPLE = 3000 /* us */, INPUTS = 3 };

typedef struct sizes {
    const char *name;
    bool gru;
    uint32_t times, batch, hidden; /* as many inputs as hidden values */
    bool large;                    /* not with --quick */
} sizes;

static const sizes cases[] = {
    { .name = "LSTM 100 x 1 x 256", .times = 100, .batch = 1, .hidden = 256 },
    { .name = "LSTM 100 x 16 x 256", .times = 100, .batch = 16, .hidden = 256 },
    { .name = "GRU 100 x 1 x 256", .gru = true, .times = 100, .batch = 1, .hidden = 256 },
    { .name = "GRU 100 x 16 x 256", .gru = true, .times = 100, .batch = 16, .hidden = 256 },
    { .name = "LSTM 100 x 4 x 512", .times = 100, .batch = 4, .hidden = 512, .large = true },
    { .name = "LSTM 100 x 16 x 128", .times = 100, .batch = 16, .hidden = 128, .large = true },
};

static const double limit = 1.3;

typedef enum part { NETWORK, WEIGHTS, STEP, KERNELS } part;

typedef struct network {
    const sizes *s;
    kernel kernels[KERNELS];
} network;

/* --- kernels ------------------------------------------------------------------------------------------------------ */

static void run_network(void *arg)
{
    network *n = arg;
    kernel_run(&n->kernels[NETWORK]);
}

static void run_products(void *arg)
{
    network *n = arg;
    kernel_run(&n->kernels[WEIGHTS]);
    for (uint32_t t = 0; t < n->s->times; t++)
        kernel_run(&n->kernels[STEP]);
}

static opjit_tensor input(opjit_graph *g, const char *name, uint32_t a, uint32_t b, uint32_t c)
{
    return opjit_graph_input(g, name, DML_TENSOR_DATA_TYPE_FLOAT32, 4, (const uint32_t[]){ 1, a, b, c });
}

static opjit_tensor network_of(opjit_graph *g, const sizes *s, uint32_t times)
{
    static const DML_ACTIVATION_SIGMOID_OPERATOR_DESC sigmoid;
    static const DML_ACTIVATION_TANH_OPERATOR_DESC tanh_;
    static const DML_OPERATOR_DESC functions[3] = { { DML_OPERATOR_ACTIVATION_SIGMOID, &sigmoid },
                                                    { DML_OPERATOR_ACTIVATION_TANH, &tanh_ },
                                                    { DML_OPERATOR_ACTIVATION_TANH, &tanh_ } };
    const DML_LSTM_OPERATOR_DESC lstm = { .ActivationDescCount = 3, .ActivationDescs = functions };
    const DML_GRU_OPERATOR_DESC gru = { .ActivationDescCount = 2, .ActivationDescs = functions,
                                        .LinearBeforeReset = 1 };
    const uint32_t gates = (s->gru ? 3 : 4) * s->hidden;
    opjit_tensor inputs[INPUTS];
    inputs[0] = input(g, "x", times, s->batch, s->hidden);
    inputs[1] = input(g, "w", 1, gates, s->hidden);
    inputs[2] = input(g, "r", 1, gates, s->hidden);
    return opjit_graph_op(g, s->gru ? DML_OPERATOR_GRU : DML_OPERATOR_LSTM, s->gru ? (const void *)&gru : &lstm, inputs,
                          INPUTS);
}

static opjit_tensor part_of(opjit_graph *g, const sizes *s, part p)
{
    const uint32_t gates = (s->gru ? 3 : 4) * s->hidden, rows = p == STEP ? s->batch : s->times * s->batch;
    if (p == NETWORK)
        return network_of(g, s, s->times);
    const opjit_tensor x = input(g, "x", 1, rows, s->hidden);
    if (p == STEP)
        return opjit_graph_matrix_multiply(g, x, input(g, "r", 1, s->hidden, gates), 0, 0);
    return opjit_graph_matrix_multiply(g, x, input(g, "w", 1, gates, s->hidden), 0, 1);
}

static bool make_kernel(opjit_context *context, const sizes *s, part p, const opjit_binding *bindings, uint32_t count,
                        kernel *out)
{
    opjit_graph *g = NULL;
    opjit_error error;
    if (opjit_graph_create(context, &g, &error) != OPJIT_OK)
        return false;
    opjit_graph_output(g, "out", part_of(g, s, p));
    const opjit_status status = opjit_graph_compile(g, NULL, &out->kernel, &error);
    if (status != OPJIT_OK)
        fprintf(stderr, "%s: %s\n", s->name, error.message);
    opjit_graph_destroy(g);
    memcpy(out->bindings, bindings, count * sizeof *bindings);
    out->call = (opjit_call){ .struct_size = sizeof out->call, .binding_count = count, .bindings = out->bindings };
    return status == OPJIT_OK;
}

/* Of a context of its own, whose kernels are all new; tiles are known to the process. */
static double compile_ns(const sizes *s, uint32_t times)
{
    opjit_context *context = NULL;
    opjit_graph *g = NULL;
    opjit_kernel *k = NULL;
    double ns = NAN;
    if (opjit_context_create(NULL, &context, NULL) == OPJIT_OK && opjit_graph_create(context, &g, NULL) == OPJIT_OK) {
        opjit_graph_output(g, "out", network_of(g, s, times));
        const double begin = measure_cpu_ns();
        if (opjit_graph_compile(g, NULL, &k, NULL) == OPJIT_OK)
            ns = measure_cpu_ns() - begin;
    }
    opjit_kernel_release(k);
    opjit_graph_destroy(g);
    opjit_context_destroy(context);
    return ns;
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

static void put_compile(report *r, const sizes *s, uint32_t times)
{
    enum { TIMES = 7 };
    double ns[TIMES], median, lo, hi;
    char name[64];
    for (uint32_t i = 0; i < TIMES; i++)
        ns[i] = compile_ns(s, times);
    measure_median(ns, TIMES, &median, &lo, &hi);
    snprintf(name, sizeof name, "%s compile, T %u", s->name, times);
    report_put(r, &(report_row){ .name = name,
                                 .ns = median,
                                 .bytes = NAN,
                                 .memset_ratio = NAN,
                                 .ratio = NAN,
                                 .in_ns = true,
                                 .ns_lo = lo,
                                 .ns_hi = hi });
}

static void measure(report *r, network *n)
{
    measure_pair pair;
    measure_run(run_network, n, run_products, n, r->pairs, SAMPLE, &pair);
    report_put(r, &(report_row){ .name = n->s->name,
                                 .ns = pair.a_ns,
                                 .bytes = NAN,
                                 .memset_ratio = NAN,
                                 .reference = "its products",
                                 .ratio = pair.ratio,
                                 .lo = pair.lo,
                                 .hi = pair.hi,
                                 .bar = BAR_AT_MOST,
                                 .limit = limit });
    put_compile(r, n->s, 2);
    put_compile(r, n->s, 1000);
}

static float *matrix(size_t count)
{
    float *const f = measure_buffer(count * sizeof *f);
    for (size_t i = 0; f && i < count; i++)
        f[i] = (float)((int)((uint32_t)(i * 2654435761u) >> 20) - 2048) / 65536;
    return f;
}

static bool one(report *r, opjit_context *context, const sizes *s)
{
    const size_t gates = (s->gru ? 3 : 4) * (size_t)s->hidden, rows = (size_t)s->times * s->batch;
    const size_t counts[] = { rows * s->hidden, gates * s->hidden, gates * s->hidden, rows * s->hidden, rows * gates };
    enum { BUFFERS = sizeof counts / sizeof *counts };
    opjit_binding of[BUFFERS];
    network n = { .s = s };
    float *f[BUFFERS];
    bool ok = true;
    for (uint32_t i = 0; i < BUFFERS; i++) {
        ok = (f[i] = matrix(counts[i])) != NULL && ok;
        of[i] = (opjit_binding){ f[i], counts[i] * sizeof(float) };
    }
    const opjit_binding step_in = { f[0], s->batch * (size_t)s->hidden * sizeof(float) };
    const opjit_binding step_out = { f[4], s->batch * gates * sizeof(float) };
    const opjit_binding network_[] = { of[0], of[1], of[2], of[3] }, weights[] = { of[0], of[1], of[4] };
    const opjit_binding step[] = { step_in, of[2], step_out };
    ok = ok && make_kernel(context, s, NETWORK, network_, 4, &n.kernels[NETWORK]) &&
         make_kernel(context, s, WEIGHTS, weights, 3, &n.kernels[WEIGHTS]) &&
         make_kernel(context, s, STEP, step, 3, &n.kernels[STEP]);
    if (ok)
        measure(r, &n);
    for (uint32_t i = 0; i < KERNELS; i++) {
        ok = ok && !n.kernels[i].failed;
        opjit_kernel_release(n.kernels[i].kernel);
    }
    for (uint32_t i = 0; i < BUFFERS; i++)
        if (f[i])
            measure_buffer_free(f[i], counts[i] * sizeof(float));
    return ok;
}

int main(int argc, char **argv)
{
    report r;
    opjit_context *context = NULL;
    const int status = report_open(&r, "recurrent", argc, argv, &context);
    if (status != 0)
        return status;
    bool ok = true;
    for (size_t i = 0; i < sizeof cases / sizeof *cases && ok; i++)
        if (report_wants(&r, cases[i].name) && !(r.quick && cases[i].large))
            ok = one(&r, context, &cases[i]);
    opjit_context_destroy(context);
    return ok ? report_end(&r) : 1;
}
