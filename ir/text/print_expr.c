/* SPDX-License-Identifier: Apache-2.0 */
/* print_expr.c - text of expressions: on one line if it fits, else one operand per line. */
#include "ir/text/printer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* --- an expression on one line, if it fits ----------------------------------------------------------------------- */

typedef struct flat {
    const printer *p;
    size_t size, room;
    bool full;
    char text[LINE_WIDTH + 1];
} flat;

static void put(flat *t, const char *format, ...) PRINTF_LIKE(2, 3);

static void put(flat *t, const char *format, ...)
{
    va_list args;
    if (t->full)
        return;
    va_start(args, format);
    const int n = vsnprintf(t->text + t->size, t->room - t->size + 1, format, args);
    va_end(args);
    if (n < 0 || (size_t)n > t->room - t->size)
        t->full = true;
    else
        t->size += (size_t)n;
}

static void put_id(flat *t, uint32_t number)
{
    if (number)
        put(t, "%%%u", number - 1);
    else
        put(t, "%%?");
}

/* A hex float from its bits: sign, 1.fraction without trailing zeros, exponent; subnormals are normalised. */
static void put_hex_float(flat *t, ir_type type, uint64_t bits)
{
    const uint32_t width = 8 * opjit_ir_type_size(type), fraction_bits = type == IR_F16 ? 10 : type == IR_F32 ? 23 : 52;
    const uint32_t exponent_mask = (1u << (width - 1 - fraction_bits)) - 1;
    const int bias = (int)(exponent_mask >> 1);
    uint64_t fraction = bits & (((uint64_t)1 << fraction_bits) - 1);
    const uint32_t exponent = (uint32_t)(bits >> fraction_bits) & exponent_mask;
    int power = (int)exponent - bias;
    put(t, "%s", bits >> (width - 1) ? "-" : "");
    if (exponent == 0 && fraction == 0) {
        put(t, "0x0p+0");
        return;
    }
    if (exponent == 0) {
        power = 1 - bias;
        while (!(fraction >> fraction_bits)) {
            fraction <<= 1;
            power--;
        }
        fraction &= ((uint64_t)1 << fraction_bits) - 1;
    }
    char digits[17];
    int count = snprintf(digits, sizeof(digits), "%016" PRIx64, fraction << (64 - fraction_bits));
    while (count > 0 && digits[count - 1] == '0')
        digits[--count] = '\0';
    put(t, "0x1%s%sp%+d", count > 0 ? "." : "", digits, power);
}

static bool is_finite(ir_type type, uint64_t bits)
{
    const uint64_t mask = type == IR_F16 ? 0x7c00 : type == IR_F32 ? 0x7f800000 : 0x7ff0000000000000;
    return (bits & mask) != mask;
}

static void put_const(flat *t, const ir_node *node)
{
    const ir_type type = (ir_type)node->type;
    const uint32_t size = opjit_ir_type_size(type);
    if (type == IR_BOOL) {
        put(t, node->imm ? "true" : "false");
        return;
    }
    if (type == IR_INDEX) {
        put(t, "%" PRId64, (int64_t)node->imm);
        return;
    }
    put(t, "%s ", opjit_ir_type_name(type));
    if (ir_is_float(type) && is_finite(type, node->imm))
        put_hex_float(t, type, node->imm);
    else if (ir_is_float(type))
        put(t, "bits 0x%0*" PRIx64, (int)(2 * size), node->imm);
    else if (ir_is_signed(type))
        put(t, "%" PRId64, (int64_t)(node->imm << (64 - 8 * size)) >> (64 - 8 * size));
    else
        put(t, "%" PRIu64, node->imm);
}

/* Writes what precedes the operands, the opening bracket included.  Returns the closing bracket; 0 for a leaf. */
static char put_head(flat *t, const ir_node *node)
{
    const printer *p = t->p;
    switch ((ir_op)node->op) {
    case IR_PARAM: put_id(t, number_at(p->n.params, p->n.param_count, node->ref)); return 0;
    case IR_GET:
        if (node->ref < p->f->node_count && ir_at(p->f, node->ref)->op == IR_ACC)
            put(t, "get ");
        put_id(t, number_at(p->n.nodes, p->n.node_count, node->ref));
        return 0;
    case IR_CONST: put_const(t, node); return 0;
    case IR_LOAD:
        put(t, "load ");
        put_id(t, number_at(p->n.tensors, p->n.tensor_count, node->ref));
        put(t, "[");
        return ']';
    case IR_HEAD:
        put(t, "head ");
        put_id(t, number_at(p->n.tensors, p->n.tensor_count, node->ref));
        put(t, "[");
        return ']';
    case IR_CAST:
    case IR_BITS:
    case IR_NEAREST:
    case IR_HALVES:
    case IR_ELEM:
        put(t, "%s %s (", opjit_ir_op_infos[node->op].name, opjit_ir_type_name((ir_type)node->type));
        return ')';
    default: put(t, "%s(", node->op < IR_OP_COUNT ? opjit_ir_op_infos[node->op].name : "?"); return ')';
    }
}

static void put_expr(flat *t, ir_ref expr)
{
    const ir_func *f = t->p->f;
    if (t->full)
        return;
    if (expr == 0 || expr >= f->node_count) {
        put(t, "%%?");
        return;
    }
    const ir_node *node = ir_at(f, expr);
    if (node->op == IR_VAR) {
        put_id(t, number_at(t->p->n.nodes, t->p->n.node_count, expr));
        return;
    }
    const char close = put_head(t, node);
    for (uint32_t i = 0; i < node->count; i++) {
        if (i > 0)
            put(t, node->op == IR_LOAD ? "," : ", ");
        put_expr(t, ir_operand(f, expr, i));
    }
    if (close)
        put(t, "%c", close);
}

/* --- lines -------------------------------------------------------------------------------------------------------- */

void opjit_ir_put_line(printer *p, uint32_t indent)
{
    opjit_rt_bytes_u8(p->out, '\n');
    p->line = p->out->size;
    opjit_rt_bytes_printf(p->out, "%*s", (int)indent, "");
}

void opjit_ir_put_id(printer *p, uint32_t number)
{
    if (number)
        opjit_rt_bytes_printf(p->out, "%%%u", number - 1);
    else
        opjit_rt_bytes_printf(p->out, "%%?");
}

void opjit_ir_put_tensor_id(printer *p, uint32_t tensor)
{
    opjit_ir_put_id(p, number_at(p->n.tensors, p->n.tensor_count, tensor));
}
void opjit_ir_put_node_id(printer *p, ir_ref node)
{
    opjit_ir_put_id(p, number_at(p->n.nodes, p->n.node_count, node));
}

void opjit_ir_put_expr(printer *p, ir_ref expr, uint32_t indent, size_t reserve)
{
    const size_t used = p->out->size - p->line + reserve;
    flat t = { .p = p, .room = used < LINE_WIDTH ? LINE_WIDTH - used : 0 };
    put_expr(&t, expr);
    const ir_node *node = expr < p->f->node_count ? ir_at(p->f, expr) : NULL;
    if (!t.full || p->out->failed || !node || node->count == 0) {
        if (t.full) { /* a leaf that is too long passes the margin */
            t = (flat){ .p = p, .room = LINE_WIDTH };
            put_expr(&t, expr);
        }
        opjit_rt_bytes_append(p->out, t.text, t.size);
        return;
    }
    flat head = { .p = p, .room = LINE_WIDTH };
    const char close = put_head(&head, node);
    opjit_rt_bytes_append(p->out, head.text, head.size);
    for (uint32_t i = 0; i < node->count; i++) {
        opjit_ir_put_line(p, indent + INDENT);
        opjit_ir_put_expr(p, ir_operand(p->f, expr, i), indent + INDENT, 1);
        if (i + 1 < node->count)
            opjit_rt_bytes_u8(p->out, ',');
    }
    opjit_rt_bytes_u8(p->out, (uint8_t)close);
}
