/* cg_target_x86.c - x86-64 as a target: names, attributes and what its features allow.  The CPU name given to LLVM is
 * always the plain level's; features and tuning are spelled out, so that any target can be made on any machine. */
#include "codegen/cg.h"

#include <llvm-c/Target.h>

static void setup(void)
{
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeX86AsmParser(); /* for cpuid in objects that ask for the CPU (cg_cpu.c) */
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

/* AVX2 has vpmaskmov for 32 and 64 bits; without AVX-512 LLVM makes a branch a lane of all others. */
static bool masked(const rt_target *t, uint32_t bits)
{
    return has_avx512(t) || (rt_target_has(t, RT_X86_AVX2) && bits >= 32);
}

const cg_target opjit_cg_target_x86 = {
    .arch = RT_ARCH_X86_64,
    .name = "x86-64",
    .triple = "x86_64-unknown-linux-gnu",
    .setup = setup,
    .cpu = cpu,
    .way = opjit_cg_way_x86,
    .masked = masked,
    .masked_tail = has_avx512,
    .fence = "llvm.x86.sse.sfence",
};

static const cg_target *const targets[] = { &opjit_cg_target_x86 };

const cg_target *opjit_cg_target_find(rt_arch arch)
{
    for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++)
        if (targets[i]->arch == arch)
            return targets[i];
    return NULL;
}
