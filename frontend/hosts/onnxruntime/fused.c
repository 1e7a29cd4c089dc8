/* SPDX-License-Identifier: Apache-2.0 */
/* fused.c - calls of a fused node: a kernel for each set of sizes that its calls have, the last few of them kept. */
#include <stdlib.h>
#include <string.h>

#include "frontend/hosts/onnxruntime/fused.h"

/* --- kernels that are kept ---------------------------------------------------------------------------------------- */

static bool same_shapes(const shape *a, const shape *b, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (a[i].rank != b[i].rank || memcmp(a[i].sizes, b[i].sizes, a[i].rank * sizeof *a->sizes) != 0)
            return false;
    return true;
}

/* The kept entry of these sizes, with a reference for the caller, or NULL.  The lock is held. */
static entry *find_kept(fused *f, const shape *shapes)
{
    for (uint32_t i = 0; i < f->entry_count; i++) {
        entry *const e = f->entries[i];
        if (!same_shapes(e->shapes, shapes, f->input_count))
            continue;
        memmove(f->entries + 1, f->entries, i * sizeof *f->entries);
        f->entries[0] = e;
        atomic_fetch_add(&e->users, 1);
        return e;
    }
    return NULL;
}

/* Keeps the entry, unless another thread was first; the one used longest ago gives way. */
static entry *keep(fused *f, entry *made)
{
    entry *dropped = NULL;
    pthread_mutex_lock(&f->lock);
    entry *kept = find_kept(f, made->shapes);
    if (kept != NULL) {
        dropped = made;
    } else {
        if (f->entry_count == ORT_ENTRIES)
            dropped = f->entries[--f->entry_count];
        memmove(f->entries + 1, f->entries, f->entry_count * sizeof *f->entries);
        f->entries[0] = kept = made;
        f->entry_count++;
        atomic_fetch_add(&made->users, 1);
    }
    pthread_mutex_unlock(&f->lock);
    opjit_ort_release_entry(dropped);
    return kept;
}

opjit_status opjit_ort_find_entry(fused *f, const shape *shapes, const image *from, entry **out, opjit_error *error)
{
    entry *made = NULL;
    pthread_mutex_lock(&f->lock);
    *out = find_kept(f, shapes);
    pthread_mutex_unlock(&f->lock);
    if (*out != NULL)
        return OPJIT_OK;
    const opjit_status status =
        opjit_ort_make(f->p, &f->model, f->names, shapes, f->input_count, false, from, &made, error);
    if (status == OPJIT_OK)
        *out = keep(f, made);
    return status;
}

/* --- frames ------------------------------------------------------------------------------------------------------- */

static void free_frame(frame *m)
{
    if (m == NULL)
        return;
    free(m->shapes);
    free(m->bindings);
    free(m->copies);
    free(m->workspace);
    free(m);
}

static frame *take_frame(fused *f)
{
    pthread_mutex_lock(&f->lock);
    frame *m = f->frames;
    if (m != NULL)
        f->frames = m->next;
    pthread_mutex_unlock(&f->lock);
    if (m != NULL)
        return m;
    m = calloc(1, sizeof *m);
    if (m == NULL)
        return NULL;
    m->shapes = calloc((size_t)f->input_count + 1, sizeof *m->shapes);
    m->bindings = calloc((size_t)f->input_count + f->output_count + 1, sizeof *m->bindings);
    m->copies = calloc((size_t)f->input_count + 1, sizeof *m->copies);
    if (m->shapes == NULL || m->bindings == NULL || m->copies == NULL) {
        free_frame(m);
        return NULL;
    }
    return m;
}

static void give_frame(fused *f, frame *m)
{
    for (uint32_t i = 0; i < f->input_count; i++) {
        free(m->copies[i]);
        m->copies[i] = NULL;
    }
    pthread_mutex_lock(&f->lock);
    m->next = f->frames;
    f->frames = m;
    pthread_mutex_unlock(&f->lock);
}

/* --- the host's threads ------------------------------------------------------------------------------------------- */

typedef struct work {
    const ort_api *api;
    ort_kernel_context *context;
    void (*body)(void *arg, uint32_t worker, uint64_t begin, uint64_t end);
    void *arg;
    uint64_t extent, piece;
    atomic_uint_fast64_t next;
} work;

static void do_pieces(void *user, size_t worker)
{
    work *const w = user;
    for (;;) {
        const uint64_t begin = atomic_fetch_add(&w->next, w->piece);
        if (begin >= w->extent)
            return;
        w->body(w->arg, (uint32_t)worker, begin, w->extent - begin < w->piece ? w->extent : begin + w->piece);
    }
}

typedef struct host_threads {
    const ort_api *api;
    ort_kernel_context *context;
    uint32_t workers;
} host_threads;

/* opjit_executor.run: four pieces for each thread, in units of the grain. */
static opjit_status run_on_host(void *user, uint64_t extent, uint64_t grain,
                                void (*body)(void *arg, uint32_t worker, uint64_t begin, uint64_t end), void *arg)
{
    const host_threads *const h = user;
    const uint64_t units = extent / grain + (extent % grain != 0), pieces = 4 * (uint64_t)h->workers;
    work w = { .body = body, .arg = arg, .extent = extent, .piece = (units + pieces - 1) / pieces * grain };
    atomic_init(&w.next, 0);
    if (units < 2) {
        do_pieces(&w, 0);
        return OPJIT_OK;
    }
    ort_status *const status =
        h->api->KernelContext_ParallelFor(h->context, do_pieces, units < h->workers ? units : h->workers, 0, &w);
    if (status == NULL)
        return OPJIT_OK;
    h->api->ReleaseStatus(status);
    return OPJIT_UNAVAILABLE;
}

/* --- calls -------------------------------------------------------------------------------------------------------- */

/* Input i's memory, and its sizes in *out. */
static ort_status *read_input(const fused *f, ort_kernel_context *context, uint32_t i, shape *out,
                              opjit_binding *memory)
{
    const ort_api *const api = f->p->api;
    const ort_value *value = NULL;
    int64_t dims[ORT_RANK] = { 0 };
    size_t rank = 0;
    int type = 0;
    ORT_TRY(api->KernelContext_GetInput(context, f->inputs[i], &value));
    if (value == NULL)
        return opjit_ort_fail(api, ORT_INVALID_ARGUMENT, "input \"%.80s\": no value is given", f->names[i]);
    ORT_TRY(opjit_ort_read_tensor(api, value, &type, dims, &rank));
    if (type != f->types[i])
        return opjit_ort_fail(api, ORT_INVALID_ARGUMENT, "input \"%.80s\": type %d, must be %d", f->names[i], type,
                              f->types[i]);
    if (rank > ORT_RANK)
        return opjit_ort_fail(api, ORT_INVALID_ARGUMENT, "input \"%.80s\": %zu dimensions, must be at most %d",
                              f->names[i], rank, ORT_RANK);
    out->rank = (uint32_t)rank;
    for (size_t d = 0; d < rank; d++)
        out->sizes[d] = (uint64_t)dims[d];
    memory->bytes = UINT64_MAX;
    return api->GetTensorMutableData((ort_value *)value, &memory->data);
}

/* Copies input i where an element's address is none that kernels read, as in a file's bytes behind a head. */
static ort_status *align_input(const fused *f, frame *m, uint32_t i)
{
    const size_t size = opjit_ort_element_size(f->types[i]);
    const shape *const s = &m->shapes[i];
    size_t total = size;
    if (size == 0 || (uintptr_t)m->bindings[i].data % size == 0)
        return NULL;
    for (uint32_t d = 0; d < s->rank; d++)
        total *= (size_t)s->sizes[d]; /* it is in memory */
    m->copies[i] = malloc(total + 1);
    if (m->copies[i] == NULL)
        return opjit_ort_fail(f->p->api, ORT_FAIL, "there is no memory");
    memcpy(m->copies[i], m->bindings[i].data, total);
    m->bindings[i].data = m->copies[i];
    return NULL;
}

/* Output i's memory. */
static ort_status *make_output(const fused *f, ort_kernel_context *context, const entry *e, uint32_t i,
                               opjit_binding *memory)
{
    const ort_api *const api = f->p->api;
    const port *const out = &e->outputs[i];
    int64_t dims[ORT_RANK];
    ort_value *value = NULL;
    for (uint32_t d = 0; d < out->sizes.rank; d++)
        dims[d] = (int64_t)out->sizes.sizes[d];
    ORT_TRY(api->KernelContext_GetOutput(context, f->outputs[i], dims, out->sizes.rank, &value));
    if (value == NULL)
        return opjit_ort_fail(api, ORT_FAIL, "output %u: the host gives no memory", i);
    memory->bytes = UINT64_MAX;
    return api->GetTensorMutableData(value, &memory->data);
}

static bool have_workspace(frame *m, const entry *e, uint32_t workers)
{
    const uint64_t needed = (e->workspace_bytes + (workers - 1) * e->scratch_bytes + 63) / 64 * 64;
    if (needed <= m->workspace_bytes)
        return true;
    free(m->workspace);
    m->workspace = aligned_alloc(64, needed);
    m->workspace_bytes = m->workspace == NULL ? 0 : needed;
    return m->workspace != NULL;
}

static ort_status *call_entry(fused *f, ort_kernel_context *context, const entry *e, frame *m)
{
    const ort_api *const api = f->p->api;
    opjit_call call = OPJIT_CALL_INIT;
    opjit_error error;
    host_threads threads = { api, context, f->workers };
    const opjit_executor executor = { &threads, f->workers, run_on_host };
    for (uint32_t i = 0; i < e->input_count; i++) /* bindings are numbered in order, so none is overwritten before */
        if (e->inputs[i].binding >= 0)
            m->bindings[e->inputs[i].binding] = m->bindings[i];
    for (uint32_t i = 0; i < e->output_count; i++) {
        opjit_binding none; /* of what has no elements */
        const int32_t binding = e->outputs[i].binding;
        ORT_TRY(make_output(f, context, e, i, binding < 0 ? &none : &m->bindings[binding]));
    }
    if (e->kernel == NULL)
        return NULL;
    if (!have_workspace(m, e, f->workers))
        return opjit_ort_fail(api, ORT_FAIL, "there is no memory for a workspace of %llu bytes",
                              (unsigned long long)e->workspace_bytes);
    call.binding_count = e->binding_count;
    call.bindings = m->bindings;
    if (m->workspace_bytes > 0)
        call.workspace = (opjit_binding){ m->workspace, m->workspace_bytes };
    call.executor = f->workers > 1 ? &executor : NULL;
    if (opjit_kernel_call(e->kernel, &call, &error) != OPJIT_OK)
        return opjit_ort_fail(api, ORT_FAIL, "%s", error.message);
    return NULL;
}

static ort_status *call_fused(fused *f, ort_kernel_context *context, frame *m)
{
    opjit_error error;
    entry *e = NULL;
    for (uint32_t i = 0; i < f->input_count; i++) {
        ORT_TRY(read_input(f, context, i, &m->shapes[i], &m->bindings[i]));
        ORT_TRY(align_input(f, m, i));
    }
    if (opjit_ort_find_entry(f, m->shapes, NULL, &e, &error) != OPJIT_OK)
        return opjit_ort_fail(f->p->api, ORT_FAIL, "%s", error.message);
    ort_status *const status = call_entry(f, context, e, m);
    opjit_ort_release_entry(e);
    return status;
}

static ort_status *compute(ort_compute_info *info, void *state, ort_kernel_context *context)
{
    fused *const f = (fused *)info;
    frame *const m = take_frame(f);
    (void)state;
    if (m == NULL)
        return opjit_ort_fail(f->p->api, ORT_FAIL, "there is no memory");
    ort_status *const status = call_fused(f, context, m);
    give_frame(f, m);
    return status;
}

/* --- fused nodes -------------------------------------------------------------------------------------------------- */

static ort_status *create_state(ort_compute_info *info, ort_compute_context *context, void **out)
{
    (void)context;
    *out = info;
    return NULL;
}

static void release_state(ort_compute_info *info, void *state)
{
    (void)info;
    (void)state;
}

void opjit_ort_release_compute(ort_compute_info *info)
{
    fused *const f = (fused *)info;
    if (f == NULL)
        return;
    for (uint32_t i = 0; i < f->entry_count; i++)
        opjit_ort_release_entry(f->entries[i]);
    while (f->frames != NULL) {
        frame *const next = f->frames->next;
        free_frame(f->frames);
        f->frames = next;
    }
    pthread_mutex_destroy(&f->lock);
    opjit_ort_free(&f->memory);
    if (f->context.data == NULL)
        free(f->model.data);
    opjit_ort_free_stored(&f->context);
    free(f);
}

void opjit_ort_init_fused(fused *f, const provider *p, uint32_t workers)
{
    *f = (fused){ .info = { ORT_VERSION, create_state, compute, release_state }, .p = p, .workers = workers };
    pthread_mutex_init(&f->lock, NULL);
}
