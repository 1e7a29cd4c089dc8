/* SPDX-License-Identifier: Apache-2.0 */
/* pieces.h - the pieces of a loop, as loop.c cuts them and fill.c and two_streams.c put them in order. */
#ifndef OPJIT_CODEGEN_STORES_PIECES_H
#define OPJIT_CODEGEN_STORES_PIECES_H

#include "codegen/cg.h"

enum { CG_PEAK_COPIES = 8 }; /* in a loop of many copies */

/* Iterations that are still to be done: count of them from pos on. */
typedef struct cg_range {
    LLVMValueRef pos;   /* value of the variable */
    LLVMValueRef count; /* i64 */
    LLVMValueRef end;   /* pos + count * step, where that is at hand; else NULL */
    int64_t min, max;   /* of count */
    bool early;         /* pos and count are there early, and so may be what is computed of them */
} cg_range;

typedef struct cg_pieces {
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
} cg_pieces;

static inline LLVMValueRef cg_number(const cg_func *f, int64_t value)
{
    return opjit_cg_number(f, 64, 1, (uint64_t)value);
}

/* pos + count * step */
static inline LLVMValueRef cg_advance(const cg_pieces *p, LLVMValueRef pos, LLVMValueRef count)
{
    LLVMValueRef by = p->step == 1 ? count : LLVMBuildMul(p->f->b, count, cg_number(p->f, p->step), "");
    return opjit_cg_add(p->f, pos, by);
}

/* --- loop.c ---------------------------------------------------------------------------------------------------- */
/* The body for lanes x copies iterations from iv on. */
void opjit_cg_piece(const cg_pieces *p, uint32_t lanes, uint32_t copies, LLVMValueRef iv);
/* As many times lanes x copies iterations as there are; the rest stays in *r. */
void opjit_cg_whole(const cg_pieces *p, uint32_t lanes, uint32_t copies, cg_range *r);
/* All of *r, in whole vectors several at a time, whole vectors, and the remainder. */
void opjit_cg_pieces(const cg_pieces *p, cg_range *r);
/* The remainder after whole vectors of `size` iterations, if it is the same for all runs of the loop; else -1. */
int64_t opjit_cg_known_rest(const cg_pieces *p, uint64_t size);

/* --- fill.c ---------------------------------------------------------------------------------------------------- */
/* Whether any element of the loop may be stored again, since all are the same. */
bool opjit_cg_stores_one_value(const cg_func *f, const cg_pieces *p);
void opjit_cg_put_fill(const cg_pieces *p, const cg_range *r); /* then */
/* Whether the loop is better begun in the middle of its first vector, where whole vectors are: one that stores many
 * of them at an unknown place, each other one across two lines.  Its ends are stored twice then. */
bool opjit_cg_seeks_alignment(cg_func *f, const cg_pieces *p, const cg_range *r);
void opjit_cg_put_aligned(const cg_pieces *p, const cg_range *r); /* then */

/* At quick: a run of one constant that is at least `part` elements, a power of two, and at most a few times that, and
 * less than a vector: some stores of as many, the last ones over each other, and no condition. */
bool opjit_cg_is_brief(const cg_func *f, ir_ref loop, int64_t *part);
void opjit_cg_put_brief(const cg_pieces *p, const cg_range *r, int64_t part);

/* --- read_ahead.c --------------------------------------------------------------------------------------------------- */
/* Copies in a round: as many as are unrolled, or fewer where their lines are read ahead. */
uint32_t opjit_cg_ahead_copies(const cg_pieces *p, uint32_t bits);

/* --- half_integers.c ---------------------------------------------------------------------------------------------------- */
/* Whether all that the loop does is to store short integers as halves, for which the target has an instruction: then
 * rounds had better have as many vectors. */
enum { CG_SHORT_COPIES = 32 };
bool opjit_cg_converts_shorts(const cg_func *f, const cg_pieces *p);

/* --- two_streams.c -------------------------------------------------------------------------------------------------- */
/* Copies that a round of *r has at two fronts, a half at each; 0: it is not better off with two. */
uint32_t opjit_cg_front_copies(const cg_pieces *p, const cg_range *r);
/* Rounds of copies at two fronts, half of the loop apart; what is left stays in *r. */
void opjit_cg_put_fronts(const cg_pieces *p, uint32_t copies, cg_range *r);
/* Two rows, half of the stage apart, where f->fronts.rows is given. */
void opjit_cg_put_two_rows(const cg_pieces *p, const cg_range *r);

#endif
