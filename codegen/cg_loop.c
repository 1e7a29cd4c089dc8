/* cg_loop.c - a FOR becomes up to three kinds of pieces: whole vectors several at a time, whole vectors, and the
 * remainder: one masked vector where the target has them, else vectors of half, a quarter ... of the width.  What is
 * known of the bounds decides which of them exist at all: code that can't run is not made. */
#include "codegen/cg.h"

enum {
    MOST_COPIES = 64,   /* in straight-line code without a loop */
    SCALAR_COPIES = 16, /* of single elements there, which wait for each other in a running sum */
    PEAK_COPIES = 8,    /* in a loop of many copies */
    ALIGN_VECTORS = 32, /* least that are worth another two, so that whole ones are stored */
    TWICE_PART = 32,    /* of a loop, which may be stored twice for it */
};

/* Iterations that are still to be done: count of them from pos on. */
typedef struct range {
    LLVMValueRef pos;   /* value of the variable */
    LLVMValueRef count; /* i64 */
    LLVMValueRef end;   /* pos + count * step, where that is at hand; else NULL */
    int64_t min, max;   /* of count */
} range;

typedef struct pieces {
    cg_func *f;
    ir_ref body, lo, hi;
    uint32_t lanes, unroll;
    int64_t step;
    bool mask;          /* the remainder is one masked vector */
    bool overlap;       /* the remainder is the end of a vector whose begin was stored before */
    bool turn;          /* as many copies as are unrolled are rows of a block */
    bool ordered;       /* lo <= hi is known */
    bool moved;         /* what is emitted does not begin where the loop does */
    bool halves;        /* it stores whole numbers as halves */
    bool cheap;         /* many copies are asked for: an iteration is hardly more than its store */
    LLVMValueRef start; /* lo */
} pieces;

static bool has_loop(const cg_func *f, ir_ref first)
{
    for (ir_ref s = first; s != 0; s = ir_at(f->ir, s)->next)
        if (ir_at(f->ir, s)->op == IR_FOR || ir_at(f->ir, s)->op == IR_ACC)
            return true;
    return false;
}

static LLVMValueRef number(cg_func *f, int64_t value)
{
    return opjit_cg_number(f, 64, 1, (uint64_t)value);
}

/* --- one piece ---------------------------------------------------------------------------------------------------- */

void opjit_cg_copy(cg_func *f, ir_ref body)
{
    opjit_cg_scope_push(f);
    f->copy_scope = f->scope_count - 1;
    opjit_cg_block(f, body);
    opjit_cg_scope_pop(f);
}

void opjit_cg_copies(cg_func *f, ir_ref body, uint32_t lanes, uint32_t copies, LLVMValueRef iv)
{
    cg_loop *loop = &f->loops[f->loop_count - 1];
    const uint32_t outer_lanes = f->lanes, outer_copies = f->copies, outer_vec = f->vec;
    const uint32_t copy_scope = f->copy_scope, loop_scope = f->loop_scope, place_scope = f->place_scope;
    f->lanes = lanes;
    f->copies = copies;
    f->vec = f->loop_count - 1;
    f->vectors = f->vectors || lanes > 1;
    loop->iv = iv;
    opjit_cg_scope_push(f);
    f->loop_scope = f->place_scope = f->scope_count - 1;
    if (f->sinks && copies > 1) {
        f->copy_scope = f->loop_scope;
        loop->scope = f->scopes[f->loop_scope];
        opjit_cg_hoist(f, body, f->vec, lanes);
    }
    opjit_cg_scope_push(f);
    f->copy_scope = f->scope_count - 1;
    const bool one = !f->fronts.distance && !f->turn.on;
    const bool done = lanes > 1 && copies > 1 && !f->mask && one && opjit_cg_side_by_side(f, body, copies);
    opjit_cg_scope_pop(f);
    if (f->turn.on)
        opjit_cg_turn_copies(f, body, copies);
    if (f->fronts.distance)
        opjit_cg_front_round(f, body, copies);
    for (uint32_t u = 0; u < copies && one && !done; u++) {
        loop->offset = (int64_t)u * lanes * loop->threads * loop->step;
        opjit_cg_copy(f, body);
    }
    opjit_cg_scope_pop(f);
    loop->offset = 0;
    f->lanes = outer_lanes;
    f->copies = outer_copies;
    f->vec = outer_vec;
    f->copy_scope = copy_scope;
    f->loop_scope = loop_scope;
    f->place_scope = place_scope;
}

static void emit_copies(const pieces *p, uint32_t lanes, uint32_t copies, LLVMValueRef iv)
{
    cg_func *f = p->f;
    if (p->halves && copies == CG_HALF_COPIES) {
        opjit_cg_put_halves(f, p->body, lanes, p->unroll, iv);
        return;
    }
    if (p->turn && copies > 1) {
        opjit_cg_turn_rows(f, p->body, copies, iv);
        return;
    }
    const bool holds = lanes == 1 && copies > 1 && opjit_cg_can_hold_one(f, p->body);
    if (holds)
        opjit_cg_hold_load(f, p->body);
    opjit_cg_copies(f, p->body, lanes, copies, iv);
    if (holds)
        opjit_cg_hold_store(f, p->body);
}

/* pos + count * step */
static LLVMValueRef advance(const pieces *p, LLVMValueRef pos, LLVMValueRef count)
{
    cg_func *f = p->f;
    if (p->step != 1)
        count = LLVMBuildMul(f->b, count, number(f, p->step), "");
    return opjit_cg_add(f, pos, count);
}

/* --- whole vectors ------------------------------------------------------------------------------------------------ */

/* The remainder after whole vectors of `size` iterations, if it is the same for all runs of the loop; else -1. */
static int64_t known_rest(const pieces *p, uint64_t size)
{
    uint64_t gap;
    if (p->moved || p->step != 1 || !opjit_cg_gap(p->f, p->lo, p->hi, size, &gap))
        return -1;
    return gap == 0 || p->ordered ? (int64_t)gap : -1; /* an empty loop has no remainder */
}

/* The loop from pos to end, which runs at least once where the guard holds (NULL: always). */
static void emit_rounds(const pieces *p, uint32_t lanes, uint32_t copies, LLVMValueRef pos, LLVMValueRef end,
                        LLVMValueRef guard)
{
    cg_func *f = p->f;
    const int64_t size = (int64_t)lanes * copies * p->step;
    const bool holds = pos == p->start && p->step == 1 && opjit_cg_can_hold(f, p->body, p->lo, lanes, (uint64_t)size);
    const bool around = holds && f->peak; /* at quick what goes round in registers goes to the stack twice */
    const bool blocks = has_loop(f, p->body) || (p->halves && copies == CG_HALF_COPIES);
    LLVMBasicBlockRef after = around && guard ? opjit_cg_if_begin(f, guard) : NULL;
    if (around)
        opjit_cg_hold_load(f, p->body);
    LLVMBasicBlockRef before = LLVMGetInsertBlock(f->b);
    cg_count c;
    LLVMValueRef iv = opjit_cg_count_begin(f, &c, blocks, pos, around ? NULL : guard);
    cg_loop *loop = &f->loops[f->loop_count - 1];
    loop->slot = c.slot;
    loop->home = c.body;
    if (around)
        opjit_cg_hold_begin(f, p->body, before);
    else if (holds)
        opjit_cg_hold_load(f, p->body);
    emit_copies(p, lanes, copies, iv);
    if (around)
        opjit_cg_hold_next(f, p->body);
    else if (holds)
        opjit_cg_hold_store(f, p->body);
    loop->slot = NULL;
    opjit_cg_count_end(f, &c, size, end);
    if (around)
        opjit_cg_hold_store(f, p->body);
    if (after)
        opjit_cg_if_end(f, after);
}

/* As many times lanes x copies iterations as there are; the rest stays in *r. */
static void emit_whole(const pieces *p, uint32_t lanes, uint32_t copies, range *r)
{
    cg_func *f = p->f;
    const int64_t size = (int64_t)lanes * copies;
    const int64_t known = r->min == r->max ? r->min % size : known_rest(p, (uint64_t)size);
    if (r->max < size) {
        if (known >= 0)
            *r = (range){ r->pos, number(f, known), r->end, known, known };
        return;
    }
    LLVMValueRef rest, whole;
    if (r->min == r->max) {
        rest = number(f, known);
        whole = number(f, r->min - known);
    } else if (known >= 0) {
        rest = number(f, known);
        whole = opjit_cg_sub(f, r->count, rest);
    } else {
        rest = is_power_of_two((uint64_t)size) ? LLVMBuildAnd(f->b, r->count, number(f, size - 1), "")
                                               : LLVMBuildURem(f->b, r->count, number(f, size), "");
        whole = LLVMBuildSub(f->b, r->count, rest, "");
    }
    LLVMValueRef end = opjit_cg_opaque(f, known == 0 && r->end ? r->end : advance(p, r->pos, whole));
    LLVMValueRef guard = r->min < size ? LLVMBuildICmp(f->b, LLVMIntNE, end, r->pos, "") : NULL;
    if (r->max >= 2 * size) {
        emit_rounds(p, lanes, copies, r->pos, end, guard);
    } else {
        LLVMBasicBlockRef after = guard ? opjit_cg_if_begin(f, guard) : NULL;
        emit_copies(p, lanes, copies, r->pos);
        if (after)
            opjit_cg_if_end(f, after);
        else if (lanes == 1 && copies > 1 && !f->peak) /* what is selected slowly is to take no copies along */
            opjit_cg_next_block(f);
    }
    *r = (range){ end, rest, r->end, known >= 0 ? known : 0, known >= 0 ? known : size - 1 };
}

/* Rounds of copies at two fronts, half of the loop apart; what is left stays in *r. */
static void emit_fronts(const pieces *p, uint32_t copies, range *r)
{
    cg_func *f = p->f;
    const int64_t size = (int64_t)p->lanes * copies, whole = r->max - r->max % size;
    const bool known = r->min == r->max;
    LLVMValueRef half = known ? number(f, whole / 2)
                              : LLVMBuildLShr(f->b, LLVMBuildAnd(f->b, r->count, number(f, -size), ""), number(f, 1), "");
    LLVMValueRef end = opjit_cg_opaque(f, opjit_cg_add(f, r->pos, half));
    LLVMValueRef guard = r->min < size ? LLVMBuildICmp(f->b, LLVMIntNE, end, r->pos, "") : NULL;
    cg_count c;
    LLVMValueRef at = opjit_cg_count_begin(f, &c, false, r->pos, guard);
    f->fronts.distance = half;
    emit_copies(p, p->lanes, copies, at);
    f->fronts.distance = NULL;
    opjit_cg_count_end(f, &c, size / 2, end);
    LLVMValueRef done = known ? number(f, whole) : LLVMBuildAnd(f->b, r->count, number(f, -size), "");
    const int64_t rest = known ? r->max - whole : 0;
    *r = (range){ opjit_cg_add(f, r->pos, done), opjit_cg_sub(f, r->count, done), r->end, rest, known ? rest : size - 1 };
}

/* Two rows, a half of the stage apart. */
static void emit_two_rows(const pieces *p, const range *r)
{
    cg_func *f = p->f;
    const int64_t size = (int64_t)p->lanes * f->fronts.copies / 2;
    f->fronts.distance = LLVMBuildMul(f->b, f->fronts.rows, number(f, f->fronts.row), "");
    if (r->max == size) {
        emit_copies(p, p->lanes, f->fronts.copies, r->pos);
    } else {
        cg_count c;
        LLVMValueRef end = opjit_cg_opaque(f, number(f, r->max));
        LLVMValueRef at = opjit_cg_count_begin(f, &c, false, r->pos, NULL);
        emit_copies(p, p->lanes, f->fronts.copies, at);
        opjit_cg_count_end(f, &c, size, end);
    }
    f->fronts.distance = NULL;
}

/* --- the remainder ------------------------------------------------------------------------------------------------ */

static void emit_masked(const pieces *p, range *r)
{
    cg_func *f = p->f;
    LLVMBasicBlockRef after = NULL;
    if (r->min == 0)
        after = opjit_cg_if_begin(f, LLVMBuildICmp(f->b, LLVMIntNE, r->count, number(f, 0), ""));
    const uint32_t bits = f->lane_bits;
    LLVMValueRef count = opjit_cg_splat(f, opjit_cg_resize(f, r->count, bits, false), p->lanes);
    f->mask = LLVMBuildICmp(f->b, LLVMIntULT, opjit_cg_iota(f, bits, p->lanes, 0, 1), count, "");
    f->tail = true;
    emit_copies(p, p->lanes, 1, r->pos);
    f->mask = NULL;
    f->tail = false;
    if (after)
        opjit_cg_if_end(f, after);
}

static void emit_overlap(const pieces *p, range *r)
{
    cg_func *f = p->f;
    LLVMBasicBlockRef after = NULL;
    if (r->min == 0)
        after = opjit_cg_if_begin(f, LLVMBuildICmp(f->b, LLVMIntNE, r->count, number(f, 0), ""));
    f->shifted = true;
    emit_copies(p, p->lanes, 1, opjit_cg_sub(f, advance(p, r->pos, r->count), number(f, p->lanes)));
    f->shifted = false;
    if (after)
        opjit_cg_if_end(f, after);
}

static void emit_halves(const pieces *p, range *r)
{
    cg_func *f = p->f;
    for (uint32_t lanes = p->lanes / 2; lanes > 0; lanes /= 2) {
        if (r->max < lanes)
            continue;
        if (r->min == r->max) {
            if (!(r->min & lanes))
                continue;
            emit_copies(p, lanes, 1, r->pos);
            r->pos = advance(p, r->pos, number(f, lanes));
            continue;
        }
        LLVMValueRef part = LLVMBuildAnd(f->b, r->count, number(f, lanes), "");
        LLVMBasicBlockRef after = opjit_cg_if_begin(f, LLVMBuildICmp(f->b, LLVMIntNE, part, number(f, 0), ""));
        emit_copies(p, lanes, 1, r->pos);
        opjit_cg_if_end(f, after);
        if (lanes > 1)
            r->pos = advance(p, r->pos, part);
    }
}

/* --- what is known of the bounds ---------------------------------------------------------------------------------- */

/* Bounds of hi - lo.  Where both are the same modulo the vector's lanes, so is their distance 0. */
static void distance(cg_func *f, ir_ref lo, ir_ref hi, uint32_t lanes, int64_t *min, int64_t *max)
{
    int64_t d;
    uint64_t gap;
    *max = opjit_cg_span(f, lo, hi, &d) ? d : INT64_MAX;
    *min = opjit_cg_span(f, hi, lo, &d) && d != INT64_MIN ? -d : INT64_MIN;
    if (lanes < 2 || *max > INT64_MAX / 2 || !opjit_cg_gap(f, lo, hi, lanes, &gap) || gap != 0)
        return;
    *max = *max < 0 ? *max : *max - *max % lanes;
    *min = *min <= 0 ? *min : (*min + lanes - 1) / lanes * lanes;
}

static int64_t steps_in(int64_t distance, int64_t step)
{
    return distance <= 0 ? 0 : (distance - 1) / step + 1;
}

/* More than copies and choices: floats that are computed, or reduced. */
static bool has_arithmetic(const cg_func *f, ir_ref first)
{
    const ir_node *n = ir_at(f->ir, first), *value = ir_at(f->ir, ir_operand(f->ir, first, 0));
    if (n->op != IR_STORE || n->next != 0)
        return n->op == IR_LET || n->op == IR_UPD;
    return ir_is_float((ir_type)value->type) && value->op != IR_LOAD && value->op != IR_SELECT &&
           value->op != IR_CONST && value->op != IR_GET;
}

/* Width of the elements that the loop is about: the widest one it stores or accumulates. */
static uint32_t data_bits(const cg_func *f, ir_ref first)
{
    uint32_t bits = 8;
    for (ir_ref s = first; s != 0; s = ir_at(f->ir, s)->next) {
        const ir_node *n = ir_at(f->ir, s);
        const ir_type type = n->op == IR_STORE ? f->ir->tensors[n->ref].type
                             : n->op == IR_UPD ? (ir_type)ir_at(f->ir, ir_operand(f->ir, s, 0))->type
                                               : IR_I8;
        const uint32_t size = 8 * opjit_ir_type_size(type);
        bits = size > bits ? size : bits;
    }
    return bits;
}

/* A loop over the rows of blocks to be turned: lets, and a loop with lanes. */
static bool is_turn(const cg_func *f, const ir_node *n)
{
    ir_ref s = n->body;
    while (s && ir_at(f->ir, s)->op == IR_LET)
        s = ir_at(f->ir, s)->next;
    return (n->flags & IR_FOR_TURN) && n->vec > 1 && n->vec <= CG_MAX_LANES && is_power_of_two(n->vec) && n->imm == 1 &&
           !f->turn.on && s && ir_at(f->ir, s)->op == IR_FOR && !ir_at(f->ir, s)->next && !opjit_cg_is_edge(f, s) &&
           !has_loop(f, ir_at(f->ir, s)->body);
}

static bool can_mask(const cg_func *f, const ir_node *loop)
{
    if (!(loop->flags & IR_FOR_TAIL_MASK) || !opjit_rt_target_has_masks(f->target))
        return false;
    for (ir_ref s = loop->body; s != 0; s = ir_at(f->ir, s)->next)
        if (ir_at(f->ir, s)->op == IR_UPD ||
            (ir_at(f->ir, s)->op == IR_STORE && !opjit_cg_contiguous(f, s, loop->ref, (int64_t)loop->imm)))
            return false;
    return true;
}

/* --- one value everywhere ----------------------------------------------------------------------------------------- */

/* Whether any element of the loop may be stored again, since all are the same. */
static bool stores_one_value(const cg_func *f, const pieces *p)
{
    const ir_node *s = ir_at(f->ir, p->body);
    if (s->op != IR_STORE || s->next != 0 || p->lanes < 2 || f->nontemporal || p->mask || p->overlap)
        return false;
    const ir_ref value = ir_operand(f->ir, p->body, 0);
    const uint32_t loop = f->loop_count - 1;
    return !(f->info[value].vary >> loop & 1) && !f->info[value].fresh && !f->info[value].guarded &&
           opjit_cg_contiguous(f, p->body, f->loops[loop].var, 1);
}

/* lanes x copies elements that end where the loop ends. */
static void emit_end(const pieces *p, uint32_t lanes, uint32_t copies, const range *r)
{
    cg_func *f = p->f;
    LLVMValueRef end = advance(p, r->pos, r->count);
    f->shifted = true;
    emit_copies(p, lanes, copies, opjit_cg_sub(f, end, number(f, (int64_t)lanes * copies)));
    f->shifted = false;
}

/* More than as many elements as a round has: a vector where they begin, rounds from the next whole vector of memory on,
 * and as much as half a round has, or all of it, up to the end.  Nearly all is stored once, and not across lines. */
static void emit_long_fill(const pieces *p, const range *r)
{
    cg_func *f = p->f;
    const int64_t many = (int64_t)p->lanes * PEAK_COPIES;
    pieces inner = *p;
    inner.moved = true;
    f->shifted = true;
    emit_copies(p, p->lanes, 1, r->pos);
    LLVMValueRef from = opjit_cg_next_vector(f, p->body, p->lanes, r->pos);
    LLVMValueRef count = opjit_cg_sub(f, advance(p, r->pos, r->count), from);
    range rounds = { from, count, NULL, many - p->lanes + 1, r->max };
    f->aligned = true;
    if (!f->peak && r->max >= 4 * many)
        emit_whole(&inner, p->lanes, 2 * PEAK_COPIES, &rounds);
    emit_whole(&inner, p->lanes, PEAK_COPIES, &rounds);
    f->aligned = false;
    LLVMValueRef most = LLVMBuildICmp(f->b, LLVMIntUGT, rounds.count, number(f, many / 2), "");
    LLVMBasicBlockRef after = opjit_cg_if_begin(f, most);
    emit_copies(p, p->lanes, PEAK_COPIES / 2, rounds.pos);
    opjit_cg_if_end(f, after);
    emit_end(p, p->lanes, PEAK_COPIES / 2, r);
    f->shifted = false;
}

/* A loop of any length that stores one value: for each power of two n a road for n to 2n - 1 elements, which stores n
 * from the first on and n up to the last; before them one for more, in rounds.  No road has a remainder. */
static void emit_fill(const pieces *p, const range *r)
{
    cg_func *f = p->f;
    const int64_t many = (int64_t)p->lanes * PEAK_COPIES;
    LLVMBasicBlockRef end = LLVMAppendBasicBlockInContext(f->llvm, f->fn, "");
    for (int64_t n = many; n > 0; n /= 2) {
        const uint32_t lanes = n < p->lanes ? (uint32_t)n : p->lanes, copies = (uint32_t)n / lanes;
        if (r->max < n)
            continue;
        LLVMBasicBlockRef less =
            r->min < n ? opjit_cg_if_begin(f, LLVMBuildICmp(f->b, LLVMIntSGE, r->count, number(f, n), "")) : NULL;
        if (n == many)
            emit_long_fill(p, r);
        else
            emit_copies(p, lanes, copies, r->pos);
        if (n > 1 && n < many)
            emit_end(p, lanes, copies, r);
        if (!less)
            break;
        opjit_cg_if_leave(f, less, end);
    }
    opjit_cg_if_end(f, end);
}

/* --- the loop ----------------------------------------------------------------------------------------------------- */

/* As many vectors as what is left of the loop after rounds of `unroll` is known to be a multiple of. */
static uint32_t copies_in_rest(const pieces *p)
{
    uint32_t copies = p->unroll / 2;
    while (copies > 1 && known_rest(p, (uint64_t)p->lanes * copies) != 0)
        copies /= 2;
    return copies > 1 ? copies : 1;
}

/* Copies in a round at two fronts; 0: there is one. */
static uint32_t front_copies(const pieces *p, const range *r)
{
    cg_func *f = p->f;
    const bool may = p->cheap && !p->halves && p->step == 1;
    const uint32_t copies = may ? opjit_cg_front_copies(f, p->body, p->lanes, p->unroll, r->max) : 0;
    return copies > 0 && (f->aligned || opjit_cg_is_aligned(f, p->body, p->lanes)) ? copies : 0;
}

static void emit_pieces(const pieces *p, range *r)
{
    const uint32_t most = p->lanes == 1 && p->unroll <= SCALAR_COPIES ? SCALAR_COPIES : MOST_COPIES;
    const uint32_t times = p->unroll > MOST_COPIES / 4 ? p->unroll : 4 * p->unroll;
    const uint32_t copies = times < most ? times : most;
    const bool straight = !has_loop(p->f, p->body) && !p->f->turn.on;
    const bool few = r->min == r->max && straight;
    const uint32_t fronts = front_copies(p, r);
    if (fronts > 0)
        emit_fronts(p, fronts, r);
    if (p->halves)
        emit_whole(p, p->lanes, CG_HALF_COPIES, r);
    if (few && r->max <= (int64_t)p->lanes * copies && r->max >= p->lanes)
        emit_whole(p, p->lanes, (uint32_t)(r->max / p->lanes), r);
    else
        emit_whole(p, p->lanes, p->unroll, r);
    const bool known = r->min == r->max && r->max >= p->lanes && straight;
    emit_whole(p, p->lanes, known ? (uint32_t)(r->max / p->lanes) : copies_in_rest(p), r);
    if (p->lanes == 1 || r->max == 0)
        return;
    if (p->overlap)
        emit_overlap(p, r);
    else if (p->mask)
        emit_masked(p, r);
    else
        emit_halves(p, r);
}

/* --- aligned stores ----------------------------------------------------------------------------------------------- */

/* Whether the loop stores one value everywhere, or in all places but one that is stored afterwards. */
static bool is_uniform(const cg_func *f, const pieces *p)
{
    return f->point != 0 || !(f->info[ir_operand(f->ir, p->body, 0)].vary >> (f->loop_count - 1) & 1);
}

/* Copies in rounds of which the last one reaches back, where these store hardly anything twice; else 0.  Values
 * that are not all the same have half of them: at quick the vector before the rounds takes as long to compile as
 * the rest. */
static uint32_t even_copies(const cg_func *f, const pieces *p, const range *r)
{
    const uint32_t copies = f->peak || is_uniform(f, p) ? p->unroll : p->unroll / 2;
    const int64_t size = (int64_t)p->lanes * copies, over = size == 0 ? 0 : (size - r->max % size) % size;
    return r->max >= 2 * size && over <= r->max / TWICE_PART ? copies : 0;
}

/* Whether the loop is better begun in the middle of its first vector, where whole vectors are: one that stores many
 * of them at an unknown place, each other one across two lines.  Its ends are stored twice then. */
static bool seeks_alignment(cg_func *f, const pieces *p, const range *r)
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
static void emit_even_rounds(const pieces *p, const range *r, uint32_t copies, LLVMValueRef from)
{
    cg_func *f = p->f;
    const int64_t size = (int64_t)p->lanes * copies, all = (r->max + size - 1) / size * size;
    LLVMValueRef last = opjit_cg_sub(f, advance(p, r->pos, r->count), number(f, size));
    LLVMValueRef end = opjit_cg_opaque(f, opjit_cg_add(f, from, number(f, all)));
    cg_count c;
    LLVMValueRef at = opjit_cg_count_begin(f, &c, false, from, NULL);
    emit_copies(p, p->lanes, copies, opjit_cg_limit(f, false, at, last));
    opjit_cg_count_end(f, &c, size, end);
}

/* The same at two fronts; what these leave is stored in short rounds, of which the last ones may be one and the same. */
static void emit_even_fronts(const pieces *p, const range *r, uint32_t copies, LLVMValueRef from)
{
    cg_func *f = p->f;
    const int64_t size = (int64_t)p->lanes * copies, whole = (r->max - p->lanes) / size * size;
    range both = { from, number(f, whole), NULL, whole, whole };
    emit_fronts(p, copies, &both);
    range rest = *r;
    rest.max = r->max - whole;
    emit_even_rounds(p, &rest, PEAK_COPIES, both.pos);
}

static void emit_aligned(const pieces *p, const range *r)
{
    cg_func *f = p->f;
    const int64_t lanes = p->lanes, whole = (r->max - (lanes - 1)) / lanes * lanes;
    const int64_t rest = r->max - whole; /* where the loop begins at a whole vector */
    const uint32_t even = even_copies(f, p, r);
    f->shifted = f->aligned = true;
    const uint32_t fronts = even > 0 && is_uniform(f, p) ? front_copies(p, r) : 0; /* others take long to compile */
    f->aligned = false;
    emit_copies(p, p->lanes, 1, r->pos);
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
    range inner = { from, number(f, whole), NULL, whole, whole };
    emit_pieces(p, &inner);
    f->aligned = false;
    emit_end(p, p->lanes, (uint32_t)((rest + lanes - 1) / lanes), r); /* last: lines are stored in order */
}

/* Whether what does not change in the loop is computed in each of its rounds: at quick what another block computes goes
 * to the stack, which takes as long as a vector of the output.  Where a loop is all that its iteration does, and its
 * rounds are long, this happens as often either way. */
static bool sinks(const cg_func *f, ir_ref loop, const pieces *p)
{
    const ir_node *around = ir_at(f->ir, ir_at(f->ir, f->loops[f->loop_count - 2].var)->ref);
    return !f->peak && !f->turn.on && p->lanes > 1 && p->unroll > PEAK_COPIES && around->body == loop &&
           ir_at(f->ir, loop)->next == 0;
}

/* A block of rows, or what is inside of one: whole blocks, of which the last one reaches back. */
static bool reaches_back(const pieces *p)
{
    return p->overlap && (p->turn || p->f->turn.on) && p->ordered &&
           opjit_ir_interval(p->f->ir, p->hi).lo >= (int64_t)p->lanes * p->unroll;
}

static void emit_blocks(const pieces *p, range *r)
{
    cg_func *f = p->f;
    const int64_t size = (int64_t)p->lanes * p->unroll;
    LLVMValueRef hi = advance(p, r->pos, r->count), last = opjit_cg_sub(f, hi, number(f, size));
    f->shifted = true;
    if (r->max <= size) {
        LLVMBasicBlockRef after =
            r->min == 0 ? opjit_cg_if_begin(f, LLVMBuildICmp(f->b, LLVMIntNE, hi, r->pos, "")) : NULL;
        emit_copies(p, p->lanes, p->unroll, last);
        if (after)
            opjit_cg_if_end(f, after);
    } else {
        LLVMValueRef count = LLVMBuildAnd(f->b, opjit_cg_add(f, r->count, number(f, size - 1)), number(f, -size), "");
        LLVMValueRef end = opjit_cg_opaque(f, opjit_cg_add(f, r->pos, count));
        cg_count c;
        LLVMValueRef guard = r->min == 0 ? LLVMBuildICmp(f->b, LLVMIntNE, end, r->pos, "") : NULL;
        LLVMValueRef at = opjit_cg_count_begin(f, &c, false, r->pos, guard);
        emit_copies(p, p->lanes, p->unroll, opjit_cg_limit(f, false, at, last));
        opjit_cg_count_end(f, &c, size, end);
    }
    f->shifted = false;
}

void opjit_cg_for(cg_func *f, ir_ref statement)
{
    if (!f->turn.on && opjit_cg_is_edge(f, statement)) {
        opjit_cg_row_edge(f, statement);
        return;
    }
    const ir_node *n = ir_at(f->ir, statement);
    const ir_ref lo = ir_operand(f->ir, statement, 0), hi = ir_operand(f->ir, statement, 1);
    const uint32_t lane_bits = f->lane_bits;
    if (n->flags & IR_FOR_SPREAD) {
        f->lane_bits = data_bits(f, n->body);
        opjit_cg_spread(f, statement);
        f->lane_bits = lane_bits;
        return;
    }
    const bool vectors =
        n->vec > 1 && n->vec <= CG_MAX_LANES && is_power_of_two(n->vec) && n->imm == 1 && !has_loop(f, n->body);
    const bool turn = is_turn(f, n);
    const int64_t step = n->imm > 0 && n->imm <= INT64_MAX ? (int64_t)n->imm : 1;
    pieces p = { .f = f, .body = n->body, .lo = lo, .hi = hi, .step = step, .lanes = vectors ? n->vec : 1 };
    p.unroll = turn ? n->vec : n->unroll > 1 && n->unroll <= 64 && !has_loop(f, n->body) ? n->unroll : 1;
    p.cheap = p.unroll > MOST_COPIES / 4;
    if (f->peak && !turn &&
        p.unroll > MOST_COPIES / 4) /* more only amortise what quick does with the loop's variable */
        p.unroll = PEAK_COPIES;
    if (f->peak && (n->flags & IR_FOR_NT) != 0 && p.unroll == PEAK_COPIES && has_arithmetic(f, n->body))
        p.unroll = PEAK_COPIES / 2;
    p.turn = turn;
    p.mask = vectors && can_mask(f, n);
    p.overlap = (vectors || turn) && (n->flags & IR_FOR_TAIL_OVERLAP);
    range r;
    distance(f, lo, hi, p.lanes, &r.min, &r.max);
    p.ordered = r.min >= 0;
    r.min = steps_in(r.min, step);
    r.max = steps_in(r.max, step);
    if (r.max == 0)
        return;
    r.pos = p.start = opjit_cg_emit(f, lo);
    r.end = NULL;
    if (r.min == r.max) {
        r.count = number(f, r.min);
    } else {
        LLVMValueRef end = opjit_cg_emit(f, hi);
        r.count = opjit_cg_sub(f, end, r.pos);
        r.end = p.ordered && step == 1 ? end : NULL;
        if (!p.ordered)
            r.count = opjit_cg_limit(f, true, r.count, number(f, 0));
        if (step > 1)
            r.count = LLVMBuildUDiv(f->b, LLVMBuildAdd(f->b, r.count, number(f, step - 1), ""), number(f, step), "");
    }
    const bool nontemporal = f->nontemporal, fetches = f->fetches;
    f->nontemporal = (n->flags & IR_FOR_NT) != 0;
    f->fetches = !f->cpu->grid && r.max > (int64_t)p.lanes * PEAK_COPIES && has_arithmetic(f, n->body) &&
                 (f->streams || ir_at(f->ir, n->body)->op == IR_UPD);
    f->lane_bits = data_bits(f, n->body);
    f->loops[f->loop_count++] = (cg_loop){ .var = n->ref, .iv = r.pos, .step = step, .threads = 1 };
    opjit_cg_scope_push(f);
    f->loops[f->loop_count - 1].scope = f->next_scope;
    const bool fills = r.min < r.max && r.max >= p.lanes && known_rest(&p, p.lanes) != 0 && stores_one_value(f, &p);
    f->sinks = !fills && sinks(f, statement, &p);
    f->point = opjit_cg_find_point(f, n->body, p.lanes, r.min);
    p.halves = opjit_cg_halves(f, n->body, p.lanes, p.unroll, r.max);
    LLVMValueRef count = r.count;
    if (!f->sinks)
        opjit_cg_hoist(f, n->body, f->loop_count - 1, p.lanes);
    if (f->fronts.rows)
        emit_two_rows(&p, &r);
    else if (reaches_back(&p))
        emit_blocks(&p, &r);
    else if (fills)
        emit_fill(&p, &r);
    else if (seeks_alignment(f, &p, &r))
        emit_aligned(&p, &r);
    else
        emit_pieces(&p, &r);
    f->sinks = false;
    if (f->point)
        opjit_cg_put_point(f, n->body, p.start, count);
    f->point = 0;
    opjit_cg_scope_pop(f);
    f->loop_count--;
    f->nontemporal = nontemporal;
    f->fetches = fetches;
    f->lane_bits = lane_bits;
}
