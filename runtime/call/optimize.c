/* SPDX-License-Identifier: Apache-2.0 */
/* optimize.c - the swap of a kernel's code to a better version: its own, compiled once more at level peak, or that of
 * another kernel.  One pointer is swapped; older versions stay as long as the kernel, because calls may be in them. */
#include "runtime/call/kernel_object.h"

#include <pthread.h>
#include <string.h>

/* Whether the bindings of two kernels with equal counts need the same bytes for all sizes. */
static bool same_dims(const opjit_kernel_meta *m, const opjit_kernel_meta *n)
{
    const uint32_t dims = rt_meta_dims(m);

    return dims == rt_meta_dims(n) &&
           (dims == 0 || memcmp(rt_meta_forms(m), rt_meta_forms(n),
                                (size_t)rt_form_count(m->inputs, m->outputs, 0) * sizeof(opjit_size_form)) == 0);
}

/* Whether calls checked against a's metadata may run b: equal buffers and parameters, names apart. */
static bool same_interface(const program *a, const program *b)
{
    const opjit_kernel_meta *m = a->meta, *n = b->meta;

    if (m->inputs != n->inputs || m->outputs != n->outputs || m->constants != n->constants || m->params != n->params ||
        !same_dims(m, n))
        return false;
    for (uint32_t i = 0; i < m->inputs + m->outputs + m->constants; i++) {
        opjit_buffer_info x = program_buffers(a)[i], y = program_buffers(b)[i];
        x.name = y.name = 0;
        if (memcmp(&x, &y, sizeof x) != 0)
            return false;
    }
    for (uint32_t i = 0; i < m->params; i++) {
        const opjit_param_info *x = &program_params(a)[i], *y = &program_params(b)[i];
        if (x->dtype != y->dtype || x->lo != y->lo || x->hi != y->hi)
            return false;
    }
    return true;
}

static opjit_status refuse_interface(opjit_error *error)
{
    return opjit_rt_error_set(error, OPJIT_INTERNAL,
                              "the better version has other buffers or parameters than the kernel");
}

/* --- a version of another kernel ---------------------------------------------------------------------------------- */

/* With the lock held. */
static opjit_status adopt_locked(opjit_kernel *k, opjit_kernel *better, opjit_error *error)
{
    program *const current = atomic_load(&k->active), *p;
    const program *const from = atomic_load(&better->active);

    if (current->meta == from->meta)
        return OPJIT_OK;
    if (current->launches != NULL || from->launches != NULL || k->pointers != better->pointers ||
        !same_interface(current, from))
        return refuse_interface(error);
    TRY(opjit_rt_program_borrow(better, &p, error));
    const opjit_status status = opjit_rt_program_keep(k, p, NULL, error);
    if (status != OPJIT_OK) {
        opjit_rt_program_destroy(k->core, p);
        return status;
    }
    p->older = current;
    atomic_store_explicit(&k->active, p, memory_order_release);
    return OPJIT_OK;
}

opjit_status opjit_rt_kernel_adopt(opjit_kernel *k, opjit_kernel *better, opjit_error *error)
{
    opjit_status status;

    opjit_rt_lock(&k->optimizing);
    status = adopt_locked(k, better, error);
    opjit_rt_unlock(&k->optimizing);
    return status;
}

/* --- the peak version --------------------------------------------------------------------------------------------- */

/* With the lock held. */
static opjit_status optimize_locked(opjit_kernel *k, const atomic_bool *cancel, rt_bytes *image, opjit_error *error)
{
    program *current = atomic_load(&k->active), *better;

    if (current->meta->level == OPJIT_LEVEL_PEAK)
        return OPJIT_OK;
    TRY(k->hooks.optimize(k->hooks.user, cancel, image, error));
    if (image->size == 0 && !image->failed)
        return OPJIT_OK;
    if (image->failed)
        return opjit_rt_no_memory(error);
    TRY(opjit_rt_program_create(k->core, image->data, image->size, &k->hooks, false, &better, error));
    if (!same_interface(current, better)) {
        opjit_rt_program_destroy(k->core, better);
        return refuse_interface(error);
    }
    const opjit_status status = k->hooks.unbound ? OPJIT_OK : opjit_rt_program_keep(k, better, NULL, error);
    if (status != OPJIT_OK) {
        opjit_rt_program_destroy(k->core, better);
        return status;
    }
    better->older = current;
    atomic_store_explicit(&k->active, better, memory_order_release);
    return OPJIT_OK;
}

opjit_status opjit_rt_kernel_optimize(opjit_kernel *kernel, const atomic_bool *cancel, opjit_error *error)
{
    const uintptr_t self = (uintptr_t)pthread_self();
    const program *current;
    rt_bytes image;
    opjit_status status;

    opjit_rt_error_clear(error);
    if (kernel == NULL)
        return opjit_rt_refuse_null(error, "kernel");
    current = atomic_load(&kernel->active);
    if (current->owner != NULL) {
        TRY(opjit_rt_kernel_optimize(current->owner, cancel, error));
        return opjit_rt_kernel_adopt(kernel, current->owner, error);
    }
    if (current->interpret != NULL || kernel->hooks.optimize == NULL)
        return OPJIT_OK;
    if (kernel->base != NULL) {
        TRY(opjit_rt_kernel_optimize(kernel->base, cancel, error));
        atomic_store(&kernel->active, atomic_load(&kernel->base->active));
        return OPJIT_OK;
    }
    if (atomic_load(&kernel->optimizer) == self && rt_lock_is_held(&kernel->optimizing))
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                               "{!argument}{!kernel}this thread is optimizing that kernel already: an event sink can't "
                               "ask for it");
    opjit_rt_bytes_init(&image, &kernel->core->allocator);
    opjit_rt_lock(&kernel->optimizing);
    atomic_store(&kernel->optimizer, self);
    status = optimize_locked(kernel, cancel, &image, error);
    atomic_store(&kernel->optimizer, 0);
    opjit_rt_unlock(&kernel->optimizing);
    opjit_rt_bytes_free(&image);
    return status;
}

opjit_status opjit_kernel_optimize(opjit_kernel *kernel, opjit_error *error)
{
    return opjit_rt_kernel_optimize(kernel, NULL, error);
}
