/* SPDX-License-Identifier: Apache-2.0 */
/* grid_opencl.c - one launch on an OpenCL device that accepts SPIR-V.  Uses no OpenCL headers: the functions it calls
 * are declared here as in the specification. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "tests/machines/grid.h"
#include "tests/machines/opencl.h"

enum {
    DEVICE_TYPE_ALL = -1,
    DEVICE_NAME = 0x102b,
    DEVICE_SINGLE_FP_CONFIG = 0x101b,
    DEVICE_DOUBLE_FP_CONFIG = 0x1032,
    DEVICE_SVM_CAPABILITIES = 0x1053,
    DEVICE_IL_VERSION = 0x105b,
    PROGRAM_BUILD_LOG = 0x1183,
    FP_ALL = 7, /* denormals, infinity and NaN, round to nearest */
    MOST = 8,
};

/* OpenCL's handles are opaque pointers. */
#define FUNCTIONS(X)                                                                                                \
    X(int32_t, clGetPlatformIDs, (uint32_t, void **, uint32_t *))                                                   \
    X(int32_t, clGetDeviceIDs, (void *, uint64_t, uint32_t, void **, uint32_t *))                                   \
    X(int32_t, clGetDeviceInfo, (void *, uint32_t, size_t, void *, size_t *))                                       \
    X(void *, clCreateContext, (const intptr_t *, uint32_t, void *const *, void *, void *, int32_t *))              \
    X(void *, clCreateCommandQueueWithProperties, (void *, void *, const uint64_t *, int32_t *))                    \
    X(void *, clCreateProgramWithIL, (void *, const void *, size_t, int32_t *))                                     \
    X(int32_t, clBuildProgram, (void *, uint32_t, void *const *, const char *, void *, void *))                     \
    X(int32_t, clGetProgramBuildInfo, (void *, void *, uint32_t, size_t, void *, size_t *))                         \
    X(int32_t, clReleaseProgram, (void *))                                                                          \
    X(void *, clCreateKernel, (void *, const char *, int32_t *))                                                    \
    X(int32_t, clReleaseKernel, (void *))                                                                           \
    X(int32_t, clSetKernelArg, (void *, uint32_t, size_t, const void *))                                            \
    X(int32_t, clSetKernelArgSVMPointer, (void *, uint32_t, const void *))                                          \
    X(int32_t, clEnqueueNDRangeKernel,                                                                              \
      (void *, void *, uint32_t, const size_t *, const size_t *, const size_t *, uint32_t, void *const *, void **)) \
    X(int32_t, clFinish, (void *))                                                                                  \
    X(void *, clSVMAlloc, (void *, uint64_t, size_t, uint32_t))                                                     \
    X(void, clSVMFree, (void *, void *))                                                                            \
    X(int32_t, clEnqueueSVMMemcpy, (void *, uint32_t, void *, const void *, size_t, uint32_t, void *const *, void **))

typedef struct opencl {
#define MEMBER(result, name, arguments) result(*name) arguments;
    FUNCTIONS(MEMBER)
    void *device, *context, *queue;
} opencl;

/* --- the device --------------------------------------------------------------------------------------------------- */

static bool load(opencl *cl, char *why, size_t size)
{
    void *library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        snprintf(why, size, "no OpenCL: %s", dlerror());
        return false;
    }
#define FIND(result, name, arguments)                            \
    {                                                            \
        void *found = dlsym(library, #name);                     \
        if (found == NULL) {                                     \
            snprintf(why, size, "libOpenCL.so.1 has no " #name); \
            return false;                                        \
        }                                                        \
        memcpy(&cl->name, &found, sizeof found);                 \
    }
    FUNCTIONS(FIND)
    return true;
}

static bool is_good(const opencl *cl, void *device)
{
    char il[256] = "";
    uint64_t single = 0, whole = 0, svm = 0;
    cl->clGetDeviceInfo(device, DEVICE_IL_VERSION, sizeof il, il, NULL);
    cl->clGetDeviceInfo(device, DEVICE_SINGLE_FP_CONFIG, sizeof single, &single, NULL);
    cl->clGetDeviceInfo(device, DEVICE_DOUBLE_FP_CONFIG, sizeof whole, &whole, NULL);
    cl->clGetDeviceInfo(device, DEVICE_SVM_CAPABILITIES, sizeof svm, &svm, NULL);
    return strstr(il, "SPIR-V_1.2") != NULL && (single & FP_ALL) == FP_ALL && (whole & FP_ALL) == FP_ALL && svm != 0;
}

static bool find_device(opencl *cl)
{
    void *platforms[MOST], *devices[MOST];
    uint32_t platform_count = 0;
    if (cl->clGetPlatformIDs(MOST, platforms, &platform_count) != 0)
        return false;
    for (uint32_t p = 0; p < platform_count && p < MOST; p++) {
        uint32_t count = 0;
        if (cl->clGetDeviceIDs(platforms[p], (uint32_t)DEVICE_TYPE_ALL, MOST, devices, &count) != 0)
            continue;
        for (uint32_t d = 0; d < count && d < MOST; d++)
            if (is_good(cl, devices[d])) {
                cl->device = devices[d];
                return true;
            }
    }
    return false;
}

/* Opened by the first launch of a process. */
static opencl *open_opencl(char *why, size_t size)
{
    static opencl cl;
    int32_t failed = 0;
    if (cl.queue != NULL)
        return &cl;
    if (!load(&cl, why, size))
        return NULL;
    snprintf(why, size,
             "no OpenCL device here takes SPIR-V 1.2, keeps denormals, and has f64 and shared virtual memory");
    if (!find_device(&cl))
        return NULL;
    cl.context = cl.clCreateContext(NULL, 1, &cl.device, NULL, NULL, &failed);
    if (cl.context != NULL)
        cl.queue = cl.clCreateCommandQueueWithProperties(cl.context, cl.device, NULL, &failed);
    snprintf(why, size, "the OpenCL device gives error %d", (int)failed);
    return cl.queue != NULL ? &cl : NULL;
}

bool test_opencl_open(char *why, size_t size)
{
    return open_opencl(why, size) != NULL;
}

/* --- a launch ----------------------------------------------------------------------------------------------------- */

static opjit_status check(int32_t failed, const char *what, opjit_error *error)
{
    return failed == 0 ? OPJIT_OK : opjit_rt_error_set(error, OPJIT_INTERNAL, "%s gives error %d", what, (int)failed);
}

static opjit_status allocate(void *device, uint64_t bytes, uint64_t *out, opjit_error *error)
{
    const opencl *cl = device;
    void *memory = cl->clSVMAlloc(cl->context, 1, (size_t)bytes, 128);
    *out = (uint64_t)(uintptr_t)memory;
    return memory != NULL ? OPJIT_OK : opjit_rt_no_memory(error);
}

static void release(void *device, uint64_t base)
{
    const opencl *cl = device;
    cl->clSVMFree(cl->context, (void *)(uintptr_t)base);
}

static opjit_status copy(const opencl *cl, void *to, const void *from, uint64_t size, opjit_error *error)
{
    return check(cl->clEnqueueSVMMemcpy(cl->queue, 1, to, from, (size_t)size, 0, NULL, NULL), "clEnqueueSVMMemcpy",
                 error);
}

static opjit_status write(void *device, uint64_t base, const void *bytes, uint64_t size, opjit_error *error)
{
    return copy(device, (void *)(uintptr_t)base, bytes, size, error);
}

static opjit_status read(void *device, void *bytes, uint64_t base, uint64_t size, opjit_error *error)
{
    return copy(device, bytes, (const void *)(uintptr_t)base, size, error);
}

static opjit_status build(const opencl *cl, void *program, opjit_error *error)
{
    static char log[400];
    const int32_t failed = cl->clBuildProgram(program, 1, &cl->device, "", NULL, NULL);
    if (failed == 0)
        return OPJIT_OK;
    log[0] = '\0';
    cl->clGetProgramBuildInfo(program, cl->device, PROGRAM_BUILD_LOG, sizeof log, log, NULL);
    return opjit_rt_error_set(error, OPJIT_INTERNAL, "clBuildProgram gives error %d: %.300s", (int)failed, log);
}

static opjit_status run(const opencl *cl, void *kernel, const grid_launch *l, opjit_error *error)
{
    const size_t block = l->info.block, all = l->info.grid * block;
    uint64_t values[GRID_ARGUMENTS];
    void *pointers[GRID_ARGUMENTS];
    test_grid_arguments(l, values, pointers);
    for (uint32_t i = 0; i < l->count; i++)
        TRY(check(l->arguments[i].range != 0
                      ? cl->clSetKernelArgSVMPointer(kernel, i, (const void *)(uintptr_t)values[i])
                      : cl->clSetKernelArg(kernel, i, sizeof values[i], &values[i]),
                  "an argument", error));
    TRY(check(cl->clEnqueueNDRangeKernel(cl->queue, kernel, 1, NULL, &all, &block, 0, NULL, NULL), "the launch",
              error));
    return check(cl->clFinish(cl->queue), "clFinish", error);
}

static opjit_status launch(void *device, const grid_launch *l, opjit_error *error)
{
    const opencl *cl = device;
    int32_t failed = 0;
    void *program = cl->clCreateProgramWithIL(cl->context, l->s->code, l->s->size, &failed);
    if (program == NULL)
        return check(failed, "clCreateProgramWithIL", error);
    opjit_status status = build(cl, program, error);
    if (status == OPJIT_OK) {
        void *kernel = cl->clCreateKernel(program, l->s->name, &failed);
        status = check(failed, "clCreateKernel", error);
        if (status == OPJIT_OK)
            status = run(cl, kernel, l, error);
        if (kernel != NULL)
            cl->clReleaseKernel(kernel);
    }
    cl->clReleaseProgram(program);
    return status;
}

opjit_status test_grid_run_on_opencl(grid_launch *l, opjit_error *error)
{
    char why[256];
    grid_memory memory = { NULL, allocate, release, write, read, launch };
    memory.device = open_opencl(why, sizeof why);
    if (memory.device == NULL)
        return opjit_rt_error_set(error, OPJIT_INTERNAL, "%s", why);
    return test_grid_run_copied(&memory, l, error);
}
