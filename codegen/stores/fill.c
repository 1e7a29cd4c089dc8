/* SPDX-License-Identifier: Apache-2.0 */
/* fill.c - loops that store at places which are not known to be whole vectors of memory: runs of one value, of any
 * length, and long ones of what takes no time to compute.  They begin and end with vectors that reach over whole ones
 * between them, since a store across two lines takes twice as long in the caches. */
#include "codegen/stores/pieces.h"

enum {
    ALIGN_VECTORS = 32, /* least that are worth another two, so that whole ones are stored */
    TWICE_PART = 32,    /* of a loop, which may be stored twice for it */
    MOST_PARTS = 4,     /* stores that a short run is made of */
};

/* --- one value everywhere ----------------------------------------------------------------------------------------- */

bool opjit_cg_stores_one_value(const cg_func *f, const cg_pieces *p)
{
    const ir_node *s = ir_at(f->ir, p->body);
    if (s->op != IR_STORE || s->next != 0 || p->lanes < 2 || f->nontemporal || p->overlap)
        return false;
    const ir_ref value = ir_operand(f->ir, p->body, 0);
    const uint32_t loop = f->loop_count - 1;
    return !(f->info[value].vary >> loop & 1) && !f->info[value].fresh && !f->info[value].guarded &&
           opjit_cg_contiguous(f, p->body, f->loops[loop].var, 1);
}

/* lanes x copies elements that end where the loop ends. */
static void emit_end(const cg_pieces *p, uint32_t lanes, uint32_t copies, const cg_range *r)
{
    cg_func *f = p->f;
    LLVMValueRef end = cg_advance(p, r->pos, r->count);
    f->shifted = true;
    opjit_cg_piece(p, lanes, copies, opjit_cg_sub(f, end, cg_number(f, (int64_t)lanes * copies)));
    f->shifted = false;
}

/* More than as many elements as a round has: a vector where they begin, rounds from the next whole vector of memory on,
 * and as much as half a round has, or all of it, up to the end.  Nearly all is stored once, and not across lines. */
static void emit_long_fill(const cg_pieces *p, const cg_range *r)
{
    cg_func *f = p->f;
    const int64_t many = (int64_t)p->lanes * CG_PEAK_COPIES;
    cg_pieces inner = *p;
    inner.moved = true;
    f->shifted = true;
    LLVMValueRef from = opjit_cg_next_vector(f, p->body, p->lanes, r->pos);
    LLVMValueRef count = opjit_cg_sub(f, cg_advance(p, r->pos, r->count), from);
    cg_range rounds = { from, count, NULL, many - p->lanes + 1, r->max, !f->peak };
    LLVMBasicBlockRef early = f->peak ? NULL : opjit_cg_early_here(f);
    opjit_cg_piece(p, p->lanes, 1, r->pos);
    f->aligned = true;
    if (!f->peak && r->max >= 2 * many)
        opjit_cg_whole(&inner, p->lanes, 2 * CG_PEAK_COPIES, &rounds);
    opjit_cg_whole(&inner, p->lanes, CG_PEAK_COPIES, &rounds);
    f->aligned = false;
    LLVMValueRef most = LLVMBuildICmp(f->b, LLVMIntUGT, rounds.count, cg_number(f, many / 2), "");
    LLVMBasicBlockRef after = opjit_cg_if_begin(f, most);
    opjit_cg_piece(p, p->lanes, CG_PEAK_COPIES / 2, rounds.pos);
    opjit_cg_if_end(f, after);
    emit_end(p, p->lanes, CG_PEAK_COPIES / 2, r);
    f->early = early;
    f->shifted = false;
}

/* A loop of any length that stores one value: for each power of two n a road for n to 2n - 1 elements, which stores n
 * from the first on and n up to the last; before them one for more, in rounds.  No road has a remainder. */
void opjit_cg_put_fill(const cg_pieces *p, const cg_range *r)
{
    cg_func *f = p->f;
    const int64_t many = (int64_t)p->lanes * CG_PEAK_COPIES;
    LLVMBasicBlockRef end = LLVMAppendBasicBlockInContext(f->llvm, f->fn, "");
    for (int64_t n = many; n > 0; n /= 2) {
        const uint32_t lanes = n < p->lanes ? (uint32_t)n : p->lanes, copies = (uint32_t)n / lanes;
        if (r->max < n)
            continue;
        LLVMBasicBlockRef less =
            r->min < n ? opjit_cg_if_begin(f, LLVMBuildICmp(f->b, LLVMIntSGE, r->count, cg_number(f, n), "")) : NULL;
        if (n == many)
            emit_long_fill(p, r);
        else
            opjit_cg_piece(p, lanes, copies, r->pos);
        if (n > 1 && n < many)
            emit_end(p, lanes, copies, r);
        if (!less)
            break;
        opjit_cg_if_leave(f, less, end);
    }
    opjit_cg_if_end(f, end);
}

/* --- short runs --------------------------------------------------------------------------------------------------- */

bool opjit_cg_is_brief(const cg_func *f, ir_ref loop, int64_t *part)
{
    const ir_node *n = ir_at(f->ir, loop), *s = ir_at(f->ir, n->body);
    int64_t least, most;
    if (f->peak || f->cpu->grid || n->op != IR_FOR || n->vec < 2 || n->imm != 1 || (n->flags & IR_FOR_NT) != 0 ||
        s->op != IR_STORE || s->next != 0 || ir_at(f->ir, ir_operand(f->ir, n->body, 0))->op != IR_CONST ||
        !opjit_ir_span(f->ir, ir_operand(f->ir, loop, 0), ir_operand(f->ir, loop, 1), &most) ||
        !opjit_ir_span(f->ir, ir_operand(f->ir, loop, 1), ir_operand(f->ir, loop, 0), &least) || least >= 0 ||
        most >= n->vec || most == -least || !opjit_cg_contiguous(f, n->body, n->ref, 1))
        return false;
    *part = 1;
    while (2 * *part <= -least)
        *part *= 2;
    return most <= MOST_PARTS * *part;
}

void opjit_cg_put_brief(const cg_pieces *p, const cg_range *r, int64_t part)
{
    cg_func *f = p->f;
    LLVMValueRef last = opjit_cg_sub(f, r->count, cg_number(f, part));
    f->shifted = true;
    for (int64_t at = 0; at < r->max; at += part)
        opjit_cg_piece(p, (uint32_t)part, 1, cg_advance(p, r->pos, opjit_cg_limit(f, false, cg_number(f, at), last)));
    f->shifted = false;
}

/* --- aligned stores ----------------------------------------------------------------------------------------------- */

/* Whether the loop stores one value everywhere, or in all places but one that is stored afterwards. */
static bool is_uniform(const cg_func *f, const cg_pieces *p)
{
    return f->point != 0 || !(f->info[ir_operand(f->ir, p->body, 0)].vary >> (f->loop_count - 1) & 1);
}

/* Copies in rounds of which the last one reaches back, where these store hardly anything twice; else 0.  Values
 * that are not all the same have half of them: at quick the vector before the rounds takes as long to compile as
 * the rest. */
static uint32_t even_copies(const cg_func *f, const cg_pieces *p, const cg_range *r)
{
    const uint32_t copies = f->peak || is_uniform(f, p) ? p->unroll : p->unroll / 2;
    const int64_t size = (int64_t)p->lanes * copies, over = size == 0 ? 0 : (size - r->max % size) % size;
    return r->max >= 2 * size && over <= r->max / TWICE_PART ? copies : 0;
}

bool opjit_cg_seeks_alignment(cg_func *f, const cg_pieces *p, const cg_range *r)
{
    const ir_node *s = ir_at(f->ir, p->body);
    if (r->min != r->max || r->max < (int64_t)p->lanes * ALIGN_VECTORS || p->lanes < 2 || p->step != 1 || p->turn ||
        f->turn.on || f->nontemporal || s->op != IR_STORE || s->next != 0)
        return false;
    const ir_ref value = ir_operand(f->ir, p->body, 0);
    return (is_uniform(f, p) || (p->cheap && even_copies(f, p, r) > 0)) && !f->info[value].fresh &&
           !f->info[value].guarded && opjit_cg_contiguous(f, p->body, f->loops[f->loop_count - 1].var, 1) &&
           !opjit_cg_is_aligned(f, p->body, p->lanes);
}

/* Rounds from the first whole vector of memory on; the last one ends where the loop ends. */
static void emit_even_rounds(const cg_pieces *p, const cg_range *r, uint32_t copies, LLVMValueRef from)
{
    cg_func *f = p->f;
    const int64_t size = (int64_t)p->lanes * copies, all = (r->max + size - 1) / size * size;
    LLVMValueRef last = opjit_cg_sub(f, cg_advance(p, r->pos, r->count), cg_number(f, size));
    LLVMValueRef end = opjit_cg_opaque(f, opjit_cg_add(f, from, cg_number(f, all)));
    cg_count c;
    LLVMValueRef at = opjit_cg_count_begin(f, &c, false, from, NULL);
    opjit_cg_piece(p, p->lanes, copies, opjit_cg_limit(f, false, at, last));
    opjit_cg_count_end(f, &c, size, end);
}

/* The same at two fronts; what these leave is stored in short rounds, of which the last ones may be one and the
 * same. */
static void emit_even_fronts(const cg_pieces *p, const cg_range *r, uint32_t copies, LLVMValueRef from)
{
    cg_func *f = p->f;
    const int64_t size = (int64_t)p->lanes * copies, whole = (r->max - p->lanes) / size * size;
    cg_range both = { from, cg_number(f, whole), NULL, whole, whole, false };
    opjit_cg_put_fronts(p, copies, &both);
    cg_range rest = *r;
    rest.max = r->max - whole;
    emit_even_rounds(p, &rest, CG_PEAK_COPIES, both.pos);
}

void opjit_cg_put_aligned(const cg_pieces *p, const cg_range *r)
{
    cg_func *f = p->f;
    const int64_t lanes = p->lanes, whole = (r->max - (lanes - 1)) / lanes * lanes;
    const int64_t rest = r->max - whole; /* where the loop begins at a whole vector */
    const uint32_t even = even_copies(f, p, r);
    f->shifted = f->aligned = true;
    const uint32_t fronts =
        even > 0 && is_uniform(f, p) ? opjit_cg_front_copies(p, r) : 0; /* others take long to compile */
    f->aligned = false;
    opjit_cg_piece(p, p->lanes, 1, r->pos); /* first: where fast selection stops, it leaves what is before, too */
    LLVMValueRef from = opjit_cg_next_vector(f, p->body, p->lanes, r->pos);
    if (even > 0) {
        if (fronts > 0)
            emit_even_fronts(p, r, fronts, from);
        else
            emit_even_rounds(p, r, even, from);
        f->shifted = false;
        return;
    }
    f->aligned = true;
    cg_range inner = { from, cg_number(f, whole), NULL, whole, whole, false };
    opjit_cg_pieces(p, &inner);
    f->aligned = false;
    emit_end(p, p->lanes, (uint32_t)((rest + lanes - 1) / lanes), r); /* last: lines are stored in order */
}
