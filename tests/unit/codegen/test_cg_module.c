/* SPDX-License-Identifier: Apache-2.0 */
/* test_cg_module.c - requests: every kind of output, equal bytes for equal requests, threads, refusals, lack of memory,
 * damaged objects. */
#define _GNU_SOURCE
#include "cg_harness.h"

#include "codegen/object/link.h"
#include "tests/support/require.h"

#include <elf.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>

enum { ROWS = 7, COLUMNS = 100 };

static const char *const targets[] = {
    "cpu:x86-64-v1", "cpu:x86-64-v2",          "cpu:x86-64-v3", "cpu:x86-64-v4", "cpu:aarch64",
    "cpu:a64fx",     "cpu:aarch64+sve,vec=32", "cpu:rv64gc",    "cpu:rv64gcv",   "cpu:sifive-x280",
};
enum { TARGETS = sizeof(targets) / sizeof(targets[0]) };

/* out[p, j] = fma(in[p, j], in[p, j], elem(j)) rem in[p, j], with the attributes of a band of ones: uses many parts of
 * codegen. */
static void build(ir_func *f, ir_type type)
{
    ck_assert(opjit_ir_init(f, &opjit_rt_default_allocator, "sample", NULL) == OPJIT_OK);
    f->phase = IR_SCHEDULED;
    harness_tensor(f, IR_IN, type, ROWS, COLUMNS, 0, "in");
    const uint32_t outs[2] = { harness_tensor(f, IR_OUT, type, ROWS, COLUMNS, 1, "a"),
                               harness_tensor(f, IR_OUT, type, ROWS, COLUMNS, 2, "b") };
    ir_ref top = 0;
    for (uint32_t s = 0; s < 2; s++) {
        const ir_ref stage = opjit_ir_stage(f, opjit_ir_index(f, 0), opjit_ir_index(f, ROWS), 1),
                     p = ir_at(f, stage)->ref;
        const ir_ref loop = opjit_ir_for(f, opjit_ir_index(f, 0), opjit_ir_index(f, COLUMNS), 1),
                     j = ir_at(f, loop)->ref;
        ir_ref tail = 0, inner = 0;
        f->nodes[loop].vec = 8;
        f->nodes[loop].unroll = 2;
        opjit_ir_append(f, 0, &top, stage);
        opjit_ir_append(f, stage, &tail, loop);
        const ir_ref x = opjit_ir_load(f, 1, (ir_ref[]){ p, j }), y = ir_expr1(f, IR_ELEM, type, j);
        const ir_ref v = ir_is_float(type) ? ir_expr2(f, IR_REM, IR_NONE, ir_expr3(f, IR_FMA, IR_NONE, x, x, y), x)
                                           : ir_expr2(f, IR_DIV, IR_NONE, x, y);
        opjit_ir_append(f, loop, &inner, opjit_ir_store(f, outs[s], v, (ir_ref[]){ p, j }));
    }
    harness_verify(f);
}

/* --- outputs ------------------------------------------------------------------------------------------------------ */

static void check_object(const uint8_t *object, size_t size)
{
    Elf64_Ehdr header;
    ck_assert(size > sizeof(header));
    memcpy(&header, object, sizeof(header));
    for (uint32_t i = 0; i < header.e_shnum; i++) {
        Elf64_Shdr section;
        memcpy(&section, object + header.e_shoff + i * sizeof(section), sizeof(section));
        for (uint64_t k = 1; section.sh_type == SHT_SYMTAB && k < section.sh_size / sizeof(Elf64_Sym); k++) {
            Elf64_Sym symbol;
            memcpy(&symbol, object + section.sh_offset + k * sizeof(symbol), sizeof(symbol));
            ck_assert_uint_ne(symbol.st_shndx, SHN_UNDEF);
        }
    }
}

static bool contains(const rt_bytes *b, const char *text)
{
    return memmem(b->data, b->size, text, strlen(text)) != NULL;
}

START_TEST(outputs)
{
    for (ir_type type = IR_F16; type <= IR_U64; type++)
        for (uint32_t level = OPJIT_LEVEL_QUICK; level <= OPJIT_LEVEL_PEAK; level++) {
            ir_func f;
            build(&f, type);
            for (codegen_emit what = CODEGEN_CODE; what <= CODEGEN_LLVM; what++) {
                codegen_result a = harness_emit(&f, targets[_i], level, what),
                               b = harness_emit(&f, targets[_i], level, what);
                ck_assert_uint_eq(a.bytes.size, b.bytes.size);
                ck_assert(memcmp(a.bytes.data, b.bytes.data, a.bytes.size) == 0);
                ck_assert_uint_eq(a.entry_count, what == CODEGEN_CODE ? 2 : 0);
                for (uint32_t i = 0; i < a.entry_count; i++)
                    ck_assert(a.entries[i] == b.entries[i] && a.entries[i] < a.bytes.size);
                if (what == CODEGEN_OBJECT)
                    check_object(a.bytes.data, a.bytes.size);
                if (what == CODEGEN_ASM)
                    ck_assert(contains(&a.bytes, "sample_v0_s1:"));
                if (what == CODEGEN_LLVM)
                    ck_assert(contains(&a.bytes, "define void @sample_v0_s1("));
                harness_free_result(&a);
                harness_free_result(&b);
            }
            opjit_ir_free(&f);
        }
}
END_TEST

/* Vectors on the stack never cross cache lines, whatever the caller's stack is. */
START_TEST(stack)
{
    static const struct {
        const char *target, *aligned;
    } rows[] = {
        { "cpu:x86-64-v2", NULL },
        { "cpu:x86-64-v3", "andq\t$-32, %rsp" },
        { "cpu:x86-64-v4,vec=64", "andq\t$-64, %rsp" },
    };
    for (uint32_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (uint32_t level = OPJIT_LEVEL_QUICK; level <= OPJIT_LEVEL_PEAK; level++) {
            ir_func f;
            build(&f, IR_F32);
            codegen_result r = harness_emit(&f, rows[i].target, level, CODEGEN_ASM);
            ck_assert_msg(contains(&r.bytes, rows[i].aligned ? rows[i].aligned : "andq\t$-") ==
                              (rows[i].aligned != NULL),
                          "%s, level %u", rows[i].target, level);
            harness_free_result(&r);
            opjit_ir_free(&f);
        }
}
END_TEST

/* --- threads ------------------------------------------------------------------------------------------------------ */

static void *compile_many(void *user)
{
    const rt_bytes *want = user;
    for (uint32_t i = 0; i < 10; i++) {
        ir_func f;
        build(&f, IR_F32);
        codegen_result r = harness_emit(&f, targets[2], OPJIT_LEVEL_QUICK, CODEGEN_CODE);
        ck_assert(r.bytes.size == want->size && memcmp(r.bytes.data, want->data, want->size) == 0);
        harness_free_result(&r);
        opjit_ir_free(&f);
    }
    return NULL;
}

START_TEST(threads)
{
    ir_func f;
    pthread_t ids[4];
    build(&f, IR_F32);
    codegen_result want = harness_emit(&f, targets[2], OPJIT_LEVEL_QUICK, CODEGEN_CODE);
    for (uint32_t i = 0; i < 4; i++)
        ck_assert(pthread_create(&ids[i], NULL, compile_many, &want.bytes) == 0);
    for (uint32_t i = 0; i < 4; i++)
        ck_assert(pthread_join(ids[i], NULL) == 0);
    harness_free_result(&want);
    opjit_ir_free(&f);
}
END_TEST

/* --- refusals ----------------------------------------------------------------------------------------------------- */

static opjit_status compile(const ir_func *f, const char *name, uint32_t level, const opjit_allocator *allocator,
                            codegen_result *out, opjit_error *error)
{
    rt_target t;
    ck_assert(opjit_rt_target_parse(targets[0], &t, NULL) == OPJIT_OK);
    const codegen_request request = { .variants = &f,
                                      .variant_count = 1,
                                      .target = &t,
                                      .level = level,
                                      .emit = CODEGEN_CODE,
                                      .name = name,
                                      .allocator = allocator,
                                      .verify = true };
    return opjit_codegen_query(CODEGEN_ABI)->compile(&request, out, error);
}

START_TEST(warm)
{
    rt_target t;
    opjit_error error;
    ck_assert(opjit_rt_target_parse(targets[_i], &t, NULL) == OPJIT_OK);
    const opjit_codegen *codegen = opjit_codegen_query(CODEGEN_ABI);
    ck_assert_msg(codegen->warm(&t, &opjit_rt_default_allocator, &error) == OPJIT_OK, "%s", error.message);
    ck_assert_uint_eq(codegen->size, sizeof(*codegen));
}
END_TEST

static uint32_t free_keys(void)
{
    pthread_key_t keys[PTHREAD_KEYS_MAX];
    uint32_t count = 0;
    while (count < PTHREAD_KEYS_MAX && pthread_key_create(&keys[count], NULL) == 0)
        count++;
    for (uint32_t i = 0; i < count; i++)
        ck_assert(pthread_key_delete(keys[i]) == 0);
    return count;
}

/* A process has few keys for thread-specific data; codegen takes one, however many backends it uses. */
START_TEST(keys)
{
    static const char *const gpus[] = { "nvptx:sm_80",  "nvptx:sm_90",  "nvptx:sm_100",  "nvptx:sm_120",
                                        "amdgpu:gfx90a", "amdgpu:gfx942", "amdgpu:gfx1100", "amdgpu:gfx1201" };
    enum { GPUS = sizeof(gpus) / sizeof(gpus[0]) };
    const uint32_t before = free_keys();
    for (uint32_t i = 0; i < TARGETS + GPUS; i++) {
        rt_target t;
        opjit_error error;
        ck_assert(opjit_rt_target_parse(i < TARGETS ? targets[i] : gpus[i - TARGETS], &t, NULL) == OPJIT_OK);
        const opjit_status status =
            opjit_codegen_query(CODEGEN_ABI)->warm(&t, &opjit_rt_default_allocator, &error);
        ck_assert_msg(status == OPJIT_OK, "%s", error.message);
    }
    ck_assert_uint_ge(free_keys() + 1, before);
}
END_TEST

/* Selects that share their arms: a small graph that would be a large tree. */
START_TEST(guards)
{
    ir_func f;
    codegen_result out;
    opjit_error error;
    ck_assert(opjit_ir_init(&f, &opjit_rt_default_allocator, "guards", NULL) == OPJIT_OK);
    const uint32_t in = harness_tensor(&f, IR_IN, IR_I32, 0, 4, 0, "in"),
                   t = harness_tensor(&f, IR_OUT, IR_I32, 0, 4, 1, "out");
    opjit_ir_param_add(&f, IR_INDEX, -9, 9, "k");
    const ir_ref stage = opjit_ir_stage(&f, opjit_ir_index(&f, 0), opjit_ir_index(&f, 4), 1), k = opjit_ir_param(&f, 1);
    ir_ref top = 0, tail = 0, v = opjit_ir_load(&f, in, &k);
    for (int32_t i = 0; i < 30; i++)
        v = ir_expr3(&f, IR_SELECT, IR_NONE, ir_expr2(&f, IR_LT, IR_NONE, k, opjit_ir_index(&f, i)), v, v);
    opjit_ir_append(&f, 0, &top, stage);
    opjit_ir_append(&f, stage, &tail, opjit_ir_store(&f, t, v, (ir_ref[]){ ir_at(&f, stage)->ref }));
    ck_assert_int_eq(compile(&f, "guards", OPJIT_LEVEL_QUICK, &opjit_rt_default_allocator, &out, &error), OPJIT_LIMIT);
    test_require_place(&error);
    opjit_ir_free(&f);
}
END_TEST

START_TEST(refusals)
{
    ir_func f;
    codegen_result out;
    opjit_error error;
    build(&f, IR_F32);
    ck_assert(opjit_codegen_query(CODEGEN_ABI + 1) == NULL);
    ck_assert_int_eq(compile(&f, "a-b", OPJIT_LEVEL_QUICK, &opjit_rt_default_allocator, &out, &error),
                     OPJIT_INVALID_ARGUMENT);
    ck_assert_int_eq(compile(&f, "a", 7, &opjit_rt_default_allocator, &out, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_str_eq(error.message, "level is 7; 1 (quick) and 2 (peak) are allowed");
    ck_assert_str_eq(error.op, "codegen");
    ck_assert_str_eq(error.field, "level");
    ck_assert_str_eq(error.value, "7");
    ck_assert(!out.entries && !out.bytes.data);
    opjit_ir_free(&f);
    ck_assert(opjit_ir_init(&f, &opjit_rt_default_allocator, "value_form", NULL) == OPJIT_OK);
    const uint32_t t = harness_tensor(&f, IR_OUT, IR_F32, 0, 4, 0, "out");
    const ir_ref yield = opjit_ir_yield(&f, t);
    ir_ref tail = 0;
    opjit_ir_append(&f, 0, &tail, yield);
    ck_assert_int_eq(compile(&f, "a", OPJIT_LEVEL_QUICK, &opjit_rt_default_allocator, &out, &error), OPJIT_UNSUPPORTED);
    test_require_place(&error);
    opjit_ir_free(&f);
}
END_TEST

/* Memory of the library's own; the allocation number `at` of a compile gives that compile up. */
typedef struct giving_up {
    uint32_t count, at, live;
    atomic_bool cancel;
} giving_up;

static void *allocate_and_give_up(void *user, size_t size, size_t alignment)
{
    giving_up *g = user;
    if (g->count++ == g->at)
        atomic_store(&g->cancel, true);
    g->live++;
    return opjit_rt_default_allocator.allocate(NULL, size, alignment);
}

static void release_counted(void *user, void *memory, size_t size)
{
    ((giving_up *)user)->live--;
    opjit_rt_default_allocator.release(NULL, memory, size);
}

/* Given up at any time before the last step, a compile ends with CANCELLED and keeps nothing. */
START_TEST(given_up)
{
    uint32_t cancelled = 0;
    bool done = false;
    rt_target t;
    ir_func f;
    build(&f, IR_F32);
    ck_assert(opjit_rt_target_parse(targets[0], &t, NULL) == OPJIT_OK);
    for (uint32_t at = 0; !done; at++) {
        giving_up g = { .at = at };
        const opjit_allocator a = { &g, allocate_and_give_up, release_counted };
        const ir_func *const variant = &f;
        const codegen_request request = { .variants = &variant,
                                          .variant_count = 1,
                                          .target = &t,
                                          .level = OPJIT_LEVEL_PEAK,
                                          .emit = CODEGEN_CODE,
                                          .name = "given_up",
                                          .allocator = &a,
                                          .verify = true,
                                          .cancel = &g.cancel };
        codegen_result out;
        opjit_error error;
        const opjit_status status = opjit_codegen_query(CODEGEN_ABI)->compile(&request, &out, &error);
        ck_assert(status == OPJIT_CANCELLED || status == OPJIT_OK);
        if (status == OPJIT_CANCELLED) {
            ck_assert(!out.entries && !out.bytes.data);
            test_require_place(&error);
            cancelled++;
        }
        done = !g.cancel; /* it never came to that allocation */
        opjit_rt_release(&a, out.entries, out.entry_count * sizeof(uint64_t));
        opjit_rt_bytes_free(&out.bytes);
        ck_assert_uint_eq(g.live, 0);
    }
    ck_assert_uint_gt(cancelled, 0);
    opjit_ir_free(&f);
}
END_TEST

/* An expression that is too deep, as a chain of additions. */
START_TEST(deep)
{
    ir_func f;
    codegen_result out;
    opjit_error error;
    ck_assert(opjit_ir_init(&f, &opjit_rt_default_allocator, "deep", NULL) == OPJIT_OK);
    const uint32_t t = harness_tensor(&f, IR_OUT, IR_I32, 0, 4, 0, "out");
    const ir_ref stage = opjit_ir_stage(&f, opjit_ir_index(&f, 0), opjit_ir_index(&f, 4), 1);
    ir_ref top = 0, tail = 0, v = opjit_ir_const(&f, IR_I32, 1);
    for (uint32_t i = 0; i < 2000; i++)
        v = ir_expr2(&f, IR_ADD, IR_NONE, v, v);
    opjit_ir_append(&f, 0, &top, stage);
    opjit_ir_append(&f, stage, &tail, opjit_ir_store(&f, t, v, (ir_ref[]){ ir_at(&f, stage)->ref }));
    ck_assert_int_eq(compile(&f, "deep", OPJIT_LEVEL_QUICK, &opjit_rt_default_allocator, &out, &error), OPJIT_LIMIT);
    ck_assert_str_eq(error.field, "expression");
    test_require_place(&error);
    opjit_ir_free(&f);
}
END_TEST

/* --- memory ------------------------------------------------------------------------------------------------------- */

typedef struct counter {
    int left, live;
} counter;

static void *count_allocate(void *user, size_t size, size_t alignment)
{
    counter *c = user;
    if (c->left-- <= 0)
        return NULL;
    c->live++;
    return opjit_rt_default_allocator.allocate(NULL, size, alignment);
}

static void count_release(void *user, void *memory, size_t size)
{
    ((counter *)user)->live--;
    opjit_rt_default_allocator.release(NULL, memory, size);
}

START_TEST(no_memory)
{
    ir_func f;
    build(&f, IR_F64);
    for (int left = 0;; left++) {
        counter c = { .left = left };
        const opjit_allocator allocator = { &c, count_allocate, count_release };
        codegen_result out;
        opjit_error error;
        const opjit_status status = compile(&f, "sample", OPJIT_LEVEL_QUICK, &allocator, &out, &error);
        if (status == OPJIT_OK) {
            opjit_rt_release(&allocator, out.entries, out.entry_count * sizeof(uint64_t));
            opjit_rt_bytes_free(&out.bytes);
        }
        ck_assert_int_eq(c.live, 0);
        if (status == OPJIT_OK)
            break;
        ck_assert_int_eq(status, OPJIT_OUT_OF_MEMORY);
        ck_assert_int_lt(left, 1000);
    }
    opjit_ir_free(&f);
}
END_TEST

/* --- damaged objects ---------------------------------------------------------------------------------------------- */

static opjit_status check_symbol(void *user, const cg_symbol *symbol)
{
    const rt_bytes *code = user;
    ck_assert_uint_le(symbol->value, code->size);
    return OPJIT_OK;
}

static void link_damaged(const uint8_t *object, size_t size)
{
    opjit_error error;
    rt_bytes code;
    opjit_rt_bytes_init(&code, &opjit_rt_default_allocator);
    if (opjit_cg_link(object, size, NULL, &code, &error) == OPJIT_OK)
        (void)opjit_cg_link_symbols(object, size, check_symbol, &code, &error);
    opjit_rt_bytes_free(&code);
}

START_TEST(damaged)
{
    ir_func f;
    test_random r;
    build(&f, IR_F32);
    codegen_result whole = harness_emit(&f, (const char *const[]){ targets[0], targets[4], targets[7] }[_i],
                                        OPJIT_LEVEL_QUICK, CODEGEN_OBJECT);
    const size_t size = whole.bytes.size;
    test_random_init(&r, 3, 0, (uint64_t)_i);
    for (uint32_t i = 0; i < 4000; i++) {
        uint8_t *copy = opjit_rt_allocate(&opjit_rt_default_allocator, size, 16);
        ck_assert(copy != NULL);
        memcpy(copy, whole.bytes.data, size);
        Elf64_Ehdr header;
        memcpy(&header, copy, sizeof(header));
        const size_t tables = size - header.e_shoff;
        for (uint64_t k = 1 + test_random_below(&r, 3); k > 0; k--) {
            const uint64_t kind = test_random_below(&r, 3);
            const size_t at = kind == 0   ? test_random_below(&r, sizeof(header))
                              : kind == 1 ? header.e_shoff + test_random_below(&r, tables)
                                          : test_random_below(&r, size);
            copy[at] = (uint8_t)test_random_u64(&r);
        }
        link_damaged(copy, test_random_chance(&r, 10) ? test_random_below(&r, size) : size);
        opjit_rt_release(&opjit_rt_default_allocator, copy, size);
    }
    harness_free_result(&whole);
    opjit_ir_free(&f);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cg.module");
    TCase *t = tcase_create("module");
    tcase_add_loop_test(t, outputs, 0, TARGETS);
    tcase_add_test(t, stack);
    tcase_add_test(t, threads);
    tcase_add_test(t, keys);
    tcase_add_loop_test(t, warm, 0, TARGETS);
    tcase_add_test(t, guards);
    tcase_add_test(t, refusals);
    tcase_add_test(t, given_up);
    tcase_add_test(t, deep);
    tcase_add_test(t, no_memory);
    tcase_add_loop_test(t, damaged, 0, 3);
    suite_add_tcase(s, t);
    SRunner *runner = srunner_create(s);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
