/* SPDX-License-Identifier: Apache-2.0 */
/* whole_blocks.c - rows of blocks that are transposed, and the columns in one: whole blocks, of which the last one
 * begins earlier, and stores again what the previous one stored. */
#include "codegen/stores/pieces.h"

bool opjit_cg_is_whole_blocks(const cg_func *f, const cg_plan *plan)
{
    const cg_facts *is = &plan->is;
    return is->overlaps && (is->rows || is->in_block) && is->ordered &&
           opjit_ir_interval(f->ir, is->hi).lo >= (int64_t)is->lanes * plan->copies;
}

void opjit_cg_put_whole_blocks(const cg_pieces *p, cg_range *r)
{
    cg_func *f = p->f;
    const cg_facts *is = &p->plan->is;
    const uint32_t copies = p->plan->even;
    const int64_t size = (int64_t)is->lanes * copies;
    LLVMValueRef hi = cg_advance(p, r->pos, r->count), last = opjit_cg_sub(f, hi, cg_number(f, size));
    cg_piece own;
    cg_piece_begin(f, &own);
    f->piece->shifted = true;
    if (is->most <= size) {
        LLVMBasicBlockRef after =
            is->least == 0 ? opjit_cg_if_begin(f, LLVMBuildICmp(f->b, LLVMIntNE, hi, r->pos, "")) : NULL;
        opjit_cg_piece(p, is->lanes, copies, last);
        if (after)
            opjit_cg_if_end(f, after);
    } else {
        LLVMValueRef count =
            LLVMBuildAnd(f->b, opjit_cg_add(f, r->count, cg_number(f, size - 1)), cg_number(f, -size), "");
        LLVMValueRef end = opjit_cg_opaque(f, opjit_cg_add(f, r->pos, count));
        cg_count c;
        LLVMValueRef guard = is->least == 0 ? LLVMBuildICmp(f->b, LLVMIntNE, end, r->pos, "") : NULL;
        LLVMValueRef at = opjit_cg_count_begin(f, &c, false, r->pos, guard);
        opjit_cg_piece(p, is->lanes, copies, opjit_cg_limit(f, false, at, last));
        opjit_cg_count_end(f, &c, size, end);
    }
    cg_piece_end(f);
}
