/* SPDX-License-Identifier: Apache-2.0 */
/* bench_dynamic.c - kernels with a dynamic dimension beside those of one size, calls in turns, at the typical size and
 * at one above it; the time to compile both; a call with another size after each call, beside calls with one; and what
 * tiers give to sizes that have a kernel at level peak, and cost those that have none. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <opjit/dynamic.h>
#include <opjit/graph_ops.h>

#include "tests/bench/kernel.h"
#include "tests/bench/report.h"

#define F32 DML_TENSOR_DATA_TYPE_FLOAT32
#define SAMPLE_US 1000.0
#define BAR 1.1
enum { WIDTH = 768, LARGEST = 1500, BUFFER = 64 << 20, COMPILES = 5, SMALL = 4, TIERS = 16 };

#define INPUT(name, ...) \
    opjit_graph_input(g, name, F32, sizeof((uint32_t[]){ __VA_ARGS__ }) / 4, (const uint32_t[]){ __VA_ARGS__ })

static float weights[WIDTH * WIDTH];

static opjit_tensor add_relu(opjit_graph *g, uint32_t n)
{
    const opjit_tensor x = INPUT("x", n, WIDTH);
    return opjit_graph_add(g, opjit_graph_relu(g, x), x);
}
static opjit_tensor gelu(opjit_graph *g, uint32_t n)
{
    return opjit_graph_gelu(g, INPUT("x", n, WIDTH));
}
static opjit_tensor layer_norm(opjit_graph *g, uint32_t n)
{
    return opjit_graph_layer_norm(g, INPUT("x", n, WIDTH), INPUT("scale", 1, WIDTH), INPUT("bias", 1, WIDTH), 1, 1e-5f);
}
static opjit_tensor softmax_of_rows(opjit_graph *g, uint32_t n)
{
    return opjit_graph_softmax(g, INPUT("x", n, 512), 1);
}
static opjit_tensor softmax_of_length(opjit_graph *g, uint32_t n)
{
    return opjit_graph_softmax(g, INPUT("x", 512, n), 1);
}
static opjit_tensor causal(opjit_graph *g, uint32_t n)
{
    return opjit_graph_softmax(g, opjit_graph_fill_band(g, INPUT("x", 4, n, n), -INFINITY, 1, INT32_MAX), 2);
}
static opjit_tensor triangle(opjit_graph *g, uint32_t n)
{
    return opjit_graph_lower_triangle(g, INPUT("x", n, n), 0);
}
static opjit_tensor product(opjit_graph *g, uint32_t n)
{
    return opjit_graph_matrix_multiply(g, INPUT("x", n, WIDTH), INPUT("z", WIDTH, WIDTH), 0, 0);
}
static opjit_tensor layer(opjit_graph *g, uint32_t n)
{
    const uint32_t sizes[] = { WIDTH, WIDTH };
    const opjit_tensor w = opjit_graph_constant(g, F32, 2, sizes, weights, sizeof weights, 0);
    return opjit_graph_relu(g, opjit_graph_matrix_multiply(g, INPUT("x", n, WIDTH), w, 0, 0));
}

static opjit_tensor decode(opjit_graph *g, uint32_t n)
{
    const opjit_tensor scores = opjit_graph_matrix_multiply(g, INPUT("q", 12, 1, 64), INPUT("k", 12, n, 64), 0, 1);
    return opjit_graph_matrix_multiply(g, opjit_graph_softmax(g, scores, 2), INPUT("v", 12, n, 64), 0, 0);
}
static opjit_tensor attention(opjit_graph *g, uint32_t n)
{
    const opjit_tensor scores = opjit_graph_matrix_multiply(g, INPUT("q", 12, n, 64), INPUT("k", 12, n, 64), 0, 1);
    return opjit_graph_matrix_multiply(g, opjit_graph_softmax(g, scores, 2), INPUT("v", 12, n, 64), 0, 0);
}

typedef struct subject {
    const char *name;
    opjit_tensor (*build)(opjit_graph *g, uint32_t n);
    uint32_t typical;
} subject;

static const subject subjects[] = {
    { "n x 768, relu and addition", add_relu, 512 },
    { "n x 768, GELU", gelu, 512 },
    { "n x 768, layer norm", layer_norm, 512 },
    { "n x 512, softmax", softmax_of_rows, 512 },
    { "512 x n, softmax", softmax_of_length, 512 },
    { "4 x n x n, causal mask and softmax", causal, 512 },
    { "n x n, lower triangle", triangle, 1024 },
    { "n x 768 x 768, product", product, 512 },
    { "n x 768 x 768, constant weights and relu", layer, 512 },
    { "12 x 1 x n x 64, attention of one query", decode, 512 },
    { "12 x n x n x 64, attention", attention, 512 },
};

/* --- kernels ------------------------------------------------------------------------------------------------------ */

typedef struct description {
    opjit_context *context;
    const subject *s;
    opjit_graph *graph;
} description;

static opjit_status describe(void *user, const uint64_t *dims, const DML_GRAPH_DESC **out, opjit_error *error)
{
    description *d = user;
    opjit_status status;

    opjit_graph_destroy(d->graph);
    d->graph = NULL;
    status = opjit_graph_create(d->context, &d->graph, error);
    if (status != OPJIT_OK)
        return status;
    opjit_graph_output(d->graph, "y", d->s->build(d->graph, (uint32_t)dims[0]));
    return opjit_graph_get_desc(d->graph, out, error);
}

/* Of one size, or for all; the least of some compiles in *out_ms. */
static bool compile(description *d, uint64_t n, bool all, kernel *out, double *out_ms)
{
    const opjit_dim dim = { "n", 1, LARGEST, d->s->typical };
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    const DML_GRAPH_DESC *desc;
    opjit_error error = { 0 };
    opjit_status status = OPJIT_OK;

    options.flags = OPJIT_COMPILE_NO_CACHE;
    *out_ms = INFINITY;
    for (uint32_t i = 0; i < COMPILES && status == OPJIT_OK; i++) {
        opjit_kernel_release(out->kernel);
        const double start = measure_cpu_ns();
        if (all)
            status = opjit_compile_dynamic(d->context, &dim, 1, describe, d, &options, &out->kernel, &error);
        else
            status = describe(d, &n, &desc, &error);
        if (status == OPJIT_OK && !all)
            status = opjit_compile_graph(d->context, desc, &options, &out->kernel, &error);
        *out_ms = fmin(*out_ms, (measure_cpu_ns() - start) / 1e6);
    }
    if (status != OPJIT_OK)
        fprintf(stderr, "%s: %s\n", d->s->name, error.message);
    return status == OPJIT_OK;
}

static bool bind(kernel *k, void *const *memory, const uint64_t *dims)
{
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;

    if (opjit_kernel_get_info(k->kernel, &info, NULL) != OPJIT_OK)
        return false;
    k->call = (opjit_call)OPJIT_CALL_INIT;
    k->call.binding_count = info.inputs + info.outputs;
    k->call.bindings = k->bindings;
    k->call.dims = info.dim_count != 0 ? dims : NULL;
    k->call.dim_count = info.dim_count;
    for (uint32_t i = 0; i < k->call.binding_count; i++)
        k->bindings[i] = (opjit_binding){ memory[i], BUFFER };
    return true;
}

/* --- cases -------------------------------------------------------------------------------------------------------- */

static bool run_size(report *r, description *d, kernel *dynamic, double dynamic_ms, uint64_t n, void *const *memory)
{
    kernel fixed = { 0 };
    char name[96], note[64];
    double fixed_ms;
    measure_pair pair;

    if (!compile(d, n, false, &fixed, &fixed_ms) || !bind(&fixed, memory, NULL) || !bind(dynamic, memory, &n))
        return false;
    snprintf(name, sizeof name, "%s, n = %u", d->s->name, (unsigned)n);
    measure_run(kernel_run, dynamic, kernel_run, &fixed, r->pairs, SAMPLE_US, &pair);
    report_put_pair(r, name, &pair, "of one size", BAR);
    snprintf(name, sizeof name, "%s, compile, n = %u", d->s->name, (unsigned)n);
    snprintf(note, sizeof note, "%.2f ms, %.2f of one size", dynamic_ms, fixed_ms);
    report_put(r, &(report_row){ .name = name,
                                 .ns = dynamic_ms * 1e6,
                                 .bytes = NAN,
                                 .memset_ratio = NAN,
                                 .reference = "of one size",
                                 .ratio = dynamic_ms / fixed_ms,
                                 .lo = NAN,
                                 .hi = NAN,
                                 .note = note });
    opjit_kernel_release(fixed.kernel);
    return !fixed.failed && !dynamic->failed;
}

/* With tiers, and kernels at level peak for `made` sizes from n on. */
static bool compile_tiered(description *d, uint64_t n, uint32_t made, kernel *out)
{
    const opjit_dim dim = { "n", 1, LARGEST, d->s->typical };
    opjit_tiers tiers = OPJIT_TIERS_INIT;
    opjit_error error = { 0 };

    tiers.level = OPJIT_LEVEL_PEAK;
    opjit_status status = opjit_compile_tiered(d->context, &dim, 1, describe, d, NULL, &tiers, &out->kernel, &error);
    for (const uint64_t end = n + made; n < end && status == OPJIT_OK; n++)
        status = opjit_kernel_specialize(out->kernel, &n, 1, &error);
    if (status != OPJIT_OK)
        fprintf(stderr, "%s: %s\n", d->s->name, error.message);
    return status == OPJIT_OK;
}

static bool run_tier(report *r, description *d, kernel *dynamic, uint64_t n, void *const *memory)
{
    kernel tiered = { 0 };
    measure_pair pair;
    char name[96];
    bool ok = compile_tiered(d, n, 1, &tiered) && bind(&tiered, memory, &n) && bind(dynamic, memory, &n);

    if (ok) {
        snprintf(name, sizeof name, "%s, n = %u, with its tier", d->s->name, (unsigned)n);
        measure_run(kernel_run, &tiered, kernel_run, dynamic, r->pairs, SAMPLE_US, &pair);
        report_put_pair(r, name, &pair, "dynamic", 0);
    }
    opjit_kernel_release(tiered.kernel);
    return ok && !tiered.failed && !dynamic->failed;
}

static bool run_subject(report *r, opjit_context *context, const subject *s, void *const *memory)
{
    description d = { .context = context, .s = s };
    kernel dynamic = { 0 };
    double ms;
    bool ok = true;

    if (!report_wants(r, s->name))
        return true;
    ok = compile(&d, 0, true, &dynamic, &ms);
    for (uint64_t n = s->typical; n <= s->typical + 1 && ok; n++)
        ok = run_size(r, &d, &dynamic, ms, n, memory);
    ok = ok && run_tier(r, &d, &dynamic, SMALL, memory) && run_tier(r, &d, &dynamic, s->typical, memory);
    opjit_kernel_release(dynamic.kernel);
    opjit_graph_destroy(d.graph);
    return ok;
}

/* A kernel whose size is another one at each call. */
typedef struct changing {
    kernel k;
    uint64_t n;
} changing;

static void call_changing(void *arg)
{
    changing *c = arg;

    c->n = 3 - c->n;
    kernel_run(&c->k);
}

enum { LENGTHS = 1000 };

/* All lengths of a decoder, one after the other. */
static void call_lengths(void *arg)
{
    changing *c = arg;

    for (c->n = 1; c->n <= LENGTHS; c->n++)
        kernel_run(&c->k);
}

/* The same calls with kernels of one size, which are made before: what is compared are calls. */
typedef struct many {
    kernel k[LENGTHS];
} many;

static void call_many(void *arg)
{
    many *m = arg;

    for (uint32_t i = 0; i < LENGTHS; i++)
        kernel_run(&m->k[i]);
}

static bool run_decoder(report *r, opjit_context *context, void *const *memory)
{
    static const subject decoder = { "decoder", decode, 512 };
    static many fixed;
    description d = { .context = context, .s = &decoder };
    changing loop = { .n = 1 };
    measure_pair pair;
    char note[64];
    double ms = 0, all = 0, one;
    bool ok = true;

    if (!report_wants(r, "a decoder's 1,000 lengths"))
        return true;
    ok = compile(&d, 0, true, &loop.k, &ms) && bind(&loop.k, memory, &loop.n);
    for (uint32_t i = 0; i < LENGTHS && ok; i++) {
        ok = compile(&d, i + 1, false, &fixed.k[i], &one) && bind(&fixed.k[i], memory, NULL);
        all += one;
    }
    if (ok) {
        measure_run(call_lengths, &loop, call_many, &fixed, r->pairs, SAMPLE_US, &pair);
        report_put_pair(r, "a decoder's 1,000 lengths, calls", &pair, "of one size each", BAR);
        snprintf(note, sizeof note, "%.1f ms, %.0f for one size each", ms, all);
        report_put(r, &(report_row){ .name = "a decoder's 1,000 lengths, compile",
                                     .ns = ms * 1e6,
                                     .bytes = NAN,
                                     .memset_ratio = NAN,
                                     .reference = "of one size each",
                                     .ratio = ms / all,
                                     .lo = NAN,
                                     .hi = NAN,
                                     .note = note });
    }
    for (uint32_t i = 0; i < LENGTHS; i++)
        opjit_kernel_release(fixed.k[i].kernel);
    opjit_kernel_release(loop.k.kernel);
    opjit_graph_destroy(d.graph);
    return ok && !loop.k.failed;
}

static bool run_call(report *r, opjit_context *context, void *const *memory)
{
    description d = { .context = context, .s = &subjects[0] };
    changing other = { .n = 1 };
    kernel same = { 0 };
    const uint64_t n = 2;
    measure_pair pair;
    double ms;
    bool ok = compile(&d, 0, true, &other.k, &ms);

    if (ok && report_wants(r, "a call with another size")) {
        same.kernel = other.k.kernel;
        ok = bind(&same, memory, &n) && bind(&other.k, memory, &other.n);
        measure_run(call_changing, &other, kernel_run, &same, r->pairs, SAMPLE_US, &pair);
        report_put_pair(r, "a call with another size", &pair, "with the same size", 0);
    }
    opjit_kernel_release(other.k.kernel);
    opjit_graph_destroy(d.graph);
    return ok;
}

/* Calls whose time is that of a call itself, of sizes with a kernel and without, beside a kernel that has no tiers. */
static bool run_lookup(report *r, opjit_context *context, void *const *memory)
{
    static const char *const names[] = { "a call with tiers, of one of 16 sizes",
                                         "a call with tiers, of another size" };
    description d = { .context = context, .s = &subjects[0] };
    kernel tiered = { 0 }, plain = { 0 };
    measure_pair pair;
    double ms;
    bool ok = true;

    for (uint32_t other = 0; other < 2 && ok; other++) {
        const uint64_t n = 2;
        if (!report_wants(r, names[other]))
            continue;
        ok = compile(&d, 0, true, &plain, &ms) && compile_tiered(&d, n + other, TIERS, &tiered) &&
             bind(&tiered, memory, &n) && bind(&plain, memory, &n);
        if (ok) {
            measure_run(kernel_run, &tiered, kernel_run, &plain, r->pairs, SAMPLE_US, &pair);
            report_put_pair(r, names[other], &pair, "without", 0);
        }
        opjit_kernel_release(tiered.kernel);
        opjit_kernel_release(plain.kernel);
        tiered.kernel = plain.kernel = NULL;
    }
    opjit_graph_destroy(d.graph);
    return ok;
}

int main(int argc, char **argv)
{
    opjit_context *context;
    report r;
    void *memory[4];
    bool ok = true;
    const int status = report_open(&r, "dynamic dimensions", argc, argv, &context);

    if (status != 0)
        return status;
    for (uint32_t i = 0; i < WIDTH * WIDTH; i++)
        weights[i] = (float)(i % 61) / 16.0f - 1.5f;
    for (uint32_t i = 0; i < 4; i++) {
        memory[i] = measure_buffer(BUFFER);
        ok = ok && memory[i] != NULL;
        for (uint32_t k = 0; memory[i] != NULL && k < BUFFER / 4; k++)
            ((float *)memory[i])[k] = (float)(k % 97) / 32.0f - 1.0f;
    }
    for (size_t i = 0; ok && i < sizeof subjects / sizeof *subjects; i++)
        ok = run_subject(&r, context, &subjects[i], memory);
    ok = ok && run_call(&r, context, memory) && run_decoder(&r, context, memory) && run_lookup(&r, context, memory);
    for (uint32_t i = 0; i < 4; i++)
        measure_buffer_free(memory[i], BUFFER);
    opjit_context_destroy(context);
    return report_end(&r) | !ok;
}
