/* SPDX-License-Identifier: Apache-2.0 */
/* tensor.c - element types, and the elements of tensors in the file. */
#include <stdio.h>

#include <opjit/reflect.h>

#include "frontend/onnx/onnx.h"

static const struct {
    DML_TENSOR_DATA_TYPE dtype;
    const char *name;
    uint32_t field; /* of typed elements */
} types[] = {
    [ONNX_FLOAT] = { DML_TENSOR_DATA_TYPE_FLOAT32, "float32", 4 },
    [ONNX_UINT8] = { DML_TENSOR_DATA_TYPE_UINT8, "uint8", 5 },
    [ONNX_INT8] = { DML_TENSOR_DATA_TYPE_INT8, "int8", 5 },
    [ONNX_UINT16] = { DML_TENSOR_DATA_TYPE_UINT16, "uint16", 5 },
    [ONNX_INT16] = { DML_TENSOR_DATA_TYPE_INT16, "int16", 5 },
    [ONNX_INT32] = { DML_TENSOR_DATA_TYPE_INT32, "int32", 5 },
    [ONNX_INT64] = { DML_TENSOR_DATA_TYPE_INT64, "int64", 7 },
    [ONNX_STRING] = { DML_TENSOR_DATA_TYPE_UNKNOWN, "string", 6 },
    [ONNX_BOOL] = { DML_TENSOR_DATA_TYPE_UINT8, "bool", 5 },
    [ONNX_FLOAT16] = { DML_TENSOR_DATA_TYPE_FLOAT16, "float16", 5 },
    [ONNX_DOUBLE] = { DML_TENSOR_DATA_TYPE_FLOAT64, "float64", 10 },
    [ONNX_UINT32] = { DML_TENSOR_DATA_TYPE_UINT32, "uint32", 11 },
    [ONNX_UINT64] = { DML_TENSOR_DATA_TYPE_UINT64, "uint64", 11 },
    [ONNX_BFLOAT16] = { DML_TENSOR_DATA_TYPE_UNKNOWN, "bfloat16", 5 },
    [ONNX_UINT4] = { DML_TENSOR_DATA_TYPE_UNKNOWN, "uint4", 5 }, /* two in a byte, the lower half first */
    [ONNX_INT4] = { DML_TENSOR_DATA_TYPE_UNKNOWN, "int4", 5 },
    /* names alone */
    [14] = { .name = "complex64" },
    [15] = { .name = "complex128" },
    [17] = { .name = "float8e4m3fn" },
    [18] = { .name = "float8e4m3fnuz" },
    [19] = { .name = "float8e5m2" },
    [20] = { .name = "float8e5m2fnuz" },
    [23] = { .name = "float4e2m1" },
    [24] = { .name = "float8e8m0" },
    [25] = { .name = "uint2" },
    [26] = { .name = "int2" },
};

static bool has_row(int32_t type)
{
    return type > 0 && type < (int32_t)(sizeof types / sizeof *types) && types[type].name != NULL;
}

DML_TENSOR_DATA_TYPE opjit_onnx_stored_dtype(int32_t type)
{
    return has_row(type) ? types[type].dtype : DML_TENSOR_DATA_TYPE_UNKNOWN;
}

DML_TENSOR_DATA_TYPE opjit_onnx_dtype(int32_t type)
{
    return type == ONNX_FLOAT16 ? DML_TENSOR_DATA_TYPE_FLOAT32 : opjit_onnx_stored_dtype(type);
}

onnx_type_text opjit_onnx_type_name(int32_t type)
{
    onnx_type_text out;
    if (has_row(type))
        snprintf(out.text, sizeof out.text, "%s", types[type].name);
    else
        snprintf(out.text, sizeof out.text, "type %d", (int)type);
    return out;
}

int32_t opjit_onnx_read_type(int32_t type)
{
    return type == ONNX_BFLOAT16 ? ONNX_FLOAT : type == ONNX_INT4 ? ONNX_INT8 : type == ONNX_UINT4 ? ONNX_UINT8 : type;
}

/* Of an element in the file; 0: there are none of the type. */
static uint32_t bits_of(int32_t type)
{
    return type == ONNX_BFLOAT16                ? 16
           : opjit_onnx_read_type(type) != type ? 4
                                                : 8 * opjit_rt_dtype_size(opjit_onnx_stored_dtype(type));
}

uint64_t opjit_onnx_tensor_bytes(const onnx_tensor *t)
{
    return (t->elements * bits_of(t->type) + 7) / 8;
}

void opjit_onnx_widen(const onnx_tensor *t, const void *packed, void *out)
{
    const uint8_t *const bytes = packed;
    for (uint64_t i = 0; i < t->elements; i++) {
        if (t->type == ONNX_BFLOAT16) {
            const uint32_t bits = (uint32_t)bytes[2 * i] << 16 | (uint32_t)bytes[2 * i + 1] << 24;
            memcpy((float *)out + i, &bits, sizeof bits);
        } else if (t->type == ONNX_FLOAT16) {
            ((float *)out)[i] = opjit_float16_to_float((uint16_t)(bytes[2 * i] | bytes[2 * i + 1] << 8));
        } else {
            const uint8_t half = i % 2 == 0 ? bytes[i / 2] & 15 : bytes[i / 2] >> 4;
            ((uint8_t *)out)[i] = t->type == ONNX_INT4 && half > 7 ? half | 0xf0 : half;
        }
    }
}

/* The elements of typed fields: numbers of 8 bytes, the lowest `size` bytes of which are the element. */
static void typed_elements(const onnx_tensor *t, uint32_t size, uint8_t *out)
{
    const uint32_t fixed = t->field == 4 ? 4 : t->field == 10 ? 8 : 0;
    wire_reader in = wire_read(t->message);
    uint64_t have = 0;
    for (wire_field f; opjit_onnx_next(&in, &f);) {
        if (f.number != t->field)
            continue;
        const uint64_t count = opjit_onnx_count(&f, fixed);
        wire_reader numbers = wire_read(f.bytes);
        for (uint64_t i = 0; i < count; i++, have++) {
            uint64_t value = f.value;
            if (f.type == WIRE_BYTES && fixed == 0) {
                value = opjit_onnx_varint(&numbers);
            } else if (f.type == WIRE_BYTES) {
                value = 0;
                memcpy(&value, numbers.at, fixed);
                numbers.at += fixed;
            }
            memcpy(out + have * size, &value, size);
        }
    }
}

opjit_status opjit_onnx_check_elements(const onnx_tensor *t, opjit_error *error)
{
    const uint32_t bits = bits_of(t->type);
    if (bits == 0)
        return opjit_rt_refuse(error, OPJIT_UNSUPPORTED, "{tensor} {\"" ONNX_NAME "\"}: elements of {%s} are not taken",
                               ONNX_SHOW(t->name), opjit_onnx_type_name(t->type).text);
    const bool is_typed = t->raw.data == NULL;
    const uint64_t bytes = opjit_onnx_tensor_bytes(t);
    const uint64_t have = is_typed ? t->typed * (bits == 4 ? 2 : 1) : t->raw.size * 8 / bits;
    if (is_typed ? have - t->elements > (bits == 4) || (have != 0 && t->field != types[t->type].field)
                 : t->raw.size != bytes)
        return opjit_rt_refuse(error, OPJIT_CORRUPT,
                               "{tensor} {\"" ONNX_NAME "\"}: {%llu} elements are in the file, its sizes say %llu",
                               ONNX_SHOW(t->name), (unsigned long long)have, (unsigned long long)t->elements);
    return OPJIT_OK;
}

void opjit_onnx_elements(const onnx_tensor *t, void *out)
{
    if (t->raw.data != NULL)
        memcpy(out, t->raw.data, (size_t)t->raw.size);
    else
        typed_elements(t, (bits_of(t->type) + 7) / 8, out);
}
