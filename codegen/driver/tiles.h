/* SPDX-License-Identifier: Apache-2.0 */
/* tiles.h - the code of tiles and of mathematical functions (hold/hold.h): compiled several at a time, kept
 * (kept_code.h), and put into the module that calls them or, in large kernels, beside all of its modules. */
#ifndef OPJIT_CODEGEN_DRIVER_TILES_H
#define OPJIT_CODEGEN_DRIVER_TILES_H

#include "codegen/driver/driver.h"
#include "codegen/driver/kept_code.h"

enum { CG_TILES_TOGETHER = 16 }; /* in a module: so much is compiled before the next look at whether to go on */

/* Tiles that are compiled together, for one target. */
typedef struct cg_tile_batch {
    const codegen_request *request;
    const cg_target *cpu;
    const cg_made *tile[CG_TILES_TOGETHER];
    cg_flat *code[CG_TILES_TOGETHER]; /* empty */
    uint32_t count;
} cg_tile_batch;

/* tile_code.c.  Whether the two may be in one batch. */
bool opjit_cg_tiles_fit(const cg_made *a, const cg_made *b);
/* Compiles and keeps the code; the batch is then empty. */
opjit_status opjit_cg_tiles_compile(cg_tile_batch *b, opjit_error *error);

/* tile_set.c: the tiles of a request's modules, which refer to them by name.  Threads add tiles as they find them and
 * compile those that wait.  The order of their code depends on the modules alone. */
typedef struct cg_tile_set cg_tile_set;
opjit_status opjit_cg_tile_set_new(const codegen_request *request, uint32_t modules, rt_arena *arena, cg_tile_set **out,
                                   opjit_error *error);
void opjit_cg_tile_set_free(cg_tile_set *set); /* NULL is fine */
/* Takes the tiles of a module, which may end then, and makes their functions symbols of another object. */
opjit_status opjit_cg_tile_set_add(cg_tile_set *set, uint32_t module, const cg_tiles *tiles, opjit_error *error);
/* Says that one more module has added all of its tiles, or has failed. */
void opjit_cg_tile_set_close(cg_tile_set *set);
/* Compiles tiles, those first that take longest, until none waits and each module is closed.  Each must be closed by
 * now or be in the hands of another thread. */
void opjit_cg_tile_set_work(cg_tile_set *set, uint32_t workers);
/* Appends all of the code to *out, which is empty. */
opjit_status opjit_cg_tile_set_put(cg_tile_set *set, rt_bytes *out, opjit_error *error);
/* The tile's place in what put made; false: there is none of this name. */
bool opjit_cg_tile_set_find(const cg_tile_set *set, const char *name, uint64_t *out_place);

#endif
