/* SPDX-License-Identifier: Apache-2.0 */
/* fake_hip.c - HIP for tests without a GPU: the functions that opjit calls, on the memory and streams of the fake CUDA
 * driver.  Code objects are inspected, not run: a function of the test stands in for every kernel.  Built as
 * libamdhip64_fake.so, which contains the other driver.
 *
 * FAKE_HIP_DEVICES=gfx942:sramecc+,gfx1100   architectures of the devices (default gfx942); empty: none
 * FAKE_CUDA_FAIL, FAKE_CUDA_MEMORY           as in fake_cuda.c; functions have CUDA's names */
#define _GNU_SOURCE
#include "tests/machines/fake_hip.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/machines/fake_cuda.h"

enum { MACHINE_AMDGPU = 224, ARCH_SIZE = 64, MOST_ARGUMENTS = 256, PROPERTIES = 1472 };

/* --- CUDA's functions that do the work ---------------------------------------------------------------------------- */
API cuInit(unsigned flags);
API cuDeviceGetCount(int *count);
API cuDeviceGet(int *out, int ordinal);
API cuDeviceTotalMem_v2(size_t *bytes, int number);
API cuDevicePrimaryCtxRetain(void **context, int number);
API cuDevicePrimaryCtxRelease_v2(int number);
API cuCtxPushCurrent_v2(void *context);
API cuCtxPopCurrent_v2(void **context);
API cuCtxSynchronize(void);
API cuMemAlloc_v2(uint64_t *address, size_t bytes);
API cuMemFree_v2(uint64_t address);
API cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *handle);
API cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *handle);
API cuStreamCreate(void **out, unsigned flags);
API cuStreamDestroy_v2(void *handle);
API cuStreamSynchronize(void *handle);
API cuGetErrorString(int number, const char **out);
API fake_cuda_live(void);

/* --- devices ------------------------------------------------------------------------------------------------------ */
static char archs[MOST_DEVICES][ARCH_SIZE];

static void read_devices(void)
{
    static char list[4 * MOST_DEVICES];
    const char *at = getenv("FAKE_HIP_DEVICES");
    int count = 0;

    list[0] = '\0';
    for (at = at == NULL ? "gfx942:sramecc+:xnack-" : at; *at != '\0' && count < MOST_DEVICES; count++) {
        const size_t length = strcspn(at, ",");
        snprintf(archs[count], ARCH_SIZE, "%.*s", (int)length, at);
        strcat(list, count == 0 ? "90" : ",90");
        at += length + (at[length] == ',');
    }
    fake.device_list = list;
}

API hipInit(unsigned flags)
{
    if (!fake.initialized)
        read_devices();
    return cuInit(flags);
}
API hipDriverGetVersion(int *version)
{
    *version = 60443484; /* 6.4 */
    return OK;
}
API hipGetDeviceCount(int *count)
{
    return cuDeviceGetCount(count);
}
API hipDeviceGet(int *out, int ordinal)
{
    return cuDeviceGet(out, ordinal);
}
API hipDeviceGetName(char *name, int size, int number)
{
    snprintf(name, (size_t)size, "stand-in %d", number);
    return OK;
}
API hipDeviceTotalMem(size_t *bytes, int number)
{
    return cuDeviceTotalMem_v2(bytes, number);
}

/* hipDeviceProp_t of ROCm 6. */
API hipGetDevicePropertiesR0600(void *properties, int number)
{
    uint8_t *p = properties;
    const size_t shared = 65536;
    const int processors = 4;

    ENTER(INITIALIZED);
    REFUSE_IF(number < 0 || number >= fake.device_count, INVALID_DEVICE);
    memset(p, 0xff, PROPERTIES);
    memcpy(p + 296, &shared, sizeof shared);
    memcpy(p + 388, &processors, sizeof processors);
    memcpy(p + 1160, archs[number], ARCH_SIZE);
    return fake_leave(OK);
}

API hipDevicePrimaryCtxRetain(void **context, int number)
{
    return cuDevicePrimaryCtxRetain(context, number);
}
API hipDevicePrimaryCtxRelease(int number)
{
    return cuDevicePrimaryCtxRelease_v2(number);
}
API hipCtxPushCurrent(void *context)
{
    return cuCtxPushCurrent_v2(context);
}
API hipCtxPopCurrent(void **context)
{
    return cuCtxPopCurrent_v2(context);
}
API hipDeviceSynchronize(void)
{
    return cuCtxSynchronize();
}

/* --- memory and streams ------------------------------------------------------------------------------------------- */
API hipMalloc(uint64_t *address, size_t bytes)
{
    return cuMemAlloc_v2(address, bytes);
}
API hipFree(uint64_t address)
{
    return cuMemFree_v2(address);
}
API hipMemcpyHtoDAsync(uint64_t to, const void *from, size_t bytes, void *handle)
{
    return cuMemcpyHtoDAsync_v2(to, from, bytes, handle);
}
API hipMemcpyDtoHAsync(void *to, uint64_t from, size_t bytes, void *handle)
{
    return cuMemcpyDtoHAsync_v2(to, from, bytes, handle);
}
API hipStreamCreateWithFlags(void **out, unsigned flags)
{
    return cuStreamCreate(out, flags);
}
API hipStreamDestroy(void *handle)
{
    return cuStreamDestroy_v2(handle);
}
API hipStreamSynchronize(void *handle)
{
    return cuStreamSynchronize(handle);
}

/* --- code objects ------------------------------------------------------------------------------------------------- */
typedef struct hip_function {
    struct hip_function *next;
    char name[128];
    uint32_t shared_bytes, argument_count;
} hip_function;
typedef struct hip_module {
    const uint8_t *image; /* a copy of no more than the headers' extent */
    size_t size;
    hip_function *functions;
} hip_module;

/* Its size as far as the sections reach: the caller doesn't tell how long a code object is. */
static size_t size_of(const uint8_t *image)
{
    Elf64_Ehdr head;
    memcpy(&head, image, sizeof head);
    if (memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_machine != MACHINE_AMDGPU)
        return 0;
    return head.e_shoff + (size_t)head.e_shnum * sizeof(Elf64_Shdr);
}

static Elf64_Shdr section(const hip_module *m, uint32_t index)
{
    Elf64_Ehdr head;
    Elf64_Shdr out;
    memcpy(&head, m->image, sizeof head);
    memcpy(&out, m->image + head.e_shoff + index * sizeof out, sizeof out);
    return out;
}

/* The 64 bytes of the kernel's descriptor: the symbol NAME.kd. */
static const uint8_t *find_descriptor(const hip_module *m, const char *name)
{
    Elf64_Ehdr head;
    char wanted[160];
    memcpy(&head, m->image, sizeof head);
    snprintf(wanted, sizeof wanted, "%s.kd", name);
    for (uint32_t i = 0; i < head.e_shnum; i++) {
        const Elf64_Shdr symbols = section(m, i);
        if (symbols.sh_type != SHT_DYNSYM)
            continue;
        const char *strings = (const char *)m->image + section(m, symbols.sh_link).sh_offset;
        for (size_t k = 0; k < symbols.sh_size / sizeof(Elf64_Sym); k++) {
            Elf64_Sym s;
            memcpy(&s, m->image + symbols.sh_offset + k * sizeof s, sizeof s);
            if (strcmp(strings + s.st_name, wanted) != 0)
                continue;
            const Elf64_Shdr home = section(m, s.st_shndx);
            return m->image + home.sh_offset + (s.st_value - home.sh_addr);
        }
    }
    return NULL;
}

API hipModuleLoadDataEx(void **out, const void *image, unsigned count, int *options, void **values)
{
    (void)options, (void)values;
    ENTER(CONTEXT);
    REFUSE_IF(count != 0, INVALID_VALUE);
    const size_t size = size_of(image);
    REFUSE_IF(size == 0, 200); /* hipErrorInvalidImage */
    hip_module *m = calloc(1, sizeof *m);
    uint8_t *copy = malloc(size);
    if (m == NULL || copy == NULL) {
        free(m);
        free(copy);
        return fake_leave(OUT_OF_MEMORY);
    }
    *m = (hip_module){ memcpy(copy, image, size), size, NULL };
    fake.live++;
    *out = m;
    return fake_leave(OK);
}

API hipModuleUnload(void *handle)
{
    hip_module *m = handle;
    ENTER(FREEING);
    while (m->functions != NULL) {
        hip_function *next = m->functions->next;
        free(m->functions);
        m->functions = next;
    }
    free((void *)(uintptr_t)m->image);
    free(m);
    fake.live--;
    return fake_leave(OK);
}

API hipModuleGetFunction(void **out, void *handle, const char *name)
{
    hip_module *m = handle;
    ENTER(CONTEXT);
    const uint8_t *descriptor = find_descriptor(m, name);
    REFUSE_IF(descriptor == NULL, NOT_FOUND);
    hip_function *f = calloc(1, sizeof *f);
    uint32_t kernarg;
    REFUSE_IF(f == NULL, OUT_OF_MEMORY);
    memcpy(&f->shared_bytes, descriptor, sizeof f->shared_bytes);
    memcpy(&kernarg, descriptor + 8, sizeof kernarg);
    f->argument_count = kernarg / 8;
    snprintf(f->name, sizeof f->name, "%s", name);
    f->next = m->functions;
    m->functions = f;
    *out = f;
    return fake_leave(OK);
}

/* --- launches ----------------------------------------------------------------------------------------------------- */
static fake_hip_kernel on_launch;
static void *on_launch_user;

__attribute__((visibility("default"))) void fake_hip_on_launch(fake_hip_kernel kernel, void *user)
{
    on_launch = kernel;
    on_launch_user = user;
}

static void *host(uint64_t address, size_t bytes)
{
    return ptx_memory_host(fake_current()->memory, address, bytes);
}

API hipModuleLaunchKernel(void *function_handle, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                          unsigned bz, unsigned shared, void *handle, void **arguments, void **extra)
{
    const hip_function *f = function_handle;
    uint64_t values[MOST_ARGUMENTS];
    const int waited = cuStreamSynchronize(handle); /* the work before it */
    if (waited != OK)
        return waited;
    ENTER(CONTEXT);
    REFUSE_IF(extra != NULL || arguments == NULL || f->argument_count > MOST_ARGUMENTS, INVALID_VALUE);
    REFUSE_IF(gx == 0 || gy == 0 || gz == 0 || bx == 0 || by == 0 || bz == 0, INVALID_VALUE);
    REFUSE_IF((uint64_t)bx * by * bz > 1024 || shared + f->shared_bytes > 65536, INVALID_VALUE);
    for (uint32_t i = 0; i < f->argument_count; i++)
        memcpy(&values[i], arguments[i], sizeof *values);
    const fake_hip_launch launch = { f->name,           { gx, gy, gz }, { bx, by, bz }, f->shared_bytes,
                                     f->argument_count, values,         handle,         host };
    if (on_launch != NULL)
        on_launch(on_launch_user, &launch);
    return fake_leave(OK);
}

/* --- errors ------------------------------------------------------------------------------------------------------- */
API hipDrvGetErrorName(int number, const char **out)
{
    static const struct {
        int code;
        const char *name;
    } rows[] = {
        { OK, "hipSuccess" },
        { INVALID_VALUE, "hipErrorInvalidValue" },
        { OUT_OF_MEMORY, "hipErrorOutOfMemory" },
        { NO_DEVICE, "hipErrorNoDevice" },
        { 200, "hipErrorInvalidImage" },
        { INVALID_HANDLE, "hipErrorInvalidHandle" },
        { NOT_FOUND, "hipErrorNotFound" },
    };
    *out = NULL;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].code == number)
            *out = rows[i].name;
    return *out == NULL ? INVALID_VALUE : OK;
}
API hipDrvGetErrorString(int number, const char **out)
{
    return cuGetErrorString(number, out);
}
API fake_hip_live(void)
{
    return fake_cuda_live();
}
