/* SPDX-License-Identifier: Apache-2.0 */
/* resize.h - what resize.c and resize_follow.c share: which elements each result along an axis takes. */
#ifndef OPJIT_FRONTEND_ONNX_OPS_RESIZE_H
#define OPJIT_FRONTEND_ONNX_OPS_RESIZE_H

#include "frontend/onnx/ops/ops.h"

#define RESIZE_TAPS 4u /* elements that are gathered for a result; more are a product with a matrix of weights */

typedef enum place_rule {
    HALF_PIXEL,
    HALF_PIXEL_SYMMETRIC,
    PYTORCH_HALF_PIXEL,
    ALIGN_CORNERS,
    ASYMMETRIC,
    HALF_PIXEL_FOR_NEAREST,
    CROP_AND_RESIZE
} place_rule;
typedef enum rounding {
    PREFER_FLOOR,
    PREFER_CEIL,
    ROUND_FLOOR,
    ROUND_CEIL,
    ROUND_BY_SCALE /* up where the size shrinks, else down: before opset 11, as ONNX Runtime does it */
} rounding;
typedef enum resize_mode { NEAREST, LINEAR, CUBIC } resize_mode;

typedef struct resize {
    resize_mode mode;
    place_rule rule;
    rounding nearest;
    bool antialias, exclude_outside;
    double cubic, beyond; /* cubic_coeff_a, extrapolation_value */
    double scales[ONNX_RANK], roi[2][ONNX_RANK];
    uint64_t sizes[ONNX_RANK];
} resize;

/* The tables of one axis: taps rows of indices and weights, one number for each result; what is added where a result
 * lies outside of the region. */
typedef struct resize_table {
    uint32_t taps;
    uint64_t in, out;
    uint32_t *at;   /* [taps][out] */
    float *weights; /* [taps][out] */
    float *offsets; /* [out]; NULL: none */
    opjit_tensor places[RESIZE_TAPS], shares[RESIZE_TAPS]; /* in the graph, in place of at and weights; index 0: not */
} resize_table;

/* The cubic's weight at distance x. */
double opjit_onnx_cubic(double x, double a);
/* Makes the table of operators, with the same numbers, so that it follows the sizes; what can't be stays as it is. */
void opjit_onnx_resize_follow(onnx_import *m, const resize *r, uint32_t axis, resize_table *t);

#endif
