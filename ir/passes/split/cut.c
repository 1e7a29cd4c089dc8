/* SPDX-License-Identifier: Apache-2.0 */
/* cut.c - turns conditions on a loop's variable into bounds of loops.  Part of split.  Leaves no condition
 * g*j + e REL 0 inside the loop over j, with g a constant and e the same in every iteration, except those that the
 * limits below leave as a select.
 *
 * A condition changes once, at p: the first j where it is different.  The loop becomes [lo, c) and [c, hi) with c =
 * clamp(p, lo, hi), and the condition is a constant in each.  A second cut q is clamped into the ends of the piece that
 * it cuts, so no order of p and q needs to be known; where it is known, because p - q is a constant or by intervals,
 * pieces that would be empty are not made.  A row costs one min and one max per cut, and no compare per element.
 *
 * Where a piece makes part of a row of scratch a constant, loops that read the row at their variable are cut there,
 * too, and use the constant in place of the load: after a mask, the loops of a softmax are as short as what the mask
 * leaves. */
#include "ir/passes/split/split.h"

enum {
    MAX_CUTS = 68,     /* distinct cuts of a loop that are considered */
    MAX_VARIABLE = 4,  /* those of them that are not constant */
    MAX_PIECES = 10,   /* of a loop: with boundaries and a remainder still below rule V16's loops per stage */
    MAX_LOOPS = 32,    /* of a stage, before boundaries */
    MAX_CONDITIONS = 128,
};

/* 1: j < at holds; 0: it does not; -1: a piece where both may be. */
typedef int8_t side;

typedef struct cut {
    ir_ref at; /* not clamped */
    bool constant;
} cut;

/* The comparison `node` in terms of cuts: j < before (then negated), or before <= j < after.  Or node is a load, which
 * is `value` from before to after. */
typedef struct condition {
    ir_ref node, value;
    uint32_t before, after; /* cuts; after is before's number if there is one cut */
    bool negated;
} condition;

typedef struct piece {
    ir_ref lo, hi;
    side sides[MAX_CUTS];
    ir_ref body; /* with the old variable */
} piece;

typedef struct splitter {
    ir_func *f;
    const stage_split *stage;
    ir_ref loop, var;
    cut cuts[MAX_CUTS];
    uint32_t cut_count, variable_count;
    condition conditions[MAX_CONDITIONS];
    uint32_t condition_count;
    piece pieces[MAX_PIECES];
    uint32_t piece_count, most;
    block *out;
} splitter;

/* --- conditions ------------------------------------------------------------------------------------------------- */

/* The number of the cut at `at`; MAX_CUTS: there is no room. */
static uint32_t cut_number(splitter *s, ir_ref at)
{
    int64_t distance;
    for (uint32_t i = 0; i < s->cut_count; i++)
        if (opjit_ir_distance(s->f, s->cuts[i].at, at, &distance) && distance == 0)
            return i;
    const bool constant = ir_is_index_const(s->f, at);
    if (s->cut_count == MAX_CUTS || (!constant && s->variable_count == MAX_VARIABLE))
        return MAX_CUTS;
    s->variable_count += !constant;
    s->cuts[s->cut_count] = (cut){ at, constant };
    return s->cut_count++;
}

static ir_ref plus(ir_func *f, ir_ref x, int64_t c) { return ir_make2(f, IR_IADD, IR_INDEX, x, opjit_ir_index(f, c)); }

/* floor of (sign * e) / by, by >= 1. */
static ir_ref quotient(ir_func *f, const ir_affine *e, int64_t sign, int64_t by)
{
    ir_affine form = *e;
    form.constant *= sign; /* within the interval of an index expression, so its negative exists */
    for (uint32_t i = 0; i < form.count; i++)
        form.factors[i] *= sign;
    return ir_make2(f, IR_IDIV, IR_INDEX, opjit_ir_affine_build(f, &form), opjit_ir_index(f, by));
}

static bool negatable(const ir_affine *form)
{
    bool ok = form->constant != INT64_MIN;
    for (uint32_t i = 0; i < form->count; i++)
        ok = ok && form->factors[i] != INT64_MIN;
    return ok;
}

/* Enters comparison r if it is g*j + e REL 0.  The cut of lt is at ceil(-e/g) for g > 0 and at floor(e/-g) + 1 for g <
 * 0, that of le at floor(-e/g) + 1 and ceil(e/-g). */
static void add_condition(splitter *s, const loop_body *b, ir_ref r)
{
    ir_func *f = s->f;
    const ir_op op = (ir_op)ir_at(f, r)->op;
    ir_affine e = { 0 };
    if (s->condition_count == MAX_CONDITIONS || !opjit_ir_affine_add(f, &e, ir_operand(f, r, 0), 1) ||
        !opjit_ir_affine_add(f, &e, ir_operand(f, r, 1), -1))
        return;
    const int64_t g = opjit_ir_affine_take(f, &e, s->var);
    bool usable = g != 0 && g != INT64_MIN && negatable(&e);
    for (uint32_t i = 0; i < e.count; i++)
        usable = usable && !is_variant(b, e.atoms[i]);
    const bool equality = op == IR_EQ || op == IR_NE;
    if (!usable || (equality && g != 1 && g != -1))
        return;
    condition c = { .node = r };
    if (equality) {
        const ir_ref at = quotient(f, &e, -g, 1);
        c.before = cut_number(s, at);
        c.after = c.before == MAX_CUTS ? MAX_CUTS : cut_number(s, plus(f, at, 1));
        c.negated = op == IR_NE;
    } else {
        const bool strict = op == IR_LT;
        ir_ref at;
        if (g > 0)
            at = strict ? ir_make2(f, IR_ISUB, IR_INDEX, opjit_ir_index(f, 0), quotient(f, &e, 1, g))
                        : plus(f, quotient(f, &e, -1, g), 1);
        else
            at = strict ? plus(f, quotient(f, &e, 1, -g), 1)
                        : ir_make2(f, IR_ISUB, IR_INDEX, opjit_ir_index(f, 0), quotient(f, &e, -1, -g));
        ir_affine form = { 0 };
        if (opjit_ir_affine_add(f, &form, at, 1)) /* 0 - (0 - y) is y */
            at = opjit_ir_affine_build(f, &form);
        c.before = c.after = cut_number(s, at);
        c.negated = g < 0;
    }
    if (c.before != MAX_CUTS && c.after != MAX_CUTS)
        s->conditions[s->condition_count++] = c;
}

/* Enters what is known about a load of a row at the loop's variable. */
static void add_loads(splitter *s, ir_ref load)
{
    ir_func *f = s->f;
    for (uint32_t i = 0; i < s->stage->known_count && s->condition_count < MAX_CONDITIONS; i++) {
        const known *k = &s->stage->parts[i];
        if (k->tensor != ir_at(f, load)->ref || ir_operand(f, load, 0) != s->var)
            continue;
        const uint32_t before = cut_number(s, k->lo), after = cut_number(s, k->hi);
        const condition c = { .node = load, .value = k->value, .before = before, .after = after };
        if (c.before != MAX_CUTS && c.after != MAX_CUTS)
            s->conditions[s->condition_count++] = c;
    }
}

static bool is_condition(const ir_func *f, ir_ref r)
{
    const ir_node *n = ir_at(f, r);
    return ir_is_comparison((ir_op)n->op) && n->count == 2 && ir_at(f, ir_operand(f, r, 0))->type == IR_INDEX;
}

bool opjit_ir_has_conditions(ir_func *f, ir_ref stage)
{
    const ir_reach seen = opjit_ir_reach(f, ir_at(f, stage)->body);
    uint32_t k = 0;

    while (k < seen.count && !is_condition(f, seen.nodes[k]))
        k++;
    return k < seen.count;
}

static void find_conditions(splitter *s)
{
    ir_func *f = s->f;
    loop_body b;
    if (!opjit_ir_look_at_body(f, s->loop, &b))
        return;
    for (uint32_t k = 0; k < b.seen.count; k++) {
        const ir_ref r = b.seen.nodes[k];
        if (is_condition(f, r))
            add_condition(s, &b, r);
        else if (ir_at(f, r)->op == IR_LOAD && ir_at(f, r)->count == 1)
            add_loads(s, r);
    }
}

/* --- pieces ----------------------------------------------------------------------------------------------------- */

/* The side of the cut on which the whole piece is; -1: unknown. */
static side known_side(const splitter *s, const piece *p, uint32_t number)
{
    const ir_func *f = s->f;
    int64_t distance;
    for (uint32_t i = 0; i < s->cut_count; i++) {
        if (p->sides[i] < 0 || !opjit_ir_distance(f, s->cuts[number].at, s->cuts[i].at, &distance))
            continue;
        if (p->sides[i] == 1 && distance >= 0)
            return 1; /* j < i's cut <= this one */
        if (p->sides[i] == 0 && distance <= 0)
            return 0;
    }
    const ir_interval lo = opjit_ir_interval(f, p->lo), hi = opjit_ir_interval(f, p->hi);
    const ir_interval at = opjit_ir_interval(f, s->cuts[number].at);
    return hi.hi <= at.lo ? 1 : at.hi <= lo.lo ? 0 : -1;
}

static void remove_piece(splitter *s, uint32_t at)
{
    s->piece_count--;
    for (uint32_t i = at; i < s->piece_count; i++)
        s->pieces[i] = s->pieces[i + 1];
}

/* Cuts piece `at` in two and returns the number of parts.  A part that is proven empty is not made; the other one then
 * keeps both ends, so that neighbours still meet in one expression. */
static uint32_t cut_piece(splitter *s, uint32_t at, uint32_t number)
{
    ir_func *f = s->f;
    piece *p = &s->pieces[at];
    const ir_ref bound = ir_make3(f, IR_CLAMP, IR_INDEX, s->cuts[number].at, p->lo, p->hi);
    const bool none_before = opjit_ir_proves_le(f, bound, p->lo, 0);
    if (f->failed || none_before || opjit_ir_proves_le(f, p->hi, bound, 0)) {
        p->sides[number] = !none_before;
        return 1;
    }
    const ir_ref get = opjit_ir_block_let(f, s->out, bound);
    for (uint32_t i = s->piece_count++; i > at; i--)
        s->pieces[i] = s->pieces[i - 1];
    p[0].hi = p[1].lo = get;
    p[0].sides[number] = 1;
    p[1].sides[number] = 0;
    return 2;
}

static void cut_pieces(splitter *s)
{
    for (uint32_t number = 0; number < s->cut_count; number++) {
        for (uint32_t i = 0; i < s->piece_count;) {
            piece *p = &s->pieces[i];
            p->sides[number] = known_side(s, p, number);
            i += p->sides[number] < 0 && s->piece_count < s->most ? cut_piece(s, i, number) : 1;
        }
    }
}

/* The condition in the piece: 0, 1 or -1. */
static side condition_value(const condition *c, const piece *p)
{
    const side before = p->sides[c->before], after = p->sides[c->after];
    if (c->before == c->after)
        return before < 0 ? -1 : (side)(before ^ c->negated);
    if (before == 1 || after == 0)
        return (side)c->negated;
    return before == 0 && after == 1 ? (side)!c->negated : (side)-1;
}

static void make_bodies(splitter *s)
{
    ir_func *f = s->f;
    for (uint32_t i = 0; i < s->piece_count; i++) {
        ir_map map = { 0 };
        for (uint32_t k = 0; k < s->condition_count; k++) {
            const condition *c = &s->conditions[k];
            const side value = condition_value(c, &s->pieces[i]);
            if (value >= 0 && c->value == 0)
                ir_map_set(f, &map, c->node, opjit_ir_const(f, IR_BOOL, (uint64_t)value));
            else if (value == 1)
                ir_map_set(f, &map, c->node, c->value);
        }
        s->pieces[i].body = opjit_ir_remake_block(f, &map, ir_at(f, s->loop)->body);
    }
}

/* Whether both are equal single stores; anything else counts as different. */
static bool same_body(const ir_func *f, ir_ref a, ir_ref b)
{
    if (ir_only(f, a) == 0 || ir_only(f, b) == 0 || ir_at(f, a)->op != IR_STORE || ir_at(f, b)->op != IR_STORE ||
        ir_at(f, a)->ref != ir_at(f, b)->ref || ir_at(f, a)->count != ir_at(f, b)->count)
        return false;
    for (uint32_t i = 0; i < ir_at(f, a)->count; i++)
        if (!opjit_ir_same(f, ir_operand(f, a, i), ir_operand(f, b, i)))
            return false;
    return true;
}

static void merge_pieces(splitter *s)
{
    for (uint32_t i = 0; i + 1 < s->piece_count;) {
        if (!same_body(s->f, s->pieces[i].body, s->pieces[i + 1].body)) {
            i++;
            continue;
        }
        s->pieces[i].hi = s->pieces[i + 1].hi;
        remove_piece(s, i + 1);
    }
}

/* --- blocks ----------------------------------------------------------------------------------------------------- */

/* Puts `loop` in out as one or more loops. */
static void split_loop(stage_split *stage, block *out, ir_ref loop)
{
    ir_func *f = stage->f;
    if (ir_is_serial(f, loop) || stage->held || /* loops in one with hold are spelled out: their bounds stay constant */
        !stage->has_conditions) {
        opjit_ir_block_add(f, out, loop);
        return;
    }
    splitter here, *const s = &here; /* its lists, which are large, stay unset */
    s->cut_count = s->variable_count = s->condition_count = 0;
    s->f = f;
    s->stage = stage;
    s->loop = loop;
    s->var = ir_at(f, loop)->ref;
    s->out = out;
    find_conditions(s);
    if (s->cut_count == 0 || f->failed || ir_at(f, loop)->imm != 1) {
        opjit_ir_block_add(f, out, loop);
        return;
    }
    s->pieces[0].lo = opjit_ir_block_let(f, out, ir_operand(f, loop, 0));
    s->pieces[0].hi = opjit_ir_block_let(f, out, ir_operand(f, loop, 1));
    s->piece_count = 1;
    const uint32_t each = 1 + opjit_ir_count_for(f, ir_at(f, loop)->body);
    const uint32_t room = stage->loops < MAX_LOOPS ? 1 + (MAX_LOOPS - stage->loops) / each : 1;
    s->most = room < MAX_PIECES ? room : MAX_PIECES;
    for (uint32_t i = 0; i < MAX_CUTS; i++)
        s->pieces[0].sides[i] = -1;
    cut_pieces(s);
    make_bodies(s);
    merge_pieces(s);
    stage->loops += (s->piece_count - 1) * each;
    ir_took(f, IR_STEP_CUT);
    for (uint32_t i = 0; i < s->piece_count; i++) {
        ir_map map = { 0 };
        const ir_ref made = opjit_ir_for(f, s->pieces[i].lo, s->pieces[i].hi, 1);
        if (made == 0)
            break;
        ir_map_set(f, &map, s->var, ir_at(f, made)->ref);
        const ir_ref body = opjit_ir_remake_block(f, &map, s->pieces[i].body);
        f->nodes[made].body = body;
        opjit_ir_block_add(f, out, made);
        opjit_ir_note_known(stage, out->parent, made);
    }
}

/* Cuts the loops of a block, then those inside them.  Lets go before the first of neighbouring loops, which stay
 * neighbours. */
void opjit_ir_cut_block(stage_split *stage, ir_ref parent)
{
    ir_func *f = stage->f;
    ir_ref next;
    block cut_list = { .parent = parent }, loops = { 0 };
    hoisted out = { .list = { .parent = parent } };
    for (ir_ref s = ir_at(f, parent)->body; s != 0; s = next) {
        next = ir_at(f, s)->next;
        if (ir_at(f, s)->op == IR_FOR)
            split_loop(stage, &cut_list, s);
        else
            opjit_ir_block_add(f, &cut_list, s);
    }
    for (ir_ref s = cut_list.first; s != 0; s = next) {
        next = ir_at(f, s)->next;
        if (ir_at(f, s)->op == IR_FOR) {
            const bool held = stage->held;
            stage->held = held || ir_at(f, s)->hold;
            opjit_ir_cut_block(stage, s); /* as deep as loops nest: rule V16 */
            stage->held = held;
            opjit_ir_hoist(f, &out, s);
            opjit_ir_block_add(f, &loops, s);
            continue;
        }
        opjit_ir_block_move(f, &loops, &out.list);
        opjit_ir_block_add(f, &out.list, s);
    }
    opjit_ir_block_move(f, &loops, &out.list);
}
