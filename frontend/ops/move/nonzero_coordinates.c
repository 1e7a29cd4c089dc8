/* SPDX-License-Identifier: Apache-2.0 */
/* nonzero_coordinates.c - NONZERO_COORDINATES: how many elements are not zero, and their coordinates in row-major
 * order.
 *
 * -0 is a zero, a NaN is not.  The coordinates are those of the input's last dimensions, as many as the output has
 * columns; its rows behind the count, which the document leaves undefined, are zeros.
 *
 * An element's rank is the number of elements before it that are not zero.  Each element puts its number at its rank:
 * the last one of a rank is the one that is not zero. */
#include "frontend/ops/infer.h"
#include "frontend/ops/moves.h"
#include "frontend/ops/reduce.h"

#define DESC DML_NONZERO_COORDINATES_OPERATOR_DESC

enum { COUNT, COORDINATES }; /* outputs */

/* clang-format off */
#define RANKS 2, OPJIT_MAX_RANK /* rows and columns are two dimensions */
#define TYPES (OP_TYPES_FLOAT | OP_TYPES_INT_TO_32)
#define OUTPUT(name)                                            \
    { name, 0, RANKS, OP_TYPES(UINT32) },                       \
    { name, DML_FEATURE_LEVEL_3_0, 4, 5, OP_TYPES(UINT32) },    \
    { name, DML_FEATURE_LEVEL_4_0, RANKS, OP_TYPES(UINT32) }

static const op_field fields[] = {
    OP_FIELD(DESC, InputTensor, OP_INPUT, 0),
    OP_FIELD(DESC, OutputCountTensor, OP_OUTPUT, 0),
    OP_FIELD(DESC, OutputCoordinatesTensor, OP_OUTPUT, 0),
};
static const op_support support[] = {
    { NULL, 0, RANKS, OP_TYPES_ALL },
    { NULL, DML_FEATURE_LEVEL_3_0, 4, 5, TYPES },
    { NULL, DML_FEATURE_LEVEL_4_0, RANKS, TYPES },
    OUTPUT("OutputCountTensor"),
    OUTPUT("OutputCoordinatesTensor"),
};
/* clang-format on */

/* Dimensions without leading ones. */
static uint32_t effective_rank(const fe_tensor *t)
{
    uint32_t ones = 0;

    while (ones < t->rank && t->sizes[ones] == 1)
        ones++;
    return t->rank - ones;
}

static opjit_status validate(const opjit_operator *op, opjit_error *error)
{
    const fe_tensor *in = &op->inputs[0], *out = &op->outputs[COORDINATES];
    const uint32_t last = in->rank - 1, least = effective_rank(in) > 1 ? effective_rank(in) : 1;

    for (uint32_t i = COUNT; i <= COORDINATES; i++)
        TRY(opjit_fe_check_rank(op, op->output_names[i], &op->outputs[i], in->rank, " as InputTensor.DimensionCount",
                                error));
    for (uint32_t d = 0; d <= last; d++) {
        TRY(opjit_fe_check_size(op, "OutputCountTensor", &op->outputs[COUNT], d, 1, ", it is one number", error));
        if (d + 1 < last)
            TRY(opjit_fe_check_size(op, "OutputCoordinatesTensor", out, d, 1, ", it is none of the last two", error));
    }
    TRY(opjit_fe_check_size(op, "OutputCoordinatesTensor", out, last - 1, in->elements, ", the elements of InputTensor",
                            error));
    if (out->sizes[last] < least || out->sizes[last] > in->rank)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                               "{NONZERO_COORDINATES} {OutputCoordinatesTensor.Sizes[%u]}: {%llu}, must be %u to %u: "
                               "InputTensor's dimensions without leading ones, up to all",
                               last, (unsigned long long)out->sizes[last], least, in->rank);
    return OPJIT_OK;
}

static void infer(op_inference *s)
{
    const op_shape *in = &s->inputs[0];
    op_shape count = { .rank = in->rank }, rows = { .rank = in->rank };
    uint64_t elements = 1;

    for (uint32_t d = 0; d < in->rank; d++) {
        count.sizes[d] = rows.sizes[d] = 1;
        elements *= in->sizes[d];
    }
    if (in->rank >= 2) {
        rows.sizes[in->rank - 2] = elements;
        rows.sizes[in->rank - 1] = in->rank;
    }
    infer_type(&s->outputs[COUNT], DML_TENSOR_DATA_TYPE_UINT32);
    infer_type(&s->outputs[COORDINATES], DML_TENSOR_DATA_TYPE_UINT32);
    infer_shape(&s->outputs[COUNT], &count);
    infer_shape(&s->outputs[COORDINATES], &rows);
}

/* --- formula ------------------------------------------------------------------------------------------------------ */

static ir_ref number(ir_func *f, uint64_t value)
{
    return opjit_ir_const(f, IR_U32, value);
}

/* 1 where the element with that row-major number is not zero, else 0. */
static ir_ref is_nonzero(op_lowering *l, ir_ref element)
{
    ir_func *f = l->f;
    const fe_tensor *in = &l->op->inputs[0];
    uint64_t below = in->elements;
    ir_ref at[OPJIT_MAX_RANK];

    for (uint32_t d = 0; d < in->rank; d++) {
        below /= in->sizes[d];
        at[d] = moves_digit(f, element, below, in->sizes[d]);
    }
    const ir_ref x = opjit_fe_wide_input(l, at);
    if (f->failed)
        return 0;
    const ir_ref zero = opjit_ir_const(f, (ir_type)ir_at(f, x)->type, 0);
    return ir_expr3(f, IR_SELECT, IR_U32, ir_expr2(f, IR_NE, IR_BOOL, x, zero), number(f, 1), number(f, 0));
}

static ir_ref read(op_lowering *l, ir_ref def, ir_ref at)
{
    return l->f->failed ? 0 : opjit_ir_load(l->f, ir_at(l->f, def)->ref, &at);
}

/* The coordinate in dimension d of the input of the element with that number. */
static ir_ref coordinate(ir_func *f, const fe_tensor *in, ir_ref element, uint32_t d)
{
    uint64_t below = 1;

    for (uint32_t i = d + 1; i < in->rank; i++)
        below *= in->sizes[i];
    return ir_expr2(f, IR_REM, IR_U32, ir_expr2(f, IR_DIV, IR_U32, element, number(f, below)), number(f, in->sizes[d]));
}

static void lower(op_lowering *l)
{
    ir_func *f = l->f;
    const fe_tensor *in = &l->op->inputs[0];
    const fe_tensor flat = { .rank = 1, .sizes = { in->elements } }, one = { .rank = 1, .sizes = { 1 } };
    const uint32_t rows = in->rank - 2, columns = (uint32_t)l->op->outputs[COORDINATES].sizes[in->rank - 1];
    const ir_ref ranks = opjit_fe_scan_to(l, IR_SUM, IR_U32, &flat, 0, true);

    if (f->failed)
        return;
    opjit_ir_set_value(f, ranks, is_nonzero(l, opjit_ir_reduced(f, ranks)));
    const ir_ref count = opjit_fe_def_to(l, IR_U32, &one), last = opjit_ir_index(f, (int64_t)in->elements - 1);
    opjit_fe_set(l, count, ir_expr2(f, IR_ADD, IR_U32, read(l, ranks, last), is_nonzero(l, last)));
    const ir_ref elements = opjit_fe_scatter(l, IR_KIND_NONE, IR_U32, &flat, in->elements);
    if (f->failed)
        return;
    const ir_ref own = opjit_ir_update(f, elements), zero = opjit_ir_index(f, 0);
    opjit_ir_set_initial(f, elements, number(f, 0));
    const ir_ref rank = ir_expr1(f, IR_TO_INDEX, IR_INDEX, read(l, ranks, own));
    opjit_ir_set_place(f, elements, 0, opjit_fe_inside(f, rank, in->elements));
    opjit_ir_set_value(f, elements, ir_expr1(f, IR_ELEM, IR_U32, own));
    opjit_fe_set(l, opjit_fe_output(l, COUNT), read(l, count, zero));

    const ir_ref out = opjit_fe_output(l, COORDINATES);
    if (f->failed)
        return;
    const ir_ref row = opjit_ir_coordinate(f, out, rows), column = opjit_ir_coordinate(f, out, rows + 1);
    const ir_ref element = read(l, elements, row);
    ir_ref value = coordinate(f, in, element, in->rank - 1);
    for (uint32_t n = columns - 1; n-- > 0;) {
        const ir_ref here = ir_expr2(f, IR_EQ, IR_BOOL, column, opjit_ir_index(f, n));
        value = ir_expr3(f, IR_SELECT, IR_U32, here, coordinate(f, in, element, in->rank - columns + n), value);
    }
    const ir_ref counted = ir_expr2(f, IR_LT, IR_BOOL, ir_expr1(f, IR_ELEM, IR_U32, row), read(l, count, zero));
    opjit_fe_set(l, out, ir_expr3(f, IR_SELECT, IR_U32, counted, value, number(f, 0)));
}

const op_def opjit_fe_op_nonzero_coordinates = {
    .type = DML_OPERATOR_NONZERO_COORDINATES,
    .name = "NONZERO_COORDINATES",
    .formula = "the number of elements that are not 0, and their coordinates in row-major order, then zeros",
    .desc_size = sizeof(DESC),
    OP_ROWS(fields, support),
    .introduced = DML_FEATURE_LEVEL_3_0,
    .validate = validate,
    .infer = infer,
    .lower = lower,
};
