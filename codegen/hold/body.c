/* SPDX-License-Identifier: Apache-2.0 */
/* body.c - a tile's function: what is before the loop; prefetches of the lines that are stored after it; the loop, one
 * block whose registers are phis; what is after it.  Operations on values are emitted by emit/arith.c and its like. */
#include "codegen/hold/hold.h"

enum { LINE = 64, MOST_SHIFT = 3 /* that addresses have */, MOST_FACTORS = 64, NO_ARG = CG_TILE_ARGS };

/* A value, and the stamp of the statement or part in which it is valid. */
typedef struct remembered {
    LLVMValueRef value;
    LLVMValueRef lanes; /* the value in all lanes; NULL: not made yet */
    uint32_t stamp;
} remembered;

/* What grows with the held loop. */
typedef struct move {
    int64_t by;
    uint32_t by_arg; /* as in cg_tile_access */
    uint32_t arg;    /* from which, or NO_ARG */
    LLVMValueRef phi, value;
} move;

/* A distance that is an argument, times a constant. */
typedef struct scaled {
    int64_t by;
    uint32_t arg;
    LLVMValueRef value;
} scaled;

typedef struct maker {
    cg_func *f;
    const cg_tile *t;
    LLVMValueRef args;
    LLVMValueRef given[CG_TILE_NODES]; /* arguments as values */
    LLVMValueRef word[CG_TILE_ARGS];   /* arguments as addresses and distances */
    LLVMValueRef reg[CG_TILE_REGISTERS];
    LLVMBasicBlockRef loop, before; /* the held loop, and the block before it; NULL outside of it */
    move *move;                     /* in the held loop: at most one per remembered address, and its variable */
    uint32_t move_count;
    scaled factor[MOST_FACTORS];
    uint32_t factor_count;
    uint32_t at[CG_TILE_LOOPS];
    uint32_t stamp, part_stamp; /* of the statement, of the part */
    cg_tile_part part;
    bool chosen;    /* at the end: the value of the tile's choice */
    remembered *of; /* by node, row, and iteration */
} maker;

/* --- arguments ---------------------------------------------------------------------------------------------------- */

static LLVMTypeRef type_of(const cg_func *f, ir_type type, uint32_t lanes)
{
    return type == IR_F32 || type == IR_F64
               ? opjit_cg_float(f, type, lanes)
               : opjit_cg_int(f, type == IR_INDEX ? 64 : 8 * opjit_ir_type_size(type), lanes);
}

static LLVMValueRef read_word(maker *m, uint32_t arg, LLVMTypeRef type)
{
    cg_func *f = m->f;
    LLVMValueRef index = opjit_cg_number(f, 64, 1, arg);
    return LLVMBuildLoad2(f->entry, type, LLVMBuildGEP2(f->entry, f->type.i64, m->args, &index, 1, ""), "");
}

static LLVMValueRef word(maker *m, uint32_t arg, LLVMTypeRef type)
{
    if (!m->word[arg])
        m->word[arg] = read_word(m, arg, type);
    return m->word[arg];
}

static LLVMValueRef given(maker *m, uint32_t node)
{
    const cg_tile_node *n = &m->t->node[node];
    cg_func *f = m->f;
    if (m->given[node])
        return m->given[node];
    LLVMValueRef v = read_word(m, n->at, n->type == IR_BOOL ? f->type.i64 : type_of(f, (ir_type)n->type, 1));
    if (n->type == IR_BOOL)
        v = LLVMBuildICmp(f->entry, LLVMIntNE, v, opjit_cg_number(f, 64, 1, 0), "");
    return m->given[node] = v;
}

/* --- addresses ---------------------------------------------------------------------------------------------------- */

static int64_t variable_of(const maker *m, uint32_t l)
{
    const cg_tile_loop *loop = &m->t->loop[l];
    return loop->lo + (int64_t)m->at[l] * loop->lanes;
}

/* What grows with the held loop: an address that is an argument, in its current iteration, or (NO_ARG) the number of
 * iterations.  It is hidden from LLVM's strength reduction, whose search for a form of each address would take a fifth
 * of a tile's compile.  Only in the loop, which is one block. */
static LLVMValueRef moved(maker *m, uint32_t arg, int64_t by, uint32_t by_arg)
{
    cg_func *f = m->f;
    uint32_t i = 0;
    while (i < m->move_count && (m->move[i].arg != arg || m->move[i].by != by || m->move[i].by_arg != by_arg))
        i++;
    if (i < m->move_count)
        return m->move[i].value;
    LLVMValueRef start = arg == NO_ARG ? opjit_cg_number(f, 64, 1, 0) : read_word(m, arg, f->type.i64);
    LLVMPositionBuilderBefore(f->b, LLVMGetFirstInstruction(m->loop));
    LLVMValueRef phi = LLVMBuildPhi(f->b, f->type.i64, "");
    LLVMPositionBuilderAtEnd(f->b, m->loop);
    LLVMAddIncoming(phi, &start, &m->before, 1);
    LLVMValueRef v = opjit_cg_opaque(f, phi);
    if (arg != NO_ARG)
        v = LLVMBuildIntToPtr(f->b, v, f->type.ptr, "");
    m->move[m->move_count++] = (move){ .by = by, .by_arg = by_arg, .arg = arg, .phi = phi, .value = v };
    return v;
}

static void put_moves(maker *m)
{
    cg_func *f = m->f;
    for (uint32_t i = 0; i < m->move_count; i++) {
        const move *v = &m->move[i];
        LLVMValueRef by = v->by_arg ? word(m, v->by_arg - 1, f->type.i64) : opjit_cg_number(f, 64, 1, (uint64_t)v->by);
        LLVMValueRef next = LLVMBuildAdd(f->b, v->phi, by, "");
        LLVMAddIncoming(v->phi, &next, &m->loop, 1);
    }
}

/* The address that is an access's argument, in the current iteration of the held loop. */
static LLVMValueRef start_of(maker *m, const cg_tile_access *a)
{
    const uint32_t arg = a->base + cg_tile_place(m->t, a->each, m->at);
    if (!m->loop || (a->by[0] == 0 && !a->by_arg[0]))
        return word(m, arg, m->f->type.ptr);
    return moved(m, arg, a->by_arg[0] ? 0 : a->by[0], a->by_arg[0]);
}

/* So many times a distance, in the form of the targets' addresses: a factor that is computed once, times 1, 2, 4 or 8.
 * Rows of any number then need few registers. */
static LLVMValueRef times(maker *m, uint32_t arg, int64_t factor)
{
    cg_func *f = m->f;
    uint32_t shift = 0, i = 0;
    for (; shift < MOST_SHIFT && factor % 2 == 0; shift++)
        factor /= 2;
    LLVMValueRef v = word(m, arg, f->type.i64);
    if (factor != 1) {
        while (i < m->factor_count && (m->factor[i].arg != arg || m->factor[i].by != factor))
            i++;
        if (i == m->factor_count && i < MOST_FACTORS)
            m->factor[m->factor_count++] =
                (scaled){ factor, arg, LLVMBuildMul(f->entry, v, opjit_cg_number(f, 64, 1, (uint64_t)factor), "") };
        v = i < MOST_FACTORS ? m->factor[i].value
                             : LLVMBuildMul(f->b, v, opjit_cg_number(f, 64, 1, (uint64_t)factor), "");
    }
    return shift > 0 ? LLVMBuildShl(f->b, v, opjit_cg_number(f, 64, 1, shift), "") : v;
}

/* How many of the distance that loop l moves by: of all loops that move by it, at the first of them. */
static int64_t distances_of(const maker *m, const cg_tile_access *a, uint32_t l)
{
    int64_t sum = 0;
    for (uint32_t k = 1; k < m->t->loops; k++) {
        if (k < l && a->by_arg[k] == a->by_arg[l])
            return 0;
        sum += a->by_arg[k] == a->by_arg[l] ? variable_of(m, k) : 0;
    }
    return sum;
}

/* The address for the loops' current values, without the distances that are constants. */
static LLVMValueRef row_of(maker *m, uint32_t access)
{
    const cg_tile_access *a = &m->t->access[access];
    cg_func *f = m->f;
    remembered *r = &m->of[m->t->row[access] + cg_tile_place(m->t, cg_tile_rows_of(m->t, a), m->at)];
    if (r->value && r->stamp == m->part_stamp)
        return r->value;
    LLVMValueRef p = start_of(m, a);
    for (uint32_t l = 1; l < m->t->loops; l++)
        if (a->by_arg[l] && distances_of(m, a, l) != 0)
            p = opjit_cg_offset(f, f->type.i8, p, times(m, a->by_arg[l] - 1, distances_of(m, a, l)));
    *r = (remembered){ .value = p, .stamp = m->part_stamp };
    return p;
}

static LLVMValueRef pointer_of(maker *m, uint32_t access)
{
    const cg_tile_access *a = &m->t->access[access];
    cg_func *f = m->f;
    LLVMValueRef p = row_of(m, access);
    uint64_t offset = 0;
    for (uint32_t l = 1; l < m->t->loops; l++)
        offset += a->by[l] ? (uint64_t)a->by[l] * (uint64_t)variable_of(m, l) : 0;
    return opjit_cg_offset(f, f->type.i8, p, opjit_cg_number(f, 64, 1, offset));
}

/* What a tile reads may be a constant that lies anywhere, where that makes no difference to the machine. */
static LLVMValueRef access_memory(maker *m, LLVMValueRef pointer, ir_type type, uint32_t lanes, LLVMValueRef value)
{
    cg_func *f = m->f;
    LLVMTypeRef as = type_of(f, type, lanes);
    if (value && (type == IR_F32 || type == IR_F64))
        value = opjit_cg_as_float(f, value);
    LLVMValueRef v = value ? LLVMBuildStore(f->b, value, pointer) : LLVMBuildLoad2(f->b, as, pointer, "");
    LLVMSetAlignment(v, !value && rt_target_loads_anywhere(f->target) ? 1 : opjit_ir_type_size(type));
    return v;
}

static LLVMValueRef register_memory(maker *m, uint32_t r)
{
    const cg_tile_register *reg = &m->t->reg[r];
    return opjit_cg_offset(m->f, m->f->type.i8, word(m, reg->base, m->f->type.ptr),
                           opjit_cg_number(m->f, 64, 1, reg->offset));
}

static remembered *place_of(maker *m, uint32_t node)
{
    const cg_tile_node *n = &m->t->node[node];
    return &m->of[n->first + cg_tile_place(m->t, n->moves, m->at)];
}

/* An address so many lanes from p, which is that of a lane of the load across. */
static LLVMValueRef lanes_from(maker *m, const cg_tile_access *a, LLVMValueRef p, uint32_t lanes)
{
    const int64_t by = a->by[a->across - 1] * (int64_t)lanes; /* 0: an argument has it */
    LLVMValueRef bytes = by != 0 || lanes == 0 ? opjit_cg_number(m->f, 64, 1, (uint64_t)by)
                                               : times(m, a->by_arg[a->across - 1] - 1, lanes);
    return opjit_cg_offset(m->f, m->f->type.i8, p, bytes);
}

/* A square of what the load reads, as many iterations of the loop along which it reads neighbours as there are lanes;
 * remembers all of them, and returns the current one. */
static LLVMValueRef load_across(maker *m, uint32_t node)
{
    enum { SOME = 8 /* lanes whose addresses have one base */ };
    const cg_tile_access *a = &m->t->access[m->t->node[node].at];
    const uint32_t u = a->along - 1, lanes = m->t->loop[a->across - 1].lanes, now = m->at[u];
    LLVMValueRef v[CG_MAX_LANES], base = NULL, ahead = NULL;
    m->at[u] = now / lanes * lanes;
    LLVMValueRef first = pointer_of(m, m->t->node[node].at);
    for (uint32_t i = 0; i < lanes; i++) {
        base = i % SOME == 0 ? lanes_from(m, a, first, i) : base;
        ahead = i % SOME == 0 ? lanes_from(m, a, base, lanes) : ahead;
        if (a->ahead)
            opjit_cg_prefetch(m->f, lanes_from(m, a, ahead, i % SOME), false, 2);
        v[i] = access_memory(m, lanes_from(m, a, base, i % SOME), (ir_type)a->type, lanes, NULL);
    }
    opjit_cg_transpose_square(m->f, v);
    for (uint32_t i = 0; i < lanes; i++, m->at[u]++)
        *place_of(m, node) = (remembered){ .value = v[i], .stamp = m->part_stamp };
    m->at[u] = now;
    return v[now % lanes];
}

/* --- expressions -------------------------------------------------------------------------------------------------- */

static LLVMValueRef value_of(maker *m, uint32_t node);

/* A scalar is put in all lanes once, for all that use it. */
static LLVMValueRef lanes_value(maker *m, uint32_t node, uint32_t lanes)
{
    LLVMValueRef v = value_of(m, node);
    remembered *r = place_of(m, node);
    if (!r->lanes || opjit_cg_lanes(r->lanes) != lanes)
        r->lanes = opjit_cg_splat(m->f, v, lanes);
    return r->lanes;
}

static LLVMValueRef select_value(maker *m, const cg_tile_node *n, uint32_t lanes)
{
    if (m->part == CG_TILE_END && m->t->choice == cg_tile_origin(m->t, n->a[0]) + 1)
        return lanes_value(m, m->chosen ? n->a[1] : n->a[2], lanes);
    LLVMValueRef c = value_of(m, n->a[0]), x = lanes_value(m, n->a[1], lanes), y = lanes_value(m, n->a[2], lanes);
    return opjit_cg_choose(m->f, c, x, y);
}

static LLVMValueRef op_value(maker *m, const cg_tile_node *n, uint32_t lanes)
{
    cg_func *f = m->f;
    LLVMValueRef a[3] = { NULL };
    if (n->op == IR_SELECT)
        return select_value(m, n, lanes);
    for (uint32_t i = 0; i < n->count; i++)
        a[i] = lanes_value(m, n->a[i], lanes);
    switch ((ir_op)n->op) {
    case IR_CAST: return opjit_cg_convert(f, (ir_type)n->from, (ir_type)n->type, a[0]);
    case IR_HALVES: return opjit_cg_halves(f, (ir_type)n->from, a[0]);
    case IR_IADD: return LLVMBuildAdd(f->b, a[0], a[1], "");
    case IR_ISUB: return LLVMBuildSub(f->b, a[0], a[1], "");
    case IR_IMUL: return LLVMBuildMul(f->b, a[0], a[1], "");
    case IR_EQ:
    case IR_NE:
    case IR_LT:
    case IR_LE: return opjit_cg_compare(f, (ir_op)n->op, (ir_type)n->from, a[0], a[1]);
    default: return opjit_cg_arith(f, (ir_op)n->op, (ir_type)n->type, a);
    }
}

static LLVMValueRef compute(maker *m, uint32_t node)
{
    const cg_tile_node *n = &m->t->node[node];
    cg_func *f = m->f;
    const uint32_t lanes = cg_tile_lanes_of(m->t, n->moves);
    switch ((cg_tile_what)n->what) {
    case CG_TILE_ARG: return given(m, node);
    case CG_TILE_CONST:
        return opjit_cg_number(f,
                               n->type == IR_BOOL    ? 1
                               : n->type == IR_INDEX ? 64
                                                     : 8 * opjit_ir_type_size((ir_type)n->type),
                               1, n->imm);
    case CG_TILE_VAR:
        return n->at == 0 ? LLVMBuildAdd(f->b, word(m, n->a[0], f->type.i64), moved(m, NO_ARG, 1, 0), "")
                          : opjit_cg_number(f, 64, 1, (uint64_t)variable_of(m, n->at));
    case CG_TILE_LOAD:
        if (m->t->access[n->at].held)
            return m->reg[cg_tile_register_of(m->t, &m->t->access[n->at], m->at)];
        if (m->t->access[n->at].across)
            return load_across(m, node);
        return access_memory(m, pointer_of(m, n->at), (ir_type)n->type, lanes, NULL);
    case CG_TILE_LET: return lanes_value(m, n->a[0], lanes);
    default: return op_value(m, n, lanes);
    }
}

static LLVMValueRef value_of(maker *m, uint32_t node)
{
    const cg_tile_node *n = &m->t->node[node];
    remembered *r = place_of(m, node);
    const uint32_t stamp = n->fresh ? m->stamp : m->part_stamp;
    if (!r->value || r->stamp != stamp)
        *r = (remembered){ .value = compute(m, node), .stamp = stamp };
    return r->value;
}

/* --- statements --------------------------------------------------------------------------------------------------- */

static void put_store(maker *m, const cg_tile_step *s)
{
    const cg_tile_access *a = &m->t->access[s->at];
    cg_func *f = m->f;
    const uint32_t r = a->held ? cg_tile_register_of(m->t, a, m->at) : 0;
    const uint32_t lanes = a->held ? m->t->reg[r].lanes : cg_tile_lanes_of(m->t, cg_tile_loops_of(m->t, a));
    LLVMValueRef v = lanes_value(m, s->value, lanes);
    if (!a->held)
        access_memory(m, pointer_of(m, s->at), (ir_type)a->type, lanes, v);
    else
        m->reg[r] = a->type == IR_F32 || a->type == IR_F64 ? opjit_cg_as_float(f, v) : v;
}

static void put_steps(maker *m, uint32_t first)
{
    for (uint32_t s = first; s != 0; s = m->t->step[s - 1].next) {
        const cg_tile_step *step = &m->t->step[s - 1];
        m->stamp++;
        if (step->what == CG_TILE_LOOP)
            for (m->at[step->at] = 0; m->at[step->at] < m->t->loop[step->at].count; m->at[step->at]++)
                put_steps(m, step->inner);
        else if (step->what == CG_TILE_STORE)
            put_store(m, step);
        else
            value_of(m, step->value);
    }
}

static void put_part(maker *m, cg_tile_part part)
{
    m->part = part;
    m->part_stamp = ++m->stamp;
    put_steps(m, m->t->part[part]);
}

/* --- the lines that are stored after the loop --------------------------------------------------------------------- */

/* Prefetches the lines of a store, once per line where its vectors lie along a row. */
static void fetch(maker *m, const cg_tile_step *s)
{
    const cg_tile_access *a = &m->t->access[s->at];
    cg_func *f = m->f;
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
    LLVMValueRef p = pointer_of(m, s->at);
    for (uint32_t at = 0; at < lanes * size; at += LINE)
        opjit_cg_prefetch(f, opjit_cg_offset(f, f->type.i8, p, opjit_cg_number(f, 64, 1, at)), true, 3);
}

static void fetch_steps(maker *m, uint32_t first)
{
    for (uint32_t s = first; s != 0; s = m->t->step[s - 1].next) {
        const cg_tile_step *step = &m->t->step[s - 1];
        if (step->what == CG_TILE_LOOP)
            for (m->at[step->at] = 0; m->at[step->at] < m->t->loop[step->at].count; m->at[step->at]++)
                fetch_steps(m, step->inner);
        else if (step->what == CG_TILE_STORE)
            fetch(m, step);
    }
}

/* --- the function ------------------------------------------------------------------------------------------------- */

static void put_loop(maker *m)
{
    cg_func *f = m->f;
    const uint32_t count = m->t->registers;
    LLVMValueRef n = word(m, 0, f->type.i64), zero = opjit_cg_number(f, 64, 1, 0), start[CG_TILE_REGISTERS];
    LLVMBasicBlockRef before = LLVMGetInsertBlock(f->b);
    LLVMBasicBlockRef loop = LLVMAppendBasicBlockInContext(f->llvm, f->fn, "");
    LLVMBasicBlockRef after = LLVMAppendBasicBlockInContext(f->llvm, f->fn, "");
    LLVMBuildCondBr(f->b, LLVMBuildICmp(f->b, LLVMIntSGT, n, zero, ""), loop, after);
    LLVMPositionBuilderAtEnd(f->b, loop);
    m->loop = loop;
    m->before = before;
    LLVMValueRef left = LLVMBuildPhi(f->b, f->type.i64, ""), phi[CG_TILE_REGISTERS];
    LLVMAddIncoming(left, &n, &before, 1);
    for (uint32_t r = 0; r < count; r++) {
        start[r] = m->reg[r];
        phi[r] = m->reg[r] = LLVMBuildPhi(f->b, LLVMTypeOf(start[r]), "");
        LLVMAddIncoming(phi[r], &start[r], &before, 1);
    }
    put_part(m, CG_TILE_BODY);
    put_moves(m);
    LLVMValueRef next = LLVMBuildSub(f->b, left, opjit_cg_number(f, 64, 1, 1), "");
    LLVMAddIncoming(left, &next, &loop, 1);
    LLVMBuildCondBr(f->b, LLVMBuildICmp(f->b, LLVMIntNE, next, zero, ""), loop, after);
    LLVMPositionBuilderAtEnd(f->b, after);
    m->loop = NULL;
    for (uint32_t r = 0; r < count; r++) {
        LLVMAddIncoming(phi[r], &m->reg[r], &loop, 1);
        LLVMValueRef end = LLVMBuildPhi(f->b, LLVMTypeOf(start[r]), "");
        LLVMAddIncoming(end, (LLVMValueRef[]){ start[r], m->reg[r] }, (LLVMBasicBlockRef[]){ before, loop }, 2);
        m->reg[r] = end;
    }
}

static void put_end(maker *m)
{
    cg_func *f = m->f;
    if (!m->t->choice) {
        put_part(m, CG_TILE_END);
        return;
    }
    LLVMBasicBlockRef other = opjit_cg_if_begin(f, given(m, m->t->choice - 1));
    LLVMBasicBlockRef end = LLVMAppendBasicBlockInContext(f->llvm, f->fn, "");
    m->chosen = true;
    put_part(m, CG_TILE_END);
    opjit_cg_if_leave(f, other, end);
    m->chosen = false;
    put_part(m, CG_TILE_END);
    opjit_cg_if_end(f, end);
}

void opjit_cg_tile_body(cg_func *f, const cg_tile *t)
{
    maker *m = ARENA_NEW(f->arena, maker);
    if (m)
        *m = (maker){ .f = f,
                      .t = t,
                      .args = LLVMGetParam(f->fn, 0),
                      .move = ARENA_ARRAY(f->arena, move, (size_t)t->remembered + 1),
                      .of = ARENA_ARRAY(f->arena, remembered, t->remembered) };
    if (!m || !m->move || !m->of) {
        f->failed = true;
        return;
    }
    for (uint32_t r = 0; r < t->registers; r++)
        if (!(t->starts >> r & 1))
            m->reg[r] = access_memory(m, register_memory(m, r), (ir_type)t->reg[r].type, t->reg[r].lanes, NULL);
    for (uint32_t r = 0; r < t->registers; r++) /* what the body sets itself */
        if (t->starts >> r & 1)
            m->reg[r] = LLVMConstNull(type_of(f, (ir_type)t->reg[r].type, t->reg[r].lanes));
    put_part(m, CG_TILE_BEGIN);
    fetch_steps(m, t->part[CG_TILE_END]);
    put_loop(m);
    put_end(m);
    for (uint32_t r = 0; r < t->registers && t->stays; r++)
        access_memory(m, register_memory(m, r), (ir_type)t->reg[r].type, t->reg[r].lanes, m->reg[r]);
    LLVMBuildRetVoid(f->b);
}
