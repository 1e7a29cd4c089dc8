/* SPDX-License-Identifier: Apache-2.0 */
/* keep.c - what a kernel makes of its constants once, by the stages that the metadata has for that, and keeps for its
 * calls; and programs that run the code of another kernel, so that a kernel keeps memory of its own beside shared code. */
#include "runtime/call/kernel_object.h"

#include <string.h>

opjit_status opjit_rt_program_borrow(opjit_kernel *owner, program **out, opjit_error *error)
{
    const program *const from = atomic_load(&owner->active);
    program *p = opjit_rt_allocate(&owner->core->allocator, sizeof *p, alignof(program));

    *out = p;
    if (p == NULL)
        return opjit_rt_no_memory(error);
    memset(p, 0, sizeof *p);
    p->meta = from->meta;
    p->steps = from->steps;
    p->variants = from->variants;
    p->ranges = from->ranges;
    p->extents = from->extents;
    p->code = from->code;
    p->code_size = from->code_size;
    p->plain = from->plain;
    p->only_step = from->only_step;
    p->interpret = from->interpret;
    p->user = from->user;
    p->customs = from->customs;
    opjit_kernel_retain(owner);
    p->owner = owner;
    return OPJIT_OK;
}

/* The newest version of k that has made the same of k's constants; NULL: none. */
static const program *find_keeper(const opjit_kernel *k, const program *p)
{
    for (const program *q = atomic_load(&k->active); q != NULL; q = q->older)
        if (q != p && q->kept != NULL && rt_meta_kept(q->meta) == rt_meta_kept(p->meta) &&
            q->meta->kept_layout == p->meta->kept_layout)
            return q;
    return NULL;
}

/* With memory for it, and a list of pointers, of the allocator.  host: the executor that the host gave, or NULL. */
static opjit_status make(const opjit_kernel *k, program *p, size_t size, const opjit_executor *host,
                         opjit_error *error)
{
    const opjit_allocator *a = &k->core->allocator;
    const size_t list = (k->buffers + (size_t)1) * sizeof(void *);
    const opjit_executor executor = host == NULL ? (opjit_executor){ NULL, 1, NULL } : *host;
    const bool alone = executor.run == NULL || executor.workers == 0;
    uint64_t needed;

    if (!opjit_rt_workspace_needed(p, alone ? 1 : executor.workers, &needed))
        return opjit_rt_no_memory(error);
    void **buffers = opjit_rt_allocate(a, list, alignof(void *));
    uint8_t *workspace = needed == 0 ? NULL : opjit_rt_allocate(a, (size_t)needed, OPJIT_WORKSPACE_ALIGNMENT);
    opjit_status status;

    p->kept = opjit_rt_allocate_data(a, size, OPJIT_WORKSPACE_ALIGNMENT);
    p->kept_bytes = p->kept == NULL ? 0 : size;
    if (p->kept == NULL || buffers == NULL || (needed != 0 && workspace == NULL)) {
        status = opjit_rt_no_memory(error);
    } else {
        const rt_run run = { .kernel = k,
                             .program = p,
                             .slots = k->slots,
                             .buffers = buffers,
                             .shared = workspace,
                             .scratch = workspace == NULL ? NULL : workspace + p->meta->shared_size,
                             .executor = alone ? NULL : &executor };
        for (uint32_t i = 0; i < k->buffers; i++)
            buffers[i] = k->slots[i].constant;
        buffers[k->buffers] = p->kept;
        if (k->hooks.zeroed)
            memset(p->kept, 0, size);
        status = opjit_rt_run_steps(&run, p->meta->once_first, p->meta->once_steps, error);
    }
    opjit_rt_release(a, workspace, (size_t)needed);
    opjit_rt_release(a, buffers, list);
    return status;
}

opjit_status opjit_rt_program_keep(const opjit_kernel *k, program *p, const opjit_executor *executor,
                                   opjit_error *error)
{
    const uint64_t size = rt_meta_kept(p->meta);
    const program *const older = size == 0 ? NULL : find_keeper(k, p);

    if (size == 0)
        return OPJIT_OK;
    if (older == NULL)
        return make(k, p, (size_t)size, executor, error);
    p->kept = older->kept;
    return OPJIT_OK;
}

const void *opjit_rt_kernel_kept(const opjit_kernel *kernel)
{
    return atomic_load(&kernel->active)->kept;
}
