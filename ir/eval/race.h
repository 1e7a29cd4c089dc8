/* SPDX-License-Identifier: Apache-2.0 */
/* race.h - the simulated grid's record of who touched what.  For interpreter.c. */
#ifndef OPJIT_IR_EVAL_RACE_H
#define OPJIT_IR_EVAL_RACE_H

#include "ir/core/internal.h"

#define RACE_ALL UINT32_MAX /* all threads of the team do the same; thread 0 does the store */

typedef struct race_cell race_cell;

/* One per memory that tensors share. */
typedef struct race_shadow {
    const uint8_t *base;
    uint64_t cells;
    uint32_t size; /* bytes per cell: the smallest element there */
    bool scratch;  /* belongs to a team: other teams have other memory */
    bool touched;  /* the stage loads or stores there */
    race_cell *cell;
} race_shadow;

typedef struct ir_race {
    const ir_func *f;
    race_shadow *shadows; /* by tensor; tensors in shared memory use the first one's */
    uint32_t *shadow_of;  /* by tensor */
    uint64_t team;        /* iteration of the stage + 1: as many teams as there can be */
    uint32_t threads;     /* of a team */
    uint32_t epoch;       /* syncs so far */
    uint32_t lane;        /* thread of the team, or RACE_ALL */
} ir_race;

opjit_status opjit_ir_race_init(ir_race *r, const ir_func *f, uint32_t threads, opjit_error *error);
void opjit_ir_race_free(ir_race *r);
/* Announces that the stage loads or stores the tensor; before opjit_ir_race_map. */
void opjit_ir_race_touch(ir_race *r, uint32_t tensor);
/* Tells where the tensor's memory is, `bytes` of it; once per tensor, in order. */
opjit_status opjit_ir_race_map(ir_race *r, uint32_t tensor, const uint8_t *base, uint64_t bytes, opjit_error *error);
/* Records an access; false: it races with another thread's. */
bool opjit_ir_race_access(ir_race *r, uint32_t tensor, const uint8_t *at, bool is_store);
/* The thread of iteration i of a loop that begins at lo; RACE_ALL: the loop is not distributed. */
uint32_t opjit_ir_race_lane(const ir_race *r, ir_ref loop, int64_t lo, int64_t i);

#endif
