/* SPDX-License-Identifier: Apache-2.0 */
/* arithmetic.h - the ops of which functions of mathematics are made. */
#ifndef OPJIT_IR_EVAL_ARITHMETIC_H
#define OPJIT_IR_EVAL_ARITHMETIC_H

#include "ir/ir.h"

/* The result of a pure op that is no function of mathematics (nor sin_far and its like); from: the type of operand 0.
 * false: there is no such op for these types. */
bool opjit_ir_arithmetic(ir_op op, ir_type type, ir_type from, const uint64_t args[3], uint64_t *out);

#endif
