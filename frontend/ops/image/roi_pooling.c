/* SPDX-License-Identifier: Apache-2.0 */
/* roi_pooling.c - ROI_POOLING (DML_ROI_POOLING_OPERATOR_DESC): the maximum of each of PooledSize parts of regions of an
 * image.  With x1 and x2 the corners times SpatialScale, rounded, halves away from zero, and width = x2 - x1 + 1, part
 * o has the columns
 *     o * width / PooledSize.Width + x1  to  ((o + 1) * width + PooledSize.Width - 1) / PooledSize.Width + x1,
 * without the last one, clamped to the image; rows likewise.
 *
 * Where the document is silent, as ONNX's MaxRoiPool: a part without an element is 0, and a width is at least 1.
 * Corners are at most 2^29 in size, batches are clamped; a NaN is 0. */
#include "frontend/ops/infer.h"
#include "frontend/ops/moves.h"
#include "frontend/ops/pointwise.h"
#include "frontend/ops/reduce.h"

#define DESC DML_ROI_POOLING_OPERATOR_DESC
#define MOST_CORNER ((int64_t)1 << 29)

enum { IMAGE, REGIONS, NUMBERS = 5, AXES = 2 };

/* clang-format off */
static const op_field fields[] = {
    OP_FIELD(DESC, InputTensor, OP_INPUT, 0),
    OP_FIELD(DESC, ROITensor, OP_INPUT, 0),
    OP_FIELD(DESC, OutputTensor, OP_OUTPUT, 0),
    OP_FIELD(DESC, SpatialScale, OP_FLOAT, 0),
    OP_FIELD(DESC, PooledSize, OP_SIZE_2D, 0),
};
/* clang-format on */

static const op_support support[] = {
    { NULL, 0, 4, 4, OP_TYPES_FLOAT | OP_TYPES(FLOAT64) },
    { NULL, DML_FEATURE_LEVEL_1_0, 4, 4, OP_TYPES_FLOAT },
};

static opjit_status validate(const opjit_operator *op, opjit_error *error)
{
    const DESC *desc = op->desc;
    const fe_tensor *regions = &op->inputs[REGIONS], *out = &op->outputs[0];
    const char *list = op->input_names[REGIONS], *name = op->output_names[0];

    TRY(opjit_fe_same_type(op, IMAGE, 0, error));
    TRY(opjit_fe_same_type(op, REGIONS, 0, error));
    TRY(opjit_fe_check_size(op, list, regions, 0, 1, "", error));
    TRY(opjit_fe_check_size(op, list, regions, 1, 1, "", error));
    TRY(opjit_fe_check_size(op, list, regions, 3, NUMBERS, ", a batch and the corners of a region", error));
    TRY(opjit_fe_check_size(op, name, out, 0, regions->sizes[2], ", the regions", error));
    TRY(opjit_fe_check_size(op, name, out, 1, op->inputs[IMAGE].sizes[1], ", the channels of the image", error));
    TRY(opjit_fe_check_size(op, name, out, 2, desc->PooledSize.Height, " as PooledSize.Height", error));
    return opjit_fe_check_size(op, name, out, 3, desc->PooledSize.Width, " as PooledSize.Width", error);
}

static void infer(op_inference *s)
{
    const DESC *desc = s->desc;
    const op_shape *image = &s->inputs[IMAGE], *regions = &s->inputs[REGIONS];
    op_shape out = { .rank = 4, .sizes = { regions->sizes[2], image->sizes[1], desc->PooledSize.Height,
                                           desc->PooledSize.Width } };

    infer_type(&s->outputs[0], image->dtype);
    if (image->rank == 4 && regions->rank == 4)
        infer_shape(&s->outputs[0], &out);
}

/* --- regions ------------------------------------------------------------------------------------------------------ */

typedef struct parts {
    op_lowering *l;
    op_element e;
    uint32_t from[AXES], count[AXES]; /* definitions { regions, 1, height, 1 } and { regions, 1, 1, width }: INT64 */
} parts;

static ir_ref whole(ir_func *f, int64_t value)
{
    return opjit_ir_const(f, IR_I64, (uint64_t)value);
}

static ir_ref integer(ir_func *f, ir_op op, ir_ref a, ir_ref b)
{
    return ir_expr2(f, op, IR_I64, a, b);
}

static ir_ref number_of(const parts *p, ir_ref region, uint32_t k)
{
    ir_func *f = p->l->f;
    const ir_ref zero = opjit_ir_index(f, 0), at[] = { zero, zero, region, opjit_ir_index(f, k) };
    const ir_ref x = opjit_ir_load(f, p->l->inputs[REGIONS], at);

    return f->failed || ir_at(f, x)->type == p->e.type ? x : cast_to(&p->e, p->e.type, x);
}

/* Corner k, 0 to 3: x1, y1, x2, y2. */
static ir_ref corner(const parts *p, ir_ref region, uint32_t k)
{
    ir_func *f = p->l->f;
    const op_element *e = &p->e;
    const DESC *desc = p->l->op->desc;
    const ir_ref x = op2(e, IR_MUL, number_of(p, region, 1 + k), opjit_fe_number(e, desc->SpatialScale));
    const ir_ref low = op1(e, IR_FLOOR, x), part = op2(e, IR_SUB, x, low), half = opjit_fe_number(e, 0.5f);
    const ir_ref negative = ir_expr2(f, IR_LT, IR_BOOL, x, zero(e));
    const ir_ref up = ir_expr3(f, IR_SELECT, IR_BOOL, negative, ir_expr2(f, IR_LT, IR_BOOL, half, part),
                               ir_expr2(f, IR_LE, IR_BOOL, half, part));
    const ir_ref rounded = op2(e, IR_ADD, low, cast_to(e, e->type, up));

    return integer(f, IR_MAX, integer(f, IR_MIN, cast_to(e, IR_I64, rounded), whole(f, MOST_CORNER)),
                   whole(f, -MOST_CORNER));
}

/* Where part `part` begins: from the start of the image, clamped to it. */
static ir_ref begin_of(const parts *p, uint32_t axis, ir_ref region, ir_ref part, bool up)
{
    ir_func *f = p->l->f;
    const int64_t in = (int64_t)p->l->op->inputs[IMAGE].sizes[3 - axis],
                  out = (int64_t)p->l->op->outputs[0].sizes[3 - axis];
    const ir_ref first = corner(p, region, axis), last = corner(p, region, AXES + axis);
    const ir_ref length = integer(f, IR_ADD, integer(f, IR_SUB, last, first), whole(f, 1));
    const ir_ref size = integer(f, IR_MAX, length, whole(f, 1));
    const ir_ref before = integer(f, IR_ADD, integer(f, IR_MUL, part, size), whole(f, up ? out - 1 : 0));
    const ir_ref at = integer(f, IR_ADD, integer(f, IR_DIV, before, whole(f, out)), first);

    return integer(f, IR_MAX, integer(f, IR_MIN, at, whole(f, in)), whole(f, 0));
}

/* The definitions of an axis. */
static void begin(parts *p, uint32_t axis)
{
    const fe_tensor *out = &p->l->op->outputs[0];
    const fe_tensor shape = { .rank = 4, .sizes = { out->sizes[0], 1, axis == 0 ? 1 : out->sizes[2],
                                                    axis == 0 ? out->sizes[3] : 1 } };
    ir_func *f = p->l->f;

    for (int count = 0; count < 2; count++) {
        const ir_ref def = opjit_fe_def_to(p->l, IR_I64, &shape);
        if (f->failed)
            return;
        const ir_ref region = opjit_ir_coordinate(f, def, 0);
        const ir_ref part = ir_expr1(f, IR_ELEM, IR_I64, opjit_ir_coordinate(f, def, 3 - axis));
        const ir_ref from = begin_of(p, axis, region, part, false);
        const ir_ref to = begin_of(p, axis, region, integer(f, IR_ADD, part, whole(f, 1)), true);
        opjit_fe_set(p->l, def, count == 0 ? from : integer(f, IR_SUB, to, from));
        (count == 0 ? p->from : p->count)[axis] = f->failed ? 0 : ir_at(f, def)->ref;
    }
}

/* A definition's value at coordinates of the output. */
static ir_ref value_of(const parts *p, const uint32_t *tensors, uint32_t axis, const ir_ref *at)
{
    ir_func *f = p->l->f;
    const ir_ref zero_index = opjit_ir_index(f, 0);
    const ir_ref of[] = { at[0], zero_index, axis == 0 ? zero_index : at[2], axis == 0 ? at[3] : zero_index };

    return f->failed ? 0 : opjit_ir_load(f, tensors[axis], of);
}

static ir_ref elements_of(const parts *p, const ir_ref *at)
{
    return integer(p->l->f, IR_MUL, value_of(p, p->count, 0, at), value_of(p, p->count, 1, at));
}

/* --- ROI_POOLING -------------------------------------------------------------------------------------------------- */

static void own(const ir_func *f, ir_ref statement, ir_ref at[4])
{
    for (uint32_t d = 0; d < 4; d++)
        at[d] = f->failed ? 0 : opjit_ir_coordinate(f, statement, d);
}

/* The maximum of each part. */
static ir_ref reduce(const parts *p)
{
    ir_func *f = p->l->f;
    const fe_tensor *image = &p->l->op->inputs[IMAGE];
    const ir_ref def = opjit_fe_reduce_counted(p->l, IR_KMAX, p->e.type, &p->l->op->outputs[0]);
    ir_ref at[4];

    own(f, def, at);
    if (f->failed)
        return 0;
    opjit_ir_set_count(f, def,
                       ir_expr3(f, IR_CLAMP, IR_INDEX, ir_expr1(f, IR_TO_INDEX, IR_INDEX, elements_of(p, at)),
                                opjit_ir_index(f, 0), opjit_ir_index(f, (int64_t)(image->sizes[2] * image->sizes[3]))));
    const ir_ref k = ir_expr1(f, IR_ELEM, IR_I64, opjit_ir_reduced(f, def)), columns = value_of(p, p->count, 0, at);
    const ir_ref y = integer(f, IR_ADD, value_of(p, p->from, 1, at), integer(f, IR_DIV, k, columns));
    const ir_ref x = integer(f, IR_ADD, value_of(p, p->from, 0, at), integer(f, IR_REM, k, columns));
    const ir_ref batch = ir_expr1(f, IR_TO_INDEX, IR_INDEX, cast_to(&p->e, IR_I64, number_of(p, at[0], 0)));
    const ir_ref of[] = { opjit_fe_inside(f, batch, image->sizes[0]), at[1],
                          opjit_fe_inside(f, ir_expr1(f, IR_TO_INDEX, IR_INDEX, y), image->sizes[2]),
                          opjit_fe_inside(f, ir_expr1(f, IR_TO_INDEX, IR_INDEX, x), image->sizes[3]) };
    opjit_fe_set(p->l, def, opjit_fe_wide_input(p->l, of));
    return def;
}

static void lower(op_lowering *l)
{
    ir_func *f = l->f;
    const ir_type type = opjit_fe_output_type(l, 0);
    parts p = { .l = l,
                .e = { .f = f, .desc = l->op->desc, .type = opjit_fe_wide(type), .result = type } };
    ir_ref at[4];

    begin(&p, 0);
    begin(&p, 1);
    const ir_ref def = reduce(&p), out = opjit_fe_output(l, 0);
    own(f, out, at);
    if (f->failed)
        return;
    const ir_ref empty = ir_expr2(f, IR_EQ, IR_BOOL, elements_of(&p, at), whole(f, 0));
    opjit_fe_set(l, out, choose(&p.e, empty, zero(&p.e), opjit_ir_load(f, ir_at(f, def)->ref, at)));
}

const op_def opjit_fe_op_roi_pooling = {
    .type = DML_OPERATOR_ROI_POOLING,
    .name = "ROI_POOLING",
    .formula = "max of the elements of each of PooledSize parts of each region",
    .desc_size = sizeof(DESC),
    OP_ROWS(fields, support),
    .introduced = DML_FEATURE_LEVEL_1_0,
    .validate = validate,
    .infer = infer,
    .lower = lower,
};
