/* SPDX-License-Identifier: Apache-2.0 */
/* options.h - the program's commands and options, each defined once: reading the command line, help, the man page and
 * the shells' completions are made from these two tables. */
#ifndef OPJIT_CLI_OPTIONS_H
#define OPJIT_CLI_OPTIONS_H

#include <opjit/artifact.h>

#include "frontend/cli/cli.h"

typedef struct cli_command_row {
    const char *name;
    cli_command_fn run;
    uint32_t arguments_min, arguments_max;
    const char *arguments; /* as a synopsis shows them; "": none */
    const char *words;     /* what the first argument may be, between blanks, where that is a word; else NULL */
    const char *help, *example;
} cli_command_row;
extern const cli_command_row opjit_cli_commands[];
extern const uint32_t opjit_cli_command_count;
/* NULL: there is none of that name. */
const cli_command_row *opjit_cli_find_command(const char *name);

typedef struct cli_parser cli_parser;

/* Where an option belongs: in the help of these commands.  Other commands refuse it, except a common one. */
typedef struct cli_option_row {
    const char *name;     /* "--threads"; one dash and a letter: "-o" */
    const char *brief;    /* "-h"; NULL: none */
    const char *argument; /* "N"; NULL: takes none */
    const char *choices;  /* the argument's values, between blanks; NULL: anything */
    const char *commands; /* names between blanks, " run bench "; NULL: all */
    bool common;          /* taken by every command */
    bool hidden;          /* in no help */
    const char *help;
    opjit_status (*set)(cli_parser *p, const struct cli_option_row *o, const char *value); /* NULL: sets flag */
    size_t flag; /* offset in cli_options of a bool */
} cli_option_row;
extern const cli_option_row opjit_cli_options[];
extern const uint32_t opjit_cli_option_count;
/* Whether the help of the command shows the option. */
bool opjit_cli_option_of(const cli_option_row *option, const cli_command_row *command);

/* State of reading the command line. */
struct cli_parser {
    cli_options options;
    opjit_error error;
    const cli_command_row *command; /* NULL: none yet */
    rt_arena *arena;
    const char *targets[OPJIT_ARTIFACT_MAX_TARGETS];
    const char **late;
    uint32_t late_capacity;
    const char **named[3]; /* --input, --dim, --shape */
    uint32_t named_capacity[3];
};
/* Reads all arguments into *p, whose options point into argv and the arena.  0, or the exit status. */
int opjit_cli_read_arguments(cli_parser *p, int argc, char **argv);
/* Prints what is wrong with the command line: what, text and, where it is near, what may have been meant. */
int opjit_cli_usage(const char *what, const char *text, const char *meant);

int opjit_cli_unknown_command(const char *name);

/* usage.c, manual.c: to standard output; give the exit status.  command NULL: of the program. */
int opjit_cli_help(const cli_command_row *command);
int opjit_cli_man(void);
int opjit_cli_completion(const char *shell); /* "bash", "zsh", "fish" */

#endif
