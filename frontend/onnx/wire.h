/* SPDX-License-Identifier: Apache-2.0 */
/* wire.h - protobuf's wire format, as far as .onnx files need it: fields one after the other, each held to the bytes
 * that there are.  Nothing is copied: what is read borrows from the file. */
#ifndef OPJIT_FRONTEND_ONNX_WIRE_H
#define OPJIT_FRONTEND_ONNX_WIRE_H

#include "runtime/base/base.h"

/* Bytes of a message or of a string. */
typedef struct wire_bytes {
    const uint8_t *data;
    uint64_t size;
} wire_bytes;

/* How a field's value is written. */
typedef enum wire_type { WIRE_VARINT = 0, WIRE_64_BITS = 1, WIRE_BYTES = 2, WIRE_32_BITS = 5 } wire_type;

typedef struct wire_field {
    uint32_t number;
    wire_type type;
    uint64_t value;   /* of the numbers; 32 bits zero-extended */
    wire_bytes bytes; /* BYTES */
} wire_field;

/* A message that is being read. */
typedef struct wire_reader {
    const uint8_t *at, *end;
    bool bad; /* it is damaged: reading has ended */
} wire_reader;

static inline wire_reader wire_read(wire_bytes message)
{
    return (wire_reader){ message.data, message.data + message.size, false };
}
/* The next field; false: there is none, or the message is damaged. */
bool opjit_onnx_next(wire_reader *r, wire_field *out);
/* The next number of a packed field of them; call while r->at < r->end && !r->bad. */
uint64_t opjit_onnx_varint(wire_reader *r);
/* How many numbers a field holds that is repeated in either form: of varints or of `size` bytes each (0: varints). */
uint64_t opjit_onnx_count(const wire_field *field, uint32_t size);
/* Appends them to out, which has room for them, as values of 64 bits. */
void opjit_onnx_numbers(const wire_field *field, uint32_t size, uint64_t *out);

static inline bool wire_is(wire_bytes s, const char *text)
{
    const size_t length = strlen(text);
    return s.size == length && (length == 0 || memcmp(s.data, text, length) == 0);
}
static inline bool wire_same(wire_bytes a, wire_bytes b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, (size_t)a.size) == 0);
}

#endif
