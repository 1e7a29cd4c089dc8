/* SPDX-License-Identifier: Apache-2.0 */
/* recurrence_stage.c - the stage of a recurrence.  A definition in it is what it would be as a stage of its own, whose
 * parallel loop is a loop among others here: steps need each other, and so do a step's definitions.  Part of place. */
#include "ir/passes/place/recurrence.h"

#include <string.h>

typedef struct writer {
    placer *p;
    recurrence *r;
    ir_func *f;
} writer;

/* Loops over the elements of a block in a step; *at: their coordinates. */
static block add_loops(writer *w, block *list, const ir_tensor *t, ir_ref *at)
{
    block inside = *list, *to = list;
    for (uint32_t d = 0; d < t->rank; d++) {
        at[d] = opjit_ir_index(w->f, 0);
        if (t->sizes[d] == 1 && d + 1 < t->rank)
            continue;
        const ir_ref loop = opjit_ir_for(w->f, at[d], opjit_ir_index(w->f, (int64_t)t->sizes[d]), 1);
        if (w->f->failed)
            break;
        opjit_ir_block_add(w->f, to, loop);
        inside = (block){ .parent = loop };
        to = &inside;
        at[d] = ir_at(w->f, loop)->ref;
    }
    return inside;
}

/* Stores an element where memory of all steps has it. */
static void store_outside(writer *w, block *list, const recurrence_member *m, ir_ref value, const ir_ref *at)
{
    const recurrence *r = w->r;
    const uint32_t tensor = ir_at(w->f, w->p->items[m->item].statement)->ref;
    ir_ref to[8];
    memcpy(to, r->at, sizeof to);
    if (m->role == RECURRENCE_LAST)
        to[0] = opjit_ir_index(w->f, 0);
    for (uint32_t d = r->base; d < w->f->tensors[tensor].rank; d++)
        to[d] = at[d - r->base];
    if (r->rows > 0)
        to[r->base] = ir_make2(w->f, IR_IADD, IR_INDEX, r->at[r->base], at[0]);
    opjit_ir_block_add(w->f, list, opjit_ir_store(w->f, tensor, value, to));
}

/* What is no reduction: a loop for each coordinate. */
static void add_nest(writer *w, block *list, const recurrence_member *m)
{
    ir_func *f = w->f;
    const ir_tensor t = f->tensors[ir_at(f, m->statement)->ref];
    inliner in = { .f = f, .sources = w->p->sources, .private_views = w->p->roots > 1 };
    ir_ref at[8];
    block inside = add_loops(w, list, &t, at);
    if (f->failed)
        return;
    const ir_ref value = opjit_ir_share(f, &inside, opjit_ir_inline(&in, m->statement, t.rank, at));
    if (m->scratch != 0)
        opjit_ir_block_add(f, &inside, opjit_ir_store(f, m->scratch, value, at));
    else
        store_outside(w, &inside, m, value, at);
}

/* Copies a row of scratch: to another one, or (to NULL) to memory of all steps. */
static void add_copy(writer *w, block *list, const recurrence_member *from, const recurrence_member *to)
{
    const ir_tensor t = w->f->tensors[from->scratch];
    ir_ref at[8];
    block inside = add_loops(w, list, &t, at);
    if (w->f->failed)
        return;
    const ir_ref value = opjit_ir_load(w->f, from->scratch, at);
    if (to != NULL)
        opjit_ir_block_add(w->f, &inside, opjit_ir_store(w->f, to->scratch, value, at));
    else
        store_outside(w, &inside, from, value, at);
}

/* --- reductions --------------------------------------------------------------------------------------------------- */

/* Whether a step reads more of the reduction's other factor than the second cache has. */
static bool is_far(const writer *w, ir_ref statement)
{
    const ir_node *def = ir_at(w->f, statement);
    const ir_tensor *t = &w->f->tensors[def->ref];
    const rt_target *target = w->p->env->target;
    const int64_t k = ir_index_value(w->f, ir_operand(w->f, statement, def->count - 1));
    return target != NULL && t->rank > 0 &&
           (double)k * (double)t->sizes[t->rank - 1] * opjit_ir_type_size(t->type) > (double)target->l2;
}

/* Iteration i of n, or n - 1 - i in every second step: what a step read last, a cache still has. */
static ir_ref to_and_fro(writer *w, block *list, ir_ref i, int64_t n)
{
    ir_func *f = w->f;
    const ir_ref zero = opjit_ir_index(f, 0), last = opjit_ir_index(f, n - 1);
    const ir_ref odd = ir_make2(f, IR_IMOD, IR_INDEX, w->r->at[0], opjit_ir_index(f, 2));
    const ir_ref begin = ir_make2(f, IR_IMUL, IR_INDEX, odd, last);
    const ir_ref back = ir_make2(f, IR_ISUB, IR_INDEX, begin, i);
    const ir_ref from = ir_make2(f, IR_IMAX, IR_INDEX, ir_make2(f, IR_ISUB, IR_INDEX, i, begin), back);
    return opjit_ir_block_let(f, list, ir_make3(f, IR_CLAMP, IR_INDEX, from, zero, last));
}

/* The stages as loops of the list, to and fro or all forth. */
static void add_as_loops(writer *w, block *list, block *stages, bool fro)
{
    ir_func *f = w->f;
    for (ir_ref s = stages->first, next; s != 0 && !f->failed; s = next) {
        const int64_t n = ir_index_value(f, ir_operand(f, s, 1));
        block inside, *to = list;
        ir_ref number = opjit_ir_index(f, 0);
        next = ir_at(f, s)->next;
        if (n > 1) {
            const ir_ref loop = opjit_ir_for(f, number, opjit_ir_index(f, n), 1);
            if (f->failed)
                return;
            opjit_ir_block_add(f, list, loop);
            inside = (block){ .parent = loop };
            to = &inside;
            number = fro ? to_and_fro(w, to, ir_at(f, loop)->ref, n) : ir_at(f, loop)->ref;
        }
        ir_map map = { 0 };
        ir_map_set(f, &map, ir_at(f, s)->ref, number);
        for (ir_ref b = opjit_ir_remake_block(f, &map, ir_at(f, s)->body), after; b != 0; b = after) {
            after = ir_at(f, b)->next;
            opjit_ir_block_add(f, to, b);
        }
    }
}

static void add_reduction(writer *w, block *list, const recurrence_member *m)
{
    place_rows_of *rows = &w->p->rows;
    block stages = { 0 };
    rows->count = 1;
    rows->members[0] = (row_member){ .statement = m->statement, .outside = true };
    rows->is_step = true;
    const bool placed = !w->p->threads &&
                        ((w->p->env->target != NULL &&
                          opjit_ir_place_contraction(rows, w->p->env->tiles, w->p->env->target, &stages)) ||
                         opjit_ir_place_columns(rows, &stages));
    if (!placed) {
        rows->rows = w->f->tensors[m->scratch].rank;
        opjit_ir_place_rows(rows, &stages);
    }
    rows->is_step = false;
    add_as_loops(w, list, &stages, placed && is_far(w, m->statement));
}

/* --- the stage ---------------------------------------------------------------------------------------------------- */

static void add_member(writer *w, block *list, const recurrence_member *m)
{
    if (opjit_ir_reduced(w->f, m->statement) != 0)
        add_reduction(w, list, m);
    else
        add_nest(w, list, m);
    if (m->is_kept && m->role == RECURRENCE_DEF)
        add_copy(w, list, m, NULL);
}

static void add_role(writer *w, block *list, recurrence_role role)
{
    for (uint32_t i = 0; i < w->r->count && !w->f->failed; i++)
        if (w->r->members[i].role == role)
            add_member(w, list, &w->r->members[i]);
}

/* A state becomes what feeds it. */
static void add_feeds(writer *w, block *list)
{
    const recurrence *r = w->r;
    for (uint32_t i = 0; i < r->defs && !w->f->failed; i++) {
        const ir_tensor *own = &w->f->tensors[ir_at(w->f, w->p->items[r->first + i].statement)->ref];
        for (uint32_t k = 0; k < i && own->feeds != 0; k++)
            if (ir_at(w->f, w->p->items[r->first + k].statement)->ref == own->feeds)
                add_copy(w, list, &r->members[i], &r->members[k]);
    }
}

/* For products: the coordinates of rows, and where stages go that are made before the first step. */
static void set_around(writer *w, block *stages)
{
    const recurrence *r = w->r;
    const ir_tensor *t = &w->f->tensors[ir_at(w->f, w->p->items[r->first].statement)->ref];
    place_rows_of *rows = &w->p->rows;
    rows->ahead = stages;
    for (uint32_t d = 1; d <= r->base && !w->f->failed; d++) {
        if (ir_is_index_const(w->f, r->at[d]) || (d == r->base && r->size > 1))
            continue;
        rows->around[rows->around_count] = r->at[d];
        rows->around_sizes[rows->around_count++] = (int64_t)t->sizes[d];
    }
}

uint32_t opjit_ir_group_recurrence(placer *p, uint32_t first, block *stages)
{
    const uint32_t number = p->items[first].recurrence;
    recurrence *r = number == 0 ? NULL : &p->recurrences[number - 1];
    if (r == NULL)
        return first;
    writer w = { .p = p, .r = r, .f = p->f };
    set_around(&w, stages);
    add_role(&w, &r->body, RECURRENCE_STATE);
    opjit_ir_block_add(p->f, &r->body, r->loop);
    for (uint32_t i = 0; i < r->count && !p->f->failed; i++)
        if (r->members[i].role == RECURRENCE_STATE && r->members[i].is_kept)
            add_copy(&w, &r->steps, &r->members[i], NULL);
        else if (r->members[i].role == RECURRENCE_DEF || r->members[i].role == RECURRENCE_STEP)
            add_member(&w, &r->steps, &r->members[i]);
    add_feeds(&w, &r->steps);
    add_role(&w, &r->body, RECURRENCE_LAST);
    p->rows.around_count = 0;
    opjit_ir_block_add(p->f, stages, r->stage);
    ir_took(p->f, IR_STEP_RECURRENCE);
    return first + r->count;
}
