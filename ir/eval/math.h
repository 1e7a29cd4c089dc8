/* SPDX-License-Identifier: Apache-2.0 */
/* math.h - mathematical functions as sequences of simpler ops, evaluated or recorded, for whoever has an op and its
 * operands. */
#ifndef OPJIT_IR_EVAL_MATH_H
#define OPJIT_IR_EVAL_MATH_H

#include "ir/eval/math_steps.h"

/* op: one with flag M, of f16, f32 or f64. */
val opjit_ir_math(math *m, ir_op op, val x, val y);
/* Whether op of x is exp of what is at most 0, or a NaN, by its form: -|x|, or the minimum of something and 0. */
bool opjit_ir_math_is_below(const ir_func *f, ir_op op, ir_ref x);

#endif
