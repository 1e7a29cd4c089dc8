/* SPDX-License-Identifier: Apache-2.0 */
/* pointwise_case.h - random, always legal descriptors of pointwise operators, filled in by the fields of their rows,
 * and random data for them.  The types come from the reference's table. */
#ifndef OPJIT_TESTS_SUPPORT_POINTWISE_CASE_H
#define OPJIT_TESTS_SUPPORT_POINTWISE_CASE_H

#include <stddef.h>

#include "tests/reference/pointwise.h"
#include "tests/support/cases.h"

typedef union pointwise_desc {
    max_align_t align;
    unsigned char bytes[256];
} pointwise_desc;

/* Holds everything that its descriptor points to: don't copy it. */
typedef struct pointwise_case {
    const ref_pointwise_row *row;
    DML_OPERATOR_DESC op;
    pointwise_desc desc, activation_desc;
    DML_OPERATOR_DESC activation;
    DML_SCALE_BIAS scale_bias;
    test_tensor inputs[REF_INPUTS_MAX], output;
    bool present[REF_INPUTS_MAX];
    uint32_t input_count; /* positions, absent ones included */
    uint32_t in_place;    /* by input: it has the output's type and layout, and shares its memory */
    bool any_nan;         /* NaNs of the result may have any sign and payload */
} pointwise_case;

void pointwise_case_random(test_random *r, const ref_pointwise_row *row, uint64_t most_elements, pointwise_case *out);
/* Matrices, one or a few, of 2 to 80 rows and columns; most inputs are stored across the output. */
void pointwise_case_across(test_random *r, const ref_pointwise_row *row, pointwise_case *out);
/* Packed tensors of the rank, each dimension of size 2 but the last, which is 6, and the first, which is 1 where it may
 * be; all inputs; a ScaleBias of 2 and 1; scalars that differ; the first value of enums; no fused activation.  types:
 * of letter a and letter b. */
void pointwise_case_plain(const ref_pointwise_row *row, const DML_TENSOR_DATA_TYPE types[2], uint32_t rank,
                          pointwise_case *out);
/* Fills an input's binding, data, with corner values of its type, small numbers, random bits. */
void pointwise_case_fill(test_random *r, const pointwise_case *c, uint32_t input, void *data);
void pointwise_case_print(FILE *file, const pointwise_case *c);

#endif
