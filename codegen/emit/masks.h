/* SPDX-License-Identifier: Apache-2.0 */
/* masks.h - conditions of lanes and a piece's mask, which mask.c makes and the files of this folder use. */
#ifndef OPJIT_CODEGEN_EMIT_MASKS_H
#define OPJIT_CODEGEN_EMIT_MASKS_H

#include "codegen/cg.h"

LLVMValueRef opjit_cg_condition_lanes(cg_func *f, LLVMValueRef c, uint32_t lanes); /* one i1 in lanes */
/* Lanes of i1 as integers of so many bits, where that is better. */
LLVMValueRef opjit_cg_condition_wide(cg_func *f, LLVMValueRef c, uint32_t bits);
LLVMValueRef opjit_cg_mask_where(cg_func *f, LLVMValueRef c); /* the piece's mask where c, one or lanes, is true, too */
bool opjit_cg_is_rest(const cg_func *f); /* whether the mask is that of a remainder of known length: piece->first */
/* The address of a window: for each lane of all copies an integer of f->piece->lane_bits, all ones where `lane op d`
 * holds (swapped: `d op lane`), else 0.  d is an i64, counted from lane 0 of copy 0. */
LLVMValueRef opjit_cg_lane_window(cg_func *f, ir_op op, LLVMValueRef d, bool swapped);
LLVMValueRef opjit_cg_lane_mask(cg_func *f, LLVMValueRef address); /* the lanes at that address of the window */

#endif
