/* SPDX-License-Identifier: Apache-2.0 */
/* ref_pointwise_rows.c - the types that pointwise operators accept from each feature level on, from their documents. */
#include <string.h>

#include "tests/reference/pointwise.h"

#define ELEMENT_WISE(NAME) DML_OPERATOR_ELEMENT_WISE_##NAME
#define ACTIVATION(NAME) DML_OPERATOR_ACTIVATION_##NAME

/* Sets of types, one letter each: f FLOAT32 and FLOAT16, g FLOAT32 (both with FLOAT64 where there is no feature level),
 * d FLOAT64, s signed integers and u unsigned ones of 64 to 8 bits, i and v of 32 to 8, k INT32, w UINT32, c INT8, b
 * UINT8. */
#define ALL "dfsu"
#define NUMBER "fsu"

/* clang-format off */
const ref_pointwise_row ref_pointwise_rows[] = {
    { ELEMENT_WISE(IDENTITY), 0x1000, "aa", { ALL } },
    { ELEMENT_WISE(ABS), 0x1000, "aa", { "fs" } },
    { ELEMENT_WISE(ACOS), 0x1000, "aa", { "f" } },
    { ELEMENT_WISE(ADD), 0x1000, "aaa", { NUMBER } },
    { ELEMENT_WISE(ASIN), 0x1000, "aa", { "f" } },
    { ELEMENT_WISE(ATAN), 0x1000, "aa", { "f" } },
    { ELEMENT_WISE(CEIL), 0x1000, "aa", { "f" } },
    { ELEMENT_WISE(CLIP), 0x1000, "aa", { NUMBER } },
    { ELEMENT_WISE(COS), 0x1000, "aa", { "f" } },
    { ELEMENT_WISE(DIVIDE), 0x1000, "aaa", { NUMBER } },
    { ELEMENT_WISE(EXP), 0x1000, "aa", { "f" } },
    { ELEMENT_WISE(FLOOR), 0x1000, "aa", { "f" } },
    { ELEMENT_WISE(LOG), 0x1000, "aa", { "f" } },
    { ELEMENT_WISE(LOGICAL_AND), 0x1000, "aaa", { "wb" } },
    { ELEMENT_WISE(LOGICAL_EQUALS), 0x1000, "aab", { ALL, "wb" } },
    { ELEMENT_WISE(LOGICAL_GREATER_THAN), 0x1000, "aab", { ALL, "wb" } },
    { ELEMENT_WISE(LOGICAL_LESS_THAN), 0x1000, "aab", { ALL, "wb" } },
    { ELEMENT_WISE(LOGICAL_NOT), 0x1000, "aa", { "wb" } },
    { ELEMENT_WISE(LOGICAL_OR), 0x1000, "aaa", { "wb" } },
    { ELEMENT_WISE(LOGICAL_XOR), 0x1000, "aaa", { "wb" } },
    { ELEMENT_WISE(MAX), 0x1000, "aaa", { NUMBER } },
    { ELEMENT_WISE(MEAN), 0x1000, "aaa", { "f" } },
    { ELEMENT_WISE(MEAN), 0x2100, "aaa", { "fkw" } },
    { ELEMENT_WISE(MIN), 0x1000, "aaa", { NUMBER } },
    { ELEMENT_WISE(MULTIPLY), 0x1000, "aaa", { NUMBER } },
    { ELEMENT_WISE(POW), 0x1000, "aaa", { "fiv" } },
    { ELEMENT_WISE(CONSTANT_POW), 0x1000, "aa", { "fiv" } },
    { ELEMENT_WISE(RECIP), 0x1000, "aa", { "f" } },
    { ELEMENT_WISE(SIN), 0x1000, "aa", { "f" } },
    { ELEMENT_WISE(SQRT), 0x1000, "aa", { "f" } },
    { ELEMENT_WISE(SUBTRACT), 0x1000, "aaa", { NUMBER } },
    { ELEMENT_WISE(TAN), 0x1000, "aa", { "f" } },
    { ELEMENT_WISE(THRESHOLD), 0x1000, "aa", { "fiv" } },
    { ELEMENT_WISE(QUANTIZE_LINEAR), 0x1000, "aabb", { "g", "cb" } },
    { ELEMENT_WISE(QUANTIZE_LINEAR), 0x6000, "aabb", { "fk", "cb" } },
    { ELEMENT_WISE(DEQUANTIZE_LINEAR), 0x1000, "abab", { "iv", "g" } },
    { ELEMENT_WISE(DEQUANTIZE_LINEAR), 0x6000, "abab", { "iv", "f" } },
    { ELEMENT_WISE(SIGN), 0x2000, "aa", { "fs" } },
    { ELEMENT_WISE(IS_NAN), 0x2000, "ab", { "f", "b" } },
    { ELEMENT_WISE(ERF), 0x2000, "aa", { "f" } },
    { ELEMENT_WISE(SINH), 0x2000, "aa", { "f" } },
    { ELEMENT_WISE(COSH), 0x2000, "aa", { "f" } },
    { ELEMENT_WISE(TANH), 0x2000, "aa", { "f" } },
    { ELEMENT_WISE(ASINH), 0x2000, "aa", { "f" } },
    { ELEMENT_WISE(ACOSH), 0x2000, "aa", { "f" } },
    { ELEMENT_WISE(ATANH), 0x2000, "aa", { "f" } },
    { ELEMENT_WISE(IF), 0x2000, "abbb", { "b", ALL } },
    { ELEMENT_WISE(ADD1), 0x2000, "aaa", { "f" } },
    { ELEMENT_WISE(BIT_SHIFT_LEFT), 0x2100, "aaa", { "u" } },
    { ELEMENT_WISE(BIT_SHIFT_RIGHT), 0x2100, "aaa", { "u" } },
    { ELEMENT_WISE(ROUND), 0x2100, "aa", { "f" } },
    { ELEMENT_WISE(IS_INFINITY), 0x2100, "ab", { "f", "b" } },
    { ELEMENT_WISE(MODULUS_TRUNCATE), 0x2100, "aaa", { NUMBER } },
    { ELEMENT_WISE(MODULUS_FLOOR), 0x2100, "aaa", { NUMBER } },
    { ELEMENT_WISE(BIT_AND), 0x3000, "aaa", { "u" } },
    { ELEMENT_WISE(BIT_OR), 0x3000, "aaa", { "u" } },
    { ELEMENT_WISE(BIT_XOR), 0x3000, "aaa", { "u" } },
    { ELEMENT_WISE(BIT_NOT), 0x3000, "aa", { "u" } },
    { ELEMENT_WISE(BIT_COUNT), 0x3000, "ab", { "u", "wb" } },
    { ELEMENT_WISE(LOGICAL_GREATER_THAN_OR_EQUAL), 0x3000, "aab", { ALL, "wb" } },
    { ELEMENT_WISE(LOGICAL_LESS_THAN_OR_EQUAL), 0x3000, "aab", { ALL, "wb" } },
    { ELEMENT_WISE(ATAN_YX), 0x3100, "aaa", { "f" } },
    { ELEMENT_WISE(CLIP_GRAD), 0x3100, "aaa", { NUMBER } },
    { ELEMENT_WISE(DIFFERENCE_SQUARE), 0x3100, "aaa", { "fkw" } },
    { ELEMENT_WISE(QUANTIZED_LINEAR_ADD), 0x4000, "abaababaa", { "cb", "g" } },
    { ELEMENT_WISE(CLIP1), 0x5000, "aa", { NUMBER } },
    { ELEMENT_WISE(CLIP_GRAD1), 0x5000, "aaa", { NUMBER } },
    { ELEMENT_WISE(NEGATE), 0x5000, "aa", { "fs" } },
    { ACTIVATION(ELU), 0x1000, "aa", { "f" } },
    { ACTIVATION(HARD_SIGMOID), 0x1000, "aa", { "f" } },
    { ACTIVATION(IDENTITY), 0x1000, "aa", { "f" } },
    { ACTIVATION(LEAKY_RELU), 0x1000, "aa", { "f" } },
    { ACTIVATION(LINEAR), 0x1000, "aa", { "f" } },
    { ACTIVATION(PARAMETERIZED_RELU), 0x1000, "aaa", { "fi" } },
    { ACTIVATION(PARAMETRIC_SOFTPLUS), 0x1000, "aa", { "f" } },
    { ACTIVATION(RELU), 0x1000, "aa", { "fi" } },
    { ACTIVATION(SCALED_ELU), 0x1000, "aa", { "f" } },
    { ACTIVATION(SCALED_TANH), 0x1000, "aa", { "f" } },
    { ACTIVATION(SIGMOID), 0x1000, "aa", { "f" } },
    { ACTIVATION(SOFTPLUS), 0x1000, "aa", { "f" } },
    { ACTIVATION(SOFTSIGN), 0x1000, "aa", { "f" } },
    { ACTIVATION(TANH), 0x1000, "aa", { "f" } },
    { ACTIVATION(THRESHOLDED_RELU), 0x1000, "aa", { "f" } },
    { ACTIVATION(SHRINK), 0x2000, "aa", { "f" } },
    { ACTIVATION(CELU), 0x3000, "aa", { "f" } },
    { ACTIVATION(RELU_GRAD), 0x3000, "aaa", { "fi" } },
    { ACTIVATION(GELU), 0x5100, "aa", { "f" } },
    { ACTIVATION(SWISH), 0x6200, "aa", { "f" } },
    { ACTIVATION(HARD_SWISH), 0x6200, "aa", { "f" } },
    { DML_OPERATOR_BATCH_NORMALIZATION, 0x1000, "aAAAAa", { "f" } },
    { DML_OPERATOR_BATCH_NORMALIZATION, 0x3100, "aAAAAa", { "f" } },
    { DML_OPERATOR_CAST, 0x1000, "ab", { ALL, ALL } },
};
/* clang-format on */
const uint32_t ref_pointwise_row_count = sizeof ref_pointwise_rows / sizeof *ref_pointwise_rows;

static const char *letters_of(DML_TENSOR_DATA_TYPE dtype, bool at_level)
{
    switch (dtype) {
    case DML_TENSOR_DATA_TYPE_FLOAT64: return at_level ? "d" : "dfg";
    case DML_TENSOR_DATA_TYPE_FLOAT32: return "fg";
    case DML_TENSOR_DATA_TYPE_FLOAT16: return "f";
    case DML_TENSOR_DATA_TYPE_INT64: return "s";
    case DML_TENSOR_DATA_TYPE_INT32: return "sik";
    case DML_TENSOR_DATA_TYPE_INT16: return "si";
    case DML_TENSOR_DATA_TYPE_INT8: return "sic";
    case DML_TENSOR_DATA_TYPE_UINT64: return "u";
    case DML_TENSOR_DATA_TYPE_UINT32: return "uvw";
    case DML_TENSOR_DATA_TYPE_UINT16: return "uv";
    case DML_TENSOR_DATA_TYPE_UINT8: return "uvb";
    default: return "";
    }
}

bool ref_pointwise_allows(const ref_pointwise_row *row, char letter, uint32_t level, DML_TENSOR_DATA_TYPE dtype)
{
    return strpbrk(row->types[letter - 'a'], letters_of(dtype, level != 0)) != NULL;
}

uint32_t ref_pointwise_rank(const ref_pointwise_row *row)
{
    return row->type == DML_OPERATOR_BATCH_NORMALIZATION && row->level < 0x3100 ? 4 : 0;
}

char ref_pointwise_letter(const ref_pointwise_row *row, uint32_t tensor)
{
    return (char)(row->tensors[tensor] | 0x20);
}

bool ref_pointwise_broadcasts(const ref_pointwise_row *row, uint32_t tensor)
{
    return row->tensors[tensor] != ref_pointwise_letter(row, tensor);
}

const ref_pointwise_row *ref_pointwise_row_of(DML_OPERATOR_TYPE type, uint32_t level)
{
    const ref_pointwise_row *found = NULL;
    for (uint32_t i = 0; i < ref_pointwise_row_count; i++)
        if (ref_pointwise_rows[i].type == type && (level == 0 || ref_pointwise_rows[i].level <= level))
            found = &ref_pointwise_rows[i];
    return found;
}
