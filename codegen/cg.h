/* SPDX-License-Identifier: Apache-2.0 */
/* cg.h - shared by the files of codegen: the state of the function that is being emitted, and the helpers that emit
 * into it.  The interface for others is codegen.h.
 *
 * The way of a stage: survey.c looks at everything it reaches and refuses what can't be emitted; strategies.c chooses
 * how each loop is done (plan.h); loop.c emits a loop as its plan says, in pieces; copies.c emits the body for a piece;
 * stmt.c, expr.c, index.c, memory.c emit statements, expressions, addresses; arith.c, convert.c and expand.c turn one
 * operation on values into instructions.  Loops with hold become calls of functions of their own (hold/).  After the
 * survey nothing fails except for lack of memory.
 *
 * Values.  Expressions that depend on the vectorised loop are vectors, all others are scalars, splatted where the two
 * meet.  Elements travel as integers of their width or as floats, whichever they were made as; copies stay integers, so
 * that nothing touches a NaN.  f16 is always an i16.  bool is i1, or in vectors an integer that is all ones or 0
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
#include "codegen/tuning.h"
#include "ir/analysis/analysis.h"

/* Sizes of our own arrays and depths of our own recursion; numbers that were chosen by measuring are in tuning.def. */
enum {
    CG_MAX_LOOPS = 32,     /* nesting, the stage included; one bit each in cg_info */
    CG_MAX_SCOPES = 256,   /* four per loop, one per statement, one per guard */
    CG_MAX_LANES = 64,     /* rule V18 has no wider vectors */
    CG_MAX_WINDOW = 32,    /* copies of a body that share a mask, which is data with an element per lane of each */
    CG_MAX_ROWS = 8,       /* addresses of rows that are remembered; the next one replaces the oldest */
    CG_MAX_CONSTANTS = 64, /* vector constants in the module; where more are kept is LLVM's choice */
    CG_MAX_HELD = 8,       /* vectors of an accumulator in registers: its 32 lanes in vectors of 4 */
    CG_MAX_DEPTH = 1000,   /* of an expression: emission recurses */
    CG_MAX_WEIGHT = 2000,  /* nodes of an expression, counted as a tree, that are analysed */
    CG_MAX_GUARDS = 64,    /* nesting of selects around loads that are in bounds only there */
    CG_MAX_GUARDED = 4096  /* nodes under them, counted as a tree: each is emitted where it occurs */
};

/* --- one function in the making ----------------------------------------------------------------------------------- */
/* What the survey finds out about a node. */
typedef struct cg_info {
    uint32_t vary;          /* loops whose variable the value depends on, one bit per nesting depth */
    uint32_t inside;        /* loops that it can't be computed outside of: those of vary, and those in which an operand
                               is declared */
    uint32_t weight;        /* nodes of the expression as a tree */
    uint32_t guarded_nodes; /* nodes of that tree that contain a guarded load */
    uint32_t guards;        /* how deeply selects around such loads are nested */
    uint32_t ordered, noted; /* the latest order that contains the node (f->order); the last statement (survey.c) */
    bool seen, chosen; /* chosen: under a select alone, in a kernel for many sizes */
    bool fresh;   /* depends on memory that the stage writes, or on an accumulator: valid for one statement */
    bool loads, late; /* depends on memory or an accumulator; on what is no index, as an element or a condition */
    uint8_t calls; /* contains mathematical functions, of which one call takes that many copies at most; 0: none */
    bool outside; /* it is a load, a coordinate of which may be out of bounds unless a select guards it */
    bool guarded, stays; /* contains such a load; one that may be out of bounds where its statement does not run */
} cg_info;

/* What is remembered about a node. */
typedef enum cg_slot {
    CG_VALUE,   /* expression, let: its value */
    CG_SPLAT,   /* the same in every lane */
    CG_START,   /* index expression: its lanes with the loop's variable at 0 */
    CG_BASE,    /* affine index expression: its value in lane 0 of copy 0 */
    CG_POINTER, /* load, store: its address with the variable at 0 of the loop whose statement reads or writes it */
    CG_PLACE,   /* load, store: address of lane 0 of copy 0 */
    CG_STEP,    /* what grows by the same amount per lane: its lanes in a copy, and in CG_CHAINS - 1 others */
    CG_SLOTS = CG_STEP + CG_CHAINS
} cg_slot;

/* A remembered value, valid as long as the scope that it was made in is open. */
typedef struct cg_entry {
    LLVMValueRef value;
    uint32_t scope; /* that scope's id */
    uint32_t depth; /* and its index in f->scopes */
    int64_t offset; /* CG_STEP: number of the copy that it was made for; addresses: that copy's offset */
} cg_entry;

/* A vector that was read from a table: for one value of the loop's variable, and used again in that block only. */
typedef struct cg_table_read {
    LLVMValueRef value, iv;
    LLVMBasicBlockRef block;
    uint32_t uses;
} cg_table_read;
typedef struct cg_table {
    LLVMValueRef data; /* its address in the module */
    cg_table_read read[CG_TABLE_VECTORS];
} cg_table;

/* A loop that is being emitted. */
typedef struct cg_loop {
    ir_ref var;
    LLVMValueRef iv; /* the variable in lane 0 of copy 0: opjit_cg_variable returns it */
    int64_t offset;  /* of the current copy: copy * lanes * step */
    int64_t step;
    const struct cg_plan *plan; /* NULL: the stage */
    cg_table *table;            /* of what it stores, by its variable, where its plan has one */
    uint32_t threads;           /* that take groups of iterations in turn; 1 unless the loop is distributed */
    uint32_t scope;             /* id of the scope that spans all of its pieces */
    LLVMValueRef slot;          /* the variable's memory, or NULL; iv is then the value that block `home` read there */
    LLVMBasicBlockRef home;
} cg_loop;

/* Where an accumulator keeps its state: memory of the stack, and in rounds of a loop registers. */
typedef struct cg_acc {
    LLVMValueRef lane, where, some;              /* arrays by lane; where and some: arg kinds */
    LLVMValueRef total, total_where, total_some; /* of the completed blocks */
    LLVMValueRef block;                          /* k of the last update, without the bits inside a block */
    ir_type type;                                /* of the values; arg kinds yield another type */
    bool blocked;                                /* k may leave the first block */
    uint32_t held_count;                         /* vectors that have all lanes in registers; 0: they are in memory */
    LLVMValueRef held[CG_MAX_HELD];              /* these vectors now */
    LLVMValueRef phis[CG_MAX_HELD], waits[CG_MAX_HELD]; /* at a round's start; its own least or greatest, or NULL */
    bool own, apart;                             /* GPUs: it belongs to one thread; thread l of the team has lane l */
    bool whole;                                  /* vectors are stored whole: what reads a masked store waits for it */
} cg_acc;

/* An address that several accesses share: of the element with the coordinates `at`, where no node means 0. */
typedef struct cg_row {
    uint32_t tensor;
    ir_ref at[OPJIT_MAX_RANK];
    cg_entry entry;
} cg_row;

/* The vectors of a whole line of memory, which are stored together, and the line's address. */
typedef struct cg_edge {
    LLVMValueRef values[4];
    uint32_t count;
    LLVMValueRef pointer;
} cg_edge;

/* A block of rows that is transposed in registers: the body of the loop over rows is emitted once for all of them, and
 * in it the body of the loop inside once per row. */
typedef struct cg_transpose {
    bool on;       /* in the body of the inner loop */
    uint32_t loop; /* over rows: index in f->loops */
    uint32_t rows;
    uint32_t row_depth;   /* of the scope of the current row; 0: all rows at once */
    ir_ref lets;          /* the loop's first statement: lets up to the inner loop */
    LLVMValueRef *values; /* of those that differ from row to row, let by let */
} cg_transpose;

/* Numbers in place of HEAD and of the stage's variable, which are not known: a remainder that is affine in both, and
 * the same for each guess, is the same for all numbers. */
typedef struct cg_guess {
    bool on;
    uint64_t head, stage;
} cg_guess;
enum { CG_GUESSES = 3 };
extern const cg_guess opjit_cg_guesses[CG_GUESSES];

/* What is assumed of variables where a remainder is asked for (opjit_cg_residue). */
typedef struct cg_residues {
    const struct cg_func *f;
    ir_ref moving;  /* the vectorised loop's variable; 0: there is none */
    uint32_t lanes; /* it moves by that many from the loop's start; 0: it may be anything */
    cg_guess guess;
} cg_residues;

/* A vector constant, its memory in the module, and the value that was loaded from there. */
typedef struct cg_constant {
    LLVMValueRef constant, memory, value;
    LLVMBasicBlockRef block; /* where the value was loaded */
    uint32_t uses;           /* of the value */
} cg_constant;

/* What holds for the code of one piece of a loop, and for the pieces inside of it.  cg_piece_begin copies the record of
 * the piece around it into memory of the caller, who then changes what differs; cg_piece_end returns to that piece. */
typedef struct cg_piece {
    struct cg_piece *outer;
    uint32_t copy_scope;     /* depth of the innermost scope that spans a whole copy of a loop's body */
    uint32_t loop_scope;     /* depth of the scope that spans all copies */
    uint32_t place_scope;    /* the same, of all rows of a transposed block */
    uint32_t lanes;          /* 1: scalar */
    uint32_t copies;         /* of the body in it, one after the other */
    uint32_t vec;            /* if lanes > 1, the vectorised loop: index in f->loops */
    uint32_t lane_bits;      /* width of the elements that the vectorised loop works on */
    LLVMValueRef mask;       /* lanes that are evaluated; NULL: all */
    LLVMValueRef sure;       /* i1: whether all of them are (of a remainder, the `first`), where it is all or none;
                             NULL: it is not, or there is no mask */
    int64_t rest;            /* lanes of one more, masked copy after the copies; 0: none */
    bool tail;               /* mask covers the end of a loop: lanes after it are not iterations */
    LLVMValueRef iterations; /* of a tail: the lanes that are, whatever conditions mask them */
    uint32_t first;          /* lanes that are, if that is known; else 0 */
    bool shifted;            /* it begins anywhere, not at whole vectors from the loop's begin */
    bool aligned;            /* it begins where the store's memory has a whole vector */
    bool binade;             /* the numbers that it stores as halves lie between two adjacent powers of two */
    bool apart;              /* GPUs: each thread of the team has iterations of its own */
    LLVMValueRef growth;     /* in a binade: what their bits grow by from one vector to the CG_CHAINS-th after it */
    LLVMValueRef distance;   /* iterations from one of two places to the other; NULL: there is one only */
    LLVMValueRef other_iv;   /* of the other place */
    LLVMBasicBlockRef early; /* an earlier block in which its scalars should be computed; NULL: none */
    cg_edge *edge;           /* keeps stores instead of emitting them; NULL: they are emitted */
    cg_transpose block;
    LLVMValueRef ahead;       /* address that is read ahead (reads.c) beside the copy that stores at ahead_at */
    uint64_t ahead_at;        /* bytes after the first copy */
    LLVMValueRef ahead_group; /* i64: where the group of copies begins to store for which the address was computed */
} cg_piece;

typedef struct cg_func {
    const ir_func *ir;   /* of this stage only */
    const bool *aliased; /* by tensor: an output of any stage shares its memory, or may */
    const ir_ref *nodes; /* by node: its number in the function that the stage is taken from; for texts */
    bool by_table;       /* the first argument has a pointer for each tensor: other stages have this code, too */
    const rt_target *target;
    const cg_target *cpu;
    rt_arena *arena;
    opjit_error *error;
    LLVMContextRef llvm;
    LLVMModuleRef module;
    LLVMValueRef (*op)(struct cg_func *f, ir_ref node);    /* opjit_cg_op, which opjit_cg_emit doesn't know */
    void (*put_loop)(struct cg_func *f, ir_ref statement); /* opjit_cg_for, which opjit_cg_block doesn't know */
    LLVMBuilderRef b;                                      /* where code goes */
    LLVMBuilderRef entry; /* end of the entry block: allocas, base pointers, parameters */
    LLVMValueRef fn;
    struct {
        LLVMTypeRef i1, i8, i16, i32, i64, i128, f16, f32, f64, ptr, none;
    } type;
    const struct cg_traits *traits;
    struct cg_stage_plan *stage;
    struct cg_plan **plans; /* by node: of loops */
    const struct cg_plan *first_plan;
    cg_info *info;             /* by node */
    cg_entry *cache[CG_SLOTS]; /* by node */
    cg_entry *own[CG_SLOTS];   /* of the current copy: equals cache unless copies are emitted side by side */
    cg_entry *sides[CG_MAX_SIDE_BY_SIDE][CG_SLOTS];
    ir_ref *order;            /* nodes of one statement, operands first, where copies are emitted side by side */
    uint32_t orders;          /* that were made so far */
    cg_acc **accs;            /* by node: of accumulators */
    LLVMValueRef *bases;      /* by tensor */
    LLVMValueRef *params;     /* by parameter */
    cg_row rows[CG_MAX_ROWS]; /* the latest ones */
    cg_constant constants[CG_MAX_CONSTANTS]; /* vector constants in the module */
    uint32_t row_count, constant_count, head_count;
    compat_intrinsics latest;
    cg_piece root, *piece; /* the piece around all others; the innermost one */
    cg_loop loops[CG_MAX_LOOPS];
    uint32_t loop_count;
    uint32_t scopes[CG_MAX_SCOPES], scope_count, next_scope;
    bool streams;                    /* a loop of the stage stores around the caches */
    LLVMValueRef nowhere;            /* memory for an element that must not be stored */
    cg_entry *other_cache[CG_SLOTS]; /* what is remembered at the other one of two places */
    LLVMValueRef rows_apart;         /* of the stage, from one to the other, if it does two rows at a time; else NULL */
    ir_ref head;                     /* the only HEAD of the stage; 0: none or several, */
    LLVMValueRef line;           /* memory for a line that two iterations share */
    ir_launch launch;            /* GPUs: of this stage */
    uint32_t buffer_count;       /* arguments that are buffers */
    LLVMValueRef *constant_data; /* constant buffers, if they are in the module; NULL: they are arguments */
    LLVMValueRef thread, team_in_block, team_number; /* i64: of the team, the block, the grid */
    LLVMValueRef scratch, block_memory; /* addresses: of the team's scratch, of the block's shared memory */
    LLVMValueRef exchange;              /* shared memory through which a team's threads exchange values, if any */
    LLVMValueRef first[8];              /* thread times 2, 4, 8, ...: by logarithm */
    struct cg_tiles *tiles;             /* of the module: that it calls (softops/kept.h) */
    bool fence;                         /* a non-temporal store was emitted */
    bool peak, direct;                  /* level; code is written without LLVM's backend, unless it is refused */
    bool failed;                        /* out of memory */
    bool accumulates;                   /* allocas that a pass should turn into registers */
    bool vectors, rounds;               /* vectors of more than one lane, a loop were emitted */
    struct cg_numbers *numbers;         /* emit/numbers.c: the latest sums and products of numbers */
    struct cg_apart *apart;             /* emit/among.c: the latest loop's loads whose lanes lie apart */
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
LLVMValueRef opjit_cg_splat(cg_func *f, LLVMValueRef v, uint32_t lanes); /* returns vectors as they are */
LLVMValueRef opjit_cg_as_bits(cg_func *f, LLVMValueRef v);               /* floats as integers of their width */
LLVMValueRef opjit_cg_as_float(cg_func *f, LLVMValueRef v);              /* i32, i64 as floats of their width */
LLVMValueRef opjit_cg_resize(cg_func *f, LLVMValueRef v, uint32_t bits, bool is_signed);
LLVMValueRef opjit_cg_lane(cg_func *f, LLVMValueRef v, uint32_t lane);  /* of a scalar: itself */
LLVMValueRef opjit_cg_fold_lanes(cg_func *f, bool all, LLVMValueRef v); /* all lanes: and (all), else or */
LLVMValueRef opjit_cg_insert(cg_func *f, LLVMValueRef v, LLVMValueRef element, uint32_t lane);
/* An intrinsic overloaded on the type of its first argument (and, if it names two, on pointer). */
LLVMValueRef opjit_cg_call(cg_func *f, const char *name, uint32_t count, LLVMValueRef *args);
LLVMValueRef opjit_cg_call_of(cg_func *f, const char *name, LLVMTypeRef overload, uint32_t count, LLVMValueRef *args);
LLVMValueRef opjit_cg_call_plain(cg_func *f, const char *name, uint32_t count, LLVMValueRef *args); /* of no type */
LLVMValueRef opjit_cg_add(cg_func *f, LLVMValueRef a, LLVMValueRef b); /* of integers; adding 0 emits nothing */
LLVMValueRef opjit_cg_sub(cg_func *f, LLVMValueRef a, LLVMValueRef b);
LLVMValueRef opjit_cg_opaque(cg_func *f, LLVMValueRef v); /* hidden from loop analysis where that would be slow */
LLVMValueRef opjit_cg_alloca(cg_func *f, LLVMTypeRef type);
LLVMValueRef opjit_cg_offset(cg_func *f, LLVMTypeRef element, LLVMValueRef pointer, LLVMValueRef index); /* address */

/* What is remembered, and for how long. */
void opjit_cg_scope_push(cg_func *f);
void opjit_cg_scope_pop(cg_func *f);
LLVMValueRef opjit_cg_recall(cg_func *f, cg_slot slot, ir_ref node); /* NULL: nothing is remembered */
/* The entry of what is valid at that depth: every copy's, or the copy's own. */
cg_entry *opjit_cg_place(const cg_func *f, cg_slot slot, ir_ref node, uint32_t depth);
void opjit_cg_remember(cg_func *f, cg_slot slot, ir_ref node, uint32_t depth, LLVMValueRef value);
cg_entry opjit_cg_entry(const cg_func *f, uint32_t depth, LLVMValueRef value);
/* Addresses that are `grow` elements further on for each value of the innermost loop's variable: remembers copy 0's,
 * and returns the current copy's. */
void opjit_cg_remember_address(cg_func *f, cg_slot slot, ir_ref node, uint32_t depth, LLVMValueRef address);
LLVMValueRef opjit_cg_address(cg_func *f, cg_slot slot, ir_ref node, LLVMTypeRef element, int64_t grow);
LLVMValueRef opjit_cg_live(const cg_func *f, const cg_entry *entry); /* NULL: its scope is closed */

/* --- conditions of lanes (mask.c): i1, or integers that are all ones or 0 -------------------------------------- */
LLVMValueRef opjit_cg_narrow(cg_func *f, LLVMValueRef c); /* as i1 */
/* Whether, at quick, the target compares such vectors of numbers by an intrinsic; conditions are integers there. */
bool opjit_cg_compares(const cg_func *f, uint32_t bits, uint32_t lanes);
LLVMValueRef opjit_cg_choose(cg_func *f, LLVMValueRef c, LLVMValueRef a,
                             LLVMValueRef b); /* c ? a : b; makes the forms equal */
LLVMValueRef opjit_cg_logic(cg_func *f, ir_op op, LLVMValueRef *a);
LLVMValueRef opjit_cg_kept(cg_func *f, LLVMValueRef v); /* a vector constant, in a register where that is better */
/* The address of a constant that is such a value now; NULL: it is none. */
LLVMValueRef opjit_cg_kept_at(const cg_func *f, LLVMValueRef v);
/* The vector at pointer in the lanes of mask, those of `other` elsewhere; align: of pointer, in bytes. */
LLVMValueRef opjit_cg_load_where(cg_func *f, LLVMValueRef pointer, LLVMValueRef mask, LLVMValueRef other,
                                 uint32_t align);
void opjit_cg_forget_kept(cg_func *f);                   /* they must be read from memory again */
bool opjit_cg_is_kept(const cg_func *f, LLVMValueRef v); /* whether it is one, or a constant */
LLVMValueRef opjit_cg_constant_data(cg_func *f, const char *name, LLVMValueRef data); /* in the module */
/* x / k, rounded down, of integers, for k > 0; positive: x is known to be at least 0. */
LLVMValueRef opjit_cg_floor_div(cg_func *f, LLVMValueRef x, int64_t k, bool positive);
LLVMValueRef opjit_cg_limit(cg_func *f, bool max, LLVMValueRef a, LLVMValueRef b); /* scalars, signed */

/* --- operations on values ----------------------------------------------------------------------------------------- */
/* An arithmetic, bit or rounding op on elements of one type (arith.c); all operands have the same lanes. */
LLVMValueRef opjit_cg_arith(cg_func *f, ir_op op, ir_type type, LLVMValueRef *a);
LLVMValueRef opjit_cg_compare(cg_func *f, ir_op op, ir_type type, LLVMValueRef a, LLVMValueRef b);
/* Of floats: x if it is beyond y (less than it for MIN, greater for MAX), else y. */
LLVMValueRef opjit_cg_beyond(cg_func *f, ir_op op, ir_type type, LLVMValueRef x, LLVMValueRef y);
/* convert.c */
LLVMValueRef opjit_cg_convert(cg_func *f, ir_type from, ir_type to, LLVMValueRef v);
LLVMValueRef opjit_cg_halves(cg_func *f, ir_type from, LLVMValueRef v); /* as IR_HALVES */
LLVMValueRef opjit_cg_half_to_f32(cg_func *f, LLVMValueRef v);
LLVMValueRef opjit_cg_f32_to_half(cg_func *f, LLVMValueRef v);
LLVMValueRef opjit_cg_f64_to_half(cg_func *f, LLVMValueRef v);
/* expand.c: what LLVM would turn into a library call */
LLVMValueRef opjit_cg_expand_round(cg_func *f, ir_op op, ir_type type, LLVMValueRef x);
LLVMValueRef opjit_cg_expand_fma_f32(cg_func *f, LLVMValueRef *a);
LLVMValueRef opjit_cg_expand_ctpop(cg_func *f, LLVMValueRef x);
LLVMValueRef opjit_cg_expand_quotient(cg_func *f, bool is_signed, LLVMValueRef a, LLVMValueRef b);
LLVMValueRef opjit_cg_expand_to_half(cg_func *f, LLVMValueRef x);                     /* from f32 */
LLVMValueRef opjit_cg_expand_from_half(cg_func *f, LLVMValueRef x);                   /* to f32 */
LLVMValueRef opjit_cg_round_to_odd(cg_func *f, LLVMValueRef sum, LLVMValueRef error); /* f64 */
/* FMA, REM, SIN_FAR, COS_FAR, TAN_FAR by functions in the module: scalar.c's, far_trig.c's; of vectors vector.c's */
LLVMValueRef opjit_cg_soft(cg_func *f, ir_op op, uint32_t count, LLVMValueRef *args); /* f64 operands */
LLVMValueRef opjit_cg_far(cg_func *f, ir_op op); /* the function; NULL: no memory */
LLVMValueRef opjit_cg_soft_lanes(cg_func *f, ir_op op, ir_type type, LLVMValueRef *a);
/* The functions made so far ("soft.", so that no kernel has their names) belong to this version: another one
 * has other features. */
void opjit_cg_soft_close(cg_func *f, const char *version);

/* --- expressions -------------------------------------------------------------------------------------------------- */
LLVMValueRef opjit_cg_emit(cg_func *f, ir_ref node); /* vector where it varies, else scalar */
LLVMValueRef opjit_cg_emit_lanes(cg_func *f, ir_ref node, uint32_t lanes);
LLVMValueRef opjit_cg_op(cg_func *f, ir_ref node);   /* ops.c: the node anew */
bool opjit_cg_varies(const cg_func *f, ir_ref node); /* over the lanes of the current piece */
/* index.c */
LLVMValueRef opjit_cg_variable(cg_func *f, cg_loop *loop);
LLVMValueRef opjit_cg_index(cg_func *f, ir_ref node);       /* an index operation */
uint32_t opjit_cg_lane_bits(const cg_func *f, ir_ref node); /* lane width of an index in vectors */
LLVMValueRef opjit_cg_index_lanes(cg_func *f, ir_ref node, uint32_t bits, uint32_t lanes);
LLVMValueRef opjit_cg_index_compare(cg_func *f, ir_ref node);
LLVMValueRef opjit_cg_element(cg_func *f, ir_ref node);    /* ELEM */
LLVMValueRef opjit_cg_half_lanes(cg_func *f, ir_ref cast); /* ELEM as halves, if a round is in one binade */
/* Integers that grow by the same amount per lane, modulo their width: sums and products of ELEM.  NULL: not one. */
LLVMValueRef opjit_cg_progression(cg_func *f, ir_ref node);
bool opjit_cg_affine(const cg_func *f, ir_ref node, ir_ref var, int64_t *factor); /* node = factor * var + invariant */
/* As opjit_ir_pace_add and opjit_ir_turns_add, with the survey's knowledge of what depends on var. */
bool opjit_cg_pace_add(const cg_func *f, ir_ref node, ir_ref var, int64_t factor, ir_pace *io);
bool opjit_cg_turns_add(const cg_func *f, ir_ref node, ir_ref var, int64_t factor, ir_turns *io);
LLVMValueRef opjit_cg_base(cg_func *f, ir_ref node); /* lane 0 of copy 0, as i64 */
/* Before a loop: emits what ELEM makes of an index that moves with the loop's variable, except for that variable. */
void opjit_cg_hoist_start(cg_func *f, ir_ref elem, uint32_t loop, uint32_t lanes);
/* The remainder of an index expression modulo m, if it is the same for all iterations. */
bool opjit_cg_residue(const cg_residues *with, ir_ref node, uint64_t m, uint64_t *out);
cg_residues opjit_cg_residues(const cg_func *f); /* of the current piece */
/* Whether a <= b, always. */
bool opjit_cg_at_most(const cg_func *f, ir_ref a, ir_ref b);
/* The remainder of b - a modulo m, if it is the same whatever HEAD and the stage's variable are. */
bool opjit_cg_gap(const cg_func *f, ir_ref a, ir_ref b, uint64_t m, uint64_t *out);
/* memory.c */
LLVMValueRef opjit_cg_load(cg_func *f, ir_ref node);
LLVMValueRef opjit_cg_head(cg_func *f, ir_ref node);
void opjit_cg_store(cg_func *f, ir_ref statement);
void opjit_cg_store_vector(cg_func *f, LLVMValueRef value, LLVMValueRef pointer, uint32_t align, bool nontemporal);
void opjit_cg_prefetch(cg_func *f, LLVMValueRef pointer, bool to_write, uint32_t locality); /* 3: to the first cache */
/* Whether the vectors of `lanes` of a loop's only store, which is contiguous, are known to be whole vectors in
 * memory. */
bool opjit_cg_is_aligned(const cg_func *f, ir_ref store, ir_ref var, uint32_t lanes);
/* The same for the innermost loop: the variable's value at which the first whole vector begins, from `from` on. */
LLVMValueRef opjit_cg_next_vector(cg_func *f, ir_ref store, uint32_t lanes, LLVMValueRef from);
/* Whether a masked piece can do this access: one contiguous vector. */
bool opjit_cg_contiguous(const cg_func *f, ir_ref access, ir_ref var, int64_t step);
/* Of a load along the rows of a transposed block, for the current piece and copy: a vector per row. */
bool opjit_cg_is_transposed(const cg_func *f, ir_ref load);
void opjit_cg_transpose_load(cg_func *f, ir_ref load, LLVMValueRef *out);
void opjit_cg_hoist_pointer(cg_func *f, ir_ref access, uint32_t loop);

/* --- statements --------------------------------------------------------------------------------------------------- */
void opjit_cg_block(cg_func *f, ir_ref first);
/* Emits the block of a vectorised loop for all copies, each operation of one copy after that of the previous one: while
 * one copy waits for itself, others proceed.  `abreast` of them at a time, of CG_MAX_SIDE_BY_SIDE at most.  false: no
 * memory. */
bool opjit_cg_side_by_side(cg_func *f, ir_ref first, uint32_t copies, uint32_t abreast); /* stmt.c */
void opjit_cg_for(cg_func *f, ir_ref statement);                                         /* stores/loop.c */
/* copies.c: a piece for the first lanes alone, as many as the vector `count` has in each lane. */
void opjit_cg_mask_begin(cg_func *f, cg_piece *own, uint32_t lanes, LLVMValueRef count);
/* Emits the body for copies x lanes iterations of the innermost loop from iv on. */
void opjit_cg_copies(cg_func *f, ir_ref body, uint32_t lanes, uint32_t copies, LLVMValueRef iv);
/* reads.c: the node's value for this copy, as integers, if the innermost loop's table has it; else NULL. */
LLVMValueRef opjit_cg_from_table(cg_func *f, ir_ref node);
/* transpose.c: the bodies of the loop over rows and, inside a transposed block, of the loop in it. */
void opjit_cg_transpose_rows(cg_func *f, ir_ref body, uint32_t rows, LLVMValueRef iv);
void opjit_cg_transpose_copies(cg_func *f, ir_ref body, uint32_t copies);
/* A vector of `count` lanes of a and b: a place below a's number of lanes is a lane of a, those from there on are b's;
 * UINT32_MAX: any lane. */
LLVMValueRef opjit_cg_shuffle(cg_func *f, LLVMValueRef a, LLVMValueRef b, const uint32_t *places, uint32_t count);
LLVMValueRef opjit_cg_part(cg_func *f, LLVMValueRef v, uint32_t first, uint32_t count); /* lanes, in a circle */
/* Concatenates vectors, a power of two of them; overwrites v. */
LLVMValueRef opjit_cg_join(cg_func *f, LLVMValueRef *v, uint32_t count);
/* Interleaves the lanes of the parts, a power of two of them; overwrites v. */
LLVMValueRef opjit_cg_zip(cg_func *f, LLVMValueRef *v, uint32_t count);
/* Every step-th element from `first` on, as many as a part has lanes, of what `step` parts hold from starts[i] on. */
LLVMValueRef opjit_cg_pick(cg_func *f, LLVMValueRef *parts, const uint32_t *starts, uint32_t step, uint32_t first);
/* The squares of count x count lanes that count vectors have side by side, each transposed. */
void opjit_cg_transpose_squares(cg_func *f, LLVMValueRef *v, uint32_t count);
/* As many vectors as each has lanes: lane j of v[i] changes places with lane i of v[j]. */
void opjit_cg_transpose_square(cg_func *f, LLVMValueRef *v);
/* short_halves.c */
enum { CG_MOST_HALF = 65535 }; /* in the last binade, although it rounds to infinity, as the next number would */
/* The index of which value is the half, through a float; *step: from one iteration to the next; *i: its interval where
 * the body runs.  0: the value is something else. */
ir_ref opjit_cg_half_index(const cg_func *f, ir_ref value, ir_ref var, int64_t *step, ir_interval *i);
/* The same if it is a short integer wherever the body of var's loop runs, and the target converts these; else 0. */
ir_ref opjit_cg_short_index(const cg_func *f, ir_ref value, ir_ref var, bool *is_signed);
/* cast f16 (elem f32 x) if all lanes of x are short integers, which the target converts; else NULL. */
LLVMValueRef opjit_cg_short_lanes(cg_func *f, ir_ref node);
void opjit_cg_hoist(cg_func *f, ir_ref first, uint32_t loop, uint32_t lanes); /* expr.c: what loops[loop] leaves */
void opjit_cg_acc(cg_func *f, ir_ref statement);                              /* accumulator.c */
void opjit_cg_upd(cg_func *f, ir_ref statement);
/* held.c: whether the body's accumulators can be in registers from hold_load to hold_store, which are emitted before
 * and after a loop, or at the start and end of a round.  The loop begins at lo; its rounds are `size` iterations in
 * vectors of `lanes`, and each round begins at lane 0 of the accumulators.  lanes 1: whether some accumulator of one
 * lane can; each copy of the body adds to the result of the previous one, and may read it. */
bool opjit_cg_can_hold(const cg_func *f, ir_ref body, ir_ref lo, uint32_t lanes, uint64_t size);
void opjit_cg_hold_load(cg_func *f, ir_ref body, uint32_t lanes);
void opjit_cg_hold_store(cg_func *f, ir_ref body);
void opjit_cg_hold_begin(cg_func *f, ir_ref body, LLVMBasicBlockRef before); /* first in its block: it makes phis */
void opjit_cg_hold_next(cg_func *f, ir_ref body);                            /* at the end of a round */
LLVMValueRef opjit_cg_acc_value(cg_func *f, ir_ref acc);
/* At quick, a value that another block reads goes to the stack, and each place among a tensor's stores where that
 * happens takes as long as a few of them.  So what a row's loops count with is computed at the end of its first block,
 * the piece's early one, and what follows from dimensions alone before all rows.  begin: goes there; end: returns. */
typedef enum cg_when { CG_HERE, CG_EARLY, CG_AT_ENTRY } cg_when;
LLVMBasicBlockRef opjit_cg_early_begin(cg_func *f, cg_when when);
void opjit_cg_early_end(cg_func *f, LLVMBasicBlockRef here);
void opjit_cg_early_here(cg_func *f); /* makes this block the piece's early one, and continues in a new one */
/* Where an expression of indices alone is computed: once per row, or once. */
cg_when opjit_cg_when(const cg_func *f, ir_ref node);

/* A loop from lo to hi by step; the builder is left after it.  At least one iteration unless guard (may be NULL) is
 * false.  A loop of several blocks has its variable in memory at quick, where LLVM's fast register allocator would keep
 * two copies. */
typedef struct cg_count {
    LLVMBasicBlockRef body, after;
    LLVMValueRef iv, slot; /* slot: the variable's memory, or NULL; iv is then its value in the first block */
    bool early;            /* what it begins with is stored early; what comes next, only where there is a next round */
} cg_count;
LLVMValueRef opjit_cg_count_begin(cg_func *f, cg_count *c, bool blocks, LLVMValueRef lo, LLVMValueRef guard);
/* The same for a loop that mostly has one round: stores the variable's first value early. */
LLVMValueRef opjit_cg_count_begin_early(cg_func *f, cg_count *c, LLVMValueRef lo, LLVMValueRef guard);
void opjit_cg_count_end(cg_func *f, cg_count *c, int64_t step, LLVMValueRef hi);
/* if (condition) { ... } */
LLVMBasicBlockRef opjit_cg_if_begin(cg_func *f, LLVMValueRef condition);
/* Ends what if_begin began with a jump to `end`; continues where the condition does not hold. */
void opjit_cg_if_leave(cg_func *f, LLVMBasicBlockRef otherwise, LLVMBasicBlockRef end);
void opjit_cg_if_end(cg_func *f, LLVMBasicBlockRef after);
void opjit_cg_next_block(cg_func *f);

/* --- functions and modules ---------------------------------------------------------------------------------------- */
/* Fills f->info for a stage; UNSUPPORTED or LIMIT name what can't be emitted. */
opjit_status opjit_cg_survey(cg_func *f, ir_ref stage);
void opjit_cg_attributes(cg_func *f, LLVMValueRef fn); /* attributes.c */
LLVMTypeRef opjit_cg_stage_type(const cg_func *f);

#endif
