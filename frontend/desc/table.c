/* SPDX-License-Identifier: Apache-2.0 */
/* table.c - the operators of this build, by number and by name; the names of all operators of DirectML, for messages;
 * and what the rows say about types.  What an operator does is in its own file. */
#include <stdio.h>
#include <string.h>

#include "frontend/ops/op.h"

#define OPERATOR(name, NAME) extern const op_def opjit_fe_op_##name;
#include "frontend/ops/operators.def"
#undef OPERATOR

static const op_def *const operators[] = {
#define OPERATOR(name, NAME) &opjit_fe_op_##name,
#include "frontend/ops/operators.def"
#undef OPERATOR
};

/* By DML_OPERATOR_TYPE, because every create looks one up. */
static const op_def *const by_type[] = {
#define OPERATOR(name, NAME) [DML_OPERATOR_##NAME] = &opjit_fe_op_##name,
#include "frontend/ops/operators.def"
#undef OPERATOR
};

/* DML_OPERATOR_SCATTER is an older name of SCATTER_ELEMENTS. */
#define NAME(name) [DML_OPERATOR_##name] = #name
static const char *const type_names[] = {
    NAME(INVALID),
    NAME(ELEMENT_WISE_IDENTITY),
    NAME(ELEMENT_WISE_ABS),
    NAME(ELEMENT_WISE_ACOS),
    NAME(ELEMENT_WISE_ADD),
    NAME(ELEMENT_WISE_ASIN),
    NAME(ELEMENT_WISE_ATAN),
    NAME(ELEMENT_WISE_CEIL),
    NAME(ELEMENT_WISE_CLIP),
    NAME(ELEMENT_WISE_COS),
    NAME(ELEMENT_WISE_DIVIDE),
    NAME(ELEMENT_WISE_EXP),
    NAME(ELEMENT_WISE_FLOOR),
    NAME(ELEMENT_WISE_LOG),
    NAME(ELEMENT_WISE_LOGICAL_AND),
    NAME(ELEMENT_WISE_LOGICAL_EQUALS),
    NAME(ELEMENT_WISE_LOGICAL_GREATER_THAN),
    NAME(ELEMENT_WISE_LOGICAL_LESS_THAN),
    NAME(ELEMENT_WISE_LOGICAL_NOT),
    NAME(ELEMENT_WISE_LOGICAL_OR),
    NAME(ELEMENT_WISE_LOGICAL_XOR),
    NAME(ELEMENT_WISE_MAX),
    NAME(ELEMENT_WISE_MEAN),
    NAME(ELEMENT_WISE_MIN),
    NAME(ELEMENT_WISE_MULTIPLY),
    NAME(ELEMENT_WISE_POW),
    NAME(ELEMENT_WISE_CONSTANT_POW),
    NAME(ELEMENT_WISE_RECIP),
    NAME(ELEMENT_WISE_SIN),
    NAME(ELEMENT_WISE_SQRT),
    NAME(ELEMENT_WISE_SUBTRACT),
    NAME(ELEMENT_WISE_TAN),
    NAME(ELEMENT_WISE_THRESHOLD),
    NAME(ELEMENT_WISE_QUANTIZE_LINEAR),
    NAME(ELEMENT_WISE_DEQUANTIZE_LINEAR),
    NAME(ACTIVATION_ELU),
    NAME(ACTIVATION_HARDMAX),
    NAME(ACTIVATION_HARD_SIGMOID),
    NAME(ACTIVATION_IDENTITY),
    NAME(ACTIVATION_LEAKY_RELU),
    NAME(ACTIVATION_LINEAR),
    NAME(ACTIVATION_LOG_SOFTMAX),
    NAME(ACTIVATION_PARAMETERIZED_RELU),
    NAME(ACTIVATION_PARAMETRIC_SOFTPLUS),
    NAME(ACTIVATION_RELU),
    NAME(ACTIVATION_SCALED_ELU),
    NAME(ACTIVATION_SCALED_TANH),
    NAME(ACTIVATION_SIGMOID),
    NAME(ACTIVATION_SOFTMAX),
    NAME(ACTIVATION_SOFTPLUS),
    NAME(ACTIVATION_SOFTSIGN),
    NAME(ACTIVATION_TANH),
    NAME(ACTIVATION_THRESHOLDED_RELU),
    NAME(CONVOLUTION),
    NAME(GEMM),
    NAME(REDUCE),
    NAME(AVERAGE_POOLING),
    NAME(LP_POOLING),
    NAME(MAX_POOLING),
    NAME(ROI_POOLING),
    NAME(SLICE),
    NAME(CAST),
    NAME(SPLIT),
    NAME(JOIN),
    NAME(PADDING),
    NAME(VALUE_SCALE_2D),
    NAME(UPSAMPLE_2D),
    NAME(GATHER),
    NAME(SPACE_TO_DEPTH),
    NAME(DEPTH_TO_SPACE),
    NAME(TILE),
    NAME(TOP_K),
    NAME(BATCH_NORMALIZATION),
    NAME(MEAN_VARIANCE_NORMALIZATION),
    NAME(LOCAL_RESPONSE_NORMALIZATION),
    NAME(LP_NORMALIZATION),
    NAME(RNN),
    NAME(LSTM),
    NAME(GRU),
    NAME(ELEMENT_WISE_SIGN),
    NAME(ELEMENT_WISE_IS_NAN),
    NAME(ELEMENT_WISE_ERF),
    NAME(ELEMENT_WISE_SINH),
    NAME(ELEMENT_WISE_COSH),
    NAME(ELEMENT_WISE_TANH),
    NAME(ELEMENT_WISE_ASINH),
    NAME(ELEMENT_WISE_ACOSH),
    NAME(ELEMENT_WISE_ATANH),
    NAME(ELEMENT_WISE_IF),
    NAME(ELEMENT_WISE_ADD1),
    NAME(ACTIVATION_SHRINK),
    NAME(MAX_POOLING1),
    NAME(MAX_UNPOOLING),
    NAME(DIAGONAL_MATRIX),
    NAME(SCATTER_ELEMENTS),
    NAME(ONE_HOT),
    NAME(RESAMPLE),
    NAME(ELEMENT_WISE_BIT_SHIFT_LEFT),
    NAME(ELEMENT_WISE_BIT_SHIFT_RIGHT),
    NAME(ELEMENT_WISE_ROUND),
    NAME(ELEMENT_WISE_IS_INFINITY),
    NAME(ELEMENT_WISE_MODULUS_TRUNCATE),
    NAME(ELEMENT_WISE_MODULUS_FLOOR),
    NAME(FILL_VALUE_CONSTANT),
    NAME(FILL_VALUE_SEQUENCE),
    NAME(CUMULATIVE_SUMMATION),
    NAME(REVERSE_SUBSEQUENCES),
    NAME(GATHER_ELEMENTS),
    NAME(GATHER_ND),
    NAME(SCATTER_ND),
    NAME(MAX_POOLING2),
    NAME(SLICE1),
    NAME(TOP_K1),
    NAME(DEPTH_TO_SPACE1),
    NAME(SPACE_TO_DEPTH1),
    NAME(MEAN_VARIANCE_NORMALIZATION1),
    NAME(RESAMPLE1),
    NAME(MATRIX_MULTIPLY_INTEGER),
    NAME(QUANTIZED_LINEAR_MATRIX_MULTIPLY),
    NAME(CONVOLUTION_INTEGER),
    NAME(QUANTIZED_LINEAR_CONVOLUTION),
    NAME(ELEMENT_WISE_BIT_AND),
    NAME(ELEMENT_WISE_BIT_OR),
    NAME(ELEMENT_WISE_BIT_XOR),
    NAME(ELEMENT_WISE_BIT_NOT),
    NAME(ELEMENT_WISE_BIT_COUNT),
    NAME(ELEMENT_WISE_LOGICAL_GREATER_THAN_OR_EQUAL),
    NAME(ELEMENT_WISE_LOGICAL_LESS_THAN_OR_EQUAL),
    NAME(ACTIVATION_CELU),
    NAME(ACTIVATION_RELU_GRAD),
    NAME(AVERAGE_POOLING_GRAD),
    NAME(MAX_POOLING_GRAD),
    NAME(RANDOM_GENERATOR),
    NAME(NONZERO_COORDINATES),
    NAME(RESAMPLE_GRAD),
    NAME(SLICE_GRAD),
    NAME(ADAM_OPTIMIZER),
    NAME(ARGMIN),
    NAME(ARGMAX),
    NAME(ROI_ALIGN),
    NAME(GATHER_ND1),
    NAME(ELEMENT_WISE_ATAN_YX),
    NAME(ELEMENT_WISE_CLIP_GRAD),
    NAME(ELEMENT_WISE_DIFFERENCE_SQUARE),
    NAME(LOCAL_RESPONSE_NORMALIZATION_GRAD),
    NAME(CUMULATIVE_PRODUCT),
    NAME(BATCH_NORMALIZATION_GRAD),
    NAME(ELEMENT_WISE_QUANTIZED_LINEAR_ADD),
    NAME(DYNAMIC_QUANTIZE_LINEAR),
    NAME(ROI_ALIGN1),
    NAME(ROI_ALIGN_GRAD),
    NAME(BATCH_NORMALIZATION_TRAINING),
    NAME(BATCH_NORMALIZATION_TRAINING_GRAD),
    NAME(ELEMENT_WISE_CLIP1),
    NAME(ELEMENT_WISE_CLIP_GRAD1),
    NAME(PADDING1),
    NAME(ELEMENT_WISE_NEGATE),
    NAME(ACTIVATION_GELU),
    NAME(ACTIVATION_SOFTMAX1),
    NAME(ACTIVATION_LOG_SOFTMAX1),
    NAME(ACTIVATION_HARDMAX1),
    NAME(RESAMPLE2),
    NAME(RESAMPLE_GRAD1),
    NAME(DIAGONAL_MATRIX1),
    NAME(MULTIHEAD_ATTENTION),
    NAME(LP_POOLING1),
    NAME(AVERAGE_POOLING1),
    NAME(ACTIVATION_SWISH),
    NAME(ACTIVATION_HARD_SWISH),
    NAME(QUANTIZED_LINEAR_AVERAGE_POOLING),
    NAME(MATRIX_MULTIPLY_INTEGER_TO_FLOAT),
    NAME(MEAN_VARIANCE_NORMALIZATION2),
    NAME(MULTIHEAD_ATTENTION1),
    NAME(QUANTIZE),
    NAME(DEQUANTIZE),
    NAME(RESAMPLE3),
    NAME(FOLD),
    NAME(UNFOLD),
};
#undef NAME

const op_def *opjit_fe_op_at(uint32_t index)
{
    return index < sizeof operators / sizeof *operators ? operators[index] : NULL;
}

const op_def *opjit_fe_op_find(DML_OPERATOR_TYPE type)
{
    const size_t index = (size_t)type;

    return index < sizeof by_type / sizeof *by_type ? by_type[index] : NULL;
}

const op_def *opjit_fe_op_find_name(const char *name, size_t length)
{
    static const char prefix[] = "DML_OPERATOR_";
    const op_def *def;

    if (length >= sizeof prefix - 1 && memcmp(name, prefix, sizeof prefix - 1) == 0) {
        name += sizeof prefix - 1;
        length -= sizeof prefix - 1;
    }
    for (uint32_t i = 0; (def = opjit_fe_op_at(i)) != NULL; i++)
        if (strlen(def->name) == length && memcmp(def->name, name, length) == 0)
            return def;
    return NULL;
}

const char *opjit_fe_op_type_name(DML_OPERATOR_TYPE type)
{
    const size_t index = (size_t)type;
    return index < sizeof type_names / sizeof *type_names ? type_names[index] : NULL;
}

/* --- support ------------------------------------------------------------------------------------------------------ */

static bool row_is_for(const op_support *row, const char *field)
{
    return row->field == NULL ? field == NULL : field != NULL && strcmp(row->field, field) == 0;
}

const op_support *opjit_fe_op_support(const op_def *def, const char *field, uint32_t level)
{
    const op_support *best = NULL;

    for (uint32_t i = 0; i < def->support_count; i++) {
        const op_support *row = &def->support[i];
        if (!row_is_for(row, field))
            continue;
        if (level == 0 && row->level == 0)
            return row;
        if (row->level != 0 && (level == 0 || row->level <= level))
            best = row;
    }
    return best != NULL || field == NULL ? best : opjit_fe_op_support(def, NULL, level);
}

void opjit_fe_types_text(uint32_t types, char text[static FE_TYPES_TEXT])
{
    static const char *const prefixes[] = { "FLOAT", "INT", "UINT" };
    const char *last = "";
    size_t used = 0;

    text[0] = '\0';
    if (types == OP_TYPES_ALL) {
        snprintf(text, FE_TYPES_TEXT, "all eleven");
        return;
    }
    for (int p = 0; p < 3; p++) {
        for (int width = 64; width >= 8; width /= 2) {
            char name[24];
            uint32_t t = DML_TENSOR_DATA_TYPE_FLOAT32;
            snprintf(name, sizeof name, "%s%d", prefixes[p], width);
            while (t <= DML_TENSOR_DATA_TYPE_INT64 && strcmp(opjit_rt_dtype_name((DML_TENSOR_DATA_TYPE)t), name) != 0)
                t++;
            if (t > DML_TENSOR_DATA_TYPE_INT64 || (types >> t & 1) == 0)
                continue;
            if (last == prefixes[p])
                used += (size_t)snprintf(text + used, FE_TYPES_TEXT - used, "/%d", width);
            else
                used += (size_t)snprintf(text + used, FE_TYPES_TEXT - used, "%s%s", used == 0 ? "" : ", ", name);
            last = prefixes[p];
        }
    }
}
