/* SPDX-License-Identifier: Apache-2.0 */
/* count.c - how often statements run: loops are followed, what they compute is not.  An instance whose loops have a
 * bound that is wrong for its sizes may stay inside of all tensors, and leave elements out.  So each tensor that
 * samples write as a whole has to be written as a whole, and reductions have as many terms as samples say. */
#include "ir/general/count.h"

#include "ir/core/internal.h"

enum {
    STEPS = 1 << 18, /* statements that are met in one function; what is longer is not counted */
    DEEPEST = 64,    /* expressions in each other */
    LOOPS = 32,      /* in each other: as rule V16 allows */
    PERIOD = 512,    /* iterations after which bounds are the same again, at most */
    /* How alike a loop's iterations are: */
    DEPENDS = 1, /* they have other bounds of loops, */
    SAME = 2,    /* they do the same: none reads the loop's variable, */
    CYCLE = 3    /* or, with a period added, bounds are the same after so many, as of a window's positions */
};

typedef struct walker {
    const ir_func *f;
    ir_counts *out;
    int64_t *values; /* by VAR */
    uint8_t *depth;  /* by VAR: of its loop, counted from 1; 0: its loop does not run */
    uint16_t *alike; /* by FOR: how alike its iterations are; 0: not known */
    uint32_t steps, stage;
    bool lost; /* a bound depends on elements, or it takes too long */
} walker;

static int64_t value_of(walker *w, ir_ref r, uint32_t depth)
{
    const ir_func *f = w->f;
    const ir_node *n = ir_at(f, r);
    uint64_t args[3] = { 0 }, value = 0;

    if (n->op == IR_CONST)
        return (int64_t)n->imm;
    if (n->op == IR_VAR && w->depth[r] != 0)
        return w->values[r];
    if (n->op == IR_GET && ir_at(f, n->ref)->op == IR_LET && depth < DEEPEST)
        return value_of(w, ir_operand(f, n->ref, 0), depth + 1);
    w->lost = w->lost || n->type != IR_INDEX || n->count == 0 || n->count > 3 || n->op == IR_LOAD || depth == DEEPEST;
    for (uint32_t i = 0; i < n->count && !w->lost; i++) {
        w->lost = ir_at(f, ir_operand(f, r, i))->type != IR_INDEX;
        args[i] = w->lost ? 0 : (uint64_t)value_of(w, ir_operand(f, r, i), depth + 1);
    }
    w->lost = w->lost || !opjit_ir_scalar((ir_op)n->op, IR_INDEX, IR_INDEX, args, &value);
    return (int64_t)value;
}

/* The least common multiple of *period and what var is left by, where r is what is left of it. */
static bool is_rest(const ir_func *f, ir_ref r, ir_ref var, int64_t *period)
{
    if (ir_at(f, r)->op != IR_IMOD || ir_operand(f, r, 0) != var || !ir_is_index_const(f, ir_operand(f, r, 1)))
        return false;
    const int64_t by = ir_index_value(f, ir_operand(f, r, 1));
    if (by < 1 || by > PERIOD || *period / gcd(*period, by) * by > PERIOD)
        return false;
    *period = *period / gcd(*period, by) * by;
    return true;
}

/* Whether a bound depends on the variable beside what is left of it, which *period takes in. */
static bool depends(const ir_func *f, ir_ref r, ir_ref var, int64_t *period, uint32_t depth)
{
    const ir_node *n = ir_at(f, r);

    if (r == var || depth == DEEPEST)
        return true;
    if (n->op == IR_GET && ir_at(f, n->ref)->op == IR_LET)
        return depends(f, ir_operand(f, n->ref, 0), var, period, depth + 1);
    if (n->op == IR_CONST || n->op == IR_VAR || is_rest(f, r, var, period))
        return false;
    if (n->type != IR_INDEX) /* an element: such a loop is not counted */
        return true;
    for (uint32_t i = 0; i < n->count; i++)
        if (depends(f, ir_operand(f, r, i), var, period, depth + 1))
            return true;
    return false;
}

/* The same of the bounds of all loops in a block.  They are read, not followed: a loop that has nothing to do for the
 * first values of the variables around it, and hides those inside, may have something to do for others. */
static bool bounds_depend(const ir_func *f, ir_ref first, ir_ref var, int64_t *period)
{
    for (ir_ref s = first; s != 0; s = ir_at(f, s)->next)
        if (ir_at(f, s)->op == IR_FOR &&
            (depends(f, ir_operand(f, s, 0), var, period, 0) || depends(f, ir_operand(f, s, 1), var, period, 0) ||
             bounds_depend(f, ir_at(f, s)->body, var, period)))
            return true;
    return false;
}

static void count_block(walker *w, ir_ref first, uint32_t depth, uint64_t times);

/* Whether statements read the variable. */
static bool is_read(const ir_func *f, ir_ref first, ir_ref var)
{
    for (ir_ref s = first; s != 0; s = ir_at(f, s)->next) {
        const ir_node *n = ir_at(f, s);
        for (uint32_t i = 0; i < n->count; i++)
            if (opjit_ir_uses(f, ir_operand(f, s, i), var))
                return true;
        if (n->op == IR_FOR && is_read(f, n->body, var))
            return true;
    }
    return false;
}

/* How alike the loop's iterations are. */
static uint16_t alike_of(const ir_func *f, ir_ref loop)
{
    const ir_node *n = ir_at(f, loop);
    int64_t period = 1;

    if (bounds_depend(f, n->body, n->ref, &period))
        return DEPENDS;
    return period == 1 && !is_read(f, n->body, n->ref) ? SAME : (uint16_t)(CYCLE + period);
}

/* A loop from lo to hi; bodies of which no bound depends on the variable are followed once. */
static void count_loop(walker *w, ir_ref loop, int64_t lo, int64_t hi, int64_t step, uint32_t depth, uint64_t times)
{
    const ir_node *n = ir_at(w->f, loop);

    if (hi <= lo || depth >= LOOPS || step < 1) {
        w->lost = w->lost || depth >= LOOPS || step < 1;
        return;
    }
    w->depth[n->ref] = (uint8_t)depth;
    if (w->alike[loop] == 0)
        w->alike[loop] = alike_of(w->f, loop);
    const uint16_t alike = lo < 0 && w->alike[loop] > CYCLE + 1 ? DEPENDS : w->alike[loop];
    const int64_t trips = (hi - lo + step - 1) / step;
    const int64_t period = alike == DEPENDS ? trips : alike == SAME ? 1 : alike - CYCLE;
    w->out->repeats[w->stage] = w->out->repeats[w->stage] || (alike == SAME && trips > 1);
    for (int64_t i = 0; i < period && i < trips && !w->lost; i++) {
        w->values[n->ref] = lo + i * step;
        count_block(w, n->body, depth + 1, times * (uint64_t)(trips / period + (i < trips % period)));
    }
    w->depth[n->ref] = 0;
}

/* A block's sum, of which there are as many as blocks. */
static bool is_total(const ir_func *f, ir_ref value)
{
    return ir_at(f, value)->op == IR_GET && ir_at(f, ir_at(f, value)->ref)->op == IR_ACC;
}

/* Terms of a product that the statement adds: fmas, each to the one before. */
static uint64_t products_of(const ir_func *f, ir_ref value)
{
    uint64_t count = 0;

    for (; ir_at(f, value)->op == IR_FMA; count++)
        value = ir_operand(f, value, 2);
    return count;
}

static void count_block(walker *w, ir_ref first, uint32_t depth, uint64_t times)
{
    const ir_func *f = w->f;

    for (ir_ref s = first; s != 0 && !w->lost; s = ir_at(f, s)->next) {
        const ir_node *n = ir_at(f, s);
        w->lost = w->steps++ > STEPS;
        if (n->op == IR_FOR) {
            const int64_t lo = value_of(w, ir_operand(f, s, 0), 0), hi = value_of(w, ir_operand(f, s, 1), 0);
            count_loop(w, s, lo, hi, (int64_t)n->imm, depth, times);
        } else if (n->op == IR_STORE) {
            const uint32_t root = opjit_ir_root(f, n->ref);
            w->out->stores[root] += times;
            w->out->stage_of[root] = w->stage;
            w->out->products[w->stage] += times * products_of(f, ir_operand(f, s, 0));
            if (f->tensors[root].role != IR_SCRATCH)
                w->out->results[w->stage] += times;
        } else if (n->op == IR_UPD && !is_total(f, ir_operand(f, s, 0))) {
            w->out->terms[w->stage] += times;
        }
    }
}

opjit_status opjit_ir_count(const ir_func *f, rt_arena *arena, ir_counts *out, opjit_error *error)
{
    walker w = { .f = f, .out = out };

    *out = (ir_counts){ .tensor_count = f->tensor_count };
    for (ir_ref s = f->body; s != 0; s = ir_at(f, s)->next)
        out->stage_count++;
    out->stores = ARENA_ARRAY(arena, uint64_t, f->tensor_count);
    out->stage_of = ARENA_ARRAY(arena, uint32_t, f->tensor_count);
    out->results = ARENA_ARRAY(arena, uint64_t, out->stage_count + 1u);
    out->lost = ARENA_ARRAY(arena, bool, out->stage_count + 1u);
    out->terms = ARENA_ARRAY(arena, uint64_t, out->stage_count + 1u);
    out->products = ARENA_ARRAY(arena, uint64_t, out->stage_count + 1u);
    out->repeats = ARENA_ARRAY(arena, bool, out->stage_count + 1u);
    w.values = ARENA_ARRAY(arena, int64_t, f->node_count);
    w.depth = ARENA_ARRAY(arena, uint8_t, f->node_count);
    w.alike = ARENA_ARRAY(arena, uint16_t, f->node_count);
    if (out->stores == NULL || out->stage_of == NULL || out->results == NULL || out->terms == NULL ||
        out->products == NULL || out->repeats == NULL || out->lost == NULL || w.values == NULL || w.depth == NULL ||
        w.alike == NULL)
        return opjit_rt_no_memory(error);
    for (ir_ref s = f->body; s != 0; s = ir_at(f, s)->next, w.stage++) {
        const int64_t lo = value_of(&w, ir_operand(f, s, 0), 0), hi = value_of(&w, ir_operand(f, s, 1), 0);
        if (!w.lost)
            count_loop(&w, s, lo, hi, 1, 1, 1);
        out->lost[w.stage] = w.lost;
        w.steps = 0;
        w.lost = false;
    }
    return OPJIT_OK;
}

/* --- comparing ---------------------------------------------------------------------------------------------------- */

/* The instance writes all of a tensor of which samples write all, and no more often where they write each element
 * once. */
static bool writes_all(const ir_samples *samples, const ir_counts *counts, const ir_func *f, const ir_counts *own,
                       uint32_t t)
{
    bool all = true, once = true;

    for (uint32_t i = 0; i < samples->count; i++) {
        const uint64_t elements = opjit_ir_count_elements(&samples->functions[i]->tensors[t]);
        all = all && counts[i].stores[t] >= elements;
        once = once && counts[i].stores[t] == elements;
    }
    return (!all || own->stores[t] >= opjit_ir_count_elements(&f->tensors[t])) &&
           (!once || own->stores[t] == opjit_ir_count_elements(&f->tensors[t]));
}

/* Whether bounds of the stage depend on elements, or it was too long to count. */
static bool is_lost(const ir_samples *samples, const ir_counts *counts, const ir_counts *own, uint32_t stage)
{
    bool lost = own->lost[stage];
    for (uint32_t i = 0; i < samples->count; i++)
        lost = lost || counts[i].lost[stage];
    return lost;
}

/* Scratch that samples write is written. */
static bool writes_any(const ir_counts *counts, const ir_counts *own, uint32_t t)
{
    const uint32_t stage = counts[0].stage_of[t];
    return own->stores[t] != 0 || counts[0].stores[t] == 0 || own->results[stage] == 0;
}

/* A loop that samples have once, whose variable they therefore know, is one that the instance has once. */
static bool repeats_more(const ir_samples *samples, const ir_counts *counts, const ir_counts *own, uint32_t stage)
{
    bool does = own->repeats[stage];
    for (uint32_t i = 0; i < samples->count; i++)
        does = does && !counts[i].repeats[stage];
    return does;
}

/* Whether a stage has as many of something as follows from what samples have. */
static bool has_all(const ir_samples *samples, const int64_t *series, const int64_t *values, uint64_t own)
{
    opjit_size_form form;
    int64_t value;

    return !opjit_ir_form_fit(samples, series, &form) ||
           !opjit_ir_form_value(&form, &samples->space, values, &value) || (uint64_t)value == own;
}

bool opjit_ir_counts_write(const ir_general *g, const ir_samples *samples, const ir_counts *counts,
                           const int64_t *values, const ir_func *f, const ir_counts *own)
{
    if (own->stage_count != counts[0].stage_count)
        return true;
    for (uint32_t s = 0; s < own->stage_count; s++)
        if (repeats_more(samples, counts, own, s))
            return false;
    for (uint32_t t = 1; t < own->tensor_count; t++) {
        const ir_role role = f->tensors[t].role;
        if (!opjit_ir_general_is_reached(g, t, values) || is_lost(samples, counts, own, own->stage_of[t]) ||
            is_lost(samples, counts, own, counts[0].stage_of[t]))
            continue;
        if ((role == IR_TEMP || role == IR_OUT) && !writes_all(samples, counts, f, own, t))
            return false;
        if (role == IR_SCRATCH && !writes_any(counts, own, t))
            return false;
    }
    return true;
}

/* Whether a stage's sums are those of another function, which has the same stages. */
static bool same_sums(const ir_counts *own, const ir_counts *loops, uint32_t stage)
{
    return loops != NULL && loops->stage_count == own->stage_count && !loops->lost[stage] &&
           loops->terms[stage] == own->terms[stage] && loops->products[stage] == own->products[stage];
}

/* Whether all stages together have as many terms as follows from what samples have: where a sum is cut into blocks, how
 * many a stage has follows from no dimension in a known way, but all have as many as there are values. */
static bool has_total(const ir_samples *samples, const ir_counts *counts, const int64_t *values, const ir_counts *own)
{
    int64_t terms[IR_SAMPLES] = { 0 };
    uint64_t total = 0;

    for (uint32_t s = 0; s < own->stage_count; s++) {
        if (is_lost(samples, counts, own, s))
            return true;
        for (uint32_t i = 0; i < samples->count; i++)
            terms[i] += (int64_t)counts[i].terms[s];
        total += own->terms[s];
    }
    return has_all(samples, terms, values, total);
}

bool opjit_ir_counts_sum(const ir_samples *samples, const ir_counts *counts, const int64_t *values,
                         const ir_counts *own, const ir_counts *loops)
{
    int64_t terms[IR_SAMPLES], products[IR_SAMPLES];

    if (own->stage_count != counts[0].stage_count)
        return true;
    if (loops == NULL && !has_total(samples, counts, values, own))
        return false;
    for (uint32_t s = 0; s < own->stage_count; s++) {
        for (uint32_t i = 0; i < samples->count; i++) {
            terms[i] = (int64_t)counts[i].terms[s];
            products[i] = (int64_t)counts[i].products[s];
        }
        if (!is_lost(samples, counts, own, s) && !same_sums(own, loops, s) &&
            (!has_all(samples, terms, values, own->terms[s]) || !has_all(samples, products, values, own->products[s])))
            return false;
    }
    return true;
}
