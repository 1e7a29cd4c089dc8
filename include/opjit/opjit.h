/* SPDX-License-Identifier: Apache-2.0 */
/* opjit/opjit.h - the whole public interface of opjit, an embeddable operator-graph JIT compiler.
 *
 *     opjit_context *context;  opjit_operator *op;  opjit_kernel *kernel;  opjit_error error;
 *     opjit_context_create(NULL, &context, &error);                         // once
 *     opjit_operator_create(context, &desc, &op, &error);                   // validates, does not compile
 *     opjit_compile_operator(context, op, NULL, &kernel, &error);           // or a cache hit
 *     opjit_kernel_call(kernel, &call, &error);                             // any thread, any number of times
 *
 * Rules that hold everywhere:
 *   - A function that can fail returns opjit_status and takes an opjit_error, which may be NULL.  On failure its
 *     outputs are NULL or zero, nothing is leaked and every object is as it was before.
 *   - NULL handles and NULL out pointers are refused with OPJIT_INVALID_ARGUMENT; release and destroy accept NULL.
 *   - Every function may be called from any thread at any time, but for destroying or releasing an object that
 *     another thread is still using through the same reference.
 *   - Structures with struct_size may grow at the end; set them with their _INIT macro.  A size that no version had is
 *     refused; one of a version to come is taken where nothing behind what is known here is set.
 *   - A child of fork may go on with everything that it inherits, except for devices; what its parent's other threads
 *     were compiling it compiles itself.
 *   - Nothing here aborts, exits or prints (OPJIT_VERBOSE=1 apart). */
#ifndef OPJIT_OPJIT_H
#define OPJIT_OPJIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opjit/abi.h>
#include <opjit/dml.h>
#include <opjit/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- version -------------------------------------------------------------------------------------------------- */
#define OPJIT_VERSION_MAJOR 0
#define OPJIT_VERSION_MINOR 1
#define OPJIT_VERSION_PATCH 0

/* "0.1.0" of the library that is loaded (the macros are those of the header). */
OPJIT_API const char *opjit_version(void);

/* --- objects ---------------------------------------------------------------------------------------------------- */
typedef struct opjit_context opjit_context;   /* allocator, target, caches, event sink; one owner, not counted */
typedef struct opjit_operator opjit_operator; /* a validated deep copy of a descriptor; reference counted */
typedef struct opjit_kernel opjit_kernel;     /* compiled code with its metadata; immutable, reference counted */

/* --- events ----------------------------------------------------------------------------------------------------- */
typedef enum opjit_event_kind {
    OPJIT_EVENT_COMPILE = 1, /* a kernel was compiled: milliseconds a phase in the line */
    OPJIT_EVENT_HIT = 2,     /* found in the memory or disk cache */
    OPJIT_EVENT_MISS = 3,
    OPJIT_EVENT_LOAD = 4,    /* code mapped executable; also: the codegen library was loaded */
    OPJIT_EVENT_EVICT = 5,
    OPJIT_EVENT_WARNING = 6  /* something was ignored or replaced: a damaged cache file, a missing codegen library */
} opjit_event_kind;

typedef struct opjit_event {
    opjit_event_kind kind;
    const char *line; /* one comma-separated line, "opjit,compile,diagonal_matrix1,f32,512x512,...", no newline;
                         valid during the call only */
} opjit_event;

/* Called from whichever thread caused the event, never under a lock that other kernels' users wait for.  It may call
 * any function of opjit, except that it is refused the kernel whose compiling it is told of. */
typedef void (*opjit_event_fn)(void *user, const opjit_event *event);

/* --- context ---------------------------------------------------------------------------------------------------- */
typedef struct opjit_context_options {
    uint32_t struct_size;
    uint32_t feature_level;           /* DML_FEATURE_LEVEL; 0: newest plus opjit's extensions */
    const opjit_allocator *allocator; /* copied; NULL: malloc and free */
    const char *target;               /* "cpu:x86-64-v3[,tune=...][,l1=...]"; NULL: this CPU */
    const char *codegen_path;         /* absolute path of the codegen library; NULL: searched for */
    const char *cache_dir;            /* folder of the disk cache, made where it is missing; NULL: none.  A relative one is
                                         that of the current directory now.  One that is not this user's alone is not
                                         used: a warning event says so */
    uint64_t cache_bytes;             /* bound of the memory cache, of all that its kernels hold; 0: 64 MiB */
    opjit_event_fn event;             /* NULL: none, or standard error where OPJIT_VERBOSE=1 */
    void *event_user;
    uint32_t flags;                   /* OPJIT_CONTEXT_... */
    uint32_t reserved;                /* 0 */
    uint64_t disk_bytes;              /* bound of the disk cache's files; 0: 256 MiB */
    const char *device;               /* "cuda:0", "hip:0": run kernels on that GPU, which is the target where that is
                                         NULL; NULL: none */
    const char *device_driver;        /* absolute path of its driver's library; NULL: OPJIT_CUDA_DRIVER or
                                         OPJIT_HIP_DRIVER, else the system's */
} opjit_context_options;
#define OPJIT_CONTEXT_OPTIONS_INIT \
    { sizeof(opjit_context_options), 0, NULL, NULL, NULL, NULL, 0, NULL, NULL, 0, 0, 0, NULL, NULL }

#define OPJIT_CONTEXT_ALLOW_INTERPRETER 1u /* run kernels in the IR interpreter where code can't be made or mapped; not
                                              those for the context's device */
#define OPJIT_CONTEXT_PERF_MAP 2u          /* append kernels to /tmp/perf-<pid>.map (also OPJIT_PERF_MAP=1) */
#define OPJIT_CONTEXT_GDB 4u               /* register kernels with the GDB JIT interface (also OPJIT_GDB=1) */

/* Creates a context in *out_context; the caller destroys it.  options may be NULL.  LLVM is not loaded here.  The
 * environment is read here and never again.
 * Expected failures: an unknown target or feature level, a device that is absent (UNAVAILABLE, and why), no memory. */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_context_create(const opjit_context_options *options,
                                                            opjit_context **out_context, opjit_error *error);

/* Frees the context and drops the caches' references.  Operators and kernels made with it stay valid. */
OPJIT_API void opjit_context_destroy(opjit_context *context);

/* Loads the codegen library and compiles a tiny kernel, so that the first real compile is a warm one.  Blocking; call
 * it from a thread of your own at start-up.  OPJIT_UNAVAILABLE where there is no codegen library. */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_context_warm(opjit_context *context, opjit_error *error);

/* The canonical target string of the context, e.g. "cpu:x86-64-v3,tune=znver3,l1=32768,...".  Owned by the context. */
OPJIT_API const char *opjit_context_target(const opjit_context *context);

typedef struct opjit_cache_stats {
    uint32_t struct_size;
    uint32_t entries;    /* kernels in the memory cache */
    uint64_t bytes;      /* all that they hold */
    uint64_t capacity;   /* bound of bytes */
    uint64_t hits, misses, compiles, evictions, waits; /* waits: a thread found its key being compiled by another */
    uint64_t disk_hits, disk_writes, disk_rejects;
} opjit_cache_stats;
#define OPJIT_CACHE_STATS_INIT { sizeof(opjit_cache_stats), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

OPJIT_API OPJIT_NODISCARD opjit_status opjit_cache_get_stats(const opjit_context *context, opjit_cache_stats *out_stats,
                                                             opjit_error *error);
/* Drops every kernel that isn't pinned (opjit/cache.h) from the memory cache; kernels that callers hold stay valid. */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_cache_clear(opjit_context *context, opjit_error *error);

/* --- operators -------------------------------------------------------------------------------------------------- */
/* Validates *desc completely and copies it deeply into *out_operator (DirectML's CreateOperator); does not compile.
 * The caller releases the operator.  Expected failures: INVALID_ARGUMENT and UNSUPPORTED, each naming operator, field,
 * value and what is allowed. */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_operator_create(opjit_context *context, const DML_OPERATOR_DESC *desc,
                                                             opjit_operator **out_operator, opjit_error *error);
OPJIT_API void opjit_operator_retain(opjit_operator *op);
OPJIT_API void opjit_operator_release(opjit_operator *op);

/* --- compiling -------------------------------------------------------------------------------------------------- */
typedef enum opjit_level {
    OPJIT_LEVEL_AUTO = 0,  /* quick; codegen/README.md holds the estimate that decides */
    OPJIT_LEVEL_QUICK = 1, /* fastest to compile */
    OPJIT_LEVEL_PEAK = 2   /* fastest code */
} opjit_level;

typedef struct opjit_compile_options {
    uint32_t struct_size;
    uint32_t flags;            /* OPJIT_COMPILE_... */
    opjit_level level;
    uint32_t late_count;
    const char *const *late;   /* scalar fields bound at each call instead of now, e.g. "DiagonalFillBegin"; in a graph
                                  "node.Field".  Order here is the order in opjit_call.params */
    const char *target;        /* NULL: the context's */
    const char *name;          /* kernel name for debuggers and symbols; NULL: made from operator, dtype and key */
} opjit_compile_options;
#define OPJIT_COMPILE_OPTIONS_INIT { sizeof(opjit_compile_options), 0, OPJIT_LEVEL_AUTO, 0, NULL, NULL, NULL }

#define OPJIT_COMPILE_MASKS_ABSORB 1u /* ADD: a generated or constant -inf operand decides alone (DESIGN: numerics) */
#define OPJIT_COMPILE_INTERPRET 2u    /* run in the IR interpreter: the oracle; needs no codegen library.  On this
                                         machine's memory, also for a GPU's target */
#define OPJIT_COMPILE_NO_CACHE 4u     /* neither look in the caches nor store there */
#define OPJIT_COMPILE_BORROW_CONSTANTS 8u /* graphs: constants above 4 KiB on 64-byte boundaries are not copied; the caller
                                             keeps them as they are until the kernel is released */

/* Compiles the operator for exactly its shapes, or finds it in the cache, into *out_kernel; the caller releases it.
 * The operator is borrowed until the call returns.  Threads that ask for one key at a time compile it once. */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_compile_operator(opjit_context *context, opjit_operator *op,
                                                              const opjit_compile_options *options,
                                                              opjit_kernel **out_kernel, opjit_error *error);

/* --- graphs ----------------------------------------------------------------------------------------------------- */
/* Compiles a graph of operators, DirectML's CompileGraph, into one kernel, or finds it in the cache.  Everything behind
 * *desc is borrowed until the call returns, operators included.
 *   - An edge carries bytes: what reads an output may describe it with other sizes and strides (reshape, transpose,
 *     broadcast) of the same data type, within the bytes that the output writes.
 *   - The kernel's bindings are the graph inputs that an edge leads from, in order, and all outputs.
 *   - Constants up to 4 KiB are part of the kernel; larger ones are copied, once for all kernels of the context that
 *     have equal ones, or borrowed.
 *   - Late fields are "label.Field", or "2.Field" by the node's index.
 *   - Labels are for messages and late fields; nodes that no output depends on are checked and dropped.
 * Expected failures: cycles, missing and double edges, sizes that don't fit, bytes that nothing writes; the message
 * names the nodes. */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_compile_graph(opjit_context *context, const DML_GRAPH_DESC *desc,
                                                           const opjit_compile_options *options,
                                                           opjit_kernel **out_kernel, opjit_error *error);

/* --- custom operators (libffi) ------------------------------------------------------------------------------------ */
/* A C function of the application as a node of a graph.  It is called once a call of the kernel, on the calling thread,
 * between the stages of what comes before and after it; its tensors lie in memory as their descriptors say. */
typedef enum opjit_custom_arg_kind {
    OPJIT_CUSTOM_INPUT = 0,  /* const void *: where input `index` begins */
    OPJIT_CUSTOM_OUTPUT = 1, /* void *: where output `index` begins */
    OPJIT_CUSTOM_USER = 2,   /* void *: opjit_custom_desc.user */
    OPJIT_CUSTOM_SCALAR = 3  /* `value` as float, double, int32_t ... by `dtype`; FLOAT16 as uint16_t */
} opjit_custom_arg_kind;

typedef struct opjit_custom_arg {
    uint32_t kind;  /* opjit_custom_arg_kind */
    uint32_t index; /* INPUT, OUTPUT; else 0 */
    DML_TENSOR_DATA_TYPE dtype; /* SCALAR: of 8 bits and more */
    uint32_t reserved; /* 0 */
    DML_SCALAR_UNION value; /* SCALAR */
} opjit_custom_arg;

typedef struct opjit_custom_desc {
    uint32_t struct_size;
    uint32_t flags;   /* OPJIT_CUSTOM_... */
    const char *name; /* for messages */
    const void *key;  /* whatever else tells two versions of the function apart: part of the kernel's key.  An address
                         may come to belong to another function when a library is unloaded; may be NULL */
    uint64_t key_bytes;
    const DML_TENSOR_DESC *inputs;
    const DML_TENSOR_DESC *outputs;
    uint32_t input_count, output_count; /* 0 to 64; 1 to 64 */
    const opjit_custom_arg *args; /* the function's parameters in order, up to 64 */
    uint32_t arg_count;
    uint32_t reserved; /* 0 */
    void (*function)(void); /* cast to this type; writes all of its outputs, touches nothing else of opjit's, and is
                               callable from any thread for as long as a kernel with it is called */
    void *user;
} opjit_custom_desc;
#define OPJIT_CUSTOM_DESC_INIT { sizeof(opjit_custom_desc), 0, NULL, NULL, 0, NULL, NULL, 0, 0, NULL, 0, 0, NULL, NULL }

#define OPJIT_CUSTOM_RETURNS_STATUS 1u /* the function returns int, not void; anything but 0 ends the kernel's call with
                                          OPJIT_CANCELLED and a message that names node and value */

/* Checks *desc and makes an operator of it, for DML_OPERATOR_GRAPH_NODE_DESC.Operator or opjit_compile_operator; the
 * caller releases it.  All but user and the function is copied.  Kernels with custom operators are in the memory cache
 * (function and user are part of the key), never on disk, and none of their outputs may be an input's memory.
 * OPJIT_UNAVAILABLE where opjit was built without libffi. */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_custom_create(opjit_context *context, const opjit_custom_desc *desc,
                                                           opjit_operator **out_operator, opjit_error *error);

/* --- kernels ---------------------------------------------------------------------------------------------------- */
OPJIT_API void opjit_kernel_retain(opjit_kernel *kernel);
OPJIT_API void opjit_kernel_release(opjit_kernel *kernel);

typedef struct opjit_binding {
    void *data;      /* inputs are only read */
    uint64_t bytes;  /* of the memory at data; may be more than the tensor needs */
} opjit_binding;

typedef struct opjit_call {
    uint32_t struct_size;
    uint32_t binding_count;
    const opjit_binding *bindings;  /* used inputs in order, then outputs; an absent optional input has no binding */
    const uint64_t *params;         /* late parameters in the order of opjit_compile_options.late (abi.h: params) */
    uint32_t param_count;
    uint32_t reserved;              /* 0 */
    opjit_binding workspace;        /* 64-byte aligned, of opjit_kernel_info.workspace_bytes; {NULL, 0}: allocated for
                                       the call where the kernel needs any, or on a device the stream's */
    const opjit_executor *executor; /* NULL: everything on the caller's thread; NULL for kernels on a device */
    void *stream;                   /* for kernels on a device: what they are put into, NULL is its default stream; else
                                       NULL */
} opjit_call;
#define OPJIT_CALL_INIT { sizeof(opjit_call), 0, NULL, NULL, 0, 0, { NULL, 0 }, NULL, NULL }

/* Runs the kernel and returns when it is done; for a kernel on a device, when it stands in the stream.  Count,
 * bytes, alignment and overlap of the bindings are checked; an output may be the same memory as an input where
 * opjit_buffer_info.alias_inputs says so, any other overlap with an output is refused.  Re-entrant. */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_kernel_call(const opjit_kernel *kernel, const opjit_call *call,
                                                         opjit_error *error);

typedef struct opjit_kernel_info {
    uint32_t struct_size;
    uint32_t flags;                   /* OPJIT_KERNEL_... */
    const char *name, *target;        /* owned by the kernel, as everything below */
    const opjit_kernel_meta *meta;
    const opjit_buffer_info *buffers; uint32_t buffer_count; /* inputs, outputs, constants */
    uint32_t inputs, outputs;
    const opjit_param_info *params; uint32_t param_count;
    opjit_level level;
    uint64_t code_bytes, workspace_bytes; /* workspace for one worker; each further one adds meta->scratch_size */
    uint64_t bytes_read, bytes_written;
    double compile_ms, lower_ms, passes_ms, codegen_ms, load_ms; /* 0 where it came from a cache */
    uint64_t unproven_bounds;         /* accesses, loops and tensors of which the compiler found no proof that they stay
                                         inside of memory and apart from each other; 0 is what to expect */
} opjit_kernel_info;
#define OPJIT_KERNEL_INFO_INIT { sizeof(opjit_kernel_info), 0, NULL, NULL, NULL, NULL, 0, 0, 0, NULL, 0, OPJIT_LEVEL_AUTO, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* What buffer `index` is called: an operator's field ("InputTensor"), in kernels made ahead of time from a graph the
 * name of its edge; else "Inputs[0]", "Outputs[0]".  In a call's messages, too. */
static inline const char *opjit_kernel_buffer_name(const opjit_kernel_info *info, uint32_t index)
{
    return index < info->buffer_count ? (const char *)info->meta + info->buffers[index].name : NULL;
}
/* The late field that stands at `index` of opjit_call.params. */
static inline const char *opjit_kernel_param_name(const opjit_kernel_info *info, uint32_t index)
{
    return index < info->param_count ? (const char *)info->meta + info->params[index].name : NULL;
}

#define OPJIT_KERNEL_INTERPRETED 1u /* runs in the IR interpreter */
#define OPJIT_KERNEL_FROM_DISK 2u
#define OPJIT_KERNEL_ON_DEVICE 4u    /* runs on the context's device */

OPJIT_API OPJIT_NODISCARD opjit_status opjit_kernel_get_info(const opjit_kernel *kernel, opjit_kernel_info *out_info,
                                                             opjit_error *error);

/* Makes the peak version of a quick kernel on the caller's thread and swaps it in for later calls; calls that run
 * meanwhile finish with the old code.  Nothing to do for a peak or interpreted kernel: OPJIT_OK. */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_kernel_optimize(opjit_kernel *kernel, opjit_error *error);

/* The kernel's code and metadata in one piece, to be kept and given to opjit_kernel_load in another process, which
 * may have opjit-runtime alone (and libopjit-device, for a kernel on a device).  The kernel's own, valid as long as
 * it is.  UNSUPPORTED: interpreted kernels, those with custom operators and those of libraries have none. */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_kernel_get_image(const opjit_kernel *kernel, const void **out_image,
                                                              uint64_t *out_bytes, opjit_error *error);

/* The kernel of an image, which lies at a multiple of 8 and is copied.  It is checked as a whole and refused where
 * it is damaged (CORRUPT), of another version of opjit, or needs what this CPU or the context's device lacks
 * (UNSUPPORTED); what its code does nobody can check: load only what you trust.  constants: memory for each buffer
 * of that role, in order, that outlives the kernel; NULL where there are none. */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_kernel_load(opjit_context *context, const void *image, uint64_t bytes,
                                                         const void *const *constants, uint32_t constant_count,
                                                         opjit_kernel **out_kernel, opjit_error *error);

/* --- devices ------------------------------------------------------------------------------------------------------ */
/* A context with a device (opjit_context_options.device) makes kernels that run there.  Their bindings are
 * addresses on the device, of these functions or of the driver's own in the device's primary context (cuMemAlloc,
 * cudaMalloc, hipMalloc), at multiples of OPJIT_GPU_ALIGNMENT.  A call puts the kernel into its stream, one of
 * these functions' or of the driver's (CUstream, hipStream_t), and what goes wrong while it runs is said by a later
 * wait, if by nobody before. The kernel's code and constants are brought there by its first call.  A workspace that
 * a call does not bring belongs to the stream, and is there until opjit_stream_destroy or the end of context and
 * kernels: the driver's own streams have to be empty when they are destroyed, and the stream that each thread has
 * of its own (CU_STREAM_PER_THREAD) needs one. The last release of a kernel waits for the device.  Context and
 * kernels share the device; its memory and streams are to be freed before the context goes.  All of this is in
 * libopjit-device, which is loaded where a device is named. UNSUPPORTED: the context has no device. */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_device_allocate(opjit_context *context, uint64_t bytes, void **out_memory,
                                                             opjit_error *error);
/* Waits for the device's streams; NULL is fine. */
OPJIT_API void opjit_device_free(opjit_context *context, void *memory);
/* Copy to and from the device behind what the stream (NULL: the default one) holds, and return when that is done. */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_device_write(opjit_context *context, void *stream, void *to,
                                                          const void *from, uint64_t bytes, opjit_error *error);
OPJIT_API OPJIT_NODISCARD opjit_status opjit_device_read(opjit_context *context, void *stream, void *to,
                                                         const void *from, uint64_t bytes, opjit_error *error);
/* A stream beside all others, the default one too. */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_stream_create(opjit_context *context, void **out_stream,
                                                           opjit_error *error);
/* Waits for it; NULL is fine. */
OPJIT_API void opjit_stream_destroy(opjit_context *context, void *stream);
/* Waits for all that the stream (NULL: the default one) holds. */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_stream_wait(opjit_context *context, void *stream, opjit_error *error);

/* --- threads ------------------------------------------------------------------------------------------------------ */
/* An executor with threads of opjit's own, for opjit_call.executor.  They are started when work is first worth sharing,
 * sleep where there is none, block all signals but those of faults, and are named "opjit"; where the system gives none,
 * the caller works alone.
 * Results are the same bytes for any number of threads.
 * Any number of threads may call with one pool: while it is busy, others work alone on their own thread, and so does a
 * body that runs something on the pool it is run by.  A forked child may use the pool that it inherits and gets threads
 * of its own, unless it was forked inside of a body: it must not return from that. */
typedef struct opjit_pool opjit_pool;
#define OPJIT_POOL_MAX_THREADS 1024u

/* threads counts the caller, up to OPJIT_POOL_MAX_THREADS; 0: one for each core that the calling thread may run on.
 * allocator is copied; NULL: malloc and free.  The caller destroys the pool. */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_pool_create(const opjit_allocator *allocator, uint32_t threads,
                                                         opjit_pool **out_pool, opjit_error *error);
/* Owned by the pool. */
OPJIT_API const opjit_executor *opjit_pool_executor(const opjit_pool *pool);
/* Ends its threads and frees it.  No call may be using it. */
OPJIT_API void opjit_pool_destroy(opjit_pool *pool);

/* --- kernels made ahead of time ----------------------------------------------------------------------------------- */
/* A library of kernels that `opjit compile --emit lib` or OPJIT_ARTIFACT_SHARED made; opjit_artifact_* says more.  Any
 * number of threads may use one. */
typedef struct opjit_library opjit_library;

/* Reads a shared library that opjit wrote, checks all of it and maps it, without the dynamic loader (which can load
 * it too, and be asked for its functions).  The caller closes it.  Expected failures: NOT_FOUND, IO, CORRUPT
 * (damaged, or not written by opjit), UNSUPPORTED (another version of opjit or architecture), UNAVAILABLE (no
 * executable memory). */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_library_open(opjit_context *context, const char *path,
                                                          opjit_library **out_library, opjit_error *error);
/* The kernels of a static library that is part of this program, or of a library that it has loaded and keeps loaded:
 * NAME_registry, as the library's header declares it. */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_library_of(opjit_context *context,
                                                        const struct opjit_aot_registry *registry,
                                                        opjit_library **out_library, opjit_error *error);
/* Kernels stay valid.  What opjit_library_entry gave does not. */
OPJIT_API void opjit_library_close(opjit_library *library);
/* Its kernels' names in order (NULL: there is no such kernel); owned by the library. */
OPJIT_API uint32_t opjit_library_count(const opjit_library *library);
OPJIT_API const char *opjit_library_name(const opjit_library *library, uint32_t index);

/* The kernel of that name, the best version that this CPU can run; the caller releases it.  Expected failures:
 * NOT_FOUND; UNSUPPORTED where no version runs here, with what is missing. */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_library_find(opjit_library *library, const char *name,
                                                          opjit_kernel **out_kernel, opjit_error *error);

typedef enum opjit_entry {
    OPJIT_ENTRY_TYPED = 1, /* void (const T *in0, ..., U *out0, ..., params ..., void *workspace) */
    OPJIT_ENTRY_PACKED = 2 /* void (void *const *buffers, const uint64_t *params, void *workspace) */
} opjit_entry;

/* The same as a plain function, which checks nothing; to be cast to its type, or called by opjit_typed_call. */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_library_entry(const opjit_library *library, const char *name,
                                                           opjit_entry entry, void (**out_function)(void),
                                                           opjit_error *error);

/* --- typed access (libffi) ---------------------------------------------------------------------------------------- */
/* A plain C function for a kernel whose bindings are fixed but for its pointers: void f(const void *in0, ..., void
 * *out0). Every buffer is taken to have exactly the bytes of its opjit_buffer_info.  Late parameters follow as
 * int64_t, float, double ... by their dtype (FLOAT16 as uint16_t).  The function is callable from any thread until
 * the closure is destroyed; a failing call (overlap, alignment) is dropped and counted. OPJIT_UNAVAILABLE where the
 * system allows no closures or opjit was built without libffi. */
typedef struct opjit_closure opjit_closure;
OPJIT_API OPJIT_NODISCARD opjit_status opjit_closure_create(opjit_kernel *kernel, opjit_closure **out_closure,
                                                            void (**out_function)(void), opjit_error *error);
/* Calls that failed since creation, with the last message in *error where it is not NULL. */
OPJIT_API uint64_t opjit_closure_failures(const opjit_closure *closure, opjit_error *error);
OPJIT_API void opjit_closure_destroy(opjit_closure *closure);

/* Calls any C function whose signature is known only at run time: void function(types...).  types and values have
 * count elements; DML_TENSOR_DATA_TYPE_UNKNOWN stands for a pointer, values[i] points to the i-th argument's value. */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_typed_call(void (*function)(void), uint32_t count,
                                                        const DML_TENSOR_DATA_TYPE *types, void *const *values,
                                                        opjit_error *error);

/* --- ahead of time ------------------------------------------------------------------------------------------------ */
/* Kernels compiled to be shipped, for this CPU or any other: objects and texts for other programs.
 *
 *     opjit_artifact_create(context, &options, &artifact, &error);          // for which targets
 *     opjit_artifact_add_operator(artifact, op, &compile, &error);          // compile.name: the function's name
 *     opjit_artifact_get(artifact, 0, OPJIT_ARTIFACT_OBJECT, &data, &bytes, &error);    // write it to NAME.o
 *
 *
 * An object has, for each kernel, the functions
 *     void NAME(const T *in0, ..., U *out0, ..., params ..., void *workspace)
 *     void NAME_packed(void *const *buffers, const uint64_t *params, void *workspace)
 *     int NAME_runs_here(void)
 * its stages, and the metadata of abi.h.  Nothing in it is undefined or writable.  The generated header is the
 * manual: shapes, alignment, workspace, what may be in place.  The same kernels, targets, level and LLVM give the
 * same bytes. Several targets make several versions of every kernel; NAME is then the first one, from the one with
 * the most features on, that the machine can run (an indirect function, chosen once by the dynamic loader; x86-64
 * and glibc). An artifact is used by one thread at a time, and its context outlives it. */
typedef struct opjit_artifact opjit_artifact;
#define OPJIT_ARTIFACT_MAX_TARGETS 16u

typedef struct opjit_artifact_options {
    uint32_t struct_size;
    uint32_t target_count;
    const char *const *targets; /* NULL and 0: the context's target */
    const char *name;           /* of the libraries: NAME_registry is their list of kernels; NULL: "kernels" */
} opjit_artifact_options;
#define OPJIT_ARTIFACT_OPTIONS_INIT { sizeof(opjit_artifact_options), 0, NULL, NULL }

/* Whether a kernel may have this name: a C identifier of at most 63 characters that is no word of C or C++, no function
 * of the C library, and neither begins with an underscore nor has two in a row. */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_artifact_check_name(const char *name, opjit_error *error);

/* An empty artifact, which the caller destroys.  options may be NULL. */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_artifact_create(opjit_context *context,
                                                             const opjit_artifact_options *options,
                                                             opjit_artifact **out_artifact, opjit_error *error);
OPJIT_API void opjit_artifact_destroy(opjit_artifact *artifact);

/* Adds a kernel.  options: its name is needed, its target has to be NULL; level AUTO is peak here.  Everything is
 * copied or retained, constants too.  A graph's buffers are called as the Name of an edge at its inputs and outputs
 * says, in the header as far as C can have such a parameter.  Expected failures: a name that is used already (also by another kernel's
 * NAME_packed ...), UNSUPPORTED for custom operators, which are functions of this process. */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_artifact_add_operator(opjit_artifact *artifact, opjit_operator *op,
                                                                   const opjit_compile_options *options,
                                                                   opjit_error *error);
OPJIT_API OPJIT_NODISCARD opjit_status opjit_artifact_add_graph(opjit_artifact *artifact, const DML_GRAPH_DESC *desc,
                                                                const opjit_compile_options *options,
                                                                opjit_error *error);
/* Kernels added so far, and their names (NULL: there is no such kernel). */
OPJIT_API uint32_t opjit_artifact_count(const opjit_artifact *artifact);
OPJIT_API const char *opjit_artifact_name(const opjit_artifact *artifact, uint32_t index);

typedef enum opjit_artifact_kind {
    OPJIT_ARTIFACT_OBJECT = 1, /* .o */
    OPJIT_ARTIFACT_HEADER = 2, /* .h: C11 and C++17, needs the C library's headers alone */
    OPJIT_ARTIFACT_LLVM = 3,   /* .ll */
    OPJIT_ARTIFACT_ASM = 4,    /* .s */
    OPJIT_ARTIFACT_IR = 5,     /* .ir: opjit's own, as it goes to code generation */
    OPJIT_ARTIFACT_JSON = 6,   /* .json: what the header says, for programs */
    OPJIT_ARTIFACT_ARCHIVE = 7, /* .a of all kernels, with their registry */
    OPJIT_ARTIFACT_SHARED = 8,  /* .so of the same, which needs no linker to be made and no library to be loaded */
    OPJIT_ARTIFACT_LIBRARY_HEADER = 9, /* .h that includes those of all kernels and declares the registry */
    OPJIT_ARTIFACT_PTX = 10,   /* .ptx, for NVIDIA GPUs: LLVM, IR and JSON are the others; .json says how to launch it */
    OPJIT_ARTIFACT_CUBIN = 11, /* .cubin: the same, assembled by the program ptxas; UNAVAILABLE where there is none */
    OPJIT_ARTIFACT_HSACO = 12, /* .hsaco: the code object for an AMD GPU, as ROCm loads it; made without a linker */
    OPJIT_ARTIFACT_SPIRV = 13  /* .spv: SPIR-V 1.2 for OpenCL devices */
} opjit_artifact_kind;

/* Makes one output of kernel `index`, or, for ARCHIVE, SHARED and LIBRARY_HEADER, of all kernels together, whatever
 * index is.  *out_data is the artifact's and stays until it is destroyed or a kernel is added.
 * Texts end with a newline and have no NUL.  Headers, IR and JSON need no codegen library. */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_artifact_get(opjit_artifact *artifact, uint32_t index,
                                                          opjit_artifact_kind kind, const void **out_data,
                                                          uint64_t *out_bytes, opjit_error *error);

/* --- looking inside ----------------------------------------------------------------------------------------------- */
/* Called once a pass with the IR text after it; text is valid during the call only. */
typedef void (*opjit_explain_fn)(void *user, const char *stage, const char *text);

/* Lowers the operator and runs the passes without code generation, handing out the IR after each of them, beginning
 * with "lower". */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_operator_explain(opjit_context *context, opjit_operator *op,
                                                              const opjit_compile_options *options, opjit_explain_fn fn,
                                                              void *user, opjit_error *error);
/* The same for a graph. */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_graph_explain(opjit_context *context, const DML_GRAPH_DESC *desc,
                                                           const opjit_compile_options *options, opjit_explain_fn fn,
                                                           void *user, opjit_error *error);

#ifdef __cplusplus
}
#endif
#endif
