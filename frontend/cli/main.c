/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - the program: reads the command line by options.c, and runs a command.  What commands do is in command/. */
#define _POSIX_C_SOURCE 200809L

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <opjit/artifact.h>

#include "frontend/cli/command/onnx.h"
#include "frontend/cli/options.h"

/* OPJIT_CACHE_DIR, else opjit in the XDG cache folder; NULL where there is no home either.  arena owns the text. */
static const char *default_cache_dir(rt_arena *arena, bool *out_named)
{
    const char *const given = getenv("OPJIT_CACHE_DIR"), *base = getenv("XDG_CACHE_HOME"), *tail = "/opjit";
    char *out;
    *out_named = given != NULL && given[0] != '\0';
    if (*out_named)
        return given;
    if (base == NULL || base[0] != '/') { /* the XDG rules ignore relative paths */
        base = getenv("HOME");
        tail = "/.cache/opjit";
    }
    if (base == NULL || base[0] != '/')
        return NULL;
    out = opjit_rt_arena_allocate(arena, 1, strlen(base) + strlen(tail) + 1);
    if (out != NULL) {
        strcpy(out, base);
        strcat(out, tail);
    }
    return out;
}

/* Refuses an option that does nothing for any of the models: some are for .onnx models, one is for JSON models.  0, or
 * the exit status. */
static int check_models(const cli_options *o)
{
    bool has_onnx = false, has_json = false;
    for (uint32_t i = 0; i < o->argument_count; i++) {
        if (o->arguments[i][0] == '\0')
            return opjit_cli_usage("the name of a model is empty", "", "");
        const bool is_onnx = opjit_cli_is_onnx(o->arguments[i]);
        has_onnx = has_onnx || is_onnx;
        has_json = has_json || !is_onnx;
    }
    const char *const onnx_alone = o->input_count != 0     ? "--input"
                                   : o->shape_count != 0   ? "--shape"
                                   : o->output_dir != NULL ? "--output-dir"
                                                           : NULL;
    if (!has_onnx && onnx_alone != NULL)
        return opjit_cli_usage(onnx_alone, " is for .onnx models", "");
    if (!has_json && o->dispatchable != NULL)
        return opjit_cli_usage("--dispatchable", " is for JSON models", "");
    return 0;
}

/* Runs the command that the arguments name, once all of them are read. */
static int run_command(cli_parser *p)
{
    const cli_command_row *const c = p->command;
    if (p->options.version)
        return opjit_cli_version(&p->options);
    if (p->options.help)
        return opjit_cli_help(c);
    if (c == NULL)
        return opjit_cli_usage("no command was given", "", "");
    if (p->options.argument_count < c->arguments_min)
        return opjit_cli_usage(
            c->name, strncmp(c->arguments, "MODEL", 5) == 0 ? ": no model was given" : ": an argument is missing", "");
    if (p->options.argument_count > c->arguments_max)
        return opjit_cli_usage("too many arguments for ", c->name, "");
    if (p->options.target_count > 1 && c->run != opjit_cli_compile_ahead)
        return opjit_cli_usage("several targets are for compile, not for ", c->name, "");
    const int status = strstr(c->arguments, "MODEL") == NULL ? 0 : check_models(&p->options);
    if (status != 0)
        return status;
    return c->run(&p->options);
}

int main(int argc, char **argv)
{
    rt_arena arena;
    cli_parser p = { .options = { .executor = "cpu",
                                  .threads = 1,
                                  .library = "kernels",
                                  .emit = 1u << OPJIT_ARTIFACT_OBJECT | 1u << OPJIT_ARTIFACT_HEADER },
                     .arena = &arena };
    int status;
    (void)signal(SIGXFSZ, SIG_IGN); /* a file beyond ulimit -f is an error like others */
    opjit_rt_arena_init(&arena, &opjit_rt_default_allocator);
    p.options.cache_dir = default_cache_dir(&arena, &p.options.cache_named);
    status = opjit_cli_read_arguments(&p, argc, argv);
    if (status == 0)
        status = run_command(&p);
    opjit_rt_arena_free(&arena);
    if (fflush(stdout) != 0 && status == EXIT_DONE) {
        opjit_cli_no_output(&p.error);
        status = opjit_cli_complain(NULL, NULL, &p.error);
    }
    return status;
}
