/* SPDX-License-Identifier: Apache-2.0 */
/* recurrence.h - shared by recurrence.c and recurrence_stage.c: a recurrence as one stage.  Part of place.
 *
 *     for each block of rows, in parallel
 *         states = their own values
 *         for each step: definitions in their order, each in scratch, and the outputs that read this step
 *             states = what feeds them
 *         outputs that read the last step
 *
 * Rows are the coordinates after the step in which all definitions read only each other's own.  Scratch has one step,
 * whatever their number is; memory of all steps has only what is read at others. */
#ifndef OPJIT_IR_PASSES_PLACE_RECURRENCE_H
#define OPJIT_IR_PASSES_PLACE_RECURRENCE_H

#include "ir/passes/place/place.h"

typedef enum recurrence_role { RECURRENCE_DEF, RECURRENCE_STATE, RECURRENCE_STEP, RECURRENCE_LAST } recurrence_role;

/* A definition, or an output of each step or of the last one. */
typedef struct recurrence_member {
    uint32_t item;
    recurrence_role role;
    ir_ref statement; /* a DEF over the elements of a block in one step, with the member's value at these */
    uint32_t scratch; /* where a definition keeps it; 0: an output */
    bool is_kept;     /* in memory of all steps, too */
} recurrence_member;

struct recurrence {
    uint32_t number; /* from 1 on */
    uint32_t first, defs, count; /* its first item; definitions, and members with outputs behind them */
    recurrence_member *members;
    uint32_t rows;   /* coordinates 1 to `rows`; 0: there are none */
    uint32_t base;   /* coordinate of all steps that is the first of a block's: max(rows, 1) */
    int64_t size;    /* of a block, in coordinate `base` */
    ir_ref stage, loop;
    block body, steps; /* of these two */
    ir_ref at[8];    /* coordinates before `base`, [0]: the step; and where the block begins */
};

#endif
