/* SPDX-License-Identifier: Apache-2.0 */
/* scalar.c - functions that compiled code calls lane by lane where no sequence of vector instructions would do: fma of
 * f64 without FMA, fmod, and those of far_trig.c.  The first two are written in LLVM's text and parsed into the modules
 * that need them.  They are internal, so that the object refers to nothing outside. */
#include "codegen/cg.h"

#include <llvm-c/IRReader.h>
#include <llvm-c/Linker.h>

#include <stdio.h>

/* Correctly rounded a * b + c.  The product has at most 106 bits.  The smaller of product and addend is shifted to the
 * other's scale in 128 bits, and whatever is shifted out is kept as a last bit of 1 (jamming), far below the bits that
 * decide the rounding. */
static const char *const fma_text[] = {
    "declare i64 @llvm.ctlz.i64(i64, i1)\n"
    "declare i128 @llvm.ctlz.i128(i128, i1)\n"
    "define double @soft.fma(double %a, double %b, double %c) {\n"
    "  %abits = bitcast double %a to i64\n"
    "  %bbits = bitcast double %b to i64\n"
    "  %cbits = bitcast double %c to i64\n"
    "  %asize = and i64 %abits, 9223372036854775807\n"
    "  %bsize = and i64 %bbits, 9223372036854775807\n"
    "  %csize = and i64 %cbits, 9223372036854775807\n"
    "  %aodd = icmp uge i64 %asize, 9218868437227405312\n"
    "  %bodd = icmp uge i64 %bsize, 9218868437227405312\n"
    "  %codd = icmp uge i64 %csize, 9218868437227405312\n"
    "  %azero = icmp eq i64 %asize, 0\n"
    "  %bzero = icmp eq i64 %bsize, 0\n"
    "  %czero = icmp eq i64 %csize, 0\n"
    "  %abodd = or i1 %aodd, %bodd\n"
    "  %abzero = or i1 %azero, %bzero\n"
    "  %product = fmul double %a, %b\n"
    "  %plain = or i1 %abodd, %abzero\n"
    "  br i1 %plain, label %literal, label %finite\n"
    "literal:\n" /* infinities, NaN, an exact product of zero */
    "  %sum = fadd double %product, %c\n"
    "  ret double %sum\n"
    "finite:\n"
    "  br i1 %codd, label %addend, label %small\n"
    "addend:\n" /* the product may overflow in double but is finite */
    "  %self = fadd double %c, %c\n"
    "  ret double %self\n"
    "small:\n"
    "  br i1 %czero, label %rounded, label %exact\n"
    "rounded:\n" /* a product that underflows keeps its sign */
    "  ret double %product\n",
    "exact:\n" /* significands with the leading one at bit 52; value = m * 2^(e - 1075) */
    "  %ae0 = lshr i64 %asize, 52\n"
    "  %be0 = lshr i64 %bsize, 52\n"
    "  %ce0 = lshr i64 %csize, 52\n"
    "  %am0 = and i64 %abits, 4503599627370495\n"
    "  %bm0 = and i64 %bbits, 4503599627370495\n"
    "  %cm0 = and i64 %cbits, 4503599627370495\n"
    "  %am1 = or i64 %am0, 4503599627370496\n"
    "  %bm1 = or i64 %bm0, 4503599627370496\n"
    "  %cm1 = or i64 %cm0, 4503599627370496\n"
    "  %alz = call i64 @llvm.ctlz.i64(i64 %am0, i1 false)\n"
    "  %blz = call i64 @llvm.ctlz.i64(i64 %bm0, i1 false)\n"
    "  %clz = call i64 @llvm.ctlz.i64(i64 %cm0, i1 false)\n"
    "  %as0 = sub i64 %alz, 11\n"
    "  %bs0 = sub i64 %blz, 11\n"
    "  %cs0 = sub i64 %clz, 11\n"
    "  %asub = icmp eq i64 %ae0, 0\n"
    "  %bsub = icmp eq i64 %be0, 0\n"
    "  %csub = icmp eq i64 %ce0, 0\n"
    "  %as = select i1 %asub, i64 %as0, i64 0\n"
    "  %bs = select i1 %bsub, i64 %bs0, i64 0\n"
    "  %cs = select i1 %csub, i64 %cs0, i64 0\n"
    "  %am2 = shl i64 %am0, %as\n"
    "  %bm2 = shl i64 %bm0, %bs\n"
    "  %cm2 = shl i64 %cm0, %cs\n"
    "  %am = select i1 %asub, i64 %am2, i64 %am1\n"
    "  %bm = select i1 %bsub, i64 %bm2, i64 %bm1\n"
    "  %cm = select i1 %csub, i64 %cm2, i64 %cm1\n"
    "  %ae1 = sub i64 1, %as\n"
    "  %be1 = sub i64 1, %bs\n"
    "  %ce1 = sub i64 1, %cs\n"
    "  %ae = select i1 %asub, i64 %ae1, i64 %ae0\n"
    "  %be = select i1 %bsub, i64 %be1, i64 %be0\n"
    "  %ce = select i1 %csub, i64 %ce1, i64 %ce0\n"
    "  %amw = zext i64 %am to i128\n"
    "  %bmw = zext i64 %bm to i128\n"
    "  %cmw = zext i64 %cm to i128\n"
    "  %p = mul i128 %amw, %bmw\n"
    "  %pe0 = add i64 %ae, %be\n"
    "  %pe = sub i64 %pe0, 1075\n" /* product = p * 2^(pe - 1075) */
    "  %d = sub i64 %ce, %pe\n"
    "  %above = icmp sgt i64 %d, 73\n"
    "  %below = icmp slt i64 %d, 0\n"
    /* d > 73: c has 64 bits below it; the product is shifted right to them and jammed */
    "  %r0 = sub i64 %d, 64\n"
    "  %r1 = call i64 @llvm.umin.i64(i64 %r0, i64 127)\n"
    /* d < 0: the product moves up by at most 20 bits; the rest is shifted out of c and jammed */
    "  %n = sub i64 0, %d\n"
    "  %up0 = call i64 @llvm.umin.i64(i64 %n, i64 20)\n"
    "  %up = select i1 %below, i64 %up0, i64 0\n"
    "  %c0 = sub i64 %n, %up\n"
    "  %c1 = call i64 @llvm.umin.i64(i64 %c0, i64 127)\n"
    "  %pright = select i1 %above, i64 %r1, i64 0\n"
    "  %cright = select i1 %below, i64 %c1, i64 0\n"
    "  %cleft0 = select i1 %above, i64 64, i64 %d\n"
    "  %cleft = select i1 %below, i64 0, i64 %cleft0\n"
    "  %scale0 = sub i64 %pe, %up\n"
    "  %scale1 = sub i64 %ce, 64\n"
    "  %scale = select i1 %above, i64 %scale1, i64 %scale0\n"
    "  %prw = zext i64 %pright to i128\n"
    "  %upw = zext i64 %up to i128\n"
    "  %crw = zext i64 %cright to i128\n"
    "  %clw = zext i64 %cleft to i128\n"
    "  %pshift = lshr i128 %p, %prw\n"
    "  %pback = shl i128 %pshift, %prw\n"
    "  %plost = icmp ne i128 %pback, %p\n"
    "  %pjam = zext i1 %plost to i128\n"
    "  %pkeep = or i128 %pshift, %pjam\n"
    "  %pfinal = shl i128 %pkeep, %upw\n"
    "  %cshift = lshr i128 %cmw, %crw\n"
    "  %cback = shl i128 %cshift, %crw\n"
    "  %clost = icmp ne i128 %cback, %cmw\n"
    "  %cjam = zext i1 %clost to i128\n"
    "  %ckeep = or i128 %cshift, %cjam\n"
    "  %cfinal = shl i128 %ckeep, %clw\n",
    /* in pieces, because the standard guarantees only strings of 4095 characters */
    "  %psign = xor i64 %abits, %bbits\n"
    "  %differ0 = xor i64 %psign, %cbits\n"
    "  %differ = icmp slt i64 %differ0, 0\n"
    "  %total = add i128 %pfinal, %cfinal\n"
    "  %difference = sub i128 %pfinal, %cfinal\n"
    "  %negative = icmp slt i128 %difference, 0\n"
    "  %turned = sub i128 0, %difference\n"
    "  %distance = select i1 %negative, i128 %turned, i128 %difference\n"
    "  %s = select i1 %differ, i128 %distance, i128 %total\n"
    "  %flip = and i1 %differ, %negative\n"
    "  %sign0 = select i1 %flip, i64 %cbits, i64 %psign\n"
    "  %sign = and i64 %sign0, -9223372036854775808\n"
    "  %nothing = icmp eq i128 %s, 0\n"
    "  br i1 %nothing, label %cancelled, label %round\n"
    "cancelled:\n"
    "  ret double 0.0\n"
    "round:\n" /* s * 2^(scale - 1075) */
    "  %lz128 = call i128 @llvm.ctlz.i128(i128 %s, i1 true)\n"
    "  %lz = trunc i128 %lz128 to i64\n"
    "  %shift0 = sub i64 75, %lz\n"   /* leaves 53 bits */
    "  %shift1 = sub i64 1, %scale\n" /* required by the place of the smallest subnormal */
    "  %shift = call i64 @llvm.smax.i64(i64 %shift0, i64 %shift1)\n"
    "  %right0 = call i64 @llvm.smax.i64(i64 %shift, i64 0)\n"
    "  %gone = icmp sgt i64 %right0, 127\n"
    "  %right = call i64 @llvm.smin.i64(i64 %right0, i64 127)\n"
    "  %left0 = sub i64 0, %shift\n"
    "  %left = call i64 @llvm.smax.i64(i64 %left0, i64 0)\n"
    "  %rightw = zext i64 %right to i128\n"
    "  %leftw = zext i64 %left to i128\n"
    "  %whole = shl i128 %s, %leftw\n"
    "  %kept = lshr i128 %whole, %rightw\n"
    "  %keptback = shl i128 %kept, %rightw\n"
    "  %rest = sub i128 %whole, %keptback\n"
    "  %unit = shl i128 1, %rightw\n"
    "  %half = lshr i128 %unit, 1\n"
    "  %tie = icmp eq i128 %rest, %half\n"
    "  %over = icmp ugt i128 %rest, %half\n"
    "  %oddbit = trunc i128 %kept to i1\n"
    "  %tieup = and i1 %tie, %oddbit\n"
    "  %isexact = icmp eq i64 %right, 0\n" /* half is 0 then */
    "  %up1 = or i1 %over, %tieup\n"
    "  %round.up = select i1 %isexact, i1 false, i1 %up1\n"
    "  %m0 = trunc i128 %kept to i64\n"
    "  %inc = zext i1 %round.up to i64\n"
    "  %m1 = add i64 %m0, %inc\n"
    "  %m = select i1 %gone, i64 0, i64 %m1\n"
    "  %e = add i64 %scale, %shift\n" /* biased exponent of a leading one at bit 52 */
    "  %e1 = sub i64 %e, 1\n"
    "  %toobig = icmp sgt i64 %e, 2046\n"
    "  %esafe = call i64 @llvm.smin.i64(i64 %e1, i64 2046)\n"
    "  %ebits = shl i64 %esafe, 52\n"
    "  %body = add i64 %ebits, %m\n" /* a carry goes into the exponent, up to infinity */
    "  %size = select i1 %toobig, i64 9218868437227405312, i64 %body\n"
    "  %bits = or i64 %size, %sign\n"
    "  %result = bitcast i64 %bits to double\n"
    "  ret double %result\n"
    "}\n"
    "declare i64 @llvm.umin.i64(i64, i64)\n"
    "declare i64 @llvm.smin.i64(i64, i64)\n"
    "declare i64 @llvm.smax.i64(i64, i64)\n",
    NULL
};

/* Exact fmod: reduces the significand 11 bits at a time, which is the room above its 53 bits. */
static const char *const fmod_text[] = { "declare i64 @llvm.ctlz.i64(i64, i1)\n"
                                         "declare i64 @llvm.umin.i64(i64, i64)\n"
                                         "define double @soft.fmod(double %x, double %y) {\n"
                                         "entry:\n"
                                         "  %xbits = bitcast double %x to i64\n"
                                         "  %ybits = bitcast double %y to i64\n"
                                         "  %xsize = and i64 %xbits, 9223372036854775807\n"
                                         "  %ysize = and i64 %ybits, 9223372036854775807\n"
                                         "  %xodd = icmp uge i64 %xsize, 9218868437227405312\n"
                                         "  %ynan = icmp ugt i64 %ysize, 9218868437227405312\n"
                                         "  %yzero = icmp eq i64 %ysize, 0\n"
                                         "  %bad0 = or i1 %xodd, %ynan\n"
                                         "  %bad = or i1 %bad0, %yzero\n"
                                         "  br i1 %bad, label %invalid, label %valid\n"
                                         "invalid:\n"
                                         "  %xy = fmul double %x, %y\n"
                                         "  %nan = fdiv double %xy, %xy\n"
                                         "  ret double %nan\n"
                                         "valid:\n"
                                         "  %less = icmp ult i64 %xsize, %ysize\n"
                                         "  br i1 %less, label %itself, label %reduce\n"
                                         "itself:\n"
                                         "  ret double %x\n"
                                         "reduce:\n" /* value = m * 2^(e - 1075), m with the leading one at bit 52 */
                                         "  %xe0 = lshr i64 %xsize, 52\n"
                                         "  %ye0 = lshr i64 %ysize, 52\n"
                                         "  %xm0 = and i64 %xbits, 4503599627370495\n"
                                         "  %ym0 = and i64 %ybits, 4503599627370495\n"
                                         "  %xm1 = or i64 %xm0, 4503599627370496\n"
                                         "  %ym1 = or i64 %ym0, 4503599627370496\n"
                                         "  %xsub = icmp eq i64 %xe0, 0\n"
                                         "  %ysub = icmp eq i64 %ye0, 0\n"
                                         "  %xm = select i1 %xsub, i64 %xm0, i64 %xm1\n"
                                         "  %ym = select i1 %ysub, i64 %ym0, i64 %ym1\n"
                                         "  %xe = select i1 %xsub, i64 1, i64 %xe0\n"
                                         "  %ye = select i1 %ysub, i64 1, i64 %ye0\n"
                                         "  %steps = sub i64 %xe, %ye\n"
                                         "  %first = urem i64 %xm, %ym\n"
                                         "  br label %loop\n"
                                         "loop:\n"
                                         "  %m = phi i64 [ %first, %reduce ], [ %next, %more ]\n"
                                         "  %left = phi i64 [ %steps, %reduce ], [ %rest, %more ]\n"
                                         "  %done0 = icmp eq i64 %left, 0\n"
                                         "  %done1 = icmp eq i64 %m, 0\n"
                                         "  %done = or i1 %done0, %done1\n"
                                         "  br i1 %done, label %build, label %more\n"
                                         "more:\n"
                                         "  %by = call i64 @llvm.umin.i64(i64 %left, i64 11)\n"
                                         "  %high = shl i64 %m, %by\n"
                                         "  %next = urem i64 %high, %ym\n"
                                         "  %rest = sub i64 %left, %by\n"
                                         "  br label %loop\n"
                                         "build:\n" /* m < 2^53 in units of y's last place: exact */
                                         "  %lz0 = call i64 @llvm.ctlz.i64(i64 %m, i1 false)\n"
                                         "  %lz = sub i64 %lz0, 11\n"
                                         "  %room = sub i64 %ye, 1\n"
                                         "  %shift = call i64 @llvm.umin.i64(i64 %lz, i64 %room)\n"
                                         "  %moved = shl i64 %m, %shift\n"
                                         "  %exponent = sub i64 %room, %shift\n"
                                         "  %ebits = shl i64 %exponent, 52\n"
                                         "  %size = add i64 %ebits, %moved\n"
                                         "  %zero = icmp eq i64 %m, 0\n"
                                         "  %body = select i1 %zero, i64 0, i64 %size\n"
                                         "  %sign = and i64 %xbits, -9223372036854775808\n"
                                         "  %bits = or i64 %body, %sign\n"
                                         "  %result = bitcast i64 %bits to double\n"
                                         "  ret double %result\n"
                                         "}\n",
                                         NULL };

/* Joins the pieces into one NUL-terminated text in the arena. */
static char *join(cg_func *f, const char *const *pieces, size_t *size)
{
    *size = 0;
    for (const char *const *p = pieces; *p; p++)
        *size += strlen(*p);
    char *text = ARENA_ARRAY(f->arena, char, *size + 1), *end = text;
    for (const char *const *p = pieces; text && *p; p++, end += strlen(end))
        memcpy(end, *p, strlen(*p));
    return text;
}

/* The function, parsed into the module at its first use.  The texts are constants, so they parse. */
static LLVMValueRef soft_function(cg_func *f, const char *name, const char *const *pieces)
{
    LLVMValueRef fn = LLVMGetNamedFunction(f->module, name);
    size_t size;
    if (fn)
        return fn;
    char *text = join(f, pieces, &size), *message = NULL;
    if (!text)
        return NULL;
    LLVMMemoryBufferRef buffer = LLVMCreateMemoryBufferWithMemoryRange(text, size, name, 1);
    LLVMModuleRef module = NULL;
    LLVMContextSetDiscardValueNames(f->llvm, 0); /* text can't be read without names */
    const LLVMBool failed = LLVMParseIRInContext2(f->llvm, buffer, &module, &message);
    LLVMContextSetDiscardValueNames(f->llvm, 1);
    LLVMDisposeMemoryBuffer(buffer);
    LLVMDisposeMessage(message);
    if (failed)
        return NULL;
    LLVMSetTarget(module, LLVMGetTarget(f->module));
    LLVMSetDataLayout(module, LLVMGetDataLayoutStr(f->module));
    LLVMLinkModules2(f->module, module);
    fn = LLVMGetNamedFunction(f->module, name);
    LLVMSetLinkage(fn, LLVMInternalLinkage); /* not before: linking drops internal functions that nothing calls yet */
    opjit_cg_attributes(f, fn);
    return fn;
}

void opjit_cg_soft_close(cg_func *f, const char *version)
{
    for (LLVMValueRef fn = LLVMGetFirstFunction(f->module); fn; fn = LLVMGetNextFunction(fn)) {
        char name[512];
        size_t size;
        const char *old = LLVMGetValueName2(fn, &size);
        if (strncmp(old, "soft.", 5) != 0)
            continue;
        const int length = snprintf(name, sizeof(name), "%s.%s", version, old);
        LLVMSetValueName2(fn, name, (size_t)length);
    }
}

LLVMValueRef opjit_cg_soft(cg_func *f, ir_op op, uint32_t count, LLVMValueRef *args)
{
    const uint32_t lanes = opjit_cg_lanes(args[0]);
    LLVMValueRef fn = op == IR_FMA   ? soft_function(f, "soft.fma", fma_text)
                      : op == IR_REM ? soft_function(f, "soft.fmod", fmod_text)
                                     : opjit_cg_far(f, op);
    LLVMTypeRef f64 = f->type.f64, type = LLVMFunctionType(f64, (LLVMTypeRef[]){ f64, f64, f64 }, count, 0);
    LLVMValueRef out = LLVMGetPoison(LLVMTypeOf(args[0]));
    if (!fn) {
        f->failed = true; /* no memory: reported when the stage is done */
        return out;
    }
    for (uint32_t i = 0; i < lanes; i++) {
        LLVMValueRef lane[3] = { NULL };
        for (uint32_t k = 0; k < count; k++)
            lane[k] = opjit_cg_lane(f, args[k], i);
        LLVMValueRef one = LLVMBuildCall2(f->b, type, fn, lane, count, "");
        out = lanes > 1 ? opjit_cg_insert(f, out, one, i) : one;
    }
    return out;
}
