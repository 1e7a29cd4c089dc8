/* SPDX-License-Identifier: Apache-2.0 */
/* cases.h - random, always legal descriptors of the operators that have a reference, and the reference's result for
 * them.  Layouts, bounds and scalars are drawn from corner cases as often as from the middle. */
#ifndef OPJIT_TESTS_SUPPORT_CASES_H
#define OPJIT_TESTS_SUPPORT_CASES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <opjit/dml.h>

#include "tests/support/random.h"

#define TEST_TYPE_COUNT 11
extern const DML_TENSOR_DATA_TYPE test_types[TEST_TYPE_COUNT];
const char *test_type_name(DML_TENSOR_DATA_TYPE type); /* "FLOAT32" */

#define TEST_OPERATOR_COUNT 4
extern const DML_OPERATOR_TYPE test_operators[TEST_OPERATOR_COUNT];
const char *test_operator_name(DML_OPERATOR_TYPE type); /* "DIAGONAL_MATRIX1" */

/* --- tensors (layout.c) ------------------------------------------------------------------------------------------- */
/* A descriptor with the arrays it points to.  Don't copy it: the pointers would refer to the original. */
typedef struct test_tensor {
    DML_TENSOR_DESC desc;
    DML_BUFFER_TENSOR_DESC buffer;
    uint32_t sizes[8], strides[8];
    uint64_t bytes;                  /* that a binding must have */
    uint64_t span;                   /* index of the last element + 1 */
    uint32_t alignment;              /* that a binding must have */
    bool interleaved;                /* random strides that happen not to collide, such as sizes {2,3} with {3,2} */
} test_tensor;

/* Points desc and buffer at the tensor's own arrays; Strides stay NULL.  Sizes and rank are set by the caller. */
void test_tensor_link(test_tensor *t, DML_TENSOR_DATA_TYPE type, uint32_t rank);
/* Computes bytes, span and alignment from the descriptor. */
void test_tensor_measure(test_tensor *t);
void test_tensor_random_sizes(test_random *r, test_tensor *t, uint64_t most_elements);
void test_tensor_random_layout(test_random *r, test_tensor *t, bool is_output);
void test_tensor_matrix_layout(test_random *r, test_tensor *t, bool across); /* at least two dimensions */

/* --- operators (cases.c) ------------------------------------------------------------------------------------------ */
typedef union test_desc {
    DML_DIAGONAL_MATRIX_OPERATOR_DESC diagonal_matrix;
    DML_DIAGONAL_MATRIX1_OPERATOR_DESC diagonal_matrix1;
    DML_FILL_VALUE_CONSTANT_OPERATOR_DESC fill_value_constant;
    DML_FILL_VALUE_SEQUENCE_OPERATOR_DESC fill_value_sequence;
} test_desc;

typedef struct test_case {
    DML_OPERATOR_DESC op;
    test_desc desc;
    test_tensor input, output;
    bool has_input;
    bool in_place;                   /* input and output have the same layout and share one buffer */
    uint64_t elements;
} test_case;

/* A value of the type, mostly a corner case; the bytes after it are random, too. */
DML_SCALAR_UNION test_scalar_random(test_random *r, DML_TENSOR_DATA_TYPE type);
/* most_elements: limit of most cases; a few in a thousand are larger, up to 2^20. */
void test_case_random(test_random *r, DML_OPERATOR_TYPE type, uint64_t most_elements, test_case *out);
/* Writes the result that the documents define; input is NULL if the case has none. */
void test_case_reference(const test_case *c, const void *input, void *output);
/* Whether NaNs may differ in sign and payload, because arithmetic or a conversion made them. */
bool test_case_any_nan(const test_case *c);
/* Prints it as C code for a test. */
void test_case_print(FILE *file, const test_case *c);

/* --- late parameters ---------------------------------------------------------------------------------------------- */
#define TEST_LATE_MAX 3
typedef struct test_late {
    uint32_t count;
    const char *names[TEST_LATE_MAX];
    DML_TENSOR_DATA_TYPE types[TEST_LATE_MAX];
    uint64_t values[TEST_LATE_MAX];  /* as in opjit_call.params */
} test_late;

/* Makes the scalar fields in subset late: moves their values to *out in random order and gives the descriptor other
 * ones, so that a kernel that still used those would be noticed. */
void test_case_take_late(test_random *r, test_case *c, unsigned subset, test_late *out);
/* The number of scalar fields of the operator: subsets are below 1 << count. */
uint32_t test_case_scalars(const test_case *c);

#endif
