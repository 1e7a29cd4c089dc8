/* SPDX-License-Identifier: Apache-2.0 */
/* common.c - what several parts of a statement read in common, read once: updates that are made together, each of which
 * stores, so that code generation could not tell that what they read stays the same.  Part of place. */
#include "ir/passes/place/place.h"

typedef struct part_node {
    uint32_t uses;  /* parts that reach it */
    bool loads, may_be_let;
    bool is_fixed;  /* its loads are inside of what they read, and of nothing that is stored meanwhile */
    bool is_end;    /* common, and read by what is not */
} part_node;

typedef struct commons {
    ir_func *f;
    uint32_t tensor;     /* that is stored */
    const ir_reach *parts;
    uint32_t count;
    ir_table number;     /* node to its place in nodes, + 1 */
    part_node *nodes;
    uint32_t node_count;
} commons;

static part_node *node_of(const commons *c, ir_ref r) { return &c->nodes[opjit_ir_table_get(&c->number, r) - 1]; }

static bool is_common(const part_node *x) { return x->uses > 1 && x->loads && x->is_fixed && x->may_be_let; }

/* Notes a node of a part, after its operands. */
static void look_at(commons *c, ir_ref r)
{
    ir_func *f = c->f;
    const ir_node *n = ir_at(f, r);
    if (opjit_ir_table_get(&c->number, r) != 0) {
        node_of(c, r)->uses++;
        return;
    }
    part_node x = { .uses = 1, .loads = n->op == IR_LOAD, .is_fixed = true };
    x.may_be_let = n->op != IR_GET && (ir_is_element((ir_type)n->type) || n->type == IR_INDEX);
    if (n->op == IR_LOAD)
        x.is_fixed = opjit_ir_root(f, n->ref) != opjit_ir_root(f, c->tensor) && opjit_ir_in_bounds(f, r);
    for (uint32_t i = 0; i < n->count; i++) {
        const part_node *operand = node_of(c, ir_operand(f, r, i));
        x.loads = x.loads || operand->loads;
        x.is_fixed = x.is_fixed && operand->is_fixed;
    }
    c->nodes[c->node_count++] = x;
    opjit_ir_table_set(f, &c->number, r, c->node_count);
}

/* Finds the nodes that are common and have readers that are not; a part as a whole has one. */
static void find_ends(commons *c)
{
    const ir_func *f = c->f;
    for (uint32_t p = 0; p < c->count; p++) {
        const ir_reach *part = &c->parts[p];
        for (uint32_t k = 0; k < part->count; k++) {
            const ir_node *n = ir_at(f, part->nodes[k]);
            part_node *x = node_of(c, part->nodes[k]);
            x->is_end = x->is_end || (k + 1 == part->count && is_common(x));
            for (uint32_t i = 0; i < n->count && !is_common(x); i++) {
                part_node *operand = node_of(c, ir_operand(f, part->nodes[k], i));
                operand->is_end = operand->is_end || is_common(operand);
            }
        }
    }
}

void opjit_ir_share_between(ir_func *f, block *list, uint32_t tensor, ir_ref *parts, uint32_t count)
{
    ir_reach *const reaches = ARENA_ARRAY(&f->scratch, ir_reach, count);
    commons c = { .f = f, .tensor = tensor, .parts = reaches, .count = count };
    ir_map map = { { 0 } };
    uint32_t nodes = 0;

    for (uint32_t p = 0; p < count && reaches != NULL && !f->failed; p++) {
        reaches[p] = opjit_ir_reach_one(f, parts[p]);
        nodes += reaches[p].count;
    }
    c.nodes = ARENA_ARRAY(&f->scratch, part_node, nodes);
    f->failed = f->failed || reaches == NULL || c.nodes == NULL;
    for (uint32_t p = 0; p < count && !f->failed; p++)
        for (uint32_t k = 0; k < reaches[p].count && !f->failed; k++)
            look_at(&c, reaches[p].nodes[k]);
    if (f->failed)
        return;
    find_ends(&c);
    for (uint32_t p = 0; p < count && !f->failed; p++)
        for (uint32_t k = 0; k < reaches[p].count && !f->failed; k++) {
            const ir_ref r = reaches[p].nodes[k];
            if (!node_of(&c, r)->is_end || ir_map_get(&map, r) != 0)
                continue;
            ir_map_set(f, &map, r, opjit_ir_block_let(f, list, opjit_ir_remake(f, &map, r)));
            ir_took(f, IR_STEP_SHARE);
        }
    for (uint32_t p = 0; p < count && !f->failed; p++)
        parts[p] = opjit_ir_remake(f, &map, parts[p]);
}
