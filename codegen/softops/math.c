/* SPDX-License-Identifier: Apache-2.0 */
/* math.c - mathematical functions of vectors: their calls, and their bodies, which are the sequences of eval/math*.c.
 * A function is called at level quick, so that a kernel with exp takes as long to compile as one with an addition; its
 * code is compiled once for the process, with LLVM's default register allocation (driver/tile_code.c). */
#include "ir/eval/math.h"
#include "codegen/softops/kept.h"

#include <stdio.h>

/* --- the type ----------------------------------------------------------------------------------------------------- */

static LLVMTypeRef type_of(const cg_func *f, const cg_math *m)
{
    const ir_type type = (ir_type)m->type;
    return type == IR_F32 || type == IR_F64 ? opjit_cg_float(f, type, m->lanes)
                                            : opjit_cg_int(f, 8 * opjit_ir_type_size(type), m->lanes);
}

LLVMTypeRef opjit_cg_math_type(const cg_func *f, const cg_math *m)
{
    if (m->op == IR_ACC) {
        const cg_math one = { .type = m->type, .lanes = 1 };
        LLVMTypeRef memory = f->type.ptr;
        return LLVMFunctionType(type_of(f, &one), &memory, 1, 0);
    }
    LLVMTypeRef type = type_of(f, m), types[2] = { type, type };
    return LLVMFunctionType(type, types, (m->operands & 1) + (m->operands >> 1), 0);
}

/* --- the body ----------------------------------------------------------------------------------------------------- */

/* The sequence as steps, and by step how many read it.  false: no memory. */
typedef struct sequence {
    math m;
    uint32_t *uses;
    LLVMValueRef *values;
    uint32_t result;
} sequence;

static val operand(math *m, const cg_math *record, uint32_t i)
{
    return (record->operands >> i & 1) != 0 ? opjit_ir_math_operand(m, (ir_type)record->type, 0, i)
                                            : opjit_ir_math_const(m, (ir_type)record->type, record->imm[i]);
}

static bool make_sequence(cg_func *f, const cg_math *record, sequence *s)
{
    *s = (sequence){ .m = { .steps = ARENA_ARRAY(f->arena, math_step, MATH_STEPS),
                            .capacity = MATH_STEPS,
                            .below = record->kind != 0 },
                     .uses = ARENA_ARRAY(f->arena, uint32_t, MATH_STEPS),
                     .values = ARENA_ARRAY(f->arena, LLVMValueRef, MATH_STEPS) };
    if (!s->m.steps || !s->uses || !s->values)
        return false;
    const val x = operand(&s->m, record, 0), y = record->count > 1 ? operand(&s->m, record, 1) : x;
    s->result = (uint32_t)opjit_ir_math(&s->m, (ir_op)record->op, x, y).bits;
    s->uses[s->result] = 1;
    for (uint32_t i = s->m.count; i-- > 0;)
        for (uint32_t k = 0; k < s->m.steps[i].count && s->uses[i] > 0; k++)
            s->uses[s->m.steps[i].args[k]]++;
    return !s->m.failed;
}

static LLVMValueRef put_step(cg_func *f, const cg_math *record, const sequence *s, const math_step *step)
{
    const ir_type type = (ir_type)step->type, from = (ir_type)s->m.steps[step->args[0]].type;
    LLVMValueRef a[3] = { NULL };
    for (uint32_t k = 0; k < step->count; k++)
        a[k] = s->values[step->args[k]];
    switch ((ir_op)step->op) {
    case IR_OP_NONE: return LLVMGetParam(f->fn, (uint32_t)step->imm == 0 ? 0 : record->operands & 1);
    case IR_CONST:
        return opjit_cg_number(f, type == IR_BOOL ? 1 : 8 * opjit_ir_type_size(type), record->lanes, step->imm);
    case IR_CAST: return opjit_cg_convert(f, from, type, a[0]);
    case IR_BITS: return opjit_cg_as_bits(f, a[0]);
    case IR_SELECT: return opjit_cg_choose(f, a[0], a[1], a[2]);
    case IR_EQ:
    case IR_NE:
    case IR_LT:
    case IR_LE: return opjit_cg_compare(f, (ir_op)step->op, from, a[0], a[1]);
    default: return opjit_cg_arith(f, (ir_op)step->op, type, a);
    }
}

void opjit_cg_math_body(cg_func *f, const cg_math *m)
{
    sequence s;
    if (!make_sequence(f, m, &s)) {
        f->failed = true;
        return;
    }
    LLVMBasicBlockRef entry = LLVMAppendBasicBlockInContext(f->llvm, f->fn, "");
    LLVMBasicBlockRef start = LLVMAppendBasicBlockInContext(f->llvm, f->fn, "");
    LLVMPositionBuilderAtEnd(f->b, entry);
    LLVMPositionBuilderBefore(f->entry, LLVMBuildBr(f->b, start));
    LLVMPositionBuilderAtEnd(f->b, start);
    f->piece->lanes = m->lanes;
    for (uint32_t i = 0; i < s.m.count; i++)
        if (s.uses[i] > 0)
            s.values[i] = put_step(f, m, &s, &s.m.steps[i]);
    LLVMValueRef out = s.values[s.result];
    LLVMBuildRet(f->b, m->type == IR_F16 ? opjit_cg_as_bits(f, out) : opjit_cg_as_float(f, out));
}

/* --- the call ----------------------------------------------------------------------------------------------------- */

/* A vector of fewer lanes as a part of a whole one, through memory, which fast selection knows. */
static LLVMValueRef resized(cg_func *f, LLVMValueRef v, LLVMTypeRef type, LLVMTypeRef widest)
{
    LLVMValueRef memory = opjit_cg_alloca(f, widest);
    if (LLVMTypeOf(v) != widest)
        LLVMBuildStore(f->b, LLVMConstNull(widest), memory);
    LLVMBuildStore(f->b, v, memory);
    return LLVMBuildLoad2(f->b, type, memory, "");
}

/* Its function in this module: its name says what it computes. */
static LLVMValueRef function_of(cg_func *f, const cg_math *m)
{
    char prefix[48];
    cg_made *made;
    snprintf(prefix, sizeof prefix, "math.%s_%sx%u", opjit_ir_op_infos[m->op].name,
             opjit_ir_type_name((ir_type)m->type), m->lanes);
    LLVMValueRef fn = opjit_cg_kept_function(f, prefix, m, sizeof *m, opjit_cg_math_type(f, m), &made);
    if (made)
        made->math = *m;
    return fn;
}

LLVMValueRef opjit_cg_math(cg_func *f, ir_ref node)
{
    const ir_node *n = ir_at(f->ir, node);
    const ir_type type = (ir_type)n->type;
    const uint32_t lanes = opjit_cg_varies(f, node) ? f->piece->lanes : 1;
    const uint32_t width = f->target->vector_bytes / opjit_ir_type_size(type);
    const bool part = lanes > 1 && lanes < width;
    cg_math m = { .op = n->op, .type = type, .lanes = part ? width : lanes, .count = n->count };
    LLVMValueRef given[2] = { NULL };
    uint32_t params = 0;
    m.kind = opjit_ir_math_is_below(f->ir, (ir_op)n->op, ir_operand(f->ir, node, 0));
    LLVMTypeRef whole = type_of(f, &m), narrow = opjit_cg_float(f, type, lanes);
    if (type == IR_F16)
        narrow = opjit_cg_int(f, 16, lanes);
    for (uint32_t i = 0; i < n->count && i < 2; i++) {
        const ir_ref x = ir_operand(f->ir, node, i);
        if (ir_at(f->ir, x)->op == IR_CONST) {
            m.imm[i] = ir_at(f->ir, x)->imm;
            continue;
        }
        LLVMValueRef v = opjit_cg_emit_lanes(f, x, lanes);
        v = type == IR_F16 ? opjit_cg_as_bits(f, v) : opjit_cg_as_float(f, v);
        m.operands |= 1u << i;
        given[params++] = part ? resized(f, v, whole, whole) : v;
    }
    LLVMValueRef fn = function_of(f, &m);
    LLVMValueRef out = LLVMBuildCall2(f->b, LLVMGlobalGetValueType(fn), fn, given, params, "");
    return part ? resized(f, out, narrow, whole) : out;
}
