/* SPDX-License-Identifier: Apache-2.0 */
/* select.c - operators whose outputs are as long as values say: these have to be known while the model is read.
 * Compress by a known condition, NonMaxSuppression of known boxes.  NonZero is scatter.c's. */
#include <math.h>
#include <stdlib.h>

#include "frontend/onnx/ops/ops.h"

/* The places where a known condition holds, as indices of Gather. */
opjit_status opjit_onnx_compress(onnx_import *m, onnx_call *c)
{
    int64_t *holds;
    uint32_t count, axis = 0, kept = 0;
    TRY(opjit_onnx_need(m, c, 2));
    onnx_value x = *c->inputs[0];
    TRY(opjit_onnx_input_ints(m, c, 1, &holds, &count));
    if (opjit_onnx_attribute(m, c, "axis") == NULL) {
        const uint64_t flat = opjit_onnx_elements_of(&x);
        onnx_call by = *c;
        by.outputs = &(onnx_value){ .type = ONNX_UNDEFINED };
        by.output_count = 1;
        TRY(opjit_onnx_give_reshaped(m, &by, c->inputs[0], 1, &flat));
        x = by.outputs[0];
    } else {
        TRY(opjit_onnx_axis(m, c, opjit_onnx_int(m, c, "axis", 0), x.rank, &axis));
    }
    if (count > x.dims[axis])
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "%u conditions, must be at most %llu", count,
                                 (unsigned long long)x.dims[axis]);
    int64_t *const places = opjit_onnx_memory(m, count * sizeof *places);
    if (places == NULL)
        return m->error->status;
    for (uint32_t i = 0; i < count; i++)
        if (holds[i] != 0)
            places[kept++] = i;
    onnx_value at = { .type = ONNX_INT64, .rank = 1, .dims = { kept }, .data = places };
    onnx_value *inputs[2] = { &x, &at };
    onnx_call by = *c;
    by.inputs = inputs;
    by.input_count = 2;
    return opjit_onnx_gather(m, &by);
}

/* --- boxes -------------------------------------------------------------------------------------------------------- */

#define MOST_PAIRS (UINT64_C(1) << 31) /* of boxes that are compared */

typedef struct span {
    float low, high;
} span;

/* A box of which the score is good enough, and where it lies along y and x. */
typedef struct candidate {
    double score;
    uint64_t box;
    span along[2];
    float area;
} candidate;

/* What NonMaxSuppression is asked for. */
typedef struct suppression {
    uint64_t batches, classes, boxes;
    const double *at, *scores; /* {batches, boxes, 4}, {batches, classes, boxes} */
    bool centers;              /* a box is its center, width and height, else two corners, y before x */
    int64_t most;              /* of a class */
    float overlap, least;      /* boxes that overlap more are dropped, and so are scores that are not greater */
    bool has_least;
    candidate *candidates; /* of the class that is being looked at; those that were selected come first */
    int64_t *found;        /* triples */
    uint64_t count, capacity, pairs;
} suppression;

/* Where a box lies along x (1) or y (0). */
static span span_of(const suppression *s, const double *box, uint32_t d)
{
    if (s->centers) {
        const float middle = (float)box[d == 0], half = (float)box[2 + (d == 0)] / 2;
        return (span){ middle - half, middle + half };
    }
    const float a = (float)box[d], b = (float)box[2 + d];
    return a < b ? (span){ a, b } : (span){ b, a };
}

/* Whether the part of the area which both boxes cover that they have in common is greater than the threshold. */
static bool overlap_too_much(const suppression *s, const candidate *a, const candidate *b)
{
    float common = 1;
    for (uint32_t d = 0; d < 2; d++) {
        const span p = a->along[d], q = b->along[d];
        const float low = p.low > q.low ? p.low : q.low, high = p.high < q.high ? p.high : q.high;
        if (!(high > low))
            return false;
        common *= high - low;
    }
    const float all = a->area + b->area - common;
    return common > 0 && a->area > 0 && b->area > 0 && all > 0 && common / all > s->overlap;
}

static opjit_status append(onnx_import *m, suppression *s, uint64_t batch, uint64_t class, uint64_t box)
{
    if (s->count == s->capacity) {
        const uint64_t capacity = s->capacity == 0 ? 64 : 2 * s->capacity;
        int64_t *const found = opjit_onnx_memory(m, 3 * capacity * sizeof *found);
        if (found == NULL)
            return m->error->status;
        if (s->count != 0)
            memcpy(found, s->found, (size_t)(3 * s->count) * sizeof *found);
        s->found = found;
        s->capacity = capacity;
    }
    int64_t *const to = s->found + 3 * s->count++;
    to[0] = (int64_t)batch;
    to[1] = (int64_t)class;
    to[2] = (int64_t)box;
    return OPJIT_OK;
}

/* The greatest score first, of equal ones the first box. */
static int by_score(const void *left, const void *right)
{
    const candidate *const a = left, *const b = right;
    if (a->score != b->score)
        return a->score > b->score ? -1 : 1;
    return a->box < b->box ? -1 : 1;
}

/* Boxes of a class: each is selected, unless it overlaps one that was. */
static opjit_status select_boxes(onnx_import *m, const onnx_call *c, suppression *s, uint64_t batch, uint64_t class)
{
    const double *const at = s->at + batch * s->boxes * 4, *const scores =
        s->scores + (batch * s->classes + class) * s->boxes;
    candidate *const all = s->candidates;
    uint64_t count = 0, selected = 0;
    for (uint64_t i = 0; i < s->boxes; i++)
        if (!isnan(scores[i]) && (!s->has_least || (float)scores[i] > s->least)) {
            candidate *const to = &all[count++];
            *to = (candidate){ .score = scores[i], .box = i, .area = 1 };
            for (uint32_t d = 0; d < 2; d++) {
                to->along[d] = span_of(s, at + 4 * i, d);
                to->area *= to->along[d].high - to->along[d].low;
            }
        }
    qsort(all, (size_t)count, sizeof *all, by_score);
    for (uint64_t i = 0; i < count && (int64_t)selected < s->most; i++) {
        uint64_t k = 0;
        while (k < selected && !overlap_too_much(s, &all[k], &all[i]))
            k++;
        if ((s->pairs += k) > MOST_PAIRS)
            return opjit_onnx_refuse(m, c, OPJIT_LIMIT, "more than %llu pairs of boxes",
                                     (unsigned long long)MOST_PAIRS);
        if (k < selected)
            continue;
        all[selected++] = all[i];
        TRY(append(m, s, batch, class, all[i].box));
    }
    return OPJIT_OK;
}

/* A number that a float input is; *out stays where it is absent. */
static opjit_status read_number(onnx_import *m, const onnx_call *c, uint32_t i, float *out)
{
    double *numbers;
    uint32_t count;
    TRY(opjit_onnx_input_floats(m, c, i, &numbers, &count));
    if (onnx_input(c, i) == NULL)
        return OPJIT_OK;
    if (count != 1)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "input %u has %u elements, must be 1", i, count);
    *out = (float)numbers[0];
    return OPJIT_OK;
}

static opjit_status read_boxes(onnx_import *m, const onnx_call *c, suppression *s)
{
    double *at, *scores;
    uint32_t count;
    const int64_t centers = opjit_onnx_int(m, c, "center_point_box", 0);
    TRY(opjit_onnx_need(m, c, 2));
    const onnx_value *const boxes = c->inputs[0], *const of = c->inputs[1];
    if (boxes->rank != 3 || of->rank != 3 || boxes->dims[2] != 4 || of->dims[0] != boxes->dims[0] ||
        of->dims[2] != boxes->dims[1])
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT,
                                 "boxes are {batches, boxes, 4}, and scores {batches, classes, boxes}");
    if (centers != 0 && centers != 1)
        return opjit_onnx_refuse(m, c, OPJIT_INVALID_ARGUMENT, "attribute center_point_box: %lld, must be 0 or 1",
                                 (long long)centers);
    TRY(opjit_onnx_input_floats(m, c, 0, &at, &count));
    TRY(opjit_onnx_input_floats(m, c, 1, &scores, &count));
    TRY(opjit_onnx_input_int(m, c, 2, &s->most));
    TRY(read_number(m, c, 3, &s->overlap));
    TRY(read_number(m, c, 4, &s->least));
    s->has_least = onnx_input(c, 4) != NULL;
    s->centers = centers == 1;
    s->batches = boxes->dims[0];
    s->boxes = boxes->dims[1];
    s->classes = of->dims[1];
    s->at = at;
    s->scores = scores;
    s->candidates = ARENA_ARRAY(m->arena, candidate, (size_t)s->boxes + 1);
    return s->candidates != NULL ? OPJIT_OK : opjit_rt_no_memory(m->error);
}

opjit_status opjit_onnx_non_max_suppression(onnx_import *m, onnx_call *c)
{
    suppression s = { 0 };
    TRY(read_boxes(m, c, &s));
    if (opjit_onnx_elements_of(c->inputs[1]) != 0)
        for (uint64_t batch = 0; batch < s.batches; batch++)
            for (uint64_t class = 0; class < s.classes; class++)
                TRY(select_boxes(m, c, &s, batch, class));
    const uint64_t dims[2] = { s.count, 3 };
    return opjit_onnx_give_data(m, c, 0, ONNX_INT64, 2, dims, s.count != 0 ? s.found : opjit_onnx_memory(m, 0));
}
