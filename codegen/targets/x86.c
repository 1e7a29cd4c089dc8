/* SPDX-License-Identifier: Apache-2.0 */
/* x86.c - x86-64 as a target: names, attributes and what its features allow.  The CPU name given to LLVM is always the
 * plain level's; features and tuning are spelled out, so that code for any target can be generated on any machine. */
#include "codegen/cg.h"

#include <llvm-c/Target.h>

static void setup(void)
{
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeX86AsmParser(); /* for cpuid in objects that check the CPU (cpu_check.c) */
}

static const char *cpu(const rt_target *target)
{
    static const char *const levels[] = { "x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4" };
    return levels[target->level >= 1 && target->level <= 4 ? target->level - 1 : 0];
}

static bool has_avx512(const rt_target *t)
{
    return rt_target_has(t, RT_X86_AVX512F) && rt_target_has(t, RT_X86_AVX512BW) && rt_target_has(t, RT_X86_AVX512VL);
}

/* AVX2 has vpmaskmov for 32 and 64 bits; without AVX-512 LLVM makes one branch per lane for all other widths. */
static bool masked(const rt_target *t, uint32_t bits)
{
    return has_avx512(t) || (rt_target_has(t, RT_X86_AVX2) && bits >= 32);
}

static const cg_legal legal[] = {
    { IR_ELEM, CG_F16, CG_NEEDS(RT_X86_F16C), CG_NATIVE, CG_EXPANDED },
    { IR_CAST, CG_F16, CG_NEEDS(RT_X86_F16C), CG_NATIVE, CG_EXPANDED },
    { IR_FMA, CG_F32 | CG_F64, CG_NEEDS(RT_X86_FMA), CG_NATIVE, CG_CALLED },
    { IR_FLOOR, CG_FLOATS, CG_NEEDS(RT_X86_SSE41), CG_NATIVE, CG_EXPANDED },
    { IR_CEIL, CG_FLOATS, CG_NEEDS(RT_X86_SSE41), CG_NATIVE, CG_EXPANDED },
    { IR_TRUNC, CG_FLOATS, CG_NEEDS(RT_X86_SSE41), CG_NATIVE, CG_EXPANDED },
    { IR_RINT, CG_FLOATS, CG_NEEDS(RT_X86_SSE41), CG_NATIVE, CG_EXPANDED },
    { IR_CTPOP, CG_INTS, CG_NEEDS(RT_X86_POPCNT), CG_NATIVE, CG_EXPANDED },
    { .types = 0 },
};

const cg_target opjit_cg_target_x86 = {
    .arch = RT_ARCH_X86_64,
    .name = "x86-64",
    .triple = "x86_64-unknown-linux-gnu",
    .machine_cpu = "x86-64",
    .setup = setup,
    .cpu = cpu,
    .legal = legal,
    .masked = masked,
    .half_bits = true,
    .fence = "llvm.x86.sse.sfence",
};
