/* SPDX-License-Identifier: Apache-2.0 */
/* direct.h - a module of LLVM's as x86-64's code, without LLVM's backend.  A function is read once into a list of
 * operations on virtual registers (read.c, select_*.c), each of these gets a register or a place on the stack for all
 * of its life (live.c, registers.c), and the operations become bytes (write*.c).  What is not known is LLVM's: the
 * whole module is refused before anything of it is used. */
#ifndef OPJIT_CODEGEN_DIRECT_H
#define OPJIT_CODEGEN_DIRECT_H

#include <llvm-c/Core.h>

#include "codegen/direct/module.h"
#include "codegen/x86/x86_code.h"
#include "runtime/target/target.h"

/* --- operations --------------------------------------------------------------------------------------------------- */
typedef uint32_t dx_reg; /* a virtual register; 0: none */

typedef enum dx_class { DX_INT, DX_VEC, DX_MASK, DX_CLASSES } dx_class;

/* Where an address begins. */
typedef enum dx_where { DX_AT_REGISTER, DX_AT_FRAME, DX_AT_DATA, DX_AT_FUNCTION } dx_where;

/* base + (index << shift) + offset; AT_FRAME: from the stack's variables on; AT_DATA: from the module's constants. */
typedef struct dx_mem {
    uint8_t where, shift;
    dx_reg base, index;
    int64_t offset;
} dx_mem;

typedef enum dx_kind {
    DX_NOTHING,
    DX_VECTOR,   /* form: dst, a, b or mem, mask, imm */
    DX_PUT,      /* form: a to mem, mask */
    DX_COPY,     /* dst = a */
    DX_NUMBER,   /* dst = imm */
    DX_LEA,      /* dst = address mem */
    DX_LOAD,     /* dst = integer of `bytes` at mem, its upper bits 0 */
    DX_STORE,    /* integer a, or imm if there is none, of `bytes` */
    DX_ARITH,    /* dst = dst `code` b, mem or imm */
    DX_MULTIPLY, /* dst = b * imm */
    DX_TIMES,    /* dst = dst * b */
    DX_SHIFT,    /* dst = dst shifted by imm; code: the extension of 0xc1 */
    DX_DIVIDE,   /* dst = quotient, or rest if `code` & 2, of b and a; of signed numbers if `code` & 1 */
    DX_SHIFT_BY, /* dst = b shifted by a; code: the prefix of the instruction of BMI2 */
    DX_EXTEND,   /* dst = b of `bytes`, its upper bits 0 or, if `code`, its sign */
    DX_SET,      /* dst = whether a and b or imm compare like cc */
    DX_SELECT,   /* dst = c where they do, else dst */
    DX_BRANCH,   /* to label imm where they do; `c` is the number to compare with, if b is none */
    DX_JUMP,     /* to label imm */
    DX_LABEL,
    DX_MOVES, /* dst = a, with all others of a group at once; fixed: see below */
    DX_CALL,  /* function imm */
    DX_RETURN,
    DX_FETCH, /* a line to the cache; code: the hint */
    DX_FENCE
} dx_kind;

enum { /* of DX_ARITH: code, the opcode */
       DX_ADD = 0x03,
       DX_OR = 0x0b,
       DX_AND = 0x23,
       DX_SUB = 0x2b,
       DX_XOR = 0x33
};

enum {                    /* of a move */
       DX_FROM_FIXED = 1, /* from register imm: a parameter, a result */
       DX_TO_FIXED = 2    /* to register imm: an argument */
};

typedef struct dx_op {
    uint16_t form;
    uint8_t kind, bytes, code, cc, fixed;
    bool tied;              /* dst is read, too */
    bool early;             /* dst is written before all others are read */
    bool zero, splat, last; /* last: of a group of moves */
    bool reloads;           /* registers that it reads are loaded from the stack before (split.c) */
    dx_reg dst, a, b, c, mask;
    uint32_t mem; /* + 1; 0: none */
    int64_t imm;
    uint32_t first, end; /* of a group of moves */
} dx_op;

enum { DX_RESULTS = 4 /* vectors that a function returns at most */ };

/* A virtual register. */
typedef struct dx_virtual {
    uint8_t kind;          /* dx_class */
    bool spilled, crosses; /* it is on the stack; it lives across a call */
    bool fixed_hint;
    uint8_t lane;                     /* bits of a lane of a mask in a vector register; 0: it is none */
    int8_t at;                        /* its register; -1: none */
    uint32_t slot;                    /* its place on the stack, in bytes */
    uint32_t data;                    /* the place in the module's constants that it was loaded from, + 1; 0: none */
    dx_reg copy_of;                   /* what it holds for a while, which is on the stack; 0: none (split.c) */
    dx_reg same;                      /* the one that it has become part of; 0: none */
    uint32_t hint;                    /* a register (fixed_hint) or a virtual one */
    uint32_t start, end;              /* positions: 2 * operation reads, 2 * operation + 1 writes */
    uint32_t least, most;             /* positions that it has to span, too */
    uint32_t *access, accesses, defs; /* positions in order, written ones odd or with `early` even */
    uint64_t weight;
} dx_virtual;

/* Blocks from first to last run again and again. */
typedef struct dx_loop {
    uint32_t first, last;  /* blocks */
    uint32_t start, end;   /* positions */
    uint32_t outer, depth; /* number + 1 */
    bool inner;            /* it has no other loop inside */
} dx_loop;

typedef struct dx_block {
    LLVMBasicBlockRef block;
    uint32_t first, end; /* operations */
    uint32_t loop;       /* the innermost one + 1 */
    uint32_t next[2], nexts;
} dx_block;

/* --- a function --------------------------------------------------------------------------------------------------- */
typedef struct dx_type {
    uint8_t kind;   /* DX_T_... */
    uint8_t bits;   /* of an element */
    uint16_t lanes; /* 0: a scalar */
} dx_type;
enum { DX_T_OTHER, DX_T_INT, DX_T_FLOAT, DX_T_PTR, DX_T_VOID };

typedef enum dx_how { DX_V_NONE, DX_V_REG, DX_V_PLACE, DX_V_SLOT, DX_V_LIST, DX_V_BLOCK, DX_V_CONSTANT } dx_how;

/* What a value of LLVM's is here. */
typedef struct dx_value {
    LLVMValueRef of;
    uint8_t how;
    dx_reg reg, second;   /* reg: of a list, the first one; second: of a condition, the same as a mask */
    LLVMValueRef compare; /* a comparison of integers that its users make themselves */
    dx_mem place;         /* of an address; of a constant: where it lies */
    uint32_t block;
} dx_value;

/* A constant that is in a register. */
typedef struct dx_loaded {
    uint32_t place, bytes, loads, used; /* used: operations before its last use */
    dx_reg reg;
} dx_loaded;

/* Stores of bytes side by side that have not been made: of vectors of 8 numbers of 32 bits, limited to bytes. */
typedef struct dx_put_off {
    dx_reg regs[4];
    uint32_t count;
    bool is_signed;
    dx_mem at; /* of the first one */
} dx_put_off;

typedef struct dx_func {
    dx_module *m;
    const rt_target *target;
    rt_arena *arena;
    bool refused; /* something is unknown, or there is no memory */
    const char *why;
    bool wide;      /* AVX-512 */
    uint32_t bytes; /* of the widest vector */
    LLVMValueRef fn;
    dx_value *values;      /* in the order of their entry, from 1 on */
    uint32_t *value_at;    /* a table by hash of their numbers; 0: none */
    uint32_t value_room, value_count, value_slots;
    dx_block *blocks;
    uint32_t block_count, block; /* block: the one that is read */
    dx_loop *loops;
    uint32_t loop_count;
    dx_op *ops;
    uint32_t op_count, op_room;
    dx_mem *mems;
    uint32_t mem_count, mem_room;
    dx_virtual *regs;
    uint32_t reg_count, reg_room;
    uint32_t label_count;
    uint32_t frame;                 /* bytes of the stack */
    bool calls, vectors;            /* vectors of more than 16 bytes */
    uint32_t slots[64], slot_count; /* variables of the stack that are registers */
    dx_loaded loaded[64];           /* constants of `loads`, by their places; those before may not have been loaded */
    uint32_t loads;
    dx_reg zero; /* since zero_loads */
    uint32_t zero_loads;
    dx_put_off put_off;
    LLVMTypeRef types[64]; /* by address */
    dx_type type_of[64];
    dx_op no_op; /* what is written to after a failure */
    dx_value no_value;
} dx_func;

/* function.c */
void opjit_dx_refuse(dx_func *f, const char *why);
dx_type opjit_dx_type(dx_func *f, LLVMTypeRef type);
static inline uint32_t dx_bytes(dx_type t)
{
    return (t.lanes ? t.lanes : 1u) * t.bits / 8;
}
dx_value *opjit_dx_find(dx_func *f, LLVMValueRef v); /* NULL: not yet */
bool opjit_dx_is_constant(dx_func *f, LLVMValueRef v); /* also one that is loaded */
dx_value *opjit_dx_enter(dx_func *f, LLVMValueRef v);
dx_reg opjit_dx_new(dx_func *f, dx_class kind);
dx_op *opjit_dx_op(dx_func *f, dx_kind kind); /* always one: of no use if the function is refused */
uint32_t opjit_dx_mem(dx_func *f, dx_mem mem);
uint32_t opjit_dx_block_of(dx_func *f, LLVMBasicBlockRef block);
void opjit_dx_read(dx_func *f); /* read.c */

/* operands.c */
dx_class opjit_dx_class(dx_func *f, dx_type t);
dx_reg opjit_dx_use(dx_func *f, LLVMValueRef v); /* in a register, whatever it is */
dx_reg opjit_dx_number(dx_func *f, int64_t value);
dx_reg opjit_dx_result(dx_func *f, LLVMValueRef v);               /* a new register for an instruction's result */
bool opjit_dx_constant(dx_func *f, LLVMValueRef v, int64_t *out); /* an integer, or the same in all lanes */
/* The operands of an instruction.  Where either order gives the same, a constant is the last one, which may lie in
 * memory. */
void opjit_dx_operands(dx_func *f, LLVMValueRef v, bool either, dx_reg *a, dx_reg *b);
dx_mem opjit_dx_place(dx_func *f, LLVMValueRef pointer);
dx_reg opjit_dx_mask(dx_func *f, LLVMValueRef v); /* a vector of i1, or an i1, as a mask */
void opjit_dx_name(dx_func *f, LLVMValueRef v, dx_reg reg); /* an instruction's result is in a register that there is */
void opjit_dx_copy(dx_func *f, dx_reg to, dx_reg from);
/* dst = a, and an operation of so many bytes on it, whose other operand and code are set in what is returned. */
dx_op *opjit_dx_two_address(dx_func *f, dx_kind kind, dx_reg dst, dx_reg a, uint32_t bytes);
void opjit_dx_lowest_bit(dx_func *f, dx_reg dst, dx_reg a);   /* dst = a & 1 */
void opjit_dx_bit_as_all(dx_func *f, dx_reg dst, dx_reg bit); /* dst = -bit: no bits, or all */
dx_reg opjit_dx_condition_as_all(dx_func *f, LLVMValueRef c); /* that of a condition */
/* What follows does not always follow what was before: constants are loaded again. */
static inline void dx_forget_constants(dx_func *f)
{
    f->loads++;
}
bool opjit_dx_used_once(LLVMValueRef v); /* so its register may be overwritten there */
void opjit_dx_gep(dx_func *f, LLVMValueRef v);

/* forms.c: instructions on vectors */
enum {
    DX_W = 1,
    DX_AVX_W = 2,
    DX_ONLY_512 = 4,
    DX_IMM = 8,
    DX_NO_UNIT = 16,
    DX_REVERSED = 32, /* RM gets the result */
    DX_REGISTER = 64, /* RM is no memory */
    DX_THIRD = 128    /* with DX_IMM: a mask's register is in the upper half of imm */
};
typedef struct dx_form {
    uint8_t map, prefix, code, flags, unit; /* unit: bytes in memory; 0: the whole vector */
} dx_form;
#define DX_FORM(name, ...) DX_F_##name,
typedef enum dx_form_name {
#include "codegen/direct/forms.def"
    DX_FORMS
} dx_form_name;
#undef DX_FORM
extern const dx_form opjit_dx_forms[DX_FORMS];
bool opjit_dx_is_shift(uint32_t form); /* by a number of bits */
bool opjit_dx_may_read_memory(const dx_func *f, const dx_op *o); /* as its last operand, in place of a vector */
dx_form_name opjit_dx_integer_form(LLVMOpcode op, uint32_t bits); /* DX_FORMS: there is no instruction */
/* dst = form(a, b); imm: DX_IMM forms.  `bytes` is the operation's width. */
dx_op *opjit_dx_vector(dx_func *f, dx_form_name form, uint32_t bytes, dx_reg dst, dx_reg a, dx_reg b);
/* The same to a new register; with AVX2, the upper half of 32 bytes. */
dx_reg opjit_dx_two(dx_func *f, dx_form_name form, uint32_t bytes, dx_reg a, dx_reg b);
dx_reg opjit_dx_high_half(dx_func *f, dx_reg x);
dx_reg opjit_dx_zero(dx_func *f); /* a vector of 0: nothing else is ever in that register */
/* x by a shift of a number of bits; `how`: the extension of its code. */
enum { DX_RIGHT = 2, DX_ARITHMETIC = 4, DX_LEFT = 6 };
dx_reg opjit_dx_shifted(dx_func *f, dx_form_name form, uint32_t width, dx_reg x, uint32_t how, uint32_t by);
static inline uint32_t dx_width(dx_type t)
{
    const uint32_t bytes = dx_bytes(t);
    return bytes <= 16 ? 16 : bytes;
}

/* select_*.c: one instruction; unknown ones are refused */
void opjit_dx_select_integer(dx_func *f, LLVMValueRef v, LLVMOpcode op);
void opjit_dx_select_vector(dx_func *f, LLVMValueRef v, LLVMOpcode op);
void opjit_dx_select_cast(dx_func *f, LLVMValueRef v, LLVMOpcode op);
void opjit_dx_select_lanes(dx_func *f, LLVMValueRef v, LLVMOpcode op); /* shuffles, insertions, extractions */
void opjit_dx_select_memory(dx_func *f, LLVMValueRef v, LLVMOpcode op);
void opjit_dx_select_call(dx_func *f, LLVMValueRef v);
void opjit_dx_select_flow(dx_func *f, LLVMValueRef v, LLVMOpcode op);
void opjit_dx_select_choice(dx_func *f, LLVMValueRef v, LLVMOpcode op); /* comparisons and selects */
dx_reg opjit_dx_lane(dx_func *f, LLVMValueRef v, uint32_t lane); /* of a vector in a register */
/* select_late.c: whether nothing is done where a vector is made; a lane of it */
bool opjit_dx_is_late(dx_func *f, LLVMValueRef v);
dx_reg opjit_dx_late_lane(dx_func *f, LLVMValueRef v, uint32_t lane);
/* select_wide.c: vectors in two registers; false: the instruction has nothing to do with them */
bool opjit_dx_is_wide(dx_func *f, dx_type t);
bool opjit_dx_select_wide(dx_func *f, LLVMValueRef v, LLVMOpcode op);
/* Of AVX-512: a mask in dst; the mask of a select, of its lanes or of one condition for all of them. */
void opjit_dx_compare_vectors(dx_func *f, LLVMIntPredicate p, dx_type t, dx_reg dst, dx_reg a, dx_reg b);
dx_reg opjit_dx_choosing_mask(dx_func *f, LLVMValueRef c, bool whole);
void opjit_dx_half(dx_func *f, LLVMValueRef v, dx_type t);
/* An integer of so many bits in 32 or more: itself, or a register of its own. */
dx_reg opjit_dx_extended(dx_func *f, dx_reg a, uint32_t bits, bool is_signed);
/* dst = the quotient of x and y, or the rest; integers of less than 32 bits are extended to 32. */
void opjit_dx_divide(dx_func *f, dx_reg dst, dx_reg x, dx_reg y, uint32_t bits, bool is_signed, bool rest);
void opjit_dx_select_quotients(dx_func *f, LLVMValueRef v, LLVMOpcode op, dx_type t); /* of vectors */
void opjit_dx_math(dx_func *f, LLVMValueRef v, const char *name); /* intrinsics */
dx_reg opjit_dx_mask_number(dx_func *f, uint64_t bits, uint32_t lanes);

/* narrow*.c: the same with AVX2, whose masks are vectors of integers, all ones or 0 in each lane */
uint32_t opjit_dx_mask_bits(const dx_func *f, uint32_t lanes); /* of a lane where nothing says how wide it is */
dx_reg opjit_dx_mask_new(dx_func *f, uint32_t bits);
dx_reg opjit_dx_mask_as(dx_func *f, LLVMValueRef v, uint32_t bits); /* a vector of i1, or an i1, in such lanes */
/* dst = yes where the mask, of lanes of `bits`, has the lane, else no. */
void opjit_dx_narrow_blend(dx_func *f, dx_reg dst, uint32_t bits, uint32_t width, dx_reg mask, dx_reg yes, dx_reg no);
void opjit_dx_narrow_compare(dx_func *f, LLVMValueRef v, dx_type t); /* vectors of integers */
void opjit_dx_narrow_compare_floats(dx_func *f, LLVMValueRef v, dx_type t, uint32_t how);
void opjit_dx_narrow_select(dx_func *f, LLVMValueRef v, dx_type t, bool whole); /* by one condition, not a mask */
void opjit_dx_narrow_logic(dx_func *f, LLVMValueRef v, LLVMOpcode op);
void opjit_dx_narrow_load(dx_func *f, LLVMValueRef v, dx_type t);
void opjit_dx_narrow_store(dx_func *f, LLVMValueRef v, dx_type t);
/* false: there is an instruction */
bool opjit_dx_narrow_integers(dx_func *f, LLVMValueRef v, LLVMOpcode op, dx_type t);
bool opjit_dx_narrow_limit(dx_func *f, LLVMValueRef v, dx_type t, bool max, bool is_signed);
void opjit_dx_narrow_from_mask(dx_func *f, LLVMValueRef v, dx_type to, bool is_signed);
void opjit_dx_narrow_truncate(dx_func *f, LLVMValueRef v, dx_type from, dx_type to);
/* narrow_pack.c: false: the numbers are not known to be limited to the shorter type */
bool opjit_dx_narrow_limited(dx_func *f, LLVMValueRef v, dx_type from, dx_type to);
bool opjit_dx_put_later(dx_func *f, LLVMValueRef value, dx_mem at); /* a store, by opjit_dx_put_now at the latest: */
void opjit_dx_put_now(dx_func *f); /* before anything else accesses memory, and at a block's end */
bool opjit_dx_narrow_number(dx_func *f, LLVMValueRef v, LLVMOpcode op, dx_type from, dx_type to);
bool opjit_dx_narrow_long(dx_func *f, LLVMValueRef v, LLVMOpcode op, dx_type from, dx_type to); /* narrow_long.c */
dx_reg opjit_dx_narrow_unsigned(dx_func *f, dx_reg number, uint32_t bits); /* of 64 bits, to a float of `bits` */
void opjit_dx_narrow_insert_mask(dx_func *f, LLVMValueRef v, dx_type t);
void opjit_dx_narrow_shuffle_masks(dx_func *f, LLVMValueRef v, dx_type t, dx_type from, const int32_t *at);
void opjit_dx_narrow_mask_cast(dx_func *f, LLVMValueRef v, dx_type from, dx_type to);
/* Elements of x and y: at[i] counts them through both; -1: any.  y: 0 if there is one vector. */
dx_reg opjit_dx_narrow_shuffle(dx_func *f, dx_type t, dx_reg x, dx_reg y, dx_type from, const int32_t *at);
void opjit_dx_narrow_insert(dx_func *f, LLVMValueRef v, dx_type t);
dx_reg opjit_dx_narrow_lane(dx_func *f, LLVMValueRef v, uint32_t lane); /* of a mask */
static inline uint32_t dx_size(uint32_t bits) /* log2 of the bytes */
{
    return bits == 64 ? 3 : bits == 32 ? 2 : bits == 16 ? 1 : 0;
}
dx_reg opjit_dx_mask_constant(dx_func *f, LLVMValueRef c, uint32_t bits); /* operands.c */
dx_reg opjit_dx_vector_constant(dx_func *f, const void *bytes, uint32_t size);
dx_reg opjit_dx_repeated(dx_func *f, uint64_t element, uint32_t bits, uint32_t size);

/* live.c */
void opjit_dx_live(dx_func *f);
/* registers.c */
void opjit_dx_allocate(dx_func *f);
static inline dx_reg dx_root(const dx_func *f, dx_reg r)
{
    while (f->regs[r].same)
        r = f->regs[r].same;
    return r;
}

/* write.c */
void opjit_dx_write(dx_func *f);

#endif
