/* SPDX-License-Identifier: Apache-2.0 */
/* verify.c - the rules that every function keeps, and the walk that checks those of one statement at a time.
 *
 * Rules, each with files tests/golden/verify/NN-*.ir that break only it:
 *   V1  known op, operand count and types as the table, references that exist
 *   V2  what is read is defined before, in scope
 *   V3  a load or store has the tensor's rank
 *   V4  value form or loop form, not both
 *   V5  a def reads earlier defs only
 *   V6  each output coordinate is stored exactly once (aliased: at most once)
 *   V7  parallel iterations are independent
 *   V8  every load, under its guards, and every store lies inside its tensor
 *   V9  a loop's step and grain are above 0; its bounds don't read its variable; a stage runs from 0 to a constant
 *   V10 get of an accumulator inside its loop only with one lane
 *   V11 index arithmetic fits in 64 bits
 *   V12 vec only where iterations are independent or feed the lanes of accumulators
 *   V13 store nt: one store, unit stride
 *   V14 no dead def; after cleanup no dead let and acc
 *   V15 aliased loads come before their stores
 *   V16 at most 96 loops in a stage
 *   V17 lanes are 0, 1 or 32, blocks 4096 values, those of a dot up to that
 *   V18 scheduled: vec and unroll are powers of two that targets have, up to 64
 *   V19 teams, distributed loops and syncs stand in scheduled stages for GPUs only, where threads may meet
 *   V20 a loop with hold keeps what it stores in registers: scratch, at coordinates that are spelled out in it
 *   V21 defs of a recurrence have the same steps, read each other at their own, and feed states like themselves
 *   V22 stages that run once are the first ones, read nothing that a call gives, and store what is kept
 * What expressions have to keep is in expr.c, V6 and V7 are in cover.c and reads.c, V8 in bounds.c,
 * V12, V13 and V20 in vector.c, V21 in recurrence.c, V22 in once.c. */
#include "ir/verify/verifier.h"

enum { FOR_LIMIT_STAGE = 96, VEC_LIMIT = 64, UNROLL_LIMIT = 64, TEAM_LIMIT = 1024, WARP = 32 };

static opjit_status check_bounds(verifier *v, ir_ref s)
{
    return opjit_ir_verify_proof(v, opjit_ir_verify_bounds(v, s));
}

#define FAIL(rule, node, ...) return opjit_ir_verify_fail(v, rule, node, __VA_ARGS__)

/* --- statements --------------------------------------------------------------------------------------------------- */

static opjit_status check_block(verifier *v, ir_ref first);

static opjit_status check_attributes(verifier *v, ir_ref s)
{
    const ir_node *node = ir_at(v->f, s);
    if (v->f->phase < IR_SCHEDULED || node->op == IR_STAGE)
        return OPJIT_OK;
    if (node->vec > VEC_LIMIT || (node->vec > 1 && !is_power_of_two(node->vec)))
        FAIL(18, s, "vec %u is not a power of two up to %d", node->vec, VEC_LIMIT);
    if (node->unroll > UNROLL_LIMIT || (node->unroll > 1 && !is_power_of_two(node->unroll)))
        FAIL(18, s, "unroll %u is not a power of two up to %d", node->unroll, UNROLL_LIMIT);
    return OPJIT_OK;
}

/* V19: whether an enclosing loop is distributed over threads; the attributes of grids. */
static bool in_distributed(const verifier *v)
{
    for (uint32_t i = 0; i < v->open_count; i++)
        if (ir_at(v->f, v->open[i])->op == IR_FOR && (ir_at(v->f, v->open[i])->flags & IR_FOR_DISTRIBUTE))
            return true;
    return false;
}

/* Which warp has which block of values is decided by one loop that has all of them. */
static opjit_status check_spread_update(verifier *v, ir_ref loop, ir_ref s)
{
    const ir_func *f = v->f;
    const ir_ref acc = ir_at(f, s)->ref, around = v->open[v->open_count - 1];
    bool beside = false;
    if (ir_at(f, s)->op != IR_UPD)
        return OPJIT_OK;
    if (ir_at(f, loop)->vec > 1 || ir_at(f, acc)->imm != WARP)
        FAIL(19, loop, "distributed: thread l must have lane l of 32");
    for (ir_ref r = ir_at(f, around)->body; r; r = ir_at(f, r)->next)
        beside = beside || r == acc;
    if (ir_at(f, v->open[0])->vec > WARP &&
        (!beside || opjit_ir_count_updates(f, ir_at(f, around)->body, acc) !=
                        opjit_ir_count_updates(f, ir_at(f, loop)->body, acc)))
        FAIL(19, loop, "distributed over several warps: another loop has a part of the accumulator");
    return OPJIT_OK;
}

static opjit_status check_grid(verifier *v, ir_ref s)
{
    const ir_node *node = ir_at(v->f, s);
    const bool gridded = v->f->phase >= IR_GRIDDED;
    if (node->op == IR_STAGE && (gridded ? node->vec < 1 || node->vec > TEAM_LIMIT || !is_power_of_two(node->vec)
                                         : node->vec > 0 && v->f->phase < IR_SCHEDULED))
        FAIL(19, s, "a team of %u threads", node->vec);
    if (node->op == IR_STAGE && (node->flags & ~IR_STAGE_ONCE) != 0 &&
        ((node->flags & ~IR_STAGE_ONCE) != IR_STAGE_ALONE || !gridded || node->vec < 2))
        FAIL(19, s, "a stage with attributes of a loop, or alone without a team");
    if (node->op == IR_FOR && (node->flags & IR_FOR_SERIAL) &&
        ((node->flags & IR_FOR_DISTRIBUTE) || (gridded && ir_at(v->f, v->open[0])->vec > 1)))
        FAIL(19, s, "serial, by a team of threads");
    if (node->op == IR_FOR && (node->flags & IR_FOR_DISTRIBUTE) &&
        (!gridded || v->open_count == 0 || ir_at(v->f, v->open[0])->vec < 2 || in_distributed(v) || node->imm != 1))
        FAIL(19, s, "distributed without a team, inside of another such loop, or with a step");
    for (ir_ref u = node->flags & IR_FOR_DISTRIBUTE ? node->body : 0; u; u = ir_at(v->f, u)->next)
        TRY(check_spread_update(v, s, u));
    return OPJIT_OK;
}

static opjit_status check_sync(verifier *v, ir_ref s)
{
    if (v->f->phase < IR_GRIDDED || ir_at(v->f, v->open[0])->vec < 2 || in_distributed(v))
        FAIL(19, s, "not all threads of a team come here");
    return OPJIT_OK;
}

static opjit_status check_loop(verifier *v, ir_ref s)
{
    const ir_func *f = v->f;
    const ir_node node = *ir_at(f, s);
    if (node.count != 2 || node.ref == 0 || node.ref >= v->node_count || ir_at(f, node.ref)->op != IR_VAR ||
        ir_at(f, node.ref)->ref != s)
        FAIL(1, s, "it has no variable or no bounds");
    for (uint32_t i = 0; i < 2; i++) {
        const ir_ref bound = ir_operand(f, s, i);
        if (bound < v->node_count && opjit_ir_uses(f, bound, node.ref))
            FAIL(9, s, "a bound reads the loop's own variable");
    }
    TRY(opjit_ir_verify_operands(v, s, 0));
    for (uint32_t i = 0; i < 2; i++)
        if (ir_at(f, ir_operand(f, s, i))->type != IR_INDEX)
            FAIL(1, s, "bound %u is not an index", i);
    if (node.imm == 0 || node.imm > INT64_MAX)
        FAIL(9, s, "%s is not above 0", node.op == IR_STAGE ? "grain" : "step");
    if (node.op == IR_STAGE) {
        const ir_ref lo = ir_operand(f, s, 0), hi = ir_operand(f, s, 1);
        if (!ir_is_index_const(f, lo) || ir_index_value(f, lo) != 0 || opjit_ir_interval(f, hi).lo < 0 ||
            !opjit_ir_is_size(f, hi))
            FAIL(9, s, "a stage runs from 0 to a constant, or a size");
        v->for_stage = 0;
    } else {
        v->for_stage++;
        if (v->for_stage > FOR_LIMIT_STAGE)
            FAIL(16, s, "more than %d loops in a stage", FOR_LIMIT_STAGE);
    }
    if (v->open_count == sizeof(v->open) / sizeof(v->open[0]))
        FAIL(16, s, "loops are nested too deep");
    TRY(check_attributes(v, s));
    TRY(check_grid(v, s));
    TRY(check_bounds(v, s));
    v->open[v->open_count++] = s;
    v->in_scope[node.ref] = 1;
    TRY(check_block(v, node.body));
    v->in_scope[node.ref] = 0;
    v->open_count--;
    return node.op == IR_FOR ? opjit_ir_verify_proof(v, opjit_ir_verify_vector(v, s, v->open[0])) : OPJIT_OK;
}

static opjit_status check_acc(verifier *v, ir_ref s)
{
    const ir_node *node = ir_at(v->f, s);
    if (node->kind == IR_KIND_NONE || node->kind >= IR_KIND_COUNT || !verify_is_number((ir_type)node->type))
        FAIL(1, s, "it has no kind, or no type that can be accumulated");
    if (ir_kind_is_arg((ir_kind)node->kind) && node->type != IR_INDEX && !ir_is_integer((ir_type)node->type))
        FAIL(1, s, "an arg kind gives an index or an integer");
    TRY(opjit_ir_verify_order(v, s));
    v->in_scope[s] = (uint8_t)(v->open_count < 255 ? v->open_count : 255);
    return OPJIT_OK;
}

static opjit_status check_upd(verifier *v, ir_ref s)
{
    const ir_func *f = v->f;
    const ir_node *node = ir_at(f, s);
    if (node->ref == 0 || node->ref >= v->node_count || ir_at(f, node->ref)->op != IR_ACC)
        FAIL(1, s, "there is no such accumulator");
    if (!v->in_scope[node->ref])
        FAIL(2, s, "the accumulator is not in scope");
    const ir_node *acc = ir_at(f, node->ref);
    const bool arg = ir_kind_is_arg((ir_kind)acc->kind);
    if (node->count != (arg ? 2u : 1u))
        FAIL(1, s, "%s", arg ? "an arg kind needs an index" : "only arg kinds take an index");
    TRY(opjit_ir_verify_operands(v, s, 0));
    const ir_type type = (ir_type)ir_at(f, ir_operand(f, s, 0))->type;
    if (arg ? !verify_is_number(type) || ir_at(f, ir_operand(f, s, 1))->type != IR_INDEX : type != acc->type)
        FAIL(1, s, "its value is %s", opjit_ir_type_name(type));
    if (acc->kind == IR_DOT && ir_at(f, ir_operand(f, s, 0))->op != IR_PAIR)
        FAIL(1, s, "a step of a dot takes a pair");
    return check_bounds(v, s);
}

static opjit_status check_store(verifier *v, ir_ref s)
{
    const ir_func *f = v->f;
    const ir_node *node = ir_at(f, s);
    if (node->ref == 0 || node->ref >= f->tensor_count || node->count == 0)
        FAIL(1, s, "there is no such tensor");
    const ir_tensor *t = &f->tensors[node->ref];
    if (t->role != IR_OUT && !ir_is_memory(t->role))
        FAIL(1, s, "the tensor can't be written");
    if (node->count != 1 + t->rank)
        FAIL(3, s, "%u coordinates, rank %u", node->count - 1, t->rank);
    TRY(opjit_ir_verify_operands(v, s, 0));
    for (uint32_t i = 1; i < node->count; i++)
        if (ir_at(f, ir_operand(f, s, i))->type != IR_INDEX)
            FAIL(1, s, "coordinate %u is not an index", i - 1);
    if (ir_at(f, ir_operand(f, s, 0))->type != t->type)
        FAIL(1, s, "its value is %s, the tensor %s", opjit_ir_type_name((ir_type)ir_at(f, ir_operand(f, s, 0))->type),
             opjit_ir_type_name(t->type));
    return check_bounds(v, s);
}

static opjit_status check_let(verifier *v, ir_ref s)
{
    if (ir_at(v->f, s)->count != 1)
        FAIL(1, s, "it has no value");
    TRY(opjit_ir_verify_operands(v, s, 0));
    if (ir_at(v->f, s)->type != ir_at(v->f, ir_operand(v->f, s, 0))->type)
        FAIL(1, s, "its type is not its value's");
    v->in_scope[s] = 1;
    return check_bounds(v, s);
}

static opjit_status check_statement(verifier *v, ir_ref s)
{
    switch ((ir_op)ir_at(v->f, s)->op) {
    case IR_FOR: return check_loop(v, s);
    case IR_LET: return check_let(v, s);
    case IR_ACC: return check_acc(v, s);
    case IR_UPD: return check_upd(v, s);
    case IR_STORE: return check_store(v, s);
    case IR_SYNC: return check_sync(v, s);
    default: FAIL(4, s, "not a statement of a block");
    }
}

static opjit_status check_block(verifier *v, ir_ref first)
{
    for (ir_ref s = first; s; s = ir_at(v->f, s)->next) {
        if (s >= v->node_count)
            FAIL(1, 0, "a statement does not exist");
        TRY(check_statement(v, s));
    }
    for (ir_ref s = first; s; s = ir_at(v->f, s)->next) {
        if (v->f->phase >= IR_CLEANED && (ir_at(v->f, s)->op == IR_LET || ir_at(v->f, s)->op == IR_ACC) && !v->used[s])
            FAIL(14, s, "nothing reads it");
        v->in_scope[s] = 0;
    }
    return OPJIT_OK;
}

/* --- items -------------------------------------------------------------------------------------------------------- */

/* Values that an element may reduce where data says how many. */
#define MOST_COUNTED ((int64_t)1 << 50)

/* A DEF that reduces has a variable and a size as its last operands; a scan has its coordinate as that size, or the
 * coordinate plus one; one that is counted an index over its coordinates (check_count). */
static opjit_status check_reduction(verifier *v, ir_ref s)
{
    const ir_func *f = v->f;
    const ir_node *node = ir_at(f, s);
    if (node->kind >= IR_KIND_COUNT ||
        (ir_kind_is_arg((ir_kind)node->kind) && !ir_is_integer(f->tensors[node->ref].type)))
        FAIL(1, s, "it has no kind, or an arg kind does not give an integer");
    TRY(opjit_ir_verify_order(v, s));
    const ir_ref size = node->count > 2 ? ir_operand(f, s, node->count - 1) : 0;
    if (size == 0 || size >= v->node_count || ir_at(f, size)->type != IR_INDEX)
        FAIL(1, s, "it reduces no number of values");
    const int32_t along = opjit_ir_scanned(f, s);
    if (ir_is_index_const(f, size) ? ir_index_value(f, size) < (node->imm != 0) : node->imm != 0)
        FAIL(1, s, "it reduces neither a constant number of values nor, in order, as many as an index says");
    if (along >= 0 &&
        (ir_kind_is_arg((ir_kind)node->kind) ||
         opjit_ir_uses(f, ir_operand(f, s, 0), ir_operand(f, s, 1 + (uint32_t)along))))
        FAIL(1, s, "it runs along a dimension and is of an arg kind, or reads its coordinate there");
    return OPJIT_OK;
}

/* How many values a DEF that is counted reduces: an index that reads its coordinates, but not the reduced one. */
static opjit_status check_count(verifier *v, ir_ref s)
{
    const ir_func *f = v->f;
    const uint32_t rank = f->tensors[ir_at(f, s)->ref].rank;
    const ir_ref size = ir_operand(f, s, ir_at(f, s)->count - 1);
    for (uint32_t d = 0; d < rank; d++)
        v->in_scope[ir_operand(f, s, 1 + d)] = 1;
    TRY(opjit_ir_verify_expr(v, s, size));
    const ir_interval i = opjit_ir_interval(f, size);
    if (i.lo < 0 || i.hi > MOST_COUNTED || ir_kind_is_arg((ir_kind)ir_at(f, s)->kind))
        FAIL(1, s, "an index says how many values it reduces: it may be below 0 or above 2^50, or the kind is an "
                   "arg's");
    return OPJIT_OK;
}

static opjit_status check_definition(verifier *v, ir_ref s)
{
    const ir_func *f = v->f;
    const ir_node node = *ir_at(f, s);
    if (node.ref == 0 || node.ref >= f->tensor_count)
        FAIL(1, s, "there is no such tensor");
    const ir_tensor *t = &f->tensors[node.ref];
    if (t->role != (node.op == IR_DEF ? IR_VALUE : IR_OUT))
        FAIL(1, s, "the tensor has another role");
    if (node.op == IR_DEF && node.kind)
        TRY(check_reduction(v, s));
    const uint32_t vars = t->rank + (node.kind != 0), box = node.imm && !node.kind ? 3 * t->rank : 0;
    if (node.count != 1 + vars + box + (node.kind != 0) || (box && node.op == IR_DEF))
        FAIL(3, s, "its variables or its box are not of rank %u", t->rank);
    for (uint32_t d = 0; d < vars; d++) {
        const ir_ref var = ir_operand(f, s, 1 + d);
        if (var == 0 || var >= v->node_count || ir_at(f, var)->op != IR_VAR || ir_at(f, var)->ref != s)
            FAIL(1, s, "variable %u is missing", d);
    }
    if (opjit_ir_is_counted(f, s))
        TRY(check_count(v, s));
    else if (opjit_ir_scanned(f, s) < 0)
        TRY(opjit_ir_verify_operands(v, s, 1 + vars)); /* the box is outside the variables' scope */
    for (uint32_t i = 1 + t->rank; i < 1 + t->rank + box; i++) {
        const uint32_t part = (i - 1 - t->rank) % 3;
        const ir_ref operand = ir_operand(f, s, i);
        if (ir_at(f, operand)->type != IR_INDEX ||
            (part > 0 && (!ir_is_index_const(f, operand) || ir_index_value(f, operand) <= 0)))
            FAIL(1, s, "offsets are indices, sizes and steps constants above 0");
    }
    for (uint32_t d = 0; d < vars; d++)
        v->in_scope[ir_operand(f, s, 1 + d)] = 1;
    TRY(opjit_ir_verify_expr(v, s, ir_operand(f, s, 0)));
    if (node.op == IR_DEF && node.kind == IR_DOT && ir_at(f, ir_operand(f, s, 0))->op != IR_PAIR)
        FAIL(1, s, "a dot takes a pair");
    const ir_type type = (ir_type)ir_at(f, ir_operand(f, s, 0))->type;
    if (ir_kind_is_arg((ir_kind)node.kind) ? !ir_is_element(type) : type != t->type)
        FAIL(1, s, "its value is %s, the tensor %s", opjit_ir_type_name(type), opjit_ir_type_name(t->type));
    TRY(check_bounds(v, s));
    for (uint32_t d = 0; d < vars; d++)
        v->in_scope[ir_operand(f, s, 1 + d)] = 0;
    v->defined[node.ref] = node.op == IR_DEF;
    return OPJIT_OK;
}

static opjit_status check_items(verifier *v)
{
    const ir_func *f = v->f;
    for (ir_ref s = f->body; s; s = ir_at(f, s)->next) {
        if (s >= v->node_count)
            FAIL(1, 0, "an item does not exist");
        const uint8_t op = ir_at(f, s)->op;
        if (v->loops ? op != IR_STAGE : !ir_is_definition(f, s) && op != IR_YIELD)
            FAIL(4, s, "not an item of %s form", v->loops ? "loop" : "value");
        TRY(v->loops ? check_loop(v, s) : op == IR_SCATTER ? opjit_ir_verify_scatter(v, s) : check_definition(v, s));
    }
    for (ir_ref s = f->body; s; s = ir_at(f, s)->next)
        if (ir_is_definition(f, s) && !v->used_tensor[ir_at(f, s)->ref] && f->tensors[ir_at(f, s)->ref].feeds == 0)
            FAIL(14, s, "nothing reads it");
    return v->loops ? OPJIT_OK : opjit_ir_verify_recurrences(v);
}

static opjit_status check_tensors(verifier *v)
{
    const ir_func *f = v->f;
    for (uint32_t i = 1; i < f->tensor_count; i++) {
        const ir_tensor *t = &f->tensors[i];
        uint64_t span;
        if (t->role < IR_IN || t->role > IR_VIEW || opjit_ir_type_size(t->type) == 0 || t->rank == 0 || t->rank > 8)
            FAIL(1, 0, "tensor %u has no role, type or rank", i);
        if (!opjit_ir_span_bytes(t, &span) || span > INT64_MAX || (t->role != IR_VIEW && span > t->bytes))
            FAIL(1, 0, "tensor %u has an element outside its %llu bytes", i, (unsigned long long)t->bytes);
        if (t->role == IR_VIEW && t->of < i && f->tensors[t->of].type != t->type)
            FAIL(1, 0, "tensor %u is a view of elements of another type", i);
    }
    return OPJIT_OK;
}

static opjit_status check_aliases(verifier *v)
{
    const ir_func *f = v->f;
    uint32_t wrong = 0;
    bool any = false, equal = true;
    for (uint32_t i = 1; i < f->tensor_count && equal; i++) {
        any = any || f->tensors[i].alias != 0;
        equal = f->tensors[i].alias == 0 || opjit_ir_same_layout(&f->tensors[i], &f->tensors[f->tensors[i].alias]);
        wrong = equal ? 0 : i;
    }
    ir_accesses *a = any && equal && v->loops ? opjit_ir_accesses_create(f) : NULL;
    if (any && equal && v->loops && a == NULL)
        return opjit_rt_no_memory(v->error);
    for (uint32_t i = 1; i < f->tensor_count && a != NULL && wrong == 0; i++)
        if (f->tensors[i].alias != 0 && opjit_ir_in_place(a, i, f->tensors[i].alias) != IR_IN_PLACE)
            wrong = i;
    opjit_ir_accesses_destroy(a);
    if (wrong != 0)
        FAIL(15, 0, "output in slot %u may not share memory with tensor %u", f->tensors[wrong].slot,
             f->tensors[wrong].alias);
    return OPJIT_OK;
}

/* Marks the nodes that are loads or read one.  Operands are older than their users. */
static void find_loads(verifier *v)
{
    for (ir_ref r = 1; r < v->node_count; r++) {
        const ir_node *node = ir_at(v->f, r);
        v->loads[r] = node->op == IR_LOAD;
        for (uint32_t i = 0; i < node->count && !v->loads[r]; i++) {
            const ir_ref operand = ir_operand(v->f, r, i);
            v->loads[r] = operand >= r || v->loads[operand]; /* a younger operand: a rule that is not checked yet */
        }
    }
}

/* Lists the stores of a block of the stage, one per tensor. */
static void list_stores(verifier *v, ir_ref first, ir_ref stage)
{
    for (ir_ref s = first; s && s < v->node_count; s = ir_at(v->f, s)->next) {
        const ir_node *node = ir_at(v->f, s);
        list_stores(v, node->body, stage);
        if (node->op != IR_STORE || (v->last_store[node->ref] && v->stage_of[v->last_store[node->ref]] == stage))
            continue;
        v->stage_of[s] = stage;
        if (v->last_store[node->ref])
            v->next_store[v->last_store[node->ref]] = s;
        else
            v->first_store[node->ref] = s;
        v->last_store[node->ref] = s;
    }
}

static bool make_tables(verifier *v)
{
    rt_arena *arena = &v->f->scratch;
    v->in_scope = ARENA_ARRAY(arena, uint8_t, v->node_count);
    v->used = ARENA_ARRAY(arena, uint8_t, v->node_count);
    v->loads = ARENA_ARRAY(arena, uint8_t, v->node_count);
    v->defined = ARENA_ARRAY(arena, uint8_t, v->f->tensor_count);
    v->used_tensor = ARENA_ARRAY(arena, uint8_t, v->f->tensor_count);
    v->stamp = ARENA_ARRAY(arena, uint32_t, v->node_count);
    v->walked = ARENA_ARRAY(arena, uint32_t, v->node_count);
    v->next_store = ARENA_ARRAY(arena, ir_ref, v->node_count);
    v->stage_of = ARENA_ARRAY(arena, ir_ref, v->node_count);
    v->first_store = ARENA_ARRAY(arena, ir_ref, v->f->tensor_count);
    v->last_store = ARENA_ARRAY(arena, ir_ref, v->f->tensor_count);
    return v->in_scope && v->used && v->loads && v->defined && v->used_tensor && v->stamp && v->walked &&
           v->next_store && v->stage_of && v->first_store && v->last_store;
}

static opjit_status check_all(verifier *v)
{
    if (!make_tables(v))
        return opjit_rt_no_memory(v->error);
    TRY(check_tensors(v));
    opjit_ir_keep_intervals(v->f, &v->f->scratch);
    find_loads(v);
    TRY(check_items(v));
    TRY(opjit_ir_verify_proof(v, check_aliases(v)));
    for (ir_ref s = v->f->body; v->loops && s; s = ir_at(v->f, s)->next)
        list_stores(v, ir_at(v->f, s)->body, s);
    if (v->loops)
        TRY(opjit_ir_verify_once(v));
    TRY(opjit_ir_verify_cover(v));
    return v->loops ? opjit_ir_verify_reads(v) : OPJIT_OK;
}

static opjit_status verify(const ir_func *f, uint32_t *unproven, opjit_error *error)
{
    ir_func copy;
    TRY(opjit_ir_copy(f, &copy, error));
    verifier v = { .f = &copy,
                   .original = f,
                   .node_count = f->node_count,
                   .error = error,
                   .unproven = unproven,
                   .loops = f->phase >= IR_PLACED };
    opjit_status status = check_all(&v);
    if (copy.failed) /* whatever came of that */
        status = opjit_rt_no_memory(error);
    opjit_ir_free(&copy);
    return status;
}

opjit_status opjit_ir_verify(const ir_func *f, opjit_error *error)
{
    return verify(f, NULL, error);
}

opjit_status opjit_ir_count_unproven(const ir_func *f, uint32_t *out, opjit_error *error)
{
    *out = 0;
    return verify(f, out, error);
}
