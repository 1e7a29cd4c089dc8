/* test_rt_device.c - devices by the CUDA driver API, on the fake driver: what is there, memory, streams, code,
 * launches; and every function of the driver failing once. */
#define _GNU_SOURCE
#include <check.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/device.h"
#include "tests/unit/rt_sample.h"

/* add: out[i] = in[i] + n of i < count, in blocks of 64; wild: stores to address 64; sum: over dynamic shared
 * memory. */
static const char code_text[] =
    ".version 7.1\n.target sm_80\n.address_size 64\n.extern .shared .align 4 .b8 s[];\n"
    ".visible .entry add(.param .u64 o, .param .u64 a, .param .u32 n, .param .u32 count)\n.reqntid 64\n{\n"
    ".reg .pred %p; .reg .b32 %r<9>; .reg .b64 %d<5>;\n"
    "ld.param.u64 %d1, [o]; ld.param.u64 %d2, [a]; ld.param.u32 %r1, [n]; ld.param.u32 %r2, [count];\n"
    "mov.u32 %r3, %ctaid.x; mov.u32 %r4, %tid.x; mad.lo.u32 %r3, %r3, 64, %r4; setp.ge.u32 %p, %r3, %r2; @%p ret;\n"
    "mad.wide.u32 %d1, %r3, 4, %d1; mad.wide.u32 %d2, %r3, 4, %d2; ld.global.u32 %r5, [%d2]; add.u32 %r5, %r5, %r1;\n"
    "st.global.u32 [%d1], %r5; ret;\n}\n"
    ".visible .entry wild()\n{\n.reg .b64 %d<3>;\nmov.u64 %d1, 64; st.global.u32 [%d1], 1; ret;\n}\n"
    ".visible .entry last(.param .u64 o, .param .u32 at)\n{\n.reg .b32 %r<4>; .reg .b64 %d<5>;\nld.param.u64 %d1, [o]; ld.param.u32 %r1, [at];\n"
    "mov.u64 %d2, s; cvt.u64.u32 %d3, %r1; add.u64 %d2, %d2, %d3; st.shared.u32 [%d2], 77; ld.shared.u32 %r2, [%d2]; st.global.u32 [%d1], %r2; ret;\n}\n";
static const char *const names[] = { "add", "wild", "last" };

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
    good(opjit_rt_driver_open(heap, driver_path(), &driver, &error));
    good(opjit_rt_device_open(driver, "cuda", &device, &error));
    opjit_rt_driver_close(driver);
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
    good(opjit_rt_driver_open(heap, NULL, &driver, &error));
    ck_assert_uint_eq(opjit_rt_driver_devices(driver), 2);
    ck_assert_uint_eq(opjit_rt_driver_version(driver), 13000);
    good(opjit_rt_driver_info(driver, 1, &info, &error));
    ck_assert_str_eq(info.name, "PTX interpreter sm_120");
    ck_assert(info.major == 12 && info.minor == 0 && info.processors == 4 && info.shared_bytes == 166912 &&
              info.memory_bytes == 1 << 30);
    bad(opjit_rt_driver_info(driver, 2, &info, &error), OPJIT_UNAVAILABLE, "device cuda:2: there are 2");
    good(opjit_rt_device_open(driver, "cuda:1", &device, &error));
    ck_assert_uint_eq(opjit_rt_device_info(device)->major, 12);
    opjit_rt_device_close(device);
    bad(opjit_rt_device_open(driver, "cuda:2", &device, &error), OPJIT_UNAVAILABLE, "device cuda:2: there are 2");
    ck_assert_ptr_null(device);
    for (const char *const *name = (const char *const[]){ "", "cud", "cuda:", "cuda:x", "cuda:0x", "cuda:-1", "cuda0",
                                                          "cuda:99999999999", "hip:0", NULL };
         *name != NULL; name++)
        bad(opjit_rt_device_open(driver, *name, &device, &error), OPJIT_INVALID_ARGUMENT, "allowed: cuda, cuda:0");
    opjit_rt_driver_close(driver);
    ck_assert_int_eq(live(), 0);
}
END_TEST

START_TEST(absent_drivers_say_why)
{
    rt_driver *driver;

    bad(opjit_rt_driver_open(heap, "libcuda.so.1", &driver, &error), OPJIT_UNAVAILABLE,
        "CUDA driver 'libcuda.so.1': must be an absolute path");
    bad(opjit_rt_driver_open(heap, "/nowhere/libcuda.so.1", &driver, &error), OPJIT_UNAVAILABLE,
        "/nowhere/libcuda.so.1: cannot open shared object file");
    ck_assert_ptr_null(driver);
    setenv("OPJIT_CUDA_DRIVER", "nowhere", 1);
    bad(opjit_rt_driver_open(heap, NULL, &driver, &error), OPJIT_UNAVAILABLE, "'nowhere': must be an absolute path");
    setenv("FAKE_CUDA_DEVICES", "", 1);
    bad(opjit_rt_driver_open(heap, driver_path(), &driver, &error), OPJIT_UNAVAILABLE,
        "cuInit: CUDA_ERROR_NO_DEVICE, no CUDA-capable device is detected");
    Dl_info libc;
    ck_assert_int_ne(dladdr(dlsym(RTLD_DEFAULT, "malloc"), &libc), 0);
    bad(opjit_rt_driver_open(heap, libc.dli_fname, &driver, &error), OPJIT_UNAVAILABLE, ": it has no cuInit");
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
    good(opjit_rt_device_load(device, code_text, names, 3, &code, &error));
    good(opjit_rt_device_load(device, code_text, names, 3, &again, &error));
    ck_assert_ptr_eq(code, again);
    opjit_rt_device_unload(again);
    good(opjit_rt_device_allocate(device, sizeof in, &a, &error));
    good(opjit_rt_device_allocate(device, sizeof in, &b, &error));
    for (int k = 0; k < 2; k++) {
        stream = NULL;
        if (k == 1)
            good(opjit_rt_stream_create(device, &stream, &error));
        good(opjit_rt_device_write(device, stream, a, in, sizeof in, &error));
        good(opjit_rt_device_fill(device, stream, b, 0xff, sizeof in, &error));
        void *there[] = { &b, &a, &n, &count }, *back[] = { &a, &b, &n, &count };
        const rt_launch launches[] = {
            { 0, { 16, 1, 1 }, { 64, 1, 1 }, 0, there },
            { 0, { 16, 1, 1 }, { 64, 1, 1 }, 0, back },
            { 0, { 16, 1, 1 }, { 64, 1, 1 }, 0, there },
        };
        good(opjit_rt_device_launch(code, stream, launches, 3, &error));
        good(opjit_rt_stream_wait(device, stream, &error));
        good(opjit_rt_device_read(device, stream, out, b, sizeof out, &error));
        for (uint32_t i = 0; i < 1000; i++)
            ck_assert_uint_eq(out[i], i + 15);
        opjit_rt_stream_destroy(device, stream);
    }
    opjit_rt_device_free(device, a);
    opjit_rt_device_free(device, b);
    opjit_rt_device_free(device, 0);
    opjit_rt_device_unload(code);
    opjit_rt_device_unload(NULL);
    opjit_rt_device_close(device);
    opjit_rt_device_close(NULL);
    ck_assert_int_eq(live(), 0);
}
END_TEST

START_TEST(refused_launches_and_memory)
{
    rt_device *device = opened();
    rt_device_code *code;
    uint32_t host[16] = { 0 }, n = 5, count = 16, at = 65532;
    uint64_t a;

    good(opjit_rt_device_load(device, code_text, names, 3, &code, &error));
    good(opjit_rt_device_allocate(device, 64, &a, &error));
    void *arguments[] = { &a, &a, &n, &count };
    rt_launch l = { 0, { 1, 1, 1 }, { 32, 1, 1 }, 0, arguments };
    bad(opjit_rt_device_launch(code, NULL, &l, 1, &error), OPJIT_INTERNAL,
        "launch 0 of 1: cuda:0: cuLaunchKernel: CUDA_ERROR_INVALID_VALUE, invalid argument");
    l.entry = 3;
    bad(opjit_rt_device_launch(code, NULL, &l, 1, &error), OPJIT_INVALID_ARGUMENT, "entry 3 of 3");
    bad(opjit_rt_device_allocate(device, UINT64_C(1) << 31, &a, &error), OPJIT_OUT_OF_MEMORY,
        "cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY");
    ck_assert_uint_eq(a, 0);
    good(opjit_rt_device_allocate(device, 64, &a, &error));
    bad(opjit_rt_device_write(device, NULL, a, host, 65, &error), OPJIT_INTERNAL, "cuMemcpyHtoDAsync_v2");
    bad(opjit_rt_device_write(device, NULL, (uintptr_t)host, host, 4, &error), OPJIT_INTERNAL, "cuMemcpyHtoDAsync_v2");
    bad(opjit_rt_device_read(device, NULL, (void *)(uintptr_t)a, a, 4, &error), OPJIT_INTERNAL, "cuMemcpyDtoHAsync_v2");
    /* 64 KiB of shared memory are more than a kernel has unasked. */
    l = (rt_launch){ 2, { 1, 1, 1 }, { 1, 1, 1 }, 65536, (void *[]){ &a, &at } };
    good(opjit_rt_device_launch(code, NULL, &l, 1, &error));
    good(opjit_rt_device_read(device, NULL, host, a, 4, &error));
    ck_assert_uint_eq(host[0], 77);
    l.shared_bytes = 200000;
    bad(opjit_rt_device_launch(code, NULL, &l, 1, &error), OPJIT_INTERNAL,
        "cuFuncSetAttribute: CUDA_ERROR_INVALID_VALUE");
    opjit_rt_device_unload(code);
    opjit_rt_device_close(device);
}
END_TEST

START_TEST(a_kernel_that_goes_wrong_is_told)
{
    rt_device *device = opened();
    rt_device_code *code;
    uint64_t a;
    const rt_launch l = { 1, { 1, 1, 1 }, { 1, 1, 1 }, 0, NULL };

    good(opjit_rt_device_load(device, code_text, names, 3, &code, &error));
    good(opjit_rt_device_launch(code, NULL, &l, 1, &error)); /* nobody knows yet */
    bad(opjit_rt_stream_wait(device, NULL, &error), OPJIT_INTERNAL,
        "cuda:0: cuStreamSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS, line ");
    ck_assert_ptr_nonnull(strstr(error.message, "st.global.u32 [%d1], 1"));
    bad(opjit_rt_device_allocate(device, 64, &a, &error), OPJIT_INTERNAL, "cuMemAlloc_v2: CUDA_ERROR_ILLEGAL_ADDRESS");
    opjit_rt_device_unload(code);
    opjit_rt_device_close(device);
    ck_assert_int_eq(live(), 0);
}
END_TEST

START_TEST(code_that_the_driver_refuses)
{
    rt_device *device = opened();
    rt_device_code *code;

    bad(opjit_rt_device_load(device, ".version 7.1\n.target sm_80\n.address_size 64\n.entry k() { nonsense; }", NULL, 0,
                             &code, &error),
        OPJIT_CODEGEN, "cuda:0: the driver refuses the code: ptxas: line 4: unknown instruction 'nonsense'");
    ck_assert_ptr_null(strstr(error.message, "fatal"));
    ck_assert_ptr_null(code);
    bad(opjit_rt_device_load(device, ".version 7.1\n.target sm_120\n.address_size 64\n", NULL, 0, &code, &error),
        OPJIT_CODEGEN, "CUDA_ERROR_NO_BINARY_FOR_GPU");
    bad(opjit_rt_device_load(device, code_text, (const char *const[]){ "add", "gone" }, 2, &code, &error),
        OPJIT_INTERNAL, "entry gone: cuda:0: cuModuleGetFunction: CUDA_ERROR_NOT_FOUND, named symbol not found");
    setenv("FAKE_CUDA_VERSION", "11040", 1);
    bad(opjit_rt_device_load(device, ".version 8.0\n.target sm_80\n.address_size 64\n", NULL, 0, &code, &error),
        OPJIT_CODEGEN, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION");
    opjit_rt_device_close(device);
    ck_assert_int_eq(live(), 0);
}
END_TEST

/* --- failures ---------------------------------------------------------------------------------------------------- */
/* All that a user of devices does; stops at the first failure, and frees what there is. */
static opjit_status whole_life(const opjit_allocator *allocator)
{
    rt_driver *driver = NULL;
    rt_device *device = NULL;
    rt_device_code *code = NULL;
    uint64_t a = 0;
    void *stream = NULL;
    uint32_t host[16] = { 1 }, n = 5, count = 16;
    opjit_status status = opjit_rt_driver_open(allocator, driver_path(), &driver, &error);

    if (status == OPJIT_OK)
        status = opjit_rt_device_open(driver, "cuda:0", &device, &error);
    if (status == OPJIT_OK)
        status = opjit_rt_device_load(device, code_text, names, 3, &code, &error);
    if (status == OPJIT_OK)
        status = opjit_rt_device_allocate(device, 64, &a, &error);
    if (status == OPJIT_OK)
        status = opjit_rt_stream_create(device, &stream, &error);
    if (status == OPJIT_OK)
        status = opjit_rt_device_write(device, stream, a, host, 64, &error);
    if (status == OPJIT_OK)
        status = opjit_rt_device_fill(device, stream, a + 32, 0, 32, &error);
    const rt_launch launches[] = { { 0, { 1, 1, 1 }, { 64, 1, 1 }, 0, (void *[]){ &a, &a, &n, &count } },
                                   { 2, { 1, 1, 1 }, { 1, 1, 1 }, 65536, (void *[]){ &a, &n } } };
    n = 0;
    if (status == OPJIT_OK)
        status = opjit_rt_device_launch(code, stream, launches, 2, &error);
    if (status == OPJIT_OK)
        status = opjit_rt_device_read(device, stream, host, a, 64, &error);
    if (device != NULL) {
        opjit_rt_stream_destroy(device, stream);
        opjit_rt_device_free(device, a);
        opjit_rt_device_unload(code);
    }
    opjit_rt_device_close(device);
    opjit_rt_driver_close(driver);
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
        "cuMemsetD8Async",
        "cuStreamCreate",
        "cuStreamSynchronize",
        "cuModuleLoadDataEx",
        "cuModuleGetFunction",
        "cuFuncSetAttribute",
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
        if (strcmp(functions[i], "cuCtxPushCurrent_v2") != 0)
            ck_assert_msg(live() == 0, "%s: %d are left", functions[i], live());
    }
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
        ck_assert_int_eq(opjit_rt_device_load(device, code_text, names, 3, &code, &e), OPJIT_OK);
        ck_assert_int_eq(opjit_rt_device_allocate(device, 64, &a, &e), OPJIT_OK);
        ck_assert_int_eq(opjit_rt_stream_create(device, &stream, &e), OPJIT_OK);
        const rt_launch l = { 0, { 1, 1, 1 }, { 64, 1, 1 }, 0, (void *[]){ &a, &a, &n, &count } };
        ck_assert_int_eq(opjit_rt_device_fill(device, stream, a, 0, 64, &e), OPJIT_OK);
        ck_assert_int_eq(opjit_rt_device_launch(code, stream, &l, 1, &e), OPJIT_OK);
        ck_assert_int_eq(opjit_rt_device_read(device, stream, host, a, 64, &e), OPJIT_OK);
        ck_assert_uint_eq(host[15], 1);
        opjit_rt_stream_destroy(device, stream);
        opjit_rt_device_free(device, a);
        opjit_rt_device_unload(code);
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
    opjit_rt_device_close(device);
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
    tcase_add_test(cases, without_memory);
    tcase_add_test(cases, many_threads);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failures = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
