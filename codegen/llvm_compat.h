/* SPDX-License-Identifier: Apache-2.0 */
/* llvm_compat.h - everything that depends on LLVM's version, so that there is one place to change. */
#ifndef OPJIT_CODEGEN_LLVM_COMPAT_H
#define OPJIT_CODEGEN_LLVM_COMPAT_H

#include <llvm-c/Core.h>
#include <llvm/Config/llvm-config.h>

#include <stdbool.h>
#include <string.h>

#if LLVM_VERSION_MAJOR != 22 && LLVM_VERSION_MAJOR != 23
#error "codegen is written for LLVM 22 and 23: intrinsic names and the masked store's operands differ in others"
#endif

/* The declaration and the type of the intrinsic `name`, overloaded on types. */
static inline LLVMValueRef compat_intrinsic(LLVMModuleRef module, LLVMContextRef llvm, const char *name,
                                            LLVMTypeRef *types, size_t count, LLVMTypeRef *out_type)
{
    const unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    *out_type = LLVMIntrinsicGetType(llvm, id, types, count);
    return LLVMGetIntrinsicDeclaration(module, id, types, count);
}

/* An enum attribute; value: 0 where it takes none. */
static inline LLVMAttributeRef compat_attribute(LLVMContextRef llvm, const char *name, uint64_t value)
{
    return LLVMCreateEnumAttribute(llvm, LLVMGetEnumAttributeKindForName(name, strlen(name)), value);
}

/* The opcode is a jump's or a conditional branch's, which were one before LLVM 23. */
static inline bool compat_is_branch(LLVMOpcode op)
{
#if LLVM_VERSION_MAJOR < 23
    return op == LLVMBr;
#else
    return op == LLVMUncondBr || op == LLVMCondBr;
#endif
}

/* Whether intrinsics convert one half in an integer's bits; others convert values of the half type. */
static inline bool compat_converts_half_bits(void)
{
    return LLVM_VERSION_MAJOR < 23;
}

#endif
