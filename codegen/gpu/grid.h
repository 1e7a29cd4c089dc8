/* SPDX-License-Identifier: Apache-2.0 */
/* grid.h - stages as kernels of a GPU, and what the threads of a team do together. */
#ifndef OPJIT_CODEGEN_GPU_GRID_H
#define OPJIT_CODEGEN_GPU_GRID_H

#include "codegen/cg.h"

bool opjit_cg_grid_begin(cg_func *f, const char *name); /* a kernel's function; false: no memory */
void opjit_cg_grid_stage(cg_func *f, ir_ref stage);
LLVMValueRef opjit_cg_grid_param(cg_func *f, uint32_t param, ir_type type); /* counted from 0 */
LLVMValueRef opjit_cg_grid_base(cg_func *f, uint32_t tensor);
LLVMValueRef opjit_cg_grid_folds(cg_func *f); /* shared memory for what warps fold to */
/* A loop whose groups of iterations are distributed over the team's threads: which rounds there are; and its code. */
void opjit_cg_choose_groups(const cg_func *f, struct cg_plan *plan);
void opjit_cg_distribute(cg_func *f, const struct cg_plan *plan);
/* Around what only one thread of the team must do, where all of them do the same; NULL: each thread does its own. */
LLVMBasicBlockRef opjit_cg_one_begin(cg_func *f);
void opjit_cg_one_end(cg_func *f, LLVMBasicBlockRef after);
LLVMValueRef opjit_cg_from(cg_func *f, LLVMValueRef v, LLVMValueRef lane);
LLVMValueRef opjit_cg_lane_after(cg_func *f, uint32_t more); /* i32: the thread's number plus more, modulo the team */
/* team.c: accumulators of the body of which each thread has a lane.  In registers from load, before a loop, to end,
 * after it; begin comes first in the block that decides whether another round follows. */
void opjit_cg_apart_load(cg_func *f, ir_ref body);
void opjit_cg_apart_begin(cg_func *f, ir_ref body, LLVMBasicBlockRef before);
void opjit_cg_apart_end(cg_func *f, ir_ref body, LLVMBasicBlockRef latch);
bool opjit_cg_apart_blocked(const cg_func *f, ir_ref body);
/* Where a team is a block: reset the lanes before a round in which each warp has a block of k; after it, add the folds
 * of each warp (`warp` is the thread's) to the totals, in the order of the blocks, which go from k to hi. */
void opjit_cg_apart_reset(cg_func *f, ir_ref body);
void opjit_cg_apart_meet(cg_func *f, ir_ref body, LLVMValueRef warp, LLVMValueRef k, LLVMValueRef hi);
void opjit_cg_apart_enter(cg_func *f, ir_ref body, LLVMValueRef k); /* the block that k is in */

#endif
