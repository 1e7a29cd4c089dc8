/* SPDX-License-Identifier: Apache-2.0 */
/* print.c - the canonical text of a function.  Exact: constants are written from their bits, and no float is ever
 * converted.  One statement per line; an expression that would pass column 120 is broken into one operand per line. */
#include "ir/eval/numerics.h"
#include "ir/text/printer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

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

/* Element data is most of a text: two digits at a time, without a format. */
static void print_data(printer *p, const uint8_t *data, uint64_t bytes)
{
    static const char digits[] = "0123456789abcdef";
    opjit_rt_bytes_printf(p->out, " = \"");
    for (uint64_t i = 0; i < bytes; i++)
        opjit_rt_bytes_append(p->out, (const char[]){ digits[data[i] >> 4], digits[data[i] & 15] }, 2);
    opjit_rt_bytes_u8(p->out, '"');
}

/* --- declarations ------------------------------------------------------------------------------------------------- */

static void print_declaration(printer *p, uint32_t tensor, uint32_t *slot)
{
    static const char *const words[] = {
        [IR_IN] = "in", [IR_OUT] = "out", [IR_CONSTANT] = "const", [IR_TEMP] = "temp", [IR_KEPT] = "kept",
        [IR_SCRATCH] = "scratch"
    };
    const ir_tensor *t = &p->f->tensors[tensor];
    opjit_ir_put_line(p, INDENT);
    opjit_rt_bytes_printf(p->out, "%s ", words[t->role]);
    opjit_ir_put_tensor_id(p, tensor);
    if (t->name) {
        opjit_rt_bytes_u8(p->out, ' ');
        print_string(p, t->name);
    }
    opjit_rt_bytes_printf(p->out, ": ");
    print_layout(p, t);
    if (ir_is_memory(t->role))
        return;
    if (t->slot != (*slot)++)
        opjit_rt_bytes_printf(p->out, " slot %u", t->slot);
    if (t->role == IR_CONSTANT && t->data)
        print_data(p, t->data, t->bytes);
}

static void print_param(printer *p, uint32_t param)
{
    const ir_param *a = &p->f->params[param];
    opjit_ir_put_line(p, INDENT);
    opjit_rt_bytes_printf(p->out, "param ");
    opjit_ir_put_id(p, p->n.params[param]);
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
        if (f->tensors[i].role == IR_CONSTANT || ir_is_memory(f->tensors[i].role))
            print_declaration(p, i, &slot);
    for (uint32_t i = 1; i < f->param_count; i++)
        print_param(p, i);
    for (uint32_t i = 1; i < f->tensor_count; i++)
        if (f->tensors[i].role == IR_OUT && f->tensors[i].alias) {
            opjit_ir_put_line(p, INDENT);
            opjit_rt_bytes_printf(p->out, "alias ");
            opjit_ir_put_tensor_id(p, i);
            opjit_rt_bytes_u8(p->out, ' ');
            opjit_ir_put_tensor_id(p, f->tensors[i].alias);
        }
    for (uint32_t i = 1; i < f->tensor_count; i++)
        for (uint32_t k = 1; k < f->tensor_count && f->tensors[i].shared != 0; k++)
            if (f->tensors[k].role == IR_IN && k != f->tensors[i].alias && opjit_ir_shares(f, i, k)) {
                opjit_ir_put_line(p, INDENT);
                opjit_rt_bytes_printf(p->out, "shared ");
                opjit_ir_put_tensor_id(p, i);
                opjit_rt_bytes_u8(p->out, ' ');
                opjit_ir_put_tensor_id(p, k);
            }
}

/* --- statements --------------------------------------------------------------------------------------------------- */

static void print_block(printer *p, ir_ref first, uint32_t indent);

static void print_loop(printer *p, ir_ref loop, uint32_t indent)
{
    const ir_node *node = ir_at(p->f, loop);
    opjit_ir_put_node_id(p, node->ref);
    opjit_rt_bytes_printf(p->out, " in ");
    opjit_ir_put_expr(p, ir_operand(p->f, loop, 0), indent, 2);
    opjit_rt_bytes_printf(p->out, "..");
    opjit_ir_put_expr(p, ir_operand(p->f, loop, 1), indent, 2);
    const char *word = node->op == IR_STAGE ? "grain" : "step";
    if (node->imm != 1)
        opjit_rt_bytes_printf(p->out, " %s %" PRIu64, word, node->imm);
    if (node->op == IR_FOR && node->flags & IR_FOR_SERIAL)
        opjit_rt_bytes_printf(p->out, " serial");
    if (node->vec > 0 && node->op == IR_STAGE)
        opjit_rt_bytes_printf(p->out, node->flags & IR_STAGE_ALONE ? " team %u alone" : " team %u", node->vec);
    else if (node->vec > 1)
        opjit_rt_bytes_printf(p->out, node->flags & IR_FOR_TRANSPOSE ? " transpose %u" : " vec %u", node->vec);
    if (node->flags & IR_STAGE_ONCE)
        opjit_rt_bytes_printf(p->out, " once");
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
    if (node->hold)
        opjit_rt_bytes_printf(p->out, " hold");
    opjit_rt_bytes_printf(p->out, " {");
    print_block(p, node->body, indent + INDENT);
    opjit_ir_put_line(p, indent);
    opjit_rt_bytes_u8(p->out, '}');
}

/* Of an accumulator, or of a definition that reduces. */
static void print_order(printer *p, const ir_node *node)
{
    if (node->imm != 1)
        opjit_rt_bytes_printf(p->out, " lanes %" PRIu64, node->imm);
    if (node->block != IR_REDUCE_BLOCK)
        opjit_rt_bytes_printf(p->out, " block %u", node->block);
}

static void print_acc(printer *p, const ir_node *node)
{
    opjit_rt_bytes_printf(p->out, ": %s %s", opjit_ir_type_name((ir_type)node->type),
                          opjit_ir_kind_name((ir_kind)node->kind));
    print_order(p, node);
}

static void print_statement(printer *p, ir_ref s, uint32_t indent)
{
    const ir_node *node = ir_at(p->f, s);
    opjit_ir_put_line(p, indent);
    opjit_rt_bytes_printf(p->out, "%s", node->op < IR_OP_COUNT ? opjit_ir_op_infos[node->op].name : "?");
    if (node->op == IR_SYNC)
        return;
    opjit_rt_bytes_u8(p->out, ' ');
    switch ((ir_op)node->op) {
    case IR_FOR: print_loop(p, s, indent); return;
    case IR_LET:
        opjit_ir_put_node_id(p, s);
        opjit_rt_bytes_printf(p->out, " = ");
        opjit_ir_put_expr(p, ir_operand(p->f, s, 0), indent, 0);
        return;
    case IR_ACC:
        opjit_ir_put_node_id(p, s);
        print_acc(p, node);
        return;
    case IR_UPD:
        opjit_ir_put_node_id(p, node->ref);
        opjit_rt_bytes_printf(p->out, ", ");
        opjit_ir_put_expr(p, ir_operand(p->f, s, 0), indent, 0);
        if (node->count > 1) {
            opjit_rt_bytes_printf(p->out, " at ");
            opjit_ir_put_expr(p, ir_operand(p->f, s, 1), indent, 0);
        }
        return;
    case IR_STORE:
        opjit_ir_put_tensor_id(p, node->ref);
        opjit_rt_bytes_u8(p->out, '[');
        for (uint32_t i = 1; i < node->count; i++) {
            if (i > 1)
                opjit_rt_bytes_u8(p->out, ',');
            opjit_ir_put_expr(p, ir_operand(p->f, s, i), indent, 1);
        }
        opjit_rt_bytes_printf(p->out, "], ");
        opjit_ir_put_expr(p, ir_operand(p->f, s, 0), indent, 0);
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
        opjit_ir_put_line(p, INDENT);
        opjit_rt_bytes_printf(p->out, "view ");
        opjit_ir_put_tensor_id(p, view);
        opjit_rt_bytes_printf(p->out, ": ");
        print_layout(p, &f->tensors[view]);
        opjit_rt_bytes_printf(p->out, " of ");
        opjit_ir_put_tensor_id(p, f->tensors[view].of);
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
            opjit_ir_put_expr(p, ir_operand(p->f, item, 1 + rank + 3 * d + i), INDENT, 1);
        }
    opjit_rt_bytes_u8(p->out, ']');
}

/* The initial value, which updates there are, and their places. */
static void print_updates(printer *p, ir_ref item, uint32_t rank)
{
    const ir_node *node = ir_at(p->f, item);
    opjit_ir_put_expr(p, opjit_ir_initial(p->f, item), INDENT, 0);
    opjit_rt_bytes_printf(p->out, " then %s ", node->kind ? opjit_ir_kind_name((ir_kind)node->kind) : "put");
    opjit_ir_put_node_id(p, opjit_ir_update(p->f, item));
    opjit_rt_bytes_printf(p->out, " in 0..");
    opjit_ir_put_expr(p, ir_operand(p->f, item, node->count - 1), INDENT, 0);
    opjit_rt_bytes_printf(p->out, " at [");
    for (uint32_t d = 0; d < rank; d++) {
        opjit_rt_bytes_printf(p->out, "%s", d ? ", " : "");
        opjit_ir_put_expr(p, opjit_ir_place(p->f, item, d), INDENT, 1);
    }
    opjit_rt_bytes_printf(p->out, "]: ");
}

static void print_definition(printer *p, ir_ref item)
{
    const ir_node *node = ir_at(p->f, item);
    const ir_tensor *t = node->ref < p->f->tensor_count ? &p->f->tensors[node->ref] : &p->f->tensors[0];
    opjit_ir_put_line(p, INDENT);
    opjit_rt_bytes_printf(p->out, "%s ", opjit_ir_op_infos[node->op].name);
    opjit_ir_put_tensor_id(p, node->ref);
    if (ir_is_definition(p->f, item)) {
        opjit_rt_bytes_printf(p->out, ": ");
        print_layout(p, t);
    } else if (node->imm) {
        print_box(p, item, t->rank);
    }
    opjit_rt_bytes_printf(p->out, " (");
    for (uint32_t d = 0; d < t->rank && 1 + d < node->count; d++) {
        opjit_rt_bytes_printf(p->out, "%s", d ? "," : "");
        opjit_ir_put_node_id(p, ir_operand(p->f, item, 1 + d));
    }
    opjit_rt_bytes_printf(p->out, ")");
    if (node->op == IR_DEF && t->feeds) {
        opjit_rt_bytes_printf(p->out, " feeds ");
        opjit_ir_put_tensor_id(p, t->feeds);
    }
    opjit_rt_bytes_printf(p->out, " = ");
    if (opjit_ir_reduced(p->f, item)) {
        opjit_rt_bytes_printf(p->out, "reduce %s ", opjit_ir_kind_name((ir_kind)node->kind));
        opjit_ir_put_node_id(p, opjit_ir_reduced(p->f, item));
        opjit_rt_bytes_printf(p->out, " in 0..");
        opjit_ir_put_expr(p, ir_operand(p->f, item, node->count - 1), INDENT, 0);
        print_order(p, node);
        opjit_rt_bytes_printf(p->out, ": ");
    }
    if (node->op == IR_SCATTER && node->count == 4 + 2 * t->rank)
        print_updates(p, item, t->rank);
    opjit_ir_put_expr(p, ir_operand(p->f, item, 0), INDENT, 0);
}

/* The first number that belongs to the item itself. */
static uint32_t first_number(const printer *p, ir_ref item)
{
    const ir_node *node = ir_at(p->f, item);
    if (ir_is_definition(p->f, item))
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
            opjit_ir_put_line(&p, INDENT);
            opjit_rt_bytes_printf(out, "stage @%u for ", stages++);
            print_loop(&p, r, INDENT);
        } else if (ir_is_definition(f, r) || ir_at(f, r)->op == IR_YIELD) {
            print_definition(&p, r);
        } else {
            print_statement(&p, r, INDENT);
        }
    }
    opjit_rt_bytes_printf(out, "\n}\n");
    opjit_ir_numbers_free(&p.n);
}
