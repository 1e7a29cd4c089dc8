/* SPDX-License-Identifier: Apache-2.0 */
/* moves.h - random, always legal descriptors of the operators that move elements: several inputs, several outputs,
 * index tensors. */
#ifndef OPJIT_TESTS_SUPPORT_MOVES_H
#define OPJIT_TESTS_SUPPORT_MOVES_H

#include "tests/reference/reference.h"
#include "tests/support/cases.h"

#define MOVE_TENSORS 24
#define MOVE_OPERATOR_COUNT 23
extern const DML_OPERATOR_TYPE move_operators[MOVE_OPERATOR_COUNT];
const char *move_operator_name(DML_OPERATOR_TYPE type);

typedef struct move_case {
    DML_OPERATOR_DESC op;
    union {
        DML_SLICE_OPERATOR_DESC slice;
        DML_SLICE1_OPERATOR_DESC slice1;
        DML_SLICE_GRAD_OPERATOR_DESC slice_grad;
        DML_JOIN_OPERATOR_DESC join;
        DML_SPLIT_OPERATOR_DESC split;
        DML_TILE_OPERATOR_DESC tile;
        DML_PADDING_OPERATOR_DESC padding;
        DML_PADDING1_OPERATOR_DESC padding1;
        DML_REVERSE_SUBSEQUENCES_OPERATOR_DESC reverse;
        DML_SPACE_TO_DEPTH_OPERATOR_DESC to_depth;
        DML_SPACE_TO_DEPTH1_OPERATOR_DESC to_depth1;
        DML_DEPTH_TO_SPACE_OPERATOR_DESC to_space;
        DML_DEPTH_TO_SPACE1_OPERATOR_DESC to_space1;
        DML_GATHER_OPERATOR_DESC gather;
        DML_GATHER_ELEMENTS_OPERATOR_DESC gather_elements;
        DML_GATHER_ND_OPERATOR_DESC gather_nd;
        DML_GATHER_ND1_OPERATOR_DESC gather_nd1;
        DML_ONE_HOT_OPERATOR_DESC one_hot;
        DML_SCATTER_ELEMENTS_OPERATOR_DESC scatter_elements;
        DML_SCATTER_ND_OPERATOR_DESC scatter_nd;
        OPJIT_SCATTER_REDUCE_OPERATOR_DESC scatter_reduce;
        DML_MAX_UNPOOLING_OPERATOR_DESC max_unpooling;
        DML_NONZERO_COORDINATES_OPERATOR_DESC nonzero;
    } desc;
    test_tensor inputs[MOVE_TENSORS], outputs[MOVE_TENSORS];
    uint32_t input_count, output_count;
    DML_TENSOR_DESC array[MOVE_TENSORS]; /* of JOIN's inputs or SPLIT's outputs */
    uint32_t offsets[8], windows[8], strides[8];
    int32_t signed_strides[8];
    int index_input;      /* the input that holds indices, lengths or many zeros; -1: none */
    uint32_t index_limit; /* the size of the dimension that they index */
} move_case;

/* The case points into itself: don't copy it. */
void move_case_random(test_random *r, DML_OPERATOR_TYPE type, uint64_t most_elements, move_case *out);
/* Fills the index tensor's binding with numbers inside, at the ends, outside, anything. */
void move_case_indices(test_random *r, const move_case *c, void *binding);
/* Whether the operator computes with elements; move_case_tame makes those of an input's binding less than 2 in size, so
 * that no NaN comes of them, which has any bits. */
bool move_case_computes(const move_case *c);
void move_case_tame(const move_case *c, uint32_t input, void *binding);
void move_case_reference(const move_case *c, ref_inputs inputs, ref_outputs outputs);
/* Prints shapes, layouts and fields for people. */
void move_case_print(FILE *file, const move_case *c);

#endif
