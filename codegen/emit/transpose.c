/* SPDX-License-Identifier: Apache-2.0 */
/* transpose.c - the body of blocks of rows and lanes that are transposed in registers (shuffle.c): an input that is
 * contiguous along the rows is loaded a short vector per lane, shuffled, and is then a vector per row.  Rows are copies
 * of the body, as unrolled lanes are; what depends on the row is made anew in each. */
#include "codegen/plan.h"

enum { MAX_TRANSPOSED = 8 /* loads of a body: their vectors fill any registers; more are made lane by lane */ };

/* --- rows ------------------------------------------------------------------------------------------------------- */

static bool differs(const cg_func *f, ir_ref let)
{
    return f->info[let].vary >> f->piece->block.loop & 1;
}

static void enter_row(cg_func *f, cg_piece *own, uint32_t row)
{
    cg_piece_begin(f, own);
    opjit_cg_scope_push(f);
    f->loops[f->piece->block.loop].offset = row;
    f->piece->block.row_depth = f->piece->copy_scope = f->piece->loop_scope = f->scope_count - 1;
}

static void leave_row(cg_func *f)
{
    opjit_cg_scope_pop(f);
    f->loops[f->piece->block.loop].offset = 0;
    cg_piece_end(f);
}

/* Emits the lets of the loop over rows: once for all rows, or once per row. */
static void emit_lets(cg_func *f)
{
    uint32_t count = 0;
    for (ir_ref s = f->piece->block.lets; ir_at(f->ir, s)->op == IR_LET; s = ir_at(f->ir, s)->next) {
        if (!differs(f, s))
            opjit_cg_remember(f, CG_VALUE, s, f->piece->copy_scope, opjit_cg_emit(f, ir_operand(f->ir, s, 0)));
        count += differs(f, s);
    }
    f->piece->block.values = ARENA_ARRAY(f->arena, LLVMValueRef, (size_t)count * f->piece->block.rows + 1);
    f->failed = f->failed || !f->piece->block.values;
    for (uint32_t row = 0; row < f->piece->block.rows && count > 0 && !f->failed; row++) {
        LLVMValueRef *value = f->piece->block.values + (size_t)count * row;
        cg_piece own;
        enter_row(f, &own, row);
        for (ir_ref s = f->piece->block.lets; ir_at(f->ir, s)->op == IR_LET; s = ir_at(f->ir, s)->next) {
            if (!differs(f, s))
                continue;
            *value = opjit_cg_emit(f, ir_operand(f->ir, s, 0));
            opjit_cg_remember(f, CG_VALUE, s, f->piece->block.row_depth, *value++);
        }
        leave_row(f);
    }
}

void opjit_cg_transpose_rows(cg_func *f, ir_ref body, uint32_t rows, LLVMValueRef iv)
{
    cg_loop *loop = &f->loops[f->loop_count - 1];
    cg_piece own;
    cg_piece_begin(f, &own);
    ir_ref inner = body;
    while (ir_at(f->ir, inner)->op == IR_LET)
        inner = ir_at(f->ir, inner)->next;
    f->piece->lanes = f->piece->copies = 1;
    f->piece->vec = f->loop_count - 1;
    loop->iv = iv;
    loop->offset = 0;
    opjit_cg_scope_push(f);
    f->piece->copy_scope = f->piece->loop_scope = f->piece->place_scope = f->scope_count - 1;
    f->piece->block = (cg_transpose){ .loop = f->loop_count - 1, .rows = rows, .lets = body };
    emit_lets(f);
    f->piece->block.on = !f->failed;
    opjit_cg_block(f, inner);
    opjit_cg_scope_pop(f);
    cg_piece_end(f);
}

/* --- what is in a block ----------------------------------------------------------------------------------------- */

typedef struct transposed {
    ir_ref body;
    ir_ref loads[MAX_TRANSPOSED];
    uint32_t count;
} transposed;

/* Whether all rows of the block may be loaded before one of them is stored: scratch that the block doesn't store is
 * memory of its own, and an input shares none but outputs'. */
static bool keeps_value(const cg_func *f, ir_ref body, ir_ref load)
{
    const uint32_t read = opjit_ir_root(f->ir, ir_at(f->ir, load)->ref);
    const uint8_t role = f->ir->tensors[read].role;
    bool stores_output = false;
    if (!f->info[load].fresh)
        return true;
    for (ir_ref s = body; s != 0; s = ir_at(f->ir, s)->next) {
        if (ir_at(f->ir, s)->op != IR_STORE)
            continue;
        const uint32_t stored = opjit_ir_root(f->ir, ir_at(f->ir, s)->ref);
        if (stored == read)
            return false;
        stores_output = stores_output || f->ir->tensors[stored].role == IR_OUT;
    }
    return role == IR_SCRATCH || (role == IR_IN && !stores_output);
}

static void find_loads(const cg_func *f, ir_ref node, transposed *t)
{
    const ir_node *n = ir_at(f->ir, node);
    for (uint32_t i = 0; i < t->count; i++)
        if (t->loads[i] == node)
            return;
    if (f->info[node].weight > CG_MAX_WEIGHT || !opjit_cg_varies(f, node))
        return;
    if (n->op == IR_LOAD && t->count < MAX_TRANSPOSED && opjit_cg_is_transposed(f, node) &&
        keeps_value(f, t->body, node))
        t->loads[t->count++] = node;
    for (uint32_t i = 0; i < n->count && n->op != IR_LOAD; i++)
        find_loads(f, ir_operand(f->ir, node, i), t);
}

/* Copies [first, end) of all rows. */
static void emit_group(cg_func *f, ir_ref body, const transposed *t, uint32_t first, uint32_t end, LLVMValueRef *values)
{
    cg_loop *loop = &f->loops[f->loop_count - 1];
    const uint32_t rows = f->piece->block.rows, each = t->count * rows;
    for (uint32_t u = first; u < end; u++) {
        loop->offset = (int64_t)u * f->piece->lanes * loop->step;
        for (uint32_t i = 0; i < t->count; i++)
            opjit_cg_transpose_load(f, t->loads[i], values + (size_t)(u - first) * each + (size_t)i * rows);
    }
    LLVMValueRef *let = f->piece->block.values;
    for (uint32_t row = 0; row < rows; row++) {
        cg_piece own;
        enter_row(f, &own, row);
        for (ir_ref s = f->piece->block.lets; ir_at(f->ir, s)->op == IR_LET; s = ir_at(f->ir, s)->next)
            if (differs(f, s))
                opjit_cg_remember(f, CG_VALUE, s, f->piece->block.row_depth, *let++);
        for (uint32_t u = first; u < end; u++) {
            loop->offset = (int64_t)u * f->piece->lanes * loop->step;
            opjit_cg_scope_push(f);
            f->piece->copy_scope = f->scope_count - 1;
            for (uint32_t i = 0; i < t->count; i++)
                opjit_cg_remember(f, CG_VALUE, t->loads[i], f->piece->copy_scope,
                                  values[(size_t)(u - first) * each + (size_t)i * rows + row]);
            opjit_cg_block(f, body);
            opjit_cg_scope_pop(f);
        }
        leave_row(f);
    }
    loop->offset = 0;
}

/* Lines that are stored around the caches are stored whole, one after the other; otherwise each copy is finished before
 * the next one is loaded, which needs fewer registers. */
void opjit_cg_transpose_copies(cg_func *f, ir_ref body, uint32_t copies)
{
    transposed t = { .body = body };
    for (ir_ref s = body; s; s = ir_at(f->ir, s)->next)
        for (uint32_t i = 0; i < ir_at(f->ir, s)->count; i++)
            find_loads(f, ir_operand(f->ir, s, i), &t);
    const uint32_t group = f->loops[f->loop_count - 1].plan->is.nontemporal ? copies : 1;
    LLVMValueRef *values = ARENA_ARRAY(f->arena, LLVMValueRef, (size_t)group * t.count * f->piece->block.rows + 1);
    if (!values) {
        f->failed = true;
        return;
    }
    for (uint32_t u = 0; u < copies; u += group)
        emit_group(f, body, &t, u, u + group, values);
}
