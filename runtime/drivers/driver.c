/* SPDX-License-Identifier: Apache-2.0 */
/* driver.c - GPUs through their driver's functions: loading a driver, devices, memory, streams.  Names and numbers are
 * in names.c, code and launches in code.c. */
#define _GNU_SOURCE
#include "runtime/drivers/driver.h"

#include <dlfcn.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { /* CUresult, CUstream_flags */
       INVALID_VALUE = 1,
       NO_MEMORY = 2,
       DEVICE_BUSY = 46,
       INVALID_IMAGE = 200,
       NO_BINARY = 209,
       INVALID_CODE = 218,
       UNSUPPORTED_CODE = 222,
       INVALID_HANDLE = 400,
       NOT_FOUND = 500,
       NOT_READY = 600,
       ILLEGAL_ADDRESS = 700,
       MISALIGNED_ADDRESS = 716,
       LAUNCH_FAILED = 719,
       SYSTEM_NOT_READY = 802,
       STREAM_BESIDE_DEFAULT = 1 /* does not wait for the default stream */
};

/* --- errors ------------------------------------------------------------------------------------------------------- */
static const char *name_of(const rt_api *api, size_t number)
{
    const char *name = api->names;

    for (; number > 0; number--)
        name += strlen(name) + 1;
    return name;
}

opjit_status opjit_rt_driver_status(int code)
{
    switch (code) {
    case NO_MEMORY: return OPJIT_OUT_OF_MEMORY;
    case INVALID_IMAGE:
    case NO_BINARY:
    case INVALID_CODE:
    case UNSUPPORTED_CODE: return OPJIT_CODEGEN;
    case INVALID_VALUE:
    case INVALID_HANDLE:
    case NOT_FOUND:
    case ILLEGAL_ADDRESS:
    case MISALIGNED_ADDRESS:
    case LAUNCH_FAILED: return OPJIT_INTERNAL; /* opjit's kernel or launch is wrong */
    default: return OPJIT_UNAVAILABLE;
    }
}

/* Whether the failure may pass: another program has the device, or it is not ready yet. */
static bool is_busy(int code)
{
    return code == DEVICE_BUSY || code == NOT_READY || code == SYSTEM_NOT_READY;
}

opjit_status opjit_rt_driver_check(const rt_api *api, const rt_functions *f, const char *who, size_t number, int code,
                                   opjit_error *error)
{
    const char *name = NULL, *words = NULL, *function;

    if (code == 0)
        return OPJIT_OK;
    function = name_of(api, number);
    f->error_name(code, &name);
    f->error_words(code, &words);
    const opjit_status status =
        name == NULL
            ? opjit_rt_refuse(error, opjit_rt_driver_status(code), "{%s}: {%s}: error {%d}", who, function, code)
            : opjit_rt_refuse(error, opjit_rt_driver_status(code), "{%s}: {%s}: {%s}, %s", who, function, name,
                              words == NULL ? "" : words);
    return is_busy(code) ? opjit_rt_later(error, status) : status;
}

/* --- the driver --------------------------------------------------------------------------------------------------- */
static opjit_status find_functions(const rt_api *api, void *library, const char *path, rt_functions *out,
                                   opjit_error *error)
{
    for (size_t i = 0; i < sizeof *out / sizeof(void (*)(void)); i++) {
        const char *name = name_of(api, i);
        void *symbol = name[0] == '\0' ? NULL : dlsym(library, name);
        if (symbol == NULL && name[0] != '\0')
            return opjit_rt_refuse(error, OPJIT_UNAVAILABLE, "{%s driver} {!%s}%s: it has no {%s}", api->title,
                                   api->variable, path, name);
        memcpy((char *)out + i * sizeof symbol, &symbol, sizeof symbol); /* C has no cast to function pointers */
    }
    return OPJIT_OK;
}

static opjit_status load_driver(const rt_api *api, const char *path, rt_functions *out, opjit_error *error)
{
    const char *why;
    void *library;

    if (path == NULL)
        path = secure_getenv(api->variable);
    if (path != NULL && path[0] != '/')
        return opjit_rt_refuse(error, OPJIT_UNAVAILABLE, "{%s driver} {!%s}'{%s}': must be an absolute path",
                               api->title, api->variable, path);
    library = dlopen(path == NULL ? api->library : path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL && path == NULL && api->older[0] != '\0')
        library = dlopen(api->older, RTLD_NOW | RTLD_LOCAL);
    if (library != NULL)
        return find_functions(api, library, path == NULL ? api->library : path, out, error);
    why = dlerror();
    return opjit_rt_refuse(error, OPJIT_UNAVAILABLE, "{%s driver}: {!%s}{!%s}%s", api->title, api->variable,
                           path == NULL ? api->library : path, why == NULL ? "not found" : why);
}

static opjit_status start(rt_driver *d, const char *path, opjit_error *error)
{
    char who[24];
    int count, version;

    TRY(load_driver(d->api, path, &d->f, error));
    snprintf(who, sizeof who, "%s driver", d->api->title);
    RT_CHECK(d->api, &d->f, who, init, (0));
    RT_CHECK(d->api, &d->f, who, version, (&version));
    RT_CHECK(d->api, &d->f, who, device_count, (&count));
    if (count <= 0)
        return opjit_rt_refuse(error, OPJIT_UNAVAILABLE, "{%s}: it has no {devices}", who);
    d->version = (uint32_t)version;
    d->devices = (uint32_t)count;
    return OPJIT_OK;
}

/* "cuda" or "cuda:N", "hip" or "hip:N". */
static opjit_status read_name(const char *name, const rt_api **out_api, uint32_t *out_index, opjit_error *error)
{
    const rt_api *const apis[] = { &opjit_rt_cuda, &opjit_rt_hip };

    for (size_t i = 0; i < sizeof apis / sizeof *apis; i++) {
        const size_t length = strlen(apis[i]->word);
        const char *rest = name + length;
        unsigned long index = 0;
        char *end = (char *)rest;
        if (strncmp(name, apis[i]->word, length) != 0)
            continue;
        if (rest[0] == ':' && rest[1] >= '0' && rest[1] <= '9')
            index = strtoul(rest + 1, &end, 10);
        if (*end != '\0' || index > INT32_MAX)
            continue;
        *out_api = apis[i];
        *out_index = (uint32_t)index;
        return OPJIT_OK;
    }
    return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                           "{!context_options}{device} '{%.40s}'; allowed: cuda, cuda:0, cuda:1 ..., hip, hip:0 ...",
                           name);
}

opjit_status opjit_rt_driver_open(const opjit_allocator *a, const char *device, const char *path, rt_driver **out,
                                  opjit_error *error)
{
    const rt_api *api = NULL;
    opjit_status status;
    uint32_t index;
    rt_driver *d;

    *out = NULL;
    TRY(read_name(device, &api, &index, error));
    d = opjit_rt_allocate(a, sizeof *d, alignof(rt_driver));
    if (d == NULL)
        return opjit_rt_no_memory(error);
    d->allocator = *a;
    d->api = api;
    status = start(d, path, error);
    if (status == OPJIT_OK)
        *out = d;
    else
        opjit_rt_driver_close(d);
    return status;
}

void opjit_rt_driver_close(rt_driver *driver)
{
    if (driver != NULL) {
        const opjit_allocator a = driver->allocator;
        opjit_rt_release(&a, driver, sizeof *driver);
    }
}

uint32_t opjit_rt_driver_devices(const rt_driver *driver)
{
    return driver->devices;
}
uint32_t opjit_rt_driver_version(const rt_driver *driver)
{
    return driver->version;
}

opjit_status opjit_rt_driver_info(const rt_driver *driver, uint32_t index, rt_device_info *out, opjit_error *error)
{
    const rt_functions *f = &driver->f;
    const rt_api *api = driver->api;
    char who[24];
    size_t bytes;
    int device;

    memset(out, 0, sizeof *out);
    if (index >= driver->devices)
        return opjit_rt_refuse(error, OPJIT_UNAVAILABLE, "{!context_options}{device} {%s:%u}: there %s %u", api->word,
                               index, driver->devices == 1 ? "is" : "are", driver->devices);
    snprintf(who, sizeof who, "%s:%u", api->word, index);
    RT_CHECK(api, f, who, device_get, (&device, (int)index));
    RT_CHECK(api, f, who, device_name, (out->name, sizeof out->name, device));
    RT_CHECK(api, f, who, device_memory, (&bytes, device));
    TRY(api->ask(api, f, who, device, out, error));
    out->name[sizeof out->name - 1] = '\0';
    out->memory_bytes = bytes;
    return OPJIT_OK;
}

/* --- a device ---------------------------------------------------------------------------------------------------- */
static opjit_status open_device(const rt_driver *driver, uint32_t index, rt_device *d, opjit_error *error)
{
    TRY(opjit_rt_driver_info(driver, index, &d->info, error));
    CHECK(d, device_get, (&d->number, (int)index));
    CHECK(d, context_retain, (&d->context, d->number));
    return OPJIT_OK;
}

opjit_status opjit_rt_device_open(const rt_driver *driver, const char *name, rt_device **out, opjit_error *error)
{
    const rt_api *api = NULL;
    opjit_status status;
    uint32_t index = 0;
    rt_device *d;

    *out = NULL;
    TRY(read_name(name, &api, &index, error));
    if (api != driver->api)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                               "{!context_options}{device} '{%.40s}' is none of the %s driver's", name,
                               driver->api->title);
    d = opjit_rt_allocate(&driver->allocator, sizeof *d, alignof(rt_device));
    if (d == NULL)
        return opjit_rt_no_memory(error);
    memset(d, 0, sizeof *d);
    d->allocator = driver->allocator;
    d->api = api;
    d->f = driver->f;
    snprintf(d->name, sizeof d->name, "%s:%u", api->word, index);
    pthread_mutex_init(&d->mutex, NULL);
    pthread_mutex_init(&d->working, NULL);
    status = open_device(driver, index, d, error);
    if (status == OPJIT_OK)
        *out = d;
    else
        opjit_rt_device_close(d);
    return status;
}

opjit_status opjit_rt_device_enter(const rt_device *d, opjit_error *error)
{
    CHECK(d, context_push, (d->context));
    return OPJIT_OK;
}

void opjit_rt_device_leave(const rt_device *d)
{
    void *context;
    d->f.context_pop(&context);
}

/* Calls one function of the driver in the device's context. */
#define WITHIN(d, member, arguments)                                                                 \
    do {                                                                                             \
        TRY(opjit_rt_device_enter(d, error));                                                        \
        const int code_ = (d)->f.member arguments;                                                   \
        opjit_rt_device_leave(d);                                                                    \
        TRY(opjit_rt_driver_check((d)->api, &(d)->f, (d)->name, RT_FUNCTION(member), code_, error)); \
    } while (0)

static void drop_workspace(rt_device *d, rt_workspace **at)
{
    rt_workspace *w = *at;

    *at = w->next;
    opjit_rt_device_free(d, w->address);
    opjit_rt_release(&d->allocator, w, sizeof *w);
}

void opjit_rt_device_close(rt_device *device)
{
    if (device == NULL)
        return;
    const opjit_allocator a = device->allocator;
    while (device->workspaces != NULL)
        drop_workspace(device, &device->workspaces);
    if (device->context != NULL)
        device->f.context_release(device->number);
    pthread_mutex_destroy(&device->mutex);
    pthread_mutex_destroy(&device->working);
    opjit_rt_release(&a, device, sizeof *device);
}

const rt_device_info *opjit_rt_device_info(const rt_device *device)
{
    return &device->info;
}
const char *opjit_rt_device_name(const rt_device *device)
{
    return device->name;
}

/* --- memory and streams ------------------------------------------------------------------------------------------ */
opjit_status opjit_rt_device_allocate(rt_device *device, uint64_t bytes, uint64_t *out_address, opjit_error *error)
{
    uint64_t address = 0;

    *out_address = 0;
    WITHIN(device, allocate, (&address, bytes));
    *out_address = address;
    return OPJIT_OK;
}

void opjit_rt_device_free(rt_device *device, uint64_t address)
{
    if (address != 0 && opjit_rt_device_enter(device, NULL) == OPJIT_OK) {
        device->f.free(address);
        opjit_rt_device_leave(device);
    }
}

opjit_status opjit_rt_device_write(rt_device *device, void *stream, uint64_t to, const void *from, uint64_t bytes,
                                   opjit_error *error)
{
    WITHIN(device, write, (to, from, bytes, stream));
    return opjit_rt_stream_wait(device, stream, error);
}

opjit_status opjit_rt_device_read(rt_device *device, void *stream, void *to, uint64_t from, uint64_t bytes,
                                  opjit_error *error)
{
    WITHIN(device, read, (to, from, bytes, stream));
    return opjit_rt_stream_wait(device, stream, error);
}

opjit_status opjit_rt_stream_create(rt_device *device, void **out, opjit_error *error)
{
    *out = NULL;
    WITHIN(device, stream_create, (out, STREAM_BESIDE_DEFAULT));
    return OPJIT_OK;
}

void opjit_rt_stream_destroy(rt_device *device, void *stream)
{
    if (stream == NULL || opjit_rt_device_enter(device, NULL) != OPJIT_OK)
        return;
    device->f.stream_wait(stream); /* another stream may get the same handle later */
    pthread_mutex_lock(&device->working);
    for (rt_workspace **at = &device->workspaces; *at != NULL; at = &(*at)->next) {
        if ((*at)->stream == stream) {
            drop_workspace(device, at);
            break;
        }
    }
    pthread_mutex_unlock(&device->working);
    device->f.stream_destroy(stream);
    opjit_rt_device_leave(device);
}

opjit_status opjit_rt_stream_wait(rt_device *device, void *stream, opjit_error *error)
{
    WITHIN(device, stream_wait, (stream));
    return OPJIT_OK;
}
