/* SPDX-License-Identifier: Apache-2.0 */
/* accumulator.h - an accumulator of a running function: lanes, blocks and totals, by the order of numerics.h. */
#ifndef OPJIT_IR_EVAL_ACCUMULATOR_H
#define OPJIT_IR_EVAL_ACCUMULATOR_H

#include "ir/core/internal.h"
#include "ir/eval/numerics.h"

enum { LANES_MAX = 2 * IR_REDUCE_LANES }; /* what runs need not verify */

typedef struct accumulator {
    uint64_t lane[LANES_MAX], total; /* values */
    int64_t where[LANES_MAX], total_where;
    bool some[LANES_MAX], total_some; /* arg kinds: there is a value; total: a block was folded */
    int64_t block;
    ir_type value_type;
    bool apart, alike, own; /* grid: updated by one thread per lane; by all alike; by its one thread */
} accumulator;

/* acc: the ACC, or the DEF that reduces. */
void opjit_ir_acc_reset(accumulator *a, const ir_node *acc);            /* all lanes */
uint64_t opjit_ir_acc_step(const ir_node *acc, uint64_t a, uint64_t b); /* not of arg kinds */
uint64_t opjit_ir_acc_step_dot(const ir_node *acc, uint64_t before, uint64_t x, uint64_t y); /* of a pair */
/* (y, j) in place of (x, i) where it is better, or where there was none. */
void opjit_ir_acc_update_arg(const ir_node *acc, ir_type type, uint64_t *x, int64_t *i, bool *some, uint64_t y,
                             int64_t j);
/* Folds a copy of the lanes by halves into lane 0, then adds that to the total of the blocks before. */
void opjit_ir_acc_fold(const ir_node *acc, const accumulator *from, accumulator *a);

#endif
