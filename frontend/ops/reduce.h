/* SPDX-License-Identifier: Apache-2.0 */
/* reduce.h - shared by operators over axes: checks of Axes and sizes, definitions between input and output, reductions.
 * For operators of every kind. */
#ifndef OPJIT_FRONTEND_OPS_REDUCE_H
#define OPJIT_FRONTEND_OPS_REDUCE_H

#include "frontend/ops/op.h"

/* Axes of input 0: at least one, each below the rank, none twice. */
opjit_status opjit_fe_check_axes(const opjit_operator *op, const uint32_t *axes, uint32_t count, opjit_error *error);
/* Output 0 has input 0's rank and sizes, with 1 on reduced axes. */
opjit_status opjit_fe_check_reduced(const opjit_operator *op, const uint32_t *axes, uint32_t count, opjit_error *error);
/* One bit per axis. */
uint32_t opjit_fe_axes_mask(const uint32_t *axes, uint32_t count);

/* The type of values between input and output: f32 for FLOAT16, else the type itself. */
ir_type opjit_fe_wide(ir_type type);
/* The number of input 0's elements that the mask's axes span together. */
uint64_t opjit_fe_reduced_count(const op_lowering *l, uint32_t axes);
/* A dense DEF of the input's sizes, with 1 on the mask's axes. */
ir_ref opjit_fe_def(op_lowering *l, ir_type type, uint32_t axes);
/* Such a DEF that reduces.  The caller sets its value; `at` receives its coordinates, those on the axes from the
 * reduction's variable.  The elements are taken in row-major order, in 32 lanes if the last dimension of more than one
 * element is reduced. */
ir_ref opjit_fe_reduce(op_lowering *l, ir_kind kind, ir_type type, uint32_t axes, ir_ref at[OPJIT_MAX_RANK]);
/* A dense DEF of these sizes. */
ir_ref opjit_fe_def_to(op_lowering *l, ir_type type, const fe_tensor *like);
/* A dense DEF of these sizes, each element of which reduces `count` values one after the other.  The caller sets its
 * value, over its coordinates and opjit_ir_reduced. */
ir_ref opjit_fe_reduce_to(op_lowering *l, ir_kind kind, ir_type type, const fe_tensor *like, uint64_t count);
/* The same in so many lanes. */
ir_ref opjit_fe_reduce_lanes(op_lowering *l, ir_kind kind, ir_type type, const fe_tensor *like, uint32_t lanes,
                             uint64_t count);
/* A dense SCATTER of these sizes and `count` updates (opjit_ir_scatter).  The caller sets its parts. */
ir_ref opjit_fe_scatter(op_lowering *l, ir_kind kind, ir_type type, const fe_tensor *like, uint64_t count);
/* The same, of as many values as opjit_ir_set_count says. */
ir_ref opjit_fe_reduce_counted(op_lowering *l, ir_kind kind, ir_type type, const fe_tensor *like);
/* A DEF of the input's sizes that scans along an axis (opjit_ir_scan).  The caller sets its value; `at` receives its
 * coordinates, the one on the axis from the scan's variable. */
ir_ref opjit_fe_scan(op_lowering *l, ir_kind kind, ir_type type, uint32_t axis, bool exclusive,
                     ir_ref at[OPJIT_MAX_RANK]);
/* A dense DEF of these sizes that scans along a dimension.  The caller sets its value. */
ir_ref opjit_fe_scan_to(op_lowering *l, ir_kind kind, ir_type type, const fe_tensor *like, uint32_t dimension,
                        bool exclusive);
/* Input 0 at these coordinates, or at a statement's own, in opjit_fe_wide's type. */
ir_ref opjit_fe_wide_input(op_lowering *l, const ir_ref *at);
/* The value of def (of opjit_fe_def or _reduce) at these coordinates of the input; axes: those that def lacks. */
ir_ref opjit_fe_value_at(op_lowering *l, ir_ref def, uint32_t axes, const ir_ref *at);
/* The coordinates of a statement that has the input's rank. */
void opjit_fe_own(const op_lowering *l, ir_ref statement, ir_ref at[OPJIT_MAX_RANK]);
/* Sets the value of a statement (of opjit_fe_def, _reduce or _output), rounded to the type of what it makes. */
void opjit_fe_set(op_lowering *l, ir_ref statement, ir_ref x);
/* x == -inf ? 0 : exp(x - m), m being the maximum of x and others (softmax.c). */
ir_ref opjit_fe_exp_below(ir_func *f, ir_type type, ir_ref x, ir_ref m);
/* A whole number in a floating type. */
ir_ref opjit_fe_real(ir_func *f, ir_type type, uint64_t value);

#endif
