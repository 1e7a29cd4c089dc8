/* SPDX-License-Identifier: Apache-2.0 */
/* test_ir_pass_graphs.c - the pipeline on random graphs of definitions: before place and after every pass from there on
 * the interpreter writes the same bytes, the verifier accepts, and running the pass again changes nothing. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/ir.h"
#include "tests/support/ir_graphs.h"
#include "tests/support/ir_passes.h"

enum { SLOTS = 8 };

typedef struct buffers {
    void *memory[SLOTS];
    size_t bytes[SLOTS];
    bool output[SLOTS];
    uint32_t count;
} buffers;

static void make_buffers(const ir_func *f, buffers *b, test_random *r)
{
    memset(b, 0, sizeof *b);
    for (uint32_t t = 1; t < f->tensor_count; t++) {
        const ir_tensor *tensor = &f->tensors[t];
        if (tensor->role != IR_IN && tensor->role != IR_OUT)
            continue;
        b->bytes[tensor->slot] = (size_t)tensor->bytes;
        b->memory[tensor->slot] = malloc((size_t)tensor->bytes);
        b->output[tensor->slot] = tensor->role == IR_OUT;
        ck_assert_ptr_nonnull(b->memory[tensor->slot]);
        test_random_fill(r, b->memory[tensor->slot], (size_t)tensor->bytes);
        b->count = tensor->slot + 1 > b->count ? tensor->slot + 1 : b->count;
    }
}

static void free_buffers(buffers *b)
{
    for (uint32_t i = 0; i < b->count; i++)
        free(b->memory[i]);
}

/* Runs everything; outputs start as the same garbage each time, the workspace as other garbage. */
static void interpret(ir_func *f, buffers *b)
{
    opjit_error error = { 0 };
    rt_bytes text;
    for (uint32_t i = 0; i < b->count; i++)
        if (b->output[i])
            memset(b->memory[i], 0xa5, b->bytes[i]);
    ck_assert(opjit_ir_layout(f, &error) == OPJIT_OK);
    ir_run run = { .buffers = b->memory, .shared = malloc(f->shared_size + 1), .scratch = malloc(f->scratch_size + 1) };
    ck_assert(run.shared != NULL && run.scratch != NULL);
    memset(run.shared, 0x5a, f->shared_size + 1);
    memset(run.scratch, 0x5a, f->scratch_size + 1);
    for (ir_ref s = f->body; s != 0; s = f->phase < IR_PLACED ? 0 : ir_at(f, s)->next, run.stage++) {
        const uint64_t extent = f->phase < IR_PLACED ? 0 : (uint64_t)ir_index_value(f, ir_operand(f, s, 1));
        for (uint32_t part = 0; part < (f->phase < IR_PLACED ? 1u : 2u); part++) { /* the second half first */
            run.begin = part == 0 ? extent / 2 : 0;
            run.end = part == 0 ? extent : extent / 2;
            ck_assert_msg(opjit_ir_interpret(f, &run, &error) == OPJIT_OK, "%s:\n%.3000s", error.message,
                          ir_passes_text(f, &text));
        }
    }
    free(run.shared);
    free(run.scratch);
}

static void check_pass(ir_func *f, const ir_pass *pass, const ir_pass_env *env, buffers *b, void *const *expected,
                       const char *before)
{
    opjit_error error = { 0 };
    rt_bytes once, twice;
    ck_assert_msg(opjit_ir_run_passes(f, env, pass->leaves, &error) == OPJIT_OK, "%s:\n%.3000s", error.message, before);
    ir_passes_text(f, &once);
    opjit_status status = opjit_ir_verify(f, &error);
    if (status == OPJIT_OK)
        interpret(f, b);
    for (uint32_t i = 0; i < b->count && status == OPJIT_OK; i++)
        if (b->output[i] && memcmp(b->memory[i], expected[i], b->bytes[i]) != 0)
            status = opjit_rt_error_set(&error, OPJIT_INTERNAL, "slot %u has other bytes", i);
    if (status != OPJIT_OK) /* longer than Check's messages may be */
        fprintf(stderr, "%s\n--- after %s\n%s\n", before, pass->name, (char *)once.data);
    ck_assert_msg(status == OPJIT_OK, "after %s: %s", pass->name, error.message);
    ck_assert_msg(pass->run(f, env, &error) == OPJIT_OK, "%s again: %s", pass->name, error.message);
    ir_passes_text(f, &twice);
    ck_assert_msg(strcmp((char *)once.data, (char *)twice.data) == 0, "%s is not idempotent:\n%.1800s\n%.1800s",
                  pass->name, (char *)once.data, (char *)twice.data);
    opjit_rt_bytes_free(&once);
    opjit_rt_bytes_free(&twice);
}

/* All passes on the function, which is gone then. */
static void check_passes(ir_func *f, test_random *r, const rt_target *target)
{
    buffers b;
    rt_bytes before;
    void *expected[SLOTS] = { NULL };
    opjit_error error = { 0 };
    const ir_pass_env env = { .target = target };
    ir_passes_text(f, &before);
    ck_assert_msg(opjit_ir_verify(f, &error) == OPJIT_OK, "drawn: %s:\n%s", error.message, (char *)before.data);
    make_buffers(f, &b, r);
    interpret(f, &b);
    for (uint32_t i = 0; i < b.count; i++) {
        expected[i] = malloc(b.bytes[i]);
        ck_assert_ptr_nonnull(expected[i]);
        memcpy(expected[i], b.memory[i], b.bytes[i]);
    }
    for (const ir_pass *pass = opjit_ir_passes; pass->name != NULL && pass->leaves <= opjit_ir_last_pass(target);
         pass++)
        check_pass(f, pass, &env, &b, expected, (const char *)before.data);
    for (uint32_t i = 0; i < b.count; i++)
        free(expected[i]);
    free_buffers(&b);
    opjit_rt_bytes_free(&before);
    opjit_ir_free(f);
}

static void check_graph(test_random *r, const rt_target *target)
{
    ir_func f;
    opjit_error error = { 0 };
    ck_assert_msg(ir_graph_random(r, &opjit_rt_default_allocator, &f, &error) == OPJIT_OK, "%s", error.message);
    check_passes(&f, r, target);
}

START_TEST(random_graphs)
{
    const test_cases cases = test_cases_init("ir.pass_graphs", 300);
    rt_target targets[2];
    opjit_error error = { 0 };
    ck_assert_msg(opjit_rt_target_parse("cpu:x86-64-v3", &targets[0], &error) == OPJIT_OK, "%s", error.message);
    ck_assert_msg(opjit_rt_target_parse("nvptx:sm_90", &targets[1], &error) == OPJIT_OK, "%s", error.message);
    for (uint64_t n = cases.first; n < cases.end; n++) {
        test_random r;
        test_random_init(&r, cases.seed, 1, n);
        check_graph(&r, &targets[n % 2]);
    }
}
END_TEST

/* A chain of n definitions, each read by the next one only or (twice) at one place. */
static void build_chain(ir_func *f, uint32_t n, bool twice)
{
    opjit_error error = { 0 };
    ck_assert(opjit_ir_init(f, &opjit_rt_default_allocator, "chain", &error) == OPJIT_OK);
    ir_tensor t = { .role = IR_IN, .type = IR_I32, .rank = 2, .sizes = { 8, 40 }, .bytes = 1280, .align = 4 };
    ir_ref tail = 0, at[2];
    opjit_ir_dense_strides(&t);
    uint32_t last = opjit_ir_tensor(f, &t);
    t.role = IR_OUT;
    t.slot = 1;
    const uint32_t out = opjit_ir_tensor(f, &t);
    t.role = IR_VALUE;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t tensor = i + 1 == n ? out : opjit_ir_tensor(f, &t);
        const ir_ref s = i + 1 == n ? opjit_ir_yield(f, tensor) : opjit_ir_def(f, tensor);
        for (uint32_t d = 0; d < 2; d++)
            at[d] = opjit_ir_coordinate(f, s, d);
        const ir_ref x = opjit_ir_load(f, last, at),
                     y = twice ? opjit_ir_load(f, last, at) : opjit_ir_const(f, IR_I32, i);
        opjit_ir_set_value(f, s, ir_expr2(f, IR_MUL, IR_NONE, ir_expr2(f, IR_ADD, IR_NONE, x, y), y));
        opjit_ir_append(f, 0, &tail, s);
        last = tensor;
    }
    ck_assert(!f->failed);
}

/* One stage, however long the chain is, and work that grows linearly with it: counted, not timed. */
START_TEST(chains)
{
    uint64_t nodes[2];
    for (uint32_t k = 0; k < 2; k++) {
        ir_func f;
        rt_target target;
        buffers b;
        test_random r;
        opjit_error error = { 0 };
        const ir_pass_env env = { .target = &target, .verify = true };
        test_random_init(&r, 1, 2, (uint64_t)_i);
        ck_assert(opjit_rt_target_parse("cpu:x86-64-v3", &target, &error) == OPJIT_OK);
        build_chain(&f, k == 0 ? 500 : 1000, _i == 1);
        make_buffers(&f, &b, &r);
        interpret(&f, &b);
        int32_t expected[320];
        memcpy(expected, b.memory[1], sizeof expected);
        ck_assert_msg(opjit_ir_run_passes(&f, &env, IR_SCHEDULED, &error) == OPJIT_OK, "%s", error.message);
        ck_assert_uint_eq(ir_at(&f, f.body)->next, 0);
        ck_assert_uint_eq(f.shared_size, 0);
        interpret(&f, &b);
        ck_assert_mem_eq(b.memory[1], expected, sizeof expected);
        nodes[k] = f.node_count;
        free_buffers(&b);
        opjit_ir_free(&f);
    }
    ck_assert_uint_lt(nodes[1], 3 * nodes[0]);
}
END_TEST

/* What follows from bytes of both kinds is looked up: in another shape, by way of other bytes, and beside what is
 * not. */
START_TEST(of_bytes)
{
    static const char *const kinds[] = { "u8", "i8" };
    static const char text[] =
        "kernel @bytes after lower {\n"
        "    in %%0: %s[64,128]\n    in %%1: f32[64,128]\n"
        "    out %%2: %s[64,128]\n    out %%3: f32[8192]\n    out %%4: f32[64,128]\n"
        "    def %%5: f32[64,128] (%%ib,%%jb) = mul(cast f32 (sub(cast i32 (load %%0[%%ib,%%jb]), i32 3)), "
        "f32 0x1.8p-5)\n"
        "    def %%6: %s[64,128] (%%ic,%%jc) = cast %s (rint(mul(div(load %%5[%%ic,%%jc], "
        "add(exp(neg(load %%5[%%ic,%%jc])), f32 0x1p+0)), f32 0x1p+4)))\n"
        "    view %%7: %s[8192] of %%6\n"
        "    def %%8: f32[8192] (%%id) = exp(neg(abs(cast f32 (load %%7[%%id]))))\n"
        "    yield %%2 (%%ie,%%je) = load %%6[%%ie,%%je]\n"
        "    yield %%3 (%%if) = load %%8[%%if]\n"
        "    yield %%4 (%%ig,%%jg) = add(load %%1[%%ig,%%jg], cast f32 (load %%6[%%ig,%%jg]))\n}\n";
    char own[1500];
    test_random r;
    rt_target target;
    ir_func f;
    opjit_error error = { 0 };
    const char *const kind = kinds[_i];
    const int length = snprintf(own, sizeof own, text, kind, kind, kind, kind, kind);
    test_random_init(&r, 1, 3, (uint64_t)_i);
    ck_assert(opjit_rt_target_parse("cpu:x86-64-v3", &target, &error) == OPJIT_OK);
    ck_assert_msg(opjit_ir_parse(own, (size_t)length, &opjit_rt_default_allocator, &f, &error) == OPJIT_OK, "%s",
                  error.message);
    const ir_pass_env env = { .target = &target };
    ck_assert(opjit_ir_run_passes(&f, &env, IR_FOLDED, &error) == OPJIT_OK);
    ck_assert_uint_eq(f.steps[IR_STEP_BYTE_TABLE], 2);
    opjit_ir_free(&f);
    ck_assert(opjit_ir_parse(own, (size_t)length, &opjit_rt_default_allocator, &f, &error) == OPJIT_OK);
    check_passes(&f, &r, &target);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ir.pass_graphs");
    TCase *tcase = tcase_create("graphs");
    tcase_add_test(tcase, random_graphs);
    tcase_add_loop_test(tcase, chains, 0, 2);
    tcase_add_loop_test(tcase, of_bytes, 0, 2);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
