/* SPDX-License-Identifier: Apache-2.0 */
/* test_fe_operator.c - operators: messages of what they refuse, what each feature level has, the deep copy.  Field
 * kinds that no operator of this build uses are in test_fe_fields.c. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/frontend.h"

#define F32 DML_TENSOR_DATA_TYPE_FLOAT32
#define F64 DML_TENSOR_DATA_TYPE_FLOAT64
#define I8 DML_TENSOR_DATA_TYPE_INT8
#define I32 DML_TENSOR_DATA_TYPE_INT32

static opjit_context *context_at(uint32_t level)
{
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
    opjit_context *context = NULL;
    opjit_error error;

    options.feature_level = level;
    options.target = "cpu:x86-64-v1";
    ck_assert_msg(opjit_context_create(&options, &context, &error) == OPJIT_OK, "%s", error.message);
    return context;
}

/* A descriptor of any of the four operators; the tensors are its own. */
typedef struct built {
    DML_BUFFER_TENSOR_DESC buffers[2]; /* output, input */
    DML_TENSOR_DESC tensors[2];
    uint32_t sizes[2][8];
    union {
        DML_DIAGONAL_MATRIX1_OPERATOR_DESC diagonal1;
        DML_DIAGONAL_MATRIX_OPERATOR_DESC diagonal;
        DML_FILL_VALUE_CONSTANT_OPERATOR_DESC constant;
        DML_FILL_VALUE_SEQUENCE_OPERATOR_DESC sequence;
    } desc;
    DML_OPERATOR_DESC op;
} built;

static void build(built *b, DML_OPERATOR_TYPE type, DML_TENSOR_DATA_TYPE dtype, uint32_t rank, bool with_input)
{
    memset(b, 0, sizeof *b);
    for (int i = 0; i < 2; i++) {
        for (uint32_t d = 0; d < 8; d++)
            b->sizes[i][d] = 2;
        b->buffers[i] = (DML_BUFFER_TENSOR_DESC){ .DataType = dtype, .DimensionCount = rank, .Sizes = b->sizes[i] };
        b->tensors[i] = (DML_TENSOR_DESC){ DML_TENSOR_TYPE_BUFFER, &b->buffers[i] };
    }
    b->op = (DML_OPERATOR_DESC){ type, &b->desc };
    switch (type) {
    case DML_OPERATOR_DIAGONAL_MATRIX: b->desc.diagonal.OutputTensor = &b->tensors[0]; break;
    case DML_OPERATOR_DIAGONAL_MATRIX1:
        b->desc.diagonal1.InputTensor = with_input ? &b->tensors[1] : NULL;
        b->desc.diagonal1.OutputTensor = &b->tensors[0];
        b->desc.diagonal1.ValueDataType = dtype;
        break;
    case DML_OPERATOR_FILL_VALUE_CONSTANT:
        b->desc.constant.OutputTensor = &b->tensors[0];
        b->desc.constant.ValueDataType = dtype;
        break;
    default:
        b->desc.sequence.OutputTensor = &b->tensors[0];
        b->desc.sequence.ValueDataType = dtype;
        break;
    }
}

/* --- refusals ----------------------------------------------------------------------------------------------------- */

static void no_desc(built *b)
{
    b->op.Desc = NULL;
}
static void type_0(built *b)
{
    b->op.Type = DML_OPERATOR_INVALID;
}
static void type_178(built *b)
{
    b->op.Type = (DML_OPERATOR_TYPE)178;
}
static void type_minus_1(built *b)
{
    b->op.Type = (DML_OPERATOR_TYPE)-1;
}
static void no_output(built *b)
{
    b->desc.diagonal1.OutputTensor = NULL;
}
static void no_output_desc(built *b)
{
    b->tensors[0].Desc = NULL;
}
static void output_size(built *b)
{
    b->sizes[0][2] = 0;
}
static void output_owned(built *b)
{
    b->buffers[0].Flags = DML_TENSOR_FLAG_OWNED_BY_DML;
}
static void input_size(built *b)
{
    b->sizes[1][1] = 5;
}
static void input_rank(built *b)
{
    b->buffers[1].DimensionCount = 2;
}
static void input_dtype(built *b)
{
    b->buffers[1].DataType = I32;
}
static void input_bad(built *b)
{
    b->tensors[1].Type = DML_TENSOR_TYPE_INVALID;
}
static void input_flags(built *b)
{
    b->buffers[1].Flags = (DML_TENSOR_FLAGS)6;
}
static void value_dtype(built *b)
{
    b->desc.diagonal1.ValueDataType = I8;
}
static void value_dtype_99(built *b)
{
    b->desc.diagonal1.ValueDataType = (DML_TENSOR_DATA_TYPE)99;
}
static void rank_1(built *b)
{
    b->buffers[0].DimensionCount = 1;
}
static void dtype_int4(built *b)
{
    b->buffers[0].DataType = DML_TENSOR_DATA_TYPE_INT4;
}
static void constant_dtype(built *b)
{
    b->desc.constant.ValueDataType = I32;
}
static void sequence_dtype(built *b)
{
    b->desc.sequence.ValueDataType = DML_TENSOR_DATA_TYPE_UNKNOWN;
}
static void input_absent(built *b)
{
    b->desc.diagonal1.InputTensor = NULL;
    b->sizes[0][0] = 0;
}

#define MATRIX1 DML_OPERATOR_DIAGONAL_MATRIX1
static const struct {
    DML_OPERATOR_TYPE type;
    uint32_t level;
    void (*spoil)(built *);
    opjit_status status;
    const char *message;
} refusals[] = {
    { MATRIX1, 0, no_desc, OPJIT_INVALID_ARGUMENT, "DIAGONAL_MATRIX1 Desc: NULL, must be its descriptor struct" },
    { MATRIX1, 0, type_0, OPJIT_INVALID_ARGUMENT, "operator type 0, must be a DML_OPERATOR_TYPE (1 to 177)" },
    { MATRIX1, 0, type_178, OPJIT_INVALID_ARGUMENT, "operator type 178, must be a DML_OPERATOR_TYPE (1 to 177)" },
    { MATRIX1, 0, type_minus_1, OPJIT_INVALID_ARGUMENT,
      "operator type 4294967295, must be a DML_OPERATOR_TYPE (1 to 177)" },
    { MATRIX1, 0, no_output, OPJIT_INVALID_ARGUMENT, "DIAGONAL_MATRIX1 OutputTensor: NULL, must be a tensor" },
    { MATRIX1, 0, no_output_desc, OPJIT_INVALID_ARGUMENT,
      "DIAGONAL_MATRIX1 OutputTensor.Desc: NULL, must be a DML_BUFFER_TENSOR_DESC" },
    { MATRIX1, 0, output_size, OPJIT_INVALID_ARGUMENT,
      "DIAGONAL_MATRIX1 OutputTensor.Sizes[2]: 0, must be at least 1" },
    { MATRIX1, 0, output_owned, OPJIT_INVALID_ARGUMENT,
      "DIAGONAL_MATRIX1 OutputTensor.Flags: 0x1 (OWNED_BY_DML), must be 0: an output can't be a constant" },
    { MATRIX1, 0, input_size, OPJIT_INVALID_ARGUMENT,
      "DIAGONAL_MATRIX1 InputTensor.Sizes[1]: 5, must be 2 as OutputTensor.Sizes[1]" },
    { MATRIX1, 0, input_rank, OPJIT_INVALID_ARGUMENT,
      "DIAGONAL_MATRIX1 InputTensor.DimensionCount: 2, must be 3 as OutputTensor.DimensionCount" },
    { MATRIX1, 0, input_dtype, OPJIT_INVALID_ARGUMENT,
      "DIAGONAL_MATRIX1 InputTensor.DataType: INT32, must be FLOAT32 as OutputTensor.DataType" },
    { MATRIX1, 0, input_bad, OPJIT_INVALID_ARGUMENT, "DIAGONAL_MATRIX1 InputTensor.Type: 0, must be 1 (BUFFER)" },
    { MATRIX1, 0, input_flags, OPJIT_INVALID_ARGUMENT,
      "DIAGONAL_MATRIX1 InputTensor.Flags: 0x6, must be 0 or 0x1 (OWNED_BY_DML)" },
    { MATRIX1, 0, input_absent, OPJIT_INVALID_ARGUMENT,
      "DIAGONAL_MATRIX1 OutputTensor.Sizes[0]: 0, must be at least 1" },
    { MATRIX1, 0, value_dtype, OPJIT_INVALID_ARGUMENT,
      "DIAGONAL_MATRIX1 ValueDataType: 8 (INT8), must be 1 (FLOAT32) as OutputTensor.DataType" },
    { MATRIX1, 0, value_dtype_99, OPJIT_INVALID_ARGUMENT,
      "DIAGONAL_MATRIX1 ValueDataType: 99 (unknown), must be 1 (FLOAT32) as OutputTensor.DataType" },
    { MATRIX1, 0, rank_1, OPJIT_INVALID_ARGUMENT, "DIAGONAL_MATRIX1 OutputTensor.DimensionCount: 1, must be 2 to 8" },
    { MATRIX1, 0, dtype_int4, OPJIT_INVALID_ARGUMENT,
      "DIAGONAL_MATRIX1 OutputTensor.DataType: INT4, must be FLOAT32, FLOAT16, UINT32, UINT16, UINT8, INT32, INT16, "
      "INT8, FLOAT64, UINT64 or INT64" },
    { MATRIX1, DML_FEATURE_LEVEL_5_0, NULL, OPJIT_UNSUPPORTED,
      "DIAGONAL_MATRIX1 needs feature level 5.1, this context has 5.0" },
    { DML_OPERATOR_DIAGONAL_MATRIX, DML_FEATURE_LEVEL_3_0, NULL, OPJIT_UNSUPPORTED,
      "DIAGONAL_MATRIX OutputTensor.DimensionCount: 3, must be 4 at feature level 3.0" },
    { DML_OPERATOR_DIAGONAL_MATRIX, DML_FEATURE_LEVEL_5_1, rank_1, OPJIT_INVALID_ARGUMENT,
      "DIAGONAL_MATRIX OutputTensor.DimensionCount: 1, must be 2 to 4 at feature level 5.1" },
    { DML_OPERATOR_FILL_VALUE_CONSTANT, 0, constant_dtype, OPJIT_INVALID_ARGUMENT,
      "FILL_VALUE_CONSTANT ValueDataType: 6 (INT32), must be 1 (FLOAT32) as OutputTensor.DataType" },
    { DML_OPERATOR_FILL_VALUE_CONSTANT, DML_FEATURE_LEVEL_1_0, NULL, OPJIT_UNSUPPORTED,
      "FILL_VALUE_CONSTANT needs feature level 2.1, this context has 1.0" },
    { DML_OPERATOR_FILL_VALUE_SEQUENCE, 0, sequence_dtype, OPJIT_INVALID_ARGUMENT,
      "FILL_VALUE_SEQUENCE ValueDataType: 0 (unknown), must be 1 (FLOAT32) as OutputTensor.DataType" },
};

START_TEST(refusal_row)
{
    opjit_context *context = context_at(refusals[_i].level);
    opjit_operator *op = (opjit_operator *)(uintptr_t)1;
    opjit_error error = { 0 };
    built b;

    build(&b, refusals[_i].type, F32, 3, true);
    if (refusals[_i].spoil != NULL)
        refusals[_i].spoil(&b);
    ck_assert_int_eq(opjit_operator_create(context, &b.op, &op, &error), refusals[_i].status);
    ck_assert_str_eq(error.message, refusals[_i].message);
    ck_assert_int_eq(error.status, refusals[_i].status);
    ck_assert_ptr_null(op);
    opjit_context_destroy(context);
}
END_TEST

START_TEST(null_arguments)
{
    opjit_context *context = context_at(0);
    opjit_operator *op = (opjit_operator *)(uintptr_t)1;
    opjit_error error = { 0 };
    built b;

    build(&b, MATRIX1, F32, 2, false);
    ck_assert_int_eq(opjit_operator_create(NULL, &b.op, &op, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_str_eq(error.message, "context is NULL");
    ck_assert_ptr_null(op);
    ck_assert_int_eq(opjit_operator_create(context, NULL, &op, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_str_eq(error.message, "desc is NULL");
    ck_assert_int_eq(opjit_operator_create(context, &b.op, NULL, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_str_eq(error.message, "out_operator is NULL");
    opjit_operator_retain(NULL);
    opjit_operator_release(NULL);
    opjit_context_destroy(context);
}
END_TEST

/* --- feature levels ----------------------------------------------------------------------------------------------- */

/* The documents' tables, written a second time.  types: F FLOAT of 16 and 32 bits, I integers of 8 to 32, L of 64 bits,
 * D FLOAT64. */
static const struct {
    DML_OPERATOR_TYPE type;
    uint32_t from, rank_min, rank_max;
    const char *types;
} documents[] = {
    { DML_OPERATOR_FILL_VALUE_CONSTANT, 0x2100, 4, 4, "FI" },
    { DML_OPERATOR_FILL_VALUE_CONSTANT, 0x4000, 1, 8, "FI" },
    { DML_OPERATOR_FILL_VALUE_CONSTANT, 0x4100, 1, 8, "FILD" },
    { DML_OPERATOR_FILL_VALUE_SEQUENCE, 0x2100, 4, 4, "FI" },
    { DML_OPERATOR_FILL_VALUE_SEQUENCE, 0x4000, 1, 8, "FI" },
    { DML_OPERATOR_FILL_VALUE_SEQUENCE, 0x5000, 1, 8, "FIL" },
    { DML_OPERATOR_DIAGONAL_MATRIX, 0x2000, 4, 4, "F" },
    { DML_OPERATOR_DIAGONAL_MATRIX, 0x2100, 4, 4, "FI" },
    { DML_OPERATOR_DIAGONAL_MATRIX, 0x4000, 2, 4, "FI" },
    { DML_OPERATOR_DIAGONAL_MATRIX, 0x5100, 2, 4, "FILD" },
    { DML_OPERATOR_DIAGONAL_MATRIX1, 0x5100, 2, 4, "FILD" },
    /* Without a level: opjit's extensions. */
    { DML_OPERATOR_FILL_VALUE_CONSTANT, 0x10000, 1, 8, "FILD" },
    { DML_OPERATOR_FILL_VALUE_SEQUENCE, 0x10000, 1, 8, "FILD" },
    { DML_OPERATOR_DIAGONAL_MATRIX, 0x10000, 2, 8, "FILD" },
    { DML_OPERATOR_DIAGONAL_MATRIX1, 0x10000, 2, 8, "FILD" },
};

static const uint32_t levels[] = { 0,      0x1000, 0x2000, 0x2100, 0x3000, 0x3100, 0x4000, 0x4100,
                                   0x5000, 0x5100, 0x5200, 0x6000, 0x6100, 0x6200, 0x6300, 0x6400 };

static char class_of(DML_TENSOR_DATA_TYPE dtype)
{
    switch (dtype) {
    case DML_TENSOR_DATA_TYPE_FLOAT32:
    case DML_TENSOR_DATA_TYPE_FLOAT16: return 'F';
    case DML_TENSOR_DATA_TYPE_FLOAT64: return 'D';
    case DML_TENSOR_DATA_TYPE_UINT64:
    case DML_TENSOR_DATA_TYPE_INT64: return 'L';
    default: return 'I';
    }
}

static bool document_allows(DML_OPERATOR_TYPE type, uint32_t level, uint32_t rank, DML_TENSOR_DATA_TYPE dtype)
{
    bool allowed = false;

    for (size_t i = 0; i < sizeof documents / sizeof *documents; i++)
        if (documents[i].type == type && documents[i].from <= (level == 0 ? UINT32_MAX : level))
            allowed = rank >= documents[i].rank_min && rank <= documents[i].rank_max &&
                      strchr(documents[i].types, class_of(dtype)) != NULL;
    return allowed;
}

START_TEST(feature_levels)
{
    static const DML_OPERATOR_TYPE types[] = { DML_OPERATOR_FILL_VALUE_CONSTANT, DML_OPERATOR_FILL_VALUE_SEQUENCE,
                                               DML_OPERATOR_DIAGONAL_MATRIX, DML_OPERATOR_DIAGONAL_MATRIX1 };
    const uint32_t level = levels[_i];
    opjit_context *context = context_at(level);

    for (size_t t = 0; t < 4; t++) {
        for (uint32_t rank = 1; rank <= 8; rank++) {
            for (int dtype = 1; dtype <= 11; dtype++) {
                const bool want = document_allows(types[t], level, rank, (DML_TENSOR_DATA_TYPE)dtype);
                const bool ever = document_allows(types[t], 0, rank, (DML_TENSOR_DATA_TYPE)dtype);
                opjit_operator *op;
                opjit_error error;
                opjit_status status;
                built b;
                build(&b, types[t], (DML_TENSOR_DATA_TYPE)dtype, rank, true);
                status = opjit_operator_create(context, &b.op, &op, &error);
                ck_assert_msg((status == OPJIT_OK) == want, "type %d level %x rank %u dtype %d: %s", types[t], level,
                              rank, dtype, error.message);
                /* Legal at another level: unsupported here; legal nowhere: invalid, once the operator exists. */
                if (!want && ever)
                    ck_assert_msg(status == OPJIT_UNSUPPORTED, "%s", error.message);
                if (!want && !ever && strstr(error.message, "needs feature level") == NULL)
                    ck_assert_msg(status == OPJIT_INVALID_ARGUMENT, "%s", error.message);
                opjit_operator_release(op);
            }
        }
    }
    opjit_context_destroy(context);
}
END_TEST

/* --- the table ---------------------------------------------------------------------------------------------------- */

/* Rows of one field are adjacent: level by level, one field after the other. */
static bool same_field(const op_support *a, const op_support *b)
{
    return a->field == NULL ? b->field == NULL : b->field != NULL && strcmp(a->field, b->field) == 0;
}

START_TEST(table_is_sound)
{
    const op_def *def;

    for (uint32_t i = 0; (def = opjit_fe_op_at(i)) != NULL; i++) {
        bool dtype = false;
        char full[96];
        snprintf(full, sizeof full, "DML_OPERATOR_%s", def->name);
        ck_assert_ptr_eq(opjit_fe_op_find(def->type), def);
        ck_assert_ptr_eq(opjit_fe_op_find_name(def->name, strlen(def->name)), def);
        ck_assert_ptr_eq(opjit_fe_op_find_name(full, strlen(full)), def);
        ck_assert_ptr_null(opjit_fe_op_find_name(def->name, strlen(def->name) - 2));
        ck_assert_str_eq(opjit_fe_op_type_name(def->type), def->name);
        ck_assert_uint_le(def->field_count, OP_FIELDS_MAX);
        for (uint32_t f = 0; f < def->field_count; f++) {
            const op_field *field = &def->fields[f];
            dtype = dtype || field->kind == OP_DTYPE;
            ck_assert_msg(field->kind != OP_SCALAR || dtype, "%s %s: no type before it", def->name, field->name);
            ck_assert_msg((field->flags & OP_LATE) == 0 || field->kind == OP_INT || field->kind == OP_FLOAT ||
                              field->kind == OP_SCALAR,
                          "%s %s: can't be late", def->name, field->name);
        }
        for (uint32_t s = 1; s < def->support_count; s++)
            ck_assert_msg(!same_field(&def->support[s - 1], &def->support[s]) ||
                              def->support[s - 1].level < def->support[s].level,
                          "%s: levels don't ascend", def->name);
    }
    ck_assert_ptr_null(opjit_fe_op_find(DML_OPERATOR_INVALID));
    ck_assert_ptr_null(opjit_fe_op_find_name("DML_OPERATOR_", 13));
    ck_assert_ptr_null(opjit_fe_op_find_name("", 0));
    ck_assert_str_eq(opjit_fe_op_type_name(DML_OPERATOR_SCATTER), "SCATTER_ELEMENTS");
    ck_assert_str_eq(opjit_fe_op_type_name((DML_OPERATOR_TYPE)177), "UNFOLD");
    ck_assert_ptr_null(opjit_fe_op_type_name((DML_OPERATOR_TYPE)178));
    for (int type = 0; type <= 177; type++) {
        ck_assert_msg(opjit_fe_op_type_name((DML_OPERATOR_TYPE)type) != NULL, "type %d has no name", type);
        ck_assert_msg(type == 0 || opjit_fe_op_find((DML_OPERATOR_TYPE)type) != NULL, "type %d has no row", type);
    }
}
END_TEST

/* --- copies ------------------------------------------------------------------------------------------------------- */

START_TEST(descriptor_is_copied)
{
    opjit_context *context = context_at(0);
    opjit_operator *op;
    const DML_DIAGONAL_MATRIX1_OPERATOR_DESC *copy;
    const DML_BUFFER_TENSOR_DESC *buffer;
    uint32_t strides[3] = { 8, 3, 1 };
    built b;

    build(&b, MATRIX1, F32, 3, true);
    b.buffers[0].Strides = strides;
    b.desc.diagonal1.Value.Float32 = 2.5f;
    b.desc.diagonal1.DiagonalFillEnd = INT32_MIN;
    ck_assert_int_eq(opjit_operator_create(context, &b.op, &op, NULL), OPJIT_OK);
    memset(&b, 0x5a, sizeof b);
    memset(strides, 0x5a, sizeof strides);
    opjit_context_destroy(context); /* operators outlive their context */

    copy = op->desc;
    buffer = copy->OutputTensor->Desc;
    ck_assert(copy->Value.Float32 == 2.5f && copy->DiagonalFillEnd == INT32_MIN);
    ck_assert(buffer->Sizes[2] == 2 && buffer->Strides[0] == 8 && buffer->Strides[1] == 3 && buffer->Strides[2] == 1);
    ck_assert_ptr_null(((const DML_BUFFER_TENSOR_DESC *)copy->InputTensor->Desc)->Strides);
    ck_assert_str_eq(op->input_names[0], "InputTensor");
    ck_assert_str_eq(op->output_names[0], "OutputTensor");
    opjit_operator_retain(op);
    opjit_operator_release(op);
    opjit_operator_release(op);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fe.operator");
    TCase *tcase = tcase_create("operator");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_set_timeout(tcase, 60);
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, refusal_row, 0, sizeof refusals / sizeof *refusals);
    tcase_add_test(tcase, null_arguments);
    tcase_add_loop_test(tcase, feature_levels, 0, sizeof levels / sizeof *levels);
    tcase_add_test(tcase, table_is_sound);
    tcase_add_test(tcase, descriptor_is_copied);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
