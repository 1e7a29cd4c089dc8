/* SPDX-License-Identifier: Apache-2.0 */
/* codegen.h - the only interface of code generation.  opjit does not link LLVM: when no cache has a kernel it loads
 * opjit-codegen, which exports the single function opjit_codegen_query and returns this table.  Both sides are built
 * from the same sources: build_id (IR headers, op table, LLVM version) must match, otherwise the library is refused
 * with both ids. */
#ifndef OPJIT_CODEGEN_CODEGEN_H
#define OPJIT_CODEGEN_CODEGEN_H

#include <opjit/abi.h>

#include "ir/ir.h"

#define CODEGEN_ABI 1u

typedef enum codegen_emit {
    CODEGEN_CODE = 0,
    CODEGEN_OBJECT = 1,
    CODEGEN_ASM = 2,
    CODEGEN_LLVM = 3,
    CODEGEN_PLAN = 4, /* text: what is chosen for each loop of the first variant; no code is made */
    CODEGEN_TVM_FFI = 5 /* an object: the kernel as a function of TVM FFI, beside that of OBJECT */
} codegen_emit;

/* A kernel for other programs, for OBJECT, ASM and LLVM: in addition to its stages the functions NAME, NAME_packed and
 * NAME_runs_here, the metadata, and the constants that it binds itself.  A version is the kernel for one target. */
typedef struct codegen_version {
    const ir_func *const *variants; /* as in a request */
    uint32_t variant_count;
    const rt_target *target;
    const char *name;               /* NAME if there is one version; otherwise each has a name of its own */
    const opjit_kernel_meta *meta;  /* its steps' entries are filled in */
} codegen_version;

typedef struct codegen_data {
    const void *data;
    uint64_t bytes;
} codegen_data;

typedef struct codegen_kernel {
    const codegen_version *versions; /* best first: the first one that runs is chosen when a program is loaded */
    uint32_t version_count;          /* all of one architecture and with one interface */
    const codegen_data *constants;   /* by constant buffer */
    bool weights_apart;              /* constants are no part of it: a pointer to all of them, each at the next multiple
                                        of 64, follows the buffers; their data are NULL */
} codegen_kernel;

/* Code of functions that kernels share, kept by whoever loads codegen: for other processes, since this one keeps the
 * latest ones by itself.  A key holds everything that the code depends on, and begins with the function's name and a
 * NUL.  Both are called on the threads that compile, by several at a time. */
typedef struct codegen_functions {
    void *user;
    /* Puts what is kept for the key into *out, which is empty and stays so if it is not kept or can't be had. */
    void (*find)(void *user, const void *key, size_t key_size, rt_bytes *out);
    void (*keep)(void *user, const void *key, size_t key_size, const void *bytes, size_t size);
} codegen_functions;

typedef struct codegen_request {
    const ir_func *const *variants; /* scheduled and laid out; every stage of every variant becomes one function */
    uint32_t variant_count;
    const rt_target *target;
    uint32_t level;                 /* an opjit_level other than AUTO */
    codegen_emit emit;
    const char *name;               /* [A-Za-z0-9_]+; stage functions are NAME_v<variant>_s<stage> */
    const opjit_allocator *allocator;
    bool verify;                    /* LLVM's verifier reads the module first; for tests */
    bool llvm_only;                 /* all code is LLVM's, although some could be written without it; for tests */
    const atomic_bool *cancel;      /* set by another thread: CANCELLED before the next step; NULL: nobody may */
    const codegen_kernel *kernel;   /* NULL: stages only; else variants and target are the versions' */
    const opjit_executor *executor; /* CODE: stages are made on its threads, in groups that don't depend on how many
                                       there are; NULL: on this one */
    const codegen_functions *functions; /* NULL: shared functions are kept for the process alone */
    const uint32_t *node_numbers;   /* PLAN: by node of the first variant, its number in the IR's text + 1; NULL: loops
                                       have no names */
} codegen_request;

typedef struct codegen_result {
    rt_bytes bytes;                 /* CODE: flat, position-independent, relocated code and constants without
                                       undefined symbols, to be placed at a multiple of 4096; else the file's bytes */
    uint64_t *entries;              /* CODE: each stage's offset, variants in order; from the request's allocator */
    uint32_t entry_count;
    uint32_t modules, direct;       /* CODE: modules of LLVM's; those that its backend did not see */
    char refused[96];               /* of the first one that it did see, where it need not have: function and reason */
    double build_ms, emit_ms, link_ms;
} codegen_result;

/* Combines objects of kernels, with one registry. */
typedef struct codegen_member {
    const char *name;            /* NAME: its file is NAME.o */
    const char *const *versions; /* names of the versions, best first: VERSION_kernel are their records */
    uint32_t version_count;
    const void *object;          /* the output of OBJECT */
    size_t bytes;
} codegen_member;

typedef enum codegen_library_kind { CODEGEN_ARCHIVE = 0, CODEGEN_SHARED = 1 } codegen_library_kind;

typedef struct codegen_library {
    const char *name;              /* the registry is NAME_registry, the shared library libNAME.so */
    const codegen_member *members; /* by name, in the order of strcmp */
    uint32_t member_count;
    codegen_library_kind kind;
    const rt_target *target;       /* any of the members' */
    const opjit_allocator *allocator;
} codegen_library;

typedef struct opjit_codegen {
    uint32_t abi;                   /* CODEGEN_ABI */
    uint32_t size;                  /* sizeof(opjit_codegen) */
    const char *build_id;           /* OPJIT_BUILD_ID */
    const char *llvm_version;       /* "22.1.8" */
    /* Emits the request into *out, which the caller frees with opjit_rt_bytes_free and the allocator.  Thread-safe. */
    opjit_status (*compile)(const codegen_request *request, codegen_result *out, opjit_error *error);
    /* Makes this thread's LLVM state for *target, so that the next compile is warm. */
    opjit_status (*warm)(const rt_target *target, const opjit_allocator *allocator, opjit_error *error);
    /* Makes a library file of objects.  *out is empty, and freed by the caller with the allocator. */
    opjit_status (*library)(const codegen_library *request, rt_bytes *out, opjit_error *error);
} opjit_codegen;

/* The table of a library with these functions, for files that include opjit_build_id.h. */
#define CODEGEN_TABLE(compile_, warm_, library_) \
    { CODEGEN_ABI, sizeof(opjit_codegen), OPJIT_BUILD_ID, OPJIT_LLVM_VERSION, compile_, warm_, library_ }

typedef const opjit_codegen *(*opjit_codegen_query_fn)(uint32_t abi);
/* NULL where abi is not CODEGEN_ABI. */
OPJIT_API const opjit_codegen *opjit_codegen_query(uint32_t abi);

#endif
