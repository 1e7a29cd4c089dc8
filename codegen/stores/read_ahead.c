/* SPDX-License-Identifier: Apache-2.0 */
/* read_ahead.c - stores to memory that the first cache does not hold: each line is read a few lines before it is stored.
 * Lines that stores miss come one after the other, and a store that hits, such as that of a loop's variable to the
 * stack, waits for all of them; reads go on.  Nothing is done with what is read, which is the tensor's own.  A read
 * takes no longer to compile than a store; a `prefetch` takes as long as 30.  Nothing is read from a page before it is
 * stored to: memory that nobody has touched yet would be mapped twice, which takes twice as long as all else.
 * Measured on Emerald Rapids, where rounds of 16 lines are then as fast as any; Zen has two fronts instead
 * (two_streams.c). */
#include "codegen/emit/access.h"
#include "codegen/stores/pieces.h"

enum {
    DISTANCE = 256, /* bytes from what is stored to what is read */
    LEAST = 512,    /* bytes of a row that is worth it, where what follows is none of the kernel's */
    GROUP = 1024,   /* bytes that are stored before the distance is looked at again */
    PAGE = 4096,
    MOST_WEIGHT = 24, /* of a value; what is dearer hides its stores */
    READ_BITS = 64,
    USES = CG_FEW_USES - 1, /* of an address, by reads: one is chosen, which is another use */
};

/* Bytes that the innermost loop stores at most. */
static uint64_t most_stored(const cg_func *f, const ir_tensor *t)
{
    return (uint64_t)f->loops[f->loop_count - 1].most * opjit_ir_type_size(t->type);
}

/* Whether lines are read before the loop with that body stores them.  In place what it loads is read already. */
static bool reads_ahead(const cg_func *f, ir_ref body)
{
    const ir_node *s = ir_at(f->ir, body);
    if (s->op != IR_STORE || s->next != 0 || f->target->arch != RT_ARCH_X86_64 || opjit_cg_is_zen(f) || f->streams ||
        f->turn.on)
        return false;
    const ir_tensor *t = &f->ir->tensors[s->ref];
    const cg_info *value = &f->info[ir_operand(f->ir, body, 0)];
    return t->role == IR_OUT && t->offset == 0 && t->bytes > f->target->l1 && t->bytes > 2 * PAGE &&
           value->weight <= MOST_WEIGHT && !value->guarded &&
           (t->alias == 0 || (!value->loads && most_stored(f, t) >= LEAST));
}

uint32_t opjit_cg_ahead_copies(const cg_pieces *p, uint32_t bits)
{
    const uint32_t copies = GROUP / (p->lanes * bits / 8);
    const bool fewer = p->lanes > 1 && copies < p->unroll && !p->f->peak && reads_ahead(p->f, p->body);
    return fewer ? copies : p->unroll;
}

/* Address of what the loop's first copies store; not by the value that these use, of which each use counts. */
static LLVMValueRef first_group(cg_func *f, LLVMValueRef pointer)
{
    if (LLVMIsAFreezeInst(pointer))
        pointer = LLVMGetOperand(pointer, 0);
    return LLVMBuildPtrToInt(f->b, pointer, f->type.i64, "");
}

/* Bytes from what is stored to what is read: in place, where what follows in the row may be none of the kernel's, a row,
 * if what is stored of two is in the first cache together. */
static uint64_t distance_to(const cg_func *f, const ir_tensor *t)
{
    const uint64_t row = t->rank > 1 ? t->strides[t->rank - 2] * opjit_ir_type_size(t->type) : 0;
    return t->alias != 0 && row > DISTANCE && most_stored(f, t) <= f->target->l1 / 4 ? row : DISTANCE;
}

/* Where reads begin beside a group of `bytes` bytes: the distance on, or less, so that none is past the tensor's end or,
 * where nothing may have been stored to the next page yet, the page's. */
static LLVMValueRef begin(cg_func *f, const cg_access *a, uint64_t bytes)
{
    LLVMTypeRef i64 = f->type.i64;
    LLVMValueRef at = f->ahead_group;
    LLVMValueRef offset = opjit_cg_number(f, 64, 1, f->ir->tensors[a->tensor].bytes - bytes);
    LLVMValueRef base = opjit_cg_base_pointer(f, a->tensor);
    LLVMValueRef last = LLVMBuildPtrToInt(f->b, LLVMBuildGEP2(f->entry, f->type.i8, base, &offset, 1, ""), i64, "");
    const ir_tensor *t = &f->ir->tensors[a->tensor];
    if (t->alias == 0) {
        LLVMValueRef page = LLVMBuildOr(f->b, at, opjit_cg_number(f, 64, 1, PAGE - 1), "");
        page = opjit_cg_sub(f, page, opjit_cg_number(f, 64, 1, bytes - 1));
        last = opjit_cg_limit(f, false, page, last);
    }
    LLVMValueRef ahead = opjit_cg_add(f, at, opjit_cg_number(f, 64, 1, distance_to(f, t)));
    ahead = opjit_cg_limit(f, true, opjit_cg_limit(f, false, ahead, last), at);
    return LLVMBuildIntToPtr(f->b, ahead, f->type.ptr, "");
}

void opjit_cg_read_ahead(cg_func *f, const cg_access *a, LLVMValueRef pointer)
{
    const cg_loop *loop = &f->loops[f->loop_count - 1];
    const uint64_t at = (uint64_t)loop->offset * (a->bits / 8), all = (uint64_t)f->copies * f->lanes * a->bits / 8;
    const ir_ref body = ir_at(f->ir, ir_at(f->ir, loop->var)->ref)->body;
    if (at % IR_LINE != 0 || body != a->node || loop->step != 1 || f->lanes * a->bits < 2 * READ_BITS ||
        f->fronts.distance || !reads_ahead(f, body))
        return;
    if (at % GROUP == 0) {
        f->ahead_group =
            at == 0 ? first_group(f, pointer) : opjit_cg_add(f, f->ahead_group, opjit_cg_number(f, 64, 1, GROUP));
        f->ahead = begin(f, a, all - at < GROUP ? all - at : GROUP);
        f->ahead_at = at;
    }
    if (!f->peak && at - f->ahead_at == USES * IR_LINE) {
        LLVMValueRef by = opjit_cg_number(f, 64, 1, USES * IR_LINE);
        f->ahead = LLVMBuildFreeze(f->b, opjit_cg_offset(f, f->type.i8, f->ahead, by), "");
        f->ahead_at = at;
    }
    LLVMValueRef offset = opjit_cg_number(f, 64, 1, at - f->ahead_at);
    LLVMValueRef read =
        LLVMBuildLoad2(f->b, opjit_cg_int(f, READ_BITS, 1), opjit_cg_offset(f, f->type.i8, f->ahead, offset), "");
    LLVMSetAlignment(read, 1);
    LLVMSetVolatile(read, 1);
}
