/* SPDX-License-Identifier: Apache-2.0 */
/* remainder.c - ends of loops to which schedule gives vectors and that are not a chain: instead of a remainder in
 * halves, one more loop of single vectors, up to the end of the vector that contains the end.  Its lanes after the end
 * change nothing that is read. */
#include "ir/passes/schedule/scheduler.h"

enum { WIDE_BYTES = 64 /* of a vector: two chains of operations leave units waiting; bench_masks, Zen 4 */ };

/* Whether nothing in the list and below, which may contain `loop`, reads what its store leaves after its end: other
 * loops read the row at their variable and have the same end, and none stores there. */
static bool keeps_apart(ir_func *f, ir_ref first, ir_ref loop, ir_ref store)
{
    const ir_reach seen = opjit_ir_reach(f, first);
    bool apart = seen.nodes != NULL;
    for (uint32_t k = 0; k < seen.count && apart; k++) {
        const ir_ref r = seen.nodes[k];
        const ir_node *n = ir_at(f, r);
        if (n->ref != ir_at(f, store)->ref || (n->op != IR_LOAD && n->op != IR_STORE) || r == store)
            continue;
        const ir_ref reader = n->op == IR_LOAD ? opjit_ir_loop_of(f, first, ir_operand(f, r, 0)) : 0;
        apart = reader != 0 && opjit_ir_same(f, ir_operand(f, reader, 1), ir_operand(f, loop, 1));
    }
    return apart;
}

/* Whether the store may continue after the end of its loop, which is the first of those not yet scheduled. */
static bool may_run_on(scheduler *s, ir_ref loop, ir_ref store)
{
    ir_func *f = s->f;
    return f->tensors[ir_at(f, store)->ref].role == IR_SCRATCH && ir_at(f, store)->count == 2 &&
           keeps_apart(f, ir_at(f, s->stage)->body, loop, store) && keeps_apart(f, loop, loop, store);
}

/* Whether the statements may run for iterations after the loop's end: what they load and store exists for the variable
 * of `longer`, a longer loop that contains their copy; what they update can stay unchanged. */
static bool can_run_on(scheduler *s, ir_ref loop, ir_ref longer)
{
    ir_func *f = s->f;
    const ir_reach seen = opjit_ir_reach(f, ir_at(f, longer)->body);
    bool can = seen.nodes != NULL;
    for (ir_ref r = ir_at(f, loop)->body; r != 0 && can; r = ir_at(f, r)->next)
        can = ir_at(f, r)->op == IR_STORE ? may_run_on(s, loop, r)
              : ir_at(f, r)->op == IR_UPD ? ir_at(f, r)->count == 1
                                          : ir_at(f, r)->op == IR_LET;
    for (uint32_t k = 0; k < seen.count && can; k++) {
        const ir_node *n = ir_at(f, seen.nodes[k]);
        can = (n->op != IR_LOAD && n->op != IR_STORE) || opjit_ir_in_bounds(f, seen.nodes[k]);
    }
    return can;
}

/* A loop from lo to hi with a copy of the loop's body; 0: out of memory. */
static ir_ref copy_loop(ir_func *f, ir_ref loop, ir_ref lo, ir_ref hi)
{
    const ir_ref copy = opjit_ir_for(f, lo, hi, 1);
    ir_map map = { 0 };
    ir_map_set(f, &map, ir_at(f, loop)->ref, ir_at(f, copy)->ref);
    const ir_ref body = opjit_ir_remake_block(f, &map, ir_at(f, loop)->body);
    f->nodes[copy].body = body;
    return copy;
}

static bool is_cut(ir_func *f, ir_ref loop, int64_t size)
{
    const ir_ref lo = ir_operand(f, loop, 0), hi = ir_operand(f, loop, 1), zero = opjit_ir_index(f, 0);
    return opjit_ir_same(f, lo, zero) && opjit_ir_divisor(f, hi) < (uint64_t)size && opjit_ir_interval(f, hi).lo >= 0;
}

/* Makes a loop from 0 that only stores rows of scratch, and has any end, run to the end of its last round: less to
 * compile than an end of its own, for half a round more to do.  false: it is not such a loop, or its statements can't
 * run after the end. */
static bool round_end(scheduler *s, block *out, ir_ref loop, int64_t round)
{
    ir_func *f = s->f;
    const ir_ref hi = ir_operand(f, loop, 1);
    for (ir_ref r = ir_at(f, loop)->body; r != 0; r = ir_at(f, r)->next)
        if (ir_at(f, r)->op == IR_UPD)
            return false;
    if (!is_cut(f, loop, round))
        return false;
    const ir_ref end = opjit_ir_block_let(f, out, ir_make2(f, IR_UP, IR_INDEX, hi, opjit_ir_index(f, round)));
    const ir_ref longer = copy_loop(f, loop, ir_operand(f, loop, 0), end);
    if (longer == 0 || !can_run_on(s, loop, longer))
        return false;
    f->operands[ir_at(f, loop)->first + 1] = end;
    return true;
}

/* Makes a loop from 0 that does more than store a row, and has any end, run to its last whole round; returns a loop
 * from there to the end of the last vector, whose lanes after the end update with the identity.  Neither is in the list
 * out, only the lets that they need.  0: it is not such a loop, or its statements can't run after the end. */
static ir_ref cut_end(scheduler *s, block *out, ir_ref loop, int64_t lanes, int64_t round)
{
    ir_func *f = s->f;
    const ir_ref hi = ir_operand(f, loop, 1);
    if (!is_cut(f, loop, lanes))
        return 0;
    const ir_ref whole = opjit_ir_block_let(f, out, ir_make2(f, IR_DOWN, IR_INDEX, hi, opjit_ir_index(f, round)));
    const ir_ref end = opjit_ir_block_let(f, out, ir_make2(f, IR_UP, IR_INDEX, hi, opjit_ir_index(f, lanes)));
    const ir_ref rest = copy_loop(f, loop, whole, end);
    if (rest == 0 || !can_run_on(s, loop, rest))
        return 0;
    const ir_ref body = ir_at(f, rest)->body;
    const ir_ref inside = ir_make2(f, IR_LT, IR_BOOL, ir_at(f, rest)->ref, hi);
    for (ir_ref r = body; r != 0; r = ir_at(f, r)->next) {
        if (ir_at(f, r)->op != IR_UPD)
            continue;
        const ir_ref value = ir_operand(f, r, 0);
        const ir_type type = (ir_type)ir_at(f, value)->type;
        const uint64_t nothing = opjit_ir_identity(type, (ir_kind)ir_at(f, ir_at(f, r)->ref)->kind);
        const ir_ref chosen = ir_make3(f, IR_SELECT, IR_NONE, inside, value, opjit_ir_const(f, type, nothing));
        f->operands[ir_at(f, r)->first] = chosen;
    }
    f->operands[ir_at(f, loop)->first + 1] = whole;
    return rest;
}

/* Half a round of mathematical functions is computed in vain, so it has two vectors, four wide ones if there is
 * room. */
bool opjit_ir_add_remainder(scheduler *s, block *out, ir_ref loop, const work *w)
{
    if (s->threads || out->parent != s->stage)
        return false;
    const int64_t lanes = opjit_ir_lanes_for(s, loop, w);
    const int64_t copies = opjit_ir_unroll_of(s, ir_operand(s->f, loop, 0), ir_operand(s->f, loop, 1), w, lanes);
    if (lanes < 2 || s->loops >= MAX_LOOPS)
        return false;
    const int64_t least = copies < 2 ? copies : 2;
    int64_t round = s->target->vector_bytes >= WIDE_BYTES && copies > 2 ? 4 : least;
    while (w->cost >= MATH_COST && round > least && !round_end(s, out, loop, lanes * round))
        round /= 2;
    if (w->cost >= MATH_COST && (round > least || round_end(s, out, loop, lanes * round))) {
        ir_took(s->f, IR_STEP_REMAINDERS);
        opjit_ir_set_vector(s, loop, w, round, false);
        opjit_ir_block_add(s->f, out, loop);
        return true;
    }
    const ir_ref rest = cut_end(s, out, loop, lanes, lanes * copies);
    if (rest == 0)
        return false;
    s->loops++;
    ir_took(s->f, IR_STEP_REMAINDERS);
    opjit_ir_set_vector(s, loop, w, copies, false);
    opjit_ir_set_vector(s, rest, w, 1, false);
    opjit_ir_block_add(s->f, out, loop);
    opjit_ir_block_add(s->f, out, rest);
    return true;
}
