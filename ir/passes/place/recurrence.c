/* SPDX-License-Identifier: Apache-2.0 */
/* recurrence.c - finds recurrences, their rows, and the outputs that can be stored as the steps go; and writes the
 * value of each member over a block of rows in one step.  Part of place; recurrence_stage.c writes the stage. */
#include "ir/passes/place/recurrence.h"

#include <string.h>

enum {
    MOST_BLOCK = 32, /* rows: their products with a matrix read it once */
    LEAST_BLOCK = 8,
    APART = 16, /* elements behind a row of scratch: rows are not all in one set of a cache */
};

static const ir_tensor *tensor_at(const placer *p, uint32_t number)
{
    return &p->f->tensors[ir_at(p->f, p->items[number].statement)->ref];
}

/* --- members ------------------------------------------------------------------------------------------------------ */

/* Whether the load's coordinate is that of its reader, or there is only one. */
static bool is_own(const ir_func *f, ir_ref reader, ir_ref load, uint32_t d)
{
    return f->tensors[ir_at(f, load)->ref].sizes[d] == 1 || ir_operand(f, load, d) == opjit_ir_coordinate(f, reader, d);
}

/* How many coordinates after the step all definitions have, and read each other at their own. */
static uint32_t rows_of(const placer *p, const recurrence *r)
{
    uint32_t rows = 7;
    for (uint32_t i = r->first; i < r->first + r->defs; i++) {
        const item *x = &p->items[i];
        const ir_tensor *t = tensor_at(p, i), *first = tensor_at(p, r->first);
        rows = rows < t->rank - 2 ? rows : t->rank - 2;
        for (uint32_t d = 1; d <= rows; d++)
            rows = t->sizes[d] == first->sizes[d] ? rows : d - 1;
        for (uint32_t k = 0; k < x->site_count; k++) {
            const site *s = &p->sites[x->first_site + k];
            for (uint32_t d = 1; d <= rows && s->def >= r->first; d++)
                rows = is_own(p->f, x->statement, s->load, d) ? rows : d - 1;
        }
    }
    return rows;
}

/* Whether the load is of a definition of the recurrence, and of the reader's own row. */
static bool reads_row(const placer *p, const recurrence *r, ir_ref reader, const site *s)
{
    const ir_func *f = p->f;
    bool own = s->def < r->first + r->defs && ir_at(f, s->load)->ref == ir_at(f, p->items[s->def].statement)->ref;
    for (uint32_t d = 1; d <= r->rows && own; d++)
        own = is_own(f, reader, s->load, d);
    return own;
}

/* The role of an item behind the recurrence; DEF: it is none of its members. */
static recurrence_role role_of(const placer *p, const recurrence *r, uint32_t number)
{
    const ir_func *f = p->f;
    const item *x = &p->items[number];
    const ir_tensor *t = tensor_at(p, number), *first = tensor_at(p, r->first);
    bool each = t->sizes[0] == first->sizes[0], last = t->sizes[0] == 1, any = false;
    if (ir_at(f, x->statement)->op != IR_YIELD || ir_at(f, x->statement)->imm != 0 || t->rank < r->rows + 2)
        return RECURRENCE_DEF;
    for (uint32_t d = 1; d <= r->rows; d++)
        if (t->sizes[d] != first->sizes[d])
            return RECURRENCE_DEF;
    for (uint32_t k = 0; k < x->site_count; k++) {
        const site *s = &p->sites[x->first_site + k];
        const ir_ref at = ir_operand(f, s->load, 0);
        if (s->def < r->first)
            continue;
        if (!reads_row(p, r, x->statement, s))
            return RECURRENCE_DEF;
        each = each && is_own(f, x->statement, s->load, 0);
        last = last && ir_is_index_const(f, at) && ir_index_value(f, at) == (int64_t)first->sizes[0] - 1;
        any = true;
    }
    return !any ? RECURRENCE_DEF : each ? RECURRENCE_STEP : last ? RECURRENCE_LAST : RECURRENCE_DEF;
}

static bool list_members(placer *p, recurrence *r)
{
    ir_func *f = p->f;
    uint32_t outputs = 0;
    while (r->first + r->defs + outputs < p->count && role_of(p, r, r->first + r->defs + outputs) != RECURRENCE_DEF)
        outputs++;
    r->count = r->defs + outputs;
    r->members = ARENA_ARRAY(&f->scratch, recurrence_member, r->count);
    for (uint32_t i = 0; i < r->count && r->members != NULL; i++) {
        const uint32_t number = r->first + i;
        r->members[i] = (recurrence_member){ .item = number, .role = RECURRENCE_DEF };
        if (i >= r->defs)
            r->members[i].role = role_of(p, r, number);
        else if (tensor_at(p, number)->fed_by != 0)
            r->members[i].role = RECURRENCE_STATE;
        p->items[number].recurrence = r->number;
    }
    f->failed = f->failed || r->members == NULL;
    return !f->failed;
}

/* --- blocks ------------------------------------------------------------------------------------------------------- */

/* Whether the rows of a step read something together: a product's factor that is the same for all of them. */
static bool shares(const placer *p, const recurrence *r)
{
    ir_func *f = p->f;
    for (uint32_t i = r->first; i < r->first + r->defs; i++) {
        const ir_ref def = p->items[i].statement, pair = ir_operand(f, def, 0);
        const ir_ref row = opjit_ir_coordinate(f, def, r->rows);
        for (uint32_t k = 0; k < 2 && ir_at(f, def)->kind == IR_DOT; k++)
            if (!opjit_ir_uses(f, ir_operand(f, pair, k), row))
                return true;
    }
    return false;
}

/* Rows of a block: all of them where they are few, or a divisor; one where a block gains nothing. */
static int64_t block_of(const placer *p, const recurrence *r, int64_t rows)
{
    int64_t best = rows;
    if (p->threads || !shares(p, r))
        return 1;
    for (int64_t b = LEAST_BLOCK; b <= MOST_BLOCK && rows > MOST_BLOCK; b++)
        best = rows % b == 0 ? b : best;
    return best;
}

static ir_ref digit(ir_func *f, ir_ref p, int64_t below, int64_t size)
{
    if (size == 1)
        return opjit_ir_index(f, 0);
    return ir_make2(f, IR_IMOD, IR_INDEX, ir_make2(f, IR_IDIV, IR_INDEX, p, opjit_ir_index(f, below)),
                    opjit_ir_index(f, size));
}

/* The loops over blocks and steps, and what rows and step their iterations have. */
static void set_loops(placer *p, recurrence *r)
{
    ir_func *f = p->f;
    const ir_tensor *t = tensor_at(p, r->first);
    int64_t all = 1, below;
    r->base = r->rows > 0 ? r->rows : 1;
    r->size = r->rows == 0 ? (int64_t)t->sizes[1] : block_of(p, r, (int64_t)t->sizes[r->rows]);
    const int64_t blocks = (int64_t)t->sizes[r->base] / r->size;
    for (uint32_t d = 1; d < r->base; d++)
        all *= (int64_t)t->sizes[d];
    below = all *= blocks;
    const ir_ref zero = opjit_ir_index(f, 0);
    r->stage = opjit_ir_stage(f, zero, opjit_ir_index(f, all), 1);
    r->loop = opjit_ir_for(f, zero, opjit_ir_index(f, (int64_t)t->sizes[0]), 1);
    if (f->failed)
        return;
    r->body.parent = r->stage;
    r->steps.parent = r->loop;
    r->at[0] = ir_at(f, r->loop)->ref;
    const ir_ref number = ir_at(f, r->stage)->ref;
    for (uint32_t d = 1; d < r->base; d++) {
        below /= (int64_t)t->sizes[d];
        r->at[d] = opjit_ir_block_let(f, &r->body, digit(f, number, below, (int64_t)t->sizes[d]));
    }
    const ir_ref first = ir_make2(f, IR_IMUL, IR_INDEX, digit(f, number, 1, blocks), opjit_ir_index(f, r->size));
    r->at[r->base] = opjit_ir_block_let(f, &r->body, first);
}

/* --- values ------------------------------------------------------------------------------------------------------- */

/* What a block has of the member in a step, in scratch if it is a definition. */
static uint32_t declare(placer *p, const recurrence *r, const recurrence_member *m)
{
    const ir_tensor *all = tensor_at(p, m->item);
    ir_tensor t = { .role = IR_SCRATCH, .type = all->type, .rank = all->rank - r->base, .align = 64 };
    for (uint32_t d = 0; d < t.rank; d++)
        t.sizes[d] = all->sizes[r->base + d];
    t.sizes[0] = (uint64_t)r->size < t.sizes[0] ? (uint64_t)r->size : t.sizes[0];
    if (m->role == RECURRENCE_STEP || m->role == RECURRENCE_LAST)
        t.role = IR_VALUE;
    opjit_ir_dense_strides(&t);
    if (t.rank == 2 && t.sizes[0] > 1)
        t.strides[0] += APART;
    if (!opjit_ir_span_bytes(&t, &t.bytes))
        p->f->failed = true;
    return p->f->failed ? 0 : opjit_ir_tensor(p->f, &t);
}

/* Replaces loads of definitions by loads of their scratch. */
static void map_loads(placer *p, const recurrence *r, const recurrence_member *m, ir_map *map)
{
    ir_func *f = p->f;
    const item *x = &p->items[m->item];
    for (uint32_t k = 0; k < x->site_count && !f->failed; k++) {
        const site *s = &p->sites[x->first_site + k];
        ir_ref at[8];
        if (s->def < r->first)
            continue;
        const uint32_t from = r->members[s->def - r->first].scratch, rank = f->tensors[from].rank;
        for (uint32_t d = 0; d < rank; d++)
            at[d] = d == 0 && r->rows > 0 ? opjit_ir_coordinate(f, m->statement, 0)
                                          : opjit_ir_remake(f, map, ir_operand(f, s->load, r->base + d));
        ir_map_set(f, map, s->load, f->failed ? 0 : opjit_ir_load(f, from, at));
    }
}

/* The member's value in the step, over the elements of a block. */
static void write_value(placer *p, const recurrence *r, recurrence_member *m)
{
    ir_func *f = p->f;
    const ir_ref from = p->items[m->item].statement, k = opjit_ir_reduced(f, from);
    const ir_node own = *ir_at(f, from);
    const uint32_t tensor = declare(p, r, m), rank = f->failed ? 0 : f->tensors[tensor].rank;
    ir_map map = { 0 };
    if (f->failed)
        return;
    m->scratch = f->tensors[tensor].role == IR_SCRATCH ? tensor : 0;
    m->statement = k == 0 ? opjit_ir_def(f, tensor)
                          : opjit_ir_reduce(f, tensor, (ir_kind)own.kind, (uint32_t)own.imm,
                                            (uint64_t)ir_index_value(f, ir_operand(f, from, own.count - 1)));
    if (f->failed)
        return;
    if (k != 0) {
        f->nodes[m->statement].block = own.block;
        ir_map_set(f, &map, k, opjit_ir_reduced(f, m->statement));
    }
    const bool has_step = m->role == RECURRENCE_DEF || m->role == RECURRENCE_STEP;
    ir_map_set(f, &map, opjit_ir_coordinate(f, from, 0), has_step ? r->at[0] : opjit_ir_index(f, 0));
    for (uint32_t d = 1; d < r->base; d++)
        ir_map_set(f, &map, opjit_ir_coordinate(f, from, d), r->at[d]);
    for (uint32_t d = 0; d < rank; d++) {
        const ir_ref var = opjit_ir_coordinate(f, m->statement, d);
        ir_map_set(f, &map, opjit_ir_coordinate(f, from, r->base + d),
                   d == 0 && r->rows > 0 ? ir_make2(f, IR_IADD, IR_INDEX, r->at[r->base], var) : var);
    }
    map_loads(p, r, m, &map);
    opjit_ir_set_value(f, m->statement, opjit_ir_remake(f, &map, ir_operand(f, from, 0)));
}

/* --- all recurrences ---------------------------------------------------------------------------------------------- */

/* Definitions that items outside of their recurrence read, which are not the outputs that it stores. */
static void find_kept(placer *p)
{
    for (uint32_t i = 0; i < p->count; i++)
        for (uint32_t k = 0; k < p->items[i].site_count; k++) {
            const uint32_t def = p->sites[p->items[i].first_site + k].def, number = p->items[def].recurrence;
            recurrence *r = number == 0 ? NULL : &p->recurrences[number - 1];
            if (r != NULL && p->items[i].recurrence != number)
                r->members[def - r->first].is_kept = true;
        }
}

static void prepare(placer *p, recurrence *r)
{
    set_loops(p, r);
    for (uint32_t i = 0; i < r->count && !p->f->failed; i++) {
        const rt_arena_mark mark = rt_arena_position(&p->f->scratch);
        write_value(p, r, &r->members[i]);
        opjit_rt_arena_rewind(&p->f->scratch, mark);
        if (i < r->defs && !r->members[i].is_kept)
            p->f->tensors[ir_at(p->f, p->items[r->first + i].statement)->ref].role = IR_VALUE; /* no memory after all */
    }
}

/* What is known by tensor, now that there are more of them. */
static void grow_sources(placer *p, uint32_t before)
{
    inline_source *more = ARENA_ARRAY(&p->f->scratch, inline_source, p->f->tensor_count);
    if (more != NULL)
        memcpy(more, p->sources, before * sizeof *more);
    p->f->failed = p->f->failed || more == NULL;
    p->sources = more != NULL ? more : p->sources;
}

void opjit_ir_find_recurrences(placer *p)
{
    ir_func *f = p->f;
    const uint32_t before = f->tensor_count;
    uint32_t count = 0;
    for (uint32_t i = 0; i < p->count; i++)
        count += tensor_at(p, i)->fed_by != 0;
    if (count == 0)
        return;
    p->recurrences = ARENA_ARRAY(&f->scratch, recurrence, count);
    if (p->recurrences == NULL) {
        f->failed = true;
        return;
    }
    count = 0;
    for (uint32_t i = 0; i < p->count && !f->failed; i++) {
        const ir_ref last = opjit_ir_recurrence_last(f, p->items[i].statement);
        recurrence *r = &p->recurrences[count];
        if (last == 0)
            continue;
        *r = (recurrence){ .first = i, .defs = 1, .number = ++count };
        while (p->items[i + r->defs - 1].statement != last)
            r->defs++;
        r->rows = rows_of(p, r);
        if (list_members(p, r))
            i += r->count - 1;
    }
    if (!f->failed)
        find_kept(p);
    for (uint32_t i = 0; i < count && !f->failed; i++)
        prepare(p, &p->recurrences[i]);
    grow_sources(p, before);
}
