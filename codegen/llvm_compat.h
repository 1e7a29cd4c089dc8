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

/* The latest intrinsics of a function: LLVM makes an intrinsic's name anew each time that it is asked for one. */
enum { COMPAT_TYPES = 2, COMPAT_LATEST = 4 };
typedef struct compat_intrinsics {
    struct {
        const char *name; /* the caller's own text; NULL: none */
        LLVMTypeRef types[COMPAT_TYPES], type;
        LLVMValueRef function;
    } list[COMPAT_LATEST];
    unsigned next;
} compat_intrinsics;

/* The declaration and the type of the intrinsic `name`, a constant text, overloaded on types. */
static inline LLVMValueRef compat_intrinsic(compat_intrinsics *latest, LLVMModuleRef module, LLVMContextRef llvm,
                                            const char *name, const LLVMTypeRef *types, size_t count,
                                            LLVMTypeRef *out_type)
{
    LLVMTypeRef own[COMPAT_TYPES] = { NULL };
    unsigned i = 0;
    for (size_t k = 0; k < count; k++)
        own[k] = types[k];
    while (i < COMPAT_LATEST && (latest->list[i].name != name || memcmp(latest->list[i].types, own, sizeof own) != 0))
        i++;
    if (i == COMPAT_LATEST) {
        const unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
        i = latest->next++ % COMPAT_LATEST;
        latest->list[i].name = name;
        memcpy(latest->list[i].types, own, sizeof own);
        latest->list[i].type = LLVMIntrinsicGetType(llvm, id, own, count);
        latest->list[i].function = LLVMGetIntrinsicDeclaration(module, id, own, count);
    }
    *out_type = latest->list[i].type;
    return latest->list[i].function;
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
