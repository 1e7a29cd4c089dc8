/* SPDX-License-Identifier: Apache-2.0 */
/* grid_copy.c - copies a launch's ranges to a device's memory, each between guards, and back. */
#include <stdlib.h>
#include <string.h>

#include "tests/machines/grid.h"

enum { GUARD = 256, PATTERN = 0xa5 };

/* A range on the device, and its copy here: guard, contents, guard. */
typedef struct copy {
    uint64_t base;
    uint8_t *bytes;
    uint64_t size, begin; /* begin: of the range */
} copy;

static bool follows(const grid_launch *l, uint32_t i)
{
    return i < l->range_count && l->ranges[i].follows;
}

/* At an odd multiple of its alignment. */
static opjit_status send(const grid_memory *m, grid_launch *l, uint32_t i, copy *c, opjit_error *error)
{
    grid_range *r = &l->ranges[i];
    c->begin = GUARD + r->align;
    c->size = c->begin + (follows(l, i + 1) ? r[1].behind + r[1].bytes : r->bytes) + GUARD;
    c->bytes = malloc((size_t)c->size);
    if (c->bytes == NULL)
        return opjit_rt_no_memory(error);
    memset(c->bytes, PATTERN, (size_t)c->size);
    memcpy(c->bytes + c->begin, r->host, (size_t)r->bytes);
    TRY(m->allocate(m->device, c->size, &c->base, error));
    r->at = c->base + c->begin;
    return m->write(m->device, c->base, c->bytes, c->size, error);
}

static bool is_pattern(const uint8_t *bytes, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        if (bytes[i] != PATTERN)
            return false;
    return true;
}

static opjit_status take_back(const grid_memory *m, const grid_launch *l, uint32_t i, const copy *c, opjit_error *error)
{
    const grid_range *r = &l->ranges[i];
    const uint8_t *const here = c->bytes + c->begin;
    TRY(m->read(m->device, c->bytes, c->base, c->size, error));
    if (!is_pattern(c->bytes, c->begin) || !is_pattern(c->bytes + c->size - GUARD, GUARD))
        return opjit_rt_error_set(error, OPJIT_INTERNAL, "%s wrote beside %s", l->s->name, r->what);
    if (!r->writable && memcmp(here, r->host, (size_t)r->bytes) != 0)
        return opjit_rt_error_set(error, OPJIT_INTERNAL, "%s wrote to %s that it reads", l->s->name, r->what);
    if (r->writable)
        memcpy(r->host, here, (size_t)r->bytes);
    return OPJIT_OK;
}

opjit_status test_grid_run_copied(const grid_memory *m, grid_launch *l, opjit_error *error)
{
    copy copies[GRID_BUFFERS + 2] = { 0 };
    opjit_status status = OPJIT_OK;
    for (uint32_t i = 0; i < l->range_count && status == OPJIT_OK; i++)
        if (!follows(l, i))
            status = send(m, l, i, &copies[i], error);
        else
            l->ranges[i].at = l->ranges[i - 1].at + l->ranges[i].behind;
    if (status == OPJIT_OK)
        status = m->launch(m->device, l, error);
    for (uint32_t i = 0; i < l->range_count && status == OPJIT_OK; i++)
        if (!follows(l, i))
            status = take_back(m, l, i, &copies[i], error);
    for (uint32_t i = 0; i < l->range_count; i++) {
        if (copies[i].base != 0)
            m->free(m->device, copies[i].base);
        free(copies[i].bytes);
    }
    return status;
}
