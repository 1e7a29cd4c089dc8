/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - the program: options and help.  What its commands do is in the cmd_*.c files. */
#define _POSIX_C_SOURCE 200809L

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "frontend/cli/cli.h"
#include "runtime/target.h"

/* --- commands ----------------------------------------------------------------------------------------------------- */
typedef struct command {
    const char *name;
    cli_command_fn run;
    uint32_t arguments_min, arguments_max;
    const char *synopsis, *help;
} command;

static const command commands[] = {
    { "run", opjit_cli_run, 1, 1, "MODEL.json [--executor cpu|interp|cuda|hip] [--threads N]",
      "run the model's commands" },
    { "explain", opjit_cli_explain, 1, 1, "MODEL.json [--dispatchable NAME]",
      "show each dispatchable, its IR after each pass, and what it writes" },
    { "ops", opjit_cli_ops, 0, 1, "[NAME]", "list the operators, or one with its fields" },
    { "targets", opjit_cli_targets, 0, 0, "", "list what code can be made for" },
    { "version", opjit_cli_version, 0, 0, "", "print versions" },
    { "compile", opjit_cli_compile_ahead, 1, UINT32_MAX, "MODEL.json... [--dispatchable NAME] [--emit KIND,...] -o DIR",
      "compile dispatchables ahead of time, into files for other programs" },
    { "bench", opjit_cli_bench, 0, 1, "[MODEL.json] [--json] [--quick] [--threads N]",
      "measure a model's dispatchables, or the generators, beside memset and memcpy" },
    { "cache", opjit_cli_cache, 1, 1, "list|verify|clear", "look after the disk cache" },
};

static const command *find_command(const char *name)
{
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    }
    return NULL;
}

static int help(void)
{
    printf("usage: opjit COMMAND [OPTION...] [ARGUMENT...]\n\ncommands:\n");
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        printf(commands[i].synopsis[0] != 0 ? "  %-8s %s\n           %s\n" : "  %s%s\n           %s\n",
               commands[i].name, commands[i].synopsis, commands[i].help);
    printf(
        "\noptions:\n"
        "  --executor E            cpu, interp: run machine code, or the IR in the interpreter; cuda, hip: on the\n"
        "                          first GPU (run)\n"
        "  --threads N             threads that a kernel may use, 1 to 256; default 1 (run, bench)\n"
        "  --json                  results as JSON (bench)\n"
        "  --quick                 fewer cases (bench)\n"
        "  --dispatchable NAME     this one only (explain, compile)\n"
        "  --emit KIND,...         obj, header, lib, llvm, asm, ir, json, ptx, cubin, hsaco, spirv; default obj,header (compile)\n"
        "  -o DIR                  the folder for them, made where it is missing (compile)\n"
        "  --name NAME             libNAME.a, libNAME.so, NAME.h of --emit lib; default kernels (compile)\n"
        "  --prefix-model          names are MODEL_DISPATCHABLE (compile)\n"
        "  --feature-level L       hold operators to DirectML feature level L, e.g. 5.1\n"
        "  --level quick|peak      fast to compile, or fast to run\n"
        "  --target T              compile for T, as `opjit targets` prints it; compile takes several\n"
        "  --masks-absorb          -inf of a mask decides an addition alone\n"
        "  --no-cache              neither read nor write the disk cache\n"
        "  --cache-dir DIR         the disk cache; default $OPJIT_CACHE_DIR, else opjit in the XDG cache folder\n"
        "  --quiet                 no progress and notes\n"
        "  --help                  this text\n"
        "\nexit status: 0 done, 1 the work failed, 2 a wrong option or no model\n");
    return fflush(stdout) == 0 ? EXIT_DONE : EXIT_FAILED;
}

/* --- options ------------------------------------------------------------------------------------------------------ */
/* State of reading the command line. */
typedef struct parser {
    cli_options options;
    opjit_error error;
    const char *command;
    bool help;
    rt_arena *arena;
    const char *targets[OPJIT_ARTIFACT_MAX_TARGETS];
} parser;

static opjit_status set_executor(parser *p, const char *value)
{
    if (strcmp(value, "cpu") != 0 && strcmp(value, "interp") != 0 && strcmp(value, "cuda") != 0 &&
        strcmp(value, "hip") != 0)
        return opjit_rt_error_set(&p->error, OPJIT_INVALID_ARGUMENT, "%s is none of cpu, interp, cuda, hip", value);
    p->options.executor = value;
    return OPJIT_OK;
}

static opjit_status set_threads(parser *p, const char *value)
{
    char *end;
    const unsigned long number = value[0] >= '0' && value[0] <= '9' ? strtoul(value, &end, 10) : 0;
    if (number < 1 || number > 256 || *end != '\0')
        return opjit_rt_error_set(&p->error, OPJIT_INVALID_ARGUMENT, "%s is not a number from 1 to 256", value);
    p->options.threads = (uint32_t)number;
    return OPJIT_OK;
}

static opjit_status set_feature_level(parser *p, const char *value)
{
    static const char *const levels[] = { "1.0", "2.0", "2.1", "3.0", "3.1", "4.0", "4.1", "5.0",
                                          "5.1", "5.2", "6.0", "6.1", "6.2", "6.3", "6.4" };
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        if (strcmp(levels[i], value) == 0) {
            p->options.feature_level = (uint32_t)(value[0] - '0') << 12 | (uint32_t)(value[2] - '0') << 8;
            return OPJIT_OK;
        }
    }
    return opjit_rt_error_set(&p->error, OPJIT_INVALID_ARGUMENT, "%s is no feature level of DirectML: 1.0 to 6.4",
                              value);
}

static opjit_status set_level(parser *p, const char *value)
{
    p->options.level = strcmp(value, "quick") == 0 ? OPJIT_LEVEL_QUICK : OPJIT_LEVEL_PEAK;
    if (p->options.level == OPJIT_LEVEL_PEAK && strcmp(value, "peak") != 0)
        return opjit_rt_error_set(&p->error, OPJIT_INVALID_ARGUMENT, "%s is neither quick nor peak", value);
    return OPJIT_OK;
}

/* One target, or several with commas between, "cpu:x86-64-v2,cpu:x86-64-v3": their own commas are before no "cpu". */
static opjit_status set_target(parser *p, const char *value)
{
    while (value != NULL) {
        const char *const next = strstr(value, ",cpu");
        const char *const one =
            opjit_rt_arena_string(p->arena, value, next == NULL ? strlen(value) : (size_t)(next - value));
        rt_target target;
        if (one == NULL)
            return opjit_rt_no_memory(&p->error);
        if (p->options.target_count == OPJIT_ARTIFACT_MAX_TARGETS)
            return opjit_rt_error_set(&p->error, OPJIT_LIMIT, "at most %u targets", OPJIT_ARTIFACT_MAX_TARGETS);
        TRY(opjit_rt_target_parse(one, &target, &p->error));
        p->targets[p->options.target_count++] = one;
        p->options.targets = p->targets;
        p->options.target = one;
        value = next == NULL ? NULL : next + 1;
    }
    return OPJIT_OK;
}

static opjit_status set_emit(parser *p, const char *value)
{
    return opjit_cli_read_emit(value, &p->options.emit, &p->error);
}

static opjit_status set_output(parser *p, const char *value)
{
    p->options.output = value;
    return value[0] != '\0' ? OPJIT_OK
                            : opjit_rt_error_set(&p->error, OPJIT_INVALID_ARGUMENT, "a folder has to be named");
}

static opjit_status set_library(parser *p, const char *value)
{
    p->options.library = value;
    return opjit_artifact_check_name(value, &p->error);
}

static opjit_status set_prefix_model(parser *p, const char *value)
{
    (void)value;
    p->options.prefix_model = true;
    return OPJIT_OK;
}

static opjit_status set_cache_dir(parser *p, const char *value)
{
    p->options.cache_dir = value;
    if (value[0] == '\0')
        return opjit_rt_error_set(&p->error, OPJIT_INVALID_ARGUMENT, "a folder has to be named");
    return OPJIT_OK;
}

static opjit_status set_dispatchable(parser *p, const char *value)
{
    p->options.dispatchable = value;
    return OPJIT_OK;
}

static opjit_status set_quiet(parser *p, const char *value)
{
    (void)value;
    p->options.quiet = true;
    return OPJIT_OK;
}
static opjit_status set_absorb(parser *p, const char *value)
{
    (void)value;
    p->options.masks_absorb = true;
    return OPJIT_OK;
}
static opjit_status set_no_cache(parser *p, const char *value)
{
    (void)value;
    p->options.no_cache = true;
    return OPJIT_OK;
}
static opjit_status set_json(parser *p, const char *value)
{
    (void)value;
    p->options.json = true;
    return OPJIT_OK;
}
static opjit_status set_quick(parser *p, const char *value)
{
    (void)value;
    p->options.quick = true;
    return OPJIT_OK;
}
static opjit_status set_help(parser *p, const char *value)
{
    (void)value;
    p->help = true;
    return OPJIT_OK;
}
static const struct option {
    const char *name;
    bool takes_value;
    const char *commands; /* names between blanks; NULL: all */
    opjit_status (*set)(parser *p, const char *value);
} options[] = {
    { "--executor", true, " run ", set_executor },
    { "--threads", true, " run bench ", set_threads },
    { "--dispatchable", true, " explain compile ", set_dispatchable },
    { "--feature-level", true, NULL, set_feature_level },
    { "--level", true, NULL, set_level },
    { "--target", true, NULL, set_target },
    { "--masks-absorb", false, NULL, set_absorb },
    { "--no-cache", false, NULL, set_no_cache },
    { "--cache-dir", true, NULL, set_cache_dir },
    { "--quiet", false, NULL, set_quiet },
    { "--help", false, NULL, set_help },
    { "--emit", true, " compile ", set_emit },
    { "-o", true, " compile ", set_output },
    { "--name", true, " compile ", set_library },
    { "--prefix-model", false, " compile ", set_prefix_model },
    { "--json", false, " bench ", set_json },
    { "--quick", false, " bench ", set_quick },
};

static int usage(const char *what, const char *text)
{
    opjit_error error;
    opjit_rt_error_set(&error, OPJIT_INVALID_ARGUMENT, "%s%s%s", what, text, ": see opjit --help");
    opjit_cli_complain(NULL, NULL, &error);
    return EXIT_USAGE;
}

static bool belongs(const struct option *option, const char *name)
{
    char padded[32];
    if (option->commands == NULL || name == NULL)
        return true;
    snprintf(padded, sizeof padded, " %s ", name);
    return strstr(option->commands, padded) != NULL;
}

/* Reads the option at argv[*at]; its value may be the next argument.  0, or the exit status. */
static int read_option(parser *p, int argc, char **argv, int *at)
{
    const char *const text = argv[*at];
    const char *const equals = strncmp(text, "--", 2) == 0 ? strchr(text, '=') : NULL;
    const size_t length = equals != NULL ? (size_t)(equals - text) : strlen(text);
    const char *value = equals != NULL ? equals + 1 : NULL;
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        const struct option *const o = &options[i];
        if (strlen(o->name) != length || strncmp(o->name, text, length) != 0)
            continue;
        if (!belongs(o, p->command))
            return usage(o->name, " is no option of this command");
        if (o->takes_value && value == NULL && ++*at < argc)
            value = argv[*at];
        if (o->takes_value != (value != NULL))
            return usage(o->name, o->takes_value ? " needs a value" : " takes no value");
        if (o->set(p, value) != OPJIT_OK) {
            opjit_cli_complain(NULL, o->name, &p->error);
            return EXIT_USAGE;
        }
        return 0;
    }
    return usage("unknown option ", text);
}

/* OPJIT_CACHE_DIR, else opjit in the XDG cache folder; NULL where there is no home either.  arena owns the text. */
static const char *default_cache_dir(rt_arena *arena)
{
    const char *const given = getenv("OPJIT_CACHE_DIR"), *base = getenv("XDG_CACHE_HOME"), *tail = "/opjit";
    char *out;
    if (given != NULL && given[0] != '\0')
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

/* Runs the command that the arguments name, once all of them are read. */
static int run_command(parser *p)
{
    const command *const c = find_command(p->command);
    if (p->options.argument_count < c->arguments_min)
        return usage(c->name, c->arguments_min == 1 && strncmp(c->synopsis, "MODEL", 5) == 0
                                  ? ": no model was given"
                                  : ": an argument is missing");
    if (p->options.argument_count > c->arguments_max)
        return usage("too many arguments for ", c->name);
    if (p->options.target_count > 1 && c->run != opjit_cli_compile_ahead)
        return usage("several targets are for compile, not for ", c->name);
    return c->run(&p->options);
}

static int read_arguments(parser *p, int argc, char **argv, const char **arguments)
{
    bool more_options = true;
    for (int i = 1; i < argc; i++) {
        if (more_options && strcmp(argv[i], "--") == 0) {
            more_options = false;
        } else if (more_options && argv[i][0] == '-' && argv[i][1] != '\0') {
            const int status = read_option(p, argc, argv, &i);
            if (status != 0)
                return status;
        } else if (p->command == NULL) {
            p->command = argv[i];
            if (find_command(p->command) == NULL)
                return usage("unknown command ", p->command);
        } else {
            arguments[p->options.argument_count++] = argv[i];
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    rt_arena arena;
    parser p = { .options = { .executor = "cpu",
                              .threads = 1,
                              .library = "kernels",
                              .emit = 1u << OPJIT_ARTIFACT_OBJECT | 1u << OPJIT_ARTIFACT_HEADER },
                 .arena = &arena };
    const char **arguments;
    int status;
    opjit_rt_arena_init(&arena, &opjit_rt_default_allocator);
    arguments = ARENA_ARRAY(&arena, const char *, (size_t)argc + 1);
    if (arguments == NULL) {
        opjit_rt_no_memory(&p.error);
        return opjit_cli_complain(NULL, NULL, &p.error);
    }
    p.options.arguments = arguments;
    p.options.cache_dir = default_cache_dir(&arena);
    status = read_arguments(&p, argc, argv, arguments);
    if (status == 0 && p.help)
        status = help();
    else if (status == 0 && p.command == NULL)
        status = usage("no command was given", "");
    else if (status == 0)
        status = run_command(&p);
    opjit_rt_arena_free(&arena);
    if (fflush(stdout) != 0 && status == EXIT_DONE) {
        opjit_rt_error_set(&p.error, OPJIT_IO, "standard output can't be written: %s", strerror(errno));
        status = opjit_cli_complain(NULL, NULL, &p.error);
    }
    return status;
}
