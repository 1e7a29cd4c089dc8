/* SPDX-License-Identifier: Apache-2.0 */
/* test_rt_kernel.c - kernels made from images by hand: what a call refuses, variants, parameters, constants, workspace,
 * executors that misbehave, the swap to the peak version, lifetimes. */
#include <check.h>
#include <pthread.h>
#include <stdlib.h>

#include "tests/unit/runtime/rt_sample.h"

static counting memory;
static opjit_context *context;
static sample s;
static opjit_kernel *kernel;
static opjit_error error;
static _Alignas(64) uint8_t in[64], out[64], space[4096];
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

static opjit_status interpret(void *user, uint32_t step, void *const *buffers, const uint64_t *params, void *shared,
                              void *scratch, uint64_t begin, uint64_t end, opjit_error *e)
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

static void count_destroy(void *user)
{
    (void)user;
    atomic_fetch_add(&hook.destroyed, 1);
}

static const rt_kernel_hooks interpreting = { .interpret = interpret, .destroy = count_destroy };

static void setup(void)
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

static void teardown(void)
{
    opjit_kernel_release(kernel);
    opjit_context_destroy(context);
    ck_assert_int_eq(memory.live, 0);
    ck_assert_int_eq(memory.bytes, 0);
}

static void create(const rt_kernel_hooks *hooks)
{
    if (hooks != NULL && hooks->interpret != NULL)
        s.code_size = 0;
    ck_assert_msg(sample_kernel(&s, context->core, NULL, hooks, &kernel, &error) == OPJIT_OK, "%s", error.message);
}

static void expect_added(int added, const uint8_t *from)
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

#if defined(__x86_64__)
START_TEST(calls_code)
{
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    create(NULL);
    ck_assert_msg(opjit_kernel_call(kernel, &call, &error) == OPJIT_OK, "%s", error.message);
    expect_added(1, in);
    ck_assert_int_eq(opjit_kernel_get_info(kernel, &info, &error), OPJIT_OK);
    ck_assert_str_eq(info.name, "sample");
    ck_assert_str_eq(info.target, "cpu:x86-64-v1");
    ck_assert(info.flags == 0 && info.inputs == 1 && info.outputs == 1 && info.buffer_count == 2 &&
              info.param_count == 0);
    ck_assert(info.code_bytes == sizeof sample_code && info.workspace_bytes == 0 && info.level == OPJIT_LEVEL_QUICK);
    ck_assert_uint_eq(info.buffers[1].bytes, SAMPLE_ELEMENTS);
    ck_assert_uint_eq(info.unproven_bounds, 2);
}
END_TEST

START_TEST(outlives_its_context)
{
    create(NULL);
    opjit_kernel_retain(kernel);
    opjit_context_destroy(context);
    context = NULL;
    opjit_kernel_release(kernel);
    ck_assert_int_eq(opjit_kernel_call(kernel, &call, NULL), OPJIT_OK);
    expect_added(1, in);
}
END_TEST

START_TEST(features_of_another_cpu)
{
    s.source.features[0] = UINT64_C(1) << RT_X86_AVX512FP16 | UINT64_C(1) << RT_X86_CLZERO; /* no CPU has both */
    ck_assert_int_eq(sample_kernel(&s, context->core, NULL, NULL, &kernel, &error), OPJIT_UNSUPPORTED);
    ck_assert_msg(strstr(error.message, "this CPU lacks") != NULL, "%s", error.message);
    ck_assert_ptr_null(kernel);
}
END_TEST
#endif

START_TEST(refuses_bindings)
{
    opjit_binding *b = bindings;
    s.buffers[1].align = 4;
    create(&interpreting);
    ck_assert_int_eq(opjit_kernel_call(NULL, &call, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_int_eq(opjit_kernel_call(kernel, NULL, &error), OPJIT_INVALID_ARGUMENT);
    call.binding_count = 3;
    EXPECT_REFUSED(OPJIT_INVALID_ARGUMENT, "call: 3 bindings given, 2 needed (1 inputs, 1 outputs)");
    call.binding_count = 2;
    call.bindings = NULL;
    EXPECT_REFUSED(OPJIT_INVALID_ARGUMENT, "call: bindings is NULL");
    call.bindings = bindings;
    call.reserved = 5;
    EXPECT_REFUSED(OPJIT_INVALID_ARGUMENT, "call: reserved is 5; allowed: 0");
    call.reserved = 0;
    call.param_count = 1;
    EXPECT_REFUSED(OPJIT_INVALID_ARGUMENT, "call: 1 parameters given, 0 needed");
    call.param_count = 0;
    b[0].data = NULL;
    EXPECT_REFUSED(OPJIT_INVALID_ARGUMENT, "binding 0 (InputTensor): data is NULL");
    b[0] = (opjit_binding){ in, 15 };
    EXPECT_REFUSED(OPJIT_INVALID_ARGUMENT, "binding 0 (InputTensor): 15 bytes given, 16 needed");
    b[0].bytes = 100; /* more is fine */
    b[1].data = out + 2;
    ck_assert_int_eq(opjit_kernel_call(kernel, &call, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_msg(strstr(error.message, "binding 1 (OutputTensor): data at 0x") == error.message, "%s", error.message);
    ck_assert_msg(strstr(error.message, "is not aligned to 4 bytes") != NULL, "%s", error.message);
    ck_assert_int_eq(hook.calls, 0);
    b[1].data = out + 4;
    ck_assert_int_eq(opjit_kernel_call(kernel, &call, &error), OPJIT_OK);
}
END_TEST

START_TEST(call_sizes)
{
    struct {
        opjit_call call;
        uint64_t tail;
    } newer = { call, 0 };
    struct older { /* before there were streams; what lies behind is not looked at */
        uint32_t struct_size, binding_count;
        const opjit_binding *bindings;
        const uint64_t *params;
        uint32_t param_count, reserved;
        opjit_binding workspace;
        const opjit_executor *executor;
    } older[2] = { { sizeof(struct older), 2, bindings, NULL, 0, 0, { NULL, 0 }, NULL },
                   { 1, 1, NULL, NULL, 1, 1, { NULL, 0 }, NULL } };
    create(&interpreting);
    newer.call.struct_size = sizeof newer;
    ck_assert_int_eq(opjit_kernel_call(kernel, &newer.call, &error), OPJIT_OK);
    newer.tail = 1;
    ck_assert_int_eq(opjit_kernel_call(kernel, &newer.call, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_int_eq(opjit_kernel_call(kernel, (const opjit_call *)(const void *)older, &error), OPJIT_OK);
    ck_assert_int_eq(hook.calls, 2);
    older[0].struct_size = 10; /* half of a pointer */
    ck_assert_int_eq(opjit_kernel_call(kernel, (const opjit_call *)(const void *)older, &error),
                     OPJIT_INVALID_ARGUMENT);
    ck_assert_str_eq(error.message,
                     "opjit_call: struct_size 10 is that of no version; set it with the _INIT macro (80)");
    ck_assert_int_eq(hook.calls, 2);
}
END_TEST

/* --- overlap ------------------------------------------------------------------------------------------------------ */

static const struct {
    const char *name;
    int input, output; /* offsets into one memory; output reaches 16 bytes, input too */
    uint32_t alias;
    const char *message; /* NULL: runs */
} overlaps[] = {
    { "apart", 0, 32, 0, NULL },
    { "output follows", 0, 16, 0, NULL },
    { "output before", 16, 0, 0, NULL },
    { "same, allowed", 8, 8, 1, NULL },
    { "same, not allowed", 8, 8, 0, "OutputTensor overlaps InputTensor: this kernel can't work in place there" },
    { "last byte", 0, 15, 1,
      "OutputTensor overlaps InputTensor: only the very same memory may be shared, and only where alias_inputs says "
      "so" },
    { "first byte", 15, 0, 1,
      "OutputTensor overlaps InputTensor: only the very same memory may be shared, and only where alias_inputs says "
      "so" },
};

START_TEST(overlap_row)
{
    uint8_t one[64] = { 0 };
    s.buffers[1].alias_inputs = overlaps[_i].alias;
    create(&interpreting);
    bindings[0].data = one + overlaps[_i].input;
    bindings[1].data = one + overlaps[_i].output;
    const opjit_status status = opjit_kernel_check_overlaps(kernel, bindings, 2, &error);
    ck_assert_int_eq(status, overlaps[_i].message == NULL ? OPJIT_OK : OPJIT_INVALID_ARGUMENT);
    ck_assert_str_eq(error.message, overlaps[_i].message == NULL ? "" : overlaps[_i].message);
    if (status != OPJIT_OK) {
        ck_assert_int_eq(error.index, 1);
        ck_assert_str_eq(error.value, "InputTensor");
    }
    if (overlaps[_i].message == NULL) {
        ck_assert_msg(opjit_kernel_call(kernel, &call, &error) == OPJIT_OK, "%s: %s", overlaps[_i].name, error.message);
    } else {
        ck_assert_int_eq(opjit_kernel_call(kernel, &call, &error), OPJIT_INVALID_ARGUMENT);
        ck_assert_str_eq(error.message, overlaps[_i].message);
        ck_assert_int_eq(hook.calls, 0);
    }
}
END_TEST

START_TEST(outputs_overlap_each_other)
{
    s.source.inputs = 0;
    s.source.outputs = 2;
    s.buffers[0].role = OPJIT_BUFFER_OUTPUT;
    s.names[0] = "First";
    create(&interpreting);
    bindings[1].data = in + 15;
    ck_assert_int_eq(opjit_kernel_call(kernel, &call, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_msg(strstr(error.message, "First overlaps OutputTensor") == error.message, "%s", error.message);
    ck_assert_int_eq(opjit_kernel_check_overlaps(kernel, bindings, 2, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_int_eq(opjit_kernel_check_overlaps(kernel, bindings, 1, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_str_eq(error.field, "binding_count");
    bindings[1].data = in + 16;
    ck_assert_int_eq(opjit_kernel_call(kernel, &call, &error), OPJIT_OK);
    bindings[0].data = NULL; /* addresses of a plan */
    bindings[1].data = (void *)(uintptr_t)16;
    ck_assert_int_eq(opjit_kernel_check_overlaps(kernel, bindings, 2, &error), OPJIT_OK);
}
END_TEST

START_TEST(variants_by_alias)
{
    s.buffers[1].alias_inputs = 1;
    s.source.steps = 2;
    s.source.variants = 2;
    s.variants[0] = (opjit_variant_info){ 1, 1, 1 }; /* in place: step 1 */
    s.variants[1] = (opjit_variant_info){ 0, 0, 1 };
    create(&interpreting);
    ck_assert_int_eq(opjit_kernel_call(kernel, &call, &error), OPJIT_OK);
    ck_assert_uint_eq(hook.last_step, 0);
    bindings[1].data = in;
    ck_assert_int_eq(opjit_kernel_call(kernel, &call, &error), OPJIT_OK);
    ck_assert_uint_eq(hook.last_step, 1);
}
END_TEST

/* --- parameters --------------------------------------------------------------------------------------------------- */

static const struct {
    opjit_param_info info;
    uint64_t value;
    const char *message; /* NULL: fine */
} params[] = {
    { { DML_TENSOR_DATA_TYPE_INT32, 0, -3, 100 }, (uint64_t)-3, NULL },
    { { DML_TENSOR_DATA_TYPE_INT32, 0, -3, 100 }, 100, NULL },
    { { DML_TENSOR_DATA_TYPE_INT32, 0, -3, 100 }, 101, "parameter 0 (Begin): 101 is outside of -3 to 100 (INT32)" },
    { { DML_TENSOR_DATA_TYPE_INT32, 0, -3, 100 },
      (uint64_t)-4,
      "parameter 0 (Begin): -4 is outside of -3 to 100 (INT32)" },
    { { DML_TENSOR_DATA_TYPE_INT32, 0, INT32_MIN, INT32_MAX },
      UINT32_MAX, /* zero-extended where it should be by sign */
      "parameter 0 (Begin): 4294967295 is outside of -2147483648 to 2147483647 (INT32)" },
    { { DML_TENSOR_DATA_TYPE_UINT8, 0, 0, 0 }, 1, "parameter 0 (Begin): 1 is outside of 0 to 0 (UINT8)" },
    { { DML_TENSOR_DATA_TYPE_UINT64, 0, INT64_MIN, INT64_MAX }, UINT64_MAX, NULL },
    { { DML_TENSOR_DATA_TYPE_UINT64, 0, 0, INT64_MAX },
      UINT64_MAX,
      "parameter 0 (Begin): -1 is outside of 0 to 9223372036854775807 (UINT64)" },
    { { DML_TENSOR_DATA_TYPE_FLOAT32, 0, 0, 0 }, 0xff800000, NULL },
    { { DML_TENSOR_DATA_TYPE_FLOAT32, 0, 0, 0 },
      UINT64_C(0x100000000),
      "parameter 0 (Begin): 0x100000000 is no FLOAT32; allowed: the value's bits, zero-extended" },
    { { DML_TENSOR_DATA_TYPE_FLOAT16, 0, 0, 0 },
      0x10000,
      "parameter 0 (Begin): 0x10000 is no FLOAT16; allowed: the value's bits, zero-extended" },
    { { DML_TENSOR_DATA_TYPE_FLOAT64, 0, 0, 0 }, UINT64_MAX, NULL },
};

START_TEST(param_row)
{
    sample_use_param(&s);
    s.param = params[_i].info;
    create(&interpreting);
    call.params = &params[_i].value;
    call.param_count = 1;
    if (params[_i].message == NULL) {
        ck_assert_msg(opjit_kernel_call(kernel, &call, &error) == OPJIT_OK, "%s", error.message);
        expect_added((int)params[_i].value, in);
    } else {
        EXPECT_REFUSED(OPJIT_INVALID_ARGUMENT, params[_i].message);
    }
    call.params = NULL;
    ck_assert_int_eq(opjit_kernel_call(kernel, &call, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_str_eq(error.message, "call: params is NULL");
}
END_TEST

/* --- constants and many buffers ----------------------------------------------------------------------------------- */

static opjit_status copy_constant(void *user, uint32_t step, void *const *buffers, const uint64_t *p, void *shared,
                                  void *scratch, uint64_t begin, uint64_t end, opjit_error *e)
{
    (void)user, (void)step, (void)p, (void)shared, (void)scratch, (void)e;
    memcpy((uint8_t *)buffers[1] + begin, (const uint8_t *)buffers[2] + begin, (size_t)(end - begin));
    return OPJIT_OK;
}

START_TEST(constants)
{
    static uint8_t table[SAMPLE_ELEMENTS] = { 9, 8, 7 };
    const rt_kernel_hooks hooks = { .interpret = copy_constant };
    void *pointers[1] = { NULL };
    s.source.constants = 1;
    s.code_size = 0;
    ck_assert_int_eq(sample_kernel(&s, context->core, NULL, &hooks, &kernel, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_int_eq(sample_kernel(&s, context->core, pointers, &hooks, &kernel, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_str_eq(error.message, "constant Table is NULL");
    pointers[0] = table;
    ck_assert_int_eq(sample_kernel(&s, context->core, pointers, &hooks, &kernel, &error), OPJIT_OK);
    pointers[0] = NULL; /* the array was copied */
    ck_assert_int_eq(opjit_kernel_call(kernel, &call, &error), OPJIT_OK);
    ck_assert_mem_eq(out, table, sizeof table);
    bindings[1].data = table + 1; /* would write into what the kernel reads */
    ck_assert_int_eq(opjit_kernel_call(kernel, &call, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_msg(strstr(error.message, "OutputTensor overlaps Table") == error.message, "%s", error.message);
}
END_TEST

START_TEST(workspace_on_a_constant)
{
    const rt_kernel_hooks hooks = { .interpret = copy_constant };
    uint8_t before[sizeof space];
    void *pointers[1] = { space + 127 }; /* the last byte of it */
    s.source.constants = 1;
    s.source.shared_size = 128;
    s.code_size = 0;
    memset(space, 7, sizeof space);
    memcpy(before, space, sizeof space);
    ck_assert_int_eq(sample_kernel(&s, context->core, pointers, &hooks, &kernel, &error), OPJIT_OK);
    call.workspace = (opjit_binding){ space, 128 };
    ck_assert_int_eq(opjit_kernel_call(kernel, &call, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_str_eq(error.message, "workspace overlaps Table");
    ck_assert_mem_eq(space, before, sizeof space);
    opjit_kernel_release(kernel);
    pointers[0] = space + 128;
    ck_assert_int_eq(sample_kernel(&s, context->core, pointers, &hooks, &kernel, &error), OPJIT_OK);
    ck_assert_int_eq(opjit_kernel_call(kernel, &call, &error), OPJIT_OK);
}
END_TEST

#if defined(__x86_64__)
START_TEST(parameters_under_an_output)
{
    alignas(8) uint8_t memory_of_both[SAMPLE_ELEMENTS] = { 5 };
    sample_use_param(&s);
    s.source.features[0] = opjit_rt_level_features(RT_ARCH_X86_64, 1);
    ck_assert_int_eq(sample_kernel(&s, context->core, NULL, NULL, &kernel, &error), OPJIT_OK);
    in[0] = 1, in[15] = 2;
    bindings[1] = (opjit_binding){ memory_of_both, sizeof memory_of_both };
    call.params = (const uint64_t *)(const void *)memory_of_both;
    call.param_count = 1;
    ck_assert_msg(opjit_kernel_call(kernel, &call, &error) == OPJIT_OK, "%s", error.message);
    ck_assert_uint_eq(memory_of_both[0], 6);
    ck_assert_uint_eq(memory_of_both[15], 7);
}
END_TEST
#endif

START_TEST(more_buffers_than_the_stack_holds)
{
    enum { MANY = 100 };
    static opjit_buffer_info infos[MANY + 1];
    static opjit_binding many[MANY + 1];
    rt_bytes image;
    for (int i = 0; i < MANY; i++) {
        infos[i] = sample_buffer(OPJIT_BUFFER_INPUT, SAMPLE_ELEMENTS);
        many[i] = bindings[0];
    }
    infos[MANY] = sample_buffer(OPJIT_BUFFER_OUTPUT, SAMPLE_ELEMENTS);
    many[MANY] = bindings[1];
    s.source.inputs = MANY;
    s.source.buffers = infos;
    s.source.step_infos = s.steps;
    s.source.variant_infos = s.variants;
    opjit_rt_bytes_init(&image, &context->core->allocator);
    ck_assert_int_eq(opjit_rt_image_build(&s.source, NULL, 0, &image, &error), OPJIT_OK);
    ck_assert_int_eq(
        opjit_rt_kernel_create(context->core, image.data, image.size, NULL, 0, &interpreting, NULL, &kernel, &error),
        OPJIT_OK);
    opjit_rt_bytes_free(&image);
    call.bindings = many;
    call.binding_count = MANY + 1;
    in[0] = 1;
    ck_assert_msg(opjit_kernel_call(kernel, &call, &error) == OPJIT_OK, "%s", error.message);
    memory.fail_at = memory.calls + 1;
    ck_assert_int_eq(opjit_kernel_call(kernel, &call, &error), OPJIT_OUT_OF_MEMORY);
    many[MANY].data = in + 8;
    ck_assert_int_eq(opjit_kernel_call(kernel, &call, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_msg(strstr(error.message, "? overlaps ?") == error.message, "%s", error.message); /* they have no names */
}
END_TEST

/* --- workspace ---------------------------------------------------------------------------------------------------- */

START_TEST(workspace)
{
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    s.source.shared_size = 100;
    s.source.scratch_size = 50;
    hook.scratch_size = 64;
    create(&interpreting);
    ck_assert_int_eq(opjit_kernel_get_info(kernel, &info, &error), OPJIT_OK);
    ck_assert_uint_eq(info.workspace_bytes, 128 + 64);
    ck_assert_int_eq(opjit_kernel_call(kernel, &call, &error), OPJIT_OK); /* allocated */
    ck_assert_uint_eq((uintptr_t)hook.shared % 64, 0);
    memset(out, 0xee, sizeof out);
    ck_assert_int_eq(opjit_cache_clear(context, &error), OPJIT_OK);
    memory.fail_at = memory.calls + 1;
    EXPECT_REFUSED(OPJIT_OUT_OF_MEMORY, "out of memory");
    memory.fail_at = 0;
    call.workspace = (opjit_binding){ space, 191 };
    EXPECT_REFUSED(OPJIT_INVALID_ARGUMENT, "workspace: 191 bytes given, 192 needed for 1 workers");
    call.workspace = (opjit_binding){ NULL, 192 };
    EXPECT_REFUSED(OPJIT_INVALID_ARGUMENT, "workspace: 192 bytes at NULL");
    call.workspace = (opjit_binding){ space + 32, 192 };
    ck_assert_int_eq(opjit_kernel_call(kernel, &call, &error), OPJIT_INVALID_ARGUMENT);
    call.workspace = (opjit_binding){ space, 192 };
    bindings[0].data = space + 191;
    EXPECT_REFUSED(OPJIT_INVALID_ARGUMENT, "workspace overlaps InputTensor");
    bindings[0].data = in;
    const int before = memory.calls;
    ck_assert_int_eq(opjit_kernel_call(kernel, &call, &error), OPJIT_OK);
    ck_assert_int_eq(memory.calls, before);
    ck_assert_ptr_eq(hook.shared, space);
    ck_assert_int_eq(hook.wrong_scratch, 0);
}
END_TEST

/* The context keeps one for the next call that brings none, until it is told not to, or is gone. */
START_TEST(spare_workspace)
{
    s.source.shared_size = 4000;
    create(&interpreting);
    const int live = memory.live;
    ck_assert_int_eq(opjit_kernel_call(kernel, &call, &error), OPJIT_OK);
    ck_assert_int_eq(memory.live, live + 1);
    const int before = memory.calls;
    const void *const first = hook.shared;
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(opjit_kernel_call(kernel, &call, &error), OPJIT_OK);
    ck_assert_int_eq(memory.calls, before);
    ck_assert_ptr_eq(hook.shared, first);
    size_t few = 64, many = 5000, nested = 64;
    void *const small = opjit_rt_workspace_take(context->core, &few); /* there is one of 4032 bytes */
    ck_assert(small == first && few == 4032);
    void *const other = opjit_rt_workspace_take(context->core, &nested); /* and no second one */
    ck_assert(other != NULL && other != first && nested == 64);
    opjit_rt_workspace_give(context->core, small, few);
    opjit_rt_workspace_give(context->core, other, nested);
    ck_assert_int_eq(memory.live, live + 1);
    void *const large = opjit_rt_workspace_take(context->core, &many);
    ck_assert(large != NULL && many == 5000 && memory.live == live + 1);
    opjit_rt_workspace_give(context->core, large, many);
    ck_assert_int_eq(opjit_cache_clear(context, &error), OPJIT_OK);
    ck_assert_int_eq(memory.live, live);
    ck_assert_int_eq(opjit_kernel_call(kernel, &call, &error), OPJIT_OK);
}
END_TEST

/* --- executors ---------------------------------------------------------------------------------------------------- */

typedef void (*piece_fn)(void *arg, uint32_t worker, uint64_t begin, uint64_t end);

static opjit_status run_well(void *user, uint64_t extent, uint64_t grain, piece_fn body, void *arg)
{
    uint32_t worker = 0;
    (void)user;
    for (uint64_t i = 0; i < extent; i += grain)
        body(arg, worker++ % 3, i, i + grain < extent ? i + grain : extent);
    return OPJIT_OK;
}
static opjit_status run_half(void *user, uint64_t extent, uint64_t grain, piece_fn body, void *arg)
{
    (void)user, (void)grain;
    body(arg, 0, 0, extent / 2);
    return OPJIT_OK;
}
static opjit_status run_nothing(void *user, uint64_t extent, uint64_t grain, piece_fn body, void *arg)
{
    (void)user, (void)extent, (void)grain, (void)body, (void)arg;
    return OPJIT_OK;
}
static opjit_status run_twice(void *user, uint64_t extent, uint64_t grain, piece_fn body, void *arg)
{
    (void)user, (void)grain;
    body(arg, 0, 0, extent);
    body(arg, 0, 0, extent);
    return OPJIT_OK;
}
static opjit_status run_bad_worker(void *user, uint64_t extent, uint64_t grain, piece_fn body, void *arg)
{
    (void)user, (void)grain;
    body(arg, 3, 0, extent);
    return OPJIT_OK;
}
static opjit_status run_beyond(void *user, uint64_t extent, uint64_t grain, piece_fn body, void *arg)
{
    (void)user;
    body(arg, 0, 0, extent + grain);
    return OPJIT_OK;
}
static opjit_status run_off_grain(void *user, uint64_t extent, uint64_t grain, piece_fn body, void *arg)
{
    (void)user, (void)grain;
    body(arg, 0, 0, 3);
    body(arg, 0, 3, extent);
    return OPJIT_OK;
}
static opjit_status run_backwards(void *user, uint64_t extent, uint64_t grain, piece_fn body, void *arg)
{
    (void)user, (void)grain;
    body(arg, 0, extent, 0);
    return OPJIT_OK;
}
static opjit_status run_cancelled(void *user, uint64_t extent, uint64_t grain, piece_fn body, void *arg)
{
    (void)user, (void)extent, (void)grain, (void)body, (void)arg;
    return OPJIT_CANCELLED;
}

#define BOUNDS "executor: a piece is empty, outside of the extent or not bounded by multiples of grain"
static const struct {
    const char *name;
    opjit_executor executor;
    opjit_status status;
    const char *message;
} executors[] = {
    { "well", { NULL, 3, run_well }, OPJIT_OK, "" },
    { "no function", { NULL, 3, NULL }, OPJIT_INVALID_ARGUMENT, "executor: run is NULL" },
    { "no workers", { NULL, 0, run_well }, OPJIT_INVALID_ARGUMENT, "executor: workers is 0; allowed: 1 and more" },
    { "too much scratch", { NULL, UINT32_MAX, run_well }, OPJIT_OUT_OF_MEMORY, "out of memory" },
    { "half", { NULL, 3, run_half }, OPJIT_INVALID_ARGUMENT, "executor covered 8 of 16 iterations" },
    { "nothing", { NULL, 3, run_nothing }, OPJIT_INVALID_ARGUMENT, "executor covered 0 of 16 iterations" },
    { "twice", { NULL, 3, run_twice }, OPJIT_INVALID_ARGUMENT, "executor covered 32 of 16 iterations" },
    { "bad worker",
      { NULL, 3, run_bad_worker },
      OPJIT_INVALID_ARGUMENT,
      "executor: a worker's index is not below workers" },
    { "beyond", { NULL, 3, run_beyond }, OPJIT_INVALID_ARGUMENT, BOUNDS },
    { "off grain", { NULL, 3, run_off_grain }, OPJIT_INVALID_ARGUMENT, BOUNDS },
    { "backwards", { NULL, 3, run_backwards }, OPJIT_INVALID_ARGUMENT, BOUNDS },
    { "cancelled", { NULL, 3, run_cancelled }, OPJIT_CANCELLED, "executor returned CANCELLED" },
};

START_TEST(executor_row)
{
    s.source.scratch_size = _i == 3 ? UINT64_C(1) << 36 : 64;
    hook.scratch_size = 64;
    create(&interpreting);
    call.executor = &executors[_i].executor;
    ck_assert_msg(opjit_kernel_call(kernel, &call, &error) == executors[_i].status, "%s", executors[_i].name);
    ck_assert_str_eq(error.message, executors[_i].message);
    ck_assert_int_eq(hook.wrong_scratch, 0);
    if (executors[_i].status == OPJIT_OK)
        expect_added(1, in);
}
END_TEST

START_TEST(failure_in_a_piece)
{
    static const opjit_executor executor = { NULL, 3, run_well };
    create(&interpreting);
    call.executor = &executor;
    hook.fail = true;
    ck_assert_int_eq(opjit_kernel_call(kernel, &call, &error), OPJIT_LIMIT);
    ck_assert_str_eq(error.message, "iteration 0 refused"); /* the first one's */
    ck_assert_int_eq(error.status, OPJIT_LIMIT);
    call.executor = NULL;
    ck_assert_int_eq(opjit_kernel_call(kernel, &call, NULL), OPJIT_LIMIT);
}
END_TEST

/* --- life --------------------------------------------------------------------------------------------------------- */

START_TEST(hooks_are_destroyed_once)
{
    create(&interpreting);
    opjit_kernel_retain(kernel);
    opjit_kernel_release(kernel);
    ck_assert_int_eq(hook.destroyed, 0);
    opjit_kernel_release(kernel);
    kernel = NULL;
    ck_assert_int_eq(hook.destroyed, 1);
    opjit_kernel_retain(NULL);
    opjit_kernel_release(NULL);
    s.code_size = 0; /* no code, no interpreter; and on failure the hooks stay the caller's */
    const rt_kernel_hooks hooks = { .destroy = count_destroy };
    ck_assert_int_eq(sample_kernel(&s, context->core, NULL, &hooks, &kernel, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_int_eq(hook.destroyed, 1);
}
END_TEST

START_TEST(create_without_memory)
{
    bool done = false;
    rt_bytes image;
    ck_assert_int_eq(sample_build(&s, &image, &opjit_rt_default_allocator, &error), OPJIT_OK);
    for (int n = 1; !done; n++) {
        const int live = memory.live;
        memory.fail_at = memory.calls + n;
        done = opjit_rt_kernel_create(context->core, image.data, image.size, NULL, 0, &interpreting, NULL, &kernel,
                                      &error) == OPJIT_OK;
        ck_assert(done || error.status == OPJIT_OUT_OF_MEMORY);
        ck_assert(done || memory.live == live);
    }
    memory.fail_at = 0;
    opjit_rt_bytes_free(&image);
}
END_TEST

START_TEST(custom_steps_are_refused)
{
    s.steps[0].kind = OPJIT_STEP_CUSTOM;
    s.code_size = 0;
    ck_assert_int_eq(sample_kernel(&s, context->core, NULL, &interpreting, &kernel, &error), OPJIT_UNSUPPORTED);
}
END_TEST

START_TEST(info_rules)
{
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    rt_kernel_hooks hooks = interpreting;
    hooks.from_disk = true;
    create(&hooks);
    ck_assert_int_eq(opjit_kernel_get_info(NULL, &info, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_int_eq(opjit_kernel_get_info(kernel, NULL, &error), OPJIT_INVALID_ARGUMENT);
    info.struct_size = 0x5a5a5a5a; /* never set: nothing is written */
    ck_assert_int_eq(opjit_kernel_get_info(kernel, &info, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_ptr_null(info.name);
    info.struct_size = offsetof(opjit_kernel_info, unproven_bounds); /* the first version */
    info.unproven_bounds = 77;
    ck_assert_int_eq(opjit_kernel_get_info(kernel, &info, &error), OPJIT_OK);
    ck_assert_uint_eq(info.unproven_bounds, 77);
    info.struct_size = sizeof info;
    ck_assert_int_eq(opjit_kernel_get_info(kernel, &info, &error), OPJIT_OK);
    ck_assert_str_eq(info.name, "sample");
    ck_assert_uint_eq(info.flags, OPJIT_KERNEL_INTERPRETED | OPJIT_KERNEL_FROM_DISK);
    ck_assert_int_eq(opjit_kernel_optimize(kernel, &error), OPJIT_OK); /* interpreted: nothing to do */
    ck_assert_int_eq(opjit_kernel_optimize(NULL, &error), OPJIT_INVALID_ARGUMENT);
}
END_TEST

/* --- the peak version --------------------------------------------------------------------------------------------- */
#if defined(__x86_64__)
static struct {
    sample s;
    opjit_status status;
    atomic_int calls;
} peak;

static opjit_status make_peak(void *user, const atomic_bool *cancel, rt_bytes *image, opjit_error *e)
{
    (void)user, (void)cancel;
    atomic_fetch_add(&peak.calls, 1);
    if (peak.status != OPJIT_OK)
        return opjit_rt_error_set(e, peak.status, "no peak");
    opjit_rt_bytes_free(image);
    return sample_build(&peak.s, image, image->allocator, e);
}

static const rt_kernel_hooks optimizing = { .optimize = make_peak, .destroy = count_destroy };

static void prepare_peak(void)
{
    memset(&peak, 0, sizeof peak);
    s.param = (opjit_param_info){ DML_TENSOR_DATA_TYPE_UINT8, 0, 0, 255 };
    sample_use_param(&s);
    s.variants[0].first_step = 0; /* quick: adds 1, whatever the parameter */
    peak.s = s;
    peak.s.source.level = OPJIT_LEVEL_PEAK;
    peak.s.variants[0].first_step = 1;
}

START_TEST(optimize)
{
    static const uint64_t five = 5;
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    prepare_peak();
    create(&optimizing);
    call.params = &five;
    call.param_count = 1;
    ck_assert_int_eq(opjit_kernel_call(kernel, &call, &error), OPJIT_OK);
    expect_added(1, in);
    peak.status = OPJIT_CODEGEN;
    ck_assert_int_eq(opjit_kernel_optimize(kernel, &error), OPJIT_CODEGEN);
    peak.status = OPJIT_OK;
    peak.s.buffers[0].align = 2; /* another kernel's image */
    ck_assert_int_eq(opjit_kernel_optimize(kernel, &error), OPJIT_INTERNAL);
    ck_assert_int_eq(opjit_kernel_call(kernel, &call, &error), OPJIT_OK);
    expect_added(1, in);
    peak.s.buffers[0].align = 1;
    ck_assert_msg(opjit_kernel_optimize(kernel, &error) == OPJIT_OK, "%s", error.message);
    ck_assert_int_eq(opjit_kernel_call(kernel, &call, &error), OPJIT_OK);
    expect_added(5, in);
    ck_assert_int_eq(opjit_kernel_get_info(kernel, &info, &error), OPJIT_OK);
    ck_assert_int_eq(info.level, OPJIT_LEVEL_PEAK);
    ck_assert_int_eq(peak.calls, 3);
    ck_assert_int_eq(opjit_kernel_optimize(kernel, &error), OPJIT_OK); /* is peak already */
    ck_assert_int_eq(peak.calls, 3);
}
END_TEST

static opjit_status ask_for_peak(void *user, const atomic_bool *cancel, rt_bytes *image, opjit_error *e)
{
    opjit_error refused;
    ck_assert_int_eq(opjit_kernel_optimize(kernel, &refused), OPJIT_INVALID_ARGUMENT);
    ck_assert_str_eq(refused.message, "this thread is optimizing that kernel already: an event sink can't ask for it");
    return make_peak(user, cancel, image, e);
}

/* As an event sink may that is told of the compile. */
START_TEST(optimize_while_optimizing)
{
    static const rt_kernel_hooks asking = { .optimize = ask_for_peak, .destroy = count_destroy };
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    prepare_peak();
    create(&asking);
    ck_assert_msg(opjit_kernel_optimize(kernel, &error) == OPJIT_OK, "%s", error.message);
    ck_assert_int_eq(opjit_kernel_get_info(kernel, &info, &error), OPJIT_OK);
    ck_assert_int_eq(info.level, OPJIT_LEVEL_PEAK);
}
END_TEST

/* A workspace sized before the swap still serves: with the version it was made for. */
START_TEST(optimize_grows_the_workspace)
{
    static const uint64_t five = 5;
    prepare_peak();
    s.source.shared_size = 64;
    peak.s.source.shared_size = 128;
    create(&optimizing);
    call.params = &five;
    call.param_count = 1;
    call.workspace = (opjit_binding){ space, 64 };
    ck_assert_int_eq(opjit_kernel_optimize(kernel, &error), OPJIT_OK);
    ck_assert_int_eq(opjit_kernel_call(kernel, &call, &error), OPJIT_OK);
    expect_added(1, in);
    call.workspace.bytes = 128;
    ck_assert_int_eq(opjit_kernel_call(kernel, &call, &error), OPJIT_OK);
    expect_added(5, in);
    call.workspace.bytes = 63;
    ck_assert_int_eq(opjit_kernel_call(kernel, &call, &error), OPJIT_INVALID_ARGUMENT);
}
END_TEST

static void *call_often(void *failures)
{
    static const uint64_t five = 5;
    uint8_t mine[SAMPLE_ELEMENTS];
    opjit_binding b[2] = { bindings[0], { mine, sizeof mine } };
    opjit_call c = call;
    c.bindings = b;
    c.params = &five;
    c.param_count = 1;
    for (int i = 0; i < 20000; i++)
        if (opjit_kernel_call(kernel, &c, NULL) != OPJIT_OK || (mine[3] != 4 && mine[3] != 8))
            atomic_fetch_add((atomic_int *)failures, 1);
    return NULL;
}

START_TEST(optimize_during_calls)
{
    atomic_int failures = 0;
    pthread_t threads[3];
    prepare_peak();
    create(&optimizing);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, call_often, &failures), 0);
    ck_assert_int_eq(opjit_kernel_optimize(kernel, &error), OPJIT_OK);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    ck_assert_int_eq(failures, 0);
}
END_TEST
#endif

static TCase *all_tests(void)
{
    TCase *tc = tcase_create("kernel");
    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, refuses_bindings);
    tcase_add_test(tc, call_sizes);
    tcase_add_loop_test(tc, overlap_row, 0, sizeof overlaps / sizeof *overlaps);
    tcase_add_test(tc, outputs_overlap_each_other);
    tcase_add_test(tc, variants_by_alias);
    tcase_add_loop_test(tc, param_row, 0, sizeof params / sizeof *params);
    tcase_add_test(tc, constants);
    tcase_add_test(tc, workspace_on_a_constant);
#if defined(__x86_64__)
    tcase_add_test(tc, parameters_under_an_output);
#endif
    tcase_add_test(tc, more_buffers_than_the_stack_holds);
    tcase_add_test(tc, workspace);
    tcase_add_test(tc, spare_workspace);
    tcase_add_loop_test(tc, executor_row, 0, sizeof executors / sizeof *executors);
    tcase_add_test(tc, failure_in_a_piece);
    tcase_add_test(tc, hooks_are_destroyed_once);
    tcase_add_test(tc, create_without_memory);
    tcase_add_test(tc, custom_steps_are_refused);
    tcase_add_test(tc, info_rules);
#if defined(__x86_64__)
    tcase_add_test(tc, calls_code);
    tcase_add_test(tc, outlives_its_context);
    tcase_add_test(tc, features_of_another_cpu);
    tcase_add_test(tc, optimize);
    tcase_add_test(tc, optimize_while_optimizing);
    tcase_add_test(tc, optimize_grows_the_workspace);
    tcase_add_test(tc, optimize_during_calls);
#endif
    return tc;
}

int main(void)
{
    Suite *suite = suite_create("rt.kernel");
    SRunner *runner = srunner_create(suite);
    int failed;

    suite_add_tcase(suite, all_tests());
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
