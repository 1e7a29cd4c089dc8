/* SPDX-License-Identifier: Apache-2.0 */
/* aarch64.c - AArch64 as a target: NEON always; SVE with vectors of a minimum length, which LLVM sees as vectors of
 * exactly that length and writes with predicates, so that longer vectors work, too.
 *
 * Conversions from and to f16, fma and rounding are in the base.  The stores that go around the caches on other
 * machines are ordinary stores here: cores notice by themselves that whole lines are written. */
#include "codegen/cg.h"

#include <llvm-c/Target.h>

static void setup(void)
{
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
}

static bool masked(const rt_target *t, uint32_t bits)
{
    (void)bits;
    return rt_target_has(t, RT_ARM_SVE);
}

static uint32_t vscale(const rt_target *t)
{
    return !rt_target_has(t, RT_ARM_SVE)      ? 0
           : rt_target_has(t, RT_ARM_SVE_512) ? 4
           : rt_target_has(t, RT_ARM_SVE_256) ? 2
                                              : 1;
}

static const cg_legal legal[] = {
    { IR_ELEM, CG_F16, 0, CG_NATIVE, CG_NATIVE },
    { IR_CAST, CG_F16, 0, CG_NATIVE, CG_NATIVE },
    { IR_FMA, CG_F32 | CG_F64, 0, CG_NATIVE, CG_NATIVE },
    { IR_FLOOR, CG_FLOATS, 0, CG_NATIVE, CG_NATIVE },
    { IR_CEIL, CG_FLOATS, 0, CG_NATIVE, CG_NATIVE },
    { IR_TRUNC, CG_FLOATS, 0, CG_NATIVE, CG_NATIVE },
    { IR_RINT, CG_FLOATS, 0, CG_NATIVE, CG_NATIVE },
    { IR_CTPOP, CG_INTS, 0, CG_NATIVE, CG_NATIVE },
    { .types = 0 },
};

const cg_target opjit_cg_target_aarch64 = {
    .arch = RT_ARCH_AARCH64,
    .name = "aarch64",
    .triple = "aarch64-unknown-linux-gnu",
    .machine_cpu = "generic",
    .setup = setup,
    .legal = legal,
    .masked = masked,
    .by_page = true,
    .orders_zeros = true,
    .vscale = vscale,
};
