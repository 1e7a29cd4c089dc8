/* SPDX-License-Identifier: Apache-2.0 */
/* interleave.c - rows of two to four elements, one per iteration of the stage or loop around them, each read along a
 * row of its own, as the channels of an image that become its last dimension, or every second to fourth element, as
 * channels that are the last dimension already: a vector of iterations is loaded per element, and the vectors' lanes
 * are stored in turn. */
#include "codegen/emit/access.h"
#include "codegen/stores/pieces.h"

/* Whether the load is of the element that the store replaces: all of a vector's rows are read before one is stored. */
static bool is_replaced(const cg_func *f, const cg_access *load, const cg_access *store)
{
    int64_t from, to;
    bool same = load->rank == store->rank && opjit_ir_root_offset(f->ir, load->tensor, &from) &&
                opjit_ir_root_offset(f->ir, store->tensor, &to) && from == to;
    for (uint32_t d = 0; d < load->rank && same; d++)
        same = cg_stride(f, load, d) == cg_stride(f, store, d) &&
               cg_coordinate(f, load, d) == cg_coordinate(f, store, d);
    return same;
}

/* The loads of a row's value that go on from row to row. */
typedef struct row_loads {
    uint32_t count, bits; /* bits: of the widest element */
    bool picked, narrow, half; /* some are not of adjacent elements; of bytes; of FLOAT16 */
} row_loads;

static void note_type(row_loads *l, ir_type type)
{
    l->half = l->half || type == IR_F16;
    l->narrow = l->narrow || opjit_ir_type_size(type) == 1;
}

/* Notes the load; whether its elements are at most CG_MOST_STEP apart from one value of the variable to the next. */
static bool add_load(const cg_func *f, ir_ref node, ir_ref var, row_loads *l)
{
    const cg_access a = opjit_cg_access_of(f, node);
    int64_t growth;
    if (f->info[node].outside || !opjit_cg_growth(f, &a, var, &growth) || growth < 1 || growth > CG_MOST_STEP)
        return false;
    l->count++;
    l->bits = a.bits > l->bits ? a.bits : l->bits;
    l->picked = l->picked || growth > 1;
    note_type(l, (ir_type)f->ir->tensors[a.tensor].type);
    return true;
}

/* Whether the value may be made for consecutive values of the variable, a lane each: only loads may depend on it. */
static bool has_lanes(const cg_func *f, ir_ref node, const cg_access *store, ir_ref var, row_loads *l)
{
    const ir_node *n = ir_at(f->ir, node);
    const bool varies = (f->info[node].vary & f->info[var].vary) != 0;
    if (n->op == IR_LOAD && f->info[node].fresh) {
        const cg_access a = opjit_cg_access_of(f, node);
        if (!is_replaced(f, &a, store))
            return false;
    }
    if (n->op == IR_LOAD)
        return !varies || add_load(f, node, var, l);
    if (!varies && !f->info[node].fresh)
        return true;
    if (n->type == IR_INDEX || n->op == IR_GET)
        return false;
    for (uint32_t i = 0; i < n->count; i++)
        if (ir_at(f->ir, ir_operand(f->ir, node, i))->type == IR_INDEX ||
            !has_lanes(f, ir_operand(f->ir, node, i), store, var, l))
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

/* The same where loads are picked out of others: not where a row is a vector as it is, nor where code that is written
 * without LLVM has no such shuffles. */
static bool picks_pay(const cg_func *f, const row_loads *l, uint64_t row)
{
    const uint32_t bytes = f->target->vector_bytes;
    const bool is_vector = row * l->bits == 256 || (row * l->bits == 128 && bytes < 64);
    const bool far = l->narrow && rt_target_has_avx512(f->target) && !rt_target_has(f->target, RT_X86_AVX512VBMI);
    return bytes >= 32 && f->target->arch == RT_ARCH_X86_64 && !is_vector && !far && !l->half;
}

uint32_t opjit_cg_find_interleaved(const cg_func *f, const cg_facts *is)
{
    const ir_ref var = ir_at(f->ir, is->around)->ref;
    row_loads l = { .bits = is->bits };
    int64_t growth;
    if (!is->alone || is->least != is->most || is->most < 2 || is->most > CG_INTERLEAVE_MOST || is->step != 1 ||
        is->rows || is->edge || is->nontemporal || is->nested || is->in_block || !ir_is_index_const(f->ir, is->lo) ||
        is->store.value == 0 || !is->store.contiguous || f->info[is->store.value].stays ||
        f->info[is->store.value].weight > CG_INTERLEAVE_WEIGHT)
        return 0;
    const cg_access a = opjit_cg_access_of(f, is->body);
    const ir_tensor *t = &f->ir->tensors[a.tensor];
    if (!opjit_cg_growth(f, &a, var, &growth) || growth != is->most ||
        !has_lanes(f, is->store.value, &a, var, &l) || l.count == 0 || !pays(f, t))
        return 0;
    note_type(&l, (ir_type)t->type);
    if (l.picked && !picks_pay(f, &l, (uint64_t)is->most))
        return 0;
    const uint32_t lanes = 8 * f->target->vector_bytes / l.bits;
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
    uint32_t lanes = lanes_of_rows(f, plan);
    plan->interleaved = lanes;
    opjit_cg_plan_whole(f, plan, lanes, 1, &min, &max);
    while (plan->is.least < lanes && lanes > LEAST_LANES) /* fewer rows than a vector: of some sizes alone */
        opjit_cg_plan_whole(f, plan, lanes /= 2, 1, &min, &max);
    const bool twice = f->plans[plan->is.body]->is.store.repeatable;
    if (twice && plan->is.least >= lanes && max > 0)
        opjit_cg_plan_overlap(plan, lanes, min, max);
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
