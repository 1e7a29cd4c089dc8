/* SPDX-License-Identifier: Apache-2.0 */
/* dims_kernel.h - shared by tests of kernels with dynamic dimensions: the description of one, its image and kernel, a
 * call, and an interpreter hook that notes what it is asked for. */
#ifndef OPJIT_TESTS_UNIT_DIMS_KERNEL_H
#define OPJIT_TESTS_UNIT_DIMS_KERNEL_H

#include <check.h>

#include "tests/unit/runtime/rt_sample.h"

static const opjit_param_info two_dims[] = { { DML_TENSOR_DATA_TYPE_INT64, 0, 1, 8 },
                                             { DML_TENSOR_DATA_TYPE_INT64, 0, 1, 4 } };

/* In: n x m bytes, with n from 1 to 8 and m from 1 to 4.  Out: (n m - 1) / 2 of them, the even ones, plus a late
 * parameter.  Step 0 has that extent, step 1 has n. */
enum { MOST_IN = 32, MOST_OUT = 15, FORMS = 2 * OPJIT_BUFFER_FORMS + 2 };

static counting memory;
static opjit_context *context;
static opjit_kernel *kernel;
static opjit_error error;
static sample s;
static opjit_param_info params[3];
static const char *const param_names[3] = { "Begin", "n", "m" };
static opjit_size_form all[FORMS];
static rt_bytes image;
static _Alignas(64) uint8_t in[64], out[64];
static uint64_t dims[2], begin_at;
static opjit_binding bindings[2];
static opjit_call call;

static struct {
    uint32_t calls[2];
    uint64_t ends[2], params[3];
    uint8_t *shared;
} hook;

static inline opjit_status interpret(void *user, uint32_t step, void *const *buffers, const uint64_t *values,
                                     void *shared, void *scratch, uint64_t begin, uint64_t end, opjit_error *e)
{
    (void)user, (void)scratch, (void)e;
    hook.calls[step]++;
    hook.ends[step] = end;
    hook.shared = shared;
    memcpy(hook.params, values, sizeof hook.params);
    for (uint64_t i = begin; i < end && step == 0; i++)
        ((uint8_t *)buffers[1])[i] = (uint8_t)(((const uint8_t *)buffers[0])[2 * i] + values[0]);
    return OPJIT_OK;
}

static const rt_kernel_hooks interpreting = { .interpret = interpret };

static inline opjit_status build(rt_bytes *to, const opjit_allocator *a)
{
    s.source.buffers = s.buffers;
    s.source.buffer_names = s.names;
    s.source.param_infos = params;
    s.source.param_names = param_names;
    s.source.step_infos = s.steps;
    s.source.variant_infos = s.variants;
    s.source.forms = all;
    opjit_rt_bytes_init(to, a);
    return opjit_rt_image_build(&s.source, sample_code, s.code_size, to, &error);
}

static inline void create(const rt_kernel_hooks *hooks)
{
    s.code_size = hooks == NULL ? sizeof sample_code : 0;
    ck_assert_msg(build(&image, &context->core->allocator) == OPJIT_OK, "%s", error.message);
    ck_assert_msg(opjit_rt_kernel_create(context->core, image.data, image.size, NULL, 0, hooks, NULL, &kernel,
                                         &error) == OPJIT_OK,
                  "%s", error.message);
}

static inline void describe(void)
{
    static const opjit_size_form one = { 1, { 0, 0 }, { { 0 }, { 0 } }, 1, 1 },
                                 n = { 0, { 1, 0 }, { { 1 }, { 0 } }, 1, 1 },
                                 m = { 0, { 1, 0 }, { { 0, 1 }, { 0 } }, 1, 1 },
                                 both = { 0, { 1, 0 }, { { 1, 1 }, { 0 } }, 1, 1 },
                                 half = { -1, { 1, 0 }, { { 1, 1 }, { 0 } }, 2, 1 };
    sample_init(&s);
    s.buffers[0] = sample_buffer(OPJIT_BUFFER_INPUT, MOST_IN);
    s.buffers[0].rank = 2;
    s.buffers[0].sizes[0] = 8, s.buffers[0].sizes[1] = 4;
    s.buffers[0].strides[0] = 4, s.buffers[0].strides[1] = 1;
    s.buffers[1] = sample_buffer(OPJIT_BUFFER_OUTPUT, MOST_OUT);
    params[0] = (opjit_param_info){ DML_TENSOR_DATA_TYPE_INT32, 0, -3, 100 };
    params[1] = two_dims[0];
    params[2] = two_dims[1];
    s.steps[0] = (opjit_step_info){ OPJIT_STEP_STAGE, SAMPLE_ADD_ONE, MOST_OUT, 2 };
    s.steps[1] = (opjit_step_info){ OPJIT_STEP_STAGE, SAMPLE_ADD_PARAM, 8, 8 };
    s.variants[0] = (opjit_variant_info){ 0, 0, 2 };
    s.source.steps = 2;
    s.source.params = 3;
    s.source.dims = 2;
    for (uint32_t i = 0; i < FORMS; i++)
        all[i] = one;
    all[0] = both, all[1] = n, all[2] = m;
    all[OPJIT_BUFFER_FORMS] = all[OPJIT_BUFFER_FORMS + 1] = all[FORMS - 2] = half;
    all[FORMS - 1] = n;
}

static inline void set_dims(uint64_t n, uint64_t m)
{
    dims[0] = n;
    dims[1] = m;
    bindings[0] = (opjit_binding){ in, n * m };
    bindings[1] = (opjit_binding){ out, (n * m - 1) / 2 };
}

static inline void setup(void)
{
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
    const opjit_allocator a = counting_allocator(&memory, 0);
    options.allocator = &a;
    ck_assert_msg(opjit_context_create(&options, &context, &error) == OPJIT_OK, "%s", error.message);
    memset(&hook, 0, sizeof hook);
    describe();
    for (uint8_t i = 0; i < 64; i++)
        in[i] = i, out[i] = 0xee;
    call = (opjit_call)OPJIT_CALL_INIT;
    call.bindings = bindings;
    call.binding_count = 2;
    call.params = &begin_at;
    call.param_count = 1;
    call.dims = dims;
    call.dim_count = 2;
    begin_at = 5;
    set_dims(3, 4);
    kernel = NULL;
    opjit_rt_bytes_init(&image, &context->core->allocator);
}

static inline void teardown(void)
{
    opjit_kernel_release(kernel);
    opjit_rt_bytes_free(&image);
    opjit_context_destroy(context);
    ck_assert_int_eq(memory.live, 0);
    ck_assert_int_eq(memory.bytes, 0);
}

static inline void expect_run(void)
{
    const uint64_t count = (dims[0] * dims[1] - 1) / 2;

    memset(out, 0xee, sizeof out);
    memset(&hook, 0, sizeof hook);
    ck_assert_msg(opjit_kernel_call(kernel, &call, &error) == OPJIT_OK, "%s", error.message);
    for (uint64_t i = 0; i < count; i++)
        ck_assert_uint_eq(out[i], 2 * i + 5);
    ck_assert_uint_eq(out[count], 0xee);
    ck_assert(hook.params[0] == 5 && hook.params[1] == dims[0] && hook.params[2] == dims[1]);
    ck_assert_uint_eq(hook.ends[0], count);
    ck_assert_uint_eq(hook.ends[1], dims[0]);
}

#endif
