/* SPDX-License-Identifier: Apache-2.0 */
/* reads.c - two kinds of reads that a store causes: of a line that later copies will store, so that it is in the cache
 * by then; and of the table that replaces the stored value or a part of it. */
#include "codegen/emit/access.h"
#include "codegen/emit/indices.h"
#include "codegen/plan.h"

/* --- lines ahead (stores/read_ahead.c) ---------------------------------------------------------------------------- */

enum {
    PAGE = 4096,
    READ_BITS = 64,
    USES = CG_FEW_USES - 1, /* of an address, by reads: one use is its selection */
};

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

/* --- tables (stores/table.c) -------------------------------------------------------------------------------------- */

static LLVMValueRef read_table(cg_func *f, cg_loop *loop, uint32_t bits)
{
    LLVMTypeRef element = opjit_cg_int(f, bits, 1);
    LLVMValueRef iv = opjit_cg_variable(f, loop);
    const uint32_t period = loop->plan->table_period;
    const bool repeats = period > 0 && f->piece->lanes == loop->plan->is.lanes;
    cg_table_read *read = repeats ? &loop->table->read[loop->offset / f->piece->lanes % period] : NULL;
    const bool again = read && read->value && read->iv == iv && read->block == LLVMGetInsertBlock(f->b) &&
                       (f->peak || read->uses < CG_FEW_USES);
    if (again) {
        read->uses++;
        return read->value;
    }
    LLVMValueRef at = opjit_cg_offset(f, element, opjit_cg_offset(f, element, loop->table->data, iv),
                                      opjit_cg_number(f, 64, 1, (uint64_t)loop->offset));
    LLVMValueRef v = LLVMBuildLoad2(f->b, opjit_cg_int(f, bits, f->piece->lanes), at, "");
    LLVMSetAlignment(v, bits / 8);
    if (read)
        *read = (cg_table_read){ v, iv, LLVMGetInsertBlock(f->b), 1 };
    return v;
}

/* Conditions and indices are as wide as what the loop stores, or as wide as they need. */
uint32_t opjit_cg_table_bits(const cg_func *f, const cg_facts *is, ir_ref node)
{
    const ir_type type = (ir_type)ir_at(f->ir, node)->type;
    if (type == IR_INDEX)
        return cg_wider(is->bits, opjit_cg_bits_for(opjit_ir_interval(f->ir, node)));
    return type == IR_BOOL ? is->bits : 8 * opjit_ir_type_size(type);
}

LLVMValueRef opjit_cg_from_table(cg_func *f, ir_ref node)
{
    cg_loop *loop = &f->loops[f->loop_count - 1];
    if (!loop->plan || loop->plan->tabled != node)
        return NULL;
    const ir_type type = (ir_type)ir_at(f->ir, node)->type;
    const uint32_t bits = opjit_cg_table_bits(f, &loop->plan->is, node);
    LLVMValueRef v = read_table(f, loop, bits);
    if (type == IR_INDEX)
        return f->piece->lanes > 1 ? v : opjit_cg_resize(f, v, 64, true);
    return type == IR_BOOL && !opjit_cg_compares(f, bits, f->piece->lanes) ? opjit_cg_narrow(f, v) : v;
}
