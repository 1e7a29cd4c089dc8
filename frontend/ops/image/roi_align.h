/* SPDX-License-Identifier: Apache-2.0 */
/* roi_align.h - shared by ROI_ALIGN's forms (roi_align.c says what they compute): where the samples of a region lie in
 * the image.  For the files of this folder. */
#ifndef OPJIT_FRONTEND_OPS_ROI_ALIGN_H
#define OPJIT_FRONTEND_OPS_ROI_ALIGN_H

#include "frontend/ops/op.h"

enum { ROI_X, ROI_Y, ROI_AXES };

/* What the descriptors say, and what lowering makes of it first. */
typedef struct roi {
    op_lowering *l;
    ir_type real;                    /* what is computed in: FLOAT32, FLOAT64 for FLOAT64 */
    bool linear, align;
    float scale[ROI_AXES], input_offset, output_offset;
    uint32_t regions, batches;       /* inputs by position: ROITensor, BatchIndicesTensor */
    uint64_t in[ROI_AXES], out[ROI_AXES], count, batch_count; /* sizes of image and output; regions; images */
    uint64_t least[ROI_AXES], most[ROI_AXES]; /* samples of an output element */
    /* Definitions of { count, 1, 1, 1 }: where a region begins, how far apart its samples are, how many an output
     * element has (UINT64). */
    uint32_t begin[ROI_AXES], step[ROI_AXES], samples[ROI_AXES];
} roi;

/* From the fields that the row has.  image, output: tensors with their sizes, which of a gradient are the image's
 * gradient and the incoming one. */
roi opjit_fe_roi_of(op_lowering *l, const fe_tensor *image, const fe_tensor *output);
/* Makes the definitions. */
void opjit_fe_roi_begin(roi *r);
/* A definition's value for a region; of samples as an UINT64. */
ir_ref opjit_fe_roi_value(const roi *r, uint32_t tensor, ir_ref region);
/* How many steps a region has: where it is aligned to its corners, the first and the last sample are at these; and how
 * many a sample is from where the region begins.  In r->real. */
ir_ref opjit_fe_roi_steps(const roi *r, uint32_t axis, ir_ref region);
ir_ref opjit_fe_roi_steps_to(const roi *r, uint32_t axis, ir_ref region, ir_ref at, ir_ref sample);
/* Where sample number `sample` (UINT64) of an output element at coordinate `at` lies in the image. */
ir_ref opjit_fe_roi_place(const roi *r, uint32_t axis, ir_ref region, ir_ref at, ir_ref sample);
/* -1 <= x <= size: a sample that is inside in both axes is read, any other is OutOfBoundsInputValue. */
ir_ref opjit_fe_roi_inside(const roi *r, uint32_t axis, ir_ref x);
ir_ref opjit_fe_roi_both_inside(const roi *r, ir_ref x, ir_ref y);
/* The elements at both sides of x, which is moved into the image, and its distance from the first; NEAREST_NEIGHBOR:
 * low is the element, t is 0.  up: the element at x rounded up, which is low where x is at an element. */
typedef struct roi_sides {
    ir_ref low, high, up, t;
} roi_sides;
roi_sides opjit_fe_roi_sides(const roi *r, uint32_t axis, ir_ref x);
/* The region's batch, below `size`. */
ir_ref opjit_fe_roi_batch(const roi *r, ir_ref region, uint64_t size);

/* An element of the image, which is input 0, in r->real. */
ir_ref opjit_fe_roi_pixel(const roi *r, ir_ref batch, ir_ref channel, ir_ref y, ir_ref x);
/* The image at a place that is inside. */
ir_ref opjit_fe_roi_sample(const roi *r, const op_element *e, ir_ref region, ir_ref channel, ir_ref x, ir_ref y);

/* How many samples an output element of a region has (UINT64). */
ir_ref opjit_fe_roi_count(const roi *r, ir_ref region);
/* A sample of the output element `at`: its number, column and row (UINT64), where it lies. */
typedef struct roi_samples {
    ir_ref def, at[4], number, column, row, x, y;
} roi_samples;
/* A reduction of the samples of each output element, column by column, downwards; like: of the output's sizes.  The
 * caller sets its value. */
roi_samples opjit_fe_roi_reduce(const roi *r, ir_kind kind, ir_type type, const fe_tensor *like);
/* Sets number and what follows of the sample with this number, at s->at. */
void opjit_fe_roi_place_sample(const roi *r, roi_samples *s, ir_ref sample);

/* --- checks ------------------------------------------------------------------------------------------------------- */
extern const op_enum opjit_fe_roi_reductions; /* AVERAGE and MAX of DML_REDUCE_FUNCTION */
/* Sizes of the image, of a tensor of an element for each of the regions' outputs, of ROITensor and BatchIndicesTensor;
 * MinimumSamplesPerOutput and MaximumSamplesPerOutput. */
opjit_status opjit_fe_roi_check(const opjit_operator *op, const char *name, const fe_tensor *image,
                                const fe_tensor *output, uint32_t regions, opjit_error *error);

#endif
