/* SPDX-License-Identifier: Apache-2.0 */
/* rt_sample.h - shared by the runtime's unit tests: an allocator that counts and fails on demand, and images made by
 * hand around two assembled stages, so that no test here needs a compiler. */
#ifndef OPJIT_TESTS_UNIT_RT_SAMPLE_H
#define OPJIT_TESTS_UNIT_RT_SAMPLE_H

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <opjit/opjit.h>

#include "runtime/base/context.h"
#include "runtime/call/kernel.h"
#include "runtime/image/image.h"

/* --- allocator ---------------------------------------------------------------------------------------------------- */
typedef struct counting {
    atomic_int calls, live;
    atomic_llong bytes; /* requested and not yet released: reveals a wrong size at release */
    int fail_at;        /* 1: the first call fails; 0: none */
} counting;

static inline void *counting_allocate(void *user, size_t size, size_t alignment)
{
    counting *c = user;
    void *memory;
    if (atomic_fetch_add(&c->calls, 1) + 1 == c->fail_at)
        return NULL;
    memory = opjit_rt_default_allocator.allocate(NULL, size, alignment);
    if (memory != NULL) {
        memset(memory, 0xa5, size);
        atomic_fetch_add(&c->live, 1);
        atomic_fetch_add(&c->bytes, (long long)size);
    }
    return memory;
}

static inline void counting_release(void *user, void *memory, size_t size)
{
    counting *c = user;
    atomic_fetch_sub(&c->live, 1);
    atomic_fetch_sub(&c->bytes, (long long)size);
    opjit_rt_default_allocator.release(NULL, memory, size);
}

static inline opjit_allocator counting_allocator(counting *c, int fail_at)
{
    memset(c, 0, sizeof *c);
    c->fail_at = fail_at;
    return (opjit_allocator){ c, counting_allocate, counting_release };
}

/* --- images ------------------------------------------------------------------------------------------------------- */
enum { SAMPLE_ADD_ONE = 0, SAMPLE_ADD_PARAM = 32, SAMPLE_ELEMENTS = 16 };

/* Two stages over bytes: out[i] = in[i] + 1, and out[i] = in[i] + params[0].  x86-64, System V. */
static const uint8_t sample_code[] = {
    0x48, 0x8b, 0x07, 0x48, 0x8b, 0x7f, 0x08, 0x4d, 0x39, 0xc8, 0x73, 0x0f, 0x42, 0x8a, 0x14, 0x00,
    0xfe, 0xc2, 0x42, 0x88, 0x14, 0x07, 0x49, 0xff, 0xc0, 0xeb, 0xec, 0xc3, 0x90, 0x90, 0x90, 0x90, /* SAMPLE_ADD_ONE */
    0x48, 0x8b, 0x07, 0x48, 0x8b, 0x7f, 0x08, 0x4d, 0x39, 0xc8, 0x73, 0x0f, 0x42, 0x8a, 0x14, 0x00,
    0x02, 0x16, 0x42, 0x88, 0x14, 0x07, 0x49, 0xff, 0xc0, 0xeb, 0xec, 0xc3, /* SAMPLE_ADD_PARAM */
};

/* A kernel with one byte tensor in and one out; tests change fields before they build it. */
typedef struct sample {
    rt_meta_source source;
    opjit_buffer_info buffers[3];
    const char *names[3];
    opjit_param_info param;
    const char *param_name;
    opjit_step_info steps[2];
    opjit_variant_info variants[2];
    size_t code_size; /* 0: to be interpreted */
} sample;

static inline opjit_buffer_info sample_buffer(uint32_t role, uint64_t elements)
{
    opjit_buffer_info info = {
        .role = role, .dtype = DML_TENSOR_DATA_TYPE_UINT8, .rank = 1, .align = 1, .bytes = elements
    };
    for (int d = 0; d < 8; d++)
        info.sizes[d] = 1;
    info.sizes[0] = elements;
    info.strides[0] = 1;
    return info;
}

static inline void sample_init(sample *s)
{
    memset(s, 0, sizeof *s);
    s->buffers[0] = sample_buffer(OPJIT_BUFFER_INPUT, SAMPLE_ELEMENTS);
    s->buffers[1] = sample_buffer(OPJIT_BUFFER_OUTPUT, SAMPLE_ELEMENTS);
    s->buffers[2] = sample_buffer(OPJIT_BUFFER_CONSTANT, SAMPLE_ELEMENTS);
    s->names[0] = "InputTensor";
    s->names[1] = "OutputTensor";
    s->names[2] = "Table";
    s->param = (opjit_param_info){ DML_TENSOR_DATA_TYPE_INT32, 0, -3, 100 };
    s->param_name = "Begin";
    s->steps[0] = (opjit_step_info){ OPJIT_STEP_STAGE, SAMPLE_ADD_ONE, SAMPLE_ELEMENTS, 4 };
    s->steps[1] = (opjit_step_info){ OPJIT_STEP_STAGE, SAMPLE_ADD_PARAM, SAMPLE_ELEMENTS, 4 };
    s->variants[0] = (opjit_variant_info){ 0, 0, 1 };
    s->source = (rt_meta_source){ .name = "sample",
                                  .target = "cpu:x86-64-v1",
                                  .level = OPJIT_LEVEL_QUICK,
                                  .inputs = 1,
                                  .outputs = 1,
                                  .steps = 1,
                                  .variants = 1,
                                  .unproven_bounds = 2 };
    s->code_size = sizeof sample_code;
}

/* Adds late parameter 0 instead of 1. */
static inline void sample_use_param(sample *s)
{
    s->source.params = 1;
    s->source.steps = 2;
    s->variants[0] = (opjit_variant_info){ 0, 1, 1 };
}

static inline opjit_status sample_build(sample *s, rt_bytes *out, const opjit_allocator *a, opjit_error *error)
{
    s->source.buffers = s->buffers;
    s->source.buffer_names = s->names;
    s->source.param_infos = &s->param;
    s->source.param_names = &s->param_name;
    s->source.step_infos = s->steps;
    s->source.variant_infos = s->variants;
    opjit_rt_bytes_init(out, a);
    return opjit_rt_image_build(&s->source, sample_code, s->code_size, out, error);
}

static inline opjit_status sample_kernel(sample *s, rt_core *core, void *const *constants, const rt_kernel_hooks *hooks,
                                         opjit_kernel **out, opjit_error *error)
{
    rt_bytes image;
    opjit_status status = sample_build(s, &image, &core->allocator, error);
    *out = NULL;
    if (status == OPJIT_OK)
        status = opjit_rt_kernel_create(core, image.data, image.size, constants, s->source.constants, hooks, NULL, out,
                                        error);
    opjit_rt_bytes_free(&image);
    return status;
}

#endif
