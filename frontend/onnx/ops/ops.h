/* SPDX-License-Identifier: Apache-2.0 */
/* ops.h - the functions behind the rows of ops.def: each makes its operator's outputs of a call. */
#ifndef OPJIT_FRONTEND_ONNX_OPS_H
#define OPJIT_FRONTEND_ONNX_OPS_H

#include "frontend/onnx/call.h"

#define ROW(domain, name, make, arg, text) opjit_status opjit_onnx_##make(onnx_import *m, onnx_call *c);
#define REFUSED(domain, name, why)
#include "frontend/onnx/ops/ops.def"
#undef ROW
#undef REFUSED

/* Output 0 becomes what attribute `activation` makes of it; numbers: its parameters, in ONNX's order. */
opjit_status opjit_onnx_activate(onnx_import *m, onnx_call *c, const float *numbers);
/* The bounds of a Clip that are known, infinite ones where it has none.  False: others are not, or no float holds them,
 * or the least is above the greatest. */
bool opjit_onnx_clip_bounds(onnx_import *m, const onnx_call *c, double bounds[2]);
/* pointwise.c: x to a number; squares, cubes and roots are such. */
opjit_tensor opjit_onnx_power(onnx_import *m, opjit_tensor x, int32_t type, double exponent);
/* ml.c: the input's rows and columns; a vector is one row. */
opjit_status opjit_onnx_samples(onnx_import *m, const onnx_call *c, uint64_t sizes[2]);
/* ml.c: the input's elements as floats. */
opjit_tensor opjit_onnx_sample_floats(onnx_import *m, const onnx_call *c);
/* ml.c: how many numbers an attribute has; floats, or ints where it has such. */
uint32_t opjit_onnx_count_numbers(const onnx_import *m, const onnx_call *c, const char *name);
/* ml.c: an attribute's numbers, as many as the sizes say, as a tensor; null: they were refused. */
opjit_tensor opjit_onnx_number_table(onnx_import *m, const onnx_call *c, const char *name, int32_t type, uint32_t rank,
                                     const uint64_t *dims);
/* ml.c: what attribute post_transform makes of scores {rows, classes}, FLOAT. */
opjit_status opjit_onnx_transformed(onnx_import *m, const onnx_call *c, opjit_tensor *scores);
/* place.c: `past`, of the sizes in dims, with `count` rows of `news` along the axis in the place of its own;
 * `first`, INT32, broadcast to past's sizes, says which is the first one; those behind the last go nowhere, or
 * (circular) on from 0. */
opjit_tensor opjit_onnx_write_rows(onnx_import *m, opjit_tensor past, opjit_tensor news, uint32_t rank,
                                   const uint64_t *dims, uint32_t axis, uint64_t count, opjit_tensor first,
                                   bool circular);
/* A permutation of the tensor's dimensions. */
opjit_tensor opjit_onnx_transpose_tensor(onnx_import *m, opjit_tensor x, uint32_t rank, const uint32_t *axes);
/* rotary.c: rows of a table of cosines or sines that an input is, {batch or 1, rows, 1, half}: those at the
 * positions that another input says, or at all of them from the one number on that it is. */
opjit_tensor opjit_onnx_angles(onnx_import *m, const onnx_call *c, uint32_t table, uint32_t positions, uint64_t batch,
                               uint64_t rows, uint64_t half);
/* {batch, rows, heads, width}, the sizes in dims: `half` pairs of elements are turned by angles, the rest stays. */
opjit_tensor opjit_onnx_turned(onnx_import *m, opjit_tensor t, const uint64_t *dims, uint64_t half, opjit_tensor cosine,
                               opjit_tensor sine, bool interleaved);

#endif
