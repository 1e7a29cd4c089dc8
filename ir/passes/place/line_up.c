/* SPDX-License-Identifier: Apache-2.0 */
/* line_up.c - copies what rows read across memory: where the values that a reduction takes one after the other lie far
 * apart, and those of another row beside them, or where they are pieces of a tensor with others between them.  The copy
 * has one row after the other, and is read by whoever reads rows of the tensor so.  It is written by a stage of its
 * own, which walks through both in the order of their memory.  Lines of definitions with mathematical functions, or
 * with choices by coordinate, and lines of windows are such rows, too: tiles that are transposed in registers can have
 * neither.  A step of place, for CPUs. */
#include "ir/passes/pass.h"

#include <string.h>

enum {
    LEAST_STEPS = 16,      /* of a row that is copied */
    LEAST_ELEMENTS = 4096, /* of a tensor whose lines are: less stays in the first cache */
    LEAST_SIZE = 4,        /* of the two dimensions: columns of a block */
    NEAR_STEP = 4,         /* elements from one to the next of a line that shares each line of memory with few others */
};

typedef struct row_copy {
    uint32_t tensor;       /* 0: there is none */
    uint32_t dimension[8]; /* of what is copied, by that of the copy */
    uint32_t first;        /* dimension of more than one element, */
    uint32_t digits;       /* and of a row */
    uint32_t before;       /* the tensor of the same bytes that was copied before this one */
} row_copy;

typedef struct liner {
    ir_func *f;
    ir_map map;
    row_copy *copies; /* by tensor */
    uint32_t *latest; /* by tensor: of those that show its bytes, the one that was copied last */
    uint32_t *math;   /* by tensor: MATH, MADE_OF, MADE_INTO */
    uint32_t count;   /* tensors before */
    block list;       /* the function's definitions, rebuilt */
} liner;

/* Where mathematical functions are in a chain of definitions that are no reductions: in one, in what it is made of, in
 * what is made of it. */
enum { MATH = 1, MADE_OF = 2, MADE_INTO = 4 };

/* What a load has in dimension d: one element, a coordinate of its definition, or a digit of what that reduces. */
typedef struct place {
    bool is_digit;
    uint32_t coordinate;
    int64_t divide;
} place;

static bool find_place(const ir_func *f, ir_ref statement, ir_ref load, uint32_t d, place *out)
{
    const ir_ref index = ir_operand(f, load, d), k = opjit_ir_reduced(f, statement);
    const uint64_t size = f->tensors[ir_at(f, load)->ref].sizes[d];
    ir_digit digit = { 0 };
    for (uint32_t c = 0; c < f->tensors[ir_at(f, statement)->ref].rank; c++)
        if (index == opjit_ir_coordinate(f, statement, c)) {
            *out = (place){ .coordinate = c };
            return f->tensors[ir_at(f, statement)->ref].sizes[c] == size;
        }
    if (k == 0 || !opjit_ir_digit(f, index, k, &digit) || digit.offset != 0)
        return false;
    *out = (place){ .is_digit = true, .divide = digit.divide };
    return digit.modulo == 0 || digit.modulo == (int64_t)size;
}

/* Whether the load of dimension a comes before that of dimension b in rows: coordinates before digits, in their order,
 * and high digits before low ones. */
static bool is_before(const place *a, const place *b)
{
    if (a->is_digit != b->is_digit)
        return b->is_digit;
    return a->is_digit ? a->divide > b->divide : a->coordinate < b->coordinate;
}

/* The order of rows in which the reduction reads the whole tensor, dimensions of one element first.  false: it reads
 * something else. */
static bool find_order(const ir_func *f, ir_ref statement, ir_ref load, row_copy *out)
{
    const ir_tensor *t = &f->tensors[ir_at(f, load)->ref];
    place places[8] = { 0 };
    uint32_t count = 0, seen = 0;
    int64_t steps = 1;
    for (uint32_t d = 0; d < t->rank; d++)
        if (t->sizes[d] == 1)
            out->dimension[count++] = d;
    out->first = count;
    for (uint32_t d = 0; d < t->rank; d++) {
        if (t->sizes[d] == 1)
            continue;
        if (!find_place(f, statement, load, d, &places[d]) ||
            (!places[d].is_digit && (seen >> places[d].coordinate & 1)))
            return false;
        seen |= places[d].is_digit ? 0 : 1u << places[d].coordinate;
        uint32_t at = count++;
        for (; at > out->first && is_before(&places[d], &places[out->dimension[at - 1]]); at--)
            out->dimension[at] = out->dimension[at - 1];
        out->dimension[at] = d;
    }
    out->digits = count;
    while (out->digits > out->first && places[out->dimension[out->digits - 1]].is_digit) {
        const uint32_t d = out->dimension[--out->digits];
        if (places[d].divide != steps)
            return false; /* the digits are not all of the number */
        steps *= (int64_t)t->sizes[d];
    }
    return out->digits < count && steps == ir_index_value(f, ir_operand(f, statement, ir_at(f, statement)->count - 1));
}

/* Whether rows in this order lie across memory, or in pieces. */
static bool lies_across(const ir_tensor *t, const row_copy *x)
{
    uint32_t low = x->dimension[t->rank - 1];
    const uint64_t last = t->strides[low];
    bool across = false;
    if (x->digits == x->first)
        return false; /* one row */
    for (uint32_t i = t->rank - 1; i-- > x->digits;) {
        across = across || t->strides[x->dimension[i]] != t->strides[low] * t->sizes[low];
        low = x->dimension[i];
    }
    for (uint32_t i = x->first; i < t->rank; i++) {
        if (t->strides[x->dimension[i]] == 0)
            return false; /* elements that are several rows' */
        across = across || t->strides[x->dimension[i]] < last;
    }
    return across;
}

static bool is_row_reduction(const ir_func *f, ir_ref statement)
{
    const ir_node *n = ir_at(f, statement);
    return n->op == IR_DEF && n->kind != 0 && n->kind != IR_DOT && n->imm != 1 &&
           !ir_is_of_recurrence(&f->tensors[n->ref]) && !opjit_ir_is_counted(f, statement) &&
           opjit_ir_scanned(f, statement) < 0 &&
           ir_index_value(f, ir_operand(f, statement, n->count - 1)) >= LEAST_STEPS;
}

static bool is_elementwise(const ir_func *f, ir_ref statement)
{
    const ir_node *n = ir_at(f, statement);
    return (n->op == IR_DEF || n->op == IR_YIELD) && n->kind == 0 && !ir_is_of_recurrence(&f->tensors[n->ref]);
}

/* Whether the statement, no reduction, reads neighbours of the copy where those of the tensor lie apart. */
static bool reads_row(const ir_func *f, ir_ref statement, ir_ref load, const row_copy *x)
{
    const ir_tensor *t = &f->tensors[ir_at(f, load)->ref], *own = &f->tensors[ir_at(f, statement)->ref];
    const uint32_t fast = x->dimension[t->rank - 1];
    const uint32_t last = ir_rank_in_use(own);
    return last > 0 && t->strides[fast] > 1 && ir_operand(f, load, fast) == opjit_ir_coordinate(f, statement, last - 1);
}

/* --- lines that are no rows of a reduction ------------------------------------------------------------------------ */

/* The dimension of the load whose index alone moves with the statement's last coordinate; the rank: there is none. */
static uint32_t find_fast(const ir_func *f, ir_ref statement, ir_ref load)
{
    const uint32_t last = ir_rank_in_use(&f->tensors[ir_at(f, statement)->ref]), rank = ir_at(f, load)->count;
    uint32_t fast = rank;
    for (uint32_t d = 0; d < rank && last > 0; d++)
        if (opjit_ir_uses(f, ir_operand(f, load, d), opjit_ir_coordinate(f, statement, last - 1))) {
            if (fast < rank)
                return rank;
            fast = d;
        }
    return fast;
}

bool opjit_ir_reads_across(const ir_func *f, ir_ref statement, ir_ref load)
{
    const ir_tensor *t = &f->tensors[ir_at(f, load)->ref];
    const uint32_t fast = find_fast(f, statement, load);
    bool across = false;
    for (uint32_t d = 0; d < t->rank && fast < t->rank; d++) {
        if (t->sizes[d] > 1 && t->strides[d] == 0)
            return false; /* elements that are several lines' */
        across = across || (d != fast && t->sizes[d] >= LEAST_SIZE && t->strides[d] < t->strides[fast]);
    }
    return across && t->strides[fast] > NEAR_STEP && t->sizes[fast] >= LEAST_SIZE &&
           opjit_ir_count_elements(t) >= LEAST_ELEMENTS;
}

/* Whether the statement is a sum of products, and the load is of what windows read in it: an index moves with what is
 * reduced and with a coordinate. */
static bool is_through_window(const ir_func *f, ir_ref statement, ir_ref load)
{
    const ir_ref k = opjit_ir_reduced(f, statement);
    bool window = false;
    if (k == 0 || ir_at(f, statement)->kind != IR_DOT || ir_is_of_recurrence(&f->tensors[ir_at(f, statement)->ref]))
        return false;
    for (uint32_t d = 0; d < ir_at(f, load)->count && !window; d++)
        for (uint32_t c = 0; c < f->tensors[ir_at(f, statement)->ref].rank; c++)
            window = window || (opjit_ir_uses(f, ir_operand(f, load, d), k) &&
                                opjit_ir_uses(f, ir_operand(f, load, d), opjit_ir_coordinate(f, statement, c)));
    return window;
}

/* The order in which the statement's coordinates move through all of the tensor, one in each dimension. */
static bool order_coordinates(const ir_func *f, ir_ref statement, ir_ref load, row_copy *out)
{
    const ir_tensor *t = &f->tensors[ir_at(f, load)->ref], *own = &f->tensors[ir_at(f, statement)->ref];
    uint32_t count = 0;
    for (uint32_t d = 0; d < t->rank; d++)
        if (t->sizes[d] == 1)
            out->dimension[count++] = d;
    for (uint32_t c = 0; c < own->rank; c++)
        for (uint32_t d = 0; d < t->rank; d++)
            if (t->sizes[d] > 1 && t->sizes[d] <= own->sizes[c] &&
                opjit_ir_uses(f, ir_operand(f, load, d), opjit_ir_coordinate(f, statement, c))) {
                if (count == t->rank)
                    return false; /* several in one */
                out->dimension[count++] = d;
                break;
            }
    uint32_t seen = 0;
    for (uint32_t i = 0; i < count; i++)
        seen |= 1u << out->dimension[i];
    return seen + 1 == 1u << t->rank;
}

/* Whether a block of the statement's elements can't be made in registers: it has a mathematical function, or an index
 * that is no load's. */
static bool needs_lines(const ir_func *f, const ir_reach *seen)
{
    for (uint32_t k = 0; k < seen->count; k++) {
        const ir_node *n = ir_at(f, seen->nodes[k]);
        if ((opjit_ir_op_infos[n->op].flags & IR_FLAG_M) != 0)
            return true;
        for (uint32_t i = 0; i < n->count && n->op != IR_LOAD && n->type != IR_INDEX; i++)
            if (ir_at(f, ir_operand(f, seen->nodes[k], i))->type == IR_INDEX)
                return true;
    }
    return false;
}

/* Whether a place of the load depends on data: it is no element of a line. */
static bool is_placed(ir_func *f, ir_ref load)
{
    const ir_reach seen = opjit_ir_reach_one(f, load);
    bool placed = false;
    for (uint32_t k = 0; k < seen.count && !placed; k++)
        placed = ir_at(f, seen.nodes[k])->op == IR_TO_INDEX;
    return placed;
}

/* Whether the statement's lines should be read from lines: what is made of the load's element, here or by who reads
 * it, or what another load brings, needs them. */
static bool wants_lines(liner *l, ir_ref statement, ir_ref load, const ir_reach *seen)
{
    const ir_func *f = l->f;
    bool wants = needs_lines(f, seen) || (l->math[ir_at(f, statement)->ref] & MADE_INTO) != 0;
    for (uint32_t k = 0; k < seen->count && !wants; k++) {
        const ir_node *n = ir_at(f, seen->nodes[k]);
        const uint32_t root = n->op == IR_LOAD ? opjit_ir_root(f, n->ref) : 0;
        wants = root != 0 && root < l->count && root != opjit_ir_root(f, ir_at(f, load)->ref) &&
                (l->math[root] & MADE_OF) != 0;
    }
    return wants;
}

/* Whether what the statement stores goes on in memory along another coordinate than its last one: its lines are not
 * those of a copy. */
static bool stores_across(const ir_func *f, ir_ref statement)
{
    const ir_tensor *own = &f->tensors[ir_at(f, statement)->ref];
    const uint32_t last = ir_rank_in_use(own);
    bool across = false;
    for (uint32_t c = 0; c < last; c++)
        across = across || (own->sizes[c] > 1 && own->strides[c] < own->strides[last - 1]);
    return across;
}

static bool find_lines(liner *l, ir_ref statement, ir_ref load, const ir_reach *seen, row_copy *out)
{
    const ir_func *f = l->f;
    const ir_tensor *t = &f->tensors[ir_at(f, load)->ref];
    if (!opjit_ir_reads_across(f, statement, load))
        return false;
    if (is_elementwise(f, statement))
        return !stores_across(f, statement) && !is_placed(l->f, load) && wants_lines(l, statement, load, seen) &&
               order_coordinates(f, statement, load, out);
    for (uint32_t d = 0; d < t->rank; d++)
        out->dimension[d] = d;
    return is_through_window(f, statement, load) && find_fast(f, statement, load) + 1 == ir_rank_in_use(t);
}

/* The statement's part in chains: backward, what it brings to what it reads; else what that brings to it. */
static void note_chain(liner *l, ir_ref statement, bool backward)
{
    ir_func *f = l->f;
    const rt_arena_mark mark = rt_arena_position(&f->scratch);
    uint32_t *const own = &l->math[ir_at(f, statement)->ref];
    const ir_reach seen = opjit_ir_reach_one(f, ir_operand(f, statement, 0));
    for (uint32_t k = 0; k < seen.count; k++) {
        const ir_node *n = ir_at(f, seen.nodes[k]);
        uint32_t *const read = n->op == IR_LOAD ? &l->math[opjit_ir_root(f, n->ref)] : NULL;
        if (read != NULL && backward)
            *read |= (*own & (MATH | MADE_INTO)) != 0 ? MADE_INTO : 0;
        else if (read != NULL)
            *own |= *read & MADE_OF;
        else if ((opjit_ir_op_infos[n->op].flags & IR_FLAG_M) != 0)
            *own |= MATH | MADE_OF;
    }
    opjit_rt_arena_rewind(&f->scratch, mark);
}

/* Notes for each definition whether mathematical functions are in what it is made of, and in what is made of it. */
static void note_math(liner *l)
{
    ir_func *f = l->f;
    uint32_t count = 0;
    for (ir_ref s = f->body; s != 0; s = ir_at(f, s)->next)
        count += is_elementwise(f, s);
    ir_ref *statements = ARENA_ARRAY(&f->scratch, ir_ref, count + 1);
    l->math = ARENA_ARRAY(&f->scratch, uint32_t, l->count);
    if (statements == NULL || l->math == NULL) {
        f->failed = true;
        return;
    }
    count = 0;
    for (ir_ref s = f->body; s != 0; s = ir_at(f, s)->next)
        if (is_elementwise(f, s)) {
            note_chain(l, s, false);
            statements[count++] = s;
        }
    while (count-- > 0)
        note_chain(l, statements[count], true);
}

/* --- copies ------------------------------------------------------------------------------------------------------- */

static bool shows_same(const ir_tensor *a, const ir_tensor *b)
{
    return a->of == b->of && a->offset == b->offset && a->rank == b->rank &&
           memcmp(a->sizes, b->sizes, sizeof a->sizes) == 0 && memcmp(a->strides, b->strides, sizeof a->strides) == 0;
}

/* The copy of the tensor, or of another view of the same elements; the tensor's own where there is none. */
static row_copy *known_copy(const liner *l, uint32_t tensor)
{
    const ir_func *f = l->f;
    const bool is_view = f->tensors[tensor].role == IR_VIEW;
    for (uint32_t t = is_view ? l->latest[f->tensors[tensor].of] : 0; t != 0; t = l->copies[t].before)
        if (shows_same(&f->tensors[t], &f->tensors[tensor]))
            return &l->copies[t];
    return &l->copies[tensor];
}

static void make_copy(liner *l, uint32_t tensor, row_copy *x)
{
    ir_func *f = l->f;
    ir_tensor t = { .role = IR_VALUE, .type = f->tensors[tensor].type, .rank = f->tensors[tensor].rank, .align = 64 };
    t.bytes = opjit_ir_type_size(t.type);
    for (uint32_t d = 0; d < t.rank; d++) {
        t.sizes[d] = f->tensors[tensor].sizes[x->dimension[d]];
        t.bytes *= t.sizes[d];
    }
    opjit_ir_dense_strides(&t);
    x->tensor = opjit_ir_tensor(f, &t);
    const ir_ref def = opjit_ir_def(f, x->tensor);
    ir_ref at[8] = { 0 };
    for (uint32_t d = 0; d < t.rank; d++)
        at[x->dimension[d]] = opjit_ir_coordinate(f, def, d);
    opjit_ir_set_value(f, def, opjit_ir_load(f, tensor, at));
    opjit_ir_block_add(f, &l->list, def);
    x->before = f->tensors[tensor].role == IR_VIEW ? l->latest[f->tensors[tensor].of] : 0;
    if (f->tensors[tensor].role == IR_VIEW)
        l->latest[f->tensors[tensor].of] = tensor;
    ir_took(f, IR_STEP_LINE_UP);
}

/* Reads the copy in place of the tensor, of which the load is. */
static void map_load(liner *l, ir_ref load, const row_copy *x)
{
    ir_ref at[8] = { 0 };
    for (uint32_t d = 0; d < ir_at(l->f, load)->count; d++)
        at[d] = ir_operand(l->f, load, x->dimension[d]);
    ir_map_set(l->f, &l->map, load, opjit_ir_load(l->f, x->tensor, at));
}

static bool equal_orders(const row_copy *a, const row_copy *b, uint32_t rank)
{
    return memcmp(a->dimension, b->dimension, rank * sizeof *a->dimension) == 0;
}

/* The order of a copy that the statement's load needs.  false: it needs none. */
static bool find_copy(liner *l, ir_ref statement, ir_ref load, const ir_reach *seen, row_copy *out)
{
    if (is_row_reduction(l->f, statement))
        return find_order(l->f, statement, load, out) && lies_across(&l->f->tensors[ir_at(l->f, load)->ref], out);
    return find_lines(l, statement, load, seen, out);
}

static void line_up(liner *l, ir_ref statement)
{
    ir_func *f = l->f;
    const bool reduces = opjit_ir_reduced(f, statement) != 0;
    if (reduces ? !is_row_reduction(f, statement) && ir_at(f, statement)->kind != IR_DOT
                : !is_elementwise(f, statement))
        return;
    const ir_reach seen = opjit_ir_reach_one(f, ir_operand(f, statement, 0));
    for (uint32_t k = 0; k < seen.count && !f->failed; k++) {
        const ir_ref load = seen.nodes[k];
        const uint32_t tensor = ir_at(f, load)->ref;
        row_copy x = { 0 };
        if (ir_at(f, load)->op != IR_LOAD || tensor >= l->count)
            continue;
        row_copy *known = known_copy(l, tensor);
        if (!reduces && known->tensor != 0 && reads_row(f, statement, load, known)) {
            map_load(l, load, known);
            continue;
        }
        if (!find_copy(l, statement, load, &seen, &x))
            continue;
        if (known->tensor == 0) {
            make_copy(l, tensor, &x);
            known = &l->copies[tensor];
            *known = x;
        }
        if (equal_orders(known, &x, f->tensors[tensor].rank))
            map_load(l, load, known);
    }
}

void opjit_ir_line_up(ir_func *f)
{
    const rt_arena_mark mark = rt_arena_position(&f->scratch);
    liner l = { .f = f, .count = f->tensor_count };
    ir_ref next;
    l.copies = ARENA_ARRAY(&f->scratch, row_copy, l.count);
    l.latest = ARENA_ARRAY(&f->scratch, uint32_t, l.count);
    if (l.copies == NULL || l.latest == NULL) {
        f->failed = true;
        return;
    }
    note_math(&l);
    for (ir_ref s = f->body; s != 0 && !f->failed; s = next) {
        next = ir_at(f, s)->next;
        line_up(&l, s);
        opjit_ir_block_add(f, &l.list, s);
    }
    f->body = l.list.first;
    if (f->steps[IR_STEP_LINE_UP] > 0 && !f->failed)
        opjit_ir_remake_operands(f, &l.map, f->body);
    opjit_rt_arena_rewind(&f->scratch, mark);
}
