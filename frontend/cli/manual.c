/* SPDX-License-Identifier: Apache-2.0 */
/* manual.c - the man page and the shells' completions, made from the tables of options.c when opjit is built. */
#include <stdio.h>
#include <string.h>

#include "frontend/cli/options.h"

/* text with a backslash before each of the characters. */
static void put_escaped(const char *text, const char *characters)
{
    for (; *text != '\0'; text++) {
        if (strchr(characters, *text) != NULL)
            putchar('\\');
        putchar(*text);
    }
}

/* --- man page ----------------------------------------------------------------------------------------------------- */
static void put_man_option(const cli_option_row *o)
{
    printf(".TP\n.B ");
    if (o->brief != NULL) {
        put_escaped(o->brief, "-\\");
        printf(", ");
    }
    put_escaped(o->name, "-\\");
    if (o->argument != NULL) {
        printf(" \\fI");
        put_escaped(o->argument, "-\\");
        printf("\\fR");
    }
    putchar('\n');
    put_escaped(o->help, "-\\");
    if (o->commands != NULL && !o->common)
        printf(" (%.*s)", (int)strlen(o->commands) - 2, o->commands + 1);
    putchar('\n');
}

int opjit_cli_man(void)
{
    printf(
        ".TH OPJIT 1 \"\" \"opjit %s\" \"User Commands\"\n.SH NAME\n"
        "opjit \\- compile and run graphs of DirectML operators\n"
        ".SH SYNOPSIS\n.B opjit\n\\fICOMMAND\\fR [\\fIOPTION\\fR...] [\\fIARGUMENT\\fR...]\n"
        ".SH DESCRIPTION\nA model is a file of JSON with resources, dispatchables and commands, or \\- for standard\n"
        "input.  All of it is read, checked and compiled before its first command runs.\n.SH COMMANDS\n",
        opjit_version());
    for (uint32_t i = 0; i < opjit_cli_command_count; i++) {
        const cli_command_row *const c = &opjit_cli_commands[i];
        printf(".TP\n.B %s\\fR ", c->name);
        put_escaped(c->arguments, "-\\");
        putchar('\n');
        put_escaped(c->help, "-\\");
        printf("\n.br\nExample: \\fB");
        put_escaped(c->example, "-\\");
        printf("\\fR\n");
    }
    printf(".SH OPTIONS\n");
    for (uint32_t i = 0; i < opjit_cli_option_count; i++)
        if (!opjit_cli_options[i].hidden)
            put_man_option(&opjit_cli_options[i]);
    printf(".SH EXIT STATUS\n0: done; 1: the work failed; 2: a wrong option or no model.  An error is one line on\n"
           "standard error, which names the file and the place in it.\n.SH ENVIRONMENT\n"
           ".TP\n.B OPJIT_CACHE_DIR\nthe disk cache, where \\fB\\-\\-cache\\-dir\\fR names none: kernels, and\n"
           "functions that kernels share\n"
           ".TP\n.B OPJIT_CODEGEN\nthe code generator's library, an absolute path\n"
           ".TP\n.B OPJIT_VERBOSE\n1: events as lines on standard error\n"
           ".TP\n.BR OPJIT_DUMP , OPJIT_DUMP_DIR\nwhat of each compile is written, and where\n");
    return EXIT_DONE;
}

/* --- bash --------------------------------------------------------------------------------------------------------- */
/* The options of a command, or the words of the table, with blanks between. */
static void put_options(const cli_command_row *command)
{
    const char *between = "";
    for (uint32_t i = 0; i < opjit_cli_option_count; i++) {
        const cli_option_row *const o = &opjit_cli_options[i];
        if (o->hidden || !opjit_cli_option_of(o, command))
            continue;
        printf("%s%s", between, o->name);
        between = " ";
    }
}

static void put_commands(const char *between)
{
    for (uint32_t i = 0; i < opjit_cli_command_count; i++)
        printf("%s%s", i == 0 ? "" : between, opjit_cli_commands[i].name);
}

static bool is_folder(const cli_option_row *o)
{
    return o->argument != NULL && strcmp(o->argument, "DIR") == 0;
}

static int put_bash(void)
{
    printf("# bash completion of opjit; made by `opjit help --completion bash`\n_opjit() {\n"
           "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command= options= words= word\n"
           "    for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n        case $word in\n        ");
    put_commands("|");
    printf(") command=$word; break ;;\n        esac\n    done\n    case $prev in\n");
    for (uint32_t i = 0; i < opjit_cli_option_count; i++) {
        const cli_option_row *const o = &opjit_cli_options[i];
        if (o->argument == NULL || o->hidden)
            continue;
        if (is_folder(o))
            printf("    %s) mapfile -t COMPREPLY < <(compgen -d -- \"$cur\"); return ;;\n", o->name);
        else if (strcmp(o->name, "--target") == 0)
            printf(
                "    %s) COMPREPLY=($(compgen -W \"$(opjit targets 2>/dev/null | awk '$1 == \"named\" { print $2 }')\" "
                "-- \"$cur\")); return ;;\n",
                o->name);
        else
            printf("    %s) COMPREPLY=($(compgen -W '%s' -- \"$cur\")); return ;;\n", o->name,
                   o->choices != NULL ? o->choices : "");
    }
    printf("    esac\n    case $command in\n    '') options='--help --version' words='");
    put_commands(" ");
    printf("' ;;\n");
    for (uint32_t i = 0; i < opjit_cli_command_count; i++) {
        const cli_command_row *const c = &opjit_cli_commands[i];
        printf("    %s) options='", c->name);
        put_options(c);
        printf("' words='%s' ;;\n", c->words != NULL ? c->words : "");
    }
    printf(
        "    esac\n    [[ $cur != -* ]] || words=$options\n    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
        "    [[ $command != @(run|explain|compile|bench) || $cur == -* ]] || mapfile -t COMPREPLY < <(compgen -f -- "
        "\"$cur\")\n"
        "}\ncomplete -o filenames -F _opjit opjit\n");
    return EXIT_DONE;
}

/* --- zsh and fish ------------------------------------------------------------------------------------------------- */
/* Inside of single quotes, where a quote can't be escaped. */
static void put_quoted(const char *text, const char *escaped)
{
    for (; *text != '\0'; text++) {
        if (*text == '\'') {
            printf("'\\''");
            continue;
        }
        if (strchr(escaped, *text) != NULL)
            putchar('\\');
        putchar(*text);
    }
}

static void put_zsh_option(const cli_option_row *o)
{
    printf(" \\\n        '%s[", o->name);
    put_quoted(o->help, "[]:\\");
    printf("]");
    if (o->argument != NULL) {
        printf(":");
        put_quoted(o->argument, ":\\");
        if (is_folder(o))
            printf(":_directories");
        else if (o->choices != NULL)
            printf(":(%s)", o->choices);
        else
            printf(": ");
    }
    printf("'");
}

static int put_zsh(void)
{
    printf(
        "#compdef opjit\n# made by `opjit help --completion zsh`\nlocal state line\nlocal -a commands\ncommands=(\n");
    for (uint32_t i = 0; i < opjit_cli_command_count; i++) {
        printf("    '%s:", opjit_cli_commands[i].name);
        put_quoted(opjit_cli_commands[i].help, ":\\");
        printf("'\n");
    }
    printf(
        ")\n_arguments -C '--help[show help]' '--version[print versions]' '1:command:->command' "
        "'*::argument:->argument'\n"
        "case $state in\ncommand) _describe command commands ;;\nargument)\n    case $words[1] in\n");
    for (uint32_t i = 0; i < opjit_cli_command_count; i++) {
        const cli_command_row *const c = &opjit_cli_commands[i];
        printf("    %s)\n        _arguments", c->name);
        for (uint32_t k = 0; k < opjit_cli_option_count; k++)
            if (!opjit_cli_options[k].hidden && opjit_cli_option_of(&opjit_cli_options[k], c))
                put_zsh_option(&opjit_cli_options[k]);
        if (c->words != NULL)
            printf(" \\\n        '1:argument:(%s)'", c->words);
        else if (c->arguments_max != 0)
            printf(" \\\n        '*:model:_files'");
        printf(" ;;\n");
    }
    printf("    esac ;;\nesac\n");
    return EXIT_DONE;
}

/* The commands of an option, as a condition of fish. */
static void put_fish_condition(const cli_option_row *o)
{
    printf(" -n '__fish_seen_subcommand_from%s'", o->commands);
}

static int put_fish(void)
{
    printf("# fish completion of opjit; made by `opjit help --completion fish`\ncomplete -c opjit -f\n");
    for (uint32_t i = 0; i < opjit_cli_command_count; i++) {
        const cli_command_row *const c = &opjit_cli_commands[i];
        printf("complete -c opjit -n __fish_use_subcommand -a %s -d '", c->name);
        put_quoted(c->help, "");
        printf("'\n");
        if (c->words != NULL)
            printf("complete -c opjit -n '__fish_seen_subcommand_from %s' -a '%s'\n", c->name, c->words);
    }
    printf("complete -c opjit -n '__fish_seen_subcommand_from run explain compile bench' -F\n");
    for (uint32_t i = 0; i < opjit_cli_option_count; i++) {
        const cli_option_row *const o = &opjit_cli_options[i];
        if (o->hidden)
            continue;
        printf("complete -c opjit");
        if (o->commands != NULL)
            put_fish_condition(o);
        if (o->brief != NULL)
            printf(" -s %s", o->brief + 1);
        printf(o->name[1] == '-' ? " -l %s" : " -s %s", o->name + (o->name[1] == '-' ? 2 : 1));
        if (is_folder(o))
            printf(" -x -a '(__fish_complete_directories)'");
        else if (o->argument != NULL)
            printf(" -x -a '%s'", o->choices != NULL ? o->choices : "");
        printf(" -d '");
        put_quoted(o->help, "");
        printf("'\n");
    }
    return EXIT_DONE;
}

int opjit_cli_completion(const char *shell)
{
    return strcmp(shell, "bash") == 0 ? put_bash() : strcmp(shell, "zsh") == 0 ? put_zsh() : put_fish();
}
