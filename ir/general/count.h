/* SPDX-License-Identifier: Apache-2.0 */
/* count.h - how often the statements of a function run, and whether an instance's do as often as samples'. */
#ifndef OPJIT_IR_GENERAL_COUNT_H
#define OPJIT_IR_GENERAL_COUNT_H

#include "ir/general/general.h"

typedef struct ir_counts {
    uint64_t *stores;   /* by tensor that is no view: stores to it and its views */
    uint32_t *stage_of; /* by tensor: the last stage that stores to it */
    uint64_t *results;  /* by stage: stores to anything but scratch */
    uint64_t *terms;    /* by stage: of reductions */
    uint64_t *products; /* by stage: terms of products */
    bool *repeats;      /* by stage: some loop has several iterations that do the same */
    uint32_t tensor_count, stage_count;
    bool *lost;         /* by stage: bounds depend on elements, or it is too long: nothing is known of it */
} ir_counts;

/* In arrays of the arena.  f: without parameters, at phase CLEANED. */
opjit_status opjit_ir_count(const ir_func *f, rt_arena *arena, ir_counts *out, opjit_error *error);
/* Whether an instance for these values writes what samples write; counts: one for each of these. */
bool opjit_ir_counts_write(const ir_general *g, const ir_samples *samples, const ir_counts *counts,
                           const int64_t *values, const ir_func *f, const ir_counts *own);
/* Whether its sums have as many terms as follows from what samples have, or as the graph's own loops for these values
 * have (NULL: not known). */
bool opjit_ir_counts_sum(const ir_samples *samples, const ir_counts *counts, const int64_t *values,
                         const ir_counts *own, const ir_counts *loops);

#endif
