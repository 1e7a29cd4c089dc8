/* SPDX-License-Identifier: Apache-2.0 */
/* fill.c - runs of one value: of any length, at places that are not known to be whole vectors of memory, and short runs
 * of a constant.  Any element may be stored twice, so that none has a remainder. */
#include "codegen/stores/pieces.h"

/* --- any length --------------------------------------------------------------------------------------------------- */

bool opjit_cg_is_fill(const cg_func *f, const cg_plan *plan)
{
    const cg_facts *is = &plan->is;
    return is->least < is->most && is->most >= is->lanes && is->store.value != 0 && is->lanes > 1 && !is->nontemporal &&
           !is->overlaps && is->store.uniform && is->store.repeatable && is->store.contiguous &&
           opjit_cg_known_rest(f, is, is->lanes) != 0;
}

/* The largest power of two up to n, and up to `most`, which is one. */
static uint32_t power_up_to(int64_t n, int64_t most)
{
    while (most > n)
        most /= 2;
    return (uint32_t)most;
}

/* Runs of CG_PEAK_COPIES vectors or more are long. */
void opjit_cg_choose_fill(const cg_func *f, cg_plan *plan)
{
    const cg_facts *is = &plan->is;
    const int64_t many = (int64_t)is->lanes * CG_PEAK_COPIES;
    int64_t min = many - is->lanes + 1, max = is->most;
    plan->part = power_up_to(max, many / 2);
    plan->least_part = is->least > 0 ? power_up_to(is->least, many) : 1;
    if (plan->part < plan->least_part)
        plan->part = 0; /* all runs are long */
    if (max < many)
        return;
    plan->long_end = CG_PEAK_COPIES / 2;
    if (!f->peak && max >= 2 * many)
        opjit_cg_plan_whole(f, plan, is->lanes, 2 * CG_PEAK_COPIES, &min, &max);
    opjit_cg_plan_whole(f, plan, is->lanes, CG_PEAK_COPIES, &min, &max);
}

/* Stores lanes x copies elements that end where the loop ends. */
static void emit_end(const cg_pieces *p, uint32_t lanes, uint32_t copies, const cg_range *r)
{
    cg_func *f = p->f;
    LLVMValueRef end = cg_advance(p, r->pos, r->count);
    cg_piece own;
    cg_piece_begin(f, &own);
    f->piece->shifted = true;
    opjit_cg_piece(p, lanes, copies, opjit_cg_sub(f, end, cg_number(f, (int64_t)lanes * copies)));
    cg_piece_end(f);
}

/* A vector at the start, rounds from memory's next whole vector on, and half a round or a whole one at the end.  Nearly
 * everything is stored once, and not across lines. */
static void emit_long_fill(const cg_pieces *p, const cg_range *r)
{
    cg_func *f = p->f;
    const uint32_t lanes = p->plan->is.lanes, end = p->plan->long_end;
    cg_piece own;
    cg_piece_begin(f, &own);
    f->piece->shifted = true;
    LLVMValueRef from = opjit_cg_next_vector(f, p->plan->is.body, lanes, r->pos);
    LLVMValueRef count = opjit_cg_sub(f, cg_advance(p, r->pos, r->count), from);
    cg_range rounds = { from, count, NULL, !f->peak, CG_HERE };
    if (!f->peak)
        opjit_cg_early_here(f);
    opjit_cg_piece(p, lanes, 1, r->pos);
    cg_piece whole_vectors;
    cg_piece_begin(f, &whole_vectors);
    f->piece->aligned = true;
    opjit_cg_put_cuts(p, &rounds);
    cg_piece_end(f);
    LLVMValueRef most = LLVMBuildICmp(f->b, LLVMIntUGT, rounds.count, cg_number(f, (int64_t)lanes * end), "");
    LLVMBasicBlockRef after = opjit_cg_if_begin(f, most);
    opjit_cg_piece(p, lanes, end, rounds.pos);
    opjit_cg_if_end(f, after);
    emit_end(p, lanes, end, r);
    cg_piece_end(f);
}

/* Begins what is done with n elements or more; NULL: there are always as many. */
static LLVMBasicBlockRef if_as_many(const cg_pieces *p, const cg_range *r, int64_t n)
{
    cg_func *f = p->f;
    return p->plan->is.least < n ? opjit_cg_if_begin(f, LLVMBuildICmp(f->b, LLVMIntSGE, r->count, cg_number(f, n), ""))
                                 : NULL;
}

/* A block of code for long runs; after it, for each power of two n one for n to 2n - 1 elements, which stores n from
 * the first on and n up to the last. */
void opjit_cg_put_fill(const cg_pieces *p, cg_range *r)
{
    cg_func *f = p->f;
    const cg_plan *plan = p->plan;
    LLVMBasicBlockRef end = LLVMAppendBasicBlockInContext(f->llvm, f->fn, ""), less = NULL;
    if (plan->long_end > 0) {
        less = if_as_many(p, r, 2 * (int64_t)plan->is.lanes * plan->long_end);
        emit_long_fill(p, r);
        if (less)
            opjit_cg_if_leave(f, less, end);
    }
    for (uint32_t n = plan->part; n >= plan->least_part; n /= 2) {
        const uint32_t lanes = n < plan->is.lanes ? n : plan->is.lanes;
        less = if_as_many(p, r, n);
        opjit_cg_piece(p, lanes, n / lanes, r->pos);
        if (n > 1)
            emit_end(p, lanes, n / lanes, r);
        if (less)
            opjit_cg_if_leave(f, less, end);
    }
    opjit_cg_if_end(f, end);
}

/* --- short runs --------------------------------------------------------------------------------------------------- */

/* The largest power of two that does not exceed the run's minimum length; 0: it is not such a run. */
static int64_t part_of(const cg_func *f, const cg_facts *is)
{
    const ir_node *n = ir_at(f->ir, is->loop);
    int64_t least, part = 1;
    if (f->peak || f->cpu->grid || n->vec < 2 || n->imm != 1 || is->nontemporal || is->store.value == 0 ||
        ir_at(f->ir, is->store.value)->op != IR_CONST || is->fixed || is->span >= n->vec || !is->store.contiguous ||
        !opjit_ir_span(f->ir, is->hi, is->lo, &least) || least >= 0)
        return 0;
    while (2 * part <= -least)
        part *= 2;
    return is->span <= CG_SHORT_RUN_PARTS * part ? part : 0;
}

bool opjit_cg_is_short_run(const cg_func *f, const cg_plan *plan)
{
    return part_of(f, &plan->is) > 0;
}

void opjit_cg_choose_short_run(const cg_func *f, cg_plan *plan)
{
    plan->part = (uint32_t)part_of(f, &plan->is);
}

void opjit_cg_put_short_run(const cg_pieces *p, cg_range *r)
{
    cg_func *f = p->f;
    const int64_t part = p->plan->part;
    LLVMValueRef last = opjit_cg_sub(f, r->count, cg_number(f, part));
    cg_piece own;
    cg_piece_begin(f, &own);
    f->piece->shifted = true;
    for (int64_t at = 0; at < p->plan->is.most; at += part)
        opjit_cg_piece(p, (uint32_t)part, 1, cg_advance(p, r->pos, opjit_cg_limit(f, false, cg_number(f, at), last)));
    cg_piece_end(f);
}
