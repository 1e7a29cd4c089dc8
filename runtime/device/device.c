/* SPDX-License-Identifier: Apache-2.0 */
/* device.c - the public functions of devices and what they need: loads the library that knows drivers with the first
 * device, and decides which targets run on which device. */
#include <opjit/device.h>

#include "runtime/device/device.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/context.h"
#include "runtime/base/module.h"
#include "runtime/target/target_table.h"

/* --- the library -------------------------------------------------------------------------------------------------- */
static opjit_status check_table(const rt_devices *table, const char *path, opjit_error *error)
{
    if (table == NULL || table->size < sizeof *table || strcmp(table->version, opjit_version()) != 0)
        return opjit_rt_refuse(error, OPJIT_UNAVAILABLE,
                               "{!device library}{!path}{%s}: is of another version of opjit than %s", path,
                               opjit_version());
    return OPJIT_OK;
}

opjit_status opjit_rt_devices(const rt_devices **out, opjit_error *error)
{
#ifdef OPJIT_STATIC_DEVICE
    *out = opjit_device_query(RT_DEVICES_ABI);
    return check_table(*out, "linked devices", error);
#else
    static const rt_module module = { "device", "libopjit-device.so", "opjit_device_query", "OPJIT_DEVICE",
                                      "name one in OPJIT_DEVICE" };
    char path[RT_MODULE_PATH];
    rt_device_query_fn query;
    void *symbol;
    bool fresh;

    *out = NULL;
    TRY(opjit_rt_module_load(&module, NULL, &symbol, &fresh, path, error));
    memcpy(&query, &symbol, sizeof query); /* C has no cast from object to function pointers */
    *out = query(RT_DEVICES_ABI);
    return check_table(*out, path, error);
#endif
}

/* --- targets ------------------------------------------------------------------------------------------------------ */
opjit_status opjit_rt_device_target(const char *device, const rt_device_info *info, rt_target *out, opjit_error *error)
{
    const bool nvidia = strncmp(info->arch, "sm_", 3) == 0;
    const rt_arch arch = nvidia ? RT_ARCH_NVPTX : RT_ARCH_AMDGPU;
    const rt_level_row *row;
    uint32_t best = 0;

    for (uint32_t level = 1; (row = opjit_rt_level(arch, level)) != NULL; level++)
        if (nvidia ? strtoul(row->name + 3, NULL, 10) <= strtoul(info->arch + 3, NULL, 10)
                   : strcmp(row->name, info->arch) == 0)
            best = level;
    if (best == 0)
        return opjit_rt_refuse(error, OPJIT_UNSUPPORTED, "{!context_options}{device} %s: {%s} is %s", device,
                               info->arch, nvidia ? "too old" : "an architecture that opjit makes no code for");
    memset(out, 0, sizeof *out);
    opjit_rt_target_set_features(out, opjit_rt_level_features(arch, best));
    memcpy(out->tune, "generic", sizeof "generic");
    opjit_rt_target_write_text(out);
    return OPJIT_OK;
}

bool opjit_rt_device_runs(const rt_target *best, const rt_target *target)
{
    return best->arch == target->arch && (target->arch == RT_ARCH_NVPTX ? (target->features & ~best->features) == 0
                                                                        : target->features == best->features);
}

opjit_status opjit_rt_core_runs(const rt_core *core, const rt_target *target, opjit_error *error)
{
    if (rt_target_team(target) == 0)
        return opjit_rt_target_runs_here(target, error);
    if (core == NULL || core->device == NULL)
        return opjit_rt_refuse(
            error, OPJIT_UNSUPPORTED,
            "{!kernel}{!target}code for {%s} does not run on this machine's CPU, and the context has no device",
            target->text);
    if (!opjit_rt_device_runs(&core->device_target, target))
        return opjit_rt_refuse(error, OPJIT_UNSUPPORTED,
                               "{!kernel}{!target}code for {%s} is not for device %s, which runs %s", target->text,
                               core->devices->name(core->device), core->device_target.text);
    return OPJIT_OK;
}

/* --- public functions --------------------------------------------------------------------------------------------- */
static uint64_t address_of(const void *memory)
{
    return (uintptr_t)memory;
}

/* Checks that the context has a device and that pointer, called what in messages, is not NULL. */
static opjit_status check(const opjit_context *context, const void *pointer, const char *what, opjit_error *error)
{
    opjit_rt_error_clear(error);
    if (context == NULL || pointer == NULL)
        return opjit_rt_refuse_null(error, context == NULL ? "context" : what);
    if (context->core->device == NULL)
        return opjit_rt_refuse(error, OPJIT_UNSUPPORTED,
                               "{!context_options}{!device}{!NULL}the context has no device: its options name none");
    return OPJIT_OK;
}

opjit_status opjit_device_allocate(opjit_context *context, uint64_t bytes, void **out_memory, opjit_error *error)
{
    uint64_t address;

    if (out_memory != NULL)
        *out_memory = NULL;
    TRY(check(context, out_memory, "out_memory", error));
    TRY(context->core->devices->allocate(context->core->device, bytes == 0 ? 1 : bytes, &address, error));
    *out_memory = (void *)(uintptr_t)address;
    return OPJIT_OK;
}

void opjit_device_free(opjit_context *context, void *memory)
{
    if (check(context, memory, "memory", NULL) == OPJIT_OK)
        context->core->devices->free(context->core->device, address_of(memory));
}

opjit_status opjit_device_write(opjit_context *context, void *stream, void *to, const void *from, uint64_t bytes,
                                opjit_error *error)
{
    TRY(check(context, to == NULL ? NULL : from, to == NULL ? "to" : "from", error));
    return bytes == 0
               ? OPJIT_OK
               : context->core->devices->write(context->core->device, stream, address_of(to), from, bytes, error);
}

opjit_status opjit_device_read(opjit_context *context, void *stream, void *to, const void *from, uint64_t bytes,
                               opjit_error *error)
{
    TRY(check(context, to == NULL ? NULL : from, to == NULL ? "to" : "from", error));
    return bytes == 0 ? OPJIT_OK
                      : context->core->devices->read(context->core->device, stream, to, address_of(from), bytes, error);
}

opjit_status opjit_stream_create(opjit_context *context, void **out_stream, opjit_error *error)
{
    if (out_stream != NULL)
        *out_stream = NULL;
    TRY(check(context, out_stream, "out_stream", error));
    return context->core->devices->stream_create(context->core->device, out_stream, error);
}

void opjit_stream_destroy(opjit_context *context, void *stream)
{
    if (check(context, stream, "stream", NULL) == OPJIT_OK)
        context->core->devices->stream_destroy(context->core->device, stream);
}

opjit_status opjit_stream_wait(opjit_context *context, void *stream, opjit_error *error)
{
    TRY(check(context, context, "context", error));
    return context->core->devices->stream_wait(context->core->device, stream, error);
}
