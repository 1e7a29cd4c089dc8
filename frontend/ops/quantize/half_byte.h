/* SPDX-License-Identifier: Apache-2.0 */
/* half_byte.h - tensors of 4-bit types: two elements in each byte, the first in its lower half.  In IR such a tensor is
 * its bytes, one dimension of UINT8; here are its elements.  For the files of this folder. */
#ifndef OPJIT_FRONTEND_OPS_HALF_BYTE_H
#define OPJIT_FRONTEND_OPS_HALF_BYTE_H

#include "frontend/ops/op.h"

/* Input i at these coordinates, an integer of 8 or 4 bits, as an INT32. */
ir_ref opjit_fe_small_input(op_lowering *l, uint32_t i, const ir_ref *at);

/* An output that has a 4-bit type has no gaps: a byte is stored as a whole. */
opjit_status opjit_fe_check_halves(const opjit_operator *op, uint32_t output, opjit_error *error);
/* Sets the bytes of such an output from value(user, coordinates), INT32, of which the lower half is taken.  Behind the
 * last element of an odd number is 0. */
typedef ir_ref half_byte_value(void *user, const ir_ref *at);
void opjit_fe_set_halves(op_lowering *l, uint32_t output, half_byte_value *value, void *user);

#endif
