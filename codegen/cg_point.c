/* cg_point.c - a loop that stores one value everywhere but in one element, as in a row of an identity matrix: it
 * stores that value everywhere, and then the element.  A mask for each vector would be read from as much memory as is
 * written, which takes a third of the time where that is the second cache.  Not for stores around the caches, and not
 * for short loops. */
#include "codegen/cg_access.h"

enum { LEAST_VECTORS = 32 };

/* The index that is compared with the loop's variable, or a sum with it; *moving: the sum.  0: none is. */
static ir_ref compared(const cg_func *f, ir_ref condition, uint32_t loop, ir_ref *moving)
{
    int64_t factor;
    if (ir_at(f->ir, condition)->op != IR_EQ)
        return 0;
    for (uint32_t i = 0; i < 2; i++) {
        const ir_ref still = ir_operand(f->ir, condition, 1 - i);
        *moving = ir_operand(f->ir, condition, i);
        if (ir_at(f->ir, still)->type == IR_INDEX && !(f->info[still].vary >> loop & 1) && !f->info[still].fresh &&
            !f->info[*moving].fresh && opjit_cg_affine(f, *moving, f->loops[loop].var, &factor) && factor == 1)
            return still;
    }
    return 0;
}

ir_ref opjit_cg_find_point(const cg_func *f, ir_ref body, uint32_t lanes, int64_t least)
{
    const ir_node *s = ir_at(f->ir, body);
    const uint32_t loop = f->loop_count - 1;
    ir_ref moving;
    if (lanes < 2 || least < (int64_t)lanes * LEAST_VECTORS || f->nontemporal || s->op != IR_STORE || s->next != 0 ||
        f->loops[loop].step != 1 || !opjit_cg_contiguous(f, body, f->loops[loop].var, 1))
        return 0;
    const ir_ref choice = ir_operand(f->ir, body, 0);
    if (ir_at(f->ir, choice)->op != IR_SELECT || !compared(f, ir_operand(f->ir, choice, 0), loop, &moving))
        return 0;
    for (uint32_t i = 1; i < 3; i++) {
        const cg_info *arm = &f->info[ir_operand(f->ir, choice, i)];
        if ((arm->vary >> loop & 1) || arm->fresh || arm->guarded)
            return 0;
    }
    return choice;
}

/* No branch: where the element is outside of the loop, it is stored to memory of our own. */
void opjit_cg_put_point(cg_func *f, ir_ref body, LLVMValueRef begin, LLVMValueRef count)
{
    const cg_access a = opjit_cg_access_of(f, body);
    const uint32_t loop = f->loop_count - 1;
    const ir_ref condition = ir_operand(f->ir, f->point, 0);
    ir_ref moving;
    LLVMValueRef at = opjit_cg_emit(f, compared(f, condition, loop, &moving));
    LLVMValueRef more = opjit_cg_at(f, moving, f->loops[loop].var, NULL);
    at = more ? opjit_cg_sub(f, at, more) : at;
    LLVMValueRef inside = LLVMBuildICmp(f->b, LLVMIntULT, opjit_cg_sub(f, at, begin), count, "");
    f->nowhere = f->nowhere ? f->nowhere : opjit_cg_alloca(f, f->type.i64);
    f->loops[loop].iv = at;
    LLVMValueRef pointer = LLVMBuildSelect(f->b, inside, opjit_cg_lane0(f, &a), f->nowhere, "");
    LLVMValueRef value = opjit_cg_emit(f, ir_operand(f->ir, f->point, 1));
    LLVMSetAlignment(LLVMBuildStore(f->b, opjit_cg_as_bits(f, value), pointer), a.bits / 8);
}
