/* SPDX-License-Identifier: Apache-2.0 */
/* test_fe_device.c - kernels on a device through the public interface, on the fake CUDA driver, which runs their PTX:
 * the same bits as the CPU's kernels, metadata, workspaces, streams, and messages of refusals. */
#define _GNU_SOURCE
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <opjit/device.h>
#include <opjit/ffi.h>

#include "tests/unit/frontend/device_kernels.h"

/* --- what there is ------------------------------------------------------------------------------------------------ */
START_TEST(lists)
{
    opjit_device_info info = OPJIT_DEVICE_INFO_INIT;
    uint32_t count = 9;
    setenv("FAKE_CUDA_DEVICES", "80,120", 1);
    setenv("OPJIT_CUDA_DRIVER", getenv("OPJIT_TEST_CUDA"), 1);
    good(opjit_device_count("cuda", &count, &error));
    ck_assert_uint_eq(count, 2);
    good(opjit_device_get_info("cuda", 1, &info, &error));
    ck_assert_str_eq(info.arch, "sm_120");
    ck_assert(strlen(info.name) > 0 && info.memory_bytes > 0 && info.processors > 0);
    ck_assert(info.driver_major == 13 && info.driver_minor == 0);
    ck_assert_int_eq(opjit_device_get_info("cuda", 2, &info, &error), OPJIT_NOT_FOUND);
    ck_assert_int_eq(opjit_device_get_info(NULL, 0, &info, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_int_eq(opjit_device_count("cuda", NULL, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_int_eq(opjit_device_count("vulkan", &count, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_uint_eq(count, 0);
    setenv("OPJIT_CUDA_DRIVER", "/nowhere/libcuda.so.1", 1);
    ck_assert_int_eq(opjit_device_count("cuda", &count, &error), OPJIT_UNAVAILABLE);
}
END_TEST

/* --- running ------------------------------------------------------------------------------------------------------ */
START_TEST(kernels_run)
{
    static const char *const devices[] = { "80", "90", "120" };
    setenv("FAKE_CUDA_DEVICES", devices[_i % 3], 1);
    opjit_context *context = on_device("cuda", NULL);
    if (!test_have_codegen(context))
        return;
    opjit_kernel *kernel = compile(context, (kind)_i, NULL);
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    void *stream;
    good(opjit_kernel_get_info(kernel, &info, &error));
    ck_assert_uint_eq(info.flags, OPJIT_KERNEL_ON_DEVICE);
    ck_assert_uint_eq(info.workspace_bytes > 0, _i == LONG_SOFTMAX);
    good(opjit_stream_create(context, &stream, &error));
    check_kernel(context, kernel, (kind)_i, NULL);
    check_kernel(context, kernel, (kind)_i, stream);
    good(opjit_kernel_optimize(kernel, &error));
    good(opjit_kernel_get_info(kernel, &info, &error));
    ck_assert_int_eq(info.level, OPJIT_LEVEL_PEAK);
    check_kernel(context, kernel, (kind)_i, stream);
    good(opjit_stream_wait(context, stream, &error));
    opjit_stream_destroy(context, stream);
    opjit_context_destroy(context); /* the kernel still holds the device */
    opjit_kernel_release(kernel);
    ck_assert_int_eq(live(), 0);
}
END_TEST

START_TEST(metadata)
{
    opjit_context *context = on_device("cuda", NULL);
    if (!test_have_codegen(context))
        return;
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    options.name = "mine";
    opjit_kernel *kernel = compile(context, SOFTMAX, &options);
    good(opjit_kernel_get_info(kernel, &info, &error));
    ck_assert_str_eq(info.target, "nvptx:sm_90");
    ck_assert(info.buffer_count == 2 && info.buffers[0].align == OPJIT_GPU_ALIGNMENT);
    const char *meta = (const char *)info.meta;
    const opjit_step_info *steps = (const opjit_step_info *)(const void *)(meta + info.meta->step_info);
    ck_assert_uint_eq(info.meta->steps, 1);
    ck_assert(steps[0].kind == OPJIT_STEP_LAUNCH && steps[0].extent == ROWS);
    const opjit_launch_info *l = (const opjit_launch_info *)(const void *)(meta + steps[0].entry);
    ck_assert_str_eq(meta + l->name, "mine_v0_s0");
    ck_assert(l->grid[0] > 0 && l->grid[1] == 1 && l->grid[2] == 1 && l->block[1] == 1 && l->block[2] == 1);
    ck_assert_uint_eq(l->block[0] % 32, 0);
    ck_assert_uint_gt(l->shared_bytes, COLUMNS * sizeof(float)); /* a row a team */
    ck_assert_uint_eq(info.meta->scratch_size, 0);
    opjit_kernel_release(kernel);
    opjit_context_destroy(context);
}
END_TEST

/* The late parameter is the last argument; values before it must not reach it. */
START_TEST(late_parameters)
{
    opjit_context *context = on_device("cuda", NULL);
    if (!test_have_codegen(context))
        return;
    static const char *const late[] = { "ValueStart", "ValueDelta" };
    const uint32_t sizes[] = { 100 };
    const DML_BUFFER_TENSOR_DESC buffer = { DML_TENSOR_DATA_TYPE_INT32, DML_TENSOR_FLAG_NONE, 1, sizes, NULL, 0, 0 };
    const DML_TENSOR_DESC t = { DML_TENSOR_TYPE_BUFFER, &buffer };
    const DML_FILL_VALUE_SEQUENCE_OPERATOR_DESC sequence = {
        &t, DML_TENSOR_DATA_TYPE_INT32, { .Int32 = 0 }, { .Int32 = 0 }
    };
    const DML_OPERATOR_DESC desc = { DML_OPERATOR_FILL_VALUE_SEQUENCE, &sequence };
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_operator *op;
    opjit_kernel *kernel;
    int32_t out[100];
    options.late = late;
    options.late_count = 2;
    good(opjit_operator_create(context, &desc, &op, &error));
    good(opjit_compile_operator(context, op, &options, &kernel, &error));
    opjit_operator_release(op);
    const opjit_binding binding = { allocate(context, sizeof out), sizeof out };
    const uint64_t params[] = { (uint64_t)INT64_C(-7), 3 };
    opjit_call call = OPJIT_CALL_INIT;
    call.bindings = &binding;
    call.binding_count = 1;
    call.params = params;
    call.param_count = 2;
    good(opjit_kernel_call(kernel, &call, &error));
    good(opjit_device_read(context, NULL, out, binding.data, sizeof out, &error));
    for (int32_t i = 0; i < 100; i++)
        ck_assert_int_eq(out[i], 3 * i - 7);
    opjit_device_free(context, binding.data);
    opjit_kernel_release(kernel);
    opjit_context_destroy(context);
    ck_assert_int_eq(live(), 0);
}
END_TEST

/* A constant of more than 4 KiB belongs to the kernel and is copied to the device once; each kernel has its own. */
static opjit_kernel *add_constant(opjit_context *context, const float *values)
{
    opjit_operator *op = make_operator(context, ADD);
    const DML_CONSTANT_DATA_GRAPH_NODE_DESC constant = { values, SIZE * sizeof(float), NULL };
    const DML_OPERATOR_GRAPH_NODE_DESC add = { op, "add" };
    const DML_GRAPH_NODE_DESC nodes[] = { { DML_GRAPH_NODE_TYPE_OPERATOR, &add },
                                          { DML_GRAPH_NODE_TYPE_CONSTANT, &constant } };
    const DML_INPUT_GRAPH_EDGE_DESC input = { 0, 0, 0, NULL };
    const DML_OUTPUT_GRAPH_EDGE_DESC output = { 0, 0, 0, NULL };
    const DML_INTERMEDIATE_GRAPH_EDGE_DESC edge = { 1, 0, 0, 1, NULL };
    const DML_GRAPH_EDGE_DESC inputs[] = { { DML_GRAPH_EDGE_TYPE_INPUT, &input } };
    const DML_GRAPH_EDGE_DESC outputs[] = { { DML_GRAPH_EDGE_TYPE_OUTPUT, &output } };
    const DML_GRAPH_EDGE_DESC edges[] = { { DML_GRAPH_EDGE_TYPE_INTERMEDIATE, &edge } };
    const DML_GRAPH_DESC graph = { 1, 1, 2, nodes, 1, inputs, 1, outputs, 1, edges };
    opjit_kernel *kernel;
    good(opjit_compile_graph(context, &graph, NULL, &kernel, &error));
    opjit_operator_release(op);
    return kernel;
}

START_TEST(constants)
{
    opjit_context *context = on_device("cuda", NULL);
    if (!test_have_codegen(context))
        return;
    float values[2][SIZE], input[SIZE], out[SIZE];
    opjit_kernel *kernels[2];
    fill(input, SIZE);
    for (uint32_t i = 0; i < SIZE; i++)
        values[0][i] = (float)i, values[1][i] = (float)i * 0.5f;
    for (int k = 0; k < 2; k++)
        kernels[k] = add_constant(context, values[k]);
    for (int round = 0; round < 2; round++) {
        const int before = live();
        for (int k = 0; k < 2; k++) {
            good(call_there(context, kernels[k], CUMULATIVE, NULL, input, out, &error)); /* one input, one output */
            for (uint32_t i = 0; i < SIZE; i++)
                ck_assert(out[i] == input[i] + values[k][i]);
        }
        /* the first call loads code and constants, the second one nothing */
        ck_assert_int_eq(live() - before, round == 0 ? 3 : 0);
    }
    for (int k = 0; k < 2; k++)
        opjit_kernel_release(kernels[k]);
    opjit_context_destroy(context);
    ck_assert_int_eq(live(), 0);
}
END_TEST

START_TEST(own_workspace)
{
    opjit_context *context = on_device("cuda", NULL);
    if (!test_have_codegen(context))
        return;
    opjit_kernel *kernel = compile(context, LONG_SOFTMAX, NULL);
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    good(opjit_kernel_get_info(kernel, &info, &error));
    const uint64_t bytes = LONG_SIZE * sizeof(float);
    opjit_binding bindings[2] = { { allocate(context, bytes), bytes }, { allocate(context, bytes), bytes } };
    opjit_call call = OPJIT_CALL_INIT;
    call.bindings = bindings;
    call.binding_count = 2;
    call.workspace = (opjit_binding){ allocate(context, info.workspace_bytes), info.workspace_bytes };
    good(opjit_kernel_call(kernel, &call, &error));
    good(opjit_stream_wait(context, NULL, &error));
    call.workspace.bytes--;
    bad(opjit_kernel_call(kernel, &call, &error), OPJIT_INVALID_ARGUMENT, "workspace: ");
    call.workspace.bytes++;
    call.workspace.data = bindings[0].data;
    bad(opjit_kernel_call(kernel, &call, &error), OPJIT_INVALID_ARGUMENT, "workspace overlaps ");
    call.workspace = (opjit_binding){ NULL, 64 };
    bad(opjit_kernel_call(kernel, &call, &error), OPJIT_INVALID_ARGUMENT, "workspace: 64 bytes at NULL");
    call.workspace.bytes = 0;
    call.stream = (void *)2;
    bad(opjit_kernel_call(kernel, &call, &error), OPJIT_INVALID_ARGUMENT, "the stream that each thread has its own of");
    opjit_kernel_release(kernel);
    opjit_context_destroy(context);
}
END_TEST

/* --- refusals ----------------------------------------------------------------------------------------------------- */
START_TEST(without_device)
{
    opjit_context *context = test_context_create();
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_operator *op = make_operator(context, ADD);
    opjit_kernel *kernel;
    void *memory = &options;
    options.target = "nvptx:sm_90";
    bad(opjit_compile_operator(context, op, &options, &kernel, &error), OPJIT_UNAVAILABLE,
        "code for nvptx:sm_90 does not run on this machine's CPU, and the context has no device");
    bad(opjit_device_allocate(context, 8, &memory, &error), OPJIT_UNSUPPORTED, "the context has no device");
    ck_assert_ptr_null(memory);
    bad(opjit_stream_create(context, &memory, &error), OPJIT_UNSUPPORTED, "the context has no device");
    bad(opjit_stream_wait(context, NULL, &error), OPJIT_UNSUPPORTED, "the context has no device");
    bad(opjit_device_write(context, NULL, &memory, &memory, 1, &error), OPJIT_UNSUPPORTED, "the context has no device");
    bad(opjit_device_read(context, NULL, NULL, &memory, 1, &error), OPJIT_INVALID_ARGUMENT, "to is NULL");
    bad(opjit_device_allocate(NULL, 8, &memory, &error), OPJIT_INVALID_ARGUMENT, "context is NULL");
    opjit_device_free(context, &memory);
    opjit_device_free(NULL, NULL);
    opjit_stream_destroy(context, NULL);
    opjit_operator_release(op);
    opjit_context_destroy(context);
}
END_TEST

/* A named target that is not the device's. */
START_TEST(cpu_beside_device)
{
    opjit_context *context = on_device("cuda", NULL);
    if (!test_have_codegen(context))
        return;
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    float input[SIZE], out[SIZE];
    const opjit_binding bindings[3] = { { input, sizeof input }, { input, sizeof input }, { out, sizeof out } };
    opjit_call call = OPJIT_CALL_INIT;
    options.target = "cpu";
    opjit_kernel *kernel = compile(context, ADD, &options);
    good(opjit_kernel_get_info(kernel, &info, &error));
    ck_assert_uint_eq(info.flags, 0);
    fill(input, SIZE);
    call.bindings = bindings;
    call.binding_count = 3;
    good(opjit_kernel_call(kernel, &call, &error));
    ck_assert(out[SIZE - 1] == 2 * input[SIZE - 1]);
    opjit_kernel_release(kernel);
    opjit_context_destroy(context);
}
END_TEST

static void nothing(void) {}

START_TEST(refused)
{
    setenv("FAKE_CUDA_DEVICES", "80", 1);
    opjit_context *context = on_device("cuda", NULL), *cpu = test_context_create();
    if (!test_have_codegen(context))
        return;
    opjit_kernel *kernel = compile(context, CONSTANT, NULL), *here = compile(cpu, CONSTANT, NULL), *none;
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    const opjit_executor executor = { NULL, 1, NULL };
    opjit_binding binding = { allocate(context, SIZE * 4 + 64), SIZE * 4 };
    opjit_call call = OPJIT_CALL_INIT;
    call.bindings = &binding;
    call.binding_count = 1;
    call.executor = &executor;
    bad(opjit_kernel_call(kernel, &call, &error), OPJIT_INVALID_ARGUMENT, "executor: must be NULL");
    call.executor = NULL;
    uint32_t steps = 7;
    bad(opjit_kernel_call_timed(kernel, &call, NULL, 0, &steps, &error), OPJIT_UNSUPPORTED, "its stream has the times");
    ck_assert_str_eq(error.field, "kernel");
    ck_assert_str_eq(error.value, "a device");
    call.stream = &call;
    bad(opjit_kernel_call(here, &call, &error), OPJIT_INVALID_ARGUMENT, "stream: must be NULL");
    bad(opjit_kernel_call(kernel, &call, &error), OPJIT_INTERNAL, "cuLaunchKernel: CUDA_ERROR_INVALID_HANDLE");
    ck_assert_msg(strncmp(error.message, "fill_value_constant_f32_", 24) == 0 &&
                      strstr(error.message, ": stage 0 of 1: cuda:0: "),
                  "%s", error.message);
    call.stream = NULL;
    binding.data = (uint8_t *)binding.data + 8;
    bad(opjit_kernel_call(kernel, &call, &error), OPJIT_INVALID_ARGUMENT, "is not aligned to 16 bytes");
    binding.data = (uint8_t *)binding.data - 8;
    binding.bytes--;
    bad(opjit_kernel_call(kernel, &call, &error), OPJIT_INVALID_ARGUMENT, "bytes given");
    opjit_operator *op = make_operator(context, ADD);
    options.target = "nvptx:sm_90";
    bad(opjit_compile_operator(context, op, &options, &none, &error), OPJIT_UNAVAILABLE,
        "code for nvptx:sm_90 is not for device cuda:0, which runs nvptx:sm_80");
    opjit_operator_release(op);
    opjit_kernel_release(kernel);
    opjit_kernel_release(here);
    opjit_context_destroy(cpu);
    opjit_context_destroy(context);
}
END_TEST

START_TEST(custom_operators)
{
    opjit_context *context = on_device("cuda", NULL);
    if (!test_have_codegen(context))
        return;
    const uint32_t sizes[] = { 4 };
    const DML_BUFFER_TENSOR_DESC buffer = { DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_FLAG_NONE, 1, sizes, NULL, 0, 0 };
    const DML_TENSOR_DESC t = { DML_TENSOR_TYPE_BUFFER, &buffer };
    opjit_custom_desc desc = OPJIT_CUSTOM_DESC_INIT;
    opjit_operator *op;
    opjit_kernel *kernel;
    desc.name = "own";
    desc.outputs = &t;
    desc.output_count = 1;
    desc.function = nothing;
    if (opjit_custom_create(context, &desc, &op, &error) == OPJIT_OK) {
        bad(opjit_compile_operator(context, op, NULL, &kernel, &error), OPJIT_UNSUPPORTED,
            "has custom operators, which are functions of this process");
        opjit_operator_release(op);
    }
    opjit_context_destroy(context);
}
END_TEST

/* Each function of the driver that a first call needs fails once; the next call succeeds. */
START_TEST(failures)
{
    static const struct {
        const char *fail;
        opjit_status status;
        const char *part;
    } rows[] = {
        { "cuModuleLoadDataEx:218", OPJIT_CODEGEN, "cuda:0: cuModuleLoadDataEx: CUDA_ERROR_INVALID_PTX" },
        { "cuModuleGetFunction:500", OPJIT_INTERNAL, "entry activation_softmax1_f32_" },
        { "cuMemAlloc_v2:2", OPJIT_OUT_OF_MEMORY, ": workspace of " },
        { "cuLaunchKernel:701", OPJIT_UNAVAILABLE, ": stage 0 of 1: cuda:0: cuLaunchKernel: CUDA_ERROR_LAUNCH_OUT" },
    };
    opjit_context *context = on_device("cuda", NULL);
    if (!test_have_codegen(context))
        return;
    opjit_kernel *kernel = compile(context, LONG_SOFTMAX, NULL);
    const uint64_t bytes = LONG_SIZE * sizeof(float);
    opjit_binding bindings[2] = { { allocate(context, bytes), bytes }, { allocate(context, bytes), bytes } };
    opjit_call call = OPJIT_CALL_INIT;
    call.bindings = bindings;
    call.binding_count = 2;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        setenv("FAKE_CUDA_FAIL", rows[i].fail, 1);
        bad(opjit_kernel_call(kernel, &call, &error), rows[i].status, rows[i].part);
        ck_assert_msg(strncmp(error.message, "activation_softmax1_f32_", 24) == 0, "%s", error.message);
        unsetenv("FAKE_CUDA_FAIL");
    }
    check_kernel(context, kernel, LONG_SOFTMAX, NULL);
    opjit_device_free(context, bindings[0].data);
    opjit_device_free(context, bindings[1].data);
    opjit_kernel_release(kernel);
    opjit_context_destroy(context);
    ck_assert_int_eq(live(), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fe.device");
    TCase *t = tcase_create("device");
    tcase_add_test(t, lists);
    tcase_add_loop_test(t, kernels_run, 0, KINDS);
    tcase_add_test(t, metadata);
    tcase_add_test(t, late_parameters);
    tcase_add_test(t, constants);
    tcase_add_test(t, own_workspace);
    tcase_add_test(t, without_device);
    tcase_add_test(t, cpu_beside_device);
    tcase_add_test(t, refused);
    tcase_add_test(t, custom_operators);
    tcase_add_test(t, failures);
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
