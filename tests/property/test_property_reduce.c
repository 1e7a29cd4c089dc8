/* SPDX-License-Identifier: Apache-2.0 */
/* test_property_reduce.c - random descriptors of REDUCE (except logarithms), ARGMIN, ARGMAX and HARDMAX: any sizes,
 * axes, types and layouts; whichever way the kernel is made and run, the output's memory equals the reference's bit for
 * bit.  Softmax, its logarithm and REDUCE with logarithms: interpreted, close to the formula; compiled, the
 * interpreter's bits. */
#include <check.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/reference/reference.h"
#include "tests/support/operator_case.h"

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
    DML_OPERATOR_REDUCE,
    DML_OPERATOR_REDUCE,
    DML_OPERATOR_REDUCE,
    DML_OPERATOR_ARGMIN,
    DML_OPERATOR_ARGMAX,
    DML_OPERATOR_ACTIVATION_HARDMAX,
    DML_OPERATOR_ACTIVATION_HARDMAX1,
};
enum { OPERATORS = sizeof operators / sizeof *operators };

static const DML_REDUCE_FUNCTION functions[] = {
    DML_REDUCE_FUNCTION_SUM,    DML_REDUCE_FUNCTION_MULTIPLY,   DML_REDUCE_FUNCTION_MAX,     DML_REDUCE_FUNCTION_MIN,
    DML_REDUCE_FUNCTION_L1,     DML_REDUCE_FUNCTION_SUM_SQUARE, DML_REDUCE_FUNCTION_AVERAGE, DML_REDUCE_FUNCTION_L2,
    DML_REDUCE_FUNCTION_ARGMAX, DML_REDUCE_FUNCTION_ARGMIN,
};

/* --- drawing ------------------------------------------------------------------------------------------------------ */
static DML_TENSOR_DATA_TYPE draw(test_random *r, const DML_TENSOR_DATA_TYPE *types, uint64_t count)
{
    return types[test_random_below(r, count)];
}

/* The input's type, and the type of counts in the output. */
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

/* columns: rows of that many, reduced over the last axis; 0: any sizes and axes. */
static void draw_case(test_random *r, DML_OPERATOR_TYPE type, uint32_t columns, reduce_case *c)
{
    static const DML_TENSOR_DATA_TYPE numbers[] = { DML_TENSOR_DATA_TYPE_UINT32, DML_TENSOR_DATA_TYPE_INT32,
                                                    DML_TENSOR_DATA_TYPE_INT64, DML_TENSOR_DATA_TYPE_UINT64 };
    memset(c, 0, sizeof *c);
    const DML_REDUCE_FUNCTION function = functions[test_random_below(r, sizeof functions / sizeof *functions)];
    const bool hardmax = type == DML_OPERATOR_ACTIVATION_HARDMAX || type == DML_OPERATOR_ACTIVATION_HARDMAX1;
    const bool arg = !hardmax && (type != DML_OPERATOR_REDUCE || function == DML_REDUCE_FUNCTION_ARGMAX ||
                                  function == DML_REDUCE_FUNCTION_ARGMIN);
    const DML_TENSOR_DATA_TYPE in = input_type(r, type, function), out = arg ? draw(r, numbers, 4) : in;
    const uint32_t rank = columns ? 2 : 1 + (uint32_t)test_random_below(r, test_random_chance(r, 10) ? 8 : 4);
    test_tensor_link(&c->input, in, rank);
    test_tensor_link(&c->output, out, rank);
    test_tensor_random_sizes(r, &c->input, hardmax ? 150 : test_random_chance(r, 4) ? 9000 : 500);
    c->op.Type = type;
    c->op.Desc = &c->desc;
    draw_axes(r, c);
    if (!hardmax && !columns && rank == 2 && test_random_chance(r, 10)) { /* columns of more than one block */
        c->input.sizes[0] = 4000 + (uint32_t)test_random_below(r, 5000);
        c->input.sizes[1] = 2 + (uint32_t)test_random_below(r, 12);
        c->axes[0] = 0;
        c->axis_count = 1;
    }
    if (!hardmax && !columns && rank == 2 && test_random_chance(r, 12)) { /* few and long: blocks become a stage */
        const uint32_t along = (uint32_t)test_random_below(r, 2);
        c->input.sizes[along] = 65000 + (uint32_t)(test_random_chance(r, 50) ? 4632 : test_random_below(r, 9000));
        c->input.sizes[1 - along] = 1 + (uint32_t)test_random_below(r, 3);
        c->axes[0] = along;
        c->axis_count = 1;
    }
    if (columns) {
        c->input.sizes[0] = 1 + (uint32_t)test_random_below(r, 3);
        c->input.sizes[1] = columns;
        c->axes[0] = 1;
        c->axis_count = 1;
    }
    memcpy(c->output.sizes, c->input.sizes, sizeof c->output.sizes);
    for (uint32_t i = 0; i < c->axis_count && !hardmax; i++)
        c->output.sizes[c->axes[i]] = 1;
    test_tensor_random_layout(r, &c->input, false);
    test_tensor_random_layout(r, &c->output, true);
    if (type == DML_OPERATOR_REDUCE)
        c->desc.reduce =
            (DML_REDUCE_OPERATOR_DESC){ function, &c->input.desc, &c->output.desc, c->axis_count, c->axes };
    else if (hardmax)
        c->desc.hardmax1 =
            (DML_ACTIVATION_HARDMAX1_OPERATOR_DESC){ &c->input.desc, &c->output.desc, c->axis_count, c->axes };
    else
        c->desc.arg = (DML_ARGMAX_OPERATOR_DESC){ &c->input.desc, &c->output.desc, c->axis_count, c->axes,
                                                  (DML_AXIS_DIRECTION)test_random_below(r, 2) };
}

/* --- one case ----------------------------------------------------------------------------------------------------- */
static void reference(const void *user, const void *const *inputs, void *const *outputs)
{
    const reduce_case *c = user;
    const void *input = inputs[0];
    void *output = outputs[0];
    if (c->op.Type == DML_OPERATOR_REDUCE)
        ref_reduce(&c->desc.reduce, input, output);
    else if (c->op.Type == DML_OPERATOR_ARGMIN || c->op.Type == DML_OPERATOR_ARGMAX)
        ref_arg(&c->desc.arg, c->op.Type == DML_OPERATOR_ARGMAX, input, output);
    else
        ref_hardmax(&c->desc.hardmax1, input, output);
}

/* Few different numbers, so that ties occur. */
static operator_case case_of(const reduce_case *c)
{
    return (operator_case){ .op = &c->op,
                            .inputs = { &c->input },
                            .outputs = { &c->output },
                            .low = -9,
                            .high = 12,
                            .reference = reference,
                            .user = c };
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
        draw_case(&r, operators[_i], 0, c);
        const operator_case drawn = case_of(c);
        operator_case_check(context, &drawn, &r, codegen, n);
    }
    free(c);
    opjit_context_destroy(context);
}
END_TEST

/* Rows of several blocks of 4096, which GPUs distribute. */
START_TEST(long_rows)
{
    static const uint32_t columns[] = { 4097, 8192, 36001 };
    opjit_context *context = test_context_create();
    const bool codegen = test_have_codegen(context);
    reduce_case *c = malloc(sizeof *c);
    ck_assert_ptr_nonnull(c);
    for (uint64_t n = 0; n < sizeof columns / sizeof *columns; n++) {
        test_random r;
        test_random_init(&r, 5, (uint64_t)_i, n);
        draw_case(&r, operators[_i], columns[n], c);
        const operator_case drawn = case_of(c);
        operator_case_check(context, &drawn, &r, codegen, n);
    }
    free(c);
    opjit_context_destroy(context);
}
END_TEST

/* --- logarithms and softmax --------------------------------------------------------------------------------------- */

static const struct {
    DML_OPERATOR_TYPE type, drawn; /* drawn: an operator with the same fields, that takes the same types */
    DML_REDUCE_FUNCTION function, drawn_function;
} formulas[] = {
    { DML_OPERATOR_ACTIVATION_SOFTMAX, DML_OPERATOR_ACTIVATION_HARDMAX, 0, 0 },
    { DML_OPERATOR_ACTIVATION_SOFTMAX1, DML_OPERATOR_ACTIVATION_HARDMAX1, 0, 0 },
    { DML_OPERATOR_ACTIVATION_LOG_SOFTMAX, DML_OPERATOR_ACTIVATION_HARDMAX, 0, 0 },
    { DML_OPERATOR_ACTIVATION_LOG_SOFTMAX1, DML_OPERATOR_ACTIVATION_HARDMAX1, 0, 0 },
    { DML_OPERATOR_REDUCE, DML_OPERATOR_REDUCE, DML_REDUCE_FUNCTION_LOG_SUM, DML_REDUCE_FUNCTION_AVERAGE },
    { DML_OPERATOR_REDUCE, DML_OPERATOR_REDUCE, DML_REDUCE_FUNCTION_LOG_SUM_EXP, DML_REDUCE_FUNCTION_L2 },
};
enum { FORMULAS = sizeof formulas / sizeof *formulas };

static double value_of(DML_TENSOR_DATA_TYPE type, uint64_t bits)
{
    const uint32_t word = (uint32_t)bits;
    double d;
    float f;
    memcpy(&d, &bits, 8);
    memcpy(&f, &word, 4);
    return type == DML_TENSOR_DATA_TYPE_FLOAT16   ? ref_float_of_half((uint16_t)bits)
           : type == DML_TENSOR_DATA_TYPE_FLOAT32 ? f
                                                  : d;
}

/* The result at these coordinates by the textbook formula, in as many digits as possible. */
static double result_of(const reduce_case *c, const void *data, const uint32_t at[8])
{
    const ref_tensor in = ref_tensor_of(&c->input.desc);
    const bool plain = c->op.Type == DML_OPERATOR_REDUCE && c->desc.reduce.Function == DML_REDUCE_FUNCTION_LOG_SUM;
    long double sum = 0, most = -HUGE_VALL, x = 0;
    uint32_t other[8], axes = 0;
    for (uint32_t i = 0; i < c->axis_count; i++)
        axes |= 1u << c->axes[i];
    for (uint32_t pass = 0; pass < 2; pass++)
        for (uint64_t e = 0; e < ref_tensor_elements(&in); e++) {
            bool same = true, own = true;
            ref_tensor_coordinates(&in, e, other);
            for (uint32_t d = 0; d < in.rank; d++) {
                same = same && ((axes >> d & 1) != 0 || other[d] == at[d]);
                own = own && other[d] == at[d];
            }
            if (!same)
                continue;
            const long double value = value_of(in.dtype, ref_get(&in, data, other));
            most = pass == 0 && value > most ? value : most;
            sum += pass == 0 ? 0 : plain ? value : value > -HUGE_VALL ? expl(value - most) : 0;
            x = own ? value : x;
        }
    if (c->op.Type == DML_OPERATOR_REDUCE)
        return (double)(plain ? logl(sum) : most + logl(sum));
    if (c->op.Type == DML_OPERATOR_ACTIVATION_SOFTMAX || c->op.Type == DML_OPERATOR_ACTIVATION_SOFTMAX1)
        return (double)(expl(x - most) / sum);
    return (double)(x - most - logl(sum));
}

/* How far the computed sum of count values of one sign may be from the exact one, relative to it.  All values may be
 * the same (a broadcast input), and then all additions round the same way: by up to half a unit of the last place of a
 * partial sum, which on average is half of its block's sum.  The blocks' sums are added in the same way. */
static double sum_error(DML_TENSOR_DATA_TYPE type, uint64_t count)
{
    const uint64_t block = 4096; /* values, as ir/README.md says */
    const double half_unit = type == DML_TENSOR_DATA_TYPE_FLOAT64 ? 0x1p-53 : 0x1p-24; /* FLOAT16 adds in FLOAT32 */
    return half_unit * ((double)(count < block ? count : block) / 2 + (double)(count / block));
}

/* Within a few units of the last place and the roundings of the sum, which is all that the formulas allow; masked
 * elements are 0. */
static void check_formula(const reduce_case *c, const test_buffer *in, const test_buffer *out, uint64_t n)
{
    const ref_tensor t = ref_tensor_of(&c->output.desc);
    const double unit = t.dtype == DML_TENSOR_DATA_TYPE_FLOAT16   ? 6e-4
                        : t.dtype == DML_TENSOR_DATA_TYPE_FLOAT32 ? 2e-6
                                                                  : 4e-15;
    uint64_t count = 1;
    for (uint32_t i = 0; i < c->axis_count; i++)
        count *= c->input.sizes[c->axes[i]];
    for (uint64_t e = 0; e < ref_tensor_elements(&t); e++) {
        uint32_t at[8];
        ref_tensor_coordinates(&t, e, at);
        const double want = result_of(c, in->data, at), is = value_of(t.dtype, ref_get(&t, out->data, at));
        const double slack = unit * (1 + fabs(want)) + sum_error(t.dtype, count);
        ck_assert_msg(want != want || fabs(is - want) <= slack, "case %" PRIu64 ": %.17g, not %.17g", n, is, want);
    }
}

/* Numbers above 0 for logarithms of sums; of both signs for softmax, some of them masked; or anything. */
static void fill_formula(test_random *r, const reduce_case *c, bool wild, const test_buffer *in)
{
    const DML_TENSOR_DATA_TYPE type = c->input.buffer.DataType;
    const bool logs = c->op.Type != DML_OPERATOR_ACTIVATION_SOFTMAX && c->op.Type != DML_OPERATOR_ACTIVATION_SOFTMAX1;
    for (uint64_t i = 0; i < c->input.span; i++) {
        const bool plain = c->op.Type == DML_OPERATOR_REDUCE && c->desc.reduce.Function == DML_REDUCE_FUNCTION_LOG_SUM;
        const bool masked = i > 0 && !logs && test_random_chance(r, 10);
        const float x = (float)test_random_between(r, plain ? 1 : -900, 900) / 100;
        uint64_t bits = ref_element_of_float(type, masked ? -HUGE_VALF : x);
        if (wild && test_random_chance(r, 10))
            bits = test_random_u64(r);
        memcpy(in->data + i * ref_dtype_size(type), &bits, ref_dtype_size(type));
    }
}

/* Interpreted: the formula.  Compiled in any way: the interpreter's bits. */
static void check_formula_case(opjit_context *context, test_random *r, const reduce_case *c, uint64_t n, bool codegen)
{
    const test_mode *mode = &operator_modes[codegen ? test_random_below(r, OPERATOR_MODES) : 0];
    const operator_case drawn = case_of(c);
    const bool wild = test_random_chance(r, 20);
    opjit_error error = { 0 };
    test_buffer in, out;
    ck_assert(test_buffer_create(&in, r, c->input.bytes, c->input.alignment));
    ck_assert(test_buffer_create(&out, r, c->output.bytes, c->output.alignment));
    fill_formula(r, c, wild, &in);
    const opjit_status status = operator_case_run(context, &drawn, &operator_modes[0], r, &in, &out, &error);
    ck_assert_msg(status == OPJIT_OK, "case %" PRIu64 ": %s", n, error.message);
    if (!wild)
        check_formula(c, &in, &out, n);
    memcpy(out.expected, out.data, c->output.bytes);
    memset(out.data, 0x5a, c->output.bytes);
    ck_assert_msg(operator_case_run(context, &drawn, mode, r, &in, &out, &error) == OPJIT_OK,
                  "case %" PRIu64 ", %s: %s", n, mode->name, error.message);
    const ref_tensor t = ref_tensor_of(&c->output.desc);
    for (uint64_t e = 0; e < ref_tensor_elements(&t); e++) {
        uint32_t own[8];
        ref_tensor_coordinates(&t, e, own);
        const uint64_t want = ref_get(&t, out.expected, own), is = ref_get(&t, out.data, own);
        ck_assert_msg(want == is || (ref_is_nan(t.dtype, want) && ref_is_nan(t.dtype, is)),
                      "case %" PRIu64 ", %s: %d, type %d, element %" PRIu64 " is %" PRIx64 ", not %" PRIx64, n,
                      mode->name, (int)c->op.Type, (int)t.dtype, e, is, want);
    }
    test_buffer_destroy(&in);
    test_buffer_destroy(&out);
}

START_TEST(random_formulas)
{
    opjit_context *context = test_context_create();
    const test_cases cases = test_cases_init("property.softmax", 50);
    const bool codegen = test_have_codegen(context);
    reduce_case *c = malloc(sizeof *c);
    ck_assert_ptr_nonnull(c);
    for (uint64_t n = cases.first; n < cases.end; n++) {
        test_random r;
        test_random_init(&r, cases.seed, 100 + (uint64_t)_i, n);
        do
            draw_case(&r, formulas[_i].drawn, 0, c);
        while (c->output.interleaved ||
               (formulas[_i].drawn == DML_OPERATOR_REDUCE && c->desc.reduce.Function != formulas[_i].drawn_function));
        c->op.Type = formulas[_i].type;
        if (c->op.Type == DML_OPERATOR_REDUCE)
            c->desc.reduce.Function = formulas[_i].function;
        check_formula_case(context, &r, c, n, codegen);
    }
    free(c);
    opjit_context_destroy(context);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("property.reduce");
    TCase *tcase = tcase_create("random descriptors");
    tcase_add_loop_test(tcase, random_descriptors, 0, OPERATORS);
    tcase_add_loop_test(tcase, long_rows, 0, 5); /* not HARDMAX, whose reference reads a whole row per element */
    tcase_add_loop_test(tcase, random_formulas, 0, FORMULAS);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
