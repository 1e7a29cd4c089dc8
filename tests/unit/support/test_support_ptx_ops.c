/* SPDX-License-Identifier: Apache-2.0 */
/* test_support.ptx.ops.c - the PTX interpreter's arithmetic: each instruction of a table on all triples of corner
 * values, against C. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/machines/ptx.h"
#include "tests/machines/ptx_texts.h"

typedef uint64_t (*expected)(uint64_t a, uint64_t b, uint64_t c);
/* result: h 16 bits, r 32 bits, l 64 bits, p predicate; values: i integers, n integers that may divide, f, d, s
 * floats of 32, 64 and 16 bits.  What the result must be: exact bits, but NaN for NaN. */
typedef struct row {
    char result, values;
    const char *text;
    expected function;
} row;

#define FN(name, expression)                                 \
    static uint64_t name(uint64_t a, uint64_t b, uint64_t c) \
    {                                                        \
        (void)a, (void)b, (void)c;                           \
        return (uint64_t)(expression);                       \
    }
#define I32(x) ((int32_t)(uint32_t)(x))
#define I64(x) ((int64_t)(x))
#define U32(x) ((uint32_t)(x))
#define I16(x) ((int16_t)(uint16_t)(x))
#define U16(x) ((uint16_t)(x))

static float f32(uint64_t x)
{
    const uint32_t y = U32(x);
    float f;
    memcpy(&f, &y, 4);
    return f;
}
static double f64(uint64_t x)
{
    double f;
    memcpy(&f, &x, 8);
    return f;
}
static uint32_t b32(float f)
{
    uint32_t x;
    memcpy(&x, &f, 4);
    return x;
}
static uint64_t b64(double f)
{
    uint64_t x;
    memcpy(&x, &f, 8);
    return x;
}

/* Halves by definition: 2^-24 is the unit of all finite ones. */
static bool half_nan(uint64_t x)
{
    return (x & 0x7fff) > 0x7c00;
}
static double half(uint64_t x)
{
    const int e = (int)(x >> 10 & 31), m = (int)(x & 1023);
    const double v = e == 31 ? (m != 0 ? NAN : INFINITY) : e == 0 ? ldexp(m, -24) : ldexp(1024 + m, e - 25);
    return (x & 0x8000) != 0 ? -v : v;
}
__extension__ typedef __int128 exact; /* in units of 2^-48 */
static exact half_exact(uint64_t x)
{
    const exact v = (exact)(int64_t)ldexp(fabs((x & 0x7fff) >= 0x7c00 ? 65536.0 : half(x)), 24) << 24;
    return (x & 0x8000) != 0 ? -v : v;
}
static uint64_t half_nearest(exact v, bool negative_zero)
{
    const exact size = v < 0 ? -v : v;
    uint32_t low = 0, high = 0x7c00;
    while (low + 1 < high) {
        const uint32_t middle = (low + high) / 2;
        if (half_exact(middle) <= size)
            low = middle;
        else
            high = middle;
    }
    const exact under = size - half_exact(low), over = half_exact(high) - size;
    const uint32_t nearest = over < under || (over == under && (high & 1) == 0) ? high : low;
    return nearest | (v < 0 || (v == 0 && negative_zero) ? 0x8000 : 0);
}
static uint64_t half_fma(uint64_t a, uint64_t b, uint64_t c)
{
    const double product = half(a) * half(b), sum = product + half(c);
    if (sum != sum || isinf(sum))
        return sum != sum ? 0x7fff : sum > 0 ? 0x7c00 : 0xfc00;
    const exact p = (half_exact(a) >> 24) * (half_exact(b) >> 24); /* 2^-24 squared is the unit */
    return half_nearest(p + half_exact(c), signbit(product) && signbit(half(c)));
}
static uint64_t half_add(uint64_t a, uint64_t b)
{
    return half_fma(a, 0x3c00, b);
}
static uint64_t half_mul(uint64_t a, uint64_t b)
{
    return half_fma(a, b, ((a ^ b) & 0x8000) != 0 ? 0x8000 : 0);
}
static uint64_t half_of(double x)
{
    if (x != x || fabs(x) >= 65536)
        return x != x ? 0x7fff : x > 0 ? 0x7c00 : 0xfc00;
    const double scaled = ldexp(x, 47),
                 whole = trunc(scaled); /* what is below the unit can only break ties: any odd number will do */
    const exact v = (exact)whole * 2 + (scaled == whole ? 0 : x > 0 ? 1 : -1);
    return half_nearest(v, signbit(x) != 0) | (x < 0 ? 0x8000 : 0);
}

FN(add32, U32(a + b))
FN(sub64, a - b)
FN(add16, U16(a + b))
FN(mullo32, U32(a *b))
FN(widen, (uint64_t)((int64_t)I32(a) * I32(b))) FN(widenu, (uint64_t)U32(a) * U32(b)) FN(widen16, U32(I16(a) * I16(b)))
    FN(hi32, U32((uint64_t)((int64_t)I32(a) * I32(b)) >> 32)) FN(hiu32, (uint64_t)U32(a) * U32(b) >> 32)
        FN(hi16, U16((uint32_t)(I16(a) * I16(b)) >> 16)) __extension__ typedef __int128 i128;
__extension__ typedef unsigned __int128 u128;
FN(hi64, (uint64_t)((i128)I64(a) * I64(b) >> 64))
FN(hiu64, (uint64_t)((u128)a * b >> 64))
FN(mad32, U32(a *b + c))
FN(madwide, (uint64_t)((int64_t)I32(a) * I32(b)) + c)
FN(madhi, U32(((uint64_t)U32(a) * U32(b) >> 32) + c)) FN(mad64, a *b + c) FN(div32, U32(I32(b) == -1 ? -(int64_t)I32(a)
                                                                                                     : I32(a) / I32(b)))
    FN(divu32, U32(a) / U32(b)) FN(rem32, U32(I32(b) == -1 ? 0 : I32(a) % I32(b))) FN(remu64, a % b)
        FN(div64, I64(b) == -1 ? 0 - a : (uint64_t)(I64(a) / I64(b))) FN(rem64,
                                                                         I64(b) == -1 ? 0 : (uint64_t)(I64(a) % I64(b)))
            FN(divu64, a / b) FN(min32, U32(I32(a) < I32(b) ? a : b)) FN(max16, U16(I16(a) > I16(b) ? a : b))
                FN(maxu64, a > b ? a : b) FN(minu16, U16(U16(a) < U16(b) ? a : b)) FN(neg32, U32(0 - a))
                    FN(abs64, I64(a) < 0 ? 0 - a : a) FN(and32, U32(a &b)) FN(or64, a | b) FN(xor16, U16(a ^ b))
                        FN(not32, U32(~a)) FN(shl32, U32(b) >= 32 ? 0 : U32(U32(a) << U32(b)))
                            FN(shr32,
                               U32(I32(a) >> (U32(b) >= 32 ? 31 : U32(b)))) FN(shru64, U32(b) >= 64 ? 0 : a >> U32(b))
                                FN(shr16, U16(I16(a) >> (U32(b) >= 16 ? 15 : U32(b))))
                                    FN(shr64, (uint64_t)(I64(a) >> (U32(b) >= 64 ? 63 : U32(b))))
                                        FN(shfl,
                                           U32((U32(c) & 31) == 0 ? b : U32(b) << (c & 31) | U32(a) >> (32 - (c & 31))))
                                            FN(shfr, U32(c) >= 32  ? U32(b)
                                                     : U32(c) == 0 ? U32(a)
                                                                   : U32(U32(a) >> U32(c) | U32(b) << (32 - U32(c))))
                                                FN(popc, __builtin_popcountll(a))
                                                    FN(clz32, U32(a) == 0 ? 32 : __builtin_clz(U32(a)))
                                                        FN(clz64, a == 0 ? 64 : __builtin_clzll(a)) static uint64_t
    brev(uint64_t a, uint64_t b, uint64_t c)
{
    uint32_t r = 0;
    (void)b, (void)c;
    for (int i = 0; i < 32; i++)
        r = r << 1 | (U32(a) >> i & 1);
    return r;
}
static uint64_t bfe64(uint64_t a, uint64_t b, uint64_t c)
{
    const uint32_t at = b & 255, length = c & 255;
    return at >= 64 || length == 0 ? 0 : length >= 64 ? a >> at : a >> at & ((UINT64_C(1) << length) - 1);
}
static uint64_t bfe32(uint64_t a, uint64_t b, uint64_t c)
{
    const uint32_t at = b & 255, length = c & 255;
    if (length == 0)
        return 0;
    const int64_t x = at >= 32 ? (I32(a) < 0 ? -1 : 0) : (int64_t)I32(a) >> at;
    return U32(length >= 32 ? x : (int64_t)((uint64_t)x << (64 - length)) >> (64 - length));
}
static uint64_t bfi32(uint64_t a, uint64_t b, uint64_t c)
{
    const uint32_t at = b & 255, length = c & 255;
    const uint64_t mask = (length >= 32 ? 0xffffffffu : (UINT64_C(1) << length) - 1);
    return at >= 32 ? U32(c) : U32((c & ~(mask << at)) | (a & mask) << at);
}
static uint64_t prmt(uint64_t a, uint64_t b, uint64_t c)
{
    uint8_t bytes[8];
    uint32_t r = 0;
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(i < 4 ? a >> 8 * i : b >> 8 * (i - 4));
    for (int i = 3; i >= 0; i--) {
        const uint8_t x = bytes[c >> 4 * i & 7];
        r = r << 8 | ((c >> 4 * i & 8) == 0 ? x : x >= 128 ? 255 : 0);
    }
    return r;
}
FN(lop3, U32((a & b) ^ c))
FN(carry, (a + b < a) + b + c)
FN(borrow, b - c - (a < b))
FN(slct32, U32(I32(c) >= 0 ? a : b))
FN(setlt, U32(I32(a) < I32(b) ? -1 : 0)) FN(setf, f32(a) >= f32(b) ? 0x3f800000 : 0) FN(lt32, I32(a) < I32(b))
    FN(ltu32, U32(a) < U32(b)) FN(ge64, I64(a) >= I64(b)) FN(eq16, U16(a) == U16(b)) FN(ls64, a <= b) FN(
        lt_and, I32(a) < I32(b) && I32(c) > 0) FN(add_f, b32(f32(a) + f32(b))) FN(sub_d, b64(f64(a) - f64(b)))
        FN(mul_f, b32(f32(a) * f32(b))) FN(div_f, b32(f32(a) / f32(b))) FN(div_d, b64(f64(a) / f64(b))) FN(
            fma_f,
            b32(fmaf(f32(a), f32(b), f32(c)))) FN(fma_d, b64(fma(f64(a), f64(b), f64(c))))
            FN(sqrt_f, b32(sqrtf(f32(a)))) FN(sqrt_d, b64(sqrt(f64(a)))) FN(rcp_f, b32(1 / f32(a)))
                FN(rcp_d, b64(1 / f64(a))) FN(neg_f, U32(a ^ 0x80000000)) FN(abs_d, a &INT64_MAX) FN(
                    copy_f,
                    (a & 0x80000000) |
                        (b &
                         0x7fffffff)) FN(min_f, f32(a) != f32(a) ? U32(b)
                                                : f32(b) !=
                                                        f32(b)
                                                    ? U32(a)
                                                : f32(a) ==
                                                        f32(b)
                                                    ? U32(a | b)
                                                    : U32(f32(a) < f32(b) ? a : b))
                    FN(max_d, f64(a) != f64(a) ? b
                              : f64(b) !=
                                      f64(b)
                                  ? a
                              : f64(a) ==
                                      f64(b)
                                  ? (a & b)
                              : f64(a) > f64(b)
                                  ? a
                                  : b) FN(maxnan_f, f32(a) != f32(a) || f32(b) != f32(b) ? 0x7fffffff
                                                    : f32(
                                                          a) == f32(b)
                                                        ? U32(a & b)
                                                        : U32(f32(a) > f32(b) ? a : b)) FN(lt_f, f32(a) < f32(b))
                        FN(ne_f, f32(a) < f32(b) || f32(a) > f32(b)) FN(neu_f, f32(a) != f32(b)) FN(
                            ltu_d,
                            !(f64(a) >=
                              f64(b))) FN(equ_f,
                                          !(f32(a) < f32(b) || f32(a) > f32(b))) FN(num_d, !isunordered(f64(a), f64(b)))
                            FN(nan_f, isunordered(f32(a), f32(b))) FN(geu_f, !(f32(a) < f32(b))) FN(
                                gt_h,
                                half(a) > half(b)) FN(leu_h, !(half(a) > half(b)))
                                FN(finite, isfinite(f32(a)) != 0) FN(subnormal, fpclassify(f64(a)) == FP_SUBNORMAL) FN(
                                    normal,
                                    isnormal(f32(a)) !=
                                        0) FN(add_h,
                                              half_add(a, b)) FN(sub_h, half_add(a, b ^ 0x8000))
                                    FN(mul_h, half_mul(a, b)) FN(fma_h, half_fma(a, b, c)) FN(neg_h, U16(a ^ 0x8000))
                                        FN(min_h,
                                           half_nan(a)
                                               ? U16(b)
                                           : half_nan(b) ? U16(a)
                                           : half(a) == half(b)
                                               ? U16(a | b)
                                               : U16(half(a) < half(b) ? a : b))
                                            FN(add_h2,
                                               half_add(U16(a), U16(b)) | half_add(U16(a >> 16), U16(b >> 16)) << 16)
                                                FN(add_s2, U16(a + b) | U32(U16((a >> 16) + (b >> 16))) << 16) FN(
                                                    max_s2,
                                                    U16(I16(a) > I16(b) ? a : b) |
                                                        U32(U16(I16(a >> 16) > I16(b >> 16) ? a >> 16 : b >> 16))
                                                            << 16) FN(add_f2,
                                                                      b32(f32(a) + f32(b)) |
                                                                          (uint64_t)b32(f32(a >> 32) + f32(b >> 32))
                                                                              << 32) FN(s8_64, U32((int8_t)a))
                                                    FN(s64_32, (uint64_t)(int64_t)I32(a)) FN(u16_32, U16(a))
                                                        FN(s64_16, (uint64_t)(int64_t)I16(a))
                                                            FN(sat_s8,
                                                               U16(I32(a) > 127 ? 127
                                                                   : I32(a) < -128
                                                                       ? -128
                                                                       : I32(a)))
                                                                FN(sat_u16,
                                                                   I64(a) < 0 ? 0
                                                                   : I64(a) > 65535
                                                                       ? 65535
                                                                       : a) FN(f_s32, b32((float)I32(a)))
                                                                    FN(f_u64, b32((float)a)) FN(d_s64,
                                                                                                b64((double)I64(a)))
                                                                        FN(f_d, b32((float)f64(a))) FN(d_f, b64(f32(a)))
                                                                            FN(h_f,
                                                                               half_of(f32(a))) FN(h_d, half_of(f64(a)))
                                                                                FN(f_h, b32((float)half(a)))
                                                                                    FN(d_h, b64(half(a)))
                                                                                        FN(h_s32, half_of(I32(a))) FN(
                                                                                            h2_f,
                                                                                            half_of(f32(a)) << 16 |
                                                                                                half_of(f32(
                                                                                                    b))) static uint64_t
    to_s32(double x, double least, double most)
{
    return x != x      ? 0
           : x < least ? (uint64_t)(int64_t)least
           : x > most  ? (uint64_t)(int64_t)most
                       : (uint64_t)(int64_t)x;
}
FN(s32_f, U32(to_s32(truncf(f32(a)), -2147483648.0, 2147483647.0)))
FN(s32_rni, U32(to_s32(rintf(f32(a)), -2147483648.0, 2147483647.0)))
FN(u32_d, f64(a) != f64(a) ? 0x80000000 : U32(to_s32(floor(f64(a)), 0, 4294967295.0)))
FN(s16_f, U16(to_s32(truncf(f32(a)), -32768, 32767)))
FN(s32_h, U32(to_s32(trunc(half(a)), -2147483648.0, 2147483647.0)))
FN(s64_d, f64(a) != f64(a)                  ? UINT64_C(1) << 63
          : f64(a) >= 9223372036854775808.0 ? INT64_MAX
          : f64(a) < -9223372036854775808.0 ? UINT64_C(1) << 63
                                            : (uint64_t)(int64_t)trunc(f64(a)))
FN(rni_f, b32(rintf(f32(a))))
FN(rmi_f, b32(floorf(f32(a))))
FN(rpi_d, b64(ceil(f64(a)))) FN(rzi_d, b64(trunc(f64(a)))) FN(floor_h, half_of(floor(half(a))))
    FN(sat_f, !(f32(a) > 0) ? 0
              : f32(a) > 1  ? 0x3f800000
                            : U32(a)) FN(one, 1) FN(add_fh, b32((float)half(a) + f32(b)))
        FN(fma_fh, b32(fmaf((float)half(a), (float)half(b), f32(c)))) FN(select, U32(I32(c) != 0 ? a : b))
            FN(pack, U16(a) | U32(U16(b)) << 16) FN(pack4, U16(a) | U32(U16(b)) << 16 | (uint64_t)U16(c) << 32 |
                                                               (uint64_t)U16(a) << 48) FN(high, U32(a >> 32))
                FN(first, a) FN(min3_f, min_f(min_f(a, b, 0), c, 0)) FN(add64, a + b)

                    FN(widen_u, U32(a))
FN(gt32, I32(a) > I32(b))
FN(geu32, U32(a) >= U32(b))
FN(lt64, I64(a) < I64(b))
FN(gtu64, a > b)
FN(ne64, a != b)
FN(shl64, U32(b) >= 64 ? 0 : a << U32(b))
FN(mul64, a *b)
FN(madwideu, (uint64_t)U32(a) * U32(b) + c)
FN(sub32, U32(a - b))
static const row rows[] = {
    { 'p', 'i', "setp.gt.s32 %p0, %r1, %r2", gt32 },
    { 'p', 'i', "setp.ge.u32 %p0, %r1, %r2", geu32 },
    { 'p', 'i', "setp.lt.u32 %p0, %r1, %r2", ltu32 },
    { 'p', 'i', "setp.lt.s64 %p0, %l1, %l2", lt64 },
    { 'p', 'i', "setp.gt.u64 %p0, %l1, %l2", gtu64 },
    { 'p', 'i', "setp.ne.b64 %p0, %l1, %l2", ne64 },
    { 'l', 'i', "shl.b64 %l0, %l1, %r2", shl64 },
    { 'l', 'i', "mul.lo.u64 %l0, %l1, %l2", mul64 },
    { 'l', 'i', "mad.wide.u32 %l0, %r1, %r2, %l3", madwideu },
    { 'r', 'i', "sub.u32 %r0, %r1, %r2", sub32 },
    { 'l', 'i', "cvt.u64.u32 %l0, %l1", widen_u },
                        { 'r', 'm', "add.rn.f32.f16 %r0, %h1, %r2", add_fh },
                        { 'r', 'm', "fma.rn.f32.f16 %r0, %h1, %h2, %r3", fma_fh },
                        { 'p', 'i', "mov.pred %p1, -1; xor.pred %p0, %p1, 0", one },
                        { 'r', 'i', "add.s32 %r0, %r1, %r2", add32 },
                        { 'l', 'i', "sub.s64 %l0, %l1, %l2", sub64 },
                        { 'h', 'i', "add.s16 %h0, %h1, %h2", add16 },
                        { 'l', 'i', "add.u64 %l0, %l1, %l2", add64 },
                        { 'r', 'i', "mul.lo.s32 %r0, %r1, %r2", mullo32 },
                        { 'l', 'i', "mul.wide.s32 %l0, %r1, %r2", widen },
                        { 'l', 'i', "mul.wide.u32 %l0, %r1, %r2", widenu },
                        { 'r', 'i', "mul.wide.s16 %r0, %h1, %h2", widen16 },
                        { 'r', 'i', "mul.hi.s32 %r0, %r1, %r2", hi32 },
                        { 'r', 'i', "mul.hi.u32 %r0, %r1, %r2", hiu32 },
                        { 'h', 'i', "mul.hi.s16 %h0, %h1, %h2", hi16 },
                        { 'l', 'i', "mul.hi.s64 %l0, %l1, %l2", hi64 },
                        { 'l', 'i', "mul.hi.u64 %l0, %l1, %l2", hiu64 },
                        { 'r', 'i', "mad.lo.s32 %r0, %r1, %r2, %r3", mad32 },
                        { 'l', 'i', "mad.wide.s32 %l0, %r1, %r2, %l3", madwide },
                        { 'r', 'i', "mad.hi.u32 %r0, %r1, %r2, %r3", madhi },
                        { 'l', 'i', "mad.lo.s64 %l0, %l1, %l2, %l3", mad64 },
                        { 'r', 'n', "div.s32 %r0, %r1, %r2", div32 },
                        { 'r', 'n', "div.u32 %r0, %r1, %r2", divu32 },
                        { 'r', 'n', "rem.s32 %r0, %r1, %r2", rem32 },
                        { 'l', 'n', "rem.u64 %l0, %l1, %l2", remu64 },
                        { 'l', 'n', "div.s64 %l0, %l1, %l2", div64 },
                        { 'l', 'n', "rem.s64 %l0, %l1, %l2", rem64 },
                        { 'l', 'n', "div.u64 %l0, %l1, %l2", divu64 },
                        { 'r', 'i', "min.s32 %r0, %r1, %r2", min32 },
                        { 'h', 'i', "max.s16 %h0, %h1, %h2", max16 },
                        { 'l', 'i', "max.u64 %l0, %l1, %l2", maxu64 },
                        { 'h', 'i', "min.u16 %h0, %h1, %h2", minu16 },
                        { 'r', 'i', "neg.s32 %r0, %r1", neg32 },
                        { 'l', 'i', "abs.s64 %l0, %l1", abs64 },
                        { 'r', 'i', "and.b32 %r0, %r1, %r2", and32 },
                        { 'l', 'i', "or.b64 %l0, %l1, %l2", or64 },
                        { 'h', 'i', "xor.b16 %h0, %h1, %h2", xor16 },
                        { 'r', 'i', "not.b32 %r0, %r1", not32 },
                        { 'r', 'i', "shl.b32 %r0, %r1, %r2", shl32 },
                        { 'r', 'i', "shr.s32 %r0, %r1, %r2", shr32 },
                        { 'l', 'i', "shr.u64 %l0, %l1, %r2", shru64 },
                        { 'h', 'i', "shr.s16 %h0, %h1, %r2", shr16 },
                        { 'l', 'i', "shr.s64 %l0, %l1, %r2", shr64 },
                        { 'r', 'i', "shf.l.wrap.b32 %r0, %r1, %r2, %r3", shfl },
                        { 'r', 'i', "shf.r.clamp.b32 %r0, %r1, %r2, %r3", shfr },
                        { 'r', 'i', "popc.b64 %r0, %l1", popc },
                        { 'r', 'i', "clz.b32 %r0, %r1", clz32 },
                        { 'r', 'i', "clz.b64 %r0, %l1", clz64 },
                        { 'r', 'i', "brev.b32 %r0, %r1", brev },
                        { 'l', 'i', "bfe.u64 %l0, %l1, %r2, %r3", bfe64 },
                        { 'r', 'i', "bfe.s32 %r0, %r1, %r2, %r3", bfe32 },
                        { 'r', 'i', "bfi.b32 %r0, %r1, %r3, %r2, %r3", bfi32 },
                        { 'r', 'i', "prmt.b32 %r0, %r1, %r2, %r3", prmt },
                        { 'r', 'i', "lop3.b32 %r0, %r1, %r2, %r3, 0x6a", lop3 },
                        { 'l', 'i', "add.cc.s64 %l4, %l1, %l2; addc.s64 %l0, %l2, %l3", carry },
                        { 'l', 'i', "sub.cc.s64 %l4, %l1, %l2; subc.s64 %l0, %l2, %l3", borrow },
                        { 'r', 'i', "slct.b32.s32 %r0, %r1, %r2, %r3", slct32 },
                        { 'r', 'i', "set.lt.u32.s32 %r0, %r1, %r2", setlt },
                        { 'r', 'f', "set.ge.f32.f32 %r0, %r1, %r2", setf },
                        { 'p', 'i', "setp.lt.s32 %p0, %r1, %r2", lt32 },
                        { 'p', 'i', "setp.lo.u32 %p0, %r1, %r2", ltu32 },
                        { 'p', 'i', "setp.ge.s64 %p0, %l1, %l2", ge64 },
                        { 'p', 'i', "setp.eq.b16 %p0, %h1, %h2", eq16 },
                        { 'p', 'i', "setp.ls.u64 %p0, %l1, %l2", ls64 },
                        { 'p', 'i', "setp.gt.s32 %p1, %r3, 0; setp.lt.and.s32 %p0|%p2, %r1, %r2, %p1", lt_and },
                        { 'r', 'f', "add.rn.f32 %r0, %r1, %r2", add_f },
                        { 'l', 'd', "sub.rn.f64 %l0, %l1, %l2", sub_d },
                        { 'r', 'f', "mul.rn.f32 %r0, %r1, %r2", mul_f },
                        { 'r', 'f', "div.rn.f32 %r0, %r1, %r2", div_f },
                        { 'l', 'd', "div.rn.f64 %l0, %l1, %l2", div_d },
                        { 'r', 'f', "fma.rn.f32 %r0, %r1, %r2, %r3", fma_f },
                        { 'l', 'd', "fma.rn.f64 %l0, %l1, %l2, %l3", fma_d },
                        { 'r', 'f', "sqrt.rn.f32 %r0, %r1", sqrt_f },
                        { 'l', 'd', "sqrt.rn.f64 %l0, %l1", sqrt_d },
                        { 'r', 'f', "rcp.rn.f32 %r0, %r1", rcp_f },
                        { 'l', 'd', "rcp.rn.f64 %l0, %l1", rcp_d },
                        { 'r', 'f', "neg.f32 %r0, %r1", neg_f },
                        { 'l', 'd', "abs.f64 %l0, %l1", abs_d },
                        { 'r', 'f', "copysign.f32 %r0, %r1, %r2", copy_f },
                        { 'r', 'f', "min.f32 %r0, %r1, %r2", min_f },
                        { 'l', 'd', "max.f64 %l0, %l1, %l2", max_d },
                        { 'r', 'f', "max.NaN.f32 %r0, %r1, %r2", maxnan_f },
                        { 'p', 'f', "setp.lt.f32 %p0, %r1, %r2", lt_f },
                        { 'p', 'f', "setp.ne.f32 %p0, %r1, %r2", ne_f },
                        { 'p', 'f', "setp.neu.f32 %p0, %r1, %r2", neu_f },
                        { 'p', 'd', "setp.ltu.f64 %p0, %l1, %l2", ltu_d },
                        { 'p', 'f', "setp.equ.f32 %p0, %r1, %r2", equ_f },
                        { 'p', 'd', "setp.num.f64 %p0, %l1, %l2", num_d },
                        { 'p', 'f', "setp.nan.f32 %p0, %r1, %r2", nan_f },
                        { 'p', 'f', "setp.geu.f32 %p0, %r1, %r2", geu_f },
                        { 'p', 's', "setp.gt.f16 %p0, %h1, %h2", gt_h },
                        { 'p', 's', "setp.leu.f16 %p0, %h1, %h2", leu_h },
                        { 'p', 'f', "testp.finite.f32 %p0, %r1", finite },
                        { 'p', 'd', "testp.subnormal.f64 %p0, %l1", subnormal },
                        { 'p', 'f', "testp.normal.f32 %p0, %r1", normal },
                        { 'h', 's', "add.rn.f16 %h0, %h1, %h2", add_h },
                        { 'h', 's', "sub.rn.f16 %h0, %h1, %h2", sub_h },
                        { 'h', 's', "mul.rn.f16 %h0, %h1, %h2", mul_h },
                        { 'h', 's', "fma.rn.f16 %h0, %h1, %h2, %h3", fma_h },
                        { 'h', 's', "neg.f16 %h0, %h1", neg_h },
                        { 'h', 's', "min.f16 %h0, %h1, %h2", min_h },
                        { 'R', 's', "add.rn.f16x2 %r0, %r1, %r2", add_h2 },
                        { 'r', 'i', "add.s16x2 %r0, %r1, %r2", add_s2 },
                        { 'r', 'i', "max.s16x2 %r0, %r1, %r2", max_s2 },
                        { 'L', 'f', "add.rn.f32x2 %l0, %l1, %l2", add_f2 },
                        { 'r', 'i', "cvt.s8.s64 %r0, %l1", s8_64 },
                        { 'l', 'i', "cvt.s64.s32 %l0, %r1", s64_32 },
                        { 'r', 'i', "cvt.u16.u32 %r0, %r1", u16_32 },
                        { 'l', 'i', "cvt.s64.s16 %l0, %h1", s64_16 },
                        { 'h', 'i', "cvt.sat.s8.s32 %h0, %r1", sat_s8 },
                        { 'l', 'i', "cvt.sat.u16.s64 %h4, %l1; cvt.u64.u16 %l0, %h4", sat_u16 },
                        { 'r', 'i', "cvt.rn.f32.s32 %r0, %r1", f_s32 },
                        { 'r', 'i', "cvt.rn.f32.u64 %r0, %l1", f_u64 },
                        { 'l', 'i', "cvt.rn.f64.s64 %l0, %l1", d_s64 },
                        { 'r', 'd', "cvt.rn.f32.f64 %r0, %l1", f_d },
                        { 'l', 'f', "cvt.f64.f32 %l0, %r1", d_f },
                        { 'h', 'f', "cvt.rn.f16.f32 %h0, %r1", h_f },
                        { 'h', 'd', "cvt.rn.f16.f64 %h0, %l1", h_d },
                        { 'r', 's', "cvt.f32.f16 %r0, %h1", f_h },
                        { 'l', 's', "cvt.f64.f16 %l0, %h1", d_h },
                        { 'h', 'i', "cvt.rn.f16.s32 %h0, %r1", h_s32 },
                        { 'R', 'f', "cvt.rn.f16x2.f32 %r0, %r1, %r2", h2_f },
                        { 'r', 'f', "cvt.rzi.s32.f32 %r0, %r1", s32_f },
                        { 'r', 'f', "cvt.rni.s32.f32 %r0, %r1", s32_rni },
                        { 'r', 'd', "cvt.rmi.u32.f64 %r0, %l1", u32_d },
                        { 'h', 'f', "cvt.rzi.s16.f32 %h0, %r1", s16_f },
                        { 'r', 's', "cvt.rzi.s32.f16 %r0, %h1", s32_h },
                        { 'l', 'd', "cvt.rzi.s64.f64 %l0, %l1", s64_d },
                        { 'r', 'f', "cvt.rni.f32.f32 %r0, %r1", rni_f },
                        { 'r', 'f', "cvt.rmi.f32.f32 %r0, %r1", rmi_f },
                        { 'l', 'd', "cvt.rpi.f64.f64 %l0, %l1", rpi_d },
                        { 'l', 'd', "cvt.rzi.f64.f64 %l0, %l1", rzi_d },
                        { 'h', 's', "cvt.rmi.f16.f16 %h0, %h1", floor_h },
                        { 'r', 'f', "cvt.sat.f32.f32 %r0, %r1", sat_f },
                        { 'r', 'i', "setp.ne.b32 %p1, %r3, 0; selp.b32 %r0, %r1, %r2, %p1", select },
                        { 'r', 'i', "mov.b32 %r0, {%h1, %h2}", pack },
                        { 'l', 'i', "mov.b64 %l0, {%h1, %h2, %h3, %h1}", pack4 },
                        { 'r', 'i', "mov.b64 {_, %r0}, %l1", high },
                        { 'l', 'i', "mov.b128 %q0, {%l1, %l2}; mov.b128 %q1, %q0; mov.b128 {%l0, %l4}, %q1", first },
                        { 'r', 'f', "min.f32 %r0, %r1, %r2, %r3", min3_f },
                    };
enum { ROWS = sizeof rows / sizeof *rows, VALUES = 16, TRIPLES = VALUES * VALUES * VALUES };

static const uint64_t integers[VALUES] = { 0,
                                           1,
                                           2,
                                           7,
                                           31,
                                           32,
                                           0x41,
                                           0x7fff,
                                           0x8000,
                                           0xffff,
                                           0x7fffffff,
                                           0x80000000,
                                           0xffffffff,
                                           0x123456789abcdef0,
                                           0x8000000000000000,
                                           0xffffffffffffffff };
static const float singles[VALUES] = {
    0.0f,     -0.0f,     1.0f, -1.5f, 2.5f,       0x1p-149f,     0x1.fffffep-127f, 0x1.fffffep127f,
    INFINITY, -INFINITY, NAN,  0.1f,  65519.996f, 2147483648.0f, -3.7e9f,          0x1.0001p-11f
};
static const double doubles[VALUES] = { 0.0,
                                        -0.0,
                                        1.0,
                                        -1.5,
                                        0.5,
                                        0x1p-1074,
                                        0x1.fffffffffffffp-1023,
                                        0x1.fffffffffffffp1023,
                                        INFINITY,
                                        -INFINITY,
                                        NAN,
                                        0.1,
                                        65519.99999999999,
                                        9223372036854775808.0,
                                        -4294967295.5,
                                        0x1.0000000000001p-25 };
static const uint16_t halves[VALUES] = { 0,      0x8000, 0x3c00, 0xbe00, 0x4100, 1,      0x3ff,  0x400,
                                         0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e01, 0x2e66, 0x6801, 0x9001 };

static uint64_t value(char kind, int i)
{
    switch (kind) {
    case 'f': return b32(singles[i]) | (uint64_t)b32(singles[(i + 3) % VALUES]) << 32;
    case 'd': return b64(doubles[i]);
    case 'm': return halves[i] | (uint64_t)(b32(singles[i]) & 0xffff0000);
    case 's': return halves[i] | (uint64_t)halves[(i + 5) % VALUES] << 16;
    case 'n': return integers[i] == 0 || (uint32_t)integers[i] == 0 ? 3 : integers[i];
    default: return integers[i];
    }
}

static bool same_float(char kind, uint64_t x, uint64_t y)
{
    switch (kind) {
    case 'h': return x == y || (half_nan(x) && half_nan(y));
    case 'r': return x == y || (f32(x) != f32(x) && f32(y) != f32(y));
    case 'R': return same_float('h', x & 0xffff, y & 0xffff) && same_float('h', x >> 16, y >> 16);
    case 'L': return same_float('r', U32(x), U32(y)) && same_float('r', x >> 32, y >> 32);
    default: return x == y || (f64(x) != f64(x) && f64(y) != f64(y));
    }
}

static bool same(const row *r, uint64_t x, uint64_t y)
{
    const char *dot = strchr(r->text, '.');
    const bool floats =
        strstr(dot, ".f") != NULL && r->result != 'p' && strstr(dot, "zi.s") == NULL && strstr(dot, "ni.s") == NULL;
    return floats ? same_float(r->result, x, y) : x == y;
}

static char *text_of_all(void)
{
    char *text = malloc(ROWS * 1200 + 200), *end = text;

    ck_assert_ptr_nonnull(text);
    end += sprintf(end, ".version 8.8\n.target sm_100\n.address_size 64\n");
    for (int i = 0; i < ROWS; i++) {
        end += sprintf(
            end,
            ".visible .entry t%d(.param .u64 in, .param .u64 out)\n{\n"
            "  .reg .pred %%p<4>; .reg .b16 %%h<5>; .reg .b32 %%r<9>; .reg .b64 %%l<9>; .reg .b128 %%q<2>;\n"
            "  mov.u32 %%r4, %%tid.x; mov.u32 %%r5, %%ctaid.x; mov.u32 %%r6, %%ntid.x; mad.lo.u32 %%r4, %%r5, %%r6, "
            "%%r4;\n"
            "  ld.param.u64 %%l5, [in]; ld.param.u64 %%l6, [out];\n"
            "  mad.wide.u32 %%l5, %%r4, 24, %%l5; mad.wide.u32 %%l6, %%r4, 8, %%l6;\n"
            "  ld.global.u64 %%l1, [%%l5]; ld.global.u64 %%l2, [%%l5+8]; ld.global.u64 %%l3, [%%l5+16];\n"
            "  cvt.u32.u64 %%r1, %%l1; cvt.u32.u64 %%r2, %%l2; cvt.u32.u64 %%r3, %%l3;\n"
            "  cvt.u16.u64 %%h1, %%l1; cvt.u16.u64 %%h2, %%l2; cvt.u16.u64 %%h3, %%l3;\n"
            "  %s;\n",
            i, rows[i].text);
        switch (rows[i].result) {
        case 'h': end += sprintf(end, "  cvt.u64.u16 %%l0, %%h0;\n"); break;
        case 'r':
        case 'R': end += sprintf(end, "  cvt.u64.u32 %%l0, %%r0;\n"); break;
        case 'p': end += sprintf(end, "  selp.u64 %%l0, 1, 0, %%p0;\n"); break;
        default: break;
        }
        end += sprintf(end, "  st.global.u64 [%%l6], %%l0;\n  ret;\n}\n");
    }
    return text;
}

START_TEST(every_instruction_on_corner_values)
{
    static uint64_t in[TRIPLES][3], out[TRIPLES];
    char *text = text_of_all();
    ptx_error error;
    ptx_memory *memory = ptx_memory_create();
    ptx_module *m = ptx_parse(text, &error);
    uint64_t inputs = (uintptr_t)in, outputs = (uintptr_t)out;
    void *arguments[] = { &inputs, &outputs };
    const ptx_launch launches[] = {
        { { TRIPLES / 128, 1, 1 }, { 128, 1, 1 }, .arguments = arguments },
        { { TRIPLES / 16, 1, 1 }, { 16, 1, 1 }, .arguments = arguments }
    }; /* no whole warps */

    ck_assert_msg(m != NULL, "%s", error.message);
    ck_assert_int_eq(ptx_entry_count(m), ROWS);
    ptx_memory_share(memory, in, sizeof in, false, "in");
    ptx_memory_share(memory, out, sizeof out, true, "out");
    for (int j = 0; j < 2 * ROWS; j++) {
        const int i = j / 2;
        for (int k = 0; k < TRIPLES; k++) {
            in[k][0] = value(rows[i].values, k % VALUES);
            in[k][1] = value(rows[i].values, k / VALUES % VALUES);
            in[k][2] = value(rows[i].values, k / VALUES / VALUES);
        }
        ck_assert_msg(ptx_run(m, (uint32_t)i, memory, &launches[j % 2], NULL, &error), "%s", error.message);
        for (int k = 0; k < TRIPLES; k++) {
            const uint64_t x = rows[i].function(in[k][0], in[k][1], in[k][2]);
            ck_assert_msg(same(&rows[i], out[k], x), "%s of %llx, %llx, %llx: %llx, not %llx", rows[i].text,
                          (unsigned long long)in[k][0], (unsigned long long)in[k][1], (unsigned long long)in[k][2],
                          (unsigned long long)out[k], (unsigned long long)x);
        }
    }
    ptx_free(m);
    ptx_memory_destroy(memory);
    free(text);
}
END_TEST

START_TEST(real_assembler_takes_them)
{
    char *text = text_of_all();

    ptx_texts_assemble("100", text);
    free(text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("support.ptx.ops");
    TCase *cases = tcase_create("ops");
    tcase_add_test(cases, every_instruction_on_corner_values);
    tcase_add_test(cases, real_assembler_takes_them);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failures = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
