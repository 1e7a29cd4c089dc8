/* SPDX-License-Identifier: Apache-2.0 */
/* test_fe_key.c - the canonical key: operators with equal keys lower to equal IR, whichever field changes; and what
 * does not reach the IR is not in the key. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/frontend.h"
#include "tests/support/cases.h"
#include "tests/support/descriptors.h"

static opjit_context *context;

static void setup(void)
{
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
    options.target = "cpu:x86-64-v1";
    ck_assert_int_eq(opjit_context_create(&options, &context, NULL), OPJIT_OK);
}

static void teardown(void)
{
    opjit_context_destroy(context);
}

/* The key and IR text of the case with its late fields left open; false: the case is not legal. */
static bool key_and_text(const test_case *c, uint64_t late, rt_bytes *key, rt_bytes *text)
{
    fe_options options;
    opjit_operator *op;
    ir_func f;

    if (opjit_operator_create(context, &c->op, &op, NULL) != OPJIT_OK)
        return false;
    ck_assert_int_eq(opjit_fe_options_read(context, op, NULL, &options, NULL), OPJIT_OK);
    for (uint32_t i = 0; i < op->def->field_count; i++) {
        if ((op->def->fields[i].flags & OP_LATE) == 0 || (late >> i & 1) == 0)
            continue;
        options.late[options.late_count++] = (uint8_t)i;
        options.late_mask |= UINT64_C(1) << i;
    }
    opjit_rt_bytes_init(key, &opjit_rt_default_allocator);
    opjit_rt_bytes_init(text, &opjit_rt_default_allocator);
    opjit_fe_operator_key(op, options.late_mask, key);
    for (uint32_t i = 0; i < options.late_count; i++)
        opjit_rt_bytes_u8(key, options.late[i]);
    test_lower(op, &options, "k", &f);
    opjit_ir_print(&f, text);
    opjit_ir_free(&f);
    if (options.late_mask == 0)
        ck_assert(key->size == op->key.size && memcmp(key->data, op->key.data, key->size) == 0);
    opjit_operator_release(op);
    return true;
}

static bool equal(const rt_bytes *a, const rt_bytes *b)
{
    return a->size == b->size && memcmp(a->data, b->data, a->size) == 0;
}

/* --- one change --------------------------------------------------------------------------------------------------- */

static uint32_t small(test_random *r)
{
    return (uint32_t)test_random_below(r, 6);
}

static void change_tensor(test_random *r, test_tensor *t)
{
    const uint32_t d = (uint32_t)test_random_below(r, t->buffer.DimensionCount);

    switch (test_random_below(r, 7)) {
    case 0: t->sizes[d] = 1 + small(r); break;
    case 1: t->strides[d] = small(r); break;
    case 2: t->buffer.Strides = t->buffer.Strides == NULL ? t->strides : NULL; break;
    case 3: t->buffer.TotalTensorSizeInBytes = test_random_chance(r, 50) ? 0 : t->bytes + 4 * small(r); break;
    case 4: t->buffer.GuaranteedBaseOffsetAlignment = 1u << test_random_below(r, 8); break;
    case 5: t->buffer.Flags = (DML_TENSOR_FLAGS)test_random_below(r, 2); break;
    default: t->buffer.DimensionCount = 1 + (uint32_t)test_random_below(r, 8); break;
    }
}

static void change_scalar(test_random *r, DML_SCALAR_UNION *value)
{
    value->Bytes[test_random_below(r, 8)] ^= (uint8_t)(1u << test_random_below(r, 8));
}

static void change_field(test_random *r, test_case *c)
{
    const bool first = test_random_chance(r, 50);

    switch (c->op.Type) {
    case DML_OPERATOR_DIAGONAL_MATRIX:
        if (first)
            c->desc.diagonal_matrix.Offset ^= 1 << small(r);
        else
            c->desc.diagonal_matrix.Value = -c->desc.diagonal_matrix.Value;
        break;
    case DML_OPERATOR_DIAGONAL_MATRIX1:
        if (test_random_chance(r, 30))
            change_scalar(r, &c->desc.diagonal_matrix1.Value);
        else if (test_random_chance(r, 20))
            c->desc.diagonal_matrix1.InputTensor = NULL;
        else if (first)
            c->desc.diagonal_matrix1.DiagonalFillBegin ^= 1 << small(r);
        else
            c->desc.diagonal_matrix1.DiagonalFillEnd ^= 1 << small(r);
        break;
    case DML_OPERATOR_FILL_VALUE_CONSTANT: change_scalar(r, &c->desc.fill_value_constant.Value); break;
    default:
        change_scalar(r, first ? &c->desc.fill_value_sequence.ValueStart : &c->desc.fill_value_sequence.ValueDelta);
        break;
    }
}

/* Two operators that differ in one field have different keys or equal IR. */
START_TEST(one_change)
{
    const test_cases cases = test_cases_init("fe.key", 3000);
    const DML_OPERATOR_TYPE type = test_operators[_i];
    uint32_t differ = 0, same = 0;

    for (uint64_t number = cases.first; number < cases.end; number++) {
        rt_bytes keys[2], texts[2];
        test_random r;
        test_case c;
        test_random_init(&r, cases.seed, (uint64_t)type, number);
        test_case_random(&r, type, 256, &c);
        const uint64_t late = test_random_chance(&r, 50) ? 0 : test_random_u64(&r);
        if (!key_and_text(&c, late, &keys[0], &texts[0]))
            continue;
        if (test_random_chance(&r, 50))
            change_field(&r, &c);
        else
            change_tensor(&r, c.has_input && test_random_chance(&r, 50) ? &c.input : &c.output);
        if (key_and_text(&c, late, &keys[1], &texts[1])) {
            const bool same_keys = equal(&keys[0], &keys[1]), same_texts = equal(&texts[0], &texts[1]);
            if (same_keys && !same_texts)
                test_case_print(stderr, &c);
            ck_assert_msg(!same_keys || same_texts, "case %llu: equal keys, but\n%.*s\n%.*s",
                          (unsigned long long)number, (int)texts[0].size, texts[0].data, (int)texts[1].size,
                          texts[1].data);
            same += same_keys;
            differ += !same_keys;
            opjit_rt_bytes_free(&keys[1]);
            opjit_rt_bytes_free(&texts[1]);
        }
        opjit_rt_bytes_free(&keys[0]);
        opjit_rt_bytes_free(&texts[0]);
    }
    ck_assert_msg(cases.end - cases.first < 3000 || (same > 100 && differ > 100), "one-sided: %u equal, %u differ",
                  same, differ);
}
END_TEST

/* --- what is not in the key --------------------------------------------------------------------------------------- */

static void make(test_case *c, DML_TENSOR_DATA_TYPE dtype)
{
    memset(c, 0, sizeof *c);
    c->op = (DML_OPERATOR_DESC){ DML_OPERATOR_DIAGONAL_MATRIX1, &c->desc };
    for (int i = 0; i < 2; i++) {
        test_tensor *t = i == 0 ? &c->output : &c->input;
        test_tensor_link(t, dtype, 3);
        t->sizes[0] = 1, t->sizes[1] = 2, t->sizes[2] = 3;
        t->strides[0] = 9, t->strides[1] = 3, t->strides[2] = 1;
        t->buffer.Strides = t->strides;
    }
    c->desc.diagonal_matrix1 =
        (DML_DIAGONAL_MATRIX1_OPERATOR_DESC){ &c->input.desc, &c->output.desc, dtype, { .UInt64 = 0x3c00 }, 0, 1 };
}

static void nothing(test_case *c)
{
    (void)c;
}
static void stride_of_one(test_case *c)
{
    c->output.strides[0] = 77;
}
static void packed(test_case *c)
{
    c->output.buffer.Strides = NULL;
}
static void owned(test_case *c)
{
    c->input.buffer.Flags = DML_TENSOR_FLAG_OWNED_BY_DML;
}
static void hidden_bytes(test_case *c)
{
    c->desc.diagonal_matrix1.Value.Bytes[2] = 0xff;
}
static void implied_total(test_case *c)
{
    c->output.buffer.TotalTensorSizeInBytes = 12;
}
static void implied_align(test_case *c)
{
    c->output.buffer.GuaranteedBaseOffsetAlignment = 2;
}
static void value(test_case *c)
{
    c->desc.diagonal_matrix1.Value.UInt16 = 0x3c01;
}
static void minus_zero(test_case *c)
{
    c->desc.diagonal_matrix1.Value.UInt16 = 0x8000;
}
static void begin(test_case *c)
{
    c->desc.diagonal_matrix1.DiagonalFillBegin = -1;
}
static void no_input(test_case *c)
{
    c->desc.diagonal_matrix1.InputTensor = NULL;
}
static void total(test_case *c)
{
    c->output.buffer.TotalTensorSizeInBytes = 16;
}
static void align(test_case *c)
{
    c->output.buffer.GuaranteedBaseOffsetAlignment = 64;
}
static void stride(test_case *c)
{
    c->output.strides[1] = 4;
}
static void input_stride(test_case *c)
{
    c->input.strides[1] = 0;
}
static void rank(test_case *c)
{
    c->input.buffer.DimensionCount = c->output.buffer.DimensionCount = 2;
    c->input.sizes[0] = c->output.sizes[0] = 3;
    c->input.sizes[1] = c->output.sizes[1] = 3;
    c->input.strides[0] = c->output.strides[0] = 3;
    c->input.strides[1] = c->output.strides[1] = 1;
}

/* clang-format off */
static const struct { const char *name; void (*change)(test_case *c); bool same; } rows[] = {
    { "nothing", nothing, true },           { "stride of size 1", stride_of_one, true },
    { "packed strides left out", packed, true }, { "OWNED_BY_DML", owned, true },
    { "bytes behind the half", hidden_bytes, true }, { "the implied total", implied_total, true },
    { "the implied alignment", implied_align, true }, { "value", value, false },
    { "minus zero", minus_zero, false },    { "begin", begin, false },
    { "no input", no_input, false },        { "total", total, false },
    { "alignment", align, false },          { "stride", stride, false },
    { "input's stride", input_stride, false }, { "rank", rank, false },
};
/* clang-format on */

START_TEST(canonical_row)
{
    rt_bytes keys[2], texts[2];
    test_case c;

    make(&c, DML_TENSOR_DATA_TYPE_FLOAT16);
    ck_assert(key_and_text(&c, 0, &keys[0], &texts[0]));
    rows[_i].change(&c);
    ck_assert(key_and_text(&c, 0, &keys[1], &texts[1]));
    ck_assert_msg(equal(&keys[0], &keys[1]) == rows[_i].same, "%s: key", rows[_i].name);
    ck_assert_msg(equal(&texts[0], &texts[1]) == rows[_i].same, "%s: text", rows[_i].name);
    for (int i = 0; i < 2; i++) {
        opjit_rt_bytes_free(&keys[i]);
        opjit_rt_bytes_free(&texts[i]);
    }
}
END_TEST

/* --- options ------------------------------------------------------------------------------------------------------ */

static const char *const end_only[] = { "DiagonalFillEnd" }, *const both[] = { "DiagonalFillEnd", "Value" },
                         *const turned[] = { "Value", "DiagonalFillEnd" };

/* clang-format off */
static const struct { const char *name; opjit_compile_options options; bool same; } option_rows[] = {
    { "plain", { .level = OPJIT_LEVEL_AUTO }, true },
    { "quick is auto", { .level = OPJIT_LEVEL_QUICK }, true },
    { "peak", { .level = OPJIT_LEVEL_PEAK }, false },
    { "no cache", { .flags = OPJIT_COMPILE_NO_CACHE }, true },
    { "interpret", { .flags = OPJIT_COMPILE_INTERPRET }, false },
    { "masks absorb", { .flags = OPJIT_COMPILE_MASKS_ABSORB }, false },
    { "the context's target", { .target = "cpu:x86-64-v1" }, true },
    { "another target", { .target = "cpu:x86-64-v2" }, false },
    { "name", { .name = "n" }, false },
    { "late", { .late_count = 1, .late = end_only }, false },
};
/* clang-format on */

static size_t options_key(opjit_operator *op, opjit_compile_options options, uint8_t key[static FE_OPTIONS_KEY_SIZE])
{
    fe_options read;

    options.struct_size = sizeof options;
    ck_assert_int_eq(opjit_fe_options_read(context, op, &options, &read, NULL), OPJIT_OK);
    return opjit_fe_options_key(&read, key);
}

START_TEST(option_row)
{
    uint8_t plain[FE_OPTIONS_KEY_SIZE], other[FE_OPTIONS_KEY_SIZE];
    const opjit_compile_options in_order = { .late_count = 2, .late = both },
                                turned_round = { .late_count = 2, .late = turned };
    fe_options read;
    opjit_operator *op;
    test_case c;
    size_t size;

    make(&c, DML_TENSOR_DATA_TYPE_FLOAT16);
    ck_assert_int_eq(opjit_operator_create(context, &c.op, &op, NULL), OPJIT_OK);
    ck_assert_int_eq(opjit_fe_options_read(context, op, NULL, &read, NULL), OPJIT_OK);
    size = opjit_fe_options_key(&read, plain);
    const bool same = options_key(op, option_rows[_i].options, other) == size && memcmp(plain, other, size) == 0;
    ck_assert_msg(same == option_rows[_i].same, "%s", option_rows[_i].name);
    size = options_key(op, in_order, plain);
    ck_assert(options_key(op, turned_round, other) == size && memcmp(plain, other, size) != 0);
    opjit_operator_release(op);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fe.key");
    TCase *tcase = tcase_create("key");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_set_timeout(tcase, 120);
    tcase_add_checked_fixture(tcase, setup, teardown);
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, one_change, 0, TEST_OPERATOR_COUNT);
    tcase_add_loop_test(tcase, canonical_row, 0, sizeof rows / sizeof *rows);
    tcase_add_loop_test(tcase, option_row, 0, sizeof option_rows / sizeof *option_rows);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
