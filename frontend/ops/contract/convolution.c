/* SPDX-License-Identifier: Apache-2.0 */
/* convolution.c - CONVOLUTION: an element is one dot over a group's channels and the taps of its window, in the order
 * of convolve.h, a bias and an activation behind.  FLOAT16 is computed in FLOAT32.
 *
 * What the documents leave open: padding of the input is zeros that are multiplied, so that 0 * inf is a NaN; taps of
 * BACKWARD that hit no element of the input are not part of the sum.
 *
 * OutputPadding makes the output larger at the end.  FORWARD, what it adds is "a zero padding to the result of the
 * convolution", in front of the activation.  BACKWARD, an element there is computed like any other, as ONNX's
 * output_padding of ConvTranspose has it, which that is used for. */
#include "frontend/ops/contract/convolve.h"
#include "frontend/ops/infer.h"
#include "frontend/ops/pointwise.h"
#include "frontend/ops/reduce.h"

#define DESC DML_CONVOLUTION_OPERATOR_DESC

enum { INPUT, FILTER, BIAS }; /* positions */

/* clang-format off */
static const op_enum_name mode_names[] = {
    { "DML_CONVOLUTION_MODE_CONVOLUTION", DML_CONVOLUTION_MODE_CONVOLUTION },
    { "DML_CONVOLUTION_MODE_CROSS_CORRELATION", DML_CONVOLUTION_MODE_CROSS_CORRELATION },
    { NULL, 0 },
};
static const op_enum mode_enum = { "DML_CONVOLUTION_MODE_", mode_names };
static const op_enum_name direction_names[] = {
    { "DML_CONVOLUTION_DIRECTION_FORWARD", DML_CONVOLUTION_DIRECTION_FORWARD },
    { "DML_CONVOLUTION_DIRECTION_BACKWARD", DML_CONVOLUTION_DIRECTION_BACKWARD },
    { NULL, 0 },
};
static const op_enum direction_enum = { "DML_CONVOLUTION_DIRECTION_", direction_names };

static const op_field fields[] = {
    OP_FIELD(DESC, InputTensor, OP_INPUT, 0),
    OP_FIELD(DESC, FilterTensor, OP_INPUT, 0),
    OP_FIELD(DESC, BiasTensor, OP_INPUT, OP_OPTIONAL),
    OP_FIELD(DESC, OutputTensor, OP_OUTPUT, 0),
    OP_FIELD_ENUM(DESC, Mode, &mode_enum),
    OP_FIELD_ENUM(DESC, Direction, &direction_enum),
    OP_FIELD(DESC, DimensionCount, OP_UINT, OP_COUNT),
    OP_FIELD_ARRAY(DESC, Strides, DimensionCount, OP_UINTS, 0),
    OP_FIELD_ARRAY(DESC, Dilations, DimensionCount, OP_UINTS, 0),
    OP_FIELD_ARRAY(DESC, StartPadding, DimensionCount, OP_UINTS, 0),
    OP_FIELD_ARRAY(DESC, EndPadding, DimensionCount, OP_UINTS, 0),
    OP_FIELD_ARRAY(DESC, OutputPadding, DimensionCount, OP_UINTS, 0),
    OP_FIELD(DESC, GroupCount, OP_UINT, 0),
    OP_FIELD(DESC, FusedActivation, OP_ACTIVATION, OP_OPTIONAL),
};
/* clang-format on */

static const op_support support[] = {
    { NULL, 0, 3, 5, OP_TYPES_FLOAT | OP_TYPES(FLOAT64) },
    { NULL, DML_FEATURE_LEVEL_1_0, 4, 5, OP_TYPES_FLOAT },
    { NULL, DML_FEATURE_LEVEL_4_0, 3, 5, OP_TYPES_FLOAT },
};

static fe_convolution convolution_of(const DESC *d)
{
    return (fe_convolution){ d->Mode,      d->Direction,    d->DimensionCount, d->GroupCount,   d->Strides,
                             d->Dilations, d->StartPadding, d->EndPadding,     d->OutputPadding };
}

static opjit_status validate(const opjit_operator *op, opjit_error *error)
{
    const fe_convolution c = convolution_of(op->desc);

    for (uint32_t i = INPUT; i <= BIAS; i++)
        if (op->inputs[i].present)
            TRY(opjit_fe_same_type(op, i, 0, error));
    TRY(opjit_fe_check_convolution(op, &c, FILTER, error));
    return opjit_fe_check_channels(op, BIAS, op->outputs[0].sizes[1], false, error);
}

static void infer(op_inference *s)
{
    const fe_convolution c = convolution_of(s->desc);

    infer_type(&s->outputs[0], s->inputs[0].dtype);
    opjit_fe_infer_convolution(s, &c, FILTER);
}

static ir_ref load_wide(op_lowering *l, const op_element *e, uint32_t input, const ir_ref *at)
{
    const ir_ref x = l->f->failed ? 0 : opjit_ir_load(l->f, l->inputs[input], at);

    return e->type == e->result ? x : cast_to(e, e->type, x);
}

/* The sums, in the tensor of opjit_fe_convolution_sums.  A step that takes no part adds -0 * +0: no sum changes. */
static ir_ref lower_sums(op_lowering *l, const op_element *e)
{
    const fe_convolution c = convolution_of(l->op->desc);
    const bool backward = c.direction == DML_CONVOLUTION_DIRECTION_BACKWARD;
    ir_ref at[OPJIT_MAX_RANK];
    fe_tensor like;
    fe_tap tap;

    opjit_fe_convolution_sums(l, &c, FILTER, &like);
    const ir_ref sums = opjit_fe_reduce_to(l, IR_DOT, e->type, &like, opjit_fe_convolution_steps(l, &c, FILTER));
    if (!l->f->failed)
        l->f->nodes[sums].block = opjit_fe_convolution_block(l, &c, FILTER);
    for (uint32_t d = 0; d < OPJIT_MAX_RANK; d++)
        at[d] = d < like.rank && !l->f->failed ? opjit_ir_coordinate(l->f, sums, d) : 0;
    opjit_fe_convolution_tap(l, &c, FILTER, at, l->f->failed ? 0 : opjit_ir_reduced(l->f, sums), &tap);
    const ir_ref x = load_wide(l, e, INPUT, tap.input), w = load_wide(l, e, FILTER, tap.filter), none = zero(e);
    opjit_fe_set(l, sums,
                 op2(e, IR_PAIR, choose(e, tap.inside, x, backward ? op1(e, IR_NEG, none) : none),
                     backward ? choose(e, tap.inside, w, none) : w));
    return sums;
}

/* x, or 0 where OutputPadding is. */
static ir_ref pad_output(const op_lowering *l, const op_element *e, const ir_ref *at, ir_ref x)
{
    const DESC *desc = l->op->desc;
    const fe_tensor *out = &l->op->outputs[0];

    for (uint32_t i = 0; i < desc->DimensionCount && desc->Direction == DML_CONVOLUTION_DIRECTION_FORWARD; i++) {
        const uint32_t d = out->rank - desc->DimensionCount + i;
        const int64_t end = (int64_t)(out->sizes[d] - desc->OutputPadding[i]);
        if (desc->OutputPadding[i] != 0)
            x = choose(e, ir_expr2(e->f, IR_LT, IR_BOOL, at[d], opjit_ir_index(e->f, end)), x, zero(e));
    }
    return x;
}

/* FusedActivation(the sum + Bias) */
static void lower(op_lowering *l)
{
    const DESC *desc = l->op->desc;
    const fe_convolution c = convolution_of(desc);
    op_element e = { .f = l->f, .desc = desc, .result = opjit_fe_output_type(l, 0), .masks = l->masks };
    ir_ref at[OPJIT_MAX_RANK], of[OPJIT_MAX_RANK];

    e.type = opjit_fe_wide(e.result);
    const ir_ref sums = lower_sums(l, &e), out = opjit_fe_output(l, 0);
    opjit_fe_own(l, out, at);
    opjit_fe_convolution_at(l, &c, FILTER, at, of);
    ir_ref x = l->f->failed ? 0 : opjit_ir_load(l->f, ir_at(l->f, sums)->ref, of);
    if (l->op->inputs[BIAS].present) {
        for (uint32_t d = 0; d < OPJIT_MAX_RANK; d++)
            of[d] = d == 1 ? at[1] : opjit_ir_index(l->f, 0);
        x = op2(&e, IR_ADD, x, load_wide(l, &e, BIAS, of));
    }
    x = l->f->failed ? 0 : pad_output(l, &e, at, x);
    opjit_fe_set(l, out, l->f->failed ? 0 : opjit_fe_activate(&e, desc->FusedActivation, x));
}

const op_def opjit_fe_op_convolution = {
    .type = DML_OPERATOR_CONVOLUTION,
    .name = "CONVOLUTION",
    .formula = "FusedActivation(sum of Input * Filter over channels and window + Bias); BACKWARD: transposed",
    .desc_size = sizeof(DESC),
    OP_ROWS(fields, support),
    .introduced = DML_FEATURE_LEVEL_1_0,
    .validate = validate,
    .infer = infer,
    .lower = lower,
};
