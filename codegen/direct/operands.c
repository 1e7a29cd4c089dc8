/* SPDX-License-Identifier: Apache-2.0 */
/* operands.c - what instructions read: values in registers, numbers, constants in memory, addresses. */
#include "codegen/direct.h"

#include <llvm-c/Target.h>

#include <string.h>

enum { MOST_CONSTANT = 4096, MOST_LANES = 64 /* of a mask */ };

dx_class opjit_dx_class(dx_func *f, dx_type t)
{
    if (t.kind == DX_T_INT && t.lanes && t.bits == 1) {
        if (f->wide ? t.lanes > MOST_LANES : opjit_dx_mask_bits(f, t.lanes) < 8 || (t.lanes & (t.lanes - 1u)) != 0)
            opjit_dx_refuse(f, "mask");
        return DX_MASK;
    }
    if (t.lanes || t.kind == DX_T_FLOAT) {
        const uint32_t bytes = dx_bytes(t);
        const bool half = t.kind == DX_T_FLOAT && t.bits < 32 && !t.lanes;
        if (t.kind == DX_T_PTR || t.kind == DX_T_OTHER || half || bytes > f->bytes ||
            (bytes & (bytes - 1)) != 0 || t.bits < 8)
            opjit_dx_refuse(f, "vector type");
        if (bytes > 16)
            f->vectors = true;
        return DX_VEC;
    }
    if (t.kind != DX_T_PTR &&
        (t.kind != DX_T_INT || (t.bits != 1 && t.bits != 8 && t.bits != 16 && t.bits != 32 && t.bits != 64)))
        opjit_dx_refuse(f, "type");
    return DX_INT;
}

dx_reg opjit_dx_result(dx_func *f, LLVMValueRef v)
{
    const dx_type t = opjit_dx_type(f, LLVMTypeOf(v));
    const dx_class kind = opjit_dx_class(f, t);
    const dx_reg reg =
        kind == DX_MASK && !f->wide ? opjit_dx_mask_new(f, opjit_dx_mask_bits(f, t.lanes)) : opjit_dx_new(f, kind);
    dx_value *value = opjit_dx_enter(f, v);
    value->how = DX_V_REG;
    value->reg = reg;
    return reg;
}

dx_reg opjit_dx_number(dx_func *f, int64_t number)
{
    const dx_reg reg = opjit_dx_new(f, DX_INT);
    dx_op *o = opjit_dx_op(f, DX_NUMBER);
    o->dst = reg;
    o->imm = number;
    return reg;
}

void opjit_dx_name(dx_func *f, LLVMValueRef v, dx_reg reg)
{
    opjit_dx_class(f, opjit_dx_type(f, LLVMTypeOf(v)));
    dx_value *value = opjit_dx_enter(f, v);
    value->how = DX_V_REG;
    value->reg = reg;
}

void opjit_dx_copy(dx_func *f, dx_reg to, dx_reg from)
{
    dx_op *o = opjit_dx_op(f, DX_COPY);
    o->dst = to;
    o->a = from;
}

dx_op *opjit_dx_two_address(dx_func *f, dx_kind kind, dx_reg dst, dx_reg a, uint32_t bytes)
{
    opjit_dx_copy(f, dst, a);
    dx_op *o = opjit_dx_op(f, kind);
    o->dst = dst;
    o->tied = true;
    o->bytes = (uint8_t)bytes;
    return o;
}

void opjit_dx_lowest_bit(dx_func *f, dx_reg dst, dx_reg a)
{
    dx_op *o = opjit_dx_two_address(f, DX_ARITH, dst, a, 4);
    o->code = DX_AND;
    o->imm = 1;
}

void opjit_dx_bit_as_all(dx_func *f, dx_reg dst, dx_reg bit)
{
    opjit_dx_op(f, DX_NUMBER)->dst = dst;
    dx_op *o = opjit_dx_op(f, DX_ARITH);
    o->code = DX_SUB;
    o->bytes = 8;
    o->tied = true;
    o->dst = dst;
    o->b = bit;
}

/* --- constants ---------------------------------------------------------------------------------------------------- */

/* The bits of an element of a constant. */
static bool element_bits(dx_func *f, LLVMValueRef c, uint64_t *out)
{
    *out = 0;
    if (LLVMIsAConstantInt(c)) {
        *out = LLVMConstIntGetZExtValue(c);
        return true;
    }
    if (LLVMIsAConstantFP(c)) { /* as bits, so that no payload is lost */
        LLVMContextRef context = LLVMGetTypeContext(LLVMTypeOf(c));
        LLVMValueRef bits = LLVMConstBitCast(c, LLVMIntTypeInContext(context, opjit_dx_type(f, LLVMTypeOf(c)).bits));
        *out = LLVMIsAConstantInt(bits) ? LLVMConstIntGetZExtValue(bits) : 0;
        return LLVMIsAConstantInt(bits);
    }
    return LLVMIsNull(c) || LLVMIsUndef(c) || LLVMIsPoison(c);
}

/* Lanes of a mask that is a constant. */
static bool mask_bits(LLVMValueRef c, uint32_t lanes, uint64_t *out)
{
    *out = 0;
    if (LLVMIsNull(c) || LLVMIsUndef(c))
        return true;
    for (uint32_t i = 0; i < lanes; i++) {
        LLVMValueRef e = LLVMIsAConstantInt(c) ? c : LLVMGetAggregateElement(c, i);
        if (!e || !(LLVMIsAConstantInt(e) || LLVMIsUndef(e)))
            return false;
        *out |= LLVMIsUndef(e) ? 0 : (LLVMConstIntGetZExtValue(e) & 1) << i;
    }
    return true;
}

/* What a constant is made of by a bitcast; itself if it is not. */
static LLVMValueRef without_cast(LLVMValueRef c)
{
    return LLVMIsAConstantExpr(c) && LLVMGetConstOpcode(c) == LLVMBitCast ? LLVMGetOperand(c, 0) : c;
}

/* The bytes of a scalar or vector constant; 0: unknown. */
static uint32_t constant_bytes(dx_func *f, LLVMValueRef c, uint8_t out[MOST_CONSTANT])
{
    c = without_cast(c);
    const dx_type t = opjit_dx_type(f, LLVMTypeOf(c));
    const uint32_t lanes = t.lanes ? t.lanes : 1, size = t.bits / 8;
    size_t raw = 0;
    if (t.bits < 8 || lanes * size > MOST_CONSTANT)
        return 0;
    memset(out, 0, lanes * size);
    if (LLVMIsAConstantDataVector(c) || LLVMIsAConstantDataArray(c)) {
        const char *data = LLVMGetRawDataValues(c, &raw);
        if (raw != lanes * size)
            return 0;
        memcpy(out, data, raw);
        return (uint32_t)raw;
    }
    if (t.lanes && LLVMIsAConstantInt(c)) { /* a splat */
        const uint64_t bits = LLVMConstIntGetZExtValue(c);
        for (uint32_t i = 0; i < lanes; i++)
            memcpy(out + i * size, &bits, size);
        return lanes * size;
    }
    for (uint32_t i = 0; i < lanes && !LLVMIsNull(c) && !LLVMIsUndef(c); i++) {
        uint64_t bits;
        LLVMValueRef e = t.lanes && !LLVMIsAConstantFP(c) ? LLVMGetAggregateElement(c, i) : c;
        if (!e || !element_bits(f, e, &bits))
            return 0;
        memcpy(out + i * size, &bits, size);
    }
    return lanes * size;
}

static bool constant_place(dx_func *f, LLVMValueRef c, dx_mem *out)
{
    uint8_t bytes[MOST_CONSTANT];
    const uint32_t size = constant_bytes(f, c, bytes);
    if (size == 0)
        return false;
    *out = (dx_mem){ .where = DX_AT_DATA, .offset = opjit_dx_pool(f->m, bytes, size) };
    return true;
}

static bool is_mask(dx_func *f, LLVMValueRef c)
{
    const dx_type t = opjit_dx_type(f, LLVMTypeOf(c));
    return t.lanes > 0 && t.bits == 1;
}

bool opjit_dx_constant(dx_func *f, LLVMValueRef v, int64_t *out)
{
    uint8_t bytes[MOST_CONSTANT];
    uint64_t bits = 0;
    if (!LLVMIsConstant(v))
        return false;
    const dx_type t = opjit_dx_type(f, LLVMTypeOf(v));
    if (t.kind != DX_T_INT)
        return false;
    if (!t.lanes) {
        if (LLVMIsUndef(v))
            *out = 0;
        else if (LLVMIsAConstantInt(v))
            *out = t.bits == 1 ? (int64_t)(LLVMConstIntGetZExtValue(v) & 1) : LLVMConstIntGetSExtValue(v);
        else if (is_mask(f, without_cast(v)) && mask_bits(without_cast(v), t.bits, &bits))
            *out = (int64_t)(bits << (64 - t.bits)) >> (64 - t.bits);
        else
            return false;
        return true;
    }
    const uint32_t size = t.bits / 8;
    if (t.bits < 8 || constant_bytes(f, v, bytes) == 0)
        return false;
    for (uint32_t i = 1; i < t.lanes; i++)
        if (memcmp(bytes, bytes + i * size, size) != 0)
            return false;
    memcpy(&bits, bytes, size);
    const uint32_t unused = 64 - t.bits;
    *out = (int64_t)(bits << unused) >> unused;
    return true;
}

dx_reg opjit_dx_mask_number(dx_func *f, uint64_t bits, uint32_t lanes)
{
    const dx_reg reg = opjit_dx_new(f, DX_MASK), number = opjit_dx_number(f, (int64_t)bits);
    opjit_dx_vector(f, lanes > 32 ? DX_F_KMOVQ : DX_F_KMOVD, 16, reg, 0, number);
    return reg;
}

/* A vector of `bytes` from a place in the module's constants.  Copies of a loop's body have the same ones. */
static dx_reg load_constant(dx_func *f, dx_mem mem, uint32_t bytes, uint32_t width)
{
    enum { KEPT = sizeof f->loaded / sizeof *f->loaded, LEAST = 16, NEAR = 16 /* operations */ };
    dx_loaded *known = &f->loaded[(uint64_t)mem.offset / LEAST % KEPT];
    if (bytes >= LEAST && known->loads == f->loads && known->place == mem.offset && known->bytes == bytes &&
        known->reg && f->op_count - known->used <= NEAR) {
        known->used = f->op_count;
        return known->reg;
    }
    const dx_reg reg = opjit_dx_new(f, DX_VEC);
    const uint32_t at = opjit_dx_mem(f, mem);
    const dx_form_name form = bytes == 4 ? DX_F_LOADSS : bytes == 8 ? DX_F_LOADSD : DX_F_LOAD;
    opjit_dx_vector(f, form, width, reg, 0, 0)->mem = at;
    if (bytes < 4)
        opjit_dx_refuse(f, "short constant");
    if (f->refused || bytes < LEAST)
        return reg;
    f->regs[reg].data = (uint32_t)mem.offset + 1;
    *known = (dx_loaded){ (uint32_t)mem.offset, bytes, f->loads, f->op_count, reg };
    return reg;
}

dx_reg opjit_dx_vector_constant(dx_func *f, const void *bytes, uint32_t size)
{
    return load_constant(f, (dx_mem){ .where = DX_AT_DATA, .offset = opjit_dx_pool(f->m, bytes, size) }, size, size);
}

dx_reg opjit_dx_repeated(dx_func *f, uint64_t element, uint32_t bits, uint32_t size)
{
    uint8_t bytes[MOST_LANES] = { 0 };
    for (uint32_t i = 0; i < size; i += bits / 8)
        memcpy(bytes + i, &element, bits / 8);
    return opjit_dx_vector_constant(f, bytes, size);
}

/* A constant mask in lanes of `bits`. */
static dx_reg constant_lanes(dx_func *f, uint64_t mask, uint32_t lanes, uint32_t bits)
{
    uint8_t bytes[MOST_LANES] = { 0 };
    for (uint32_t i = 0; i < lanes; i++)
        memset(bytes + i * bits / 8, mask >> i & 1 ? 0xff : 0, bits / 8);
    return opjit_dx_vector_constant(f, bytes, lanes * bits <= 128 ? 16 : lanes * bits / 8);
}

dx_reg opjit_dx_mask_constant(dx_func *f, LLVMValueRef c, uint32_t bits)
{
    const uint32_t lanes = opjit_dx_type(f, LLVMTypeOf(c)).lanes;
    uint64_t mask = 0;
    if (!mask_bits(c, lanes, &mask) || lanes * bits / 8 > f->bytes) {
        opjit_dx_refuse(f, "constant mask");
        return 0;
    }
    return constant_lanes(f, mask, lanes, bits);
}

/* The address as a value. */
static dx_reg lea(dx_func *f, dx_mem mem)
{
    const dx_reg reg = opjit_dx_new(f, DX_INT);
    const uint32_t at = opjit_dx_mem(f, mem);
    dx_op *o = opjit_dx_op(f, DX_LEA);
    o->dst = reg;
    o->mem = at;
    return reg;
}

static dx_reg use_constant(dx_func *f, LLVMValueRef v)
{
    const dx_type t = opjit_dx_type(f, LLVMTypeOf(v));
    const dx_class kind = opjit_dx_class(f, t);
    int64_t number;
    uint64_t bits;
    dx_mem mem;
    if (f->refused)
        return 0;
    if (kind == DX_MASK) {
        if (!mask_bits(v, t.lanes, &bits))
            opjit_dx_refuse(f, "constant mask");
        return f->wide ? opjit_dx_mask_number(f, bits, t.lanes)
                       : constant_lanes(f, bits, t.lanes, opjit_dx_mask_bits(f, t.lanes));
    }
    if (kind == DX_INT && t.kind == DX_T_INT && opjit_dx_constant(f, v, &number))
        return opjit_dx_number(f, number);
    if (kind == DX_INT && t.kind == DX_T_PTR) {
        if (LLVMIsNull(v) || LLVMIsUndef(v))
            return opjit_dx_number(f, 0);
        return lea(f, opjit_dx_place(f, v));
    }
    if (kind != DX_VEC || !constant_place(f, v, &mem)) {
        opjit_dx_refuse(f, "constant");
        return 0;
    }
    if (LLVMIsNull(v)) {
        return opjit_dx_zero(f);
    }
    return load_constant(f, mem, dx_bytes(t), dx_width(t));
}

bool opjit_dx_used_once(LLVMValueRef v)
{
    LLVMUseRef first = LLVMIsConstant(v) ? NULL : LLVMGetFirstUse(v);
    return first && !LLVMGetNextUse(first);
}

/* --- values ------------------------------------------------------------------------------------------------------- */

dx_reg opjit_dx_use(dx_func *f, LLVMValueRef v)
{
    if (LLVMIsConstant(v))
        return use_constant(f, v);
    const dx_value *value = opjit_dx_find(f, v);
    if (!value) {
        opjit_dx_refuse(f, "use before definition");
        return 0;
    }
    switch (value->how) {
    case DX_V_REG:
        if (!f->wide && !f->refused && f->regs[value->reg].lane) {
            const uint32_t lanes = opjit_dx_type(f, LLVMTypeOf(v)).lanes;
            return lanes ? opjit_dx_mask_as(f, v, opjit_dx_mask_bits(f, lanes)) : value->reg;
        }
        return value->reg;
    case DX_V_PLACE:
        if (value->place.where == DX_AT_REGISTER && !value->place.index && value->place.offset == 0)
            return value->place.base;
        return lea(f, value->place);
    case DX_V_CONSTANT: {
        const dx_type t = opjit_dx_type(f, LLVMTypeOf(v));
        return load_constant(f, value->place, dx_bytes(t), dx_width(t));
    }
    default: opjit_dx_refuse(f, "value"); return 0;
    }
}

void opjit_dx_operands(dx_func *f, LLVMValueRef v, bool either, dx_reg *a, dx_reg *b)
{
    const bool swap = either && opjit_dx_is_constant(f, LLVMGetOperand(v, 0));
    *a = opjit_dx_use(f, LLVMGetOperand(v, swap));
    *b = opjit_dx_use(f, LLVMGetOperand(v, !swap));
}

dx_reg opjit_dx_mask(dx_func *f, LLVMValueRef v)
{
    const dx_value *value = LLVMIsConstant(v) ? NULL : opjit_dx_find(f, v);
    const dx_type t = opjit_dx_type(f, LLVMTypeOf(v));
    if (t.lanes)
        return opjit_dx_use(f, v);
    if (value && value->second)
        return value->second;
    const dx_reg number = opjit_dx_use(f, v), reg = opjit_dx_new(f, DX_MASK);
    opjit_dx_vector(f, DX_F_KMOVD, 16, reg, 0, number);
    return reg;
}

/* Whether all users are in this block. */
static bool only_here(dx_func *f, LLVMValueRef v)
{
    LLVMBasicBlockRef here = f->blocks[f->block].block;
    for (LLVMUseRef u = LLVMGetFirstUse(v); u; u = LLVMGetNextUse(u)) {
        LLVMValueRef user = LLVMGetUser(u);
        if (LLVMGetInstructionParent(user) != here || LLVMGetInstructionOpcode(user) == LLVMPHI)
            return false;
    }
    return true;
}

/* --- addresses ---------------------------------------------------------------------------------------------------- */

/* Bytes of a type in memory. */
static int64_t size_in_memory(dx_func *f, LLVMTypeRef type)
{
    const dx_type t = opjit_dx_type(f, type);
    if (LLVMGetTypeKind(type) == LLVMArrayTypeKind)
        return (int64_t)LLVMGetArrayLength2(type) * size_in_memory(f, LLVMGetElementType(type));
    if (t.kind == DX_T_OTHER || t.kind == DX_T_VOID || t.bits < 8)
        opjit_dx_refuse(f, "type in memory");
    return dx_bytes(t);
}

static dx_mem global_place(dx_func *f, LLVMValueRef g)
{
    dx_mem mem = { .where = DX_AT_DATA };
    const uint32_t symbol = opjit_dx_symbol(f->m, g);
    if (symbol == UINT32_MAX || f->m->symbols[symbol].function || !f->m->symbols[symbol].defined)
        opjit_dx_refuse(f, "global");
    else
        mem.offset = (int64_t)f->m->symbols[symbol].begin;
    return mem;
}

/* base[index], where both may be anything. */
static dx_mem element_place(dx_func *f, LLVMValueRef base, LLVMValueRef index, int64_t size)
{
    dx_mem mem = opjit_dx_place(f, base);
    int64_t number;
    if (opjit_dx_constant(f, index, &number)) {
        mem.offset += number * size;
        return mem;
    }
    if (LLVMIsAInstruction(index) && LLVMGetInstructionOpcode(index) == LLVMAdd &&
        LLVMGetInstructionParent(index) == f->blocks[f->block].block && !LLVMIsConstant(LLVMGetOperand(index, 0)) &&
        opjit_dx_constant(f, LLVMGetOperand(index, 1), &number) && number > -(1 << 20) && number < 1 << 20) {
        mem.offset += number * size;
        index = LLVMGetOperand(index, 0);
    }
    dx_reg reg = opjit_dx_use(f, index);
    if (opjit_dx_type(f, LLVMTypeOf(index)).bits != 64)
        opjit_dx_refuse(f, "narrow index");
    if (mem.index || mem.where == DX_AT_DATA) {
        const dx_reg sum = lea(f, mem);
        mem = (dx_mem){ .where = DX_AT_REGISTER, .base = sum };
    }
    if (size != 1 && size != 2 && size != 4 && size != 8) {
        const dx_reg product = opjit_dx_new(f, DX_INT);
        dx_op *o = opjit_dx_op(f, DX_MULTIPLY);
        o->dst = product;
        o->b = reg;
        o->bytes = 8;
        o->imm = size;
        reg = product;
        size = 1;
    }
    mem.index = reg;
    mem.shift = size == 8 ? 3 : size == 4 ? 2 : size == 2 ? 1 : 0;
    return mem;
}

static dx_mem gep_place(dx_func *f, LLVMValueRef v)
{
    const unsigned count = LLVMGetNumOperands(v);
    LLVMTypeRef type = LLVMGetGEPSourceElementType(v);
    int64_t first;
    if (count == 2)
        return element_place(f, LLVMGetOperand(v, 0), LLVMGetOperand(v, 1), size_in_memory(f, type));
    if (count != 3 || LLVMGetTypeKind(type) != LLVMArrayTypeKind ||
        !opjit_dx_constant(f, LLVMGetOperand(v, 1), &first) || first != 0) {
        opjit_dx_refuse(f, "gep");
        return (dx_mem){ .where = DX_AT_FRAME };
    }
    return element_place(f, LLVMGetOperand(v, 0), LLVMGetOperand(v, 2), size_in_memory(f, LLVMGetElementType(type)));
}

dx_mem opjit_dx_place(dx_func *f, LLVMValueRef pointer)
{
    if (LLVMIsConstant(pointer)) {
        if (LLVMIsAGlobalVariable(pointer))
            return global_place(f, pointer);
        if (LLVMIsAConstantExpr(pointer) && LLVMGetConstOpcode(pointer) == LLVMGetElementPtr)
            return gep_place(f, pointer);
    }
    const dx_value *value = opjit_dx_find(f, pointer);
    if (value && value->how == DX_V_PLACE)
        return value->place;
    return (dx_mem){ .where = DX_AT_REGISTER, .base = opjit_dx_use(f, pointer) };
}

void opjit_dx_gep(dx_func *f, LLVMValueRef v)
{
    dx_mem mem = gep_place(f, v);
    if (mem.offset < INT32_MIN / 2 || mem.offset > INT32_MAX / 2) {
        const dx_reg far = opjit_dx_number(f, mem.offset);
        mem.offset = 0;
        const dx_reg sum = opjit_dx_new(f, DX_INT), base = lea(f, mem);
        dx_op *o = opjit_dx_two_address(f, DX_ARITH, sum, base, 8);
        o->b = far;
        o->code = DX_ADD;
        mem = (dx_mem){ .where = DX_AT_REGISTER, .base = sum };
    }
    if (mem.index && !only_here(f, v))
        mem = (dx_mem){ .where = DX_AT_REGISTER, .base = lea(f, mem) };
    dx_value *value = opjit_dx_enter(f, v);
    value->how = DX_V_PLACE;
    value->place = mem;
}
