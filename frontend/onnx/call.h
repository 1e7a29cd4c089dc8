/* SPDX-License-Identifier: Apache-2.0 */
/* call.h - from a model's records to a graph of the builder (opjit/graph.h): values, and what the rows of ops.def
 * write their operators with.  Errors are sticky like the builder's: the first one stays in m->error, and what follows
 * it does nothing. */
#ifndef OPJIT_FRONTEND_ONNX_CALL_H
#define OPJIT_FRONTEND_ONNX_CALL_H

#include <opjit/graph_ops.h>
#include <opjit/model.h>
#include <opjit/reflect.h>

#include "frontend/onnx/onnx.h"

/* What a name stands for.  Its sizes are always known; its elements are if it is a constant. */
typedef struct onnx_value {
    int32_t type;  /* onnx_type */
    uint32_t rank; /* 0: a scalar, which the graph has as one element of rank 1 */
    uint64_t dims[ONNX_RANK];
    opjit_tensor tensor;       /* in the graph; null: not yet, or never (a constant) */
    const void *data;          /* elements, packed, which stay as long as the model; NULL: not known, or not read yet */
    const onnx_tensor *source; /* of a constant whose elements are read when they are asked for; or NULL */
    uint32_t readers;          /* nodes and outputs of its graph that read it */
    const struct onnx_made *made; /* the call that made it, which a reader may make anew; NULL: not remembered */
    const struct onnx_sequence *sequence; /* of type ONNX_SEQUENCE */
    const struct onnx_made *follows; /* a constant of other elements for other sizes: the call of which it is */
    uint32_t output;                 /* that output */
} onnx_value;

/* A list of values, which are tensors or constants. */
typedef struct onnx_sequence {
    const onnx_value *values;
    uint64_t count;
} onnx_sequence;

/* Names of a graph's values, and those of the graphs around it; or of other things. */
typedef struct onnx_scope onnx_scope;

typedef struct onnx_import onnx_import;
struct onnx_row;

/* A node whose inputs are known, on its way into the graph. */
typedef struct onnx_call {
    const onnx_node *node;
    const struct onnx_row *row;
    onnx_value **inputs; /* NULL: absent */
    onnx_value *outputs; /* to be filled; type 0: not yet */
    uint32_t input_count, output_count;
} onnx_call;

/* A function that stands for a node; its nodes' attributes may refer to those of that node. */
typedef struct onnx_frame {
    const struct onnx_frame *outer; /* of the function that the node stands in; NULL: in none */
    const onnx_node *caller;
    const onnx_function *function;
} onnx_frame;

/* A call that was made, and the function that its node stands in. */
typedef struct onnx_made {
    onnx_call call;
    const onnx_frame *frame;
    int64_t opset;
    const opjit_graph *graph; /* where it was made */
} onnx_made;

typedef opjit_status (*onnx_row_fn)(onnx_import *m, onnx_call *c);

/* An operator of ONNX.  A later row of a name has a later version. */
typedef struct onnx_row {
    const char *domain, *name;
    onnx_row_fn make;    /* NULL: refused, and why says why */
    int32_t arg;         /* for a function that makes several operators */
    const char *why;     /* how it is made, or why it is not */
} onnx_row;
extern const onnx_row opjit_onnx_rows[];
extern const uint32_t opjit_onnx_row_count;
const onnx_row *opjit_onnx_find_row(const onnx_node *n);

/* Where elements outside of the file come from. */
typedef struct onnx_files onnx_files;

struct onnx_import {
    opjit_context *context;
    opjit_graph *graph;
    rt_arena *arena;
    const onnx_model *model;
    onnx_files *files;
    onnx_scope *scope;
    const onnx_frame *frame; /* of the function whose nodes are imported; NULL: of none */
    int64_t opset;
    const onnx_scope *functions; /* of the model: the first onnx_function of each name */
    const onnx_scope *makers; /* of the nodes that are being imported: an onnx_maker for each name that they make */
    uint32_t depth;
    uint32_t nodes; /* that were imported, those of functions once for each call */
    uint32_t following; /* calls that are being made again, each for the one before */
    opjit_tensor (*followed)(onnx_import *m, onnx_value *v); /* puts such a constant into the graph (follow.c) */
    bool is_sample; /* the sizes are some of many that one kernel is for */
    struct onnx_computing *computing; /* what values are computed from that have to be known; NULL: none is */
    opjit_status (*compute)(onnx_import *m, onnx_value *v); /* makes a constant of one, with computing (compute.c) */
    opjit_tensor (*carry)(onnx_import *m, onnx_value *v); /* of an earlier graph into this one, likewise (parts.c) */
    opjit_error *error;
};

/* --- errors ------------------------------------------------------------------------------------------------------- */
/* A node that is refused; the place is put in front of the message. */
opjit_status opjit_onnx_refuse(const onnx_import *m, const onnx_call *c, opjit_status status, const char *format, ...)
    PRINTF_LIKE(4, 5);
/* Puts the node in front of the message: node 12 "conv1" (Conv). */
void opjit_onnx_prefix_node(onnx_import *m, const onnx_node *n);

/* --- values ------------------------------------------------------------------------------------------------------- */
/* Says that the call made output 0, for nodes that read it. */
opjit_status opjit_onnx_remember(onnx_import *m, onnx_call *c);
/* The call that made the value, if the row's function is this one; NULL: it is another, or not remembered. */
static inline const onnx_call *onnx_maker(const onnx_import *m, const onnx_value *v, onnx_row_fn make)
{
    return v != NULL && v->made != NULL && v->made->frame == m->frame && v->made->call.row->make == make &&
                   (m->computing == NULL || v->made->graph == m->graph)
               ? &v->made->call
               : NULL;
}
/* Input i; NULL: absent. */
static inline onnx_value *onnx_input(const onnx_call *c, uint32_t i)
{
    return i < c->input_count ? c->inputs[i] : NULL;
}
/* Whether the caller wants output i. */
static inline bool onnx_wants(const onnx_call *c, uint32_t i)
{
    return i < c->output_count && c->node->outputs[i].size != 0;
}
/* Whether the node is one of If, Loop, Scan: nodes of its own come with it. */
static inline bool onnx_has_graph(const onnx_node *n)
{
    for (uint32_t i = 0; i < n->attribute_count; i++)
        if (n->attributes[i].graph != NULL)
            return true;
    return false;
}
uint64_t opjit_onnx_elements_of(const onnx_value *v);
static inline bool onnx_is_constant(const onnx_value *v)
{
    return v->data != NULL || v->source != NULL;
}
/* Whether it is a floating-point type that graphs have: bfloat16 and the types of 8 bits are none. */
static inline bool onnx_is_float(int32_t type)
{
    return type == ONNX_FLOAT || type == ONNX_FLOAT16 || type == ONNX_DOUBLE;
}
/* Whether graphs compute the type in FLOAT32. */
static inline bool onnx_is_single(int32_t type)
{
    return opjit_onnx_dtype(type) == DML_TENSOR_DATA_TYPE_FLOAT32;
}
/* Refuses a call without its first `count` inputs. */
opjit_status opjit_onnx_need(onnx_import *m, const onnx_call *c, uint32_t count);
/* The value in the graph; null: there was an error.  A constant becomes one of the graph. */
opjit_tensor opjit_onnx_tensor(onnx_import *m, onnx_value *v);
static inline opjit_tensor onnx_tensor_of(onnx_import *m, const onnx_call *c, uint32_t i)
{
    onnx_value *v = onnx_input(c, i);
    return v == NULL ? (opjit_tensor){ 0, 0 } : opjit_onnx_tensor(m, v);
}
/* The elements of a constant, packed, where the file has them: at any address; NULL: it is none, or there was an
 * error. */
const void *opjit_onnx_stored(onnx_import *m, onnx_value *v);
/* The same at a multiple of an element's size: in a copy if need be. */
const void *opjit_onnx_data(onnx_import *m, onnx_value *v);
/* Memory for elements, which stays as long as the model, aligned as kernels borrow constants.  NULL: there was none,
 * which is the error. */
void *opjit_onnx_memory(onnx_import *m, uint64_t bytes);
/* The same, not zeroed: for what is written as a whole. */
void *opjit_onnx_room(onnx_import *m, uint64_t bytes);
/* Integers of a constant input (or of an absent one: count 0), in the arena.  Refuses one that is not known. */
opjit_status opjit_onnx_input_ints(onnx_import *m, const onnx_call *c, uint32_t i, int64_t **out, uint32_t *out_count);
/* A constant input's elements as numbers. */
opjit_status opjit_onnx_input_floats(onnx_import *m, const onnx_call *c, uint32_t i, double **out,
                                     uint32_t *out_count);
/* The same for an input that has to be one number; *out stays where it is absent. */
opjit_status opjit_onnx_input_int(onnx_import *m, const onnx_call *c, uint32_t i, int64_t *out);

/* A value that has to be known becomes a constant, if what a call brings is known; else it stays as it is. */
static inline opjit_status onnx_compute(onnx_import *m, onnx_value *v)
{
    return m->computing == NULL ? OPJIT_OK : m->compute(m, v);
}

/* Whether the import goes on; an error of its graph becomes its own. */
opjit_status opjit_onnx_status(onnx_import *m);
/* Output i is the tensor, of the type, and of `rank` dimensions with the tensor's last sizes. */
opjit_status opjit_onnx_give(onnx_import *m, onnx_call *c, uint32_t i, opjit_tensor tensor, int32_t type,
                             uint32_t rank);
/* The same, reshaped. */
opjit_status opjit_onnx_give_as(onnx_import *m, onnx_call *c, uint32_t i, opjit_tensor tensor, int32_t type,
                                uint32_t rank, const uint64_t *dims);
/* Output i is a constant with these elements, which stay in memory. */
opjit_status opjit_onnx_give_data(onnx_import *m, onnx_call *c, uint32_t i, int32_t type, uint32_t rank,
                                  const uint64_t *dims, const void *data);
/* Output i is a constant of no elements. */
opjit_status opjit_onnx_give_nothing(onnx_import *m, onnx_call *c, uint32_t i, int32_t type, uint32_t rank,
                                     const uint64_t *dims);
/* Output i has that one element, of the type, everywhere. */
opjit_status opjit_onnx_give_everywhere(onnx_import *m, onnx_call *c, uint32_t i, opjit_tensor one, int32_t type,
                                        uint32_t rank, const uint64_t *dims);
/* Output i is the value itself. */
opjit_status opjit_onnx_give_value(onnx_import *m, onnx_call *c, uint32_t i, const onnx_value *v);
/* The value in other sizes, of as many elements; a constant stays one. */
opjit_status opjit_onnx_give_reshaped(onnx_import *m, onnx_call *c, onnx_value *v, uint32_t rank, const uint64_t *dims);
/* The tensor by other sizes. */
opjit_tensor opjit_onnx_reshape(onnx_import *m, opjit_tensor tensor, uint32_t rank, const uint64_t *dims);
/* The parts, of which there is one or more, one behind the other along the axis; the array is overwritten. */
opjit_tensor opjit_onnx_join(onnx_import *m, opjit_tensor *parts, uint32_t count, uint32_t axis);
/* The tensor with elements repeated: by sizes `apart`, which have 1 where `wide` repeats, read as `rank` dims. */
opjit_tensor opjit_onnx_repeat(onnx_import *m, opjit_tensor tensor, uint32_t count, const uint64_t *apart,
                               const uint32_t *wide, uint32_t rank, const uint64_t *dims);
/* The elements of input i along one axis of the rank, all other sizes 1; null where it is absent. */
opjit_tensor opjit_onnx_vector(onnx_import *m, const onnx_call *c, uint32_t i, uint32_t rank, uint32_t axis);
/* Adds an operator of several outputs, whose tensors are null if there was an error. */
void opjit_onnx_add(onnx_import *m, DML_OPERATOR_TYPE type, const void *desc, const opjit_tensor *inputs,
                    uint32_t input_count, opjit_tensor *outputs, uint32_t output_count);
/* What the row makes of these inputs, as the node's attributes say, in *out: its output 0, for the call's own use. */
opjit_status opjit_onnx_call_row(onnx_import *m, const onnx_call *c, const onnx_node *node, const onnx_row *row,
                                 onnx_value **inputs, uint32_t input_count, onnx_value *out);
/* The tensor as a value of the sizes that v has. */
static inline onnx_value onnx_value_of(const onnx_value *v, int32_t type, opjit_tensor tensor)
{
    onnx_value made = { .type = type, .rank = v->rank, .tensor = tensor };
    memcpy(made.dims, v->dims, sizeof made.dims);
    return made;
}
/* Elements that stay in memory as a tensor of the graph: {rows, columns}, or where columns is 0, {rows}. */
opjit_tensor opjit_onnx_table(onnx_import *m, int32_t type, uint64_t rows, uint64_t columns, const void *data);
/* A scalar of the type that the value has. */
opjit_tensor opjit_onnx_scalar(onnx_import *m, int32_t type, double value);
/* The tensor in another type (onnx_type), as graphs compute with it: not rounded to float16. */
opjit_tensor opjit_onnx_cast(onnx_import *m, opjit_tensor tensor, int32_t from, int32_t to);
/* A tensor of the type's elements as files, inputs and outputs have them, as graphs compute with them; and back. */
opjit_tensor opjit_onnx_from_stored(onnx_import *m, opjit_tensor tensor, int32_t type);
opjit_tensor opjit_onnx_to_stored(onnx_import *m, opjit_tensor tensor, int32_t type);

/* An axis or index of the rank, negative ones counted from the end. */
opjit_status opjit_onnx_axis(onnx_import *m, const onnx_call *c, int64_t axis, uint32_t rank, uint32_t *out);
/* Axes out of an attribute or (input >= 0) a constant input, ascending without doubles; none given: count 0. */
opjit_status opjit_onnx_axes(onnx_import *m, const onnx_call *c, const char *name, int32_t input, uint32_t rank,
                             uint32_t *out, uint32_t *out_count);

/* --- attributes --------------------------------------------------------------------------------------------------- */
/* NULL: absent.  Inside of functions references are followed. */
const onnx_attribute *opjit_onnx_attribute(const onnx_import *m, const onnx_call *c, const char *name);
/* The attribute's value; otherwise: that of an absent one.  An attribute of another kind is refused. */
int64_t opjit_onnx_int(const onnx_import *m, const onnx_call *c, const char *name, int64_t otherwise);
float opjit_onnx_float(const onnx_import *m, const onnx_call *c, const char *name, float otherwise);
/* Whether the attribute is that text; likewise. */
bool opjit_onnx_text_is(const onnx_import *m, const onnx_call *c, const char *name, const char *text,
                        const char *otherwise);
/* As many numbers as the spatial dimensions say, all `otherwise` where the attribute is absent. */
opjit_status opjit_onnx_spatial(onnx_import *m, const onnx_call *c, const char *name, uint32_t count,
                                uint32_t otherwise, uint32_t *out);

/* --- scope.c, order.c, import.c, fold.c ------------------------------------------------------------------------- */
struct onnx_scope {
    onnx_scope *parent; /* NULL: none; a function has none */
    struct onnx_name *names;
    uint32_t count, capacity;
};
/* With room for as many names, beyond which it grows.  NULL: no memory. */
onnx_scope *opjit_onnx_scope(onnx_import *m, onnx_scope *parent, uint64_t count);
/* The scope's name stands for what is there, which stays as long. */
opjit_status opjit_onnx_enter(onnx_import *m, onnx_scope *s, wire_bytes name, void *what);
void *opjit_onnx_find(const onnx_scope *s, wire_bytes name); /* of this scope alone; NULL: there is none */
/* A name of m->scope stands for a copy of the value. */
opjit_status opjit_onnx_define(onnx_import *m, wire_bytes name, const onnx_value *v);
onnx_value *opjit_onnx_lookup(const onnx_import *m, wire_bytes name); /* in all of them; NULL: there is none */
/* How many names the nodes make. */
uint64_t opjit_onnx_output_count(const onnx_node *nodes, uint32_t count);
/* Imports initializers and those nodes that the wanted names need; the scope is m->scope. */
opjit_status opjit_onnx_nodes(onnx_import *m, const onnx_node *nodes, uint32_t count, const wire_bytes *wanted,
                              uint32_t wanted_count);
opjit_status opjit_onnx_initializers(onnx_import *m, const onnx_graph *g);
/* Makes a table of the model's functions, which nodes are looked up in. */
opjit_status opjit_onnx_functions(onnx_import *m, onnx_model *model);
/* Whether the row's inputs may be sequences and optional values; others are never called with such (ops/sequence.c). */
bool opjit_onnx_takes_lists(const onnx_row *row);
/* Runs the call on constants alone, and gives constants. */
opjit_status opjit_onnx_fold(onnx_import *m, onnx_call *c);
/* A call with an input without elements, if none of its outputs has any: their sizes (empty.c). */
bool opjit_onnx_has_empty(const onnx_call *c);
opjit_status opjit_onnx_make_empty(onnx_import *m, onnx_call *c, bool *done);
/* follow.c: notes which of the call's outputs are constants that follow from a dynamic dimension; one of these in the
 * graph. */
opjit_status opjit_onnx_follow(onnx_import *m, onnx_call *c);
opjit_tensor opjit_onnx_followed(onnx_import *m, onnx_value *v);
/* The elements of a tensor in another file (files.c). */
const void *opjit_onnx_external(onnx_files *files, const onnx_tensor *t, opjit_error *error);

/* at_once.c: a Scan of these many states, whose inputs were checked; *done false: its rounds wait for each other, or
 * the body is another. */
opjit_status opjit_onnx_scan_at_once(onnx_import *m, onnx_call *c, const onnx_graph *body, uint32_t states, bool *done);

#endif
