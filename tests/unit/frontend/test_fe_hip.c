/* SPDX-License-Identifier: Apache-2.0 */
/* test_fe_hip.c - kernels on AMD's GPUs through the public interface, on the fake HIP driver: which devices there are,
 * what is launched with which arguments, the results of a function that stands in for the kernel, and messages of
 * refusals.  What code objects hold is tested by fe.hsaco. */
#define _GNU_SOURCE
#include <check.h>
#include <dlfcn.h>
#include <opjit/device.h>
#include <opjit/opjit.h>
#include <stdlib.h>
#include <string.h>

#include "tests/machines/fake_hip.h"
#include "tests/support/checker.h"
#include "tests/support/require.h"

enum { ROWS = 2, COLUMNS = 13000, SIZE = ROWS * COLUMNS, BYTES = SIZE * 4 };

static opjit_error error;

static void good(opjit_status status)
{
    ck_assert_msg(status == OPJIT_OK, "%s", error.message);
}
static void bad(opjit_status status, opjit_status expected, const char *part)
{
    ck_assert_msg(status == expected && strstr(error.message, part) != NULL, "%s, %s\nand not %s, %s",
                  opjit_status_name(status), error.message, opjit_status_name(expected), part);
    if (status != OPJIT_OUT_OF_MEMORY)
        test_require_place(&error);
}

static void *find(const char *name)
{
    void *library = dlopen(getenv("OPJIT_TEST_HIP"), RTLD_NOW | RTLD_LOCAL);
    void *symbol = library == NULL ? NULL : dlsym(library, name);
    ck_assert_ptr_nonnull(symbol);
    return symbol;
}
static int live(void)
{
    void *symbol = find("fake_hip_live");
    int (*count)(void);
    memcpy(&count, &symbol, sizeof count);
    return count();
}
static void stand_in(fake_hip_kernel kernel, void *user)
{
    void *symbol = find("fake_hip_on_launch");
    fake_hip_on_launch_fn set;
    memcpy(&set, &symbol, sizeof set);
    set(kernel, user);
}

static opjit_status open_context(const char *device, const char *target, opjit_context **out)
{
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
    options.device = device;
    options.device_driver = getenv("OPJIT_TEST_HIP");
    options.target = target;
    return opjit_context_create(&options, out, &error);
}

static opjit_kernel *compile(opjit_context *context, bool softmax)
{
    static const uint32_t sizes[] = { ROWS, COLUMNS }, axes[] = { 1 };
    DML_BUFFER_TENSOR_DESC buffer = { DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_FLAG_NONE, 2, sizes, NULL, 0, 0 };
    const DML_TENSOR_DESC t = { DML_TENSOR_TYPE_BUFFER, &buffer };
    const DML_ELEMENT_WISE_ADD_OPERATOR_DESC sum = { &t, &t, &t };
    const DML_ACTIVATION_SOFTMAX1_OPERATOR_DESC rows = { &t, &t, 1, axes };
    const DML_OPERATOR_DESC desc = softmax ? (DML_OPERATOR_DESC){ DML_OPERATOR_ACTIVATION_SOFTMAX1, &rows }
                                           : (DML_OPERATOR_DESC){ DML_OPERATOR_ELEMENT_WISE_ADD, &sum };
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_operator *op;
    opjit_kernel *kernel;
    options.name = "mine";
    good(opjit_operator_create(context, &desc, &op, &error));
    good(opjit_compile_operator(context, op, &options, &kernel, &error));
    opjit_operator_release(op);
    return kernel;
}

/* --- devices ------------------------------------------------------------------------------------------------------ */
START_TEST(devices)
{
    opjit_context *context;
    setenv("FAKE_HIP_DEVICES", "gfx942:sramecc+:xnack-,gfx1100,gfx906", 1);
    good(open_context("hip", NULL, &context));
    ck_assert_str_eq(opjit_context_target(context), "amdgpu:gfx942");
    opjit_context_destroy(context);
    good(open_context("hip:1", NULL, &context));
    ck_assert_str_eq(opjit_context_target(context), "amdgpu:gfx1100");
    opjit_context_destroy(context);
    bad(open_context("hip:2", NULL, &context), OPJIT_UNSUPPORTED,
        "device hip:2: gfx906 is an architecture that opjit makes no code for");
    bad(open_context("hip:3", NULL, &context), OPJIT_UNAVAILABLE, "device hip:3: there are 3");
    bad(open_context("hip:0", "amdgpu:gfx90a", &context), OPJIT_UNSUPPORTED,
        "target amdgpu:gfx90a is not for device hip:0, which runs amdgpu:gfx942"); /* it runs only its own code */
    bad(open_context("hip:0", "nvptx:sm_80", &context), OPJIT_UNSUPPORTED,
        "target nvptx:sm_80 is not for device hip:0");
    bad(open_context("rocm:0", NULL, &context), OPJIT_INVALID_ARGUMENT,
        "device 'rocm:0'; allowed: cuda, cuda:0, cuda:1 ..., hip, hip:0 ...");
    ck_assert_int_eq(live(), 0);
}
END_TEST

START_TEST(absent)
{
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
    opjit_context *context;
    Dl_info libc;
    options.device = "hip";
    options.device_driver = "libamdhip64.so";
    bad(opjit_context_create(&options, &context, &error), OPJIT_UNAVAILABLE,
        "HIP driver 'libamdhip64.so': must be an absolute path");
    setenv("OPJIT_HIP_DRIVER", "/nowhere/libamdhip64.so", 1);
    options.device_driver = NULL;
    bad(opjit_context_create(&options, &context, &error), OPJIT_UNAVAILABLE,
        "HIP driver: /nowhere/libamdhip64.so: cannot open shared object file");
    ck_assert_int_ne(dladdr(dlsym(RTLD_DEFAULT, "malloc"), &libc), 0);
    options.device_driver = libc.dli_fname;
    bad(opjit_context_create(&options, &context, &error), OPJIT_UNAVAILABLE, ": it has no hipInit");
    setenv("FAKE_HIP_DEVICES", "", 1);
    bad(open_context("hip", NULL, &context), OPJIT_UNAVAILABLE, "HIP driver: hipInit: hipErrorNoDevice");
}
END_TEST

/* --- launches ----------------------------------------------------------------------------------------------------- */
typedef struct seen {
    uint32_t launches;
    fake_hip_launch last;
    char name[64];
    uint64_t arguments[8];
    uint64_t workspace_bytes; /* size that the workspace must have; 0: none is needed */
    bool good;
} seen;

/* Adds the first two buffers into the third. */
static void add(void *user, const fake_hip_launch *l)
{
    seen *s = user;
    const float *a = l->host(l->arguments[0], BYTES), *b = l->host(l->arguments[1], BYTES);
    float *out = l->host(l->arguments[2], BYTES);
    s->launches++;
    s->last = *l;
    s->good = a != NULL && b != NULL && out != NULL && l->argument_count == 4;
    strncpy(s->name, l->name, sizeof s->name - 1);
    for (uint32_t i = 0; s->good && i < SIZE; i++)
        out[i] = a[i] + b[i];
}

/* Writes the whole workspace. */
static void work(void *user, const fake_hip_launch *l)
{
    seen *s = user;
    void *workspace = l->host(l->arguments[2], s->workspace_bytes);
    s->launches++;
    s->last = *l;
    memcpy(s->arguments, l->arguments, 3 * sizeof *s->arguments);
    s->good = l->argument_count == 3 && workspace != NULL && l->arguments[2] % OPJIT_WORKSPACE_ALIGNMENT == 0;
    if (s->good)
        memset(workspace, 1, s->workspace_bytes);
}

static opjit_launch_info launch_of(const opjit_kernel *kernel)
{
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    good(opjit_kernel_get_info(kernel, &info, &error));
    const char *meta = (const char *)info.meta;
    const opjit_step_info *step = (const opjit_step_info *)(const void *)(meta + info.meta->step_info);
    return *(const opjit_launch_info *)(const void *)(meta + step->entry);
}

static void write_and_call(opjit_context *context, opjit_kernel *kernel, void *stream)
{
    static float input[SIZE], out[SIZE];
    opjit_binding bindings[3] = { { NULL, BYTES }, { NULL, BYTES }, { NULL, BYTES } };
    opjit_call call = OPJIT_CALL_INIT;
    for (uint32_t i = 0; i < SIZE; i++)
        input[i] = (float)i;
    for (int i = 0; i < 3; i++)
        good(opjit_device_allocate(context, BYTES, &bindings[i].data, &error));
    for (int i = 0; i < 2; i++)
        good(opjit_device_write(context, stream, bindings[i].data, input, BYTES, &error));
    call.bindings = bindings;
    call.binding_count = 3;
    call.stream = stream;
    good(opjit_kernel_call(kernel, &call, &error));
    good(opjit_stream_wait(context, stream, &error));
    good(opjit_device_read(context, stream, out, bindings[2].data, BYTES, &error));
    for (uint32_t i = 0; i < SIZE; i++)
        ck_assert(out[i] == 2 * (float)i);
    for (int i = 0; i < 3; i++)
        opjit_device_free(context, bindings[i].data);
}

START_TEST(kernels_are_launched)
{
    opjit_context *context;
    seen s = { 0 };
    void *stream;
    good(open_context("hip", NULL, &context));
    if (!test_have_codegen(context))
        return;
    stand_in(add, &s);
    opjit_kernel *kernel = compile(context, false);
    const opjit_launch_info l = launch_of(kernel);
    good(opjit_stream_create(context, &stream, &error));
    write_and_call(context, kernel, stream);
    ck_assert(s.good && s.launches == 1 && s.last.stream == stream);
    ck_assert_str_eq(s.name, "mine_v0_s0");
    ck_assert(memcmp(s.last.grid, l.grid, sizeof l.grid) == 0 && memcmp(s.last.block, l.block, sizeof l.block) == 0);
    ck_assert_uint_eq(s.last.shared_bytes, l.shared_bytes);
    write_and_call(context, kernel, NULL);
    ck_assert(s.good && s.launches == 2 && s.last.stream == NULL);
    opjit_stream_destroy(context, stream);
    opjit_kernel_release(kernel);
    opjit_context_destroy(context);
    ck_assert_int_eq(live(), 0);
}
END_TEST

START_TEST(workspaces)
{
    opjit_context *context;
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    opjit_binding bindings[2] = { { NULL, BYTES }, { NULL, BYTES } };
    opjit_call call = OPJIT_CALL_INIT;
    seen s = { 0 };
    good(open_context("hip", NULL, &context));
    if (!test_have_codegen(context))
        return;
    stand_in(work, &s);
    opjit_kernel *kernel = compile(context, true);
    good(opjit_kernel_get_info(kernel, &info, &error));
    s.workspace_bytes = info.workspace_bytes;
    ck_assert_uint_ge(s.workspace_bytes, COLUMNS * sizeof(float));
    for (int i = 0; i < 2; i++)
        good(opjit_device_allocate(context, BYTES, &bindings[i].data, &error));
    call.bindings = bindings;
    call.binding_count = 2;
    good(opjit_kernel_call(kernel, &call, &error));
    ck_assert(s.good && s.arguments[0] == (uintptr_t)bindings[0].data && s.arguments[1] == (uintptr_t)bindings[1].data);
    const uint64_t first = s.arguments[2];
    good(opjit_kernel_call(kernel, &call, &error)); /* again the stream's */
    ck_assert(s.good && s.arguments[2] == first);
    good(opjit_device_allocate(context, info.workspace_bytes, &call.workspace.data, &error));
    call.workspace.bytes = info.workspace_bytes;
    good(opjit_kernel_call(kernel, &call, &error));
    ck_assert(s.good && s.arguments[2] == (uintptr_t)call.workspace.data && s.launches == 3);
    opjit_device_free(context, call.workspace.data);
    for (int i = 0; i < 2; i++)
        opjit_device_free(context, bindings[i].data);
    opjit_kernel_release(kernel);
    opjit_context_destroy(context);
    ck_assert_int_eq(live(), 0);
}
END_TEST

START_TEST(images)
{
    opjit_context *context, *other;
    const void *image;
    uint64_t bytes;
    opjit_kernel *loaded, *none;
    seen s = { 0 };
    setenv("FAKE_HIP_DEVICES", "gfx1201,gfx90a", 1);
    good(open_context("hip:0", NULL, &context));
    good(open_context("hip:1", NULL, &other));
    if (!test_have_codegen(context))
        return;
    stand_in(add, &s);
    opjit_kernel *kernel = compile(context, false);
    good(opjit_kernel_get_image(kernel, &image, &bytes, &error));
    good(opjit_kernel_load(context, image, bytes, NULL, 0, &loaded, &error));
    write_and_call(context, loaded, NULL);
    ck_assert(s.good);
    bad(opjit_kernel_load(other, image, bytes, NULL, 0, &none, &error), OPJIT_UNSUPPORTED,
        "code for amdgpu:gfx1201 is not for device hip:1, which runs amdgpu:gfx90a");
    opjit_kernel_release(loaded);
    opjit_kernel_release(kernel);
    opjit_context_destroy(context);
    opjit_context_destroy(other);
    ck_assert_int_eq(live(), 0);
}
END_TEST

/* The driver's words, with HIP's names. */
START_TEST(failures)
{
    static const struct {
        const char *fail;
        opjit_status status;
        const char *part;
    } rows[] = {
        { "hipModuleLoadDataEx:200", OPJIT_CODEGEN, "mine: hip:0: hipModuleLoadDataEx: hipErrorInvalidImage" },
        { "hipModuleGetFunction:500", OPJIT_INTERNAL,
          "mine: entry mine_v0_s0: hip:0: hipModuleGetFunction: hipErrorNotFound, named symbol not found" },
        { "hipModuleLaunchKernel:1", OPJIT_INTERNAL,
          "mine: stage 0 of 1: hip:0: hipModuleLaunchKernel: hipErrorInvalidValue, invalid argument" },
    };
    opjit_context *context;
    void *memory;
    good(open_context("hip", NULL, &context));
    if (!test_have_codegen(context))
        return;
    opjit_kernel *kernel = compile(context, false);
    opjit_binding bindings[3] = { { NULL, BYTES }, { NULL, BYTES }, { NULL, BYTES } };
    opjit_call call = OPJIT_CALL_INIT;
    for (int i = 0; i < 3; i++)
        good(opjit_device_allocate(context, BYTES, &bindings[i].data, &error));
    call.bindings = bindings;
    call.binding_count = 3;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        setenv("FAKE_CUDA_FAIL", rows[i].fail, 1);
        bad(opjit_kernel_call(kernel, &call, &error), rows[i].status, rows[i].part);
        unsetenv("FAKE_CUDA_FAIL");
    }
    bad(opjit_device_allocate(context, UINT64_C(1) << 40, &memory, &error), OPJIT_OUT_OF_MEMORY,
        "hip:0: hipMalloc: hipErrorOutOfMemory, out of memory");
    ck_assert_ptr_null(memory);
    for (int i = 0; i < 3; i++)
        opjit_device_free(context, bindings[i].data);
    opjit_kernel_release(kernel);
    opjit_context_destroy(context);
    ck_assert_int_eq(live(), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fe.hip");
    TCase *t = tcase_create("hip");
    tcase_add_test(t, devices);
    tcase_add_test(t, absent);
    tcase_add_test(t, kernels_are_launched);
    tcase_add_test(t, workspaces);
    tcase_add_test(t, images);
    tcase_add_test(t, failures);
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
