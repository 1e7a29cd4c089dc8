/* SPDX-License-Identifier: Apache-2.0 */
/* far_trig.c - sin_far, cos_far, tan_far of one lane: the steps that math_trig.c records, as a function in the module.
 * Few operands need it, and its 200 steps in every copy of a loop would take longer to compile than everything else. */
#include "codegen/cg.h"
#include "ir/eval/math.h"

#include <stdio.h>

static LLVMValueRef emit_step(cg_func *f, const math_step *steps, LLVMValueRef *values, uint32_t i)
{
    const math_step *s = &steps[i];
    const ir_type type = (ir_type)s->type, from = (ir_type)steps[s->args[0]].type;
    LLVMValueRef a[3];
    for (uint32_t k = 0; k < 3; k++)
        a[k] = values[s->args[k]];
    switch ((ir_op)s->op) {
    case IR_OP_NONE:
        return opjit_cg_as_bits(f, LLVMGetParam(LLVMGetBasicBlockParent(LLVMGetInsertBlock(f->b)), (unsigned)s->imm));
    case IR_CONST: return opjit_cg_number(f, 8 * opjit_ir_type_size(type), 1, s->imm);
    case IR_BITS: return opjit_cg_as_bits(f, a[0]);
    case IR_CAST: return opjit_cg_convert(f, from, type, a[0]);
    case IR_SELECT: return opjit_cg_choose(f, a[0], a[1], a[2]);
    case IR_EQ:
    case IR_NE:
    case IR_LT: return opjit_cg_compare(f, (ir_op)s->op, from, a[0], a[1]);
    default: return opjit_cg_arith(f, (ir_op)s->op, type, a);
    }
}

static bool emit_body(cg_func *f, ir_op op)
{
    math m = { .steps = ARENA_ARRAY(f->arena, math_step, MATH_STEPS), .capacity = MATH_STEPS };
    LLVMValueRef *values = ARENA_ARRAY(f->arena, LLVMValueRef, MATH_STEPS);
    if (m.steps == NULL || values == NULL)
        return false;
    const val x = opjit_ir_math_operand(&m, IR_F64, 0, 0), y = opjit_ir_math_operand(&m, IR_F64, 0, 1);
    const val result = opjit_ir_math_far(&m, op, x, y);
    for (uint32_t i = 0; i < m.count; i++)
        values[i] = emit_step(f, m.steps, values, i);
    LLVMBuildRet(f->b, opjit_cg_as_float(f, values[result.bits]));
    return !m.failed;
}

/* Compiled fast, because it seldom runs. */
static const char *const slow[] = { "cold", "noinline", "optnone" };

LLVMValueRef opjit_cg_far(cg_func *f, ir_op op)
{
    char name[32];
    snprintf(name, sizeof(name), "soft.%s", opjit_ir_op_infos[op].name);
    LLVMValueRef fn = LLVMGetNamedFunction(f->module, name);
    if (fn)
        return fn;
    LLVMBuilderRef builder = f->b;
    LLVMTypeRef f64 = f->type.f64;
    fn = LLVMAddFunction(f->module, name, LLVMFunctionType(f64, (LLVMTypeRef[]){ f64, f64 }, 2, 0));
    LLVMSetLinkage(fn, LLVMInternalLinkage);
    opjit_cg_attributes(f, fn);
    if (!f->cpu->grid)
        for (uint32_t i = 0; i < 3; i++)
            LLVMAddAttributeAtIndex(fn, LLVMAttributeFunctionIndex, compat_attribute(f->llvm, slow[i], 0));
    f->b = LLVMCreateBuilderInContext(f->llvm);
    LLVMPositionBuilderAtEnd(f->b, LLVMAppendBasicBlockInContext(f->llvm, fn, ""));
    const bool done = emit_body(f, op);
    LLVMDisposeBuilder(f->b);
    f->b = builder;
    return done ? fn : NULL;
}
