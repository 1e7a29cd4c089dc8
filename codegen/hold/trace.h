/* SPDX-License-Identifier: Apache-2.0 */
/* trace.h - a tile as lists of operations on whole vectors, all loops inside the held one unrolled, for targets whose
 * tiles are not compiled by LLVM.  Only tiles of f32, and of integers of 32 bits, have one. */
#ifndef OPJIT_CODEGEN_HOLD_TRACE_H
#define OPJIT_CODEGEN_HOLD_TRACE_H

#include "codegen/hold/hold.h"

enum {
    CG_TRACE_TERMS = 3,     /* of an address, beside its base */
    CG_TRACE_NUMBERS = 64,  /* of a part */
    CG_TRACE_ARGS = 0xffff, /* as a base: the array of arguments */
    CG_TRACE_NONE = INT32_MAX
};

/* What addresses are made of: integers that stay as they are in a part, or move from one iteration to the next. */
typedef enum cg_trace_kind { CG_TRACE_WORD, CG_TRACE_FACTOR, CG_TRACE_MOVE } cg_trace_kind;

typedef struct cg_trace_number {
    cg_trace_kind kind;
    uint32_t arg;    /* WORD: this argument; FACTOR: times `by`; MOVE: it at first, then `by` more each time */
    int64_t by;
    uint32_t by_arg; /* MOVE: the argument that has these bytes, + 1; 0: `by` has them */
    uint32_t uses;
} cg_trace_number;

/* base + the terms, each shifted to the left, + offset */
typedef struct cg_trace_place {
    uint32_t base, term[CG_TRACE_TERMS]; /* numbers */
    uint8_t shift[CG_TRACE_TERMS];
    uint32_t terms;
    int32_t offset;
} cg_trace_place;

typedef enum cg_trace_what {
    CG_TRACE_DEAD,
    CG_TRACE_IN,     /* register `at` of the tile as the part finds it */
    CG_TRACE_ZERO,
    CG_TRACE_LOAD,   /* a vector */
    CG_TRACE_SPLAT,  /* an element, in all lanes */
    CG_TRACE_U8, CG_TRACE_I8, /* a vector of bytes, as f32; signed ones are the next in this list */
    CG_TRACE_U8_HALVES, CG_TRACE_I8_HALVES, /* two bytes for each lane, as halves */
    CG_TRACE_BROADCAST, /* lane 0 of a in all lanes */
    CG_TRACE_OP,     /* min, max of f32: a where it is beyond b, else b, also where one is NaN; others: as in the IR */
    CG_TRACE_NUMBER, /* a where b is a number, else b */
    CG_TRACE_PAIR,   /* lanes of a and b (cg_trace_pair) */
    CG_TRACE_STORE,  /* of a; one lane: of an element */
    CG_TRACE_FETCH,  /* a line to the cache; at: the second one, else the first */
    CG_TRACE_OUT     /* a is register `at` of the tile when the part ends */
} cg_trace_what;

/* What a pair's lanes are: of each 16 bytes, the lower or upper ones of a and b in turn, by lanes or two lanes; blocks
 * of 16 bytes of a, then of b, those of even or of odd number. */
typedef enum cg_trace_pair {
    CG_PAIR_LOW,
    CG_PAIR_HIGH,
    CG_PAIR_LOW_TWO,
    CG_PAIR_HIGH_TWO,
    CG_PAIR_EVEN,
    CG_PAIR_ODD
} cg_trace_pair;

typedef struct cg_trace_op {
    uint16_t what, op; /* op: of OP; of PAIR, the cg_trace_pair */
    uint32_t type, lanes;
    uint32_t a[3];  /* operations; NONE */
    uint32_t at;
    uint32_t step;  /* equal for all operations of one statement */
    uint32_t uses, last; /* how many operations use it; the last one of them */
    uint32_t stores;     /* before it */
    cg_trace_place place;
} cg_trace_op;

/* Before the loop; an iteration; after it, or the form of this if the tile's choice holds, and the other one. */
typedef enum cg_trace_part {
    CG_TRACE_BEFORE,
    CG_TRACE_LOOP,
    CG_TRACE_AFTER,
    CG_TRACE_OTHER,
    CG_TRACE_PARTS
} cg_trace_part;

typedef struct cg_trace {
    const cg_tile *t;
    cg_trace_op *op;
    uint32_t count;
    uint32_t first[CG_TRACE_PARTS + 1]; /* operations of each part */
    cg_trace_number number[CG_TRACE_PARTS][CG_TRACE_NUMBERS];
    uint32_t numbers[CG_TRACE_PARTS];
    uint32_t choice; /* argument + 1 */
} cg_trace;

static inline bool cg_trace_has_type(uint32_t type)
{
    return type == IR_F32 || type == IR_I32 || type == IR_U32;
}

/* Whether the operation has a place in memory. */
static inline bool cg_trace_has_place(const cg_trace_op *o)
{
    return o->what == CG_TRACE_LOAD || o->what == CG_TRACE_SPLAT || o->what == CG_TRACE_U8 ||
           o->what == CG_TRACE_I8 || o->what == CG_TRACE_U8_HALVES || o->what == CG_TRACE_I8_HALVES ||
           o->what == CG_TRACE_STORE || o->what == CG_TRACE_FETCH;
}

/* Whether a load reads the same wherever it is used. */
static inline bool cg_trace_is_fixed(const cg_trace *tr, const cg_trace_op *o)
{
    return (o->what == CG_TRACE_LOAD || o->what == CG_TRACE_SPLAT) &&
           (o->place.base == CG_TRACE_ARGS || tr->op[o->last].stores == o->stores);
}

/* Makes the trace, in the arena; NULL: this tile has none, or there is no memory, which the caller need not tell
 * apart. */
const cg_trace *opjit_cg_trace(const cg_tile *t, rt_arena *arena);
/* Transposes `lanes` vectors of as many lanes: 4, 8 or 16 (trace_square.c).  pair adds an operation. */
typedef uint32_t cg_trace_pair_fn(void *user, cg_trace_pair how, uint32_t lanes, uint32_t a, uint32_t b);
void opjit_cg_trace_square(uint32_t *v, uint32_t lanes, cg_trace_pair_fn *pair, void *user);
/* Counts uses and drops what has none (trace_uses.c). */
void opjit_cg_trace_finish(cg_trace *trace);

#endif
