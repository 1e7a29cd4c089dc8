/* SPDX-License-Identifier: Apache-2.0 */
/* fold.c - what pass fold does in value form once its expressions are simplified.  An output that is a sequence of
 * floats whose bits no longer change from some element on, for example because it overflows, becomes a select between
 * the sequence and that constant, or the constant alone.  Definitions that nothing reads are removed. */
#include "ir/passes/pass.h"

enum {
    CHAIN_NODES = 4,   /* cast, sum, product, elem */
    LEAST_REST = 1024, /* this many elements of one value are worth another loop, */
    LEAST_SHARE = 8,   /* if they are at least one in this many */
};
static const int64_t INDEX_LIMIT = (int64_t)1 << 60;

/* --- sequences that come to rest -------------------------------------------------------------------------------- */

/* A value made of constants and one index: elem of it, at most one product or fma, sums and casts between floats.  It
 * is monotone, except that it may be NaN for 0 (times inf), and up to or from some index on (inf - inf).  It isn't NaN
 * on both sides of a number, so where two elements are equal, all between them are. */
typedef struct chain {
    ir_ref nodes[CHAIN_NODES]; /* the value first, elem last */
    uint32_t count;
    ir_ref index;
} chain;

/* The operand that is not constant; 0: there are none or several, or the op is not one of a chain's. */
static ir_ref chain_link(const ir_func *f, ir_ref r)
{
    const ir_node *n = ir_at(f, r);
    ir_ref link = 0;
    if (n->op == IR_ELEM || n->op == IR_CAST)
        return ir_operand(f, r, 0);
    if (n->op != IR_ADD && n->op != IR_MUL && n->op != IR_FMA)
        return 0;
    for (uint32_t i = 0; i < n->count; i++) {
        const ir_ref operand = ir_operand(f, r, i);
        if (ir_at(f, operand)->op == IR_CONST)
            continue;
        if (link != 0 || i == 2) /* an fma's product must be a sequence, not only its sum */
            return 0;
        link = operand;
    }
    return link;
}

static bool find_chain(const ir_func *f, ir_ref value, chain *out)
{
    bool multiplied = false;
    *out = (chain){ .count = 0 };
    for (ir_ref r = value; out->count < CHAIN_NODES && r != 0; r = chain_link(f, r)) {
        const ir_op op = (ir_op)ir_at(f, r)->op;
        const bool product = op == IR_MUL || op == IR_FMA;
        if (!ir_is_float((ir_type)ir_at(f, r)->type) || (product && multiplied))
            return false;
        multiplied = multiplied || product;
        out->nodes[out->count++] = r;
        if (op == IR_ELEM) {
            out->index = ir_operand(f, r, 0);
            return true;
        }
    }
    return false;
}

static uint64_t chain_bits(const ir_func *f, const chain *c, int64_t index)
{
    uint64_t bits = (uint64_t)index;
    for (uint32_t i = c->count; i-- > 0;) {
        const ir_ref r = c->nodes[i], link = chain_link(f, r);
        const ir_node *n = ir_at(f, r);
        uint64_t args[3] = { 0 };
        for (uint32_t k = 0; k < n->count; k++) {
            const ir_ref operand = ir_operand(f, r, k);
            args[k] = operand == link ? bits : ir_at(f, operand)->imm;
        }
        (void)opjit_ir_scalar((ir_op)n->op, (ir_type)n->type, (ir_type)ir_at(f, link)->type, args, &bits);
    }
    return bits;
}

/* The index nearest to `from` from which on, up to `to`, the value is constant. */
static int64_t rest_begin(const ir_func *f, const chain *c, int64_t from, int64_t to)
{
    const uint64_t bits = chain_bits(f, c, to);
    while (from != to) {
        const int64_t middle = from + (to - from) / 2; /* never `to` */
        if (chain_bits(f, c, middle) == bits)
            to = middle;
        else
            from = from < to ? middle + 1 : middle - 1;
    }
    return from;
}

/* The value of an output with its constant part, at the high or the low end of its indices; 0: it has none. */
static ir_ref with_rest(ir_func *f, ir_ref value, bool may_cut)
{
    chain c;
    if (!find_chain(f, value, &c))
        return 0;
    const ir_interval i = opjit_ir_interval(f, c.index);
    if (i.lo > i.hi || i.lo < -INDEX_LIMIT || i.hi > INDEX_LIMIT)
        return 0;
    const int64_t first = rest_begin(f, &c, i.lo, i.hi), last = rest_begin(f, &c, i.hi, i.lo);
    const bool high = i.hi - first >= last - i.lo;
    const int64_t others = high ? first - i.lo : i.hi - last, count = i.hi - i.lo + 1 - others;
    const ir_ref constant = opjit_ir_const(f, (ir_type)ir_at(f, value)->type, chain_bits(f, &c, high ? i.hi : i.lo));
    if (others == 0)
        return constant;
    if (!may_cut || count < LEAST_REST || count < others / LEAST_SHARE)
        return 0;
    const ir_ref edge = opjit_ir_index(f, high ? first : last);
    const ir_ref before = ir_make2(f, IR_LT, IR_BOOL, high ? c.index : edge, high ? edge : c.index);
    return ir_make3(f, IR_SELECT, IR_NONE, before, value, constant);
}

void opjit_ir_cut_sequences(ir_func *f, bool may_cut)
{
    for (ir_ref s = f->body; s != 0; s = ir_at(f, s)->next) {
        const ir_ref value = ir_at(f, s)->op == IR_YIELD ? with_rest(f, ir_operand(f, s, 0), may_cut) : 0;
        if (value != 0) {
            opjit_ir_set_value(f, s, value);
            ir_took(f, IR_STEP_REST);
        }
    }
}

/* --- definitions that are one constant --------------------------------------------------------------------------- */

/* The loads of each tensor, once a definition is a constant. */
typedef struct loads {
    ir_ref *first, *next; /* by tensor, by load */
} loads;

static bool find_loads(ir_func *f, uint32_t node_count, loads *l)
{
    l->first = ARENA_ARRAY(&f->scratch, ir_ref, f->tensor_count);
    l->next = ARENA_ARRAY(&f->scratch, ir_ref, node_count);
    f->failed = f->failed || l->first == NULL || l->next == NULL;
    for (ir_ref r = 1; r < node_count && !f->failed; r++) {
        if (ir_at(f, r)->op != IR_LOAD)
            continue;
        const uint32_t t = opjit_ir_root(f, ir_at(f, r)->ref);
        l->next[r] = l->first[t];
        l->first[t] = r;
    }
    return !f->failed;
}

static bool is_one_constant(const ir_func *f, ir_ref statement)
{
    const ir_node *n = ir_at(f, statement);
    return n->op == IR_DEF && n->kind == 0 && !ir_is_of_recurrence(&f->tensors[n->ref]) &&
           ir_at(f, ir_operand(f, statement, 0))->op == IR_CONST;
}

/* Whoever reads a definition all elements of which are one constant has the constant, and may be one itself: so what is
 * counted by it is a number before place looks at it. */
void opjit_ir_simplify_operands(ir_func *f)
{
    const rt_arena_mark mark = rt_arena_position(&f->scratch);
    ir_map map = { 0 };
    loads l = { NULL, NULL };
    rebuild b;
    if (!opjit_ir_rebuild_begin(f, &map, &b))
        return;
    for (ir_ref s = f->body; s != 0 && !f->failed; s = ir_at(f, s)->next) {
        opjit_ir_rebuild_operands(&b, s);
        if (f->failed || !is_one_constant(f, s) || (l.next == NULL && !find_loads(f, b.count, &l)))
            continue;
        for (ir_ref r = l.first[ir_at(f, s)->ref]; r != 0; r = l.next[r])
            ir_map_set(f, &map, r, ir_operand(f, s, 0));
        ir_took(f, IR_STEP_CONSTANTS);
    }
    opjit_rt_arena_rewind(&f->scratch, mark);
}

/* --- what nothing reads ----------------------------------------------------------------------------------------- */

/* Marks the tensors that the statement reads. */
static void mark_read(ir_func *f, ir_ref statement, uint8_t *read, uint32_t *seen, ir_ref *stack)
{
    uint32_t depth = 0;
    stack[depth++] = statement;
    while (depth > 0) {
        const ir_ref r = stack[--depth];
        const ir_node *n = ir_at(f, r);
        if (seen[r] == statement)
            continue;
        seen[r] = statement;
        if (n->op == IR_LOAD)
            read[opjit_ir_root(f, n->ref)] = 1;
        for (uint32_t i = 0; i < n->count; i++)
            if (seen[ir_operand(f, r, i)] != statement)
                stack[depth++] = ir_operand(f, r, i);
    }
}

/* From the last statement to the first, because readers come after what they read. */
void opjit_ir_remove_unread(ir_func *f)
{
    uint32_t count = 0, at = 0;
    bool removed = false;
    block kept = { 0 };
    for (ir_ref s = f->body; s != 0; s = ir_at(f, s)->next)
        count++;
    ir_ref *items = ARENA_ARRAY(&f->scratch, ir_ref, count + 1),
           *stack = ARENA_ARRAY(&f->scratch, ir_ref, f->operand_count + 1);
    uint8_t *read = ARENA_ARRAY(&f->scratch, uint8_t, f->tensor_count);
    uint32_t *seen = ARENA_ARRAY(&f->scratch, uint32_t, f->node_count);
    if (items == NULL || stack == NULL || read == NULL || seen == NULL) {
        f->failed = true;
        return;
    }
    for (ir_ref s = f->body; s != 0; s = ir_at(f, s)->next)
        items[at++] = s;
    for (uint32_t i = count; i-- > 0;) {
        const ir_tensor *t = &f->tensors[ir_at(f, items[i])->ref];
        const bool unread = ir_is_definition(f, items[i]) && !read[ir_at(f, items[i])->ref] && !ir_is_of_recurrence(t);
        if (unread) {
            items[i] = 0;
            ir_took(f, IR_STEP_UNREAD);
        } else
            mark_read(f, items[i], read, seen, stack);
        removed = removed || unread;
    }
    for (uint32_t i = 0; i < count && removed; i++)
        opjit_ir_block_add(f, &kept, items[i]);
    f->body = removed ? kept.first : f->body;
}
