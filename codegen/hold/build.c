/* SPDX-License-Identifier: Apache-2.0 */
/* build.c - the record of a tile from the IR.  A loop that uses anything a tile can't have is emitted like any other
 * loop, which is slower. */
#include "codegen/hold/hold.h"

enum { MOST_DEPTH = 64 /* of an expression */ };

/* --- expressions -------------------------------------------------------------------------------------------------- */

/* Whether the target has an instruction for it that needs no constant in memory: a tile is code alone. */
static bool is_plain(const cg_func *f, ir_ref node)
{
    const ir_node *n = ir_at(f->ir, node);
    const ir_type type = (ir_type)n->type, from = (ir_type)ir_at(f->ir, ir_operand(f->ir, node, 0))->type;
    switch ((ir_op)n->op) {
    case IR_FMA: return type != IR_F16 && opjit_cg_way(f->cpu, f->target, IR_FMA, type) == CG_NATIVE;
    case IR_DOT4_UU:
    case IR_DOT4_US:
    case IR_DOT4_SS:
    case IR_DOT2:
    case IR_HALVES: return true;
    case IR_DIV: return type == IR_F32 || type == IR_F64;
    case IR_ADD:
    case IR_SUB:
    case IR_MUL:
    case IR_MIN:
    case IR_MAX: return type != IR_F16 && opjit_ir_type_size(type) >= 4;
    case IR_CAST:
        if (type == IR_F32 && (from == IR_U8 || from == IR_I8))
            return true;
        if (!ir_is_float(type) || !ir_is_float(from))
            return !ir_is_float(type) && !ir_is_float(from) && type != IR_BOOL && from != IR_BOOL;
        return type != IR_F64 && from != IR_F64 && opjit_cg_way(f->cpu, f->target, IR_CAST, IR_F16) == CG_NATIVE;
    case IR_IADD:
    case IR_ISUB:
    case IR_IMUL:
    case IR_SELECT: return true;
    case IR_EQ:
    case IR_NE:
    case IR_LT:
    case IR_LE: return from == IR_INDEX || (ir_is_element(from) && opjit_ir_type_size(from) >= 4);
    default: return false;
    }
}

static uint32_t add_node(cg_tile_builder *b, const cg_tile_node *node, ir_ref of)
{
    cg_tile *t = &b->plan->tile;
    if (t->nodes == CG_TILE_NODES)
        return UINT32_MAX;
    cg_tile_node *n = &t->node[t->nodes];
    *n = *node;
    n->first = t->remembered;
    t->remembered += opjit_cg_tile_times(t, n->moves);
    b->of[t->nodes] = of;
    b->part_of[t->nodes] = b->part;
    b->number[of] = t->nodes + 1;
    return t->remembered <= CG_TILE_REMEMBERED ? t->nodes++ : UINT32_MAX;
}

/* Whether the caller computes it, once: it depends on none of the tile's loops. */
static bool is_given(const cg_tile_builder *b, ir_ref node)
{
    const cg_info *info = &b->f->info[node];
    return info->inside >> b->depth == 0 && !info->fresh && !info->stays;
}

static uint32_t take_given(cg_tile_builder *b, ir_ref node)
{
    const ir_node *n = ir_at(b->f->ir, node);
    cg_tile_node out = { .what = CG_TILE_CONST, .type = n->type, .imm = n->imm };
    if (n->op != IR_CONST || (n->imm != 0 && n->type != IR_INDEX && n->type != IR_BOOL)) {
        out = (cg_tile_node){ .what = CG_TILE_ARG, .type = n->type };
        out.at = opjit_cg_tile_arg(b, &(cg_tile_arg){ .kind = CG_PASS_VALUE, .node = node });
        if (out.at == UINT32_MAX)
            return UINT32_MAX;
    }
    return add_node(b, &out, node);
}

static uint32_t take_var(cg_tile_builder *b, ir_ref node)
{
    const cg_tile *t = &b->plan->tile;
    cg_tile_node out = { .what = CG_TILE_VAR, .type = IR_INDEX };
    for (uint32_t i = 0; i < b->nest_count; i++) {
        const uint32_t l = b->nest[i];
        if (b->plan->var[l] != node || t->loop[l].lanes > 1) /* a vector of numbers would be data */
            continue;
        out.at = l;
        out.moves = 1u << l;
        if (l == 0) {
            out.a[0] = opjit_cg_tile_arg(b, &(cg_tile_arg){ .kind = CG_PASS_LO });
            if (out.a[0] == UINT32_MAX)
                return UINT32_MAX;
        }
        return add_node(b, &out, node);
    }
    return UINT32_MAX;
}

/* Whether the held loop stores it in memory: its iterations store different elements. */
static bool is_stored(const cg_tile_builder *b, uint32_t tensor)
{
    for (uint32_t i = 0; i < b->stored_count; i++)
        if (b->stored[i] == opjit_ir_root(b->f->ir, tensor))
            return true;
    return false;
}

/* Whether the tensor is a view of a held one. */
static bool shows_held(const cg_tile_builder *b, uint32_t tensor)
{
    return !opjit_cg_tile_held(b, tensor) && opjit_cg_tile_held(b, opjit_ir_root(b->f->ir, tensor));
}

static uint32_t take_load(cg_tile_builder *b, ir_ref node)
{
    const ir_node *n = ir_at(b->f->ir, node);
    const cg_tile *t = &b->plan->tile;
    if ((b->f->info[node].outside && b->arms > 0) || shows_held(b, n->ref) ||
        is_stored(b, n->ref)) /* a tile evaluates both arms of a select */
        return UINT32_MAX;
    const uint32_t at = opjit_cg_tile_access(b, node);
    if (at == UINT32_MAX || (b->part == CG_TILE_BEGIN && t->access[at].held)) /* it has no value yet */
        return UINT32_MAX;
    cg_tile_node out = { .what = CG_TILE_LOAD, .type = n->type, .at = at };
    out.moves = cg_tile_loops_of(t, &t->access[at]);
    /* of memory the body stores none that it reads, unless an output is in place of an input */
    const bool scratch = b->f->ir->tensors[opjit_ir_root(b->f->ir, n->ref)].role == IR_SCRATCH;
    out.fresh = t->access[at].held || ((b->part != CG_TILE_BODY || !scratch) && b->f->info[node].fresh);
    return add_node(b, &out, node);
}

static uint32_t take(cg_tile_builder *b, ir_ref node, uint32_t depth);

static uint32_t take_op(cg_tile_builder *b, ir_ref node, uint32_t depth)
{
    const ir_node *n = ir_at(b->f->ir, node);
    const cg_tile *t = &b->plan->tile;
    cg_tile_node out = { .what = CG_TILE_OP, .op = n->op, .type = n->type, .count = n->count };
    if (n->count == 0 || n->count > 3 || !is_plain(b->f, node))
        return UINT32_MAX;
    out.from = ir_at(b->f->ir, ir_operand(b->f->ir, node, 0))->type;
    for (uint32_t i = 0; i < n->count; i++) {
        const bool arm = n->op == IR_SELECT && i > 0;
        b->arms += arm;
        out.a[i] = take(b, ir_operand(b->f->ir, node, i), depth - 1);
        b->arms -= arm;
        if (out.a[i] == UINT32_MAX)
            return UINT32_MAX;
        out.moves |= t->node[out.a[i]].moves;
        out.fresh |= t->node[out.a[i]].fresh;
    }
    return add_node(b, &out, node);
}

/* The number of the node in the record, if it was taken in this part, or is an argument or a constant, which all parts
 * share; UINT32_MAX: it has none. */
static uint32_t known(const cg_tile_builder *b, ir_ref node)
{
    const cg_tile *t = &b->plan->tile;
    const uint32_t number = b->number[node];
    if (number == 0 || number > t->nodes || b->of[number - 1] != node)
        return UINT32_MAX;
    const uint32_t what = t->node[number - 1].what;
    return what == CG_TILE_ARG || what == CG_TILE_CONST || b->part_of[number - 1] == b->part ? number - 1 : UINT32_MAX;
}

/* The number of the expression in the record, which it is added to; UINT32_MAX: a tile can't have it. */
static uint32_t take(cg_tile_builder *b, ir_ref node, uint32_t depth)
{
    const ir_node *n = ir_at(b->f->ir, node);
    const uint32_t number = known(b, node);
    if (number != UINT32_MAX || depth == 0)
        return number;
    if (is_given(b, node))
        return take_given(b, node);
    switch ((ir_op)n->op) {
    case IR_VAR: return take_var(b, node);
    case IR_LOAD: return take_load(b, node);
    case IR_GET:
        if (ir_at(b->f->ir, n->ref)->op != IR_LET)
            return UINT32_MAX;
        return n->type == IR_INDEX ? take(b, ir_operand(b->f->ir, n->ref, 0), depth - 1) : known(b, n->ref);
    default: return take_op(b, node, depth);
    }
}

/* --- statements --------------------------------------------------------------------------------------------------- */

static uint32_t add_step(cg_tile_builder *b, const cg_tile_step *step)
{
    cg_tile *t = &b->plan->tile;
    if (t->steps == CG_TILE_STEPS)
        return UINT32_MAX;
    t->step[t->steps] = *step;
    return t->steps++;
}

static uint32_t take_store(cg_tile_builder *b, ir_ref s)
{
    const ir_node *n = ir_at(b->f->ir, s);
    const cg_tile *t = &b->plan->tile;
    const bool held = opjit_cg_tile_held(b, n->ref) != NULL;
    if ((!held && b->part == CG_TILE_BEGIN) || (held && b->part == CG_TILE_END) || shows_held(b, n->ref))
        return UINT32_MAX;
    const uint32_t value = take(b, ir_operand(b->f->ir, s, 0), MOST_DEPTH), at = opjit_cg_tile_access(b, s);
    if (value == UINT32_MAX || at == UINT32_MAX)
        return UINT32_MAX;
    const uint32_t moves = cg_tile_loops_of(t, &t->access[at]);
    for (uint32_t i = 0; i < b->nest_count; i++) /* what many iterations store at one place is no vector */
        if (t->loop[b->nest[i]].lanes > 1 && !(moves >> b->nest[i] & 1))
            return UINT32_MAX;
    return add_step(b, &(cg_tile_step){ .what = CG_TILE_STORE, .at = at, .value = value });
}

/* A value that is used more than once, in the iteration that computes it. */
static bool take_let(cg_tile_builder *b, ir_ref s, uint32_t *out)
{
    const ir_ref value = ir_operand(b->f->ir, s, 0);
    *out = UINT32_MAX;
    if (ir_at(b->f->ir, s)->type == IR_INDEX) /* looked through by addresses, computed by the caller, or refused */
        return true;
    const uint32_t node = take(b, value, MOST_DEPTH);
    if (node == UINT32_MAX)
        return false;
    const cg_tile_node let = { .what = CG_TILE_LET,
                               .type = ir_at(b->f->ir, s)->type,
                               .moves = opjit_cg_tile_nest(b),
                               .a = { node } };
    const uint32_t kept = add_node(b, &let, s);
    if (kept != UINT32_MAX)
        *out = add_step(b, &(cg_tile_step){ .what = CG_TILE_KEEP, .value = kept });
    return *out != UINT32_MAX;
}

static bool take_block(cg_tile_builder *b, ir_ref first, uint32_t *out);

/* A loop that can be fully unrolled; *out: the number of its step. */
static bool take_loop(cg_tile_builder *b, ir_ref loop, uint32_t *out)
{
    cg_tile *t = &b->plan->tile;
    const ir_func *ir = b->f->ir;
    const ir_node *n = ir_at(ir, loop);
    const ir_ref lo = ir_operand(ir, loop, 0), hi = ir_operand(ir, loop, 1);
    const uint32_t lanes = n->vec > 1 ? n->vec : 1, allowed = IR_FOR_TAIL_MASK | IR_FOR_TAIL_OVERLAP;
    if (n->hold || n->imm != 1 || (n->flags & ~allowed) != 0 || t->loops == CG_TILE_LOOPS ||
        ir_at(ir, lo)->op != IR_CONST || ir_at(ir, hi)->op != IR_CONST || lanes > CG_MAX_LANES)
        return false;
    const int64_t from = ir_index_value(ir, lo), count = ir_index_value(ir, hi) - from;
    if (count <= 0 || count > CG_TILE_STORES * (int64_t)lanes || count % lanes != 0)
        return false;
    const uint32_t l = t->loops++;
    t->loop[l] = (cg_tile_loop){ .lo = from, .count = (uint32_t)count / lanes, .lanes = lanes };
    b->plan->var[l] = n->ref;
    b->nest[b->nest_count++] = l;
    if (opjit_cg_tile_times(t, opjit_cg_tile_nest(b)) > CG_TILE_STORES)
        return false;
    const uint32_t step = add_step(b, &(cg_tile_step){ .what = CG_TILE_LOOP, .at = l });
    uint32_t inner = 0;
    const bool taken = step != UINT32_MAX && take_block(b, n->body, &inner);
    b->nest_count--;
    if (taken)
        t->step[step].inner = inner;
    *out = step;
    return taken;
}

/* *out: the first step, + 1. */
static bool take_block(cg_tile_builder *b, ir_ref first, uint32_t *out)
{
    uint32_t last = UINT32_MAX;
    *out = 0;
    for (ir_ref s = first; s != 0; s = ir_at(b->f->ir, s)->next) {
        uint32_t step = UINT32_MAX;
        bool taken = false;
        switch ((ir_op)ir_at(b->f->ir, s)->op) {
        case IR_FOR: taken = take_loop(b, s, &step); break;
        case IR_STORE: taken = (step = take_store(b, s)) != UINT32_MAX; break;
        case IR_LET: taken = take_let(b, s, &step); break;
        default: break;
        }
        if (!taken)
            return false;
        if (step == UINT32_MAX)
            continue;
        if (last == UINT32_MAX)
            *out = step + 1;
        else
            b->plan->tile.step[last].next = step + 1;
        last = step;
    }
    return true;
}

/* --- registers ---------------------------------------------------------------------------------------------------- */

/* Notes the tensor of a store whose place moves with the held loop; false: it doesn't. */
static bool add_stored(cg_tile_builder *b, ir_ref store)
{
    const ir_node *n = ir_at(b->f->ir, store);
    bool moves = false;
    for (uint32_t i = 1; i < n->count; i++)
        moves = moves || (b->f->info[ir_operand(b->f->ir, store, i)].inside >> b->depth & 1);
    if (!moves || b->stored_count == CG_TILE_TENSORS)
        return false;
    if (!is_stored(b, n->ref))
        b->stored[b->stored_count++] = opjit_ir_root(b->f->ir, n->ref);
    return true;
}

/* The first store to a tensor says along which dimension its vectors lie. */
static bool add_held(cg_tile_builder *b, ir_ref store, ir_ref vector, uint32_t lanes)
{
    const ir_func *ir = b->f->ir;
    const uint32_t tensor = ir_at(ir, store)->ref;
    const ir_tensor *shape = &ir->tensors[tensor];
    if (opjit_cg_tile_held(b, tensor))
        return true;
    if (shape->role != IR_SCRATCH || b->plan->held_count == CG_TILE_TENSORS)
        return false;
    cg_tile_held h = { .tensor = tensor, .lanes = 1, .first = b->plan->tile.registers };
    for (uint32_t d = 0; d < shape->rank && vector; d++)
        if (ir_operand(ir, store, 1 + d) == vector) {
            h.dim = d;
            h.lanes = lanes;
        }
    uint64_t count = 1;
    for (uint32_t d = 0; d < shape->rank; d++) {
        const uint32_t of = h.lanes > 1 && d == h.dim ? h.lanes : 1;
        if (shape->sizes[d] % of != 0 || shape->sizes[d] > CG_TILE_STORES)
            return false;
        count *= shape->sizes[d] / of;
        if (count > CG_TILE_REGISTERS - h.first)
            return false;
    }
    if (shape->bytes > INT32_MAX || (h.lanes > 1 && shape->strides[h.dim] != 1))
        return false;
    h.count = (uint32_t)count;
    b->plan->held[b->plan->held_count++] = h;
    b->plan->tile.registers += h.count;
    for (uint32_t r = 0; r < h.count; r++)
        b->plan->tile.reg[h.first + r] = (cg_tile_register){ .type = shape->type, .lanes = h.lanes };
    return true;
}

static bool find_held(cg_tile_builder *b, ir_ref first, ir_ref vector, uint32_t lanes)
{
    const ir_func *ir = b->f->ir;
    for (ir_ref s = first; s != 0; s = ir_at(ir, s)->next) {
        const ir_node *n = ir_at(ir, s);
        const bool of_vectors = n->op == IR_FOR && n->vec > 1;
        if (n->op == IR_FOR && !find_held(b, n->body, of_vectors ? n->ref : vector, of_vectors ? n->vec : lanes))
            return false;
        if (n->op == IR_STORE && !add_stored(b, s) && !add_held(b, s, vector, lanes))
            return false;
    }
    return true;
}

/* The memory of a tensor's registers. */
static void place(cg_tile_builder *b, const cg_tile_held *h)
{
    const ir_tensor *shape = &b->f->ir->tensors[h->tensor];
    const uint32_t base = opjit_cg_tile_arg(b, &(cg_tile_arg){ .kind = CG_PASS_BASE, .tensor = h->tensor });
    for (uint32_t r = 0; r < h->count; r++) {
        uint64_t offset = 0;
        uint32_t rest = r;
        for (uint32_t d = shape->rank; d-- > 0;) {
            const uint32_t of = h->lanes > 1 && d == h->dim ? h->lanes : 1, places = (uint32_t)shape->sizes[d] / of;
            offset += (uint64_t)(rest % places) * of * shape->strides[d];
            rest /= places;
        }
        b->plan->tile.reg[h->first + r].base = base;
        b->plan->tile.reg[h->first + r].offset = (uint32_t)(offset * opjit_ir_type_size(shape->type));
    }
}

void opjit_cg_tile_in_memory(cg_tile_builder *b)
{
    for (uint32_t i = 0; i < b->plan->held_count; i++)
        place(b, &b->plan->held[i]);
}

/* --- a tile ------------------------------------------------------------------------------------------------------- */

bool opjit_cg_tile_begin(cg_tile_builder *b, ir_ref loop, uint32_t depth)
{
    const ir_node *n = ir_at(b->f->ir, loop);
    cg_tile *t = &b->plan->tile;
    b->depth = depth;
    b->part = CG_TILE_BODY;
    b->stored_count = 0;
    b->plan->loop = loop;
    b->plan->var[0] = n->ref;
    t->loop[0].lanes = 1;
    t->loops = 1;
    b->nest[0] = 0;
    b->nest_count = 1;
    opjit_cg_tile_arg(b, &(cg_tile_arg){ .kind = CG_PASS_COUNT }); /* argument 0, as body.c expects */
    const bool taken = depth + CG_TILE_LOOPS <= CG_MAX_LOOPS && n->imm == 1 && n->vec <= 1 && n->flags == 0 &&
                       find_held(b, n->body, 0, 1) && take_block(b, n->body, &t->part[CG_TILE_BODY]);
    b->nest_count = 0;
    return taken && t->registers > 0 && t->part[CG_TILE_BODY] != 0;
}

/* Whether the nodes from `first` on read a register. */
static bool reads_register(const cg_tile *t, uint32_t first)
{
    for (uint32_t i = first; i < t->nodes; i++)
        if (t->node[i].what == CG_TILE_LOAD && t->access[t->node[i].at].held)
            return true;
    return false;
}

bool opjit_cg_tile_take(cg_tile_builder *b, ir_ref loop, cg_tile_part part)
{
    cg_tile *t = &b->plan->tile;
    uint32_t step;
    *b->before = *b->plan;
    b->part = part;
    b->nest_count = 0;
    if (!take_loop(b, loop, &step) || (part == CG_TILE_END && !reads_register(t, b->before->tile.nodes))) {
        *b->plan = *b->before;
        return false;
    }
    uint32_t *end = &t->part[part];
    if (part == CG_TILE_BEGIN) /* found from the held loop backwards */
        t->step[step].next = *end;
    while (part == CG_TILE_END && *end != 0)
        end = &t->step[*end - 1].next;
    *end = step + 1;
    return true;
}

void opjit_cg_tile_bytes(const cg_tile *t, rt_bytes *out)
{
    opjit_rt_bytes_append(out, t, offsetof(cg_tile, loop));
    opjit_rt_bytes_append(out, t->loop, t->loops * sizeof *t->loop);
    opjit_rt_bytes_append(out, t->reg, t->registers * sizeof *t->reg);
    opjit_rt_bytes_append(out, t->access, t->accesses * sizeof *t->access);
    opjit_rt_bytes_append(out, t->node, t->nodes * sizeof *t->node);
    opjit_rt_bytes_append(out, t->step, t->steps * sizeof *t->step);
}
