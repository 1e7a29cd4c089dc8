/* SPDX-License-Identifier: Apache-2.0 */
/* numbers.c - operations of two numbers, each of which a block has once. */
#include "codegen/emit/indices.h"

enum { NUMBERS = 16 };

/* The latest operations of numbers.  Addresses of a kernel for many sizes are sums of products of sizes, nodes of their
 * own for each access, most of whose parts are equal. */
typedef struct cg_numbers {
    uint32_t count; /* so far */
    struct {
        LLVMBasicBlockRef block;
        LLVMOpcode op;
        LLVMValueRef a, b, value;
    } list[NUMBERS];
} cg_numbers;

/* Code is added at the end of a block only, so what the block has stands before it. */
LLVMValueRef opjit_cg_of_numbers(cg_func *f, LLVMOpcode op, LLVMValueRef a, LLVMValueRef b)
{
    LLVMBasicBlockRef block = LLVMGetInsertBlock(f->b);
    if (!f->numbers && !(f->numbers = ARENA_NEW(f->arena, cg_numbers))) {
        f->failed = true;
        return LLVMBuildBinOp(f->b, op, a, b, "");
    }
    cg_numbers *const n = f->numbers;
    uint32_t i = 0;
    while (i < NUMBERS && (n->list[i].op != op || n->list[i].a != a || n->list[i].b != b || n->list[i].block != block))
        i++;
    if (i == NUMBERS) {
        i = n->count++ % NUMBERS;
        n->list[i].value = LLVMBuildBinOp(f->b, op, a, b, "");
        n->list[i].block = block, n->list[i].op = op, n->list[i].a = a, n->list[i].b = b;
    }
    return n->list[i].value;
}
