/* SPDX-License-Identifier: Apache-2.0 */
/* indices.h - index expressions, as affine.c, lanes.c, index.c, numbers.c and elements.c see them. */
#ifndef OPJIT_CODEGEN_EMIT_INDICES_H
#define OPJIT_CODEGEN_EMIT_INDICES_H

#include "codegen/emit/access.h"

static inline uint32_t cg_wider(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* --- affine.c ----------------------------------------------------------------------------------------------------- */
/* Whether the node is affine in the vectorised variable, and how much it grows per lane and per copy. */
bool opjit_cg_lane_step(const cg_func *f, ir_ref node, int64_t *step, int64_t *offset);
LLVMValueRef opjit_cg_var_value(cg_func *f, ir_ref var, bool with_offset); /* of the copy */

/* --- lanes.c ------------------------------------------------------------------------------------------------------ */
uint32_t opjit_cg_bits_for(ir_interval i);                                /* that hold it, 8 to 64 */
LLVMValueRef opjit_cg_like(cg_func *f, LLVMValueRef like, int64_t value); /* in as many lanes and bits */
int64_t opjit_cg_number_of_copy(const cg_func *f); /* the current one */
uint32_t opjit_cg_depth_of_lanes(const cg_func *f, ir_ref node); /* of the scope in which its lanes are remembered */
/* The node's lanes in copy `copy` of the loop's body; NULL: they are not remembered. */
LLVMValueRef opjit_cg_lanes_of_copy(const cg_func *f, ir_ref node, uint32_t depth, int64_t copy);
LLVMValueRef opjit_cg_remember_lanes(cg_func *f, ir_ref node, uint32_t depth, int64_t copy, LLVMValueRef v);
/* Integers that grow by `step` per lane, in the lanes of this copy, from those of an earlier copy.  Each copy continues
 * from the CG_CHAINS-th before it: a chain through every copy would be as slow as the stores.  NULL: there is none. */
LLVMValueRef opjit_cg_lanes_after(cg_func *f, ir_ref node, uint32_t bits, int64_t step);
/* The same from the value in lane 0 of copy 0. */
LLVMValueRef opjit_cg_lanes_from(cg_func *f, ir_ref node, LLVMValueRef base, int64_t step);

/* An affine expression, by its step from lane to lane. */
LLVMValueRef opjit_cg_affine_lanes(cg_func *f, ir_ref node, uint32_t bits, int64_t step);

/* --- index.c ------------------------------------------------------------------------------------------------------ */
LLVMValueRef opjit_cg_choice(cg_func *f, bool max, LLVMValueRef a, LLVMValueRef b); /* the smaller or the larger */

/* --- numbers.c ---------------------------------------------------------------------------------------------------- */
/* An operation of two numbers, emitted once for each block. */
LLVMValueRef opjit_cg_of_numbers(cg_func *f, LLVMOpcode op, LLVMValueRef a, LLVMValueRef b);

#endif
