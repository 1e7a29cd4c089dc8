/* SPDX-License-Identifier: Apache-2.0 */
/* keep.c - runs a kernel's stages, one at a time; by those that the metadata has for that, what a kernel makes of its
 * constants once, and keeps for its calls; and programs that run the code of another kernel, so that a kernel keeps
 * memory of its own beside shared code. */
#include "runtime/call/kernel_object.h"

#include <string.h>
#include <sys/mman.h>

/* --- stages ------------------------------------------------------------------------------------------------------- */

/* One step on an executor. */
typedef struct step_run {
    const rt_run *run;
    uint64_t extent, grain;
    uint32_t index;
    atomic_ullong done;   /* iterations */
    atomic_flag reported; /* the first failure owns error */
    atomic_bool failed;
    opjit_error error;
} step_run;

static opjit_status run_piece(const rt_run *r, uint32_t index, uint32_t worker, uint64_t begin, uint64_t end,
                              opjit_error *error)
{
    const opjit_step_info *step = &r->program->steps[index];
    uint8_t *scratch = r->scratch == NULL ? NULL : r->scratch + worker * r->program->meta->scratch_size;

    if (r->program->interpret != NULL)
        return r->program->interpret(r->program->user, index, r->buffers, r->params, r->shared, scratch, begin, end,
                                     error);
    program_stage(r->program, step)(r->buffers, r->params, r->shared, scratch, begin, end);
    return OPJIT_OK;
}

static void report(step_run *s, opjit_status status, const char *message)
{
    if (!atomic_flag_test_and_set(&s->reported)) {
        if (message != NULL)
            opjit_rt_refuse(&s->error, status, "{executor}: {!run}%s", message);
        atomic_store(&s->failed, true);
    }
}

/* What the executor calls; it is the host's code, so its numbers are not trusted. */
static void body(void *arg, uint32_t worker, uint64_t begin, uint64_t end)
{
    step_run *s = arg;
    const uint64_t extent = s->extent, grain = s->grain;
    opjit_error error = { 0 };
    opjit_status status;

    if (worker >= s->run->executor->workers) {
        report(s, OPJIT_INVALID_ARGUMENT, "a worker's index is not below workers");
        return;
    }
    if (begin >= end || end > extent || begin % grain != 0 || (end != extent && end % grain != 0)) {
        report(s, OPJIT_INVALID_ARGUMENT,
               "a piece is empty, outside of the extent or not bounded by multiples of grain");
        return;
    }
    status = run_piece(s->run, s->index, worker, begin, end, &error);
    if (status != OPJIT_OK && !atomic_flag_test_and_set(&s->reported)) {
        s->error = error;
        s->error.status = status;
        atomic_store(&s->failed, true);
    }
    atomic_fetch_add_explicit(&s->done, end - begin, memory_order_relaxed);
}

static opjit_status run_on_executor(const rt_run *r, uint32_t index, uint64_t extent, opjit_error *error)
{
    step_run s = { .run = r,
                   .extent = extent,
                   .grain = r->program->steps[index].grain,
                   .index = index,
                   .reported = ATOMIC_FLAG_INIT };
    opjit_status status;
    unsigned long long done;

    status = r->executor->run(r->executor->user, extent, s.grain, body, &s);
    if (atomic_load(&s.failed)) {
        if (error != NULL)
            *error = s.error;
        return s.error.status;
    }
    if (status != OPJIT_OK)
        return opjit_rt_refuse(error, status, "{!call}{!executor}executor returned {%s}", opjit_status_name(status));
    done = atomic_load(&s.done);
    if (done != extent)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{!call}{executor} covered {%llu} of %llu iterations",
                               done, (unsigned long long)extent);
    return OPJIT_OK;
}

opjit_status opjit_rt_run_stage(const rt_run *r, uint32_t index, uint64_t extent, opjit_error *error)
{
    if (r->executor != NULL && extent > r->program->steps[index].grain)
        return run_on_executor(r, index, extent, error);
    return extent == 0 ? OPJIT_OK : run_piece(r, index, 0, 0, extent, error);
}

/* --- workspace ---------------------------------------------------------------------------------------------------- */

bool opjit_rt_workspace_needed(const program *p, uint32_t workers, uint64_t *out)
{
    return checked_mul(p->meta->scratch_size, workers, out) && checked_add(*out, p->meta->shared_size, out) &&
           *out <= SIZE_MAX / 2;
}

/* --- what is kept ------------------------------------------------------------------------------------------------- */

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

enum {
    DROPS = 32, /* while the weights are prepared: each takes time in proportion to the file */
    DROPPED_LEAST = 1 << 20 /* bytes: with less it does not pay */
};

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
        const uint32_t first = p->meta->once_first, count = p->meta->once_steps, drop = count / DROPS + 1;
        status = OPJIT_OK;
        for (uint32_t i = 0; i < count && status == OPJIT_OK; i++) {
            status = opjit_rt_run_stage(&run, first + i, p->steps[first + i].extent, error);
            if (size > DROPPED_LEAST && (i % drop == drop - 1 || i == count - 1))
                opjit_rt_mapped_drop(&k->core->mapped); /* packed weights take the place of the file's */
        }
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

void opjit_rt_program_drop_kept(rt_core *core, const program *p)
{
    opjit_rt_release(&core->allocator, p->kept_bytes == 0 ? NULL : p->kept, p->kept_bytes);
    if (p->kept_map != NULL)
        munmap(p->kept_map, p->kept_map_bytes);
}

bool opjit_rt_program_take(program *p, const rt_kept *kept)
{
    if (kept == NULL || kept->data == NULL || kept->bytes != rt_meta_kept(p->meta) ||
        kept->layout != p->meta->kept_layout)
        return false;
    p->kept = (void *)(uintptr_t)kept->data; /* calls only read it */
    p->kept_map = kept->map;
    p->kept_map_bytes = kept->map_bytes;
    return true;
}

void opjit_rt_kernel_keeps(const opjit_kernel *kernel, rt_kept *out)
{
    const opjit_kernel_meta *const meta = atomic_load(&kernel->active)->meta;
    *out = (rt_kept){ .bytes = rt_meta_kept(meta) };
    out->layout = out->bytes == 0 ? 0 : meta->kept_layout;
}

const void *opjit_rt_kernel_kept(const opjit_kernel *kernel)
{
    return atomic_load(&kernel->active)->kept;
}
