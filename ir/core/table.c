/* SPDX-License-Identifier: Apache-2.0 */
/* table.c - a map from 64-bit keys to numbers.  For passes whose work must stay linear in what they touch: an array
 * with an entry for every node of the function, made for every stage, would not be. */
#include "ir/core/internal.h"

enum { FIRST = 16 }; /* entries: many maps hold only a few */

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 31) * 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9u;
    return x ^ x >> 32;
}

uint64_t opjit_ir_hash(uint64_t hash, uint64_t value) { return mix(hash * 31 + value + 1); }

/* Finds the entry of key, or the free one where it belongs.  Most keys are numbers of nodes, side by side: one product
 * keeps them apart. */
static uint32_t find(const ir_table *t, uint64_t key)
{
    uint32_t at = (uint32_t)(key * 0x9e3779b97f4a7c15u >> 32) & (t->capacity - 1);
    while (t->values[at] != 0 && t->keys[at] != key)
        at = (at + 1) & (t->capacity - 1);
    return at;
}

static bool grow(ir_func *f, ir_table *t)
{
    const ir_table old = *t;
    t->capacity = old.capacity == 0 ? FIRST : old.capacity * 2;
    t->keys = ARENA_ARRAY(&f->scratch, uint64_t, t->capacity);
    t->values = ARENA_ARRAY(&f->scratch, uint32_t, t->capacity);
    if (t->keys == NULL || t->values == NULL) {
        f->failed = true;
        *t = old;
        return false;
    }
    for (uint32_t i = 0; i < old.capacity; i++) {
        if (old.values[i] == 0)
            continue;
        const uint32_t at = find(t, old.keys[i]);
        t->keys[at] = old.keys[i];
        t->values[at] = old.values[i];
    }
    return true;
}

uint32_t opjit_ir_table_get(const ir_table *t, uint64_t key)
{
    return t->capacity == 0 ? 0 : t->values[find(t, key)];
}

void opjit_ir_table_set(ir_func *f, ir_table *t, uint64_t key, uint32_t value)
{
    if (value == 0 || (2 * (t->count + 1) > t->capacity && !grow(f, t)))
        return;
    const uint32_t at = find(t, key);
    t->count += t->values[at] == 0;
    t->keys[at] = key;
    t->values[at] = value;
}
