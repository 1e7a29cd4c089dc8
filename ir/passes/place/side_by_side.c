/* SPDX-License-Identifier: Apache-2.0 */
/* side_by_side.c - copies short rows so that they lie side by side: where a reduction takes a few values that are
 * neighbours in memory, and there are many such rows, the copy has a line of each row's first value, one of each row's
 * second value, and so on.  So results are a vector's lanes, as those of any columns; no lanes are folded, and places
 * of extremes need no accumulator.  The copy is written by a stage of its own, which transposes.  A step of place, for
 * CPUs. */
#include "ir/passes/pass.h"

#include <string.h>

enum {
    LEAST_STEPS = 2, /* of a row */
    SHUFFLED = 4,    /* rows of so many values are vectors by shuffles */
    LEAST_LINE = 4,  /* rows whose values are a line of the copy */
    LEAST_ROWS = 256,
    LEAST_PLACES = 64, /* the same of places of extremes: an accumulator of these takes 50 ns for a row */
    MOST_STEPS = 256, /* where an accumulator has one lane */
    RANK = 8,
};

typedef struct aligner {
    ir_func *f;
    ir_map map;
    uint64_t cache;  /* bytes of the last one */
    ir_ref *defs;    /* by tensor: its definition */
    bool *is_spread; /* by tensor: its values are read again for each value of a row */
    uint32_t count;  /* tensors before */
    block list;      /* the function's definitions, rebuilt */
} aligner;

static int64_t steps_of(const ir_func *f, ir_ref statement)
{
    return ir_index_value(f, ir_operand(f, statement, ir_at(f, statement)->count - 1));
}

/* Whether the reduction has many short rows, and is neither a step's nor what the row's other values are computed
 * with, which is a stage of whole rows. */
static bool is_short_row(const aligner *a, ir_ref statement)
{
    const ir_func *f = a->f;
    const ir_node *n = ir_at(f, statement);
    if (n->op != IR_DEF || n->kind == 0 || n->kind == IR_DOT || opjit_ir_is_counted(f, statement) ||
        opjit_ir_scanned(f, statement) >= 0 || ir_is_of_recurrence(&f->tensors[n->ref]))
        return false;
    const ir_tensor *t = &f->tensors[n->ref];
    const bool arg = ir_kind_is_arg((ir_kind)n->kind);
    const bool single = arg || n->imm == 1; /* what has no lanes is far slower than with neighbours as lanes */
    const int64_t steps = steps_of(f, statement), least = single ? LEAST_STEPS : SHUFFLED + 1;
    const uint32_t last = ir_rank_in_use(t);
    const uint64_t rows = opjit_ir_count_elements(t);
    const uint64_t bytes = rows * (uint64_t)steps * opjit_ir_type_size((ir_type)n->type);
    return last > 0 && t->rank < RANK && t->sizes[last - 1] >= LEAST_LINE &&
           rows >= (arg ? LEAST_PLACES : LEAST_ROWS) && steps >= least &&
           steps <= (single ? MOST_STEPS : IR_REDUCE_LANES) && (arg || bytes <= a->cache / 2) &&
           (arg ? n->type != IR_INDEX : !a->is_spread[n->ref]);
}

/* Whether neighbours in memory are the row's values, each element is in one row at most, and each row is another. */
static bool is_row(const aligner *a, ir_ref statement, ir_ref load)
{
    const ir_func *f = a->f;
    const uint32_t tensor = ir_at(f, load)->ref, root = opjit_ir_root(f, tensor);
    const ir_tensor *own = &f->tensors[ir_at(f, statement)->ref];
    int64_t step;
    if (root < a->count && a->defs[root] != 0 && opjit_ir_reduced(f, a->defs[root]) == 0)
        return false; /* what is computed for each element is not computed in a transposition */
    if (!opjit_ir_step(f, load, opjit_ir_reduced(f, statement), &step) || step != 1 || !opjit_ir_in_bounds(f, load))
        return false; /* a condition may hide what is outside */
    for (uint32_t d = 0; d < own->rank; d++)
        if (own->sizes[d] > 1 && (!opjit_ir_step(f, load, opjit_ir_coordinate(f, statement, d), &step) ||
                                  step < steps_of(f, statement)))
            return false;
    return true;
}

/* A copy of what the load reads, by the reduction's coordinates of more than one value, the steps before the last. */
static ir_ref copy(aligner *a, ir_ref statement, ir_ref load)
{
    ir_func *f = a->f;
    const ir_tensor own = f->tensors[ir_at(f, statement)->ref];
    const uint32_t last = ir_rank_in_use(&own) - 1;
    ir_tensor t = { .role = IR_VALUE, .type = f->tensors[ir_at(f, load)->ref].type, .align = 64 };
    ir_ref from[RANK] = { 0 }, at[RANK] = { 0 };
    for (uint32_t d = 0; d <= last; d++) {
        if (d == last) {
            t.sizes[t.rank] = (uint64_t)steps_of(f, statement);
            from[t.rank++] = opjit_ir_reduced(f, statement);
        }
        if (own.sizes[d] == 1)
            continue;
        t.sizes[t.rank] = own.sizes[d];
        from[t.rank++] = opjit_ir_coordinate(f, statement, d);
    }
    t.bytes = opjit_ir_count_elements(&t) * opjit_ir_type_size(t.type);
    opjit_ir_dense_strides(&t);
    const uint32_t tensor = opjit_ir_tensor(f, &t);
    const ir_ref def = opjit_ir_def(f, tensor);
    ir_map here = { 0 };
    for (uint32_t d = 0; d < t.rank; d++) {
        at[d] = from[d];
        ir_map_set(f, &here, from[d], opjit_ir_coordinate(f, def, d));
    }
    for (uint32_t d = 0; d < own.rank; d++)
        if (own.sizes[d] == 1)
            ir_map_set(f, &here, opjit_ir_coordinate(f, statement, d), opjit_ir_index(f, 0));
    opjit_ir_set_value(f, def, opjit_ir_remake(f, &here, load));
    opjit_ir_block_add(f, &a->list, def);
    ir_took(f, IR_STEP_SIDE_BY_SIDE);
    return opjit_ir_load(f, tensor, at);
}

static void align(aligner *a, ir_ref statement)
{
    ir_func *f = a->f;
    if (!is_short_row(a, statement))
        return;
    const ir_reach seen = opjit_ir_reach_one(f, ir_operand(f, statement, 0));
    for (uint32_t k = 0; k < seen.count && !f->failed; k++)
        if (ir_at(f, seen.nodes[k])->op == IR_LOAD && is_row(a, statement, seen.nodes[k]))
            ir_map_set(f, &a->map, seen.nodes[k], copy(a, statement, seen.nodes[k]));
}

/* Lists definitions, and those that are read by larger ones, or by what such ones read. */
static bool begin(aligner *a)
{
    ir_func *f = a->f;
    uint32_t statements = 0;
    a->count = f->tensor_count;
    a->defs = ARENA_ARRAY(&f->scratch, ir_ref, a->count);
    a->is_spread = ARENA_ARRAY(&f->scratch, bool, a->count);
    for (ir_ref s = f->body; s != 0; s = ir_at(f, s)->next)
        statements++;
    ir_ref *const all = ARENA_ARRAY(&f->scratch, ir_ref, statements + 1);
    if (a->defs == NULL || a->is_spread == NULL || all == NULL) {
        f->failed = true;
        return false;
    }
    statements = 0;
    for (ir_ref s = f->body; s != 0; s = ir_at(f, s)->next) {
        all[statements++] = s;
        if (ir_is_definition(f, s))
            a->defs[ir_at(f, s)->ref] = s;
    }
    while (statements-- > 0 && !f->failed) {
        const ir_ref s = all[statements];
        const uint32_t own = ir_at(f, s)->ref;
        const ir_reach seen = opjit_ir_reach_one(f, ir_operand(f, s, 0));
        for (uint32_t k = 0; k < seen.count; k++) {
            const ir_node *n = ir_at(f, seen.nodes[k]);
            const uint32_t root = n->op == IR_LOAD ? opjit_ir_root(f, n->ref) : 0;
            if (n->op == IR_LOAD && a->defs[root] != 0)
                a->is_spread[root] = a->is_spread[root] || a->is_spread[own] || opjit_ir_reduced(f, s) != 0 ||
                                     opjit_ir_count_elements(&f->tensors[own]) >
                                         opjit_ir_count_elements(&f->tensors[root]);
        }
    }
    return true;
}

void opjit_ir_side_by_side(ir_func *f, const rt_target *target)
{
    const rt_arena_mark mark = rt_arena_position(&f->scratch);
    aligner a = { .f = f, .cache = target->l3 != 0 ? target->l3 : target->l2 };
    ir_ref next;
    if (!begin(&a))
        return;
    for (ir_ref s = f->body; s != 0 && !f->failed; s = next) {
        next = ir_at(f, s)->next;
        align(&a, s);
        opjit_ir_block_add(f, &a.list, s);
    }
    f->body = a.list.first;
    if (f->steps[IR_STEP_SIDE_BY_SIDE] > 0 && !f->failed)
        opjit_ir_remake_operands(f, &a.map, f->body);
    opjit_rt_arena_rewind(&f->scratch, mark);
}
