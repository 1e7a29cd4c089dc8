/* SPDX-License-Identifier: Apache-2.0 */
/* access.h - the coordinates and address of a load or store: for memory.c, stride.c, address.c, alignment.c and reads.c
 * here, and for stores/ and hold/. */
#ifndef OPJIT_CODEGEN_EMIT_ACCESS_H
#define OPJIT_CODEGEN_EMIT_ACCESS_H

#include "codegen/emit/masks.h"

/* A load or store, in units of elements of its tensor. */
typedef struct cg_access {
    uint32_t tensor, rank, first; /* first: operand that is coordinate 0 */
    ir_ref node;
    uint32_t bits; /* of an element */
} cg_access;

static inline ir_ref cg_coordinate(const cg_func *f, const cg_access *a, uint32_t d)
{
    return ir_operand(f->ir, a->node, a->first + d);
}

static inline int64_t cg_stride(const cg_func *f, const cg_access *a, uint32_t d)
{
    return (int64_t)f->ir->tensors[a->tensor].strides[d];
}

cg_access opjit_cg_access_of(const cg_func *f, ir_ref node);
LLVMValueRef opjit_cg_base_pointer(cg_func *f, uint32_t tensor); /* of element 0, made in the entry block */
/* Elements from one value of the variable to the next; false: not affine. */
bool opjit_cg_growth(const cg_func *f, const cg_access *a, ir_ref var, int64_t *out);
LLVMValueRef opjit_cg_lane0(cg_func *f, const cg_access *a); /* address of lane 0 */
/* The address that is remembered for node, a load like `a` or a choice between such loads, plus what the loop adds. */
LLVMValueRef opjit_cg_moved_pointer(cg_func *f, const cg_access *a, ir_ref node);
/* Element offset of lane 0, in i64; lane0: that of the vectorised variable in the copy. */
LLVMValueRef opjit_cg_lane0_offset(cg_func *f, const cg_access *a, int64_t lane0);
/* Known, in bytes, of lane 0, at most a cache line. */
uint32_t opjit_cg_alignment(const cg_func *f, const cg_access *a);
/* Of every element: its size, or less where that of the tensor's memory is less. */
uint32_t opjit_cg_element_alignment(const cg_func *f, const cg_access *a);
/* align: where element_alignment is the element's size; else it is that. */
LLVMValueRef opjit_cg_load_element(cg_func *f, const cg_access *a, LLVMValueRef pointer, uint32_t lanes,
                                   uint32_t align);
/* Adds i64 values; NULL is 0. */
LLVMValueRef opjit_cg_plus(cg_func *f, LLVMValueRef a, LLVMValueRef b);
LLVMValueRef opjit_cg_times(cg_func *f, LLVMValueRef a, int64_t k);

/* An index expression in lane 0: if affine, with var at 0; if one of var's digits, idiv(var, k) or imod(var, k), with
 * var at k times the quotient.  NULL: zero. */
LLVMValueRef opjit_cg_at(cg_func *f, ir_ref node, ir_ref var, LLVMValueRef quotient);

/* Reads the line ahead of this copy, which has stored at pointer (reads.c). */
void opjit_cg_read_ahead(cg_func *f, const cg_access *a, LLVMValueRef pointer);

/* A load of so many lanes of which only the first `most` are read, one or more; the others are 0. */
LLVMValueRef opjit_cg_load_first(cg_func *f, const cg_access *a, LLVMValueRef pointer, uint32_t lanes, uint32_t most);
/* Loads of one loop's body that read every step-th element of the same memory, each so many elements behind the first
 * one, fewer than `step`: what lies between the lanes of one is what others read, so they share vectors (among.c). */
typedef struct cg_among {
    uint32_t step, count;
    ir_ref load[CG_MOST_STEP];
    uint32_t at[CG_MOST_STEP]; /* ascending */
} cg_among;
/* The load, whose lanes are every second to fourth element, and remembers the others of its group (masked: of a
 * remainder); NULL: it is alone, or these are no vectors here. */
LLVMValueRef opjit_cg_load_together(cg_func *f, ir_ref load, bool masked);
/* A vector for each load of the group, from the first lane of the first one; reads the first `most` lanes only. */
void opjit_cg_load_among(cg_func *f, const cg_access *a, const cg_among *g, LLVMValueRef first,
                               uint32_t most, LLVMValueRef *out);
/* Likewise, of a remainder whose length is known when it runs; false: a vector here is several of the target's. */
bool opjit_cg_load_among_rest(cg_func *f, const cg_access *a, const cg_among *g, LLVMValueRef first,
                                    LLVMValueRef *out);
/* Every step-th element; reads those of the first `most` lanes only. */
LLVMValueRef opjit_cg_load_picked(cg_func *f, const cg_access *a, uint32_t step, LLVMValueRef first, uint32_t most);
/* Likewise, of a remainder whose length is known when it runs; NULL: a vector here is several of the target's. */
LLVMValueRef opjit_cg_load_picked_rest(cg_func *f, const cg_access *a, uint32_t step, LLVMValueRef first);
/* Likewise; reads those of the mask's lanes only, by masked loads.  The others are 0. */
LLVMValueRef opjit_cg_load_picked_where(cg_func *f, const cg_access *a, uint32_t step, LLVMValueRef first,
                                        LLVMValueRef mask);
/* Elements that alternate between a few rows, starting with the first row in lane 0; NULL: not of that form. */
LLVMValueRef opjit_cg_load_zipped(cg_func *f, const cg_access *a);

/* Tensors that were joined (memory.c): a select whose condition is the same in all vectors of the loop, and whose arms
 * are loads of elements side by side or such selects, is one load.  Its address is chosen before the loop, if it can
 * be. */
void opjit_cg_hoist_joined(cg_func *f, ir_ref node, uint32_t loop);
/* The select's value; NULL: no address was chosen, or the load can't be masked. */
LLVMValueRef opjit_cg_load_joined(cg_func *f, ir_ref node);

#endif
