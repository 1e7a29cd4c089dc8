/* SPDX-License-Identifier: Apache-2.0 */
/* vector.c - V12, V13 and V20: what a loop's attributes claim about its iterations. */
#include "ir/verify/verifier.h"

#define FAIL(rule, node, ...) return opjit_ir_verify_fail(v, rule, node, __VA_ARGS__)

typedef struct vector_walk {
    verifier *v;
    ir_ref loop, var;
} vector_walk;

/* Whether each store of the block to the load's tensor has the load's coordinates, or shares one that moves with the
 * variable: an iteration reads what it stores itself. */
static bool reads_own(const vector_walk *w, ir_ref load)
{
    const ir_func *f = w->v->f;
    int64_t factor;
    for (ir_ref s = ir_at(f, w->loop)->body; s; s = ir_at(f, s)->next) {
        bool equal = true, apart = false;
        if (ir_at(f, s)->op != IR_STORE || ir_at(f, s)->ref != ir_at(f, load)->ref)
            continue;
        for (uint32_t d = 0; d < ir_at(f, load)->count; d++) {
            const ir_ref x = ir_operand(f, load, d);
            const bool shared = opjit_ir_same(f, ir_operand(f, s, 1 + d), x);
            equal = equal && shared;
            apart = apart || (shared && opjit_ir_factor(f, x, w->var, &factor) && factor != 0);
        }
        if (!equal && !apart)
            return false;
    }
    return true;
}

static bool stores_to(const ir_func *f, ir_ref first, uint32_t tensor)
{
    for (ir_ref s = first; s; s = ir_at(f, s)->next)
        if ((ir_at(f, s)->op == IR_STORE && ir_at(f, s)->ref == tensor) || stores_to(f, ir_at(f, s)->body, tensor))
            return true;
    return false;
}

static opjit_status check_reads(vector_walk *w, ir_ref expr)
{
    verifier *v = w->v;
    const ir_func *f = v->f;
    const ir_node *node = ir_at(f, expr);
    const ir_ref body = ir_at(f, w->loop)->body;
    if (v->walked[expr] == v->walk)
        return OPJIT_OK;
    v->walked[expr] = v->walk;
    if (node->op == IR_LOAD && stores_to(f, body, node->ref) && !reads_own(w, expr))
        FAIL(12, w->loop, "vec %u: an iteration reads what another one may store", ir_at(f, w->loop)->vec);
    if (node->op == IR_GET && ir_at(f, node->ref)->op == IR_ACC)
        for (ir_ref s = body; s; s = ir_at(f, s)->next)
            if (ir_at(f, s)->op == IR_UPD && ir_at(f, s)->ref == node->ref)
                FAIL(12, w->loop, "vec %u: an accumulator is read while it is updated", ir_at(f, w->loop)->vec);
    for (uint32_t i = 0; i < node->count; i++)
        TRY(check_reads(w, ir_operand(f, expr, i)));
    return OPJIT_OK;
}

/* Whether different iterations store different elements: a coordinate moves with the variable. */
static bool moves(const vector_walk *w, ir_ref store)
{
    const ir_func *f = w->v->f;
    int64_t factor;
    for (uint32_t i = 1; i < ir_at(f, store)->count; i++)
        if (opjit_ir_factor(f, ir_operand(f, store, i), w->var, &factor) && factor != 0)
            return true;
    return false;
}

static opjit_status check_vector_statement(vector_walk *w, ir_ref s)
{
    verifier *v = w->v;
    const ir_func *f = v->f;
    const ir_node *node = ir_at(f, s);
    const uint32_t vec = ir_at(f, w->loop)->vec;
    if (node->op == IR_FOR || node->op == IR_ACC)
        FAIL(12, w->loop, "vec %u: its body holds a loop or an accumulator", vec);
    if (node->op == IR_STORE && !moves(w, s))
        FAIL(12, w->loop, "vec %u: iterations may store the same element", vec);
    if (node->op == IR_UPD) {
        const uint64_t lanes = ir_at(f, node->ref)->imm;
        if (lanes <= 1 || (lanes % vec != 0 && vec % lanes != 0))
            FAIL(12, w->loop, "vec %u does not fit %u lanes", vec, (uint32_t)lanes);
    }
    for (uint32_t i = 0; i < node->count; i++)
        TRY(check_reads(w, ir_operand(f, s, i)));
    return OPJIT_OK;
}

/* --- V13 ---------------------------------------------------------------------------------------------------------- */

static bool expr_loads(const ir_func *f, ir_ref expr, uint32_t tensor, uint32_t *budget)
{
    const ir_node *node = ir_at(f, expr);
    if (*budget == 0 || (node->op == IR_LOAD && node->ref == tensor))
        return true;
    --*budget;
    for (uint32_t i = 0; i < node->count; i++)
        if (expr_loads(f, ir_operand(f, expr, i), tensor, budget))
            return true;
    return false;
}

static bool block_loads(const ir_func *f, ir_ref first, uint32_t tensor)
{
    for (ir_ref s = first; s; s = ir_at(f, s)->next) {
        uint32_t budget = 20000;
        for (uint32_t i = 0; i < ir_at(f, s)->count; i++)
            if (expr_loads(f, ir_operand(f, s, i), tensor, &budget))
                return true;
        if (block_loads(f, ir_at(f, s)->body, tensor))
            return true;
    }
    return false;
}

static opjit_status check_streaming(verifier *v, ir_ref loop, ir_ref stage)
{
    const ir_func *f = v->f;
    ir_ref store = 0;
    uint64_t stride = 0;
    for (ir_ref s = ir_at(f, loop)->body; s; s = ir_at(f, s)->next) {
        if (ir_at(f, s)->op == IR_FOR || (ir_at(f, s)->op == IR_STORE && store))
            FAIL(13, loop, "store nt: the body has more than one store");
        store = ir_at(f, s)->op == IR_STORE ? s : store;
    }
    if (!store)
        FAIL(13, loop, "store nt: the body has no store");
    const ir_tensor *t = &f->tensors[ir_at(f, store)->ref];
    /* The loop changes no memory that the stage reads, and so none of a coordinate. */
    const ir_moving m = { .f = f, .var = ir_at(f, loop)->ref, .varies = opjit_ir_depends };
    for (uint32_t d = 0; d < t->rank; d++) {
        int64_t factor;
        if (!opjit_ir_factor_of(&m, ir_operand(f, store, 1 + d), &factor))
            FAIL(13, loop, "store nt: coordinate %u is not linear in the variable", d);
        stride += (uint64_t)factor * t->strides[d];
    }
    if (stride != 1 || ir_at(f, loop)->imm != 1)
        FAIL(13, loop, "store nt: the stride is not 1");
    if (block_loads(f, ir_at(f, stage)->body, ir_at(f, store)->ref))
        FAIL(13, loop, "store nt: the stage reads the tensor");
    return OPJIT_OK;
}

/* --- transposed blocks ------------------------------------------------------------------------------------------- */

/* Whether one coordinate of the store moves with var and not with other. */
static bool moves_alone(const ir_func *f, ir_ref store, ir_ref var, ir_ref other)
{
    int64_t factor;
    for (uint32_t i = 1; i < ir_at(f, store)->count; i++)
        if (opjit_ir_factor(f, ir_operand(f, store, i), var, &factor) && factor != 0 &&
            !opjit_ir_varies(f, ir_operand(f, store, i), other))
            return true;
    return false;
}

/* Whether the expression loads something that the list or a list below it stores. */
static bool loads_stored(const ir_func *f, ir_ref first, ir_ref expr, uint32_t *budget)
{
    for (ir_ref s = first; s; s = ir_at(f, s)->next)
        if ((ir_at(f, s)->op == IR_STORE && expr_loads(f, expr, ir_at(f, s)->ref, budget)) ||
            loads_stored(f, ir_at(f, s)->body, expr, budget))
            return true;
    return false;
}

/* Checks a transposed block: lets, and one loop with lanes whose bounds are the same for all iterations, so that the
 * iterations may run in any order. */
static opjit_status check_turn(vector_walk *w)
{
    verifier *v = w->v;
    const ir_func *f = v->f;
    const uint32_t rows = ir_at(f, w->loop)->vec;
    ir_ref inner = ir_at(f, w->loop)->body;
    for (; inner && ir_at(f, inner)->op == IR_LET; inner = ir_at(f, inner)->next) {
        uint32_t budget = 20000;
        if (loads_stored(f, ir_at(f, w->loop)->body, ir_operand(f, inner, 0), &budget))
            FAIL(12, w->loop, "transpose %u: a let reads what the loop stores", rows);
    }
    if (!inner || ir_at(f, inner)->op != IR_FOR || ir_at(f, inner)->next || ir_at(f, inner)->vec < 2 ||
        ir_at(f, inner)->flags & (IR_FOR_HEAD | IR_FOR_TAIL | IR_FOR_TRANSPOSE))
        FAIL(12, w->loop, "transpose %u: what it holds is not lets and a loop with lanes", rows);
    if (opjit_ir_varies(f, ir_operand(f, inner, 0), w->var) || opjit_ir_varies(f, ir_operand(f, inner, 1), w->var))
        FAIL(12, w->loop, "transpose %u: the bounds of the loop inside read the variable", rows);
    for (ir_ref s = ir_at(f, inner)->body; s; s = ir_at(f, s)->next) {
        if (ir_at(f, s)->op == IR_UPD)
            FAIL(12, w->loop, "transpose %u: it updates an accumulator", rows);
        if (ir_at(f, s)->op == IR_STORE &&
            (!moves_alone(f, s, w->var, ir_at(f, inner)->ref) || !moves_alone(f, s, ir_at(f, inner)->ref, w->var)))
            FAIL(12, w->loop, "transpose %u: iterations may store the same element", rows);
    }
    return OPJIT_OK;
}

/* --- V20 ---------------------------------------------------------------------------------------------------------- */

/* Whether the variable is of a loop in the list, with constant bounds. */
static bool is_spelled_out(const ir_func *f, ir_ref first, ir_ref var)
{
    for (ir_ref s = first; s; s = ir_at(f, s)->next)
        if (ir_at(f, s)->op == IR_FOR &&
            ((ir_at(f, s)->ref == var && ir_is_index_const(f, ir_operand(f, s, 0)) &&
              ir_is_index_const(f, ir_operand(f, s, 1))) ||
             is_spelled_out(f, ir_at(f, s)->body, var)))
            return true;
    return false;
}

/* The coordinates of a store or load, operands `from` on. */
static opjit_status check_coordinates(const verifier *v, ir_ref loop, ir_ref access, uint32_t from)
{
    const ir_func *f = v->f;
    for (uint32_t i = from; i < ir_at(f, access)->count; i++) {
        const ir_ref at = ir_operand(f, access, i);
        if (!ir_is_index_const(f, at) && !(ir_at(f, at)->op == IR_VAR && is_spelled_out(f, ir_at(f, loop)->body, at)))
            FAIL(20, access, "hold: coordinate %u is neither constant nor a variable inside with constant bounds",
                 i - from);
    }
    return OPJIT_OK;
}

static opjit_status check_held_loads(verifier *v, ir_ref loop, ir_ref expr)
{
    const ir_func *f = v->f;
    const ir_node *node = ir_at(f, expr);
    if (!v->loads[expr] || v->walked[expr] == v->walk)
        return OPJIT_OK;
    v->walked[expr] = v->walk;
    if (node->op == IR_LOAD && stores_to(f, ir_at(f, loop)->body, opjit_ir_root(f, node->ref))) {
        if (opjit_ir_root(f, node->ref) != node->ref)
            FAIL(20, expr, "hold: what is held is read through a view");
        TRY(check_coordinates(v, loop, expr, 0));
    }
    for (uint32_t i = 0; i < node->count; i++)
        TRY(check_held_loads(v, loop, ir_operand(f, expr, i)));
    return OPJIT_OK;
}

/* Whether the loop's iterations store different elements: that is memory. */
static bool moves_with(const ir_func *f, ir_ref loop, ir_ref store)
{
    for (uint32_t i = 1; i < ir_at(f, store)->count; i++)
        if (opjit_ir_uses(f, ir_operand(f, store, i), ir_at(f, loop)->ref))
            return true;
    return false;
}

static opjit_status check_held_list(verifier *v, ir_ref loop, ir_ref first)
{
    const ir_func *f = v->f;
    for (ir_ref s = first; s; s = ir_at(f, s)->next) {
        const ir_node *node = ir_at(f, s);
        if (node->op != IR_FOR && node->op != IR_LET && node->op != IR_STORE)
            FAIL(20, s, "hold: the loop has more than loops, lets and stores");
        if (node->hold)
            FAIL(20, s, "hold: the loop is inside of another such loop");
        if (node->op == IR_STORE && !moves_with(f, loop, s)) {
            if (f->tensors[node->ref].role != IR_SCRATCH)
                FAIL(20, s, "hold: what is stored is not scratch");
            TRY(check_coordinates(v, loop, s, 1));
        }
        for (uint32_t i = 0; i < node->count; i++)
            TRY(check_held_loads(v, loop, ir_operand(f, s, i)));
        TRY(check_held_list(v, loop, node->body));
    }
    return OPJIT_OK;
}

/* What is stored in a loop with hold can be in registers while it runs: each store is to scratch, and each store and
 * load of such scratch names its element by constants and variables of loops inside that run from one constant to
 * another.  Spelled out, every element is known. */
static opjit_status check_hold(verifier *v, ir_ref loop)
{
    if (ir_at(v->f, loop)->vec > 1)
        FAIL(20, loop, "hold: the loop has vec %u", ir_at(v->f, loop)->vec);
    v->walk++;
    return check_held_list(v, loop, ir_at(v->f, loop)->body);
}

opjit_status opjit_ir_verify_vector(verifier *v, ir_ref loop, ir_ref stage)
{
    const ir_node *node = ir_at(v->f, loop);
    vector_walk w = { .v = v, .loop = loop, .var = node->ref };
    v->walk++;
    if ((node->flags & IR_FOR_SERIAL) && (node->vec > 1 || node->unroll > 1 || node->flags != IR_FOR_SERIAL))
        FAIL(12, loop, "serial: the loop has other attributes");
    if (node->vec > 1) {
        if (node->imm != 1)
            FAIL(12, loop, "%s %u with a step", node->flags & IR_FOR_TRANSPOSE ? "transpose" : "vec", node->vec);
        if (node->flags & IR_FOR_TRANSPOSE)
            return check_turn(&w);
        for (ir_ref s = node->body; s; s = ir_at(v->f, s)->next)
            TRY(check_vector_statement(&w, s));
    }
    if (node->flags & (IR_FOR_NT | IR_FOR_HEAD | IR_FOR_TAIL))
        TRY(check_streaming(v, loop, stage));
    return node->hold ? check_hold(v, loop) : OPJIT_OK;
}
