/* SPDX-License-Identifier: Apache-2.0 */
/* cg.h - what the files of codegen share: the state of one function in the making, and the helpers that emit into
 * it. Not for anybody else: the door is codegen.h.
 *
 * The way of a stage: survey.c looks at everything it reaches and refuses what can't be emitted; strategies.c
 * chooses how each loop is done (plan.h); loop.c emits a loop as its plan says, and the body once a piece; stmt.c,
 * expr.c, index.c, memory.c emit statements, expressions, addresses; arith.c, convert.c and expand.c turn one
 * operation on values into instructions.  After the survey nothing fails.
 *
 * Values.  Expressions that depend on the vectorised loop are vectors, all others scalars, splatted where they
 * meet. Elements travel as integers of their width or as floats, whichever they were made as; copies stay integers,
 * so that nothing touches a NaN.  f16 is always an i16.  bool is i1, or in vectors an integer that is all ones or 0
 * (mask.c).  index is i64, or in vectors any integer type that holds its interval. */
#ifndef OPJIT_CODEGEN_CG_H
#define OPJIT_CODEGEN_CG_H

#include <llvm-c/Core.h>
#include <llvm-c/TargetMachine.h>

#include <opjit/abi.h>

#include "codegen/codegen.h"
#include "codegen/llvm_compat.h"
#include "codegen/object/link.h"
#include "codegen/targets/target.h"
#include "ir/analysis/analysis.h"

enum {
    CG_MAX_LOOPS = 32,   /* nesting, the stage included; one bit each in cg_info */
    CG_MAX_SCOPES = 256, /* four a loop, one a statement, one a guard */
    CG_MAX_LANES = 64,
    CG_MAX_WINDOW = 32, /* copies of a body that share a mask */
    CG_MAX_SIDE_BY_SIDE = 4, /* copies of a body whose operations are made in turn */
    CG_MAX_ROWS = 8,
    CG_FEW_USES = 6, /* of a value that stays in a register at quick, whose allocator counts to 8 */
    CG_TABLE_VECTORS = 9, /* of a table that registers have room for */
    CG_CHAINS = 4, /* copies that grow apart from each other, each from the one so many before it */
    CG_MAX_CONSTANTS = 64,
    CG_MAX_HELD = 8,    /* registers of an accumulator's lanes */
    CG_MAX_DEPTH = 1000,  /* of an expression: emission recurses */
    CG_MAX_WEIGHT = 2000, /* nodes of an expression, counted as a tree, that is analysed */
    CG_MAX_GUARDS = 64,   /* nesting of selects around loads that are in bounds only there */
    CG_MAX_GUARDED = 4096 /* nodes under them, counted as a tree: each is emitted where it stands */
};

/* --- one function in the making ----------------------------------------------------------------------------------- */
typedef struct cg_info {
    uint32_t vary;          /* loops, a bit a nesting depth, on whose variable the value depends */
    uint32_t inside;        /* loops outside of which it can't be computed: vary, and where what it reads is declared */
    uint32_t weight;        /* nodes of the expression as a tree */
    uint32_t guarded_nodes; /* those of it that have a guarded load in them */
    uint32_t guards;        /* nesting of selects with such loads */
    uint32_t ordered;       /* the latest order that the node is in */
    bool seen;
    bool fresh;   /* reads memory that the stage writes, or an accumulator: is good for one statement */
    bool loads;   /* reads memory, or an accumulator */
    bool outside; /* load: a coordinate may be out of bounds, but where a select asks for it */
    bool guarded; /* has such a load in it */
} cg_info;

/* What is remembered of a node. */
typedef enum cg_slot {
    CG_VALUE,   /* expression, let: its value */
    CG_SPLAT,   /* the same in every lane */
    CG_START,   /* index expression: its lanes where the variable of the loop is 0 */
    CG_BASE,    /* affine index expression: its value in lane 0 of copy 0 */
    CG_POINTER, /* load, store: address where the variable of the loop whose statement reads or writes it is 0 */
    CG_PLACE,   /* load, store: address of lane 0 of copy 0 */
    CG_STEP,    /* what grows by the same from lane to lane: its lanes in a copy, and in CG_CHAINS - 1 others */
    CG_SLOTS = CG_STEP + CG_CHAINS
} cg_slot;

typedef struct cg_entry {
    LLVMValueRef value;
    uint32_t scope;
    uint32_t depth;
    int64_t offset; /* CG_STEP: number of the copy that it was made for; addresses: offset of that copy */
} cg_entry;

/* A vector that was read from a table. */
typedef struct cg_table_read {
    LLVMValueRef value, iv;
    LLVMBasicBlockRef block;
    uint32_t uses;
} cg_table_read;
typedef struct cg_table {
    LLVMValueRef data;
    cg_table_read read[CG_TABLE_VECTORS];
} cg_table;

typedef struct cg_loop {
    ir_ref var;
    LLVMValueRef iv;        /* the variable in lane 0 of copy 0: opjit_cg_variable gives it */
    int64_t offset;         /* of the copy that is being emitted: copy * lanes * step */
    int64_t step;
    const struct cg_plan *plan; /* NULL: it is the stage's */
    cg_table *table;        /* of what it stores, by its variable, where its plan has one */
    uint32_t threads;       /* that take groups of iterations in turn; 1 but where the loop is spread */
    uint32_t scope;         /* id of the scope around all of its pieces */
    LLVMValueRef slot;      /* where the variable is in memory, or NULL; iv is then what block `home` read there */
    LLVMBasicBlockRef home;
} cg_loop;

/* Where an ACC keeps what it has: allocas; and in rounds of a loop, registers. */
typedef struct cg_acc {
    LLVMValueRef lane, where, some;              /* arrays by lane; where and some: arg kinds */
    LLVMValueRef total, total_where, total_some; /* of the blocks that are done */
    LLVMValueRef block;                          /* k of the last update, without the bits inside of a block */
    ir_type type;                                /* of the values: arg kinds give something else */
    bool blocked;                                /* k may leave the first block */
    uint32_t held_count;                         /* vectors of all lanes in registers; 0: they are in memory */
    LLVMValueRef held[CG_MAX_HELD], phis[CG_MAX_HELD]; /* as they are now; at the begin of a round */
    bool own, apart; /* grid: is one thread's; of the team's, thread l has lane l */
} cg_acc;

/* An address that several accesses start from: element `at` of the tensor, 0 standing for coordinate 0. */
typedef struct cg_row {
    uint32_t tensor;
    ir_ref at[OPJIT_MAX_RANK];
    cg_entry entry;
} cg_row;

/* The values of a whole line, and the address that they belong to. */
typedef struct cg_edge {
    LLVMValueRef values[4];
    uint32_t count;
    LLVMValueRef pointer;
} cg_edge;

/* A block of rows that is transposed in registers: the body of the loop over rows is emitted once for all of them, and
 * in it the body of the loop inside once per row. */
typedef struct cg_transpose {
    bool on;
    uint32_t loop;      /* over rows, in loops */
    uint32_t rows;
    uint32_t row_depth; /* of the scope of the row that is being emitted; 0: all rows at once */
    ir_ref lets;        /* the loop's first statement: lets up to the loop inside */
    LLVMValueRef *values; /* of those that differ from row to row, let by let */
} cg_transpose;


/* Numbers in place of HEAD and of the stage's variable, which are not known.  What is affine in them and the same for
 * all of the guesses is so for all numbers. */
typedef struct cg_guess {
    bool on;
    uint64_t head, stage;
} cg_guess;
enum { CG_GUESSES = 3 };
extern const cg_guess opjit_cg_guesses[CG_GUESSES];

/* What remainders are taken with. */
typedef struct cg_residues {
    const struct cg_func *f;
    ir_ref moving;  /* variable of the loop in vectors; 0: there is none */
    uint32_t lanes; /* it moves by as many from where the loop begins; 0: it may be anywhere */
    cg_guess guess;
} cg_residues;

typedef struct cg_constant {
    LLVMValueRef constant, memory, value;
    LLVMBasicBlockRef block; /* that value was loaded in */
    uint32_t uses;           /* of that load */
} cg_constant;

/* The function that stages are of, and what is found of it once. */
typedef struct cg_whole {
    const ir_func *ir;
    uint32_t *node, *tensor;   /* number in the stage that is being made; 0: the stage doesn't reach it */
    ir_ref *nodes;             /* the other way: by number, from 1 to node_count */
    uint32_t *tensors;
    uint32_t node_count, tensor_count;
    ir_ref *path;              /* from an expression to the node that is looked at */
    bool *aliased;             /* by tensor: an output is its memory, or may be */
} cg_whole;

/* What is so for the code of one piece of a loop, and of the pieces inside of it.  Pieces are begun and ended, each in
 * memory of whoever begins it; one begins as the one around it is. */
typedef struct cg_piece {
    struct cg_piece *outer;
    uint32_t copy_scope;  /* depth of the innermost scope that spans a whole copy of a loop body */
    uint32_t loop_scope;  /* depth of the scope that spans all copies */
    uint32_t place_scope; /* the same, of all rows of a transposed block */
    uint32_t lanes;       /* 1: scalar */
    uint32_t copies;      /* of the body in it, one after the other */
    uint32_t vec;         /* the vectorised loop in loops, where lanes > 1 */
    uint32_t lane_bits;   /* width of the elements that the vectorised loop works on */
    LLVMValueRef mask;    /* lanes that are evaluated; NULL: all */
    int64_t rest;         /* lanes of one more copy after the copies, which is masked; 0: none */
    bool tail;            /* mask covers the end of a loop: lanes beyond it are not iterations */
    bool shifted;         /* it begins anywhere, not at whole vectors from the loop's begin */
    bool aligned;         /* it begins where the store's memory has a whole vector */
    bool binade;          /* its numbers, stored as halves, are of one */
    bool apart;           /* the team's threads each do something else */
    LLVMValueRef growth;  /* in a binade: of their bits, from one vector to the CG_CHAINS-th after it */
    LLVMValueRef distance; /* iterations from one of two places to the other; NULL: there is one only */
    LLVMValueRef other_iv; /* of the one whose turn it is not */
    LLVMBasicBlockRef early; /* a block before, where its scalars had better be; NULL: none */
    cg_edge *edge;        /* where stores are kept instead of being made; NULL: nowhere */
    cg_transpose block;
    LLVMValueRef ahead;   /* address that is read beside the copy which stores ahead_at bytes from the first one on */
    uint64_t ahead_at;
    LLVMValueRef ahead_group; /* i64: where the group of copies stores that it was chosen for (read_ahead.c) */
} cg_piece;

typedef struct cg_func {
    const ir_func *ir;         /* of this stage alone */
    const cg_whole *whole;     /* what it is taken from */
    const rt_target *target;
    const cg_target *cpu;
    rt_arena *arena;
    opjit_error *error;
    LLVMContextRef llvm;
    LLVMModuleRef module;
    LLVMValueRef (*op)(struct cg_func *f, ir_ref node); /* opjit_cg_op, which opjit_cg_emit doesn't know */
    LLVMBuilderRef b;     /* where code goes */
    LLVMBuilderRef entry; /* end of the entry block: allocas, base pointers, parameters */
    LLVMValueRef fn;
    struct {
        LLVMTypeRef i1, i8, i16, i32, i64, i128, f16, f32, f64, ptr, none;
    } type;
    const struct cg_traits *traits;
    struct cg_stage_plan *stage;
    struct cg_plan **plans;    /* by node: of loops */
    const struct cg_plan *first_plan;
    cg_info *info;             /* by node */
    cg_entry *cache[CG_SLOTS]; /* by node */
    cg_entry *own[CG_SLOTS];   /* of the copy that is being emitted: cache, but where copies are made side by side */
    cg_entry *sides[CG_MAX_SIDE_BY_SIDE][CG_SLOTS];
    ir_ref *order;             /* nodes of one statement, operands first */
    uint32_t orders;           /* made so far */
    cg_acc *accs;              /* by node */
    LLVMValueRef *bases;       /* by tensor */
    LLVMValueRef *params;      /* by parameter */
    cg_row rows[CG_MAX_ROWS];  /* the latest ones */
    uint32_t row_count;
    cg_constant constants[CG_MAX_CONSTANTS]; /* vector constants in the module */
    uint32_t constant_count;
    cg_piece root, *piece;     /* the one around all; the innermost one */
    cg_loop loops[CG_MAX_LOOPS];
    uint32_t loop_count;
    uint32_t scopes[CG_MAX_SCOPES], scope_count, next_scope;
    bool streams;        /* some loop of the stage stores around the caches */
    LLVMValueRef nowhere; /* memory for an element that is not to be stored */
    cg_entry *other_cache[CG_SLOTS]; /* what is remembered at the other one of two places */
    LLVMValueRef rows_apart; /* of the stage, from one to the other, where it does two rows at a time; else NULL */
    ir_ref head;         /* the only HEAD of the stage; 0: none or several */
    uint32_t head_count;
    LLVMValueRef line;   /* memory for a line that two iterations share */
    ir_launch launch;    /* GPUs: of this stage */
    uint32_t buffer_count; /* arguments that are buffers */
    LLVMValueRef *constant_data; /* constant buffers, if they are in the module; else NULL: arguments, too */
    LLVMValueRef thread, team_in_block, team_number; /* i64: of the team, the block, the grid */
    LLVMValueRef scratch, block_memory; /* addresses: of the team's, of all that is shared in the block */
    LLVMValueRef exchange; /* shared memory that a team's threads hand values around in, if any */
    LLVMValueRef first[8]; /* thread times 2, 4, 8, ...: by logarithm */
    bool fence;          /* a non-temporal store was emitted */
    bool peak;           /* level */
    bool failed;         /* out of memory */
    bool accumulates;    /* allocas to be made registers by a pass */
    bool vectors;        /* of more than one lane were emitted */
    bool rounds;         /* a loop was */
} cg_func;

static inline void cg_piece_begin(cg_func *f, cg_piece *own)
{
    *own = *f->piece;
    own->outer = f->piece;
    f->piece = own;
}

static inline void cg_piece_end(cg_func *f)
{
    f->piece = f->piece->outer;
}

/* --- values (value.c) ------------------------------------------------------------------------------------------ */
LLVMTypeRef opjit_cg_int(const cg_func *f, uint32_t bits, uint32_t lanes);
LLVMTypeRef opjit_cg_float(const cg_func *f, ir_type type, uint32_t lanes); /* f16: the half type */
uint32_t opjit_cg_lanes(LLVMValueRef v);
uint32_t opjit_cg_bits(LLVMValueRef v); /* of a lane */
LLVMValueRef opjit_cg_number(const cg_func *f, uint32_t bits, uint32_t lanes, uint64_t value);
LLVMValueRef opjit_cg_real(const cg_func *f, ir_type type, uint32_t lanes, double value); /* f32, f64 */
LLVMValueRef opjit_cg_iota(const cg_func *f, uint32_t bits, uint32_t lanes, int64_t start, int64_t step);
LLVMValueRef opjit_cg_splat(cg_func *f, LLVMValueRef v, uint32_t lanes); /* vectors come back as they are */
LLVMValueRef opjit_cg_as_bits(cg_func *f, LLVMValueRef v);               /* floats as integers of their width */
LLVMValueRef opjit_cg_as_float(cg_func *f, LLVMValueRef v);              /* i32, i64 as floats of their width */
LLVMValueRef opjit_cg_resize(cg_func *f, LLVMValueRef v, uint32_t bits, bool is_signed);
LLVMValueRef opjit_cg_lane(cg_func *f, LLVMValueRef v, uint32_t lane); /* of a scalar: itself */
LLVMValueRef opjit_cg_fold_lanes(cg_func *f, bool all, LLVMValueRef v); /* of integers: the and of all, or the or */
LLVMValueRef opjit_cg_insert(cg_func *f, LLVMValueRef v, LLVMValueRef element, uint32_t lane);
/* Intrinsic that is overloaded on the type of its first argument (and, where it names two, on pointer). */
LLVMValueRef opjit_cg_call(cg_func *f, const char *name, uint32_t count, LLVMValueRef *args);
LLVMValueRef opjit_cg_call_of(cg_func *f, const char *name, LLVMTypeRef overload, uint32_t count, LLVMValueRef *args);
LLVMValueRef opjit_cg_add(cg_func *f, LLVMValueRef a, LLVMValueRef b); /* of integers; adding 0 makes no instruction */
LLVMValueRef opjit_cg_sub(cg_func *f, LLVMValueRef a, LLVMValueRef b);
LLVMValueRef opjit_cg_opaque(cg_func *f, LLVMValueRef v); /* hidden from loop analysis where that would take long */
LLVMValueRef opjit_cg_alloca(cg_func *f, LLVMTypeRef type);
LLVMValueRef opjit_cg_offset(cg_func *f, LLVMTypeRef element, LLVMValueRef pointer, LLVMValueRef index); /* address */

/* What is remembered, and for how long. */
void opjit_cg_scope_push(cg_func *f);
void opjit_cg_scope_pop(cg_func *f);
LLVMValueRef opjit_cg_recall(cg_func *f, cg_slot slot, ir_ref node); /* NULL: nothing */
/* The entry of what is good in that depth: every copy's, or its own. */
cg_entry *opjit_cg_place(const cg_func *f, cg_slot slot, ir_ref node, uint32_t depth);
void opjit_cg_remember(cg_func *f, cg_slot slot, ir_ref node, uint32_t depth, LLVMValueRef value);
cg_entry opjit_cg_entry(const cg_func *f, uint32_t depth, LLVMValueRef value);
/* Addresses that are `grow` elements further on for each value of the innermost loop's variable: remembered is that of
 * copy 0, and given is that of the copy that is being emitted. */
void opjit_cg_remember_address(cg_func *f, cg_slot slot, ir_ref node, uint32_t depth, LLVMValueRef address);
LLVMValueRef opjit_cg_address(cg_func *f, cg_slot slot, ir_ref node, LLVMTypeRef element, int64_t grow);
LLVMValueRef opjit_cg_live(const cg_func *f, const cg_entry *entry); /* NULL: its scope is closed */

/* --- conditions of lanes (mask.c): i1, or integers that are all ones or 0 -------------------------------------- */
LLVMValueRef opjit_cg_narrow(cg_func *f, LLVMValueRef c); /* as i1 */
LLVMValueRef opjit_cg_choose(cg_func *f, LLVMValueRef c, LLVMValueRef a,
                             LLVMValueRef b); /* c ? a : b; forms made equal */
LLVMValueRef opjit_cg_logic(cg_func *f, ir_op op, LLVMValueRef *a);
LLVMValueRef opjit_cg_kept(cg_func *f, LLVMValueRef v); /* a vector constant, in a register where that is better */
void opjit_cg_forget_kept(cg_func *f); /* they are to be taken from memory again */
bool opjit_cg_is_kept(const cg_func *f, LLVMValueRef v); /* whether it is one, or a constant */
/* Where to read whether lane number op d, or d op lane number (swapped), for the lanes of all copies: integers of
 * f->lane_bits, one a lane; d is an i64, counted from lane 0 of copy 0. */
LLVMValueRef opjit_cg_constant_data(cg_func *f, const char *name, LLVMValueRef data); /* in the module */
LLVMValueRef opjit_cg_lane_window(cg_func *f, ir_op op, LLVMValueRef d, bool swapped);
LLVMValueRef opjit_cg_lane_mask(cg_func *f, LLVMValueRef address); /* what is there in the window */
LLVMValueRef opjit_cg_limit(cg_func *f, bool max, LLVMValueRef a, LLVMValueRef b); /* scalars, signed */

/* --- operations on values ----------------------------------------------------------------------------------------- */
/* An arithmetic, bit or rounding op on elements of one type (arith.c); all operands have the same lanes. */
LLVMValueRef opjit_cg_arith(cg_func *f, ir_op op, ir_type type, LLVMValueRef *a);
LLVMValueRef opjit_cg_compare(cg_func *f, ir_op op, ir_type type, LLVMValueRef a, LLVMValueRef b);
/* convert.c */
LLVMValueRef opjit_cg_convert(cg_func *f, ir_type from, ir_type to, LLVMValueRef v);
LLVMValueRef opjit_cg_half_to_f32(cg_func *f, LLVMValueRef v);
LLVMValueRef opjit_cg_f32_to_half(cg_func *f, LLVMValueRef v);
LLVMValueRef opjit_cg_f64_to_half(cg_func *f, LLVMValueRef v);
/* expand.c: what LLVM would make a library call of */
LLVMValueRef opjit_cg_expand_round(cg_func *f, ir_op op, ir_type type, LLVMValueRef x);
LLVMValueRef opjit_cg_expand_fma_f32(cg_func *f, LLVMValueRef *a);
LLVMValueRef opjit_cg_expand_ldexp(cg_func *f, ir_type type, LLVMValueRef x, LLVMValueRef n);
LLVMValueRef opjit_cg_expand_ctpop(cg_func *f, LLVMValueRef x);
LLVMValueRef opjit_cg_expand_quotient(cg_func *f, bool is_signed, LLVMValueRef a, LLVMValueRef b);
LLVMValueRef opjit_cg_expand_to_half(cg_func *f, LLVMValueRef x);                     /* from f32 */
LLVMValueRef opjit_cg_expand_from_half(cg_func *f, LLVMValueRef x);                   /* to f32 */
LLVMValueRef opjit_cg_round_to_odd(cg_func *f, LLVMValueRef sum, LLVMValueRef error); /* f64 */
/* FMA of f32 or f64, REM, SIN_FAR, COS_FAR and TAN_FAR of f64, by functions of ours: scalar.c's and far_trig.c's of one
 * lane, vector.c's of vectors */
LLVMValueRef opjit_cg_soft(cg_func *f, ir_op op, uint32_t count, LLVMValueRef *args); /* f64 operands */
LLVMValueRef opjit_cg_far(cg_func *f, ir_op op); /* the function; NULL: no memory */
LLVMValueRef opjit_cg_soft_lanes(cg_func *f, ir_op op, ir_type type, LLVMValueRef *a);

/* --- expressions -------------------------------------------------------------------------------------------------- */
LLVMValueRef opjit_cg_emit(cg_func *f, ir_ref node); /* vector where it varies, else scalar */
LLVMValueRef opjit_cg_emit_lanes(cg_func *f, ir_ref node, uint32_t lanes);
LLVMValueRef opjit_cg_op(cg_func *f, ir_ref node); /* ops.c: the node anew */
bool opjit_cg_varies(const cg_func *f, ir_ref node); /* over the lanes of the current piece */
/* index.c */
LLVMValueRef opjit_cg_variable(cg_func *f, cg_loop *loop);
LLVMValueRef opjit_cg_index(cg_func *f, ir_ref node);       /* an index operation */
uint32_t opjit_cg_lane_bits(const cg_func *f, ir_ref node); /* lane width of an index in vectors */
LLVMValueRef opjit_cg_index_lanes(cg_func *f, ir_ref node, uint32_t bits, uint32_t lanes);
LLVMValueRef opjit_cg_index_compare(cg_func *f, ir_ref node);
LLVMValueRef opjit_cg_element(cg_func *f, ir_ref node);                           /* ELEM */
LLVMValueRef opjit_cg_half_lanes(cg_func *f, ir_ref cast); /* of ELEM, as halves, where a round is of one binade */
/* Integers that grow by the same from lane to lane, modulo their width: sums and products of ELEM.  NULL: not one. */
LLVMValueRef opjit_cg_progression(cg_func *f, ir_ref node);
bool opjit_cg_affine(const cg_func *f, ir_ref node, ir_ref var, int64_t *factor); /* node = factor * var + invariant */
/* As opjit_ir_turns_add, by what the survey found to depend on var. */
bool opjit_cg_turns_add(const cg_func *f, ir_ref node, ir_ref var, int64_t factor, ir_turns *io);
LLVMValueRef opjit_cg_base(cg_func *f, ir_ref node);                              /* lane 0 of copy 0, as i64 */
/* Before a loop: what ELEM makes of an index that moves with its variable, but for that. */
void opjit_cg_hoist_start(cg_func *f, ir_ref elem, uint32_t loop, uint32_t lanes);
/* The remainder of an index expression modulo m where it is the same for all iterations. */
bool opjit_cg_residue(const cg_residues *with, ir_ref node, uint64_t m, uint64_t *out);
cg_residues opjit_cg_residues(const cg_func *f); /* of the piece that is being emitted */
/* Whether a <= b, always. */
bool opjit_cg_at_most(const cg_func *f, ir_ref a, ir_ref b);
/* The remainder of b - a modulo m, where it is the same whatever HEAD and the stage's variable are. */
bool opjit_cg_gap(const cg_func *f, ir_ref a, ir_ref b, uint64_t m, uint64_t *out);
/* memory.c */
LLVMValueRef opjit_cg_load(cg_func *f, ir_ref node);
LLVMValueRef opjit_cg_head(cg_func *f, ir_ref node);
void opjit_cg_store(cg_func *f, ir_ref statement);
void opjit_cg_store_vector(cg_func *f, LLVMValueRef value, LLVMValueRef pointer, uint32_t align, bool nontemporal);
/* Of the only store of a loop, to elements side by side: whether its vectors of `lanes` are known to be whole ones in
 * memory. */
bool opjit_cg_is_aligned(const cg_func *f, ir_ref store, ir_ref var, uint32_t lanes);
/* The same of the innermost loop: the variable's value where the first whole vector begins, from `from` on. */
LLVMValueRef opjit_cg_next_vector(cg_func *f, ir_ref store, uint32_t lanes, LLVMValueRef from);
/* Whether a piece with a mask can do this access: one vector, contiguous. */
bool opjit_cg_contiguous(const cg_func *f, ir_ref access, ir_ref var, int64_t step);
/* Of a load along the rows of a transposed block, for the current piece and copy: a vector per row. */
bool opjit_cg_is_transposed(const cg_func *f, ir_ref load);
void opjit_cg_transpose_load(cg_func *f, ir_ref load, LLVMValueRef *out);
void opjit_cg_hoist_pointer(cg_func *f, ir_ref access, uint32_t loop);

/* --- statements --------------------------------------------------------------------------------------------------- */
void opjit_cg_block(cg_func *f, ir_ref first);
/* The block of a vectorised loop for all copies, an operation of one after that of the other: what waits for itself
 * in one leaves room for the others.  `abreast` of them at most.  false: nothing was emitted. */
bool opjit_cg_side_by_side(cg_func *f, ir_ref first, uint32_t copies, uint32_t abreast);   /* stmt.c */
void opjit_cg_for(cg_func *f, ir_ref statement); /* loop.c */
/* The body for copies x lanes iterations of the innermost loop from iv on. */
void opjit_cg_copies(cg_func *f, ir_ref body, uint32_t lanes, uint32_t copies, LLVMValueRef iv);
/* table.c: what the innermost loop's table has for this copy: integers of that many bits. */
LLVMValueRef opjit_cg_table_read(cg_func *f, uint32_t bits);
/* transpose.c: the bodies of the loop over rows and, where f->turn is on, of the one inside it. */
void opjit_cg_transpose_rows(cg_func *f, ir_ref body, uint32_t rows, LLVMValueRef iv);
void opjit_cg_transpose_copies(cg_func *f, ir_ref body, uint32_t copies);
/* Vectors one after the other, a power of two of them; v is overwritten. */
LLVMValueRef opjit_cg_join(cg_func *f, LLVMValueRef *v, uint32_t count);
/* Lanes of the parts in turn, a power of two of them; v is overwritten. */
LLVMValueRef opjit_cg_zip(cg_func *f, LLVMValueRef *v, uint32_t count);
/* Every step-th element, as many as a part has lanes, of memory that the parts hold from starts[i] on, in order. */
LLVMValueRef opjit_cg_pick(cg_func *f, LLVMValueRef *parts, const uint32_t *starts, uint32_t count, uint32_t step);
/* v[j], of as many lanes as there are rows, as rows of `lanes` lanes: lane j of out[i] is lane i of v[j]. */
void opjit_cg_transpose(cg_func *f, LLVMValueRef *v, uint32_t lanes, LLVMValueRef *out);
/* half_integers.c */
/* cast f16 (elem f32 x) where all lanes of x are short integers, which the target converts; else NULL. */
LLVMValueRef opjit_cg_short_lanes(cg_func *f, ir_ref node);
void opjit_cg_hoist(cg_func *f, ir_ref first, uint32_t loop,
                    uint32_t lanes);             /* expr.c: what does not change in loops[loop] */
void opjit_cg_acc(cg_func *f, ir_ref statement); /* accumulator.c */
void opjit_cg_upd(cg_func *f, ir_ref statement);
/* In a loop from lo on whose rounds are `size` iterations in vectors of `lanes`, each beginning at lane 0: the
 * accumulators of the body are in registers from load to store, which are before and after the loop, or begin and end
 * a round. */
bool opjit_cg_can_hold(cg_func *f, ir_ref body, ir_ref lo, uint32_t lanes, uint64_t size); /* whether there are any */
/* The same of accumulators of one lane in copies that follow each other, whatever they begin with: each adds to what
 * the one before it has, and reads it. */
bool opjit_cg_can_hold_one(cg_func *f, ir_ref body);
void opjit_cg_hold_load(cg_func *f, ir_ref body);
void opjit_cg_hold_store(cg_func *f, ir_ref body);
void opjit_cg_hold_begin(cg_func *f, ir_ref body, LLVMBasicBlockRef before); /* first in its block: they go round */
void opjit_cg_hold_next(cg_func *f, ir_ref body);                            /* at the end of a round */
LLVMValueRef opjit_cg_acc_value(cg_func *f, ir_ref acc);
/* At quick what another block reads goes to the stack where it is computed, and each place between stores to a tensor
 * where that happens takes as long as a few of those, however much is stored there.  So what the loops of a row count
 * with is computed at the end of the row's first block, the piece's early one.  begin: goes there where that is
 * allowed; end: comes back. */
LLVMBasicBlockRef opjit_cg_early_begin(cg_func *f, bool allowed);
void opjit_cg_early_end(cg_func *f, LLVMBasicBlockRef here);
/* Makes this block the piece's early one, and goes on in the next one. */
void opjit_cg_early_here(cg_func *f);
/* Whether it is computed of indices alone, once a row. */
bool opjit_cg_is_early(const cg_func *f, ir_ref node);

/* Runs from lo to hi by step, builder left after it; at least one iteration unless guard (may be NULL) is false.  A
 * loop of several blocks has its variable in memory at quick: LLVM's fast register allocator would keep two there. */
typedef struct cg_count {
    LLVMBasicBlockRef body, after;
    LLVMValueRef iv, slot; /* slot: the variable's memory, or NULL; iv is then its value in the first block */
    bool early;            /* what it begins with is stored early; what comes next, only where there is a next round */
} cg_count;
LLVMValueRef opjit_cg_count_begin(cg_func *f, cg_count *c, bool blocks, LLVMValueRef lo, LLVMValueRef guard);
/* The same for a loop that mostly has one round: what its variable begins with is stored early. */
LLVMValueRef opjit_cg_count_begin_early(cg_func *f, cg_count *c, LLVMValueRef lo, LLVMValueRef guard);
void opjit_cg_count_end(cg_func *f, cg_count *c, int64_t step, LLVMValueRef hi);
/* if (condition) { ... } */
LLVMBasicBlockRef opjit_cg_if_begin(cg_func *f, LLVMValueRef condition);
/* Ends what if_begin began, on to `end`; goes on where the condition does not hold. */
void opjit_cg_if_leave(cg_func *f, LLVMBasicBlockRef otherwise, LLVMBasicBlockRef end);
void opjit_cg_if_end(cg_func *f, LLVMBasicBlockRef after);
void opjit_cg_next_block(cg_func *f);

/* --- functions and modules ---------------------------------------------------------------------------------------- */
/* Fills f->info for a stage; UNSUPPORTED or LIMIT name what can't be emitted. */
opjit_status opjit_cg_survey(cg_func *f, ir_ref stage);
/* function.c: survey and plan of the stage of f->ir, in memory of the arena; emission's state is at its begin. */
opjit_status opjit_cg_prepare(cg_func *f);
opjit_status opjit_cg_stage(cg_func *f, const char *name); /* function.c: the stage of f->ir, one function */
/* single_stage.c: what a function's stages are taken from; and a stage as a function of its own, good until the next
 * one. */
opjit_status opjit_cg_whole_init(cg_whole *w, const ir_func *ir, rt_arena *arena, opjit_error *error);
opjit_status opjit_cg_single(cg_whole *w, ir_ref stage, rt_arena *arena, ir_func *out, opjit_error *error);
uint32_t opjit_cg_stage_size(cg_whole *w, ir_ref stage); /* nodes that it reaches */
/* Whether the tensor shows an input that an output of any stage may be the memory of. */
bool opjit_cg_may_be_output(const cg_func *f, uint32_t tensor);
const char *opjit_cg_cpu(const cg_target *cpu, const rt_target *target); /* LLVM's name */
void opjit_cg_attributes(cg_func *f, LLVMValueRef fn);
LLVMTypeRef opjit_cg_stage_type(const cg_func *f);

#endif
