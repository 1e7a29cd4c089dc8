/* SPDX-License-Identifier: Apache-2.0 */
/* operator_case.c - makes one operator, runs it between guards and compares. */
#include "tests/support/operator_case.h"

#include <check.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "tests/machines/emulated.h"
#include "tests/reference/reference.h"
#include "tests/support/executors.h"

const test_mode operator_modes[OPERATOR_MODES] = {
    { .name = "interpreted", .flags = OPJIT_COMPILE_INTERPRET }, { .name = "compiled" },
    { .name = "compiled, v1", .target = "cpu:x86-64-v1" },       { .name = "compiled, v2", .target = "cpu:x86-64-v2" },
    { .name = "compiled, peak", .level = OPJIT_LEVEL_PEAK },     { .name = "compiled, pieces", .how = TEST_PIECES },
};

static void fill(test_random *r, const operator_case *c, const test_tensor *t, bool calm, void *data)
{
    const DML_TENSOR_DATA_TYPE type = t->buffer.DataType;
    const uint32_t size = ref_dtype_size(type);
    const bool wild = !calm && test_random_chance(r, 20);
    const int unit = ref_dtype_is_float(type) || c->whole == 0 ? 1 : c->whole;
    for (uint64_t i = 0; (i + 1) * size <= ref_dtype_bytes(type, t->span); i++) {
        const uint64_t small =
            ref_element_of_float(type, (float)test_random_between(r, c->low * unit, c->high * unit) / 4);
        const uint64_t bits = wild && test_random_chance(r, 10) ? test_random_u64(r) : small;
        memcpy((uint8_t *)data + i * size, &bits, size);
    }
}

/* NaNs from arithmetic may have any sign and payload: where both are NaN, takes the reference's. */
static void forgive_nans(const test_tensor *output, const test_buffer *out)
{
    const ref_tensor t = ref_tensor_of(&output->desc);
    uint32_t at[8];
    for (uint64_t e = 0; ref_dtype_is_float(t.dtype) && e < ref_tensor_elements(&t); e++) {
        ref_tensor_coordinates(&t, e, at);
        const uint64_t want = ref_get(&t, out->expected, at);
        if (ref_is_nan(t.dtype, want) && ref_is_nan(t.dtype, ref_get(&t, out->data, at)))
            ref_set(&t, out->data, at, want);
    }
}

opjit_status operator_case_run(opjit_context *context, const operator_case *c, const test_mode *mode, test_random *r,
                               const test_buffer *inputs, const test_buffer *outputs, opjit_error *error)
{
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_call call = OPJIT_CALL_INIT;
    opjit_operator *op = NULL;
    opjit_kernel *kernel = NULL;
    test_executor executor;
    opjit_binding bindings[OPERATOR_INPUTS + OPERATOR_OUTPUTS];
    for (uint32_t i = 0; i < OPERATOR_INPUTS; i++)
        if (c->inputs[i] != NULL)
            bindings[call.binding_count++] = (opjit_binding){ inputs[i].data, inputs[i].bytes };
    for (uint32_t i = 0; i < OPERATOR_OUTPUTS; i++)
        if (c->outputs[i] != NULL)
            bindings[call.binding_count++] = (opjit_binding){ outputs[i].data, outputs[i].bytes };
    call.bindings = bindings;
    options.flags = mode->flags;
    options.level = mode->level;
    options.target = mode->target;
    test_executor_init(&executor, r, false);
    call.executor = mode->how == TEST_PIECES ? &executor.executor : NULL;
    opjit_status status = opjit_operator_create(context, c->op, &op, error);
    if (status == OPJIT_OK)
        status = test_compile_operator(context, op, &options, &kernel, error);
    if (status == OPJIT_OK)
        status = opjit_kernel_call(kernel, &call, error);
    opjit_kernel_release(kernel);
    opjit_operator_release(op);
    return status;
}

/* Writes the reference's results to where outputs are expected. */
static void expect(const operator_case *c, const test_buffer *in, const test_buffer *out)
{
    const void *inputs[OPERATOR_INPUTS] = { NULL };
    void *outputs[OPERATOR_OUTPUTS] = { NULL };
    for (uint32_t i = 0; i < OPERATOR_INPUTS; i++)
        if (c->inputs[i] != NULL)
            inputs[i] = in[i].data;
    for (uint32_t i = 0; i < OPERATOR_OUTPUTS; i++)
        if (c->outputs[i] != NULL)
            outputs[i] = out[i].expected;
    c->reference(c->user, inputs, outputs);
}

static void compare(const operator_case *c, const test_mode *mode, test_buffer *in, test_buffer *out, uint64_t n)
{
    int64_t at = 0;
    for (uint32_t i = 0; i < OPERATOR_INPUTS; i++)
        ck_assert_msg(c->inputs[i] == NULL || test_buffer_compare(&in[i], &at),
                      "case %" PRIu64 ", %s: input %u changed", n, mode->name, i);
    for (uint32_t i = 0; i < OPERATOR_OUTPUTS; i++) {
        if (c->outputs[i] == NULL)
            continue;
        forgive_nans(c->outputs[i], &out[i]);
        ck_assert_msg(test_buffer_compare(&out[i], &at),
                      "case %" PRIu64 ", %s: operator %d, output %u, type %d, byte %" PRId64, n, mode->name,
                      (int)c->op->Type, i, (int)c->outputs[i]->buffer.DataType, at);
    }
}

/* Takes what is there for what is expected, after a look at whether it is near that, and spoils it. */
static void take_near(const operator_case *c, bool calm, const test_buffer *out, uint32_t i, uint64_t n)
{
    const ref_tensor t = ref_tensor_of(&c->outputs[i]->desc);
    const double unit = t.dtype == DML_TENSOR_DATA_TYPE_FLOAT16   ? 0x1p-8
                        : t.dtype == DML_TENSOR_DATA_TYPE_FLOAT32 ? 0x1p-18
                                                                  : 0x1p-44;
    uint32_t at[8];
    for (uint64_t e = 0; e < ref_tensor_elements(&t); e++) {
        ref_tensor_coordinates(&t, e, at);
        const uint64_t bits = ref_get(&t, out->data, at);
        const double is = ref_real(t.dtype, bits), want = ref_real(t.dtype, ref_get(&t, out->expected, at));
        ck_assert_msg(!calm || is == want || (isnan(is) && isnan(want)) || fabs(is - want) <= unit * (1 + fabs(want)),
                      "case %" PRIu64 ": operator %d, output %u: %.17g, not %.17g", n, (int)c->op->Type, i, is, want);
        ref_set(&t, out->expected, at, bits);
        ref_set(&t, out->data, at, ~bits);
    }
}

/* Memory for all tensors that are there; inputs are filled.  calm: with numbers in the case's range alone. */
static void make_buffers(const operator_case *c, test_random *r, bool calm, test_buffer *in, test_buffer *out)
{
    for (uint32_t i = 0; i < OPERATOR_OUTPUTS; i++)
        if (c->outputs[i] != NULL)
            ck_assert(test_buffer_create(&out[i], r, c->outputs[i]->bytes, c->outputs[i]->alignment));
    for (uint32_t i = 0; i < OPERATOR_INPUTS; i++) {
        if (c->inputs[i] == NULL)
            continue;
        ck_assert(test_buffer_create(&in[i], r, c->inputs[i]->bytes, c->inputs[i]->alignment));
        fill(r, c, c->inputs[i], calm, in[i].data);
        test_buffer_expect_unchanged(&in[i]);
    }
}

void operator_case_check(opjit_context *context, const operator_case *c, test_random *r, bool codegen, uint64_t n)
{
    size_t count = codegen ? OPERATOR_MODES : 1;
    const test_mode *list = test_modes(operator_modes, count, &count), *mode = &list[test_random_below(r, count)];
    test_buffer in[OPERATOR_INPUTS] = { 0 }, out[OPERATOR_OUTPUTS] = { 0 };
    opjit_error error = { 0 };
    bool interleaved = false;
    for (uint32_t i = 0; i < OPERATOR_OUTPUTS; i++)
        interleaved = interleaved || (c->outputs[i] != NULL && c->outputs[i]->interleaved);
    const bool calm = c->near && test_random_chance(r, 80);
    make_buffers(c, r, calm, in, out);
    expect(c, in, out);
    if (c->near && operator_case_run(context, c, &operator_modes[0], r, in, out, &error) == OPJIT_OK)
        for (uint32_t i = 0; i < OPERATOR_OUTPUTS; i++)
            if (c->outputs[i] != NULL)
                take_near(c, calm, &out[i], i, n);
    const opjit_status status = operator_case_run(context, c, mode, r, in, out, &error);
    if ((status != OPJIT_LIMIT || !interleaved) && !test_excused(mode, status))
        ck_assert_msg(status == OPJIT_OK, "case %" PRIu64 ", %s: %s", n, mode->name, error.message);
    if (status == OPJIT_OK)
        compare(c, mode, in, out, n);
    for (uint32_t i = 0; i < OPERATOR_INPUTS; i++)
        if (c->inputs[i] != NULL)
            test_buffer_destroy(&in[i]);
    for (uint32_t i = 0; i < OPERATOR_OUTPUTS; i++)
        if (c->outputs[i] != NULL)
            test_buffer_destroy(&out[i]);
}
