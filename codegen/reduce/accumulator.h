/* SPDX-License-Identifier: Apache-2.0 */
/* accumulator.h - shared by accumulator.c, held.c and team.c: lanes in memory, steps, folds and totals. */
#ifndef OPJIT_CODEGEN_REDUCE_ACCUMULATOR_H
#define OPJIT_CODEGEN_REDUCE_ACCUMULATOR_H

#include "codegen/cg.h"
#include "ir/eval/numerics.h"

/* A value and, for arg kinds, its index and whether it exists: by lane, or one of each.  A step of a dot has its second
 * value in where. */
typedef struct cg_part {
    LLVMValueRef value, where, some;
} cg_part;

static inline bool cg_acc_is_arg(const ir_node *acc)
{
    return ir_kind_is_arg((ir_kind)acc->kind);
}
static inline uint32_t cg_acc_bits(const cg_acc *a)
{
    return 8 * opjit_ir_type_size(a->type);
}

static inline LLVMValueRef cg_is_set(cg_func *f, LLVMValueRef bytes)
{
    return LLVMBuildICmp(f->b, LLVMIntNE, bytes, opjit_cg_number(f, 8, opjit_cg_lanes(bytes), 0), "");
}

/* The lanes in memory: accumulators with 0 lanes have one, taken in order without blocks; so has each thread of a
 * team. */
static inline uint32_t cg_acc_lanes(const ir_node *acc, const cg_acc *a)
{
    return acc->imm && !a->apart ? (uint32_t)acc->imm : 1;
}

/* Floats stay floats, because they are computed with as such. */
static inline LLVMValueRef cg_as_held(cg_func *f, const cg_acc *a, LLVMValueRef v)
{
    return a->type == IR_F32 || a->type == IR_F64 ? opjit_cg_as_float(f, v) : v;
}

/* Floats as such; except for GPUs in the type that is stored, since what is one scalar becomes a register. */
LLVMValueRef opjit_cg_acc_values(cg_func *f, const cg_acc *a, LLVMValueRef array, uint32_t lanes, LLVMValueRef lane);
LLVMValueRef opjit_cg_array_read(cg_func *f, LLVMValueRef array, uint32_t bits, uint32_t lanes, LLVMValueRef lane);
void opjit_cg_array_write(cg_func *f, LLVMValueRef array, uint32_t bits, LLVMValueRef lane, LLVMValueRef value);
/* `lanes` lanes from `lane` on, as in memory. */
cg_part opjit_cg_acc_read(cg_func *f, const ir_node *acc, const cg_acc *a, uint32_t lanes, LLVMValueRef lane);
void opjit_cg_acc_write(cg_func *f, const ir_node *acc, const cg_acc *a, LLVMValueRef lane, cg_part e);
void opjit_cg_acc_reset(cg_func *f, const ir_node *acc, const cg_acc *a); /* all lanes */
cg_part opjit_cg_acc_combine(cg_func *f, const ir_node *acc, const cg_acc *a, cg_part x, cg_part y);
/* Folds the lanes by halves, including lanes that threads have one each of. */
cg_part opjit_cg_acc_fold(cg_func *f, const ir_node *acc, const cg_acc *a);
/* Adds a block's fold to the total of the previous blocks. */
void opjit_cg_acc_add_block(cg_func *f, const ir_node *acc, const cg_acc *a, cg_part e);
/* When k enters another block: adds the lanes to the total and resets them. */
void opjit_cg_acc_enter_block(cg_func *f, const ir_node *acc, const cg_acc *a, LLVMValueRef k);
/* team.c: one step of this thread's lane. */
void opjit_cg_apart_update(cg_func *f, const ir_node *acc, cg_acc *a, cg_part e);

#endif
