/* SPDX-License-Identifier: Apache-2.0 */
/* parser.h - the state of one parse and the parts of its grammar: failures, expected tokens, ids.  After the first
 * failure every function does nothing and returns 0 or false. */
#ifndef OPJIT_IR_TEXT_PARSER_H
#define OPJIT_IR_TEXT_PARSER_H

#include "ir/core/internal.h"
#include "ir/text/lex.h"

typedef enum symbol_kind { SYMBOL_NONE, SYMBOL_TENSOR, SYMBOL_PARAM, SYMBOL_NODE } symbol_kind;

typedef struct symbol {
    const char *text;
    size_t size;
    symbol_kind kind;
    uint32_t value;
} symbol;

typedef struct parser {
    ir_lexer lex;
    ir_func *f;
    opjit_error *error;
    opjit_status status; /* of the first failure; nothing is done after it */
    symbol *symbols;     /* open addressing; capacity is a power of two, or 0 before the first symbol */
    uint32_t symbol_count, symbol_capacity;
    uint32_t slots; /* declared buffers */
    uint32_t depth;
    ir_ref tail; /* last item */
} parser;

static inline bool ok(const parser *p)
{
    return p->status == OPJIT_OK && !p->f->failed;
}
static inline bool at(const parser *p, const char *word)
{
    return opjit_ir_lex_is(&p->lex, word);
}
static inline void next(parser *p)
{
    opjit_ir_lex_next(&p->lex);
}

/* Records the first failure, "line N: ...", and returns false. */
bool opjit_ir_p_fail(parser *p, const char *format, ...) PRINTF_LIKE(2, 3);
bool opjit_ir_p_unexpected(parser *p, const char *what); /* "WHAT is expected, not ..." */
int opjit_ir_p_shown(const parser *p);                   /* how much of the current token a message shows */

bool opjit_ir_p_accept(parser *p, const char *word); /* takes the token if it is this word */
bool opjit_ir_p_expect(parser *p, const char *word);
uint64_t opjit_ir_p_unsigned(parser *p, uint32_t bits);
int64_t opjit_ir_p_signed(parser *p);
ir_type opjit_ir_p_type_at(const parser *p); /* IR_NONE: the token is no type */
ir_type opjit_ir_p_type(parser *p);

symbol opjit_ir_p_new_id(parser *p); /* of something new */
void opjit_ir_p_declare(parser *p, symbol id, symbol_kind kind, uint32_t value);
symbol opjit_ir_p_id(parser *p);
uint32_t opjit_ir_p_tensor(parser *p);

ir_ref opjit_ir_p_expr(parser *p); /* parse.c */

/* parse_definition.c */
ir_kind opjit_ir_p_kind(parser *p);
void opjit_ir_p_order(parser *p, ir_node *out);       /* lanes and blocks of an accumulator or of a reduction */
ir_ref opjit_ir_p_definition(parser *p, ir_op op);    /* a DEF, SCATTER or YIELD, from its id on */

/* parse_declaration.c */
const char *opjit_ir_p_string(parser *p);              /* a quoted string, in the arena; NULL: the token is none */
void opjit_ir_p_layout(parser *p, ir_tensor *out);     /* type[sizes] and what follows it */
bool opjit_ir_p_declaration(parser *p);                /* parses one if there is one here */

#endif
