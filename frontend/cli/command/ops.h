/* SPDX-License-Identifier: Apache-2.0 */
/* ops.h - the forms of `opjit ops` other than text. */
#ifndef OPJIT_CLI_COMMAND_OPS_H
#define OPJIT_CLI_COMMAND_OPS_H

#include <stdbool.h>

#include <opjit/reflect.h>

/* "%u.%u" of a feature level. */
#define CLI_LEVEL(level) (unsigned)((level) >> 12), (unsigned)((level) >> 8 & 15)

/* An element of an array of JSON, which is begun by the first and ended by the caller (ops_json.c). */
void opjit_cli_put_op_json(const opjit_operator_type_info *op, bool first);
/* The page docs/OPERATORS.md (ops_page.c); false: no memory. */
bool opjit_cli_put_page(void);

#endif
