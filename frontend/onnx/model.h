/* SPDX-License-Identifier: Apache-2.0 */
/* model.h - a model that was read: what model.c and inputs.c share. */
#ifndef OPJIT_FRONTEND_ONNX_MODEL_H
#define OPJIT_FRONTEND_ONNX_MODEL_H

#include "frontend/onnx/compute.h"
#include "frontend/onnx/files.h"

/* An input or output. */
typedef struct onnx_model_port {
    const char *name;
    int32_t type;
    uint32_t rank;
    uint64_t dims[ONNX_RANK];
    int32_t binding;
    const onnx_port *record; /* of an input */
} onnx_model_port;

/* Sizes of dynamic dimensions, which come before all that options say. */
typedef struct onnx_sizes {
    const opjit_dim *dims;
    const uint64_t *sizes;
    uint32_t count;
} onnx_sizes;

struct opjit_model {
    opjit_context *context;
    rt_core *core;
    rt_arena arena;
    wire_bytes file; /* mapped; or data NULL */
    onnx_files files;
    opjit_graph *graph;
    onnx_model records;
    wire_bytes bytes;            /* of the model: file's, or the caller's */
    opjit_model_options options; /* copied */
    onnx_computing computing;
    opjit_model *samples;        /* readings for other sizes, which kernels borrow from; each has the next one here */
    onnx_model_port *inputs, *outputs;
    uint32_t input_count, output_count;
};

/* The name, cut where it is too long; NULL: no memory. */
const char *opjit_onnx_port_name(opjit_model *model, wire_bytes text, opjit_error *error);
/* The input, in the graph or as a constant.  sample: NULL where all sizes are the options'. */
opjit_status opjit_onnx_add_input(opjit_model *model, onnx_import *m, const onnx_port *p, const opjit_model_options *o,
                                  const onnx_sizes *sample);
/* Refuse names that the model has not: of a dimension; all of the options'. */
opjit_status opjit_onnx_check_dim(const onnx_graph *g, const char *name, opjit_error *error);
opjit_status opjit_onnx_check_options(const onnx_graph *g, const opjit_model_options *o, opjit_error *error);

#endif
