/* SPDX-License-Identifier: Apache-2.0 */
/* address.c - where loads and stores are: coordinates, addresses, and what is remembered of them. */
#include "codegen/emit/access.h"
#include "codegen/gpu/grid.h"

cg_access opjit_cg_access_of(const cg_func *f, ir_ref node)
{
    const ir_node *n = ir_at(f->ir, node);
    const ir_tensor *t = &f->ir->tensors[n->ref];
    return (cg_access){ .tensor = n->ref,
                        .rank = t->rank,
                        .first = n->op == IR_STORE,
                        .node = node,
                        .bits = 8 * opjit_ir_type_size(t->type) };
}

/* --- addresses ---------------------------------------------------------------------------------------------------- */

static LLVMValueRef load_slot(cg_func *f, LLVMValueRef array, LLVMTypeRef type, uint64_t slot)
{
    LLVMValueRef index = opjit_cg_number(f, 64, 1, slot);
    return LLVMBuildLoad2(f->entry, type, slot ? LLVMBuildGEP2(f->entry, type, array, &index, 1, "") : array, "");
}

/* Address of element 0, made in the entry block. */
LLVMValueRef opjit_cg_base_pointer(cg_func *f, uint32_t tensor)
{
    const ir_tensor *t = &f->ir->tensors[tensor];
    if (f->bases[tensor])
        return f->bases[tensor];
    LLVMValueRef p, offset = NULL;
    if (t->role == IR_VIEW) {
        p = opjit_cg_base_pointer(f, t->of);
        offset = opjit_cg_number(f, 64, 1, (uint64_t)t->offset * opjit_ir_type_size(t->type));
    } else if (f->cpu->grid) {
        p = opjit_cg_grid_base(f, tensor);
    } else if (f->by_table && t->role != IR_SCRATCH) {
        p = load_slot(f, LLVMGetParam(f->fn, 0), f->type.ptr, tensor - 1);
    } else if (t->role == IR_TEMP || t->role == IR_SCRATCH) {
        p = LLVMGetParam(f->fn, t->role == IR_TEMP ? 2 : 3);
        offset = opjit_cg_number(f, 64, 1, (uint64_t)t->offset);
    } else {
        p = load_slot(f, LLVMGetParam(f->fn, 0), f->type.ptr, t->slot);
        offset = t->role == IR_KEPT ? opjit_cg_number(f, 64, 1, (uint64_t)t->offset) : NULL;
    }
    if (offset && !LLVMIsNull(offset))
        p = LLVMBuildGEP2(f->entry, f->type.i8, p, &offset, 1, "");
    return f->bases[tensor] = p;
}

/* Elements from one value of the variable to the next; false: not affine. */
bool opjit_cg_growth(const cg_func *f, const cg_access *a, ir_ref var, int64_t *out)
{
    *out = 0;
    for (uint32_t d = 0; d < a->rank; d++) {
        int64_t factor, part;
        if (cg_stride(f, a, d) == 0)
            continue;
        if (!opjit_cg_affine(f, cg_coordinate(f, a, d), var, &factor) ||
            !checked_muli(factor, cg_stride(f, a, d), &part) || !checked_addi(*out, part, out))
            return false;
    }
    return true;
}

LLVMValueRef opjit_cg_plus(cg_func *f, LLVMValueRef a, LLVMValueRef b)
{
    return !a || !b ? (a ? a : b) : opjit_cg_add(f, a, b);
}

LLVMValueRef opjit_cg_times(cg_func *f, LLVMValueRef a, int64_t k)
{
    if (!a || k == 1)
        return a;
    return k == 0 ? NULL
                  : LLVMBuildMul(f->b, a, opjit_cg_number(f, opjit_cg_bits(a), opjit_cg_lanes(a), (uint64_t)k), "");
}

LLVMValueRef opjit_cg_at(cg_func *f, ir_ref node, ir_ref var, LLVMValueRef quotient)
{
    const ir_node *n = ir_at(f->ir, node);
    if (node == var || (n->op == IR_CONST && n->imm == 0))
        return NULL;
    if (!(f->info[node].vary & f->info[var].vary))
        return opjit_cg_varies(f, node) ? opjit_cg_base(f, node) : opjit_cg_emit(f, node);
    if (n->op == IR_IDIV || n->op == IR_IMOD)
        return n->op == IR_IDIV ? quotient : NULL;
    if (n->op == IR_GET)
        return opjit_cg_at(f, ir_operand(f->ir, n->ref, 0), var, quotient);
    LLVMValueRef a = opjit_cg_at(f, ir_operand(f->ir, node, 0), var, quotient);
    if (n->op == IR_IMUL)
        return opjit_cg_times(f, a, ir_index_value(f->ir, ir_operand(f->ir, node, 1)));
    LLVMValueRef b = opjit_cg_at(f, ir_operand(f->ir, node, 1), var, quotient);
    if (n->op == IR_ISCALE)
        return a && b ? LLVMBuildMul(f->b, a, b, "") : NULL;
    if (n->op == IR_ISUB)
        b = b ? LLVMBuildNeg(f->b, b, "") : NULL;
    return opjit_cg_plus(f, a, b);
}

/* What a coordinate is with var at 0, where that is known without more ado: 0, or the other term of a sum. */
static ir_ref at_zero(const cg_func *f, ir_ref coordinate, ir_ref var)
{
    const ir_node *n = ir_at(f->ir, coordinate);
    if (coordinate == var)
        return 0;
    for (uint32_t i = 0; i < 2 && n->op == IR_IADD; i++)
        if (ir_operand(f->ir, coordinate, i) == var)
            return ir_operand(f->ir, coordinate, 1 - i);
    return coordinate;
}

static bool is_same_row(const cg_func *f, const cg_row *a, const cg_row *b)
{
    bool same = a->tensor == b->tensor;
    for (uint32_t d = 0; same && d < sizeof a->at / sizeof *a->at; d++) {
        const ir_ref x = a->at[d], y = b->at[d];
        same = x == y || (x != 0 && y != 0 && ir_at(f->ir, x)->op == IR_ISCALE && ir_at(f->ir, y)->op == IR_ISCALE &&
                          ir_operand(f->ir, x, 0) == ir_operand(f->ir, y, 0) &&
                          ir_operand(f->ir, x, 1) == ir_operand(f->ir, y, 1));
    }
    return same;
}

/* The address with var at 0.  Adjacent loops share the rows that they have in common. */
static LLVMValueRef row_pointer(cg_func *f, const cg_access *a, ir_ref var)
{
    cg_row row = { .tensor = a->tensor };
    bool plain = true;
    for (uint32_t d = 0; d < a->rank; d++) {
        const ir_ref c = cg_stride(f, a, d) == 0 ? 0 : at_zero(f, cg_coordinate(f, a, d), var);
        row.at[d] = c;
        plain = plain && (c == 0 || (!(f->info[c].vary & f->info[var].vary) && !opjit_cg_varies(f, c)));
    }
    for (uint32_t i = 0; plain && i < CG_MAX_ROWS; i++)
        if (is_same_row(f, &f->rows[i], &row) && opjit_cg_live(f, &f->rows[i].entry))
            return f->rows[i].entry.value;
    LLVMValueRef offset = NULL, p = opjit_cg_base_pointer(f, a->tensor);
    for (uint32_t d = 0; d < a->rank; d++)
        if (cg_stride(f, a, d) != 0)
            offset = opjit_cg_plus(
                f, offset, opjit_cg_times(f, opjit_cg_at(f, cg_coordinate(f, a, d), var, NULL), cg_stride(f, a, d)));
    if (offset)
        p = opjit_cg_offset(f, opjit_cg_int(f, a->bits, 1), p, offset);
    row.entry = opjit_cg_entry(f, f->piece->copy_scope, p);
    if (plain)
        f->rows[f->row_count++ % CG_MAX_ROWS] = row;
    return p;
}

void opjit_cg_hoist_pointer(cg_func *f, ir_ref node, uint32_t loop)
{
    const cg_access a = opjit_cg_access_of(f, node);
    const ir_ref var = f->loops[loop].var;
    int64_t unused;
    f->cache[CG_POINTER][node].value = NULL;
    if (!opjit_cg_growth(f, &a, var, &unused) ||
        (f->piece->lanes > 1 && !opjit_cg_growth(f, &a, f->loops[f->piece->vec].var, &unused)) ||
        (f->piece->block.on && !opjit_cg_growth(f, &a, f->loops[f->piece->block.loop].var, &unused)))
        return;
    bool early = f->piece->lanes == 1 && !f->piece->block.on;
    for (uint32_t d = 0; d < a.rank; d++) {
        const cg_info *info = &f->info[cg_coordinate(f, &a, d)];
        if (cg_stride(f, &a, d) == 0)
            continue;
        early = early && !info->late && (info->inside & ~f->info[var].vary) >> 1 == 0;
        if (info->fresh || info->stays || (info->inside & ~f->info[var].vary) >> loop)
            return;
        /* Looks through a let inside the loop only if the expression varies with the loop. */
        if ((info->inside & ~info->vary) >> loop & 1)
            return;
    }
    LLVMBasicBlockRef here = opjit_cg_early_begin(f, early ? CG_EARLY : CG_HERE);
    LLVMValueRef p = row_pointer(f, &a, var);
    opjit_cg_early_end(f, here);
    opjit_cg_remember(f, CG_POINTER, node, f->scope_count - 1, p);
}

/* The element offset of lane 0 in i64, including the vectorised variable's. */
LLVMValueRef opjit_cg_lane0_offset(cg_func *f, const cg_access *a, int64_t lane0)
{
    LLVMValueRef offset = NULL;
    for (uint32_t d = 0; d < a->rank; d++) {
        const ir_ref c = cg_coordinate(f, a, d);
        if (cg_stride(f, a, d) != 0)
            offset = opjit_cg_plus(f, offset,
                                   opjit_cg_times(f, opjit_cg_varies(f, c) ? opjit_cg_base(f, c) : opjit_cg_emit(f, c),
                                                  cg_stride(f, a, d)));
    }
    LLVMValueRef constant = opjit_cg_number(f, 64, 1, (uint64_t)lane0);
    return !offset ? constant : lane0 ? LLVMBuildAdd(f->b, offset, constant, "") : offset;
}

/* The loop before which a pointer was made: the innermost one, or an enclosing one if the same load is in that, too. */
static cg_loop *loop_of_pointer(cg_func *f, ir_ref node)
{
    uint32_t i = f->loop_count - 1;
    while (i > 0 && f->loops[i].scope != f->cache[CG_POINTER][node].scope)
        i--;
    return &f->loops[i];
}

LLVMValueRef opjit_cg_moved_pointer(cg_func *f, const cg_access *a, ir_ref node)
{
    LLVMValueRef p = opjit_cg_recall(f, CG_POINTER, node);
    cg_loop *const loop = loop_of_pointer(f, node);
    LLVMTypeRef element = opjit_cg_int(f, a->bits, 1);
    int64_t grow = 0;
    opjit_cg_growth(f, a, loop->var, &grow);
    if (!opjit_cg_recall(f, CG_PLACE, node)) {
        LLVMValueRef by = opjit_cg_times(f, opjit_cg_variable(f, loop), grow);
        opjit_cg_remember_address(f, CG_PLACE, node, f->piece->place_scope,
                                  by ? opjit_cg_offset(f, element, p, by) : p);
    }
    p = opjit_cg_address(f, CG_PLACE, node, element, loop == &f->loops[f->loop_count - 1] ? grow : 0);
    if (!f->piece->block.on)
        return p;
    opjit_cg_growth(f, a, f->loops[f->piece->block.loop].var, &grow);
    return opjit_cg_offset(f, element, p,
                           opjit_cg_number(f, 64, 1, (uint64_t)(grow * f->loops[f->piece->block.loop].offset)));
}

/* The address of lane 0: a pointer made before a loop, plus what the loop adds; or all of it. */
LLVMValueRef opjit_cg_lane0(cg_func *f, const cg_access *a)
{
    const cg_loop *vec = &f->loops[f->piece->vec];
    int64_t grow = 0;
    if (opjit_cg_recall(f, CG_POINTER, a->node))
        return opjit_cg_moved_pointer(f, a, a->node);
    if (f->piece->lanes > 1)
        opjit_cg_growth(f, a, vec->var, &grow);
    return opjit_cg_offset(f, opjit_cg_int(f, a->bits, 1), opjit_cg_base_pointer(f, a->tensor),
                           opjit_cg_lane0_offset(f, a, grow * (f->piece->lanes > 1 ? vec->offset : 0)));
}

LLVMValueRef opjit_cg_next_vector(cg_func *f, ir_ref store, uint32_t lanes, LLVMValueRef from)
{
    const cg_access a = opjit_cg_access_of(f, store);
    cg_loop *loop = &f->loops[f->loop_count - 1];
    cg_piece own;
    cg_piece_begin(f, &own);
    opjit_cg_scope_push(f);
    f->piece->copy_scope = f->piece->loop_scope = f->piece->place_scope = f->scope_count - 1;
    loop->iv = from;
    LLVMValueRef at = LLVMBuildPtrToInt(f->b, opjit_cg_lane0(f, &a), f->type.i64, "");
    opjit_cg_scope_pop(f);
    cg_piece_end(f);
    at = LLVMBuildAnd(f->b, LLVMBuildNeg(f->b, at, ""), opjit_cg_number(f, 64, 1, lanes * a.bits / 8 - 1), "");
    at = LLVMBuildLShr(f->b, at, opjit_cg_number(f, 64, 1, (uint64_t)__builtin_ctz(a.bits / 8)), "");
    return LLVMBuildAdd(f->b, from, at, "");
}

/* The number of elements to the end of the line. */
LLVMValueRef opjit_cg_head(cg_func *f, ir_ref node)
{
    const ir_node *n = ir_at(f->ir, node);
    const uint32_t size = opjit_ir_type_size(f->ir->tensors[n->ref].type);
    LLVMValueRef p = opjit_cg_offset(f, opjit_cg_int(f, 8 * size, 1), opjit_cg_base_pointer(f, n->ref),
                                     opjit_cg_emit(f, ir_operand(f->ir, node, 0)));
    LLVMValueRef at = LLVMBuildPtrToInt(f->b, p, f->type.i64, "");
    at = LLVMBuildAnd(f->b, at, opjit_cg_number(f, 64, 1, IR_LINE - 1), "");
    LLVMValueRef rest = LLVMBuildSub(f->b, opjit_cg_number(f, 64, 1, IR_LINE), at, "");
    return LLVMBuildLShr(f->b, rest, opjit_cg_number(f, 64, 1, (uint64_t)__builtin_ctz(size)), "");
}

bool opjit_cg_contiguous(const cg_func *f, ir_ref node, ir_ref var, int64_t step)
{
    const cg_access a = opjit_cg_access_of(f, node);
    int64_t grow;
    return opjit_cg_growth(f, &a, var, &grow) && step == 1 && grow == 1;
}

LLVMValueRef opjit_cg_load_element(cg_func *f, const cg_access *a, LLVMValueRef pointer, uint32_t lanes, uint32_t align)
{
    LLVMTypeRef type = opjit_cg_int(f, a->bits, lanes);
    const uint32_t words = a->bits * lanes / 32, least = opjit_cg_element_alignment(f, a);
    const bool as_words =
        f->cpu->grid && words > 1 && align >= 4 * words; /* one instruction, whatever the elements are */
    LLVMValueRef v = LLVMBuildLoad2(f->b, as_words ? opjit_cg_int(f, 32, words) : type, pointer, "");
    LLVMSetAlignment(v, least < a->bits / 8 ? least : align);
    return as_words ? LLVMBuildBitCast(f->b, v, type, "") : v;
}
