/* SPDX-License-Identifier: Apache-2.0 */
/* program.c - from a graph to scheduled IR: lowering, the variants for outputs that share memory with an input, the
 * passes.  Ends where code generation or the interpreter begins. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "frontend/frontend.h"
#include "ir/passes/pass.h"

uint32_t opjit_fe_stage_count(const ir_func *f)
{
    return f->section_count;
}

void opjit_fe_program_free(fe_program *program)
{
    for (uint32_t i = 0; i < program->count; i++)
        opjit_ir_free(&program->variants[i]);
    if (program->variants != NULL)
        opjit_rt_release(program->allocator, program->variants, program->capacity * sizeof *program->variants);
    if (program->forms != NULL)
        opjit_rt_release(program->allocator, program->forms, program->form_count * sizeof *program->forms);
    program->variants = NULL;
    program->forms = NULL;
    program->count = program->capacity = program->form_count = 0;
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
    case IR_FMA:
    case IR_PAIR: return 2; /* a pair is a step of a dot */
    case IR_DOT4_UU:
    case IR_DOT4_US:
    case IR_DOT4_SS: return 8;
    case IR_DOT2: return 4;
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

/* Arithmetic operations of an expression.  Statements share no nodes except constants, which cost nothing. */
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

/* Arithmetic operations of the lowered formulas, once per element of their tensor, in whichever arm of a select. */
static bool count_flops(ir_func *f, uint64_t *out)
{
    uint8_t *seen = ARENA_ARRAY(&f->scratch, uint8_t, f->node_count);
    ir_ref *stack = ARENA_ARRAY(&f->scratch, ir_ref, f->node_count);

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
    opjit_ir_trim(f);
    return true;
}

/* By tensor: whether any statement of f reads it.  In f's scratch memory; NULL: there is none. */
static const bool *find_loaded(ir_func *f)
{
    bool *loaded = ARENA_ARRAY(&f->scratch, bool, f->tensor_count);
    const ir_reach all = opjit_ir_reach(f, f->body);

    for (uint32_t i = 0; loaded != NULL && i < all.count; i++)
        if (ir_at(f, all.nodes[i])->op == IR_LOAD)
            loaded[opjit_ir_root(f, ir_at(f, all.nodes[i])->ref)] = true;
    return all.nodes == NULL ? NULL : loaded;
}

/* Bytes of the inputs that are still loaded, broadcast dimensions once, and of the outputs.  Whole tensors: an upper
 * bound for an input of which a mask hides a part. */
static bool count_bytes(ir_func *f, uint64_t *read, uint64_t *written)
{
    const bool *loaded = find_loaded(f);

    *read = *written = 0;
    if (loaded == NULL)
        return false;
    for (uint32_t t = 1; t < f->tensor_count; t++) {
        const ir_tensor *tensor = &f->tensors[t];
        uint64_t bytes = opjit_ir_type_size(tensor->type);
        for (uint32_t d = 0; d < tensor->rank; d++)
            bytes *= tensor->strides[d] != 0 ? tensor->sizes[d] : 1;
        *read += tensor->role == IR_IN && loaded[t] ? bytes : 0;
        *written += tensor->role == IR_OUT ? bytes : 0;
    }
    opjit_ir_trim(f);
    return true;
}

/* --- variants ----------------------------------------------------------------------------------------------------- */

/* An output and an input of one layout. */
typedef struct sharing {
    uint32_t out, in, output, input; /* tensors; numbers among outputs and inputs */
    ir_in_place base;                /* of the variant for all buffers */
    bool allowed, own;               /* own: it has a variant */
    bool copies;                     /* the output has the input's elements there already: no store is needed */
} sharing;

/* Of all variants that only save something: more would take longer than what they save. */
enum { VARIANTS_MOST = 8, VARIANT_STAGES = 512 };
enum { SHARINGS_MAX = 64 }; /* of 8 outputs and 8 inputs, as masks have them */

static uint32_t find_sharings(const ir_func *lowered, sharing found[static SHARINGS_MAX])
{
    uint32_t inputs = 0, count = 0;

    for (uint32_t t = 1; t < lowered->tensor_count; t++)
        inputs += lowered->tensors[t].role == IR_IN;
    for (uint32_t out = 1; out < lowered->tensor_count; out++) {
        const ir_tensor *o = &lowered->tensors[out];
        if (o->role != IR_OUT || o->slot - inputs >= 8)
            continue;
        for (uint32_t in = 1; in < lowered->tensor_count; in++) {
            const ir_tensor *i = &lowered->tensors[in];
            if (i->role == IR_IN && i->slot < 8 && opjit_ir_same_layout(o, i))
                found[count++] = (sharing){ .out = out, .in = in, .output = o->slot - inputs, .input = i->slot };
        }
    }
    return count;
}

/* Finds out for each pair whether f, the variant for all buffers, may be called with it; where copied is true, instead,
 * whether f stores what the input already has there. */
static opjit_status judge_base(const ir_func *f, bool copied, sharing *list, uint32_t count, opjit_error *error)
{
    ir_accesses *accesses = count == 0 ? NULL : opjit_ir_accesses_create(f);

    if (count != 0 && accesses == NULL)
        return opjit_rt_no_memory(error);
    for (uint32_t i = 0; i < count; i++) {
        if (copied) {
            list[i].copies = opjit_ir_stores_itself(accesses, list[i].out, list[i].in);
            continue;
        }
        list[i].base = opjit_ir_in_place(accesses, list[i].out, list[i].in);
        list[i].allowed = list[i].base == IR_IN_PLACE;
    }
    opjit_ir_accesses_destroy(accesses);
    return OPJIT_OK;
}

/* The text of f as if no output shared memory. */
static void print_without_alias(const ir_func *f, rt_bytes *out)
{
    const size_t bytes = f->tensor_count * sizeof *f->tensors;
    ir_func plain = *f;

    plain.tensors = opjit_rt_allocate(f->allocator, bytes, _Alignof(ir_tensor));
    if (plain.tensors == NULL) {
        out->failed = true;
        return;
    }
    memcpy(plain.tensors, f->tensors, bytes);
    for (uint32_t t = 1; t < f->tensor_count; t++)
        plain.tensors[t].alias = plain.tensors[t].shared = 0;
    opjit_ir_print(&plain, out);
    opjit_rt_release(f->allocator, plain.tensors, bytes);
}

/* Whether f differs from base in more than the memory that it shares. */
static bool saves_something(const ir_func *f, const ir_func *base)
{
    rt_bytes texts[2];

    opjit_rt_bytes_init(&texts[0], base->allocator);
    opjit_rt_bytes_init(&texts[1], base->allocator);
    print_without_alias(f, &texts[0]);
    print_without_alias(base, &texts[1]);
    const bool differs = texts[0].failed || texts[1].failed || texts[0].size != texts[1].size ||
                         memcmp(texts[0].data, texts[1].data, texts[0].size) != 0;
    opjit_rt_bytes_free(&texts[0]);
    opjit_rt_bytes_free(&texts[1]);
    return differs;
}

/* Whether f is right whichever other pairs share memory, too: the first variant that fits a call is run. */
static opjit_status is_right(const ir_func *f, const sharing *list, uint32_t count, bool *out, opjit_error *error)
{
    ir_accesses *accesses = opjit_ir_accesses_create(f);

    if (accesses == NULL)
        return opjit_rt_no_memory(error);
    *out = true;
    for (uint32_t i = 0; i < count && *out; i++)
        *out = list[i].base == IR_IN_PLACE_NEVER || opjit_ir_in_place(accesses, list[i].out, list[i].in) == IR_IN_PLACE;
    opjit_ir_accesses_destroy(accesses);
    return OPJIT_OK;
}

/* Adds the variant for list[own], if it is of use. */
static opjit_status add_variant(fe_program *program, const ir_func *lowered, const ir_func *base,
                                const ir_pass_env *env, sharing *list, uint32_t count, uint32_t own, opjit_error *error)
{
    ir_func *f = &program->variants[program->count];
    sharing *s = &list[own];
    uint32_t unproven = 0;
    bool right = false;

    TRY(opjit_ir_copy(lowered, f, error));
    program->count++; /* from here on the program frees it */
    f->tensors[s->out].alias = s->in;
    for (uint32_t i = 0; i < count; i++)
        if (list[i].base != IR_IN_PLACE_NEVER)
            f->tensors[list[i].out].shared |= UINT32_C(1) << list[i].input;
    TRY(opjit_ir_run_passes(f, env, opjit_ir_last_pass(env->target), error));
    TRY(opjit_ir_pack(f, error));
    TRY(is_right(f, list, count, &right, error));
    if (right && s->allowed)
        TRY(opjit_ir_count_unproven(f, &unproven, error));
    /* A variant that only saves work, as base may share that memory too, has all its accesses proven. */
    s->own = right && (!s->allowed || (unproven == 0 && saves_something(f, base)));
    s->allowed = s->allowed || right;
    if (s->own) {
        program->masks[program->count - 1] = UINT64_C(1) << (s->output * 8 + s->input);
        return OPJIT_OK;
    }
    opjit_ir_free(f);
    program->count--;
    return OPJIT_OK;
}

/* Adds variants before base, which becomes the last: first for pairs that may share memory only by a variant of their
 * own, then for those that save work by it. */
static opjit_status add_variants(fe_program *program, const ir_func *lowered, ir_func *base, const ir_pass_env *env,
                                 sharing *list, uint32_t count, opjit_error *error)
{
    uint32_t stages = 0;

    for (uint32_t saving = 0; saving < 2; saving++)
        for (uint32_t i = 0; i < count; i++) {
            bool wanted = saving ? list[i].base == IR_IN_PLACE && list[i].copies : list[i].base == IR_IN_PLACE_MARKED;
            stages += wanted && saving ? base->section_count : 0;
            wanted = wanted && stages <= VARIANT_STAGES;
            if (wanted && program->count < VARIANTS_MOST - 1)
                TRY(add_variant(program, lowered, base, env, list, count, i, error));
        }
    for (uint32_t i = 0; i < count; i++) {
        if (list[i].allowed)
            program->alias_inputs[list[i].output] |= UINT32_C(1) << list[i].input;
        if (list[i].allowed && !list[i].own)
            base->tensors[list[i].out].shared |= UINT32_C(1) << list[i].input;
    }
    return OPJIT_OK;
}

/* --- the whole ---------------------------------------------------------------------------------------------------- */

/* The state of making a program. */
typedef struct making {
    const fe_options *options;
    const char *name;
    ir_pass_env env;
    fe_program *program;
    double start;
} making;

/* Runs the passes on the variant for all buffers, and judges it after cleanup and at the end. */
static opjit_status make_base(const making *m, ir_func *base, sharing *list, uint32_t count, opjit_error *error)
{
    if (count != 0) {
        TRY(opjit_ir_run_passes(base, &m->env, IR_CLEANED, error));
        TRY(judge_base(base, true, list, count, error));
    }
    TRY(opjit_ir_run_passes(base, &m->env, opjit_ir_last_pass(m->env.target), error));
    TRY(opjit_ir_pack(base, error));
    return judge_base(base, false, list, count, error);
}

static opjit_status make_all(const making *m, ir_func *base, opjit_error *error)
{
    fe_program *program = m->program;
    sharing list[SHARINGS_MAX];
    const uint32_t count = find_sharings(base, list);
    ir_pass_env quiet = m->env;
    ir_func lowered = { 0 };
    opjit_status status = OPJIT_OK;

    quiet.trace = NULL;
    if (!count_flops(base, &program->flops))
        return opjit_rt_no_memory(error);
    if (count != 0)
        TRY(opjit_ir_copy(base, &lowered, error));
    status = make_base(m, base, list, count, error);
    if (status == OPJIT_OK)
        status = add_variants(program, &lowered, base, &quiet, list, count, error);
    if (count != 0)
        opjit_ir_free(&lowered);
    return status;
}

/* Counts the accesses of a finished function that have no proof, and lays its memory out. */
static opjit_status finish(fe_program *program, ir_func *f, opjit_error *error)
{
    uint32_t unproven;

    TRY(opjit_ir_count_unproven(f, &unproven, error));
    program->unproven_bounds += unproven;
    TRY(opjit_ir_layout(f, error));
    opjit_ir_trim(f);
    return OPJIT_OK;
}

static bool equal_bytes(const rt_bytes *a, const rt_bytes *b)
{
    return a->size == b->size && (a->size == 0 || memcmp(a->data, b->data, a->size) == 0);
}

opjit_status opjit_fe_share_kept(fe_program *program, opjit_error *error)
{
    ir_func *base = &program->variants[program->count - 1];
    rt_bytes texts[2];
    opjit_status status = OPJIT_OK;

    opjit_rt_bytes_init(&texts[0], program->allocator);
    opjit_ir_spell_once(base, &texts[0]);
    bool failed = texts[0].failed;
    for (uint32_t i = 0; i + 1 < program->count && !failed && status == OPJIT_OK; i++) {
        ir_func *f = &program->variants[i];
        opjit_rt_bytes_init(&texts[1], program->allocator);
        opjit_ir_spell_once(f, &texts[1]);
        failed = texts[1].failed;
        if (!failed && !equal_bytes(&texts[0], &texts[1])) {
            opjit_ir_drop_once(f);
            status = opjit_ir_layout(f, error);
            opjit_ir_trim(f);
        }
        opjit_rt_bytes_free(&texts[1]);
    }
    program->kept_size = base->kept_size;
    if (!failed && texts[0].size != 0)
        program->kept_layout = opjit_rt_hash(texts[0].data, texts[0].size).lo;
    opjit_rt_bytes_free(&texts[0]);
    return failed ? opjit_rt_no_memory(error) : status;
}

static opjit_status make_variants(const making *m, const fe_graph *graph, opjit_error *error)
{
    fe_program *program = m->program;
    ir_func base;
    opjit_status status;

    TRY(opjit_fe_graph_lower(graph, m->options, m->name, program->allocator, &base, error));
    program->lower_ms = rt_milliseconds() - m->start;
    status = make_all(m, &base, error);
    program->variants[program->count] = base; /* from here on the program frees it */
    program->masks[program->count++] = 0;
    for (uint32_t i = 0; i < program->count && status == OPJIT_OK; i++)
        status = finish(program, &program->variants[i], error);
    if (status == OPJIT_OK)
        status = opjit_fe_share_kept(program, error);
    if (status != OPJIT_OK ||
        count_bytes(&program->variants[program->count - 1], &program->bytes_read, &program->bytes_written))
        return status;
    return opjit_rt_no_memory(error);
}

/* One part of a graph with custom operators: its buffers are the whole's. */
static opjit_status make_part(const making *m, const fe_part *part, opjit_error *error)
{
    const double start = rt_milliseconds();
    fe_program *program = m->program;
    ir_func *f = &program->variants[program->count];
    uint64_t flops, read, written;

    TRY(opjit_fe_graph_lower(&part->graph, m->options, m->name, program->allocator, f, error));
    program->count++; /* from here on the program frees it */
    for (uint32_t t = 1; t < f->tensor_count; t++)
        if (f->tensors[t].role == IR_IN || f->tensors[t].role == IR_OUT || f->tensors[t].role == IR_CONSTANT)
            f->tensors[t].slot = part->slots[f->tensors[t].slot];
    program->lower_ms += rt_milliseconds() - start;
    if (!count_flops(f, &flops))
        return opjit_rt_no_memory(error);
    TRY(opjit_ir_run_passes(f, &m->env, opjit_ir_last_pass(m->env.target), error));
    TRY(opjit_ir_pack(f, error));
    TRY(finish(program, f, error));
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
                                .verify = options->verify,
                                .cancel = options->cancel,
                                .calls_math = options->level == OPJIT_LEVEL_QUICK && options->target != NULL &&
                                              opjit_rt_target_calls_math(options->target),
                                .once = options->once && graph->parts == NULL,
                                .masks_absorb = (options->flags & OPJIT_COMPILE_MASKS_ABSORB) != 0,
                                .trace = trace,
                                .user = user },
                       .program = out,
                       .start = rt_milliseconds() };
    opjit_status status;

    memset(out, 0, sizeof *out);
    out->allocator = allocator;
    out->capacity = graph->parts != NULL ? graph->part_count : VARIANTS_MOST;
    out->variants = opjit_rt_allocate(allocator, out->capacity * sizeof *out->variants, _Alignof(ir_func));
    if (out->variants == NULL)
        return opjit_rt_no_memory(error);
    status = graph->parts != NULL ? make_parts(&m, graph, error) : make_variants(&m, graph, error);
    out->passes_ms = rt_milliseconds() - m.start - out->lower_ms;
    if (status != OPJIT_OK)
        opjit_fe_program_free(out);
    return status;
}
