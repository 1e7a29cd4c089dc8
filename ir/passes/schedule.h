/* SPDX-License-Identifier: Apache-2.0 */
/* schedule.h - rows as schedule sees them: chains of loops that each store a part of one row.  Shared by
 * schedule.c, boundary.c, work.c, edge.c, ends.c and transpose.c. */
#ifndef OPJIT_IR_PASSES_SCHEDULE_H
#define OPJIT_IR_PASSES_SCHEDULE_H

#include "ir/passes/pass.h"

enum {
    MAX_CHAIN = 16,
    MAX_LOOPS = 24,      /* of a stage, rule V16 */
    MAX_UNROLL = 16,     /* of loops that do more than store, and of loops that are spelled out */
    STORE_UNROLL = 32,   /* of a loop that stores what costs next to nothing */
    LONE_UNROLL = 64,    /* and where that is all that an iteration of its stage does */
    MATH_COST = 16,      /* about what the shortest math op becomes */
    SPELLED_OUT = 65536, /* a cost: the loop is to be straight-line code, since its conditions are then constants */
};

typedef struct scheduler {
    ir_func *f;
    const rt_target *target;
    ir_ref stage;
    uint32_t loops;     /* of the stage, boundaries included */
    ir_table loaded;    /* the tensors that the stage loads, themselves or a view of them */
    bool threads;       /* a GPU: each loop is spread over a team's threads, whose round is whole vectors */
    uint32_t team;      /* of the stage: as many; 0: no GPU */
    bool beyond_caches; /* what the kernel touches exceeds the last level */
} scheduler;

typedef struct chain {
    uint32_t count;
    ir_ref loops[MAX_CHAIN];
    ir_ref bounds[MAX_CHAIN + 1]; /* of piece i: i, i + 1 */
    int64_t lanes;
    uint32_t cost; /* of the dearest piece */
    bool math;     /* functions of mathematics are in some */
    int64_t group; /* elements that are stored together: some vectors */
    ir_ref end;    /* after the last whole group */
    ir_ref base;   /* where groups begin */
    bool uniform;  /* one loop chooses: all of the row is one value, but for single elements, or a round */
    bool edges;    /* base is behind the row's first line, which may be shared with another row */
    bool carry;    /* and that row is the one before */
    bool repeats;  /* any of it may be stored twice: its last vector is stored whole */
} chain;

/* What a loop that makes vectors does. */
typedef struct work {
    ir_ref store;     /* its only statement; 0: there is more */
    uint32_t size;    /* bytes of the largest element that it stores or accumulates */
    uint32_t cost;    /* operations on elements */
    bool math;        /* functions of mathematics are among them */
    uint32_t gathers; /* loads that are made lane by lane */
} work;

/* Lanes of a vector of what the loop stores. */
int64_t opjit_ir_lanes_of(const scheduler *s, const work *w);
/* Copies of the body in a round of a loop over [lo, hi). */
uint16_t opjit_ir_unroll_of(const scheduler *s, ir_ref lo, ir_ref hi, const work *w, int64_t lanes);
/* Lanes of the loop: what a vector holds, or less for a loop that is known to be shorter and has no masks to make up
 * for it. */
int64_t opjit_ir_lanes_for(const scheduler *s, ir_ref loop, const work *w);
/* Copies of a loop that makes no vectors, of one store or of running updates; false: it holds something else. */
bool opjit_ir_set_copies(scheduler *s, ir_ref loop);
/* unroll 0: as fits the body; at_line: the loop begins at a whole vector in memory, as is known of its row's edges. */
void opjit_ir_set_vector(scheduler *s, ir_ref loop, const work *w, int64_t unroll, bool at_line);
uint32_t opjit_ir_team_for(scheduler *s); /* team.c: threads of the stage's team; 0: no GPU */
/* Whether the loop makes vectors: stores of neighbours, everything else the same or in equal steps, or known. */
bool opjit_ir_find_work(ir_func *f, ir_ref loop, work *out);
/* Whether the loop has no other one inside and updates an accumulator of one lane, and what an iteration costs. */
bool opjit_ir_find_running(ir_func *f, ir_ref loop, uint32_t *out_cost);
/* Whole vectors of the tensor are aligned wherever a row starts. */
bool opjit_ir_rows_are_aligned(const ir_tensor *t, uint32_t vector_bytes);
bool opjit_ir_loads_tensor(const scheduler *s, uint32_t tensor); /* the stage: that, or what may share its memory */
/* step.c: whether a load in the loop can be made vectors of, or lanes one by one, which *gathers counts; what it
 * costs more than a load of neighbours is added to *cost. */
bool opjit_ir_loads_vectors(const ir_func *f, ir_ref load, ir_ref loop, uint32_t *cost, uint32_t *gathers);

/* --- boundaries (boundary.c)
 * ------------------------------------------------------------------------------------------ */
/* The longest chain of single stores that begins with `loop`. */
void opjit_ir_find_chain(scheduler *s, ir_ref loop, chain *out);
/* The chain's row as loops over whole groups, at the end of the list. */
void opjit_ir_add_row(scheduler *s, block *out, chain *c);

/* --- edges (edge.c) ------------------------------------------------------------------------------------------ */
ir_ref opjit_ir_chain_store(const ir_func *f, const chain *c);   /* of the first loop */
int64_t opjit_ir_chain_line(const scheduler *s, const chain *c); /* elements in a line of memory */
bool opjit_ir_chain_repeats(scheduler *s, const chain *c); /* anything of the row may be computed and stored twice */
ir_ref opjit_ir_chain_head(scheduler *s, const chain *c);  /* how many elements of the row are in its first line */
bool opjit_ir_chain_touches(scheduler *s, const chain *c); /* the next iteration's row begins in memory where it ends */
/* Long rows of unknown alignment past the caches: their whole lines are stored around the caches.  In short ones the
 * edges, which cost as much as some lines, would be most of the work. */
bool opjit_ir_chain_wants_edges(scheduler *s, const chain *c);
void opjit_ir_set_edge(ir_func *f, ir_ref loop, const chain *c, uint32_t edge);

/* remainder.c: a loop whose end is made of whole rounds, or that is two, with an end of its own; false: it has none. */
bool opjit_ir_add_remainder(scheduler *s, block *out, ir_ref loop, const work *w);

/* transpose.c: marks a loop, in the block of `around`, and the one inside it as blocks that are transposed in
 * registers; false: another shape, and nothing changed. */
bool opjit_ir_transpose(scheduler *s, ir_ref around, ir_ref loop);

#endif
