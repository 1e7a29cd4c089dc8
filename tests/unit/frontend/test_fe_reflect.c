/* SPDX-License-Identifier: Apache-2.0 */
/* test_fe_reflect.c - opjit/reflect.h: opjit_query_support agrees with what opjit_operator_create accepts, for every
 * operator, tensor, data type, rank and feature level; a plan agrees with the kernel that is compiled later. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include <opjit/graph_ops.h>
#include <opjit/reflect.h>

#include "tests/support/descriptors.h"
#include "tests/support/meter.h"

enum { TENSORS = 16, CLASSES = 4, LEVELS = 16, DESC_BYTES = 512, TYPES = DML_TENSOR_DATA_TYPE_INT4 };

/* --- descriptors of tensors that have one element ----------------------------------------------------------------- */

/* Every operator has a legal descriptor whose sizes are all 1, except for ONE_HOT's values. */
typedef struct tiny_tensor {
    DML_BUFFER_TENSOR_DESC buffer;
    DML_TENSOR_DESC desc;
    uint32_t sizes[8];
    const char *name;
    uint32_t class; /* tensors of one class have the same rows: all are given one data type */
    uint32_t rank;  /* the one that is asked for, where the tensor may have it */
} tiny_tensor;

typedef struct tiny {
    opjit_operator_type_info info;
    union {
        uint64_t align;
        unsigned char bytes[DESC_BYTES];
    } desc;
    tiny_tensor tensors[TENSORS];
    uint32_t tensor_count, class_count;
    uint32_t enumeration, values; /* index of its last ENUM field, and how many values that has */
    bool has_enum;
} tiny;

static opjit_field_info field_of(DML_OPERATOR_TYPE type, uint32_t index)
{
    opjit_field_info field = OPJIT_FIELD_INFO_INIT;
    ck_assert_int_eq(opjit_operator_type_get_field(type, index, &field, NULL), OPJIT_OK);
    return field;
}

static bool same_rows(DML_OPERATOR_TYPE type, const char *a, const char *b)
{
    for (uint32_t i = 0, level = 0; i == 0 || level != 0; level = opjit_feature_level_at(i++)) {
        opjit_support_info x = OPJIT_SUPPORT_INFO_INIT, y = OPJIT_SUPPORT_INFO_INIT;
        const opjit_status status = opjit_operator_type_find_support(type, a, level, &x, NULL);
        ck_assert_int_eq(opjit_operator_type_find_support(type, b, level, &y, NULL), status);
        if (x.types != y.types || x.rank_min != y.rank_min || x.rank_max != y.rank_max)
            return false;
    }
    return true;
}

static void add_tensor(tiny *t, const char *name)
{
    tiny_tensor *tensor = &t->tensors[t->tensor_count];
    ck_assert_uint_lt(t->tensor_count, TENSORS);
    *tensor = (tiny_tensor){ .name = name, .class = t->class_count };
    for (uint32_t i = 0; i < t->tensor_count; i++)
        if (same_rows(t->info.type, t->tensors[i].name, name))
            tensor->class = t->tensors[i].class;
    t->class_count += tensor->class == t->class_count;
    ck_assert_uint_le(t->class_count, CLASSES);
    t->tensor_count++;
}

/* Tensors that exclude others, or that others need: of attention without them the sizes are 1. */
static bool is_left_out(DML_OPERATOR_TYPE type, const opjit_field_info *field)
{
    return (type == DML_OPERATOR_MULTIHEAD_ATTENTION || type == DML_OPERATOR_MULTIHEAD_ATTENTION1) &&
           (strncmp(field->name, "Stacked", 7) == 0 || strncmp(field->name, "Past", 4) == 0);
}

/* The rank, or for tensors that may not have it at this level the least one that they may. */
static void tiny_ranks(tiny *t, uint32_t rank, uint32_t level)
{
    for (uint32_t i = 0; i < t->tensor_count; i++) {
        opjit_support_info row = OPJIT_SUPPORT_INFO_INIT;
        t->tensors[i].rank = rank;
        if (opjit_operator_type_find_support(t->info.type, t->tensors[i].name, level, &row, NULL) == OPJIT_OK &&
            (rank < row.rank_min || rank > row.rank_max))
            t->tensors[i].rank = row.rank_min;
    }
}

/* The dimensions that arrays count: the first tensor's, or, of a window, without batch and channel. */
static uint32_t tiny_dimensions(const tiny *t)
{
    for (uint32_t i = 0; i < t->info.field_count; i++)
        if (strncmp(field_of(t->info.type, i).name, "WindowSize", strlen("WindowSize")) == 0 ||
            strcmp(field_of(t->info.type, i).name, "GroupCount") == 0)
            return t->tensors[0].rank > 2 ? t->tensors[0].rank - 2 : 1;
    return t->tensors[0].rank;
}

/* Gates of a recurrent network, which are weights beside each other; 0: another operator. */
static uint32_t gates_of(DML_OPERATOR_TYPE type)
{
    if (type == DML_OPERATOR_LSTM || type == OPJIT_OPERATOR_DYNAMIC_QUANTIZE_LSTM)
        return 4;
    return type == DML_OPERATOR_RNN ? 1 : type == DML_OPERATOR_GRU ? 3 : 0;
}

/* All fields except the tensors' shapes: arrays have one element, or one per dimension. */
static void tiny_fields(tiny *t)
{
    const uint32_t dimensions = tiny_dimensions(t);
    static const uint32_t zeros[8], ones[8] = { 1, 1, 1, 1, 1, 1, 1, 1 };
    static const float ones_of_floats[8] = { 1, 1, 1, 1, 1, 1, 1, 1 };
    static const DML_SCALE_BIAS pair = { 1, 0 };
    static const DML_ACTIVATION_RELU_OPERATOR_DESC relu;
    static const DML_OPERATOR_DESC activations[3] = { { DML_OPERATOR_ACTIVATION_RELU, &relu },
                                                      { DML_OPERATOR_ACTIVATION_RELU, &relu },
                                                      { DML_OPERATOR_ACTIVATION_RELU, &relu } };
    static const DML_OPERATOR_DESC *const functions = activations;
    const uint32_t gates = gates_of(t->info.type), function_count = gates > 1 ? gates - 1 : 1;
    uint32_t tensors = 0;
    memset(t->desc.bytes, 0, sizeof t->desc.bytes);
    for (uint32_t i = 0; i < t->info.field_count; i++) {
        const opjit_field_info field = field_of(t->info.type, i);
        unsigned char *at = t->desc.bytes + field.offset;
        const bool is_axes = strcmp(field.name, "Axes") == 0, is_bias = strcmp(field.name, "Bias") == 0;
        const float *floats = ones_of_floats;
        const bool starts = strstr(field.name, "Offsets") != NULL || strstr(field.name, "Padding") != NULL || is_axes;
        const uint32_t *numbers = starts ? zeros : ones;
        const DML_TENSOR_DESC *tensor = &t->tensors[tensors].desc;
        const DML_SCALE_BIAS *scale_bias = &pair;
        const float one = 1;
        int32_t first;
        const bool is_array = field.kind == OPJIT_FIELD_INPUTS || field.kind == OPJIT_FIELD_OUTPUTS;
        const uint32_t count = is_array || is_axes || is_bias ? 1 : dimensions;
        if (is_left_out(t->info.type, &field))
            continue;
        switch (field.kind) {
        case OPJIT_FIELD_INPUT:
        case OPJIT_FIELD_OUTPUT:
        case OPJIT_FIELD_INPUTS:
        case OPJIT_FIELD_OUTPUTS:
            memcpy(at, &tensor, sizeof tensor);
            tensors++;
            break;
        case OPJIT_FIELD_UINT32S:
        case OPJIT_FIELD_INT32S: memcpy(at, &numbers, sizeof numbers); break;
        case OPJIT_FIELD_FLOAT32S: memcpy(at, &floats, sizeof floats); break;
        case OPJIT_FIELD_UINT32: /* of arrays and axes: below; others count something, one of it */
            if (strncmp(field.name, "Axis", 4) != 0)
                memcpy(at, ones, sizeof *ones);
            break;
        case OPJIT_FIELD_FLOAT32: memcpy(at, &one, sizeof one); break;
        case OPJIT_FIELD_SIZE_2D: memcpy(at, ones, sizeof(DML_SIZE_2D)); break;
        case OPJIT_FIELD_ACTIVATIONS:
            memcpy(at, &functions, sizeof functions);
            memcpy(t->desc.bytes + field.count_offset, &function_count, sizeof function_count);
            break;
        case OPJIT_FIELD_SCALE_BIAS: memcpy(at, &scale_bias, sizeof scale_bias); break;
        case OPJIT_FIELD_ENUM:
            ck_assert_ptr_nonnull(opjit_field_value_at(t->info.type, i, 0, &first));
            memcpy(at, &first, sizeof first);
            t->has_enum = true;
            t->enumeration = i;
            t->values = field.value_count;
            break;
        default: break;
        }
        if (is_array || (field.kind >= OPJIT_FIELD_UINT32S && field.kind <= OPJIT_FIELD_FLOAT32S))
            memcpy(t->desc.bytes + field.count_offset, &count, sizeof count);
    }
    if (t->info.type == DML_OPERATOR_GATHER_ND1)
        ((DML_GATHER_ND1_OPERATOR_DESC *)(void *)t->desc.bytes)->BatchDimensionCount = 0;
}

static void tiny_begin(tiny *t, DML_OPERATOR_TYPE type)
{
    *t = (tiny){ .info = OPJIT_OPERATOR_TYPE_INFO_INIT };
    ck_assert_int_eq(opjit_operator_type_get_info(type, &t->info, NULL), OPJIT_OK);
    ck_assert_uint_le(t->info.desc_bytes, DESC_BYTES);
    for (uint32_t i = 0; i < t->info.field_count; i++) {
        const opjit_field_info field = field_of(type, i);
        if (field.kind <= OPJIT_FIELD_OUTPUTS && !is_left_out(type, &field))
            add_tensor(t, field.name);
    }
}

/* Sizes of a recurrent network's tensor where all others are 1. */
static void recurrent_sizes(tiny_tensor *tensor, uint32_t gates)
{
    if (strcmp(tensor->name, "WeightTensor") == 0 || strcmp(tensor->name, "RecurrenceTensor") == 0)
        tensor->sizes[2] = gates;
    if (strcmp(tensor->name, "BiasTensor") == 0)
        tensor->sizes[3] = 2 * gates;
    if (strcmp(tensor->name, "PeepholeTensor") == 0)
        tensor->sizes[3] = 3;
}

/* Shapes of the ranks; types by class. */
static void tiny_shape(tiny *t, const uint32_t types[CLASSES])
{
    DML_TENSOR_DATA_TYPE output = DML_TENSOR_DATA_TYPE_UNKNOWN;
    uint32_t tensors = 0;
    for (uint32_t i = 0; i < t->tensor_count; i++) {
        tiny_tensor *tensor = &t->tensors[i];
        for (uint32_t d = 0; d < 8; d++)
            tensor->sizes[d] = 1;
        if (strcmp(tensor->name, "ValuesTensor") == 0)
            tensor->sizes[tensor->rank - 1] = 2;
        if (strstr(tensor->name, "State") != NULL) /* of RANDOM_GENERATOR */
            tensor->sizes[tensor->rank - 1] = 6;
        if (strstr(t->info.name, "ATTENTION") != NULL && strcmp(tensor->name, "BiasTensor") == 0) /* of all three */
            tensor->sizes[tensor->rank - 1] = 3;
        if (strstr(tensor->name, "ROI") != NULL) /* corners, or their gradient */
            tensor->sizes[tensor->rank - 1] = t->info.type == DML_OPERATOR_ROI_POOLING ? 5 : 4;
        if (gates_of(t->info.type) != 0)
            recurrent_sizes(tensor, gates_of(t->info.type));
        tensor->buffer = (DML_BUFFER_TENSOR_DESC){
            (DML_TENSOR_DATA_TYPE)types[tensor->class], DML_TENSOR_FLAG_NONE, tensor->rank, tensor->sizes, NULL, 0, 0
        };
        tensor->desc = (DML_TENSOR_DESC){ DML_TENSOR_TYPE_BUFFER, &tensor->buffer };
    }
    for (uint32_t i = 0; i < t->info.field_count; i++) {
        const opjit_field_info field = field_of(t->info.type, i);
        if (field.kind == OPJIT_FIELD_OUTPUT && output == DML_TENSOR_DATA_TYPE_UNKNOWN)
            output = t->tensors[tensors].buffer.DataType;
        tensors += field.kind <= OPJIT_FIELD_OUTPUTS && !is_left_out(t->info.type, &field);
        if (field.kind == OPJIT_FIELD_DATA_TYPE)
            memcpy(t->desc.bytes + field.offset, &output, sizeof output);
    }
}

/* Whether the operator can be created with any value of its enumeration. */
static bool tiny_makes(const tiny *t, opjit_context *context)
{
    tiny copy;
    const tiny *used = t;
    for (uint32_t v = 0; v < (t->has_enum ? t->values : 1); v++) {
        opjit_operator *op = NULL;
        if (t->has_enum) {
            int32_t value;
            copy.desc = t->desc;
            ck_assert_ptr_nonnull(opjit_field_value_at(t->info.type, t->enumeration, v, &value));
            memcpy(copy.desc.bytes + field_of(t->info.type, t->enumeration).offset, &value, sizeof value);
            used = &copy;
        }
        const DML_OPERATOR_DESC desc = { t->info.type, used->desc.bytes };
        const opjit_status status = opjit_operator_create(context, &desc, &op, NULL);
        opjit_operator_release(op);
        if (status == OPJIT_OK)
            return true;
    }
    return false;
}

/* The types that each class' rows list. */
static void list_types(const tiny *t, uint32_t level, uint32_t listed[CLASSES])
{
    memset(listed, 0, CLASSES * sizeof *listed);
    for (uint32_t i = 0; i < t->tensor_count; i++) {
        opjit_support_info row = OPJIT_SUPPORT_INFO_INIT;
        if (opjit_operator_type_find_support(t->info.type, t->tensors[i].name, level, &row, NULL) == OPJIT_OK)
            listed[t->tensors[i].class] = row.types;
    }
}

/* Tries every tuple of data types, one per class, of which at most one is not listed: seen[c] receives those of class c
 * that some accepted tuple has. */
static void accepted(tiny *t, opjit_context *context, uint32_t level, uint32_t seen[CLASSES])
{
    uint32_t types[CLASSES] = { 1, 1, 1, 1 }, listed[CLASSES], last = DML_TENSOR_DATA_TYPE_INT64, c = 0;
    list_types(t, level, listed);
    for (uint32_t i = 0; i < t->class_count; i++)
        last = listed[i] >> DML_TENSOR_DATA_TYPE_UINT4 != 0 ? TYPES : last;
    memset(seen, 0, CLASSES * sizeof *seen);
    tiny_fields(t);
    do {
        uint32_t unlisted = 0;
        for (uint32_t i = 0; i < t->class_count; i++)
            unlisted += (listed[i] >> types[i] & 1) == 0;
        if (unlisted <= 1)
            tiny_shape(t, types);
        if (unlisted <= 1 && tiny_makes(t, context))
            for (uint32_t i = 0; i < t->class_count; i++)
                seen[i] |= 1u << types[i];
        for (c = 0; c < t->class_count && ++types[c] > last; c++)
            types[c] = 1;
    } while (c < t->class_count);
}

/* The tensors of QUANTIZE are a scale and, which no tiny descriptor has, a zero point: an integer. */
static bool is_zero_point(const tiny_tensor *tensor, uint32_t type)
{
    return strcmp(tensor->name, "QuantizationTensors") == 0 && type != DML_TENSOR_DATA_TYPE_FLOAT32 &&
           type != DML_TENSOR_DATA_TYPE_FLOAT16 && type != DML_TENSOR_DATA_TYPE_FLOAT64;
}

static void compare_support(tiny *t, opjit_context *context, uint32_t level)
{
    for (uint32_t rank = 1; rank <= OPJIT_MAX_RANK; rank++) {
        uint32_t seen[CLASSES];
        tiny_ranks(t, rank, level);
        accepted(t, context, level, seen);
        for (uint32_t i = 0; i < t->tensor_count; i++)
            for (uint32_t type = 1; type <= TYPES; type++) {
                opjit_error error;
                const opjit_status status = opjit_query_support(t->info.type, t->tensors[i].name,
                                                                (DML_TENSOR_DATA_TYPE)type, rank, level, NULL, &error);
                if (is_zero_point(&t->tensors[i], type))
                    continue;
                const bool made = t->tensors[i].rank == rank && (seen[t->tensors[i].class] >> type & 1) != 0;
                ck_assert_msg((status == OPJIT_OK) == made, "%s %s, type %u, rank %u, level 0x%x: %s", t->info.name,
                              t->tensors[i].name, type, rank, level,
                              made ? error.message : "nothing was made, but it is said to be supported");
            }
    }
}

START_TEST(query_agrees_with_create)
{
    const uint32_t level = _i == 0 ? 0 : opjit_feature_level_at((uint32_t)_i - 1);
    opjit_context *context = test_context_at(level);
    static tiny t;
    for (uint32_t i = 0; i < opjit_operator_type_count(); i++) {
        tiny_begin(&t, opjit_operator_type_at(i));
        compare_support(&t, context, level);
    }
    opjit_context_destroy(context);
}
END_TEST

/* --- refusals ----------------------------------------------------------------------------------------------------- */

static const struct {
    DML_OPERATOR_TYPE type;
    const char *tensor;
    uint32_t dtype, rank, level;
    const char *target;
    opjit_status status;
    const char *message;
} queries[] = {
    { DML_OPERATOR_GATHER, NULL, 1, 4, 0, NULL, OPJIT_OK, "" },
    { DML_OPERATOR_GATHER, "IndicesTensor", 1, 4, 0, NULL, OPJIT_INVALID_ARGUMENT,
      "GATHER IndicesTensor.DataType: FLOAT32, must be UINT32, INT32, UINT64 or INT64" },
    { DML_OPERATOR_GATHER, "IndexTensor", 1, 4, 0, NULL, OPJIT_NOT_FOUND,
      "GATHER: \"IndexTensor\", must be one of its tensors" },
    { DML_OPERATOR_GATHER, NULL, 1, 9, 0, NULL, OPJIT_INVALID_ARGUMENT,
      "GATHER OutputTensor.DimensionCount: 9, must be 1 to 8" },
    { DML_OPERATOR_GATHER, NULL, 14, 4, 0, NULL, OPJIT_INVALID_ARGUMENT,
      "GATHER OutputTensor.DataType: 14, must be a DML_TENSOR_DATA_TYPE (1 to 13)" },
    { DML_OPERATOR_DIAGONAL_MATRIX1, NULL, 1, 2, 0x4000, NULL, OPJIT_UNSUPPORTED,
      "DIAGONAL_MATRIX1: feature level 4.0, must be at least 5.1" },
    { DML_OPERATOR_DIAGONAL_MATRIX, NULL, 1, 2, 0x2000, NULL, OPJIT_UNSUPPORTED,
      "DIAGONAL_MATRIX OutputTensor.DimensionCount: 2, must be 4 at feature level 2.0" },
    { DML_OPERATOR_GATHER, NULL, 1, 4, 0x4200, NULL, OPJIT_INVALID_ARGUMENT,
      "feature_level 0x4200; allowed: 0, 0x1000, 0x2000, 0x2100, 0x3000, 0x3100, 0x4000, 0x4100, 0x5000, 0x5100, "
      "0x5200, 0x6000, 0x6100, 0x6200, 0x6300, 0x6400" },
    { (DML_OPERATOR_TYPE)7777, NULL, 1, 4, 0, NULL, OPJIT_INVALID_ARGUMENT,
      "operator type 7777, must be a DML_OPERATOR_TYPE (1 to 177)" },
    { DML_OPERATOR_GATHER, NULL, 1, 4, 0, "nvptx:sm_90", OPJIT_OK, NULL },
    { DML_OPERATOR_GATHER, NULL, 1, 4, 0, "cpu:pdp11", OPJIT_INVALID_ARGUMENT, NULL },
};
enum { QUERIES = sizeof queries / sizeof *queries };

START_TEST(refusals)
{
    opjit_error error;
    const opjit_status status =
        opjit_query_support(queries[_i].type, queries[_i].tensor, (DML_TENSOR_DATA_TYPE)queries[_i].dtype,
                            queries[_i].rank, queries[_i].level, queries[_i].target, &error);
    if (status == OPJIT_UNAVAILABLE && queries[_i].target != NULL)
        return; /* a build without code generation */
    ck_assert_msg(status == queries[_i].status, "%d: %s", (int)status, error.message);
    if (queries[_i].message != NULL)
        ck_assert_str_eq(error.message, queries[_i].message);
}
END_TEST

START_TEST(ends_of_lists)
{
    opjit_operator_type_info info = OPJIT_OPERATOR_TYPE_INFO_INIT;
    opjit_field_info field = OPJIT_FIELD_INFO_INIT;
    opjit_support_info support = OPJIT_SUPPORT_INFO_INIT;
    int32_t value = 0;
    ck_assert_int_eq(opjit_operator_type_at(opjit_operator_type_count()), DML_OPERATOR_INVALID);
    ck_assert_uint_eq(opjit_feature_level_at(0), DML_FEATURE_LEVEL_1_0);
    ck_assert_uint_eq(opjit_feature_level_at(14), DML_FEATURE_LEVEL_6_4);
    ck_assert_uint_eq(opjit_feature_level_at(15), 0);
    ck_assert_int_eq(opjit_operator_type_find("DML_OPERATOR_REDUCE"), DML_OPERATOR_REDUCE);
    ck_assert_int_eq(opjit_operator_type_find("reduce"), DML_OPERATOR_INVALID);
    ck_assert_int_eq(opjit_operator_type_find(NULL), DML_OPERATOR_INVALID);
    ck_assert_int_eq(opjit_operator_type_get_info(DML_OPERATOR_REDUCE, &info, NULL), OPJIT_OK);
    ck_assert_str_eq(info.name, "REDUCE");
    ck_assert_int_eq(opjit_operator_type_get_field(info.type, info.field_count, &field, NULL), OPJIT_NOT_FOUND);
    ck_assert_int_eq(opjit_operator_type_get_support(info.type, info.support_count, &support, NULL), OPJIT_NOT_FOUND);
    ck_assert_int_eq(opjit_operator_type_get_field(info.type, 0, &field, NULL), OPJIT_OK);
    ck_assert_uint_eq(field.value_count, 12);
    ck_assert_str_eq(opjit_field_value_at(info.type, 0, 11, &value), "SUM_SQUARE");
    ck_assert_int_eq(value, DML_REDUCE_FUNCTION_SUM_SQUARE);
    ck_assert_ptr_null(opjit_field_value_at(info.type, 0, 12, NULL));
    ck_assert_ptr_null(opjit_field_value_at(info.type, 1, 0, NULL));
    ck_assert_uint_eq(opjit_data_type_size(DML_TENSOR_DATA_TYPE_FLOAT64), 8);
    ck_assert_str_eq(opjit_data_type_name(DML_TENSOR_DATA_TYPE_UINT16), "UINT16");
    info.struct_size = 3;
    ck_assert_int_eq(opjit_operator_type_get_info(DML_OPERATOR_REDUCE, &info, NULL), OPJIT_INVALID_ARGUMENT);
}
END_TEST

/* --- this build and this machine ---------------------------------------------------------------------------------- */
/* Every FLOAT16 comes back from float, and what lies between two of them goes to the even one. */
START_TEST(float16)
{
    for (uint32_t bits = 0; bits <= UINT16_MAX; bits++)
        ck_assert_uint_eq(opjit_float16_from_double((double)opjit_float16_to_float((uint16_t)bits)),
                          (bits & 0x7c00) == 0x7c00 && (bits & 0x3ff) != 0 ? bits | 0x200 : bits);
    ck_assert_float_eq(opjit_float16_to_float(0x3c00), 1);
    ck_assert_uint_eq(opjit_float16_from_double(65519.99), 0x7bff);
    ck_assert_uint_eq(opjit_float16_from_double(65520), 0x7c00);
    ck_assert_uint_eq(opjit_float16_from_double(-1 - 0x1p-11), 0xbc00);
    ck_assert_uint_eq(opjit_float16_from_double(1 + 0x1p-11 + 0x1p-50), 0x3c01);
}
END_TEST

START_TEST(build)
{
    opjit_build_info info = OPJIT_BUILD_INFO_INIT;
    opjit_error error;
    ck_assert_int_eq(opjit_get_build_info(&info, &error), OPJIT_OK);
    ck_assert_str_eq(info.version, opjit_version());
    ck_assert_uint_eq(strlen(info.id), 16);
    ck_assert_uint_eq(info.numerics, OPJIT_NUMERICS);
    ck_assert_uint_eq(info.kernel_abi, OPJIT_KERNEL_ABI);
    ck_assert_int_eq(info.has_codegen == 0, strcmp(info.llvm, "none") == 0);
    info.struct_size = 3;
    ck_assert_int_eq(opjit_get_build_info(&info, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_int_eq(opjit_get_build_info(NULL, &error), OPJIT_INVALID_ARGUMENT);
}
END_TEST

START_TEST(targets)
{
    char name[OPJIT_TARGET_TEXT], text[OPJIT_TARGET_TEXT], again[OPJIT_TARGET_TEXT];
    opjit_context *context;
    opjit_error error;
    uint32_t count = 0;
    ck_assert_int_eq(opjit_context_create(NULL, &context, &error), OPJIT_OK);
    for (; opjit_target_name_at(count, name) != 0; count++) {
        ck_assert_int_eq(opjit_target_get_text(name, text, &error), OPJIT_OK);
        ck_assert_int_eq(opjit_target_get_text(text, again, &error), OPJIT_OK);
        ck_assert_str_eq(text, again);
        if (strncmp(name, "cpu:", 4) != 0)
            ck_assert_int_eq(opjit_target_runs_here(name, &error), OPJIT_UNSUPPORTED);
    }
    ck_assert_uint_gt(count, 10);
    ck_assert_str_eq(name, "");
    ck_assert_int_eq(opjit_target_get_text(NULL, text, &error), OPJIT_OK);
    ck_assert_str_eq(text, opjit_context_target(context));
    ck_assert_int_eq(opjit_target_runs_here(NULL, &error), OPJIT_OK);
    ck_assert_int_eq(opjit_target_runs_here("cpu:z80", &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(error.message, "z80"));
    ck_assert_int_eq(opjit_target_get_text("cpu:z80", text, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_str_eq(text, "");
    ck_assert_int_eq(opjit_target_get_text("cpu", NULL, &error), OPJIT_INVALID_ARGUMENT);
    opjit_context_destroy(context);
}
END_TEST

/* --- operators and plans ------------------------------------------------------------------------------------------ */

/* A softmax over rows of [3,100], whose output may be its input's memory. */
static opjit_operator *make_softmax(opjit_context *context)
{
    static const uint32_t sizes[] = { 3, 100 }, axis = 1;
    static const DML_BUFFER_TENSOR_DESC buffer = {
        DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_FLAG_NONE, 2, sizes, NULL, 0, 0
    };
    static const DML_TENSOR_DESC tensor = { DML_TENSOR_TYPE_BUFFER, &buffer };
    static const DML_ACTIVATION_SOFTMAX1_OPERATOR_DESC softmax = { &tensor, &tensor, 1, &axis };
    const DML_OPERATOR_DESC desc = { DML_OPERATOR_ACTIVATION_SOFTMAX1, &softmax };
    opjit_operator *op = NULL;
    ck_assert_int_eq(opjit_operator_create(context, &desc, &op, NULL), OPJIT_OK);
    return op;
}

START_TEST(operators_that_were_made)
{
    opjit_context *context = test_context_at(DML_FEATURE_LEVEL_6_0);
    opjit_operator *op = make_softmax(context);
    opjit_operator_info info = OPJIT_OPERATOR_INFO_INIT;
    opjit_tensor_info tensor = OPJIT_TENSOR_INFO_INIT;
    ck_assert_int_eq(opjit_operator_get_info(op, &info, NULL), OPJIT_OK);
    ck_assert_int_eq(info.type, DML_OPERATOR_ACTIVATION_SOFTMAX1);
    ck_assert_uint_eq(info.input_count, 1);
    ck_assert_uint_eq(info.output_count, 1);
    ck_assert_uint_eq(info.feature_level, DML_FEATURE_LEVEL_6_0);
    ck_assert_int_eq(opjit_operator_get_output(op, 0, &tensor, NULL), OPJIT_OK);
    ck_assert_str_eq(tensor.name, "OutputTensor");
    ck_assert_uint_eq(tensor.rank, 2);
    ck_assert_uint_eq(tensor.sizes[1], 100);
    ck_assert_uint_eq(tensor.strides[0], 100);
    ck_assert_uint_eq(tensor.bytes, 1200);
    ck_assert_int_eq(opjit_operator_get_input(op, 1, &tensor, NULL), OPJIT_NOT_FOUND);
    ck_assert_int_eq(opjit_operator_get_input(NULL, 0, &tensor, NULL), OPJIT_INVALID_ARGUMENT);
    opjit_operator_release(op);
    opjit_context_destroy(context);
}
END_TEST

static void compare_plan(const opjit_kernel_info *plan, const opjit_kernel_info *kernel)
{
    ck_assert_str_eq(plan->name, kernel->name);
    ck_assert_str_eq(plan->target, kernel->target);
    ck_assert_uint_eq(plan->buffer_count, kernel->buffer_count);
    ck_assert_uint_eq(plan->workspace_bytes, kernel->workspace_bytes);
    ck_assert_uint_eq(plan->bytes_read, kernel->bytes_read);
    ck_assert_uint_eq(plan->bytes_written, kernel->bytes_written);
    ck_assert_uint_eq(plan->meta->steps, kernel->meta->steps);
    ck_assert_uint_eq(plan->meta->variants, kernel->meta->variants);
    ck_assert_mem_eq(plan->buffers, kernel->buffers, plan->buffer_count * sizeof *plan->buffers);
    ck_assert_uint_eq(plan->code_bytes, 0);
}

START_TEST(plan_is_what_the_kernel_becomes)
{
    opjit_context *context = test_context_at(0);
    opjit_operator *op = make_softmax(context);
    opjit_kernel_info planned = OPJIT_KERNEL_INFO_INIT, made = OPJIT_KERNEL_INFO_INIT;
    opjit_kernel *kernel = NULL;
    opjit_plan *plan = NULL;
    opjit_error error = { 0 };
    ck_assert_msg(opjit_plan_operator(context, op, NULL, &plan, &error) == OPJIT_OK, "%s", error.message);
    ck_assert_int_eq(opjit_plan_get_info(plan, &planned, NULL), OPJIT_OK);
    ck_assert_uint_eq(planned.buffers[1].alias_inputs, 1);
    const opjit_status status = opjit_compile_operator(context, op, NULL, &kernel, &error);
    if (status != OPJIT_UNAVAILABLE) { /* else a build without code generation */
        ck_assert_msg(status == OPJIT_OK, "%s", error.message);
        ck_assert_int_eq(opjit_kernel_get_info(kernel, &made, NULL), OPJIT_OK);
        compare_plan(&planned, &made);
    }
    opjit_kernel_release(kernel);
    opjit_operator_release(op);
    opjit_context_destroy(context);
    ck_assert_str_eq(opjit_kernel_buffer_name(&planned, 1), "OutputTensor"); /* the context is gone */
    opjit_plan_destroy(plan);
    opjit_plan_destroy(NULL);
}
END_TEST

START_TEST(a_plan_gives_its_memory_back)
{
    test_meter meter;
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
    opjit_context *context = NULL;
    opjit_plan *plan = NULL, *none = NULL;
    test_meter_begin(&meter);
    options.allocator = &meter.allocator;
    ck_assert_int_eq(opjit_context_create(&options, &context, NULL), OPJIT_OK);
    opjit_operator *op = make_softmax(context);
    ck_assert_int_eq(opjit_plan_operator(context, op, NULL, &plan, NULL), OPJIT_OK);
    ck_assert_int_eq(opjit_plan_operator(context, NULL, NULL, &none, NULL), OPJIT_INVALID_ARGUMENT);
    ck_assert_int_eq(opjit_plan_graph(context, NULL, NULL, &none, NULL), OPJIT_INVALID_ARGUMENT);
    ck_assert_ptr_null(none);
    opjit_operator_release(op);
    opjit_context_destroy(context);
    opjit_plan_destroy(plan);
    ck_assert_uint_eq(meter.blocks, 0);
    ck_assert_uint_eq(meter.live, 0);
}
END_TEST

/* A product with what follows it, and a softmax in steps of its own. */
START_TEST(step_nodes)
{
    static const uint32_t of_x[] = { 64, 300 }, of_b[] = { 300, 64 };
    static const char *const labels[] = { "product (Gemm)", "active (Relu)", "shares (Softmax)" };
    static float b[300 * 64];
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    const DML_GRAPH_DESC *desc;
    opjit_context *context;
    opjit_plan *plan;
    opjit_graph *g;
    bool seen[3] = { false }, together = false;
    ck_assert_int_eq(opjit_context_create(NULL, &context, NULL), OPJIT_OK);
    ck_assert_int_eq(opjit_graph_create(context, &g, NULL), OPJIT_OK);
    const DML_TENSOR_DATA_TYPE f32 = DML_TENSOR_DATA_TYPE_FLOAT32;
    opjit_tensor t = opjit_graph_input(g, "x", f32, 2, of_x);
    const opjit_tensor factor = opjit_graph_constant(g, f32, 2, of_b, b, sizeof b, 0);
    opjit_graph_label(g, labels[0]);
    t = opjit_graph_matrix_multiply(g, t, factor, 0, 0);
    opjit_graph_label(g, labels[1]);
    t = opjit_graph_relu(g, t);
    opjit_graph_label(g, labels[2]);
    t = opjit_graph_softmax(g, t, 1);
    opjit_graph_label(g, NULL);
    opjit_graph_output(g, "y", t);
    ck_assert_int_eq(opjit_graph_get_desc(g, &desc, NULL), OPJIT_OK);
    for (uint32_t i = 0; i < 3; i++)
        ck_assert_str_eq(((const DML_OPERATOR_GRAPH_NODE_DESC *)desc->Nodes[i].Desc)->Name, labels[i]);
    ck_assert_int_eq(opjit_plan_graph(context, desc, NULL, &plan, NULL), OPJIT_OK);
    ck_assert_int_eq(opjit_plan_get_info(plan, &info, NULL), OPJIT_OK);
    for (uint32_t i = 0; i < info.meta->steps; i++) {
        const uint32_t *nodes;
        const uint32_t count = opjit_plan_step_nodes(plan, i, &nodes);
        ck_assert_uint_ge(count, 1);
        for (uint32_t k = 0; k < count; k++) {
            ck_assert_uint_lt(nodes[k], 3);
            seen[nodes[k]] = true;
            together = together || (nodes[k] == 1 && count > 1); /* with a neighbour */
        }
    }
    ck_assert(seen[0] && seen[1] && seen[2] && together);
    ck_assert_uint_eq(opjit_plan_step_nodes(plan, info.meta->steps, &(const uint32_t *){ NULL }), 0);
    ck_assert_uint_eq(opjit_plan_step_nodes(NULL, 0, &(const uint32_t *){ NULL }), 0);
    opjit_plan_destroy(plan);
    opjit_graph_destroy(g);
    opjit_context_destroy(context);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fe.reflect");
    TCase *tcase = tcase_create("reflect");
    SRunner *runner = srunner_create(suite);
    int failed;

    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, query_agrees_with_create, 0, LEVELS);
    tcase_add_loop_test(tcase, refusals, 0, QUERIES);
    tcase_add_test(tcase, ends_of_lists);
    tcase_add_test(tcase, float16);
    tcase_add_test(tcase, build);
    tcase_add_test(tcase, targets);
    tcase_add_test(tcase, operators_that_were_made);
    tcase_add_test(tcase, plan_is_what_the_kernel_becomes);
    tcase_add_test(tcase, a_plan_gives_its_memory_back);
    tcase_add_test(tcase, step_nodes);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
