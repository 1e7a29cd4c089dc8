/* SPDX-License-Identifier: Apache-2.0 */
/* opjit/abi.h - what compiled kernels look like from outside: the stage function, the executor that runs stages,
 * and the metadata that travels with the code.  Code that is called ahead of time needs this header alone.
 * Everything here is plain data without pointers into opjit; the same bytes stand in a cached image and in an
 * object.  Since 0.1; frozen for one OPJIT_KERNEL_ABI and OPJIT_AOT_ABI (opjit.h, stability). */
#ifndef OPJIT_ABI_H
#define OPJIT_ABI_H

#include <stddef.h>
#include <stdint.h>

#include <opjit/status.h>

#ifdef __cplusplus
extern "C" {
#endif

#define OPJIT_KERNEL_ABI 2u  /* stage signature and metadata layout */
#define OPJIT_NUMERICS 1u    /* builds with the same number give the same bits for the same graph */
#define OPJIT_MAX_RANK 8u
#define OPJIT_MAX_DIMS 8u /* dynamic dimensions of a kernel */
#define OPJIT_MAX_POWERS 16u /* dimensions and quotients of them that its forms have powers of */
/* What every buffer of a call on a GPU is aligned to, whatever its element's size. */
#define OPJIT_GPU_ALIGNMENT 16u
#define OPJIT_WORKSPACE_ALIGNMENT 64u

/* One stage of a kernel, iterations [begin, end) of its one parallel loop.  Re-entrant; touches nothing except its
 * arguments; ends with a store fence where it used non-temporal stores.
 *   buffers  used inputs in order, then outputs (absent optional inputs have no slot), then constants that the kernel
 *            keeps, then what it made of them (opjit_kernel_meta.kept_size)
 *   params   late parameters, 8 bytes each: integers sign- or zero-extended, floats as their bits zero-extended; then
 *            the sizes of the dynamic dimensions
 *   shared   memory shared by all stages of one call; scratch: memory of this worker alone; both 64-byte aligned
 * [any thread, 0.1] */
typedef void (*opjit_stage_fn)(void *const *buffers, const uint64_t *params, void *shared, void *scratch,
                               uint64_t begin, uint64_t end);

/* Who runs the pieces of a stage.  run must cover [0, extent) exactly once in pieces whose bounds are multiples of
 * grain (except for the last end) by calling body, and return only when all of them are done.  worker is below workers
 * and unique among the pieces that run at one time.  run returns OPJIT_OK, or a status that the call then returns. */
typedef struct opjit_executor {
    void *user;                /* first argument of run */
    uint32_t workers;          /* pieces that may run at one time; 1 and more */
    /* Runs body(arg, ...) over [0, extent): the contract is above. */
    opjit_status (*run)(void *user, uint64_t extent, uint64_t grain,
                        void (*body)(void *arg, uint32_t worker, uint64_t begin, uint64_t end), void *arg);
} opjit_executor;

typedef enum opjit_buffer_role {
    OPJIT_BUFFER_INPUT = 0,
    OPJIT_BUFFER_OUTPUT = 1,
    OPJIT_BUFFER_CONSTANT = 2
} opjit_buffer_role;

typedef struct opjit_buffer_info {
    uint32_t role;             /* opjit_buffer_role */
    uint32_t dtype;            /* DML_TENSOR_DATA_TYPE */
    uint32_t rank;             /* 1 to 8 */
    uint32_t align;            /* bytes; a power of two */
    uint64_t sizes[8];         /* elements; unused ones 1 */
    uint64_t strides[8];       /* elements; unused ones 0 */
    uint64_t bytes;            /* a binding must have at least this many */
    uint32_t alias_inputs;     /* outputs: bit i set: may be the same memory as buffer i */
    uint32_t name;             /* offset of a NUL-terminated name in the metadata; 0: none */
} opjit_buffer_info;

typedef struct opjit_param_info {
    uint32_t dtype;            /* DML_TENSOR_DATA_TYPE of the value in the low bytes of the 8-byte slot */
    uint32_t name;             /* offset of the field's name in the metadata */
    int64_t lo, hi;            /* integers: allowed interval, both ends included; floats: 0, 0 */
} opjit_param_info;

/* A number that follows from the sizes d of a call's dynamic dimensions:
 *     times * floor((constant + sum over i of factors[i] * product over k of d[k] to the power of powers[i][k])
 *                   / divisor)
 * An unused term has the factor 0 and powers of 0.  Where the second term has the factor 0 and powers, their product is
 * a factor of the whole: so many blocks of rows of each of so many matrices.  Behind the dimensions, k counts the
 * quotients of opjit_kernel_meta.quotients. */
typedef struct opjit_size_form {
    int64_t constant;          /* what no size has a part in */
    int64_t factors[2];        /* of the terms */
    uint8_t powers[2][OPJIT_MAX_POWERS]; /* at most 4 each */
    int64_t divisor, times;    /* at least 1 each */
} opjit_size_form;
/* What follows the dimensions in the powers of forms: floor((the size of a dimension + plus) / by), which is 0 or more.
 * So frames of a signal and halves of an image are linear in something. */
typedef struct opjit_quotient {
    uint32_t dim;              /* the dimension */
    uint32_t reserved;         /* 0 */
    int64_t plus, by;          /* by: at least 1 */
} opjit_quotient;
/* Forms of an input or output: bytes, then sizes[0] to sizes[7] of its opjit_buffer_info. */
#define OPJIT_BUFFER_FORMS (1u + OPJIT_MAX_RANK)

/* A kernel for a GPU has launches alone, the others have none. */
typedef enum opjit_step_kind { OPJIT_STEP_STAGE = 0, OPJIT_STEP_CUSTOM = 1, OPJIT_STEP_LAUNCH = 2 } opjit_step_kind;

typedef struct opjit_step_info {
    uint32_t kind;             /* opjit_step_kind */
    uint32_t entry;            /* stage: offset from the start of the code; custom: its index; launch: offset of its
                                  opjit_launch_info in the metadata */
    uint64_t extent, grain;    /* iterations of the parallel loop; smallest piece; custom: 1, 1 */
} opjit_step_info;

/* How a GPU runs a stage.  The code is PTX, a text that ends with a NUL, or a code object, as the target says.  All
 * its kernels have the same arguments, 8 bytes each: the addresses of all buffers in order (inputs, outputs,
 * constants), the late parameters as in opjit_call.params, the address of the workspace, of shared_size bytes and
 * 64-byte aligned, which may be 0 where that is 0.  Launches follow each other in one stream; no two of one
 * workspace may run at one time.  No dynamic shared memory is needed. */
typedef struct opjit_launch_info {
    uint32_t name;             /* of the kernel in the code; offset of a NUL-terminated string in the metadata */
    uint32_t shared_bytes;     /* shared memory of a block, which the code asks for itself */
    uint32_t grid[3], block[3]; /* blocks of the grid, threads of a block: x, y, z */
} opjit_launch_info;

/* A step list.  alias_mask bit (output * 8 + input), outputs and inputs counted below 8: holds when that output is
 * that input's memory.  The first variant whose mask is part of the call's mask is run; the last one has mask 0.
 * Variants with ranges (opjit_kernel_meta.ranges) have mask 0; the one that the call's sizes are in is run. */
typedef struct opjit_variant_info {
    uint64_t alias_mask;       /* pairs that share memory where this variant is run */
    uint32_t first_step, steps; /* in the array at opjit_kernel_meta.step_info */
} opjit_variant_info;

/* The sizes of dynamic dimensions that a variant is for: of each dimension from lo to hi, both included; unused ones 0.
 * No two variants have sizes in common, and all together have all sizes. */
typedef struct opjit_range_info {
    uint32_t lo[OPJIT_MAX_DIMS], hi[OPJIT_MAX_DIMS]; /* by dimension */
} opjit_range_info;

/* All offsets are in bytes from the start of this struct; arrays are 8-byte aligned. */
typedef struct opjit_kernel_meta {
    uint32_t abi;              /* OPJIT_KERNEL_ABI */
    uint32_t size;             /* bytes of the whole metadata */
    uint8_t key[16];           /* hash of the cache key */
    uint32_t name, target;     /* offsets of NUL-terminated strings */
    uint32_t numerics, level;  /* OPJIT_NUMERICS; opjit_level */
    uint64_t features[4];      /* CPU or GPU features that the code needs (bits as in the target's own table) */
    uint32_t inputs, outputs, constants, params; /* entries of buffer_info, in this order, and of param_info */
    uint32_t steps, variants;  /* entries of step_info and variant_info */
    uint32_t buffer_info, param_info, step_info, variant_info; /* offsets of the arrays */
    uint64_t shared_size, scratch_size;                        /* bytes per call; bytes per worker (GPUs: 0) */
    uint64_t flops, bytes_read, bytes_written;                 /* of one call, base variant */
    /* The first version ends here, where its buffer_info begins: what follows is there if buffer_info is behind it. */
    uint32_t unproven_bounds;  /* as in opjit_kernel_info */
    uint32_t reserved;         /* 0 */
    /* The second version ended here. */
    uint32_t once_first, once_steps; /* stages, in no variant, that run once, when the kernel gets its constants: */
    uint64_t kept_size;        /* bytes, 64-byte aligned, that these fill for all calls, which only read them.  Where it
                                  is not 0, `buffers` of all stages ends with a pointer to them, behind the constants */
    uint64_t kept_layout;      /* kernels with the same number and the same constants keep the same bytes */
    /* The third version ended here. */
    uint32_t dims;             /* of the params the last ones, INT64 from 1 or more, are sizes of dynamic dimensions.
                                  What stands for one size elsewhere, such as sizes, bytes and extents, is then the
                                  largest that a call may have */
    uint32_t forms;            /* offset of opjit_size_form: OPJIT_BUFFER_FORMS for each input and output, in order,
                                  then the extent of each step; 0 where dims is 0 */
    /* The fourth version ended here. */
    uint32_t ranges;           /* offset of an opjit_range_info for each variant, by which calls choose one.  What
                                  stands for one size in its steps is then the largest in its range; 0: one variant
                                  has all */
    uint32_t reserved2;        /* 0 */
    /* The fifth version ended here. */
    uint32_t quotients, quotient_count; /* offset of opjit_quotient, that forms have powers of, and how many: with the
                                           dimensions at most OPJIT_MAX_DIMS; 0, 0: none */
} opjit_kernel_meta;

/* --- ahead of time ------------------------------------------------------------------------------------------------ */
/* Objects and libraries are read-only and hold distances in place of pointers: an offset counts from the start of the
 * struct that it stands in. */
#define OPJIT_AOT_ABI 1u /* layout of the structs below */

/* The symbol NAME_kernel of an object: one kernel, or one version of it. */
typedef struct opjit_aot_kernel {
    uint32_t abi;              /* OPJIT_AOT_ABI */
    uint32_t size;             /* bytes of this struct and of the offsets behind it */
    int32_t meta;              /* opjit_kernel_meta */
    uint32_t meta_size;        /* bytes of it */
    int32_t code;              /* what opjit_step_info.entry counts from */
    uint32_t code_size;        /* stages begin within it */
    int32_t packed;            /* void (*)(void *const *buffers, const uint64_t *params, void *workspace) */
    int32_t typed;             /* as the generated header declares it */
    int32_t runs_here;         /* int (*)(void); 0: none, for processors that can't be asked by a program */
    uint32_t constants;        /* this many int32_t offsets of the kernel's own constants follow */
} opjit_aot_kernel;

/* The symbol LIBRARY_registry of a library: its kernels by name, in the order of strcmp; versions of one kernel one
 * after the other, best first.  The entries follow this struct, the names (NUL-terminated) follow them. */
#define OPJIT_AOT_MAGIC "opjitreg" /* 8 bytes, no NUL */
typedef struct opjit_aot_registry {
    char magic[8];             /* OPJIT_AOT_MAGIC */
    uint32_t abi;              /* OPJIT_AOT_ABI */
    uint32_t size;             /* bytes of all, names included; a multiple of 8 */
    uint32_t count;            /* entries */
    uint32_t reserved;         /* 0 */
} opjit_aot_registry;

typedef struct opjit_aot_entry {
    uint32_t name;             /* offset from the start of the registry */
    int32_t kernel;            /* opjit_aot_kernel; offset from the start of this entry */
} opjit_aot_entry;

/* The last bytes of a shared library that opjit wrote, which is not changed by loading: addresses are offsets in it. */
#define OPJIT_AOT_TRAILER_MAGIC "opjitend"
typedef struct opjit_aot_trailer {
    char magic[8];             /* OPJIT_AOT_TRAILER_MAGIC */
    uint32_t abi;              /* OPJIT_AOT_ABI */
    uint32_t machine;          /* as in its ELF header */
    uint64_t size;             /* bytes of the file, trailer included */
    uint64_t registry;         /* opjit_aot_registry */
    uint64_t hash_lo, hash_hi; /* XXH3-128 of all bytes before these */
} opjit_aot_trailer;

#ifdef __cplusplus
}
#endif
#endif
