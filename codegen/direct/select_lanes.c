/* SPDX-License-Identifier: Apache-2.0 */
/* select_lanes.c - shuffles, and elements of vectors. */
#include "codegen/direct.h"

#include <string.h>

enum { MOST_LANES = 64 };

/* --- shuffles ----------------------------------------------------------------------------------------------------- */

/* What a shuffle takes: places below the lanes of x are x's, those from there on are y's; -1: any. */
typedef struct places {
    int32_t at[MOST_LANES];
    uint32_t count, lanes;
    bool x, y;
} places;

static void read_places(dx_func *f, LLVMValueRef v, places *p)
{
    p->count = LLVMGetNumMaskElements(v);
    p->lanes = opjit_dx_type(f, LLVMTypeOf(LLVMGetOperand(v, 0))).lanes;
    p->x = p->y = false;
    if (p->count > MOST_LANES || p->lanes > MOST_LANES) {
        opjit_dx_refuse(f, "wide shuffle");
        return;
    }
    for (uint32_t i = 0; i < p->count; i++) {
        p->at[i] = LLVMGetMaskValue(v, i);
        p->x = p->x || (p->at[i] >= 0 && p->at[i] < (int32_t)p->lanes);
        p->y = p->y || p->at[i] >= (int32_t)p->lanes;
    }
}

/* Whether lane i is place first + i. */
static bool is_run(const places *p, uint32_t first, uint32_t from, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (p->at[from + i] >= 0 && p->at[from + i] != (int32_t)(first + i))
            return false;
    return true;
}

/* A vector with these places as elements of `bytes` each, for a permutation of vectors of `lanes`. */
static dx_reg put_places(dx_func *f, const places *p, uint32_t size, uint32_t lanes, uint32_t width)
{
    uint8_t bytes[MOST_LANES] = { 0 };
    for (uint32_t i = 0; i < p->count; i++) {
        const uint32_t place = p->at[i] < 0 ? 0 : (uint32_t)p->at[i];
        const uint64_t index = place < p->lanes ? place : place - p->lanes + lanes;
        memcpy(bytes + (i << size), &index, 1u << size);
    }
    const dx_mem mem = { .where = DX_AT_DATA, .offset = opjit_dx_pool(f->m, bytes, width) };
    const dx_reg reg = opjit_dx_new(f, DX_VEC);
    const uint32_t at = opjit_dx_mem(f, mem);
    opjit_dx_vector(f, DX_F_LOAD, width, reg, 0, 0)->mem = at;
    return reg;
}

static dx_reg shuffle_narrow(dx_func *f, LLVMValueRef v, const places *p, dx_type t, dx_type from)
{
    LLVMValueRef x = LLVMGetOperand(v, 0), y = LLVMGetOperand(v, 1);
    int32_t at[MOST_LANES];
    const int32_t first = p->x ? 0 : (int32_t)p->lanes;
    for (uint32_t i = 0; i < p->count; i++)
        at[i] = p->at[i] < 0 ? -1 : p->at[i] - first;
    const dx_reg a = opjit_dx_use(f, p->x ? x : y), b = p->x && p->y ? opjit_dx_use(f, y) : 0;
    return opjit_dx_narrow_shuffle(f, t, a, b, from, at);
}

static void permute(dx_func *f, LLVMValueRef v, const places *p, dx_type t, dx_type from)
{
    static const dx_form_name one[] = { DX_F_PERMB, DX_F_PERMW, DX_F_PERMD, DX_F_PERMQ };
    static const dx_form_name two[] = { DX_F_PERM2B, DX_F_PERM2W, DX_F_PERM2D, DX_F_PERM2Q };
    const uint32_t size = dx_size(t.bits);
    uint32_t width = dx_bytes(t) > dx_bytes(from) ? dx_width(t) : dx_width(from);
    if (width < 32 && !(p->x && p->y))
        width = 32; /* the least of permutations of one vector */
    const uint32_t lanes = width >> size;
    LLVMValueRef x = LLVMGetOperand(v, 0), y = LLVMGetOperand(v, 1);
    if (!f->wide) {
        opjit_dx_name(f, v, shuffle_narrow(f, v, p, t, from));
        return;
    }
    if (size == 0 && !rt_target_has(f->target, RT_X86_AVX512VBMI)) {
        opjit_dx_refuse(f, "shuffle");
        return;
    }
    f->vectors = true;
    const dx_reg index = put_places(f, p, size, p->x && p->y ? lanes : 0, width);
    if (!(p->x && p->y)) {
        const dx_reg a = opjit_dx_use(f, p->y ? y : x);
        opjit_dx_vector(f, one[size], width, opjit_dx_result(f, v), index, a);
        return;
    }
    const dx_reg a = opjit_dx_use(f, x), b = opjit_dx_use(f, y), dst = opjit_dx_result(f, v);
    opjit_dx_copy(f, dst, index);
    opjit_dx_vector(f, two[size], width, dst, a, b)->tied = true;
}

static void splat(dx_func *f, LLVMValueRef v, dx_type t)
{
    static const dx_form_name forms[] = { DX_F_SPLATB, DX_F_SPLATW, DX_F_SPLATD, DX_F_SPLATQ };
    const dx_reg a = opjit_dx_use(f, LLVMGetOperand(v, 0));
    opjit_dx_vector(f, forms[dx_size(t.bits)], dx_width(t), opjit_dx_result(f, v), 0, a);
}

/* The upper half of a vector of 32 or 64 bytes. */
static void upper_half(dx_func *f, LLVMValueRef v, LLVMValueRef x, dx_type from)
{
    const dx_reg a = opjit_dx_use(f, x);
    const bool wide = dx_bytes(from) == 64;
    const dx_form_name form = wide ? DX_F_HIGH256 : f->wide ? DX_F_HIGH128 : DX_F_VHIGH128;
    opjit_dx_vector(f, form, wide ? 64 : 32, opjit_dx_result(f, v), 0, a)->imm = 1;
}

/* The upper half is read from memory if it was loaded just before, and for this alone. */
static void join(dx_func *f, LLVMValueRef v, dx_type t)
{
    const dx_reg a = opjit_dx_use(f, LLVMGetOperand(v, 0)), b = opjit_dx_use(f, LLVMGetOperand(v, 1));
    const bool wide = dx_bytes(t) == 64;
    const dx_op *before = f->op_count > 0 ? &f->ops[f->op_count - 1] : &f->no_op;
    const bool loaded = before->kind == DX_VECTOR && before->form == DX_F_LOAD && before->dst == b && !before->mask &&
                        opjit_dx_used_once(LLVMGetOperand(v, 1));
    const uint32_t mem = loaded ? before->mem : 0;
    const dx_form_name form = wide ? DX_F_PUTHIGH256 : f->wide ? DX_F_PUTHIGH128 : DX_F_VPUTHIGH128;
    dx_op *o = opjit_dx_vector(f, form, wide ? 64 : 32, opjit_dx_result(f, v), a, loaded ? 0 : b);
    o->imm = 1;
    o->mem = mem;
}

/* The lower or upper halves of each 16 bytes of both, in turns. */
static bool is_unpack(const places *p, uint32_t each, bool high)
{
    for (uint32_t i = 0; i < p->count; i++) {
        const uint32_t place = i / each * each + (high ? each / 2 : 0) + i % each / 2 + (i % 2 ? p->lanes : 0);
        if (p->at[i] >= 0 && p->at[i] != (int32_t)place)
            return false;
    }
    return p->count == p->lanes && p->count >= each;
}

static void unpack(dx_func *f, LLVMValueRef v, dx_type t, bool high)
{
    static const dx_form_name forms[2][4] = { { DX_F_UNPACKLB, DX_F_UNPACKLW, DX_F_UNPACKLD, DX_F_UNPACKLQ },
                                              { DX_F_UNPACKHB, DX_F_UNPACKHW, DX_F_UNPACKHD, DX_F_UNPACKHQ } };
    const dx_reg a = opjit_dx_use(f, LLVMGetOperand(v, 0)), b = opjit_dx_use(f, LLVMGetOperand(v, 1));
    opjit_dx_vector(f, forms[high][dx_size(t.bits)], dx_width(t), opjit_dx_result(f, v), a, b);
}

/* Lane 0 of a vector without others. */
static bool is_first(LLVMValueRef v)
{
    return LLVMIsAInsertElementInst(v) && LLVMIsUndef(LLVMGetOperand(v, 0)) &&
           LLVMIsAConstantInt(LLVMGetOperand(v, 2)) && LLVMConstIntGetZExtValue(LLVMGetOperand(v, 2)) == 0;
}

/* A condition in all lanes of a mask of AVX-512, where one was asked for: the others may be anything. */
static void insert_condition(dx_func *f, LLVMValueRef v, dx_type t)
{
    const dx_reg c = opjit_dx_use(f, LLVMGetOperand(v, 1)), all = opjit_dx_new(f, DX_INT), dst = opjit_dx_result(f, v);
    const bool wide = t.lanes > 32;
    if (!is_first(v)) {
        opjit_dx_refuse(f, "insertion into a mask");
        return;
    }
    dx_op *o = opjit_dx_op(f, DX_MULTIPLY);
    o->dst = all;
    o->b = c;
    o->bytes = wide ? 8 : 4;
    o->imm = -1;
    opjit_dx_vector(f, wide ? DX_F_KMOVQ : DX_F_KMOVD, 16, dst, 0, all);
}

static void shuffle(dx_func *f, LLVMValueRef v)
{
    const dx_type t = opjit_dx_type(f, LLVMTypeOf(v)), from = opjit_dx_type(f, LLVMTypeOf(LLVMGetOperand(v, 0)));
    places p;
    read_places(f, v, &p);
    if (!f->wide && !f->refused && t.bits == 1 && opjit_dx_class(f, t) == DX_MASK) {
        opjit_dx_narrow_shuffle_masks(f, v, t, from, p.at);
        return;
    }
    bool zero = !f->refused && !p.y;
    for (uint32_t i = 0; zero && i < p.count; i++)
        zero = p.at[i] <= 0;
    if (zero && opjit_dx_class(f, t) == DX_MASK && t.lanes <= from.lanes && is_first(LLVMGetOperand(v, 0))) {
        opjit_dx_name(f, v, opjit_dx_use(f, LLVMGetOperand(v, 0)));
        return;
    }
    if (!f->refused && !p.y && p.at[0] >= 0 && opjit_dx_class(f, t) == DX_MASK &&
        is_run(&p, (uint32_t)p.at[0], 0, p.count)) { /* a part of a mask */
        const dx_reg mask = opjit_dx_mask(f, LLVMGetOperand(v, 0));
        opjit_dx_vector(f, DX_F_KSHIFTR, 16, opjit_dx_result(f, v), 0, mask)->imm = p.at[0];
        return;
    }
    if (f->refused || opjit_dx_class(f, t) != DX_VEC || opjit_dx_class(f, from) != DX_VEC) {
        opjit_dx_refuse(f, "shuffle of masks");
        return;
    }
    const uint32_t bytes = dx_bytes(t);
    if (zero && bytes >= 16)
        splat(f, v, t);
    else if (!p.y && is_run(&p, 0, 0, p.count)) /* its begin, or more than it, where the rest may be anything */
        opjit_dx_name(f, v, opjit_dx_use(f, LLVMGetOperand(v, 0)));
    else if (!p.y && 2 * p.count == p.lanes && bytes >= 16 && is_run(&p, p.count, 0, p.count))
        upper_half(f, v, LLVMGetOperand(v, 0), from);
    else if (p.count == 2 * p.lanes && bytes >= 32 && is_run(&p, 0, 0, p.count))
        join(f, v, t);
    else if (bytes >= 16 && is_unpack(&p, 128 / t.bits, false))
        unpack(f, v, t, false);
    else if (bytes >= 16 && is_unpack(&p, 128 / t.bits, true))
        unpack(f, v, t, true);
    else
        permute(f, v, &p, t, from);
}

/* --- elements ----------------------------------------------------------------------------------------------------- */

static void insert(dx_func *f, LLVMValueRef v)
{
    static const dx_form_name spread[] = { DX_F_SPREADB, DX_F_SPREADW, DX_F_SPREADD, DX_F_SPREADQ };
    static const dx_form_name splats[] = { DX_FORMS, DX_FORMS, DX_F_SPLATD, DX_F_SPLATQ };
    const dx_type t = opjit_dx_type(f, LLVMTypeOf(v));
    LLVMValueRef into = LLVMGetOperand(v, 0), element = LLVMGetOperand(v, 1);
    int64_t lane;
    if (!f->wide && opjit_dx_class(f, t) == DX_MASK) {
        opjit_dx_narrow_insert_mask(f, v, t);
        return;
    }
    if (opjit_dx_class(f, t) == DX_MASK) {
        insert_condition(f, v, t);
        return;
    }
    if (opjit_dx_class(f, t) != DX_VEC || !opjit_dx_constant(f, LLVMGetOperand(v, 2), &lane)) {
        opjit_dx_refuse(f, "insertion");
        return;
    }
    const uint32_t size = dx_size(t.bits);
    if (!f->wide) {
        opjit_dx_narrow_insert(f, v, t);
        return;
    }
    const dx_reg e = opjit_dx_use(f, element);
    if (LLVMIsConstant(into) && LLVMIsUndef(into) && lane == 0) { /* poison is undef, too */
        if (t.kind == DX_T_FLOAT)
            opjit_dx_name(f, v, e);
        else
            opjit_dx_vector(f, size == 3 ? DX_F_MOVQ : DX_F_MOVD, 16, opjit_dx_result(f, v), 0, e);
        return;
    }
    const dx_reg mask = opjit_dx_mask_number(f, (uint64_t)1 << lane, t.lanes);
    const dx_reg a = opjit_dx_use(f, into), dst = opjit_dx_result(f, v);
    opjit_dx_copy(f, dst, a);
    dx_op *o = opjit_dx_vector(f, t.kind == DX_T_FLOAT ? splats[size] : spread[size], dx_width(t), dst, 0, e);
    o->mask = mask;
    o->tied = true;
}

/* A lane of a mask of AVX-512 as a condition. */
static dx_reg lane_of_mask(dx_func *f, LLVMValueRef v, uint32_t lane, dx_type t)
{
    enum { RIGHT = 5 };
    const dx_reg mask = opjit_dx_mask(f, v), all = opjit_dx_new(f, DX_INT);
    const dx_reg moved = opjit_dx_new(f, DX_INT), dst = opjit_dx_new(f, DX_INT);
    const bool wide = t.lanes > 32;
    opjit_dx_vector(f, wide ? DX_F_FROMKQ : DX_F_FROMKD, 16, all, 0, mask);
    dx_op *o = opjit_dx_two_address(f, DX_SHIFT, moved, all, wide ? 8 : 4);
    o->code = RIGHT;
    o->imm = lane;
    opjit_dx_lowest_bit(f, dst, moved);
    return dst;
}

dx_reg opjit_dx_lane(dx_func *f, LLVMValueRef v, uint32_t lane)
{
    static const dx_form_name extracts[] = { DX_F_EXTRACTB, DX_F_EXTRACTW, DX_F_EXTRACTD, DX_F_EXTRACTQ };
    dx_type t = opjit_dx_type(f, LLVMTypeOf(v));
    const uint32_t size = dx_size(t.bits);
    const dx_value *value = LLVMIsConstant(v) ? NULL : opjit_dx_find(f, v);
    const bool list = value && value->how == DX_V_LIST && opjit_dx_is_wide(f, t); /* of two halves */
    const uint32_t half = list ? lane / (t.lanes / 2u) : 0;
    if (list) {
        t.lanes /= 2;
        lane %= t.lanes;
    }
    if (!f->wide && opjit_dx_class(f, t) == DX_MASK)
        return opjit_dx_narrow_lane(f, v, lane);
    if (opjit_dx_class(f, t) == DX_MASK && lane < t.lanes)
        return lane_of_mask(f, v, lane, t);
    if (opjit_dx_class(f, t) != DX_VEC || lane >= t.lanes) {
        opjit_dx_refuse(f, "extraction");
        return 0;
    }
    dx_reg a = list ? value->reg + half : opjit_dx_use(f, v);
    const uint32_t part = lane << size >> 4, within = lane & ((16u >> size) - 1);
    if (part > 0) {
        const dx_reg high = opjit_dx_new(f, DX_VEC);
        opjit_dx_vector(f, f->wide ? DX_F_HIGH128 : DX_F_VHIGH128, dx_width(t), high, 0, a)->imm = part;
        a = high;
    }
    if (t.kind == DX_T_FLOAT) {
        if (within == 0)
            return a;
        const dx_reg moved = opjit_dx_new(f, DX_VEC); /* to lane 0 */
        opjit_dx_vector(f, DX_F_LANES, 16, moved, 0, a)->imm = size == 2 ? within : 0xe;
        return moved;
    }
    const dx_reg dst = opjit_dx_new(f, DX_INT);
    if (within == 0)
        opjit_dx_vector(f, size == 3 ? DX_F_FROMQ : DX_F_FROMD, 16, dst, 0, a);
    else
        opjit_dx_vector(f, extracts[size], 16, dst, 0, a)->imm = within;
    return dst;
}

static void extract(dx_func *f, LLVMValueRef v)
{
    LLVMValueRef x = LLVMGetOperand(v, 0);
    int64_t lane;
    if (!opjit_dx_constant(f, LLVMGetOperand(v, 1), &lane) || lane < 0) {
        opjit_dx_refuse(f, "extraction");
        return;
    }
    const dx_reg e = LLVMIsAInstruction(x) && opjit_dx_is_late(f, x) ? opjit_dx_late_lane(f, x, (uint32_t)lane)
                                                                     : opjit_dx_lane(f, x, (uint32_t)lane);
    opjit_dx_name(f, v, e);
}

static void extract_value(dx_func *f, LLVMValueRef v)
{
    const dx_value *list = opjit_dx_find(f, LLVMGetOperand(v, 0));
    if (!list || list->how != DX_V_LIST || LLVMGetNumIndices(v) != 1) {
        opjit_dx_refuse(f, "extraction of a value");
        return;
    }
    opjit_dx_name(f, v, list->reg + LLVMGetIndices(v)[0]);
}

void opjit_dx_select_lanes(dx_func *f, LLVMValueRef v, LLVMOpcode op)
{
    if (op == LLVMShuffleVector)
        shuffle(f, v);
    else if (op == LLVMInsertElement)
        insert(f, v);
    else if (op == LLVMExtractElement)
        extract(f, v);
    else
        extract_value(f, v);
}
