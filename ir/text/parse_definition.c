/* SPDX-License-Identifier: Apache-2.0 */
/* parse_definition.c - the items of value form: definitions, reductions and scatters among them, and outputs. */
#include "ir/eval/numerics.h"
#include "ir/text/parser.h"

#include <opjit/abi.h>

ir_kind opjit_ir_p_kind(parser *p)
{
    ir_kind kind = IR_KIND_NONE;
    for (uint32_t k = IR_KIND_NONE + 1; k < IR_KIND_COUNT; k++)
        if (at(p, opjit_ir_kind_name((ir_kind)k)))
            kind = (ir_kind)k;
    if (ok(p) && kind == IR_KIND_NONE)
        opjit_ir_p_unexpected(p, "a kind of accumulator");
    next(p);
    return kind;
}

void opjit_ir_p_order(parser *p, ir_node *out)
{
    out->imm = opjit_ir_p_accept(p, "lanes") ? opjit_ir_p_unsigned(p, 16) : 1;
    out->block = opjit_ir_p_accept(p, "block") ? (uint16_t)opjit_ir_p_unsigned(p, 16) : IR_REDUCE_BLOCK;
}

/* Per dimension an offset, a size and a step. */
static uint32_t parse_box(parser *p, ir_ref *out, uint32_t rank)
{
    for (uint32_t d = 0; d < rank && ok(p); d++) {
        if (d > 0)
            opjit_ir_p_expect(p, ",");
        for (uint32_t i = 0; i < 3; i++) {
            if (i > 0)
                opjit_ir_p_expect(p, ":");
            *out++ = opjit_ir_p_expr(p);
        }
    }
    opjit_ir_p_expect(p, "]");
    return 3 * rank;
}

/* The item's variable number `which`. */
static ir_ref parse_variable(parser *p, ir_ref item, uint32_t which)
{
    const symbol id = opjit_ir_p_new_id(p);
    const ir_ref var = ok(p) ? opjit_ir_var_new(p->f, item, which) : 0;
    opjit_ir_p_declare(p, id, SYMBOL_NODE, var);
    return var;
}

/* Parses one more variable and its number of values, "%v in 0..N"; returns the number. */
static ir_ref parse_range(parser *p, ir_ref item, uint32_t rank, ir_ref *out_var)
{
    *out_var = parse_variable(p, item, rank);
    opjit_ir_p_expect(p, "in");
    if (opjit_ir_p_unsigned(p, 64) != 0)
        opjit_ir_p_unexpected(p, "0");
    opjit_ir_p_expect(p, "..");
    return opjit_ir_p_expr(p);
}

/* Parses what follows "reduce": the kind and the values. */
static void parse_reduction(parser *p, ir_ref item, uint32_t rank)
{
    const ir_kind kind = opjit_ir_p_kind(p);
    ir_ref ref;
    const ir_ref size = parse_range(p, item, rank, &ref);
    opjit_ir_p_order(p, &p->f->nodes[item]);
    opjit_ir_p_expect(p, ":");
    if (!ok(p))
        return;
    ir_node *node = &p->f->nodes[item];
    node->kind = (uint8_t)kind;
    node->type = (uint8_t)p->f->tensors[node->ref].type;
    p->f->operands[node->first + 1 + rank] = ref;
    p->f->operands[node->first + 2 + rank] = size;
}

/* Parses what precedes a scatter's value: the initial value, kind, updates and their places. */
static void parse_updates(parser *p, ir_ref item, uint32_t rank)
{
    ir_ref parts[4 + OPJIT_MAX_RANK] = { 0 };
    parts[1] = opjit_ir_p_expr(p);
    opjit_ir_p_expect(p, "then");
    const ir_kind kind = opjit_ir_p_accept(p, "put") ? IR_KIND_NONE : opjit_ir_p_kind(p);
    const ir_ref size = parse_range(p, item, rank, &parts[0]);
    opjit_ir_p_expect(p, "at");
    opjit_ir_p_expect(p, "[");
    for (uint32_t d = 0; d < rank && ok(p); d++) {
        if (d > 0)
            opjit_ir_p_expect(p, ",");
        parts[2 + d] = opjit_ir_p_expr(p);
    }
    parts[2 + rank] = size;
    opjit_ir_p_expect(p, "]");
    opjit_ir_p_expect(p, ":");
    if (!ok(p))
        return;
    p->f->nodes[item].kind = (uint8_t)kind;
    for (uint32_t i = 0; i < 3 + rank; i++)
        p->f->operands[p->f->nodes[item].first + 1 + rank + i] = parts[i];
}

/* The state that the definition is in the next step. */
static void parse_feeds(parser *p, uint32_t tensor)
{
    const uint32_t state = opjit_ir_p_tensor(p);
    if (ok(p) && (p->f->tensors[state].role != IR_VALUE || p->f->tensors[state].fed_by != 0))
        opjit_ir_p_fail(p, "what it feeds is not a def, or is fed already");
    if (!ok(p))
        return;
    p->f->tensors[tensor].feeds = state;
    p->f->tensors[state].fed_by = tensor;
}

ir_ref opjit_ir_p_definition(parser *p, ir_op op)
{
    ir_tensor value = { .role = IR_VALUE };
    ir_ref operands[1 + 4 * OPJIT_MAX_RANK] = { 0 };
    uint32_t box = 0, tensor = 0;
    if (op != IR_YIELD) {
        const symbol id = opjit_ir_p_new_id(p);
        opjit_ir_p_expect(p, ":");
        opjit_ir_p_layout(p, &value);
        tensor = ok(p) ? opjit_ir_tensor(p->f, &value) : 0;
        opjit_ir_p_declare(p, id, SYMBOL_TENSOR, tensor);
    } else {
        tensor = opjit_ir_p_tensor(p);
    }
    const uint32_t rank = ok(p) ? p->f->tensors[tensor].rank : 0;
    if (op == IR_YIELD && opjit_ir_p_accept(p, "["))
        box = parse_box(p, operands + 1 + rank, rank);
    if (!ok(p))
        return 0;
    const ir_node node = { .op = (uint8_t)op, .ref = tensor, .imm = box != 0 };
    const uint32_t more = op == IR_SCATTER ? 3 + rank : 2; /* 2 if it reduces */
    const ir_ref item = opjit_ir_node_new(p->f, &node, 1 + rank + box + more, operands);
    if (ok(p) && op != IR_SCATTER)
        p->f->nodes[item].count -= more;
    opjit_ir_p_expect(p, "(");
    for (uint32_t d = 0; d < rank && ok(p); d++) {
        if (d > 0)
            opjit_ir_p_expect(p, ",");
        const ir_ref var = parse_variable(p, item, d);
        if (ok(p))
            p->f->operands[p->f->nodes[item].first + 1 + d] = var;
    }
    opjit_ir_p_expect(p, ")");
    if (op == IR_DEF && opjit_ir_p_accept(p, "feeds"))
        parse_feeds(p, tensor);
    opjit_ir_p_expect(p, "=");
    if (op == IR_DEF && opjit_ir_p_accept(p, "reduce")) {
        p->f->nodes[item].count += 2;
        parse_reduction(p, item, rank);
    }
    if (op == IR_SCATTER)
        parse_updates(p, item, rank);
    const ir_ref expr = opjit_ir_p_expr(p);
    if (ok(p))
        opjit_ir_set_value(p->f, item, expr);
    return item;
}
