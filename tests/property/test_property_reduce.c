/* test_property_reduce.c - random descriptors of REDUCE (but for logarithms), ARGMIN, ARGMAX and HARDMAX: any sizes, axes,
 * types and layouts; whatever way the kernel is made and run, the output's memory is bit for bit the reference's.
 * Softmax and its logarithm, interpreted: close to the formula in double. */
#include <check.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/reference/reference.h"
#include "tests/support/checker.h"
#include "tests/support/executors.h"

typedef union descs {
    DML_REDUCE_OPERATOR_DESC reduce;
    DML_ARGMAX_OPERATOR_DESC arg;
    DML_ACTIVATION_HARDMAX1_OPERATOR_DESC hardmax1;
    DML_ACTIVATION_HARDMAX_OPERATOR_DESC hardmax;
} descs;

typedef struct reduce_case {
    DML_OPERATOR_DESC op;
    descs desc;
    test_tensor input, output;
    uint32_t axes[8], axis_count;
} reduce_case;

static const DML_OPERATOR_TYPE operators[] = {
    DML_OPERATOR_REDUCE, DML_OPERATOR_REDUCE, DML_OPERATOR_REDUCE, DML_OPERATOR_ARGMIN, DML_OPERATOR_ARGMAX,
    DML_OPERATOR_ACTIVATION_HARDMAX, DML_OPERATOR_ACTIVATION_HARDMAX1,
};
enum { OPERATORS = sizeof operators / sizeof *operators };

static const DML_REDUCE_FUNCTION functions[] = {
    DML_REDUCE_FUNCTION_SUM, DML_REDUCE_FUNCTION_MULTIPLY, DML_REDUCE_FUNCTION_MAX, DML_REDUCE_FUNCTION_MIN,
    DML_REDUCE_FUNCTION_L1, DML_REDUCE_FUNCTION_SUM_SQUARE, DML_REDUCE_FUNCTION_AVERAGE, DML_REDUCE_FUNCTION_L2,
    DML_REDUCE_FUNCTION_ARGMAX, DML_REDUCE_FUNCTION_ARGMIN,
};

static const test_mode modes[] = {
    { .name = "interpreted", .flags = OPJIT_COMPILE_INTERPRET },
    { .name = "compiled" },
    { .name = "compiled, v1", .target = "cpu:x86-64-v1" },
    { .name = "compiled, v2", .target = "cpu:x86-64-v2" },
    { .name = "compiled, peak", .level = OPJIT_LEVEL_PEAK },
    { .name = "compiled, pieces", .how = TEST_PIECES },
};

/* --- drawing ------------------------------------------------------------------------------------------------------ */
static DML_TENSOR_DATA_TYPE draw(test_random *r, const DML_TENSOR_DATA_TYPE *types, uint64_t count)
{
    return types[test_random_below(r, count)];
}

/* The type of the input, and of numbers of elements in the output. */
static DML_TENSOR_DATA_TYPE input_type(test_random *r, DML_OPERATOR_TYPE type, DML_REDUCE_FUNCTION function)
{
    static const DML_TENSOR_DATA_TYPE reals[] = { DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_DATA_TYPE_FLOAT16,
                                                  DML_TENSOR_DATA_TYPE_FLOAT64 };
    static const DML_TENSOR_DATA_TYPE sums[] = { DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_DATA_TYPE_FLOAT16,
                                                 DML_TENSOR_DATA_TYPE_INT32,   DML_TENSOR_DATA_TYPE_UINT64,
                                                 DML_TENSOR_DATA_TYPE_INT64,   DML_TENSOR_DATA_TYPE_UINT32 };
    const bool hardmax = type == DML_OPERATOR_ACTIVATION_HARDMAX || type == DML_OPERATOR_ACTIVATION_HARDMAX1;
    if (hardmax || (type == DML_OPERATOR_REDUCE &&
                    (function == DML_REDUCE_FUNCTION_AVERAGE || function == DML_REDUCE_FUNCTION_L2)))
        return draw(r, reals, 3);
    if (type != DML_OPERATOR_REDUCE || function == DML_REDUCE_FUNCTION_MAX || function == DML_REDUCE_FUNCTION_MIN ||
        function == DML_REDUCE_FUNCTION_ARGMAX || function == DML_REDUCE_FUNCTION_ARGMIN)
        return draw(r, test_types, TEST_TYPE_COUNT);
    return draw(r, sums, 6);
}

static void draw_axes(test_random *r, reduce_case *c)
{
    const uint32_t rank = c->input.buffer.DimensionCount;
    uint32_t order[8];
    for (uint32_t d = 0; d < rank; d++)
        order[d] = d;
    for (uint32_t d = rank; d-- > 1;) {
        const uint32_t other = (uint32_t)test_random_below(r, d + 1), swap = order[d];
        order[d] = order[other];
        order[other] = swap;
    }
    c->axis_count = test_random_chance(r, 60) ? 1 : 1 + (uint32_t)test_random_below(r, rank);
    memcpy(c->axes, order, sizeof order);
    if (c->op.Type == DML_OPERATOR_ACTIVATION_HARDMAX) {
        c->axis_count = 1;
        c->axes[0] = rank - 1;
    }
}

static void draw_case(test_random *r, DML_OPERATOR_TYPE type, reduce_case *c)
{
    static const DML_TENSOR_DATA_TYPE numbers[] = { DML_TENSOR_DATA_TYPE_UINT32, DML_TENSOR_DATA_TYPE_INT32,
                                                    DML_TENSOR_DATA_TYPE_INT64, DML_TENSOR_DATA_TYPE_UINT64 };
    memset(c, 0, sizeof *c);
    const DML_REDUCE_FUNCTION function = functions[test_random_below(r, sizeof functions / sizeof *functions)];
    const bool hardmax = type == DML_OPERATOR_ACTIVATION_HARDMAX || type == DML_OPERATOR_ACTIVATION_HARDMAX1;
    const bool arg = !hardmax && (type != DML_OPERATOR_REDUCE || function == DML_REDUCE_FUNCTION_ARGMAX ||
                                  function == DML_REDUCE_FUNCTION_ARGMIN);
    const DML_TENSOR_DATA_TYPE in = input_type(r, type, function), out = arg ? draw(r, numbers, 4) : in;
    const uint32_t rank = 1 + (uint32_t)test_random_below(r, test_random_chance(r, 10) ? 8 : 4);
    test_tensor_link(&c->input, in, rank);
    test_tensor_link(&c->output, out, rank);
    test_tensor_random_sizes(r, &c->input, hardmax ? 150 : test_random_chance(r, 4) ? 9000 : 500);
    c->op.Type = type;
    c->op.Desc = &c->desc;
    draw_axes(r, c);
    if (!hardmax && rank == 2 && test_random_chance(r, 10)) { /* columns of more than one block */
        c->input.sizes[0] = 4000 + (uint32_t)test_random_below(r, 5000);
        c->input.sizes[1] = 2 + (uint32_t)test_random_below(r, 12);
        c->axes[0] = 0;
        c->axis_count = 1;
    }
    memcpy(c->output.sizes, c->input.sizes, sizeof c->output.sizes);
    for (uint32_t i = 0; i < c->axis_count && !hardmax; i++)
        c->output.sizes[c->axes[i]] = 1;
    test_tensor_random_layout(r, &c->input, false);
    test_tensor_random_layout(r, &c->output, true);
    if (type == DML_OPERATOR_REDUCE)
        c->desc.reduce = (DML_REDUCE_OPERATOR_DESC){ function, &c->input.desc, &c->output.desc, c->axis_count, c->axes };
    else if (hardmax)
        c->desc.hardmax1 = (DML_ACTIVATION_HARDMAX1_OPERATOR_DESC){ &c->input.desc, &c->output.desc, c->axis_count, c->axes };
    else
        c->desc.arg = (DML_ARGMAX_OPERATOR_DESC){ &c->input.desc, &c->output.desc, c->axis_count, c->axes,
                                                  (DML_AXIS_DIRECTION)test_random_below(r, 2) };
}

/* Few different numbers, so that there are ties; now and then anything, NaNs and infinities among it. */
static void fill(test_random *r, const test_tensor *t, void *data)
{
    const DML_TENSOR_DATA_TYPE type = t->buffer.DataType;
    const uint32_t size = ref_dtype_size(type);
    const bool wild = test_random_chance(r, 20);
    for (uint64_t i = 0; i < t->span; i++) {
        const uint64_t small = ref_element_of_float(type, (float)test_random_between(r, -9, 12) / 4);
        const uint64_t bits = wild && test_random_chance(r, 10) ? test_random_u64(r) : small;
        memcpy((uint8_t *)data + i * size, &bits, size);
    }
}

/* --- one case ----------------------------------------------------------------------------------------------------- */
static void reference(const reduce_case *c, const void *input, void *output)
{
    if (c->op.Type == DML_OPERATOR_REDUCE)
        ref_reduce(&c->desc.reduce, input, output);
    else if (c->op.Type == DML_OPERATOR_ARGMIN || c->op.Type == DML_OPERATOR_ARGMAX)
        ref_arg(&c->desc.arg, c->op.Type == DML_OPERATOR_ARGMAX, input, output);
    else
        ref_hardmax(&c->desc.hardmax1, input, output);
}

/* NaNs that arithmetic made have any sign and payload: made the reference's where both are NaN. */
static void forgive_nans(const reduce_case *c, const test_buffer *out)
{
    const ref_tensor t = ref_tensor_of(&c->output.desc);
    uint32_t at[8];
    for (uint64_t e = 0; ref_dtype_is_float(t.dtype) && e < ref_tensor_elements(&t); e++) {
        ref_tensor_coordinates(&t, e, at);
        const uint64_t want = ref_get(&t, out->expected, at);
        if (ref_is_nan(t.dtype, want) && ref_is_nan(t.dtype, ref_get(&t, out->data, at)))
            ref_set(&t, out->data, at, want);
    }
}

static opjit_status run(opjit_context *context, const reduce_case *c, const test_mode *mode, test_random *r,
                        const test_buffer *in, const test_buffer *out, opjit_error *error)
{
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_call call = OPJIT_CALL_INIT;
    opjit_operator *op = NULL;
    opjit_kernel *kernel = NULL;
    test_executor executor;
    const opjit_binding bindings[] = { { in->data, in->bytes }, { out->data, out->bytes } };
    call.bindings = bindings;
    call.binding_count = 2;
    options.flags = mode->flags;
    options.level = mode->level;
    options.target = mode->target;
    test_executor_init(&executor, r, false);
    call.executor = mode->how == TEST_PIECES ? &executor.executor : NULL;
    opjit_status status = opjit_operator_create(context, &c->op, &op, error);
    if (status == OPJIT_OK)
        status = opjit_compile_operator(context, op, &options, &kernel, error);
    if (status == OPJIT_OK)
        status = opjit_kernel_call(kernel, &call, error);
    opjit_kernel_release(kernel);
    opjit_operator_release(op);
    return status;
}

static void check_case(opjit_context *context, test_random *r, const reduce_case *c, const test_mode *mode, uint64_t n)
{
    test_buffer in, out;
    opjit_error error = { OPJIT_OK, "" };
    int64_t at = 0;
    ck_assert(test_buffer_create(&in, r, c->input.bytes, c->input.alignment));
    ck_assert(test_buffer_create(&out, r, c->output.bytes, c->output.alignment));
    fill(r, &c->input, in.data);
    test_buffer_expect_unchanged(&in);
    const opjit_status status = run(context, c, mode, r, &in, &out, &error);
    if (status != OPJIT_LIMIT || !c->output.interleaved)
        ck_assert_msg(status == OPJIT_OK, "case %" PRIu64 ", %s: %s", n, mode->name, error.message);
    if (status == OPJIT_OK) {
        reference(c, in.data, out.expected);
        forgive_nans(c, &out);
        ck_assert_msg(test_buffer_compare(&in, &at), "case %" PRIu64 ", %s: input changed", n, mode->name);
        ck_assert_msg(test_buffer_compare(&out, &at), "case %" PRIu64 ", %s: %d, function %d, type %d, byte %" PRId64, n,
                      mode->name, (int)c->op.Type, (int)c->desc.reduce.Function, (int)c->input.buffer.DataType, at);
    }
    test_buffer_destroy(&in);
    test_buffer_destroy(&out);
}

START_TEST(random_descriptors)
{
    opjit_context *context = test_context_create();
    const test_cases cases = test_cases_init("property.reduce", 60);
    const bool codegen = test_have_codegen(context);
    reduce_case *c = malloc(sizeof *c);
    ck_assert_ptr_nonnull(c);
    for (uint64_t n = cases.first; n < cases.end; n++) {
        test_random r;
        test_random_init(&r, cases.seed, (uint64_t)_i, n);
        draw_case(&r, operators[_i], c);
        const uint64_t count = codegen ? sizeof modes / sizeof *modes : 1;
        check_case(context, &r, c, &modes[test_random_below(&r, count)], n);
    }
    free(c);
    opjit_context_destroy(context);
}
END_TEST

/* --- softmax ------------------------------------------------------------------------------------------------------ */

/* Softmax or its logarithm of the element at these coordinates, in double by the textbook's formula. */
static double softmax_of(const reduce_case *c, const float *data, const uint32_t at[8], bool log_of_it)
{
    const ref_tensor in = ref_tensor_of(&c->input.desc);
    double sum = 0, most = -HUGE_VAL;
    uint32_t other[8], axes = 0;
    for (uint32_t i = 0; i < c->axis_count; i++)
        axes |= 1u << c->axes[i];
    for (uint32_t pass = 0; pass < 2; pass++)
        for (uint64_t e = 0; e < ref_tensor_elements(&in); e++) {
            bool same = true;
            ref_tensor_coordinates(&in, e, other);
            for (uint32_t d = 0; d < in.rank; d++)
                same = same && ((axes >> d & 1) != 0 || other[d] == at[d]);
            const double x = same ? data[ref_tensor_offset(&in, other)] : -HUGE_VAL;
            most = pass == 0 && x > most ? x : most;
            sum += pass == 1 && x > -HUGE_VAL ? exp(x - most) : 0;
        }
    const double x = data[ref_tensor_offset(&in, at)] - most;
    return log_of_it ? x - log(sum) : exp(x) / sum;
}

/* Within a few units of the last place, which is all that the formula's roundings allow; masked elements are 0. */
START_TEST(softmax)
{
    static const DML_OPERATOR_TYPE types[] = { DML_OPERATOR_ACTIVATION_SOFTMAX, DML_OPERATOR_ACTIVATION_SOFTMAX1,
                                               DML_OPERATOR_ACTIVATION_LOG_SOFTMAX, DML_OPERATOR_ACTIVATION_LOG_SOFTMAX1 };
    opjit_context *context = test_context_create();
    const test_cases cases = test_cases_init("property.softmax", 40);
    const test_mode interpreted = { .name = "interpreted", .flags = OPJIT_COMPILE_INTERPRET };
    for (uint64_t n = cases.first; n < cases.end; n++) {
        test_random r;
        reduce_case c;
        test_buffer in, out;
        opjit_error error = { OPJIT_OK, "" };
        test_random_init(&r, cases.seed, 100 + (uint64_t)_i, n);
        do
            draw_case(&r, _i % 2 == 0 ? DML_OPERATOR_ACTIVATION_HARDMAX : DML_OPERATOR_ACTIVATION_HARDMAX1, &c);
        while (c.input.buffer.DataType != DML_TENSOR_DATA_TYPE_FLOAT32 || c.output.interleaved);
        c.op = (DML_OPERATOR_DESC){ types[_i], &c.desc };
        ck_assert(test_buffer_create(&in, &r, c.input.bytes, c.input.alignment));
        ck_assert(test_buffer_create(&out, &r, c.output.bytes, c.output.alignment));
        float *data = (float *)(void *)in.data;
        for (uint64_t i = 0; i < c.input.span; i++)
            data[i] = i > 0 && test_random_chance(&r, 10) && _i < 2 ? -HUGE_VALF : (float)test_random_between(&r, -900, 900) / 100;
        const opjit_status status = run(context, &c, &interpreted, &r, &in, &out, &error);
        ck_assert_msg(status == OPJIT_OK, "case %" PRIu64 ": %s", n, error.message);
        const ref_tensor t = ref_tensor_of(&c.output.desc);
        for (uint64_t e = 0; e < ref_tensor_elements(&t); e++) {
            uint32_t at[8];
            ref_tensor_coordinates(&t, e, at);
            const double want = softmax_of(&c, data, at, _i >= 2);
            const double is = ((const float *)(const void *)out.data)[ref_tensor_offset(&t, at)];
            ck_assert_msg(want != want || fabs(is - want) <= 2e-6 * (1 + fabs(want)), "case %" PRIu64 ": %.9g, not %.9g", n,
                          is, want);
        }
        test_buffer_destroy(&in);
        test_buffer_destroy(&out);
    }
    opjit_context_destroy(context);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("property.reduce");
    TCase *tcase = tcase_create("random descriptors");
    tcase_add_loop_test(tcase, random_descriptors, 0, OPERATORS);
    tcase_add_loop_test(tcase, softmax, 0, 4);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
