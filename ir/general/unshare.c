/* SPDX-License-Identifier: Apache-2.0 */
/* unshare.c - brings the nodes of a packed function into the order in which its statements read them, with a node of
 * its own for each reader of a constant.
 *
 * Equal numbers have one node: of an odd image (n + 1) / 2 and n / 2 + 1 are one, of an even one they are two, and
 * loops that differ in numbers alone would seem to be of two kinds. */
#include "ir/general/general.h"

#include "ir/core/internal.h"

#include <string.h>

typedef struct sorter {
    ir_func *f;
    ir_ref *places; /* by node: where it goes, behind the constants that it reads; 0: nowhere yet */
    ir_ref *stack;  /* of expressions */
    ir_ref next;
} sorter;

static bool is_constant(const ir_func *f, ir_ref r)
{
    return ir_at(f, r)->op == IR_CONST;
}

/* How many operands of the node are constants. */
static uint32_t constants_of(const ir_func *f, ir_ref r)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < ir_at(f, r)->count; i++)
        count += is_constant(f, ir_operand(f, r, i));
    return count;
}

static void place(sorter *s, ir_ref r)
{
    s->next += constants_of(s->f, r);
    s->places[r] = s->next++;
}

/* What the expression reads, then it itself.  A node is on the stack once for each reader at most. */
static void place_expression(sorter *s, ir_ref root)
{
    uint32_t depth = 0;

    s->stack[depth++] = root;
    while (depth > 0) {
        const ir_ref r = s->stack[depth - 1];
        uint32_t open = 0;
        for (uint32_t i = ir_at(s->f, r)->count; i > 0 && s->places[r] == 0; i--) {
            const ir_ref operand = ir_operand(s->f, r, i - 1);
            if (is_constant(s->f, operand) || s->places[operand] != 0)
                continue;
            s->stack[depth++] = operand;
            open++;
        }
        if (open > 0)
            continue;
        if (s->places[r] == 0)
            place(s, r);
        depth--;
    }
}

/* A statement, the variable that it has, and what is inside.  Loops are nested as deep as tensors have dimensions, a
 * few times over. */
static void place_statement(sorter *s, ir_ref r)
{
    const ir_node *const n = ir_at(s->f, r);

    for (uint32_t i = 0; i < n->count; i++)
        if (!is_constant(s->f, ir_operand(s->f, r, i)))
            place_expression(s, ir_operand(s->f, r, i));
    place(s, r);
    if ((n->op == IR_FOR || n->op == IR_STAGE) && s->places[n->ref] == 0)
        place(s, n->ref);
    for (ir_ref inner = n->body; inner != 0; inner = ir_at(s->f, inner)->next)
        place_statement(s, inner);
}

static void copy(const ir_func *f, ir_ref r, const ir_ref *places, ir_node *out, ir_ref *operands)
{
    ir_ref own = places[r] - constants_of(f, r);
    ir_node n = *ir_at(f, r);

    for (uint32_t i = 0; i < n.count; i++) {
        const ir_ref operand = ir_operand(f, r, i);
        if (is_constant(f, operand))
            out[own] = *ir_at(f, operand);
        operands[i] = is_constant(f, operand) ? own++ : places[operand];
    }
    n.ref = ir_names_node(&n) ? places[n.ref] : n.ref;
    n.body = n.body != 0 ? places[n.body] : 0;
    n.next = n.next != 0 ? places[n.next] : 0;
    out[own] = n;
}

/* Operands lie in the order of their nodes. */
static void renumber_operands(ir_node *nodes, ir_ref count, const ir_ref *operands, ir_func *f)
{
    uint32_t next = 0;

    for (ir_ref r = 1; r < count; r++) {
        memcpy(f->operands + next, operands + nodes[r].first, nodes[r].count * sizeof *operands);
        nodes[r].first = next;
        next += nodes[r].count;
    }
    f->operand_count = next;
}

opjit_status opjit_ir_unshare(ir_func *f, opjit_error *error)
{
    sorter s = { .f = f,
                 .places = ARENA_ARRAY(&f->scratch, ir_ref, f->node_count),
                 .stack = ARENA_ARRAY(&f->scratch, ir_ref, f->operand_count + 1u),
                 .next = 1 };
    uint32_t section = 0;

    if (s.places == NULL || s.stack == NULL)
        return opjit_rt_no_memory(error);
    for (ir_ref r = f->body; r != 0; r = ir_at(f, r)->next, section++) {
        const ir_ref first = s.next;
        place_statement(&s, r);
        f->sections[section] = (ir_section){ s.places[r], first, s.next };
    }
    ir_node *const nodes = ARENA_ARRAY(&f->arena, ir_node, s.next);
    ir_ref *const operands = ARENA_ARRAY(&f->arena, ir_ref, f->operand_count + 1u);
    if (nodes == NULL || operands == NULL)
        return opjit_rt_no_memory(error);
    for (ir_ref r = 1; r < f->node_count; r++)
        if (s.places[r] != 0)
            copy(f, r, s.places, nodes, operands + ir_at(f, r)->first);
    renumber_operands(nodes, s.next, operands, f);
    f->body = s.places[f->body];
    f->nodes = nodes;
    f->node_count = f->node_capacity = f->packed = s.next;
    return OPJIT_OK;
}
