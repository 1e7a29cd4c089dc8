/* SPDX-License-Identifier: Apache-2.0 */
/* explain.c - what a compile would do, as texts: the IR after lowering and after each pass, and the plan of each loop.
 * Nothing is kept, and no code is made. */
#include <string.h>

#include "frontend/frontend.h"
#include "ir/core/internal.h"

typedef struct explainer {
    opjit_explain_fn fn;
    void *user;
    bool failed; /* a text could not be printed for lack of memory */
} explainer;

enum { HEX_SHOWN = 64 }; /* digits of a constant's bytes; of longer ones so many, and "..." */

/* Appends the text with the bytes of large constants cut. */
static void put_shortened(rt_bytes *out, const char *text, size_t size)
{
    size_t from = 0, digits = 0;

    for (size_t i = 0; i < size; i++) {
        const bool is_digit = digits != 0 && text[i] != '"';
        digits = is_digit ? digits + 1 : text[i] == '"' && i >= 2 && text[i - 1] == ' ' && text[i - 2] == '=';
        if (digits == HEX_SHOWN + 2) {
            const char *const end = memchr(text + i, '"', size - i);
            opjit_rt_bytes_append(out, text + from, i - from);
            opjit_rt_bytes_printf(out, "...");
            from = i = end == NULL ? size : (size_t)(end - text);
            digits = 0;
        }
    }
    opjit_rt_bytes_append(out, text + from, size - from);
}

/* The IR's text, with the steps of the pass behind its first line, as a comment. */
static void put_text(rt_bytes *out, const ir_func *f)
{
    rt_bytes text;
    size_t first = 0;

    opjit_rt_bytes_init(&text, f->allocator);
    opjit_ir_print(f, &text);
    while (first < text.size && text.data[first] != '\n')
        first++;
    opjit_rt_bytes_append(out, text.data, first);
    for (uint32_t i = 0, shown = 0; i < IR_STEP_COUNT; i++)
        if (f->steps[i] != 0)
            opjit_rt_bytes_printf(out, "%s%s %u", shown++ == 0 ? " ; " : ", ", opjit_ir_steps[i].name, f->steps[i]);
    if (first < text.size)
        put_shortened(out, (const char *)text.data + first, text.size - first);
    out->failed = out->failed || text.failed;
    opjit_rt_bytes_free(&text);
}

static void explain_pass(void *user, const char *pass, const ir_func *f)
{
    explainer *e = user;
    rt_bytes text;

    opjit_rt_bytes_init(&text, f->allocator);
    put_text(&text, f);
    opjit_rt_bytes_zero_end(&text);
    if (text.failed)
        e->failed = true;
    else
        e->fn(e->user, pass, (const char *)text.data);
    opjit_rt_bytes_free(&text);
}

/* What code generation would choose for the loops of the last variant, whose IR was handed out; nothing where there is
 * no code generation, or where it would refuse the kernel. */
static void explain_plan(opjit_context *context, const fe_options *options, const fe_program *program, explainer *e)
{
    const ir_func *const f = program->count > 0 ? &program->variants[program->count - 1] : NULL;
    const opjit_codegen *codegen;
    codegen_result result;
    ir_numbers numbers;
    opjit_error ignored = { 0 };

    if (f == NULL || !opjit_fe_has_codegen())
        return;
    const opjit_status loaded = opjit_fe_codegen(context->core, &codegen, &ignored);
    e->failed |= loaded == OPJIT_OUT_OF_MEMORY;
    if (loaded != OPJIT_OK)
        return;
    if (!opjit_ir_numbers_init(f, &numbers)) {
        e->failed = true;
        return;
    }
    const codegen_request request = { .variants = &f,
                                      .variant_count = 1,
                                      .target = options->target,
                                      .level = options->level,
                                      .emit = CODEGEN_PLAN,
                                      .name = "plan",
                                      .node_numbers = numbers.nodes,
                                      .allocator = &context->core->allocator };
    const opjit_status status = codegen->compile(&request, &result, &ignored);
    opjit_ir_numbers_free(&numbers);
    e->failed |= status == OPJIT_OUT_OF_MEMORY;
    if (status != OPJIT_OK)
        return;
    opjit_rt_bytes_zero_end(&result.bytes);
    if (result.bytes.failed)
        e->failed = true;
    else
        e->fn(e->user, "plan", (const char *)result.bytes.data);
    opjit_rt_bytes_free(&result.bytes);
}

static opjit_status explain(opjit_context *context, const fe_subject *subject, const fe_options *options,
                            fe_graph *graph, explainer *e, opjit_error *error)
{
    fe_program program;

    if (subject->op != NULL)
        TRY(opjit_fe_graph_of(subject->op, options, graph, error));
    else
        TRY(opjit_fe_graph_read(context, subject, true, graph, error));
    TRY(opjit_fe_program_make(graph, options, options->name == NULL ? "kernel" : options->name,
                              &context->core->allocator, explain_pass, e, &program, error));
    explain_plan(context, options, &program, e);
    opjit_fe_program_free(&program);
    return e->failed ? opjit_rt_no_memory(error) : OPJIT_OK;
}

static opjit_status explain_subject(opjit_context *context, const fe_subject *subject, const fe_options *options,
                                    opjit_explain_fn fn, void *user, opjit_error *error)
{
    explainer e = { fn, user, false };
    fe_graph graph = { 0 };
    opjit_status status;

    opjit_rt_arena_init(&graph.arena, &context->core->allocator);
    status = explain(context, subject, options, &graph, &e, error);
    opjit_fe_graph_free(&graph);
    return status;
}

opjit_status opjit_operator_explain(opjit_context *context, opjit_operator *op, const opjit_compile_options *options,
                                    opjit_explain_fn fn, void *user, opjit_error *error)
{
    const fe_subject subject = { .op = op };
    fe_options read;

    opjit_rt_error_clear(error);
    if (context == NULL || op == NULL || fn == NULL)
        return opjit_rt_refuse_null(error, context == NULL ? "context" : op == NULL ? "op" : "fn");
    TRY(opjit_fe_options_read(context, op, options, &read, error));
    return explain_subject(context, &subject, &read, fn, user, error);
}

opjit_status opjit_graph_explain(opjit_context *context, const DML_GRAPH_DESC *desc,
                                 const opjit_compile_options *options, opjit_explain_fn fn, void *user,
                                 opjit_error *error)
{
    fe_subject subject;
    fe_options read;

    opjit_rt_error_clear(error);
    if (context == NULL || desc == NULL || fn == NULL)
        return opjit_rt_refuse_null(error, context == NULL ? "context" : desc == NULL ? "desc" : "fn");
    TRY(opjit_fe_options_read(context, NULL, options, &read, error));
    TRY(opjit_fe_graph_subject(desc, options, &subject, error));
    return explain_subject(context, &subject, &read, fn, user, error);
}
