/* SPDX-License-Identifier: Apache-2.0 */
/* emulated_kernel.c - makes kernels whose steps run in emulated.c or, for GPUs, in grid.c.  Does what compile.c does
 * for an interpreted kernel, with the emulator in place of the interpreter. */
#include "tests/machines/emulated.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/frontend.h"
#include "runtime/call/kernel_object.h"
#include "tests/machines/emulated_wire.h"
#include "tests/machines/grid.h"
#include "tests/machines/ptx_texts.h"
#include "tests/support/device_call.h"

typedef struct unit {
    fe_unit fe;
    codegen_result code;
    opjit_kernel *called; /* the same kernel for the device in OPJIT_TEST_DEVICE; NULL: stages run one by one */
} unit;

static void destroy(void *user)
{
    unit *u = user;
    rt_core *core = u->fe.core;
    opjit_kernel_release(u->called);
    opjit_rt_bytes_free(&u->code.bytes);
    opjit_rt_release(&core->allocator, u->code.entries, u->code.entry_count * sizeof *u->code.entries);
    opjit_fe_program_free(&u->fe.program);
    opjit_fe_graph_free(&u->fe.graph);
    free(u);
    opjit_rt_core_release(core);
}

/* The function that contains step `step` of the kernel. */
static const ir_func *function_of(const fe_program *made, uint32_t step)
{
    const ir_func *f = made->variants;
    for (; step >= opjit_fe_stage_count(f); f++)
        step -= opjit_fe_stage_count(f);
    return f;
}

/* Runs the whole stage: a grid can't run pieces of one. */
static opjit_status run_grid(const unit *u, uint32_t step, void *const *buffers, const uint64_t *params, void *shared,
                             opjit_error *error)
{
    const ir_func *f = function_of(&u->fe.program, step);
    grid_stage s = { .target = u->fe.options.target,
                     .code = (const char *)u->code.bytes.data,
                     .size = u->code.bytes.size,
                     .f = f,
                     .stage = step,
                     .buffers = buffers,
                     .params = params,
                     .shared = shared,
                     .reversed = (step & 1) != 0 };
    char name[128];
    for (const ir_func *before = u->fe.program.variants; before != f; before++)
        s.stage -= opjit_fe_stage_count(before);
    snprintf(name, sizeof name, "%s_v%u_s%u", u->fe.name, (unsigned)(f - u->fe.program.variants), s.stage);
    s.name = name;
    return test_grid_run(&s, error);
}

static opjit_status run(void *user, uint32_t step, void *const *buffers, const uint64_t *params, void *shared,
                        void *scratch, uint64_t begin, uint64_t end, opjit_error *error)
{
    const unit *u = user;
    const ir_func *f = function_of(&u->fe.program, step);
    uint64_t sizes[WIRE_BUFFERS] = { 0 };
    char message[256];
    if (u->called != NULL) /* all of it at the first step */
        return test_device_begins(u->called, step) ? test_device_call(u->called, buffers, params, error) : OPJIT_OK;
    if (rt_target_team(u->fe.options.target) > 0)
        return run_grid(u, step, buffers, params, shared, error);
    emulated_stage s = { u->fe.options.target,
                         u->code.bytes.data,
                         u->code.bytes.size,
                         u->code.entries != NULL ? u->code.entries[step] : 0,
                         buffers,
                         sizes,
                         0,
                         params,
                         f->param_count - 1,
                         shared,
                         scratch,
                         f->shared_size,
                         f->scratch_size,
                         begin,
                         end };
    for (uint32_t t = 1; t < f->tensor_count; t++) {
        const ir_tensor *tensor = &f->tensors[t];
        if (tensor->role != IR_IN && tensor->role != IR_OUT && tensor->role != IR_CONSTANT && tensor->role != IR_KEPT)
            continue;
        if (tensor->slot >= WIRE_BUFFERS)
            return opjit_rt_error_set(error, OPJIT_LIMIT, "more than %d buffers", (int)WIRE_BUFFERS);
        if (buffers[tensor->slot] != NULL) /* what runs once has constants alone */
            sizes[tensor->slot] = tensor->role == IR_KEPT ? f->kept_size : tensor->bytes;
        s.buffer_count = tensor->slot >= s.buffer_count ? tensor->slot + 1 : s.buffer_count;
    }
    const emulated_result result = test_emulated_run(&s, message, sizeof message);
    if (result == EMULATED_RAN)
        return OPJIT_OK;
    return opjit_rt_error_set(error, result == EMULATED_GAVE_UP ? OPJIT_UNAVAILABLE : OPJIT_INTERNAL, "%s", message);
}

static opjit_status generate(unit *u, opjit_error *error)
{
    const codegen_request request = { .variants = opjit_fe_program_list(&u->fe.program, &u->fe.graph.arena),
                                      .variant_count = u->fe.program.count,
                                      .target = u->fe.options.target,
                                      .level = u->fe.options.level,
                                      .emit = u->fe.options.target->arch == RT_ARCH_SPIRV ? CODEGEN_OBJECT
                                              : rt_target_team(u->fe.options.target) > 0  ? CODEGEN_ASM
                                                                                          : CODEGEN_CODE,
                                      .name = u->fe.name,
                                      .allocator = &u->fe.core->allocator,
                                      .verify = true };
    TRY(opjit_fe_codegen(u->fe.core, &u->fe.codegen, error));
    TRY(u->fe.codegen->compile(&request, &u->code, error));
    if (request.emit != CODEGEN_ASM)
        return OPJIT_OK;
    opjit_rt_bytes_zero_end(&u->code.bytes);
    if (u->code.bytes.failed)
        return opjit_rt_no_memory(error);
    static unsigned made; /* a process of NVIDIA's assembler takes longer than all else, so it gets a few texts only */
    if (made++ % 32 == 0)
        ptx_texts_good(strcmp(request.target->text, "nvptx:sm_80") == 0 ? "80" : "90",
                       (const char *)u->code.bytes.data);
    return OPJIT_OK;
}

/* Compiles for the device as an application would. */
static opjit_status compile_there(const fe_subject *subject, const opjit_compile_options *options, opjit_kernel **out,
                                  opjit_error *error)
{
    opjit_context *context;
    TRY(test_device_context(&context, error));
    return subject->op != NULL ? opjit_compile_operator(context, subject->op, options, out, error)
                               : opjit_compile_graph(context, subject->desc, options, out, error);
}

static opjit_status make(opjit_context *context, const fe_subject *subject, const opjit_compile_options *options,
                         unit *u, opjit_kernel **out, opjit_error *error)
{
    const rt_kernel_hooks hooks = { .user = u, .destroy = destroy, .interpret = run };
    const rt_kernel_times times = { 0 };
    void *constants[WIRE_BUFFERS] = { NULL };
    rt_bytes image;
    if (subject->op != NULL)
        TRY(opjit_fe_graph_of(subject->op, &u->fe.options, &u->fe.graph, error));
    else
        TRY(opjit_fe_graph_read(context, subject, true, &u->fe.graph, error));
    if (u->fe.graph.parts != NULL || u->fe.graph.constant_count > WIRE_BUFFERS)
        return opjit_rt_error_set(error, OPJIT_UNSUPPORTED, "custom operators or many constants");
    for (uint32_t i = 0; i < u->fe.graph.constant_count; i++) {
        constants[i] = (void *)(uintptr_t)u->fe.graph.constants[i].data;
        if (constants[i] == NULL)
            return opjit_rt_error_set(error, OPJIT_UNSUPPORTED, "a constant that is bound later");
    }
    TRY(opjit_fe_program_make(&u->fe.graph, &u->fe.options, u->fe.name, &u->fe.core->allocator, NULL, NULL,
                              &u->fe.program, error));
    TRY(getenv("OPJIT_TEST_CALLS") != NULL ? compile_there(subject, options, &u->called, error) : generate(u, error));
    opjit_rt_bytes_init(&image, &u->fe.core->allocator);
    opjit_status status = opjit_fe_image_make(&u->fe, NULL, &image, error);
    if (status == OPJIT_OK)
        status = opjit_rt_kernel_create(u->fe.core, image.data, image.size, constants, u->fe.graph.constant_count,
                                        &hooks, &times, out, error);
    opjit_rt_bytes_free(&image);
    return status;
}

/* OK without a kernel: the target is this machine's. */
static opjit_status compile_foreign(opjit_context *context, const fe_subject *subject,
                                    const opjit_compile_options *options, opjit_kernel **out, opjit_error *error)
{
    fe_options read;
    *out = NULL;
    TRY(opjit_fe_options_read(context, subject->op, options, &read, error));
    if (!test_is_foreign(read.target) || (read.flags & OPJIT_COMPILE_INTERPRET) != 0)
        return OPJIT_OK;
    if (!test_can_run(read.target->text, false))
        return opjit_rt_error_set(error, OPJIT_UNAVAILABLE, "nothing runs code for %s", read.target->text);
    unit *u = calloc(1, sizeof *u);
    if (u == NULL)
        return opjit_rt_no_memory(error);
    u->fe.core = opjit_rt_core_retain(context->core);
    opjit_rt_arena_init(&u->fe.graph.arena, &u->fe.core->allocator);
    u->fe.options = read;
    u->fe.options.own = *read.target;
    u->fe.options.target = &u->fe.options.own;
    u->fe.options.name = NULL;
    memcpy(u->fe.name, "emulated", sizeof "emulated");
    opjit_rt_bytes_init(&u->code.bytes, &u->fe.core->allocator);
    const opjit_status status = make(context, subject, options, u, out, error);
    if (status != OPJIT_OK)
        destroy(u);
    return status;
}

/* Requires that a kernel has a proof for every access. */
static opjit_status expect_proven(opjit_status status, const opjit_kernel *kernel, opjit_error *error)
{
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    if (status != OPJIT_OK)
        return status;
    TRY(opjit_kernel_get_info(kernel, &info, error));
    return info.unproven_bounds == 0
               ? OPJIT_OK
               : opjit_rt_error_set(error, OPJIT_INTERNAL, "kernel %s: %llu bounds are not proven", info.name,
                                    (unsigned long long)info.unproven_bounds);
}

opjit_status test_compile_operator(opjit_context *context, opjit_operator *op, const opjit_compile_options *options,
                                   opjit_kernel **out_kernel, opjit_error *error)
{
    const fe_subject subject = { .op = op };
    opjit_status status = compile_foreign(context, &subject, options, out_kernel, error);
    if (status == OPJIT_OK && *out_kernel == NULL)
        status = opjit_compile_operator(context, op, options, out_kernel, error);
    return expect_proven(status, *out_kernel, error);
}

opjit_status test_compile_graph(opjit_context *context, const DML_GRAPH_DESC *desc,
                                const opjit_compile_options *options, opjit_kernel **out_kernel, opjit_error *error)
{
    const fe_subject subject = { .desc = desc };
    opjit_status status = compile_foreign(context, &subject, options, out_kernel, error);
    if (status == OPJIT_OK && *out_kernel == NULL)
        status = opjit_compile_graph(context, desc, options, out_kernel, error);
    return expect_proven(status, *out_kernel, error);
}
