/* SPDX-License-Identifier: Apache-2.0 */
/* dynamic_made.h - what was made of a graph for some values of its dimensions, and may be asked for again. */
#ifndef OPJIT_FRONTEND_COMPILE_DYNAMIC_MADE_H
#define OPJIT_FRONTEND_COMPILE_DYNAMIC_MADE_H

#include "frontend/frontend.h"
#include "ir/general/general.h"

/* dynamic_sizes.c: how much larger than for these values sizes are at most in the range, below 1 where it lacks the
 * values; else 1, as more says nothing. */
double opjit_fe_sizes_growth(const ir_dim *dims, uint32_t count, const int64_t *values);

/* The last functions that were made for some sizes, of about 32 MiB at most.  Parts of a range have samples in common,
 * and a guess, a proof and a cut ask for the same sizes again. */
#define FE_MADE 32u
typedef struct fe_made_for {
    double growth;    /* what loops depend on beside the values: as the sizes' list has it, */
    uint32_t version; /* and what was known of sizes */
    int64_t values[OPJIT_MAX_DIMS];
} fe_made_for;
typedef struct fe_made {
    struct {
        fe_made_for key;
        ir_func value, loops; /* loops: zeroed where it was made without */
        uint64_t bytes;       /* of both, about */
    } list[FE_MADE];
    uint32_t count;
    uint64_t bytes;
} fe_made;
/* Copies of what was made so, if it is still there; out: NULL: without loops, for which values alone are the key. */
opjit_status opjit_fe_made_find(const fe_made *made, const fe_made_for *key, ir_func *out_value, ir_func *out,
                                bool *out_found, opjit_error *error);
/* Keeps copies, in place of the oldest ones; where it fails it frees what it was given.  loops may be NULL. */
opjit_status opjit_fe_made_keep(fe_made *made, const fe_made_for *key, ir_func *value, ir_func *loops,
                                opjit_error *error);
void opjit_fe_made_free(fe_made *made);

#endif
