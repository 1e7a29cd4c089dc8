/* SPDX-License-Identifier: Apache-2.0 */
/* bench_device.c - kernels on an NVIDIA GPU: fills against the driver's memset, causal softmax against a hand-written
 * kernel, a call against a bare cuLaunchKernel.  Says why it measures nothing where there is no GPU. */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <opjit/device.h>

#include "frontend/cli/measure/subject.h"
#include "tests/bench/graphs.h"
#include "tests/bench/report.h"

enum { HEADS = 16, ROWS = 512, COLUMNS = 512, WARPS = 8, CALLS = 20, LAUNCHES = 200 };
#define SAMPLE_US 2000.0
#define MIB (UINT64_C(1) << 20)

/* Functions of the driver that opjit's interface does not cover. */
typedef struct cuda {
    int (*init)(unsigned), (*device)(int *, int), (*retain)(void **, int), (*push)(void *);
    int (*fill)(uint64_t, unsigned char, size_t, void *), (*wait)(void *);
    int (*load)(void **, const void *, unsigned, int *, void **), (*entry)(void **, void *, const char *);
    int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                  void **);
} cuda;

typedef struct bench {
    report report;
    opjit_context *context;
    cuda driver;
    void *softmax, *empty; /* kernels by hand */
    double waited;         /* ns that launches took to complete */
    bool broken;
} bench;

/* --- by hand ------------------------------------------------------------------------------------------------------ */

/* One warp per row of 512: four pieces of 128 columns, four columns per thread.  Masked elements are not read. */
#define PIECE(f, bytes, c0, c1, c2, c3)                                                                     \
    "setp.le.s32 %p, " #c0 ", %r4;\nmov.f32 %a" #f "0, %ninf;\nmov.f32 %a" #f "1, %ninf;\nmov.f32 %a" #f    \
    "2, %ninf;\nmov.f32 %a" #f "3, %ninf;\n@%p ld.global.nc.v4.f32 {%a" #f "0, %a" #f "1, %a" #f "2, %a" #f \
    "3}, [%d1+" #bytes "];\n" KEEP(f, 0, c0) KEEP(f, 1, c1) KEEP(f, 2, c2) KEEP(f, 3, c3)
#define KEEP(f, e, c) \
    "setp.le.s32 %p, " #c ", %r5;\nselp.f32 %a" #f #e ", %a" #f #e ", %ninf, %p;\nmax.f32 %m, %m, %a" #f #e ";\n"
#define EXP(f, e)                                                                                    \
    "fma.rn.f32 %a" #f #e ", %a" #f #e ", 0f3FB8AA3B, %t;\nex2.approx.ftz.f32 %a" #f #e ", %a" #f #e \
    ";\nadd.rn.f32 %s, %s, %a" #f #e ";\n"
#define EXPS(f) EXP(f, 0) EXP(f, 1) EXP(f, 2) EXP(f, 3)
#define FOLD(op, v, by) "shfl.sync.bfly.b32 %t, %" v ", " #by ", 31, -1;\n" op ".f32 %" v ", %" v ", %t;\n"
#define FOLDS(op, v) FOLD(op, v, 16) FOLD(op, v, 8) FOLD(op, v, 4) FOLD(op, v, 2) FOLD(op, v, 1)
#define SCALE(f, e) "mul.rn.f32 %a" #f #e ", %a" #f #e ", %t;\n"
#define PUT(f, bytes) \
    SCALE(f, 0)       \
    SCALE(f, 1)       \
    SCALE(f, 2) SCALE(f, 3) "st.global.v4.f32 [%d2+" #bytes "], {%a" #f "0, %a" #f "1, %a" #f "2, %a" #f "3};\n"

static const char *const by_hand[] = {
    /* one behind the other */
    ".version 7.1\n.target sm_80\n.address_size 64\n"
    ".visible .entry empty(.param .u64 a, .param .u64 b)\n{\nret;\n}\n"
    ".visible .entry softmax(.param .u64 in, .param .u64 out)\n.reqntid 256\n{\n"
    ".reg .pred %p; .reg .b32 %r<8>; .reg .b64 %d<4>; .reg .f32 %m, %s, %t, %ninf;\n"
    ".reg .f32 %a00, %a01, %a02, %a03, %a10, %a11, %a12, %a13, %a20, %a21, %a22, %a23, %a30, %a31, %a32, %a33;\n"
    "ld.param.u64 %d1, [in]; ld.param.u64 %d2, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x;\n"
    "shr.u32 %r3, %r1, 5; shl.b32 %r2, %r2, 3; add.u32 %r3, %r3, %r2; and.b32 %r1, %r1, 31;\n"
    "and.b32 %r4, %r3, 511; shl.b32 %r5, %r1, 2; mul.wide.u32 %d3, %r3, 2048; mad.wide.u32 %d3, %r5, 4, %d3;\n"
    "sub.s32 %r5, %r4, %r5; add.u64 %d1, %d1, %d3; add.u64 %d2, %d2, %d3;\n"
    "mov.f32 %ninf, 0fFF800000; mov.f32 %m, %ninf; mov.f32 %s, 0f00000000;\n" PIECE(0, 0, 0, 1, 2, 3)
        PIECE(1, 512, 128, 129, 130, 131),
    PIECE(2, 1024, 256, 257, 258, 259) PIECE(3, 1536, 384, 385, 386, 387) FOLDS("max", "m"),
    "mul.rn.f32 %t, %m, 0fBFB8AA3B;\n" EXPS(0) EXPS(1) EXPS(2) EXPS(3) FOLDS("add.rn", "s"),
    "rcp.approx.ftz.f32 %t, %s;\n" PUT(0, 0) PUT(1, 512) PUT(2, 1024) PUT(3, 1536) "ret;\n}\n",
};

/* --- the driver --------------------------------------------------------------------------------------------------- */

static bool is_good(bench *b, int status, const char *what)
{
    if (status == 0)
        return true;
    if (!b->broken)
        fprintf(stderr, "%s: %d\n", what, status);
    b->broken = true;
    return false;
}

static bool find(bench *b, void *library, const char *name, void *function, size_t size)
{
    void *const symbol = library != NULL ? dlsym(library, name) : NULL;

    memcpy(function, &symbol, size);
    return is_good(b, symbol != NULL ? 0 : -1, name);
}

/* Called after opjit has opened the device; uses the same primary context. */
static bool open_driver(bench *b)
{
    const char *path = getenv("OPJIT_CUDA_DRIVER");
    void *const library = dlopen(path != NULL && *path != '\0' ? path : "libcuda.so.1", RTLD_NOW), *context, *module;
    cuda *const c = &b->driver;
    char text[8192] = "";
    int device;
    for (size_t i = 0; i < sizeof by_hand / sizeof *by_hand; i++)
        strcat(text, by_hand[i]);
#define FIND(member, name) find(b, library, name, &c->member, sizeof c->member)
    const bool found =
        FIND(init, "cuInit") && FIND(device, "cuDeviceGet") && FIND(retain, "cuDevicePrimaryCtxRetain") &&
        FIND(push, "cuCtxPushCurrent_v2") && FIND(fill, "cuMemsetD8Async") && FIND(wait, "cuStreamSynchronize") &&
        FIND(load, "cuModuleLoadDataEx") && FIND(entry, "cuModuleGetFunction") && FIND(launch, "cuLaunchKernel");
#undef FIND
    return found && is_good(b, c->init(0), "cuInit") && is_good(b, c->device(&device, 0), "cuDeviceGet") &&
           is_good(b, c->retain(&context, device), "cuDevicePrimaryCtxRetain") &&
           is_good(b, c->push(context), "cuCtxPushCurrent") &&
           is_good(b, c->load(&module, text, 0, NULL, NULL), "cuModuleLoadDataEx") &&
           is_good(b, c->entry(&b->softmax, module, "softmax"), "softmax") &&
           is_good(b, c->entry(&b->empty, module, "empty"), "empty");
}

/* --- what is measured in turns ----------------------------------------------------------------------------------- */

typedef struct work {
    bench *b;
    subject *s;   /* opjit's, or NULL: */
    void *kernel; /* by hand, or NULL: memset */
    unsigned grid, block;
    void *in, *out;
    uint64_t bytes;
    unsigned calls;
} work;

static void put_once(const work *w)
{
    bench *const b = w->b;

    if (w->s != NULL) {
        subject_run(w->s);
        b->broken = b->broken || w->s->failed;
    } else if (w->kernel == NULL) {
        is_good(b, b->driver.fill((uintptr_t)w->out, 0x40, w->bytes, NULL), "cuMemsetD8Async");
    } else {
        uint64_t in = (uintptr_t)w->in, out = (uintptr_t)w->out;
        void *arguments[] = { &in, &out };
        is_good(b, b->driver.launch(w->kernel, w->grid, 1, 1, w->block, 1, 1, 0, NULL, arguments, NULL),
                "cuLaunchKernel");
    }
}

/* Puts several into the stream and waits. */
static void run(void *arg)
{
    const work *const w = arg;

    for (unsigned i = 0; i < w->calls; i++)
        put_once(w);
    const double begin = measure_now_ns();
    is_good(w->b, w->b->driver.wait(NULL), "cuStreamSynchronize");
    w->b->waited += measure_now_ns() - begin;
}

static double without_waiting(const void *user)
{
    const bench *const b = user;
    return measure_now_ns() - b->waited;
}

/* One call's time over the other's, by the wall clock; or of the calls alone, without waiting. */
static void compare(bench *b, const char *name, work *ours, work *theirs, const char *reference, bool calls_alone,
                    uint64_t bytes, double limit)
{
    measure_pair p;

    if (calls_alone)
        measure_run_clock(without_waiting, b, run, ours, run, theirs, b->report.pairs, SAMPLE_US, &p);
    else
        measure_run_wall(run, ours, run, theirs, b->report.pairs, SAMPLE_US, &p);
    report_put(&b->report, &(report_row){ .name = name,
                                          .ns = p.a_ns / ours->calls,
                                          .bytes = bytes != 0 ? (double)bytes : NAN,
                                          .memset_ratio = NAN,
                                          .reference = reference,
                                          .ratio = p.ratio,
                                          .lo = p.lo,
                                          .hi = p.hi,
                                          .bar = BAR_AT_MOST,
                                          .limit = limit });
}

static bool allocate(bench *b, uint64_t bytes, void **out)
{
    opjit_error error;
    if (opjit_device_allocate(b->context, bytes, out, &error) == OPJIT_OK)
        return true;
    b->broken = true;
    return subject_complain("device memory", &error);
}

/* --- cases -------------------------------------------------------------------------------------------------------- */

/* The bar is nine tenths of memset's bandwidth. */
static void fill(bench *b, const char *kind, uint64_t bytes)
{
    subject_desc d;
    subject s;
    char name[64];
    uint32_t rows, columns;
    void *out;

    snprintf(name, sizeof name, "%s f32 %u MiB", kind, (unsigned)(bytes / MIB));
    if (!report_wants(&b->report, name))
        return;
    subject_shape(bytes, 4, &rows, &columns);
    if (strcmp(kind, "constant") == 0)
        subject_constant(&d, DML_TENSOR_DATA_TYPE_FLOAT32, rows, columns, 3);
    else if (strcmp(kind, "sequence") == 0)
        subject_sequence(&d, DML_TENSOR_DATA_TYPE_FLOAT32, rows, columns, 3, 2);
    else
        subject_eye(&d, DML_TENSOR_DATA_TYPE_FLOAT32, rows, columns, 0, 1);
    if (!subject_make(b->context, &d, OPJIT_LEVEL_AUTO, NULL, &s)) {
        b->broken = true;
        return;
    }
    if (allocate(b, bytes, &out)) {
        work ours = { .b = b, .s = &s, .calls = CALLS };
        work theirs = { .b = b, .out = out, .bytes = bytes, .calls = CALLS };
        subject_bind(&s, NULL, out, bytes, NULL);
        compare(b, name, &ours, &theirs, "memset", false, bytes, 1 / 0.9);
        opjit_device_free(b->context, out);
    }
    subject_free(&s);
}

/* Whether two results agree up to the rounding of an approximate exp. */
static bool alike(bench *b, const void *ours, const void *theirs, uint64_t bytes)
{
    float *const here = malloc(2 * bytes), *const other = here + bytes / 4;
    opjit_error error;
    bool good = here != NULL && opjit_device_read(b->context, NULL, here, ours, bytes, &error) == OPJIT_OK &&
                opjit_device_read(b->context, NULL, other, theirs, bytes, &error) == OPJIT_OK;

    for (uint64_t i = 0; good && i < bytes / 4; i++)
        if (!(fabsf(here[i] - other[i]) <= 1e-5f * fabsf(here[i])) && !(here[i] < 1e-30f && other[i] < 1e-30f)) {
            fprintf(stderr, "softmax: element %llu is %g, by hand %g\n", (unsigned long long)i, (double)here[i],
                    (double)other[i]);
            good = false;
        }
    free(here);
    return good;
}

static bool bring_scores(bench *b, void *in, uint64_t bytes)
{
    float *const scores = malloc(bytes);
    opjit_error error;
    bool good = scores != NULL;

    for (uint64_t i = 0; good && i < bytes / 4; i++)
        scores[i] = (float)((int32_t)(i * 2654435761u) >> 8) * 1e-6f;
    good = good && opjit_device_write(b->context, NULL, in, scores, bytes, &error) == OPJIT_OK;
    free(scores);
    return good;
}

static void softmax(bench *b)
{
    static const uint32_t shape[3] = { HEADS, ROWS, COLUMNS };
    static const char name[] = "causal softmax 16 x 512 x 512";
    const uint64_t bytes = UINT64_C(4) * HEADS * ROWS * COLUMNS;
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    subject s = { .call = OPJIT_CALL_INIT };
    opjit_error error;
    void *in = NULL, *out = NULL, *theirs = NULL;
    graph *const g = calloc(1, sizeof *g);

    if (g == NULL || !report_wants(&b->report, name)) {
        free(g);
        return;
    }
    graph_causal_softmax(g, shape, GRAPH_MASK_IF);
    bool good = graph_make(b->context, g) && allocate(b, bytes, &in) && allocate(b, bytes, &out) &&
                allocate(b, bytes, &theirs) && bring_scores(b, in, bytes);
    if (good && opjit_compile_graph(b->context, &g->desc, &options, &s.kernel, &error) != OPJIT_OK)
        good = subject_complain("causal softmax", &error);
    if (good) {
        work ours = { .b = b, .s = &s, .calls = CALLS };
        work hand = { .b = b,
                      .kernel = b->softmax,
                      .grid = HEADS * ROWS / WARPS,
                      .block = 32 * WARPS,
                      .in = in,
                      .out = theirs,
                      .calls = CALLS };
        subject_bind(&s, in, out, bytes, NULL);
        run(&ours);
        run(&hand);
        if (!b->broken && alike(b, out, theirs, bytes))
            compare(b, name, &ours, &hand, "a kernel by hand", false, 2 * bytes, 1.0);
        else
            good = false;
    }
    b->broken = b->broken || !good;
    opjit_kernel_release(s.kernel);
    opjit_device_free(b->context, in);
    opjit_device_free(b->context, out);
    opjit_device_free(b->context, theirs);
    graph_free(g);
    free(g);
}

static void launches(bench *b)
{
    subject_desc d;
    subject s;
    void *out;

    subject_constant(&d, DML_TENSOR_DATA_TYPE_FLOAT32, 4, 4, 3);
    if (!report_wants(&b->report, "a call") || !allocate(b, 64, &out))
        return;
    if (subject_make(b->context, &d, OPJIT_LEVEL_AUTO, NULL, &s)) {
        work ours = { .b = b, .s = &s, .calls = LAUNCHES };
        work bare = { .b = b, .kernel = b->empty, .grid = 1, .block = 32, .in = out, .out = out, .calls = LAUNCHES };
        subject_bind(&s, NULL, out, 64, NULL);
        compare(b, "a call", &ours, &bare, "cuLaunchKernel", true, 0, 1.2);
        subject_free(&s);
    }
    opjit_device_free(b->context, out);
}

int main(int argc, char **argv)
{
    static const char *const kinds[] = { "constant", "sequence", "eye" };
    bench b = { .broken = false };
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
    opjit_error error;
    const int wrong = report_options(&b.report, argc, argv);

    if (wrong != 0)
        return wrong;
    options.device = "cuda:0";
    if (opjit_context_create(&options, &b.context, &error) != OPJIT_OK) {
        printf("bench_device: nothing is measured: %s\n", error.message);
        return error.status == OPJIT_UNAVAILABLE ? 0 : 1;
    }
    if (open_driver(&b)) {
        report_begin(&b.report, "device", "cuda:0");
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
            fill(&b, kinds[i], b.report.quick ? MIB : 64 * MIB);
            if (!b.report.quick)
                fill(&b, kinds[i], 1024 * MIB);
        }
        softmax(&b);
        launches(&b);
    }
    opjit_context_destroy(b.context);
    const int failed = b.broken ? 1 : 0;
    return failed | report_end(&b.report);
}
