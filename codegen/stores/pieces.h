/* SPDX-License-Identifier: Apache-2.0 */
/* pieces.h - the pieces of a loop, which loop.c emits, and the strategies that arrange them: for each, whether it
 * applies, its parameters, and its code. */
#ifndef OPJIT_CODEGEN_STORES_PIECES_H
#define OPJIT_CODEGEN_STORES_PIECES_H

#include "codegen/plan.h"

/* The remaining iterations: count of them from pos on. */
typedef struct cg_range {
    LLVMValueRef pos;   /* value of the variable */
    LLVMValueRef count; /* i64 */
    LLVMValueRef end;   /* pos + count * step, if it is known; else NULL */
    bool early;         /* pos and count are known early */
    cg_when when;       /* they are computed, and so may be what depends on them */
} cg_range;

/* A loop that is being emitted. */
typedef struct cg_pieces {
    cg_func *f;
    const cg_plan *plan;
    LLVMValueRef start; /* lo */
} cg_pieces;

static inline LLVMValueRef cg_number(const cg_func *f, int64_t value)
{
    return opjit_cg_number(f, 64, 1, (uint64_t)value);
}

/* pos + count * step */
static inline LLVMValueRef cg_advance(const cg_pieces *p, LLVMValueRef pos, LLVMValueRef count)
{
    const int64_t step = p->plan->is.step;
    LLVMValueRef by = step == 1 ? count : LLVMBuildMul(p->f->b, count, cg_number(p->f, step), "");
    return opjit_cg_add(p->f, pos, by);
}

/* --- loop.c ------------------------------------------------------------------------------------------------------- */
/* The body for lanes x copies iterations from iv on. */
void opjit_cg_piece(const cg_pieces *p, uint32_t lanes, uint32_t copies, LLVMValueRef iv);
/* Emits the plan's cuts; *r is left with the remaining iterations. */
void opjit_cg_put_cuts(const cg_pieces *p, cg_range *r);

/* --- fill.c ------------------------------------------------------------------------------------------------------- */
/* One value, of any length: any element of the loop may be stored again, because all are the same. */
bool opjit_cg_is_fill(const cg_func *f, const cg_plan *plan);
void opjit_cg_choose_fill(const cg_func *f, cg_plan *plan);
void opjit_cg_put_fill(const cg_pieces *p, cg_range *r);

/* At quick: a run of one constant that has at least `part` elements, a power of two, at most a few times as many, and
 * less than a vector: a few stores of `part` elements, the last ones overlapping, without a condition. */
bool opjit_cg_is_short_run(const cg_func *f, const cg_plan *plan);
void opjit_cg_choose_short_run(const cg_func *f, cg_plan *plan);
void opjit_cg_put_short_run(const cg_pieces *p, cg_range *r);

/* --- aligned.c ---------------------------------------------------------------------------------------------------- */
/* Whether it is better to begin in the middle of the loop's first vector, where whole vectors are: a loop that stores
 * many vectors at an unknown place, of which every other one would cross lines.  Its ends are stored twice then.  In
 * rounds of which the last one reaches back, or in two streams; else in cuts. */
bool opjit_cg_is_aligned_streams(const cg_func *f, const cg_plan *plan);
bool opjit_cg_is_aligned_rounds(const cg_func *f, const cg_plan *plan);
bool opjit_cg_seeks_alignment(const cg_func *f, const cg_plan *plan);
void opjit_cg_choose_even(const cg_func *f, cg_plan *plan);
void opjit_cg_choose_aligned(const cg_func *f, cg_plan *plan);
void opjit_cg_put_even(const cg_pieces *p, cg_range *r);
void opjit_cg_put_aligned(const cg_pieces *p, cg_range *r);

/* --- interleave.c ------------------------------------------------------------------------------------------------- */
/* Rows of a few elements, each read along a row of its own: iterations of the stage or loop around them in a vector of
 * each element; 0: it is not such a loop. */
uint32_t opjit_cg_find_interleaved(const cg_func *f, const cg_facts *is);
bool opjit_cg_is_interleaved(const cg_func *f, const cg_plan *plan);
void opjit_cg_choose_interleaved(const cg_func *f, cg_plan *plan);
void opjit_cg_put_interleaved(const cg_pieces *p, cg_range *r); /* of all lanes of the piece, or of one iteration */
/* A loop that contains only such rows. */
bool opjit_cg_is_over_interleaved(const cg_func *f, const cg_plan *plan);
void opjit_cg_choose_over_interleaved(const cg_func *f, cg_plan *plan);
void opjit_cg_put_over_interleaved(const cg_pieces *p, cg_range *r);

/* --- whole_blocks.c ----------------------------------------------------------------------------------------------- */
/* A block of rows that are transposed, or what is inside of one: whole blocks, of which the last one reaches back. */
bool opjit_cg_is_whole_blocks(const cg_func *f, const cg_plan *plan);
void opjit_cg_put_whole_blocks(const cg_pieces *p, cg_range *r);

/* --- two_streams.c ------------------------------------------------------------------------------------------------ */
/* Rounds of copies at two places, half of the loop's `min` to `max` iterations apart; *r is left with the rest. */
void opjit_cg_put_streams(const cg_pieces *p, uint32_t copies, int64_t min, int64_t max, cg_range *r);
/* Two rows, half of the stage apart. */
cg_two_rows opjit_cg_find_two_rows(const cg_func *f, const cg_facts *is);
void opjit_cg_put_two_rows(const cg_pieces *p, cg_range *r);

/* --- read_ahead.c ------------------------------------------------------------------------------------------------- */
/* The distance in bytes from what is stored to what is read; 0: nothing is read ahead. */
uint32_t opjit_cg_find_read_ahead(const cg_func *f, const cg_facts *is);
uint32_t opjit_cg_read_ahead_copies(const cg_facts *is); /* enough if it reads ahead */

/* --- one_element.c ------------------------------------------------------------------------------------------------ */
/* The select that chooses one value in one element of the loop and another in all others; 0: none. */
ir_ref opjit_cg_find_point(const cg_func *f, const cg_facts *is);
/* How much the column of its element grows from row to row; 0: not by a constant. */
int64_t opjit_cg_point_growth(const cg_func *f, const cg_facts *is, ir_ref point, ir_ref row);
/* Stores the element, if it is one of `count` from `begin` on, after the others; in both rows if there are two. */
void opjit_cg_put_point(cg_func *f, const cg_plan *plan, LLVMValueRef begin, LLVMValueRef count);

/* --- table.c ------------------------------------------------------------------------------------------------------ */
/* Sets plan->tabled, if reading what the loop computes alike in each of its runs is better than computing it. */
void opjit_cg_make_table(cg_func *f, cg_plan *plan);
/* It as data of the module, which the innermost loop reads from then on, in *out. */
void opjit_cg_put_table(cg_func *f, const cg_plan *plan, cg_table *out);

/* --- half_integers.c ---------------------------------------------------------------------------------------------- */
/* Whether all that the loop does is to store short integers as halves, for which the target has an instruction: then
 * rounds should have CG_SHORT_COPIES vectors. */
bool opjit_cg_converts_shorts(const cg_func *f, const cg_facts *is);
/* Whether it stores whole numbers in equal steps as halves, in rounds of CG_HALF_COPIES vectors. */
bool opjit_cg_is_in_binades(const cg_func *f, const cg_plan *plan);
void opjit_cg_put_halves(const cg_pieces *p, LLVMValueRef iv); /* such a round */

#endif
