/* SPDX-License-Identifier: Apache-2.0 */
/* ptx_internal.h - shared by the parts of the PTX interpreter: decoded instructions, the module, a running block.
 * Every operand is a slot: a row of 32 values in a warp's register file.  Immediates, special registers and addresses
 * of variables have slots, too, filled before a warp starts, so that an instruction only reads and writes rows.
 * Functions do not recurse (the parser checks), so each has its rows once per warp, and call frames are not needed. */
#ifndef OPJIT_TEST_MACHINES_PTX_INTERNAL_H
#define OPJIT_TEST_MACHINES_PTX_INTERNAL_H

#include "runtime/base/base.h"
#include "tests/machines/ptx.h"

enum { LANES = 32, MOST_VECTOR = 8, MOST_SOURCES = 8, BARRIERS = 16, MOST_BLOCK = 1024 };

/* --- types ------------------------------------------------------------------------------------------------------- */
typedef enum ptx_type {
    T_NONE,
    T_PRED,
    T_B8,
    T_B16,
    T_B32,
    T_B64,
    T_B128,
    T_U8,
    T_U16,
    T_U32,
    T_U64,
    T_S8,
    T_S16,
    T_S32,
    T_S64,
    T_F16,
    T_F32,
    T_F64,
    T_F16X2,
    T_F32X2,
    T_U16X2,
    T_S16X2,
    T_COUNT
} ptx_type;
typedef struct ptx_type_info {
    const char *name;
    uint8_t size; /* bytes; predicates 0 */
    char kind;    /* p predicate, b bits, u unsigned, s signed, f float, x packed */
} ptx_type_info;
extern const ptx_type_info ptx_types[T_COUNT];

/* --- instructions ------------------------------------------------------------------------------------------------ */
typedef enum ptx_op {
    OP_ADD,
    OP_SUB,
    OP_ADDC,
    OP_SUBC,
    OP_MUL,
    OP_MAD,
    OP_DIV,
    OP_REM,
    OP_MIN,
    OP_MAX,
    OP_NEG,
    OP_ABS,
    OP_FMA,
    OP_SQRT,
    OP_RCP,
    OP_COPYSIGN,
    OP_TESTP,
    OP_AND,
    OP_OR,
    OP_XOR,
    OP_NOT,
    OP_SHL,
    OP_SHR,
    OP_SHF,
    OP_POPC,
    OP_CLZ,
    OP_BREV,
    OP_BFE,
    OP_BFI,
    OP_PRMT,
    OP_LOP3,
    OP_SETP,
    OP_SET,
    OP_SELP,
    OP_SLCT,
    OP_CVT,
    OP_CVTA,
    OP_MOV,
    OP_PACK,
    OP_UNPACK,
    OP_LD,
    OP_ST,
    OP_NOTHING,
    OP_BRA,
    OP_BRX,
    OP_CALL,
    OP_RET,
    OP_EXIT,
    OP_TRAP,
    OP_ACTIVEMASK,
    OP_SHFL,
    OP_VOTE,
    OP_REDUX,
    OP_WARPSYNC,
    OP_BAR,
    OP_COUNT
} ptx_op;

typedef enum ptx_space { SPACE_GENERIC, SPACE_GLOBAL, SPACE_SHARED, SPACE_LOCAL, SPACE_CONST, SPACE_PARAM } ptx_space;

enum { /* ptx_ins.flags */
       F_RN = 1 << 0,
       F_RZ = 1 << 1,
       F_RM = 1 << 2,
       F_RP = 1 << 3,
       F_RNI = 1 << 4,
       F_RZI = 1 << 5,
       F_RMI = 1 << 6,
       F_RPI = 1 << 7,
       F_SAT = 1 << 8,
       F_LO = 1 << 9,
       F_HI = 1 << 10,
       F_WIDE = 1 << 11,
       F_NAN = 1 << 12,
       F_UNI = 1 << 13,
       F_CC = 1 << 14,
       F_LEFT = 1 << 15,
       F_RIGHT = 1 << 16,
       F_CLAMP = 1 << 17,
       F_WRAP = 1 << 18,
       F_NC = 1 << 19,
       F_TO = 1 << 20,
       F_ALIGNED = 1 << 21,
       F_ROUND = F_RN | F_RZ | F_RM | F_RP,
       F_INTEGRAL = F_RNI | F_RZI | F_RMI | F_RPI
};

typedef enum ptx_compare {
    C_EQ,
    C_NE,
    C_LT,
    C_LE,
    C_GT,
    C_GE,
    C_LO,
    C_LS,
    C_HI,
    C_HS,
    C_EQU,
    C_NEU,
    C_LTU,
    C_LEU,
    C_GTU,
    C_GEU,
    C_NUM,
    C_NAN,
    C_COUNT
} ptx_compare;
typedef enum ptx_sub { /* ptx_ins.sub, by operation */
                       SUB_NONE,
                       SUB_UP,
                       SUB_DOWN,
                       SUB_BFLY,
                       SUB_IDX, /* shfl */
                       SUB_ALL,
                       SUB_ANY,
                       SUB_VOTE_UNI,
                       SUB_BALLOT, /* vote */
                       SUB_SYNC,
                       SUB_ARRIVE,
                       SUB_POPC, /* bar; SUB_AND and SUB_OR too */
                       SUB_FINITE,
                       SUB_INFINITE,
                       SUB_NUMBER,
                       SUB_NOTANUMBER,
                       SUB_NORMAL,
                       SUB_SUBNORMAL, /* testp */
                       SUB_ADD,
                       SUB_MIN,
                       SUB_MAX,
                       SUB_AND,
                       SUB_OR,
                       SUB_XOR /* redux; the last three: setp with a predicate */
} ptx_sub;

#define NO_SLOT UINT32_MAX
typedef struct ptx_ins {
    uint8_t op, type, type2; /* type2: of cvt's and slct's source, set's operands */
    uint8_t compare, sub, space, vector;
    uint8_t dest_size; /* bytes of the destination register */
    uint8_t dest_count, source_count;
    bool guard_not;
    uint32_t flags;
    uint32_t guard; /* slot, or NO_SLOT */
    uint32_t line, column, function;
    uint32_t dest[MOST_VECTOR], source[MOST_SOURCES];
    uint32_t target; /* instruction of bra; call's or table's number */
    int64_t offset;  /* ld, st: added to the address in source[0] */
} ptx_ins;

/* What a slot is filled with before a warp starts. */
typedef enum ptx_fill {
    FILL_NOTHING,
    FILL_VALUE,
    FILL_GLOBAL,
    FILL_LOCAL,
    FILL_CALL_PARAM,
    FILL_OWN_SHARED,
    FILL_DYNAMIC_SHARED,
    FILL_TID,
    FILL_NTID,
    FILL_CTAID,
    FILL_NCTAID,
    FILL_LANEID,
    FILL_WARPID,
    FILL_NWARPID,
    FILL_LANEMASK,
    FILL_DYNAMIC_BYTES
} ptx_fill;
typedef struct ptx_slot {
    uint8_t fill, which; /* which: x, y, z; or eq, le, lt, ge, gt */
    uint8_t size;        /* bytes; 0: predicate */
    uint64_t value;      /* or an offset */
} ptx_slot;

typedef struct ptx_param {
    uint32_t offset, bytes;
} ptx_param;
typedef struct ptx_call {
    uint32_t function, count;
    uint32_t *from;
    uint32_t result;
} ptx_call; /* offsets; result NO_SLOT: none */
typedef struct ptx_table {
    uint32_t count, capacity;
    uint32_t *targets;
} ptx_table;

typedef struct ptx_function {
    char *name;
    bool entry, defined;
    uint32_t first, end; /* instructions */
    ptx_slot *slots;     /* slot 0 takes what nobody reads, slot 1 is the carry */
    uint32_t slot_count, slot_capacity;
    ptx_param *params;
    uint32_t *param_bytes;
    uint32_t param_count, param_capacity;
    uint32_t entry_bytes; /* parameters of an entry, the same for all threads */
    uint32_t frame_bytes; /* each thread's: parameters of a function, and what it or an entry passes on */
    uint32_t result_offset, result_bytes; /* of a function */
    uint32_t local_bytes, shared_bytes;   /* own variables */
    uint32_t reqntid[3], maxntid;
    uint32_t *calls; /* functions called */
    uint32_t call_count, call_capacity;
    uint32_t line;
} ptx_function;
enum { SLOT_SINK, SLOT_CARRY, SLOT_FIRST };

typedef struct ptx_variable {
    char *name;
    ptx_space space;
    bool dynamic;           /* .extern .shared x[] */
    uint64_t offset, bytes; /* global: in globals; const: in constants; shared: from 0 */
} ptx_variable;

struct ptx_module {
    char **lines; /* for messages */
    uint32_t line_count;
    ptx_ins *code;
    uint32_t code_count, code_capacity;
    ptx_function *functions;
    uint32_t function_count, function_capacity;
    ptx_variable *variables;
    uint32_t variable_count, variable_capacity;
    ptx_call *calls;
    uint32_t call_count, call_capacity;
    ptx_table *tables;
    uint32_t table_count, table_capacity;
    uint8_t *globals, *constants; /* globals: 256-byte aligned, their address is the device's */
    uint64_t global_bytes, constant_bytes;
    uint32_t shared_bytes; /* of variables outside of functions */
};

/* --- memory ------------------------------------------------------------------------------------------------------ */
/* Windows in generic addresses.  No host address looks like these. */
#define WINDOW_SHARED 0x5a00000000000000u
#define WINDOW_LOCAL 0x5b00000000000000u
#define WINDOW_CONST 0x5c00000000000000u
#define WINDOW_PARAM 0x5d00000000000000u
#define WINDOW_MASK 0xff00000000000000u
#define CALL_PARAMS 0x100000u /* in the parameter space: entry parameters below, those of calls from here */

typedef struct ptx_trace ptx_trace; /* of a byte, for races */
typedef struct ptx_range {
    uint64_t address, bytes;
    uint8_t *host;
    ptx_trace *traces; /* during a launch that finds races */
    bool writable;
    char name[48];
} ptx_range;
struct ptx_memory {
    ptx_range *ranges;
    uint32_t count, capacity;
};

/* --- a running block --------------------------------------------------------------------------------------------- */
typedef struct ptx_warp {
    uint64_t *regs;          /* rows of LANES */
    uint8_t *local, *frames; /* of each lane, one after the other */
    uint32_t *returns;       /* pc to go back to, by function and lane */
    uint32_t number;
    uint32_t alive, waiting, at_barrier;      /* lanes; at_barrier are among waiting */
    uint32_t members;                         /* lanes that there are */
    uint32_t pc[LANES], mask[LANES];          /* mask: that a waiting lane named */
    uint32_t barrier[LANES], expected[LANES]; /* of lanes at a barrier; expected 0: all */
    uint32_t epoch;
} ptx_warp;

typedef struct ptx_runner {
    const ptx_module *module;
    const ptx_function *entry;
    const ptx_launch *launch;
    ptx_memory *memory;
    ptx_stats stats;
    ptx_error *error;
    uint32_t *slot_base, *frame_base, *local_base, *shared_base; /* by function; NO_SLOT: not reached */
    uint32_t slot_count, frame_bytes, local_bytes, shared_bytes, dynamic_offset;
    uint8_t *params;
    ptx_warp *warps;
    uint32_t warp_count, threads;
    uint8_t *shared;
    ptx_trace *shared_traces;
    uint32_t block[3], block_number, epoch;
    uint32_t arrived[BARRIERS]; /* threads that bar.arrive counted */
    uint64_t steps_left;
    uint32_t last_range;
    ptx_range globals; /* the module's variables */
} ptx_runner;

#define FOR_LANES(lane, mask)                     \
    for (uint32_t lane = 0; lane < LANES; lane++) \
        if (((mask) >> lane & 1) != 0)

/* --- parts ------------------------------------------------------------------------------------------------------- */
/* ptx_module.c */
const ptx_function *ptx_entry_function(const ptx_module *module, uint32_t entry); /* NULL: no such entry */

/* ptx_memory.c: an access of mask's lanes.  False: *runner->error is set. */
bool ptx_access(ptx_runner *r, ptx_warp *w, const ptx_ins *ins, uint32_t base, uint32_t mask);
bool ptx_convert_address(ptx_runner *r, ptx_warp *w, const ptx_ins *ins, uint32_t base, uint32_t mask);
bool ptx_traces_begin(ptx_runner *r); /* false: no memory */
void ptx_traces_end(ptx_runner *r);
void ptx_traces_of_shared_clear(ptx_runner *r);

/* ptx_exec.c: what neither moves memory nor control.  ptx_float.c: its floats and conversions. */
bool ptx_compute(ptx_runner *r, ptx_warp *w, const ptx_ins *ins, uint32_t base, uint32_t mask);
bool ptx_compute_rows(const ptx_ins *ins, uint64_t *rows); /* ptx_rows.c; false: not an instruction that it knows */
uint64_t ptx_cvt(const ptx_ins *ins, uint64_t x);
uint64_t ptx_float2(const ptx_ins *ins, ptx_type type, uint64_t a, uint64_t b); /* add, sub, mul, div, min, max */
uint64_t ptx_float_fma(ptx_type type, uint64_t a, uint64_t b, uint64_t c);
uint64_t ptx_float1(const ptx_ins *ins, ptx_type type, uint64_t a); /* sqrt, rcp, neg, abs */
bool ptx_float_compare(ptx_compare compare, ptx_type type, uint64_t a, uint64_t b);
bool ptx_float_is(ptx_sub sub, ptx_type type, uint64_t a);
double ptx_half_to_double(uint16_t half);
uint16_t ptx_double_to_half(double x, uint32_t round); /* F_RN ... F_RP */

/* ptx_sync.c: the lanes of mask arrive at ins; releases waiting lanes that have all they wait for, and barriers at
 * which all have arrived. */
bool ptx_arrive(ptx_runner *r, ptx_warp *w, const ptx_ins *ins, uint32_t base, uint32_t mask);
bool ptx_settle(ptx_runner *r, ptx_warp *w);
bool ptx_release(ptx_runner *r); /* false: deadlock */

/* ptx_run.c: sets *r->error at ins and lane (LANES: no thread) and returns false. */
bool ptx_fault(ptx_runner *r, const ptx_warp *w, const ptx_ins *ins, uint32_t lane, const char *format, ...)
    PRINTF_LIKE(5, 6);

#endif
