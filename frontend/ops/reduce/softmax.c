/* SPDX-License-Identifier: Apache-2.0 */
/* softmax.c - SOFTMAX, LOG_SOFTMAX, HARDMAX over the last dimension, and their "1" forms over Axes.  With m the maximum
 * and e = exp(x - m), softmax is e times the reciprocal of the sum of e, and 0 where x is -inf. */
#include "frontend/ops/infer.h"
#include "frontend/ops/reduce.h"

#define SOFTMAX DML_ACTIVATION_SOFTMAX_OPERATOR_DESC   /* the three have the same fields */
#define SOFTMAX1 DML_ACTIVATION_SOFTMAX1_OPERATOR_DESC /* so do these */

/* clang-format off */
static const op_field fields[] = {
    OP_FIELD(SOFTMAX, InputTensor, OP_INPUT, 0),
    OP_FIELD(SOFTMAX, OutputTensor, OP_OUTPUT, 0),
};
static const op_field fields1[] = {
    OP_FIELD(SOFTMAX1, InputTensor, OP_INPUT, 0),
    OP_FIELD(SOFTMAX1, OutputTensor, OP_OUTPUT, 0),
    OP_FIELD(SOFTMAX1, AxisCount, OP_UINT, OP_COUNT),
    OP_FIELD_ARRAY(SOFTMAX1, Axes, AxisCount, OP_UINTS, 0),
};
/* clang-format on */

static const op_support support[] = {
    { NULL, 0, 1, OPJIT_MAX_RANK, OP_TYPES_FLOAT | OP_TYPES(FLOAT64) },
    { NULL, DML_FEATURE_LEVEL_1_0, 1, OPJIT_MAX_RANK, OP_TYPES_FLOAT },
};
static const op_support support1[] = {
    { NULL, 0, 1, OPJIT_MAX_RANK, OP_TYPES_FLOAT | OP_TYPES(FLOAT64) },
    { NULL, DML_FEATURE_LEVEL_5_1, 1, OPJIT_MAX_RANK, OP_TYPES_FLOAT },
};

/* DirectML allows these for matrices: at most two sizes, leading sizes of 1 aside. */
static opjit_status validate(const opjit_operator *op, opjit_error *error)
{
    const fe_tensor *t = &op->inputs[0];
    uint32_t rank = t->rank;

    TRY(opjit_fe_same_shape(op, 0, 0, error));
    while (rank > 0 && t->sizes[t->rank - rank] == 1)
        rank--;
    if (op->level == 0 || rank <= 2)
        return OPJIT_OK;
    return opjit_rt_refuse(
        error, OPJIT_UNSUPPORTED,
        "{%s} {InputTensor.Sizes}: {%u} dimensions after the leading ones, must be at most 2 at feature "
        "level %u.%u",
        op->def->name, rank, (unsigned)(op->level >> 12), (unsigned)(op->level >> 8 & 0xf));
}

static opjit_status validate1(const opjit_operator *op, opjit_error *error)
{
    const SOFTMAX1 *desc = op->desc;

    TRY(opjit_fe_same_shape(op, 0, 0, error));
    return opjit_fe_check_axes(op, desc->Axes, desc->AxisCount, error);
}

/* --- formulas ----------------------------------------------------------------------------------------------------- */

static ir_type wide_of(const op_lowering *l)
{
    return opjit_fe_wide(opjit_fe_output_type(l, 0));
}

static ir_ref lower_max(op_lowering *l, uint32_t axes)
{
    ir_ref at[OPJIT_MAX_RANK];
    const ir_ref max = opjit_fe_reduce(l, IR_KMAX, wide_of(l), axes, at);

    opjit_ir_set_value(l->f, max, opjit_fe_wide_input(l, at));
    return max;
}

/* exp(x - m) where m is the maximum.  States that the difference is at most 0, because exp is cheaper then.  A first
 * operand that is a number saves looking for a NaN. */
static ir_ref exp_below(ir_func *f, ir_type wide, ir_ref x, ir_ref m)
{
    const ir_ref below = ir_expr2(f, IR_MIN, wide, opjit_ir_const(f, wide, 0), ir_expr2(f, IR_SUB, wide, x, m));
    return ir_expr1(f, IR_EXP, wide, below);
}

ir_ref opjit_fe_exp_below(ir_func *f, ir_type type, ir_ref x, ir_ref m)
{
    if (f->failed)
        return 0;
    const ir_ref none = opjit_ir_const(f, type, type == IR_F64 ? 0xfff0000000000000u : 0xff800000u);
    const ir_ref e = exp_below(f, type, x, m);
    return ir_expr3(f, IR_SELECT, type, ir_expr2(f, IR_EQ, IR_BOOL, x, none), opjit_ir_const(f, type, 0), e);
}

static void lower_softmax_over(op_lowering *l, uint32_t axes)
{
    ir_func *f = l->f;
    const ir_type wide = wide_of(l);
    const ir_ref max = lower_max(l, axes);
    ir_ref at[OPJIT_MAX_RANK];
    const ir_ref e = opjit_fe_def(l, wide, 0);

    opjit_fe_own(l, e, at);
    const ir_ref x = opjit_fe_wide_input(l, at);
    opjit_ir_set_value(f, e, opjit_fe_exp_below(f, wide, x, opjit_fe_value_at(l, max, axes, at)));
    const ir_ref sum = opjit_fe_reduce(l, IR_SUM, wide, axes, at);
    opjit_ir_set_value(f, sum, opjit_fe_value_at(l, e, 0, at));
    const ir_ref scale = opjit_fe_def(l, wide, axes);
    opjit_fe_own(l, scale, at);
    const ir_ref total = opjit_fe_value_at(l, sum, 0, at);
    if (f->failed)
        return;
    opjit_ir_set_value(f, scale, ir_expr2(f, IR_DIV, wide, opjit_fe_real(f, wide, 1), total));
    const ir_ref out = opjit_fe_output(l, 0);
    opjit_fe_own(l, out, at);
    const ir_ref y = opjit_fe_value_at(l, e, 0, at), by = opjit_fe_value_at(l, scale, axes, at);
    if (!f->failed)
        opjit_fe_set(l, out, ir_expr2(f, IR_MUL, wide, y, by));
}

/* (x - m) - log of the sum of exp(x - m) */
static void lower_log_softmax_over(op_lowering *l, uint32_t axes)
{
    ir_func *f = l->f;
    const ir_type wide = wide_of(l);
    const ir_ref max = lower_max(l, axes);
    ir_ref at[OPJIT_MAX_RANK];
    const ir_ref sum = opjit_fe_reduce(l, IR_SUM, wide, axes, at);
    const ir_ref x = opjit_fe_wide_input(l, at), m = opjit_fe_value_at(l, max, axes, at);

    if (f->failed)
        return;
    opjit_ir_set_value(f, sum, exp_below(f, wide, x, m));
    const ir_ref log = opjit_fe_def(l, wide, axes);
    opjit_fe_own(l, log, at);
    const ir_ref total = opjit_fe_value_at(l, sum, 0, at);
    if (f->failed)
        return;
    opjit_ir_set_value(f, log, ir_expr1(f, IR_LOG, wide, total));
    const ir_ref out = opjit_fe_output(l, 0);
    opjit_fe_own(l, out, at);
    const ir_ref own = opjit_fe_wide_input(l, at), most = opjit_fe_value_at(l, max, axes, at);
    const ir_ref less = opjit_fe_value_at(l, log, axes, at);
    if (!f->failed)
        opjit_fe_set(l, out, ir_expr2(f, IR_SUB, wide, ir_expr2(f, IR_SUB, wide, own, most), less));
}

/* 1 at the index that ARGMAX gives, else 0. */
static void lower_hardmax_over(op_lowering *l, uint32_t axes)
{
    ir_func *f = l->f;
    const fe_tensor *in = &l->op->inputs[0];
    ir_ref at[OPJIT_MAX_RANK];
    const ir_ref arg = opjit_fe_reduce(l, IR_ARGMAX, IR_U32, axes, at);

    opjit_ir_set_value(f, arg, opjit_fe_wide_input(l, at));
    const ir_ref out = opjit_fe_output(l, 0);
    opjit_fe_own(l, out, at);
    const ir_ref chosen = opjit_fe_value_at(l, arg, axes, at);
    ir_ref number = opjit_ir_index(f, 0);
    for (uint32_t d = 0; d < in->rank && !f->failed; d++)
        if ((axes >> d & 1) != 0)
            number = ir_expr2(f, IR_IADD, IR_INDEX,
                              ir_expr2(f, IR_IMUL, IR_INDEX, number, opjit_ir_index(f, (int64_t)in->sizes[d])), at[d]);
    if (f->failed)
        return;
    const ir_type wide = wide_of(l);
    const ir_ref hit = ir_expr2(f, IR_EQ, IR_BOOL, ir_expr1(f, IR_ELEM, IR_U32, number), chosen);
    opjit_fe_set(l, out, ir_expr3(f, IR_SELECT, wide, hit, opjit_fe_real(f, wide, 1), opjit_ir_const(f, wide, 0)));
}

static uint32_t last_axis(const op_lowering *l)
{
    return 1u << (l->op->inputs[0].rank - 1);
}

static uint32_t axes_of(const op_lowering *l)
{
    const SOFTMAX1 *desc = l->op->desc;

    return opjit_fe_axes_mask(desc->Axes, desc->AxisCount);
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

#define ROW(symbol, NAME, formula_, level, desc_, fields_, support_, validate_, axes_) \
    static void lower_##symbol(op_lowering *l)                                         \
    {                                                                                  \
        lower_over_##symbol(l, axes_(l));                                              \
    }                                                                                  \
    const op_def opjit_fe_op_activation_##symbol = {                                   \
        .type = DML_OPERATOR_ACTIVATION_##NAME,                                        \
        .name = "ACTIVATION_" #NAME,                                                   \
        .formula = formula_,                                                           \
        .desc_size = sizeof(desc_),                                                    \
        OP_ROWS(fields_, support_),                                                    \
        .introduced = DML_FEATURE_LEVEL_##level,                                       \
        .validate = validate_,                                                         \
        .infer = opjit_fe_infer_same,                                                  \
        .lower = lower_##symbol,                                                       \
    };
#define lower_over_softmax lower_softmax_over
#define lower_over_softmax1 lower_softmax_over
#define lower_over_log_softmax lower_log_softmax_over
#define lower_over_log_softmax1 lower_log_softmax_over
#define lower_over_hardmax lower_hardmax_over
#define lower_over_hardmax1 lower_hardmax_over

ROW(softmax, SOFTMAX, "exp(x - max) / sum of it, over the last dimension", 1_0, SOFTMAX, fields, support, validate,
    last_axis)
ROW(log_softmax, LOG_SOFTMAX, "x - max - log(sum(exp(x - max))), over the last dimension", 1_0, SOFTMAX, fields,
    support, validate, last_axis)
ROW(hardmax, HARDMAX, "1 at the first maximum of the last dimension, else 0", 1_0, SOFTMAX, fields, support, validate,
    last_axis)
ROW(softmax1, SOFTMAX1, "exp(x - max) / sum of it, over Axes", 5_1, SOFTMAX1, fields1, support1, validate1, axes_of)
ROW(log_softmax1, LOG_SOFTMAX1, "x - max - log(sum(exp(x - max))), over Axes", 5_1, SOFTMAX1, fields1, support1,
    validate1, axes_of)
ROW(hardmax1, HARDMAX1, "1 at the first maximum over Axes, else 0", 5_1, SOFTMAX1, fields1, support1, validate1,
    axes_of)
