/* SPDX-License-Identifier: Apache-2.0 */
/* test_cg_kept.c - code of functions that kernels share, kept by whoever loads codegen: each process is a child here,
 * as a process finds what it has compiled itself in its own memory. */
#define _GNU_SOURCE
#include "cg_harness.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "opjit_build_id.h"

/* A tile, a function of whole vectors and, in rows of 20, one of a part of them. */
static const char text[] =
    "kernel @kept after expand {\n in %a \"a\": f32[4,8]\n in %b \"b\": f32[8,16]\n in %c \"c\": f32[4,20]\n"
    " out %o \"o\": f32[4,16]\n out %z \"z\": f32[4,20]\n scratch %t: f32[4,16]\n stage @0 for %p in 0..1 {\n"
    " for %i0 in 0..4 { for %j0 in 0..16 vec 8 { store %t[%i0,%j0], f32 0x0p+0 } }\n"
    " for %k in 0..8 hold { for %i in 0..4 { for %j in 0..16 vec 8 {\n"
    "  store %t[%i,%j], fma(load %a[%i,%k], load %b[%k,%j], load %t[%i,%j]) } } }\n"
    " for %i1 in 0..4 { for %j1 in 0..16 vec 8 { store %o[%i1,%j1], load %t[%i1,%j1] } }\n"
    " for %i2 in 0..4 { for %j2 in 0..20 vec 8 { store %z[%i2,%j2], exp(load %c[%i2,%j2]) } } }\n}\n";

enum { MOST = 8, KEY = 16384, CODE = 8192, ALL = 65536, FUNCTIONS = 2 /* at least */ };

typedef enum spoil {
    WHOLE,
    NOTHING,
    ALIGNMENT_ALONE,
    THREE_BYTES,
    ALIGNMENT_MISSING,
    ALIGNMENT_WRONG,
    NO_MEMORY
} spoil;

/* In memory that children share. */
typedef struct shared {
    uint32_t count, finds, hits, keeps;
    spoil how;
    struct {
        uint8_t key[KEY], bytes[CODE];
        size_t key_size, size;
    } kept[MOST];
    uint8_t code[ALL]; /* the latest kernel's */
    size_t size;
    opjit_status status;
    uint32_t allocations, fail_at; /* 0: none fails */
    long live;
} shared;
static shared *s;

/* --- what is kept ------------------------------------------------------------------------------------------------- */

static void find(void *user, const void *key, size_t size, rt_bytes *out)
{
    static const uint32_t odd = 4097;
    uint32_t i = 0;
    ck_assert_ptr_eq(user, s);
    ck_assert_uint_eq(out->size, 0);
    s->finds++;
    while (i < s->count && (s->kept[i].key_size != size || memcmp(s->kept[i].key, key, size) != 0))
        i++;
    if (i == s->count)
        return;
    s->hits++;
    const uint8_t *const bytes = s->kept[i].bytes;
    const size_t code = s->kept[i].size - sizeof odd;
    switch (s->how) {
    case WHOLE: opjit_rt_bytes_append(out, bytes, s->kept[i].size); break;
    case NOTHING: break;
    case ALIGNMENT_ALONE: opjit_rt_bytes_append(out, bytes + code, sizeof odd); break;
    case THREE_BYTES: opjit_rt_bytes_append(out, bytes, 3); break;
    case ALIGNMENT_MISSING: opjit_rt_bytes_append(out, bytes, code); break;
    case ALIGNMENT_WRONG:
        opjit_rt_bytes_append(out, bytes, code);
        opjit_rt_bytes_append(out, &odd, sizeof odd);
        break;
    case NO_MEMORY: out->failed = true; break;
    }
}

static void keep(void *user, const void *key, size_t key_size, const void *bytes, size_t size)
{
    ck_assert_ptr_eq(user, s);
    ck_assert_uint_lt(s->count, MOST);
    ck_assert(key_size <= KEY && size <= CODE);
    s->keeps++;
    memcpy(s->kept[s->count].key, key, s->kept[s->count].key_size = key_size);
    memcpy(s->kept[s->count].bytes, bytes, s->kept[s->count].size = size);
    s->count++;
}

/* --- processes ---------------------------------------------------------------------------------------------------- */

static void *allocate(void *user, size_t size, size_t alignment)
{
    (void)user;
    if (++s->allocations == s->fail_at)
        return NULL;
    s->live++;
    return opjit_rt_default_allocator.allocate(opjit_rt_default_allocator.user, size, alignment);
}

static void release(void *user, void *memory, size_t size)
{
    (void)user;
    s->live--;
    opjit_rt_default_allocator.release(opjit_rt_default_allocator.user, memory, size);
}

static void compile_here(const char *target, bool keeps)
{
    const opjit_allocator allocator = { .allocate = allocate, .release = release };
    const codegen_functions functions = { s, find, keep };
    rt_target t;
    ir_func f;
    opjit_error error;
    codegen_result out;
    ck_assert(opjit_ir_parse(text, strlen(text), &opjit_rt_default_allocator, &f, &error) == OPJIT_OK);
    ck_assert(opjit_ir_layout(&f, &error) == OPJIT_OK);
    ck_assert(opjit_rt_target_parse(target, &t, &error) == OPJIT_OK);
    const ir_func *const variant = &f;
    const codegen_request request = { .variants = &variant,
                                      .variant_count = 1,
                                      .target = &t,
                                      .level = OPJIT_LEVEL_QUICK,
                                      .emit = CODEGEN_CODE,
                                      .name = "kept",
                                      .allocator = &allocator,
                                      .verify = true,
                                      .functions = keeps ? &functions : NULL };
    s->status = opjit_codegen_query(CODEGEN_ABI)->compile(&request, &out, &error);
    if (s->status != OPJIT_OK)
        return;
    ck_assert_uint_le(out.bytes.size, ALL);
    memcpy(s->code, out.bytes.data, s->size = out.bytes.size);
    opjit_rt_release(&allocator, out.entries, out.entry_count * sizeof(uint64_t));
    opjit_rt_bytes_free(&out.bytes);
}

static void compile(const char *target, bool keeps)
{
    int status;
    s->finds = s->hits = s->keeps = s->allocations = 0;
    s->live = 0;
    const pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        compile_here(target, keeps);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(s->live, 0);
}

/* The same bytes as where nothing is kept. */
static void expect_code(const uint8_t *code, size_t size)
{
    ck_assert_int_eq(s->status, OPJIT_OK);
    ck_assert_uint_eq(s->size, size);
    ck_assert_mem_eq(s->code, code, size);
}

static void setup(void)
{
    s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert(s != MAP_FAILED);
}

static void teardown(void)
{
    munmap(s, sizeof *s);
}

/* --- tests -------------------------------------------------------------------------------------------------------- */

static const char *const targets[] = { "cpu:x86-64-v3", "cpu:x86-64-v4", "cpu:x86-64-v4,tune=znver4" };
enum { TARGETS = sizeof targets / sizeof *targets };

START_TEST(other_processes_find_what_one_compiled)
{
    static uint8_t code[ALL];
    compile(targets[_i], false);
    ck_assert_uint_eq(s->finds, 0);
    const size_t size = s->size;
    memcpy(code, s->code, size);
    compile(targets[_i], true);
    expect_code(code, size);
    const uint32_t functions = s->keeps;
    ck_assert_uint_ge(functions, FUNCTIONS);
    ck_assert(s->finds == functions && s->hits == 0);
    compile(targets[_i], true);
    expect_code(code, size);
    ck_assert(s->finds == functions && s->hits == functions && s->keeps == 0);
}
END_TEST

START_TEST(what_is_no_code_is_compiled)
{
    static uint8_t code[ALL];
    compile(targets[0], true);
    const uint32_t functions = s->keeps;
    const size_t size = s->size;
    memcpy(code, s->code, size);
    s->how = (spoil)_i;
    compile(targets[0], true);
    expect_code(code, size);
    ck_assert_uint_eq(s->hits, functions);
    ck_assert_uint_eq(s->keeps, _i == WHOLE ? 0 : functions);
}
END_TEST

/* Everything that the code depends on is in the key: name, build, target, record. */
START_TEST(keys)
{
    for (uint32_t i = 0; i < TARGETS; i++) {
        const uint32_t before = s->count;
        compile(targets[i], true);
        ck_assert_uint_eq(s->hits, 0); /* no two targets have a function in common */
        ck_assert_uint_ge(s->count, before + FUNCTIONS);
    }
    for (uint32_t i = 0; i < s->count; i++) {
        const char *const name = (const char *)s->kept[i].key;
        const size_t length = strnlen(name, s->kept[i].key_size);
        ck_assert(strncmp(name, "hold.", 5) == 0 || strncmp(name, "math.exp_f32x", 13) == 0);
        ck_assert_uint_lt(length + sizeof OPJIT_BUILD_ID, s->kept[i].key_size);
        ck_assert_str_eq(name + length + 1, OPJIT_BUILD_ID);
    }
}
END_TEST

/* Each allocation of a compile fails, with what is kept found or not; nothing is lost, and no half function is kept. */
START_TEST(without_memory)
{
    const bool found = _i == 1;
    compile(targets[0], true);
    const uint32_t kept = s->count = found ? s->count : 0;
    compile(targets[0], true);
    const uint32_t allocations = s->allocations;
    ck_assert_uint_gt(allocations, 0);
    for (uint32_t at = 1; at <= allocations; at++) {
        s->count = kept;
        s->fail_at = at;
        compile(targets[0], true);
        s->fail_at = 0;
        ck_assert(s->status == OPJIT_OK || s->status == OPJIT_OUT_OF_MEMORY);
        for (uint32_t i = 0; i < s->count; i++)
            ck_assert_uint_gt(s->kept[i].size, sizeof(uint32_t));
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cg.kept");
    TCase *tcase = tcase_create("kept");
    SRunner *runner = srunner_create(suite);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 300);
    tcase_add_loop_test(tcase, other_processes_find_what_one_compiled, 0, TARGETS);
    tcase_add_loop_test(tcase, what_is_no_code_is_compiled, WHOLE, NO_MEMORY + 1);
    tcase_add_test(tcase, keys);
    tcase_add_loop_test(tcase, without_memory, 0, 2);
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
