/* SPDX-License-Identifier: Apache-2.0 */
/* step.c - loads that schedule vectorises, by how they move with a loop's variable.  Adjacent elements are one load.
 * Reversed ones, and every second to fourth, are loads and shuffles; so are elements that alternate between a few
 * rows: quotients and remainders of the variable by a power of two, if the loop begins at a multiple of it.  At other
 * distances lanes are loaded one by one, if enough is computed from them. */
#include "ir/passes/scheduler.h"

enum {
    MOST_STEP = 4,
    MOST_TURNS = 8,
    SHUFFLES = 3, /* roughly the additional cost of such a load */
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
