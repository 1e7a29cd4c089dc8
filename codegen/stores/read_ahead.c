/* SPDX-License-Identifier: Apache-2.0 */
/* read_ahead.c - stores to memory that the first cache does not hold: each line is read a few lines before it is
 * stored. Lines that stores miss come one after the other, and a store that hits, such as that of a loop's variable
 * to the stack, waits for all of them; reads go on.  Nothing is done with what is read, which is the tensor's own.
 * A read takes no longer to compile than a store; a `prefetch` takes as long as 30.  Nothing is read from a page
 * before it is stored to: memory that nobody has touched yet would be mapped twice, which takes twice as long as
 * all else. Measured on Emerald Rapids, where rounds of 16 lines are then as fast as any; Zen has two streams
 * instead (two_streams.c). */
#include "codegen/emit/access.h"
#include "codegen/stores/pieces.h"

enum {
    PAGE = 4096,
    READ_BITS = 64,
    USES = CG_FEW_USES - 1, /* of an address, by reads: one use is its selection */
};

/* The most bytes that the loop stores. */
static uint64_t most_stored(const cg_facts *is, const ir_tensor *t)
{
    return (uint64_t)is->most * opjit_ir_type_size(t->type);
}

/* In place, what the loop loads has been read already.  There, the memory after the row may not be the kernel's: the
 * line one row ahead is read, if the stores of two rows fit into the first cache together. */
uint32_t opjit_cg_find_read_ahead(const cg_func *f, const cg_facts *is)
{
    const uint32_t distance = f->traits->read_ahead;
    if (is->store.value == 0 || distance == 0 || f->streams || is->in_block)
        return 0;
    const ir_tensor *t = &f->ir->tensors[is->store.tensor];
    const cg_info *value = &f->info[is->store.value];
    if (t->role != IR_OUT || t->offset != 0 || t->bytes <= f->target->l1 || t->bytes <= 2 * PAGE ||
        value->weight > CG_READ_WEIGHT || value->guarded ||
        (t->alias != 0 && (value->loads || most_stored(is, t) < CG_READ_LEAST)))
        return 0;
    const uint64_t row = t->rank > 1 ? t->strides[t->rank - 2] * opjit_ir_type_size(t->type) : 0;
    const bool by_row = t->alias != 0 && row > distance && most_stored(is, t) <= f->target->l1 / 4;
    return by_row ? (uint32_t)row : distance;
}

uint32_t opjit_cg_read_ahead_copies(const cg_facts *is)
{
    return CG_READ_GROUP / (is->lanes * is->bits / 8);
}

/* The address that the loop's first copies store to; not the value that these use, because each use counts. */
static LLVMValueRef first_group(cg_func *f, LLVMValueRef pointer)
{
    if (LLVMIsAFreezeInst(pointer))
        pointer = LLVMGetOperand(pointer, 0);
    return LLVMBuildPtrToInt(f->b, pointer, f->type.i64, "");
}

/* Where reads begin beside a group of `bytes` bytes: at the distance, or less, so that none is past the tensor's end
 * or, if nothing may have been stored to the next page yet, the page's. */
static LLVMValueRef begin(cg_func *f, const cg_access *a, uint64_t bytes, uint32_t distance)
{
    LLVMTypeRef i64 = f->type.i64;
    LLVMValueRef at = f->piece->ahead_group;
    LLVMValueRef offset = opjit_cg_number(f, 64, 1, f->ir->tensors[a->tensor].bytes - bytes);
    LLVMValueRef base = opjit_cg_base_pointer(f, a->tensor);
    LLVMValueRef last = LLVMBuildPtrToInt(f->b, LLVMBuildGEP2(f->entry, f->type.i8, base, &offset, 1, ""), i64, "");
    const ir_tensor *t = &f->ir->tensors[a->tensor];
    if (t->alias == 0) {
        LLVMValueRef page = LLVMBuildOr(f->b, at, opjit_cg_number(f, 64, 1, PAGE - 1), "");
        page = opjit_cg_sub(f, page, opjit_cg_number(f, 64, 1, bytes - 1));
        last = opjit_cg_limit(f, false, page, last);
    }
    LLVMValueRef ahead = opjit_cg_add(f, at, opjit_cg_number(f, 64, 1, distance));
    ahead = opjit_cg_limit(f, true, opjit_cg_limit(f, false, ahead, last), at);
    return LLVMBuildIntToPtr(f->b, ahead, f->type.ptr, "");
}

void opjit_cg_read_ahead(cg_func *f, const cg_access *a, LLVMValueRef pointer)
{
    const cg_loop *loop = &f->loops[f->loop_count - 1];
    const uint64_t at = (uint64_t)loop->offset * (a->bits / 8),
                   all = (uint64_t)f->piece->copies * f->piece->lanes * a->bits / 8;
    if (loop->plan->read_ahead == 0 || at % IR_LINE != 0 || loop->step != 1 ||
        f->piece->lanes * a->bits < 2 * READ_BITS || f->piece->distance)
        return;
    if (at % CG_READ_GROUP == 0) {
        f->piece->ahead_group = at == 0
                                    ? first_group(f, pointer)
                                    : opjit_cg_add(f, f->piece->ahead_group, opjit_cg_number(f, 64, 1, CG_READ_GROUP));
        f->piece->ahead = begin(f, a, all - at < CG_READ_GROUP ? all - at : CG_READ_GROUP, loop->plan->read_ahead);
        f->piece->ahead_at = at;
    }
    if (!f->peak && at - f->piece->ahead_at == USES * IR_LINE) {
        LLVMValueRef by = opjit_cg_number(f, 64, 1, USES * IR_LINE);
        f->piece->ahead = LLVMBuildFreeze(f->b, opjit_cg_offset(f, f->type.i8, f->piece->ahead, by), "");
        f->piece->ahead_at = at;
    }
    LLVMValueRef offset = opjit_cg_number(f, 64, 1, at - f->piece->ahead_at);
    LLVMValueRef read = LLVMBuildLoad2(f->b, opjit_cg_int(f, READ_BITS, 1),
                                       opjit_cg_offset(f, f->type.i8, f->piece->ahead, offset), "");
    LLVMSetAlignment(read, 1);
    LLVMSetVolatile(read, 1);
}
