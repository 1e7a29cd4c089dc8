/* SPDX-License-Identifier: Apache-2.0 */
/* program.c - from a graph to scheduled IR: lowering, the variants for outputs that share memory with an input, the
 * passes.  Ends where code generation or the interpreter begins. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "frontend/frontend.h"
#include "ir/pass.h"

double opjit_fe_now(void)
{
    struct timespec now;
    return clock_gettime(CLOCK_MONOTONIC, &now) != 0 ? 0 : (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

bool opjit_fe_wants_verify(void)
{
#ifdef NDEBUG
    const char *value = secure_getenv("OPJIT_VERIFY");
    return value != NULL && strcmp(value, "1") == 0;
#else
    return true;
#endif
}

uint32_t opjit_fe_stage_count(const ir_func *f)
{
    uint32_t count = 0;

    for (ir_ref s = f->body; s != 0; s = ir_at(f, s)->next)
        count += ir_at(f, s)->op == IR_STAGE;
    return count;
}

void opjit_fe_program_free(fe_program *program)
{
    for (uint32_t i = 0; i < program->count; i++)
        opjit_ir_free(&program->variants[i]);
    if (program->variants != NULL)
        opjit_rt_release(program->allocator, program->variants, program->capacity * sizeof *program->variants);
    program->variants = NULL;
    program->count = program->capacity = 0;
}

const ir_func **opjit_fe_program_list(const fe_program *program, rt_arena *arena)
{
    const ir_func **list = ARENA_ARRAY(arena, const ir_func *, program->count);

    for (uint32_t i = 0; list != NULL && i < program->count; i++)
        list[i] = &program->variants[i];
    return list;
}

/* --- what a call costs -------------------------------------------------------------------------------------------- */

static uint64_t flops_of(const ir_node *node)
{
    switch ((ir_op)node->op) {
    case IR_FMA: return 2;
    case IR_ADD:
    case IR_SUB:
    case IR_MUL:
    case IR_DIV:
    case IR_REM:
    case IR_MIN:
    case IR_MAX:
    case IR_SQRT: return 1;
    default: return 0;
    }
}

/* Arithmetic of an expression, but for the nodes that another statement has: only constants are. */
static uint64_t flops_below(const ir_func *f, ir_ref expr, uint8_t *seen, ir_ref *stack)
{
    uint64_t sum = 0;
    uint32_t depth = 0;

    stack[depth++] = expr;
    seen[expr] = 1;
    while (depth > 0) {
        const ir_ref top = stack[--depth];
        sum += flops_of(ir_at(f, top));
        for (uint32_t i = 0; i < ir_at(f, top)->count; i++) {
            const ir_ref operand = ir_operand(f, top, i);
            if (operand != 0 && seen[operand] == 0) {
                seen[operand] = 1;
                stack[depth++] = operand;
            }
        }
    }
    return sum;
}

/* Arithmetic of the lowered formulas, each operation once an element of its tensor whether its arm is taken or not. */
static bool count_flops(ir_func *f, uint64_t *out)
{
    uint8_t *seen = ARENA_ARRAY(&f->arena, uint8_t, f->node_count);
    ir_ref *stack = ARENA_ARRAY(&f->arena, ir_ref, f->node_count);

    *out = 0;
    if (seen == NULL || stack == NULL)
        return false;
    for (ir_ref s = f->body; s != 0; s = ir_at(f, s)->next) {
        const ir_tensor *tensor = &f->tensors[ir_at(f, s)->ref];
        uint64_t elements = 1;
        for (uint32_t d = 0; d < tensor->rank; d++)
            elements *= tensor->sizes[d];
        *out += flops_below(f, s, seen, stack) * elements;
    }
    return true;
}

/* Whether any statement of f reads the tensor; reached: opjit_ir_reach of all statements. */
static bool is_loaded(const ir_func *f, const uint8_t *reached, uint32_t node_count, uint32_t tensor)
{
    for (ir_ref r = 1; r < node_count; r++)
        if (reached[r] != 0 && ir_at(f, r)->op == IR_LOAD && opjit_ir_root(f, ir_at(f, r)->ref) == tensor)
            return true;
    return false;
}

/* Bytes of the inputs that any load is left of, broadcast dimensions once, and of the outputs.  Whole tensors: an upper
 * bound for an input of which a mask hides a part. */
static bool count_bytes(ir_func *f, uint64_t *read, uint64_t *written)
{
    const uint32_t count = f->node_count;
    const uint8_t *reached = opjit_ir_reach(f, f->body);

    *read = *written = 0;
    if (reached == NULL)
        return false;
    for (uint32_t t = 1; t < f->tensor_count; t++) {
        const ir_tensor *tensor = &f->tensors[t];
        uint64_t bytes = opjit_ir_type_size(tensor->type);
        for (uint32_t d = 0; d < tensor->rank; d++)
            bytes *= tensor->strides[d] != 0 ? tensor->sizes[d] : 1;
        *read += tensor->role == IR_IN && is_loaded(f, reached, count, t) ? bytes : 0;
        *written += tensor->role == IR_OUT ? bytes : 0;
    }
    return true;
}

/* --- variants ----------------------------------------------------------------------------------------------------- */

/* Enters every output that may share an input's memory, and a copy of the lowered function for each such pair. */
static opjit_status add_alias_variants(fe_program *program, const ir_func *lowered, opjit_error *error)
{
    uint32_t inputs = 0;

    for (uint32_t t = 1; t < lowered->tensor_count; t++)
        inputs += lowered->tensors[t].role == IR_IN;
    for (uint32_t out = 1; out < lowered->tensor_count; out++) {
        const uint32_t output = lowered->tensors[out].slot - inputs;
        if (lowered->tensors[out].role != IR_OUT || output >= 8)
            continue;
        for (uint32_t in = 1; in < lowered->tensor_count; in++) {
            const uint32_t input = lowered->tensors[in].slot;
            if (lowered->tensors[in].role != IR_IN || input >= 8 || !opjit_ir_may_alias(lowered, out, in))
                continue;
            program->alias_inputs[output] |= 1u << input;
            if (program->count == FE_VARIANTS_MAX - 1)
                continue; /* the variant for all buffers is right for shared ones too */
            TRY(opjit_ir_copy(lowered, &program->variants[program->count], error));
            program->variants[program->count].tensors[out].alias = in;
            program->masks[program->count++] = UINT64_C(1) << (output * 8 + input);
        }
    }
    return OPJIT_OK;
}

/* The text of f as if no output shared memory. */
static void print_without_alias(const ir_func *f, rt_bytes *out)
{
    ir_func plain = *f;
    ir_tensor tensors[32];

    if (f->tensor_count > sizeof tensors / sizeof *tensors) {
        opjit_ir_print(f, out); /* then aliased ones look different, and are kept */
        return;
    }
    memcpy(tensors, f->tensors, f->tensor_count * sizeof *tensors);
    for (uint32_t t = 1; t < f->tensor_count; t++)
        tensors[t].alias = 0;
    plain.tensors = tensors;
    opjit_ir_print(&plain, out);
}

/* Whether f, which shares memory, differs from base in more than that it does.  texts: scratch. */
static bool saves_something(const ir_func *f, const ir_func *base, const uint8_t *reached, uint32_t node_count,
                            rt_bytes texts[static 2])
{
    bool read = false;

    for (uint32_t t = 1; t < f->tensor_count; t++)
        read = read || (f->tensors[t].alias != 0 && is_loaded(base, reached, node_count, f->tensors[t].alias));
    if (!read) /* there is no load to save; the text may differ in how the input is declared */
        return false;
    texts[0].size = texts[1].size = 0;
    print_without_alias(f, &texts[0]);
    print_without_alias(base, &texts[1]);
    if (texts[0].failed || texts[1].failed)
        return true; /* the caller gives up */
    return texts[0].size != texts[1].size || memcmp(texts[0].data, texts[1].data, texts[0].size) != 0;
}

/* Takes out the variants in which sharing memory saves nothing. */
static opjit_status drop_idle_variants(fe_program *program, opjit_error *error)
{
    const uint32_t all = program->count;
    ir_func *base = &program->variants[all - 1];
    const uint32_t node_count = base->node_count;
    const uint8_t *reached = all == 1 ? NULL : opjit_ir_reach(base, base->body);
    rt_bytes texts[2];
    bool failed;

    if (all == 1)
        return OPJIT_OK;
    if (reached == NULL)
        return opjit_rt_no_memory(error);
    opjit_rt_bytes_init(&texts[0], base->allocator);
    opjit_rt_bytes_init(&texts[1], base->allocator);
    program->count = 0;
    for (uint32_t i = 0; i < all; i++) {
        if (i + 1 < all && !saves_something(&program->variants[i], base, reached, node_count, texts)) {
            opjit_ir_free(&program->variants[i]);
            continue;
        }
        if (program->count != i) {
            program->variants[program->count] = program->variants[i];
            program->masks[program->count] = program->masks[i];
            memset(&program->variants[i], 0, sizeof program->variants[i]);
        }
        program->count++;
    }
    failed = texts[0].failed || texts[1].failed;
    opjit_rt_bytes_free(&texts[0]);
    opjit_rt_bytes_free(&texts[1]);
    return failed ? opjit_rt_no_memory(error) : OPJIT_OK;
}

/* Passes and layout of the variants that program has. */
static opjit_status run_passes(fe_program *program, ir_pass_env env, opjit_error *error)
{
    void (*const trace)(void *, const char *, const ir_func *) = env.trace;

    for (uint32_t i = 0; i < program->count; i++) {
        env.trace = i + 1 == program->count ? trace : NULL;
        TRY(opjit_ir_run_passes(&program->variants[i], &env, opjit_ir_last_pass(env.target), error));
    }
    TRY(drop_idle_variants(program, error));
    for (uint32_t i = 0; i < program->count; i++)
        TRY(opjit_ir_layout(&program->variants[i], error));
    return count_bytes(&program->variants[program->count - 1], &program->bytes_read, &program->bytes_written)
               ? OPJIT_OK
               : opjit_rt_no_memory(error);
}

/* --- the whole ---------------------------------------------------------------------------------------------------- */

/* What making a program takes. */
typedef struct making {
    const fe_options *options;
    const char *name;
    ir_pass_env env;
    fe_program *program;
    double start;
} making;

static opjit_status make_variants(const making *m, const fe_graph *graph, opjit_error *error)
{
    fe_program *program = m->program;
    ir_func lowered;
    opjit_status status;

    TRY(opjit_fe_graph_lower(graph, m->options, m->name, program->allocator, &lowered, error));
    program->lower_ms = opjit_fe_now() - m->start;
    status = add_alias_variants(program, &lowered, error);
    if (status == OPJIT_OK && !count_flops(&lowered, &program->flops))
        status = opjit_rt_no_memory(error);
    program->variants[program->count] = lowered; /* from here on the program frees it */
    program->masks[program->count++] = 0;
    return status == OPJIT_OK ? run_passes(program, m->env, error) : status;
}

/* One part of a graph with custom operators: its buffers are the whole's. */
static opjit_status make_part(const making *m, const fe_part *part, opjit_error *error)
{
    const double start = opjit_fe_now();
    fe_program *program = m->program;
    ir_func *f = &program->variants[program->count];
    uint64_t flops, read, written;

    TRY(opjit_fe_graph_lower(&part->graph, m->options, m->name, program->allocator, f, error));
    program->count++; /* from here on the program frees it */
    for (uint32_t t = 1; t < f->tensor_count; t++)
        if (f->tensors[t].role == IR_IN || f->tensors[t].role == IR_OUT || f->tensors[t].role == IR_CONSTANT)
            f->tensors[t].slot = part->slots[f->tensors[t].slot];
    program->lower_ms += opjit_fe_now() - start;
    if (!count_flops(f, &flops))
        return opjit_rt_no_memory(error);
    TRY(opjit_ir_run_passes(f, &m->env, opjit_ir_last_pass(m->env.target), error));
    TRY(opjit_ir_layout(f, error));
    if (!count_bytes(f, &read, &written))
        return opjit_rt_no_memory(error);
    program->flops += flops;
    program->bytes_read += read;
    program->bytes_written += written;
    return OPJIT_OK;
}

static opjit_status make_parts(const making *m, const fe_graph *graph, opjit_error *error)
{
    for (uint32_t i = 0; i < graph->part_count; i++)
        if (graph->parts[i].graph.output_count != 0)
            TRY(make_part(m, &graph->parts[i], error));
    return OPJIT_OK;
}

opjit_status opjit_fe_program_make(const fe_graph *graph, const fe_options *options, const char *name,
                                   const opjit_allocator *allocator, fe_trace trace, void *user, fe_program *out,
                                   opjit_error *error)
{
    const making m = { .options = options,
                       .name = name,
                       .env = { .target = options->target,
                                .verify = opjit_fe_wants_verify(),
                                .masks_absorb = (options->flags & OPJIT_COMPILE_MASKS_ABSORB) != 0,
                                .trace = trace,
                                .user = user },
                       .program = out,
                       .start = opjit_fe_now() };
    opjit_status status;

    memset(out, 0, sizeof *out);
    out->allocator = allocator;
    out->capacity = graph->parts != NULL ? graph->part_count : FE_VARIANTS_MAX;
    out->variants = opjit_rt_allocate(allocator, out->capacity * sizeof *out->variants, _Alignof(ir_func));
    if (out->variants == NULL)
        return opjit_rt_no_memory(error);
    status = graph->parts != NULL ? make_parts(&m, graph, error) : make_variants(&m, graph, error);
    out->passes_ms = opjit_fe_now() - m.start - out->lower_ms;
    if (status != OPJIT_OK)
        opjit_fe_program_free(out);
    return status;
}
