/* SPDX-License-Identifier: Apache-2.0 */
/* hoist.c - finds what is the same in every iteration of a loop, and makes lets for it before the loop.  Part of
 * split. */
#include "ir/passes/split/split.h"

/* false: no memory. */
bool opjit_ir_look_at_body(ir_func *f, ir_ref loop, loop_body *out)
{
    out->seen = opjit_ir_reach(f, ir_at(f, loop)->body);
    out->variant = ARENA_ARRAY(&f->scratch, bool, out->seen.count);
    const uint32_t *places = opjit_ir_reach_places(f, &out->seen);
    const uint32_t *stamp = f->walks.stamp, now = f->walks.now; /* of statements, those inside were reached */
    if (out->variant == NULL || f->failed) {
        f->failed = true;
        return false;
    }
    for (uint32_t k = 0; k < out->seen.count; k++) { /* operands are older than the node */
        const ir_ref r = out->seen.nodes[k];
        const ir_node *n = ir_at(f, r);
        if (!ir_is_pure(f, r))
            continue;
        bool varies = n->op == IR_LOAD || (n->op == IR_VAR && (n->ref == loop || stamp[n->ref] == now)) ||
                      (n->op == IR_GET && (stamp[n->ref] == now || ir_at(f, n->ref)->op == IR_ACC));
        for (uint32_t i = 0; i < n->count && !varies; i++)
            varies = out->variant[places[ir_operand(f, r, i)]];
        out->variant[k] = varies;
    }
    return true;
}

/* --- places from data --------------------------------------------------------------------------------------------- */

/* What the statements of a loop store to: roots, the inputs that these are aliases of, and the slots of inputs whose
 * memory they may have. */
typedef struct stored_memory {
    ir_table tensors;
    uint32_t slots;
} stored_memory;

static void find_stored(ir_func *f, ir_ref first, stored_memory *out)
{
    for (ir_ref s = first; s != 0; s = ir_at(f, s)->next) {
        if (ir_at(f, s)->op != IR_STORE) {
            find_stored(f, ir_at(f, s)->body, out); /* as deep as loops nest: rule V16 */
            continue;
        }
        const uint32_t root = opjit_ir_root(f, ir_at(f, s)->ref);
        opjit_ir_table_set(f, &out->tensors, root, 1);
        if (f->tensors[root].role != IR_OUT)
            continue;
        if (f->tensors[root].alias != 0)
            opjit_ir_table_set(f, &out->tensors, f->tensors[root].alias, 1);
        out->slots |= f->tensors[root].shared;
    }
}

static bool may_be_stored(const ir_func *f, const stored_memory *stored, uint32_t root)
{
    const ir_tensor *t = &f->tensors[root];
    return opjit_ir_table_get(&stored->tensors, root) != 0 ||
           (t->role == IR_IN && t->slot < 32 && (stored->slots >> t->slot & 1) != 0);
}

/* Whether the load is of the same element in every iteration, as `fixed` says of its indices, which it may read where
 * the loop would not, and which no store of the loop changes. */
static bool is_fixed(const ir_func *f, const bool *fixed, const uint32_t *places, const stored_memory *stored,
                     ir_ref load)
{
    const ir_tensor *t = &f->tensors[ir_at(f, load)->ref];
    const uint32_t root = opjit_ir_root(f, ir_at(f, load)->ref);
    const ir_role role = f->tensors[root].role;
    for (uint32_t d = 0; d < t->rank; d++)
        if (t->strides[d] != 0 && !fixed[places[ir_operand(f, load, d)]])
            return false;
    return (role == IR_IN || role == IR_CONSTANT || role == IR_TEMP) && opjit_ir_in_bounds(f, load) &&
           !may_be_stored(f, stored, root);
}

/* The load under the map, without the coordinates that move nothing. */
static ir_ref fixed_load(ir_func *f, ir_map *map, ir_ref load)
{
    const ir_node n = *ir_at(f, load);
    ir_ref at[8] = { 0 };
    for (uint32_t d = 0; d < n.count; d++)
        at[d] = f->tensors[n.ref].strides[d] == 0 ? opjit_ir_index(f, 0)
                                                        : opjit_ir_remake(f, map, ir_operand(f, load, d));
    return opjit_ir_load(f, n.ref, at);
}

/* What is made of memory, and the same in every iteration. */
typedef struct fixed_body {
    bool *fixed;  /* by position in seen: the same, though it may load memory */
    bool *placed; /* of these: it moves out with what it loads */
    stored_memory stored;
    ir_map moved; /* loads, without the coordinates that move nothing; lets that move out, and reads of them */
} fixed_body;

/* Marks what no iteration changes, lets: also of lets in the loop; returns whether a place is computed out of it. */
static bool mark_fixed(ir_func *f, const loop_body *b, const uint32_t *places, bool lets, fixed_body *x)
{
    bool computes = false;
    for (uint32_t k = 0; k < b->seen.count && !f->failed; k++) { /* operands are older than the node */
        const ir_ref r = b->seen.nodes[k];
        const ir_node n = *ir_at(f, r);
        x->fixed[k] = n.count > 0 ? ir_is_pure(f, r) || n.op == IR_LET : ir_is_pure(f, r) && !b->variant[k];
        if (n.op == IR_GET && lets && ir_at(f, n.ref)->op == IR_LET &&
            opjit_ir_reach_place(&b->seen, n.ref) != UINT32_MAX)
            x->fixed[k] = x->fixed[places[n.ref]];
        if (n.op == IR_LOAD) {
            x->fixed[k] = is_fixed(f, x->fixed, places, &x->stored, r);
            continue;
        }
        for (uint32_t i = 0; i < n.count; i++)
            x->fixed[k] = x->fixed[k] && x->fixed[places[ir_operand(f, r, i)]];
        computes = computes || (n.op == IR_TO_INDEX && x->fixed[k] && ir_at(f, ir_operand(f, r, 0))->op != IR_LOAD);
    }
    return computes;
}

/* Finds indices out of memory that are the same in every iteration, which are then no variants; where such an index is
 * computed, so is what else is computed of memory that is the same.  false: there is none. */
static bool find_places(ir_func *f, loop_body *b, ir_ref loop, fixed_body *x)
{
    bool any = false;
    for (uint32_t k = 0; k < b->seen.count && !any; k++)
        any = ir_at(f, b->seen.nodes[k])->op == IR_TO_INDEX;
    if (!any)
        return false;
    const uint32_t *places = opjit_ir_reach_places(f, &b->seen);
    find_stored(f, ir_at(f, loop)->body, &x->stored);
    x->fixed = ARENA_ARRAY(&f->scratch, bool, b->seen.count);
    x->placed = ARENA_ARRAY(&f->scratch, bool, b->seen.count);
    f->failed = f->failed || x->fixed == NULL || x->placed == NULL;
    const bool computes = !f->failed && mark_fixed(f, b, places, true, x);
    if (!f->failed && !computes)
        mark_fixed(f, b, places, false, x);
    for (uint32_t k = 0; k < b->seen.count && !f->failed; k++) {
        const ir_ref r = b->seen.nodes[k];
        const ir_node n = *ir_at(f, r);
        const bool loads = n.count > 0 && ir_at(f, ir_operand(f, r, 0))->op == IR_LOAD;
        const bool is_let = n.op == IR_LET || (n.op == IR_GET && b->variant[k]);
        x->placed[k] = x->fixed[k] && ((n.op == IR_TO_INDEX && (computes || loads)) ||
                                       (computes && (n.op == IR_LOAD || is_let)));
        for (uint32_t i = 0; i < n.count && x->fixed[k]; i++)
            x->placed[k] = x->placed[k] || x->placed[places[ir_operand(f, r, i)]];
        if (x->placed[k])
            b->variant[k] = false;
    }
    return !f->failed;
}

/* --- lets out of the loop ----------------------------------------------------------------------------------------- */

/* Equal for expressions that opjit_ir_same calls equal. */
static uint64_t hash_of(ir_func *f, ir_table *hash, ir_ref expr)
{
    const ir_node n = *ir_at(f, expr);
    const bool itself = n.op == IR_VAR || !ir_is_pure(f, expr);
    uint32_t found = opjit_ir_table_get(hash, expr);
    if (found == 0) {
        uint64_t made = opjit_ir_hash(n.op * 64u + n.type, itself ? expr : n.imm);
        made = opjit_ir_hash(made, (uint64_t)n.ref << 8 | n.count);
        for (uint32_t i = 0; i < n.count && !itself; i++)
            made = opjit_ir_hash(made, hash_of(f, hash, ir_operand(f, expr, i))); /* as deep as opjit_ir_same */
        found = (uint32_t)made | 1;
        opjit_ir_table_set(f, hash, expr, found);
    }
    return found;
}

/* The let of this value; 0: there is none, and *key is free for it. */
static ir_ref let_of(ir_func *f, hoisted *out, ir_ref value, uint64_t *key)
{
    ir_ref let;
    *key = hash_of(f, &out->hash, value);
    for (; (let = opjit_ir_table_get(&out->lets, *key)) != 0; ++*key)
        if (opjit_ir_same(f, ir_operand(f, let, 0), value))
            return let;
    return 0;
}

/* As opjit_ir_block_let, but for long lists. */
static ir_ref let(ir_func *f, hoisted *out, ir_ref value)
{
    uint64_t key;
    while (out->last != out->list.tail) {
        out->last = out->last == 0 ? out->list.first : ir_at(f, out->last)->next;
        if (ir_at(f, out->last)->op == IR_LET && let_of(f, out, ir_operand(f, out->last, 0), &key) == 0)
            opjit_ir_table_set(f, &out->lets, key, out->last);
    }
    if (!ir_needs_let((ir_op)ir_at(f, value)->op))
        return value;
    const ir_ref old = let_of(f, out, value, &key);
    if (old != 0)
        return opjit_ir_get(f, old);
    const ir_ref made = opjit_ir_let(f, value);
    opjit_ir_block_add(f, &out->list, made);
    return opjit_ir_get(f, made);
}

/* Moves the values of lets that are the same in every iteration, because others that move read them; *map: from the
 * values. */
static void move_lets(ir_func *f, hoisted *out, const loop_body *b, fixed_body *x, ir_map *map)
{
    for (uint32_t k = 0; k < b->seen.count && !f->failed; k++) {
        const ir_ref r = b->seen.nodes[k];
        const ir_node n = *ir_at(f, r);
        if (n.op == IR_LOAD && x->fixed[k])
            ir_map_set(f, &x->moved, r, fixed_load(f, &x->moved, r));
        if (!x->placed[k])
            continue;
        if (n.op == IR_LET) {
            const ir_ref value = ir_operand(f, r, 0);
            const ir_ref to = let(f, out, opjit_ir_remake(f, &x->moved, value));
            ir_map_set(f, &x->moved, r, to);
            if (ir_at(f, value)->count > 0)
                ir_map_set(f, map, value, to);
        }
        const ir_ref moved = n.op == IR_GET ? ir_map_get(&x->moved, n.ref) : 0;
        if (moved != 0)
            ir_map_set(f, &x->moved, r, moved);
    }
}

/* Who reads a let in the loop, all of whose value moves out, reads what has moved. */
static void read_moved(ir_func *f, const loop_body *b, ir_map *map)
{
    for (uint32_t k = 0; k < b->seen.count; k++) {
        const ir_ref r = b->seen.nodes[k];
        const ir_node n = *ir_at(f, r);
        if (n.op != IR_GET || ir_at(f, n.ref)->op != IR_LET)
            continue;
        const ir_ref moved = ir_map_get(map, ir_operand(f, n.ref, 0));
        if (moved != 0)
            ir_map_set(f, map, r, moved);
    }
}

/* These values load nothing but what may be loaded anywhere, so they may be computed where the loop would not. */
void opjit_ir_hoist(ir_func *f, hoisted *out, ir_ref loop)
{
    ir_map map = { 0 };
    fixed_body x = { 0 };
    loop_body b;
    if (!opjit_ir_look_at_body(f, loop, &b))
        return;
    const bool places = find_places(f, &b, loop, &x);
    bool any = false;
    if (places)
        move_lets(f, out, &b, &x, &map);
    const uint32_t *const near = places ? NULL : opjit_ir_reach_places(f, &b.seen); /* else walks are on the way */
    for (uint32_t k = b.seen.count; k-- > 0 && !f->failed;) {
        const ir_ref r = b.seen.nodes[k];
        if (ir_is_pure(f, r) && !b.variant[k])
            continue; /* not in the loop, or part of something that moves out as a whole */
        for (uint32_t i = 0; i < ir_at(f, r)->count; i++) {
            const ir_ref part = ir_operand(f, r, i);
            const uint32_t place = near != NULL ? near[part] : opjit_ir_reach_place(&b.seen, part);
            const bool is_place = places && x.placed[place];
            if (b.variant[place] || ir_at(f, part)->count == 0 || (ir_at(f, part)->type == IR_INDEX && !is_place) ||
                ir_at(f, part)->op == IR_PAIR)
                continue;
            if (ir_map_get(&map, part) == 0)
                ir_map_set(f, &map, part, let(f, out, is_place ? opjit_ir_remake(f, &x.moved, part) : part));
            any = true;
        }
    }
    if (any) {
        read_moved(f, &b, &map);
        opjit_ir_remake_operands(f, &map, ir_at(f, loop)->body);
        ir_took(f, IR_STEP_HOIST);
    }
}
