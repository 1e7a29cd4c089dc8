/* SPDX-License-Identifier: Apache-2.0 */
/* print.c - the canonical text of a function.  Exact: constants are written from their bits, and no float is ever
 * converted.  One statement per line; an expression that would pass column 120 is broken into one operand per line. */
#include "ir/core/internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { LINE_WIDTH = 120, INDENT = 4 };

typedef struct printer {
    const ir_func *f;
    ir_numbers n;
    rt_bytes *out;
    size_t line; /* start of the current line in out */
} printer;

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

static uint32_t number_at(const uint32_t *numbers, uint32_t count, uint32_t i)
{
    return i < count ? numbers[i] : 0;
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

static void new_line(printer *p, uint32_t indent)
{
    opjit_rt_bytes_u8(p->out, '\n');
    p->line = p->out->size;
    opjit_rt_bytes_printf(p->out, "%*s", (int)indent, "");
}

static void print_id(printer *p, uint32_t number)
{
    if (number)
        opjit_rt_bytes_printf(p->out, "%%%u", number - 1);
    else
        opjit_rt_bytes_printf(p->out, "%%?");
}

static void print_tensor_id(printer *p, uint32_t tensor)
{
    print_id(p, number_at(p->n.tensors, p->n.tensor_count, tensor));
}
static void print_node_id(printer *p, ir_ref node)
{
    print_id(p, number_at(p->n.nodes, p->n.node_count, node));
}

/* reserve: columns to keep free for what follows on the line. */
static void print_expr(printer *p, ir_ref expr, uint32_t indent, size_t reserve)
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
        new_line(p, indent + INDENT);
        print_expr(p, ir_operand(p->f, expr, i), indent + INDENT, 1);
        if (i + 1 < node->count)
            opjit_rt_bytes_u8(p->out, ',');
    }
    opjit_rt_bytes_u8(p->out, (uint8_t)close);
}

static void print_string(printer *p, const char *text)
{
    opjit_rt_bytes_u8(p->out, '"');
    for (; *text; text++) {
        const unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            opjit_rt_bytes_printf(p->out, "\\%c", c);
        else if (c < 0x20 || c > 0x7e)
            opjit_rt_bytes_printf(p->out, "\\x%02x", c);
        else
            opjit_rt_bytes_u8(p->out, c);
    }
    opjit_rt_bytes_u8(p->out, '"');
}

static void print_list(printer *p, const char *word, const uint64_t *values, uint32_t count)
{
    opjit_rt_bytes_printf(p->out, "%s[", word);
    for (uint32_t i = 0; i < count; i++)
        opjit_rt_bytes_printf(p->out, "%s%" PRIu64, i ? "," : "", values[i]);
    opjit_rt_bytes_u8(p->out, ']');
}

static void print_layout(printer *p, const ir_tensor *t)
{
    ir_tensor dense = *t;
    uint64_t bytes;
    print_list(p, opjit_ir_type_name(t->type), t->sizes, t->rank);
    opjit_ir_dense_strides(&dense);
    if (memcmp(dense.strides, t->strides, t->rank * sizeof(uint64_t)) != 0)
        print_list(p, " stride ", t->strides, t->rank);
    if (!opjit_ir_span_bytes(t, &bytes) || bytes != t->bytes)
        opjit_rt_bytes_printf(p->out, " bytes %" PRIu64, t->bytes);
    if (t->align != opjit_ir_type_size(t->type))
        opjit_rt_bytes_printf(p->out, " align %u", t->align);
}

/* --- declarations ------------------------------------------------------------------------------------------------- */

static void print_declaration(printer *p, uint32_t tensor, uint32_t *slot)
{
    static const char *const words[] = {
        [IR_IN] = "in", [IR_OUT] = "out", [IR_CONSTANT] = "const", [IR_TEMP] = "temp", [IR_SCRATCH] = "scratch"
    };
    const ir_tensor *t = &p->f->tensors[tensor];
    new_line(p, INDENT);
    opjit_rt_bytes_printf(p->out, "%s ", words[t->role]);
    print_tensor_id(p, tensor);
    if (t->name) {
        opjit_rt_bytes_u8(p->out, ' ');
        print_string(p, t->name);
    }
    opjit_rt_bytes_printf(p->out, ": ");
    print_layout(p, t);
    if (t->role == IR_TEMP || t->role == IR_SCRATCH)
        return;
    if (t->slot != (*slot)++)
        opjit_rt_bytes_printf(p->out, " slot %u", t->slot);
    if (t->role != IR_CONSTANT || !t->data)
        return;
    opjit_rt_bytes_printf(p->out, " = \"");
    for (uint64_t i = 0; i < t->bytes; i++)
        opjit_rt_bytes_printf(p->out, "%02x", ((const uint8_t *)t->data)[i]);
    opjit_rt_bytes_u8(p->out, '"');
}

static void print_param(printer *p, uint32_t param)
{
    const ir_param *a = &p->f->params[param];
    new_line(p, INDENT);
    opjit_rt_bytes_printf(p->out, "param ");
    print_id(p, p->n.params[param]);
    if (a->name) {
        opjit_rt_bytes_u8(p->out, ' ');
        print_string(p, a->name);
    }
    opjit_rt_bytes_printf(p->out, ": %s", opjit_ir_type_name(a->type));
    if (a->type == IR_INDEX)
        opjit_rt_bytes_printf(p->out, " in [%" PRId64 ", %" PRId64 "]", a->lo, a->hi);
}

static void print_declarations(printer *p)
{
    const ir_func *f = p->f;
    uint32_t slot = 0;
    for (uint32_t i = 1; i < f->tensor_count; i++)
        if (f->tensors[i].role == IR_IN || f->tensors[i].role == IR_OUT)
            print_declaration(p, i, &slot);
    for (uint32_t i = 1; i < f->tensor_count; i++)
        if (f->tensors[i].role == IR_CONSTANT || f->tensors[i].role == IR_TEMP || f->tensors[i].role == IR_SCRATCH)
            print_declaration(p, i, &slot);
    for (uint32_t i = 1; i < f->param_count; i++)
        print_param(p, i);
    for (uint32_t i = 1; i < f->tensor_count; i++)
        if (f->tensors[i].role == IR_OUT && f->tensors[i].alias) {
            new_line(p, INDENT);
            opjit_rt_bytes_printf(p->out, "alias ");
            print_tensor_id(p, i);
            opjit_rt_bytes_u8(p->out, ' ');
            print_tensor_id(p, f->tensors[i].alias);
        }
    for (uint32_t i = 1; i < f->tensor_count; i++)
        for (uint32_t k = 1; k < f->tensor_count && f->tensors[i].shared != 0; k++)
            if (f->tensors[k].role == IR_IN && k != f->tensors[i].alias && opjit_ir_shares(f, i, k)) {
                new_line(p, INDENT);
                opjit_rt_bytes_printf(p->out, "shared ");
                print_tensor_id(p, i);
                opjit_rt_bytes_u8(p->out, ' ');
                print_tensor_id(p, k);
            }
}

/* --- statements --------------------------------------------------------------------------------------------------- */

static void print_block(printer *p, ir_ref first, uint32_t indent);

static void print_loop(printer *p, ir_ref loop, uint32_t indent)
{
    const ir_node *node = ir_at(p->f, loop);
    print_node_id(p, node->ref);
    opjit_rt_bytes_printf(p->out, " in ");
    print_expr(p, ir_operand(p->f, loop, 0), indent, 2);
    opjit_rt_bytes_printf(p->out, "..");
    print_expr(p, ir_operand(p->f, loop, 1), indent, 2);
    const char *word = node->op == IR_STAGE ? "grain" : "step";
    if (node->imm != 1)
        opjit_rt_bytes_printf(p->out, " %s %" PRIu64, word, node->imm);
    if (node->vec > 0 && node->op == IR_STAGE)
        opjit_rt_bytes_printf(p->out, node->flags & IR_STAGE_ALONE ? " team %u alone" : " team %u", node->vec);
    else if (node->vec > 1)
        opjit_rt_bytes_printf(p->out, node->flags & IR_FOR_TRANSPOSE ? " transpose %u" : " vec %u", node->vec);
    if (node->unroll > 1)
        opjit_rt_bytes_printf(p->out, " unroll %u", node->unroll);
    if (node->op == IR_FOR && node->flags & IR_FOR_NT)
        opjit_rt_bytes_printf(p->out, " store nt");
    if (node->flags & IR_FOR_TAIL_MASK)
        opjit_rt_bytes_printf(p->out, " tail mask");
    if (node->flags & IR_FOR_TAIL_OVERLAP)
        opjit_rt_bytes_printf(p->out, " tail overlap");
    if (node->flags & (IR_FOR_HEAD | IR_FOR_TAIL))
        opjit_rt_bytes_printf(p->out, " edge %s", node->flags & IR_FOR_HEAD ? "head" : "tail");
    if (node->flags & IR_FOR_CARRY)
        opjit_rt_bytes_printf(p->out, " carry");
    if (node->flags & IR_FOR_DISTRIBUTE)
        opjit_rt_bytes_printf(p->out, " distribute");
    opjit_rt_bytes_printf(p->out, " {");
    print_block(p, node->body, indent + INDENT);
    new_line(p, indent);
    opjit_rt_bytes_u8(p->out, '}');
}

static void print_acc(printer *p, const ir_node *node)
{
    opjit_rt_bytes_printf(p->out, ": %s %s", opjit_ir_type_name((ir_type)node->type),
                          opjit_ir_kind_name((ir_kind)node->kind));
    if (node->imm != 1)
        opjit_rt_bytes_printf(p->out, " lanes %" PRIu64, node->imm);
}

static void print_statement(printer *p, ir_ref s, uint32_t indent)
{
    const ir_node *node = ir_at(p->f, s);
    new_line(p, indent);
    opjit_rt_bytes_printf(p->out, "%s", node->op < IR_OP_COUNT ? opjit_ir_op_infos[node->op].name : "?");
    if (node->op == IR_SYNC)
        return;
    opjit_rt_bytes_u8(p->out, ' ');
    switch ((ir_op)node->op) {
    case IR_FOR: print_loop(p, s, indent); return;
    case IR_LET:
        print_node_id(p, s);
        opjit_rt_bytes_printf(p->out, " = ");
        print_expr(p, ir_operand(p->f, s, 0), indent, 0);
        return;
    case IR_ACC:
        print_node_id(p, s);
        print_acc(p, node);
        return;
    case IR_UPD:
        print_node_id(p, node->ref);
        opjit_rt_bytes_printf(p->out, ", ");
        print_expr(p, ir_operand(p->f, s, 0), indent, 0);
        if (node->count > 1) {
            opjit_rt_bytes_printf(p->out, " at ");
            print_expr(p, ir_operand(p->f, s, 1), indent, 0);
        }
        return;
    case IR_STORE:
        print_tensor_id(p, node->ref);
        opjit_rt_bytes_u8(p->out, '[');
        for (uint32_t i = 1; i < node->count; i++) {
            if (i > 1)
                opjit_rt_bytes_u8(p->out, ',');
            print_expr(p, ir_operand(p->f, s, i), indent, 1);
        }
        opjit_rt_bytes_printf(p->out, "], ");
        print_expr(p, ir_operand(p->f, s, 0), indent, 0);
        return;
    default: /* not a statement of a block: only in a function that does not verify */ return;
    }
}

static void print_block(printer *p, ir_ref first, uint32_t indent)
{
    for (ir_ref s = first; s && !p->out->failed; s = ir_at(p->f, s)->next)
        print_statement(p, s, indent);
}

/* --- items -------------------------------------------------------------------------------------------------------- */

/* Prints the views whose number is below the item's own, because they were numbered for it.  *printed: how many have
 * been printed so far. */
static void print_views_below(printer *p, uint32_t *printed, uint32_t limit)
{
    const ir_func *f = p->f;
    for (; *printed < p->n.view_count && p->n.tensors[p->n.views[*printed]] < limit; ++*printed) {
        const uint32_t view = p->n.views[*printed];
        new_line(p, INDENT);
        opjit_rt_bytes_printf(p->out, "view ");
        print_tensor_id(p, view);
        opjit_rt_bytes_printf(p->out, ": ");
        print_layout(p, &f->tensors[view]);
        opjit_rt_bytes_printf(p->out, " of ");
        print_tensor_id(p, f->tensors[view].of);
        if (f->tensors[view].offset)
            opjit_rt_bytes_printf(p->out, " offset %" PRId64, f->tensors[view].offset);
    }
}

static void print_box(printer *p, ir_ref item, uint32_t rank)
{
    opjit_rt_bytes_u8(p->out, '[');
    for (uint32_t d = 0; d < rank && 1 + rank + 3 * d + 2 < ir_at(p->f, item)->count; d++)
        for (uint32_t i = 0; i < 3; i++) {
            opjit_rt_bytes_printf(p->out, "%s", i ? ":" : d ? ", " : "");
            print_expr(p, ir_operand(p->f, item, 1 + rank + 3 * d + i), INDENT, 1);
        }
    opjit_rt_bytes_u8(p->out, ']');
}

static void print_definition(printer *p, ir_ref item)
{
    const ir_node *node = ir_at(p->f, item);
    const ir_tensor *t = node->ref < p->f->tensor_count ? &p->f->tensors[node->ref] : &p->f->tensors[0];
    new_line(p, INDENT);
    opjit_rt_bytes_printf(p->out, "%s ", opjit_ir_op_infos[node->op].name);
    print_tensor_id(p, node->ref);
    if (node->op == IR_DEF) {
        opjit_rt_bytes_printf(p->out, ": ");
        print_layout(p, t);
    } else if (node->imm) {
        print_box(p, item, t->rank);
    }
    opjit_rt_bytes_printf(p->out, " (");
    for (uint32_t d = 0; d < t->rank && 1 + d < node->count; d++) {
        opjit_rt_bytes_printf(p->out, "%s", d ? "," : "");
        print_node_id(p, ir_operand(p->f, item, 1 + d));
    }
    opjit_rt_bytes_printf(p->out, ") = ");
    if (opjit_ir_reduced(p->f, item)) {
        opjit_rt_bytes_printf(p->out, "reduce %s ", opjit_ir_kind_name((ir_kind)node->kind));
        print_node_id(p, opjit_ir_reduced(p->f, item));
        opjit_rt_bytes_printf(p->out, " in 0..");
        print_expr(p, ir_operand(p->f, item, node->count - 1), INDENT, 0);
        if (node->imm != 1)
            opjit_rt_bytes_printf(p->out, " lanes %" PRIu64, node->imm);
        opjit_rt_bytes_printf(p->out, ": ");
    }
    print_expr(p, ir_operand(p->f, item, 0), INDENT, 0);
}

/* The first number that belongs to the item itself. */
static uint32_t first_number(const printer *p, ir_ref item)
{
    const ir_node *node = ir_at(p->f, item);
    if (node->op == IR_DEF)
        return number_at(p->n.tensors, p->n.tensor_count, node->ref);
    const ir_ref var = node->op == IR_YIELD ? (node->count > 1 ? ir_operand(p->f, item, 1) : 0) : node->ref;
    return number_at(p->n.nodes, p->n.node_count, var);
}

void opjit_ir_print(const ir_func *f, rt_bytes *out)
{
    printer p = { .f = f, .out = out, .line = out->size };
    if (!opjit_ir_numbers_init(f, &p.n)) {
        out->failed = true;
        return;
    }
    opjit_rt_bytes_printf(out, "kernel @%s", f->name);
    if (f->target) {
        opjit_rt_bytes_printf(out, " target ");
        print_string(&p, f->target);
    }
    if (f->phase != IR_LOWERED)
        opjit_rt_bytes_printf(out, " after %s", opjit_ir_phase_name(f->phase));
    opjit_rt_bytes_printf(out, " {");
    print_declarations(&p);
    uint32_t stages = 0, printed = 0;
    for (ir_ref r = f->body; r && !out->failed; r = ir_at(f, r)->next) {
        print_views_below(&p, &printed, first_number(&p, r));
        if (ir_at(f, r)->op == IR_STAGE) {
            new_line(&p, INDENT);
            opjit_rt_bytes_printf(out, "stage @%u for ", stages++);
            print_loop(&p, r, INDENT);
        } else if (ir_at(f, r)->op == IR_DEF || ir_at(f, r)->op == IR_YIELD) {
            print_definition(&p, r);
        } else {
            print_statement(&p, r, INDENT);
        }
    }
    opjit_rt_bytes_printf(out, "\n}\n");
    opjit_ir_numbers_free(&p.n);
}
