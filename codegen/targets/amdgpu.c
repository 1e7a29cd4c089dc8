/* SPDX-License-Identifier: Apache-2.0 */
/* amdgpu.c - AMD GPUs as a target: CDNA (gfx90a, gfx942) with waves of 64 threads, half of which are a team, and RDNA
 * (gfx1100, gfx1201) with waves of 32.
 *
 * Arithmetic is IEEE's: LLVM spells out divisions and roots, and denormals are kept.  LLVM writes the target machine's
 * processor into the object's header, so there is one machine per level and processor. */
#include "codegen/cg.h"
#include "codegen/object/code_object.h"
#include "codegen/cg.h"

#include <llvm-c/Target.h>

#include <stdio.h>
#include <string.h>

enum { AMDGPU_KERNEL = 91, GLOBAL = 1, SHARED = 3, CODE_OBJECT_V5 = 500, LAST_CDNA = 2, TEAM = 32 };

static void setup(void)
{
    LLVMInitializeAMDGPUTargetInfo();
    LLVMInitializeAMDGPUTarget();
    LLVMInitializeAMDGPUTargetMC();
    LLVMInitializeAMDGPUAsmPrinter();
}

static const char *cpu(const rt_target *t)
{
    static const char *const names[] = { "gfx90a", "gfx90a", "gfx942", "gfx1100", "gfx1201" };
    return names[t->level];
}

static const char *features(const rt_target *t)
{
    (void)t;
    return "";
}

/* --- threads ------------------------------------------------------------------------------------------------------ */

static LLVMValueRef thread(cg_func *f)
{
    return opjit_cg_call_plain(f, "llvm.amdgcn.workitem.id.x", 0, NULL);
}

static LLVMValueRef block(cg_func *f)
{
    return opjit_cg_call_plain(f, "llvm.amdgcn.workgroup.id.x", 0, NULL);
}

/* The instruction addresses the wave's lanes in bytes.  A wave of 64 is two teams. */
static LLVMValueRef from(cg_func *f, LLVMValueRef v, LLVMValueRef lane)
{
    const uint32_t wave = f->target->level <= LAST_CDNA ? 64 : 32;
    LLVMValueRef first = LLVMBuildAnd(f->b, thread(f), opjit_cg_number(f, 32, 1, wave - TEAM), "");
    LLVMValueRef bytes = LLVMBuildShl(f->b, LLVMBuildOr(f->b, first, lane, ""), opjit_cg_number(f, 32, 1, 2), "");
    return opjit_cg_call_plain(f, "llvm.amdgcn.ds.bpermute", 2, (LLVMValueRef[]){ bytes, v });
}

/* A wave's accesses happen in program order; only LLVM must be kept from reordering them.  A team of several waves is a
 * workgroup. */
static void sync(cg_func *f)
{
    const bool is_wave = f->launch.team <= TEAM;
    const char *const scope = is_wave ? "wavefront" : "workgroup";
    const unsigned id = LLVMGetSyncScopeID(f->llvm, scope, strlen(scope));
    LLVMBuildFenceSyncScope(f->b, LLVMAtomicOrderingRelease, id, "");
    opjit_cg_call_plain(f, is_wave ? "llvm.amdgcn.wave.barrier" : "llvm.amdgcn.s.barrier", 0, NULL);
    LLVMBuildFenceSyncScope(f->b, LLVMAtomicOrderingAcquire, id, "");
}

/* The arguments in memory are exactly those of the function; nothing else is passed. */
static void kernel(cg_func *f, LLVMValueRef fn, uint32_t threads)
{
    static const char *const absent[] = {
        "amdgpu-no-dispatch-ptr",       "amdgpu-no-queue-ptr",      "amdgpu-no-dispatch-id",
        "amdgpu-no-implicitarg-ptr",    "amdgpu-no-lds-kernel-id",  "amdgpu-no-hostcall-ptr",
        "amdgpu-no-heap-ptr",           "amdgpu-no-default-queue",  "amdgpu-no-completion-action",
        "amdgpu-no-multigrid-sync-arg", "amdgpu-no-workgroup-id-y", "amdgpu-no-workgroup-id-z",
        "amdgpu-no-workitem-id-y",      "amdgpu-no-workitem-id-z",  "amdgpu-no-cluster-id-x",
        "amdgpu-no-cluster-id-y",       "amdgpu-no-cluster-id-z",
    };
    static const char version[] = "amdhsa_code_object_version";
    char text[32];
    LLVMSetFunctionCallConv(fn, AMDGPU_KERNEL);
    snprintf(text, sizeof(text), "%u,%u", threads, threads);
    LLVMAddTargetDependentFunctionAttr(fn, "amdgpu-flat-work-group-size", text);
    LLVMAddTargetDependentFunctionAttr(fn, "uniform-work-group-size", "true");
    for (size_t i = 0; i < sizeof(absent) / sizeof(*absent); i++)
        LLVMAddTargetDependentFunctionAttr(fn, absent[i], "");
    if (!LLVMGetModuleFlag(f->module, version, strlen(version)))
        LLVMAddModuleFlag(f->module, LLVMModuleFlagBehaviorError, version, strlen(version),
                          LLVMValueAsMetadata(opjit_cg_number(f, 32, 1, CODE_OBJECT_V5)));
}

static const cg_grid grid = { .global = GLOBAL,
                              .constant = GLOBAL,
                              .shared = SHARED,
                              .thread = thread,
                              .block = block,
                              .from = from,
                              .sync = sync,
                              .kernel = kernel,
                              .pack = opjit_cg_code_object };

const cg_target opjit_cg_target_amdgpu = {
    .arch = RT_ARCH_AMDGPU,
    .name = "amdgcn",
    .triple = "amdgcn-amd-amdhsa",
    .setup = setup,
    .cpu = cpu,
    .features = features,
    .orders_zeros = true,
    .grid = &grid,
};
