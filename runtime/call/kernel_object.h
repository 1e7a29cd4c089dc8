/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_object.h - the fields of a kernel, for kernel.c (life), call.c and call.c (calls); everyone else
 * uses kernel.h. */
#ifndef OPJIT_RUNTIME_CALL_KERNEL_OBJECT_H
#define OPJIT_RUNTIME_CALL_KERNEL_OBJECT_H

#include <stdalign.h>
#include <stdatomic.h>

#include "runtime/call/kernel.h"
#include "runtime/debug/debug.h"

enum { STACK_BUFFERS = 64, STACK_PARAMS = 16 }; /* kernels with more take memory for them at each call */

/* One loaded image.  A kernel has one, two after opjit_kernel_optimize: calls may still run the older. */
typedef struct program {
    struct program *older;
    const opjit_kernel_meta *meta; /* in the mapping or in the copy */
    const opjit_step_info *steps;
    const opjit_variant_info *variants;
    const uint8_t *code;
    size_t code_size, image_size;
    bool plain; /* machine code that needs nothing but the call's buffers and parameters, of which there are few */
    const opjit_step_info *only_step; /* all that a plain program does where no buffers share memory; NULL: more */
    rt_mapping mapping;
    void *copy; /* image of an interpreted kernel, which needs no executable memory */
    rt_debug_entry *debug;
    rt_launch *launches; /* by step: the kernel runs on the core's device; NULL: here */
    _Atomic(rt_device_code *) loaded; /* there; NULL before its first call */
} program;

/* What a call checks of a buffer, gathered from the metadata into one cache line or two. */
typedef struct slot {
    uint64_t bytes;
    uint32_t align_mask;
    uint32_t alias_inputs;
    void *constant; /* bound by the kernel itself */
} slot;

/* What look-ups write, the reference count, has cache lines apart from what calls read and from other kernels'. */
struct opjit_kernel {
    alignas(64) _Atomic(program *) active; /* newest; the list through older only grows while the kernel lives */
    uint32_t bindings;         /* inputs and outputs */
    uint32_t inputs, buffers, params;
    uint32_t pointers;         /* that a call holds: to buffers, then to what lies between custom steps */
    rt_interpret_fn interpret;
    rt_kernel_hooks hooks;
    rt_core *core;
    rt_kernel_times times;
    opjit_kernel *base;        /* whose programs these are (opjit_rt_kernel_bind); NULL: its own */
    _Atomic uint64_t constants_at; /* on the device, in one piece; 0: before the first call */
    rt_constant **shared;      /* by constant, those that it holds; NULL: none */
    alignas(64) atomic_uint references;
    rt_lock optimizing;
    _Atomic(uintptr_t) optimizer; /* the thread that holds it; 0: none */
    alignas(64) slot slots[]; /* one a buffer */
};

static inline const opjit_buffer_info *program_buffers(const program *p)
{
    return (const opjit_buffer_info *)((const char *)p->meta + p->meta->buffer_info);
}
static inline const opjit_param_info *program_params(const program *p)
{
    return (const opjit_param_info *)((const char *)p->meta + p->meta->param_info);
}
/* For messages: never NULL. */
static inline const char *program_string(const program *p, uint32_t offset)
{
    return offset == 0 ? "?" : (const char *)p->meta + offset;
}

/* --- overlap.c ----------------------------------------------------------------------------------------------- */
typedef struct rt_place {
    uintptr_t at;
    uint32_t buffer;
} rt_place;
/* Of a call with so many buffers that pairs are too many: adds to *alias those that share memory as they may.  False: an
 * output shares it with another buffer, and may not.  room: for two places a buffer. */
bool opjit_rt_overlaps_by_place(const opjit_kernel *k, void *const *buffers, rt_place *room, uint64_t *alias,
                                uint32_t *out_output, uint32_t *out_other);

/* --- call.c ------------------------------------------------------------------------------------------------ */
/* Fills launches out of the metadata. */
opjit_status opjit_rt_program_launches(rt_core *core, program *p, opjit_error *error);
/* Gives back what programs and kernels have on the device. */
void opjit_rt_program_unload(const rt_core *core, program *p);
void opjit_rt_kernel_unload(opjit_kernel *k);
/* buffers: what bindings say; there is room for the constants. */
opjit_status opjit_rt_call_on_device(const opjit_kernel *kernel, const program *p, const opjit_call *call,
                                     const opjit_variant_info *variant, void **buffers, opjit_error *error);

#endif
