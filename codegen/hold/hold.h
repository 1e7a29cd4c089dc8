/* SPDX-License-Identifier: Apache-2.0 */
/* hold.h - tiles: a held loop, and the loops directly before and after it that set and read its scratch, as one
 * function of its own in which that scratch is registers.  A tile is a record without any reference into the IR, so
 * that equal ones, of whatever kernel, are one piece of code: addresses, distances that follow from a shape, values and
 * the number of iterations are arguments, which the function gets as an array of 64-bit words.
 *
 * find.c finds tiles, build.c and access.c make the records, call.c and next.c emit the call, body.c the function;
 * driver/tile_code.c has it compiled, unless the target writes it itself (trace.h). */
#ifndef OPJIT_CODEGEN_HOLD_HOLD_H
#define OPJIT_CODEGEN_HOLD_HOLD_H

#include "codegen/cg.h"
#include "codegen/softops/kept.h"

enum {
    CG_TILE_LOOPS = 16,
    CG_TILE_REGISTERS = 64, /* one bit each in starts */
    CG_TILE_TENSORS = 4,
    CG_TILE_ACCESSES = 24,
    CG_TILE_NODES = 128,
    CG_TILE_STEPS = 64,
    CG_TILE_ARGS = 96,
    CG_TILE_REMEMBERED = 1024, /* values of nodes, and addresses of accesses, one per iteration in which they differ */
    CG_TILE_NEXT_LOOPS = 4, /* of a copy */
    CG_TILE_STORES = 512       /* of one statement, in all iterations of the loops that are unrolled */
};

/* --- the record --------------------------------------------------------------------------------------------------- */
/* Hashed as bytes: no pointers, and no padding, as is asserted behind it. */

/* Loop 0 is the held one, whose iterations are counted from 0.  All others are fully unrolled. */
typedef struct cg_tile_loop {
    int64_t lo;
    uint32_t count, lanes; /* vectors of so many lanes */
} cg_tile_loop;

typedef struct cg_tile_register {
    uint32_t type, lanes;
    uint32_t base, offset; /* its memory, if the tile uses it: the argument with the tensor's address; bytes */
} cg_tile_register;

/* A load or store. */
typedef struct cg_tile_access {
    uint32_t type;
    uint32_t held;                  /* 1: it reads or writes a register; 0: memory */
    uint32_t base;                  /* the first register; or the first argument that is an address */
    uint32_t each;                  /* loops, one bit each: each of their iterations has an address of its own */
    uint16_t across, along;         /* a load whose lanes, loop across - 1, lie apart, and side by side in iterations of
                                       loop along - 1: squares of both are transposed in registers; 0: no such load */
    uint32_t ahead;                 /* 1: of so much memory that the lanes behind these are prefetched */
    int64_t by[CG_TILE_LOOPS];      /* by loop: registers from one iteration or vector to the next; or bytes from one
                                       value of the loop's variable to the next */
    uint32_t by_arg[CG_TILE_LOOPS]; /* the argument that has these bytes, + 1; 0: `by` has them */
} cg_tile_access;

typedef enum cg_tile_what {
    CG_TILE_ARG,
    CG_TILE_CONST,
    CG_TILE_VAR,
    CG_TILE_LOAD,
    CG_TILE_LET,
    CG_TILE_OP
} cg_tile_what;

typedef struct cg_tile_node {
    uint32_t what, op;
    uint32_t type, from; /* from: of the first operand */
    uint32_t moves;      /* loops on which the value depends, one bit each */
    uint32_t fresh;      /* it depends on a register or memory that changes: valid for one statement */
    uint32_t at;         /* number of the argument, loop, access */
    uint32_t first;      /* where its values are remembered */
    uint32_t a[3];       /* operands */
    uint32_t count;
    uint64_t imm;
} cg_tile_node;

typedef enum cg_tile_do { CG_TILE_LOOP, CG_TILE_STORE, CG_TILE_KEEP } cg_tile_do;

typedef struct cg_tile_step {
    uint32_t what;
    uint32_t at;    /* LOOP: the loop; STORE: the access */
    uint32_t value; /* STORE, KEEP: the node */
    uint32_t inner; /* LOOP: its first step, + 1 */
    uint32_t next;  /* + 1 */
} cg_tile_step;

typedef enum cg_tile_part { CG_TILE_BEGIN, CG_TILE_BODY, CG_TILE_END, CG_TILE_PARTS } cg_tile_part;

typedef struct cg_tile {
    uint64_t starts;              /* registers that the loops before the held one set */
    uint32_t part[CG_TILE_PARTS]; /* the first step of each, + 1 */
    uint32_t choice;              /* node + 1 of an argument: END is emitted twice, for each of its values; 0: once */
    uint32_t stays;               /* the registers are stored to their memory at the end */
    uint32_t fetch, fetch_by;     /* arguments + 1: from where on a line is prefetched each round, and bytes from one to
                                     the next; 0: nothing is */
    uint32_t loops, registers, accesses, nodes, steps, args, remembered;
    uint32_t row[CG_TILE_ACCESSES]; /* where rows of an access are remembered */
    cg_tile_loop loop[CG_TILE_LOOPS];
    cg_tile_register reg[CG_TILE_REGISTERS];
    cg_tile_access access[CG_TILE_ACCESSES];
    cg_tile_node node[CG_TILE_NODES];
    cg_tile_step step[CG_TILE_STEPS];
} cg_tile;

/* The bytes of all members of each. */
enum {
    CG_TILE_LOOP_BYTES = 8 + 2 * 4,
    CG_TILE_REGISTER_BYTES = 4 * 4,
    CG_TILE_ACCESS_BYTES = 6 * 4 + CG_TILE_LOOPS * (8 + 4),
    CG_TILE_NODE_BYTES = 12 * 4 + 8,
    CG_TILE_STEP_BYTES = 5 * 4,
    CG_TILE_BYTES = 8 + (CG_TILE_PARTS + 11 + CG_TILE_ACCESSES) * 4 + CG_TILE_LOOPS * CG_TILE_LOOP_BYTES +
                    CG_TILE_REGISTERS * CG_TILE_REGISTER_BYTES + CG_TILE_ACCESSES * CG_TILE_ACCESS_BYTES +
                    CG_TILE_NODES * CG_TILE_NODE_BYTES + CG_TILE_STEPS * CG_TILE_STEP_BYTES
};
_Static_assert(sizeof(cg_tile_loop) == CG_TILE_LOOP_BYTES && sizeof(cg_tile_register) == CG_TILE_REGISTER_BYTES &&
                   sizeof(cg_tile_access) == CG_TILE_ACCESS_BYTES && sizeof(cg_tile_node) == CG_TILE_NODE_BYTES &&
                   sizeof(cg_tile_step) == CG_TILE_STEP_BYTES && sizeof(cg_tile) == CG_TILE_BYTES,
               "the record of a tile has padding, which would be part of its hash");

/* build.c: appends the members that the record uses, from which the others, which are zero, follow. */
void opjit_cg_tile_bytes(const cg_tile *t, rt_bytes *out);

/* --- what the caller knows ---------------------------------------------------------------------------------------- */
/* What an argument is. */
typedef enum cg_tile_pass {
    CG_PASS_COUNT,  /* iterations of the held loop */
    CG_PASS_LO,     /* the first value of its variable */
    CG_PASS_NUMBER, /* a constant of this kernel */
    CG_PASS_VALUE,  /* an expression that does not depend on the tile's loops */
    CG_PASS_BASE,   /* the address of a tensor */
    CG_PASS_ADDRESS, /* the address of an access, with given values of the loops' variables */
    CG_PASS_FETCH,   /* the address that it prefetches first */
    CG_PASS_DISTANCE /* bytes of an access from one value of loop `number`'s variable to the next */
} cg_tile_pass;

typedef struct cg_tile_arg {
    cg_tile_pass kind;
    uint32_t tensor; /* BASE */
    ir_ref node;     /* VALUE: the expression; ADDRESS, DISTANCE: the load or store */
    int64_t number;
    int64_t at[CG_TILE_LOOPS]; /* ADDRESS: values of the loops' variables, the held one's counted from its start */
} cg_tile_arg;

typedef struct cg_tile_held {
    uint32_t tensor, lanes, dim; /* dim: along which vectors lie, if lanes > 1 */
    uint32_t first, count;       /* registers */
} cg_tile_held;

/* What a tile prefetches of what is read next: what the next tiles load, or what is copied for them. */
typedef struct cg_tile_next {
    ir_ref load;       /* 0: nothing */
    int64_t by;        /* bytes from what it reads now to what it reads next */
    ir_ref inner, outer; /* variables of the loops around the tile */
    int64_t tiles;     /* iterations of the inner one, at most */
    int64_t row;       /* bytes from one row of a copy to the next; 0: no copy */
    int64_t lines;     /* of a row */
    int64_t parts;     /* the rows are in so many, each of as many as a tile has rounds */
    int64_t part;      /* bytes from the first of one part to that of the next; no copy: from one tile's to the next */
    ir_ref var[CG_TILE_NEXT_LOOPS]; /* of the copy */
    uint32_t vars;
} cg_tile_next;

typedef struct cg_tile_plan {
    cg_tile tile;
    ir_ref loop;
    ir_ref var[CG_TILE_LOOPS];
    cg_tile_arg arg[CG_TILE_ARGS];
    cg_tile_held held[CG_TILE_TENSORS];
    uint32_t held_count;
    uint32_t before, after;    /* loops before and after the held one that belong to it */
    cg_tile_next fetch;
    struct cg_tile_plan *next; /* of the stage */
} cg_tile_plan;

/* Finds the stage's tiles: sets the plans' `tile` for all of their loops.  False: no memory. */
bool opjit_cg_find_tiles(cg_func *f, ir_ref stage);
/* A record in the making. */
typedef struct cg_tile_builder {
    cg_func *f;
    cg_tile_plan *plan;
    cg_tile_plan *before; /* as it was, to return to */
    uint32_t depth;       /* loops around the tile */
    uint32_t arms;        /* selects around the current expression */
    cg_tile_part part;
    uint32_t stored[CG_TILE_TENSORS], stored_count; /* tensors whose memory the held loop stores */
    uint32_t nest[CG_TILE_LOOPS], nest_count;       /* the tile's loops around the current statement */
    uint32_t *number;                               /* by node of the IR: that in the tile + 1, if valid */
    ir_ref of[CG_TILE_NODES];                       /* the inverse */
    cg_tile_part part_of[CG_TILE_NODES];
} cg_tile_builder;
/* build.c.  begin: makes the record of the held loop; false: it can't be a tile, and is emitted like any other loop.
 * take: adds a loop before (BEGIN) or after (END) it; false: it can't be part of the tile, whose record stays as it
 * was. */
bool opjit_cg_tile_begin(cg_tile_builder *b, ir_ref loop, uint32_t depth);
bool opjit_cg_tile_take(cg_tile_builder *b, ir_ref loop, cg_tile_part part);
/* Last, where the registers are in memory before or after the tile: gives them their addresses. */
void opjit_cg_tile_in_memory(cg_tile_builder *b);
/* access.c: appends an access, or an argument unless there is an equal one, and returns its number; UINT32_MAX: a tile
 * can't have it, or has no room. */
uint32_t opjit_cg_tile_access(cg_tile_builder *b, ir_ref access);
uint32_t opjit_cg_tile_arg(cg_tile_builder *b, const cg_tile_arg *arg);
/* next.c.  find: for a tile in loop `inner` in loop `outer` in `around`; address: CG_PASS_FETCH. */
void opjit_cg_tile_find_next(cg_tile_builder *b, ir_ref inner, ir_ref outer, ir_ref around);
LLVMValueRef opjit_cg_next_address(cg_func *f, const cg_tile_plan *plan);
/* The registers of a tensor; NULL: it isn't held. */
const cg_tile_held *opjit_cg_tile_held(const cg_tile_builder *b, uint32_t tensor);
uint32_t opjit_cg_tile_nest(const cg_tile_builder *b); /* one bit per loop */
/* The product of the iterations of these loops, without the held one's; more than CG_TILE_STORES: too many. */
uint32_t opjit_cg_tile_times(const cg_tile *t, uint32_t loops);

/* The number of the iteration, among all of these loops' without the held one's, that is at[l] in each loop l. */
static inline uint32_t cg_tile_place(const cg_tile *t, uint32_t loops, const uint32_t *at)
{
    uint32_t place = 0;
    for (uint32_t l = 1; l < t->loops; l++)
        if (loops >> l & 1)
            place = place * t->loop[l].count + at[l];
    return place;
}

/* The register that a held access is in that iteration. */
static inline uint32_t cg_tile_register_of(const cg_tile *t, const cg_tile_access *a, const uint32_t *at)
{
    uint64_t r = a->base;
    for (uint32_t l = 1; l < t->loops; l++)
        r += a->by[l] ? (uint64_t)a->by[l] * at[l] : 0;
    return (uint32_t)r;
}

/* Lanes of what depends on these loops. */
static inline uint32_t cg_tile_lanes_of(const cg_tile *t, uint32_t loops)
{
    for (uint32_t l = 1; l < t->loops; l++)
        if ((loops >> l & 1) && t->loop[l].lanes > 1)
            return t->loop[l].lanes;
    return 1;
}

/* The loops on which the place of the access depends, one bit each. */
static inline uint32_t cg_tile_loops_of(const cg_tile *t, const cg_tile_access *a)
{
    uint32_t loops = a->each;
    for (uint32_t l = 0; l < t->loops; l++)
        loops |= a->by[l] != 0 || a->by_arg[l] ? 1u << l : 0;
    return loops;
}

/* What the node is, lets looked through. */
static inline uint32_t cg_tile_origin(const cg_tile *t, uint32_t node)
{
    while (t->node[node].what == CG_TILE_LET)
        node = t->node[node].a[0];
    return node;
}

/* Those on which the part of its address depends that the function remembers: without the held one, and without
 * distances that are constants. */
static inline uint32_t cg_tile_rows_of(const cg_tile *t, const cg_tile_access *a)
{
    uint32_t loops = a->each;
    for (uint32_t l = 1; l < t->loops; l++)
        loops |= a->by_arg[l] ? 1u << l : 0;
    return loops;
}

/* Emits the call; nothing for the other loops of a tile. */
struct cg_plan;
void opjit_cg_put_tile(cg_func *f, const struct cg_plan *plan);
/* Emits the function's body into f->fn, whose one parameter is the array of arguments. */
void opjit_cg_tile_body(cg_func *f, const cg_tile *t);
/* Appends what a plan says of it. */
void opjit_cg_tile_text(const cg_tile_plan *plan, rt_bytes *out);

#endif
