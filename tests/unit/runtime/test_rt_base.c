/* SPDX-License-Identifier: Apache-2.0 */
/* test_rt_base.c - errors, arena, byte strings, element types, hash, structures that grow. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/base/base.h"
#include "tests/unit/runtime/rt_sample.h"

static const struct {
    const char *name, *given, *want;
} messages[] = {
    { "plain", "rank 9 is above 8", "rank 9 is above 8" },
    { "utf-8 kept", "n\xc3\xa4me \xe2\x82\xac \xf0\x9f\x98\x80", "n\xc3\xa4me \xe2\x82\xac \xf0\x9f\x98\x80" },
    { "controls",
      "a\nb\tc\x7f"
      "d\x1b",
      "a?b?c?d?" },
    { "lone continuation", "a\x80z", "a?z" },
    { "cut sequence", "a\xe2\x82", "a??" },
    { "overlong slash", "\xc0\xaf", "??" },
    { "surrogate", "\xed\xa0\x80", "???" },
    { "beyond unicode", "\xf4\x90\x80\x80", "????" },
    { "c1 control", "\xc2\x85", "??" },
    { "line separator", "\xe2\x80\xa8", "???" },
};

START_TEST(message_row)
{
    opjit_error error;
    const opjit_status status = opjit_rt_error_set(&error, OPJIT_LIMIT, "%s", messages[_i].given);
    ck_assert_int_eq(status, OPJIT_LIMIT);
    ck_assert_int_eq(error.status, OPJIT_LIMIT);
    ck_assert_msg(strcmp(error.message, messages[_i].want) == 0, "%s: '%s'", messages[_i].name, error.message);
}
END_TEST

START_TEST(error_rules)
{
    opjit_error error = { .message = "x" };
    char longest[1000];

    ck_assert_int_eq(opjit_rt_error_set(NULL, OPJIT_IO, "%d", 1), OPJIT_IO);
    opjit_rt_error_set(&error, OPJIT_IO, "inner");
    opjit_rt_error_prefix(&error, "pass %s", "fold");
    ck_assert_str_eq(error.message, "pass fold: inner");
    opjit_rt_error_set(&error, OPJIT_IO, "again: %s", error.message); /* its own argument */
    ck_assert_str_eq(error.message, "again: pass fold: inner");
    memset(longest, 'x', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    opjit_rt_error_set(&error, OPJIT_IO, "%s", longest);
    ck_assert_uint_eq(strlen(error.message), OPJIT_ERROR_MESSAGE_SIZE - 1);
    ck_assert_str_eq(error.message + OPJIT_ERROR_MESSAGE_SIZE - 5, "x..."); /* it says that there is more */
    opjit_rt_error_prefix(&error, "%s", longest);
    ck_assert_uint_eq(strlen(error.message), OPJIT_ERROR_MESSAGE_SIZE - 1);
    opjit_rt_error_clear(&error);
    ck_assert_int_eq(error.status, OPJIT_OK);
    ck_assert_str_eq(error.message, "");
}
END_TEST

/* What the braces of a format mark. */
static const struct {
    const char *name, *message, *op, *field, *value;
    int32_t index;
    uint32_t detail;
} places[] = {
    { "all", "GATHER Axes[12]: 9, must be at most 4", "GATHER", "Axes", "9", 12, 17 },
    { "blanks in names", "my op, 1: x Sizes: 9, must be 4", "my op, 1: x", "Sizes", "9", -1, 19 },
    { "hidden", "binding 3 (x): data is NULL", "call", "bindings", "NULL", -1, 0 },
    { "no value", "GATHER needs feature level 6.4", "GATHER", "", "", -1, 0 },
    { "value with what it must be", "A Desc: NULL, must be b", "A", "Desc", "NULL", -1, 8 },
    { "control characters", "a?b?c: 3, must be ?", "a?b?c", "", "3", -1, 0 },
    { "none", "out of luck", "", "", "", -1, 0 },
};

static void refuse(int row, opjit_error *error)
{
    switch (row) {
    case 0:
        opjit_rt_refuse(error, OPJIT_LIMIT, "{%s} {%s[%u]}: {%u}, must be at most %d", "GATHER", "Axes", 12u, 9u, 4);
        break;
    case 1: opjit_rt_refuse(error, OPJIT_LIMIT, "{%s} {Sizes}: {%u}, must be 4", "my op, 1: x", 9u); break;
    case 2: opjit_rt_refuse(error, OPJIT_LIMIT, "{!call}{!bindings}binding %u (%s): data is {NULL}", 3u, "x"); break;
    case 3: opjit_rt_refuse(error, OPJIT_LIMIT, "{%s} needs feature level %s", "GATHER", "6.4"); break;
    case 4: opjit_rt_refuse(error, OPJIT_LIMIT, "{%s} {%s}: {%s}", "A", "Desc", "NULL, must be b"); break;
    case 5: opjit_rt_refuse(error, OPJIT_LIMIT, "{%s}{!}: {%u}, must be %s", "a\1b\2c", 3u, "\2"); break;
    default: opjit_rt_refuse(error, OPJIT_LIMIT, "out of %s", "luck"); break;
    }
}

START_TEST(place_row)
{
    opjit_error error;
    memset(&error, 0xff, sizeof error);
    refuse(_i, &error);
    ck_assert_int_eq(error.status, OPJIT_LIMIT);
    ck_assert_str_eq(error.message, places[_i].message);
    ck_assert_str_eq(error.op, places[_i].op);
    ck_assert_str_eq(error.field, places[_i].field);
    ck_assert_str_eq(error.value, places[_i].value);
    ck_assert_int_eq(error.index, places[_i].index);
    ck_assert_int_eq(error.node, -1);
    ck_assert_uint_eq(error.detail, places[_i].detail);
    ck_assert_int_eq(error.retry, OPJIT_RETRY_NEVER);
    refuse(_i, NULL);
}
END_TEST

START_TEST(long_places)
{
    opjit_error error;
    char longest[600];
    memset(longest, 'x', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    opjit_rt_refuse(&error, OPJIT_LIMIT, "{%s} {%s[7]}: {%s}", longest, longest, longest);
    ck_assert_uint_eq(strlen(error.op), OPJIT_ERROR_OP_SIZE - 1);
    ck_assert_uint_eq(strlen(error.field), OPJIT_ERROR_FIELD_SIZE - 1);
    ck_assert_uint_eq(error.detail, 0);
    ck_assert_int_eq(opjit_rt_place(&error, OPJIT_LIMIT, NULL, "Sizes", 3), OPJIT_LIMIT);
    ck_assert_str_eq(error.field, "Sizes");
    ck_assert_int_eq(error.index, 3);
    opjit_rt_refuse(&error, OPJIT_LIMIT, "{%s} {%s}: {%s}", "a\nb", "\xff", "c"); /* printable, as the message is */
    ck_assert_str_eq(error.op, "a?b");
    ck_assert_str_eq(error.field, "?");
    ck_assert_int_eq(opjit_rt_at_node(&error, OPJIT_LIMIT, 4), OPJIT_LIMIT);
    ck_assert_int_eq(error.node, 4);
    ck_assert_int_eq(opjit_rt_no_memory(&error), OPJIT_OUT_OF_MEMORY);
    ck_assert_int_eq(error.node, -1);
    ck_assert_int_eq(error.retry, OPJIT_RETRY_LATER);
    ck_assert_int_eq(opjit_rt_refuse_null(&error, "kernel"), OPJIT_INVALID_ARGUMENT);
    ck_assert_str_eq(error.message, "kernel is NULL");
    ck_assert_str_eq(error.field, "kernel");
}
END_TEST

START_TEST(status_names)
{
    ck_assert_str_eq(opjit_status_name(OPJIT_OK), "OK");
    ck_assert_str_eq(opjit_status_name(OPJIT_NOT_FOUND), "NOT_FOUND");
    ck_assert_str_eq(opjit_status_name(OPJIT_INVALID_ARGUMENT), "INVALID_ARGUMENT");
    ck_assert_str_eq(opjit_status_name((opjit_status)12), "unknown");
    ck_assert_str_eq(opjit_status_name((opjit_status)-1), "unknown");
    ck_assert_str_eq(opjit_version(), "0.1.0");
    ck_assert_uint_eq(opjit_version_number(), 100);
    ck_assert_uint_eq(opjit_version_number(), OPJIT_VERSION_NUMBER);
}
END_TEST

START_TEST(arena_fails_and_recovers)
{
    static const size_t sizes[] = { 1, 16, 100, 5000, 3, 70000, 2000000, 40 };
    for (int fail_at = 0; fail_at < 8; fail_at++) {
        counting c;
        const opjit_allocator a = counting_allocator(&c, fail_at);
        rt_arena arena;
        opjit_rt_arena_init(&arena, &a);
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            unsigned char *memory = opjit_rt_arena_allocate(&arena, sizes[i], 1);
            if (memory == NULL) {
                ck_assert_int_ne(fail_at, 0);
                continue;
            }
            ck_assert_uint_eq((uintptr_t)memory % 16, 0);
            ck_assert(memory[0] == 0 && memcmp(memory, memory + 1, sizes[i] - 1) == 0);
            memset(memory, 0xff, sizes[i]);
            unsigned char *bare = opjit_rt_arena_reserve(&arena, sizes[i]);
            ck_assert(bare != NULL || fail_at != 0);
            ck_assert_uint_eq((uintptr_t)bare % 16, 0);
            ck_assert(bare == NULL || bare >= memory + sizes[i] || bare + sizes[i] <= memory);
        }
        ck_assert_ptr_null(opjit_rt_arena_reserve(&arena, SIZE_MAX));
        ck_assert_ptr_null(opjit_rt_arena_allocate(&arena, SIZE_MAX / 2, 3));
        ck_assert_ptr_null(opjit_rt_arena_allocate(&arena, SIZE_MAX, 1));
        ck_assert_ptr_null(opjit_rt_arena_string(&arena, "x", SIZE_MAX));
        ck_assert_str_eq(opjit_rt_arena_string(&arena, "hello world", 5), "hello");
        opjit_rt_arena_free(&arena);
        ck_assert_int_eq(c.live, 0);
        ck_assert_int_eq(c.bytes, 0);
    }
}
END_TEST

/* Data of at least half a large page begins at one; its size stays what the hook was asked for. */
START_TEST(data_in_large_pages)
{
    static const struct { size_t size, at; } rows[] = { { 64, 64 }, { 1000000, 64 }, { 1 << 20, 2 << 20 },
                                                        { (4 << 20) + 1, 2 << 20 } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        counting c;
        const opjit_allocator a = counting_allocator(&c, 0);
        uint8_t *const memory = opjit_rt_allocate_data(&a, rows[i].size, 64);
        ck_assert_ptr_nonnull(memory);
        ck_assert_uint_eq((uintptr_t)memory % rows[i].at, 0);
        memory[rows[i].size - 1] = 1;
        opjit_rt_release(&a, memory, rows[i].size);
        ck_assert_int_eq(c.live, 0);
        ck_assert_int_eq(c.bytes, 0);
    }
}
END_TEST

/* No number begins like another one, and each is as short as it can be. */
START_TEST(numbers_in_few_bytes)
{
    static const struct { uint64_t value; size_t size; uint8_t bytes[RT_NUMBER_MOST]; } rows[] = {
        { 0, 1, { 0 } },
        { 127, 1, { 127 } },
        { 128, 2, { 128, 1 } },
        { 300, 2, { 172, 2 } },
        { UINT32_MAX, 5, { 255, 255, 255, 255, 15 } },
        { UINT64_MAX, 10, { 255, 255, 255, 255, 255, 255, 255, 255, 255, 1 } },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint8_t bytes[RT_NUMBER_MOST + 1] = { 0 };
        ck_assert_uint_eq((size_t)(rt_put_number(bytes, rows[i].value) - bytes), rows[i].size);
        ck_assert_mem_eq(bytes, rows[i].bytes, rows[i].size);
    }
}
END_TEST

START_TEST(room_at_once)
{
    counting c;
    const opjit_allocator a = counting_allocator(&c, 0);
    rt_bytes b;
    opjit_rt_bytes_init(&b, &a);
    opjit_rt_bytes_append(&b, "key", 3);
    opjit_rt_bytes_reserve(&b, 100000);
    const int calls = c.calls;
    for (int i = 0; i < 1000; i++)
        opjit_rt_bytes_append(&b, "0123456789012345678901234567890123456789012345678901234567890123456789", 70);
    ck_assert_int_eq(c.calls, calls);
    ck_assert_uint_eq(b.size, 70003);
    ck_assert_mem_eq(b.data, "key0", 4);
    opjit_rt_bytes_reserve(&b, SIZE_MAX);
    ck_assert(b.failed);
    opjit_rt_bytes_free(&b);
    ck_assert_int_eq(c.live, 0);
}
END_TEST

START_TEST(arena_rewinds)
{
    counting c;
    const opjit_allocator a = counting_allocator(&c, 0);
    rt_arena arena;

    opjit_rt_arena_init(&arena, &a);
    for (int first = 0; first < 2; first++) { /* of an empty arena, and of one that holds something */
        const rt_arena_mark mark = rt_arena_position(&arena);
        int live = c.live;
        for (int round = 0; round < 100; round++) {
            unsigned char *memory = opjit_rt_arena_allocate(&arena, 5000, 1);
            ck_assert(memory != NULL && memory[0] == 0 && memory[4999] == 0);
            memset(memory, 0xff, 5000);
            ck_assert_ptr_nonnull(opjit_rt_arena_allocate(&arena, 30, 1));
            opjit_rt_arena_rewind(&arena, mark);
            ck_assert_int_le(c.live, live + 1); /* a block is kept for the next round */
            live = round == 0 ? c.live - 1 : live;
        }
        char *kept = opjit_rt_arena_string(&arena, "kept", 4);
        const rt_arena_mark later = rt_arena_position(&arena);
        memset(opjit_rt_arena_allocate(&arena, 70000, 1), 0xff, 70000);
        opjit_rt_arena_rewind(&arena, later);
        ck_assert_str_eq(kept, "kept");
    }
    opjit_rt_arena_free(&arena);
    ck_assert_int_eq(c.live, 0);
    ck_assert_int_eq(c.bytes, 0);
}
END_TEST

static void write_all(rt_bytes *b)
{
    char text[300];
    memset(text, 'q', sizeof text);
    opjit_rt_bytes_u8(b, 0xab);
    opjit_rt_bytes_u32(b, 0x01020304);
    opjit_rt_bytes_u64(b, UINT64_C(0x1122334455667788));
    opjit_rt_bytes_str(b, "hey");
    opjit_rt_bytes_str(b, NULL);
    opjit_rt_bytes_align(b, 32);
    opjit_rt_bytes_append(b, NULL, 0);
    opjit_rt_bytes_append(b, text, sizeof text);
    opjit_rt_bytes_printf(b, "%d-%s", 42, "end");
    opjit_rt_bytes_zero_end(b);
}

START_TEST(bytes_fail_and_recover)
{
    static const uint8_t head[] = { 0xab, 4,   3,   2,   1, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 3, 0, 0,
                                    0,    'h', 'e', 'y', 0, 0,    0,    0,    0,    0,    0,    0,    0,    0, 0, 0 };
    bool done = false;
    for (int fail_at = 1; !done; fail_at++) {
        counting c;
        const opjit_allocator a = counting_allocator(&c, fail_at);
        rt_bytes b;
        opjit_rt_bytes_init(&b, &a);
        write_all(&b);
        done = !b.failed;
        if (done) {
            ck_assert_uint_eq(b.size, 32 + 300 + 6);
            ck_assert_mem_eq(b.data, head, sizeof head);
            ck_assert_str_eq((char *)b.data + 332, "42-end");
        } else {
            const size_t size = b.size;
            opjit_rt_bytes_u8(&b, 1); /* nothing after a failure, even where there is room */
            ck_assert_uint_eq(b.size, size);
            if (size != 0) /* what was there before the failure is kept */
                ck_assert_mem_eq(b.data, head, size < sizeof head ? size : sizeof head);
        }
        opjit_rt_bytes_free(&b);
        ck_assert_int_eq(c.live, 0);
        ck_assert_int_eq(c.bytes, 0);
        ck_assert_int_lt(fail_at, 20);
    }
}
END_TEST

START_TEST(allocate_alignment)
{
    for (size_t alignment = 1; alignment <= 4096; alignment *= 2) {
        void *memory = opjit_rt_allocate(&opjit_rt_default_allocator, 100, alignment);
        ck_assert_ptr_nonnull(memory);
        ck_assert_uint_eq((uintptr_t)memory % alignment, 0);
        opjit_rt_release(&opjit_rt_default_allocator, memory, 100);
    }
    ck_assert_ptr_null(opjit_rt_allocate(&opjit_rt_default_allocator, SIZE_MAX - 10, 64));
    opjit_rt_release(&opjit_rt_default_allocator, NULL, 5);
}
END_TEST

START_TEST(element_types)
{
    ck_assert_uint_eq(opjit_rt_dtype_size(DML_TENSOR_DATA_TYPE_FLOAT64), 8);
    ck_assert_uint_eq(opjit_rt_dtype_size(DML_TENSOR_DATA_TYPE_INT4), 0);
    ck_assert_uint_eq(opjit_rt_dtype_size(DML_TENSOR_DATA_TYPE_UNKNOWN), 0);
    ck_assert_uint_eq(opjit_rt_dtype_size((DML_TENSOR_DATA_TYPE)14), 0);
    ck_assert_uint_eq(opjit_rt_dtype_size((DML_TENSOR_DATA_TYPE)-1), 0);
    ck_assert_str_eq(opjit_rt_dtype_name(DML_TENSOR_DATA_TYPE_UINT16), "UINT16");
    ck_assert_str_eq(opjit_rt_dtype_short(DML_TENSOR_DATA_TYPE_FLOAT16), "f16");
    ck_assert_str_eq(opjit_rt_dtype_name((DML_TENSOR_DATA_TYPE)99), "unknown");
    ck_assert_str_eq(opjit_rt_dtype_short((DML_TENSOR_DATA_TYPE)99), "?");
}
END_TEST

START_TEST(hash_is_xxh3)
{
    const rt_hash empty = opjit_rt_hash(NULL, 0), a = opjit_rt_hash("abc", 3), b = opjit_rt_hash("abd", 3);
    ck_assert(empty.hi == UINT64_C(0x99aa06d3014798d8) && empty.lo == UINT64_C(0x6001c324468d497f));
    ck_assert(a.lo != b.lo && a.hi != b.hi);
}
END_TEST

START_TEST(hexadecimal_digits)
{
    char text[] = "................X";
    opjit_rt_hex(UINT64_C(0x0123456789abcdef), 16, text);
    ck_assert_str_eq(text, "0123456789abcdefX");
    opjit_rt_hex(UINT64_C(0xffffffff00000020), 3, text);
    ck_assert_str_eq(text, "0203456789abcdefX");
}
END_TEST

typedef struct grown {
    uint32_t struct_size, a;
    uint64_t b;
    void *c;
} grown;
static const rt_struct grown_sizes = { "grown", { RT_SIZE_TO(grown, a), RT_SIZE_TO(grown, b), RT_SIZE_TO(grown, c) } };
RT_STRUCT_ENDS_WITH(grown, c);

/* Every struct_size: those that versions had are taken, and larger ones within bounds; the others name themselves. */
START_TEST(only_published_sizes)
{
    _Alignas(8) unsigned char given[RT_STRUCT_MOST + 64], full[sizeof(grown)], out[sizeof given];
    opjit_error error;
    char message[128];
    uint32_t wrong = 0;

    memset(full, 0x11, sizeof full);
    for (uint32_t size = 0; size < sizeof given; size++) {
        const bool good = size == 8 || size == 16 || (size >= sizeof(grown) && size <= RT_STRUCT_MOST);
        const uint32_t common = size < sizeof(grown) ? size : (uint32_t)sizeof(grown);
        memset(given, 0, sizeof given);
        memset(given, 0x22, sizeof(grown));
        memcpy(given, &size, sizeof size);
        memset(out, 0x33, sizeof out);
        ck_assert_int_eq(opjit_rt_struct_read(&grown_sizes, out, given, &error),
                         good ? OPJIT_OK : OPJIT_INVALID_ARGUMENT);
        for (uint32_t i = 0; good && i < sizeof(grown); i++)
            wrong += out[i] != (i < common ? given[i] : 0);
        wrong += out[sizeof(grown)] != 0x33;
        memset(out, 0x33, sizeof out);
        memcpy(out, &size, sizeof size);
        ck_assert_int_eq(opjit_rt_struct_write(&grown_sizes, out, full, &error),
                         good ? OPJIT_OK : OPJIT_INVALID_ARGUMENT);
        for (uint32_t i = sizeof size; i < sizeof out; i++)
            wrong += out[i] != (good && i < common ? 0x11 : 0x33);
        ck_assert_msg(wrong == 0, "struct_size %u", size);
        ck_assert(memcmp(out, &size, sizeof size) == 0);
        snprintf(message, sizeof message,
                 "grown: struct_size %u is that of no version; set it with the _INIT macro (24)", size);
        ck_assert(good || strcmp(error.message, message) == 0);
    }
}
END_TEST

START_TEST(newer_structures_with_nothing_new)
{
    struct {
        grown known;
        unsigned char tail[9];
    } given = { { .struct_size = sizeof given, .c = &given }, { 0 } };
    opjit_error error;
    grown out;

    ck_assert_int_eq(opjit_rt_struct_read(&grown_sizes, &out, &given, &error), OPJIT_OK);
    ck_assert_ptr_eq(out.c, &given);
    given.tail[8] = 1;
    ck_assert_int_eq(opjit_rt_struct_read(&grown_sizes, &out, &given, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_str_eq(error.message, "grown: struct_size 40 is newer than this library's 24, and byte 32 is not 0");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("rt.base");
    TCase *tc = tcase_create("base");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, message_row, 0, sizeof messages / sizeof *messages);
    tcase_add_test(tc, error_rules);
    tcase_add_loop_test(tc, place_row, 0, sizeof places / sizeof *places);
    tcase_add_test(tc, long_places);
    tcase_add_test(tc, status_names);
    tcase_add_test(tc, arena_fails_and_recovers);
    tcase_add_test(tc, data_in_large_pages);
    tcase_add_test(tc, numbers_in_few_bytes);
    tcase_add_test(tc, room_at_once);
    tcase_add_test(tc, arena_rewinds);
    tcase_add_test(tc, bytes_fail_and_recover);
    tcase_add_test(tc, allocate_alignment);
    tcase_add_test(tc, element_types);
    tcase_add_test(tc, hash_is_xxh3);
    tcase_add_test(tc, hexadecimal_digits);
    tcase_add_test(tc, only_published_sizes);
    tcase_add_test(tc, newer_structures_with_nothing_new);
    suite_add_tcase(suite, tc);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
