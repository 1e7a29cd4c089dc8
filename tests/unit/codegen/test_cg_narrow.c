/* SPDX-License-Identifier: Apache-2.0 */
/* test_cg_narrow.c - functions on vectors that are written without LLVM's backend for AVX2, which has no mask registers
 * and shuffles within 16 bytes: what they store is what LLVM's code of the same text stores. */
#define _GNU_SOURCE
#include "codegen/direct/codegen_direct.h"
#include "codegen/llvm_compat.h"
#include "codegen/object/link.h"
#include "codegen/targets/target.h"

#include <check.h>
#include <llvm-c/IRReader.h>
#include <llvm-c/TargetMachine.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { TEXT = 1 << 16, BYTES = 1024, SHUFFLES = 20, MANY = 24 };

static rt_target target;
static char text[TEXT];
static size_t length;

typedef void stage(void *a, void *b, void *c, void *d, int64_t begin, int64_t end);

#define ZERO "zeroinitializer"

/* --- texts -------------------------------------------------------------------------------------------------------- */

static void add(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    length += (size_t)vsnprintf(text + length, TEXT - length, format, list);
    va_end(list);
    ck_assert_uint_lt(length, TEXT);
}

/* %x and %y are vectors out of a and b, %m and %n of another type. */
static void begin(const char *type, const char *other)
{
    length = 0;
    add("define void @f(ptr %%a, ptr %%b, ptr %%c, ptr %%d, i64 %%begin, i64 %%end) {\n");
    add("  %%x = load %s, ptr %%a, align 1\n  %%y = load %s, ptr %%b, align 1\n", type, type);
    add("  %%p = getelementptr i8, ptr %%a, i64 256\n  %%q = getelementptr i8, ptr %%b, i64 256\n");
    add("  %%m = load %s, ptr %%p, align 1\n  %%n = load %s, ptr %%q, align 1\n", other, other);
}

static void end(const char *type, const char *value, const char *declarations)
{
    add("  store %s %s, ptr %%c, align 1\n  ret void\n}\n%s", type, value, declarations);
}

static uint64_t state = 1;

static uint32_t number(uint32_t below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % below;
}

/* Bits of all kinds, and those of floats that are special or equal. */
static void fill(uint8_t *out)
{
    static const uint32_t floats[] = { 0, 0x80000000, 0x3f800000, 0xbf800000, 0x7fc00000, 0x7f800000, 0xff800000, 1 };
    for (uint32_t i = 0; i < BYTES; i += 4) {
        const uint32_t bits = number(2) ? floats[number(8)] : number(2) ? number(4) : number(UINT32_MAX);
        memcpy(out + i, &bits, sizeof bits);
    }
}

static void call(const void *object, size_t size, const uint8_t *a, const uint8_t *b, uint8_t *c)
{
    rt_bytes code;
    opjit_error error;
    union {
        void *memory;
        stage *call;
    } at;
    uint8_t in[2][BYTES];
    memcpy(in[0], a, BYTES);
    memcpy(in[1], b, BYTES);
    opjit_rt_bytes_init(&code, &opjit_rt_default_allocator);
    ck_assert_int_eq(opjit_cg_link(object, size, NULL, &code, &error), OPJIT_OK);
    at.memory = mmap(NULL, code.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(at.memory, MAP_FAILED);
    memcpy(at.memory, code.data, code.size);
    ck_assert_int_eq(mprotect(at.memory, code.size, PROT_READ | PROT_EXEC), 0);
    memset(c, 0x55, BYTES);
    at.call(in[0], in[1], c, NULL, 0, 3);
    munmap(at.memory, code.size);
    opjit_rt_bytes_free(&code);
}

static LLVMMemoryBufferRef by_llvm(LLVMModuleRef module)
{
    const cg_target *cpu = opjit_cg_target_find(RT_ARCH_X86_64);
    LLVMMemoryBufferRef out = NULL;
    char *message = NULL;
    cpu->setup();
    LLVMTargetMachineRef machine =
        LLVMCreateTargetMachine(LLVMGetTargetFromName(cpu->name), cpu->triple, cpu->cpu(&target), "",
                                LLVMCodeGenLevelNone, LLVMRelocPIC, LLVMCodeModelSmall);
    LLVMSetTarget(module, cpu->triple);
    LLVMSetDataLayout(module, cpu->layout);
    ck_assert_msg(!LLVMTargetMachineEmitToMemoryBuffer(machine, module, LLVMObjectFile, &message, &out), "%s", message);
    LLVMDisposeTargetMachine(machine);
    return out;
}

/* The text's function by both on the same bytes. */
static void compare(void)
{
    LLVMContextRef context = LLVMContextCreate();
    LLVMMemoryBufferRef buffer = LLVMCreateMemoryBufferWithMemoryRangeCopy(text, length, "");
    LLVMModuleRef module = NULL;
    char *message = NULL;
    cg_refusal refusal;
    rt_bytes object;
    uint8_t a[BYTES], b[BYTES], own[BYTES], other[BYTES];
    opjit_rt_bytes_init(&object, &opjit_rt_default_allocator);
    ck_assert_msg(!LLVMParseIRInContext(context, buffer, &module, &message), "%s\n%s", message, text);
    ck_assert_msg(opjit_cg_direct(module, &target, &opjit_rt_default_allocator, &object, &refusal), "%s:\n%s",
                  refusal.why, text);
    LLVMMemoryBufferRef llvm = by_llvm(module);
    for (int i = 0; i < 4; i++) {
        fill(a);
        fill(b);
        call(object.data, object.size, a, b, own);
        call(LLVMGetBufferStart(llvm), LLVMGetBufferSize(llvm), a, b, other);
        for (int k = 0; k < BYTES; k++)
            ck_assert_msg(own[k] == other[k], "byte %d: %#x, must be %#x:\n%s", k, own[k], other[k], text);
    }
    LLVMDisposeMemoryBuffer(llvm);
    opjit_rt_bytes_free(&object);
    LLVMDisposeModule(module);
    LLVMContextDispose(context);
}

/* Whether the host has AVX-512, which is then the target. */
static bool be_wide(void)
{
    rt_target wide;
    ck_assert_int_eq(opjit_rt_target_parse("cpu:x86-64-v4", &wide, NULL), OPJIT_OK);
    if (opjit_rt_target_runs_here(&wide, NULL) != OPJIT_OK)
        return false;
    target = wide;
    return true;
}

/* --- masks -------------------------------------------------------------------------------------------------------- */

static const struct {
    const char *type, *ints, *mask;
    uint32_t lanes, bits;
} vectors[] = {
    { "<32 x i8>", "<32 x i8>", "<32 x i1>", 32, 8 },      { "<16 x i16>", "<16 x i16>", "<16 x i1>", 16, 16 },
    { "<8 x i32>", "<8 x i32>", "<8 x i1>", 8, 32 },       { "<4 x i64>", "<4 x i64>", "<4 x i1>", 4, 64 },
    { "<16 x i8>", "<16 x i8>", "<16 x i1>", 16, 8 },      { "<8 x i16>", "<8 x i16>", "<8 x i1>", 8, 16 },
    { "<4 x i32>", "<4 x i32>", "<4 x i1>", 4, 32 },       { "<2 x i64>", "<2 x i64>", "<2 x i1>", 2, 64 },
    { "<8 x float>", "<8 x i32>", "<8 x i1>", 8, 32 },     { "<4 x double>", "<4 x i64>", "<4 x i1>", 4, 64 },
    { "<8 x i8>", "<8 x i8>", "<8 x i1>", 8, 8 },          { "<4 x i16>", "<4 x i16>", "<4 x i1>", 4, 16 },
    { "<4 x i8>", "<4 x i8>", "<4 x i1>", 4, 8 },          { "<2 x i32>", "<2 x i32>", "<2 x i1>", 2, 32 },
    { "<4 x float>", "<4 x i32>", "<4 x i1>", 4, 32 },     { "<2 x i8>", "<2 x i8>", "<2 x i1>", 2, 8 },
};
enum { VECTORS = sizeof vectors / sizeof *vectors };
static bool is_float(int i)
{
    return strstr(vectors[i].type, "float") || strstr(vectors[i].type, "double");
}

START_TEST(comparisons)
{
    static const char *const ints[] = { "eq", "ne", "ugt", "uge", "ult", "ule", "sgt", "sge", "slt", "sle" };
    static const char *const floats[] = { "oeq", "ogt", "oge", "olt", "ole", "one", "ord",
                                          "uno", "ueq", "ugt", "uge", "ult", "ule", "une" };
    const int count = is_float(_i) ? 14 : 10;
    for (int k = 0; k < count; k++)
        for (int zero = 0; zero < 2; zero++) {
            begin(vectors[_i].type, vectors[_i].type);
            add("  %%k = %s %s %s %%x, %%y\n", is_float(_i) ? "fcmp" : "icmp", is_float(_i) ? floats[k] : ints[k],
                vectors[_i].type);
            add("  %%r = %s %s %%k to %s\n", zero ? "zext" : "sext", vectors[_i].mask, vectors[_i].ints);
            end(vectors[_i].ints, "%r", "");
            compare();
        }
}
END_TEST

/* Lanes that one type compares and the other one chooses; what is chosen may be 0. */
START_TEST(choices)
{
    static const char *const operands[][2] = { { "%x", "%y" }, { "%x", ZERO }, { ZERO, "%y" } };
    for (int k = 0; k < VECTORS; k++)
        for (int o = 0; o < 3 && vectors[k].lanes == vectors[_i].lanes; o++) {
            begin(vectors[_i].type, vectors[k].ints);
            add("  %%k = icmp slt %s %%m, %%n\n", vectors[k].ints);
            add("  %%r = select %s %%k, %s %s, %s %s\n", vectors[k].mask, vectors[_i].type, operands[o][0],
                vectors[_i].type, operands[o][1]);
            end(vectors[_i].type, "%r", "");
            compare();
        }
}
END_TEST

/* One condition chooses all lanes. */
START_TEST(whole_choices)
{
    static const char *const operands[][2] = { { "%x", "%y" }, { "%x", ZERO }, { ZERO, "%y" } };
    const char *const type = vectors[_i].type;
    for (int o = 0; o < 3 && vectors[_i].bits * vectors[_i].lanes >= 128; o++) {
        begin(type, "i32");
        add("  %%k = icmp slt i32 %%m, %%n\n  %%r = select i1 %%k, %s %s, %s %s\n", type, operands[o][0], type,
            operands[o][1]);
        end(type, "%r", "");
        compare();
    }
}
END_TEST

/* Two masks of different types, a constant one, lanes of one, and its bits as a number and back. */
static void check_logic(int row)
{
    const uint32_t lanes = vectors[row].lanes;
    for (int k = 0; k < VECTORS; k++) {
        if (vectors[k].lanes != lanes)
            continue;
        begin(vectors[row].ints, vectors[k].ints);
        add("  %%k = icmp eq %s %%m, %%n\n  %%l = icmp ugt %s %%x, %%y\n", vectors[k].ints, vectors[row].ints);
        add("  %%i = and %s %%k, %%l\n  %%o = xor %s %%i, %%l\n  %%e = or %s %%o, <", vectors[k].mask, vectors[k].mask,
            vectors[k].mask);
        for (uint32_t i = 0; i < lanes; i++)
            add("%si1 %d", i ? ", " : "", i % 3 == 0);
        add(">\n  %%u = select %s %%k, %s %%e, %s %%l\n  %%r = sext %s %%u to %s\n", vectors[k].mask, vectors[k].mask,
            vectors[k].mask, vectors[k].mask, vectors[row].ints);
        add("  %%g = extractelement %s %%e, i32 %u\n  %%h = zext i1 %%g to i32\n", vectors[k].mask, lanes - 1);
        add("  %%w = getelementptr i8, ptr %%c, i64 64\n  store i32 %%h, ptr %%w, align 1\n");
        if (lanes >= 8) {
            add("  %%z = bitcast %s %%u to i%u\n  %%v = getelementptr i8, ptr %%c, i64 72\n", vectors[k].mask, lanes);
            add("  store i%u %%z, ptr %%v, align 1\n", lanes);
        }
        if (lanes == 8 || lanes == 16) {
            add("  %%s = load i%u, ptr %%a, align 1\n  %%t = bitcast i%u %%s to %s\n", lanes, lanes, vectors[k].mask);
            add("  %%aa = sext %s %%t to %s\n  %%ab = getelementptr i8, ptr %%c, i64 96\n", vectors[k].mask,
                vectors[k].ints);
            add("  store %s %%aa, ptr %%ab, align 1\n", vectors[k].ints);
        }
        end(vectors[row].ints, "%r", "");
        compare();
    }
}

START_TEST(logic)
{
    check_logic(_i);
}
END_TEST

/* The same with AVX-512's masks, and one of two whole masks. */
START_TEST(wide_logic)
{
    const rt_target narrow = target;
    if (!be_wide())
        return;
    check_logic(_i);
    begin(vectors[_i].ints, vectors[_i].ints);
    add("  %%k = icmp eq %s %%x, %%y\n  %%l = icmp ugt %s %%m, %%n\n", vectors[_i].ints, vectors[_i].ints);
    add("  %%f = load i32, ptr %%a, align 1\n  %%g = icmp slt i32 %%f, 3\n");
    add("  %%u = select i1 %%g, %s %%k, %s %%l\n  %%r = sext %s %%u to %s\n", vectors[_i].mask, vectors[_i].mask,
        vectors[_i].mask, vectors[_i].ints);
    end(vectors[_i].ints, "%r", "");
    compare();
    target = narrow;
}
END_TEST

/* A condition in all lanes, and a mask's halves. */
START_TEST(spread)
{
    static const struct {
        uint32_t lanes;
        const char *ints;
    } rows[] = { { 32, "<32 x i8>" }, { 16, "<16 x i16>" }, { 8, "<8 x i32>" }, { 4, "<4 x i64>" } };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        const uint32_t n = rows[k].lanes;
        begin(rows[k].ints, rows[k].ints);
        add("  %%f = load i32, ptr %%a, align 1\n  %%g = icmp eq i32 %%f, 0\n");
        add("  %%i = insertelement <%u x i1> poison, i1 %%g, i32 0\n", n);
        add("  %%s = shufflevector <%u x i1> %%i, <%u x i1> poison, <%u x i32> zeroinitializer\n", n, n, n);
        add("  %%k = icmp slt %s %%x, %%y\n  %%l = xor <%u x i1> %%k, %%s\n", rows[k].ints, n);
        add("  %%h = shufflevector <%u x i1> %%l, <%u x i1> poison, <%u x i32> <", n, n, n);
        for (uint32_t i = 0; i < n; i++)
            add("%si32 %u", i ? ", " : "", i < n / 2 ? n - 1 - i : i / 2);
        add(">\n  %%r = select <%u x i1> %%h, %s %%x, %s %%y\n", n, rows[k].ints, rows[k].ints);
        end(rows[k].ints, "%r", "");
        compare();
    }
}
END_TEST

START_TEST(memory)
{
    static const struct {
        const char *type, *name, *mask;
    } rows[] = { { "<8 x i32>", "v8i32", "<8 x i1>" },
                 { "<4 x i64>", "v4i64", "<4 x i1>" },
                 { "<4 x i32>", "v4i32", "<4 x i1>" },
                 { "<2 x i32>", "v2i32", "<2 x i1>" } };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        for (int zero = 0; zero < 2; zero++) {
            char declarations[512];
            const char *t = rows[k].type, *n = rows[k].name;
            snprintf(declarations, sizeof declarations,
                     "declare %s @llvm.masked.load.%s.p0(ptr, %s, %s)\n"
                     "declare void @llvm.masked.store.%s.p0(%s, ptr, %s)\n",
                     t, n, rows[k].mask, t, n, t, rows[k].mask);
            begin(t, t);
            add("  %%k = icmp slt %s %%x, %%y\n", t);
            add("  %%r = call %s @llvm.masked.load.%s.p0(ptr align 1 %%p, %s %%k, %s %s)\n", t, n, rows[k].mask, t,
                zero ? ZERO : "%x");
            add("  %%w = getelementptr i8, ptr %%c, i64 64\n");
            add("  call void @llvm.masked.store.%s.p0(%s %%r, ptr align 1 %%w, %s %%k)\n", n, t, rows[k].mask);
            end(t, "%r", declarations);
            compare();
        }
}
END_TEST

/* --- lanes -------------------------------------------------------------------------------------------------------- */

static const struct {
    uint32_t bits, from, to;
} shuffled[] = { { 8, 32, 32 }, { 8, 16, 16 }, { 8, 16, 32 },  { 8, 32, 16 }, { 8, 8, 16 },  { 16, 16, 16 },
                 { 16, 8, 8 },  { 16, 8, 16 }, { 16, 16, 8 },  { 32, 8, 8 },  { 32, 4, 4 },  { 32, 4, 8 },
                 { 32, 8, 4 },  { 64, 4, 4 },  { 64, 2, 2 },   { 64, 2, 4 },  { 64, 4, 2 },  { 32, 2, 4 },
                 { 16, 4, 8 },  { 32, 2, 8 },  { 8, 4, 16 } };

/* Places of a shuffle, of one vector or both: any, every second or third one, the vectors' in turns, blocks, blends. */
static void draw(int32_t *at, uint32_t from, uint32_t to)
{
    const uint32_t all = from * (1 + number(2)), first = number(all), step = 1 + number(3), block = 1u << number(4);
    const uint32_t kind = number(6), half = number(2) * from / 2;
    for (uint32_t i = 0; i < to; i++) {
        const uint32_t places[] = { number(all),
                                    (first + i * step) % all,
                                    (half + i / 2) % from + i % 2 * from,
                                    ((i / block + first) * block + i % block) % all,
                                    i % from + number(2) * from,
                                    (i / block * block + (first + i) % block) % all };
        at[i] = number(10) == 0 ? -1 : (int32_t)places[kind];
    }
}

/* Lanes that may be anything are not looked at. */
START_TEST(shuffles)
{
    const uint32_t bits = shuffled[_i].bits, from = shuffled[_i].from, to = shuffled[_i].to;
    for (int k = 0; k < SHUFFLES; k++) {
        char type[32];
        int32_t at[32];
        snprintf(type, sizeof type, "<%u x i%u>", from, bits);
        draw(at, from, to);
        begin(type, type);
        add("  %%s = shufflevector %s %%x, %s %%y, <%u x i32> <", type, type, to);
        for (uint32_t i = 0; i < to; i++)
            at[i] < 0 ? add("%si32 poison", i ? ", " : "") : add("%si32 %d", i ? ", " : "", at[i]);
        add(">\n");
        for (uint32_t i = 0; i < to; i++)
            if (at[i] >= 0)
                add("  %%e%u = extractelement <%u x i%u> %%s, i32 %u\n  %%g%u = getelementptr i%u, ptr %%c, i64 %u\n"
                    "  store i%u %%e%u, ptr %%g%u, align 1\n",
                    i, to, bits, i, i, bits, i, bits, i, i);
        add("  ret void\n}\n");
        compare();
    }
}
END_TEST

/* Elements put into a vector, or into none, one after the other. */
START_TEST(insertions)
{
    static const char *const types[] = { "i8", "i16", "i32", "i64", "float", "double" };
    static const uint32_t bytes[] = { 1, 2, 4, 8, 4, 8 };
    for (uint32_t k = 0; k < 24; k++) {
        const uint32_t t = k % 6, lanes = (k < 12 ? 32 : 16) / bytes[t], step = k % 12 < 6 ? 1 : 3;
        const uint32_t first = step == 1 ? 0 : lanes / 4;
        char type[32], made[16] = "poison";
        snprintf(type, sizeof type, "<%u x %s>", lanes, types[t]);
        begin(type, type);
        for (uint32_t i = first; i < lanes; i += step)
            add("  %%p%u = getelementptr %s, ptr %%b, i64 %u\n  %%e%u = load %s, ptr %%p%u, align 1\n", i, types[t], i,
                i, types[t], i);
        for (uint32_t i = first; i < lanes; i += step) {
            add("  %%i%u = insertelement %s %s, %s %%e%u, i32 %u\n", i, type, i == first && step > 1 ? "%x" : made,
                types[t], i, i);
            snprintf(made, sizeof made, "%%i%u", i);
        }
        end(type, made, "");
        compare();
    }
}
END_TEST

/* --- numbers ------------------------------------------------------------------------------------------------------ */

START_TEST(numbers)
{
    static const struct {
        const char *from, *to, *line, *declarations;
    } rows[] = {
        { "<4 x i64>", "<4 x i64>", "mul <4 x i64> %x, %y", "" },
        { "<4 x i64>", "<4 x i64>", "ashr <4 x i64> %x, <i64 5, i64 5, i64 5, i64 5>", "" },
        { "<4 x i64>", "<4 x i64>", "ashr <4 x i64> %x, <i64 0, i64 1, i64 31, i64 63>", "" },
        { "<4 x i64>", "<4 x i64>", "call <4 x i64> @llvm.smax.v4i64(<4 x i64> %x, <4 x i64> %y)",
          "declare <4 x i64> @llvm.smax.v4i64(<4 x i64>, <4 x i64>)" },
        { "<4 x i64>", "<4 x i64>", "call <4 x i64> @llvm.umin.v4i64(<4 x i64> %x, <4 x i64> %y)",
          "declare <4 x i64> @llvm.umin.v4i64(<4 x i64>, <4 x i64>)" },
        { "<2 x i64>", "<2 x i64>", "call <2 x i64> @llvm.umax.v2i64(<2 x i64> %x, <2 x i64> %y)",
          "declare <2 x i64> @llvm.umax.v2i64(<2 x i64>, <2 x i64>)" },
        { "<16 x i16>", "<8 x i32>", "call <8 x i32> @llvm.x86.avx2.pmadd.wd(<16 x i16> %x, <16 x i16> %y)",
          "declare <8 x i32> @llvm.x86.avx2.pmadd.wd(<16 x i16>, <16 x i16>)" },
        { "<16 x i16>", "<16 x i8>", "trunc <16 x i16> %x to <16 x i8>", "" },
        { "<8 x i32>", "<8 x i16>", "trunc <8 x i32> %x to <8 x i16>", "" },
        { "<8 x float>", "<8 x float>", "call <8 x float> @llvm.arithmetic.fence.v8f32(<8 x float> %x)",
          "declare <8 x float> @llvm.arithmetic.fence.v8f32(<8 x float>)" },
        { "<4 x i64>", "<4 x i32>", "trunc <4 x i64> %x to <4 x i32>", "" },
        { "<4 x i64>", "<4 x i8>", "trunc <4 x i64> %x to <4 x i8>", "" },
        { "<8 x i32>", "<8 x float>", "uitofp <8 x i32> %x to <8 x float>", "" },
        { "<4 x i32>", "<4 x double>", "uitofp <4 x i32> %x to <4 x double>", "" },
        { "<8 x half>", "<8 x float>", "fpext <8 x half> %x to <8 x float>", "" },
        { "<8 x float>", "<8 x half>", "fptrunc <8 x float> %x to <8 x half>", "" },
        { "i32", "float", "uitofp i32 %x to float", "" },
        { "i16", "float", "call float @llvm.convert.from.fp16.f32(i16 %x)",
          "declare float @llvm.convert.from.fp16.f32(i16)" },
        { "float", "i16", "call i16 @llvm.convert.to.fp16.f32(float %x)",
          "declare i16 @llvm.convert.to.fp16.f32(float)" },
        { "<32 x i8>", "<32 x i8>", "lshr <32 x i8> %x, splat (i8 4)", "" },
        { "<16 x i8>", "<16 x i8>", "ashr <16 x i8> %x, splat (i8 3)", "" },
        { "<8 x i8>", "<8 x i8>", "shl <8 x i8> %x, splat (i8 5)", "" },
        { "<32 x i8>", "<32 x i8>", "ashr <32 x i8> %x, splat (i8 7)", "" },
        { "i8", "i8", "call i8 @llvm.smin.i8(i8 %x, i8 %y)", "declare i8 @llvm.smin.i8(i8, i8)" },
        { "i16", "i16", "call i16 @llvm.umax.i16(i16 %x, i16 %y)", "declare i16 @llvm.umax.i16(i16, i16)" },
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        if (!compat_converts_half_bits() && strstr(rows[k].declarations, "fp16") != NULL)
            continue; /* LLVM 23 has no such intrinsics */
        begin(rows[k].from, rows[k].from);
        add("  %%r = %s\n", rows[k].line);
        end(rows[k].to, "%r", rows[k].declarations);
        compare();
    }
}
END_TEST

/* Of all sizes, each with its rest; no number is divided by 0. */
START_TEST(quotients)
{
    static const char *const types[] = { "i8", "i16", "i32", "i64" };
    for (int k = 0; k < 4; k++) {
        begin(types[k], types[k]);
        add("  %%o = lshr %s %%y, 1\n  %%z = or %s %%o, 1\n", types[k], types[k]);
        add("  %%q1 = udiv %s %%x, %%z\n  %%r1 = urem %s %%m, %%z\n", types[k], types[k]);
        add("  %%q2 = sdiv %s %%x, %%z\n  %%r2 = srem %s %%m, %%z\n", types[k], types[k]);
        add("  %%s1 = xor %s %%q1, %%r1\n  %%s2 = sub %s %%q2, %%r2\n  %%h = and %s %%n, 7\n", types[k], types[k],
            types[k]);
        add("  %%t1 = lshr %s %%x, %%h\n  %%t2 = ashr %s %%y, %%h\n  %%t3 = shl %s %%t1, %%h\n", types[k], types[k],
            types[k]);
        add("  %%u = add %s %%s1, %%t2\n  %%v = xor %s %%s2, %%t3\n  %%r = mul %s %%u, %%v\n", types[k], types[k],
            types[k]);
        end(types[k], "%r", "");
        compare();
    }
}
END_TEST

static const struct {
    const char *type, *one;
    bool wide;
} divided[] = {
    { "<4 x i64>", "i64 1", false }, { "<8 x i32>", "i32 1", false }, { "<4 x i32>", "i32 1", false },
    { "<16 x i16>", "i16 1", false }, { "<32 x i8>", "i8 1", false }, { "<2 x i32>", "i32 1", false },
    { "<8 x i64>", "i64 1", true },  { "<16 x i32>", "i32 1", true },
};

/* The same of vectors. */
START_TEST(vector_quotients)
{
    const rt_target narrow = target;
    const char *const t = divided[_i].type, *const one = divided[_i].one;
    if (divided[_i].wide && !be_wide())
        return;
    begin(t, t);
    add("  %%o = lshr %s %%y, splat (%s)\n  %%z = or %s %%o, splat (%s)\n", t, one, t, one);
    add("  %%q1 = udiv %s %%x, %%z\n  %%r1 = urem %s %%m, %%z\n  %%q2 = sdiv %s %%x, %%z\n", t, t, t);
    add("  %%r2 = srem %s %%m, %%z\n  %%s1 = xor %s %%q1, %%r1\n  %%s2 = sub %s %%q2, %%r2\n", t, t, t);
    add("  %%r = xor %s %%s1, %%s2\n", t);
    end(t, "%r", "");
    compare();
    target = narrow;
}
END_TEST

/* More masks and vectors than there are registers, all of which are needed until the end. */
START_TEST(many)
{
    length = 0;
    add("define void @f(ptr %%a, ptr %%b, ptr %%c, ptr %%d, i64 %%begin, i64 %%end) {\n");
    for (int i = 0; i <= MANY; i++)
        add("  %%p%d = getelementptr [8 x float], ptr %%a, i64 %d\n  %%x%d = load <8 x float>, ptr %%p%d, align 1\n",
            i, i, i, i);
    for (int i = 0; i < MANY; i++)
        add("  %%k%d = fcmp olt <8 x float> %%x%d, %%x%d\n", i, i, i + 1);
    add("  %%s%d = bitcast <8 x float> %%x0 to <8 x i32>\n", MANY);
    for (int i = MANY - 1; i >= 0; i--) {
        add("  %%i%d = bitcast <8 x float> %%x%d to <8 x i32>\n", i, i);
        add("  %%t%d = select <8 x i1> %%k%d, <8 x i32> %%i%d, <8 x i32> %%s%d\n", i, i, i, i + 1);
        add("  %%m%d = bitcast <8 x i1> %%k%d to i8\n  %%n%d = zext i8 %%m%d to i32\n", i, i, i, i);
        add("  %%v%d = insertelement <8 x i32> poison, i32 %%n%d, i32 0\n", i, i);
        add("  %%w%d = shufflevector <8 x i32> %%v%d, <8 x i32> %%t%d, <8 x i32> <i32 0, i32 9, i32 14, i32 0, i32 8, "
            "i32 13, i32 10, i32 15>\n",
            i, i, i);
        add("  %%y%d = extractelement <8 x i1> %%k%d, i32 %d\n  %%z%d = select i1 %%y%d, i32 %d, i32 %%n%d\n", i, i,
            i % 8, i, i, i, i);
        add("  %%g%d = getelementptr i32, ptr %%c, i64 %d\n  store i32 %%z%d, ptr %%g%d, align 1\n", i, 16 + i, i, i);
        add("  %%s%d = add <8 x i32> %%w%d, %%t%d\n", i, i, i);
    }
    end("<8 x i32>", "%s0", "");
    compare();
}
END_TEST

/* The same, and conversions that AVX2 has not, with AVX-512's vectors. */
START_TEST(wide_numbers)
{
    static const struct {
        const char *from, *to, *line;
    } rows[] = {
        { "<16 x float>", "<16 x float>", "select i1 %k, <16 x float> %x, <16 x float> %y" },
        { "<8 x i64>", "<8 x i64>", "select i1 %k, <8 x i64> %x, <8 x i64> zeroinitializer" },
        { "<64 x i8>", "<64 x i8>", "select i1 %k, <64 x i8> %x, <64 x i8> %y" },
        { "<4 x i16>", "<4 x i16>", "select i1 %k, <4 x i16> %x, <4 x i16> %y" },
        { "<8 x float>", "<8 x i64>", "fptosi <8 x float> %x to <8 x i64>" },
        { "<4 x float>", "<4 x i64>", "fptosi <4 x float> %x to <4 x i64>" },
        { "<8 x float>", "<8 x i64>", "fptoui <8 x float> %x to <8 x i64>" },
        { "<8 x i64>", "<8 x float>", "sitofp <8 x i64> %x to <8 x float>" },
        { "<4 x i64>", "<4 x float>", "sitofp <4 x i64> %x to <4 x float>" },
        { "<8 x i64>", "<8 x float>", "uitofp <8 x i64> %x to <8 x float>" },
        { "<64 x i8>", "<64 x i8>", "lshr <64 x i8> %x, splat (i8 2)" },
        { "<64 x i8>", "<64 x i8>", "ashr <64 x i8> %x, splat (i8 6)" },
    };
    const rt_target narrow = target;
    for (size_t k = 0; k < sizeof rows / sizeof *rows && be_wide(); k++) {
        begin(rows[k].from, "i32");
        add("  %%k = icmp slt i32 %%m, %%n\n  %%r = %s\n", rows[k].line);
        end(rows[k].to, "%r", "");
        compare();
    }
    target = narrow;
}
END_TEST

/* Vectors in two registers of AVX-512, and their halves, lanes and masks. */
START_TEST(two_registers)
{
    static const struct {
        uint32_t lanes, bits;
    } rows[] = { { 16, 64 }, { 32, 32 }, { 64, 16 } };
    const rt_target narrow = target;
    const uint32_t n = rows[_i].lanes, bits = rows[_i].bits, half = n / 2;
    char t[32], k[32], less[32], upper[512] = "";
    size_t at = 0;
    if (!be_wide())
        return;
    snprintf(t, sizeof t, "<%u x i%u>", n, bits);
    snprintf(k, sizeof k, "<%u x i1>", n);
    snprintf(less, sizeof less, "<%u x i%u>", n, bits / 2);
    for (uint32_t i = 0; i < half; i++)
        at += (size_t)snprintf(upper + at, sizeof upper - at, "%si32 %u", i ? ", " : "", half + i);
    begin(t, t);
    add("  %%e = load i%u, ptr %%b, align 1\n  %%i = insertelement %s poison, i%u %%e, i32 0\n", bits, t, bits);
    add("  %%s = shufflevector %s %%i, %s poison, <%u x i32> zeroinitializer\n", t, t, n);
    add("  %%k = icmp slt %s %%x, %%y\n  %%l = icmp uge %s %%m, %%n\n  %%kl = xor %s %%k, %%l\n", t, t, k);
    add("  %%u = select %s %%kl, %s %%m, %s %%s\n  %%w = add %s %%u, %%n\n", k, t, t, t);
    add("  %%v = xor %s %%w, splat (i%u 1234)\n  %%g = icmp slt i%u %%e, 3\n", t, bits, bits);
    add("  %%o = select i1 %%g, %s %%v, %s %%x\n  %%h = trunc %s %%v to %s\n", t, t, t, less);
    add("  %%z = zext %s %%h to %s\n  %%j = sext %s %%h to %s\n", less, t, less, t);
    add("  %%ozj = and %s %%z, %%j\n  %%r = sub %s %%o, %%ozj\n", t, t);
    add("  %%f = extractelement %s %%r, i32 %u\n  %%c1 = getelementptr i8, ptr %%c, i64 512\n", t, n - 2);
    add("  store i%u %%f, ptr %%c1, align 1\n  %%c2 = getelementptr i8, ptr %%c, i64 576\n", bits);
    add("  %%a2 = shufflevector %s %%r, %s poison, <%u x i32> <%s>\n", t, t, half, upper);
    add("  store <%u x i%u> %%a2, ptr %%c2, align 1\n", half, bits);
    add("  %%a3 = shufflevector %s %%kl, %s poison, <%u x i32> <%s>\n", k, k, half, upper);
    add("  %%a4 = sext <%u x i1> %%a3 to <%u x i%u>\n  %%c3 = getelementptr i8, ptr %%c, i64 768\n", half, half, bits);
    add("  store <%u x i%u> %%a4, ptr %%c3, align 1\n", half, bits);
    end(t, "%r", "");
    compare();
    target = narrow;
}
END_TEST

/* Vectors that are wider than AVX2's are refused, whatever the target's width is. */
START_TEST(wide)
{
    LLVMContextRef context = LLVMContextCreate();
    LLVMModuleRef module = NULL;
    char *message = NULL;
    cg_refusal refusal;
    rt_bytes object;
    rt_target other = target;
    other.vector_bytes = 64;
    begin("<16 x float>", "<16 x float>");
    add("  %%r = fadd <16 x float> %%x, %%y\n");
    end("<16 x float>", "%r", "");
    LLVMMemoryBufferRef buffer = LLVMCreateMemoryBufferWithMemoryRangeCopy(text, length, "");
    opjit_rt_bytes_init(&object, &opjit_rt_default_allocator);
    ck_assert(!LLVMParseIRInContext(context, buffer, &module, &message));
    ck_assert(!opjit_cg_direct(module, &other, &opjit_rt_default_allocator, &object, &refusal));
    ck_assert_str_eq(refusal.why, "vector type");
    LLVMDisposeModule(module);
    LLVMContextDispose(context);
}
END_TEST

int main(void)
{
    rt_target host;
    opjit_rt_target_host(&host);
    if (host.arch != RT_ARCH_X86_64 || host.level < 3)
        return 77;
    if (opjit_rt_target_parse("cpu:x86-64-v3", &target, NULL) != OPJIT_OK)
        return EXIT_FAILURE;
    Suite *suite = suite_create("cg.narrow");
    TCase *tcase = tcase_create("functions");
    tcase_add_loop_test(tcase, comparisons, 0, VECTORS);
    tcase_add_loop_test(tcase, choices, 0, VECTORS);
    tcase_add_loop_test(tcase, whole_choices, 0, VECTORS);
    tcase_add_loop_test(tcase, logic, 0, VECTORS);
    tcase_add_loop_test(tcase, wide_logic, 0, VECTORS);
    tcase_add_test(tcase, spread);
    tcase_add_test(tcase, memory);
    tcase_add_loop_test(tcase, shuffles, 0, sizeof shuffled / sizeof *shuffled);
    tcase_add_test(tcase, insertions);
    tcase_add_test(tcase, numbers);
    tcase_add_test(tcase, quotients);
    tcase_add_loop_test(tcase, vector_quotients, 0, sizeof divided / sizeof *divided);
    tcase_add_test(tcase, many);
    tcase_add_test(tcase, wide_numbers);
    tcase_add_loop_test(tcase, two_registers, 0, 3);
    tcase_add_test(tcase, wide);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
