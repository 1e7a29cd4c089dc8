/* SPDX-License-Identifier: Apache-2.0 */
/* scalar.c - any pure op on values: arithmetic, or a function of mathematics, whose sequence is evaluated.  Used by
 * folding and by the interpreter; codegen is tested against it. */
#include "ir/eval/arithmetic.h"
#include "ir/eval/math.h"

#include <string.h>

/* A function of mathematics; far: sin_far and its like. */
static bool evaluate(ir_op op, ir_type from, bool far, const uint64_t *args, uint64_t *out)
{
    math m = { .steps = NULL };
    const val x = { args[0], from }, y = { args[1], from };
    if (far ? from != IR_F64 : !ir_is_float(from))
        return false;
    *out = (far ? opjit_ir_math_far(&m, op, x, y) : opjit_ir_math(&m, op, x, y)).bits;
    return true;
}

bool opjit_ir_scalar(ir_op op, ir_type type, ir_type from, const uint64_t *args, uint64_t *out)
{
    uint64_t own[3] = { 0, 0, 0 }; /* so that a caller may give unary ops one operand */
    const size_t count = op > IR_OP_NONE && op < IR_OP_COUNT ? strlen(opjit_ir_op_infos[op].operands) : 0;
    if (count == 0 || count > 3 || !(opjit_ir_op_infos[op].flags & IR_FLAG_P) || op == IR_LOAD || op == IR_HEAD)
        return false;
    memcpy(own, args, count * sizeof(uint64_t));
    const bool far = op == IR_SIN_FAR || op == IR_COS_FAR || op == IR_TAN_FAR;
    if (far || (opjit_ir_op_infos[op].flags & IR_FLAG_M))
        return evaluate(op, from, far, own, out);
    return opjit_ir_arithmetic(op, type, from, own, out);
}
