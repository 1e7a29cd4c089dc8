/* SPDX-License-Identifier: Apache-2.0 */
/* base.h - what everything else stands on: errors, memory, bytes, checked arithmetic, element types.  Knows no IR, no
 * LLVM and no operator. */
#ifndef OPJIT_RUNTIME_BASE_BASE_H
#define OPJIT_RUNTIME_BASE_BASE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <opjit/dml.h>
#include <opjit/status.h>

/* --- errors ------------------------------------------------------------------------------------------------------ */
#if defined(__GNUC__)
#define PRINTF_LIKE(at, first) __attribute__((format(printf, at, first)))
#define OUT_OF_LINE __attribute__((noinline)) /* for functions that a fast path calls rarely: saves its registers */
#define COLD __attribute__((noinline, cold))  /* for functions that run when something is wrong: made small */
#else
#define PRINTF_LIKE(at, first)
#define COLD
#define OUT_OF_LINE
#endif

/* Fills *error (may be NULL) and returns status.  Control characters and bytes that are not UTF-8 become '?', so that
 * the message is one printable line whatever a user's name contains. */
opjit_status opjit_rt_error_set(opjit_error *error, opjit_status status, const char *format, ...) PRINTF_LIKE(3, 4);
/* The same for a value that is refused.  The format marks with braces, in this order, what the value belongs to, the
 * path of its field, and the value: "{%s} {%s.Sizes[%u]}: {%u}, must be at least 1".  The message has no braces; what
 * they mark goes to op, field with index, and value of *error.  {!words} go there alone and not into the message.  The
 * last ones may be left out. */
opjit_status opjit_rt_refuse(opjit_error *error, opjit_status status, const char *format, ...) PRINTF_LIKE(3, 4);
/* INVALID_ARGUMENT, "<argument> is NULL". */
opjit_status opjit_rt_refuse_null(opjit_error *error, const char *argument);
/* INVALID_ARGUMENT, unless *a has both functions. */
opjit_status opjit_rt_check_allocator(const opjit_allocator *a, opjit_error *error);
/* Says where it is, for a message that has other words for it.  op and field may be NULL: they stay.  index -1: the
 * field as a whole.  Returns status. */
opjit_status opjit_rt_place(opjit_error *error, opjit_status status, const char *op, const char *field, int32_t index);
/* Says that the same call may succeed later, where the status alone does not (a busy device).  Returns status. */
opjit_status opjit_rt_later(opjit_error *error, opjit_status status);
/* Copies the error, place and all.  Returns its status. */
opjit_status opjit_rt_error_copy(opjit_error *error, const opjit_error *from);
/* Says which node of a graph it is.  Returns status. */
opjit_status opjit_rt_at_node(opjit_error *error, opjit_status status, uint32_t node);
/* Prefixes the message in *error: "<context>: <message>". */
void opjit_rt_error_prefix(opjit_error *error, const char *format, ...) PRINTF_LIKE(2, 3);
/* Whether the word is one of words, each of which stands between two spaces. */
bool opjit_rt_word_is_in(const char *words, const char *word, size_t length);
/* Makes text one printable line in place: control characters and bytes that are not valid UTF-8 become '?'. */
void opjit_rt_printable(char *text);
/* Clears *error (may be NULL) at the entry of a public function. */
static inline void opjit_rt_error_clear(opjit_error *error)
{
    if (error != NULL)
        memset(error, 0, sizeof error->status + 4); /* OPJIT_OK and an empty message in one store */
}
opjit_status opjit_rt_no_memory(opjit_error *error); /* OPJIT_OUT_OF_MEMORY, "out of memory" */
opjit_status opjit_rt_cancelled(opjit_error *error); /* OPJIT_CANCELLED, "the job was cancelled" */

size_t opjit_rt_page_size(void); /* of the system's memory */

/* A public structure whose first field is a uint32_t struct_size, with the sizes of all its versions, oldest first.
 * RT_SIZE_TO names a version's last field.  The newest size is that of the whole structure, which RT_STRUCT_ENDS_WITH
 * asserts beside the table.  A change that adds fields (8 bytes at a time) adds a size and updates the assertion. */
typedef struct rt_struct {
    const char *name;
    uint32_t sizes[6]; /* 0 after the last */
} rt_struct;
#define RT_SIZE_TO(type, field) ((uint32_t)(offsetof(type, field) + sizeof(((type *)0)->field)))
#define RT_STRUCT_ENDS_WITH(type, field) \
    _Static_assert(RT_SIZE_TO(type, field) == sizeof(type), "the newest size of " #type " is that of all its fields")
#define RT_STRUCT_MOST 4096u /* the largest size that a future version may have */
/* Both refuse a struct_size that no version had.  A larger one belongs to a newer caller.
 * read: copies given into *out at the newest size.  Fields that given lacks become 0; a non-zero byte past the newest
 * size is refused.
 * write: copies full into *out up to the caller's struct_size, which stays, and never past the newest size. */
opjit_status opjit_rt_struct_read(const rt_struct *type, void *out, const void *given, opjit_error *error);
opjit_status opjit_rt_struct_write(const rt_struct *type, void *out, const void *full, opjit_error *error);

#define TRY(call)                                \
    do {                                         \
        const opjit_status try_status_ = (call); \
        if (try_status_ != OPJIT_OK)             \
            return try_status_;                  \
    } while (0)

/* --- memory ------------------------------------------------------------------------------------------------------ */
/* malloc and free with the hook's signature: the library's only call of malloc. */
extern const opjit_allocator opjit_rt_default_allocator;

void *opjit_rt_allocate(const opjit_allocator *a, size_t size, size_t alignment); /* NULL: no memory; size 0: 1 byte */
/* Likewise for data that calls read from end to end: of many bytes, the system is asked for large pages. */
void *opjit_rt_allocate_data(const opjit_allocator *a, size_t size, size_t alignment);
void opjit_rt_release(const opjit_allocator *a, void *memory, size_t size);       /* NULL is fine */

/* A bump allocator for compile-time data: zeroed memory, no per-object free. */
typedef struct rt_arena_block rt_arena_block;
typedef struct rt_arena {
    const opjit_allocator *allocator;
    rt_arena_block *blocks; /* newest first */
    size_t used;            /* bytes of the newest block handed out */
    const void *borrowed;   /* the block in memory of the caller's, or NULL */
    rt_arena_block *spare;  /* the largest rewound block, kept for reuse; or NULL */
} rt_arena;
void opjit_rt_arena_init(rt_arena *arena, const opjit_allocator *allocator);
/* Uses up the given memory (16-byte aligned; size a multiple of 16, at least RT_ARENA_HEADER) before it asks the
 * allocator. */
void opjit_rt_arena_init_in(rt_arena *arena, const opjit_allocator *allocator, void *memory, size_t size);
#define RT_ARENA_HEADER 16u /* bytes of that memory that the arena itself takes */
void opjit_rt_arena_free(rt_arena *arena);
size_t opjit_rt_arena_bytes(const rt_arena *arena); /* bytes it holds from the allocator */
/* Zeroed, 16-byte aligned; NULL: no memory, or count * size overflows. */
void *opjit_rt_arena_allocate(rt_arena *arena, size_t count, size_t size);
void *opjit_rt_arena_reserve(rt_arena *arena, size_t size); /* likewise, but not zeroed */
void *opjit_rt_arena_copy(rt_arena *arena, const void *from, size_t count, size_t size); /* aligned likewise */
char *opjit_rt_arena_string(rt_arena *arena, const char *text, size_t length); /* copy, NUL-terminated */
/* A position to return to.  Rewinding frees everything allocated since, and nothing older. */
typedef struct rt_arena_mark { rt_arena_block *block; size_t used; } rt_arena_mark;
static inline rt_arena_mark rt_arena_position(const rt_arena *arena)
{
    return (rt_arena_mark){ arena->blocks, arena->used };
}
void opjit_rt_arena_rewind(rt_arena *arena, rt_arena_mark mark);
#define ARENA_ARRAY(arena, type, count) ((type *)opjit_rt_arena_allocate((arena), (count), sizeof(type)))
#define ARENA_NEW(arena, type) ARENA_ARRAY(arena, type, 1)

/* Writes a number in as few bytes as it needs, 7 bits in each, the lowest first; returns where it ends.  No number
 * begins like another one. */
#define RT_NUMBER_MOST 10u /* bytes of the longest, of 32 bits 5 */
static inline uint8_t *rt_put_number(uint8_t *at, uint64_t value)
{
    for (; value >= 128; value >>= 7)
        *at++ = (uint8_t)(value | 128);
    *at++ = (uint8_t)value;
    return at;
}

/* A growable byte string.  After a failed growth `failed` stays set, data keeps its contents and appends do nothing, so
 * that a writer checks once, at its end. */
typedef struct rt_bytes {
    const opjit_allocator *allocator;
    uint8_t *data;
    size_t size, capacity;
    bool failed, borrowed; /* borrowed: data is still the caller's memory */
} rt_bytes;
void opjit_rt_bytes_init(rt_bytes *b, const opjit_allocator *allocator);
/* Fills the given memory before it asks the allocator; that memory must live as long as *b. */
void opjit_rt_bytes_init_in(rt_bytes *b, const opjit_allocator *allocator, void *memory, size_t size);
void opjit_rt_bytes_free(rt_bytes *b);
void opjit_rt_bytes_append(rt_bytes *b, const void *data, size_t size);
/* Makes room for that many more bytes at once; data stays what it is. */
void opjit_rt_bytes_reserve(rt_bytes *b, size_t extra);
/* Extends b by size uninitialised bytes and returns them; NULL: failed. */
uint8_t *opjit_rt_bytes_extend(rt_bytes *b, size_t size);
void opjit_rt_bytes_u8(rt_bytes *b, uint8_t value);
void opjit_rt_bytes_u32(rt_bytes *b, uint32_t value);   /* little endian */
void opjit_rt_bytes_u64(rt_bytes *b, uint64_t value);
void opjit_rt_bytes_str(rt_bytes *b, const char *text); /* length (u32), then the characters; NULL as "" */
void opjit_rt_bytes_align(rt_bytes *b, size_t alignment);                      /* zero bytes up to a multiple */
void opjit_rt_bytes_printf(rt_bytes *b, const char *format, ...) PRINTF_LIKE(2, 3); /* text, no NUL appended */
void opjit_rt_bytes_zero_end(rt_bytes *b); /* appends a NUL that size does not count */

/* --- checked arithmetic: false on overflow, *out unspecified then ----------------------------------------------- */
static inline bool checked_add(uint64_t a, uint64_t b, uint64_t *out) { return !__builtin_add_overflow(a, b, out); }
static inline bool checked_mul(uint64_t a, uint64_t b, uint64_t *out) { return !__builtin_mul_overflow(a, b, out); }
static inline bool checked_addi(int64_t a, int64_t b, int64_t *out) { return !__builtin_add_overflow(a, b, out); }
static inline bool checked_subi(int64_t a, int64_t b, int64_t *out) { return !__builtin_sub_overflow(a, b, out); }
static inline bool checked_muli(int64_t a, int64_t b, int64_t *out) { return !__builtin_mul_overflow(a, b, out); }
/* Wraps above 2^64 - power_of_two: for numbers that a limit, or the size of real memory, keeps far below. */
static inline uint64_t align_up(uint64_t x, uint64_t power_of_two)
{
    return (x + power_of_two - 1) & ~(power_of_two - 1);
}
static inline int64_t gcd(int64_t a, int64_t b) /* of numbers from 0 on */
{
    while (b != 0) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}
static inline bool is_power_of_two(uint64_t x) { return x != 0 && (x & (x - 1)) == 0; }

/* The largest tensor in bytes, so that sums over the tensors of a kernel stay far below 2^64. */
#define RT_TENSOR_BYTES_MAX (UINT64_C(1) << 40)

/* --- element types ---------------------------------------------------------------------------------------------- */
/* Bytes per element; 0 for UNKNOWN, the 4-bit types and numbers that are not a type. */
uint32_t opjit_rt_dtype_size(DML_TENSOR_DATA_TYPE type);
/* Bytes of so many elements side by side: two of a 4-bit type in each, the first in its lower half.  0 as above, except
 * for these.  count: at most 2^60. */
uint64_t opjit_rt_dtype_bytes(DML_TENSOR_DATA_TYPE type, uint64_t count);
static inline bool rt_dtype_is_half_byte(DML_TENSOR_DATA_TYPE type)
{
    return type == DML_TENSOR_DATA_TYPE_UINT4 || type == DML_TENSOR_DATA_TYPE_INT4;
}
const char *opjit_rt_dtype_name(DML_TENSOR_DATA_TYPE type);  /* "FLOAT32"; "unknown" */
const char *opjit_rt_dtype_short(DML_TENSOR_DATA_TYPE type); /* "f32"; "?" */

/* --- hash: XXH3 ------------------------------------------------------------------------------------------------- */
typedef struct rt_hash { uint64_t lo, hi; } rt_hash;
rt_hash opjit_rt_hash(const void *data, size_t size);
/* Another one for each seed: whoever does not know the seed can't make data with the hash of others. */
rt_hash opjit_rt_hash_seeded(const void *data, size_t size, uint64_t seed);
uint64_t opjit_rt_hash64(const void *data, size_t size); /* for tables: another hash at half the cost */
/* Writes the lowest `digits` hexadecimal digits of value, without NUL.  Not by printf, whose first call in a process is
 * slow. */
void opjit_rt_hex(uint64_t value, uint32_t digits, char *out);

#endif
