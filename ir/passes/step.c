/* SPDX-License-Identifier: Apache-2.0 */
/* step.c - loads that schedule vectorises, by how they move with a loop's variable.  Adjacent elements are one load.
 * Reversed ones, and every second to fourth, are loads and shuffles; so are elements that alternate between a few
 * rows: quotients and remainders of the variable by a power of two, if the loop begins at a multiple of it.  At other
 * distances lanes are loaded one by one, if enough is computed from them, or squares of them are transposed, in loops
 * with hold. */
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

/* Whether neighbours along a loop in the one with hold, of whole squares, are what the load reads. */
static bool is_along(const scheduler *s, ir_ref load, int64_t lanes)
{
    const ir_func *f = s->f;
    int64_t step, trips;
    for (uint32_t i = 1; i < s->held_count; i++)
        if (opjit_ir_step(f, load, ir_at(f, s->held[i])->ref, &step) && step == 1 &&
            opjit_ir_distance(f, ir_operand(f, s->held[i], 1), ir_operand(f, s->held[i], 0), &trips) &&
            trips % lanes == 0)
            return true;
    return false;
}

bool opjit_ir_turns_loads(scheduler *s, ir_ref loop, const work *w)
{
    const ir_func *f = s->f;
    const int64_t lanes = w->single && s->held_count > 0 && !s->threads ? opjit_ir_lanes_for(s, loop, w) : 1;
    int64_t trips, step;
    if (lanes < 2 || !opjit_ir_distance(f, ir_operand(f, loop, 1), ir_operand(f, loop, 0), &trips) ||
        trips % lanes != 0)
        return false;
    const ir_reach seen = opjit_ir_reach(s->f, ir_at(f, loop)->body);
    for (uint32_t k = 0; k < seen.count; k++) {
        const ir_ref load = seen.nodes[k];
        if (ir_at(f, load)->op != IR_LOAD)
            continue;
        if (!opjit_ir_step(f, load, ir_at(f, loop)->ref, &step) ||
            (step != 0 && step != 1 && !is_along(s, load, lanes)))
            return false;
    }
    return seen.nodes != NULL;
}
