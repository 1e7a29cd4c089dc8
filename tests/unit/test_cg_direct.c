/* SPDX-License-Identifier: Apache-2.0 */
/* test_cg_direct.c - functions that are written without LLVM's backend: more values than there are registers, loops
 * whose variables change places, values that are needed after the next one is known, and equal bytes for equal modules.
 * The module is text of LLVM's; expected results are computed here. */
#define _GNU_SOURCE
#include "codegen/direct/codegen_direct.h"
#include "codegen/object/link.h"

#include <check.h>
#include <llvm-c/IRReader.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { TEXT = 1 << 16, MANY = 48, ROUNDS = 7 };

static rt_target target;

static void make(const char *text, rt_bytes *object)
{
    LLVMContextRef context = LLVMContextCreate();
    LLVMMemoryBufferRef buffer = LLVMCreateMemoryBufferWithMemoryRangeCopy(text, strlen(text), "");
    LLVMModuleRef module = NULL;
    char *message = NULL;
    const char *why = NULL;
    ck_assert_msg(!LLVMParseIRInContext(context, buffer, &module, &message), "%s", message);
    opjit_rt_bytes_init(object, &opjit_rt_default_allocator);
    ck_assert_msg(opjit_cg_direct(module, &target, &opjit_rt_default_allocator, object, &why), "%s", why);
    LLVMDisposeModule(module);
    LLVMContextDispose(context);
}

typedef void stage(void *a, void *b, void *c, void *d, int64_t begin, int64_t end);

/* Runs the function of this text, which is the module's first. */
static void run(const char *text, void *a, void *b, int64_t begin, int64_t end)
{
    rt_bytes object, code;
    opjit_error error;
    union {
        void *memory;
        stage *call;
    } at;
    make(text, &object);
    opjit_rt_bytes_init(&code, &opjit_rt_default_allocator);
    ck_assert_int_eq(opjit_cg_link(object.data, object.size, NULL, &code, &error), OPJIT_OK);
    at.memory = mmap(NULL, code.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(at.memory, MAP_FAILED);
    memcpy(at.memory, code.data, code.size);
    ck_assert_int_eq(mprotect(at.memory, code.size, PROT_READ | PROT_EXEC), 0);
    at.call(a, b, NULL, NULL, begin, end);
    munmap(at.memory, code.size);
    opjit_rt_bytes_free(&code);
    opjit_rt_bytes_free(&object);
}

#define HEAD "define void @f(ptr %a, ptr %b, ptr %c, ptr %d, i64 %begin, i64 %end) {\n"

/* MANY numbers that take each other's places in each round, the first one plus the round. */
static void rotation(char *text, const char *type, const char *add)
{
    int n = snprintf(text, TEXT, "%sentry:\n", HEAD);
    for (int i = 0; i < MANY; i++)
        n += snprintf(text + n, TEXT - n,
                      "  %%q%d = getelementptr %s, ptr %%a, i64 %d\n  %%v%d = load %s, ptr %%q%d, align 4\n", i, type,
                      i, i, type, i);
    n += snprintf(text + n, TEXT - n,
                  "  br label %%loop\nloop:\n  %%i = phi i64 [ %%begin, %%entry ], [ %%j, %%loop ]\n");
    for (int i = 0; i < MANY; i++)
        n += snprintf(text + n, TEXT - n, "  %%p%d = phi %s [ %%v%d, %%entry ], [ %%%c%d, %%loop ]\n", i, type, i,
                      i == MANY - 1 ? 's' : 'p', i == MANY - 1 ? 0 : i + 1);
    n += snprintf(text + n, TEXT - n,
                  "  %%s0 = %s %s %%p0, %%p1\n  %%j = add i64 %%i, 1\n  %%go = icmp slt i64 %%j, %%end\n"
                  "  br i1 %%go, label %%loop, label %%out\nout:\n",
                  add, type);
    for (int i = 0; i < MANY; i++)
        n += snprintf(text + n, TEXT - n,
                      "  %%r%d = getelementptr %s, ptr %%b, i64 %d\n  store %s %%p%d, ptr %%r%d, align 4\n", i, type, i,
                      type, i, i);
    snprintf(text + n, TEXT - n, "  ret void\n}\n");
}

/* What the phis are in the last round: they are stored, not what comes next. */
START_TEST(many_integers)
{
    static char text[TEXT];
    int64_t in[MANY], out[MANY];
    for (int i = 0; i < MANY; i++)
        in[i] = 1000 + 17 * i;
    rotation(text, "i64", "add");
    run(text, in, out, 0, ROUNDS);
    for (int k = 0; k < ROUNDS - 1; k++) {
        const int64_t last = in[0] + in[1];
        memmove(in, in + 1, sizeof in - sizeof *in);
        in[MANY - 1] = last;
    }
    for (int i = 0; i < MANY; i++)
        ck_assert_int_eq(out[i], in[i]);
}
END_TEST

START_TEST(many_vectors)
{
    static char text[TEXT];
    float in[MANY][4], out[MANY][4];
    for (int i = 0; i < 4 * MANY; i++)
        in[i / 4][i % 4] = (float)(i * 3 + 1);
    rotation(text, "<4 x float>", "fadd");
    run(text, in, out, 0, ROUNDS);
    for (int k = 0; k < ROUNDS - 1; k++) {
        float last[4];
        for (int l = 0; l < 4; l++)
            last[l] = in[0][l] + in[1][l];
        memmove(in, in + 1, sizeof in - sizeof *in);
        memcpy(in[MANY - 1], last, sizeof last);
    }
    ck_assert_int_eq(memcmp(in, out, sizeof in), 0);
}
END_TEST

/* A variable of the stack that one of two ways writes, and that the next round reads. */
START_TEST(variable)
{
    static const char text[] =
        HEAD "  %s = alloca i64, align 8\n  store i64 5, ptr %s, align 8\n  br label %loop\n"
             "loop:\n  %i = phi i64 [ %begin, %0 ], [ %j, %next ]\n  %x = load i64, ptr %s, align 8\n"
             "  %t = and i64 %i, 1\n  %odd = icmp eq i64 %t, 1\n  br i1 %odd, label %then, label %next\n"
             "then:\n  %y = mul i64 %x, 3\n  store i64 %y, ptr %s, align 8\n  br label %next\n"
             "next:\n  %p = getelementptr i64, ptr %b, i64 %i\n  store i64 %x, ptr %p, align 8\n  %j = add i64 %i, 1\n"
             "  %go = icmp ne i64 %j, %end\n  br i1 %go, label %loop, label %out\nout:\n  ret void\n}\n";
    int64_t out[ROUNDS], x = 5;
    run(text, NULL, out, 0, ROUNDS);
    for (int i = 0; i < ROUNDS; i++) {
        ck_assert_int_eq(out[i], x);
        x = i % 2 == 1 ? 3 * x : x;
    }
}
END_TEST

/* Two variables that change places in each round, and the old one of which is needed after the loop. */
START_TEST(exchange)
{
    static const char text[] = HEAD
        "  br label %loop\nloop:\n  %i = phi i64 [ %begin, %0 ], [ %j, %loop ]\n"
        "  %x = phi i64 [ 3, %0 ], [ %y, %loop ]\n  %y = phi i64 [ 4, %0 ], [ %x, %loop ]\n"
        "  %z = phi i64 [ 1, %0 ], [ %w, %loop ]\n  %w = add i64 %z, %x\n  %j = add i64 %i, 1\n"
        "  %go = icmp ult i64 %j, %end\n  br i1 %go, label %loop, label %out\n"
        "out:\n  store i64 %x, ptr %b, align 8\n  %p = getelementptr i64, ptr %b, i64 1\n  store i64 %z, ptr %p, align 8\n"
        "  %q = getelementptr i64, ptr %b, i64 2\n  store i64 %w, ptr %q, align 8\n  ret void\n}\n";
    int64_t out[3];
    run(text, NULL, out, 0, 4);
    ck_assert_int_eq(out[0], 4);
    ck_assert_int_eq(out[1], 1 + 3 + 4 + 3);
    ck_assert_int_eq(out[2], 1 + 3 + 4 + 3 + 4);
}
END_TEST

START_TEST(same_bytes)
{
    static char text[TEXT];
    rt_bytes first, second;
    rotation(text, "<8 x i32>", "add");
    make(text, &first);
    make(text, &second);
    ck_assert_uint_eq(first.size, second.size);
    ck_assert_int_eq(memcmp(first.data, second.data, first.size), 0);
    opjit_rt_bytes_free(&first);
    opjit_rt_bytes_free(&second);
}
END_TEST

/* What is not known is refused as a whole. */
START_TEST(refused)
{
    static const char text[] = HEAD "  %x = load i64, ptr %a, align 8\n  %y = udiv i64 %x, %begin\n"
                                    "  store i64 %y, ptr %b, align 8\n  ret void\n}\n";
    LLVMContextRef context = LLVMContextCreate();
    LLVMMemoryBufferRef buffer = LLVMCreateMemoryBufferWithMemoryRangeCopy(text, strlen(text), "");
    LLVMModuleRef module = NULL;
    char *message = NULL;
    const char *why = NULL;
    rt_bytes object;
    opjit_rt_bytes_init(&object, &opjit_rt_default_allocator);
    ck_assert(!LLVMParseIRInContext(context, buffer, &module, &message));
    ck_assert(!opjit_cg_direct(module, &target, &opjit_rt_default_allocator, &object, &why));
    ck_assert_str_eq(why, "instruction");
    ck_assert_uint_eq(object.size, 0);
    LLVMDisposeModule(module);
    LLVMContextDispose(context);
}
END_TEST

int main(void)
{
    opjit_rt_target_host(&target);
    if (target.arch != RT_ARCH_X86_64 || target.level < 3)
        return 77;
    Suite *suite = suite_create("cg.direct");
    TCase *tcase = tcase_create("functions");
    tcase_add_test(tcase, many_integers);
    tcase_add_test(tcase, many_vectors);
    tcase_add_test(tcase, variable);
    tcase_add_test(tcase, exchange);
    tcase_add_test(tcase, same_bytes);
    tcase_add_test(tcase, refused);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
