/* SPDX-License-Identifier: Apache-2.0 */
/* dynamic_pool.h - memory of the functions that are made while kernels for many sizes are looked for. */
#ifndef OPJIT_FRONTEND_COMPILE_DYNAMIC_POOL_H
#define OPJIT_FRONTEND_COMPILE_DYNAMIC_POOL_H

#include "ir/ir.h"

/* An allocator that keeps what it is given back, by size, until the end. */
enum { FE_POOL_CLASSES = 256 };
typedef struct fe_pool {
    opjit_allocator own; /* for those who allocate; its user is the pool, which therefore stays where it is */
    const opjit_allocator *from;
    void *free[FE_POOL_CLASSES]; /* the first one of a list; each begins with the next */
} fe_pool;
void opjit_fe_pool_init(fe_pool *pool, const opjit_allocator *from);
/* Gives all memory back, of which none is in use any more. */
void opjit_fe_pool_free(fe_pool *pool);
/* Moves the function out of the pool: its memory is the allocator's then. */
opjit_status opjit_fe_pool_leave(const opjit_allocator *allocator, ir_func *f, opjit_error *error);

#endif
