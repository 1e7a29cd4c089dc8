/* SPDX-License-Identifier: Apache-2.0 */
/* npy.c - the header of an .npy file: a Python dict literal with the keys descr, fortran_order and shape. */
#include "frontend/cli/files/npy.h"

#include <inttypes.h>
#include <opjit/reflect.h>
#include <string.h>

static const struct {
    const char *code;
    DML_TENSOR_DATA_TYPE type;
} codes[] = {
    { "f2", DML_TENSOR_DATA_TYPE_FLOAT16 }, { "f4", DML_TENSOR_DATA_TYPE_FLOAT32 },
    { "f8", DML_TENSOR_DATA_TYPE_FLOAT64 }, { "i1", DML_TENSOR_DATA_TYPE_INT8 },
    { "i2", DML_TENSOR_DATA_TYPE_INT16 },   { "i4", DML_TENSOR_DATA_TYPE_INT32 },
    { "i8", DML_TENSOR_DATA_TYPE_INT64 },   { "u1", DML_TENSOR_DATA_TYPE_UINT8 },
    { "u2", DML_TENSOR_DATA_TYPE_UINT16 },  { "u4", DML_TENSOR_DATA_TYPE_UINT32 },
    { "u8", DML_TENSOR_DATA_TYPE_UINT64 },  { "b1", DML_TENSOR_DATA_TYPE_UINT8 },
};

typedef struct cursor {
    const char *at, *end;
    opjit_error *error;
} cursor;

static opjit_status damaged(cursor *c, const char *what)
{
    return opjit_rt_error_set(c->error, OPJIT_CORRUPT, "damaged .npy header: %s", what);
}

static void skip_spaces(cursor *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\t' || *c->at == '\n' || *c->at == '\r'))
        c->at++;
}

static bool take(cursor *c, char wanted)
{
    skip_spaces(c);
    if (c->at == c->end || *c->at != wanted)
        return false;
    c->at++;
    return true;
}

static bool take_word(cursor *c, const char *word)
{
    const size_t length = strlen(word);
    skip_spaces(c);
    if ((size_t)(c->end - c->at) < length || memcmp(c->at, word, length) != 0)
        return false;
    c->at += length;
    return true;
}

/* A string without escapes, in single or double quotes. */
static opjit_status take_string(cursor *c, char *out, size_t size)
{
    char quote;
    size_t n = 0;
    skip_spaces(c);
    if (c->at == c->end || (*c->at != '\'' && *c->at != '"'))
        return damaged(c, "a string was expected");
    quote = *c->at++;
    while (c->at < c->end && *c->at != quote && *c->at != '\\' && n + 1 < size)
        out[n++] = *c->at++;
    out[n] = '\0';
    if (c->at == c->end || *c->at != quote)
        return damaged(c, "a string has no end or is too long");
    c->at++;
    return OPJIT_OK;
}

static opjit_status take_descr(cursor *c, npy_array *out)
{
    char text[24];
    skip_spaces(c);
    if (c->at < c->end && *c->at == '[')
        return opjit_rt_error_set(c->error, OPJIT_UNSUPPORTED, "structured .npy element types are not supported");
    TRY(take_string(c, text, sizeof text));
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        const bool one_byte = codes[i].code[1] == '1';
        if (text[0] == '\0' || strcmp(text + 1, codes[i].code) != 0)
            continue;
        if (strchr("<=>", text[0]) != NULL || (one_byte && text[0] == '|')) {
            out->dtype = codes[i].type;
            out->big_endian = text[0] == '>' && !one_byte;
            return OPJIT_OK;
        }
    }
    return opjit_rt_error_set(c->error, OPJIT_UNSUPPORTED, "the .npy element type %s is not supported", text);
}

static opjit_status take_shape(cursor *c, npy_array *out)
{
    out->rank = 0;
    if (!take(c, '('))
        return damaged(c, "shape is no tuple");
    while (!take(c, ')')) {
        uint64_t size = 0;
        skip_spaces(c);
        if (out->rank == NPY_MAX_RANK)
            return opjit_rt_error_set(c->error, OPJIT_LIMIT, "the .npy array has more than %u dimensions",
                                      NPY_MAX_RANK);
        if (c->at == c->end || *c->at < '0' || *c->at > '9')
            return damaged(c, "shape holds something else than whole numbers");
        for (; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++) {
            if (!checked_mul(size, 10, &size) || !checked_add(size, (uint64_t)(*c->at - '0'), &size))
                return damaged(c, "a size in shape is beyond 64 bits");
        }
        (void)take_word(c, "L"); /* Python 2 wrote long integers so */
        out->shape[out->rank++] = size;
        if (!take(c, ',')) {
            skip_spaces(c);
            if (c->at == c->end || *c->at != ')')
                return damaged(c, "shape has no end");
        }
    }
    return OPJIT_OK;
}

static opjit_status read_dict(cursor *c, npy_array *out)
{
    unsigned seen = 0;
    if (!take(c, '{'))
        return damaged(c, "a dict was expected");
    while (!take(c, '}')) {
        char key[24];
        unsigned bit = 0;
        TRY(take_string(c, key, sizeof key));
        if (!take(c, ':'))
            return damaged(c, "a ':' is missing");
        if (strcmp(key, "descr") == 0) {
            bit = 1;
            TRY(take_descr(c, out));
        } else if (strcmp(key, "fortran_order") == 0) {
            bit = 2;
            out->column_major = take_word(c, "True");
            if (!out->column_major && !take_word(c, "False"))
                return damaged(c, "fortran_order is neither True nor False");
        } else if (strcmp(key, "shape") == 0) {
            bit = 4;
            TRY(take_shape(c, out));
        }
        if (bit == 0 || (seen & bit) != 0)
            return damaged(c, "a key is unknown or stands twice");
        seen |= bit;
        if (!take(c, ',')) {
            skip_spaces(c);
            if (c->at == c->end || *c->at != '}')
                return damaged(c, "the dict has no end");
        }
    }
    return seen == 7 ? OPJIT_OK : damaged(c, "descr, fortran_order or shape is missing");
}

/* Finds the header text behind magic, version and length. */
static opjit_status find_header(const uint8_t *file, size_t size, cursor *c)
{
    size_t length, start;
    if (size < 10 || memcmp(file, "\x93NUMPY", 6) != 0)
        return opjit_rt_error_set(c->error, OPJIT_CORRUPT, "this is no .npy file");
    if (file[6] < 1 || file[6] > 3 || file[7] != 0)
        return opjit_rt_error_set(c->error, OPJIT_UNSUPPORTED, ".npy version %u.%u is not known", file[6], file[7]);
    start = file[6] == 1 ? 10 : 12;
    if (size < start)
        return damaged(c, "the file ends in it");
    length = file[8] | (size_t)file[9] << 8;
    if (file[6] != 1)
        length |= (size_t)file[10] << 16 | (size_t)file[11] << 24;
    if (length > size - start)
        return damaged(c, "the file ends in it");
    c->at = (const char *)file + start;
    c->end = c->at + length;
    return OPJIT_OK;
}

opjit_status opjit_cli_npy_read(const uint8_t *file, size_t size, npy_array *out, opjit_error *error)
{
    cursor c = { NULL, NULL, error };
    uint32_t wide = 0; /* dimensions whose order matters */
    uint64_t bytes;
    *out = (npy_array){ .elements = 1 };
    TRY(find_header(file, size, &c));
    TRY(read_dict(&c, out));
    skip_spaces(&c);
    if (c.at != c.end)
        return damaged(&c, "something follows the dict");
    for (uint32_t i = 0; i < out->rank; i++) {
        wide += out->shape[i] > 1;
        if (!checked_mul(out->elements, out->shape[i], &out->elements))
            return damaged(&c, "shape has more than 2^64 elements");
    }
    out->column_major = out->column_major && wide > 1;
    out->data_offset = (size_t)((const uint8_t *)c.end - file);
    if (!checked_mul(out->elements, opjit_data_type_size(out->dtype), &bytes) || bytes != size - out->data_offset)
        return opjit_rt_error_set(error, OPJIT_CORRUPT,
                                  "the .npy file holds %zu bytes of data, its shape needs %" PRIu64
                                  " elements of %u bytes",
                                  size - out->data_offset, out->elements, opjit_data_type_size(out->dtype));
    return OPJIT_OK;
}

void opjit_cli_npy_copy(const npy_array *array, const uint8_t *file, void *out)
{
    const size_t size = opjit_data_type_size(array->dtype);
    const uint8_t *const data = file + array->data_offset;
    uint64_t at[NPY_MAX_RANK] = { 0 }, stride[NPY_MAX_RANK], from = 0, next = 1; /* in elements */
    if (opjit_cli_npy_is_plain(array)) {
        memcpy(out, data, (size_t)array->elements * size);
        return;
    }
    for (uint32_t i = 0; i < array->rank; i++) {
        const uint32_t d = array->column_major ? i : array->rank - 1 - i;
        stride[d] = next;
        next *= array->shape[d];
    }
    for (uint64_t n = 0; n < array->elements; n++) {
        uint8_t *const to = (uint8_t *)out + n * size;
        for (size_t b = 0; b < size; b++)
            to[b] = data[from * size + (array->big_endian ? size - 1 - b : b)];
        for (uint32_t d = array->rank; d-- > 0;) {
            from += stride[d];
            if (++at[d] < array->shape[d])
                break;
            from -= stride[d] * array->shape[d];
            at[d] = 0;
        }
    }
}

void opjit_cli_npy_header(rt_bytes *out, DML_TENSOR_DATA_TYPE dtype, const uint64_t *shape, uint32_t rank)
{
    size_t start = out->size, code = 0, total;
    while (codes[code].type != dtype)
        code++;
    opjit_rt_bytes_append(out, "\x93NUMPY\x01\x00\x00\x00", 10);
    opjit_rt_bytes_printf(out, "{'descr': '%c%s', 'fortran_order': False, 'shape': (",
                          codes[code].code[1] == '1' ? '|' : '<', codes[code].code);
    for (uint32_t i = 0; i < rank; i++)
        opjit_rt_bytes_printf(out, "%s%" PRIu64, i != 0 ? ", " : "", shape[i]);
    opjit_rt_bytes_printf(out, "%s), }", rank == 1 ? "," : "");
    total = (size_t)align_up(out->size - start + 1, 64);
    while (!out->failed && out->size - start < total - 1)
        opjit_rt_bytes_u8(out, ' ');
    opjit_rt_bytes_u8(out, '\n');
    if (!out->failed) {
        out->data[start + 8] = (uint8_t)(total - 10);
        out->data[start + 9] = (uint8_t)((total - 10) >> 8);
    }
}
