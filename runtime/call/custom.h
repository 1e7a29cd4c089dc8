/* SPDX-License-Identifier: Apache-2.0 */
/* custom.h - custom operators' functions, and where a kernel calls them.  The calls themselves are in ffi.c, as only
 * libffi knows how. */
#ifndef OPJIT_RUNTIME_CALL_CUSTOM_H
#define OPJIT_RUNTIME_CALL_CUSTOM_H

#include <opjit/ffi.h>
#include <opjit/opjit.h>

#include "runtime/base/base.h"

typedef struct rt_custom rt_custom; /* a function whose signature libffi has accepted; in an arena */

/* Checks the arguments of *desc and prepares its function.  UNAVAILABLE in a build without libffi. */
opjit_status opjit_rt_custom_make(const opjit_custom_desc *desc, rt_arena *arena, const rt_custom **out,
                                  opjit_error *error);

/* One custom step. */
typedef struct rt_custom_call {
    const rt_custom *custom;
    const char *node;      /* for messages */
    const uint32_t *slots; /* of its inputs, then its outputs, among the kernel's buffers and temporaries */
} rt_custom_call;

/* What a kernel's custom steps need; it lives as long as the kernel.  Temporaries are buffers between steps: they
 * lie at the start of the memory that the stages of one call share, and their pointers stand behind those of the
 * buffers. */
typedef struct rt_custom_plan {
    rt_custom_call *calls; /* by opjit_step_info.entry */
    uint64_t *offsets;     /* by temporary: multiples of OPJIT_WORKSPACE_ALIGNMENT */
    uint64_t temp_bytes;   /* of all, such a multiple */
    uint32_t call_count, temp_count;
} rt_custom_plan;

opjit_status opjit_rt_custom_run(const rt_custom_call *call, void *const *buffers, opjit_error *error);

#endif
