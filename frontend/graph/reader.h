/* SPDX-License-Identifier: Apache-2.0 */
/* reader.h - the state of reading a DML_GRAPH_DESC, in the description's numbers, that read.c fills and order.c and
 * late.c work on. */
#ifndef OPJIT_FRONTEND_GRAPH_READER_H
#define OPJIT_FRONTEND_GRAPH_READER_H

#include "frontend/frontend.h"

#define FE_COUNT_MAX (1u << 24) /* of nodes and edges, whose arrays are the caller's: far below any overflow */
#define FE_NO_NUMBER UINT32_MAX

/* A node as it was described. */
typedef struct fe_raw_node {
    opjit_operator *op; /* NULL: a constant */
    const char *name;
    const void *data;
    uint64_t bytes;
    fe_source *sources; /* by input, in the description's numbers */
    uint32_t inputs, outputs;
    uint32_t next;   /* input to look at next, while it is open */
    uint32_t number; /* in the graph, among nodes or constants; FE_NO_NUMBER: nothing depends on it */
    uint32_t state;
} fe_raw_node;

typedef struct fe_reader {
    const DML_GRAPH_DESC *desc;
    fe_graph *graph;
    rt_arena *arena;
    fe_raw_node *nodes;
    fe_source *outputs; /* by graph output, likewise */
    uint32_t *inputs;   /* by graph input: 1 + its number in the graph; 0: no edge leads from it */
    uint32_t *stack;
    opjit_error *error;
} fe_reader;

static inline fe_node fe_reader_node(const fe_reader *r, uint32_t given)
{
    return (fe_node){ .op = r->nodes[given].op, .name = r->nodes[given].name, .given = given };
}

static inline fe_node_text fe_reader_text(const fe_reader *r, uint32_t given)
{
    return opjit_fe_node_text(r->nodes[given].op, r->nodes[given].name, given);
}

/* Puts nodes and inputs into the order in which they are met going back from the outputs, and refuses cycles
 * (order.c). */
opjit_status opjit_fe_reader_order(fe_reader *r);
/* Enters the subject's late fields (late.c). */
opjit_status opjit_fe_reader_late(fe_reader *r, const fe_subject *subject);

#endif
