/* SPDX-License-Identifier: Apache-2.0 */
/* groups.c - large kernels in groups, each a module of its own with some codes and the functions of all stages that
 * have them: LLVM's memory stays that of a group, and threads of the host's make several at a time.  Tiles are made by
 * those threads that find no group left.  Groups depend on the stages alone, so the code is the same for any number of
 * threads. */
#include "codegen/driver/tiles.h"

#include <stdlib.h>
#include <string.h>

enum {
    GROUP = 16, /* codes: their compile takes many times what a module takes by itself */
    FIRST = 1,  /* codes of the first group: a pool starts its threads after the first piece of a run */
    LARGE = 24, /* codes from which on there are groups */
};

/* One group. */
typedef struct part {
    cg_some some;
    uint64_t nodes;
    codegen_result object; /* its entries are the whole request's */
    opjit_status status;
    opjit_error error;
    bool made;
} part;

typedef struct groups {
    const codegen_request *request;
    const cg_stages *stages;
    cg_make_fn make;
    part *parts;
    part **order; /* in which they are made */
    uint32_t count, workers;
    atomic_uint next;   /* in order */
    atomic_uint failed; /* the number of a group that could not be made, + 1; 0: none */
    cg_tile_set *tiles;
} groups;

bool opjit_cg_is_large(const codegen_request *request, const cg_stages *stages)
{
    return request->emit == CODEGEN_CODE && !request->kernel && stages->code_count >= LARGE;
}

/* --- making ------------------------------------------------------------------------------------------------------- */

/* Each piece of the run is the next group; those behind the last one are tiles, until none is left.  Whatever an
 * executor makes of the order of pieces, groups are taken in theirs. */
static void make_pieces(void *arg, uint32_t worker, uint64_t begin, uint64_t end)
{
    groups *g = arg;
    (void)worker;
    for (uint64_t i = begin; i < end; i++) {
        const uint32_t number = atomic_fetch_add_explicit(&g->next, 1, memory_order_relaxed);
        if (number >= g->count) {
            opjit_cg_tile_set_work(g->tiles, g->workers);
            continue;
        }
        part *p = g->order[number];
        p->made = atomic_load(&g->failed) == 0; /* what others can't do without is missing */
        if (p->made)
            p->status = g->make(g->request, g->stages, &p->some, &p->object, &p->error);
        if (p->status != OPJIT_OK)
            atomic_store(&g->failed, p->some.number + 1);
        opjit_cg_tile_set_close(g->tiles);
    }
}

/* The largest first. */
static int compare(const void *a, const void *b)
{
    const part *x = *(part *const *)a, *y = *(part *const *)b;
    if (x->nodes != y->nodes)
        return x->nodes < y->nodes ? 1 : -1;
    return x->some.number < y->some.number ? -1 : 1;
}

static opjit_status divide(groups *g, rt_arena *arena, opjit_error *error)
{
    const cg_stages *stages = g->stages;
    g->count = 1 + (stages->code_count - FIRST + GROUP - 1) / GROUP;
    g->parts = ARENA_ARRAY(arena, part, g->count);
    g->order = ARENA_ARRAY(arena, part *, g->count);
    if (!g->parts || !g->order)
        return opjit_rt_no_memory(error);
    TRY(opjit_cg_tile_set_new(g->request, g->count, arena, &g->tiles, error));
    for (uint32_t i = 0; i < g->count; i++) {
        part *p = g->order[i] = &g->parts[i];
        p->some = (cg_some){ .number = i,
                             .first = i > 0 ? FIRST + (i - 1) * GROUP : 0,
                             .last = FIRST + i * GROUP,
                             .tiles = g->tiles };
        opjit_rt_bytes_init(&p->object.bytes, g->request->allocator);
        for (uint32_t c = p->some.first; c < p->some.last && c < stages->code_count; c++)
            p->nodes += stages->codes[c]->ir.node_count;
    }
    qsort(g->order + 1, g->count - 1, sizeof(g->order[0]), compare);
    return OPJIT_OK;
}

static opjit_status make_all(groups *g)
{
    const opjit_executor *executor = g->request->executor;
    const uint64_t pieces = (uint64_t)g->count + g->workers;
    if (executor)
        return executor->run(executor->user, pieces, 1, make_pieces, g);
    make_pieces(g, 0, 0, pieces);
    return OPJIT_OK;
}

/* --- putting together --------------------------------------------------------------------------------------------- */

/* Where a group's code begins. */
typedef struct origin {
    const cg_tile_set *tiles;
    uint64_t begin;
} origin;

static bool find_tile(const void *user, const char *name, uint64_t *out_place)
{
    const origin *from = user;
    const bool found = opjit_cg_tile_set_find(from->tiles, name, out_place);
    if (found)
        *out_place -= from->begin; /* less than 0: tiles are before all groups */
    return found;
}

/* Appends the group's code: its stages' entries move with it. */
static opjit_status take(const groups *g, const part *p, uint64_t align, codegen_result *out, opjit_error *error)
{
    opjit_rt_bytes_align(&out->bytes, align);
    const origin from = { g->tiles, out->bytes.size };
    const cg_outside tiles = { find_tile, &from };
    codegen_result code = { .entries = out->entries };
    opjit_rt_bytes_init(&code.bytes, g->request->allocator);
    const opjit_status status = opjit_cg_code(g->request, g->stages, p->object.bytes.data, p->object.bytes.size, &tiles,
                                              &code, error);
    opjit_rt_bytes_append(&out->bytes, code.bytes.data, code.bytes.size);
    opjit_rt_bytes_free(&code.bytes);
    for (uint32_t c = p->some.first; c < p->some.last && c < g->stages->code_count; c++)
        for (const cg_single *s = g->stages->codes[c]; s; s = s->next)
            if (out->entries[s - g->stages->at] != UINT64_MAX)
                out->entries[s - g->stages->at] += from.begin;
    out->modules += p->object.modules;
    out->direct += p->object.direct;
    if (out->refused[0] == '\0')
        memcpy(out->refused, p->object.refused, sizeof out->refused);
    out->build_ms += p->object.build_ms;
    out->emit_ms += p->object.emit_ms;
    out->link_ms += p->object.link_ms;
    if (status == OPJIT_OK && out->bytes.failed)
        return opjit_rt_no_memory(error);
    return status;
}

static opjit_status put_together(const groups *g, codegen_result *out, opjit_error *error)
{
    const uint64_t align = opjit_cg_target_find(g->request->target->arch)->by_page ? CG_PAGE : CG_LINE;
    const uint32_t failed = atomic_load(&g->failed);
    if (failed > 0) {
        opjit_rt_error_copy(error, &g->parts[failed - 1].error);
        return g->parts[failed - 1].status;
    }
    for (uint32_t i = 0; i < g->count; i++) {
        const part *p = &g->parts[i];
        if (!p->made)
            return opjit_rt_refuse(error, OPJIT_CANCELLED,
                                   "{!argument}the {executor} did not run all groups of stages");
    }
    TRY(opjit_cg_tile_set_put(g->tiles, &out->bytes, error));
    for (uint32_t i = 0; i < g->count; i++)
        TRY(take(g, &g->parts[i], align, out, error));
    return OPJIT_OK;
}

opjit_status opjit_cg_compile_groups(const codegen_request *request, const cg_stages *stages, cg_make_fn make,
                                     codegen_result *out, opjit_error *error)
{
    groups g = { .request = request,
                 .stages = stages,
                 .make = make,
                 .workers = request->executor && request->executor->workers > 0 ? request->executor->workers : 1 };
    rt_arena arena;
    opjit_rt_arena_init(&arena, request->allocator);
    opjit_status status = divide(&g, &arena, error);
    if (status == OPJIT_OK)
        status = make_all(&g);
    if (status == OPJIT_OK)
        status = put_together(&g, out, error);
    for (uint32_t i = 0; g.parts && i < g.count; i++)
        opjit_rt_bytes_free(&g.parts[i].object.bytes);
    opjit_cg_tile_set_free(g.tiles);
    opjit_rt_arena_free(&arena);
    return status;
}
