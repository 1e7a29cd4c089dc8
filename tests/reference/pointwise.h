/* SPDX-License-Identifier: Apache-2.0 */
/* pointwise.h - operators whose output element depends on the input elements at the same coordinates: one literal
 * formula each, by family, and the loop around them (ref_pointwise.c).  Mathematical functions have a margin. */
#ifndef OPJIT_TESTS_REFERENCE_POINTWISE_H
#define OPJIT_TESTS_REFERENCE_POINTWISE_H

#include "tests/reference/range.h"
#include "tests/reference/reference.h"

#define REF_INPUTS_MAX 8

/* One element of any type. */
typedef struct ref_element {
    DML_TENSOR_DATA_TYPE dtype; /* UNKNOWN: the tensor is absent */
    uint64_t bits;
} ref_element;

/* What an output element may be: exactly these bits, or, where exact is not set, any value of the range. */
typedef struct ref_result {
    bool exact;
    uint64_t bits;
    ref_range range;
} ref_result;

typedef struct ref_argument {
    const DML_TENSOR_DESC *desc; /* NULL: absent */
    const void *data;
} ref_argument;

/* Writes the operator's output.  Where its formula has a margin, elements of actual, a binding with the output's
 * layout, are copied if they lie within it. */
void ref_pointwise(const DML_OPERATOR_DESC *op, const ref_argument inputs[REF_INPUTS_MAX],
                   const DML_TENSOR_DESC *output_desc, const void *actual, void *output);

/* --- what there is (ref_pointwise_rows.c) ------------------------------------------------------------------------- */
typedef struct ref_pointwise_row {
    DML_OPERATOR_TYPE type;
    uint32_t level;       /* the feature level from which it has these types; the first row introduces the operator */
    const char *tensors;  /* a letter a tensor, in the descriptor's order; equal letters are of one type; in upper case:
                             sizes may be 1 where the first tensor's are not */
    const char *types[2]; /* of letter a and letter b: sets of types by their letters, see the table */
} ref_pointwise_row;

/* Rows of one operator are adjacent, the newest last. */
extern const ref_pointwise_row ref_pointwise_rows[];
extern const uint32_t ref_pointwise_row_count;
/* The row that applies at a feature level, 0: without one; NULL: none. */
const ref_pointwise_row *ref_pointwise_row_of(DML_OPERATOR_TYPE type, uint32_t level);
bool ref_pointwise_allows(const ref_pointwise_row *row, char letter, uint32_t level, DML_TENSOR_DATA_TYPE dtype);
/* The only rank that the row's operator has from that level on; 0: all from 1 to 8. */
uint32_t ref_pointwise_rank(const ref_pointwise_row *row);
/* The letter of a tensor's type, and whether its sizes may be 1. */
char ref_pointwise_letter(const ref_pointwise_row *row, uint32_t tensor);
bool ref_pointwise_broadcasts(const ref_pointwise_row *row, uint32_t tensor);
/* Where an input's element for these coordinates of the output lies. */
uint64_t ref_pointwise_offset(const ref_tensor *input, const uint32_t coordinates[8]);

/* --- numbers ------------------------------------------------------------------------------------------------------ */
bool ref_dtype_is_signed(DML_TENSOR_DATA_TYPE dtype);
/* A float element's value; an integer's, sign- or zero-extended. */
double ref_float_of(ref_element x);
uint64_t ref_integer_of(ref_element x);
/* A range of floats as a result of the float type, rounded once. */
ref_result ref_result_of(DML_TENSOR_DATA_TYPE dtype, ref_range range);
ref_result ref_result_bits(uint64_t bits);

/* --- families: each says whether the operator is one of its own, and its result ---------------------------------- */
/* Formulas in floats; x are the inputs (absent: 0). */
bool ref_element_wise_float(const DML_OPERATOR_DESC *op, ref_floats f, const ref_range *x, ref_range *out);
bool ref_activation(const DML_OPERATOR_DESC *op, ref_floats f, const ref_range *x, ref_range *out);
/* Formulas on integers of dtype, extended; only the low bits of the result matter. */
bool ref_element_wise_integer(const DML_OPERATOR_DESC *op, DML_TENSOR_DATA_TYPE dtype, const uint64_t *x,
                              ref_result *out);
/* Operators that mix types: comparisons, IF, CAST, quantization. */
bool ref_mixed(const DML_OPERATOR_DESC *op, DML_TENSOR_DATA_TYPE dtype, const ref_element *x, ref_result *out);

#endif
