/* SPDX-License-Identifier: Apache-2.0 */
/* reduce.h - what operators over axes share: checks of Axes and sizes, definitions between input and output,
 * reductions. For the operators of this folder alone. */
#ifndef OPJIT_FRONTEND_OPS_REDUCE_H
#define OPJIT_FRONTEND_OPS_REDUCE_H

#include "frontend/ops/op.h"

/* Axes of input 0: at least one, each below the rank, none twice. */
opjit_status opjit_fe_check_axes(const opjit_operator *op, const uint32_t *axes, uint32_t count, opjit_error *error);
/* Output 0 has input 0's rank and sizes, 1 where an axis is reduced. */
opjit_status opjit_fe_check_reduced(const opjit_operator *op, const uint32_t *axes, uint32_t count, opjit_error *error);
/* A bit an axis. */
uint32_t opjit_fe_axes_mask(const uint32_t *axes, uint32_t count);

/* f32 for FLOAT16, else the type itself: what is computed between input and output. */
ir_type opjit_fe_wide(ir_type type);
/* How many elements of input 0 the axes of the mask have together. */
uint64_t opjit_fe_reduced_count(const op_lowering *l, uint32_t axes);
/* A DEF of the input's sizes, 1 where an axis of the mask is reduced; dense. */
ir_ref opjit_fe_def(op_lowering *l, ir_type type, uint32_t axes);
/* The same that reduces: set its value; its coordinates, with those of the axes from its variable, come to at.  The
 * elements are taken row-major, in 32 lanes where the last dimension of more than one element is reduced. */
ir_ref opjit_fe_reduce(op_lowering *l, ir_kind kind, ir_type type, uint32_t axes, ir_ref at[OPJIT_MAX_RANK]);
/* A DEF of the input's sizes that runs along an axis (opjit_ir_scan): set its value; its coordinates, on the axis the
 * variable, come to at. */
ir_ref opjit_fe_scan(op_lowering *l, ir_kind kind, ir_type type, uint32_t axis, bool exclusive,
                     ir_ref at[OPJIT_MAX_RANK]);
/* Input 0 at these coordinates, or at a statement's own, as opjit_fe_wide. */
ir_ref opjit_fe_wide_input(op_lowering *l, const ir_ref *at);
/* What def (of opjit_fe_def or _reduce) has at these coordinates of the input; axes: those that it has no more. */
ir_ref opjit_fe_value_at(op_lowering *l, ir_ref def, uint32_t axes, const ir_ref *at);
/* The coordinates of a statement with the input's rank. */
void opjit_fe_own(const op_lowering *l, ir_ref statement, ir_ref at[OPJIT_MAX_RANK]);
/* A whole number in a floating type. */
ir_ref opjit_fe_real(ir_func *f, ir_type type, uint64_t value);

#endif
