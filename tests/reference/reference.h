/* SPDX-License-Identifier: Apache-2.0 */
/* reference.h - the operators a second time, written from their documents alone: one literal loop over coordinates
 * each.  The library's results are compared with these, so they share no code with it and use the public headers only.
 * They are not fast and check nothing: descriptors are valid.  Elements are handled as bits in the low bytes of a
 * uint64_t, which requires a little-endian machine. */
#ifndef OPJIT_TESTS_REFERENCE_H
#define OPJIT_TESTS_REFERENCE_H

#include <stdbool.h>
#include <stdint.h>

#include <opjit/dml.h>
#include <opjit/operators.h>

/* Along one dimension: how many windows may hold a pixel, of `along` windows in all.  With dilations one for each tap,
 * else as many as reach over it (ref_pooling.c). */
uint64_t ref_holders(uint64_t size, uint64_t stride, uint64_t dilation, uint64_t along);
/* Number j of them for the pixel at x, counted from the padding's start; -1: there is none.  *tap: which lies there. */
int64_t ref_holder(uint64_t j, int64_t x, uint64_t size, uint64_t stride, uint64_t dilation, uint64_t along,
                   int64_t *tap);

/* --- operators: output and input are the starts of bindings; input is NULL where the tensor is absent ------------ */
void ref_diagonal_matrix(const DML_DIAGONAL_MATRIX_OPERATOR_DESC *desc, void *output);
void ref_diagonal_matrix1(const DML_DIAGONAL_MATRIX1_OPERATOR_DESC *desc, const void *input, void *output);
void ref_fill_value_constant(const DML_FILL_VALUE_CONSTANT_OPERATOR_DESC *desc, void *output);
void ref_fill_value_sequence(const DML_FILL_VALUE_SEQUENCE_OPERATOR_DESC *desc, void *output);

/* --- operators that move elements: bindings by position among the descriptor's tensors, arrays expanded --------- */
typedef const void *const *ref_inputs;
typedef void *const *ref_outputs;
void ref_slice(const DML_SLICE_OPERATOR_DESC *desc, ref_inputs inputs, ref_outputs outputs);
void ref_slice1(const DML_SLICE1_OPERATOR_DESC *desc, ref_inputs inputs, ref_outputs outputs);
void ref_slice_grad(const DML_SLICE_GRAD_OPERATOR_DESC *desc, ref_inputs inputs, ref_outputs outputs);
void ref_join(const DML_JOIN_OPERATOR_DESC *desc, ref_inputs inputs, ref_outputs outputs);
void ref_split(const DML_SPLIT_OPERATOR_DESC *desc, ref_inputs inputs, ref_outputs outputs);
void ref_tile(const DML_TILE_OPERATOR_DESC *desc, ref_inputs inputs, ref_outputs outputs);
void ref_padding(const DML_PADDING_OPERATOR_DESC *desc, ref_inputs inputs, ref_outputs outputs);
void ref_padding1(const DML_PADDING1_OPERATOR_DESC *desc, ref_inputs inputs, ref_outputs outputs);
void ref_reverse_subsequences(const DML_REVERSE_SUBSEQUENCES_OPERATOR_DESC *desc, ref_inputs inputs,
                              ref_outputs outputs);
void ref_space_to_depth1(const DML_SPACE_TO_DEPTH1_OPERATOR_DESC *desc, ref_inputs inputs, ref_outputs outputs);
void ref_depth_to_space1(const DML_DEPTH_TO_SPACE1_OPERATOR_DESC *desc, ref_inputs inputs, ref_outputs outputs);
void ref_gather(const DML_GATHER_OPERATOR_DESC *desc, ref_inputs inputs, ref_outputs outputs);
void ref_gather_elements(const DML_GATHER_ELEMENTS_OPERATOR_DESC *desc, ref_inputs inputs, ref_outputs outputs);
void ref_scatter_elements(const DML_SCATTER_ELEMENTS_OPERATOR_DESC *desc, ref_inputs inputs, ref_outputs outputs);
void ref_scatter_reduce(const OPJIT_SCATTER_REDUCE_OPERATOR_DESC *desc, ref_inputs inputs, ref_outputs outputs);
void ref_scatter_nd(const DML_SCATTER_ND_OPERATOR_DESC *desc, ref_inputs inputs, ref_outputs outputs);
void ref_max_unpooling(const DML_MAX_UNPOOLING_OPERATOR_DESC *desc, ref_inputs inputs, ref_outputs outputs);
void ref_nonzero_coordinates(const DML_NONZERO_COORDINATES_OPERATOR_DESC *desc, ref_inputs inputs,
                             ref_outputs outputs);
void ref_gather_nd1(const DML_GATHER_ND1_OPERATOR_DESC *desc, ref_inputs inputs, ref_outputs outputs);
void ref_one_hot(const DML_ONE_HOT_OPERATOR_DESC *desc, ref_inputs inputs, ref_outputs outputs);

/* --- operators over axes; arg: ARGMAX, or ARGMIN, which has the same fields -------------------------------------- */
void ref_reduce(const DML_REDUCE_OPERATOR_DESC *desc, const void *input, void *output); /* except logarithms */
void ref_arg(const DML_ARGMAX_OPERATOR_DESC *desc, bool max, const void *input, void *output);
void ref_hardmax(const DML_ACTIVATION_HARDMAX1_OPERATOR_DESC *desc, const void *input, void *output);
/* product: CUMULATIVE_PRODUCT, which has the same fields. */
void ref_cumulative(const DML_CUMULATIVE_SUMMATION_OPERATOR_DESC *desc, bool product, const void *input, void *output);
void ref_lp_normalization(const DML_LP_NORMALIZATION_OPERATOR_DESC *desc, const void *input, void *output);
/* inputs[3]: FusedAdd, NULL where absent; RELU is the only activation. */
void ref_batch_normalization_training(const DML_BATCH_NORMALIZATION_TRAINING_OPERATOR_DESC *desc, ref_inputs inputs,
                                      ref_outputs outputs);
/* training: BATCH_NORMALIZATION_TRAINING_GRAD, which has the same fields. */
void ref_batch_normalization_grad(const DML_BATCH_NORMALIZATION_GRAD_OPERATOR_DESC *desc, bool training,
                                  ref_inputs inputs, ref_outputs outputs);
/* TOP_K: AxisDirection DECREASING. */
void ref_top_k(const DML_TOP_K1_OPERATOR_DESC *desc, ref_inputs inputs, ref_outputs outputs);
/* The same two inputs, scale and zero point, behind the first; NULL: no zero point. */
void ref_quantize(const DML_QUANTIZE_OPERATOR_DESC *desc, ref_inputs inputs, void *output);
void ref_dequantize(const DML_DEQUANTIZE_OPERATOR_DESC *desc, ref_inputs inputs, void *output);
/* In double, powers by C's pow: within a tolerance. */
void ref_local_response_normalization(const DML_LOCAL_RESPONSE_NORMALIZATION_OPERATOR_DESC *desc, const void *input,
                                      void *output);
void ref_local_response_normalization_grad(const DML_LOCAL_RESPONSE_NORMALIZATION_GRAD_OPERATOR_DESC *desc,
                                           ref_inputs inputs, void *output);
void ref_adam_optimizer(const DML_ADAM_OPTIMIZER_OPERATOR_DESC *desc, ref_inputs inputs, ref_outputs outputs);
void ref_value_scale_2d(const DML_VALUE_SCALE_2D_OPERATOR_DESC *desc, const void *input, void *output);
void ref_dynamic_quantize_linear(const DML_DYNAMIC_QUANTIZE_LINEAR_OPERATOR_DESC *desc, const void *input,
                                 ref_outputs outputs);
/* inputs[2]: the bias, NULL where absent; RELU is the only activation. */
void ref_convolution(const DML_CONVOLUTION_OPERATOR_DESC *desc, ref_inputs inputs, void *output);
void ref_matrix_multiply_integer(const DML_MATRIX_MULTIPLY_INTEGER_OPERATOR_DESC *desc, ref_inputs inputs,
                                 void *output);
void ref_matrix_multiply_integer_to_float(const DML_MATRIX_MULTIPLY_INTEGER_TO_FLOAT_OPERATOR_DESC *desc,
                                          ref_inputs inputs, void *output);
void ref_quantized_linear_matrix_multiply(const DML_QUANTIZED_LINEAR_MATRIX_MULTIPLY_OPERATOR_DESC *desc,
                                          ref_inputs inputs, void *output);
void ref_convolution_integer(const DML_CONVOLUTION_INTEGER_OPERATOR_DESC *desc, ref_inputs inputs, void *output);
void ref_quantized_linear_convolution(const DML_QUANTIZED_LINEAR_CONVOLUTION_OPERATOR_DESC *desc, ref_inputs inputs,
                                      void *output);
/* Recurrent networks: NULL where a tensor is absent; of activations RELU, LINEAR, HARD_SIGMOID and SOFTSIGN. */
void ref_rnn(const DML_RNN_OPERATOR_DESC *desc, ref_inputs inputs, ref_outputs outputs);
void ref_gru(const DML_GRU_OPERATOR_DESC *desc, ref_inputs inputs, ref_outputs outputs);
void ref_lstm(const DML_LSTM_OPERATOR_DESC *desc, ref_inputs inputs, ref_outputs outputs);
void ref_dynamic_quantize_lstm(const OPJIT_DYNAMIC_QUANTIZE_LSTM_OPERATOR_DESC *desc, ref_inputs inputs,
                               ref_outputs outputs);
/* inputs[2]: C, NULL where absent; RELU is the only activation. */
void ref_gemm(const DML_GEMM_OPERATOR_DESC *desc, ref_inputs inputs, void *output);
/* Within a tolerance.  MULTIHEAD_ATTENTION is this with HeadCount for both counts. */
void ref_multihead_attention1(const DML_MULTIHEAD_ATTENTION1_OPERATOR_DESC *desc, ref_inputs inputs,
                              ref_outputs outputs);
/* Pooling: AVERAGE_POOLING, LP_POOLING, MAX_POOLING and MAX_POOLING1 are these with Dilations NULL.  P is 1 or 2. */
void ref_average_pooling1(const DML_AVERAGE_POOLING1_OPERATOR_DESC *desc, const void *input, void *output);
void ref_average_pooling_grad(const DML_AVERAGE_POOLING_GRAD_OPERATOR_DESC *desc, const void *input, void *output);
void ref_quantized_linear_average_pooling(const DML_QUANTIZED_LINEAR_AVERAGE_POOLING_OPERATOR_DESC *desc,
                                          ref_inputs inputs, void *output);
void ref_lp_pooling1(const DML_LP_POOLING1_OPERATOR_DESC *desc, const void *input, void *output);
void ref_max_pooling2(const DML_MAX_POOLING2_OPERATOR_DESC *desc, ref_inputs inputs, ref_outputs outputs);
void ref_max_pooling_grad(const DML_MAX_POOLING_GRAD_OPERATOR_DESC *desc, ref_inputs inputs, void *output);
void ref_random_generator(const DML_RANDOM_GENERATOR_OPERATOR_DESC *desc, const void *input, ref_outputs outputs);
/* Resampling: the earlier forms are this with fewer fields; halves: those without RoundingDirection.  Of a gradient the
 * input is the incoming one. */
void ref_resample3(const DML_RESAMPLE3_OPERATOR_DESC *desc, bool halves, const void *input, void *output);
void ref_resample_grad(const DML_RESAMPLE3_OPERATOR_DESC *desc, bool halves, const void *input, void *output);
void ref_roi_pooling(const DML_ROI_POOLING_OPERATOR_DESC *desc, ref_inputs inputs, void *output);
/* ROI_ALIGN: InputPixelOffset 0.5, OutputPixelOffset -0.5. */
void ref_roi_align1(const DML_ROI_ALIGN1_OPERATOR_DESC *desc, ref_inputs inputs, void *output);
void ref_roi_align_grad(const DML_ROI_ALIGN_GRAD_OPERATOR_DESC *desc, ref_inputs inputs, ref_outputs outputs);
void ref_upsample_2d(const DML_UPSAMPLE_2D_OPERATOR_DESC *desc, const void *input, void *output);
void ref_unfold(const DML_UNFOLD_OPERATOR_DESC *desc, const void *input, void *output);
void ref_fold(const DML_FOLD_OPERATOR_DESC *desc, const void *input, void *output);
/* scale, bias: NULL where absent; of activations RELU alone. */
void ref_mean_variance_normalization2(const DML_MEAN_VARIANCE_NORMALIZATION2_OPERATOR_DESC *desc, const void *input,
                                      const void *scale, const void *bias, void *output);
void ref_mean_variance_normalization1(const DML_MEAN_VARIANCE_NORMALIZATION1_OPERATOR_DESC *desc, const void *input,
                                      const void *scale, const void *bias, void *output);

/* --- floats as numbers (ref_sum.c) -------------------------------------------------------------------------------- */
/* A floating element's value, and the element nearest to a value that was rounded (ref_rounded). */
double ref_real(DML_TENSOR_DATA_TYPE dtype, uint64_t bits);
uint64_t ref_real_bits(DML_TENSOR_DATA_TYPE dtype, double x);
/* An operation's result, rounded to what the type is computed in: FLOAT32 for FLOAT16 and itself. */
double ref_rounded(DML_TENSOR_DATA_TYPE dtype, double x);

/* --- tensors (ref_tensor.c) --------------------------------------------------------------------------------------- */
typedef struct ref_tensor {
    DML_TENSOR_DATA_TYPE dtype;
    uint32_t rank;
    uint32_t sizes[8];
    uint64_t strides[8];             /* elements; filled in where the descriptor has none */
} ref_tensor;

ref_tensor ref_tensor_of(const DML_TENSOR_DESC *desc);
uint64_t ref_tensor_elements(const ref_tensor *t);
/* Index of the last element + 1. */
uint64_t ref_tensor_span(const ref_tensor *t);
/* The coordinates of the element with this row-major index. */
void ref_tensor_coordinates(const ref_tensor *t, uint64_t element, uint32_t coordinates[8]);
/* The distance of the element from the start of the binding, in elements. */
uint64_t ref_tensor_offset(const ref_tensor *t, const uint32_t coordinates[8]);
uint64_t ref_load(const ref_tensor *t, const void *base, uint64_t offset);
void ref_store(const ref_tensor *t, void *base, uint64_t offset, uint64_t bits);
/* The element at these coordinates. */
uint64_t ref_get(const ref_tensor *t, const void *base, const uint32_t coordinates[8]);
void ref_set(const ref_tensor *t, void *base, const uint32_t coordinates[8], uint64_t bits);

/* --- functions of recurrent networks (ref_recurrent.c) ------------------------------------------------------------- */
/* RELU, LINEAR, HARD_SIGMOID or SOFTSIGN of x, each step rounded to FLOAT32. */
float ref_activated(const DML_OPERATOR_DESC *op, float x);

/* --- sums (ref_sum.c) --------------------------------------------------------------------------------------------- */
/* In how many lanes elements along these axes (a bit each) are summed: 32 where the last dimension of more than one
 * element is among them, else 1. */
uint32_t ref_sum_lanes(const ref_tensor *t, uint32_t axes);
/* Term k, rounded. */
typedef double ref_term(void *user, uint64_t k);
/* The sum of count terms in the documented order. */
double ref_sum(DML_TENSOR_DATA_TYPE dtype, uint32_t lanes, uint64_t count, ref_term *term, void *user);
/* A sum of products: in each block of as many steps a chain of fma from +0, and blocks added one after the other.
 * Steps come in ascending order; some may be left out. */
typedef struct ref_dot {
    DML_TENSOR_DATA_TYPE dtype;
    uint32_t block;
    uint64_t now; /* number of the block that sum is of */
    double total, sum;
} ref_dot;
void ref_dot_step(ref_dot *d, uint64_t k, double x, double y);
double ref_dot_result(const ref_dot *d);

/* --- scalars (ref_scalar.c) --------------------------------------------------------------------------------------- */
/* Bytes that an element lies in: 4-bit types have two in one byte, the first in its lower half. */
uint32_t ref_dtype_size(DML_TENSOR_DATA_TYPE dtype);
uint64_t ref_dtype_bytes(DML_TENSOR_DATA_TYPE dtype, uint64_t elements); /* side by side */
bool ref_dtype_is_float(DML_TENSOR_DATA_TYPE dtype);
bool ref_is_nan(DML_TENSOR_DATA_TYPE dtype, uint64_t bits);
uint64_t ref_scalar_bits(DML_TENSOR_DATA_TYPE dtype, const DML_SCALAR_UNION *scalar);

float ref_float_of_half(uint16_t half);
/* Nearest, ties to even; the NaN is some quiet one. */
uint16_t ref_half_of_float(float value);
uint16_t ref_half_of_double(double value);
/* A FLOAT field as an element: nearest even to floats; toward zero, saturating, NaN to 0 to integers. */
uint64_t ref_element_of_float(DML_TENSOR_DATA_TYPE dtype, float value);

#endif
