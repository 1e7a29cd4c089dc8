/* SPDX-License-Identifier: Apache-2.0 */
/* local_response.c - LOCAL_RESPONSE_NORMALIZATION and its gradient: an element over a power of Bias + Alpha / LocalSize
 * times the sum of squares around it, along channels or in a plane.
 *
 * What the documents leave open: LocalSize elements are (LocalSize - 1) / 2 before an element, LocalSize / 2 behind it
 * and itself, in a plane in both dimensions; Alpha is divided by LocalSize in a plane, too.  With D the sum with its
 * Bias, the gradient is InputGradient / D^Beta - 2 * Alpha / LocalSize * Beta * Input * S, where S is the sum of
 * InputGradient * Input / D^(Beta + 1) over the elements that have this one around them. */
#include "frontend/ops/infer.h"
#include "frontend/ops/moves.h"
#include "frontend/ops/pointwise.h"
#include "frontend/ops/reduce.h"

#define DESC DML_LOCAL_RESPONSE_NORMALIZATION_OPERATOR_DESC
#define GRAD DML_LOCAL_RESPONSE_NORMALIZATION_GRAD_OPERATOR_DESC

enum { INPUT, GRADIENT };          /* positions */
enum { CHANNEL = 1, ROW, COLUMN }; /* dimensions */

/* clang-format off */
static const op_field fields[] = {
    OP_FIELD(DESC, InputTensor, OP_INPUT, 0),
    OP_FIELD(DESC, OutputTensor, OP_OUTPUT, 0),
    OP_FIELD(DESC, CrossChannel, OP_BOOL, 0),
    OP_FIELD(DESC, LocalSize, OP_UINT, 0),
    OP_FIELD(DESC, Alpha, OP_FLOAT, 0),
    OP_FIELD(DESC, Beta, OP_FLOAT, 0),
    OP_FIELD(DESC, Bias, OP_FLOAT, 0),
};
static const op_field grad_fields[] = {
    OP_FIELD(GRAD, InputTensor, OP_INPUT, 0),
    OP_FIELD(GRAD, InputGradientTensor, OP_INPUT, 0),
    OP_FIELD(GRAD, OutputGradientTensor, OP_OUTPUT, 0),
    OP_FIELD(GRAD, CrossChannel, OP_BOOL, 0),
    OP_FIELD(GRAD, LocalSize, OP_UINT, 0),
    OP_FIELD(GRAD, Alpha, OP_FLOAT, 0),
    OP_FIELD(GRAD, Beta, OP_FLOAT, 0),
    OP_FIELD(GRAD, Bias, OP_FLOAT, 0),
};
/* clang-format on */

static const op_support support[] = {
    { NULL, 0, 4, 4, OP_TYPES_FLOAT | OP_TYPES(FLOAT64) },
    { NULL, DML_FEATURE_LEVEL_1_0, 4, 4, OP_TYPES_FLOAT },
};
static const op_support grad_support[] = {
    { NULL, 0, 4, 4, OP_TYPES_FLOAT | OP_TYPES(FLOAT64) },
    { NULL, DML_FEATURE_LEVEL_3_1, 4, 4, OP_TYPES_FLOAT },
};

/* What both have: which elements are around one, and the numbers of the formula. */
typedef struct form {
    bool across;
    uint32_t size;
    float alpha, beta, bias;
} form;

static form form_of(const DESC *d)
{
    return (form){ d->CrossChannel != 0, d->LocalSize, d->Alpha, d->Beta, d->Bias };
}

static form form_of_grad(const GRAD *d)
{
    return (form){ d->CrossChannel != 0, d->LocalSize, d->Alpha, d->Beta, d->Bias };
}

static opjit_status check_size(const opjit_operator *op, uint32_t size, opjit_error *error)
{
    if (size > 0)
        return OPJIT_OK;
    return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{%s} {LocalSize}: {0}, must be at least 1", op->def->name);
}

static opjit_status validate(const opjit_operator *op, opjit_error *error)
{
    TRY(opjit_fe_same_shape(op, INPUT, 0, error));
    return check_size(op, form_of(op->desc).size, error);
}

static opjit_status validate_grad(const opjit_operator *op, opjit_error *error)
{
    TRY(opjit_fe_same_shape(op, INPUT, 0, error));
    TRY(opjit_fe_same_shape(op, GRADIENT, 0, error));
    return check_size(op, form_of_grad(op->desc).size, error);
}

/* --- formulas ----------------------------------------------------------------------------------------------------- */

/* Elements before and behind one along a dimension, as far as there can be any. */
typedef struct reach {
    uint64_t before, behind;
} reach;

static reach reach_of(const op_lowering *l, uint32_t size, uint32_t dimension, bool mirrored)
{
    const uint64_t most = l->op->inputs[0].sizes[dimension] - 1, first = (size - 1) / 2, second = size / 2;
    const reach r = { mirrored ? second : first, mirrored ? first : second };

    return (reach){ r.before < most ? r.before : most, r.behind < most ? r.behind : most };
}

/* A sum of all around each element, or, mirrored, of all that have it around them.  The caller sets the value of a term
 * at at[], which is inside of the tensor where *inside is true. */
static ir_ref lower_around(op_lowering *l, const op_element *e, const form *n, bool mirrored, ir_ref at[OPJIT_MAX_RANK],
                           ir_ref *inside)
{
    ir_func *f = l->f;
    const uint32_t first = n->across ? CHANNEL : ROW, last = n->across ? CHANNEL : COLUMN;
    uint64_t count = 1, below = 1;

    for (uint32_t d = first; d <= last; d++) {
        const reach r = reach_of(l, n->size, d, mirrored);
        count *= r.before + 1 + r.behind;
    }
    const ir_ref sum = opjit_fe_reduce_to(l, IR_SUM, e->type, &l->op->outputs[0], count);
    opjit_fe_own(l, sum, at);
    *inside = 0;
    for (uint32_t d = last; d >= first && !f->failed; d--) {
        const reach r = reach_of(l, n->size, d, mirrored);
        const uint64_t length = r.before + 1 + r.behind;
        const ir_ref step = ir_expr2(f, IR_IDIV, IR_INDEX, opjit_ir_reduced(f, sum), opjit_ir_index(f, (int64_t)below));
        const ir_ref own = ir_expr2(f, IR_IMOD, IR_INDEX, step, opjit_ir_index(f, (int64_t)length));
        at[d] = moves_add(f, ir_expr2(f, IR_IADD, IR_INDEX, at[d], own), -(int64_t)r.before);
        const ir_ref in = opjit_fe_between(f, at[d], 0, l->op->inputs[0].sizes[d]);
        *inside = *inside == 0 ? in : ir_expr2(f, IR_AND, IR_BOOL, *inside, in);
        below *= length;
    }
    return sum;
}

/* Alpha / LocalSize */
static ir_ref factor(const op_element *e, const form *n)
{
    return op2(e, IR_DIV, opjit_fe_number(e, n->alpha), opjit_fe_real(e->f, e->type, n->size));
}

/* A definition of Bias + Alpha / LocalSize * the sum of squares around each element. */
static ir_ref lower_divisor(op_lowering *l, const op_element *e, const form *n)
{
    ir_ref at[OPJIT_MAX_RANK], inside;
    const ir_ref sum = lower_around(l, e, n, false, at, &inside);
    const ir_ref x = opjit_fe_wide_input(l, at);

    opjit_fe_set(l, sum, choose(e, inside, op2(e, IR_MUL, x, x), zero(e)));
    const ir_ref divisor = opjit_fe_def(l, e->type, 0);
    opjit_fe_own(l, divisor, at);
    opjit_fe_set(
        l, divisor,
        op2(e, IR_ADD, opjit_fe_number(e, n->bias), op2(e, IR_MUL, factor(e, n), opjit_fe_value_at(l, sum, 0, at))));
    return divisor;
}

static op_element element_of(const op_lowering *l)
{
    op_element e = { .f = l->f, .desc = l->op->desc, .result = opjit_fe_output_type(l, 0), .masks = l->masks };

    e.type = opjit_fe_wide(e.result);
    return e;
}

static void lower(op_lowering *l)
{
    const form n = form_of(l->op->desc);
    const op_element e = element_of(l);
    ir_ref at[OPJIT_MAX_RANK];
    const ir_ref divisor = lower_divisor(l, &e, &n), out = opjit_fe_output(l, 0);

    opjit_fe_own(l, out, at);
    opjit_fe_set(l, out,
                 op2(&e, IR_DIV, opjit_fe_wide_input(l, at),
                     op2(&e, IR_POW, opjit_fe_value_at(l, divisor, 0, at), opjit_fe_number(&e, n.beta))));
}

static ir_ref gradient_at(op_lowering *l, const op_element *e, const ir_ref *at)
{
    const ir_ref x = l->f->failed ? 0 : opjit_ir_load(l->f, l->inputs[GRADIENT], at);

    return e->type == e->result ? x : cast_to(e, e->type, x);
}

static void lower_grad(op_lowering *l)
{
    const form n = form_of_grad(l->op->desc);
    const op_element e = element_of(l);
    ir_ref at[OPJIT_MAX_RANK], inside;
    const ir_ref divisor = lower_divisor(l, &e, &n), sum = lower_around(l, &e, &n, true, at, &inside);
    const ir_ref beta = opjit_fe_number(&e, n.beta), above = op2(&e, IR_ADD, beta, one(&e));
    const ir_ref product = op2(&e, IR_MUL, gradient_at(l, &e, at), opjit_fe_wide_input(l, at));

    opjit_fe_set(l, sum,
                 choose(&e, inside,
                        op2(&e, IR_DIV, product, op2(&e, IR_POW, opjit_fe_value_at(l, divisor, 0, at), above)),
                        zero(&e)));
    const ir_ref out = opjit_fe_output(l, 0);
    opjit_fe_own(l, out, at);
    const ir_ref direct =
        op2(&e, IR_DIV, gradient_at(l, &e, at), op2(&e, IR_POW, opjit_fe_value_at(l, divisor, 0, at), beta));
    const ir_ref twice = op2(&e, IR_MUL, opjit_fe_whole(&e, e.type, 2), factor(&e, &n));
    const ir_ref around = op2(&e, IR_MUL, op2(&e, IR_MUL, op2(&e, IR_MUL, twice, beta), opjit_fe_wide_input(l, at)),
                              opjit_fe_value_at(l, sum, 0, at));
    opjit_fe_set(l, out, op2(&e, IR_SUB, direct, around));
}

const op_def opjit_fe_op_local_response_normalization = {
    .type = DML_OPERATOR_LOCAL_RESPONSE_NORMALIZATION,
    .name = "LOCAL_RESPONSE_NORMALIZATION",
    .formula = "x / (Bias + Alpha / LocalSize * sum of x^2 around it)^Beta",
    .desc_size = sizeof(DESC),
    OP_ROWS(fields, support),
    .introduced = DML_FEATURE_LEVEL_1_0,
    .validate = validate,
    .infer = opjit_fe_infer_same,
    .lower = lower,
};

const op_def opjit_fe_op_local_response_normalization_grad = {
    .type = DML_OPERATOR_LOCAL_RESPONSE_NORMALIZATION_GRAD,
    .name = "LOCAL_RESPONSE_NORMALIZATION_GRAD",
    .formula = "gradient of LOCAL_RESPONSE_NORMALIZATION",
    .desc_size = sizeof(GRAD),
    OP_ROWS(grad_fields, grad_support),
    .introduced = DML_FEATURE_LEVEL_3_1,
    .validate = validate_grad,
    .infer = opjit_fe_infer_same,
    .lower = lower_grad,
};
