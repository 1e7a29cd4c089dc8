/* SPDX-License-Identifier: Apache-2.0 */
/* test_fe_driver.c - compiling: options, caches, late parameters, variants, names, events, and where the code generator
 * is found.  Most kernels are interpreted, so that this runs without one; tests that need it are skipped where it is
 * missing.  What kernels compute is tested elsewhere. */
#define _GNU_SOURCE
#include <check.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "frontend/frontend.h"
#include "tests/support/meter.h"

#include "opjit_build_id.h"

enum { HEIGHT = 30, WIDTH = 40, COUNT = HEIGHT * WIDTH };

/* The lines of all events so far. */
static char log_text[16384];

static void log_event(void *user, const opjit_event *event)
{
    const size_t used = strlen(log_text);

    ck_assert_ptr_eq(user, log_text);
    ck_assert_ptr_null(strchr(event->line, '\n'));
    snprintf(log_text + used, sizeof log_text - used, "%s\n", event->line);
}

static opjit_context *make_context(const char *codegen, uint32_t flags)
{
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
    opjit_context *context = NULL;
    opjit_error error;

    log_text[0] = '\0';
    options.codegen_path = codegen;
    options.flags = flags;
    options.event = log_event;
    options.event_user = log_text;
    ck_assert_msg(opjit_context_create(&options, &context, &error) == OPJIT_OK, "%s", error.message);
    return context;
}

/* DIAGONAL_MATRIX1 over {HEIGHT, WIDTH}: 7 from begin to end, the input elsewhere. */
static opjit_operator *make_operator(opjit_context *context, bool with_input, int32_t begin, int32_t end)
{
    static const uint32_t sizes[] = { HEIGHT, WIDTH };
    const DML_BUFFER_TENSOR_DESC buffer = { DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_FLAG_NONE, 2, sizes, NULL, 0, 0 };
    const DML_TENSOR_DESC tensor = { DML_TENSOR_TYPE_BUFFER, &buffer };
    const DML_DIAGONAL_MATRIX1_OPERATOR_DESC d = {
        with_input ? &tensor : NULL, &tensor, DML_TENSOR_DATA_TYPE_FLOAT32, { .Float32 = 7 }, begin, end
    };
    const DML_OPERATOR_DESC desc = { DML_OPERATOR_DIAGONAL_MATRIX1, &d };
    opjit_operator *op = NULL;
    opjit_error error;

    ck_assert_msg(opjit_operator_create(context, &desc, &op, &error) == OPJIT_OK, "%s", error.message);
    return op;
}

static opjit_kernel *compile(opjit_context *context, opjit_operator *op, opjit_compile_options options)
{
    opjit_kernel *kernel = NULL;
    opjit_error error;

    options.struct_size = sizeof options;
    ck_assert_msg(opjit_compile_operator(context, op, &options, &kernel, &error) == OPJIT_OK, "%s", error.message);
    return kernel;
}

static opjit_kernel_info info_of(const opjit_kernel *kernel)
{
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;

    ck_assert_int_eq(opjit_kernel_get_info(kernel, &info, NULL), OPJIT_OK);
    return info;
}

/* Runs the kernel and compares with the formula. */
static void check_call(opjit_kernel *kernel, bool with_input, bool in_place, const uint64_t *params,
                       uint32_t param_count, int64_t begin, int64_t end, float value)
{
    float input[COUNT], output[COUNT];
    opjit_binding bindings[2] = { { input, sizeof input }, { in_place ? input : output, sizeof output } };
    opjit_call call = OPJIT_CALL_INIT;
    opjit_error error;

    for (int i = 0; i < COUNT; i++)
        input[i] = (float)(i + 1), output[i] = -1;
    call.bindings = with_input ? bindings : bindings + 1;
    call.binding_count = with_input ? 2 : 1;
    call.params = params;
    call.param_count = param_count;
    ck_assert_msg(opjit_kernel_call(kernel, &call, &error) == OPJIT_OK, "%s", error.message);
    for (int i = 0; i < COUNT; i++) {
        const int64_t t = i % WIDTH - i / WIDTH;
        const bool use = (end >= begin) ^ (t >= begin) ^ (t < end);
        const float want = use ? value : with_input ? (float)(i + 1) : 0;
        ck_assert_msg(((float *)bindings[1].data)[i] == want, "element %d", i);
    }
}

static const opjit_compile_options interpreted = { .flags = OPJIT_COMPILE_INTERPRET };

/* --- caches ------------------------------------------------------------------------------------------------------- */

START_TEST(equal_operators_share_a_kernel)
{
    opjit_context *context = make_context(NULL, 0);
    opjit_operator *ops[3] = { make_operator(context, true, 0, 1), make_operator(context, true, 0, 1),
                               make_operator(context, true, 0, 2) };
    opjit_compile_options uncached = interpreted;
    opjit_cache_stats stats = OPJIT_CACHE_STATS_INIT;
    opjit_kernel *kernels[4];

    for (int i = 0; i < 3; i++)
        kernels[i] = compile(context, ops[i], interpreted);
    uncached.flags |= OPJIT_COMPILE_NO_CACHE;
    kernels[3] = compile(context, ops[0], uncached);
    ck_assert_ptr_eq(kernels[0], kernels[1]);
    ck_assert_ptr_ne(kernels[0], kernels[2]);
    ck_assert_ptr_ne(kernels[0], kernels[3]);
    ck_assert_int_eq(opjit_cache_get_stats(context, &stats, NULL), OPJIT_OK);
    ck_assert(stats.entries == 2 && stats.hits == 1 && stats.misses == 2);
    ck_assert_ptr_nonnull(strstr(log_text, "opjit,miss,diagonal_matrix1,f32,30x40,cpu:"));
    ck_assert_ptr_nonnull(strstr(log_text, "opjit,hit,diagonal_matrix1,f32,30x40,cpu:"));
    ck_assert_ptr_nonnull(strstr(log_text, "opjit,compile,diagonal_matrix1,f32,30x40,cpu:"));
    ck_assert_ptr_nonnull(strstr(log_text, ",interpreted,lower="));
    opjit_context_destroy(context); /* kernels outlive context and operators */
    for (int i = 0; i < 3; i++)
        opjit_operator_release(ops[i]);
    check_call(kernels[0], true, false, NULL, 0, 0, 1, 7);
    check_call(kernels[2], true, false, NULL, 0, 0, 2, 7);
    for (int i = 0; i < 4; i++)
        opjit_kernel_release(kernels[i]);
}
END_TEST

/* --- options ------------------------------------------------------------------------------------------------------ */

static const char *const late_unknown[] = { "Value", "Offset" },
                         *const late_twice[] = { "Value", "DiagonalFillEnd", "Value" }, *const late_null[] = { NULL },
                         *const late_tensor[] = { "OutputTensor" };
#define LONG_NAME "abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwx"

/* clang-format off */
static const struct { opjit_compile_options options; const char *message; } wrong_options[] = {
    { { .flags = 16 }, "options.flags: 0x10, must be a sum of flags out of 0xf" },
    { { .flags = UINT32_MAX }, "options.flags: 0xffffffff, must be a sum of flags out of 0xf" },
    { { .level = (opjit_level)3 }, "options.level: 3, must be an opjit_level (0 to 2)" },
    { { .late_count = 2 }, "options.late: NULL, must be an array of 2 names" },
    { { .late_count = 1, .late = late_null }, "options.late[0]: NULL, must be a field's name" },
    { { .late_count = 2, .late = late_unknown },
      "options.late[1]: \"Offset\", must be Value, DiagonalFillBegin or DiagonalFillEnd for DIAGONAL_MATRIX1" },
    { { .late_count = 1, .late = late_tensor },
      "options.late[0]: \"OutputTensor\", must be Value, DiagonalFillBegin or DiagonalFillEnd for DIAGONAL_MATRIX1" },
    { { .late_count = 3, .late = late_twice }, "options.late[2]: \"Value\" is there twice" },
    { { .name = "" }, "options.name: \"\", must be a C identifier of at most 95 characters" },
    { { .name = "a-b" }, "options.name: \"a-b\", must be a C identifier of at most 95 characters" },
    { { .name = "1a" }, "options.name: \"1a\", must be a C identifier of at most 95 characters" },
    { { .name = LONG_NAME }, "options.name: \"" LONG_NAME "\", must be a C identifier of at most 95 characters" },
};
/* clang-format on */

START_TEST(wrong_option)
{
    opjit_context *context = make_context(NULL, 0);
    opjit_operator *op = make_operator(context, true, 0, 1);
    opjit_kernel *kernel = (opjit_kernel *)(uintptr_t)1;
    opjit_compile_options options = wrong_options[_i].options;
    opjit_error error = { 0 };

    options.struct_size = sizeof options;
    ck_assert_int_eq(opjit_compile_operator(context, op, &options, &kernel, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_str_eq(error.message, wrong_options[_i].message);
    ck_assert_ptr_null(kernel);
    opjit_operator_release(op);
    opjit_context_destroy(context);
}
END_TEST

START_TEST(option_sizes)
{
    opjit_context *context = make_context(NULL, 0);
    opjit_operator *op = make_operator(context, true, 0, 1);
    struct {
        opjit_compile_options options;
        uint32_t more;
    } newer = { { .flags = OPJIT_COMPILE_INTERPRET }, 0 };
    opjit_kernel *kernel;
    opjit_error error;

    newer.options.struct_size = sizeof newer;
    ck_assert_int_eq(opjit_compile_operator(context, op, &newer.options, &kernel, &error), OPJIT_OK);
    opjit_kernel_release(kernel);
    newer.more = 1;
    ck_assert_int_eq(opjit_compile_operator(context, op, &newer.options, &kernel, &error), OPJIT_INVALID_ARGUMENT);
    newer.options.struct_size = 4; /* not set to its real size: no option may be ignored */
    ck_assert_int_eq(opjit_compile_operator(context, op, &newer.options, &kernel, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_str_eq(error.message,
                     "opjit_compile_options: struct_size 4 is that of no version; set it with the _INIT macro (48)");
    opjit_operator_release(op);
    opjit_context_destroy(context);
}
END_TEST

/* The cache's bound covers all memory that its kernels hold. */
START_TEST(the_bound_counts_all_of_a_kernel)
{
    enum { BOUND = 1 << 20, KERNELS = 300 };
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
    const opjit_compile_options how = { .flags = OPJIT_COMPILE_INTERPRET };
    opjit_cache_stats stats = OPJIT_CACHE_STATS_INIT;
    size_t before, first = 0;
    opjit_context *context;
    opjit_error error;
    test_meter meter;

    test_meter_begin(&meter);
    options.allocator = &meter.allocator;
    options.cache_bytes = BOUND;
    ck_assert_msg(opjit_context_create(&options, &context, &error) == OPJIT_OK, "%s", error.message);
    before = meter.live;
    for (int i = 0; i < KERNELS; i++) {
        opjit_operator *op = make_operator(context, true, -i, 3);
        opjit_kernel_release(compile(context, op, how));
        opjit_operator_release(op);
        first = i == 0 ? meter.live - before : first;
        ck_assert_uint_le(meter.live - before, BOUND + first);
    }
    ck_assert_int_eq(opjit_cache_get_stats(context, &stats, NULL), OPJIT_OK);
    ck_assert(stats.evictions > 0 && stats.entries > 2);
    ck_assert_uint_le(stats.bytes, BOUND);
    ck_assert_uint_ge(stats.bytes + stats.bytes / 4, meter.live - before); /* nothing that matters is left out */
    ck_assert_int_eq(opjit_cache_clear(context, &error), OPJIT_OK);
    ck_assert_uint_le(meter.live - before, first);
    opjit_context_destroy(context);
    ck_assert_uint_eq(meter.live, 0);
}
END_TEST

/* A host may change its environment and its directory at any time: contexts read them when they are created. */
START_TEST(environment_is_read_once)
{
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
    char first[] = "/tmp/opjit-here-XXXXXX", second[] = "/tmp/opjit-there-XXXXXX", path[64];
    opjit_context *context;
    opjit_operator *op;
    opjit_error error;

    ck_assert(mkdtemp(first) != NULL && mkdtemp(second) != NULL);
    ck_assert_int_eq(chdir(first), 0);
    options.cache_dir = "cache/of mine";
    ck_assert_msg(opjit_context_create(&options, &context, &error) == OPJIT_OK, "%s", error.message);
    ck_assert_int_eq(chdir(second), 0);
    ck_assert_int_eq(setenv("OPJIT_DUMP", "ir", 1), 0);
    ck_assert_int_eq(setenv("OPJIT_DUMP_DIR", second, 1), 0);
    op = make_operator(context, true, 0, 1);
    opjit_kernel_release(compile(context, op, (opjit_compile_options){ .flags = OPJIT_COMPILE_INTERPRET }));
    if (opjit_context_warm(context, NULL) == OPJIT_OK) { /* only compiled kernels are stored and dumped */
        opjit_kernel_release(compile(context, op, (opjit_compile_options){ .flags = 0 }));
        snprintf(path, sizeof path, "%s/cache/of mine", first);
        ck_assert_int_eq(access(path, F_OK), 0);
    }
    ck_assert_int_eq(chdir("/"), 0);
    ck_assert_msg(rmdir(second) == 0, "something was written into %s", second);
    opjit_operator_release(op);
    opjit_context_destroy(context);
    snprintf(path, sizeof path, "rm -rf '%s'", first);
    ck_assert_int_eq(system(path), 0);
}
END_TEST

static void ignore(void *user, const char *stage, const char *text)
{
    (void)user, (void)stage, (void)text;
}

START_TEST(null_arguments)
{
    opjit_context *context = make_context(NULL, 0);
    opjit_operator *op = make_operator(context, true, 0, 1);
    opjit_kernel *kernel = (opjit_kernel *)(uintptr_t)1;
    opjit_error error;

    ck_assert_int_eq(opjit_compile_operator(NULL, op, NULL, &kernel, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_str_eq(error.message, "context is NULL");
    ck_assert_ptr_null(kernel);
    ck_assert_int_eq(opjit_compile_operator(context, NULL, NULL, &kernel, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_str_eq(error.message, "op is NULL");
    ck_assert_int_eq(opjit_compile_operator(context, op, NULL, NULL, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_str_eq(error.message, "out_kernel is NULL");
    ck_assert_int_eq(opjit_operator_explain(NULL, op, NULL, ignore, NULL, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_str_eq(error.message, "context is NULL");
    ck_assert_int_eq(opjit_operator_explain(context, NULL, NULL, ignore, NULL, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_str_eq(error.message, "op is NULL");
    ck_assert_int_eq(opjit_operator_explain(context, op, NULL, NULL, NULL, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_str_eq(error.message, "fn is NULL");
    ck_assert_int_eq(opjit_context_warm(NULL, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_str_eq(error.message, "context is NULL");
    opjit_operator_release(op);
    opjit_context_destroy(context);
}
END_TEST

/* --- late parameters ---------------------------------------------------------------------------------------------- */

START_TEST(late_fields)
{
    static const char *const names[] = { "DiagonalFillEnd", "Value", "DiagonalFillBegin" };
    opjit_context *context = make_context(NULL, 0);
    opjit_operator *op = make_operator(context, true, 0, 1), *other = make_operator(context, true, -9, 99);
    opjit_compile_options options = interpreted;
    opjit_kernel *kernel, *again;
    opjit_kernel_info info;

    options.late = names;
    options.late_count = 3;
    kernel = compile(context, op, options);
    again = compile(context, other, options); /* the values of late fields are not in the key */
    ck_assert_ptr_eq(kernel, again);
    info = info_of(kernel);
    ck_assert_uint_eq(info.param_count, 3);
    ck_assert(info.params[0].dtype == DML_TENSOR_DATA_TYPE_INT32 &&
              info.params[1].dtype == DML_TENSOR_DATA_TYPE_FLOAT32);
    ck_assert(info.params[0].lo == INT32_MIN && info.params[0].hi == INT32_MAX);
    ck_assert_str_eq((const char *)info.meta + info.params[2].name, "DiagonalFillBegin");
    for (int begin = -4; begin <= 5; begin++) {
        for (int end = -4; end <= 5; end++) {
            const float value = (float)(begin * 10 + end);
            uint64_t params[3] = { (uint64_t)(int64_t)end, 0, (uint64_t)(int64_t)begin };
            memcpy(&params[1], &value, sizeof value);
            check_call(kernel, true, false, params, 3, begin, end, value);
            check_call(kernel, true, true, params, 3, begin, end, value);
        }
    }
    opjit_kernel_release(again);
    opjit_kernel_release(kernel);
    opjit_operator_release(other);
    opjit_operator_release(op);
    opjit_context_destroy(context);
}
END_TEST

/* A late scalar of each type has its type's interval. */
START_TEST(late_scalar_types)
{
    static const struct {
        DML_TENSOR_DATA_TYPE dtype;
        int64_t lo, hi;
    } types[] = {
        { DML_TENSOR_DATA_TYPE_FLOAT32, 0, 0 },
        { DML_TENSOR_DATA_TYPE_FLOAT16, 0, 0 },
        { DML_TENSOR_DATA_TYPE_UINT32, 0, UINT32_MAX },
        { DML_TENSOR_DATA_TYPE_UINT16, 0, UINT16_MAX },
        { DML_TENSOR_DATA_TYPE_UINT8, 0, UINT8_MAX },
        { DML_TENSOR_DATA_TYPE_INT32, INT32_MIN, INT32_MAX },
        { DML_TENSOR_DATA_TYPE_INT16, INT16_MIN, INT16_MAX },
        { DML_TENSOR_DATA_TYPE_INT8, INT8_MIN, INT8_MAX },
        { DML_TENSOR_DATA_TYPE_FLOAT64, 0, 0 },
        { DML_TENSOR_DATA_TYPE_UINT64, INT64_MIN, INT64_MAX },
        { DML_TENSOR_DATA_TYPE_INT64, INT64_MIN, INT64_MAX },
    };
    static const char *const names[] = { "Value" };
    static const uint32_t sizes[] = { 5 };
    const DML_BUFFER_TENSOR_DESC buffer = { types[_i].dtype, DML_TENSOR_FLAG_NONE, 1, sizes, NULL, 0, 0 };
    const DML_TENSOR_DESC tensor = { DML_TENSOR_TYPE_BUFFER, &buffer };
    const DML_FILL_VALUE_CONSTANT_OPERATOR_DESC d = { &tensor, types[_i].dtype, { .UInt64 = 0 } };
    const DML_OPERATOR_DESC desc = { DML_OPERATOR_FILL_VALUE_CONSTANT, &d };
    const uint32_t size = opjit_rt_dtype_size(types[_i].dtype);
    const uint64_t bits = UINT64_C(0x7081828384858687) >> (64 - 8 * size); /* positive in every type */
    opjit_context *context = make_context(NULL, 0);
    opjit_compile_options options = interpreted;
    opjit_binding binding;
    opjit_call call = OPJIT_CALL_INIT;
    unsigned char output[40] = { 0 };
    opjit_operator *op;
    opjit_kernel *kernel;
    opjit_kernel_info info;
    opjit_error error;

    ck_assert_int_eq(opjit_operator_create(context, &desc, &op, NULL), OPJIT_OK);
    options.late = names;
    options.late_count = 1;
    kernel = compile(context, op, options);
    info = info_of(kernel);
    ck_assert(info.params[0].dtype == (uint32_t)types[_i].dtype && info.params[0].lo == types[_i].lo &&
              info.params[0].hi == types[_i].hi);
    binding = (opjit_binding){ output, sizeof output };
    call.bindings = &binding;
    call.binding_count = 1;
    call.params = &bits;
    call.param_count = 1;
    ck_assert_msg(opjit_kernel_call(kernel, &call, &error) == OPJIT_OK, "%s", error.message);
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(memcmp(output + (size_t)i * size, &bits, size), 0);
    opjit_kernel_release(kernel);
    opjit_operator_release(op);
    opjit_context_destroy(context);
}
END_TEST

/* --- what a kernel is --------------------------------------------------------------------------------------------- */

START_TEST(names_and_metadata)
{
    opjit_context *context = make_context(NULL, 0);
    opjit_operator *op = make_operator(context, true, 0, 1);
    opjit_compile_options options = interpreted;
    opjit_kernel *kernel = compile(context, op, options), *same, *named;
    opjit_kernel_info info = info_of(kernel);

    ck_assert_int_eq(strncmp(info.name, "diagonal_matrix1_f32_", 21), 0);
    ck_assert_uint_eq(strlen(info.name), 29);
    ck_assert_uint_eq(info.flags, OPJIT_KERNEL_INTERPRETED);
    ck_assert_str_eq(info.target, opjit_context_target(context));
    ck_assert(info.inputs == 1 && info.outputs == 1 && info.buffer_count == 2 && info.param_count == 0);
    ck_assert(info.buffers[1].alias_inputs == 1 && info.buffers[1].bytes == COUNT * sizeof(float));
    ck_assert(info.bytes_written == COUNT * sizeof(float) && info.bytes_read == COUNT * sizeof(float));
    ck_assert_str_eq((const char *)info.meta + info.buffers[0].name, "InputTensor");
    ck_assert_uint_eq(info.meta->variants, 2); /* in place, what is not filled stays */
    check_call(kernel, true, true, NULL, 0, 0, 1, 7);
    options.flags |= OPJIT_COMPILE_NO_CACHE;
    same = compile(context, op, options);
    ck_assert_str_eq(info_of(same).name, info.name);
    ck_assert_int_eq(memcmp(info_of(same).meta, info.meta, info.meta->size), 0);
    options.name = "my_kernel";
    named = compile(context, op, options);
    ck_assert_str_eq(info_of(named).name, "my_kernel");
    opjit_kernel_release(named);
    opjit_kernel_release(same);
    opjit_kernel_release(kernel);
    opjit_operator_release(op);
    opjit_context_destroy(context);
}
END_TEST

START_TEST(input_that_is_never_read)
{
    opjit_context *context = make_context(NULL, 0);
    opjit_operator *op = make_operator(context, true, INT32_MIN, INT32_MAX); /* all is filled */
    opjit_kernel *kernel = compile(context, op, interpreted);

    ck_assert_uint_eq(info_of(kernel).bytes_read, 0);
    ck_assert_uint_eq(info_of(kernel).meta->variants, 1); /* sharing memory saves nothing */
    check_call(kernel, true, false, NULL, 0, INT32_MIN, INT32_MAX, 7);
    check_call(kernel, true, true, NULL, 0, INT32_MIN, INT32_MAX, 7);
    opjit_kernel_release(kernel);
    opjit_operator_release(op);
    opjit_context_destroy(context);
}
END_TEST

static void collect(void *user, const char *stage, const char *text)
{
    char *stages = user;

    ck_assert_ptr_nonnull(strstr(text, strcmp(stage, "plan") == 0 ? "stage @0: " : "kernel @"));
    strcat(strcat(stages, stage), " ");
}

START_TEST(explain_names_every_pass)
{
    opjit_context *context = make_context(NULL, 0);
    opjit_operator *op = make_operator(context, true, 0, 1);
    char stages[256] = "";
    opjit_error error;

    ck_assert_msg(opjit_operator_explain(context, op, NULL, collect, stages, &error) == OPJIT_OK, "%s", error.message);
    ck_assert_int_eq(strncmp(stages, "lower fold place collapse split cleanup ", 40), 0);
    ck_assert_ptr_nonnull(strstr(stages, "schedule "));
    if (opjit_fe_has_codegen())
        ck_assert_str_eq(stages + strlen(stages) - strlen(" plan "), " plan ");
    opjit_operator_release(op);
    opjit_context_destroy(context);
}
END_TEST

/* --- targets ------------------------------------------------------------------------------------------------------ */

START_TEST(foreign_targets_are_interpreted_only)
{
    static const char *const candidates[] = { "cpu:x86-64-v4", "cpu:x86-64-v4+avx512fp16", "cpu:x86-64-v3+clzero" };
    opjit_context *context = make_context(NULL, 0);
    opjit_operator *op = make_operator(context, true, 0, 1);
    opjit_compile_options options = { .struct_size = sizeof options };
    opjit_kernel *kernel = NULL;
    opjit_error error, missing;
    rt_target target;

    for (size_t i = 0; i < sizeof candidates / sizeof *candidates && options.target == NULL; i++)
        if (opjit_rt_target_parse(candidates[i], &target, NULL) == OPJIT_OK &&
            opjit_rt_target_runs_here(&target, &missing) != OPJIT_OK)
            options.target = candidates[i];
    if (options.target == NULL) {
        printf("skipped: this CPU runs every target\n");
    } else {
        ck_assert_int_eq(opjit_compile_operator(context, op, &options, &kernel, &error), OPJIT_UNAVAILABLE);
        ck_assert_str_eq(error.message, missing.message);
        options.flags = OPJIT_COMPILE_INTERPRET;
        kernel = compile(context, op, options);
        ck_assert_str_eq(info_of(kernel).target, target.text);
        check_call(kernel, true, false, NULL, 0, 0, 1, 7);
        opjit_kernel_release(kernel);
    }
    opjit_operator_release(op);
    opjit_context_destroy(context);
}
END_TEST

/* --- the code generator ------------------------------------------------------------------------------------------- */

#ifndef OPJIT_STATIC_CODEGEN
START_TEST(wrong_codegen_paths)
{
    opjit_operator *op;
    opjit_kernel *kernel;
    opjit_error error;
    Dl_info libc;
    opjit_context *context = make_context(NULL, 0);

    if (!opjit_fe_has_codegen()) {
        printf("skipped: built without code generation, which refuses before any path is looked at\n");
        ck_assert_int_eq(opjit_context_warm(context, &error), OPJIT_UNAVAILABLE);
        ck_assert_ptr_nonnull(strstr(error.message, "built without code generation"));
        opjit_context_destroy(context);
        return;
    }
    opjit_context_destroy(context);
    ck_assert_int_eq(setenv("OPJIT_CODEGEN", "libopjit-codegen.so", 1), 0); /* in this test's own process */
    context = make_context(NULL, 0);
    ck_assert_int_eq(setenv("OPJIT_CODEGEN", "/elsewhere", 1), 0); /* contexts don't look again */
    ck_assert_int_eq(opjit_context_warm(context, &error), OPJIT_UNAVAILABLE);
    ck_assert_str_eq(error.message, "codegen library \"libopjit-codegen.so\": must be an absolute path");
    opjit_context_destroy(context);

    context = make_context("/nonexistent/libopjit-codegen.so", 0);
    op = make_operator(context, true, 0, 1);
    ck_assert_int_eq(opjit_context_warm(context, &error), OPJIT_UNAVAILABLE);
    ck_assert_int_eq(strncmp(error.message, "codegen library: /nonexistent/libopjit-codegen.so: ", 51), 0);
    ck_assert_int_eq(opjit_compile_operator(context, op, NULL, &kernel, &error), OPJIT_UNAVAILABLE);
    ck_assert_int_eq(strncmp(error.message, "codegen library: /nonexistent/libopjit-codegen.so: ", 51), 0);
    opjit_operator_release(op);
    opjit_context_destroy(context);

    ck_assert_int_ne(dladdr((void *)(uintptr_t)strlen, &libc), 0);
    context = make_context(libc.dli_fname, 0); /* a library that is no code generator */
    ck_assert_int_eq(opjit_context_warm(context, &error), OPJIT_UNAVAILABLE);
    ck_assert_ptr_nonnull(strstr(error.message, "is no codegen library, opjit_codegen_query is missing"));
    opjit_context_destroy(context);
}
END_TEST

START_TEST(interpreter_only_where_allowed)
{
    opjit_context *context = make_context("/nonexistent/libopjit-codegen.so", OPJIT_CONTEXT_ALLOW_INTERPRETER);
    opjit_operator *op = make_operator(context, true, 0, 1);
    opjit_kernel *kernel = NULL;
    opjit_error error;

    ck_assert_msg(opjit_compile_operator(context, op, NULL, &kernel, &error) == OPJIT_OK, "%s", error.message);
    ck_assert_uint_eq(info_of(kernel).flags, OPJIT_KERNEL_INTERPRETED);
    ck_assert_ptr_nonnull(strstr(log_text, "opjit,warning,diagonal_matrix1_f32_"));
    ck_assert_int_eq(opjit_kernel_optimize(kernel, &error), OPJIT_OK);
    check_call(kernel, true, false, NULL, 0, 0, 1, 7);
    opjit_kernel_release(kernel);
    opjit_operator_release(op);
    opjit_context_destroy(context);
}
END_TEST
#endif

START_TEST(codegen_of_another_build)
{
    opjit_codegen table = { .abi = CODEGEN_ABI, .size = sizeof table, .build_id = OPJIT_BUILD_ID };
    opjit_error error;

    ck_assert_int_eq(opjit_fe_codegen_check(&table, "/x.so", &error), OPJIT_OK);
    table.build_id = "0000";
    ck_assert_int_eq(opjit_fe_codegen_check(&table, "/x.so", &error), OPJIT_UNAVAILABLE);
    ck_assert_str_eq(error.message, "/x.so: its build id is 0000, must be " OPJIT_BUILD_ID);
    table.size = 4;
    ck_assert_int_eq(opjit_fe_codegen_check(&table, "/x.so", &error), OPJIT_UNAVAILABLE);
    ck_assert_str_eq(error.message, "/x.so: has no codegen interface 1");
    ck_assert_int_eq(opjit_fe_codegen_check(NULL, "/x.so", &error), OPJIT_UNAVAILABLE);
}
END_TEST

START_TEST(compiled_kernels)
{
    static const char *const names[] = { "DiagonalFillBegin" };
    opjit_context *context = make_context(NULL, 0);
    opjit_operator *op = make_operator(context, _i != 0, 0, 1);
    opjit_compile_options options = { .late = names, .late_count = 1 };
    const uint64_t zero = 0;
    opjit_kernel *kernel, *late;
    opjit_error error;

    if (opjit_context_warm(context, &error) != OPJIT_OK) {
        printf("skipped: %s\n", error.message);
        opjit_operator_release(op);
        opjit_context_destroy(context);
        return;
    }
    kernel = compile(context, op, (opjit_compile_options){ .level = OPJIT_LEVEL_AUTO });
    late = compile(context, op, options);
    opjit_operator_release(op);
    opjit_context_destroy(context);
    ck_assert(info_of(kernel).flags == 0 && info_of(kernel).level == OPJIT_LEVEL_QUICK &&
              info_of(kernel).code_bytes > 0);
    ck_assert(info_of(kernel).codegen_ms > 0 && info_of(kernel).compile_ms >= info_of(kernel).codegen_ms);
    for (int round = 0; round < 2; round++) { /* before and after the peak version */
        check_call(kernel, _i != 0, false, NULL, 0, 0, 1, 7);
        check_call(late, _i != 0, false, &zero, 1, 0, 1, 7);
        if (_i != 0)
            check_call(kernel, true, true, NULL, 0, 0, 1, 7);
        ck_assert_msg(opjit_kernel_optimize(kernel, &error) == OPJIT_OK, "%s", error.message);
        ck_assert_int_eq(info_of(kernel).level, OPJIT_LEVEL_PEAK);
    }
    opjit_kernel_release(late);
    opjit_kernel_release(kernel);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fe.driver");
    TCase *tcase = tcase_create("driver");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_set_timeout(tcase, 60);
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, equal_operators_share_a_kernel);
    tcase_add_loop_test(tcase, wrong_option, 0, sizeof wrong_options / sizeof *wrong_options);
    tcase_add_test(tcase, option_sizes);
    tcase_add_test(tcase, environment_is_read_once);
    tcase_add_test(tcase, the_bound_counts_all_of_a_kernel);
    tcase_add_test(tcase, null_arguments);
    tcase_add_test(tcase, late_fields);
    tcase_add_loop_test(tcase, late_scalar_types, 0, 11);
    tcase_add_test(tcase, names_and_metadata);
    tcase_add_test(tcase, input_that_is_never_read);
    tcase_add_test(tcase, explain_names_every_pass);
    tcase_add_test(tcase, foreign_targets_are_interpreted_only);
#ifndef OPJIT_STATIC_CODEGEN
    tcase_add_test(tcase, wrong_codegen_paths);
    tcase_add_test(tcase, interpreter_only_where_allowed);
#endif
    tcase_add_test(tcase, codegen_of_another_build);
    tcase_add_loop_test(tcase, compiled_kernels, 0, 2);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
