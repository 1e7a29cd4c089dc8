/* SPDX-License-Identifier: Apache-2.0 */
/* base.c - memory, arena, byte strings, element types, hash.  Nothing here knows kernels or operators. */
#define _DEFAULT_SOURCE
#include "runtime/base/base.h"

#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

/* --- memory ------------------------------------------------------------------------------------------------------ */

static void *default_allocate(void *user, size_t size, size_t alignment)
{
    (void)user;
    if (alignment <= alignof(max_align_t))
        return malloc(size);
    if (size > SIZE_MAX - alignment)
        return NULL;
    return aligned_alloc(alignment, (size_t)align_up(size, alignment));
}

static void default_release(void *user, void *memory, size_t size)
{
    (void)user;
    (void)size;
    free(memory);
}

const opjit_allocator opjit_rt_default_allocator = { NULL, default_allocate, default_release };

void *opjit_rt_allocate(const opjit_allocator *a, size_t size, size_t alignment)
{
    return a->allocate(a->user, size == 0 ? 1 : size, alignment);
}

enum { LARGE_PAGE = 2 << 20 }; /* x86-64's, and AArch64's with pages of 4 KiB */

void *opjit_rt_allocate_data(const opjit_allocator *a, size_t size, size_t alignment)
{
    const bool is_large = size >= LARGE_PAGE / 2;
    void *const memory = opjit_rt_allocate(a, size, is_large && alignment < LARGE_PAGE ? LARGE_PAGE : alignment);
#ifdef MADV_HUGEPAGE
    const size_t pages = (size + LARGE_PAGE / 2) / LARGE_PAGE; /* the last one where half of it is used */
    if (memory != NULL && is_large) /* whoever's memory it is: advice changes nothing that can be seen */
        (void)madvise(memory, pages * LARGE_PAGE, MADV_HUGEPAGE);
#endif
    return memory;
}

void opjit_rt_release(const opjit_allocator *a, void *memory, size_t size)
{
    if (memory != NULL)
        a->release(a->user, memory, size == 0 ? 1 : size);
}

/* --- arena ------------------------------------------------------------------------------------------------------- */

enum { ARENA_ALIGNMENT = 16, ARENA_FIRST_BLOCK = 4096, ARENA_DOUBLED_BLOCK = 512 << 10,
       ARENA_SMALL_PAGES = 4 << 20 };

struct rt_arena_block {
    alignas(ARENA_ALIGNMENT) rt_arena_block *next;
    size_t capacity; /* bytes after this header */
};

void opjit_rt_arena_init(rt_arena *arena, const opjit_allocator *allocator)
{
    *arena = (rt_arena){ .allocator = allocator };
}

_Static_assert(sizeof(rt_arena_block) == RT_ARENA_HEADER, "RT_ARENA_HEADER is the size of a block's header");

void opjit_rt_arena_init_in(rt_arena *arena, const opjit_allocator *allocator, void *memory, size_t size)
{
    rt_arena_block *block = memory;

    *block = (rt_arena_block){ .capacity = size - sizeof *block };
    *arena = (rt_arena){ .allocator = allocator, .blocks = block, .borrowed = block };
}

static void arena_release(const rt_arena *arena, rt_arena_block *block)
{
    if (block != NULL)
        opjit_rt_release(arena->allocator, block, sizeof *block + block->capacity);
}

void opjit_rt_arena_rewind(rt_arena *arena, rt_arena_mark mark)
{
    while (arena->blocks != mark.block) {
        rt_arena_block *block = arena->blocks, *spare = arena->spare;
        arena->blocks = block->next;
        if (block == arena->borrowed)
            continue;
        if (spare == NULL || spare->capacity < block->capacity) {
            arena->spare = block;
            block = spare;
        }
        arena_release(arena, block);
    }
    arena->used = mark.used;
}

void opjit_rt_arena_free(rt_arena *arena)
{
    opjit_rt_arena_rewind(arena, (rt_arena_mark){ NULL, 0 });
    arena_release(arena, arena->spare);
    arena->spare = NULL;
}

size_t opjit_rt_arena_bytes(const rt_arena *arena)
{
    size_t bytes = 0;

    for (const rt_arena_block *block = arena->blocks; block != NULL; block = block->next)
        bytes += block == arena->borrowed ? 0 : sizeof *block + block->capacity;
    return bytes;
}

/* Returns a block of at least size bytes.  Blocks double in size, so that a large function needs few calls of the
 * hook; an arena that has filled four megabytes takes large pages. */
static rt_arena_block *arena_block(rt_arena *arena, size_t size)
{
    const size_t last = arena->blocks == NULL ? ARENA_FIRST_BLOCK / 2 : arena->blocks->capacity;
    size_t capacity = opjit_rt_arena_bytes(arena) >= ARENA_SMALL_PAGES ? LARGE_PAGE - sizeof(rt_arena_block)
                      : last >= ARENA_DOUBLED_BLOCK / 2                ? ARENA_DOUBLED_BLOCK
                                                                       : last * 2;
    rt_arena_block *block;

    if (arena->spare != NULL && arena->spare->capacity >= size) {
        block = arena->spare;
        arena->spare = NULL;
        return block;
    }
    if (capacity < size)
        capacity = size;
    block = opjit_rt_allocate_data(arena->allocator, sizeof *block + capacity, ARENA_ALIGNMENT);
    if (block != NULL)
        block->capacity = capacity;
    return block;
}

/* Takes uninitialised memory for count elements and returns its size in bytes. */
static void *arena_take(rt_arena *arena, size_t count, size_t size, size_t *out_bytes)
{
    rt_arena_block *block = arena->blocks;
    uint64_t bytes;
    void *memory;

    if (!checked_mul(count, size, &bytes) || bytes > SIZE_MAX / 2)
        return NULL;
    bytes = align_up(bytes == 0 ? 1 : bytes, ARENA_ALIGNMENT);
    if (block == NULL || bytes > block->capacity - arena->used) {
        block = arena_block(arena, (size_t)bytes);
        if (block == NULL)
            return NULL;
        block->next = arena->blocks;
        arena->blocks = block;
        arena->used = 0;
    }
    memory = (unsigned char *)(block + 1) + arena->used;
    arena->used += (size_t)bytes;
    *out_bytes = (size_t)bytes;
    return memory;
}

void *opjit_rt_arena_allocate(rt_arena *arena, size_t count, size_t size)
{
    size_t bytes;
    void *memory = arena_take(arena, count, size, &bytes);

    return memory == NULL ? NULL : memset(memory, 0, bytes);
}

void *opjit_rt_arena_reserve(rt_arena *arena, size_t size)
{
    size_t bytes;

    return arena_take(arena, 1, size, &bytes);
}

void *opjit_rt_arena_copy(rt_arena *arena, const void *from, size_t count, size_t size)
{
    size_t bytes;
    void *memory = arena_take(arena, count, size, &bytes);

    if (memory != NULL && count * size != 0)
        memcpy(memory, from, count * size);
    return memory;
}

char *opjit_rt_arena_string(rt_arena *arena, const char *text, size_t length)
{
    char *copy = length == SIZE_MAX ? NULL : opjit_rt_arena_allocate(arena, length + 1, 1);
    if (copy != NULL && length != 0)
        memcpy(copy, text, length);
    return copy;
}

/* --- byte strings ------------------------------------------------------------------------------------------------ */

void opjit_rt_bytes_init(rt_bytes *b, const opjit_allocator *allocator)
{
    *b = (rt_bytes){ .allocator = allocator };
}

void opjit_rt_bytes_init_in(rt_bytes *b, const opjit_allocator *allocator, void *memory, size_t size)
{
    *b = (rt_bytes){ .allocator = allocator, .data = memory, .capacity = size, .borrowed = true };
}

static void bytes_release(const rt_bytes *b)
{
    if (!b->borrowed)
        opjit_rt_release(b->allocator, b->data, b->capacity);
}

void opjit_rt_bytes_free(rt_bytes *b)
{
    bytes_release(b);
    opjit_rt_bytes_init(b, b->allocator);
}

/* Moves the data to memory with room for extra more bytes, or fails. */
static bool bytes_grow(rt_bytes *b, size_t extra)
{
    size_t capacity;
    uint8_t *data;

    if (extra > SIZE_MAX / 4 - b->size) {
        b->failed = true;
        return false;
    }
    capacity = b->capacity < 64 ? 64 : b->capacity * 2;
    if (capacity < b->size + extra)
        capacity = b->size + extra;
    data = opjit_rt_allocate(b->allocator, capacity, ARENA_ALIGNMENT);
    if (data == NULL) {
        b->failed = true;
        return false;
    }
    if (b->size != 0)
        memcpy(data, b->data, b->size);
    bytes_release(b);
    b->data = data;
    b->capacity = capacity;
    b->borrowed = false;
    return true;
}

/* Makes room for extra more bytes; false: failed. */
static inline bool bytes_reserve(rt_bytes *b, size_t extra)
{
    return !b->failed && (extra <= b->capacity - b->size || bytes_grow(b, extra));
}

/* Inline, because keys are written number by number: each number is then one store. */
static inline void bytes_put(rt_bytes *b, const void *data, size_t size)
{
    if (bytes_reserve(b, size)) {
        memcpy(b->data + b->size, data, size);
        b->size += size;
    }
}

void opjit_rt_bytes_reserve(rt_bytes *b, size_t extra)
{
    (void)bytes_reserve(b, extra);
}

void opjit_rt_bytes_append(rt_bytes *b, const void *data, size_t size)
{
    if (size != 0)
        bytes_put(b, data, size);
}

uint8_t *opjit_rt_bytes_extend(rt_bytes *b, size_t size)
{
    if (!bytes_reserve(b, size))
        return NULL;
    b->size += size;
    return b->data + (b->size - size);
}

void opjit_rt_bytes_u8(rt_bytes *b, uint8_t value)
{
    bytes_put(b, &value, 1);
}

void opjit_rt_bytes_u32(rt_bytes *b, uint32_t value)
{
    const uint8_t bytes[] = { (uint8_t)value, (uint8_t)(value >> 8), (uint8_t)(value >> 16), (uint8_t)(value >> 24) };

    bytes_put(b, bytes, sizeof bytes);
}

void opjit_rt_bytes_u64(rt_bytes *b, uint64_t value)
{
    /* spelled out, so that the compiler makes one store of it */
    const uint8_t bytes[] = { (uint8_t)value,         (uint8_t)(value >> 8),  (uint8_t)(value >> 16),
                              (uint8_t)(value >> 24), (uint8_t)(value >> 32), (uint8_t)(value >> 40),
                              (uint8_t)(value >> 48), (uint8_t)(value >> 56) };

    bytes_put(b, bytes, sizeof bytes);
}

void opjit_rt_bytes_str(rt_bytes *b, const char *text)
{
    const size_t length = text == NULL ? 0 : strlen(text);
    if (length > UINT32_MAX) {
        b->failed = true;
        return;
    }
    opjit_rt_bytes_u32(b, (uint32_t)length);
    opjit_rt_bytes_append(b, text, length);
}

void opjit_rt_bytes_align(rt_bytes *b, size_t alignment)
{
    const size_t over = b->size % alignment;
    const size_t extra = over == 0 ? 0 : alignment - over;
    if (extra != 0 && bytes_reserve(b, extra)) {
        memset(b->data + b->size, 0, extra);
        b->size += extra;
    }
}

void opjit_rt_bytes_printf(rt_bytes *b, const char *format, ...)
{
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0) {
        b->failed = true;
        return;
    }
    if (!bytes_reserve(b, (size_t)length + 1))
        return;
    va_start(arguments, format);
    if (vsnprintf((char *)b->data + b->size, (size_t)length + 1, format, arguments) == length)
        b->size += (size_t)length;
    else
        b->failed = true;
    va_end(arguments);
}

void opjit_rt_bytes_zero_end(rt_bytes *b)
{
    if (bytes_reserve(b, 1))
        b->data[b->size] = 0;
}

/* --- element types ------------------------------------------------------------------------------------------------ */

static const struct dtype_row {
    const char *name, *brief;
    uint32_t size;
} dtypes[] = {
    [DML_TENSOR_DATA_TYPE_UNKNOWN] = { "unknown", "?", 0 },   [DML_TENSOR_DATA_TYPE_FLOAT32] = { "FLOAT32", "f32", 4 },
    [DML_TENSOR_DATA_TYPE_FLOAT16] = { "FLOAT16", "f16", 2 }, [DML_TENSOR_DATA_TYPE_UINT32] = { "UINT32", "u32", 4 },
    [DML_TENSOR_DATA_TYPE_UINT16] = { "UINT16", "u16", 2 },   [DML_TENSOR_DATA_TYPE_UINT8] = { "UINT8", "u8", 1 },
    [DML_TENSOR_DATA_TYPE_INT32] = { "INT32", "i32", 4 },     [DML_TENSOR_DATA_TYPE_INT16] = { "INT16", "i16", 2 },
    [DML_TENSOR_DATA_TYPE_INT8] = { "INT8", "i8", 1 },        [DML_TENSOR_DATA_TYPE_FLOAT64] = { "FLOAT64", "f64", 8 },
    [DML_TENSOR_DATA_TYPE_UINT64] = { "UINT64", "u64", 8 },   [DML_TENSOR_DATA_TYPE_INT64] = { "INT64", "i64", 8 },
    [DML_TENSOR_DATA_TYPE_UINT4] = { "UINT4", "u4", 0 },      [DML_TENSOR_DATA_TYPE_INT4] = { "INT4", "i4", 0 },
};

static const struct dtype_row *dtype_row(DML_TENSOR_DATA_TYPE type)
{
    const size_t index = (size_t)type;
    return &dtypes[index < sizeof dtypes / sizeof *dtypes ? index : DML_TENSOR_DATA_TYPE_UNKNOWN];
}

uint32_t opjit_rt_dtype_size(DML_TENSOR_DATA_TYPE type)
{
    return dtype_row(type)->size;
}

uint64_t opjit_rt_dtype_bytes(DML_TENSOR_DATA_TYPE type, uint64_t count)
{
    return rt_dtype_is_half_byte(type) ? (count + 1) / 2 : count * opjit_rt_dtype_size(type);
}

const char *opjit_rt_dtype_name(DML_TENSOR_DATA_TYPE type)
{
    return dtype_row(type)->name;
}

const char *opjit_rt_dtype_short(DML_TENSOR_DATA_TYPE type)
{
    return dtype_row(type)->brief;
}

/* --- words -------------------------------------------------------------------------------------------------------- */

bool opjit_rt_word_is_in(const char *words, const char *word, size_t length)
{
    for (const char *at = words; (at = strchr(at, ' ')) != NULL && at[1] != '\0'; at++)
        if (length != 0 && strncmp(at + 1, word, length) == 0 && at[1 + length] == ' ')
            return true;
    return false;
}

/* --- hash -------------------------------------------------------------------------------------------------------- */

rt_hash opjit_rt_hash(const void *data, size_t size)
{
    const XXH128_hash_t hash = XXH3_128bits(data, size);
    return (rt_hash){ hash.low64, hash.high64 };
}

rt_hash opjit_rt_hash_seeded(const void *data, size_t size, uint64_t seed)
{
    const XXH128_hash_t hash = XXH3_128bits_withSeed(data, size, seed);
    return (rt_hash){ hash.low64, hash.high64 };
}

uint64_t opjit_rt_hash64(const void *data, size_t size)
{
    return XXH3_64bits(data, size);
}

void opjit_rt_hex(uint64_t value, uint32_t digits, char *out)
{
    while (digits-- != 0) {
        out[digits] = "0123456789abcdef"[value & 15];
        value >>= 4;
    }
}

size_t opjit_rt_page_size(void)
{
    const long page = sysconf(_SC_PAGESIZE);

    return page > 0 ? (size_t)page : 4096;
}
