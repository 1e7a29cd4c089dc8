/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_ops.h - what the forms of `opjit ops` share: the rows of opjit/reflect.h, and what follows from them. */
#ifndef OPJIT_CLI_CMD_OPS_H
#define OPJIT_CLI_CMD_OPS_H

#include <stdbool.h>

#include <opjit/reflect.h>

/* "%u.%u" of a feature level. */
#define CLI_LEVEL(level) (unsigned)((level) >> 12), (unsigned)((level) >> 8 & 15)

/* Of a type and indices that there are. */
opjit_operator_type_info opjit_cli_type_info(DML_OPERATOR_TYPE type);
opjit_field_info opjit_cli_field_info(DML_OPERATOR_TYPE type, uint32_t index);
opjit_support_info opjit_cli_support_row(DML_OPERATOR_TYPE type, uint32_t index);
/* What holds for a tensor (NULL: all without rows of their own) without a feature level. */
opjit_support_info opjit_cli_support_of(DML_OPERATOR_TYPE type, const char *tensor);
/* What kind of value a field takes, for people. */
const char *opjit_cli_kind_text(opjit_field_kind kind);

/* An element of an array of JSON, which is begun by the first and ended by the caller (ops_json.c). */
void opjit_cli_put_op_json(const opjit_operator_type_info *op, bool first);
/* The page docs/OPERATORS.md (ops_page.c); false: no memory. */
bool opjit_cli_put_page(void);

#endif
