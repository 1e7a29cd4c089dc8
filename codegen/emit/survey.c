/* SPDX-License-Identifier: Apache-2.0 */
/* survey.c - looks at everything a stage reaches before anything is emitted: what depends on which loop, what may be
 * computed before a loop, and whether the target can do it.  Emits nothing; emission after it fails only for lack of
 * memory. */
#include "codegen/cg.h"
#include "codegen/softops/kept.h"
#include "ir/eval/numerics.h"

typedef struct planner {
    cg_func *f;
    uint32_t depth;       /* enclosing loops */
    ir_ref innermost;     /* VAR of the innermost loop */
    bool distributed;     /* an enclosing loop is distributed */
    uint32_t statement;   /* twice the number of that whose operands are noted */
    uint32_t sure_count;
    ir_ref sure[8];       /* loads that it evaluates whatever its selects choose, the first ones */
    uint64_t written_low; /* tensors that the stage stores to, by root: the first 64 */
    bool written_high;    /* and whether there is any other */
} planner;

static opjit_status refuse(const planner *p, const ir_node *n, ir_type type)
{
    return opjit_rt_refuse(p->f->error, OPJIT_UNSUPPORTED, "{!codegen}{%s} of {%s} can't be compiled for %s",
                           n->op < IR_OP_COUNT ? opjit_ir_op_infos[n->op].name : "this node", opjit_ir_type_name(type),
                           p->f->target->text);
}

/* --- memory that changes ------------------------------------------------------------------------------------------ */

static void note_written(planner *p, uint32_t tensor)
{
    tensor = opjit_ir_root(p->f->ir, tensor);
    if (tensor < 64)
        p->written_low |= (uint64_t)1 << tensor;
    else
        p->written_high = true;
}

/* Tensors of a kernel for many sizes are described with the largest ones, and a loop that goes past the end of a
 * smaller one may stay inside of that: a load under a select is in bounds because of the select, unless its statement
 * evaluates it anyway.  The kernel's own memory does have the room of the largest sizes: what is loaded past the end of
 * less is read, and not chosen. */

/* What the statement evaluates whatever its selects choose. */
static void note_sure(planner *p, ir_ref node, uint32_t depth)
{
    const ir_node *n = ir_at(p->f->ir, node);
    cg_info *info = &p->f->info[node];
    if (depth == 0 || info->noted == p->statement)
        return;
    info->noted = p->statement;
    if (n->op == IR_LOAD && p->sure_count < sizeof p->sure / sizeof *p->sure)
        p->sure[p->sure_count++] = node;
    for (uint32_t i = 0; i < (n->op == IR_SELECT ? 1 : n->count); i++)
        note_sure(p, ir_operand(p->f->ir, node, i), depth - 1);
}

/* Whether the statement evaluates a load of the same element anyway, as the comparison of what is chosen then. */
static bool is_sure(const planner *p, ir_ref node)
{
    bool sure = false;
    for (uint32_t i = 0; i < p->sure_count && !sure && ir_at(p->f->ir, node)->op == IR_LOAD; i++)
        sure = opjit_ir_same(p->f->ir, node, p->sure[i]);
    return sure;
}

/* The rest, which is chosen. */
static void note_chosen(planner *p, ir_ref node, uint32_t depth)
{
    const ir_node *n = ir_at(p->f->ir, node);
    cg_info *info = &p->f->info[node];
    if (depth == 0 || info->noted > p->statement || (info->noted != p->statement && is_sure(p, node)))
        return;
    info->chosen |= info->noted != p->statement;
    info->noted = p->statement + 1;
    for (uint32_t i = 0; i < n->count; i++)
        note_chosen(p, ir_operand(p->f->ir, node, i), depth - 1);
}

static void note_stores(planner *p, ir_ref first)
{
    for (ir_ref s = first; s != 0; s = ir_at(p->f->ir, s)->next) {
        const ir_node *n = ir_at(p->f->ir, s);
        p->statement += 2;
        p->sure_count = 0;
        for (uint32_t i = 0; i < n->count && p->f->ir->first_dim != 0; i++)
            note_sure(p, ir_operand(p->f->ir, s, i), CG_MAX_DEPTH);
        for (uint32_t i = 0; i < n->count && p->f->ir->first_dim != 0; i++)
            note_chosen(p, ir_operand(p->f->ir, s, i), CG_MAX_DEPTH);
        if (n->op == IR_STORE)
            note_written(p, n->ref);
        if (n->op == IR_FOR)
            note_stores(p, n->body);
    }
}

/* Whether the tensor shows an input whose memory an output of any stage may share. */
static bool may_be_output(const cg_func *f, uint32_t tensor)
{
    const uint32_t root = opjit_ir_root(f->ir, tensor);
    return f->ir->tensors[root].role == IR_IN && f->aliased[root];
}

/* An input may share an output's memory if the function says so.  Rule V15 keeps such loads before the stores that
 * replace what they read, so they may be remembered within a statement but not moved. */
static bool may_change(const planner *p, uint32_t tensor)
{
    const uint32_t root = opjit_ir_root(p->f->ir, tensor);
    if (root >= 64 ? p->written_high : (p->written_low >> root & 1) != 0)
        return true;
    return may_be_output(p->f, tensor);
}

/* --- expressions -------------------------------------------------------------------------------------------------- */

/* The type under which the target's table has the node. */
static ir_type table_type(const ir_func *ir, ir_ref node)
{
    const ir_node *n = ir_at(ir, node);
    const bool by_operand =
        n->op == IR_EQ || n->op == IR_NE || n->op == IR_LT || n->op == IR_LE || n->op == IR_TO_INDEX;
    return (ir_type)(by_operand ? ir_at(ir, ir_operand(ir, node, 0))->type : n->type);
}

/* Whether the load's address is inside its tensor whatever the loops do: coordinates that it does not depend on, of
 * values that are repeated along a dimension, may be any. */
static bool has_address(const ir_func *ir, ir_ref load)
{
    const ir_tensor *t = &ir->tensors[ir_at(ir, load)->ref];
    bool inside = true;
    for (uint32_t d = 0; d < t->rank && inside; d++)
        inside = t->strides[d] == 0 || opjit_ir_within(ir, ir_operand(ir, load, d), t->sizes[d]);
    return inside;
}

static void plan_leaf(planner *p, ir_ref node, cg_info *info)
{
    const ir_node *n = ir_at(p->f->ir, node);
    if (n->op == IR_GET) {
        const cg_info *owner = &p->f->info[n->ref];
        info->vary |= owner->vary;
        info->inside |= owner->inside;
        info->fresh |= ir_at(p->f->ir, n->ref)->op == IR_ACC;
        info->loads |= owner->loads;
        info->late |= owner->late;
    } else if (n->op == IR_LOAD) {
        info->loads = true;
        info->fresh |= may_change(p, n->ref);
        const ir_role role = p->f->ir->tensors[opjit_ir_root(p->f->ir, n->ref)].role;
        const bool known = (!info->chosen || ir_is_memory(role)) && has_address(p->f->ir, node);
        info->outside = !known && (info->chosen || p->f->ir->first_dim == 0);
        info->guarded |= info->outside;
        info->stays |= !known;
    }
}

/* What is under a mask of its own is emitted again wherever it occurs: a tree, which shared nodes can make large. */
static opjit_status plan_guards(planner *p, ir_ref node, cg_info *info)
{
    const ir_func *ir = p->f->ir;
    uint64_t nodes = info->guarded;
    for (uint32_t i = 0; i < ir_at(ir, node)->count; i++) {
        const cg_info *o = &p->f->info[ir_operand(ir, node, i)];
        nodes += o->guarded_nodes;
        info->guards = o->guards > info->guards ? o->guards : info->guards;
    }
    info->guards += ir_at(ir, node)->op == IR_SELECT && info->guarded;
    if (info->guards > CG_MAX_GUARDS || nodes > CG_MAX_GUARDED)
        return opjit_rt_refuse(p->f->error, OPJIT_LIMIT,
                               "{!codegen}{!loads}an expression has more than %d nested or %d guarded loads",
                               CG_MAX_GUARDS, CG_MAX_GUARDED);
    info->guarded_nodes = (uint32_t)nodes;
    return OPJIT_OK;
}

/* Whether a stage can reach the tensor and memory can hold its elements. */
static bool has_memory(const planner *p, uint32_t tensor)
{
    const ir_tensor *t = &p->f->ir->tensors[tensor];
    const ir_role role = p->f->ir->tensors[opjit_ir_root(p->f->ir, tensor)].role;
    return ir_is_element(t->type) && role != IR_VALUE && role != IR_VIEW;
}

enum { MATH_WEIGHT = 40 }; /* nodes of a mathematical function's sequence, at least */

static opjit_status plan_expr(planner *p, ir_ref node, uint32_t depth)
{
    const ir_func *ir = p->f->ir;
    const ir_node *n = ir_at(ir, node);
    cg_info *info = &p->f->info[node];
    if (info->seen)
        return OPJIT_OK;
    if (depth == 0)
        return opjit_rt_refuse(p->f->error, OPJIT_LIMIT, "{!codegen}an {expression} is more than %d operations deep",
                               CG_MAX_DEPTH);
    uint64_t weight = (opjit_ir_op_infos[n->op].flags & IR_FLAG_M) != 0 ? MATH_WEIGHT : 1;
    const bool load = n->op == IR_LOAD && has_address(ir, node);
    for (uint32_t i = 0; i < n->count; i++) {
        const ir_ref operand = ir_operand(ir, node, i);
        TRY(plan_expr(p, operand, depth - 1));
        const cg_info *o = &p->f->info[operand];
        if (load && ir->tensors[n->ref].strides[i] == 0)
            continue; /* never evaluated */
        info->vary |= o->vary;
        info->inside |= o->inside;
        info->fresh |= o->fresh;
        info->loads |= o->loads;
        info->late |= o->late || ir_at(ir, operand)->type != IR_INDEX;
        info->guarded |= o->guarded;
        info->stays |= o->stays;
        info->calls = opjit_cg_fewer_calls(info->calls, o->calls);
        weight += o->weight;
    }
    info->calls = opjit_cg_fewer_calls(info->calls, opjit_cg_math_copies(p->f, n));
    plan_leaf(p, node, info);
    if (n->op == IR_HEAD)
        p->f->head = p->f->head_count++ == 0 ? node : 0;
    info->weight = weight > CG_MAX_WEIGHT ? CG_MAX_WEIGHT + 1 : (uint32_t)weight;
    const ir_type type = table_type(ir, node);
    if (opjit_cg_way(p->f->cpu, p->f->target, (ir_op)n->op, type) == CG_REFUSED ||
        (n->op == IR_LOAD && !has_memory(p, n->ref)))
        return refuse(p, n, type);
    info->seen = true;
    return plan_guards(p, node, info);
}

/* --- statements --------------------------------------------------------------------------------------------------- */

static opjit_status plan_block(planner *p, ir_ref first);

/* Surveys lo, hi and the body, with the loop's variable known inside. */
static opjit_status plan_loop(planner *p, ir_ref loop)
{
    const ir_node *n = ir_at(p->f->ir, loop);
    const ir_ref outer = p->innermost;
    if (p->depth == CG_MAX_LOOPS)
        return opjit_rt_refuse(p->f->error, OPJIT_LIMIT, "{!codegen}{loops} are nested more than %d deep",
                               CG_MAX_LOOPS);
    TRY(plan_expr(p, ir_operand(p->f->ir, loop, 0), CG_MAX_DEPTH));
    TRY(plan_expr(p, ir_operand(p->f->ir, loop, 1), CG_MAX_DEPTH));
    cg_info *var = &p->f->info[n->ref];
    *var = (cg_info){ .vary = 1u << p->depth, .inside = 1u << p->depth, .weight = 1, .seen = true };
    p->f->streams |= n->op == IR_FOR && (n->flags & IR_FOR_NT) != 0;
    const bool distributed = p->distributed;
    p->distributed = distributed || (n->op == IR_FOR && (n->flags & IR_FOR_DISTRIBUTE) != 0);
    p->innermost = n->ref;
    p->depth++;
    TRY(plan_block(p, n->body));
    p->depth--;
    p->innermost = outer;
    p->distributed = distributed;
    return OPJIT_OK;
}

static uint32_t loops_around(const planner *p)
{
    return p->depth >= 32 ? UINT32_MAX : (1u << p->depth) - 1;
}

static opjit_status plan_acc(planner *p, ir_ref statement)
{
    const ir_node *n = ir_at(p->f->ir, statement);
    const bool arg = ir_kind_is_arg((ir_kind)n->kind);
    if (n->imm > IR_REDUCE_LANES || (n->imm != 0 && !is_power_of_two(n->imm)) || n->kind == IR_KIND_NONE ||
        n->kind >= IR_KIND_COUNT)
        return opjit_rt_refuse(p->f->error, OPJIT_UNSUPPORTED,
                               "{!codegen}an {accumulator} %s with {%llu} lanes can't be compiled",
                               opjit_ir_kind_name((ir_kind)n->kind), (unsigned long long)n->imm);
    if (!arg && !ir_is_element((ir_type)n->type))
        return refuse(p, n, (ir_type)n->type);
    p->f->info[statement] = (cg_info){ .vary = loops_around(p),
                                       .inside = loops_around(p),
                                       .fresh = true,
                                       .loads = true,
                                       .late = true,
                                       .weight = 1,
                                       .seen = true };
    cg_acc *const acc = p->f->accs[statement] = ARENA_NEW(p->f->arena, cg_acc);
    if (!acc)
        return opjit_rt_no_memory(p->f->error);
    acc->type = (ir_type)n->type;
    acc->own = p->distributed;
    return OPJIT_OK;
}

static void plan_upd(planner *p, ir_ref statement)
{
    const ir_func *ir = p->f->ir;
    cg_acc *acc = p->f->accs[ir_at(ir, statement)->ref];
    const ir_interval k = opjit_ir_interval(ir, p->innermost);
    acc->apart = p->distributed && !acc->own;
    if (ir_at(ir, ir_at(ir, statement)->ref)->imm != 0 &&
        (k.lo < 0 || k.hi >= ir_at(ir, ir_at(ir, statement)->ref)->block))
        acc->blocked = true;
    if (ir_kind_is_arg((ir_kind)ir_at(ir, ir_at(ir, statement)->ref)->kind))
        acc->type = (ir_type)ir_at(ir, ir_operand(ir, statement, 0))->type;
}

static opjit_status plan_statement(planner *p, ir_ref s)
{
    const ir_func *ir = p->f->ir;
    const ir_node *n = ir_at(ir, s);
    if (n->op == IR_FOR)
        return plan_loop(p, s);
    if (n->op == IR_ACC)
        return plan_acc(p, s);
    if (n->op == IR_SYNC && p->f->cpu->grid)
        return OPJIT_OK;
    if ((n->op != IR_LET && n->op != IR_UPD && n->op != IR_STORE) || (n->op == IR_STORE && !has_memory(p, n->ref)))
        return refuse(p, n, (ir_type)n->type);
    for (uint32_t i = 0; i < n->count; i++)
        TRY(plan_expr(p, ir_operand(ir, s, i), CG_MAX_DEPTH));
    if (n->op == IR_LET) {
        cg_info *info = &p->f->info[s];
        *info = p->f->info[ir_operand(ir, s, 0)];
        info->inside |= loops_around(p);
    }
    if (n->op == IR_UPD)
        plan_upd(p, s);
    return OPJIT_OK;
}

static opjit_status plan_block(planner *p, ir_ref first)
{
    for (ir_ref s = first; s != 0; s = ir_at(p->f->ir, s)->next)
        TRY(plan_statement(p, s));
    return OPJIT_OK;
}

opjit_status opjit_cg_survey(cg_func *f, ir_ref stage)
{
    planner p = { .f = f };
    if (ir_at(f->ir, stage)->op != IR_STAGE)
        return opjit_rt_refuse(f->error, OPJIT_UNSUPPORTED, "{!codegen}{kernel} {%s} has a statement that is no stage",
                               f->ir->name);
    if (f->cpu->grid ? ir_at(f->ir, stage)->vec == 0 : ir_at(f->ir, stage)->vec != 0)
        return opjit_rt_refuse(f->error, OPJIT_UNSUPPORTED,
                               "{!codegen}{kernel} {%s} is %sfor a grid of threads, and %s is %sone", f->ir->name,
                               f->cpu->grid ? "not " : "", f->target->text, f->cpu->grid ? "" : "not ");
    note_stores(&p, ir_at(f->ir, stage)->body);
    return plan_loop(&p, stage);
}
