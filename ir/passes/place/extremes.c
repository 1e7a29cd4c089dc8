/* SPDX-License-Identifier: Apache-2.0 */
/* extremes.c - the place of an extreme of a long row by vectors: an accumulator of places has three numbers for each
 * lane, the value, its place, and whether there is one, and chooses between them at each step.  So where a reduction
 * finds the first extreme of a row's neighbours in memory, one reduction finds what it is, and another one the least
 * place that has it.  The bits stay the same: max and min of anything and a NaN are a NaN, which no value equals, so
 * then the first place of a NaN is the least one.  A step of place, for CPUs, after short rows are side by side. */
#include "ir/passes/pass.h"

enum { LEAST_LENGTH = 64 };

typedef struct finder {
    ir_func *f;
    ir_ref def;
    ir_node node;
    ir_type type; /* of the row's values */
    block list;   /* the function's definitions, rebuilt */
} finder;

static int64_t length_of(const finder *e)
{
    return ir_index_value(e->f, ir_operand(e->f, e->def, e->node.count - 1));
}

static bool is_found(finder *e)
{
    const ir_func *f = e->f;
    const ir_node *n = &e->node;
    int64_t step;
    if (n->op != IR_DEF || (n->kind != IR_ARGMAX && n->kind != IR_ARGMIN) || n->imm == 0 ||
        ir_is_of_recurrence(&f->tensors[n->ref]) || ir_is_of_recurrence(&f->tensors[opjit_ir_root(f, n->ref)]))
        return false;
    const ir_ref value = ir_operand(f, e->def, 0);
    e->type = (ir_type)ir_at(f, value)->type;
    return ir_at(f, value)->op == IR_LOAD && (e->type == IR_F32 || e->type == IR_F64 || e->type == IR_I32) &&
           ir_is_integer((ir_type)n->type) && opjit_ir_type_size((ir_type)n->type) >= 4 &&
           length_of(e) >= LEAST_LENGTH && length_of(e) <= INT32_MAX &&
           opjit_ir_step(f, value, opjit_ir_reduced(f, e->def), &step) && step == 1 && opjit_ir_in_bounds(f, value);
}

/* A tensor like the definition's, of another type. */
static uint32_t declare(finder *e, ir_type type)
{
    const ir_tensor *like = &e->f->tensors[e->node.ref];
    ir_tensor t = { .role = IR_VALUE, .type = type, .rank = like->rank, .align = like->align };
    for (uint32_t d = 0; d < t.rank; d++)
        t.sizes[d] = like->sizes[d];
    t.bytes = opjit_ir_count_elements(&t) * opjit_ir_type_size(type);
    opjit_ir_dense_strides(&t);
    return opjit_ir_tensor(e->f, &t);
}

/* The tensor's element at the coordinates of `of`. */
static ir_ref load(finder *e, uint32_t tensor, ir_ref of)
{
    ir_ref at[8] = { 0 };
    for (uint32_t d = 0; d < e->f->tensors[tensor].rank; d++)
        at[d] = opjit_ir_coordinate(e->f, of, d);
    return opjit_ir_load(e->f, tensor, at);
}

/* A reduction of as many values as the definition's; *value: what that one reads, here. */
static ir_ref add_reduction(finder *e, uint32_t tensor, ir_kind kind, ir_ref *value)
{
    ir_func *f = e->f;
    ir_map here = { 0 };
    const ir_ref def = opjit_ir_reduce(f, tensor, kind, (uint32_t)e->node.imm, (uint64_t)length_of(e));
    for (uint32_t d = 0; d < f->tensors[tensor].rank; d++)
        ir_map_set(f, &here, opjit_ir_coordinate(f, e->def, d), opjit_ir_coordinate(f, def, d));
    ir_map_set(f, &here, opjit_ir_reduced(f, e->def), opjit_ir_reduced(f, def));
    *value = opjit_ir_remake(f, &here, ir_operand(f, e->def, 0));
    opjit_ir_block_add(f, &e->list, def);
    return def;
}

/* Replaces the definition by the extremes, and the least places of their equals. */
static void find(finder *e)
{
    ir_func *f = e->f;
    ir_ref value;
    const bool is_same = e->node.type == IR_U32;
    const uint32_t best = declare(e, e->type), place = is_same ? e->node.ref : declare(e, IR_U32);
    const ir_ref extreme = add_reduction(e, best, ir_arg_is_least((ir_kind)e->node.kind) ? IR_KMIN : IR_KMAX, &value);
    opjit_ir_set_value(f, extreme, value);
    const ir_ref least = add_reduction(e, place, IR_KMIN, &value);
    ir_ref has = ir_make2(f, IR_EQ, IR_BOOL, value, load(e, best, least));
    if (ir_is_float(e->type))
        has = ir_make2(f, IR_OR, IR_BOOL, has, ir_make2(f, IR_NE, IR_BOOL, value, value));
    const ir_ref own = ir_make1(f, IR_ELEM, IR_U32, opjit_ir_reduced(f, least));
    opjit_ir_set_value(f, least,
                       ir_make3(f, IR_SELECT, IR_NONE, has, own, opjit_ir_const(f, IR_U32, UINT32_MAX)));
    ir_took(f, IR_STEP_EXTREMES);
    if (is_same)
        return;
    const ir_ref as = opjit_ir_def(f, e->node.ref);
    opjit_ir_set_value(f, as, ir_make1(f, IR_CAST, (ir_type)e->node.type, load(e, place, as)));
    opjit_ir_block_add(f, &e->list, as);
}

void opjit_ir_find_extremes(ir_func *f)
{
    finder e = { .f = f };
    ir_ref next;
    for (ir_ref s = f->body; s != 0 && !f->failed; s = next) {
        next = ir_at(f, s)->next;
        e.def = s;
        e.node = *ir_at(f, s);
        if (is_found(&e))
            find(&e);
        else
            opjit_ir_block_add(f, &e.list, s);
    }
    if (!f->failed)
        f->body = e.list.first;
}
