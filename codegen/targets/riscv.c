/* SPDX-License-Identifier: Apache-2.0 */
/* riscv.c - RISC-V as a target: RV64GC, alone or with V, whose vectors have a minimum length; longer ones work, too,
 * because every instruction says how many elements it means.
 *
 * Without V the schedule's vectors have 16 bytes, which LLVM splits.  fma and, by conversions to integers and back,
 * rounding are in F and D.  Half conversions are in Zfhmin, those of vectors in Zvfhmin. */
#include "codegen/cg.h"

#include <llvm-c/Target.h>

static void setup(void)
{
    LLVMInitializeRISCVTargetInfo();
    LLVMInitializeRISCVTarget();
    LLVMInitializeRISCVTargetMC();
    LLVMInitializeRISCVAsmPrinter();
}

static bool masked(const rt_target *t, uint32_t bits)
{
    (void)bits;
    return rt_target_has(t, RT_RISCV_V);
}

static const cg_legal legal[] = {
    { IR_ELEM, CG_F16, CG_NEEDS(RT_RISCV_ZVFHMIN), CG_NATIVE, CG_EXPANDED },
    { IR_CAST, CG_F16, CG_NEEDS(RT_RISCV_ZVFHMIN), CG_NATIVE, CG_EXPANDED },
    { IR_FMA, CG_F32 | CG_F64, 0, CG_NATIVE, CG_NATIVE },
    { IR_FLOOR, CG_FLOATS, 0, CG_NATIVE, CG_NATIVE },
    { IR_CEIL, CG_FLOATS, 0, CG_NATIVE, CG_NATIVE },
    { IR_TRUNC, CG_FLOATS, 0, CG_NATIVE, CG_NATIVE },
    { IR_RINT, CG_FLOATS, 0, CG_NATIVE, CG_NATIVE },
    { IR_CTPOP, CG_INTS, CG_NEEDS(RT_RISCV_ZBB), CG_NATIVE, CG_EXPANDED },
    { .types = 0 },
};

const cg_target opjit_cg_target_riscv = {
    .arch = RT_ARCH_RISCV64,
    .name = "riscv64",
    .triple = "riscv64-unknown-linux-gnu",
    .machine_cpu = "generic-rv64",
    .machine_features = "+m,+a,+f,+d,+c",
    .abi = "lp64d",
    .setup = setup,
    .legal = legal,
    .masked = masked,
    .orders_zeros = true,
};
