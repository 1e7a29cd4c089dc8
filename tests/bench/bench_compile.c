/* SPDX-License-Identifier: Apache-2.0 */
/* bench_compile.c - compile time by phase, as a multiple of emitting an empty function; and the speed of the code,
 * compared with the same loops through default<O2>.  All compiles are warm and bypass the caches; bench_calls.c
 * measures the first one. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <opjit/artifact.h>

#include "frontend/cli/measure/subject.h"
#include "tests/bench/bare.h"
#include "tests/bench/graphs.h"
#include "tests/bench/loops.h"
#include "tests/bench/report.h"

#define MIB (UINT64_C(1) << 20)
#define LARGEST (64 * MIB)
#define COMPILE_US 2000.0 /* shortest sample of compiling */
#define RUN_US 200.0      /* shortest sample of running */

typedef struct bench {
    report report;
    opjit_context *context;
    float *in, *out;
    graph *graph;
    bool broken;
} bench;

/* --- cases -------------------------------------------------------------------------------------------------------- */
static const struct kind {
    const char *name;
    double limit; /* compile time over that of an empty function; 0: no bar */
} kinds[LOOPS_KINDS] = {
    [LOOPS_CONSTANT] = { "constant", 0 },
    [LOOPS_SEQUENCE] = { "sequence", 4 },
    [LOOPS_EYE] = { "eye", 3 },
    [LOOPS_TRIANGLE] = { "triangle", 0 },
};

static void describe(subject_desc *d, loops_kind kind, uint32_t rows, uint32_t columns)
{
    const DML_TENSOR_DATA_TYPE type = DML_TENSOR_DATA_TYPE_FLOAT32;

    switch (kind) {
    case LOOPS_CONSTANT: subject_constant(d, type, rows, columns, 3); break;
    case LOOPS_SEQUENCE: subject_sequence(d, type, rows, columns, 3, 2); break;
    case LOOPS_EYE: subject_eye(d, type, rows, columns, 1, 1); break;
    case LOOPS_TRIANGLE:
    case LOOPS_KINDS: subject_band(d, type, rows, columns, 1, INT32_MAX, 0); break;
    }
}

/* --- compile time ------------------------------------------------------------------------------------------------- */
typedef struct compilation {
    opjit_context *context;
    const subject_desc *desc;
    opjit_level level;
    bool failed;
} compilation;

/* From descriptor to callable kernel, and released again. */
static void compile(void *arg)
{
    compilation *const c = arg;
    subject s;

    if (!subject_make(c->context, c->desc, c->level, NULL, &s))
        c->failed = true;
    else
        subject_free(&s);
}

static void put_compile(bench *b, const char *name, const char *reference, const measure_pair *p, double limit)
{
    report_put(&b->report, &(report_row){ .name = name,
                                          .ns = p->a_ns,
                                          .bytes = NAN,
                                          .memset_ratio = NAN,
                                          .reference = reference,
                                          .ratio = p->ratio,
                                          .lo = p->lo,
                                          .hi = p->hi,
                                          .bar = limit > 0 ? BAR_AT_MOST : BAR_NONE,
                                          .limit = limit });
}

/* The phases as the kernel reports them, medians over compiles. */
static void put_phases(bench *b, const char *kind, compilation *c)
{
    static const char *const names[] = { "lower", "passes", "codegen", "load" };
    double samples[4][REPORT_PAIRS];

    for (unsigned i = 0; i < REPORT_PAIRS; i++) {
        opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
        opjit_error error;
        subject s;

        if (!subject_make(c->context, c->desc, c->level, NULL, &s)) {
            c->failed = true;
            return;
        }
        if (opjit_kernel_get_info(s.kernel, &info, &error) != OPJIT_OK)
            c->failed = !subject_complain("info", &error);
        samples[0][i] = info.lower_ms * 1e6;
        samples[1][i] = info.passes_ms * 1e6;
        samples[2][i] = info.codegen_ms * 1e6;
        samples[3][i] = info.load_ms * 1e6;
        subject_free(&s);
    }
    for (int i = 0; i < 4; i++) {
        char name[64];
        report_row row = { .name = name, .bytes = NAN, .memset_ratio = NAN, .ratio = NAN, .lo = NAN, .hi = NAN };

        snprintf(name, sizeof name, "phase %s %s", names[i], kind);
        measure_median(samples[i], REPORT_PAIRS, &row.ns, &row.ns_lo, &row.ns_hi);
        report_put(&b->report, &row);
    }
}

static void compile_times(bench *b, loops_kind kind)
{
    char name[64];
    subject_desc d;
    compilation quick = { b->context, &d, OPJIT_LEVEL_QUICK, false },
                peak = { b->context, &d, OPJIT_LEVEL_PEAK, false };
    measure_pair pair;
    double ms[9], lo, hi;

    describe(&d, kind, 512, 512);
    snprintf(name, sizeof name, "compile %s quick", kinds[kind].name);
    if (!report_wants(&b->report, name))
        return;
    measure_run(compile, &quick, loops_emit_empty, NULL, b->report.pairs, COMPILE_US, &pair);
    put_compile(b, name, "empty function", &pair, kinds[kind].limit);
    put_phases(b, kinds[kind].name, &quick);
    snprintf(name, sizeof name, "compile %s peak", kinds[kind].name);
    measure_run(compile, &peak, compile, &quick, b->report.pairs, COMPILE_US, &pair);
    put_compile(b, name, "quick", &pair, 0); /* by another code generator */
    for (int i = 0; i < 9; i++)
        loops_compile(kind, 512, 512, &ms[i]);
    measure_median(ms, 9, &pair.a_ns, &lo, &hi);
    snprintf(name, sizeof name, "compile %s default<O2>", kinds[kind].name);
    pair.a_ns *= 1e6;
    pair.ratio = pair.a_ns / pair.b_ns;
    pair.lo = lo * 1e6 / pair.b_ns;
    pair.hi = hi * 1e6 / pair.b_ns;
    put_compile(b, name, "quick", &pair, 0);
    b->broken = b->broken || quick.failed || peak.failed;
}

/* --- graphs ------------------------------------------------------------------------------------------------------- */
typedef struct graph_compilation {
    opjit_context *context;
    const graph *graph;
    opjit_compile_options options;
    bool failed;
} graph_compilation;

static void compile_graph(void *arg)
{
    graph_compilation *const c = arg;
    opjit_kernel *kernel;
    opjit_error error;

    if (opjit_compile_graph(c->context, &c->graph->desc, &c->options, &kernel, &error) != OPJIT_OK)
        c->failed = !subject_complain("graph", &error);
    opjit_kernel_release(kernel);
}

/* At quick, at peak, and from the cache; limit: a ratio, 0: none. */
static void graph_times(bench *b, const char *kind, double limit, bool hit)
{
    graph_compilation quick = { b->context, b->graph, OPJIT_COMPILE_OPTIONS_INIT, false }, peak, cached;
    measure_pair pair;
    char name[64];

    quick.options.level = OPJIT_LEVEL_QUICK;
    cached = quick;
    quick.options.flags = OPJIT_COMPILE_NO_CACHE;
    peak = quick;
    peak.options.level = OPJIT_LEVEL_PEAK;
    if (!graph_make(b->context, b->graph)) {
        b->broken = true;
        return;
    }
    snprintf(name, sizeof name, "compile %s quick", kind);
    if (report_wants(&b->report, name)) {
        measure_run(compile_graph, &quick, loops_emit_empty, NULL, b->report.pairs, COMPILE_US, &pair);
        put_compile(b, name, "empty function", &pair, limit);
    }
    snprintf(name, sizeof name, "compile %s peak", kind);
    if (report_wants(&b->report, name)) {
        measure_run(compile_graph, &peak, compile_graph, &quick, b->report.pairs, COMPILE_US, &pair);
        put_compile(b, name, "quick", &pair, 0);
    }
    snprintf(name, sizeof name, "hit %s", kind);
    if (hit && report_wants(&b->report, name)) {
        compile_graph(&cached);
        measure_run(compile_graph, &cached, compile_graph, &cached, b->report.pairs, COMPILE_US, &pair);
        report_put(&b->report, &(report_row){ .name = name,
                                              .ns = pair.a_ns,
                                              .bytes = NAN,
                                              .memset_ratio = NAN,
                                              .ratio = NAN,
                                              .lo = NAN,
                                              .hi = NAN,
                                              .bar = BAR_AT_MOST,
                                              .limit = 2000,
                                              .in_ns = true,
                                              .ns_lo = pair.a_ns,
                                              .ns_hi = pair.a_ns });
    }
    graph_free(b->graph);
    b->broken = b->broken || quick.failed || peak.failed || cached.failed;
}

static void all_graph_times(bench *b)
{
    static const uint32_t shape[3] = { 16, 512, 512 }, row[3] = { 1, 256, 512 };

    graph_chain(b->graph, shape, 15);
    graph_times(b, "chain of 15", 6, true);
    graph_causal_softmax(b->graph, shape, GRAPH_MASK_IF);
    graph_times(b, "causal softmax", 11, false);
    graph_alibi(b->graph, shape, GRAPH_MASK_IF);
    graph_times(b, "alibi exp", 0, false);
    graph_one(b->graph, row, GRAPH_EXP);
    graph_times(b, "exp", 4, false);
    graph_one(b->graph, row, GRAPH_GELU);
    graph_times(b, "gelu", 4, false);
    graph_one(b->graph, row, GRAPH_SOFTMAX);
    graph_times(b, "softmax", 11, false);
    graph_one(b->graph, row, GRAPH_NORM);
    graph_times(b, "layer norm", 8, false);
    graph_rows(b->graph, row, true);
    graph_times(b, "layer norm, gelu, softmax", 18, false);
    graph_chain(b->graph, shape, 100);
    graph_times(b, "chain of 100", 40, false);
}

/* --- code for GPUs ------------------------------------------------------------------------------------------------ */
static const struct gpu {
    const char *word, *target;
    opjit_artifact_kind kind;
    double limit;
} gpus[LOOPS_GPUS] = {
    [LOOPS_PTX] = { "ptx", "nvptx:sm_90", OPJIT_ARTIFACT_PTX, 4 },
    [LOOPS_CODE_OBJECT] = { "hsaco", "amdgpu:gfx942", OPJIT_ARTIFACT_HSACO, 6 },
};

typedef struct gpu_compilation {
    opjit_context *context;
    opjit_operator *op; /* NULL: the graph */
    const graph *graph;
    loops_gpu gpu;
    opjit_compile_options options;
    bool failed;
} gpu_compilation;

/* From descriptor to code, and released again. */
static void make_gpu_code(void *arg)
{
    gpu_compilation *const c = arg;
    opjit_artifact_options options = OPJIT_ARTIFACT_OPTIONS_INIT;
    opjit_artifact *artifact = NULL;
    const void *data;
    uint64_t bytes;
    opjit_error error;
    opjit_status status;

    options.target_count = 1;
    options.targets = &gpus[c->gpu].target;
    status = opjit_artifact_create(c->context, &options, &artifact, &error);
    if (status == OPJIT_OK)
        status = c->op != NULL ? opjit_artifact_add_operator(artifact, c->op, &c->options, &error)
                               : opjit_artifact_add_graph(artifact, &c->graph->desc, &c->options, &error);
    if (status == OPJIT_OK)
        status = opjit_artifact_get(artifact, 0, gpus[c->gpu].kind, &data, &bytes, &error);
    if (status != OPJIT_OK)
        c->failed = !subject_complain(gpus[c->gpu].word, &error);
    opjit_artifact_destroy(artifact);
}

static void gpu_time(bench *b, loops_gpu gpu, const char *kind, opjit_operator *op)
{
    gpu_compilation c = { b->context, op, b->graph, gpu, OPJIT_COMPILE_OPTIONS_INIT, false };
    measure_pair pair;
    char name[64];

    snprintf(name, sizeof name, "%s %s quick", gpus[gpu].word, kind);
    if (!report_wants(&b->report, name))
        return;
    c.options.level = OPJIT_LEVEL_QUICK;
    c.options.name = "kernel";
    measure_run(make_gpu_code, &c, loops_emit_empty_kernel, &gpu, b->report.pairs, COMPILE_US, &pair);
    put_compile(b, name, "empty kernel", &pair, op != NULL ? gpus[gpu].limit : 0);
    b->broken = b->broken || c.failed;
}

static void gpu_times(bench *b, loops_gpu gpu)
{
    static const uint32_t shape[3] = { 16, 512, 512 };

    for (int kind = 0; kind < LOOPS_KINDS; kind++) {
        subject_desc d;
        opjit_operator *op = NULL;
        opjit_error error;

        describe(&d, (loops_kind)kind, 512, 512);
        if (opjit_operator_create(b->context, &d.op, &op, &error) != OPJIT_OK)
            b->broken = !subject_complain("operator", &error);
        else
            gpu_time(b, gpu, kinds[kind].name, op);
        opjit_operator_release(op);
    }
    graph_causal_softmax(b->graph, shape, GRAPH_MASK_IF);
    if (graph_make(b->context, b->graph))
        gpu_time(b, gpu, "causal softmax", NULL);
    graph_free(b->graph);
}

/* --- code quality ------------------------------------------------------------------------------------------------- */
typedef struct loop {
    loops_fn fn;
    float *out;
    const float *in;
} loop;

static void run_loop(void *arg)
{
    const loop *const l = arg;

    l->fn(l->out, l->in);
}

static void code_quality(bench *b, loops_kind kind, uint64_t bytes, opjit_level level)
{
    const bool quick = level == OPJIT_LEVEL_QUICK;
    loop l = { NULL, b->out, b->in };
    char name[64];
    uint32_t rows, columns;
    measure_pair pair;
    double ms;
    subject_desc d;
    subject s;
    bare code;

    snprintf(name, sizeof name, "speed %s %s %u KiB", kinds[kind].name, quick ? "quick" : "peak",
             (unsigned)(bytes / 1024));
    if (!report_wants(&b->report, name))
        return;
    subject_shape(bytes, 4, &rows, &columns);
    describe(&d, kind, rows, columns);
    l.fn = loops_compile(kind, rows, columns, &ms);
    if (l.fn == NULL || !subject_make(b->context, &d, level, NULL, &s)) {
        b->broken = true;
        return;
    }
    subject_bind(&s, kind == LOOPS_TRIANGLE ? b->in : NULL, b->out, bytes, NULL);
    code = bare_of(s.kernel, &s.call); /* at 16 KiB opjit_kernel_call would be a tenth of it */
    measure_run(run_loop, &l, bare_run, &code, b->report.pairs, RUN_US, &pair);
    report_put(&b->report, &(report_row){ .name = name,
                                          .ns = pair.b_ns,
                                          .bytes = (double)bytes,
                                          .memset_ratio = NAN,
                                          .reference = "default<O2>, speed",
                                          .ratio = pair.ratio,
                                          .lo = pair.lo,
                                          .hi = pair.hi,
                                          .bar = BAR_AT_LEAST,
                                          .limit = quick ? (bytes <= 256 * 1024 ? 0.8 : 0.95) : 0.97 });
    subject_free(&s);
}

int main(int argc, char **argv)
{
    static const uint64_t sizes[] = { 16384, 256 * 1024, 8 * MIB, LARGEST };
    bench b = { .broken = false };
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
    opjit_error error;
    const int status = report_options(&b.report, argc, argv);

    if (status != 0)
        return status;
    options.target = getenv("OPJIT_BENCH_TARGET");
    if (!loops_start() || opjit_context_create(&options, &b.context, &error) != OPJIT_OK)
        return 1;
    if (opjit_context_warm(b.context, &error) != OPJIT_OK)
        return !subject_complain("warm", &error);
    b.in = measure_buffer(LARGEST);
    b.out = measure_buffer(LARGEST);
    b.graph = malloc(sizeof *b.graph);
    if (b.in == NULL || b.out == NULL || b.graph == NULL)
        return 1;
    report_begin(&b.report, "compile", opjit_context_target(b.context));
    for (int kind = 0; kind < LOOPS_KINDS; kind++)
        compile_times(&b, (loops_kind)kind);
    all_graph_times(&b);
    for (int gpu = 0; gpu < LOOPS_GPUS; gpu++)
        gpu_times(&b, (loops_gpu)gpu);
    for (int kind = 0; kind < LOOPS_KINDS; kind++) {
        for (unsigned i = 0; i < (b.report.quick ? 2u : 4u); i++) {
            code_quality(&b, (loops_kind)kind, sizes[i], OPJIT_LEVEL_QUICK);
            code_quality(&b, (loops_kind)kind, sizes[i], OPJIT_LEVEL_PEAK);
        }
    }
    free(b.graph);
    measure_buffer_free(b.in, LARGEST);
    measure_buffer_free(b.out, LARGEST);
    opjit_context_destroy(b.context);
    loops_stop();
    return report_end(&b.report) | b.broken;
}
