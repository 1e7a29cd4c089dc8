/* SPDX-License-Identifier: Apache-2.0 */
/* test_cg_accumulators.c - loops that accumulate: reductions, running sums, products, minimums and maximums, and loads
 * that a loop shares with the one inside it.  The same bits as the interpreter, and nothing touched outside of the
 * buffers. */
#define _GNU_SOURCE
#include "tests/unit/codegen/cg_loops.h"

#include "ir/eval/numerics.h"

typedef struct reduction {
    ir_kind kind;
    ir_type type;
    uint32_t lanes, vec, unroll, n, late;
    bool masked; /* the remainder, where the target has masks */
    const char *target;
    uint32_t level;
} reduction;

static void check_reduction(const reduction *s, test_random *r)
{
    ir_func f;
    char what[200];
    const bool arg = ir_kind_is_arg(s->kind);
    const ir_type result = arg ? IR_INDEX : s->type;
    ck_assert(opjit_ir_init(&f, &opjit_rt_default_allocator, "reduction", NULL) == OPJIT_OK);
    f.phase = IR_SCHEDULED;
    harness_tensor(&f, IR_IN, s->type, 0, s->n, 0, "in");
    const uint32_t out = harness_tensor(&f, IR_OUT, arg ? IR_I64 : s->type, 0, 2, 1, "out");
    opjit_ir_param_add(&f, IR_INDEX, 0, s->n, "k");
    const ir_ref stage = opjit_ir_stage(&f, c(&f, 0), c(&f, 1), 1), acc = opjit_ir_acc(&f, result, s->kind, s->lanes);
    const ir_ref hi = s->late ? opjit_ir_param(&f, 1) : c(&f, s->n), loop = opjit_ir_for(&f, c(&f, 0), hi, 1),
                 j = ir_at(&f, loop)->ref;
    ir_ref top = 0, tail = 0, inner = 0, value = opjit_ir_get(&f, acc);
    f.nodes[loop].vec = (uint16_t)s->vec;
    f.nodes[loop].unroll = (uint16_t)s->unroll;
    f.nodes[loop].flags |= s->masked ? IR_FOR_TAIL_MASK : 0;
    opjit_ir_append(&f, 0, &top, stage);
    opjit_ir_append(&f, stage, &tail, acc);
    opjit_ir_append(&f, stage, &tail, loop);
    ir_ref x = opjit_ir_load(&f, 1, &j);
    if (s->kind == IR_DOT)
        x = e2(&f, IR_PAIR, x, e2(&f, IR_SUB, x, ir_expr1(&f, IR_ELEM, s->type, j)));
    opjit_ir_append(&f, loop, &inner, opjit_ir_upd(&f, acc, x, arg ? e2(&f, IR_IADD, j, c(&f, 5)) : 0));
    if (arg)
        value = e1(&f, IR_ELEM, IR_I64, value);
    opjit_ir_append(&f, stage, &tail, opjit_ir_store(&f, out, value, (ir_ref[]){ c(&f, 1) }));
    snprintf(what, sizeof(what), "%s of %u %s, late %u, %u lanes, vec %u, unroll %u, masked %d, %s, level %u",
             opjit_ir_kind_name(s->kind), s->n, opjit_ir_type_name(s->type), s->late, s->lanes, s->vec, s->unroll,
             s->masked, s->target, s->level);
    harness_kernel k = harness_compile(&f, s->target, s->level);
    for (uint32_t i = 0; i < 3 && test_can_run(s->target, false); i++) {
        const harness_run run = { .params = { test_random_below(r, s->n + 1) },
                                  .end = 1,
                                  .any_nan = s->kind != IR_KMIN && s->kind != IR_KMAX, /* which choose */
                                  .at_end = true,
                                  .what = what };
        harness_check(&f, &k, &run, r);
    }
    harness_unload(&k);
    opjit_ir_free(&f);
}

START_TEST(reductions)
{
    test_random r;
    test_random_init(&r, 2, 0, (uint64_t)_i);
    for (ir_kind kind = IR_SUM; kind < IR_KIND_COUNT; kind++) {
        static const ir_type types[] = { IR_F32, IR_F64, IR_I32, IR_U8, IR_I64, IR_F16 };
        static const uint32_t sizes[] = { 1, 31, 33, 70, 300, 4095, 4097, 9000 };
        const bool wide = _i % 3 != 0 && kind != IR_DOT;
        const reduction s = { .kind = kind,
                              .type = types[test_random_below(&r, kind == IR_DOT ? 5 : 6)],
                              .lanes = wide ? 32 : 1,
                              .late = _i & 1,
                              .masked = (_i & 2) != 0,
                              .vec = wide ? 1u << test_random_below(&r, 7) : 1,
                              .unroll = 1u << test_random_below(&r, 4),
                              .n = sizes[test_random_below(&r, 8)],
                              .target = targets[test_random_below(&r, TARGETS)],
                              .level = OPJIT_LEVEL_QUICK + (uint32_t)test_random_below(&r, 2) };
        check_reduction(&s, &r);
    }
}
END_TEST

/* --- running accumulators ----------------------------------------------------------------------------------------- */

/* Rows of running sums, products, minimums or maximums: each element's value after its own step, or before it. */
typedef struct running {
    ir_kind kind;
    ir_type type;
    bounds bounds;
    uint32_t lanes, unroll, trip;
    uint64_t step;
    bool exclusive, backward, in_place;
    bool twice;  /* a second step of the same accumulator */
    bool second; /* what is stored is the sum with another accumulator */
} running;

static ir_ref running_step(ir_func *f, ir_ref loop, ir_ref *tail, ir_ref acc, ir_ref value, bool exclusive)
{
    const ir_ref before = opjit_ir_let(f, opjit_ir_get(f, acc)), after = opjit_ir_let(f, opjit_ir_get(f, acc));
    if (exclusive)
        opjit_ir_append(f, loop, tail, before);
    opjit_ir_append(f, loop, tail, opjit_ir_upd(f, acc, value, 0));
    if (!exclusive)
        opjit_ir_append(f, loop, tail, after);
    return opjit_ir_get(f, exclusive ? before : after);
}

static void build_running(ir_func *f, const running *s)
{
    ck_assert(opjit_ir_init(f, &opjit_rt_default_allocator, "running", NULL) == OPJIT_OK);
    f->phase = IR_SCHEDULED;
    harness_tensor(f, IR_IN, s->type, ROWS, COLUMNS, 0, "in");
    const uint32_t out = harness_tensor(f, IR_OUT, s->type, ROWS, COLUMNS, 1, "out");
    f->tensors[out].alias = s->in_place ? 1 : 0;
    opjit_ir_param_add(f, IR_INDEX, -100, 100, "k");
    const ir_ref stage = opjit_ir_stage(f, c(f, 0), c(f, ROWS), 1), p = ir_at(f, stage)->ref;
    const ir_ref acc = opjit_ir_acc(f, s->type, s->kind, s->lanes), other = opjit_ir_acc(f, s->type, IR_KMAX, 0);
    ir_ref top = 0, tail = 0, inner = 0, lo, hi;
    loop_bounds(f, s->bounds, s->trip, 8, p, &lo, &hi);
    const ir_ref loop = opjit_ir_for(f, lo, hi, s->step), j = ir_at(f, loop)->ref;
    const ir_ref at[2] = { p, s->backward ? e2(f, IR_ISUB, c(f, COLUMNS - 1), j) : j };
    const ir_ref own = opjit_ir_load(f, 1, at);
    f->nodes[loop].unroll = (uint16_t)s->unroll;
    opjit_ir_append(f, 0, &top, stage);
    opjit_ir_append(f, stage, &tail, acc);
    if (s->second)
        opjit_ir_append(f, stage, &tail, other);
    opjit_ir_append(f, stage, &tail, loop);
    ir_ref value = running_step(f, loop, &inner, acc, own, s->exclusive);
    if (s->second)
        value = e2(f, IR_ADD, value, running_step(f, loop, &inner, other, own, !s->exclusive));
    if (s->twice)
        opjit_ir_append(f, loop, &inner, opjit_ir_upd(f, acc, e2(f, IR_SUB, own, opjit_ir_const(f, s->type, 3)), 0));
    opjit_ir_append(f, loop, &inner, opjit_ir_store(f, out, value, at));
    ck_assert(!f->failed);
}

/* Row lengths from zero to several rounds, with every remainder. */
START_TEST(running_steps)
{
    static const ir_type types[] = { IR_F32, IR_F64, IR_F16, IR_I32, IR_I64, IR_U64, IR_U8 };
    test_random r;
    test_random_init(&r, 5, 0, (uint64_t)_i);
    for (uint32_t i = 0; i < 4; i++) {
        if (!test_takes((uint64_t)_i + 3 * i))
            continue;
        const char *const target = targets[i < 2 ? 2 : test_random_below(&r, TARGETS)];
        const uint32_t level = test_random_chance(&r, 70) ? OPJIT_LEVEL_QUICK : OPJIT_LEVEL_PEAK;
        const running s = { .kind = IR_SUM + (ir_kind)test_random_below(&r, 4),
                            .type = types[test_random_below(&r, 7)],
                            .bounds = (bounds)test_random_below(&r, BOUNDS),
                            .lanes = (uint32_t)test_random_below(&r, 2),
                            .unroll = 1u << test_random_below(&r, 5),
                            .trip = (uint32_t)_i,
                            .step = test_random_chance(&r, 80) ? 1 : 2,
                            .exclusive = test_random_chance(&r, 50),
                            .backward = test_random_chance(&r, 30),
                            .in_place = test_random_chance(&r, 30),
                            .twice = test_random_chance(&r, 20),
                            .second = test_random_chance(&r, 20) };
        ir_func f;
        char what[200];
        build_running(&f, &s);
        snprintf(what, sizeof(what),
                 "running %s of %u %s, bounds %d, step %u, lanes %u, unroll %u, %d%d%d%d%d, %s, level %u",
                 opjit_ir_kind_name(s.kind), s.trip, opjit_ir_type_name(s.type), s.bounds, (unsigned)s.step, s.lanes,
                 s.unroll, s.exclusive, s.backward, s.in_place, s.twice, s.second, target, level);
        harness_kernel k = harness_compile(&f, target, level);
        for (uint32_t n = 0; n < 3 && test_can_run(target, false); n++) {
            const harness_run run = { .params = { (uint64_t)test_random_between(&r, -5, 60) },
                                      .end = ROWS,
                                      .any_nan = true,
                                      .at_end = n & 1,
                                      .what = what };
            harness_check(&f, &k, &run, &r);
        }
        harness_unload(&k);
        opjit_ir_free(&f);
    }
}
END_TEST

/* --- shared loads ------------------------------------------------------------------------------------------------- */

/* One load is used by a loop and by the loop inside it, where it doesn't move: for each row its first element minus the
 * sum of it over `trip` iterations, inside `depth` enclosing loops. */
static void build_shared(ir_func *f, uint32_t trip, uint32_t depth)
{
    ck_assert(opjit_ir_init(f, &opjit_rt_default_allocator, "shared_load", NULL) == OPJIT_OK);
    f->phase = IR_SCHEDULED;
    harness_tensor(f, IR_IN, IR_F32, ROWS, COLUMNS, 0, "in");
    const uint32_t out =
        harness_tensor(f, IR_OUT, IR_F32, ROWS, COLUMNS + 1, 1, "out"); /* can't be the input's memory */
    const ir_ref stage = opjit_ir_stage(f, c(f, 0), c(f, ROWS), 1), row = ir_at(f, stage)->ref;
    ir_ref top = 0, around = stage, tail = 0, column = c(f, 0);
    opjit_ir_append(f, 0, &top, stage);
    if (depth > 0) {
        const ir_ref loop = opjit_ir_for(f, c(f, 0), c(f, COLUMNS), 1);
        opjit_ir_append(f, stage, &tail, loop);
        column = ir_at(f, loop)->ref;
        around = loop;
        tail = 0;
    }
    ir_ref at[] = { row, column }, inner = 0;
    const ir_ref own = opjit_ir_load(f, 1, at), acc = opjit_ir_acc(f, IR_F32, IR_SUM, 1);
    const ir_ref loop = opjit_ir_for(f, c(f, 0), c(f, (int64_t)trip), 1);
    opjit_ir_append(f, around, &tail, acc);
    opjit_ir_append(f, around, &tail, loop);
    opjit_ir_append(f, loop, &inner, opjit_ir_upd(f, acc, own, 0));
    opjit_ir_append(f, around, &tail, opjit_ir_store(f, out, e2(f, IR_MUL, own, opjit_ir_get(f, acc)), at));
    ck_assert(!f->failed);
}

START_TEST(shared_loads)
{
    static const uint32_t trips_inside[] = { 1, 3 };
    test_random r;
    ir_func f;
    test_random_init(&r, 3, 0, (uint64_t)_i);
    build_shared(&f, trips_inside[_i & 1], (uint32_t)_i >> 1);
    for (uint32_t i = 0; i < TARGETS; i++)
        for (uint32_t level = OPJIT_LEVEL_QUICK; level <= OPJIT_LEVEL_PEAK; level++) {
            harness_kernel k = harness_compile(&f, targets[i], level);
            const harness_run run = { .end = ROWS, .any_nan = true, .at_end = i & 1, .what = targets[i] };
            if (test_can_run(targets[i], false))
                harness_check(&f, &k, &run, &r);
            harness_unload(&k);
        }
    opjit_ir_free(&f);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cg.accumulators");
    TCase *t = tcase_create("accumulators");
    tcase_add_loop_test(t, reductions, 0, 12);
    tcase_add_loop_test(t, running_steps, 0, MAX_TRIP + 1);
    tcase_add_loop_test(t, shared_loads, 0, 4);
    suite_add_tcase(s, t);
    SRunner *runner = srunner_create(s);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
