/* SPDX-License-Identifier: Apache-2.0 */
/* order.h - which nodes of a graph are needed, and the order they are imported in. */
#ifndef OPJIT_FRONTEND_ONNX_ORDER_H
#define OPJIT_FRONTEND_ONNX_ORDER_H

#include "frontend/onnx/compute.h"

/* The node that makes a name, and how many of the needed nodes read it. */
typedef struct onnx_producer {
    uint32_t node, readers;
    onnx_uses uses; /* by nodes that are not imported yet and need more of it than its sizes, and by outputs */
} onnx_producer;

typedef struct onnx_order {
    onnx_scope *makers; /* onnx_producer by name */
    uint32_t *nodes;    /* those that are needed, makers before readers */
    uint32_t count;
} onnx_order;

/* The nodes that the wanted names need, in the order of the file, except that what a later node makes is made first.
 * What the order refers to is in the import's arena. */
opjit_status opjit_onnx_order(onnx_import *m, const onnx_node *nodes, uint32_t count, const wire_bytes *wanted,
                              uint32_t wanted_count, onnx_order *out);
/* The node was imported, and has read its inputs. */
void opjit_onnx_drop_inputs(onnx_import *m, const onnx_scope *makers, const onnx_node *n);

#endif
