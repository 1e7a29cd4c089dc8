/* SPDX-License-Identifier: Apache-2.0 */
/* pass_rebuild.c - what passes do to a function: find what a statement reads, rebuild under a map, list statements. */
#include "ir/pass.h"

#include <string.h>

/* --- reach ------------------------------------------------------------------------------------------------------ */

typedef struct walk {
    const ir_func *f;
    uint8_t *seen;
    ir_ref *stack;
    uint32_t depth;
} walk;

static void push(walk *w, ir_ref node)
{
    if (node == 0 || w->seen[node])
        return;
    w->seen[node] = 1;
    w->stack[w->depth++] = node; /* every node comes here once at most: the stack has room for all */
}

static void drain(walk *w)
{
    while (w->depth > 0) {
        const ir_ref r = w->stack[--w->depth];
        const ir_node *n = ir_at(w->f, r);
        for (uint32_t i = 0; i < n->count; i++)
            push(w, ir_operand(w->f, r, i));
        if (n->op == IR_FOR || n->op == IR_STAGE)
            push(w, n->ref);
        for (ir_ref s = n->body; s != 0; s = ir_at(w->f, s)->next)
            push(w, s);
    }
}

static bool walk_begin(ir_func *f, walk *w)
{
    *w = (walk){ .f = f, .seen = ARENA_ARRAY(&f->arena, uint8_t, f->node_count),
                 .stack = ARENA_ARRAY(&f->arena, ir_ref, f->node_count) };
    if (w->seen == NULL || w->stack == NULL)
        f->failed = true;
    return !f->failed;
}

uint8_t *opjit_ir_reach(ir_func *f, ir_ref first)
{
    walk w;
    if (!walk_begin(f, &w))
        return NULL;
    for (ir_ref s = first; s != 0; s = ir_at(f, s)->next) {
        push(&w, s);
        drain(&w);
    }
    return w.seen;
}

uint8_t *opjit_ir_reach_one(ir_func *f, ir_ref node)
{
    walk w;
    if (!walk_begin(f, &w))
        return NULL;
    push(&w, node);
    drain(&w);
    return w.seen;
}

static void note_stage(uint8_t *count, uint32_t *last, uint32_t tensor, uint32_t stage)
{
    if (last[tensor] == stage)
        return;
    last[tensor] = stage;
    count[tensor] = (uint8_t)(count[tensor] < 2 ? count[tensor] + 1 : 2);
}

static void push_stamped(ir_ref *stack, uint32_t *depth, uint32_t *stamp, uint32_t stage, ir_ref node)
{
    if (node == 0 || stamp[node] == stage)
        return;
    stamp[node] = stage;
    stack[(*depth)++] = node; /* once a stage at most */
}

uint8_t *opjit_ir_stages_of(ir_func *f)
{
    uint8_t *count = ARENA_ARRAY(&f->arena, uint8_t, f->tensor_count);
    uint32_t *last = ARENA_ARRAY(&f->arena, uint32_t, f->tensor_count), stage = 0;
    uint32_t *stamp = ARENA_ARRAY(&f->arena, uint32_t, f->node_count);
    ir_ref *stack = ARENA_ARRAY(&f->arena, ir_ref, f->node_count);
    if (count == NULL || last == NULL || stamp == NULL || stack == NULL) {
        f->failed = true;
        return NULL;
    }
    for (ir_ref s = f->body; s != 0; s = ir_at(f, s)->next) {
        uint32_t depth = 0;
        push_stamped(stack, &depth, stamp, ++stage, s);
        while (depth > 0) {
            const ir_ref r = stack[--depth];
            const ir_node *n = ir_at(f, r);
            if (n->op == IR_LOAD || n->op == IR_STORE) {
                note_stage(count, last, n->ref, stage);
                note_stage(count, last, f->tensors[n->ref].alias, stage);
            }
            for (uint32_t i = 0; i < n->count; i++)
                push_stamped(stack, &depth, stamp, stage, ir_operand(f, r, i));
            for (ir_ref b = n->body; b != 0; b = ir_at(f, b)->next)
                push_stamped(stack, &depth, stamp, stage, b);
        }
    }
    return count;
}

bool opjit_ir_runs_never(const ir_func *f, ir_ref lo, ir_ref hi)
{
    return opjit_ir_same(f, lo, hi) || opjit_ir_interval(f, hi).hi <= opjit_ir_interval(f, lo).lo;
}

ir_ref opjit_ir_loop_of(const ir_func *f, ir_ref first, ir_ref var)
{
    ir_ref found = 0;
    for (ir_ref s = first; s != 0 && found == 0; s = ir_at(f, s)->next)
        if (ir_at(f, s)->op == IR_FOR) /* as deep as loops nest: rule V16 */
            found = ir_at(f, s)->ref == var ? s : opjit_ir_loop_of(f, ir_at(f, s)->body, var);
    return found;
}

uint32_t opjit_ir_count_for(const ir_func *f, ir_ref first)
{
    uint32_t count = 0;
    for (ir_ref s = first; s != 0; s = ir_at(f, s)->next)
        if (ir_at(f, s)->op == IR_FOR)
            count += 1 + opjit_ir_count_for(f, ir_at(f, s)->body);
    return count;
}

/* --- rebuild ---------------------------------------------------------------------------------------------------- */

typedef struct rebuild {
    ir_func *f;
    ir_map *map;
    uint32_t count; /* nodes there were at the start: only these are walked */
    ir_ref *memo;   /* 0: not yet known */
    ir_ref *stack;
} rebuild;

static bool rebuild_begin(ir_func *f, ir_map *map, rebuild *b)
{
    *b = (rebuild){ .f = f, .map = map, .count = f->node_count, .memo = ARENA_ARRAY(&f->arena, ir_ref, f->node_count),
                    .stack = ARENA_ARRAY(&f->arena, ir_ref, 2 * (size_t)f->node_count + f->operand_count) };
    if (b->memo == NULL || b->stack == NULL)
        f->failed = true;
    return !f->failed;
}

static ir_ref mapped(const ir_map *map, ir_ref r) { return r < map->count ? map->to[r] : 0; }

/* The read of a let or accumulator that the map replaces, by a statement or by a value. */
static ir_ref remake_get(rebuild *b, ir_ref get)
{
    const ir_ref to = mapped(b->map, ir_at(b->f, get)->ref);
    if (to == 0)
        return get;
    return ir_is_pure(b->f, to) ? to : opjit_ir_get(b->f, to);
}

/* The variable of a loop or dimension of one as what it is. */
static ir_ref single_value(ir_func *f, ir_ref r)
{
    if (ir_at(f, r)->op != IR_VAR)
        return r;
    const ir_interval i = opjit_ir_interval(f, r);
    return i.lo == i.hi ? opjit_ir_index(f, i.lo) : r;
}

/* Node r, whose operands are all in the memo. */
static ir_ref remake_node(rebuild *b, ir_ref r)
{
    ir_func *f = b->f;
    const ir_node n = *ir_at(f, r);
    if (n.op == IR_GET)
        return remake_get(b, r);
    if (n.count == 0)
        return r;
    ir_ref local[PASS_OPERANDS];
    ir_ref *operands = n.count <= PASS_OPERANDS ? local : ARENA_ARRAY(&f->arena, ir_ref, n.count);
    if (operands == NULL) {
        f->failed = true;
        return 0;
    }
    bool same = true;
    for (uint32_t i = 0; i < n.count; i++) {
        operands[i] = b->memo[ir_operand(f, r, i)];
        if (n.op != IR_LOAD) /* a load's coordinates stay comparable with those of a store */
            operands[i] = single_value(f, operands[i]);
        same = same && operands[i] == ir_operand(f, r, i);
    }
    if (n.op == IR_LOAD)
        return same ? r : opjit_ir_load(f, n.ref, operands);
    if (n.op == IR_HEAD)
        return same ? r : opjit_ir_head(f, n.ref, operands[0]);
    const ir_ref simpler = opjit_ir_simplify(f, (ir_op)n.op, (ir_type)n.type, n.count, operands);
    if (simpler != 0 || same)
        return simpler != 0 ? simpler : r;
    return opjit_ir_expr(f, (ir_op)n.op, (ir_type)n.type, n.count, operands);
}

static ir_ref remake(rebuild *b, ir_ref expr)
{
    if (b->f->failed || expr == 0 || expr >= b->count)
        return b->f->failed ? 0 : expr;
    uint32_t depth = 0;
    b->stack[depth++] = expr;
    while (depth > 0 && !b->f->failed) {
        const ir_ref r = b->stack[depth - 1];
        if (b->memo[r] == 0)
            b->memo[r] = mapped(b->map, r);
        if (b->memo[r] != 0) {
            depth--;
            continue;
        }
        const uint32_t before = depth;
        for (uint32_t i = ir_at(b->f, r)->count; i-- > 0;)
            if (b->memo[ir_operand(b->f, r, i)] == 0)
                b->stack[depth++] = ir_operand(b->f, r, i);
        if (depth > before)
            continue;
        b->memo[r] = remake_node(b, r);
        depth--;
    }
    return b->f->failed ? 0 : b->memo[expr];
}

ir_ref opjit_ir_remake(ir_func *f, ir_map *map, ir_ref expr)
{
    rebuild b;
    return rebuild_begin(f, map, &b) ? remake(&b, expr) : 0;
}

/* A loop like `old` between its bounds under the map. */
static ir_ref remake_for(rebuild *b, ir_ref old)
{
    ir_func *f = b->f;
    const ir_node n = *ir_at(f, old);
    const ir_ref lo = remake(b, ir_operand(f, old, 0)), hi = remake(b, ir_operand(f, old, 1));
    const ir_ref loop = opjit_ir_for(f, lo, hi, n.imm);
    if (loop == 0)
        return 0;
    f->nodes[loop].vec = n.vec;
    f->nodes[loop].unroll = n.unroll;
    f->nodes[loop].flags = n.flags;
    opjit_ir_map_set(f, b->map, n.ref, ir_at(f, loop)->ref);
    return loop;
}

/* Whether expr needs no name: a leaf, but no load and no accumulator, which may change before the name is read. */
static bool nameless(const ir_func *f, ir_ref expr)
{
    const ir_node *n = ir_at(f, expr);

    return n->count == 0 && n->op != IR_LOAD && !(n->op == IR_GET && ir_at(f, n->ref)->op == IR_ACC);
}

/* The statement without its body; 0 where none is needed any more. */
static ir_ref remake_statement(rebuild *b, ir_ref old)
{
    ir_func *f = b->f;
    const ir_node n = *ir_at(f, old);
    ir_ref made = 0, operands[PASS_OPERANDS] = { 0 };
    if (n.op == IR_FOR)
        return remake_for(b, old);
    for (uint32_t i = 0; i < n.count && i < PASS_OPERANDS; i++)
        operands[i] = remake(b, ir_operand(f, old, i));
    if (f->failed)
        return 0;
    switch ((ir_op)n.op) {
    case IR_LET:
        if (nameless(f, operands[0])) {
            opjit_ir_map_set(f, b->map, old, operands[0]);
            return 0;
        }
        made = opjit_ir_let(f, operands[0]);
        opjit_ir_map_set(f, b->map, old, made);
        return made;
    case IR_ACC:
        made = opjit_ir_acc(f, (ir_type)n.type, (ir_kind)n.kind, (uint32_t)n.imm);
        opjit_ir_map_set(f, b->map, old, made);
        return made;
    case IR_UPD:
        return opjit_ir_upd(f, mapped(b->map, n.ref) != 0 ? mapped(b->map, n.ref) : n.ref, operands[0], operands[1]);
    default:
        return opjit_ir_store(f, n.ref, operands[0], operands + 1);
    }
}

static ir_ref remake_list(rebuild *b, ir_ref first)
{
    block out = { 0 };
    for (ir_ref s = first; s != 0 && !b->f->failed; s = ir_at(b->f, s)->next) {
        const ir_ref made = remake_statement(b, s);
        if (made == 0)
            continue;
        if (ir_at(b->f, made)->op == IR_FOR) {
            const ir_ref body = remake_list(b, ir_at(b->f, s)->body); /* as deep as loops nest: rule V16 */
            b->f->nodes[made].body = body;
        }
        opjit_ir_block_add(b->f, &out, made);
    }
    return b->f->failed ? 0 : out.first;
}

ir_ref opjit_ir_remake_block(ir_func *f, ir_map *map, ir_ref first)
{
    rebuild b;
    return rebuild_begin(f, map, &b) ? remake_list(&b, first) : 0;
}

static bool remake_in_place(rebuild *b, ir_ref first)
{
    ir_func *f = b->f;
    bool changed = false;
    for (ir_ref s = first; s != 0 && !f->failed; s = ir_at(f, s)->next) {
        for (uint32_t i = 0; i < ir_at(f, s)->count; i++) {
            const ir_ref old = ir_operand(f, s, i), made = remake(b, old);
            changed = changed || made != old;
            f->operands[ir_at(f, s)->first + i] = made;
        }
        changed = remake_in_place(b, ir_at(f, s)->body) || changed;
    }
    return changed;
}

bool opjit_ir_remake_operands(ir_func *f, ir_map *map, ir_ref first)
{
    rebuild b;
    return rebuild_begin(f, map, &b) && remake_in_place(&b, first);
}

/* --- lists ------------------------------------------------------------------------------------------------------ */

void opjit_ir_block_add(ir_func *f, block *list, ir_ref statement)
{
    if (statement == 0 || f->failed)
        return;
    f->nodes[statement].next = 0;
    if (list->first == 0) {
        list->first = list->tail = statement;
        if (list->parent != 0)
            f->nodes[list->parent].body = statement;
        return;
    }
    opjit_ir_append(f, list->parent, &list->tail, statement);
}

ir_ref opjit_ir_block_let(ir_func *f, block *list, ir_ref expr)
{
    const ir_op op = (ir_op)ir_at(f, expr)->op;
    if (op == IR_CONST || op == IR_VAR || op == IR_PARAM || op == IR_GET)
        return expr;
    for (ir_ref s = list->first; s != 0; s = ir_at(f, s)->next)
        if (ir_at(f, s)->op == IR_LET && opjit_ir_same(f, ir_operand(f, s, 0), expr))
            return opjit_ir_get(f, s);
    const ir_ref let = opjit_ir_let(f, expr);
    opjit_ir_block_add(f, list, let);
    return opjit_ir_get(f, let);
}
