/* SPDX-License-Identifier: Apache-2.0 */
/* target.h - what differs between targets, as data and functions: one file per target. */
#ifndef OPJIT_CODEGEN_TARGETS_TARGET_H
#define OPJIT_CODEGEN_TARGETS_TARGET_H

#include <llvm-c/Core.h>

#include <opjit/abi.h>

#include "ir/ir.h"

/* How an operation on a type is done on a target. */
typedef enum cg_way {
    CG_REFUSED = 0, /* not supported */
    CG_NATIVE,      /* LLVM has instructions for it */
    CG_EXPANDED,    /* opjit's own instruction sequence, for vectors as well */
    CG_CALLED       /* lane by lane, by a function in the same module */
} cg_way;

/* A row of the table of what targets can do: op x type x features.  The type is the result's; operand 0's for
 * comparisons and TO_INDEX; the target's for CAST and ELEM. */
typedef struct cg_legal {
    ir_op op;
    uint32_t types;    /* CG_F16 | ... */
    uint64_t features; /* all of them: with, else without */
    cg_way with, without;
} cg_legal;

enum {
    CG_F16 = 1u << IR_F16,
    CG_F32 = 1u << IR_F32,
    CG_F64 = 1u << IR_F64,
    CG_FLOATS = CG_F16 | CG_F32 | CG_F64,
    CG_INTS = 1u << IR_I8 | 1u << IR_I16 | 1u << IR_I32 | 1u << IR_I64 | 1u << IR_U8 | 1u << IR_U16 | 1u << IR_U32 |
              1u << IR_U64,
    CG_I32 = 1u << IR_I32,
    CG_BOOL = 1u << IR_BOOL,
    CG_INDEX = 1u << IR_INDEX,
    CG_ELEMENTS = CG_FLOATS | CG_INTS,
    CG_ALL = CG_ELEMENTS | CG_BOOL | CG_INDEX
};
#define CG_NEEDS(feature) ((uint64_t)1 << (feature))

struct cg_func;

/* What a GPU's threads are and do.  Everything is emitted at the position of the function's builder. */
typedef struct cg_grid {
    unsigned global, constant, shared;         /* address spaces; constant: of data in the module */
    LLVMValueRef (*thread)(struct cg_func *f); /* its number in its block, and its block's: i32 */
    LLVMValueRef (*block)(struct cg_func *f);
    /* the i32 v of thread `lane` of the team */
    LLVMValueRef (*from)(struct cg_func *f, LLVMValueRef v, LLVMValueRef lane);
    void (*sync)(struct cg_func *f); /* a barrier of the team's threads */
    /* makes fn a kernel with blocks of that many threads */
    void (*kernel)(struct cg_func *f, LLVMValueRef fn, uint32_t threads);
    /* Makes what a driver loads from LLVM's object; NULL: the driver takes text. */
    opjit_status (*pack)(const opjit_allocator *allocator, const uint8_t *object, size_t size, rt_bytes *out,
                         opjit_error *error);
} cg_grid;

struct cg_tile;

/* What differs between targets; the rest of codegen never asks which target it is. */
typedef struct cg_target {
    rt_arch arch;
    const char *name; /* LLVM's name of the backend */
    const char *triple;
    const char *layout; /* of data, as LLVM's backend has it; NULL: the backend is asked, so that it has to be loaded */
    /* What the target machine is made with, NULL: nothing; every function states more of itself. */
    const char *machine_cpu, *machine_features, *abi;
    void (*setup)(void); /* registers the backend; harmless if repeated */
    /* The CPU name for LLVM, which every function gets in addition to the features; NULL: machine_cpu. */
    const char *(*cpu)(const rt_target *target);
    /* For backends that take features and CPU from the machine, which is then one per level; NULL: machine_cpu,
     * _features. */
    const char *(*features)(const rt_target *target);
    const cg_legal *legal; /* rows that come before those of legal.c, ending with one of no types; NULL: none */
    /* Whether it has masked vector loads and stores of lanes of that width; NULL: no. */
    bool (*masked)(const rt_target *target, uint32_t bits);
    /* A dot4 or dot2 of vectors: operand 0 + products of bytes, or halves, of 1 and 2.  Emits nothing and returns NULL
     * where there is nothing better than to widen these and to multiply them; NULL: so for all. */
    LLVMValueRef (*dots)(struct cg_func *f, ir_op op, LLVMValueRef *a);
    /* The lanes of a and b, in this order, that the constant vector of integers as wide as theirs numbers, by an
     * intrinsic; NULL, or its result: it has none.  Fast selection takes a call by itself out of a block to the slow
     * one, a shuffle with all before it. */
    LLVMValueRef (*permute)(struct cg_func *f, LLVMValueRef a, LLVMValueRef b, LLVMValueRef places);
    /* x if it is greater than y (max; else less), else y, which also is the result if either is NaN; by an intrinsic,
     * for the same reason, as the next one. */
    LLVMValueRef (*beyond)(struct cg_func *f, bool max, LLVMValueRef x, LLVMValueRef y);
    /* y, a constant that lies at the address, in the lanes in which x is not greater than it (max; else not less), else
     * x; lanes of NaN stay. */
    LLVMValueRef (*limit)(struct cg_func *f, bool max, LLVMValueRef x, LLVMValueRef y, LLVMValueRef address);
    /* Whether there are intrinsics for such vectors, too; NULL: no.  They are: whether x and y compare that way, as
     * lanes of i1; lane 0 in all lanes; y where it is a NaN, else x, bit for bit. */
    bool (*compares)(const rt_target *target, uint32_t bits, uint32_t lanes);
    LLVMValueRef (*compare)(struct cg_func *f, LLVMRealPredicate how, LLVMValueRef x, LLVMValueRef y);
    LLVMValueRef (*repeat)(struct cg_func *f, LLVMValueRef v);
    LLVMValueRef (*unless_nan)(struct cg_func *f, LLVMValueRef x, LLVMValueRef y);
    /* Whether there is one for such vectors, too, which has the elements at offsets of 32 bits, counted in elements,
     * from the address, in the lanes of the mask, in the other lanes 0. */
    bool (*gathers)(const rt_target *target, uint32_t bits, uint32_t lanes);
    LLVMValueRef (*gather)(struct cg_func *f, LLVMTypeRef type, LLVMValueRef address, LLVMValueRef offsets,
                           LLVMValueRef mask);
    /* The bytes at these places of a table of 256, which lies at the address; NULL: not of so many lanes. */
    LLVMValueRef (*look_up)(struct cg_func *f, LLVMValueRef address, LLVMValueRef places);
    /* An IR_SCALE of any lanes, if it is native. */
    LLVMValueRef (*scale)(struct cg_func *f, LLVMValueRef x, LLVMValueRef n);
    /* An IR_NEAREST of any lanes, if it is native. */
    LLVMValueRef (*nearest)(struct cg_func *f, LLVMValueRef x);
    /* Appends a tile's code (hold/hold.h), which begins at a line; false: LLVM compiles it; NULL: so for all. */
    bool (*tile)(const rt_target *target, const struct cg_tile *t, rt_arena *arena, rt_bytes *out);
    bool half_bits;    /* fast selection knows a half as an integer that intrinsics convert, and not as a float */
    bool by_page;      /* code addresses constants by their place in a page */
    bool orders_zeros; /* its minimum and maximum order -0 below 0 */
    /* LLVM's machine is good for one compile, and uses its own selection, at level none, because the output is another
     * compiler's input.  Only one compile runs at a time, and pack may ask for it to be repeated. */
    bool fresh;
    const char *fence;                           /* intrinsic that orders non-temporal stores; NULL: no such stores */
    uint32_t (*vscale)(const rt_target *target); /* minimum length of vectors whose length the machine chooses, in
                                                      units of 128 bits; NULL: there are no such vectors */
    const cg_grid *grid;                         /* NULL: a CPU */
} cg_target;
const cg_target *opjit_cg_target_find(rt_arch arch); /* NULL: none */
extern const cg_target opjit_cg_target_x86, opjit_cg_target_aarch64, opjit_cg_target_riscv, opjit_cg_target_nvptx,
    opjit_cg_target_amdgpu, opjit_cg_target_spirv;
bool opjit_cg_x86_tile(const rt_target *target, const struct cg_tile *t, rt_arena *arena, rt_bytes *out); /* hold */

/* legal.c.  Mathematical functions are called, or refused: pass expand has made sequences of them. */
cg_way opjit_cg_way(const cg_target *cpu, const rt_target *target, ir_op op, ir_type type);

#endif
