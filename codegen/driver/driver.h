/* SPDX-License-Identifier: Apache-2.0 */
/* driver.h - from a request to its bytes: modules, what objects have beside stages, and objects put together. */
#ifndef OPJIT_CODEGEN_DRIVER_DRIVER_H
#define OPJIT_CODEGEN_DRIVER_DRIVER_H

#include "codegen/cg.h"
#include "codegen/hold/hold.h"

/* function.c: survey and plan of the stage of f->ir, in the arena; the state of emission is the initial one. */
opjit_status opjit_cg_prepare(cg_func *f);
opjit_status opjit_cg_stage(cg_func *f, const char *name); /* function.c: the stage of f->ir, one function */
/* single_stage.c: the function that stages are taken from; and a stage as a function of its own, valid until the next
 * one. */
opjit_status opjit_cg_whole_init(cg_whole *w, const ir_func *ir, rt_arena *arena, opjit_error *error);
opjit_status opjit_cg_single(cg_whole *w, ir_ref stage, rt_arena *arena, ir_func *out, opjit_error *error);
uint32_t opjit_cg_stage_size(cg_whole *w, ir_ref stage); /* nodes that it reaches */

/* equal_stages.c: the stages of a function's variants, equal ones once. */
typedef struct cg_made {
    const void *text; /* everything that its code depends on; NULL: none */
    size_t size;
    uint32_t stage;
} cg_made;
typedef struct cg_shared {
    rt_arena *arena;
    uint32_t *same, count; /* by stage, all variants in order: the first equal one, or itself */
    cg_made *made;         /* by hash */
    uint32_t mask;         /* 0: there is one variant, whose stages are not compared */
} cg_shared;
bool opjit_cg_shared_init(cg_shared *s, rt_arena *arena, uint32_t stages, bool variants); /* false: no memory */
/* Enters f's stage; *out_made: an equal one was entered before. */
opjit_status opjit_cg_share(cg_shared *s, const cg_func *f, bool *out_made);
/* A stage that is made elsewhere. */
static inline void cg_shared_skip(cg_shared *s)
{
    s->same[s->count] = s->count;
    s->count++;
}
/* groups.c: code of large requests, some stages of each variant at a time.  make: the code of stages first to last
 * alone, whose entries are set; those of others are UINT64_MAX. */
typedef opjit_status (*cg_make_fn)(const codegen_request *request, uint32_t first, uint32_t last, codegen_result *out,
                                   opjit_error *error);
bool opjit_cg_is_large(const codegen_request *request);
opjit_status opjit_cg_compile_groups(const codegen_request *request, cg_make_fn make, codegen_result *out,
                                     opjit_error *error);
/* Refuses code in which a stage has no entry. */
opjit_status opjit_cg_check_entries(const codegen_result *code, opjit_error *error);
/* object_code.c: code and entries from the object that has these stages. */
opjit_status opjit_cg_code(const codegen_request *request, const cg_shared *stages, rt_arena *arena, const void *object,
                           size_t size, codegen_result *out, opjit_error *error);

/* entry.c: what objects have in addition to stages.  Call begin, then for each version emit its stages and call
 * version, then end. */
typedef struct cg_entries {
    LLVMValueRef packed, typed, runs; /* functions of one version */
} cg_entries;
typedef struct cg_kernel {
    const codegen_kernel *request;
    const char *name;
    cg_entries *versions;
    LLVMValueRef *constants;
    LLVMTypeRef packed_type, typed_type, runs_type;
} cg_kernel;
opjit_status opjit_cg_kernel_begin(cg_func *f, const codegen_kernel *request, const char *name, cg_kernel *out);
/* Its constant buffers as data of the module. */
opjit_status opjit_cg_kernel_constants(cg_func *f, const codegen_kernel *request, const char *name, LLVMValueRef **out);
opjit_status opjit_cg_kernel_version(cg_func *f, cg_kernel *k, uint32_t version);
opjit_status opjit_cg_kernel_end(cg_func *f, cg_kernel *k);
/* A library's registry with the distances to these symbols. */
opjit_status opjit_cg_registry(cg_func *f, const char *name, const rt_bytes *registry, const char *const *kernels,
                               uint32_t count);
/* cpu_check.c: an internal function that says whether the machine it runs on has what target needs.  x86-64: int(void);
 * AArch64: int(uint64_t, const void *), with what a loader passes to a resolver; no others. */
LLVMValueRef opjit_cg_runs_here(cg_func *f, const rt_target *target, const char *name);

/* library.c: objects combined into a library. */
opjit_status opjit_cg_library(const codegen_library *request, rt_bytes *out, opjit_error *error);
/* The object of a registry, whose entries refer to symbols of other objects; by entry. */
opjit_status opjit_cg_registry_object(const codegen_library *request, const rt_bytes *registry,
                                      const char *const *kernels, uint32_t count, rt_bytes *out, opjit_error *error);

/* llvm_state.c: LLVM's state of this thread.  The caller owns a fresh machine. */
opjit_status opjit_cg_machine(const cg_target *cpu, const rt_target *target, uint32_t level, LLVMTargetMachineRef *out,
                              opjit_error *error);
/* LLVM's emission; true: it failed. */
bool opjit_cg_emit_file(const cg_target *cpu, LLVMTargetMachineRef machine, LLVMModuleRef module,
                        LLVMCodeGenFileType type, char **text, LLVMMemoryBufferRef *out);
/* llvm_module.c: a module that is being made, and the object of it. */
typedef struct cg_llvm {
    LLVMTargetMachineRef machine;
    LLVMContextRef context;
    LLVMModuleRef module;
    LLVMBuilderRef b, entry;
    LLVMMemoryBufferRef object;
    opjit_error diagnostic; /* the first error that LLVM reported */
} cg_llvm;
/* *m is zero, must stay where it is, and is closed in any case. */
opjit_status opjit_cg_llvm_open(cg_llvm *m, const cg_target *cpu, const rt_target *target, uint32_t level,
                                const char *name, opjit_error *error);
void opjit_cg_llvm_close(cg_llvm *m, const cg_target *cpu);
/* A function's state with all that depends on the module and the target. */
cg_func opjit_cg_llvm_function(const cg_llvm *m, const cg_target *cpu, const rt_target *target);
/* LLVM's message (freed; NULL: none) or diagnostic, if there is one, as a status. */
opjit_status opjit_cg_llvm_status(cg_llvm *m, bool failed, const char *what, char *text, opjit_error *error);
opjit_status opjit_cg_llvm_emit(cg_llvm *m, const cg_target *cpu, LLVMCodeGenFileType type, opjit_error *error);
/* module.c.  CANCELLED if another thread has cancelled the job: asked before each step that may take long, since no step
 * can be interrupted. */
opjit_status opjit_cg_check_cancelled(const codegen_request *request, opjit_error *error);
/* tile_code.c: gives the tiles that the module calls their code: kept by the process, or compiled at LLVM's default
 * level. */
opjit_status opjit_cg_put_tiles(const cg_tiles *tiles, cg_llvm *m, const cg_target *cpu, const codegen_request *request,
                                opjit_error *error);
/* explain.c: the plans of the request's first variant at that level, appended to *out. */
opjit_status opjit_cg_explain(const codegen_request *request, uint32_t level, rt_bytes *out, opjit_error *error);
opjit_status opjit_cg_compile(const codegen_request *request, codegen_result *out, opjit_error *error); /* module.c */

#endif
