/* SPDX-License-Identifier: Apache-2.0 */
/* archive.c - writes objects as a static library, in the format of ar with GNU's index and long names.  Contains no
 * times, owners or paths: the same objects make the same bytes. */
#include "codegen/object/library.h"
#include "codegen/object/link.h"

#include <stdio.h>
#include <string.h>

enum { HEADER = 60, SHORT_NAME = 15 };

/* Collects the index: names of symbols, and the member that each belongs to. */
typedef struct index {
    rt_bytes *names, *members;
    uint32_t member, count;
} index;

static opjit_status note(void *user, const cg_symbol *symbol)
{
    index *i = user;
    opjit_rt_bytes_append(i->names, symbol->name, strlen(symbol->name) + 1);
    opjit_rt_bytes_u32(i->members, i->member);
    i->count++;
    return OPJIT_OK;
}

static void put_header(rt_bytes *out, const char *name, uint64_t size)
{
    opjit_rt_bytes_printf(out, "%-16s%-12s%-6s%-6s%-8s%-10llu`\n", name, "0", "0", "0", "644",
                          (unsigned long long)size);
}

static void put_even(rt_bytes *out)
{
    if (out->size % 2 != 0)
        opjit_rt_bytes_u8(out, '\n');
}

static uint64_t even(uint64_t size)
{
    return size + size % 2;
}

/* The offset of a long name among the long names, or UINT64_MAX. */
static uint64_t add_name(rt_bytes *names, const char *name)
{
    const uint64_t at = names->size;
    if (strlen(name) + 3 <= SHORT_NAME)
        return UINT64_MAX;
    opjit_rt_bytes_printf(names, "%s.o/\n", name);
    return at;
}

static void put_big_endian(rt_bytes *out, uint64_t value)
{
    for (int shift = 24; shift >= 0; shift -= 8)
        opjit_rt_bytes_u8(out, (uint8_t)(value >> shift));
}

/* The index: the number of symbols, the offsets of their members, their names. */
static void put_index(rt_bytes *out, const index *i, const uint64_t *places)
{
    put_header(out, "/", 4 + 4 * (uint64_t)i->count + i->names->size);
    put_big_endian(out, i->count);
    for (uint32_t k = 0; k < i->count; k++) {
        uint32_t member;
        memcpy(&member, i->members->data + 4 * (size_t)k, 4);
        put_big_endian(out, places[member]);
    }
    opjit_rt_bytes_append(out, i->names->data, i->names->size);
    put_even(out);
}

static opjit_status put_archive(const cg_archived *members, uint32_t count, index *i, rt_bytes *long_names,
                                uint64_t *numbers, rt_bytes *out, opjit_error *error)
{
    uint64_t *places = numbers, *names = numbers + count, at = 8 + HEADER;
    for (i->member = 0; i->member < count; i->member++) {
        const cg_archived *m = &members[i->member];
        names[i->member] = add_name(long_names, m->name);
        TRY(opjit_cg_link_symbols(m->object, m->bytes, note, i, error));
    }
    if (i->names->failed || i->members->failed || long_names->failed)
        return opjit_rt_no_memory(error);
    at += even(4 + 4 * (uint64_t)i->count + i->names->size);
    at += long_names->size == 0 ? 0 : HEADER + even(long_names->size);
    for (uint32_t k = 0; k < count; k++) {
        places[k] = at;
        at += HEADER + even(members[k].bytes);
    }
    if (at > UINT32_MAX)
        return opjit_rt_refuse(error, OPJIT_LIMIT, "{!codegen}{!bytes}a static library of more than 4 GiB");
    opjit_rt_bytes_append(out, "!<arch>\n", 8);
    put_index(out, i, places);
    if (long_names->size != 0) {
        put_header(out, "//", long_names->size);
        opjit_rt_bytes_append(out, long_names->data, long_names->size);
        put_even(out);
    }
    for (uint32_t k = 0; k < count; k++) {
        char name[SHORT_NAME + 16];
        if (names[k] == UINT64_MAX)
            snprintf(name, sizeof(name), "%.12s.o/", members[k].name);
        else
            snprintf(name, sizeof(name), "/%llu", (unsigned long long)names[k]);
        put_header(out, name, members[k].bytes);
        opjit_rt_bytes_append(out, members[k].object, members[k].bytes);
        put_even(out);
    }
    return out->failed ? opjit_rt_no_memory(error) : OPJIT_OK;
}

opjit_status opjit_cg_archive(const cg_archived *members, uint32_t count, rt_bytes *out, opjit_error *error)
{
    rt_bytes symbols, owners, long_names;
    rt_arena arena;
    index i = { .names = &symbols, .members = &owners };
    opjit_status status = OPJIT_OUT_OF_MEMORY;
    opjit_rt_bytes_init(&symbols, out->allocator);
    opjit_rt_bytes_init(&owners, out->allocator);
    opjit_rt_bytes_init(&long_names, out->allocator);
    opjit_rt_arena_init(&arena, out->allocator);
    uint64_t *numbers = ARENA_ARRAY(&arena, uint64_t, 2 * (size_t)count);
    status = numbers ? put_archive(members, count, &i, &long_names, numbers, out, error) : opjit_rt_no_memory(error);
    opjit_rt_arena_free(&arena);
    opjit_rt_bytes_free(&symbols);
    opjit_rt_bytes_free(&owners);
    opjit_rt_bytes_free(&long_names);
    return status;
}
