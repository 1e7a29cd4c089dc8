/* SPDX-License-Identifier: Apache-2.0 */
/* pack.c - packs a finished function: puts the nodes of each stage side by side and drops unreachable nodes.  What runs
 * or reads a stage then needs memory for that stage only. */
#include "ir/core/internal.h"

#include <string.h>

/* For what the next pass adds, so that the arrays need not grow for it. */
static uint32_t with_room(uint64_t count)
{
    return (uint32_t)(count < IR_LIMIT_NODES / 2 ? count + count / 4 : count);
}

/* What each stage reaches; a node that several stages reach counts in each.  NULL: no memory, or too many nodes. */
static ir_reach *find_all(ir_func *f, ir_func *out)
{
    uint64_t nodes = 1, operands = 0;
    uint32_t count = 0;

    for (ir_ref s = f->body; s != 0; s = ir_at(f, s)->next)
        count++;
    ir_reach *all = ARENA_ARRAY(&f->scratch, ir_reach, count);
    f->failed = f->failed || all == NULL;
    for (ir_ref s = f->body; s != 0 && !f->failed; s = ir_at(f, s)->next) {
        const ir_reach seen = all[out->section_count++] = opjit_ir_reach_one(f, s);
        nodes += seen.count;
        for (uint32_t k = 0; k < seen.count; k++)
            operands += ir_at(f, seen.nodes[k])->count;
    }
    if (f->failed || nodes > IR_LIMIT_NODES || operands > IR_LIMIT_NODES)
        return NULL;
    out->node_capacity = with_room(nodes);
    out->operand_capacity = with_room(operands + 1);
    return all;
}

static void pack_stage(ir_func *f, ir_ref stage, const ir_reach *seen, ir_func *out)
{
    const uint32_t first = out->node_count, *places = opjit_ir_reach_places(f, seen);

    for (uint32_t k = 0; k < seen->count; k++) {
        const ir_ref r = seen->nodes[k];
        ir_node n = *ir_at(f, r);
        n.first = out->operand_count;
        for (uint32_t i = 0; i < n.count; i++)
            out->operands[out->operand_count++] = first + places[ir_operand(f, r, i)];
        n.ref = ir_names_node(&n) ? first + places[n.ref] : n.ref;
        n.body = n.body != 0 ? first + places[n.body] : 0;
        n.next = n.next != 0 && r != stage ? first + places[n.next] : 0;
        out->nodes[out->node_count++] = n;
    }
    out->sections[out->section_count++] = (ir_section){ first + places[stage], first, out->node_count };
}

opjit_status opjit_ir_pack(ir_func *f, opjit_error *error)
{
    ir_func shell = *f, packed;

    if (f->section_count > 0 || f->body == 0)
        return OPJIT_OK;
    const ir_reach *all = find_all(f, &shell);
    if (all == NULL)
        return opjit_rt_no_memory(error);
    shell.node_count = 1;
    shell.operand_count = 0;
    shell.tensor_capacity = f->tensor_count;
    shell.param_capacity = f->param_count;
    TRY(opjit_ir_copy(&shell, &packed, error));
    packed.sections = ARENA_ARRAY(&packed.arena, ir_section, packed.section_count);
    packed.section_count = 0;
    if (packed.sections == NULL) {
        opjit_ir_free(&packed);
        return opjit_rt_no_memory(error);
    }
    for (ir_ref s = f->body; s != 0; s = ir_at(f, s)->next)
        pack_stage(f, s, &all[packed.section_count], &packed);
    for (uint32_t i = 0; i + 1 < packed.section_count; i++)
        packed.nodes[packed.sections[i].stage].next = packed.sections[i + 1].stage;
    packed.body = packed.sections[0].stage;
    packed.packed = packed.node_count;
    opjit_ir_free(f);
    *f = packed;
    return OPJIT_OK;
}
