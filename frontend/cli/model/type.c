/* SPDX-License-Identifier: Apache-2.0 */
/* type.c - see type.h: asks the library's reflection once for each operator, for fields in an array. */
#include "frontend/cli/model/type.h"

#include <stdio.h>
#include <string.h>

static const cli_enum *read_enum(rt_arena *arena, DML_OPERATOR_TYPE type, uint32_t field, const opjit_field_info *info)
{
    const size_t prefix = strlen(info->enum_prefix);
    cli_enum *const out = ARENA_NEW(arena, cli_enum);
    cli_enum_name *const names = ARENA_ARRAY(arena, cli_enum_name, (size_t)info->value_count + 1);
    if (out == NULL || names == NULL)
        return NULL;
    for (uint32_t i = 0; i < info->value_count; i++) {
        const char *const name = opjit_field_value_at(type, field, i, &names[i].value);
        char *const full = opjit_rt_arena_allocate(arena, prefix + strlen(name) + 1, 1);
        if (full == NULL)
            return NULL;
        memcpy(full, info->enum_prefix, prefix);
        memcpy(full + prefix, name, strlen(name) + 1);
        names[i].name = full;
    }
    *out = (cli_enum){ info->enum_prefix, names };
    return out;
}

static bool read_field(rt_arena *arena, DML_OPERATOR_TYPE type, uint32_t index, cli_field *out)
{
    opjit_field_info info = OPJIT_FIELD_INFO_INIT;
    if (opjit_operator_type_get_field(type, index, &info, NULL) != OPJIT_OK)
        return false;
    *out = (cli_field){ info.name, info.kind, info.flags, info.offset, info.count_offset, NULL };
    if (info.kind == OPJIT_FIELD_ENUM)
        out->enumeration = read_enum(arena, type, index, &info);
    return info.kind != OPJIT_FIELD_ENUM || out->enumeration != NULL;
}

const cli_type *opjit_cli_type_read(rt_arena *arena, DML_OPERATOR_TYPE type)
{
    opjit_operator_type_info info = OPJIT_OPERATOR_TYPE_INFO_INIT;
    cli_type *const out = ARENA_NEW(arena, cli_type);
    cli_field *fields;
    if (out == NULL || opjit_operator_type_get_info(type, &info, NULL) != OPJIT_OK)
        return NULL;
    fields = ARENA_ARRAY(arena, cli_field, info.field_count);
    if (fields == NULL)
        return NULL;
    for (uint32_t i = 0; i < info.field_count; i++)
        if (!read_field(arena, type, i, &fields[i]))
            return NULL;
    *out = (cli_type){ .type = type,
                       .name = info.name,
                       .formula = info.formula,
                       .introduced = info.feature_level,
                       .desc_size = info.desc_bytes,
                       .fields = fields,
                       .field_count = info.field_count,
                       .support_count = info.support_count };
    return out;
}

const opjit_tensor_info *opjit_cli_tensors(rt_arena *arena, const opjit_operator *op, bool is_input, uint32_t count)
{
    opjit_tensor_info *const tensors = ARENA_ARRAY(arena, opjit_tensor_info, (size_t)count + 1);
    for (uint32_t i = 0; tensors != NULL && i < count; i++) {
        tensors[i].struct_size = sizeof *tensors;
        if ((is_input ? opjit_operator_get_input(op, i, &tensors[i], NULL)
                      : opjit_operator_get_output(op, i, &tensors[i], NULL)) != OPJIT_OK)
            return NULL;
    }
    return tensors;
}

uint64_t opjit_cli_span(const opjit_tensor_info *tensor)
{
    uint64_t span = 1;
    for (uint32_t i = 0; i < tensor->rank; i++)
        span += (tensor->sizes[i] - 1) * tensor->strides[i];
    return span;
}

/* --- rows as they are --------------------------------------------------------------------------------------------- */
/* The index that is asked for is one that there is, so none of these fails. */
opjit_operator_type_info opjit_cli_type_info(DML_OPERATOR_TYPE type)
{
    opjit_operator_type_info info = OPJIT_OPERATOR_TYPE_INFO_INIT;
    if (opjit_operator_type_get_info(type, &info, NULL) != OPJIT_OK)
        info.name = "";
    return info;
}

opjit_field_info opjit_cli_field_info(DML_OPERATOR_TYPE type, uint32_t index)
{
    opjit_field_info info = OPJIT_FIELD_INFO_INIT;
    if (opjit_operator_type_get_field(type, index, &info, NULL) != OPJIT_OK)
        info.name = "";
    return info;
}

opjit_support_info opjit_cli_support_row(DML_OPERATOR_TYPE type, uint32_t index)
{
    opjit_support_info info = OPJIT_SUPPORT_INFO_INIT;
    if (opjit_operator_type_get_support(type, index, &info, NULL) != OPJIT_OK)
        info.types = 0;
    return info;
}

opjit_support_info opjit_cli_support_of(DML_OPERATOR_TYPE type, const char *tensor)
{
    opjit_support_info info = OPJIT_SUPPORT_INFO_INIT;
    if (opjit_operator_type_find_support(type, tensor, 0, &info, NULL) != OPJIT_OK)
        info.types = 0;
    return info;
}

const char *opjit_cli_kind_text(opjit_field_kind kind)
{
    static const char *const names[] = {
        [OPJIT_FIELD_INPUT] = "input tensor",
        [OPJIT_FIELD_OUTPUT] = "output tensor",
        [OPJIT_FIELD_INPUTS] = "input tensors",
        [OPJIT_FIELD_OUTPUTS] = "output tensors",
        [OPJIT_FIELD_DATA_TYPE] = "data type",
        [OPJIT_FIELD_SCALAR] = "scalar of the data type above",
        [OPJIT_FIELD_INT32] = "INT32",
        [OPJIT_FIELD_UINT32] = "UINT32",
        [OPJIT_FIELD_FLOAT32] = "FLOAT32",
        [OPJIT_FIELD_BOOL] = "true or false",
        [OPJIT_FIELD_ENUM] = "name",
        [OPJIT_FIELD_UINT32S] = "UINT32 array",
        [OPJIT_FIELD_INT32S] = "INT32 array",
        [OPJIT_FIELD_FLOAT32S] = "FLOAT32 array",
        [OPJIT_FIELD_SCALE_BIAS] = "Scale and Bias",
        [OPJIT_FIELD_ACTIVATION] = "fused activation",
        [OPJIT_FIELD_SIZE_2D] = "Width and Height",
        [OPJIT_FIELD_ACTIVATIONS] = "array of activations",
    };
    return names[kind];
}
