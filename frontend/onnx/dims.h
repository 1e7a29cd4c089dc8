/* SPDX-License-Identifier: Apache-2.0 */
/* dims.h - sizes of dimensions that have names. */
#ifndef OPJIT_FRONTEND_ONNX_DIMS_H
#define OPJIT_FRONTEND_ONNX_DIMS_H

#include <opjit/model.h>
#include <opjit/opjit.h>

#include "frontend/onnx/wire.h"

/* Sizes of dynamic dimensions, which come before all that options say. */
typedef struct onnx_sizes {
    const opjit_dim *dims;
    const uint64_t *sizes;
    uint32_t count;
} onnx_sizes;

/* The size that sums, differences and products of numbers and known dimensions give, such as "past + 1".
 * false: it is none, or a dimension is not known. */
bool opjit_onnx_follow_size(wire_bytes text, const opjit_model_options *o, const onnx_sizes *sample, uint64_t *out);
/* Whether the text reads the dimension. */
bool opjit_onnx_reads_dim(wire_bytes text, wire_bytes name);
/* The size of the dimension for which the text, which is linear in it, gives `size`.  false: there is none. */
bool opjit_onnx_solve_size(wire_bytes text, const opjit_model_options *o, const char *name, uint64_t size,
                           uint64_t *out);
/* Whether a dimension of options or of a kernel, such as "height/32", is the model's dimension `own`, whose size is
 * *out_step times its own: 1 for the name alone. */
bool opjit_onnx_dim_is(const char *name, wire_bytes own, uint64_t *out_step);
/* If it is: that size, for one of the name; UINT64_MAX: it is too much. */
bool opjit_onnx_dim_size(const char *name, uint64_t size, wire_bytes own, uint64_t *out);
/* The parts of a dimension in options that is "total=past + 1".  false: it is just a name. */
bool opjit_onnx_split_dim(const char *name, wire_bytes *out_name, wire_bytes *out_text);

#endif
