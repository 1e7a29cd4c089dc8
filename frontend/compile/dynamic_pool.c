/* SPDX-License-Identifier: Apache-2.0 */
/* dynamic_pool.c - an allocator that keeps large pieces of memory which are given back, for the next one of that size.
 * Functions for some hundred sizes are made and freed, a few at a time, beside small pieces that live longer: malloc
 * would leave holes between these and take new pages from the system. */
#include "frontend/compile/dynamic_pool.h"

enum {
    LEAST = 4096,         /* bytes of what is kept */
    STEPS = 4,            /* sizes between a power of two and the next one */
    LARGE = 1 << 20,      /* pieces that may begin at a large page */
    LARGE_PAGE = 2 << 20, /* as opjit_rt_allocate_data asks for */
    ALIGNMENT = 64
};

/* The class of pieces of so many bytes, at least LEAST, and how many bytes these have. */
static uint32_t class_of(size_t size, size_t *out_bytes)
{
    uint32_t power = 0;

    while (size >> power >= 2 * STEPS)
        power++;
    const size_t steps = (size >> power) + ((size & (((size_t)1 << power) - 1)) != 0); /* STEPS to 2 * STEPS */
    *out_bytes = steps << power;
    return power * STEPS + (uint32_t)(steps - STEPS);
}

static size_t alignment_of(size_t bytes)
{
    return bytes >= LARGE ? LARGE_PAGE : ALIGNMENT;
}

static void *allocate(void *user, size_t size, size_t alignment)
{
    fe_pool *const pool = user;
    size_t bytes;

    if (size < LEAST || size > SIZE_MAX / 4)
        return pool->from->allocate(pool->from->user, size, alignment);
    const uint32_t class = class_of(size, &bytes);
    void *const piece = pool->free[class];
    const size_t own = alignment_of(bytes);
    if (piece == NULL || alignment > own)
        return pool->from->allocate(pool->from->user, bytes, alignment > own ? alignment : own);
    memcpy(&pool->free[class], piece, sizeof piece);
    return piece;
}

static void release(void *user, void *memory, size_t size)
{
    fe_pool *const pool = user;
    size_t bytes;

    if (size < LEAST || size > SIZE_MAX / 4) {
        pool->from->release(pool->from->user, memory, size);
        return;
    }
    const uint32_t class = class_of(size, &bytes);
    memcpy(memory, &pool->free[class], sizeof memory);
    pool->free[class] = memory;
}

void opjit_fe_pool_init(fe_pool *pool, const opjit_allocator *from)
{
    *pool = (fe_pool){ .own = { pool, allocate, release }, .from = from };
}

void opjit_fe_pool_free(fe_pool *pool)
{
    for (uint32_t class = 0; class < FE_POOL_CLASSES; class++) {
        const size_t bytes = (size_t)(STEPS + class % STEPS) << class / STEPS;
        while (pool->free[class] != NULL) {
            void *const piece = pool->free[class];
            memcpy(&pool->free[class], piece, sizeof piece);
            pool->from->release(pool->from->user, piece, bytes);
        }
    }
}

opjit_status opjit_fe_pool_leave(const opjit_allocator *allocator, ir_func *f, opjit_error *error)
{
    ir_func shell = *f, own;

    shell.allocator = allocator;
    shell.node_capacity = f->node_count;
    shell.operand_capacity = f->operand_count;
    shell.tensor_capacity = f->tensor_count;
    TRY(opjit_ir_copy(&shell, &own, error));
    opjit_ir_free(f);
    *f = own;
    return OPJIT_OK;
}
