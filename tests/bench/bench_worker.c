/* SPDX-License-Identifier: Apache-2.0 */
/* bench_worker.c - what compiling out of process adds to a compile that is warm: the request, the code and two
 * changes of process.  Both ways in turns, by the CPU time of this thread and the worker; the shortest one by the
 * clock on the wall, too, of which the least of many counts, as other programs take the CPU from both. */
#define _GNU_SOURCE
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <opjit/graph_ops.h>

#include "tests/bench/report.h"

enum { LAYERS = 24 };

typedef struct way {
    opjit_context *context;
    opjit_graph *graph;
    bool failed;
} way;

static void compile_once(void *user)
{
    way *const w = user;
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_kernel *kernel = NULL;
    opjit_error error;

    options.flags = OPJIT_COMPILE_NO_CACHE;
    if (opjit_graph_compile(w->graph, &options, &kernel, &error) != OPJIT_OK) {
        if (!w->failed)
            fprintf(stderr, "%s\n", error.message);
        w->failed = true;
    }
    opjit_kernel_release(kernel);
}

/* --- clocks ------------------------------------------------------------------------------------------------------- */

/* The CPU clock of the one worker; false: there is none. */
static bool find_worker(clockid_t *out)
{
    DIR *const folder = opendir("/proc");
    bool found = false;

    for (const struct dirent *entry; folder != NULL && !found && (entry = readdir(folder)) != NULL;) {
        char path[280], name[64] = "";
        int parent = 0;
        snprintf(path, sizeof path, "/proc/%s/stat", entry->d_name);
        FILE *const file = fopen(path, "r");
        if (file == NULL)
            continue;
        found = fscanf(file, "%*d (%63[^)]) %*c %d", name, &parent) == 2 && parent == (int)getpid() &&
                strcmp(name, "opjit-worker") == 0 && clock_getcpuclockid((pid_t)atoi(entry->d_name), out) == 0;
        fclose(file);
    }
    if (folder != NULL)
        closedir(folder);
    return found;
}

static double both_ns(const void *user)
{
    const clockid_t *const worker = user;
    struct timespec t = { 0 };

    clock_gettime(*worker, &t);
    return measure_cpu_ns() + (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double timed(way *w)
{
    const double start = measure_now_ns();

    compile_once(w);
    return measure_now_ns() - start;
}

/* --- what is compiled --------------------------------------------------------------------------------------------- */

static opjit_tensor eye(opjit_graph *g)
{
    return opjit_graph_eye(g, DML_TENSOR_DATA_TYPE_FLOAT32, 2, (const uint32_t[]){ 512, 512 }, 0);
}

static opjit_tensor input(opjit_graph *g)
{
    return opjit_graph_input(g, "x", DML_TENSOR_DATA_TYPE_FLOAT32, 2, (const uint32_t[]){ 128, 128 });
}

static opjit_tensor softmax(opjit_graph *g)
{
    return opjit_graph_softmax(g, input(g), 1);
}

static opjit_tensor causal(opjit_graph *g)
{
    return opjit_graph_softmax(g, opjit_graph_fill_band(g, input(g), -INFINITY, 1, INT32_MAX), 1);
}

static opjit_tensor layers(opjit_graph *g)
{
    opjit_tensor x = input(g);

    for (uint32_t i = 0; i < LAYERS; i++)
        x = opjit_graph_softmax(g, opjit_graph_matrix_multiply(g, x, x, 0, 0), i % 2);
    return x;
}

static const struct {
    const char *name;
    opjit_tensor (*make)(opjit_graph *g);
} cases[] = {
    { "identity matrix 512x512", eye },
    { "softmax 128x128", softmax },
    { "causal softmax 128x128", causal },
    { "24 products and softmaxes", layers },
};

static void put(report *r, const char *name, const char *clock, const measure_pair *p)
{
    char text[80];

    snprintf(text, sizeof text, "%s, %s", name, clock);
    report_put(r, &(report_row){ .name = text,
                                 .ns = p->a_ns - p->b_ns,
                                 .bytes = NAN,
                                 .memset_ratio = NAN,
                                 .reference = "in this process",
                                 .ratio = p->ratio,
                                 .lo = p->lo,
                                 .hi = p->hi,
                                 .bar = BAR_AT_MOST,
                                 .limit = 300000,
                                 .in_ns = true,
                                 .ns_lo = (p->lo - 1) * p->b_ns,
                                 .ns_hi = (p->hi - 1) * p->b_ns });
}

static void measure(report *r, const char *name, way *inside, way *outside, const clockid_t *worker)
{
    const uint32_t pairs = r->quick ? 21 : MEASURE_MAX_PAIRS;
    measure_pair pair;

    measure_run_clock(both_ns, worker, compile_once, outside, compile_once, inside, pairs, 0, &pair);
    put(r, name, "CPU", &pair);
    if (strcmp(name, cases[0].name) != 0)
        return;
    pair.a_ns = pair.b_ns = INFINITY;
    for (uint32_t i = 0; i < pairs; i++) {
        pair.a_ns = fmin(pair.a_ns, timed(outside));
        pair.b_ns = fmin(pair.b_ns, timed(inside));
    }
    pair.ratio = pair.lo = pair.hi = pair.a_ns / pair.b_ns;
    put(r, name, "least", &pair);
}

int main(int argc, char **argv)
{
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
    report r = { .pairs = 0 };
    way inside = { .failed = false }, outside = { .failed = false };
    opjit_error error = { .message = "there is no worker" };
    clockid_t worker;
    const int status = report_open(&r, "bench_worker", argc, argv, &inside.context);

    if (status != 0)
        return status;
    options.flags = OPJIT_CONTEXT_OUT_OF_PROCESS;
    options.target = opjit_context_target(inside.context);
    if (opjit_context_create(&options, &outside.context, &error) != OPJIT_OK ||
        opjit_context_warm(inside.context, &error) != OPJIT_OK ||
        opjit_context_warm(outside.context, &error) != OPJIT_OK || !find_worker(&worker)) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (!report_wants(&r, cases[i].name) || opjit_graph_create(inside.context, &inside.graph, &error) != OPJIT_OK ||
            opjit_graph_create(outside.context, &outside.graph, &error) != OPJIT_OK)
            continue;
        opjit_graph_output(inside.graph, "y", cases[i].make(inside.graph));
        opjit_graph_output(outside.graph, "y", cases[i].make(outside.graph));
        measure(&r, cases[i].name, &inside, &outside, &worker);
        opjit_graph_destroy(inside.graph);
        opjit_graph_destroy(outside.graph);
    }
    opjit_context_destroy(inside.context);
    opjit_context_destroy(outside.context);
    return inside.failed || outside.failed ? 1 : report_end(&r);
}
