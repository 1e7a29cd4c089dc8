/* SPDX-License-Identifier: Apache-2.0 */
/* checker.c - one case in one mode: operator, kernel, buffers, call, comparison. */
#include <opjit/ffi.h>

#include "tests/support/checker.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/machines/emulated.h"
#include "tests/reference/reference.h"
#include "tests/support/executors.h"

/* Everything that one run holds, released by one function. */
typedef struct run_state {
    const test_case *c;
    const test_mode *mode;
    test_random *random;
    test_late late;
    opjit_operator *op;
    opjit_kernel *kernel;
    opjit_closure *closure;
    test_buffer input, output;
    bool separate_input; /* the input is a buffer of its own */
    char *message;
    size_t message_size;
} run_state;

__attribute__((format(printf, 2, 3))) static test_outcome fail(run_state *s, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(s->message, s->message_size, format, arguments);
    va_end(arguments);
    return TEST_FAILED;
}

/* --- modes -------------------------------------------------------------------------------------------------------- */
static bool is_foreign(const test_mode *mode)
{
    rt_target target;
    return opjit_rt_target_parse(mode->target, &target, NULL) == OPJIT_OK && test_is_foreign(&target);
}

const test_mode *test_modes(const test_mode *own, size_t count, size_t *out_count)
{
    enum { MODES = 15 };
    static const test_mode foreign[MODES] = {
        { .name = "aarch64", .target = "cpu:aarch64", .level = OPJIT_LEVEL_QUICK },
        { .name = "aarch64 peak, pieces", .target = "cpu:aarch64", .level = OPJIT_LEVEL_PEAK, .how = TEST_PIECES },
        { .name = "aarch64, no caches", .target = "cpu:aarch64,l1=1024,l2=1024,l3=0", .level = OPJIT_LEVEL_QUICK },
        { .name = "sve, late", .target = "cpu:aarch64+sve", .level = OPJIT_LEVEL_QUICK, .late = 7 },
        { .name = "sve, 32 bytes", .target = "cpu:aarch64+sve,vec=32", .level = OPJIT_LEVEL_QUICK },
        { .name = "sve, 64 bytes, peak", .target = "cpu:aarch64+sve,vec=64", .level = OPJIT_LEVEL_PEAK },
        { .name = "rv64gc", .target = "cpu:rv64gc", .level = OPJIT_LEVEL_QUICK },
        { .name = "rv64gc peak, pieces", .target = "cpu:rv64gc", .level = OPJIT_LEVEL_PEAK, .how = TEST_PIECES },
        { .name = "rv64gcv, late", .target = "cpu:rv64gcv", .level = OPJIT_LEVEL_QUICK, .late = 7 },
        { .name = "rv64gcv, 32 bytes, peak", .target = "cpu:rv64gcv,vec=32", .level = OPJIT_LEVEL_PEAK },
        { .name = "rv64gcv, no caches", .target = "cpu:rv64gcv,l1=1024,l2=1024,l3=0", .level = OPJIT_LEVEL_QUICK },
        { .name = "AVX-512", .target = "cpu:x86-64-v4", .level = OPJIT_LEVEL_QUICK },
        { .name = "AVX-512 peak, pieces", .target = "cpu:x86-64-v4", .level = OPJIT_LEVEL_PEAK, .how = TEST_PIECES },
        { .name = "AVX-512, no caches", .target = "cpu:x86-64-v4,l1=1024,l2=1024,l3=0", .level = OPJIT_LEVEL_QUICK },
        { .name = "VNNI, late", .target = "cpu:x86-64-v4+avx512vnni", .level = OPJIT_LEVEL_QUICK, .late = 7 },
    };
    static const test_mode grids[] = {
        { .name = "simulated grid",
          .target = "nvptx:sm_90",
          .flags = OPJIT_COMPILE_INTERPRET,
          .level = OPJIT_LEVEL_QUICK },
        { .name = "simulated grid, late",
          .target = "nvptx:sm_80",
          .flags = OPJIT_COMPILE_INTERPRET,
          .level = OPJIT_LEVEL_QUICK,
          .late = 7 },
        { .name = "simulated grid, pieces",
          .target = "nvptx:sm_120",
          .flags = OPJIT_COMPILE_INTERPRET,
          .level = OPJIT_LEVEL_QUICK,
          .how = TEST_PIECES },
        { .name = "PTX", .target = "nvptx:sm_90", .level = OPJIT_LEVEL_QUICK },
        { .name = "PTX, late", .target = "nvptx:sm_80", .level = OPJIT_LEVEL_QUICK, .late = 7 },
        { .name = "PTX, peak", .target = "nvptx:sm_90", .level = OPJIT_LEVEL_PEAK },
    };
    static const test_mode opencl[] = {
        { .name = "SPIR-V", .target = "spirv", .level = OPJIT_LEVEL_QUICK },
        { .name = "SPIR-V, late", .target = "spirv", .level = OPJIT_LEVEL_QUICK, .late = 7 },
        { .name = "SPIR-V, peak", .target = "spirv", .level = OPJIT_LEVEL_PEAK },
        { .name = "SPIR-V, simulated grid",
          .target = "spirv",
          .flags = OPJIT_COMPILE_INTERPRET,
          .level = OPJIT_LEVEL_QUICK },
    };
    enum { INTERPRETED = 3 }; /* the first of them */
    static test_mode found[MODES];
    static size_t n; /* of foreign, once looked for */
    *out_count = sizeof grids / sizeof *grids - INTERPRETED;
    const char *device = getenv("OPJIT_TEST_DEVICE");
    if (device != NULL && strcmp(device, "opencl") != 0)
        return grids + INTERPRETED;
    *out_count = sizeof opencl / sizeof *opencl;
    if (device != NULL)
        return opencl;
    *out_count = sizeof grids / sizeof *grids;
    if (getenv("OPJIT_TEST_GRID") != NULL)
        return grids;
    *out_count = count;
    if (getenv("OPJIT_TEST_FOREIGN") == NULL)
        return own;
    for (size_t i = n != 0 ? MODES : 0; i < MODES; i++)
        if (test_can_run(foreign[i].target, true))
            found[n++] = foreign[i];
    *out_count = n;
    return found;
}

bool test_excused(const test_mode *mode, opjit_status status)
{
    return status == OPJIT_UNAVAILABLE && is_foreign(mode);
}

/* --- kernel ------------------------------------------------------------------------------------------------------- */
static test_outcome make_kernel(run_state *s, opjit_context *context)
{
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_error error = { 0 };
    opjit_status status = opjit_operator_create(context, &s->c->op, &s->op, &error);
    if (status == OPJIT_LIMIT && s->c->output.interleaved)
        return TEST_REFUSED;
    if (status != OPJIT_OK)
        return fail(s, "create: %s: %s", opjit_status_name(status), error.message);
    options.flags = s->mode->flags;
    options.level = s->mode->level;
    options.target = s->mode->target;
    options.late_count = s->late.count;
    options.late = s->late.names;
    status = test_compile_operator(context, s->op, &options, &s->kernel, &error);
    if (status != OPJIT_OK)
        return fail(s, "compile: %s: %s", opjit_status_name(status), error.message);
    return TEST_PASSED;
}

/* The kernel's information must match the descriptor. */
static test_outcome check_info(run_state *s)
{
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    opjit_error error = { 0 };
    const uint32_t inputs = s->c->has_input ? 1 : 0;
    const opjit_status status = opjit_kernel_get_info(s->kernel, &info, &error);
    if (status != OPJIT_OK)
        return fail(s, "info: %s: %s", opjit_status_name(status), error.message);
    if (info.inputs != inputs || info.outputs != 1 || info.param_count != s->late.count)
        return fail(s, "info: %" PRIu32 " inputs, %" PRIu32 " outputs, %" PRIu32 " params", info.inputs, info.outputs,
                    info.param_count);
    const opjit_buffer_info *out = &info.buffers[inputs];
    if (out->role != OPJIT_BUFFER_OUTPUT || out->dtype != (uint32_t)s->c->output.buffer.DataType ||
        out->bytes > s->c->output.bytes || out->align > s->c->output.alignment)
        return fail(s, "info of the output: role %" PRIu32 ", dtype %" PRIu32 ", %" PRIu64 " bytes, alignment %" PRIu32,
                    out->role, out->dtype, out->bytes, out->align);
    if (s->c->in_place && (out->alias_inputs & 1) == 0)
        return fail(s, "info: the output may not be the input, with equal layouts");
    if (((info.flags & OPJIT_KERNEL_INTERPRETED) != 0) !=
        ((s->mode->flags & OPJIT_COMPILE_INTERPRET) != 0 || is_foreign(s->mode)))
        return fail(s, "info: interpreted or not, unlike asked for");
    return TEST_PASSED;
}

/* --- buffers ------------------------------------------------------------------------------------------------------ */
static test_outcome make_buffers(run_state *s)
{
    const test_case *c = s->c;
    size_t alignment = c->output.alignment;
    if (c->in_place && c->input.alignment > alignment)
        alignment = c->input.alignment;
    s->separate_input = c->has_input && !c->in_place;
    if (!test_buffer_create(&s->output, s->random, c->output.bytes, alignment))
        return fail(s, "no memory for the output");
    if (s->separate_input && !test_buffer_create(&s->input, s->random, c->input.bytes, c->input.alignment))
        return fail(s, "no memory for the input");
    return TEST_PASSED;
}

/* Runs the reference on the copy of the output, with the buffers as they are now. */
static void expect(run_state *s)
{
    test_buffer_expect_unchanged(&s->output);
    /* In place the reference reads each element before it writes it, as the operator's document does. */
    const void *input = s->separate_input ? s->input.data : s->c->has_input ? s->output.expected : NULL;
    test_case_reference(s->c, input, s->output.expected);
}

/* Where NaNs may differ, makes all of the output's the same. */
static void unify_nans(const test_case *c, uint8_t *base)
{
    const ref_tensor t = ref_tensor_of(&c->output.desc);
    for (uint64_t e = 0; e < c->elements; e++) {
        uint32_t coordinates[8];
        ref_tensor_coordinates(&t, e, coordinates);
        const uint64_t offset = ref_tensor_offset(&t, coordinates);
        if (ref_is_nan(t.dtype, ref_load(&t, base, offset)))
            ref_store(&t, base, offset, UINT64_MAX);
    }
}

static test_outcome compare(run_state *s, const char *when)
{
    const uint32_t size = ref_dtype_size(s->c->output.buffer.DataType);
    int64_t at;
    if (s->separate_input && !test_buffer_compare(&s->input, &at))
        return fail(s, "%s: the input was changed at byte %" PRId64, when, at);
    if (test_buffer_compare(&s->output, &at))
        return TEST_PASSED;
    if (test_case_any_nan(s->c)) {
        unify_nans(s->c, s->output.data);
        unify_nans(s->c, s->output.expected);
        if (test_buffer_compare(&s->output, &at))
            return TEST_PASSED;
    }
    if (at < 0 || (uint64_t)at >= s->output.bytes)
        return fail(s, "%s: byte %" PRId64 " outside of the output's %zu bytes was written", when, at, s->output.bytes);
    const ref_tensor t = ref_tensor_of(&s->c->output.desc);
    const uint64_t offset = (uint64_t)at / size;
    return fail(s, "%s: output byte %" PRId64 " (element offset %" PRIu64 "): bits 0x%" PRIx64 ", expected 0x%" PRIx64,
                when, at, offset, ref_load(&t, s->output.data, offset), ref_load(&t, s->output.expected, offset));
}

/* --- calls -------------------------------------------------------------------------------------------------------- */
static test_outcome call_kernel(run_state *s)
{
    opjit_call call = OPJIT_CALL_INIT;
    opjit_binding bindings[2];
    opjit_error error = { 0 };
    test_executor executor;
    uint32_t count = 0;
    if (s->c->has_input) {
        test_buffer *from = s->separate_input ? &s->input : &s->output;
        bindings[count++] = (opjit_binding){ from->data, from->bytes };
    }
    bindings[count++] = (opjit_binding){ s->output.data, s->output.bytes };
    call.binding_count = count;
    call.bindings = bindings;
    call.param_count = s->late.count;
    call.params = s->late.count != 0 ? s->late.values : NULL;
    test_executor_init(&executor, s->random, s->mode->how == TEST_THREADS);
    if (s->mode->how == TEST_PIECES || s->mode->how == TEST_THREADS)
        call.executor = &executor.executor;
    const opjit_status status = opjit_kernel_call(s->kernel, &call, &error);
    if (test_excused(s->mode, status))
        return TEST_REFUSED;
    if (status != OPJIT_OK)
        return fail(s, "call: %s: %s", opjit_status_name(status), error.message);
    return TEST_PASSED;
}

static test_outcome call_closure(run_state *s)
{
    void (*function)(void) = NULL;
    opjit_error error = { 0 };
    const void *pointers[2];
    DML_TENSOR_DATA_TYPE types[2 + TEST_LATE_MAX];
    void *values[2 + TEST_LATE_MAX];
    uint32_t count = 0;
    opjit_status status = OPJIT_OK;
    if (s->closure == NULL)
        status = opjit_closure_create(s->kernel, &s->closure, &function, &error);
    if (status == OPJIT_UNAVAILABLE)
        return TEST_REFUSED;
    if (status != OPJIT_OK)
        return fail(s, "closure: %s: %s", opjit_status_name(status), error.message);
    if (s->c->has_input)
        pointers[count++] = s->separate_input ? s->input.data : s->output.data;
    pointers[count++] = s->output.data;
    for (uint32_t i = 0; i < count; i++) {
        types[i] = DML_TENSOR_DATA_TYPE_UNKNOWN;
        values[i] = &pointers[i];
    }
    for (uint32_t i = 0; i < s->late.count; i++, count++) {
        types[count] = s->late.types[i];
        values[count] = &s->late.values[i];
    }
    status = opjit_typed_call(function, count, types, values, &error);
    if (status == OPJIT_OK && opjit_closure_failures(s->closure, &error) != 0)
        status = OPJIT_INTERNAL;
    if (status != OPJIT_OK)
        return fail(s, "typed call: %s: %s", opjit_status_name(status), error.message);
    return TEST_PASSED;
}

static test_outcome run_once(run_state *s, const char *when)
{
    expect(s);
    const test_outcome result = s->mode->how == TEST_CLOSURE ? call_closure(s) : call_kernel(s);
    return result == TEST_PASSED ? compare(s, when) : result;
}

static test_outcome run_all(run_state *s)
{
    opjit_error error = { 0 };
    test_outcome result = make_buffers(s);
    if (result == TEST_PASSED)
        result = run_once(s, "first call");
    if (result != TEST_PASSED || !s->mode->optimize)
        return result;
    const opjit_status status = opjit_kernel_optimize(s->kernel, &error);
    if (status != OPJIT_OK)
        return fail(s, "optimize: %s: %s", opjit_status_name(status), error.message);
    return run_once(s, "after optimize");
}

test_outcome test_check(opjit_context *context, test_random *r, test_case *c, const test_mode *mode, char *message,
                        size_t message_size)
{
    run_state s = { .c = c, .mode = mode, .random = r, .message = message, .message_size = message_size };
    const test_desc truth = c->desc;
    test_case_take_late(r, c, mode->late, &s.late);
    test_outcome result = make_kernel(&s, context);
    c->desc = truth; /* the operator keeps the copy with the scalars that must not be used */
    if (result == TEST_PASSED)
        result = check_info(&s);
    if (result == TEST_PASSED)
        result = run_all(&s);
    opjit_closure_destroy(s.closure);
    opjit_kernel_release(s.kernel);
    opjit_operator_release(s.op);
    test_buffer_destroy(&s.input);
    test_buffer_destroy(&s.output);
    return result;
}
