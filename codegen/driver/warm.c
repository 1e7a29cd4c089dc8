/* SPDX-License-Identifier: Apache-2.0 */
/* warm.c - a first compile, so that the next one is warm. */
#include "codegen/driver/driver.h"

#include <opjit/opjit.h>

/* Compiles a stage that does nothing.  Besides making the machine, this brings LLVM's code into memory, which takes
 * most of the time of a first compile. */
opjit_status opjit_cg_warm(const rt_target *target, const opjit_allocator *allocator, opjit_error *error)
{
    ir_func f;
    codegen_result out;
    ir_ref tail = 0;
    TRY(opjit_ir_init(&f, allocator, "warm", error));
    const ir_ref stage = opjit_ir_stage(&f, opjit_ir_index(&f, 0), opjit_ir_index(&f, 1), 1);
    opjit_ir_append(&f, 0, &tail, stage);
    if (!f.failed)
        f.nodes[stage].vec = (uint16_t)rt_target_team(target); /* as pass grid leaves it */
    const ir_func *const variant = &f;
    const codegen_request request = { .variants = &variant,
                                      .variant_count = 1,
                                      .target = target,
                                      .level = OPJIT_LEVEL_QUICK,
                                      .emit = rt_target_team(target) > 0 ? CODEGEN_ASM : CODEGEN_CODE,
                                      .name = "warm",
                                      .allocator = allocator };
    opjit_status status = f.failed ? opjit_rt_no_memory(error) : opjit_cg_compile(&request, &out, error);
    if (status == OPJIT_OK) {
        opjit_rt_release(allocator, out.entries, out.entry_count * sizeof(uint64_t));
        opjit_rt_bytes_free(&out.bytes);
    }
    opjit_ir_free(&f);
    return status;
}
