/* SPDX-License-Identifier: Apache-2.0 */
/* coalesce.c - writes a nest whose coordinates are sorted and merged as one parallel loop around one inner loop, or as
 * tiles.  Part of collapse.  A coordinate that is still needed by itself becomes a quotient or remainder of the
 * parallel loop's variable, in a let. */
#include "ir/passes/collapse/nest.h"

/* Positions [first, end) as one coordinate. */
static ir_ref coordinate(nest *n, uint32_t first, uint32_t end)
{
    ir_func *f = n->f;
    if (first >= n->inner)
        return n->tiled && first == n->inner ? n->row_var : n->inner_var; /* not taken apart: uses_join */
    ir_ref *known = &n->runs[first][end - 1];
    if (*known == 0) {
        const ir_ref below = opjit_ir_index(f, opjit_ir_nest_extent(n, end, n->inner));
        ir_ref value = ir_make2(f, IR_IDIV, IR_INDEX, n->outer_var, below);
        if (first > 0)
            value = ir_make2(f, IR_IMOD, IR_INDEX, value, opjit_ir_index(f, opjit_ir_nest_extent(n, first, end)));
        *known = opjit_ir_block_let(f, &n->body, value);
    }
    return *known;
}

/* Enters in the map what root number `at` becomes: variables that step together become one. */
static void map_root(nest *n, ir_map *map, uint32_t at)
{
    ir_func *f = n->f;
    const ir_ref root = n->roots[at];
    ir_affine form;
    int64_t factors[NEST_RANK];
    if (!opjit_ir_nest_root(n, at, &form, factors)) {
        for (uint32_t i = 0; i < n->count; i++)
            if (opjit_ir_uses(f, root, n->vars[n->order[i]]))
                ir_map_set(f, map, n->vars[n->order[i]], coordinate(n, i, i + 1));
        return;
    }
    for (uint32_t first = 0, end; first < n->count; first = end) {
        const uint32_t stop = first < n->inner ? n->inner : n->tiled ? first + 1 : n->count;
        for (end = first + 1; end < stop && opjit_ir_nest_factors_join(n, factors, n->order[end - 1], n->order[end]);
             end++)
            ;
        if (factors[n->order[end - 1]] != 0 &&
            !opjit_ir_affine_add(f, &form, coordinate(n, first, end), factors[n->order[end - 1]])) {
            f->failed = true; /* can't be: there are at most as many terms as before */
            return;
        }
    }
    const ir_ref built = opjit_ir_affine_build(f, &form);
    if (!opjit_ir_same(f, built, root))
        ir_map_set(f, map, root, built);
}

static void merge_layout(const nest *n, uint32_t tensor)
{
    ir_tensor *t = &n->f->tensors[tensor];
    const ir_tensor old = *t;
    t->rank = n->groups;
    for (uint32_t g = 0, first = 0; g < n->groups; first = n->group_end[g++]) {
        t->sizes[g] = (uint64_t)opjit_ir_nest_extent(n, first, n->group_end[g]);
        t->strides[g] = 0;
        if (t->sizes[g] > 1) {
            const uint32_t last = n->order[n->group_end[g] - 1];
            t->strides[g] = old.sizes[last] == 1 ? 0 : old.strides[last];
        }
    }
}

static void merge_layouts(const nest *n)
{
    const uint32_t out = nest_output(n);
    ir_table done = { 0 };
    merge_layout(n, out);
    opjit_ir_table_set(n->f, &done, out, 1);
    for (uint32_t i = 0; i <= n->load_count; i++) { /* an aliased input keeps the output's layout, read or not */
        const uint32_t t = i == 0 ? n->f->tensors[out].alias : ir_at(n->f, n->loads[i - 1])->ref;
        if (t != 0 && opjit_ir_table_get(&done, t) == 0)
            merge_layout(n, t);
        opjit_ir_table_set(n->f, &done, t, 1);
    }
}

/* The coordinates that a load or the store is rewritten to. */
static void new_coordinates(nest *n, ir_ref out[NEST_RANK])
{
    ir_func *f = n->f;
    if (n->regular) {
        for (uint32_t g = 0, first = 0; g < n->groups; first = n->group_end[g++])
            out[g] = coordinate(n, first, n->group_end[g]);
        return;
    }
    for (uint32_t d = 0; d < n->rank; d++)
        if (n->extents[d] == 1)
            out[d] = opjit_ir_index(f, 0);
    for (uint32_t i = 0; i < n->count; i++)
        out[n->order[i]] = coordinate(n, i, i + 1);
    for (uint32_t d = 0; d < n->rank; d++)
        out[d] = ir_make2(f, IR_IADD, IR_INDEX, out[d], opjit_ir_index(f, n->offsets[d]));
}

/* The stage, the loop that goes into it, and the innermost one, still empty. */
static ir_ref make_loops(nest *n, ir_ref *out_top, ir_ref *out_loop)
{
    ir_func *f = n->f;
    const ir_ref zero = opjit_ir_index(f, 0);
    const uint64_t size = opjit_ir_type_size(f->tensors[nest_output(n)].type);
    const int64_t inner = opjit_ir_nest_extent(n, n->inner, n->count),
                  bytes = n->threads ? NEST_TEAM_BYTES : NEST_PIECE_BYTES, tile = bytes / (int64_t)size;
    const int64_t outer = n->inner > 0 ? opjit_ir_nest_extent(n, 0, n->inner) : (inner + tile - 1) / tile;
    const uint64_t grain = n->inner > 0 ? opjit_ir_nest_grain((uint64_t)inner * size, outer) : 1;
    const ir_ref stage = opjit_ir_stage(f, zero, opjit_ir_index(f, outer), grain);
    ir_ref lo = zero, hi = opjit_ir_index(f, inner);
    if (n->inner == 0 && outer > 1) {
        lo = opjit_ir_expr(f, IR_IMUL, IR_INDEX, 2, (ir_ref[2]){ ir_at(f, stage)->ref, opjit_ir_index(f, tile) });
        hi = ir_make2(f, IR_IMIN, IR_INDEX, ir_make2(f, IR_IADD, IR_INDEX, lo, opjit_ir_index(f, tile)), hi);
    }
    *out_top = *out_loop = opjit_ir_for(f, lo, hi, 1);
    return stage;
}

/* Appends the lets before the store, under the map, to list. */
static void rewrite_lets(nest *n, ir_map *map, block *list)
{
    ir_func *f = n->f;
    ir_ref last = 0;
    for (ir_ref s = n->first; s != n->store; s = ir_at(f, s)->next)
        last = s;
    if (last == 0)
        return;
    f->nodes[last].next = 0;
    opjit_ir_block_move(f, &(block){ .first = opjit_ir_remake_block(f, map, n->first) }, list);
}

void opjit_ir_coalesce(nest *n, block *stages)
{
    ir_func *f = n->f;
    ir_ref top = 0, loop = 0, at[NEST_RANK] = { 0 };
    ir_map map = { 0 };
    const ir_ref stage = n->tiled ? opjit_ir_tile_loops(n, &top, &loop) : make_loops(n, &top, &loop);
    n->body = (block){ .parent = stage };
    n->outer_var = ir_at(f, stage)->ref;
    n->inner_var = ir_at(f, loop)->ref;
    for (uint32_t d = 0; d < n->rank; d++)
        if (n->extents[d] == 1)
            ir_map_set(f, &map, n->vars[d], opjit_ir_index(f, 0));
    for (uint32_t i = 0; i < n->root_count; i++)
        map_root(n, &map, i);
    new_coordinates(n, at);
    if (n->regular) {
        merge_layouts(n);
        for (uint32_t i = 0; i < n->load_count; i++)
            ir_map_set(f, &map, n->loads[i], opjit_ir_load(f, ir_at(f, n->loads[i])->ref, at));
    }
    block inside = { .parent = loop };
    rewrite_lets(n, &map, &inside);
    const ir_ref value = opjit_ir_remake(f, &map, ir_operand(f, n->store, 0));
    opjit_ir_block_add(f, &inside, opjit_ir_store(f, ir_at(f, n->store)->ref, value, at));
    opjit_ir_block_add(f, &n->body, top);
    opjit_ir_block_add(f, stages, stage);
    if (!n->tiled)
        ir_took(f, IR_STEP_COALESCE);
}
