/* SPDX-License-Identifier: Apache-2.0 */
/* narrow_lanes.c - elements that are put into vectors, and lanes of conditions, with AVX2. */
#include "codegen/direct.h"

enum { LANE = 16, MOST = 32 /* bytes of a vector */ };

/* --- elements ----------------------------------------------------------------------------------------------------- */

/* Elements are put in one after the other, and nothing but the next insertion needs what is there before the last. */
static bool is_part(LLVMValueRef v)
{
    LLVMUseRef use = LLVMIsAInsertElementInst(v) && opjit_dx_used_once(v) ? LLVMGetFirstUse(v) : NULL;
    LLVMValueRef user = use ? LLVMGetUser(use) : NULL;
    return user && LLVMIsAInsertElementInst(user) && LLVMGetOperand(user, 0) == v &&
           LLVMGetInstructionParent(user) == LLVMGetInstructionParent(v) &&
           LLVMIsAConstantInt(LLVMGetOperand(user, 2));
}

/* Lane `lane` of 16 bytes; into 0: of none. */
static dx_reg put_one(dx_func *f, dx_type t, dx_reg into, LLVMValueRef element, uint32_t lane)
{
    static const dx_form_name inserts[] = { DX_F_INSERTB, DX_F_INSERTW, DX_F_INSERTD, DX_F_INSERTQ };
    const uint32_t size = dx_size(t.bits);
    const dx_reg e = opjit_dx_use(f, element);
    if (!into && lane == 0 && t.kind == DX_T_FLOAT)
        return e;
    const dx_reg dst = opjit_dx_new(f, DX_VEC);
    if (!into && lane == 0) {
        opjit_dx_vector(f, size == 3 ? DX_F_MOVQ : DX_F_MOVD, LANE, dst, 0, e);
        return dst;
    }
    if (!into) {
        into = opjit_dx_zero(f);
    }
    if (t.kind != DX_T_FLOAT)
        opjit_dx_vector(f, inserts[size], LANE, dst, into, e)->imm = lane;
    else if (size == 2)
        opjit_dx_vector(f, DX_F_INSERTPS, LANE, dst, into, e)->imm = lane << 4;
    else if (lane == 1)
        opjit_dx_vector(f, DX_F_UNPACKLQ, LANE, dst, into, e);
    else
        opjit_dx_vector(f, DX_F_PBLENDD, LANE, dst, into, e)->imm = 3;
    return dst;
}

void opjit_dx_narrow_insert(dx_func *f, LLVMValueRef v, dx_type t)
{
    LLVMValueRef elements[MOST] = { NULL }, base = v;
    const uint32_t each = 8 * LANE / t.bits;
    bool some[2] = { false, false };
    if (is_part(v))
        return;
    while (base == v || is_part(base)) {
        const uint64_t lane = LLVMConstIntGetZExtValue(LLVMGetOperand(base, 2));
        if (lane >= t.lanes) {
            opjit_dx_refuse(f, "insertion");
            return;
        }
        if (!elements[lane])
            elements[lane] = LLVMGetOperand(base, 1);
        some[lane / each] = true;
        base = LLVMGetOperand(base, 0);
    }
    const dx_reg all = LLVMIsConstant(base) && LLVMIsUndef(base) ? 0 : opjit_dx_use(f, base); /* poison is undef, too */
    dx_reg part[2] = { all, 0 };
    if (some[1] && all)
        part[1] = opjit_dx_high_half(f, all);
    for (uint32_t i = 0; i < t.lanes && !f->refused; i++)
        if (elements[i])
            part[i / each] = put_one(f, t, part[i / each], elements[i], i % each);
    dx_reg made = part[0];
    if (some[1]) {
        if (!made) {
            made = opjit_dx_zero(f);
        }
        const dx_reg both = opjit_dx_new(f, DX_VEC);
        opjit_dx_vector(f, DX_F_VPUTHIGH128, 2 * LANE, both, made, part[1])->imm = 1;
        made = both;
    } else if (dx_bytes(t) > LANE && all) {
        const dx_reg both = opjit_dx_new(f, DX_VEC);
        opjit_dx_vector(f, DX_F_PBLENDD, 2 * LANE, both, all, made)->imm = 0x0f;
        made = both;
    }
    dx_value *value = opjit_dx_enter(f, v);
    value->how = DX_V_REG;
    value->reg = made;
}

/* --- masks -------------------------------------------------------------------------------------------------------- */

static bool is_first_of_none(LLVMValueRef v)
{
    LLVMValueRef into = LLVMIsAInsertElementInst(v) ? LLVMGetOperand(v, 0) : NULL;
    LLVMValueRef lane = into ? LLVMGetOperand(v, 2) : NULL;
    return into && LLVMIsConstant(into) && LLVMIsUndef(into) && LLVMIsAConstantInt(lane) &&
           LLVMConstIntGetZExtValue(lane) == 0;
}

static dx_reg splat(dx_func *f, dx_reg x, uint32_t lanes, uint32_t bits)
{
    static const dx_form_name splats[] = { DX_F_SPLATB, DX_F_SPLATW, DX_F_SPLATD, DX_F_SPLATQ };
    const dx_reg mask = opjit_dx_mask_new(f, bits);
    const uint32_t bytes = lanes * bits / 8;
    f->vectors = f->vectors || bytes > LANE;
    opjit_dx_vector(f, splats[dx_size(bits)], bytes < LANE ? LANE : bytes, mask, 0, x);
    return mask;
}

/* A condition in a lane of no others is in all of them. */
void opjit_dx_narrow_insert_mask(dx_func *f, LLVMValueRef v, dx_type t)
{
    const uint32_t bits = opjit_dx_mask_bits(f, t.lanes);
    if (!is_first_of_none(v)) {
        opjit_dx_refuse(f, "insertion into a mask");
        return;
    }
    const dx_reg one = opjit_dx_mask_as(f, LLVMGetOperand(v, 1), bits < 32 ? 32 : bits);
    opjit_dx_name(f, v, splat(f, one, t.lanes, bits));
}

void opjit_dx_narrow_shuffle_masks(dx_func *f, LLVMValueRef v, dx_type t, dx_type from, const int32_t *at)
{
    LLVMValueRef x = LLVMGetOperand(v, 0), y = LLVMGetOperand(v, 1);
    const uint32_t bits = opjit_dx_mask_bits(f, t.lanes > from.lanes ? t.lanes : from.lanes);
    bool first = true, second = false;
    for (uint32_t i = 0; i < t.lanes; i++) {
        first = first && at[i] <= 0;
        second = second || at[i] >= (int32_t)from.lanes;
    }
    if (bits < 8 || from.lanes < 2 || (from.lanes & (from.lanes - 1)) != 0) {
        opjit_dx_refuse(f, "shuffle of masks");
        return;
    }
    if (first && t.lanes == from.lanes && is_first_of_none(x)) {
        opjit_dx_name(f, v, opjit_dx_mask_as(f, x, bits));
        return;
    }
    const dx_reg a = opjit_dx_mask_as(f, x, bits);
    if (first) {
        opjit_dx_name(f, v, splat(f, a, t.lanes, bits));
        return;
    }
    const dx_reg b = second ? opjit_dx_mask_as(f, y, bits) : 0, mask = opjit_dx_mask_new(f, bits);
    const dx_type to = { DX_T_INT, (uint8_t)bits, t.lanes }, of = { DX_T_INT, (uint8_t)bits, from.lanes };
    opjit_dx_copy(f, mask, opjit_dx_narrow_shuffle(f, to, a, b, of, at));
    opjit_dx_name(f, v, mask);
}

/* A lane of a mask as a condition. */
dx_reg opjit_dx_narrow_lane(dx_func *f, LLVMValueRef v, uint32_t lane)
{
    static const dx_form_name extracts[] = { DX_F_EXTRACTB, DX_F_EXTRACTW, DX_F_EXTRACTD, DX_F_EXTRACTQ };
    const uint32_t lanes = opjit_dx_type(f, LLVMTypeOf(v)).lanes;
    const uint32_t bits = opjit_dx_mask_bits(f, lanes), each = 8 * LANE / (bits < 8 ? 8 : bits);
    if (f->wide || bits < 8) {
        opjit_dx_refuse(f, "lane of a mask");
        return 0;
    }
    dx_reg mask = opjit_dx_mask_as(f, v, bits);
    if (lane >= each)
        mask = opjit_dx_high_half(f, mask);
    const dx_reg all = opjit_dx_new(f, DX_INT), dst = opjit_dx_new(f, DX_INT);
    opjit_dx_vector(f, extracts[dx_size(bits)], LANE, all, 0, mask)->imm = lane % each;
    opjit_dx_lowest_bit(f, dst, all);
    return dst;
}
