/* SPDX-License-Identifier: Apache-2.0 */
/* machine.h - the registers of x86-64 that are given to values, and those that are not. */
#ifndef OPJIT_CODEGEN_DIRECT_MACHINE_H
#define OPJIT_CODEGEN_DIRECT_MACHINE_H

#include "codegen/direct.h"

enum {
    DX_MOST_REGISTERS = 32, /* of a class */
    DX_SCRATCH = 2,         /* the last vector registers: for values on the stack */
    DX_MASK_SCRATCH = 6     /* and the last two masks */
};

/* A function that is being written. */
typedef struct dx_writer {
    dx_func *f;
    rt_bytes *out;
    size_t *labels; /* by label: place + 1 */
    struct dx_jump *jumps;
    uint32_t jump_count;
    uint32_t saved[6], saved_count;
    bool framed;
} dx_writer;

/* A register, or memory. */
typedef struct dx_spot {
    bool in_memory;
    uint32_t reg;
    x86_mem mem;
    bool data; /* memory is a constant: the distance is set later */
    int64_t offset;
} dx_spot;

/* write_operand.c */
dx_spot opjit_dx_spot(const dx_writer *w, dx_reg r);
dx_spot opjit_dx_spot_of(dx_writer *w, const dx_mem *mem); /* loads what is on the stack into scratch registers */
/* The register that holds r: its own, or this scratch register, which it is loaded into. */
uint32_t opjit_dx_in(dx_writer *w, dx_reg r, uint32_t scratch);
/* The register that dst is computed in; then put it where it belongs. */
uint32_t opjit_dx_out(const dx_writer *w, dx_reg r, uint32_t scratch);
void opjit_dx_put_back(dx_writer *w, dx_reg r, uint32_t reg);
uint32_t opjit_dx_scratch(const dx_writer *w, dx_reg r, uint32_t which); /* of r's class */
/* An instruction whose memory operand may be a constant; behind: bytes that follow. */
void opjit_dx_integer(dx_writer *w, x86_integer i, const dx_spot *spot, uint32_t behind);
void opjit_dx_form(dx_writer *w, const dx_op *o, x86_vector v, const dx_spot *spot);
void opjit_dx_move(dx_writer *w, dx_class kind, const dx_spot *to, const dx_spot *from);
bool opjit_dx_same_spot(const dx_spot *a, const dx_spot *b);
void opjit_dx_moves(dx_writer *w, uint32_t first); /* a group */
/* split.c */
void opjit_dx_split(dx_func *f); /* registers that are on the stack already */
void opjit_dx_unsplit(dx_func *f);
void opjit_dx_reload(dx_writer *w, uint32_t i); /* in front of operation i */
/* write_integer.c */
void opjit_dx_write_integer(dx_writer *w, const dx_op *o);

#endif
