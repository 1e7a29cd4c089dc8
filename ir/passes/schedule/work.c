/* SPDX-License-Identifier: Apache-2.0 */
/* work.c - what a loop does, for schedule: whether it makes vectors or updates running sums, and the cost of an
 * iteration. */
#include "ir/passes/schedule/scheduler.h"

enum {
    ARG_COST = 16,            /* of a step of an arg kind: much code, which should not be repeated */
    MOST_SPELLED_OUT = 65536, /* operations times iterations of a loop that should become straight-line code */
    MOST_LIMITS = 8,          /* operations of an index whose lanes don't move in equal steps */
    CHOICE_COST = 3,          /* of a step of min or max of floats, which checks for NaNs */
};

/* Whether the bounds are numbers and close together: code generation then makes straight-line code of the loop, and
 * knows every index in it. */
static bool is_short(const ir_func *f, ir_ref loop)
{
    const ir_ref lo = ir_operand(f, loop, 0), hi = ir_operand(f, loop, 1);
    return ir_is_index_const(f, lo) && ir_is_index_const(f, hi) && ir_index_value(f, lo) >= 0 &&
           ir_index_value(f, hi) - ir_index_value(f, lo) <= 4096;
}

/* Whether the index is sums, multiples and limits of what moves in equal steps: vectors of it are a few operations. */
static bool is_limited(const ir_func *f, ir_ref index, ir_ref var, uint32_t *cost)
{
    const ir_node *n = ir_at(f, index);
    const bool sums = n->op == IR_IADD || n->op == IR_ISUB;
    const bool limits = n->op == IR_IMIN || n->op == IR_IMAX || n->op == IR_CLAMP;
    if (opjit_ir_is_affine(f, index, var))
        return true;
    if ((!sums && !limits) || ++*cost > MOST_LIMITS)
        return false;
    for (uint32_t i = 0; i < n->count; i++)
        if (!is_limited(f, ir_operand(f, index, i), var, cost))
            return false;
    return true;
}

/* Whether the operands of r are the same in all lanes or move in equal steps; or, in a short loop, are known; or become
 * elements by a few operations; or are compared and made of elements, such as an index that counts from the end. */
static bool steps_equally(const scheduler *s, ir_ref r, ir_ref loop, work *out)
{
    const ir_func *f = s->f;
    const ir_node *n = ir_at(f, r);
    const ir_ref var = ir_at(f, loop)->ref;
    if (n->op == IR_LOAD)
        return opjit_ir_loads_vectors(s, r, loop, out);
    for (uint32_t i = 0; i < n->count; i++) {
        if (ir_at(f, ir_operand(f, r, i))->type != IR_INDEX || opjit_ir_is_affine(f, ir_operand(f, r, i), var))
            continue;
        uint32_t limits = 0;
        if (is_short(f, loop))
            out->cost |= SPELLED_OUT;
        else if (ir_is_comparison((ir_op)n->op) && opjit_ir_is_of_table(f, ir_operand(f, r, i), var, &limits))
            continue;
        else if (n->op == IR_ELEM && is_limited(f, ir_operand(f, r, i), var, &limits))
            out->cost += limits;
        else
            return false;
    }
    return true;
}

/* Accepts stores of neighbouring elements, updates of lanes, and lets. */
static bool makes_vectors(const ir_func *f, ir_ref statement, ir_ref var, work *out)
{
    const ir_node *n = ir_at(f, statement);
    ir_type type = (ir_type)n->type;
    int64_t step;
    if (n->op == IR_STORE) {
        type = f->tensors[n->ref].type;
        if (!opjit_ir_step(f, statement, var, &step) || step != 1)
            return false;
    } else if (n->op == IR_UPD) {
        type = (ir_type)ir_at(f, ir_operand(f, statement, 0))->type;
        if (ir_at(f, n->ref)->imm <= 1 || (n->count > 1 && !opjit_ir_is_affine(f, ir_operand(f, statement, 1), var)))
            return false;
        const bool chooses = ir_at(f, n->ref)->kind == IR_KMIN || ir_at(f, n->ref)->kind == IR_KMAX;
        out->places = out->places || n->count > 1;
        out->cost += n->count > 1 ? ARG_COST : chooses && ir_is_float(type) ? CHOICE_COST : 0;
    } else {
        return n->op == IR_LET && n->type != IR_INDEX;
    }
    out->size = opjit_ir_type_size(type) > out->size ? opjit_ir_type_size(type) : out->size;
    return true;
}

/* Whether r is a sum or product that only adds to the growth of integers per element: code generation makes one
 * addition of all of them. */
static bool is_part_of_growth(const ir_func *f, ir_ref r)
{
    const ir_ref first = r;
    while (ir_at(f, r)->op == IR_ADD || ir_at(f, r)->op == IR_SUB || ir_at(f, r)->op == IR_MUL) {
        const ir_ref a = ir_operand(f, r, 0), b = ir_operand(f, r, 1);
        if (ir_at(f, a)->op != IR_CONST && ir_at(f, b)->op != IR_CONST)
            return false;
        r = ir_at(f, a)->op == IR_CONST ? b : a;
    }
    return r != first && ir_at(f, r)->op == IR_ELEM && !ir_is_float((ir_type)ir_at(f, r)->type);
}

/* Bytes of what code generation computes the value in: conversions and comparisons of f16 in f32, quotients of integers
 * in the float that has all their digits. */
static uint32_t computed_bytes(const ir_func *f, ir_ref r)
{
    enum { F32 = 4, F64 = 8 };
    const ir_type type = (ir_type)ir_at(f, r)->type, from = (ir_type)ir_at(f, ir_operand(f, r, 0))->type;
    const uint32_t size = opjit_ir_type_size(type);
    const bool half = (from == IR_F16 && !ir_is_float(type)) || (type == IR_F16 && !ir_is_float(from));
    switch (ir_at(f, r)->op) {
    case IR_CAST: return half && size < F32 ? F32 : size;
    case IR_EQ:
    case IR_NE:
    case IR_LT:
    case IR_LE: return from == IR_F16 ? F32 : size;
    case IR_DIV:
    case IR_REM: return ir_is_float(type) || size == F64 ? size : size == F32 ? F64 : F32;
    default: return size;
    }
}

uint32_t opjit_ir_widest(ir_func *f, const ir_reach *seen, ir_ref var)
{
    const rt_arena_mark mark = rt_arena_position(&f->scratch);
    bool *moves = ARENA_ARRAY(&f->scratch, bool, seen->count);
    const uint32_t *places = opjit_ir_reach_places(f, seen);
    uint32_t most = 0;
    for (uint32_t k = 0; k < seen->count && moves != NULL; k++) { /* operands are older than the node */
        const ir_ref r = seen->nodes[k];
        const ir_node *n = ir_at(f, r);
        const uint32_t let = n->op == IR_GET ? opjit_ir_reach_place(seen, n->ref) : UINT32_MAX;
        moves[k] = r == var || (let < k && moves[let]);
        for (uint32_t i = 0; i < n->count && !moves[k]; i++)
            moves[k] = moves[places[ir_operand(f, r, i)]];
        const bool value = n->type != IR_INDEX && n->op != IR_ELEM; /* sequences need no vectors of their own */
        const uint32_t size = !value ? 0 : n->count > 0 ? computed_bytes(f, r) : opjit_ir_type_size((ir_type)n->type);
        most = moves[k] && size > most ? size : most;
    }
    f->failed = f->failed || moves == NULL;
    opjit_rt_arena_rewind(&f->scratch, mark);
    return most;
}

bool opjit_ir_find_work(const scheduler *s, ir_ref loop, work *out)
{
    ir_func *f = s->f;
    const ir_ref first = ir_at(f, loop)->body, var = ir_at(f, loop)->ref, only = ir_only(f, first);
    *out = (work){ .store = only != 0 && ir_at(f, only)->op == IR_STORE ? only : 0,
                   .update = only != 0 && ir_at(f, only)->op == IR_UPD };
    for (ir_ref r = first; r != 0; r = ir_at(f, r)->next)
        if (!makes_vectors(f, r, var, out))
            return false;
    if (out->size == 0 || ir_at(f, loop)->imm != 1 || ir_is_serial(f, loop))
        return false;
    const ir_reach seen = opjit_ir_reach(f, first);
    if (seen.nodes == NULL)
        return false;
    for (uint32_t k = 0; k < seen.count; k++) {
        const ir_ref r = seen.nodes[k];
        const ir_node *n = ir_at(f, r);
        if (n->type == IR_INDEX || n->type == IR_NONE || n->count == 0)
            continue;
        const bool math = (opjit_ir_op_infos[n->op].flags & IR_FLAG_M) != 0;
        out->math = out->math || math;
        out->cost += math ? MATH_COST : is_part_of_growth(f, r) ? 0 : 1;
        if (!steps_equally(s, r, loop, out))
            return false;
    }
    const uint32_t widest = opjit_ir_widest(f, &seen, var), places = rt_target_place_bytes(s->target);
    out->wide = out->places && places > widest ? places : widest;
    if (out->cost < SPELLED_OUT) {
        out->single = out->cost < out->worth;
        return !out->single;
    }
    const int64_t trips = ir_index_value(f, ir_operand(f, loop, 1)) - ir_index_value(f, ir_operand(f, loop, 0));
    return (int64_t)(out->cost - SPELLED_OUT) * trips <= MOST_SPELLED_OUT;
}

bool opjit_ir_find_running(ir_func *f, ir_ref loop, uint32_t *out_cost)
{
    const ir_ref first = ir_at(f, loop)->body;
    bool any = false;
    *out_cost = 0;
    for (ir_ref s = first; s != 0; s = ir_at(f, s)->next) {
        const ir_node *n = ir_at(f, s);
        if (n->op != IR_UPD && n->op != IR_LET && n->op != IR_STORE)
            return false;
        any = any || (n->op == IR_UPD && n->count == 1 && ir_at(f, n->ref)->imm <= 1);
        *out_cost += n->op == IR_UPD ? (n->count == 1 ? 1 : ARG_COST) : 0;
    }
    if (!any)
        return false;
    const ir_reach seen = opjit_ir_reach(f, first);
    for (uint32_t k = 0; k < seen.count; k++) {
        const ir_node *n = ir_at(f, seen.nodes[k]);
        if (n->type != IR_INDEX && n->type != IR_NONE && n->count > 0)
            *out_cost += (opjit_ir_op_infos[n->op].flags & IR_FLAG_M) != 0 ? MATH_COST : 1;
    }
    return seen.nodes != NULL;
}
