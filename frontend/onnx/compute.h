/* SPDX-License-Identifier: Apache-2.0 */
/* compute.h - values that are computed from what a call brings, while the model is read. */
#ifndef OPJIT_FRONTEND_ONNX_COMPUTE_H
#define OPJIT_FRONTEND_ONNX_COMPUTE_H

#include "frontend/frontend.h"
#include "frontend/onnx/call.h"

typedef struct onnx_block onnx_block;

/* A tensor that one part of the model made and others read. */
typedef struct onnx_carried {
    opjit_tensor_type type;
    void *data; /* where it is; NULL: it is over */
    uint64_t bytes; /* a multiple of 4 */
    onnx_block *block; /* of the data; NULL: it is in the arena */
    uint32_t users; /* names that have yet to be read */
    bool is_kept; /* it stays where it is */
    bool is_listed; /* in a list of what is over */
    struct onnx_carried *next; /* of that list */
    opjit_tensor input; /* what it is in the part that read it last */
} onnx_carried;

/* How many nodes and outputs have yet to read the elements of a name. */
typedef struct onnx_uses {
    uint32_t count;
    onnx_carried *held; /* for them; NULL: nothing */
} onnx_uses;

/* What a graph gave its node: the uses of an output's name, until the node has read it. */
typedef struct onnx_given {
    struct onnx_given *next;
    onnx_uses *uses; /* NULL: no node of the graph made it, or it was read */
} onnx_given;

/* A part of the model: the graph of the nodes from one value that had to be known to the next one.  Its inputs are the
 * model's, in their order, then what it reads of parts before it. */
typedef struct onnx_part {
    struct onnx_part *before;
    opjit_graph *graph;
    uint32_t mark; /* of the graph's tensors */
    bool is_cut;   /* it has been called: nodes from here on are the next part's */
    onnx_carried **carried; /* by index of the graph's tensors: those that were put into memory */
    uint32_t carried_count;
    onnx_carried **inputs;  /* behind the model's */
    uint32_t input_count, input_capacity;
} onnx_part;

/* A call of a part's kernel. */
typedef struct onnx_step {
    struct onnx_step *next;
    opjit_kernel *kernel;
    opjit_binding *bindings; /* inputs, then outputs */
    onnx_carried **carried;  /* by binding; NULL: an input of the model */
    uint32_t input_count, binding_count;
    onnx_carried *over; /* what is read for the last time here, or was before */
} onnx_step;

/* A value that the model was read with. */
typedef struct onnx_computed {
    struct onnx_computed *next;
    const void *now;   /* as the last calls made it */
    const void *value; /* as the model was read with it */
    uint64_t bytes;
} onnx_computed;

/* An input of the graph whose elements a call brings. */
typedef struct onnx_brought {
    const char *name;
    opjit_tensor_type type;
    const void *value; /* NULL: they are not known */
    void *copy;        /* where kernels read them */
    uint64_t bytes;
} onnx_brought;

/* A value of the last part that has a name, and who has yet to read it. */
typedef struct onnx_watched {
    const onnx_value *value;
    onnx_uses *uses;
} onnx_watched;

/* What values are computed from, and those that were. */
typedef struct onnx_computing {
    const opjit_compile_options *options; /* NULL: default ones */
    onnx_brought *inputs; /* in the order of the graph's */
    uint32_t input_count, count;
    onnx_part *part; /* the last one, which nodes are added to */
    onnx_step *first, *last;
    const opjit_allocator *allocator;
    onnx_block *free_blocks;
    uint64_t block_bytes; /* of all blocks */
    onnx_given *given; /* by graphs of nodes that are being imported: output 0 of the last graph first */
    onnx_carried *over; /* those without users, since a part was cut last */
    onnx_computed *values;
    onnx_watched *watched;
    uint32_t watched_count, watched_capacity;
    opjit_binding *carried; /* what the last part's kernel reads besides the model's inputs */
    uint32_t carried_count;
} onnx_computing;

/* By input of the graph, whether anything reads it: kernels have no binding for others. */
opjit_status opjit_onnx_find_read(opjit_graph *graph, rt_arena *arena, bool **out, uint32_t *out_count,
                                  opjit_error *error);
/* An input of the graph, after those before it, becomes known to what has to be computed; NULL: its value is not. */
void opjit_onnx_bring(onnx_import *m, const char *name, opjit_tensor tensor, const opjit_model_input *given);
/* The model's first part, whose graph has the inputs. */
opjit_status opjit_onnx_first_part(onnx_import *m);
/* A value that a node made, and who has yet to read its elements. */
opjit_status opjit_onnx_watch(onnx_import *m, const onnx_value *v, onnx_uses *uses);
/* A use is over. */
void opjit_onnx_drop_use(onnx_import *m, onnx_uses *uses);
/* A graph gives its node an output with these uses (NULL: it has none), before those that it gave already. */
opjit_status opjit_onnx_add_given(onnx_import *m, onnx_uses *uses);
/* What a loop's next round gave is in its place: the states that came before are read.  before, now: what was given
 * last when either round had ended; output `first` is the first of that many states. */
void opjit_onnx_end_round(onnx_import *m, onnx_given *before, const onnx_given *now, uint32_t first, uint32_t states);
/* The node whose graphs gave what there is beyond `mark` has read it. */
void opjit_onnx_end_given(onnx_import *m, const onnx_given *mark);
static inline onnx_given *onnx_given_last(const onnx_import *m)
{
    return m->computing == NULL ? NULL : m->computing->given;
}
/* The tensor stays in memory as long as these uses last. */
void opjit_onnx_hold(onnx_carried *c, onnx_uses *uses);
/* Gives a new tensor memory of its own, if it is small. */
opjit_status opjit_onnx_prepare(onnx_import *m, onnx_carried *c);
/* What nobody reads any more is over when the step, by which a part was cut, has been called. */
void opjit_onnx_list_over(onnx_computing *w, onnx_step *s);
/* Whether a value was computed since the last part began, so that nodes go to the next one. */
bool opjit_onnx_is_cut(const onnx_import *m);
/* Begins the next part, if the last one was cut. */
opjit_status opjit_onnx_next_part(onnx_import *m);
/* Where the value's elements are: they are computed now, unless they are in memory.  *known false: they depend on an
 * input that is not known. */
opjit_status opjit_onnx_in_memory(onnx_import *m, const onnx_value *v, onnx_carried **out, bool *known);
/* Copies the inputs' elements to where the kernels read them. */
void opjit_onnx_copy_inputs(const onnx_computing *w);
opjit_status opjit_onnx_call_step(onnx_computing *w, const onnx_step *s, opjit_error *error);
/* What was over by this step makes room for others. */
void opjit_onnx_end_step(onnx_computing *w, const onnx_step *s);
opjit_status opjit_onnx_call_steps(onnx_computing *w, opjit_error *error);
/* Lists the carried values that the model's graph reads, which has these inputs besides the model's. */
opjit_status opjit_onnx_list_carried(onnx_computing *w, const bool *is_read, uint32_t count, rt_arena *arena,
                                     opjit_error *error);
void opjit_onnx_free_blocks(onnx_computing *w);
/* Frees kernels, what they hand on, and the graphs except this one. */
void opjit_onnx_close_parts(onnx_computing *w, const opjit_graph *graph);
/* An onnx_import's compute: the value becomes a constant, whose elements are computed now. */
opjit_status opjit_onnx_compute(onnx_import *m, onnx_value *v);
/* An onnx_import's carry: the value of a part before as a tensor of the last one. */
opjit_tensor opjit_onnx_carry(onnx_import *m, onnx_value *v);
/* Computes all values again, from what is now where the inputs' values are; UNSUPPORTED: one is another. */
opjit_status opjit_onnx_compute_again(onnx_computing *w, opjit_error *error);

#endif
