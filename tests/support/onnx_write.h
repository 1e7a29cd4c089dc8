/* SPDX-License-Identifier: Apache-2.0 */
/* onnx_write.h - writes .onnx models for tests, field by field. */
#ifndef OPJIT_TESTS_SUPPORT_ONNX_WRITE_H
#define OPJIT_TESTS_SUPPORT_ONNX_WRITE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/base.h"

enum { FLOAT = 1, INT64 = 7 }; /* types of elements */

static inline rt_bytes new_message(void)
{
    rt_bytes b;
    opjit_rt_bytes_init(&b, &opjit_rt_default_allocator);
    return b;
}

static inline void put_varint(rt_bytes *b, uint64_t value)
{
    for (; value >= 128; value >>= 7)
        opjit_rt_bytes_u8(b, (uint8_t)(value | 128));
    opjit_rt_bytes_u8(b, (uint8_t)value);
}

static inline void put_int(rt_bytes *b, uint32_t number, uint64_t value)
{
    put_varint(b, number << 3);
    put_varint(b, value);
}

static inline void put_data(rt_bytes *b, uint32_t number, const void *data, size_t size)
{
    put_varint(b, number << 3 | 2);
    put_varint(b, size);
    opjit_rt_bytes_append(b, data, size);
}

static inline void put_text(rt_bytes *b, uint32_t number, const char *text)
{
    put_data(b, number, text, strlen(text));
}

/* The message, which is freed. */
static inline void put_message(rt_bytes *b, uint32_t number, rt_bytes message)
{
    put_data(b, number, message.data, message.size);
    opjit_rt_bytes_free(&message);
}

/* A node with up to two inputs; the result takes attributes yet. */
static inline rt_bytes node(const char *op, const char *a, const char *b, const char *output)
{
    rt_bytes n = new_message();
    put_text(&n, 1, a);
    if (b != NULL)
        put_text(&n, 1, b);
    put_text(&n, 2, output);
    put_text(&n, 4, op);
    return n;
}

/* An input or output of FLOAT32; sizes: numbers, or names where they don't begin with a digit, between blanks. */
static inline rt_bytes port(const char *name, uint32_t type, const char *sizes)
{
    rt_bytes shape = new_message(), tensor = new_message(), of_type = new_message(), p = new_message();
    char word[32];
    for (int used; sscanf(sizes, "%31s%n", word, &used) == 1; sizes += used) {
        rt_bytes dim = new_message();
        if (word[0] >= '0' && word[0] <= '9')
            put_int(&dim, 1, (uint64_t)atoll(word));
        else
            put_text(&dim, 2, word);
        put_message(&shape, 1, dim);
    }
    put_int(&tensor, 1, type);
    put_message(&tensor, 2, shape);
    put_message(&of_type, 1, tensor);
    put_text(&p, 1, name);
    put_message(&p, 2, of_type);
    return p;
}

static inline rt_bytes initializer(const char *name, uint32_t type, uint64_t count, const void *data, size_t size)
{
    rt_bytes t = new_message();
    put_int(&t, 1, count);
    put_int(&t, 2, type);
    put_text(&t, 8, name);
    put_data(&t, 9, data, size);
    return t;
}

/* The file with the graph, of opset 17. */
static inline rt_bytes model_of(rt_bytes graph)
{
    rt_bytes file = new_message(), opset = new_message();
    put_int(&opset, 2, 17);
    put_int(&file, 1, 8);
    put_message(&file, 7, graph);
    put_message(&file, 8, opset);
    return file;
}

#endif
