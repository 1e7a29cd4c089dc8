/* SPDX-License-Identifier: Apache-2.0 */
/* alias.c - whether an output may share an input's memory: proven on the loops that will run.
 *
 * Each load of the input must come before the store that replaces what it reads.  Stages run one after the other.
 * Within a stage a load is safe if its own block stores the output at the same address, in the same statement or a
 * later one: outputs are stored once (V6), unless updates change them, so nothing else stores there.  Otherwise, for
 * each store, the load's statement must come before the store's in the block where their paths part, and the addresses
 * must tell the loops around both apart: where a load and a store meet, every such loop is in the same iteration.  Such
 * addresses are sums of digits, each of which outweighs all smaller ones together with what the loops around only one
 * of the two add. */
#include "ir/analysis/analysis.h"
#include "ir/core/internal.h"

#include <string.h>

enum { MAX_NEST = 32 };

typedef struct site {
    ir_ref node, statement; /* the load, and whose operand it is; of a store both are one */
    uint32_t root, stage;   /* tensor; number of the stage */
    int64_t size;           /* bytes of the element */
    uint32_t next;          /* the next load or store of its root, + 1 */
    bool known;             /* address is: in bytes from the tensor's first element, lets resolved */
    ir_affine address;
} site;

/* By tensor: the first and last site of it, + 1; 0: none. */
typedef struct chain {
    uint32_t first, last;
} chain;

struct ir_accesses {
    const ir_func *f;
    rt_arena arena;
    site *sites;
    uint32_t count, capacity;
    chain *chains;
    ir_ref *around;  /* by statement: the loop or stage that it stands in, 0: none */
    uint32_t *order; /* by statement: 1 and up, as they stand */
    uint32_t *seen;  /* by node: order of the statement that was last seen to read it */
    ir_ref *stack;
    uint32_t statements;
    bool failed;
};

/* --- what is read and written ------------------------------------------------------------------------------------- */

/* The variables of loops that run once as what they are: a store may have that instead. */
static bool add_single_values(const ir_func *f, ir_affine *sum)
{
    int64_t product = 0;
    for (uint32_t i = sum->count; i-- > 0;) {
        if (ir_at(f, sum->atoms[i])->op != IR_VAR)
            continue;
        const ir_interval x = opjit_ir_interval(f, sum->atoms[i]);
        if (x.lo != x.hi)
            continue;
        if (!checked_muli(sum->factors[i], x.lo, &product) || !checked_addi(sum->constant, product, &sum->constant))
            return false;
        opjit_ir_affine_remove(sum, i);
    }
    return true;
}

static bool find_address(const ir_func *f, ir_ref node, ir_affine *out)
{
    const ir_node *n = ir_at(f, node);
    const ir_tensor *t = &f->tensors[n->ref];
    const int64_t size = opjit_ir_type_size(t->type);
    const uint32_t first = n->op == IR_STORE ? 1 : 0;
    int64_t offset;
    *out = (ir_affine){ 0 };
    for (uint32_t d = 0; d < t->rank; d++) {
        int64_t factor;
        if (t->strides[d] > INT64_MAX || !checked_muli((int64_t)t->strides[d], size, &factor) ||
            !opjit_ir_affine_add_values(f, out, ir_operand(f, node, first + d), factor))
            return false;
    }
    return add_single_values(f, out) && opjit_ir_root_offset(f, n->ref, &offset) &&
           checked_muli(offset, size, &offset) && checked_addi(out->constant, offset, &out->constant);
}

static void add_site(ir_accesses *a, ir_ref node, ir_ref statement, uint32_t stage)
{
    const ir_func *f = a->f;
    const uint32_t root = opjit_ir_root(f, ir_at(f, node)->ref);
    const ir_role role = f->tensors[root].role;
    if (ir_at(f, node)->op == IR_LOAD ? role != IR_IN : role != IR_OUT)
        return;
    if (a->count == a->capacity) {
        const uint32_t capacity = a->capacity == 0 ? 16 : 2 * a->capacity;
        site *more = ARENA_ARRAY(&a->arena, site, capacity);
        a->failed = a->failed || more == NULL;
        if (more == NULL)
            return;
        if (a->count > 0)
            memcpy(more, a->sites, a->count * sizeof *more);
        a->sites = more;
        a->capacity = capacity;
    }
    chain *c = &a->chains[root];
    site *s = &a->sites[a->count++];
    *(c->last != 0 ? &a->sites[c->last - 1].next : &c->first) = a->count;
    c->last = a->count;
    *s = (site){ .node = node, .statement = statement, .root = root, .stage = stage };
    s->size = opjit_ir_type_size(f->tensors[ir_at(f, node)->ref].type);
    s->known = find_address(f, node, &s->address);
}

/* Loads first, then the store itself. */
static void add_statement(ir_accesses *a, ir_ref statement, uint32_t stage)
{
    const ir_func *f = a->f;
    const uint32_t own = a->order[statement];
    uint32_t depth = 0;
    a->stack[depth++] = statement;
    while (depth > 0) {
        const ir_ref r = a->stack[--depth];
        if (ir_at(f, r)->op == IR_LOAD)
            add_site(a, r, statement, stage);
        for (uint32_t i = 0; i < ir_at(f, r)->count; i++) {
            const ir_ref operand = ir_operand(f, r, i);
            if (a->seen[operand] == own)
                continue;
            a->seen[operand] = own;
            a->stack[depth++] = operand;
        }
    }
    if (ir_at(f, statement)->op == IR_STORE)
        add_site(a, statement, statement, stage);
}

static void add_block(ir_accesses *a, ir_ref parent, ir_ref first, uint32_t stage)
{
    for (ir_ref s = first; s != 0 && !a->failed; s = ir_at(a->f, s)->next) {
        a->order[s] = ++a->statements;
        a->around[s] = parent;
        add_statement(a, s, stage);
        add_block(a, s, ir_at(a->f, s)->body, stage); /* as deep as loops nest: rule V16 */
        stage += parent == 0;
    }
}

ir_accesses *opjit_ir_accesses_create(const ir_func *f)
{
    ir_accesses *a = opjit_rt_allocate(f->allocator, sizeof *a, _Alignof(ir_accesses));
    if (a == NULL)
        return NULL;
    *a = (ir_accesses){ .f = f };
    opjit_rt_arena_init(&a->arena, f->allocator);
    a->chains = ARENA_ARRAY(&a->arena, chain, f->tensor_count);
    a->around = ARENA_ARRAY(&a->arena, ir_ref, f->node_count);
    a->order = ARENA_ARRAY(&a->arena, uint32_t, f->node_count);
    a->seen = ARENA_ARRAY(&a->arena, uint32_t, f->node_count);
    a->stack = ARENA_ARRAY(&a->arena, ir_ref, (size_t)f->node_count + 1);
    a->failed = a->chains == NULL || a->around == NULL || a->order == NULL || a->seen == NULL || a->stack == NULL;
    if (!a->failed)
        add_block(a, 0, f->body, 0);
    if (!a->failed)
        return a;
    opjit_ir_accesses_destroy(a);
    return NULL;
}

void opjit_ir_accesses_destroy(ir_accesses *a)
{
    if (a == NULL)
        return;
    const opjit_allocator *allocator = a->f->allocator;
    opjit_rt_arena_free(&a->arena);
    opjit_rt_release(allocator, a, sizeof *a);
}

/* --- one load and one store --------------------------------------------------------------------------------------- */

/* A load, a store, and the loops around both, the stage first. */
typedef struct meeting {
    const ir_accesses *a;
    const site *load, *store;
    ir_ref loops[MAX_NEST];
    uint32_t loop_count;
    ir_ref load_side, store_side; /* the statements of one block in which they are */
} meeting;

/* The loops around a statement and then the statement itself, outermost first; 0: too many. */
static uint32_t path_of(const ir_accesses *a, ir_ref statement, ir_ref path[MAX_NEST])
{
    uint32_t count = 0;
    for (ir_ref s = statement; s != 0; s = a->around[s])
        count++;
    if (count > MAX_NEST)
        return 0;
    uint32_t at = count;
    for (ir_ref s = statement; s != 0; s = a->around[s])
        path[--at] = s;
    return count;
}

static bool find_meeting(const ir_accesses *a, const site *load, const site *store, meeting *out)
{
    ir_ref other[MAX_NEST];
    const uint32_t loads = path_of(a, load->statement, out->loops), stores = path_of(a, store->statement, other);
    out->a = a;
    out->load = load;
    out->store = store;
    uint32_t n = 0;
    while (n + 1 < loads && n + 1 < stores && out->loops[n] == other[n])
        n++;
    if (loads == 0 || stores == 0 || n == 0)
        return false;
    out->loop_count = n;
    out->load_side = out->loops[n];
    out->store_side = other[n];
    return true;
}

/* Whether expr has one value wherever the given loops are in the same iterations: it reads their variables, parameters
 * and nothing else that changes. */
static bool is_of_loops(const ir_func *f, ir_ref expr, const ir_ref *loops, uint32_t count, uint32_t *budget)
{
    const ir_node *n = ir_at(f, expr);
    if (n->op == IR_LOAD || *budget == 0)
        return false;
    --*budget;
    if (n->op == IR_VAR) {
        bool found = false;
        for (uint32_t i = 0; i < count; i++)
            found = found || ir_at(f, loops[i])->ref == expr;
        return found;
    }
    if (n->op == IR_GET)
        return ir_at(f, n->ref)->op == IR_LET && is_of_loops(f, ir_operand(f, n->ref, 0), loops, count, budget);
    for (uint32_t i = 0; i < n->count; i++)
        if (!is_of_loops(f, ir_operand(f, expr, i), loops, count, budget))
            return false;
    return true;
}

/* Whether the atoms together tell which iteration the loop is in. */
static bool tell(const ir_func *f, const ir_affine *digits, ir_ref loop)
{
    const ir_ref var = ir_at(f, loop)->ref;
    const ir_interval range = opjit_ir_interval(f, var);
    int64_t known = 1;
    if (range.lo >= range.hi)
        return true;
    for (uint32_t i = 0, steps = 0; i < digits->count && steps <= IR_AFFINE_TERMS; i++) {
        ir_digit d;
        if (!opjit_ir_digit(f, digits->atoms[i], var, &d) || d.offset != 0 || d.divide != known)
            continue;
        if (d.modulo == 0 || !checked_muli(known, d.modulo, &known) || (range.lo >= 0 && known > range.hi))
            return true;
        steps++;
        i = UINT32_MAX; /* the next digit may stand before this one */
    }
    return false;
}

static bool add_range(ir_interval *sum, ir_interval x, int64_t factor)
{
    int64_t a, b;
    if (x.lo > x.hi)
        return true; /* never evaluated */
    return checked_muli(x.lo, factor, &a) && checked_muli(x.hi, factor, &b) &&
           checked_addi(sum->lo, a < b ? a : b, &sum->lo) && checked_addi(sum->hi, a < b ? b : a, &sum->hi);
}

/* Moves the terms that both addresses contain and that the common loops alone decide from *form to digits, unless
 * that is NULL; adds the range of the others to *rest. */
static bool part(const meeting *m, const ir_affine *form, const ir_affine *other, ir_affine *digits, ir_interval *rest)
{
    const ir_func *f = m->a->f;
    *rest = (ir_interval){ form->constant, form->constant };
    for (uint32_t i = 0; i < form->count; i++) {
        uint32_t budget = 256;
        bool shared = false;
        for (uint32_t k = 0; k < other->count; k++)
            shared =
                shared || (other->factors[k] == form->factors[i] && opjit_ir_same(f, other->atoms[k], form->atoms[i]));
        shared = shared && is_of_loops(f, form->atoms[i], m->loops, m->loop_count, &budget);
        if (!shared && !add_range(rest, opjit_ir_interval(f, form->atoms[i]), form->factors[i]))
            return false;
        if (shared && digits != NULL) {
            digits->atoms[digits->count] = form->atoms[i];
            digits->factors[digits->count++] = form->factors[i];
        }
    }
    return true;
}

static int64_t magnitude(int64_t x)
{
    return x == INT64_MIN ? INT64_MAX : x < 0 ? -x : x;
}

/* Whether each digit outweighs all that are smaller, and `spread` bytes. */
static bool outweigh(const ir_func *f, ir_affine *digits, int64_t spread)
{
    for (uint32_t done = 0; done < digits->count; done++) {
        uint32_t least = done;
        for (uint32_t i = done + 1; i < digits->count; i++)
            if (magnitude(digits->factors[i]) < magnitude(digits->factors[least]))
                least = i;
        const int64_t factor = digits->factors[least];
        const ir_ref atom = digits->atoms[least];
        digits->factors[least] = digits->factors[done];
        digits->atoms[least] = digits->atoms[done];
        digits->factors[done] = factor;
        digits->atoms[done] = atom;
        const ir_interval x = opjit_ir_interval(f, atom);
        int64_t width, reach;
        if (x.lo >= x.hi)
            continue;
        if (magnitude(factor) <= spread || !checked_subi(x.hi, x.lo, &width) ||
            !checked_muli(width, magnitude(factor), &reach) || !checked_addi(spread, reach, &spread))
            return false;
    }
    return true;
}

/* Whether the load and the store meet only while all loops around both are in the same iterations. */
static bool are_told_apart(const meeting *m)
{
    const ir_affine *a = &m->load->address, *b = &m->store->address;
    ir_affine digits = { 0 };
    ir_interval load, store;
    int64_t up, down;
    if (!m->load->known || !m->store->known || !part(m, a, b, &digits, &load) || !part(m, b, a, NULL, &store) ||
        !checked_subi(load.hi, store.lo, &up) || !checked_subi(store.hi, load.lo, &down))
        return false;
    const int64_t size = (m->load->size > m->store->size ? m->load->size : m->store->size) - 1;
    int64_t spread = up > down ? up : down;
    spread = spread < 0 ? 0 : spread; /* they never meet at all: the digits decide */
    if (!checked_addi(spread, size, &spread) || !outweigh(m->a->f, &digits, spread))
        return false;
    for (uint32_t i = 0; i < m->loop_count; i++)
        if (!tell(m->a->f, &digits, m->loops[i]))
            return false;
    return true;
}

/* Whether the load's own block stores at its address, in its statement or later. */
static bool is_own(const ir_accesses *a, const site *load, const site *store)
{
    ir_affine distance = store->address;
    if (!load->known || !store->known || load->size != store->size ||
        a->around[load->statement] != a->around[store->statement] ||
        a->order[load->statement] > a->order[store->statement] || distance.count != load->address.count ||
        distance.constant != load->address.constant)
        return false;
    ir_ref loops[MAX_NEST];
    const uint32_t count = path_of(a, load->statement, loops);
    for (uint32_t i = 0; i < load->address.count; i++) {
        uint32_t budget = 256;
        if (opjit_ir_affine_take(a->f, &distance, load->address.atoms[i]) != load->address.factors[i] ||
            !is_of_loops(a->f, load->address.atoms[i], loops, count, &budget))
            return false;
    }
    return count > 0 && distance.count == 0;
}

/* --- schedules ---------------------------------------------------------------------------------------------------- */

/* On a GPU: whether one thread does both, or the team's threads synchronise between them. */
static bool are_in_order(const meeting *m)
{
    const ir_func *f = m->a->f;
    if (f->phase < IR_GRIDDED || ir_at(f, m->loops[0])->vec <= 1)
        return true;
    for (uint32_t i = 1; i < m->loop_count; i++)
        if (ir_at(f, m->loops[i])->flags & IR_FOR_DISTRIBUTE)
            return true;
    for (ir_ref s = m->load_side; s != 0 && s != m->store_side; s = ir_at(f, s)->next)
        if (ir_at(f, s)->op == IR_SYNC)
            return true;
    return false;
}

/* Whether a loop stores elements of other loops again, or stores around the caches, in a stage in or after which the
 * input is read: these elements may be computed from the input. */
static bool stores_again(const ir_accesses *a, const site *load, const site *store)
{
    const ir_func *f = a->f;
    ir_ref path[MAX_NEST];
    const uint32_t count = path_of(a, load->statement, path);
    for (ir_ref loop = a->around[store->statement]; loop != 0; loop = a->around[loop]) {
        const uint8_t flags = ir_at(f, loop)->op == IR_FOR ? ir_at(f, loop)->flags : 0;
        bool inside = false;
        for (uint32_t i = 0; i < count; i++)
            inside = inside || path[i] == loop;
        if ((flags & (IR_FOR_HEAD | IR_FOR_TAIL | IR_FOR_CARRY | IR_FOR_NT)) != 0 ||
            ((flags & IR_FOR_TAIL_OVERLAP) != 0 && inside))
            return true;
    }
    return false;
}

/* own: the load's own block stores at its address. */
static ir_in_place judge(const ir_accesses *a, const site *load, const site *store, bool own)
{
    meeting m = { 0 };
    if (load->stage < store->stage)
        return IR_IN_PLACE;
    const ir_in_place best = stores_again(a, load, store) ? IR_IN_PLACE_MARKED : IR_IN_PLACE;
    if (own && !is_own(a, load, store))
        return best;
    if (load->stage > store->stage || !find_meeting(a, load, store, &m) ||
        (!own && (a->order[m.load_side] > a->order[m.store_side] || !are_told_apart(&m))))
        return IR_IN_PLACE_NEVER;
    return are_in_order(&m) ? best : IR_IN_PLACE_MARKED;
}

/* Whether elements of the tensor may be stored more than once: those that a serial loop changes. */
static bool is_scattered(const ir_accesses *a, uint32_t out)
{
    for (uint32_t k = a->chains[out].first; k != 0; k = a->sites[k - 1].next)
        for (ir_ref loop = a->around[a->sites[k - 1].statement]; loop != 0; loop = a->around[loop])
            if (ir_at(a->f, loop)->op == IR_FOR && (ir_at(a->f, loop)->flags & IR_FOR_SERIAL) != 0)
                return true;
    return false;
}

ir_in_place opjit_ir_in_place(const ir_accesses *a, uint32_t out, uint32_t in)
{
    const bool once = !is_scattered(a, out);
    ir_in_place found = IR_IN_PLACE;
    for (uint32_t i = a->chains[in].first; i != 0 && found != IR_IN_PLACE_NEVER; i = a->sites[i - 1].next) {
        const site *load = &a->sites[i - 1];
        bool own = false;
        for (uint32_t k = a->chains[out].first; k != 0 && once && !own; k = a->sites[k - 1].next)
            own = is_own(a, load, &a->sites[k - 1]);
        for (uint32_t k = a->chains[out].first; k != 0 && found != IR_IN_PLACE_NEVER; k = a->sites[k - 1].next) {
            const ir_in_place one = judge(a, load, &a->sites[k - 1], own);
            found = one < found ? one : found;
        }
    }
    return found;
}

bool opjit_ir_stores_itself(const ir_accesses *a, uint32_t out, uint32_t in)
{
    for (uint32_t k = a->chains[out].first; k != 0; k = a->sites[k - 1].next) {
        const site *store = &a->sites[k - 1], *load = k > 1 ? store - 1 : store;
        if (load->root == in && load->node == ir_operand(a->f, store->node, 0) && is_own(a, load, store))
            return true;
    }
    return false;
}

bool opjit_ir_shares(const ir_func *f, uint32_t out, uint32_t in)
{
    const ir_tensor *o = &f->tensors[out], *i = &f->tensors[in];
    return o->role == IR_OUT && i->role == IR_IN &&
           (o->alias == in || (i->slot < 32 && (o->shared >> i->slot & 1) != 0));
}

bool opjit_ir_same_layout(const ir_tensor *a, const ir_tensor *b)
{
    if (a->type != b->type || a->rank != b->rank)
        return false;
    for (uint32_t d = 0; d < a->rank; d++)
        if (a->sizes[d] != b->sizes[d] || (a->sizes[d] > 1 && a->strides[d] != b->strides[d]))
            return false;
    return true;
}
