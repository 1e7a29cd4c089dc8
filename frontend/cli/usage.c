/* SPDX-License-Identifier: Apache-2.0 */
/* usage.c - help, made from the tables of options.c.  The man page and the completions are in manual.c. */
#include <stdio.h>
#include <string.h>

#include "frontend/cli/options.h"

enum { COLUMN = 27, WIDTH = 100 };

/* Words of text from the column on, in lines of WIDTH. */
static void put_wrapped(const char *text)
{
    size_t at = COLUMN;
    while (*text != '\0') {
        const size_t word = strcspn(text, " ");
        if (at > COLUMN && at + 1 + word > WIDTH) {
            printf("\n%*s", COLUMN, "");
            at = COLUMN;
        } else if (at > COLUMN) {
            putchar(' ');
            at++;
        }
        printf("%.*s", (int)word, text);
        at += word;
        text += word + (text[word] == ' ');
    }
    putchar('\n');
}

/* command NULL: with the commands that it is for. */
static void put_option(const cli_option_row *o, const cli_command_row *command)
{
    char head[64], text[320];
    const char *names = o->commands;
    size_t used;
    if (o->hidden)
        return;
    snprintf(head, sizeof head, "%s%s%s%s%s", o->brief != NULL ? o->brief : "", o->brief != NULL ? ", " : "", o->name,
             o->argument != NULL ? " " : "", o->argument != NULL ? o->argument : "");
    printf("  %-*s", COLUMN - 2, head);
    used = (size_t)snprintf(text, sizeof text, "%s", o->help);
    while (command == NULL && names != NULL && !o->common && names[1] != '\0') { /* " (run, bench)" */
        const size_t length = strcspn(names + 1, " ");
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%.*s", names == o->commands ? " (" : ", ",
                                 (int)length, names + 1);
        names += 1 + length;
        if (names[1] == '\0')
            snprintf(text + used, sizeof text - used, ")");
    }
    put_wrapped(text);
}

static void put_program(void)
{
    printf("usage: opjit COMMAND [OPTION...] [ARGUMENT...]\n\ncommands:\n");
    for (uint32_t i = 0; i < opjit_cli_command_count; i++) {
        const cli_command_row *const c = &opjit_cli_commands[i];
        char head[64];
        snprintf(head, sizeof head, "%s%s%s", c->name, c->arguments[0] != '\0' ? " " : "", c->arguments);
        printf("  %-*s", COLUMN - 2, head);
        put_wrapped(c->help);
    }
    printf("\noptions:\n");
    for (uint32_t i = 0; i < opjit_cli_option_count; i++)
        put_option(&opjit_cli_options[i], NULL);
    printf("\nMODEL is a file, or - for standard input; the page MODEL.md describes models.\n"
           "`opjit help COMMAND` shows the options of one command.\n"
           "exit status: 0 done, 1 the work failed, 2 a wrong option or no model\n");
}

static void put_command(const cli_command_row *command)
{
    printf("usage: opjit %s%s%s [OPTION...]\n       %s\n\nexample:\n  %s\n\noptions:\n", command->name,
           command->arguments[0] != '\0' ? " " : "", command->arguments, command->help, command->example);
    for (uint32_t i = 0; i < opjit_cli_option_count; i++)
        if (opjit_cli_option_of(&opjit_cli_options[i], command))
            put_option(&opjit_cli_options[i], command);
}

int opjit_cli_help(const cli_command_row *command)
{
    if (command == NULL)
        put_program();
    else
        put_command(command);
    return EXIT_DONE;
}

int opjit_cli_show_help(const cli_options *options)
{
    const char *const name = options->argument_count != 0 ? options->arguments[0] : NULL;
    const cli_command_row *const command = name == NULL ? NULL : opjit_cli_find_command(name);
    if (options->man)
        return opjit_cli_man();
    if (options->completion != NULL)
        return opjit_cli_completion(options->completion);
    return name != NULL && command == NULL ? opjit_cli_unknown_command(name) : opjit_cli_help(command);
}
