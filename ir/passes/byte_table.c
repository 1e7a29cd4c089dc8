/* SPDX-License-Identifier: Apache-2.0 */
/* byte_table.c - what is computed of one byte alone is looked up.  Part of fold.
 *
 * Quantized models go from byte to byte through functions that take much longer than a load: quotients, roundings, a
 * sigmoid.  A definition whose elements follow from one byte each, at its own coordinates, and from values that are the
 * same for all elements, becomes a load of a table of 256 elements, at the byte.  The table is a definition by the same
 * operations, so it has the same bits; of constants alone, it is made once (once.c).  Definitions on the way to it that
 * nothing else reads are gone. */
#include "ir/passes/pass.h"

enum {
    BYTES = 256,        /* elements of a table */
    LEAST_WEIGHT = 24,  /* operations that are worth a table, */
    LEAST_BYTES = 14,   /* of bytes where vectors are looked up, */
    LEAST_TAIL = 12,    /* of which so many come after the last byte on the way, where the result is no byte, */
    LEAST_TIMES = 16,   /* and elements for each of the table's */
    MOST_WEIGHT = 1024, /* of what is written again */
    MOST_DEPTH = 512,
    DIVISION = 8, CONVERSION = 4, FUNCTION = 24,
};

typedef enum known_as { OTHER, SAME_FOR_ALL, OF_BYTE } known_as;

/* What is known of a definition. */
typedef struct byte_def {
    known_as is;
    ir_ref statement, value; /* its own, also where it is looked up by now */
    uint32_t source; /* OF_BYTE: the tensor of bytes, with the definition's sizes */
    uint32_t weight, tail; /* operations from the source on; from the last byte on the way */
    bool is_copy; /* of another definition, which is looked up itself */
    bool needed, looked_up;
} byte_def;

typedef struct tabler {
    ir_func *f;
    byte_def *defs; /* by tensor */
    uint32_t count;
    block list;
    ir_map made; /* of the table that is made: nodes in it */
    ir_ref element;
    uint32_t depth;
    uint32_t least; /* operations that are worth a table of bytes */
} tabler;

/* --- what is computed of a byte ----------------------------------------------------------------------------------- */

static bool is_byte(ir_type type)
{
    return type == IR_U8 || type == IR_I8;
}

static bool is_one_element(const ir_tensor *t)
{
    for (uint32_t d = 0; d < t->rank; d++)
        if (t->sizes[d] != 1 && t->strides[d] != 0)
            return false;
    return true;
}

static bool is_at_own(const ir_func *f, ir_ref statement, ir_ref load)
{
    const ir_tensor *t = &f->tensors[ir_at(f, load)->ref], *own = &f->tensors[ir_at(f, statement)->ref];
    for (uint32_t d = 0; d < t->rank; d++)
        if (t->rank != own->rank || t->sizes[d] != own->sizes[d] ||
            ir_operand(f, load, d) != opjit_ir_coordinate(f, statement, d))
            return false;
    return true;
}

static bool are_same(const ir_func *f, uint32_t x, uint32_t y)
{
    const ir_tensor *a = &f->tensors[x], *b = &f->tensors[y];
    if (x == y)
        return true;
    if (opjit_ir_root(f, x) != opjit_ir_root(f, y) || a->offset != b->offset || a->rank != b->rank)
        return false;
    for (uint32_t d = 0; d < a->rank; d++)
        if (a->sizes[d] != b->sizes[d] || (a->sizes[d] > 1 && a->strides[d] != b->strides[d]))
            return false;
    return true;
}

/* The source of a definition as `shown`, the definition or a view of it, has it; 0: it has another order there. */
static uint32_t source_as(ir_func *f, const byte_def *d, uint32_t shown)
{
    const uint32_t own = ir_at(f, d->statement)->ref;
    const ir_tensor *view = &f->tensors[shown], *source = &f->tensors[d->source];
    if (shown == own)
        return d->source;
    if (view->of != own || view->offset != 0 || !opjit_ir_is_dense(view) || !opjit_ir_is_dense(&f->tensors[own]) ||
        !opjit_ir_is_dense(source) || opjit_ir_count_elements(view) != opjit_ir_count_elements(source))
        return 0;
    ir_tensor t = *view;
    t.type = source->type;
    t.of = opjit_ir_root(f, d->source);
    t.offset = source->role == IR_VIEW ? source->offset : 0;
    t.bytes = opjit_ir_count_elements(view);
    t.align = 1;
    return opjit_ir_tensor(f, &t);
}

static uint32_t weight_of(const ir_func *f, ir_ref r)
{
    const ir_node *n = ir_at(f, r);
    if ((opjit_ir_op_infos[n->op].flags & IR_FLAG_M) != 0)
        return FUNCTION;
    if (n->op == IR_DIV || n->op == IR_REM || n->op == IR_SQRT)
        return DIVISION;
    return n->op == IR_CAST && !ir_is_float((ir_type)n->type) &&
                   ir_is_float((ir_type)ir_at(f, ir_operand(f, r, 0))->type)
               ? CONVERSION : 1;
}

/* Adds what a load reads to what is known of the statement's value; false: it follows from no byte. */
static bool add_load(tabler *t, ir_ref statement, ir_ref load, byte_def *own)
{
    ir_func *f = t->f;
    const uint32_t tensor = ir_at(f, load)->ref, root = opjit_ir_root(f, tensor);
    const byte_def *d = root < t->count ? &t->defs[root] : &(const byte_def){ .is = OTHER };
    if (is_one_element(&f->tensors[tensor]) && (f->tensors[root].role == IR_CONSTANT || d->is == SAME_FOR_ALL))
        return true;
    if (!is_at_own(f, statement, load))
        return false;
    const bool is_source = is_byte((ir_type)ir_at(f, load)->type) && f->tensors[root].type == f->tensors[tensor].type &&
                           (f->tensors[root].role == IR_IN || f->tensors[root].role == IR_VALUE);
    uint32_t source = is_source ? tensor : 0;
    if (d->is == OF_BYTE) {
        source = source_as(f, d, tensor);
        own->weight += d->weight;
        if (!is_byte(f->tensors[root].type) && d->tail > own->tail)
            own->tail = d->tail;
    }
    if (source == 0 || (own->source != 0 && !are_same(f, source, own->source)))
        return false;
    own->source = own->source == 0 ? source : own->source;
    return own->weight <= MOST_WEIGHT;
}

static void look_at(tabler *t, ir_ref statement)
{
    ir_func *f = t->f;
    const ir_node *n = ir_at(f, statement);
    byte_def *d = &t->defs[n->ref], own = { .statement = statement, .value = ir_operand(f, statement, 0) };
    d->statement = statement;
    if ((n->op != IR_DEF && n->op != IR_YIELD) || n->kind != 0 || n->imm != 0 ||
        ir_is_of_recurrence(&f->tensors[n->ref]))
        return;
    const ir_reach seen = opjit_ir_reach_one(f, own.value);
    uint32_t weight = 0;
    for (uint32_t k = 0; k < seen.count; k++) {
        const ir_ref r = seen.nodes[k];
        const ir_node *x = ir_at(f, r);
        if (x->op == IR_LOAD && !add_load(t, statement, r, &own))
            return;
        if (x->op == IR_LOAD || x->op == IR_CONST || x->op == IR_VAR)
            continue;
        if (x->count == 0 || x->type == IR_INDEX)
            return;
        for (uint32_t i = 0; i < x->count; i++)
            if (ir_at(f, ir_operand(f, r, i))->type == IR_INDEX)
                return;
        weight += weight_of(f, r);
    }
    own.is_copy = weight == 0;
    own.weight += weight;
    own.tail += weight;
    own.is = own.source != 0 ? OF_BYTE : seen.nodes != NULL ? SAME_FOR_ALL : OTHER;
    *d = own;
}

/* --- which are looked up ------------------------------------------------------------------------------------------ */

static bool is_worth(const tabler *x, const byte_def *d)
{
    const ir_func *f = x->f;
    const ir_tensor *t = &f->tensors[ir_at(f, d->statement)->ref];
    return d->is == OF_BYTE && !d->is_copy && d->weight >= (is_byte(t->type) ? x->least : LEAST_WEIGHT) &&
           (is_byte(t->type) || d->tail >= LEAST_TAIL) && opjit_ir_count_elements(t) >= (uint64_t)BYTES * LEAST_TIMES;
}

/* From the last statement on: what is read by those that stay. */
static void choose(tabler *t, const ir_ref *statements, uint32_t count)
{
    ir_func *f = t->f;
    for (uint32_t i = count; i-- > 0 && !f->failed;) {
        const ir_ref s = statements[i];
        byte_def *d = &t->defs[ir_at(f, s)->ref];
        if (ir_at(f, s)->op == IR_DEF && !d->needed && !ir_is_of_recurrence(&f->tensors[ir_at(f, s)->ref]))
            continue;
        d->looked_up = d->statement == s && is_worth(t, d);
        if (d->looked_up) {
            t->defs[opjit_ir_root(f, d->source)].needed = true;
            continue;
        }
        const ir_reach seen = opjit_ir_reach_one(f, s);
        for (uint32_t k = 0; k < seen.count; k++)
            if (ir_at(f, seen.nodes[k])->op == IR_LOAD)
                t->defs[opjit_ir_root(f, ir_at(f, seen.nodes[k])->ref)].needed = true;
    }
}

/* --- tables ------------------------------------------------------------------------------------------------------- */

/* The expression for the table's element. */
static ir_ref made_of(tabler *t, ir_ref r)
{
    ir_func *f = t->f;
    ir_ref made = ir_map_get(&t->made, r), operands[8] = { 0 };
    if (made != 0 || f->failed || ir_at(f, r)->op == IR_CONST)
        return made != 0 ? made : r;
    if (t->depth == MOST_DEPTH || ir_at(f, r)->count > 8)
        return 0;
    t->depth++;
    const uint32_t count = ir_at(f, r)->count;
    if (ir_at(f, r)->op == IR_LOAD) {
        const uint32_t tensor = ir_at(f, r)->ref, root = opjit_ir_root(f, tensor);
        const byte_def *d = root < t->count ? &t->defs[root] : NULL;
        for (uint32_t i = 0; i < count; i++)
            operands[i] = opjit_ir_index(f, 0);
        if (is_one_element(&f->tensors[tensor]) && (d == NULL || d->is != OF_BYTE))
            made = opjit_ir_load(f, tensor, operands);
        else
            made = d != NULL && d->is == OF_BYTE ? made_of(t, d->value) : t->element;
    } else {
        bool whole = true;
        for (uint32_t i = 0; i < count; i++) {
            operands[i] = made_of(t, ir_operand(f, r, i));
            whole = whole && operands[i] != 0;
        }
        made = whole ? opjit_ir_make(f, (ir_op)ir_at(f, r)->op, (ir_type)ir_at(f, r)->type, count, operands) : 0;
    }
    t->depth--;
    if (made != 0)
        ir_map_set(f, &t->made, r, made);
    return made;
}

static void look_up(tabler *t, const byte_def *d)
{
    ir_func *f = t->f;
    const ir_ref s = d->statement;
    const ir_type type = f->tensors[ir_at(f, s)->ref].type, of = f->tensors[d->source].type;
    ir_tensor table = { .role = IR_VALUE, .type = type, .rank = 1, .sizes = { BYTES }, .align = 64 };
    table.bytes = (uint64_t)BYTES * opjit_ir_type_size(type);
    opjit_ir_dense_strides(&table);
    const uint32_t tensor = opjit_ir_tensor(f, &table);
    const ir_ref def = opjit_ir_def(f, tensor);
    if (f->failed)
        return;
    t->made = (ir_map){ 0 };
    t->depth = 0;
    t->element = ir_make1(f, IR_ELEM, of, opjit_ir_coordinate(f, def, 0));
    const ir_ref value = made_of(t, d->value);
    ir_ref at[8] = { 0 };
    for (uint32_t i = 0; i < f->tensors[d->source].rank; i++)
        at[i] = opjit_ir_coordinate(f, s, i);
    ir_ref byte = opjit_ir_load(f, d->source, at);
    byte = of == IR_U8 ? byte : ir_make1(f, IR_BITS, IR_U8, byte);
    const ir_ref place = ir_make1(f, IR_TO_INDEX, IR_INDEX, byte);
    if (value == 0 || f->failed)
        return;
    opjit_ir_set_value(f, def, value);
    opjit_ir_block_add(f, &t->list, def);
    opjit_ir_set_value(f, s, opjit_ir_load(f, tensor, &place));
    ir_took(f, IR_STEP_BYTE_TABLE);
}

void opjit_ir_look_up_bytes(ir_func *f, const rt_target *target)
{
    const rt_arena_mark mark = rt_arena_position(&f->scratch);
    tabler t = { .f = f, .count = f->tensor_count };
    t.least = target != NULL && rt_target_looks_up(target) ? LEAST_BYTES : LEAST_WEIGHT;
    uint32_t count = 0, at = 0;
    ir_ref next, last = 0; /* of the recurrence that s is in, whose definitions stay together */
    bool any = false;
    for (ir_ref s = f->body; s != 0; s = ir_at(f, s)->next)
        count++;
    ir_ref *statements = ARENA_ARRAY(&f->scratch, ir_ref, count + 1);
    t.defs = ARENA_ARRAY(&f->scratch, byte_def, t.count);
    f->failed = f->failed || statements == NULL || t.defs == NULL;
    for (ir_ref s = f->body; s != 0 && !f->failed; s = ir_at(f, s)->next) {
        statements[at++] = s;
        last = last == 0 ? opjit_ir_recurrence_last(f, s) : last;
        if (last == 0)
            look_at(&t, s);
        last = last == s ? 0 : last;
        any = any || is_worth(&t, &t.defs[ir_at(f, s)->ref]);
    }
    if (any && !f->failed)
        choose(&t, statements, count);
    for (ir_ref s = f->body; any && s != 0 && !f->failed; s = next) {
        next = ir_at(f, s)->next;
        const byte_def *d = &t.defs[ir_at(f, s)->ref];
        if (d->looked_up && d->statement == s)
            look_up(&t, d);
        opjit_ir_block_add(f, &t.list, s);
    }
    if (any && !f->failed)
        f->body = t.list.first;
    opjit_rt_arena_rewind(&f->scratch, mark);
}
