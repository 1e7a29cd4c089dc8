/* SPDX-License-Identifier: Apache-2.0 */
/* trees.h - decision trees of ai.onnx.ml as the file has them: trees.c reads, tree_ensemble.c makes operators. */
#ifndef OPJIT_FRONTEND_ONNX_TREES_H
#define OPJIT_FRONTEND_ONNX_TREES_H

#include "frontend/onnx/ops/ops.h"

/* TreeEnsemble's numbers of BRANCH_LEQ, BRANCH_LT, ... */
typedef enum branch { LEQ, LT, GTE, GT, EQ, NEQ, MEMBER, LEAF } branch;

enum {
    NODES_MOST = 1 << 24, /* of a model's trees, with those that a node takes more */
    STEPS_MOST = 1024,
    WEIGHTS_MOST = 1 << 26, /* nodes times results */
    NOWHERE = -1
};

/* A node of the file. */
typedef struct tree_node {
    branch mode;
    bool missing_is_true;
    uint32_t feature;
    double value;
    int64_t yes, no;       /* nodes; NOWHERE: none */
    const double *members; /* of MEMBER */
    uint32_t member_count, depth;
    bool seen;
} tree_node;

typedef struct trees {
    tree_node *nodes;
    uint32_t count, room; /* room: with what EQ, NEQ and MEMBER take more */
    uint32_t *roots, root_count, steps;
    uint64_t rows, columns, targets;
    int32_t type;    /* of what is compared and summed: ONNX_FLOAT or ONNX_DOUBLE */
    double *weights; /* {room, targets} */
    bool *used;      /* each target: whether a leaf says something of it */
    bool positive;   /* no weight is negative */
} trees;

/* Numbers of an attribute: floats, a tensor, or a tensor with _as_tensor behind the name; absent: count 0. */
opjit_status opjit_onnx_read_numbers(onnx_import *m, const onnx_call *c, const char *name, double **out,
                                     uint32_t *count);
/* The trees of TreeEnsembleRegressor and TreeEnsembleClassifier; what their leaves say are attributes whose names begin
 * with "target" or "class".  t->rows, columns, targets, type are known. */
opjit_status opjit_onnx_read_trees(onnx_import *m, const onnx_call *c, trees *t, const char *what);
/* Those of TreeEnsemble. */
opjit_status opjit_onnx_read_ensemble(onnx_import *m, const onnx_call *c, trees *t);

#endif
