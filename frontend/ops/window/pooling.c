/* SPDX-License-Identifier: Apache-2.0 */
/* pooling.c - AVERAGE_POOLING and LP_POOLING with their later forms, which add Dilations; the gradient of the first,
 * and its quantized form.  A window is summed row-major in one lane; FLOAT16 is computed in FLOAT32.  Padding counts as
 * 0.
 *
 * Without IncludePadding the divisor is the number of taps inside of the image, at least 1: a window that holds no
 * element gives 0.  With it, it is the number of all taps, as a window never leaves the padded image.  P may be any
 * number from 1 on; 1 and 2 are computed without POW.  Of QUANTIZED_LINEAR_AVERAGE_POOLING padding is 0 after it was
 * dequantized, as its document says what it is equivalent to; a scale or zero point is one for all, or has a size of
 * the channels where the image has them. */
#include "frontend/ops/moves.h"
#include "frontend/ops/quantize/quantize.h"
#include "frontend/ops/reduce.h"
#include "frontend/ops/window/window.h"

/* clang-format off */
static const op_support support_1_0[] = {
    { NULL, 0, 4, 5, OP_TYPES_FLOAT | OP_TYPES(FLOAT64) },
    { NULL, DML_FEATURE_LEVEL_1_0, 4, 5, OP_TYPES_FLOAT },
};
static const op_support support_3_0[] = {
    { NULL, 0, 4, 5, OP_TYPES_FLOAT | OP_TYPES(FLOAT64) },
    { NULL, DML_FEATURE_LEVEL_3_0, 4, 5, OP_TYPES_FLOAT },
};
static const op_support support_6_2[] = {
    { NULL, 0, 4, 5, OP_TYPES_FLOAT | OP_TYPES(FLOAT64) },
    { NULL, DML_FEATURE_LEVEL_6_2, 4, 5, OP_TYPES_FLOAT },
};
/* clang-format on */

static opjit_status validate(const opjit_operator *op, opjit_error *error)
{
    const fe_window w = opjit_fe_window_of(op->def, op->desc);

    TRY(opjit_fe_check_pair(op, 0, error));
    return opjit_fe_window_check_pooled(op, &w, &op->inputs[0], op->output_names[0], &op->outputs[0], error);
}

static op_element element_of(const op_lowering *l)
{
    const ir_type result = opjit_fe_output_type(l, 0);
    return (op_element){ .f = l->f, .desc = l->op->desc, .type = opjit_fe_wide(result), .result = result };
}

/* What p means to sum_windows besides LP_POOLING's P. */
enum { SUM_PLAIN = 0 };

/* The sum over each window of |x|^p, or of x. */
static ir_ref sum_windows(op_lowering *l, const op_element *e, const fe_window *w, uint32_t p)
{
    ir_func *f = l->f;
    ir_ref at[OPJIT_MAX_RANK], of[OPJIT_MAX_RANK];
    const ir_ref sum = opjit_fe_reduce_to(l, IR_SUM, e->type, &l->op->outputs[0], opjit_fe_window_taps(w));

    opjit_fe_own(l, sum, at);
    if (f->failed)
        return 0;
    const ir_ref inside = opjit_fe_window_tap(f, w, &l->op->inputs[0], at, opjit_ir_reduced(f, sum), of);
    ir_ref x = opjit_fe_wide_input(l, of);
    if (p == 2)
        x = op2(e, IR_MUL, x, x);
    else if (p != SUM_PLAIN)
        x = op1(e, IR_ABS, x);
    if (p > 2)
        x = op2(e, IR_POW, x, opjit_fe_real(f, e->type, p));
    opjit_fe_set(l, sum, choose(e, inside, x, zero(e)));
    return sum;
}

/* --- AVERAGE_POOLING ---------------------------------------------------------------------------------------------- */

/* What the sum of window `at` is divided by. */
static ir_ref divisor(const op_lowering *l, const op_element *e, const fe_window *w, const fe_tensor *image,
                      const ir_ref *at)
{
    if (opjit_fe_window_number(l->op->def, l->op->desc, "IncludePadding") != 0)
        return opjit_fe_real(e->f, e->type, opjit_fe_window_taps(w));
    const ir_type type = opjit_fe_window_count_type(w);
    const ir_ref count = opjit_fe_window_inside(e->f, w, image, at), least = opjit_ir_const(e->f, type, 1);
    return cast_to(e, e->type, ir_expr2(e->f, IR_MAX, type, count, least));
}

/* The sum over the window / its divisor */
static void lower_average(op_lowering *l)
{
    const fe_window w = opjit_fe_window_of(l->op->def, l->op->desc);
    const op_element e = element_of(l);
    const ir_ref sum = sum_windows(l, &e, &w, SUM_PLAIN), out = opjit_fe_output(l, 0);
    ir_ref at[OPJIT_MAX_RANK];

    opjit_fe_own(l, out, at);
    if (l->f->failed)
        return;
    const ir_ref count = divisor(l, &e, &w, &l->op->inputs[0], at);
    opjit_fe_set(l, out, op2(&e, IR_DIV, opjit_fe_value_at(l, sum, 0, at), count));
}

/* The sum, over the windows that hold the pixel, of their gradient / their divisor: in the order of the windows. */
static void lower_average_grad(op_lowering *l)
{
    const fe_window w = opjit_fe_window_of(l->op->def, l->op->desc);
    const op_element e = element_of(l);
    const fe_tensor *image = &l->op->outputs[0];
    ir_func *f = l->f;
    ir_ref at[OPJIT_MAX_RANK], of[OPJIT_MAX_RANK], tap;
    const ir_ref share = opjit_fe_def(l, e.type, 0);

    opjit_fe_own(l, share, at);
    if (f->failed)
        return;
    opjit_fe_set(l, share, op2(&e, IR_DIV, opjit_fe_wide_input(l, at), divisor(l, &e, &w, image, at)));

    const ir_ref sum = opjit_fe_reduce_to(l, IR_SUM, e.type, image, opjit_fe_window_holders(&w, &l->op->inputs[0]));
    opjit_fe_own(l, sum, at);
    if (f->failed)
        return;
    const ir_ref holds = opjit_fe_window_holder(f, &w, &l->op->inputs[0], at, opjit_ir_reduced(f, sum), of, &tap);
    opjit_fe_set(l, sum, choose(&e, holds, opjit_fe_value_at(l, share, 0, of), zero(&e)));

    const ir_ref out = opjit_fe_output(l, 0);
    opjit_fe_own(l, out, at);
    opjit_fe_set(l, out, opjit_fe_value_at(l, sum, 0, at));
}

static opjit_status validate_average_grad(const opjit_operator *op, opjit_error *error)
{
    const fe_window w = opjit_fe_window_of(op->def, op->desc);

    TRY(opjit_fe_check_pair(op, 0, error));
    return opjit_fe_window_check_pooled(op, &w, &op->outputs[0], op->input_names[0], &op->inputs[0], error);
}

/* The image's sizes don't follow: the last windows may have left a part of it out. */
static void infer_average_grad(op_inference *s)
{
    infer_type(&s->outputs[0], s->inputs[0].dtype);
}

/* --- LP_POOLING --------------------------------------------------------------------------------------------------- */

static opjit_status validate_lp(const opjit_operator *op, opjit_error *error)
{
    TRY(validate(op, error));
    if (opjit_fe_window_number(op->def, op->desc, "P") == 0)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{%s} {P}: {0}, must be at least 1", op->def->name);
    return OPJIT_OK;
}

/* (the sum of |x|^P)^(1 / P) */
static void lower_lp(op_lowering *l)
{
    const fe_window w = opjit_fe_window_of(l->op->def, l->op->desc);
    const uint32_t p = opjit_fe_window_number(l->op->def, l->op->desc, "P");
    const op_element e = element_of(l);
    const ir_ref sum = sum_windows(l, &e, &w, p), out = opjit_fe_output(l, 0);
    ir_ref at[OPJIT_MAX_RANK];

    opjit_fe_own(l, out, at);
    if (l->f->failed)
        return;
    ir_ref x = opjit_fe_value_at(l, sum, 0, at);
    if (p == 2)
        x = op1(&e, IR_SQRT, x);
    else if (p > 2)
        x = op2(&e, IR_POW, x, op2(&e, IR_DIV, one(&e), opjit_fe_real(l->f, e.type, p)));
    opjit_fe_set(l, out, x);
}

/* --- QUANTIZED_LINEAR_AVERAGE_POOLING ----------------------------------------------------------------------------- */

enum { IN_SCALE = 1, IN_ZERO, OUT_SCALE, OUT_ZERO }; /* positions among the inputs, behind the image */

/* Sizes of 1, but for the channels. */
static opjit_status check_factor(const opjit_operator *op, uint32_t input, opjit_error *error)
{
    const fe_tensor *image = &op->inputs[0], *t = &op->inputs[input];

    if (t->rank > image->rank)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                               "{%s} {%s.DimensionCount}: {%u}, must be at most %u as "
                               "InputTensor.DimensionCount",
                               op->def->name, op->input_names[input], t->rank, image->rank);
    for (uint32_t d = 0; d < t->rank; d++) {
        const bool channels = d + image->rank - t->rank == 1;
        if (t->sizes[d] != 1 && (!channels || t->sizes[d] != image->sizes[1]))
            return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{%s} {%s.Sizes[%u]}: {%u}, must be 1%s",
                                   op->def->name, op->input_names[input], d, (unsigned)t->sizes[d],
                                   channels ? " or that of InputTensor" : "");
    }
    return OPJIT_OK;
}

static opjit_status validate_quantized(const opjit_operator *op, opjit_error *error)
{
    const fe_window w = opjit_fe_window_of(op->def, op->desc);

    for (uint32_t i = IN_SCALE; i <= OUT_ZERO; i++)
        if (op->inputs[i].present)
            TRY(check_factor(op, i, error));
    TRY(opjit_fe_same_input_type(op, IN_ZERO, 0, error));
    if (op->inputs[OUT_ZERO].present)
        TRY(opjit_fe_same_type(op, OUT_ZERO, 0, error));
    return opjit_fe_window_check_pooled(op, &w, &op->inputs[0], op->output_names[0], &op->outputs[0], error);
}

/* The scale or zero point of the channel at coordinates `at`; 0: absent. */
static ir_ref factor(op_lowering *l, uint32_t input, const ir_ref *at)
{
    const fe_tensor *t = &l->op->inputs[input];
    ir_ref of[OPJIT_MAX_RANK];

    if (!t->present || l->f->failed)
        return 0;
    for (uint32_t d = 0; d < t->rank; d++)
        of[d] = t->sizes[d] == 1 ? opjit_ir_index(l->f, 0) : at[1];
    return opjit_ir_load(l->f, l->inputs[input], of);
}

/* Quantizes (the sum over the window of dequantized elements / its divisor). */
static void lower_quantized(op_lowering *l)
{
    const fe_window w = opjit_fe_window_of(l->op->def, l->op->desc);
    const op_element bytes = { .f = l->f, .desc = l->op->desc, .type = opjit_ir_type_of(l->op->inputs[0].dtype) };
    const op_element e = { .f = l->f, .desc = l->op->desc, .type = IR_F32, .result = opjit_fe_output_type(l, 0) };
    ir_func *f = l->f;
    ir_ref at[OPJIT_MAX_RANK], of[OPJIT_MAX_RANK];
    const ir_ref sum = opjit_fe_reduce_to(l, IR_SUM, e.type, &l->op->outputs[0], opjit_fe_window_taps(&w));

    opjit_fe_own(l, sum, at);
    if (f->failed)
        return;
    const ir_ref inside = opjit_fe_window_tap(f, &w, &l->op->inputs[0], at, opjit_ir_reduced(f, sum), of);
    const ir_ref x = opjit_fe_dequantize(&bytes, e.type, opjit_ir_load(f, l->inputs[0], of), factor(l, IN_ZERO, at),
                                         factor(l, IN_SCALE, at));
    opjit_fe_set(l, sum, choose(&e, inside, x, zero(&e)));

    const ir_ref out = opjit_fe_output(l, 0);
    opjit_fe_own(l, out, at);
    if (f->failed)
        return;
    const ir_ref count = divisor(l, &e, &w, &l->op->inputs[0], at);
    const ir_ref average = op2(&e, IR_DIV, opjit_fe_value_at(l, sum, 0, at), count);
    opjit_fe_set(l, out, opjit_fe_quantize(&e, average, factor(l, OUT_SCALE, at), factor(l, OUT_ZERO, at)));
}

/* The output's type is that of its zero point, or the input's. */
static void infer_quantized(op_inference *s)
{
    infer_type(&s->outputs[0], s->inputs[s->inputs[OUT_ZERO].rank != 0 ? OUT_ZERO : 0].dtype);
    opjit_fe_window_infer(s);
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

/* clang-format off */
#define AVERAGE DML_AVERAGE_POOLING_OPERATOR_DESC
static const op_field average_fields[] = {
    OP_FIELD(AVERAGE, InputTensor, OP_INPUT, 0),
    OP_FIELD(AVERAGE, OutputTensor, OP_OUTPUT, 0),
    WINDOW_FIELDS(AVERAGE),
    OP_FIELD(AVERAGE, IncludePadding, OP_BOOL, 0),
};

#define AVERAGE1 DML_AVERAGE_POOLING1_OPERATOR_DESC
static const op_field average1_fields[] = {
    OP_FIELD(AVERAGE1, InputTensor, OP_INPUT, 0),
    OP_FIELD(AVERAGE1, OutputTensor, OP_OUTPUT, 0),
    WINDOW_FIELDS(AVERAGE1),
    OP_FIELD_ARRAY(AVERAGE1, Dilations, DimensionCount, OP_UINTS, 0),
    OP_FIELD(AVERAGE1, IncludePadding, OP_BOOL, 0),
};

#define AVERAGE_GRAD DML_AVERAGE_POOLING_GRAD_OPERATOR_DESC
static const op_field average_grad_fields[] = {
    OP_FIELD(AVERAGE_GRAD, InputGradientTensor, OP_INPUT, 0),
    OP_FIELD(AVERAGE_GRAD, OutputGradientTensor, OP_OUTPUT, 0),
    WINDOW_FIELDS(AVERAGE_GRAD),
    OP_FIELD(AVERAGE_GRAD, IncludePadding, OP_BOOL, 0),
};

#define QUANTIZED DML_QUANTIZED_LINEAR_AVERAGE_POOLING_OPERATOR_DESC
static const op_field quantized_fields[] = {
    OP_FIELD(QUANTIZED, InputTensor, OP_INPUT, 0),
    OP_FIELD(QUANTIZED, InputScaleTensor, OP_INPUT, 0),
    OP_FIELD(QUANTIZED, InputZeroPointTensor, OP_INPUT, OP_OPTIONAL),
    OP_FIELD(QUANTIZED, OutputScaleTensor, OP_INPUT, 0),
    OP_FIELD(QUANTIZED, OutputZeroPointTensor, OP_INPUT, OP_OPTIONAL),
    OP_FIELD(QUANTIZED, OutputTensor, OP_OUTPUT, 0),
    WINDOW_FIELDS(QUANTIZED),
    OP_FIELD_ARRAY(QUANTIZED, Dilations, DimensionCount, OP_UINTS, 0),
    OP_FIELD(QUANTIZED, IncludePadding, OP_BOOL, 0),
};
#define TYPES_8 (OP_TYPES(INT8) | OP_TYPES(UINT8))
static const op_support support_quantized[] = {
    { NULL, DML_FEATURE_LEVEL_6_2, 4, 5, TYPES_8 },
    { "InputScaleTensor", DML_FEATURE_LEVEL_6_2, 1, 5, OP_TYPES(FLOAT32) },
    { "InputZeroPointTensor", DML_FEATURE_LEVEL_6_2, 1, 5, TYPES_8 },
    { "OutputScaleTensor", DML_FEATURE_LEVEL_6_2, 1, 5, OP_TYPES(FLOAT32) },
    { "OutputZeroPointTensor", DML_FEATURE_LEVEL_6_2, 1, 5, TYPES_8 },
};

#define LP DML_LP_POOLING_OPERATOR_DESC
static const op_field lp_fields[] = {
    OP_FIELD(LP, InputTensor, OP_INPUT, 0),
    OP_FIELD(LP, OutputTensor, OP_OUTPUT, 0),
    WINDOW_FIELDS(LP),
    OP_FIELD(LP, P, OP_UINT, 0),
};

#define LP1 DML_LP_POOLING1_OPERATOR_DESC
static const op_field lp1_fields[] = {
    OP_FIELD(LP1, InputTensor, OP_INPUT, 0),
    OP_FIELD(LP1, OutputTensor, OP_OUTPUT, 0),
    WINDOW_FIELDS(LP1),
    OP_FIELD_ARRAY(LP1, Dilations, DimensionCount, OP_UINTS, 0),
    OP_FIELD(LP1, P, OP_UINT, 0),
};
/* clang-format on */

const op_def opjit_fe_op_average_pooling = {
    .type = DML_OPERATOR_AVERAGE_POOLING,
    .name = "AVERAGE_POOLING",
    .formula = "the sum over the window / the number of its elements",
    .desc_size = sizeof(AVERAGE),
    OP_ROWS(average_fields, support_1_0),
    .introduced = DML_FEATURE_LEVEL_1_0,
    .validate = validate,
    .infer = opjit_fe_window_infer,
    .lower = lower_average,
};

const op_def opjit_fe_op_average_pooling1 = {
    .type = DML_OPERATOR_AVERAGE_POOLING1,
    .name = "AVERAGE_POOLING1",
    .formula = "the sum over the window / the number of its elements",
    .desc_size = sizeof(AVERAGE1),
    OP_ROWS(average1_fields, support_6_2),
    .introduced = DML_FEATURE_LEVEL_6_2,
    .validate = validate,
    .infer = opjit_fe_window_infer,
    .lower = lower_average,
};

const op_def opjit_fe_op_average_pooling_grad = {
    .type = DML_OPERATOR_AVERAGE_POOLING_GRAD,
    .name = "AVERAGE_POOLING_GRAD",
    .formula = "the sum, over the windows that hold the element, of InputGradient / the number of their elements",
    .desc_size = sizeof(AVERAGE_GRAD),
    OP_ROWS(average_grad_fields, support_3_0),
    .introduced = DML_FEATURE_LEVEL_3_0,
    .validate = validate_average_grad,
    .infer = infer_average_grad,
    .lower = lower_average_grad,
};

const op_def opjit_fe_op_lp_pooling = {
    .type = DML_OPERATOR_LP_POOLING,
    .name = "LP_POOLING",
    .formula = "(sum of |x|^P)^(1/P), over the window",
    .desc_size = sizeof(LP),
    OP_ROWS(lp_fields, support_1_0),
    .introduced = DML_FEATURE_LEVEL_1_0,
    .validate = validate_lp,
    .infer = opjit_fe_window_infer,
    .lower = lower_lp,
};

const op_def opjit_fe_op_lp_pooling1 = {
    .type = DML_OPERATOR_LP_POOLING1,
    .name = "LP_POOLING1",
    .formula = "(sum of |x|^P)^(1/P), over the window",
    .desc_size = sizeof(LP1),
    OP_ROWS(lp1_fields, support_6_2),
    .introduced = DML_FEATURE_LEVEL_6_2,
    .validate = validate_lp,
    .infer = opjit_fe_window_infer,
    .lower = lower_lp,
};

const op_def opjit_fe_op_quantized_linear_average_pooling = {
    .type = DML_OPERATOR_QUANTIZED_LINEAR_AVERAGE_POOLING,
    .name = "QUANTIZED_LINEAR_AVERAGE_POOLING",
    .formula = "the average over the window of (x - ZeroPoint) * Scale, quantized again",
    .desc_size = sizeof(QUANTIZED),
    OP_ROWS(quantized_fields, support_quantized),
    .introduced = DML_FEATURE_LEVEL_6_2,
    .validate = validate_quantized,
    .infer = infer_quantized,
    .lower = lower_quantized,
};
