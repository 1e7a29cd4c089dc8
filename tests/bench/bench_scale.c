/* SPDX-License-Identifier: Apache-2.0 */
/* bench_scale.c - the cost of a stage, or a node, in large graphs compared with small ones: time by phase, and memory
 * that goes through the allocator hook, which is all except LLVM's.  Times are the thread's CPU time; before that, each
 * graph's results are compared with those of its operators one by one. */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tests/bench/report.h"
#include "tests/support/meter.h"
#include "tests/support/scale.h"

#define STAGE_BYTES 100e3 /* limit per stage */
#define GROWTH 1.3        /* limit of a stage's or node's cost in the large graph, relative to the small one */
enum { ROUNDS = 3, FEW_ROUNDS = 15 };

static const struct shape {
    uint32_t few, many;
    bool stages; /* else nodes of one stage */
} shapes[SCALE_SHAPES] = {
    [SCALE_ADDS] = { 100, 1000, true },  [SCALE_SOFTMAXES] = { 100, 1000, true }, [SCALE_BLOCKS] = { 100, 1000, true },
    [SCALE_SPLIT] = { 128, 1024, true }, [SCALE_CHAIN] = { 1000, 10000, false },  [SCALE_WIDE] = { 1000, 10000, false },
};

typedef enum phase { LOWER, PASSES, CODEGEN, IMAGE, LOAD, TOTAL, INTERPRETED, CALL, PHASES } phase;
static const char *const phase_names[PHASES] = { "lower", "passes", "codegen",     "image",
                                                 "load",  "total",  "interpreted", "call" };

/* The cost of one node or stage. */
typedef struct cost {
    double ns[PHASES];
    double peak, interpreted_peak, call_peak; /* bytes */
} cost;

typedef struct bench {
    report report;
    test_meter meter;
    opjit_context *context;
    scale_graph graph;
    scale_buffers buffers;
    opjit_error error;
} bench;

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void least(double *at, double value)
{
    *at = value < *at ? value : *at;
}

/* Bytes beyond those allocated before. */
static double peak_over(bench *b, size_t before)
{
    return (double)(b->meter.peak - before);
}

static bool call_kernel(bench *b, opjit_kernel *kernel)
{
    opjit_call call = OPJIT_CALL_INIT;

    call.bindings = b->buffers.bindings;
    call.binding_count = b->graph.input_count + b->graph.output_count;
    return opjit_kernel_call(kernel, &call, &b->error) == OPJIT_OK;
}

/* Saves the kernel and loads it as another one. */
static bool load_again(bench *b, opjit_kernel *kernel, double *out_ns)
{
    opjit_kernel *loaded = NULL;
    const void *image;
    uint64_t bytes;

    if (opjit_kernel_get_image(kernel, &image, &bytes, &b->error) != OPJIT_OK)
        return false;
    const double start = now();
    const bool ok = opjit_kernel_load(b->context, image, bytes, NULL, 0, &loaded, &b->error) == OPJIT_OK;
    *out_ns = now() - start;
    opjit_kernel_release(loaded);
    return ok;
}

/* Compiles once with code.  info has wall-clock times of the phases, which are scaled to the thread's CPU time. */
static bool compile_code(bench *b, cost *c)
{
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    opjit_kernel *kernel = NULL;
    const size_t before = b->meter.live;
    double load = 0;

    options.flags = OPJIT_COMPILE_NO_CACHE;
    test_meter_reset(&b->meter);
    const double start = now();
    bool ok = opjit_compile_graph(b->context, &b->graph.g.desc, &options, &kernel, &b->error) == OPJIT_OK;
    const double total = now() - start;
    least(&c->peak, peak_over(b, before));
    ok = ok && opjit_kernel_get_info(kernel, &info, &b->error) == OPJIT_OK && load_again(b, kernel, &load);
    if (ok) {
        const double own = total / (info.compile_ms > 0 ? info.compile_ms : 1);
        least(&c->ns[LOWER], info.lower_ms * own);
        least(&c->ns[PASSES], info.passes_ms * own);
        least(&c->ns[CODEGEN], info.codegen_ms * own);
        least(&c->ns[IMAGE], fmax(info.compile_ms - info.lower_ms - info.passes_ms - info.codegen_ms, 0) * own);
        least(&c->ns[LOAD], load);
        least(&c->ns[TOTAL], total);
    }
    opjit_kernel_release(kernel);
    return ok;
}

static bool compile_interpreted(bench *b, cost *c, bool check)
{
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_kernel *kernel = NULL;
    size_t before = b->meter.live;

    options.flags = OPJIT_COMPILE_NO_CACHE | OPJIT_COMPILE_INTERPRET;
    test_meter_reset(&b->meter);
    double start = now();
    bool ok = opjit_compile_graph(b->context, &b->graph.g.desc, &options, &kernel, &b->error) == OPJIT_OK;
    least(&c->ns[INTERPRETED], now() - start);
    least(&c->interpreted_peak, peak_over(b, before));
    before = b->meter.live;
    test_meter_reset(&b->meter);
    start = now();
    ok = ok && call_kernel(b, kernel);
    least(&c->ns[CALL], now() - start);
    least(&c->call_peak, peak_over(b, before));
    ok = ok && (!check || scale_check(b->context, &b->graph, &b->buffers, &b->error));
    opjit_kernel_release(kernel);
    return ok;
}

/* The minimum of several rounds, per node. */
static bool measure(bench *b, scale_shape shape, uint32_t count, int rounds, cost *c)
{
    double *const all = (double *)c;
    bool ok = scale_make(b->context, shape, count, &b->graph, &b->error) && scale_buffers_make(&b->graph, &b->buffers);

    for (size_t i = 0; i < sizeof *c / sizeof *all; i++)
        all[i] = INFINITY;
    for (int i = 0; ok && i < rounds; i++)
        ok = compile_code(b, c) && compile_interpreted(b, c, i == 0);
    for (size_t i = 0; i < sizeof *c / sizeof *all; i++)
        all[i] /= count;
    scale_buffers_free(&b->buffers);
    scale_free(&b->graph);
    if (!ok)
        fprintf(stderr, "%s of %u: %s\n", scale_names[shape], (unsigned)count, b->error.message);
    return ok;
}

static void put(bench *b, const char *name, double ns, double bytes, const char *reference, double ratio, double limit)
{
    report_put(&b->report, &(report_row){ .name = name,
                                          .ns = ns,
                                          .bytes = bytes,
                                          .memset_ratio = NAN,
                                          .reference = reference,
                                          .ratio = ratio,
                                          .lo = ratio,
                                          .hi = ratio,
                                          .bar = limit > 0 ? BAR_AT_MOST : BAR_NONE,
                                          .limit = limit });
}

/* A phase of less than a microsecond per node has no bar of its own; the total's includes it. */
static void put_shape(bench *b, scale_shape shape, const cost *few, const cost *many)
{
    const char *const unit = shapes[shape].stages ? "stage" : "node";
    char name[64], reference[32];

    snprintf(reference, sizeof reference, "a %s of %u", unit, (unsigned)shapes[shape].few);
    for (int i = 0; i < PHASES; i++) {
        snprintf(name, sizeof name, "%s %u, %s", scale_names[shape], (unsigned)shapes[shape].many, phase_names[i]);
        put(b, name, many->ns[i], NAN, reference, many->ns[i] / few->ns[i],
            few->ns[i] < 1000 && i != TOTAL ? 0 : GROWTH);
    }
    snprintf(name, sizeof name, "%s %u, peak", scale_names[shape], (unsigned)shapes[shape].many);
    put(b, name, NAN, many->peak, reference, many->peak / few->peak, GROWTH);
    snprintf(name, sizeof name, "%s %u, peak of a %s", scale_names[shape], (unsigned)shapes[shape].many, unit);
    put(b, name, NAN, many->peak, "100 KB", many->peak / STAGE_BYTES, 1);
    snprintf(name, sizeof name, "%s %u, peak interpreted", scale_names[shape], (unsigned)shapes[shape].many);
    put(b, name, NAN, many->interpreted_peak, reference, many->interpreted_peak / few->interpreted_peak, GROWTH);
    snprintf(name, sizeof name, "%s %u, peak of a call", scale_names[shape], (unsigned)shapes[shape].many);
    put(b, name, NAN, many->call_peak, reference, many->call_peak / few->call_peak, GROWTH);
}

int main(int argc, char **argv)
{
    static bench b;
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
    const int status = report_options(&b.report, argc, argv);
    bool broken = false;

    if (status != 0)
        return status;
    test_meter_begin(&b.meter);
    options.allocator = &b.meter.allocator;
    if (opjit_context_create(&options, &b.context, &b.error) != OPJIT_OK ||
        opjit_context_warm(b.context, &b.error) != OPJIT_OK) {
        fprintf(stderr, "context: %s\n", b.error.message);
        return 1;
    }
    report_begin(&b.report, "large graphs", opjit_context_target(b.context));
    for (int s = 0; s < SCALE_SHAPES; s++) {
        cost few, many;
        if (!report_wants(&b.report, scale_names[s]))
            continue;
        if (measure(&b, (scale_shape)s, shapes[s].few, FEW_ROUNDS, &few) &&
            measure(&b, (scale_shape)s, shapes[s].many, b.report.quick ? 1 : ROUNDS, &many))
            put_shape(&b, (scale_shape)s, &few, &many);
        else
            broken = true;
    }
    opjit_context_destroy(b.context);
    return report_end(&b.report) | broken;
}
