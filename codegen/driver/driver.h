/* SPDX-License-Identifier: Apache-2.0 */
/* driver.h - from a request to its bytes: modules, what objects have beside stages, and objects put together. */
#ifndef OPJIT_CODEGEN_DRIVER_DRIVER_H
#define OPJIT_CODEGEN_DRIVER_DRIVER_H

#include "codegen/cg.h"
#include "codegen/hold/hold.h"

#include <opjit/opjit.h>

/* function.c: survey and plan of the stage of f->ir, in the arena; the state of emission is the initial one. */
opjit_status opjit_cg_prepare(cg_func *f);
opjit_status opjit_cg_stage(cg_func *f, const char *name); /* function.c: the stage of f->ir, one function */
/* The same for a stage that has the code of another one: calls it with a table of this stage's pointers. */
opjit_status opjit_cg_stage_call(cg_func *f, const char *name, LLVMValueRef code);

/* A stage as a function of its own. */
typedef struct cg_single {
    ir_func ir;              /* with the nodes and tensors that the stage reaches */
    bool *aliased;           /* by tensor: see cg_func */
    ir_ref *nodes;           /* by node: see cg_func */
    uint32_t variant, number; /* of the stage in its variant */
    struct cg_single *first; /* the first stage that has this one's code */
    struct cg_single *same;  /* the first one that has its places, too: one function is enough */
    struct cg_single *next, *last; /* a code's stages: the next one; first: the last one */
    bool shared;             /* first: the code is for tables of pointers, which differ from stage to stage */
} cg_single;
/* Whether only the place in a call's memory differs from layer to layer. */
static inline bool cg_has_place(const ir_tensor *t)
{
    return t->role == IR_IN || t->role == IR_OUT || t->role == IR_CONSTANT || t->role == IR_TEMP ||
           t->role == IR_KEPT;
}
/* All stages of a request's variants, or of a version's. */
typedef struct cg_stages {
    cg_single *at;            /* variants in order */
    uint32_t count;
    const uint32_t *variants; /* the number of each variant's first stage, and their end */
    uint32_t variant_count;
    cg_single **codes;        /* those stages that are the first ones of their code */
    uint32_t code_count;
} cg_stages;
/* The function that stages belong to, and what is computed for it once. */
typedef struct cg_whole {
    const ir_func *ir;
    uint32_t *node, *tensor;   /* number in the current stage; 0: the stage doesn't reach it */
    ir_ref *nodes;             /* the inverse: by number, from 1 to node_count */
    uint32_t *tensors;
    uint32_t node_count, tensor_count;
    ir_ref *path;              /* from an expression to the current node */
    bool *aliased;             /* by tensor: an output shares its memory, or may */
} cg_whole;
/* single_stage.c: that function; and a stage of it, in the arena. */
opjit_status opjit_cg_whole_init(cg_whole *w, const ir_func *ir, rt_arena *arena, opjit_error *error);
opjit_status opjit_cg_single(cg_whole *w, ir_ref stage, rt_arena *arena, cg_single *out, opjit_error *error);
/* equal_stages.c: in the arena.  Which stages are one: none; those whose code is equal; the same, but each has a
 * function, as it is found by its name. */
typedef enum cg_equal { CG_EQUAL_APART, CG_EQUAL_ONCE, CG_EQUAL_NAMED } cg_equal;
opjit_status opjit_cg_stages_init(cg_stages *stages, const ir_func *const *variants, uint32_t count, cg_equal equal,
                                  rt_arena *arena, opjit_error *error);
/* Some of a request's codes. */
typedef struct cg_some {
    uint32_t number;
    uint32_t first, last;      /* codes */
    struct cg_tile_set *tiles; /* NULL: the module has its tiles itself */
} cg_some;
/* groups.c: code of large requests, some codes at a time.  make: the object of these codes. */
typedef opjit_status (*cg_make_fn)(const codegen_request *request, const cg_stages *stages, const cg_some *some,
                                   codegen_result *out, opjit_error *error);
bool opjit_cg_is_large(const codegen_request *request, const cg_stages *stages);
opjit_status opjit_cg_compile_groups(const codegen_request *request, const cg_stages *stages, cg_make_fn make,
                                     codegen_result *out, opjit_error *error);
/* object_code.c: the code of an object; enters where the functions of stages are that it has.  outside: see link.h. */
opjit_status opjit_cg_code(const codegen_request *request, const cg_stages *stages, const void *object, size_t size,
                           const cg_outside *outside, codegen_result *out, opjit_error *error);
/* Stages that are one have one entry.  Refuses code in which a stage has none. */
opjit_status opjit_cg_end_entries(const cg_stages *stages, codegen_result *out, opjit_error *error);

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
/* For code that runs before the features are known. */
void opjit_cg_base_features(rt_target *t);
/* tvm_ffi.c: __tvm_ffi_NAME, which calls another object's NAME_packed. */
opjit_status opjit_cg_tvm_ffi(cg_func *f, const codegen_kernel *kernel, const char *name);
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

enum { CG_LEVEL_TILE = OPJIT_LEVEL_PEAK + 1 }; /* a machine's third level, for tiles: LLVM's level less */
/* llvm_state.c: LLVM's state of this thread.  The caller owns a fresh machine. */
opjit_status opjit_cg_machine(const cg_target *cpu, const rt_target *target, uint32_t level, LLVMTargetMachineRef *out,
                              opjit_error *error);
/* LLVM's emission; true: it failed. */
bool opjit_cg_emit_file(const cg_target *cpu, LLVMTargetMachineRef machine, LLVMModuleRef module,
                        LLVMCodeGenFileType type, char **text, LLVMMemoryBufferRef *out);
/* llvm_module.c.  CANCELLED if another thread has cancelled the job: asked before each step that may take long, since
 * no step can be interrupted. */
opjit_status opjit_cg_check_cancelled(const codegen_request *request, opjit_error *error);
/* llvm_module.c: a module that is being made, and the object of it. */
typedef struct cg_llvm {
    const cg_target *cpu;
    const rt_target *target;
    uint32_t level;
    LLVMTargetMachineRef machine; /* NULL: nothing has needed one yet */
    LLVMContextRef context;
    LLVMModuleRef module;
    LLVMBuilderRef b, entry;
    LLVMMemoryBufferRef object;
    opjit_error diagnostic; /* the first error that LLVM reported */
} cg_llvm;
/* *m is zero, must stay where it is, and is closed in any case. */
opjit_status opjit_cg_llvm_open(cg_llvm *m, const cg_target *cpu, const rt_target *target, uint32_t level,
                                const char *name, opjit_error *error);
void opjit_cg_llvm_close(cg_llvm *m);
/* Makes sure that there is m->machine, for LLVM's passes and its backend. */
opjit_status opjit_cg_llvm_machine(cg_llvm *m, opjit_error *error);
/* A function's state with all that depends on the module and the target. */
cg_func opjit_cg_llvm_function(const cg_llvm *m, const cg_target *cpu, const rt_target *target);
/* LLVM's message (freed; NULL: none) or diagnostic, if there is one, as a status. */
opjit_status opjit_cg_llvm_status(cg_llvm *m, bool failed, const char *what, char *text, opjit_error *error);
opjit_status opjit_cg_llvm_emit(cg_llvm *m, LLVMCodeGenFileType type, opjit_error *error);
/* tile_code.c: gives the tiles that the module calls their code: kept by the process, written by the target, or
 * compiled by LLVM. */
opjit_status opjit_cg_put_tiles(const cg_tiles *tiles, cg_llvm *m, const cg_target *cpu, const codegen_request *request,
                                opjit_error *error);
/* explain.c: the plans of the request's first variant at that level, appended to *out. */
opjit_status opjit_cg_explain(const codegen_request *request, const cg_stages *stages, uint32_t level, rt_bytes *out,
                              opjit_error *error);
opjit_status opjit_cg_compile(const codegen_request *request, codegen_result *out, opjit_error *error); /* module.c */
/* module.c: whether code for the target, at level quick, mostly needs no backend of LLVM's. */
bool opjit_cg_writes(const rt_target *target);
opjit_status opjit_cg_warm(const rt_target *target, const opjit_allocator *allocator, opjit_error *error); /* warm.c */

#endif
