/* SPDX-License-Identifier: Apache-2.0 */
/* finder.h - what finding the samples of a generalization and having it proven share. */
#ifndef OPJIT_IR_GENERAL_FINDER_H
#define OPJIT_IR_GENERAL_FINDER_H

#include "ir/general/count.h"
#include "ir/general/witness.h"

/* MORE: of a kind of loops that has too few; LEAST_SAMPLES: three determine a number, the others test it */
enum { LEAST_SAMPLES = 5 };
enum { CANDIDATES = 14, MORE = 10, CHOSEN = 12, LEARNED = IR_SAMPLES - CHOSEN, PROVEN = 128 };

typedef struct candidate {
    ir_func f; /* a zeroed one: the graph can't have these sizes */
    ir_definition definition;
    int64_t values[OPJIT_MAX_DIMS];
    uint64_t shape;
    bool made;
} candidate;

/* A size that is linear in the dimensions, or a quotient of that, and how many tensors have it. */
typedef struct ir_line {
    int64_t slopes[OPJIT_MAX_DIMS], constant, by;
    uint32_t weight;
} ir_line;

#define IR_LINES 32u
struct ir_lines {
    ir_line list[IR_LINES];
    uint32_t count; /* 0: all are multiples of one dimension, or nothing is known */
    ir_space space; /* with the quotients that some sizes are */
    int64_t window; /* what quotients are by, at most */
};

typedef struct finder {
    const ir_dim *dims;
    const int64_t *typical;
    uint32_t dim_count;
    ir_sample_fn make;
    void *user;
    const ir_lines *lines;
    ir_space space;
    uint64_t most_score; /* of candidates, by lines */
    candidate candidates[CANDIDATES + MORE];
    candidate learned[LEARNED]; /* of the group that is tried: sizes whose loops are its, but for other numbers */
    uint64_t groups[CANDIDATES + MORE]; /* shapes, */
    uint32_t sizes[CANDIDATES + MORE];  /* and how many candidates have them */
    uint32_t candidate_count, learned_count, group_count;
    uint32_t origin; /* the graph's node that the first refusal is about, counted from 1; 0: not known */
} finder;

/* A generalization, and what it was made of. */
typedef struct trial {
    const finder *x;
    const ir_general *general;
    const ir_samples *samples;
    const ir_definition *definitions[IR_SAMPLES];
    ir_counts counts[IR_SAMPLES]; /* of samples */
    rt_arena *arena;
    int64_t refused[OPJIT_MAX_DIMS]; /* the sizes that there is no proof for */
    uint64_t most_work; /* elements and terms that are interpreted to ask a witness */
    uint64_t replay_left; /* likewise of stages that differ from the graph's own, of sizes for which these are much */
    int64_t proven[PROVEN][OPJIT_MAX_DIMS]; /* sizes that there is a proof for: some are asked for again */
    uint32_t proven_count;
    bool learns;        /* loops of the samples' shape that have other numbers are refused, */
    bool differs;       /* as those for the sizes that are refused are */
    uint64_t shape;     /* the samples' */
    bool alike;         /* the loops that were asked about last have it */
    bool floors;        /* IR_GUESS_FLOORS says something else than IR_GUESS_WHOLE */
    bool is_proven;     /* all instances that were looked at: what refused it was a witness */
} trial;

static inline int64_t within(const ir_dim *dim, int64_t size)
{
    return size < dim->lo ? dim->lo : size > dim->hi ? dim->hi : size;
}

/* Whether there is no more to try, whatever was refused. */
static inline bool is_over(opjit_status status)
{
    return status == OPJIT_OUT_OF_MEMORY || status == OPJIT_CANCELLED;
}

/* --- alike.c ------------------------------------------------------------------------------------------------------ */
/* A hash of everything but numbers. */
uint64_t opjit_ir_shape(const ir_func *f);

/* --- candidates.c ------------------------------------------------------------------------------------------------- */
/* Fills in the candidates.  Where none can be made, the last one's failure is the caller's. */
opjit_status opjit_ir_candidates_make(finder *x, opjit_error *error);
/* Finds the groups, with more candidates where none has enough. */
opjit_status opjit_ir_candidates_group(finder *x);
/* The group with most candidates, the first of those that have as many; UINT32_MAX: there is none. */
uint32_t opjit_ir_largest_group(const finder *x);
/* Makes the function for the candidate's values, its definition and its shape. */
opjit_status opjit_ir_candidate_make(const finder *x, candidate *c, opjit_error *error);
void opjit_ir_candidate_free(candidate *c);

/* --- find.c ------------------------------------------------------------------------------------------------------- */
/* Gives the status on with its own message, in place of a refusal's. */
opjit_status opjit_ir_find_over(opjit_status status, opjit_error *error);

/* --- lines.c ------------------------------------------------------------------------------------------------------ */
/* The sizes of tensors.  x: without candidates.  quotients: and which of them are quotients of a dimension. */
opjit_status opjit_ir_lines_find(const finder *x, bool quotients, ir_lines *out);
/* Sizes of the tensors of the graph as it is lowered for the values, in order; the one at k. */
opjit_status opjit_ir_sizes_read(const finder *x, const int64_t *values, rt_bytes *out, opjit_error *error);
int64_t opjit_ir_size_at(const rt_bytes *sizes, size_t k);
bool opjit_ir_is_prime(int64_t n);
/* Whether the values are as samples': primes, or what lines are as good for. */
bool opjit_ir_is_sample_size(const finder *x, const int64_t *values, uint32_t d);
bool opjit_ir_are_sample_sizes(const finder *x, const int64_t *values);
int64_t opjit_ir_line_value(const ir_line *line, uint32_t dims, const int64_t *values);
/* How many small factors sizes have for these values: the fewer, the better for a sample. */
uint64_t opjit_ir_lines_score(const ir_lines *lines, uint32_t dims, const int64_t *values);
/* Makes values[d] a size of a sample, near to what it is; parity: 0: even ones, 1: odd ones; even: lines that shall be
 * even, a bit for each, if they can. */
#define IR_ANY_PARITY 2
void opjit_ir_lines_choose(const finder *x, uint32_t d, int64_t parity, uint32_t even, int64_t *values);

/* --- quotients.c -------------------------------------------------------------------------------------------------- */
/* The dimensions, and quotients of them that sizes of tensors are. */
opjit_status opjit_ir_quotients_find(const finder *x, ir_space *space, opjit_error *error);

/* --- prove.c ------------------------------------------------------------------------------------------------------ */
/* Proves instances, and asks witnesses.  UNSUPPORTED: t->refused are sizes that it is wrong for, or may be. */
opjit_status opjit_ir_trial_prove(trial *t, opjit_error *error);
/* For these sizes alone; with_loops: those of primes, as samples have them, are compared, too. */
opjit_status opjit_ir_trial_prove_at(trial *t, const int64_t *values, opjit_error *error);
opjit_status opjit_ir_trial_ask(trial *t, const int64_t *values, bool with_loops, opjit_error *error);

/* Makes the size, which is a sample's, twice a prime near it; where others follow from it, one of the other parity. */
void opjit_ir_change_parity(const finder *x, int64_t *values, uint32_t d);

opjit_status opjit_ir_trial_refuse_other(trial *t, const int64_t *values, opjit_error *error);
/* Whether these loops for the values are what the generalization says.  UNSUPPORTED: they tell more than samples do. */
opjit_status opjit_ir_trial_has_loops(trial *t, const int64_t *values, const ir_func *loops, bool *out,
                                      opjit_error *error);

/* --- many.c ------------------------------------------------------------------------------------------------------- */
/* All sizes, if they are few and the graph is small, or else some. */
opjit_status opjit_ir_trial_ask_many(trial *t, opjit_error *error);

/* --- blame.c ------------------------------------------------------------------------------------------------------ */
/* What the node at r or the tensor belongs to, and the first loops in which two functions differ: nodes of the graph,
 * counted from 1; 0: not known, or no difference.  f is packed. */
uint32_t opjit_ir_blame_node(const ir_func *f, ir_ref r);
uint32_t opjit_ir_blame_tensor(const ir_func *f, uint32_t t);
uint32_t opjit_ir_blame_loops(const ir_func *a, const ir_func *b);

/* "n = 17, m = 4" */
typedef struct size_text {
    char text[80];
} size_text;
size_text opjit_ir_size_text(const ir_dim *dims, const int64_t *values, uint32_t count);

/* --- cut.c -------------------------------------------------------------------------------------------------------- */
/* Where the sizes end that the trial is right for, on the way from typical ones to those that were refused. */
opjit_status opjit_ir_trial_cut(trial *t, ir_cut *out);
/* Where candidates begin to have other loops than the one for typical sizes. */
opjit_status opjit_ir_finder_cut(const finder *x, ir_cut *out);

#endif
