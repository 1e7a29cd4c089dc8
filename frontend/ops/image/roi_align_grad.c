/* SPDX-License-Identifier: Apache-2.0 */
/* roi_align_grad.c - ROI_ALIGN_GRAD: what the incoming gradient of ROI_ALIGN1's output (roi_align.c) makes of the
 * gradients of its image and of its regions.  Each operation is rounded to FLOAT32 (FLOAT64 for FLOAT64).
 *
 * - AVERAGE: each region adds, output element by output element, g / n * (v * w) to the elements of its image, where n
 *   is the number of samples of the output element, and v and w are the sums of the weights that an element's row and
 *   its column have in those.  So rows and columns are weighted apart, however many samples there are.
 * - MAX: each output element adds g, times their weights, to the elements around its greatest sample, the first one of
 *   equals.  Samples outside of the image take no part, because the descriptor has no OutOfBoundsInputValue.
 * - An element without a weight takes nothing, not even from a gradient that is infinite or NaN.
 * - A region: a sample with the part p of the way from x1 to x2 moves with x2 by p and with x1 by 1 - p.  So x2's
 *   gradient is the sum of g / n (MAX: g) times the slope of the image there times p, then times SpatialScaleX: over
 *   channels, output elements in their order and samples column by column.  The document's code counts p in elements
 *   and leaves out the scale; as it says, the result is the gradient of ROITensor.  The slope is that between the
 *   elements at both sides: 0 at an element, outside, and for NEAREST_NEIGHBOR. */
#include <math.h>

#include "frontend/ops/image/resample.h"
#include "frontend/ops/image/roi_align.h"
#include "frontend/ops/infer.h"
#include "frontend/ops/moves.h"
#include "frontend/ops/pointwise.h"
#include "frontend/ops/reduce.h"

#define DESC DML_ROI_ALIGN_GRAD_OPERATOR_DESC

enum { IMAGE, INCOMING, REGIONS, BATCHES };     /* inputs */
enum { IMAGE_GRADIENT, REGION_GRADIENT };       /* outputs */
enum { AT_BATCH, AT_CHANNEL, AT_ROW, AT_COLUMN }; /* dimensions; of what belongs to regions the first one is these */

/* --- checks ------------------------------------------------------------------------------------------------------- */

#define MOST_VALUES (1ull << 50) /* of a table, or of a sum */

static opjit_status check_outputs(const opjit_operator *op, opjit_error *error)
{
    const DESC *desc = op->desc;
    const fe_tensor *image = &op->inputs[IMAGE], *regions = &op->inputs[REGIONS];
    const fe_tensor *of_image = &op->outputs[IMAGE_GRADIENT], *of_regions = &op->outputs[REGION_GRADIENT];

    if (!of_image->present && !of_regions->present)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                               "{ROI_ALIGN_GRAD} {OutputGradientTensor}: {NULL}, one output must be");
    if (!image->present && (of_regions->present || desc->ReductionFunction == DML_REDUCE_FUNCTION_MAX))
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                               "{ROI_ALIGN_GRAD} {InputTensor}: {NULL}, must be a tensor as %s",
                               of_regions->present ? "there is an OutputROIGradientTensor"
                                                   : "ReductionFunction is MAX");
    for (uint32_t i = 0; i < op->output_count; i++)
        if (op->outputs[i].present)
            for (uint32_t k = IMAGE; k <= REGIONS; k++)
                if (op->inputs[k].present)
                    TRY(opjit_fe_same_type(op, k, i, error));
    if (image->present && of_image->present)
        TRY(opjit_fe_same_sizes(op, IMAGE, IMAGE_GRADIENT, error));
    if (!of_regions->present)
        return OPJIT_OK;
    TRY(opjit_fe_check_rank(op, "OutputROIGradientTensor", of_regions, regions->rank, " as ROITensor.DimensionCount",
                            error));
    return opjit_fe_same_sizes(op, REGIONS, REGION_GRADIENT, error);
}

static const fe_tensor *image_of(const opjit_operator *op)
{
    return op->inputs[IMAGE].present ? &op->inputs[IMAGE] : &op->outputs[IMAGE_GRADIENT];
}

static opjit_status validate(const opjit_operator *op, opjit_error *error)
{
    const fe_tensor *incoming = &op->inputs[INCOMING];

    TRY(check_outputs(op, error));
    TRY(opjit_fe_roi_check(op, op->input_names[INCOMING], image_of(op), incoming, REGIONS, error));
    const roi r = opjit_fe_roi_of(&(op_lowering){ .op = op }, image_of(op), incoming);
    uint64_t samples = incoming->elements;
    for (uint32_t axis = 0; axis < ROI_AXES; axis++) {
        uint64_t table = r.count * r.out[axis];
        if (!checked_mul(table, r.in[axis], &table) || table > MOST_VALUES ||
            !checked_mul(samples, r.most[axis], &samples) || samples > MOST_VALUES)
            return opjit_rt_refuse(error, OPJIT_LIMIT,
                                   "{ROI_ALIGN_GRAD} {InputGradientTensor.Sizes}: {its elements} have more than 2^50 "
                                   "samples or weights");
    }
    return OPJIT_OK;
}

static void infer(op_inference *s)
{
    const uint32_t from[] = { [IMAGE_GRADIENT] = IMAGE, [REGION_GRADIENT] = REGIONS };

    for (uint32_t i = 0; i < s->output_count; i++) {
        infer_type(&s->outputs[i], s->inputs[INCOMING].dtype);
        infer_shape(&s->outputs[i], &s->inputs[from[i]]);
    }
}

/* --- formula ------------------------------------------------------------------------------------------------------ */

typedef struct gradient {
    roi r;
    op_element e;
    ir_func *f;
    bool max;
    uint32_t winners; /* MAX: which sample each output element is, as many as there are or more: none (UINT64) */
} gradient;

static ir_ref real(const gradient *g, ir_ref x)
{
    return g->f->failed || ir_at(g->f, x)->type == g->r.real ? x : cast_to(&g->e, g->r.real, x);
}

/* The incoming gradient at these coordinates, divided by the number of samples that it is for. */
static ir_ref incoming(const gradient *g, const ir_ref at[4])
{
    const ir_ref x = real(g, g->f->failed ? 0 : opjit_ir_load(g->f, g->r.l->inputs[INCOMING], at));

    return g->max ? x : op2(&g->e, IR_DIV, x, cast_to(&g->e, g->r.real, opjit_fe_roi_count(&g->r, at[0])));
}

static ir_ref load(const gradient *g, uint32_t tensor, ir_ref a, ir_ref b, ir_ref c, ir_ref d)
{
    return g->f->failed ? 0 : opjit_ir_load(g->f, tensor, (ir_ref[]){ a, b, c, d });
}

static uint32_t tensor_of(const gradient *g, ir_ref statement)
{
    return g->f->failed ? 0 : ir_at(g->f, statement)->ref;
}

/* weight if it is element i's. */
static ir_ref if_at(const gradient *g, ir_ref element, ir_ref i, ir_ref weight)
{
    return choose(&g->e, ir_expr2(g->f, IR_EQ, IR_BOOL, element, i), weight, opjit_fe_number(&g->e, 0));
}

/* A table of the sum of weights that each element of an axis has in the samples of each region's output elements. */
static uint32_t weights(const gradient *g, uint32_t axis)
{
    const roi *r = &g->r;
    ir_func *f = g->f;
    const fe_tensor shape = { .rank = 4, .sizes = { r->count, 1, r->out[axis], r->in[axis] } };
    const ir_ref def = opjit_fe_reduce_counted(r->l, IR_SUM, r->real, &shape);

    if (f->failed)
        return 0;
    const ir_ref region = opjit_ir_coordinate(f, def, 0), i = opjit_ir_coordinate(f, def, 3);
    const ir_ref samples = ir_expr1(f, IR_TO_INDEX, IR_INDEX, opjit_fe_roi_value(r, r->samples[axis], region));
    opjit_ir_set_count(f, def,
                       ir_expr3(f, IR_CLAMP, IR_INDEX, samples, opjit_ir_index(f, 1),
                                opjit_ir_index(f, (int64_t)r->most[axis])));
    const ir_ref x = opjit_fe_roi_place(r, axis, region, opjit_ir_coordinate(f, def, 2),
                                        ir_expr1(f, IR_ELEM, IR_U64, opjit_ir_reduced(f, def)));
    const roi_sides s = opjit_fe_roi_sides(r, axis, x);
    const ir_ref weight = op2(&g->e, IR_ADD, if_at(g, s.low, i, op2(&g->e, IR_SUB, one(&g->e), s.t)),
                              if_at(g, s.high, i, s.t));
    opjit_fe_set(r->l, def, choose(&g->e, opjit_fe_roi_inside(r, axis, x), weight, opjit_fe_number(&g->e, 0)));
    return tensor_of(g, def);
}

/* The coordinates of the output element that an update is of, `each` updates an element. */
static void update_at(const gradient *g, ir_ref scatter, uint64_t each, ir_ref channel, ir_ref at[4])
{
    const roi *r = &g->r;
    const ir_ref u = g->f->failed ? 0 : opjit_ir_update(g->f, scatter);

    at[0] = moves_digit(g->f, u, each * r->out[ROI_X] * r->out[ROI_Y], r->count);
    at[AT_CHANNEL] = channel;
    at[AT_ROW] = moves_digit(g->f, u, each * r->out[ROI_X], r->out[ROI_Y]);
    at[AT_COLUMN] = moves_digit(g->f, u, each, r->out[ROI_X]);
}

/* The region's image, or none. */
static void set_batch(const gradient *g, ir_ref scatter, uint32_t dimension, ir_ref region, ir_ref any)
{
    if (!g->f->failed)
        opjit_ir_set_place(g->f, scatter, dimension,
                           ir_expr3(g->f, IR_SELECT, IR_INDEX, any,
                                    opjit_fe_roi_batch(&g->r, region, g->r.batch_count), opjit_ir_index(g->f, -1)));
}

static ir_ref not_zero(const gradient *g, ir_ref x)
{
    return ir_expr2(g->f, IR_NE, IR_BOOL, x, opjit_fe_number(&g->e, 0));
}

/* Sums of so many updates, from 0 on. */
static ir_ref begin_sums(const gradient *g, const fe_tensor *shape, uint64_t updates)
{
    const ir_ref scatter = opjit_fe_scatter(g->r.l, IR_SUM, g->r.real, shape, updates);

    if (!g->f->failed)
        opjit_ir_set_initial(g->f, scatter, opjit_fe_number(&g->e, 0));
    return scatter;
}

/* AVERAGE: a tensor of channels, rows, images and columns, so that an update is of one row. */
static uint32_t lower_means(const gradient *g)
{
    const roi *r = &g->r;
    ir_func *f = g->f;
    const uint32_t down = weights(g, ROI_Y), across = weights(g, ROI_X);
    const fe_tensor shape = { .rank = 4,
                              .sizes = { image_of(r->l->op)->sizes[AT_CHANNEL], r->in[ROI_Y], r->batch_count,
                                         r->in[ROI_X] } };
    const ir_ref scatter = begin_sums(g, &shape, r->count * r->out[ROI_Y] * r->out[ROI_X]);
    const ir_ref zero = opjit_ir_index(f, 0);
    ir_ref at[4];

    if (f->failed)
        return 0;
    update_at(g, scatter, 1, opjit_ir_coordinate(f, scatter, 0), at);
    const ir_ref v = load(g, down, at[0], zero, at[AT_ROW], opjit_ir_coordinate(f, scatter, 1));
    const ir_ref w = load(g, across, at[0], zero, at[AT_COLUMN], opjit_ir_coordinate(f, scatter, 3));
    set_batch(g, scatter, 2, at[0], not_zero(g, v));
    const ir_ref all = op2(&g->e, IR_MUL, incoming(g, at), op2(&g->e, IR_MUL, v, w));
    opjit_fe_set(r->l, scatter, choose(&g->e, not_zero(g, w), all, opjit_fe_number(&g->e, 0)));
    return tensor_of(g, scatter);
}

/* The numbers of the samples that are the maxima. */
static uint32_t lower_winners(const gradient *g)
{
    const roi *r = &g->r;
    ir_func *f = g->f;
    const fe_tensor *like = &r->l->op->inputs[INCOMING];
    const roi_samples s = opjit_fe_roi_reduce(r, IR_KMAX, r->real, like);

    opjit_fe_set(r->l, s.def,
                 choose(&g->e, opjit_fe_roi_both_inside(r, s.x, s.y),
                        opjit_fe_roi_sample(r, &g->e, s.at[0], s.at[AT_CHANNEL], s.x, s.y),
                        opjit_fe_number(&g->e, -INFINITY)));
    const uint32_t greatest = tensor_of(g, s.def);
    const roi_samples t = opjit_fe_roi_reduce(r, IR_KMIN, IR_U64, like);
    if (f->failed)
        return 0;
    const ir_ref value = opjit_fe_roi_sample(r, &g->e, t.at[0], t.at[AT_CHANNEL], t.x, t.y);
    const ir_ref is_it = ir_expr2(f, IR_OR, IR_BOOL,
                                  ir_expr2(f, IR_EQ, IR_BOOL, value, opjit_ir_load(f, greatest, t.at)),
                                  ir_expr2(f, IR_NE, IR_BOOL, value, value));
    const ir_ref wins = ir_expr2(f, IR_AND, IR_BOOL, opjit_fe_roi_both_inside(r, t.x, t.y), is_it);
    opjit_fe_set(r->l, t.def, ir_expr3(f, IR_SELECT, IR_U64, wins, t.number, opjit_ir_const(f, IR_U64, UINT64_MAX)));
    return tensor_of(g, t.def);
}

/* The greatest sample of the output element s->at, and whether there is one. */
static ir_ref winner_at(const gradient *g, roi_samples *s)
{
    const ir_ref number = g->f->failed ? 0 : opjit_ir_load(g->f, g->winners, s->at);

    opjit_fe_roi_place_sample(&g->r, s, number);
    return ir_expr2(g->f, IR_LT, IR_BOOL, number, opjit_fe_roi_count(&g->r, s->at[0]));
}

/* One of both sides, by an index of 0 or 1. */
static ir_ref side(const gradient *g, ir_ref which, ir_type type, ir_ref low, ir_ref high)
{
    return ir_expr3(g->f, IR_SELECT, type, ir_expr2(g->f, IR_EQ, IR_BOOL, which, opjit_ir_index(g->f, 0)), low, high);
}

/* MAX: a tensor of channels, images, rows and columns, four updates an output element. */
static uint32_t lower_maxima(const gradient *g)
{
    const roi *r = &g->r;
    ir_func *f = g->f;
    const fe_tensor shape = { .rank = 4,
                              .sizes = { image_of(r->l->op)->sizes[AT_CHANNEL], r->batch_count, r->in[ROI_Y],
                                         r->in[ROI_X] } };
    const ir_ref scatter = begin_sums(g, &shape, r->count * r->out[ROI_Y] * r->out[ROI_X] * 4);
    roi_samples s = { .def = scatter };

    if (f->failed)
        return 0;
    update_at(g, scatter, 4, opjit_ir_coordinate(f, scatter, 0), s.at);
    const ir_ref any = winner_at(g, &s);
    const ir_ref lower = moves_digit(f, opjit_ir_update(f, scatter), 2, 2),
                 right = moves_digit(f, opjit_ir_update(f, scatter), 1, 2);
    const roi_sides rows = opjit_fe_roi_sides(r, ROI_Y, s.y), columns = opjit_fe_roi_sides(r, ROI_X, s.x);
    const ir_ref v = side(g, lower, r->real, op2(&g->e, IR_SUB, one(&g->e), rows.t), rows.t);
    const ir_ref w = side(g, right, r->real, op2(&g->e, IR_SUB, one(&g->e), columns.t), columns.t);
    const ir_ref both = op2(&g->e, IR_MUL, v, w);
    set_batch(g, scatter, 1, s.at[0], ir_expr2(f, IR_AND, IR_BOOL, any, not_zero(g, both)));
    opjit_ir_set_place(f, scatter, 2, side(g, lower, IR_INDEX, rows.low, rows.high));
    opjit_ir_set_place(f, scatter, 3, side(g, right, IR_INDEX, columns.low, columns.high));
    opjit_fe_set(r->l, scatter, op2(&g->e, IR_MUL, incoming(g, s.at), both));
    return tensor_of(g, scatter);
}

static void lower_image(const gradient *g)
{
    ir_func *f = g->f;
    const uint32_t sums = g->max ? lower_maxima(g) : lower_means(g);
    const ir_ref out = opjit_fe_output(g->r.l, IMAGE_GRADIENT);
    ir_ref at[4];

    for (uint32_t d = 0; d < 4 && !f->failed; d++)
        at[d] = opjit_ir_coordinate(f, out, d);
    if (!f->failed)
        opjit_fe_set(g->r.l, out,
                     g->max ? load(g, sums, at[AT_CHANNEL], at[0], at[AT_ROW], at[AT_COLUMN])
                            : load(g, sums, at[AT_CHANNEL], at[AT_ROW], at[0], at[AT_COLUMN]));
}

/* --- regions ------------------------------------------------------------------------------------------------------ */

/* What a sample adds to corner k of its region. */
static ir_ref share(const gradient *g, const roi_samples *s, ir_ref k)
{
    const roi *r = &g->r;
    const op_element *e = &g->e;
    const ir_ref is_y = moves_digit(g->f, k, 1, 2), is_end = moves_digit(g->f, k, 2, 2);
    const roi_sides rows = opjit_fe_roi_sides(r, ROI_Y, s->y), columns = opjit_fe_roi_sides(r, ROI_X, s->x);
    const ir_ref batch = opjit_fe_roi_batch(r, s->at[0], r->batch_count), c = s->at[AT_CHANNEL];
    const ir_ref first = opjit_fe_roi_pixel(r, batch, c, rows.low, columns.low),
                 last = opjit_fe_roi_pixel(r, batch, c, rows.up, columns.up),
                 along = opjit_fe_roi_pixel(r, batch, c, side(g, is_y, IR_INDEX, rows.low, rows.up),
                                            side(g, is_y, IR_INDEX, columns.up, columns.low)),
                 beside = opjit_fe_roi_pixel(r, batch, c, side(g, is_y, IR_INDEX, rows.up, rows.low),
                                             side(g, is_y, IR_INDEX, columns.low, columns.up));
    const ir_ref t = side(g, is_y, r->real, rows.t, columns.t);
    const ir_ref slope = op2(e, IR_ADD, op2(e, IR_MUL, op2(e, IR_SUB, one(e), t), op2(e, IR_SUB, along, first)),
                             op2(e, IR_MUL, t, op2(e, IR_SUB, last, beside)));
    const ir_ref to = side(g, is_y, r->real, opjit_fe_roi_steps_to(r, ROI_X, s->at[0], s->at[AT_COLUMN], s->column),
                           opjit_fe_roi_steps_to(r, ROI_Y, s->at[0], s->at[AT_ROW], s->row));
    const ir_ref steps = side(g, is_y, r->real, opjit_fe_roi_steps(r, ROI_X, s->at[0]),
                              opjit_fe_roi_steps(r, ROI_Y, s->at[0]));
    const ir_ref part = op2(e, IR_DIV, to, steps);
    return op2(e, IR_MUL, op2(e, IR_MUL, slope, incoming(g, s->at)),
               side(g, is_end, r->real, op2(e, IR_SUB, one(e), part), part));
}

/* The sums for the corners of each region. */
static uint32_t lower_corners(const gradient *g)
{
    const roi *r = &g->r;
    ir_func *f = g->f;
    const uint64_t channels = image_of(r->l->op)->sizes[AT_CHANNEL], elements = channels * r->out[0] * r->out[1];
    const fe_tensor shape = { .rank = 4, .sizes = { r->count, 1, 1, 4 } };
    const ir_ref def = g->max ? opjit_fe_reduce_to(r->l, IR_SUM, r->real, &shape, elements)
                              : opjit_fe_reduce_counted(r->l, IR_SUM, r->real, &shape);
    roi_samples s = { .def = def };

    if (f->failed)
        return 0;
    s.at[0] = opjit_ir_coordinate(f, def, 0);
    ir_ref element = opjit_ir_reduced(f, def), sample = 0, any = 0;
    if (!g->max) {
        const ir_ref each = opjit_fe_roi_count(r, s.at[0]), number = ir_expr1(f, IR_ELEM, IR_U64, element);
        const ir_ref count = ir_expr2(f, IR_MUL, IR_U64, each, opjit_ir_const(f, IR_U64, elements));
        opjit_ir_set_count(
            f, def,
            ir_expr3(f, IR_CLAMP, IR_INDEX, ir_expr1(f, IR_TO_INDEX, IR_INDEX, count), opjit_ir_index(f, 1),
                     opjit_ir_index(f, (int64_t)(elements * r->most[ROI_X] * r->most[ROI_Y]))));
        sample = ir_expr2(f, IR_REM, IR_U64, number, each);
        element = opjit_fe_inside(f, ir_expr1(f, IR_TO_INDEX, IR_INDEX, ir_expr2(f, IR_DIV, IR_U64, number, each)),
                                  elements);
    }
    s.at[AT_CHANNEL] = moves_digit(f, element, r->out[ROI_X] * r->out[ROI_Y], channels);
    s.at[AT_ROW] = moves_digit(f, element, r->out[ROI_X], r->out[ROI_Y]);
    s.at[AT_COLUMN] = moves_digit(f, element, 1, r->out[ROI_X]);
    if (!g->max)
        opjit_fe_roi_place_sample(r, &s, sample);
    else
        any = winner_at(g, &s);
    const ir_ref inside = opjit_fe_roi_both_inside(r, s.x, s.y);
    opjit_fe_set(r->l, def,
                 choose(&g->e, g->max ? any : inside, share(g, &s, opjit_ir_coordinate(f, def, 3)),
                        opjit_fe_number(&g->e, 0)));
    return tensor_of(g, def);
}

static void lower_regions(const gradient *g)
{
    const roi *r = &g->r;
    ir_func *f = g->f;
    const uint32_t sums = lower_corners(g), rank = r->l->op->outputs[REGION_GRADIENT].rank;
    const ir_ref out = opjit_fe_output(r->l, REGION_GRADIENT), zero = opjit_ir_index(f, 0);

    if (f->failed)
        return;
    const ir_ref k = opjit_ir_coordinate(f, out, rank - 1);
    const ir_ref scale = side(g, moves_digit(f, k, 1, 2), r->real, opjit_fe_number(&g->e, r->scale[ROI_X]),
                              opjit_fe_number(&g->e, r->scale[ROI_Y]));
    opjit_fe_set(r->l, out,
                 op2(&g->e, IR_MUL, load(g, sums, opjit_ir_coordinate(f, out, rank - 2), zero, zero, k), scale));
}

static void lower(op_lowering *l)
{
    const opjit_operator *op = l->op;
    const DESC *desc = op->desc;
    gradient g = { .r = opjit_fe_roi_of(l, image_of(op), &op->inputs[INCOMING]),
                   .f = l->f,
                   .max = desc->ReductionFunction == DML_REDUCE_FUNCTION_MAX };

    g.e = (op_element){ .f = l->f, .desc = desc, .type = g.r.real, .result = g.r.real };
    opjit_fe_roi_begin(&g.r);
    if (g.max)
        g.winners = lower_winners(&g);
    if (op->outputs[IMAGE_GRADIENT].present)
        lower_image(&g);
    if (op->outputs[REGION_GRADIENT].present)
        lower_regions(&g);
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

/* clang-format off */
static const op_field fields[] = {
    OP_FIELD(DESC, InputTensor, OP_INPUT, OP_OPTIONAL),
    OP_FIELD(DESC, InputGradientTensor, OP_INPUT, 0),
    OP_FIELD(DESC, ROITensor, OP_INPUT, 0),
    OP_FIELD(DESC, BatchIndicesTensor, OP_INPUT, 0),
    OP_FIELD(DESC, OutputGradientTensor, OP_OUTPUT, OP_OPTIONAL),
    OP_FIELD(DESC, OutputROIGradientTensor, OP_OUTPUT, OP_OPTIONAL),
    OP_FIELD_ENUM(DESC, ReductionFunction, &opjit_fe_roi_reductions),
    OP_FIELD_ENUM(DESC, InterpolationMode, &opjit_fe_interpolation_modes),
    OP_FIELD(DESC, SpatialScaleX, OP_FLOAT, 0),
    OP_FIELD(DESC, SpatialScaleY, OP_FLOAT, 0),
    OP_FIELD(DESC, InputPixelOffset, OP_FLOAT, 0),
    OP_FIELD(DESC, OutputPixelOffset, OP_FLOAT, 0),
    OP_FIELD(DESC, MinimumSamplesPerOutput, OP_UINT, 0),
    OP_FIELD(DESC, MaximumSamplesPerOutput, OP_UINT, 0),
    OP_FIELD(DESC, AlignRegionsToCorners, OP_BOOL, 0),
};

static const op_support support[] = {
    { NULL, 0, 4, 4, OP_TYPES_FLOAT | OP_TYPES(FLOAT64) },
    { NULL, DML_FEATURE_LEVEL_4_1, 4, 4, OP_TYPES_FLOAT },
    { "ROITensor", 0, 2, 4, OP_TYPES_FLOAT | OP_TYPES(FLOAT64) },
    { "ROITensor", DML_FEATURE_LEVEL_4_1, 2, 4, OP_TYPES_FLOAT },
    { "BatchIndicesTensor", 0, 1, 4, OP_TYPES(UINT32) | OP_TYPES(UINT64) },
    { "BatchIndicesTensor", DML_FEATURE_LEVEL_4_1, 1, 4, OP_TYPES(UINT32) },
    { "OutputROIGradientTensor", 0, 2, 4, OP_TYPES_FLOAT | OP_TYPES(FLOAT64) },
    { "OutputROIGradientTensor", DML_FEATURE_LEVEL_4_1, 2, 4, OP_TYPES_FLOAT },
};
/* clang-format on */

const op_def opjit_fe_op_roi_align_grad = {
    .type = DML_OPERATOR_ROI_ALIGN_GRAD,
    .name = "ROI_ALIGN_GRAD",
    .formula = "gradients of ROI_ALIGN1's image and of its regions",
    .desc_size = sizeof(DESC),
    OP_ROWS(fields, support),
    .introduced = DML_FEATURE_LEVEL_4_1,
    .validate = validate,
    .infer = infer,
    .lower = lower,
};
