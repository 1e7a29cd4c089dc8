/* SPDX-License-Identifier: Apache-2.0 */
/* recurrent.h - what RNN, GRU and LSTM are made of: networks whose hidden values at one time are computed from those at
 * the time before.  For rnn.c, gru.c, lstm.c and dynamic_quantize_lstm.c.
 *
 * Definitions have the coordinates [step, direction, batch, element].  A step is a value of time, counted from the end
 * of each sequence where the direction is backward.  All is computed in FLOAT32, and rounded where it is stored. */
#ifndef OPJIT_FRONTEND_OPS_RECURRENT_H
#define OPJIT_FRONTEND_OPS_RECURRENT_H

#include "frontend/ops/pointwise.h"
#include "frontend/ops/reduce.h"

/* Positions that all have in common. */
enum { RECURRENT_INPUT, RECURRENT_WEIGHT, RECURRENT_RECURRENCE, RECURRENT_BIAS, RECURRENT_HIDDEN };
enum { RECURRENT_SEQUENCE, RECURRENT_SINGLE, RECURRENT_CELL };
#define RECURRENT_NONE UINT32_MAX

extern const op_enum opjit_fe_recurrent_directions;

/* Fields of an operator, and what its tensors say. */
typedef struct recurrent {
    uint64_t gates, times, directions, batch, hidden, inputs; /* inputs: elements of one time */
    uint32_t lengths;       /* position of SequenceLengthsTensor; RECURRENT_NONE: there is no such field */
    uint32_t typed;         /* inputs with types of their own, as bits; the others have InputTensor's */
    uint32_t direction;                                      /* DML_RECURRENT_NETWORK_DIRECTION */
    const DML_OPERATOR_DESC *activations;
    uint32_t activation_count, functions; /* functions: of a direction */
    /* of a lowering */
    op_lowering *l;
    op_element e;
    uint32_t rows;   /* the input as a matrix of [time and batch, element]; 0: its layout has none */
    ir_ref weighted; /* X * W^T: [1, direction, time and batch, gate], or [time, direction, batch, gate] without rows */
    ir_ref matrix;   /* R^T: [1, direction, element, gate] */
    ir_ref before;   /* the hidden values of the step before */
} recurrent;

opjit_status opjit_fe_recurrent_validate(const opjit_operator *op, const recurrent *r, opjit_error *error);
/* An input has these sizes. */
opjit_status opjit_fe_recurrent_sizes(const opjit_operator *op, uint32_t input, const uint64_t *sizes,
                                      opjit_error *error);
void opjit_fe_recurrent_infer(op_inference *s);

/* --- lowering ----------------------------------------------------------------------------------------------------- */
/* Reads sizes. */
void opjit_fe_recurrent_open(op_lowering *l, recurrent *r);
/* The same, and writes what no step needs another one for: X * W^T, and R^T. */
void opjit_fe_recurrent_begin(op_lowering *l, recurrent *r);
/* A tensor's sizes of four dimensions. */
static inline fe_tensor recurrent_sizes(uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
    return (fe_tensor){ .rank = 4, .sizes = { a, b, c, d } };
}
/* An input's element, as FLOAT32. */
ir_ref opjit_fe_recurrent_input(recurrent *r, uint32_t input, const ir_ref at[4]);
/* A definition of `elements` elements for each step, direction and batch; *at: its coordinates. */
ir_ref opjit_fe_recurrent_def(recurrent *r, uint64_t elements, ir_ref at[4]);
/* The state before the first step is what the input has, or 0. */
ir_ref opjit_fe_recurrent_state(recurrent *r, uint32_t input);
/* Products of the rows of `values` with R^T, `gates` gates from number `first` on. */
ir_ref opjit_fe_recurrent_product(recurrent *r, ir_ref values, uint64_t first, uint64_t gates);
/* The element of a definition at these coordinates. */
ir_ref opjit_fe_recurrent_at(recurrent *r, ir_ref def, const ir_ref at[4]);
/* Element at[3] of a gate in a definition of all gates beside each other. */
ir_ref opjit_fe_recurrent_gate_at(recurrent *r, ir_ref def, const ir_ref at[4], uint64_t gate);
/* Element at[3] of a gate: X * W^T there, and its bias Wb or, with `gates` more, Rb; 0 without a bias. */
ir_ref opjit_fe_recurrent_weighted(recurrent *r, const ir_ref at[4], uint64_t gate);
ir_ref opjit_fe_recurrent_bias(recurrent *r, const ir_ref at[4], uint64_t gate);
/* a + b; a where b is 0. */
ir_ref opjit_fe_recurrent_plus(const recurrent *r, ir_ref a, ir_ref b);
/* Function number `number` of the element's direction. */
ir_ref opjit_fe_recurrent_function(recurrent *r, uint32_t number, ir_ref x, const ir_ref at[4]);
/* x, or what was before where the sequence has ended. */
ir_ref opjit_fe_recurrent_unless_ended(recurrent *r, ir_ref x, ir_ref before, const ir_ref at[4]);
/* Ends the recurrence: states become what is computed (cell 0: there is none), and outputs are stored. */
void opjit_fe_recurrent_end(recurrent *r, ir_ref hidden, ir_ref cell);

#endif
