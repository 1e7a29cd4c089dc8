/* SPDX-License-Identifier: Apache-2.0 */
/* absent.c - what the library without LLVM's backend has in place of it.  Target machines and texts of LLVM's are asked
 * for in the course of a request, which then goes to the other library; nothing comes as far as to call the rest. */
#include "codegen/driver/driver.h"
#include "codegen/front/front.h"

#include <llvm-c/Analysis.h>
#include <llvm-c/IRReader.h>
#include <llvm-c/Linker.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>

atomic_uint opjit_cg_wanted;

opjit_status opjit_cg_machine(const cg_target *cpu, const rt_target *target, uint32_t level, LLVMTargetMachineRef *out,
                              opjit_error *error)
{
    (void)target;
    (void)level;
    *out = NULL;
    atomic_fetch_add(&opjit_cg_wanted, 1);
    return opjit_rt_refuse(error, OPJIT_UNAVAILABLE, "{LLVM}'s backend {%s} is in another library", cpu->name);
}

bool opjit_cg_emit_file(const cg_target *cpu, LLVMTargetMachineRef machine, LLVMModuleRef module,
                        LLVMCodeGenFileType type, char **text, LLVMMemoryBufferRef *out)
{
    (void)cpu;
    (void)machine;
    (void)module;
    (void)type;
    *text = NULL;
    *out = NULL;
    return true;
}

LLVMBool LLVMParseIRInContext2(LLVMContextRef context, LLVMMemoryBufferRef buffer, LLVMModuleRef *module, char **text)
{
    (void)context;
    (void)buffer;
    *module = NULL;
    *text = NULL;
    atomic_fetch_add(&opjit_cg_wanted, 1);
    return 1;
}

LLVMBool LLVMLinkModules2(LLVMModuleRef into, LLVMModuleRef from)
{
    (void)into;
    (void)from;
    return 1;
}

LLVMBool LLVMVerifyModule(LLVMModuleRef module, LLVMVerifierFailureAction action, char **text)
{
    (void)module;
    (void)action;
    *text = NULL;
    return 1;
}

LLVMErrorRef LLVMRunPasses(LLVMModuleRef module, const char *passes, LLVMTargetMachineRef machine,
                           LLVMPassBuilderOptionsRef options)
{
    (void)module;
    (void)passes;
    (void)machine;
    (void)options;
    return NULL;
}

LLVMPassBuilderOptionsRef LLVMCreatePassBuilderOptions(void)
{
    return NULL;
}

void LLVMDisposePassBuilderOptions(LLVMPassBuilderOptionsRef options)
{
    (void)options;
}

LLVMTargetDataRef LLVMCreateTargetDataLayout(LLVMTargetMachineRef machine)
{
    (void)machine;
    return NULL;
}

void LLVMSetModuleDataLayout(LLVMModuleRef module, LLVMTargetDataRef layout)
{
    (void)module;
    (void)layout;
}

void LLVMDisposeTargetData(LLVMTargetDataRef layout)
{
    (void)layout;
}

void LLVMDisposeTargetMachine(LLVMTargetMachineRef machine)
{
    (void)machine;
}

/* Registering backends. */
#define ABSENT(target) \
    void LLVMInitialize##target##TargetInfo(void) \
    { \
    } \
    void LLVMInitialize##target##Target(void) \
    { \
    } \
    void LLVMInitialize##target##TargetMC(void) \
    { \
    } \
    void LLVMInitialize##target##AsmPrinter(void) \
    { \
    }
ABSENT(X86)
ABSENT(AArch64)
ABSENT(RISCV)
ABSENT(NVPTX)
ABSENT(AMDGPU)
ABSENT(SPIRV)

void LLVMInitializeX86AsmParser(void)
{
}
