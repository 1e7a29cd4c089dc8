/* SPDX-License-Identifier: Apache-2.0 */
/* half_integers.c - whole numbers as f16.  AVX512-FP16 converts short integers, a vector at a time.  Elsewhere a loop
 * that stores numbers in equal steps is bound by the conversions.  But numbers of one binade whose distance is an even
 * multiple of the last place are rounded alike, so the bits of their halves have a constant distance, too: a round of
 * numbers of one binade converts its first vectors, and continues by additions.  Other rounds convert all. */
#include "codegen/emit/access.h"
#include "codegen/stores/pieces.h"

enum { LAST_PLACE = 32 /* of halves from 32768 on */ };
/* --- short integers ----------------------------------------------------------------------------------------------- */

bool opjit_cg_converts_shorts(const cg_func *f, const cg_facts *is)
{
    bool is_signed;
    return is->lanes > 1 && is->store.value != 0 &&
           opjit_cg_short_index(f, is->store.value, is->var, &is_signed) != 0 && is_signed;
}

/* --- binades ------------------------------------------------------------------------------------------------------ */

/* The index that becomes the body's value, if its lanes are numbers that one binade rounds alike; else 0. */
static ir_ref halved_index(const cg_func *f, const cg_facts *is, int64_t *step)
{
    ir_interval i;
    const ir_ref x = opjit_cg_half_index(f, is->store.value, is->var, step, &i);
    return x != 0 && i.lo >= 0 && i.hi <= CG_MOST_HALF && *step * CG_CHAINS * is->lanes % (2 * LAST_PLACE) == 0 ? x : 0;
}

bool opjit_cg_is_in_binades(const cg_func *f, const cg_plan *plan)
{
    const cg_facts *is = &plan->is;
    int64_t step;
    return f->traits->binades && is->lanes > 1 && !is->nontemporal && !is->in_block && is->store.value != 0 &&
           is->step == 1 && plan->copies < CG_HALF_COPIES && CG_HALF_COPIES % plan->copies == 0 &&
           is->most >= (int64_t)is->lanes * CG_HALF_COPIES * CG_HALF_ROUNDS && is->store.contiguous &&
           halved_index(f, is, &step) != 0;
}

/* Whether the numbers of `count` iterations from iv on are in one binade: positive numbers with the same highest
 * bit. */
static LLVMValueRef in_one_binade(cg_func *f, const cg_facts *is, LLVMValueRef iv, int64_t count)
{
    int64_t step;
    const ir_ref x = halved_index(f, is, &step);
    LLVMValueRef at = opjit_cg_at(f, x, is->var, NULL);
    LLVMValueRef first = opjit_cg_plus(f, at, opjit_cg_times(f, iv, step));
    LLVMValueRef last = opjit_cg_add(f, first, opjit_cg_number(f, 64, 1, (uint64_t)(step * (count - 1))));
    LLVMValueRef differ = LLVMBuildXor(f->b, first, last, ""), both = LLVMBuildAnd(f->b, first, last, "");
    return LLVMBuildICmp(f->b, LLVMIntULE, differ, both, "");
}

/* For numbers of different binades, in rounds of the plan's copies. */
void opjit_cg_put_halves(const cg_pieces *p, LLVMValueRef iv)
{
    cg_func *f = p->f;
    const cg_facts *is = &p->plan->is;
    const uint32_t lanes = is->lanes, copies = p->plan->copies;
    const int64_t size = (int64_t)lanes * CG_HALF_COPIES;
    LLVMBasicBlockRef end = LLVMAppendBasicBlockInContext(f->llvm, f->fn, "");
    LLVMBasicBlockRef others = opjit_cg_if_begin(f, in_one_binade(f, is, iv, size));
    cg_piece own;
    cg_piece_begin(f, &own);
    f->piece->binade = true;
    opjit_cg_copies(f, is->body, lanes, CG_HALF_COPIES, iv);
    cg_piece_end(f);
    opjit_cg_if_leave(f, others, end);
    cg_count c;
    LLVMValueRef at = opjit_cg_count_begin(f, &c, false, iv, NULL);
    f->loops[f->loop_count - 1].slot = NULL; /* its variable is this loop's */
    opjit_cg_copies(f, is->body, lanes, copies, at);
    opjit_cg_count_end(f, &c, (int64_t)lanes * copies, opjit_cg_add(f, iv, cg_number(f, size)));
    opjit_cg_if_end(f, end);
}
