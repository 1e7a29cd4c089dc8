/* SPDX-License-Identifier: Apache-2.0 */
/* table.c - what a loop computes alike in each of its runs, and with divisions, as the elements of adjacent small
 * matrices or the conditions that choose between them and an input: a table in the module.  Its vectors are read faster
 * than they are computed.  If the table has all that is stored, a run of the loop is a copy. */
#include "codegen/stores/pieces.h"

enum { MOST_DEPTH = 16 /* of the expression, which is evaluated by recursion */ };

/* The number of vectors after which the table repeats, up to the room in registers; else 0. */
static uint32_t period_of(const char *data, size_t bytes, size_t vector)
{
    for (uint32_t n = 1; n <= CG_TABLE_VECTORS && n * vector < bytes; n++)
        if (memcmp(data, data + n * vector, bytes - n * vector) == 0)
            return n;
    return 0;
}

/* Whether the expression depends on the variable and constants only; *divides: it has a division. */
static bool depends_on(const cg_func *f, ir_ref node, ir_ref var, uint32_t depth, bool *divides)
{
    const ir_node *n = ir_at(f->ir, node);
    if (n->op == IR_VAR)
        return node == var;
    if (n->op == IR_CONST)
        return true;
    if (n->count == 0 || n->count > 3 || n->op == IR_LOAD || n->op == IR_GET || n->op == IR_HEAD || depth == 0)
        return false;
    *divides = *divides || n->op == IR_IDIV || n->op == IR_IMOD;
    for (uint32_t i = 0; i < n->count; i++)
        if (!depends_on(f, ir_operand(f->ir, node, i), var, depth - 1, divides))
            return false;
    return true;
}

static bool evaluate(const cg_func *f, ir_ref node, uint64_t var, uint64_t *out)
{
    const ir_node *n = ir_at(f->ir, node);
    uint64_t args[3] = { 0 };
    if (n->op == IR_VAR || n->op == IR_CONST) {
        *out = n->op == IR_VAR ? var : n->imm;
        return true;
    }
    for (uint32_t i = 0; i < n->count; i++)
        if (!evaluate(f, ir_operand(f->ir, node, i), var, &args[i]))
            return false;
    if (n->op == IR_SELECT) {
        *out = args[0] ? args[1] : args[2];
        return true;
    }
    if (n->op == IR_IADD || n->op == IR_ISUB || n->op == IR_IMUL) {
        *out = n->op == IR_IADD ? args[0] + args[1] : n->op == IR_ISUB ? args[0] - args[1] : args[0] * args[1];
        return true;
    }
    const ir_type from = (ir_type)ir_at(f->ir, ir_operand(f->ir, node, 0))->type;
    return opjit_ir_scalar((ir_op)n->op, (ir_type)n->type, from, args, out);
}

/* The first part of the value, from the whole on, that depends on the variable and constants only and has divisions; 0:
 * none. */
static ir_ref find_tabled(const cg_func *f, ir_ref node, ir_ref var, uint32_t depth)
{
    const ir_node *n = ir_at(f->ir, node);
    bool divides = false;
    ir_ref found = 0;
    if (depends_on(f, node, var, depth, &divides))
        return divides ? node : 0;
    if (n->op == IR_LOAD || n->op == IR_GET || depth == 0)
        return 0;
    for (uint32_t i = 0; i < n->count && found == 0; i++)
        found = find_tabled(f, ir_operand(f->ir, node, i), var, depth - 1);
    return found;
}

/* Values of the node; of a condition all bits. */
static bool fill(const cg_func *f, ir_ref node, char *data, int64_t count, size_t size)
{
    const bool condition = ir_at(f->ir, node)->type == IR_BOOL;
    for (int64_t i = 0; i < count; i++) {
        uint64_t bits;
        if (!evaluate(f, node, (uint64_t)i, &bits))
            return false;
        if (condition)
            bits = bits ? UINT64_MAX : 0;
        memcpy(data + (size_t)i * size, &bits, size);
    }
    return true;
}

void opjit_cg_make_table(cg_func *f, cg_plan *plan)
{
    const cg_facts *is = &plan->is;
    const int64_t count = is->most;
    if (is->least != count || f->cpu->grid || is->lanes < 2 || is->store.value == 0 || is->in_block ||
        count < (int64_t)is->lanes || !ir_is_index_const(f->ir, is->lo) || ir_index_value(f->ir, is->lo) != 0 ||
        !is->store.contiguous)
        return;
    if (f->info[is->store.value].weight > CG_TABLE_NODES)
        return;
    const ir_ref tabled = find_tabled(f, is->store.value, is->var, MOST_DEPTH);
    if (tabled == 0)
        return;
    const size_t size = opjit_cg_table_bits(f, is, tabled) / 8;
    if ((uint64_t)count * size > CG_TABLE_BYTES)
        return;
    const size_t room = ((size_t)count + is->lanes) * size; /* a masked vector may reach past the end */
    char *data = ARENA_ARRAY(f->arena, char, room);
    if (!data) {
        f->failed = true;
        return;
    }
    if (!fill(f, tabled, data, count, size))
        return;
    plan->tabled = tabled;
    plan->table = data;
    plan->table_bytes = room;
    plan->table_period = period_of(data, (size_t)count * size, is->lanes * size);
}

void opjit_cg_put_table(cg_func *f, const cg_plan *plan, cg_table *out)
{
    LLVMValueRef text = LLVMConstStringInContext(f->llvm, plan->table, (unsigned)plan->table_bytes, 1);
    *out = (cg_table){ .data = opjit_cg_constant_data(f, "table", text) };
    f->loops[f->loop_count - 1].table = out;
}
