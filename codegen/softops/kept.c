/* SPDX-License-Identifier: Apache-2.0 */
/* kept.c - functions of a module whose code is compiled once for the process, found by their records. */
#include "codegen/softops/kept.h"

#include <stdio.h>
#include <string.h>

cg_kept_target opjit_cg_kept_target(const rt_target *target)
{
    cg_kept_target t;
    memset(&t, 0, sizeof t);
    t.features = target->features;
    t.arch = (uint32_t)target->arch;
    t.level = target->level;
    t.vector_bytes = target->vector_bytes;
    memcpy(t.tune, target->tune, strlen(target->tune));
    return t;
}

static rt_hash hash_of(const cg_func *f, const void *record, size_t size)
{
    const struct {
        rt_hash record;
        cg_kept_target target;
    } all = { opjit_rt_hash(record, size), opjit_cg_kept_target(f->target) };
    return opjit_rt_hash(&all, sizeof all);
}

LLVMValueRef opjit_cg_kept_function(cg_func *f, const char *prefix, const void *record, size_t size, LLVMTypeRef type,
                                    cg_made **made)
{
    char digits[17] = "", name[sizeof (*made)->name];
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
        memcpy((*made)->name, name, sizeof name);
        f->tiles->first = *made;
    }
    f->failed = f->failed || !*made;
    return fn;
}
