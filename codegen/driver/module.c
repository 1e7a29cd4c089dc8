/* SPDX-License-Identifier: Apache-2.0 */
/* module.c - one request, one module: builds its functions, verifies them, emits them.  LLVM's errors end here:
 * whatever it reports becomes a status and a line of text. */
#define _POSIX_C_SOURCE 200809L
#include "codegen/direct/codegen_direct.h"
#include "codegen/driver/tiles.h"

#include <opjit/opjit.h>

#include <llvm-c/Analysis.h>
#include <llvm-c/Error.h>
#include <llvm-c/Target.h>
#include <llvm-c/Transforms/PassBuilder.h>

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { NAME_SIZE = 256 };
static const cg_some all_codes = { .last = UINT32_MAX };

/* Everything that a compile owns. */
typedef struct job {
    const codegen_request *request;
    opjit_error *error;
    cg_llvm llvm;
    rt_arena arena;
    rt_arena of_stage; /* what one stage needs, whose memory the next one takes */
    const rt_target *target;     /* of the version that is being built */
    LLVMValueRef *constant_data; /* GPUs: see cg_func */
    uint32_t buffer_count;
    bool accumulates;
    const cg_stages *stages; /* of the request, or by version */
    uint32_t level;          /* of the code, after find_level */
    const cg_some *some;     /* codes that are to be built */
    cg_tiles tiles;          /* that the module calls */
    rt_bytes object;         /* of a module that LLVM's backend did not see */
} job;

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* --- building ----------------------------------------------------------------------------------------------------- */

/* Whether code is written without LLVM's backend, if all in it is known. */
static bool is_direct(const job *j)
{
    return j->request->emit == CODEGEN_CODE && j->level == OPJIT_LEVEL_QUICK && !j->request->llvm_only &&
           opjit_cg_direct_knows(j->target);
}

static cg_func new_function(job *j, const cg_target *cpu, const ir_func *ir)
{
    cg_func f = opjit_cg_llvm_function(&j->llvm, cpu, j->target);
    f.ir = ir;
    f.arena = &j->arena;
    f.error = j->error;
    f.constant_data = j->constant_data;
    f.buffer_count = j->buffer_count;
    f.tiles = &j->tiles;
    f.peak = cpu->grid || j->level == OPJIT_LEVEL_PEAK; /* what quick does is for fast selection, which others lack */
    f.direct = is_direct(j);
    return f;
}

static cg_func stage_function(job *j, const cg_target *cpu, const cg_single *stage)
{
    cg_func f = new_function(j, cpu, &stage->ir);
    f.aliased = stage->aliased;
    f.nodes = stage->nodes;
    f.arena = &j->of_stage;
    return f;
}

/* A stage's function: the code itself, or a call of it where there is one. */
static opjit_status build_stage(job *j, const cg_target *cpu, const cg_single *stage, const char *kernel,
                                LLVMValueRef code)
{
    char name[NAME_SIZE];
    const rt_arena_mark mark = rt_arena_position(&j->of_stage);
    snprintf(name, sizeof(name), "%s_v%u_s%u", kernel, stage->variant, stage->number);
    cg_func f = stage_function(j, cpu, stage);
    const opjit_status status = code ? opjit_cg_stage_call(&f, name, code) : opjit_cg_stage(&f, name);
    j->accumulates |= f.accumulates;
    opjit_rt_arena_rewind(&j->of_stage, mark);
    return status;
}

/* The code that several stages share, and their functions. */
static opjit_status build_shared(job *j, const cg_target *cpu, const cg_single *first, const char *kernel)
{
    const rt_arena_mark mark = rt_arena_position(&j->of_stage);
    cg_func f = stage_function(j, cpu, first);
    f.by_table = true;
    opjit_status status = opjit_cg_stage(&f, "equal.stages"); /* LLVM numbers them */
    j->accumulates |= f.accumulates;
    if (status == OPJIT_OK)
        LLVMSetLinkage(f.fn, LLVMInternalLinkage);
    for (const cg_single *s = first; s && status == OPJIT_OK; s = s->next)
        if (s->same == s)
            status = build_stage(j, cpu, s, kernel, f.fn);
    opjit_rt_arena_rewind(&j->of_stage, mark);
    return status;
}

static opjit_status build_codes(job *j, const cg_target *cpu, const cg_stages *stages, const char *kernel)
{
    for (uint32_t i = j->some->first; i < stages->code_count && i < j->some->last; i++) {
        const cg_single *first = stages->codes[i];
        TRY(opjit_cg_check_cancelled(j->request, j->error));
        TRY(first->shared ? build_shared(j, cpu, first, kernel) : build_stage(j, cpu, first, kernel, NULL));
    }
    return OPJIT_OK;
}

/* Puts accumulators into registers where speed matters, and on GPUs, whose threads have slow memory.  Everything else
 * is as fast without any pass. */
static opjit_status run_passes(job *j, const cg_target *cpu)
{
    if (!j->accumulates || (j->level != OPJIT_LEVEL_PEAK && !cpu->grid))
        return OPJIT_OK;
    const char *passes = j->level == OPJIT_LEVEL_PEAK ? "function(sroa)" : "function(mem2reg)";
    TRY(opjit_cg_llvm_machine(&j->llvm, j->error));
    LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
    LLVMErrorRef failure = LLVMRunPasses(j->llvm.module, passes, j->llvm.machine, options);
    LLVMDisposePassBuilderOptions(options);
    if (!failure)
        return OPJIT_OK;
    char *text = LLVMGetErrorMessage(failure); /* consumes failure */
    opjit_rt_refuse(j->error, OPJIT_CODEGEN, "{!LLVM}{passes}: %s", text);
    LLVMDisposeErrorMessage(text);
    return OPJIT_CODEGEN;
}

/* The stages of all versions, each followed by its entries. */
static opjit_status build_kernel(job *j, const cg_target *cpu)
{
    const codegen_kernel *kernel = j->request->kernel;
    cg_kernel made;
    cg_func f = new_function(j, cpu, NULL);
    TRY(opjit_cg_kernel_begin(&f, kernel, j->request->name, &made));
    for (uint32_t i = 0; i < kernel->version_count; i++) {
        const codegen_version *version = &kernel->versions[i];
        j->target = version->target;
        TRY(build_codes(j, cpu, &j->stages[i], version->name));
        f = new_function(j, cpu, NULL);
        TRY(opjit_cg_kernel_version(&f, &made, i));
    }
    return opjit_cg_kernel_end(&f, &made);
}

/* For GPUs, a kernel for other programs is its stages and its constants. */
static opjit_status build_grid(job *j, const cg_target *cpu)
{
    const codegen_kernel *kernel = j->request->kernel;
    const codegen_version *version = &kernel->versions[0];
    cg_func f = new_function(j, cpu, NULL);
    j->buffer_count = version->meta->inputs + version->meta->outputs;
    TRY(opjit_cg_kernel_constants(&f, kernel, j->request->name, &j->constant_data));
    return build_codes(j, cpu, j->stages, version->name);
}

/* A GPU kernel's arguments are its buffers: as many as there are slots. */
static void count_buffers(job *j)
{
    for (uint32_t v = 0; v < j->request->variant_count; v++) {
        const ir_func *f = j->request->variants[v];
        for (uint32_t t = 1; t < f->tensor_count; t++) {
            const ir_role role = f->tensors[t].role;
            const bool has_slot = role == IR_IN || role == IR_OUT || role == IR_CONSTANT;
            if (has_slot && f->tensors[t].slot >= j->buffer_count)
                j->buffer_count = f->tensors[t].slot + 1;
        }
    }
}

static opjit_status build_stages(job *j, const cg_target *cpu)
{
    count_buffers(j);
    return build_codes(j, cpu, j->stages, j->request->name);
}

static opjit_status build(job *j, const cg_target *cpu)
{
    TRY(!j->request->kernel ? build_stages(j, cpu) : cpu->grid ? build_grid(j, cpu) : build_kernel(j, cpu));
    TRY(opjit_cg_check_cancelled(j->request, j->error));
    TRY(j->some->tiles ? opjit_cg_tile_set_add(j->some->tiles, j->some->number, &j->tiles, j->error)
                       : opjit_cg_put_tiles(&j->tiles, &j->llvm, cpu, j->request, j->error));
    if (j->request->verify) {
        char *text = NULL;
        const bool broken = LLVMVerifyModule(j->llvm.module, LLVMReturnStatusAction, &text);
        TRY(opjit_cg_llvm_status(&j->llvm, broken, "LLVM's verifier", text, j->error));
        TRY(opjit_cg_check_cancelled(j->request, j->error));
    }
    return run_passes(j, cpu);
}

/* --- emission ----------------------------------------------------------------------------------------------------- */

static opjit_status append(codegen_result *out, const void *data, size_t size, opjit_error *error)
{
    opjit_rt_bytes_append(&out->bytes, data, size);
    return out->bytes.failed ? opjit_rt_no_memory(error) : OPJIT_OK;
}

static opjit_status emit_llvm(job *j, codegen_result *out)
{
    char *text = LLVMPrintModuleToString(j->llvm.module);
    const opjit_status status = append(out, text, strlen(text), j->error);
    LLVMDisposeMessage(text);
    return status;
}

/* true if *object has the code. */
static bool emit_directly(job *j, rt_bytes *object, cg_refusal *refusal)
{
    *refusal = (cg_refusal){ .why = "" };
    return is_direct(j) && opjit_cg_direct(j->llvm.module, j->target, j->request->allocator, object, refusal);
}

bool opjit_cg_writes(const rt_target *target)
{
    return opjit_cg_direct_knows(target);
}

static opjit_status emit(job *j, const cg_target *cpu, codegen_result *out)
{
    const codegen_emit what = j->request->emit;
    const double start = now_ms();
    TRY(opjit_cg_check_cancelled(j->request, j->error));
    if (what == CODEGEN_LLVM)
        return emit_llvm(j, out);
    cg_refusal refusal;
    const bool direct = emit_directly(j, &j->object, &refusal);
    if (!direct && strcmp(refusal.why, CG_DIRECT_NO_MEMORY) == 0)
        return opjit_rt_no_memory(j->error);
    if (!direct && refusal.function)
        snprintf(out->refused, sizeof out->refused, "%s: %s", refusal.function, refusal.why);
    if (!direct)
        TRY(opjit_cg_llvm_emit(&j->llvm, what == CODEGEN_ASM ? LLVMAssemblyFile : LLVMObjectFile, j->error));
    const double emitted = now_ms();
    out->modules = 1;
    out->direct = direct;
    out->emit_ms = emitted - start;
    TRY(opjit_cg_check_cancelled(j->request, j->error));
    const void *data = direct ? (const char *)j->object.data : LLVMGetBufferStart(j->llvm.object);
    const size_t size = direct ? j->object.size : LLVMGetBufferSize(j->llvm.object);
    if (what == CODEGEN_OBJECT && cpu->grid)
        return cpu->grid->pack(j->request->allocator, data, size, &out->bytes, j->error);
    if (what == CODEGEN_OBJECT)
        TRY(opjit_cg_link_check(data, size, j->error));
    const bool whole = what == CODEGEN_CODE && !j->some->tiles;
    TRY(whole ? opjit_cg_code(j->request, j->stages, data, size, NULL, out, j->error)
              : append(out, data, size, j->error));
    out->link_ms = now_ms() - emitted;
    return OPJIT_OK;
}

/* --- the request -------------------------------------------------------------------------------------------------- */

static void close_job(job *j)
{
    opjit_cg_llvm_close(&j->llvm);
    opjit_rt_bytes_free(&j->object);
    opjit_rt_arena_free(&j->of_stage);
    opjit_rt_arena_free(&j->arena);
}

static opjit_status check(const codegen_request *r, opjit_error *error)
{
    if (r->level != OPJIT_LEVEL_QUICK && r->level != OPJIT_LEVEL_PEAK)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                               "{!codegen}{level} is {%u}; 1 (quick) and 2 (peak) are allowed", r->level);
    if (r->emit > CODEGEN_TVM_FFI)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{!codegen}{emit} is {%u}; 0 to 5 are allowed",
                               (unsigned)r->emit);
    if (r->emit == CODEGEN_PLAN && (r->kernel || r->variant_count == 0))
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                               "{!codegen}{!emit}a {plan} is of a variant, not of a kernel's versions");
    if (strlen(r->name) > NAME_SIZE - 32)
        return opjit_rt_refuse(error, OPJIT_LIMIT, "{!codegen}the kernel's {name} has more than %d characters",
                               NAME_SIZE - 32);
    if (strspn(r->name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") != strlen(r->name) ||
        !*r->name)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                               "{!codegen}the kernel's {name} is \"{%s}\"; A-Z, a-z, 0-9 and _ are allowed", r->name);
    if (r->kernel && r->emit == CODEGEN_CODE)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                               "{!codegen}{entries} are for objects and texts, not for CODE");
    return OPJIT_OK;
}

/* A request on its way: what is known of it before any module is made. */
typedef struct whole_request {
    rt_arena arena;
    cg_stages *stages; /* of the request, or by version */
    uint32_t count;
} whole_request;

static opjit_status take_stages(const codegen_request *r, const cg_target *cpu, whole_request *w, opjit_error *error)
{
    /* Drivers find a GPU's kernels by name, and other programs' stages are listed by name. */
    const cg_equal equal = cpu->grid || r->emit == CODEGEN_PLAN ? CG_EQUAL_APART
                           : r->kernel                          ? CG_EQUAL_NAMED
                                                                : CG_EQUAL_ONCE;
    w->count = r->kernel ? r->kernel->version_count : 1;
    w->stages = ARENA_ARRAY(&w->arena, cg_stages, w->count);
    if (!w->stages)
        return opjit_rt_no_memory(error);
    if (!r->kernel)
        return opjit_cg_stages_init(w->stages, r->variants, r->variant_count, equal, &w->arena, error);
    for (uint32_t i = 0; i < w->count; i++) {
        const codegen_version *v = &r->kernel->versions[i];
        TRY(opjit_cg_stages_init(&w->stages[i], v->variants, v->variant_count, equal, &w->arena, error));
    }
    return OPJIT_OK;
}

/* At peak LLVM takes a time that grows with the square of a stage's nodes, so large ones are compiled at quick. */
static uint32_t find_level(const codegen_request *r, const cg_target *cpu, const whole_request *w)
{
    for (uint32_t v = 0; v < w->count && !cpu->grid; v++)
        for (uint32_t i = 0; i < w->stages[v].code_count; i++)
            if (w->stages[v].codes[i]->ir.node_count - 1 > CG_PEAK_NODES)
                return OPJIT_LEVEL_QUICK;
    return r->level;
}

/* Of some of the codes, if the request is of stages alone. */
static opjit_status compile_some(const codegen_request *request, const cg_stages *stages, const cg_some *some,
                                 codegen_result *out, opjit_error *error)
{
    const rt_target *target = request->kernel ? request->kernel->versions[0].target : request->target;
    const cg_target *cpu = opjit_cg_target_find(target->arch);
    job j = { .request = request,
              .error = error,
              .target = target,
              .level = request->level,
              .stages = stages,
              .some = some };
    opjit_rt_bytes_init(&out->bytes, request->allocator);
    opjit_rt_bytes_init(&j.object, request->allocator);
    opjit_rt_arena_init(&j.arena, request->allocator);
    opjit_rt_arena_init(&j.of_stage, request->allocator);
    j.tiles.arena = &j.arena;
    const double start = now_ms();
    opjit_status status = opjit_cg_llvm_open(&j.llvm, cpu, target, j.level, request->name, error);
    if (status == OPJIT_OK)
        status = build(&j, cpu);
    out->build_ms = now_ms() - start;
    if (status == OPJIT_OK)
        status = emit(&j, cpu, out);
    close_job(&j);
    if (status != OPJIT_OK)
        opjit_rt_bytes_free(&out->bytes);
    return status;
}

/* Holds memory of all sizes that LLVM released, so that LLVM's objects are at other addresses this time. */
static opjit_status compile_again(const codegen_request *request, const cg_stages *stages, codegen_result *out,
                                  opjit_error *error)
{
    enum { LEAST = 512, MOST = 4096, STEP = 16, SIZES = (MOST - LEAST) / STEP, TIMES = 8 };
    static const char nothing[MOST];
    LLVMMemoryBufferRef held[TIMES * SIZES];
    uint32_t count = 0;
    opjit_status status = OPJIT_UNAVAILABLE;
    while (status == OPJIT_UNAVAILABLE && count < TIMES * SIZES) {
        for (uint32_t size = LEAST; size < MOST; size += STEP)
            held[count++] = LLVMCreateMemoryBufferWithMemoryRangeCopy(nothing, size, "");
        status = compile_some(request, stages, &all_codes, out, error);
    }
    while (count > 0)
        LLVMDisposeMemoryBuffer(held[--count]);
    return status;
}

static opjit_status compile_stages(const codegen_request *request, const cg_target *cpu, const cg_stages *stages,
                                   codegen_result *out, opjit_error *error)
{
    const bool code = request->emit == CODEGEN_CODE;
    if (code) {
        out->entry_count = stages->count;
        out->entries = opjit_rt_allocate(request->allocator, stages->count * sizeof(uint64_t), sizeof(uint64_t));
        if (!out->entries)
            return opjit_rt_no_memory(error);
        memset(out->entries, 0xff, stages->count * sizeof(uint64_t)); /* UINT64_MAX: none yet */
    }
    opjit_status status = opjit_cg_is_large(request, stages)
                              ? opjit_cg_compile_groups(request, stages, compile_some, out, error)
                              : compile_some(request, stages, &all_codes, out, error);
    if (status == OPJIT_UNAVAILABLE && cpu->fresh)
        status = compile_again(request, stages, out, error);
    return status == OPJIT_OK && code ? opjit_cg_end_entries(stages, out, error) : status;
}

static opjit_status compile_whole(const codegen_request *request, const cg_target *cpu, codegen_result *out,
                                  opjit_error *error)
{
    codegen_request leveled = *request;
    whole_request w = { .count = 0 };
    opjit_rt_arena_init(&w.arena, request->allocator);
    opjit_status status = take_stages(request, cpu, &w, error);
    if (status == OPJIT_OK) {
        leveled.level = find_level(request, cpu, &w);
        status = request->emit == CODEGEN_PLAN ? opjit_cg_explain(&leveled, w.stages, leveled.level, &out->bytes, error)
                                               : compile_stages(&leveled, cpu, w.stages, out, error);
    }
    opjit_rt_arena_free(&w.arena);
    if (status != OPJIT_OK) {
        opjit_rt_release(request->allocator, out->entries, out->entry_count * sizeof(uint64_t));
        opjit_rt_bytes_free(&out->bytes);
        *out = (codegen_result){ .entries = NULL };
    }
    return status;
}

/* --- other objects ------------------------------------------------------------------------------------------------ */

static opjit_status refuse_target(const rt_target *target, opjit_error *error)
{
    return opjit_rt_refuse(error, OPJIT_UNSUPPORTED, "{!codegen}this build makes no code for {target} {%s}",
                           target->text);
}

/* What a module without stages has; other objects define the symbols that it refers to. */
typedef struct contents {
    const char *name;
    const codegen_kernel *kernel; /* TVM FFI's function of it; NULL: a registry */
    const rt_bytes *registry;
    const char *const *kernels;
    uint32_t count;
} contents;

static opjit_status emit_contents(const contents *c, const rt_target *target, const opjit_allocator *allocator,
                                  rt_bytes *out, opjit_error *error)
{
    const codegen_request module = {
        .level = OPJIT_LEVEL_QUICK, .emit = CODEGEN_OBJECT, .name = c->name, .target = target, .allocator = allocator
    };
    job j = { .request = &module, .error = error, .target = target, .level = module.level };
    const cg_target *cpu = opjit_cg_target_find(target->arch);
    if (!cpu)
        return refuse_target(target, error);
    opjit_rt_bytes_init(&j.object, allocator);
    opjit_rt_arena_init(&j.arena, allocator);
    opjit_rt_arena_init(&j.of_stage, allocator);
    opjit_status status = opjit_cg_llvm_open(&j.llvm, cpu, j.target, module.level, module.name, error);
    cg_func f = { .peak = false };
    if (status == OPJIT_OK) {
        f = new_function(&j, cpu, NULL);
        status = c->kernel ? opjit_cg_tvm_ffi(&f, c->kernel, c->name)
                           : opjit_cg_registry(&f, c->name, c->registry, c->kernels, c->count);
    }
    if (status == OPJIT_OK)
        status = opjit_cg_llvm_emit(&j.llvm, LLVMObjectFile, error);
    if (status == OPJIT_OK) {
        opjit_rt_bytes_append(out, LLVMGetBufferStart(j.llvm.object), LLVMGetBufferSize(j.llvm.object));
        status = out->failed ? opjit_rt_no_memory(error) : OPJIT_OK;
    }
    close_job(&j);
    return status;
}

opjit_status opjit_cg_registry_object(const codegen_library *request, const rt_bytes *registry,
                                      const char *const *kernels, uint32_t count, rt_bytes *out, opjit_error *error)
{
    const contents c = { .name = request->name, .registry = registry, .kernels = kernels, .count = count };
    return emit_contents(&c, request->target, request->allocator, out, error);
}

/* --- requests ----------------------------------------------------------------------------------------------------- */

opjit_status opjit_cg_compile(const codegen_request *request, codegen_result *out, opjit_error *error)
{
    const rt_target *target = request->kernel ? request->kernel->versions[0].target : request->target;
    const cg_target *cpu = opjit_cg_target_find(target->arch);
    *out = (codegen_result){ .entries = NULL };
    opjit_rt_bytes_init(&out->bytes, request->allocator);
    TRY(check(request, error));
    if (!cpu)
        return refuse_target(target, error);
    if (request->emit == CODEGEN_TVM_FFI) {
        const contents c = { .name = request->name, .kernel = request->kernel };
        return emit_contents(&c, target, request->allocator, &out->bytes, error);
    }
    if (cpu->grid && (request->emit == CODEGEN_CODE || (request->emit == CODEGEN_OBJECT && !cpu->grid->pack)))
        return opjit_rt_refuse(error, OPJIT_UNSUPPORTED,
                               "{!codegen}{!target}code for {%s} is %s, and nothing that this machine calls",
                               target->text, cpu->grid->pack ? "a file for its loader" : "text");
    if (cpu->fresh && request->emit == CODEGEN_ASM)
        return opjit_rt_refuse(error, OPJIT_UNSUPPORTED,
                               "{!codegen}{!target}code for {%s} is no text; spirv-dis makes one of it", target->text);
    return compile_whole(request, cpu, out, error);
}
