/* SPDX-License-Identifier: Apache-2.0 */
/* test_cg_direct.c - functions that are written without LLVM's backend: more values than there are registers, loops
 * whose variables change places, values that are needed after the next one is known, and equal bytes for equal modules.
 * The module is text of LLVM's; expected results are computed here. */
#define _GNU_SOURCE
#include "codegen/direct/codegen_direct.h"
#include "codegen/object/link.h"
#include "codegen/targets/target.h"

#include <check.h>
#include <llvm-c/IRReader.h>
#include <llvm-c/TargetMachine.h>
#include <math.h>
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
    cg_refusal refusal;
    ck_assert_msg(!LLVMParseIRInContext(context, buffer, &module, &message), "%s", message);
    opjit_rt_bytes_init(object, &opjit_rt_default_allocator);
    ck_assert_msg(opjit_cg_direct(module, &target, &opjit_rt_default_allocator, object, &refusal), "%s: %s",
                  refusal.function, refusal.why);
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
        "out:\n  store i64 %x, ptr %b, align 8\n  %p = getelementptr i64, ptr %b, i64 1\n"
        "  store i64 %z, ptr %p, align 8\n"
        "  %q = getelementptr i64, ptr %b, i64 2\n  store i64 %w, ptr %q, align 8\n  ret void\n}\n";
    int64_t out[3];
    run(text, NULL, out, 0, 4);
    ck_assert_int_eq(out[0], 4);
    ck_assert_int_eq(out[1], 1 + 3 + 4 + 3);
    ck_assert_int_eq(out[2], 1 + 3 + 4 + 3 + 4);
}
END_TEST

#define V4 "<4 x float>"
#define LANES(x) " <float " x ", float " x ", float " x ", float " x ">"
#define SPLAT4(x) V4 LANES(x)

/* Numbers and vectors are given in registers of their own, and two vectors are given back.  Each product's register is
 * that of another operand: of the first factor, the second one, what is added, or none. */
START_TEST(results)
{
    static const char text[] = HEAD
        "  %x = load " V4 ", ptr %a, align 4\n  %p = getelementptr " V4 ", ptr %a, i64 1\n"
        "  %y = load " V4 ", ptr %p, align 4\n"
        "  %r = call { " V4 ", " V4 " } @g(i64 %begin, " V4 " %x, ptr %b, " V4 " %y)\n"
        "  %r0 = extractvalue { " V4 ", " V4 " } %r, 0\n  %r1 = extractvalue { " V4 ", " V4 " } %r, 1\n"
        "  %q = getelementptr " V4 ", ptr %b, i64 1\n  %s = getelementptr " V4 ", ptr %b, i64 2\n"
        "  store " V4 " %r0, ptr %q, align 4\n  store " V4 " %r1, ptr %s, align 4\n  ret void\n}\n"
        "define internal { " V4 ", " V4 " } @g(i64 %n, " V4 " %x, ptr %p, " V4 " %y) {\n"
        "  store i64 %n, ptr %p, align 8\n"
        "  %a = call " V4 " @llvm.fma.v4f32(" V4 " %x, " SPLAT4("2.0") ", " SPLAT4("3.0") ")\n"
        "  %b = call " V4 " @llvm.fma.v4f32(" V4 " %a, " V4 " %x, " V4 " %y)\n"
        "  %c = call " V4 " @llvm.fma.v4f32(" V4 " %x, " V4 " %b, " SPLAT4("3.0") ")\n"
        "  %d = call " V4 " @llvm.fma.v4f32(" V4 " %x, " V4 " %y, " V4 " %c)\n"
        "  %e = call " V4 " @llvm.fma.v4f32(" V4 " %x, " V4 " %y, " V4 " %x)\n"
        "  %i = insertvalue { " V4 ", " V4 " } poison, " V4 " %d, 0\n"
        "  %j = insertvalue { " V4 ", " V4 " } %i, " V4 " %e, 1\n  ret { " V4 ", " V4 " } %j\n}\n"
        "declare " V4 " @llvm.fma.v4f32(" V4 ", " V4 ", " V4 ")\n";
    float in[2][4], out[3][4] = { { 0 } };
    int64_t number;
    for (int i = 0; i < 8; i++)
        in[i / 4][i % 4] = (float)(i + 1);
    run(text, in, out, 7, 8);
    memcpy(&number, out, sizeof number);
    ck_assert_int_eq(number, 7);
    for (int i = 0; i < 4; i++) { /* small integers, so without rounding */
        const float x = in[0][i], y = in[1][i];
        ck_assert_float_eq(out[1][i], x * y + (x * ((x * 2 + 3) * x + y) + 3));
        ck_assert_float_eq(out[2][i], x * y + x);
    }
}
END_TEST

/* Vectors that are needed before and after a call that overwrites all registers, in a loop: each operation has its
 * own result, is one of several accesses between two calls, or the only one. */
START_TEST(around_calls)
{
    enum { ALL = 18 };
    static char text[TEXT];
    float in[ALL][4], out[ALL][4], sums[ALL][4] = { { 0 } };
    int n = snprintf(text, TEXT, "@k = private constant " V4 LANES("3.0") "\n%sentry:\n", HEAD);
    for (int i = 0; i < ALL; i++)
        n += snprintf(text + n, TEXT - n,
                      "  %%q%d = getelementptr " V4 ", ptr %%a, i64 %d\n  %%x%d = load " V4 ", ptr %%q%d, align 4\n", i,
                      i, i, i);
    n += snprintf(text + n, TEXT - n,
                  "  %%k = load " V4 ", ptr @k, align 16\n  br label %%loop\nloop:\n"
                  "  %%i = phi i64 [ %%begin, %%entry ], [ %%j, %%loop ]\n");
    for (int i = 0; i < ALL; i++)
        n += snprintf(text + n, TEXT - n, "  %%s%d = phi " V4 " [ zeroinitializer, %%entry ], [ %%t%d, %%loop ]\n", i,
                      i);
    for (int i = 0; i < ALL; i++)
        n += snprintf(text + n, TEXT - n,
                      "  %%y%d = fadd " V4 " %%x%d, %%k\n  %%z%d = fmul " V4 " %%y%d, %%x%d\n"
                      "  %%v%d = fadd " V4 " %%s%d, %%x%d\n",
                      i, i, i, i, (i + 1) % ALL, i, i, i);
    n += snprintf(text + n, TEXT - n, "  %%r = call " V4 " @g(ptr %%a, " V4 " %%z0)\n");
    for (int i = 0; i < ALL; i++)
        n += snprintf(text + n, TEXT - n,
                      "  %%w%d = fsub " V4 " %%k, %%y%d\n  %%u%d = call " V4 " @llvm.fma.v4f32(" V4 " %%w%d, " V4
                      " %%r, " V4 " %%z%d)\n  %%t%d = fadd " V4 " %%u%d, %%v%d\n",
                      i, i, i, i, i, i, i, i);
    n += snprintf(text + n, TEXT - n,
                  "  %%j = add i64 %%i, 1\n  %%go = icmp slt i64 %%j, %%end\n"
                  "  br i1 %%go, label %%loop, label %%out\nout:\n");
    for (int i = 0; i < ALL; i++)
        n += snprintf(text + n, TEXT - n,
                      "  %%r%d = getelementptr " V4 ", ptr %%b, i64 %d\n  store " V4 " %%t%d, ptr %%r%d, align 4\n", i,
                      i, i, i);
    n += snprintf(text + n, TEXT - n, "  ret void\n}\ndefine internal " V4 " @g(ptr %%a, " V4 " %%first) {\n");
    for (int i = 0; i < ALL; i++)
        n += snprintf(text + n, TEXT - n,
                      "  %%q%d = getelementptr " V4 ", ptr %%a, i64 %d\n  %%x%d = load " V4
                      ", ptr %%q%d, align 4\n  %%y%d = fadd " V4 " %%x%d, %%first\n",
                      i, i, i, i, i, i);
    for (int i = 0; i < ALL; i++) /* z0 + the last one, whatever the others are */
        n += snprintf(text + n, TEXT - n,
                      "  %%z%d = call " V4 " @llvm.fma.v4f32(" V4 " %%y%d, " V4 " %s, " V4 " %%%c%d)\n", i, i,
                      i == ALL - 1 ? LANES("1.0") : LANES("0.0"), i == 0 ? 'x' : 'z', i == 0 ? 0 : i - 1);
    snprintf(text + n, TEXT - n,
             "  %%z = fsub " V4 " %%z%d, %%x0\n  ret " V4 " %%z\n}\n"
             "declare " V4 " @llvm.fma.v4f32(" V4 ", " V4 ", " V4 ")\n",
             ALL - 1);
    for (int i = 0; i < 4 * ALL; i++)
        in[i / 4][i % 4] = (float)(i % 7 + 1);
    run(text, in, out, 0, 3);
    for (int l = 0; l < 4; l++)
        for (int round = 0; round < 3; round++)
            for (int i = 0; i < ALL; i++) { /* small integers, so without rounding */
                const float r = in[ALL - 1][l] + (in[0][l] + 3) * in[1][l], x = in[i][l];
                const float z = (x + 3) * in[(i + 1) % ALL][l], w = 3 - (x + 3);
                sums[i][l] += w * r + z + x;
            }
    ck_assert_int_eq(memcmp(out, sums, sizeof out), 0);
}
END_TEST

/* A mask that is needed several times before and after a call: of AVX-512 it is no vector. */
START_TEST(mask_around_a_call)
{
    static const char text[] =
        HEAD "  %x = load " V4 ", ptr %a, align 4\n  %p = getelementptr " V4 ", ptr %a, i64 1\n"
             "  %y = load " V4 ", ptr %p, align 4\n  %m = fcmp olt " V4 " %x, %y\n"
             "  %u = select <4 x i1> %m, " V4 " %x, " V4 " %y\n  %s = select <4 x i1> %m, " V4 " %y, " V4 " %x\n"
             "  %v = fsub " V4 " %s, %u\n  %r = call " V4 " @g(" V4 " %v)\n"
             "  %w = select <4 x i1> %m, " V4 " %r, " V4 " %u\n  %z = fadd " V4 " %w, %s\n"
             "  %o = select <4 x i1> %m, " V4 " %z, " V4 " %v\n  store " V4 " %o, ptr %b, align 4\n  ret void\n}\n"
             "define internal " V4 " @g(" V4 " %x) {\n  %m = fcmp ogt " V4 " %x, " LANES("2.0") "\n"
             "  %y = fadd " V4 " %x, %x\n  %z = select <4 x i1> %m, " V4 " %y, " V4 " %x\n  ret " V4 " %z\n}\n";
    const float in[2][4] = { { 1, 5, 2, 7 }, { 4, 3, 3, 7 } };
    float out[4];
    run(text, (void *)(uintptr_t)in, out, 0, 1);
    for (int i = 0; i < 4; i++) {
        const float x = in[0][i], y = in[1][i], far = y - x > 2 ? 2 * (y - x) : y - x;
        ck_assert_float_eq(out[i], x < y ? far + y : x - y);
    }
}
END_TEST

/* A constant that is loaded on one way is not there on the other one. */
START_TEST(constant_of_a_way)
{
    static const char text[] = HEAD
        "  %first = icmp eq i64 %begin, 0\n  br i1 %first, label %one, label %two\n"
        "one:\n  %v = phi " V4 " [" LANES("5.0") ", %0 ]\n  store " V4 " %v, ptr %a, align 4\n  br label %two\n"
        "two:\n  %w = phi " V4 " [" LANES("5.0") ", %0 ], [" LANES("6.0") ", %one ]\n"
        "  store " V4 " %w, ptr %b, align 4\n  ret void\n}\n";
    for (int begin = 0; begin < 2; begin++) {
        float a[4] = { 0 }, b[4] = { 0 };
        run(text, a, b, begin, 2);
        for (int i = 0; i < 4; i++) {
            ck_assert_float_eq(a[i], begin == 0 ? 5 : 0);
            ck_assert_float_eq(b[i], begin == 0 ? 6 : 5);
        }
    }
}
END_TEST

/* The smaller or larger of two, which of zeros and where one is no number is the second one. */
START_TEST(choice)
{
    static const char *const ways[] = { "olt", "ogt" };
    const float numbers[4] = { 1, -0.0f, NAN, 3 }, others[4] = { 2, 0.0f, 4, NAN };
    for (int way = 0; way < 4; way++) {
        char text[1024];
        float in[2][4], out[4];
        memcpy(in[0], numbers, sizeof numbers);
        memcpy(in[1], others, sizeof others);
        snprintf(text, sizeof text,
                 "%s  %%x = load " V4 ", ptr %%a, align 4\n  %%p = getelementptr " V4 ", ptr %%a, i64 1\n"
                      "  %%y = load " V4 ", ptr %%p, align 4\n  %%first = fcmp %s " V4 " %%x, %%y\n"
                      "  %%i = bitcast " V4 " %%x to <4 x i32>\n  %%j = bitcast " V4 " %%y to <4 x i32>\n"
                      "  %%z = select <4 x i1> %%first, <4 x i32> %%%c, <4 x i32> %%%c\n"
                      "  store <4 x i32> %%z, ptr %%b, align 4\n  ret void\n}\n",
                 HEAD, ways[way / 2], "ij"[way % 2], "ji"[way % 2]);
        run(text, in, out, 0, 1);
        for (int i = 0; i < 4; i++) {
            const bool yes = way / 2 == 0 ? in[0][i] < in[1][i] : in[0][i] > in[1][i];
            ck_assert_int_eq(memcmp(&out[i], &in[yes == (way % 2 == 1)][i], sizeof out[i]), 0);
        }
    }
}
END_TEST

/* Lanes of a vector that is wider than any register: nothing else of it is needed. */
START_TEST(late_lanes)
{
    const rt_target host = target;
    const int32_t in[8] = { 1, -1, 0, -7, 5, INT32_MIN, -2, 9 };
    int64_t out[8];
    char text[4096];
    int n = snprintf(text, sizeof text,
                     "%s  %%x = load <8 x i32>, ptr %%a, align 4\n  %%k = icmp slt <8 x i32> %%x, zeroinitializer\n"
                     "  %%i = insertelement <8 x i64> poison, i64 %%end, i32 0\n"
                     "  %%s = shufflevector <8 x i64> %%i, <8 x i64> poison, <8 x i32> zeroinitializer\n"
                     "  %%w = sext <8 x i32> %%x to <8 x i64>\n  %%m = mul <8 x i64> %%w, %%s\n"
                     "  %%p = add <8 x i64> %%m, <i64 0, i64 2, i64 4, i64 6, i64 8, i64 10, i64 12, i64 14>\n"
                     "  %%o = select <8 x i1> %%k, <8 x i64> %%p, <8 x i64> %%s\n",
                     HEAD);
    for (int i = 0; i < 8; i++)
        n += snprintf(text + n, sizeof text - (size_t)n,
                      "  %%e%d = extractelement <8 x i64> %%o, i32 %d\n  %%q%d = getelementptr i64, ptr %%b, i64 %d\n"
                      "  store i64 %%e%d, ptr %%q%d, align 8\n",
                      i, i, i, i, i, i);
    snprintf(text + n, sizeof text - (size_t)n, "  ret void\n}\n");
    ck_assert_int_eq(opjit_rt_target_parse("cpu:x86-64-v3", &target, NULL), OPJIT_OK);
    run(text, (void *)in, out, 0, 3);
    target = host;
    for (int i = 0; i < 8; i++)
        ck_assert_int_eq(out[i], in[i] < 0 ? (int64_t)in[i] * 3 + 2 * i : 3);
}
END_TEST

/* A condition that holds for all lanes or none, beside one of each lane. */
START_TEST(condition_of_all_lanes)
{
    static const int32_t in[8] = { -3, 5, -7, 0, 1 << 30, -(1 << 30), 1, -1 };
    int32_t out[8];
    static const char text[] =
        HEAD "  %t = icmp sgt i64 %end, 2\n  %i = insertelement <8 x i1> poison, i1 %t, i32 0\n"
             "  %s = shufflevector <8 x i1> %i, <8 x i1> poison, <8 x i32> zeroinitializer\n"
             "  %x = load <8 x i32>, ptr %a, align 4\n  %k = icmp slt <8 x i32> %x, zeroinitializer\n"
             "  %m = and <8 x i1> %k, %s\n  %y = select <8 x i1> %m, <8 x i32> %x, <8 x i32> zeroinitializer\n"
             "  store <8 x i32> %y, ptr %b, align 4\n  ret void\n}\n";
    for (int64_t end = 2; end < 4; end++) {
        run(text, (void *)in, out, 0, end);
        for (int i = 0; i < 8; i++)
            ck_assert_int_eq(out[i], in[i] < 0 && end > 2 ? in[i] : 0);
    }
}
END_TEST

/* Memory of a vector that is shorter than a register: no byte of other lanes is read or written, whose bits of the
 * mask are those of a comparison of 16 bytes.  The last lane is the last byte of a page. */
START_TEST(short_in_memory)
{
    static const char text[] =
        HEAD "  %t = trunc i64 %end to i8\n  %i = insertelement <8 x i8> poison, i8 %t, i32 0\n"
             "  %s = shufflevector <8 x i8> %i, <8 x i8> poison, <8 x i32> zeroinitializer\n"
             "  %k = icmp ult <8 x i8> <i8 0, i8 1, i8 2, i8 3, i8 4, i8 5, i8 6, i8 7>, %s\n"
             "  %x = call <8 x i8> @llvm.masked.load.v8i8.p0(ptr %a, <8 x i1> %k, <8 x i8> zeroinitializer)\n"
             "  call void @llvm.masked.store.v8i8.p0(<8 x i8> %x, ptr %b, <8 x i1> %k)\n  ret void\n}\n"
             "declare <8 x i8> @llvm.masked.load.v8i8.p0(ptr, <8 x i1>, <8 x i8>)\n"
             "declare void @llvm.masked.store.v8i8.p0(<8 x i8>, ptr, <8 x i1>)\n";
    enum { PAGE = 4096 };
    if (!__builtin_cpu_supports("avx512bw") || !__builtin_cpu_supports("avx512vl"))
        return; /* AVX2 has no such masks */
    uint8_t *pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(pages, MAP_FAILED);
    ck_assert_int_eq(mprotect(pages + PAGE, PAGE, PROT_NONE), 0);
    for (int64_t count = 0; count <= 8; count++) {
        uint8_t out[24], *in = pages + PAGE - count;
        memset(out, 0xa5, sizeof out);
        for (int64_t i = 0; i < count; i++)
            in[i] = (uint8_t)(i + 1);
        run(text, in, out, 0, count);
        for (int64_t i = 0; i < (int64_t)sizeof out; i++)
            ck_assert_int_eq(out[i], i < count ? i + 1 : 0xa5);
    }
    munmap(pages, 2 * PAGE);
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
    static const char text[] = HEAD "  %x = load i64, ptr %a, align 8\n  %y = call i64 @llvm.bswap.i64(i64 %x)\n"
                                    "  store i64 %y, ptr %b, align 8\n  ret void\n}\n"
                                    "declare i64 @llvm.bswap.i64(i64)\n";
    LLVMContextRef context = LLVMContextCreate();
    LLVMMemoryBufferRef buffer = LLVMCreateMemoryBufferWithMemoryRangeCopy(text, strlen(text), "");
    LLVMModuleRef module = NULL;
    char *message = NULL;
    cg_refusal refusal;
    rt_bytes object;
    opjit_rt_bytes_init(&object, &opjit_rt_default_allocator);
    ck_assert(!LLVMParseIRInContext(context, buffer, &module, &message));
    ck_assert(!opjit_cg_direct(module, &target, &opjit_rt_default_allocator, &object, &refusal));
    ck_assert_str_eq(refusal.why, "bswap.i64");
    ck_assert_str_eq(refusal.function, "f");
    ck_assert_uint_eq(object.size, 0);
    LLVMDisposeModule(module);
    LLVMContextDispose(context);
}
END_TEST

/* Modules get a layout of data that the backend, which is not loaded for them, has as well. */
START_TEST(layout)
{
    const cg_target *cpu = opjit_cg_target_find(RT_ARCH_X86_64);
    cpu->setup();
    LLVMTargetMachineRef machine = LLVMCreateTargetMachine(LLVMGetTargetFromName(cpu->name), cpu->triple, "", "",
                                                           LLVMCodeGenLevelNone, LLVMRelocPIC, LLVMCodeModelSmall);
    LLVMTargetDataRef data = LLVMCreateTargetDataLayout(machine);
    char *text = LLVMCopyStringRepOfTargetData(data);
    ck_assert_str_eq(cpu->layout, text);
    LLVMDisposeMessage(text);
    LLVMDisposeTargetData(data);
    LLVMDisposeTargetMachine(machine);
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
    tcase_add_test(tcase, results);
    tcase_add_test(tcase, around_calls);
    tcase_add_test(tcase, mask_around_a_call);
    tcase_add_test(tcase, constant_of_a_way);
    tcase_add_test(tcase, choice);
    tcase_add_test(tcase, late_lanes);
    tcase_add_test(tcase, condition_of_all_lanes);
    tcase_add_test(tcase, short_in_memory);
    tcase_add_test(tcase, same_bytes);
    tcase_add_test(tcase, refused);
    tcase_add_test(tcase, layout);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
