/* SPDX-License-Identifier: Apache-2.0 */
/* scale.h - graphs of any number of stages or nodes, shared by tests and benchmarks of large graphs. */
#ifndef OPJIT_TESTS_SUPPORT_SCALE_H
#define OPJIT_TESTS_SUPPORT_SCALE_H

#include "tests/support/graph_case.h"

typedef enum scale_shape {
    SCALE_ADDS,      /* independent ELEMENT_WISE_ADDs with one output each */
    SCALE_SOFTMAXES, /* ACTIVATION_SOFTMAX1 after ACTIVATION_SOFTMAX1 */
    SCALE_BLOCKS,    /* blocks of layer norm, GELU and an addition of the block's input */
    SCALE_SPLIT,     /* one SPLIT with that many outputs */
    SCALE_CHAIN,     /* ELEMENT_WISE_ADDs in a chain, one stage */
    SCALE_WIDE,      /* half of the nodes read the input, the others add these up, in one stage */
    SCALE_SHAPES
} scale_shape;
extern const char *const scale_names[SCALE_SHAPES];

enum { SCALE_OPERATORS = 9 };

/* Every tensor is FLOAT32 [4,100]; a SPLIT's outputs are [4,4]. */
typedef struct scale_graph {
    scale_shape shape;
    graph_case g;                               /* g.desc is the graph */
    opjit_operator *operators[SCALE_OPERATORS]; /* the operators of its nodes */
    uint32_t input_count, output_count;         /* bindings: inputs first */
    uint32_t input_elements, output_elements;
} scale_graph;

/* A graph of count nodes, blocks or outputs.  false: *error says why; free it all the same. */
bool scale_make(opjit_context *context, scale_shape shape, uint32_t count, scale_graph *g, opjit_error *error);
void scale_free(scale_graph *g);

/* The bindings of a call and their memory: inputs are numbers between 0 and 2, outputs garbage. */
typedef struct scale_buffers {
    opjit_binding *bindings;
    float *memory;
} scale_buffers;
bool scale_buffers_make(const scale_graph *g, scale_buffers *b);
void scale_buffers_free(scale_buffers *b);
/* Whether b's outputs equal those of the graph's operators, run one by one as kernels of their own. */
bool scale_check(opjit_context *context, const scale_graph *g, const scale_buffers *b, opjit_error *error);

#endif
