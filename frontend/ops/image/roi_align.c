/* SPDX-License-Identifier: Apache-2.0 */
/* roi_align.c - ROI_ALIGN and ROI_ALIGN1 (DML_ROI_ALIGN1_OPERATOR_DESC): regions of an image, brought to one size.  A
 * region from x1 to x2, times SpatialScaleX, has n = clamp(ceil((x2 - x1) / width), MinimumSamplesPerOutput,
 * MaximumSamplesPerOutput) samples in each of the width output elements; sample s of all n * width lies at
 *     x = (s - OutputPixelOffset) * step + x1 - InputPixelOffset,  step = (x2 - x1) / (n * width)
 * of the image, and the same in y; each operation is rounded to FLOAT32 (FLOAT64 for FLOAT64).  An output element is
 * the mean or the maximum of its samples, taken column by column, downwards.  ROI_ALIGN has the offsets 0.5 and -0.5.
 *
 * Where the document is silent, or its formula a slip:
 * - The step in y is that of y (the document divides the width once more), n samples are n (not n + 1), and a maximum
 *   begins with the first of them (not with 0).
 * - A sample at -1 to the size, both included, in both axes is read, moved into the image; any other one is
 *   OutOfBoundsInputValue.  This is ONNX's rule.  A NaN is outside.
 * - NEAREST_NEIGHBOR takes the element at ceil(x - 0.5), halves down, as ROI_ALIGN_GRAD's example has it; LINEAR is
 *   a (1 - t) + b t along a row, then of two rows.
 * - AlignRegionsToCorners: step = (x2 - x1) / max(n * width - 1, 1).
 * - There is at least one sample, and n is at most 2 * size of the image / width, rounded up, unless
 *   MinimumSamplesPerOutput is more: a region of more than twice the image has samples that are farther apart.  So data
 *   can't make a call take any time.
 * - Batch indices that are none are the last one. */
#include "frontend/ops/image/roi_align.h"

#include "frontend/ops/image/resample.h"
#include "frontend/ops/infer.h"
#include "frontend/ops/moves.h"
#include "frontend/ops/pointwise.h"
#include "frontend/ops/reduce.h"

enum { IMAGE, REGIONS, BATCHES };

static opjit_status validate(const opjit_operator *op, opjit_error *error)
{
    TRY(opjit_fe_same_type(op, IMAGE, 0, error));
    TRY(opjit_fe_roi_check(op, op->output_names[0], &op->inputs[IMAGE], &op->outputs[0], REGIONS, error));
    return opjit_fe_same_type(op, REGIONS, 0, error);
}

static void infer(op_inference *s)
{
    infer_type(&s->outputs[0], s->inputs[IMAGE].dtype);
}

/* All samples of an output element, reduced. */
static ir_ref reduce(const roi *r, const op_element *e, bool max, float outside)
{
    const roi_samples s = opjit_fe_roi_reduce(r, max ? IR_KMAX : IR_SUM, r->real, &r->l->op->outputs[0]);

    if (!r->l->f->failed)
        opjit_fe_set(r->l, s.def,
                     choose(e, opjit_fe_roi_both_inside(r, s.x, s.y),
                            opjit_fe_roi_sample(r, e, s.at[0], s.at[1], s.x, s.y), opjit_fe_number(e, outside)));
    return s.def;
}

static void lower(op_lowering *l)
{
    const opjit_operator *op = l->op;
    ir_func *f = l->f;
    roi r = opjit_fe_roi_of(l, &op->inputs[IMAGE], &op->outputs[0]);
    const op_element e = { .f = f, .desc = op->desc, .type = r.real, .result = opjit_fe_output_type(l, 0) };
    int32_t reduction;
    float outside;
    ir_ref at[4];

    memcpy(&reduction, opjit_fe_field(op->def, op->desc, "ReductionFunction"), sizeof reduction);
    memcpy(&outside, opjit_fe_field(op->def, op->desc, "OutOfBoundsInputValue"), sizeof outside);
    opjit_fe_roi_begin(&r);
    const bool max = reduction == DML_REDUCE_FUNCTION_MAX;
    const ir_ref def = reduce(&r, &e, max, outside), out = opjit_fe_output(l, 0);
    if (f->failed)
        return;
    for (uint32_t d = 0; d < 4; d++)
        at[d] = opjit_ir_coordinate(f, out, d);
    const ir_ref all = opjit_ir_load(f, ir_at(f, def)->ref, at);
    opjit_fe_set(l, out, max ? all : op2(&e, IR_DIV, all, ir_expr1(f, IR_CAST, r.real, opjit_fe_roi_count(&r, at[0]))));
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

/* clang-format off */
#define FIELDS(T)                                                     \
    OP_FIELD(T, InputTensor, OP_INPUT, 0),                            \
    OP_FIELD(T, ROITensor, OP_INPUT, 0),                              \
    OP_FIELD(T, BatchIndicesTensor, OP_INPUT, 0),                     \
    OP_FIELD(T, OutputTensor, OP_OUTPUT, 0),                          \
    OP_FIELD_ENUM(T, ReductionFunction, &opjit_fe_roi_reductions),    \
    OP_FIELD_ENUM(T, InterpolationMode, &opjit_fe_interpolation_modes), \
    OP_FIELD(T, SpatialScaleX, OP_FLOAT, 0),                          \
    OP_FIELD(T, SpatialScaleY, OP_FLOAT, 0)
#define SAMPLES(T)                                                    \
    OP_FIELD(T, OutOfBoundsInputValue, OP_FLOAT, 0),                  \
    OP_FIELD(T, MinimumSamplesPerOutput, OP_UINT, 0),                 \
    OP_FIELD(T, MaximumSamplesPerOutput, OP_UINT, 0)
static const op_field fields[] = { FIELDS(DML_ROI_ALIGN_OPERATOR_DESC), SAMPLES(DML_ROI_ALIGN_OPERATOR_DESC) };
static const op_field fields1[] = {
    FIELDS(DML_ROI_ALIGN1_OPERATOR_DESC),
    OP_FIELD(DML_ROI_ALIGN1_OPERATOR_DESC, InputPixelOffset, OP_FLOAT, 0),
    OP_FIELD(DML_ROI_ALIGN1_OPERATOR_DESC, OutputPixelOffset, OP_FLOAT, 0),
    SAMPLES(DML_ROI_ALIGN1_OPERATOR_DESC),
    OP_FIELD(DML_ROI_ALIGN1_OPERATOR_DESC, AlignRegionsToCorners, OP_BOOL, 0),
};

#define SUPPORT(LEVEL)                                                                            \
    { NULL, 0, 4, 4, OP_TYPES_FLOAT | OP_TYPES(FLOAT64) },                                        \
    { NULL, DML_FEATURE_LEVEL_##LEVEL, 4, 4, OP_TYPES_FLOAT },                                    \
    { "ROITensor", 0, 2, 4, OP_TYPES_FLOAT | OP_TYPES(FLOAT64) },                                 \
    { "ROITensor", DML_FEATURE_LEVEL_##LEVEL, 2, 4, OP_TYPES_FLOAT },                             \
    { "BatchIndicesTensor", DML_FEATURE_LEVEL_##LEVEL, 1, 4, OP_TYPES(UINT32) },                  \
    { "BatchIndicesTensor", DML_FEATURE_LEVEL_5_0, 1, 4, OP_TYPES(UINT32) | OP_TYPES(UINT64) }
static const op_support support[] = { SUPPORT(3_0) };
static const op_support support1[] = { SUPPORT(4_0) };
/* clang-format on */

const op_def opjit_fe_op_roi_align = {
    .type = DML_OPERATOR_ROI_ALIGN,
    .name = "ROI_ALIGN",
    .formula = "mean or maximum of samples of each region, spread evenly, of the nearest element or between four",
    .desc_size = sizeof(DML_ROI_ALIGN_OPERATOR_DESC),
    OP_ROWS(fields, support),
    .introduced = DML_FEATURE_LEVEL_3_0,
    .validate = validate,
    .infer = infer,
    .lower = lower,
};

const op_def opjit_fe_op_roi_align1 = {
    .type = DML_OPERATOR_ROI_ALIGN1,
    .name = "ROI_ALIGN1",
    .formula = "ROI_ALIGN, at (s - OutputPixelOffset) * step + x1 - InputPixelOffset, or stretched to the corners",
    .desc_size = sizeof(DML_ROI_ALIGN1_OPERATOR_DESC),
    OP_ROWS(fields1, support1),
    .introduced = DML_FEATURE_LEVEL_4_0,
    .validate = validate,
    .infer = infer,
    .lower = lower,
};
