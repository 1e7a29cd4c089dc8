/* SPDX-License-Identifier: Apache-2.0 */
/* slice.c - SLICE, SLICE1, SLICE_GRAD: a window of the input, with a stride.  SLICE gives the output's sizes, SLICE1
 * the window's; a negative stride of SLICE1 starts at the window's end.  SLICE_GRAD is the reverse: the gradient of the
 * slice at the elements it came from, 0 elsewhere. */
#include <stdio.h>

#include "frontend/ops/infer.h"
#include "frontend/ops/moves.h"

/* One dimension of the window: element i of the slice is at first + i * stride, for length elements. */
typedef struct window {
    int64_t first, stride;
    uint64_t length;
} window;

static uint64_t magnitude(int32_t stride)
{
    return stride < 0 ? (uint64_t) - (int64_t)stride : (uint64_t)stride;
}

static window window_of(uint32_t offset, uint32_t size, int32_t stride)
{
    window w = { offset, stride, 1 + (size - 1) / magnitude(stride) };

    if (stride < 0)
        w.first += (int64_t)size - 1;
    return w;
}

/* --- SLICE -------------------------------------------------------------------------------------------------------- */

#define SLICE DML_SLICE_OPERATOR_DESC

/* clang-format off */
static const op_field slice_fields[] = {
    OP_FIELD(SLICE, InputTensor, OP_INPUT, 0),
    OP_FIELD(SLICE, OutputTensor, OP_OUTPUT, 0),
    OP_FIELD(SLICE, DimensionCount, OP_UINT, OP_COUNT),
    OP_FIELD_ARRAY(SLICE, Offsets, DimensionCount, OP_UINTS, 0),
    OP_FIELD_ARRAY(SLICE, Sizes, DimensionCount, OP_UINTS, 0),
    OP_FIELD_ARRAY(SLICE, Strides, DimensionCount, OP_UINTS, 0),
};
/* clang-format on */

static const op_support slice_support[] = {
    { NULL, DML_FEATURE_LEVEL_1_0, MOVES_RANKS, OP_TYPES_ALL },
};

static opjit_status validate_slice(const opjit_operator *op, opjit_error *error)
{
    const SLICE *desc = op->desc;
    const fe_tensor *in = &op->inputs[0], *out = &op->outputs[0];

    TRY(opjit_fe_check_pair(op, 0, error));
    TRY(opjit_fe_check_count(op, "DimensionCount", desc->DimensionCount, error));
    for (uint32_t d = 0; d < in->rank; d++) {
        TRY(opjit_fe_check_entry(op, "Strides", d, desc->Strides[d], 1, UINT32_MAX, "", error));
        TRY(opjit_fe_check_entry(op, "Offsets", d, desc->Offsets[d], 0, in->sizes[d] - 1,
                                 ", the last one of InputTensor", error));
        TRY(opjit_fe_check_entry(op, "Sizes", d, desc->Sizes[d], 1,
                                 1 + (in->sizes[d] - 1 - desc->Offsets[d]) / desc->Strides[d],
                                 ", as many as InputTensor has there", error));
        TRY(opjit_fe_check_size(op, "OutputTensor", out, d, desc->Sizes[d], " as in Sizes", error));
    }
    return OPJIT_OK;
}

static void infer_slice(op_inference *s)
{
    const SLICE *desc = s->desc;
    op_shape part = s->inputs[0];

    for (uint32_t d = 0; d < part.rank && d < desc->DimensionCount; d++)
        part.sizes[d] = desc->Sizes[d];
    infer_type(&s->outputs[0], part.dtype);
    infer_shape(&s->outputs[0], &part);
}

/* Loads input 0 at first + c * stride in each dimension. */
static void lower_windows(op_lowering *l, const window *windows)
{
    ir_func *f = l->f;
    const ir_ref out = opjit_fe_output(l, 0);
    ir_ref at[OPJIT_MAX_RANK];

    if (f->failed)
        return;
    for (uint32_t d = 0; d < l->op->inputs[0].rank; d++)
        at[d] = moves_add(f, moves_mul(f, opjit_ir_coordinate(f, out, d), windows[d].stride), windows[d].first);
    opjit_ir_set_value(f, out, opjit_ir_load(f, l->inputs[0], at));
}

static void lower_slice(op_lowering *l)
{
    const SLICE *desc = l->op->desc;
    window windows[OPJIT_MAX_RANK];

    for (uint32_t d = 0; d < desc->DimensionCount; d++)
        windows[d] = (window){ desc->Offsets[d], desc->Strides[d], desc->Sizes[d] };
    lower_windows(l, windows);
}

const op_def opjit_fe_op_slice = {
    .type = DML_OPERATOR_SLICE,
    .name = "SLICE",
    .formula = "Output[c] = Input[Offsets + c * Strides]",
    .desc_size = sizeof(SLICE),
    OP_ROWS(slice_fields, slice_support),
    .introduced = DML_FEATURE_LEVEL_1_0,
    .validate = validate_slice,
    .infer = infer_slice,
    .lower = lower_slice,
};

/* --- SLICE1 ------------------------------------------------------------------------------------------------------- */

#define SLICE1 DML_SLICE1_OPERATOR_DESC

/* clang-format off */
static const op_field slice1_fields[] = {
    OP_FIELD(SLICE1, InputTensor, OP_INPUT, 0),
    OP_FIELD(SLICE1, OutputTensor, OP_OUTPUT, 0),
    OP_FIELD(SLICE1, DimensionCount, OP_UINT, OP_COUNT),
    OP_FIELD_ARRAY(SLICE1, InputWindowOffsets, DimensionCount, OP_UINTS, 0),
    OP_FIELD_ARRAY(SLICE1, InputWindowSizes, DimensionCount, OP_UINTS, 0),
    OP_FIELD_ARRAY(SLICE1, InputWindowStrides, DimensionCount, OP_INTS, 0),
};
/* clang-format on */

static const op_support slice1_support[] = {
    { NULL, DML_FEATURE_LEVEL_2_1, MOVES_RANKS, OP_TYPES_ALL },
};

/* The window of dimension d lies in `whole` and produces `part`. */
static opjit_status check_window(const opjit_operator *op, uint32_t d, const char *whole_name, const fe_tensor *whole,
                                 const char *part_name, const fe_tensor *part, opjit_error *error)
{
    const SLICE1 *desc = op->desc; /* SLICE_GRAD's has the same fields */
    const uint32_t offset = desc->InputWindowOffsets[d], size = desc->InputWindowSizes[d];
    char why[64];

    snprintf(why, sizeof why, ", the last one of %s", whole_name);
    TRY(opjit_fe_check_entry(op, "InputWindowOffsets", d, offset, 0, whole->sizes[d] - 1, why, error));
    snprintf(why, sizeof why, ", as many as %s has there", whole_name);
    TRY(opjit_fe_check_entry(op, "InputWindowSizes", d, size, 1, whole->sizes[d] - offset, why, error));
    if (desc->InputWindowStrides[d] == 0)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{%s} {InputWindowStrides[%u]}: {0}, must not be 0",
                               op->def->name, d);
    return opjit_fe_check_size(op, part_name, part, d, window_of(offset, size, desc->InputWindowStrides[d]).length,
                               ", 1 + (window size - 1) / |stride|", error);
}

static opjit_status validate_slice1(const opjit_operator *op, opjit_error *error)
{
    const SLICE1 *desc = op->desc;

    TRY(opjit_fe_check_pair(op, 0, error));
    TRY(opjit_fe_check_count(op, "DimensionCount", desc->DimensionCount, error));
    for (uint32_t d = 0; d < desc->DimensionCount; d++)
        TRY(check_window(op, d, "InputTensor", &op->inputs[0], "OutputTensor", &op->outputs[0], error));
    return OPJIT_OK;
}

static void infer_slice1(op_inference *s)
{
    const SLICE1 *desc = s->desc;
    op_shape part = s->inputs[0];

    for (uint32_t d = 0; d < part.rank && d < desc->DimensionCount; d++)
        if (desc->InputWindowSizes[d] != 0 && desc->InputWindowStrides[d] != 0)
            part.sizes[d] = window_of(0, desc->InputWindowSizes[d], desc->InputWindowStrides[d]).length;
    infer_type(&s->outputs[0], part.dtype);
    infer_shape(&s->outputs[0], &part);
}

static void lower_slice1(op_lowering *l)
{
    const SLICE1 *desc = l->op->desc;
    window windows[OPJIT_MAX_RANK];

    for (uint32_t d = 0; d < desc->DimensionCount; d++)
        windows[d] = window_of(desc->InputWindowOffsets[d], desc->InputWindowSizes[d], desc->InputWindowStrides[d]);
    lower_windows(l, windows);
}

const op_def opjit_fe_op_slice1 = {
    .type = DML_OPERATOR_SLICE1,
    .name = "SLICE1",
    .formula = "Output[c] = Input[Offset + c * Stride], from the window's end where Stride < 0",
    .desc_size = sizeof(SLICE1),
    OP_ROWS(slice1_fields, slice1_support),
    .introduced = DML_FEATURE_LEVEL_2_1,
    .validate = validate_slice1,
    .infer = infer_slice1,
    .lower = lower_slice1,
};

/* --- SLICE_GRAD --------------------------------------------------------------------------------------------------- */

#define GRAD DML_SLICE_GRAD_OPERATOR_DESC

/* clang-format off */
static const op_field slice_grad_fields[] = {
    OP_FIELD(GRAD, InputGradientTensor, OP_INPUT, 0),
    OP_FIELD(GRAD, OutputGradientTensor, OP_OUTPUT, 0),
    OP_FIELD(GRAD, DimensionCount, OP_UINT, OP_COUNT),
    OP_FIELD_ARRAY(GRAD, InputWindowOffsets, DimensionCount, OP_UINTS, 0),
    OP_FIELD_ARRAY(GRAD, InputWindowSizes, DimensionCount, OP_UINTS, 0),
    OP_FIELD_ARRAY(GRAD, InputWindowStrides, DimensionCount, OP_INTS, 0),
};
/* clang-format on */

static const op_support slice_grad_support[] = {
    { NULL, DML_FEATURE_LEVEL_3_0, MOVES_RANKS, OP_TYPES_ALL },
};

_Static_assert(offsetof(GRAD, InputWindowStrides) == offsetof(SLICE1, InputWindowStrides), "check_window reads both");

static opjit_status validate_slice_grad(const opjit_operator *op, opjit_error *error)
{
    const GRAD *desc = op->desc;

    TRY(opjit_fe_check_pair(op, 0, error));
    TRY(opjit_fe_check_count(op, "DimensionCount", desc->DimensionCount, error));
    for (uint32_t d = 0; d < desc->DimensionCount; d++)
        TRY(check_window(op, d, "OutputGradientTensor", &op->outputs[0], "InputGradientTensor", &op->inputs[0], error));
    return OPJIT_OK;
}

/* The sizes of the tensor that was sliced do not follow from the slice. */
static void infer_slice_grad(op_inference *s)
{
    infer_type(&s->outputs[0], s->inputs[0].dtype);
}

/* t = (c - first) / stride, if that is a whole number below the slice's length in every dimension. */
static void lower_slice_grad(op_lowering *l)
{
    ir_func *f = l->f;
    const GRAD *desc = l->op->desc;
    const ir_type type = opjit_fe_output_type(l, 0);
    const ir_ref out = opjit_fe_output(l, 0);
    ir_ref at[OPJIT_MAX_RANK], hit = opjit_ir_const(f, IR_BOOL, 1);

    if (f->failed)
        return;
    for (uint32_t d = 0; d < desc->DimensionCount; d++) {
        const window w = window_of(desc->InputWindowOffsets[d], desc->InputWindowSizes[d], desc->InputWindowStrides[d]);
        const int64_t step = (int64_t)magnitude(desc->InputWindowStrides[d]);
        const ir_ref c = opjit_ir_coordinate(f, out, d), first = opjit_ir_index(f, w.first);
        const ir_ref distance =
            w.stride > 0 ? ir_expr2(f, IR_ISUB, IR_INDEX, c, first) : ir_expr2(f, IR_ISUB, IR_INDEX, first, c);
        const ir_ref whole = ir_expr2(
            f, IR_EQ, IR_BOOL, ir_expr2(f, IR_IMOD, IR_INDEX, distance, opjit_ir_index(f, step)), opjit_ir_index(f, 0));
        const ir_ref in_window = opjit_fe_between(f, c, desc->InputWindowOffsets[d], desc->InputWindowSizes[d]);
        hit = ir_expr2(f, IR_AND, IR_BOOL, hit, ir_expr2(f, IR_AND, IR_BOOL, in_window, whole));
        at[d] = opjit_fe_inside(f, ir_expr2(f, IR_IDIV, IR_INDEX, distance, opjit_ir_index(f, step)), w.length);
    }
    opjit_ir_set_value(
        f, out, ir_expr3(f, IR_SELECT, type, hit, opjit_ir_load(f, l->inputs[0], at), opjit_ir_const(f, type, 0)));
}

const op_def opjit_fe_op_slice_grad = {
    .type = DML_OPERATOR_SLICE_GRAD,
    .name = "SLICE_GRAD",
    .formula = "OutputGradient[Offset + c * Stride] = InputGradient[c], else 0",
    .desc_size = sizeof(GRAD),
    OP_ROWS(slice_grad_fields, slice_grad_support),
    .introduced = DML_FEATURE_LEVEL_3_0,
    .validate = validate_slice_grad,
    .infer = infer_slice_grad,
    .lower = lower_slice_grad,
};
