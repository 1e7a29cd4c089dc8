/* SPDX-License-Identifier: Apache-2.0 */
/* dynamic_quantize.c - DYNAMIC_QUANTIZE_LINEAR: a scale and a zero point for all elements from the least and the
 * greatest of them, and the elements quantized with these.
 *
 * What the document leaves open, as ONNX Runtime has it: the range from least to greatest includes 0; where all are 0
 * the scale is 1; the zero point is rounded, halves to even, and clamped. */
#include "frontend/ops/infer.h"
#include "frontend/ops/moves.h"
#include "frontend/ops/quantize/quantize.h"
#include "frontend/ops/reduce.h"

#define DESC DML_DYNAMIC_QUANTIZE_LINEAR_OPERATOR_DESC

enum { OUTPUT, SCALE, ZERO }; /* positions among the outputs */

/* clang-format off */
static const op_field fields[] = {
    OP_FIELD(DESC, InputTensor, OP_INPUT, 0),
    OP_FIELD(DESC, OutputTensor, OP_OUTPUT, 0),
    OP_FIELD(DESC, OutputScaleTensor, OP_OUTPUT, 0),
    OP_FIELD(DESC, OutputZeroPointTensor, OP_OUTPUT, 0),
};
/* clang-format on */

static const op_support support[] = {
    { NULL, DML_FEATURE_LEVEL_4_0, 1, OPJIT_MAX_RANK, OP_TYPES(INT8) | OP_TYPES(UINT8) },
    { "InputTensor", 0, 1, OPJIT_MAX_RANK, OP_TYPES_FLOAT | OP_TYPES(FLOAT64) },
    { "InputTensor", DML_FEATURE_LEVEL_4_0, 1, OPJIT_MAX_RANK, OP_TYPES_FLOAT },
    { "OutputScaleTensor", 0, 1, OPJIT_MAX_RANK, OP_TYPES(FLOAT32) | OP_TYPES(FLOAT64) },
    { "OutputScaleTensor", DML_FEATURE_LEVEL_4_0, 1, OPJIT_MAX_RANK, OP_TYPES(FLOAT32) },
};

static DML_TENSOR_DATA_TYPE scale_type(DML_TENSOR_DATA_TYPE input)
{
    return input == DML_TENSOR_DATA_TYPE_FLOAT64 ? input : DML_TENSOR_DATA_TYPE_FLOAT32;
}

static opjit_status validate(const opjit_operator *op, opjit_error *error)
{
    const DML_TENSOR_DATA_TYPE type = scale_type(op->inputs[0].dtype);

    TRY(opjit_fe_same_sizes(op, 0, OUTPUT, error));
    for (uint32_t i = SCALE; i <= ZERO; i++) {
        TRY(opjit_fe_check_rank(op, op->output_names[i], &op->outputs[i], op->inputs[0].rank,
                                " as InputTensor.DimensionCount", error));
        for (uint32_t d = 0; d < op->outputs[i].rank; d++)
            TRY(opjit_fe_check_size(op, op->output_names[i], &op->outputs[i], d, 1, "", error));
    }
    if (op->outputs[SCALE].dtype != type)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{%s} {OutputScaleTensor.DataType}: {%s}, must be %s",
                               op->def->name, opjit_rt_dtype_name(op->outputs[SCALE].dtype), opjit_rt_dtype_name(type));
    if (op->outputs[ZERO].dtype != op->outputs[OUTPUT].dtype)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                               "{%s} {OutputZeroPointTensor.DataType}: {%s}, must be %s as OutputTensor.DataType",
                               op->def->name, opjit_rt_dtype_name(op->outputs[ZERO].dtype),
                               opjit_rt_dtype_name(op->outputs[OUTPUT].dtype));
    return OPJIT_OK;
}

static void infer(op_inference *s)
{
    op_shape one = s->inputs[0];

    for (uint32_t d = 0; d < one.rank; d++)
        one.sizes[d] = 1;
    infer_type(&s->outputs[OUTPUT], DML_TENSOR_DATA_TYPE_UINT8);
    infer_type(&s->outputs[SCALE], scale_type(s->inputs[0].dtype));
    infer_type(&s->outputs[ZERO], s->outputs[OUTPUT].dtype);
    infer_shape(&s->outputs[OUTPUT], &s->inputs[0]);
    infer_shape(&s->outputs[SCALE], &one);
    infer_shape(&s->outputs[ZERO], &one);
}

/* The least (IR_KMIN) or the greatest of all elements. */
static ir_ref lower_end(op_lowering *l, const op_element *e, ir_kind kind, uint32_t axes)
{
    ir_ref at[OPJIT_MAX_RANK];
    const ir_ref end = opjit_fe_reduce(l, kind, e->type, axes, at);

    opjit_fe_set(l, end, opjit_fe_wide_input(l, at));
    return end;
}

ir_ref opjit_fe_range_scale(const op_element *e, ir_ref least, ir_ref greatest)
{
    const ir_ref lo = op2(e, IR_MIN, least, zero(e)), hi = op2(e, IR_MAX, greatest, zero(e));

    return choose(e, ir_expr2(e->f, IR_EQ, IR_BOOL, hi, lo), one(e),
                  op2(e, IR_DIV, op2(e, IR_SUB, hi, lo), opjit_fe_whole(e, e->type, 255)));
}

ir_ref opjit_fe_range_zero(const op_element *e, ir_ref least, ir_ref scale)
{
    const int64_t lowest = ir_is_signed(e->result) ? -128 : 0;
    const ir_ref lo = op2(e, IR_MIN, least, zero(e));
    const ir_ref from = op2(e, IR_SUB, opjit_fe_whole(e, e->type, lowest), op2(e, IR_DIV, lo, scale));
    const ir_ref whole = cast_to(e, IR_I32, cast_to(e, IR_I16, op1(e, IR_RINT, from)));

    return op2(e, IR_MIN, op2(e, IR_MAX, whole, opjit_fe_whole(e, IR_I32, lowest)),
               opjit_fe_whole(e, IR_I32, lowest + 255));
}

static void lower(op_lowering *l)
{
    op_element e = { .f = l->f,
                     .type = opjit_fe_wide(opjit_ir_type_of(l->op->inputs[0].dtype)),
                     .result = opjit_fe_output_type(l, OUTPUT),
                     .masks = l->masks };
    const uint32_t axes = (1u << l->op->inputs[0].rank) - 1;
    ir_ref at[OPJIT_MAX_RANK];
    const ir_ref least = lower_end(l, &e, IR_KMIN, axes), greatest = lower_end(l, &e, IR_KMAX, axes);
    const ir_ref scale = opjit_fe_def(l, e.type, axes);

    opjit_fe_own(l, scale, at);
    opjit_fe_set(l, scale,
                 opjit_fe_range_scale(&e, opjit_fe_value_at(l, least, axes, at),
                                      opjit_fe_value_at(l, greatest, axes, at)));
    const ir_ref point = opjit_fe_def(l, IR_I32, axes);
    opjit_fe_own(l, point, at);
    opjit_fe_set(l, point,
                 opjit_fe_range_zero(&e, opjit_fe_value_at(l, least, axes, at),
                                     opjit_fe_value_at(l, scale, axes, at)));

    const ir_ref out = opjit_fe_output(l, OUTPUT);
    opjit_fe_own(l, out, at);
    opjit_fe_set(l, out,
                 opjit_fe_quantize(&e, opjit_fe_wide_input(l, at), opjit_fe_value_at(l, scale, axes, at),
                                   opjit_fe_value_at(l, point, axes, at)));
    const ir_ref out_scale = opjit_fe_output(l, SCALE);
    opjit_fe_own(l, out_scale, at);
    opjit_fe_set(l, out_scale, opjit_fe_value_at(l, scale, axes, at));
    const ir_ref out_zero = opjit_fe_output(l, ZERO);
    opjit_fe_own(l, out_zero, at);
    opjit_fe_set(l, out_zero, opjit_fe_value_at(l, point, axes, at));
}

const op_def opjit_fe_op_dynamic_quantize_linear = {
    .type = DML_OPERATOR_DYNAMIC_QUANTIZE_LINEAR,
    .name = "DYNAMIC_QUANTIZE_LINEAR",
    .formula =
        "quantized(x), with scale = (max(x, 0) - min(x, 0)) / 255 and zero point = rint(Min - min(x, 0) / scale)",
    .desc_size = sizeof(DESC),
    OP_ROWS(fields, support),
    .introduced = DML_FEATURE_LEVEL_4_0,
    .validate = validate,
    .infer = infer,
    .lower = lower,
};
