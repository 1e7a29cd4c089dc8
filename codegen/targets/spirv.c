/* SPDX-License-Identifier: Apache-2.0 */
/* spirv.c - SPIR-V for OpenCL as a target: binaries for any device that accepts SPIR-V 1.2 with 64-bit addresses.
 *
 * Threads have no lock step to rely on: a team that shares anything is a block (IR_STAGE_ALONE), synchronises at the
 * block's barriers, and passes values through local memory.  OpenCL's divisions and roots of f32 may be off by some
 * units in the last place, those of f64 may not: so those of f32 are computed in f64, which rounds to the correct f32.
 * f16 is stored as 16 bits and converted by opjit's sequences.
 *
 * LLVM's backend keeps some of what it knows of a module in the target machine, which is therefore good for one
 * compile, and some in the process (spirv_blocks.c).  From level one on it combines operations of different widths,
 * which is invalid, and its output is input of the device's own compiler anyway: so it runs at level none. */
#include "codegen/cg.h"
#include "codegen/object/spirv_blocks.h"

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

/* Each thread puts its value where the others find it, and leaves it there until they have read it. */
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
