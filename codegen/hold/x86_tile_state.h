/* SPDX-License-Identifier: Apache-2.0 */
/* x86_tile_state.h - what the files that write a trace as code of x86-64 share: the tile that is being written, its
 * addresses, vector registers and operations.  For the files x86_tile*.c alone. */
#ifndef OPJIT_CODEGEN_HOLD_X86_TILE_STATE_H
#define OPJIT_CODEGEN_HOLD_X86_TILE_STATE_H

#include "codegen/hold/trace.h"
#include "codegen/x86/x86_code.h"

enum {
    X86_TILE_VECTORS = 32,  /* registers, of AVX2 half as many */
    X86_TILE_INTEGERS = 12, /* those of opjit_cg_x86_tile_integers */
    X86_TILE_SLOT = 64,     /* bytes of a vector on the stack */
    X86_TILE_NO_NUMBER = INT32_MAX
};

/* Codes of instructions. */
enum { X86_TILE_MOVE = 0x8b, X86_TILE_LEA = 0x8d, X86_TILE_ADD = 0x03, X86_TILE_LOADS = 0x10, X86_TILE_STORES = 0x11 };

/* A sum that is in a register: the first terms of a place. */
typedef struct x86_tile_row {
    const cg_trace_place *place; /* NULL: none */
    uint32_t terms, reg;
} x86_tile_row;

typedef struct x86_tile {
    const cg_trace *tr;
    rt_bytes *out;
    bool wide, dot4;                  /* AVX-512; its products of bytes */
    uint32_t vectors;                 /* registers */
    uint32_t *where, *slot;           /* by operation: register, place on the stack, + 1; 0: none */
    uint32_t *hint;                   /* by operation: the register that its value should be in, + 1 */
    bool *folded;                     /* by operation: a load that is part of the instruction that uses it */
    uint32_t holds[X86_TILE_VECTORS]; /* by register: operation + 1 */
    uint32_t locked;                  /* registers, one bit each */
    uint32_t home[CG_TILE_REGISTERS], homes;
    uint32_t copies, copy; /* iterations in a round of the loop; the current one */
    uint32_t slots, saved; /* of the stack; integer registers */
    cg_trace_part part;
    uint32_t number[CG_TRACE_NUMBERS]; /* of the part: registers, or X86_TILE_NO_NUMBER */
    x86_tile_row rows[X86_TILE_INTEGERS];
    uint32_t row_count, next_row;
    bool refused;
} x86_tile;

static inline x86_mem x86_tile_argument(uint32_t arg)
{
    return (x86_mem){ .base = X86_DI, .index = X86_NO_INDEX, .offset = (int32_t)(8 * arg) };
}

static inline uint32_t x86_tile_bytes(const cg_trace_op *o)
{
    return o->lanes == 1 ? 16 : 4 * o->lanes;
}

static inline void x86_tile_put(x86_tile *m, const x86_vector *v)
{
    opjit_cg_x86_vector(m->out, v);
}

static inline void x86_tile_set(x86_tile *m, uint32_t op, uint32_t reg)
{
    m->where[op] = reg + 1;
    m->holds[reg] = op + 1;
}

static inline void x86_tile_leave(x86_tile *m, uint32_t reg)
{
    if (m->holds[reg] != 0)
        m->where[m->holds[reg] - 1] = 0;
    m->holds[reg] = 0;
}

/* x86_tile_address.c: the numbers that addresses are made of, in general registers. */
extern const uint8_t opjit_cg_x86_tile_integers[X86_TILE_INTEGERS];
void opjit_cg_x86_tile_load(x86_tile *m, const cg_trace_number *n, uint32_t reg);
/* Gives the part's numbers registers, from number `begin` of opjit_cg_x86_tile_integers on. */
void opjit_cg_x86_tile_numbers(x86_tile *m, uint32_t begin);
x86_mem opjit_cg_x86_tile_address(x86_tile *m, const cg_trace_place *p);

/* x86_tile_registers.c: values in vector registers, and instructions that move them. */
void opjit_cg_x86_tile_copy(x86_tile *m, uint32_t bytes, uint32_t to, uint32_t from);
void opjit_cg_x86_tile_zero(x86_tile *m, uint32_t to);
void opjit_cg_x86_tile_memory(x86_tile *m, uint8_t code, uint32_t bytes, uint32_t reg, const x86_mem *mem);
/* All lanes become one element: of memory, or where mem is NULL of the register `from`. */
void opjit_cg_x86_tile_splat(x86_tile *m, uint32_t bytes, uint32_t reg, const x86_mem *mem, uint32_t from);
void opjit_cg_x86_tile_to_stack(x86_tile *m, uint32_t reg);
void opjit_cg_x86_tile_bring(x86_tile *m, uint32_t value, uint32_t reg);
uint32_t opjit_cg_x86_tile_take(x86_tile *m, uint32_t at, uint32_t hint);
uint32_t opjit_cg_x86_tile_need(x86_tile *m, uint32_t value, uint32_t at);
void opjit_cg_x86_tile_release(x86_tile *m, uint32_t at);
uint32_t opjit_cg_x86_tile_result(x86_tile *m, uint32_t at);

/* x86_tile_ops.c: an operation's instructions. */
void opjit_cg_x86_tile_fold(x86_tile *m);
void opjit_cg_x86_tile_op(x86_tile *m, uint32_t at);

#endif
