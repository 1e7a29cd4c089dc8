/* SPDX-License-Identifier: Apache-2.0 */
/* machine.h - shared by the files that run a function: where its tensors lie, and the values of its nodes. */
#ifndef OPJIT_IR_EVAL_MACHINE_H
#define OPJIT_IR_EVAL_MACHINE_H

#include "ir/eval/accumulator.h"
#include "ir/eval/race.h"

enum { RECENT = 32 /* tensors */, KNOWN = 128 /* values of functions */ };

typedef struct memory {
    uint8_t *base;
    uint64_t bytes, elements; /* that the bytes have room for */
    uint32_t tensor, size;    /* of an element */
} memory;

/* A function of mathematics at a place. */
typedef struct known_value {
    uint32_t op, type; /* op 0: none */
    uint64_t args[2], out;
} known_value;

typedef struct machine {
    const ir_func *f;
    const ir_run *run;
    ir_section section;    /* the stage, or the whole function */
    memory recent[RECENT]; /* a cache: where tensors lie, by their number modulo RECENT */
    known_value known[KNOWN]; /* a cache, by a hash of the first argument */
    uint8_t **owned;       /* value form: a def's elements, by tensor */
    uint64_t *values;      /* by node of the section: the value of a VAR or LET; the place of an ACC in accumulators */
    accumulator *accumulators;
    uint32_t accumulator_count;
    int64_t innermost; /* the innermost loop's variable: k of upd */
    ir_race *race;     /* NULL: not a grid */
    const char *why;   /* what is wrong other than the address */
    ir_ref wrong;      /* the load or store that left its tensor */
    uint32_t wrong_dimension;
    int64_t wrong_coordinate;
} machine;

static inline uint64_t *value_of(const machine *m, ir_ref node) { return &m->values[node - m->section.first]; }

/* interpreter.c.  All of them do nothing once m->wrong is set. */
uint64_t opjit_ir_m_eval(machine *m, ir_ref expr);
const memory *opjit_ir_m_find(machine *m, uint32_t tensor);
/* Stores bits at the coordinates operands first... of node. */
void opjit_ir_m_store(machine *m, ir_ref node, uint32_t first, uint64_t bits);
/* An accumulator (an ACC, or a DEF that reduces): its start, a step with the value whose number is in m->innermost,
 * and what it has. */
void opjit_ir_m_start(machine *m, ir_ref statement);
void opjit_ir_m_update(machine *m, ir_ref statement, ir_ref value, ir_ref where);
uint64_t opjit_ir_m_get(machine *m, const ir_node *acc, ir_ref statement);

/* Where the tensor lies; valid until another tensor's place is asked for. */
static inline const memory *opjit_ir_m_memory(machine *m, uint32_t tensor)
{
    const memory *known = &m->recent[tensor % RECENT];
    return known->tensor == tensor ? known : opjit_ir_m_find(m, tensor);
}

/* values.c: memory for the definitions of value form; the items, one after the other. */
opjit_status opjit_ir_m_own_values(machine *m, opjit_error *error);
void opjit_ir_m_run_values(machine *m);

#endif
