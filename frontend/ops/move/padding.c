/* SPDX-License-Identifier: Apache-2.0 */
/* padding.c - PADDING and PADDING1: the input surrounded by elements of one value or of elements taken from the input.
 *
 * With s the dimension's start padding and n the input's size, coordinate c is at x = c - s of the input if that is in
 * [0, n).  Elsewhere it is the value, or element
 *     EDGE        the nearest one
 *     REFLECTION  t < n ? t : P - t      t = x mod P, P = 2 (n - 1): the edge is not repeated
 *     SYMMETRIC   t < n ? t : P - 1 - t  t = x mod P, P = 2 n: the edge is repeated
 *     WRAP        x mod n
 * so that padding of more than one period continues periodically. */
#include "frontend/ops/infer.h"
#include "frontend/ops/moves.h"

static const op_enum_name mode_names[] = {
    { "DML_PADDING_MODE_CONSTANT", DML_PADDING_MODE_CONSTANT },
    { "DML_PADDING_MODE_EDGE", DML_PADDING_MODE_EDGE },
    { "DML_PADDING_MODE_REFLECTION", DML_PADDING_MODE_REFLECTION },
    { "DML_PADDING_MODE_SYMMETRIC", DML_PADDING_MODE_SYMMETRIC },
    { "DML_PADDING_MODE_WRAP", DML_PADDING_MODE_WRAP },
    { NULL, 0 },
};
static const op_enum modes = { "DML_PADDING_MODE_", mode_names };

#define TYPES (OP_TYPES_ALL & ~OP_TYPES(FLOAT64))

/* What both descriptors have. */
typedef struct padding {
    DML_PADDING_MODE mode;
    uint32_t count;
    const uint32_t *start, *end;
} padding;

static opjit_status check_mode(const opjit_operator *op, DML_PADDING_MODE mode, opjit_error *error)
{
    const uint32_t since = mode == DML_PADDING_MODE_WRAP        ? DML_FEATURE_LEVEL_6_4
                           : mode == DML_PADDING_MODE_SYMMETRIC ? DML_FEATURE_LEVEL_3_0
                                                                : DML_FEATURE_LEVEL_1_0;

    if (op->level == 0 || op->level >= since)
        return OPJIT_OK;
    return opjit_rt_refuse(error, OPJIT_UNSUPPORTED, "{%s} {PaddingMode}: {%s} needs feature level %u.%u",
                           op->def->name, mode == DML_PADDING_MODE_WRAP ? "WRAP" : "SYMMETRIC", (unsigned)(since >> 12),
                           (unsigned)(since >> 8 & 15));
}

static opjit_status validate(const opjit_operator *op, const padding *p, opjit_error *error)
{
    const fe_tensor *in = &op->inputs[0];

    TRY(check_mode(op, p->mode, error));
    TRY(opjit_fe_check_pair(op, 0, error));
    TRY(opjit_fe_check_count(op, "DimensionCount", p->count, error));
    for (uint32_t d = 0; d < in->rank; d++)
        TRY(opjit_fe_check_size(op, "OutputTensor", &op->outputs[0], d, in->sizes[d] + p->start[d] + p->end[d],
                                " as InputTensor's with padding", error));
    return OPJIT_OK;
}

static void infer(op_inference *s, const padding *p)
{
    op_shape padded = s->inputs[0];

    for (uint32_t d = 0; d < padded.rank && d < p->count; d++)
        padded.sizes[d] += (uint64_t)p->start[d] + p->end[d];
    infer_type(&s->outputs[0], padded.dtype);
    infer_shape(&s->outputs[0], &padded);
}

/* Where the element of a coordinate c outside of the input comes from; x is before the input's start. */
static ir_ref outside(ir_func *f, const padding *p, ir_ref c, int64_t start, int64_t size)
{
    const int64_t period = p->mode == DML_PADDING_MODE_WRAP         ? size
                           : p->mode == DML_PADDING_MODE_REFLECTION ? 2 * (size - 1)
                                                                    : 2 * size;
    const int64_t mirror = p->mode == DML_PADDING_MODE_REFLECTION ? period : period - 1;
    ir_ref t;

    if (p->mode == DML_PADDING_MODE_EDGE)
        return ir_expr3(f, IR_SELECT, IR_INDEX, ir_expr2(f, IR_LT, IR_BOOL, c, opjit_ir_index(f, start)),
                        opjit_ir_index(f, 0), opjit_ir_index(f, size - 1));
    if (period == 0)
        return opjit_ir_index(f, 0); /* REFLECTION of one element */
    t = ir_expr2(f, IR_IMOD, IR_INDEX, moves_add(f, c, (period - start % period) % period), opjit_ir_index(f, period));
    if (p->mode == DML_PADDING_MODE_WRAP)
        return t;
    return ir_expr3(f, IR_SELECT, IR_INDEX, ir_expr2(f, IR_LT, IR_BOOL, t, opjit_ir_index(f, size)), t,
                    ir_expr2(f, IR_ISUB, IR_INDEX, opjit_ir_index(f, mirror), t));
}

/* Every load is in bounds, selected or not, so rows of padding need no masks. */
static void lower(op_lowering *l, const padding *p, ir_ref value)
{
    ir_func *f = l->f;
    const ir_type type = opjit_fe_output_type(l, 0);
    const ir_ref out = opjit_fe_output(l, 0);
    ir_ref at[OPJIT_MAX_RANK], inside = opjit_ir_const(f, IR_BOOL, 1);

    if (f->failed)
        return;
    for (uint32_t d = 0; d < p->count; d++) {
        const uint64_t size = l->op->inputs[0].sizes[d];
        const ir_ref c = opjit_ir_coordinate(f, out, d), within = opjit_fe_between(f, c, p->start[d], size);
        ir_ref x = moves_add(f, c, -(int64_t)p->start[d]);
        if (p->mode == DML_PADDING_MODE_CONSTANT)
            inside = ir_expr2(f, IR_AND, IR_BOOL, inside, within);
        else
            x = ir_expr3(f, IR_SELECT, IR_INDEX, within, x, outside(f, p, c, p->start[d], (int64_t)size));
        at[d] = opjit_fe_inside(f, x, size);
    }
    opjit_ir_set_value(f, out, ir_expr3(f, IR_SELECT, type, inside, opjit_ir_load(f, l->inputs[0], at), value));
}

/* --- PADDING ------------------------------------------------------------------------------------------------------ */

#define PADDING DML_PADDING_OPERATOR_DESC

/* clang-format off */
static const op_field padding_fields[] = {
    OP_FIELD(PADDING, InputTensor, OP_INPUT, 0),
    OP_FIELD(PADDING, OutputTensor, OP_OUTPUT, 0),
    OP_FIELD_ENUM(PADDING, PaddingMode, &modes),
    OP_FIELD(PADDING, PaddingValue, OP_FLOAT, 0),
    OP_FIELD(PADDING, DimensionCount, OP_UINT, OP_COUNT),
    OP_FIELD_ARRAY(PADDING, StartPadding, DimensionCount, OP_UINTS, 0),
    OP_FIELD_ARRAY(PADDING, EndPadding, DimensionCount, OP_UINTS, 0),
};
/* clang-format on */

static const op_support padding_support[] = {
    { NULL, 0, MOVES_RANKS, OP_TYPES_ALL },
    { NULL, DML_FEATURE_LEVEL_1_0, MOVES_RANKS, TYPES },
};

static padding padding_of(const PADDING *d)
{
    return (padding){ d->PaddingMode, d->DimensionCount, d->StartPadding, d->EndPadding };
}

static opjit_status validate_padding(const opjit_operator *op, opjit_error *error)
{
    const padding p = padding_of(op->desc);
    return validate(op, &p, error);
}

static void infer_padding(op_inference *s)
{
    const padding p = padding_of(s->desc);
    infer(s, &p);
}

static void lower_padding(op_lowering *l)
{
    const padding p = padding_of(l->op->desc);
    lower(l, &p, ir_expr1(l->f, IR_CAST, opjit_fe_output_type(l, 0), opjit_fe_float(l, "PaddingValue")));
}

const op_def opjit_fe_op_padding = {
    .type = DML_OPERATOR_PADDING,
    .name = "PADDING",
    .formula = "Output[c] = Input[c - StartPadding]; around it PaddingValue or Input again, by PaddingMode",
    .desc_size = sizeof(PADDING),
    OP_ROWS(padding_fields, padding_support),
    .introduced = DML_FEATURE_LEVEL_1_0,
    .validate = validate_padding,
    .infer = infer_padding,
    .lower = lower_padding,
};

/* --- PADDING1 ----------------------------------------------------------------------------------------------------- */

#define PADDING1 DML_PADDING1_OPERATOR_DESC

/* clang-format off */
static const op_field padding1_fields[] = {
    OP_FIELD(PADDING1, InputTensor, OP_INPUT, 0),
    OP_FIELD(PADDING1, OutputTensor, OP_OUTPUT, 0),
    OP_FIELD_ENUM(PADDING1, PaddingMode, &modes),
    OP_FIELD(PADDING1, PaddingValueDataType, OP_DTYPE, 0),
    OP_FIELD(PADDING1, PaddingValue, OP_SCALAR, 0),
    OP_FIELD(PADDING1, DimensionCount, OP_UINT, OP_COUNT),
    OP_FIELD_ARRAY(PADDING1, StartPadding, DimensionCount, OP_UINTS, 0),
    OP_FIELD_ARRAY(PADDING1, EndPadding, DimensionCount, OP_UINTS, 0),
};
/* clang-format on */

static const op_support padding1_support[] = {
    { NULL, 0, MOVES_RANKS, OP_TYPES_ALL },
    { NULL, DML_FEATURE_LEVEL_5_0, MOVES_RANKS, TYPES },
};

static padding padding1_of(const PADDING1 *d)
{
    return (padding){ d->PaddingMode, d->DimensionCount, d->StartPadding, d->EndPadding };
}

static opjit_status validate_padding1(const opjit_operator *op, opjit_error *error)
{
    const padding p = padding1_of(op->desc);
    return validate(op, &p, error);
}

static void infer_padding1(op_inference *s)
{
    const padding p = padding1_of(s->desc);
    infer(s, &p);
}

static void lower_padding1(op_lowering *l)
{
    const padding p = padding1_of(l->op->desc);
    lower(l, &p, opjit_fe_scalar(l, "PaddingValue"));
}

const op_def opjit_fe_op_padding1 = {
    .type = DML_OPERATOR_PADDING1,
    .name = "PADDING1",
    .formula = "Output[c] = Input[c - StartPadding]; around it PaddingValue or Input again, by PaddingMode",
    .desc_size = sizeof(PADDING1),
    OP_ROWS(padding1_fields, padding1_support),
    .introduced = DML_FEATURE_LEVEL_5_0,
    .validate = validate_padding1,
    .infer = infer_padding1,
    .lower = lower_padding1,
};
