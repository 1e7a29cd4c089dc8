/* test_property_cumulative.c - random descriptors of CUMULATIVE_SUMMATION and CUMULATIVE_PRODUCT: any sizes, axis,
 * direction, types and layouts; whatever way the kernel is made and run, the output's memory is bit for bit the reference's. */
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/reference/reference.h"
#include "tests/support/checker.h"
#include "tests/support/emulated.h"
#include "tests/support/executors.h"

typedef struct cumulative_case {
    DML_OPERATOR_DESC op;
    DML_CUMULATIVE_SUMMATION_OPERATOR_DESC desc; /* CUMULATIVE_PRODUCT has the same fields */
    test_tensor input, output;
} cumulative_case;

static const test_mode modes[] = {
    { .name = "interpreted", .flags = OPJIT_COMPILE_INTERPRET },
    { .name = "compiled" },
    { .name = "compiled, v1", .target = "cpu:x86-64-v1" },
    { .name = "compiled, v2", .target = "cpu:x86-64-v2" },
    { .name = "compiled, peak", .level = OPJIT_LEVEL_PEAK },
    { .name = "compiled, pieces", .how = TEST_PIECES },
};

/* --- one case ----------------------------------------------------------------------------------------------------- */
static void draw_case(test_random *r, DML_OPERATOR_TYPE type, cumulative_case *c)
{
    static const DML_TENSOR_DATA_TYPE types[] = { DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_DATA_TYPE_FLOAT16,
                                                  DML_TENSOR_DATA_TYPE_FLOAT64, DML_TENSOR_DATA_TYPE_INT32,
                                                  DML_TENSOR_DATA_TYPE_UINT64,  DML_TENSOR_DATA_TYPE_INT64,
                                                  DML_TENSOR_DATA_TYPE_UINT32 };
    memset(c, 0, sizeof *c);
    const DML_TENSOR_DATA_TYPE of = types[test_random_below(r, sizeof types / sizeof *types)];
    const uint32_t rank = 1 + (uint32_t)test_random_below(r, test_random_chance(r, 10) ? 8 : 4);
    test_tensor_link(&c->input, of, rank);
    test_tensor_link(&c->output, of, rank);
    test_tensor_random_sizes(r, &c->input, test_random_chance(r, 10) ? 12000 : 500);
    memcpy(c->output.sizes, c->input.sizes, sizeof c->output.sizes);
    test_tensor_random_layout(r, &c->input, false);
    test_tensor_random_layout(r, &c->output, true);
    c->desc = (DML_CUMULATIVE_SUMMATION_OPERATOR_DESC){ &c->input.desc, &c->output.desc,
                                                        (uint32_t)test_random_below(r, rank),
                                                        (DML_AXIS_DIRECTION)test_random_below(r, 2),
                                                        (int32_t)test_random_below(r, 2) };
    c->op = (DML_OPERATOR_DESC){ type, &c->desc };
}

/* Numbers near 1, so that products neither vanish nor overflow at once; now and then anything. */
static void fill(test_random *r, const test_tensor *t, void *data)
{
    const DML_TENSOR_DATA_TYPE type = t->buffer.DataType;
    const uint32_t size = ref_dtype_size(type);
    const bool wild = test_random_chance(r, 20);
    for (uint64_t i = 0; i < t->span; i++) {
        const uint64_t small = ref_element_of_float(type, (float)test_random_between(r, -5, 7) / 4);
        const uint64_t bits = wild && test_random_chance(r, 10) ? test_random_u64(r) : small;
        memcpy((uint8_t *)data + i * size, &bits, size);
    }
}

/* NaNs that arithmetic made have any sign and payload: made the reference's where both are NaN. */
static void forgive_nans(const cumulative_case *c, const test_buffer *out)
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

static opjit_status run(opjit_context *context, const cumulative_case *c, const test_mode *mode, test_random *r,
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
        status = test_compile_operator(context, op, &options, &kernel, error);
    if (status == OPJIT_OK)
        status = opjit_kernel_call(kernel, &call, error);
    opjit_kernel_release(kernel);
    opjit_operator_release(op);
    return status;
}

static void check_case(opjit_context *context, test_random *r, const cumulative_case *c, const test_mode *mode,
                       uint64_t n)
{
    test_buffer in, out;
    opjit_error error = { OPJIT_OK, "" };
    int64_t at = 0;
    ck_assert(test_buffer_create(&in, r, c->input.bytes, c->input.alignment));
    ck_assert(test_buffer_create(&out, r, c->output.bytes, c->output.alignment));
    fill(r, &c->input, in.data);
    test_buffer_expect_unchanged(&in);
    const opjit_status status = run(context, c, mode, r, &in, &out, &error);
    if ((status != OPJIT_LIMIT || !c->output.interleaved) && !test_excused(mode, status))
        ck_assert_msg(status == OPJIT_OK, "case %" PRIu64 ", %s: %s", n, mode->name, error.message);
    if (status == OPJIT_OK) {
        ref_cumulative(&c->desc, c->op.Type == DML_OPERATOR_CUMULATIVE_PRODUCT, in.data, out.expected);
        forgive_nans(c, &out);
        ck_assert_msg(test_buffer_compare(&in, &at), "case %" PRIu64 ", %s: input changed", n, mode->name);
        ck_assert_msg(test_buffer_compare(&out, &at), "case %" PRIu64 ", %s: axis %u, direction %d, type %d, byte %" PRId64,
                      n, mode->name, c->desc.Axis, (int)c->desc.AxisDirection, (int)c->input.buffer.DataType, at);
    }
    test_buffer_destroy(&in);
    test_buffer_destroy(&out);
}

START_TEST(random_descriptors)
{
    opjit_context *context = test_context_create();
    const test_cases cases = test_cases_init("property.cumulative", 150);
    const bool codegen = test_have_codegen(context);
    cumulative_case *c = malloc(sizeof *c);
    ck_assert_ptr_nonnull(c);
    for (uint64_t n = cases.first; n < cases.end; n++) {
        test_random r;
        test_random_init(&r, cases.seed, (uint64_t)_i, n);
        draw_case(&r, _i == 0 ? DML_OPERATOR_CUMULATIVE_SUMMATION : DML_OPERATOR_CUMULATIVE_PRODUCT, c);
        size_t count = codegen ? sizeof modes / sizeof *modes : 1;
        const test_mode *list = test_modes(modes, count, &count);
        check_case(context, &r, c, &list[test_random_below(&r, count)], n);
    }
    free(c);
    opjit_context_destroy(context);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("property.cumulative");
    TCase *tcase = tcase_create("random descriptors");
    tcase_add_loop_test(tcase, random_descriptors, 0, 2);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
