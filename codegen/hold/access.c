/* SPDX-License-Identifier: Apache-2.0 */
/* access.c - loads and stores of a tile: which register, or from which address on and how far apart. */
#include "codegen/emit/access.h"
#include "codegen/hold/hold.h"

enum { MOST_DEPTH = 64 /* of an expression */ };

uint32_t opjit_cg_tile_nest(const cg_tile_builder *b)
{
    uint32_t loops = 0;
    for (uint32_t i = 0; i < b->nest_count; i++)
        loops |= 1u << b->nest[i];
    return loops;
}

uint32_t opjit_cg_tile_times(const cg_tile *t, uint32_t loops)
{
    uint32_t times = 1;
    for (uint32_t l = 1; l < t->loops && times <= CG_TILE_STORES; l++)
        if (loops >> l & 1)
            times *= t->loop[l].count;
    return times;
}

const cg_tile_held *opjit_cg_tile_held(const cg_tile_builder *b, uint32_t tensor)
{
    for (uint32_t i = 0; i < b->plan->held_count; i++)
        if (b->plan->held[i].tensor == tensor)
            return &b->plan->held[i];
    return NULL;
}

/* --- arguments ---------------------------------------------------------------------------------------------------- */

/* Whether two accesses are of the same element. */
static bool same_place(const cg_func *f, ir_ref x, ir_ref y)
{
    const cg_access a = opjit_cg_access_of(f, x), b = opjit_cg_access_of(f, y);
    bool same = a.tensor == b.tensor;
    for (uint32_t d = 0; d < a.rank && same; d++)
        same = cg_coordinate(f, &a, d) == cg_coordinate(f, &b, d);
    return same;
}

static bool same_arg(const cg_func *f, const cg_tile_arg *x, const cg_tile_arg *y)
{
    if (x->kind != y->kind || x->tensor != y->tensor || x->number != y->number ||
        memcmp(x->at, y->at, sizeof x->at) != 0)
        return false;
    const bool places = x->kind == CG_PASS_ADDRESS || x->kind == CG_PASS_DISTANCE;
    return x->node == y->node || (places && same_place(f, x->node, y->node));
}

uint32_t opjit_cg_tile_arg(cg_tile_builder *b, const cg_tile_arg *arg)
{
    cg_tile *t = &b->plan->tile;
    for (uint32_t i = 0; i < t->args; i++)
        if (same_arg(b->f, &b->plan->arg[i], arg))
            return i;
    /* The last places are kept for the addresses of the registers' tensors. */
    if (t->args == CG_TILE_ARGS - (arg->kind == CG_PASS_BASE ? 0 : CG_TILE_TENSORS))
        return UINT32_MAX;
    b->plan->arg[t->args] = *arg;
    return t->args++;
}

/* An address for each iteration of the loops in `each`, side by side; returns the first one. */
static uint32_t addresses(cg_tile_builder *b, ir_ref node, uint32_t each)
{
    cg_tile *t = &b->plan->tile;
    cg_tile_arg arg = { .kind = CG_PASS_ADDRESS, .node = node };
    const uint32_t times = opjit_cg_tile_times(t, each);
    for (uint32_t l = 1; l < t->loops; l++)
        arg.at[l] = each >> l & 1 ? t->loop[l].lo : 0;
    const uint32_t before = t->args, first = opjit_cg_tile_arg(b, &arg);
    if (first < before || first == UINT32_MAX || times == 1)
        return first;
    if (times > CG_TILE_ARGS - CG_TILE_TENSORS - first)
        return UINT32_MAX;
    for (uint32_t i = 1; i < times; i++) {
        uint32_t rest = i;
        for (uint32_t l = t->loops; l-- > 1;)
            if (each >> l & 1) {
                arg.at[l] = t->loop[l].lo + (int64_t)(rest % t->loop[l].count);
                rest /= t->loop[l].count;
            }
        b->plan->arg[t->args++] = arg;
    }
    return first;
}

/* --- registers ---------------------------------------------------------------------------------------------------- */

/* The enclosing loop of the tile whose variable this is; UINT32_MAX: none. */
static uint32_t loop_of(const cg_tile_builder *b, ir_ref var)
{
    for (uint32_t i = 0; i < b->nest_count; i++)
        if (b->plan->var[b->nest[i]] == var)
            return b->nest[i];
    return UINT32_MAX;
}

/* Coordinate d, from each value of which to the next there are `apart` registers. */
static bool put_coordinate(const cg_tile_builder *b, const cg_tile_held *h, ir_ref c, uint32_t d, uint32_t apart,
                           cg_tile_access *out)
{
    const cg_tile *t = &b->plan->tile;
    const ir_func *ir = b->f->ir;
    const uint32_t lanes = h->lanes > 1 && h->dim == d ? h->lanes : 1;
    const int64_t size = (int64_t)ir->tensors[h->tensor].sizes[d];
    if (ir_at(ir, c)->op == IR_CONST) {
        const int64_t at = ir_index_value(ir, c);
        out->base += (uint32_t)at * apart;
        return at >= 0 && at < size && lanes == 1;
    }
    const uint32_t l = loop_of(b, c);
    if (l == UINT32_MAX || l == 0 || t->loop[l].lanes != lanes || t->loop[l].lo < 0 || t->loop[l].lo % lanes != 0 ||
        t->loop[l].lo + (int64_t)t->loop[l].count * lanes > size)
        return false;
    out->base += (uint32_t)(t->loop[l].lo / lanes) * apart;
    out->by[l] += apart;
    return true;
}

/* An access to a held tensor; false: which register it is of is not known. */
static bool of_registers(const cg_tile_builder *b, const cg_tile_held *h, const cg_access *a, cg_tile_access *out)
{
    const ir_tensor *tensor = &b->f->ir->tensors[h->tensor];
    uint32_t apart = 1;
    out->held = 1;
    out->base = h->first;
    for (uint32_t d = tensor->rank; d-- > 0;) {
        if (!put_coordinate(b, h, cg_coordinate(b->f, a, d), d, apart, out))
            return false;
        apart *= (uint32_t)(tensor->sizes[d] / (h->lanes > 1 && h->dim == d ? h->lanes : 1));
    }
    return true;
}

/* --- memory ------------------------------------------------------------------------------------------------------- */

/* Bytes from one value of a loop's variable to the next: an argument where a shape decides them, so that kernels of
 * other shapes have equal tiles; a constant between neighbours, and in memory of the kernel's own, where the schedule
 * decides them (the rows of a packed panel). */
static bool put_distance(cg_tile_builder *b, const cg_access *a, uint32_t l, int64_t bytes, cg_tile_access *out)
{
    enum { NEIGHBOUR = 8, PANEL = 256, BLOCK = 256 /* elements, from one block of k to the next */ };
    const ir_tensor *root = &b->f->ir->tensors[opjit_ir_root(b->f->ir, a->tensor)];
    const int64_t most = ir_is_memory((ir_role)root->role) ? PANEL : NEIGHBOUR;
    if ((bytes >= -most && bytes <= most) || bytes == BLOCK * a->bits / 8) {
        out->by[l] = bytes;
        return true;
    }
    const uint32_t arg = opjit_cg_tile_arg(b, &(cg_tile_arg){ .kind = CG_PASS_NUMBER, .number = bytes });
    out->by_arg[l] = arg + 1;
    return arg != UINT32_MAX;
}

/* What an expression moves by with a variable: factor times a size; size 0: there is none. */
typedef struct slope {
    int64_t factor;
    ir_ref size;
    bool mixed; /* or a sum, a product of sizes, or more than factor holds */
} slope;

/* false: the distance depends on one of the tile's loops.  Otherwise it is a constant, or known when the kernel is
 * called. */
static bool find_slope(const cg_tile_builder *b, ir_ref node, ir_ref var, uint32_t depth, slope *out)
{
    const ir_func *ir = b->f->ir;
    const ir_node *n = ir_at(ir, node);
    slope other;
    *out = (slope){ node == var, 0, false };
    if (node == var || !(b->f->info[node].vary & b->f->info[var].vary))
        return true;
    if (depth == 0)
        return false;
    const ir_ref first = n->op == IR_GET ? ir_operand(ir, n->ref, 0) : n->count > 0 ? ir_operand(ir, node, 0) : 0;
    switch ((ir_op)n->op) {
    case IR_IADD:
    case IR_ISUB:
        if (!find_slope(b, first, var, depth - 1, out) ||
            !find_slope(b, ir_operand(ir, node, 1), var, depth - 1, &other))
            return false;
        out->mixed = out->mixed || other.mixed || (out->factor != 0 && other.factor != 0);
        if (other.factor != 0 && !out->mixed)
            *out = (slope){ n->op == IR_IADD ? other.factor : -other.factor, other.size, false };
        return true;
    case IR_IMUL:
        if (!find_slope(b, first, var, depth - 1, out))
            return false;
        out->mixed =
            out->mixed || !checked_muli(out->factor, ir_index_value(ir, ir_operand(ir, node, 1)), &out->factor);
        return true;
    case IR_ISCALE:
        if (b->f->info[ir_operand(ir, node, 1)].inside >> b->depth != 0 || !find_slope(b, first, var, depth - 1, out))
            return false;
        out->mixed = out->mixed || (out->factor != 0 && out->size != 0);
        out->size = ir_operand(ir, node, 1);
        return true;
    case IR_GET: return ir_at(ir, n->ref)->op == IR_LET && find_slope(b, first, var, depth - 1, out);
    default: return false;
    }
}

/* Whether the access moves alike with both variables: lines of taps and lines of a tile are one distance, so that what
 * is read by both is one load. */
static bool moves_alike(const cg_tile_builder *b, const cg_access *a, ir_ref x, ir_ref y)
{
    for (uint32_t d = 0; d < a->rank; d++) {
        slope s, t;
        if (cg_stride(b->f, a, d) == 0)
            continue;
        const ir_ref at = cg_coordinate(b->f, a, d);
        if (!find_slope(b, at, x, MOST_DEPTH, &s) || !find_slope(b, at, y, MOST_DEPTH, &t) || s.mixed || t.mixed ||
            s.factor != t.factor || (s.factor != 0 && s.size != t.size))
            return false;
    }
    return true;
}

/* Bytes from one value of loop l's variable to the next that follow from sizes of the call, as an argument.  false:
 * they are not the same for all of its values. */
static bool put_size(cg_tile_builder *b, const cg_access *a, uint32_t l, cg_tile_access *out)
{
    slope s;
    bool even = b->plan->tile.loop[l].lanes == 1;
    for (uint32_t d = 0; d < a->rank && even; d++)
        even = cg_stride(b->f, a, d) == 0 || find_slope(b, cg_coordinate(b->f, a, d), b->plan->var[l], MOST_DEPTH, &s);
    if (!even)
        return false;
    for (uint32_t i = 0; i < b->nest_count; i++) {
        const uint32_t k = b->nest[i], of = k < l ? out->by_arg[k] : 0;
        if (of != 0 && b->plan->arg[of - 1].kind == CG_PASS_DISTANCE &&
            moves_alike(b, a, b->plan->var[k], b->plan->var[l])) {
            out->by_arg[l] = of;
            return true;
        }
    }
    const cg_tile_arg arg = { .kind = CG_PASS_DISTANCE, .node = a->node, .number = l };
    out->by_arg[l] = opjit_cg_tile_arg(b, &arg) + 1;
    return out->by_arg[l] != 0;
}

/* Of a load whose lanes, loop l, lie apart: notes the loop along which it reads neighbours, whose iterations are whole
 * squares with the lanes.  What it reads early must be what it would read later. */
static bool put_across(const cg_tile_builder *b, const cg_access *a, uint32_t l, cg_tile_access *out)
{
    const cg_tile *t = &b->plan->tile;
    const uint32_t lanes = t->loop[l].lanes;
    int64_t grow;
    if (ir_at(b->f->ir, a->node)->op != IR_LOAD || b->f->info[a->node].fresh || out->across != 0 || a->bits < 16 ||
        lanes * a->bits < 128 || (lanes & (lanes - 1)) != 0)
        return false;
    for (uint32_t i = 0; i < b->nest_count; i++) {
        const uint32_t u = b->nest[i];
        if (u != 0 && t->loop[u].lanes == 1 && t->loop[u].count % lanes == 0 &&
            opjit_cg_growth(b->f, a, b->plan->var[u], &grow) && grow == 1) {
            out->across = (uint16_t)(l + 1);
            out->along = (uint16_t)(u + 1);
            out->ahead = t->registers == 1 && /* otherwise it computes longer than it waits */
                         b->f->ir->tensors[opjit_ir_root(b->f->ir, a->tensor)].bytes > b->f->target->l2;
            return true;
        }
    }
    return false;
}

/* An access to memory; false: a tile can't have it. */
static bool of_memory(cg_tile_builder *b, const cg_access *a, cg_tile_access *out)
{
    const cg_tile *t = &b->plan->tile;
    for (uint32_t d = 0; d < a->rank; d++) {
        const cg_info *info = &b->f->info[cg_coordinate(b->f, a, d)];
        if (cg_stride(b->f, a, d) != 0 && (info->fresh || info->stays))
            return false;
    }
    for (uint32_t i = 0; i < b->nest_count; i++) {
        const uint32_t l = b->nest[i];
        int64_t grow, bytes;
        if (!opjit_cg_growth(b->f, a, b->plan->var[l], &grow)) {
            if (put_size(b, a, l, out))
                continue;
            if (l == 0 || t->loop[l].lanes > 1)
                return false;
            out->each |= 1u << l;
            continue;
        }
        if ((t->loop[l].lanes > 1 && grow != 0 && grow != 1 && !put_across(b, a, l, out)) ||
            !checked_muli(grow, a->bits / 8, &bytes) || !put_distance(b, a, l, bytes, out))
            return false;
    }
    out->base = addresses(b, a->node, out->each);
    return out->base != UINT32_MAX;
}

uint32_t opjit_cg_tile_access(cg_tile_builder *b, ir_ref node)
{
    cg_tile *t = &b->plan->tile;
    const cg_access a = opjit_cg_access_of(b->f, node);
    const cg_tile_held *h = opjit_cg_tile_held(b, a.tensor);
    if (t->accesses == CG_TILE_ACCESSES)
        return UINT32_MAX;
    cg_tile_access *out = &t->access[t->accesses];
    *out = (cg_tile_access){ .type = b->f->ir->tensors[a.tensor].type };
    if (h ? !of_registers(b, h, &a, out) : !of_memory(b, &a, out))
        return UINT32_MAX;
    t->row[t->accesses] = t->remembered;
    t->remembered += h ? 0 : opjit_cg_tile_times(t, cg_tile_rows_of(t, out));
    return t->remembered <= CG_TILE_REMEMBERED ? t->accesses++ : UINT32_MAX;
}
