/* SPDX-License-Identifier: Apache-2.0 */
/* common.c - what commands share: errors as one line, output, the context, pool and compile options that the
 * options mean. */
#define _POSIX_C_SOURCE 200809L

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "frontend/cli/cli.h"
#include "frontend/cli/command/trace.h"

int opjit_cli_complain(const char *file, const char *place, const opjit_error *error)
{
    char head[2 * 4096 + 512], message[OPJIT_ERROR_MESSAGE_SIZE];
    const size_t length = file == NULL ? 0 : strlen(file);
    head[0] = '\0';
    /* else it names it */
    if (length == 0 || strncmp(error->message, file, length) != 0 || error->message[length] != ':')
        snprintf(head, sizeof head, "%s%s%s%s", file != NULL ? file : "opjit",
                 place != NULL && place[0] != '\0' ? ": " : "", place != NULL ? place : "", ": ");
    snprintf(message, sizeof message, "%s", error->message);
    opjit_rt_printable(head);
    opjit_rt_printable(message);
    fprintf(stderr, "%s%s\n", head, message);
    return EXIT_FAILED;
}

void opjit_cli_note(const cli_options *options, const char *file, const char *place, const char *format, ...)
{
    opjit_error note;
    va_list arguments;
    char text[OPJIT_ERROR_MESSAGE_SIZE];
    if (options->quiet)
        return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    opjit_rt_error_set(&note, OPJIT_OK, "note: %s", text);
    opjit_cli_complain(file, place, &note);
}

bool opjit_cli_put(rt_bytes *text)
{
    errno = ENOMEM; /* if the text failed; fwrite has reasons of its own */
    const bool good = !text->failed && fwrite(text->data, 1, text->size, stdout) == text->size;
    text->size = 0;
    return good;
}

opjit_status opjit_cli_no_output(opjit_error *error)
{
    return opjit_rt_error_set(error, OPJIT_IO, "standard output can't be written: %s", strerror(errno));
}

void opjit_cli_progress_begin(cli_progress *p, const cli_options *options)
{
    *p = (cli_progress){ .on = !options->quiet && isatty(STDERR_FILENO) != 0 };
    clock_gettime(CLOCK_MONOTONIC, &p->start);
}

void opjit_cli_progress_show(void *user, uint32_t done, uint32_t total, const char *name)
{
    cli_progress *const p = user;
    struct timespec now;
    char shown[48];
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (!p->on || (now.tv_sec - p->start.tv_sec) + (now.tv_nsec - p->start.tv_nsec) / 1e9 < 1)
        return;
    snprintf(shown, sizeof shown, "%s", name);
    opjit_rt_printable(shown);
    fprintf(stderr, "\rcompiling %" PRIu32 " of %" PRIu32 ": %s\033[K", done + 1, total, shown);
    p->shown = true;
}

void opjit_cli_progress_end(const cli_progress *p)
{
    if (p->shown)
        fprintf(stderr, "\r\033[K");
}

bool opjit_cli_on_device(const cli_options *options)
{
    return strcmp(options->executor, "cuda") == 0 || strcmp(options->executor, "hip") == 0;
}

bool opjit_cli_has_codegen(void)
{
    opjit_build_info info = OPJIT_BUILD_INFO_INIT;
    return opjit_get_build_info(&info, NULL) == OPJIT_OK && info.has_codegen != 0;
}

/* What was ignored: "opjit,warning,disk cache,/proc/x,reason" becomes "opjit: warning: disk cache: /proc/x: reason".
 * Nobody asked for a disk cache in the usual folder, so that one is not missed. */
static void show_warning(const cli_options *options, const opjit_event *event)
{
    static const char start[] = "opjit,warning,";
    if (event->kind != OPJIT_EVENT_WARNING || (!options->cache_named && event->subject == OPJIT_EVENT_DISK_CACHE))
        return;
    fputs("opjit: warning: ", stderr);
    for (const char *c = event->line + sizeof start - 1; *c != '\0'; c++)
        fprintf(stderr, *c == ',' && c[1] != ' ' ? ": " : "%c", *c);
    fputc('\n', stderr);
}

static bool is_verbose(void)
{
    const char *const verbose = getenv("OPJIT_VERBOSE");
    return verbose != NULL && verbose[0] != '\0' && strcmp(verbose, "0") != 0;
}

static void on_event(void *user, const opjit_event *event)
{
    const cli_options *const options = user;
    if (options->recorder != NULL)
        opjit_cli_trace_event(options->recorder, event);
    if (is_verbose())
        fprintf(stderr, "%s\n", event->line);
    else if (!options->quiet)
        show_warning(options, event);
}

opjit_status opjit_cli_context(const cli_options *options, opjit_context **out, opjit_error *error)
{
    opjit_context_options context = OPJIT_CONTEXT_OPTIONS_INIT;
    if (options->recorder != NULL || (!options->quiet && !is_verbose())) { /* else the library prints all of them */
        context.event = on_event;
        context.event_user = (void *)(uintptr_t)options;
    }
    context.feature_level = options->feature_level;
    context.target = options->target;
    context.cache_dir = options->no_cache ? NULL : options->cache_dir;
    context.flags = options->out_of_process ? OPJIT_CONTEXT_OUT_OF_PROCESS : 0;
    context.device = opjit_cli_on_device(options) ? options->executor : NULL;
    return opjit_context_create(&context, out, error);
}

int opjit_cli_with_model(const cli_options *options, opjit_status (*use)(cli_model *m, const cli_options *options))
{
    opjit_context *context = NULL;
    opjit_error error;
    cli_model m;
    int result = EXIT_DONE;
    if (opjit_cli_context(options, &context, &error) != OPJIT_OK)
        return opjit_cli_complain(options->arguments[0], NULL, &error);
    opjit_cli_model_init(&m, options->arguments[0], context);
    m.outside = options->allow_outside;
    m.given_dims = options->dims;
    m.given_count = options->dim_count;
    m.given_to_one = true;
    if (use(&m, options) != OPJIT_OK)
        result = opjit_cli_complain(m.path, m.report.place, &m.report.error);
    opjit_cli_model_free(&m);
    opjit_context_destroy(context);
    return result;
}

opjit_status opjit_cli_pool(const cli_options *options, opjit_pool **out, opjit_error *error)
{
    *out = NULL;
    return options->threads > 1 ? opjit_pool_create(NULL, options->threads, out, error) : OPJIT_OK;
}

opjit_compile_options opjit_cli_compile_options(const cli_options *options)
{
    opjit_compile_options compile = OPJIT_COMPILE_OPTIONS_INIT;
    compile.level = options->level;
    compile.flags = (options->masks_absorb ? OPJIT_COMPILE_MASKS_ABSORB : 0) |
                    (strcmp(options->executor, "interp") == 0 ? OPJIT_COMPILE_INTERPRET : 0) |
                    (options->no_cache ? OPJIT_COMPILE_NO_CACHE : 0);
    return compile;
}
