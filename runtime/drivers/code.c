/* SPDX-License-Identifier: Apache-2.0 */
/* code.c - code loaded by a device's driver, its launches with the workspace they share, and the table of this
 * library. */
#include <opjit/opjit.h>
#include <stdalign.h>
#include <string.h>

#include "runtime/drivers/driver.h"

enum { JIT_ERROR_LOG = 5, JIT_ERROR_LOG_BYTES = 6, LOG_BYTES = 2048 }; /* CUjit_option */
#define STREAM_PER_THREAD ((void *)2)                                  /* one handle, another stream per thread */

/* --- code -------------------------------------------------------------------------------------------------------- */
static size_t code_bytes(uint32_t entries)
{
    return sizeof(rt_device_code) + entries * sizeof(void *);
}

static bool hash_of(const rt_device *d, const rt_device_text *text, rt_hash *out)
{
    const rt_hash code = opjit_rt_hash(text->data, text->bytes);
    rt_bytes b;

    opjit_rt_bytes_init(&b, &d->allocator);
    opjit_rt_bytes_u64(&b, code.lo);
    opjit_rt_bytes_u64(&b, code.hi);
    for (uint32_t i = 0; i < text->entry_count; i++)
        opjit_rt_bytes_str(&b, text->entries[i]);
    *out = opjit_rt_hash(b.data, b.size);
    const bool good = !b.failed;
    opjit_rt_bytes_free(&b);
    return good;
}

static opjit_status check(const rt_device *d, size_t number, int code, opjit_error *error)
{
    return opjit_rt_driver_check(d->api, &d->f, d->name, number, code, error);
}

/* Called in the device's context.  Sets code->module as soon as there is one. */
static opjit_status load_module(rt_device *d, const rt_device_text *text, rt_device_code *code, opjit_error *error)
{
    char log[LOG_BYTES] = "";
    int options[] = { JIT_ERROR_LOG, JIT_ERROR_LOG_BYTES };
    void *values[] = { log, (void *)(uintptr_t)sizeof log };
    const int failed = d->f.module_load(&code->module, text->data, d->api->has_log ? 2 : 0, options, values);

    if (failed != 0) {
        code->module = NULL;
        check(d, RT_FUNCTION(module_load), failed, error);
        log[sizeof log - 1] = '\0';
        log[strcspn(log, "\n")] = '\0'; /* the first line says what the error is about */
        if (log[0] != '\0' && opjit_rt_driver_status(failed) == OPJIT_CODEGEN)
            opjit_rt_refuse(error, OPJIT_CODEGEN, "{%s}: the driver refuses the {code}: {!%d}%s", d->name, failed, log);
        return opjit_rt_driver_status(failed);
    }
    for (uint32_t i = 0; i < code->entry_count; i++) {
        const int missing = d->f.module_entry(&code->entries[i], code->module, text->entries[i]);
        if (missing != 0) {
            check(d, RT_FUNCTION(module_entry), missing, error);
            opjit_rt_error_prefix(error, "entry %s", text->entries[i]);
            return opjit_rt_driver_status(missing);
        }
    }
    return OPJIT_OK;
}

static opjit_status load(rt_device *d, const rt_device_text *text, rt_device_code *code, opjit_error *error)
{
    TRY(opjit_rt_device_enter(d, error));
    const opjit_status status = load_module(d, text, code, error);
    if (status != OPJIT_OK && code->module != NULL)
        d->f.module_unload(code->module);
    opjit_rt_device_leave(d);
    return status;
}

/* Holds the device's lock, so that two threads with one text load it once. */
static opjit_status find_or_load(rt_device *d, const rt_device_text *text, rt_hash hash, rt_device_code **out,
                                 opjit_error *error)
{
    const uint32_t count = text->entry_count;

    for (rt_device_code *c = d->codes; c != NULL; c = c->next) {
        if (c->hash.lo == hash.lo && c->hash.hi == hash.hi && c->entry_count == count) {
            c->references++;
            *out = c;
            return OPJIT_OK;
        }
    }
    rt_device_code *code = opjit_rt_allocate(&d->allocator, code_bytes(count), alignof(rt_device_code));
    if (code == NULL)
        return opjit_rt_no_memory(error);
    memset(code, 0, code_bytes(count));
    code->device = d;
    code->hash = hash;
    code->references = 1;
    code->entry_count = count;
    const opjit_status status = load(d, text, code, error);
    if (status != OPJIT_OK) {
        opjit_rt_release(&d->allocator, code, code_bytes(count));
        return status;
    }
    code->next = d->codes;
    *out = d->codes = code;
    return OPJIT_OK;
}

opjit_status opjit_rt_device_load(rt_device *device, const rt_device_text *text, rt_device_code **out,
                                  opjit_error *error)
{
    rt_hash hash;

    *out = NULL;
    if (!hash_of(device, text, &hash))
        return opjit_rt_no_memory(error);
    pthread_mutex_lock(&device->mutex);
    const opjit_status status = find_or_load(device, text, hash, out, error);
    pthread_mutex_unlock(&device->mutex);
    return status;
}

void opjit_rt_device_unload(rt_device_code *code)
{
    if (code == NULL)
        return;
    rt_device *d = code->device;
    pthread_mutex_lock(&d->mutex);
    if (--code->references > 0) {
        pthread_mutex_unlock(&d->mutex);
        return;
    }
    rt_device_code **at = &d->codes;
    while (*at != code)
        at = &(*at)->next;
    *at = code->next;
    pthread_mutex_unlock(&d->mutex);
    if (opjit_rt_device_enter(d, NULL) == OPJIT_OK) {
        d->f.context_wait(); /* launches may still be running */
        d->f.module_unload(code->module);
        opjit_rt_device_leave(d);
    }
    opjit_rt_release(&d->allocator, code, code_bytes(code->entry_count));
}

/* --- launches ----------------------------------------------------------------------------------------------------- */
/* The stream's own workspace, which grows.  Running launches still use the old one; freeing it waits for them. */
static opjit_status find_workspace(rt_device *d, void *stream, uint64_t bytes, uint64_t *out, opjit_error *error)
{
    rt_workspace *w = d->workspaces;
    uint64_t address;

    while (w != NULL && w->stream != stream)
        w = w->next;
    if (w == NULL) {
        w = opjit_rt_allocate(&d->allocator, sizeof *w, alignof(rt_workspace));
        if (w == NULL)
            return opjit_rt_no_memory(error);
        *w = (rt_workspace){ .next = d->workspaces, .stream = stream };
        d->workspaces = w;
    }
    if (w->bytes < bytes) {
        const opjit_status status = opjit_rt_device_allocate(d, bytes, &address, error);
        if (status != OPJIT_OK) {
            opjit_rt_error_prefix(error, "workspace of %llu bytes", (unsigned long long)bytes);
            return status;
        }
        opjit_rt_device_free(d, w->address);
        w->address = address;
        w->bytes = bytes;
    }
    *out = w->address;
    return OPJIT_OK;
}

static opjit_status launch(const rt_device_code *code, void *stream, const rt_launch *l, void **arguments,
                           opjit_error *error)
{
    const rt_device *d = code->device;

    if (l->entry >= code->entry_count)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{!launch}{entry} {%u} of %u", l->entry,
                               code->entry_count);
    CHECK(d, launch,
          (code->entries[l->entry], l->grid[0], l->grid[1], l->grid[2], l->block[0], l->block[1], l->block[2], 0,
           stream, arguments, NULL));
    return OPJIT_OK;
}

static opjit_status launch_all(const rt_device_code *code, void *stream, const rt_launches *l, opjit_error *error)
{
    opjit_status status = OPJIT_OK;

    TRY(opjit_rt_device_enter(code->device, error));
    for (uint32_t i = 0; i < l->count && status == OPJIT_OK; i++) {
        status = launch(code, stream, &l->launches[i], l->arguments, error);
        if (status != OPJIT_OK)
            opjit_rt_error_prefix(error, "stage %u of %u", i, l->count);
    }
    opjit_rt_device_leave(code->device);
    return status;
}

opjit_status opjit_rt_device_launch(rt_device_code *code, void *stream, const rt_launches *l, opjit_error *error)
{
    rt_device *d = code->device;

    if (l->workspace_bytes == 0)
        return launch_all(code, stream, l, error);
    if (stream == STREAM_PER_THREAD)
        return opjit_rt_refuse(
            error, OPJIT_INVALID_ARGUMENT,
            "{!call}{workspace}: {!NULL}the stream that each thread has its own of needs one that the "
            "call brings");
    pthread_mutex_lock(&d->working);
    opjit_status status = find_workspace(d, stream, l->workspace_bytes, l->workspace, error);
    if (status == OPJIT_OK)
        status = launch_all(code, stream, l, error);
    pthread_mutex_unlock(&d->working);
    return status;
}

/* --- the table ---------------------------------------------------------------------------------------------------- */
#define TEXT_OF(x) #x
#define VERSION_TEXT(major, minor, patch) TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)

static const rt_devices table = {
    .abi = RT_DEVICES_ABI,
    .size = sizeof table,
    .version = VERSION_TEXT(OPJIT_VERSION_MAJOR, OPJIT_VERSION_MINOR, OPJIT_VERSION_PATCH),
    .driver_open = opjit_rt_driver_open,
    .driver_close = opjit_rt_driver_close,
    .driver_devices = opjit_rt_driver_devices,
    .driver_version = opjit_rt_driver_version,
    .driver_info = opjit_rt_driver_info,
    .open = opjit_rt_device_open,
    .close = opjit_rt_device_close,
    .info = opjit_rt_device_info,
    .name = opjit_rt_device_name,
    .allocate = opjit_rt_device_allocate,
    .free = opjit_rt_device_free,
    .write = opjit_rt_device_write,
    .read = opjit_rt_device_read,
    .stream_create = opjit_rt_stream_create,
    .stream_destroy = opjit_rt_stream_destroy,
    .stream_wait = opjit_rt_stream_wait,
    .load = opjit_rt_device_load,
    .unload = opjit_rt_device_unload,
    .launch = opjit_rt_device_launch,
};

const rt_devices *opjit_device_query(uint32_t abi)
{
    return abi == RT_DEVICES_ABI ? &table : NULL;
}
