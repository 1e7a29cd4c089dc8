/* SPDX-License-Identifier: Apache-2.0 */
/* lex.h - tokens of the IR's text.  Reads bytes, never past the end, and knows no grammar. */
#ifndef OPJIT_IR_TEXT_LEX_H
#define OPJIT_IR_TEXT_LEX_H

#include "ir/ir.h"

typedef enum lex_kind {
    LEX_END = 0,
    LEX_ID,     /* %name, without the % */
    LEX_NAME,   /* @name, without the @ */
    LEX_WORD,   /* letters, digits, _, single dots; may begin with '-' before a letter */
    LEX_NUMBER, /* -?digits, or a hex number or float */
    LEX_STRING, /* what is between the quotes, escapes included */
    LEX_DOTS,   /* .. */
    LEX_PUNCT,  /* one character */
    LEX_BAD     /* a byte that begins no token, or a string without end */
} lex_kind;

typedef struct ir_lexer {
    const char *text;
    size_t length, at;
    uint32_t line;
    /* the current token */
    lex_kind kind;
    const char *start;
    size_t size;
} ir_lexer;

void opjit_ir_lex_next(ir_lexer *lex);
bool opjit_ir_lex_is(const ir_lexer *lex, const char *word_or_punct);
/* The current number, decimal or 0x..., as an integer of that many bits; false: not one, or out of range. */
bool opjit_ir_lex_signed(const ir_lexer *lex, uint32_t bits, int64_t *out);
bool opjit_ir_lex_unsigned(const ir_lexer *lex, uint32_t bits, uint64_t *out);
/* The current hex float as bits of a float type; false: not one, or not exactly a value of the type. */
bool opjit_ir_lex_float(const ir_lexer *lex, ir_type type, uint64_t *out);

#endif
