/* SPDX-License-Identifier: Apache-2.0 */
/* ranking.h - the greatest of many keys along a dimension, and their order, in value form.  Keys are unsigned integers;
 * of equal ones the first comes first.  Time and memory grow with the number of keys, and of those that are sorted with
 * the square of their number's logarithm.  For the files of this folder.
 *
 * All tensors here have two dimensions: rows, and what is in a row. */
#ifndef OPJIT_FRONTEND_OPS_RANKING_H
#define OPJIT_FRONTEND_OPS_RANKING_H

#include "frontend/ops/op.h"

/* What keys are: a definition in `type`, IR_U32 or IR_U64, whose values are below 2^bits. */
typedef struct ranking {
    op_lowering *l;
    const fe_tensor *rows; /* rank 2, and how many there are */
    ir_type type;
    uint32_t bits;
} ranking;

/* A definition with `size` elements in its last dimension. */
ir_ref opjit_fe_ranking_def(const ranking *r, ir_type type, uint64_t size);
/* The element of `def` with this last coordinate in the row of `statement`. */
ir_ref opjit_fe_ranking_load(const ranking *r, ir_ref def, ir_ref statement, ir_ref last);
/* The last coordinate of a statement. */
ir_ref opjit_fe_ranking_last(const ranking *r, ir_ref statement);
/* x, an unsigned element, as a coordinate below size. */
ir_ref opjit_fe_ranking_index(ir_func *f, ir_ref x, uint64_t size);

/* Where the `count` greatest of `size` keys are, in ascending order of place: u32. */
ir_ref opjit_fe_ranking_select(const ranking *r, ir_ref keys, uint64_t size, uint64_t count);
/* How many elements are sorted where `size` are: the next power of two. */
uint64_t opjit_fe_ranking_padded(uint64_t size);
/* Places of keys, in the order of these, the greatest key first: u32. */
ir_ref opjit_fe_ranking_sort(const ranking *r, ir_ref keys, uint64_t size);

#endif
