/* SPDX-License-Identifier: Apache-2.0 */
/* interleave.c - rows of two to four elements, one per iteration of the stage or loop around them, each read along a
 * row of its own, as the channels of an image that become its last dimension: a vector of iterations is loaded per
 * element, and the vectors' lanes are stored in turn. */
#include "codegen/emit/access.h"
#include "codegen/stores/pieces.h"

/* Whether the value may be made for consecutive values of the variable, a lane each: only loads may depend on it, and
 * these are of adjacent elements.  *loads: whether there is such a load; *bits: of its widest element. */
static bool has_lanes(const cg_func *f, ir_ref node, ir_ref var, bool *loads, uint32_t *bits)
{
    const ir_node *n = ir_at(f->ir, node);
    if (!(f->info[node].vary & f->info[var].vary))
        return true;
    if (n->op == IR_LOAD) {
        const cg_access a = opjit_cg_access_of(f, node);
        int64_t growth;
        *loads = true;
        *bits = a.bits > *bits ? a.bits : *bits;
        return !f->info[node].outside && opjit_cg_growth(f, &a, var, &growth) && growth == 1;
    }
    if (n->type == IR_INDEX || n->op == IR_GET)
        return false;
    for (uint32_t i = 0; i < n->count; i++)
        if (ir_at(f->ir, ir_operand(f->ir, node, i))->type == IR_INDEX ||
            !has_lanes(f, ir_operand(f->ir, node, i), var, loads, bits))
            return false;
    return n->count > 0;
}

/* Whether there are vectors, and instructions for such shuffles, for which LLVM otherwise makes hundreds; and whether
 * the tensor is so large that they make up for the time that they take to compile. */
static bool pays(const cg_func *f, const ir_tensor *t)
{
    const bool wide = opjit_ir_type_size(t->type) >= 4;
    const bool shuffles = f->target->arch != RT_ARCH_X86_64 || (f->target->features >> RT_X86_SSSE3 & 1) != 0;
    return f->target->vector_bytes >= 16 && (wide || shuffles) &&
           (f->peak || opjit_ir_count_elements(t) >= CG_INTERLEAVE_LEAST);
}

uint32_t opjit_cg_find_interleaved(const cg_func *f, const cg_facts *is)
{
    const ir_ref var = ir_at(f->ir, is->around)->ref;
    bool loads = false;
    uint32_t bits = is->bits;
    int64_t growth;
    if (!is->alone || is->least != is->most || is->most < 2 || is->most > CG_INTERLEAVE_MOST || is->step != 1 ||
        is->rows || is->edge || is->nontemporal || is->nested || is->in_block || !ir_is_index_const(f->ir, is->lo) ||
        is->store.value == 0 || !is->store.contiguous || !is->store.repeatable ||
        f->info[is->store.value].weight > CG_INTERLEAVE_WEIGHT)
        return 0;
    const cg_access a = opjit_cg_access_of(f, is->body);
    if (!opjit_cg_growth(f, &a, var, &growth) || growth != is->most ||
        !has_lanes(f, is->store.value, var, &loads, &bits) || !loads || !pays(f, &f->ir->tensors[a.tensor]))
        return 0;
    const uint32_t lanes = 8 * f->target->vector_bytes / bits;
    return lanes < CG_INTERLEAVE_LANES ? lanes : CG_INTERLEAVE_LANES;
}

/* Iterations of the stage or loop around the loop in a vector. */
static uint32_t lanes_around(const cg_func *f, const cg_plan *plan)
{
    const cg_plan *around = f->plans[plan->is.around];
    return around ? around->interleaved : f->stage->interleaved;
}

bool opjit_cg_is_interleaved(const cg_func *f, const cg_plan *plan)
{
    return !plan->is.in_block && !plan->is.nested && lanes_around(f, plan) > 0;
}

void opjit_cg_choose_interleaved(const cg_func *f, cg_plan *plan)
{
    plan->interleaved = lanes_around(f, plan);
    plan->read_ahead = 0;
    plan->point = 0; /* each element has a vector of its own */
    plan->still = CG_NOWHERE;
    opjit_cg_plan_cuts(f, plan, plan->is.least, plan->is.most, false);
}

/* Vector number k of what the parts' lanes are in turn. */
static LLVMValueRef in_turn(cg_func *f, LLVMValueRef *parts, uint32_t count, uint32_t k)
{
    const uint32_t lanes = opjit_cg_lanes(parts[0]);
    uint32_t places[CG_MAX_LANES];
    LLVMValueRef v = parts[0];
    for (uint32_t i = 1; i < count; i++) { /* the lanes of those up to part i, which come after those before */
        for (uint32_t j = 0; j < lanes; j++) {
            const uint32_t at = k * lanes + j, part = at % count;
            places[j] = part > i ? UINT32_MAX : part == i ? lanes + at / count : i == 1 ? at / count : j;
        }
        v = opjit_cg_shuffle(f, v, parts[i], places, lanes);
    }
    return v;
}

/* What the parts' lanes are in turn, as vectors as long as a part. */
static void take_turns(cg_func *f, LLVMValueRef *parts, uint32_t count, LLVMValueRef *out)
{
    if (count == 4) { /* twice two by two, which takes fewer shuffles */
        LLVMValueRef even[2], odd[2];
        for (uint32_t k = 0; k < 2; k++) {
            even[k] = in_turn(f, (LLVMValueRef[]){ parts[0], parts[2] }, 2, k);
            odd[k] = in_turn(f, (LLVMValueRef[]){ parts[1], parts[3] }, 2, k);
        }
        for (uint32_t k = 0; k < count; k++)
            out[k] = in_turn(f, (LLVMValueRef[]){ even[k / 2], odd[k / 2] }, 2, k % 2);
        return;
    }
    for (uint32_t k = 0; k < count; k++)
        out[k] = in_turn(f, parts, count, k);
}

/* The row's elements for as many iterations of the stage as the piece has lanes. */
static void put_vectors(const cg_pieces *p)
{
    cg_func *f = p->f;
    const cg_facts *is = &p->plan->is;
    const uint32_t count = (uint32_t)is->most, lanes = f->piece->lanes;
    const cg_access a = opjit_cg_access_of(f, is->body);
    LLVMTypeRef element = opjit_cg_int(f, a.bits, 1);
    LLVMValueRef parts[CG_INTERLEAVE_MOST], turns[CG_INTERLEAVE_MOST], to = NULL;
    cg_loop *loop = &f->loops[f->loop_count - 1];
    f->vectors = true;
    for (uint32_t i = 0; i < count; i++) {
        cg_piece own;
        cg_piece_begin(f, &own);
        opjit_cg_scope_push(f);
        f->piece->copy_scope = f->piece->loop_scope = f->piece->place_scope = f->scope_count - 1;
        loop->iv = opjit_cg_add(f, p->start, cg_number(f, i));
        to = i == 0 ? opjit_cg_lane0(f, &a) : to;
        parts[i] = opjit_cg_as_bits(f, opjit_cg_emit_lanes(f, is->store.value, lanes));
        opjit_cg_scope_pop(f);
        cg_piece_end(f);
    }
    take_turns(f, parts, count, turns);
    for (uint32_t i = 0; i < count; i++)
        opjit_cg_store_vector(f, turns[i],
                              opjit_cg_offset(f, element, to, cg_number(f, (int64_t)i * lanes)), a.bits / 8, false);
}

void opjit_cg_put_interleaved(const cg_pieces *p, cg_range *r)
{
    if (p->f->piece->lanes > 1)
        put_vectors(p);
    else
        opjit_cg_put_cuts(p, r);
}

/* --- the loop around them ----------------------------------------------------------------------------------------- */

enum { LEAST_LANES = 4 /* of vectors of few rows */ };

static uint32_t lanes_of_rows(const cg_func *f, const cg_plan *plan)
{
    const cg_plan *rows = f->plans[plan->is.body];
    uint32_t lanes = plan->is.nested && plan->is.step == 1 && rows ? opjit_cg_find_interleaved(f, &rows->is) : 0;
    while (lanes > LEAST_LANES && plan->is.most < lanes)
        lanes /= 2;
    return lanes;
}

bool opjit_cg_is_over_interleaved(const cg_func *f, const cg_plan *plan)
{
    const uint32_t lanes = f->cpu->grid || plan->is.in_block || plan->is.rows ? 0 : lanes_of_rows(f, plan);
    return lanes > 0 && plan->is.most >= lanes;
}

void opjit_cg_choose_over_interleaved(const cg_func *f, cg_plan *plan)
{
    int64_t min = plan->is.least, max = plan->is.most;
    plan->interleaved = lanes_of_rows(f, plan);
    opjit_cg_plan_whole(f, plan, plan->interleaved, 1, &min, &max);
    if (plan->is.least >= plan->interleaved && max > 0) /* what the loop stores may be stored twice */
        opjit_cg_plan_overlap(plan, plan->interleaved, min, max);
    else
        opjit_cg_plan_whole(f, plan, 1, 1, &min, &max);
}

void opjit_cg_put_over_interleaved(const cg_pieces *p, cg_range *r)
{
    cg_piece own;
    cg_piece_begin(p->f, &own);
    p->f->piece->shifted = true;
    opjit_cg_put_cuts(p, r);
    cg_piece_end(p->f);
}
