/* SPDX-License-Identifier: Apache-2.0 */
/* test_cg_x86_code.c - instructions as bytes are what LLVM's disassembler reads: vectors in each encoding, registers of
 * each group, and every form of an address. */
#include "codegen/x86/x86_code.h"

#include <check.h>
#include <llvm-c/Disassembler.h>
#include <llvm-c/Target.h>
#include <stdlib.h>
#include <string.h>

enum { NONE = X86_NO_INDEX };

typedef struct row {
    const char *text; /* as LLVM prints it */
    x86_vector v;
    x86_mem mem;
    bool in_memory;
    int immediate; /* -1: none */
} row;

#define AT(b, i, s, o) { .base = b, .index = i, .shift = s, .offset = o }
#define ARITH .map = X86_0F, .code = 0x58
#define FMA .map = X86_0F38, .prefix = X86_66, .code = 0xb8
static const row rows[] = {
    { "vaddps\t%xmm3, %xmm2, %xmm1", { ARITH, .bytes = 16, .reg = 1, .second = 2, .rm = 3 }, { 0 }, false, -1 },
    { "vaddps\t%ymm11, %ymm10, %ymm9", { ARITH, .bytes = 32, .reg = 9, .second = 10, .rm = 11 }, { 0 }, false, -1 },
    { "vaddps\t%ymm3, %ymm10, %ymm9", { ARITH, .bytes = 32, .reg = 9, .second = 10, .rm = 3 }, { 0 }, false, -1 },
    { "vaddps\t%ymm3, %ymm18, %ymm9", { ARITH, .bytes = 32, .reg = 9, .second = 18, .rm = 3 }, { 0 }, false, -1 },
    { "vaddps\t%zmm3, %zmm2, %zmm1", { ARITH, .bytes = 64, .reg = 1, .second = 2, .rm = 3 }, { 0 }, false, -1 },
    { "vaddps\t%zmm31, %zmm26, %zmm17", { ARITH, .bytes = 64, .reg = 17, .second = 26, .rm = 31 }, { 0 }, false, -1 },
    { "vaddps\t%zmm12, %zmm8, %zmm24", { ARITH, .bytes = 64, .reg = 24, .second = 8, .rm = 12 }, { 0 }, false, -1 },
    { "vfmadd231ps\t%ymm4, %ymm5, %ymm6", { FMA, .bytes = 32, .reg = 6, .second = 5, .rm = 4 }, { 0 }, false, -1 },
    { "vfmadd231ps\t%zmm4, %zmm25, %zmm6", { FMA, .bytes = 64, .reg = 6, .second = 25, .rm = 4 }, { 0 }, false, -1 },
    { "vfmadd231ps\t(%rbp), %ymm5, %ymm6", { FMA, .bytes = 32, .reg = 6, .second = 5, .unit = 32 },
      AT(X86_BP, NONE, 0, 0), true, -1 },
    { "vfmadd231ps\t12(%r12), %ymm5, %ymm6", { FMA, .bytes = 32, .reg = 6, .second = 5, .unit = 32 },
      AT(12, NONE, 0, 12), true, -1 },
    { "vfmadd231ps\t-4096(%rsp), %zmm5, %zmm6", { FMA, .bytes = 64, .reg = 6, .second = 5, .unit = 64 },
      AT(X86_SP, NONE, 0, -4096), true, -1 },
    { "vfmadd231ps\t68(%r13,%r12,8), %zmm5, %zmm26", { FMA, .bytes = 64, .reg = 26, .second = 5, .unit = 64 },
      AT(13, 12, 3, 68), true, -1 },
    { "vfmadd231ps\t8128(%rdx,%r9), %zmm5, %zmm26", { FMA, .bytes = 64, .reg = 26, .second = 5, .unit = 64 },
      AT(X86_DX, 9, 0, 8128), true, -1 },
    { "vfmadd231ps\t20(%rax,%rcx,2){1to16}, %zmm17, %zmm3",
      { FMA, .bytes = 64, .reg = 3, .second = 17, .unit = 64, .splat = true }, AT(X86_AX, X86_CX, 1, 20), true, -1 },
    { "vfmadd231ps\t(%r15){1to8}, %ymm7, %ymm3",
      { FMA, .bytes = 32, .reg = 3, .second = 7, .unit = 32, .splat = true }, AT(15, NONE, 0, 0), true, -1 },
    { "vpdpbusd\t%ymm3, %ymm2, %ymm1",
      { .map = X86_0F38, .prefix = X86_66, .code = 0x50, .bytes = 32, .reg = 1, .second = 2, .rm = 3, .avx512 = true },
      { 0 }, false, -1 },
    { "vmovss\t%xmm19, 508(%rdi)", { .map = X86_0F, .prefix = X86_F3, .code = 0x11, .bytes = 16, .reg = 19, .unit = 4 },
      AT(X86_DI, NONE, 0, 508), true, -1 },
    { "vbroadcastss\t%xmm20, %zmm9",
      { .map = X86_0F38, .prefix = X86_66, .code = 0x18, .bytes = 64, .reg = 9, .rm = 20 }, { 0 }, false, -1 },
    { "vcmpunordps\t%zmm20, %zmm20, %k1",
      { .map = X86_0F, .code = 0xc2, .bytes = 64, .reg = 1, .second = 20, .rm = 20, .avx512 = true }, { 0 }, false, 3 },
    { "vblendmps\t%zmm20, %zmm6, %zmm2 {%k1}",
      { .map = X86_0F38, .prefix = X86_66, .code = 0x65, .bytes = 64, .reg = 2, .second = 6, .rm = 20, .mask = 1 },
      { 0 }, false, -1 },
    { "vblendvps\t%ymm12, %ymm13, %ymm6, %ymm2",
      { .map = X86_0F3A, .prefix = X86_66, .code = 0x4a, .bytes = 32, .reg = 2, .second = 6, .rm = 13 },
      { 0 }, false, 12 << 4 },
    { "vpaddq\t8(%rdi){1to8}, %zmm2, %zmm1",
      { .map = X86_0F, .prefix = X86_66, .code = 0xd4, .bytes = 64, .reg = 1, .second = 2, .splat = true, .w = true },
      AT(X86_DI, NONE, 0, 8), true, -1 },
    { "vmovups\t(%rsi), %zmm3 {%k2} {z}",
      { .map = X86_0F, .code = 0x10, .bytes = 64, .reg = 3, .unit = 64, .mask = 2, .zero = true },
      AT(X86_SI, NONE, 0, 0), true, -1 },
    { "vpmovzxbd\t64(%rsi), %zmm3", /* no short offset */
      { .map = X86_0F38, .prefix = X86_66, .code = 0x31, .bytes = 64, .reg = 3 },
      AT(X86_SI, NONE, 0, 64), true, -1 },
    { "vpgatherdd\t(%rax,%zmm20,4), %zmm17 {%k3}",
      { .map = X86_0F38, .prefix = X86_66, .code = 0x90, .bytes = 64, .reg = 17, .unit = 4, .mask = 3, .avx512 = true },
      { .base = X86_AX, .index = 20, .shift = 2, .lanes = true }, true, -1 },
    { "vpgatherdd\t(%rax,%zmm4), %zmm1 {%k3}",
      { .map = X86_0F38, .prefix = X86_66, .code = 0x90, .bytes = 64, .reg = 1, .unit = 4, .mask = 3, .avx512 = true },
      { .base = X86_AX, .index = 4, .lanes = true }, true, -1 },
    { "vscalefpd\t%zmm3, %zmm2, %zmm1",
      { .map = X86_0F38, .prefix = X86_66, .code = 0x2c, .bytes = 64, .reg = 1, .second = 2, .rm = 3, .w = true,
        .avx512 = true },
      { 0 }, false, -1 },
    { "vshuff32x4\t$221, %zmm3, %zmm2, %zmm1",
      { .map = X86_0F3A, .prefix = X86_66, .code = 0x23, .bytes = 64, .reg = 1, .second = 2, .rm = 3, .avx512 = true },
      { 0 }, false, 0xdd },
    { "vperm2f128\t$49, %ymm3, %ymm2, %ymm1",
      { .map = X86_0F3A, .prefix = X86_66, .code = 0x06, .bytes = 32, .reg = 1, .second = 2, .rm = 3 },
      { 0 }, false, 0x31 },
    { "vunpckhpd\t%zmm19, %zmm2, %zmm1",
      { .map = X86_0F, .prefix = X86_66, .code = 0x15, .bytes = 64, .reg = 1, .second = 2, .rm = 19, .w = true },
      { 0 }, false, -1 },
    { "vaddps\t16(%rip), %ymm10, %ymm9", { ARITH, .bytes = 32, .reg = 9, .second = 10, .unit = 32 },
      AT(X86_RIP, NONE, 0, 16), true, -1 },
    { "kmovq\t%rax, %k5",
      { .map = X86_0F, .prefix = X86_F2, .code = 0x92, .bytes = 16, .reg = 5, .avx_w = true }, { 0 }, false, -1 },
};
enum { ROWS = sizeof rows / sizeof *rows };

static LLVMDisasmContextRef reader;

/* Compares with one instruction, tabs as they are, blanks at the start left out, and nothing is left over. */
static void reads(const rt_bytes *code, const char *text)
{
    char out[128] = "";
    const size_t size = LLVMDisasmInstruction(reader, code->data, code->size, 0, out, sizeof out);
    ck_assert_str_eq(out + strspn(out, " \t"), text);
    ck_assert_uint_eq(size, code->size);
}

START_TEST(vectors)
{
    const row *r = &rows[_i];
    x86_vector v = r->v;
    rt_bytes code;
    opjit_rt_bytes_init(&code, &opjit_rt_default_allocator);
    v.mem = r->in_memory ? &r->mem : NULL;
    opjit_cg_x86_vector(&code, &v);
    if (r->immediate >= 0)
        opjit_rt_bytes_u8(&code, (uint8_t)r->immediate);
    reads(&code, r->text);
    opjit_rt_bytes_free(&code);
}
END_TEST

START_TEST(integers)
{
    static const char *const texts[] = {
        "movq\t8(%rdi), %r9",         "leaq\t(%rbx,%r14,4), %rax", "addq\t$64, %r12",
        "subq\t$4096, %rsp",          "imulq\t$-3, 16(%rdi), %r10", "prefetcht0\t64(%r8,%rbp)",
        "prefetcht1\t(%rsi)",         "pushq\t%rbx",                "popq\t%r15"
    };
    const x86_mem word = AT(X86_DI, NONE, 0, 8), row_of = AT(X86_BX, 14, 2, 0), third = AT(X86_DI, NONE, 0, 16);
    const x86_mem line = AT(8, X86_BP, 0, 64), first = AT(X86_SI, NONE, 0, 0);
    rt_bytes code;
    opjit_rt_bytes_init(&code, &opjit_rt_default_allocator);
    switch (_i) {
    case 0: opjit_cg_x86_memory(&code, 0x8b, 9, &word); break;
    case 1: opjit_cg_x86_memory(&code, 0x8d, X86_AX, &row_of); break;
    case 2: opjit_cg_x86_immediate(&code, 0, 12, 64); break;
    case 3: opjit_cg_x86_immediate(&code, 5, X86_SP, 4096); break;
    case 4: opjit_cg_x86_multiply(&code, 10, &third, -3); break;
    case 5: opjit_cg_x86_fetch(&code, &line, X86_FETCH_FIRST); break;
    case 6: opjit_cg_x86_fetch(&code, &first, X86_FETCH_SECOND); break;
    case 7: opjit_cg_x86_push(&code, X86_BX); break;
    default: opjit_cg_x86_pop(&code, 15); break;
    }
    reads(&code, texts[_i]);
    opjit_rt_bytes_free(&code);
}
END_TEST

int main(void)
{
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86Disassembler();
    reader = LLVMCreateDisasmCPUFeatures("x86_64-unknown-linux-gnu", "x86-64-v4", "+avx512vnni", NULL, 0, NULL, NULL);
    Suite *suite = suite_create("cg.x86.code");
    TCase *tcase = tcase_create("instructions");
    tcase_add_loop_test(tcase, vectors, 0, ROWS);
    tcase_add_loop_test(tcase, integers, 0, 9);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    LLVMDisasmDispose(reader);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
