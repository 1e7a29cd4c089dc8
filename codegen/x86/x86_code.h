/* SPDX-License-Identifier: Apache-2.0 */
/* x86_code.h - instructions of x86-64 as bytes: of vectors, in the encoding of AVX or, where that can't say it, of
 * AVX-512; of integers.  Registers are their numbers. */
#ifndef OPJIT_CODEGEN_X86_X86_CODE_H
#define OPJIT_CODEGEN_X86_X86_CODE_H

#include "runtime/base/base.h"

enum { X86_AX, X86_CX, X86_DX, X86_BX, X86_SP, X86_BP, X86_SI, X86_DI };
enum { X86_NO_INDEX = X86_SP /* which can't be one */ };

enum { X86_RIP = 32 /* as a base: the end of these four bytes, which a relocation replaces */ };

/* [base + (index << shift) + offset] */
typedef struct x86_mem {
    uint32_t base, index, shift;
    int32_t offset;
    bool lanes; /* the index is a vector register, with an address for each lane */
} x86_mem;

typedef enum x86_map { X86_0F = 1, X86_0F38, X86_0F3A } x86_map;
typedef enum x86_prefix { X86_NP, X86_66, X86_F3, X86_F2 } x86_prefix;

/* An instruction on vectors: REG, SECOND, RM in the order of the manuals; RM may be in memory. */
typedef struct x86_vector {
    x86_map map;
    x86_prefix prefix;
    uint8_t code;
    uint32_t bytes;             /* 16, 32, 64 */
    uint32_t reg, second, rm;   /* second: 0 where there is none */
    const x86_mem *mem;         /* NULL: rm */
    uint32_t unit;              /* bytes in memory; 0: of no rule, offsets are written in full */
    bool splat;                 /* the element in memory is in all lanes */
    uint32_t mask;              /* k register of a blend; 0: none */
    bool zero;                  /* lanes without the mask become 0 */
    bool avx512;                /* it has no other encoding, as where REG is a k register */
    bool w, avx_w;              /* the bit W in the encoding of AVX-512; in that of AVX */
} x86_vector;

void opjit_cg_x86_vector(rt_bytes *out, const x86_vector *v);

/* An instruction on general registers. */
typedef struct x86_integer {
    uint8_t map;        /* x86_map; 0: one byte of code */
    x86_prefix prefix;
    uint8_t code;
    bool wide;          /* 64 bits */
    bool byte;          /* RM or REG is a register of 8 bits */
    uint32_t reg, rm;
    const x86_mem *mem; /* NULL: rm */
} x86_integer;

void opjit_cg_x86_integer(rt_bytes *out, const x86_integer *i);
void opjit_cg_x86_memory(rt_bytes *out, uint32_t code, uint32_t reg, const x86_mem *mem); /* REX.W code /reg */
void opjit_cg_x86_immediate(rt_bytes *out, uint32_t extension, uint32_t reg, int32_t value); /* of 0x81, 0x83 */
void opjit_cg_x86_multiply(rt_bytes *out, uint32_t reg, const x86_mem *mem, int32_t by);
enum { X86_FETCH_FIRST = 1, X86_FETCH_SECOND = 2 }; /* to which cache */
void opjit_cg_x86_fetch(rt_bytes *out, const x86_mem *mem, uint32_t cache);
void opjit_cg_x86_push(rt_bytes *out, uint32_t reg);
void opjit_cg_x86_pop(rt_bytes *out, uint32_t reg);
void opjit_cg_x86_align(rt_bytes *out, uint32_t to);
/* A jump whose distance is set later; returns its place. */
enum {
    X86_JUMP = 0xe9,
    X86_JUMP_EQUAL = 0x84,
    X86_JUMP_NOT_EQUAL = 0x85,
    X86_JUMP_LESS = 0x8c,
    X86_JUMP_NOT_LESS = 0x8d,
    X86_JUMP_LESS_EQUAL = 0x8e
};
size_t opjit_cg_x86_jump(rt_bytes *out, uint32_t code);
void opjit_cg_x86_land(rt_bytes *out, size_t jump, size_t at);

#endif
