/* SPDX-License-Identifier: Apache-2.0 */
/* scheduler.h - pass schedule and its steps: the stage that is being scheduled, rows as chains of loops that each store
 * a part of one row, and what a loop does. */
#ifndef OPJIT_IR_PASSES_SCHEDULE_SCHEDULER_H
#define OPJIT_IR_PASSES_SCHEDULE_SCHEDULER_H

#include "ir/passes/pass.h"

enum {
    MAX_CHAIN = 16,
    MAX_HELD = 4,        /* loops inside one with hold around the current one */
    MAX_LOOPS = 96,      /* of a stage, rule V16 */
    MAX_UNROLL = 16,     /* of loops that do more than store, and of loops that become straight-line code */
    STORE_UNROLL = 32,   /* of a loop that stores what costs next to nothing */
    LONE_UNROLL = 64,    /* and if that is all that an iteration of its stage does */
    MATH_COST = 16,      /* roughly the cost of the shortest math op */
    SPELLED_OUT = 65536, /* a cost: the loop should become straight-line code, whose conditions are constants */
};

typedef struct scheduler {
    ir_func *f;
    const rt_target *target;
    ir_ref stage;
    uint32_t loops;     /* of the stage, boundaries included */
    ir_table loaded;    /* the tensors that the stage loads, directly or through a view */
    bool threads;       /* a GPU: each loop is distributed over a team's threads, whose round is whole vectors */
    uint32_t team;      /* of the stage; 0: not a GPU */
    bool beyond_caches; /* the memory that the kernel touches exceeds the last cache */
    ir_ref held[MAX_HELD]; /* the loop with hold around the current one, and those inside it, the outermost first */
    uint32_t held_count;
} scheduler;

typedef struct chain {
    uint32_t count;
    ir_ref loops[MAX_CHAIN];
    ir_ref bounds[MAX_CHAIN + 1]; /* of piece i: i, i + 1 */
    int64_t lanes;
    uint32_t cost; /* of the costliest piece */
    bool math;     /* some contain mathematical functions */
    int64_t group; /* elements that are stored together: some vectors */
    ir_ref end;    /* after the last whole group */
    ir_ref base;   /* where groups begin */
    bool uniform;  /* one loop: the row is one value except for single elements, or is one round */
    bool edges;    /* base is after the row's first line, which another row may share */
    bool carry;    /* and that row is the previous one */
    bool repeats;  /* any part may be stored twice: its last vector is stored whole */
} chain;

/* What a loop with vectors does. */
typedef struct work {
    ir_ref store;     /* its only statement; 0: there is more, or another one */
    bool update;      /* its only statement is one of an accumulator */
    uint32_t size;    /* bytes of the largest element that it stores or accumulates */
    uint32_t wide;    /* bytes of the largest element that it computes */
    uint32_t cost;    /* operations on elements */
    bool math;        /* mathematical functions are among them */
    bool places;      /* it finds places of extremes */
    uint32_t worth;   /* operations that justify its loads of single lanes */
    bool single;      /* they take longer than what vectors save */
} work;

/* --- the stage (scheduler.c) -------------------------------------------------------------------------------------- */
/* Whether the kernel's memory exceeds the target's last cache; never on a GPU. */
bool opjit_ir_exceeds_caches(const ir_func *f, const rt_target *target);
/* Collects the tensors that the stage loads, before its blocks are rebuilt, because not all of it can be reached
 * meanwhile; false: no memory. */
bool opjit_ir_find_loads(scheduler *s);
bool opjit_ir_loads_tensor(const scheduler *s, uint32_t tensor); /* it, or a tensor that may share its memory */
/* Whole vectors of the tensor are aligned wherever a row starts. */
bool opjit_ir_rows_are_aligned(const ir_tensor *t, uint32_t vector_bytes);

/* --- attributes (attributes.c) ------------------------------------------------------------------------------------ */
/* The lanes of a vector of what the loop stores. */
int64_t opjit_ir_lanes_of(const scheduler *s, const work *w);
/* Copies of the body per round of a loop over [lo, hi). */
uint16_t opjit_ir_unroll_of(const scheduler *s, ir_ref lo, ir_ref hi, const work *w, int64_t lanes);
/* The loop's lanes: what a vector holds; fewer for a loop that is known to be shorter and has no masks to
 * compensate. */
int64_t opjit_ir_lanes_for(const scheduler *s, ir_ref loop, const work *w);
/* Copies of a loop without vectors, of one store or of running updates; false: it contains something else. */
bool opjit_ir_set_copies(scheduler *s, ir_ref loop);
/* unroll 0: as fits the body; at_line: the loop begins at a whole vector in memory, as is known from its row's
 * edges. */
void opjit_ir_set_vector(scheduler *s, ir_ref loop, const work *w, int64_t unroll, bool at_line);

/* team.c: the stage's team on a GPU; else none. */
void opjit_ir_choose_team(scheduler *s);

/* --- what a loop does (work.c, step.c) ---------------------------------------------------------------------------- */
/* Whether the loop makes vectors: stores of neighbours, with everything else constant, in equal steps, or known. */
bool opjit_ir_find_work(const scheduler *s, ir_ref loop, work *out);
/* Bytes of the largest element among the nodes that differs from lane to lane of a loop with this variable. */
uint32_t opjit_ir_widest(ir_func *f, const ir_reach *seen, ir_ref var);
/* Whether the loop contains no other loop and updates an accumulator of one lane; and the cost of an iteration. */
bool opjit_ir_find_running(ir_func *f, ir_ref loop, uint32_t *out_cost);
/* step.c: whether vectors can be made of a load in the loop, or single lanes, if there are as many operations as it
 * adds to w->worth; adds its additional cost, compared with a load of neighbours, to w->cost, and what vectors compute
 * of its place. */
bool opjit_ir_loads_vectors(const scheduler *s, ir_ref load, ir_ref loop, work *w);
/* step.c: whether the index is made of loaded elements by sums, multiples, limits and choices: no division.  Counts
 * these operations. */
bool opjit_ir_is_of_table(const ir_func *f, ir_ref index, ir_ref var, uint32_t *out_count);
/* step.c, in a loop with hold: whether all loads that would be done lane by lane lie side by side along a loop around,
 * so that they are squares that are transposed in registers. */
bool opjit_ir_turns_loads(scheduler *s, ir_ref loop, const work *w);

/* --- boundaries (boundary.c) -------------------------------------------------------------------------------------- */
/* If `loop` begins a row of several pieces, or one that wants edges: appends the row to the list as loops over whole
 * groups; *next becomes what comes after the pieces.  false: no such row, and nothing changed. */
bool opjit_ir_add_row(scheduler *s, block *out, ir_ref loop, ir_ref *next);

/* --- edges (edge.c) ----------------------------------------------------------------------------------------------- */
int64_t opjit_ir_chain_line(const scheduler *s, const chain *c); /* elements in a line of memory */
bool opjit_ir_chain_repeats(scheduler *s, const chain *c); /* any part of the row may be computed and stored twice */
ir_ref opjit_ir_chain_head(scheduler *s, const chain *c);  /* the number of the row's elements in its first line */
bool opjit_ir_chain_touches(scheduler *s, const chain *c); /* the next iteration's row begins where this one ends */
/* Long rows of unknown alignment past the caches: their whole lines are stored around the caches.  In short rows the
 * edges, which cost as much as some lines, would be most of the work. */
bool opjit_ir_chain_wants_edges(scheduler *s, const chain *c);
void opjit_ir_set_edge(ir_func *f, ir_ref loop, const chain *c, uint32_t edge);

/* remainder.c: makes a loop of the stage's own block end with whole rounds, or adds a second loop for its end, and
 * appends them to the list; false: neither fits. */
bool opjit_ir_add_remainder(scheduler *s, block *out, ir_ref loop, const work *w);

/* transpose.c: marks a loop, in the block of `around`, and the one inside it as blocks that are transposed in
 * registers; false: another shape, and nothing changed. */
bool opjit_ir_transpose(scheduler *s, ir_ref around, ir_ref loop);

#endif
