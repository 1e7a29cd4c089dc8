/* SPDX-License-Identifier: Apache-2.0 */
/* test_cg_ops.c - every op on every type, on every target whose code can be run, bit for bit as the interpreter. */
#define _GNU_SOURCE
#include "cg_harness.h"

#include <math.h>
#include <stdio.h>

#define COUNT 333

static const struct {
    const char *target;
    uint32_t bytes; /* of vectors */
} targets[] = {
    { "cpu:x86-64-v1", 16 },
    { "cpu:x86-64-v2", 16 },
    { "cpu:x86-64-v3", 32 },
    { "cpu:x86-64-v3", 64 }, /* which LLVM splits */
    { "cpu:x86-64-v4", 64 }, /* BYTES: this and the next ones are for dot4, dot2 and halves */
    { "cpu:x86-64-v4+avx512vnni", 64 },
    { "cpu:x86-64-v4+avx512vnni", 16 },
    { "cpu:aarch64", 16 },
    { "cpu:aarch64+sve", 16 },
    { "cpu:aarch64+sve,vec=32", 32 },
    { "cpu:rv64gc", 16 },
    { "cpu:rv64gcv", 16 },
    { "cpu:rv64gcv,vec=32", 32 },
};
enum { TARGETS = sizeof(targets) / sizeof(targets[0]), BYTES = 4, FOREIGN = 7 };

/* out[j] = op(in0[j], in1[j], in2[j]) for all j, in vectors of that many lanes. */
typedef struct sample {
    ir_op op;
    ir_type type, from;
    uint32_t lanes;
    const char *target;
    uint32_t level;
    uint32_t constant; /* operand that is constant, counted from 1; 0: none */
    uint64_t bits;     /* of it */
    ir_type through;   /* that a cast makes first; IR_NONE: none */
} sample;

static ir_ref operand(ir_func *f, const sample *s, uint32_t i, uint32_t tensor, ir_ref j)
{
    if (s->constant == i + 1)
        return opjit_ir_const(f, s->from, s->bits);
    const ir_ref x = opjit_ir_load(f, tensor, &j);
    if (s->op == IR_SELECT && i == 0)
        return ir_expr2(f, IR_LT, IR_BOOL, x, opjit_ir_const(f, s->from, 0x21));
    return x;
}

static ir_ref value(ir_func *f, const sample *s, const uint32_t *tensors, ir_ref j)
{
    const char *letters = opjit_ir_op_infos[s->op].operands;
    ir_ref a[3] = { 0 };
    const uint32_t count = (uint32_t)strlen(letters);
    if (s->op == IR_ELEM)
        return ir_expr1(f, IR_ELEM, s->type, ir_expr1(f, IR_TO_INDEX, IR_INDEX, opjit_ir_load(f, tensors[0], &j)));
    for (uint32_t i = 0; i < count; i++)
        a[i] = operand(f, s, i, tensors[i], j);
    if (s->through != IR_NONE)
        a[0] = ir_expr1(f, IR_CAST, s->through, a[0]);
    ir_ref v = opjit_ir_expr(f, s->op, s->type, count, a);
    if (ir_at(f, v)->type == IR_BOOL)
        v = ir_expr1(f, IR_CAST, s->type, v);
    return v;
}

static void check_sample(const sample *s, test_random *r)
{
    ir_func f;
    char name[64], what[160];
    ck_assert(opjit_ir_init(&f, &opjit_rt_default_allocator, "sample", NULL) == OPJIT_OK);
    f.phase = IR_SCHEDULED;
    const bool select = s->op == IR_SELECT;
    const uint32_t tensors[3] = { harness_tensor(&f, IR_IN, s->from, 0, COUNT, 0, "a"),
                                  harness_tensor(&f, IR_IN, select ? s->type : s->from, 0, COUNT, 1, "b"),
                                  harness_tensor(&f, IR_IN, select ? s->type : s->from, 0, COUNT, 2, "c") };
    const uint32_t out = harness_tensor(&f, IR_OUT, s->type, 0, COUNT, 3, "out");
    const ir_ref stage = opjit_ir_stage(&f, opjit_ir_index(&f, 0), opjit_ir_index(&f, 1), 1);
    const ir_ref loop = opjit_ir_for(&f, opjit_ir_index(&f, 0), opjit_ir_index(&f, COUNT), 1);
    const ir_ref j = ir_at(&f, loop)->ref;
    ir_ref top = 0, tail = 0, inner = 0;
    f.nodes[loop].vec = (uint16_t)s->lanes;
    opjit_ir_append(&f, 0, &top, stage);
    opjit_ir_append(&f, stage, &tail, loop);
    opjit_ir_append(&f, loop, &inner, opjit_ir_store(&f, out, value(&f, s, tensors, j), &j));
    snprintf(name, sizeof(name), "%s %s from %s", opjit_ir_op_infos[s->op].name, opjit_ir_type_name(s->type),
             opjit_ir_type_name(s->from));
    snprintf(what, sizeof(what), "%s, %u lanes, %s, level %u", name, s->lanes, s->target, s->level);
    ck_assert(!f.failed);
    harness_kernel k = harness_compile(&f, s->target, s->level);
    const bool copies =
        select || s->op == IR_NEG || s->op == IR_ABS || s->op == IR_BITS || s->op == IR_MIN || s->op == IR_MAX;
    const harness_run run = { .end = 1, .any_nan = !copies, .at_end = true, .what = what };
    if (test_can_run(s->target, false))
        for (uint32_t i = 0; i < (k.code ? 4u : 1u); i++)
            harness_check(&f, &k, &run, r);
    harness_unload(&k);
    opjit_ir_free(&f);
}

static bool is_dots(ir_op op)
{
    return op == IR_DOT4_UU || op == IR_DOT4_US || op == IR_DOT4_SS || op == IR_DOT2;
}

static void check_everywhere(ir_op op, ir_type type, ir_type from)
{
    test_random r;
    test_random_init(&r, 1, (uint64_t)op, (uint64_t)type * 100 + from);
    for (uint32_t t = 0; t < TARGETS; t++)
        for (uint32_t level = OPJIT_LEVEL_QUICK; level <= OPJIT_LEVEL_PEAK; level++) {
            if (t >= BYTES && t < FOREIGN && !is_dots(op) && op != IR_NEAREST && op != IR_HALVES)
                continue;
            if (t >= FOREIGN && op == IR_NEAREST)
                continue;
            if (op == IR_SCALE && strncmp(targets[t].target, "cpu:x86-64-v4", strlen("cpu:x86-64-v4")) != 0)
                continue;
            if (t >= FOREIGN && (t + level + (uint32_t)op + (uint32_t)type + (uint32_t)from) % 2 == 0)
                continue; /* emulators are slow: every second target or level */
            if (!test_takes(t + 5 * level + (uint32_t)op + (uint32_t)type + (uint32_t)from))
                continue;
            const uint32_t size = opjit_ir_type_size(type);
            const sample vectors = { op, type, from, targets[t].bytes / size, targets[t].target, level, 0, 0, IR_NONE };
            const sample scalars = { op, type, from, 1, targets[t].target, level, 0, 0, IR_NONE };
            check_sample(&vectors, &r);
            if (level == OPJIT_LEVEL_QUICK)
                check_sample(&scalars, &r);
        }
}

/* Whether the table's letter allows the type; the verifier allows f64 only for these ops (rule V1). */
static bool allows(ir_op op, ir_type t)
{
    if (op == IR_SIN_FAR || op == IR_COS_FAR || op == IR_TAN_FAR)
        return t == IR_F64;
    if (is_dots(op))
        return t == IR_I32;
    if (op == IR_SCALE)
        return t == IR_F32 || t == IR_F64;
    switch (opjit_ir_op_infos[op].operands[0]) {
    case 'f': return ir_is_float(t);
    case 'n':
    case 'l': return ir_is_integer(t);
    default: return ir_is_element(t);
    }
}

START_TEST(every_op)
{
    const ir_op op = (ir_op)_i;
    const ir_op_info *info = &opjit_ir_op_infos[op];
    const bool skipped = !(info->flags & IR_FLAG_P) || op <= IR_LOAD || info->result == 'I' || op == IR_CAST ||
                         op == IR_BITS || op == IR_NEAREST || op == IR_HALVES || op == IR_ELEM || op == IR_SELECT ||
                         op == IR_PAIR ||           /* test_cg_loops.c */
                         (info->flags & IR_FLAG_M); /* test_cg_math.c */
    if (op == IR_NEAREST)
        check_everywhere(op, IR_I32, IR_F32);
    for (ir_type t = IR_I16; op == IR_HALVES && t <= IR_U16; t++)
        if (t == IR_I16 || t == IR_U16)
            check_everywhere(op, IR_I32, t);
    if (skipped)
        return;
    for (ir_type t = IR_F16; t <= IR_U64; t++)
        if (allows(op, t))
            check_everywhere(op, info->result == 'B' ? IR_U8 : t, t);
}
END_TEST

/* Knowing a constant lets codegen omit steps: 0, -0, 1, the extremes, NaNs. */
START_TEST(constant_bounds)
{
    static const double numbers[] = { 0, -0.0, 1, -90, INFINITY, -INFINITY, NAN, -NAN };
    const ir_type type = (ir_type)_i;
    test_random r;

    test_random_init(&r, 1, (uint64_t)type, 7);
    for (uint32_t n = 0; n < 2 * sizeof(numbers) / sizeof(numbers[0]); n++) {
        uint64_t bits;
        memcpy(&bits, &numbers[n / 2], sizeof(bits));
        bits = type == IR_F64 ? bits : opjit_ir_convert(IR_F64, type, bits);
        static const uint32_t some[] = { 2, 0, FOREIGN, FOREIGN + 3, FOREIGN + 4 };
        const uint32_t t = some[n % 5], lanes = targets[t].bytes / opjit_ir_type_size(type);
        const uint32_t level = n % 4 < 2 ? OPJIT_LEVEL_QUICK : OPJIT_LEVEL_PEAK;
        check_sample(&(sample){ IR_MIN, type, type, lanes, targets[t].target, level, 1 + n % 2, bits, IR_NONE }, &r);
        check_sample(&(sample){ IR_MAX, type, type, n % 4 == 1 ? 1 : lanes, targets[t].target, level, 1 + n % 2, bits,
                                IR_NONE },
                     &r);
    }
}
END_TEST

START_TEST(every_select)
{
    check_everywhere(IR_SELECT, (ir_type)_i, (ir_type)_i);
    check_everywhere(IR_SELECT, (ir_type)_i, IR_I32);
    check_everywhere(IR_SELECT, (ir_type)_i, IR_F64);
}
END_TEST

START_TEST(every_cast)
{
    for (ir_type to = IR_F16; to <= IR_U64; to++) {
        check_everywhere(IR_CAST, to, (ir_type)_i);
        if (opjit_ir_type_size(to) == opjit_ir_type_size((ir_type)_i))
            check_everywhere(IR_BITS, to, (ir_type)_i);
        if (ir_is_integer((ir_type)_i))
            check_everywhere(IR_ELEM, to, (ir_type)_i);
    }
}
END_TEST

/* Numbers that become 8 or 16 bits, and then 32 or 64, where the first cast limits them. */
START_TEST(casts_of_casts)
{
    static const ir_type wide[] = { IR_I32, IR_U32, IR_I64, IR_F32 };
    test_random r;
    for (ir_type from = IR_F16; from <= IR_F64; from++)
        for (uint32_t w = 0; w < sizeof(wide) / sizeof(wide[0]); w++)
            for (uint32_t t = 0; t < FOREIGN; t++)
                for (uint32_t level = OPJIT_LEVEL_QUICK; level <= OPJIT_LEVEL_PEAK; level++) {
                    if (!test_takes(t + 5 * level + w + (uint32_t)from + (uint32_t)_i))
                        continue;
                    const uint32_t widest = opjit_ir_type_size(from) > opjit_ir_type_size(wide[w])
                                                ? opjit_ir_type_size(from) : opjit_ir_type_size(wide[w]);
                    test_random_init(&r, 1, (uint64_t)_i, from * 100u + w);
                    check_sample(&(sample){ .op = IR_CAST, .type = wide[w], .from = from, .through = (ir_type)_i,
                                            .lanes = targets[t].bytes / widest, .target = targets[t].target,
                                            .level = level },
                                 &r);
                }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cg.ops");
    TCase *t = tcase_create("ops");
    tcase_add_loop_test(t, every_op, 1, IR_OP_COUNT);
    tcase_add_loop_test(t, every_cast, IR_F16, IR_U64 + 1);
    tcase_add_loop_test(t, casts_of_casts, IR_I8, IR_I16 + 1);
    tcase_add_loop_test(t, casts_of_casts, IR_U8, IR_U16 + 1);
    tcase_add_loop_test(t, every_select, IR_F16, IR_U64 + 1);
    tcase_add_loop_test(t, constant_bounds, IR_F16, IR_F64 + 1);
    suite_add_tcase(s, t);
    SRunner *runner = srunner_create(s);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
