/* SPDX-License-Identifier: Apache-2.0 */
/* unfold.c - UNFOLD and FOLD: the windows of an image as columns of a matrix, and the sum of such columns where windows
 * overlap.  The matrix is { batch, channel and tap, window }, taps and windows row-major: a tensor of three dimensions,
 * as the documents' examples have it, or with leading ones as many as the image has, which their text demands.
 *
 * UNFOLD's padding is 0.  FOLD adds the windows that hold an element in their order, FLOAT16 in FLOAT32, integers
 * modulo 2^N; an element that no window holds is 0. */
#include "frontend/ops/infer.h"
#include "frontend/ops/moves.h"
#include "frontend/ops/reduce.h"
#include "frontend/ops/window/window.h"

enum { MATRIX_RANK = 3 };

/* Windows in an image; UINT64_MAX: more than a tensor can have. */
static uint64_t windows_of(const fe_window *w, const uint64_t *image)
{
    uint64_t windows = 1;

    for (uint32_t d = 0; d < w->count; d++) {
        const uint64_t along = opjit_fe_window_along(w, d, image[WINDOW_FIRST + d]);
        if (along != 0 && windows > UINT32_MAX / along)
            return UINT64_MAX;
        windows *= along;
    }
    return windows;
}

static opjit_status check_matrix(const opjit_operator *op, const fe_tensor *image, const char *name,
                                 const fe_tensor *matrix, opjit_error *error)
{
    const fe_window w = opjit_fe_window_of(op->def, op->desc);

    TRY(opjit_fe_window_check(op, &w, image, error));
    if (matrix->rank != MATRIX_RANK)
        TRY(opjit_fe_check_rank(op, name, matrix, image->rank, " as the image's, or 3", error));
    const uint32_t first = matrix->rank - MATRIX_RANK;
    for (uint32_t d = 0; d < first; d++)
        TRY(opjit_fe_check_size(op, name, matrix, d, 1, ", before a matrix for each of the batch", error));
    TRY(opjit_fe_check_size(op, name, matrix, first, image->sizes[0], " as the image's", error));
    TRY(opjit_fe_check_size(op, name, matrix, first + 1, image->sizes[1] * opjit_fe_window_taps(&w),
                            ", the channels times the elements of a window", error));
    return opjit_fe_check_size(op, name, matrix, first + 2, windows_of(&w, image->sizes), ", one for each window",
                               error);
}

/* --- UNFOLD ------------------------------------------------------------------------------------------------------- */

static opjit_status validate_unfold(const opjit_operator *op, opjit_error *error)
{
    TRY(opjit_fe_same_type(op, 0, 0, error));
    return check_matrix(op, &op->inputs[0], op->output_names[0], &op->outputs[0], error);
}

static void infer_unfold(op_inference *s)
{
    const fe_window w = opjit_fe_window_of(s->def, s->desc);
    const op_shape *image = &s->inputs[0];

    infer_type(&s->outputs[0], image->dtype);
    if (image->rank != w.count + WINDOW_FIRST)
        return;
    infer_shape(&s->outputs[0], &(op_shape){ .rank = MATRIX_RANK,
                                             .sizes = { image->sizes[0], image->sizes[1] * opjit_fe_window_taps(&w),
                                                        windows_of(&w, image->sizes) } });
}

/* Output[n, c * taps + tap, o] = the tap of window o in Input[n, c], or 0 */
static void lower_unfold(op_lowering *l)
{
    const fe_window w = opjit_fe_window_of(l->op->def, l->op->desc);
    const fe_tensor *image = &l->op->inputs[0];
    const uint32_t first = l->op->outputs[0].rank - MATRIX_RANK;
    const ir_type type = opjit_fe_output_type(l, 0);
    const ir_ref out = opjit_fe_output(l, 0);
    uint64_t below = windows_of(&w, image->sizes);
    ir_func *f = l->f;
    ir_ref at[OPJIT_MAX_RANK], of[OPJIT_MAX_RANK];

    if (f->failed)
        return;
    const ir_ref row = opjit_ir_coordinate(f, out, first + 1),
                 taps = opjit_ir_index(f, (int64_t)opjit_fe_window_taps(&w));
    at[0] = opjit_ir_coordinate(f, out, first);
    at[1] = ir_expr2(f, IR_IDIV, IR_INDEX, row, taps);
    for (uint32_t d = 0; d < w.count; d++) {
        const uint64_t along = opjit_fe_window_along(&w, d, image->sizes[WINDOW_FIRST + d]);
        below /= along;
        at[WINDOW_FIRST + d] = moves_digit(f, opjit_ir_coordinate(f, out, first + 2), below, along);
    }
    const ir_ref inside = opjit_fe_window_tap(f, &w, image, at, ir_expr2(f, IR_IMOD, IR_INDEX, row, taps), of);
    opjit_ir_set_value(
        f, out, ir_expr3(f, IR_SELECT, type, inside, opjit_ir_load(f, l->inputs[0], of), opjit_ir_const(f, type, 0)));
}

/* --- FOLD --------------------------------------------------------------------------------------------------------- */

static opjit_status validate_fold(const opjit_operator *op, opjit_error *error)
{
    TRY(opjit_fe_same_type(op, 0, 0, error));
    return check_matrix(op, &op->outputs[0], op->input_names[0], &op->inputs[0], error);
}

/* The image's sizes don't follow from how many windows it has. */
static void infer_fold(op_inference *s)
{
    infer_type(&s->outputs[0], s->inputs[0].dtype);
}

/* Output[n, c, x] = the sum over the windows o that hold x, at tap t, of Input[n, c * taps + t, o] */
static void lower_fold(op_lowering *l)
{
    const fe_window w = opjit_fe_window_of(l->op->def, l->op->desc);
    const fe_tensor *image = &l->op->outputs[0];
    const uint32_t first = l->op->inputs[0].rank - MATRIX_RANK;
    const ir_type type = opjit_fe_output_type(l, 0), wide = opjit_fe_wide(type);
    const int64_t taps = (int64_t)opjit_fe_window_taps(&w);
    fe_tensor windows = { .rank = image->rank };
    ir_func *f = l->f;
    ir_ref at[OPJIT_MAX_RANK], of[OPJIT_MAX_RANK], from[OPJIT_MAX_RANK], tap;

    for (uint32_t d = 0; d < w.count; d++)
        windows.sizes[WINDOW_FIRST + d] = opjit_fe_window_along(&w, d, image->sizes[WINDOW_FIRST + d]);
    const ir_ref sum = opjit_fe_reduce_to(l, IR_SUM, wide, image, opjit_fe_window_holders(&w, &windows));
    if (f->failed)
        return;
    for (uint32_t d = 0; d < image->rank; d++)
        at[d] = opjit_ir_coordinate(f, sum, d);
    const ir_ref holds = opjit_fe_window_holder(f, &w, &windows, at, opjit_ir_reduced(f, sum), of, &tap);
    ir_ref window = of[WINDOW_FIRST];
    for (uint32_t d = WINDOW_FIRST + 1; d < image->rank; d++)
        window = ir_expr2(f, IR_IADD, IR_INDEX, moves_mul(f, window, (int64_t)windows.sizes[d]), of[d]);
    for (uint32_t d = 0; d < first; d++)
        from[d] = opjit_ir_index(f, 0);
    from[first] = at[0];
    from[first + 1] = ir_expr2(f, IR_IADD, IR_INDEX, moves_mul(f, at[1], taps), tap);
    from[first + 2] = window;
    opjit_fe_set(l, sum, ir_expr3(f, IR_SELECT, wide, holds, opjit_fe_wide_input(l, from), opjit_ir_const(f, wide, 0)));

    const ir_ref out = opjit_fe_output(l, 0);
    for (uint32_t d = 0; d < image->rank && !f->failed; d++)
        at[d] = opjit_ir_coordinate(f, out, d);
    opjit_fe_set(l, out, f->failed ? 0 : opjit_ir_load(f, ir_at(f, sum)->ref, at));
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

/* clang-format off */
static const op_support support[] = {
    { NULL, 0, 3, OPJIT_MAX_RANK, OP_TYPES_ALL },
    { NULL, DML_FEATURE_LEVEL_6_4, 3, OPJIT_MAX_RANK, OP_TYPES_ALL & ~OP_TYPES(FLOAT64) },
};

#define FOLD_FIELDS(T)                                                \
    OP_FIELD(T, InputTensor, OP_INPUT, 0),                            \
    OP_FIELD(T, OutputTensor, OP_OUTPUT, 0),                          \
    OP_FIELD(T, DimensionCount, OP_UINT, OP_COUNT),                   \
    OP_FIELD_ARRAY(T, WindowSizes, DimensionCount, OP_UINTS, 0),      \
    OP_FIELD_ARRAY(T, Strides, DimensionCount, OP_UINTS, 0),          \
    OP_FIELD_ARRAY(T, Dilations, DimensionCount, OP_UINTS, 0),        \
    OP_FIELD_ARRAY(T, StartPadding, DimensionCount, OP_UINTS, 0),     \
    OP_FIELD_ARRAY(T, EndPadding, DimensionCount, OP_UINTS, 0)
static const op_field unfold_fields[] = { FOLD_FIELDS(DML_UNFOLD_OPERATOR_DESC) };
static const op_field fold_fields[] = { FOLD_FIELDS(DML_FOLD_OPERATOR_DESC) };
/* clang-format on */

const op_def opjit_fe_op_unfold = {
    .type = DML_OPERATOR_UNFOLD,
    .name = "UNFOLD",
    .formula = "a column for each window: Output[n, c * taps + tap, window] = Input[n, c, ...], or 0 in the padding",
    .desc_size = sizeof(DML_UNFOLD_OPERATOR_DESC),
    OP_ROWS(unfold_fields, support),
    .introduced = DML_FEATURE_LEVEL_6_4,
    .validate = validate_unfold,
    .infer = infer_unfold,
    .lower = lower_unfold,
};

const op_def opjit_fe_op_fold = {
    .type = DML_OPERATOR_FOLD,
    .name = "FOLD",
    .formula = "the sum of the windows, each a column of Input, where they lie in Output",
    .desc_size = sizeof(DML_FOLD_OPERATOR_DESC),
    OP_ROWS(fold_fields, support),
    .introduced = DML_FEATURE_LEVEL_6_4,
    .validate = validate_fold,
    .infer = infer_fold,
    .lower = lower_fold,
};
