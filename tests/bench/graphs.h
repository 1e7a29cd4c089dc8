/* SPDX-License-Identifier: Apache-2.0 */
/* graphs.h - graphs for benchmarks, made node by node over one shape (heads, rows, columns) of f32: causal masks in
 * three ways, ALiBi slopes, softmax over rows, layer norm before it, chains of cheap operators.  hand_masks.h has
 * hand-written versions of the same.  Not a general builder: nodes have up to three inputs and one output. */
#ifndef OPJIT_TESTS_BENCH_GRAPHS_H
#define OPJIT_TESTS_BENCH_GRAPHS_H

#include <stdbool.h>

#include <opjit/opjit.h>

enum { GRAPH_NODES = 128, GRAPH_PORTS = 3 };

/* How a tensor lies in the shape: all of it, or repeated along the other dimensions. */
typedef enum graph_layout { GRAPH_FULL, GRAPH_COLUMNS, GRAPH_ROWS, GRAPH_HEADS } graph_layout;

/* Output of a node, or input `~node` of the graph. */
typedef struct graph_value {
    int32_t node;
    DML_TENSOR_DATA_TYPE type;
    graph_layout layout;
} graph_value;

typedef struct graph_port {
    DML_TENSOR_DESC desc;
    DML_BUFFER_TENSOR_DESC buffer;
    uint32_t sizes[3], strides[3];
} graph_port;

typedef struct graph_node {
    graph_port ports[GRAPH_PORTS + 1]; /* the output is the last */
    graph_value inputs[GRAPH_PORTS];
    uint32_t input_count;
    DML_OPERATOR_TYPE type;
    union {
        DML_ELEMENT_WISE_ADD_OPERATOR_DESC binary;
        DML_ELEMENT_WISE_EXP_OPERATOR_DESC unary;
        DML_ELEMENT_WISE_CLIP_OPERATOR_DESC clip;
        DML_ELEMENT_WISE_IF_OPERATOR_DESC choice;
        DML_DIAGONAL_MATRIX1_OPERATOR_DESC band;
        DML_FILL_VALUE_CONSTANT_OPERATOR_DESC constant;
        DML_FILL_VALUE_SEQUENCE_OPERATOR_DESC sequence;
        DML_ACTIVATION_SOFTMAX1_OPERATOR_DESC softmax;
        DML_ACTIVATION_GELU_OPERATOR_DESC gelu;
        DML_MEAN_VARIANCE_NORMALIZATION1_OPERATOR_DESC norm;
    } fields;
} graph_node;

/* With everything it points to: don't copy. */
typedef struct graph {
    uint32_t shape[3];
    uint32_t count, input_count;
    graph_node nodes[GRAPH_NODES];
    opjit_operator *operators[GRAPH_NODES];
    DML_GRAPH_DESC desc;
    DML_GRAPH_NODE_DESC node_descs[GRAPH_NODES];
    DML_OPERATOR_GRAPH_NODE_DESC operator_descs[GRAPH_NODES];
    DML_GRAPH_EDGE_DESC input_edges[GRAPH_NODES], edges[GRAPH_NODES * GRAPH_PORTS], output_edge;
    DML_INPUT_GRAPH_EDGE_DESC inputs[GRAPH_NODES];
    DML_INTERMEDIATE_GRAPH_EDGE_DESC intermediates[GRAPH_NODES * GRAPH_PORTS];
    DML_OUTPUT_GRAPH_EDGE_DESC output;
} graph;

typedef enum graph_mask { GRAPH_MASK_DIAGONAL, GRAPH_MASK_IF, GRAPH_MASK_ADD } graph_mask;

/* Each starts a graph of its own.  Input 0 is the scores; input 1 the slopes, one per head, or the chain's row. */
void graph_alibi(graph *g, const uint32_t shape[3], graph_mask mask);
void graph_causal_softmax(graph *g, const uint32_t shape[3], graph_mask mask);
void graph_chain(graph *g, const uint32_t shape[3], uint32_t length);
/* Layer norm and softmax of each row, with_gelu: GELU between them. */
void graph_rows(graph *g, const uint32_t shape[3], bool with_gelu);
/* One operator. */
typedef enum graph_function { GRAPH_EXP, GRAPH_GELU, GRAPH_SOFTMAX, GRAPH_NORM } graph_function;
void graph_one(graph *g, const uint32_t shape[3], graph_function function);
/* Makes operators and edges; *g is then ready for opjit_compile_graph.  false, with a line printed: that failed. */
bool graph_make(opjit_context *context, graph *g);
void graph_free(graph *g); /* operators only */

#endif
