/* SPDX-License-Identifier: Apache-2.0 */
/* call.c - the last part of a call on a device: the first call loads code and constants, then each call puts its
 * stages' launches into the stream.  The bindings have been checked before. */
#include <string.h>

#include "runtime/call/kernel_object.h"

enum { STACK_ARGUMENTS = 96, CONSTANT_ALIGN = 256 };

static const opjit_launch_info *launch_of(const program *p, uint32_t step)
{
    return (const opjit_launch_info *)(const void *)((const char *)p->meta + p->steps[step].entry);
}

opjit_status opjit_rt_program_launches(rt_core *core, program *p, opjit_error *error)
{
    p->launches = opjit_rt_allocate(&core->allocator, p->meta->steps * sizeof *p->launches, alignof(rt_launch));
    if (p->launches == NULL)
        return opjit_rt_no_memory(error);
    for (uint32_t i = 0; i < p->meta->steps; i++) {
        const opjit_launch_info *info = launch_of(p, i);
        p->launches[i].entry = i;
        memcpy(p->launches[i].grid, info->grid, sizeof info->grid);
        memcpy(p->launches[i].block, info->block, sizeof info->block);
    }
    return OPJIT_OK;
}

void opjit_rt_program_unload(const rt_core *core, program *p)
{
    rt_device_code *code = atomic_load(&p->loaded);

    if (code != NULL)
        core->devices->unload(code);
    if (p->launches != NULL)
        opjit_rt_release(&core->allocator, p->launches, p->meta->steps * sizeof *p->launches);
}

void opjit_rt_kernel_unload(opjit_kernel *k)
{
    const uint64_t constants = atomic_load(&k->constants_at);

    if (constants != 0)
        k->core->devices->free(k->core->device, constants);
}

/* --- the first call ----------------------------------------------------------------------------------------------- */
static opjit_status load(rt_core *core, program *p, rt_device_code **out, opjit_error *error)
{
    const size_t size = p->meta->steps * sizeof(char *);
    const char **names = opjit_rt_allocate(&core->allocator, size, sizeof(char *));
    const rt_device_text text = { p->code, p->code_size, names, p->meta->steps };
    rt_device_code *first = NULL;

    if (names == NULL)
        return opjit_rt_no_memory(error);
    for (uint32_t i = 0; i < p->meta->steps; i++)
        names[i] = program_string(p, launch_of(p, i)->name);
    const opjit_status status = core->devices->load(core->device, &text, out, error);
    opjit_rt_release(&core->allocator, names, size);
    if (status != OPJIT_OK)
        return status;
    if (!atomic_compare_exchange_strong(&p->loaded, &first, *out)) { /* another thread's first call came first */
        core->devices->unload(*out);
        *out = first;
        return OPJIT_OK;
    }
    const opjit_event event = {
        .kind = OPJIT_EVENT_LOAD,
        .subject = OPJIT_EVENT_DEVICE,
        .level = p->meta->level,
        .name = program_string(p, p->meta->name),
        .target = program_string(p, p->meta->target),
        .bytes = p->code_size,
    };
    opjit_rt_event(core, &event, "load,%s,%s,code=%zu,device=%s", event.name, event.target, p->code_size,
                   core->devices->name(core->device));
    return OPJIT_OK;
}

/* Copies the constants into one piece of memory, one after the other. */
static opjit_status bring_constants(opjit_kernel *k, uint64_t *out, opjit_error *error)
{
    const rt_devices *devices = k->core->devices;
    opjit_status status = OPJIT_OK;
    uint64_t bytes = 0, first = 0;

    for (uint32_t i = k->bindings; i < k->buffers; i++)
        bytes += align_up(k->slots[i].bytes, CONSTANT_ALIGN); /* at most 65536 of at most 2^40 bytes */
    TRY(devices->allocate(k->core->device, bytes, out, error));
    bytes = 0;
    for (uint32_t i = k->bindings; i < k->buffers && status == OPJIT_OK; i++) {
        status = devices->write(k->core->device, NULL, *out + bytes, k->slots[i].constant, k->slots[i].bytes, error);
        bytes += align_up(k->slots[i].bytes, CONSTANT_ALIGN);
    }
    if (status == OPJIT_OK && atomic_compare_exchange_strong(&k->constants_at, &first, *out))
        return OPJIT_OK;
    devices->free(k->core->device, *out);
    *out = first; /* another thread came first */
    return status;
}

static opjit_status find_constants(opjit_kernel *k, void **buffers, opjit_error *error)
{
    uint64_t at = atomic_load_explicit(&k->constants_at, memory_order_acquire);

    if (k->buffers == k->bindings)
        return OPJIT_OK;
    if (at == 0)
        TRY(bring_constants(k, &at, error));
    for (uint32_t i = k->bindings; i < k->buffers; i++) {
        buffers[i] = (void *)(uintptr_t)at;
        at += align_up(k->slots[i].bytes, CONSTANT_ALIGN);
    }
    return OPJIT_OK;
}

/* --- each call ---------------------------------------------------------------------------------------------------- */
static opjit_status launch(opjit_kernel *k, program *p, const opjit_call *call, const opjit_variant_info *variant,
                           void **buffers, void **arguments, opjit_error *error)
{
    rt_device_code *code = atomic_load_explicit(&p->loaded, memory_order_acquire);
    uint64_t workspace = (uintptr_t)call->workspace.data;
    const rt_launches l = {
        .launches = p->launches + variant->first_step,
        .count = variant->steps,
        .arguments = arguments,
        .workspace = &workspace,
        .workspace_bytes = call->workspace.data != NULL ? 0 : p->meta->shared_size,
    };

    if (code == NULL)
        TRY(load(k->core, p, &code, error));
    TRY(find_constants(k, buffers, error));
    for (uint32_t i = 0; i < k->buffers; i++)
        *arguments++ = &buffers[i];
    for (uint32_t i = 0; i < k->params; i++)
        *arguments++ = (void *)(uintptr_t)&call->params[i]; /* the driver only reads them */
    *arguments = &workspace;
    return k->core->devices->launch(code, call->stream, &l, error);
}

opjit_status opjit_rt_call_on_device(const opjit_kernel *kernel, const program *p, const opjit_call *call,
                                     const opjit_variant_info *variant, void **buffers, opjit_error *error)
{
    /* Kernels and programs are const to calls, except for what the first call loads. */
    opjit_kernel *k = (opjit_kernel *)(uintptr_t)kernel;
    const size_t count = (size_t)k->buffers + k->params + 1;
    void *on_stack[STACK_ARGUMENTS], **arguments = on_stack;

    if (count > STACK_ARGUMENTS)
        arguments = opjit_rt_allocate(&k->core->allocator, count * sizeof *arguments, sizeof(void *));
    if (arguments == NULL)
        return opjit_rt_no_memory(error);
    const opjit_status status = launch(k, (program *)(uintptr_t)p, call, variant, buffers, arguments, error);
    if (count > STACK_ARGUMENTS)
        opjit_rt_release(&k->core->allocator, arguments, count * sizeof *arguments);
    if (status != OPJIT_OK)
        opjit_rt_error_prefix(error, "%s", program_string(p, p->meta->name));
    return status;
}
