/* SPDX-License-Identifier: Apache-2.0 */
/* test_cg_loops.c - loops: trip counts, vector widths, unrolling, bounds of every form, strides, guards.
 * The same bits as the interpreter, and nothing touched outside of the buffers. */
#define _GNU_SOURCE
#include "tests/unit/codegen/cg_loops.h"

typedef enum body {
    SEQUENCE,
    BLEND,
    REVERSED,
    TRANSPOSED,
    GATHERED,
    FROM_END,
    GUARDED,
    GUARDED_DATA,
    INDICES,
    REPEATED,
    ONE_VALUE,
    DISTANCE,
    BODIES
} body;

typedef struct sample {
    bounds bounds;
    body body;
    ir_type type;
    uint32_t lanes, unroll, trip;
    uint64_t step;
    uint8_t flags;
    const char *target;
    uint32_t level;
} sample;

/* Tensors 1 and 2: inputs [ROWS, COLUMNS] and i32 [COLUMNS]; 3: output. */
static ir_ref body_value(ir_func *f, const sample *s, ir_ref p, ir_ref j)
{
    const ir_ref own = opjit_ir_load(f, 1, (ir_ref[]){ p, j }), shown = e2(f, IR_ISUB, j, p);
    const ir_ref zero = opjit_ir_const(f, s->type, 0);
    const ir_ref data = e1(f, IR_TO_INDEX, IR_INDEX, opjit_ir_load(f, 2, &j));
    switch (s->body) {
    case SEQUENCE:
        return e1(f, IR_ELEM, s->type, e2(f, IR_IADD, e2(f, IR_IMUL, p, c(f, -COLUMNS)), e2(f, IR_IMUL, j, c(f, 3))));
    case BLEND:
        return ir_expr3(f, IR_SELECT, IR_NONE,
                        e2(f, IR_XOR, e2(f, IR_LE, c(f, 7), shown), e2(f, IR_LT, shown, opjit_ir_param(f, 1))), own,
                        opjit_ir_const(f, s->type, 0x7fa1b2c3d4e5f607));
    case DISTANCE: /* the first copies of two vectors, and those that continue from them */
        return e2(f, IR_ADD, e1(f, IR_ELEM, s->type, e2(f, IR_IADD, shown, opjit_ir_param(f, 1))),
                  e1(f, IR_ELEM, s->type, e2(f, IR_ISUB, j, e2(f, IR_IMUL, p, c(f, 3)))));
    case ONE_VALUE: return opjit_ir_const(f, s->type, 0x7fa1b2c3d4e5f607);
    case REVERSED: return opjit_ir_load(f, 1, (ir_ref[]){ p, e2(f, IR_ISUB, c(f, COLUMNS - 1), j) });
    case GATHERED:
        return opjit_ir_load(f, 1, (ir_ref[]){ p, ir_expr3(f, IR_CLAMP, IR_NONE, data, c(f, 0), c(f, COLUMNS - 1)) });
    case FROM_END: { /* negative indices count from the end */
        const ir_ref at = ir_expr3(f, IR_CLAMP, IR_NONE, data, c(f, -COLUMNS - 1), c(f, COLUMNS));
        const ir_ref from_end =
            ir_expr3(f, IR_SELECT, IR_NONE, e2(f, IR_LT, at, c(f, 0)), e2(f, IR_IADD, at, c(f, COLUMNS)), at);
        const ir_ref inside = ir_expr3(f, IR_CLAMP, IR_NONE, from_end, c(f, 0), c(f, COLUMNS - 1));
        return opjit_ir_load(f, 1, (ir_ref[]){ p, inside });
    }
    case GUARDED:
    case GUARDED_DATA: { /* beyond the ends where the condition is false */
        const ir_ref at = e2(f, IR_IADD, j, s->body == GUARDED ? opjit_ir_param(f, 1) : data);
        const ir_ref inside = e2(f, IR_AND, e2(f, IR_LE, c(f, 0), at), e2(f, IR_LT, at, c(f, COLUMNS)));
        return ir_expr3(f, IR_SELECT, IR_NONE, inside, opjit_ir_load(f, 1, (ir_ref[]){ p, at }), zero);
    }
    case INDICES: {
        const ir_ref q =
            e2(f, IR_IADD, e2(f, IR_IMUL, e2(f, IR_IMOD, shown, c(f, 7)), c(f, 100)), e2(f, IR_IDIV, shown, c(f, 3)));
        const ir_ref m =
            e2(f, IR_IMAX, e2(f, IR_IMIN, e2(f, IR_DOWN, shown, c(f, 8)), e2(f, IR_UP, data, c(f, 4))), c(f, -9));
        return e1(f, IR_ELEM, s->type,
                  e2(f, IR_IADD, q, e2(f, IR_ISUB, e2(f, IR_IMOD, m, c(f, 16)), e2(f, IR_IDIV, m, c(f, 5)))));
    }
    default: return e2(f, IR_ADD, own, e1(f, IR_ELEM, s->type, p));
    }
}

static void build(ir_func *f, const sample *s)
{
    ck_assert(opjit_ir_init(f, &opjit_rt_default_allocator, "sample", NULL) == OPJIT_OK);
    f->phase = IR_SCHEDULED;
    harness_tensor(f, IR_IN, s->type, ROWS, COLUMNS, 0, "in");
    harness_tensor(f, IR_IN, IR_I32, 0, COLUMNS, 1, "data");
    const uint32_t out = s->body == TRANSPOSED ? harness_tensor(f, IR_OUT, s->type, COLUMNS, ROWS, 2, "out")
                                               : harness_tensor(f, IR_OUT, s->type, ROWS, COLUMNS, 2, "out");
    opjit_ir_param_add(f, IR_INDEX, -100, 100, "k");
    const ir_ref stage = opjit_ir_stage(f, c(f, 0), c(f, ROWS), 1), p = ir_at(f, stage)->ref;
    ir_ref lo, hi, top = 0, tail = 0, inner = 0;
    loop_bounds(f, s->bounds, s->trip, s->lanes, p, &lo, &hi);
    const ir_ref loop = opjit_ir_for(f, lo, hi, s->step), j = ir_at(f, loop)->ref;
    f->nodes[loop].vec = (uint16_t)s->lanes;
    f->nodes[loop].unroll = (uint16_t)s->unroll;
    f->nodes[loop].flags = s->flags;
    opjit_ir_append(f, 0, &top, stage);
    opjit_ir_append(f, stage, &tail, loop);
    ir_ref at[2] = { p, j };
    if (s->body == TRANSPOSED) {
        at[0] = j;
        at[1] = p;
    }
    if (s->body == REPEATED)
        at[1] = e2(f, IR_ISUB, c(f, COLUMNS - 1), j);
    const ir_ref let = opjit_ir_let(f, e2(f, IR_IADD, at[1], c(f, 0)));
    if (s->body != ONE_VALUE)
        opjit_ir_append(f, loop, &inner, let);
    if (s->body != TRANSPOSED && s->body != ONE_VALUE)
        at[1] = opjit_ir_get(f, let);
    opjit_ir_append(f, loop, &inner, opjit_ir_store(f, out, body_value(f, s, p, j), at));
    ck_assert(!f->failed);
}

static void check_sample(const sample *s, test_random *r)
{
    ir_func f;
    char what[200];
    build(&f, s);
    snprintf(what, sizeof(what),
             "body %d, bounds %d, %s, %u lanes, unroll %u, trip %u, step %u, flags %u, %s, level %u", s->body,
             s->bounds, opjit_ir_type_name(s->type), s->lanes, s->unroll, s->trip, (unsigned)s->step, s->flags,
             s->target, s->level);
    harness_kernel k = harness_compile(&f, s->target, s->level);
    for (uint32_t i = 0; i < 3 && test_can_run(s->target, false); i++) {
        const int64_t late = test_random_between(r, -90, 90);
        harness_run run = { .params = { (uint64_t)late },
                            .begin = i,
                            .end = ROWS - test_random_below(r, 2),
                            .any_nan = true,
                            .at_end = i != 1,
                            .what = what };
        harness_check(&f, &k, &run, r);
    }
    harness_unload(&k);
    opjit_ir_free(&f);
}

START_TEST(trips)
{
    test_random r;
    test_random_init(&r, 1, 0, (uint64_t)_i);
    for (uint32_t b = 0; b < BOUNDS; b++)
        for (uint32_t v = 0; v < BODIES; v++) {
            static const ir_type types[] = { IR_F32, IR_U8, IR_F64, IR_I16, IR_U64, IR_F16, IR_I32 };
            static const uint32_t lanes[] = { 1, 4, 8, 16, 32 };
            if (!test_random_chance(&r, 40) || !test_takes((uint64_t)_i + b + 3 * v))
                continue; /* each pair is also drawn with many other trip counts */
            sample s = { .bounds = (bounds)b,
                         .body = (body)v,
                         .trip = (uint32_t)_i,
                         .step = 1,
                         .type = types[test_random_below(&r, 7)],
                         .lanes = lanes[test_random_below(&r, 5)],
                         .unroll = test_random_chance(&r, 20) ? 32 : 1 + (uint32_t)test_random_below(&r, 4),
                         .target = targets[test_random_below(&r, TARGETS)],
                         .level = OPJIT_LEVEL_QUICK + (uint32_t)test_random_below(&r, 2),
                         .flags = (uint8_t)(test_random_chance(&r, 50) ? IR_FOR_TAIL_MASK : 0) };
            if (s.lanes == 1)
                s.step = 1 + test_random_below(&r, 3);
            if (v == SEQUENCE && test_random_chance(&r, 50))
                s.flags |= IR_FOR_NT;
            check_sample(&s, &r);
        }
}
END_TEST

/* --- long rows ---------------------------------------------------------------------------------------------------- */

typedef struct long_row {
    ir_type type;
    uint32_t lanes, unroll, trip, rows;
    int64_t lo, step;
    bool point, swapped; /* one value except in one element, often outside of the row; else numbers in equal steps */
} long_row;

static void build_wide(ir_func *f, const long_row *w)
{
    ck_assert(opjit_ir_init(f, &opjit_rt_default_allocator, "wide", NULL) == OPJIT_OK);
    f->phase = IR_SCHEDULED;
    const uint32_t out = harness_tensor(f, IR_OUT, w->type, w->rows, (uint32_t)w->lo + w->trip, 0, "out");
    opjit_ir_param_add(f, IR_INDEX, -3000, 3000, "k");
    const ir_ref stage = opjit_ir_stage(f, c(f, 0), c(f, w->rows), 1), p = ir_at(f, stage)->ref;
    const ir_ref loop = opjit_ir_for(f, c(f, w->lo), c(f, w->lo + w->trip), 1), j = ir_at(f, loop)->ref;
    const ir_ref moved = e2(f, IR_ISUB, j, e2(f, IR_IMUL, p, c(f, 3)));
    ir_ref top = 0, tail = 0, inner = 0, value;
    f->nodes[loop].vec = (uint16_t)w->lanes;
    f->nodes[loop].unroll = (uint16_t)w->unroll;
    if (w->point) {
        const ir_ref k = opjit_ir_param(f, 1);
        value = ir_expr3(f, IR_SELECT, IR_NONE, w->swapped ? e2(f, IR_EQ, k, moved) : e2(f, IR_EQ, moved, k),
                         opjit_ir_const(f, w->type, 0x7fa1b2c3d4e5f607), opjit_ir_const(f, w->type, 5));
    } else {
        value = e1(f, IR_ELEM, w->type, e2(f, IR_IMUL, moved, c(f, w->step)));
    }
    opjit_ir_append(f, 0, &top, stage);
    opjit_ir_append(f, stage, &tail, loop);
    opjit_ir_append(f, loop, &inner, opjit_ir_store(f, out, value, (ir_ref[]){ p, j }));
    ck_assert(!f->failed);
}

START_TEST(wide_rows)
{
    static const ir_type types[] = { IR_F32, IR_U8, IR_F64, IR_I16, IR_U64, IR_F16, IR_I32 };
    static const int64_t steps[] = { 1, -7, 4099, 1 << 20 }; /* the last ones exceed what is exact in f32 and f16 */
    test_random r;
    test_random_init(&r, 4, 0, (uint64_t)_i);
    for (uint32_t i = 0; i < TARGETS; i++) {
        if (!test_takes((uint64_t)_i + i))
            continue;
        const uint32_t level = OPJIT_LEVEL_QUICK + (uint32_t)test_random_below(&r, 2);
        const long_row w = { .type = types[_i % 7],
                             .lanes = 4u << test_random_below(&r, 4),
                             .unroll = 1u << test_random_below(&r, 7),
                             .trip = 1000 + (uint32_t)test_random_below(&r, 1100),
                             .rows = test_random_chance(&r, 50) ? 1 : ROWS,
                             .lo = test_random_chance(&r, 50) ? 0 : test_random_between(&r, 0, 40),
                             .step = steps[test_random_below(&r, 4)],
                             .point = _i & 1,
                             .swapped = test_random_chance(&r, 50) };
        ir_func f;
        char what[160];
        build_wide(&f, &w);
        snprintf(what, sizeof(what), "%s, %u lanes, unroll %u, %u rows of %u from %d, step %d, %d, %s, level %u",
                 opjit_ir_type_name(w.type), w.lanes, w.unroll, w.rows, w.trip, (int)w.lo, (int)w.step, w.point,
                 targets[i], level);
        harness_kernel k = harness_compile(&f, targets[i], level);
        for (uint32_t n = 0; n < 3 && test_can_run(targets[i], false); n++) {
            const int64_t late = n == 0 ? w.lo + w.trip - 1 : n == 1 ? w.lo - 1 : test_random_between(&r, -20, 2200);
            const harness_run run = { .params = { (uint64_t)late }, .end = w.rows, .at_end = n & 1, .what = what };
            harness_check(&f, &k, &run, &r);
        }
        harness_unload(&k);
        opjit_ir_free(&f);
    }
}
END_TEST

/* Long runs of one value that begin at a multiple of a round, so that their lengths modulo the round are known; their
 * vectors begin elsewhere. */
START_TEST(known_rests)
{
    static const int ends[] = { 1024, 1027, 1001, 1023 };
    char text[512];
    ir_func f;
    opjit_error error;
    test_random r;
    test_random_init(&r, 6, 0, (uint64_t)_i);
    snprintf(text, sizeof text,
             "kernel @rests after schedule {\n    out %%0: f32[200,%d]\n    stage @0 for %%1 in 0..200 {\n"
             "        for %%2 in 0..up(%%1, 64) vec 8 unroll 8 { store %%0[%%1,%%2], f32 0x1p+0 }\n"
             "        for %%3 in up(%%1, 64)..%d vec 8 unroll 8 { store %%0[%%1,%%3], f32 0x1p+1 }\n    }\n}\n",
             ends[_i], ends[_i]);
    ck_assert_msg(opjit_ir_parse(text, strlen(text), &opjit_rt_default_allocator, &f, &error) == OPJIT_OK, "%s",
                  error.message);
    ck_assert_msg(opjit_ir_layout(&f, &error) == OPJIT_OK, "%s", error.message);
    for (uint32_t level = OPJIT_LEVEL_QUICK; level <= OPJIT_LEVEL_PEAK && test_can_run("cpu:x86-64-v3", false);
         level++) {
        harness_kernel k = harness_compile(&f, "cpu:x86-64-v3", level);
        const harness_run run = { .end = 200, .at_end = true, .what = text };
        harness_check(&f, &k, &run, &r);
        harness_unload(&k);
    }
    opjit_ir_free(&f);
}
END_TEST

/* Counts stores to the stack after the first store of a vector to memory, up to the end of the stage's function. */
static uint32_t late_stores(const char *code, const char *function)
{
    bool stored = false;
    uint32_t late = 0;
    const char *line = strstr(code, function);
    ck_assert_msg(line != NULL, "no %s", function);
    for (; strncmp(line, ".Lfunc_end", 10) != 0; line = strchr(line, '\n') + 1) {
        const size_t length = strcspn(line, "\n");
        const bool to_memory = length > 0 && line[length - 1] == ')' && memmem(line, length, ", ", 2) != NULL;
        const bool to_stack = to_memory && memmem(line, length, "(%rsp)", 6) != NULL;
        stored = stored || (to_memory && !to_stack && memmem(line, length, "mm", 2) != NULL);
        late += stored && to_stack;
    }
    ck_assert(stored);
    return late;
}

/* What a row's loops count with is on the stack before the row stores anything; after that only the row's own number is
 * stored there. */
START_TEST(early)
{
    static const char *const names[] = { "cpu:x86-64-v3", "cpu:x86-64-v4,vec=64" };
    static const char *const bodies[] = {
        "let %3 = iadd(%2, 1)\n for %4 in 0..%3 { store %1[%2,%4], load %0[%2,%4] }\n"
        "for %5 in %3..192 { store %1[%2,%5], f32 0x1p+0 }\n",
        "let %3 = clamp(iadd(%2, -48), 0, 192)\n let %4 = clamp(iadd(%2, 48), %3, 192)\n"
        "for %5 in 0..%3 { store %1[%2,%5], load %0[%2,%5] }\n for %6 in %3..%4 { store %1[%2,%6], f32 0x1p+0 }\n"
        "for %7 in %4..192 { store %1[%2,%7], load %0[%2,%7] }\n",
    };
    char text[1024];
    ir_func f;
    test_random r;
    const char *const name = names[_i % 2];
    test_random_init(&r, 7, 0, (uint64_t)_i);
    snprintf(text, sizeof text,
             "kernel @early after split {\n    in %%0: f32[192,192] align 64\n    out %%1: f32[192,192] align 64\n"
             "    stage @0 for %%2 in 0..192 {\n%s    }\n}\n",
             bodies[_i / 2]);
    harness_schedule(&f, text, name);
    codegen_result code = harness_emit(&f, name, OPJIT_LEVEL_QUICK, CODEGEN_ASM);
    opjit_rt_bytes_zero_end(&code.bytes);
    ck_assert_uint_eq(late_stores((const char *)code.bytes.data, "early_v0_s0:"), 1);
    harness_free_result(&code);
    if (test_can_run(name, false)) {
        harness_kernel k = harness_compile(&f, name, OPJIT_LEVEL_QUICK);
        const harness_run run = { .end = 192, .at_end = true, .what = text };
        harness_check(&f, &k, &run, &r);
        harness_unload(&k);
    }
    opjit_ir_free(&f);
}
END_TEST

/* --- short iterations --------------------------------------------------------------------------------------------- */

/* Iterations of a few vectors: eight vectors per round at quick, for any number of vectors in a piece; at peak one
 * iteration per round. */
START_TEST(short_iterations)
{
    static const struct {
        uint32_t columns;
        const char *type, *value;
    } rows[] = {
        { 16, "f32", "select(eq(isub(idiv(%2, 4), imod(%2, 4)), 0), f32 0x1p+0, f32 0x0p+0)" },
        { 16, "f32", "load %0[0,%2]" },
        { 16, "f32", "select(lt(%2, %1), load %0[%1,%2], f32 0x1p+0)" },
        { 52, "f32", "select(lt(%2, %1), load %0[%1,%2], f32 0x1p+0)" },
        { 21, "i16", "elem i16 (iadd(imul(%1, 3), %2))" },
        { 3, "u8", "load %0[%1,%2]" },
    };
    static const uint32_t pieces[][2] = { { 0, 0 }, { 0, 1 }, { 3, 11 }, { 5, 30 }, { 0, 64 }, { 63, 64 }, { 7, 3 } };
    const char *const name = targets[_i];
    test_random r;
    test_random_init(&r, 8, 0, (uint64_t)_i);
    for (uint32_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[512];
        ir_func f;
        snprintf(
            text, sizeof text,
            "kernel @short after cleanup {\n    in %%0: %s[64,%u] stride [64,1]\n    out %%3: %s[64,%u] stride [64,1]\n"
            "    stage @0 for %%1 in 0..64 {\n        for %%2 in 0..%u { store %%3[%%1,%%2], %s }\n    }\n}\n",
            rows[i].type, rows[i].columns, rows[i].type, rows[i].columns, rows[i].columns, rows[i].value);
        harness_schedule(&f, text, name);
        for (uint32_t level = OPJIT_LEVEL_QUICK; level <= OPJIT_LEVEL_PEAK && test_can_run(name, false); level++) {
            harness_kernel k = harness_compile(&f, name, level);
            for (uint32_t p = 0; p < sizeof pieces / sizeof pieces[0]; p++)
                harness_check(
                    &f, &k, &(harness_run){ .begin = pieces[p][0], .end = pieces[p][1], .at_end = true, .what = text },
                    &r);
            harness_unload(&k);
        }
        if (i == 0 && strcmp(name, "cpu:x86-64-v4") == 0)
            for (uint32_t level = OPJIT_LEVEL_QUICK; level <= OPJIT_LEVEL_PEAK; level++) {
                codegen_result code = harness_emit(&f, name, level, CODEGEN_LLVM);
                opjit_rt_bytes_zero_end(&code.bytes);
                uint32_t stores = 0;
                for (const char *at = (const char *)code.bytes.data; (at = strstr(at, "store <16")) != NULL; at++)
                    stores++;
                ck_assert_uint_eq(stores, level == OPJIT_LEVEL_QUICK ? 9 : 1);
                harness_free_result(&code);
            }
        opjit_ir_free(&f);
    }
}
END_TEST

/* In place, runs of one constant that differ by a few elements from row to row: overlapping stores, in any piece. */
START_TEST(brief_runs)
{
    static const int64_t bands[][2] = { { 2, 3 }, { 1, 3 }, { 0, 5 }, { 4, 5 }, { 6, 7 }, { 1, 1 }, { -3, 8 } };
    static const char *const values[][2] = {
        { "f32", "f32 0x1.4p+2" }, { "u8", "u8 7" }, { "f16", "f16 0x1.4p+2" }, { "i64", "i64 -5" }
    };
    const char *const name = targets[_i];
    test_random r;
    test_random_init(&r, 13, 0, (uint64_t)_i);
    for (uint32_t i = 0; i < 4 * sizeof bands / sizeof bands[0]; i++) {
        if (!test_takes((uint64_t)_i + i))
            continue;
        const int64_t *const band = bands[i / 4];
        const char *const *const value = values[i % 4];
        char text[512];
        ir_func f;
        snprintf(text, sizeof text,
                 "kernel @brief after cleanup {\n    in %%0: %s[61,64]\n    out %%1: %s[61,64]\n    alias %%1 %%0\n"
                 "    stage @0 for %%2 in 0..61 {\n        let %%3 = clamp(iadd(%%2, %lld), 0, 64)\n"
                 "        let %%4 = clamp(iadd(%%2, %lld), %%3, 64)\n"
                 "        for %%5 in %%3..%%4 { store %%1[%%2,%%5], %s }\n    }\n}\n",
                 value[0], value[0], (long long)-band[0], (long long)band[1], value[1]);
        harness_schedule(&f, text, name);
        for (uint32_t level = OPJIT_LEVEL_QUICK; level <= OPJIT_LEVEL_PEAK && test_can_run(name, false); level++) {
            harness_kernel k = harness_compile(&f, name, level);
            for (uint32_t at_end = 0; at_end < 2; at_end++)
                harness_check(&f, &k, &(harness_run){ .begin = at_end, .end = 61, .at_end = at_end, .what = text }, &r);
            harness_unload(&k);
        }
        opjit_ir_free(&f);
    }
}
END_TEST

/* An index that is made of elements or of a condition is not computed before these are: it was the last row's. */
START_TEST(indices_of_what_is_no_index)
{
    static const char *const names[] = { "cpu:x86-64-v1", "cpu:x86-64-v3", "cpu:x86-64-v4" };
    static const char *const rows[] = {
        "let %3 = floor(mul(elem f32 (%2), f32 0x1p-1))\n let %4 = clamp(index(cast i64 (%3)), 0, 40)\n",
        "let %3 = select(lt(%2, 20), f32 0x1p+0, f32 0x1p+1)\n let %4 = select(lt(%2, 20), %2, 3)\n",
    };
    char text[1024];
    ir_func f;
    test_random r;
    const char *const name = names[_i % 3];
    test_random_init(&r, 7, 1, (uint64_t)_i);
    snprintf(text, sizeof text,
             "kernel @early after split {\n    in %%0: f32[41,41] align 64\n    out %%1: f32[41,41] align 64\n"
             "    stage @0 for %%2 in 0..41 {\n%s let %%5 = iadd(%%2, 1)\n"
             "for %%6 in 0..%%5 { store %%1[%%2,%%6], mul(load %%0[%%4,%%6], %%3) }\n"
             "for %%7 in %%5..41 { store %%1[%%2,%%7], load %%0[%%4,%%7] }\n    }\n}\n",
             rows[_i / 3]);
    harness_schedule(&f, text, name);
    if (test_can_run(name, false)) {
        harness_kernel k = harness_compile(&f, name, OPJIT_LEVEL_QUICK);
        const harness_run run = { .end = 41, .at_end = true, .what = text };
        harness_check(&f, &k, &run, &r);
        harness_unload(&k);
    }
    opjit_ir_free(&f);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cg.loops");
    TCase *t = tcase_create("trips");
    tcase_add_loop_test(t, trips, 0, MAX_TRIP + 1);
    tcase_add_loop_test(t, wide_rows, 0, 14);
    tcase_add_loop_test(t, known_rests, 0, 4);
    tcase_add_loop_test(t, early, 0, 4);
    tcase_add_loop_test(t, indices_of_what_is_no_index, 0, 6);
    tcase_add_loop_test(t, short_iterations, 0, TARGETS);
    tcase_add_loop_test(t, brief_runs, 0, TARGETS);
    suite_add_tcase(s, t);
    SRunner *runner = srunner_create(s);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
