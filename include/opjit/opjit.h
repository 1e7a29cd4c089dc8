/* SPDX-License-Identifier: Apache-2.0 */
/* opjit/opjit.h - the manual of opjit, an embeddable operator-graph JIT compiler: contexts, operators, graphs,
 * compiling, calls and what kernels tell of themselves.  GPUs are in device.h, kernels made ahead of time in
 * artifact.h, C functions as operators and kernels as C functions in ffi.h, a builder of graphs in graph.h and
 * graph_ops.h, what a build can do as data in reflect.h, looking after caches in cache.h, DirectML's structures in
 * dml.h, what compiled code looks like in abi.h, status codes and errors in status.h.
 *
 * A complete program, which compiles a 4 x 5 identity matrix and prints it (a test compiles and runs it):
 *
 *     #include <opjit/opjit.h>
 *     #include <stdio.h>
 *
 *     int main(void)
 *     {
 *         const uint32_t sizes[] = { 4, 5 };
 *         const DML_BUFFER_TENSOR_DESC buffer = { .DataType = DML_TENSOR_DATA_TYPE_FLOAT32,
 *                                                 .DimensionCount = 2, .Sizes = sizes };
 *         const DML_TENSOR_DESC tensor = { DML_TENSOR_TYPE_BUFFER, &buffer };
 *         const DML_DIAGONAL_MATRIX_OPERATOR_DESC eye = { .OutputTensor = &tensor, .Offset = 0, .Value = 1.0f };
 *         const DML_OPERATOR_DESC desc = { DML_OPERATOR_DIAGONAL_MATRIX, &eye };
 *         opjit_context *context = NULL;
 *         opjit_operator *op = NULL;
 *         opjit_kernel *kernel = NULL;
 *         opjit_error error;
 *         float out[4][5];
 *         const opjit_binding binding = { out, sizeof out };                    // inputs in order, then outputs
 *         const opjit_call call = { .struct_size = sizeof call, .binding_count = 1, .bindings = &binding };
 *
 *         if (opjit_context_create(NULL, &context, &error) != OPJIT_OK ||       // once per process, or a few times
 *             opjit_operator_create(context, &desc, &op, &error) != OPJIT_OK || // checks and copies, does not compile
 *             opjit_compile_operator(context, op, NULL, &kernel, &error) != OPJIT_OK || // or finds it in a cache
 *             opjit_kernel_call(kernel, &call, &error) != OPJIT_OK) {           // any thread, any number of times
 *             fprintf(stderr, "%s: %s\n", opjit_status_name(error.status), error.message);
 *             return 1;
 *         }
 *         for (int i = 0; i < 20; i++)
 *             printf("%g%c", out[i / 5][i % 5], i % 5 < 4 ? ' ' : '\n');
 *         opjit_kernel_release(kernel);
 *         opjit_operator_release(op);
 *         opjit_context_destroy(context);
 *         return 0;
 *     }
 *
 * ERRORS.  A function that can fail returns opjit_status and takes an opjit_error, which may be NULL and needs no
 * initialisation.  On failure its outputs are NULL or zero, nothing is leaked and every object is as it was before.
 * NULL handles and NULL out pointers are refused with OPJIT_INVALID_ARGUMENT.  Every function that creates something
 * can fail with OUT_OF_MEMORY.  The library neither aborts, exits nor prints (OPJIT_VERBOSE=1 apart).  LLVM, which it
 * loads to compile, ends the process where it gets no memory; OPJIT_CONTEXT_OUT_OF_PROCESS makes that CODEGEN.
 *
 * OWNERSHIP.  Who gets an object out of a function releases or destroys it; these functions accept NULL.  Operators and
 * kernels are reference counted, contexts and pools are not.  What is passed in is borrowed until the function returns,
 * except where a comment says "copied", "retained" or for how long it is borrowed.  Strings and arrays that come out
 * belong to the object that they were asked of and live as long as it.
 *
 * THREADS.  Each comment ends with [threads, since].  "any thread": at any time, beside any other function, with one
 * exception: nobody may destroy an object, or release the last reference to it, while another thread still uses it
 * through the same reference.  "one thread": one thread at a time uses that object.  "calling thread": a callback, on
 * the thread that called the function which was given it, before that returns.
 *
 * FORK.  A child may go on with everything that it inherits, except devices; what its parent's other threads were
 * compiling it compiles itself.  It gets threads of its own for an inherited pool, and worker processes.  It may not
 * return from inside an executor's body, an event callback or a custom operator's function in which it was forked.
 *
 * STRUCTURES with struct_size grow at their end.  Set them with their _INIT macro, or struct_size and zeros.  A size
 * that no version had is refused; a larger one, of a later version, is taken where all bytes that this library does not
 * know are 0, so that a program may be built with newer headers of the same MINOR.  `reserved` is 0.
 *
 * STABILITY.  Versions are MAJOR.MINOR.PATCH.
 *   Interface  A PATCH adds functions, and fields at the end of structures; it takes nothing away.  Before 1.0 a MINOR
 *              may change anything in these headers, and CHANGELOG.md says what; from 1.0 on a MINOR is as a PATCH.
 *              Messages, event lines, kernel names that opjit makes up and explain's texts are for people: they may
 *              change in any version.
 *   ABI        The libraries' names hold MAJOR.MINOR until 1.0.  opjit_context_create compares the header that a
 *              program was built with to the library that it runs with, and refuses another MAJOR or, before 1.0,
 *              MINOR.  Frozen, with the same layout for good: status.h, opjit_binding, opjit_custom_arg; all numbers of
 *              enums.  Frozen for one OPJIT_KERNEL_ABI or OPJIT_AOT_ABI: the stage function, opjit_executor and the
 *              structures of abi.h, except that opjit_kernel_meta may grow as its comment says.
 *   Files      A kernel's image and a library of kernels hold their format and ABI numbers, and a library that does not
 *              read these says so.  Of one MINOR they stay readable.  Cached kernels are tied to the very build of
 *              opjit that made them, and are made again by another one.
 *   Keys       opjit_kernel_meta.key tells kernels apart within one build only; no program should keep it.
 *   Results    For one OPJIT_NUMERICS the same graph gives the same bits on every target, thread count and level. */
#ifndef OPJIT_OPJIT_H
#define OPJIT_OPJIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opjit/abi.h>
#include <opjit/dml.h>
#include <opjit/event.h>
#include <opjit/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- version -------------------------------------------------------------------------------------------------- */
#define OPJIT_VERSION_MAJOR 0
#define OPJIT_VERSION_MINOR 1
#define OPJIT_VERSION_PATCH 0
/* One number, greater in later versions: 100 for 0.1.0, 10203 for 1.2.3. */
#define OPJIT_VERSION_NUMBER (OPJIT_VERSION_MAJOR * 10000u + OPJIT_VERSION_MINOR * 100u + OPJIT_VERSION_PATCH)

/* The version of the library that is loaded, "0.1.0"; the macros are those of the header.  A static string.
 * [any thread, 0.1] */
OPJIT_API const char *opjit_version(void);
/* The same as OPJIT_VERSION_NUMBER counts it.  [any thread, 0.1] */
OPJIT_API uint32_t opjit_version_number(void);

/* --- objects ---------------------------------------------------------------------------------------------------- */
typedef struct opjit_context opjit_context;   /* allocator, target, caches, event sink; one owner, not counted */
typedef struct opjit_operator opjit_operator; /* a validated deep copy of a descriptor; reference counted */
typedef struct opjit_kernel opjit_kernel;     /* compiled code with its metadata; immutable, reference counted */

/* --- context ---------------------------------------------------------------------------------------------------- */
/* Everything is copied by opjit_context_create.  Since 0.1. */
typedef struct opjit_context_options {
    uint32_t struct_size;             /* bytes; OPJIT_CONTEXT_OPTIONS_INIT sets it */
    uint32_t feature_level;           /* DML_FEATURE_LEVEL; 0: newest plus opjit's extensions */
    const opjit_allocator *allocator; /* NULL: malloc and free */
    const char *target;               /* "cpu:x86-64-v3[,tune=...][,l1=...]", as `opjit targets` lists them; NULL: this
                                         CPU */
    const char *codegen_path;         /* absolute path of the codegen library; NULL: OPJIT_CODEGEN, else beside opjit */
    const char *cache_dir;            /* folder of the disk cache, made where it is missing; NULL: none.  A relative
                                         path is taken from the current directory of this moment.  A folder that others
                                         than this user may write to is not used: a warning event says so */
    uint64_t cache_bytes;             /* bound of the memory cache, of all bytes that its kernels hold; 0: 64 MiB */
    opjit_event_fn event;             /* NULL: none, or lines on standard error where OPJIT_VERBOSE=1 */
    void *event_user;                 /* first argument of event */
    uint32_t flags;                   /* OPJIT_CONTEXT_..., or 0 */
    uint32_t reserved;                /* 0 */
    uint64_t disk_bytes;              /* bound of the disk cache's files in bytes; 0: 256 MiB */
    const char *device;               /* "cuda:0", "hip:0": kernels run on that GPU, whose target is taken where target
                                         is NULL (device.h); NULL: none */
    const char *device_driver;        /* absolute path of its driver's library; NULL: OPJIT_CUDA_DRIVER or
                                         OPJIT_HIP_DRIVER, else the system's */
} opjit_context_options;
#define OPJIT_CONTEXT_OPTIONS_INIT \
    { sizeof(opjit_context_options), 0, NULL, NULL, NULL, NULL, 0, NULL, NULL, 0, 0, 0, NULL, NULL }

#define OPJIT_CONTEXT_ALLOW_INTERPRETER 1u /* run kernels in the IR interpreter where code can't be made or mapped; not
                                              those for the context's device */
#define OPJIT_CONTEXT_PERF_MAP 2u          /* append kernels to /tmp/perf-<pid>.map (also OPJIT_PERF_MAP=1) */
#define OPJIT_CONTEXT_GDB 4u               /* register kernels with the GDB JIT interface (also OPJIT_GDB=1) */
#define OPJIT_CONTEXT_OUT_OF_PROCESS 8u    /* LLVM runs in worker processes (also OPJIT_OUT_OF_PROCESS=1), whose crash
                                              is a status, CODEGEN.  Code is the same.  codegen_path then is where
                                              libopjit-codegen.so and what starts workers lie side by side */

/* opjit_context_create for callers without C headers: `header` is the version number that they were written for, as
 * OPJIT_VERSION_NUMBER counts it.  UNSUPPORTED: this library does not run programs of that version.
 * [any thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_context_create_for(uint32_t header, const opjit_context_options *options,
                                                                opjit_context **out_context, opjit_error *error);

/* Creates a context in *out_context; the caller destroys it.  options may be NULL: all of them 0.  LLVM is not loaded
 * here.  The environment is read here and never again; set-user-id programs ignore it.
 * Errors: INVALID_ARGUMENT (an option), UNSUPPORTED (a device's target, or this header is of another version than the
 * library), UNAVAILABLE (no such device, and why).  [any thread, 0.1] */
OPJIT_NODISCARD static inline opjit_status opjit_context_create(const opjit_context_options *options,
                                                                opjit_context **out_context, opjit_error *error)
{
    return opjit_context_create_for(OPJIT_VERSION_NUMBER, options, out_context, error);
}

/* Frees the context and drops the caches' references; NULL is fine.  Operators and kernels made with it stay valid, and
 * so does the memory hook that they go on using.  [any thread, 0.1] */
OPJIT_API void opjit_context_destroy(opjit_context *context);

/* Loads the codegen library and compiles a tiny kernel, so that the first real compile is a warm one.  It blocks for
 * some 20 ms; call it from a thread of your own at start-up.  UNAVAILABLE: there is no codegen library.
 * [any thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_context_warm(opjit_context *context, opjit_error *error);

/* The canonical target string of the context, e.g. "cpu:x86-64-v3,tune=znver3,l1=32768,..."; NULL for NULL.  The
 * context's.  [any thread, 0.1] */
OPJIT_API const char *opjit_context_target(const opjit_context *context);

/* What the caches hold and did since the context was created.  Since 0.1. */
typedef struct opjit_cache_stats {
    uint32_t struct_size;  /* bytes; OPJIT_CACHE_STATS_INIT sets it */
    uint32_t entries;      /* kernels in the memory cache */
    uint64_t bytes;        /* all bytes that they hold */
    uint64_t capacity;     /* bound of bytes */
    uint64_t hits;         /* requests that the memory cache answered */
    uint64_t misses;       /* requests that it did not */
    uint64_t compiles;     /* kernels made, not loaded */
    uint64_t evictions;    /* kernels dropped to stay within the bound */
    uint64_t waits;        /* requests that found their key being compiled by another thread */
    uint64_t disk_hits;    /* kernels, not functions, loaded from the disk cache */
    uint64_t disk_writes;  /* kernels written to it */
    uint64_t disk_rejects; /* files of it that were damaged or another build's */
    uint64_t tier_calls;     /* calls of kernels with dynamic dimensions that ran a kernel of one size (dynamic.h) */
    uint64_t tier_kernels;   /* kernels of one size made for that */
    uint64_t tier_evictions; /* of these, dropped for others */
    uint64_t tier_failures;  /* sets of sizes for which none could be made */
} opjit_cache_stats;
#define OPJIT_CACHE_STATS_INIT { sizeof(opjit_cache_stats), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* Fills *out_stats, whose struct_size is set, as far as it goes.  The numbers are of one moment each, not all of the
 * same one.  [any thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_cache_get_stats(const opjit_context *context, opjit_cache_stats *out_stats,
                                                             opjit_error *error);
/* Drops every kernel that isn't pinned (cache.h) from the memory cache, and frees the spare workspace of calls; kernels
 * that callers hold stay valid.
 * [any thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_cache_clear(opjit_context *context, opjit_error *error);

/* --- operators -------------------------------------------------------------------------------------------------- */
/* Validates *desc completely and copies it deeply into *out_operator (DirectML's CreateOperator); does not compile.
 * The caller releases the operator, which does not need the context any more.
 * Errors: INVALID_ARGUMENT, UNSUPPORTED (legal at another feature level), LIMIT; opjit_error has
 * op, field, value and, of an array, index.  [any thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_operator_create(opjit_context *context, const DML_OPERATOR_DESC *desc,
                                                             opjit_operator **out_operator, opjit_error *error);
/* One more reference, one less.  [any thread, 0.1] */
OPJIT_API void opjit_operator_retain(opjit_operator *op);
OPJIT_API void opjit_operator_release(opjit_operator *op);

/* --- compiling -------------------------------------------------------------------------------------------------- */
/* How much time goes into compiling.  Numbers are frozen; since 0.1. */
typedef enum opjit_level {
    OPJIT_LEVEL_AUTO = 0,  /* quick; frontend/compile/README.md says why */
    OPJIT_LEVEL_QUICK = 1, /* fastest to compile */
    OPJIT_LEVEL_PEAK = 2   /* fastest code */
} opjit_level;

/* Borrowed until the compile returns.  Since 0.1. */
typedef struct opjit_compile_options {
    uint32_t struct_size;      /* bytes; OPJIT_COMPILE_OPTIONS_INIT sets it */
    uint32_t flags;            /* OPJIT_COMPILE_..., or 0 */
    opjit_level level;         /* part of the kernel's key */
    uint32_t late_count;       /* names in late */
    const char *const *late;   /* scalar fields that are bound at each call instead of now, e.g. "DiagonalFillBegin"; of
                                  a graph "label.Field".  Their order is that of opjit_call.params */
    const char *target;        /* NULL: the context's */
    const char *name;          /* kernel name for debuggers and symbols, a C identifier of at most 95 characters; NULL:
                                  made from operator, dtype and key */
    const opjit_executor *executor; /* large kernels are compiled and fill what they keep on its threads: same bytes;
                                  used by the call that compiles alone; NULL: all on the caller's thread */
} opjit_compile_options;
#define OPJIT_COMPILE_OPTIONS_INIT { sizeof(opjit_compile_options), 0, OPJIT_LEVEL_AUTO, 0, NULL, NULL, NULL, NULL }

#define OPJIT_COMPILE_MASKS_ABSORB 1u     /* ADD: a generated or constant -inf operand decides alone */
#define OPJIT_COMPILE_INTERPRET 2u        /* run in the IR interpreter: the oracle; needs no codegen library.  On this
                                             machine's memory, also for a GPU's target */
#define OPJIT_COMPILE_NO_CACHE 4u         /* neither look in the caches nor store there */
#define OPJIT_COMPILE_BORROW_CONSTANTS 8u /* graphs: constants above 4 KiB are not copied, and may lie at any address;
                                             the caller keeps them as they are until the kernel is released.  Copied
                                             are those that don't lie as the code needs them: at multiples of an
                                             element's size for RISC-V and beside custom operators, of 16 for GPUs, of
                                             what their descriptors guarantee where that is 16 and more */

/* Compiles the operator for exactly its shapes, or finds it in a cache, into *out_kernel; the caller releases it.
 * Threads that ask for one key at one time compile it once.
 * Errors: INVALID_ARGUMENT and UNSUPPORTED (options), UNAVAILABLE (no codegen library, no executable memory), CODEGEN,
 * LIMIT, OUT_OF_MEMORY.  [any thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_compile_operator(opjit_context *context, opjit_operator *op,
                                                              const opjit_compile_options *options,
                                                              opjit_kernel **out_kernel, opjit_error *error);

/* Compiles a graph of operators, DirectML's CompileGraph, into one kernel in *out_kernel, or finds it in a cache; the
 * caller releases it.  Everything behind *desc is borrowed until the call returns, operators included.
 *   - An edge carries bytes: what reads an output may describe it with other sizes and strides (reshape, transpose,
 *     broadcast) of the same data type, within the bytes that the output writes.
 *   - The kernel's bindings are the graph inputs that an edge leads from, in order, and all outputs.
 *   - Constants up to 4 KiB are part of the kernel; larger ones are copied, once for all kernels of the context that
 *     have equal ones, or borrowed.  What depends on constants alone, such as the packed weights of a product of
 *     matrices, is made once, here, on CPUs, and kept beside them (opjit_kernel_info.kept_bytes).
 *   - Late fields are "label.Field", or "2.Field" by the node's index.
 *   - Labels are for messages and late fields.  Nodes that no output depends on are checked and dropped.
 * Errors: as of opjit_compile_operator, and INVALID_ARGUMENT for cycles, missing and double edges, sizes that don't
 * fit, bytes that nothing writes; opjit_error has node, op and field.  [any thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_compile_graph(opjit_context *context, const DML_GRAPH_DESC *desc,
                                                           const opjit_compile_options *options,
                                                           opjit_kernel **out_kernel, opjit_error *error);

/* --- calls ------------------------------------------------------------------------------------------------------ */
/* One more reference, one less.  [any thread, 0.1] */
OPJIT_API void opjit_kernel_retain(opjit_kernel *kernel);
OPJIT_API void opjit_kernel_release(opjit_kernel *kernel);

/* Memory of the caller's for one tensor.  Frozen; since 0.1. */
typedef struct opjit_binding {
    void *data;      /* where the tensor begins; inputs are only read */
    uint64_t bytes;  /* of the memory at data; may be more than the tensor needs */
} opjit_binding;

/* Borrowed until the call returns, or for a kernel on a device until it is done there.  Since 0.1. */
typedef struct opjit_call {
    uint32_t struct_size;           /* bytes; OPJIT_CALL_INIT sets it */
    uint32_t binding_count;         /* opjit_kernel_info.inputs + outputs */
    const opjit_binding *bindings;  /* used inputs in order, then outputs; an absent optional input has no binding */
    const uint64_t *params;         /* late parameters in the order of opjit_compile_options.late; 8 bytes each, as the
                                       comment of opjit_stage_fn (abi.h) says */
    uint32_t param_count;           /* opjit_kernel_info.param_count */
    uint32_t reserved;              /* 0 */
    opjit_binding workspace;        /* 64-byte aligned, of opjit_kernel_info.workspace_bytes; {NULL, 0}: the context's
                                       spare one where the kernel needs any, or on a device the stream's */
    const opjit_executor *executor; /* NULL: everything on the caller's thread; NULL for kernels on a device */
    void *stream;                   /* for kernels on a device: what they are put into, NULL is its default stream; else
                                       NULL */
    const uint64_t *dims;           /* sizes of the dynamic dimensions, in the order of opjit_kernel_info.dims */
    uint32_t dim_count;             /* opjit_kernel_info.dim_count */
    uint32_t reserved2;             /* 0 */
} opjit_call;
#define OPJIT_CALL_INIT { sizeof(opjit_call), 0, NULL, NULL, 0, 0, { NULL, 0 }, NULL, NULL, NULL, 0, 0 }

/* Runs the kernel and returns when it is done; for a kernel on a device, when it stands in the stream.  Count, bytes,
 * alignment and overlap of the bindings are checked.  An output may be the same memory as an input where
 * opjit_buffer_info.alias_inputs says so; any other overlap with an output is refused.  Re-entrant.  Without executor
 * and device it takes no lock, and allocates nothing but a workspace that the kernel needs and the call doesn't bring:
 * a context keeps one that was used, of at most 1 GiB, for the next such call of any of its kernels, until
 * opjit_cache_clear, or until the context and its kernels are gone.  A call that needs more, or comes while it is in
 * use, allocates another.
 * Of a kernel with dynamic dimensions the bindings have the bytes that opjit_kernel_sizes says for the sizes of this
 * call; where these are 0, data may be NULL.
 * Errors: INVALID_ARGUMENT (op "call", a field of opjit_call, index), OUT_OF_MEMORY (workspace), CANCELLED or whatever
 * an executor or custom operator returned.  [any thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_kernel_call(const opjit_kernel *kernel, const opjit_call *call,
                                                         opjit_error *error);

/* Whether the memory that bindings share is memory that a call may share: an output may be the very memory of an input
 * that its alias_inputs allows, and meets nothing else.  A binding counts with the bytes that the kernel needs there,
 * the most of all calls where it has dynamic dimensions.
 * Addresses are compared and nothing is read, so a planner of memory may ask before it has any, with offsets.
 * Expected failures: INVALID_ARGUMENT; error->index is an output's binding, error->value what meets it.
 * [any thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_kernel_check_overlaps(const opjit_kernel *kernel,
                                                                   const opjit_binding *bindings,
                                                                   uint32_t binding_count, opjit_error *error);

/* When one step of a call began and ended.  Since 0.1. */
typedef struct opjit_step_time {
    uint64_t begin_ns, end_ns; /* CLOCK_MONOTONIC */
    uint64_t extent;           /* iterations of the step's parallel loop */
    uint32_t step;             /* its index among the steps of opjit_kernel_info.meta */
    uint32_t kind;             /* opjit_step_kind */
} opjit_step_time;

/* Does what opjit_kernel_call does, and reads the clock around each step: the first `capacity` of them into steps, in
 * the order in which they ran, and how many there were into *out_count, which may be more; also where a step fails.
 * Takes the way of calls with an executor, so the bits are the same and the times those of the steps, not of the
 * shortest call. UNSUPPORTED: kernels on a device, whose stream knows when they ran. [any thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_kernel_call_timed(const opjit_kernel *kernel, const opjit_call *call,
                                                               opjit_step_time *steps, uint32_t capacity,
                                                               uint32_t *out_count, opjit_error *error);

/* --- what kernels tell of themselves ---------------------------------------------------------------------------- */
/* Since 0.1. */
typedef struct opjit_kernel_info {
    uint32_t struct_size;             /* bytes; OPJIT_KERNEL_INFO_INIT sets it */
    uint32_t flags;                   /* OPJIT_KERNEL_... */
    const char *name, *target;        /* of the code; owned by the kernel, as everything below */
    const opjit_kernel_meta *meta;    /* abi.h */
    const opjit_buffer_info *buffers; /* inputs, outputs, constants */
    uint32_t buffer_count;            /* of all of them */
    uint32_t inputs, outputs;         /* bindings of a call */
    const opjit_param_info *params;   /* late parameters in order */
    uint32_t param_count;             /* late parameters */
    opjit_level level;                /* QUICK or PEAK */
    uint64_t code_bytes;              /* machine code and its constants; 0: interpreted */
    uint64_t workspace_bytes;         /* for one worker; each further one adds meta->scratch_size */
    uint64_t bytes_read, bytes_written; /* estimate for one call */
    double compile_ms, lower_ms, passes_ms, codegen_ms, load_ms; /* milliseconds; 0 where it came from a cache */
    uint64_t unproven_bounds;         /* accesses, loops and tensors of which the compiler found no proof that they stay
                                         inside of memory and apart from each other; 0 is what to expect */
    uint64_t kept_bytes;              /* memory that the kernel holds beside its constants: what is made of them once,
                                         when the kernel is made or loaded, such as packed weights */
    const opjit_param_info *dims;     /* dynamic dimensions in order: their names and intervals.  Where there are any,
                                         sizes, bytes and workspace above are the largest of all calls */
    uint32_t dim_count;               /* dynamic dimensions */
    uint32_t reserved;                /* 0 */
} opjit_kernel_info;
#define OPJIT_KERNEL_INFO_INIT \
    { sizeof(opjit_kernel_info), 0, NULL, NULL, NULL, NULL, 0, 0, 0, NULL, 0, OPJIT_LEVEL_AUTO, \
      0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL, 0, 0 }

#define OPJIT_KERNEL_INTERPRETED 1u /* runs in the IR interpreter */
#define OPJIT_KERNEL_FROM_DISK 2u   /* was loaded, from the disk cache or by opjit_graph_load, not compiled */
#define OPJIT_KERNEL_ON_DEVICE 4u   /* runs on the context's device */

/* Fills *out_info, whose struct_size is set, as far as it goes.  [any thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_kernel_get_info(const opjit_kernel *kernel, opjit_kernel_info *out_info,
                                                             opjit_error *error);

/* What buffer `index` is called: an operator's field ("InputTensor"), in kernels made ahead of time from a graph the
 * name of its edge; else "Inputs[0]", "Outputs[0]".  In a call's messages, too.  NULL: there is none.
 * [any thread, 0.1] */
static inline const char *opjit_kernel_buffer_name(const opjit_kernel_info *info, uint32_t index)
{
    return index < info->buffer_count ? (const char *)info->meta + info->buffers[index].name : NULL;
}
/* The late field that stands at `index` of opjit_call.params; NULL: there is none.  [any thread, 0.1] */
static inline const char *opjit_kernel_param_name(const opjit_kernel_info *info, uint32_t index)
{
    return index < info->param_count ? (const char *)info->meta + info->params[index].name : NULL;
}

/* The dynamic dimension that stands at `index` of opjit_call.dims; NULL: there is none.  [any thread, 0.1] */
static inline const char *opjit_kernel_dim_name(const opjit_kernel_info *info, uint32_t index)
{
    return index < info->dim_count ? (const char *)info->meta + info->dims[index].name : NULL;
}

/* What a call with these sizes of the dynamic dimensions needs as binding `buffer`, so that a caller can make room for
 * it: its sizes into sizes, unused ones 1, and its bytes into *bytes.  Of a kernel without dynamic dimensions dim_count
 * is 0, and these are opjit_buffer_info's.  Elements follow each other without gaps where sizes depend on dimensions.
 * Errors: INVALID_ARGUMENT (op "call", as of opjit_kernel_call; buffer).  [any thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_kernel_sizes(const opjit_kernel *kernel, const uint64_t *dims,
                                                          uint32_t dim_count, uint32_t buffer, uint64_t sizes[8],
                                                          uint64_t *bytes, opjit_error *error);

/* Makes the peak version of a quick kernel on the caller's thread and swaps it in for later calls; calls that run
 * meanwhile finish with the old code.  Nothing to do for a peak or interpreted kernel: OPJIT_OK.  Errors: as of
 * opjit_compile_operator.  [any thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_kernel_optimize(opjit_kernel *kernel, opjit_error *error);

/* The kernel's code and metadata in one piece, *out_bytes bytes at *out_image, to be kept and given to
 * opjit_kernel_load in another process, which may have opjit-runtime alone (and libopjit-device, for a kernel on a
 * device).  The kernel's own, valid as long as it is.  UNSUPPORTED: interpreted kernels, those with custom operators
 * and those of libraries have none.  [any thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_kernel_get_image(const opjit_kernel *kernel, const void **out_image,
                                                              uint64_t *out_bytes, opjit_error *error);

/* The kernel of an image of `bytes` bytes, which lies at a multiple of 8 and is copied, in *out_kernel; the caller
 * releases it.  constants: memory for each buffer of that role, in order, that outlives the kernel; NULL where there
 * are none.  The image is checked as a whole; what its code does nobody can check: load only what you trust.  Loading
 * already runs code of an image that makes something of its constants once.
 * Errors: INVALID_ARGUMENT, CORRUPT (damaged, or of another image format), UNSUPPORTED (it needs what this CPU or the
 * context's device lacks), UNAVAILABLE (no executable memory).  [any thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_kernel_load(opjit_context *context, const void *image, uint64_t bytes,
                                                         const void *const *constants, uint32_t constant_count,
                                                         opjit_kernel **out_kernel, opjit_error *error);

/* --- worker threads --------------------------------------------------------------------------------------------- */
/* An executor with threads of opjit's own, for opjit_call.executor.  They are started when work is first worth sharing,
 * sleep where there is none, block all signals except those of faults, and are named "opjit"; where the system gives
 * none, the caller works alone.  Results are the same bytes for any number of threads.
 * Any number of threads may call with one pool: while it is busy, others work alone on their own thread, and so does a
 * body that runs something on the pool it is run by. */
typedef struct opjit_pool opjit_pool;
#define OPJIT_POOL_MAX_THREADS 1024u

/* A pool in *out_pool; the caller destroys it.  threads counts the caller, up to OPJIT_POOL_MAX_THREADS; 0: one for
 * each core that the calling thread may run on.  allocator is copied; NULL: malloc and free.  [any thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_pool_create(const opjit_allocator *allocator, uint32_t threads,
                                                         opjit_pool **out_pool, opjit_error *error);
/* What calls take; NULL for NULL.  The pool's.  [any thread, 0.1] */
OPJIT_API const opjit_executor *opjit_pool_executor(const opjit_pool *pool);
/* Ends its threads and frees it; NULL is fine.  No call may be using it.  [any thread, 0.1] */
OPJIT_API void opjit_pool_destroy(opjit_pool *pool);

/* --- looking inside --------------------------------------------------------------------------------------------- */
/* Called after lowering ("lower") and after each pass with its name and the IR text, whose first line ends with a
 * comment: which steps of the pass changed something, and how often; then, as "plan", with what code generation chooses
 * for each loop, a line each, unless there is no code generation or it would refuse the kernel.  Both texts are valid
 * during the call only. [calling thread, 0.1] */
typedef void (*opjit_explain_fn)(void *user, const char *stage, const char *text);

/* Lowers the operator and runs the passes without code generation, handing out the IR after each of them on the calling
 * thread.  Errors: as of opjit_compile_operator.  [any thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_operator_explain(opjit_context *context, opjit_operator *op,
                                                              const opjit_compile_options *options, opjit_explain_fn fn,
                                                              void *user, opjit_error *error);
/* The same for a graph.  [any thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_graph_explain(opjit_context *context, const DML_GRAPH_DESC *desc,
                                                           const opjit_compile_options *options, opjit_explain_fn fn,
                                                           void *user, opjit_error *error);

#ifdef __cplusplus
}
#endif
#endif
