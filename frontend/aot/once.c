/* SPDX-License-Identifier: Apache-2.0 */
/* once.c - the constants of a kernel that is compiled ahead of time.  What stages that run once make of them is made
 * here: on this CPU where it has what the version's code needs, else in the interpreter.  It becomes a constant itself,
 * so that the kernel has no such stages, and none of the constants that only they read. */
#include <string.h>

#include "frontend/aot/artifact.h"
#include "runtime/call/kernel.h"

#define UNUSED UINT32_MAX

/* The constants of all versions while they are made. */
typedef struct binding {
    opjit_artifact *artifact;
    fe_shipped *kernel;
    fe_graph graph;   /* with the data of all its constants; empty where there are none */
    void **given;     /* by constant of the graph, aligned */
    uint32_t *place;  /* by constant of the graph: among the kernel's; UNUSED: no version reads it at each call */
    uint32_t *kept;   /* by version: where what it keeps is among the kernel's; UNUSED: it keeps nothing */
    rt_bytes *made;   /* by version: what it keeps */
    uint32_t first;   /* slot of the first constant */
} binding;

/* --- running ------------------------------------------------------------------------------------------------------ */

static opjit_status interpret(void *user, uint32_t step, void *const *buffers, const uint64_t *params, void *shared,
                              void *scratch, uint64_t begin, uint64_t end, opjit_error *error)
{
    const ir_run run = { .buffers = buffers,
                         .params = params,
                         .shared = shared,
                         .scratch = scratch,
                         .stage = step,
                         .begin = begin,
                         .end = end };
    return opjit_ir_interpret(user, &run, error);
}

/* An image of the unit's stages; compiled: with code of them. */
static opjit_status make_image(fe_unit *unit, bool compiled, rt_bytes *image, opjit_error *error)
{
    const ir_func *f = unit->program.variants;
    const codegen_request request = { .variants = &f,
                                      .variant_count = 1,
                                      .target = unit->options.target,
                                      .level = OPJIT_LEVEL_QUICK, /* it is run once */
                                      .emit = CODEGEN_CODE,
                                      .name = unit->name,
                                      .allocator = &unit->core->allocator,
                                      .verify = unit->core->verify };
    const opjit_codegen *codegen;
    codegen_result code = { .entries = NULL };
    opjit_status status;

    if (!compiled)
        return opjit_fe_image_make(unit, NULL, image, error);
    TRY(opjit_fe_codegen(unit->core, &codegen, error));
    opjit_rt_bytes_init(&code.bytes, request.allocator);
    TRY(codegen->compile(&request, &code, error));
    status = opjit_fe_image_make(unit, &code, image, error);
    opjit_rt_bytes_free(&code.bytes);
    opjit_rt_release(request.allocator, code.entries, code.entry_count * sizeof *code.entries);
    return status;
}

/* Runs the stages of `unit`, which are stages that run once alone. */
static opjit_status run_once(const binding *b, fe_unit *unit, bool compiled, rt_bytes *out, opjit_error *error)
{
    const uint64_t size = unit->program.kept_size; /* the image takes the program */
    const rt_kernel_hooks hooks = { .user = unit->program.variants, .interpret = compiled ? NULL : interpret,
                                   .zeroed = true }; /* the same bytes each time */
    opjit_kernel *kernel = NULL;
    rt_bytes image;
    opjit_status status;

    opjit_rt_bytes_init(&image, &unit->core->allocator);
    status = make_image(unit, compiled, &image, error);
    if (status == OPJIT_OK)
        status = opjit_rt_kernel_create(unit->core, image.data, image.size, b->given, b->graph.constant_count, &hooks,
                                        NULL, &kernel, error);
    if (status == OPJIT_OK)
        opjit_rt_bytes_append(out, opjit_rt_kernel_kept(kernel), (size_t)size);
    opjit_kernel_release(kernel);
    opjit_rt_bytes_free(&image);
    return status == OPJIT_OK && out->failed ? opjit_rt_no_memory(error) : status;
}

/* Makes what the version keeps. */
static opjit_status try_once(const binding *b, uint32_t version, bool compiled, opjit_error *error)
{
    const fe_unit *unit = b->kernel->versions[version].unit;
    const fe_program *program = &unit->program;
    fe_unit once = *unit; /* borrows what the version's unit owns, except for its program */
    opjit_status status;

    once.options.target = &once.options.own;
    once.dim_count = 0; /* what follows from constants alone is the same for all sizes */
    once.program = (fe_program){ .kept_size = program->kept_size, .count = 1, .capacity = 1,
                                 .allocator = program->allocator };
    once.program.variants = opjit_rt_allocate(program->allocator, sizeof(ir_func), _Alignof(ir_func));
    if (once.program.variants == NULL)
        return opjit_rt_no_memory(error);
    memset(once.program.variants, 0, sizeof(ir_func));
    status = opjit_ir_take_once(&program->variants[program->count - 1], once.program.variants, error);
    if (status == OPJIT_OK)
        status = run_once(b, &once, compiled, &b->made[version], error);
    opjit_fe_program_free(&once.program);
    return status;
}

/* Without code generation, or memory for code, the interpreter makes the same. */
static opjit_status make_kept(const binding *b, uint32_t version, opjit_error *error)
{
    const fe_unit *unit = b->kernel->versions[version].unit;
    opjit_status status = OPJIT_UNAVAILABLE;

    if (opjit_rt_core_runs(unit->core, unit->options.target, NULL) == OPJIT_OK)
        status = try_once(b, version, true, error);
    return status == OPJIT_UNAVAILABLE ? try_once(b, version, false, error) : status;
}

/* The forms of the first stages of variant i, which go, too; *at: that of its first stage. */
static void remove_forms(fe_program *program, uint32_t i, uint32_t once, uint32_t *at)
{
    const uint32_t stages = opjit_fe_stage_count(&program->variants[i]) - once;

    memmove(program->forms + *at, program->forms + *at + once,
            (program->form_count - *at - once) * sizeof *program->forms);
    memset(program->forms + program->form_count - once, 0, once * sizeof *program->forms);
    *at += stages;
}

static opjit_status remove_once(fe_program *program, uint32_t bindings, opjit_error *error)
{
    uint32_t at = bindings * OPJIT_BUFFER_FORMS;

    for (uint32_t i = 0; i < program->count; i++) {
        const uint32_t once = opjit_ir_once_count(&program->variants[i]);
        if (program->forms != NULL)
            remove_forms(program, i, once, &at);
        if (once == 0)
            continue;
        opjit_ir_remove_once(&program->variants[i]);
        TRY(opjit_ir_layout(&program->variants[i], error));
        opjit_ir_trim(&program->variants[i]);
    }
    program->kept_size = program->kept_layout = 0;
    return OPJIT_OK;
}

/* --- places ------------------------------------------------------------------------------------------------------- */

/* Marks the constants that f's stages load. */
static void find_used(binding *b, const ir_func *f)
{
    for (uint32_t s = 0; s < f->section_count; s++)
        for (ir_ref r = f->sections[s].first; r < f->sections[s].end; r++) {
            if (ir_at(f, r)->op != IR_LOAD)
                continue;
            const ir_tensor *t = &f->tensors[opjit_ir_root(f, ir_at(f, r)->ref)];
            if (t->role == IR_CONSTANT)
                b->place[t->slot - b->first] = 0;
        }
}

/* Where f's constants are now.  Those that it does not read need no place. */
static void move_slots(const binding *b, uint32_t version, ir_func *f)
{
    for (uint32_t i = 1; i < f->tensor_count; i++) {
        ir_tensor *t = &f->tensors[i];
        const uint32_t place = t->role == IR_CONSTANT ? b->place[t->slot - b->first] : b->kept[version];
        if (t->role == IR_CONSTANT && place == UNUSED)
            t->role = IR_VALUE;
        else if (t->role == IR_CONSTANT || t->role == IR_KEPT)
            t->slot = b->first + place;
    }
}

/* The first version that keeps the same as this one. */
static uint32_t first_alike(const binding *b, uint32_t version)
{
    const rt_bytes *made = &b->made[version];
    uint32_t i = 0;

    while (i < version && (b->made[i].size != made->size ||
                           (made->size > 0 && memcmp(b->made[i].data, made->data, made->size) != 0)))
        i++;
    return i;
}

/* Into the object, or at the next multiple of 64 of the weights. */
static bool add_constant(binding *b, const void *data, size_t bytes)
{
    fe_shipped *k = b->kernel;
    codegen_data *constant = &k->constants[k->constant_count++];
    rt_bytes *const weights = &k->outputs[OPJIT_ARTIFACT_WEIGHTS];

    constant->bytes = bytes;
    if (!b->artifact->weights_apart) {
        constant->data = opjit_rt_arena_copy(&b->artifact->arena, data, bytes, 1);
        return constant->data != NULL;
    }
    opjit_rt_bytes_append(weights, data, bytes);
    opjit_rt_bytes_align(weights, OPJIT_WORKSPACE_ALIGNMENT);
    return !weights->failed;
}

static bool choose_places(binding *b)
{
    bool good = true;

    for (uint32_t v = 0; v < b->artifact->target_count; v++)
        for (uint32_t i = 0; i < b->kernel->versions[v].unit->program.count; i++)
            find_used(b, &b->kernel->versions[v].unit->program.variants[i]);
    for (uint32_t i = 0; i < b->graph.constant_count && good; i++)
        if (b->place[i] != UNUSED) {
            b->place[i] = b->kernel->constant_count;
            good = add_constant(b, b->given[i], (size_t)b->graph.constants[i].bytes);
        }
    for (uint32_t v = 0; v < b->artifact->target_count && good; v++) {
        const uint32_t first = first_alike(b, v);
        b->kept[v] = first < v ? b->kept[first] : b->made[v].size == 0 ? UNUSED : b->kernel->constant_count;
        if (first == v && b->made[v].size != 0)
            good = add_constant(b, b->made[v].data, b->made[v].size);
    }
    return good;
}

/* --- the versions' buffers ---------------------------------------------------------------------------------------- */

static fe_buffer kept_buffer(uint64_t bytes)
{
    const fe_tensor tensor = { .present = true,
                               .dtype = DML_TENSOR_DATA_TYPE_UINT8,
                               .rank = 1,
                               .sizes = { bytes, 1, 1, 1, 1, 1, 1, 1 },
                               .strides = { 1 },
                               .bytes = bytes,
                               .span = bytes,
                               .elements = bytes,
                               .align = OPJIT_WORKSPACE_ALIGNMENT };
    return (fe_buffer){ .name = "Kept", .tensor = tensor, .bytes = bytes };
}

/* All versions have the constants of all, so that they are called alike. */
static bool describe(const binding *b, fe_graph *graph)
{
    const fe_shipped *k = b->kernel;
    fe_buffer *constants = ARENA_ARRAY(&graph->arena, fe_buffer, k->constant_count);
    uint32_t count = 0;

    if (constants == NULL)
        return false;
    for (uint32_t i = 0; i < graph->constant_count; i++)
        if (b->place[i] != UNUSED)
            constants[count++] = graph->constants[i];
    for (; count < k->constant_count; count++)
        constants[count] = kept_buffer(k->constants[count].bytes);
    graph->constants = constants;
    graph->constant_count = count;
    return true;
}

/* Copies of constants that lie at no multiple of 64. */
static bool align_constants(binding *b)
{
    bool good = true;

    for (uint32_t i = 0; i < b->graph.constant_count && good; i++) {
        const fe_buffer *constant = &b->graph.constants[i];
        b->place[i] = UNUSED;
        b->given[i] = (void *)(uintptr_t)constant->data; /* they are only read */
        if ((uintptr_t)constant->data % OPJIT_WORKSPACE_ALIGNMENT == 0)
            continue;
        uint8_t *const room =
            opjit_rt_arena_allocate(&b->graph.arena, (size_t)constant->bytes + OPJIT_WORKSPACE_ALIGNMENT, 1);
        b->given[i] = room == NULL ? NULL : room + -(uintptr_t)room % OPJIT_WORKSPACE_ALIGNMENT;
        good = room != NULL;
        if (good)
            memcpy(b->given[i], constant->data, (size_t)constant->bytes);
    }
    return good;
}

static opjit_status bind(binding *b, opjit_error *error)
{
    fe_shipped *k = b->kernel;
    const fe_graph *own = &k->versions[0].unit->graph;
    const uint32_t count = own->constant_count, versions = b->artifact->target_count;

    b->first = own->input_count + own->output_count;
    b->given = ARENA_ARRAY(&b->graph.arena, void *, count);
    b->place = ARENA_ARRAY(&b->graph.arena, uint32_t, count);
    b->kept = ARENA_ARRAY(&b->graph.arena, uint32_t, versions);
    k->constants = ARENA_ARRAY(&b->artifact->arena, codegen_data, count + versions);
    if (b->given == NULL || b->place == NULL || b->kept == NULL || k->constants == NULL || !align_constants(b))
        return opjit_rt_no_memory(error);
    for (uint32_t v = 0; v < versions; v++) {
        fe_program *program = &k->versions[v].unit->program;
        if (program->kept_size != 0)
            TRY(make_kept(b, v, error));
        TRY(remove_once(program, own->input_count + own->output_count, error));
    }
    if (!choose_places(b))
        return opjit_rt_no_memory(error);
    for (uint32_t v = 0; v < versions; v++) {
        fe_unit *unit = k->versions[v].unit;
        for (uint32_t i = 0; i < unit->program.count; i++)
            move_slots(b, v, &unit->program.variants[i]);
        if (!describe(b, &unit->graph))
            return opjit_rt_no_memory(error);
    }
    return OPJIT_OK;
}

opjit_status opjit_fe_artifact_constants(opjit_artifact *a, const fe_subject *subject, fe_shipped *k,
                                         opjit_error *error)
{
    const opjit_allocator *allocator = &a->context->core->allocator;
    binding b = { .artifact = a, .kernel = k };
    opjit_status status = OPJIT_OK;

    opjit_rt_arena_init(&b.graph.arena, allocator);
    if (k->versions[0].unit->graph.constant_count != 0)
        status = subject->dynamic != NULL ? opjit_fe_dynamic_read(subject->dynamic, false, &b.graph, error)
                                          : opjit_fe_graph_read(a->context, subject, false, &b.graph, error);
    b.made = status == OPJIT_OK ? ARENA_ARRAY(&b.graph.arena, rt_bytes, a->target_count) : NULL;
    for (uint32_t i = 0; b.made != NULL && i < a->target_count; i++)
        opjit_rt_bytes_init(&b.made[i], allocator);
    if (status == OPJIT_OK)
        status = b.made == NULL ? opjit_rt_no_memory(error) : bind(&b, error);
    for (uint32_t i = 0; b.made != NULL && i < a->target_count; i++)
        opjit_rt_bytes_free(&b.made[i]);
    opjit_fe_graph_free(&b.graph);
    return status;
}
