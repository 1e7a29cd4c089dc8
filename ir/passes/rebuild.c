/* SPDX-License-Identifier: Apache-2.0 */
/* rebuild.c - helpers of passes: which stages use a tensor, rebuilding under a map, lists of statements. */
#include "ir/passes/pass.h"

#include <string.h>

/* --- stages of a tensor ------------------------------------------------------------------------------------------ */

static void note_stage(uint8_t *count, uint32_t *last, uint32_t tensor, uint32_t stage)
{
    if (last[tensor] == stage)
        return;
    last[tensor] = stage;
    count[tensor] = (uint8_t)(count[tensor] < 2 ? count[tensor] + 1 : 2);
}

uint8_t *opjit_ir_stages_of(ir_func *f)
{
    uint8_t *count = ARENA_ARRAY(&f->scratch, uint8_t, f->tensor_count);
    uint32_t *last = ARENA_ARRAY(&f->scratch, uint32_t, f->tensor_count), stage = 0;
    f->failed = f->failed || count == NULL || last == NULL;
    for (ir_ref s = f->body; s != 0 && !f->failed; s = ir_at(f, s)->next) {
        const rt_arena_mark mark = rt_arena_position(&f->scratch);
        const ir_reach seen = opjit_ir_reach_one(f, s);
        stage++;
        for (uint32_t i = 0; seen.nodes != NULL && i < seen.count; i++) {
            const ir_node *n = ir_at(f, seen.nodes[i]);
            if (n->op != IR_LOAD && n->op != IR_STORE)
                continue;
            note_stage(count, last, n->ref, stage);
            note_stage(count, last, f->tensors[n->ref].alias, stage);
        }
        opjit_rt_arena_rewind(&f->scratch, mark);
    }
    return f->failed ? NULL : count;
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

bool opjit_ir_rebuild_begin(ir_func *f, ir_map *map, rebuild *b)
{
    *b = (rebuild){ .f = f, .map = map, .count = f->node_count, .now = opjit_ir_walk_begin(f) };
    return b->now != 0;
}

/* What the node became; 0: not known yet. */
static ir_ref known(const rebuild *b, ir_ref r)
{
    return b->f->walks.stamp[r] == b->now ? b->f->walks.memo[r] : 0;
}

static void note(rebuild *b, ir_ref r, ir_ref made)
{
    b->f->walks.stamp[r] = b->now;
    b->f->walks.memo[r] = made;
}

/* The read of a let or accumulator that the map replaces, by a statement or by a value. */
static ir_ref remake_get(rebuild *b, ir_ref get)
{
    const ir_ref to = ir_map_get(b->map, ir_at(b->f, get)->ref);
    if (to == 0)
        return get;
    return ir_is_pure(b->f, to) ? to : opjit_ir_get(b->f, to);
}

ir_ref opjit_ir_single_value(ir_func *f, ir_ref r)
{
    if (ir_at(f, r)->op != IR_VAR)
        return r;
    const ir_interval i = opjit_ir_interval(f, r);
    return i.lo == i.hi ? opjit_ir_index(f, i.lo) : r;
}

/* Rebuilds node r, whose operands are all in the memo. */
static ir_ref remake_node(rebuild *b, ir_ref r)
{
    ir_func *f = b->f;
    const ir_node n = *ir_at(f, r);
    if (n.op == IR_GET)
        return remake_get(b, r);
    if (n.count == 0)
        return r;
    ir_ref local[PASS_OPERANDS];
    ir_ref *operands = n.count <= PASS_OPERANDS ? local : ARENA_ARRAY(&f->scratch, ir_ref, n.count);
    if (operands == NULL) {
        f->failed = true;
        return 0;
    }
    bool same = true;
    for (uint32_t i = 0; i < n.count; i++) {
        operands[i] = known(b, ir_operand(f, r, i));
        if (n.op != IR_LOAD) /* a load's coordinates stay comparable with a store's */
            operands[i] = opjit_ir_single_value(f, operands[i]);
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

/* Pushes the node's unknown operands on the stack; false: all are known. */
static bool push_unknown(rebuild *b, ir_ref r)
{
    ir_func *f = b->f;
    const uint32_t before = f->walks.depth;
    for (uint32_t i = ir_at(f, r)->count; i-- > 0;)
        if (known(b, ir_operand(f, r, i)) == 0)
            opjit_ir_walk_push(f, ir_operand(f, r, i));
    return f->walks.depth > before;
}

static ir_ref remake(rebuild *b, ir_ref expr)
{
    ir_func *f = b->f;
    const uint32_t base = f->walks.depth;
    if (f->failed || expr == 0 || expr >= b->count)
        return f->failed ? 0 : expr;
    opjit_ir_walk_push(f, expr);
    while (f->walks.depth > base && !f->failed) {
        const ir_ref r = f->walks.stack[f->walks.depth - 1];
        const ir_ref to = known(b, r) != 0 ? known(b, r) : ir_map_get(b->map, r);
        if (to == 0 && push_unknown(b, r))
            continue;
        note(b, r, to != 0 ? to : remake_node(b, r));
        f->walks.depth--;
    }
    return f->failed ? 0 : known(b, expr);
}

ir_ref opjit_ir_remake(ir_func *f, ir_map *map, ir_ref expr)
{
    rebuild b;
    return opjit_ir_rebuild_begin(f, map, &b) ? remake(&b, expr) : 0;
}

/* A loop like `old` with its bounds under the map. */
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
    f->nodes[loop].hold = n.hold;
    ir_map_set(f, b->map, n.ref, ir_at(f, loop)->ref);
    return loop;
}

/* Whether expr needs no name: a leaf, except a load or an accumulator, which may change before the name is read. */
static bool nameless(const ir_func *f, ir_ref expr)
{
    const ir_node *n = ir_at(f, expr);

    return n->count == 0 && n->op != IR_LOAD && !(n->op == IR_GET && ir_at(f, n->ref)->op == IR_ACC);
}

/* The statement without its body; 0: it is no longer needed. */
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
            ir_map_set(f, b->map, old, operands[0]);
            return 0;
        }
        made = opjit_ir_let(f, operands[0]);
        ir_map_set(f, b->map, old, made);
        return made;
    case IR_ACC:
        made = opjit_ir_acc(f, (ir_type)n.type, (ir_kind)n.kind, (uint32_t)n.imm);
        f->nodes[made].block = n.block;
        ir_map_set(f, b->map, old, made);
        return made;
    case IR_UPD:
        return opjit_ir_upd(f, ir_map_get(b->map, n.ref) != 0 ? ir_map_get(b->map, n.ref) : n.ref, operands[0],
                            operands[1]);
    default: return opjit_ir_store(f, n.ref, operands[0], operands + 1);
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
    return opjit_ir_rebuild_begin(f, map, &b) ? remake_list(&b, first) : 0;
}

/* The last operand first: the number of values that a reduction's variable has bounds what the others read. */
void opjit_ir_rebuild_operands(rebuild *b, ir_ref statement)
{
    ir_func *f = b->f;
    for (uint32_t i = ir_at(f, statement)->count; i-- > 0;) {
        const ir_ref made = remake(b, ir_operand(f, statement, i)); /* may move the operands */
        f->operands[ir_at(f, statement)->first + i] = made;
    }
    for (ir_ref s = ir_at(f, statement)->body; s != 0 && !f->failed; s = ir_at(f, s)->next)
        opjit_ir_rebuild_operands(b, s);
}

void opjit_ir_remake_operands(ir_func *f, ir_map *map, ir_ref first)
{
    rebuild b;
    if (!opjit_ir_rebuild_begin(f, map, &b))
        return;
    for (ir_ref s = first; s != 0 && !f->failed; s = ir_at(f, s)->next)
        opjit_ir_rebuild_operands(&b, s);
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

void opjit_ir_block_move(ir_func *f, block *from, block *to)
{
    ir_ref next;
    for (ir_ref s = from->first; s != 0; s = next) {
        next = ir_at(f, s)->next;
        opjit_ir_block_add(f, to, s);
    }
    *from = (block){ 0 };
}

ir_ref opjit_ir_block_let(ir_func *f, block *list, ir_ref expr)
{
    if (!ir_needs_let((ir_op)ir_at(f, expr)->op))
        return expr;
    for (ir_ref s = list->first; s != 0; s = ir_at(f, s)->next)
        if (ir_at(f, s)->op == IR_LET && opjit_ir_same(f, ir_operand(f, s, 0), expr))
            return opjit_ir_get(f, s);
    const ir_ref let = opjit_ir_let(f, expr);
    opjit_ir_block_add(f, list, let);
    return opjit_ir_get(f, let);
}

ir_ref opjit_ir_without_bounds(ir_func *f, ir_ref index, uint32_t depth)
{
    const ir_node n = *ir_at(f, index);
    bool numbers = n.op == IR_IMIN || n.op == IR_IMAX || n.op == IR_CLAMP;
    for (uint32_t i = 1; i < n.count && numbers; i++)
        numbers = ir_is_index_const(f, ir_operand(f, index, i));
    if (depth == 0 || (!numbers && n.op != IR_IADD && n.op != IR_ISUB && n.op != IR_IMUL))
        return index;
    const ir_ref first = opjit_ir_without_bounds(f, ir_operand(f, index, 0), depth - 1);
    if (numbers)
        return first;
    return ir_make2(f, (ir_op)n.op, IR_INDEX, first,
                    opjit_ir_without_bounds(f, ir_operand(f, index, 1), depth - 1));
}
