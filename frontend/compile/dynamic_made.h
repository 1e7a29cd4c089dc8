/* SPDX-License-Identifier: Apache-2.0 */
/* dynamic_made.h - what was made of a graph for some values of its dimensions, and may be asked for again. */
#ifndef OPJIT_FRONTEND_COMPILE_DYNAMIC_MADE_H
#define OPJIT_FRONTEND_COMPILE_DYNAMIC_MADE_H

#include "frontend/frontend.h"
#include "ir/general/general.h"

/* dynamic_sizes.c: how much larger than for these values sizes are at most in the range, below 1 where it lacks the
 * values; else 1, as more says nothing. */
double opjit_fe_sizes_growth(const ir_dim *dims, uint32_t count, const int64_t *values);
uint64_t opjit_fe_sizes_hash(const ir_sizes *sizes); /* of all that loops depend on */

/* Functions that were made for some sizes, of about 32 MiB: all are dropped when these are used up.  Parts of a range
 * have samples in common, and a guess, a proof and a cut ask for the same sizes again. */
enum { FE_MADE = 512, FE_MADE_WHOLE = 32 };
typedef struct fe_made_for {
    uint64_t loops; /* 0: the graph's definition; else a hash of what loops depend on beside the values */
    int64_t values[OPJIT_MAX_DIMS];
} fe_made_for;
typedef struct fe_made {
    struct {
        fe_made_for key;
        uint32_t whole;   /* the function that it is, but for what differs */
        rt_bytes differs; /* words, and where they are */
    } list[FE_MADE];
    ir_func whole[FE_MADE_WHOLE];
    uint32_t count, whole_count;
    uint64_t bytes;
} fe_made;
/* A copy of what was made so, if it is still there. */
opjit_status opjit_fe_made_find(const fe_made *made, const fe_made_for *key, ir_func *out, bool *out_found,
                                opjit_error *error);
/* Keeps a copy. */
opjit_status opjit_fe_made_keep(fe_made *made, const fe_made_for *key, const ir_func *f, opjit_error *error);
void opjit_fe_made_free(fe_made *made); /* NULL is fine */

/* --- dynamic_stages.c --------------------------------------------------------------------------------------------- */
/* Whether the runtime can tell how large a number is at most for all sizes of the range; NULL: for all of the kernel.
 * What goes up and down again, as n - 2 (n / 2), has its ends elsewhere than the dimension. */
bool opjit_fe_form_is_bounded(const fe_dynamic *dynamic, const ir_space *space, const ir_range *range,
                              const opjit_size_form *form);
/* The same of how often all stages of the range's function run. */
opjit_status opjit_fe_check_stages(const fe_dynamic *dynamic, const ir_space *space, const ir_range *range,
                                   opjit_error *error);

#endif
