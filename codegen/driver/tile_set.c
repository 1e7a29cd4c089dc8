/* SPDX-License-Identifier: Apache-2.0 */
/* tile_set.c - the tiles and mathematical functions of a request of several modules.  Each function's code is made
 * once, while other threads make other modules, and has a place beside them all: modules refer to it by name.  So no
 * module waits for a tile, and the place of each depends on nothing but the modules. */
#include "codegen/driver/tiles.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
    FIRST_ROOM = 64, /* entries of the first table */
    QUEUES = 33,     /* by cost, of so much each: */
    COST = CG_TILE_REMEMBERED / (QUEUES - 1),
    MATH_COST = 4 * COST, /* of a mathematical function */
    SHARES = 4            /* parts of what waits, for each worker */
};

typedef struct entry {
    cg_made made; /* without a function */
    cg_flat code;
    uint64_t order;     /* where it is found first: module, place in its list */
    uint64_t place;     /* in the whole code */
    struct entry *next; /* in the queue */
} entry;

struct cg_tile_set {
    const codegen_request *request;
    const cg_target *cpu;
    rt_arena *arena;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* a tile waits, or all modules are closed */
    entry **table;          /* by the hash that is in the name; NULL: none */
    uint32_t mask, count;
    entry *queue[QUEUES];
    uint64_t waiting; /* the cost of all in the queues */
    uint32_t open;    /* modules */
    opjit_status status;
    opjit_error error; /* the first one */
};

/* --- the table ---------------------------------------------------------------------------------------------------- */

static entry **slot(entry **table, uint32_t mask, uint64_t hash)
{
    uint32_t i = (uint32_t)hash & mask;
    while (table[i] && table[i]->made.hash.lo != hash)
        i = (i + 1) & mask;
    return &table[i];
}

static bool grow(cg_tile_set *set)
{
    const uint32_t room = 2 * (set->mask + 1);
    entry **table = ARENA_ARRAY(set->arena, entry *, room);
    if (!table)
        return false;
    for (uint32_t i = 0; i <= set->mask; i++)
        if (set->table[i])
            *slot(table, room - 1, set->table[i]->made.hash.lo) = set->table[i];
    set->table = table;
    set->mask = room - 1;
    return true;
}

bool opjit_cg_tile_set_find(const cg_tile_set *set, const char *name, uint64_t *out_place)
{
    const char *digits = strrchr(name, '.');
    if (!digits)
        return false;
    const entry *e = *slot(set->table, set->mask, strtoull(digits + 1, NULL, 16));
    if (e)
        *out_place = e->place;
    return e != NULL;
}

/* --- adding ------------------------------------------------------------------------------------------------------- */

static uint32_t cost_of(const entry *e)
{
    return e->made.tile ? e->made.tile->remembered + 1 : MATH_COST;
}

static void enqueue(cg_tile_set *set, entry *e)
{
    entry **queue = &set->queue[cost_of(e) / COST < QUEUES ? cost_of(e) / COST : QUEUES - 1];
    e->next = *queue;
    *queue = e;
    set->waiting += cost_of(e);
    pthread_cond_broadcast(&set->changed);
}

/* The lock is held. */
static bool add(cg_tile_set *set, const cg_made *made, uint64_t order)
{
    entry **known = slot(set->table, set->mask, made->hash.lo), *e = *known;
    if (e) {
        e->order = order < e->order ? order : e->order;
        return true;
    }
    e = ARENA_NEW(set->arena, entry);
    if (!e)
        return false;
    e->made = (cg_made){ .target = made->target, .hash = made->hash, .math = made->math };
    memcpy(e->made.name, made->name, sizeof e->made.name);
    e->made.tile = made->tile ? opjit_rt_arena_copy(set->arena, made->tile, 1, sizeof *made->tile) : NULL;
    e->order = order;
    opjit_rt_bytes_init(&e->code.bytes, set->request->allocator);
    if (made->tile && !e->made.tile)
        return false;
    *known = e;
    if (!opjit_cg_code_recall(&e->made, set->request, &e->code))
        enqueue(set, e);
    return 2 * ++set->count <= set->mask || grow(set);
}

opjit_status opjit_cg_tile_set_add(cg_tile_set *set, uint32_t module, const cg_tiles *tiles, opjit_error *error)
{
    uint64_t order = (uint64_t)module << 32;
    bool ok = true;
    pthread_mutex_lock(&set->lock);
    for (const cg_made *made = tiles->first; made && ok; made = made->next) {
        LLVMSetVisibility(made->fn, LLVMHiddenVisibility); /* called directly */
        ok = add(set, made, order++);
    }
    pthread_mutex_unlock(&set->lock);
    return ok ? OPJIT_OK : opjit_rt_no_memory(error);
}

void opjit_cg_tile_set_close(cg_tile_set *set)
{
    pthread_mutex_lock(&set->lock);
    if (--set->open == 0)
        pthread_cond_broadcast(&set->changed);
    pthread_mutex_unlock(&set->lock);
}

/* --- compiling ---------------------------------------------------------------------------------------------------- */

/* Takes what is to be compiled next: the most expensive ones, as many as are no more than a part of all that waits.
 * The lock is held. */
static void take_batch(cg_tile_set *set, uint32_t workers, cg_tile_batch *b)
{
    const uint64_t most = set->waiting / ((uint64_t)workers * SHARES);
    uint64_t cost = 0;
    for (uint32_t q = QUEUES; q-- > 0;) {
        entry **at = &set->queue[q];
        while (*at && b->count < CG_TILES_TOGETHER) {
            entry *e = *at;
            if (b->count > 0 && (cost + cost_of(e) > most || !opjit_cg_tiles_fit(b->tile[0], &e->made)))
                return;
            *at = e->next;
            cost += cost_of(e);
            set->waiting -= cost_of(e);
            b->tile[b->count] = &e->made;
            b->code[b->count++] = &e->code;
        }
    }
}

void opjit_cg_tile_set_work(cg_tile_set *set, uint32_t workers)
{
    pthread_mutex_lock(&set->lock);
    for (;;) {
        cg_tile_batch b = { .request = set->request, .cpu = set->cpu };
        opjit_error error = { 0 };
        while (set->waiting == 0 && set->open > 0)
            pthread_cond_wait(&set->changed, &set->lock);
        if (set->waiting == 0)
            break;
        take_batch(set, workers, &b);
        pthread_mutex_unlock(&set->lock);
        const opjit_status status = opjit_cg_tiles_compile(&b, &error);
        pthread_mutex_lock(&set->lock);
        if (status != OPJIT_OK && set->status == OPJIT_OK) {
            set->status = status;
            opjit_rt_error_copy(&set->error, &error);
        }
    }
    pthread_mutex_unlock(&set->lock);
}

/* --- the code ----------------------------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    const uint64_t x = (*(entry *const *)a)->order, y = (*(entry *const *)b)->order;
    return (x > y) - (x < y);
}

opjit_status opjit_cg_tile_set_put(cg_tile_set *set, rt_bytes *out, opjit_error *error)
{
    uint32_t count = 0;
    if (set->status != OPJIT_OK) {
        opjit_rt_error_copy(error, &set->error);
        return set->status;
    }
    if (set->waiting > 0)
        return opjit_rt_refuse(error, OPJIT_CANCELLED, "{!argument}the {executor} did not run all groups of stages");
    entry **all = ARENA_ARRAY(set->arena, entry *, set->count);
    if (!all)
        return opjit_rt_no_memory(error);
    for (uint32_t i = 0; i <= set->mask; i++)
        if (set->table[i])
            all[count++] = set->table[i];
    qsort(all, count, sizeof(all[0]), compare);
    for (uint32_t i = 0; i < count; i++) {
        opjit_rt_bytes_align(out, all[i]->code.align);
        all[i]->place = out->size;
        opjit_rt_bytes_append(out, all[i]->code.bytes.data, all[i]->code.bytes.size);
    }
    return out->failed ? opjit_rt_no_memory(error) : OPJIT_OK;
}

/* --- the set ------------------------------------------------------------------------------------------------------ */

opjit_status opjit_cg_tile_set_new(const codegen_request *request, uint32_t modules, rt_arena *arena, cg_tile_set **out,
                                   opjit_error *error)
{
    cg_tile_set *set = ARENA_NEW(arena, cg_tile_set);
    entry **table = ARENA_ARRAY(arena, entry *, FIRST_ROOM);
    *out = NULL;
    if (!set || !table || pthread_mutex_init(&set->lock, NULL) != 0)
        return opjit_rt_no_memory(error);
    if (pthread_cond_init(&set->changed, NULL) != 0) {
        pthread_mutex_destroy(&set->lock);
        return opjit_rt_no_memory(error);
    }
    set->request = request;
    set->cpu = opjit_cg_target_find(request->target->arch);
    set->arena = arena;
    set->table = table;
    set->mask = FIRST_ROOM - 1;
    set->open = modules;
    *out = set;
    return OPJIT_OK;
}

void opjit_cg_tile_set_free(cg_tile_set *set)
{
    if (!set)
        return;
    for (uint32_t i = 0; i <= set->mask; i++)
        if (set->table[i])
            opjit_rt_bytes_free(&set->table[i]->code.bytes);
    pthread_cond_destroy(&set->changed);
    pthread_mutex_destroy(&set->lock);
}
