/* SPDX-License-Identifier: Apache-2.0 */
/* one_element.c - a loop that stores one value everywhere except in one element, as in a row of an identity matrix: it
 * stores that value everywhere, and then the element.  A mask for each vector would be read from as much memory as is
 * written.  Not for stores around the caches, and not for short loops; nor at peak where masks are registers, because a
 * store to a line that is in the first cache, among others that are not, is slow (at quick the row's variable goes to
 * the stack at that place anyway). */
#include "codegen/emit/access.h"
#include "codegen/stores/pieces.h"

/* The index that is compared with the loop's variable, or with a sum that contains it; *moving: the sum.  0: none. */
static ir_ref compared(const cg_func *f, const cg_facts *is, ir_ref condition, ir_ref *moving)
{
    int64_t factor;
    if (ir_at(f->ir, condition)->op != IR_EQ)
        return 0;
    for (uint32_t i = 0; i < 2; i++) {
        const ir_ref still = ir_operand(f->ir, condition, 1 - i);
        *moving = ir_operand(f->ir, condition, i);
        if (ir_at(f->ir, still)->type == IR_INDEX && !(f->info[still].vary >> is->depth & 1) && !f->info[still].fresh &&
            !f->info[*moving].fresh && opjit_cg_affine(f, *moving, is->var, &factor) && factor == 1)
            return still;
    }
    return 0;
}

ir_ref opjit_cg_find_point(const cg_func *f, const cg_facts *is)
{
    const bool masks = f->peak && opjit_rt_target_has_masks(f->target) && !f->traits->point_beside_masks;
    const ir_ref choice = is->store.value;
    ir_ref moving;
    if (masks || is->lanes < 2 || is->least < (int64_t)is->lanes * CG_POINT_VECTORS || is->nontemporal || choice == 0 ||
        is->step != 1 || !is->store.contiguous || ir_at(f->ir, choice)->op != IR_SELECT ||
        !compared(f, is, ir_operand(f->ir, choice, 0), &moving))
        return 0;
    for (uint32_t i = 1; i < 3; i++) {
        const cg_info *arm = &f->info[ir_operand(f->ir, choice, i)];
        if ((arm->vary >> is->depth & 1) || arm->fresh || arm->stays)
            return 0;
    }
    return choice;
}

int64_t opjit_cg_point_growth(const cg_func *f, const cg_facts *is, ir_ref point, ir_ref row)
{
    ir_ref moving = 0;
    int64_t still_factor, moving_factor;
    const ir_ref still = compared(f, is, ir_operand(f->ir, point, 0), &moving);
    for (uint32_t i = 1; i < 3; i++)
        if (f->info[ir_operand(f->ir, point, i)].vary != 0)
            return 0;
    if (!opjit_cg_affine(f, still, row, &still_factor) || !opjit_cg_affine(f, moving, row, &moving_factor))
        return 0;
    return still_factor - moving_factor;
}

/* Without a branch: if the element is outside of the loop, it is stored to scratch memory. */
static void put(cg_func *f, LLVMValueRef value, LLVMValueRef inside, LLVMValueRef pointer)
{
    f->nowhere = f->nowhere ? f->nowhere : opjit_cg_alloca(f, f->type.i64);
    LLVMValueRef store = LLVMBuildStore(f->b, value, LLVMBuildSelect(f->b, inside, pointer, f->nowhere, ""));
    LLVMSetAlignment(store, opjit_cg_bits(value) / 8);
}

void opjit_cg_put_point(cg_func *f, const cg_plan *plan, LLVMValueRef begin, LLVMValueRef count)
{
    const cg_access a = opjit_cg_access_of(f, plan->is.body);
    cg_loop *loop = &f->loops[f->loop_count - 1];
    ir_ref moving = 0;
    LLVMValueRef at = opjit_cg_emit(f, compared(f, &plan->is, ir_operand(f->ir, plan->point, 0), &moving));
    LLVMValueRef more = opjit_cg_at(f, moving, loop->var, NULL);
    at = more ? opjit_cg_sub(f, at, more) : at;
    LLVMValueRef place = opjit_cg_sub(f, at, begin);
    loop->iv = at;
    LLVMValueRef pointer = opjit_cg_lane0(f, &a);
    LLVMValueRef value = opjit_cg_as_bits(f, opjit_cg_emit(f, ir_operand(f->ir, plan->point, 1)));
    put(f, value, LLVMBuildICmp(f->b, LLVMIntULT, place, count, ""), pointer);
    LLVMValueRef rows = f->rows_apart;
    if (!rows)
        return;
    const cg_two_rows *two = &f->stage->rows;
    LLVMValueRef later = opjit_cg_add(f, place, opjit_cg_times(f, rows, two->growth));
    pointer = opjit_cg_offset(f, opjit_cg_int(f, a.bits, 1), pointer, opjit_cg_times(f, rows, two->row + two->growth));
    put(f, value, LLVMBuildICmp(f->b, LLVMIntULT, later, count, ""), pointer);
}
