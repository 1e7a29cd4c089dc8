/* SPDX-License-Identifier: Apache-2.0 */
/* ir_graphs.c - draws random functions in value form (ir_graphs.h). */
#include "tests/support/ir_graphs.h"

#include "ir/analysis/analysis.h"

#include <string.h>

enum { MAX_TENSORS = 40, MAX_ELEMENTS = 400 };

typedef struct drawing {
    ir_func *f;
    test_random *r;
    ir_type type;
    uint32_t tensors[MAX_TENSORS]; /* those that may be read */
    bool unread[MAX_TENSORS];
    uint32_t count;
    ir_ref tail;
} drawing;

static uint64_t below(drawing *d, uint64_t n) { return test_random_below(d->r, n); }
static ir_ref e2(ir_func *f, ir_op op, ir_ref a, ir_ref b) { return ir_expr2(f, op, IR_NONE, a, b); }
static ir_ref number(ir_func *f, int64_t value) { return opjit_ir_index(f, value); }

/* Sets bytes to what the layout spans. */
static void set_bytes(ir_tensor *t)
{
    uint64_t last = 0;
    for (uint32_t i = 0; i < t->rank; i++)
        last += (t->sizes[i] - 1) * t->strides[i];
    t->bytes = (last + 1) * opjit_ir_type_size(t->type);
}

static ir_tensor random_layout(drawing *d, ir_role role)
{
    ir_tensor t = {
        .role = role, .type = d->type, .rank = 1 + (uint32_t)below(d, 4), .align = opjit_ir_type_size(d->type)
    };
    uint64_t room = MAX_ELEMENTS;
    for (uint32_t i = t.rank; i-- > 0;) {
        static const uint64_t usual[] = { 1, 2, 3, 4, 6, 8, 37 }; /* sizes of the last dimension */
        t.sizes[i] = usual[below(d, i + 1 == t.rank ? 7 : 6)];
        t.sizes[i] = t.sizes[i] > room ? 1 : t.sizes[i];
        room /= t.sizes[i];
    }
    opjit_ir_dense_strides(&t);
    set_bytes(&t);
    return t;
}

static uint32_t add(drawing *d, const ir_tensor *t)
{
    const uint32_t made = opjit_ir_tensor(d->f, t);
    if (t->role != IR_OUT && d->count < MAX_TENSORS) {
        d->unread[d->count] = t->role == IR_VALUE;
        d->tensors[d->count++] = made;
    }
    return made;
}

/* --- reads ------------------------------------------------------------------------------------------------------ */

/* A read of tensors[which] at or near the coordinates of the statement, which has `rank` of them. */
static ir_ref read_of(drawing *d, uint32_t which, ir_ref statement, uint32_t rank)
{
    ir_func *f = d->f;
    const ir_tensor t = f->tensors[d->tensors[which]];
    ir_ref at[8] = { 0 }, guard = 0;
    d->unread[which] = false;
    for (uint32_t i = 0; i < t.rank; i++) {
        const uint32_t own = t.rank == rank && below(d, 8) != 0 ? i : (uint32_t)below(d, rank);
        const ir_ref var = opjit_ir_coordinate(f, statement, own);
        const int64_t last = (int64_t)t.sizes[i] - 1, most = opjit_ir_interval(f, var).hi;
        const ir_ref shifted = e2(f, IR_IADD, var, number(f, (int64_t)below(d, 5) - 2));
        const uint64_t way = below(d, 10);
        if (way < 6 && most <= last)
            at[i] = var;
        else if (way == 6)
            at[i] = e2(f, IR_IMOD, shifted, number(f, last + 1));
        else if (way < 9)
            at[i] = ir_expr3(f, IR_CLAMP, IR_NONE, shifted, number(f, 0), number(f, last));
        else {
            const ir_ref in =
                e2(f, IR_AND, e2(f, IR_LE, number(f, 0), shifted), e2(f, IR_LT, shifted, number(f, last + 1)));
            if (guard != 0) {
                at[i] = number(f, 0);
                continue;
            }
            guard = in;
            at[i] = shifted;
        }
    }
    const ir_ref load = opjit_ir_load(f, d->tensors[which], at);
    return guard == 0 ? load : ir_expr3(f, IR_SELECT, IR_NONE, guard, load, opjit_ir_const(f, d->type, 3));
}

static ir_ref random_value(drawing *d, ir_ref statement, uint32_t rank, uint32_t depth)
{
    ir_func *f = d->f;
    static const ir_op ops[] = { IR_ADD, IR_SUB, IR_MUL, IR_MIN, IR_MAX };
    if (depth == 0 || below(d, 5) == 0) {
        const ir_ref var = opjit_ir_coordinate(f, statement, (uint32_t)below(d, rank));
        return below(d, 6) == 0
                   ? ir_expr1(f, IR_ELEM, d->type, var)
                   : read_of(d, d->count - 1 - (uint32_t)below(d, d->count > 5 ? 5 : d->count), statement, rank);
    }
    const ir_ref a = random_value(d, statement, rank, depth - 1);
    const ir_ref b = below(d, 4) == 0 ? a : random_value(d, statement, rank, depth - 1);
    if (below(d, 5) == 0)
        return e2(f, IR_DIV, a, b);
    if (below(d, 4) == 0) {
        const ir_ref x = opjit_ir_coordinate(f, statement, rank - 1), y = opjit_ir_coordinate(f, statement, 0);
        return ir_expr3(f, IR_SELECT, IR_NONE, e2(f, IR_LE, x, e2(f, IR_IADD, y, number(f, (int64_t)below(d, 7) - 3))),
                        a, b);
    }
    return e2(f, ops[below(d, 5)], a, b);
}

/* --- statements ------------------------------------------------------------------------------------------------- */

/* Adds a view with another shape of a tensor whose elements fill its memory. */
static void add_view(drawing *d)
{
    const uint32_t of = (uint32_t)below(d, d->count);
    const ir_tensor base = d->f->tensors[d->tensors[of]];
    ir_tensor t = base;
    uint64_t elements = 1;
    if (base.role == IR_VIEW && below(d, 2) == 0)
        return;
    for (uint32_t i = 0; i < base.rank; i++)
        elements *= base.sizes[i];
    t.role = IR_VIEW;
    t.of = d->tensors[of];
    t.offset = 0;
    t.slot = 0;
    const uint64_t way = base.role == IR_VIEW ? 2 + below(d, 2) : below(d, 4);
    if (way == 0) { /* one dimension */
        t.rank = 1;
        t.sizes[0] = elements;
        opjit_ir_dense_strides(&t);
    } else if (way == 1) { /* two others */
        const uint64_t first = elements % 4 == 0 ? 4 : elements % 3 == 0 ? 3 : 1;
        t.rank = 2;
        t.sizes[0] = first;
        t.sizes[1] = elements / first;
        opjit_ir_dense_strides(&t);
    } else if (way == 2) { /* the first and last are swapped */
        t.sizes[0] = base.sizes[base.rank - 1];
        t.strides[0] = base.strides[base.rank - 1];
        t.sizes[base.rank - 1] = base.sizes[0];
        t.strides[base.rank - 1] = base.strides[0];
    } else { /* a part, broadcast or not */
        const uint32_t axis = (uint32_t)below(d, base.rank);
        const uint64_t skip = base.sizes[axis] > 1 ? below(d, base.sizes[axis]) : 0;
        t.offset = (int64_t)(skip * base.strides[axis]);
        t.sizes[axis] -= skip;
        if (below(d, 3) == 0)
            t.strides[axis] = 0;
        t.strides[axis] = t.sizes[axis] == 1 ? 0 : t.strides[axis];
    }
    set_bytes(&t);
    const bool unread = d->unread[of];
    const uint32_t before = d->count;
    add(d, &t);
    if (d->count > before) {
        d->unread[before] = unread; /* reading it is reading what it shows */
        d->unread[of] = false;
    }
}

static void append(drawing *d, ir_ref statement, ir_ref value)
{
    opjit_ir_set_value(d->f, statement, value);
    opjit_ir_append(d->f, 0, &d->tail, statement);
}

/* A read of tensors[which] in a reduction: at the statement's coordinates, except for the last one, which is k. */
static ir_ref read_row(drawing *d, uint32_t which, ir_ref statement, uint32_t axis)
{
    ir_func *f = d->f;
    const ir_tensor t = f->tensors[d->tensors[which]];
    ir_ref at[8] = { 0 };
    d->unread[which] = false;
    for (uint32_t i = 0; i < t.rank; i++)
        at[i] = i == axis ? opjit_ir_reduced(f, statement) : opjit_ir_coordinate(f, statement, i);
    return opjit_ir_load(f, d->tensors[which], at);
}

/* A number of values that data says, up to a size. */
static void set_count(drawing *d, ir_ref reduce, uint32_t rank, uint64_t size)
{
    ir_func *f = d->f;
    const ir_ref read = read_of(d, (uint32_t)below(d, d->count), reduce, rank);
    const ir_ref whole = ir_is_integer(d->type) ? read : ir_expr1(f, IR_CAST, IR_I64, read);
    opjit_ir_set_count(f, reduce,
                       ir_expr3(f, IR_CLAMP, IR_NONE, ir_expr1(f, IR_TO_INDEX, IR_NONE, whole),
                                number(f, (int64_t)below(d, 2)), number(f, (int64_t)size)));
}

/* Reduces the rows or columns of an existing tensor; later definitions may read the result as a row of its own does. */
static void add_reduce(drawing *d)
{
    ir_func *f = d->f;
    const uint32_t which = (uint32_t)below(d, d->count);
    const bool integer = ir_is_integer(d->type);
    ir_tensor t = f->tensors[d->tensors[which]];
    const uint32_t axis = below(d, 3) == 0 ? (uint32_t)below(d, t.rank) : t.rank - 1;
    const uint64_t size = t.sizes[axis];
    const bool dot = below(d, 6) == 0;
    const ir_kind kind = dot ? IR_DOT : (ir_kind)(IR_SUM + below(d, integer ? 8 : 4));
    t = (ir_tensor){ .role = IR_VALUE, .type = d->type, .rank = t.rank, .align = opjit_ir_type_size(d->type) };
    memcpy(t.sizes, f->tensors[d->tensors[which]].sizes, sizeof t.sizes);
    t.sizes[axis] = 1;
    opjit_ir_dense_strides(&t);
    set_bytes(&t);
    const uint32_t tensor = opjit_ir_tensor(f, &t);
    const bool alone = dot || axis + 1 < t.rank || below(d, 3) == 0;
    const bool counted = kind < IR_ARGMIN && below(d, 5) == 0;
    const ir_ref reduce = f->failed  ? 0
                          : counted ? opjit_ir_reduce_counted(f, tensor, kind)
                                    : opjit_ir_reduce(f, tensor, kind, alone ? 1 : 32, size);
    if (f->failed)
        return;
    if (counted)
        set_count(d, reduce, t.rank, size);
    const ir_ref row = read_row(d, which, reduce, axis), k = opjit_ir_reduced(f, reduce);
    const ir_ref other = below(d, 2) == 0 ? row : read_of(d, (uint32_t)below(d, d->count), reduce, t.rank);
    const ir_ref mask = e2(f, IR_LE, k, opjit_ir_coordinate(f, reduce, 0));
    const ir_ref value =
        below(d, 2) == 0 ? e2(f, IR_ADD, row, other) : ir_expr3(f, IR_SELECT, IR_NONE, mask, row, other);
    append(d, reduce, dot ? e2(f, IR_PAIR, row, value) : value);
    d->unread[d->count] = true;
    d->tensors[d->count++] = tensor;
    if (below(d, 2) == 0)
        return;
    t.sizes[axis] = size; /* and combines elements of the rows with the reduced values */
    opjit_ir_dense_strides(&t);
    set_bytes(&t);
    const uint32_t full = opjit_ir_tensor(f, &t);
    const ir_ref def = f->failed ? 0 : opjit_ir_def(f, full);
    ir_ref own[8] = { 0 }, of_row[8] = { 0 };
    for (uint32_t i = 0; !f->failed && i < t.rank; i++) {
        own[i] = opjit_ir_coordinate(f, def, i);
        of_row[i] = i == axis ? number(f, 0) : own[i];
    }
    if (f->failed)
        return;
    append(d, def, e2(f, IR_DIV, opjit_ir_load(f, d->tensors[which], own), opjit_ir_load(f, tensor, of_row)));
    d->unread[d->count - 1] = false;
    d->unread[d->count] = true;
    d->tensors[d->count++] = full;
}

/* What the updates before this one have left at a place by its number. */
static ir_ref read_of_itself(drawing *d, ir_ref scatter, const ir_tensor *t, uint32_t along)
{
    ir_func *f = d->f;
    ir_ref at[8] = { 0 };
    for (uint32_t i = 0; i < t->rank && !f->failed; i++)
        at[i] = i != along && along < t->rank
                    ? opjit_ir_coordinate(f, scatter, i)
                    : e2(f, IR_IMOD, opjit_ir_update(f, scatter), number(f, (int64_t)t->sizes[i]));
    return f->failed ? 0 : opjit_ir_load(f, ir_at(f, scatter)->ref, at);
}

/* The value of an update: its number, what the others have left too, or each of both in turns. */
static ir_ref update_value(drawing *d, ir_ref scatter, const ir_tensor *t, uint32_t along)
{
    ir_func *f = d->f;
    const ir_ref number_of = opjit_ir_update(f, scatter), own = ir_expr1(f, IR_ELEM, d->type, number_of);
    if (below(d, 2) == 0)
        return own;
    const ir_ref sum = e2(f, IR_ADD, read_of_itself(d, scatter, t, along), own);
    const ir_ref rest = e2(f, IR_IMOD, number_of, number(f, 2 + (int64_t)below(d, 2)));
    return below(d, 2) == 0 ? sum : ir_expr3(f, IR_SELECT, IR_NONE, e2(f, IR_EQ, rest, number(f, 1)), sum, own);
}

/* Updates of a definition, along one of its dimensions or at places in all of them, some of them outside; or sums. */
static void add_scatter(drawing *d)
{
    ir_func *f = d->f;
    const ir_tensor t = random_layout(d, IR_VALUE);
    const uint32_t tensor = opjit_ir_tensor(f, &t), along = (uint32_t)below(d, t.rank + 1);
    const ir_kind kind = below(d, 2) == 0 ? IR_KIND_NONE : IR_SUM;
    const ir_ref scatter = f->failed ? 0 : opjit_ir_scatter(f, tensor, kind, 1 + below(d, 20));
    if (f->failed)
        return;
    opjit_ir_set_initial(f, scatter, read_of(d, (uint32_t)below(d, d->count), scatter, t.rank));
    for (uint32_t i = 0; i < t.rank; i++) {
        if (i != along && along < t.rank)
            continue;
        const uint32_t which = (uint32_t)below(d, d->count);
        const ir_tensor from = f->tensors[d->tensors[which]];
        const bool itself = below(d, 4) == 0;
        ir_ref at[8];
        d->unread[which] = d->unread[which] && itself;
        for (uint32_t k = 0; k < from.rank; k++)
            at[k] = e2(f, IR_IMOD, opjit_ir_update(f, scatter), number(f, (int64_t)from.sizes[k]));
        const ir_ref read = itself ? read_of_itself(d, scatter, &t, along)
                                   : opjit_ir_load(f, d->tensors[which], at);
        const ir_ref whole = ir_is_integer(d->type) ? read : ir_expr1(f, IR_CAST, IR_I64, read);
        const ir_ref place = ir_expr1(f, IR_TO_INDEX, IR_NONE, whole);
        const int64_t size = (int64_t)t.sizes[i];
        opjit_ir_set_place(f, scatter, i, e2(f, IR_IMOD, place, number(f, below(d, 2) == 0 ? size : size + 1)));
    }
    append(d, scatter, update_value(d, scatter, &t, along));
    d->unread[d->count] = true;
    d->tensors[d->count++] = tensor;
}

static void add_def(drawing *d)
{
    const ir_tensor t = random_layout(d, IR_VALUE);
    const uint32_t tensor = opjit_ir_tensor(d->f, &t);
    const ir_ref def = opjit_ir_def(d->f, tensor);
    if (d->f->failed)
        return;
    append(d, def, random_value(d, def, t.rank, 2));
    d->unread[d->count] = true;
    d->tensors[d->count++] = tensor;
}

/* A yield of a part of dimension 0. */
static ir_ref boxed(drawing *d, uint32_t tensor, uint64_t offset, uint64_t size)
{
    ir_func *f = d->f;
    const ir_tensor t = f->tensors[tensor];
    ir_ref operands[3 * 8];
    for (uint32_t i = 0; i < t.rank; i++) {
        operands[3 * i] = number(f, i == 0 ? (int64_t)offset : 0);
        operands[3 * i + 1] = number(f, (int64_t)(i == 0 ? size : t.sizes[i]));
        operands[3 * i + 2] = number(f, 1);
    }
    return opjit_ir_yield_box(f, tensor, operands);
}

/* The last statement of an output also reads everything that is still unread. */
static ir_ref remaining(drawing *d, ir_ref statement, uint32_t rank, ir_ref value)
{
    for (uint32_t i = 0; i < d->count; i++)
        if (d->unread[i])
            value = e2(d->f, IR_ADD, value, read_of(d, i, statement, rank));
    return value;
}

static void add_output(drawing *d, uint32_t slot, bool last)
{
    ir_func *f = d->f;
    ir_tensor t = random_layout(d, IR_OUT);
    t.slot = slot;
    const uint32_t tensor = opjit_ir_tensor(f, &t);
    uint64_t done = 0;
    if (f->failed)
        return;
    if (t.sizes[0] > 1 && below(d, 3) == 0) {
        done = 1 + below(d, t.sizes[0] - 1);
        const ir_ref part = boxed(d, tensor, 0, done);
        append(d, part, random_value(d, part, t.rank, 2));
    }
    const ir_ref yield = done == 0 ? opjit_ir_yield(f, tensor) : boxed(d, tensor, done, t.sizes[0] - done);
    const ir_ref value = random_value(d, yield, t.rank, 3);
    append(d, yield, last ? remaining(d, yield, t.rank, value) : value);
}

opjit_status ir_graph_random(test_random *r, const opjit_allocator *allocator, ir_func *out, opjit_error *error)
{
    static const ir_type types[] = { IR_I32, IR_I32, IR_F32, IR_F32, IR_U8, IR_I64, IR_F16, IR_F64 };
    drawing d = { .f = out, .r = r };
    TRY(opjit_ir_init(out, allocator, "graph", error));
    d.type = types[test_random_below(r, 8)];
    const uint32_t inputs = 1 + (uint32_t)below(&d, 2), outputs = 1 + (uint32_t)below(&d, 2);
    const uint32_t defs = (uint32_t)below(&d, 9);
    for (uint32_t i = 0; i < inputs; i++) {
        ir_tensor t = random_layout(&d, IR_IN);
        t.slot = i;
        add(&d, &t);
    }
    for (uint32_t i = 0; i < defs && !out->failed; i++) {
        if (below(&d, 3) == 0)
            add_view(&d);
        if (below(&d, 3) == 0)
            add_reduce(&d);
        else if (below(&d, 8) == 0)
            add_scatter(&d);
        else
            add_def(&d);
    }
    for (uint32_t i = 0; i < outputs && !out->failed; i++)
        add_output(&d, inputs + i, i + 1 == outputs);
    if (!out->failed)
        return OPJIT_OK;
    opjit_ir_free(out);
    return opjit_rt_no_memory(error);
}
