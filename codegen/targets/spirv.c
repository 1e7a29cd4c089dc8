/* SPDX-License-Identifier: Apache-2.0 */
/* spirv.c - SPIR-V for OpenCL as a target: binaries that any device takes which takes SPIR-V 1.2 in 64
 * bits.
 *
 * Threads have no lock step that could be counted on: a team that shares anything is a block (IR_STAGE_ALONE),
 * meets at its barriers, and hands values around in local memory.  OpenCL's divisions and roots of f32 may be off
 * by some units in the last place, those of f64 may not: so f32's are made in f64, whose rounding to f32 is theirs.
 * f16 is no more than 16 bits, and is converted by ours.
 *
 * LLVM's backend keeps what it knows of a module in the machine, which is good for one compile alone, and some of
 * it in the process (spirv_blocks.c).  From level one on it combines operations of different widths, which is not
 * valid, and what it makes is the input of the device's own compiler anyway: so it runs at level none. */
#include "codegen/cg.h"
#include "codegen/gpu/spirv_blocks.h"

#include <llvm-c/Target.h>

enum { SPIR_FUNCTION = 75, SPIR_KERNEL = 76, GLOBAL = 1, CONSTANT = 2, LOCAL = 3, LOCAL_FENCE = 1, GLOBAL_FENCE = 2 };

static void setup(void)
{
    LLVMInitializeSPIRVTargetInfo();
    LLVMInitializeSPIRVTarget();
    LLVMInitializeSPIRVTargetMC();
    LLVMInitializeSPIRVAsmPrinter();
}

static const cg_legal legal[] = {
    { IR_ELEM, CG_F16, 0, CG_EXPANDED, CG_EXPANDED },
    { IR_CAST, CG_F16, 0, CG_EXPANDED, CG_EXPANDED },
    { IR_DIV, CG_F16 | CG_F32, 0, CG_EXPANDED, CG_EXPANDED },
    { IR_SQRT, CG_F16 | CG_F32, 0, CG_EXPANDED, CG_EXPANDED },
    { .types = 0 },
};

/* --- threads ------------------------------------------------------------------------------------------------------ */

/* A function of OpenCL C by its mangled name, with one i32. */
static LLVMValueRef call(cg_func *f, const char *name, LLVMTypeRef result, uint32_t argument)
{
    LLVMTypeRef type = LLVMFunctionType(result, &f->type.i32, 1, 0);
    LLVMValueRef fn = LLVMGetNamedFunction(f->module, name), value = opjit_cg_number(f, 32, 1, argument);
    if (!fn) {
        fn = LLVMAddFunction(f->module, name, type);
        LLVMSetFunctionCallConv(fn, SPIR_FUNCTION);
        LLVMAddAttributeAtIndex(fn, LLVMAttributeFunctionIndex, compat_attribute(f->llvm, "nounwind", 0));
        LLVMAddAttributeAtIndex(fn, LLVMAttributeFunctionIndex, compat_attribute(f->llvm, "convergent", 0));
    }
    LLVMValueRef called = LLVMBuildCall2(f->b, type, fn, &value, 1, "");
    LLVMSetInstructionCallConv(called, SPIR_FUNCTION);
    return called;
}

static LLVMValueRef thread(cg_func *f)
{
    return LLVMBuildTrunc(f->b, call(f, "_Z12get_local_idj", f->type.i64, 0), f->type.i32, "");
}

static LLVMValueRef block(cg_func *f)
{
    return LLVMBuildTrunc(f->b, call(f, "_Z12get_group_idj", f->type.i64, 0), f->type.i32, "");
}

static void sync(cg_func *f)
{
    call(f, "_Z7barrierj", f->type.none, LOCAL_FENCE | GLOBAL_FENCE);
}

/* Each puts its own where the others find it, and leaves it there until they have. */
static LLVMValueRef from(cg_func *f, LLVMValueRef v, LLVMValueRef lane)
{
    LLVMTypeRef type = LLVMArrayType2(f->type.i32, f->launch.team);
    if (!f->exchange) {
        f->exchange = LLVMAddGlobalInAddressSpace(f->module, type, "exchange", LOCAL);
        LLVMSetLinkage(f->exchange, LLVMInternalLinkage);
        LLVMSetInitializer(f->exchange, LLVMGetUndef(type));
        LLVMSetAlignment(f->exchange, 4);
    }
    LLVMBuildStore(f->b, v, opjit_cg_offset(f, f->type.i32, f->exchange, f->thread));
    call(f, "_Z7barrierj", f->type.none, LOCAL_FENCE);
    LLVMValueRef at = opjit_cg_offset(f, f->type.i32, f->exchange, LLVMBuildZExt(f->b, lane, f->type.i64, ""));
    LLVMValueRef other = LLVMBuildLoad2(f->b, f->type.i32, at, "");
    call(f, "_Z7barrierj", f->type.none, LOCAL_FENCE);
    return other;
}

static void kernel(cg_func *f, LLVMValueRef fn, uint32_t threads)
{
    static const char size[] = "reqd_work_group_size";
    LLVMMetadataRef numbers[3];
    LLVMSetFunctionCallConv(fn, SPIR_KERNEL);
    for (uint32_t i = 0; i < 3; i++)
        numbers[i] = LLVMValueAsMetadata(opjit_cg_number(f, 32, 1, i == 0 ? threads : 1));
    LLVMGlobalSetMetadata(fn, LLVMGetMDKindIDInContext(f->llvm, size, sizeof(size) - 1),
                          LLVMMDNodeInContext2(f->llvm, numbers, 3));
}

static const cg_grid grid = { .global = GLOBAL,
                              .constant = CONSTANT,
                              .shared = LOCAL,
                              .thread = thread,
                              .block = block,
                              .from = from,
                              .sync = sync,
                              .kernel = kernel,
                              .pack = opjit_cg_spirv };

const cg_target opjit_cg_target_spirv = {
    .arch = RT_ARCH_SPIRV,
    .name = "spirv64",
    .triple = "spirv64v1.2-unknown-unknown",
    .machine_cpu = "",
    .fresh = true,
    .setup = setup,
    .legal = legal,
    .orders_zeros = true,
    .grid = &grid,
};
