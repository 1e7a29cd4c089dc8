/* SPDX-License-Identifier: Apache-2.0 */
/* bench_calls.c - the cost of opjit around kernels: a call, a cache hit, creating an equal descriptor again, two
 * threads at a time, the first result of a process, and resident memory.  The kernels themselves are measured by
 * bench_generators.c. */
#define _GNU_SOURCE
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <opjit/artifact.h>

#include "frontend/cli/measure/subject.h"
#include "tests/bench/bare.h"
#include "tests/bench/process.h"
#include "tests/bench/report.h"

#define SAMPLE_US 500.0

static const DML_TENSOR_DATA_TYPE f32 = DML_TENSOR_DATA_TYPE_FLOAT32;

typedef struct bench {
    report report;
    opjit_context *context;
    bool broken;
} bench;

/* Adds a row whose time is a's, or a minus b where less is set, with an absolute bar. */
static void put_ns(bench *b, const char *name, const measure_pair *p, bool less, const char *reference, double limit)
{
    const double base = less ? p->b_ns : 0;

    report_put(&b->report, &(report_row){ .name = name,
                                          .ns = p->a_ns - base,
                                          .bytes = NAN,
                                          .memset_ratio = NAN,
                                          .reference = reference,
                                          .ratio = p->ratio,
                                          .lo = p->lo,
                                          .hi = p->hi,
                                          .bar = BAR_AT_MOST,
                                          .limit = limit,
                                          .in_ns = true,
                                          .ns_lo = p->lo * p->b_ns - base,
                                          .ns_hi = p->hi * p->b_ns - base });
}

/* --- calls -------------------------------------------------------------------------------------------------------- */
/* A stage function that does nothing. */
__attribute__((noinline)) static void empty_stage(void *const *buffers, const uint64_t *params, void *shared,
                                                  void *scratch, uint64_t begin, uint64_t end)
{
    (void)buffers;
    (void)params;
    (void)shared;
    (void)scratch;
    (void)begin;
    (void)end;
    __asm__ volatile("");
}

/* A loop measures the time of consecutive calls; the bare functions are timed in the same way, so that the difference
 * is what opjit_kernel_call adds. */
static void calls_of(bench *b, const char *what, subject *s, bare *stage)
{
    _Alignas(64) static float out[16];
    char name[64];
    measure_pair pair;

    subject_bind(s, NULL, out, sizeof out, NULL);
    *stage = bare_of(s->kernel, &s->call);
    measure_run(subject_run, s, bare_run, stage, b->report.pairs, SAMPLE_US, &pair);
    snprintf(name, sizeof name, "opjit_kernel_call, %s", what);
    put_ns(b, name, &pair, true, "the bare stage", 20);
}

/* The kernel of a library that was made ahead of time, as a file. */
static bool find_shipped(opjit_artifact *artifact, opjit_context *context, opjit_kernel **out, opjit_error *error)
{
    char path[] = "/tmp/opjit-bench-XXXXXX";
    const void *data;
    uint64_t bytes;
    opjit_library *library = NULL;
    bool good = opjit_artifact_get(artifact, 0, OPJIT_ARTIFACT_SHARED, &data, &bytes, error) == OPJIT_OK;
    const int file = good ? mkstemp(path) : -1;

    if (file < 0)
        return false;
    good = write(file, data, (size_t)bytes) == (ssize_t)bytes &&
           opjit_library_open(context, path, &library, error) == OPJIT_OK &&
           opjit_library_find(library, "eye", out, error) == OPJIT_OK;
    opjit_library_close(library);
    close(file);
    unlink(path);
    return good;
}

static void shipped_calls(bench *b, const char *what, const subject_desc *d)
{
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_artifact *artifact = NULL;
    subject s = { .call = OPJIT_CALL_INIT };
    bare stage;
    opjit_error error = { .status = OPJIT_IO, .message = "no file can be written" };

    options.name = "eye";
    if (opjit_artifact_create(b->context, NULL, &artifact, &error) == OPJIT_OK &&
        opjit_operator_create(b->context, &d->op, &s.op, &error) == OPJIT_OK &&
        opjit_artifact_add_operator(artifact, s.op, &options, &error) == OPJIT_OK &&
        find_shipped(artifact, b->context, &s.kernel, &error))
        calls_of(b, what, &s, &stage);
    else
        b->broken = !subject_complain(what, &error);
    b->broken = b->broken || s.failed;
    subject_free(&s);
    opjit_artifact_destroy(artifact);
}

static void calls(bench *b, const char *what, const subject_desc *d)
{
    bare stage, empty = { empty_stage, { NULL }, 1 };
    char name[64];
    measure_pair pair;
    subject s;

    if (!subject_make(b->context, d, OPJIT_LEVEL_AUTO, NULL, &s)) {
        b->broken = true;
        return;
    }
    calls_of(b, what, &s, &stage);
    measure_run(bare_run, &stage, bare_run, &empty, b->report.pairs, SAMPLE_US, &pair);
    snprintf(name, sizeof name, "stage function, %s", what);
    put_ns(b, name, &pair, true, "an empty function", 2);
    b->broken = b->broken || s.failed;
    subject_free(&s);
}

/* --- cache hits --------------------------------------------------------------------------------------------------- */
typedef struct lookup {
    opjit_context *context;
    const subject_desc *desc;
    opjit_operator *op;
    bool failed;
} lookup;

static void hit(void *arg)
{
    lookup *const l = arg;
    opjit_kernel *kernel;
    opjit_error error;

    if (opjit_compile_operator(l->context, l->op, NULL, &kernel, &error) != OPJIT_OK) {
        l->failed = l->failed || !subject_complain("hit", &error);
        return;
    }
    opjit_kernel_release(kernel);
}

static void create_and_hit(void *arg)
{
    lookup *const l = arg;
    lookup own = *l;
    opjit_error error;

    if (opjit_operator_create(l->context, &l->desc->op, &own.op, &error) != OPJIT_OK) {
        l->failed = l->failed || !subject_complain("operator", &error);
        return;
    }
    hit(&own);
    opjit_operator_release(own.op);
    l->failed = l->failed || own.failed;
}

/* A helper thread that looks up one key while the other one is measured. */
typedef struct helper {
    lookup lookup;
    atomic_bool stop;
    atomic_ulong done;
} helper;

static void *keep_hitting(void *arg)
{
    helper *const h = arg;
    unsigned long done = 0;

    while (!atomic_load_explicit(&h->stop, memory_order_relaxed)) {
        for (int i = 0; i < 64; i++)
            hit(&h->lookup);
        atomic_store_explicit(&h->done, done += 64, memory_order_relaxed);
    }
    return NULL;
}

/* Hits per nanosecond of both threads together, divided by those of one thread alone, in turns.  possible: the gain
 * of two threads that share nothing, NAN for that case itself; if it is below the bar, the machine has no two free
 * cores. */
static double contention(bench *b, const char *name, lookup *mine, lookup *other, double possible)
{
    enum { calls_a_sample = 20000 };
    double gains[REPORT_PAIRS], one_ns = INFINITY;
    report_row row = { .name = name,
                       .bytes = NAN,
                       .memset_ratio = NAN,
                       .reference = "one thread",
                       .bar = isnan(possible) ? BAR_NONE : BAR_AT_LEAST,
                       .limit = 1.6,
                       .note = possible < 1.6 ? "no bar: two contexts gain less too" : NULL };

    for (unsigned i = 0; i < REPORT_PAIRS; i++) {
        helper h = { .lookup = *other };
        pthread_t thread;
        double start = measure_now_ns(), alone, both;
        unsigned long before, after;

        for (int k = 0; k < calls_a_sample; k++)
            hit(mine);
        alone = calls_a_sample / (measure_now_ns() - start);
        if (pthread_create(&thread, NULL, keep_hitting, &h) != 0)
            return NAN;
        while (atomic_load(&h.done) == 0)
            continue;
        before = atomic_load(&h.done);
        start = measure_now_ns();
        for (int k = 0; k < calls_a_sample; k++)
            hit(mine);
        after = atomic_load(&h.done);
        both = (double)(calls_a_sample + after - before) / (measure_now_ns() - start);
        atomic_store(&h.stop, true);
        pthread_join(thread, NULL);
        gains[i] = both / alone;
        one_ns = 1 / alone < one_ns ? 1 / alone : one_ns;
    }
    measure_median(gains, REPORT_PAIRS, &row.ratio, &row.lo, &row.hi);
    row.ns = one_ns;
    report_put(&b->report, &row);
    return row.ratio;
}

/* Two threads on two keys: of two contexts, which share nothing, then of one. */
static void two_threads(bench *b, lookup *mine, lookup *other)
{
    lookup apart = { NULL, other->desc, NULL, false };
    opjit_error error;

    if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
        return;
    if (opjit_context_create(NULL, &apart.context, &error) != OPJIT_OK ||
        opjit_operator_create(apart.context, &apart.desc->op, &apart.op, &error) != OPJIT_OK) {
        b->broken = !subject_complain("second context", &error);
    } else {
        hit(&apart);
        contention(b, "hits, two threads, one key each", mine, other,
                   contention(b, "hits, two threads, two contexts", mine, &apart, NAN));
    }
    opjit_operator_release(apart.op);
    opjit_context_destroy(apart.context);
}

static void empty(void *arg)
{
    (void)arg;
    __asm__ volatile("");
}

static void hits(bench *b)
{
    subject_desc first, second;
    lookup mine = { b->context, &first, NULL, false }, other = { b->context, &second, NULL, false };
    measure_pair pair;
    opjit_error error;

    subject_eye(&first, f32, 4, 4, 0, 1);
    subject_sequence(&second, f32, 4, 4, 0, 1);
    if (opjit_operator_create(b->context, &first.op, &mine.op, &error) != OPJIT_OK ||
        opjit_operator_create(b->context, &second.op, &other.op, &error) != OPJIT_OK) {
        b->broken = !subject_complain("operator", &error);
        return;
    }
    hit(&other);
    measure_run(hit, &mine, empty, NULL, b->report.pairs, SAMPLE_US, &pair);
    put_ns(b, "compile_operator, cached", &pair, false, "an empty function", 100);
    measure_run(create_and_hit, &mine, empty, NULL, b->report.pairs, SAMPLE_US, &pair);
    put_ns(b, "create, compile, equal descriptor", &pair, false, "an empty function", 500);
    two_threads(b, &mine, &other);
    b->broken = b->broken || mine.failed || other.failed;
    opjit_operator_release(mine.op);
    opjit_operator_release(other.op);
}

/* --- processes --------------------------------------------------------------------------------------------------- */
/* What a child measures of itself, as numbers on its standard output: a context, then an identity matrix compiled and
 * called. */
static int child(void)
{
    _Alignas(64) static float out[16];
    double times[3], bytes[3];
    opjit_context *context;
    opjit_error error;
    subject_desc d;
    subject s;

    bytes[0] = measure_resident();
    times[0] = measure_now_ns();
    if (opjit_context_create(NULL, &context, &error) != OPJIT_OK)
        return !subject_complain("context", &error);
    times[1] = measure_now_ns();
    bytes[1] = measure_resident();
    subject_eye(&d, f32, 4, 4, 0, 1);
    if (!subject_make(context, &d, OPJIT_LEVEL_AUTO, NULL, &s))
        return 1;
    subject_bind(&s, NULL, out, sizeof out, NULL);
    subject_run(&s);
    times[2] = measure_now_ns();
    bytes[2] = measure_resident();
    printf("%.0f %.0f %.0f %.0f %.0f\n", times[1] - times[0], times[2] - times[1], bytes[0], bytes[1], bytes[2]);
    subject_free(&s);
    opjit_context_destroy(context);
    return s.failed;
}

static void put_samples(bench *b, const char *name, double *samples, uint32_t count, double limit)
{
    report_row row = { .name = name,
                       .bytes = NAN,
                       .memset_ratio = NAN,
                       .ratio = NAN,
                       .lo = NAN,
                       .hi = NAN,
                       .limit = limit,
                       .bar = limit > 0 ? BAR_AT_MOST : BAR_NONE,
                       .in_ns = true };

    measure_median(samples, count, &row.ns, &row.ns_lo, &row.ns_hi);
    report_put(&b->report, &row);
}

static void put_memory(bench *b, const char *name, double bytes)
{
    report_put(&b->report,
               &(report_row){
                   .name = name, .ns = NAN, .bytes = bytes, .memset_ratio = NAN, .ratio = NAN, .lo = NAN, .hi = NAN });
}

static void first_results(bench *b, char *self)
{
    char *const arguments[] = { self, "--child", "first", NULL };
    double whole[REPORT_PAIRS], context[REPORT_PAIRS], first[REPORT_PAIRS], bytes[3] = { 0 };
    char text[256];

    for (unsigned i = 0; i < REPORT_PAIRS; i++) {
        whole[i] = process_run(arguments, text, sizeof text);
        if (isnan(whole[i]) ||
            sscanf(text, "%lf %lf %lf %lf %lf", &context[i], &first[i], &bytes[0], &bytes[1], &bytes[2]) != 5) {
            fprintf(stderr, "%s --child failed\n", self);
            b->broken = true;
            return;
        }
    }
    put_samples(b, "context create", context, REPORT_PAIRS, 0);
    put_samples(b, "first compile and call, loads LLVM", first, REPORT_PAIRS, 20e6);
    put_samples(b, "process start, first result, exit", whole, REPORT_PAIRS, 0);
    put_memory(b, "resident at start", bytes[0]);
    put_memory(b, "resident with a context", bytes[1]);
    put_memory(b, "resident with code generation", bytes[2]);
}

/* --- opjit run ---------------------------------------------------------------------------------------------------- */
/* The program named by $OPJIT, which the build sets. */
static void runs(bench *b)
{
    char path[] = "/tmp/opjit-bench-XXXXXX", text[4096], *const program_path = getenv("OPJIT");
    char *const arguments[] = { program_path, "run", path, "--no-cache", "--quiet", NULL };
    double samples[REPORT_PAIRS];
    bool good;

    if (program_path == NULL) {
        fprintf(stderr, "opjit run is not measured: $OPJIT does not name the program\n");
        return;
    }
    good = process_model(path);
    for (unsigned i = 0; i < REPORT_PAIRS && good; i++) {
        samples[i] = process_run(arguments, text, sizeof text);
        good = !isnan(samples[i]);
    }
    unlink(path);
    if (good)
        put_samples(b, "opjit run, 4 x 4 eye, no cache", samples, REPORT_PAIRS, 30e6);
    else
        fprintf(stderr, "%s run failed\n", program_path);
    b->broken = b->broken || !good;
}

int main(int argc, char **argv)
{
    bench b = { .broken = false };
    subject_desc d;
    opjit_error error;
    const int status = report_options(&b.report, argc, argv);

    if (status != 0)
        return status;
    if (b.report.child != NULL)
        return child();
    if (opjit_context_create(NULL, &b.context, &error) != OPJIT_OK)
        return !subject_complain("context", &error);
    report_begin(&b.report, "calls", opjit_context_target(b.context));
    first_results(&b, argv[0]);
    runs(&b);
    subject_constant(&d, f32, 4, 4, 3);
    calls(&b, "4 x 4 constant", &d);
    subject_eye(&d, f32, 4, 4, 0, 1);
    calls(&b, "4 x 4 eye", &d);
    shipped_calls(&b, "4 x 4 eye, of a library", &d);
    hits(&b);
    opjit_context_destroy(b.context);
    return report_end(&b.report) | b.broken;
}
