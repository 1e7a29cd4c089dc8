/* SPDX-License-Identifier: Apache-2.0 */
/* mask.c - what selects leave of the columns behind a diagonal, as of a causal mask: which of a product's
 * results are never read there, and whether what becomes of a row is one value there.  Part of place; rows.c
 * leaves out the tiles of only such results, rest.c steps with such values. */
#include "ir/passes/contract/contract.h"

enum { DEEPEST = 16 /* conditions in each other */, ROWS = 32 };

static const int64_t never = INT64_MIN, always = INT64_MAX;

/* What is read in a row: results of columns up to the row's number + behind; never: none, always: any.  Likewise the
 * columns that values are different in: those behind have one value. */
typedef struct need {
    int64_t behind;
    ir_ref column; /* the variable that is the column */
} need;

typedef struct mask {
    ir_func *f;
    uint32_t scores;
    ir_ref number, row; /* of the row in the block, and in the result */
    ir_reach seen;
    need *needs;    /* by place in it */
    ir_table place; /* of a node, + 1 */
} mask;

static need join(need a, need b)
{
    if (a.behind == never || b.behind == never)
        return a.behind == never ? b : a;
    if (a.column != b.column)
        return (need){ always, 0 };
    return a.behind > b.behind ? a : b;
}

/* How far behind the row's number the column can be where a <= b, or a < b; always: anywhere. */
static int64_t behind_where(const mask *m, ir_ref a, ir_ref b, bool strictly, ir_ref column)
{
    ir_affine form = { .constant = strictly };
    if (ir_at(m->f, a)->type != IR_INDEX || !opjit_ir_affine_add(m->f, &form, a, 1) ||
        !opjit_ir_affine_add(m->f, &form, b, -1) || opjit_ir_affine_take(m->f, &form, column) != 1 ||
        opjit_ir_affine_take(m->f, &form, m->row) != -1 || form.count != 0 || form.constant == INT64_MIN)
        return always;
    return -form.constant;
}

/* The same where the condition has this value. */
static int64_t behind_if(const mask *m, ir_ref condition, bool value, ir_ref column, uint32_t depth)
{
    const ir_func *f = m->f;
    const ir_node *n = ir_at(f, condition);
    if (n->op == IR_LT || n->op == IR_LE) {
        const ir_ref a = ir_operand(f, condition, 0), b = ir_operand(f, condition, 1);
        return value ? behind_where(m, a, b, n->op == IR_LT, column) : behind_where(m, b, a, n->op == IR_LE, column);
    }
    if (depth == 0 || n->count == 0)
        return always;
    if (n->op == IR_NOT)
        return behind_if(m, ir_operand(f, condition, 0), !value, column, depth - 1);
    if (n->op != IR_AND && n->op != IR_OR)
        return always;
    const int64_t x = behind_if(m, ir_operand(f, condition, 0), value, column, depth - 1);
    const int64_t y = behind_if(m, ir_operand(f, condition, 1), value, column, depth - 1);
    return (n->op == IR_AND) == value ? (x < y ? x : y) : (x > y ? x : y); /* both hold, or one of them */
}

static need need_of(const mask *m, ir_ref node)
{
    const uint32_t place = opjit_ir_table_get(&m->place, node);
    return place == 0 ? (need){ never, 0 } : m->needs[place - 1];
}

static need arm(const mask *m, ir_ref select, uint32_t operand)
{
    need x = need_of(m, ir_operand(m->f, select, operand));
    if (x.behind != never && x.column != 0) {
        const int64_t most = behind_if(m, ir_operand(m->f, select, 0), operand == 1, x.column, DEEPEST);
        x.behind = x.behind < most ? x.behind : most;
    }
    return x;
}

static need find(const mask *m, ir_ref r)
{
    const ir_func *f = m->f;
    const ir_node *n = ir_at(f, r);
    need all = { never, 0 };
    if (n->op == IR_LOAD && n->ref == m->scores) {
        const ir_ref column = ir_operand(f, r, 1);
        const bool own = ir_at(f, column)->op == IR_VAR && ir_operand(f, r, 0) == m->number;
        return (need){ always, own ? column : 0 };
    }
    if (n->op == IR_GET)
        return ir_at(f, n->ref)->op == IR_LET ? need_of(m, n->ref) : all;
    if (n->op == IR_SELECT)
        return join(need_of(m, ir_operand(f, r, 0)), join(arm(m, r, 1), arm(m, r, 2)));
    for (uint32_t i = 0; i < n->count; i++)
        all = join(all, need_of(m, ir_operand(f, r, i)));
    return all;
}

/* --- values of rows ----------------------------------------------------------------------------------------------- */

typedef struct values {
    mask m;
    uint32_t count; /* rows of scratch whose columns were stored; more than there is room for are not known */
    uint32_t tensors[ROWS];
    need of[ROWS];
    ir_table loops; /* by variable: over all columns and without updates, or another one, in the loop over rows */
} values;

enum { NO_LOOP, WHOLE, OTHER };

static void add_loops(values *v, ir_ref first, int64_t columns, bool outermost)
{
    ir_func *f = v->m.f;
    for (ir_ref s = first; s != 0; s = ir_at(f, s)->next) {
        if (ir_at(f, s)->op != IR_FOR)
            continue;
        const ir_ref lo = ir_operand(f, s, 0), hi = ir_operand(f, s, 1);
        bool whole =
            outermost && ir_is_index_0(f, lo) && ir_is_index_const(f, hi) && ir_index_value(f, hi) == columns;
        for (ir_ref inside = ir_at(f, s)->body; inside != 0; inside = ir_at(f, inside)->next)
            whole = whole && ir_at(f, inside)->op != IR_UPD && ir_at(f, inside)->op != IR_FOR;
        opjit_ir_table_set(f, &v->loops, ir_at(f, s)->ref, whole ? WHOLE : OTHER);
        add_loops(v, ir_at(f, s)->body, columns, false); /* as deep as loops nest: rule V16 */
    }
}

static need *values_of(values *v, uint32_t tensor)
{
    for (uint32_t i = 0; i < v->count; i++)
        if (v->tensors[i] == tensor)
            return &v->of[i];
    return NULL;
}

/* What was stored of it in this row, read in the same column. */
static need row_load(values *v, ir_ref load)
{
    const ir_func *f = v->m.f;
    const ir_node *n = ir_at(f, load);
    const ir_ref column = ir_operand(f, load, n->count - 1);
    need *known = values_of(v, n->ref), all = { never, 0 };
    for (uint32_t i = 0; i < n->count; i++)
        all = join(all, need_of(&v->m, ir_operand(f, load, i)));
    const bool own = ir_at(f, column)->op == IR_VAR && opjit_ir_table_get(&v->loops, column) == WHOLE;
    if (f->tensors[n->ref].role == IR_SCRATCH && known == NULL)
        return (need){ always, own ? column : 0 };
    return known != NULL && own ? (need){ known->behind, column } : all;
}

static need row_value(values *v, ir_ref r)
{
    const mask *m = &v->m;
    const ir_func *f = m->f;
    const ir_node *n = ir_at(f, r);
    need all = { never, 0 };
    if (n->op == IR_VAR) {
        const uint32_t loop = opjit_ir_table_get(&v->loops, r);
        return loop == NO_LOOP ? all : (need){ always, loop == WHOLE ? r : 0 };
    }
    if (n->op == IR_LOAD)
        return row_load(v, r);
    if (n->op == IR_GET)
        return ir_at(f, n->ref)->op == IR_LET ? need_of(m, n->ref) : all; /* updates are in loops of their own */
    for (uint32_t i = 0; i < n->count; i++)
        all = join(all, need_of(m, ir_operand(f, r, i)));
    for (uint32_t i = 1; n->op == IR_SELECT && i < 3 && all.column != 0; i++) { /* behind, it is the other arm */
        const int64_t most = behind_if(m, ir_operand(f, r, 0), i == 1, all.column, DEEPEST);
        const need other = need_of(m, ir_operand(f, r, 3 - i));
        const int64_t behind = most > other.behind ? most : other.behind;
        all.behind = behind < all.behind ? behind : all.behind;
    }
    return all;
}

/* What the row of scratch has from now on; what is stored in other loops may be anything. */
static void store_row(values *v, ir_ref store)
{
    const ir_func *f = v->m.f;
    const ir_node *n = ir_at(f, store);
    const ir_ref column = ir_operand(f, store, n->count - 1);
    need *known = values_of(v, n->ref);
    if (f->tensors[n->ref].role != IR_SCRATCH)
        return;
    if (known == NULL && v->count < ROWS) {
        v->tensors[v->count] = n->ref;
        known = &v->of[v->count++];
    }
    if (known != NULL)
        *known = ir_at(f, column)->op == IR_VAR && opjit_ir_table_get(&v->loops, column) == WHOLE
                     ? need_of(&v->m, ir_operand(f, store, 0))
                     : (need){ always, 0 };
}

bool opjit_ir_contract_find_rest(ir_func *f, ir_ref loop, uint32_t scores, ir_ref row, int64_t columns,
                                 int64_t *out_behind)
{
    values *v = opjit_rt_arena_allocate(&f->scratch, 1, sizeof *v);
    if (v == NULL) {
        f->failed = true;
        return false;
    }
    *v = (values){ .m = { .f = f, .row = row } };
    mask *m = &v->m;
    add_loops(v, ir_at(f, loop)->body, columns, true);
    m->seen = opjit_ir_reach_one(f, loop);
    m->needs = m->seen.nodes == NULL ? NULL : ARENA_ARRAY(&f->scratch, need, m->seen.count);
    if (m->needs == NULL)
        return false;
    for (uint32_t i = 0; i < m->seen.count; i++) {
        const ir_ref r = m->seen.nodes[i];
        m->needs[i] = row_value(v, r);
        opjit_ir_table_set(f, &m->place, r, i + 1);
        if (ir_at(f, r)->op == IR_STORE)
            store_row(v, r);
    }
    const need *known = values_of(v, scores);
    *out_behind = known == NULL ? always : known->behind;
    return !f->failed && *out_behind != always && *out_behind != never;
}

bool opjit_ir_contract_guess_rest(ir_func *f, ir_ref loop, ir_ref row, int64_t columns, int64_t *out_behind)
{
    values *v = opjit_rt_arena_allocate(&f->scratch, 1, sizeof *v);
    if (v == NULL) {
        f->failed = true;
        return false;
    }
    *v = (values){ .m = { .f = f, .row = row } };
    add_loops(v, ir_at(f, loop)->body, columns, true);
    const ir_reach seen = opjit_ir_reach_one(f, loop);
    int64_t behind = never;
    ir_ref column = 0;
    for (uint32_t i = 0; i < seen.count; i++) {
        const ir_ref r = seen.nodes[i];
        if (ir_at(f, r)->op == IR_VAR && opjit_ir_table_get(&v->loops, r) == WHOLE)
            column = r;
        if (ir_at(f, r)->op != IR_SELECT || !ir_is_float((ir_type)ir_at(f, r)->type) || column == 0)
            continue;
        for (uint32_t is = 0; is < 2; is++) {
            const int64_t most = behind_if(&v->m, ir_operand(f, r, 0), is != 0, column, DEEPEST);
            behind = most != always && most > behind ? most : behind;
        }
    }
    *out_behind = behind;
    return !f->failed && behind != never;
}

bool opjit_ir_contract_find_mask(ir_func *f, ir_ref loop, uint32_t scores, ir_ref row, int64_t *out_behind)
{
    mask m = { .f = f, .scores = scores, .number = ir_at(f, loop)->ref, .row = row };
    m.seen = opjit_ir_reach_one(f, loop);
    m.needs = m.seen.nodes == NULL ? NULL : ARENA_ARRAY(&f->scratch, need, m.seen.count);
    need all = { never, 0 };
    if (m.needs == NULL)
        return false;
    for (uint32_t i = 0; i < m.seen.count; i++) {
        const ir_ref r = m.seen.nodes[i];
        m.needs[i] = find(&m, r);
        opjit_ir_table_set(f, &m.place, r, i + 1);
        if (m.needs[i].behind != never &&
            (ir_at(f, r)->op == IR_LET || ir_at(f, r)->op == IR_STORE || ir_at(f, r)->op == IR_UPD))
            all.behind = m.needs[i].behind > all.behind ? m.needs[i].behind : all.behind;
    }
    *out_behind = all.behind;
    return !f->failed && all.behind != never && all.behind != always;
}
