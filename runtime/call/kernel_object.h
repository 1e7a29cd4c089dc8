/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_object.h - the fields of a kernel, for the files of this folder and device/call.c; everyone else uses
 * kernel.h. */
#ifndef OPJIT_RUNTIME_CALL_KERNEL_OBJECT_H
#define OPJIT_RUNTIME_CALL_KERNEL_OBJECT_H

#include <stdalign.h>
#include <stdatomic.h>
#include <string.h>

#include "runtime/call/kernel.h"
#include "runtime/debug/debug.h"

enum { STACK_BUFFERS = 64, STACK_PARAMS = 16 }; /* kernels with more take memory for them at each call */

/* One loaded image.  A kernel has one, two after opjit_kernel_optimize: calls may still run the older. */
typedef struct program {
    struct program *older;
    const opjit_kernel_meta *meta; /* in the mapping or in the copy */
    const opjit_step_info *steps;
    const opjit_variant_info *variants;
    const opjit_range_info *ranges; /* of the variants, by which calls choose; NULL: by what shares memory */
    const opjit_size_form *extents; /* of the steps, where there are dynamic dimensions; else NULL */
    const uint8_t *code;
    size_t code_size, image_size;
    bool plain; /* machine code that needs nothing but the call's buffers and parameters, of which there are few */
    const opjit_step_info *only_step; /* all that a plain program without parameters does where no buffers share memory;
                                         NULL: more */
    rt_mapping mapping;
    void *copy; /* image of an interpreted kernel, which needs no executable memory */
    rt_debug_entry *debug;
    rt_launch *launches; /* by step: the kernel runs on the core's device; NULL: here */
    _Atomic(rt_device_code *) loaded; /* there; NULL before its first call */
    rt_interpret_fn interpret;        /* with user; NULL: there is code */
    void *user;
    const rt_custom_plan *customs;    /* NULL: no custom steps */
    void *kept;          /* what stages that run once made; NULL: nothing */
    size_t kept_bytes;   /* of it, if the program allocated it; 0: an older version's of the same kernel, or mapped */
    void *kept_map;      /* the mapping that it is in, of kept_map_bytes; NULL: none */
    size_t kept_map_bytes;
    opjit_kernel *owner; /* whose code this is, with a reference (opjit_rt_kernel_adopt); NULL: the program's own */
} program;

/* What a call checks of a buffer, gathered from the metadata into one cache line or two. */
typedef struct slot {
    uint64_t bytes;
    uint32_t align_mask;
    uint32_t alias_inputs;
    void *constant; /* bound by the kernel itself */
} slot;

/* What a kernel needs of its tiers (tiers.c), by pointers: the runtime alone makes none. */
typedef struct rt_tiers_base {
    /* For a call with these sizes, which are checked: runs the kernel that there is of them, *out_status is what came
     * of it; false: there is none, or the call's workspace is too small for it, and the call is counted. */
    bool (*call)(const opjit_kernel *k, const opjit_call *call, const uint64_t *dims, opjit_status *out_status,
                 opjit_error *error);
    void (*close)(struct rt_tiers_base *tiers); /* the kernel goes */
} rt_tiers_base;

/* What look-ups write, the reference count, has cache lines apart from what calls read and from other kernels'. */
struct opjit_kernel {
    alignas(64) _Atomic(program *) active; /* newest; the list through older only grows while the kernel lives */
    uint32_t bindings;         /* inputs and outputs */
    uint32_t inputs, buffers;
    uint32_t params, dims;     /* late parameters, and dynamic dimensions behind them */
    uint32_t pointers;         /* that a call holds: to buffers, then to what is kept, or lies between custom steps */
    rt_tiers_base *tiers;      /* kernels of one size beside it; NULL: none */
    rt_kernel_hooks hooks;
    rt_core *core;
    rt_kernel_times times;
    opjit_kernel *base;        /* whose programs these are (opjit_rt_kernel_bind); NULL: its own */
    _Atomic uint64_t constants_at; /* on the device, in one piece; 0: before the first call */
    rt_constant **shared;      /* by constant, those that it holds; NULL: none */
    alignas(64) atomic_uint references;
    rt_lock optimizing;
    _Atomic(uintptr_t) optimizer; /* the thread that holds it; 0: none */
    alignas(64) slot slots[]; /* one per buffer */
};

static inline const opjit_buffer_info *program_buffers(const program *p)
{
    return (const opjit_buffer_info *)((const char *)p->meta + p->meta->buffer_info);
}
static inline const opjit_param_info *program_params(const program *p)
{
    return (const opjit_param_info *)((const char *)p->meta + p->meta->param_info);
}
static inline const opjit_param_info *program_dims(const program *p)
{
    return program_params(p) + (p->meta->params - rt_meta_dims(p->meta));
}
static inline opjit_stage_fn program_stage(const program *p, const opjit_step_info *step)
{
    opjit_stage_fn fn;
    const uint8_t *entry = p->code + step->entry;
    memcpy(&fn, &entry, sizeof fn); /* object pointer to function pointer, without the cast that C lacks */
    return fn;
}
/* For messages: never NULL. */
static inline const char *program_string(const program *p, uint32_t offset)
{
    return offset == 0 ? "?" : (const char *)p->meta + offset;
}

static inline const char *kernel_buffer_name(const opjit_kernel *k, uint32_t index)
{
    const program *p = atomic_load(&k->active);
    return program_string(p, program_buffers(p)[index].name);
}

/* Whether [a, a + a_bytes) and [b, b + b_bytes) meet; exact also where an end would wrap. */
static inline bool ranges_meet(const void *a, uint64_t a_bytes, const void *b, uint64_t b_bytes)
{
    return (uintptr_t)a - (uintptr_t)b < b_bytes || (uintptr_t)b - (uintptr_t)a < a_bytes;
}

/* --- kernel.c ----------------------------------------------------------------------------------------------------- */
/* image: bytes that nobody changes meanwhile.  hooks: of the kernel, or NULL; interpreted: hooks->interpret runs it. */
opjit_status opjit_rt_program_create(rt_core *core, const void *image, size_t size, const rt_kernel_hooks *hooks,
                                     bool interpreted, program **out, opjit_error *error);
void opjit_rt_program_destroy(rt_core *core, program *p); /* NULL is fine */
/* What the kernel's code came from: itself, or the kernel that it took its newest version from. */
static inline const opjit_kernel *kernel_maker(const opjit_kernel *k)
{
    const program *p = atomic_load(&k->active);
    return p->owner != NULL ? p->owner : k;
}

/* --- keep.c ------------------------------------------------------------------------------------------------------- */
/* A program that runs the code of owner's newest version, and keeps nothing yet.  Retains owner. */
opjit_status opjit_rt_program_borrow(opjit_kernel *owner, program **out, opjit_error *error);
/* Gives back what is p's own of what it keeps. */
void opjit_rt_program_drop_kept(rt_core *core, const program *p);
/* Gives p what they would make, without running them; false: *kept is of another size or layout. */
bool opjit_rt_program_take(program *p, const rt_kept *kept);
/* Runs the stages of p that run once, with the constants of k, unless an older version of k has kept the same.
 * executor: on its threads, NULL: on this one. */
opjit_status opjit_rt_program_keep(const opjit_kernel *k, program *p, const opjit_executor *executor,
                                   opjit_error *error);

/* --- run.c -------------------------------------------------------------------------------------------------------- */
/* Where the clock's readings of a call go. */
typedef struct rt_timing {
    opjit_step_time *steps;
    uint32_t capacity, count;
} rt_timing;

/* One call on its way: everything that its pieces share. */
typedef struct rt_run {
    const opjit_kernel *kernel;
    const program *program;
    const slot *slots;      /* of its buffers: the kernel's, or with the bytes of this call's sizes */
    void **buffers;
    const uint64_t *params; /* late parameters, then sizes of dynamic dimensions */
    uint8_t *shared, *scratch; /* scratch: worker after worker, meta->scratch_size apart */
    const opjit_executor *executor;
    rt_timing *timing; /* NULL: nobody asks */
} rt_run;

static inline uint32_t call_workers(const opjit_call *call)
{
    return call->executor == NULL ? 1 : call->executor->workers;
}
/* keep.c.  Runs the iterations of a stage, in pieces on r's executor where there is more than one: a single one stays
 * on this thread, as handing it over would only cost time. */
opjit_status opjit_rt_run_stage(const rt_run *r, uint32_t index, uint64_t extent, opjit_error *error);
/* keep.c.  What the shared and the scratch memory take; false: more than any memory. */
bool opjit_rt_workspace_needed(const program *p, uint32_t workers, uint64_t *out);
opjit_status opjit_rt_refuse_no_workspace(const opjit_call *call, opjit_error *error);
/* buffers: of the call and the kernel's constants, which somebody else may have lent it; slots: theirs. */
opjit_status opjit_rt_check_workspace(const opjit_kernel *k, const slot *slots, const opjit_call *call,
                                      void *const *buffers, uint64_t needed, opjit_error *error);
/* Runs the variant's steps; r has kernel, program, slots, buffers, parameters and timing. */
opjit_status opjit_rt_call_in_full(rt_run *r, const opjit_call *call, const opjit_variant_info *variant,
                                   opjit_error *error);

/* pool.c: a call of several steps begins (1) or ends (-1u).  Until it ends, threads of the executor, if that is a
 * pool's, watch longer for the next step than they do after a call.  Other executors: nothing happens. */
void opjit_rt_pool_count_call(const opjit_executor *e, unsigned by);

/* --- dims.c ------------------------------------------------------------------------------------------------------- */
/* For a kernel that needs another number of sizes, or got none at all. */
opjit_status opjit_rt_refuse_dim_count(const opjit_kernel *k, uint32_t given, opjit_error *error);
/* Whether each size is inside of its dimension's interval. */
opjit_status opjit_rt_check_dims(const program *p, const uint64_t *dims, opjit_error *error);
/* What a call with checked sizes checks of its buffers, one per buffer. */
void opjit_rt_size_slots(const opjit_kernel *k, const program *p, const uint64_t *dims, slot *slots);

/* --- overlap.c ---------------------------------------------------------------------------------------------------- */
typedef struct rt_place {
    uintptr_t at;
    uint32_t buffer;
} rt_place;
/* Of a call with so many buffers that pairs are too many: adds to *alias those that share memory as they may.
 * False: an output shares it with another buffer, and may not.  slots: of the kernel's buffers, in this call.
 * room: for two places a buffer. */
bool opjit_rt_overlaps_by_place(const opjit_kernel *k, const slot *slots, void *const *buffers, rt_place *room,
                                uint64_t *alias, uint32_t *out_output, uint32_t *out_other);

/* --- device/call.c ------------------------------------------------------------------------------------------------ */
/* Fills launches out of the metadata. */
opjit_status opjit_rt_program_launches(rt_core *core, program *p, opjit_error *error);
/* Gives back what programs and kernels have on the device. */
void opjit_rt_program_unload(const rt_core *core, program *p);
void opjit_rt_kernel_unload(opjit_kernel *k);
/* buffers: what bindings say; there is room for the constants. */
opjit_status opjit_rt_call_on_device(const opjit_kernel *kernel, const program *p, const opjit_call *call,
                                     const opjit_variant_info *variant, void **buffers, opjit_error *error);

#endif
