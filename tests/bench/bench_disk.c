/* SPDX-License-Identifier: Apache-2.0 */
/* bench_disk.c - what a new process needs with a warm disk cache: its first kernel, and `opjit run` of a small model,
 * both without LLVM.  Each sample is a process of its own; the folder is warm, so nothing waits for a disk. */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/bench/process.h"
#include "tests/bench/report.h"

enum { SAMPLES = 240, PATH_SIZE = 512 };

typedef struct bench {
    report report;
    char folder[32], kernel[PATH_SIZE], empty[PATH_SIZE];
    bool broken;
} bench;

static bool complain(bench *b, const char *what)
{
    fprintf(stderr, "bench_disk: %s failed\n", what);
    b->broken = true;
    return false;
}

/* a_ns - b_ns by pair, with a's bar on the difference. */
static void put(bench *b, const char *name, const char *reference, double *a, const double *less, double limit)
{
    report_row row = { .name = name,
                       .bytes = NAN,
                       .memset_ratio = NAN,
                       .reference = reference,
                       .ratio = NAN,
                       .lo = NAN,
                       .hi = NAN,
                       .in_ns = true,
                       .bar = limit > 0 ? BAR_AT_MOST : BAR_NONE,
                       .limit = limit };
    double ratios[SAMPLES];

    for (unsigned i = 0; less != NULL && i < SAMPLES; i++) {
        ratios[i] = a[i] / less[i];
        a[i] -= less[i];
    }
    if (less != NULL)
        measure_median(ratios, SAMPLES, &row.ratio, &row.lo, &row.hi);
    measure_median(a, SAMPLES, &row.ns, &row.ns_lo, &row.ns_hi);
    report_put(&b->report, &row);
}

static bool run_kernel(bench *b, double *out_create, double *out_use, bool first)
{
    char *const arguments[] = { b->kernel, b->folder, NULL };
    char text[256];
    int llvm;

    if (isnan(process_run(arguments, text, sizeof text)) || sscanf(text, "%lf %lf %d", out_create, out_use, &llvm) != 3)
        return complain(b, b->kernel);
    return llvm == 0 || first || complain(b, "a kernel from disk without LLVM");
}

static void first_kernel(bench *b)
{
    static double create[SAMPLES], use[SAMPLES], both[SAMPLES];

    if (!run_kernel(b, &create[0], &use[0], true))
        return;
    for (unsigned i = 0; i < SAMPLES; i++) {
        if (!run_kernel(b, &create[i], &use[i], false))
            return;
        both[i] = create[i] + use[i];
    }
    put(b, "from disk: compile, call", "", use, NULL, 50e3);
    put(b, "from disk: create, compile, call", "", both, NULL, 50e3);
}

static void small_model(bench *b)
{
    static double whole[SAMPLES], empty[SAMPLES];
    char model[] = "/tmp/opjit-bench-XXXXXX", text[4096], *const program = getenv("OPJIT");
    char *const run[] = { program, "run", model, "--cache-dir", b->folder, "--quiet", NULL };
    char *const nothing[] = { b->empty, NULL };

    if (program == NULL) {
        fprintf(stderr, "opjit run is not measured: $OPJIT does not name the program\n");
        return;
    }
    if (!process_model(model) || isnan(process_run(run, text, sizeof text))) {
        complain(b, program);
        return;
    }
    for (unsigned i = 0; i < SAMPLES && !b->broken; i++) {
        empty[i] = process_run(nothing, text, sizeof text);
        whole[i] = process_run(run, text, sizeof text);
        if (isnan(whole[i]) || isnan(empty[i]))
            complain(b, "opjit run");
    }
    unlink(model);
    if (!b->broken)
        put(b, "opjit run, 4 x 4 eye, cached", "an empty program", whole, empty, 2e6);
}

/* The programs that are run are in this one's folder. */
static void beside(const char *self, const char *name, char path[static PATH_SIZE])
{
    const char *const slash = strrchr(self, '/');

    snprintf(path, PATH_SIZE, "%.*s%s", slash == NULL ? 0 : (int)(slash - self + 1), self, name);
}

int main(int argc, char **argv)
{
    bench b = { .folder = "/tmp/opjit-bench-XXXXXX" };
    char *remove[] = { "/bin/rm", "-rf", b.folder, NULL }, text[16];
    const int status = report_options(&b.report, argc, argv);

    if (status != 0)
        return status;
    beside(argv[0], "cold_kernel", b.kernel);
    beside(argv[0], "cold_empty", b.empty);
    if (mkdtemp(b.folder) == NULL)
        return 1;
    report_begin(&b.report, "disk", "cpu:host");
    first_kernel(&b);
    if (!b.broken)
        small_model(&b);
    process_run(remove, text, sizeof text);
    return report_end(&b.report) | b.broken;
}
