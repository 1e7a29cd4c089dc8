/* SPDX-License-Identifier: Apache-2.0 */
/* cg_narrow.h - functions on vectors as text, written without LLVM's backend and by it: both store the same. */
#ifndef OPJIT_TESTS_CG_NARROW_H
#define OPJIT_TESTS_CG_NARROW_H

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

#endif
