/* SPDX-License-Identifier: Apache-2.0 */
/* parse_declaration.c - what precedes a function's items in its text: tensors with layouts and data, views, parameters,
 * aliases. */
#include "ir/text/parser.h"

#include <string.h>

#include <opjit/abi.h>

static uint32_t parse_list(parser *p, uint64_t *out)
{
    uint32_t count = 0;
    opjit_ir_p_expect(p, "[");
    do {
        if (count == OPJIT_MAX_RANK) {
            opjit_ir_p_fail(p, "rank is above %u", OPJIT_MAX_RANK);
            return 0;
        }
        out[count++] = opjit_ir_p_unsigned(p, 63);
    } while (opjit_ir_p_accept(p, ","));
    opjit_ir_p_expect(p, "]");
    return ok(p) ? count : 0;
}

/* Parses type[sizes] and what follows.  Limits sizes and strides so that offsets stay below 2^63. */
void opjit_ir_p_layout(parser *p, ir_tensor *out)
{
    uint64_t elements = 1, span;
    out->type = opjit_ir_p_type(p);
    out->rank = parse_list(p, out->sizes);
    if (ok(p) && !ir_is_element(out->type) && out->type != IR_BOOL && out->type != IR_INDEX)
        opjit_ir_p_fail(p, "%s is not a type of elements", opjit_ir_type_name(out->type));
    for (uint32_t d = 0; d < out->rank && ok(p); d++)
        if (out->sizes[d] == 0 || !checked_mul(elements, out->sizes[d], &elements) || elements > INT64_MAX)
            opjit_ir_p_fail(p, "size %u is 0, or there are too many elements", d);
    opjit_ir_dense_strides(out);
    if (opjit_ir_p_accept(p, "stride") && parse_list(p, out->strides) != out->rank)
        opjit_ir_p_fail(p, "there must be a stride for each of %u sizes", out->rank);
    if (ok(p) && (!opjit_ir_span_bytes(out, &span) || span > INT64_MAX))
        opjit_ir_p_fail(p, "the layout reaches beyond 63 bits");
    if (!ok(p))
        return;
    out->bytes = opjit_ir_p_accept(p, "bytes") ? opjit_ir_p_unsigned(p, 63) : span;
    out->align = opjit_ir_p_accept(p, "align") ? (uint32_t)opjit_ir_p_unsigned(p, 31) : opjit_ir_type_size(out->type);
    if (ok(p) && !is_power_of_two(out->align))
        opjit_ir_p_fail(p, "align is %u, not a power of two", out->align);
}

static uint8_t hex_digit(char c)
{
    return (uint8_t)(c >= '0' && c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
}
static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
}

/* The string at the position with its escapes resolved; NULL where there is none. */
const char *opjit_ir_p_string(parser *p)
{
    if (!ok(p) || p->lex.kind != LEX_STRING)
        return NULL;
    char *text = opjit_rt_arena_string(&p->f->arena, p->lex.start, p->lex.size);
    size_t size = 0;
    if (!text) {
        p->f->failed = true;
        return NULL;
    }
    for (size_t i = 0; i < p->lex.size; i++) {
        char c = text[i];
        if (c == '\\') {
            c = text[++i];
            if (c == 'x' && i + 2 < p->lex.size && is_hex(text[i + 1]) && is_hex(text[i + 2])) {
                c = (char)(hex_digit(text[i + 1]) << 4 | hex_digit(text[i + 2]));
                i += 2;
            }
        }
        if (c == '\0')
            opjit_ir_p_fail(p, "a string holds a NUL");
        text[size++] = c;
    }
    text[size] = '\0';
    next(p);
    return text;
}

static void parse_data(parser *p, ir_tensor *tensor)
{
    if (!ok(p) || p->lex.kind != LEX_STRING || p->lex.size % 2 != 0 || p->lex.size / 2 != tensor->bytes) {
        opjit_ir_p_unexpected(p, "a string of two hex digits a byte");
        return;
    }
    uint8_t *data = ARENA_ARRAY(&p->f->arena, uint8_t, p->lex.size / 2 + 1);
    if (!data) {
        p->f->failed = true;
        return;
    }
    for (size_t i = 0; i < p->lex.size; i += 2) {
        if (!is_hex(p->lex.start[i]) || !is_hex(p->lex.start[i + 1])) {
            opjit_ir_p_unexpected(p, "a string of two hex digits a byte");
            return;
        }
        data[i / 2] = (uint8_t)(hex_digit(p->lex.start[i]) << 4 | hex_digit(p->lex.start[i + 1]));
    }
    tensor->data = data;
    next(p);
}

static void parse_tensor(parser *p, ir_role role)
{
    ir_tensor tensor = { .role = role };
    const symbol id = opjit_ir_p_new_id(p);
    tensor.name = opjit_ir_p_string(p);
    opjit_ir_p_expect(p, ":");
    opjit_ir_p_layout(p, &tensor);
    if (role == IR_IN || role == IR_OUT || role == IR_CONSTANT) {
        tensor.slot = p->slots++;
        if (opjit_ir_p_accept(p, "slot"))
            tensor.slot = (uint32_t)opjit_ir_p_unsigned(p, 31);
    }
    if (role == IR_CONSTANT && opjit_ir_p_accept(p, "="))
        parse_data(p, &tensor);
    if (ok(p))
        opjit_ir_p_declare(p, id, SYMBOL_TENSOR, opjit_ir_tensor(p->f, &tensor));
}

static void parse_view(parser *p)
{
    ir_tensor tensor = { .role = IR_VIEW };
    const symbol id = opjit_ir_p_new_id(p);
    opjit_ir_p_expect(p, ":");
    opjit_ir_p_layout(p, &tensor);
    opjit_ir_p_expect(p, "of");
    tensor.of = opjit_ir_p_tensor(p);
    if (opjit_ir_p_accept(p, "offset"))
        tensor.offset = opjit_ir_p_signed(p);
    if (ok(p))
        opjit_ir_p_declare(p, id, SYMBOL_TENSOR, opjit_ir_tensor(p->f, &tensor));
}

static void parse_param(parser *p)
{
    const symbol id = opjit_ir_p_new_id(p);
    const char *name = opjit_ir_p_string(p);
    int64_t lo = 0, hi = 0;
    opjit_ir_p_expect(p, ":");
    const ir_type type = opjit_ir_p_type(p);
    if (type == IR_INDEX) {
        opjit_ir_p_expect(p, "in");
        opjit_ir_p_expect(p, "[");
        lo = opjit_ir_p_signed(p);
        opjit_ir_p_expect(p, ",");
        hi = opjit_ir_p_signed(p);
        opjit_ir_p_expect(p, "]");
        if (ok(p) && lo > hi)
            opjit_ir_p_fail(p, "the interval is empty");
    }
    if (ok(p))
        opjit_ir_p_declare(p, id, SYMBOL_PARAM, opjit_ir_param_add(p->f, type, lo, hi, name));
}

static void parse_alias(parser *p)
{
    const uint32_t out = opjit_ir_p_tensor(p), in = opjit_ir_p_tensor(p);
    if (ok(p) && (p->f->tensors[out].role != IR_OUT || p->f->tensors[in].role != IR_IN || p->f->tensors[out].alias))
        opjit_ir_p_fail(p, "an alias is an output, once, and then an input");
    if (ok(p))
        p->f->tensors[out].alias = in;
}

static void parse_shared(parser *p)
{
    const uint32_t out = opjit_ir_p_tensor(p), in = opjit_ir_p_tensor(p);
    if (ok(p) && (p->f->tensors[out].role != IR_OUT || p->f->tensors[in].role != IR_IN))
        opjit_ir_p_fail(p, "what is shared is an output, and then an input");
    if (ok(p))
        p->f->tensors[out].shared |= UINT32_C(1) << p->f->tensors[in].slot;
}

bool opjit_ir_p_declaration(parser *p)
{
    static const struct {
        const char *word;
        ir_role role;
    } words[] = {
        { "in", IR_IN }, { "out", IR_OUT }, { "const", IR_CONSTANT }, { "temp", IR_TEMP }, { "kept", IR_KEPT },
        { "scratch", IR_SCRATCH },
    };
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (opjit_ir_p_accept(p, words[i].word)) {
            parse_tensor(p, words[i].role);
            return true;
        }
    if (opjit_ir_p_accept(p, "view"))
        parse_view(p);
    else if (opjit_ir_p_accept(p, "param"))
        parse_param(p);
    else if (opjit_ir_p_accept(p, "alias"))
        parse_alias(p);
    else if (opjit_ir_p_accept(p, "shared"))
        parse_shared(p);
    else
        return false;
    return true;
}
