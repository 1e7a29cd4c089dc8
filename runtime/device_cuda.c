/* device_cuda.c - NVIDIA GPUs by the CUDA driver API.  The functions' types are written down here, since nothing of
 * CUDA is needed to build opjit; their names and numbers are that API's. */
#define _GNU_SOURCE
#include "runtime/device.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/target_table.h"

#define SYSTEM_DRIVER "libcuda.so.1"
enum { /* CUresult, CUdevice_attribute, CUjit_option, CUfunction_attribute, CUstream_flags */
       CUDA_INVALID_VALUE = 1,
       CUDA_OUT_OF_MEMORY = 2,
       CUDA_NO_BINARY = 209,
       CUDA_INVALID_PTX = 218,
       CUDA_UNSUPPORTED_PTX = 222,
       CUDA_INVALID_HANDLE = 400,
       CUDA_NOT_FOUND = 500,
       CUDA_ILLEGAL_ADDRESS = 700,
       CUDA_MISALIGNED_ADDRESS = 716,
       CUDA_LAUNCH_FAILED = 719,
       ATTRIBUTE_PROCESSORS = 16,
       ATTRIBUTE_MAJOR = 75,
       ATTRIBUTE_MINOR = 76,
       ATTRIBUTE_SHARED = 97,
       JIT_ERROR_LOG = 5,
       JIT_ERROR_LOG_BYTES = 6,
       FUNCTION_DYNAMIC_SHARED = 8,
       STREAM_BESIDE_DEFAULT = 1, /* does not wait for the default stream */
       PLAIN_SHARED = 48 * 1024,  /* shared memory that needs no asking */
       LOG_BYTES = 2048
};

/* Each function once: its name and its parameters. */
#define FUNCTIONS(F)                                                            \
    F(cuInit, (unsigned))                                                       \
    F(cuDriverGetVersion, (int *))                                              \
    F(cuGetErrorName, (int, const char **))                                     \
    F(cuGetErrorString, (int, const char **))                                   \
    F(cuDeviceGetCount, (int *))                                                \
    F(cuDeviceGet, (int *, int))                                                \
    F(cuDeviceGetName, (char *, int, int))                                      \
    F(cuDeviceTotalMem_v2, (size_t *, int))                                     \
    F(cuDeviceGetAttribute, (int *, int, int))                                  \
    F(cuDevicePrimaryCtxRetain, (void **, int))                                 \
    F(cuDevicePrimaryCtxRelease_v2, (int))                                      \
    F(cuCtxPushCurrent_v2, (void *))                                            \
    F(cuCtxPopCurrent_v2, (void **))                                            \
    F(cuMemAlloc_v2, (unsigned long long *, size_t))                            \
    F(cuMemFree_v2, (unsigned long long))                                       \
    F(cuMemcpyHtoDAsync_v2, (unsigned long long, const void *, size_t, void *)) \
    F(cuMemcpyDtoHAsync_v2, (void *, unsigned long long, size_t, void *))       \
    F(cuMemsetD8Async, (unsigned long long, unsigned char, size_t, void *))     \
    F(cuStreamCreate, (void **, unsigned))                                      \
    F(cuStreamDestroy_v2, (void *))                                             \
    F(cuStreamSynchronize, (void *))                                            \
    F(cuModuleLoadDataEx, (void **, const void *, unsigned, int *, void **))    \
    F(cuModuleUnload, (void *))                                                 \
    F(cuModuleGetFunction, (void **, void *, const char *))                     \
    F(cuFuncSetAttribute, (void *, int, int))                                   \
    F(cuLaunchKernel,                                                           \
      (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **))

typedef struct functions {
#define F(name, parameters) int(*name) parameters;
    FUNCTIONS(F)
#undef F
} functions;

struct rt_driver {
    opjit_allocator allocator;
    functions f;
    uint32_t devices, version;
};

struct rt_device {
    opjit_allocator allocator;
    functions f;
    char name[16]; /* for messages */
    int number;
    void *context;
    rt_device_info info;
    pthread_mutex_t mutex; /* of codes and their references */
    rt_device_code *codes;
};

typedef struct entry {
    void *function;
    uint32_t shared_bytes;
} entry;
struct rt_device_code {
    rt_device_code *next;
    rt_device *device;
    rt_hash hash; /* of text and names */
    uint32_t references, entry_count;
    void *module;
    entry entries[];
};

/* --- errors ------------------------------------------------------------------------------------------------------- */
static const char names[] = /* in the order of functions; no pointers, which would have to be relocated */
#define F(name, parameters) #name "\0"
    FUNCTIONS(F);
#undef F
#define NUMBER(function) (offsetof(functions, function) / sizeof(void (*)(void)))

static const char *name_of(size_t number)
{
    const char *name = names;

    for (; number > 0; number--)
        name += strlen(name) + 1;
    return name;
}

static opjit_status status_of(int code)
{
    switch (code) {
    case CUDA_OUT_OF_MEMORY: return OPJIT_OUT_OF_MEMORY;
    case CUDA_NO_BINARY:
    case CUDA_INVALID_PTX:
    case CUDA_UNSUPPORTED_PTX: return OPJIT_CODEGEN;
    case CUDA_INVALID_VALUE:
    case CUDA_INVALID_HANDLE:
    case CUDA_NOT_FOUND:
    case CUDA_ILLEGAL_ADDRESS:
    case CUDA_MISALIGNED_ADDRESS:
    case CUDA_LAUNCH_FAILED: return OPJIT_INTERNAL; /* a kernel or a launch of ours is wrong */
    default: return OPJIT_UNAVAILABLE;
    }
}

/* OK for 0, else "<who>: <function>: <the driver's name, and its words>". */
static opjit_status check(const functions *f, const char *who, size_t number, int code, opjit_error *error)
{
    const char *name = NULL, *words = NULL, *function;

    if (code == 0)
        return OPJIT_OK;
    function = name_of(number);
    f->cuGetErrorName(code, &name);
    f->cuGetErrorString(code, &words);
    if (name == NULL)
        return opjit_rt_error_set(error, status_of(code), "%s: %s: error %d", who, function, code);
    return opjit_rt_error_set(error, status_of(code), "%s: %s: %s, %s", who, function, name,
                              words == NULL ? "" : words);
}
#define CHECK(f, who, function, arguments) TRY(check(f, who, NUMBER(function), (f)->function arguments, error))

/* --- the driver --------------------------------------------------------------------------------------------------- */
static opjit_status find_functions(void *library, const char *path, functions *out, opjit_error *error)
{
    for (size_t i = 0; i < sizeof *out / sizeof(void (*)(void)); i++) {
        const char *name = name_of(i);
        void *symbol = dlsym(library, name);
        if (symbol == NULL)
            return opjit_rt_error_set(error, OPJIT_UNAVAILABLE, "CUDA driver %s: it has no %s", path, name);
        memcpy((char *)out + i * sizeof symbol, &symbol, sizeof symbol); /* C has no cast to function pointers */
    }
    return OPJIT_OK;
}

static opjit_status load_driver(const char *path, functions *out, opjit_error *error)
{
    const char *why;
    void *library;

    if (path == NULL)
        path = secure_getenv("OPJIT_CUDA_DRIVER");
    if (path != NULL && path[0] != '/')
        return opjit_rt_error_set(error, OPJIT_UNAVAILABLE, "CUDA driver '%s': must be an absolute path", path);
    if (path == NULL)
        path = SYSTEM_DRIVER;
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library != NULL)
        return find_functions(library, path, out, error);
    why = dlerror();
    return opjit_rt_error_set(error, OPJIT_UNAVAILABLE, "CUDA driver: %s", why == NULL ? path : why);
}

static opjit_status start(rt_driver *d, const char *path, opjit_error *error)
{
    int count, version;

    TRY(load_driver(path, &d->f, error));
    CHECK(&d->f, "CUDA driver", cuInit, (0));
    CHECK(&d->f, "CUDA driver", cuDriverGetVersion, (&version));
    CHECK(&d->f, "CUDA driver", cuDeviceGetCount, (&count));
    if (count <= 0)
        return opjit_rt_error_set(error, OPJIT_UNAVAILABLE, "CUDA driver: it has no devices");
    d->version = (uint32_t)version;
    d->devices = (uint32_t)count;
    return OPJIT_OK;
}

opjit_status opjit_rt_driver_open(const opjit_allocator *a, const char *path, rt_driver **out, opjit_error *error)
{
    rt_driver *d = opjit_rt_allocate(a, sizeof *d, alignof(rt_driver));
    opjit_status status;

    *out = NULL;
    if (d == NULL)
        return opjit_rt_no_memory(error);
    d->allocator = *a;
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
    const struct {
        int attribute;
        uint32_t *to;
    } asked[] = {
        { ATTRIBUTE_MAJOR, &out->major },
        { ATTRIBUTE_MINOR, &out->minor },
        { ATTRIBUTE_PROCESSORS, &out->processors },
        { ATTRIBUTE_SHARED, &out->shared_bytes },
    };
    const functions *f = &driver->f;
    char who[16];
    size_t bytes;
    int device, value;

    memset(out, 0, sizeof *out);
    if (index >= driver->devices)
        return opjit_rt_error_set(error, OPJIT_UNAVAILABLE, "device cuda:%u: there are %u", index, driver->devices);
    snprintf(who, sizeof who, "cuda:%u", index);
    CHECK(f, who, cuDeviceGet, (&device, (int)index));
    CHECK(f, who, cuDeviceGetName, (out->name, sizeof out->name, device));
    CHECK(f, who, cuDeviceTotalMem_v2, (&bytes, device));
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        CHECK(f, who, cuDeviceGetAttribute, (&value, asked[i].attribute, device));
        *asked[i].to = (uint32_t)value;
    }
    out->name[sizeof out->name - 1] = '\0';
    out->memory_bytes = bytes;
    return OPJIT_OK;
}

/* --- a device ---------------------------------------------------------------------------------------------------- */
/* "cuda" or "cuda:N". */
static opjit_status index_of(const char *name, uint32_t *out, opjit_error *error)
{
    unsigned long index = 0;
    char *end;

    if (strncmp(name, "cuda", 4) == 0 && (name[4] == '\0' || (name[4] == ':' && name[5] >= '0' && name[5] <= '9'))) {
        end = (char *)name + 4;
        if (name[4] == ':')
            index = strtoul(name + 5, &end, 10);
        if (*end == '\0' && index <= INT32_MAX) {
            *out = (uint32_t)index;
            return OPJIT_OK;
        }
    }
    return opjit_rt_error_set(error, OPJIT_INVALID_ARGUMENT, "device '%.40s'; allowed: cuda, cuda:0, cuda:1 ...", name);
}

static opjit_status open_device(const rt_driver *driver, uint32_t index, rt_device *d, opjit_error *error)
{
    TRY(opjit_rt_driver_info(driver, index, &d->info, error));
    CHECK(&d->f, d->name, cuDeviceGet, (&d->number, (int)index));
    CHECK(&d->f, d->name, cuDevicePrimaryCtxRetain, (&d->context, d->number));
    return OPJIT_OK;
}

opjit_status opjit_rt_device_open(const rt_driver *driver, const char *name, rt_device **out, opjit_error *error)
{
    opjit_status status;
    uint32_t index = 0;
    rt_device *d;

    *out = NULL;
    TRY(index_of(name, &index, error));
    d = opjit_rt_allocate(&driver->allocator, sizeof *d, alignof(rt_device));
    if (d == NULL)
        return opjit_rt_no_memory(error);
    memset(d, 0, sizeof *d);
    d->allocator = driver->allocator;
    d->f = driver->f;
    snprintf(d->name, sizeof d->name, "cuda:%u", index);
    pthread_mutex_init(&d->mutex, NULL);
    status = open_device(driver, index, d, error);
    if (status == OPJIT_OK)
        *out = d;
    else
        opjit_rt_device_close(d);
    return status;
}

void opjit_rt_device_close(rt_device *device)
{
    if (device == NULL)
        return;
    const opjit_allocator a = device->allocator;
    if (device->context != NULL)
        device->f.cuDevicePrimaryCtxRelease_v2(device->number);
    pthread_mutex_destroy(&device->mutex);
    opjit_rt_release(&a, device, sizeof *device);
}

const rt_device_info *opjit_rt_device_info(const rt_device *device)
{
    return &device->info;
}

opjit_status opjit_rt_device_target(const rt_device *device, rt_target *out, opjit_error *error)
{
    const uint32_t capability = 10 * device->info.major + device->info.minor;
    const rt_level_row *best = NULL, *row;
    char text[32];

    for (uint32_t level = 1; (row = opjit_rt_level(RT_ARCH_NVPTX, level)) != NULL; level++)
        if (strtoul(row->name + 3, NULL, 10) <= capability) /* sm_90 */
            best = row;
    if (best == NULL)
        return opjit_rt_error_set(error, OPJIT_UNSUPPORTED, "device %s: sm_%u is too old", device->name, capability);
    snprintf(text, sizeof text, "%s:%s", opjit_rt_target_family(RT_ARCH_NVPTX), best->name);
    return opjit_rt_target_parse(text, out, error);
}

static opjit_status enter(const rt_device *d, opjit_error *error)
{
    CHECK(&d->f, d->name, cuCtxPushCurrent_v2, (d->context));
    return OPJIT_OK;
}

static void leave(const rt_device *d)
{
    void *context;
    d->f.cuCtxPopCurrent_v2(&context);
}

/* One function of the driver in the device's context. */
#define WITHIN(d, function, arguments)                                  \
    do {                                                                \
        TRY(enter(d, error));                                           \
        const int code_ = (d)->f.function arguments;                    \
        leave(d);                                                       \
        TRY(check(&(d)->f, (d)->name, NUMBER(function), code_, error)); \
    } while (0)

/* --- memory and streams ------------------------------------------------------------------------------------------ */
opjit_status opjit_rt_device_allocate(rt_device *device, uint64_t bytes, uint64_t *out_address, opjit_error *error)
{
    unsigned long long address = 0;

    *out_address = 0;
    WITHIN(device, cuMemAlloc_v2, (&address, bytes));
    *out_address = address;
    return OPJIT_OK;
}

void opjit_rt_device_free(rt_device *device, uint64_t address)
{
    if (address != 0 && enter(device, NULL) == OPJIT_OK) {
        device->f.cuMemFree_v2(address);
        leave(device);
    }
}

opjit_status opjit_rt_device_write(rt_device *device, void *stream, uint64_t to, const void *from, uint64_t bytes,
                                   opjit_error *error)
{
    WITHIN(device, cuMemcpyHtoDAsync_v2, (to, from, bytes, stream));
    return opjit_rt_stream_wait(device, stream, error);
}

opjit_status opjit_rt_device_read(rt_device *device, void *stream, void *to, uint64_t from, uint64_t bytes,
                                  opjit_error *error)
{
    WITHIN(device, cuMemcpyDtoHAsync_v2, (to, from, bytes, stream));
    return opjit_rt_stream_wait(device, stream, error);
}

opjit_status opjit_rt_device_fill(rt_device *device, void *stream, uint64_t to, uint8_t value, uint64_t bytes,
                                  opjit_error *error)
{
    WITHIN(device, cuMemsetD8Async, (to, value, bytes, stream));
    return OPJIT_OK;
}

opjit_status opjit_rt_stream_create(rt_device *device, void **out, opjit_error *error)
{
    *out = NULL;
    WITHIN(device, cuStreamCreate, (out, STREAM_BESIDE_DEFAULT));
    return OPJIT_OK;
}

void opjit_rt_stream_destroy(rt_device *device, void *stream)
{
    if (stream != NULL && enter(device, NULL) == OPJIT_OK) {
        device->f.cuStreamDestroy_v2(stream);
        leave(device);
    }
}

opjit_status opjit_rt_stream_wait(rt_device *device, void *stream, opjit_error *error)
{
    WITHIN(device, cuStreamSynchronize, (stream));
    return OPJIT_OK;
}

/* --- code -------------------------------------------------------------------------------------------------------- */
static size_t code_bytes(uint32_t entries)
{
    return sizeof(rt_device_code) + entries * sizeof(entry);
}

static bool hash_of(const rt_device *d, const char *text, const char *const *entries, uint32_t count, rt_hash *out)
{
    rt_bytes b;

    opjit_rt_bytes_init(&b, &d->allocator);
    opjit_rt_bytes_str(&b, text);
    for (uint32_t i = 0; i < count; i++)
        opjit_rt_bytes_str(&b, entries[i]);
    *out = opjit_rt_hash(b.data, b.size);
    const bool good = !b.failed;
    opjit_rt_bytes_free(&b);
    return good;
}

/* In the device's context.  *out_module is set as soon as there is one. */
static opjit_status compile(rt_device *d, const char *text, const char *const *entries, rt_device_code *code,
                            opjit_error *error)
{
    char log[LOG_BYTES] = "";
    int options[] = { JIT_ERROR_LOG, JIT_ERROR_LOG_BYTES };
    void *values[] = { log, (void *)(uintptr_t)sizeof log };
    const int failed = d->f.cuModuleLoadDataEx(&code->module, text, 2, options, values);

    if (failed != 0) {
        check(&d->f, d->name, NUMBER(cuModuleLoadDataEx), failed, error);
        log[sizeof log - 1] = '\0';
        log[strcspn(log, "\n")] = '\0'; /* the first is what it is about */
        if (log[0] != '\0' && status_of(failed) == OPJIT_CODEGEN)
            opjit_rt_error_set(error, OPJIT_CODEGEN, "%s: the driver refuses the code: %s", d->name, log);
        return status_of(failed);
    }
    for (uint32_t i = 0; i < code->entry_count; i++) {
        const int missing = d->f.cuModuleGetFunction(&code->entries[i].function, code->module, entries[i]);
        if (missing != 0) {
            check(&d->f, d->name, NUMBER(cuModuleGetFunction), missing, error);
            opjit_rt_error_prefix(error, "entry %s", entries[i]);
            return status_of(missing);
        }
    }
    return OPJIT_OK;
}

static opjit_status load(rt_device *d, const char *text, const char *const *entries, rt_device_code *code,
                         opjit_error *error)
{
    TRY(enter(d, error));
    const opjit_status status = compile(d, text, entries, code, error);
    if (status != OPJIT_OK && code->module != NULL)
        d->f.cuModuleUnload(code->module);
    leave(d);
    return status;
}

/* Under the device's lock: two threads with one text compile it once. */
static opjit_status find_or_load(rt_device *d, const char *text, const char *const *entries, uint32_t count,
                                 rt_hash hash, rt_device_code **out, opjit_error *error)
{
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
    const opjit_status status = load(d, text, entries, code, error);
    if (status != OPJIT_OK) {
        opjit_rt_release(&d->allocator, code, code_bytes(count));
        return status;
    }
    code->next = d->codes;
    *out = d->codes = code;
    return OPJIT_OK;
}

opjit_status opjit_rt_device_load(rt_device *device, const char *text, const char *const *entries, uint32_t entry_count,
                                  rt_device_code **out, opjit_error *error)
{
    rt_hash hash;

    *out = NULL;
    if (!hash_of(device, text, entries, entry_count, &hash))
        return opjit_rt_no_memory(error);
    pthread_mutex_lock(&device->mutex);
    const opjit_status status = find_or_load(device, text, entries, entry_count, hash, out, error);
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
    if (enter(d, NULL) == OPJIT_OK) {
        d->f.cuModuleUnload(code->module);
        leave(d);
    }
    opjit_rt_release(&d->allocator, code, code_bytes(code->entry_count));
}

/* More shared memory than usual has to be asked for, once an entry. */
static opjit_status ask_for_shared(rt_device *d, entry *e, uint32_t bytes, opjit_error *error)
{
    if (bytes <= PLAIN_SHARED)
        return OPJIT_OK;
    pthread_mutex_lock(&d->mutex);
    int code = 0;
    if (bytes > e->shared_bytes)
        code = d->f.cuFuncSetAttribute(e->function, FUNCTION_DYNAMIC_SHARED, (int)bytes);
    if (code == 0 && bytes > e->shared_bytes)
        e->shared_bytes = bytes;
    pthread_mutex_unlock(&d->mutex);
    return check(&d->f, d->name, NUMBER(cuFuncSetAttribute), code, error);
}

static opjit_status launch(rt_device_code *code, void *stream, const rt_launch *l, opjit_error *error)
{
    rt_device *d = code->device;

    if (l->entry >= code->entry_count)
        return opjit_rt_error_set(error, OPJIT_INVALID_ARGUMENT, "entry %u of %u", l->entry, code->entry_count);
    TRY(ask_for_shared(d, &code->entries[l->entry], l->shared_bytes, error));
    CHECK(&d->f, d->name, cuLaunchKernel,
          (code->entries[l->entry].function, l->grid[0], l->grid[1], l->grid[2], l->block[0], l->block[1], l->block[2],
           l->shared_bytes, stream, (void **)l->arguments, NULL));
    return OPJIT_OK;
}

opjit_status opjit_rt_device_launch(rt_device_code *code, void *stream, const rt_launch *launches, uint32_t count,
                                    opjit_error *error)
{
    opjit_status status = OPJIT_OK;

    TRY(enter(code->device, error));
    for (uint32_t i = 0; i < count && status == OPJIT_OK; i++) {
        status = launch(code, stream, &launches[i], error);
        if (status != OPJIT_OK)
            opjit_rt_error_prefix(error, "launch %u of %u", i, count);
    }
    leave(code->device);
    return status;
}
