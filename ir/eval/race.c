/* SPDX-License-Identifier: Apache-2.0 */
/* race.c - finds races when the interpreter runs a stage as a grid of threads would.
 *
 * The interpreter goes through the iterations one after the other.  This file looks at each access as one by a thread:
 * of the team that the iteration belongs to, in the lane that pass grid assigns to the loop's iteration.  Two teams
 * that touch the same byte, one of them storing, race, because nothing orders teams.  So do two threads of a team
 * unless a sync comes between.  Scratch belongs to a team and is the same in all its iterations.  A function without a
 * race computes the same as when it runs in order, which is what the interpreter does. */
#include "ir/eval/race.h"
#include "ir/eval/numerics.h"

#include <string.h>

enum { MANY_LANES = 0xffff };
#define MANY_TEAMS UINT64_MAX

/* The last store and the last loads of a cell; team 0: none yet. */
struct race_cell {
    uint64_t store_team, load_team;
    uint32_t store_epoch, load_epoch;
    uint16_t store_lane, load_lane; /* load_lane MANY_LANES: several */
};

opjit_status opjit_ir_race_init(ir_race *r, const ir_func *f, uint32_t threads, opjit_error *error)
{
    *r = (ir_race){ .f = f, .threads = threads, .lane = threads > 1 ? RACE_ALL : 0 };
    r->shadows = opjit_rt_allocate(f->allocator, f->tensor_count * sizeof *r->shadows, 16);
    r->shadow_of = opjit_rt_allocate(f->allocator, f->tensor_count * sizeof *r->shadow_of, 16);
    if (r->shadows)
        memset(r->shadows, 0, f->tensor_count * sizeof *r->shadows);
    if (r->shadow_of)
        memset(r->shadow_of, 0, f->tensor_count * sizeof *r->shadow_of);
    return r->shadows && r->shadow_of ? OPJIT_OK : opjit_rt_no_memory(error);
}

void opjit_ir_race_free(ir_race *r)
{
    for (uint32_t t = 0; r->shadows && t < r->f->tensor_count; t++)
        opjit_rt_release(r->f->allocator, r->shadows[t].cell, (size_t)r->shadows[t].cells * sizeof(race_cell));
    opjit_rt_release(r->f->allocator, r->shadows, r->f->tensor_count * sizeof *r->shadows);
    opjit_rt_release(r->f->allocator, r->shadow_of, r->f->tensor_count * sizeof *r->shadow_of);
    *r = (ir_race){ .f = NULL };
}

void opjit_ir_race_touch(ir_race *r, uint32_t tensor)
{
    r->shadows[tensor].touched = r->shadows[opjit_ir_root(r->f, tensor)].touched = true;
}

opjit_status opjit_ir_race_map(ir_race *r, uint32_t tensor, const uint8_t *base, uint64_t bytes, opjit_error *error)
{
    const ir_func *f = r->f;
    race_shadow *own = &r->shadows[tensor];
    if (!own->touched)
        return OPJIT_OK;
    const uint32_t root = opjit_ir_root(f, tensor);
    r->shadow_of[tensor] = root != tensor ? r->shadow_of[root] : tensor;
    for (uint32_t t = 1; t < tensor && root == tensor; t++) /* an output in an input's memory */
        if (r->shadows[t].cell && r->shadows[t].base == base && f->tensors[t].role != IR_TEMP)
            r->shadow_of[tensor] = t;
    if (r->shadow_of[tensor] != tensor || bytes == 0)
        return OPJIT_OK;
    *own = (race_shadow){ .touched = true, .base = base, .size = opjit_ir_type_size(f->tensors[tensor].type),
                          .scratch = f->tensors[tensor].role == IR_SCRATCH };
    for (uint32_t t = tensor + 1; t < f->tensor_count; t++)
        if (opjit_ir_root(f, t) == tensor && opjit_ir_type_size(f->tensors[t].type) < own->size)
            own->size = opjit_ir_type_size(f->tensors[t].type);
    own->cells = bytes / own->size + 1;
    if (own->cells > SIZE_MAX / 2 / sizeof(race_cell))
        return opjit_rt_no_memory(error);
    own->cell = opjit_rt_allocate(f->allocator, (size_t)own->cells * sizeof(race_cell), 16);
    if (!own->cell)
        return opjit_rt_no_memory(error);
    memset(own->cell, 0, (size_t)own->cells * sizeof(race_cell));
    return OPJIT_OK;
}

/* Whether an access by that team and lane (RACE_ALL: by all threads) conflicts with one by the other, made in that
 * epoch. */
static bool collides(const ir_race *r, uint64_t team, uint32_t lane, uint64_t other_team, uint32_t other_lane,
                     uint32_t epoch)
{
    if (other_team == 0)
        return false;
    return other_team != team || (epoch == r->epoch && lane != other_lane);
}

static bool touch(const ir_race *r, const race_shadow *s, race_cell *c, bool is_store)
{
    const uint64_t team = s->scratch ? 1 : r->team;
    const uint32_t lane = r->lane == RACE_ALL ? (is_store ? 0 : MANY_LANES) : r->lane;
    if (collides(r, team, lane, c->store_team, c->store_lane, c->store_epoch))
        return false;
    if (is_store) {
        if (collides(r, team, lane, c->load_team, c->load_lane, c->load_epoch))
            return false;
        c->store_team = team;
        c->store_epoch = r->epoch;
        c->store_lane = (uint16_t)lane;
        return true;
    }
    const bool again = c->load_team == team && c->load_epoch == r->epoch && c->load_lane != lane;
    c->load_lane = (uint16_t)(again ? MANY_LANES : lane);
    c->load_team = c->load_team == 0 || c->load_team == team ? team : MANY_TEAMS;
    c->load_epoch = r->epoch;
    return true;
}

bool opjit_ir_race_access(ir_race *r, uint32_t tensor, const uint8_t *at, bool is_store)
{
    const race_shadow *s = &r->shadows[r->shadow_of[tensor]];
    const uint32_t size = opjit_ir_type_size(r->f->tensors[tensor].type);
    bool good = true;
    for (uint32_t i = 0; s->cell && i < size; i += s->size) {
        const uint64_t cell = (uint64_t)(at - s->base + (int64_t)i) / s->size;
        good = good && (cell >= s->cells || touch(r, s, &s->cell[cell], is_store));
    }
    return good;
}

static bool updates(const ir_func *f, ir_ref first)
{
    for (ir_ref s = first; s; s = ir_at(f, s)->next)
        if (ir_at(f, s)->op == IR_UPD)
            return true;
    return false;
}

uint32_t opjit_ir_race_lane(const ir_race *r, ir_ref loop, int64_t lo, int64_t i)
{
    const ir_node *n = ir_at(r->f, loop);
    const uint32_t group = n->vec > 1 ? n->vec : 1;
    if (!(n->flags & IR_FOR_DISTRIBUTE) || r->threads < 2)
        return RACE_ALL;
    if (group == 1 && updates(r->f, n->body)) {
        const uint64_t warp = (uint64_t)i / IR_REDUCE_BLOCK % IR_REDUCE_LANES;
        return (uint32_t)((uint64_t)i % IR_REDUCE_LANES + warp * IR_REDUCE_LANES) % r->threads;
    }
    return (uint32_t)((uint64_t)(i - lo) / group % r->threads);
}
