/* SPDX-License-Identifier: Apache-2.0 */
/* kept.c - functions of a module whose code is compiled once for the process, found by their records. */
#include "codegen/softops/kept.h"

#include <stdio.h>
#include <string.h>

/* Everything that the code for a record depends on. */
static rt_hash hash_of(const cg_func *f, const void *record, size_t size)
{
    struct {
        rt_hash record;
        uint64_t features;
        uint32_t arch, level, vector_bytes, unused;
        char tune[sizeof f->target->tune];
    } all;
    memset(&all, 0, sizeof all);
    all.record = opjit_rt_hash(record, size);
    all.features = f->target->features;
    all.arch = (uint32_t)f->target->arch;
    all.level = f->target->level;
    all.vector_bytes = f->target->vector_bytes;
    memcpy(all.tune, f->target->tune, sizeof all.tune);
    return opjit_rt_hash(&all, sizeof all);
}

LLVMValueRef opjit_cg_kept_function(cg_func *f, const char *prefix, const void *record, size_t size, LLVMTypeRef type,
                                    cg_made **made)
{
    char digits[17] = "", name[64];
    const rt_hash hash = hash_of(f, record, size);
    opjit_rt_hex(hash.lo, 16, digits);
    snprintf(name, sizeof(name), "%s.%s", prefix, digits);
    LLVMValueRef fn = LLVMGetNamedFunction(f->module, name);
    *made = NULL;
    if (fn)
        return fn;
    fn = LLVMAddFunction(f->module, name, type);
    *made = ARENA_NEW(f->tiles->arena, cg_made);
    if (*made) {
        **made = (cg_made){ .next = f->tiles->first, .fn = fn, .target = f->target, .hash = hash };
        f->tiles->first = *made;
    }
    f->failed = f->failed || !*made;
    return fn;
}
