/* SPDX-License-Identifier: Apache-2.0 */
/* build.h - a graph that is being built: what the files behind opjit/graph.h share.  A tensor is a layout over what a
 * source makes; operators are made, and so validated, when they are added.  build_desc.c makes a DML_GRAPH_DESC of it,
 * which is compiled like any other. */
#ifndef OPJIT_FRONTEND_GRAPH_BUILD_H
#define OPJIT_FRONTEND_GRAPH_BUILD_H

#include <opjit/graph.h>

#include "frontend/frontend.h"

/* A handle's tensor. */
typedef struct build_tensor {
    fe_source source; /* FE_INPUT, FE_NODE or FE_CONSTANT, by index in the graph's array */
    DML_TENSOR_DATA_TYPE dtype;
    uint32_t rank;
    uint32_t sizes[OPJIT_MAX_RANK], strides[OPJIT_MAX_RANK]; /* in elements, from where the source's bytes begin */
    bool whole;                                              /* all that the source makes, as it makes it: no view */
} build_tensor;

typedef struct build_node {
    opjit_operator *op;
    const char *name;   /* "": none */
    fe_source *sources; /* by input position */
} build_node;

typedef struct build_input {
    const char *name;            /* "": none */
    DML_BUFFER_TENSOR_DESC desc; /* what its readers' descriptors take of it: flags, alignment, bytes */
} build_input;

typedef struct build_constant {
    const void *data;
    uint64_t bytes;
    const char *name;
} build_constant;

typedef struct build_output {
    const char *name;
    fe_source source; /* FE_NODE */
} build_output;

/* An array in the arena that grows by doubling.  Its earlier copies stay in the arena until the end: with them it takes
 * at most four times its size. */
typedef struct build_array {
    void *items;
    uint32_t count, capacity;
} build_array;

struct opjit_graph {
    opjit_context *context;
    rt_core *core;
    rt_arena arena;     /* all that lasts */
    rt_arena scratch;   /* of the current call */
    rt_arena described; /* of desc */
    opjit_error error;  /* the first; status OPJIT_OK: none */
    build_array tensors, nodes, inputs, constants, outputs;
    DML_GRAPH_DESC desc;
    const char *label; /* of nodes without a name; "": none */
    bool is_described, is_named; /* desc is that of the graph; an input or output has a name */
};

/* What a call of a failed graph gives. */
static const opjit_tensor build_null = { 0, 0 };

/* Whether the graph takes further calls. */
static inline bool build_goes_on(const opjit_graph *g)
{
    return g != NULL && g->error.status == OPJIT_OK;
}

/* --- build.c ------------------------------------------------------------------------------------------------------ */
/* One more item of the array, zeroed; NULL: no memory, and the graph has failed. */
void *opjit_fe_build_item(opjit_graph *g, build_array *array, size_t size);
/* A copy of text ("": NULL); NULL: no memory, and the graph has failed. */
const char *opjit_fe_build_text(opjit_graph *g, const char *text);
/* The tensor behind a handle; NULL: there is none, and the graph has failed.  op, field: for the message. */
const build_tensor *opjit_fe_build_tensor(opjit_graph *g, opjit_tensor handle, const char *op, const char *field);
/* A new handle; null: no memory. */
opjit_tensor opjit_fe_build_add(opjit_graph *g, const build_tensor *tensor);
/* Refuses a rank or sizes that no tensor has; what: for the message. */
opjit_status opjit_fe_build_check_sizes(opjit_graph *g, const char *what, uint32_t rank, const uint32_t *sizes);
static inline build_tensor *build_tensors(const opjit_graph *g)
{
    return g->tensors.items;
}
static inline build_node *build_nodes(const opjit_graph *g)
{
    return g->nodes.items;
}

/* --- build_node.c ------------------------------------------------------------------------------------------------- */
/* An operator of one output, of the type asked for (NULL: all follows); null: the graph has failed. */
opjit_tensor opjit_fe_build_op(opjit_graph *g, DML_OPERATOR_TYPE type, const void *desc, const opjit_tensor *inputs,
                               uint32_t input_count, const opjit_tensor_type *output);
/* A packed copy of the tensor. */
opjit_tensor opjit_fe_build_copy(opjit_graph *g, opjit_tensor tensor);

#endif
