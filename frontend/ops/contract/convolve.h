/* SPDX-License-Identifier: Apache-2.0 */
/* convolve.h - shared by convolutions: checks and inference of sizes, and what a step of an element's sum reads.  A
 * window's steps are in the order in which they lie in the input, rows before columns, and channels are outermost,
 * whatever Mode and Direction are.  For the files of this folder. */
#ifndef OPJIT_FRONTEND_OPS_CONVOLVE_H
#define OPJIT_FRONTEND_OPS_CONVOLVE_H

#include "frontend/ops/op.h"

/* What descriptors of convolutions say alike. */
typedef struct fe_convolution {
    DML_CONVOLUTION_MODE mode;
    DML_CONVOLUTION_DIRECTION direction;
    uint32_t dimensions, groups;
    const uint32_t *strides, *dilations, *start, *end, *output; /* output: NULL: no OutputPadding */
} fe_convolution;

/* The fields of DML_CONVOLUTION_INTEGER_OPERATOR_DESC and of DML_QUANTIZED_LINEAR_CONVOLUTION_OPERATOR_DESC. */
#define FE_CONVOLUTION_OF_INTEGERS(d)                                                                   \
    (fe_convolution)                                                                                    \
    {                                                                                                   \
        DML_CONVOLUTION_MODE_CROSS_CORRELATION, DML_CONVOLUTION_DIRECTION_FORWARD, (d)->DimensionCount, \
            (d)->GroupCount, (d)->Strides, (d)->Dilations, (d)->StartPadding, (d)->EndPadding, NULL     \
    }

/* Input 0 and input `filter` fit output 0. */
opjit_status opjit_fe_check_convolution(const opjit_operator *op, const fe_convolution *c, uint32_t filter,
                                        opjit_error *error);
/* Input i is {1, channels, 1, ...} of output 0's rank; or_one: or has one element. */
opjit_status opjit_fe_check_channels(const opjit_operator *op, uint32_t i, uint64_t channels, bool or_one,
                                     opjit_error *error);
/* Sizes of output 0. */
void opjit_fe_infer_convolution(op_inference *s, const fe_convolution *c, uint32_t filter);

/* The steps of an element's sum, and those of a block of it: whole channels, about 256. */
uint64_t opjit_fe_convolution_steps(const op_lowering *l, const fe_convolution *c, uint32_t filter);
uint16_t opjit_fe_convolution_block(const op_lowering *l, const fe_convolution *c, uint32_t filter);
/* The tensor of sums: output 0, with phases where the direction is BACKWARD and there is a stride; and its element that
 * the output's element `at` has.  at, sums: OPJIT_MAX_RANK coordinates. */
void opjit_fe_convolution_sums(const op_lowering *l, const fe_convolution *c, uint32_t filter, fe_tensor *out);
void opjit_fe_convolution_at(op_lowering *l, const fe_convolution *c, uint32_t filter, const ir_ref *at, ir_ref *sums);
/* Where step k of the sum `at` reads; input may be outside of the tensor unless `inside` is true. */
typedef struct fe_tap {
    ir_ref inside;
    ir_ref input[OPJIT_MAX_RANK], filter[OPJIT_MAX_RANK];
} fe_tap;
void opjit_fe_convolution_tap(op_lowering *l, const fe_convolution *c, uint32_t filter, const ir_ref *at, ir_ref k,
                              fe_tap *out);

#endif
