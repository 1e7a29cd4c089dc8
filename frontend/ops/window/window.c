/* SPDX-License-Identifier: Apache-2.0 */
/* window.c - checks and coordinates of sliding windows. */
#include "frontend/ops/window/window.h"

#include <string.h>

#include "frontend/ops/infer.h"
#include "frontend/ops/moves.h"

/* --- fields ------------------------------------------------------------------------------------------------------- */

static const uint32_t *array_of(const op_def *def, const void *desc, const char *name)
{
    const void *field = opjit_fe_field(def, desc, name);
    const uint32_t *array = NULL;

    if (field != NULL)
        memcpy(&array, field, sizeof array);
    return array;
}

uint32_t opjit_fe_window_number(const op_def *def, const void *desc, const char *name)
{
    uint32_t number;

    memcpy(&number, opjit_fe_field(def, desc, name), sizeof number);
    return number;
}

fe_window opjit_fe_window_of(const op_def *def, const void *desc)
{
    const char *sizes = opjit_fe_field(def, desc, "WindowSize") != NULL ? "WindowSize" : "WindowSizes";

    return (fe_window){ .count = opjit_fe_window_number(def, desc, "DimensionCount"),
                        .strides = array_of(def, desc, "Strides"),
                        .sizes = array_of(def, desc, sizes),
                        .start = array_of(def, desc, "StartPadding"),
                        .end = array_of(def, desc, "EndPadding"),
                        .dilations = array_of(def, desc, "Dilations"),
                        .sizes_name = sizes };
}

/* --- sizes -------------------------------------------------------------------------------------------------------- */

/* From the first tap to the last one, both included.  At most 2^64 - 2^32. */
static uint64_t extent(const fe_window *w, uint32_t d)
{
    return (uint64_t)(w->sizes[d] - 1) * window_dilation(w, d) + 1;
}

uint64_t opjit_fe_window_along(const fe_window *w, uint32_t d, uint64_t size)
{
    const uint64_t padded = size + w->start[d] + w->end[d];

    if (w->sizes[d] == 0 || w->strides[d] == 0 || extent(w, d) > padded)
        return 0;
    return (padded - extent(w, d)) / w->strides[d] + 1;
}

uint64_t opjit_fe_window_taps(const fe_window *w)
{
    uint64_t taps = 1;

    for (uint32_t d = 0; d < w->count; d++)
        taps *= w->sizes[d];
    return taps;
}

/* --- checks ------------------------------------------------------------------------------------------------------- */

opjit_status opjit_fe_window_check(const opjit_operator *op, const fe_window *w, const fe_tensor *image,
                                   opjit_error *error)
{
    uint64_t taps = 1;

    if (w->count + WINDOW_FIRST != image->rank)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                               "{%s} {DimensionCount}: {%u}, must be %u, the spatial "
                               "dimensions",
                               op->def->name, w->count, image->rank - WINDOW_FIRST);
    for (uint32_t d = 0; d < w->count; d++) {
        const uint64_t padded = image->sizes[WINDOW_FIRST + d] + w->start[d] + w->end[d];
        TRY(opjit_fe_check_entry(op, "Strides", d, w->strides[d], 1, UINT32_MAX, "", error));
        TRY(opjit_fe_check_entry(op, "Dilations", d, window_dilation(w, d), 1, UINT32_MAX, "", error));
        TRY(opjit_fe_check_entry(op, w->sizes_name, d, w->sizes[d], 1, (padded - 1) / window_dilation(w, d) + 1,
                                 ", as it has to fit in the padded image", error));
        if (taps > UINT32_MAX / w->sizes[d])
            return opjit_rt_refuse(error, OPJIT_LIMIT, "{%s} {%s[%u]}: {%u}, a window has at most 2^32 - 1 elements",
                                   op->def->name, w->sizes_name, d, w->sizes[d]);
        taps *= w->sizes[d];
    }
    return OPJIT_OK;
}

opjit_status opjit_fe_window_check_pooled(const opjit_operator *op, const fe_window *w, const fe_tensor *image,
                                          const char *name, const fe_tensor *pooled, opjit_error *error)
{
    TRY(opjit_fe_window_check(op, w, image, error));
    TRY(opjit_fe_check_rank(op, name, pooled, image->rank, " as the image's", error));
    for (uint32_t d = 0; d < WINDOW_FIRST; d++)
        TRY(opjit_fe_check_size(op, name, pooled, d, image->sizes[d], " as the image's", error));
    for (uint32_t d = 0; d < w->count; d++)
        TRY(opjit_fe_check_size(op, name, pooled, WINDOW_FIRST + d,
                                opjit_fe_window_along(w, d, image->sizes[WINDOW_FIRST + d]), ", one for each window",
                                error));
    return OPJIT_OK;
}

void opjit_fe_window_infer(op_inference *s)
{
    const fe_window window = opjit_fe_window_of(s->def, s->desc), *w = &window;
    op_shape pooled = s->inputs[0];

    infer_type(&s->outputs[0], pooled.dtype);
    if (pooled.rank != w->count + WINDOW_FIRST)
        return;
    for (uint32_t d = 0; d < w->count; d++)
        pooled.sizes[WINDOW_FIRST + d] = opjit_fe_window_along(w, d, pooled.sizes[WINDOW_FIRST + d]);
    infer_shape(&s->outputs[0], &pooled);
}

/* --- for lowerings ------------------------------------------------------------------------------------------------ */

/* Dimension d's part of a tap's number; *below: the taps of one step along it, of which it divides its own size off. */
static ir_ref digit(ir_func *f, const fe_window *w, uint32_t d, ir_ref tap, uint64_t *below)
{
    *below /= w->sizes[d];
    return moves_digit(f, tap, *below, w->sizes[d]);
}

/* Where the window's first tap lies in the image, which may be before it. */
static ir_ref first_tap(ir_func *f, const fe_window *w, uint32_t d, const ir_ref *at)
{
    return moves_add(f, moves_mul(f, at[WINDOW_FIRST + d], w->strides[d]), -(int64_t)w->start[d]);
}

ir_ref opjit_fe_window_tap(ir_func *f, const fe_window *w, const fe_tensor *image, const ir_ref *at, ir_ref tap,
                           ir_ref of[OPJIT_MAX_RANK])
{
    uint64_t below = opjit_fe_window_taps(w);
    ir_ref inside = opjit_ir_const(f, IR_BOOL, 1);

    for (uint32_t d = 0; d < WINDOW_FIRST; d++)
        of[d] = at[d];
    for (uint32_t d = 0; d < w->count; d++) {
        const uint64_t size = image->sizes[WINDOW_FIRST + d];
        const ir_ref j = digit(f, w, d, tap, &below);
        const ir_ref x = ir_expr2(f, IR_IADD, IR_INDEX, first_tap(f, w, d, at), moves_mul(f, j, window_dilation(w, d)));
        inside = ir_expr2(f, IR_AND, IR_BOOL, inside, opjit_fe_between(f, x, 0, size));
        of[WINDOW_FIRST + d] = opjit_fe_inside(f, x, size);
    }
    return inside;
}

/* In each dimension: how many of the taps 0, 1, ... lie before `limit`. */
static ir_ref taps_before(ir_func *f, const fe_window *w, uint32_t d, ir_ref first, int64_t limit)
{
    const int64_t dilation = window_dilation(w, d);
    const ir_ref room = moves_add(f, ir_expr2(f, IR_ISUB, IR_INDEX, opjit_ir_index(f, limit), first), dilation - 1);

    return ir_expr3(f, IR_CLAMP, IR_INDEX, ir_expr2(f, IR_IDIV, IR_INDEX, room, opjit_ir_index(f, dilation)),
                    opjit_ir_index(f, 0), opjit_ir_index(f, w->sizes[d]));
}

ir_type opjit_fe_window_count_type(const fe_window *w)
{
    return opjit_fe_window_taps(w) <= INT32_MAX ? IR_I32 : IR_U64;
}

ir_ref opjit_fe_window_inside(ir_func *f, const fe_window *w, const fe_tensor *image, const ir_ref *at)
{
    const ir_type type = opjit_fe_window_count_type(w);
    ir_ref count = 0;

    for (uint32_t d = 0; d < w->count; d++) {
        const ir_ref first = first_tap(f, w, d, at);
        const ir_ref to = taps_before(f, w, d, first, (int64_t)image->sizes[WINDOW_FIRST + d]);
        const ir_ref along =
            ir_expr1(f, IR_ELEM, type, ir_expr2(f, IR_ISUB, IR_INDEX, to, taps_before(f, w, d, first, 0)));
        count = d == 0 ? along : ir_expr2(f, IR_MUL, type, count, along);
    }
    return count;
}

/* Whether the windows that may hold a pixel along dimension d are counted by taps: with dilations others lie between
 * them, and of windows at every place each tap is one's, whose place no bound then hides. */
static bool goes_by_taps(const fe_window *w, uint32_t d, uint64_t along)
{
    return window_dilation(w, d) != 1 || (w->strides[d] == 1 && w->sizes[d] <= along);
}

/* Along dimension d: how many windows may hold a pixel. */
static uint64_t holders_along(const fe_window *w, uint32_t d, const fe_tensor *pooled)
{
    const uint64_t along = pooled->sizes[WINDOW_FIRST + d];
    const uint64_t near = (w->sizes[d] - 1) / w->strides[d] + 1;

    return goes_by_taps(w, d, along) ? w->sizes[d] : near < along ? near : along;
}

uint64_t opjit_fe_window_holders(const fe_window *w, const fe_tensor *pooled)
{
    uint64_t holders = 1;

    for (uint32_t d = 0; d < w->count; d++)
        holders *= holders_along(w, d, pooled);
    return holders;
}

/* Number j, along dimension d, of the windows that may hold the pixel at x, counted from the padding's start: it, to
 * *o, and its tap there, to *tap, both clamped.  Returns whether it does.  Tap j of window o is at o * stride + j *
 * dilation; the last tap belongs to the first window. */
static ir_ref holder_along(ir_func *f, const fe_window *w, uint32_t d, uint64_t along, ir_ref x, ir_ref j, ir_ref *o,
                           ir_ref *tap)
{
    const ir_ref stride = opjit_ir_index(f, w->strides[d]);
    const int64_t dilation = window_dilation(w, d), size = w->sizes[d];

    if (goes_by_taps(w, d, along)) {
        *tap = ir_expr2(f, IR_ISUB, IR_INDEX, opjit_ir_index(f, size - 1), j);
        x = ir_expr2(f, IR_ISUB, IR_INDEX, x, moves_mul(f, *tap, dilation));
        const ir_ref whole =
            ir_expr2(f, IR_EQ, IR_BOOL, ir_expr2(f, IR_IMOD, IR_INDEX, x, stride), opjit_ir_index(f, 0));
        x = ir_expr2(f, IR_IDIV, IR_INDEX, x, stride);
        *o = opjit_fe_inside(f, x, along);
        return ir_expr2(f, IR_AND, IR_BOOL, opjit_fe_between(f, x, 0, along), whole);
    }
    const uint64_t near = ((uint64_t)size - 1) / w->strides[d] + 1, count = near < along ? near : along;
    const ir_ref after = moves_add(f, x, (int64_t)w->strides[d] - size); /* rounded up: the first one that reaches x */
    const ir_ref first = ir_expr3(f, IR_CLAMP, IR_INDEX, ir_expr2(f, IR_IDIV, IR_INDEX, after, stride),
                                  opjit_ir_index(f, 0), opjit_ir_index(f, (int64_t)(along - count)));
    *o = opjit_fe_inside(f, ir_expr2(f, IR_IADD, IR_INDEX, first, j), along);
    x = ir_expr2(f, IR_ISUB, IR_INDEX, x, moves_mul(f, *o, w->strides[d]));
    *tap = opjit_fe_inside(f, x, (uint64_t)size);
    return opjit_fe_between(f, x, 0, (uint64_t)size);
}

ir_ref opjit_fe_window_holder(ir_func *f, const fe_window *w, const fe_tensor *pooled, const ir_ref *at, ir_ref k,
                              ir_ref of[OPJIT_MAX_RANK], ir_ref *out_tap)
{
    uint64_t below = opjit_fe_window_holders(w, pooled);
    ir_ref holds = opjit_ir_const(f, IR_BOOL, 1), tap = 0;

    *out_tap = opjit_ir_index(f, 0);
    for (uint32_t d = 0; d < WINDOW_FIRST; d++)
        of[d] = at[d];
    for (uint32_t d = 0; d < w->count; d++) {
        const uint64_t count = holders_along(w, d, pooled);
        const ir_ref x = moves_add(f, at[WINDOW_FIRST + d], w->start[d]);
        below /= count;
        const ir_ref hits = holder_along(f, w, d, pooled->sizes[WINDOW_FIRST + d], x, moves_digit(f, k, below, count),
                                         &of[WINDOW_FIRST + d], &tap);
        holds = ir_expr2(f, IR_AND, IR_BOOL, holds, hits);
        *out_tap = ir_expr2(f, IR_IADD, IR_INDEX, moves_mul(f, *out_tap, w->sizes[d]), tap);
    }
    return holds;
}
