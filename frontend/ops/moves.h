/* SPDX-License-Identifier: Apache-2.0 */
/* moves.h - shared by the operators that only move elements: checks of counts, axes and sizes, loads at computed
 * coordinates, and indices that come from data.  For operators of every kind. */
#ifndef OPJIT_FRONTEND_OPS_MOVES_H
#define OPJIT_FRONTEND_OPS_MOVES_H

#include "frontend/ops/op.h"

/* The types that indices and lengths may have. */
#define MOVES_INDEX_TYPES (OP_TYPES(INT64) | OP_TYPES(INT32) | OP_TYPES(UINT64) | OP_TYPES(UINT32))
#define MOVES_RANKS 1, OPJIT_MAX_RANK

/* --- checks: one line with operator, field, value and what is allowed -------------------------------------------- */
/* A count field that must be the rank of input 0. */
opjit_status opjit_fe_check_count(const opjit_operator *op, const char *field, uint32_t count, opjit_error *error);
/* The axis is one of input 0. */
opjit_status opjit_fe_check_axis(const opjit_operator *op, uint32_t axis, opjit_error *error);
/* name.DimensionCount is rank; why: the reason with a space before it, such as " as InputTensor.DimensionCount". */
opjit_status opjit_fe_check_rank(const opjit_operator *op, const char *name, const fe_tensor *tensor, uint32_t rank,
                                 const char *why, opjit_error *error);
/* name.Sizes[d] is size; why: "" or the reason with a space before it. */
opjit_status opjit_fe_check_size(const opjit_operator *op, const char *name, const fe_tensor *tensor, uint32_t d,
                                 uint64_t size, const char *why, opjit_error *error);
/* Input 0 and output i have the same type and rank. */
opjit_status opjit_fe_check_pair(const opjit_operator *op, uint32_t output, opjit_error *error);
/* field[d] is at least `least` and at most `most`; why as above. */
opjit_status opjit_fe_check_entry(const opjit_operator *op, const char *field, uint32_t d, uint64_t value,
                                  uint64_t least, uint64_t most, const char *why, opjit_error *error);

/* --- for lowerings ------------------------------------------------------------------------------------------------ */
static inline ir_ref moves_add(ir_func *f, ir_ref x, int64_t c)
{
    return ir_expr2(f, IR_IADD, IR_INDEX, x, opjit_ir_index(f, c));
}
static inline ir_ref moves_mul(ir_func *f, ir_ref x, int64_t c)
{
    return ir_expr2(f, IR_IMUL, IR_INDEX, x, opjit_ir_index(f, c));
}
/* (x / below) % size: a coordinate of a row-major number; below: the elements of one step along it. */
static inline ir_ref moves_digit(ir_func *f, ir_ref x, uint64_t below, uint64_t size)
{
    const ir_ref steps = ir_expr2(f, IR_IDIV, IR_INDEX, x, opjit_ir_index(f, (int64_t)below));
    return ir_expr2(f, IR_IMOD, IR_INDEX, steps, opjit_ir_index(f, (int64_t)size));
}
/* clamp(x, 0, size - 1) */
ir_ref opjit_fe_inside(ir_func *f, ir_ref x, uint64_t size);
/* first <= x < first + size */
ir_ref opjit_fe_between(ir_func *f, ir_ref x, int64_t first, uint64_t size);
/* An element of an index tensor as a coordinate below size: negative values of signed types count from the end, then
 * all are clamped. */
ir_ref opjit_fe_index_of(op_lowering *l, ir_ref element, uint64_t size);
/* The same before the clamp: in [-1, size], where -1 and size are outside. */
ir_ref opjit_fe_index_from_end(op_lowering *l, ir_ref element, uint64_t size);

#endif
