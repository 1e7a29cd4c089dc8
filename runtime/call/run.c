/* SPDX-License-Identifier: Apache-2.0 */
/* run.c - a call that has an executor, a workspace, the interpreter, custom steps or a clock.  What the call gives has
 * been checked in call.c, the workspace and the executor apart. */
#define _POSIX_C_SOURCE 200809L
#include "runtime/call/kernel_object.h"

#include <string.h>

/* --- steps -------------------------------------------------------------------------------------------------------- */

/* The iterations of a step in this call. */
static uint64_t extent_of(const rt_run *r, uint32_t index)
{
    const program *p = r->program;

    if (p->extents == NULL)
        return p->steps[index].extent;
    const rt_space space = rt_meta_space(p->meta);
    return opjit_rt_form_value(&space, &p->extents[index], r->params + r->kernel->params);
}

/* Custom functions are the host's, and stay on this thread. */
static opjit_status run_step(const rt_run *r, uint32_t index, uint64_t extent, opjit_error *error)
{
    const opjit_step_info *step = &r->program->steps[index];

    if (step->kind == OPJIT_STEP_CUSTOM)
        return opjit_rt_custom_run(&r->program->customs->calls[step->entry], r->buffers, error);
    return opjit_rt_run_stage(r, index, extent, error);
}

static opjit_status run_step_timed(const rt_run *r, uint32_t index, opjit_error *error)
{
    rt_timing *const timing = r->timing;
    const uint64_t extent = extent_of(r, index), begin = opjit_rt_nanoseconds();
    const opjit_status status = run_step(r, index, extent, error);

    if (timing->count < timing->capacity)
        timing->steps[timing->count] =
            (opjit_step_time){ begin, opjit_rt_nanoseconds(), extent, index, r->program->steps[index].kind };
    timing->count++;
    return status;
}

static opjit_status run_steps(const rt_run *r, const opjit_variant_info *variant, opjit_error *error)
{
    opjit_status status = OPJIT_OK;

    for (uint32_t i = variant->first_step; i < variant->first_step + variant->steps && status == OPJIT_OK; i++)
        status = r->timing == NULL ? run_step(r, i, extent_of(r, i), error) : run_step_timed(r, i, error);
    return status;
}

/* --- workspace ---------------------------------------------------------------------------------------------------- */

opjit_status opjit_rt_refuse_no_workspace(const opjit_call *call, opjit_error *error)
{
    return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{!call}{workspace}: %llu bytes at {NULL}",
                           (unsigned long long)call->workspace.bytes);
}

opjit_status opjit_rt_check_workspace(const opjit_kernel *k, const slot *slots, const opjit_call *call,
                                      void *const *buffers, uint64_t needed, opjit_error *error)
{
    const opjit_binding *w = &call->workspace;

    if (w->bytes < needed)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                               "{!call}{workspace}: {%llu} bytes given, %llu needed for %u workers",
                               (unsigned long long)w->bytes, (unsigned long long)needed, call_workers(call));
    if ((uintptr_t)w->data % OPJIT_WORKSPACE_ALIGNMENT != 0)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                               "{!call}{workspace}: data at {%p} is not aligned to %u bytes", w->data,
                               OPJIT_WORKSPACE_ALIGNMENT);
    for (uint32_t i = 0; i < k->buffers; i++)
        if (slots[i].bytes != 0 && ranges_meet(w->data, needed, buffers[i], slots[i].bytes))
            return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{!call}{workspace} overlaps {%s}",
                                   kernel_buffer_name(k, i));
    return OPJIT_OK;
}

/* What lies between custom steps is the first part of the shared memory. */
static void place_temps(rt_run *r)
{
    const rt_custom_plan *customs = r->program->customs;

    if (customs == NULL || customs->temp_count == 0)
        return;
    for (uint32_t i = 0; i < customs->temp_count; i++)
        r->buffers[r->kernel->buffers + i] = r->shared + customs->offsets[i];
    r->shared += customs->temp_bytes;
}

opjit_status opjit_rt_call_in_full(rt_run *r, const opjit_call *call, const opjit_variant_info *variant,
                                   opjit_error *error)
{
    /* Our own: what it says of its workers is what their memory was sized by, whatever its run does to the host's. */
    const opjit_executor executor = call->executor == NULL ? (opjit_executor){ NULL, 1, NULL } : *call->executor;
    size_t taken = 0; /* of the spare workspace, or of one made for this call */
    void *own = NULL;
    uint64_t needed;
    opjit_status status;

    if (call->executor != NULL && (executor.run == NULL || executor.workers == 0))
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{!call}{executor}: %s",
                               executor.run == NULL ? "run is NULL" : "workers is 0; allowed: 1 and more");
    if (call->workspace.data == NULL && call->workspace.bytes != 0)
        return opjit_rt_refuse_no_workspace(call, error);
    if (!opjit_rt_workspace_needed(r->program, executor.workers, &needed))
        return opjit_rt_no_memory(error);
    if (needed != 0) {
        taken = (size_t)needed;
        if (call->workspace.data != NULL)
            TRY(opjit_rt_check_workspace(r->kernel, r->slots, call, r->buffers, needed, error));
        else if ((own = opjit_rt_workspace_take(r->kernel->core, &taken)) == NULL)
            return opjit_rt_no_memory(error);
        r->shared = own != NULL ? own : call->workspace.data;
        r->scratch = r->shared + r->program->meta->shared_size;
    }
    place_temps(r);
    r->executor = call->executor == NULL ? NULL : &executor;
    if (variant->steps > 1)
        opjit_rt_pool_count_call(&executor, 1);
    status = run_steps(r, variant, error);
    if (variant->steps > 1)
        opjit_rt_pool_count_call(&executor, -1u);
    if (own != NULL)
        opjit_rt_workspace_give(r->kernel->core, own, taken);
    return status;
}
