/* SPDX-License-Identifier: Apache-2.0 */
/* nest.c - finds in a stage what collapse can reshape, a full nest of loops around lets and one store; sorts its
 * coordinates by the output's strides, and merges neighbours where the layout of every tensor and the use in every
 * expression allow it.  Part of collapse; its shapes ask here for sizes, for how coordinates step, and for what is
 * worth a call. */
#include "ir/passes/collapse/nest.h"

/* --- recognise -------------------------------------------------------------------------------------------------- */

static bool match_loop(nest *n, ir_ref loop)
{
    const ir_func *f = n->f;
    const ir_ref lo = ir_operand(f, loop, 0), hi = ir_operand(f, loop, 1);
    if (n->rank == NEST_RANK || ir_is_serial(f, loop) || !ir_is_index_const(f, lo) || !ir_is_index_const(f, hi) ||
        ir_index_value(f, lo) != 0 || ir_index_value(f, hi) < 1 ||
        (ir_at(f, loop)->op == IR_FOR && ir_at(f, loop)->imm != 1))
        return false;
    n->vars[n->rank] = ir_at(f, loop)->ref;
    n->extents[n->rank++] = ir_index_value(f, hi);
    return true;
}

/* The coordinate is the variable, or the variable plus a constant. */
static bool match_coordinate(nest *n, uint32_t d)
{
    const ir_func *f = n->f;
    const ir_ref at = ir_operand(f, n->store, 1 + d);
    if (at == n->vars[d])
        return true;
    if (ir_at(f, at)->op != IR_IADD || ir_operand(f, at, 0) != n->vars[d] ||
        !ir_is_index_const(f, ir_operand(f, at, 1)))
        return false;
    n->offsets[d] = ir_index_value(f, ir_operand(f, at, 1));
    return true;
}

static bool match_nest(nest *n)
{
    const ir_func *f = n->f;
    n->first = n->stage;
    while (n->first != 0 && (ir_at(f, n->first)->op == IR_STAGE || ir_at(f, n->first)->op == IR_FOR)) {
        if (!match_loop(n, n->first) || (ir_at(f, n->first)->op == IR_FOR && ir_at(f, n->first)->next != 0))
            return false;
        n->first = ir_at(f, n->first)->body;
    }
    for (n->store = n->first; n->store != 0 && ir_at(f, n->store)->op == IR_LET;)
        n->store = ir_at(f, n->store)->next;
    if (n->store == 0 || ir_at(f, n->store)->op != IR_STORE || ir_at(f, n->store)->next != 0 ||
        ir_at(f, n->store)->count != 1 + n->rank)
        return false;
    for (uint32_t d = 0; d < n->rank; d++)
        if (!match_coordinate(n, d))
            return false;
    return true;
}

/* Whether the load is at the stored coordinate, of a tensor of the same size except for coordinates of size 1.  A
 * smaller one is only read where a select allows it. */
static bool at_store(const nest *n, ir_ref load)
{
    const ir_tensor *t = &n->f->tensors[ir_at(n->f, load)->ref];
    if (t->rank != n->rank)
        return false;
    for (uint32_t d = 0; d < n->rank; d++)
        if (t->sizes[d] != 1 && (ir_operand(n->f, load, d) != n->vars[d] || t->sizes[d] != (uint64_t)n->extents[d]))
            return false;
    return true;
}

/* What is known of a node, by its position in seen, which contains the operands of its nodes. */
typedef struct node_facts {
    bool is_root, reads_let;
} node_facts;

static void add_root(nest *n, const ir_reach *seen, node_facts *facts, ir_ref r)
{
    node_facts *const of = &facts[opjit_ir_reach_place(seen, r)];
    if (ir_at(n->f, r)->type == IR_INDEX && ir_at(n->f, r)->op != IR_CONST && !of->is_root) {
        of->is_root = true;
        n->reads_let[n->root_count] = of->reads_let;
        n->roots[n->root_count++] = r;
    }
}

/* Marks what moves with a coordinate otherwise than through what is loaded, and in facts what reads a let; NULL: no
 * memory. */
static bool *find_moving(const nest *n, const ir_reach *seen, node_facts *facts)
{
    ir_func *f = n->f;
    bool *moves = ARENA_ARRAY(&f->scratch, bool, seen->count);
    const uint32_t *places = opjit_ir_reach_places(f, seen);
    for (uint32_t k = 0; k < seen->count && moves != NULL; k++) { /* operands are older than the node */
        const ir_ref r = seen->nodes[k];
        const ir_node *node = ir_at(f, r);
        moves[k] = facts[k].reads_let = node->op == IR_GET; /* of a let: unknown */
        for (uint32_t i = 0; i < node->count; i++)
            facts[k].reads_let = facts[k].reads_let || facts[places[ir_operand(f, r, i)]].reads_let;
        for (uint32_t d = 0; d < n->rank; d++)
            moves[k] = moves[k] || r == n->vars[d];
        for (uint32_t i = 0; i < node->count && node->op != IR_LOAD; i++)
            moves[k] = moves[k] || moves[places[ir_operand(f, r, i)]];
    }
    return moves;
}

/* Whether the load is at places that loaded elements say, of memory that no other load of the stage reads: so it is the
 * same however coordinates are merged.  loads: how many there are of each tensor. */
static bool is_placed(const nest *n, const ir_reach *seen, const bool *moves, const ir_table *loads, ir_ref load)
{
    const ir_func *f = n->f;
    const uint32_t tensor = ir_at(f, load)->ref, out = nest_output(n);
    bool placed = false;
    for (uint32_t i = 0; i < ir_at(f, load)->count; i++) {
        if (moves[opjit_ir_reach_place(seen, ir_operand(f, load, i))])
            return false;
        placed = placed || ir_at(f, ir_operand(f, load, i))->op != IR_CONST;
    }
    return placed && opjit_ir_table_get(loads, tensor) == 1 && tensor != out && tensor != f->tensors[out].alias;
}

static bool find_uses(nest *n)
{
    ir_func *f = n->f;
    const ir_reach seen = opjit_ir_reach(f, n->first);
    node_facts *facts = ARENA_ARRAY(&f->scratch, node_facts, seen.count);
    bool *moves = facts == NULL ? NULL : find_moving(n, &seen, facts);
    n->loads = ARENA_ARRAY(&f->scratch, ir_ref, seen.count);
    n->roots = ARENA_ARRAY(&f->scratch, ir_ref, seen.count);
    n->reads_let = ARENA_ARRAY(&f->scratch, bool, seen.count);
    if (seen.nodes == NULL || n->loads == NULL || n->roots == NULL || n->reads_let == NULL || moves == NULL) {
        f->failed = true;
        return false;
    }
    ir_table loads = { 0 };
    for (uint32_t k = 0; k < seen.count; k++) {
        const ir_node *node = ir_at(f, seen.nodes[k]);
        if (node->op == IR_LOAD)
            opjit_ir_table_set(f, &loads, node->ref, opjit_ir_table_get(&loads, node->ref) + 1);
    }
    const uint32_t out = nest_output(n), alias = f->tensors[out].alias;
    n->regular = n->stages[out] == 1; /* another stage may use a tensor differently */
    if (alias != 0) /* its layout changes with the output's */
        n->regular = n->regular && n->stages[alias] == (opjit_ir_table_get(&loads, alias) != 0);
    for (uint32_t d = 0; d < n->rank; d++)
        n->regular = n->regular && n->offsets[d] == 0;
    for (uint32_t k = 0; k < seen.count; k++) {
        const ir_ref r = seen.nodes[k];
        if (ir_at(f, r)->op == IR_LOAD && !is_placed(n, &seen, moves, &loads, r)) {
            n->loads[n->load_count++] = r;
            n->regular = n->regular && at_store(n, r) && n->stages[ir_at(f, r)->ref] == 1;
        }
    }
    for (uint32_t k = 0; k < seen.count; k++) {
        const ir_node *node = ir_at(f, seen.nodes[k]);
        if (node->type != IR_INDEX && node->op != IR_STORE && !(node->op == IR_LOAD && n->regular))
            for (uint32_t i = 0; i < node->count; i++)
                add_root(n, &seen, facts, ir_operand(f, seen.nodes[k], i));
    }
    return true;
}

/* --- sort and merge ---------------------------------------------------------------------------------------------- */

/* Sorts by the output's stride, the largest outermost; equal ones keep their order. */
static void sort_loops(nest *n)
{
    const uint32_t out = nest_output(n);
    for (uint32_t d = 0; d < n->rank; d++) {
        if (n->extents[d] == 1)
            continue;
        uint32_t at = n->count++;
        for (; at > 0 && nest_stride(n, out, n->order[at - 1]) < nest_stride(n, out, d); at--)
            n->order[at] = n->order[at - 1];
        n->order[at] = d;
    }
    n->inner = n->count == 0 ? 0 : n->count - 1;
}

/* Whether every tensor's layout allows merging both coordinates. */
static bool layouts_join(const nest *n, uint32_t a, uint32_t b)
{
    bool join = n->regular && opjit_ir_nest_joins(n, nest_output(n), a, b);
    for (uint32_t i = 0; join && i < n->load_count; i++)
        join = opjit_ir_nest_joins(n, ir_at(n->f, n->loads[i])->ref, a, b);
    return join;
}

static bool uses_join(const nest *n, uint32_t a, uint32_t b)
{
    for (uint32_t i = 0; i < n->root_count; i++) {
        ir_affine rest;
        int64_t factors[NEST_RANK];
        if (opjit_ir_nest_root(n, i, &rest, factors)
                ? !opjit_ir_nest_factors_join(n, factors, a, b)
                : opjit_ir_uses(n->f, n->roots[i], n->vars[a]) || opjit_ir_uses(n->f, n->roots[i], n->vars[b]))
            return false;
    }
    return true;
}

void opjit_ir_nest_group(nest *n)
{
    while (!n->tiled && n->inner > 0 && layouts_join(n, n->order[n->inner - 1], n->order[n->inner]) &&
           uses_join(n, n->order[n->inner - 1], n->order[n->inner]))
        n->inner--;
    for (uint32_t i = 1; i <= n->inner; i++)
        if (i == n->inner || !layouts_join(n, n->order[i - 1], n->order[i]))
            n->group_end[n->groups++] = i;
    if (n->tiled)
        n->group_end[n->groups++] = n->count - 1;
    n->group_end[n->groups++] = n->count;
}

nest *opjit_ir_find_nest(ir_func *f, bool threads, ir_ref stage, const uint8_t *stages)
{
    nest *n = ARENA_NEW(&f->scratch, nest);
    if (n == NULL) {
        f->failed = true;
        return NULL;
    }
    n->f = f;
    n->stage = stage;
    n->stages = stages;
    n->threads = threads;
    if (!match_nest(n) || !find_uses(n))
        return NULL;
    sort_loops(n);
    return n;
}

/* --- questions of its shapes -------------------------------------------------------------------------------------- */

bool opjit_ir_nest_joins(const nest *n, uint32_t tensor, uint32_t a, uint32_t b)
{
    uint64_t whole;
    return checked_mul(nest_stride(n, tensor, b), (uint64_t)n->extents[b], &whole) &&
           nest_stride(n, tensor, a) == whole;
}

bool opjit_ir_nest_factors(const nest *n, ir_affine *form, int64_t factors[NEST_RANK])
{
    for (uint32_t d = 0; d < n->rank; d++)
        factors[d] = opjit_ir_affine_take(n->f, form, n->vars[d]);
    for (uint32_t i = 0; i < form->count; i++)
        for (uint32_t d = 0; d < n->rank; d++)
            if (opjit_ir_uses(n->f, form->atoms[i], n->vars[d]))
                return false;
    return true;
}

bool opjit_ir_nest_root(const nest *n, uint32_t i, ir_affine *rest, int64_t factors[NEST_RANK])
{
    *rest = (ir_affine){ 0 };
    return !n->reads_let[i] && opjit_ir_affine_add(n->f, rest, n->roots[i], 1) &&
           opjit_ir_nest_factors(n, rest, factors);
}

bool opjit_ir_nest_factors_join(const nest *n, const int64_t factors[NEST_RANK], uint32_t a, uint32_t b)
{
    int64_t whole;
    return checked_muli(factors[b], n->extents[b], &whole) && factors[a] == whole;
}

int64_t opjit_ir_nest_extent(const nest *n, uint32_t first, uint32_t end)
{
    int64_t product = 1; /* of sizes of one tensor: at most its elements */
    for (uint32_t i = first; i < end; i++)
        product *= n->extents[n->order[i]];
    return product;
}

int64_t opjit_ir_nest_until(int64_t row, int64_t unit)
{
    return unit / gcd(row, unit);
}

uint64_t opjit_ir_nest_grain(uint64_t row, int64_t iterations)
{
    const int64_t bytes = (int64_t)row, least = (NEST_PIECE_BYTES + bytes - 1) / bytes;
    const int64_t page = opjit_ir_nest_until(bytes, NEST_PAGE);
    const int64_t unit = page <= least ? page : opjit_ir_nest_until(bytes, IR_LINE);
    const int64_t grain = (least + unit - 1) / unit * unit;
    return (uint64_t)(grain > iterations ? iterations : grain);
}
