/* SPDX-License-Identifier: Apache-2.0 */
/* bench_masks.c - fused graphs against hand-written loops: causal masks made in three ways with ALiBi slopes and exp,
 * causal softmax, layer norm before it, chains of cheap operators; on one thread and on two.  Results are compared bit
 * for bit before anything is timed.  Reductions are in bench_reduce.c, the compile times of these graphs in
 * bench_compile.c. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/cli/measure/subject.h"
#include "tests/bench/graphs.h"
#include "tests/bench/hand_masks.h"
#include "tests/bench/pool.h"
#include "tests/bench/report.h"

#define SAMPLE_US 3000.0
#define PAIRS_TO_CHOOSE 9

static const uint32_t shape[3] = { 16, 512, 512 };
enum { HEADS = 16, ROWS = 512, COLUMNS = 512, GRAIN = 8, COUNT = HEADS * ROWS * COLUMNS, BYTES = COUNT * 4 };

typedef struct bench {
    report report;
    opjit_context *context;
    const hand_masks *hand;
    graph *graph;
    float *in, *out, *by_hand;
    _Alignas(64) float slopes[HEADS];
    _Alignas(64) float row[COLUMNS];
    bool broken;
} bench;

typedef struct fused {
    const char *name;
    enum { ALIBI, SOFTMAX, CHAIN, WHOLE_ROWS } kind;
    graph_mask mask;
    uint32_t length; /* of a chain; WHOLE_ROWS: how many GELUs, 0 or 1 */
    double limit;
} fused;

static const fused cases[] = {
    { "alibi exp, diagonal", ALIBI, GRAPH_MASK_DIAGONAL, 0, 1.1 },
    { "alibi exp, if", ALIBI, GRAPH_MASK_IF, 0, 1.1 },
    { "alibi exp, add absorbing", ALIBI, GRAPH_MASK_ADD, 0, 1.1 },
    { "causal softmax, diagonal", SOFTMAX, GRAPH_MASK_DIAGONAL, 0, 1.2 },
    { "causal softmax, if", SOFTMAX, GRAPH_MASK_IF, 0, 1.2 },
    { "causal softmax, add absorbing", SOFTMAX, GRAPH_MASK_ADD, 0, 1.2 },
    { "chain of 2", CHAIN, GRAPH_MASK_IF, 2, 1.1 },
    { "chain of 5", CHAIN, GRAPH_MASK_IF, 5, 1.1 },
    { "chain of 10", CHAIN, GRAPH_MASK_IF, 10, 1.1 },
    { "chain of 15", CHAIN, GRAPH_MASK_IF, 15, 1.1 },
    { "layer norm, softmax", WHOLE_ROWS, GRAPH_MASK_IF, 0, 6.5 },
    { "layer norm, gelu, softmax", WHOLE_ROWS, GRAPH_MASK_IF, 1, 20 },
};

/* --- by hand ------------------------------------------------------------------------------------------------------ */

typedef struct twin {
    hand_masks_fn fn;
    hand_masks_job job;
    const opjit_executor *executor; /* NULL: this thread */
} twin;

static void twin_piece(void *arg, uint32_t worker, uint64_t begin, uint64_t end)
{
    const twin *const t = arg;

    (void)worker;
    t->fn(&t->job, begin, end);
}

static void run_twin(void *arg)
{
    twin *const t = arg;
    const uint64_t rows = (uint64_t)HEADS * ROWS;

    if (t->executor == NULL)
        t->fn(&t->job, 0, rows);
    else if (t->executor->run(t->executor->user, rows, GRAIN, twin_piece, t) != OPJIT_OK)
        fprintf(stderr, "the pool failed\n"); /* ours never does */
}

/* In turns with the kernel, in CPU time, that of the busier thread. */
static void measure_twin(subject *s, twin *t, const pool *two, uint32_t pairs, measure_pair *out)
{
    if (two != NULL)
        measure_run_clock(pool_cpu_ns, two, subject_run, s, run_twin, t, pairs, SAMPLE_US, out);
    else
        measure_run(subject_run, s, run_twin, t, pairs, SAMPLE_US, out);
}

static double time_of(subject *s, twin *t, const pool *two)
{
    measure_pair pair;

    measure_twin(s, t, two, PAIRS_TO_CHOOSE, &pair);
    return pair.b_ns;
}

/* Selects the faster kind of stores for the machine's caches; returns the time. */
static double with_best_stores(subject *s, twin *t, const pool *two)
{
    double ns[HAND_MODES];

    for (int mode = 0; mode < HAND_MODES; mode++) {
        t->job.mode = (hand_mode)mode;
        ns[mode] = time_of(s, t, two);
    }
    t->job.mode = ns[HAND_NT] < ns[HAND_PLAIN] ? HAND_NT : HAND_PLAIN;
    return fmin(ns[0], ns[1]);
}

static twin twin_of(bench *b, const fused *c)
{
    return (twin){ .fn = c->kind == ALIBI     ? b->hand->alibi_exp
                         : c->kind == SOFTMAX ? b->hand->causal_softmax
                                              : b->hand->chain,
                   .job = { .in = b->in,
                            .more = c->kind == CHAIN ? b->row : b->slopes,
                            .out = b->by_hand,
                            .rows = ROWS,
                            .columns = COLUMNS,
                            .length = c->kind == CHAIN ? c->length : 0 } };
}

/* The reference of a case.  A chain can't be faster than its memory or its arithmetic: the slower of a copy and of the
 * same operators on a row that stays in the first cache. */
static twin reference_of(bench *b, const fused *c, subject *s, const pool *two, const char **name)
{
    twin t = twin_of(b, c);

    t.executor = two != NULL ? pool_executor(two) : NULL;
    if (c->kind != CHAIN) {
        with_best_stores(s, &t, two);
        *name = c->kind == WHOLE_ROWS    ? (t.job.mode == HAND_NT ? "copy nt" : "copy plain")
                : t.job.mode == HAND_NT ? "nt"
                                         : "plain";
        return t;
    }
    twin memory = t, arithmetic = t;
    memory.job.length = 0;
    arithmetic.job.again = true;
    const bool bound = with_best_stores(s, &memory, two) > time_of(s, &arithmetic, two);
    *name = !bound ? "arithmetic" : memory.job.mode == HAND_NT ? "copy nt" : "copy plain";
    return bound ? memory : arithmetic;
}

/* --- kernels ------------------------------------------------------------------------------------------------------ */

static void build(graph *g, const fused *c)
{
    switch (c->kind) {
    case ALIBI: graph_alibi(g, shape, c->mask); break;
    case SOFTMAX: graph_causal_softmax(g, shape, c->mask); break;
    case CHAIN: graph_chain(g, shape, c->length); break;
    case WHOLE_ROWS: graph_rows(g, shape, c->length != 0); break;
    }
}

/* *s has no operator then: the graph has them. */
static bool compile(bench *b, const fused *c, opjit_level level, opjit_binding bindings[3], subject *s)
{
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_error error;

    build(b->graph, c);
    *s = (subject){ .call = OPJIT_CALL_INIT };
    if (!graph_make(b->context, b->graph))
        return false;
    options.level = level;
    options.flags = OPJIT_COMPILE_NO_CACHE | (c->mask == GRAPH_MASK_ADD ? OPJIT_COMPILE_MASKS_ABSORB : 0);
    const bool ok = opjit_compile_graph(b->context, &b->graph->desc, &options, &s->kernel, &error) == OPJIT_OK;
    graph_free(b->graph);
    if (!ok)
        return subject_complain(c->name, &error);
    uint32_t count = 0;
    bindings[count++] = (opjit_binding){ b->in, BYTES };
    if (c->kind == ALIBI)
        bindings[count++] = (opjit_binding){ b->slopes, sizeof b->slopes };
    if (c->kind == CHAIN)
        bindings[count++] = (opjit_binding){ b->row, sizeof b->row };
    bindings[count++] = (opjit_binding){ b->out, BYTES };
    s->call.bindings = bindings;
    s->call.binding_count = count;
    return true;
}

static bool compare(bench *b, const fused *c, subject *s)
{
    twin t = twin_of(b, c);

    memset(b->out, 0x5a, BYTES);
    memset(b->by_hand, 0xa5, BYTES);
    subject_run(s);
    run_twin(&t);
    for (uint32_t i = 0; i < COUNT; i++) {
        if (memcmp(&b->out[i], &b->by_hand[i], sizeof *b->out) == 0)
            continue;
        fprintf(stderr, "%s: row %u, column %u: the kernel has %a, by hand it is %a\n", c->name,
                (unsigned)(i / COLUMNS), (unsigned)(i % COLUMNS), (double)b->out[i], (double)b->by_hand[i]);
        return false;
    }
    return !s->failed;
}

/* two: the pool to run on; NULL: this thread only. */
static void run_case(bench *b, const fused *c, opjit_level level, const pool *two)
{
    opjit_binding bindings[3];
    const char *kind;
    measure_pair pair;
    char name[64], reference[64];
    subject s;

    snprintf(name, sizeof name, "%s%s%s", c->name, level == OPJIT_LEVEL_PEAK ? ", peak" : "",
             two != NULL ? ", 2 threads" : "");
    if (!report_wants(&b->report, name))
        return;
    if (!compile(b, c, level, bindings, &s)) {
        b->broken = true;
        return;
    }
    b->broken = (c->kind != WHOLE_ROWS && !compare(b, c, &s)) || b->broken; /* only a copy is by hand */
    s.call.executor = two != NULL ? pool_executor(two) : NULL;
    twin t = reference_of(b, c, &s, two, &kind);
    snprintf(reference, sizeof reference, "%s %s", b->hand->name, kind);
    measure_twin(&s, &t, two, b->report.pairs, &pair);
    report_put(&b->report, &(report_row){ .name = name,
                                          .ns = pair.a_ns,
                                          .bytes = 2.0 * BYTES,
                                          .memset_ratio = NAN,
                                          .reference = reference,
                                          .ratio = pair.ratio,
                                          .lo = pair.lo,
                                          .hi = pair.hi,
                                          .bar = BAR_AT_MOST,
                                          .limit = c->limit });
    b->broken = b->broken || s.failed;
    opjit_kernel_release(s.kernel);
}

/* --- all ---------------------------------------------------------------------------------------------------------- */

/* Scores from -4 to 4, slopes of the usual ratio, a row without 0. */
static void fill(bench *b)
{
    uint32_t x = 1;

    for (uint32_t i = 0; i < COUNT; i++) {
        x = x * 1664525 + 1013904223;
        b->in[i] = (float)(x >> 8) / 2097152.0f - 4.0f;
    }
    for (uint32_t i = 0; i < HEADS; i++)
        b->slopes[i] = exp2f(-0.5f * (float)(i + 1));
    for (uint32_t i = 0; i < COLUMNS; i++)
        b->row[i] = 0.25f + (float)i / COLUMNS;
}

static bool start(bench *b)
{
    b->hand = hand_masks_get(opjit_context_target(b->context));
    if (b->hand == NULL) {
        fprintf(stderr, "the loops by hand need AVX2 and FMA\n");
        return false;
    }
    b->in = measure_buffer(BYTES);
    b->out = measure_buffer(BYTES);
    b->by_hand = measure_buffer(BYTES);
    b->graph = malloc(sizeof *b->graph);
    if (b->in == NULL || b->out == NULL || b->by_hand == NULL || b->graph == NULL) {
        fprintf(stderr, "out of memory\n");
        return false;
    }
    fill(b);
    return true;
}

int main(int argc, char **argv)
{
    static bench b; /* static, as its rows are read in whole vectors */
    const int status = report_open(&b.report, "fused graphs", argc, argv, &b.context);

    if (status != 0)
        return status;
    if (!start(&b))
        return 1;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        run_case(&b, &cases[i], OPJIT_LEVEL_AUTO, NULL);
        run_case(&b, &cases[i], OPJIT_LEVEL_PEAK, NULL);
    }
    pool *const two = b.report.quick ? NULL : pool_start(); /* its helper takes a core, so it comes last */
    for (size_t i = 0; two != NULL && i < sizeof cases / sizeof *cases; i++)
        run_case(&b, &cases[i], OPJIT_LEVEL_AUTO, two);
    if (two != NULL)
        pool_stop(two);
    free(b.graph);
    measure_buffer_free(b.in, BYTES);
    measure_buffer_free(b.out, BYTES);
    measure_buffer_free(b.by_hand, BYTES);
    opjit_context_destroy(b.context);
    return report_end(&b.report) | b.broken;
}
