/* SPDX-License-Identifier: Apache-2.0 */
/* quantize.h - the formulas of quantization, for operators of every kind: from integers of 8 bits to floats and
 * back. */
#ifndef OPJIT_FRONTEND_OPS_QUANTIZE_H
#define OPJIT_FRONTEND_OPS_QUANTIZE_H

#include "frontend/ops/pointwise.h"

/* rint(x / scale) + zero_point, in the range of e->result, an integer of 8 bits: an i32.  zero_point 0: none. */
ir_ref opjit_fe_quantize(const op_element *e, ir_ref x, ir_ref scale, ir_ref zero_point);
/* The same of a sum of products of integers of scale a and b: sum * (a * b / scale) is what is rounded. */
ir_ref opjit_fe_requantize(const op_element *e, ir_ref sum, ir_ref a, ir_ref b, ir_ref scale, ir_ref zero_point);
/* As opjit_fe_quantize, from one number to another one, of at most 8 bits. */
ir_ref opjit_fe_quantize_to(const op_element *e, ir_ref x, ir_ref scale, ir_ref zero_point, int from, int to);
/* What quantizes numbers from `least` to `greatest`, 0 included: the scale, 1 where all are 0; the zero point of least
 * and scale, halves rounded to even, in the range of e->result: an i32. */
ir_ref opjit_fe_range_scale(const op_element *e, ir_ref least, ir_ref greatest);
ir_ref opjit_fe_range_zero(const op_element *e, ir_ref least, ir_ref scale);
/* x - zero_point exactly, rounded once to float_type, times scale.  x has e->type.  zero_point 0: none. */
ir_ref opjit_fe_dequantize(const op_element *e, ir_type float_type, ir_ref x, ir_ref zero_point, ir_ref scale);
/* x - zero_point in INT32, modulo 2^32; both are integers of at most 32 bits.  zero_point 0: none. */
ir_ref opjit_fe_difference(ir_func *f, ir_ref x, ir_ref zero_point);

#endif
