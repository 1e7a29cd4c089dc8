/* SPDX-License-Identifier: Apache-2.0 */
/* ir_passes.c - see ir_passes.h. */
#include "tests/support/ir_passes.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BUFFERS = 64 };

const char *ir_passes_text(const ir_func *f, rt_bytes *text)
{
    opjit_rt_bytes_init(text, &opjit_rt_default_allocator);
    opjit_ir_print(f, text);
    opjit_rt_bytes_zero_end(text);
    ck_assert(!text->failed);
    return (const char *)text->data;
}

void ir_passes_interpret(ir_func *f, void *const *memory)
{
    opjit_error error = { 0 };
    void *buffers[MOST_BUFFERS] = { NULL };
    uint32_t kept = 0; /* the slot behind the others */
    ck_assert(opjit_ir_layout(f, &error) == OPJIT_OK);
    for (uint32_t t = 1; t < f->tensor_count; t++) {
        const ir_tensor *tensor = &f->tensors[t];
        ck_assert_uint_lt(tensor->slot, MOST_BUFFERS);
        if (tensor->role == IR_IN || tensor->role == IR_OUT || tensor->role == IR_CONSTANT)
            buffers[tensor->slot] = memory[tensor->slot];
        kept = tensor->role == IR_KEPT ? tensor->slot : kept;
    }
    if (kept != 0) {
        buffers[kept] = malloc(f->kept_size);
        ck_assert_ptr_nonnull(buffers[kept]);
    }
    ir_run run = { .buffers = buffers, .shared = malloc(f->shared_size + 1), .scratch = malloc(f->scratch_size + 1) };
    ck_assert(run.shared != NULL && run.scratch != NULL);
    memset(run.shared, 0x5a, f->shared_size + 1);
    memset(run.scratch, 0x5a, f->scratch_size + 1);
    for (ir_ref s = f->body; s != 0; s = f->phase < IR_PLACED ? 0 : ir_at(f, s)->next, run.stage++) {
        run.end = f->phase < IR_PLACED ? 0 : (uint64_t)ir_index_value(f, ir_operand(f, s, 1));
        ck_assert_msg(opjit_ir_interpret(f, &run, &error) == OPJIT_OK, "%s", error.message);
    }
    free(run.shared);
    free(run.scratch);
    if (kept != 0)
        free(buffers[kept]);
}

void ir_passes_run_to(ir_func *f, const ir_pass *pass, const ir_pass_env *env, void *const *memory,
                      ir_passes_check *check, const void *user)
{
    opjit_error error = { 0 };
    rt_bytes once, twice;
    uint32_t unproven = 0;
    const opjit_status status = opjit_ir_run_passes(f, env, pass->leaves, &error);
    const char *const text = ir_passes_text(f, &once);
    if (status != OPJIT_OK)
        fprintf(stderr, "%s\n", text);
    ck_assert_msg(status == OPJIT_OK, "%s", error.message);
    ck_assert(opjit_ir_count_unproven(f, &unproven, &error) == OPJIT_OK);
    if (unproven != 0)
        fprintf(stderr, "%s\n", text);
    ck_assert_msg(unproven == 0, "after %s: %u accesses have no proof", pass->name, unproven);
    for (uint32_t t = 1; t < f->tensor_count; t++)
        if (f->tensors[t].role == IR_OUT)
            memset(memory[f->tensors[t].slot], 0xa5, f->tensors[t].bytes);
    ir_passes_interpret(f, memory);
    check(user, memory, pass->name, text);
    ck_assert(pass->run(f, env, &error) == OPJIT_OK);
    ck_assert_str_eq(text, ir_passes_text(f, &twice));
    opjit_rt_bytes_free(&once);
    opjit_rt_bytes_free(&twice);
}
