/* SPDX-License-Identifier: Apache-2.0 */
/* ir_map.c - substitution: expressions under a map, copies of statement lists.
 * Builds literally; what becomes constant under the map is left to opjit_ir_make. */
#include "ir/ir_internal.h"

#include <string.h>

/* to[] holds what the caller entered.  memo[] holds what rewrites found, so that shared nodes stay shared; an entry is
 * valid while its stamp is the map's, and every new entry of to[] makes all of them old. */
static bool grow(ir_func *f, ir_map *map, uint32_t count)
{
    if (count <= map->count)
        return true;
    const uint32_t wanted = count + count / 2;
    ir_ref *to = ARENA_ARRAY(&f->arena, ir_ref, wanted);
    ir_ref *memo = ARENA_ARRAY(&f->arena, ir_ref, wanted);
    uint32_t *stamp = ARENA_ARRAY(&f->arena, uint32_t, wanted);
    if (!to || !memo || !stamp) {
        f->failed = true;
        return false;
    }
    if (map->count > 0) {
        memcpy(to, map->to, map->count * sizeof(ir_ref));
        memcpy(memo, map->memo, map->count * sizeof(ir_ref));
        memcpy(stamp, map->stamp, map->count * sizeof(uint32_t));
    }
    *map = (ir_map){ .to = to, .count = wanted, .memo = memo, .stamp = stamp, .now = map->now };
    return true;
}

opjit_status opjit_ir_map_init(ir_func *f, ir_map *map)
{
    *map = (ir_map){ .now = 1 };
    return !f->failed && grow(f, map, f->node_count) ? OPJIT_OK : OPJIT_OUT_OF_MEMORY;
}

void opjit_ir_map_set(ir_func *f, ir_map *map, ir_ref from, ir_ref to)
{
    if (f->failed || !grow(f, map, from + 1))
        return;
    map->to[from] = to;
    map->now++;
}

static ir_ref rewrite(ir_func *f, ir_map *map, ir_ref expr);

/* GET of a statement that the map replaces: by its copy, or by a value. */
static ir_ref rewrite_get(ir_func *f, ir_map *map, ir_ref expr)
{
    const ir_ref owner = f->nodes[expr].ref;
    const ir_ref to = owner < map->count ? map->to[owner] : 0;
    if (!to)
        return expr;
    return f->nodes[to].op == IR_LET || f->nodes[to].op == IR_ACC ? opjit_ir_get(f, to) : to;
}

static ir_ref rewrite_operands(ir_func *f, ir_map *map, ir_ref expr)
{
    const ir_node node = f->nodes[expr];
    ir_ref copy = 0;
    for (uint32_t i = 0; i < node.count; i++) {
        const ir_ref old = f->operands[node.first + i];
        const ir_ref new = rewrite(f, map, old);
        if (new == old)
            continue;
        if (!copy)
            copy = opjit_ir_node_new(f, &node, node.count, &f->operands[node.first]);
        if (!copy)
            return 0;
        f->operands[f->nodes[copy].first + i] = new;
    }
    return copy ? copy : expr;
}

/* Nodes made on the way are never walked again, so node numbers stay below map->count. */
static ir_ref rewrite(ir_func *f, ir_map *map, ir_ref expr)
{
    if (f->failed || !expr || map->to[expr])
        return f->failed || !expr ? 0 : map->to[expr];
    if (map->stamp[expr] == map->now)
        return map->memo[expr];
    const ir_ref result = f->nodes[expr].op == IR_GET ? rewrite_get(f, map, expr) : rewrite_operands(f, map, expr);
    map->memo[expr] = result;
    map->stamp[expr] = map->now;
    return result;
}

ir_ref opjit_ir_rewrite(ir_func *f, ir_map *map, ir_ref expr)
{
    return !f->failed && grow(f, map, f->node_count) ? rewrite(f, map, expr) : 0;
}

/* The statement without its block, operands under the map; its VARs are made anew. */
static ir_ref copy_statement(ir_func *f, ir_map *map, ir_ref statement)
{
    ir_node node = f->nodes[statement];
    node.next = node.body = 0;
    if (node.op == IR_UPD && node.ref < map->count && map->to[node.ref])
        node.ref = map->to[node.ref];
    const ir_ref copy = opjit_ir_node_new(f, &node, node.count, NULL);
    if (!copy)
        return 0;
    const bool loop = node.op == IR_STAGE || node.op == IR_FOR;
    const bool definition = node.op == IR_DEF || node.op == IR_YIELD;
    const uint32_t vars = loop ? 1 : definition ? f->tensors[node.ref].rank + (node.kind != 0) : 0;
    for (uint32_t i = 0; i < vars; i++) {
        const ir_ref old = loop ? node.ref : ir_operand(f, statement, 1 + i);
        const ir_node var = { .op = IR_VAR, .type = IR_INDEX, .ref = copy, .imm = f->nodes[old].imm };
        const ir_ref new = opjit_ir_node_new(f, &var, 0, NULL);
        opjit_ir_map_set(f, map, old, new);
        if (loop)
            f->nodes[copy].ref = new;
    }
    for (uint32_t i = 0; i < node.count; i++) {
        const ir_ref operand = opjit_ir_rewrite(f, map, ir_operand(f, statement, i));
        f->operands[f->nodes[copy].first + i] = operand;
    }
    if (node.op == IR_LET || node.op == IR_ACC)
        opjit_ir_map_set(f, map, statement, copy);
    return f->failed ? 0 : copy;
}

ir_ref opjit_ir_copy_block(ir_func *f, ir_map *map, ir_ref first)
{
    ir_ref head = 0, tail = 0;
    for (ir_ref s = first; s && !f->failed; s = f->nodes[s].next) {
        const ir_ref copy = copy_statement(f, map, s);
        if (!copy)
            return 0;
        const ir_ref body = opjit_ir_copy_block(f, map, f->nodes[s].body);
        f->nodes[copy].body = body;
        if (tail)
            f->nodes[tail].next = copy;
        else
            head = copy;
        tail = copy;
    }
    return f->failed ? 0 : head;
}
