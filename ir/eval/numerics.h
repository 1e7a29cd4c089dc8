/* SPDX-License-Identifier: Apache-2.0 */
/* numerics.h - the order in which values are reduced.  The interpreter, the passes and code generation for every target
 * share these numbers, because each bit of a result depends on them.
 *
 * Value number k goes to lane k % lanes.  At the end of each block of values the lanes are folded by halves into lane
 * 0, lane 0 is folded into the total of the blocks before, and the lanes restart from the identity.  An accumulator
 * with `lanes 0` takes its values one after the other, without blocks. */
#ifndef OPJIT_IR_EVAL_NUMERICS_H
#define OPJIT_IR_EVAL_NUMERICS_H

#include "ir/ir.h"

enum {
    IR_REDUCE_LANES = 32, /* of an accumulator that has more than one, whatever a target's vectors or teams are */
    IR_REDUCE_BLOCK_SHIFT = 12,
    IR_REDUCE_BLOCK = 1 << IR_REDUCE_BLOCK_SHIFT, /* values per block */
    IR_DOT_BLOCK = 256, /* of a dot, whose matrices are computed in blocks of as many k */
};

/* Values of a block where nothing else is said. */
static inline uint16_t ir_kind_block(ir_kind kind)
{
    return kind == IR_DOT ? IR_DOT_BLOCK : IR_REDUCE_BLOCK;
}

/* The number of the block that value k of an ACC, or of a DEF that reduces, is in. */
static inline int64_t ir_block_of(const ir_node *acc, int64_t k)
{
    const int64_t values = acc->block > 0 ? acc->block : IR_REDUCE_BLOCK; /* 0: does not verify */
    return k / values - (k % values < 0);
}

/* The op of a fold of two lanes or blocks, and of one step, which a dot makes of a pair: acc = fma(x, y, acc).
 * IR_OP_NONE for arg kinds, which compare and choose. */
static inline ir_op ir_kind_op(ir_kind kind)
{
    static const uint8_t ops[IR_KIND_COUNT] = {
#define IR_REDUCTION(kind_, text, op) [IR_##kind_] = IR_##op,
#include "ir/core/kinds.def"
#undef IR_REDUCTION
    };
    return (ir_op)ops[kind];
}

/* Arg kinds give the index of a value: the first NaN if there is one, else the least or the greatest value, and among
 * equal ones the first or the last. */
static inline bool ir_kind_is_arg(ir_kind kind)
{
    return kind >= IR_ARGMIN && kind <= IR_ARGMAX_LAST;
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
