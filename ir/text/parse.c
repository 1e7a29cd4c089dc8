/* SPDX-License-Identifier: Apache-2.0 */
/* parse.c - text to functions: expressions, statements, items; declarations are in parse_declaration.c.  Any bytes are
 * safe: nesting, counts and arithmetic are checked, ids are unique.  Checks syntax and what building needs, and no
 * more, so that text which breaks a rule of the verifier can be read and given to it. */
#include "ir/eval/numerics.h"
#include "ir/text/parser.h"

#include <string.h>

#include <opjit/abi.h>

/* --- expressions -------------------------------------------------------------------------------------------------- */

static ir_ref parse_expr(parser *p);

/* Operands are collected on a stack of their own: the count of a node is not known before its end, and an op has
 * few. */
enum { OPERANDS_MAX = 16 };
typedef struct operand_list {
    ir_ref list[OPERANDS_MAX];
    uint32_t count;
} operand_list;

static void parse_operands(parser *p, operand_list *out, const char *close)
{
    out->count = 0;
    if (opjit_ir_p_accept(p, close))
        return;
    do {
        if (out->count == OPERANDS_MAX) {
            opjit_ir_p_fail(p, "more than %d operands", OPERANDS_MAX);
            return;
        }
        out->list[out->count++] = parse_expr(p);
    } while (opjit_ir_p_accept(p, ","));
    opjit_ir_p_expect(p, close);
}

static ir_ref parse_element(parser *p, ir_type type)
{
    const uint32_t width = 8 * opjit_ir_type_size(type);
    uint64_t bits = 0;
    int64_t number = 0;
    bool valid;
    if (opjit_ir_p_accept(p, "bits")) {
        valid = opjit_ir_lex_unsigned(&p->lex, width, &bits);
    } else if (ir_is_float(type) && (at(p, "inf") || at(p, "-inf"))) {
        bits = opjit_ir_identity(type, at(p, "inf") ? IR_KMIN : IR_KMAX);
        valid = true;
    } else if (ir_is_float(type)) {
        valid = opjit_ir_lex_float(&p->lex, type, &bits);
    } else if (ir_is_signed(type)) {
        valid = opjit_ir_lex_signed(&p->lex, width, &number);
        bits = (uint64_t)number;
    } else {
        valid = opjit_ir_lex_unsigned(&p->lex, width, &bits);
    }
    if (!valid)
        opjit_ir_p_fail(p, "\"%.*s\" is not an exact value of %s", opjit_ir_p_shown(p), p->lex.start,
                        opjit_ir_type_name(type));
    next(p);
    return ok(p) ? opjit_ir_const(p->f, type, bits) : 0;
}

static ir_ref parse_id_expr(parser *p)
{
    const symbol s = opjit_ir_p_id(p);
    if (!ok(p))
        return 0;
    if (s.kind == SYMBOL_PARAM)
        return opjit_ir_param(p->f, s.value);
    if (s.kind == SYMBOL_NODE && p->f->nodes[s.value].op == IR_VAR)
        return s.value;
    if (s.kind == SYMBOL_NODE)
        return opjit_ir_get(p->f, s.value);
    opjit_ir_p_fail(p, "%%%.*s is a tensor; load it", (int)(s.size > 40 ? 40 : s.size), s.text);
    return 0;
}

static ir_op op_at(const parser *p)
{
    for (uint32_t op = IR_OP_NONE + 1; op < IR_OP_COUNT; op++)
        if ((opjit_ir_op_infos[op].flags & IR_FLAG_P) && at(p, opjit_ir_op_infos[op].name))
            return (ir_op)op;
    return IR_OP_NONE;
}

static ir_ref parse_load(parser *p)
{
    operand_list operands;
    const uint32_t tensor = opjit_ir_p_tensor(p);
    opjit_ir_p_expect(p, "[");
    parse_operands(p, &operands, "]");
    if (!ok(p))
        return 0;
    const ir_node node = { .op = IR_LOAD, .type = (uint8_t)p->f->tensors[tensor].type, .ref = tensor };
    return opjit_ir_node_new(p->f, &node, operands.count, operands.list);
}

static ir_ref parse_head(parser *p)
{
    operand_list operands;
    const uint32_t tensor = opjit_ir_p_tensor(p);
    opjit_ir_p_expect(p, "[");
    parse_operands(p, &operands, "]");
    if (ok(p) && operands.count != 1)
        opjit_ir_p_unexpected(p, "one element");
    return ok(p) ? opjit_ir_head(p->f, tensor, operands.list[0]) : 0;
}

static ir_ref parse_op(parser *p)
{
    const ir_op op = op_at(p);
    operand_list operands;
    if (op == IR_OP_NONE || op == IR_CONST || op == IR_VAR || op == IR_PARAM) {
        opjit_ir_p_unexpected(p, "an expression");
        return 0;
    }
    next(p);
    if (op == IR_LOAD)
        return parse_load(p);
    if (op == IR_HEAD)
        return parse_head(p);
    if (op == IR_GET)
        return parse_id_expr(p);
    const bool typed =
        op == IR_CAST || op == IR_BITS || op == IR_NEAREST || op == IR_HALVES || op == IR_ELEM;
    const ir_type type = typed ? opjit_ir_p_type(p) : IR_NONE;
    opjit_ir_p_expect(p, "(");
    parse_operands(p, &operands, ")");
    return ok(p) ? opjit_ir_expr(p->f, op, type, operands.count, operands.list) : 0;
}

static ir_ref parse_leaf_or_op(parser *p)
{
    const ir_lexer before = p->lex;
    const ir_type type = opjit_ir_p_type_at(p);
    if (p->lex.kind == LEX_ID)
        return parse_id_expr(p);
    if (p->lex.kind == LEX_NUMBER) {
        const int64_t value = opjit_ir_p_signed(p);
        return ok(p) ? opjit_ir_index(p->f, value) : 0;
    }
    if (at(p, "true") || at(p, "false")) {
        const bool value = at(p, "true");
        next(p);
        return opjit_ir_const(p->f, IR_BOOL, value);
    }
    if (type == IR_NONE)
        return parse_op(p);
    next(p);
    if (!at(p, "(") && ir_is_element(type))
        return parse_element(p, type);
    p->lex = before; /* index( is an op with the name of a type */
    return parse_op(p);
}

static bool enter(parser *p)
{
    if (p->depth == IR_LIMIT_DEPTH)
        return opjit_ir_p_fail(p, "nested deeper than %u", IR_LIMIT_DEPTH);
    p->depth++;
    return true;
}

static ir_ref parse_expr(parser *p)
{
    if (!ok(p) || !enter(p))
        return 0;
    const ir_ref expr = parse_leaf_or_op(p);
    p->depth--;
    return ok(p) ? expr : 0;
}

ir_ref opjit_ir_p_expr(parser *p)
{
    return parse_expr(p);
}

/* --- statements --------------------------------------------------------------------------------------------------- */

static void parse_block(parser *p, ir_ref parent);

static void parse_for_attributes(parser *p, ir_node *out)
{
    for (;;) {
        if (opjit_ir_p_accept(p, "step") || opjit_ir_p_accept(p, "grain")) {
            out->imm = opjit_ir_p_unsigned(p, 63);
        } else if (opjit_ir_p_accept(p, "vec") || opjit_ir_p_accept(p, "team")) {
            out->vec = (uint16_t)opjit_ir_p_unsigned(p, 16);
        } else if (opjit_ir_p_accept(p, "alone")) {
            out->flags |= IR_STAGE_ALONE;
        } else if (out->op == IR_STAGE && opjit_ir_p_accept(p, "once")) {
            out->flags |= IR_STAGE_ONCE;
        } else if (opjit_ir_p_accept(p, "transpose")) {
            out->vec = (uint16_t)opjit_ir_p_unsigned(p, 16);
            out->flags |= IR_FOR_TRANSPOSE;
        } else if (opjit_ir_p_accept(p, "unroll")) {
            out->unroll = (uint16_t)opjit_ir_p_unsigned(p, 16);
        } else if (opjit_ir_p_accept(p, "store")) {
            if (opjit_ir_p_accept(p, "nt"))
                out->flags |= IR_FOR_NT;
            else
                opjit_ir_p_expect(p, "plain");
        } else if (opjit_ir_p_accept(p, "tail")) {
            if (opjit_ir_p_accept(p, "mask"))
                out->flags |= IR_FOR_TAIL_MASK;
            else if (opjit_ir_p_accept(p, "overlap"))
                out->flags |= IR_FOR_TAIL_OVERLAP;
            else
                opjit_ir_p_expect(p, "scalar");
        } else if (opjit_ir_p_accept(p, "edge")) {
            if (opjit_ir_p_accept(p, "head"))
                out->flags |= IR_FOR_HEAD;
            else if (opjit_ir_p_accept(p, "tail"))
                out->flags |= IR_FOR_TAIL;
            else
                opjit_ir_p_unexpected(p, "head or tail");
        } else if (opjit_ir_p_accept(p, "carry")) {
            out->flags |= IR_FOR_CARRY;
        } else if (opjit_ir_p_accept(p, "distribute")) {
            out->flags |= IR_FOR_DISTRIBUTE;
        } else if (opjit_ir_p_accept(p, "serial")) {
            out->flags |= IR_FOR_SERIAL;
        } else if (opjit_ir_p_accept(p, "hold")) {
            out->hold = 1;
        } else {
            return;
        }
    }
}

/* Parses a loop from its id to the end of its block. */
static ir_ref parse_loop(parser *p, ir_op op)
{
    const symbol id = opjit_ir_p_new_id(p);
    ir_node attributes = { .op = (uint8_t)op, .imm = 1 };
    opjit_ir_p_expect(p, "in");
    const ir_ref lo = parse_expr(p);
    opjit_ir_p_expect(p, "..");
    const ir_ref hi = parse_expr(p);
    parse_for_attributes(p, &attributes);
    if (!ok(p) || !opjit_ir_p_expect(p, "{"))
        return 0;
    const ir_ref loop =
        op == IR_STAGE ? opjit_ir_stage(p->f, lo, hi, attributes.imm) : opjit_ir_for(p->f, lo, hi, attributes.imm);
    if (!loop)
        return 0;
    ir_node *node = &p->f->nodes[loop];
    node->vec = attributes.vec;
    node->unroll = attributes.unroll;
    node->flags = attributes.flags;
    node->hold = attributes.hold;
    opjit_ir_p_declare(p, id, SYMBOL_NODE, node->ref);
    if (enter(p)) {
        parse_block(p, loop);
        p->depth--;
    }
    return loop;
}

static ir_ref parse_acc(parser *p)
{
    const symbol id = opjit_ir_p_new_id(p);
    opjit_ir_p_expect(p, ":");
    const ir_type type = opjit_ir_p_type(p);
    const ir_kind kind = opjit_ir_p_kind(p);
    ir_node node = { .op = IR_ACC, .type = (uint8_t)type, .kind = (uint8_t)kind };
    opjit_ir_p_order(p, &node);
    const ir_ref acc = ok(p) ? opjit_ir_node_new(p->f, &node, 0, NULL) : 0;
    opjit_ir_p_declare(p, id, SYMBOL_NODE, acc);
    return acc;
}

static ir_ref parse_upd(parser *p)
{
    const symbol acc = opjit_ir_p_id(p);
    if (ok(p) && (acc.kind != SYMBOL_NODE || p->f->nodes[acc.value].op != IR_ACC))
        opjit_ir_p_fail(p, "%%%.*s is not an accumulator", (int)(acc.size > 40 ? 40 : acc.size), acc.text);
    opjit_ir_p_expect(p, ",");
    const ir_ref value = parse_expr(p), where = opjit_ir_p_accept(p, "at") ? parse_expr(p) : 0;
    return ok(p) ? opjit_ir_upd(p->f, acc.value, value, where) : 0;
}

static ir_ref parse_store(parser *p)
{
    operand_list coordinates;
    ir_ref operands[OPERANDS_MAX + 1];
    const uint32_t tensor = opjit_ir_p_tensor(p);
    opjit_ir_p_expect(p, "[");
    parse_operands(p, &coordinates, "]");
    opjit_ir_p_expect(p, ",");
    operands[0] = parse_expr(p);
    if (!ok(p))
        return 0;
    memcpy(operands + 1, coordinates.list, coordinates.count * sizeof(ir_ref));
    return opjit_ir_node_new(p->f, &(ir_node){ .op = IR_STORE, .ref = tensor }, coordinates.count + 1, operands);
}

static ir_ref parse_let(parser *p)
{
    const symbol id = opjit_ir_p_new_id(p);
    opjit_ir_p_expect(p, "=");
    const ir_ref value = parse_expr(p), let = ok(p) ? opjit_ir_let(p->f, value) : 0;
    opjit_ir_p_declare(p, id, SYMBOL_NODE, let);
    return let;
}

static ir_ref parse_statement(parser *p)
{
    if (opjit_ir_p_accept(p, "for"))
        return parse_loop(p, IR_FOR);
    if (opjit_ir_p_accept(p, "let"))
        return parse_let(p);
    if (opjit_ir_p_accept(p, "acc"))
        return parse_acc(p);
    if (opjit_ir_p_accept(p, "upd"))
        return parse_upd(p);
    if (opjit_ir_p_accept(p, "store"))
        return parse_store(p);
    if (opjit_ir_p_accept(p, "sync"))
        return opjit_ir_sync(p->f);
    return 0;
}

static void parse_block(parser *p, ir_ref parent)
{
    ir_ref tail = 0;
    while (ok(p) && !opjit_ir_p_accept(p, "}")) {
        const ir_ref statement = parse_statement(p);
        if (ok(p) && !statement)
            opjit_ir_p_unexpected(p, "a statement");
        if (ok(p))
            opjit_ir_append(p->f, parent, &tail, statement);
    }
}

/* --- items -------------------------------------------------------------------------------------------------------- */

static void parse_item(parser *p)
{
    ir_ref item = 0;
    if (opjit_ir_p_declaration(p))
        return;
    if (opjit_ir_p_accept(p, "def")) {
        item = opjit_ir_p_definition(p, IR_DEF);
    } else if (opjit_ir_p_accept(p, "yield")) {
        item = opjit_ir_p_definition(p, IR_YIELD);
    } else if (opjit_ir_p_accept(p, "scatter")) {
        item = opjit_ir_p_definition(p, IR_SCATTER);
    } else if (opjit_ir_p_accept(p, "stage")) {
        if (p->lex.kind == LEX_NAME)
            next(p);
        opjit_ir_p_expect(p, "for");
        item = parse_loop(p, IR_STAGE);
    } else {
        opjit_ir_p_unexpected(p, "a declaration, def, scatter, yield or stage");
    }
    if (ok(p))
        opjit_ir_append(p->f, 0, &p->tail, item);
}

static void parse_header(parser *p)
{
    opjit_ir_p_expect(p, "kernel");
    if (ok(p) && p->lex.kind != LEX_NAME)
        opjit_ir_p_unexpected(p, "@name");
    if (!ok(p))
        return;
    p->f->name = opjit_rt_arena_string(&p->f->arena, p->lex.start, p->lex.size);
    p->f->failed |= !p->f->name;
    next(p);
    if (opjit_ir_p_accept(p, "target") && !(p->f->target = opjit_ir_p_string(p)))
        opjit_ir_p_unexpected(p, "a string");
    if (!opjit_ir_p_accept(p, "after"))
        return;
    for (uint32_t stage = 0; stage < IR_PHASE_COUNT; stage++)
        if (opjit_ir_p_accept(p, opjit_ir_phase_name((ir_phase)stage))) {
            p->f->phase = (ir_phase)stage;
            return;
        }
    opjit_ir_p_unexpected(p, "the name of a pass");
}

opjit_status opjit_ir_parse(const char *text, size_t length, const opjit_allocator *allocator, ir_func *out,
                            opjit_error *error)
{
    const opjit_status status = opjit_ir_init(out, allocator, "", error);
    if (status != OPJIT_OK)
        return status;
    parser p = { .lex = { .text = text, .length = length, .line = 1 }, .f = out, .error = error };
    next(&p);
    parse_header(&p);
    opjit_ir_p_expect(&p, "{");
    while (ok(&p) && !opjit_ir_p_accept(&p, "}"))
        parse_item(&p);
    if (ok(&p) && p.lex.kind != LEX_END)
        opjit_ir_p_unexpected(&p, "the end of the text");
    if (!ok(&p)) {
        const bool memory = p.status == OPJIT_OK;
        opjit_ir_free(out);
        return memory ? opjit_rt_no_memory(error) : p.status;
    }
    return OPJIT_OK;
}
