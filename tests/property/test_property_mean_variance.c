/* test_property_mean_variance.c - random descriptors of MEAN_VARIANCE_NORMALIZATION and MEAN_VARIANCE_NORMALIZATION1:
 * any sizes, axes, types and layouts, with and without Scale, Bias and an activation; whatever way the kernel is made
 * and run, the output's memory is bit for bit the reference's. */
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/reference/reference.h"
#include "tests/support/checker.h"
#include "tests/support/emulated.h"
#include "tests/support/executors.h"

typedef struct mvn_case {
    DML_OPERATOR_DESC op, relu;
    DML_ACTIVATION_RELU_OPERATOR_DESC relu_desc;
    DML_MEAN_VARIANCE_NORMALIZATION_OPERATOR_DESC desc;
    DML_MEAN_VARIANCE_NORMALIZATION1_OPERATOR_DESC desc1; /* the same; for the reference in any case */
    test_tensor input, scale, bias, output;
    uint32_t axes[8];
    bool has_scale, has_bias;
} mvn_case;

static const test_mode modes[] = {
    { .name = "interpreted", .flags = OPJIT_COMPILE_INTERPRET }, { .name = "compiled" },
    { .name = "compiled, v1", .target = "cpu:x86-64-v1" },       { .name = "compiled, v2", .target = "cpu:x86-64-v2" },
    { .name = "compiled, peak", .level = OPJIT_LEVEL_PEAK },     { .name = "compiled, pieces", .how = TEST_PIECES },
};

/* --- one case ----------------------------------------------------------------------------------------------------- */
/* Scale or Bias: some sizes are 1. */
static void draw_factor(test_random *r, const mvn_case *c, test_tensor *t)
{
    test_tensor_link(t, c->input.buffer.DataType, c->input.buffer.DimensionCount);
    for (uint32_t d = 0; d < c->input.buffer.DimensionCount; d++)
        t->sizes[d] = test_random_chance(r, 50) ? 1 : c->input.sizes[d];
    test_tensor_random_layout(r, t, false);
}

static void draw_case(test_random *r, DML_OPERATOR_TYPE type, mvn_case *c)
{
    static const DML_TENSOR_DATA_TYPE types[] = { DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_DATA_TYPE_FLOAT16,
                                                  DML_TENSOR_DATA_TYPE_FLOAT64 };
    static const uint32_t planes[] = { 3, 2, 1 };
    memset(c, 0, sizeof *c);
    const bool old = type == DML_OPERATOR_MEAN_VARIANCE_NORMALIZATION;
    const DML_TENSOR_DATA_TYPE of = types[test_random_below(r, 3)];
    const uint32_t rank = old ? 4 : 1 + (uint32_t)test_random_below(r, test_random_chance(r, 10) ? 8 : 4);
    uint32_t count = 0;
    test_tensor_link(&c->input, of, rank);
    test_tensor_link(&c->output, of, rank);
    test_tensor_random_sizes(r, &c->input, test_random_chance(r, 4) ? 5000 : 200);
    memcpy(c->output.sizes, c->input.sizes, sizeof c->output.sizes);
    test_tensor_random_layout(r, &c->input, false);
    test_tensor_random_layout(r, &c->output, true);
    draw_factor(r, c, &c->scale);
    draw_factor(r, c, &c->bias);
    c->has_scale = test_random_chance(r, 60);
    c->has_bias = test_random_chance(r, 60);
    for (uint32_t d = rank; d-- > 0 && !old;)
        if (test_random_chance(r, 50) || (d == 0 && count == 0))
            c->axes[count++] = d;
    const bool across = test_random_chance(r, 50), divides = test_random_chance(r, 70);
    if (old)
        memcpy(c->axes, planes, (count = across ? 3 : 2) * sizeof *planes);
    c->relu_desc = (DML_ACTIVATION_RELU_OPERATOR_DESC){ 0 };
    c->relu = (DML_OPERATOR_DESC){ DML_OPERATOR_ACTIVATION_RELU, &c->relu_desc };
    c->desc1 = (DML_MEAN_VARIANCE_NORMALIZATION1_OPERATOR_DESC){ &c->input.desc,
                                                                 c->has_scale ? &c->scale.desc : NULL,
                                                                 c->has_bias ? &c->bias.desc : NULL,
                                                                 &c->output.desc,
                                                                 count,
                                                                 c->axes,
                                                                 divides,
                                                                 0.0009765625f,
                                                                 test_random_chance(r, 30) ? &c->relu : NULL };
    c->desc = (DML_MEAN_VARIANCE_NORMALIZATION_OPERATOR_DESC){
        c->desc1.InputTensor, c->desc1.ScaleTensor,    c->desc1.BiasTensor, c->desc1.OutputTensor, across, divides,
        c->desc1.Epsilon,     c->desc1.FusedActivation
    };
    c->op = (DML_OPERATOR_DESC){ type, old ? (const void *)&c->desc : &c->desc1 };
}

/* Small numbers; now and then anything. */
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
static void forgive_nans(const mvn_case *c, const test_buffer *out)
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

static opjit_status run(opjit_context *context, const mvn_case *c, const test_mode *mode, test_random *r,
                        const test_buffer in[3], const test_buffer *out, opjit_error *error)
{
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_call call = OPJIT_CALL_INIT;
    opjit_operator *op = NULL;
    opjit_kernel *kernel = NULL;
    test_executor executor;
    const bool there[] = { true, c->has_scale, c->has_bias };
    opjit_binding bindings[4];
    uint32_t count = 0;
    for (uint32_t i = 0; i < 3; i++)
        if (there[i])
            bindings[count++] = (opjit_binding){ in[i].data, in[i].bytes };
    bindings[count++] = (opjit_binding){ out->data, out->bytes };
    call.bindings = bindings;
    call.binding_count = count;
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

static void check_case(opjit_context *context, test_random *r, const mvn_case *c, const test_mode *mode, uint64_t n)
{
    const test_tensor *tensors[] = { &c->input, &c->scale, &c->bias };
    test_buffer in[3], out;
    opjit_error error = { OPJIT_OK, "" };
    int64_t at = 0;
    ck_assert(test_buffer_create(&out, r, c->output.bytes, c->output.alignment));
    for (uint32_t i = 0; i < 3; i++) {
        ck_assert(test_buffer_create(&in[i], r, tensors[i]->bytes, tensors[i]->alignment));
        fill(r, tensors[i], in[i].data);
        test_buffer_expect_unchanged(&in[i]);
    }
    const opjit_status status = run(context, c, mode, r, in, &out, &error);
    if ((status != OPJIT_LIMIT || !c->output.interleaved) && !test_excused(mode, status))
        ck_assert_msg(status == OPJIT_OK, "case %" PRIu64 ", %s: %s", n, mode->name, error.message);
    if (status == OPJIT_OK) {
        ref_mean_variance_normalization1(&c->desc1, in[0].data, c->has_scale ? in[1].data : NULL,
                                         c->has_bias ? in[2].data : NULL, out.expected);
        forgive_nans(c, &out);
        ck_assert_msg(test_buffer_compare(&in[0], &at), "case %" PRIu64 ", %s: input changed", n, mode->name);
        ck_assert_msg(test_buffer_compare(&out, &at), "case %" PRIu64 ", %s: operator %d, type %d, byte %" PRId64, n,
                      mode->name, (int)c->op.Type, (int)c->input.buffer.DataType, at);
    }
    for (uint32_t i = 0; i < 3; i++)
        test_buffer_destroy(&in[i]);
    test_buffer_destroy(&out);
}

START_TEST(random_descriptors)
{
    opjit_context *context = test_context_create();
    const test_cases cases = test_cases_init("property.mean_variance", 80);
    const bool codegen = test_have_codegen(context);
    mvn_case *c = malloc(sizeof *c);
    ck_assert_ptr_nonnull(c);
    for (uint64_t n = cases.first; n < cases.end; n++) {
        test_random r;
        test_random_init(&r, cases.seed, (uint64_t)_i, n);
        draw_case(&r, _i == 0 ? DML_OPERATOR_MEAN_VARIANCE_NORMALIZATION : DML_OPERATOR_MEAN_VARIANCE_NORMALIZATION1,
                  c);
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
    Suite *suite = suite_create("property.mean_variance");
    TCase *tcase = tcase_create("random descriptors");
    tcase_add_loop_test(tcase, random_descriptors, 0, 2);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
