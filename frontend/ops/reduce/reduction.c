/* SPDX-License-Identifier: Apache-2.0 */
/* reduction.c - REDUCE with its twelve functions, ARGMIN, ARGMAX: one number from all elements along some axes.  The
 * order of the elements is that of ir/README.md; FLOAT16 accumulates in FLOAT32. */
#include "frontend/ops/infer.h"
#include "frontend/ops/reduce.h"

#define REDUCE DML_REDUCE_OPERATOR_DESC
#define TYPES_WHOLE (OP_TYPES_INT_64 | OP_TYPES(INT32) | OP_TYPES(UINT32))
#define TYPES_REAL (OP_TYPES_FLOAT | OP_TYPES(FLOAT64))

/* clang-format off */
static const op_enum_name function_names[] = {
    { "DML_REDUCE_FUNCTION_ARGMAX", DML_REDUCE_FUNCTION_ARGMAX },
    { "DML_REDUCE_FUNCTION_ARGMIN", DML_REDUCE_FUNCTION_ARGMIN },
    { "DML_REDUCE_FUNCTION_AVERAGE", DML_REDUCE_FUNCTION_AVERAGE },
    { "DML_REDUCE_FUNCTION_L1", DML_REDUCE_FUNCTION_L1 },
    { "DML_REDUCE_FUNCTION_L2", DML_REDUCE_FUNCTION_L2 },
    { "DML_REDUCE_FUNCTION_LOG_SUM", DML_REDUCE_FUNCTION_LOG_SUM },
    { "DML_REDUCE_FUNCTION_LOG_SUM_EXP", DML_REDUCE_FUNCTION_LOG_SUM_EXP },
    { "DML_REDUCE_FUNCTION_MAX", DML_REDUCE_FUNCTION_MAX },
    { "DML_REDUCE_FUNCTION_MIN", DML_REDUCE_FUNCTION_MIN },
    { "DML_REDUCE_FUNCTION_MULTIPLY", DML_REDUCE_FUNCTION_MULTIPLY },
    { "DML_REDUCE_FUNCTION_SUM", DML_REDUCE_FUNCTION_SUM },
    { "DML_REDUCE_FUNCTION_SUM_SQUARE", DML_REDUCE_FUNCTION_SUM_SQUARE },
    { NULL, 0 },
};
static const op_enum function_enum = { "DML_REDUCE_FUNCTION_", function_names };

static const op_field reduce_fields[] = {
    OP_FIELD_ENUM(REDUCE, Function, &function_enum),
    OP_FIELD(REDUCE, InputTensor, OP_INPUT, 0),
    OP_FIELD(REDUCE, OutputTensor, OP_OUTPUT, 0),
    OP_FIELD(REDUCE, AxisCount, OP_UINT, OP_COUNT),
    OP_FIELD_ARRAY(REDUCE, Axes, AxisCount, OP_UINTS, 0),
};
/* clang-format on */

static const op_support reduce_support[] = {
    { NULL, 0, 1, OPJIT_MAX_RANK, OP_TYPES_ALL },
    { NULL, DML_FEATURE_LEVEL_1_0, 1, OPJIT_MAX_RANK, OP_TYPES_ALL & ~OP_TYPES(FLOAT64) },
};

static uint32_t types_of(DML_REDUCE_FUNCTION function)
{
    switch (function) {
    case DML_REDUCE_FUNCTION_SUM:
    case DML_REDUCE_FUNCTION_L1:
    case DML_REDUCE_FUNCTION_SUM_SQUARE:
    case DML_REDUCE_FUNCTION_MULTIPLY: return TYPES_REAL | TYPES_WHOLE;
    case DML_REDUCE_FUNCTION_MIN:
    case DML_REDUCE_FUNCTION_MAX:
    case DML_REDUCE_FUNCTION_ARGMIN:
    case DML_REDUCE_FUNCTION_ARGMAX: return OP_TYPES_ALL;
    default: return TYPES_REAL;
    }
}

static opjit_status check_type(const opjit_operator *op, const char *name, const fe_tensor *t, uint32_t types,
                               opjit_error *error)
{
    char text[FE_TYPES_TEXT];

    if ((types >> t->dtype & 1) != 0)
        return OPJIT_OK;
    opjit_fe_types_text(types, text);
    return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{%s} {%s.DataType}: {%s}, must be %s", op->def->name, name,
                           opjit_rt_dtype_name(t->dtype), text);
}

static opjit_status validate_reduce(const opjit_operator *op, opjit_error *error)
{
    const REDUCE *desc = op->desc;
    const bool arg = desc->Function == DML_REDUCE_FUNCTION_ARGMAX || desc->Function == DML_REDUCE_FUNCTION_ARGMIN;

    TRY(check_type(op, "InputTensor", &op->inputs[0], types_of(desc->Function), error));
    if (arg)
        TRY(check_type(op, "OutputTensor", &op->outputs[0], TYPES_WHOLE, error));
    else
        TRY(opjit_fe_same_type(op, 0, 0, error));
    return opjit_fe_check_reduced(op, desc->Axes, desc->AxisCount, error);
}

static void infer_reduce(op_inference *s)
{
    const REDUCE *desc = s->desc;
    const bool arg = desc->Function == DML_REDUCE_FUNCTION_ARGMAX || desc->Function == DML_REDUCE_FUNCTION_ARGMIN;

    infer_type(&s->outputs[0], arg ? DML_TENSOR_DATA_TYPE_UINT32 : s->inputs[0].dtype);
    opjit_fe_infer_reduced(s, desc->Axes, desc->AxisCount);
}

/* --- formulas ----------------------------------------------------------------------------------------------------- */

/* Reduces f(x) and returns the result at the output's coordinates; *out_statement is the output's statement. */
static ir_ref lower_simple(op_lowering *l, ir_kind kind, DML_REDUCE_FUNCTION function, uint32_t axes, ir_ref *out)
{
    ir_func *f = l->f;
    const ir_type wide = opjit_fe_wide(opjit_ir_type_of(l->op->inputs[0].dtype));
    ir_ref at[OPJIT_MAX_RANK];
    const ir_ref def = opjit_fe_reduce(l, kind, kind >= IR_ARGMIN ? opjit_fe_output_type(l, 0) : wide, axes, at);
    ir_ref x = opjit_fe_wide_input(l, at);

    if (f->failed)
        return 0;
    if (function == DML_REDUCE_FUNCTION_L1)
        x = ir_is_float(wide) || ir_is_signed(wide) ? ir_expr1(f, IR_ABS, wide, x) : x;
    if (function == DML_REDUCE_FUNCTION_L2 || function == DML_REDUCE_FUNCTION_SUM_SQUARE)
        x = ir_expr2(f, IR_MUL, wide, x, x);
    opjit_ir_set_value(f, def, x);
    *out = opjit_fe_output(l, 0);
    opjit_fe_own(l, *out, at);
    return opjit_fe_value_at(l, def, 0, at);
}

/* m + log of the sum of exp(x - m), where m is the maximum if that is finite, else 0. */
static void lower_log_sum_exp(op_lowering *l, uint32_t axes)
{
    ir_func *f = l->f;
    const ir_type wide = opjit_fe_wide(opjit_ir_type_of(l->op->inputs[0].dtype));
    ir_ref at[OPJIT_MAX_RANK];
    const ir_ref max = opjit_fe_reduce(l, IR_KMAX, wide, axes, at);
    const ir_ref x = opjit_fe_wide_input(l, at);

    if (f->failed)
        return;
    opjit_ir_set_value(f, max, x);
    const ir_ref finite = opjit_fe_def(l, wide, axes);
    opjit_fe_own(l, finite, at);
    const ir_ref m = opjit_fe_value_at(l, max, 0, at), zero = opjit_ir_const(f, wide, 0);
    if (f->failed)
        return;
    const ir_ref is_finite = ir_expr2(f, IR_EQ, IR_BOOL, ir_expr2(f, IR_SUB, wide, m, m), zero);
    opjit_ir_set_value(f, finite, ir_expr3(f, IR_SELECT, wide, is_finite, m, zero));
    const ir_ref sum = opjit_fe_reduce(l, IR_SUM, wide, axes, at);
    const ir_ref moved = ir_expr2(f, IR_SUB, wide, opjit_fe_wide_input(l, at), opjit_fe_value_at(l, finite, axes, at));
    if (f->failed)
        return;
    opjit_ir_set_value(f, sum, ir_expr1(f, IR_EXP, wide, moved));
    const ir_ref out = opjit_fe_output(l, 0);
    opjit_fe_own(l, out, at);
    const ir_ref log = ir_expr1(f, IR_LOG, wide, opjit_fe_value_at(l, sum, 0, at));
    opjit_fe_set(l, out, ir_expr2(f, IR_ADD, wide, opjit_fe_value_at(l, finite, 0, at), log));
}

static ir_kind kind_of(DML_REDUCE_FUNCTION function)
{
    switch (function) {
    case DML_REDUCE_FUNCTION_MAX: return IR_KMAX;
    case DML_REDUCE_FUNCTION_MIN: return IR_KMIN;
    case DML_REDUCE_FUNCTION_MULTIPLY: return IR_PROD;
    case DML_REDUCE_FUNCTION_ARGMAX: return IR_ARGMAX;
    case DML_REDUCE_FUNCTION_ARGMIN: return IR_ARGMIN;
    default: return IR_SUM;
    }
}

static void lower_reduce(op_lowering *l)
{
    const REDUCE *desc = l->op->desc;
    const uint32_t axes = opjit_fe_axes_mask(desc->Axes, desc->AxisCount);
    ir_func *f = l->f;
    ir_ref out = 0;

    if (desc->Function == DML_REDUCE_FUNCTION_LOG_SUM_EXP) {
        lower_log_sum_exp(l, axes);
        return;
    }
    ir_ref x = lower_simple(l, kind_of(desc->Function), desc->Function, axes, &out);
    if (f->failed)
        return;
    const ir_type type = (ir_type)ir_at(f, x)->type;
    if (desc->Function == DML_REDUCE_FUNCTION_AVERAGE)
        x = ir_expr2(f, IR_DIV, type, x, opjit_fe_real(f, type, opjit_fe_reduced_count(l, axes)));
    else if (desc->Function == DML_REDUCE_FUNCTION_L2)
        x = ir_expr1(f, IR_SQRT, type, x);
    else if (desc->Function == DML_REDUCE_FUNCTION_LOG_SUM)
        x = ir_expr1(f, IR_LOG, type, x);
    opjit_fe_set(l, out, x);
}

const op_def opjit_fe_op_reduce = {
    .type = DML_OPERATOR_REDUCE,
    .name = "REDUCE",
    .formula = "Output = Function over the elements of Input along Axes",
    .desc_size = sizeof(REDUCE),
    OP_ROWS(reduce_fields, reduce_support),
    .introduced = DML_FEATURE_LEVEL_1_0,
    .validate = validate_reduce,
    .infer = infer_reduce,
    .lower = lower_reduce,
};

/* --- ARGMIN and ARGMAX -------------------------------------------------------------------------------------------- */

#define ARG DML_ARGMAX_OPERATOR_DESC /* DML_ARGMIN_OPERATOR_DESC has the same fields */

/* clang-format off */
static const op_field arg_fields[] = {
    OP_FIELD(ARG, InputTensor, OP_INPUT, 0),
    OP_FIELD(ARG, OutputTensor, OP_OUTPUT, 0),
    OP_FIELD(ARG, AxisCount, OP_UINT, OP_COUNT),
    OP_FIELD_ARRAY(ARG, Axes, AxisCount, OP_UINTS, 0),
    OP_FIELD_ENUM(ARG, AxisDirection, &opjit_fe_axis_directions),
};
/* clang-format on */

static const op_support arg_support[] = {
    { NULL, 0, 1, OPJIT_MAX_RANK, OP_TYPES_ALL },
    { NULL, DML_FEATURE_LEVEL_3_0, 1, OPJIT_MAX_RANK, OP_TYPES_ALL & ~OP_TYPES(FLOAT64) },
    { "OutputTensor", DML_FEATURE_LEVEL_3_0, 1, OPJIT_MAX_RANK, TYPES_WHOLE },
};

static opjit_status validate_arg(const opjit_operator *op, opjit_error *error)
{
    const ARG *desc = op->desc;

    return opjit_fe_check_reduced(op, desc->Axes, desc->AxisCount, error);
}

static void infer_arg(op_inference *s)
{
    const ARG *desc = s->desc;

    infer_type(&s->outputs[0], DML_TENSOR_DATA_TYPE_UINT32);
    opjit_fe_infer_reduced(s, desc->Axes, desc->AxisCount);
}

static void lower_arg(op_lowering *l, ir_kind first, ir_kind last)
{
    const ARG *desc = l->op->desc;
    const ir_kind kind = desc->AxisDirection == DML_AXIS_DIRECTION_INCREASING ? first : last;
    ir_ref out = 0;
    const ir_ref x = lower_simple(l, kind, DML_REDUCE_FUNCTION_MAX,
                                  opjit_fe_axes_mask(desc->Axes, desc->AxisCount), &out);

    opjit_fe_set(l, out, x);
}

static void lower_argmin(op_lowering *l)
{
    lower_arg(l, IR_ARGMIN, IR_ARGMIN_LAST);
}

static void lower_argmax(op_lowering *l)
{
    lower_arg(l, IR_ARGMAX, IR_ARGMAX_LAST);
}

const op_def opjit_fe_op_argmin = {
    .type = DML_OPERATOR_ARGMIN,
    .name = "ARGMIN",
    .formula = "Output = number of the least element of Input along Axes",
    .desc_size = sizeof(ARG),
    OP_ROWS(arg_fields, arg_support),
    .introduced = DML_FEATURE_LEVEL_3_0,
    .validate = validate_arg,
    .infer = infer_arg,
    .lower = lower_argmin,
};

const op_def opjit_fe_op_argmax = {
    .type = DML_OPERATOR_ARGMAX,
    .name = "ARGMAX",
    .formula = "Output = number of the greatest element of Input along Axes",
    .desc_size = sizeof(ARG),
    OP_ROWS(arg_fields, arg_support),
    .introduced = DML_FEATURE_LEVEL_3_0,
    .validate = validate_arg,
    .infer = infer_arg,
    .lower = lower_argmax,
};
