/* SPDX-License-Identifier: Apache-2.0 */
/* split.h - what split.c, hoist.c and constant_rows.c share. */
#ifndef OPJIT_IR_PASSES_SPLIT_H
#define OPJIT_IR_PASSES_SPLIT_H

#include "ir/passes/pass.h"

enum { MAX_KNOWN = 16 }; /* parts of rows of scratch with a constant in them */

/* What a loop's body reaches. */
typedef struct loop_body {
    ir_reach seen;
    bool *variant; /* in the order of seen: whether it changes from one iteration of the loop to the next, or reads
                      memory, which stores might change, or an accumulator, which a loop beside this one may update */
} loop_body;

/* Of a node that the body reaches. */
static inline bool is_variant(const loop_body *b, ir_ref r)
{
    return b->variant[opjit_ir_reach_place(&b->seen, r)];
}

/* hoist.c: false: no memory. */
bool opjit_ir_look_at_body(ir_func *f, ir_ref loop, loop_body *out);
/* Puts values and conditions that are the same in every iteration of `loop` into lets before it, at the end of out;
 * whether there were any. */
bool opjit_ir_hoist(ir_func *f, block *out, ir_ref loop);

/* --- constant_rows.c ---------------------------------------------------------------------------------------------- */
/* Elements lo to hi of a row of scratch, all of which `loop` makes one constant. */
typedef struct known {
    ir_ref loop, lo, hi, value;
    uint32_t tensor;
} known;

typedef struct stage_split {
    ir_func *f;
    ir_ref root;
    ir_table stores; /* by tensor, in the stage as it was: 2 stands for more */
    known parts[MAX_KNOWN];
    uint32_t known_count;
    uint32_t loops; /* of the stage, as it is by now */
} stage_split;

ir_table opjit_ir_count_stores(ir_func *f, ir_ref stage); /* by tensor: stores to it in the stage */
/* Enters the piece if all it does is to make elements of a row a constant, in the stage's one store to that row. */
void opjit_ir_note_known(stage_split *stage, ir_ref parent, ir_ref loop);
/* What is known and no longer read need not be stored: the loop is made to run no iteration. */
void opjit_ir_drop_known(stage_split *stage);

#endif
