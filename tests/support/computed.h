/* SPDX-License-Identifier: Apache-2.0 */
/* computed.h - operators that compute their outputs of many elements, along axes or in windows of their inputs, a row
 * each: what the documents allow, a draw of its fields, its reference.  The row is all that tests know of an operator:
 * property.computed and its forms for other machines, fe.computed and property.aot go over all of them. */
#ifndef OPJIT_TESTS_SUPPORT_COMPUTED_H
#define OPJIT_TESTS_SUPPORT_COMPUTED_H

#include "tests/reference/reference.h"
#include "tests/support/operator_case.h"
#include "tests/support/window.h"

/* Holds all that its descriptor points to: don't copy. */
typedef struct computed_case {
    DML_OPERATOR_DESC op;
    union {
        DML_BATCH_NORMALIZATION_TRAINING_OPERATOR_DESC training;
        DML_BATCH_NORMALIZATION_GRAD_OPERATOR_DESC batch_grad;
        DML_VALUE_SCALE_2D_OPERATOR_DESC value_scale;
        DML_LOCAL_RESPONSE_NORMALIZATION_OPERATOR_DESC response;
        DML_LOCAL_RESPONSE_NORMALIZATION_GRAD_OPERATOR_DESC response_grad;
        DML_ADAM_OPTIMIZER_OPERATOR_DESC adam;
        DML_TOP_K1_OPERATOR_DESC top_k; /* TOP_K has the same first fields */
        DML_DYNAMIC_QUANTIZE_LINEAR_OPERATOR_DESC dynamic;
        DML_CONVOLUTION_OPERATOR_DESC convolution;
        DML_CONVOLUTION_INTEGER_OPERATOR_DESC convolution_integer;
        DML_QUANTIZED_LINEAR_CONVOLUTION_OPERATOR_DESC quantized_convolution;
        DML_MATRIX_MULTIPLY_INTEGER_OPERATOR_DESC integer_product;
        DML_MATRIX_MULTIPLY_INTEGER_TO_FLOAT_OPERATOR_DESC to_float;
        DML_QUANTIZED_LINEAR_MATRIX_MULTIPLY_OPERATOR_DESC quantized_product;
        DML_CUMULATIVE_SUMMATION_OPERATOR_DESC running; /* CUMULATIVE_PRODUCT has the same fields */
        DML_GEMM_OPERATOR_DESC gemm;
        DML_MULTIHEAD_ATTENTION_OPERATOR_DESC attention;
        DML_MULTIHEAD_ATTENTION1_OPERATOR_DESC attention1;
        DML_LP_NORMALIZATION_OPERATOR_DESC lp;
        DML_MEAN_VARIANCE_NORMALIZATION_OPERATOR_DESC mvn;
        DML_MEAN_VARIANCE_NORMALIZATION1_OPERATOR_DESC mvn1;
        DML_MEAN_VARIANCE_NORMALIZATION2_OPERATOR_DESC mvn2;
        DML_AVERAGE_POOLING_OPERATOR_DESC average;
        DML_AVERAGE_POOLING1_OPERATOR_DESC average1;
        DML_AVERAGE_POOLING_GRAD_OPERATOR_DESC average_grad;
        DML_QUANTIZED_LINEAR_AVERAGE_POOLING_OPERATOR_DESC quantized_average;
        DML_LP_POOLING_OPERATOR_DESC lp_pooling;
        DML_LP_POOLING1_OPERATOR_DESC lp_pooling1;
        DML_MAX_POOLING_OPERATOR_DESC max;
        DML_MAX_POOLING1_OPERATOR_DESC max1;
        DML_MAX_POOLING2_OPERATOR_DESC max2;
        DML_MAX_POOLING_GRAD_OPERATOR_DESC max_grad;
        DML_RANDOM_GENERATOR_OPERATOR_DESC random;
        DML_ROI_POOLING_OPERATOR_DESC roi_pooling;
        DML_ROI_ALIGN_OPERATOR_DESC roi_align;
        DML_ROI_ALIGN1_OPERATOR_DESC roi_align1;
        DML_ROI_ALIGN_GRAD_OPERATOR_DESC roi_align_grad;
        DML_UPSAMPLE_2D_OPERATOR_DESC upsample;
        DML_QUANTIZE_OPERATOR_DESC quantize; /* DEQUANTIZE has the same fields */
        DML_DEQUANTIZE_OPERATOR_DESC dequantize;
        DML_RESAMPLE_OPERATOR_DESC resample;
        DML_RESAMPLE1_OPERATOR_DESC resample1;
        DML_RESAMPLE2_OPERATOR_DESC resample2;
        DML_RESAMPLE3_OPERATOR_DESC resample3;
        DML_RESAMPLE_GRAD_OPERATOR_DESC resample_grad;
        DML_RESAMPLE_GRAD1_OPERATOR_DESC resample_grad1;
        DML_UNFOLD_OPERATOR_DESC unfold;
        DML_FOLD_OPERATOR_DESC fold;
        DML_RNN_OPERATOR_DESC rnn;
        DML_GRU_OPERATOR_DESC gru;
        DML_LSTM_OPERATOR_DESC lstm;
        OPJIT_DYNAMIC_QUANTIZE_LSTM_OPERATOR_DESC quantized_lstm;
    } desc;
    union { /* pooling with Dilations */
        DML_AVERAGE_POOLING1_OPERATOR_DESC average1;
        DML_LP_POOLING1_OPERATOR_DESC lp_pooling1;
        DML_MAX_POOLING2_OPERATOR_DESC max2;
    } dilated;
    test_window window;
    DML_ROI_ALIGN1_OPERATOR_DESC roi_align1; /* either form with all fields */
    DML_RESAMPLE3_OPERATOR_DESC resample; /* any of them with all fields */
    float scales[4], input_offsets[4], output_offsets[4];
    DML_MEAN_VARIANCE_NORMALIZATION1_OPERATOR_DESC over_axes; /* MEAN_VARIANCE_NORMALIZATION with Axes */
    DML_MULTIHEAD_ATTENTION1_OPERATOR_DESC attention; /* either of them with all fields */
    DML_TENSOR_DESC blocks[2]; /* of QUANTIZE and its inverse: inputs 1 and 2 */
    DML_OPERATOR_DESC relu;
    DML_ACTIVATION_RELU_OPERATOR_DESC relu_desc;
    DML_OPERATOR_DESC functions[6];
    DML_ACTIVATION_LINEAR_OPERATOR_DESC functions_desc[6]; /* HARD_SIGMOID has the same fields, others the first two */
    test_tensor inputs[OPERATOR_INPUTS], output;
    test_tensor more[OPERATOR_OUTPUTS - 1]; /* outputs behind the first */
    bool present[OPERATOR_INPUTS], output_absent, more_present[OPERATOR_OUTPUTS - 1];
    uint32_t axes[8];
    uint32_t spaces[5][8]; /* of a convolution: strides, dilations, start and end padding, output padding */
} computed_case;

/* What a draw works with: type and rank of the output, or of what the row says; r is NULL for the plain case. */
typedef struct computed_draw {
    test_random *r;
    computed_case *c;
    DML_TENSOR_DATA_TYPE type;
    uint32_t rank;
} computed_draw;

/* From this feature level on, which of these ranks and types: F of 16 and 32 bits, D FLOAT64; integers: L of 64 and 32
 * bits, S of 16, B of 8, W of 32; U UINT32 alone.  COMPUTED_NONE: without a feature level. */
typedef struct computed_support {
    uint32_t level, rank_min, rank_max;
    const char *types;
} computed_support;
#define COMPUTED_NONE 0x10000u

typedef struct computed_row {
    DML_OPERATOR_TYPE type;
    const char *name;
    computed_support support[5];    /* by the documents, ascending; COMPUTED_NONE is the last one */
    void (*draw)(computed_draw *d); /* inputs, outputs, fields */
    /* What an operator_case's reference is; user is the computed_case. */
    void (*reference)(const void *user, const void *const *inputs, void *const *outputs);
    bool near; /* operator_case's */
} computed_row;

extern const computed_row computed_rows[];
extern const uint32_t computed_row_count;
const computed_row *computed_row_of(DML_OPERATOR_TYPE type); /* NULL: none */
/* Whether the documents allow it at a feature level; 0: without one. */
bool computed_allows(const computed_row *row, uint32_t level, uint32_t rank, DML_TENSOR_DATA_TYPE type);

/* A legal descriptor of any layout, rank and type. */
void computed_case_random(test_random *r, const computed_row *row, computed_case *out);
/* The same one each time, legal or not: packed tensors whose sizes are 2, 3, 4 ..., all inputs, all axes that may be
 * there, the last value of each number, every switch on. */
void computed_case_plain(const computed_row *row, uint32_t rank, DML_TENSOR_DATA_TYPE type, computed_case *out);
/* The case for operator_case_check. */
operator_case computed_case_of(const computed_row *row, const computed_case *c);

#endif
