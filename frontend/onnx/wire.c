/* SPDX-License-Identifier: Apache-2.0 */
/* wire.c - reading protobuf's wire format. */
#include "frontend/onnx/wire.h"

uint64_t opjit_onnx_varint(wire_reader *r)
{
    uint64_t value = 0;
    for (uint32_t shift = 0; shift < 64 && r->at < r->end; shift += 7) {
        const uint8_t byte = *r->at++;
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return value;
    }
    r->bad = true;
    r->at = r->end;
    return 0;
}

/* `size` bytes of a number, lowest first. */
static uint64_t fixed(const uint8_t *from, uint32_t size)
{
    uint64_t value = 0;
    for (uint32_t i = size; i-- > 0;)
        value = value << 8 | from[i];
    return value;
}

bool opjit_onnx_next(wire_reader *r, wire_field *out)
{
    if (r->bad || r->at >= r->end)
        return false;
    const uint64_t key = opjit_onnx_varint(r);
    *out = (wire_field){ .number = (uint32_t)(key >> 3), .type = (wire_type)(key & 7) };
    uint64_t size = 0;
    switch (out->type) {
    case WIRE_VARINT: out->value = opjit_onnx_varint(r); return !r->bad;
    case WIRE_64_BITS: size = 8; break;
    case WIRE_32_BITS: size = 4; break;
    case WIRE_BYTES: size = opjit_onnx_varint(r); break;
    default: r->bad = true; break;
    }
    if (r->bad || key >> 3 == 0 || key >> 32 != 0 || size > (uint64_t)(r->end - r->at)) {
        r->bad = true;
        return false;
    }
    if (out->type == WIRE_BYTES)
        out->bytes = (wire_bytes){ r->at, size };
    else
        out->value = fixed(r->at, (uint32_t)size);
    r->at += size;
    return true;
}

uint64_t opjit_onnx_count(const wire_field *field, uint32_t size)
{
    if (field->type != WIRE_BYTES)
        return 1;
    if (size != 0)
        return field->bytes.size / size;
    uint64_t count = 0;
    for (uint64_t i = 0; i < field->bytes.size; i++)
        count += field->bytes.data[i] < 128; /* the last byte of a number */
    return count;
}

void opjit_onnx_numbers(const wire_field *field, uint32_t size, uint64_t *out)
{
    if (field->type != WIRE_BYTES) {
        *out = field->value;
        return;
    }
    const uint64_t count = opjit_onnx_count(field, size);
    wire_reader r = wire_read(field->bytes);
    for (uint64_t i = 0; i < count; i++) {
        if (size == 0) {
            out[i] = opjit_onnx_varint(&r);
        } else {
            out[i] = fixed(r.at, size);
            r.at += size;
        }
    }
}
