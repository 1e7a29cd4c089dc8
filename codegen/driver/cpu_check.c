/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_check.c - a function in objects that says whether the machine it runs on has a target's features.  It is plain
 * code of the first level, refers to nothing and writes nothing, so that it can choose between versions while a program
 * is being loaded.  x86-64 is asked itself.  AArch64 tells only its operating system, which tells the loader, which
 * passes it to resolvers; a program that calls such kernels checks by the generated header. */
#include "codegen/driver/driver.h"

#include <llvm-c/Target.h>
#include <stdio.h>

enum { LEAVES = 8 };

typedef struct asker {
    cg_func *f;
    LLVMValueRef good; /* i1: everything checked so far is present */
} asker;

static LLVMValueRef number(const asker *a, uint32_t value)
{
    return LLVMConstInt(a->f->type.i32, value, 0);
}

static LLVMValueRef call_asm(const asker *a, LLVMTypeRef result, const char *text, const char *constraints,
                             LLVMValueRef *args, unsigned count)
{
    LLVMTypeRef types[2] = { a->f->type.i32, a->f->type.i32 };
    LLVMTypeRef type = LLVMFunctionType(result, types, count, 0);
    LLVMValueRef callee =
        LLVMGetInlineAsm(type, text, strlen(text), constraints, strlen(constraints), 1, 0, LLVMInlineAsmDialectATT, 0);
    return LLVMBuildCall2(a->f->b, type, callee, args, count, "");
}

/* Registers a, b, c, d as a struct. */
static LLVMValueRef cpuid(const asker *a, uint32_t leaf)
{
    LLVMTypeRef i32 = a->f->type.i32, four[4] = { i32, i32, i32, i32 };
    LLVMTypeRef result = LLVMStructTypeInContext(a->f->llvm, four, 4, 0);
    LLVMValueRef args[2] = { number(a, leaf), number(a, 0) };
    return call_asm(a, result, "cpuid", "={ax},={bx},={cx},={dx},{ax},{cx}", args, 2);
}

static void require(asker *a, LLVMValueRef condition)
{
    a->good = a->good ? LLVMBuildAnd(a->f->b, a->good, condition, "") : condition;
}

static void require_bits(asker *a, LLVMValueRef value, uint32_t bits)
{
    LLVMValueRef masked = LLVMBuildAnd(a->f->b, value, number(a, bits), "");
    require(a, LLVMBuildICmp(a->f->b, LLVMIntEQ, masked, number(a, bits), ""));
}

/* Returns 0 from the function if something is missing so far, because the next question is only allowed otherwise. */
static void leave_if_missing(asker *a)
{
    cg_func *f = a->f;
    LLVMBasicBlockRef missing = LLVMAppendBasicBlockInContext(f->llvm, f->fn, "");
    LLVMBasicBlockRef next = LLVMAppendBasicBlockInContext(f->llvm, f->fn, "");
    LLVMBuildCondBr(f->b, a->good, next, missing);
    LLVMPositionBuilderAtEnd(f->b, missing);
    LLVMBuildRet(f->b, number(a, 0));
    LLVMPositionBuilderAtEnd(f->b, next);
    a->good = NULL;
}

/* Checks all bits of the leaf that the features need.  A leaf above the highest one returns something else. */
static void ask_leaf(asker *a, uint32_t leaf, uint64_t features)
{
    uint32_t bits[3] = { 0 };
    for (const rt_cpuid_bit *row = opjit_rt_cpuid_bits; row->leaf != 0; row++)
        if (row->leaf == leaf && (features >> row->feature & 1) != 0)
            bits[row->reg - 'b'] |= UINT32_C(1) << row->bit;
    if ((bits[0] | bits[1] | bits[2]) == 0)
        return;
    LLVMValueRef highest = LLVMBuildExtractValue(a->f->b, cpuid(a, leaf & UINT32_C(0x80000000)), 0, "");
    require(a, LLVMBuildICmp(a->f->b, LLVMIntUGE, highest, number(a, leaf), ""));
    leave_if_missing(a);
    LLVMValueRef answer = cpuid(a, leaf);
    for (unsigned i = 0; i < 3; i++)
        if (bits[i] != 0)
            require_bits(a, LLVMBuildExtractValue(a->f->b, answer, i + 1, ""), bits[i]);
}

/* AVX faults if the system does not save its registers; bit 27 of leaf 1 says whether that can be asked. */
static void ask_saved_state(asker *a, uint64_t features)
{
    uint32_t state = 0;
    for (const rt_cpuid_bit *row = opjit_rt_cpuid_bits; row->leaf != 0; row++)
        if ((features >> row->feature & 1) != 0)
            state |= row->state;
    if (state == 0)
        return;
    require_bits(a, LLVMBuildExtractValue(a->f->b, cpuid(a, 1), 2, ""), UINT32_C(1) << 27);
    leave_if_missing(a);
    LLVMTypeRef two[2] = { a->f->type.i32, a->f->type.i32 };
    LLVMValueRef zero = number(a, 0);
    LLVMValueRef saved = call_asm(a, LLVMStructTypeInContext(a->f->llvm, two, 2, 0), ".byte 0x0f, 0x01, 0xd0",
                                  "={ax},={dx},{cx}", &zero, 1); /* xgetbv, which older assemblers lack */
    require_bits(a, LLVMBuildExtractValue(a->f->b, saved, 0, ""), state);
}

static void begin(cg_func *f, const char *name, LLVMTypeRef type)
{
    f->fn = LLVMAddFunction(f->module, name, type);
    LLVMSetLinkage(f->fn, LLVMInternalLinkage);
    opjit_cg_attributes(f, f->fn);
    LLVMPositionBuilderAtEnd(f->b, LLVMAppendBasicBlockInContext(f->llvm, f->fn, ""));
}

/* A function of its own, with SVE: the length of its vectors in units of 16 bytes. */
static LLVMValueRef emit_sve_length(cg_func *f, const char *name)
{
    const rt_target *const outer = f->target;
    rt_target sve = *outer;
    LLVMTypeRef type;
    char text[256];
    snprintf(text, sizeof(text), "%s.sve", name);
    opjit_rt_target_set_features(&sve, outer->features | UINT64_C(1) << RT_ARM_SVE);
    f->target = &sve;
    begin(f, text, LLVMFunctionType(f->type.i64, NULL, 0, 0));
    LLVMValueRef vscale = compat_intrinsic(&f->latest, f->module, f->llvm, "llvm.vscale", &f->type.i64, 1, &type);
    LLVMBuildRet(f->b, LLVMBuildCall2(f->b, type, vscale, NULL, 0, ""));
    f->target = outer;
    return f->fn;
}

/* Bits of AT_HWCAP and AT_HWCAP2, and where the loader puts the second. */
enum { HWCAP_SVE = 22, HWCAP_HAS_ARGUMENT = 62, HWCAP2_SVE2 = 1, ARGUMENT_HWCAP2 = 16 };

static void require_bit64(asker *a, LLVMValueRef value, unsigned bit)
{
    LLVMValueRef mask = LLVMConstInt(a->f->type.i64, UINT64_C(1) << bit, 0);
    LLVMValueRef masked = LLVMBuildAnd(a->f->b, value, mask, "");
    require(a, LLVMBuildICmp(a->f->b, LLVMIntEQ, masked, mask, ""));
}

static LLVMValueRef chosen_on_aarch64(cg_func *f, const rt_target *target, const char *name)
{
    asker a = { .f = f };
    LLVMTypeRef types[2] = { f->type.i64, f->type.ptr }, length_type = LLVMFunctionType(f->type.i64, NULL, 0, 0);
    const bool sve = rt_target_has(target, RT_ARM_SVE);
    const uint32_t units = sve ? opjit_cg_target_find(RT_ARCH_AARCH64)->vscale(target) : 0;
    LLVMValueRef length = sve ? emit_sve_length(f, name) : NULL;
    begin(f, name, LLVMFunctionType(f->type.i32, types, 2, 0));
    LLVMValueRef hwcap = LLVMGetParam(f->fn, 0), at = opjit_cg_number(f, 64, 1, ARGUMENT_HWCAP2);
    if (sve)
        require_bit64(&a, hwcap, HWCAP_SVE);
    if (rt_target_has(target, RT_ARM_SVE2)) {
        require_bit64(&a, hwcap, HWCAP_HAS_ARGUMENT);
        leave_if_missing(&a);
        LLVMValueRef place = LLVMBuildInBoundsGEP2(f->b, f->type.i8, LLVMGetParam(f->fn, 1), &at, 1, "");
        require_bit64(&a, LLVMBuildLoad2(f->b, f->type.i64, place, ""), HWCAP2_SVE2);
    }
    if (sve) {
        leave_if_missing(&a);
        LLVMValueRef found = LLVMBuildCall2(f->b, length_type, length, NULL, 0, "");
        require(&a, LLVMBuildICmp(f->b, LLVMIntUGE, found, opjit_cg_number(f, 64, 1, units), ""));
    }
    LLVMBuildRet(f->b, a.good ? LLVMBuildZExt(f->b, a.good, f->type.i32, "") : number(&a, 1));
    return f->fn;
}

LLVMValueRef opjit_cg_runs_here(cg_func *f, const rt_target *target, const char *name)
{
    asker a = { .f = f };
    uint32_t last = 0;
    if (target->arch == RT_ARCH_AARCH64)
        return chosen_on_aarch64(f, target, name);
    begin(f, name, LLVMFunctionType(f->type.i32, NULL, 0, 0));
    for (const rt_cpuid_bit *row = opjit_rt_cpuid_bits; row->leaf != 0; row++) {
        if (row->leaf != last)
            ask_leaf(&a, row->leaf, target->features);
        last = row->leaf;
    }
    ask_saved_state(&a, target->features);
    LLVMBuildRet(f->b, a.good ? LLVMBuildZExt(f->b, a.good, f->type.i32, "") : number(&a, 1));
    return f->fn;
}
