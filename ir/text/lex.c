/* SPDX-License-Identifier: Apache-2.0 */
/* lex.c - splits the IR's text into tokens and converts its numbers to bits exactly.  Uses no locale and no strtod. */
#include "ir/text/lex.h"

#include <string.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}
static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
static bool is_name(char c)
{
    return is_letter(c) || is_digit(c);
}

static uint32_t hex_value(char c)
{
    return is_digit(c)            ? (uint32_t)(c - '0')
           : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a' + 10)
           : c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A' + 10)
                                  : 16;
}

/* The character at distance `ahead` from the position; 0 past the end. */
static char peek(const ir_lexer *lex, size_t ahead)
{
    return ahead < lex->length - lex->at ? lex->text[lex->at + ahead] : '\0';
}

static void skip_blank(ir_lexer *lex)
{
    for (; lex->at < lex->length; lex->at++) {
        const char c = lex->text[lex->at];
        if (c == ';')
            while (lex->at + 1 < lex->length && lex->text[lex->at + 1] != '\n')
                lex->at++;
        else if (c == '\n')
            lex->line++;
        else if (c != ' ' && c != '\t' && c != '\r')
            return;
    }
}

static void lex_number(ir_lexer *lex)
{
    lex->kind = LEX_NUMBER;
    if (peek(lex, 0) == '-')
        lex->at++;
    if (peek(lex, 0) != '0' || (peek(lex, 1) != 'x' && peek(lex, 1) != 'X')) {
        while (is_digit(peek(lex, 0)))
            lex->at++;
        return;
    }
    for (lex->at += 2; hex_value(peek(lex, 0)) < 16 || (peek(lex, 0) == '.' && peek(lex, 1) != '.'); lex->at++)
        ;
    if (peek(lex, 0) == 'p' || peek(lex, 0) == 'P') {
        lex->at++;
        if (peek(lex, 0) == '+' || peek(lex, 0) == '-')
            lex->at++;
        while (is_digit(peek(lex, 0)))
            lex->at++;
    }
}

static void lex_word(ir_lexer *lex)
{
    lex->kind = LEX_WORD;
    for (lex->at++; is_name(peek(lex, 0)) || (peek(lex, 0) == '.' && is_letter(peek(lex, 1))); lex->at++)
        ;
}

static void lex_string(ir_lexer *lex)
{
    for (lex->at++; lex->at < lex->length && lex->text[lex->at] != '"' && lex->text[lex->at] != '\n'; lex->at++)
        if (lex->text[lex->at] == '\\')
            lex->at++;
    if (lex->at >= lex->length || lex->text[lex->at] != '"') {
        lex->at = lex->length;
        lex->kind = LEX_BAD;
        return;
    }
    lex->kind = LEX_STRING;
    lex->start++;
    lex->size = (size_t)(lex->text + lex->at++ - lex->start);
}

void opjit_ir_lex_next(ir_lexer *lex)
{
    skip_blank(lex);
    lex->start = lex->text + lex->at;
    lex->size = 0;
    if (lex->at >= lex->length) {
        lex->kind = LEX_END;
        return;
    }
    const char c = peek(lex, 0);
    if (c == '"') {
        lex_string(lex);
        return;
    }
    if ((c == '%' || c == '@') && is_name(peek(lex, 1))) {
        lex->kind = c == '%' ? LEX_ID : LEX_NAME;
        lex->start++;
        for (lex->at++; is_name(peek(lex, 0)); lex->at++)
            ;
    } else if (is_digit(c) || (c == '-' && is_digit(peek(lex, 1)))) {
        lex_number(lex);
    } else if (is_letter(c) || (c == '-' && is_letter(peek(lex, 1)))) {
        lex_word(lex);
    } else if (c == '.' && peek(lex, 1) == '.') {
        lex->kind = LEX_DOTS;
        lex->at += 2;
    } else {
        lex->kind = c != '\0' && strchr("{}()[],:=", c) ? LEX_PUNCT : LEX_BAD;
        lex->at++;
    }
    lex->size = (size_t)(lex->text + lex->at - lex->start);
}

bool opjit_ir_lex_is(const ir_lexer *lex, const char *word)
{
    return (lex->kind == LEX_WORD || lex->kind == LEX_PUNCT || lex->kind == LEX_DOTS) && strlen(word) == lex->size &&
           memcmp(word, lex->start, lex->size) == 0;
}

/* --- numbers ------------------------------------------------------------------------------------------------------ */

/* The sign and magnitude of an integer token. */
static bool read_magnitude(const ir_lexer *lex, bool *negative, uint64_t *out)
{
    const char *s = lex->start, *end = lex->start + lex->size;
    uint64_t base = 10, value = 0;
    if (lex->kind != LEX_NUMBER)
        return false;
    *negative = *s == '-';
    s += *negative;
    if (end - s > 2 && s[0] == '0' && (s[1] == 'x' || s[1] == 'X')) {
        base = 16;
        s += 2;
    }
    if (s == end)
        return false;
    for (; s < end; s++) {
        const uint32_t digit = hex_value(*s);
        if (digit >= base || !checked_mul(value, base, &value) || !checked_add(value, digit, &value))
            return false;
    }
    *out = value;
    return true;
}

bool opjit_ir_lex_signed(const ir_lexer *lex, uint32_t bits, int64_t *out)
{
    bool negative;
    uint64_t value;
    if (!read_magnitude(lex, &negative, &value) || value > ((uint64_t)1 << (bits - 1)) - !negative)
        return false;
    *out = negative ? (int64_t)(0 - value) : (int64_t)value;
    return true;
}

bool opjit_ir_lex_unsigned(const ir_lexer *lex, uint32_t bits, uint64_t *out)
{
    bool negative;
    return read_magnitude(lex, &negative, out) && !negative && (bits >= 64 || *out >> bits == 0);
}

typedef struct hex_float {
    bool negative;
    uint64_t significand; /* value = significand * 2^power */
    int64_t power;
} hex_float;

static bool read_exponent(const char *s, const char *end, int64_t *out)
{
    const bool negative = s < end && *s == '-';
    int64_t value = 0;
    if (s < end && (*s == '-' || *s == '+'))
        s++;
    if (s == end || end - s > 6)
        return false;
    for (; s < end; s++)
        value = value * 10 + (*s - '0');
    *out = negative ? -value : value;
    return true;
}

static bool read_hex_float(const ir_lexer *lex, hex_float *out)
{
    const char *s = lex->start, *end = lex->start + lex->size;
    bool point = false, any = false;
    if (lex->kind != LEX_NUMBER)
        return false;
    *out = (hex_float){ .negative = *s == '-' };
    s += out->negative;
    if (end - s < 3 || s[0] != '0' || (s[1] != 'x' && s[1] != 'X'))
        return false;
    for (s += 2; s < end && *s != 'p' && *s != 'P'; s++) {
        if (*s == '.' && !point) {
            point = true;
            continue;
        }
        const uint32_t digit = hex_value(*s);
        if (digit >= 16 || out->significand >> 60)
            return false;
        out->significand = out->significand << 4 | digit;
        out->power -= point ? 4 : 0;
        any = true;
    }
    int64_t exponent;
    if (!any || s == end || !read_exponent(s + 1, end, &exponent))
        return false;
    out->power += exponent;
    return true;
}

bool opjit_ir_lex_float(const ir_lexer *lex, ir_type type, uint64_t *out)
{
    const uint32_t width = 8 * opjit_ir_type_size(type), fraction = type == IR_F16 ? 10 : type == IR_F32 ? 23 : 52;
    const int64_t bias = ((int64_t)1 << (width - 2 - fraction)) - 1;
    hex_float x;
    if (!read_hex_float(lex, &x))
        return false;
    const uint64_t sign = (uint64_t)x.negative << (width - 1);
    if (x.significand == 0) {
        *out = sign;
        return true;
    }
    while (!(x.significand & 1)) {
        x.significand >>= 1;
        x.power++;
    }
    const int64_t top = 63 - __builtin_clzll(x.significand), exponent = x.power + top;    /* of the leading one */
    const int64_t unit = (exponent > 1 - bias ? exponent : 1 - bias) - (int64_t)fraction; /* of the last place */
    if (exponent > bias || x.power < unit)
        return false;
    const uint64_t significand = x.significand << (x.power - unit);
    const uint64_t biased = exponent >= 1 - bias ? (uint64_t)(exponent + bias - 1) : 0; /* the leading one adds 1 */
    *out = sign | ((biased << fraction) + significand);
    return true;
}
