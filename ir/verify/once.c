/* SPDX-License-Identifier: Apache-2.0 */
/* once.c - V22: a stage that runs once, before any call, sees constants and what stages before it stored; it stores
 * temps that such stages alone read, or kept tensors, which nobody else stores.  Part of the verifier. */
#include "ir/verify/verifier.h"

#define FAIL(rule, node, ...) return opjit_ir_verify_fail(v, rule, node, __VA_ARGS__)

/* Marks the temps that the stage stores, or looks whether it reads one that is marked. */
static opjit_status check_stage(verifier *v, ir_ref stage, bool *of_once)
{
    const ir_func *f = v->f;
    const bool once = (ir_at(f, stage)->flags & IR_STAGE_ONCE) != 0;
    const rt_arena_mark mark = rt_arena_position(&f->scratch);
    const ir_reach seen = opjit_ir_reach_one(v->f, stage);
    opjit_status status = seen.nodes == NULL ? opjit_rt_no_memory(v->error) : OPJIT_OK;
    for (uint32_t k = 0; k < seen.count && status == OPJIT_OK; k++) {
        const ir_node *n = ir_at(f, seen.nodes[k]);
        const bool is_store = n->op == IR_STORE;
        if (once && (n->op == IR_PARAM || n->op == IR_HEAD))
            status = opjit_ir_verify_fail(v, 22, seen.nodes[k], "a stage that runs once reads what a call gives");
        if (!is_store && n->op != IR_LOAD)
            continue;
        const uint32_t root = opjit_ir_root(f, n->ref);
        const ir_role role = f->tensors[root].role;
        if (once && !(ir_is_memory(role) || (role == IR_CONSTANT && !is_store)))
            status = opjit_ir_verify_fail(v, 22, seen.nodes[k], "a stage that runs once %s what a call gives",
                                          is_store ? "stores" : "reads");
        else if (!once && is_store && role == IR_KEPT)
            status = opjit_ir_verify_fail(v, 22, seen.nodes[k], "a stage of each call stores what is kept");
        else if (!once && role == IR_TEMP && of_once[root])
            status = opjit_ir_verify_fail(v, 22, seen.nodes[k], "a temp of stages that run once is not kept");
        of_once[root] = of_once[root] || (once && is_store);
    }
    opjit_rt_arena_rewind(&v->f->scratch, mark);
    return status;
}

opjit_status opjit_ir_verify_once(verifier *v)
{
    const ir_func *f = v->f;
    bool *of_once = NULL, calls = false, any = false;
    for (ir_ref s = f->body; s; s = ir_at(f, s)->next) {
        const bool once = (ir_at(f, s)->flags & IR_STAGE_ONCE) != 0;
        if (once && calls)
            FAIL(22, s, "it runs once, and a stage of each call stands before it");
        if (once && ir_at(f, s)->vec > 0)
            FAIL(22, s, "it runs once, by a team of threads");
        calls = calls || !once;
        any = any || once;
    }
    for (uint32_t t = 1; t < f->tensor_count; t++)
        any = any || f->tensors[t].role == IR_KEPT;
    if (!any)
        return OPJIT_OK;
    of_once = ARENA_ARRAY(&v->f->scratch, bool, f->tensor_count);
    if (of_once == NULL)
        return opjit_rt_no_memory(v->error);
    for (ir_ref s = f->body; s; s = ir_at(f, s)->next)
        TRY(check_stage(v, s, of_once));
    return OPJIT_OK;
}
