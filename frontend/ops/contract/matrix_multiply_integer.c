/* SPDX-License-Identifier: Apache-2.0 */
/* matrix_multiply_integer.c - MATRIX_MULTIPLY_INTEGER, its form to floats, QUANTIZED_LINEAR_MATRIX_MULTIPLY:
 * products of matrices of integers less their zero points, in a batch.  Sums are in INT32, modulo 2^32.
 *
 * What the documents leave open: a sum is rounded once to the scales' type and multiplied with the rounded product of
 * both scales, or the rounded quotient of that and the output's scale, as ONNX Runtime does it, so that what is half
 * between two integers stays so; A and B may be of different types.  A scale or a zero point is one element, or
 * one for each row of A or of the output, each column of B: in its last dimension but one, in its last one. */
#include "frontend/ops/infer.h"
#include "frontend/ops/moves.h"
#include "frontend/ops/quantize/quantize.h"
#include "frontend/ops/reduce.h"

/* The inputs of all three by what they are; ABSENT: the operator has none. */
#define ABSENT UINT32_MAX
typedef struct roles {
    uint32_t a, a_scale, a_zero, b, b_scale, b_zero, bias, scale, zero;
} roles;

#define INTEGER DML_MATRIX_MULTIPLY_INTEGER_OPERATOR_DESC
#define TO_FLOAT DML_MATRIX_MULTIPLY_INTEGER_TO_FLOAT_OPERATOR_DESC
#define QUANTIZED DML_QUANTIZED_LINEAR_MATRIX_MULTIPLY_OPERATOR_DESC
static const roles of_integer = { 0, ABSENT, 1, 2, ABSENT, 3, ABSENT, ABSENT, ABSENT };
static const roles of_to_float = { 0, 1, 2, 3, 4, 5, 6, ABSENT, ABSENT };
static const roles of_quantized = { 0, 1, 2, 3, 4, 5, ABSENT, 6, 7 };

enum { ROWS = 2, COLUMNS = 1 }; /* which dimension, counted from the end, a scale or zero point has elements along */

/* clang-format off */
static const op_field integer_fields[] = {
    OP_FIELD(INTEGER, ATensor, OP_INPUT, 0),
    OP_FIELD(INTEGER, AZeroPointTensor, OP_INPUT, OP_OPTIONAL),
    OP_FIELD(INTEGER, BTensor, OP_INPUT, 0),
    OP_FIELD(INTEGER, BZeroPointTensor, OP_INPUT, OP_OPTIONAL),
    OP_FIELD(INTEGER, OutputTensor, OP_OUTPUT, 0),
};
static const op_field to_float_fields[] = {
    OP_FIELD(TO_FLOAT, ATensor, OP_INPUT, 0),
    OP_FIELD(TO_FLOAT, AScaleTensor, OP_INPUT, 0),
    OP_FIELD(TO_FLOAT, AZeroPointTensor, OP_INPUT, OP_OPTIONAL),
    OP_FIELD(TO_FLOAT, BTensor, OP_INPUT, 0),
    OP_FIELD(TO_FLOAT, BScaleTensor, OP_INPUT, 0),
    OP_FIELD(TO_FLOAT, BZeroPointTensor, OP_INPUT, OP_OPTIONAL),
    OP_FIELD(TO_FLOAT, BiasTensor, OP_INPUT, OP_OPTIONAL),
    OP_FIELD(TO_FLOAT, OutputTensor, OP_OUTPUT, 0),
};
static const op_field quantized_fields[] = {
    OP_FIELD(QUANTIZED, ATensor, OP_INPUT, 0),
    OP_FIELD(QUANTIZED, AScaleTensor, OP_INPUT, 0),
    OP_FIELD(QUANTIZED, AZeroPointTensor, OP_INPUT, OP_OPTIONAL),
    OP_FIELD(QUANTIZED, BTensor, OP_INPUT, 0),
    OP_FIELD(QUANTIZED, BScaleTensor, OP_INPUT, 0),
    OP_FIELD(QUANTIZED, BZeroPointTensor, OP_INPUT, OP_OPTIONAL),
    OP_FIELD(QUANTIZED, OutputScaleTensor, OP_INPUT, 0),
    OP_FIELD(QUANTIZED, OutputZeroPointTensor, OP_INPUT, OP_OPTIONAL),
    OP_FIELD(QUANTIZED, OutputTensor, OP_OUTPUT, 0),
};

#define TYPES_8 (OP_TYPES(INT8) | OP_TYPES(UINT8))
/* Matrices have two dimensions more where GEMM's may. */
#define MATRICES(field, types)                          \
    { field, 0, 2, OPJIT_MAX_RANK, types },             \
    { field, DML_FEATURE_LEVEL_2_1, 4, 4, types },      \
    { field, DML_FEATURE_LEVEL_4_0, 2, 4, types }
/* Their scales and zero points, which may have one. */
#define OF_MATRICES(field, types)                       \
    { field, 0, 1, OPJIT_MAX_RANK, types },             \
    { field, DML_FEATURE_LEVEL_2_1, 4, 4, types },      \
    { field, DML_FEATURE_LEVEL_4_0, 1, 4, types }
static const op_support integer_support[] = {
    MATRICES(NULL, TYPES_8),
    OF_MATRICES("AZeroPointTensor", TYPES_8),
    OF_MATRICES("BZeroPointTensor", TYPES_8),
    MATRICES("OutputTensor", OP_TYPES(INT32)),
};
static const op_support quantized_support[] = {
    MATRICES(NULL, TYPES_8),
    OF_MATRICES("AScaleTensor", OP_TYPES(FLOAT32)),
    OF_MATRICES("AZeroPointTensor", TYPES_8),
    OF_MATRICES("BScaleTensor", OP_TYPES(FLOAT32)),
    OF_MATRICES("BZeroPointTensor", TYPES_8),
    OF_MATRICES("OutputScaleTensor", OP_TYPES(FLOAT32)),
    OF_MATRICES("OutputZeroPointTensor", TYPES_8),
};
#define VECTORS(field, types, more)                     \
    { field, 0, 1, OPJIT_MAX_RANK, (types) | (more) },  \
    { field, DML_FEATURE_LEVEL_6_2, 1, 4, types }
static const op_support to_float_support[] = {
    { NULL, 0, 2, OPJIT_MAX_RANK, OP_TYPES_INT_TO_32 },
    { NULL, DML_FEATURE_LEVEL_6_2, 2, 4, OP_TYPES_INT_TO_32 },
    VECTORS("AScaleTensor", OP_TYPES_FLOAT, OP_TYPES(FLOAT64)),
    VECTORS("AZeroPointTensor", OP_TYPES_INT_TO_32, 0),
    VECTORS("BScaleTensor", OP_TYPES_FLOAT, OP_TYPES(FLOAT64)),
    VECTORS("BZeroPointTensor", OP_TYPES_INT_TO_32, 0),
    { "BiasTensor", 0, 2, OPJIT_MAX_RANK, OP_TYPES_FLOAT | OP_TYPES(FLOAT64) },
    { "BiasTensor", DML_FEATURE_LEVEL_6_2, 2, 4, OP_TYPES_FLOAT },
    { "OutputTensor", 0, 2, OPJIT_MAX_RANK, OP_TYPES_FLOAT | OP_TYPES(FLOAT64) },
    { "OutputTensor", DML_FEATURE_LEVEL_6_2, 2, 4, OP_TYPES_FLOAT },
};
/* clang-format on */

/* --- validation --------------------------------------------------------------------------------------------------- */

static bool is_there(const opjit_operator *op, uint32_t input)
{
    return input != ABSENT && op->inputs[input].present;
}

/* Where a scale or zero point of this rank has its elements. */
static uint32_t place_of(uint32_t rank, uint32_t from_end)
{
    return rank < from_end ? 0 : rank - from_end;
}

/* One element, or `count` of them along one dimension. */
static opjit_status check_vector(const opjit_operator *op, uint32_t input, uint32_t from_end, uint64_t count,
                                 opjit_error *error)
{
    if (!is_there(op, input))
        return OPJIT_OK;
    const fe_tensor *t = &op->inputs[input];
    for (uint32_t d = 0; d < t->rank; d++) {
        const bool along = d == place_of(t->rank, from_end);
        if (t->sizes[d] != 1)
            TRY(opjit_fe_check_size(op, op->input_names[input], t, d, along ? count : 1,
                                    along ? ", or 1" : ", as only one dimension may have more", error));
    }
    return OPJIT_OK;
}

static opjit_status check_sizes(const opjit_operator *op, const roles *r, opjit_error *error)
{
    const fe_tensor *a = &op->inputs[r->a], *b = &op->inputs[r->b], *out = &op->outputs[0];
    const uint32_t rank = out->rank;

    TRY(opjit_fe_check_rank(op, "ATensor", a, rank, " as OutputTensor.DimensionCount", error));
    TRY(opjit_fe_check_rank(op, "BTensor", b, rank, " as OutputTensor.DimensionCount", error));
    for (uint32_t d = 0; d + 2 < rank; d++) {
        TRY(opjit_fe_check_size(op, "ATensor", a, d, out->sizes[d], " as OutputTensor.Sizes", error));
        TRY(opjit_fe_check_size(op, "BTensor", b, d, out->sizes[d], " as OutputTensor.Sizes", error));
    }
    TRY(opjit_fe_check_size(op, "ATensor", a, rank - 2, out->sizes[rank - 2], ", the output's rows", error));
    TRY(opjit_fe_check_size(op, "BTensor", b, rank - 1, out->sizes[rank - 1], ", the output's columns", error));
    return opjit_fe_check_size(op, "BTensor", b, rank - 2, a->sizes[rank - 1], " as ATensor has it", error);
}

/* Of the type of another input, where both are there. */
static opjit_status check_type(const opjit_operator *op, uint32_t input, uint32_t as, opjit_error *error)
{
    return is_there(op, input) && is_there(op, as) ? opjit_fe_same_input_type(op, input, as, error) : OPJIT_OK;
}

static opjit_status check(const opjit_operator *op, const roles *r, opjit_error *error)
{
    const uint64_t *sizes = op->outputs[0].sizes;
    const uint32_t rank = op->outputs[0].rank;

    TRY(check_sizes(op, r, error));
    TRY(check_type(op, r->a_zero, r->a, error));
    TRY(check_type(op, r->b_zero, r->b, error));
    TRY(check_type(op, r->b_scale, r->a_scale, error));
    TRY(check_vector(op, r->a_scale, ROWS, sizes[rank - 2], error));
    TRY(check_vector(op, r->a_zero, ROWS, sizes[rank - 2], error));
    TRY(check_vector(op, r->b_scale, COLUMNS, sizes[rank - 1], error));
    TRY(check_vector(op, r->b_zero, COLUMNS, sizes[rank - 1], error));
    TRY(check_vector(op, r->scale, ROWS, sizes[rank - 2], error));
    return check_vector(op, r->zero, ROWS, sizes[rank - 2], error);
}

static opjit_status validate_integer(const opjit_operator *op, opjit_error *error)
{
    return check(op, &of_integer, error);
}

static opjit_status validate_to_float(const opjit_operator *op, opjit_error *error)
{
    const roles *r = &of_to_float;

    TRY(opjit_fe_same_type(op, r->a_scale, 0, error));
    if (is_there(op, r->bias)) {
        TRY(opjit_fe_same_type(op, r->bias, 0, error));
        TRY(opjit_fe_same_sizes(op, r->bias, 0, error));
    }
    return check(op, r, error);
}

static opjit_status validate_quantized(const opjit_operator *op, opjit_error *error)
{
    const roles *r = &of_quantized;

    if (is_there(op, r->zero))
        TRY(opjit_fe_same_type(op, r->zero, 0, error));
    return check(op, r, error);
}

/* --- inference ---------------------------------------------------------------------------------------------------- */

static void infer_sizes(op_inference *s, const roles *r)
{
    const op_shape *a = &s->inputs[r->a], *b = &s->inputs[r->b];
    op_shape made = *a;

    if (a->rank < 2 || b->rank != a->rank)
        return;
    made.sizes[a->rank - 1] = b->sizes[a->rank - 1];
    infer_shape(&s->outputs[0], &made);
}

static void infer_integer(op_inference *s)
{
    infer_type(&s->outputs[0], DML_TENSOR_DATA_TYPE_INT32);
    infer_sizes(s, &of_integer);
}

static void infer_to_float(op_inference *s)
{
    infer_type(&s->outputs[0], s->inputs[of_to_float.a_scale].dtype);
    infer_sizes(s, &of_to_float);
}

static void infer_quantized(op_inference *s)
{
    infer_type(&s->outputs[0], s->inputs[s->inputs[of_quantized.zero].rank != 0 ? of_quantized.zero : 0].dtype);
    infer_sizes(s, &of_quantized);
}

/* --- formulas ----------------------------------------------------------------------------------------------------- */

/* A scale's or zero point's element for this row or column; 0: absent. */
static ir_ref load_vector(op_lowering *l, uint32_t input, ir_ref along)
{
    ir_ref at[OPJIT_MAX_RANK] = { 0 };

    if (!is_there(l->op, input) || l->f->failed)
        return 0;
    const fe_tensor *t = &l->op->inputs[input];
    for (uint32_t d = 0; d < t->rank; d++)
        at[d] = t->sizes[d] == 1 ? opjit_ir_index(l->f, 0) : along;
    return opjit_ir_load(l->f, l->inputs[input], at);
}

/* The sums, in a tensor of the output's sizes. */
static ir_ref lower_sums(op_lowering *l, const roles *r)
{
    const fe_tensor *out = &l->op->outputs[0];
    const uint32_t rank = out->rank;
    ir_ref at[OPJIT_MAX_RANK], of[OPJIT_MAX_RANK];
    const ir_ref sums = opjit_fe_reduce_to(l, IR_DOT, IR_I32, out, l->op->inputs[r->a].sizes[rank - 1]);

    opjit_fe_own(l, sums, at);
    if (l->f->failed)
        return 0;
    const ir_ref k = opjit_ir_reduced(l->f, sums);
    memcpy(of, at, sizeof of);
    of[rank - 1] = k;
    const ir_ref a =
        opjit_fe_difference(l->f, opjit_ir_load(l->f, l->inputs[r->a], of), load_vector(l, r->a_zero, at[rank - 2]));
    memcpy(of, at, sizeof of);
    of[rank - 2] = k;
    const ir_ref b =
        opjit_fe_difference(l->f, opjit_ir_load(l->f, l->inputs[r->b], of), load_vector(l, r->b_zero, at[rank - 1]));
    opjit_fe_set(l, sums, ir_expr2(l->f, IR_PAIR, IR_I32, a, b));
    return sums;
}

static void lower_integer(op_lowering *l)
{
    const ir_ref sums = lower_sums(l, &of_integer), out = opjit_fe_output(l, 0);
    ir_ref at[OPJIT_MAX_RANK];

    opjit_fe_own(l, out, at);
    opjit_fe_set(l, out, opjit_fe_value_at(l, sums, 0, at));
}

/* A scale in the type that is computed in. */
static ir_ref load_scale(op_lowering *l, const op_element *e, uint32_t input, ir_ref along)
{
    const ir_ref x = load_vector(l, input, along);

    return l->f->failed || ir_at(l->f, x)->type == e->type ? x : cast_to(e, e->type, x);
}

/* The sum as a float, times both scales. */
static ir_ref scaled(op_lowering *l, const op_element *e, const roles *r, ir_ref sums, const ir_ref *at)
{
    const uint32_t rank = l->op->outputs[0].rank;
    const ir_ref sum = cast_to(e, e->type, opjit_fe_value_at(l, sums, 0, at));
    const ir_ref a = load_scale(l, e, r->a_scale, at[rank - 2]);

    return op2(e, IR_MUL, sum, op2(e, IR_MUL, a, load_scale(l, e, r->b_scale, at[rank - 1])));
}

static void lower_to_float(op_lowering *l)
{
    const roles *r = &of_to_float;
    op_element e = { .f = l->f, .desc = l->op->desc, .result = opjit_fe_output_type(l, 0), .masks = l->masks };
    ir_ref at[OPJIT_MAX_RANK];

    e.type = opjit_fe_wide(e.result);
    const ir_ref sums = lower_sums(l, r), out = opjit_fe_output(l, 0);
    opjit_fe_own(l, out, at);
    ir_ref x = scaled(l, &e, r, sums, at);
    if (is_there(l->op, r->bias)) {
        const ir_ref bias = l->f->failed ? 0 : opjit_ir_load(l->f, l->inputs[r->bias], at);
        x = op2(&e, IR_ADD, x, e.type == e.result ? bias : cast_to(&e, e.type, bias));
    }
    opjit_fe_set(l, out, x);
}

static void lower_quantized(op_lowering *l)
{
    const roles *r = &of_quantized;
    const op_element e = { .f = l->f, .type = IR_F32, .result = opjit_fe_output_type(l, 0), .masks = l->masks };
    const uint32_t rank = l->op->outputs[0].rank;
    const ir_ref sums = lower_sums(l, r), out = opjit_fe_output(l, 0);
    ir_ref at[OPJIT_MAX_RANK];

    opjit_fe_own(l, out, at);
    const ir_ref row = at[rank - 2], sum = opjit_fe_value_at(l, sums, 0, at);
    opjit_fe_set(l, out,
                 opjit_fe_requantize(&e, sum, load_vector(l, r->a_scale, row), load_vector(l, r->b_scale, at[rank - 1]),
                                     load_vector(l, r->scale, row), load_vector(l, r->zero, row)));
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

const op_def opjit_fe_op_matrix_multiply_integer = {
    .type = DML_OPERATOR_MATRIX_MULTIPLY_INTEGER,
    .name = "MATRIX_MULTIPLY_INTEGER",
    .formula = "(A - AZeroPoint) * (B - BZeroPoint), products of matrices in INT32",
    .desc_size = sizeof(INTEGER),
    OP_ROWS(integer_fields, integer_support),
    .introduced = DML_FEATURE_LEVEL_2_1,
    .validate = validate_integer,
    .infer = infer_integer,
    .lower = lower_integer,
};

const op_def opjit_fe_op_matrix_multiply_integer_to_float = {
    .type = DML_OPERATOR_MATRIX_MULTIPLY_INTEGER_TO_FLOAT,
    .name = "MATRIX_MULTIPLY_INTEGER_TO_FLOAT",
    .formula = "(A - AZeroPoint) * (B - BZeroPoint) * (AScale * BScale) + Bias, products of matrices",
    .desc_size = sizeof(TO_FLOAT),
    OP_ROWS(to_float_fields, to_float_support),
    .introduced = DML_FEATURE_LEVEL_6_2,
    .validate = validate_to_float,
    .infer = infer_to_float,
    .lower = lower_to_float,
};

const op_def opjit_fe_op_quantized_linear_matrix_multiply = {
    .type = DML_OPERATOR_QUANTIZED_LINEAR_MATRIX_MULTIPLY,
    .name = "QUANTIZED_LINEAR_MATRIX_MULTIPLY",
    .formula =
        "(A - AZeroPoint) * (B - BZeroPoint) * (AScale * BScale / OutputScale), rounded, + OutputZeroPoint, products "
        "of matrices",
    .desc_size = sizeof(QUANTIZED),
    OP_ROWS(quantized_fields, quantized_support),
    .introduced = DML_FEATURE_LEVEL_2_1,
    .validate = validate_quantized,
    .infer = infer_quantized,
    .lower = lower_quantized,
};
