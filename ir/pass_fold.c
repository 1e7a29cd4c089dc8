/* pass_fold.c - constants, bool algebra, index identities, comparisons that intervals decide: opjit_ir_make on every
 * expression of the function.
 * Needs: any form.  Leaves: the same statements with the simplest operands; so a bound that no coordinate reaches, such
 * as INT32_MIN, is gone.  Definitions that nothing reads any more go with what read them. */
#include "ir/pass.h"

/* Marks the tensors that the statement reads. */
static void mark_read(ir_func *f, ir_ref statement, uint8_t *read, uint32_t *seen, ir_ref *stack)
{
    uint32_t depth = 0;
    stack[depth++] = statement;
    while (depth > 0) {
        const ir_ref r = stack[--depth];
        const ir_node *n = ir_at(f, r);
        if (seen[r] == statement)
            continue;
        seen[r] = statement;
        if (n->op == IR_LOAD)
            read[opjit_ir_root(f, n->ref)] = 1;
        for (uint32_t i = 0; i < n->count; i++)
            if (seen[ir_operand(f, r, i)] != statement)
                stack[depth++] = ir_operand(f, r, i);
    }
}

/* From the last statement to the first: readers come after what they read. */
static bool remove_unread(ir_func *f)
{
    uint32_t count = 0, at = 0;
    bool removed = false;
    block kept = { 0 };
    for (ir_ref s = f->body; s != 0; s = ir_at(f, s)->next)
        count++;
    ir_ref *items = ARENA_ARRAY(&f->arena, ir_ref, count + 1), *stack = ARENA_ARRAY(&f->arena, ir_ref, f->operand_count + 1);
    uint8_t *read = ARENA_ARRAY(&f->arena, uint8_t, f->tensor_count);
    uint32_t *seen = ARENA_ARRAY(&f->arena, uint32_t, f->node_count);
    if (items == NULL || stack == NULL || read == NULL || seen == NULL) {
        f->failed = true;
        return false;
    }
    for (ir_ref s = f->body; s != 0; s = ir_at(f, s)->next)
        items[at++] = s;
    for (uint32_t i = count; i-- > 0;) {
        const bool unread = ir_at(f, items[i])->op == IR_DEF && !read[ir_at(f, items[i])->ref];
        if (unread)
            items[i] = 0;
        else
            mark_read(f, items[i], read, seen, stack);
        removed = removed || unread;
    }
    for (uint32_t i = 0; i < count && removed; i++)
        opjit_ir_block_add(f, &kept, items[i]);
    f->body = removed ? kept.first : f->body;
    return removed;
}

opjit_status opjit_ir_pass_fold(ir_func *f, const ir_pass_env *env, bool *out_changed, opjit_error *error)
{
    ir_map map;
    (void)env;
    if (opjit_ir_map_init(f, &map) != OPJIT_OK)
        return opjit_rt_no_memory(error);
    *out_changed = opjit_ir_remake_operands(f, &map, f->body);
    if (!f->failed && f->body != 0 && ir_at(f, f->body)->op != IR_STAGE)
        *out_changed = remove_unread(f) || *out_changed;
    return f->failed ? opjit_rt_no_memory(error) : OPJIT_OK;
}
