/* SPDX-License-Identifier: Apache-2.0 */
/* nest.h - pass collapse and its steps: what they know about a full nest around lets and one store. */
#ifndef OPJIT_IR_PASSES_COLLAPSE_NEST_H
#define OPJIT_IR_PASSES_COLLAPSE_NEST_H

#include "ir/passes/pass.h"

enum {
    NEST_RANK = 8,
    NEST_PAGE = 4096,             /* bytes */
    NEST_PIECE_BYTES = 64 * 1024, /* smallest output of a call of a stage, above which the call's cost is negligible */
    NEST_TEAM_BYTES = 2 * 1024,   /* tile of one team of threads: four vectors per thread */
};

typedef struct nest {
    ir_func *f;
    ir_ref stage, first, store; /* first: of the innermost block: lets before the store, which is the last */
    uint32_t rank;
    ir_ref vars[NEST_RANK];     /* by coordinate of the store */
    int64_t offsets[NEST_RANK]; /* of a box: coordinate minus variable */
    int64_t extents[NEST_RANK];
    ir_ref *loads, *roots; /* of the stored value: its loads; its index expressions that are not part of larger ones */
    bool *reads_let;       /* by root: it reads a let, which is made anew with the stage */
    uint32_t load_count, root_count;
    const uint8_t *stages;     /* by tensor: in how many stages it occurs, 2 for more */
    bool regular;              /* tensors are only read at the stored coordinate, so their layouts may change */
    uint32_t count;            /* coordinates with more than one value */
    uint32_t order[NEST_RANK]; /* these, outermost first */
    uint32_t inner;            /* position in order from which on all are one inner loop; before: the parallel loop */
    uint32_t groups, group_end[NEST_RANK]; /* merged coordinates: positions up to group_end, exclusive */
    block body;                            /* of the new stage */
    bool tiled; /* tile.c: the inner loop's position and the one before it are walked in tiles */
    bool narrow; /* tiles are rows of a few columns, all of them in one loop */
    bool threads; /* a GPU: caches that all threads share replace tiles */
    bool plain; /* and only loads depend on the position: tiles that can be transposed in registers */
    ir_ref outer_var, row_var, inner_var;
    ir_ref runs[NEST_RANK][NEST_RANK]; /* coordinate of positions a to b of the parallel loop, once it is made */
} nest;

/* Elements from one value of coordinate d to the next; 0 if there is one value. */
static inline uint64_t nest_stride(const nest *n, uint32_t tensor, uint32_t d)
{
    const ir_tensor *t = &n->f->tensors[tensor];
    return t->sizes[d] == 1 ? 0 : t->strides[d];
}

static inline uint32_t nest_output(const nest *n)
{
    return ir_at(n->f, n->store)->ref;
}

/* The nest that the stage is, with its coordinates sorted; NULL: another form, or no memory.  stages: by tensor. */
nest *opjit_ir_find_nest(ir_func *f, bool threads, ir_ref stage, const uint8_t *stages);
/* Merges neighbouring coordinates that step together everywhere. */
void opjit_ir_nest_group(nest *n);

/* The number of values that positions [first, end) have together. */
int64_t opjit_ir_nest_extent(const nest *n, uint32_t first, uint32_t end);
/* Whether coordinate a steps over coordinate b's whole range in the tensor, so that they can be merged there. */
bool opjit_ir_nest_joins(const nest *n, uint32_t tensor, uint32_t a, uint32_t b);
/* Takes the variables' factors out of *form; false: one of them is inside an atom. */
bool opjit_ir_nest_factors(const nest *n, ir_affine *form, int64_t factors[NEST_RANK]);
/* The least number of rows that together are whole units. */
int64_t opjit_ir_nest_until(int64_t row, int64_t unit);
/* Iterations of `row` bytes that are worth a call: whole pages if a few of them make some, else whole lines. */
uint64_t opjit_ir_nest_grain(uint64_t row, int64_t iterations);

/* The affine form of root number i without the variables' factors; false: one of them, or a let, is inside an atom. */
bool opjit_ir_nest_root(const nest *n, uint32_t i, ir_affine *rest, int64_t factors[NEST_RANK]);
/* Whether coordinates a and b step together: a by as much as b's whole range. */
bool opjit_ir_nest_factors_join(const nest *n, const int64_t factors[NEST_RANK], uint32_t a, uint32_t b);

/* tile.c: whether an input is better read in tiles; the nest's two innermost positions are then these. */
bool opjit_ir_tile(nest *n);
/* The stage of such a nest, the loop that goes into it, and the innermost one, still empty. */
ir_ref opjit_ir_tile_loops(nest *n, ir_ref *out_top, ir_ref *out_loop);

/* flatten.c: makes blocks of whole vectors of the nest, in stages; false: another shape, and nothing changed. */
bool opjit_ir_flatten(nest *n, const ir_pass_env *env, block *stages);

/* coalesce.c: appends to stages the stage that replaces the nest. */
void opjit_ir_coalesce(nest *n, block *stages);

#endif
