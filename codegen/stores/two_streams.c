/* SPDX-License-Identifier: Apache-2.0 */
/* two_streams.c - a long loop that does little more than store, beyond the first cache, stores at two places in turn: a
 * few vectors at its start, as many from its middle on, and so on.  So do rows of one value except for one element,
 * from the stage's first row and from its middle row on.  Lines that are not in the first cache take time to arrive,
 * and with two places more of them are on their way.  This takes no time to compile, unlike prefetch instructions,
 * which fast selection doesn't know.  Used where traits.c says so: on Zen; on Emerald Rapids it gains nothing. */
#include "codegen/emit/access.h"
#include "codegen/stores/pieces.h"

/* Whether the body's only statement stores a cheap value, to memory that is large and written once. */
static bool only_stores(const cg_func *f, const cg_facts *is)
{
    if (is->store.value == 0 || !f->traits->two_streams)
        return false;
    const ir_tensor *t = &f->ir->tensors[is->store.tensor];
    return t->role == IR_OUT && t->alias == 0 && t->bytes >= f->target->l2 / 2 && is->store.repeatable;
}

uint32_t opjit_cg_stream_copies(const cg_func *f, const cg_plan *plan, int64_t most, bool aligned)
{
    const cg_facts *is = &plan->is;
    if (is->unroll <= CG_MANY_COPIES || plan->binades || is->step != 1 || is->lanes < 2 || !only_stores(f, is) ||
        is->nontemporal || is->in_block)
        return 0;
    const ir_tensor *t = &f->ir->tensors[is->store.tensor];
    if (most < 2 * CG_STREAM_DISTANCE / opjit_ir_type_size(t->type) || !is->store.contiguous ||
        !(aligned || opjit_cg_is_aligned(f, is->body, is->var, is->lanes)))
        return 0;
    return plan->copies > 2 * CG_STREAM_GROUP ? plan->copies : 2 * CG_STREAM_GROUP;
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

/* The most copies that a row is a multiple of, up to as many as are unrolled; 0: not of CG_STREAM_GROUP. */
static uint32_t copies_in_row(const ir_node *loop, int64_t columns)
{
    uint32_t copies = loop->unroll / 2;
    while (copies >= CG_STREAM_GROUP && columns % ((int64_t)copies * loop->vec) != 0)
        copies /= 2;
    return copies >= CG_STREAM_GROUP ? copies : 0;
}

cg_two_rows opjit_cg_find_two_rows(const cg_func *f, const cg_facts *is)
{
    const cg_two_rows none = { .copies = 0 };
    const ir_ref row = ir_at(f->ir, is->around)->ref;
    const ir_node *n = ir_at(f->ir, is->loop);
    int64_t growth;
    if (!is->alone || is->lanes < 2 || is->nontemporal || (n->flags & IR_FOR_TRANSPOSE) != 0 || !only_stores(f, is) ||
        !ir_is_index_const(f->ir, is->lo) || !ir_is_index_const(f->ir, is->hi) || ir_index_value(f->ir, is->lo) != 0)
        return none;
    const cg_access a = opjit_cg_access_of(f, is->body);
    const ir_tensor *t = &f->ir->tensors[a.tensor];
    const int64_t columns = ir_index_value(f->ir, is->hi);
    const ir_ref point = opjit_cg_find_point(f, is);
    cg_two_rows two = { .copies = 2 * copies_in_row(n, columns), .row = columns };
    two.growth = point ? opjit_cg_point_growth(f, is, point, row) : 0;
    const uint64_t vector = (uint64_t)is->lanes * a.bits / 8;
    if (two.growth == 0 || two.copies == 0 || !opjit_cg_growth(f, &a, row, &growth) || growth != columns ||
        t->align % vector != 0 || t->offset != 0 || (uint64_t)columns * a.bits / 8 % vector != 0)
        return none;
    return two;
}

/* --- rounds ------------------------------------------------------------------------------------------------------- */

void opjit_cg_put_streams(const cg_pieces *p, uint32_t copies, int64_t min, int64_t max, cg_range *r)
{
    cg_func *f = p->f;
    const uint32_t lanes = p->plan->is.lanes;
    const int64_t size = (int64_t)lanes * copies, whole = max - max % size;
    const bool known = min == max;
    LLVMValueRef half =
        known ? cg_number(f, whole / 2)
              : LLVMBuildLShr(f->b, LLVMBuildAnd(f->b, r->count, cg_number(f, -size), ""), cg_number(f, 1), "");
    LLVMValueRef end = opjit_cg_opaque(f, opjit_cg_add(f, r->pos, half));
    LLVMValueRef guard = min < size ? LLVMBuildICmp(f->b, LLVMIntNE, end, r->pos, "") : NULL;
    cg_count c;
    LLVMValueRef at = opjit_cg_count_begin(f, &c, false, r->pos, guard);
    cg_piece own;
    cg_piece_begin(f, &own);
    f->piece->distance = half;
    opjit_cg_piece(p, lanes, copies, at);
    cg_piece_end(f);
    opjit_cg_count_end(f, &c, size / 2, end);
    LLVMValueRef done = known ? cg_number(f, whole) : LLVMBuildAnd(f->b, r->count, cg_number(f, -size), "");
    *r = (cg_range){ opjit_cg_add(f, r->pos, done), opjit_cg_sub(f, r->count, done), r->end, false, CG_HERE };
}

void opjit_cg_put_two_rows(const cg_pieces *p, cg_range *r)
{
    cg_func *f = p->f;
    const uint32_t copies = p->plan->streams;
    const int64_t most = p->plan->is.most, size = (int64_t)p->plan->is.lanes * copies / 2;
    cg_piece own;
    cg_piece_begin(f, &own);
    f->piece->distance = LLVMBuildMul(f->b, f->rows_apart, cg_number(f, f->stage->rows.row), "");
    if (most == size) {
        opjit_cg_piece(p, p->plan->is.lanes, copies, r->pos);
    } else {
        cg_count c;
        LLVMValueRef end = opjit_cg_opaque(f, cg_number(f, most));
        LLVMValueRef at = opjit_cg_count_begin(f, &c, false, r->pos, NULL);
        opjit_cg_piece(p, p->plan->is.lanes, copies, at);
        opjit_cg_count_end(f, &c, size, end);
    }
    cg_piece_end(f);
}
