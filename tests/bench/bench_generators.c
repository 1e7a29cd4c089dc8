/* SPDX-License-Identifier: Apache-2.0 */
/* bench_generators.c - run time of the generators: operator x type x size x alignment x threads, each against the best
 * plain fill or the yardstick of hand.h in interleaved pairs.  If the yardstick computes the same, results are compared
 * first: a fast wrong yardstick measures nothing. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "frontend/cli/measure/subject.h"
#include "runtime/base/base.h"
#include "tests/bench/hand.h"
#include "tests/bench/pool.h"
#include "tests/bench/report.h"

#define MIB (UINT64_C(1) << 20)
#define LARGEST (64 * MIB)
#define SAMPLE_US 200.0
#define PAIRS_TO_CHOOSE 9

static const uint64_t all_sizes[] = { 16384, MIB, 8 * MIB, LARGEST };

typedef struct bench {
    report report;
    opjit_context *context;
    const hand *hand;
    hand_library library;
    bool has_library, broken;
    pool *pool;
    char *in, *out; /* LARGEST and a page each */
} bench;

/* --- references --------------------------------------------------------------------------------------------------- */
typedef enum twin_kind { TWIN_NONE, TWIN_EYE, TWIN_BAND, TWIN_SEQUENCE, TWIN_FILL } twin_kind; /* in hand_library */

/* One way to do the work; a measure_fn's argument. */
typedef struct way {
    const char *name;
    const bench *bench;
    hand_fn fn; /* NULL: memset, or the library's twin */
    hand_job job;
    twin_kind twin;
    int mode; /* the library's */
    const opjit_executor *executor;
} way;
#define WAYS_MAX 6

static void run_piece(void *arg, uint32_t worker, uint64_t begin, uint64_t end)
{
    const way *const w = arg;

    (void)worker;
    w->fn(&w->job, begin, end);
}

static void run_twin(const way *w)
{
    const hand_library *const l = &w->bench->library;
    const hand_job *const j = &w->job;
    const int threads = w->executor != NULL ? 2 : 1;
    const long rows = (long)j->units, columns = (long)j->columns, bytes = (long)(j->units * HAND_BLOCK);
    float value;

    switch (w->twin) {
    case TWIN_EYE:
        if (j->element == 1)
            l->eye_u8(j->out, 1, rows, columns, (long)j->begin, w->mode, threads);
        else
            l->eye_f32(j->out, 1, rows, columns, (long)j->begin, w->mode, threads);
        break;
    case TWIN_BAND:
        memcpy(&value, &j->value, sizeof value);
        l->diag1_f32(j->in, j->out, 1, rows, columns, (long)j->begin, (long)j->end, value, w->mode, threads);
        break;
    case TWIN_SEQUENCE:
        if (j->element == 1)
            l->arange_u8(j->out, bytes, j->start, j->delta, w->mode, threads);
        else if (j->element == 4)
            l->arange_f32(j->out, bytes / 4, j->start, j->delta, w->mode, threads);
        else
            l->arange_i64(j->out, bytes / 8, j->start, j->delta, w->mode, threads);
        break;
    case TWIN_FILL: l->fill_u32(j->out, bytes, (unsigned)j->value, w->mode, threads); break;
    case TWIN_NONE: break;
    }
}

static void run_way(void *arg)
{
    way *const w = arg;

    if (w->twin != TWIN_NONE)
        run_twin(w);
    else if (w->fn == NULL) /* lines of zeros are faster than others, so none where the job's aren't zero */
        memset(w->job.out, w->job.value != 0 ? 0x5a : 0, w->job.units * HAND_BLOCK);
    else if (w->executor != NULL)
        (void)w->executor->run(w->executor->user, w->job.units, 1, run_piece, w);
    else
        w->fn(&w->job, 0, w->job.units);
}

/* The ways of doing the job by fn: both kinds of stores, and the library's modes where it has a counterpart. */
static uint32_t make_ways(const bench *b, hand_fn fn, const hand_job *job, twin_kind twin,
                          const opjit_executor *executor, way *ways)
{
    static const char *const names[] = { "hand plain", "hand nt" };
    static const char *const library_names[] = { "library plain", "library nt", "library clzero" };
    uint32_t count = 0;

    for (int mode = HAND_PLAIN; mode < HAND_MODES; mode++) {
        ways[count] = (way){ names[mode], b, fn, *job, TWIN_NONE, 0, executor };
        ways[count++].job.mode = (hand_mode)mode;
    }
    const bool has_twin = b->has_library && twin != TWIN_NONE;
    const int modes = !has_twin ? 0 : b->library.has_clzero() ? HAND_LIBRARY_MODES : HAND_LIBRARY_MODES - 1;
    for (int mode = 0; mode < modes; mode++)
        ways[count++] = (way){ library_names[mode], b, NULL, *job, twin, mode, executor };
    return count;
}

/* The shortest of a few samples, which is enough to choose among ways. */
static double time_of(measure_fn fn, void *arg)
{
    double best = INFINITY;

    fn(arg);
    for (int i = 0; i < 7; i++) {
        const double start = measure_cpu_ns();
        double now;
        unsigned calls = 0;

        do {
            fn(arg);
            calls++;
            now = measure_cpu_ns();
        } while (now - start < 5e4);
        if ((now - start) / calls < best)
            best = (now - start) / calls;
    }
    return best;
}

/* The fastest way when run alone. */
static way *fastest(way *ways, uint32_t count)
{
    double best = INFINITY;
    way *found = ways;

    for (uint32_t i = 0; i < count; i++) {
        const double t = time_of(run_way, &ways[i]);

        if (t < best) {
            best = t;
            found = &ways[i];
        }
    }
    return found;
}

/* --- one case ----------------------------------------------------------------------------------------------------- */
typedef struct example {
    const char *name;
    subject_desc *desc;
    bool aligned; /* tells the kernel what the yardstick assumes: everything begins at a line */
    const void *in;
    char *out;
    uint64_t bytes; /* of a binding */
    uint64_t moved; /* bytes written plus bytes read */
    hand_fn fn;     /* the reference */
    hand_job job;
    twin_kind twin;
    bool with_memset; /* memset counts as a way, too */
    bool same;        /* the reference computes what the kernel does */
    report_bar bar;
    double limit;
    hand_fn whole_fn; /* all of the job by hand, where fn does less: the machine's limit; NULL: none */
} example;

/* Compares the kernel's result with the first way's. */
static bool same_result(const example *e, subject *s, way *w)
{
    rt_hash ours, theirs;

    subject_run(s);
    ours = opjit_rt_hash(e->out, e->bytes);
    memset(e->out, 0x5a, e->bytes);
    run_way(w);
    theirs = opjit_rt_hash(e->out, e->bytes);
    if (ours.lo == theirs.lo && ours.hi == theirs.hi)
        return true;
    fprintf(stderr, "%s: kernel and yardstick differ\n", e->name);
    return false;
}

/* The fastest way in turns with the kernel: what a way leaves in the caches costs the other one, and a way that is fast
 * alone may do what the kernel has just made useless, as non-temporal stores to lines that it wrote. */
static const way *fastest_beside(subject *s, way *ways, uint32_t count)
{
    double best = INFINITY;
    const way *found = ways;
    measure_pair pair;

    for (uint32_t i = 0; i < count; i++) {
        measure_run(subject_run, s, run_way, &ways[i], PAIRS_TO_CHOOSE, SAMPLE_US, &pair);
        if (pair.b_ns < best) {
            best = pair.b_ns;
            found = &ways[i];
        }
    }
    return found;
}

/* The time of all of the work by hand, divided by the reference's. */
static double whole_ratio(const bench *b, const example *e, const way *reference)
{
    way ways[WAYS_MAX];
    way *const whole = fastest(ways, make_ways(b, e->whole_fn, &e->job, TWIN_NONE, NULL, ways));
    measure_pair pair;

    measure_run(run_way, whole, run_way, (void *)(uintptr_t)reference, b->report.pairs, SAMPLE_US, &pair);
    return pair.ratio;
}

static void run_example(bench *b, const example *e)
{
    char note[48] = "";
    way ways[WAYS_MAX], over = { "memset", b, NULL, e->job, TWIN_NONE, 0, NULL };
    uint32_t count = make_ways(b, e->fn, &e->job, e->twin, NULL, ways);
    const way *best;
    measure_pair pair, against_memset;
    subject s;

    if (!report_wants(&b->report, e->name) || b->broken)
        return;
    if (e->aligned)
        e->desc->buffer.GuaranteedBaseOffsetAlignment = 64;
    if (!subject_make(b->context, e->desc, OPJIT_LEVEL_AUTO, NULL, &s)) {
        b->broken = true;
        return;
    }
    subject_bind(&s, e->in, e->out, e->bytes, NULL);
    if (e->same && !same_result(e, &s, &ways[0]))
        b->broken = true;
    over.job.units = e->bytes / HAND_BLOCK;
    over.job.out = e->out;
    if (e->with_memset)
        ways[count++] = over;
    best = fastest_beside(&s, ways, count);
    measure_run(subject_run, &s, run_way, (void *)(uintptr_t)best, b->report.pairs, SAMPLE_US, &pair);
    measure_run(subject_run, &s, run_way, &over, 9, SAMPLE_US, &against_memset);
    if (e->whole_fn != NULL && pair.lo > e->limit) {
        const double whole = whole_ratio(b, e, best);

        if (whole > e->limit && pair.lo <= 1.05 * whole)
            snprintf(note, sizeof note, "machine: %.2f by hand", whole);
    }
    report_put(&b->report, &(report_row){ .name = e->name,
                                          .ns = pair.a_ns,
                                          .bytes = (double)e->moved,
                                          .memset_ratio = against_memset.ratio,
                                          .reference = best->name,
                                          .ratio = pair.ratio,
                                          .lo = pair.lo,
                                          .hi = pair.hi,
                                          .bar = e->bar,
                                          .limit = e->limit,
                                          .note = note[0] != 0 ? note : NULL });
    b->broken = b->broken || s.failed;
    subject_free(&s);
}

/* --- shapes and names --------------------------------------------------------------------------------------------- */
static const char *size_text(uint64_t bytes, char text[static 24])
{
    snprintf(text, 24, bytes >= MIB ? "%" PRIu64 " MiB" : "%" PRIu64 " KiB", bytes >= MIB ? bytes / MIB : bytes / 1024);
    return text;
}

static hand_job fill_job(const bench *b, uint64_t bytes, DML_TENSOR_DATA_TYPE type, double value)
{
    return (hand_job){ .out = b->out,
                       .units = bytes / HAND_BLOCK,
                       .element = opjit_rt_dtype_size(type),
                       .value = subject_bits(type, value) };
}

static hand_job matrix_job(const bench *b, uint32_t rows, uint32_t columns, DML_TENSOR_DATA_TYPE type, double value,
                           int64_t begin, int64_t end)
{
    return (hand_job){ .in = b->in,
                       .out = b->out,
                       .units = rows,
                       .matrix_rows = rows,
                       .columns = columns,
                       .element = opjit_rt_dtype_size(type),
                       .value = subject_bits(type, value),
                       .begin = begin,
                       .end = end };
}

/* --- constants and sequences: the best plain fill ----------------------------------------------------------------- */
static void constants(bench *b, DML_TENSOR_DATA_TYPE type, uint64_t bytes, double value)
{
    char name[64], size[24];
    uint32_t rows, columns;
    subject_desc d;

    snprintf(name, sizeof name, "constant%s %s %s", value == 0 ? " zero" : "", opjit_rt_dtype_short(type),
             size_text(bytes, size));
    subject_shape(bytes, opjit_rt_dtype_size(type), &rows, &columns);
    subject_constant(&d, type, rows, columns, value);
    run_example(b, &(example){ .name = name,
                               .desc = &d,
                               .aligned = true,
                               .out = b->out,
                               .bytes = bytes,
                               .moved = bytes,
                               .fn = b->hand->fill,
                               .job = fill_job(b, bytes, type, value),
                               .twin = TWIN_FILL,
                               .with_memset = true,
                               .bar = BAR_AT_MOST,
                               .limit = 1.05 });
}

/* The hand-written sequence of that type; NULL: there is none. */
static hand_fn hand_sequence(const hand *h, DML_TENSOR_DATA_TYPE type)
{
    switch (type) {
    case DML_TENSOR_DATA_TYPE_FLOAT32: return h->sequence_f32;
    case DML_TENSOR_DATA_TYPE_FLOAT16: return h->sequence_f16;
    case DML_TENSOR_DATA_TYPE_UINT8: return h->sequence_u8;
    case DML_TENSOR_DATA_TYPE_INT64: return h->sequence_i64;
    default: return NULL;
    }
}

static void sequences(bench *b, DML_TENSOR_DATA_TYPE type, uint64_t bytes)
{
    char name[64], size[24];
    const uint32_t element = opjit_rt_dtype_size(type);
    uint32_t rows, columns;
    subject_desc d;
    example e = { .name = name,
                  .desc = &d,
                  .aligned = true,
                  .out = b->out,
                  .bytes = bytes,
                  .moved = bytes,
                  .fn = b->hand->fill,
                  .job = fill_job(b, bytes, type, 3),
                  .twin = TWIN_FILL,
                  .with_memset = true,
                  .bar = BAR_AT_MOST,
                  .limit = 1.05 };

    snprintf(name, sizeof name, "sequence %s %s", opjit_rt_dtype_short(type), size_text(bytes, size));
    subject_shape(bytes, element, &rows, &columns);
    subject_sequence(&d, type, rows, columns, 3, 2);
    e.whole_fn = hand_sequence(b->hand, type);
    e.job.start = 3, e.job.delta = 2;
    run_example(b, &e);
    if (e.whole_fn == NULL)
        return;
    snprintf(name, sizeof name, "sequence %s %s by hand", opjit_rt_dtype_short(type), size);
    e.twin = element == 2 ? TWIN_NONE : TWIN_SEQUENCE;
    e.fn = e.whole_fn;
    e.whole_fn = NULL;
    e.with_memset = false;
    e.same = true;
    e.bar = BAR_NONE;
    run_example(b, &e);
}

/* --- diagonals: the yardstick ------------------------------------------------------------------------------------- */
static void eyes(bench *b, DML_TENSOR_DATA_TYPE type, uint64_t bytes)
{
    char name[64], size[24];
    const uint32_t element = opjit_rt_dtype_size(type);
    uint32_t rows, columns;
    subject_desc d;

    snprintf(name, sizeof name, "eye %s %s", opjit_rt_dtype_short(type), size_text(bytes, size));
    subject_shape(bytes, element, &rows, &columns);
    subject_eye(&d, type, rows, columns, 1, 1);
    run_example(b, &(example){ .name = name,
                               .desc = &d,
                               .aligned = true,
                               .out = b->out,
                               .bytes = bytes,
                               .moved = bytes,
                               .fn = b->hand->eye,
                               .job = matrix_job(b, rows, columns, type, 1, 1, 0),
                               .twin = type == DML_TENSOR_DATA_TYPE_FLOAT32 || type == DML_TENSOR_DATA_TYPE_UINT8
                                           ? TWIN_EYE
                                           : TWIN_NONE,
                               .same = true,
                               .bar = BAR_AT_MOST,
                               .limit = 1.05 });
}

typedef struct band {
    const char *name;
    int32_t begin, end;
    double value;
} band;

/* The bands of a matrix with that many columns. */
static void make_bands(uint32_t columns, band bands[static 3])
{
    bands[0] = (band){ "triangle", 1, INT32_MAX, 0 };
    bands[1] = (band){ "narrow band", -2, 3, 5 };
    bands[2] = (band){ "wide band", -(int32_t)(columns / 4), (int32_t)(columns / 4), 5 };
}

/* Elements inside the band. */
static uint64_t band_elements(const band *w, uint32_t rows, uint32_t columns)
{
    uint64_t sum = 0;

    for (int64_t y = 0; y < rows; y++) {
        const int64_t x0 = y + w->begin < 0 ? 0 : y + w->begin, x1 = y + w->end > columns ? columns : y + w->end;

        sum += x0 < x1 ? (uint64_t)(x1 - x0) : 0;
    }
    return sum;
}

static void run_bands(bench *b, DML_TENSOR_DATA_TYPE type, uint64_t bytes, bool in_place)
{
    const uint32_t element = opjit_rt_dtype_size(type);
    uint32_t rows, columns;
    band bands[3];

    subject_shape(bytes, element, &rows, &columns);
    make_bands(columns, bands);
    for (int i = 0; i < 3; i++) {
        const band *const w = &bands[i];
        const uint64_t inside = band_elements(w, rows, columns) * element;
        char name[64], size[24];
        subject_desc d;
        example e = { .name = name,
                      .desc = &d,
                      .aligned = true,
                      .in = in_place ? b->out : b->in,
                      .out = b->out,
                      .bytes = bytes,
                      .moved = in_place ? inside : bytes + bytes - inside,
                      .fn = in_place ? b->hand->band_in_place : b->hand->band,
                      .job = matrix_job(b, rows, columns, type, w->value, w->begin, w->end),
                      .twin = type == DML_TENSOR_DATA_TYPE_FLOAT32 && !in_place ? TWIN_BAND : TWIN_NONE,
                      .same = !in_place,
                      .bar = BAR_AT_MOST,
                      .limit = 1.05 };

        snprintf(name, sizeof name, "%s %s %s%s", w->name, opjit_rt_dtype_short(type), size_text(bytes, size),
                 in_place ? " in place" : "");
        subject_band(&d, type, rows, columns, w->begin, w->end, w->value);
        run_example(b, &e);
    }
}

/* --- unaligned bindings and odd shapes: the yardstick of the even shape ------------------------------------------- */
static void odd(bench *b, uint32_t side, uint32_t rows, uint32_t columns, uint32_t offset, const char *what)
{
    const DML_TENSOR_DATA_TYPE type = DML_TENSOR_DATA_TYPE_FLOAT32;
    const uint64_t bytes = (uint64_t)rows * columns * 4;
    const hand_job fill = fill_job(b, (uint64_t)side * side * 4, type, 3);
    subject_desc d;
    char name[64];
    example e = { .name = name,
                  .desc = &d,
                  .out = b->out + offset,
                  .bytes = bytes,
                  .moved = bytes,
                  .bar = BAR_AT_MOST,
                  .limit = 1.15 };

    snprintf(name, sizeof name, "constant f32 %s", what);
    subject_constant(&d, type, rows, columns, 3);
    e.fn = b->hand->fill;
    e.job = fill;
    run_example(b, &e);
    snprintf(name, sizeof name, "sequence f32 %s", what);
    subject_sequence(&d, type, rows, columns, 3, 2);
    run_example(b, &e);
    snprintf(name, sizeof name, "eye f32 %s", what);
    subject_eye(&d, type, rows, columns, 1, 1);
    e.fn = b->hand->eye;
    e.job = matrix_job(b, side, side, type, 1, 1, 0);
    run_example(b, &e);
    snprintf(name, sizeof name, "triangle f32 %s", what);
    subject_band(&d, type, rows, columns, 1, INT32_MAX, 0);
    e.in = b->in + offset;
    e.moved = bytes + bytes / 2;
    e.fn = b->hand->band;
    e.job = matrix_job(b, side, side, type, 0, 1, INT32_MAX);
    run_example(b, &e);
}

static void odds(bench *b)
{
    odd(b, 512, 511, 513, 0, "511 x 513");
    odd(b, 512, 512, 512, 4, "512 x 512 at 4 bytes");
    if (b->report.quick)
        return;
    odd(b, 4096, 4095, 4097, 0, "4095 x 4097");
    odd(b, 4096, 4096, 4096, 4, "4096 x 4096 at 4 bytes");
    odd(b, 4096, 4096, 4096, 0, "4096 x 4096 undeclared"); /* aligned, but the descriptor does not say so */
}

/* --- two threads -------------------------------------------------------------------------------------------------- */
/* One thread's time over two threads', in pairs; the row's verdict counts only where the plain fill gains as much. */
static double put_gain(bench *b, const char *name, measure_fn fn, void *one, void *two, uint64_t moved,
                       double fill_gain)
{
    measure_pair pair;
    report_row row = {
        .name = name, .bytes = (double)moved, .memset_ratio = NAN, .reference = "one thread", .limit = 1.6
    };

    measure_run_wall(fn, one, fn, two, b->report.pairs, SAMPLE_US, &pair);
    row.ns = pair.b_ns;
    row.ratio = pair.ratio;
    row.lo = pair.lo;
    row.hi = pair.hi;
    row.bar = isnan(fill_gain) ? BAR_NONE : BAR_AT_LEAST;
    row.note = !isnan(fill_gain) && fill_gain < 1.6 && pair.ratio < 1.6 ? "no bar: the fill gains less too" : NULL;
    if (report_wants(&b->report, name))
        report_put(&b->report, &row);
    return pair.ratio;
}

/* The gain of a second thread for the best fill with the value. */
static double fill_gain(bench *b, const char *name, double value)
{
    const hand_job job = fill_job(b, LARGEST, DML_TENSOR_DATA_TYPE_FLOAT32, value);
    way ones[WAYS_MAX], twos[WAYS_MAX];
    way *const one = fastest(ones, make_ways(b, b->hand->fill, &job, TWIN_NONE, NULL, ones));
    way *const two = fastest(twos, make_ways(b, b->hand->fill, &job, TWIN_NONE, pool_executor(b->pool), twos));

    return put_gain(b, name, run_way, one, two, LARGEST, NAN);
}

static void kernel_gain(bench *b, const char *name, subject_desc *d, const void *in, uint64_t moved, double fill_gain)
{
    subject one, two;

    d->buffer.GuaranteedBaseOffsetAlignment = 64;
    if (b->broken || !report_wants(&b->report, name) || !subject_make(b->context, d, OPJIT_LEVEL_AUTO, NULL, &one))
        return;
    two = one;
    subject_bind(&one, in, b->out, LARGEST, NULL);
    subject_bind(&two, in, b->out, LARGEST, pool_executor(b->pool));
    put_gain(b, name, subject_run, &one, &two, moved, fill_gain);
    b->broken = one.failed || two.failed;
    subject_free(&one);
}

static void threads(bench *b)
{
    const DML_TENSOR_DATA_TYPE type = DML_TENSOR_DATA_TYPE_FLOAT32;
    subject_desc d;
    double gain, zero_gain;

    if (b->broken || (b->report.only != NULL && strstr("two threads", b->report.only) == NULL))
        return;
    b->pool = pool_start();
    if (b->pool == NULL)
        return;
    gain = fill_gain(b, "fill 64 MiB two threads", 3);
    zero_gain = fill_gain(b, "fill of zeros 64 MiB two threads", 0);
    subject_constant(&d, type, 4096, 4096, 3);
    kernel_gain(b, "constant f32 64 MiB two threads", &d, NULL, LARGEST, gain);
    subject_sequence(&d, type, 4096, 4096, 3, 2);
    kernel_gain(b, "sequence f32 64 MiB two threads", &d, NULL, LARGEST, gain);
    subject_eye(&d, type, 4096, 4096, 1, 1);
    kernel_gain(b, "eye f32 64 MiB two threads", &d, NULL, LARGEST, zero_gain);
    subject_band(&d, type, 4096, 4096, 1, INT32_MAX, 0);
    kernel_gain(b, "triangle f32 64 MiB two threads", &d, b->in, LARGEST + LARGEST / 2, gain);
    pool_stop(b->pool);
}

/* --- everything --------------------------------------------------------------------------------------------------- */
static void run_all(bench *b)
{
    const uint32_t sizes = b->report.quick ? 2 : 4, types = b->report.quick ? 2 : SUBJECT_TYPES;

    for (uint32_t t = 0; t < types; t++) {
        for (uint32_t i = 0; i < sizes; i++) {
            constants(b, subject_types[t], all_sizes[i], 3);
            sequences(b, subject_types[t], all_sizes[i]);
            eyes(b, subject_types[t], all_sizes[i]);
        }
    }
    for (uint32_t i = 0; i < sizes; i++) {
        constants(b, DML_TENSOR_DATA_TYPE_FLOAT32, all_sizes[i], 0);
        run_bands(b, DML_TENSOR_DATA_TYPE_FLOAT32, all_sizes[i], false);
        run_bands(b, DML_TENSOR_DATA_TYPE_UINT8, all_sizes[i], false);
        run_bands(b, DML_TENSOR_DATA_TYPE_FLOAT32, all_sizes[i], true);
    }
    odds(b);
    if (!b->report.quick)
        threads(b);
}

int main(int argc, char **argv)
{
    bench b = { .hand = hand_get() };
    char reason[256];
    opjit_error error;
    const int status = report_options(&b.report, argc, argv);

    if (status != 0)
        return status;
    if (b.hand == NULL) {
        fprintf(stderr, "the yardstick needs AVX2, which this machine lacks\n");
        return 77;
    }
    if (b.report.yardstick != NULL) {
        b.has_library = hand_library_load(b.report.yardstick, &b.library, reason, sizeof reason);
        if (!b.has_library)
            fprintf(stderr, "%s is not used: %s\n", b.report.yardstick, reason);
    }
    if (opjit_context_create(NULL, &b.context, &error) != OPJIT_OK)
        return !subject_complain("context", &error);
    b.in = measure_buffer(LARGEST + 4096);
    b.out = measure_buffer(LARGEST + 4096);
    if (b.in == NULL || b.out == NULL) {
        fprintf(stderr, "out of memory\n");
        return 1;
    }
    report_begin(&b.report, "generators", opjit_context_target(b.context));
    run_all(&b);
    measure_buffer_free(b.in, LARGEST + 4096);
    measure_buffer_free(b.out, LARGEST + 4096);
    opjit_context_destroy(b.context);
    return report_end(&b.report) | b.broken;
}
