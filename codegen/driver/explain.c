/* SPDX-License-Identifier: Apache-2.0 */
/* explain.c - what is chosen for the loops of a function, as text (stores/plan_text.c): all that a compile does up to
 * where code is emitted, without LLVM. */
#include "codegen/driver/driver.h"
#include "codegen/plan.h"

#include <opjit/opjit.h>

static opjit_status explain_stage(const codegen_request *request, uint32_t level, cg_whole *whole, ir_ref stage,
                                  uint32_t index, rt_bytes *out, opjit_error *error)
{
    const cg_target *cpu = opjit_cg_target_find(request->target->arch);
    ir_func single;
    rt_arena arena;
    opjit_rt_arena_init(&arena, request->allocator);
    opjit_status status = opjit_cg_single(whole, stage, &arena, &single, error);
    if (status == OPJIT_OK) {
        cg_func f = { .ir = &single,
                      .whole = whole,
                      .target = request->target,
                      .cpu = cpu,
                      .arena = &arena,
                      .error = error,
                      .peak = cpu->grid || level == OPJIT_LEVEL_PEAK };
        status = opjit_cg_prepare(&f);
        if (status == OPJIT_OK)
            opjit_cg_plan_text(&f, request->node_numbers, index, out);
    }
    opjit_rt_arena_free(&arena);
    return status;
}

opjit_status opjit_cg_explain(const codegen_request *request, uint32_t level, rt_bytes *out, opjit_error *error)
{
    const ir_func *ir = request->variants[0];
    uint32_t index = 0;
    cg_whole whole;
    rt_arena arena;
    opjit_rt_arena_init(&arena, request->allocator);
    opjit_status status = opjit_cg_whole_init(&whole, ir, &arena, error);
    for (ir_ref s = ir->body; s != 0 && status == OPJIT_OK; s = ir_at(ir, s)->next)
        status = explain_stage(request, level, &whole, s, index++, out, error);
    opjit_rt_arena_free(&arena);
    if (status == OPJIT_OK && out->failed)
        status = opjit_rt_no_memory(error);
    return status;
}
