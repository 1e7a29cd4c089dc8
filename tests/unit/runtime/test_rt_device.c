/* SPDX-License-Identifier: Apache-2.0 */
/* test_rt_device.c - devices through the CUDA driver API, on the fake driver: devices, memory, streams, code, launches;
 * and every function of the driver failing once. */
#define _GNU_SOURCE
#include <check.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/device/device.h"
#include "tests/support/require.h"
#include "tests/unit/runtime/rt_sample.h"

/* add: out[i] = in[i] + n of i < count, in blocks of 64; wild: stores to address 64. */
static const char code_text[] =
    ".version 7.1\n.target sm_80\n.address_size 64\n"
    ".visible .entry add(.param .u64 o, .param .u64 a, .param .u32 n, .param .u32 count)\n.reqntid 64\n{\n"
    ".reg .pred %p; .reg .b32 %r<9>; .reg .b64 %d<5>;\n"
    "ld.param.u64 %d1, [o]; ld.param.u64 %d2, [a]; ld.param.u32 %r1, [n]; ld.param.u32 %r2, [count];\n"
    "mov.u32 %r3, %ctaid.x; mov.u32 %r4, %tid.x; mad.lo.u32 %r3, %r3, 64, %r4; setp.ge.u32 %p, %r3, %r2; @%p ret;\n"
    "mad.wide.u32 %d1, %r3, 4, %d1; mad.wide.u32 %d2, %r3, 4, %d2; ld.global.u32 %r5, [%d2]; add.u32 %r5, %r5, %r1;\n"
    "st.global.u32 [%d1], %r5; ret;\n}\n"
    ".visible .entry wild()\n{\n.reg .b64 %d<3>;\nmov.u64 %d1, 64; st.global.u32 [%d1], 1; ret;\n}\n";
static const char *const names[] = { "add", "wild" };

static const opjit_allocator *const heap = &opjit_rt_default_allocator;
static opjit_error error;

static void good(opjit_status status)
{
    ck_assert_msg(status == OPJIT_OK, "%s", error.message);
}
static void bad(opjit_status status, opjit_status expected, const char *message)
{
    ck_assert_msg(status == expected && strstr(error.message, message) != NULL, "%d, %s\nand not %d, %s", status,
                  error.message, expected, message);
    if (status != OPJIT_OUT_OF_MEMORY)
        test_require_place(&error);
}

static const rt_devices *dev(void)
{
    const rt_devices *devices;
    good(opjit_rt_devices(&devices, &error));
    return devices;
}

static opjit_status load(rt_device *device, const char *code, const char *const *entries, uint32_t count,
                         rt_device_code **out, opjit_error *e)
{
    const rt_device_text text = { code, strlen(code) + 1, entries, count };
    return dev()->load(device, &text, out, e);
}
/* Makes several launches with the same arguments, without a workspace. */
static opjit_status launch(rt_device_code *code, void *stream, const rt_launch *l, uint32_t count, void **arguments,
                           opjit_error *e)
{
    const rt_launches all = { l, count, arguments, NULL, 0 };
    return dev()->launch(code, stream, &all, e);
}

static const char *driver_path(void)
{
    const char *path = getenv("OPJIT_TEST_CUDA");
    ck_assert_ptr_nonnull(path);
    return path;
}

static int live(void)
{
    int (*count)(void);
    void *library = dlopen(driver_path(), RTLD_NOW | RTLD_NOLOAD), *symbol = dlsym(library, "fake_cuda_live");
    memcpy(&count, &symbol, sizeof count);
    return count();
}

static rt_device *opened(void)
{
    rt_driver *driver;
    rt_device *device;
    good(dev()->driver_open(heap, "cuda", driver_path(), &driver, &error));
    good(dev()->open(driver, "cuda", &device, &error));
    dev()->driver_close(driver);
    return device;
}

/* --- what is there ----------------------------------------------------------------------------------------------- */
START_TEST(devices_are_listed)
{
    rt_driver *driver;
    rt_device *device;
    rt_device_info info;

    setenv("FAKE_CUDA_DEVICES", "80,120", 1);
    setenv("OPJIT_CUDA_DRIVER", driver_path(), 1);
    good(dev()->driver_open(heap, "cuda", NULL, &driver, &error));
    ck_assert_uint_eq(dev()->driver_devices(driver), 2);
    ck_assert_uint_eq(dev()->driver_version(driver), 13000);
    good(dev()->driver_info(driver, 1, &info, &error));
    ck_assert_str_eq(info.name, "PTX interpreter sm_120");
    ck_assert_str_eq(info.arch, "sm_120");
    ck_assert(info.processors == 4 && info.shared_bytes == 166912 && info.memory_bytes == 1 << 30);
    bad(dev()->driver_info(driver, 2, &info, &error), OPJIT_UNAVAILABLE, "device cuda:2: there are 2");
    good(dev()->open(driver, "cuda:1", &device, &error));
    ck_assert_str_eq(dev()->info(device)->arch, "sm_120");
    ck_assert_str_eq(dev()->name(device), "cuda:1");
    dev()->close(device);
    bad(dev()->open(driver, "cuda:2", &device, &error), OPJIT_UNAVAILABLE, "device cuda:2: there are 2");
    ck_assert_ptr_null(device);
    for (const char *const *name = (const char *const[]){ "", "cud", "cuda:", "cuda:x", "cuda:0x", "cuda:-1", "cuda0",
                                                          "cuda:99999999999", "hip0", NULL };
         *name != NULL; name++)
        bad(dev()->open(driver, *name, &device, &error), OPJIT_INVALID_ARGUMENT, "allowed: cuda, cuda:0");
    dev()->driver_close(driver);
    ck_assert_int_eq(live(), 0);
}
END_TEST

START_TEST(absent_drivers_say_why)
{
    rt_driver *driver;

    bad(dev()->driver_open(heap, "cuda", "libcuda.so.1", &driver, &error), OPJIT_UNAVAILABLE,
        "CUDA driver 'libcuda.so.1': must be an absolute path");
    bad(dev()->driver_open(heap, "cuda", "/nowhere/libcuda.so.1", &driver, &error), OPJIT_UNAVAILABLE,
        "/nowhere/libcuda.so.1: cannot open shared object file");
    ck_assert_ptr_null(driver);
    setenv("OPJIT_CUDA_DRIVER", "nowhere", 1);
    bad(dev()->driver_open(heap, "cuda", NULL, &driver, &error), OPJIT_UNAVAILABLE,
        "'nowhere': must be an absolute path");
    setenv("FAKE_CUDA_DEVICES", "", 1);
    bad(dev()->driver_open(heap, "cuda", driver_path(), &driver, &error), OPJIT_UNAVAILABLE,
        "cuInit: CUDA_ERROR_NO_DEVICE, no CUDA-capable device is detected");
    Dl_info libc;
    ck_assert_int_ne(dladdr(dlsym(RTLD_DEFAULT, "malloc"), &libc), 0);
    bad(dev()->driver_open(heap, "cuda", libc.dli_fname, &driver, &error), OPJIT_UNAVAILABLE, ": it has no cuInit");
}
END_TEST

/* --- memory and launches ----------------------------------------------------------------------------------------- */
START_TEST(launches_in_order)
{
    rt_device *device = opened();
    rt_device_code *code, *again;
    uint32_t in[1000], out[1000], n = 5, count = 1000;
    uint64_t a, b;
    void *stream;

    for (uint32_t i = 0; i < 1000; i++)
        in[i] = i;
    good(load(device, code_text, names, 2, &code, &error));
    good(load(device, code_text, names, 2, &again, &error));
    ck_assert_ptr_eq(code, again);
    dev()->unload(again);
    good(dev()->allocate(device, sizeof in, &a, &error));
    good(dev()->allocate(device, sizeof in, &b, &error));
    for (int k = 0; k < 2; k++) {
        stream = NULL;
        if (k == 1)
            good(dev()->stream_create(device, &stream, &error));
        good(dev()->write(device, stream, a, in, sizeof in, &error));
        void *there[] = { &b, &a, &n, &count }, *back[] = { &a, &b, &n, &count }, *self[] = { &b, &b, &n, &count };
        const rt_launch l[] = { { 0, { 16, 1, 1 }, { 64, 1, 1 } }, { 0, { 16, 1, 1 }, { 64, 1, 1 } } };
        good(launch(code, stream, l, 1, there, &error));
        good(launch(code, stream, l, 1, back, &error));
        good(launch(code, stream, l, 1, there, &error));
        good(launch(code, stream, l, 2, self, &error));
        good(dev()->stream_wait(device, stream, &error));
        good(dev()->read(device, stream, out, b, sizeof out, &error));
        for (uint32_t i = 0; i < 1000; i++)
            ck_assert_uint_eq(out[i], i + 25);
        dev()->stream_destroy(device, stream);
    }
    dev()->free(device, a);
    dev()->free(device, b);
    dev()->free(device, 0);
    dev()->unload(code);
    dev()->unload(NULL);
    dev()->close(device);
    dev()->close(NULL);
    ck_assert_int_eq(live(), 0);
}
END_TEST

START_TEST(refused_launches_and_memory)
{
    rt_device *device = opened();
    rt_device_code *code;
    uint32_t host[16] = { 0 }, n = 5, count = 16;
    uint64_t a;

    good(load(device, code_text, names, 2, &code, &error));
    good(dev()->allocate(device, 64, &a, &error));
    void *arguments[] = { &a, &a, &n, &count };
    rt_launch l = { 0, { 1, 1, 1 }, { 32, 1, 1 } };
    bad(launch(code, NULL, &l, 1, arguments, &error), OPJIT_INTERNAL,
        "stage 0 of 1: cuda:0: cuLaunchKernel: CUDA_ERROR_INVALID_VALUE, invalid argument");
    l.entry = 2;
    bad(launch(code, NULL, &l, 1, arguments, &error), OPJIT_INVALID_ARGUMENT, "entry 2 of 2");
    bad(dev()->allocate(device, UINT64_C(1) << 31, &a, &error), OPJIT_OUT_OF_MEMORY,
        "cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY");
    ck_assert_uint_eq(a, 0);
    good(dev()->allocate(device, 64, &a, &error));
    bad(dev()->write(device, NULL, a, host, 65, &error), OPJIT_INTERNAL, "cuMemcpyHtoDAsync_v2");
    bad(dev()->write(device, NULL, (uintptr_t)host, host, 4, &error), OPJIT_INTERNAL, "cuMemcpyHtoDAsync_v2");
    bad(dev()->read(device, NULL, (void *)(uintptr_t)a, a, 4, &error), OPJIT_INTERNAL, "cuMemcpyDtoHAsync_v2");
    dev()->unload(code);
    dev()->close(device);
}
END_TEST

START_TEST(a_kernel_that_goes_wrong_is_told)
{
    rt_device *device = opened();
    rt_device_code *code;
    uint64_t a;
    const rt_launch l = { 1, { 1, 1, 1 }, { 1, 1, 1 } };

    good(load(device, code_text, names, 2, &code, &error));
    good(launch(code, NULL, &l, 1, NULL, &error)); /* the failure is not known yet */
    bad(dev()->stream_wait(device, NULL, &error), OPJIT_INTERNAL,
        "cuda:0: cuStreamSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS, line ");
    ck_assert_ptr_nonnull(strstr(error.message, "st.global.u32 [%d1], 1"));
    bad(dev()->allocate(device, 64, &a, &error), OPJIT_INTERNAL, "cuMemAlloc_v2: CUDA_ERROR_ILLEGAL_ADDRESS");
    dev()->unload(code);
    dev()->close(device);
    ck_assert_int_eq(live(), 0);
}
END_TEST

START_TEST(code_that_the_driver_refuses)
{
    rt_device *device = opened();
    rt_device_code *code;

    bad(load(device, ".version 7.1\n.target sm_80\n.address_size 64\n.entry k() { nonsense; }", NULL, 0, &code, &error),
        OPJIT_CODEGEN, "cuda:0: the driver refuses the code: ptxas: line 4: unknown instruction 'nonsense'");
    ck_assert_ptr_null(strstr(error.message, "fatal"));
    ck_assert_ptr_null(code);
    bad(load(device, ".version 7.1\n.target sm_120\n.address_size 64\n", NULL, 0, &code, &error), OPJIT_CODEGEN,
        "CUDA_ERROR_NO_BINARY_FOR_GPU");
    bad(load(device, code_text, (const char *const[]){ "add", "gone" }, 2, &code, &error), OPJIT_INTERNAL,
        "entry gone: cuda:0: cuModuleGetFunction: CUDA_ERROR_NOT_FOUND, named symbol not found");
    setenv("FAKE_CUDA_VERSION", "11040", 1);
    bad(load(device, ".version 8.0\n.target sm_80\n.address_size 64\n", NULL, 0, &code, &error), OPJIT_CODEGEN,
        "CUDA_ERROR_UNSUPPORTED_PTX_VERSION");
    dev()->close(device);
    ck_assert_int_eq(live(), 0);
}
END_TEST

/* --- failures ---------------------------------------------------------------------------------------------------- */
/* Everything that a user of devices does; stops at the first failure, and releases everything. */
static opjit_status whole_life(const opjit_allocator *allocator)
{
    rt_driver *driver = NULL;
    rt_device *device = NULL;
    rt_device_code *code = NULL;
    uint64_t a = 0;
    void *stream = NULL;
    uint32_t host[16] = { 1 }, n = 5, count = 16;
    opjit_status status = dev()->driver_open(allocator, "cuda", driver_path(), &driver, &error);

    if (status == OPJIT_OK)
        status = dev()->open(driver, "cuda:0", &device, &error);
    if (status == OPJIT_OK)
        status = load(device, code_text, names, 2, &code, &error);
    if (status == OPJIT_OK)
        status = dev()->allocate(device, 64, &a, &error);
    if (status == OPJIT_OK)
        status = dev()->stream_create(device, &stream, &error);
    if (status == OPJIT_OK)
        status = dev()->write(device, stream, a, host, 64, &error);
    uint64_t workspace = 0;
    const rt_launch l = { 0, { 1, 1, 1 }, { 64, 1, 1 } };
    const rt_launches launches = { &l, 1, (void *[]){ &workspace, &a, &n, &count }, &workspace, 128 };
    if (status == OPJIT_OK)
        status = dev()->launch(code, stream, &launches, &error);
    if (status == OPJIT_OK)
        status = dev()->read(device, stream, host, a, 64, &error);
    if (device != NULL) {
        dev()->stream_destroy(device, stream);
        dev()->free(device, a);
        dev()->unload(code);
    }
    dev()->close(device);
    dev()->driver_close(driver);
    return status;
}

START_TEST(every_function_fails_once)
{
    static const char *const functions[] = {
        "cuInit",
        "cuDriverGetVersion",
        "cuDeviceGetCount",
        "cuDeviceGet",
        "cuDeviceGetName",
        "cuDeviceTotalMem_v2",
        "cuDeviceGetAttribute",
        "cuDevicePrimaryCtxRetain",
        "cuCtxPushCurrent_v2",
        "cuMemAlloc_v2",
        "cuMemcpyHtoDAsync_v2",
        "cuMemcpyDtoHAsync_v2",
        "cuStreamCreate",
        "cuStreamSynchronize",
        "cuModuleLoadDataEx",
        "cuModuleGetFunction",
        "cuLaunchKernel",
    };
    char fail[96];

    good(whole_life(heap));
    ck_assert_int_eq(live(), 0);
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        snprintf(fail, sizeof fail, "%s:999", functions[i]);
        setenv("FAKE_CUDA_FAIL", fail, 1);
        snprintf(fail, sizeof fail, "%s: error 999", functions[i]);
        bad(whole_life(heap), OPJIT_UNAVAILABLE, fail);
        ck_assert_str_eq(error.field, functions[i]);
        ck_assert_str_eq(error.value, "999");
        ck_assert_int_eq(error.retry, OPJIT_RETRY_NEVER);
        if (strcmp(functions[i], "cuCtxPushCurrent_v2") != 0)
            ck_assert_msg(live() == 0, "%s: %d are left", functions[i], live());
    }
}
END_TEST

/* What may pass by itself: memory of the device, another program that has it. */
START_TEST(retries)
{
    static const struct {
        const char *fail;
        opjit_status status;
        opjit_retry retry;
    } rows[] = {
        { "cuMemAlloc_v2:2", OPJIT_OUT_OF_MEMORY, OPJIT_RETRY_LATER },
        { "cuDevicePrimaryCtxRetain:46", OPJIT_UNAVAILABLE, OPJIT_RETRY_LATER },
        { "cuInit:802", OPJIT_UNAVAILABLE, OPJIT_RETRY_LATER },
        { "cuInit:100", OPJIT_UNAVAILABLE, OPJIT_RETRY_NEVER },
        { "cuModuleLoadDataEx:218", OPJIT_CODEGEN, OPJIT_RETRY_NEVER },
        { "cuLaunchKernel:1", OPJIT_INTERNAL, OPJIT_RETRY_NEVER },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        setenv("FAKE_CUDA_FAIL", rows[i].fail, 1);
        ck_assert_msg(whole_life(heap) == rows[i].status, "%s: %s", rows[i].fail, error.message);
        ck_assert_msg(error.retry == rows[i].retry, "%s: retry %d", rows[i].fail, (int)error.retry);
        test_require_place(&error);
    }
    unsetenv("FAKE_CUDA_FAIL");
}
END_TEST

START_TEST(without_memory)
{
    opjit_status status = OPJIT_OUT_OF_MEMORY;
    int fail_at = 1;

    good(whole_life(heap));
    for (; status != OPJIT_OK; fail_at++) {
        counting c;
        const opjit_allocator a = counting_allocator(&c, fail_at);
        status = whole_life(&a);
        ck_assert(status == OPJIT_OK || (status == OPJIT_OUT_OF_MEMORY && error.status == status));
        ck_assert_int_eq(c.live, 0);
        ck_assert_int_eq(c.bytes, 0);
        ck_assert_int_eq(live(), 0);
    }
    ck_assert_int_gt(fail_at, 4); /* driver, device, text, code */
}
END_TEST

static void *many_lives(void *user)
{
    rt_device *device = user;
    uint32_t host[16] = { 0 }, n = 1, count = 16;

    for (int i = 0; i < 50; i++) {
        rt_device_code *code;
        opjit_error e;
        uint64_t a;
        void *stream;
        ck_assert_int_eq(load(device, code_text, names, 2, &code, &e), OPJIT_OK);
        ck_assert_int_eq(dev()->allocate(device, 64, &a, &e), OPJIT_OK);
        ck_assert_int_eq(dev()->stream_create(device, &stream, &e), OPJIT_OK);
        const rt_launch l = { 0, { 1, 1, 1 }, { 64, 1, 1 } };
        memset(host, 0, sizeof host);
        ck_assert_int_eq(dev()->write(device, stream, a, host, 64, &e), OPJIT_OK);
        ck_assert_int_eq(launch(code, stream, &l, 1, (void *[]){ &a, &a, &n, &count }, &e), OPJIT_OK);
        ck_assert_int_eq(dev()->read(device, stream, host, a, 64, &e), OPJIT_OK);
        ck_assert_uint_eq(host[15], 1);
        dev()->stream_destroy(device, stream);
        dev()->free(device, a);
        dev()->unload(code);
    }
    return NULL;
}

START_TEST(many_threads)
{
    rt_device *device = opened();
    pthread_t threads[4];

    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, many_lives, device), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    dev()->close(device);
    ck_assert_int_eq(live(), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("rt.device");
    TCase *cases = tcase_create("device");
    tcase_add_test(cases, devices_are_listed);
    tcase_add_test(cases, absent_drivers_say_why);
    tcase_add_test(cases, launches_in_order);
    tcase_add_test(cases, refused_launches_and_memory);
    tcase_add_test(cases, a_kernel_that_goes_wrong_is_told);
    tcase_add_test(cases, code_that_the_driver_refuses);
    tcase_add_test(cases, every_function_fails_once);
    tcase_add_test(cases, retries);
    tcase_add_test(cases, without_memory);
    tcase_add_test(cases, many_threads);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failures = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
