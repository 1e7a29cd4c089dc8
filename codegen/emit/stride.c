/* SPDX-License-Identifier: Apache-2.0 */
/* stride.c - vectors of elements that are not side by side in memory, as loads of what is there and shuffles: every
 * second to fourth element, elements that take turns in a few rows, and elements across the rows of a transposed block.
 * Nothing is loaded before the first lane's element or behind the last one's. */
#include "codegen/emit/access.h"

/* --- from lane to lane -------------------------------------------------------------------------------------------- */

LLVMValueRef opjit_cg_load_first(cg_func *f, const cg_access *a, LLVMValueRef pointer, uint32_t lanes, uint32_t most)
{
    LLVMValueRef mask[CG_MAX_LANES];
    if (most == lanes)
        return opjit_cg_load_element(f, a, pointer, lanes, a->bits / 8);
    for (uint32_t i = 0; i < lanes; i++)
        mask[i] = opjit_cg_number(f, 1, 1, i < most);
    return opjit_cg_load_where(f, pointer, LLVMConstVector(mask, lanes), LLVMConstNull(opjit_cg_int(f, a->bits, lanes)),
                               opjit_cg_element_alignment(f, a));
}

/* Lanes of the vectors that are loaded, and where each begins: the last one ends `reach` elements behind the last
 * lane's. */
static uint32_t part_starts(const cg_func *f, const cg_access *a, uint32_t step, uint32_t reach, uint32_t *starts)
{
    const uint32_t native = f->target->vector_bytes * 8 / a->bits,
                   lanes = f->piece->lanes < native ? f->piece->lanes : native;
    const uint32_t last = (lanes - 1) * step + 1 + reach - lanes;
    for (uint32_t i = 0; i < step; i++)
        starts[i] = i + 1 < step && i * lanes < last ? i * lanes : last;
    return lanes;
}

void opjit_cg_load_among(cg_func *f, const cg_access *a, const cg_among *g, LLVMValueRef first, uint32_t most,
                         LLVMValueRef *out)
{
    uint32_t starts[CG_MOST_STEP];
    const uint32_t step = g->step, reach = g->at[g->count - 1], lanes = part_starts(f, a, step, reach, starts);
    LLVMTypeRef element = opjit_cg_int(f, a->bits, 1);
    LLVMValueRef all[CG_MOST_STEP][CG_MAX_LANES];
    for (uint32_t at = 0; at < f->piece->lanes; at += lanes) {
        LLVMValueRef parts[CG_MOST_STEP];
        for (uint32_t i = 0; i < step; i++) {
            const uint32_t begin = at * step + starts[i], end = (most - 1) * step + 1 + reach;
            LLVMValueRef place = opjit_cg_offset(f, element, first, opjit_cg_number(f, 64, 1, begin));
            parts[i] = most == f->piece->lanes ? opjit_cg_load_element(f, a, place, lanes, a->bits / 8)
                       : end <= begin
                           ? LLVMConstNull(opjit_cg_int(f, a->bits, lanes))
                           : opjit_cg_load_first(f, a, place, lanes, end - begin < lanes ? end - begin : lanes);
        }
        for (uint32_t j = 0; j < g->count; j++)
            all[j][at / lanes] = opjit_cg_pick(f, parts, starts, step, g->at[j]);
    }
    for (uint32_t j = 0; j < g->count; j++)
        out[j] = opjit_cg_join(f, all[j], f->piece->lanes / lanes);
}

/* Every second to fourth element from `first` on: loads what is between the first lane and the last, and no more. */
LLVMValueRef opjit_cg_load_picked(cg_func *f, const cg_access *a, uint32_t step, LLVMValueRef first, uint32_t most)
{
    LLVMValueRef out[1];
    opjit_cg_load_among(f, a, &(cg_among){ .step = step, .count = 1 }, first, most, out);
    return out[0];
}

bool opjit_cg_load_among_rest(cg_func *f, const cg_access *a, const cg_among *g, LLVMValueRef first, LLVMValueRef *out)
{
    uint32_t starts[CG_MOST_STEP];
    const uint32_t step = g->step, reach = g->at[g->count - 1], lanes = part_starts(f, a, step, reach, starts);
    const uint32_t bits = f->piece->lane_bits;
    LLVMTypeRef element = opjit_cg_int(f, a->bits, 1), vector = opjit_cg_int(f, a->bits, lanes);
    LLVMValueRef parts[CG_MOST_STEP], needed[CG_MAX_LANES];
    if (lanes != f->piece->lanes || !LLVMIsAICmpInst(f->piece->iterations))
        return false;
    LLVMValueRef count = LLVMGetOperand(f->piece->iterations, 1); /* in each lane */
    for (uint32_t i = 0; i < step; i++) {
        for (uint32_t j = 0; j < lanes; j++) { /* the lane that needs the element, or the next one that needs one */
            const uint32_t e = starts[i] + j;
            needed[j] = opjit_cg_number(f, bits, 1, e < reach ? 0 : (e - reach + step - 1) / step);
        }
        LLVMValueRef where = LLVMBuildICmp(f->b, LLVMIntULT, LLVMConstVector(needed, lanes), count, "");
        LLVMValueRef place = opjit_cg_offset(f, element, first, opjit_cg_number(f, 64, 1, starts[i]));
        parts[i] = opjit_cg_load_where(f, place, where, LLVMConstNull(vector), opjit_cg_element_alignment(f, a));
    }
    for (uint32_t j = 0; j < g->count; j++)
        out[j] = opjit_cg_pick(f, parts, starts, step, g->at[j]);
    return true;
}

LLVMValueRef opjit_cg_load_picked_rest(cg_func *f, const cg_access *a, uint32_t step, LLVMValueRef first)
{
    LLVMValueRef out[1];
    const cg_among one = { .step = step, .count = 1 };
    return opjit_cg_load_among_rest(f, a, &one, first, out) ? out[0] : NULL;
}

LLVMValueRef opjit_cg_load_picked_where(cg_func *f, const cg_access *a, uint32_t step, LLVMValueRef first,
                                        LLVMValueRef mask)
{
    uint32_t starts[CG_MOST_STEP], places[CG_MAX_LANES];
    const uint32_t lanes = part_starts(f, a, step, 0, starts), all_lanes = f->piece->lanes;
    LLVMTypeRef element = opjit_cg_int(f, a->bits, 1), vector = opjit_cg_int(f, a->bits, lanes);
    LLVMValueRef all[CG_MAX_LANES], none = LLVMConstNull(opjit_cg_int(f, a->bits, all_lanes));
    LLVMValueRef wide = LLVMBuildSExt(f->b, mask, opjit_cg_int(f, a->bits, all_lanes), "");
    for (uint32_t at = 0; at < all_lanes; at += lanes) {
        LLVMValueRef parts[CG_MOST_STEP];
        for (uint32_t i = 0; i < step; i++) {
            for (uint32_t j = 0; j < lanes; j++)
                places[j] = (starts[i] + j) % step == 0 ? at + (starts[i] + j) / step : all_lanes;
            LLVMValueRef place =
                opjit_cg_offset(f, element, first, opjit_cg_number(f, 64, 1, at * step + starts[i]));
            LLVMValueRef where = LLVMBuildICmp(f->b, LLVMIntSLT, opjit_cg_shuffle(f, wide, none, places, lanes),
                                               LLVMConstNull(vector), "");
            parts[i] = opjit_cg_load_where(f, place, where, LLVMConstNull(vector), opjit_cg_element_alignment(f, a));
        }
        all[at / lanes] = opjit_cg_pick(f, parts, starts, step, 0);
    }
    return opjit_cg_join(f, all, all_lanes / lanes);
}

/* Elements that alternate between a few rows, starting at a lane of the first row; NULL: not of that form. */
LLVMValueRef opjit_cg_load_zipped(cg_func *f, const cg_access *a)
{
    cg_loop *loop = &f->loops[f->piece->vec];
    const cg_residues with = opjit_cg_residues(f);
    ir_turns d = { .divisor = 0 };
    uint64_t first;
    for (uint32_t i = 0; i < a->rank; i++)
        if (cg_stride(f, a, i) != 0 &&
            !opjit_cg_turns_add(f, cg_coordinate(f, a, i), loop->var, cg_stride(f, a, i), &d))
            return NULL;
    if (d.whole != 1 || d.divisor < 2 || d.divisor > f->piece->lanes / 2 || !is_power_of_two((uint64_t)d.divisor) ||
        loop->step != 1 || !opjit_cg_residue(&with, loop->var, (uint64_t)d.divisor, &first) || first != 0)
        return NULL;
    LLVMTypeRef element = opjit_cg_int(f, a->bits, 1);
    LLVMValueRef v = opjit_cg_add(f, opjit_cg_variable(f, loop), opjit_cg_number(f, 64, 1, (uint64_t)loop->offset));
    LLVMValueRef quotient =
        LLVMBuildAShr(f->b, v, opjit_cg_number(f, 64, 1, (uint64_t)__builtin_ctzll((uint64_t)d.divisor)), "");
    LLVMValueRef offset = NULL, rows[CG_MAX_LANES];
    for (uint32_t i = 0; i < a->rank; i++)
        if (cg_stride(f, a, i) != 0)
            offset = opjit_cg_plus(
                f, offset,
                opjit_cg_times(f, opjit_cg_at(f, cg_coordinate(f, a, i), loop->var, quotient), cg_stride(f, a, i)));
    LLVMValueRef p = opjit_cg_base_pointer(f, a->tensor);
    p = offset ? opjit_cg_offset(f, element, p, offset) : p;
    for (uint32_t i = 0; i < (uint32_t)d.divisor; i++) {
        LLVMValueRef apart = opjit_cg_number(f, 64, 1, (uint64_t)(i * d.rest));
        if (d.scale != 0)
            apart = LLVMBuildMul(f->b, apart, opjit_cg_emit(f, d.scale), "");
        LLVMValueRef row = opjit_cg_offset(f, element, p, apart);
        rows[i] = opjit_cg_load_element(f, a, row, f->piece->lanes / (uint32_t)d.divisor, a->bits / 8);
    }
    return opjit_cg_zip(f, rows, (uint32_t)d.divisor);
}

/* --- from row to row ---------------------------------------------------------------------------------------------- */

/* How far apart in memory lanes are. */
static bool find_pace(const cg_func *f, const cg_access *a, ir_pace *out)
{
    bool known = true;
    *out = (ir_pace){ 0 };
    for (uint32_t d = 0; d < a->rank && known; d++)
        known = cg_stride(f, a, d) == 0 ||
                opjit_cg_pace_add(f, cg_coordinate(f, a, d), f->loops[f->piece->vec].var, cg_stride(f, a, d), out);
    return known;
}

/* Loads that move along the rows and across the lanes. */
bool opjit_cg_is_transposed(const cg_func *f, ir_ref load)
{
    const cg_info *info = &f->info[load];
    const cg_access a = opjit_cg_access_of(f, load);
    const uint32_t rows = f->piece->block.rows, part = 128 / a.bits < rows ? 128 / a.bits : rows;
    int64_t by_row;
    ir_pace by_lane;
    return !f->piece->mask && f->piece->lanes >= part && f->piece->lanes > 1 && !info->outside &&
           opjit_cg_growth(f, &a, f->loops[f->piece->block.loop].var, &by_row) && by_row == 1 &&
           find_pace(f, &a, &by_lane) && (by_lane.size != 0 || (by_lane.step != 0 && by_lane.step != 1));
}

/* Lane 0's address in the first row, and elements from lane to lane. */
typedef struct lane_loads {
    const cg_access *a;
    LLVMValueRef first;   /* of copy 0 where there is a size */
    int64_t step, before; /* elements from lane to lane, and from `first` to lane 0 */
    LLVMValueRef size;    /* that both are times; NULL: 1 */
    uint32_t part;        /* rows of a load */
} lane_loads;

static LLVMValueRef load_lane(cg_func *f, const lane_loads *l, uint32_t row, uint32_t lane)
{
    const LLVMTypeRef element = opjit_cg_int(f, l->a->bits, 1);
    const int64_t place = l->before + (int64_t)lane * l->step;
    LLVMValueRef p = l->first;
    if (l->size != NULL && place != 0)
        p = opjit_cg_offset(f, element, p, opjit_cg_times(f, l->size, place));
    p = opjit_cg_offset(f, element, p, opjit_cg_number(f, 64, 1, (uint64_t)((l->size != NULL ? 0 : place) + row)));
    return opjit_cg_load_element(f, l->a, p, l->part, l->a->bits / 8);
}

/* Vectors of `part` rows each, joined: number k is of lane number k * part. */
static LLVMValueRef load_joined(cg_func *f, const lane_loads *l, uint32_t row, uint32_t lane, uint32_t count)
{
    LLVMValueRef halves[2];
    if (count == 1)
        return load_lane(f, l, row, lane);
    halves[0] = load_joined(f, l, row, lane, count / 2);
    halves[1] = load_joined(f, l, row, lane + count / 2 * l->part, count / 2);
    return opjit_cg_join(f, halves, 2);
}

/* Elements of `part` rows, from `row` on, for all lanes: a vector per row.  Each part is loaded just before it is
 * joined to another one, so that no registers wait for others. */
static void load_rows(cg_func *f, const lane_loads *l, uint32_t row, LLVMValueRef *out)
{
    const uint32_t lanes = f->piece->lanes, native = f->target->vector_bytes * 8 / l->a->bits, part = l->part;
    const uint32_t wide = lanes < native ? lanes : native, vectors = lanes / wide;
    LLVMValueRef done[CG_MAX_LANES], square[CG_MAX_LANES];
    for (uint32_t at = 0; at < vectors; at++) {
        for (uint32_t i = 0; i < part; i++)
            square[i] = load_joined(f, l, row, at * wide + i, wide / part);
        opjit_cg_transpose_squares(f, square, part);
        for (uint32_t i = 0; i < part; i++)
            done[i * vectors + at] = square[i];
    }
    for (uint32_t i = 0; i < part; i++)
        out[i] = opjit_cg_join(f, done + i * vectors, vectors);
}

/* Parts of 128 bits, or of fewer rows: those that shuffles work within. */
void opjit_cg_transpose_load(cg_func *f, ir_ref load, LLVMValueRef *out)
{
    const cg_access a = opjit_cg_access_of(f, load);
    const uint32_t rows = f->piece->block.rows, part = 128 / a.bits < rows ? 128 / a.bits : rows;
    const cg_loop *vec = &f->loops[f->piece->vec];
    ir_pace pace;
    find_pace(f, &a, &pace);
    const lane_loads l = { .a = &a,
                           .first = opjit_cg_lane0(f, &a),
                           .step = pace.step * vec->step,
                           .before = pace.size != 0 ? pace.step * vec->offset : 0,
                           .size = pace.size != 0 ? opjit_cg_emit(f, pace.size) : NULL,
                           .part = part };
    for (uint32_t r = 0; r < rows; r += part)
        load_rows(f, &l, r, out + r);
}
