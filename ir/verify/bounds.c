/* SPDX-License-Identifier: Apache-2.0 */
/* bounds.c - V8: each coordinate of a load, under the guards of the selects around it, and of a store is inside its
 * tensor.  Takes a statement; proves this, or reports an error: what can't be proven is refused. */
#include "ir/verify/guards.h"

enum { FEW_SUMS = 16 };

/* Whether the index is in [0, last], with the help of at most so many guards at once. */
static bool is_inside(bounds *b, ir_ref x, ir_ref last, uint32_t count, uint32_t sums)
{
    b->sums = sums;
    return opjit_ir_guards_prove(b, opjit_ir_index(b->v->f, 0), x, 0, count) &&
           opjit_ir_guards_prove(b, x, last, 0, count);
}

/* What is in the lists, which is little of them. */
static void copy_guards(guards *to, const guards *from)
{
    memcpy(to->at_least, from->at_least, from->count * sizeof *to->at_least);
    memcpy(to->not_zero, from->not_zero, from->zero_count * sizeof *to->not_zero);
    memcpy(to->choices, from->choices, from->choice_count * sizeof *to->choices);
    to->count = from->count;
    to->zero_count = from->zero_count;
    to->choice_count = from->choice_count;
    to->changes = from->changes;
    to->learned = from->learned;
    to->conditional = from->conditional;
}

/* Whether a <= c, where one of them is a number, and the other is chosen by selects, imin or imax: each arm of a select
 * is asked under its condition. */
static bool arms_are_ordered(bounds *b, ir_ref a, ir_ref c, uint32_t depth)
{
    ir_func *f = b->v->f;
    const bool above = ir_is_index_const(f, a); /* the number is the least that the other may be */
    const ir_ref value = ir_let_value(f, above ? c : a);
    const ir_node node = *ir_at(f, value);
    if (opjit_ir_guards_prove(b, a, c, 0, 1))
        return true;
    if (depth == 0 || (node.op != IR_IMIN && node.op != IR_IMAX && node.op != IR_SELECT))
        return false;
    const bool one_is_enough = node.op == (above ? IR_IMAX : IR_IMIN);
    const uint32_t first = node.op == IR_SELECT;
    bool ordered = !one_is_enough;
    for (uint32_t arm = first; arm < first + 2 && ordered != one_is_enough; arm++) {
        const ir_ref x = ir_operand(f, value, arm);
        guards known;
        copy_guards(&known, &b->known);
        if (node.op == IR_SELECT)
            opjit_ir_guards_assume(b, ir_operand(f, value, 0), arm == 1);
        ordered = arms_are_ordered(b, above ? a : x, above ? x : c, depth - 1);
        copy_guards(&b->known, &known);
    }
    return ordered;
}

static bool is_chosen_inside(bounds *b, ir_ref x, ir_ref last)
{
    enum { DEPTH = 4 };
    b->sums = FEW_SUMS;
    return arms_are_ordered(b, opjit_ir_index(b->v->f, 0), x, DEPTH) && arms_are_ordered(b, x, last, DEPTH);
}

/* Whether a loop around ends where it begins, or before: so a pass leaves a piece that others have taken all of. */
static bool never_runs(const bounds *b)
{
    const verifier *v = b->v;
    bool never = false;
    for (uint32_t i = 0; i < v->open_count && !never; i++)
        never = opjit_ir_ordered(v->f, ir_operand(v->f, v->open[i], 1), ir_operand(v->f, v->open[i], 0));
    return never;
}

static opjit_status check_coordinates(bounds *b, ir_ref node, uint32_t first)
{
    verifier *v = b->v;
    ir_func *f = v->f;
    const ir_tensor t = f->tensors[ir_at(f, node)->ref];
    for (uint32_t d = 0; d < t.rank; d++) {
        const ir_ref x = ir_operand(f, node, first + d);
        const ir_interval known = opjit_ir_interval(f, x);
        if (known.lo > known.hi || (known.lo >= 0 && known.hi < (int64_t)t.sizes[d]))
            continue;
        const ir_ref last = opjit_ir_index(f, (int64_t)t.sizes[d] - 1);
        /* A proof that is found takes little, and one that is not takes all that it may: so guards are first added by
         * intervals alone, then each with few sums, then with many.  Pairs of guards come last: they take the most. */
        if (!is_inside(b, x, last, 0, FEW_SUMS) &&
            !(opjit_ir_guards_learn(b) && is_inside(b, x, last, 0, FEW_SUMS)) &&
            !is_inside(b, x, last, 1, FEW_SUMS) && !is_inside(b, x, last, 1, IR_SUMS) &&
            !is_inside(b, x, last, 2, IR_SUMS) && !is_chosen_inside(b, x, last) && !never_runs(b))
            return opjit_ir_verify_fail(v, 8, node, "coordinate %u is in [%lld, %lld], size %llu", d,
                                        (long long)known.lo, (long long)known.hi, (unsigned long long)t.sizes[d]);
    }
    return OPJIT_OK;
}

static opjit_status check_loads(bounds *b, ir_ref expr)
{
    const ir_node node = *ir_at(b->v->f, expr);
    if (!b->v->loads[expr] || b->v->walked[expr] == b->v->walk)
        return OPJIT_OK;
    if (node.op == IR_LOAD)
        TRY(check_coordinates(b, expr, 0));
    if (node.op == IR_SELECT) {
        const ir_ref condition = ir_operand(b->v->f, expr, 0);
        const int decided = opjit_ir_decide(b->v->f, condition);
        guards known;
        copy_guards(&known, &b->known);
        TRY(check_loads(b, condition));
        for (uint32_t arm = 1; arm <= 2; arm++) {
            if (decided == (arm == 1 ? 0 : 1))
                continue; /* never evaluated */
            opjit_ir_guards_assume(b, condition, arm == 1);
            b->known.conditional = known.conditional || b->known.changes != known.changes;
            TRY(check_loads(b, ir_operand(b->v->f, expr, arm)));
            copy_guards(&b->known, &known);
        }
    } else {
        for (uint32_t i = 0; i < node.count; i++)
            TRY(check_loads(b, ir_operand(b->v->f, expr, i)));
    }
    if (!b->known.conditional)
        b->v->walked[expr] = b->v->walk; /* proven without guards, so it holds under any */
    return OPJIT_OK;
}

/* A boxed yield stores offset + i * step for i below the size. */
static opjit_status check_box(verifier *v, ir_ref yield)
{
    ir_func *f = v->f;
    const ir_tensor t = f->tensors[ir_at(f, yield)->ref];
    for (uint32_t d = 0; d < t.rank; d++) {
        const uint32_t first = 1 + t.rank + 3 * d;
        const ir_interval offset = opjit_ir_interval(f, ir_operand(f, yield, first));
        int64_t reach, last;
        if (!checked_muli(ir_index_value(f, ir_operand(f, yield, first + 1)) - 1,
                          ir_index_value(f, ir_operand(f, yield, first + 2)), &reach) ||
            !checked_addi(reach, offset.hi, &last) || offset.lo < 0 || last >= (int64_t)t.sizes[d])
            return opjit_ir_verify_fail(v, 8, yield, "box %u leaves size %llu", d, (unsigned long long)t.sizes[d]);
    }
    return OPJIT_OK;
}

/* Whether intervals alone say that each load below expr is inside of its tensor. */
static bool is_plain(verifier *v, ir_ref expr)
{
    const ir_node *node = ir_at(v->f, expr);
    if (!v->loads[expr] || v->walked[expr] == v->walk)
        return true;
    v->walked[expr] = v->walk;
    bool plain = node->op != IR_LOAD || opjit_ir_in_bounds(v->f, expr);
    for (uint32_t i = 0; i < node->count && plain; i++)
        plain = is_plain(v, ir_operand(v->f, expr, i));
    return plain;
}

/* Nothing is known.  The lists, which are large, stay unset. */
static void begin(bounds *b, verifier *v)
{
    guards *k = &b->known;
    b->v = v;
    b->steps = 0;
    b->sums = IR_SUMS;
    k->count = k->zero_count = k->choice_count = k->changes = k->learned = 0;
    k->conditional = false;
}

opjit_status opjit_ir_verify_bounds(verifier *v, ir_ref statement)
{
    const ir_node node = *ir_at(v->f, statement);
    bool plain = node.op != IR_STORE || opjit_ir_in_bounds(v->f, statement);
    v->walk++;
    for (uint32_t i = 0; i < node.count && plain; i++)
        plain = is_plain(v, ir_operand(v->f, statement, i));
    if (plain) /* as nearly all are: what loops and selects say would not be asked */
        return node.op == IR_YIELD && node.imm ? check_box(v, statement) : OPJIT_OK;
    bounds b;
    begin(&b, v);
    v->walk++;
    opjit_ir_guards_assume_loops(&b);
    for (uint32_t i = 0; i < node.count; i++)
        TRY(check_loads(&b, ir_operand(v->f, statement, i)));
    if (node.op == IR_STORE)
        TRY(check_coordinates(&b, statement, 1));
    return node.op == IR_YIELD && node.imm ? check_box(v, statement) : OPJIT_OK;
}
