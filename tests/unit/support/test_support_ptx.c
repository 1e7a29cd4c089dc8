/* SPDX-License-Identifier: Apache-2.0 */
/* test_support_ptx.c - the PTX interpreter's threads and memory: divergence, meeting points, races, bounds,
 * refusals; what its arithmetic gives is test_support.ptx.ops.c's. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/machines/ptx.h"
#include "tests/machines/ptx_texts.h"

#define HEAD ".version 7.1\n.target sm_80\n.address_size 64\n"
/* A kernel of buffers o and a: %rd1, %rd2; tid.x in %r1, laneid in %r2, 4 * tid beyond o in %rd3 and beyond a in
 * %rd4. */
#define KERNEL(body)                                                                                     \
    HEAD ".visible .entry k(.param .u64 o, .param .u64 a)\n{\n"                                          \
         ".reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<30>; .reg .b64 %rd<9>;\n"                      \
         "ld.param.u64 %rd1, [o]; ld.param.u64 %rd2, [a];\nmov.u32 %r1, %tid.x; mov.u32 %r2, %laneid;\n" \
         "mad.wide.u32 %rd3, %r1, 4, %rd1; mad.wide.u32 %rd4, %r1, 4, %rd2;\n" body "\nret;\n}\n"

typedef struct bench {
    _Alignas(64) uint32_t out[2048];
    uint32_t between[64], in[2048]; /* in: 3 * index + 1 */
    ptx_launch launch;
    ptx_stats stats;
    ptx_error error;
    bool assembled; /* the text is to be real PTX too */
} bench;

static bench made(void)
{
    bench b = { .launch = { .grid = { 1, 1, 1 }, .block = { 32, 1, 1 }, .races = true }, .assembled = true };
    for (uint32_t i = 0; i < 2048; i++) {
        b.out[i] = 0xeeeeeeee;
        b.in[i] = 3 * i + 1;
    }
    return b;
}

static bool run(bench *b, const char *text)
{
    ptx_memory *memory = ptx_memory_create();
    ptx_module *m = ptx_parse(text, &b->error);
    uint64_t out = (uintptr_t)b->out, in = (uintptr_t)b->in;

    ck_assert_msg(m != NULL, "%s", b->error.message);
    if (b->assembled)
        ptx_texts_assemble("80", text);
    ck_assert(ptx_memory_share(memory, b->out, sizeof b->out, true, "out") &&
              ptx_memory_share(memory, b->in, sizeof b->in, false, "in"));
    b->launch.arguments = (void *[]){ &out, &in };
    const bool good = ptx_run(m, 0, memory, &b->launch, &b->stats, &b->error);
    ptx_free(m);
    ptx_memory_destroy(memory);
    return good;
}

static void runs(bench *b, const char *text)
{
    ck_assert_msg(run(b, text), "%s", b->error.message);
}

static void refused(bench *b, const char *text, const char *message)
{
    ck_assert_msg(!run(b, text), "it ran, without: %s", message);
    ck_assert_msg(strstr(b->error.message, message) != NULL, "%s\nand not: %s", b->error.message, message);
}

/* --- divergence -------------------------------------------------------------------------------------------------- */
START_TEST(loops_of_different_length_meet_again)
{
    bench b = made();
    b.launch.block[0] = 50; /* the second warp is not full */
    runs(
        &b,
        KERNEL(
            "mov.u32 %r3, 0; mov.u32 %r4, 0;\n"
            "LOOP: setp.ge.u32 %p1, %r3, %r1; @%p1 bra DONE;\n"
            " add.u32 %r4, %r4, %r3; add.u32 %r3, %r3, 1; bra.uni LOOP;\n"
            "DONE: activemask.b32 %r5; popc.b32 %r5, %r5; shl.b32 %r5, %r5, 16; or.b32 %r4, %r4, %r5; st.global.u32 "
            "[%rd3], %r4;"));
    for (uint32_t i = 0; i < 50; i++)
        ck_assert_uint_eq(b.out[i], i * (i - 1) / 2 + ((i < 32 ? 32u : 18u) << 16));
    ck_assert_uint_eq(b.out[50], 0xeeeeeeee);
    ck_assert_uint_eq(b.stats.stores, 2);
    ck_assert_uint_eq(b.stats.store_bytes, 200);
    ck_assert_uint_eq(b.stats.store_sectors, 4 + 3);
}
END_TEST

START_TEST(jump_tables_and_guards)
{
    bench b = made();
    runs(
        &b,
        KERNEL(
            "and.b32 %r3, %r1, 3; mov.u32 %r4, 7;\nT: .branchtargets A, B, C, A;\nbrx.idx %r3, T;\n"
            "A: mov.u32 %r4, 100; bra END;\nB: mov.u32 %r4, 200; bra END;\nC: mov.u32 %r4, 300;\nEND:\n"
            "setp.lt.u32 %p1, %r1, 8; @%p1 add.u32 %r4, %r4, 1; @!%p1 add.u32 %r4, %r4, 2; st.global.u32 [%rd3], "
            "%r4;"));
    for (uint32_t i = 0; i < 32; i++)
        ck_assert_uint_eq(b.out[i], (i % 4 == 3 ? 100 : 100 * (i % 4 + 1)) + (i < 8 ? 1u : 2u));
    refused(&b, KERNEL("T: .branchtargets A, B;\nbrx.idx %r1, T;\nA: mov.u32 %r4, 1;\nB: mov.u32 %r4, 2;"),
            "thread (2,0,0) of block (0,0,0): index 2 of 2 targets");
    refused(&b, KERNEL("setp.lt.u32 %p1, %r1, 8; @%p1 bra.uni A; mov.u32 %r4, 1;\nA: mov.u32 %r4, 2;"),
            "threads part at .uni");
}
END_TEST

START_TEST(calls_of_threads_that_part)
{
    static const char text[] = HEAD
        ".func (.param .b32 r) square(.param .b32 x)\n{\n.reg .b32 %r<4>;\n"
        "ld.param.b32 %r1, [x]; mul.lo.u32 %r2, %r1, %r1; st.param.b32 [r], %r2; ret;\n}\n"
        ".func (.param .b32 r) twice(.param .b32 x, .param .align 8 .b8 s[8]);\n"
        ".visible .entry k(.param .u64 o, .param .u64 a)\n{\n.reg .pred %p; .reg .b32 %r<9>; .reg .b64 %d<9>;\n"
        "ld.param.u64 %d1, [o]; mov.u32 %r1, %tid.x; mad.wide.u32 %d1, %r1, 4, %d1;\n"
        "and.b32 %r2, %r1, 1; setp.eq.u32 %p, %r2, 0; @%p bra EVEN;\n"
        "{ .param .b32 x; .param .b32 y; st.param.b32 [x], %r1; call (y), square, (x); ld.param.b32 %r3, [y]; }\n"
        "bra END;\n"
        "EVEN: { .param .b32 x; .param .align 8 .b8 s[8]; .param .b32 y; st.param.b32 [x], %r1; st.param.b32 [s], 5; "
        "st.param.b32 [s+4], %r1;\n"
        "call (y), twice, (x, s); ld.param.b32 %r3, [y]; }\nEND: st.global.u32 [%d1], %r3; ret;\n}\n"
        ".func (.param .b32 r) twice(.param .b32 x, .param .align 8 .b8 s[8])\n{\n.reg .b32 %r<6>;\n"
        ".reg .b64 %d<3>; .local .align 8 .b8 l[16];\n"
        "ld.param.b32 %r1, [x]; ld.param.v2.b32 {%r2, %r3}, [s]; { .param .b32 u; .param .b32 v; st.param.b32 [u], "
        "%r1;\n"
        "call (v), square, (u); ld.param.b32 %r1, [v]; }\n"
        "mov.b64 %d1, l; cvta.local.u64 %d1, %d1; st.b32 [%d1+8], %r2; ld.local.b32 %r4, [l+8];\n"
        "add.u32 %r1, %r1, %r4; add.u32 %r1, %r1, %r3; st.param.b32 [r], %r1; ret;\n}\n";
    bench b = made();
    runs(&b, text);
    for (uint32_t i = 0; i < 32; i++)
        ck_assert_uint_eq(b.out[i], i % 2 == 1 ? i * i : i * i + 5 + i);
}
END_TEST

/* --- meeting points ---------------------------------------------------------------------------------------------- */
START_TEST(shuffles_and_votes)
{
    bench b = made();
    runs(
        &b,
        KERNEL(
            "ld.global.u32 %r3, [%rd4]; shfl.sync.down.b32 %r4|%p1, %r3, 16, 31, -1; selp.u32 %r4, %r4, 0, %p1;\n"
            "shfl.sync.up.b32 %r5, %r3, 1, 0, -1; shfl.sync.bfly.b32 %r6, %r3, 5, 31, -1; shfl.sync.idx.b32 %r7, %r3, "
            "2, 0x181f, -1;\n"
            "setp.lt.u32 %p2, %r1, 5; vote.sync.ballot.b32 %r8, %p2, -1; vote.sync.all.pred %p3, %p2, -1; "
            "vote.sync.any.pred %p4, %p2, -1;\n"
            "selp.u32 %r9, 64, 0, %p3; selp.u32 %r10, 128, 0, %p4; redux.sync.max.s32 %r11, %r3, -1;\n"
            "st.global.u32 [%rd3], %r4; st.global.u32 [%rd3+128], %r5; st.global.u32 [%rd3+256], %r6; st.global.u32 "
            "[%rd3+384], %r7;\n"
            "add.u32 %r8, %r8, %r9; add.u32 %r8, %r8, %r10; add.u32 %r8, %r8, %r11; st.global.u32 [%rd3+512], %r8;"));
    for (uint32_t i = 0; i < 32; i++) {
        ck_assert_uint_eq(b.out[i], i < 16 ? b.in[i + 16] : 0);
        ck_assert_uint_eq(b.out[32 + i], b.in[i == 0 ? 0 : i - 1]);
        ck_assert_uint_eq(b.out[64 + i], b.in[i ^ 5]);
        ck_assert_uint_eq(b.out[96 + i], b.in[(i & 24) + 2]);
        ck_assert_uint_eq(b.out[128 + i], 31 + 128 + b.in[31]);
    }
}
END_TEST

START_TEST(shuffles_wait_for_their_mask)
{
    bench b = made();
    /* Halves of a warp that part, each with a mask of its own; then the late ones are waited for. */
    runs(&b, KERNEL("setp.lt.u32 %p1, %r1, 16; selp.u32 %r9, 0xffff, 0xffff0000, %p1; @%p1 bra LOW;\n"
                    "mov.u32 %r3, 1000; shfl.sync.idx.b32 %r4, %r1, 20, 31, 0xffff0000; bra END;\n"
                    "LOW: shfl.sync.idx.b32 %r4, %r1, 3, 31, 0xffff;\nEND: shfl.sync.bfly.b32 %r5, %r4, 1, 31, %r9;\n"
                    "shfl.sync.bfly.b32 %r6, %r5, 16, 31, -1; st.global.u32 [%rd3], %r6;"));
    for (uint32_t i = 0; i < 32; i++)
        ck_assert_uint_eq(b.out[i], i < 16 ? 20 : 3);
    /* Threads that have ended are not waited for, nor read. */
    runs(
        &b,
        KERNEL(
            "setp.ge.u32 %p1, %r1, 20; @%p1 exit; shfl.sync.bfly.b32 %r4, %r1, 1, 31, -1; st.global.u32 [%rd3], %r4;"));
    ck_assert_uint_eq(b.out[19], 18);
    refused(
        &b,
        KERNEL(
            "setp.ge.u32 %p1, %r1, 20; @%p1 exit; shfl.sync.bfly.b32 %r4, %r1, 4, 31, -1; st.global.u32 [%rd3], %r4;"),
        "thread (16,0,0) of block (0,0,0): reads lane 20, which takes no part");
    refused(&b, KERNEL("shfl.sync.idx.b32 %r4, %r1, 3, 31, 0xffff;"), "mask 0xffff does not name the thread itself");
    refused(
        &b,
        KERNEL(
            "setp.lt.u32 %p1, %r1, 16; @%p1 bra LOW; shfl.sync.idx.b32 %r4, %r1, 20, 31, -1; bra END;\n"
            "LOW: shfl.sync.idx.b32 %r4, %r1, 3, 31, -1;\nEND:"),
        "deadlock");
}
END_TEST

START_TEST(barriers_of_blocks)
{
    static const char text[] = KERNEL(
        ".shared .align 4 .b8 s[1024];\n"
        "mov.b64 %rd5, s; mad.wide.u32 %rd6, %r1, 4, %rd5; st.shared.u32 [%rd6], %r1; bar.sync 0;\n"
        "xor.b32 %r3, %r1, 165; mad.wide.u32 %rd7, %r3, 4, %rd5; cvta.shared.u64 %rd7, %rd7; ld.u32 %r4, [%rd7];\n"
        "barrier.sync 3, 256; st.shared.u32 [%rd6], %r4; st.global.u32 [%rd3], %r4;");
    bench b = made();
    b.launch.block[0] = 256;
    for (int k = 0; k < 2; k++) {
        b.launch.reversed = k == 1;
        runs(&b, text);
        for (uint32_t i = 0; i < 256; i++)
            ck_assert_uint_eq(b.out[i], i ^ 165);
        ck_assert_uint_eq(b.stats.barriers, 2);
    }
    refused(&b, KERNEL("setp.ge.u32 %p1, %r1, 40; @%p1 bra OTHER; bar.sync 0; bra END;\nOTHER: bar.sync 1;\nEND:"),
            "deadlock: it waits here, others at line");
    refused(&b, KERNEL("bar.sync %r1;"), "barrier 224 for 0 threads");
    runs(&b, KERNEL("setp.ge.u32 %p1, %r1, 40; @%p1 exit; bar.sync 0;"));
    runs(&b, KERNEL("setp.ge.u32 %p1, %r1, 64; @%p1 bra LATE; barrier.sync 2, 128; bra END;\n"
                    "LATE: setp.ge.u32 %p1, %r1, 128; @%p1 bra END; barrier.arrive 2, 128;\nEND:"));
}
END_TEST

START_TEST(barriers_that_reduce)
{
    bench b = made();
    b.launch.block[0] = 80;
    runs(&b, KERNEL("setp.lt.u32 %p1, %r1, 70; setp.lt.u32 %p2, %r1, 80; setp.gt.u32 %p3, %r1, 100;\n"
                    "bar.red.popc.u32 %r3, 0, %p1; bar.red.and.pred %p4, 1, %p1; barrier.red.and.pred %p5, 2, %p2;\n"
                    "bar.red.or.pred %p6, 0, 96, %p1; barrier.red.or.pred %p7, 0, %p3;\n"
                    "selp.u32 %r4, 100, 0, %p4; selp.u32 %r5, 1000, 0, %p5; selp.u32 %r6, 10000, 0, %p6;\n"
                    "selp.u32 %r7, 100000, 0, %p7; add.u32 %r3, %r3, %r4; add.u32 %r3, %r3, %r5;\n"
                    "add.u32 %r3, %r3, %r6; add.u32 %r3, %r3, %r7; st.global.u32 [%rd3], %r3;"));
    for (uint32_t i = 0; i < 80; i++)
        ck_assert_uint_eq(b.out[i], 70 + 1000 + 10000);
}
END_TEST

/* --- races ------------------------------------------------------------------------------------------------------- */
START_TEST(races_are_found)
{
    static const char shared[] =
        ".shared .align 4 .b8 s[1024];\n"
        "mov.b64 %rd5, s; mad.wide.u32 %rd6, %r1, 4, %rd5; xor.b32 %r3, %r1, 1; mad.wide.u32 %rd7, %r3, 4, %rd5;\n";
    char text[3000];
    bench b = made();
    const struct {
        const char *between;
        uint32_t threads;
        const char *message;
    } cases[] = {
        { "st.shared.u32 [%rd6], %r1; ld.shared.u32 %r4, [%rd7];", 32,
          "was written by thread (1,0,0) of block (0,0,0), and no barrier" },
        { "ld.shared.u32 %r4, [%rd7]; st.shared.u32 [%rd6], %r1;", 32,
          "was read by thread (1,0,0) of block (0,0,0), and no barrier" },
        { "st.shared.u32 [%rd6], %r1; bar.warp.sync -1; ld.shared.u32 %r4, [%rd7]; bar.warp.sync -1; st.shared.u32 "
          "[%rd6], %r4;",
          64, NULL },
        { "st.shared.u32 [%rd6], %r1; bar.warp.sync -1; ld.shared.u32 %r4, [%rd7]; st.shared.u32 [%rd6], %r4;", 64,
          "was read by" },
        { "st.shared.u32 [%rd6], %r1; bar.sync 0; ld.shared.u32 %r4, [%rd7];", 64, NULL },
        { "xor.b32 %r3, %r1, 32; mad.wide.u32 %rd7, %r3, 4, %rd5; st.shared.u32 [%rd6], %r1; bar.warp.sync -1; "
          "ld.shared.u32 %r4, [%rd7];",
          64, "was read by" },
        { "xor.b32 %r3, %r1, 32; mad.wide.u32 %rd7, %r3, 4, %rd5; st.shared.u32 [%rd6], %r1; bar.sync 0; "
          "ld.shared.u32 %r4, [%rd7];",
          64, NULL },
        { "st.shared.u32 [s], 5;", 32, "was written by" },
        { "ld.shared.u32 %r4, [s]; bar.sync 0; setp.eq.u32 %p1, %r1, 9; @%p1 st.shared.u32 [s], 5;", 64, NULL },
        { "ld.shared.u32 %r4, [s]; bar.warp.sync -1; setp.eq.u32 %p1, %r1, 9; @%p1 st.shared.u32 [s], 5;", 64,
          "was written by thread (9,0,0)" },
        { "ld.global.nc.u32 %r4, [%rd3]; st.global.u32 [%rd3], 1;", 32,
          "is written by this kernel and read by ld.global.nc" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(text, sizeof text, "%.*s%s%s\nret;\n}\n", (int)(sizeof KERNEL("") - 8), KERNEL(""), shared,
                 cases[i].between);
        b.launch.block[0] = cases[i].threads;
        b.launch.races = true;
        if (cases[i].message != NULL)
            refused(&b, text, cases[i].message);
        b.launch.races = cases[i].message == NULL;
        runs(&b, text);
    }
}
END_TEST

START_TEST(blocks_are_never_ordered)
{
    static const char text[] =
        KERNEL("mov.u32 %r3, %ctaid.x; setp.ne.u32 %p1, %r1, 0; @%p1 exit; st.global.u32 [%rd1], %r3;");
    bench b = made();
    b.launch.grid[0] = 2;
    refused(&b, text, "thread (0,0,0) of block (1,0,0): race");
    b.launch.races = false;
    runs(&b, text);
    ck_assert_uint_eq(b.out[0], 1);
    b.launch.reversed = true;
    runs(&b, text);
    ck_assert_uint_eq(b.out[0], 0);
}
END_TEST

/* --- memory ------------------------------------------------------------------------------------------------------ */
START_TEST(accesses_are_held_to_their_memory)
{
    bench b = made();
    refused(&b, KERNEL("st.global.u32 [%rd3+8188], %r1;"),
            "line 10: 'st.global.u32 [%rd3+8188], %r1': thread (1,0,0) of block (0,0,0): 0x");
    ck_assert_ptr_nonnull(strstr(b.error.message, "4 bytes at offset 8192 of out, which has 8192"));
    ck_assert_uint_eq(b.error.line, 10);
    refused(&b, KERNEL("st.global.u32 [%rd4], %r1;"), "a store to in, which is only to be read");
    refused(&b, KERNEL("ld.global.u32 %r3, [%rd4+2];"), "4 bytes at no multiple of 4");
    refused(&b, KERNEL("ld.global.v2.u32 {%r3, %r4}, [%rd4];"), "8 bytes at no multiple of 8");
    refused(&b, KERNEL("mov.u64 %rd5, 64; ld.global.u8 %h1, [%rd5];"), "1 bytes that are no device memory");
    refused(&b, KERNEL(".shared .align 4 .b8 s[128];\nst.shared.u32 [s+128], %r1;"),
            "0x80: 4 bytes in 128 of shared memory");
    refused(&b, KERNEL(".local .align 4 .b8 s[16];\nst.local.u32 [s+16], %r1;"), "0x10: 4 bytes in 16 of local memory");
    refused(&b, KERNEL("mov.u64 %rd5, 16; ld.param.u32 %r3, [%rd5];"),
            "0x10: 4 bytes in 16 of the kernel's parameters");
    refused(&b, KERNEL("cvta.to.shared.u64 %rd5, %rd1;"), "is no address of that space");
    refused(&b, KERNEL("mov.u32 %r3, 0; div.u32 %r3, %r1, %r3;"), "division by zero");
    refused(&b, KERNEL("setp.eq.u32 %p1, %r1, 7; @%p1 trap;"), "thread (7,0,0) of block (0,0,0): a trap");
    b.launch.step_limit = 100000;
    refused(&b, KERNEL("L: bra L;"), "more than ");
}
END_TEST

START_TEST(all_spaces_and_widths)
{
    static const char text[] = HEAD
        ".const .align 8 .f32 c[3] = {0f3F800000, 0f40000000, 0fC0400000};\n"
        ".global .align 4 .u16 g[4] = {1, 2, 0xffff, -2};\n.global .u32 one = 77;\n"
        ".shared .align 16 .b8 fixed[32];\n.extern .shared .align 16 .b8 more[];\n"
        ".visible .entry k(.param .u64 o, .param .u64 a)\n.maxntid 4\n{\n"
        ".reg .b16 %h<9>; .reg .b32 %r<30>; .reg .b64 %d<9>; .reg .b128 %q<3>;\n"
        "ld.param.u64 %d1, [o]; ld.param.u64 %d2, [a+0]; ld.const.f32 %r1, [c+8]; st.global.f32 [%d1], %r1; "
        "ld.global.s16 %r2, [g+6];\n"
        "st.global.u32 [%d1+4], %r2; ld.global.u32 %r3, [one]; add.u32 %r3, %r3, 1; st.global.u32 [one], %r3; ld.u32 "
        "%r4, [one]; st.global.u32 [%d1+8], %r4;\n"
        "mov.u64 %d3, more; st.shared.v4.u32 [%d3+16], {%r3, 1, %r3, 2}; ld.shared.v2.u64 {%d4, _}, [more+16]; "
        "st.global.b64 [%d1+16], %d4;\n"
        "mov.b128 %q1, {%d4, %d3}; st.global.b128 [%d1+32], %q1; ld.global.b128 %q2, [%d1+32]; mov.b128 {_, %d5}, "
        "%q2; st.global.u64 [%d1+24], %d5;\n"
        "ld.global.v4.u8 {%h1, %h2, %h3, %h4}, [%d2+4]; st.global.v4.u8 [%d1+48], {%h4, %h3, %h2, %h1}; ld.global.s8 "
        "%d6, [g+7]; st.global.u64 [%d1+56], %d6;\n"
        "mov.u64 %d7, c; cvta.const.u64 %d7, %d7; ld.f32 %r5, [%d7+4]; st.global.f32 [%d1+64], %r5; mov.u32 %r6, "
        "%dynamic_smem_size; st.global.u32 [%d1+68], %r6;\nret;\n}\n";
    bench b = made();
    b.launch.block[0] = 1;
    b.launch.shared_bytes = 64;
    b.assembled = false; /* .b128 in ld and st is for later machines */
    b.in[1] = 0x04030201;
    runs(&b, text);
    const uint32_t expected[18] = { 0xc0400000, (uint32_t)-2, 78,         0xeeeeeeee, 78, 1,          128 + 0,
                                    0,          78,           1,          128,        0,  0x01020304, 0xeeeeeeee,
                                    0xffffffff, 0xffffffff,   0x40000000, 64 };
    for (int i = 0; i < 18; i++)
        ck_assert_msg(b.out[i] == expected[i], "%d: %x, not %x", i, b.out[i], expected[i]);
    b.launch.block[0] = 5;
    refused(&b, text, "5 threads, .maxntid says 4");
    b.launch.block[0] = 1;
    b.launch.shared_bytes = 50000;
    refused(&b, text, "of dynamic shared memory; allowed: 49152");
}
END_TEST

/* --- the parser -------------------------------------------------------------------------------------------------- */
START_TEST(what_is_not_known_is_refused)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        { "", "line 1: '.version' is missing before ''" },
        { ".version 5.0", "not 6.0 to 9.9" },
        { ".version 7.1\n.target gfx90a\n", "line 2: target 'gfx90a', not sm_70 to sm_129" },
        { ".version 7.1\n.target sm_80\n.address_size 32\n", "addresses of '32' bits, not 64" },
        { HEAD ".texref t;", "line 4: '.texref' outside of functions" },
        { HEAD ".global .u32 x = y;", "'y' as a value of x" },
        { HEAD ".global .u32 x[1] = {1, 2};", "x: more than 1 values" },
        { HEAD ".extern .global .u32 x;", "only .extern .shared" },
        { HEAD ".global .pred x;", "a variable of type .pred" },
        { HEAD ".func f(.param .u32 a)\n{ call f, (a); ret; }", "f calls itself" },
        { HEAD ".func f(.param .u32 a);", "f has no body" },
        { HEAD ".func f(.param .u32 a);\n.func f(.param .u64 a)\n{ ret; }", "f differs from its prototype" },
        { HEAD ".visible .entry k()\n.maxclusterrank 2\n{ ret; }", "directive '.maxclusterrank'" },
        { HEAD ".visible .entry k()\n{ ret;", "a function that does not end" },
        { HEAD "/* ", "a comment that does not end" },
        { KERNEL("frobnicate.u32 %r3, %r1;"), "line 10: unknown instruction 'frobnicate.u32'" },
        { KERNEL("add.f32 %r3, %r1, %r2;"), "'add.f32' without .rn may be contracted" },
        { KERNEL("mul.f64 %rd3, %rd1, %rd2;"), "without .rn may be contracted" },
        { KERNEL("fma.rz.f32 %r3, %r1, %r2, %r1;"), "'.rz' of 'fma.rz.f32' is not known here" },
        { KERNEL("add.rn.ftz.f32 %r3, %r1, %r2;"), "'.ftz' of" },
        { KERNEL("ex2.approx.f32 %r3, %r1;"), "unknown instruction 'ex2.approx.f32'" },
        { KERNEL("div.approx.f32 %r3, %r1, %r2;"), "'.approx' of" },
        { KERNEL("div.f32 %r3, %r1, %r2;"), "modifiers that do not go together" },
        { KERNEL("mul.s32 %r3, %r1, %r2;"), "modifiers that do not go together" },
        { KERNEL("mul.lo.f16 %h3, %h1, %h2;"), "without .rn" },
        { KERNEL("max.NaN.f64 %rd3, %rd1, %rd2;"), "modifiers that do not go together" },
        { KERNEL("add.s32 %r3, %r1;"), "'add.s32' with 2 operands" },
        { KERNEL("add.s32 %r3, %r1, %r2, %r1;"), "'add.s32' with 4 operands" },
        { KERNEL("add.s32 %r3, %r1, %rd2;"), "'add.s32': a register of 64 bits for .s32" },
        { KERNEL("add.s32 %rd3, %r1, %r2;"), "'add.s32': a register of 64 bits for .s32" },
        { KERNEL("add.s32 5, %r1, %r2;"), "the result goes to no register" },
        { KERNEL("add.s32 %r3, %r1, 0x100000000;"), "an operand that is no .s32" },
        { KERNEL("add.s32 %r3, %r1, 0f3F800000;"), "an operand that is no .s32" },
        { KERNEL("add.rn.f32 %r3, %r1, 1;"), "an operand that is no .f32" },
        { KERNEL("add.s32 %r3, %r1, 1.5;"), "no number: '1.'" },
        { KERNEL("add.s32 %r3, %r1, 0f123;"), "no number: '0f123;'" },
        { KERNEL("add.s32 %r3, %r1, %r99;"), "register %r99 is not declared" },
        { KERNEL("add.s32 %r3, %r1, %p1;"), "a register of 0 bits for .s32" },
        { KERNEL("setp.lt.b32 %p1, %r1, %r2;"), "no such comparison" },
        { KERNEL("setp.nan.s32 %p1, %r1, %r2;"), "no such comparison" },
        { KERNEL("setp.lt.f16x2 %p1, %r1, %r2;"), "predicates that do not fit" },
        { KERNEL("cvt.f32.f64 %r1, %rd2;"), "no such conversion" },
        { KERNEL("cvt.s32.f32 %r1, %r2;"), "no such conversion" },
        { KERNEL("cvt.rn.bf16.f32 %h1, %r2;"), "'.bf16' of" },
        { KERNEL("ld.global.v3.u32 {%r1, %r2, %r3}, [%rd1];"), "'.v3' of" },
        { KERNEL("ld.global.v2.u32 {%r1, %r2, %r3}, [%rd1];"), "not as many values as .v says" },
        { KERNEL("ld.shared.nc.u32 %r1, [%rd1];"), "modifiers that do not go together" },
        { KERNEL("st.const.u32 [%rd1], %r1;"), "modifiers that do not go together" },
        { KERNEL("ld.global.u32 %r1, %rd1;"), "no address in brackets" },
        { KERNEL("atom.global.add.u32 %r1, [%rd1], 1;"), "unknown instruction 'atom.global.add.u32'" },
        { KERNEL("mov.b32 %r1, {%h1, %h2, %h3};"), "parts that do not make up the whole" },
        { KERNEL("mov.u32 %r1, %clock;"), "register %clock is not declared" },
        { KERNEL("bra NOWHERE;"), "no label NOWHERE in this function" },
        { KERNEL("brx.idx %r1, NOWHERE;"), "no label NOWHERE in this function" },
        { KERNEL("A:\nA:"), "line 11: label A is there twice" },
        { KERNEL("call nobody, (o);"), "no function nobody" },
        { KERNEL("@%r1 ret;"), "'%r1' is no predicate" },
        { KERNEL("shfl.sync.b32 %r3, %r1, 1, 31, -1;"), "modifiers that do not go together" },
        { KERNEL("vote.sync.ballot.pred %p1, %p2, -1;"), "modifiers that do not go together" },
        { KERNEL("bar.red.popc.pred %p3, 0, %p1;"), "modifiers that do not go together" },
        { KERNEL("bar.red.u32 %r3, 0, %p1;"), "modifiers that do not go together" },
        { KERNEL("bar.red.popc.u32 %r3, %p1;"), "'bar.red.popc.u32' with 2 operands" },
        { KERNEL("bar.arrive 0;"), "'bar.arrive' with 1 operands" },
        { KERNEL(".loc 1 2 3"), "'.loc' in a function" },
        { KERNEL("ret"), "'ret' with 1 operands" },
        { HEAD ".func f(.param .u32 a)\n{ ret; }\n.entry k()\n{ .param .u64 x; call f, (x); ret; }",
          "parameters that are not those of f" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ptx_error error;
        ptx_module *m = ptx_parse(cases[i].text, &error);
        ck_assert_msg(m == NULL, "taken, without: %s", cases[i].message);
        ck_assert_msg(strstr(error.message, cases[i].message) != NULL, "%s\nand not: %s", error.message,
                      cases[i].message);
        ck_assert_uint_ne(error.line, 0);
    }
}
END_TEST

/* Cut anywhere, or with a byte changed anywhere, a text is taken or refused; sanitizers look on. */
START_TEST(damaged_texts)
{
    static const char text[] = HEAD
        ".global .align 4 .u16 g[2] = {1, 2};\n.func (.param .b32 r) f(.param .b32 x)\n{ ret; }\n"
        ".visible .entry k(.param .u64 o)\n.reqntid 32, 1, 1\n{\n.reg .pred %p<3>; .reg .b32 %r<4>; .reg .b64 %d<3>;\n"
        "T: .branchtargets A;\nbrx.idx %r1, T;\nA: @!%p1 bra.uni A; ld.global.v2.b32 {%r1, _}, [g+8];\n"
        "{ .param .b32 x; .param .b32 y; call.uni (y), f, (x); }\nsetp.lt.and.s32 %p1|%p2, %r1, 0x7F, %p2; ret; }\n";
    char copy[sizeof text];
    ptx_module *m = ptx_parse(text, NULL);

    ck_assert_ptr_nonnull(m);
    ck_assert_int_eq(ptx_find(m, "k"), 0);
    ck_assert_int_eq(ptx_find(m, "f"), -1);
    ck_assert_uint_eq(ptx_entry_get(m, 0).reqntid[0], 32);
    ck_assert_uint_eq(ptx_entry_get(m, 0).param_bytes[0], 8);
    ptx_free(m);
    for (size_t i = 0; i < sizeof text - 1; i++) {
        memcpy(copy, text, sizeof text);
        copy[i] = '\0';
        ptx_free(ptx_parse(copy, NULL));
        for (const char *c = ".%{};[,0A<\""; *c != '\0'; c++) {
            memcpy(copy, text, sizeof text);
            copy[i] = *c;
            ptx_free(ptx_parse(copy, NULL));
        }
    }
}
END_TEST

START_TEST(ranges)
{
    uint8_t bytes[64];
    ptx_memory *m = ptx_memory_create();

    ck_assert(ptx_memory_add(m, 0x1000, bytes, 16, true, "a"));
    ck_assert(!ptx_memory_add(m, 0x100f, bytes, 16, true, "b"));
    ck_assert(!ptx_memory_add(m, 0x2000, bytes, 0, true, "b"));
    ck_assert(!ptx_memory_add(m, UINT64_MAX - 3, bytes, 16, true, "b"));
    ck_assert(ptx_memory_add(m, 0x1010, bytes + 16, 16, true, NULL));
    ck_assert_ptr_eq(ptx_memory_host(m, 0x1012, 14), bytes + 18);
    ck_assert_ptr_null(ptx_memory_host(m, 0x1008, 16));
    ck_assert_ptr_null(ptx_memory_host(m, 0x1012, 15));
    ck_assert(ptx_memory_remove(m, 0x1000));
    ck_assert(!ptx_memory_remove(m, 0x1000));
    ptx_memory_destroy(m);
    ptx_memory_destroy(NULL);
}
END_TEST

START_TEST(launches_are_checked)
{
    bench b = made();
    b.launch.block[0] = 1025;
    refused(&b, KERNEL(""), "a block of (1025,1,1) threads");
    b.launch.block[0] = 0;
    refused(&b, KERNEL(""), "a block of (0,1,1) threads");
    b.launch.block[0] = 32;
    b.launch.grid[1] = 65536;
    refused(&b, KERNEL(""), "a grid of (1,65536,1) blocks");
    b.launch.grid[1] = 1;
    refused(&b, HEAD ".visible .entry k(.param .u64 o, .param .u64 a)\n.reqntid 64\n{ ret; }",
            ".reqntid says (64,1,1)");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("support.ptx");
    TCase *cases = tcase_create("ptx");
    tcase_add_test(cases, loops_of_different_length_meet_again);
    tcase_add_test(cases, jump_tables_and_guards);
    tcase_add_test(cases, calls_of_threads_that_part);
    tcase_add_test(cases, shuffles_and_votes);
    tcase_add_test(cases, shuffles_wait_for_their_mask);
    tcase_add_test(cases, barriers_of_blocks);
    tcase_add_test(cases, barriers_that_reduce);
    tcase_add_test(cases, races_are_found);
    tcase_add_test(cases, blocks_are_never_ordered);
    tcase_add_test(cases, accesses_are_held_to_their_memory);
    tcase_add_test(cases, all_spaces_and_widths);
    tcase_add_test(cases, what_is_not_known_is_refused);
    tcase_add_test(cases, damaged_texts);
    tcase_add_test(cases, ranges);
    tcase_add_test(cases, launches_are_checked);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failures = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
