/* SPDX-License-Identifier: Apache-2.0 */
/* convolution_integer.c - CONVOLUTION_INTEGER and QUANTIZED_LINEAR_CONVOLUTION: forward convolutions of integers less
 * their zero points.  Sums are in INT32, modulo 2^32.
 *
 * What the documents leave open, as ONNX has it: padding is the input's zero point, so that its products are 0; Bias is
 * added to the sum in INT32.  The sum is rounded once to FLOAT32 and multiplied with the rounded product of both
 * scales. */
#include "frontend/ops/contract/convolve.h"
#include "frontend/ops/infer.h"
#include "frontend/ops/moves.h"
#include "frontend/ops/quantize/quantize.h"
#include "frontend/ops/reduce.h"

#define INTEGER DML_CONVOLUTION_INTEGER_OPERATOR_DESC
#define QUANTIZED DML_QUANTIZED_LINEAR_CONVOLUTION_OPERATOR_DESC

/* Positions. */
enum { INPUT, INPUT_ZERO, FILTER, FILTER_ZERO };
enum { Q_INPUT, Q_INPUT_SCALE, Q_INPUT_ZERO, Q_FILTER, Q_FILTER_SCALE, Q_FILTER_ZERO, Q_BIAS, Q_SCALE, Q_ZERO };

/* clang-format off */
static const op_field integer_fields[] = {
    OP_FIELD(INTEGER, InputTensor, OP_INPUT, 0),
    OP_FIELD(INTEGER, InputZeroPointTensor, OP_INPUT, OP_OPTIONAL),
    OP_FIELD(INTEGER, FilterTensor, OP_INPUT, 0),
    OP_FIELD(INTEGER, FilterZeroPointTensor, OP_INPUT, OP_OPTIONAL),
    OP_FIELD(INTEGER, OutputTensor, OP_OUTPUT, 0),
    OP_FIELD(INTEGER, DimensionCount, OP_UINT, OP_COUNT),
    OP_FIELD_ARRAY(INTEGER, Strides, DimensionCount, OP_UINTS, 0),
    OP_FIELD_ARRAY(INTEGER, Dilations, DimensionCount, OP_UINTS, 0),
    OP_FIELD_ARRAY(INTEGER, StartPadding, DimensionCount, OP_UINTS, 0),
    OP_FIELD_ARRAY(INTEGER, EndPadding, DimensionCount, OP_UINTS, 0),
    OP_FIELD(INTEGER, GroupCount, OP_UINT, 0),
};
static const op_field quantized_fields[] = {
    OP_FIELD(QUANTIZED, InputTensor, OP_INPUT, 0),
    OP_FIELD(QUANTIZED, InputScaleTensor, OP_INPUT, 0),
    OP_FIELD(QUANTIZED, InputZeroPointTensor, OP_INPUT, OP_OPTIONAL),
    OP_FIELD(QUANTIZED, FilterTensor, OP_INPUT, 0),
    OP_FIELD(QUANTIZED, FilterScaleTensor, OP_INPUT, 0),
    OP_FIELD(QUANTIZED, FilterZeroPointTensor, OP_INPUT, OP_OPTIONAL),
    OP_FIELD(QUANTIZED, BiasTensor, OP_INPUT, OP_OPTIONAL),
    OP_FIELD(QUANTIZED, OutputScaleTensor, OP_INPUT, 0),
    OP_FIELD(QUANTIZED, OutputZeroPointTensor, OP_INPUT, OP_OPTIONAL),
    OP_FIELD(QUANTIZED, OutputTensor, OP_OUTPUT, 0),
    OP_FIELD(QUANTIZED, DimensionCount, OP_UINT, OP_COUNT),
    OP_FIELD_ARRAY(QUANTIZED, Strides, DimensionCount, OP_UINTS, 0),
    OP_FIELD_ARRAY(QUANTIZED, Dilations, DimensionCount, OP_UINTS, 0),
    OP_FIELD_ARRAY(QUANTIZED, StartPadding, DimensionCount, OP_UINTS, 0),
    OP_FIELD_ARRAY(QUANTIZED, EndPadding, DimensionCount, OP_UINTS, 0),
    OP_FIELD(QUANTIZED, GroupCount, OP_UINT, 0),
};

#define TYPES_8 (OP_TYPES(INT8) | OP_TYPES(UINT8))
#define PLANES(field, types) { field, 0, 3, 5, types }, { field, DML_FEATURE_LEVEL_2_1, 4, 4, types }
#define LINES(field, types) PLANES(field, types), { field, DML_FEATURE_LEVEL_4_0, 3, 4, types }
#define ZERO_POINT(field)                               \
    { field, 0, 1, OPJIT_MAX_RANK, TYPES_8 },           \
    { field, DML_FEATURE_LEVEL_2_1, 4, 4, TYPES_8 },    \
    { field, DML_FEATURE_LEVEL_4_0, 1, 4, TYPES_8 }
static const op_support integer_support[] = {
    LINES(NULL, TYPES_8),
    ZERO_POINT("InputZeroPointTensor"),
    ZERO_POINT("FilterZeroPointTensor"),
    LINES("OutputTensor", OP_TYPES(INT32)),
};
static const op_support quantized_support[] = {
    PLANES(NULL, TYPES_8),
    PLANES("InputScaleTensor", OP_TYPES(FLOAT32)),
    PLANES("FilterScaleTensor", OP_TYPES(FLOAT32)),
    PLANES("BiasTensor", OP_TYPES(INT32)),
    PLANES("OutputScaleTensor", OP_TYPES(FLOAT32)),
};
/* clang-format on */

/* --- validation and inference ------------------------------------------------------------------------------------- */

/* A zero point of any rank: one element, or one for each channel in the second dimension, or in the only one. */
static opjit_status check_zero(const opjit_operator *op, uint32_t i, uint64_t channels, opjit_error *error)
{
    const fe_tensor *t = &op->inputs[i];

    for (uint32_t d = 0; t->present && d < t->rank; d++) {
        const bool own = d == (t->rank > 1 ? 1 : 0);
        if (t->sizes[d] != 1)
            TRY(opjit_fe_check_size(op, op->input_names[i], t, d, own ? channels : 1,
                                    own && channels != 1 ? ", the output's channels, or 1" : "", error));
    }
    return OPJIT_OK;
}

static opjit_status validate_integer(const opjit_operator *op, opjit_error *error)
{
    const fe_convolution c = FE_CONVOLUTION_OF_INTEGERS((const INTEGER *)op->desc);

    TRY(opjit_fe_check_convolution(op, &c, FILTER, error));
    TRY(opjit_fe_same_input_type(op, INPUT_ZERO, INPUT, error));
    TRY(opjit_fe_same_input_type(op, FILTER_ZERO, FILTER, error));
    TRY(check_zero(op, INPUT_ZERO, 1, error));
    return check_zero(op, FILTER_ZERO, op->outputs[0].sizes[1], error);
}

static opjit_status validate_quantized(const opjit_operator *op, opjit_error *error)
{
    const fe_convolution c = FE_CONVOLUTION_OF_INTEGERS((const QUANTIZED *)op->desc);
    const uint64_t channels = op->outputs[0].sizes[1];

    TRY(opjit_fe_check_convolution(op, &c, Q_FILTER, error));
    TRY(opjit_fe_same_input_type(op, Q_INPUT_ZERO, Q_INPUT, error));
    TRY(opjit_fe_same_input_type(op, Q_FILTER_ZERO, Q_FILTER, error));
    if (op->inputs[Q_ZERO].present)
        TRY(opjit_fe_same_type(op, Q_ZERO, 0, error));
    TRY(opjit_fe_check_channels(op, Q_INPUT_SCALE, 1, false, error));
    TRY(opjit_fe_check_channels(op, Q_INPUT_ZERO, 1, false, error));
    TRY(opjit_fe_check_channels(op, Q_FILTER_SCALE, channels, true, error));
    TRY(opjit_fe_check_channels(op, Q_FILTER_ZERO, channels, true, error));
    TRY(opjit_fe_check_channels(op, Q_BIAS, channels, false, error));
    TRY(opjit_fe_check_channels(op, Q_SCALE, 1, false, error));
    return opjit_fe_check_channels(op, Q_ZERO, 1, false, error);
}

static void infer_integer(op_inference *s)
{
    const fe_convolution c = FE_CONVOLUTION_OF_INTEGERS((const INTEGER *)s->desc);

    infer_type(&s->outputs[0], DML_TENSOR_DATA_TYPE_INT32);
    opjit_fe_infer_convolution(s, &c, FILTER);
}

static void infer_quantized(op_inference *s)
{
    const fe_convolution c = FE_CONVOLUTION_OF_INTEGERS((const QUANTIZED *)s->desc);

    infer_type(&s->outputs[0], s->inputs[s->inputs[Q_ZERO].rank != 0 ? Q_ZERO : Q_INPUT].dtype);
    opjit_fe_infer_convolution(s, &c, Q_FILTER);
}

/* --- formulas ----------------------------------------------------------------------------------------------------- */

/* The input's one element, or that of the channel; 0: absent. */
static ir_ref load_channel(op_lowering *l, uint32_t input, ir_ref channel)
{
    ir_ref at[OPJIT_MAX_RANK] = { 0 };

    if (!l->op->inputs[input].present || l->f->failed)
        return 0;
    for (uint32_t d = 0; d < l->op->inputs[input].rank; d++)
        at[d] = l->op->inputs[input].sizes[d] == 1 ? opjit_ir_index(l->f, 0) : channel;
    return opjit_ir_load(l->f, l->inputs[input], at);
}

/* The sums, in a tensor of the output's sizes. */
static ir_ref lower_sums(op_lowering *l, const fe_convolution *c, uint32_t input_zero, uint32_t filter,
                         uint32_t filter_zero)
{
    ir_func *f = l->f;
    const ir_ref sums =
        opjit_fe_reduce_to(l, IR_DOT, IR_I32, &l->op->outputs[0], opjit_fe_convolution_steps(l, c, filter));
    ir_ref at[OPJIT_MAX_RANK];
    fe_tap tap;

    opjit_fe_own(l, sums, at);
    if (f->failed)
        return 0;
    opjit_fe_convolution_tap(l, c, filter, at, opjit_ir_reduced(f, sums), &tap);
    if (f->failed)
        return 0;
    const ir_ref x =
        opjit_fe_difference(f, opjit_ir_load(f, l->inputs[0], tap.input), load_channel(l, input_zero, at[1]));
    const ir_ref w =
        opjit_fe_difference(f, opjit_ir_load(f, l->inputs[filter], tap.filter), load_channel(l, filter_zero, at[1]));
    const ir_ref padded = ir_expr3(f, IR_SELECT, IR_I32, tap.inside, x, opjit_ir_const(f, IR_I32, 0));
    opjit_fe_set(l, sums, ir_expr2(f, IR_PAIR, IR_I32, padded, w));
    return sums;
}

static void lower_integer(op_lowering *l)
{
    const fe_convolution c = FE_CONVOLUTION_OF_INTEGERS((const INTEGER *)l->op->desc);
    const ir_ref sums = lower_sums(l, &c, INPUT_ZERO, FILTER, FILTER_ZERO), out = opjit_fe_output(l, 0);
    ir_ref at[OPJIT_MAX_RANK];

    opjit_fe_own(l, out, at);
    opjit_fe_set(l, out, opjit_fe_value_at(l, sums, 0, at));
}

static void lower_quantized(op_lowering *l)
{
    const fe_convolution c = FE_CONVOLUTION_OF_INTEGERS((const QUANTIZED *)l->op->desc);
    const op_element e = { .f = l->f, .type = IR_F32, .result = opjit_fe_output_type(l, 0), .masks = l->masks };
    const ir_ref sums = lower_sums(l, &c, Q_INPUT_ZERO, Q_FILTER, Q_FILTER_ZERO), out = opjit_fe_output(l, 0);
    ir_ref at[OPJIT_MAX_RANK];

    opjit_fe_own(l, out, at);
    ir_ref sum = opjit_fe_value_at(l, sums, 0, at);
    if (l->op->inputs[Q_BIAS].present)
        sum = ir_expr2(l->f, IR_ADD, IR_I32, sum, load_channel(l, Q_BIAS, at[1]));
    opjit_fe_set(l, out,
                 opjit_fe_requantize(&e, sum, load_channel(l, Q_INPUT_SCALE, at[1]),
                                     load_channel(l, Q_FILTER_SCALE, at[1]), load_channel(l, Q_SCALE, at[1]),
                                     load_channel(l, Q_ZERO, at[1])));
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

const op_def opjit_fe_op_convolution_integer = {
    .type = DML_OPERATOR_CONVOLUTION_INTEGER,
    .name = "CONVOLUTION_INTEGER",
    .formula = "sum of (Input - InputZeroPoint) * (Filter - FilterZeroPoint) over channels and window, in INT32",
    .desc_size = sizeof(INTEGER),
    OP_ROWS(integer_fields, integer_support),
    .introduced = DML_FEATURE_LEVEL_2_1,
    .validate = validate_integer,
    .infer = infer_integer,
    .lower = lower_integer,
};

const op_def opjit_fe_op_quantized_linear_convolution = {
    .type = DML_OPERATOR_QUANTIZED_LINEAR_CONVOLUTION,
    .name = "QUANTIZED_LINEAR_CONVOLUTION",
    .formula =
        "(the sum of CONVOLUTION_INTEGER + Bias) * (InputScale * FilterScale / OutputScale), rounded, + "
        "OutputZeroPoint",
    .desc_size = sizeof(QUANTIZED),
    OP_ROWS(quantized_fields, quantized_support),
    .introduced = DML_FEATURE_LEVEL_2_1,
    .validate = validate_quantized,
    .infer = infer_quantized,
    .lower = lower_quantized,
};
