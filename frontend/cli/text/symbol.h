/* SPDX-License-Identifier: Apache-2.0 */
/* symbol.h - dispatchables' names as names of C functions. */
#ifndef OPJIT_CLI_SYMBOL_H
#define OPJIT_CLI_SYMBOL_H

#include "runtime/base/base.h"

#define SYMBOL_SIZE 64u /* bytes, NUL included */

/* The function's name for a dispatchable: what is no letter or digit becomes an underscore, several of them one, none
 * at the ends; "k" before a digit, "_op" after a word that C, C++ or their libraries have taken; digits of a hash in
 * place of the end of a name that is too long.  model: path of the model whose name comes first, or NULL. */
opjit_status opjit_cli_symbol(const char *model, const char *name, size_t length, char symbol[static SYMBOL_SIZE],
                              opjit_error *error);

#endif
