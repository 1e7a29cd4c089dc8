/* SPDX-License-Identifier: Apache-2.0 */
/* numerics.h - the order in which values are reduced: the numbers that the interpreter, the passes and code generation
 * for every target have to agree on, since each bit of a result depends on them.
 *
 * Value number k goes to lane k % lanes.  After each block of values the lanes fold by halves into lane 0, which is
 * added to the total of the blocks before; then the lanes start anew.  An accumulator without lanes (0) takes its
 * values one after the other. */
#ifndef OPJIT_IR_EVAL_NUMERICS_H
#define OPJIT_IR_EVAL_NUMERICS_H

#include "ir/ir.h"

enum {
    IR_REDUCE_LANES = 32, /* of an accumulator that has more than one, whatever a target's vectors or teams are */
    IR_REDUCE_BLOCK_SHIFT = 12,
    IR_REDUCE_BLOCK = 1 << IR_REDUCE_BLOCK_SHIFT, /* values of a block */
};

/* The op of one step, and of a fold of two lanes or blocks; IR_OP_NONE for arg kinds, which compare and choose. */
static inline ir_op ir_kind_op(ir_kind kind)
{
    switch (kind) {
    case IR_SUM: return IR_ADD;
    case IR_PROD: return IR_MUL;
    case IR_KMIN: return IR_MIN;
    case IR_KMAX: return IR_MAX;
    default: return IR_OP_NONE;
    }
}

/* Arg kinds give where a value is: of a NaN, the first one; else of the least or the greatest value, and of equal ones
 * the first or the last. */
static inline bool ir_kind_is_arg(ir_kind kind)
{
    return kind >= IR_ARGMIN;
}
static inline bool ir_arg_is_least(ir_kind kind)
{
    return kind == IR_ARGMIN || kind == IR_ARGMIN_LAST;
}
static inline bool ir_arg_is_first(ir_kind kind)
{
    return kind == IR_ARGMIN || kind == IR_ARGMAX;
}

#endif
