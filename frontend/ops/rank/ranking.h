/* SPDX-License-Identifier: Apache-2.0 */
/* ranking.h - the greatest of many keys along a dimension, and their order, in value form.  Keys are unsigned integers;
 * of equal ones the first comes first.  Time and memory grow with the number of keys; time also with the square of how
 * many are sorted, up to 384, and on GPUs, of more, with that of their number's logarithm.  For the files of this
 * folder.
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

static inline fe_tensor ranking_shape(const ranking *r, uint64_t size)
{
    fe_tensor shape = *r->rows;

    shape.sizes[1] = size;
    return shape;
}

static inline ir_ref ranking_number(ir_func *f, ir_type type, uint64_t value)
{
    return opjit_ir_const(f, type, value);
}

static inline ir_ref ranking_op2(ir_func *f, ir_op op, ir_type type, ir_ref a, ir_ref b)
{
    return ir_expr2(f, op, type, a, b);
}

static inline ir_ref ranking_choose(ir_func *f, ir_type type, ir_ref condition, ir_ref x, ir_ref y)
{
    return ir_expr3(f, IR_SELECT, type, condition, x, y);
}

/* A definition with `size` elements in its last dimension. */
ir_ref opjit_fe_ranking_def(const ranking *r, ir_type type, uint64_t size);
/* The element of `def` in a row. */
ir_ref opjit_fe_ranking_at(const ranking *r, ir_ref def, ir_ref row, ir_ref last);
/* The element of `def` with this last coordinate in the row of `statement`. */
ir_ref opjit_fe_ranking_load(const ranking *r, ir_ref def, ir_ref statement, ir_ref last);
/* The last coordinate of a statement. */
ir_ref opjit_fe_ranking_last(const ranking *r, ir_ref statement);
/* x, an unsigned element, as a coordinate below size. */
ir_ref opjit_fe_ranking_index(ir_func *f, ir_ref x, uint64_t size);

/* A key of 32 bits with its place below it, in IR_U64: of equal keys the first one's is the greatest. */
ir_ref opjit_fe_ranking_apart(ir_func *f, ir_ref key, ir_ref place);
/* A SCATTER of `count` places into rows of `size`, IR_U32: place *own is put where the caller says. */
ir_ref opjit_fe_ranking_places(const ranking *r, uint64_t size, uint64_t count, ir_ref *own);

/* Where the `count` greatest of `size` keys are, in ascending order of place: u32. */
ir_ref opjit_fe_ranking_select(const ranking *r, ir_ref keys, uint64_t size, uint64_t count);
/* What digits sort: elements of `type`, IR_U32 or IR_U64, by `bits` of the bits of `number`, from number `shift` on.
 * NULL: by their own bits. */
typedef struct ranking_elements {
    ir_type type;
    uint32_t shift, bits;
    ir_ref (*number)(const ranking *r, ir_ref element);
} ranking_elements;

/* The elements of `all` in ascending order, those with equal bits in the order that they have: in rows from *out_from
 * on (ranking_radix.c). */
ir_ref opjit_fe_ranking_radix(const ranking *r, ir_ref all, uint64_t size, const ranking_elements *elements,
                              uint64_t *out_from);
/* Whether all `size` keys are sorted by digits (ranking_sort.c). */
bool opjit_fe_ranking_has_digits(const ranking *r, uint64_t size);
/* How many elements a network sorts where `size` are: the next power of two. */
uint64_t opjit_fe_ranking_padded(uint64_t size);
/* Whether keys whose places nobody reads are sorted by a network (ranking_sort.c). */
bool opjit_fe_ranking_has_network(const ranking *r, uint64_t size);
/* Keys by a network, the greatest first: in it nothing tells equal ones apart. */
ir_ref opjit_fe_ranking_sort_keys(const ranking *r, ir_ref keys, uint64_t size);
/* Places of keys, in the order of these, the greatest key first: u32 (ranking_sort.c). */
ir_ref opjit_fe_ranking_sort(const ranking *r, ir_ref keys, uint64_t size);

#endif
