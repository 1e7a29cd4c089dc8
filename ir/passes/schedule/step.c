/* SPDX-License-Identifier: Apache-2.0 */
/* step.c - loads that schedule vectorises, by how they move with a loop's variable.  Adjacent elements are one load.
 * Reversed ones, and every second to fourth, are loads and shuffles; so are elements that alternate between a few
 * rows: quotients and remainders of the variable by a power of two, if the loop begins at a multiple of it.  At other
 * distances, and where tables of indices say it, lanes are loaded one by one, if enough is computed from them, or
 * squares of them are transposed, in loops with hold. */
#include "ir/passes/schedule/scheduler.h"

enum {
    MOST_STEP = 4,
    MOST_TURNS = 8,
    SHUFFLES = 3, /* roughly the additional cost of such a load */
    ACROSS = 16,  /* operations that justify a load of lanes at one distance */
    BY_TABLE = 8, /* and one at indices that are loaded, which AVX-512 has an instruction for */
    FEW = 8,      /* elements that are loaded one by one in less time than a part of a vector is turned */
    MOST_TERMS = 16,
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

/* Whether the index is made of loaded elements of up to 32 bits by sums, multiples and limits: no division, no
 * choice. */
static bool is_of_table(const ir_func *f, ir_ref index, ir_ref var)
{
    ir_ref stack[MOST_TERMS];
    uint32_t depth = 0, looked = 0;
    bool any = false;
    stack[depth++] = index;
    while (depth > 0 && looked++ < MOST_TERMS) {
        const ir_ref r = stack[--depth];
        const ir_node *n = ir_at(f, r);
        if (n->op == IR_TO_INDEX) {
            any = true;
            if (opjit_ir_type_size((ir_type)ir_at(f, ir_operand(f, r, 0))->type) > 4)
                return false;
            continue;
        }
        if (n->count == 0 || opjit_ir_is_affine(f, r, var))
            continue;
        if ((n->op != IR_IADD && n->op != IR_ISUB && n->op != IR_IMUL && n->op != IR_IMIN && n->op != IR_IMAX &&
             n->op != IR_CLAMP) ||
            depth + n->count > MOST_TERMS)
            return false;
        for (uint32_t i = 0; i < n->count; i++)
            stack[depth++] = ir_operand(f, r, i);
    }
    return any && depth == 0;
}

/* Whether lanes are at places that a table of indices says, up to 2^31 elements apart. */
static bool is_by_table(const ir_func *f, ir_ref load, ir_ref loop)
{
    const ir_tensor *t = &f->tensors[ir_at(f, load)->ref];
    const ir_ref var = ir_at(f, loop)->ref;
    uint32_t moving = 0;
    for (uint32_t d = 0; d < t->rank; d++) {
        const ir_ref at = ir_operand(f, load, d);
        if (t->strides[d] == 0 || !opjit_ir_uses(f, at, var))
            continue;
        const ir_interval i = opjit_ir_interval(f, at);
        if (moving++ > 0 || i.lo < 0 || i.hi >= INT32_MAX ||
            t->strides[d] > (uint64_t)INT32_MAX / (uint64_t)(i.hi + 1) || !is_of_table(f, at, var))
            return false;
    }
    return moving > 0;
}

bool opjit_ir_loads_vectors(const ir_func *f, ir_ref load, ir_ref loop, uint32_t *cost, uint32_t *worth)
{
    int64_t step, trips;
    if (!opjit_ir_step(f, load, ir_at(f, loop)->ref, &step)) {
        *cost += SHUFFLES;
        if (takes_turns(f, load, loop))
            return true;
        *worth += BY_TABLE;
        return is_by_table(f, load, loop);
    }
    if (step == 0 || step == 1)
        return true;
    const bool few =
        opjit_ir_distance(f, ir_operand(f, loop, 1), ir_operand(f, loop, 0), &trips) && trips > 1 && trips < FEW;
    *cost += SHUFFLES;
    *worth += step < -1 || step > MOST_STEP || few ? ACROSS : 0;
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
