/* SPDX-License-Identifier: Apache-2.0 */
/* bench_random.c - random numbers (Philox 4x32-10), at both levels, against the same algorithm in C, a block of four
 * numbers at a time.  Results are compared bit for bit before anything is timed. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "frontend/cli/measure/subject.h"
#include "tests/bench/report.h"

#define LARGEST (UINT64_C(4) << 20) /* bytes */
#define SAMPLE_US 1000.0

typedef struct draw {
    const char *name;
    uint32_t sizes[4];
} draw;

static const draw draws[] = {
    { "random u32 1024 x 1024", { 1, 1, 1024, 1024 } },
    { "random u32 64 x 64", { 1, 1, 64, 64 } },
    { "random u32 1 x 1000000", { 1, 1, 1, 1000000 } },
    { "random u32 999 x 1001", { 1, 1, 999, 1001 } },
};

static const _Alignas(64) uint32_t state[] = { 0xfffffff0, 7, 3, 0, 0x12345678, 0x9abcdef0 };

/* --- by hand ------------------------------------------------------------------------------------------------------ */

typedef struct twin {
    uint64_t count;
    uint32_t *out;
} twin;

static void run_twin(void *arg)
{
    const twin *const t = arg;
    uint64_t low = state[0] | (uint64_t)state[1] << 32, high = state[2] | (uint64_t)state[3] << 32;
    for (uint64_t e = 0; e < t->count; e += 4) {
        uint32_t k0 = state[4], k1 = state[5];
        uint32_t w[4] = { (uint32_t)low, (uint32_t)(low >> 32), (uint32_t)high, (uint32_t)(high >> 32) };
        for (int r = 0; r < 10; r++, k0 += 0x9e3779b9u, k1 += 0xbb67ae85u) {
            const uint64_t p = (uint64_t)w[0] * 0xd2511f53u, q = (uint64_t)w[2] * 0xcd9e8d57u;
            w[0] = (uint32_t)(q >> 32) ^ w[1] ^ k0;
            w[1] = (uint32_t)q;
            w[2] = (uint32_t)(p >> 32) ^ w[3] ^ k1;
            w[3] = (uint32_t)p;
        }
        memcpy(t->out + e, w, t->count - e < 4 ? (t->count - e) * sizeof *w : sizeof w);
        high += ++low == 0;
    }
}

/* --- a case ------------------------------------------------------------------------------------------------------- */

typedef struct draw_desc {
    subject_desc base;
    DML_BUFFER_TENSOR_DESC buffers[2];
    DML_TENSOR_DESC tensors[2];
    DML_RANDOM_GENERATOR_OPERATOR_DESC fields;
} draw_desc;

static uint64_t describe(const draw *c, draw_desc *d)
{
    static const uint32_t state_sizes[] = { 1, 1, 1, 6 };
    const uint64_t bytes = (uint64_t)c->sizes[2] * c->sizes[3] * sizeof(uint32_t);
    *d = (draw_desc){ 0 };
    for (int i = 0; i < 2; i++) {
        d->buffers[i] = (DML_BUFFER_TENSOR_DESC){ .DataType = DML_TENSOR_DATA_TYPE_UINT32,
                                                  .DimensionCount = 4,
                                                  .Sizes = i == 0 ? state_sizes : c->sizes,
                                                  .TotalTensorSizeInBytes = i == 0 ? sizeof state : bytes,
                                                  .GuaranteedBaseOffsetAlignment = 64 };
        d->tensors[i] = (DML_TENSOR_DESC){ DML_TENSOR_TYPE_BUFFER, &d->buffers[i] };
    }
    d->fields = (DML_RANDOM_GENERATOR_OPERATOR_DESC){ &d->tensors[0], &d->tensors[1], NULL,
                                                      DML_RANDOM_GENERATOR_TYPE_PHILOX_4X32_10 };
    d->base.op = (DML_OPERATOR_DESC){ DML_OPERATOR_RANDOM_GENERATOR, &d->fields };
    return bytes;
}

static bool run_draw(report *r, opjit_context *context, const draw *c, opjit_level level, void *out, void *by_hand)
{
    measure_pair pair;
    draw_desc d;
    subject s;
    char name[64];

    snprintf(name, sizeof name, "%s, %s", c->name, level == OPJIT_LEVEL_PEAK ? "peak" : "quick");
    if (!report_wants(r, name))
        return true;
    const uint64_t bytes = describe(c, &d);
    twin t = { bytes / sizeof(uint32_t), by_hand };
    if (!subject_make(context, &d.base, level, NULL, &s))
        return false;
    subject_bind(&s, state, out, bytes, NULL);
    subject_run(&s);
    run_twin(&t);
    const bool equal = memcmp(out, by_hand, bytes) == 0;
    if (!equal)
        fprintf(stderr, "%s: the kernel and the loop by hand differ\n", name);
    measure_run(subject_run, &s, run_twin, &t, r->pairs, SAMPLE_US, &pair);
    report_put(r, &(report_row){ .name = name,
                                 .ns = pair.a_ns,
                                 .bytes = (double)bytes,
                                 .memset_ratio = NAN,
                                 .reference = "plain C",
                                 .ratio = pair.ratio,
                                 .lo = pair.lo,
                                 .hi = pair.hi,
                                 .bar = BAR_AT_MOST,
                                 .limit = 1 });
    const bool ok = equal && !s.failed;
    subject_free(&s);
    return ok;
}

int main(int argc, char **argv)
{
    static const opjit_level levels[] = { OPJIT_LEVEL_QUICK, OPJIT_LEVEL_PEAK };
    opjit_context *context;
    report r;
    bool ok = true;
    const int status = report_open(&r, "random numbers", argc, argv, &context);

    if (status != 0)
        return status;
    char *const out = measure_buffer(LARGEST), *const by_hand = measure_buffer(LARGEST);
    if (out == NULL || by_hand == NULL) {
        fprintf(stderr, "out of memory\n");
        return 1;
    }
    for (size_t i = 0; i < sizeof draws / sizeof *draws; i++)
        for (size_t l = 0; ok && l < 2; l++)
            ok = run_draw(&r, context, &draws[i], levels[l], out, by_hand);
    measure_buffer_free(out, LARGEST);
    measure_buffer_free(by_hand, LARGEST);
    opjit_context_destroy(context);
    return report_end(&r) | !ok;
}
