/* SPDX-License-Identifier: Apache-2.0 */
/* options.c - the tables of commands and options, and reading a command line by them. */
#include <opjit/artifact.h>
#include <opjit/reflect.h>

#include "frontend/cli/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/cli/text/suggest.h"

/* --- commands ----------------------------------------------------------------------------------------------------- */
const cli_command_row opjit_cli_commands[] = {
    { "run", opjit_cli_run, 1, 1, "MODEL", NULL, "run the model's commands, or an .onnx model once",
      "opjit run eye.json --threads 4" },
    { "explain", opjit_cli_explain, 1, 1, "MODEL", NULL,
      "show each dispatchable, its IR after each pass, and what it writes",
      "opjit explain masks.json --dispatchable causal" },
    { "compile", opjit_cli_compile_ahead, 1, UINT32_MAX, "MODEL... -o DIR", NULL,
      "compile dispatchables ahead of time, into files for other programs",
      "opjit compile masks.json --target cpu:x86-64-v3 --emit obj,header -o kernels" },
    { "bench", opjit_cli_bench, 0, 1, "[MODEL]", NULL,
      "measure a model's dispatchables, or the generators, beside memset and memcpy", "opjit bench masks.json --json" },
    { "ops", opjit_cli_ops, 0, 1, "[NAME]", NULL, "list the operators that NAME is in, or one with its fields",
      "opjit ops softmax" },
    { "targets", opjit_cli_targets, 0, 0, "", NULL, "list what code can be made for", "opjit targets" },
    { "cache", opjit_cli_cache, 1, 1, "list|verify|clear", " list verify clear ", "look after the disk cache",
      "opjit cache list" },
    { "version", opjit_cli_version, 0, 0, "", NULL, "print versions", "opjit version --json" },
    { "help", opjit_cli_show_help, 0, 1, "[COMMAND]", " run explain compile bench ops targets cache version ",
      "show the options of a command", "opjit help compile" },
};
const uint32_t opjit_cli_command_count = sizeof opjit_cli_commands / sizeof *opjit_cli_commands;

const cli_command_row *opjit_cli_find_command(const char *name)
{
    for (uint32_t i = 0; i < opjit_cli_command_count; i++)
        if (strcmp(opjit_cli_commands[i].name, name) == 0)
            return &opjit_cli_commands[i];
    return NULL;
}

/* --- values of options -------------------------------------------------------------------------------------------- */
/* Whether value is one of the words between blanks. */
static bool is_word_of(const char *words, const char *value, size_t length)
{
    for (const char *at = words; (at = strstr(at, " ")) != NULL && at[1] != '\0'; at++)
        if (length != 0 && strncmp(at + 1, value, length) == 0 && at[1 + length] == ' ')
            return true;
    return false;
}

/* Refuses what is none of the option's choices, which the message lists. */
static opjit_status check_choice(cli_parser *p, const cli_option_row *o, const char *value, size_t length)
{
    char list[128];
    size_t used = 0;
    if (is_word_of(o->choices, value, length))
        return OPJIT_OK;
    if (length == 0)
        return opjit_rt_error_set(&p->error, OPJIT_INVALID_ARGUMENT, "a name is empty");
    for (const char *word = o->choices + 1; *word != '\0'; word += strcspn(word, " ") + 1)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%.*s", used == 0 ? "" : ", ",
                                 (int)strcspn(word, " "), word);
    return opjit_rt_error_set(&p->error, OPJIT_INVALID_ARGUMENT, "%.*s is none of %s", (int)(length < 60 ? length : 60),
                              value, list);
}

static opjit_status set_executor(cli_parser *p, const cli_option_row *o, const char *value)
{
    p->options.executor = value;
    return check_choice(p, o, value, strlen(value));
}

static opjit_status set_threads(cli_parser *p, const cli_option_row *o, const char *value)
{
    (void)o;
    char *end;
    const unsigned long number = value[0] >= '0' && value[0] <= '9' ? strtoul(value, &end, 10) : 0;
    if (number < 1 || number > 256 || *end != '\0')
        return opjit_rt_error_set(&p->error, OPJIT_INVALID_ARGUMENT, "%s is not a number from 1 to 256", value);
    p->options.threads = (uint32_t)number;
    return OPJIT_OK;
}

/* " 1.0 2.0 ... 6.4 ", which opjit_cli_read_arguments writes before anybody reads it. */
static char feature_levels[128];

static void list_feature_levels(void)
{
    size_t used = 1;
    feature_levels[0] = ' ';
    for (uint32_t i = 0, level; (level = opjit_feature_level_at(i)) != 0 && used + 5 < sizeof feature_levels; i++)
        used += (size_t)snprintf(feature_levels + used, sizeof feature_levels - used, "%u.%u ", level >> 12 & 0xf,
                                 level >> 8 & 0xf);
}

static opjit_status set_feature_level(cli_parser *p, const cli_option_row *o, const char *value)
{
    if (strlen(value) != 3 || !is_word_of(o->choices, value, 3))
        return opjit_rt_error_set(&p->error, OPJIT_INVALID_ARGUMENT, "%s is no feature level of DirectML: 1.0 to 6.4",
                                  value);
    p->options.feature_level = (uint32_t)(value[0] - '0') << 12 | (uint32_t)(value[2] - '0') << 8;
    return OPJIT_OK;
}

static opjit_status set_level(cli_parser *p, const cli_option_row *o, const char *value)
{
    (void)o;
    p->options.level = strcmp(value, "quick") == 0 ? OPJIT_LEVEL_QUICK : OPJIT_LEVEL_PEAK;
    if (p->options.level == OPJIT_LEVEL_PEAK && strcmp(value, "peak") != 0)
        return opjit_rt_error_set(&p->error, OPJIT_INVALID_ARGUMENT, "%s is neither quick nor peak", value);
    return OPJIT_OK;
}

/* Adds the named target that may have been meant to the message about one that does not exist. */
static opjit_status suggest_target(const char *value, opjit_error *error)
{
    char name[OPJIT_TARGET_TEXT], best[OPJIT_TARGET_TEXT] = "", meant[CLI_SUGGEST_TEXT], text[OPJIT_ERROR_MESSAGE_SIZE];
    const size_t length = strcspn(value, "+,");
    cli_suggestion s;
    opjit_cli_suggest_begin(&s, value, length);
    for (uint32_t i = 0; opjit_target_name_at(i, name) != 0; i++) {
        const uint32_t before = s.distance;
        opjit_cli_suggest(&s, name, strlen(name));
        if (s.distance < before)
            memcpy(best, name, sizeof best);
    }
    s.best = s.best == NULL ? NULL : best;                            /* name is another one by now */
    if (strlen(best) != length || memcmp(best, value, length) != 0) { /* else something behind the name is wrong */
        snprintf(text, sizeof text, "%s", error->message);
        opjit_rt_error_set(error, error->status, "%s%s", text, opjit_cli_suggest_text(&s, "", "", meant));
    }
    return error->status;
}

/* One target, or several with commas between, "cpu:x86-64-v2,cpu:x86-64-v3": their own commas are before no "cpu". */
static opjit_status set_target(cli_parser *p, const cli_option_row *o, const char *value)
{
    (void)o;
    while (value != NULL) {
        const char *const next = strstr(value, ",cpu");
        const char *const one =
            opjit_rt_arena_string(p->arena, value, next == NULL ? strlen(value) : (size_t)(next - value));
        char text[OPJIT_TARGET_TEXT];
        if (one == NULL)
            return opjit_rt_no_memory(&p->error);
        if (p->options.target_count == OPJIT_ARTIFACT_MAX_TARGETS)
            return opjit_rt_error_set(&p->error, OPJIT_LIMIT, "at most %u targets", OPJIT_ARTIFACT_MAX_TARGETS);
        if (opjit_target_get_text(one, text, &p->error) != OPJIT_OK)
            return suggest_target(one, &p->error);
        p->targets[p->options.target_count++] = one;
        p->options.targets = p->targets;
        p->options.target = one;
        value = next == NULL ? NULL : next + 1;
    }
    return OPJIT_OK;
}

static opjit_status set_emit(cli_parser *p, const cli_option_row *o, const char *value)
{
    p->options.emit = 0;
    for (;; value++) {
        const size_t length = strcspn(value, ",");
        TRY(check_choice(p, o, value, length));
        p->options.emit |= opjit_cli_emit_kinds(value, length);
        value += length;
        if (*value == '\0')
            return OPJIT_OK;
    }
}

static opjit_status need_folder(cli_parser *p, const char *value)
{
    return value[0] != '\0' ? OPJIT_OK
                            : opjit_rt_error_set(&p->error, OPJIT_INVALID_ARGUMENT, "a folder has to be named");
}

static opjit_status set_output(cli_parser *p, const cli_option_row *o, const char *value)
{
    (void)o;
    p->options.output = value;
    return need_folder(p, value);
}

static opjit_status set_cache_dir(cli_parser *p, const cli_option_row *o, const char *value)
{
    (void)o;
    p->options.cache_dir = value;
    p->options.cache_named = true;
    return need_folder(p, value);
}

static opjit_status set_weights(cli_parser *p, const cli_option_row *o, const char *value)
{
    (void)o;
    p->options.weights = value;
    return OPJIT_OK;
}

static opjit_status set_library(cli_parser *p, const cli_option_row *o, const char *value)
{
    (void)o;
    p->options.library = value;
    return opjit_artifact_check_name(value, &p->error);
}

static opjit_status set_symbol(cli_parser *p, const cli_option_row *o, const char *value)
{
    (void)o;
    p->options.symbol = value;
    return opjit_artifact_check_name(value, &p->error);
}

static opjit_status set_trace(cli_parser *p, const cli_option_row *o, const char *value)
{
    (void)o;
    p->options.trace = value;
    return value[0] != '\0' ? OPJIT_OK
                            : opjit_rt_error_set(&p->error, OPJIT_INVALID_ARGUMENT, "a file has to be named");
}

static opjit_status set_dispatchable(cli_parser *p, const cli_option_row *o, const char *value)
{
    (void)o;
    p->options.dispatchable = value;
    return OPJIT_OK;
}

/* "Value,DiagonalFillBegin", any number of times; their order is that of the parameters. */
static opjit_status set_late(cli_parser *p, const cli_option_row *o, const char *value)
{
    (void)o;
    for (;;) {
        const size_t length = strcspn(value, ",");
        if (length == 0)
            return opjit_rt_error_set(&p->error, OPJIT_INVALID_ARGUMENT, "a field has to be named");
        if (p->options.late_count == p->late_capacity) {
            const char **const grown = ARENA_ARRAY(p->arena, const char *, p->late_capacity * 2 + 8);
            if (grown == NULL)
                return opjit_rt_no_memory(&p->error);
            if (p->late != NULL)
                memcpy(grown, p->late, p->late_capacity * sizeof *grown);
            p->late = grown;
            p->late_capacity = p->late_capacity * 2 + 8;
            p->options.late = grown;
        }
        p->late[p->options.late_count] = opjit_rt_arena_string(p->arena, value, length);
        if (p->late[p->options.late_count++] == NULL)
            return opjit_rt_no_memory(&p->error);
        value += length;
        if (*value++ == '\0')
            return OPJIT_OK;
    }
}

/* "NAME=...", any number of times. */
static opjit_status set_named(cli_parser *p, uint32_t kind, const char *value, const char *const **list,
                              uint32_t *count)
{
    if (strchr(value, '=') == NULL || value[0] == '=')
        return opjit_rt_error_set(&p->error, OPJIT_INVALID_ARGUMENT, "%.60s has no NAME= before its value", value);
    if (*count == p->named_capacity[kind]) {
        const uint32_t capacity = 2 * *count + 8;
        const char **const grown = ARENA_ARRAY(p->arena, const char *, capacity);
        if (grown == NULL)
            return opjit_rt_no_memory(&p->error);
        if (*count != 0)
            memcpy(grown, p->named[kind], *count * sizeof *grown);
        p->named[kind] = grown;
        p->named_capacity[kind] = capacity;
        *list = grown;
    }
    p->named[kind][(*count)++] = value;
    return OPJIT_OK;
}

static opjit_status set_input(cli_parser *p, const cli_option_row *o, const char *value)
{
    (void)o;
    return set_named(p, 0, value, &p->options.inputs, &p->options.input_count);
}

static opjit_status set_dim(cli_parser *p, const cli_option_row *o, const char *value)
{
    (void)o;
    return set_named(p, 1, value, &p->options.dims, &p->options.dim_count);
}

static opjit_status set_shape(cli_parser *p, const cli_option_row *o, const char *value)
{
    (void)o;
    return set_named(p, 2, value, &p->options.shapes, &p->options.shape_count);
}

static opjit_status set_output_dir(cli_parser *p, const cli_option_row *o, const char *value)
{
    (void)o;
    p->options.output_dir = value;
    return need_folder(p, value);
}

static opjit_status set_completion(cli_parser *p, const cli_option_row *o, const char *value)
{
    p->options.completion = value;
    return check_choice(p, o, value, strlen(value));
}

/* --- options ------------------------------------------------------------------------------------------------------ */
#define MODELS " run explain compile bench "
#define FLAG(field) NULL, offsetof(cli_options, field)

/* Choices of --emit: words with a blank behind each, and a list. */
#define WORD(name, extension, kinds) name " "
#define FIRST_ITEM(name, extension, kinds) name
#define ITEM(name, extension, kinds) ", " name

const cli_option_row opjit_cli_options[] = {
    { "--executor", NULL, "E", " cpu interp cuda hip ", " run ", false, false,
      "cpu, interp: run machine code, or the IR in the interpreter; cuda, hip: on the first GPU", set_executor, 0 },
    { "--threads", NULL, "N", NULL, " run bench ", false, false, "threads that a kernel may use, 1 to 256; default 1",
      set_threads, 0 },
    { "--dispatchable", NULL, "NAME", NULL, " explain compile ", false, false, "this one only", set_dispatchable, 0 },
    { "--late", NULL, "FIELD,...", NULL, " explain compile ", false, false,
      "scalar fields that are given at each call, e.g. Value, in a graph node.Value; several become parameters in this "
      "order",
      set_late, 0 },
    { "--input", NULL, "NAME=FILE", NULL, " run explain compile bench ", false, false,
      "an .onnx model's input out of a .npy file; at most 64 integers of at most one dimension become constants",
      set_input, 0 },
    { "--dim", NULL, "NAME=N", NULL, " run explain compile bench ", false, false,
      "the size of a model's dimension that has a name; for an .onnx model 1..4096:512 keeps it dynamic, for one "
      "kernel of all these sizes, cut for 512, 32..640:320/32 for the multiples of 32, and 32*h makes it follow from h",
      set_dim, 0 },
    { "--shape", NULL, "NAME=A,B,...", NULL, " run explain compile bench ", false, false,
      "all sizes of an .onnx model's input", set_shape, 0 },
    { "--output-dir", NULL, "DIR", NULL, " run ", false, false,
      "write an .onnx model's outputs to .npy files there, instead of printing their first values", set_output_dir, 0 },
    { "--emit", NULL, "KIND,...", " " OPJIT_ARTIFACT_NAMES(WORD, WORD), " compile ", false, false,
      OPJIT_ARTIFACT_NAMES(FIRST_ITEM, ITEM) "; default obj,header", set_emit, 0 },
    { "-o", NULL, "DIR", NULL, " compile ", false, false, "the folder for the files, made where it is missing",
      set_output, 0 },
    { "--name", NULL, "NAME", NULL, " compile ", false, false,
      "libNAME.a, libNAME.so, NAME.h of --emit lib; default kernels", set_library, 0 },
    { "--weights", NULL, "FILE", NULL, " compile ", false, false,
      "the constants of the kernel go into FILE, which it is given at each call, instead of into the object",
      set_weights, 0 },
    { "--symbol", NULL, "NAME", NULL, " compile ", false, false,
      "the name in C of the one kernel; default the dispatchable's, or that of the .onnx file", set_symbol, 0 },
    { "--prefix-model", NULL, NULL, NULL, " compile ", false, false, "names are MODEL_DISPATCHABLE",
      FLAG(prefix_model) },
    { "--trace", NULL, "FILE", NULL, " run compile ", false, false,
      "write what was compiled and run, and how long it took, as JSON for chrome://tracing", set_trace, 0 },
    { "--quick", NULL, NULL, NULL, " bench ", false, false, "fewer cases", FLAG(quick) },
    { "--json", NULL, NULL, NULL, " bench ops targets cache version ", false, false,
      "print JSON; of cache, list alone does", FLAG(json) },
    { "--markdown", NULL, NULL, NULL, " ops ", false, false, "print the page docs/OPERATORS.md", FLAG(markdown) },
    { "--onnx", NULL, NULL, NULL, " ops ", false, false, "ONNX's operators: what each becomes, or why it is not taken",
      FLAG(onnx) },
    { "--feature-level", NULL, "L", feature_levels, MODELS, true, false,
      "hold operators to DirectML feature level L, e.g. 5.1", set_feature_level, 0 },
    { "--level", NULL, "LEVEL", " quick peak ", MODELS, true, false, "quick: fast to compile; peak: fast to run",
      set_level, 0 },
    { "--target", NULL, "T", NULL, MODELS, true, false,
      "compile for T, as `opjit targets` prints it; compile takes several", set_target, 0 },
    { "--masks-absorb", NULL, NULL, NULL, MODELS, true, false, "-inf of a mask decides an addition alone",
      FLAG(masks_absorb) },
    { "--allow-outside", NULL, NULL, NULL, MODELS, false, false, "the model may name files outside of its folder",
      FLAG(allow_outside) },
    { "--no-cache", NULL, NULL, NULL, MODELS, true, false, "neither read nor write the disk cache", FLAG(no_cache) },
    { "--out-of-process", NULL, NULL, NULL, MODELS, true, false, "run LLVM in processes of its own",
      FLAG(out_of_process) },
    { "--cache-dir", NULL, "DIR", NULL, " run explain compile bench cache ", true, false,
      "the disk cache; default $OPJIT_CACHE_DIR, else opjit in the XDG cache folder", set_cache_dir, 0 },
    { "--quiet", NULL, NULL, NULL, MODELS, true, false, "no progress, no notes, no list of files", FLAG(quiet) },
    { "--help", "-h", NULL, NULL, NULL, true, false, "the options of a command, or this text", FLAG(help) },
    { "--version", NULL, NULL, NULL, NULL, true, true, "print versions", FLAG(version) },
    { "--man", NULL, NULL, NULL, " help ", false, true, "the man page", FLAG(man) },
    { "--completion", NULL, "SHELL", " bash zsh fish ", " help ", false, true, "the shell's completions",
      set_completion, 0 },
};
const uint32_t opjit_cli_option_count = sizeof opjit_cli_options / sizeof *opjit_cli_options;

bool opjit_cli_option_of(const cli_option_row *option, const cli_command_row *command)
{
    return option->commands == NULL || is_word_of(option->commands, command->name, strlen(command->name));
}

/* --- reading ------------------------------------------------------------------------------------------------------ */
int opjit_cli_usage(const char *what, const char *text, const char *meant)
{
    opjit_error error;
    opjit_rt_error_set(&error, OPJIT_INVALID_ARGUMENT, "%.80s%.80s: see opjit --help%s", what, text, meant);
    opjit_cli_complain(NULL, NULL, &error);
    return EXIT_USAGE;
}

int opjit_cli_unknown_command(const char *name)
{
    char meant[CLI_SUGGEST_TEXT];
    cli_suggestion s;
    opjit_cli_suggest_begin(&s, name, strlen(name));
    for (uint32_t i = 0; i < opjit_cli_command_count; i++)
        opjit_cli_suggest(&s, opjit_cli_commands[i].name, strlen(opjit_cli_commands[i].name));
    return opjit_cli_usage("unknown command ", name, opjit_cli_suggest_text(&s, "", "", meant));
}

/* length: of the name in text. */
static int unknown_option(const cli_parser *p, const char *text, size_t length)
{
    char meant[CLI_SUGGEST_TEXT];
    cli_suggestion s;
    opjit_cli_suggest_begin(&s, text, length);
    for (uint32_t i = 0; i < opjit_cli_option_count; i++) {
        const cli_option_row *const o = &opjit_cli_options[i];
        if (!o->hidden && length > 2 && (o->common || p->command == NULL || opjit_cli_option_of(o, p->command)))
            opjit_cli_suggest(&s, o->name, strlen(o->name));
    }
    return opjit_cli_usage("unknown option ", text, opjit_cli_suggest_text(&s, "", "", meant));
}

static bool is_named(const cli_option_row *o, const char *text, size_t length)
{
    return (strlen(o->name) == length && memcmp(o->name, text, length) == 0) ||
           (o->brief != NULL && strlen(o->brief) == length && memcmp(o->brief, text, length) == 0);
}

/* Reads the option at argv[*at]; its value may be the next argument.  0, or the exit status. */
static int read_option(cli_parser *p, int argc, char **argv, int *at)
{
    const char *const text = argv[*at];
    const char *const equals = strncmp(text, "--", 2) == 0 ? strchr(text, '=') : NULL;
    const size_t length = equals != NULL ? (size_t)(equals - text) : strlen(text);
    const char *value = equals != NULL ? equals + 1 : NULL;
    for (uint32_t i = 0; i < opjit_cli_option_count; i++) {
        const cli_option_row *const o = &opjit_cli_options[i];
        if (!is_named(o, text, length))
            continue;
        if (!o->common && p->command != NULL && !opjit_cli_option_of(o, p->command))
            return opjit_cli_usage(o->name, " is no option of this command", "");
        if (o->argument != NULL && value == NULL && ++*at < argc)
            value = argv[*at];
        if ((o->argument != NULL) != (value != NULL))
            return opjit_cli_usage(o->name, o->argument != NULL ? " needs a value" : " takes no value", "");
        if (o->set == NULL) {
            *(bool *)((char *)&p->options + o->flag) = true;
        } else if (o->set(p, o, value) != OPJIT_OK) {
            opjit_cli_complain(NULL, o->name, &p->error);
            return EXIT_USAGE;
        }
        return 0;
    }
    return unknown_option(p, text, length);
}

int opjit_cli_read_arguments(cli_parser *p, int argc, char **argv)
{
    const char **const arguments = ARENA_ARRAY(p->arena, const char *, (size_t)argc + 1);
    bool more_options = true;
    list_feature_levels();
    if (arguments == NULL) {
        opjit_rt_no_memory(&p->error);
        return opjit_cli_complain(NULL, NULL, &p->error);
    }
    p->options.arguments = arguments;
    for (int i = 1; i < argc; i++) {
        if (more_options && strcmp(argv[i], "--") == 0) {
            more_options = false;
        } else if (more_options && argv[i][0] == '-' && argv[i][1] != '\0') {
            const int status = read_option(p, argc, argv, &i);
            if (status != 0)
                return status;
        } else if (p->command == NULL) {
            p->command = opjit_cli_find_command(argv[i]);
            if (p->command == NULL)
                return opjit_cli_unknown_command(argv[i]);
        } else {
            arguments[p->options.argument_count++] = argv[i];
        }
    }
    return 0;
}
