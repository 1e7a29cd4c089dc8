/* SPDX-License-Identifier: Apache-2.0 */
/* lanes.c - index expressions as vectors.  One that is affine in the vectorised variable is never computed lane by
 * lane: it is its value in lane 0, splatted, plus a constant vector, or the value in an earlier copy of the body plus
 * a number. */
#include "codegen/emit/indices.h"

uint32_t opjit_cg_bits_for(ir_interval i)
{
    for (uint32_t bits = 8; bits < 64; bits *= 2) {
        const int64_t limit = (int64_t)1 << (bits - 1);
        if (i.lo >= -limit && i.hi < limit)
            return bits;
    }
    return 64;
}

/* The lane width of an index: as its interval needs, but not less than the data's, so that masks and conversions
 * match. */
uint32_t opjit_cg_lane_bits(const cg_func *f, ir_ref node)
{
    const uint32_t need = opjit_cg_bits_for(opjit_ir_interval(f->ir, node));
    return need > f->piece->lane_bits ? need : f->piece->lane_bits;
}

/* The entry for the node's lanes in copy `copy` of the loop's body. */
static cg_entry *place_of_copy(const cg_func *f, ir_ref node, uint32_t depth, int64_t copy)
{
    return opjit_cg_place(f, (cg_slot)(CG_STEP + copy % CG_CHAINS), node, depth);
}

LLVMValueRef opjit_cg_lanes_of_copy(const cg_func *f, ir_ref node, uint32_t depth, int64_t copy)
{
    const cg_entry *e = copy < 0 ? NULL : place_of_copy(f, node, depth, copy);
    LLVMValueRef v = e && e->offset == copy ? opjit_cg_live(f, e) : NULL;
    return v && opjit_cg_lanes(v) == f->piece->lanes ? v : NULL;
}

LLVMValueRef opjit_cg_remember_lanes(cg_func *f, ir_ref node, uint32_t depth, int64_t copy, LLVMValueRef v)
{
    cg_entry *e = place_of_copy(f, node, depth, copy);
    *e = opjit_cg_entry(f, depth, v);
    e->offset = copy;
    return v;
}

int64_t opjit_cg_number_of_copy(const cg_func *f)
{
    const cg_loop *loop = &f->loops[f->piece->vec];
    return loop->offset / loop->step / f->piece->lanes;
}

uint32_t opjit_cg_depth_of_lanes(const cg_func *f, ir_ref node)
{
    return f->info[node].fresh ? f->scope_count - 1 : f->piece->loop_scope;
}

LLVMValueRef opjit_cg_lanes_after(cg_func *f, ir_ref node, uint32_t bits, int64_t step)
{
    const uint32_t depth = opjit_cg_depth_of_lanes(f, node);
    const int64_t copy = opjit_cg_number_of_copy(f);
    LLVMValueRef v = opjit_cg_lanes_of_copy(f, node, depth, copy);
    if (v && opjit_cg_bits(v) == bits)
        return v;
    int64_t back = CG_CHAINS;
    v = opjit_cg_lanes_of_copy(f, node, depth, copy - back);
    if (!v)
        v = opjit_cg_lanes_of_copy(f, node, depth, copy - (back = 1));
    if (!v || opjit_cg_bits(v) != bits)
        return NULL;
    const uint64_t more = (uint64_t)step * (uint64_t)(back * f->piece->lanes);
    v = LLVMBuildAdd(f->b, v, opjit_cg_kept(f, opjit_cg_number(f, bits, f->piece->lanes, more)), "");
    return opjit_cg_remember_lanes(f, node, depth, copy, v);
}

LLVMValueRef opjit_cg_lanes_from(cg_func *f, ir_ref node, LLVMValueRef base, int64_t step)
{
    const int64_t copy = opjit_cg_number_of_copy(f);
    const uint64_t offset = (uint64_t)step * (uint64_t)(copy * f->piece->lanes);
    LLVMValueRef iota = opjit_cg_iota(f, opjit_cg_bits(base), f->piece->lanes, (int64_t)offset, step);
    LLVMValueRef v = LLVMBuildAdd(f->b, opjit_cg_splat(f, base, f->piece->lanes), opjit_cg_kept(f, iota), "");
    return opjit_cg_remember_lanes(f, node, opjit_cg_depth_of_lanes(f, node), copy, v);
}

/* The value made before this loop; NULL: none. */
static LLVMValueRef start_of(cg_func *f, ir_ref node, uint32_t bits)
{
    LLVMValueRef v = f->piece->block.on ? NULL : opjit_cg_recall(f, CG_START, node);
    const bool fits = v && f->cache[CG_START][node].scope == f->loops[f->piece->vec].scope && opjit_cg_bits(v) == bits;
    return fits && opjit_cg_lanes(v) == f->piece->lanes ? v : NULL;
}

LLVMValueRef opjit_cg_affine_lanes(cg_func *f, ir_ref node, uint32_t bits, int64_t step)
{
    LLVMValueRef v = opjit_cg_lanes_after(f, node, bits, step), start = v ? NULL : start_of(f, node, bits);
    if (v)
        return v;
    if (!start)
        return opjit_cg_lanes_from(f, node, opjit_cg_resize(f, opjit_cg_base(f, node), bits, true), step);
    cg_loop *loop = &f->loops[f->piece->vec];
    LLVMValueRef base = opjit_cg_resize(f, opjit_cg_variable(f, loop), bits, true);
    base = opjit_cg_add(f, base, opjit_cg_number(f, bits, 1, (uint64_t)loop->offset));
    v = LLVMBuildAdd(f->b, opjit_cg_splat(f, base, f->piece->lanes), start, "");
    return opjit_cg_remember_lanes(f, node, opjit_cg_depth_of_lanes(f, node), opjit_cg_number_of_copy(f), v);
}

/* Whether a float is converted from the index in 32 bits. */
static bool is_narrow(const cg_func *f, ir_ref index)
{
    const ir_interval i = opjit_ir_interval(f->ir, index);
    return opjit_cg_bits_for(i) <= 32 || (i.lo >= 0 && i.hi <= UINT32_MAX);
}

void opjit_cg_hoist_start(cg_func *f, ir_ref elem, uint32_t loop, uint32_t lanes)
{
    const ir_type to = (ir_type)ir_at(f->ir, elem)->type;
    const ir_ref x = ir_operand(f->ir, elem, 0), var = f->loops[loop].var;
    const cg_info *info = &f->info[x];
    int64_t factor;
    /* Nothing declared inside the loop, and no variable of another loop that changes there. */
    if (!ir_is_float(to) || f->piece->block.on || !opjit_cg_affine(f, x, var, &factor) || factor != 1 || info->fresh ||
        info->stays || (info->inside & ~f->info[var].vary) >> loop)
        return;
    LLVMValueRef base = opjit_cg_at(f, x, var, NULL);
    if (!base)
        return;
    const uint32_t bits = is_narrow(f, x) ? 32 : 64;
    LLVMValueRef v = opjit_cg_splat(f, opjit_cg_resize(f, base, bits, true), lanes);
    v = LLVMBuildAdd(f->b, v, opjit_cg_kept(f, opjit_cg_iota(f, bits, lanes, 0, f->loops[loop].step)), "");
    opjit_cg_remember(f, CG_START, x, f->scope_count - 1, v);
}

/* An index expression as integers of `bits`, modulo 2^bits. */
LLVMValueRef opjit_cg_index_lanes(cg_func *f, ir_ref node, uint32_t bits, uint32_t lanes)
{
    int64_t step, offset;
    if (lanes > 1 && opjit_cg_varies(f, node) && opjit_cg_lane_step(f, node, &step, &offset))
        return opjit_cg_affine_lanes(f, node, bits, step);
    return opjit_cg_splat(f, opjit_cg_resize(f, opjit_cg_emit(f, node), bits, true), lanes);
}

LLVMValueRef opjit_cg_like(cg_func *f, LLVMValueRef like, int64_t value)
{
    return opjit_cg_number(f, opjit_cg_bits(like), opjit_cg_lanes(like), (uint64_t)value);
}
