/* SPDX-License-Identifier: Apache-2.0 */
/* suggest.h - "did you mean": finds the existing name that is closest to one that does not exist. */
#ifndef OPJIT_CLI_SUGGEST_H
#define OPJIT_CLI_SUGGEST_H

#include <stddef.h>
#include <stdint.h>

/* Initialise it with begin, then offer each existing name.  Nothing is copied. */
typedef struct cli_suggestion {
    const char *given;
    size_t given_length;
    const char *best; /* NULL: no name is close */
    size_t best_length;
    uint32_t distance; /* of best */
} cli_suggestion;

#define CLI_SUGGEST_LONGEST 64u /* longer names are never suggested */
#define CLI_SUGGEST_TEXT (CLI_SUGGEST_LONGEST + 32u)

void opjit_cli_suggest_begin(cli_suggestion *s, const char *given, size_t length);
/* Keeps name if it is closer than the previous ones: by edits, ignoring case, at most a third of the longer name's
 * length, or of its part after an underscore; or because it begins with the given text. */
void opjit_cli_suggest(cli_suggestion *s, const char *name, size_t length);
/* "; did you mean BEFOREbestAFTER?", or "". */
const char *opjit_cli_suggest_text(const cli_suggestion *s, const char *before, const char *after,
                                  char text[static CLI_SUGGEST_TEXT]);

#endif
