/* SPDX-License-Identifier: Apache-2.0 */
/* step.c - loads that schedule makes vectors of, by how they move with a loop's variable. Elements side by
 * side are one load; backwards, or every second to fourth, they are loads and shuffles; so are those that take
 * turns in a few rows: quotients and remainders of the variable by a power of two, of which the loop begins with a
 * multiple.  At another distance lanes are loaded one by one, for what is computed of them. */
#include "ir/passes/schedule.h"

enum {
    MOST_STEP = 4,
    MOST_TURNS = 8,
    SHUFFLES = 3, /* about what such a load costs more */
};

static bool takes_turns(const ir_func *f, ir_ref load, ir_ref loop)
{
    const ir_tensor *t = &f->tensors[ir_at(f, load)->ref];
    const ir_moving m = { .f = f, .var = ir_at(f, loop)->ref };
    ir_turns d = { .divisor = 0 };
    for (uint32_t i = 0; i < t->rank; i++)
        if (t->strides[i] != 0 &&
            (t->strides[i] > INT64_MAX || !opjit_ir_turns_add(&m, ir_operand(f, load, i), (int64_t)t->strides[i], &d)))
            return false;
    return d.whole == 1 && d.divisor >= 2 && d.divisor <= MOST_TURNS && is_power_of_two((uint64_t)d.divisor) &&
           opjit_ir_divisor(f, ir_operand(f, loop, 0)) >= (uint64_t)d.divisor;
}

bool opjit_ir_loads_vectors(const ir_func *f, ir_ref load, ir_ref loop, uint32_t *cost, uint32_t *gathers)
{
    int64_t step;
    if (!opjit_ir_step(f, load, ir_at(f, loop)->ref, &step)) {
        *cost += SHUFFLES;
        return takes_turns(f, load, loop);
    }
    if (step == 0 || step == 1)
        return true;
    *cost += SHUFFLES;
    *gathers += step < -1 || step > MOST_STEP;
    return true;
}
