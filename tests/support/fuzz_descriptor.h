/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_descriptor.h - makes a descriptor of any operator from bytes, by walking the fields of its row.  Most inputs
 * give nearly legal descriptors, and each byte makes one choice about one field. */
#ifndef OPJIT_TESTS_SUPPORT_FUZZ_DESCRIPTOR_H
#define OPJIT_TESTS_SUPPORT_FUZZ_DESCRIPTOR_H

#include "frontend/ops/op.h"
#include "tests/support/fuzz.h"
#include "tests/support/graph_case.h"

enum { FUZZ_TENSORS = 80, FUZZ_COUNT = 70, FUZZ_ARRAYS = 8, FUZZ_DESC_BYTES = 512,
       FUZZ_ACTIVATIONS = FUZZ_COUNT };

/* The shape that tensors start with, before bytes change them. */
typedef struct fuzz_shape {
    DML_TENSOR_DATA_TYPE dtype;
    uint32_t rank;
    uint32_t sizes[8];
} fuzz_shape;

/* Holds everything that the descriptor points to; not to be copied. */
typedef struct fuzz_descriptor {
    DML_OPERATOR_DESC desc;
    _Alignas(8) uint8_t body[FUZZ_DESC_BYTES];
    fuzz_shape shape;
    graph_tensor tensors[FUZZ_TENSORS];
    uint32_t tensor_count;
    DML_TENSOR_DESC lists[2][FUZZ_COUNT];
    uint32_t list_count;
    uint32_t arrays[FUZZ_ARRAYS][FUZZ_COUNT];
    uint32_t array_count;
    DML_SCALE_BIAS scale_bias;
    DML_OPERATOR_DESC activations[FUZZ_ACTIVATIONS]; /* the first is a single one */
    _Alignas(8) uint8_t activation_bodies[FUZZ_ACTIVATIONS][FUZZ_DESC_BYTES];
} fuzz_descriptor;

fuzz_shape fuzz_take_shape(fuzz_reader *r);
/* A descriptor of the operator whose tensors start as `shape`. */
void fuzz_take_descriptor(fuzz_reader *r, const op_def *def, const fuzz_shape *shape, fuzz_descriptor *out);
/* Whether what the operator reads and writes is small enough to run. */
bool fuzz_is_small(const opjit_operator *op);

#endif
