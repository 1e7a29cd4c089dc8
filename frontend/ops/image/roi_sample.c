/* SPDX-License-Identifier: Apache-2.0 */
/* roi_sample.c - what ROI_ALIGN's forms share: roi_align.h. */
#include "frontend/ops/image/roi_align.h"

#include "frontend/ops/moves.h"
#include "frontend/ops/pointwise.h"
#include "frontend/ops/reduce.h"

/* More samples than these along an axis are a mistake of the descriptor. */
#define MOST_LEAST 32768u

/* --- fields ------------------------------------------------------------------------------------------------------- */

static uint32_t number(const opjit_operator *op, const char *name)
{
    const void *field = opjit_fe_field(op->def, op->desc, name);
    uint32_t value = 0;

    if (field != NULL)
        memcpy(&value, field, sizeof value);
    return value;
}

static float real_number(const opjit_operator *op, const char *name, float without)
{
    const void *field = opjit_fe_field(op->def, op->desc, name);
    float value = without;

    if (field != NULL)
        memcpy(&value, field, sizeof value);
    return value;
}

static uint32_t position_of(const opjit_operator *op, const char *name)
{
    uint32_t i = 0;

    while (i + 1 < op->input_count && strcmp(op->input_names[i], name) != 0)
        i++;
    return i;
}

/* A region of twice the image has an element for each sample; a larger one has as many samples, farther apart. */
static uint64_t most_of(uint64_t in, uint64_t out, uint64_t least, uint64_t most)
{
    const uint64_t twice = (2 * in + out - 1) / out, some = most < twice ? most : twice;

    return some > least ? some : least;
}

roi opjit_fe_roi_of(op_lowering *l, const fe_tensor *image, const fe_tensor *output)
{
    const opjit_operator *op = l->op;
    const uint64_t least = number(op, "MinimumSamplesPerOutput"), most = number(op, "MaximumSamplesPerOutput");
    roi r = { .l = l,
              .real = output->dtype == DML_TENSOR_DATA_TYPE_FLOAT64 ? IR_F64 : IR_F32,
              .linear = number(op, "InterpolationMode") == DML_INTERPOLATION_MODE_LINEAR,
              .align = number(op, "AlignRegionsToCorners") != 0,
              .scale = { real_number(op, "SpatialScaleX", 1), real_number(op, "SpatialScaleY", 1) },
              .input_offset = real_number(op, "InputPixelOffset", 0.5f),
              .output_offset = real_number(op, "OutputPixelOffset", -0.5f),
              .regions = position_of(op, "ROITensor"),
              .batches = position_of(op, "BatchIndicesTensor"),
              .count = output->sizes[0],
              .batch_count = image->sizes[0] };

    for (uint32_t axis = 0; axis < ROI_AXES; axis++) {
        r.in[axis] = image->sizes[3 - axis];
        r.out[axis] = output->sizes[3 - axis];
        r.least[axis] = least > 1 ? least : 1;
        r.most[axis] = most_of(r.in[axis], r.out[axis], r.least[axis], most);
    }
    return r;
}

/* --- checks ------------------------------------------------------------------------------------------------------- */

static const op_enum_name reduction_names[] = {
    { "DML_REDUCE_FUNCTION_AVERAGE", DML_REDUCE_FUNCTION_AVERAGE },
    { "DML_REDUCE_FUNCTION_MAX", DML_REDUCE_FUNCTION_MAX },
    { NULL, 0 },
};
const op_enum opjit_fe_roi_reductions = { "DML_REDUCE_FUNCTION_", reduction_names };

static opjit_status check_samples(const opjit_operator *op, opjit_error *error)
{
    const uint32_t least = number(op, "MinimumSamplesPerOutput"), most = number(op, "MaximumSamplesPerOutput");

    if (least > MOST_LEAST)
        return opjit_rt_refuse(error, OPJIT_LIMIT, "{%s} {MinimumSamplesPerOutput}: {%u}, must be at most %u",
                               op->def->name, least, MOST_LEAST);
    if (most == 0 || most < least)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                               "{%s} {MaximumSamplesPerOutput}: {%u}, must be at least %u%s", op->def->name, most,
                               least > 1 ? least : 1, least > 1 ? " as MinimumSamplesPerOutput" : "");
    return OPJIT_OK;
}

/* Sizes of 1, then the regions, then `last`; 0: no more. */
static opjit_status check_list(const opjit_operator *op, uint32_t input, uint64_t regions, uint64_t last,
                               opjit_error *error)
{
    const fe_tensor *t = &op->inputs[input];
    const uint32_t behind = last != 0 ? 2 : 1;

    for (uint32_t d = 0; d < t->rank; d++) {
        const bool is_last = last != 0 && d + 1 == t->rank, is_count = d + behind == t->rank;
        TRY(opjit_fe_check_size(op, op->input_names[input], t, d, is_last ? last : is_count ? regions : 1,
                                is_last    ? ", the corners of a region"
                                : is_count ? ", the regions of the output"
                                           : "",
                                error));
    }
    return OPJIT_OK;
}

opjit_status opjit_fe_roi_check(const opjit_operator *op, const char *name, const fe_tensor *image,
                                const fe_tensor *output, uint32_t regions, opjit_error *error)
{
    const uint32_t batches = position_of(op, "BatchIndicesTensor");

    TRY(opjit_fe_check_size(op, name, output, 1, image->sizes[1], ", the channels of the image", error));
    TRY(check_list(op, regions, output->sizes[0], 4, error));
    TRY(check_list(op, batches, output->sizes[0], 0, error));
    return check_samples(op, error);
}

/* --- regions ------------------------------------------------------------------------------------------------------ */

static ir_ref constant(const roi *r, float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    const ir_ref x = opjit_ir_const(r->l->f, IR_F32, bits);
    return r->real == IR_F32 ? x : ir_expr1(r->l->f, IR_CAST, r->real, x);
}

static ir_ref compute(const roi *r, ir_op op, ir_ref a, ir_ref b)
{
    return ir_expr2(r->l->f, op, r->real, a, b);
}

/* Corner k of a region: x1, y1, x2, y2; times the scale. */
static ir_ref corner(const roi *r, ir_ref region, uint32_t k)
{
    ir_func *f = r->l->f;
    const fe_tensor *t = &r->l->op->inputs[r->regions];
    ir_ref at[OPJIT_MAX_RANK];

    for (uint32_t d = 0; d < t->rank; d++)
        at[d] = d + 2 == t->rank ? region : opjit_ir_index(f, d + 1 == t->rank ? k : 0);
    const ir_ref x = opjit_ir_load(f, r->l->inputs[r->regions], at);
    if (f->failed)
        return 0;
    return compute(r, IR_MUL, ir_at(f, x)->type == r->real ? x : ir_expr1(f, IR_CAST, r->real, x),
              constant(r, r->scale[k % ROI_AXES]));
}

static ir_ref extent(const roi *r, uint32_t axis, ir_ref region)
{
    return compute(r, IR_SUB, corner(r, region, ROI_AXES + axis), corner(r, region, axis));
}

/* How many samples there are. */
static ir_ref samples_of(const roi *r, uint32_t axis, ir_ref region)
{
    ir_func *f = r->l->f;
    const ir_ref each = compute(r, IR_DIV, extent(r, axis, region), opjit_fe_real(f, r->real, r->out[axis]));
    const ir_ref whole = ir_expr1(f, IR_CAST, IR_I64, ir_expr1(f, IR_CEIL, r->real, each));
    const ir_ref number = ir_expr3(f, IR_CLAMP, IR_INDEX, ir_expr1(f, IR_TO_INDEX, IR_INDEX, whole),
                                   opjit_ir_index(f, (int64_t)r->least[axis]),
                                   opjit_ir_index(f, (int64_t)r->most[axis]));

    return ir_expr1(f, IR_ELEM, IR_U64, number);
}

ir_ref opjit_fe_roi_steps(const roi *r, uint32_t axis, ir_ref region)
{
    ir_func *f = r->l->f;
    const ir_ref samples = opjit_fe_roi_value(r, r->samples[axis], region);
    ir_ref all = ir_expr2(f, IR_MUL, IR_U64, samples, opjit_ir_const(f, IR_U64, r->out[axis]));

    if (r->align)
        all = ir_expr2(f, IR_MAX, IR_U64, ir_expr2(f, IR_SUB, IR_U64, all, opjit_ir_const(f, IR_U64, 1)),
                       opjit_ir_const(f, IR_U64, 1));
    return ir_expr1(f, IR_CAST, r->real, all);
}

/* How far apart samples are. */
static ir_ref step_of(const roi *r, uint32_t axis, ir_ref region)
{
    return compute(r, IR_DIV, extent(r, axis, region), opjit_fe_roi_steps(r, axis, region));
}

/* A definition with an element for each region, and the region. */
static ir_ref define(const roi *r, ir_type type, ir_ref *region)
{
    const fe_tensor shape = { .rank = 4, .sizes = { r->count, 1, 1, 1 } };
    const ir_ref def = opjit_fe_def_to(r->l, type, &shape);

    *region = r->l->f->failed ? 0 : opjit_ir_coordinate(r->l->f, def, 0);
    return def;
}

static uint32_t tensor_of(const roi *r, ir_ref def)
{
    return r->l->f->failed ? 0 : ir_at(r->l->f, def)->ref;
}

void opjit_fe_roi_begin(roi *r)
{
    ir_ref region;

    for (uint32_t axis = 0; axis < ROI_AXES; axis++) {
        const ir_ref begin = define(r, r->real, &region);
        opjit_fe_set(r->l, begin, corner(r, region, axis));
        r->begin[axis] = tensor_of(r, begin);
        const ir_ref samples = define(r, IR_U64, &region);
        opjit_fe_set(r->l, samples, samples_of(r, axis, region));
        r->samples[axis] = tensor_of(r, samples);
        const ir_ref step = define(r, r->real, &region);
        opjit_fe_set(r->l, step, step_of(r, axis, region));
        r->step[axis] = tensor_of(r, step);
    }
}

ir_ref opjit_fe_roi_value(const roi *r, uint32_t tensor, ir_ref region)
{
    ir_func *f = r->l->f;
    const ir_ref zero = opjit_ir_index(f, 0), at[] = { region, zero, zero, zero };

    return f->failed ? 0 : opjit_ir_load(f, tensor, at);
}

/* --- samples ------------------------------------------------------------------------------------------------------ */

ir_ref opjit_fe_roi_steps_to(const roi *r, uint32_t axis, ir_ref region, ir_ref at, ir_ref sample)
{
    ir_func *f = r->l->f;
    const ir_ref first = ir_expr2(f, IR_MUL, IR_U64, ir_expr1(f, IR_ELEM, IR_U64, at),
                                  opjit_fe_roi_value(r, r->samples[axis], region));
    const ir_ref own = ir_expr1(f, IR_CAST, r->real, ir_expr2(f, IR_ADD, IR_U64, first, sample));

    return compute(r, IR_SUB, own, constant(r, r->output_offset));
}

ir_ref opjit_fe_roi_place(const roi *r, uint32_t axis, ir_ref region, ir_ref at, ir_ref sample)
{
    const ir_ref moved = opjit_fe_roi_steps_to(r, axis, region, at, sample);
    const ir_ref scaled = compute(r, IR_MUL, moved, opjit_fe_roi_value(r, r->step[axis], region));
    const ir_ref placed = compute(r, IR_ADD, scaled, opjit_fe_roi_value(r, r->begin[axis], region));

    return compute(r, IR_SUB, placed, constant(r, r->input_offset));
}

ir_ref opjit_fe_roi_inside(const roi *r, uint32_t axis, ir_ref x)
{
    ir_func *f = r->l->f;
    const ir_ref above = ir_expr2(f, IR_LE, IR_BOOL, constant(r, -1), x);
    const ir_ref below = ir_expr2(f, IR_LE, IR_BOOL, x, opjit_fe_real(f, r->real, r->in[axis]));

    return ir_expr2(f, IR_AND, IR_BOOL, above, below);
}

ir_ref opjit_fe_roi_both_inside(const roi *r, ir_ref x, ir_ref y)
{
    return ir_expr2(r->l->f, IR_AND, IR_BOOL, opjit_fe_roi_inside(r, ROI_X, x), opjit_fe_roi_inside(r, ROI_Y, y));
}

static ir_ref element_at(const roi *r, uint32_t axis, ir_ref x)
{
    ir_func *f = r->l->f;
    const ir_ref index = ir_expr1(f, IR_TO_INDEX, IR_INDEX, ir_expr1(f, IR_CAST, IR_I64, x));

    return opjit_fe_inside(f, index, r->in[axis]);
}

roi_sides opjit_fe_roi_sides(const roi *r, uint32_t axis, ir_ref x)
{
    ir_func *f = r->l->f;
    const ir_ref last = opjit_fe_real(f, r->real, r->in[axis] - 1);
    const ir_ref moved = compute(r, IR_MIN, compute(r, IR_MAX, x, constant(r, 0)), last);
    const ir_ref floor = ir_expr1(f, IR_FLOOR, r->real, moved);
    roi_sides s = { .t = constant(r, 0) };

    if (!r->linear) {
        const ir_ref up = ir_expr1(f, IR_CEIL, r->real, compute(r, IR_SUB, moved, constant(r, 0.5f)));
        s.low = s.high = s.up = element_at(r, axis, up);
        return s;
    }
    s.low = element_at(r, axis, floor);
    s.high = opjit_fe_inside(f, moves_add(f, s.low, 1), r->in[axis]);
    s.up = element_at(r, axis, ir_expr1(f, IR_CEIL, r->real, moved));
    s.t = compute(r, IR_SUB, moved, floor);
    return s;
}

ir_ref opjit_fe_roi_batch(const roi *r, ir_ref region, uint64_t size)
{
    ir_func *f = r->l->f;
    const fe_tensor *t = &r->l->op->inputs[r->batches];
    ir_ref at[OPJIT_MAX_RANK];

    for (uint32_t d = 0; d < t->rank; d++)
        at[d] = d + 1 == t->rank ? region : opjit_ir_index(f, 0);
    const ir_ref batch = opjit_ir_load(f, r->l->inputs[r->batches], at);
    return opjit_fe_inside(f, ir_expr1(f, IR_TO_INDEX, IR_INDEX, batch), size);
}

ir_ref opjit_fe_roi_pixel(const roi *r, ir_ref batch, ir_ref channel, ir_ref y, ir_ref x)
{
    const ir_ref at[] = { batch, channel, y, x };

    return opjit_fe_wide_input(r->l, at);
}

/* Between two elements. */
static ir_ref between(const op_element *e, ir_ref a, ir_ref b, ir_ref t)
{
    return op2(e, IR_ADD, op2(e, IR_MUL, a, op2(e, IR_SUB, one(e), t)), op2(e, IR_MUL, b, t));
}

ir_ref opjit_fe_roi_sample(const roi *r, const op_element *e, ir_ref region, ir_ref channel, ir_ref x, ir_ref y)
{
    const roi_sides columns = opjit_fe_roi_sides(r, ROI_X, x), rows = opjit_fe_roi_sides(r, ROI_Y, y);
    const ir_ref batch = opjit_fe_roi_batch(r, region, r->batch_count);

    if (!r->linear)
        return opjit_fe_roi_pixel(r, batch, channel, rows.low, columns.low);
    return between(e,
                   between(e, opjit_fe_roi_pixel(r, batch, channel, rows.low, columns.low),
                           opjit_fe_roi_pixel(r, batch, channel, rows.low, columns.high), columns.t),
                   between(e, opjit_fe_roi_pixel(r, batch, channel, rows.high, columns.low),
                           opjit_fe_roi_pixel(r, batch, channel, rows.high, columns.high), columns.t),
                   rows.t);
}

/* --- reductions --------------------------------------------------------------------------------------------------- */

ir_ref opjit_fe_roi_count(const roi *r, ir_ref region)
{
    return ir_expr2(r->l->f, IR_MUL, IR_U64, opjit_fe_roi_value(r, r->samples[ROI_X], region),
                    opjit_fe_roi_value(r, r->samples[ROI_Y], region));
}

void opjit_fe_roi_place_sample(const roi *r, roi_samples *s, ir_ref sample)
{
    ir_func *f = r->l->f;
    const ir_ref rows = opjit_fe_roi_value(r, r->samples[ROI_Y], s->at[0]);

    s->number = sample;
    s->column = ir_expr2(f, IR_DIV, IR_U64, sample, rows);
    s->row = ir_expr2(f, IR_REM, IR_U64, sample, rows);
    s->x = opjit_fe_roi_place(r, ROI_X, s->at[0], s->at[3], s->column);
    s->y = opjit_fe_roi_place(r, ROI_Y, s->at[0], s->at[2], s->row);
}

roi_samples opjit_fe_roi_reduce(const roi *r, ir_kind kind, ir_type type, const fe_tensor *like)
{
    ir_func *f = r->l->f;
    roi_samples s = { .def = opjit_fe_reduce_counted(r->l, kind, type, like) };

    if (f->failed)
        return s;
    for (uint32_t d = 0; d < 4; d++)
        s.at[d] = opjit_ir_coordinate(f, s.def, d);
    const ir_ref count = ir_expr1(f, IR_TO_INDEX, IR_INDEX, opjit_fe_roi_count(r, s.at[0]));
    opjit_ir_set_count(f, s.def,
                       ir_expr3(f, IR_CLAMP, IR_INDEX, count, opjit_ir_index(f, 1),
                                opjit_ir_index(f, (int64_t)(r->most[ROI_X] * r->most[ROI_Y]))));
    opjit_fe_roi_place_sample(r, &s, ir_expr1(f, IR_ELEM, IR_U64, opjit_ir_reduced(f, s.def)));
    return s;
}
