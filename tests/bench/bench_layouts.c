/* SPDX-License-Identifier: Apache-2.0 */
/* bench_layouts.c - the diagonal operators on layouts other than one large dense matrix: batches of small matrices,
 * narrow rows, padded rows, transposed inputs and outputs, inputs that repeat.  Against the best plain fill or copy of
 * as many bytes, or a hand-written transposition.  Odd sizes, bands and in place are in bench_generators.c. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "frontend/cli/measure/subject.h"
#include "runtime/base/base.h"
#include "tests/bench/across.h"
#include "tests/bench/hand.h"
#include "tests/bench/report.h"

#define LARGEST (UINT64_C(64) << 20)
#define SAMPLE_US 200.0

typedef enum against { FILL, COPY, COPY_ROWS, TURN, TURN_SIMPLY } against;

typedef struct layout {
    const char *name;
    DML_TENSOR_DATA_TYPE type;
    uint32_t sizes[3];
    uint32_t out_strides[3], in_strides[3]; /* all 0: packed */
    bool band; /* DIAGONAL_MATRIX1 with an input, filled from diagonal 1 up; else an identity */
    bool late; /* its diagonals are late parameters */
    against reference;
    double limit; /* 0: no bar */
} layout;

#define F16 DML_TENSOR_DATA_TYPE_FLOAT16
#define F32 DML_TENSOR_DATA_TYPE_FLOAT32
#define U8 DML_TENSOR_DATA_TYPE_UINT8
static const layout layouts[] = {
    { "eye f32 1 x 4 x 4", F32, { 1, 4, 4 }, { 0 }, { 0 }, false, false, FILL, 0 },
    { "eye f32 4096 x 4 x 4", F32, { 4096, 4, 4 }, { 0 }, { 0 }, false, false, FILL, 1.15 },
    { "eye f32 4096 x 4 x 4 late", F32, { 4096, 4, 4 }, { 0 }, { 0 }, false, true, FILL, 1.15 },
    { "eye f32 4097 x 3 x 3", F32, { 4097, 3, 3 }, { 0 }, { 0 }, false, false, FILL, 1.15 },
    { "eye f16 65536 x 3 x 3", F16, { 65536, 3, 3 }, { 0 }, { 0 }, false, false, FILL, 1.15 },
    { "eye f32 4096 x 7 x 7", F32, { 4096, 7, 7 }, { 0 }, { 0 }, false, false, FILL, 1.15 },
    { "eye f32 1024 x 16 x 16", F32, { 1024, 16, 16 }, { 0 }, { 0 }, false, false, FILL, 1.15 },
    { "eye u8 4096 x 8 x 8", U8, { 4096, 8, 8 }, { 0 }, { 0 }, false, false, FILL, 1.15 },
    { "eye f32 65536 x 4", F32, { 1, 65536, 4 }, { 0 }, { 0 }, false, false, FILL, 1.15 },
    { "eye f32 4096 x 4 x 4 padded", F32, { 4096, 4, 4 }, { 32, 4, 1 }, { 0 }, false, false, FILL, 0 },
    { "triangle f32 4096 x 4 x 4", F32, { 4096, 4, 4 }, { 0 }, { 0 }, true, false, COPY, 1.15 },
    { "triangle f16 65536 x 3 x 3", F16, { 65536, 3, 3 }, { 0 }, { 0 }, true, false, COPY, 1.15 },
    { "triangle f32 4096 x 4 x 4 repeated", F32, { 4096, 4, 4 }, { 0 }, { 0, 4, 1 }, true, false, FILL, 0 },
    { "triangle f32 1000 x 1000 padded",
      F32,
      { 1, 1000, 1000 },
      { 0, 1024, 1 },
      { 0, 1024, 1 },
      true,
      false,
      COPY_ROWS,
      1.15 },
    { "eye f32 1024 x 1024 across", F32, { 1, 1024, 1024 }, { 0, 1, 1024 }, { 0 }, false, false, FILL, 1.15 },
    { "triangle f32 1024 x 1024 both across",
      F32,
      { 1, 1024, 1024 },
      { 0, 1, 1024 },
      { 0, 1, 1024 },
      true,
      false,
      COPY,
      1.15 },
    { "triangle f32 512 x 512 input across",
      F32,
      { 1, 512, 512 },
      { 0 },
      { 0, 1, 512 },
      true,
      false,
      TURN_SIMPLY,
      1.15 },
    { "triangle f32 2048 x 2048 input across",
      F32,
      { 1, 2048, 2048 },
      { 0 },
      { 0, 1, 2048 },
      true,
      false,
      TURN_SIMPLY,
      1.15 },
    { "triangle f32 2048 x 2048 turned by hand", F32, { 1, 2048, 2048 }, { 0 }, { 0, 1, 2048 }, true, false, TURN, 0 },
    { "triangle f32 2048 x 2048 output across",
      F32,
      { 1, 2048, 2048 },
      { 0, 1, 2048 },
      { 0 },
      true,
      false,
      TURN_SIMPLY,
      1.15 },
};
static const char *const names[] = { "hand plain", "memcpy", "memcpy of rows", "hand turned", "hand tiles" };

typedef struct twin {
    const layout *layout;
    const hand *hand;
    hand_job job;
    const char *in;
    char *out;
    uint64_t bytes, row, pitch;
    bool failed;
} twin;

static void run_twin(void *arg)
{
    twin *const t = arg;

    switch (t->layout->reference) {
    case FILL: t->hand->fill(&t->job, 0, t->job.units); break;
    case COPY: memcpy(t->out, t->in, t->bytes); break;
    case COPY_ROWS:
        for (uint64_t y = 0; y < t->layout->sizes[1]; y++)
            memcpy(t->out + y * t->pitch, t->in + y * t->pitch, t->row);
        break;
    case TURN:
        t->failed = !across_turn((const float *)(const void *)t->in, (float *)(void *)t->out, t->layout->sizes[1]);
        break;
    case TURN_SIMPLY:
        across_turn_simply((const float *)(const void *)t->in, (float *)(void *)t->out, t->layout->sizes[1]);
        break;
    }
}

static bool has_strides(const uint32_t strides[3])
{
    return strides[0] != 0 || strides[1] != 0 || strides[2] != 0;
}

static uint64_t span_bytes(const layout *l, const uint32_t strides[3])
{
    const uint32_t size = opjit_rt_dtype_size(l->type);
    uint64_t last = 0;

    if (!has_strides(strides))
        return ((uint64_t)l->sizes[0] * l->sizes[1] * l->sizes[2] * size + 3) / 4 * 4;
    for (int i = 0; i < 3; i++)
        last += (uint64_t)(l->sizes[i] - 1) * strides[i];
    return ((last + 1) * size + 3) / 4 * 4;
}

/* The operator with tensors of its own, because subject_desc has two sizes. */
typedef struct layout_desc {
    subject_desc base;
    DML_BUFFER_TENSOR_DESC out, in;
    DML_TENSOR_DESC out_tensor, in_tensor;
} layout_desc;

static void describe(const layout *l, layout_desc *d)
{
    if (l->band)
        subject_band(&d->base, l->type, l->sizes[1], l->sizes[2], 1, INT32_MAX, 0);
    else
        subject_eye(&d->base, l->type, l->sizes[1], l->sizes[2], 0, 1);
    d->out = d->in = (DML_BUFFER_TENSOR_DESC){
        .DataType = l->type, .DimensionCount = 3, .Sizes = l->sizes, .GuaranteedBaseOffsetAlignment = 64
    };
    d->out.Strides = has_strides(l->out_strides) ? l->out_strides : NULL;
    d->in.Strides = has_strides(l->in_strides) ? l->in_strides : NULL;
    d->out_tensor = (DML_TENSOR_DESC){ DML_TENSOR_TYPE_BUFFER, &d->out };
    d->in_tensor = (DML_TENSOR_DESC){ DML_TENSOR_TYPE_BUFFER, &d->in };
    if (l->band) {
        d->base.fields.band.InputTensor = &d->in_tensor;
        d->base.fields.band.OutputTensor = &d->out_tensor;
    } else {
        d->base.fields.eye.OutputTensor = &d->out_tensor;
    }
}

static bool run_layout(report *r, opjit_context *context, const layout *l, const hand *h, const char *in, char *out)
{
    static const char *const late[] = { "Offset" };
    const uint32_t size = opjit_rt_dtype_size(l->type);
    const uint64_t bytes = (uint64_t)l->sizes[0] * l->sizes[1] * l->sizes[2] * size, no_offset = 0;
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    twin t = { .layout = l,
               .hand = h,
               .in = in,
               .out = out,
               .bytes = bytes,
               .row = (uint64_t)l->sizes[2] * size,
               .pitch = (uint64_t)l->out_strides[1] * size };
    measure_pair pair;
    layout_desc d;
    subject s;

    if (!report_wants(r, l->name))
        return true;
    describe(l, &d);
    options.flags = OPJIT_COMPILE_NO_CACHE;
    options.late = late;
    options.late_count = l->late;
    if (!subject_make(context, &d.base, OPJIT_LEVEL_AUTO, &options, &s))
        return false;
    subject_bind(&s, l->band ? in : NULL, out, span_bytes(l, l->out_strides), NULL);
    s.bindings[0].bytes = span_bytes(l, l->band ? l->in_strides : l->out_strides);
    s.call.params = &no_offset;
    s.call.param_count = l->late;
    t.job = (hand_job){
        .out = out, .units = (bytes + HAND_BLOCK - 1) / HAND_BLOCK, .element = size, .value = subject_bits(l->type, 3)
    };
    measure_run(subject_run, &s, run_twin, &t, r->pairs, SAMPLE_US, &pair);
    report_put(r, &(report_row){ .name = l->name,
                                 .ns = pair.a_ns,
                                 .bytes = (double)bytes,
                                 .memset_ratio = NAN,
                                 .reference = names[l->reference],
                                 .ratio = pair.ratio,
                                 .lo = pair.lo,
                                 .hi = pair.hi,
                                 .bar = l->limit != 0 ? BAR_AT_MOST : BAR_NONE,
                                 .limit = l->limit });
    const bool ok = !s.failed && !t.failed;
    subject_free(&s);
    return ok;
}

int main(int argc, char **argv)
{
    opjit_context *context;
    opjit_error error;
    report r;
    bool ok = true;
    const int status = report_options(&r, argc, argv);
    const hand *const h = hand_get();

    if (status != 0)
        return status;
    if (h == NULL) {
        fprintf(stderr, "the yardstick needs AVX2, which this machine lacks\n");
        return 77;
    }
    if (opjit_context_create(NULL, &context, &error) != OPJIT_OK)
        return !subject_complain("context", &error);
    char *const in = measure_buffer(LARGEST), *const out = measure_buffer(LARGEST);
    if (in == NULL || out == NULL) {
        fprintf(stderr, "out of memory\n");
        return 1;
    }
    report_begin(&r, "layouts", opjit_context_target(context));
    for (size_t i = 0; ok && i < sizeof layouts / sizeof *layouts; i++)
        ok = run_layout(&r, context, &layouts[i], h, in, out);
    measure_buffer_free(in, LARGEST);
    measure_buffer_free(out, LARGEST);
    opjit_context_destroy(context);
    return report_end(&r) | !ok;
}
