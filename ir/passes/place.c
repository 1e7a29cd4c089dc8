/* SPDX-License-Identifier: Apache-2.0 */
/* place.c - from value form to loop form: which definitions are computed where they are read, which get memory, which
 * stages make them.  Needs: value form.  Leaves: a stage for every output (or box of one) and for every definition that
 * gets memory, each a full nest of loops in the order of the coordinates; in it lets for what is costly and shared, and
 * one store.  Reductions are stages of rows or of columns.
 *
 * The steps are cut_reductions, materialize, group_rows, columns (each root is made in the first of these shapes that
 * it fits), inline and share, which write values. */
#include "ir/passes/place.h"

#include <string.h>

/* --- stages ----------------------------------------------------------------------------------------------------- */

static uint64_t box_size(const ir_func *f, ir_ref statement, uint32_t d)
{
    const ir_tensor *t = &f->tensors[ir_at(f, statement)->ref];
    return ir_at(f, statement)->imm != 0
               ? (uint64_t)ir_index_value(f, ir_operand(f, statement, 1 + t->rank + 3 * d + 1))
               : t->sizes[d];
}

/* Where the element with these coordinates is stored: in a box, relative to its offset. */
static opjit_status stored_at(placer *p, ir_ref statement, const ir_ref *vars, ir_ref *out)
{
    ir_func *f = p->f;
    const uint32_t tensor = ir_at(f, statement)->ref, rank = f->tensors[tensor].rank;
    memcpy(out, vars, rank * sizeof *out);
    for (uint32_t d = 0; d < rank && ir_at(f, statement)->imm != 0; d++) {
        const ir_ref offset = ir_operand(f, statement, 1 + rank + 3 * d),
                     step = ir_operand(f, statement, 1 + rank + 3 * d + 2);
        if (ir_index_value(f, step) != 1)
            return opjit_rt_refuse(
                p->error, OPJIT_UNSUPPORTED,
                "{!kernel}{!stride}output %u is written in steps of %lld; boxes of whole rows are placed", tensor,
                (long long)ir_index_value(f, step));
        out[d] = ir_make2(f, IR_IADD, IR_INDEX, vars[d], offset);
    }
    return OPJIT_OK;
}

static opjit_status place_nest(placer *p, const item *x, block *stages)
{
    ir_func *f = p->f;
    const ir_ref statement = x->statement;
    const uint32_t tensor = ir_at(f, statement)->ref, rank = f->tensors[tensor].rank;
    inliner in = { .f = f, .sources = p->sources, .private_views = p->roots > 1, .loop_count = rank };
    ir_ref parent = 0, at[8];
    for (uint32_t d = 0; d < rank; d++) {
        in.extents[d] = box_size(f, statement, d);
        const ir_ref lo = opjit_ir_index(f, 0), hi = opjit_ir_index(f, (int64_t)in.extents[d]);
        const ir_ref loop = d == 0 ? opjit_ir_stage(f, lo, hi, 1) : opjit_ir_for(f, lo, hi, 1);
        block inside = { .parent = parent };
        opjit_ir_block_add(f, d == 0 ? stages : &inside, loop);
        parent = loop;
        in.loops[d] = ir_at(f, loop)->ref;
    }
    if (f->failed)
        return opjit_rt_no_memory(p->error);
    TRY(stored_at(p, statement, in.loops, at));
    block innermost = { .parent = parent };
    const ir_ref value = opjit_ir_share(f, &innermost, opjit_ir_inline(&in, statement, rank, in.loops));
    opjit_ir_block_add(f, &innermost, opjit_ir_store(f, tensor, value, at));
    return f->failed ? opjit_rt_no_memory(p->error) : OPJIT_OK;
}

/* The output that alone reads the reduction, element by element, and is the next root; 0: there is none. */
static uint32_t output_of(const placer *p, uint32_t number)
{
    const ir_func *f = p->f;
    const item *x = &p->items[number];
    uint32_t next = number + 1;
    while (next < p->count && !p->items[next].is_root)
        next++;
    if (next == p->count || x->reads == 0 || !x->aligned || x->first_root != next || x->last_root != next)
        return 0;
    const ir_node *n = ir_at(f, p->items[next].statement), *own = ir_at(f, x->statement);
    const ir_tensor *out = &f->tensors[n->ref], *t = &f->tensors[own->ref];
    return n->op == IR_YIELD && n->kind == 0 && n->imm == 0 && out->rank == t->rank &&
                   memcmp(out->sizes, t->sizes, t->rank * sizeof *t->sizes) == 0
               ? next
               : 0;
}

/* The stage of root number `first` and of those that it includes, up to *out_end. */
static opjit_status place_root(placer *p, place_rows_of *rows, uint32_t first, block *stages, uint32_t *out_end)
{
    const ir_ref statement = p->items[first].statement;
    const uint32_t end = opjit_ir_group_rows(p, first, rows, stages);
    if (end > first) {
        *out_end = end;
        return OPJIT_OK;
    }
    if (opjit_ir_reduced(p->f, statement) == 0)
        return place_nest(p, &p->items[first], stages);
    const uint32_t output = output_of(p, first);
    rows->count = output != 0 ? 2 : 1;
    rows->rows = p->f->tensors[ir_at(p->f, statement)->ref].rank;
    rows->members[0] = (row_member){ .statement = statement, .outside = true };
    rows->members[1] = (row_member){ .statement = output != 0 ? p->items[output].statement : 0, .outside = true };
    if (!p->threads && opjit_ir_place_columns(rows, stages)) {
        ir_took(p->f, IR_STEP_COLUMNS);
        *out_end = output != 0 ? output + 1 : first + 1;
        return OPJIT_OK;
    }
    rows->count = 1;
    opjit_ir_place_rows(rows, stages);
    return OPJIT_OK;
}

/* The stages in the order of the items, so that memory is written before it is read. */
static opjit_status place_all(placer *p)
{
    ir_func *f = p->f;
    block stages = { 0 };
    for (uint32_t i = 0; i < p->count; i++) {
        const item *x = &p->items[i];
        const uint32_t tensor = ir_at(f, x->statement)->ref;
        if (ir_at(f, x->statement)->op != IR_DEF)
            continue;
        p->sources[tensor].def = x->temp ? 0 : x->statement;
        if (x->temp) {
            f->tensors[tensor].role = IR_TEMP;
            f->tensors[tensor].align = 64; /* as layout makes it */
        }
    }
    place_rows_of p_rows = { .f = f, .sources = p->sources, .private_views = p->roots > 1, .blocks = !p->threads };
    for (uint32_t i = 0, end; i < p->count; i = end) {
        const rt_arena_mark mark = rt_arena_position(&f->scratch);
        end = i + 1;
        if (p->items[i].is_root)
            TRY(place_root(p, &p_rows, i, &stages, &end));
        opjit_rt_arena_rewind(&f->scratch, mark);
    }
    f->body = stages.first;
    return f->failed ? opjit_rt_no_memory(p->error) : OPJIT_OK;
}

static opjit_status begin(placer *p)
{
    ir_func *f = p->f;
    for (ir_ref s = f->body; s != 0; s = ir_at(f, s)->next)
        p->count++;
    p->items = ARENA_ARRAY(&f->scratch, item, p->count);
    p->item_of = ARENA_ARRAY(&f->scratch, uint32_t, f->tensor_count);
    p->sources = ARENA_ARRAY(&f->scratch, inline_source, f->tensor_count);
    p->seen = ARENA_ARRAY(&f->scratch, uint32_t, f->node_count);
    p->stack = ARENA_ARRAY(&f->scratch, ir_ref, f->operand_count + 1);
    if (p->items == NULL || p->item_of == NULL || p->sources == NULL || p->seen == NULL || p->stack == NULL)
        return opjit_rt_no_memory(p->error);
    for (uint32_t t = 1; t < f->tensor_count; t++)
        if (f->tensors[t].role == IR_OUT)
            p->sources[f->tensors[t].alias].aliased = true;
    p->count = 0;
    for (ir_ref s = f->body; s != 0; s = ir_at(f, s)->next)
        p->items[p->count++].statement = s;
    return OPJIT_OK;
}

opjit_status opjit_ir_pass_place(ir_func *f, const ir_pass_env *env, bool *out_changed, opjit_error *error)
{
    placer p = { .f = f, .error = error, .threads = env->target != NULL && rt_target_team(env->target) > 0 };
    *out_changed = false;
    if (f->body == 0 || ir_at(f, f->body)->op == IR_STAGE)
        return OPJIT_OK;
    *out_changed = true;
    opjit_ir_cut_reductions(f);
    if (f->failed)
        return opjit_rt_no_memory(error);
    TRY(begin(&p));
    opjit_ir_materialize(&p);
    if (f->failed)
        return opjit_rt_no_memory(error);
    return place_all(&p);
}
