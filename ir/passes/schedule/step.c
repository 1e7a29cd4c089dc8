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
    BY_TABLE = 8, /* and one at indices that are loaded, with what computes them where there is an instruction for it */
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

static bool is_of_index(ir_op op)
{
    return op == IR_IADD || op == IR_ISUB || op == IR_IMUL || op == IR_IMIN || op == IR_IMAX || op == IR_CLAMP ||
           op == IR_SELECT || ir_is_comparison(op);
}

bool opjit_ir_is_of_table(const ir_func *f, ir_ref index, ir_ref var, uint32_t *out_count)
{
    ir_ref stack[MOST_TERMS], seen[MOST_TERMS];
    uint32_t depth = 0, looked = 0;
    bool any = false;
    stack[depth++] = index;
    while (depth > 0) {
        const ir_ref r = stack[--depth];
        const ir_node *n = ir_at(f, r);
        bool again = n->count == 0 || (n->type == IR_INDEX && opjit_ir_is_affine(f, r, var));
        for (uint32_t i = 0; i < looked && !again; i++)
            again = seen[i] == r;
        if (again)
            continue;
        if (looked == MOST_TERMS)
            return false;
        seen[looked++] = r;
        any = any || n->op == IR_TO_INDEX;
        if (n->op == IR_TO_INDEX)
            continue;
        if (!is_of_index((ir_op)n->op) || depth + n->count > MOST_TERMS)
            return false;
        for (uint32_t i = 0; i < n->count; i++)
            stack[depth++] = ir_operand(f, r, i);
    }
    *out_count += looked;
    return any;
}

/* Whether lanes are at places that a table of indices says, up to 2^31 elements apart.  Counts the operations that
 * compute them. */
static bool is_by_table(const ir_func *f, ir_ref load, ir_ref loop, uint32_t *out_count)
{
    const ir_tensor *t = &f->tensors[ir_at(f, load)->ref];
    const ir_ref var = ir_at(f, loop)->ref;
    bool any = false;
    uint64_t most = 0;
    for (uint32_t d = 0; d < t->rank; d++) {
        const ir_ref at = ir_operand(f, load, d);
        if (t->strides[d] == 0 || !opjit_ir_uses(f, at, var))
            continue;
        const ir_interval i = opjit_ir_interval(f, at);
        const bool table = !opjit_ir_is_affine(f, at, var);
        if (i.lo < 0 || i.hi >= INT32_MAX || t->strides[d] > (uint64_t)INT32_MAX / (uint64_t)(i.hi + 1) ||
            (table && !opjit_ir_is_of_table(f, at, var, out_count)))
            return false;
        any = any || table;
        most += t->strides[d] * (uint64_t)i.hi;
    }
    return any && most <= INT32_MAX;
}

/* Whether the index is a byte as it is in memory, without its sign. */
static bool is_byte_of_memory(const ir_func *f, ir_ref index)
{
    if (ir_at(f, index)->op != IR_TO_INDEX || ir_at(f, ir_operand(f, index, 0))->type != IR_U8)
        return false;
    const ir_ref byte = ir_operand(f, index, 0);
    return ir_at(f, ir_at(f, byte)->op == IR_BITS ? ir_operand(f, byte, 0) : byte)->op == IR_LOAD;
}

/* Whether the loop does nothing but look bytes up in a table, for which there is an instruction. */
static bool looks_up(const scheduler *s, ir_ref load, const work *w)
{
    enum { TABLE = 256 };
    const ir_func *f = s->f;
    const ir_tensor *t = &f->tensors[ir_at(f, load)->ref];
    const ir_ref at = t->rank == 1 ? ir_operand(f, load, 0) : 0;
    return rt_target_looks_up(s->target) && at != 0 &&
           opjit_ir_type_size(t->type) == 1 && t->sizes[0] == TABLE && t->strides[0] == 1 && w->size == 1 &&
           w->store != 0 && ir_operand(f, w->store, 0) == load && is_byte_of_memory(f, at);
}

bool opjit_ir_loads_vectors(const scheduler *s, ir_ref load, ir_ref loop, work *w)
{
    const ir_func *f = s->f;
    int64_t step, trips;
    uint32_t places = 0;
    if (!opjit_ir_step(f, load, ir_at(f, loop)->ref, &step)) {
        w->cost += SHUFFLES;
        if (takes_turns(f, load, loop) || looks_up(s, load, w))
            return true;
        w->worth += BY_TABLE;
        const bool table = is_by_table(f, load, loop, &places);
        if (table && rt_target_gathers(s->target) && opjit_ir_type_size((ir_type)ir_at(f, load)->type) >= 4)
            w->cost += places;
        return table;
    }
    if (step == 0 || step == 1)
        return true;
    const bool few =
        opjit_ir_distance(f, ir_operand(f, loop, 1), ir_operand(f, loop, 0), &trips) && trips > 1 && trips < FEW;
    w->cost += SHUFFLES;
    w->worth += step < -1 || step > MOST_STEP || few ? ACROSS : 0;
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
