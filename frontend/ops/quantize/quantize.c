/* SPDX-License-Identifier: Apache-2.0 */
/* quantize.c - QUANTIZE_LINEAR, DEQUANTIZE_LINEAR and QUANTIZED_LINEAR_ADD: integers of 8 bits that stand for (x -
 * ZeroPoint) * Scale.  Zero points are optional tensors, 0 where absent. */
#include "frontend/ops/quantize/quantize.h"

/* --- formulas ----------------------------------------------------------------------------------------------------- */

/* The number is first saturated to 16 bits, which keeps the sum exact in 32; what is cut off is far outside of the
 * result's 8 bits. */
static ir_ref rounded(const op_element *e, ir_ref x, ir_ref zero_point, int from, int to)
{
    const ir_ref lowest = opjit_fe_whole(e, IR_I32, from), highest = opjit_fe_whole(e, IR_I32, to);
    ir_ref sum = cast_to(e, IR_I32, cast_to(e, IR_I16, op1(e, IR_RINT, x)));

    if (zero_point != 0)
        sum = op2(e, IR_ADD, sum, cast_to(e, IR_I32, zero_point));
    return op2(e, IR_MIN, op2(e, IR_MAX, sum, lowest), highest);
}

ir_ref opjit_fe_quantize(const op_element *e, ir_ref x, ir_ref scale, ir_ref zero_point)
{
    const bool is_signed = ir_is_signed(e->result);

    return opjit_fe_quantize_to(e, x, scale, zero_point, is_signed ? -128 : 0, is_signed ? 127 : 255);
}

ir_ref opjit_fe_quantize_to(const op_element *e, ir_ref x, ir_ref scale, ir_ref zero_point, int from, int to)
{
    return rounded(e, op2(e, IR_DIV, x, scale), zero_point, from, to);
}

ir_ref opjit_fe_requantize(const op_element *e, ir_ref sum, ir_ref a, ir_ref b, ir_ref scale, ir_ref zero_point)
{
    const ir_ref factor = op2(e, IR_DIV, op2(e, IR_MUL, a, b), scale);
    const bool is_signed = ir_is_signed(e->result);

    return rounded(e, op2(e, IR_MUL, cast_to(e, e->type, sum), factor), zero_point, is_signed ? -128 : 0,
                   is_signed ? 127 : 255);
}

ir_ref opjit_fe_dequantize(const op_element *e, ir_type float_type, ir_ref x, ir_ref zero_point, ir_ref scale)
{
    const ir_type wide = opjit_ir_type_size(e->type) < 4 ? IR_I32 : IR_I64;
    ir_ref difference = x;

    if (zero_point != 0)
        difference = op2(e, IR_SUB, cast_to(e, wide, x), cast_to(e, wide, zero_point));
    return op2(e, IR_MUL, cast_to(e, float_type, difference), scale);
}

ir_ref opjit_fe_difference(ir_func *f, ir_ref x, ir_ref zero_point)
{
    const ir_ref whole = ir_expr1(f, IR_CAST, IR_I32, x);

    return zero_point == 0 ? whole : ir_expr2(f, IR_SUB, IR_I32, whole, ir_expr1(f, IR_CAST, IR_I32, zero_point));
}

/* --- QUANTIZE_LINEAR ---------------------------------------------------------------------------------------------- */

/* clang-format off */
static const op_field element_wise_quantize_linear_fields[] = {
    OP_FIELD(POINTWISE_DESC(ELEMENT_WISE_QUANTIZE_LINEAR), InputTensor, OP_INPUT, 0),
    OP_FIELD(POINTWISE_DESC(ELEMENT_WISE_QUANTIZE_LINEAR), ScaleTensor, OP_INPUT, 0),
    OP_FIELD(POINTWISE_DESC(ELEMENT_WISE_QUANTIZE_LINEAR), ZeroPointTensor, OP_INPUT, OP_OPTIONAL),
    OP_FIELD(POINTWISE_DESC(ELEMENT_WISE_QUANTIZE_LINEAR), OutputTensor, OP_OUTPUT, 0),
};
#define TYPES_8 (OP_TYPES(INT8) | OP_TYPES(UINT8))
static const op_support element_wise_quantize_linear_support[] = {
    POINTWISE_SUPPORT(NULL, 1_0, TYPES_8),
    { "InputTensor", 0, 1, 8, OP_TYPES_FLOAT | OP_TYPES(FLOAT64) | OP_TYPES(INT32) },
    { "InputTensor", DML_FEATURE_LEVEL_1_0, 1, 8, OP_TYPES(FLOAT32) },
    { "InputTensor", DML_FEATURE_LEVEL_6_0, 1, 8, OP_TYPES_FLOAT | OP_TYPES(INT32) },
    { "ScaleTensor", 0, 1, 8, OP_TYPES_FLOAT | OP_TYPES(FLOAT64) | OP_TYPES(INT32) },
    { "ScaleTensor", DML_FEATURE_LEVEL_1_0, 1, 8, OP_TYPES(FLOAT32) },
    { "ScaleTensor", DML_FEATURE_LEVEL_6_0, 1, 8, OP_TYPES_FLOAT | OP_TYPES(INT32) },
};
/* clang-format on */

static opjit_status check_zero_point(const opjit_operator *op, opjit_error *error)
{
    if (op->inputs[2].present || op->level == 0 || op->level >= DML_FEATURE_LEVEL_6_2)
        return OPJIT_OK;
    return opjit_rt_refuse(error, OPJIT_UNSUPPORTED,
                           "{%s} {ZeroPointTensor}: {NULL}, must be there before feature level 6.2", op->def->name);
}

static opjit_status validate_quantize(const opjit_operator *op, opjit_error *error)
{
    TRY(check_zero_point(op, error));
    TRY(opjit_fe_validate_sizes(op, error));
    TRY(opjit_fe_same_input_type(op, 1, 0, error));
    return op->inputs[2].present ? opjit_fe_same_type(op, 2, 0, error) : OPJIT_OK;
}

/* INT32 inputs become FLOAT32, each rounded once. */
static ir_ref element_wise_quantize_linear_element(const op_element *e, const ir_ref *x)
{
    op_element floats = *e;

    if (e->type != IR_I32)
        return opjit_fe_quantize(e, x[0], x[1], x[2]);
    floats.type = IR_F32;
    return opjit_fe_quantize(&floats, cast_to(e, IR_F32, x[0]), cast_to(e, IR_F32, x[1]), x[2]);
}

static void infer_quantize(op_inference *s)
{
    infer_type(&s->outputs[0], s->inputs[2].rank != 0 ? s->inputs[2].dtype : DML_TENSOR_DATA_TYPE_UINT8);
    opjit_fe_infer_sizes(s);
}

POINTWISE_TYPED_ROW(element_wise_quantize_linear, ELEMENT_WISE_QUANTIZE_LINEAR, 1_0,
                    "clamp(rint(x / Scale) + ZeroPoint)", validate_quantize, infer_quantize, 0);

/* --- DEQUANTIZE_LINEAR -------------------------------------------------------------------------------------------- */

/* clang-format off */
static const op_field element_wise_dequantize_linear_fields[] = {
    OP_FIELD(POINTWISE_DESC(ELEMENT_WISE_DEQUANTIZE_LINEAR), InputTensor, OP_INPUT, 0),
    OP_FIELD(POINTWISE_DESC(ELEMENT_WISE_DEQUANTIZE_LINEAR), ScaleTensor, OP_INPUT, 0),
    OP_FIELD(POINTWISE_DESC(ELEMENT_WISE_DEQUANTIZE_LINEAR), ZeroPointTensor, OP_INPUT, OP_OPTIONAL),
    OP_FIELD(POINTWISE_DESC(ELEMENT_WISE_DEQUANTIZE_LINEAR), OutputTensor, OP_OUTPUT, 0),
};
static const op_support element_wise_dequantize_linear_support[] = {
    POINTWISE_SUPPORT(NULL, 1_0, OP_TYPES_INT_TO_32),
    { "ScaleTensor", 0, 1, 8, OP_TYPES_FLOAT | OP_TYPES(FLOAT64) },
    { "ScaleTensor", DML_FEATURE_LEVEL_1_0, 1, 8, OP_TYPES(FLOAT32) },
    { "ScaleTensor", DML_FEATURE_LEVEL_6_0, 1, 8, OP_TYPES_FLOAT },
    { "OutputTensor", 0, 1, 8, OP_TYPES_FLOAT | OP_TYPES(FLOAT64) },
    { "OutputTensor", DML_FEATURE_LEVEL_1_0, 1, 8, OP_TYPES(FLOAT32) },
    { "OutputTensor", DML_FEATURE_LEVEL_6_0, 1, 8, OP_TYPES_FLOAT },
};
/* clang-format on */

static opjit_status validate_dequantize(const opjit_operator *op, opjit_error *error)
{
    TRY(check_zero_point(op, error));
    TRY(opjit_fe_validate_sizes(op, error));
    TRY(opjit_fe_same_type(op, 1, 0, error));
    return opjit_fe_same_input_type(op, 2, 0, error);
}

POINTWISE_ELEMENT(element_wise_dequantize_linear, ELEMENT_WISE_DEQUANTIZE_LINEAR,
                  opjit_fe_dequantize(e, e->result == IR_F64 ? IR_F64 : IR_F32, x[0], x[2], x[1]))

static void infer_dequantize(op_inference *s)
{
    infer_type(&s->outputs[0], s->inputs[1].dtype);
    opjit_fe_infer_sizes(s);
}

POINTWISE_TYPED_ROW(element_wise_dequantize_linear, ELEMENT_WISE_DEQUANTIZE_LINEAR, 1_0, "(x - ZeroPoint) * Scale",
                    validate_dequantize, infer_dequantize, 0);

/* --- QUANTIZED_LINEAR_ADD ----------------------------------------------------------------------------------------- */

/* By position among the inputs. */
enum { A, A_SCALE, A_ZERO, B, B_SCALE, B_ZERO, OUT_SCALE, OUT_ZERO };

/* clang-format off */
#define ADD_DESC POINTWISE_DESC(ELEMENT_WISE_QUANTIZED_LINEAR_ADD)
static const op_field element_wise_quantized_linear_add_fields[] = {
    OP_FIELD(ADD_DESC, ATensor, OP_INPUT, 0),
    OP_FIELD(ADD_DESC, AScaleTensor, OP_INPUT, 0),
    OP_FIELD(ADD_DESC, AZeroPointTensor, OP_INPUT, OP_OPTIONAL),
    OP_FIELD(ADD_DESC, BTensor, OP_INPUT, 0),
    OP_FIELD(ADD_DESC, BScaleTensor, OP_INPUT, 0),
    OP_FIELD(ADD_DESC, BZeroPointTensor, OP_INPUT, OP_OPTIONAL),
    OP_FIELD(ADD_DESC, OutputScaleTensor, OP_INPUT, 0),
    OP_FIELD(ADD_DESC, OutputZeroPointTensor, OP_INPUT, OP_OPTIONAL),
    OP_FIELD(ADD_DESC, OutputTensor, OP_OUTPUT, 0),
};
static const op_support element_wise_quantized_linear_add_support[] = {
    POINTWISE_SUPPORT(NULL, 4_0, TYPES_8),
    POINTWISE_SUPPORT("AScaleTensor", 4_0, OP_TYPES(FLOAT32)),
    POINTWISE_SUPPORT("BScaleTensor", 4_0, OP_TYPES(FLOAT32)),
    POINTWISE_SUPPORT("OutputScaleTensor", 4_0, OP_TYPES(FLOAT32)),
};
/* clang-format on */

static opjit_status validate_quantized_add(const opjit_operator *op, opjit_error *error)
{
    TRY(opjit_fe_validate_sizes(op, error));
    for (uint32_t i = A; i <= OUT_ZERO; i++) {
        if (i == B_SCALE || i == OUT_SCALE)
            TRY(opjit_fe_same_input_type(op, i, A_SCALE, error));
        else if (i != A_SCALE && op->inputs[i].present)
            TRY(opjit_fe_same_type(op, i, 0, error));
    }
    return OPJIT_OK;
}

static ir_ref element_wise_quantized_linear_add_element(const op_element *e, const ir_ref *x)
{
    op_element floats = *e;
    ir_ref a, b;

    if (e->f->failed)
        return 0;
    floats.type = (ir_type)ir_at(e->f, x[A_SCALE])->type;
    a = opjit_fe_dequantize(e, floats.type, x[A], x[A_ZERO], x[A_SCALE]);
    b = opjit_fe_dequantize(e, floats.type, x[B], x[B_ZERO], x[B_SCALE]);
    return opjit_fe_quantize(&floats, op2(&floats, IR_ADD, a, b), x[OUT_SCALE], x[OUT_ZERO]);
}

POINTWISE_ROW(element_wise_quantized_linear_add, ELEMENT_WISE_QUANTIZED_LINEAR_ADD, 4_0,
              "quantized((a - AZeroPoint) * AScale + (b - BZeroPoint) * BScale)", validate_quantized_add, 0);
