/* SPDX-License-Identifier: Apache-2.0 */
/* function.c - the tables of a function that is being read: operations, registers, addresses, values, types. */
#include "codegen/direct.h"

#include <string.h>

enum { FIRST_ROOM = 64 }; /* most functions are short: what a table has room for is cleared, or copied */

void opjit_dx_refuse(dx_func *f, const char *why)
{
    if (!f->refused)
        f->why = why;
    f->refused = true;
}

/* --- tables that grow --------------------------------------------------------------------------------------------- */

/* The array with room for one more, which is not zero; NULL: no memory. */
static void *grow(dx_func *f, void *array, uint32_t count, uint32_t *room, size_t size)
{
    if (count < *room)
        return array;
    const uint32_t more = *room > 0 ? 2 * *room : FIRST_ROOM;
    void *larger = opjit_rt_arena_reserve(f->arena, more * size);
    if (!larger)
        return NULL;
    if (array)
        memcpy(larger, array, count * size);
    *room = more;
    return larger;
}

dx_op *opjit_dx_op(dx_func *f, dx_kind kind)
{
    dx_op *ops = grow(f, f->ops, f->op_count, &f->op_room, sizeof *ops);
    if (!ops) {
        opjit_dx_refuse(f, "no memory");
        return &f->no_op;
    }
    f->ops = ops;
    ops[f->op_count] = (dx_op){ .kind = (uint8_t)kind };
    return &ops[f->op_count++];
}

uint32_t opjit_dx_mem(dx_func *f, dx_mem mem)
{
    dx_mem *mems = grow(f, f->mems, f->mem_count, &f->mem_room, sizeof *mems);
    if (!mems) {
        opjit_dx_refuse(f, "no memory");
        return 0;
    }
    if (mem.offset < INT32_MIN / 2 || mem.offset > INT32_MAX / 2)
        opjit_dx_refuse(f, "far offset");
    f->mems = mems;
    mems[f->mem_count++] = mem;
    return f->mem_count;
}

dx_reg opjit_dx_new(dx_func *f, dx_class kind)
{
    dx_virtual *regs = grow(f, f->regs, f->reg_count, &f->reg_room, sizeof *regs);
    if (!regs) {
        opjit_dx_refuse(f, "no memory");
        return 0;
    }
    f->regs = regs;
    if (f->reg_count == 0)
        regs[f->reg_count++] = (dx_virtual){ .kind = DX_INT }; /* 0 is none */
    if (kind == DX_MASK && !f->wide)
        kind = DX_VEC;
    regs[f->reg_count] = (dx_virtual){ .kind = (uint8_t)kind, .at = -1, .least = UINT32_MAX };
    return f->reg_count++;
}

/* --- values ------------------------------------------------------------------------------------------------------- */

static uint32_t slot_of(const dx_func *f, LLVMValueRef v)
{
    const uint64_t hash = (uint64_t)(uintptr_t)v * 0x9e3779b97f4a7c15u;
    uint32_t i = (uint32_t)(hash >> 32) & (f->value_slots - 1);
    while (f->value_at[i] != 0 && f->values[f->value_at[i]].of != v)
        i = (i + 1) & (f->value_slots - 1);
    return i;
}

dx_value *opjit_dx_find(dx_func *f, LLVMValueRef v)
{
    const uint32_t i = f->value_slots > 0 ? f->value_at[slot_of(f, v)] : 0;
    return i > 0 ? &f->values[i] : NULL;
}

bool opjit_dx_is_constant(dx_func *f, LLVMValueRef v)
{
    const dx_value *value = LLVMIsConstant(v) ? NULL : opjit_dx_find(f, v);
    return LLVMIsConstant(v) || (value && value->how == DX_V_CONSTANT);
}

/* Room for one more value, and twice as many slots as there are values. */
static bool make_room(dx_func *f)
{
    dx_value *values = grow(f, f->values, f->value_count + 1, &f->value_room, sizeof *values);
    if (!values)
        return false;
    f->values = values;
    if (2 * (f->value_count + 1) <= f->value_slots)
        return true;
    const uint32_t slots = f->value_slots > 0 ? 4 * f->value_slots : 4 * FIRST_ROOM;
    uint32_t *value_at = ARENA_ARRAY(f->arena, uint32_t, slots);
    if (!value_at)
        return false;
    f->value_at = value_at;
    f->value_slots = slots;
    for (uint32_t i = 1; i <= f->value_count; i++)
        f->value_at[slot_of(f, values[i].of)] = i;
    return true;
}

dx_value *opjit_dx_enter(dx_func *f, LLVMValueRef v)
{
    if (!make_room(f)) {
        opjit_dx_refuse(f, "no memory");
        return &f->no_value;
    }
    uint32_t *const at = &f->value_at[slot_of(f, v)];
    if (*at == 0)
        *at = ++f->value_count;
    f->values[*at] = (dx_value){ .of = v, .block = f->block };
    return &f->values[*at];
}

/* --- types -------------------------------------------------------------------------------------------------------- */

static dx_type find_type(LLVMTypeRef type)
{
    dx_type t = { .kind = DX_T_OTHER };
    LLVMTypeKind kind = LLVMGetTypeKind(type);
    if (kind == LLVMVectorTypeKind) {
        t.lanes = (uint16_t)LLVMGetVectorSize(type);
        type = LLVMGetElementType(type);
        kind = LLVMGetTypeKind(type);
    }
    switch (kind) {
    case LLVMIntegerTypeKind:
        t.kind = DX_T_INT;
        t.bits = LLVMGetIntTypeWidth(type) <= 64 ? (uint8_t)LLVMGetIntTypeWidth(type) : 0;
        break;
    case LLVMHalfTypeKind:
    case LLVMFloatTypeKind:
    case LLVMDoubleTypeKind:
        t.kind = DX_T_FLOAT;
        t.bits = kind == LLVMHalfTypeKind ? 16 : kind == LLVMFloatTypeKind ? 32 : 64;
        break;
    case LLVMPointerTypeKind:
        t.kind = DX_T_PTR;
        t.bits = 64;
        break;
    case LLVMVoidTypeKind: t.kind = DX_T_VOID; break;
    default: break;
    }
    if (t.kind == DX_T_INT && t.bits == 0)
        t.kind = DX_T_OTHER;
    return t;
}

dx_type opjit_dx_type(dx_func *f, LLVMTypeRef type)
{
    enum { KEPT = sizeof f->types / sizeof *f->types };
    const uint32_t i = (uint32_t)((uintptr_t)type >> 3) % KEPT; /* by address: a function has few types */
    if (f->types[i] != type) {
        f->types[i] = type;
        f->type_of[i] = find_type(type);
    }
    return f->type_of[i];
}

uint32_t opjit_dx_block_of(dx_func *f, LLVMBasicBlockRef block)
{
    const dx_value *value = opjit_dx_find(f, LLVMBasicBlockAsValue(block));
    if (!value)
        opjit_dx_refuse(f, "unknown block");
    return value ? value->block : 0;
}
