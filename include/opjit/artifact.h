/* SPDX-License-Identifier: Apache-2.0 */
/* opjit/artifact.h - kernels compiled ahead of time: making them, and finding them in an application.
 *
 * Who ships kernels makes objects, headers and libraries of them (opjit-codegen is needed):
 *
 *     opjit_artifact_create(context, &options, &artifact, &error);          // for which targets
 *     opjit_artifact_add_operator(artifact, op, &compile, &error);          // compile.name: the function's name
 *     opjit_artifact_get(artifact, 0, OPJIT_ARTIFACT_OBJECT, &data, &bytes, &error);    // write it to NAME.o
 *
 * The program does the same for models: `opjit compile`.  Who uses kernels calls the functions that the generated
 * header declares, or finds kernels by name, which needs opjit-runtime alone:
 *
 *     opjit_library_open(context, "/usr/lib/app/kernels.so", &library, &error);
 *     opjit_library_find(library, "causal_mask", &kernel, &error);
 *     opjit_kernel_call(kernel, &call, &error);
 *
 * Each comment ends with [threads, since]. */
#ifndef OPJIT_ARTIFACT_H
#define OPJIT_ARTIFACT_H

#include <opjit/opjit.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- making ------------------------------------------------------------------------------------------------------- */
/* Kernels to be shipped, for this CPU or any other: objects and texts for other programs.  For each kernel an object
 * has the functions
 *
 *     void NAME(const T *in0, ..., U *out0, ..., params ..., void *workspace)
 *     void NAME_packed(void *const *buffers, const uint64_t *params, void *workspace)
 *     int NAME_runs_here(void)
 *
 * its stages, and the metadata of abi.h.  Nothing in it is undefined or writable.  The generated header is the manual:
 * shapes, alignment, workspace, what may be in place.  The same kernels, targets, level and LLVM give the same bytes.
 * Several targets make several versions of every kernel.  NAME is then the first version, from the one with the most
 * features on, that the machine can run: an indirect function, chosen once by the dynamic loader (x86-64 and glibc).
 * An artifact is used by one thread at a time, and its context outlives it. */
typedef struct opjit_artifact opjit_artifact;
#define OPJIT_ARTIFACT_MAX_TARGETS 16u

/* What is made, and for whom.  Since 0.1. */
typedef struct opjit_artifact_options {
    uint32_t struct_size;       /* bytes; OPJIT_ARTIFACT_OPTIONS_INIT sets it */
    uint32_t target_count;      /* targets in the array, up to OPJIT_ARTIFACT_MAX_TARGETS; 0: the context's */
    const char *const *targets; /* target strings of one architecture, borrowed by opjit_artifact_create; NULL where the
                                   count is 0 */
    const char *name;           /* of the libraries, a name as of a kernel: NAME_registry is their list of kernels;
                                   NULL: "kernels" */
    uint32_t flags;             /* OPJIT_ARTIFACT_WEIGHTS_APART or 0 */
    uint32_t reserved;          /* 0 */
} opjit_artifact_options;
#define OPJIT_ARTIFACT_OPTIONS_INIT { sizeof(opjit_artifact_options), 0, NULL, NULL, 0, 0 }

/* The constants that a kernel reads, or what was made of them when it was added, are no part of the object, but an
 * output of their own (OPJIT_ARTIFACT_WEIGHTS), which belongs to that object alone: targets differ in what is made.  A
 * kernel that has such takes a pointer to these bytes, at a multiple of 64, behind its parameters: const void *weights;
 * of NAME_packed it is the last of the buffers.  For CPUs, and not for libraries (UNSUPPORTED).  Since 0.1. */
#define OPJIT_ARTIFACT_WEIGHTS_APART 1u

/* Whether a kernel may have this name: a C identifier of at most 63 characters that is no word of C or C++, no function
 * of the C library, and neither begins with an underscore nor has two in a row.  INVALID_ARGUMENT: it may not.
 * [any thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_artifact_check_name(const char *name, opjit_error *error);

/* An empty artifact in *out_artifact, which the caller destroys.  options may be NULL and are borrowed.
 * Errors: INVALID_ARGUMENT (a name, target or flag that is wrong, targets that can't be told apart), UNSUPPORTED
 * (several targets where one machine has one version, weights apart for a GPU), LIMIT, OUT_OF_MEMORY.
 * [any thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_artifact_create(opjit_context *context,
                                                             const opjit_artifact_options *options,
                                                             opjit_artifact **out_artifact, opjit_error *error);

/* Frees the artifact and all that opjit_artifact_get gave; NULL is fine.  [one thread, 0.1] */
OPJIT_API void opjit_artifact_destroy(opjit_artifact *artifact);

/* Adds the kernel of an operator.  options: name is needed, target has to be NULL; level AUTO is peak here.  Everything
 * is copied or retained, constants too, so that op may be released.
 * Errors: INVALID_ARGUMENT (a name that is used already, also by another kernel's NAME_packed ...), UNSUPPORTED (a
 * custom operator, which is a function of this process), OUT_OF_MEMORY.  [one thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_artifact_add_operator(opjit_artifact *artifact, opjit_operator *op,
                                                                   const opjit_compile_options *options,
                                                                   opjit_error *error);

/* Adds the kernel of a graph, likewise, with the errors of opjit_compile_graph.  Its buffers are called as the Name of
 * an edge at its inputs and outputs says, in the header as far as C can have such a parameter.  [one thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_artifact_add_graph(opjit_artifact *artifact, const DML_GRAPH_DESC *desc,
                                                                const opjit_compile_options *options,
                                                                opjit_error *error);

/* Kernels added so far; 0 for NULL.  [one thread, 0.1] */
OPJIT_API uint32_t opjit_artifact_count(const opjit_artifact *artifact);

/* The name of kernel `index`, counted in the order of adding; NULL: there is no such kernel.  The artifact's.
 * [one thread, 0.1] */
OPJIT_API const char *opjit_artifact_name(const opjit_artifact *artifact, uint32_t index);

#define OPJIT_ARTIFACT_NONE UINT32_MAX

/* The index of the kernel of that name; OPJIT_ARTIFACT_NONE: there is none, also for NULL.  The time it takes does not
 * depend on the number of kernels.  [one thread, 0.1] */
OPJIT_API uint32_t opjit_artifact_find(const opjit_artifact *artifact, const char *name);

/* What can be made of kernels.  Numbers are frozen.  Since 0.1. */
typedef enum opjit_artifact_kind {
    OPJIT_ARTIFACT_OBJECT = 1,  /* .o */
    OPJIT_ARTIFACT_HEADER = 2,  /* .h: C11 and C++17, needs the C library's headers alone */
    OPJIT_ARTIFACT_LLVM = 3,    /* .ll */
    OPJIT_ARTIFACT_ASM = 4,     /* .s */
    OPJIT_ARTIFACT_IR = 5,      /* .ir: opjit's own, as it goes to code generation */
    OPJIT_ARTIFACT_JSON = 6,    /* .json: what the header says, for programs */
    OPJIT_ARTIFACT_ARCHIVE = 7, /* .a of all kernels, with their registry */
    OPJIT_ARTIFACT_SHARED = 8,  /* .so of the same, which needs no linker to be made and no library to be loaded */
    OPJIT_ARTIFACT_LIBRARY_HEADER = 9, /* .h that includes those of all kernels and declares the registry */
    OPJIT_ARTIFACT_PTX = 10,   /* .ptx, for NVIDIA GPUs: LLVM, IR and JSON are the others; .json says how to launch it
                                  */
    OPJIT_ARTIFACT_CUBIN = 11, /* .cubin: the same, assembled by the program ptxas; UNAVAILABLE where there is none */
    OPJIT_ARTIFACT_HSACO = 12, /* .hsaco: the code object for an AMD GPU, as ROCm loads it; made without a linker */
    OPJIT_ARTIFACT_SPIRV = 13, /* .spv: SPIR-V 1.2 for OpenCL devices */
    OPJIT_ARTIFACT_WEIGHTS = 14, /* of an artifact with OPJIT_ARTIFACT_WEIGHTS_APART: the bytes that the kernel is
                                   given; none where it takes none */
    OPJIT_ARTIFACT_TVM_FFI = 15 /* .o beside OBJECT's: the kernel as a function of TVM FFI, __tvm_ffi_NAME, which checks
                                   its arguments (tensors: inputs, then outputs) and calls NAME_packed; for CPUs of
                                   64 bits, kernels without late fields and weights apart */
} opjit_artifact_kind;

/* The kinds by name, as the program's --emit and messages call them: FIRST is the first, NEXT are the others, each with
 * its name, the extension of its files (NULL: libraries have several) and its bits 1 << opjit_artifact_kind. */
#define OPJIT_ARTIFACT_NAMES(FIRST, NEXT)                                         \
    FIRST("obj", "o", 1u << OPJIT_ARTIFACT_OBJECT)                                \
    NEXT("header", "h", 1u << OPJIT_ARTIFACT_HEADER)                              \
    NEXT("lib", NULL, 1u << OPJIT_ARTIFACT_ARCHIVE | 1u << OPJIT_ARTIFACT_SHARED) \
    NEXT("llvm", "ll", 1u << OPJIT_ARTIFACT_LLVM)                                 \
    NEXT("asm", "s", 1u << OPJIT_ARTIFACT_ASM)                                    \
    NEXT("ir", "ir", 1u << OPJIT_ARTIFACT_IR)                                     \
    NEXT("json", "json", 1u << OPJIT_ARTIFACT_JSON)                               \
    NEXT("ptx", "ptx", 1u << OPJIT_ARTIFACT_PTX)                                  \
    NEXT("cubin", "cubin", 1u << OPJIT_ARTIFACT_CUBIN)                            \
    NEXT("hsaco", "hsaco", 1u << OPJIT_ARTIFACT_HSACO)                            \
    NEXT("spirv", "spv", 1u << OPJIT_ARTIFACT_SPIRV)                              \
    NEXT("tvmffi", "tvmffi.o", 1u << OPJIT_ARTIFACT_TVM_FFI)

/* Makes one output of kernel `index`, or, for ARCHIVE, SHARED and LIBRARY_HEADER, of all kernels together, whatever
 * index is: *out_bytes bytes at *out_data.  They are the artifact's and stay until it is destroyed or a kernel is
 * added. Texts end with a newline and have no NUL.  HEADER, LIBRARY_HEADER, IR, JSON and WEIGHTS need no codegen
 * library. Errors: INVALID_ARGUMENT (no such kernel or kind), UNSUPPORTED (a kind that the target has none of),
 * UNAVAILABLE (no codegen library, no ptxas), CODEGEN, OUT_OF_MEMORY.  [one thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_artifact_get(opjit_artifact *artifact, uint32_t index,
                                                          opjit_artifact_kind kind, const void **out_data,
                                                          uint64_t *out_bytes, opjit_error *error);

/* --- using -------------------------------------------------------------------------------------------------------- */
/* A library of kernels that OPJIT_ARTIFACT_SHARED or `opjit compile --emit lib` made.  Kernels keep what they need of
 * it and of the context, so that both may go before them. */
typedef struct opjit_library opjit_library;

/* Reads a shared library that opjit wrote, checks all of it and maps it into *out_library, without the dynamic loader
 * (which can load it too, and be asked for its functions).  The caller closes it.
 * Errors: NOT_FOUND, IO, CORRUPT (damaged, or not written by opjit), UNSUPPORTED (another version of opjit or
 * architecture), UNAVAILABLE (no executable memory), OUT_OF_MEMORY.  [any thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_library_open(opjit_context *context, const char *path,
                                                          opjit_library **out_library, opjit_error *error);

/* The kernels of a static library that is part of this program, or of a library that it has loaded and keeps loaded:
 * registry is NAME_registry, as the library's header declares it, and is borrowed until library and kernels are gone.
 * The caller closes *out_library.  Errors: as of opjit_library_open.  [any thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_library_of(opjit_context *context,
                                                        const struct opjit_aot_registry *registry,
                                                        opjit_library **out_library, opjit_error *error);

/* Closes the library; NULL is fine.  Kernels stay valid; what opjit_library_entry gave does not.  [any thread, 0.1] */
OPJIT_API void opjit_library_close(opjit_library *library);

/* How many kernels it has; 0 for NULL.  [any thread, 0.1] */
OPJIT_API uint32_t opjit_library_count(const opjit_library *library);

/* The name of kernel `index`, in the order of strcmp; NULL: there is no such kernel.  The library's.
 * [any thread, 0.1] */
OPJIT_API const char *opjit_library_name(const opjit_library *library, uint32_t index);

/* The kernel of that name in *out_kernel, the best version that this CPU can run; the caller releases it.
 * Errors: NOT_FOUND; UNSUPPORTED (no version runs here, with what is missing), OUT_OF_MEMORY.  [any thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_library_find(opjit_library *library, const char *name,
                                                          opjit_kernel **out_kernel, opjit_error *error);

/* The two plain functions of a kernel.  Since 0.1. */
typedef enum opjit_entry {
    OPJIT_ENTRY_TYPED = 1, /* void (const T *in0, ..., U *out0, ..., params ..., void *workspace) */
    OPJIT_ENTRY_PACKED = 2 /* void (void *const *buffers, const uint64_t *params, void *workspace) */
} opjit_entry;

/* The kernel of that name as a plain function, which checks nothing, in *out_function: to be cast to its type, or
 * called by opjit_typed_call (ffi.h).  Valid until the library is closed.  Errors: as of opjit_library_find.
 * [any thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_library_entry(const opjit_library *library, const char *name,
                                                           opjit_entry entry, void (**out_function)(void),
                                                           opjit_error *error);

#ifdef __cplusplus
}
#endif
#endif
