/* SPDX-License-Identifier: Apache-2.0 */
/* plan.h - what is chosen for the loops of a stage: once, before code of it is emitted.  Facts of each loop are found,
 * the first strategy of an ordered table that applies to them is taken (strategies.c), and its parameters are worked
 * out.  The record says all that emission has to know; `opjit explain` prints it (plan_text.c), and tests/golden/plan
 * holds it.
 *
 * Copies of a body are code for so many vectors one after the other.  A cut is a part of the loop's iterations that one
 * piece of code does. */
#ifndef OPJIT_CODEGEN_STORES_PLAN_H
#define OPJIT_CODEGEN_STORES_PLAN_H

#include "codegen/cg.h"
#include "codegen/stores/traits.h"
#include "codegen/tuning.h"

enum { CG_MAX_CUTS = 14 };

/* --- facts -------------------------------------------------------------------------------------------------------- */
/* What is known of a loop, whatever is chosen. */
typedef struct cg_facts {
    ir_ref loop, var, body, lo, hi;
    ir_ref around;   /* the loop or stage whose body it stands in */
    uint32_t depth;  /* loops around it, the stage included: its bit in cg_info */
    uint32_t lanes;  /* of its vectors; 1: it has none */
    uint32_t unroll; /* copies that the schedule asks for; of a loop over rows: a block's rows */
    uint32_t bits;   /* of the widest element that it stores or accumulates */
    int64_t step;
    int64_t least, most; /* iterations */
    int64_t span;        /* hi - lo at most; INT64_MAX: not known */
    bool fixed;          /* hi - lo is known */
    bool ordered;        /* lo <= hi is known */
    bool early;          /* the bounds are of indices alone, known where the stage's iteration begins */
    bool nested;         /* it has loops or accumulators in it */
    bool alone;          /* an iteration of the loop around it does nothing else */
    bool rows;           /* it is over the rows of blocks that are transposed in registers */
    bool in_block;       /* the loop around it is */
    bool distributed;    /* its iterations are shared out to a team's threads */
    bool edge;           /* it is the first or the last line of a row */
    bool arithmetic;     /* it has more than copies and choices */
    bool updates;        /* its first statement updates an accumulator */
    bool nontemporal;    /* its stores go around the caches */
    bool maskable;       /* a remainder may be one masked vector */
    bool overlaps;       /* a remainder may begin in what was stored before */
    /* Where the body is one store and nothing else; else value is 0. */
    struct {
        ir_ref value;
        uint32_t tensor;
        bool contiguous; /* iterations store side by side */
        bool uniform;    /* one value in all iterations */
        bool repeatable; /* storing again stores the same: nothing is read that the stage changes, or under a mask */
    } store;
} cg_facts;

/* --- cuts --------------------------------------------------------------------------------------------------------- */
typedef enum cg_cut_kind {
    CG_CUT_ROUNDS,  /* a loop of rounds of `copies` vectors */
    CG_CUT_ONCE,    /* one such round */
    CG_CUT_STREAMS, /* rounds that go on at two places, half of the iterations apart */
    CG_CUT_TAILED,  /* all: `copies` vectors, and one more that is masked */
    CG_CUT_MASKED,  /* what is left, less than a vector: masked */
    CG_CUT_OVERLAP, /* the same as a whole vector, which begins in what was stored before */
    CG_CUT_PART,    /* so many of it as `lanes` says, or none */
} cg_cut_kind;

typedef struct cg_cut {
    cg_cut_kind kind;
    uint32_t lanes, copies;
    int64_t min, max; /* iterations that are left before it */
    int64_t rest;     /* and after it, where that is known; else -1 */
    bool first;       /* it begins where the loop does */
    bool binades;     /* rounds of whole numbers that become halves (half_integers.c) */
} cg_cut;

/* --- the plan ----------------------------------------------------------------------------------------------------- */
struct cg_pieces;
struct cg_range;
struct cg_plan;

/* A row of the table of strategies. */
typedef struct cg_strategy {
    const char *name;
    bool (*applies)(const cg_func *f, const struct cg_plan *plan);
    void (*choose)(const cg_func *f, struct cg_plan *plan);      /* its parameters; NULL: it has none */
    void (*emit)(const struct cg_pieces *p, struct cg_range *r); /* the iterations of *r; NULL: emit_loop does all */
    void (*emit_loop)(cg_func *f, const struct cg_plan *plan);
} cg_strategy;

typedef enum cg_place_of { CG_BEFORE_LOOP, CG_IN_ROUNDS, CG_NOWHERE } cg_place_of;

typedef struct cg_plan {
    cg_facts is;
    struct cg_plan *next;          /* of the stage, in the order of the text */
    const struct cg_plan *blocked; /* of the same loop where it is inside of a block of rows; NULL: it never is */
    const cg_strategy *strategy;
    uint32_t copies;     /* of vectors in a round */
    uint32_t abreast;    /* of these, whose operations are made in turn */
    uint32_t read_ahead; /* bytes from a line that is stored to the one that is read; 0: none is */
    bool prefetch;       /* loads fetch lines for rounds to come */
    bool early;          /* bounds are computed at the end of the row's first block */
    cg_place_of still;   /* where what does not change in the loop is computed; nowhere: it is not needed */
    ir_ref point;        /* select that is false in all elements but one, which is stored afterwards; 0: none */
    bool binades;        /* whole numbers become halves by additions */
    const char *table;   /* what is stored, to be read from the module; NULL: it is computed */
    size_t table_bytes;
    uint32_t table_period; /* vectors after which it repeats, if registers have room for them; else 0 */
    /* of strategies */
    uint32_t part;            /* short_run: elements of a store */
    uint32_t even;            /* aligned, whole_blocks: copies in rounds of which the last one reaches back; 0: cuts */
    uint32_t streams;         /* aligned, two_rows: copies in a round at two places, before these; 0: none */
    cg_cut cuts[CG_MAX_CUTS]; /* one after the other */
    uint32_t cut_count;
} cg_plan;

/* Two rows of a stage at a time, half of the stage apart. */
typedef struct cg_two_rows {
    uint32_t copies; /* in a round of both; 0: rows are done one after the other */
    int64_t row;     /* elements of a row */
    int64_t growth;  /* from a row's one element to that of the next row */
} cg_two_rows;

typedef struct cg_stage_plan {
    ir_ref stage;
    bool once;       /* it has one iteration */
    bool early;      /* what loops count with is computed at the end of an iteration's first block */
    int64_t at_once; /* iterations in a round */
    cg_two_rows rows;
} cg_stage_plan;

/* Plans the stage and all of its loops, after opjit_cg_survey: f->stage and f->plans. */
opjit_status opjit_cg_plan(cg_func *f, ir_ref stage);
/* Appends a line for the stage, which is number `index`, and one for each of its loops.  numbers: by node of the
 * function that the stage is taken from, that in its text + 1; NULL: loops have no names. */
void opjit_cg_plan_text(const cg_func *f, const uint32_t *numbers, uint32_t index, rt_bytes *out);

/* --- what strategies.c and the strategies' files share ------------------------------------------------------------ */
/* facts.c; depth: loops around it. */
void opjit_cg_find_facts(const cg_func *f, ir_ref around, ir_ref loop, uint32_t depth, bool in_block, cg_facts *out);
extern const cg_strategy opjit_cg_strategies[]; /* strategies.c; up to one without a name */

/* cuts.c: the remainder after whole vectors of `size` iterations, if it is the same for all runs of the loop; else
 * -1. */
int64_t opjit_cg_known_rest(const cg_func *f, const cg_facts *is, uint64_t size);
/* Cuts of `min` to `max` iterations, as whole vectors and a remainder, after those that the plan has. */
void opjit_cg_plan_cuts(const cg_func *f, cg_plan *plan, int64_t min, int64_t max, bool aligned);
/* As many times lanes x copies iterations as there are; not from the loop's begin on. */
void opjit_cg_plan_whole(const cg_func *f, cg_plan *plan, uint32_t lanes, uint32_t copies, int64_t *min, int64_t *max);

/* two_streams.c: copies that a round has at two places, a half at each, of a loop with `most` iterations that begins
 * where memory has a whole vector, or (not aligned) may do; 0: it is not better off with two. */
uint32_t opjit_cg_stream_copies(const cg_func *f, const cg_plan *plan, int64_t most, bool aligned);

/* row_edge.c */
void opjit_cg_row_edge(cg_func *f, const cg_plan *plan);

#endif
