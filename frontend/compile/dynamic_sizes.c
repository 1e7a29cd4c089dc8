/* SPDX-License-Identifier: Apache-2.0 */
/* dynamic_sizes.c - which sizes of a graph's tensors follow from its dynamic dimensions: those in which readings for
 * some values differ.  Passes choose blocks that don't depend on these. */
#include "frontend/compile/dynamic_made.h"

#include <math.h>

enum { MOST_LANES = 1024 }; /* no vector has more */

void opjit_fe_sizes_init(fe_sizes *s, const opjit_allocator *allocator)
{
    opjit_rt_bytes_init(&s->noted, allocator);
    opjit_rt_bytes_init(&s->listed, allocator);
}

void opjit_fe_sizes_free(fe_sizes *s)
{
    opjit_rt_bytes_free(&s->noted);
    opjit_rt_bytes_free(&s->listed);
}

/* Of one size of a tensor. */
typedef struct noted_size {
    uint64_t first, unit; /* in the first reading, for typical sizes; the largest number that divides it in all */
    uint64_t differs;     /* 1: in another reading it is another */
} noted_size;

static noted_size *noted_at(const fe_sizes *s, size_t k)
{
    return (noted_size *)(void *)s->noted.data + k;
}

/* Whether the function has as many sizes as those that were noted: else it is another graph. */
static bool is_alike(const fe_sizes *s, const ir_func *f)
{
    size_t count = 0;
    for (uint32_t t = 1; t < f->tensor_count; t++)
        count += f->tensors[t].rank;
    return s->noted.size == count * sizeof(noted_size);
}

static uint64_t gcd_of(uint64_t a, uint64_t b)
{
    while (b != 0) {
        const uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

opjit_status opjit_fe_sizes_note(fe_sizes *s, const ir_func *value, opjit_error *error)
{
    const bool is_first = s->noted.size == 0;
    size_t k = 0;

    if (!is_first && !is_alike(s, value))
        return OPJIT_OK;
    for (uint32_t t = 1; t < value->tensor_count; t++)
        for (uint32_t d = 0; d < value->tensors[t].rank; d++, k++) {
            const uint64_t size = value->tensors[t].sizes[d];
            if (is_first) {
                opjit_rt_bytes_append(&s->noted, &(noted_size){ size, size, 0 }, sizeof(noted_size));
                continue;
            }
            noted_size *const own = noted_at(s, k);
            const noted_size now = { own->first, gcd_of(own->unit, size), own->differs != 0 || own->first != size };
            *own = now;
        }
    return s->noted.failed ? opjit_rt_no_memory(error) : OPJIT_OK;
}

/* Adds the size, or makes the unit of an equal one smaller. */
static void list_size(fe_sizes *s, const ir_varying *own)
{
    ir_varying *const list = (ir_varying *)(void *)s->listed.data;

    for (size_t i = 0; i < s->listed.size / sizeof *list; i++)
        if (list[i].size == own->size && list[i].rank == own->rank && list[i].dimension == own->dimension) {
            list[i].unit = gcd_of(list[i].unit, own->unit);
            list[i].usual = list[i].usual < own->usual ? list[i].usual : own->usual;
            list[i].most = list[i].most > own->most ? list[i].most : own->most;
            return;
        }
    opjit_rt_bytes_append(&s->listed, own, sizeof *own);
}

double opjit_fe_sizes_growth(const ir_dim *dims, uint32_t count, const int64_t *values)
{
    double most = 0;

    for (uint32_t d = 0; d < count; d++) {
        const double own = (double)dims[d].hi / (double)(values[d] > 0 ? values[d] : 1);
        most = dims[d].lo < dims[d].hi && own > most ? own : most;
    }
    return most < 1 ? most : 1;
}

/* Passes ask whether there are as many as a vector has lanes, a power of two: so the power of two is known, and ranges
 * that differ in less have the same loops. */
static uint64_t most_of(uint64_t size, double growth)
{
    const uint64_t most = (uint64_t)ceil((double)size * growth);
    uint64_t power = 1;

    while (power <= most / 2 && power < MOST_LANES)
        power *= 2;
    return power;
}

opjit_status opjit_fe_sizes_list(fe_sizes *s, const ir_func *value, double growth, ir_sizes *out, opjit_error *error)
{
    size_t k = 0;

    const bool alike = is_alike(s, value);
    s->listed.size = 0;
    for (uint32_t t = 1; t < value->tensor_count && alike; t++) {
        const ir_tensor *own = &value->tensors[t];
        for (uint32_t d = 0; d < own->rank; d++, k++)
            if (noted_at(s, k)->differs != 0)
                list_size(s, &(ir_varying){ .size = own->sizes[d],
                                            .unit = noted_at(s, k)->unit,
                                            .usual = noted_at(s, k)->first,
                                            .most = most_of(own->sizes[d], growth),
                                            .rank = own->rank,
                                            .dimension = d });
    }
    *out =
        (ir_sizes){ (const ir_varying *)(const void *)s->listed.data, (uint32_t)(s->listed.size / sizeof(ir_varying)) };
    return s->listed.failed ? opjit_rt_no_memory(error) : OPJIT_OK;
}

uint64_t opjit_fe_sizes_hash(const ir_sizes *sizes)
{
    uint64_t hash = sizes->count;

    for (uint32_t i = 0; i < sizes->count; i++) {
        const ir_varying *const own = &sizes->list[i];
        hash = opjit_ir_hash(opjit_ir_hash(hash, own->size), own->unit);
        hash = opjit_ir_hash(opjit_ir_hash(hash, own->usual), own->most);
        hash = opjit_ir_hash(hash, (uint64_t)own->rank << 32 | own->dimension);
    }
    return hash;
}
