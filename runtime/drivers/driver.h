/* SPDX-License-Identifier: Apache-2.0 */
/* driver.h - what drivers differ in: names, numbers, and how a device describes itself.  For the files of this folder.
 * HIP follows CUDA's driver API: at the machine-code level functions take the same parameters, and errors have the
 * same numbers. */
#ifndef OPJIT_RUNTIME_DRIVERS_DRIVER_H
#define OPJIT_RUNTIME_DRIVERS_DRIVER_H

#include <pthread.h>

#include "runtime/device/device.h"

/* Each function once: our name, CUDA's, HIP's ("": it has none), parameters. */
#define RT_DRIVER_FUNCTIONS(F)                                                                                     \
    F(init, "cuInit", "hipInit", (unsigned))                                                                       \
    F(version, "cuDriverGetVersion", "hipDriverGetVersion", (int *))                                               \
    F(error_name, "cuGetErrorName", "hipDrvGetErrorName", (int, const char **))                                    \
    F(error_words, "cuGetErrorString", "hipDrvGetErrorString", (int, const char **))                               \
    F(device_count, "cuDeviceGetCount", "hipGetDeviceCount", (int *))                                              \
    F(device_get, "cuDeviceGet", "hipDeviceGet", (int *, int))                                                     \
    F(device_name, "cuDeviceGetName", "hipDeviceGetName", (char *, int, int))                                      \
    F(device_memory, "cuDeviceTotalMem_v2", "hipDeviceTotalMem", (size_t *, int))                                  \
    F(device_attribute, "cuDeviceGetAttribute", "", (int *, int, int))                                             \
    F(device_properties, "", "hipGetDevicePropertiesR0600", (void *, int))                                         \
    F(context_retain, "cuDevicePrimaryCtxRetain", "hipDevicePrimaryCtxRetain", (void **, int))                     \
    F(context_release, "cuDevicePrimaryCtxRelease_v2", "hipDevicePrimaryCtxRelease", (int))                        \
    F(context_push, "cuCtxPushCurrent_v2", "hipCtxPushCurrent", (void *))                                          \
    F(context_pop, "cuCtxPopCurrent_v2", "hipCtxPopCurrent", (void **))                                            \
    F(context_wait, "cuCtxSynchronize", "hipDeviceSynchronize", (void))                                            \
    F(allocate, "cuMemAlloc_v2", "hipMalloc", (uint64_t *, size_t))                                                \
    F(free, "cuMemFree_v2", "hipFree", (uint64_t))                                                                 \
    F(write, "cuMemcpyHtoDAsync_v2", "hipMemcpyHtoDAsync", (uint64_t, const void *, size_t, void *))               \
    F(read, "cuMemcpyDtoHAsync_v2", "hipMemcpyDtoHAsync", (void *, uint64_t, size_t, void *))                      \
    F(stream_create, "cuStreamCreate", "hipStreamCreateWithFlags", (void **, unsigned))                            \
    F(stream_destroy, "cuStreamDestroy_v2", "hipStreamDestroy", (void *))                                          \
    F(stream_wait, "cuStreamSynchronize", "hipStreamSynchronize", (void *))                                        \
    F(module_load, "cuModuleLoadDataEx", "hipModuleLoadDataEx", (void **, const void *, unsigned, int *, void **)) \
    F(module_unload, "cuModuleUnload", "hipModuleUnload", (void *))                                                \
    F(module_entry, "cuModuleGetFunction", "hipModuleGetFunction", (void **, void *, const char *))                \
    F(launch, "cuLaunchKernel", "hipModuleLaunchKernel",                                                           \
      (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **))

typedef struct rt_functions {
#define F(member, cuda, hip, parameters) int(*member) parameters;
    RT_DRIVER_FUNCTIONS(F)
#undef F
} rt_functions;

typedef struct rt_api rt_api;
struct rt_api {
    char word[8], title[8]; /* "cuda", as in device names; "CUDA", as in messages */
    char library[24];       /* the system's library; and its predecessor, or "" */
    char older[24];
    char variable[24]; /* environment variable with another path */
    const char *names; /* of rt_functions in order, NUL-separated */
    bool has_log;      /* the driver compiles, and logs its complaints */
    /* Asks for a device's architecture, number of processors and shared memory. */
    opjit_status (*ask)(const rt_api *api, const rt_functions *f, const char *who, int device, rt_device_info *out,
                        opjit_error *error);
};
extern const rt_api opjit_rt_cuda, opjit_rt_hip;

/* OK for 0, else "<who>: <function>: <the driver's name, and its words>". */
opjit_status opjit_rt_driver_check(const rt_api *api, const rt_functions *f, const char *who, size_t number, int code,
                                   opjit_error *error);
#define RT_FUNCTION(member) (offsetof(rt_functions, member) / sizeof(void (*)(void)))
#define RT_CHECK(api, f, who, member, arguments) \
    TRY(opjit_rt_driver_check(api, f, who, RT_FUNCTION(member), (f)->member arguments, error))
#define CHECK(d, member, arguments) RT_CHECK((d)->api, &(d)->f, (d)->name, member, arguments)
opjit_status opjit_rt_driver_status(int code); /* our status for the driver's, which is not 0 */

struct rt_driver {
    opjit_allocator allocator;
    const rt_api *api;
    rt_functions f;
    uint32_t devices, version;
};

/* Memory that the calls in one stream use one after the other. */
typedef struct rt_workspace {
    struct rt_workspace *next;
    void *stream;
    uint64_t address, bytes;
} rt_workspace;

struct rt_device {
    opjit_allocator allocator;
    const rt_api *api;
    rt_functions f;
    char name[16]; /* for messages */
    int number;
    void *context;
    rt_device_info info;
    pthread_mutex_t mutex; /* guards codes and their references */
    rt_device_code *codes;
    pthread_mutex_t working; /* guards workspaces; held while a call that uses one puts its launches */
    rt_workspace *workspaces;
};

struct rt_device_code {
    rt_device_code *next;
    rt_device *device;
    rt_hash hash; /* of the code and its names */
    uint32_t references, entry_count;
    void *module;
    void *entries[];
};

/* Makes the device's context the thread's current one, until leave. */
opjit_status opjit_rt_device_enter(const rt_device *d, opjit_error *error);
void opjit_rt_device_leave(const rt_device *d);

#endif
