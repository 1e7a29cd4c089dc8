/* SPDX-License-Identifier: Apache-2.0 */
/* max_pooling.c - MAX_POOLING, its later forms with OutputIndices and Dilations, and its gradient.
 *
 * Padding never wins: a window that holds no element gives the type's least value, minus infinity of floats.  The first
 * NaN wins.  An index is the least one, in the packed input, of the window's elements that equal the maximum, or of its
 * NaNs where the maximum is one; all bits are 1 where the window holds no element. */
#include "frontend/ops/moves.h"
#include "frontend/ops/pointwise.h"
#include "frontend/ops/reduce.h"
#include "frontend/ops/window/window.h"

enum { VALUES, INDICES }; /* outputs */

/* --- formulas ----------------------------------------------------------------------------------------------------- */

/* The number of an element in the packed tensor. */
static ir_ref place_of(ir_func *f, const fe_tensor *t, const ir_ref *at)
{
    ir_ref number = at[0];

    for (uint32_t d = 1; d < t->rank; d++)
        number = ir_expr2(f, IR_IADD, IR_INDEX, moves_mul(f, number, (int64_t)t->sizes[d]), at[d]);
    return number;
}

/* The maximum of each window of the tensor, which is like `image`, in one like `pooled`. */
static ir_ref lower_maximum(op_lowering *l, const fe_window *w, uint32_t tensor, const fe_tensor *image,
                            const fe_tensor *pooled)
{
    ir_func *f = l->f;
    ir_ref at[OPJIT_MAX_RANK], of[OPJIT_MAX_RANK];
    const ir_type type = opjit_ir_type_of(l->op->inputs[0].dtype);
    const ir_ref max = opjit_fe_reduce_to(l, IR_KMAX, type, pooled, opjit_fe_window_taps(w));

    opjit_fe_own(l, max, at);
    if (f->failed)
        return 0;
    const ir_ref inside = opjit_fe_window_tap(f, w, image, at, opjit_ir_reduced(f, max), of);
    const ir_ref least = opjit_ir_const(f, type, opjit_ir_identity(type, IR_KMAX));
    if (f->tensors[tensor].rank == 1)
        of[0] = place_of(f, image, of);
    opjit_ir_set_value(f, max, ir_expr3(f, IR_SELECT, type, inside, opjit_ir_load(f, tensor, of), least));
    return max;
}

/* --- one dimension after the other -------------------------------------------------------------------------------- */

/* The same window along dimension d alone. */
typedef struct window_line {
    fe_window window;
    uint32_t strides[OPJIT_MAX_RANK], sizes[OPJIT_MAX_RANK], start[OPJIT_MAX_RANK], dilations[OPJIT_MAX_RANK];
} window_line;

static void set_line(window_line *line, const fe_window *w, uint32_t d)
{
    for (uint32_t i = 0; i < w->count; i++) {
        line->strides[i] = i == d ? w->strides[d] : 1;
        line->sizes[i] = i == d ? w->sizes[d] : 1;
        line->dilations[i] = i == d ? window_dilation(w, d) : 1;
        line->start[i] = i == d ? w->start[d] : 0;
    }
    line->window = (fe_window){ .count = w->count,
                                .strides = line->strides,
                                .sizes = line->sizes,
                                .start = line->start,
                                .end = line->start,
                                .dilations = line->dilations };
}

/* A window of many taps as a few of fewer taps each, `apart` taps from one to the next.  They may overlap: a maximum is
 * the same, bit for bit, however often a value takes part, as the last of equal values wins, and the first NaN. */
typedef struct window_parts {
    uint32_t parts, rest, apart;
    uint64_t windows; /* of `rest` taps, which begin at each element */
} window_parts;

/* The parts with the fewest steps, of this many windows; false: the windows themselves have fewer. */
static bool split(uint32_t size, uint64_t windows, uint32_t stride, uint32_t dilation, window_parts *out)
{
    enum { MOST_PARTS = 8, PASS = 6 /* steps that a pass over memory takes */ };

    *out = (window_parts){ .parts = 1, .rest = size };
    for (uint32_t parts = 2; parts <= MOST_PARTS && parts < size; parts++) {
        const uint32_t apart = size / parts, rest = size - (parts - 1) * apart;
        if (parts + rest < out->parts + out->rest)
            *out = (window_parts){ .parts = parts, .rest = rest, .apart = apart };
    }
    out->windows = (windows - 1) * stride + (uint64_t)(size - out->rest) * dilation + 1;
    return out->parts > 1 && (double)out->windows * (out->rest + PASS) < (double)windows * (size - out->parts);
}

enum { MOST_PASSES = 16 };

/* The passes in which so many windows along dimension d are made, the last one first.  Returns the place of the first
 * pass, which reads the image's elements. */
static uint32_t find_passes(const fe_window *w, uint32_t d, uint64_t windows, window_parts out[MOST_PASSES + 1])
{
    uint32_t count = 0, size = w->sizes[d];

    while (count < MOST_PASSES &&
           split(size, windows, count == 0 ? w->strides[d] : 1, window_dilation(w, d), &out[count])) {
        size = out[count].rest;
        windows = out[count++].windows;
    }
    out[count] = (window_parts){ .parts = size, .apart = 1 };
    return count;
}

/* The steps of windows along one dimension. */
static double steps_of(const fe_window *w, uint32_t d, uint64_t windows)
{
    window_parts passes[MOST_PASSES + 1];
    const uint32_t count = find_passes(w, d, windows, passes);
    double steps = 0;

    for (uint32_t i = 0; i <= count; i++)
        steps += (double)(i == 0 ? windows : passes[i - 1].windows) * passes[i].parts;
    return steps;
}

/* How long a line is whose windows are all inside; 0: the image's is. */
static uint64_t padded(const fe_window *w, uint32_t d, uint64_t size, uint64_t windows)
{
    const uint64_t reach = (windows - 1) * w->strides[d] + (uint64_t)(w->sizes[d] - 1) * window_dilation(w, d) + 1;

    return w->start[d] == 0 && reach <= size ? 0 : reach;
}

/* Whether it takes fewer steps to make the maxima along the last dimension first, and those of these along the one
 * before it next, than those of whole windows. */
static bool is_separable(const fe_window *w, const fe_tensor *image, const fe_tensor *pooled)
{
    double elements = 1, steps = 0, whole = (double)opjit_fe_window_taps(w);

    for (uint32_t d = 0; d < image->rank; d++) {
        elements *= (double)image->sizes[d];
        whole *= (double)pooled->sizes[d];
    }
    for (uint32_t d = w->count; d-- > 0;) {
        const uint64_t size = image->sizes[WINDOW_FIRST + d], windows = pooled->sizes[WINDOW_FIRST + d];
        if (d == w->count - 1)
            steps += elements / (double)size * (double)padded(w, d, size, windows);
        steps += elements / (double)size * steps_of(w, d, windows);
        elements *= (double)windows / (double)size;
    }
    return steps < whole;
}

/* The image with lines of this length, in memory: what is read of it has no conditions, and is seen as one line. */
static uint32_t pad(op_lowering *l, const fe_window *w, fe_tensor *image, uint64_t line)
{
    const uint32_t last = image->rank - 1;
    const uint64_t size = image->sizes[last];
    const ir_type type = opjit_ir_type_of(image->dtype);
    ir_func *f = l->f;
    ir_ref at[OPJIT_MAX_RANK];

    image->sizes[last] = line;
    const ir_ref wide = opjit_fe_def_to(l, type, image);
    opjit_fe_own(l, wide, at);
    if (f->failed)
        return 0;
    at[last] = moves_add(f, at[last], -(int64_t)w->start[w->count - 1]);
    const ir_ref inside = opjit_fe_between(f, at[last], 0, size);
    at[last] = opjit_fe_inside(f, at[last], size);
    const ir_ref least = opjit_ir_const(f, type, opjit_ir_identity(type, IR_KMAX));
    opjit_ir_set_value(f, wide, ir_expr3(f, IR_SELECT, type, inside, opjit_ir_load(f, l->inputs[0], at), least));

    ir_tensor flat = f->tensors[ir_at(f, wide)->ref];
    flat = (ir_tensor){ .role = IR_VIEW,
                        .of = ir_at(f, wide)->ref,
                        .type = type,
                        .rank = 1,
                        .sizes = { flat.bytes / opjit_ir_type_size(type) },
                        .strides = { 1 },
                        .bytes = flat.bytes,
                        .align = flat.align };
    return opjit_ir_tensor(f, &flat);
}

/* The maxima of the tensor's windows along dimension d, in one like `next`: a pass for each of the window's parts, the
 * smallest ones first.  The tensor and *image become what was made. */
static ir_ref lower_line(op_lowering *l, window_line *line, uint32_t d, uint32_t *tensor, fe_tensor *image,
                         const fe_tensor *next)
{
    window_parts passes[MOST_PASSES + 1];
    const uint32_t stride = line->strides[d], dilation = line->dilations[d];
    const uint32_t count = find_passes(&line->window, d, next->sizes[WINDOW_FIRST + d], passes);
    ir_ref max = 0;

    for (uint32_t i = count + 1; i-- > 0 && !l->f->failed;) {
        fe_tensor made = *next;
        line->sizes[d] = passes[i].parts;
        line->dilations[d] = passes[i].apart * dilation;
        line->strides[d] = i == 0 ? stride : 1;
        if (i > 0)
            made.sizes[WINDOW_FIRST + d] = (uint32_t)passes[i - 1].windows;
        max = lower_maximum(l, &line->window, *tensor, image, &made);
        *tensor = l->f->failed ? 0 : ir_at(l->f, max)->ref;
        *image = made;
        line->start[d] = 0;
    }
    return max;
}

/* The maximum of each window, in a tensor like `pooled`.  A window of 13 x 13 has 169 steps, or 26 one dimension after
 * the other.  The last dimension comes first: so of equal values (+0 and -0) and of NaNs the same one wins as in the
 * order of the taps. */
static ir_ref lower_maxima(op_lowering *l, const fe_window *w, const fe_tensor *pooled)
{
    fe_tensor image = l->op->inputs[0], next = image;
    uint32_t tensor = l->inputs[0];
    ir_ref max = 0;
    window_line line;

    if (!is_separable(w, &image, pooled))
        return lower_maximum(l, w, tensor, &image, pooled);
    for (uint32_t d = w->count; d-- > 0 && !l->f->failed;) {
        const uint64_t size = image.sizes[WINDOW_FIRST + d], windows = pooled->sizes[WINDOW_FIRST + d];
        const uint64_t length = d == w->count - 1 ? padded(w, d, size, windows) : 0;
        if (max != 0 && w->sizes[d] == 1 && windows == size && w->strides[d] == 1 && w->start[d] == 0)
            continue; /* its elements are the maxima */
        set_line(&line, w, d);
        if (length > 0) {
            tensor = pad(l, w, &image, length);
            line.start[d] = 0;
        }
        next.sizes[WINDOW_FIRST + d] = windows;
        max = lower_line(l, &line, d, &tensor, &image, &next);
    }
    return max;
}

/* --- indices ------------------------------------------------------------------------------------------------------ */

/* x == m, or both are NaN */
static ir_ref equals(ir_func *f, ir_type type, ir_ref x, ir_ref m)
{
    const ir_ref same = ir_expr2(f, IR_EQ, IR_BOOL, x, m);

    if (!ir_is_float(type))
        return same;
    const ir_ref nans =
        ir_expr2(f, IR_AND, IR_BOOL, ir_expr2(f, IR_NE, IR_BOOL, x, x), ir_expr2(f, IR_NE, IR_BOOL, m, m));
    return ir_expr2(f, IR_OR, IR_BOOL, same, nans);
}

/* The least number of an element of each window that equals its maximum, in a type of integers. */
static ir_ref lower_indices(op_lowering *l, const fe_window *w, const fe_tensor *pooled, ir_type type, ir_ref max)
{
    const fe_tensor *image = &l->op->inputs[0];
    ir_func *f = l->f;
    ir_ref at[OPJIT_MAX_RANK], of[OPJIT_MAX_RANK];
    const ir_ref least = opjit_fe_reduce_to(l, IR_KMIN, type, pooled, opjit_fe_window_taps(w));

    opjit_fe_own(l, least, at);
    if (f->failed)
        return 0;
    const ir_ref inside = opjit_fe_window_tap(f, w, image, at, opjit_ir_reduced(f, least), of);
    const ir_ref hit =
        equals(f, opjit_ir_type_of(image->dtype), opjit_ir_load(f, l->inputs[0], of), opjit_fe_value_at(l, max, 0, at));
    const ir_ref none = opjit_ir_const(f, type, opjit_ir_identity(type, IR_KMIN));
    const ir_ref place = ir_expr1(f, IR_ELEM, type, place_of(f, image, of));
    opjit_ir_set_value(f, least,
                       ir_expr3(f, IR_SELECT, type, ir_expr2(f, IR_AND, IR_BOOL, inside, hit), place, none));
    return least;
}

/* Output i is a definition's values. */
static void yield(op_lowering *l, uint32_t i, ir_ref def)
{
    ir_ref at[OPJIT_MAX_RANK];
    const ir_ref out = opjit_fe_output(l, i);

    opjit_fe_own(l, out, at);
    opjit_fe_set(l, out, opjit_fe_value_at(l, def, 0, at));
}

/* --- MAX_POOLING -------------------------------------------------------------------------------------------------- */

static opjit_status validate(const opjit_operator *op, opjit_error *error)
{
    const fe_window w = opjit_fe_window_of(op->def, op->desc);

    TRY(opjit_fe_check_pair(op, VALUES, error));
    TRY(opjit_fe_window_check_pooled(op, &w, &op->inputs[0], op->output_names[VALUES], &op->outputs[VALUES], error));
    if (op->output_count <= INDICES || !op->outputs[INDICES].present)
        return OPJIT_OK;
    return opjit_fe_window_check_pooled(op, &w, &op->inputs[0], op->output_names[INDICES], &op->outputs[INDICES],
                                        error);
}

static void infer(op_inference *s)
{
    opjit_fe_window_infer(s);
    if (s->output_count <= INDICES)
        return;
    infer_type(&s->outputs[INDICES], DML_TENSOR_DATA_TYPE_UINT32);
    infer_shape(&s->outputs[INDICES], &s->outputs[VALUES]);
}

static void lower(op_lowering *l)
{
    const fe_window w = opjit_fe_window_of(l->op->def, l->op->desc);
    const fe_tensor *pooled = &l->op->outputs[VALUES];
    const ir_ref max = lower_maxima(l, &w, pooled);

    yield(l, VALUES, max);
    if (l->op->output_count > INDICES && l->op->outputs[INDICES].present)
        yield(l, INDICES, lower_indices(l, &w, pooled, opjit_fe_output_type(l, INDICES), max));
}

/* clang-format off */
#define TYPES_8 (OP_TYPES(INT8) | OP_TYPES(UINT8))
#define TYPES_ALL_OF_5_0 (OP_TYPES_ALL & ~OP_TYPES(FLOAT64))
#define SUPPORT(LEVEL)                                                  \
    { NULL, 0, 4, 5, OP_TYPES_ALL },                                    \
    { NULL, DML_FEATURE_LEVEL_##LEVEL, 4, 5, OP_TYPES_FLOAT },          \
    { NULL, DML_FEATURE_LEVEL_3_0, 4, 5, OP_TYPES_FLOAT | TYPES_8 },    \
    { NULL, DML_FEATURE_LEVEL_5_0, 4, 5, TYPES_ALL_OF_5_0 }
#define INDEX_SUPPORT(LEVEL)                                                                          \
    { "OutputIndicesTensor", 0, 4, 5, OP_TYPES(UINT32) | OP_TYPES(UINT64) },                          \
    { "OutputIndicesTensor", DML_FEATURE_LEVEL_##LEVEL, 4, 5, OP_TYPES(UINT32) },                     \
    { "OutputIndicesTensor", DML_FEATURE_LEVEL_5_0, 4, 5, OP_TYPES(UINT32) | OP_TYPES(UINT64) }

static const op_support support[] = { SUPPORT(1_0) };
static const op_support support1[] = { SUPPORT(2_0), INDEX_SUPPORT(2_0) };
static const op_support support2[] = { SUPPORT(2_1), INDEX_SUPPORT(2_1) };

#define MAX DML_MAX_POOLING_OPERATOR_DESC
static const op_field fields[] = {
    OP_FIELD(MAX, InputTensor, OP_INPUT, 0),
    OP_FIELD(MAX, OutputTensor, OP_OUTPUT, 0),
    WINDOW_FIELDS(MAX),
};

#define MAX1 DML_MAX_POOLING1_OPERATOR_DESC
static const op_field fields1[] = {
    OP_FIELD(MAX1, InputTensor, OP_INPUT, 0),
    OP_FIELD(MAX1, OutputTensor, OP_OUTPUT, 0),
    OP_FIELD(MAX1, OutputIndicesTensor, OP_OUTPUT, OP_OPTIONAL),
    WINDOW_FIELDS(MAX1),
};

#define MAX2 DML_MAX_POOLING2_OPERATOR_DESC
static const op_field fields2[] = {
    OP_FIELD(MAX2, InputTensor, OP_INPUT, 0),
    OP_FIELD(MAX2, OutputTensor, OP_OUTPUT, 0),
    OP_FIELD(MAX2, OutputIndicesTensor, OP_OUTPUT, OP_OPTIONAL),
    WINDOW_FIELDS(MAX2),
    OP_FIELD_ARRAY(MAX2, Dilations, DimensionCount, OP_UINTS, 0),
};
/* clang-format on */

const op_def opjit_fe_op_max_pooling = {
    .type = DML_OPERATOR_MAX_POOLING,
    .name = "MAX_POOLING",
    .formula = "the maximum over the window",
    .desc_size = sizeof(MAX),
    OP_ROWS(fields, support),
    .introduced = DML_FEATURE_LEVEL_1_0,
    .validate = validate,
    .infer = infer,
    .lower = lower,
};

const op_def opjit_fe_op_max_pooling1 = {
    .type = DML_OPERATOR_MAX_POOLING1,
    .name = "MAX_POOLING1",
    .formula = "the maximum over the window, and where it is first",
    .desc_size = sizeof(MAX1),
    OP_ROWS(fields1, support1),
    .introduced = DML_FEATURE_LEVEL_2_0,
    .validate = validate,
    .infer = infer,
    .lower = lower,
};

const op_def opjit_fe_op_max_pooling2 = {
    .type = DML_OPERATOR_MAX_POOLING2,
    .name = "MAX_POOLING2",
    .formula = "the maximum over the window, and where it is first",
    .desc_size = sizeof(MAX2),
    OP_ROWS(fields2, support2),
    .introduced = DML_FEATURE_LEVEL_2_1,
    .validate = validate,
    .infer = infer,
    .lower = lower,
};

/* --- MAX_POOLING_GRAD --------------------------------------------------------------------------------------------- */

enum { GRADIENT = 1 }; /* position among the inputs */

#define MAX_GRAD DML_MAX_POOLING_GRAD_OPERATOR_DESC

/* clang-format off */
static const op_field grad_fields[] = {
    OP_FIELD(MAX_GRAD, InputTensor, OP_INPUT, 0),
    OP_FIELD(MAX_GRAD, InputGradientTensor, OP_INPUT, 0),
    OP_FIELD(MAX_GRAD, OutputGradientTensor, OP_OUTPUT, 0),
    WINDOW_FIELDS(MAX_GRAD),
    OP_FIELD_ARRAY(MAX_GRAD, Dilations, DimensionCount, OP_UINTS, 0),
};
static const op_support grad_support[] = {
    { NULL, 0, 4, 5, OP_TYPES_FLOAT | OP_TYPES(FLOAT64) },
    { NULL, DML_FEATURE_LEVEL_3_0, 4, 4, OP_TYPES_FLOAT },
    { NULL, DML_FEATURE_LEVEL_4_0, 4, 5, OP_TYPES_FLOAT },
};
/* clang-format on */

static opjit_status validate_grad(const opjit_operator *op, opjit_error *error)
{
    const fe_window w = opjit_fe_window_of(op->def, op->desc);

    TRY(opjit_fe_same_shape(op, 0, 0, error));
    TRY(opjit_fe_same_input_type(op, GRADIENT, 0, error));
    return opjit_fe_window_check_pooled(op, &w, &op->inputs[0], op->input_names[GRADIENT], &op->inputs[GRADIENT],
                                        error);
}

/* The sum of InputGradient over the windows whose index is this element's number: in the order of the windows. */
static void lower_grad(op_lowering *l)
{
    const fe_window w = opjit_fe_window_of(l->op->def, l->op->desc);
    const fe_tensor *image = &l->op->inputs[0], *pooled = &l->op->inputs[GRADIENT];
    const ir_type type = opjit_ir_type_of(image->dtype), wide = opjit_fe_wide(type);
    const ir_ref indices = lower_indices(l, &w, pooled, IR_U32, lower_maxima(l, &w, pooled));
    ir_func *f = l->f;
    ir_ref at[OPJIT_MAX_RANK], of[OPJIT_MAX_RANK], tap;
    const ir_ref sum = opjit_fe_reduce_to(l, IR_SUM, wide, image, opjit_fe_window_holders(&w, pooled));

    opjit_fe_own(l, sum, at);
    if (f->failed)
        return;
    const ir_ref holds = opjit_fe_window_holder(f, &w, pooled, at, opjit_ir_reduced(f, sum), of, &tap);
    const ir_ref index = opjit_fe_value_at(l, indices, 0, of);
    const ir_ref hit = ir_expr2(f, IR_EQ, IR_BOOL, index, ir_expr1(f, IR_ELEM, IR_U32, place_of(f, image, at)));
    ir_ref x = opjit_ir_load(f, l->inputs[GRADIENT], of);
    if (wide != type)
        x = ir_expr1(f, IR_CAST, wide, x);
    opjit_ir_set_value(
        f, sum, ir_expr3(f, IR_SELECT, wide, ir_expr2(f, IR_AND, IR_BOOL, holds, hit), x, opjit_ir_const(f, wide, 0)));
    yield(l, 0, sum);
}

const op_def opjit_fe_op_max_pooling_grad = {
    .type = DML_OPERATOR_MAX_POOLING_GRAD,
    .name = "MAX_POOLING_GRAD",
    .formula = "the sum of InputGradient over the windows whose first maximum the element is",
    .desc_size = sizeof(MAX_GRAD),
    OP_ROWS(grad_fields, grad_support),
    .introduced = DML_FEATURE_LEVEL_3_0,
    .validate = validate_grad,
    .infer = opjit_fe_infer_same,
    .lower = lower_grad,
};
