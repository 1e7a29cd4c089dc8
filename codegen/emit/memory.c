/* SPDX-License-Identifier: Apache-2.0 */
/* memory.c - loads and stores; address.c has their addresses.  Nothing outside of a tensor is touched: a load that is
 * in bounds for some lanes only is masked where the target can do that; elsewhere the other lanes read element 0. */
#include "codegen/emit/access.h"
#include "codegen/gpu/grid.h"
#include "codegen/plan.h"

#include <stdio.h>

/* --- lanes one by one --------------------------------------------------------------------------------------------- */

/* Whether any lane is evaluated, as a scalar, for an access that all of them share. */
static LLVMValueRef any_lane(cg_func *f)
{
    if (f->piece->sure)
        return f->piece->sure;
    if (opjit_cg_lanes(f->piece->mask) == 1)
        return f->piece->mask;
    if (f->cpu->grid)
        return opjit_cg_fold_lanes(f, false, f->piece->mask);
    LLVMTypeRef wide = LLVMIntTypeInContext(f->llvm, opjit_cg_lanes(f->piece->mask));
    LLVMValueRef bits = LLVMBuildBitCast(f->b, opjit_cg_narrow(f, f->piece->mask), wide, "");
    return LLVMBuildICmp(f->b, LLVMIntNE, bits, LLVMConstNull(wide), "");
}

/* The element offsets of all lanes; those of inactive lanes are 0. */
static LLVMValueRef lane_offsets(cg_func *f, const cg_access *a, bool affine, int64_t grow, bool masked)
{
    const cg_loop *vec = &f->loops[f->piece->vec];
    LLVMValueRef offsets = NULL;
    if (affine) {
        offsets = opjit_cg_splat(f, opjit_cg_lane0_offset(f, a, grow * vec->offset), f->piece->lanes);
        offsets = LLVMBuildAdd(f->b, offsets, opjit_cg_iota(f, 64, f->piece->lanes, 0, grow * vec->step), "");
    }
    for (uint32_t d = 0; !affine && d < a->rank; d++)
        if (cg_stride(f, a, d) != 0)
            offsets =
                opjit_cg_plus(f, offsets,
                              opjit_cg_times(f, opjit_cg_index_lanes(f, cg_coordinate(f, a, d), 64, f->piece->lanes),
                                             cg_stride(f, a, d)));
    if (!offsets)
        offsets = opjit_cg_number(f, 64, f->piece->lanes, 0);
    return masked ? LLVMBuildSelect(f->b, opjit_cg_narrow(f, f->piece->mask), offsets,
                                    opjit_cg_number(f, 64, f->piece->lanes, 0), "")
                  : offsets;
}

/* The offsets of lanes whose coordinates are data, in 32 bits, from *out; NULL: they may be larger. */
static LLVMValueRef short_offsets(cg_func *f, const cg_access *a, LLVMValueRef *out)
{
    LLVMValueRef offsets = NULL, before = NULL;
    double most = 0;
    for (uint32_t d = 0; d < a->rank; d++) {
        const ir_ref at = cg_coordinate(f, a, d);
        const int64_t stride = cg_stride(f, a, d);
        if (stride != 0 && opjit_cg_varies(f, at)) {
            const ir_interval i = opjit_ir_interval(f->ir, at);
            const double size = -(double)i.lo > (double)i.hi ? -(double)i.lo : (double)i.hi;
            most += size * (double)(stride < 0 ? -stride : stride);
        }
    }
    for (uint32_t d = 0; d < a->rank && most <= INT32_MAX; d++) {
        const ir_ref at = cg_coordinate(f, a, d);
        const int64_t stride = cg_stride(f, a, d);
        if (stride != 0 && opjit_cg_varies(f, at))
            offsets = opjit_cg_plus(
                f, offsets, opjit_cg_times(f, opjit_cg_index_lanes(f, at, 32, f->piece->lanes), stride));
        else if (stride != 0)
            before = opjit_cg_plus(f, before, opjit_cg_times(f, opjit_cg_emit(f, at), stride));
    }
    LLVMValueRef base = opjit_cg_base_pointer(f, a->tensor);
    *out = before ? opjit_cg_offset(f, opjit_cg_int(f, a->bits, 1), base, before) : base;
    return offsets;
}

/* Of lanes that bytes say, the places in a table; NULL: it is something else. */
static LLVMValueRef look_up(cg_func *f, const cg_access *a)
{
    enum { TABLE = 256 };
    const ir_ref at = a->rank == 1 ? cg_coordinate(f, a, 0) : 0;
    if (!f->cpu->look_up || a->bits != 8 || at == 0 || ir_at(f->ir, at)->op != IR_TO_INDEX ||
        ir_at(f->ir, ir_operand(f->ir, at, 0))->type != IR_U8 || cg_stride(f, a, 0) != 1 ||
        f->ir->tensors[a->tensor].sizes[0] != TABLE)
        return NULL;
    return f->cpu->look_up(f, opjit_cg_base_pointer(f, a->tensor),
                           opjit_cg_emit_lanes(f, ir_operand(f->ir, at, 0), f->piece->lanes));
}

/* Of lanes whose coordinates are data, by an intrinsic where there is one; NULL: not like this. */
static LLVMValueRef gather_data(cg_func *f, const cg_access *a, bool masked)
{
    LLVMTypeRef type = opjit_cg_int(f, a->bits, f->piece->lanes), element = opjit_cg_int(f, a->bits, 1);
    const bool whole = f->cpu->gathers && f->cpu->gathers(f->target, a->bits, f->piece->lanes);
    LLVMValueRef from, offsets = whole || !masked ? short_offsets(f, a, &from) : NULL;
    if (!offsets)
        return NULL;
    LLVMValueRef mask = masked ? opjit_cg_narrow(f, f->piece->mask) : opjit_cg_number(f, 1, f->piece->lanes, 1);
    LLVMValueRef out = whole ? f->cpu->gather(f, type, from, offsets, mask) : NULL;
    if (out || masked)
        return out;
    out = LLVMGetPoison(type);
    for (uint32_t i = 0; i < f->piece->lanes; i++) {
        LLVMValueRef p = opjit_cg_offset(f, element, from, opjit_cg_resize(f, opjit_cg_lane(f, offsets, i), 64, true));
        out = opjit_cg_insert(f, out, opjit_cg_load_element(f, a, p, 1, a->bits / 8), i);
    }
    return out;
}

static LLVMValueRef gather(cg_func *f, const cg_access *a, bool affine, int64_t grow, bool masked)
{
    LLVMValueRef lanes = affine ? NULL : look_up(f, a);
    if (!affine && !lanes)
        lanes = gather_data(f, a, masked);
    if (lanes)
        return lanes;

    LLVMTypeRef element = opjit_cg_int(f, a->bits, 1);
    LLVMValueRef out = LLVMGetPoison(opjit_cg_int(f, a->bits, f->piece->lanes)),
                 base = opjit_cg_base_pointer(f, a->tensor), p0 = NULL, offsets = NULL;
    if (affine && !masked)
        p0 = opjit_cg_lane0(f, a);
    else
        offsets = lane_offsets(f, a, affine, grow, masked);
    for (uint32_t i = 0; i < f->piece->lanes; i++) {
        const int64_t constant = (int64_t)i * grow * f->loops[f->piece->vec].step;
        LLVMValueRef p = p0 ? opjit_cg_offset(f, element, p0, opjit_cg_number(f, 64, 1, (uint64_t)constant))
                            : opjit_cg_offset(f, element, base, opjit_cg_lane(f, offsets, i));
        out = opjit_cg_insert(f, out, opjit_cg_load_element(f, a, p, 1, a->bits / 8), i);
    }
    return out;
}

static void scatter(cg_func *f, const cg_access *a, bool affine, int64_t grow, LLVMValueRef value)
{
    LLVMTypeRef element = opjit_cg_int(f, a->bits, 1);
    LLVMValueRef base = opjit_cg_base_pointer(f, a->tensor), p0 = affine ? opjit_cg_lane0(f, a) : NULL;
    LLVMValueRef offsets = affine ? NULL : lane_offsets(f, a, false, 0, false);
    for (uint32_t i = 0; i < f->piece->lanes; i++) {
        const int64_t constant = (int64_t)i * grow * f->loops[f->piece->vec].step;
        LLVMValueRef p = p0 ? opjit_cg_offset(f, element, p0, opjit_cg_number(f, 64, 1, (uint64_t)constant))
                            : opjit_cg_offset(f, element, base, opjit_cg_lane(f, offsets, i));
        LLVMSetAlignment(LLVMBuildStore(f->b, opjit_cg_lane(f, value, i), p), a->bits / 8);
    }
}

static LLVMValueRef reverse(cg_func *f, LLVMValueRef v)
{
    const uint32_t lanes = opjit_cg_lanes(v);
    return LLVMBuildShuffleVector(f->b, v, LLVMGetPoison(LLVMTypeOf(v)), opjit_cg_iota(f, 32, lanes, lanes - 1, -1),
                                  "");
}

/* The address of the last lane, for a tensor that is walked backwards. */
static LLVMValueRef last_pointer(cg_func *f, const cg_access *a)
{
    return opjit_cg_offset(f, opjit_cg_int(f, a->bits, 1), opjit_cg_lane0(f, a),
                           opjit_cg_number(f, 64, 1, 1 - (uint64_t)f->piece->lanes));
}

/* By an intrinsic; NULL: there is none. */
static LLVMValueRef gather_where(cg_func *f, const cg_access *a, int64_t step)
{
    LLVMTypeRef type = opjit_cg_int(f, a->bits, f->piece->lanes);
    const int64_t most = INT32_MAX / (int64_t)f->piece->lanes;
    if (!opjit_cg_compares(f, a->bits, f->piece->lanes) || step > most || step < -most)
        return NULL;
    return f->cpu->gather(f, type, opjit_cg_lane0(f, a),
                          opjit_cg_kept(f, opjit_cg_iota(f, 32, f->piece->lanes, 0, step)),
                          opjit_cg_narrow(f, f->piece->mask));
}

/* --- masked ------------------------------------------------------------------------------------------------------- */

static void align_pointer(cg_func *f, LLVMValueRef call, uint32_t argument, uint32_t align)
{
    LLVMAddCallSiteAttribute(call, argument + 1, compat_attribute(f->llvm, "align", align));
}

static LLVMValueRef masked_load(cg_func *f, const cg_access *a, LLVMValueRef pointer, LLVMValueRef mask)
{
    LLVMValueRef zeros = LLVMConstNull(opjit_cg_int(f, a->bits, opjit_cg_lanes(mask)));
    return opjit_cg_load_where(f, pointer, mask, zeros, opjit_cg_element_alignment(f, a));
}

/* The only lane of a constant mask; UINT32_MAX: it has another number, or is none. */
static uint32_t only_lane(LLVMValueRef mask)
{
    uint32_t only = UINT32_MAX;
    for (uint32_t i = 0; i < opjit_cg_lanes(mask); i++) {
        LLVMValueRef lane = LLVMIsConstant(mask) ? LLVMGetAggregateElement(mask, i) : NULL;
        if (!lane || !LLVMIsAConstantInt(lane) || (only != UINT32_MAX && LLVMConstIntGetZExtValue(lane)))
            return UINT32_MAX;
        only = LLVMConstIntGetZExtValue(lane) ? i : only;
    }
    return only;
}

/* LLVM 22 makes one lane of a vector that was truncated a store of the element as it was before, which is larger.
 * Elements of 32 bits and more are left to it at quick, whose selection knows no lane. */
static void masked_store(cg_func *f, LLVMValueRef value, LLVMValueRef pointer, uint32_t align)
{
    LLVMValueRef mask = opjit_cg_narrow(f, f->piece->mask);
    const uint32_t bits = opjit_cg_bits(value);
    const uint32_t only = f->peak || bits < 32 ? only_lane(mask) : UINT32_MAX;
    if (only != UINT32_MAX) {
        LLVMValueRef element = LLVMBuildExtractElement(f->b, value, opjit_cg_number(f, 32, 1, only), "");
        LLVMValueRef at = opjit_cg_offset(f, LLVMTypeOf(element), pointer, opjit_cg_number(f, 64, 1, only));
        LLVMSetAlignment(LLVMBuildStore(f->b, element, at), align);
        return;
    }
    LLVMTypeRef types[2] = { LLVMTypeOf(value), f->type.ptr }, fn_type;
    LLVMValueRef fn = compat_intrinsic(&f->latest, f->module, f->llvm, "llvm.masked.store", types, 2, &fn_type);
    LLVMValueRef call = LLVMBuildCall2(f->b, fn_type, fn, (LLVMValueRef[]){ value, pointer, mask }, 3, "");
    align_pointer(f, call, 1, align);
}

void opjit_cg_prefetch(cg_func *f, LLVMValueRef pointer, bool to_write, uint32_t locality)
{
    LLVMValueRef args[] = { pointer, opjit_cg_number(f, 32, 1, to_write), opjit_cg_number(f, 32, 1, locality),
                            opjit_cg_number(f, 32, 1, 1) };
    opjit_cg_call(f, "llvm.prefetch", 4, args);
}

/* Prefetches lines for later rounds and rows: the processor by itself does not read ahead far enough where there is
 * arithmetic between the loads, least of all beside stores around the caches.  Tensors of a kernel for many sizes are
 * as large as they get, and mostly much smaller. */
static void fetch_ahead(cg_func *f, const cg_access *a, LLVMValueRef pointer)
{
    const int64_t offset = f->loops[f->piece->vec].offset * (int64_t)(a->bits / 8);
    const uint64_t bytes = f->ir->tensors[a->tensor].bytes / (f->ir->first_dim != 0 ? CG_PREFETCH_MOSTLY : 1);
    if (!f->loops[f->loop_count - 1].plan->prefetch || offset % IR_LINE != 0 ||
        f->ir->tensors[opjit_ir_root(f->ir, a->tensor)].role != IR_IN ||
        bytes < (f->streams ? CG_PREFETCH_STREAMED : CG_PREFETCH_REDUCED))
        return;
    opjit_cg_prefetch(f, opjit_cg_offset(f, f->type.i8, pointer, opjit_cg_number(f, 64, 1, CG_PREFETCH)), false, 3);
}

/* --- loads -------------------------------------------------------------------------------------------------------- */

/* All lanes read the same element. */
static LLVMValueRef load_one(cg_func *f, const cg_access *a, bool masked)
{
    if (!masked)
        return opjit_cg_load_element(f, a, opjit_cg_lane0(f, a), 1, opjit_cg_alignment(f, a));
    LLVMValueRef offset = opjit_cg_lane0_offset(f, a, 0);
    offset = LLVMBuildSelect(f->b, any_lane(f), offset, opjit_cg_number(f, 64, 1, 0), "");
    return opjit_cg_load_element(
        f, a, opjit_cg_offset(f, opjit_cg_int(f, a->bits, 1), opjit_cg_base_pointer(f, a->tensor), offset), 1,
        a->bits / 8);
}

/* Lane 0's address p, or that of as many zeros where no lane is evaluated: then nothing has to be masked. */
static LLVMValueRef sure_pointer(cg_func *f, const cg_access *a, int64_t step, LLVMValueRef p)
{
    char name[24];
    const unsigned bytes = f->piece->lanes * (unsigned)step * a->bits / 8;
    snprintf(name, sizeof(name), "zeros.%u", bytes);
    LLVMValueRef zeros = LLVMGetNamedGlobal(f->module, name);
    if (!zeros)
        zeros = opjit_cg_constant_data(f, name, LLVMConstNull(LLVMArrayType2(f->type.i8, bytes)));
    return LLVMBuildSelect(f->b, f->piece->sure, p, zeros, "");
}

/* Floats stay floats, because most are computed with, and moves don't change them. */
static LLVMValueRef load_vector(cg_func *f, ir_ref node, LLVMValueRef pointer, uint32_t align)
{
    const ir_type type = (ir_type)ir_at(f->ir, node)->type;
    LLVMTypeRef vector = type == IR_F32 || type == IR_F64
                             ? opjit_cg_float(f, type, f->piece->lanes)
                             : opjit_cg_int(f, 8 * opjit_ir_type_size(type), f->piece->lanes);
    LLVMValueRef v = LLVMBuildLoad2(f->b, vector, pointer, "");
    LLVMSetAlignment(v, align);
    return v;
}

static bool can_mask(const cg_func *f, const cg_access *a)
{
    return f->cpu->masked && f->cpu->masked(f->target, a->bits);
}

/* Every step-th element from p on, some lanes of which are not evaluated; NULL: these are no vectors here. */
static LLVMValueRef load_some(cg_func *f, ir_ref node, const cg_access *a, int64_t step, LLVMValueRef p, uint32_t align)
{
    const bool sure = f->piece->sure != NULL, tail = f->piece->tail;
    if (sure && !tail && !f->cpu->grid) {
        p = sure_pointer(f, a, step, p);
        return step == 1 ? load_vector(f, node, p, align)
                         : opjit_cg_load_picked(f, a, (uint32_t)step, p, f->piece->lanes);
    }
    if (can_mask(f, a) && tail && (sure || opjit_cg_is_rest(f))) {
        const uint32_t most = f->piece->first;
        p = sure ? sure_pointer(f, a, step, p) : p;
        return step == 1 ? opjit_cg_load_first(f, a, p, f->piece->lanes, most)
                         : opjit_cg_load_picked(f, a, (uint32_t)step, p, most);
    }
    if (!can_mask(f, a))
        return NULL;
    if (step == 1)
        return masked_load(f, a, p, opjit_cg_narrow(f, f->piece->mask));
    const bool is_end = tail && f->piece->mask == f->piece->iterations;
    return is_end ? opjit_cg_load_picked_rest(f, a, (uint32_t)step, p) : NULL;
}

static LLVMValueRef load(cg_func *f, ir_ref node)
{
    const cg_access a = opjit_cg_access_of(f, node);
    const bool varies = opjit_cg_varies(f, node), outside = f->info[node].outside;
    const bool masked = f->piece->mask && (outside || (f->piece->tail && varies));
    int64_t grow = 0;
    if (!varies)
        return load_one(f, &a, masked);
    const cg_loop *vec = &f->loops[f->piece->vec];
    const bool affine = opjit_cg_growth(f, &a, vec->var, &grow);
    if (affine && grow == 0)
        return opjit_cg_splat(f, load_one(f, &a, masked && outside), f->piece->lanes);
    const int64_t step = grow * vec->step;
    if (affine && step == 1 && !masked) {
        LLVMValueRef p = opjit_cg_lane0(f, &a);
        fetch_ahead(f, &a, p);
        return load_vector(f, node, p, opjit_cg_alignment(f, &a));
    }
    LLVMValueRef together = affine && step > 1 && step <= CG_MOST_STEP ? opjit_cg_load_together(f, node, masked) : NULL;
    if (together)
        return together;
    if (affine && step >= 1 && step <= CG_MOST_STEP && masked) {
        LLVMValueRef v = load_some(f, node, &a, step, opjit_cg_lane0(f, &a), opjit_cg_alignment(f, &a));
        if (v)
            return v;
    }
    LLVMValueRef some = affine && masked ? gather_where(f, &a, step) : NULL;
    if (some)
        return some;
    if (affine && step > 1 && step <= CG_MOST_STEP && masked && can_mask(f, &a))
        return opjit_cg_load_picked_where(f, &a, (uint32_t)step, opjit_cg_lane0(f, &a),
                                          opjit_cg_narrow(f, f->piece->mask));
    if (affine && step == -1 && !masked)
        return reverse(f, opjit_cg_load_element(f, &a, last_pointer(f, &a), f->piece->lanes, a.bits / 8));
    if (affine && step > 1 && step <= CG_MOST_STEP && !masked)
        return opjit_cg_load_picked(f, &a, (uint32_t)step, opjit_cg_lane0(f, &a), f->piece->lanes);
    LLVMValueRef zipped = affine || masked ? NULL : opjit_cg_load_zipped(f, &a);
    if (zipped)
        return zipped;
    return gather(f, &a, affine, grow, masked);
}

/* Under a condition, too, what needs no guard is loaded for all iterations: the value is remembered beyond the
 * condition's arm. */
static LLVMValueRef load_beyond_arm(cg_func *f, ir_ref node, LLVMValueRef (*load_it)(cg_func *f, ir_ref node))
{
    if (!f->piece->tail || f->info[node].guarded)
        return load_it(f, node);
    cg_piece own;
    cg_piece_begin(f, &own);
    f->piece->mask = f->piece->iterations;
    f->piece->sure = NULL;
    LLVMValueRef v = load_it(f, node);
    cg_piece_end(f);
    return v;
}

LLVMValueRef opjit_cg_load(cg_func *f, ir_ref node)
{
    return load_beyond_arm(f, node, load);
}

/* --- joined tensors ----------------------------------------------------------------------------------------------- */

/* Of the loads that a choice is between, one of those with the least alignment. */
static cg_access least_aligned(const cg_func *f, ir_ref node)
{
    if (ir_at(f->ir, node)->op == IR_LOAD)
        return opjit_cg_access_of(f, node);
    const cg_access a = least_aligned(f, ir_operand(f->ir, node, 1)), b = least_aligned(f, ir_operand(f->ir, node, 2));
    return opjit_cg_element_alignment(f, &b) < opjit_cg_element_alignment(f, &a) ? b : a;
}

/* Whether the arm is a load of elements side by side, or a choice between such loads. */
static bool is_row(cg_func *f, ir_ref arm, uint32_t loop)
{
    const ir_op op = (ir_op)ir_at(f->ir, arm)->op;
    int64_t grow = 0;
    if ((op != IR_LOAD && op != IR_SELECT) || !opjit_cg_recall(f, CG_POINTER, arm))
        return false;
    const cg_access a = opjit_cg_access_of(f, arm);
    return op == IR_SELECT || (opjit_cg_growth(f, &a, f->loops[loop].var, &grow) && grow == 1);
}

void opjit_cg_hoist_joined(cg_func *f, ir_ref node, uint32_t loop)
{
    const ir_ref yes = ir_operand(f->ir, node, 1), no = ir_operand(f->ir, node, 2);
    if (f->cpu->grid || f->piece->block.on || f->loops[loop].step != 1 || !is_row(f, yes, loop) ||
        !is_row(f, no, loop))
        return;
    LLVMValueRef c = opjit_cg_narrow(f, opjit_cg_emit(f, ir_operand(f->ir, node, 0)));
    opjit_cg_remember(f, CG_POINTER, node, f->scope_count - 1,
                      LLVMBuildSelect(f->b, c, opjit_cg_recall(f, CG_POINTER, yes),
                                      opjit_cg_recall(f, CG_POINTER, no), ""));
}

static LLVMValueRef load_chosen(cg_func *f, ir_ref node)
{
    const cg_access a = least_aligned(f, node);
    const bool masked = f->piece->mask && (f->info[node].guarded || f->piece->tail);
    if (masked && !can_mask(f, &a) && (!f->piece->sure || f->piece->tail))
        return NULL;
    LLVMValueRef p = opjit_cg_moved_pointer(f, &a, node);
    const uint32_t align = opjit_cg_element_alignment(f, &a);
    return masked ? load_some(f, node, &a, 1, p, align) : load_vector(f, node, p, align);
}

LLVMValueRef opjit_cg_load_joined(cg_func *f, ir_ref node)
{
    return opjit_cg_recall(f, CG_POINTER, node) ? load_beyond_arm(f, node, load_chosen) : NULL;
}

/* --- stores ------------------------------------------------------------------------------------------------------- */

void opjit_cg_store_vector(cg_func *f, LLVMValueRef value, LLVMValueRef pointer, uint32_t align, bool nontemporal)
{
    const uint32_t bytes = opjit_cg_lanes(value) * opjit_cg_bits(value) / 8;
    if (f->cpu->grid && bytes > 4 && align >= bytes)
        value = LLVMBuildBitCast(f->b, value, opjit_cg_int(f, 32, bytes / 4), "");
    LLVMValueRef store = LLVMBuildStore(f->b, value, pointer);
    LLVMSetAlignment(store, align);
    if (!nontemporal || !f->cpu->fence || bytes < 16 || align < bytes)
        return;
    LLVMMetadataRef one = LLVMValueAsMetadata(opjit_cg_number(f, 32, 1, 1));
    LLVMValueRef node = LLVMMetadataAsValue(f->llvm, LLVMMDNodeInContext2(f->llvm, &one, 1));
    LLVMSetMetadata(store, LLVMGetMDKindIDInContext(f->llvm, "nontemporal", 11), node);
    f->fence = true;
}

/* The value as quick stores it: a constant that fits an integer register becomes an integer, because fast selection
 * knows no vectors so short, nor bit casts of constants. */
static LLVMValueRef in_register(cg_func *f, LLVMValueRef value)
{
    const uint32_t size = opjit_cg_bits(value), lanes = opjit_cg_lanes(value);
    uint64_t all = 0;
    if (f->peak || f->cpu->grid || !LLVMIsConstant(value) || lanes * size > 64)
        return opjit_cg_kept(f, value);
    for (uint32_t i = 0; i < lanes; i++) {
        LLVMValueRef one = lanes > 1 ? LLVMGetAggregateElement(value, i) : value;
        if (!one || !LLVMIsAConstantInt(one))
            return LLVMConstBitCast(value, LLVMIntTypeInContext(f->llvm, lanes * size));
        all |= LLVMConstIntGetZExtValue(one) << (i * size);
    }
    return LLVMConstInt(LLVMIntTypeInContext(f->llvm, lanes * size), all, 0);
}

void opjit_cg_store(cg_func *f, ir_ref statement)
{
    const cg_access a = opjit_cg_access_of(f, statement);
    const cg_plan *plan = f->loops[f->loop_count - 1].plan;
    int64_t grow = 0;
    LLVMValueRef value = opjit_cg_emit_lanes(f, ir_operand(f->ir, statement, 0), f->piece->lanes);
    if (f->piece->lanes == 1) {
        LLVMValueRef pointer = opjit_cg_lane0(f, &a);
        LLVMBasicBlockRef after = opjit_cg_one_begin(f);
        LLVMSetAlignment(LLVMBuildStore(f->b, value, pointer), opjit_cg_alignment(f, &a));
        opjit_cg_one_end(f, after);
        return;
    }
    const cg_loop *vec = &f->loops[f->piece->vec];
    const bool affine = opjit_cg_growth(f, &a, vec->var, &grow);
    const int64_t step = grow * vec->step;
    if (f->piece->edge) {
        f->piece->edge->pointer = f->piece->edge->pointer ? f->piece->edge->pointer : opjit_cg_lane0(f, &a);
        f->piece->edge->values[f->piece->edge->count++] = opjit_cg_kept(f, value);
        return;
    }
    if (affine && step == 1 && f->piece->tail) {
        masked_store(f, value, opjit_cg_lane0(f, &a), a.bits / 8);
    } else if (affine && step == 1) {
        LLVMValueRef pointer = opjit_cg_lane0(f, &a);
        opjit_cg_store_vector(f, in_register(f, value), pointer,
                              f->piece->aligned ? f->piece->lanes * a.bits / 8 : opjit_cg_alignment(f, &a),
                              plan->is.nontemporal);
        opjit_cg_read_ahead(f, &a, pointer);
    } else if (affine && step == -1) {
        LLVMSetAlignment(LLVMBuildStore(f->b, reverse(f, value), last_pointer(f, &a)), a.bits / 8);
    } else {
        scatter(f, &a, affine, grow, value);
    }
}
