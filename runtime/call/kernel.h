/* SPDX-License-Identifier: Apache-2.0 */
/* kernel.h - the kernel object: a loaded image with its call plan.  Public functions of opjit_kernel are in
 * kernel.c. */
#ifndef OPJIT_RUNTIME_CALL_KERNEL_H
#define OPJIT_RUNTIME_CALL_KERNEL_H

#include <opjit/opjit.h>

#include "runtime/base/context.h"
#include "runtime/call/custom.h"
#include "runtime/image/image.h"

/* Runs iterations [begin, end) of step `step` (index into the metadata's steps) without machine code. */
typedef opjit_status (*rt_interpret_fn)(void *user, uint32_t step, void *const *buffers, const uint64_t *params,
                                        void *shared, void *scratch, uint64_t begin, uint64_t end, opjit_error *error);

/* What a kernel needs from whoever made it, all of it optional.  The kernel owns `user` once created and gives it
 * to destroy. */
typedef struct rt_kernel_hooks {
    void *user;
    uint64_t user_bytes;         /* that it holds: the cache counts them, too */
    void (*destroy)(void *user);
    rt_interpret_fn interpret;   /* set: the image has no code */
    /* Makes a peak image for opjit_kernel_optimize into *image; NULL: nothing to do.  cancel: as
     * opjit_rt_kernel_optimize. */
    opjit_status (*optimize)(void *user, const atomic_bool *cancel, rt_bytes *image, opjit_error *error);
    const rt_custom_plan *customs; /* NULL: the image has no custom steps */
    rt_hash key;                 /* that it was compiled for; 0: none */
    uint64_t compile_id;         /* opjit_event's */
    bool from_disk;              /* reported in the kernel's info */
    bool zeroed;                 /* what is kept is zero where nothing is stored: padding between and in tensors */
    bool unbound;                /* never called, only a base of opjit_rt_kernel_bind: constants may be NULL */
} rt_kernel_hooks;

typedef struct rt_kernel_times {
    double compile_ms, lower_ms, passes_ms, codegen_ms, load_ms;
    uint32_t modules, direct; /* that code generation made; without LLVM's backend */
} rt_kernel_times;

/* Checks an image that nobody changes meanwhile and maps it (code may be empty where hooks->interpret is set) into
 * a kernel with one reference.  constants: one pointer per constant buffer, of which the image must have
 * constant_count (copied pointers; the memory belongs to hooks->user and outlives the kernel). On failure
 * hooks->user still belongs to the caller.  hooks, times, constants may be NULL. */
opjit_status opjit_rt_kernel_create(rt_core *core, const void *image, size_t size, void *const *constants,
                                    uint32_t constant_count, const rt_kernel_hooks *hooks,
                                    const rt_kernel_times *times, opjit_kernel **out, opjit_error *error);
/* Code and metadata that stand where they can be used, and have been checked. */
typedef struct rt_placed {
    const opjit_kernel_meta *meta;
    const uint8_t *code;
    size_t code_size;
    bool named; /* debuggers know the code already */
} rt_placed;
/* A kernel of what somebody else has mapped: hooks->user keeps it there. */
opjit_status opjit_rt_kernel_place(rt_core *core, const rt_placed *placed, void *const *constants,
                                   const rt_kernel_hooks *hooks, opjit_kernel **out, opjit_error *error);
/* What metadata says of its kernel, as opjit_kernel_get_info: flags, code_bytes and times are 0. */
opjit_status opjit_rt_meta_info(const opjit_kernel_meta *meta, opjit_kernel_info *out, opjit_error *error);
/* Whether this CPU has what the code needs (else UNSUPPORTED), and this runtime knows all steps. */
opjit_status opjit_rt_kernel_runs_here(const opjit_kernel_meta *meta, opjit_error *error);
/* What stages that run once made for a kernel with the same code and the same constants, in another process say. */
typedef struct rt_kept {
    const void *data;      /* NULL: nothing is known; at a multiple of OPJIT_WORKSPACE_ALIGNMENT */
    uint64_t bytes, layout; /* the metadata's kept_size and kept_layout */
    void *map;             /* the mapping that it is in, of map_bytes: the kernel's, if it takes data */
    size_t map_bytes;
} rt_kept;
/* A kernel with the code of base and these constants, one pointer per constant buffer.  shared: by constant, what
 * the kernel takes over where it succeeds, and NULL for those in memory that outlives it (an array of the core's
 * allocator).  executor: on its threads it makes what it keeps; NULL: on this one.  kept: what it takes instead of
 * making it, if that is of its size and layout (opjit_rt_kernel_kept then is kept->data), or NULL.  Retains base. */
opjit_status opjit_rt_kernel_bind(opjit_kernel *base, void *const *constants, rt_constant **shared,
                                  const opjit_executor *executor, const rt_kept *kept, opjit_kernel **out,
                                  opjit_error *error);
/* The memory of the index-th constant, NULL in a base that leaves it to the kernels that are bound to it, and in *align
 * what its address is to be a multiple of. */
void *opjit_rt_kernel_constant(const opjit_kernel *kernel, uint32_t index, uint32_t *align);
/* opjit_kernel_optimize, which gives up once *cancel is true, set by another thread; NULL: nobody may. */
opjit_status opjit_rt_kernel_optimize(opjit_kernel *kernel, const atomic_bool *cancel, opjit_error *error);
/* Makes the code of better the newest version of k, which has the same buffers and parameters, and other constants
 * or none: calls from now on run it, calls under way finish in theirs.  k retains better.  Neither is for a
 * device. */
opjit_status opjit_rt_kernel_adopt(opjit_kernel *k, opjit_kernel *better, opjit_error *error);
/* Releases what such an array of count holds, and the array; NULL is fine. */
void opjit_rt_constants_drop(rt_core *core, rt_constant **shared, uint32_t count);
/* An event with what it says of the kernel: name, target, level, key. */
opjit_event opjit_rt_kernel_event(const opjit_kernel *kernel, opjit_event_kind kind, opjit_event_subject subject);
/* All that goes with the kernel, constants that somebody lent it apart: what the cache counts. */
uint64_t opjit_rt_kernel_bytes(const opjit_kernel *kernel);
/* What the stages that run once made, of the metadata's kept_size; NULL: there are none. */
const void *opjit_rt_kernel_kept(const opjit_kernel *kernel);
/* The size and the layout of that in *out, without data. */
void opjit_rt_kernel_keeps(const opjit_kernel *kernel, rt_kept *out);
/* Whether its images still pass the check that they passed when they were loaded. */
bool opjit_rt_kernel_is_whole(const opjit_kernel *kernel);

#endif
