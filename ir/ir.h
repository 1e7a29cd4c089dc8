/* SPDX-License-Identifier: Apache-2.0 */
/* ir.h - the loop IR: types, nodes, functions, builders, text, verifier, passes, interpreter.
 *
 * One IR with two forms that share their expressions.  Value form (what lowering writes): one definition per tensor.
 * Loop form (what codegen and the interpreter run): stages, loops, accumulators, stores.  Vectors and threads are
 * attributes: after every pass the function is still a scalar program that the interpreter runs.  ir/README.md is the
 * language reference.
 *
 * Nodes, tensors and params are in arrays of the function and referred to by index; 0 is none.  Expressions are pure
 * and may be shared (a node may be an operand of many).  Statements form lists through next and trees through body.  A
 * pass appends nodes and relinks statements; unreachable nodes are garbage until the function is packed. */
#ifndef OPJIT_IR_IR_H
#define OPJIT_IR_IR_H

#include <stdatomic.h>

#include <opjit/abi.h>

#include "runtime/base/base.h"
#include "runtime/target/target.h"

typedef uint32_t ir_ref; /* index of a node; 0: none */

typedef enum ir_type {
    IR_NONE = 0,
    IR_F16, IR_F32, IR_F64,
    IR_I8, IR_I16, IR_I32, IR_I64,
    IR_U8, IR_U16, IR_U32, IR_U64,
    IR_BOOL,
    IR_INDEX,   /* signed 64 bits; may not overflow (rule V11) */
    IR_TYPE_COUNT
} ir_type;

static inline bool ir_is_float(ir_type t) { return t >= IR_F16 && t <= IR_F64; }
static inline bool ir_is_signed(ir_type t) { return t >= IR_I8 && t <= IR_I64; }
static inline bool ir_is_integer(ir_type t) { return t >= IR_I8 && t <= IR_U64; }
static inline bool ir_is_element(ir_type t) { return t >= IR_F16 && t <= IR_U64; }
uint32_t opjit_ir_type_size(ir_type t);         /* bytes; bool 1, index 8, none 0 */
const char *opjit_ir_type_name(ir_type t);      /* "f32", "bool", "index" */
ir_type opjit_ir_type_of(DML_TENSOR_DATA_TYPE t); /* IR_NONE where there is none */

typedef enum ir_op {
    IR_OP_NONE = 0,
#define IR_OP(name, text, operands, result, flags) IR_##name,
#include "ir/core/ops.def"
#undef IR_OP
    IR_OP_COUNT
} ir_op;

typedef struct ir_op_info {
    char name[8];
    char operands[9];     /* letters, see ops.def */
    char result;          /* 'N' 'I' 'B' 'S' 'A' 'T' */
    uint8_t flags;        /* IR_FLAG_... */
} ir_op_info;
enum { IR_FLAG_P = 1, IR_FLAG_M = 2, IR_FLAG_V = 4, IR_FLAG_L = 8, IR_FLAG_S = 16, IR_FLAG_K = 32 };
extern const ir_op_info opjit_ir_op_infos[IR_OP_COUNT];

typedef enum ir_kind {
    IR_KIND_NONE = 0,
#define IR_REDUCTION(kind, text, op) IR_##kind,
#include "ir/core/kinds.def"
#undef IR_REDUCTION
    IR_KIND_COUNT
} ir_kind;
const char *opjit_ir_kind_name(ir_kind k); /* "sum" ... "argmax.last", "dot" */

typedef struct ir_node {
    uint8_t op;       /* ir_op */
    uint8_t type;     /* ir_type of the value; statements: IR_NONE, except LET and ACC: the type that get reads */
    uint8_t kind;     /* ACC, DEF that reduces: ir_kind */
    uint8_t hold;     /* FOR: 1: scratch that is stored in it is in registers while it runs (rule V20) */
    uint16_t flags;   /* FOR: IR_FOR_... */
    uint16_t block;   /* ACC, DEF that reduces: values of a block */
    uint16_t vec;     /* FOR: lanes, 0, 1: scalar; with TRANSPOSE: rows of a block; STAGE: threads of a team, 0: one */
    uint16_t unroll;  /* FOR: whole vectors per iteration, 0 or 1: one */
    uint32_t count;   /* operands: f->operands[first .. first + count) */
    uint32_t first;
    uint32_t ref;     /* LOAD STORE DEF YIELD HEAD: tensor; VAR: owner; GET: LET or ACC; UPD: ACC; PARAM: param; FOR
                         STAGE: its VAR */
    ir_ref next;      /* statement: the next one of its block */
    ir_ref body;      /* FOR STAGE: first statement of the block */
    uint64_t imm;     /* CONST: bits (index: two's complement); FOR: step; STAGE: grain; ACC, reducing DEF: lanes;
                         VAR: which coordinate of its def; YIELD: 1 if boxed (per dimension an offset, a size and a
                         step follow its VARs) */
} ir_node;
enum {
    IR_FOR_NT = 1,
    IR_FOR_TAIL_MASK = 2,
    IR_FOR_TAIL_OVERLAP = 4, /* the last vector may begin before lo: storing the same again is harmless */
    IR_FOR_HEAD = 8,   /* the start of a row, stored as a whole line from lo on */
    IR_FOR_TAIL = 16,  /* the end of a row, stored as a whole line up to hi */
    IR_FOR_CARRY = 32, /* HEAD, TAIL: the next iteration of the stage continues in memory where this one ends */
    IR_FOR_TRANSPOSE = 64, /* vec iterations, and vec of the one loop inside, are transposed in registers as a block */
    IR_FOR_DISTRIBUTE = 128, /* distributed over the stage's team of threads, vec iterations at a time */
    IR_FOR_SERIAL = 256, /* one iteration after the other: they may store the same elements, the last one wins */
};
enum {
    IR_STAGE_ALONE = 1,  /* STAGE: a team is a block, as its threads communicate and the target's warps can't */
    IR_STAGE_ONCE = 512, /* STAGE: it reads constants alone, and runs when a kernel gets them, not at each call */
};
#define IR_LINE 64 /* bytes; what HEAD counts up to */

/* KEPT: a temp of stages that run once, which the kernel keeps for those that run at each call. */
/* A number that follows from dimensions: plus + form, or, where rest is not 0, plus + what is left of form divided by
 * it. */
typedef struct ir_size_form {
    opjit_size_form form;
    int64_t rest, plus;
} ir_size_form;

typedef enum ir_role { IR_IN = 1, IR_OUT, IR_CONSTANT, IR_TEMP, IR_KEPT, IR_SCRATCH, IR_VALUE, IR_VIEW } ir_role;

/* Memory that a function's own stages write. */
static inline bool ir_is_memory(ir_role role) { return role == IR_TEMP || role == IR_KEPT || role == IR_SCRATCH; }

typedef struct ir_tensor {
    ir_role role;
    ir_type type;
    uint32_t rank;                      /* 1 to OPJIT_MAX_RANK */
    uint64_t sizes[8], strides[8];      /* elements; strides of dimensions of size 1 are 0 */
    uint64_t bytes;                     /* extent in memory */
    uint32_t align;                     /* known alignment of element 0, bytes */
    uint32_t slot;                      /* IN OUT CONSTANT: position in the stage function's buffers; KEPT: of kept
                                           memory, behind all of these, by opjit_ir_layout */
    uint32_t alias;                     /* OUT: the IN tensor whose memory this is in this variant; 0: none */
    uint32_t shared;                    /* OUT: bit i: the IN tensor in slot i may share this memory, too. Passes may
                                           use alias; shared only forbids */
    uint32_t of;                        /* VIEW: the tensor whose bytes it shows */
    int64_t offset;                     /* VIEW: elements; TEMP, KEPT, SCRATCH: bytes into shared, kept or scratch
                                           memory, by opjit_ir_layout */
    uint32_t fed_by;                    /* VALUE: a state; the tensor that it is in the step after; 0: none */
    uint32_t feeds;                     /* VALUE: the state that is this in the next step; 0: none */
    uint32_t origin;                    /* the graph's node that defines it, counted from 1; 0: none. For those who ask
                                           what a stage computes: not in the text, and nothing depends on it */
    const char *name;                   /* IN OUT: the descriptor's field; NULL: none */
    const void *data;                   /* CONSTANT: `bytes` bytes */
    const ir_size_form *size_forms;     /* by dimension, until opjit_ir_general_resize: what sizes, which are a
                                           sample's, follow from; NULL: they are as sizes says */
} ir_tensor;

typedef struct ir_param {
    ir_type type;       /* element type or IR_INDEX */
    int64_t lo, hi;     /* IR_INDEX: interval, both ends included */
    const char *name;   /* field, or NULL */
} ir_param;

/* How far a function has come, on which the verifier's rules depend.  Printed as `after NAME`; value form prints
 * nothing. */
typedef enum ir_phase {
    IR_LOWERED = 0, IR_FOLDED, IR_PLACED, IR_COLLAPSED, IR_SPLIT, IR_CLEANED, IR_SCHEDULED, IR_EXPANDED, IR_GRIDDED,
    IR_PHASE_COUNT
} ir_phase;
const char *opjit_ir_phase_name(ir_phase stage); /* "lower", "fold", "place", ... */

/* What passes are made of: steps.def says what each does. */
typedef enum ir_step {
#define IR_STEP(name, phase, text, what) IR_STEP_##name,
#include "ir/passes/steps.def"
#undef IR_STEP
    IR_STEP_COUNT
} ir_step;
typedef struct ir_step_info {
    const char *name, *what;
    ir_phase leaves; /* of its pass */
} ir_step_info;
extern const ir_step_info opjit_ir_steps[IR_STEP_COUNT];

/* Shared by walks and allocated once, so that a walk takes time in proportion to what it visits. */
typedef struct ir_walks {
    uint32_t *stamp;  /* by node: the last walk that reached it */
    ir_ref *memo;     /* by node: that walk's result */
    uint32_t count;   /* number of nodes that these have room for */
    uint32_t now;     /* number of the newest walk */
    ir_ref *stack;    /* of all walks: each leaves what was below */
    uint32_t depth, capacity;
} ir_walks;
/* A stage of a packed function, and its nodes: [first, end). */
typedef struct ir_section {
    ir_ref stage, first, end;
} ir_section;
/* What forms have powers of: dims dimensions, then count quotients of one each. */
typedef struct ir_space { uint32_t dims, count; opjit_quotient quotients[OPJIT_MAX_POWERS]; } ir_space;
typedef struct ir_func {
    const opjit_allocator *allocator;
    rt_arena arena;         /* owns everything below */
    rt_arena scratch;       /* temporary memory of passes, released stage by stage */
    ir_walks walks;
    const char *name;       /* [A-Za-z0-9_]+ */
    const char *target;     /* canonical text; NULL: none yet */
    ir_phase phase;
    ir_node *nodes;         uint32_t node_count, node_capacity;
    ir_ref *operands;       uint32_t operand_count, operand_capacity;
    ir_tensor *tensors;     uint32_t tensor_count, tensor_capacity; /* [0] unused; inputs, then outputs, then others */
    ir_param *params;       uint32_t param_count, param_capacity;   /* [0] unused */
    uint32_t first_dim;     /* the parameter that is dimension 0 of forms, and others behind it; 0: there are none */
    ir_space space;         /* what forms have powers of */
    ir_ref body;            /* first kernel level statement (DEF, YIELD or STAGE) */
    ir_section *sections;   uint32_t section_count; /* by stage, of a packed function; else none */
    uint64_t shared_size, scratch_size, kept_size; /* bytes; set by opjit_ir_layout */
    uint32_t packed;        /* nodes that it had when it was packed last; 0: it never was */
    struct ir_kept_interval *intervals; uint32_t interval_count; /* by node; opjit_ir_keep_intervals; else none */
    uint32_t steps[IR_STEP_COUNT]; /* how often each step of the last pass changed something */
    bool failed;            /* out of memory or too many nodes: builders return 0 from then on; check once at the end */
} ir_func;

/* --- functions and builders (function.c).  Builders accept 0 operands, and return 0 once f->failed --------------- */
opjit_status opjit_ir_init(ir_func *f, const opjit_allocator *allocator, const char *name, opjit_error *error);
void opjit_ir_free(ir_func *f); /* also of zeroed and half-built functions */
/* A deep copy into a fresh *out. */
opjit_status opjit_ir_copy(const ir_func *f, ir_func *out, opjit_error *error);

ir_ref opjit_ir_size(ir_func *f, const ir_size_form *size); /* as an expression of f's dimensions */
uint32_t opjit_ir_tensor(ir_func *f, const ir_tensor *tensor); /* copies *tensor, name and data too; 0: no memory */
uint32_t opjit_ir_param_add(ir_func *f, ir_type type, int64_t lo, int64_t hi, const char *name);
/* The tensor whose bytes `tensor` shows; itself if it is not a view. */
uint32_t opjit_ir_root(const ir_func *f, uint32_t tensor);
/* Elements from the root's first to the first of `tensor`; false: more than int64 holds. */
bool opjit_ir_root_offset(const ir_func *f, uint32_t tensor, int64_t *out);
/* Dense row-major strides for sizes; strides of dimensions of size 1 are 0. */
void opjit_ir_dense_strides(ir_tensor *tensor);
/* Whether the elements fill memory in row-major order; a stride that moves nothing may be any. */
bool opjit_ir_is_dense(const ir_tensor *tensor);
/* The product of the sizes. */
uint64_t opjit_ir_count_elements(const ir_tensor *tensor);

ir_ref opjit_ir_const(ir_func *f, ir_type type, uint64_t bits); /* bits beyond the width are cleared; bool: 0 or 1 */
ir_ref opjit_ir_index(ir_func *f, int64_t value);
ir_ref opjit_ir_param(ir_func *f, uint32_t param);
ir_ref opjit_ir_get(ir_func *f, ir_ref let_or_acc);
ir_ref opjit_ir_load(ir_func *f, uint32_t tensor, const ir_ref *coordinates);
ir_ref opjit_ir_head(ir_func *f, uint32_t tensor, ir_ref element);
/* Any pure op of the table; type is used where the table says T, otherwise derived.  Literal: folds nothing. */
ir_ref opjit_ir_expr(ir_func *f, ir_op op, ir_type type, uint32_t count, const ir_ref *operands);
static inline ir_ref ir_expr1(ir_func *f, ir_op op, ir_type t, ir_ref a) { return opjit_ir_expr(f, op, t, 1, &a); }
static inline ir_ref ir_expr2(ir_func *f, ir_op op, ir_type t, ir_ref a, ir_ref b)
{
    return opjit_ir_expr(f, op, t, 2, (ir_ref[2]){ a, b });
}
static inline ir_ref ir_expr3(ir_func *f, ir_op op, ir_type t, ir_ref a, ir_ref b, ir_ref c)
{
    return opjit_ir_expr(f, op, t, 3, (ir_ref[3]){ a, b, c });
}

/* Statements are created detached; opjit_ir_append links them. */
ir_ref opjit_ir_def(ir_func *f, uint32_t tensor);   /* one VAR per dimension; set the value with opjit_ir_set_value */
ir_ref opjit_ir_yield(ir_func *f, uint32_t tensor); /* unboxed, over the whole tensor; likewise */
/* A DEF whose elements are reductions of `size` values, folded in the order of an accumulator with that many lanes; arg
 * kinds yield the value's number.  Its value is an expression of one more variable, the value's number. */
ir_ref opjit_ir_reduce(ir_func *f, uint32_t tensor, ir_kind kind, uint32_t lanes, uint64_t size);
ir_ref opjit_ir_reduced(const ir_func *f, ir_ref reduce); /* that variable; 0 where the DEF reduces nothing */
/* A DEF that scans: its element at coordinate c of `dimension` is such a reduction, in order, of the first c + 1
 * values; exclusive: of the first c.  Its value reads that variable and not the coordinate, so one pass over the
 * dimension computes all. */
ir_ref opjit_ir_scan(ir_func *f, uint32_t tensor, ir_kind kind, uint32_t dimension, bool exclusive);
int32_t opjit_ir_scanned(const ir_func *f, ir_ref def); /* the dimension that a DEF scans; -1: none */
/* A DEF whose elements reduce, in order, as many values as an index over its coordinates says, which may come from
 * data: one that is provably 0 or more and has a greatest value.  Set it with opjit_ir_set_count. */
ir_ref opjit_ir_reduce_counted(ir_func *f, uint32_t tensor, ir_kind kind);
void opjit_ir_set_count(ir_func *f, ir_ref reduce, ir_ref count);
bool opjit_ir_is_counted(const ir_func *f, ir_ref def);
/* A recurrence (recurrence.c): the definitions from a state to the one that feeds it.  They are made step by step, a
 * step being a value of their first coordinate.  In the first step a state is its own value, in any other it is what
 * its feeder was in the step before. */
void opjit_ir_feed(ir_func *f, ir_ref feeder, ir_ref state);
/* Whether the tensor is a state or feeds one: a value of it is needed, whether anything reads it or not. */
static inline bool ir_is_of_recurrence(const ir_tensor *t) { return t->feeds != 0 || t->fed_by != 0; }
/* The last item of the recurrence that begins with the item `first`; 0: none begins there. */
ir_ref opjit_ir_recurrence_last(const ir_func *f, ir_ref first);
/* A yield of a box: per dimension an offset (index), a size and a step (constants); the variables count from 0 to the
 * size. */
ir_ref opjit_ir_yield_box(ir_func *f, uint32_t tensor, const ir_ref *box);
/* A SCATTER of `size` updates (scatter.c): a DEF whose elements begin as an initial value each, and which updates then
 * change one after the other, ascending.  An update says where by one index per dimension; one whose place lies outside
 * changes nothing.  Kind NONE: the update's value replaces the element; else the element becomes op(element, value).
 * In a dimension whose place is its own coordinate, updates of different coordinates are independent; value and places
 * are expressions of these coordinates and of the update's number, the initial value one of all coordinates. */
ir_ref opjit_ir_scatter(ir_func *f, uint32_t tensor, ir_kind kind, uint64_t size);
ir_ref opjit_ir_update(const ir_func *f, ir_ref scatter); /* the variable that is an update's number */
/* A value's place starts as its own coordinate. */
void opjit_ir_set_place(ir_func *f, ir_ref scatter, uint32_t dimension, ir_ref place);
void opjit_ir_set_initial(ir_func *f, ir_ref scatter, ir_ref value);
ir_ref opjit_ir_place(const ir_func *f, ir_ref scatter, uint32_t dimension);
ir_ref opjit_ir_initial(const ir_func *f, ir_ref scatter);
bool opjit_ir_is_own(const ir_func *f, ir_ref scatter, uint32_t dimension); /* the place is its own coordinate */
int64_t opjit_ir_updates(const ir_func *f, ir_ref scatter);                 /* their number */
ir_ref opjit_ir_coordinate(const ir_func *f, ir_ref def_or_yield, uint32_t dimension); /* its VAR */
void opjit_ir_set_value(ir_func *f, ir_ref def_or_yield, ir_ref value);
ir_ref opjit_ir_stage(ir_func *f, ir_ref lo, ir_ref hi, uint64_t grain);       /* makes its VAR (node.ref) */
ir_ref opjit_ir_for(ir_func *f, ir_ref lo, ir_ref hi, uint64_t step);          /* likewise */
ir_ref opjit_ir_let(ir_func *f, ir_ref value);
ir_ref opjit_ir_acc(ir_func *f, ir_type type, ir_kind kind, uint32_t lanes);
ir_ref opjit_ir_upd(ir_func *f, ir_ref acc, ir_ref value, ir_ref at);          /* at: 0 except for arg kinds */
ir_ref opjit_ir_store(ir_func *f, uint32_t tensor, ir_ref value, const ir_ref *coordinates);
ir_ref opjit_ir_sync(ir_func *f);
/* Appends statement to the block of parent (STAGE or FOR), or to the kernel's list if parent is 0.  *tail is the last
 * statement of that block, 0 if it is empty, and is updated: appending is O(1) amortised. */
void opjit_ir_append(ir_func *f, ir_ref parent, ir_ref *tail, ir_ref statement);

static inline const ir_node *ir_at(const ir_func *f, ir_ref r) { return &f->nodes[r]; }
/* Whether the statement makes a tensor of role VALUE. */
static inline bool ir_is_definition(const ir_func *f, ir_ref r)
{
    return f->nodes[r].op == IR_DEF || f->nodes[r].op == IR_SCATTER;
}
/* Whether n->ref is a node: a loop's variable, or what a get or an update is of. */
static inline bool ir_names_node(const ir_node *n)
{
    return n->op == IR_VAR || n->op == IR_GET || n->op == IR_UPD || n->op == IR_FOR || n->op == IR_STAGE;
}
static inline ir_ref ir_operand(const ir_func *f, ir_ref r, uint32_t i) { return f->operands[f->nodes[r].first + i]; }
static inline bool ir_is_index_const(const ir_func *f, ir_ref r)
{
    return f->nodes[r].op == IR_CONST && f->nodes[r].type == IR_INDEX;
}
static inline int64_t ir_index_value(const ir_func *f, ir_ref r) { return (int64_t)f->nodes[r].imm; }
static inline bool ir_is_index_0(const ir_func *f, ir_ref r)
{
    return ir_is_index_const(f, r) && ir_index_value(f, r) == 0;
}
/* Whether two expressions have the same value by structure: equal trees, or the same node. */
bool opjit_ir_same(const ir_func *f, ir_ref a, ir_ref b);
bool opjit_ir_uses(const ir_func *f, ir_ref expr, ir_ref var_or_let); /* whether expr reads it, through operands */
/* Whether an index is an expression of constants and parameters alone, which has one value in a call. */
bool opjit_ir_is_size(const ir_func *f, ir_ref index_expr);

/* A map from 64-bit keys to numbers above 0 (table.c); zeroed: empty.  In the function's scratch memory. */
typedef struct ir_table {
    uint64_t *keys;
    uint32_t *values, count, capacity;
} ir_table;
uint32_t opjit_ir_table_get(const ir_table *t, uint64_t key); /* 0: none */
void opjit_ir_table_set(ir_func *f, ir_table *t, uint64_t key, uint32_t value);
uint64_t opjit_ir_hash(uint64_t hash, uint64_t value);

/* --- scalar semantics (eval/scalar.c): the only definition of what an op does to values ------------------------- */
/* out = op(args) on bits as in CONST; type: the result's, from: operand 0's.  false: not an op on values. */
bool opjit_ir_scalar(ir_op op, ir_type type, ir_type from, const uint64_t *args, uint64_t *out);
uint64_t opjit_ir_convert(ir_type from, ir_type to, uint64_t bits); /* CAST */
uint64_t opjit_ir_element_of(ir_type to, int64_t index);            /* ELEM */
uint16_t opjit_ir_f32_to_f16(float x);
uint16_t opjit_ir_f64_to_f16(double x);
float opjit_ir_f16_to_f32(uint16_t x);
/* Accumulator semantics: identity, one step, and the fold of two lanes or blocks. */
uint64_t opjit_ir_identity(ir_type type, ir_kind kind);

/* --- simplification (simplify.c): what fold does to one node, for passes that build new nodes -------------------- */
/* As opjit_ir_expr, with constants folded, bool algebra, index identities and comparisons decided by interval. */
ir_ref opjit_ir_make(ir_func *f, ir_op op, ir_type type, uint32_t count, const ir_ref *operands);
static inline ir_ref ir_make1(ir_func *f, ir_op op, ir_type t, ir_ref a) { return opjit_ir_make(f, op, t, 1, &a); }
static inline ir_ref ir_make2(ir_func *f, ir_op op, ir_type t, ir_ref a, ir_ref b)
{
    return opjit_ir_make(f, op, t, 2, (ir_ref[2]){ a, b });
}
static inline ir_ref ir_make3(ir_func *f, ir_op op, ir_type t, ir_ref a, ir_ref b, ir_ref c)
{
    return opjit_ir_make(f, op, t, 3, (ir_ref[3]){ a, b, c });
}

/* --- text (ir/text) ------------------------------------------------------------------------------- */
/* Appends the canonical text: print(parse(t)) == t for canonical t, and every bit of every constant survives. */
void opjit_ir_print(const ir_func *f, rt_bytes *out);
/* Parses text (length bytes, need not end with NUL) into a fresh *out.  Any input is safe; messages begin with "line N:
 * ".  Checks syntax and types only. */
opjit_status opjit_ir_parse(const char *text, size_t length, const opjit_allocator *allocator, ir_func *out,
                            opjit_error *error);

/* --- verifier (verify.c) --------------------------------------------------------------------------------------- */
/* Checks rules V1 ... V22 as far as they apply to f->phase; messages begin with the rule's number, "V3 %4 load: ...".
 * INTERNAL: a rule is broken; LIMIT: a rule needs a proof, and none was found. */
opjit_status opjit_ir_verify(const ir_func *f, opjit_error *error);
/* The same, but counts the proofs (V6 to V8, V12, V15) that fail: statements, loops, tensors, stages. */
opjit_status opjit_ir_count_unproven(const ir_func *f, uint32_t *out, opjit_error *error);

/* --- passes (ir/passes) --------------------------------------------------------------------------------------- */
/* How a product of matrices is cut: rows and columns of what is in registers, and of what an iteration makes. */
typedef struct ir_tiles {
    uint32_t rows, columns, block_rows, block_columns;
    uint32_t few_rows; /* of the result, up to which columns that lie side by side are read in order */
    uint32_t together; /* blocks of k of few rows whose columns lie apart; 0: those are tiles */
    uint32_t across;   /* k in a round of tiles of such columns, as they lie; 0: they are copied */
    uint32_t split;    /* 1: of columns that are read in order, blocks of k are iterations of a stage before */
    uint32_t share;    /* 1: columns are copied once for all blocks of rows */
    /* 1: of windows, the rows are a vector's lanes, `columns` of them, and positions a tile's `rows` */
    uint32_t by_rows;
} ir_tiles;

/* Sizes of tensors that differ from sample to sample. */
typedef struct ir_varying {
    uint64_t size, unit;      /* in this sample; what it is a multiple of in all of them */
    uint64_t usual;           /* for the typical sizes of dimensions: blocks may follow from it */
    uint64_t most;            /* what it is at most, about, in the range that is looked at: a power of two, down */
    uint32_t rank, dimension; /* of tensors of this rank */
} ir_varying;
typedef struct ir_sizes {
    const ir_varying *list;
    uint32_t count;
} ir_sizes;

typedef struct ir_pass_env {
    const rt_target *target;
    const ir_tiles *tiles;  /* tests: all products of matrices, cut like this; NULL: as suits the target */
    bool verify;            /* verify before the first and after every pass (debug builds, tests, OPJIT_VERIFY=1) */
    bool masks_absorb;
    bool calls_math;        /* mathematical functions stay ops: code generation calls functions for them */
    bool once;              /* what depends on constants alone is made once, and kept with the kernel (CPUs) */
    bool general;           /* sizes are samples of many (ir/general): no size of a block follows from them */
    bool low_tiles;         /* and the last rows of products may have lower tiles, though more kinds of loops */
    ir_sizes varying;       /* those that differ from sample to sample, as they are in this one */
    const atomic_bool *cancel; /* set by another thread: CANCELLED before the next pass; NULL: nobody may */
    /* Called after lowering and each pass with the pass's name; NULL: nothing. */
    void (*trace)(void *user, const char *pass, const ir_func *f);
    void *user;
} ir_pass_env;

typedef struct ir_pass {
    const char *name;
    ir_phase leaves;   /* f->phase after it */
    /* A pure function of (f, env), and idempotent.  f->failed afterwards: there was no memory. */
    opjit_status (*run)(ir_func *f, const ir_pass_env *env, opjit_error *error);
} ir_pass;
/* fold, place, collapse, split, cleanup, schedule, expand, grid; ends with a NULL name */
extern const ir_pass opjit_ir_passes[];

/* Runs every pass that leaves a later phase than f->phase, up to the one that leaves `last`, inclusive. */
opjit_status opjit_ir_run_passes(ir_func *f, const ir_pass_env *env, ir_phase last, opjit_error *error);
/* What the target's last pass leaves: pass grid is for GPUs. */
static inline ir_phase opjit_ir_last_pass(const rt_target *t)
{
    return rt_target_team(t) > 0 ? IR_GRIDDED : IR_EXPANDED;
}
/* Packs a function for those that run or read its stages: puts the nodes of each stage side by side, drops all others,
 * fills f->sections.  The text does not change.  After the last pass. */
opjit_status opjit_ir_pack(ir_func *f, opjit_error *error);
/* Frees what only passes and walks need. */
void opjit_ir_trim(ir_func *f);
/* Places temps in shared, kept tensors in kept and scratch tensors in scratch memory: offsets and f->shared_size,
 * f->kept_size, f->scratch_size. */
opjit_status opjit_ir_layout(ir_func *f, opjit_error *error);
/* Stages that run once: they are the first ones (passes/once.c). */
uint32_t opjit_ir_once_count(const ir_func *f);
/* Appends what they do, and where what they store is kept, as bytes: functions with equal ones can use the same kept
 * memory.  After opjit_ir_layout. */
void opjit_ir_spell_once(ir_func *f, rt_bytes *out);
/* Of a packed function that has some: a copy with these stages alone, for the same memory; the function without them,
 * whose kept tensors are then stored by nobody. */
opjit_status opjit_ir_take_once(const ir_func *f, ir_func *out, opjit_error *error);
void opjit_ir_remove_once(ir_func *f);
/* Makes them stages of each call.  Before opjit_ir_layout. */
void opjit_ir_drop_once(ir_func *f);

/* How a stage is launched after pass grid.  Its iterations loop over the teams of the grid. */
typedef struct ir_launch {
    uint32_t team;    /* threads that execute one iteration together: 1, a warp, or a block */
    uint32_t block;   /* threads per block: whole teams */
    uint64_t grid;    /* blocks */
    uint32_t shared;  /* bytes of shared memory per block: scratch, at team_scratch times the number of each team */
    uint64_t scratch; /* bytes of scratch in the workspace after the temps, likewise per team of the grid; or 0 */
    uint64_t team_scratch;
    uint32_t folds;   /* last bytes of the shared memory, where the warps of a larger team leave their folds */
} ir_launch;
/* After opjit_ir_layout. */
void opjit_ir_launch_of(const ir_func *f, ir_ref stage, ir_launch *out);
/* Bytes of workspace for a call of all stages: temps, and the scratch of any stage. */
uint64_t opjit_ir_grid_workspace(const ir_func *f);

/* --- in place (alias.c) ----------------------------------------------------------------------------------------- */
typedef enum ir_in_place {
    IR_IN_PLACE_NEVER,  /* not proven */
    IR_IN_PLACE_MARKED, /* not with this schedule, but possible if alias or shared told the passes */
    IR_IN_PLACE
} ir_in_place;
/* What the stages of f (loop form) read from inputs and store to outputs.  NULL: no memory. */
typedef struct ir_accesses ir_accesses;
ir_accesses *opjit_ir_accesses_create(const ir_func *f);
void opjit_ir_accesses_destroy(ir_accesses *a);
/* Whether output `out` may share the memory of input `in`, which had the same layout when f was lowered. */
ir_in_place opjit_ir_in_place(const ir_accesses *a, uint32_t out, uint32_t in);
/* Whether some store writes an element of the input, unchanged, to its own place. */
bool opjit_ir_stores_itself(const ir_accesses *a, uint32_t out, uint32_t in);
/* Whether input `in` shares, or may share, the memory of output `out`, according to alias and shared. */
bool opjit_ir_shares(const ir_func *f, uint32_t out, uint32_t in);
/* Whether the elements lie at the same places; memory after the last one does not matter. */
bool opjit_ir_same_layout(const ir_tensor *a, const ir_tensor *b);

/* --- interpreter (interpreter.c) ---------------------------------------------------------------------------------- */
typedef struct ir_run {
    void *const *buffers;       /* by tensor slot */
    const uint64_t *params;     /* by parameter, params[0] is the first; as abi.h */
    void *shared, *scratch;     /* loop form: of the sizes in f */
    uint32_t stage;             /* loop form: the index of the stage, in order of appearance */
    uint64_t begin, end;        /* loop form: its iterations */
} ir_run;
/* Runs one stage (loop form) or everything (value form).  Scalar, literal, bit-exact: the oracle.  After pass grid it
 * simulates a grid and reports an error where two threads access a byte in a way that needs a sync between them
 * (race.c). */
opjit_status opjit_ir_interpret(const ir_func *f, const ir_run *run, opjit_error *error);
/* Value form: how many elements, updates and terms of reductions that takes, at most (analysis/work.c). */
uint64_t opjit_ir_work(const ir_func *f);
#endif
