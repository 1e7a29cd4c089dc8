/* SPDX-License-Identifier: Apache-2.0 */
/* name_set.c - see name_set.h: a table with open addressing, which doubles where it is half full. */
#include "runtime/base/name_set.h"

static uint32_t slot_of(const name_set *set, const char *name, size_t length)
{
    return (uint32_t)opjit_rt_hash64(name, length) & (set->slot_count - 1);
}

uint32_t opjit_rt_name_set_find(const name_set *set, const char *name, size_t length)
{
    if (set->slot_count == 0)
        return NAME_SET_NONE;
    for (uint32_t at = slot_of(set, name, length); set->slots[at] != 0; at = (at + 1) & (set->slot_count - 1)) {
        const char *const known = set->names[set->slots[at] - 1];
        if (strncmp(known, name, length) == 0 && known[length] == '\0')
            return set->slots[at] - 1;
    }
    return NAME_SET_NONE;
}

static void enter(name_set *set, uint32_t number)
{
    const char *const name = set->names[number];
    uint32_t at = slot_of(set, name, strlen(name));

    while (set->slots[at] != 0)
        at = (at + 1) & (set->slot_count - 1);
    set->slots[at] = number + 1;
}

static bool grow(name_set *set, rt_arena *arena)
{
    const uint32_t capacity = set->capacity == 0 ? 16 : 2 * set->capacity;
    const char **const names = ARENA_ARRAY(arena, const char *, capacity);
    uint32_t *const slots = ARENA_ARRAY(arena, uint32_t, 2 * (size_t)capacity);

    if (names == NULL || slots == NULL)
        return false;
    if (set->count != 0)
        memcpy(names, set->names, set->count * sizeof *names);
    set->names = names;
    set->slots = slots;
    set->capacity = capacity;
    set->slot_count = 2 * capacity;
    for (uint32_t i = 0; i < set->count; i++)
        enter(set, i);
    return true;
}

bool opjit_rt_name_set_add(name_set *set, rt_arena *arena, const char *name)
{
    if (set->count == set->capacity && !grow(set, arena))
        return false;
    set->names[set->count] = name;
    enter(set, set->count++);
    return true;
}

/* Merges the sorted runs [begin, middle) and [middle, end) of from into to. */
static void merge(const name_set *set, const uint32_t *from, uint32_t begin, uint32_t middle, uint32_t end,
                  uint32_t *to)
{
    uint32_t a = begin, b = middle;

    for (uint32_t i = begin; i < end; i++)
        to[i] =
            b == end || (a < middle && strcmp(set->names[from[a]], set->names[from[b]]) <= 0) ? from[a++] : from[b++];
}

const uint32_t *opjit_rt_name_set_order(const name_set *set, rt_arena *arena)
{
    uint32_t *from = ARENA_ARRAY(arena, uint32_t, set->count), *to = ARENA_ARRAY(arena, uint32_t, set->count);

    if (from == NULL || to == NULL)
        return NULL;
    for (uint32_t i = 0; i < set->count; i++)
        from[i] = i;
    for (uint64_t run = 1; run < set->count; run *= 2) {
        for (uint64_t begin = 0; begin < set->count; begin += 2 * run) {
            const uint64_t middle = begin + run < set->count ? begin + run : set->count;
            const uint64_t end = middle + run < set->count ? middle + run : set->count;
            merge(set, from, (uint32_t)begin, (uint32_t)middle, (uint32_t)end, to);
        }
        uint32_t *const sorted = to;
        to = from;
        from = sorted;
    }
    return from;
}
