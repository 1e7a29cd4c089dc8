/* SPDX-License-Identifier: Apache-2.0 */
/* parse_item.c - value form: definitions, what they reduce and feed, and boxes of outputs. */
#include "ir/text/parser.h"

#include <opjit/abi.h>

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

/* Parses what follows "reduce": the kind, one more variable and its number of values. */
static void parse_reduction(parser *p, ir_ref item, uint32_t rank)
{
    const ir_kind kind = opjit_ir_p_kind(p);
    const symbol id = opjit_ir_p_new_id(p);
    const ir_node var = { .op = IR_VAR, .type = IR_INDEX, .ref = item, .imm = rank };
    const ir_ref ref = opjit_ir_node_new(p->f, &var, 0, NULL);
    opjit_ir_p_declare(p, id, SYMBOL_NODE, ref);
    opjit_ir_p_expect(p, "in");
    if (opjit_ir_p_unsigned(p, 64) != 0)
        opjit_ir_p_unexpected(p, "0");
    opjit_ir_p_expect(p, "..");
    const ir_ref size = opjit_ir_p_expr(p);
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
    if (op == IR_DEF) {
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
    const ir_ref item = opjit_ir_node_new(p->f, &node, 1 + rank + box + 2, operands); /* 2 more if it reduces */
    if (ok(p))
        p->f->nodes[item].count -= 2;
    opjit_ir_p_expect(p, "(");
    for (uint32_t d = 0; d < rank && ok(p); d++) {
        const ir_node var = { .op = IR_VAR, .type = IR_INDEX, .ref = item, .imm = d };
        if (d > 0)
            opjit_ir_p_expect(p, ",");
        const symbol id = opjit_ir_p_new_id(p);
        const ir_ref ref = opjit_ir_node_new(p->f, &var, 0, NULL);
        opjit_ir_p_declare(p, id, SYMBOL_NODE, ref);
        if (ok(p))
            p->f->operands[p->f->nodes[item].first + 1 + d] = ref;
    }
    opjit_ir_p_expect(p, ")");
    if (op == IR_DEF && opjit_ir_p_accept(p, "feeds"))
        parse_feeds(p, tensor);
    opjit_ir_p_expect(p, "=");
    if (op == IR_DEF && opjit_ir_p_accept(p, "reduce")) {
        p->f->nodes[item].count += 2;
        parse_reduction(p, item, rank);
    }
    const ir_ref expr = opjit_ir_p_expr(p);
    if (ok(p))
        opjit_ir_set_value(p->f, item, expr);
    return item;
}
