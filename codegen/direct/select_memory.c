/* SPDX-License-Identifier: Apache-2.0 */
/* select_memory.c - loads, stores, addresses, and the stack's variables.  A variable that is only read and written
 * whole is a register. */
#include "codegen/direct.h"

#include <string.h>

enum { MOST_SLOTS = 64, MOST_FRAME = 1 << 20 };

static bool is_streamed(dx_func *f, LLVMValueRef v)
{
    return LLVMHasMetadata(v) &&
           LLVMGetMetadata(v, LLVMGetMDKindIDInContext(LLVMGetModuleContext(LLVMGetGlobalParent(f->fn)), "nontemporal",
                                                       11)) != NULL;
}

/* --- variables ---------------------------------------------------------------------------------------------------- */

/* Whether all uses are loads and stores of one scalar type. */
static bool is_variable(dx_func *f, LLVMValueRef v, LLVMTypeRef type)
{
    const dx_type t = opjit_dx_type(f, type);
    if (t.kind == DX_T_OTHER || t.kind == DX_T_VOID || (t.kind == DX_T_INT && t.bits == 1))
        return false;
    for (LLVMUseRef u = LLVMGetFirstUse(v); u; u = LLVMGetNextUse(u)) {
        LLVMValueRef user = LLVMGetUser(u);
        const LLVMOpcode op = LLVMGetInstructionOpcode(user);
        if (LLVMGetInstructionOpcode(user) == LLVMLoad && LLVMTypeOf(user) == type)
            continue;
        if (op == LLVMStore && LLVMGetOperand(user, 1) == v && LLVMGetOperand(user, 0) != v &&
            LLVMTypeOf(LLVMGetOperand(user, 0)) == type)
            continue;
        return false;
    }
    return true;
}

static uint32_t size_of_variable(dx_func *f, LLVMTypeRef type)
{
    if (LLVMGetTypeKind(type) == LLVMArrayTypeKind) {
        const uint64_t count = LLVMGetArrayLength2(type);
        const uint64_t size = size_of_variable(f, LLVMGetElementType(type));
        if (count * size <= MOST_FRAME)
            return (uint32_t)(count * size);
        opjit_dx_refuse(f, "large variable");
        return 0;
    }
    const dx_type t = opjit_dx_type(f, type);
    if (t.kind == DX_T_OTHER || t.kind == DX_T_VOID || t.bits < 8)
        opjit_dx_refuse(f, "type of a variable");
    return dx_bytes(t);
}

static void variable(dx_func *f, LLVMValueRef v)
{
    LLVMTypeRef type = LLVMGetAllocatedType(v);
    LLVMValueRef count = LLVMGetOperand(v, 0);
    if (!LLVMIsAConstantInt(count) || LLVMConstIntGetZExtValue(count) != 1)
        opjit_dx_refuse(f, "variable of a variable size");
    if (is_variable(f, v, type) && f->slot_count < MOST_SLOTS) {
        const dx_reg reg = opjit_dx_new(f, opjit_dx_class(f, opjit_dx_type(f, type)));
        dx_value *value = opjit_dx_enter(f, v);
        value->how = DX_V_SLOT;
        value->reg = reg;
        f->slots[f->slot_count++] = reg;
        return;
    }
    const uint32_t size = size_of_variable(f, type), align = LLVMGetAlignment(v) > 8 ? LLVMGetAlignment(v) : 8;
    if (align > 64 || f->frame > MOST_FRAME) {
        opjit_dx_refuse(f, "frame");
        return;
    }
    f->frame = (f->frame + align - 1) / align * align;
    dx_value *value = opjit_dx_enter(f, v);
    value->how = DX_V_PLACE;
    value->place = (dx_mem){ .where = DX_AT_FRAME, .offset = f->frame };
    f->frame += size;
}

static dx_reg slot_of(dx_func *f, LLVMValueRef pointer)
{
    const dx_value *value = LLVMIsConstant(pointer) ? NULL : opjit_dx_find(f, pointer);
    return value && value->how == DX_V_SLOT ? value->reg : 0;
}

/* --- loads and stores --------------------------------------------------------------------------------------------- */

static void load(dx_func *f, LLVMValueRef v)
{
    LLVMValueRef pointer = LLVMGetOperand(v, 0);
    const dx_type t = opjit_dx_type(f, LLVMTypeOf(v));
    const dx_reg slot = slot_of(f, pointer);
    if (slot) {
        opjit_dx_copy(f, opjit_dx_result(f, v), slot);
        return;
    }
    const dx_class kind = opjit_dx_class(f, t);
    const dx_mem place = opjit_dx_place(f, pointer);
    const uint32_t bytes = dx_bytes(t);
    if (kind == DX_VEC && bytes >= 16 && place.where == DX_AT_DATA && !place.index) { /* loaded where it is needed */
        dx_value *value = opjit_dx_enter(f, v);
        value->how = DX_V_CONSTANT;
        value->place = place;
        return;
    }
    const uint32_t mem = opjit_dx_mem(f, place);
    opjit_dx_put_now(f);
    if (kind == DX_MASK || t.bits < 8) {
        opjit_dx_refuse(f, "load of bits");
    } else if (kind == DX_INT) {
        const dx_reg dst = opjit_dx_result(f, v);
        dx_op *o = opjit_dx_op(f, DX_LOAD);
        o->dst = dst;
        o->mem = mem;
        o->bytes = (uint8_t)bytes;
    } else if (bytes == 2) {
        const dx_reg number = opjit_dx_new(f, DX_INT);
        dx_op *o = opjit_dx_op(f, DX_LOAD);
        o->dst = number;
        o->mem = mem;
        o->bytes = 2;
        opjit_dx_vector(f, DX_F_MOVD, 16, opjit_dx_result(f, v), 0, number);
    } else {
        const dx_reg dst = opjit_dx_result(f, v);
        dx_op *o = opjit_dx_vector(f,
                                   bytes == 4   ? DX_F_LOADSS
                                   : bytes == 8 ? DX_F_LOADSD
                                                : DX_F_LOAD,
                                   dx_width(t), dst, 0, 0);
        o->mem = mem;
        if (bytes < 4)
            opjit_dx_refuse(f, "load of a short vector");
    }
}

static void store(dx_func *f, LLVMValueRef v)
{
    LLVMValueRef value = LLVMGetOperand(v, 0), pointer = LLVMGetOperand(v, 1);
    const dx_type t = opjit_dx_type(f, LLVMTypeOf(value));
    const dx_reg slot = slot_of(f, pointer);
    int64_t number = 0;
    if (slot) {
        opjit_dx_copy(f, slot, opjit_dx_use(f, value));
        return;
    }
    const dx_class kind = opjit_dx_class(f, t);
    const uint32_t bytes = dx_bytes(t);
    const bool streamed = is_streamed(f, v);
    if (kind == DX_MASK || t.bits < 8) {
        opjit_dx_refuse(f, "store of bits");
    } else if (kind == DX_INT) {
        opjit_dx_put_now(f);
        const bool constant = opjit_dx_constant(f, value, &number) && number >= INT32_MIN && number <= INT32_MAX;
        const dx_reg a = constant ? 0 : opjit_dx_use(f, value);
        const uint32_t mem = opjit_dx_mem(f, opjit_dx_place(f, pointer));
        dx_op *o = opjit_dx_op(f, DX_STORE);
        o->a = a;
        o->imm = number;
        o->mem = mem;
        o->bytes = (uint8_t)bytes;
        if (streamed)
            opjit_dx_refuse(f, "streamed integer");
    } else if (bytes == 2 && !streamed) {
        opjit_dx_put_now(f);
        const dx_reg a = opjit_dx_use(f, value), part = opjit_dx_new(f, DX_INT);
        const uint32_t mem = opjit_dx_mem(f, opjit_dx_place(f, pointer));
        opjit_dx_vector(f, DX_F_FROMD, 16, part, 0, a);
        dx_op *o = opjit_dx_op(f, DX_STORE);
        o->a = part;
        o->mem = mem;
        o->bytes = 2;
    } else if (streamed || !opjit_dx_put_later(f, value, opjit_dx_place(f, pointer))) {
        opjit_dx_put_now(f);
        const dx_reg a = opjit_dx_use(f, value);
        const uint32_t mem = opjit_dx_mem(f, opjit_dx_place(f, pointer));
        dx_op *o = opjit_dx_op(f, DX_PUT);
        o->form = bytes == 4 ? DX_F_STORESS : bytes == 8 ? DX_F_STORESD : streamed ? DX_F_STREAM : DX_F_STORE;
        o->bytes = (uint8_t)dx_width(t);
        o->a = a;
        o->mem = mem;
        if (bytes < 4 || (streamed && bytes < 16))
            opjit_dx_refuse(f, "store of a short vector");
    }
}

void opjit_dx_select_memory(dx_func *f, LLVMValueRef v, LLVMOpcode op)
{
    if (op == LLVMLoad)
        load(f, v);
    else if (op == LLVMStore)
        store(f, v);
    else if (op == LLVMGetElementPtr)
        opjit_dx_gep(f, v);
    else
        variable(f, v);
}
