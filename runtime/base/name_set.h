/* SPDX-License-Identifier: Apache-2.0 */
/* name_set.h - names with their numbers, found by hash: whether a name is there takes the same time however many there
 * are. */
#ifndef OPJIT_RUNTIME_BASE_NAME_SET_H
#define OPJIT_RUNTIME_BASE_NAME_SET_H

#include "runtime/base/base.h"

#define NAME_SET_NONE UINT32_MAX

/* Zeroed, it is empty.  Names are borrowed; number i is that of the i-th name that was added. */
typedef struct name_set {
    const char **names;
    uint32_t *slots; /* 1 + a name's number, 0: free; a power of two, at least twice the names */
    uint32_t count, capacity, slot_count;
} name_set;

/* The number of the name; NAME_SET_NONE: it is not there. */
uint32_t opjit_rt_name_set_find(const name_set *set, const char *name, size_t length);
/* Adds a name that is not there.  Memory is the arena's; false: there is none, and nothing has changed. */
bool opjit_rt_name_set_add(name_set *set, rt_arena *arena, const char *name);
/* The numbers in the order of strcmp, by a merge sort; NULL: no memory. */
const uint32_t *opjit_rt_name_set_order(const name_set *set, rt_arena *arena);

#endif
