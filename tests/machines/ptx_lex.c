/* SPDX-License-Identifier: Apache-2.0 */
/* ptx_lex.c - splits PTX into tokens; names of types; helpers of the whole parser. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/machines/ptx_parser.h"

const ptx_type_info ptx_types[T_COUNT] = {
    [T_NONE] = { "", 0, ' ' },       [T_PRED] = { "pred", 0, 'p' },   [T_B8] = { "b8", 1, 'b' },
    [T_B16] = { "b16", 2, 'b' },     [T_B32] = { "b32", 4, 'b' },     [T_B64] = { "b64", 8, 'b' },
    [T_B128] = { "b128", 16, 'b' },  [T_U8] = { "u8", 1, 'u' },       [T_U16] = { "u16", 2, 'u' },
    [T_U32] = { "u32", 4, 'u' },     [T_U64] = { "u64", 8, 'u' },     [T_S8] = { "s8", 1, 's' },
    [T_S16] = { "s16", 2, 's' },     [T_S32] = { "s32", 4, 's' },     [T_S64] = { "s64", 8, 's' },
    [T_F16] = { "f16", 2, 'f' },     [T_F32] = { "f32", 4, 'f' },     [T_F64] = { "f64", 8, 'f' },
    [T_F16X2] = { "f16x2", 4, 'x' }, [T_F32X2] = { "f32x2", 8, 'x' }, [T_U16X2] = { "u16x2", 4, 'x' },
    [T_S16X2] = { "s16x2", 4, 'x' },
};

bool ptx_bad(ptx_parser *p, uint32_t line, const char *format, ...)
{
    char text[400];
    va_list list;

    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    p->error->line = line;
    snprintf(p->error->message, sizeof p->error->message, "line %u: %s", line, text);
    return false;
}

void *ptx_grow(void *array, uint32_t count, uint32_t *capacity, size_t size)
{
    if (count < *capacity)
        return array;
    *capacity = *capacity == 0 ? 16 : 2 * *capacity;
    array = realloc(array, *capacity * size);
    if (array == NULL)
        abort();
    memset((char *)array + count * size, 0, (*capacity - count) * size);
    return array;
}

char *ptx_copy(const char *text, size_t length)
{
    char *copy = malloc(length + 1);

    if (copy == NULL)
        abort();
    memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}

/* --- tokens ------------------------------------------------------------------------------------------------------ */
bool ptx_is_digit(char c)
{
    return c >= '0' && c <= '9';
}
static bool is_word(char c)
{
    return ptx_is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || c == '%' ||
           c == '.';
}

static bool skip_space(ptx_parser *p)
{
    for (;; p->at++) {
        if (*p->at == '\n') {
            p->line++;
        } else if (p->at[0] == '/' && p->at[1] == '/') {
            while (p->at[1] != '\0' && p->at[1] != '\n')
                p->at++;
        } else if (p->at[0] == '/' && p->at[1] == '*') {
            const char *end = strstr(p->at + 2, "*/");
            if (end == NULL)
                return ptx_bad(p, p->line, "a comment that does not end");
            for (; p->at <= end; p->at++)
                p->line += *p->at == '\n';
        } else if (*p->at != ' ' && *p->at != '\t' && *p->at != '\r') {
            return true;
        }
    }
}

static int hex_digit(char c)
{
    return ptx_is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : 99;
}

static bool read_number(ptx_parser *p, ptx_token *t)
{
    const bool negative = *p->at == '-';
    const char *c = p->at + negative, *digits;
    int base = 10;

    t->kind = TOKEN_NUMBER;
    t->number = 'i';
    if (c[0] == '0' && (c[1] == 'x' || c[1] == 'X'))
        base = 16, c += 2;
    else if (c[0] == '0' && (c[1] == 'b' || c[1] == 'B'))
        base = 2, c += 2;
    else if (c[0] == '0' && (c[1] == 'f' || c[1] == 'F' || c[1] == 'd' || c[1] == 'D'))
        t->number = c[1] == 'f' || c[1] == 'F' ? 'f' : 'd', base = 16, c += 2;
    else if (c[0] == '0' && ptx_is_digit(c[1]))
        base = 8, c += 1;
    for (digits = c; hex_digit(*c) < base; c++) {
        if (__builtin_mul_overflow(t->value, (uint64_t)base, &t->value) ||
            __builtin_add_overflow(t->value, (uint64_t)hex_digit(*c), &t->value))
            return ptx_bad(p, p->line, "a number above 64 bits");
    }
    const long count = c - digits;
    if (count == 0 || (t->number == 'f' && count != 8) || (t->number == 'd' && count != 16) ||
        (t->number != 'i' && negative))
        return ptx_bad(p, p->line, "no number: '%.*s'", (int)(c - p->at + (*c != '\0')), p->at);
    if (t->number == 'i' && *c == 'U')
        c++;
    if (is_word(*c))
        return ptx_bad(p, p->line, "no number: '%.*s'", (int)(c - p->at + 1), p->at);
    if (negative)
        t->value = 0 - t->value;
    t->length = (uint32_t)(c - p->at);
    return true;
}

bool ptx_next(ptx_parser *p)
{
    ptx_token *t = &p->token;

    if (!skip_space(p))
        return false;
    memset(t, 0, sizeof *t);
    t->text = p->at;
    t->line = p->line;
    if (*p->at == '\0') {
        t->kind = TOKEN_END;
        return true;
    }
    if (ptx_is_digit(*p->at) || (*p->at == '-' && ptx_is_digit(p->at[1]))) {
        if (!read_number(p, t))
            return false;
    } else if (*p->at == '"') {
        const char *end = strpbrk(p->at + 1, "\"\n");
        if (end == NULL || *end != '"')
            return ptx_bad(p, p->line, "a string that does not end");
        t->kind = TOKEN_STRING;
        t->length = (uint32_t)(end + 1 - p->at);
    } else if (is_word(*p->at)) {
        t->kind = TOKEN_WORD;
        while (is_word(p->at[t->length]) || (p->at[t->length] == ':' && p->at[t->length + 1] == ':') ||
               (p->at[t->length] == ':' && p->at[t->length - 1] == ':'))
            t->length++;
    } else {
        t->kind = TOKEN_SIGN;
        t->length = 1;
    }
    p->at += t->length;
    return true;
}

bool ptx_is(const ptx_parser *p, const char *text)
{
    return p->token.kind != TOKEN_NUMBER && strlen(text) == p->token.length &&
           memcmp(p->token.text, text, p->token.length) == 0;
}

bool ptx_take(ptx_parser *p, const char *text)
{
    if (!ptx_is(p, text))
        return ptx_bad(p, p->token.line, "'%s' is missing before '%.*s'", text, SAY(p->token));
    return ptx_next(p);
}

bool ptx_take_number(ptx_parser *p, uint64_t most, uint64_t *out)
{
    if (p->token.kind != TOKEN_NUMBER || p->token.number != 'i' || p->token.value > most)
        return ptx_bad(p, p->token.line, "'%.*s' instead of a number up to %llu", SAY(p->token),
                       (unsigned long long)most);
    *out = p->token.value;
    return ptx_next(p);
}

bool ptx_take_name(ptx_parser *p, char **out)
{
    *out = NULL;
    if (p->token.kind != TOKEN_WORD || p->token.text[0] == '.')
        return ptx_bad(p, p->token.line, "'%.*s' instead of a name", SAY(p->token));
    *out = ptx_copy(p->token.text, p->token.length);
    if (ptx_next(p))
        return true;
    free(*out);
    *out = NULL;
    return false;
}

bool ptx_type_of(const char *name, size_t length, ptx_type *out_type)
{
    for (int i = 1; i < T_COUNT; i++) {
        if (strlen(ptx_types[i].name) == length && memcmp(ptx_types[i].name, name, length) == 0) {
            *out_type = (ptx_type)i;
            return true;
        }
    }
    return false;
}

bool ptx_take_type(ptx_parser *p, ptx_type *out)
{
    if (p->token.kind != TOKEN_WORD || p->token.text[0] != '.' ||
        !ptx_type_of(p->token.text + 1, p->token.length - 1, out))
        return ptx_bad(p, p->token.line, "'%.*s' instead of a type", SAY(p->token));
    return ptx_next(p);
}
