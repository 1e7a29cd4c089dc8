/* SPDX-License-Identifier: Apache-2.0 */
/* dynamic_stages.c - a generalization goes through the last passes, and how often each of its stages runs. */
#include "frontend/frontend.h"

#include "ir/general/general.h"

/* The form of a stage's iterations: that of the stage as it was, or the constant of one that the last passes made. */
static opjit_status extent_of(const ir_func *f, ir_ref stage, const ir_ref *stages, const opjit_size_form *old,
                              uint32_t count, opjit_size_form *out, opjit_error *error)
{
    const ir_ref end = ir_operand(f, stage, 1);

    for (uint32_t i = 0; i < count; i++)
        if (stages[i] == stage) {
            *out = old[i];
            return OPJIT_OK;
        }
    if (!ir_is_index_const(f, end))
        return opjit_rt_refuse(error, OPJIT_UNSUPPORTED,
                               "{graph}: {!dims}the iterations of a step follow from no dimension in a known way; "
                               "compile each size by itself");
    *out = (opjit_size_form){ .constant = ir_index_value(f, end), .divisor = 1, .times = 1 };
    return OPJIT_OK;
}

/* The later passes.  The last one puts stages that run once before the others, drops equal ones, and may make some:
 * forms of stages follow. */
opjit_status opjit_fe_expand_general(const ir_pass_env *own, rt_arena *arena, struct ir_general *general,
                                     opjit_error *error)
{
    ir_func *f = &general->f;
    ir_ref *const stages = ARENA_ARRAY(arena, ir_ref, general->extent_count);
    opjit_size_form *const old =
        opjit_rt_arena_copy(arena, general->extents, general->extent_count, sizeof *general->extents);
    uint32_t count = 0, total = 0;

    if (stages == NULL || old == NULL)
        return opjit_rt_no_memory(error);
    for (ir_ref r = f->body; r != 0 && count < general->extent_count; r = ir_at(f, r)->next)
        stages[count++] = r;
    ir_pass_env env = *own;
    env.verify = false; /* of flat tensors there is no proof; instances have one */
    TRY(opjit_ir_run_passes(f, &env, opjit_ir_last_pass(env.target), error));
    for (ir_ref r = f->body; r != 0; r = ir_at(f, r)->next)
        total++;
    general->extents = ARENA_ARRAY(&general->arena, opjit_size_form, total);
    if (general->extents == NULL)
        return opjit_rt_no_memory(error);
    general->extent_count = 0; /* other than before where stages were equal */
    for (ir_ref r = f->body; r != 0; r = ir_at(f, r)->next)
        TRY(extent_of(f, r, stages, old, count, &general->extents[general->extent_count++], error));
    return OPJIT_OK;
}
