/* SPDX-License-Identifier: Apache-2.0 */
/* attributes.c - what LLVM is told about each function: processor, features, width of vectors; and a stage's type. */
#include "codegen/cg.h"

#include <stdio.h>

static void add_text(cg_func *f, LLVMValueRef fn, const char *key, const char *value)
{
    LLVMAddAttributeAtIndex(
        fn, LLVMAttributeFunctionIndex,
        LLVMCreateStringAttribute(f->llvm, key, (unsigned)strlen(key), value, (unsigned)strlen(value)));
}

/* LLVM's name. */
static const char *cpu_name(const cg_target *cpu, const rt_target *target)
{
    return cpu->cpu ? cpu->cpu(target) : cpu->machine_cpu;
}

void opjit_cg_attributes(cg_func *f, LLVMValueRef fn)
{
    char features[1024], width[16];
    opjit_rt_target_features_text(f->target, features, sizeof(features));
    snprintf(width, sizeof(width), "%u", f->target->vector_bytes * 8);
    LLVMAddAttributeAtIndex(fn, LLVMAttributeFunctionIndex, compat_attribute(f->llvm, "nounwind", 0));
    if (f->cpu->vscale && f->cpu->vscale(f->target)) /* the minimum, in the upper half; no maximum */
        LLVMAddAttributeAtIndex(fn, LLVMAttributeFunctionIndex,
                                compat_attribute(f->llvm, "vscale_range", (uint64_t)f->cpu->vscale(f->target) << 32));
    add_text(f, fn, "frame-pointer", "none");
    add_text(f, fn, "prefer-vector-width", width);
    add_text(f, fn, "target-cpu", cpu_name(f->cpu, f->target));
    add_text(f, fn, "target-features", features);
    add_text(f, fn, "tune-cpu", f->target->tune);
}

LLVMTypeRef opjit_cg_stage_type(const cg_func *f)
{
    LLVMTypeRef types[6] = { f->type.ptr, f->type.ptr, f->type.ptr, f->type.ptr, f->type.i64, f->type.i64 };
    return LLVMFunctionType(f->type.none, types, 6, 0);
}
