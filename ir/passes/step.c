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

/* How the coordinates depend on var / divisor and var % divisor. */
typedef struct digits {
    ir_ref var;
    int64_t divisor;     /* 0: none yet */
    int64_t whole, rest; /* elements by which they move */
} digits;

static bool add_digits(const ir_func *f, ir_ref expr, int64_t factor, digits *d)
{
    const ir_node *n = ir_at(f, expr);
    int64_t more;
    if (!opjit_ir_varies(f, expr, d->var))
        return true;
    switch ((ir_op)n->op) {
    case IR_IDIV:
    case IR_IMOD: {
        const int64_t k = ir_index_value(f, ir_operand(f, expr, 1));
        int64_t *const to = n->op == IR_IDIV ? &d->whole : &d->rest;
        if (ir_operand(f, expr, 0) != d->var || (d->divisor != 0 && d->divisor != k))
            return false;
        d->divisor = k;
        return checked_addi(*to, factor, to);
    }
    case IR_IADD:
    case IR_ISUB:
        return add_digits(f, ir_operand(f, expr, 0), factor, d) &&
               checked_muli(factor, n->op == IR_IADD ? 1 : -1, &more) && add_digits(f, ir_operand(f, expr, 1), more, d);
    case IR_IMUL:
        return checked_muli(factor, ir_index_value(f, ir_operand(f, expr, 1)), &more) &&
               add_digits(f, ir_operand(f, expr, 0), more, d);
    default: return false;
    }
}

static bool takes_turns(const ir_func *f, ir_ref load, ir_ref loop)
{
    const ir_tensor *t = &f->tensors[ir_at(f, load)->ref];
    digits d = { .var = ir_at(f, loop)->ref };
    for (uint32_t i = 0; i < t->rank; i++)
        if (t->strides[i] != 0 &&
            (t->strides[i] > INT64_MAX || !add_digits(f, ir_operand(f, load, i), (int64_t)t->strides[i], &d)))
            return false;
    return d.whole == 1 && d.divisor >= 2 && d.divisor <= MOST_TURNS && is_power_of_two((uint64_t)d.divisor) &&
           opjit_ir_divisor(f, ir_operand(f, loop, 0)) >= (uint64_t)d.divisor;
}

bool opjit_ir_loads_vectors(const ir_func *f, ir_ref load, ir_ref loop, uint32_t *cost, uint32_t *gathers)
{
    int64_t step;
    if (!opjit_ir_step(f, load, 0, ir_at(f, loop)->ref, &step)) {
        *cost += SHUFFLES;
        return takes_turns(f, load, loop);
    }
    if (step == 0 || step == 1)
        return true;
    *cost += SHUFFLES;
    *gathers += step < -1 || step > MOST_STEP;
    return true;
}
