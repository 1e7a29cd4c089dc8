/* SPDX-License-Identifier: Apache-2.0 */
/* subject.h - the kernels that `opjit bench` and tests/bench measure: descriptors of the generators, compiled and
 * bound.  Failures print one line and give false: there is nothing to measure then. */
#ifndef OPJIT_CLI_SUBJECT_H
#define OPJIT_CLI_SUBJECT_H

#include <opjit/opjit.h>

#define SUBJECT_TYPES 11
extern const DML_TENSOR_DATA_TYPE subject_types[SUBJECT_TYPES];

/* A descriptor with all it points to: don't copy. */
typedef struct subject_desc {
    DML_OPERATOR_DESC op;
    DML_TENSOR_DESC tensor;           /* output, and input where there is one */
    DML_BUFFER_TENSOR_DESC buffer;
    uint32_t sizes[2];
    union {
        DML_FILL_VALUE_CONSTANT_OPERATOR_DESC constant;
        DML_FILL_VALUE_SEQUENCE_OPERATOR_DESC sequence;
        DML_DIAGONAL_MATRIX_OPERATOR_DESC eye;
        DML_DIAGONAL_MATRIX1_OPERATOR_DESC band;
    } fields;
} subject_desc;

/* Rows and columns of a matrix of that many bytes, square or twice as wide as high. */
void subject_shape(uint64_t bytes, uint32_t element, uint32_t *rows, uint32_t *columns);
/* Matrices of rows x columns.  Scalars are given as numbers and stored as the type has them. */
void subject_constant(subject_desc *d, DML_TENSOR_DATA_TYPE type, uint32_t rows, uint32_t columns, double value);
void subject_sequence(subject_desc *d, DML_TENSOR_DATA_TYPE type, uint32_t rows, uint32_t columns, double start,
                      double delta);
void subject_eye(subject_desc *d, DML_TENSOR_DATA_TYPE type, uint32_t rows, uint32_t columns, int32_t offset,
                 double value);
void subject_band(subject_desc *d, DML_TENSOR_DATA_TYPE type, uint32_t rows, uint32_t columns, int32_t begin,
                  int32_t end, double value);
/* Bits of the value in type. */
uint64_t subject_bits(DML_TENSOR_DATA_TYPE type, double value);

typedef struct subject {
    opjit_operator *op;
    opjit_kernel *kernel;
    opjit_binding bindings[2];
    opjit_call call;
    bool failed;                      /* a call did */
} subject;

/* Compiles it as options say; NULL: at that level without the caches. */
bool subject_make(opjit_context *context, const subject_desc *d, opjit_level level,
                  const opjit_compile_options *options, subject *out);
/* in: NULL where the operator has no input.  executor NULL: this thread alone. */
void subject_bind(subject *s, const void *in, void *out, uint64_t bytes, const opjit_executor *executor);
void subject_run(void *s);            /* a measure_fn */
void subject_free(subject *s);
/* Prints "what: message" on standard error; gives false. */
bool subject_complain(const char *what, const opjit_error *error);

#endif
