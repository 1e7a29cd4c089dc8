/* SPDX-License-Identifier: Apache-2.0 */
/* grid.h - pass grid and its steps: distribute.c, grid.c, sync.c. */
#ifndef OPJIT_IR_PASSES_GRID_GRID_H
#define OPJIT_IR_PASSES_GRID_GRID_H

#include "ir/passes/pass.h"

typedef struct gridder {
    ir_func *f;
    const rt_target *target;
    bool any;      /* some loop of the stage is distributed */
    uint64_t once; /* tensors whose elements are stored once, as bits like those of touched */
} gridder;

/* distribute.c: marks the innermost loops of the stage whose iterations any thread may run. */
void opjit_ir_distribute(ir_func *f, ir_ref stage);
/* grid.c: the stage's team, one thread where no loop is distributed, and what of the loops' attributes a grid keeps. */
void opjit_ir_keep_attributes(gridder *g, ir_ref stage);
/* A team of any size is a block of its own where its threads meet and don't run in lock step. */
void opjit_ir_set_alone(gridder *g, ir_ref stage);
/* sync.c: puts syncs where threads of a team touch what others store. */
void opjit_ir_add_syncs(gridder *g, ir_ref stage);

#endif
