/* SPDX-License-Identifier: Apache-2.0 */
/* bench_moves.c - operators that move elements and compute nothing: transposed inputs, reversed and strided windows,
 * blocks.  Against memcpy of as many bytes, and a hand-written transposition.
 * OPJIT_BENCH_TARGET=cpu:x86-64-v3: code for AVX2.  The diagonals are in bench_layouts.c. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "frontend/cli/measure/subject.h"
#include "runtime/base/base.h"
#include "tests/bench/across.h"
#include "tests/bench/report.h"

#define LARGEST (UINT64_C(160) << 20)
#define SAMPLE_US 200.0
#define RANK 4

typedef enum against { COPY, TURN } against;

typedef struct move {
    const char *name;
    DML_OPERATOR_TYPE op;
    DML_TENSOR_DATA_TYPE type;
    uint32_t sizes[RANK];                         /* of the output */
    uint32_t out_strides[RANK], in_strides[RANK]; /* all 0: packed */
    int32_t steps[RANK];                          /* SLICE1: of the window; the input is as large as that needs */
    against reference;
    double limit; /* 0: no bar */
} move;

#define F16 DML_TENSOR_DATA_TYPE_FLOAT16
#define F32 DML_TENSOR_DATA_TYPE_FLOAT32
#define F64 DML_TENSOR_DATA_TYPE_FLOAT64
#define U8 DML_TENSOR_DATA_TYPE_UINT8
#define IDENTITY DML_OPERATOR_ELEMENT_WISE_IDENTITY
#define SLICE1 DML_OPERATOR_SLICE1
#define S2D DML_OPERATOR_SPACE_TO_DEPTH1
#define D2S DML_OPERATOR_DEPTH_TO_SPACE1
#define FROM(...) { 0 }, { 0, __VA_ARGS__ }, { 0 } /* in_strides after the first */
#define ACROSS(side) FROM(0, 1, side)
#define PACKED { 0 }, { 0 }, { 0 }
#define STEPS(...)  \
    { 0 }, { 0 },   \
    {               \
        __VA_ARGS__ \
    }
static const move moves[] = {
    { "copy f32 512 x 512", IDENTITY, F32, { 1, 1, 512, 512 }, PACKED, COPY, 1.25 },
    { "across f32 128 x 128", IDENTITY, F32, { 1, 1, 128, 128 }, ACROSS(128), TURN, 1.5 },
    { "across f32 512 x 512", IDENTITY, F32, { 1, 1, 512, 512 }, ACROSS(512), TURN, 1.5 },
    { "across f32 512 x 512 by memcpy", IDENTITY, F32, { 1, 1, 512, 512 }, ACROSS(512), COPY, 0 },
    { "across f32 2048 x 2048", IDENTITY, F32, { 1, 1, 2048, 2048 }, ACROSS(2048), TURN, 1.5 },
    { "across f32 4096 x 4096", IDENTITY, F32, { 1, 1, 4096, 4096 }, ACROSS(4096), TURN, 1.5 },
    { "across f32 4096 x 4096 by memcpy", IDENTITY, F32, { 1, 1, 4096, 4096 }, ACROSS(4096), COPY, 2 },
    { "across f32 4160 x 4160 by memcpy", IDENTITY, F32, { 1, 1, 4160, 4160 }, ACROSS(4160), COPY, 2 },
    { "across f32 1001 x 1001 by memcpy", IDENTITY, F32, { 1, 1, 1001, 1001 }, ACROSS(1001), COPY, 0 },
    { "across f32 1024 of 32 x 32", IDENTITY, F32, { 1, 1024, 32, 32 }, FROM(1024, 1, 32), COPY, 0 },
    { "across f64 512 x 512", IDENTITY, F64, { 1, 1, 512, 512 }, ACROSS(512), COPY, 0 },
    { "across f16 512 x 512", IDENTITY, F16, { 1, 1, 512, 512 }, ACROSS(512), COPY, 0 },
    { "across f16 4096 x 4096", IDENTITY, F16, { 1, 1, 4096, 4096 }, ACROSS(4096), COPY, 0 },
    { "across u8 512 x 512", IDENTITY, U8, { 1, 1, 512, 512 }, ACROSS(512), COPY, 0 },
    { "across u8 4096 x 4096", IDENTITY, U8, { 1, 1, 4096, 4096 }, ACROSS(4096), COPY, 0 },
    { "channels last f32 64 x 112 x 112", IDENTITY, F32, { 1, 112, 112, 64 }, FROM(112, 1, 12544), COPY, 0 },
    { "channels last f32 3 x 224 x 224", IDENTITY, F32, { 1, 224, 224, 3 }, FROM(224, 1, 50176), COPY, 0 },
    { "channels last u8 3 x 224 x 224", IDENTITY, U8, { 1, 224, 224, 3 }, FROM(224, 1, 50176), COPY, 0 },
    { "channels last f16 2 x 224 x 224", IDENTITY, F16, { 1, 224, 224, 2 }, FROM(224, 1, 50176), COPY, 0 },
    { "channels last u8 4 x 224 x 224", IDENTITY, U8, { 1, 224, 224, 4 }, FROM(224, 1, 50176), COPY, 0 },
    { "channels first f32 3 x 224 x 224", IDENTITY, F32, { 1, 3, 224, 224 }, FROM(1, 672, 3), COPY, 0 },
    { "across f32 1000 x 1000", IDENTITY, F32, { 1, 1, 1000, 1000 }, ACROSS(1000), COPY, 0 },
    { "across f16 1000 x 1000", IDENTITY, F16, { 1, 1, 1000, 1000 }, ACROSS(1000), COPY, 0 },
    { "across u8 1000 x 1000", IDENTITY, U8, { 1, 1, 1000, 1000 }, ACROSS(1000), COPY, 0 },
    { "across f64 500 x 500", IDENTITY, F64, { 1, 1, 500, 500 }, ACROSS(500), COPY, 0 },
    { "heads f32 12 x 512 x 64", IDENTITY, F32, { 1, 12, 512, 64 }, FROM(64, 768, 1), COPY, 0 },
    { "heads f16 12 x 512 x 64", IDENTITY, F16, { 1, 12, 512, 64 }, FROM(64, 768, 1), COPY, 0 },
    { "keys f32 12 x 64 x 512", IDENTITY, F32, { 1, 12, 64, 512 }, FROM(64, 1, 768), COPY, 0 },
    { "keys f16 12 x 64 x 512", IDENTITY, F16, { 1, 12, 64, 512 }, FROM(64, 1, 768), COPY, 0 },
    { "channels last f32 256 x 14 x 14", IDENTITY, F32, { 1, 14, 14, 256 }, FROM(14, 1, 196), COPY, 0 },
    { "channels last u8 256 x 28 x 28", IDENTITY, U8, { 1, 28, 28, 256 }, FROM(28, 1, 784), COPY, 0 },
    { "channels first f32 256 x 14 x 14", IDENTITY, F32, { 1, 256, 14, 14 }, FROM(1, 3584, 256), COPY, 0 },
    { "channels first f32 64 x 56 x 56", IDENTITY, F32, { 1, 64, 56, 56 }, FROM(1, 3584, 64), COPY, 0 },
    { "channels first u8 256 x 28 x 28", IDENTITY, U8, { 1, 256, 28, 28 }, FROM(1, 7168, 256), COPY, 0 },
    { "channels first u8 3 x 224 x 224", IDENTITY, U8, { 1, 3, 224, 224 }, FROM(1, 672, 3), COPY, 0 },
    { "channels first u8 4 x 224 x 224", IDENTITY, U8, { 1, 4, 224, 224 }, FROM(1, 896, 4), COPY, 0 },
    { "channels first f32 4 x 224 x 224", IDENTITY, F32, { 1, 4, 224, 224 }, FROM(1, 896, 4), COPY, 0 },
    { "channels last f32 4 x 224 x 224", IDENTITY, F32, { 1, 224, 224, 4 }, FROM(224, 1, 50176), COPY, 0 },
    { "reversed f32 512 x 512", SLICE1, F32, { 1, 1, 512, 512 }, STEPS(1, 1, 1, -1), COPY, 0 },
    { "reversed u8 512 x 512", SLICE1, U8, { 1, 1, 512, 512 }, STEPS(1, 1, 1, -1), COPY, 0 },
    { "every 2nd f32 512 x 512", SLICE1, F32, { 1, 1, 512, 512 }, STEPS(1, 1, 1, 2), COPY, 0 },
    { "every 2nd f16 512 x 512", SLICE1, F16, { 1, 1, 512, 512 }, STEPS(1, 1, 1, 2), COPY, 0 },
    { "every 3rd f32 512 x 512", SLICE1, F32, { 1, 1, 512, 512 }, STEPS(1, 1, 1, 3), COPY, 0 },
    { "every 4th u8 512 x 512", SLICE1, U8, { 1, 1, 512, 512 }, STEPS(1, 1, 1, 4), COPY, 0 },
    { "every 2nd row f32 512 x 512", SLICE1, F32, { 1, 1, 512, 512 }, STEPS(1, 1, 2, 1), COPY, 0 },
    { "space to depth f32 16 x 256 x 256", S2D, F32, { 1, 64, 128, 128 }, PACKED, COPY, 0 },
    { "space to depth f16 16 x 256 x 256", S2D, F16, { 1, 64, 128, 128 }, PACKED, COPY, 0 },
    { "depth to space f32 64 x 128 x 128", D2S, F32, { 1, 16, 256, 256 }, PACKED, COPY, 0 },
    { "depth to space f16 64 x 128 x 128", D2S, F16, { 1, 16, 256, 256 }, PACKED, COPY, 0 },
};
static const char *const names[] = { "memcpy", "hand turned" };

typedef struct twin {
    const move *move;
    const char *in;
    char *out;
    uint64_t bytes;
    bool failed;
} twin;

static void run_twin(void *arg)
{
    twin *const t = arg;

    if (t->move->reference == COPY)
        memcpy(t->out, t->in, t->bytes);
    else
        t->failed = !across_turn((const float *)(const void *)t->in, (float *)(void *)t->out, t->move->sizes[RANK - 1]);
}

/* --- descriptors -------------------------------------------------------------------------------------------------- */

typedef struct move_desc {
    subject_desc base;
    DML_BUFFER_TENSOR_DESC in, out;
    DML_TENSOR_DESC in_tensor, out_tensor;
    uint32_t in_sizes[RANK], offsets[RANK];
    union {
        DML_ELEMENT_WISE_IDENTITY_OPERATOR_DESC identity;
        DML_SLICE1_OPERATOR_DESC slice;
        DML_SPACE_TO_DEPTH1_OPERATOR_DESC space;
        DML_DEPTH_TO_SPACE1_OPERATOR_DESC depth;
    } fields;
} move_desc;

static bool has_strides(const uint32_t strides[RANK])
{
    return (strides[0] | strides[1] | strides[2] | strides[3]) != 0;
}

static uint64_t span_bytes(const DML_BUFFER_TENSOR_DESC *t)
{
    uint64_t last = 0, all = 1;

    for (int i = 0; i < RANK; i++) {
        last += t->Strides != NULL ? (uint64_t)(t->Sizes[i] - 1) * t->Strides[i] : 0;
        all *= t->Sizes[i];
    }
    return ((t->Strides != NULL ? last + 1 : all) * opjit_rt_dtype_size(t->DataType) + 3) / 4 * 4;
}

static void set_sizes(const move *m, move_desc *d)
{
    memcpy(d->in_sizes, m->sizes, sizeof d->in_sizes);
    for (int i = 0; i < RANK && m->op == SLICE1; i++)
        d->in_sizes[i] *= (uint32_t)(m->steps[i] < 0 ? -m->steps[i] : m->steps[i]);
    if (m->op == S2D || m->op == D2S) {
        d->in_sizes[1] = m->op == S2D ? m->sizes[1] / 4 : m->sizes[1] * 4;
        for (int i = 2; i < RANK; i++)
            d->in_sizes[i] = m->op == S2D ? m->sizes[i] * 2 : m->sizes[i] / 2;
    }
}

static void describe(const move *m, move_desc *d)
{
    memset(d, 0, sizeof *d);
    set_sizes(m, d);
    d->in = d->out = (DML_BUFFER_TENSOR_DESC){
        .DataType = m->type, .DimensionCount = RANK, .Sizes = m->sizes, .GuaranteedBaseOffsetAlignment = 64
    };
    d->in.Sizes = d->in_sizes;
    d->in.Strides = has_strides(m->in_strides) ? m->in_strides : NULL;
    d->out.Strides = has_strides(m->out_strides) ? m->out_strides : NULL;
    d->in_tensor = (DML_TENSOR_DESC){ DML_TENSOR_TYPE_BUFFER, &d->in };
    d->out_tensor = (DML_TENSOR_DESC){ DML_TENSOR_TYPE_BUFFER, &d->out };
    d->base.op = (DML_OPERATOR_DESC){ m->op, &d->fields };
    switch (m->op) {
    case SLICE1:
        d->fields.slice =
            (DML_SLICE1_OPERATOR_DESC){ &d->in_tensor, &d->out_tensor, RANK, d->offsets, d->in_sizes, m->steps };
        break;
    case S2D: d->fields.space = (DML_SPACE_TO_DEPTH1_OPERATOR_DESC){ &d->in_tensor, &d->out_tensor, 2, 0 }; break;
    case D2S: d->fields.depth = (DML_DEPTH_TO_SPACE1_OPERATOR_DESC){ &d->in_tensor, &d->out_tensor, 2, 0 }; break;
    default:
        d->fields.identity = (DML_ELEMENT_WISE_IDENTITY_OPERATOR_DESC){ &d->in_tensor, &d->out_tensor, NULL };
        break;
    }
}

static bool run_move(report *r, opjit_context *context, const move *m, const char *in, char *out)
{
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    measure_pair pair;
    move_desc d;
    subject s;

    if (!report_wants(r, m->name))
        return true;
    describe(m, &d);
    options.flags = OPJIT_COMPILE_NO_CACHE;
    if (!subject_make(context, &d.base, OPJIT_LEVEL_AUTO, &options, &s))
        return false;
    subject_bind(&s, in, out, span_bytes(&d.out), NULL);
    s.bindings[0].bytes = span_bytes(&d.in);
    twin t = { .move = m, .in = in, .out = out, .bytes = span_bytes(&d.out) };
    measure_run(subject_run, &s, run_twin, &t, r->pairs, SAMPLE_US, &pair);
    report_put(r, &(report_row){ .name = m->name,
                                 .ns = pair.a_ns,
                                 .bytes = (double)t.bytes,
                                 .memset_ratio = NAN,
                                 .reference = names[m->reference],
                                 .ratio = pair.ratio,
                                 .lo = pair.lo,
                                 .hi = pair.hi,
                                 .bar = m->limit != 0 ? BAR_AT_MOST : BAR_NONE,
                                 .limit = m->limit });
    const bool ok = !s.failed && !t.failed;
    subject_free(&s);
    return ok;
}

int main(int argc, char **argv)
{
    opjit_context *context;
    report r;
    bool ok = true;
    const int status = report_open(&r, "moves", argc, argv, &context);

    if (context == NULL)
        return status;
    char *const in = measure_buffer(LARGEST), *const out = measure_buffer(LARGEST);
    if (in == NULL || out == NULL) {
        fprintf(stderr, "out of memory\n");
        return 1;
    }
    for (size_t i = 0; ok && i < sizeof moves / sizeof *moves; i++)
        ok = run_move(&r, context, &moves[i], in, out);
    measure_buffer_free(in, LARGEST);
    measure_buffer_free(out, LARGEST);
    opjit_context_destroy(context);
    return report_end(&r) | !ok;
}
