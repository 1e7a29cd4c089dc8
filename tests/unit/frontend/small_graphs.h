/* SPDX-License-Identifier: Apache-2.0 */
/* small_graphs.h - shared by tests of graphs: nodes and tensors of a few INT32, and two graphs of the same sum whose
 * nodes have another order and other names. */
#ifndef OPJIT_TESTS_UNIT_SMALL_GRAPHS_H
#define OPJIT_TESTS_UNIT_SMALL_GRAPHS_H

#include "tests/support/graph_case.h"

enum { ROWS = 3, COLUMNS = 4, COUNT = ROWS * COLUMNS, CAPACITY = 16 };

static const uint32_t shape[] = { ROWS, COLUMNS };

/* --- nodes -------------------------------------------------------------------------------------------------------- */

/* 10, 11, 12 ... in the order of the tensor's memory. */
static inline uint32_t sequence(graph_case *g, const DML_TENSOR_DESC *output, const char *label)
{
    const DML_FILL_VALUE_SEQUENCE_OPERATOR_DESC desc = {
        output, DML_TENSOR_DATA_TYPE_INT32, { .Int32 = 10 }, { .Int32 = 1 }
    };
    return graph_operator(g, DML_OPERATOR_FILL_VALUE_SEQUENCE, &desc, label);
}

static inline uint32_t add(graph_case *g, const DML_TENSOR_DESC *a, const DML_TENSOR_DESC *b,
                           const DML_TENSOR_DESC *output, const char *label)
{
    const DML_ELEMENT_WISE_ADD_OPERATOR_DESC desc = { a, b, output };
    return graph_operator(g, DML_OPERATOR_ELEMENT_WISE_ADD, &desc, label);
}

static inline uint32_t negate(graph_case *g, const DML_TENSOR_DESC *in, const DML_TENSOR_DESC *out, const char *label)
{
    const DML_ELEMENT_WISE_NEGATE_OPERATOR_DESC desc = { in, out };
    return graph_operator(g, DML_OPERATOR_ELEMENT_WISE_NEGATE, &desc, label);
}

/* The band's bounds are late fields. */
static inline uint32_t band(graph_case *g, const DML_TENSOR_DESC *out, const char *label)
{
    const DML_DIAGONAL_MATRIX1_OPERATOR_DESC desc = { NULL, out, DML_TENSOR_DATA_TYPE_INT32, { .Int32 = 7 }, 0, 2 };
    return graph_operator(g, DML_OPERATOR_DIAGONAL_MATRIX1, &desc, label);
}

static graph_tensor packed, transposed, vector, wide, padded, flat, real;

static inline void set_tensors(void)
{
    graph_tensor_set(&packed, DML_TENSOR_DATA_TYPE_INT32, 2, shape, NULL, 0);
    graph_tensor_set(&transposed, DML_TENSOR_DATA_TYPE_INT32, 2, (uint32_t[]){ COLUMNS, ROWS },
                     (uint32_t[]){ 1, COLUMNS }, 0);
    graph_tensor_set(&vector, DML_TENSOR_DATA_TYPE_INT32, 2, (uint32_t[]){ 1, COLUMNS }, NULL, 0);
    graph_tensor_set(&wide, DML_TENSOR_DATA_TYPE_INT32, 2, shape, (uint32_t[]){ 0, 1 }, 0);
    graph_tensor_set(&padded, DML_TENSOR_DATA_TYPE_INT32, 2, shape, (uint32_t[]){ COLUMNS + 1, 1 }, 0);
    graph_tensor_set(&flat, DML_TENSOR_DATA_TYPE_INT32, 1, (uint32_t[]){ COUNT }, NULL, 0);
    graph_tensor_set(&real, DML_TENSOR_DATA_TYPE_FLOAT32, 2, shape, NULL, 0);
}

/* "sum" adds "a" and "b" and is the output. */
static inline void begin_sum(graph_case *g, opjit_context *context)
{
    graph_begin(g, context, CAPACITY);
    sequence(g, &packed.desc, "a");
    band(g, &packed.desc, "b");
    add(g, &packed.desc, &packed.desc, &packed.desc, "sum");
    graph_edge(g, 0, 0, 2, 0);
    graph_edge(g, 1, 0, 2, 1);
    graph_output(g, 2, 0, 0);
}

/* The same graph in another order, with other labels and a node that leads nowhere; swap: exchanges operands. */
static inline void begin_other(graph_case *g, opjit_context *context, bool swap)
{
    graph_begin(g, context, CAPACITY);
    add(g, &packed.desc, &packed.desc, &packed.desc, "other");
    negate(g, &packed.desc, &packed.desc, NULL);
    band(g, &packed.desc, NULL);
    sequence(g, &packed.desc, NULL);
    graph_edge(g, 3, 0, 1, 0);
    graph_edge(g, 2, 0, 0, swap ? 0 : 1);
    graph_edge(g, 3, 0, 0, swap ? 1 : 0);
    graph_output(g, 0, 0, 0);
}

#endif
