/* SPDX-License-Identifier: Apache-2.0 */
/* explain.c - what is chosen for the loops of a function, as text (stores/plan_text.c): all that a compile does up to
 * where code is emitted, without LLVM. */
#include "codegen/driver/driver.h"
#include "codegen/plan.h"

#include <opjit/opjit.h>

static opjit_status explain_stage(const codegen_request *request, uint32_t level, const cg_single *stage,
                                  uint32_t index, rt_bytes *out, opjit_error *error)
{
    const cg_target *cpu = opjit_cg_target_find(request->target->arch);
    rt_arena arena;
    opjit_rt_arena_init(&arena, request->allocator);
    cg_func f = { .ir = &stage->ir,
                  .aliased = stage->aliased,
                  .nodes = stage->nodes,
                  .target = request->target,
                  .cpu = cpu,
                  .arena = &arena,
                  .error = error,
                  .peak = cpu->grid || level == OPJIT_LEVEL_PEAK,
                  .direct = level == OPJIT_LEVEL_QUICK && !request->llvm_only && opjit_cg_writes(request->target) };
    const opjit_status status = opjit_cg_prepare(&f);
    if (status == OPJIT_OK)
        opjit_cg_plan_text(&f, request->node_numbers, index, out);
    opjit_rt_arena_free(&arena);
    return status;
}

opjit_status opjit_cg_explain(const codegen_request *request, const cg_stages *stages, uint32_t level, rt_bytes *out,
                              opjit_error *error)
{
    for (uint32_t i = 0; i < stages->variants[1]; i++)
        TRY(explain_stage(request, level, &stages->at[i], i, out, error));
    return out->failed ? opjit_rt_no_memory(error) : OPJIT_OK;
}
