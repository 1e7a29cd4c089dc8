/* SPDX-License-Identifier: Apache-2.0 */
/* test_cg_narrow_numbers.c - arithmetic and conversions of vectors that AVX2 has no instruction for, or that take two
 * registers of AVX-512: what they store is what LLVM's code of the same text stores. */
#include "tests/unit/codegen/cg_narrow.h"

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
        { "<4 x i64>", "<4 x double>", "sitofp <4 x i64> %x to <4 x double>", "" },
        { "<2 x i64>", "<2 x double>", "sitofp <2 x i64> %x to <2 x double>", "" },
        { "<4 x i64>", "<4 x double>", "uitofp <4 x i64> %x to <4 x double>", "" },
        { "<4 x i64>", "<4 x float>", "sitofp <4 x i64> %x to <4 x float>", "" },
        { "<2 x i64>", "<2 x float>", "sitofp <2 x i64> %x to <2 x float>", "" },
        { "<4 x i64>", "<4 x float>", "uitofp <4 x i64> %x to <4 x float>", "" },
        { "<2 x i64>", "<2 x float>", "uitofp <2 x i64> %x to <2 x float>", "" },
        { "<4 x float>", "<4 x i64>", "fptosi <4 x float> %x to <4 x i64>", "" },
        { "<2 x float>", "<2 x i64>", "fptosi <2 x float> %x to <2 x i64>", "" },
        { "<4 x double>", "<4 x i64>", "fptosi <4 x double> %x to <4 x i64>", "" },
        { "<2 x double>", "<2 x i64>", "fptosi <2 x double> %x to <2 x i64>", "" },
        { "i64", "float", "uitofp i64 %x to float", "" },
        { "i64", "double", "uitofp i64 %x to double", "" },
        { "<4 x double>", "<4 x double>", "call <4 x double> @llvm.fabs.v4f64(<4 x double> %x)",
          "declare <4 x double> @llvm.fabs.v4f64(<4 x double>)" },
        { "<8 x float>", "<8 x float>", "call <8 x float> @llvm.fabs.v8f32(<8 x float> %x)",
          "declare <8 x float> @llvm.fabs.v8f32(<8 x float>)" },
        { "<32 x i8>", "<32 x i8>", "mul <32 x i8> %x, %y", "" },
        { "<8 x i8>", "<8 x i8>", "mul <8 x i8> %x, %y", "" },
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

/* Numbers limited to a shorter type, stored side by side, with a gap before the third vector (k & 4), or behind a load
 * of what is stored (k & 8). */
START_TEST(limited)
{
    static const struct {
        const char *from, *to;
        int64_t lo, hi;
        int size;
    } rows[] = { { "<8 x i32>", "<8 x i8>", 0, 255, 8 },     { "<8 x i32>", "<8 x i8>", -128, 127, 8 },
                 { "<8 x i32>", "<8 x i16>", 0, 65535, 16 }, { "<8 x i32>", "<8 x i16>", -32768, 32767, 16 },
                 { "<4 x i32>", "<4 x i8>", 0, 255, 4 },     { "<4 x i32>", "<4 x i16>", -32768, 32767, 8 },
                 { "<8 x i32>", "<8 x i8>", 0, 127, 8 },     { "<8 x i32>", "<8 x i8>", 1, 255, 8 } };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        for (int k = 1; k < 16; k++) {
            const char *const t = rows[r].from, *const n = t[1] == '8' ? "8" : "4";
            begin(t, t);
            for (int i = 0; i < 3 + k % 4; i++) {
                add("  %%p%d = getelementptr i8, ptr %%a, i64 %d\n", i, 32 * i);
                add("  %%x%d = load %s, ptr %%p%d, align 1\n", i, t, i);
                add("  %%s%d = ashr %s %%x%d, splat (i32 %d)\n", i, t, i, 8 * (i % 3) + 6);
                add("  %%l%d = call %s @llvm.smax.v%si32(%s %%s%d, %s splat (i32 %d))\n", i, t, n, t, i, t,
                    (int)rows[r].lo);
                add("  %%h%d = call %s @llvm.smin.v%si32(%s %%l%d, %s splat (i32 %d))\n", i, t, n, t, i, t,
                    (int)rows[r].hi);
            }
            for (int i = 0; i < 3 + k % 4; i++) {
                const int at = rows[r].size * i + (k & 4 && i >= 2 ? 3 : 0);
                add("  %%t%d = trunc %s %%h%d to %s\n", i, t, i, rows[r].to);
                add("  %%c%d = getelementptr i8, ptr %%c, i64 %d\n", i, at + 64);
                add("  store %s %%t%d, ptr %%c%d, align 1\n", rows[r].to, i, i);
                if (k & 8 && i == 1)
                    add("  %%read = load i64, ptr %%c1, align 1\n  store i64 %%read, ptr %%a, align 1\n");
            }
            add("  %%r = load i64, ptr %%a, align 1\n");
            end("i64", "%r",
                t[1] == '8' ? "declare <8 x i32> @llvm.smax.v8i32(<8 x i32>, <8 x i32>)\n"
                              "declare <8 x i32> @llvm.smin.v8i32(<8 x i32>, <8 x i32>)\n"
                            : "declare <4 x i32> @llvm.smax.v4i32(<4 x i32>, <4 x i32>)\n"
                              "declare <4 x i32> @llvm.smin.v4i32(<4 x i32>, <4 x i32>)\n");
            compare();
        }
}
END_TEST

/* Numbers that are half between two floats, or little above, of both signs. */
START_TEST(halves_between)
{
    static const char *const types[][2] = { { "<4 x i64>", "<4 x float>" }, { "<2 x i64>", "<2 x float>" },
                                            { "i64", "float" } };
    static const uint64_t digits[] = { UINT64_C(0xc00000c000000001), UINT64_C(0x800000c000000800),
                                       UINT64_C(0x0060000060000001), UINT64_C(0x8020000020000400) };
    for (int k = 0; k < 24; k++) {
        const char *const t = types[k / 8][0], *const to = types[k / 8][1];
        const uint64_t of = digits[k / 2 % 4];
        begin(t, t);
        add(k / 8 == 2 ? "  %%z = and %s %%x, %lld\n" : "  %%z = and %s %%x, splat (i64 %lld)\n", t, (long long)of);
        add("  %%r = %s %s %%z to %s\n", k % 2 ? "sitofp" : "uitofp", t, to);
        end(to, "%r", "");
        compare();
    }
}
END_TEST

/* Each byte by a number of its own. */
START_TEST(byte_shifts)
{
    static const char *const types[] = { "<32 x i8>", "<16 x i8>", "<8 x i8>" };
    for (int k = 0; k < 6; k++) {
        const char *const t = types[k / 2];
        begin(t, t);
        add("  %%k = and %s %%y, splat (i8 7)\n  %%r = %s %s %%x, %%k\n", t, k % 2 ? "shl" : "lshr", t);
        end(t, "%r", "");
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
        { "<64 x i8>", "<64 x i8>", "mul <64 x i8> %x, %x" },
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
    Suite *suite = suite_create("cg.narrow_numbers");
    TCase *tcase = tcase_create("functions");
    tcase_add_test(tcase, numbers);
    tcase_add_test(tcase, limited);
    tcase_add_test(tcase, halves_between);
    tcase_add_test(tcase, byte_shifts);
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
