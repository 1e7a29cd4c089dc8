/* SPDX-License-Identifier: Apache-2.0 */
/* place.c - what pass place works on, definitions and outputs as items, and the stages of single ones: a nest of loops,
 * columns, or a row of its own.  group_rows.c makes those of several. */
#include "ir/passes/place/place.h"

#include <string.h>

/* --- items ------------------------------------------------------------------------------------------------------- */

opjit_status opjit_ir_list_items(placer *p)
{
    ir_func *f = p->f;
    for (ir_ref s = f->body; s != 0; s = ir_at(f, s)->next)
        p->count++;
    p->items = ARENA_ARRAY(&f->scratch, item, p->count);
    p->item_of = ARENA_ARRAY(&f->scratch, uint32_t, f->tensor_count);
    p->source_count = f->tensor_count;
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
    for (ir_ref s = f->body; s != 0 && p->env->once && !p->threads; s = ir_at(f, s)->next) {
        const rt_arena_mark mark = rt_arena_position(&f->scratch);
        const uint32_t t = ir_at(f, s)->ref;
        if (ir_is_definition(f, s) && !ir_is_of_recurrence(&f->tensors[t]))
            p->sources[t].constant = opjit_ir_constant_bytes(f, p->sources, s);
        opjit_rt_arena_rewind(&f->scratch, mark);
    }
    return OPJIT_OK;
}

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

opjit_status opjit_ir_place_nest(placer *p, uint32_t number, block *stages)
{
    ir_func *f = p->f;
    const ir_ref statement = p->items[number].statement;
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

/* The output, or definition with memory, that alone reads the reduction, element by element, and is the next root; 0:
 * there is none. */
uint32_t opjit_ir_output_of(const placer *p, uint32_t number)
{
    const ir_func *f = p->f;
    const item *x = &p->items[number];
    uint32_t next = number + 1;
    while (next < p->count && !p->items[next].is_root)
        next++;
    if (next == p->count || !x->by_element || x->first_root != next)
        return 0;
    const ir_node *n = ir_at(f, p->items[next].statement), *own = ir_at(f, x->statement);
    const ir_tensor *out = &f->tensors[n->ref], *t = &f->tensors[own->ref];
    const bool is_element = n->kind == 0 && (n->op == IR_DEF || (n->op == IR_YIELD && n->imm == 0));
    return is_element && p->items[next].recurrence == 0 && out->rank == t->rank &&
                   memcmp(out->sizes, t->sizes, t->rank * sizeof *t->sizes) == 0
               ? next
               : 0;
}

/* The reduction, and the output that alone reads it, as members; returns the item after the last of them. */
static uint32_t set_members(placer *p, uint32_t first)
{
    const uint32_t output = opjit_ir_output_of(p, first);
    place_rows_of *r = &p->rows;
    r->count = output != 0 ? 2 : 1;
    r->members[0] = (row_member){ .statement = p->items[first].statement, .outside = true };
    r->members[1] = (row_member){ .statement = output != 0 ? p->items[output].statement : 0, .outside = true };
    return output != 0 ? output + 1 : first + 1;
}

uint32_t opjit_ir_group_tiles(placer *p, uint32_t first, block *stages)
{
    const uint32_t end = set_members(p, first);
    if (p->threads || p->env->target == NULL)
        return first;
    if (opjit_ir_place_window(&p->rows, p->env->tiles, p->env->target, stages))
        ir_took(p->f, IR_STEP_WINDOW);
    else if (opjit_ir_place_contraction(&p->rows, p->env->tiles, p->env->target, stages))
        ir_took(p->f, IR_STEP_CONTRACT);
    else
        return first;
    return end;
}

uint32_t opjit_ir_group_columns(placer *p, uint32_t first, block *stages)
{
    const uint32_t end = set_members(p, first);
    if (p->threads || !opjit_ir_place_columns(&p->rows, stages))
        return first;
    ir_took(p->f, IR_STEP_COLUMNS);
    return end;
}

uint32_t opjit_ir_place_lone_row(placer *p, uint32_t first, block *stages)
{
    const ir_ref statement = p->items[first].statement;
    place_rows_of *r = &p->rows;
    const uint32_t end = opjit_ir_is_counted(p->f, statement) ? set_members(p, first) : first + 1;
    r->rows = p->f->tensors[ir_at(p->f, statement)->ref].rank;
    r->count = end > first + 1 ? 2 : 1;
    r->members[0] = (row_member){ .statement = statement, .outside = r->count == 1 };
    if (opjit_ir_place_rows(r, stages) || r->count == 1)
        return end;
    r->count = 1;
    r->members[0].outside = true;
    opjit_ir_place_rows(r, stages);
    return first + 1;
}
