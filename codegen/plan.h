/* SPDX-License-Identifier: Apache-2.0 */
/* plan.h - what is chosen for the loops of a stage: once, before code of it is emitted.  Facts of each loop are found,
 * the first strategy of an ordered table that applies to them is taken (strategies.c), and its parameters are worked
 * out.  The record says all that emission has to know; `opjit explain` prints it (plan_text.c), and tests/golden/plan
 * holds it.
 *
 * Copies of a body are code for so many vectors one after the other.  A cut is a part of the loop's iterations that one
 * piece of code does. */
#ifndef OPJIT_CODEGEN_PLAN_H
#define OPJIT_CODEGEN_PLAN_H

#include "codegen/cg.h"
#include "codegen/targets/traits.h"

enum { CG_MAX_CUTS = 14 };

/* --- facts -------------------------------------------------------------------------------------------------------- */
/* Facts of a loop, independent of what is chosen. */
typedef struct cg_facts {
    ir_ref loop, var, body, lo, hi;
    ir_ref around;   /* the loop or stage that contains it */
    uint32_t depth;  /* enclosing loops, the stage included: its bit in cg_info */
    uint32_t lanes;  /* of its vectors; 1: no vectors */
    uint32_t unroll; /* copies that the schedule asks for; for a loop over rows, a block's rows */
    uint32_t bits;   /* of the widest element that it stores or accumulates */
    int64_t step;
    int64_t least, most; /* iterations */
    int64_t span;        /* hi - lo at most; INT64_MAX: not known */
    bool fixed;          /* hi - lo is known */
    bool ordered;        /* lo <= hi is known */
    bool early;          /* the bounds depend on indices only, known where the stage's iteration begins */
    bool same;           /* the bounds are the same in all iterations, and known when the kernel runs */
    bool nested;         /* it contains loops or accumulators */
    bool alone;          /* it is all that an iteration of the enclosing loop does */
    bool rows;           /* it is over the rows of blocks that are transposed in registers */
    bool in_block;       /* the enclosing loop is one */
    bool distributed;    /* its iterations are distributed over a team's threads */
    bool edge;           /* it is the first or the last line of a row */
    bool arithmetic;     /* it has more than copies and selects */
    uint32_t calls;      /* its body calls mathematical functions, for that many copies at once; 0: none */
    bool updates;        /* its first statement updates an accumulator */
    bool nontemporal;    /* its stores go around the caches */
    bool maskable;       /* a remainder may be one masked vector */
    bool overlaps;       /* a remainder may begin in what was stored before */
    /* If the body is a single store; else value is 0. */
    struct {
        ir_ref value;
        uint32_t tensor;
        bool contiguous; /* iterations store side by side */
        bool uniform;    /* one value in all iterations */
        bool repeatable; /* it may be stored twice: it reads nothing that the stage changes, and nothing under a mask */
    } store;
} cg_facts;

/* --- cuts --------------------------------------------------------------------------------------------------------- */
typedef enum cg_cut_kind {
    CG_CUT_ROUNDS,  /* a loop of rounds of `copies` vectors */
    CG_CUT_ONCE,    /* one such round */
    CG_CUT_STREAMS, /* rounds at two places in turn, half of the iterations apart */
    CG_CUT_TAILED,  /* all: `copies` vectors, and one more that is masked */
    CG_CUT_MASKED,  /* the remainder of less than a vector, masked */
    CG_CUT_OVERLAP, /* the same as a whole vector that begins in what was stored before */
    CG_CUT_PART,    /* `lanes` of it, or none */
} cg_cut_kind;

/* Where a body's accumulators are in a cut. */
typedef enum cg_acc_place {
    CG_ACC_MEMORY,
    CG_ACC_ROUND, /* in registers, from the start of a round to its end */
    CG_ACC_LOOP,  /* in registers, from before the rounds to behind them */
} cg_acc_place;

typedef struct cg_cut {
    cg_cut_kind kind;
    uint32_t lanes, copies;
    int64_t min, max; /* remaining iterations before it */
    int64_t rest;     /* and after it, if known; else -1 */
    bool first;       /* it begins at the loop's start */
    bool binades;     /* rounds of whole numbers that become halves (half_integers.c) */
    cg_acc_place accumulators;
} cg_cut;

/* --- groups ------------------------------------------------------------------------------------------------------- */
/* A distributed loop on one thread: rounds of so many of its groups, one after the other. */
typedef struct cg_groups {
    uint32_t lanes;   /* iterations of a group */
    uint32_t threads; /* that take groups in turn */
    uint32_t several; /* groups in a round; 0: no such rounds */
    bool exact;       /* these are one round of all threads, in which none has to check where the loop ends */
    bool one;         /* each thread has at most one group, which is whole */
    bool single;      /* rounds of one group */
    bool rest;        /* then single iterations, fewer than a group has */
    bool updates;     /* of accumulators: k goes to threads by its number, and not by its place in the loop */
} cg_groups;

/* --- the plan ----------------------------------------------------------------------------------------------------- */
struct cg_pieces;
struct cg_range;
struct cg_plan;
struct cg_tile_plan;

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
    const struct cg_plan *blocked; /* the same loop's plan inside a block of rows; NULL: it is never in one */
    const struct cg_tile_plan *tile; /* that the loop belongs to (hold/hold.h); NULL: none */
    const cg_strategy *strategy;
    uint32_t copies;     /* of vectors in a round */
    uint32_t abreast;    /* of pieces of 2 to CG_MAX_SIDE_BY_SIDE vectors: as many have their operations interleaved; 0:
                            copies come one after the other */
    uint32_t read_ahead; /* bytes from a line that is stored to the one that is read; 0: nothing is read ahead */
    bool prefetch;       /* loads prefetch lines for later rounds */
    bool early;          /* bounds are computed at the end of the row's first block */
    cg_place_of still;   /* where values that do not change in the loop are computed; nowhere: they are not needed */
    ir_ref point;        /* select that is false in all elements except one, which is stored afterwards; 0: none */
    bool binades;        /* whole numbers become halves by additions */
    ir_ref tabled;       /* the stored value, or a part of it, that is read from a table in the module; 0: none */
    const char *table;   /* its values */
    size_t table_bytes;
    uint32_t table_period; /* vectors after which it repeats, if registers have room for them; else 0 */
    /* of strategies */
    uint32_t part;            /* short_run: elements of a store; uniform_fill: of its first and last store at most */
    uint32_t least_part;      /* uniform_fill: and at least, both powers of two */
    uint32_t long_end;        /* uniform_fill: vectors at the end of a run in rounds, before which there may be as many
                                 again; 0: no run is as long */
    cg_groups groups;         /* distribute */
    uint32_t interleaved;     /* interleave, rows_in_lanes: rows per vector; 0: one after the other */
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
    bool same;       /* what follows from dimensions alone is computed before all iterations */
    int64_t at_once; /* iterations per round */
    cg_two_rows rows;
    uint32_t interleaved; /* of these in a vector of each element of a row; 0: they are scalars */
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
/* Appends cuts for `min` to `max` iterations to the plan: whole vectors and a remainder. */
void opjit_cg_plan_cuts(const cg_func *f, cg_plan *plan, int64_t min, int64_t max, bool aligned);
/* As many times lanes x copies iterations as there are; not from the loop's start on. */
void opjit_cg_plan_whole(const cg_func *f, cg_plan *plan, uint32_t lanes, uint32_t copies, int64_t *min, int64_t *max);
/* The last `min` to `max` iterations as a vector that begins in what was stored before. */
void opjit_cg_plan_overlap(cg_plan *plan, uint32_t lanes, int64_t min, int64_t max);

/* two_streams.c: copies per round in two streams, half in each, for a loop with `most` iterations that begins at a
 * whole vector of memory, or (not aligned) may do so; 0: one stream is better. */
uint32_t opjit_cg_stream_copies(const cg_func *f, const cg_plan *plan, int64_t most, bool aligned);

/* Of an element of the table with the node's values (emit/reads.c). */
uint32_t opjit_cg_table_bits(const cg_func *f, const cg_facts *is, ir_ref node);

/* row_edge.c */
void opjit_cg_row_edge(cg_func *f, const cg_plan *plan);

#endif
