/* SPDX-License-Identifier: Apache-2.0 */
/* utf8.h - UTF-8, one character at a time. */
#ifndef OPJIT_CLI_UTF8_H
#define OPJIT_CLI_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Length of the valid sequence at s, which is before end; 0 if there is none.  Overlong forms and surrogates are
 * invalid. */
size_t opjit_cli_utf8_length(const char *s, const char *end);
/* Writes the character c, 1 to 4 bytes, and returns the place behind it. */
char *opjit_cli_utf8_put(char *out, uint32_t c);

#endif
