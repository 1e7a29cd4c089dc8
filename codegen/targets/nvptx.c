/* SPDX-License-Identifier: Apache-2.0 */
/* nvptx.c - NVIDIA GPUs as a target: PTX text for sm_80 and later, which has instructions for all that 64-bit CPUs
 * have, but no libraries: whatever would become a library call is expanded as for CPUs.
 *
 * Arithmetic is IEEE's: LLVM writes .rn on operations that would otherwise be contracted, no .ftz, and div.rn and
 * sqrt.rn.  LLVM takes CPU and features from the target machine and not from functions, so there is one machine per
 * level. */
#include "codegen/cg.h"
#include "codegen/cg.h"

#include <llvm-c/Target.h>

#include <stdio.h>

enum { PTX_KERNEL = 71, GLOBAL = 1, SHARED = 3 };

static void setup(void)
{
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
}

static const char *cpu(const rt_target *t)
{
    static const char *const names[] = { "sm_80", "sm_80", "sm_90", "sm_100", "sm_120" };
    return names[t->level];
}

/* The first version of PTX that knows the architecture, which is the least that a driver must know. */
static const char *features(const rt_target *t)
{
    static const char *const versions[] = { "+ptx80", "+ptx80", "+ptx80", "+ptx86", "+ptx87" };
    return versions[t->level];
}

/* --- threads ------------------------------------------------------------------------------------------------------ */

static LLVMValueRef thread(cg_func *f)
{
    return opjit_cg_call_plain(f, "llvm.nvvm.read.ptx.sreg.tid.x", 0, NULL);
}

static LLVMValueRef block(cg_func *f)
{
    return opjit_cg_call_plain(f, "llvm.nvvm.read.ptx.sreg.ctaid.x", 0, NULL);
}

static LLVMValueRef from(cg_func *f, LLVMValueRef v, LLVMValueRef lane)
{
    LLVMValueRef args[] = { opjit_cg_number(f, 32, 1, UINT32_MAX), v, lane, opjit_cg_number(f, 32, 1, 31) };
    return opjit_cg_call_plain(f, "llvm.nvvm.shfl.sync.idx.i32", 4, args);
}

/* A team of several warps is a block. */
static void sync(cg_func *f)
{
    LLVMValueRef all = opjit_cg_number(f, 32, 1, UINT32_MAX);
    LLVMValueRef first = opjit_cg_number(f, 32, 1, 0);
    if (f->launch.team > 32)
        opjit_cg_call_plain(f, "llvm.nvvm.barrier.cta.sync.aligned.all", 1, &first);
    else
        opjit_cg_call_plain(f, "llvm.nvvm.bar.warp.sync", 1, &all);
}

static void kernel(cg_func *f, LLVMValueRef fn, uint32_t threads)
{
    char text[16];
    LLVMSetFunctionCallConv(fn, PTX_KERNEL);
    snprintf(text, sizeof(text), "%u", threads);
    LLVMAddTargetDependentFunctionAttr(fn, "nvvm.reqntid", text);
    (void)f;
}

static const cg_grid grid = { .global = GLOBAL,
                              .constant = GLOBAL,
                              .shared = SHARED,
                              .thread = thread,
                              .block = block,
                              .from = from,
                              .sync = sync,
                              .kernel = kernel };

const cg_target opjit_cg_target_nvptx = {
    .arch = RT_ARCH_NVPTX,
    .name = "nvptx64",
    .triple = "nvptx64-nvidia-cuda",
    .setup = setup,
    .cpu = cpu,
    .features = features,
    .orders_zeros = true,
    .grid = &grid,
};
