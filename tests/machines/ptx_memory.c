/* SPDX-License-Identifier: Apache-2.0 */
/* ptx_memory.c - memory accesses: registered ranges and a launch's own spaces.  Checks bounds, alignment and write
 * permission, and finds races by recording who touched a byte last. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/machines/ptx_internal.h"

struct ptx_trace {
    uint32_t writer, write_epoch, write_warp_epoch; /* threads by their number in the grid, from 1 */
    uint32_t reader, read_epoch, read_warp_epoch;
    uint8_t readers; /* one, or several of one warp, of one block, of several blocks */
    bool read_only;  /* by ld.global.nc */
};
enum { ONE_READER, READERS_OF_WARP, READERS_OF_BLOCK, READERS_OF_BLOCKS };

/* --- ranges ------------------------------------------------------------------------------------------------------ */
ptx_memory *ptx_memory_create(void)
{
    return calloc(1, sizeof(ptx_memory));
}

void ptx_memory_destroy(ptx_memory *m)
{
    if (m != NULL)
        free(m->ranges);
    free(m);
}

bool ptx_memory_add(ptx_memory *m, uint64_t address, void *host, size_t bytes, bool writable, const char *name)
{
    uint64_t end;

    if (bytes == 0 || __builtin_add_overflow(address, bytes, &end))
        return false;
    for (uint32_t i = 0; i < m->count; i++) {
        if (address < m->ranges[i].address + m->ranges[i].bytes && m->ranges[i].address < end)
            return false;
    }
    if (m->count == m->capacity) {
        ptx_range *more = realloc(m->ranges, (2 * m->capacity + 8) * sizeof *more);
        if (more == NULL)
            return false;
        m->ranges = more;
        m->capacity = 2 * m->capacity + 8;
    }
    ptx_range *range = &m->ranges[m->count++];
    *range = (ptx_range){ address, bytes, host, NULL, writable, "" };
    snprintf(range->name, sizeof range->name, "%s", name == NULL ? "a buffer" : name);
    return true;
}

bool ptx_memory_remove(ptx_memory *m, uint64_t address)
{
    for (uint32_t i = 0; i < m->count; i++) {
        if (m->ranges[i].address == address) {
            m->ranges[i] = m->ranges[--m->count];
            return true;
        }
    }
    return false;
}

bool ptx_memory_share(ptx_memory *m, void *host, size_t bytes, bool writable, const char *name)
{
    return ptx_memory_add(m, (uint64_t)(uintptr_t)host, host, bytes, writable, name);
}

static bool holds(const ptx_range *range, uint64_t address, uint64_t bytes)
{
    return address >= range->address && bytes <= range->bytes && address - range->address <= range->bytes - bytes;
}

void *ptx_memory_host(const ptx_memory *m, uint64_t address, size_t bytes)
{
    for (uint32_t i = 0; i < m->count; i++) {
        if (holds(&m->ranges[i], address, bytes))
            return m->ranges[i].host + (address - m->ranges[i].address);
    }
    return NULL;
}

/* --- races ------------------------------------------------------------------------------------------------------- */
bool ptx_traces_begin(ptx_runner *r)
{
    bool good = true;

    for (uint32_t i = 0; i < r->memory->count; i++) {
        r->memory->ranges[i].traces = calloc(r->memory->ranges[i].bytes, sizeof(ptx_trace));
        good = good && r->memory->ranges[i].traces != NULL;
    }
    r->globals.traces = calloc(r->globals.bytes + 1, sizeof(ptx_trace));
    r->shared_traces = calloc(r->shared_bytes + 1, sizeof(ptx_trace));
    return good && r->globals.traces != NULL && r->shared_traces != NULL;
}

void ptx_traces_end(ptx_runner *r)
{
    for (uint32_t i = 0; i < r->memory->count; i++) {
        free(r->memory->ranges[i].traces);
        r->memory->ranges[i].traces = NULL;
    }
    free(r->globals.traces);
    free(r->shared_traces);
    r->globals.traces = r->shared_traces = NULL;
}

void ptx_traces_of_shared_clear(ptx_runner *r)
{
    if (r->shared_traces != NULL)
        memset(r->shared_traces, 0, r->shared_bytes * sizeof(ptx_trace));
}

typedef struct toucher {
    uint32_t thread, epoch, warp_epoch;
} toucher;

/* Whether barriers order the access `before` before the access `now`. */
static bool ordered(const ptx_runner *r, toucher before, toucher now)
{
    const uint32_t a = before.thread - 1, b = now.thread - 1, block = b / r->threads * r->threads;

    if (a / r->threads != b / r->threads)
        return false;
    return before.epoch < now.epoch ||
           ((a - block) / LANES == (b - block) / LANES && before.warp_epoch < now.warp_epoch);
}

static bool readers_ordered(const ptx_runner *r, const ptx_trace *t, toucher now)
{
    const toucher reader = { t->reader, t->read_epoch, t->read_warp_epoch };

    if (t->reader == 0 || (t->readers == ONE_READER && t->reader == now.thread))
        return true;
    if (t->readers == READERS_OF_BLOCKS)
        return false;
    if (t->readers == READERS_OF_BLOCK)
        return (t->reader - 1) / r->threads == (now.thread - 1) / r->threads && t->read_epoch < now.epoch;
    return ordered(r, reader, now);
}

static void note_read(const ptx_runner *r, ptx_trace *t, toucher now)
{
    const uint32_t a = t->reader - 1, b = now.thread - 1, block = b / r->threads * r->threads;
    uint8_t readers = ONE_READER;

    if (t->reader != 0 && !readers_ordered(r, t, now)) {
        const bool one_block = a / r->threads == b / r->threads;
        const bool one_warp = one_block && (a - block) / LANES == (b - block) / LANES;
        readers = one_warp ? READERS_OF_WARP : one_block ? READERS_OF_BLOCK : READERS_OF_BLOCKS;
        if (t->readers > readers)
            readers = t->readers;
    }
    t->readers = readers;
    t->reader = now.thread;
    t->read_epoch = now.epoch;
    t->read_warp_epoch = now.warp_epoch;
}

static void name_thread(const ptx_runner *r, uint32_t thread, char *out, size_t size)
{
    const uint32_t *block = r->launch->block, *grid = r->launch->grid, t = (thread - 1) % r->threads,
                   b = (thread - 1) / r->threads;

    snprintf(out, size, "thread (%u,%u,%u) of block (%u,%u,%u)", t % block[0], t / block[0] % block[1],
             t / block[0] / block[1], b % grid[0], b / grid[0] % grid[1], b / grid[0] / grid[1]);
}

static bool trace(ptx_runner *r, ptx_warp *w, const ptx_ins *ins, uint32_t lane, ptx_trace *t, uint64_t address,
                  uint32_t bytes)
{
    const bool write = ins->op == OP_ST, read_only = (ins->flags & F_NC) != 0;
    const toucher now = { r->block_number * r->threads + w->number * LANES + lane + 1, r->epoch, w->epoch };
    char other[96];

    for (uint32_t i = 0; i < bytes; i++, t++) {
        const unsigned long long at = address + i;
        if (t->writer != 0 && t->writer != now.thread &&
            !ordered(r, (toucher){ t->writer, t->write_epoch, t->write_warp_epoch }, now)) {
            name_thread(r, t->writer, other, sizeof other);
            return ptx_fault(r, w, ins, lane, "race: the byte at 0x%llx was written by %s, and no barrier lies between",
                             at, other);
        }
        if (write && !readers_ordered(r, t, now)) {
            name_thread(r, t->reader, other, sizeof other);
            return ptx_fault(r, w, ins, lane, "race: the byte at 0x%llx was read by %s, and no barrier lies between",
                             at, other);
        }
        if ((write && t->read_only) || (read_only && t->writer != 0))
            return ptx_fault(r, w, ins, lane, "the byte at 0x%llx is written by this kernel and read by ld.global.nc",
                             at);
        t->read_only = t->read_only || read_only;
        if (write) {
            t->writer = now.thread;
            t->write_epoch = now.epoch;
            t->write_warp_epoch = now.warp_epoch;
            t->reader = 0;
        } else {
            note_read(r, t, now);
        }
    }
    return true;
}

/* --- accesses ---------------------------------------------------------------------------------------------------- */
static bool outside_of_ranges(ptx_runner *r, ptx_warp *w, const ptx_ins *ins, uint32_t lane, uint64_t address,
                              uint32_t bytes)
{
    const ptx_range *near = NULL;

    for (uint32_t i = 0; i < r->memory->count; i++) {
        const ptx_range *range = &r->memory->ranges[i];
        if (range->address <= address && (near == NULL || range->address > near->address))
            near = range;
    }
    if (near == NULL)
        return ptx_fault(r, w, ins, lane, "0x%llx: %u bytes that are no device memory", (unsigned long long)address,
                         bytes);
    return ptx_fault(r, w, ins, lane, "0x%llx: %u bytes at offset %llu of %s, which has %llu, and in no other memory",
                     (unsigned long long)address, bytes, (unsigned long long)(address - near->address), near->name,
                     (unsigned long long)near->bytes);
}

static bool global(ptx_runner *r, ptx_warp *w, const ptx_ins *ins, uint32_t lane, uint64_t address, uint32_t bytes,
                   uint8_t **out)
{
    ptx_range *range = r->last_range < r->memory->count ? &r->memory->ranges[r->last_range] : NULL;

    if (range == NULL || !holds(range, address, bytes)) {
        range = holds(&r->globals, address, bytes) ? &r->globals : NULL;
        for (uint32_t i = 0; i < r->memory->count && range == NULL; i++) {
            if (holds(&r->memory->ranges[i], address, bytes)) {
                range = &r->memory->ranges[i];
                r->last_range = i;
            }
        }
        if (range == NULL)
            return outside_of_ranges(r, w, ins, lane, address, bytes);
    }
    if (ins->op == OP_ST && !range->writable)
        return ptx_fault(r, w, ins, lane, "0x%llx: a store to %s, which is only to be read",
                         (unsigned long long)address, range->name);
    *out = range->host + (address - range->address);
    return range->traces == NULL || trace(r, w, ins, lane, range->traces + (address - range->address), address, bytes);
}

typedef struct part {
    uint8_t *memory;
    uint64_t bytes;
    const char *name;
    bool constant;
} part; /* of memory: offsets from 0 */

static bool within(ptx_runner *r, ptx_warp *w, const ptx_ins *ins, uint32_t lane, part p, uint64_t offset,
                   uint32_t bytes, uint8_t **out)
{
    if (bytes > p.bytes || offset > p.bytes - bytes)
        return ptx_fault(r, w, ins, lane, "0x%llx: %u bytes in %llu of %s", (unsigned long long)offset, bytes,
                         (unsigned long long)p.bytes, p.name);
    if (p.constant && ins->op == OP_ST)
        return ptx_fault(r, w, ins, lane, "a store to %s", p.name);
    *out = p.memory + offset;
    return true;
}

static bool locate(ptx_runner *r, ptx_warp *w, const ptx_ins *ins, uint32_t lane, uint64_t address, uint32_t bytes,
                   uint8_t **out)
{
    const part shared = { r->shared, r->shared_bytes, "shared memory", false };
    const part local = { w->local + (uint64_t)lane * r->local_bytes, r->local_bytes, "local memory", false };
    const part constant = { r->module->constants, r->module->constant_bytes, "constant memory", true };
    const part params = { r->params, r->entry->entry_bytes, "the kernel's parameters", true };
    const part frames = { w->frames + (uint64_t)lane * r->frame_bytes, r->frame_bytes, "a call's parameters", false };
    ptx_space space = (ptx_space)ins->space;
    uint64_t offset = address;

    if (space == SPACE_GENERIC) {
        const uint64_t window = address & WINDOW_MASK;
        space = window == WINDOW_SHARED  ? SPACE_SHARED
                : window == WINDOW_LOCAL ? SPACE_LOCAL
                : window == WINDOW_CONST ? SPACE_CONST
                : window == WINDOW_PARAM ? SPACE_PARAM
                                         : SPACE_GLOBAL;
        offset = space == SPACE_GLOBAL ? address : address & ~WINDOW_MASK;
    }
    switch (space) {
    case SPACE_SHARED:
        return within(r, w, ins, lane, shared, offset, bytes, out) &&
               (r->shared_traces == NULL || trace(r, w, ins, lane, r->shared_traces + offset, offset, bytes));
    case SPACE_LOCAL: return within(r, w, ins, lane, local, offset, bytes, out);
    case SPACE_CONST: return within(r, w, ins, lane, constant, offset, bytes, out);
    case SPACE_PARAM:
        return offset < CALL_PARAMS ? within(r, w, ins, lane, params, offset, bytes, out)
                                    : within(r, w, ins, lane, frames, offset - CALL_PARAMS, bytes, out);
    default: return global(r, w, ins, lane, address, bytes, out);
    }
}

static void move(ptx_runner *r, const ptx_ins *ins, uint64_t *rows, uint32_t lane, uint8_t *memory)
{
    const bool load = ins->op == OP_LD, is_signed = ptx_types[ins->type].kind == 's', wide = ins->type == T_B128;
    const uint32_t size = wide ? 8 : ptx_types[ins->type].size, count = wide ? 2 : ins->vector;

    (void)r;
    for (uint32_t i = 0; i < count; i++, memory += size) {
        const uint32_t slot = wide   ? (load ? ins->dest[0] : ins->source[1]) + i
                              : load ? ins->dest[i]
                                     : ins->source[1 + i];
        uint64_t *value = &rows[(uint64_t)slot * LANES + lane], loaded = 0;
        if (!load) {
            memcpy(memory, value, size);
            continue;
        }
        memcpy(&loaded, memory, size);
        if (is_signed && size < 8)
            loaded = (uint64_t)((int64_t)(loaded << (64 - 8 * size)) >> (64 - 8 * size));
        *value = wide || ins->dest_size >= 8 ? loaded : loaded & ((UINT64_C(1) << 8 * ins->dest_size) - 1);
    }
}

static void count_sectors(ptx_runner *r, const ptx_ins *ins, const uint64_t *addresses, uint32_t mask, uint32_t bytes)
{
    uint64_t seen[2 * LANES];
    uint32_t count = 0, lanes = 0;

    FOR_LANES (l, mask) {
        lanes++;
        for (uint64_t sector = addresses[l] / 32; sector <= (addresses[l] + bytes - 1) / 32; sector++) {
            uint32_t i = count;
            while (i > 0 && seen[i - 1] != sector)
                i--;
            if (i == 0)
                seen[count++] = sector;
        }
    }
    if (ins->op == OP_LD) {
        r->stats.loads++;
        r->stats.load_sectors += count;
        r->stats.load_bytes += (uint64_t)lanes * bytes;
    } else {
        r->stats.stores++;
        r->stats.store_sectors += count;
        r->stats.store_bytes += (uint64_t)lanes * bytes;
    }
}

bool ptx_access(ptx_runner *r, ptx_warp *w, const ptx_ins *ins, uint32_t base, uint32_t mask)
{
    uint64_t *rows = w->regs + (uint64_t)base * LANES, addresses[LANES];
    const uint64_t *bases = rows + (uint64_t)ins->source[0] * LANES;
    const uint32_t bytes = (uint32_t)ptx_types[ins->type].size * ins->vector;

    FOR_LANES (l, mask) {
        const uint64_t address = addresses[l] = bases[l] + (uint64_t)ins->offset;
        uint8_t *memory = NULL;
        if (address % bytes != 0)
            return ptx_fault(r, w, ins, l, "0x%llx: %u bytes at no multiple of %u", (unsigned long long)address, bytes,
                             bytes);
        if (!locate(r, w, ins, l, address, bytes, &memory))
            return false;
        move(r, ins, rows, l, memory);
    }
    if (ins->space == SPACE_GLOBAL && mask != 0)
        count_sectors(r, ins, addresses, mask, bytes);
    return true;
}

/* cvta: between a space and generic addresses. */
bool ptx_convert_address(ptx_runner *r, ptx_warp *w, const ptx_ins *ins, uint32_t base, uint32_t mask)
{
    static const uint64_t windows[] = { [SPACE_SHARED] = WINDOW_SHARED,
                                        [SPACE_LOCAL] = WINDOW_LOCAL,
                                        [SPACE_CONST] = WINDOW_CONST,
                                        [SPACE_PARAM] = WINDOW_PARAM };
    uint64_t *rows = w->regs + (uint64_t)base * LANES;
    const uint64_t window = windows[ins->space];

    FOR_LANES (l, mask) {
        const uint64_t x = rows[(uint64_t)ins->source[0] * LANES + l];
        if (window != 0 && (ins->flags & F_TO) != 0 && (x & WINDOW_MASK) != window)
            return ptx_fault(r, w, ins, l, "0x%llx is no address of that space", (unsigned long long)x);
        rows[(uint64_t)ins->dest[0] * LANES + l] = window == 0                ? x
                                                   : (ins->flags & F_TO) != 0 ? x & ~WINDOW_MASK
                                                                              : x | window;
    }
    return true;
}
