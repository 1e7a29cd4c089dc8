/* SPDX-License-Identifier: Apache-2.0 */
/* artifact.c - an artifact: a set of kernels compiled ahead of time for one or several targets.  Takes operators and
 * graphs; hands out objects and texts for other programs.  Writes no file and makes no kernel that this process could
 * call. */
#include "frontend/aot/artifact.h"

#include <stdio.h>
#include <string.h>

/* --- names -------------------------------------------------------------------------------------------------------- */

/* Names that C or C++ doesn't allow for a function, or that already mean something there, each between spaces. */
static const char taken[] =
    " EOF INFINITY NAN NULL PTRDIFF_MAX PTRDIFF_MIN SIZE_MAX abort abs acos acosh alignas alignof and and_eq asin "
    "asinh asm atan atan2 atanh auto bitand bitor bool break calloc case catch cbrt ceil char char16_t char32_t "
    "char8_t class co_await co_return co_yield compl complex concept const const_cast consteval constexpr constinit "
    "continue copysign cos cosh decltype default delete do double dynamic_cast else enum erf erfc errno exit exp "
    "exp2 explicit expm1 export extern fabs false fdim float floor fma fmax fmin fmod for free frexp friend gamma "
    "goto hypot if ilogb imaginary index inline int isinf isnan j0 j1 jn labs ldexp lgamma linux llabs log log10 "
    "log1p log2 logb long lrint lround main malloc memchr memcmp memcpy memmove memset modf mutable namespace nan "
    "nearbyint new noexcept noreturn not not_eq nullptr operator or or_eq pow pow10 printf private protected "
    "ptrdiff_t public puts realloc register reinterpret_cast remainder requires restrict return rindex rint round "
    "scalb short signbit signed signgam significand sin sincos sinh size_t sizeof sqrt ssize_t static static_assert "
    "static_cast stderr stdin stdout strcat strchr strcmp strcpy strlen struct switch tan tanh template tgamma this "
    "thread_local throw time_t true trunc try typedef typeid typename typeof union unix unsigned using virtual void "
    "volatile wchar_t while xor xor_eq y0 y1 yn ";

/* What <stdint.h>, which headers include, defines and may define: types and macros for numbers of some size. */
static bool is_of_stdint(const char *name)
{
    const size_t length = strlen(name);
    const char *const number = name + (name[0] == 'u' || name[0] == 'U');
    const bool is_type = strncmp(number, "int", 3) == 0 && strcmp(name + length - 2, "_t") == 0;
    const char *const end = strrchr(name, '_');
    const bool is_macro =
        strncmp(number, "INT", 3) == 0 && end != NULL && opjit_rt_word_is_in(" _C _MAX _MIN ", end, strlen(end));

    return is_type || is_macro;
}

bool opjit_fe_artifact_is_taken(const char *name)
{
    return name[0] == '_' || strstr(name, "__") != NULL || /* reserved for compilers and libraries in C++ */
           is_of_stdint(name) || opjit_rt_word_is_in(taken, name, strlen(name));
}

opjit_status opjit_artifact_check_name(const char *name, opjit_error *error)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";

    opjit_rt_error_clear(error);
    if (name == NULL)
        return opjit_rt_refuse_null(error, "name");
    if (name[0] == '\0' || strspn(name, letters) != strlen(name) || (name[0] >= '0' && name[0] <= '9') ||
        strlen(name) > ARTIFACT_NAME_MOST)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                               "{!options}{name} \"{%.80s}\": must be a C identifier of at most %u characters", name,
                               ARTIFACT_NAME_MOST);
    if (opjit_fe_artifact_is_taken(name))
        return opjit_rt_refuse(
            error, OPJIT_INVALID_ARGUMENT,
            "{!options}{name} \"{%s}\": is a word of C or C++, a function of the C library, or reserved", name);
    return OPJIT_OK;
}

/* What follows a kernel's name in its symbols. */
static const char *const parts[] = { "", "_packed", "_runs_here", "_metadata", "_kernel", "_registry" };
enum { PARTS = sizeof parts / sizeof *parts };

/* The length of name without the part that it ends in; 0: it does not. */
static size_t base_length(const char *name, const char *part)
{
    const size_t length = strlen(name), end = strlen(part);

    return length > end && strcmp(name + length - end, part) == 0 ? length - end : 0;
}

/* The first kernel whose name is a symbol that a kernel of this name would have, or one of whose symbols is this name;
 * NAME_SET_NONE: there is none. */
static uint32_t find_rival(const opjit_artifact *a, const char *name)
{
    char symbol[ARTIFACT_NAME_MOST + 16];
    uint32_t first = NAME_SET_NONE;

    for (uint32_t i = 0; i < PARTS; i++) {
        const size_t base = base_length(name, parts[i]);
        const int length = snprintf(symbol, sizeof symbol, "%s%s", name, parts[i]);
        const uint32_t shorter = base == 0 ? NAME_SET_NONE : opjit_rt_name_set_find(&a->names, name, base);
        const uint32_t longer = opjit_rt_name_set_find(&a->names, symbol, (size_t)length);
        first = shorter < first ? shorter : first;
        first = longer < first ? longer : first;
    }
    return first;
}

static bool is_library_symbol(const opjit_artifact *a, const char *name)
{
    for (uint32_t i = 1; i < PARTS; i++)
        if (base_length(name, parts[i]) == strlen(a->name) && strncmp(name, a->name, strlen(a->name)) == 0)
            return true;
    return false;
}

static opjit_status check_kernel_name(const opjit_artifact *a, const char *name, opjit_error *error)
{
    uint32_t rival;

    TRY(opjit_artifact_check_name(name, error));
    if (is_library_symbol(a, name))
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                               "{!options}{name} \"{%s}\": might be a symbol of the library, whose name is \"%s\"",
                               name, a->name);
    rival = find_rival(a, name);
    if (rival != NAME_SET_NONE)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                               "{!options}{name} \"{%s}\": its symbols would be those of kernel %u, \"%s\"", name,
                               rival, a->kernels[rival]->name);
    return OPJIT_OK;
}

/* --- targets ------------------------------------------------------------------------------------------------------ */

/* Sorts each version behind all whose features include its own; otherwise the order stays. */
static void sort_targets(rt_target *targets, uint32_t count)
{
    for (uint32_t i = 0; i + 1 < count; i++) {
        uint32_t best = i;
        for (uint32_t j = i + 1; j < count; j++)
            if ((targets[best].features & ~targets[j].features) == 0)
                best = j;
        const rt_target first = targets[best];
        memmove(&targets[i + 1], &targets[i], (best - i) * sizeof *targets);
        targets[i] = first;
    }
}

static opjit_status check_versions(const rt_target *targets, uint32_t count, opjit_error *error)
{
    for (uint32_t i = 0; i < count && count > 1; i++) {
        if (targets[i].arch != RT_ARCH_X86_64 && targets[i].arch != RT_ARCH_AARCH64)
            return opjit_rt_refuse(
                error, OPJIT_UNSUPPORTED,
                "{options}.{targets}: %.100s beside others, but only x86-64 and AArch64 have several "
                "versions of one kernel",
                targets[i].text);
        if (targets[i].arch != targets[0].arch)
            return opjit_rt_refuse(
                error, OPJIT_INVALID_ARGUMENT,
                "{options}.{targets}: %.80s and %.80s are different machines, which have an object each",
                targets[0].text, targets[i].text);
        for (uint32_t j = 0; j < i; j++)
            if (targets[i].features == targets[j].features)
                return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                                       "{options}.{targets}: %.80s and %.80s have the same features, so that there is "
                                       "nothing to choose by",
                                       targets[j].text, targets[i].text);
    }
    return OPJIT_OK;
}

static opjit_status read_targets(opjit_artifact *a, const opjit_artifact_options *options, opjit_error *error)
{
    a->target_count = options->target_count == 0 ? 1 : options->target_count;
    if (a->target_count > OPJIT_ARTIFACT_MAX_TARGETS)
        return opjit_rt_refuse(error, OPJIT_LIMIT, "{options}.{target_count}: {%u}, at most %u", a->target_count,
                               OPJIT_ARTIFACT_MAX_TARGETS);
    if (options->target_count != 0 && options->targets == NULL)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{options}.{targets}: {NULL}, must be an array of %u",
                               a->target_count);
    a->targets = ARENA_ARRAY(&a->arena, rt_target, a->target_count);
    if (a->targets == NULL)
        return opjit_rt_no_memory(error);
    a->targets[0] = a->context->target;
    for (uint32_t i = 0; i < options->target_count; i++)
        TRY(opjit_rt_place(error, opjit_rt_target_parse(options->targets[i], &a->targets[i], error), "options",
                           "targets", (int32_t)i));
    TRY(check_versions(a->targets, a->target_count, error));
    sort_targets(a->targets, a->target_count);
    return OPJIT_OK;
}

/* --- life --------------------------------------------------------------------------------------------------------- */

static void free_outputs(rt_bytes *outputs)
{
    for (uint32_t i = 0; i < ARTIFACT_KINDS; i++)
        opjit_rt_bytes_free(&outputs[i]);
}

static void free_shipped(const opjit_artifact *a, fe_shipped *k)
{
    for (uint32_t i = 0; i < a->target_count && k->versions != NULL; i++) {
        if (k->versions[i].unit == NULL)
            continue;
        opjit_rt_bytes_free(&k->versions[i].meta);
        opjit_fe_unit_destroy(k->versions[i].unit);
    }
    free_outputs(k->outputs);
}

static const rt_struct options_sizes = { "opjit_artifact_options", { RT_SIZE_TO(opjit_artifact_options, reserved) } };
RT_STRUCT_ENDS_WITH(opjit_artifact_options, reserved);

opjit_status opjit_artifact_create(opjit_context *context, const opjit_artifact_options *options,
                                   opjit_artifact **out_artifact, opjit_error *error)
{
    opjit_artifact_options given = OPJIT_ARTIFACT_OPTIONS_INIT;
    opjit_artifact *a;
    opjit_status status;

    opjit_rt_error_clear(error);
    if (out_artifact == NULL)
        return opjit_rt_refuse_null(error, "out_artifact");
    *out_artifact = NULL;
    if (context == NULL)
        return opjit_rt_refuse_null(error, "context");
    if (options != NULL)
        TRY(opjit_rt_struct_read(&options_sizes, &given, options, error));
    if (given.name == NULL)
        given.name = "kernels";
    TRY(opjit_artifact_check_name(given.name, error));
    if ((given.flags & ~OPJIT_ARTIFACT_WEIGHTS_APART) != 0)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{options}.{flags}: {0x%x}, must be 0 or 0x%x",
                               given.flags, OPJIT_ARTIFACT_WEIGHTS_APART);
    if (given.reserved != 0)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{options}.{reserved}: {%u}, must be 0", given.reserved);
    a = opjit_rt_allocate(&context->core->allocator, sizeof *a, _Alignof(opjit_artifact));
    if (a == NULL)
        return opjit_rt_no_memory(error);
    memset(a, 0, sizeof *a);
    a->context = context;
    snprintf(a->name, sizeof a->name, "%s", given.name);
    opjit_rt_arena_init(&a->arena, &context->core->allocator);
    for (uint32_t i = 0; i < ARTIFACT_KINDS; i++)
        opjit_rt_bytes_init(&a->outputs[i], &context->core->allocator);
    a->weights_apart = given.flags != 0;
    status = read_targets(a, &given, error);
    if (status == OPJIT_OK && a->weights_apart && rt_target_team(&a->targets[0]) > 0)
        status = opjit_rt_refuse(error, OPJIT_UNSUPPORTED,
                                 "{options}.{flags}: {OPJIT_ARTIFACT_WEIGHTS_APART} is not for target %.*s",
                                 (int)strcspn(a->targets[0].text, "+,"), a->targets[0].text);
    if (status != OPJIT_OK)
        opjit_artifact_destroy(a);
    else
        *out_artifact = a;
    return status;
}

void opjit_artifact_destroy(opjit_artifact *artifact)
{
    if (artifact == NULL)
        return;
    for (uint32_t i = 0; i < artifact->kernel_count; i++)
        free_shipped(artifact, artifact->kernels[i]);
    free_outputs(artifact->outputs);
    opjit_rt_arena_free(&artifact->arena);
    opjit_rt_release(&artifact->context->core->allocator, artifact, sizeof *artifact);
}

uint32_t opjit_artifact_count(const opjit_artifact *artifact)
{
    return artifact == NULL ? 0 : artifact->kernel_count;
}

const char *opjit_artifact_name(const opjit_artifact *artifact, uint32_t index)
{
    return artifact == NULL || index >= artifact->kernel_count ? NULL : artifact->kernels[index]->name;
}

uint32_t opjit_artifact_find(const opjit_artifact *artifact, const char *name)
{
    return artifact == NULL || name == NULL ? OPJIT_ARTIFACT_NONE
                                            : opjit_rt_name_set_find(&artifact->names, name, strlen(name));
}

/* --- adding ------------------------------------------------------------------------------------------------------- */

/* The version's symbol: "causal_mask" for one target; "causal_mask_x86_64_v3" where there are several. */
static void version_name(const opjit_artifact *a, const char *kernel, uint32_t version, char name[static FE_NAME_SIZE])
{
    const char *text = a->targets[version].text;
    const size_t prefix = strcspn(text, ":") + 1, length = strcspn(text, ",") - prefix;

    if (a->target_count == 1)
        snprintf(name, FE_NAME_SIZE, "%s", kernel);
    else if (length <= FE_NAME_SIZE - ARTIFACT_NAME_MOST - 3)
        snprintf(name, FE_NAME_SIZE, "%s_%.*s", kernel, (int)length, text + prefix);
    else /* a level with many features */
        snprintf(name, FE_NAME_SIZE, "%s_version%u", kernel, version);
    for (char *c = name; *c != '\0'; c++)
        if (*c == '-' || *c == '+' || *c == '.')
            *c = '_';
}

static opjit_status make_version(const opjit_artifact *a, const fe_subject *subject, fe_options options,
                                 const fe_shipped *k, uint32_t version, fe_version *out, opjit_error *error)
{
    char name[FE_NAME_SIZE];
    rt_hash key;
    fe_unit *unit;

    version_name(a, k->name, version, name);
    options.name = name;
    options.target = &a->targets[version];
    TRY(opjit_fe_subject_hash(a->context, subject, &options, &key, error));
    TRY(opjit_fe_unit_new(a->context, subject, &options, key, &unit, error));
    out->unit = unit;
    opjit_rt_bytes_init(&out->meta, &unit->core->allocator);
    if (unit->graph.parts != NULL)
        return opjit_rt_refuse(
            error, OPJIT_UNSUPPORTED,
            "{kernel} {!name}\"{%s}\": has custom operators, which are functions of this process and can't be "
            "compiled ahead of time",
            k->name);
    TRY(opjit_fe_unit_program(unit, NULL, error));
    unit->dynamic = NULL; /* it is the caller's */
    return subject->dynamic != NULL ? opjit_fe_dynamic_label(subject->dynamic, &unit->graph, error)
                                    : opjit_fe_graph_label(subject, &unit->graph, error);
}

static uint64_t workspace_of(const fe_version *version)
{
    const opjit_kernel_meta *m = (const opjit_kernel_meta *)(const void *)version->meta.data;

    return m->shared_size + m->scratch_size;
}

static opjit_buffer_info *buffers_of(const fe_version *version)
{
    const opjit_kernel_meta *m = (const opjit_kernel_meta *)(const void *)version->meta.data;

    return (opjit_buffer_info *)(void *)(version->meta.data + m->buffer_info);
}

/* A caller doesn't know which version runs, so an output may share an input's memory only if it may in every
 * version. */
static void agree_on_aliases(const fe_shipped *k, uint32_t versions)
{
    const opjit_kernel_meta *m = (const opjit_kernel_meta *)(const void *)k->versions[0].meta.data;

    for (uint32_t b = m->inputs; b < m->inputs + m->outputs; b++) {
        uint32_t all = UINT32_MAX;
        for (uint32_t i = 0; i < versions; i++)
            all &= buffers_of(&k->versions[i])[b].alias_inputs;
        for (uint32_t i = 0; i < versions; i++)
            buffers_of(&k->versions[i])[b].alias_inputs = all;
    }
}

static opjit_status make_shipped(opjit_artifact *a, const fe_subject *subject, const fe_options *options, fe_shipped *k,
                                 opjit_error *error)
{
    k->versions = ARENA_ARRAY(&a->arena, fe_version, a->target_count);
    if (k->versions == NULL)
        return opjit_rt_no_memory(error);
    for (uint32_t i = 0; i < a->target_count; i++)
        TRY(make_version(a, subject, *options, k, i, &k->versions[i], error));
    TRY(opjit_fe_artifact_constants(a, subject, k, error));
    for (uint32_t i = 0; i < a->target_count; i++) {
        TRY(opjit_fe_meta_make(k->versions[i].unit, &k->versions[i].meta, error));
        const uint64_t needed = workspace_of(&k->versions[i]);
        k->workspace = needed > k->workspace ? needed : k->workspace;
    }
    agree_on_aliases(k, a->target_count);
    return opjit_fe_artifact_arguments(&a->arena, k, error);
}

static opjit_status grow(opjit_artifact *a, opjit_error *error)
{
    const uint32_t capacity = a->kernel_capacity == 0 ? 16 : a->kernel_capacity * 2;
    fe_shipped **kernels;

    if (a->kernel_count < a->kernel_capacity)
        return OPJIT_OK;
    kernels = ARENA_ARRAY(&a->arena, fe_shipped *, capacity);
    if (kernels == NULL)
        return opjit_rt_no_memory(error);
    if (a->kernel_count != 0)
        memcpy(kernels, a->kernels, a->kernel_count * sizeof *kernels);
    a->kernels = kernels;
    a->kernel_capacity = capacity;
    return OPJIT_OK;
}

static opjit_status add(opjit_artifact *a, const fe_subject *subject, const opjit_compile_options *options,
                        opjit_error *error)
{
    fe_options read;
    fe_shipped *k;
    opjit_status status;

    TRY(opjit_fe_options_read(a->context, subject->op, options, &read, error));
    if (read.target != &a->context->target)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                               "{options}.{target}: must be NULL, the artifact's targets hold");
    if ((read.flags & OPJIT_COMPILE_INTERPRET) != 0)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                               "{options}.{flags}: OPJIT_COMPILE_INTERPRET, but an artifact is machine code");
    TRY(check_kernel_name(a, read.name, error));
    if (subject->dynamic != NULL) {
        fe_options own = read;
        own.target = &a->targets[0];
        TRY(opjit_fe_dynamic_check(&own, options, error));
    }
    TRY(grow(a, error));
    if (options->level == OPJIT_LEVEL_AUTO) /* compiled once and run for years */
        read.level = OPJIT_LEVEL_PEAK;
    k = ARENA_NEW(&a->arena, fe_shipped);
    if (k == NULL)
        return opjit_rt_no_memory(error);
    snprintf(k->name, sizeof k->name, "%s", read.name);
    for (uint32_t i = 0; i < ARTIFACT_KINDS; i++)
        opjit_rt_bytes_init(&k->outputs[i], &a->context->core->allocator);
    status = make_shipped(a, subject, &read, k, error);
    if (status != OPJIT_OK) {
        free_shipped(a, k);
        return status;
    }
    if (!opjit_rt_name_set_add(&a->names, &a->arena, k->name)) {
        free_shipped(a, k);
        return opjit_rt_no_memory(error);
    }
    a->kernels[a->kernel_count++] = k;
    free_outputs(a->outputs); /* libraries now have one more kernel */
    return OPJIT_OK;
}

static opjit_status check_arguments(const opjit_artifact *artifact, const void *subject, const char *what,
                                    const opjit_compile_options *options, opjit_error *error)
{
    opjit_rt_error_clear(error);
    if (artifact == NULL || subject == NULL || options == NULL)
        return opjit_rt_refuse_null(error, artifact == NULL ? "artifact" : subject == NULL ? what : "options");
    return OPJIT_OK;
}

opjit_status opjit_artifact_add_operator(opjit_artifact *artifact, opjit_operator *op,
                                         const opjit_compile_options *options, opjit_error *error)
{
    const fe_subject subject = { .op = op };

    TRY(check_arguments(artifact, op, "op", options, error));
    return add(artifact, &subject, options, error);
}

opjit_status opjit_artifact_add_graph(opjit_artifact *artifact, const DML_GRAPH_DESC *desc,
                                      const opjit_compile_options *options, opjit_error *error)
{
    fe_subject subject;

    TRY(check_arguments(artifact, desc, "desc", options, error));
    TRY(opjit_fe_graph_subject(desc, options, &subject, error));
    return add(artifact, &subject, options, error);
}

opjit_context *opjit_fe_artifact_context(const opjit_artifact *artifact)
{
    return artifact->context;
}

opjit_status opjit_artifact_add_dynamic(opjit_artifact *artifact, const opjit_dim *dims, uint32_t dim_count,
                                        opjit_describe_fn describe, void *user, const opjit_compile_options *options,
                                        opjit_error *error)
{
    fe_dynamic dynamic = { .dims = dims, .dim_count = dim_count, .describe = describe, .user = user };
    const fe_subject subject = { .dynamic = &dynamic };

    opjit_rt_error_clear(error);
    if (describe == NULL || artifact == NULL)
        return opjit_rt_refuse_null(error, artifact == NULL ? "artifact" : "describe");
    dynamic.context = artifact->context;
    TRY(check_arguments(artifact, dims, "dims", options, error));
    return add(artifact, &subject, options, error);
}
