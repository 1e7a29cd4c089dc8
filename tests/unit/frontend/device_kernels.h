/* SPDX-License-Identifier: Apache-2.0 */
/* device_kernels.h - shared by tests of kernels on the fake CUDA driver's device: contexts, operators, calls there,
 * expected results.  Includers define _GNU_SOURCE. */
#ifndef OPJIT_TESTS_UNIT_DEVICE_KERNELS_H
#define OPJIT_TESTS_UNIT_DEVICE_KERNELS_H

#include <check.h>
#include <dlfcn.h>
#include <opjit/device.h>
#include <opjit/opjit.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/checker.h"
#include "tests/support/require.h"

enum { ROWS = 3, COLUMNS = 400, LONG_ROW = 13000, SIZE = ROWS * COLUMNS, LONG_SIZE = 2 * LONG_ROW };

static opjit_error error; /* each program's own */

static inline void good(opjit_status status)
{
    ck_assert_msg(status == OPJIT_OK, "%s", error.message);
}
static inline void bad(opjit_status status, opjit_status expected, const char *part)
{
    ck_assert_msg(status == expected && strstr(error.message, part) != NULL, "%s, %s\nand not %s, %s",
                  opjit_status_name(status), error.message, opjit_status_name(expected), part);
    if (status != OPJIT_OUT_OF_MEMORY)
        test_require_place(&error);
}

static inline int live(void)
{
    int (*count)(void);
    void *library = dlopen(getenv("OPJIT_TEST_CUDA"), RTLD_NOW | RTLD_NOLOAD);
    void *symbol = library == NULL ? NULL : dlsym(library, "fake_cuda_live");
    if (symbol == NULL)
        return 0;
    memcpy(&count, &symbol, sizeof count);
    return count();
}

static inline opjit_context *on_device(const char *device, const char *cache_dir)
{
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
    opjit_context *context;
    options.device = device;
    options.device_driver = getenv("OPJIT_TEST_CUDA");
    options.cache_dir = cache_dir;
    good(opjit_context_create(&options, &context, &error));
    return context;
}

/* --- operators ---------------------------------------------------------------------------------------------------- */
typedef enum kind { CONSTANT, TRIANGLE, ADD, SOFTMAX, LONG_SOFTMAX, CUMULATIVE, KINDS } kind;

static inline uint32_t inputs_of(kind k)
{
    return k == CONSTANT ? 0 : k == ADD ? 2 : 1;
}
static inline uint32_t elements_of(kind k)
{
    return k == LONG_SOFTMAX ? LONG_SIZE : SIZE;
}

static inline opjit_operator *make_operator(opjit_context *context, kind k)
{
    const uint32_t sizes[] = { k == LONG_SOFTMAX ? 2 : ROWS, k == LONG_SOFTMAX ? LONG_ROW : COLUMNS }, axes[] = { 1 };
    const DML_BUFFER_TENSOR_DESC buffer = { DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_FLAG_NONE, 2, sizes, NULL, 0, 0 };
    const DML_TENSOR_DESC t = { DML_TENSOR_TYPE_BUFFER, &buffer };
    const DML_SCALAR_UNION value = { .Float32 = 2.5f };
    const DML_FILL_VALUE_CONSTANT_OPERATOR_DESC constant = { &t, DML_TENSOR_DATA_TYPE_FLOAT32, value };
    const DML_DIAGONAL_MATRIX1_OPERATOR_DESC triangle = { &t, &t, DML_TENSOR_DATA_TYPE_FLOAT32, value, 1, INT32_MAX };
    const DML_ELEMENT_WISE_ADD_OPERATOR_DESC sum = { &t, &t, &t };
    const DML_ACTIVATION_SOFTMAX1_OPERATOR_DESC softmax = { &t, &t, 1, axes };
    const DML_CUMULATIVE_SUMMATION_OPERATOR_DESC cumulative = { &t, &t, 1, DML_AXIS_DIRECTION_INCREASING, 0 };
    const DML_OPERATOR_DESC descs[KINDS] = {
        [CONSTANT] = { DML_OPERATOR_FILL_VALUE_CONSTANT, &constant },
        [TRIANGLE] = { DML_OPERATOR_DIAGONAL_MATRIX1, &triangle },
        [ADD] = { DML_OPERATOR_ELEMENT_WISE_ADD, &sum },
        [SOFTMAX] = { DML_OPERATOR_ACTIVATION_SOFTMAX1, &softmax },
        [LONG_SOFTMAX] = { DML_OPERATOR_ACTIVATION_SOFTMAX1, &softmax },
        [CUMULATIVE] = { DML_OPERATOR_CUMULATIVE_SUMMATION, &cumulative },
    };
    opjit_operator *op;
    good(opjit_operator_create(context, &descs[k], &op, &error));
    return op;
}

static inline opjit_kernel *compile(opjit_context *context, kind k, const opjit_compile_options *options)
{
    opjit_operator *op = make_operator(context, k);
    opjit_kernel *kernel;
    good(opjit_compile_operator(context, op, options, &kernel, &error));
    opjit_operator_release(op);
    return kernel;
}

static inline void *allocate(opjit_context *context, uint64_t bytes)
{
    void *memory;
    good(opjit_device_allocate(context, bytes, &memory, &error));
    return memory;
}

static inline void fill(float *values, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        values[i] = (float)((i * 7919u) % 977u) * 0.03125f - 12;
}

/* The same kind of kernel on a CPU. */
static inline void expect_of(kind k, const float *input, float *out)
{
    opjit_context *context = test_context_create();
    opjit_kernel *kernel = compile(context, k, NULL);
    const uint64_t bytes = elements_of(k) * sizeof(float);
    opjit_binding bindings[3] = { { (void *)(uintptr_t)input, bytes }, { (void *)(uintptr_t)input, bytes } };
    opjit_call call = OPJIT_CALL_INIT;
    bindings[inputs_of(k)] = (opjit_binding){ out, bytes };
    call.bindings = bindings;
    call.binding_count = inputs_of(k) + 1;
    good(opjit_kernel_call(kernel, &call, &error));
    opjit_kernel_release(kernel);
    opjit_context_destroy(context);
}

/* Calls kernel on the device, with every input equal to `input`, and copies the output to out. */
static inline opjit_status call_there(opjit_context *context, opjit_kernel *kernel, kind k, void *stream,
                                      const float *input, float *out, opjit_error *e)
{
    const uint64_t bytes = elements_of(k) * sizeof(float);
    void *in = NULL, *to = NULL;
    opjit_call call = OPJIT_CALL_INIT;
    opjit_status status = opjit_device_allocate(context, bytes, &in, e);
    if (status == OPJIT_OK)
        status = opjit_device_allocate(context, bytes, &to, e);
    if (status == OPJIT_OK)
        status = opjit_device_write(context, stream, in, input, bytes, e);
    opjit_binding bindings[3] = { { in, bytes }, { in, bytes } };
    bindings[inputs_of(k)] = (opjit_binding){ to, bytes };
    call.bindings = bindings;
    call.binding_count = inputs_of(k) + 1;
    call.stream = stream;
    if (status == OPJIT_OK)
        status = opjit_kernel_call(kernel, &call, e);
    if (status == OPJIT_OK)
        status = opjit_device_read(context, stream, out, to, bytes, e);
    opjit_device_free(context, in);
    opjit_device_free(context, to);
    return status;
}

static inline void check_kernel(opjit_context *context, opjit_kernel *kernel, kind k, void *stream)
{
    const uint64_t bytes = elements_of(k) * sizeof(float);
    float *input = malloc(bytes), *expected = malloc(bytes), *out = malloc(bytes);
    ck_assert(input != NULL && expected != NULL && out != NULL);
    fill(input, elements_of(k));
    expect_of(k, input, expected);
    good(call_there(context, kernel, k, stream, input, out, &error));
    ck_assert_msg(memcmp(out, expected, bytes) == 0, "kind %d: other bytes than on the CPU", (int)k);
    free(input);
    free(expected);
    free(out);
}

#endif
