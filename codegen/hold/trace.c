/* SPDX-License-Identifier: Apache-2.0 */
/* trace.c - a tile's trace: walks through its record as body.c does, and notes operations instead of making LLVM's. */
#include "codegen/hold/trace.h"

#include <string.h>

enum { LINE = 64, MOST_SHIFT = 3 /* that addresses have */, FIRST_OPS = 512, MOST_OPS = 4096, LOADS = 1024, TRIES = 8,
       ROWS = 8 /* of a square, whose addresses have one base */, MOST_LANES = 16 };

/* A value, also in `lanes` lanes, and the stamp of the statement or part in which it is valid; NONE. */
typedef struct remembered {
    uint32_t value, wide, lanes, stamp;
} remembered;

typedef struct tracer {
    const cg_tile *t;
    cg_trace *trace;
    rt_arena *arena;
    uint32_t room;  /* for operations */
    remembered *of; /* by node and iteration */
    uint32_t load[LOADS]; /* the latest ones, by a hash of their places: operation + 1 */
    uint32_t stores;
    uint32_t reg[CG_TILE_REGISTERS];
    uint32_t at[CG_TILE_LOOPS];
    uint32_t lane; /* of a load whose lanes lie apart */
    uint32_t stamp, part_stamp;
    cg_trace_part part;
    cg_tile_part tile_part;
    bool chosen, refused;
} tracer;

/* --- operations --------------------------------------------------------------------------------------------------- */

static uint32_t refuse(tracer *m)
{
    m->refused = true;
    return 0;
}

static uint32_t add(tracer *m, const cg_trace_op *op)
{
    if (m->trace->count == m->room) {
        cg_trace_op *more = m->room < MOST_OPS ? ARENA_ARRAY(m->arena, cg_trace_op, 2 * (size_t)m->room) : NULL;
        if (!more)
            return refuse(m);
        memcpy(more, m->trace->op, m->room * sizeof *more);
        m->trace->op = more;
        m->room *= 2;
    }
    cg_trace_op *o = &m->trace->op[m->trace->count];
    *o = *op;
    o->step = m->stamp;
    o->stores = m->stores;
    return m->trace->count++;
}

static uint32_t add_value(tracer *m, cg_trace_what what, uint32_t lanes, uint32_t a, uint32_t b)
{
    return add(m, &(cg_trace_op){ .what = (uint16_t)what, .lanes = lanes, .a = { a, b, CG_TRACE_NONE } });
}

static uint32_t add_op(tracer *m, const cg_tile_node *n, uint32_t lanes, uint32_t a, uint32_t b, uint32_t c)
{
    return add(m, &(cg_trace_op){ .what = CG_TRACE_OP,
                                  .op = (uint16_t)n->op,
                                  .type = n->type,
                                  .lanes = lanes,
                                  .a = { a, b, c } });
}

static uint32_t add_access(tracer *m, cg_trace_what what, uint32_t lanes, const cg_trace_place *place, uint32_t value)
{
    const uint32_t none = CG_TRACE_NONE;
    m->stores += what == CG_TRACE_STORE;
    return add(m, &(cg_trace_op){
                      .what = (uint16_t)what, .lanes = lanes, .a = { value, none, none }, .place = *place });
}

static const uint32_t MIX = 0x9e3779b1; /* spreads small numbers over the high bits */

static bool same_place(const cg_trace_place *a, const cg_trace_place *b)
{
    bool same = a->base == b->base && a->terms == b->terms && a->offset == b->offset;
    for (uint32_t i = 0; i < a->terms && same; i++)
        same = a->term[i] == b->term[i] && a->shift[i] == b->shift[i];
    return same;
}

/* Rows of one window are those of the next one, too: what was loaded in this part is not loaded again before memory is
 * stored. */
static uint32_t add_load(tracer *m, cg_trace_what what, uint32_t lanes, const cg_trace_place *place)
{
    uint32_t hash = (place->base * MIX) ^ (uint32_t)place->offset;
    for (uint32_t i = 0; i < place->terms; i++)
        hash = (hash * MIX) ^ (place->term[i] * 4 + place->shift[i]);
    uint32_t slot = hash * MIX >> 22, tries = 0; /* of LOADS */
    for (; tries < TRIES && m->load[slot] > m->trace->first[m->part]; tries++) {
        const cg_trace_op *o = &m->trace->op[m->load[slot] - 1];
        if (o->stores != m->stores)
            break;
        if (o->what == what && o->lanes == lanes && same_place(&o->place, place))
            return m->load[slot] - 1;
        slot = (slot + 1) % LOADS;
    }
    m->load[slot] = add_access(m, what, lanes, place, CG_TRACE_NONE) + 1;
    return m->load[slot] - 1;
}

/* --- addresses ---------------------------------------------------------------------------------------------------- */

static uint32_t number(tracer *m, cg_trace_kind kind, uint32_t arg, int64_t by, uint32_t by_arg)
{
    cg_trace_number *all = m->trace->number[m->part];
    uint32_t *count = &m->trace->numbers[m->part], i = 0;
    while (i < *count &&
           (all[i].kind != kind || all[i].arg != arg || all[i].by != by || all[i].by_arg != by_arg))
        i++;
    if (i == *count && i == CG_TRACE_NUMBERS)
        return refuse(m);
    if (i == *count)
        all[(*count)++] = (cg_trace_number){ .kind = kind, .arg = arg, .by = by, .by_arg = by_arg };
    return i;
}

static int64_t variable_of(const tracer *m, uint32_t l)
{
    return m->t->loop[l].lo + (int64_t)m->at[l] * m->t->loop[l].lanes;
}

/* How many of the distance that loop l moves by: of all loops that move by it, at the first of them. */
static int64_t distances_of(const tracer *m, const cg_tile_access *a, uint32_t l)
{
    int64_t sum = 0;
    for (uint32_t k = 1; k < m->t->loops; k++) {
        if (k < l && a->by_arg[k] == a->by_arg[l])
            return 0;
        sum += a->by_arg[k] == a->by_arg[l] ? variable_of(m, k) + (a->across == k + 1 ? m->lane : 0) : 0;
    }
    return sum;
}

static void add_offset(tracer *m, cg_trace_place *p, int64_t bytes)
{
    const int64_t offset = p->offset + bytes;
    if (bytes > INT32_MAX || bytes < INT32_MIN || offset > INT32_MAX / 2 || offset < INT32_MIN / 2)
        refuse(m);
    p->offset = (int32_t)offset;
}

/* Adds factor times the distance that an argument has. */
static void add_term(tracer *m, cg_trace_place *p, uint32_t arg, int64_t factor)
{
    uint8_t shift = 0;
    for (; shift < MOST_SHIFT && factor % 2 == 0; shift++)
        factor /= 2;
    if (p->terms == CG_TRACE_TERMS || factor > INT32_MAX || factor < INT32_MIN) {
        refuse(m);
        return;
    }
    p->shift[p->terms] = shift;
    p->term[p->terms++] =
        factor == 1 ? number(m, CG_TRACE_WORD, arg, 0, 0) : number(m, CG_TRACE_FACTOR, arg, factor, 0);
}

static cg_trace_place place_of(tracer *m, const cg_tile_access *a)
{
    const uint32_t arg = a->base + cg_tile_place(m->t, a->each, m->at);
    const bool moves = m->part == CG_TRACE_LOOP && (a->by[0] != 0 || a->by_arg[0]);
    cg_trace_place p = { .base = number(m, moves ? CG_TRACE_MOVE : CG_TRACE_WORD, arg,
                                        moves && !a->by_arg[0] ? a->by[0] : 0, moves ? a->by_arg[0] : 0) };
    for (uint32_t l = 1; l < m->t->loops; l++) {
        const int64_t factor = a->by_arg[l] ? distances_of(m, a, l) : 0;
        const int64_t rest = a->across && factor > ROWS ? factor % ROWS : 0; /* rows have few factors this way */
        if (a->by[l])
            add_offset(m, &p, a->by[l] * (variable_of(m, l) + (a->across == l + 1 ? m->lane : 0)));
        if (factor != 0)
            add_term(m, &p, a->by_arg[l] - 1, factor - rest);
        if (rest != 0)
            add_term(m, &p, a->by_arg[l] - 1, rest);
    }
    return p;
}

static cg_trace_place register_place(tracer *m, uint32_t r)
{
    cg_trace_place p = { .base = number(m, CG_TRACE_WORD, m->t->reg[r].base, 0, 0) };
    add_offset(m, &p, m->t->reg[r].offset);
    return p;
}

static cg_trace_place argument_place(uint32_t arg)
{
    return (cg_trace_place){ .base = CG_TRACE_ARGS, .offset = (int32_t)(8 * arg) };
}

/* --- expressions -------------------------------------------------------------------------------------------------- */

static uint32_t value_of(tracer *m, uint32_t node);

/* What is remembered of the node, with nothing that is no longer valid. */
static remembered *recall(tracer *m, uint32_t node)
{
    const cg_tile_node *n = &m->t->node[node];
    remembered *r = &m->of[n->first + cg_tile_place(m->t, n->moves, m->at)];
    const uint32_t stamp = n->fresh ? m->stamp : m->part_stamp;
    if (r->stamp != stamp)
        *r = (remembered){ CG_TRACE_NONE, CG_TRACE_NONE, 0, stamp };
    return r;
}

/* An operand that is the same in all lanes, in so many. */
static uint32_t widen(tracer *m, uint32_t node, uint32_t lanes)
{
    const cg_tile_node *n = &m->t->node[node];
    const uint32_t none = CG_TRACE_NONE;
    cg_trace_place place = argument_place(n->at);
    if (n->what == CG_TILE_CONST)
        return add_value(m, CG_TRACE_ZERO, lanes, none, none);
    if (n->what == CG_TILE_LOAD && !m->t->access[n->at].held)
        place = place_of(m, &m->t->access[n->at]);
    else if (n->what != CG_TILE_ARG)
        return add_value(m, CG_TRACE_BROADCAST, lanes, value_of(m, node), none);
    return add_load(m, CG_TRACE_SPLAT, lanes, &place);
}

static uint32_t lanes_value(tracer *m, uint32_t node, uint32_t lanes)
{
    const uint32_t own = cg_tile_lanes_of(m->t, m->t->node[node].moves);
    if (own == lanes)
        return value_of(m, node);
    if (own != 1)
        return refuse(m);
    if (recall(m, node)->wide == CG_TRACE_NONE || recall(m, node)->lanes != lanes) {
        const uint32_t v = widen(m, node, lanes);
        remembered *r = recall(m, node);
        r->wide = v;
        r->lanes = lanes;
    }
    return recall(m, node)->wide;
}

static uint32_t add_pair(void *user, cg_trace_pair how, uint32_t lanes, uint32_t a, uint32_t b)
{
    const uint32_t pair = add_value(user, CG_TRACE_PAIR, lanes, a, b);
    ((tracer *)user)->trace->op[pair].op = (uint16_t)how;
    return pair;
}

/* A square of what the load reads, as many iterations of the loop along which it reads neighbours as there are lanes;
 * remembers all of them, and returns the current one. */
static uint32_t load_across(tracer *m, uint32_t node)
{
    const cg_tile_access *a = &m->t->access[m->t->node[node].at];
    const uint32_t u = a->along - 1, lanes = m->t->loop[a->across - 1].lanes, now = m->at[u];
    uint32_t v[MOST_LANES];
    if ((lanes != 4 && lanes != 8 && lanes != MOST_LANES) || m->t->node[node].fresh)
        return refuse(m);
    m->at[u] = now / lanes * lanes;
    for (uint32_t i = 0; i < lanes; i++) {
        m->lane = lanes + i;
        const cg_trace_place ahead = place_of(m, a);
        if (a->ahead)
            m->trace->op[add_access(m, CG_TRACE_FETCH, 1, &ahead, CG_TRACE_NONE)].at = 1;
        m->lane = i;
        const cg_trace_place place = place_of(m, a);
        v[i] = add_load(m, CG_TRACE_LOAD, lanes, &place);
    }
    m->lane = 0;
    opjit_cg_trace_square(v, lanes, add_pair, m);
    for (uint32_t i = 0; i < lanes; i++, m->at[u]++)
        *recall(m, node) = (remembered){ v[i], CG_TRACE_NONE, 0, m->part_stamp };
    m->at[u] = now;
    return v[now % lanes];
}

/* One of the operands, bit for bit: a if it is beyond b or NaN, else b. */
static uint32_t choose(tracer *m, const cg_tile_node *n, uint32_t lanes, uint32_t a, uint32_t b)
{
    const uint32_t choice = add_op(m, n, lanes, a, b, CG_TRACE_NONE);
    if (n->type != IR_F32 || m->t->node[n->a[0]].what == CG_TILE_CONST) /* 0, so no NaN */
        return choice;
    return add_value(m, CG_TRACE_NUMBER, lanes, choice, a);
}

/* Bytes that are loaded for nothing else: as f32, or two as halves. */
static uint32_t bytes_value(tracer *m, const cg_tile_node *n, uint32_t lanes)
{
    const cg_trace_what what = n->op == IR_HALVES ? CG_TRACE_U8_HALVES : CG_TRACE_U8;
    const cg_tile_node *load = &m->t->node[n->a[0]];
    const cg_tile_access *a = &m->t->access[load->what == CG_TILE_LOAD ? load->at : 0];
    const bool bytes = n->type == IR_F32 && (load->type == IR_U8 || load->type == IR_I8);
    if ((!bytes && n->op != IR_HALVES) || load->what != CG_TILE_LOAD || a->held || a->across || lanes == 1 ||
        cg_tile_lanes_of(m->t, load->moves) != lanes)
        return refuse(m);
    const cg_trace_place place = place_of(m, a);
    return add_load(m, ir_is_signed((ir_type)load->type) ? what + 1 : what, lanes, &place);
}

static uint32_t op_value(tracer *m, const cg_tile_node *n, uint32_t lanes)
{
    uint32_t a[3] = { CG_TRACE_NONE, CG_TRACE_NONE, CG_TRACE_NONE };
    switch ((ir_op)n->op) {
    case IR_SELECT:
        if (m->tile_part != CG_TILE_END || m->t->choice != cg_tile_origin(m->t, n->a[0]) + 1)
            return refuse(m);
        return lanes_value(m, m->chosen ? n->a[1] : n->a[2], lanes);
    case IR_HALVES:
    case IR_CAST: return bytes_value(m, n, lanes);
    case IR_FMA:
    case IR_DOT4_US:
    case IR_DOT2:
    case IR_ADD:
    case IR_SUB:
    case IR_MUL:
    case IR_DIV:
    case IR_MIN:
    case IR_MAX: break;
    default: return refuse(m);
    }
    for (uint32_t i = 0; i < n->count; i++)
        a[i] = lanes_value(m, n->a[i], lanes);
    return n->op == IR_MIN || n->op == IR_MAX ? choose(m, n, lanes, a[0], a[1])
                                              : add_op(m, n, lanes, a[0], a[1], a[2]);
}

static uint32_t compute(tracer *m, uint32_t node)
{
    const cg_tile_node *n = &m->t->node[node];
    const uint32_t lanes = cg_tile_lanes_of(m->t, n->moves);
    if (!cg_trace_has_type(n->type) || m->refused)
        return refuse(m);
    switch ((cg_tile_what)n->what) {
    case CG_TILE_ARG:
    case CG_TILE_CONST: return widen(m, node, 1);
    case CG_TILE_VAR: return refuse(m);
    case CG_TILE_LOAD: {
        const cg_tile_access *a = &m->t->access[n->at];
        if (a->held)
            return m->reg[cg_tile_register_of(m->t, a, m->at)];
        if (a->across)
            return load_across(m, node);
        const cg_trace_place place = place_of(m, a);
        return add_load(m, lanes > 1 ? CG_TRACE_LOAD : CG_TRACE_SPLAT, lanes, &place);
    }
    case CG_TILE_LET: return lanes_value(m, n->a[0], lanes);
    default: return op_value(m, n, lanes);
    }
}

static uint32_t value_of(tracer *m, uint32_t node)
{
    if (recall(m, node)->value == CG_TRACE_NONE) {
        const uint32_t v = compute(m, node);
        recall(m, node)->value = v;
    }
    return recall(m, node)->value;
}

/* --- statements --------------------------------------------------------------------------------------------------- */

static void put_store(tracer *m, const cg_tile_step *s)
{
    const cg_tile_access *a = &m->t->access[s->at];
    const uint32_t r = a->held ? cg_tile_register_of(m->t, a, m->at) : 0;
    const uint32_t lanes = a->held ? m->t->reg[r].lanes : cg_tile_lanes_of(m->t, cg_tile_loops_of(m->t, a));
    if (!cg_trace_has_type(a->type)) {
        refuse(m);
        return;
    }
    const uint32_t v = lanes_value(m, s->value, lanes);
    if (a->held) {
        m->reg[r] = v;
        return;
    }
    const cg_trace_place place = place_of(m, a);
    add_access(m, CG_TRACE_STORE, lanes, &place, v);
}

/* Prefetches the lines of a store, once per line where its vectors lie along a row. */
static void put_fetch(tracer *m, const cg_tile_step *s)
{
    const cg_tile_access *a = &m->t->access[s->at];
    const uint32_t size = opjit_ir_type_size((ir_type)a->type);
    uint32_t lanes = 1;
    int64_t from = 0;
    for (uint32_t l = 1; l < m->t->loops; l++)
        if (a->by[l] == (int64_t)size) { /* along a row */
            lanes = m->t->loop[l].lanes;
            from = (int64_t)m->at[l] * lanes * size;
        }
    if (from % LINE != 0)
        return;
    cg_trace_place place = place_of(m, a);
    for (uint32_t at = 0; at < lanes * size; at += LINE) {
        add_access(m, CG_TRACE_FETCH, 1, &place, CG_TRACE_NONE);
        add_offset(m, &place, LINE);
    }
}

static void put_steps(tracer *m, uint32_t first, bool fetch)
{
    for (uint32_t s = first; s != 0 && !m->refused; s = m->t->step[s - 1].next) {
        const cg_tile_step *step = &m->t->step[s - 1];
        m->stamp++;
        if (step->what == CG_TILE_LOOP)
            for (m->at[step->at] = 0; m->at[step->at] < m->t->loop[step->at].count; m->at[step->at]++)
                put_steps(m, step->inner, fetch);
        else if (step->what == CG_TILE_STORE)
            fetch ? put_fetch(m, step) : put_store(m, step);
        else if (!fetch && m->t->node[step->value].type != IR_BOOL) /* selects look through these */
            value_of(m, step->value);
    }
}

static void put_part(tracer *m, cg_tile_part part)
{
    m->tile_part = part;
    m->part_stamp = ++m->stamp;
    put_steps(m, m->t->part[part], false);
}

/* --- parts -------------------------------------------------------------------------------------------------------- */

static void begin(tracer *m, cg_trace_part part)
{
    m->part = part;
    m->trace->first[part] = m->trace->count;
    m->part_stamp = ++m->stamp;
    for (uint32_t r = 0; r < m->t->registers && part != CG_TRACE_BEFORE; r++) {
        m->reg[r] = add_value(m, CG_TRACE_IN, m->t->reg[r].lanes, CG_TRACE_NONE, CG_TRACE_NONE);
        m->trace->op[m->reg[r]].at = r;
    }
}

static void end(tracer *m)
{
    for (uint32_t r = 0; r < m->t->registers; r++) {
        const uint32_t out = add_value(m, CG_TRACE_OUT, m->t->reg[r].lanes, m->reg[r], CG_TRACE_NONE);
        m->trace->op[out].at = r;
    }
}

static void put_before(tracer *m)
{
    const uint32_t none = CG_TRACE_NONE;
    begin(m, CG_TRACE_BEFORE);
    for (uint32_t r = 0; r < m->t->registers; r++) {
        const uint32_t lanes = m->t->reg[r].lanes;
        if (m->t->starts >> r & 1) { /* what the body sets itself */
            m->reg[r] = add_value(m, CG_TRACE_ZERO, lanes, none, none);
            continue;
        }
        const cg_trace_place place = register_place(m, r);
        m->reg[r] = add_load(m, lanes > 1 ? CG_TRACE_LOAD : CG_TRACE_SPLAT, lanes, &place);
    }
    put_part(m, CG_TILE_BEGIN);
    put_steps(m, m->t->part[CG_TILE_END], true);
    end(m);
}

static void put_after(tracer *m, cg_trace_part part)
{
    begin(m, part);
    m->chosen = part == CG_TRACE_AFTER;
    put_part(m, CG_TILE_END);
    for (uint32_t r = 0; r < m->t->registers && m->t->stays; r++) {
        const cg_trace_place place = register_place(m, r);
        add_access(m, CG_TRACE_STORE, m->t->reg[r].lanes, &place, m->reg[r]);
    }
}

const cg_trace *opjit_cg_trace(const cg_tile *t, rt_arena *arena)
{
    tracer m = { .t = t,
                 .trace = ARENA_NEW(arena, cg_trace),
                 .arena = arena,
                 .room = FIRST_OPS,
                 .of = ARENA_ARRAY(arena, remembered, t->remembered) };
    cg_trace_op *ops = ARENA_ARRAY(arena, cg_trace_op, FIRST_OPS);
    if (!m.trace || !m.of || !ops)
        return NULL;
    m.trace->t = t;
    m.trace->op = ops;
    m.trace->choice = t->choice ? t->node[t->choice - 1].at + 1 : 0;
    for (uint32_t r = 0; r < t->registers; r++)
        m.refused |= !cg_trace_has_type(t->reg[r].type);
    put_before(&m);
    begin(&m, CG_TRACE_LOOP);
    put_part(&m, CG_TILE_BODY);
    end(&m);
    put_after(&m, CG_TRACE_AFTER);
    m.trace->first[CG_TRACE_OTHER] = m.trace->count;
    if (t->choice)
        put_after(&m, CG_TRACE_OTHER);
    m.trace->first[CG_TRACE_PARTS] = m.trace->count;
    if (m.refused)
        return NULL;
    opjit_cg_trace_finish(m.trace);
    return m.trace;
}
