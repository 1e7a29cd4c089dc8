/* SPDX-License-Identifier: Apache-2.0 */
/* utf8.h - writes UTF-8, one character at a time; runtime/base/utf8.h reads it. */
#ifndef OPJIT_CLI_UTF8_H
#define OPJIT_CLI_UTF8_H

#include <stdint.h>

/* Writes the character c, 1 to 4 bytes, and returns the place behind it. */
char *opjit_cli_utf8_put(char *out, uint32_t c);

#endif
