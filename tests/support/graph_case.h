/* SPDX-License-Identifier: Apache-2.0 */
/* graph_case.h - graphs for tests: a DML_GRAPH_DESC built edge by edge, and two ways to run it. */
#ifndef OPJIT_TESTS_SUPPORT_GRAPH_CASE_H
#define OPJIT_TESTS_SUPPORT_GRAPH_CASE_H

#include <opjit/opjit.h>

typedef struct graph_case {
    opjit_context *context;
    uint32_t capacity; /* of each array */
    DML_GRAPH_DESC desc;
    DML_GRAPH_NODE_DESC *nodes;
    DML_OPERATOR_GRAPH_NODE_DESC *operators;
    DML_CONSTANT_DATA_GRAPH_NODE_DESC *constants;
    DML_GRAPH_EDGE_DESC *input_edges, *edges, *output_edges;
    DML_INPUT_GRAPH_EDGE_DESC *inputs;
    DML_INTERMEDIATE_GRAPH_EDGE_DESC *intermediates;
    DML_OUTPUT_GRAPH_EDGE_DESC *outputs;
} graph_case;

void graph_begin(graph_case *g, opjit_context *context, uint32_t capacity);
void graph_end(graph_case *g); /* releases the operators, too */
/* Each returns the node's index.  graph_operator creates the operator, which must be legal; graph_operator_of retains
 * an existing one. */
uint32_t graph_operator_of(graph_case *g, opjit_operator *op, const char *label);
uint32_t graph_operator(graph_case *g, DML_OPERATOR_TYPE type, const void *desc, const char *label);
uint32_t graph_constant(graph_case *g, const void *data, size_t bytes, const char *label);
/* Edges; InputCount and OutputCount grow with them. */
void graph_input(graph_case *g, uint32_t index, uint32_t to, uint32_t input);
void graph_edge(graph_case *g, uint32_t from, uint32_t output, uint32_t to, uint32_t input);
void graph_output(graph_case *g, uint32_t from, uint32_t output, uint32_t index);

/* Runs the graph as lowered, before any pass.  buffers: the inputs that are used, outputs, constants above 4 KiB at
 * their places in the kernel. */
opjit_status graph_run_lowered(const graph_case *g, void *const *buffers, opjit_error *error);
/* Prints the lowered graph into text, NUL-terminated. */
void graph_print_lowered(const graph_case *g, char *text, size_t size);

/* A tensor descriptor with its arrays, packed or strided.  Don't copy it. */
typedef struct graph_tensor {
    DML_TENSOR_DESC desc;
    DML_BUFFER_TENSOR_DESC buffer;
    uint32_t sizes[8], strides[8];
} graph_tensor;
/* strides: NULL: packed; bytes 0: implied. */
const DML_TENSOR_DESC *graph_tensor_set(graph_tensor *t, DML_TENSOR_DATA_TYPE type, uint32_t rank,
                                        const uint32_t *sizes, const uint32_t *strides, uint64_t bytes);

#endif
