/* SPDX-License-Identifier: Apache-2.0 */
/* test_property_invalid.c - descriptors that are wrong in one field, systematically, and descriptors of random bytes.
 * Each is refused with a status and one line that names operator and field; none crashes.  Wrong calls and options are
 * in test_property_refused.c. */
#include <check.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <opjit/opjit.h>

#include "tests/reference/reference.h"
#include "tests/support/cases.h"
#include "tests/support/checker.h"
#include "tests/support/require.h"

/* A valid operator of the given type, data type and rank, with all optional parts. */
static void make_valid(test_case *c, DML_OPERATOR_TYPE type, DML_TENSOR_DATA_TYPE dtype, uint32_t rank)
{
    test_desc *d = &c->desc;
    memset(c, 0, sizeof *c);
    c->op = (DML_OPERATOR_DESC){ type, d };
    for (int i = 0; i < 2; i++) {
        test_tensor *t = i == 0 ? &c->output : &c->input;
        uint32_t stride = 1;
        test_tensor_link(t, dtype, rank);
        for (uint32_t k = rank; k-- != 0;) {
            t->sizes[k] = 2 + k % 2;
            t->strides[k] = stride;
            stride *= t->sizes[k];
        }
        t->buffer.Strides = t->strides;
        test_tensor_measure(t);
    }
    switch (type) {
    case DML_OPERATOR_DIAGONAL_MATRIX: d->diagonal_matrix.OutputTensor = &c->output.desc; break;
    case DML_OPERATOR_DIAGONAL_MATRIX1:
        c->has_input = true;
        d->diagonal_matrix1.InputTensor = &c->input.desc;
        d->diagonal_matrix1.OutputTensor = &c->output.desc;
        d->diagonal_matrix1.ValueDataType = dtype;
        break;
    case DML_OPERATOR_FILL_VALUE_CONSTANT:
        d->fill_value_constant.OutputTensor = &c->output.desc;
        d->fill_value_constant.ValueDataType = dtype;
        break;
    default:
        d->fill_value_sequence.OutputTensor = &c->output.desc;
        d->fill_value_sequence.ValueDataType = dtype;
        break;
    }
}

static unsigned refusals;            /* in this process, for its report */

/* The case must be refused with a message that begins with the operator's name and names the field. */
static void expect_refused(opjit_context *context, const test_case *c, const char *field)
{
    opjit_operator *op = (opjit_operator *)(uintptr_t)1;
    opjit_error error = { 0 };
    const char *name = test_operator_name(c->op.Type);
    const opjit_status status = opjit_operator_create(context, &c->op, &op, &error);
    if (status != OPJIT_INVALID_ARGUMENT && status != OPJIT_UNSUPPORTED)
        test_case_print(stderr, c);
    ck_assert_msg(status == OPJIT_INVALID_ARGUMENT || status == OPJIT_UNSUPPORTED, "%s with a wrong %s: %s", name,
                  field, opjit_status_name(status));
    ck_assert_msg(op == NULL, "%s %s: refused, but the operator is not NULL", name, field);
    ck_assert_int_eq(error.status, status);
    ck_assert_msg(strncmp(error.message, name, strlen(name)) == 0 && error.message[strlen(name)] == ' ' &&
                      strstr(error.message, field) != NULL && strchr(error.message, '\n') == NULL,
                  "%s with a wrong %s: the message is \"%s\"", name, field, error.message);
    ck_assert_str_eq(error.op, name);
    ck_assert_msg(strstr(error.message, error.field) != NULL && strstr(error.field, field) != NULL,
                  "%s with a wrong %s: the field is %s", name, field, error.field);
    test_require_place(&error);
    ck_assert_int_eq(opjit_operator_create(context, &c->op, &op, NULL), status);
    refusals++;
}

/* --- one tensor field at a time ----------------------------------------------------------------------------------- */
static void wrong_head(opjit_context *context, const test_case *c, test_tensor *t, bool is_output)
{
    static const uint32_t types[] = { 0, 2, 77, 0x80000000 };
    static const uint32_t dtypes[] = { 0, 12, 13, 14, 99, 0x7fffffff, 0xffffffff };
    static const uint32_t flags[] = { 2, 3, 4, 0x80000000, 0xffffffff };
    static const uint32_t ranks[] = { 0, 9, 10, 255, 0x10000001, 0xffffffff };
    const test_tensor valid = *t;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++, t->desc.Type = valid.desc.Type) {
        t->desc.Type = (DML_TENSOR_TYPE)types[i];
        expect_refused(context, c, "Tensor.Type");
    }
    t->desc.Desc = NULL;
    expect_refused(context, c, "Tensor.Desc");
    t->desc.Desc = valid.desc.Desc;
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++, t->buffer.DataType = valid.buffer.DataType) {
        t->buffer.DataType = (DML_TENSOR_DATA_TYPE)dtypes[i];
        expect_refused(context, c, "Tensor.DataType");
    }
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++, t->buffer.Flags = valid.buffer.Flags) {
        t->buffer.Flags = (DML_TENSOR_FLAGS)flags[i];
        expect_refused(context, c, "Tensor.Flags");
    }
    if (is_output) {
        t->buffer.Flags = DML_TENSOR_FLAG_OWNED_BY_DML;
        expect_refused(context, c, "Tensor.Flags");
        t->buffer.Flags = DML_TENSOR_FLAG_NONE;
    }
    for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++, t->buffer.DimensionCount = valid.buffer.DimensionCount) {
        t->buffer.DimensionCount = ranks[i];
        expect_refused(context, c, "Tensor.DimensionCount");
    }
}

static void wrong_sizes(opjit_context *context, const test_case *c, test_tensor *t)
{
    t->buffer.Sizes = NULL;
    expect_refused(context, c, "Tensor.Sizes");
    t->buffer.Sizes = t->sizes;
    for (uint32_t i = 0; i < t->buffer.DimensionCount; i++) {
        const uint32_t size = t->sizes[i];
        t->sizes[i] = 0;
        expect_refused(context, c, "Tensor.Sizes");
        if (t->buffer.DimensionCount > 1) { /* one dimension alone may have that size */
            t->sizes[i] = UINT32_MAX;
            expect_refused(context, c, "Tensor.S");
            t->buffer.Strides = NULL;
            expect_refused(context, c, "Tensor.Sizes");
            t->buffer.Strides = t->strides;
        }
        t->sizes[i] = size;
    }
}

static void wrong_strides(opjit_context *context, const test_case *c, test_tensor *t, bool is_output)
{
    const test_tensor valid = *t;
    const uint32_t rank = t->buffer.DimensionCount;
    for (uint32_t i = 0; i < rank; i++) {
        if (t->sizes[i] > 2) { /* (size - 1) * stride alone must exceed the limit */
            t->strides[i] = UINT32_MAX;
            expect_refused(context, c, "Tensor.Strides");
        }
        t->strides[i] = 0;
        if (is_output)
            expect_refused(context, c, "Tensor.Strides");
        t->strides[i] = valid.strides[i];
        if (is_output && i + 1 < rank) { /* the same stride twice: two coordinates share an element */
            t->strides[i] = valid.strides[i + 1];
            expect_refused(context, c, "Tensor.Strides");
            t->strides[i] = valid.strides[i];
        }
    }
}

static void wrong_memory(opjit_context *context, const test_case *c, test_tensor *t)
{
    static const uint32_t alignments[] = { 3, 5, 6, 7, 12, 24, 65, 96, 0x7fffffff, 0x80000001, 0xffffffff };
    const uint64_t least = t->bytes;
    const uint64_t totals[] = { 1, 2, 3, least - 1, least - 2, least - 3, least + 1, least + 2, least + 3, UINT64_MAX,
                                UINT64_MAX - 1 };
    for (size_t i = 0; i < sizeof alignments / sizeof *alignments; i++) {
        t->buffer.GuaranteedBaseOffsetAlignment = alignments[i];
        expect_refused(context, c, "Tensor.GuaranteedBaseOffsetAlignment");
    }
    t->buffer.GuaranteedBaseOffsetAlignment = 0;
    for (size_t i = 0; i < sizeof totals / sizeof *totals; i++) {
        if (totals[i] == 0 || (totals[i] >= least && totals[i] % 4 == 0))
            continue;
        t->buffer.TotalTensorSizeInBytes = totals[i];
        expect_refused(context, c, "Tensor.TotalTensorSizeInBytes");
    }
    t->buffer.TotalTensorSizeInBytes = 0;
}

START_TEST(a_wrong_tensor_field_is_refused)
{
    opjit_context *context = test_context_create();
    const DML_OPERATOR_TYPE type = test_operators[_i];
    const bool is_matrix = type == DML_OPERATOR_DIAGONAL_MATRIX || type == DML_OPERATOR_DIAGONAL_MATRIX1;
    for (int k = 0; k < TEST_TYPE_COUNT; k++) {
        for (uint32_t rank = is_matrix ? 2 : 1; rank <= 8; rank++) {
            opjit_operator *op = NULL;
            test_case c;
            make_valid(&c, type, test_types[k], rank);
            ck_assert_int_eq(opjit_operator_create(context, &c.op, &op, NULL), OPJIT_OK);
            opjit_operator_release(op);
            for (int i = 0; i < (c.has_input ? 2 : 1); i++) {
                test_tensor *t = i == 0 ? &c.output : &c.input;
                wrong_head(context, &c, t, i == 0);
                wrong_sizes(context, &c, t);
                wrong_strides(context, &c, t, i == 0);
                wrong_memory(context, &c, t);
            }
        }
    }
    printf("%s: %u wrong descriptors refused\n", test_operator_name(type), refusals);
    opjit_context_destroy(context);
}
END_TEST

/* --- fields that must fit each other ------------------------------------------------------------------------------ */
static DML_TENSOR_DATA_TYPE *value_type(test_case *c)
{
    switch (c->op.Type) {
    case DML_OPERATOR_DIAGONAL_MATRIX1: return &c->desc.diagonal_matrix1.ValueDataType;
    case DML_OPERATOR_FILL_VALUE_CONSTANT: return &c->desc.fill_value_constant.ValueDataType;
    case DML_OPERATOR_FILL_VALUE_SEQUENCE: return &c->desc.fill_value_sequence.ValueDataType;
    default: return NULL;
    }
}

/* DIAGONAL_MATRIX1's input must have the output's sizes, rank and type. */
static void wrong_input(opjit_context *context, test_case *c)
{
    test_tensor *in = &c->input;
    const uint32_t rank = in->buffer.DimensionCount;
    const DML_TENSOR_DATA_TYPE dtype = in->buffer.DataType;
    for (int k = 0; k < TEST_TYPE_COUNT; k++) {
        in->buffer.DataType = test_types[k];
        if (test_types[k] != dtype)
            expect_refused(context, c, "InputTensor.DataType");
    }
    in->buffer.DataType = dtype;
    for (uint32_t i = 0; i < rank; i++) {
        in->sizes[i]++;
        expect_refused(context, c, "InputTensor.Sizes");
        in->sizes[i] -= 2;
        expect_refused(context, c, "InputTensor.Sizes");
        in->sizes[i]++;
    }
    in->buffer.DimensionCount = rank - 1;
    expect_refused(context, c, "InputTensor.DimensionCount");
    in->buffer.DimensionCount = rank + 1; /* the size after the last one is legal */
    in->sizes[rank < 8 ? rank : 7] = rank < 8 ? 1 : in->sizes[7];
    expect_refused(context, c, "InputTensor.DimensionCount");
    in->buffer.DimensionCount = rank;
}

START_TEST(fields_that_do_not_fit_are_refused)
{
    static const uint32_t no_types[] = { 0, 12, 13, 14, 0x7fffffff, 0xffffffff };
    opjit_context *context = test_context_create();
    for (int k = 0; k < TEST_TYPE_COUNT; k++) {
        test_case c;
        make_valid(&c, test_operators[_i], test_types[k], 3);
        DML_TENSOR_DATA_TYPE *type = value_type(&c);
        for (int other = 0; type != NULL && other < TEST_TYPE_COUNT; other++) {
            *type = test_types[other];
            if (other != k)
                expect_refused(context, &c, "ValueDataType");
        }
        for (size_t i = 0; type != NULL && i < sizeof no_types / sizeof *no_types; i++) {
            *type = (DML_TENSOR_DATA_TYPE)no_types[i];
            expect_refused(context, &c, "ValueDataType");
        }
        make_valid(&c, test_operators[_i], test_types[k], 3);
        if (c.has_input)
            wrong_input(context, &c);
        if (c.op.Type == DML_OPERATOR_DIAGONAL_MATRIX || c.op.Type == DML_OPERATOR_DIAGONAL_MATRIX1) {
            make_valid(&c, test_operators[_i], test_types[k], 1);
            expect_refused(context, &c, "Tensor.DimensionCount");
        }
        make_valid(&c, test_operators[_i], test_types[k], 3);
        /* OutputTensor is the first field of all except DIAGONAL_MATRIX1. */
        if (c.op.Type == DML_OPERATOR_DIAGONAL_MATRIX1)
            c.desc.diagonal_matrix1.OutputTensor = NULL;
        else
            c.desc.diagonal_matrix.OutputTensor = NULL;
        expect_refused(context, &c, "OutputTensor");
    }
    opjit_context_destroy(context);
}
END_TEST

START_TEST(unknown_operators_are_refused)
{
    opjit_context *context = test_context_create();
    test_case c;
    make_valid(&c, DML_OPERATOR_FILL_VALUE_CONSTANT, DML_TENSOR_DATA_TYPE_FLOAT32, 2);
    for (int64_t type = -2; type < 300; type++) {
        opjit_operator *op = NULL;
        opjit_error error = { 0 };
        c.op.Type = (DML_OPERATOR_TYPE)type;
        c.op.Desc = NULL; /* no operator has a descriptor at NULL */
        const opjit_status status = opjit_operator_create(context, &c.op, &op, &error);
        ck_assert_msg(status == OPJIT_INVALID_ARGUMENT || status == OPJIT_UNSUPPORTED, "type %d: %s", (int)type,
                      opjit_status_name(status));
        ck_assert(op == NULL && error.message[0] != '\0');
    }
    opjit_context_destroy(context);
}
END_TEST

/* --- random bytes ------------------------------------------------------------------------------------------------- */
/* How many bytes are random: few, so that some descriptors pass the first check. */
static void scramble(test_random *r, void *memory, size_t bytes)
{
    for (uint64_t n = test_random_below(r, 4); n != 0; n--)
        ((uint8_t *)memory)[test_random_below(r, bytes)] = (uint8_t)test_random_u64(r);
}

START_TEST(random_fields_never_crash)
{
    opjit_context *context = test_context_create();
    const DML_OPERATOR_TYPE type = test_operators[_i];
    const test_cases cases = test_cases_init("random fields", 20000);
    for (uint64_t n = cases.first; n < cases.end; n++) {
        opjit_operator *op = NULL;
        opjit_error error = { 0 };
        test_random r;
        test_case c;
        test_random_init(&r, cases.seed, 1000 + (uint64_t)type, n);
        make_valid(&c, type, test_types[test_random_below(&r, TEST_TYPE_COUNT)],
                   2 + (uint32_t)test_random_below(&r, 7));
        for (int i = 0; i < 2; i++) {
            test_tensor *t = i == 0 ? &c.output : &c.input;
            scramble(&r, &t->desc.Type, sizeof t->desc.Type);
            scramble(&r, &t->buffer.DataType, sizeof t->buffer.DataType);
            scramble(&r, &t->buffer.Flags, sizeof t->buffer.Flags);
            scramble(&r, &t->buffer.DimensionCount, sizeof t->buffer.DimensionCount);
            scramble(&r, t->sizes, sizeof t->sizes);
            scramble(&r, t->strides, sizeof t->strides);
            scramble(&r, &t->buffer.TotalTensorSizeInBytes, sizeof t->buffer.TotalTensorSizeInBytes);
            scramble(&r, &t->buffer.GuaranteedBaseOffsetAlignment, sizeof t->buffer.GuaranteedBaseOffsetAlignment);
        }
        const opjit_status status = opjit_operator_create(context, &c.op, &op, &error);
        ck_assert_msg((status == OPJIT_OK) == (op != NULL), "case %" PRIu64, n);
        ck_assert_msg(status == OPJIT_OK || (error.status == status && error.message[0] != '\0'), "case %" PRIu64, n);
        opjit_operator_release(op);
    }
    opjit_context_destroy(context);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("property.invalid");
    TCase *cases = tcase_create("wrong descriptors");
    tcase_add_loop_test(cases, a_wrong_tensor_field_is_refused, 0, TEST_OPERATOR_COUNT);
    tcase_add_loop_test(cases, fields_that_do_not_fit_are_refused, 0, TEST_OPERATOR_COUNT);
    tcase_add_test(cases, unknown_operators_are_refused);
    tcase_add_loop_test(cases, random_fields_never_crash, 0, TEST_OPERATOR_COUNT);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
