/* SPDX-License-Identifier: Apache-2.0 */
/* depth_space.c - SPACE_TO_DEPTH, DEPTH_TO_SPACE and their "1" forms: blocks of B by B elements become channels,
 * and back. With {N, C, H, W} the space side and {N, B*B*C, H/B, W/B} the depth side, element (c, y*B + by, x*B +
 * bx) of the one is element (k, y, x) of the other:
 *     DEPTH_COLUMN_ROW   k = (by*B + bx)*C + c, also without Order
 *     COLUMN_ROW_DEPTH   k = (c*B + by)*B + bx */
#include "frontend/ops/infer.h"
#include "frontend/ops/moves.h"

/* clang-format off */
static const op_enum_name order_names[] = {
    { "DML_DEPTH_SPACE_ORDER_DEPTH_COLUMN_ROW", DML_DEPTH_SPACE_ORDER_DEPTH_COLUMN_ROW },
    { "DML_DEPTH_SPACE_ORDER_COLUMN_ROW_DEPTH", DML_DEPTH_SPACE_ORDER_COLUMN_ROW_DEPTH },
    { NULL, 0 },
};
static const op_enum orders = { "DML_DEPTH_SPACE_ORDER_", order_names };

static const op_support support_1_0[] = {
    { NULL, DML_FEATURE_LEVEL_1_0, 4, 4, OP_TYPES_ALL },
};
static const op_support support_2_1[] = {
    { NULL, DML_FEATURE_LEVEL_2_1, 4, 4, OP_TYPES_ALL },
};

#define FIELDS(type) OP_FIELD(type, InputTensor, OP_INPUT, 0), OP_FIELD(type, OutputTensor, OP_OUTPUT, 0), \
                     OP_FIELD(type, BlockSize, OP_UINT, 0)
#define STD DML_SPACE_TO_DEPTH_OPERATOR_DESC
#define STD1 DML_SPACE_TO_DEPTH1_OPERATOR_DESC
#define DTS DML_DEPTH_TO_SPACE_OPERATOR_DESC
#define DTS1 DML_DEPTH_TO_SPACE1_OPERATOR_DESC
static const op_field space_to_depth_fields[] = { FIELDS(STD) };
static const op_field space_to_depth1_fields[] = { FIELDS(STD1), OP_FIELD_ENUM(STD1, Order, &orders) };
static const op_field depth_to_space_fields[] = { FIELDS(DTS) };
static const op_field depth_to_space1_fields[] = { FIELDS(DTS1), OP_FIELD_ENUM(DTS1, Order, &orders) };
/* clang-format on */

/* The four descriptors agree in their fields, as far as they have them. */
_Static_assert(offsetof(STD, BlockSize) == offsetof(STD1, BlockSize) &&
                   offsetof(STD, BlockSize) == offsetof(DTS, BlockSize) &&
                   offsetof(STD, BlockSize) == offsetof(DTS1, BlockSize) &&
                   offsetof(STD1, Order) == offsetof(DTS1, Order),
               "descriptors of one family");

static uint32_t block_size(const opjit_operator *op)
{
    return ((const STD *)op->desc)->BlockSize;
}

/* --- checks ------------------------------------------------------------------------------------------------------- */

/* The depth side has the space side's sizes divided by blocks; the message is about the output. */
static opjit_status check_sides(const opjit_operator *op, bool to_depth, opjit_error *error)
{
    const fe_tensor *in = &op->inputs[0], *out = &op->outputs[0];
    const uint64_t b = block_size(op), unit = to_depth ? 1 : b * b;

    TRY(opjit_fe_check_pair(op, 0, error));
    if (b < 1 || b > 65535)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{%s} {BlockSize}: {%u}, must be 1 to 65535",
                               op->def->name, block_size(op));
    for (uint32_t d = 1; d < 4; d++) {
        const uint64_t divisor = to_depth ? (d == 1 ? 1 : b) : d == 1 ? unit : 1;
        if (in->sizes[d] % divisor != 0)
            return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                                   "{%s} {InputTensor.Sizes[%u]}: {%u}, must be a multiple of "
                                   "%llu by BlockSize",
                                   op->def->name, d, (unsigned)in->sizes[d], (unsigned long long)divisor);
    }
    TRY(opjit_fe_check_size(op, "OutputTensor", out, 0, in->sizes[0], " as in InputTensor", error));
    TRY(opjit_fe_check_size(op, "OutputTensor", out, 1, to_depth ? in->sizes[1] * b * b : in->sizes[1] / unit,
                            " by InputTensor.Sizes[1] and BlockSize", error));
    TRY(opjit_fe_check_size(op, "OutputTensor", out, 2, to_depth ? in->sizes[2] / b : in->sizes[2] * b,
                            " by InputTensor.Sizes[2] and BlockSize", error));
    return opjit_fe_check_size(op, "OutputTensor", out, 3, to_depth ? in->sizes[3] / b : in->sizes[3] * b,
                               " by InputTensor.Sizes[3] and BlockSize", error);
}

static opjit_status validate_to_depth(const opjit_operator *op, opjit_error *error)
{
    return check_sides(op, true, error);
}

static opjit_status validate_to_space(const opjit_operator *op, opjit_error *error)
{
    return check_sides(op, false, error);
}

static void infer(op_inference *s, bool to_depth)
{
    const uint64_t b = ((const STD *)s->desc)->BlockSize;
    op_shape other = s->inputs[0];

    if (other.rank == 4 && b != 0) {
        other.sizes[1] = to_depth ? other.sizes[1] * b * b : other.sizes[1] / b / b;
        for (uint32_t d = 2; d < 4; d++)
            other.sizes[d] = to_depth ? other.sizes[d] / b : other.sizes[d] * b;
    }
    infer_type(&s->outputs[0], other.dtype);
    infer_shape(&s->outputs[0], &other);
}

static void infer_to_depth(op_inference *s)
{
    infer(s, true);
}

static void infer_to_space(op_inference *s)
{
    infer(s, false);
}

/* --- formulas ----------------------------------------------------------------------------------------------------- */

static ir_ref quotient(ir_func *f, ir_ref x, int64_t by)
{
    return ir_expr2(f, IR_IDIV, IR_INDEX, x, opjit_ir_index(f, by));
}

static ir_ref rest(ir_func *f, ir_ref x, int64_t by)
{
    return ir_expr2(f, IR_IMOD, IR_INDEX, x, opjit_ir_index(f, by));
}

/* x * by + y */
static ir_ref digits(ir_func *f, ir_ref x, int64_t by, ir_ref y)
{
    return ir_expr2(f, IR_IADD, IR_INDEX, moves_mul(f, x, by), y);
}

/* The output is the depth side: takes channel k apart. */
static void lower_to_depth_in(op_lowering *l, DML_DEPTH_SPACE_ORDER order)
{
    ir_func *f = l->f;
    const int64_t b = block_size(l->op), channels = (int64_t)l->op->inputs[0].sizes[1];
    const ir_ref out = opjit_fe_output(l, 0);
    ir_ref k, c, by, bx;

    if (f->failed)
        return;
    k = opjit_ir_coordinate(f, out, 1);
    if (order == DML_DEPTH_SPACE_ORDER_DEPTH_COLUMN_ROW) {
        c = rest(f, k, channels);
        by = quotient(f, quotient(f, k, channels), b);
        bx = rest(f, quotient(f, k, channels), b);
    } else {
        c = quotient(f, k, b * b);
        by = rest(f, quotient(f, k, b), b);
        bx = rest(f, k, b);
    }
    opjit_ir_set_value(
        f, out,
        opjit_ir_load(f, l->inputs[0],
                      (ir_ref[]){ opjit_ir_coordinate(f, out, 0), c, digits(f, opjit_ir_coordinate(f, out, 2), b, by),
                                  digits(f, opjit_ir_coordinate(f, out, 3), b, bx) }));
}

/* The output is the space side: puts channel k together. */
static void lower_to_space_in(op_lowering *l, DML_DEPTH_SPACE_ORDER order)
{
    ir_func *f = l->f;
    const int64_t b = block_size(l->op), channels = (int64_t)l->op->outputs[0].sizes[1];
    const ir_ref out = opjit_fe_output(l, 0);
    ir_ref c, y, x, k;

    if (f->failed)
        return;
    c = opjit_ir_coordinate(f, out, 1);
    y = opjit_ir_coordinate(f, out, 2);
    x = opjit_ir_coordinate(f, out, 3);
    if (order == DML_DEPTH_SPACE_ORDER_DEPTH_COLUMN_ROW)
        k = digits(f, digits(f, rest(f, y, b), b, rest(f, x, b)), channels, c);
    else
        k = digits(f, digits(f, c, b, rest(f, y, b)), b, rest(f, x, b));
    opjit_ir_set_value(
        f, out,
        opjit_ir_load(f, l->inputs[0],
                      (ir_ref[]){ opjit_ir_coordinate(f, out, 0), k, quotient(f, y, b), quotient(f, x, b) }));
}

static void lower_to_depth(op_lowering *l)
{
    lower_to_depth_in(l, DML_DEPTH_SPACE_ORDER_DEPTH_COLUMN_ROW);
}

static void lower_to_depth1(op_lowering *l)
{
    lower_to_depth_in(l, ((const STD1 *)l->op->desc)->Order);
}

static void lower_to_space(op_lowering *l)
{
    lower_to_space_in(l, DML_DEPTH_SPACE_ORDER_DEPTH_COLUMN_ROW);
}

static void lower_to_space1(op_lowering *l)
{
    lower_to_space_in(l, ((const DTS1 *)l->op->desc)->Order);
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

const op_def opjit_fe_op_space_to_depth = {
    .type = DML_OPERATOR_SPACE_TO_DEPTH,
    .name = "SPACE_TO_DEPTH",
    .formula = "Output[n, (by*B + bx)*C + c, y, x] = Input[n, c, y*B + by, x*B + bx]",
    .desc_size = sizeof(STD),
    OP_ROWS(space_to_depth_fields, support_1_0),
    .introduced = DML_FEATURE_LEVEL_1_0,
    .validate = validate_to_depth,
    .infer = infer_to_depth,
    .lower = lower_to_depth,
};

const op_def opjit_fe_op_depth_to_space = {
    .type = DML_OPERATOR_DEPTH_TO_SPACE,
    .name = "DEPTH_TO_SPACE",
    .formula = "Output[n, c, y*B + by, x*B + bx] = Input[n, (by*B + bx)*C + c, y, x]",
    .desc_size = sizeof(DTS),
    OP_ROWS(depth_to_space_fields, support_1_0),
    .introduced = DML_FEATURE_LEVEL_1_0,
    .validate = validate_to_space,
    .infer = infer_to_space,
    .lower = lower_to_space,
};

const op_def opjit_fe_op_space_to_depth1 = {
    .type = DML_OPERATOR_SPACE_TO_DEPTH1,
    .name = "SPACE_TO_DEPTH1",
    .formula = "Output[n, k, y, x] = Input[n, c, y*B + by, x*B + bx], k = (by*B + bx)*C + c or (c*B + by)*B + bx",
    .desc_size = sizeof(STD1),
    OP_ROWS(space_to_depth1_fields, support_2_1),
    .introduced = DML_FEATURE_LEVEL_2_1,
    .validate = validate_to_depth,
    .infer = infer_to_depth,
    .lower = lower_to_depth1,
};

const op_def opjit_fe_op_depth_to_space1 = {
    .type = DML_OPERATOR_DEPTH_TO_SPACE1,
    .name = "DEPTH_TO_SPACE1",
    .formula = "Output[n, c, y*B + by, x*B + bx] = Input[n, k, y, x], k = (by*B + bx)*C + c or (c*B + by)*B + bx",
    .desc_size = sizeof(DTS1),
    OP_ROWS(depth_to_space1_fields, support_2_1),
    .introduced = DML_FEATURE_LEVEL_2_1,
    .validate = validate_to_space,
    .infer = infer_to_space,
    .lower = lower_to_space1,
};
