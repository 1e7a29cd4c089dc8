/* SPDX-License-Identifier: Apache-2.0 */
/* kept.h - functions whose code is compiled once for the process, and once for the disk cache of whoever loads codegen,
 * by records: tiles (hold/hold.h) and mathematical functions.  A module that calls one has a function without code,
 * which gets it when the module is complete (driver/tile_code.c). */
#ifndef OPJIT_CODEGEN_SOFTOPS_KEPT_H
#define OPJIT_CODEGEN_SOFTOPS_KEPT_H

#include "codegen/cg.h"

/* A mathematical function of vectors; or, where op is ACC, the fold of an accumulator's lanes, which are in memory.
 * Hashed as bytes, as a tile is. */
typedef struct cg_math {
    uint32_t op, type, lanes;
    uint32_t kind;     /* EXP: 1, of what is at most 0; ACC: the reduction */
    uint32_t operands; /* that are parameters, one bit each */
    uint32_t copies;   /* vectors of results, 1, 2 or 4; each has operands of its own */
    uint64_t imm[2];   /* of the others */
} cg_math;
_Static_assert(sizeof(cg_math) == 6 * 4 + 2 * 8, "the record of a function has padding");

/* All of a target that the code for a record depends on.  Hashed, and part of a key, as bytes. */
typedef struct cg_kept_target {
    uint64_t features;
    uint32_t arch, level, vector_bytes, unused;
    char tune[32];
} cg_kept_target;
_Static_assert(sizeof(cg_kept_target) == 8 + 4 * 4 + 32, "what is hashed of a target has padding");

/* A function that is called and has no code yet. */
typedef struct cg_made {
    struct cg_made *next;
    LLVMValueRef fn;
    char name[64]; /* its */
    const rt_target *target;
    rt_hash hash;               /* of the record and its cg_kept_target */
    const struct cg_tile *tile; /* NULL: the function is of math */
    cg_math math;
} cg_made;

/* Those of a module. */
typedef struct cg_tiles {
    rt_arena *arena; /* lives as long as the module */
    cg_made *first;
} cg_tiles;

cg_kept_target opjit_cg_kept_target(const rt_target *target); /* kept.c */
/* kept.c: the function in f's module for a record, called `prefix` and a hash.  *made: what is known of it, if it is
 * called for the first time; else NULL. */
LLVMValueRef opjit_cg_kept_function(cg_func *f, const char *prefix, const void *record, size_t size, LLVMTypeRef type,
                                    cg_made **made);

/* reduce/accumulator.c: a fold's body into f->fn, whose parameter is the address of the lanes. */
void opjit_cg_fold_body(cg_func *f, const cg_math *m);
/* math.c: the value of a mathematical op, by a call; a function's type, and its body into f->fn. */
LLVMValueRef opjit_cg_math(cg_func *f, ir_ref node);
/* The same for several copies, by one call: the values of the operands that are not constants, copy by copy; and those
 * of the op. */
enum { CG_MATH_OPERANDS = 2, CG_MATH_COPIES = CG_CALL_MORE_COPIES };
typedef LLVMValueRef cg_math_values[CG_MATH_OPERANDS];
void opjit_cg_math_operands(cg_func *f, ir_ref node, cg_math_values out);
void opjit_cg_math_together(cg_func *f, ir_ref node, cg_math_values *operands, uint32_t copies, LLVMValueRef *out);
/* How many copies a call takes at most; 0: the op is no function. */
uint32_t opjit_cg_math_copies(const cg_func *f, const ir_node *n);
/* The lesser of two such numbers, unless it is 0. */
static inline uint8_t opjit_cg_fewer_calls(uint32_t a, uint32_t b)
{
    return (uint8_t)(a == 0 || (b != 0 && b < a) ? b : a);
}
LLVMTypeRef opjit_cg_math_type(const cg_func *f, const cg_math *m);
void opjit_cg_math_body(cg_func *f, const cg_math *m);

#endif
