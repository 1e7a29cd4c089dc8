/* SPDX-License-Identifier: Apache-2.0 */
/* split.h - pass split and its steps: cut.c, hoist.c, constant_rows.c. */
#ifndef OPJIT_IR_PASSES_SPLIT_SPLIT_H
#define OPJIT_IR_PASSES_SPLIT_SPLIT_H

#include "ir/passes/pass.h"

enum { MAX_KNOWN = 16 }; /* parts of rows of scratch that are constant */

/* What a loop's body reaches. */
typedef struct loop_body {
    ir_reach seen;
    bool *variant; /* by position in seen: whether it changes from one iteration of the loop to the next, or reads
                      memory, which stores might change, or an accumulator, which an adjacent loop may update */
} loop_body;

/* For a node that the body reaches. */
static inline bool is_variant(const loop_body *b, ir_ref r)
{
    return b->variant[opjit_ir_reach_place(&b->seen, r)];
}

/* hoist.c: false: no memory. */
bool opjit_ir_look_at_body(ir_func *f, ir_ref loop, loop_body *out);

/* A list and the lets in it by hashes of their values, in scratch memory. */
typedef struct hoisted {
    block list;
    ir_ref last;         /* the statement up to which lets holds them; 0: none yet */
    ir_table lets, hash; /* a let by its value's hash, or the next free number; hashes of expressions */
} hoisted;
/* Appends lets for the values and conditions that are the same in every iteration of `loop` to out, before the loop. */
void opjit_ir_hoist(ir_func *f, hoisted *out, ir_ref loop);

/* Elements lo to hi of a row of scratch, which `loop` makes one constant. */
typedef struct known {
    ir_ref loop, lo, hi, value;
    uint32_t tensor;
} known;

typedef struct stage_split {
    ir_func *f;
    ir_ref root;
    ir_table stores; /* by tensor, in the original stage: 2 for more */
    known parts[MAX_KNOWN];
    uint32_t known_count;
    uint32_t loops; /* of the stage, so far */
    bool held;      /* the block at hand is in a loop with hold */
    bool has_conditions; /* without, no loop is cut */
} stage_split;

/* cut.c: whether a stage has comparisons of indices. */
bool opjit_ir_has_conditions(ir_func *f, ir_ref stage);
/* Cuts the loops of parent's block where conditions change, then those inside them, and hoists. */
void opjit_ir_cut_block(stage_split *stage, ir_ref parent);

/* constant_rows.c */
ir_table opjit_ir_count_stores(ir_func *f, ir_ref stage); /* by tensor: stores to it in the stage */
/* Enters the piece if it only makes elements of a row a constant, in the stage's one store to that row. */
void opjit_ir_note_known(stage_split *stage, ir_ref parent, ir_ref loop);
/* What is known and no longer read need not be stored: makes the loop run no iteration. */
void opjit_ir_drop_known(stage_split *stage);

#endif
