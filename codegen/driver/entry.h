/* SPDX-License-Identifier: Apache-2.0 */
/* entry.h - what the functions of a kernel's object share: reading the metadata, and code for arrays of pointers. */
#ifndef OPJIT_CODEGEN_DRIVER_ENTRY_H
#define OPJIT_CODEGEN_DRIVER_ENTRY_H

#include <stdio.h>

#include "codegen/driver/driver.h"

enum {
    NAME_SIZE = 288,
    MANY = 64 /* buffers */
};

/* --- reading the metadata ----------------------------------------------------------------------------------------- */
static inline const opjit_step_info *step_at(const opjit_kernel_meta *m, uint32_t index)
{
    return (const opjit_step_info *)((const char *)m + m->step_info) + index;
}

static inline const opjit_variant_info *variant_at(const opjit_kernel_meta *m, uint32_t index)
{
    return (const opjit_variant_info *)((const char *)m + m->variant_info) + index;
}

static inline const opjit_param_info *param_at(const opjit_kernel_meta *m, uint32_t index)
{
    return (const opjit_param_info *)((const char *)m + m->param_info) + index;
}

static inline uint32_t bindings(const opjit_kernel_meta *m)
{
    return m->inputs + m->outputs;
}

/* Whether the caller gives the constants. */
static inline bool has_weights(const codegen_kernel *k)
{
    return k->weights_apart && k->versions[0].meta->constants != 0;
}

/* Whether any version needs one; all versions have the same arguments. */
static inline bool has_workspace(const codegen_kernel *k)
{
    uint64_t sizes = 0;
    for (uint32_t i = 0; i < k->version_count; i++)
        sizes |= k->versions[i].meta->shared_size | k->versions[i].meta->scratch_size;
    return sizes != 0;
}

/* Whether sizes are parameters. */
static inline bool has_dims(const opjit_kernel_meta *m)
{
    return m->dims != 0;
}

/* --- functions ---------------------------------------------------------------------------------------------------- */
static inline LLVMValueRef begin(cg_func *f, const char *kernel, const char *suffix, LLVMTypeRef type)
{
    char name[NAME_SIZE];
    snprintf(name, sizeof(name), "%s%s", kernel, suffix);
    f->fn = LLVMAddFunction(f->module, name, type);
    LLVMSetLinkage(f->fn, LLVMInternalLinkage);
    opjit_cg_attributes(f, f->fn);
    LLVMPositionBuilderAtEnd(f->b, LLVMAppendBasicBlockInContext(f->llvm, f->fn, ""));
    return f->fn;
}

/* Leaves out passes over the function, which copies so many pointers that LLVM's schedulers, of more than linear time,
 * would take seconds for thousands. */
static inline void leave_plain(cg_func *f, LLVMValueRef fn, uint32_t pointers)
{
    if (pointers <= MANY)
        return;
    LLVMAddAttributeAtIndex(fn, LLVMAttributeFunctionIndex, compat_attribute(f->llvm, "noinline", 0));
    LLVMAddAttributeAtIndex(fn, LLVMAttributeFunctionIndex, compat_attribute(f->llvm, "optnone", 0));
}

static inline LLVMValueRef at(cg_func *f, LLVMTypeRef type, LLVMValueRef base, uint64_t index)
{
    return opjit_cg_offset(f, type, base, opjit_cg_number(f, 64, 1, index));
}

static inline LLVMValueRef load_pointer(cg_func *f, LLVMValueRef buffers, uint32_t index)
{
    return LLVMBuildLoad2(f->b, f->type.ptr, at(f, f->type.ptr, buffers, index), "");
}

/* entry_packed.c: NAME_packed of a version, of whose stages these are the functions, by step. */
LLVMValueRef opjit_cg_emit_packed(cg_func *f, const cg_kernel *k, const codegen_version *version,
                                  const LLVMValueRef *stages);

#endif
