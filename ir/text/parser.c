/* SPDX-License-Identifier: Apache-2.0 */
/* parser.c - the parser's failures, expected tokens and table of ids; the grammar is in parse.c. */
#include "ir/text/parser.h"

#include <stdio.h>
#include <string.h>

/* --- failures and tokens ------------------------------------------------------------------------------------------ */

bool opjit_ir_p_fail(parser *p, const char *format, ...)
{
    char message[160];
    va_list args;
    if (p->status != OPJIT_OK)
        return false;
    va_start(args, format);
    if (vsnprintf(message, sizeof(message), format, args) < 0)
        message[0] = '\0';
    va_end(args);
    p->status = opjit_rt_refuse(p->error, OPJIT_INVALID_ARGUMENT, "{!IR}{line} {%u}: %s", p->lex.line, message);
    return false;
}

/* How many characters of the current token a message shows: at most 40. */
int opjit_ir_p_shown(const parser *p)
{
    return (int)(p->lex.size > 40 ? 40 : p->lex.size);
}

bool opjit_ir_p_unexpected(parser *p, const char *what)
{
    if (p->lex.kind == LEX_END)
        return opjit_ir_p_fail(p, "%s is expected, the text ends", what);
    return opjit_ir_p_fail(p, "%s is expected, not \"%.*s\"", what, opjit_ir_p_shown(p), p->lex.start);
}

bool opjit_ir_p_accept(parser *p, const char *word)
{
    if (!ok(p) || !at(p, word))
        return false;
    next(p);
    return true;
}

bool opjit_ir_p_expect(parser *p, const char *word)
{
    char quoted[32];
    if (!ok(p) || opjit_ir_p_accept(p, word))
        return ok(p);
    snprintf(quoted, sizeof(quoted), "\"%s\"", word);
    return opjit_ir_p_unexpected(p, quoted);
}

uint64_t opjit_ir_p_unsigned(parser *p, uint32_t bits)
{
    uint64_t value = 0;
    if (ok(p) && !opjit_ir_lex_unsigned(&p->lex, bits, &value))
        opjit_ir_p_unexpected(p, "a whole number in range");
    next(p);
    return ok(p) ? value : 0;
}

int64_t opjit_ir_p_signed(parser *p)
{
    int64_t value = 0;
    if (ok(p) && !opjit_ir_lex_signed(&p->lex, 64, &value))
        opjit_ir_p_unexpected(p, "a whole number of 64 bits");
    next(p);
    return ok(p) ? value : 0;
}

ir_type opjit_ir_p_type_at(const parser *p)
{
    for (uint32_t t = IR_F16; t < IR_TYPE_COUNT; t++)
        if (p->lex.kind == LEX_WORD && at(p, opjit_ir_type_name((ir_type)t)))
            return (ir_type)t;
    return IR_NONE;
}

ir_type opjit_ir_p_type(parser *p)
{
    const ir_type type = opjit_ir_p_type_at(p);
    if (ok(p) && type == IR_NONE)
        opjit_ir_p_unexpected(p, "a type");
    next(p);
    return type;
}

/* --- ids ---------------------------------------------------------------------------------------------------------- */

/* The entry of this text, or the empty one where it belongs. */
static symbol *find_symbol(symbol *table, uint32_t capacity, const char *text, size_t size)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ (uint8_t)text[i]) * 16777619u;
    for (uint32_t i = hash & (capacity - 1);; i = (i + 1) & (capacity - 1))
        if (!table[i].text || (table[i].size == size && memcmp(table[i].text, text, size) == 0))
            return &table[i];
}

static bool grow_symbols(parser *p)
{
    const uint32_t capacity = p->symbol_capacity ? p->symbol_capacity * 2 : 64;
    symbol *table = ARENA_ARRAY(&p->f->arena, symbol, capacity);
    if (!table) {
        p->f->failed = true;
        return false;
    }
    for (uint32_t i = 0; i < p->symbol_capacity; i++)
        if (p->symbols[i].text)
            *find_symbol(table, capacity, p->symbols[i].text, p->symbols[i].size) = p->symbols[i];
    p->symbols = table;
    p->symbol_capacity = capacity;
    return true;
}

/* Takes the id at the position as the name of something new. */
symbol opjit_ir_p_new_id(parser *p)
{
    const symbol id = { .text = p->lex.start, .size = p->lex.size };
    if (ok(p) && p->lex.kind != LEX_ID)
        opjit_ir_p_unexpected(p, "an id");
    next(p);
    return id;
}

void opjit_ir_p_declare(parser *p, symbol id, symbol_kind kind, uint32_t value)
{
    if (!ok(p) || (2 * p->symbol_count >= p->symbol_capacity && !grow_symbols(p)))
        return;
    symbol *entry = find_symbol(p->symbols, p->symbol_capacity, id.text, id.size);
    if (entry->text) {
        opjit_ir_p_fail(p, "%%%.*s is already the id of something else", (int)(id.size > 40 ? 40 : id.size), id.text);
        return;
    }
    *entry = (symbol){ .text = id.text, .size = id.size, .kind = kind, .value = value };
    p->symbol_count++;
}

symbol opjit_ir_p_id(parser *p)
{
    symbol found = { .kind = SYMBOL_NONE };
    if (!ok(p))
        return found;
    if (p->lex.kind != LEX_ID) {
        opjit_ir_p_unexpected(p, "an id");
        return found;
    }
    if (p->symbol_capacity > 0)
        found = *find_symbol(p->symbols, p->symbol_capacity, p->lex.start, p->lex.size);
    if (!found.text)
        opjit_ir_p_fail(p, "%%%.*s is not known", opjit_ir_p_shown(p), p->lex.start);
    next(p);
    return found;
}

uint32_t opjit_ir_p_tensor(parser *p)
{
    const symbol s = opjit_ir_p_id(p);
    if (ok(p) && s.kind != SYMBOL_TENSOR)
        opjit_ir_p_fail(p, "%%%.*s is not a tensor", (int)(s.size > 40 ? 40 : s.size), s.text);
    return ok(p) ? s.value : 0;
}
