/* SPDX-License-Identifier: Apache-2.0 */
/* aligned.c - long loops of one store at a place that is not known to be a whole vector of memory.  They begin and end
 * with vectors that overlap the whole ones between them, because a store across two lines is slower in the caches. */
#include "codegen/stores/pieces.h"

/* Whether the loop stores one value everywhere, or everywhere except in one place that is stored afterwards. */
static bool is_uniform(const cg_plan *plan)
{
    return plan->point != 0 || plan->is.store.uniform;
}

/* Copies in rounds of which the last one reaches back, if these store hardly anything twice; else 0.  Values that vary
 * have half as many: at quick the vector before the rounds takes as long to compile as the rest. */
static uint32_t even_copies(const cg_func *f, const cg_plan *plan)
{
    const int64_t most = plan->is.most;
    const uint32_t copies = f->peak || is_uniform(plan) ? plan->copies : plan->copies / 2;
    const int64_t size = (int64_t)plan->is.lanes * copies, over = size == 0 ? 0 : (size - most % size) % size;
    return most >= 2 * size && over <= most / CG_TWICE_PART ? copies : 0;
}

bool opjit_cg_seeks_alignment(const cg_func *f, const cg_plan *plan)
{
    const cg_facts *is = &plan->is;
    if (is->least != is->most || is->most < (int64_t)is->lanes * CG_ALIGN_VECTORS || is->lanes < 2 || is->step != 1 ||
        is->rows || is->in_block || is->nontemporal || is->store.value == 0)
        return false;
    return (is_uniform(plan) || (is->unroll > CG_MANY_COPIES && even_copies(f, plan) > 0)) && is->store.repeatable &&
           is->store.contiguous && !opjit_cg_is_aligned(f, is->body, is->var, is->lanes);
}

bool opjit_cg_is_aligned_rounds(const cg_func *f, const cg_plan *plan)
{
    return even_copies(f, plan) > 0 && opjit_cg_seeks_alignment(f, plan);
}

/* Values other than uniform ones take long to compile. */
bool opjit_cg_is_aligned_streams(const cg_func *f, const cg_plan *plan)
{
    return is_uniform(plan) && opjit_cg_is_aligned_rounds(f, plan) &&
           opjit_cg_stream_copies(f, plan, plan->is.most, true) > 0;
}

void opjit_cg_choose_even(const cg_func *f, cg_plan *plan)
{
    plan->even = even_copies(f, plan);
    plan->streams = is_uniform(plan) ? opjit_cg_stream_copies(f, plan, plan->is.most, true) : 0;
}

/* The number of whole vectors, wherever the first one begins. */
static int64_t sure_vectors(const cg_facts *is)
{
    const int64_t lanes = is->lanes;
    return (is->most - (lanes - 1)) / lanes * lanes;
}

void opjit_cg_choose_aligned(const cg_func *f, cg_plan *plan)
{
    opjit_cg_plan_cuts(f, plan, sure_vectors(&plan->is), sure_vectors(&plan->is), true);
}

/* Stores the vector at the loop's start, and returns where memory's first whole vector begins.  First, because
 * everything before a point where fast selection stops leaves it, too. */
static LLVMValueRef put_begin(const cg_pieces *p, const cg_range *r)
{
    opjit_cg_piece(p, p->plan->is.lanes, 1, r->pos);
    return opjit_cg_next_vector(p->f, p->plan->is.body, p->plan->is.lanes, r->pos);
}

/* Rounds for `most` iterations from `from` on; the last one ends where the loop ends. */
static void emit_even_rounds(const cg_pieces *p, const cg_range *r, int64_t most, uint32_t copies, LLVMValueRef from)
{
    cg_func *f = p->f;
    const uint32_t lanes = p->plan->is.lanes;
    const int64_t size = (int64_t)lanes * copies, all = (most + size - 1) / size * size;
    LLVMValueRef last = opjit_cg_sub(f, cg_advance(p, r->pos, r->count), cg_number(f, size));
    LLVMValueRef end = opjit_cg_opaque(f, opjit_cg_add(f, from, cg_number(f, all)));
    cg_count c;
    LLVMValueRef at = opjit_cg_count_begin(f, &c, false, from, NULL);
    opjit_cg_piece(p, lanes, copies, opjit_cg_limit(f, false, at, last));
    opjit_cg_count_end(f, &c, size, end);
}

/* In two streams, short rounds store what the streams leave; the last ones may coincide. */
void opjit_cg_put_even(const cg_pieces *p, cg_range *r)
{
    cg_func *f = p->f;
    const int64_t most = p->plan->is.most, lanes = p->plan->is.lanes, size = lanes * p->plan->streams;
    cg_piece own;
    cg_piece_begin(f, &own);
    f->piece->shifted = true;
    LLVMValueRef from = put_begin(p, r);
    if (p->plan->streams > 0) {
        const int64_t whole = (most - lanes) / size * size;
        cg_range both = { from, cg_number(f, whole), NULL, false, CG_HERE };
        opjit_cg_put_streams(p, p->plan->streams, whole, whole, &both);
        emit_even_rounds(p, r, most - whole, CG_PEAK_COPIES, both.pos);
    } else {
        emit_even_rounds(p, r, most, p->plan->even, from);
    }
    cg_piece_end(f);
}

void opjit_cg_put_aligned(const cg_pieces *p, cg_range *r)
{
    cg_func *f = p->f;
    const int64_t lanes = p->plan->is.lanes, whole = sure_vectors(&p->plan->is);
    const int64_t rest = p->plan->is.most - whole; /* where the loop begins at a whole vector */
    cg_piece own;
    cg_piece_begin(f, &own);
    f->piece->shifted = true;
    cg_range inner = { put_begin(p, r), cg_number(f, whole), NULL, false, CG_HERE };
    cg_piece whole_vectors;
    cg_piece_begin(f, &whole_vectors);
    f->piece->aligned = true;
    opjit_cg_put_cuts(p, &inner);
    cg_piece_end(f);
    const int64_t copies = (rest + lanes - 1) / lanes; /* last: lines are stored in order */
    LLVMValueRef end = cg_advance(p, r->pos, r->count);
    opjit_cg_piece(p, p->plan->is.lanes, (uint32_t)copies, opjit_cg_sub(f, end, cg_number(f, lanes * copies)));
    cg_piece_end(f);
}
