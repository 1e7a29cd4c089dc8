/* SPDX-License-Identifier: Apache-2.0 */
/* plan.c - opjit/reflect.h's plans: a unit is lowered and scheduled as for a kernel, of which the metadata is kept and
 * nothing else. */
#include <string.h>

#include <opjit/reflect.h>

#include "frontend/frontend.h"

struct opjit_plan {
    rt_core *core;
    rt_bytes meta; /* opjit_kernel_meta and what its offsets lead to */
    rt_arena arena;
    fe_origins *origins; /* by step from first on */
    uint32_t first, count;
};

/* Of the last variant's stages. */
static opjit_status find_origins(opjit_plan *plan, const fe_unit *unit, opjit_error *error)
{
    const fe_program *program = &unit->program;

    if (unit->graph.parts != NULL || program->count == 0)
        return OPJIT_OK;
    for (uint32_t i = 0; i + 1 < program->count; i++)
        plan->first += opjit_fe_stage_count(&program->variants[i]);
    const ir_func *f = &program->variants[program->count - 1];
    plan->count = f->section_count;
    plan->origins = ARENA_ARRAY(&plan->arena, fe_origins, plan->count);
    return plan->origins == NULL ? opjit_rt_no_memory(error)
                                 : opjit_fe_origins_find(&unit->graph, f, &plan->arena, plan->origins, error);
}

static opjit_status fill(opjit_context *context, const fe_subject *subject, const fe_options *options, opjit_plan *plan,
                         opjit_error *error)
{
    fe_unit *unit;
    rt_hash key;
    opjit_status status;

    TRY(opjit_fe_subject_hash(context, subject, options, &key, error));
    TRY(opjit_fe_unit_new(context, subject, options, key, &unit, error));
    status = opjit_fe_program_make(&unit->graph, &unit->options, unit->name, &unit->core->allocator, NULL, NULL,
                                   &unit->program, error);
    if (status == OPJIT_OK)
        status = opjit_fe_meta_make(unit, &plan->meta, error);
    if (status == OPJIT_OK)
        status = find_origins(plan, unit, error);
    opjit_fe_unit_destroy(unit);
    return status;
}

static opjit_status make(opjit_context *context, const fe_subject *subject, const fe_options *options, opjit_plan **out,
                         opjit_error *error)
{
    opjit_plan *plan = opjit_rt_allocate(&context->core->allocator, sizeof *plan, _Alignof(opjit_plan));
    opjit_status status;

    if (plan == NULL)
        return opjit_rt_no_memory(error);
    memset(plan, 0, sizeof *plan);
    plan->core = opjit_rt_core_retain(context->core);
    opjit_rt_bytes_init(&plan->meta, &plan->core->allocator);
    opjit_rt_arena_init(&plan->arena, &plan->core->allocator);
    status = fill(context, subject, options, plan, error);
    if (status != OPJIT_OK)
        opjit_plan_destroy(plan);
    else
        *out = plan;
    return status;
}

void opjit_plan_destroy(opjit_plan *plan)
{
    rt_core *core;

    if (plan == NULL)
        return;
    core = plan->core;
    opjit_rt_bytes_free(&plan->meta);
    opjit_rt_arena_free(&plan->arena);
    opjit_rt_release(&core->allocator, plan, sizeof *plan);
    opjit_rt_core_release(core);
}

opjit_status opjit_plan_operator(opjit_context *context, opjit_operator *op, const opjit_compile_options *options,
                                 opjit_plan **out_plan, opjit_error *error)
{
    const fe_subject subject = { .op = op };
    fe_options read;

    opjit_rt_error_clear(error);
    if (out_plan == NULL)
        return opjit_rt_refuse_null(error, "out_plan");
    *out_plan = NULL;
    if (context == NULL || op == NULL)
        return opjit_rt_refuse_null(error, context == NULL ? "context" : "op");
    TRY(opjit_fe_options_read(context, op, options, &read, error));
    return make(context, &subject, &read, out_plan, error);
}

opjit_status opjit_plan_graph(opjit_context *context, const DML_GRAPH_DESC *desc, const opjit_compile_options *options,
                              opjit_plan **out_plan, opjit_error *error)
{
    fe_subject subject;
    fe_options read;

    opjit_rt_error_clear(error);
    if (out_plan == NULL)
        return opjit_rt_refuse_null(error, "out_plan");
    *out_plan = NULL;
    if (context == NULL || desc == NULL)
        return opjit_rt_refuse_null(error, context == NULL ? "context" : "desc");
    TRY(opjit_fe_options_read(context, NULL, options, &read, error));
    TRY(opjit_fe_graph_subject(desc, options, &subject, error));
    return make(context, &subject, &read, out_plan, error);
}

opjit_status opjit_plan_get_info(const opjit_plan *plan, opjit_kernel_info *out_info, opjit_error *error)
{
    opjit_rt_error_clear(error);
    if (plan == NULL || out_info == NULL)
        return opjit_rt_refuse_null(error, plan == NULL ? "plan" : "out_info");
    return opjit_rt_meta_info((const opjit_kernel_meta *)(const void *)plan->meta.data, out_info, error);
}

uint32_t opjit_plan_step_nodes(const opjit_plan *plan, uint32_t step, const uint32_t **out_nodes)
{
    if (plan == NULL || out_nodes == NULL || step < plan->first || step - plan->first >= plan->count)
        return 0;
    *out_nodes = plan->origins[step - plan->first].nodes;
    return plan->origins[step - plan->first].count;
}
