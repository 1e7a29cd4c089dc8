/* SPDX-License-Identifier: Apache-2.0 */
/* passes.c - the pipeline: one array, and the runner, which verifies and traces so that passes don't have to. */
#include "ir/passes/pass.h"

#include <string.h>

const ir_pass opjit_ir_passes[] = {
    { "fold", IR_FOLDED, opjit_ir_pass_fold },
    { "place", IR_PLACED, opjit_ir_pass_place },
    { "collapse", IR_COLLAPSED, opjit_ir_pass_collapse },
    { "split", IR_SPLIT, opjit_ir_pass_split },
    { "cleanup", IR_CLEANED, opjit_ir_pass_cleanup },
    { "schedule", IR_SCHEDULED, opjit_ir_pass_schedule },
    { "expand", IR_EXPANDED, opjit_ir_pass_expand },
    { "grid", IR_GRIDDED, opjit_ir_pass_grid },
    { NULL, IR_LOWERED, NULL },
};

const ir_step_info opjit_ir_steps[IR_STEP_COUNT] = {
#define IR_STEP(name, phase, text, what) { text, what, IR_##phase },
#include "ir/passes/steps.def"
#undef IR_STEP
};

enum {
    MANY_NODES = 4096
}; /* of a function that is packed after each pass, so that unused nodes don't accumulate */

static opjit_status verify(const ir_func *f, const ir_pass_env *env, const char *when, const char *pass,
                           opjit_error *error)
{
    opjit_status status = env->verify ? opjit_ir_verify(f, error) : OPJIT_OK;
    if (status == OPJIT_LIMIT && f->phase >= IR_SPLIT) { /* as far as we know it is right: the compile continues */
        opjit_rt_error_clear(error);
        status = OPJIT_OK;
    }
    if (status != OPJIT_OK)
        opjit_rt_error_prefix(error, "%s %s", when, pass);
    return status;
}

opjit_status opjit_ir_run_passes(ir_func *f, const ir_pass_env *env, ir_phase last, opjit_error *error)
{
    if (f->failed)
        return opjit_rt_no_memory(error);
    TRY(verify(f, env, "before", "passes", error));
    if (env->trace != NULL && f->phase == IR_LOWERED)
        env->trace(env->user, "lower", f);
    for (const ir_pass *pass = opjit_ir_passes; pass->name != NULL && pass->leaves <= last; pass++) {
        bool changed;
        if (pass->leaves <= f->phase)
            continue;
        if (env->cancel != NULL && atomic_load_explicit(env->cancel, memory_order_relaxed))
            return opjit_rt_refuse(error, OPJIT_CANCELLED, "{!argument}the {job} was {cancelled}");
        f->section_count = 0; /* a pass makes nodes anywhere */
        f->sections = NULL;
        memset(f->steps, 0, sizeof f->steps);
        const rt_arena_mark mark = rt_arena_position(&f->scratch);
        const opjit_status status = pass->run(f, env, &changed, error);
        opjit_rt_arena_rewind(&f->scratch, mark);
        if (status != OPJIT_OK) {
            opjit_rt_error_prefix(error, "pass %s", pass->name);
            return status;
        }
        f->phase = pass->leaves;
        if (f->phase >= IR_PLACED && f->node_count > MANY_NODES)
            TRY(opjit_ir_pack(f, error));
        TRY(verify(f, env, "after", pass->name, error));
        if (env->trace != NULL)
            env->trace(env->user, pass->name, f);
    }
    return OPJIT_OK;
}
