/* SPDX-License-Identifier: Apache-2.0 */
/* internal.h - what the files of the IR's core share with each other and with nobody else. */
#ifndef OPJIT_IR_CORE_INTERNAL_H
#define OPJIT_IR_CORE_INTERNAL_H

#include "ir/analysis/analysis.h"
#include "ir/ir.h"

#define IR_LIMIT_NODES ((uint64_t)1 << 26) /* nodes, operands, tensors or parameters of a function */
#define IR_LIMIT_DEPTH 256u                /* nesting of expressions and of blocks in text */

/* A node like *like, with count operands (NULL: zeros; they are copied).  0: no memory. */
ir_ref opjit_ir_node_new(ir_func *f, const ir_node *like, uint32_t count, const ir_ref *operands);

/* Bytes from the first to the last element of the layout, the default of `bytes` in text; false: not in 64 bits. */
bool opjit_ir_span_bytes(const ir_tensor *tensor, uint64_t *out);

/* --- walks (walk.c) -------------------------------------------------------------------------------------------- */
/* The number of a new walk, which no node has as its stamp; nodes made later have no stamp.  0: no memory. */
uint32_t opjit_ir_walk_begin(ir_func *f);
void opjit_ir_walk_push(ir_func *f, ir_ref node); /* on the stack */

/* Nodes, oldest first, so that operands come before what uses them; nodes is NULL where there is no memory.  In the
 * function's scratch memory. */
typedef struct ir_reach {
    const ir_ref *nodes;
    uint32_t count;
} ir_reach;
/* Every statement of the list from `first` (bodies included), every expression that these read and every VAR that they
 * own. */
ir_reach opjit_ir_reach(ir_func *f, ir_ref first);
/* As opjit_ir_reach for one statement or expression. */
ir_reach opjit_ir_reach_one(ir_func *f, ir_ref node);
/* Where in r->nodes the node is; UINT32_MAX: it is not. */
uint32_t opjit_ir_reach_place(const ir_reach *r, ir_ref node);

/* --- numbers of the text (print.c): what prints as %N, in print order ------------------------------------------ */
typedef struct ir_numbers {
    const opjit_allocator *allocator;
    uint32_t *nodes, *tensors, *params; /* number + 1; 0: not in the text */
    uint32_t *views, view_count;        /* in the order of their numbers; room for all tensors */
    uint32_t node_count, tensor_count, param_count;
} ir_numbers;
/* false: no memory.  Safe on functions that do not verify. */
bool opjit_ir_numbers_init(const ir_func *f, ir_numbers *out);
void opjit_ir_numbers_free(ir_numbers *numbers);
/* "%4 load", "store %2": the node for a message, into text. */
void opjit_ir_numbers_text(const ir_func *f, const ir_numbers *numbers, ir_ref node, char *text, size_t size);

#endif
