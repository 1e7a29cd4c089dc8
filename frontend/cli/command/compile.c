/* SPDX-License-Identifier: Apache-2.0 */
/* compile.c - `opjit compile`: dispatchables of any number of models as objects, headers and texts.  All of it is
 * made before the first file is written. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include <opjit/artifact.h>

#include "frontend/cli/cli.h"
#include "frontend/cli/command/late.h"
#include "frontend/cli/command/onnx.h"
#include "frontend/cli/command/trace.h"
#include "frontend/cli/files/files.h"
#include "frontend/cli/text/symbol.h"

static const struct {
    const char *name, *extension;
    uint32_t kinds; /* bits 1 << opjit_artifact_kind */
} emits[] = {
#define ROW(name, extension, kinds) { name, extension, kinds },
    OPJIT_ARTIFACT_NAMES(ROW, ROW)
#undef ROW
};

uint32_t opjit_cli_emit_kinds(const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof emits / sizeof *emits; i++)
        if (strlen(emits[i].name) == length && memcmp(emits[i].name, name, length) == 0)
            return emits[i].kinds;
    return 0;
}

/* --- models into the artifact ------------------------------------------------------------------------------------- */

/* Where a kernel comes from: for messages about two of one name. */
typedef struct origin {
    const char *model;
    char dispatchable[64];
    bool renamed;      /* the symbol is not its name */
    const char *place; /* in the model; NULL: the whole of it */
} origin;

typedef struct compiler {
    const cli_options *options;
    opjit_context *context;
    opjit_artifact *artifact;
    rt_arena arena;
    origin *origins; /* by kernel */
    uint32_t capacity;
    cli_late late;
    bool found;                  /* the dispatchable that was asked for */
    char meant[CLI_SUGGEST_TEXT]; /* the one of the last model that may have been meant */
    char symbol[SYMBOL_SIZE];
} compiler;

/* name: of the dispatchable or file. */
static opjit_status remember(compiler *c, const char *path, const char *name, opjit_error *error, uint32_t kernel)
{
    if (kernel >= c->capacity) {
        const uint32_t capacity = c->capacity == 0 ? 64 : c->capacity * 2;
        origin *const origins = ARENA_ARRAY(&c->arena, origin, capacity);
        if (origins == NULL)
            return opjit_rt_no_memory(error);
        if (c->capacity != 0)
            memcpy(origins, c->origins, c->capacity * sizeof *origins);
        c->origins = origins;
        c->capacity = capacity;
    }
    c->origins[kernel].model = path;
    snprintf(c->origins[kernel].dispatchable, sizeof c->origins[kernel].dispatchable, "%s", name);
    return OPJIT_OK;
}

/* Two models may well use one name, and two names may become one symbol. */
static opjit_status check_unique(const compiler *c, cli_model *m, const cli_dispatchable *d)
{
    const uint32_t other = opjit_artifact_find(c->artifact, c->symbol);
    if (other == OPJIT_ARTIFACT_NONE)
        return OPJIT_OK;
    return opjit_cli_fail(
        m, d->json, OPJIT_INVALID_ARGUMENT, "its symbol would be %s, as that of \"%s\" of %.120s%s", c->symbol,
        c->origins[other].dispatchable, c->origins[other].model,
        c->options->prefix_model || strcmp(c->origins[other].model, m->path) == 0 ? "" : "; see --prefix-model");
}

/* A name that is no identifier, or one of C's own, becomes another symbol, which users don't find by its name. */
static opjit_status note_symbol(compiler *c, cli_model *m, const cli_dispatchable *d, uint32_t kernel)
{
    const size_t length = strlen(c->symbol), name = d->json->key_length;
    origin *const o = &c->origins[kernel];
    const bool ends = length >= name && memcmp(c->symbol + length - name, d->json->key, name) == 0;
    char place[CLI_PLACE];
    if (c->options->symbol != NULL || (ends && (c->options->prefix_model || length == name)))
        return OPJIT_OK;
    opjit_cli_json_path(d->json, place, sizeof place);
    o->renamed = true;
    o->place = opjit_rt_arena_string(&c->arena, place, strlen(place));
    return o->place != NULL ? OPJIT_OK : opjit_cli_no_memory(m, d->json);
}

/* Once all is well, so that an error is the only line there is. */
static void put_notes(const compiler *c)
{
    for (uint32_t i = 0; i < opjit_artifact_count(c->artifact); i++)
        if (c->origins[i].renamed)
            opjit_cli_note(c->options, c->origins[i].model, c->origins[i].place, "its symbol in C is %s",
                           opjit_artifact_name(c->artifact, i));
}

/* The symbol of the next kernel, which is called so, or as --symbol says.  model: of --prefix-model, or NULL. */
static opjit_status find_symbol(compiler *c, const char *model, const char *name, size_t length, opjit_error *error)
{
    const char *const given = c->options->symbol;
    if (given == NULL)
        return opjit_cli_symbol(model, name, length, c->symbol, error);
    if (opjit_artifact_count(c->artifact) != 0)
        return opjit_rt_error_set(error, OPJIT_INVALID_ARGUMENT, "--symbol %s is for one kernel, and there are more",
                                  given);
    memcpy(c->symbol, given, strlen(given) + 1); /* it is a name, so it fits */
    return OPJIT_OK;
}

static opjit_status add(compiler *c, cli_model *m, cli_dispatchable *d)
{
    const uint32_t index = opjit_artifact_count(c->artifact);
    opjit_compile_options compile = opjit_cli_compile_options(c->options);
    opjit_status status;
    char name[64];
    TRY(opjit_cli_at(m, d->json,
                     find_symbol(c, c->options->prefix_model ? m->path : NULL, d->json->key, d->json->key_length,
                                 &m->report.error)));
    TRY(check_unique(c, m, d));
    snprintf(name, sizeof name, "%.*s%s", CLI_QUOTE_KEY(d->json));
    TRY(opjit_cli_at(m, d->json, remember(c, m->path, name, &m->report.error, index)));
    TRY(note_symbol(c, m, d, index));
    compile.name = c->symbol;
    TRY(opjit_cli_late_of(&c->late, m, d, &compile));
    if (d->uses_dims && !opjit_cli_has_sizes(m))
        return opjit_cli_add_dynamic(m, d, c->artifact, &compile);
    if (d->graph != NULL)
        status = opjit_artifact_add_graph(c->artifact, &d->graph->desc, &compile, &m->report.error);
    else
        status = opjit_artifact_add_operator(c->artifact, d->own.op, &compile, &m->report.error);
    return opjit_cli_at_dispatchable(m, d, status);
}

static opjit_status read_model(compiler *c, cli_model *m)
{
    const char *const name = c->options->dispatchable;
    TRY(opjit_cli_model_load(m));
    TRY(opjit_cli_read_resources(m));
    TRY(opjit_cli_read_dispatchables(m));
    for (uint32_t i = 0; i < m->dispatchable_count; i++) {
        cli_dispatchable *const d = &m->dispatchables[i];
        if (name != NULL && (strlen(name) != d->json->key_length || memcmp(name, d->json->key, strlen(name)) != 0))
            continue;
        c->found = true;
        TRY(add(c, m, d));
    }
    if (!c->found && name != NULL)
        opjit_cli_near_dispatchable(m, name, c->meant);
    return OPJIT_OK;
}

/* An .onnx model is one kernel, called as its file. */
static opjit_status add_onnx(compiler *c, cli_onnx *m)
{
    const char *const slash = strrchr(m->path, '/'), *const name = slash == NULL ? m->path : slash + 1;
    const size_t stem = strlen(name) - strlen(".onnx");
    const uint32_t index = opjit_artifact_count(c->artifact);
    opjit_compile_options compile = opjit_cli_compile_options(c->options);
    const DML_GRAPH_DESC *desc;
    TRY(opjit_cli_onnx_open(c->options, m->path, c->context, false, m));
    TRY(find_symbol(c, NULL, name, stem, &m->error));
    TRY(remember(c, m->path, name, &m->error, index));
    c->origins[index].renamed =
        c->options->symbol == NULL && (strlen(c->symbol) != stem || memcmp(c->symbol, name, stem) != 0);
    compile.name = c->symbol;
    if (m->range_count != 0)
        return opjit_model_add_dynamic(m->model, c->artifact, m->ranges, m->range_count, &compile, &m->error);
    TRY(opjit_graph_get_desc(opjit_model_graph(m->model), &desc, &m->error));
    return opjit_artifact_add_graph(c->artifact, desc, &compile, &m->error);
}

static int read_onnx(compiler *c, const char *path)
{
    cli_onnx m = { .path = path };
    const opjit_status status = add_onnx(c, &m);
    if (status != OPJIT_OK)
        opjit_cli_complain(path, NULL, &m.error);
    opjit_cli_onnx_close(&m);
    c->found = true;
    return status == OPJIT_OK ? EXIT_DONE : EXIT_FAILED;
}

/* The exit status. */
static int read_models(compiler *c)
{
    for (uint32_t i = 0; i < c->options->argument_count; i++) {
        int result = EXIT_DONE;
        cli_model m;
        if (opjit_cli_is_onnx(c->options->arguments[i])) {
            if (read_onnx(c, c->options->arguments[i]) != EXIT_DONE)
                return EXIT_FAILED;
            continue;
        }
        opjit_cli_model_init(&m, c->options->arguments[i], c->context);
        m.outside = c->options->allow_outside;
        m.given_dims = c->options->dims;
        m.given_count = c->options->dim_count;
        m.given_to_one = c->options->argument_count == 1;
        if (read_model(c, &m) != OPJIT_OK)
            result = opjit_cli_complain(m.path, m.report.place, &m.report.error);
        opjit_cli_model_free(&m);
        if (result != EXIT_DONE)
            return result;
    }
    if (!c->found) {
        opjit_error error;
        opjit_rt_error_set(&error, OPJIT_NOT_FOUND, "there is no dispatchable%s%.60s%s%s",
                           c->options->dispatchable == NULL ? "" : " \"",
                           c->options->dispatchable == NULL ? "" : c->options->dispatchable,
                           c->options->dispatchable == NULL ? "" : "\"", c->meant);
        return opjit_cli_complain(c->options->arguments[0], NULL, &error);
    }
    return EXIT_DONE;
}

/* --- files -------------------------------------------------------------------------------------------------------- */

/* Makes the folder, and those that it lies in. */
static opjit_status make_folder(char *path, opjit_error *error)
{
    for (char *at = path + 1;; at++) {
        const char was = *at;
        if (was != '/' && was != '\0')
            continue;
        *at = '\0';
        if (mkdir(path, 0777) != 0 && errno != EEXIST)
            return opjit_rt_error_set(error, OPJIT_IO, "can't be made: %s", strerror(errno));
        *at = was;
        if (was == '\0')
            return OPJIT_OK;
    }
}

/* A run over all outputs: makes them, or writes them. */
typedef struct outputs {
    compiler *c;
    bool write;
    cli_progress progress;
    char path[4096]; /* of the file at hand, for messages */
    cli_file file;
    struct stat weights; /* of --weights, once it is written */
    opjit_error *error;
} outputs;

static opjit_status put_output(outputs *o, uint32_t index, opjit_artifact_kind kind, const char *before,
                               const char *name, const char *extension)
{
    const void *data;
    uint64_t bytes;
    struct stat info;
    if ((size_t)snprintf(o->path, sizeof o->path, "%s/%s%s.%s", o->c->options->output, before, name, extension) >=
            sizeof o->path ||
        (size_t)snprintf(o->file.name, sizeof o->file.name, "%s%s.%s", before, name, extension) >= sizeof o->file.name)
        return opjit_rt_error_set(o->error, OPJIT_LIMIT, "its path is too long");
    TRY(opjit_artifact_get(o->c->artifact, index, kind, &data, &bytes, o->error));
    if (!o->write)
        return OPJIT_OK;
    if (o->weights.st_ino != 0 && fstatat(o->file.folder, o->file.name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
        cli_is_same_file(&info, &o->weights))
        return opjit_rt_error_set(o->error, OPJIT_INVALID_ARGUMENT, "would replace the file of --weights");
    TRY(opjit_cli_file_write(&o->file, NULL, data, (size_t)bytes, o->error));
    if (!o->c->options->quiet)
        printf("%s\n", o->path);
    return OPJIT_OK;
}

static opjit_status put_kernel(outputs *o, uint32_t index)
{
    for (size_t i = 0; i < sizeof emits / sizeof *emits; i++)
        for (uint32_t kind = OPJIT_ARTIFACT_OBJECT; kind <= OPJIT_ARTIFACT_TVM_FFI; kind++)
            if (emits[i].extension != NULL && (o->c->options->emit & emits[i].kinds & 1u << kind) != 0)
                TRY(put_output(o, index, (opjit_artifact_kind)kind, "", opjit_artifact_name(o->c->artifact, index),
                               emits[i].extension));
    return OPJIT_OK;
}

static opjit_status put_libraries(outputs *o)
{
    const char *const name = o->c->options->library;
    const uint32_t emit = o->c->options->emit;
    if ((emit & 1u << OPJIT_ARTIFACT_ARCHIVE) == 0)
        return OPJIT_OK;
    TRY(put_output(o, 0, OPJIT_ARTIFACT_ARCHIVE, "lib", name, "a"));
    TRY(put_output(o, 0, OPJIT_ARTIFACT_SHARED, "lib", name, "so"));
    if ((emit & 1u << OPJIT_ARTIFACT_HEADER) == 0)
        return OPJIT_OK;
    TRY(put_output(o, 0, OPJIT_ARTIFACT_LIBRARY_HEADER, "", name, "h"));
    for (uint32_t i = 0; i < opjit_artifact_count(o->c->artifact); i++)
        if (strcmp(opjit_artifact_name(o->c->artifact, i), name) == 0)
            return opjit_rt_error_set(o->error, OPJIT_INVALID_ARGUMENT,
                                      "would be the header of both a kernel and the library: see --name");
    return OPJIT_OK;
}

/* The weights of the one kernel, in the file that --weights says, which is not its model. */
static opjit_status put_weights(outputs *o)
{
    const char *const path = o->c->options->weights, *const slash = strrchr(path, '/');
    struct stat there, model;
    const void *data;
    uint64_t bytes;
    cli_file file;
    snprintf(o->path, sizeof o->path, "%s", path);
    if (opjit_artifact_count(o->c->artifact) != 1)
        return opjit_rt_error_set(o->error, OPJIT_INVALID_ARGUMENT,
                                  "would have the weights of %u kernels: see --dispatchable",
                                  opjit_artifact_count(o->c->artifact));
    TRY(opjit_artifact_get(o->c->artifact, 0, OPJIT_ARTIFACT_WEIGHTS, &data, &bytes, o->error));
    if (bytes == 0)
        return opjit_rt_error_set(o->error, OPJIT_INVALID_ARGUMENT,
                                  "would be empty: the kernel reads no constants");
    if (stat(path, &there) == 0 && stat(o->c->origins[0].model, &model) == 0 && cli_is_same_file(&there, &model))
        return opjit_rt_error_set(o->error, OPJIT_INVALID_ARGUMENT, "is the model, which the weights would replace");
    if (!o->write)
        return OPJIT_OK;
    TRY(opjit_cli_file_find(path, slash == NULL ? path : slash + 1, true, &file, o->error));
    opjit_status status = opjit_cli_file_write(&file, NULL, data, (size_t)bytes, o->error);
    if (status == OPJIT_OK)
        status = opjit_cli_folder_sync(file.folder, o->error);
    if (status == OPJIT_OK)
        (void)fstatat(file.folder, file.name, &o->weights, AT_SYMLINK_NOFOLLOW);
    opjit_cli_file_close(&file);
    if (status == OPJIT_OK && !o->c->options->quiet)
        printf("%s\n", o->path);
    return status;
}

static opjit_status put_all(outputs *o)
{
    const uint32_t count = opjit_artifact_count(o->c->artifact);
    if (o->c->options->weights != NULL)
        TRY(put_weights(o));
    for (uint32_t k = 0; k < count; k++) {
        opjit_cli_progress_show(&o->progress, k, count, opjit_artifact_name(o->c->artifact, k));
        TRY(put_kernel(o, k));
    }
    return put_libraries(o);
}

/* Makes the folder, and writes all outputs into it. */
static opjit_status write_all(outputs *o)
{
    opjit_status status;
    TRY(make_folder(o->path, o->error));
    o->file.folder = open(o->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (o->file.folder < 0)
        return opjit_rt_error_set(o->error, OPJIT_IO, "can't be opened: %s", strerror(errno));
    o->write = true;
    status = put_all(o);
    if (status == OPJIT_OK)
        status = opjit_cli_folder_sync(o->file.folder, o->error);
    opjit_cli_file_close(&o->file);
    return status;
}

static int write_files(compiler *c)
{
    opjit_error error;
    outputs o = { .c = c, .error = &error };
    opjit_status status;
    opjit_cli_progress_begin(&o.progress, c->options);
    status = put_all(&o);
    opjit_cli_progress_end(&o.progress);
    o.progress.on = false; /* writing takes no time */
    if (status == OPJIT_OK && snprintf(o.path, sizeof o.path, "%s", c->options->output) < (int)sizeof o.path)
        status = write_all(&o);
    return status == OPJIT_OK ? EXIT_DONE : opjit_cli_complain(o.path, NULL, &error);
}

static int compile(compiler *c)
{
    opjit_error error;
    int result = opjit_cli_late_begin(&c->late, c->options, &c->arena, &error) == OPJIT_OK
                     ? read_models(c)
                     : opjit_cli_complain(NULL, NULL, &error);
    if (result == EXIT_DONE && opjit_cli_late_end(&c->late, &error) != OPJIT_OK)
        result = opjit_cli_complain(NULL, NULL, &error);
    if (result == EXIT_DONE)
        result = write_files(c);
    if (result == EXIT_DONE)
        put_notes(c);
    return result;
}

static int compile_models(const cli_options *options)
{
    compiler c = { .options = options };
    opjit_artifact_options artifact = OPJIT_ARTIFACT_OPTIONS_INIT;
    opjit_error error;
    int result = EXIT_FAILED;
    artifact.targets = options->targets;
    artifact.target_count = options->target_count;
    artifact.name = options->library;
    artifact.flags = options->weights != NULL ? OPJIT_ARTIFACT_WEIGHTS_APART : 0;
    opjit_rt_arena_init(&c.arena, &opjit_rt_default_allocator);
    if (opjit_cli_context(options, &c.context, &error) == OPJIT_OK &&
        opjit_artifact_create(c.context, &artifact, &c.artifact, &error) == OPJIT_OK)
        result = compile(&c);
    else
        opjit_cli_complain(NULL, NULL, &error);
    opjit_artifact_destroy(c.artifact);
    opjit_context_destroy(c.context);
    opjit_rt_arena_free(&c.arena);
    return result;
}

int opjit_cli_compile_ahead(const cli_options *options)
{
    opjit_error error;
    cli_options traced;
    cli_trace trace;
    if (options->output == NULL) {
        opjit_rt_error_set(&error, OPJIT_INVALID_ARGUMENT, "compile: -o DIR is missing: see opjit --help");
        opjit_cli_complain(NULL, NULL, &error);
        return EXIT_USAGE;
    }
    opjit_cli_trace_begin(&trace, options, &traced);
    return opjit_cli_trace_end(&trace, compile_models(&traced));
}
