/* SPDX-License-Identifier: Apache-2.0 */
/* test_rt_dims.c - kernels with dynamic dimensions: forms and their ranges, what a call of one size checks and runs. */
#include <check.h>
#include <stdlib.h>

#include "tests/unit/runtime/dims_kernel.h"

/* --- forms -------------------------------------------------------------------------------------------------------- */

/* For n from 1 to 8 and m from 1 to 4. */
static const struct {
    const char *name;
    opjit_size_form form;
    bool good;
    uint64_t most, at_3_and_2; /* where it is good */
} forms[] = {
    { "constant", { 7, { 0, 0 }, { { 0 }, { 0 } }, 1, 1 }, true, 7, 7 },
    { "zero", { 0, { 0, 0 }, { { 0 }, { 0 } }, 5, 1 }, true, 0, 0 },
    { "n", { 0, { 1, 0 }, { { 1 }, { 0 } }, 1, 1 }, true, 8, 3 },
    { "n * m", { 0, { 1, 0 }, { { 1, 1 }, { 0 } }, 1, 1 }, true, 32, 6 },
    { "5 + 2 n^4 m + 3 m^2", { 5, { 2, 3 }, { { 4, 1 }, { 0, 2 } }, 1, 1 }, true, 5 + 2 * 4096 * 4 + 48, 5 + 324 + 12 },
    { "(n - 1) / 2 + 1 as (n + 1) / 2", { 1, { 1, 0 }, { { 1 }, { 0 } }, 2, 1 }, true, 4, 2 },
    { "(n + m - 2) / 3", { -2, { 1, 1 }, { { 1 }, { 0, 1 } }, 3, 1 }, true, 3, 1 },
    { "10 - n", { 10, { -1, 0 }, { { 1 }, { 0 } }, 1, 1 }, true, 9, 7 },
    { "4 + n - m", { 4, { 1, -1 }, { { 1 }, { 0, 1 } }, 1, 1 }, true, 11, 5 },
    { "n m^2 - n", { 0, { 1, -1 }, { { 1, 2 }, { 1 } }, 1, 1 }, true, 120, 9 },
    { "1 - 3 n + 3 n m", { 1, { -3, 3 }, { { 1 }, { 1, 1 } }, 1, 1 }, true, 73, 10 },
    { "1 + n^2 - 2 n", { 1, { 1, -2 }, { { 2 }, { 1 } }, 1, 1 }, true, 49, 4 },
    { "4 + n^2 - 4 n", { 4, { 1, -4 }, { { 2 }, { 1 } }, 1, 1 }, false, 0, 0 },
    { "n m - 2 n", { 0, { 1, -2 }, { { 1, 1 }, { 1 } }, 1, 1 }, false, 0, 0 },
    { "n - n m", { 0, { 1, -1 }, { { 1 }, { 1, 1 } }, 1, 1 }, false, 0, 0 },
    { "overflow of what is taken away", { 0, { INT64_MAX / 8, INT64_MIN }, { { 1 }, { 0 } }, 1, 1 }, false, 0, 0 },
    { "7 - n", { 7, { -1, 0 }, { { 1 }, { 0 } }, 1, 1 }, false, 0, 0 },
    { "-1", { -1, { 0, 0 }, { { 0 }, { 0 } }, 2, 1 }, false, 0, 0 },
    { "3 times (n + 3) / 4", { 3, { 1, 0 }, { { 1 }, { 0 } }, 4, 3 }, true, 6, 3 },
    { "overflow of as many times", { 0, { INT64_MAX / 8, 0 }, { { 1 }, { 0 } }, 1, 2 }, false, 0, 0 },
    { "no times", { 1, { 0, 0 }, { { 0 }, { 0 } }, 1, 0 }, false, 0, 0 },
    { "divisor 0", { 1, { 0, 0 }, { { 0 }, { 0 } }, 0, 1 }, false, 0, 0 },
    { "divisor below 0", { 1, { 0, 0 }, { { 0 }, { 0 } }, -1, 1 }, false, 0, 0 },
    { "n^5", { 0, { 1, 0 }, { { 5 }, { 0 } }, 1, 1 }, false, 0, 0 },
    { "a power of no dimension", { 0, { 1, 0 }, { { 1, 0, 1 }, { 0 } }, 1, 1 }, false, 0, 0 },
    { "n / 4 for each m", { 3, { 1, 0 }, { { 1 }, { 0, 1 } }, 4, 2 }, true, 16, 4 },
    { "as often as m", { 5, { 0, 0 }, { { 0 }, { 0, 1 } }, 1, 1 }, true, 20, 10 },
    { "a power of an unused first term", { 0, { 0, 1 }, { { 1 }, { 1 } }, 1, 1 }, false, 0, 0 },
    { "overflow of the whole", { 0, { INT64_MAX / 8, 0 }, { { 1 }, { 0, 1 } }, 1, 1 }, false, 0, 0 },
    { "overflow of a term", { 0, { INT64_MAX / 8 + 1, 0 }, { { 1 }, { 0 } }, 1, 1 }, false, 0, 0 },
    { "nearly", { 0, { INT64_MAX / 8, 0 }, { { 1 }, { 0 } }, 1, 1 }, true, INT64_MAX / 8 * 8, INT64_MAX / 8 * 3 },
    { "overflow of the sum", { 8, { INT64_MAX / 8, 0 }, { { 1 }, { 0 } }, 1, 1 }, false, 0, 0 },
    { "overflow below", { 0, { INT64_MIN, INT64_MAX }, { { 1 }, { 0 } }, 1, 1 }, false, 0, 0 },
};

START_TEST(form_row)
{
    const opjit_size_form *form = &forms[_i].form;
    uint64_t most = 0, seen = 0;
    const rt_space space = { .dims = 2 };

    ck_assert_msg(opjit_rt_form_range(form, &space, two_dims, &most) == forms[_i].good, "%s", forms[_i].name);
    if (!forms[_i].good)
        return;
    ck_assert_uint_eq(most, forms[_i].most);
    ck_assert_uint_eq(opjit_rt_form_value(&space, form, (const uint64_t[]){ 3, 2 }), forms[_i].at_3_and_2);
    for (uint64_t n = 1; n <= 8; n++)
        for (uint64_t m = 1; m <= 4; m++) {
            const uint64_t value = opjit_rt_form_value(&space, form, (const uint64_t[]){ n, m });
            ck_assert_uint_le(value, most);
            seen = value > seen ? value : seen;
        }
    ck_assert_uint_eq(seen, most);
}
END_TEST

/* Numbers of n from 7 to 20 and q = (n + 1) / 3, from 2 to 7: all of them are looked at. */
static const struct {
    opjit_size_form form;
    bool good;
} differences[] = {
    { { 0, { 1, -1 }, { { 1 }, { 0, 1 } }, 1, 1 }, true },              /* n - q */
    { { 2, { -3, 3 }, { { 0, 1 }, { 1 } }, 2, 1 }, true },              /* (3 n - 3 q + 2) / 2 */
    { { 0, { 2, -1 }, { { 2 }, { 1, 1 } }, 1, 1 }, true },              /* 2 n n - n q */
    { { 99, { 1, -2 }, { { 1 }, { 0, 1 } }, 1, 1 }, true },             /* n - 2 q + 99: each term by itself */
    { { 0, { 1, -2 }, { { 1 }, { 0, 1 } }, 1, 1 }, false },             /* n - 2 q rises and falls */
    { { 3, { 1, -3 }, { { 1 }, { 0, 1 } }, 1, 1 }, false },             /* so does n - 3 q */
    { { -7, { 1, -1 }, { { 1 }, { 0, 1 } }, 1, 1 }, false },            /* below 0 at its least */
    { { 0, { INT64_MAX, -1 }, { { 1 }, { 0, 1 } }, 1, 1 }, false },     /* overflows */
};

START_TEST(difference_row)
{
    const opjit_quotient third = { .dim = 0, .plus = 1, .by = 3 };
    const rt_space space = { 1, 1, &third };
    opjit_param_info own[OPJIT_MAX_POWERS] = { { DML_TENSOR_DATA_TYPE_INT64, 0, 7, 20 } };
    const opjit_size_form *form = &differences[_i].form;
    uint64_t most = 0;

    ck_assert(opjit_rt_quotient_ranges(&space, own));
    ck_assert_int_eq(own[1].lo, 2);
    ck_assert_int_eq(own[1].hi, 7);
    ck_assert_int_eq(opjit_rt_form_range(form, &space, own, &most), differences[_i].good);
    for (uint64_t n = 7; n <= 20 && differences[_i].good; n++)
        ck_assert_uint_le(opjit_rt_form_value(&space, form, &n), most);
    if (differences[_i].good && form->constant < 99)
        ck_assert_uint_eq(opjit_rt_form_value(&space, form, (const uint64_t[]){ 20 }), most);
}
END_TEST

/* --- a kernel ----------------------------------------------------------------------------------------------------- */

static _Alignas(64) uint8_t space[256];

/* Every size, without memory, where a binding has not a byte too much. */
START_TEST(every_size)
{
    create(&interpreting);
    const int before = memory.calls;
    for (uint64_t n = 1; n <= 8; n++)
        for (uint64_t m = 1; m <= 4; m++) {
            set_dims(n, m);
            expect_run();
            ck_assert_uint_eq(hook.calls[0], n * m > 2); /* nothing to do: the step is not run */
            ck_assert_uint_eq(hook.calls[1], 1);
        }
    ck_assert_int_eq(memory.calls, before);
}
END_TEST

START_TEST(info_and_sizes)
{
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    uint64_t sizes[8], bytes;
    create(&interpreting);
    ck_assert_int_eq(opjit_kernel_get_info(kernel, &info, &error), OPJIT_OK);
    ck_assert(info.param_count == 1 && info.dim_count == 2 && info.dims[1].lo == 1 && info.dims[1].hi == 4);
    ck_assert_str_eq(opjit_kernel_param_name(&info, 0), "Begin");
    ck_assert_ptr_null(opjit_kernel_param_name(&info, 1));
    ck_assert_str_eq(opjit_kernel_dim_name(&info, 1), "m");
    ck_assert_ptr_null(opjit_kernel_dim_name(&info, 2));
    ck_assert_int_eq(opjit_kernel_sizes(kernel, dims, 2, 0, sizes, &bytes, &error), OPJIT_OK);
    ck_assert(sizes[0] == 3 && sizes[1] == 4 && sizes[2] == 1 && sizes[7] == 1 && bytes == 12);
    ck_assert_int_eq(opjit_kernel_sizes(kernel, dims, 2, 1, sizes, &bytes, &error), OPJIT_OK);
    ck_assert(sizes[0] == 5 && sizes[1] == 1 && bytes == 5);
    ck_assert_int_eq(opjit_kernel_sizes(kernel, dims, 2, 2, sizes, &bytes, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_str_eq(error.message, "buffer: 2, must be below 2, the inputs and outputs");
    ck_assert(sizes[0] == 0 && bytes == 0);
    ck_assert_int_eq(opjit_kernel_sizes(kernel, dims, 1, 0, sizes, &bytes, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_str_eq(error.message, "call: 1 dimensions given, 2 needed");
    dims[0] = 9;
    ck_assert_int_eq(opjit_kernel_sizes(kernel, dims, 2, 0, sizes, &bytes, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_str_eq(error.message, "dimension 0 (n): 9 is outside of 1 to 8");
    ck_assert_int_eq(opjit_kernel_sizes(NULL, dims, 2, 0, sizes, &bytes, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_int_eq(opjit_kernel_sizes(kernel, dims, 2, 0, NULL, &bytes, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_int_eq(opjit_kernel_sizes(kernel, dims, 2, 0, sizes, NULL, &error), OPJIT_INVALID_ARGUMENT);
}
END_TEST

/* A kernel of one size takes no dimensions and has its sizes. */
START_TEST(one_size)
{
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    uint64_t sizes[8], bytes;
    sample_init(&s);
    s.code_size = 0;
    ck_assert_int_eq(sample_kernel(&s, context->core, NULL, &interpreting, &kernel, &error), OPJIT_OK);
    ck_assert_int_eq(opjit_kernel_get_info(kernel, &info, &error), OPJIT_OK);
    ck_assert(info.dim_count == 0 && info.dims == NULL && info.param_count == 0);
    ck_assert_int_eq(opjit_kernel_sizes(kernel, NULL, 0, 1, sizes, &bytes, &error), OPJIT_OK);
    ck_assert(sizes[0] == SAMPLE_ELEMENTS && sizes[1] == 1 && bytes == SAMPLE_ELEMENTS);
    call.param_count = 0;
    ck_assert_int_eq(opjit_kernel_call(kernel, &call, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_str_eq(error.message, "call: 2 dimensions given, 0 needed");
    ck_assert_str_eq(error.field, "dim_count");
    call.dim_count = 0;
    call.reserved2 = 1;
    ck_assert_int_eq(opjit_kernel_call(kernel, &call, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_str_eq(error.field, "reserved2");
}
END_TEST

static void refused(const char *field, int32_t index, const char *message)
{
    ck_assert_int_eq(opjit_kernel_call(kernel, &call, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_str_eq(error.message, message);
    ck_assert_str_eq(error.op, "call");
    ck_assert_str_eq(error.field, field);
    ck_assert_int_eq(error.index, index);
    ck_assert_uint_eq(hook.calls[0] + hook.calls[1], 0);
}

START_TEST(wrong_calls)
{
    create(&interpreting);
    dims[1] = 5;
    refused("dims", 1, "dimension 1 (m): 5 is outside of 1 to 4");
    ck_assert_str_eq(error.value, "5");
    dims[1] = 0;
    refused("dims", 1, "dimension 1 (m): 0 is outside of 1 to 4");
    dims[0] = UINT64_MAX;
    refused("dims", 0, "dimension 0 (n): 18446744073709551615 is outside of 1 to 8");
    set_dims(3, 4);
    call.dim_count = 1;
    refused("dim_count", -1, "call: 1 dimensions given, 2 needed");
    call.dim_count = 2;
    call.dims = NULL;
    refused("dims", -1, "call: dims is NULL");
    call.dims = dims;
    bindings[0].bytes = 11;
    refused("bindings", 0, "binding 0 (InputTensor): 11 bytes given, 12 needed");
    set_dims(3, 4);
    bindings[1].bytes = 4;
    refused("bindings", 1, "binding 1 (OutputTensor): 4 bytes given, 5 needed");
    bindings[1] = (opjit_binding){ NULL, 5 };
    refused("bindings", 1, "binding 1 (OutputTensor): data is NULL");
    set_dims(3, 4);
    begin_at = 101;
    refused("params", 0, "parameter 0 (Begin): 101 is outside of -3 to 100 (INT32)");
    begin_at = 5;
    call.params = NULL;
    refused("params", -1, "call: params is NULL");
    call.params = &begin_at;
    call.stream = &call;
    refused("stream", -1, "stream: must be NULL, the kernel runs on the CPU");
    call.stream = NULL;
    call.struct_size = offsetof(opjit_call, dims); /* a caller that knows of none */
    refused("dim_count", -1, "call: 0 dimensions given, 2 needed");
}
END_TEST

/* Bytes of this call: what overlaps for the largest sizes may lie side by side for smaller ones. */
START_TEST(overlaps)
{
    create(&interpreting);
    bindings[1].data = in + 12;
    in[12] = in[13] = 0;
    ck_assert_msg(opjit_kernel_call(kernel, &call, &error) == OPJIT_OK, "%s", error.message);
    ck_assert_uint_eq(in[16], 8 + 5);
    memset(&hook, 0, sizeof hook);
    ck_assert_int_eq(opjit_kernel_check_overlaps(kernel, bindings, 2, &error), OPJIT_INVALID_ARGUMENT);
    bindings[1].data = in + 11;
    refused("bindings", 1,
            "OutputTensor overlaps InputTensor: only the very same memory may be shared, and only where alias_inputs "
            "says so");
    set_dims(1, 2);
    bindings[1] = (opjit_binding){ in + 1, 0 }; /* of no bytes: nowhere */
    ck_assert_msg(opjit_kernel_call(kernel, &call, &error) == OPJIT_OK, "%s", error.message);
    bindings[1] = (opjit_binding){ NULL, 0 };
    ck_assert_msg(opjit_kernel_call(kernel, &call, &error) == OPJIT_OK, "%s", error.message);
    bindings[0].data = NULL;
    ck_assert_int_eq(opjit_kernel_call(kernel, &call, &error), OPJIT_INVALID_ARGUMENT);
}
END_TEST

static struct {
    uint64_t extents[4];
    uint32_t runs;
} executed;

static opjit_status run_pieces(void *user, uint64_t extent, uint64_t grain,
                               void (*body)(void *arg, uint32_t worker, uint64_t begin, uint64_t end), void *arg)
{
    (void)user;
    executed.extents[executed.runs++ % 4] = extent;
    for (uint64_t i = 0; i < extent; i += grain)
        body(arg, (uint32_t)(i / grain % 3), i, i + grain < extent ? i + grain : extent);
    return OPJIT_OK;
}

static opjit_status run_to_the_largest(void *user, uint64_t extent, uint64_t grain,
                                       void (*body)(void *arg, uint32_t worker, uint64_t begin, uint64_t end),
                                       void *arg)
{
    (void)user, (void)extent, (void)grain;
    body(arg, 0, 0, MOST_OUT);
    return OPJIT_OK;
}

START_TEST(executors)
{
    static const opjit_executor executor = { NULL, 3, run_pieces }, wrong = { NULL, 3, run_to_the_largest };
    create(&interpreting);
    call.executor = &executor;
    expect_run();
    ck_assert(executed.runs == 1 && executed.extents[0] == 5); /* of the steps one is larger than its grain */
    ck_assert_uint_eq(hook.calls[0], 3);
    set_dims(2, 2); /* one iteration, and then none */
    expect_run();
    set_dims(2, 1);
    expect_run();
    ck_assert(executed.runs == 1 && hook.calls[0] == 0 && hook.calls[1] == 1);
    set_dims(3, 4);
    call.executor = &wrong;
    ck_assert_int_eq(opjit_kernel_call(kernel, &call, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_msg(strstr(error.message, "outside of the extent") != NULL, "%s", error.message);
}
END_TEST

START_TEST(times)
{
    opjit_step_time steps[2];
    uint32_t count;
    create(&interpreting);
    ck_assert_int_eq(opjit_kernel_call_timed(kernel, &call, steps, 2, &count, &error), OPJIT_OK);
    ck_assert(count == 2 && steps[0].extent == 5 && steps[1].extent == 3 && steps[1].step == 1);
    set_dims(1, 1);
    ck_assert_int_eq(opjit_kernel_call_timed(kernel, &call, steps, 2, &count, &error), OPJIT_OK);
    ck_assert(count == 2 && steps[0].extent == 0 && steps[1].extent == 1);
}
END_TEST

START_TEST(workspace)
{
    s.source.shared_size = 64;
    s.source.scratch_size = 64;
    create(&interpreting);
    memory.fail_at = memory.calls + 1;
    ck_assert_int_eq(opjit_kernel_call(kernel, &call, &error), OPJIT_OUT_OF_MEMORY);
    ck_assert_uint_eq(hook.calls[0], 0);
    memory.fail_at = 0;
    expect_run();
    ck_assert_ptr_nonnull(hook.shared);
    const int before = memory.calls;
    call.workspace = (opjit_binding){ space, 128 };
    expect_run();
    ck_assert_ptr_eq(hook.shared, space);
    bindings[0].data = memcpy(space + 128, in, 12); /* side by side with it */
    expect_run();
    bindings[0].data = memcpy(space + 120, in, 12);
    memset(&hook, 0, sizeof hook);
    refused("workspace", -1, "workspace overlaps InputTensor");
    ck_assert_int_eq(memory.calls, before);
}
END_TEST

/* As many buffers as have to be allocated for. */
START_TEST(many_buffers)
{
    enum { MANY = 100 };
    static opjit_buffer_info infos[MANY + 1];
    static opjit_size_form many_forms[(MANY + 1) * OPJIT_BUFFER_FORMS + 2];
    static opjit_binding many[MANY + 1];
    for (uint32_t i = 0; i <= MANY; i++) {
        infos[i] = s.buffers[i == MANY];
        memcpy(&many_forms[i * OPJIT_BUFFER_FORMS], &all[i == MANY ? OPJIT_BUFFER_FORMS : 0],
               OPJIT_BUFFER_FORMS * sizeof *all);
        many[i] = bindings[i == MANY];
    }
    memcpy(&many_forms[(MANY + 1) * OPJIT_BUFFER_FORMS], &all[FORMS - 2], 2 * sizeof *all);
    s.source.inputs = MANY;
    s.source.buffers = infos;
    s.source.param_infos = params;
    s.source.step_infos = s.steps;
    s.source.variant_infos = s.variants;
    s.source.forms = many_forms;
    ck_assert_int_eq(opjit_rt_image_build(&s.source, NULL, 0, &image, &error), OPJIT_OK);
    ck_assert_int_eq(
        opjit_rt_kernel_create(context->core, image.data, image.size, NULL, 0, &interpreting, NULL, &kernel, &error),
        OPJIT_OK);
    call.bindings = many;
    call.binding_count = MANY + 1;
    memory.fail_at = memory.calls + 1;
    ck_assert_int_eq(opjit_kernel_call(kernel, &call, &error), OPJIT_OUT_OF_MEMORY);
    memory.fail_at = 0;
    many[MANY] = (opjit_binding){ NULL, 0 };
    in[0] = 0;
    set_dims(1, 2); /* an output of no bytes meets nothing */
    ck_assert_msg(opjit_kernel_call(kernel, &call, &error) == OPJIT_OK, "%s", error.message);
    set_dims(3, 4);
    many[MANY] = (opjit_binding){ in + 11, 5 };
    ck_assert_int_eq(opjit_kernel_call(kernel, &call, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_str_eq(error.op, "call");
}
END_TEST

#if defined(__x86_64__)
/* Compiled code, out of an image that another context loads: out[i] = in[i] + 1 for as many as the call's sizes say. */
START_TEST(code)
{
    static const opjit_size_form whole = { 0, { 1, 0 }, { { 1, 1 }, { 0 } }, 1, 1 };
    opjit_kernel *loaded;
    const void *bytes;
    uint64_t size;
    s.buffers[1] = s.buffers[0];
    s.buffers[1].role = OPJIT_BUFFER_OUTPUT;
    memcpy(&all[OPJIT_BUFFER_FORMS], all, OPJIT_BUFFER_FORMS * sizeof *all);
    all[FORMS - 2] = whole;
    s.steps[0].extent = MOST_IN;
    s.variants[0].steps = 1;
    s.source.features[0] = opjit_rt_level_features(RT_ARCH_X86_64, 1);
    create(NULL);
    ck_assert_int_eq(opjit_kernel_get_image(kernel, &bytes, &size, &error), OPJIT_OK);
    ck_assert_msg(opjit_kernel_load(context, bytes, size, NULL, 0, &loaded, &error) == OPJIT_OK, "%s", error.message);
    bindings[1].bytes = 12;
    ck_assert_msg(opjit_kernel_call(loaded, &call, &error) == OPJIT_OK, "%s", error.message);
    opjit_kernel_release(loaded);
    for (uint32_t i = 0; i < 12; i++)
        ck_assert_uint_eq(out[i], in[i] + 1);
    ck_assert_uint_eq(out[12], 0xee);
}
END_TEST
#endif

/* A version that needs other bytes for some sizes is another kernel. */
START_TEST(adoption)
{
    opjit_kernel *first, *better;
    create(&interpreting);
    first = kernel;
    opjit_rt_bytes_free(&image);
    create(&interpreting);
    better = kernel;
    kernel = first;
    ck_assert_msg(opjit_rt_kernel_adopt(first, better, &error) == OPJIT_OK, "%s", error.message);
    opjit_kernel_release(better);
    expect_run();
    all[OPJIT_BUFFER_FORMS].constant = 0; /* (n m) / 2: one byte more at its largest */
    s.buffers[1].bytes = MOST_OUT + 1;
    opjit_rt_bytes_free(&image);
    create(&interpreting);
    better = kernel;
    kernel = first;
    ck_assert_int_eq(opjit_rt_kernel_adopt(first, better, &error), OPJIT_INTERNAL);
    opjit_kernel_release(better);
}
END_TEST

/* The same largest values, but fewer bytes of small sizes. */
START_TEST(adoption_of_other_forms)
{
    opjit_kernel *first, *better;
    create(&interpreting);
    first = kernel;
    all[1] = (opjit_size_form){ 0, { 2, 0 }, { { 0, 1 }, { 0 } }, 1, 1 }; /* 2 m */
    opjit_rt_bytes_free(&image);
    create(&interpreting);
    better = kernel;
    kernel = first;
    ck_assert_int_eq(opjit_rt_kernel_adopt(first, better, &error), OPJIT_INTERNAL);
    opjit_kernel_release(better);
}
END_TEST

START_TEST(create_without_memory)
{
    bool done = false;
    s.code_size = 0;
    for (int n = 1; !done; n++) {
        const int live = memory.live;
        memory.fail_at = memory.calls + n;
        opjit_status status = build(&image, &context->core->allocator);
        if (status == OPJIT_OK)
            status = opjit_rt_kernel_create(context->core, image.data, image.size, NULL, 0, &interpreting, NULL,
                                            &kernel, &error);
        opjit_rt_bytes_free(&image);
        done = status == OPJIT_OK;
        ck_assert(done || (status == OPJIT_OUT_OF_MEMORY && memory.live == live));
    }
    memory.fail_at = 0;
    expect_run();
}
END_TEST

START_TEST(custom_functions_know_one_size)
{
    s.steps[1].kind = OPJIT_STEP_CUSTOM;
    s.code_size = 0;
    ck_assert_int_eq(build(&image, &context->core->allocator), OPJIT_OK);
    ck_assert_int_eq(
        opjit_rt_kernel_create(context->core, image.data, image.size, NULL, 0, &interpreting, NULL, &kernel, &error),
        OPJIT_UNSUPPORTED);
    ck_assert_str_eq(error.message, "image dims: 2, must be 0 where there are custom functions, which know one size");
}
END_TEST

START_TEST(devices_know_one_size)
{
    opjit_launch_info launches[2] = { { .grid = { 3, 1, 1 }, .block = { 128, 1, 1 } },
                                      { .grid = { 3, 1, 1 }, .block = { 128, 1, 1 } } };
    const char *const names[2] = { "a", "b" };
    s.steps[0].kind = s.steps[1].kind = OPJIT_STEP_LAUNCH;
    s.source.features[0] = UINT64_C(1) << RT_NV_SM80;
    s.source.launches = launches;
    s.source.launch_names = names;
    s.code_size = 0;
    s.source.buffers = s.buffers;
    s.source.param_infos = params;
    s.source.step_infos = s.steps;
    s.source.variant_infos = s.variants;
    s.source.forms = all;
    ck_assert_msg(opjit_rt_image_build(&s.source, "", 1, &image, &error) == OPJIT_OK, "%s", error.message);
    ck_assert_int_eq(
        opjit_rt_kernel_create(context->core, image.data, image.size, NULL, 0, &interpreting, NULL, &kernel, &error),
        OPJIT_UNSUPPORTED);
    ck_assert_str_eq(error.message, "image dims: 2, must be 0 where there are launches, which know one size");
}
END_TEST

START_TEST(too_many_dims)
{
    s.source.dims = OPJIT_MAX_DIMS + 1;
    ck_assert_int_eq(build(&image, &context->core->allocator), OPJIT_LIMIT);
    ck_assert_str_eq(error.message, "kernel dims: 9, must be at most 8");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("rt.dims");
    TCase *tcase = tcase_create("dims");
    SRunner *runner = srunner_create(suite);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, difference_row, 0, sizeof differences / sizeof *differences);
    tcase_add_loop_test(tcase, form_row, 0, sizeof forms / sizeof *forms);
    tcase_add_test(tcase, every_size);
    tcase_add_test(tcase, info_and_sizes);
    tcase_add_test(tcase, one_size);
    tcase_add_test(tcase, wrong_calls);
    tcase_add_test(tcase, overlaps);
    tcase_add_test(tcase, executors);
    tcase_add_test(tcase, times);
    tcase_add_test(tcase, workspace);
    tcase_add_test(tcase, many_buffers);
#if defined(__x86_64__)
    tcase_add_test(tcase, code);
#endif
    tcase_add_test(tcase, adoption);
    tcase_add_test(tcase, adoption_of_other_forms);
    tcase_add_test(tcase, create_without_memory);
    tcase_add_test(tcase, custom_functions_know_one_size);
    tcase_add_test(tcase, devices_know_one_size);
    tcase_add_test(tcase, too_many_dims);
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
