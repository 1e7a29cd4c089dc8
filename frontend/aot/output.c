/* SPDX-License-Identifier: Apache-2.0 */
/* output.c - the outputs of an artifact's kernels: which kinds exist for its targets, and making them when first
 * requested.  Which kernels it has is in artifact.c. */
#include <stdio.h>
#include <string.h>

#include "frontend/aot/artifact.h"

/* As one compile: the versions share its time. */
OUT_OF_LINE static void report(const opjit_artifact *a, const fe_shipped *k, uint64_t bytes, double codegen_ms)
{
    rt_kernel_times times = { .codegen_ms = codegen_ms };

    for (uint32_t i = 0; i < a->target_count; i++) {
        times.lower_ms += k->versions[i].unit->program.lower_ms;
        times.passes_ms += k->versions[i].unit->program.passes_ms;
    }
    times.compile_ms = times.lower_ms + times.passes_ms + codegen_ms;
    opjit_fe_report_compile(k->versions[0].unit, OPJIT_EVENT_ARTIFACT, bytes, &times);
}

static opjit_status generate(const opjit_artifact *a, const fe_shipped *k, codegen_emit emit, rt_bytes *out,
                             opjit_error *error)
{
    const opjit_codegen *codegen;
    rt_arena arena;
    codegen_kernel kernel = { .version_count = a->target_count,
                              .constants = k->constants,
                              .weights_apart = a->weights_apart };
    codegen_request request = { .level = k->versions[0].unit->options.level,
                                .emit = emit,
                                .name = k->name,
                                .allocator = &a->context->core->allocator,
                                .verify = a->context->core->verify,
                                .kernel = &kernel };
    codegen_version *versions;
    codegen_result result = { .entries = NULL };
    const double start = rt_milliseconds();
    opjit_status status = OPJIT_OK;

    TRY(opjit_fe_codegen(a->context->core, &codegen, error));
    opjit_rt_arena_init(&arena, request.allocator);
    versions = ARENA_ARRAY(&arena, codegen_version, a->target_count);
    kernel.versions = versions;
    for (uint32_t i = 0; versions != NULL && i < a->target_count; i++) {
        const fe_unit *unit = k->versions[i].unit;
        versions[i] = (codegen_version){ .variants = opjit_fe_program_list(&unit->program, &arena),
                                         .variant_count = unit->program.count,
                                         .target = unit->options.target,
                                         .name = unit->name,
                                         .meta = shipped_meta(k, i) };
        if (versions[i].variants == NULL)
            versions = NULL;
    }
    opjit_rt_bytes_init(&result.bytes, request.allocator);
    status = versions == NULL ? opjit_rt_no_memory(error) : codegen->compile(&request, &result, error);
    if (status == OPJIT_OK) {
        *out = result.bytes;
        report(a, k, out->size, rt_milliseconds() - start);
    }
    opjit_rt_arena_free(&arena);
    return status;
}

/* Prints the scheduled IR of every version and variant, each as a text of its own. */
static void print_ir(const opjit_artifact *a, const fe_shipped *k, rt_bytes *out)
{
    for (uint32_t i = 0; i < a->target_count; i++) {
        const fe_program *program = &k->versions[i].unit->program;
        for (uint32_t v = 0; v < program->count; v++) {
            opjit_rt_bytes_printf(out, "; %s%s\n", a->targets[i].text,
                                  program->masks[v] != 0 ? ", an output in the memory of an input" : "");
            opjit_ir_print(&program->variants[v], out);
        }
    }
}

/* Its function has an argument for each input and output, and no others. */
static opjit_status make_tvm_ffi(const opjit_artifact *a, const fe_shipped *k, rt_bytes *out, opjit_error *error)
{
    if (shipped_meta(k, 0)->params != 0 || shipped_weights(k) != 0)
        return opjit_rt_refuse(
            error, OPJIT_UNSUPPORTED,
            "{!argument}{!kind}{tvmffi}: kernel %s has %s, for which TVM FFI's function has no argument", k->name,
            shipped_weights(k) != 0       ? "its weights apart"
            : shipped_meta(k, 0)->dims != 0 ? "dynamic dimensions"
                                            : "late fields");
    return generate(a, k, CODEGEN_TVM_FFI, out, error);
}

static opjit_status assemble(const opjit_artifact *a, const fe_shipped *k, rt_bytes *out, opjit_error *error)
{
    rt_bytes ptx;

    TRY(generate(a, k, CODEGEN_ASM, &ptx, error));
    const opjit_status status = opjit_fe_assemble(&a->targets[0], &ptx, FE_ASSEMBLE_SECONDS, out, error);
    opjit_rt_bytes_free(&ptx);
    return status;
}

/* Kinds that hold all kernels together. */
#define COMMON_KINDS (1u << OPJIT_ARTIFACT_ARCHIVE | 1u << OPJIT_ARTIFACT_SHARED | 1u << OPJIT_ARTIFACT_LIBRARY_HEADER)
static bool is_common(opjit_artifact_kind kind)
{
    return (COMMON_KINDS >> kind & 1) != 0;
}

/* Whether there is such a thing for targets of that architecture; RT_ARCH_END: any CPU. */
static bool has_kind(rt_arch arch, opjit_artifact_kind kind)
{
    switch (kind) {
    case OPJIT_ARTIFACT_OBJECT:
    case OPJIT_ARTIFACT_HEADER:
    case OPJIT_ARTIFACT_ARCHIVE:
    case OPJIT_ARTIFACT_SHARED:
    case OPJIT_ARTIFACT_LIBRARY_HEADER:
    case OPJIT_ARTIFACT_TVM_FFI: return arch == RT_ARCH_END;
    case OPJIT_ARTIFACT_PTX:
    case OPJIT_ARTIFACT_CUBIN: return arch == RT_ARCH_NVPTX;
    case OPJIT_ARTIFACT_HSACO: return arch == RT_ARCH_AMDGPU;
    case OPJIT_ARTIFACT_SPIRV: return arch == RT_ARCH_SPIRV;
    case OPJIT_ARTIFACT_ASM: return arch != RT_ARCH_SPIRV; /* spirv-dis makes a text of it */
    case OPJIT_ARTIFACT_LLVM:
    case OPJIT_ARTIFACT_IR:
    case OPJIT_ARTIFACT_JSON: return true;
    case OPJIT_ARTIFACT_WEIGHTS: return false;
    }
    return false;
}

static opjit_status check_kind(const opjit_artifact *a, opjit_artifact_kind kind, opjit_error *error)
{
    static const struct {
        char name[8];
        uint32_t kinds;
    } rows[] = {
#define ROW(name, extension, kinds) { name, kinds },
        OPJIT_ARTIFACT_NAMES(ROW, ROW)
#undef ROW
    };
    const rt_target *target = &a->targets[0];
    const rt_arch arch = rt_target_team(target) == 0 ? RT_ARCH_END : target->arch;
    const char *asked = "library header";
    char there[80] = "";

    if (a->weights_apart && (kind == OPJIT_ARTIFACT_ARCHIVE || kind == OPJIT_ARTIFACT_SHARED))
        return opjit_rt_refuse(
            error, OPJIT_UNSUPPORTED,
            "{!argument}{!kind}{lib}: kernels whose weights are apart are in no library, which would "
            "have to bind them");
    if (kind == OPJIT_ARTIFACT_WEIGHTS && !a->weights_apart)
        return opjit_rt_refuse(error, OPJIT_UNSUPPORTED,
                               "{!argument}{!kind}{weights}: they are part of the objects, without "
                               "OPJIT_ARTIFACT_WEIGHTS_APART");
    if (has_kind(arch, kind) || kind == OPJIT_ARTIFACT_WEIGHTS)
        return OPJIT_OK;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const size_t length = strlen(there);
        if ((rows[i].kinds >> kind & 1) != 0)
            asked = rows[i].name;
        if (has_kind(arch, (opjit_artifact_kind)__builtin_ctz(rows[i].kinds)))
            snprintf(there + length, sizeof there - length, "%s%.7s", length == 0 ? "" : ", ", rows[i].name);
    }
    return opjit_rt_refuse(error, OPJIT_UNSUPPORTED, "{!argument}{!kind}{%s} is not for target %.*s, which has %s",
                           asked, (int)strcspn(target->text, "+,"), target->text, there);
}

static opjit_status make_output(const opjit_artifact *a, const fe_shipped *k, opjit_artifact_kind kind, rt_bytes *out,
                                opjit_error *error)
{
    switch (kind) {
    case OPJIT_ARTIFACT_OBJECT:
    case OPJIT_ARTIFACT_HSACO:
    case OPJIT_ARTIFACT_SPIRV: return generate(a, k, CODEGEN_OBJECT, out, error);
    case OPJIT_ARTIFACT_PTX:
    case OPJIT_ARTIFACT_ASM: return generate(a, k, CODEGEN_ASM, out, error);
    case OPJIT_ARTIFACT_CUBIN: return assemble(a, k, out, error);
    case OPJIT_ARTIFACT_TVM_FFI: return make_tvm_ffi(a, k, out, error);
    case OPJIT_ARTIFACT_LLVM: return generate(a, k, CODEGEN_LLVM, out, error);
    case OPJIT_ARTIFACT_IR: print_ir(a, k, out); break;
    case OPJIT_ARTIFACT_HEADER: opjit_fe_artifact_header(a, k, out); break;
    case OPJIT_ARTIFACT_JSON: opjit_fe_artifact_json(a, k, out); break;
    default: break;
    }
    return out->failed ? opjit_rt_no_memory(error) : OPJIT_OK;
}

/* The registry has the kernels in the order of their names. */
static opjit_status make_library(opjit_artifact *a, codegen_library_kind kind, rt_arena *arena, rt_bytes *out,
                                 opjit_error *error)
{
    codegen_member *members = ARENA_ARRAY(arena, codegen_member, a->kernel_count);
    const codegen_library library = { .name = a->name,
                                      .members = members,
                                      .member_count = a->kernel_count,
                                      .kind = kind,
                                      .target = &a->targets[0],
                                      .allocator = &a->context->core->allocator };
    const uint32_t *const order = opjit_rt_name_set_order(&a->names, arena);
    const opjit_codegen *codegen;

    if (members == NULL || order == NULL)
        return opjit_rt_no_memory(error);
    for (uint32_t i = 0; i < a->kernel_count; i++) {
        const char **versions = ARENA_ARRAY(arena, const char *, a->target_count);
        const fe_shipped *k = a->kernels[order[i]];
        uint64_t bytes;
        if (versions == NULL)
            return opjit_rt_no_memory(error);
        for (uint32_t v = 0; v < a->target_count; v++)
            versions[v] = k->versions[v].unit->name;
        members[i] = (codegen_member){ .name = k->name, .versions = versions, .version_count = a->target_count };
        TRY(opjit_artifact_get(a, order[i], OPJIT_ARTIFACT_OBJECT, &members[i].object, &bytes, error));
        members[i].bytes = (size_t)bytes;
    }
    TRY(opjit_fe_codegen(a->context->core, &codegen, error));
    return codegen->library(&library, out, error);
}

static opjit_status make_common(opjit_artifact *a, opjit_artifact_kind kind, rt_bytes *out, opjit_error *error)
{
    opjit_status status;
    rt_arena arena;

    opjit_rt_arena_init(&arena, &a->context->core->allocator);
    if (kind == OPJIT_ARTIFACT_LIBRARY_HEADER)
        status =
            opjit_fe_artifact_library_header(a, &arena, out) && !out->failed ? OPJIT_OK : opjit_rt_no_memory(error);
    else
        status = make_library(a, kind == OPJIT_ARTIFACT_ARCHIVE ? CODEGEN_ARCHIVE : CODEGEN_SHARED, &arena, out, error);
    opjit_rt_arena_free(&arena);
    return status;
}

opjit_status opjit_artifact_get(opjit_artifact *artifact, uint32_t index, opjit_artifact_kind kind,
                                const void **out_data, uint64_t *out_bytes, opjit_error *error)
{
    rt_bytes *output, made;

    opjit_rt_error_clear(error);
    if (out_data != NULL)
        *out_data = NULL;
    if (out_bytes != NULL)
        *out_bytes = 0;
    if (artifact == NULL || out_data == NULL || out_bytes == NULL)
        return opjit_rt_refuse_null(error, artifact == NULL ? "artifact" : out_data == NULL ? "out_data" : "out_bytes");
    if ((uint32_t)kind < OPJIT_ARTIFACT_OBJECT || (uint32_t)kind > OPJIT_ARTIFACT_TVM_FFI)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                               "{!argument}{kind}: {%u}, must be an opjit_artifact_kind (%u to %u)", (unsigned)kind,
                               (unsigned)OPJIT_ARTIFACT_OBJECT, (unsigned)OPJIT_ARTIFACT_TVM_FFI);
    TRY(check_kind(artifact, kind, error));
    if (is_common(kind) ? artifact->kernel_count == 0 : index >= artifact->kernel_count)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{!argument}{index}: {%u}, there are %u kernels", index,
                               artifact->kernel_count);
    output = is_common(kind) ? &artifact->outputs[kind] : &artifact->kernels[index]->outputs[kind];
    if (output->size == 0) {
        opjit_status status;
        opjit_rt_bytes_init(&made, &artifact->context->core->allocator);
        status = is_common(kind) ? make_common(artifact, kind, &made, error)
                                 : make_output(artifact, artifact->kernels[index], kind, &made, error);
        if (status != OPJIT_OK) {
            opjit_rt_bytes_free(&made);
            return status;
        }
        *output = made;
    }
    *out_data = output->data;
    *out_bytes = output->size;
    return OPJIT_OK;
}
