/* SPDX-License-Identifier: Apache-2.0 */
/* ptx.h - runs PTX without a GPU: parser and interpreter of what LLVM writes for integer and float kernels (sm_80 to
 * sm_120). It is strict rather than fast: what it does not know is an error of the parser that names the line; loads
 * and stores are held to registered memory and to their alignment, also where a GPU would not notice; add.f32,
 * mul.f32 and the like without .rn are refused, because an assembler may contract them.
 *
 * Warps have 32 threads, each with a pc of its own.  Those with the lowest pc run; shfl.sync, vote.sync,
 * redux.sync and bar.warp.sync wait for all threads of their mask, at the same instruction, that have not ended.
 * Blocks run one after the other. Deadlock is an error, as are reading a lane that takes no part, division by zero,
 * a .uni branch that diverges.
 *
 * Not modelled: time, caches, weak memory, atomics, clusters, recursion, bf16 and
 * smaller floats, approximations, .ftz. */
#ifndef OPJIT_TEST_MACHINES_PTX_H
#define OPJIT_TEST_MACHINES_PTX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ptx_error {
    uint32_t line; /* of the text, from 1; 0: the error has no place in it */
    char message[480];
} ptx_error;

typedef struct ptx_module ptx_module;
/* NULL, with *error set, where the text is not PTX or uses something outside the subset. */
ptx_module *ptx_parse(const char *text, ptx_error *error);
void ptx_free(ptx_module *module); /* NULL is fine */

typedef struct ptx_entry {
    const char *name;
    uint32_t param_count;
    const uint32_t *param_bytes;  /* of each; scalars and arrays alike */
    uint32_t shared_bytes;        /* static shared memory */
    uint32_t reqntid[3], maxntid; /* 0: not said; maxntid as the product */
} ptx_entry;
uint32_t ptx_entry_count(const ptx_module *module);
ptx_entry ptx_entry_get(const ptx_module *module, uint32_t entry);
int ptx_find(const ptx_module *module, const char *name); /* an entry's number, -1: none of that name */

/* Device memory: ranges of addresses, and the host memory behind each. */
typedef struct ptx_memory ptx_memory;
ptx_memory *ptx_memory_create(void); /* NULL: no memory */
void ptx_memory_destroy(ptx_memory *memory);
/* Lets kernels read, and write if writable, [address, address + bytes).  False: it overlaps another range, is empty, or
 * there is no memory.  Messages use name (copied; NULL is fine). */
bool ptx_memory_add(ptx_memory *memory, uint64_t address, void *host, size_t bytes, bool writable, const char *name);
bool ptx_memory_remove(ptx_memory *memory, uint64_t address); /* false: no range begins there */
/* Host memory that is its own address on the device: the simple case. */
bool ptx_memory_share(ptx_memory *memory, void *host, size_t bytes, bool writable, const char *name);
/* The host memory of [address, address + bytes); NULL: not wholly within one range. */
void *ptx_memory_host(const ptx_memory *memory, uint64_t address, size_t bytes);

typedef struct ptx_launch {
    uint32_t grid[3], block[3];
    uint32_t shared_bytes;  /* dynamic shared memory */
    uint32_t shared_limit;  /* static and dynamic; 0: 48 KiB */
    void *const *arguments; /* one pointer for each parameter, as for cuLaunchKernel */
    /* Finds races: two threads touch one byte, one of them writing, with no barrier between.  bar.warp.sync orders a
     * warp if its mask names all of its running threads, bar.sync a block if it waits for all; others order nothing,
     * and nothing orders blocks.  Also finds ld.global.nc of a byte that the kernel writes. */
    bool races;
    bool reversed;       /* last block and last warp first */
    uint64_t step_limit; /* thread instructions; 0: 2^34 */
} ptx_launch;

typedef struct ptx_stats {
    uint64_t instructions;                /* of threads */
    uint64_t issues;                      /* of warps */
    uint64_t loads, stores;               /* of global memory, by warps; */
    uint64_t load_sectors, store_sectors; /* the 32-byte sectors that they touched, */
    uint64_t load_bytes, store_bytes;     /* and what their threads asked for */
    uint64_t barriers;                    /* passed by blocks */
} ptx_stats;

/* Runs one entry to its end.  False, with *error set: line, instruction, thread and address; the memory is left as it
 * was at that point. */
bool ptx_run(const ptx_module *module, uint32_t entry, ptx_memory *memory, const ptx_launch *launch,
             ptx_stats *out_stats, ptx_error *error);

#endif
