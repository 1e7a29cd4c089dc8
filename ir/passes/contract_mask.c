/* SPDX-License-Identifier: Apache-2.0 */
/* contract_mask.c - which of a product's results are never read, because selects of what reads them choose something
 * else: those of columns behind a diagonal, as of a causal mask.  Part of place; contract_rows.c leaves out the tiles of
 * only such results. */
#include "ir/passes/contraction.h"

enum { DEEPEST = 16 /* conditions in each other */ };

static const int64_t never = INT64_MIN, always = INT64_MAX;

/* What is read in a row: results of columns up to the row's number + behind; never: none, always: any. */
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
