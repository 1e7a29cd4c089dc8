/* SPDX-License-Identifier: Apache-2.0 */
/* ptx_parser.h - shared by the parser's files: ptx_parse.c reads text and declarations, ptx_decode.c instructions. */
#ifndef OPJIT_TEST_MACHINES_PTX_PARSER_H
#define OPJIT_TEST_MACHINES_PTX_PARSER_H

#include "tests/machines/ptx_internal.h"

typedef enum ptx_token_kind { TOKEN_END, TOKEN_WORD, TOKEN_NUMBER, TOKEN_STRING, TOKEN_SIGN } ptx_token_kind;
typedef struct ptx_token {
    ptx_token_kind kind;
    const char *text;
    uint32_t length, line;
    uint64_t value; /* of a number */
    char number;    /* i integer, f 0f…, d 0d… */
} ptx_token;

typedef struct ptx_symbol { /* of a function: registers, variables, parameters */
    char *name;
    bool row; /* NAME<count>: NAME0, NAME1 … */
    uint32_t count;
    uint8_t fill;   /* FILL_NOTHING: registers */
    uint8_t size;   /* of a register */
    uint32_t base;  /* first slot; or the variable's offset */
    uint32_t bytes; /* of a parameter */
} ptx_symbol;

typedef struct ptx_label {
    char *name;
    uint32_t at, table, line;
} ptx_label; /* NO_SLOT: not said yet, no table */
typedef struct ptx_fixup {
    char *name;
    uint32_t line, ins, table, index;
} ptx_fixup; /* table NO_SLOT: of ins */

/* A part of an operand.  kind: r register, i number, v variable, s special register, n another name, _ nothing */
typedef struct ptx_atom {
    char kind, number;
    uint8_t size; /* of a register; 0: predicate */
    uint8_t fill, which;
    uint32_t slot;    /* of a register */
    uint64_t value;   /* of a number; offset of a variable */
    const char *name; /* of a name, not terminated */
    uint32_t length, bytes;
} ptx_atom;
/* kind: a atom, [ address (atom and offset), { vector, ( list, | pair */
typedef struct ptx_operand {
    char kind;
    uint32_t count;
    ptx_atom *atoms;
    int64_t offset;
} ptx_operand;
enum { MOST_OPERANDS = 6, MOST_ATOMS = 300 };

typedef struct ptx_parser {
    ptx_module *module;
    ptx_function *function; /* being read; NULL: outside */
    const char *at;
    uint32_t line;
    ptx_token token;
    ptx_error *error;
    ptx_symbol *symbols;
    uint32_t symbol_count, symbol_capacity;
    ptx_label *labels;
    uint32_t label_count, label_capacity;
    ptx_fixup *fixups;
    uint32_t fixup_count, fixup_capacity;
    ptx_atom atoms[MOST_ATOMS];
    uint32_t atom_count;
    ptx_operand operands[MOST_OPERANDS];
    uint32_t operand_count;
} ptx_parser;

/* ptx_lex.c.  False: *p->error is set. */
bool ptx_bad(ptx_parser *p, uint32_t line, const char *format, ...) PRINTF_LIKE(3, 4);
bool ptx_next(ptx_parser *p);                       /* the next token */
bool ptx_is(const ptx_parser *p, const char *text); /* the token is this word or sign */
bool ptx_take(ptx_parser *p, const char *text);     /* takes it, or fails */
char *ptx_copy(const char *text, size_t length);
void *ptx_grow(void *array, uint32_t count, uint32_t *capacity,
               size_t size); /* room for one more; ends the program without memory */
bool ptx_take_number(ptx_parser *p, uint64_t most, uint64_t *out);
bool ptx_take_name(ptx_parser *p, char **out); /* the caller frees it */
bool ptx_take_type(ptx_parser *p, ptx_type *out);
bool ptx_is_digit(char c);
bool ptx_type_of(const char *name, size_t length, ptx_type *out_type);

/* ptx_parse.c */
ptx_label *ptx_label_of(ptx_parser *p, const char *name, uint32_t length);
ptx_symbol *ptx_symbol_of(const ptx_parser *p, const char *name, uint32_t length, uint32_t *out_index);
/* The slot that holds value, or that fill describes. */
uint32_t ptx_constant(ptx_function *f, ptx_fill fill, uint32_t which, uint8_t size, uint64_t value);

bool ptx_read_module(ptx_parser *p);

/* ptx_decode.c: words and operands according to a row of its table. */
typedef struct ptx_row {
    const char *name;
    uint8_t op, sub;
    const char *form;
    uint32_t types, words, need;
} ptx_row;
typedef struct ptx_decoding { /* of one instruction */
    ptx_ins ins;
    const ptx_row *row;
    ptx_token name;
    ptx_type types[3];
    uint32_t type_count;
    bool compared, spaced;
} ptx_decoding;
bool ptx_decode_words(ptx_parser *p, ptx_decoding *d);
bool ptx_decode_form(ptx_parser *p, ptx_decoding *d);
/* The slot of a source, or a destination, of type; larger: a wider register will do. */
bool ptx_add_source(ptx_parser *p, ptx_decoding *d, const ptx_operand *o, ptx_type type, bool larger);
bool ptx_add_dest(ptx_parser *p, ptx_decoding *d, const ptx_operand *o, ptx_type type, bool larger);
bool ptx_wrong_count(ptx_parser *p, const ptx_decoding *d);

/* ptx_operands.c: an instruction from its guard to its semicolon; operands with a form of their own. */
bool ptx_instruction(ptx_parser *p);

#define SAY(t) (int)(t).length, (t).text
#endif
