/* SPDX-License-Identifier: Apache-2.0 */
/* compile.c - makes the kernel of a key that no cache has: IR, code, image, kernel.  Which key that is, and whether a
 * cache has it, is driver.c's. */
#include <stdio.h>
#include <string.h>

#include "frontend/frontend.h"
#include "runtime/cache/disk.h"

enum { KEY_ROOM = 512 }; /* bytes of most keys */

/* --- units -------------------------------------------------------------------------------------------------------- */

void opjit_fe_unit_destroy(void *user)
{
    fe_unit *unit = user;
    rt_core *core = unit->core;

    opjit_fe_program_free(&unit->program);
    opjit_fe_graph_free(&unit->graph);
    opjit_rt_release(&core->allocator, unit, sizeof *unit);
    opjit_rt_core_release(core);
}

/* "diagonal_matrix1_f32_09ab34cd": the same for the same key. */
static void make_name(const fe_graph *graph, rt_hash key, char name[static FE_NAME_SIZE])
{
    const char *const type = opjit_rt_dtype_short(graph->outputs[0].tensor.dtype);
    const size_t length = strlen(type);
    size_t used = 0;

    _Static_assert(64 + 1 + 8 + 1 + 8 + 1 <= FE_NAME_SIZE, "types' short names have three letters");
    for (; used < 64 && graph->label[used] != '\0'; used++)
        name[used] = opjit_fe_lower_case(graph->label[used]);
    name[used++] = '_';
    memcpy(name + used, type, length);
    used += length;
    name[used++] = '_';
    opjit_rt_hex(key.lo, 8, name + used);
    name[used + 8] = '\0';
}

/* For events: labels, or where there are none, operators. */
static opjit_status name_nodes(fe_unit *unit, opjit_error *error)
{
    const fe_graph *graph = &unit->graph;
    const char **const names = ARENA_ARRAY(&unit->graph.arena, const char *, graph->node_count);

    if (names == NULL)
        return opjit_rt_no_memory(error);
    for (uint32_t i = 0; i < graph->node_count; i++)
        names[i] = graph->nodes[i].name[0] != '\0' ? graph->nodes[i].name : opjit_fe_operator_label(graph->nodes[i].op);
    unit->node_names = names;
    return OPJIT_OK;
}

/* The graph for the largest sizes, and the dimensions. */
static opjit_status read_dynamic(fe_unit *unit, const fe_dynamic *dynamic, opjit_error *error)
{
    rt_arena *arena = &unit->graph.arena;

    TRY(opjit_fe_dynamic_read(dynamic, true, &unit->graph, error));
    unit->dynamic = dynamic;
    unit->dim_count = dynamic->dim_count;
    unit->dims = ARENA_ARRAY(arena, opjit_param_info, dynamic->dim_count);
    unit->dim_names = ARENA_ARRAY(arena, const char *, dynamic->dim_count);
    for (uint32_t d = 0; unit->dims != NULL && unit->dim_names != NULL && d < dynamic->dim_count; d++) {
        const opjit_dim *dim = &dynamic->dims[d];
        unit->dims[d] = (opjit_param_info){ DML_TENSOR_DATA_TYPE_INT64, 0, (int64_t)dim->lo, (int64_t)dim->hi };
        unit->dim_names[d] = opjit_rt_arena_string(arena, dim->name, strlen(dim->name));
        if (unit->dim_names[d] == NULL)
            return opjit_rt_no_memory(error);
    }
    return unit->dims == NULL || unit->dim_names == NULL ? opjit_rt_no_memory(error) : OPJIT_OK;
}

static opjit_status unit_fill(opjit_context *context, fe_unit *unit, const fe_subject *subject, opjit_error *error)
{
    const fe_options *options = &unit->options;

    if (subject->dynamic != NULL)
        TRY(read_dynamic(unit, subject->dynamic, error));
    else if (subject->op != NULL)
        TRY(opjit_fe_graph_of(subject->op, options, &unit->graph, error));
    else
        TRY(opjit_fe_graph_read(context, subject, true, &unit->graph, error));
    if (options->name == NULL)
        make_name(&unit->graph, unit->key, unit->name);
    else
        snprintf(unit->name, sizeof unit->name, "%s", options->name);
    if (options->name != NULL)
        unit->options.name = unit->name;
    return rt_wants_events(unit->core) ? name_nodes(unit, error) : OPJIT_OK;
}

opjit_status opjit_fe_unit_new(opjit_context *context, const fe_subject *subject, const fe_options *options,
                               rt_hash key, fe_unit **out, opjit_error *error)
{
    fe_unit *unit = opjit_rt_allocate(&context->core->allocator, sizeof *unit, _Alignof(fe_unit));
    opjit_status status;

    if (unit == NULL)
        return opjit_rt_no_memory(error);
    memset(unit, 0, offsetof(fe_unit, room));
    unit->core = opjit_rt_core_retain(context->core);
    opjit_rt_arena_init_in(&unit->graph.arena, &unit->core->allocator, unit->room, sizeof unit->room);
    unit->options = *options;
    unit->options.own = *options->target;
    unit->options.target = &unit->options.own;
    unit->key = key;
    unit->compile_id = subject->compile_id;
    status = unit_fill(context, unit, subject, error);
    if (status != OPJIT_OK)
        opjit_fe_unit_destroy(unit);
    else
        *out = unit;
    return status;
}

/* --- kernels ------------------------------------------------------------------------------------------------------ */

/* All that the unit keeps from the allocator.  Operators that other kernels hold, too, count with each. */
static uint64_t unit_bytes(const fe_unit *unit)
{
    const fe_program *program = &unit->program;
    uint64_t bytes = sizeof *unit + opjit_rt_arena_bytes(&unit->graph.arena) +
                     (uint64_t)program->capacity * sizeof *program->variants;

    for (uint32_t i = 0; i < unit->graph.node_count; i++) {
        const opjit_operator *op = unit->graph.nodes[i].op;
        bytes += op->size + opjit_rt_arena_bytes(&op->arena) + (op->key.borrowed ? 0 : op->key.capacity);
    }
    for (uint32_t i = 0; i < program->count; i++)
        bytes += opjit_rt_arena_bytes(&program->variants[i].arena);
    return bytes;
}

opjit_status opjit_fe_unit_kernel(fe_unit *unit, const rt_bytes *image, rt_kernel_hooks hooks,
                                  const rt_kernel_times *times, opjit_kernel **out, opjit_error *error)
{
    const fe_graph *graph = &unit->graph;
    void **constants = ARENA_ARRAY(&unit->graph.arena, void *, graph->constant_count);

    hooks.customs = graph->parts == NULL ? NULL : &graph->plan;
    if (constants == NULL)
        return opjit_rt_no_memory(error);
    for (uint32_t i = 0; i < graph->constant_count; i++) {
        constants[i] = (void *)(uintptr_t)graph->constants[i].data; /* kernels only read them */
        hooks.unbound = hooks.unbound || constants[i] == NULL;
    }
    hooks.user_bytes = unit_bytes(unit);
    hooks.key = unit->key;
    hooks.compile_id = unit->compile_id;
    return opjit_rt_kernel_create(unit->core, image->data, image->size, constants, graph->constant_count, &hooks, times,
                                  out, error);
}

/* --- compiled kernels --------------------------------------------------------------------------------------------- */

/* What a device's driver is given, as code; texts end with a NUL. */
static codegen_emit code_kind(const rt_target *target)
{
    return target->arch == RT_ARCH_NVPTX ? CODEGEN_ASM : rt_target_team(target) > 0 ? CODEGEN_OBJECT : CODEGEN_CODE;
}

/* Code of unit->program, which is freed here or by the caller. */
static opjit_status generate(fe_unit *unit, rt_bytes *image, rt_kernel_times *times, opjit_error *error)
{
    const double start = rt_milliseconds();
    rt_arena arena;
    codegen_functions functions;
    codegen_request request = {
        .variant_count = unit->program.count,
        .target = unit->options.target,
        .level = unit->options.level,
        .emit = code_kind(unit->options.target),
        .name = unit->name,
        .allocator = &unit->core->allocator,
        .verify = unit->core->verify, .llvm_only = unit->core->llvm_only,
        .cancel = unit->options.cancel,
        .executor = unit->options.executor,
        .functions = opjit_fe_functions(unit->core, unit->options.flags, &functions),
    };
    codegen_result code = { 0 };
    opjit_status status;

    if (unit->program.count == 0) /* nothing but custom operators */
        return opjit_fe_image_make(unit, NULL, image, error);
    opjit_rt_arena_init(&arena, request.allocator);
    request.variants = opjit_fe_program_list(&unit->program, &arena);
    opjit_rt_bytes_init(&code.bytes, request.allocator);
    status = request.variants == NULL ? opjit_rt_no_memory(error) : unit->codegen->compile(&request, &code, error);
    *times = (rt_kernel_times){ times->compile_ms, times->lower_ms, times->passes_ms, rt_milliseconds() - start,
                                times->load_ms, code.modules, code.direct };
    memcpy(unit->refused, code.refused, sizeof unit->refused);
    if (status == OPJIT_OK && request.emit == CODEGEN_ASM)
        opjit_rt_bytes_u8(&code.bytes, '\0');
    if (status == OPJIT_OK)
        status = code.bytes.failed ? opjit_rt_no_memory(error) : opjit_fe_image_make(unit, &code, image, error);
    opjit_rt_arena_free(&arena);
    opjit_rt_bytes_free(&code.bytes);
    opjit_rt_release(request.allocator, code.entries, code.entry_count * sizeof *code.entries);
    return status;
}

typedef struct program_maker {
    fe_unit *unit;
    double start;
} program_maker;

opjit_status opjit_fe_unit_program(fe_unit *unit, fe_dump *dump, opjit_error *error)
{
    const opjit_allocator *a = &unit->core->allocator;
    const fe_trace trace = dump == NULL || dump->kinds == 0 ? NULL : opjit_fe_dump_pass;

    if (unit->dynamic != NULL)
        return opjit_fe_dynamic_program(unit->dynamic, &unit->graph, &unit->options, unit->name, a, &unit->program,
                                        error);
    return opjit_fe_program_make(&unit->graph, &unit->options, unit->name, a, trace, dump, &unit->program, error);
}

static opjit_status make_program(void *user, opjit_error *error)
{
    program_maker *maker = user;
    fe_dump dump;

    maker->start = rt_milliseconds();
    opjit_fe_dump_begin(&dump, maker->unit);
    TRY(opjit_fe_unit_program(maker->unit, &dump, error));
    opjit_fe_dump_end(&dump);
    return OPJIT_OK;
}

/* The whole way from unit->graph to an image for unit->options. */
static opjit_status make_image(fe_unit *unit, rt_bytes *image, rt_kernel_times *times, opjit_error *error)
{
    program_maker maker = { .unit = unit };
    opjit_status status = opjit_fe_overlap(unit, make_program, &maker, error);

    if (status == OPJIT_OK)
        status = generate(unit, image, times, error);
    times->lower_ms = unit->program.lower_ms;
    times->passes_ms = unit->program.passes_ms;
    times->compile_ms = rt_milliseconds() - maker.start;
    opjit_fe_program_free(&unit->program);
    return status;
}

/* The message says what this CPU lacks.  A target is no fault of the call: code for it is just not to be had here. */
static opjit_status check_runs_here(const fe_unit *unit, opjit_error *error)
{
    const opjit_status status = opjit_rt_core_runs(unit->core, unit->options.target, error);
    if (status != OPJIT_OK && error != NULL)
        error->status = OPJIT_UNAVAILABLE;
    return status == OPJIT_OK ? OPJIT_OK : OPJIT_UNAVAILABLE;
}

static void count(rt_cache *counts, rt_cache_count what)
{
    if (counts != NULL)
        opjit_rt_cache_count(counts, what);
}

/* The image that came with the request, where it is whole and this very kernel's: *out_found. */
static opjit_status take_image(const fe_unit *unit, rt_bytes *image, bool *out_found, opjit_error *error)
{
    const size_t size = (size_t)unit->options.image_bytes;
    const opjit_kernel_meta *meta;
    const uint8_t *code;
    size_t code_size;

    *out_found = false;
    if (unit->options.image == NULL || unit->options.image_bytes > RT_IMAGE_MOST)
        return OPJIT_OK;
    opjit_rt_bytes_append(image, unit->options.image, size);
    if (image->failed)
        return opjit_rt_no_memory(error);
    *out_found = opjit_rt_image_check(image->data, size, &meta, &code, &code_size, NULL) == OPJIT_OK &&
                 memcmp(meta->key, &unit->key.lo, 8) == 0 && memcmp(meta->key + 8, &unit->key.hi, 8) == 0;
    if (!*out_found)
        image->size = 0;
    return OPJIT_OK;
}

/* From the disk cache into *image, or a new one.  counts: where it is counted; NULL: nowhere. */
static opjit_status find_or_make_image(fe_unit *unit, const rt_disk_key *key, rt_cache *counts, rt_bytes *image,
                                       bool *out_found, rt_kernel_times *times, opjit_error *error)
{
    rt_disk *disk = unit->subject_key == NULL ? NULL : unit->core->disk;
    TRY(take_image(unit, image, out_found, error));
    if (*out_found)
        return OPJIT_OK;
    const rt_disk_result found = disk == NULL ? RT_DISK_ABSENT : opjit_rt_disk_load(disk, key, image);

    *out_found = found == RT_DISK_FOUND;
    if (found != RT_DISK_ABSENT)
        count(counts, *out_found ? RT_CACHE_DISK_HIT : RT_CACHE_DISK_REJECT);
    if (*out_found)
        return OPJIT_OK;
    if (fe_is_cancelled(&unit->options)) /* before a library is loaded */
        return opjit_rt_cancelled(error);
    TRY(make_image(unit, image, times, error));
    if (disk != NULL && opjit_rt_disk_store(disk, key, image->data, image->size))
        count(counts, RT_CACHE_DISK_WRITE);
    return OPJIT_OK;
}

opjit_status opjit_fe_unit_optimize(void *user, const atomic_bool *cancel, rt_bytes *image, opjit_error *error)
{
    const fe_unit *unit = user;
    rt_kernel_times times = { 0 };
    fe_unit peak = *unit; /* borrows what the kernel's unit owns; a compiled kernel's program is empty */
    uint8_t room[KEY_ROOM], options[FE_OPTIONS_KEY_SIZE];
    rt_disk_key key = { 0 };
    rt_bytes bytes;
    opjit_status status;
    bool found;

    peak.options.target = &peak.options.own;
    peak.options.level = OPJIT_LEVEL_PEAK;
    peak.options.cancel = cancel;
    opjit_rt_bytes_init_in(&bytes, &unit->core->allocator, room, sizeof room);
    if (unit->subject_key != NULL) {
        opjit_rt_bytes_append(&bytes, unit->subject_key, unit->subject_key_size);
        opjit_rt_bytes_append(&bytes, options, opjit_fe_options_key(&peak.options, options));
        key = (rt_disk_key){ bytes.data, bytes.size, opjit_rt_hash(bytes.data, bytes.size), RT_DISK_KERNEL };
        peak.key = key.hash;
        if (peak.options.name == NULL)
            make_name(&peak.graph, peak.key, peak.name);
    }
    status =
        bytes.failed ? opjit_rt_no_memory(error) : find_or_make_image(&peak, &key, NULL, image, &found, &times, error);
    opjit_rt_bytes_free(&bytes);
    if (status == OPJIT_OK)
        opjit_fe_report_image(&peak, found, image->size, &times);
    return status;
}

/* An address means nothing to another process, so kernels with custom operators are not stored. */
static opjit_status keep_subject_key(fe_unit *unit, const rt_key *key, opjit_error *error)
{
    if (unit->core->disk == NULL || (unit->options.flags & OPJIT_COMPILE_NO_CACHE) != 0 || unit->graph.parts != NULL)
        return OPJIT_OK;
    unit->subject_key = opjit_rt_arena_copy(&unit->graph.arena, key->subject, key->subject_size, 1);
    unit->subject_key_size = key->subject_size;
    return unit->subject_key == NULL ? opjit_rt_no_memory(error) : OPJIT_OK;
}

static opjit_status compile(opjit_context *context, fe_unit *unit, const rt_key *key, const rt_bytes *whole,
                            opjit_kernel **out, opjit_error *error)
{
    const rt_disk_key disk_key = { whole->data, whole->size, unit->key, RT_DISK_KERNEL };
    const bool quick = unit->options.level == OPJIT_LEVEL_QUICK;
    rt_kernel_hooks hooks = { .user = unit,
                              .destroy = opjit_fe_unit_destroy,
                              .optimize = quick && unit->dynamic == NULL ? opjit_fe_unit_optimize : NULL,
                              .zeroed = unit->core->disk != NULL };
    rt_kernel_times times = { 0 };
    rt_bytes image;
    opjit_status status;

    TRY(check_runs_here(unit, error));
    if (rt_target_team(unit->options.target) > 0 && unit->graph.parts != NULL)
        return opjit_rt_refuse(
            error, OPJIT_UNSUPPORTED,
            "{kernel} {!name}{%s}: has custom operators, which are functions of this process and don't run on "
            "a device",
            unit->name);
    TRY(keep_subject_key(unit, key, error));
    opjit_rt_bytes_init(&image, &unit->core->allocator);
    status = find_or_make_image(unit, &disk_key, context->cache, &image, &hooks.from_disk, &times, error);
    if (status == OPJIT_OK)
        status = opjit_fe_unit_kernel(unit, &image, hooks, &times, out, error);
    const size_t bytes = image.size;
    opjit_rt_bytes_free(&image);
    if (status == OPJIT_OK)
        opjit_fe_report_image(unit, hooks.from_disk, bytes, &times);
    return status;
}

/* --- interpreted kernels ------------------------------------------------------------------------------------------ */

/* Steps stand variant by variant, or part by part with custom steps behind each. */
static opjit_status index_steps(fe_unit *unit, opjit_error *error)
{
    const fe_part *parts = unit->graph.parts;
    const uint32_t groups = parts != NULL ? unit->graph.part_count : unit->program.count;
    const ir_func *f = unit->program.variants;
    uint32_t count = unit->graph.plan.call_count, at = 0;

    for (uint32_t i = 0; i < unit->program.count; i++)
        count += opjit_fe_stage_count(&unit->program.variants[i]);
    unit->steps = ARENA_ARRAY(&unit->graph.arena, fe_step, count);
    if (unit->steps == NULL)
        return opjit_rt_no_memory(error);
    for (uint32_t i = 0; i < groups; i++) {
        if (parts == NULL || parts[i].graph.output_count != 0) {
            const uint32_t stages = opjit_fe_stage_count(f);
            for (uint32_t stage = 0; stage < stages; stage++)
                unit->steps[at++] = (fe_step){ f, stage };
            f++;
        }
        at += parts == NULL ? 0 : parts[i].calls;
    }
    return OPJIT_OK;
}

static opjit_status interpret(void *user, uint32_t step, void *const *buffers, const uint64_t *params, void *shared,
                              void *scratch, uint64_t begin, uint64_t end, opjit_error *error)
{
    const fe_step *s = &((const fe_unit *)user)->steps[step];
    const ir_run run = { .buffers = buffers,
                         .params = params,
                         .shared = shared,
                         .scratch = scratch,
                         .stage = s->stage,
                         .begin = begin,
                         .end = end };

    return opjit_ir_interpret(s->f, &run, error);
}

static opjit_status make_interpreted(fe_unit *unit, opjit_kernel **out, opjit_error *error)
{
    const rt_kernel_hooks hooks = { .user = unit, .destroy = opjit_fe_unit_destroy, .interpret = interpret };
    rt_kernel_times times = { 0 };
    rt_bytes image;
    opjit_status status;

    unit->options.once = false; /* the interpreter would take long for what may never be needed */
    TRY(opjit_fe_unit_program(unit, NULL, error));
    times.lower_ms = unit->program.lower_ms;
    times.passes_ms = unit->program.passes_ms;
    times.compile_ms = times.lower_ms + times.passes_ms;
    TRY(index_steps(unit, error));
    opjit_rt_bytes_init(&image, &unit->core->allocator);
    status = opjit_fe_image_make(unit, NULL, &image, error);
    if (status == OPJIT_OK)
        status = opjit_fe_unit_kernel(unit, &image, hooks, &times, out, error);
    opjit_rt_bytes_free(&image);
    if (status == OPJIT_OK)
        opjit_fe_report_compile(unit, OPJIT_EVENT_INTERPRETED, 0, &times);
    return status;
}

/* Not for a device, whose memory the interpreter can't reach. */
static bool may_interpret(const rt_core *core, const fe_options *options)
{
    return (core->flags & OPJIT_CONTEXT_ALLOW_INTERPRETER) != 0 &&
           (core->device == NULL || rt_target_team(options->target) == 0);
}

/* whole: both halves of the key. */
static opjit_status make_kernel(opjit_context *context, const fe_subject *subject, const fe_options *options,
                                const rt_key *key, const rt_bytes *whole, opjit_kernel **out, opjit_error *error)
{
    opjit_error reason = { 0 };
    opjit_status status;
    fe_unit *unit = NULL;
    if (fe_is_cancelled(options))
        return opjit_rt_cancelled(error);
    TRY(opjit_fe_unit_new(context, subject, options, opjit_rt_hash(whole->data, whole->size), &unit, error));
    if ((options->flags & OPJIT_COMPILE_INTERPRET) != 0) {
        status = make_interpreted(unit, out, error);
    } else {
        status = compile(context, unit, key, whole, out, &reason);
        if (status == OPJIT_UNAVAILABLE && may_interpret(context->core, options)) {
            opjit_rt_event(context->core, RT_WARNING(OPJIT_EVENT_INTERPRETED, unit->name, reason.message),
                           "warning,%s,interpreted,%s", unit->name, reason.message);
            status = make_interpreted(unit, out, error);
        } else if (status != OPJIT_OK) {
            opjit_rt_error_copy(error, &reason);
        }
    }
    unit->options.cancel = NULL; /* the kernel outlives what the caller lent: this and the next three */
    unit->options.executor = NULL;
    unit->options.image = NULL;
    unit->dynamic = NULL;
    if (status != OPJIT_OK)
        opjit_fe_unit_destroy(unit); /* once there is a kernel, it is the kernel's */
    return status;
}

opjit_status opjit_fe_compile(opjit_context *context, const fe_subject *subject, const fe_options *options,
                              const rt_key *key, opjit_kernel **out, opjit_error *error)
{
    rt_bytes whole = { .data = (uint8_t *)(uintptr_t)key->subject, .size = key->subject_size + key->options_size,
                       .borrowed = true };
    uint8_t room[KEY_ROOM];
    *out = NULL;
    if (key->options != (const uint8_t *)key->subject + key->subject_size) { /* it is in two pieces */
        opjit_rt_bytes_init_in(&whole, &context->core->allocator, room, sizeof room);
        opjit_rt_bytes_append(&whole, key->subject, key->subject_size);
        opjit_rt_bytes_append(&whole, key->options, key->options_size);
    }
    const opjit_status status = whole.failed ? opjit_rt_no_memory(error)
                                             : make_kernel(context, subject, options, key, &whole, out, error);
    opjit_rt_bytes_free(&whole);
    return status;
}
