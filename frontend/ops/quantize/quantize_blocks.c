/* SPDX-License-Identifier: Apache-2.0 */
/* quantize_blocks.c - QUANTIZE and DEQUANTIZE (DML_QUANTIZE_OPERATOR_DESC): floats as integers of 8 or 4 bits and back,
 *     clamp(rint(x / scale) + zero point)  and  (x - zero point) * scale,
 * rounded as ELEMENT_WISE_QUANTIZE_LINEAR and its inverse are.  The document has tables, but no text; of DirectML's use
 * by others: a scale's size divides the tensor's in each dimension, and is one for a block of so many neighbours; zero
 * points, which are 0 with the type SCALE, have the scale's sizes or others that divide.  A scale has the floats' type,
 * a zero point the integers'. */
#include "frontend/ops/quantize/half_byte.h"

#include "frontend/ops/infer.h"
#include "frontend/ops/moves.h"
#include "frontend/ops/quantize/quantize.h"
#include "frontend/ops/reduce.h"

enum { VALUES, SCALE, ZERO_POINT };

static uint32_t type_of(const op_def *def, const void *desc)
{
    uint32_t type;

    memcpy(&type, opjit_fe_field(def, desc, "QuantizationType"), sizeof type);
    return type;
}

/* --- checks ------------------------------------------------------------------------------------------------------- */

static opjit_status check_blocks(const opjit_operator *op, uint32_t input, opjit_error *error)
{
    const fe_tensor *t = &op->inputs[input], *values = &op->inputs[VALUES];
    const char *name = op->input_names[input];

    TRY(opjit_fe_check_rank(op, name, t, values->rank, " as InputTensor.DimensionCount", error));
    for (uint32_t d = 0; d < t->rank; d++)
        if (values->sizes[d] % t->sizes[d] != 0)
            return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{%s} {%s.Sizes[%u]}: {%u}, must divide %u",
                                   op->def->name, name, d, (unsigned)t->sizes[d], (unsigned)values->sizes[d]);
    return OPJIT_OK;
}

static opjit_status validate(const opjit_operator *op, opjit_error *error)
{
    const bool back = op->def->type == DML_OPERATOR_DEQUANTIZE;
    const uint32_t count = op->input_count - 1;
    const uint32_t want = type_of(op->def, op->desc) == DML_QUANTIZATION_TYPE_SCALE ? 1 : 2;

    if (count != want)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{%s} {QuantizationTensorCount}: {%u}, must be %u",
                               op->def->name, count, want);
    TRY(opjit_fe_same_sizes(op, VALUES, 0, error));
    for (uint32_t i = SCALE; i <= count; i++)
        TRY(check_blocks(op, i, error));
    TRY(back ? opjit_fe_same_type(op, SCALE, 0, error) : opjit_fe_same_input_type(op, SCALE, VALUES, error));
    if (count == ZERO_POINT)
        TRY(back ? opjit_fe_same_input_type(op, ZERO_POINT, VALUES, error)
                 : opjit_fe_same_type(op, ZERO_POINT, 0, error));
    return opjit_fe_check_halves(op, 0, error);
}

static void infer(op_inference *s)
{
    const bool back = s->def->type == DML_OPERATOR_DEQUANTIZE;
    const op_shape *zero = s->input_count > ZERO_POINT ? &s->inputs[ZERO_POINT] : NULL;

    if (back && s->input_count > SCALE)
        infer_type(&s->outputs[0], s->inputs[SCALE].dtype);
    else if (!back)
        infer_type(&s->outputs[0], zero != NULL ? zero->dtype : DML_TENSOR_DATA_TYPE_UINT8);
    infer_shape(&s->outputs[0], &s->inputs[VALUES]);
}

/* --- values ------------------------------------------------------------------------------------------------------- */

typedef struct blocks {
    op_lowering *l;
    op_element e;
    ir_type real;  /* floats are computed in it */
    int from, to;  /* of the integers, for QUANTIZE */
} blocks;

/* The coordinates of the block of a tensor that an element is in. */
static void block_of(const blocks *b, uint32_t input, const ir_ref *at, ir_ref of[OPJIT_MAX_RANK])
{
    const fe_tensor *t = &b->l->op->inputs[input], *values = &b->l->op->inputs[VALUES];

    for (uint32_t d = 0; d < t->rank; d++) {
        const int64_t size = (int64_t)(values->sizes[d] / t->sizes[d]);
        of[d] = t->sizes[d] == 1 ? opjit_ir_index(b->l->f, 0)
                : size == 1      ? at[d]
                                 : ir_expr2(b->l->f, IR_IDIV, IR_INDEX, at[d], opjit_ir_index(b->l->f, size));
    }
}

static ir_ref real_at(const blocks *b, uint32_t input, const ir_ref *at)
{
    const ir_ref x = opjit_ir_load(b->l->f, b->l->inputs[input], at);

    return b->l->f->failed || ir_at(b->l->f, x)->type == b->real ? x : ir_expr1(b->l->f, IR_CAST, b->real, x);
}

static ir_ref scale_at(const blocks *b, const ir_ref *at)
{
    ir_ref of[OPJIT_MAX_RANK];

    block_of(b, SCALE, at, of);
    return real_at(b, SCALE, of);
}

/* 0: there is none. */
static ir_ref zero_at(const blocks *b, const ir_ref *at)
{
    ir_ref of[OPJIT_MAX_RANK];

    if (b->l->op->input_count <= ZERO_POINT)
        return 0;
    block_of(b, ZERO_POINT, at, of);
    return opjit_fe_small_input(b->l, ZERO_POINT, of);
}

static ir_ref quantized(void *user, const ir_ref *at)
{
    const blocks *b = user;

    return opjit_fe_quantize_to(&b->e, real_at(b, VALUES, at), scale_at(b, at), zero_at(b, at), b->from, b->to);
}

static blocks blocks_of(op_lowering *l, DML_TENSOR_DATA_TYPE floats)
{
    const ir_type real = floats == DML_TENSOR_DATA_TYPE_FLOAT64 ? IR_F64 : IR_F32;

    return (blocks){ .l = l, .e = { .f = l->f, .desc = l->op->desc, .type = real }, .real = real };
}

static void lower_quantize(op_lowering *l)
{
    const fe_tensor *out = &l->op->outputs[0];
    const int half = rt_dtype_is_half_byte(out->dtype) ? 8 : 128;
    const bool is_signed = out->dtype == DML_TENSOR_DATA_TYPE_INT8 || out->dtype == DML_TENSOR_DATA_TYPE_INT4;
    blocks b = blocks_of(l, l->op->inputs[VALUES].dtype);
    ir_ref at[OPJIT_MAX_RANK];

    b.from = is_signed ? -half : 0;
    b.to = is_signed ? half - 1 : 2 * half - 1;
    if (half == 8) {
        opjit_fe_set_halves(l, 0, quantized, &b);
        return;
    }
    const ir_ref statement = opjit_fe_output(l, 0);
    opjit_fe_own(l, statement, at);
    opjit_fe_set(l, statement, quantized(&b, at));
}

static void lower_dequantize(op_lowering *l)
{
    blocks b = blocks_of(l, l->op->outputs[0].dtype);
    const ir_ref out = opjit_fe_output(l, 0);
    ir_ref at[OPJIT_MAX_RANK];

    opjit_fe_own(l, out, at);
    const ir_ref zero = zero_at(&b, at), x = opjit_fe_small_input(l, VALUES, at);
    const ir_ref difference = opjit_fe_difference(l->f, x, zero);
    opjit_fe_set(l, out,
                 ir_expr2(l->f, IR_MUL, b.real, ir_expr1(l->f, IR_CAST, b.real, difference), scale_at(&b, at)));
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

static const op_enum_name type_names[] = {
    { "DML_QUANTIZATION_TYPE_SCALE", DML_QUANTIZATION_TYPE_SCALE },
    { "DML_QUANTIZATION_TYPE_SCALE_ZERO_POINT", DML_QUANTIZATION_TYPE_SCALE_ZERO_POINT },
    { NULL, 0 },
};
static const op_enum types = { "DML_QUANTIZATION_TYPE_", type_names };

/* clang-format off */
#define FIELDS(T)                                                     \
    OP_FIELD(T, InputTensor, OP_INPUT, 0),                            \
    OP_FIELD_ENUM(T, QuantizationType, &types),                       \
    OP_FIELD(T, QuantizationTensorCount, OP_UINT, OP_COUNT),          \
    OP_FIELD_ARRAY(T, QuantizationTensors, QuantizationTensorCount, OP_INPUTS, 0), \
    OP_FIELD(T, OutputTensor, OP_OUTPUT, 0)
static const op_field fields[] = { FIELDS(DML_QUANTIZE_OPERATOR_DESC) };
static const op_field back_fields[] = { FIELDS(DML_DEQUANTIZE_OPERATOR_DESC) };

#define INTEGERS (OP_TYPES_INT_8 | OP_TYPES_INT_4)
#define ROWS(field, types_)                                           \
    { field, 0, 1, 8, (types_) | (((types_) & OP_TYPES(FLOAT32)) != 0 ? OP_TYPES(FLOAT64) : 0) }, \
    { field, DML_FEATURE_LEVEL_6_3, 1, 8, types_ }
static const op_support support[] = {
    ROWS(NULL, OP_TYPES_FLOAT), ROWS("QuantizationTensors", OP_TYPES_FLOAT | INTEGERS), ROWS("OutputTensor", INTEGERS),
};
static const op_support back_support[] = {
    ROWS(NULL, OP_TYPES_FLOAT), ROWS("InputTensor", INTEGERS), ROWS("QuantizationTensors", OP_TYPES_FLOAT | INTEGERS),
};
/* clang-format on */

const op_def opjit_fe_op_quantize = {
    .type = DML_OPERATOR_QUANTIZE,
    .name = "QUANTIZE",
    .formula = "clamp(rint(x / scale) + zero point), a scale and a zero point for each block",
    .desc_size = sizeof(DML_QUANTIZE_OPERATOR_DESC),
    OP_ROWS(fields, support),
    .introduced = DML_FEATURE_LEVEL_6_3,
    .validate = validate,
    .infer = infer,
    .lower = lower_quantize,
};

const op_def opjit_fe_op_dequantize = {
    .type = DML_OPERATOR_DEQUANTIZE,
    .name = "DEQUANTIZE",
    .formula = "(x - zero point) * scale, a scale and a zero point for each block",
    .desc_size = sizeof(DML_DEQUANTIZE_OPERATOR_DESC),
    OP_ROWS(back_fields, back_support),
    .introduced = DML_FEATURE_LEVEL_6_3,
    .validate = validate,
    .infer = infer,
    .lower = lower_dequantize,
};
