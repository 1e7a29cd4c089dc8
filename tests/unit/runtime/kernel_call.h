/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_call.h - shared by tests of kernels made from images by hand: a context whose memory is counted, a kernel of
 * one or two buffers, a call, and an interpreter hook that counts what it is asked for. */
#ifndef OPJIT_TESTS_UNIT_KERNEL_CALL_H
#define OPJIT_TESTS_UNIT_KERNEL_CALL_H

#include <check.h>

#include "tests/unit/runtime/rt_sample.h"

static counting memory;
static opjit_context *context;
static sample s;
static opjit_kernel *kernel;
static opjit_error error;
static _Alignas(64) uint8_t in[64], out[64];
static opjit_binding bindings[3];
static opjit_call call;

/* What the interpreter hook saw and does. */
static struct {
    atomic_int calls, wrong_scratch;
    uint64_t scratch_size;
    uint8_t *shared;
    bool fail;
    atomic_int destroyed;
    uint32_t last_step;
} hook;

static inline opjit_status interpret(void *user, uint32_t step, void *const *buffers, const uint64_t *params,
                                     void *shared, void *scratch, uint64_t begin, uint64_t end, opjit_error *e)
{
    const uint8_t *a = buffers[0];
    uint8_t *b = buffers[1];
    (void)user;
    atomic_fetch_add(&hook.calls, 1);
    hook.shared = shared;
    hook.last_step = step;
    if (hook.scratch_size != 0 && (uintptr_t)scratch % 64 != 0)
        atomic_fetch_add(&hook.wrong_scratch, 1);
    if (hook.scratch_size != 0)
        memset(scratch, (int)begin, (size_t)hook.scratch_size); /* a sanitizer sees what is too small */
    if (hook.fail)
        return opjit_rt_error_set(e, OPJIT_LIMIT, "iteration %u refused", (unsigned)begin);
    for (uint64_t i = begin; i < end; i++)
        b[i] = (uint8_t)(a[i] + (params == NULL ? 1 : (int)params[0]));
    return OPJIT_OK;
}

static inline void count_destroy(void *user)
{
    (void)user;
    atomic_fetch_add(&hook.destroyed, 1);
}

static const rt_kernel_hooks interpreting = { .interpret = interpret, .destroy = count_destroy };

static inline void setup(void)
{
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
    const opjit_allocator a = counting_allocator(&memory, 0);
    options.allocator = &a;
    ck_assert_msg(opjit_context_create(&options, &context, &error) == OPJIT_OK, "%s", error.message);
    memset(&hook, 0, sizeof hook);
    sample_init(&s);
    for (uint8_t i = 0; i < 64; i++)
        in[i] = i, out[i] = 0xee;
    bindings[0] = (opjit_binding){ in, SAMPLE_ELEMENTS };
    bindings[1] = (opjit_binding){ out, SAMPLE_ELEMENTS };
    call = (opjit_call)OPJIT_CALL_INIT;
    call.bindings = bindings;
    call.binding_count = 2;
    kernel = NULL;
}

static inline void teardown(void)
{
    opjit_kernel_release(kernel);
    opjit_context_destroy(context);
    ck_assert_int_eq(memory.live, 0);
    ck_assert_int_eq(memory.bytes, 0);
}

static inline void create(const rt_kernel_hooks *hooks)
{
    if (hooks != NULL && hooks->interpret != NULL)
        s.code_size = 0;
    ck_assert_msg(sample_kernel(&s, context->core, NULL, hooks, &kernel, &error) == OPJIT_OK, "%s", error.message);
}

static inline void expect_added(int added, const uint8_t *from)
{
    for (int i = 0; i < SAMPLE_ELEMENTS; i++)
        ck_assert_uint_eq(out[i], (uint8_t)(from[i] + added));
    ck_assert_uint_eq(out[SAMPLE_ELEMENTS], 0xee);
}

#define EXPECT_REFUSED(status, text)                                        \
    do {                                                                    \
        ck_assert_int_eq(opjit_kernel_call(kernel, &call, &error), status); \
        ck_assert_str_eq(error.message, text);                              \
        ck_assert_uint_eq(out[0], 0xee);                                    \
    } while (0)

#endif
