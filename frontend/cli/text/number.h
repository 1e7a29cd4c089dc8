/* SPDX-License-Identifier: Apache-2.0 */
/* number.h - exact numbers out of models: what is written is what is stored, or it is refused with the reason. */
#ifndef OPJIT_CLI_NUMBER_H
#define OPJIT_CLI_NUMBER_H

#include "frontend/cli/text/json.h"

/* A whole decimal number up to hi.  type names the type in messages: "must be UINT32, a whole number ...". */
opjit_status opjit_cli_unsigned(const json_value *value, const char *type, uint64_t hi, uint64_t *out,
                                opjit_error *error);

#define NUMBER_WRAPS 1u /* unsigned types take negative numbers down to -2^(N-1), modulo 2^N */

/* An element of type (one of the 11 whole-byte ones): its bits in the union's first bytes, the rest zero.  Floats take
 * numbers and "inf", "-inf", "nan" in any case, and are rounded once from the decimal text; a finite number that would
 * round to infinity is out of range. */
opjit_status opjit_cli_element(const json_value *value, DML_TENSOR_DATA_TYPE type, uint32_t flags,
                               DML_SCALAR_UNION *out, opjit_error *error);

/* Appends the element of type at data: floats as %.6g, "nan", "inf", "-inf", integers in decimal. */
void opjit_cli_print_element(rt_bytes *out, DML_TENSOR_DATA_TYPE type, const void *data);

#endif
