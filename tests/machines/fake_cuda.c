/* SPDX-License-Identifier: Apache-2.0 */
/* fake_cuda.c - a CUDA driver for tests without a GPU: the functions of the driver API that opjit calls, with kernels
 * run by the PTX interpreter.  Built as libcuda_fake.so.  Device memory has addresses that trap when the host touches
 * them, and host addresses are not device memory.  Asynchronous work happens as late as it may: at the next wait for
 * its stream.
 *
 *   FAKE_CUDA_DEVICES=90,120             compute capabilities of the devices (default 90); empty: none
 *   FAKE_CUDA_VERSION=12040              of the driver (default 13000)
 *   FAKE_CUDA_MEMORY=BYTES               of each device (default 1 GiB)
 *   FAKE_CUDA_FAIL=cuMemAlloc_v2:2[:N]   that function returns error 2 (at its N-th call); several with commas
 *   FAKE_CUDA_RACES=1                    kernels are checked for races
 *   FAKE_CUDA_REVERSED=1                 the last block runs first
 * fake_cuda_live() counts what has not been freed; cuGetErrorString of a failed kernel returns the interpreter's
 * message. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/machines/fake_cuda.h"

fake_driver fake = { .kernel_error = "a kernel failed" };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local device *stack[MOST_STACK];
static _Thread_local int depth;

/* --- errors asked for -------------------------------------------------------------------------------------------- */
static int injected(const char *name)
{
    static struct {
        char name[64];
        int calls;
    } counts[64];
    const char *list = getenv("FAKE_CUDA_FAIL");
    int calls = 0;

    for (int i = 0; i < 64; i++) {
        if (counts[i].name[0] == '\0')
            snprintf(counts[i].name, sizeof counts[i].name, "%s", name);
        if (strcmp(counts[i].name, name) == 0) {
            calls = ++counts[i].calls;
            break;
        }
    }
    while (list != NULL && *list != '\0') {
        char which[64];
        int code = 0, at = 0;
        if (sscanf(list, "%63[^:,]:%d:%d", which, &code, &at) >= 2 && strcmp(which, name) == 0 &&
            (at == 0 || at == calls))
            return code;
        list = strchr(list, ',');
        list = list == NULL ? NULL : list + 1;
    }
    return OK;
}

int fake_enter(const char *name, need what)
{
    pthread_mutex_lock(&lock);
    const int code = injected(name);
    if (code != OK)
        return code;
    if (what >= INITIALIZED && !fake.initialized)
        return NOT_INITIALIZED;
    if (what >= CONTEXT && (depth == 0 || stack[depth - 1] == NULL))
        return INVALID_CONTEXT;
    return what == CONTEXT ? stack[depth - 1]->failed : OK;
}
int fake_leave(int code)
{
    pthread_mutex_unlock(&lock);
    return code;
}
device *fake_current(void)
{
    return stack[depth - 1];
}
static bool is_device_address(uint64_t address)
{
    return address >= fake.reserved && address - fake.reserved < RESERVED;
}
static bool owned(uint64_t address, size_t bytes)
{
    return ptx_memory_host(fake_current()->memory, address, bytes) != NULL;
}
static bool host_is_fine(const void *host)
{
    return host != NULL && !is_device_address((uintptr_t)host);
}

/* --- the driver and its fake.devices ----------------------------------------------------------------------------- */
static void make_devices(void)
{
    const char *list = fake.device_list != NULL ? fake.device_list : getenv("FAKE_CUDA_DEVICES");

    for (list = list == NULL ? "90" : list; *list != '\0' && fake.device_count < MOST_DEVICES;) {
        char *end;
        device *d = &fake.devices[fake.device_count++];
        d->capability = (uint32_t)strtoul(list, &end, 10);
        d->null.last = &d->null.first;
        d->memory = ptx_memory_create();
        list = *end == ',' ? end + 1 : end + strlen(end);
    }
}

API cuInit(unsigned flags)
{
    ENTER(NOTHING);
    REFUSE_IF(flags != 0, INVALID_VALUE);
    if (!fake.initialized) {
        void *memory = mmap(NULL, RESERVED, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        REFUSE_IF(memory == MAP_FAILED, OUT_OF_MEMORY);
        fake.reserved = (uintptr_t)memory;
        fake.next_address = (fake.reserved + GUARD - 1) / GUARD * GUARD;
        make_devices();
    }
    REFUSE_IF(fake.device_count == 0, NO_DEVICE);
    fake.initialized = true;
    return fake_leave(OK);
}

API cuDriverGetVersion(int *version)
{
    ENTER(NOTHING);
    *version = getenv("FAKE_CUDA_VERSION") == NULL ? 13000 : atoi(getenv("FAKE_CUDA_VERSION"));
    return fake_leave(OK);
}

API cuDeviceGetCount(int *count)
{
    ENTER(INITIALIZED);
    *count = fake.device_count;
    return fake_leave(OK);
}

API cuDeviceGet(int *out, int ordinal)
{
    ENTER(INITIALIZED);
    REFUSE_IF(ordinal < 0 || ordinal >= fake.device_count, INVALID_DEVICE);
    *out = ordinal;
    return fake_leave(OK);
}

API cuDeviceGetName(char *name, int size, int number)
{
    ENTER(INITIALIZED);
    REFUSE_IF(number < 0 || number >= fake.device_count, INVALID_DEVICE);
    snprintf(name, (size_t)size, "PTX interpreter sm_%u", fake.devices[number].capability);
    return fake_leave(OK);
}

static uint64_t memory_bytes(void)
{
    const char *bytes = getenv("FAKE_CUDA_MEMORY");
    return bytes == NULL ? UINT64_C(1) << 30 : strtoull(bytes, NULL, 10);
}

API cuDeviceTotalMem_v2(size_t *bytes, int number)
{
    ENTER(INITIALIZED);
    REFUSE_IF(number < 0 || number >= fake.device_count, INVALID_DEVICE);
    *bytes = memory_bytes();
    return fake_leave(OK);
}

API cuDeviceGetAttribute(int *value, int attribute, int number)
{
    ENTER(INITIALIZED);
    REFUSE_IF(number < 0 || number >= fake.device_count, INVALID_DEVICE);
    switch (attribute) {
    case 1: *value = 1024; break;  /* threads of a block */
    case 8: *value = 49152; break; /* shared memory of a block */
    case 10: *value = 32; break;   /* warp */
    case 16: *value = 4; break;    /* multiprocessors */
    case 75: *value = (int)fake.devices[number].capability / 10; break;
    case 76: *value = (int)fake.devices[number].capability % 10; break;
    case 97: *value = 166912; break; /* shared memory of a block, if asked for */
    default: return fake_leave(INVALID_VALUE);
    }
    return fake_leave(OK);
}

API cuDeviceComputeCapability(int *major, int *minor, int number)
{
    ENTER(INITIALIZED);
    REFUSE_IF(number < 0 || number >= fake.device_count, INVALID_DEVICE);
    *major = (int)fake.devices[number].capability / 10;
    *minor = (int)fake.devices[number].capability % 10;
    return fake_leave(OK);
}

/* --- contexts ---------------------------------------------------------------------------------------------------- */
API cuDevicePrimaryCtxRetain(void **context, int number)
{
    ENTER(INITIALIZED);
    REFUSE_IF(number < 0 || number >= fake.device_count, INVALID_DEVICE);
    fake.devices[number].references++;
    fake.live++;
    *context = &fake.devices[number];
    return fake_leave(OK);
}

API cuDevicePrimaryCtxRelease_v2(int number)
{
    ENTER(INITIALIZED);
    REFUSE_IF(number < 0 || number >= fake.device_count, INVALID_DEVICE);
    REFUSE_IF(fake.devices[number].references == 0, INVALID_CONTEXT);
    fake.live--;
    if (--fake.devices[number].references == 0) {
        fake_flush_all(&fake.devices[number]);
        fake.devices[number].failed = OK;
    }
    return fake_leave(OK);
}

static bool is_context(const void *context)
{
    for (int i = 0; i < fake.device_count; i++) {
        if (context == &fake.devices[i] && fake.devices[i].references > 0)
            return true;
    }
    return false;
}

API cuCtxSetCurrent(void *context)
{
    ENTER(INITIALIZED);
    REFUSE_IF(context != NULL && !is_context(context), INVALID_CONTEXT);
    if (depth == 0)
        depth = 1;
    stack[depth - 1] = context;
    return fake_leave(OK);
}

API cuCtxGetCurrent(void **context)
{
    ENTER(INITIALIZED);
    *context = depth == 0 ? NULL : stack[depth - 1];
    return fake_leave(OK);
}

API cuCtxPushCurrent_v2(void *context)
{
    ENTER(INITIALIZED);
    REFUSE_IF(!is_context(context) || depth == MOST_STACK, INVALID_CONTEXT);
    stack[depth++] = context;
    return fake_leave(OK);
}

API cuCtxPopCurrent_v2(void **context)
{
    ENTER(INITIALIZED);
    REFUSE_IF(depth == 0, INVALID_CONTEXT);
    depth--;
    if (context != NULL)
        *context = stack[depth];
    return fake_leave(OK);
}

API cuCtxSynchronize(void)
{
    ENTER(CONTEXT);
    return fake_leave(fake_flush_all(fake_current()));
}

/* --- memory ------------------------------------------------------------------------------------------------------ */
API cuMemAlloc_v2(uint64_t *address, size_t bytes)
{
    ENTER(CONTEXT);
    device *d = fake_current();
    REFUSE_IF(bytes == 0, INVALID_VALUE);
    REFUSE_IF(bytes > memory_bytes() - d->used || bytes > fake.reserved + RESERVED - fake.next_address - 2 * GUARD,
              OUT_OF_MEMORY);
    allocation *a = calloc(1, sizeof *a);
    void *host = malloc(bytes);
    if (a == NULL || host == NULL ||
        !ptx_memory_add(d->memory, fake.next_address, host, bytes, true, "an allocation")) {
        free(a);
        free(host);
        return fake_leave(OUT_OF_MEMORY);
    }
    memset(host, 0xa5, bytes); /* nobody may rely on zeros */
    *a = (allocation){ fake.allocations, fake.next_address, bytes, host, (int)(d - fake.devices) };
    fake.allocations = a;
    fake.next_address += (bytes + 2 * GUARD - 1) / GUARD * GUARD; /* never used again */
    d->used += bytes;
    fake.live++;
    *address = a->address;
    return fake_leave(OK);
}

API cuMemFree_v2(uint64_t address)
{
    ENTER(FREEING);
    if (address == 0)
        return fake_leave(OK);
    for (allocation **at = &fake.allocations; *at != NULL; at = &(*at)->next) {
        allocation *a = *at;
        if (a->address != address)
            continue;
        device *d = &fake.devices[a->device];
        fake_flush_all(d);
        ptx_memory_remove(d->memory, address);
        *at = a->next;
        d->used -= a->bytes;
        fake.live--;
        free(a->host);
        free(a);
        return fake_leave(OK);
    }
    return fake_leave(INVALID_VALUE);
}

API cuMemGetInfo_v2(size_t *unused, size_t *total)
{
    ENTER(CONTEXT);
    *total = memory_bytes();
    *unused = *total - fake_current()->used;
    return fake_leave(OK);
}

API cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes)
{
    ENTER(CONTEXT);
    REFUSE_IF(!owned(to, bytes) || !host_is_fine(from), INVALID_VALUE);
    return fake_leave(fake_copy(NULL, COPY_IN, to, (uintptr_t)from, bytes, 0, true));
}

API cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes)
{
    ENTER(CONTEXT);
    REFUSE_IF(!owned(from, bytes) || !host_is_fine(to), INVALID_VALUE);
    return fake_leave(fake_copy(NULL, COPY_OUT, (uintptr_t)to, from, bytes, 0, true));
}

API cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *handle)
{
    ENTER(CONTEXT);
    REFUSE_IF(!owned(to, bytes) || !host_is_fine(from), INVALID_VALUE);
    return fake_leave(fake_copy(handle, COPY_IN, to, (uintptr_t)from, bytes, 0, false));
}

API cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *handle)
{
    ENTER(CONTEXT);
    REFUSE_IF(!owned(from, bytes) || !host_is_fine(to), INVALID_VALUE);
    return fake_leave(fake_copy(handle, COPY_OUT, (uintptr_t)to, from, bytes, 0, false));
}

API cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void *handle)
{
    ENTER(CONTEXT);
    REFUSE_IF(!owned(to, bytes) || !owned(from, bytes), INVALID_VALUE);
    return fake_leave(fake_copy(handle, COPY_WITHIN, to, from, bytes, 0, false));
}

API cuMemsetD8_v2(uint64_t to, unsigned char value, size_t bytes)
{
    ENTER(CONTEXT);
    REFUSE_IF(!owned(to, bytes), INVALID_VALUE);
    return fake_leave(fake_copy(NULL, FILL, to, 0, bytes, value, true));
}

API cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes, void *handle)
{
    ENTER(CONTEXT);
    REFUSE_IF(!owned(to, bytes), INVALID_VALUE);
    return fake_leave(fake_copy(handle, FILL, to, 0, bytes, value, false));
}

API cuPointerGetAttribute(void *data, int attribute, uint64_t address)
{
    ENTER(CONTEXT);
    REFUSE_IF(attribute != 2 || !is_device_address(address), INVALID_VALUE); /* memory type */
    *(unsigned *)data = 2;                                                   /* the device's */
    return fake_leave(OK);
}
