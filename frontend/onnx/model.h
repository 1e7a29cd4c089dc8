/* SPDX-License-Identifier: Apache-2.0 */
/* model.h - a model that was read: what model.c and inputs.c share. */
#ifndef OPJIT_FRONTEND_ONNX_MODEL_H
#define OPJIT_FRONTEND_ONNX_MODEL_H

#include "frontend/onnx/compute.h"
#include "frontend/onnx/dims.h"
#include "frontend/onnx/identity.h"

/* An input or output. */
typedef struct onnx_model_port {
    const char *name;
    int32_t type;
    uint32_t rank;
    uint64_t dims[ONNX_RANK];
    int32_t binding;
    const onnx_port *record; /* of an input */
} onnx_model_port;

/* What the disk cache knows of a model (stored.c). */
typedef struct onnx_stored {
    rt_disk_map map; /* the entry, which `known` and the model's ports point into */
    fe_known known;  /* where is_found; else its identity alone, where is_known */
    bool is_known;   /* all that kernels of it are made of is in its bytes and options, which identity stands for */
    bool is_found;   /* the entry is there: the model need not be read */
    bool is_done;    /* it is there, or can't be */
} onnx_stored;

struct opjit_model {
    opjit_context *context;
    rt_core *core;
    rt_arena arena;
    wire_bytes file; /* mapped; or data NULL */
    rt_mapped mapped; /* it */
    onnx_files files;
    opjit_graph *graph;          /* NULL: it was not read, as the disk cache knows it */
    onnx_named named;            /* its bytes, and what else the disk cache names it after */
    onnx_stored stored;
    struct opjit_model *whole;   /* the same, read; among samples; NULL: this one is, or nobody needed it */
    onnx_model records;
    opjit_model_options options; /* copied */
    onnx_computing computing;
    opjit_model *samples;        /* readings for other sizes, which kernels borrow from; each has the next one here */
    onnx_model_port *inputs, *outputs;
    uint32_t input_count, output_count;
};

/* Finds what the model is in the disk cache, so that it need not be read: inputs, outputs, stored.known.  false: it has
 * to be read. */
bool opjit_onnx_recall(opjit_model *model);
/* Reads an entry, which the model then points into: inputs, outputs, stored.known without identity.  false: it is
 * damaged. */
bool opjit_onnx_take_stored(opjit_model *model, const rt_disk_map *map);
/* Writes that there, of a model that was read. */
void opjit_onnx_store(opjit_model *model);
/* A reading of the model's bytes apart, with its options; what there is of it is the caller's to close, also where it
 * fails. */
opjit_status opjit_onnx_read_apart(const opjit_model *model, const onnx_sizes *sample, opjit_model **out,
                                   opjit_error *error);
/* The model as it was read: now, where nobody has needed that. */
opjit_status opjit_onnx_whole(opjit_model *model, opjit_model **out, opjit_error *error);
/* The options with constants where the model has them. */
opjit_status opjit_onnx_borrowing(const opjit_compile_options *options, opjit_compile_options *out,
                                  opjit_error *error);
/* The name, cut where it is too long; NULL: no memory. */
const char *opjit_onnx_port_name(opjit_model *model, wire_bytes text, opjit_error *error);
/* The input, in the graph or as a constant.  sample: NULL where all sizes are the options'. */
opjit_status opjit_onnx_add_input(opjit_model *model, onnx_import *m, const onnx_port *p, const opjit_model_options *o,
                                  const onnx_sizes *sample);
/* Refuse names that neither the model has nor a size in the options reads: of a dimension; all of the options'. */
opjit_status opjit_onnx_check_dim(const onnx_graph *g, const opjit_model_options *o, const char *name,
                                  opjit_error *error);
opjit_status opjit_onnx_check_options(const onnx_graph *g, const opjit_model_options *o, opjit_error *error);

#endif
