/* SPDX-License-Identifier: Apache-2.0 */
/* check.c - arrays of hosts beside a kernel's buffers, and the line that says how they differ. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "frontend/hosts/check.h"

typedef struct line {
    size_t length;
    char text[200];
} line;

static void append(line *l, const char *format, ...)
{
    va_list args;
    int count;
    va_start(args, format);
    count = vsnprintf(l->text + l->length, sizeof l->text - l->length, format, args);
    va_end(args);
    if (count > 0)
        l->length += (size_t)count;
    if (l->length >= sizeof l->text)
        l->length = sizeof l->text - 1;
}

static void append_numbers(line *l, uint32_t count, const int64_t *numbers)
{
    append(l, "[");
    for (uint32_t i = 0; i < count; i++)
        append(l, "%s%lld", i > 0 ? ", " : "", (long long)numbers[i]);
    append(l, "]");
}

static void append_type(line *l, uint8_t code, uint32_t bits, uint32_t lanes, const char *type)
{
    static const char *const names[] = {
        [HOST_CODE_INT] = "int", [HOST_CODE_UINT] = "uint", [HOST_CODE_FLOAT] = "float", [4] = "bfloat", [5] = "complex"
    };
    if (code == HOST_CODE_OTHER)
        append(l, "%.40s", type);
    else if (code == HOST_CODE_BOOL)
        append(l, "bool");
    else if (code < sizeof names / sizeof *names && names[code] != NULL)
        append(l, "%s%u", names[code], bits);
    else
        append(l, "type %u of %u bits", code, bits);
    if (lanes != 1)
        append(l, " x %u", lanes);
}

void opjit_host_elements(DML_TENSOR_DATA_TYPE type, uint8_t *code, uint8_t *bits)
{
    static const struct {
        uint8_t code, bits;
    } types[] = {
        [DML_TENSOR_DATA_TYPE_UNKNOWN] = { HOST_CODE_OTHER, 0 },
        [DML_TENSOR_DATA_TYPE_FLOAT32] = { HOST_CODE_FLOAT, 32 },
        [DML_TENSOR_DATA_TYPE_FLOAT16] = { HOST_CODE_FLOAT, 16 },
        [DML_TENSOR_DATA_TYPE_FLOAT64] = { HOST_CODE_FLOAT, 64 },
        [DML_TENSOR_DATA_TYPE_UINT32] = { HOST_CODE_UINT, 32 },
        [DML_TENSOR_DATA_TYPE_UINT16] = { HOST_CODE_UINT, 16 },
        [DML_TENSOR_DATA_TYPE_UINT8] = { HOST_CODE_UINT, 8 },
        [DML_TENSOR_DATA_TYPE_UINT64] = { HOST_CODE_UINT, 64 },
        [DML_TENSOR_DATA_TYPE_INT32] = { HOST_CODE_INT, 32 },
        [DML_TENSOR_DATA_TYPE_INT16] = { HOST_CODE_INT, 16 },
        [DML_TENSOR_DATA_TYPE_INT8] = { HOST_CODE_INT, 8 },
        [DML_TENSOR_DATA_TYPE_INT64] = { HOST_CODE_INT, 64 },
        [DML_TENSOR_DATA_TYPE_UINT4] = { HOST_CODE_UINT, 4 },
        [DML_TENSOR_DATA_TYPE_INT4] = { HOST_CODE_INT, 4 },
    };
    const uint32_t row = (uint32_t)type < sizeof types / sizeof *types ? (uint32_t)type : 0;
    *code = types[row].code;
    *bits = types[row].bits;
}

void opjit_host_port(const opjit_kernel_info *info, uint32_t index, host_port *out)
{
    const opjit_buffer_info *const buffer = &info->buffers[index];
    *out = (host_port){ .name = opjit_kernel_buffer_name(info, index),
                        .dtype = (DML_TENSOR_DATA_TYPE)buffer->dtype,
                        .is_output = buffer->role == OPJIT_BUFFER_OUTPUT,
                        .rank = buffer->rank,
                        .bytes = buffer->bytes };
    opjit_host_elements((DML_TENSOR_DATA_TYPE)buffer->dtype, &out->code, &out->bits);
    out->takes_bool = buffer->dtype == DML_TENSOR_DATA_TYPE_UINT8 && !out->is_output;
    for (uint32_t d = 0; d < 8; d++) {
        out->sizes[d] = (int64_t)buffer->sizes[d];
        out->strides[d] = (int64_t)buffer->strides[d];
    }
}

opjit_status opjit_host_check(const host_port *want, uint32_t index, const host_tensor *given, bool read_only,
                              const char *type, opjit_error *error)
{
    const uint32_t rank = given->rank > 0 ? (uint32_t)given->rank : 0;
    line expected = { 0, "" }, got = { 0, "" };
    bool same;
    if (opjit_host_fits(want, given, read_only))
        return OPJIT_OK;
    same = (given->code == want->code || (given->code == HOST_CODE_BOOL && want->takes_bool)) &&
           given->bits == want->bits && given->lanes == 1 && rank == want->rank &&
           (rank == 0 || memcmp(given->sizes, want->sizes, rank * sizeof *given->sizes) == 0);
    append_type(&expected, want->code, want->bits, 1, NULL);
    append(&expected, " ");
    append_numbers(&expected, want->rank, want->sizes);
    append_type(&got, given->code, given->bits, given->lanes, type);
    append(&got, " ");
    append_numbers(&got, rank, given->sizes);
    if (same) { /* the type: so it is where they are */
        got.length = 0;
        if (given->device != HOST_DEVICE_CPU && given->device != HOST_DEVICE_PINNED) {
            append(&expected, " in this machine's memory");
            append(&got, "one on device %d:%d", (int)given->device, (int)given->device_id);
        } else if (read_only && want->is_output) {
            append(&expected, " that may be written");
            append(&got, "a read-only one");
        } else if (given->data == NULL) {
            append(&got, "one without memory");
        } else {
            append(&expected, " with strides ");
            append_numbers(&expected, want->rank, want->strides);
            if (given->strides != NULL)
                append_numbers(&got, rank, given->strides);
            else
                append(&got, "a packed one");
        }
    }
    if (error != NULL) {
        *error = (opjit_error){
            .status = OPJIT_INVALID_ARGUMENT, .node = -1, .index = (int32_t)index, .op = "call", .field = "buffers"
        };
        snprintf(error->message, sizeof error->message, "buffer %u: %.110s expected, %.110s given", index,
                 expected.text, got.text);
        snprintf(error->value, sizeof error->value, "%.59s", got.text);
    }
    return OPJIT_INVALID_ARGUMENT;
}
