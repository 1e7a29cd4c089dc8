/* SPDX-License-Identifier: Apache-2.0 */
/* codegen_direct.h - modules as objects without LLVM's backend. */
#ifndef OPJIT_CODEGEN_DIRECT_CODEGEN_DIRECT_H
#define OPJIT_CODEGEN_DIRECT_CODEGEN_DIRECT_H

#include <llvm-c/Core.h>

#include "runtime/target/target.h"

#define CG_DIRECT_NO_MEMORY "no memory"

/* Whether code for the target can be written here. */
bool opjit_cg_direct_knows(const rt_target *target);

/* Why a module is LLVM's. */
typedef struct cg_refusal {
    const char *why;      /* NULL: it is not */
    const char *function; /* the module's, in which; "": the module itself */
} cg_refusal;

/* Appends the object of a module for x86-64 to *object, which is initialised and empty.  false: something in the module
 * is unknown, or there is no memory (NO_MEMORY); *refusal says what, *object is empty, and the module is LLVM's. */
bool opjit_cg_direct(LLVMModuleRef module, const rt_target *target, const opjit_allocator *allocator, rt_bytes *object,
                     cg_refusal *refusal);

#endif
