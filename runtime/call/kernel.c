/* SPDX-License-Identifier: Apache-2.0 */
/* kernel.c - a kernel's life: loading an image, references, information.
 * Calling is in call.c, the swap to another version in optimize.c. */
#define _GNU_SOURCE
#include "runtime/call/kernel_object.h"

#include <pthread.h>
#include <stdalign.h>
#include <string.h>

/* --- programs ----------------------------------------------------------------------------------------------------- */

void opjit_rt_program_destroy(rt_core *core, program *p)
{
    if (p == NULL)
        return;
    opjit_rt_program_unload(core, p);
    opjit_rt_debug_unregister(core, p->debug);
    opjit_rt_unmap_code(&p->mapping);
    opjit_rt_release(&core->allocator, p->copy, p->image_size);
    opjit_rt_program_drop_kept(core, p);
    opjit_kernel_release(p->owner);
    opjit_rt_release(&core->allocator, p, sizeof *p);
}

/* Whether the code of *meta may run on this CPU or the core's device and this runtime knows all of its steps. */
static opjit_status check_runnable(const rt_core *core, const opjit_kernel_meta *meta, const rt_custom_plan *customs,
                                   bool interpreted, opjit_error *error)
{
    const opjit_step_info *steps = (const opjit_step_info *)((const char *)meta + meta->step_info);
    rt_target needed;

    for (uint32_t i = 0; i < meta->steps; i++)
        if (steps[i].kind != OPJIT_STEP_STAGE && rt_meta_dims(meta) != 0)
            return opjit_rt_refuse(error, OPJIT_UNSUPPORTED,
                                   "{image} {dims}: {%u}, must be 0 where there are %s, which know one size",
                                   meta->dims, steps[i].kind == OPJIT_STEP_CUSTOM ? "custom functions" : "launches");
    for (uint32_t i = 0; i < meta->steps; i++)
        if (steps[i].kind == OPJIT_STEP_CUSTOM && (customs == NULL || steps[i].entry >= customs->call_count))
            return opjit_rt_refuse(
                error, OPJIT_UNSUPPORTED,
                "{image} {step_info[%u].kind}: {1}, a custom function, known only where it was compiled", i);
    if (interpreted)
        return OPJIT_OK;
    if ((meta->features[1] | meta->features[2] | meta->features[3]) != 0)
        return opjit_rt_refuse(error, OPJIT_UNSUPPORTED, "{image} {features}: some that are unknown to this library");
    needed.arch = opjit_rt_target_arch(meta->features[0]);
    needed.features = meta->features[0];
    if (opjit_rt_core_runs(core, &needed, NULL) == OPJIT_OK) /* which looks at no more */
        return OPJIT_OK;
    memset(&needed, 0, sizeof needed); /* once more, with a text for the message */
    opjit_rt_target_set_features(&needed, meta->features[0]);
    memcpy(needed.tune, "generic", sizeof "generic");
    opjit_rt_target_write_text(&needed);
    return opjit_rt_core_runs(core, &needed, error);
}

static bool is_for_device(const opjit_kernel_meta *meta)
{
    const opjit_step_info *steps = (const opjit_step_info *)((const char *)meta + meta->step_info);

    return meta->steps != 0 && steps[0].kind == OPJIT_STEP_LAUNCH; /* then all are */
}

static bool has_stages(const opjit_kernel_meta *meta)
{
    const opjit_step_info *steps = (const opjit_step_info *)((const char *)meta + meta->step_info);

    for (uint32_t i = 0; i < meta->steps; i++)
        if (steps[i].kind != OPJIT_STEP_CUSTOM)
            return true;
    return false;
}

static bool is_plain(const opjit_kernel_meta *meta, const opjit_step_info *steps)
{
    bool plain = (meta->shared_size | meta->scratch_size) == 0;
    for (uint32_t i = 0; i < meta->steps; i++)
        plain = plain && steps[i].kind == OPJIT_STEP_STAGE;
    return plain && (uint64_t)meta->inputs + meta->outputs + meta->constants <= STACK_BUFFERS;
}

/* What calls read, out of the checked metadata: the same for images and for kernels of libraries. */
static void program_prepare(program *p, bool runs_code)
{
    p->steps = (const opjit_step_info *)((const char *)p->meta + p->meta->step_info);
    p->variants = (const opjit_variant_info *)((const char *)p->meta + p->meta->variant_info);
    const bool one_size = rt_meta_dims(p->meta) == 0;
    p->ranges = one_size ? NULL : rt_meta_ranges(p->meta);
    p->extents = one_size ? NULL
                          : rt_meta_forms(p->meta) + rt_form_count(p->meta->inputs, p->meta->outputs, 0);
    const opjit_variant_info *apart = p->variants; /* where no buffers share memory; the last one's mask is 0 */
    while (apart->alias_mask != 0)
        apart++;
    p->plain = runs_code && one_size && is_plain(p->meta, p->steps);
    p->only_step = p->plain && apart->steps == 1 && p->meta->params == 0 && rt_meta_kept(p->meta) == 0
                       ? &p->steps[apart->first_step]
                       : NULL;
}

/* Puts the checked image where it can be used from: executable memory, or a plain copy. */
static opjit_status program_place(rt_core *core, program *p, const void *image, size_t size, bool copied,
                                  opjit_error *error)
{
    const uint8_t *placed;

    p->image_size = size;
    if (copied) {
        p->copy = opjit_rt_allocate(&core->allocator, size, 16);
        if (p->copy == NULL)
            return opjit_rt_no_memory(error);
        placed = memcpy(p->copy, image, size);
    } else {
        TRY(opjit_rt_map_code(&core->pages, image, size, &p->mapping, error));
        placed = p->mapping.base;
    }
    p->meta = (const opjit_kernel_meta *)(const void *)(placed + ((const uint8_t *)p->meta - (const uint8_t *)image));
    p->code = placed + (p->code - (const uint8_t *)image);
    return OPJIT_OK;
}

static opjit_status program_fill(rt_core *core, program *p, const void *image, size_t size, opjit_error *error)
{
    TRY(opjit_rt_image_check(image, size, &p->meta, &p->code, &p->code_size, error));
    if (p->interpret == NULL && p->code_size == 0 && has_stages(p->meta))
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{image} {code_size}: {0}, and no interpreter for it");
    const bool no_code = p->interpret != NULL || p->code_size == 0;
    TRY(check_runnable(core, p->meta, p->customs, no_code, error));
    const bool on_device = is_for_device(p->meta);
    TRY(program_place(core, p, image, size, no_code || on_device, error));
    program_prepare(p, !no_code && !on_device);
    return on_device ? opjit_rt_program_launches(core, p, error) : OPJIT_OK;
}

opjit_status opjit_rt_program_create(rt_core *core, const void *image, size_t size, const rt_kernel_hooks *hooks,
                                     bool interpreted, program **out, opjit_error *error)
{
    program *p = opjit_rt_allocate(&core->allocator, sizeof *p, alignof(program));
    opjit_status status;

    *out = NULL;
    if (p == NULL)
        return opjit_rt_no_memory(error);
    memset(p, 0, sizeof *p);
    if (hooks != NULL) {
        p->interpret = interpreted ? hooks->interpret : NULL;
        p->user = hooks->user;
        p->customs = hooks->customs;
    }
    status = program_fill(core, p, image, size, error);
    if (status != OPJIT_OK) {
        opjit_rt_program_destroy(core, p);
        return status;
    }
    if (p->mapping.base != NULL)
        p->debug = opjit_rt_debug_register(core, p->meta, p->code, p->code_size);
    *out = p;
    return OPJIT_OK;
}

/* --- kernels ------------------------------------------------------------------------------------------------------ */

static size_t kernel_size(uint32_t buffers)
{
    return sizeof(opjit_kernel) + buffers * sizeof(slot);
}

static void fill_slots(opjit_kernel *k, const program *p, void *const *constants)
{
    const opjit_buffer_info *infos = program_buffers(p);

    for (uint32_t i = 0; i < k->buffers; i++) {
        k->slots[i] = (slot){ infos[i].bytes, infos[i].align - 1, infos[i].alias_inputs,
                              i < k->bindings || constants == NULL ? NULL : constants[i - k->bindings] };
    }
}

/* What the kernel has taken, not what it was given: that is the caller's array. */
static opjit_status check_constants(const opjit_kernel *k, const program *p, opjit_error *error)
{
    for (uint32_t i = k->bindings; i < k->buffers; i++) {
        const char *name = program_string(p, program_buffers(p)[i].name);
        opjit_status status = OPJIT_OK;
        if (k->slots[i].constant == NULL)
            status =
                opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{!argument}{!constants}constant %s is {NULL}", name);
        else if (((uintptr_t)k->slots[i].constant & k->slots[i].align_mask) != 0)
            status = opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                                     "{!argument}{!constants}constant %s at {%p} is not aligned to %u", name,
                                     k->slots[i].constant, k->slots[i].align_mask + 1);
        TRY(opjit_rt_place(error, status, NULL, NULL, (int32_t)(i - k->bindings)));
    }
    return OPJIT_OK;
}

/* To buffers and behind them, at least to what is kept. */
static uint32_t pointers_of(const opjit_kernel *k, const rt_custom_plan *customs)
{
    return k->buffers + (customs == NULL || customs->temp_count == 0 ? 1 : customs->temp_count);
}

static void kernel_free(opjit_kernel *k)
{
    rt_core *core = k->core;

    opjit_rt_release(&core->allocator, k, kernel_size(k->buffers));
    opjit_rt_core_release(core);
}

/* A kernel that runs p, without hooks.  unbound: its constants may be NULL. */
static opjit_status kernel_create(rt_core *core, program *p, void *const *constants, bool unbound, opjit_kernel **out,
                                  opjit_error *error)
{
    const opjit_kernel_meta *meta = p->meta;
    const size_t size = kernel_size(meta->inputs + meta->outputs + meta->constants);
    opjit_kernel *k = opjit_rt_allocate(&core->allocator, size, alignof(opjit_kernel));
    opjit_status status;

    if (k == NULL)
        return opjit_rt_no_memory(error);
    memset(k, 0, sizeof *k);
    opjit_rt_lock_init(&k->optimizing, &core->process);
    atomic_init(&k->references, 1);
    atomic_init(&k->active, p);
    k->inputs = meta->inputs;
    k->bindings = meta->inputs + meta->outputs;
    k->buffers = k->bindings + meta->constants;
    k->dims = rt_meta_dims(meta);
    k->params = meta->params - k->dims;
    k->core = opjit_rt_core_retain(core);
    fill_slots(k, p, constants);
    status = unbound ? OPJIT_OK : check_constants(k, p, error);
    if (status == OPJIT_OK)
        *out = k;
    else
        kernel_free(k);
    return status;
}

/* For a kernel that nobody else has: it goes where that fails. */
static opjit_status keep(opjit_kernel *k, program *p, const opjit_executor *executor, opjit_error *error)
{
    const opjit_status status = opjit_rt_program_keep(k, p, executor, error);

    if (status != OPJIT_OK)
        kernel_free(k);
    return status;
}

opjit_event opjit_rt_kernel_event(const opjit_kernel *kernel, opjit_event_kind kind, opjit_event_subject subject)
{
    const program *p = atomic_load(&kernel->active);

    return (opjit_event){ .kind = kind,
                          .subject = (uint32_t)subject,
                          .level = p->meta->level,
                          .compile_id = kernel->hooks.compile_id,
                          .key_hi = kernel->hooks.key.hi,
                          .key_lo = kernel->hooks.key.lo,
                          .name = program_string(p, p->meta->name),
                          .target = program_string(p, p->meta->target) };
}

OUT_OF_LINE static void report_load(const opjit_kernel *k, const program *p)
{
    opjit_event event = opjit_rt_kernel_event(k, OPJIT_EVENT_LOAD, OPJIT_EVENT_CODE);

    event.bytes = p->code_size;
    event.total_ms = k->times.load_ms;
    opjit_rt_event(k->core, &event, "load,%s,%s,code=%zu,ms=%.3f", event.name, event.target, p->code_size,
                   k->times.load_ms);
}

opjit_status opjit_rt_kernel_create(rt_core *core, const void *image, size_t size, void *const *constants,
                                    uint32_t constant_count, const rt_kernel_hooks *hooks, const rt_kernel_times *times,
                                    opjit_kernel **out, opjit_error *error)
{
    const double start = rt_milliseconds();
    opjit_status status;
    opjit_kernel *k;
    program *p;

    *out = NULL;
    TRY(opjit_rt_program_create(core, image, size, hooks, hooks != NULL && hooks->interpret != NULL, &p, error));
    status = p->meta->constants != constant_count
                 ? opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{!argument}{constant_count}: {%u}, the image has %u",
                                   constant_count, p->meta->constants)
                 : kernel_create(core, p, constants, hooks != NULL && hooks->unbound, &k, error);
    if (status == OPJIT_OK && hooks != NULL)
        k->hooks = *hooks;
    if (status == OPJIT_OK && (hooks == NULL || !hooks->unbound))
        status = keep(k, p, NULL, error);
    if (status != OPJIT_OK) {
        opjit_rt_program_destroy(core, p);
        return status;
    }
    k->pointers = pointers_of(k, k->hooks.customs);
    if (times != NULL)
        k->times = *times;
    k->times.load_ms += rt_milliseconds() - start;
    if (p->mapping.base != NULL && rt_wants_events(core))
        report_load(k, p);
    *out = k;
    return OPJIT_OK;
}

opjit_status opjit_rt_kernel_runs_here(const opjit_kernel_meta *meta, opjit_error *error)
{
    return check_runnable(NULL, meta, NULL, false, error);
}

opjit_status opjit_rt_kernel_place(rt_core *core, const rt_placed *placed, void *const *constants,
                                   const rt_kernel_hooks *hooks, opjit_kernel **out, opjit_error *error)
{
    program *p = opjit_rt_allocate(&core->allocator, sizeof *p, alignof(program));
    opjit_status status;
    opjit_kernel *k;

    *out = NULL;
    if (p == NULL)
        return opjit_rt_no_memory(error);
    memset(p, 0, sizeof *p);
    p->meta = placed->meta;
    p->code = placed->code;
    p->code_size = placed->code_size;
    program_prepare(p, true);
    status = kernel_create(core, p, constants, false, &k, error);
    if (status == OPJIT_OK)
        status = keep(k, p, NULL, error);
    if (status != OPJIT_OK) {
        opjit_rt_program_destroy(core, p);
        return status;
    }
    if (!placed->named)
        p->debug = opjit_rt_debug_register(core, p->meta, p->code, p->code_size);
    k->hooks = *hooks;
    k->pointers = pointers_of(k, NULL);
    *out = k;
    return OPJIT_OK;
}

void opjit_rt_constants_drop(rt_core *core, rt_constant **shared, uint32_t count)
{
    if (shared == NULL)
        return;
    for (uint32_t i = 0; i < count; i++)
        if (shared[i] != NULL)
            opjit_rt_constant_release(&core->constants, shared[i]);
    opjit_rt_release(&core->allocator, shared, count * sizeof *shared);
}

void *opjit_rt_kernel_constant(const opjit_kernel *kernel, uint32_t index, uint32_t *align)
{
    const slot *const s = &kernel->slots[kernel->bindings + index];

    *align = s->align_mask + 1;
    return s->constant;
}

opjit_status opjit_rt_kernel_bind(opjit_kernel *base, void *const *constants, rt_constant **shared,
                                  const opjit_executor *executor, const rt_kept *kept, opjit_kernel **out,
                                  opjit_error *error)
{
    program *p = atomic_load(&base->active), *own = NULL;
    opjit_status status = OPJIT_OK;
    opjit_kernel *k;

    *out = NULL;
    TRY(kernel_create(base->core, p, constants, false, &k, error));
    k->hooks = base->hooks;
    k->hooks.destroy = NULL;
    if (rt_meta_kept(p->meta) != 0) { /* by each kernel for itself */
        status = opjit_rt_program_borrow(base, &own, error);
        if (status == OPJIT_OK)
            atomic_store(&k->active, own);
        if (status == OPJIT_OK && !opjit_rt_program_take(own, kept))
            status = keep(k, own, executor, error);
        if (status != OPJIT_OK) {
            if (own == NULL)
                kernel_free(k);
            opjit_rt_program_destroy(base->core, own);
            return status;
        }
    }
    opjit_kernel_retain(base);
    k->base = base;
    k->shared = shared;
    k->pointers = base->pointers;
    k->times = base->times;
    *out = k;
    return OPJIT_OK;
}

void opjit_kernel_retain(opjit_kernel *kernel)
{
    if (kernel != NULL)
        atomic_fetch_add_explicit(&kernel->references, 1, memory_order_relaxed);
}

void opjit_kernel_release(opjit_kernel *kernel)
{
    if (kernel == NULL || atomic_fetch_sub_explicit(&kernel->references, 1, memory_order_acq_rel) != 1)
        return;
    if (kernel->tiers != NULL)
        kernel->tiers->close(kernel->tiers);
    rt_core *const core = kernel->core;
    program *p = atomic_load(&kernel->active);
    while (p != NULL && (kernel->base == NULL || p->owner != NULL)) { /* the others are the base's */
        program *older = p->older;
        opjit_rt_program_destroy(core, p);
        p = older;
    }
    if (kernel->hooks.destroy != NULL)
        kernel->hooks.destroy(kernel->hooks.user);
    opjit_rt_kernel_unload(kernel);
    opjit_rt_constants_drop(core, kernel->shared, kernel->buffers - kernel->bindings);
    opjit_kernel_release(kernel->base);
    kernel_free(kernel);
}

uint64_t opjit_rt_kernel_bytes(const opjit_kernel *kernel)
{
    uint64_t bytes = kernel_size(kernel->buffers) + kernel->hooks.user_bytes;

    for (uint32_t i = 0; kernel->shared != NULL && i < kernel->buffers - kernel->bindings; i++)
        bytes += kernel->shared[i] == NULL ? 0 : sizeof *kernel->shared[i] + kernel->shared[i]->size;
    for (const program *p = atomic_load(&kernel->active); p != NULL; p = p->older)
        bytes += sizeof *p + p->kept_bytes + (p->copy != NULL ? p->image_size : p->mapping.size);
    return bytes;
}

static const rt_struct info_sizes = {
    "opjit_kernel_info", { RT_SIZE_TO(opjit_kernel_info, load_ms), RT_SIZE_TO(opjit_kernel_info, unproven_bounds),
                           RT_SIZE_TO(opjit_kernel_info, kept_bytes), RT_SIZE_TO(opjit_kernel_info, reserved) }
};
RT_STRUCT_ENDS_WITH(opjit_kernel_info, reserved);

/* What metadata says of a kernel, wherever its code is. */
static opjit_kernel_info info_of(const opjit_kernel_meta *meta)
{
    opjit_kernel_info info;

    memset(&info, 0, sizeof info);
    info.name = (const char *)meta + meta->name;
    info.target = (const char *)meta + meta->target;
    info.meta = meta;
    info.buffers = (const opjit_buffer_info *)(const void *)((const char *)meta + meta->buffer_info);
    info.buffer_count = meta->inputs + meta->outputs + meta->constants;
    info.inputs = meta->inputs;
    info.outputs = meta->outputs;
    info.params = (const opjit_param_info *)(const void *)((const char *)meta + meta->param_info);
    info.dim_count = rt_meta_dims(meta);
    info.param_count = meta->params - info.dim_count;
    info.dims = info.dim_count == 0 ? NULL : info.params + info.param_count;
    info.level = (opjit_level)meta->level;
    info.workspace_bytes = meta->shared_size + meta->scratch_size;
    info.bytes_read = meta->bytes_read;
    info.bytes_written = meta->bytes_written;
    info.unproven_bounds = rt_meta_has(meta, unproven_bounds) ? meta->unproven_bounds : 0;
    info.kept_bytes = rt_meta_kept(meta);
    return info;
}

opjit_status opjit_rt_meta_info(const opjit_kernel_meta *meta, opjit_kernel_info *out, opjit_error *error)
{
    const opjit_kernel_info info = info_of(meta);

    return opjit_rt_struct_write(&info_sizes, out, &info, error);
}

opjit_status opjit_kernel_get_info(const opjit_kernel *kernel, opjit_kernel_info *out_info, opjit_error *error)
{
    opjit_kernel_info info;
    const opjit_kernel *made;
    const program *p;

    opjit_rt_error_clear(error);
    if (kernel == NULL || out_info == NULL)
        return opjit_rt_refuse_null(error, kernel == NULL ? "kernel" : "out_info");
    p = atomic_load(&kernel->active);
    info = info_of(p->meta);
    made = p->owner != NULL ? p->owner : kernel;
    info.flags = (p->interpret != NULL ? OPJIT_KERNEL_INTERPRETED : 0) |
                 (made->hooks.from_disk ? OPJIT_KERNEL_FROM_DISK : 0) |
                 (p->launches != NULL ? OPJIT_KERNEL_ON_DEVICE : 0);
    info.code_bytes = p->code_size;
    info.compile_ms = made->times.compile_ms;
    info.lower_ms = made->times.lower_ms;
    info.passes_ms = made->times.passes_ms;
    info.codegen_ms = made->times.codegen_ms;
    info.load_ms = made->times.load_ms;
    return opjit_rt_struct_write(&info_sizes, out_info, &info, error);
}
