/* SPDX-License-Identifier: Apache-2.0 */
/* test_fe_pointwise.c - pointwise operators: types by feature level against the documents' table, messages of refusals,
 * and what each one is lowered to: golden/lower/<operator>.ir (OPJIT_UPDATE_GOLDEN=1 rewrites them). */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/frontend.h"
#include "tests/support/descriptors.h"
#include "tests/support/pointwise_case.h"

/* The first type of each letter, in the order of test_types. */
static void first_types(const ref_pointwise_row *row, DML_TENSOR_DATA_TYPE types[2])
{
    for (int letter = 0; letter < 2 && row->types[letter] != NULL; letter++) {
        uint32_t i = 0;
        while (!ref_pointwise_allows(row, (char)('a' + letter), 0, test_types[i]))
            i++;
        types[letter] = test_types[i];
    }
}

/* --- feature levels ----------------------------------------------------------------------------------------------- */

static const uint32_t levels[] = { 0,      0x1000, 0x2000, 0x2100, 0x3000, 0x3100, 0x4000, 0x4100,
                                   0x5000, 0x5100, 0x5200, 0x6000, 0x6100, 0x6200, 0x6300, 0x6400 };

/* A wrong type is unsupported where opjit takes it without a feature level, else invalid. */
static void check_types(opjit_context *context, uint32_t level, const ref_pointwise_row *newest,
                        const DML_TENSOR_DATA_TYPE types[2])
{
    const ref_pointwise_row *row = ref_pointwise_row_of(newest->type, level);
    const char *name = opjit_fe_op_type_name(newest->type);
    const uint32_t rank = row == NULL ? 0 : ref_pointwise_rank(row);
    opjit_status want = row == NULL ? OPJIT_UNSUPPORTED : OPJIT_OK;
    opjit_error error = { 0 };
    opjit_operator *op = NULL;
    pointwise_case c;

    for (int i = 0; row != NULL && i < 2 && row->types[i] != NULL; i++) {
        if (!ref_pointwise_allows(newest, (char)('a' + i), 0, types[i]))
            want = OPJIT_INVALID_ARGUMENT;
        else if (want == OPJIT_OK && !ref_pointwise_allows(row, (char)('a' + i), level, types[i]))
            want = OPJIT_UNSUPPORTED;
    }
    pointwise_case_plain(newest, types, rank != 0 ? rank : 1 + (uint32_t)types[0] % 8, &c);
    const opjit_status status = opjit_operator_create(context, &c.op, &op, &error);
    ck_assert_msg((status == OPJIT_OK) == (want == OPJIT_OK), "%s at level %x, types %d and %d: %s, not %s: %s", name,
                  (unsigned)level, types[0], types[1], opjit_status_name(status), opjit_status_name(want),
                  error.message);
    if (want != OPJIT_OK)
        ck_assert_msg(strncmp(error.message, name, strlen(name)) == 0, "%s", error.message);
    if (row == NULL)
        ck_assert_int_eq(status, want);
    opjit_operator_release(op);
}

START_TEST(types_by_level)
{
    opjit_context *context = test_context_at(levels[_i]);

    for (uint32_t r = 0; r < ref_pointwise_row_count; r++) {
        const ref_pointwise_row *newest = ref_pointwise_row_of(ref_pointwise_rows[r].type, 0);
        for (int letter = 0; letter < 2 && newest->types[letter] != NULL; letter++) {
            for (int k = 0; k < TEST_TYPE_COUNT; k++) {
                DML_TENSOR_DATA_TYPE types[2] = { DML_TENSOR_DATA_TYPE_UNKNOWN, DML_TENSOR_DATA_TYPE_UNKNOWN };
                first_types(newest, types);
                types[letter] = test_types[k];
                check_types(context, levels[_i], newest, types);
            }
        }
    }
    opjit_context_destroy(context);
}
END_TEST

/* --- any operator ------------------------------------------------------------------------------------------------- */

static void refused(opjit_context *context, const pointwise_case *c, const op_field *field, const char *text)
{
    opjit_operator *op = (opjit_operator *)(uintptr_t)1;
    opjit_error error = { 0 };
    char head[128];

    snprintf(head, sizeof head, "%s %s", opjit_fe_op_type_name(c->op.Type), field->name);
    ck_assert_int_ne(opjit_operator_create(context, &c->op, &op, &error), OPJIT_OK);
    ck_assert_ptr_null(op);
    ck_assert_msg(strncmp(error.message, head, strlen(head)) == 0 && strstr(error.message, text) != NULL, "%s: %s: %s",
                  head, text, error.message);
}

static void spoil_input(opjit_context *context, pointwise_case *c, uint32_t input, const op_field *field)
{
    const void *given, *none = NULL;
    test_tensor *t = &c->inputs[input];

    memcpy(&given, c->desc.bytes + field->offset, sizeof given);
    memcpy(c->desc.bytes + field->offset, &none, sizeof none);
    if ((field->flags & OP_OPTIONAL) == 0)
        refused(context, c, field, "NULL");
    memcpy(c->desc.bytes + field->offset, &given, sizeof given);
    const bool broadcasts = ref_pointwise_broadcasts(c->row, input);
    t->sizes[1]++;
    refused(context, c, field,
            broadcasts ? ".Sizes[1]: 7, must be 1 or 6 as Input" : ".Sizes[1]: 7, must be 6 as Output");
    t->sizes[1]--;
    t->buffer.DimensionCount = 1;
    refused(context, c, field,
            broadcasts ? ".DimensionCount: 1, must be 2 as Input" : ".DimensionCount: 1, must be 2 as Output");
    t->buffer.DimensionCount = 9;
    refused(context, c, field, ".DimensionCount");
    t->buffer.DimensionCount = 2;
}

START_TEST(wrong_tensors)
{
    const ref_pointwise_row *row = &ref_pointwise_rows[_i];
    const op_def *def = opjit_fe_op_find(row->type);
    opjit_context *context = test_context_at(0);
    DML_TENSOR_DATA_TYPE types[2];
    uint32_t input = 0;
    pointwise_case c;

    row = ref_pointwise_row_of(row->type, 0);
    first_types(row, types);
    pointwise_case_plain(row, types, 2, &c);
    for (uint32_t i = 0; i < def->field_count; i++)
        if (def->fields[i].kind == OP_INPUT)
            spoil_input(context, &c, input++, &def->fields[i]);
    for (input = 0; input < c.input_count; input++) { /* tensors of one letter have one type */
        const DML_TENSOR_DATA_TYPE was = c.inputs[input].buffer.DataType;
        opjit_operator *op = NULL;
        uint32_t same = 0;
        for (uint32_t i = 0; row->tensors[i] != '\0'; i++)
            same += ref_pointwise_letter(row, i) == ref_pointwise_letter(row, input);
        if (same == 1)
            continue;
        for (int k = 0; k < TEST_TYPE_COUNT; k++) {
            c.inputs[input].buffer.DataType = test_types[k];
            if (test_types[k] != was)
                ck_assert_msg(opjit_operator_create(context, &c.op, &op, NULL) == OPJIT_INVALID_ARGUMENT,
                              "%s input %u: %s", def->name, (unsigned)input, test_type_name(test_types[k]));
        }
        c.inputs[input].buffer.DataType = was;
    }
    opjit_context_destroy(context);
}
END_TEST

/* --- refusals of single operators --------------------------------------------------------------------------------- */

static void enum_value(pointwise_case *c)
{
    DML_ELEMENT_WISE_ROUND_OPERATOR_DESC *d = (void *)&c->desc;
    d->RoundingMode = (DML_ROUNDING_MODE)3;
}
static void infinity_mode(pointwise_case *c)
{
    DML_ELEMENT_WISE_IS_INFINITY_OPERATOR_DESC *d = (void *)&c->desc;
    d->InfinityMode = (DML_IS_INFINITY_MODE)-1;
}
static void to_int32(pointwise_case *c)
{
    c->inputs[0].buffer.DataType = c->output.buffer.DataType = DML_TENSOR_DATA_TYPE_INT32;
}
static void scale_fraction(pointwise_case *c)
{
    to_int32(c);
    c->scale_bias.Scale = 1.5f;
}
static void bias_infinite(pointwise_case *c)
{
    const uint32_t infinity = 0x7f800000u;
    to_int32(c);
    memcpy(&c->scale_bias.Bias, &infinity, sizeof infinity);
}
static void bounds_type(pointwise_case *c)
{
    DML_ELEMENT_WISE_CLIP1_OPERATOR_DESC *d = (void *)&c->desc;
    d->MinMaxDataType = DML_TENSOR_DATA_TYPE_INT8;
}
static void fuse(pointwise_case *c, DML_OPERATOR_TYPE type)
{
    DML_ELEMENT_WISE_ADD1_OPERATOR_DESC *d = (void *)&c->desc;
    c->activation = (DML_OPERATOR_DESC){ type, &c->activation_desc };
    d->FusedActivation = &c->activation;
}
static void fuse_add(pointwise_case *c)
{
    fuse(c, DML_OPERATOR_ELEMENT_WISE_ADD);
}
static void fuse_nothing(pointwise_case *c)
{
    fuse(c, DML_OPERATOR_INVALID);
}
static void fuse_unknown(pointwise_case *c)
{
    fuse(c, (DML_OPERATOR_TYPE)999);
}
static void fuse_swish(pointwise_case *c)
{
    fuse(c, DML_OPERATOR_ACTIVATION_HARD_SWISH);
}
static void fuse_celu(pointwise_case *c)
{
    fuse(c, DML_OPERATOR_ACTIVATION_CELU);
}
static void celu_alpha(pointwise_case *c)
{
    DML_ACTIVATION_CELU_OPERATOR_DESC *d = (void *)&c->desc;
    d->Alpha = -0.0f;
}
static void fuse_no_desc(pointwise_case *c)
{
    fuse(c, DML_OPERATOR_ACTIVATION_RELU);
    c->activation.Desc = NULL;
}
static void fuse_tensor(pointwise_case *c)
{
    DML_ACTIVATION_RELU_OPERATOR_DESC *d = (void *)&c->activation_desc;
    fuse(c, DML_OPERATOR_ACTIVATION_RELU);
    d->OutputTensor = &c->output.desc;
}

/* clang-format off */
static const struct {
    DML_OPERATOR_TYPE type; void (*spoil)(pointwise_case *); const char *message;
} refusals[] = {
    { DML_OPERATOR_ELEMENT_WISE_ROUND, enum_value,
      "ELEMENT_WISE_ROUND RoundingMode: 3, must be a DML_ROUNDING_MODE (0 to 2)" },
    { DML_OPERATOR_ELEMENT_WISE_IS_INFINITY, infinity_mode,
      "ELEMENT_WISE_IS_INFINITY InfinityMode: -1, must be a DML_IS_INFINITY_MODE (0 to 2)" },
    { DML_OPERATOR_ELEMENT_WISE_IDENTITY, scale_fraction,
      "ELEMENT_WISE_IDENTITY ScaleBias.Scale: 1.5, must be a whole number for INT32 tensors" },
    { DML_OPERATOR_ELEMENT_WISE_THRESHOLD, bias_infinite,
      "ELEMENT_WISE_THRESHOLD ScaleBias.Bias: inf, must be a whole number for INT32 tensors" },
    { DML_OPERATOR_ELEMENT_WISE_CLIP1, bounds_type,
      "ELEMENT_WISE_CLIP1 MinMaxDataType: 8 (INT8), must be 1 (FLOAT32) as OutputTensor.DataType" },
    { DML_OPERATOR_ELEMENT_WISE_ADD1, fuse_add,
      "ELEMENT_WISE_ADD1 FusedActivation: operator type 4 (ELEMENT_WISE_ADD), must be an activation that can be "
      "fused" },
    { DML_OPERATOR_ELEMENT_WISE_ADD1, fuse_unknown,
      "ELEMENT_WISE_ADD1 FusedActivation: operator type 999 (unknown), must be an activation that can be fused" },
    { DML_OPERATOR_ELEMENT_WISE_ADD1, fuse_nothing,
      "ELEMENT_WISE_ADD1 FusedActivation: operator type 0 (INVALID), must be an activation that can be fused" },
    { DML_OPERATOR_ELEMENT_WISE_ADD1, fuse_swish,
      "ELEMENT_WISE_ADD1 FusedActivation: operator type 168 (ACTIVATION_HARD_SWISH), must be an activation that can "
      "be fused" },
    { DML_OPERATOR_ELEMENT_WISE_ADD1, fuse_celu, "ACTIVATION_CELU Alpha: 0, must not be 0" },
    { DML_OPERATOR_ACTIVATION_CELU, celu_alpha, "ACTIVATION_CELU Alpha: 0, must not be 0" },
    { DML_OPERATOR_ELEMENT_WISE_ADD1, fuse_no_desc,
      "ELEMENT_WISE_ADD1 FusedActivation: its Desc is NULL, must be its descriptor struct" },
    { DML_OPERATOR_ELEMENT_WISE_ADD1, fuse_tensor,
      "ELEMENT_WISE_ADD1 FusedActivation: its OutputTensor is a tensor, must be NULL in a fused ACTIVATION_RELU" },
};
/* clang-format on */

START_TEST(refusal_row)
{
    const ref_pointwise_row *row = ref_pointwise_row_of(refusals[_i].type, 0);
    opjit_context *context = test_context_at(0);
    opjit_operator *op = (opjit_operator *)(uintptr_t)1;
    opjit_error error = { 0 };
    DML_TENSOR_DATA_TYPE types[2];
    pointwise_case c;

    first_types(row, types);
    pointwise_case_plain(row, types, 2, &c);
    refusals[_i].spoil(&c);
    ck_assert_int_eq(opjit_operator_create(context, &c.op, &op, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_str_eq(error.message, refusals[_i].message);
    ck_assert_ptr_null(op);
    opjit_context_destroy(context);
}
END_TEST

/* An activation newer than the context's level. */
START_TEST(fused_by_level)
{
    const ref_pointwise_row *row = ref_pointwise_row_of(DML_OPERATOR_ELEMENT_WISE_ADD1, 0);
    const DML_TENSOR_DATA_TYPE types[2] = { DML_TENSOR_DATA_TYPE_FLOAT32 };
    opjit_context *context = test_context_at(DML_FEATURE_LEVEL_2_1);
    opjit_error error = { 0 };
    opjit_operator *op = NULL;
    pointwise_case c;

    pointwise_case_plain(row, types, 2, &c);
    fuse(&c, DML_OPERATOR_ACTIVATION_SHRINK);
    ck_assert_int_eq(opjit_operator_create(context, &c.op, &op, NULL), OPJIT_OK);
    opjit_operator_release(op);
    fuse(&c, DML_OPERATOR_ACTIVATION_CELU);
    ck_assert_int_eq(opjit_operator_create(context, &c.op, &op, &error), OPJIT_UNSUPPORTED);
    ck_assert_str_eq(error.message, "ELEMENT_WISE_ADD1 FusedActivation: ACTIVATION_CELU needs feature level 3.0, this "
                                    "context has 2.1");
    opjit_context_destroy(context);
}
END_TEST

/* --- what came later ---------------------------------------------------------------------------------------------- */

static void no_zero_point(pointwise_case *c)
{
    DML_ELEMENT_WISE_QUANTIZE_LINEAR_OPERATOR_DESC *d = (void *)&c->desc; /* DEQUANTIZE_LINEAR's fields are the same */
    d->ZeroPointTensor = NULL;
}
static void steepness(pointwise_case *c)
{
    DML_ACTIVATION_SOFTPLUS_OPERATOR_DESC *d = (void *)&c->desc;
    d->Steepness = 0.5f;
}
static void fuse_softplus(pointwise_case *c)
{
    DML_ACTIVATION_SOFTPLUS_OPERATOR_DESC *d = (void *)&c->activation_desc;
    fuse(c, DML_OPERATOR_ACTIVATION_SOFTPLUS);
    d->Steepness = 0.5f;
}

static const struct {
    DML_OPERATOR_TYPE type;
    void (*change)(pointwise_case *);
    uint32_t before, since;
    const char *message;
} later[] = {
    { DML_OPERATOR_ELEMENT_WISE_QUANTIZE_LINEAR, no_zero_point, 0x6100, 0x6200,
      "ELEMENT_WISE_QUANTIZE_LINEAR ZeroPointTensor: NULL, must be there before feature level 6.2" },
    { DML_OPERATOR_ELEMENT_WISE_DEQUANTIZE_LINEAR, no_zero_point, 0x6100, 0x6200,
      "ELEMENT_WISE_DEQUANTIZE_LINEAR ZeroPointTensor: NULL, must be there before feature level 6.2" },
    { DML_OPERATOR_ACTIVATION_SOFTPLUS, steepness, 0x6300, 0x6400,
      "ACTIVATION_SOFTPLUS Steepness: 0.5, must be at least 1 before feature level 6.4" },
    { DML_OPERATOR_ELEMENT_WISE_ADD1, fuse_softplus, 0x6300, 0x6400,
      "ACTIVATION_SOFTPLUS Steepness: 0.5, must be at least 1 before feature level 6.4" },
};

START_TEST(later_row)
{
    const uint32_t contexts[] = { later[_i].before, later[_i].since, 0 };
    const ref_pointwise_row *row = ref_pointwise_row_of(later[_i].type, 0);
    DML_TENSOR_DATA_TYPE types[2];
    pointwise_case c;

    first_types(row, types);
    for (uint32_t i = 0; i < 2; i++) /* FLOAT32, which all levels have */
        types[i] = types[i] == DML_TENSOR_DATA_TYPE_FLOAT64 ? DML_TENSOR_DATA_TYPE_FLOAT32 : types[i];
    pointwise_case_plain(row, types, 2, &c);
    later[_i].change(&c);
    for (uint32_t i = 0; i < 3; i++) {
        opjit_context *context = test_context_at(contexts[i]);
        opjit_error error = { 0 };
        opjit_operator *op = NULL;
        ck_assert_int_eq(opjit_operator_create(context, &c.op, &op, &error), i == 0 ? OPJIT_UNSUPPORTED : OPJIT_OK);
        ck_assert_str_eq(error.message, i == 0 ? later[_i].message : "");
        opjit_operator_release(op);
        opjit_context_destroy(context);
    }
}
END_TEST

/* --- lowering ----------------------------------------------------------------------------------------------------- */

/* The operator for its first type, and for FLOAT16 and INT8 if all tensors may have them. */
static void lower_all(const ref_pointwise_row *row, rt_bytes *out)
{
    static const DML_TENSOR_DATA_TYPE more[] = { DML_TENSOR_DATA_TYPE_UNKNOWN, DML_TENSOR_DATA_TYPE_FLOAT16,
                                                 DML_TENSOR_DATA_TYPE_INT8 };
    opjit_context *context = test_context_at(0);

    for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
        DML_TENSOR_DATA_TYPE types[2];
        pointwise_case c;
        first_types(row, types);
        if (i != 0 && (row->types[1] != NULL || types[0] == more[i] || !ref_pointwise_allows(row, 'a', 0, more[i])))
            continue;
        types[0] = i == 0 ? types[0] : more[i];
        pointwise_case_plain(row, types, 2, &c);
        test_append_lowered(context, &c.op, out);
    }
    opjit_context_destroy(context);
}

START_TEST(lowered)
{
    const ref_pointwise_row *row = &ref_pointwise_rows[_i];
    rt_bytes out;

    if (ref_pointwise_row_of(row->type, 0) != row)
        return;
    opjit_rt_bytes_init(&out, &opjit_rt_default_allocator);
    lower_all(row, &out);
    test_compare_lowered(opjit_fe_op_type_name(row->type), &out);
    opjit_rt_bytes_free(&out);
}
END_TEST

/* --- the two tables ----------------------------------------------------------------------------------------------- */

START_TEST(tables_agree)
{
    const op_def *def;

    for (uint32_t i = 0; i < ref_pointwise_row_count; i++) {
        def = opjit_fe_op_find(ref_pointwise_rows[i].type);
        ck_assert_msg(def != NULL && def->element != NULL, "row %u is no pointwise operator of this build",
                      (unsigned)i);
    }
    for (uint32_t i = 0; (def = opjit_fe_op_at(i)) != NULL; i++)
        ck_assert_msg(def->element == NULL || ref_pointwise_row_of(def->type, 0) != NULL, "%s has no reference",
                      def->name);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fe.pointwise");
    TCase *tcase = tcase_create("pointwise");
    SRunner *runner = srunner_create(suite);
    int failed;

    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, types_by_level, 0, sizeof levels / sizeof *levels);
    tcase_add_loop_test(tcase, wrong_tensors, 0, (int)ref_pointwise_row_count);
    tcase_add_loop_test(tcase, refusal_row, 0, sizeof refusals / sizeof *refusals);
    tcase_add_test(tcase, fused_by_level);
    tcase_add_loop_test(tcase, later_row, 0, sizeof later / sizeof *later);
    tcase_add_loop_test(tcase, lowered, 0, (int)ref_pointwise_row_count);
    tcase_add_test(tcase, tables_agree);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
