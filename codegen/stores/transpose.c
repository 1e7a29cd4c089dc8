/* SPDX-License-Identifier: Apache-2.0 */
/* transpose.c - blocks of rows and lanes that are transposed in registers: an input that is contiguous along the rows
 * is loaded a short vector per lane, shuffled, and is then a vector per row.  Rows are copies of the body, as unrolled
 * lanes are; what depends on the row is made anew in each. */
#include "codegen/stores/plan.h"

enum { MAX_TRANSPOSED = 8 }; /* loads of a body; more are done lane by lane */

/* --- shuffles --------------------------------------------------------------------------------------------------- */

LLVMValueRef opjit_cg_shuffle(cg_func *f, LLVMValueRef a, LLVMValueRef b, const uint32_t *places, uint32_t count)
{
    LLVMValueRef mask[CG_MAX_LANES];
    for (uint32_t i = 0; i < count; i++)
        mask[i] = places[i] == UINT32_MAX ? LLVMGetPoison(f->type.i32) : LLVMConstInt(f->type.i32, places[i], 0);
    return LLVMBuildShuffleVector(f->b, a, b, LLVMConstVector(mask, count), "");
}

/* Concatenates vectors, a power of two of them; overwrites parts. */
LLVMValueRef opjit_cg_join(cg_func *f, LLVMValueRef *parts, uint32_t count)
{
    uint32_t places[CG_MAX_LANES];
    for (; count > 1; count /= 2) {
        const uint32_t lanes = 2 * opjit_cg_lanes(parts[0]);
        for (uint32_t i = 0; i < lanes; i++)
            places[i] = i;
        for (uint32_t i = 0; i < count / 2; i++)
            parts[i] = opjit_cg_shuffle(f, parts[2 * i], parts[2 * i + 1], places, lanes);
    }
    return parts[0];
}

/* In each group of `size` lanes: interleaves the lanes of the lower or upper halves of a and b. */
static LLVMValueRef interleave(cg_func *f, LLVMValueRef a, LLVMValueRef b, uint32_t size, bool upper)
{
    const uint32_t lanes = opjit_cg_lanes(a);
    uint32_t places[CG_MAX_LANES];
    for (uint32_t i = 0; i < lanes; i++)
        places[i] = i / size * size + (upper ? size / 2 : 0) + i % size / 2 + (i % 2 ? lanes : 0);
    return opjit_cg_shuffle(f, a, b, places, lanes);
}

/* The squares of count x count lanes that count vectors have side by side, each transposed. */
static void transpose_squares(cg_func *f, LLVMValueRef *v, uint32_t count)
{
    LLVMValueRef next[CG_MAX_LANES];
    for (uint32_t stage = 1; stage < count; stage *= 2) {
        for (uint32_t i = 0; i < count; i++)
            next[i] = interleave(f, v[i / 2], v[i / 2 + count / 2], count, i % 2);
        for (uint32_t i = 0; i < count; i++)
            v[i] = next[i];
    }
}

void opjit_cg_transpose(cg_func *f, LLVMValueRef *v, uint32_t lanes, LLVMValueRef *out)
{
    const uint32_t rows = opjit_cg_lanes(v[0]), native = f->target->vector_bytes * 8 / opjit_cg_bits(v[0]);
    const uint32_t wide = lanes < native ? lanes : native;
    LLVMValueRef done[CG_MAX_LANES], parts[CG_MAX_LANES], square[CG_MAX_LANES];
    for (uint32_t at = 0; at < lanes; at += wide) {
        for (uint32_t i = 0; i < rows; i++) {
            for (uint32_t k = 0; k < wide / rows; k++)
                parts[k] = v[at + k * rows + i];
            square[i] = opjit_cg_join(f, parts, wide / rows);
        }
        transpose_squares(f, square, rows);
        for (uint32_t i = 0; i < rows; i++)
            done[i * (lanes / wide) + at / wide] = square[i];
    }
    for (uint32_t i = 0; i < rows; i++)
        out[i] = opjit_cg_join(f, done + i * (lanes / wide), lanes / wide);
}

LLVMValueRef opjit_cg_pick(cg_func *f, LLVMValueRef *parts, const uint32_t *starts, uint32_t count, uint32_t step)
{
    const uint32_t lanes = opjit_cg_lanes(parts[0]);
    LLVMValueRef v = NULL;
    uint32_t places[CG_MAX_LANES], done = 0;
    for (uint32_t k = 0; k < count; k += 2) { /* two parts at a time, then what remains */
        LLVMValueRef a = parts[k], b = k + 1 < count ? parts[k + 1] : parts[k];
        uint32_t end = done;
        for (; end < lanes && (k + 2 >= count || end * step < starts[k + 2]); end++)
            places[end] = k + 1 < count && end * step >= starts[k + 1] ? lanes + end * step - starts[k + 1]
                                                                       : end * step - starts[k];
        for (uint32_t i = 0; i < lanes; i++)
            places[i] = i >= done && i < end ? places[i] : UINT32_MAX;
        LLVMValueRef here = opjit_cg_shuffle(f, a, b, places, lanes);
        for (uint32_t i = 0; i < lanes; i++)
            places[i] = i < done ? i : lanes + i;
        v = v ? opjit_cg_shuffle(f, v, here, places, lanes) : here;
        done = end;
    }
    return v;
}

LLVMValueRef opjit_cg_zip(cg_func *f, LLVMValueRef *v, uint32_t count)
{
    uint32_t places[CG_MAX_LANES];
    for (; count > 1; count /= 2) {
        const uint32_t lanes = opjit_cg_lanes(v[0]);
        for (uint32_t i = 0; i < 2 * lanes; i++)
            places[i] = i / 2 + (i % 2 ? lanes : 0);
        for (uint32_t i = 0; i < count / 2; i++)
            v[i] = opjit_cg_shuffle(f, v[i], v[i + count / 2], places, 2 * lanes);
    }
    return v[0];
}

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
    ir_ref loads[MAX_TRANSPOSED];
    uint32_t count;
} transposed;

static void find_loads(const cg_func *f, ir_ref node, transposed *t)
{
    const ir_node *n = ir_at(f->ir, node);
    for (uint32_t i = 0; i < t->count; i++)
        if (t->loads[i] == node)
            return;
    if (f->info[node].weight > CG_MAX_WEIGHT || !opjit_cg_varies(f, node))
        return;
    if (n->op == IR_LOAD && t->count < MAX_TRANSPOSED && opjit_cg_is_transposed(f, node))
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
    transposed t = { .count = 0 };
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
