/* SPDX-License-Identifier: Apache-2.0 */
/* internal.h - what the rooms of ir/ share and nobody else needs. */
#ifndef OPJIT_IR_CORE_INTERNAL_H
#define OPJIT_IR_CORE_INTERNAL_H

#include "ir/ir.h"

#define IR_LIMIT_NODES ((uint64_t)1 << 26) /* nodes, operands, tensors or parameters of a function */
#define IR_LIMIT_DEPTH 256u                /* nesting of expressions and of blocks in text */

/* A copy of node *like with count operands (copied; NULL: zeros).  0: no memory. */
ir_ref opjit_ir_node_new(ir_func *f, const ir_node *like, uint32_t count, const ir_ref *operands);

/* The statement's VAR number `which`. */
ir_ref opjit_ir_var_new(ir_func *f, ir_ref owner, uint32_t which);

/* Bytes from the first to the last element of the layout, which is the default of `bytes` in text; false: more than 64
 * bits. */
bool opjit_ir_span_bytes(const ir_tensor *tensor, uint64_t *out);

/* --- walks (walk.c) -------------------------------------------------------------------------------------------- */
/* Updates of the accumulator in the list and below. */
uint32_t opjit_ir_count_updates(const ir_func *f, ir_ref first, ir_ref acc);

/* Starts a walk and returns its number, which no node has as a stamp; nodes made later have no stamp.  0: no memory. */
uint32_t opjit_ir_walk_begin(ir_func *f);
void opjit_ir_walk_push(ir_func *f, ir_ref node); /* on the stack */

/* Nodes, oldest first, so that operands come before their users; nodes is NULL where there is no memory.  In the
 * function's scratch memory. */
typedef struct ir_reach {
    const ir_ref *nodes;
    uint32_t count;
} ir_reach;
/* All statements of the list from `first` on (bodies included), all expressions that they read, all VARs that they
 * own. */
ir_reach opjit_ir_reach(ir_func *f, ir_ref first);
/* The same for one statement or expression. */
ir_reach opjit_ir_reach_one(ir_func *f, ir_ref node);
/* The node's index in r->nodes; UINT32_MAX: it is not there. */
uint32_t opjit_ir_reach_place(const ir_reach *r, ir_ref node);
/* By node: its place, for many of them; valid until the next walk. */
const uint32_t *opjit_ir_reach_places(ir_func *f, const ir_reach *r);

/* --- numbers of the text (numbers.c): what prints as %N, in print order ------------------------------------------ */
typedef struct ir_numbers {
    const opjit_allocator *allocator;
    uint32_t *nodes, *tensors, *params; /* number + 1; 0: not in the text */
    uint32_t *views, view_count;        /* in the order of their numbers; room for all tensors */
    uint32_t node_count, tensor_count, param_count;
} ir_numbers;
/* false: no memory.  Also for functions that do not verify. */
bool opjit_ir_numbers_init(const ir_func *f, ir_numbers *out);
void opjit_ir_numbers_free(ir_numbers *numbers);
/* Names the node for a message, "%4 load" or "store %2". */
void opjit_ir_numbers_text(const ir_func *f, const ir_numbers *numbers, ir_ref node, char *text, size_t size);

#endif
