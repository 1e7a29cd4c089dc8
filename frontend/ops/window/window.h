/* SPDX-License-Identifier: Apache-2.0 */
/* window.h - shared by operators with a sliding window over the last dimensions of an image: checks, sizes, and where
 * the taps of a window lie.  Windows are counted by their coordinates in the pooled tensor, taps by their row-major
 * number in the window.  For the files of this folder. */
#ifndef OPJIT_FRONTEND_OPS_WINDOW_H
#define OPJIT_FRONTEND_OPS_WINDOW_H

#include "frontend/ops/op.h"

/* The fields that descriptors have.  Tap j of window o lies at o * strides + j * dilations - start of the image, in
 * each dimension. */
typedef struct fe_window {
    uint32_t count;                  /* spatial dimensions, the last ones of the image */
    const uint32_t *strides, *sizes, *start, *end;
    const uint32_t *dilations;       /* NULL: 1 in each dimension */
    const char *sizes_name;          /* the field that sizes come from */
} fe_window;

enum { WINDOW_FIRST = 2 };           /* the image's first spatial dimension, behind batch and channel */

/* A descriptor's fields, in the order that pooling operators have. */
#define WINDOW_FIELDS(T)                                              \
    OP_FIELD(T, DimensionCount, OP_UINT, OP_COUNT),                   \
    OP_FIELD_ARRAY(T, Strides, DimensionCount, OP_UINTS, 0),          \
    OP_FIELD_ARRAY(T, WindowSize, DimensionCount, OP_UINTS, 0),       \
    OP_FIELD_ARRAY(T, StartPadding, DimensionCount, OP_UINTS, 0),     \
    OP_FIELD_ARRAY(T, EndPadding, DimensionCount, OP_UINTS, 0)

/* The window of a descriptor whose row has those fields, and Dilations or not. */
fe_window opjit_fe_window_of(const op_def *def, const void *desc);
/* A number among its other fields. */
uint32_t opjit_fe_window_number(const op_def *def, const void *desc, const char *field);

static inline uint32_t window_dilation(const fe_window *w, uint32_t d)
{
    return w->dilations == NULL ? 1 : w->dilations[d];
}

/* How many windows there are along dimension d of an image of this size; 0: none fits, or a field is 0. */
uint64_t opjit_fe_window_along(const fe_window *w, uint32_t d, uint64_t size);
/* Taps of a window. */
uint64_t opjit_fe_window_taps(const fe_window *w);

/* --- checks ------------------------------------------------------------------------------------------------------- */
/* DimensionCount is the image's rank without batch and channel; strides, sizes and dilations are at least 1; a window
 * fits in the padded image. */
opjit_status opjit_fe_window_check(const opjit_operator *op, const fe_window *w, const fe_tensor *image,
                                   opjit_error *error);
/* The same, and the tensor has an element for each window: name.Sizes, with the image's batch and channels. */
opjit_status opjit_fe_window_check_pooled(const opjit_operator *op, const fe_window *w, const fe_tensor *image,
                                          const char *name, const fe_tensor *pooled, opjit_error *error);
/* The first output has an element for each window of the first input. */
void opjit_fe_window_infer(op_inference *s);

/* --- for lowerings ------------------------------------------------------------------------------------------------ */
/* Tap number `tap` of the window at coordinates `at`: its coordinates in the image, clamped into it, to `of`.  Returns
 * whether it lies inside. */
ir_ref opjit_fe_window_tap(ir_func *f, const fe_window *w, const fe_tensor *image, const ir_ref *at, ir_ref tap,
                           ir_ref of[OPJIT_MAX_RANK]);
/* How many taps of that window lie inside, exactly: an INT32 where that holds all of them, else a UINT64. */
ir_type opjit_fe_window_count_type(const fe_window *w);
ir_ref opjit_fe_window_inside(ir_func *f, const fe_window *w, const fe_tensor *image, const ir_ref *at);
/* The other way: how many windows may hold a pixel.  Along a dimension these are the neighbours that reach it, or, with
 * dilations, one for each tap. */
uint64_t opjit_fe_window_holders(const fe_window *w, const fe_tensor *pooled);
/* Number k of them, in the order of the windows, for the pixel at coordinates `at`: its coordinates, clamped into the
 * pooled tensor, to `of`; to *out_tap, which tap lies there, clamped.  Returns whether there is such a window. */
ir_ref opjit_fe_window_holder(ir_func *f, const fe_window *w, const fe_tensor *pooled, const ir_ref *at, ir_ref k,
                              ir_ref of[OPJIT_MAX_RANK], ir_ref *out_tap);

#endif
