/* SPDX-License-Identifier: Apache-2.0 */
/* interpreter.h - the state of one run, shared by interpreter.c (expressions, loop form) and values.c (value form). */
#ifndef OPJIT_IR_EVAL_INTERPRETER_H
#define OPJIT_IR_EVAL_INTERPRETER_H

#include "ir/eval/accumulator.h"
#include "ir/eval/race.h"

enum { RECENT = 32 }; /* tensors */

typedef struct memory {
    uint8_t *base;
    uint64_t bytes;
    uint32_t tensor;
} memory;

typedef struct machine {
    const ir_func *f;
    const ir_run *run;
    ir_section section;    /* the stage, or the whole function */
    memory recent[RECENT]; /* a cache: where tensors lie, by their number modulo RECENT */
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

static inline uint64_t *machine_value(const machine *m, ir_ref node) { return &m->values[node - m->section.first]; }

/* interpreter.c.  The value of an expression. */
uint64_t opjit_ir_machine_eval(machine *m, ir_ref expr);
/* Stores the element of a DEF or an unboxed YIELD at the coordinates in its variables. */
void opjit_ir_machine_store(machine *m, ir_ref node, uint64_t bits);
const memory *opjit_ir_machine_memory(machine *m, uint32_t tensor);
/* The value of a DEF that reduces, at the coordinates in its variables. */
uint64_t opjit_ir_machine_reduce(machine *m, ir_ref item);

/* values.c.  Allocates memory for the definitions. */
opjit_status opjit_ir_machine_own_values(machine *m, opjit_error *error);
/* Runs a function in value form, item by item. */
void opjit_ir_machine_run_values(machine *m);

#endif
