/* SPDX-License-Identifier: Apache-2.0 */
/* two_streams.c - a long loop that does hardly more than store, beyond the first cache, goes on at two fronts: a few
 * vectors where it begins, as many from its middle on, and so on.  So do rows of one value but for one element,
 * from the stage's first row and from the middle one on.  Lines that are not in the first cache take their time to
 * come, and more of them are on their way at two fronts.  It costs nothing to compile, unlike instructions that
 * fetch, which fast selection doesn't know.  So it is on Zen, where two fronts take 0.90 to 0.97 of the time of one;
 * on Emerald Rapids they take as much or a tenth more. */
#include "codegen/emit/access.h"
#include "codegen/stores/pieces.h"

enum {
    GROUP = 8,              /* copies at a front before the other one has its turn: a few lines in order */
    LEAST_DISTANCE = 16384, /* bytes from front to front; those in one page are slower than one */
};

bool opjit_cg_is_zen(const cg_func *f)
{
    return strncmp(f->target->tune, "znver", 5) == 0;
}

/* Whether the body's only statement stores what hardly takes time, to memory that is written once and is large. */
static bool only_stores(const cg_func *f, ir_ref body)
{
    const ir_node *s = ir_at(f->ir, body);
    if (s->op != IR_STORE || s->next != 0 || f->cpu->grid)
        return false;
    const ir_tensor *t = &f->ir->tensors[s->ref];
    const cg_info *value = &f->info[ir_operand(f->ir, body, 0)];
    return t->role == IR_OUT && t->alias == 0 && t->bytes >= f->target->l2 / 2 && !value->fresh && !value->guarded &&
           opjit_cg_is_zen(f);
}

uint32_t opjit_cg_front_copies(const cg_pieces *p, const cg_range *r)
{
    cg_func *f = p->f;
    if (!p->cheap || p->halves || p->step != 1 || p->lanes < 2 || !only_stores(f, p->body) || f->nontemporal ||
        f->turn.on)
        return 0;
    const ir_tensor *t = &f->ir->tensors[ir_at(f->ir, p->body)->ref];
    if (r->max < 2 * LEAST_DISTANCE / opjit_ir_type_size(t->type) ||
        !opjit_cg_contiguous(f, p->body, f->loops[f->loop_count - 1].var, 1) ||
        !(f->aligned || opjit_cg_is_aligned(f, p->body, p->lanes)))
        return 0;
    return p->unroll > 2 * GROUP ? p->unroll : 2 * GROUP;
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

/* The most copies that a row is a multiple of, up to as many as are unrolled; 0: not of GROUP. */
static uint32_t copies_in_row(const ir_node *loop, int64_t columns)
{
    uint32_t copies = loop->unroll / 2;
    while (copies >= GROUP && columns % ((int64_t)copies * loop->vec) != 0)
        copies /= 2;
    return copies >= GROUP ? copies : 0;
}

bool opjit_cg_rows_at_fronts(cg_func *f, ir_ref stage, cg_fronts *out)
{
    const ir_ref row = ir_at(f->ir, stage)->ref, statement = ir_at(f->ir, stage)->body;
    const ir_node *n = ir_at(f->ir, statement);
    int64_t columns, growth;
    if (n->op != IR_FOR || n->next != 0 || n->vec < 2 || n->vec > CG_MAX_LANES || !is_power_of_two(n->vec) ||
        n->imm != 1 || (n->flags & (IR_FOR_NT | IR_FOR_TURN)) != 0 || !only_stores(f, n->body) ||
        !ir_is_index_const(f->ir, ir_operand(f->ir, statement, 0)) ||
        !ir_is_index_const(f->ir, ir_operand(f->ir, statement, 1)) ||
        ir_index_value(f->ir, ir_operand(f->ir, statement, 0)) != 0)
        return false;
    const cg_access a = opjit_cg_access_of(f, n->body);
    const ir_tensor *t = &f->ir->tensors[a.tensor];
    columns = ir_index_value(f->ir, ir_operand(f->ir, statement, 1));
    f->loops[f->loop_count++] = (cg_loop){ .var = n->ref, .step = 1, .threads = 1 };
    const ir_ref point = opjit_cg_find_point(f, n->body, n->vec, columns);
    out->point_growth = point ? opjit_cg_point_growth(f, point, row) : 0;
    f->loop_count--;
    out->copies = 2 * copies_in_row(n, columns);
    const uint64_t vector = (uint64_t)n->vec * a.bits / 8;
    if (out->point_growth == 0 || out->copies == 0 || !opjit_cg_growth(f, &a, row, &growth) || growth != columns ||
        t->align % vector != 0 || t->offset != 0 || (uint64_t)columns * a.bits / 8 % vector != 0)
        return false;
    out->row = columns;
    return true;
}

/* --- rounds ------------------------------------------------------------------------------------------------------- */

/* What is remembered at one front is of no use at the other. */
static bool second_memory(cg_func *f)
{
    for (uint32_t i = 0; i < CG_SLOTS; i++) {
        if (!f->fronts.cache[i])
            f->fronts.cache[i] = ARENA_ARRAY(f->arena, cg_entry, f->ir->node_count);
        if (!f->fronts.cache[i])
            return false;
        memcpy(f->fronts.cache[i], f->cache[i], f->ir->node_count * sizeof(cg_entry));
    }
    return true;
}

static void swap_fronts(cg_func *f)
{
    cg_loop *loop = &f->loops[f->loop_count - 1];
    LLVMValueRef iv = loop->iv;
    cg_entry *cache[CG_SLOTS];
    loop->iv = f->fronts.iv;
    f->fronts.iv = iv;
    memcpy(cache, f->cache, sizeof(cache));
    memcpy(f->cache, f->fronts.cache, sizeof(cache));
    memcpy(f->own, f->cache, sizeof(cache));
    memcpy(f->fronts.cache, cache, sizeof(cache));
}

void opjit_cg_front_round(cg_func *f, ir_ref body, uint32_t copies)
{
    cg_loop *loop = &f->loops[f->loop_count - 1];
    if (!second_memory(f)) {
        f->failed = true;
        return;
    }
    f->fronts.iv = opjit_cg_add(f, loop->iv, f->fronts.distance);
    for (uint32_t u = 0; u < copies; u++) {
        loop->offset = (int64_t)(u / (2 * GROUP) * GROUP + u % GROUP) * f->lanes;
        opjit_cg_copy(f, body);
        if (u % GROUP == GROUP - 1)
            swap_fronts(f);
    }
}

void opjit_cg_put_fronts(const cg_pieces *p, uint32_t copies, cg_range *r)
{
    cg_func *f = p->f;
    const int64_t size = (int64_t)p->lanes * copies, whole = r->max - r->max % size;
    const bool known = r->min == r->max;
    LLVMValueRef half =
        known ? cg_number(f, whole / 2)
              : LLVMBuildLShr(f->b, LLVMBuildAnd(f->b, r->count, cg_number(f, -size), ""), cg_number(f, 1), "");
    LLVMValueRef end = opjit_cg_opaque(f, opjit_cg_add(f, r->pos, half));
    LLVMValueRef guard = r->min < size ? LLVMBuildICmp(f->b, LLVMIntNE, end, r->pos, "") : NULL;
    cg_count c;
    LLVMValueRef at = opjit_cg_count_begin(f, &c, false, r->pos, guard);
    f->fronts.distance = half;
    opjit_cg_piece(p, p->lanes, copies, at);
    f->fronts.distance = NULL;
    opjit_cg_count_end(f, &c, size / 2, end);
    LLVMValueRef done = known ? cg_number(f, whole) : LLVMBuildAnd(f->b, r->count, cg_number(f, -size), "");
    const int64_t rest = known ? r->max - whole : 0;
    *r = (cg_range){
        opjit_cg_add(f, r->pos, done), opjit_cg_sub(f, r->count, done), r->end, rest, known ? rest : size - 1, false
    };
}

void opjit_cg_put_two_rows(const cg_pieces *p, const cg_range *r)
{
    cg_func *f = p->f;
    const int64_t size = (int64_t)p->lanes * f->fronts.copies / 2;
    f->fronts.distance = LLVMBuildMul(f->b, f->fronts.rows, cg_number(f, f->fronts.row), "");
    if (r->max == size) {
        opjit_cg_piece(p, p->lanes, f->fronts.copies, r->pos);
    } else {
        cg_count c;
        LLVMValueRef end = opjit_cg_opaque(f, cg_number(f, r->max));
        LLVMValueRef at = opjit_cg_count_begin(f, &c, false, r->pos, NULL);
        opjit_cg_piece(p, p->lanes, f->fronts.copies, at);
        opjit_cg_count_end(f, &c, size, end);
    }
    f->fronts.distance = NULL;
}
