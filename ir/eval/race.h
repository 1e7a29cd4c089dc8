/* SPDX-License-Identifier: Apache-2.0 */
/* race.h - the simulated grid's memory of who touched what.  For interpreter.c alone. */
#ifndef OPJIT_IR_EVAL_RACE_H
#define OPJIT_IR_EVAL_RACE_H

#include "ir/core/internal.h"

#define RACE_ALL UINT32_MAX /* all threads of the team do it alike; a store is then thread 0's */

typedef struct race_cell race_cell;

/* Memory that tensors share has one of these. */
typedef struct race_shadow {
    const uint8_t *base;
    uint64_t cells;
    uint32_t size; /* bytes of a cell: of the smallest element there */
    bool scratch;  /* the team's own: another team has other memory */
    bool touched;  /* the stage has loads or stores there */
    race_cell *cell;
} race_shadow;

typedef struct ir_race {
    const ir_func *f;
    race_shadow *shadows; /* by tensor; those of a shared memory at the first of them */
    uint32_t *shadow_of;  /* by tensor */
    uint64_t team;        /* iteration of the stage, + 1: the most teams that there can be */
    uint32_t threads;     /* of a team */
    uint32_t epoch;       /* syncs so far */
    uint32_t lane;        /* thread of the team, or RACE_ALL */
} ir_race;

opjit_status opjit_ir_race_init(ir_race *r, const ir_func *f, uint32_t threads, opjit_error *error);
void opjit_ir_race_free(ir_race *r);
/* Says that the stage loads or stores the tensor; before opjit_ir_race_map. */
void opjit_ir_race_touch(ir_race *r, uint32_t tensor);
/* Where the tensor's memory is, `bytes` of it; each once, in order. */
opjit_status opjit_ir_race_map(ir_race *r, uint32_t tensor, const uint8_t *base, uint64_t bytes, opjit_error *error);
/* false: another thread may do so at the same time, or has to be waited for. */
bool opjit_ir_race_access(ir_race *r, uint32_t tensor, const uint8_t *at, bool is_store);
/* Thread of iteration i of a loop that begins at lo; RACE_ALL: the loop is not spread. */
uint32_t opjit_ir_race_lane(const ir_race *r, ir_ref loop, int64_t lo, int64_t i);

#endif
