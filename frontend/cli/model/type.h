/* SPDX-License-Identifier: Apache-2.0 */
/* type.h - operators as opjit/reflect.h describes them: what models, lists and explanations read their fields by. */
#ifndef OPJIT_CLI_TYPE_H
#define OPJIT_CLI_TYPE_H

#include <opjit/reflect.h>

#include "runtime/base/base.h"

/* Full spelling; ends with NULL. */
typedef struct cli_enum_name {
    const char *name;
    int32_t value;
} cli_enum_name;
typedef struct cli_enum {
    const char *prefix; /* "DML_PADDING_MODE_": JSON takes names with and without it */
    const cli_enum_name *names;
} cli_enum;

typedef struct cli_field {
    const char *name;
    opjit_field_kind kind;
    uint32_t flags;              /* OPJIT_FIELD_OPTIONAL ... */
    uint32_t offset;             /* in the descriptor struct */
    uint32_t count;              /* arrays: offset of the field that counts them */
    const cli_enum *enumeration; /* ENUM */
} cli_field;

typedef struct cli_type {
    DML_OPERATOR_TYPE type;
    const char *name, *formula;
    uint32_t introduced; /* DML_FEATURE_LEVEL */
    uint32_t desc_size;
    const cli_field *fields;
    uint32_t field_count, support_count;
} cli_type;

/* --- rows as they are -------------------------------------------------------------------------------------------- */
/* Of a type and indices that there are. */
opjit_operator_type_info opjit_cli_type_info(DML_OPERATOR_TYPE type);
opjit_field_info opjit_cli_field_info(DML_OPERATOR_TYPE type, uint32_t index);
opjit_support_info opjit_cli_support_row(DML_OPERATOR_TYPE type, uint32_t index);
/* What holds for a tensor (NULL: all without rows of their own) without a feature level. */
opjit_support_info opjit_cli_support_of(DML_OPERATOR_TYPE type, const char *tensor);
/* What kind of value a field takes, for people. */
const char *opjit_cli_kind_text(opjit_field_kind kind);

/* --- copies, in the arena ---------------------------------------------------------------------------------------- */
/* NULL: no memory, or this build has no such operator. */
const cli_type *opjit_cli_type_read(rt_arena *arena, DML_OPERATOR_TYPE type);

/* An operator's input or output tensors, `count` of them; NULL: no memory. */
const opjit_tensor_info *opjit_cli_tensors(rt_arena *arena, const opjit_operator *op, bool is_input, uint32_t count);
/* Index of the tensor's last element + 1. */
uint64_t opjit_cli_span(const opjit_tensor_info *tensor);
/* The type of the resource that a tensor is in: two elements of a 4-bit type are one of UINT8. */
static inline DML_TENSOR_DATA_TYPE cli_kept_type(DML_TENSOR_DATA_TYPE type)
{
    const bool halves = type == DML_TENSOR_DATA_TYPE_UINT4 || type == DML_TENSOR_DATA_TYPE_INT4;
    return halves ? DML_TENSOR_DATA_TYPE_UINT8 : type;
}
/* Bytes of so many elements of a tensor. */
static inline uint64_t cli_bytes(DML_TENSOR_DATA_TYPE type, uint64_t elements)
{
    const bool halves = type != cli_kept_type(type);
    return halves ? (elements + 1) / 2 : elements * opjit_data_type_size(type);
}

#endif
