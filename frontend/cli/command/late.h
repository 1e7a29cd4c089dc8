/* SPDX-License-Identifier: Apache-2.0 */
/* late.h - the fields of --late, over all dispatchables of a command. */
#ifndef OPJIT_CLI_LATE_H
#define OPJIT_CLI_LATE_H

#include "frontend/cli/cli.h"
#include "frontend/cli/text/suggest.h"

typedef struct cli_late_name {
    const char *text, *field; /* "node.Value", "Value" */
    bool used;
    cli_suggestion near;
} cli_late_name;

typedef struct cli_late {
    cli_late_name *names;
    uint32_t count;
} cli_late;

opjit_status opjit_cli_late_begin(cli_late *late, const cli_options *options, rt_arena *arena, opjit_error *error);
/* Puts those that the dispatchable has into *out, in the order of the command line; they live as long as the model. */
opjit_status opjit_cli_late_of(cli_late *late, cli_model *m, const cli_dispatchable *d, opjit_compile_options *out);
/* Refuses a name that was used nowhere. */
opjit_status opjit_cli_late_end(const cli_late *late, opjit_error *error);

#endif
