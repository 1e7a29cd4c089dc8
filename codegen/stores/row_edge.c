/* SPDX-License-Identifier: Apache-2.0 */
/* row_edge.c - the start and the end of a row whose lines are stored around the caches.  Its first and its last line
 * may belong to two rows.  Where rows follow each other in memory, such a line is assembled in a buffer: the row that
 * ends writes its part; the row that begins writes the rest and stores the whole line.  Both parts are written as a
 * line's worth of whole vectors, which reach over the line's other end: the buffer has room on both sides.  The first
 * row of a piece of work and the last one have no partner: they store the vectors where they belong, and what these
 * reach over is their own row's, stored twice. */
#include "codegen/stores/pieces.h"

enum { LINE = IR_LINE };

static LLVMValueRef address(cg_func *f, LLVMValueRef pointer, LLVMValueRef bytes)
{
    return opjit_cg_offset(f, f->type.i8, pointer, bytes);
}

/* Three lines: room on the left, the shared line, room on the right. */
static LLVMValueRef shared_line(cg_func *f)
{
    if (!f->line) {
        f->line = opjit_cg_alloca(f, LLVMArrayType2(f->type.i8, 3 * LINE));
        LLVMSetAlignment(f->line, LINE);
    }
    return f->line;
}

static void put_line(cg_func *f, const cg_edge *e, LLVMValueRef pointer, uint32_t align)
{
    for (uint32_t i = 0; i < e->count; i++)
        opjit_cg_store_vector(f, e->values[i], address(f, pointer, cg_number(f, i * (LINE / e->count))), align, false);
}

/* The row begins `place` bytes after the start of a line, in which the previous row left its end. */
static void put_begin(cg_func *f, const cg_edge *e, LLVMValueRef place, uint32_t align)
{
    LLVMValueRef middle = address(f, shared_line(f), cg_number(f, LINE));
    LLVMValueRef first = LLVMBuildICmp(f->b, LLVMIntEQ, opjit_cg_variable(f, &f->loops[0]), LLVMGetParam(f->fn, 4), "");
    LLVMBasicBlockRef after = opjit_cg_if_begin(f, first);
    put_line(f, e, e->pointer, align);
    opjit_cg_if_end(f, after);
    after = opjit_cg_if_begin(f, LLVMBuildNot(f->b, first, ""));
    put_line(f, e, address(f, middle, place), align);
    LLVMValueRef line = address(f, e->pointer, LLVMBuildNeg(f->b, place, ""));
    for (uint32_t i = 0; i < e->count; i++) {
        const uint32_t bytes = LINE / e->count;
        LLVMValueRef v =
            LLVMBuildLoad2(f->b, LLVMTypeOf(e->values[i]), address(f, middle, cg_number(f, i * bytes)), "");
        LLVMSetAlignment(v, bytes);
        opjit_cg_store_vector(f, v, address(f, line, cg_number(f, i * bytes)), bytes, true);
    }
    opjit_cg_if_end(f, after);
}

/* The row ends `place` bytes after the start of a line; e->pointer is a line's length before that. */
static void put_end(cg_func *f, const cg_edge *e, LLVMValueRef place, uint32_t align)
{
    LLVMValueRef next = LLVMBuildAdd(f->b, opjit_cg_variable(f, &f->loops[0]), cg_number(f, 1), "");
    LLVMValueRef last = LLVMBuildICmp(f->b, LLVMIntEQ, next, LLVMGetParam(f->fn, 5), "");
    LLVMValueRef left = address(f, shared_line(f), place);
    put_line(f, e, LLVMBuildSelect(f->b, last, e->pointer, left, ""), align);
}

void opjit_cg_row_edge(cg_func *f, const cg_plan *plan)
{
    const ir_ref loop = plan->is.loop;
    const ir_node *n = ir_at(f->ir, loop);
    const uint32_t size = opjit_ir_type_size(f->ir->tensors[ir_at(f->ir, n->body)->ref].type), elements = LINE / size;
    LLVMValueRef from = opjit_cg_emit(f, ir_operand(f->ir, loop, n->flags & IR_FOR_HEAD ? 0 : 1));
    if (n->flags & IR_FOR_TAIL)
        from = opjit_cg_sub(f, from, cg_number(f, elements));
    cg_edge e = { .count = 0 };
    cg_piece own;
    cg_piece_begin(f, &own);
    f->piece->lane_bits = 8 * size;
    f->loops[f->loop_count++] = (cg_loop){ .var = n->ref, .iv = from, .step = 1, .threads = 1, .plan = plan };
    opjit_cg_scope_push(f);
    f->loops[f->loop_count - 1].scope = f->next_scope;
    opjit_cg_hoist(f, n->body, f->loop_count - 1, n->vec);
    f->piece->edge = &e;
    f->piece->shifted = true;
    opjit_cg_copies(f, n->body, n->vec, elements / n->vec, from);
    opjit_cg_scope_pop(f);
    f->loop_count--;
    cg_piece_end(f);
    if (!(n->flags & IR_FOR_CARRY)) {
        put_line(f, &e, e.pointer, size);
        return;
    }
    LLVMValueRef place = LLVMBuildPtrToInt(f->b, e.pointer, f->type.i64, "");
    place = LLVMBuildAnd(f->b, place, cg_number(f, LINE - 1), "");
    if (n->flags & IR_FOR_HEAD)
        put_begin(f, &e, place, size);
    else
        put_end(f, &e, place, size);
}
