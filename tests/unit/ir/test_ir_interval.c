/* SPDX-License-Identifier: Apache-2.0 */
/* test_ir_interval.c - intervals, decided comparisons, linear forms, distances and proofs, checked against every value
 * that random expressions take. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/analysis/proof.h"
#include "ir/passes/pass.h"

enum { VARS = 3, TRIP = 7 };

static uint64_t seed;

static uint64_t next_random(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (seed * 0x2545f4914f6cdd1du) >> 33;
}

static int64_t between(int64_t lo, int64_t hi)
{
    return lo + (int64_t)(next_random() % (uint64_t)(hi - lo + 1));
}

typedef struct sample {
    ir_func f;
    ir_ref var[VARS];
    ir_ref lets[4];
    uint32_t let_count;
    int64_t value[VARS];
} sample;

static ir_ref random_expr(sample *s, uint32_t depth)
{
    static const ir_op ops[] = { IR_IADD, IR_ISUB, IR_IADD, IR_ISUB,  IR_IMUL, IR_IDIV,
                                 IR_IMOD, IR_IMIN, IR_IMAX, IR_CLAMP, IR_DOWN, IR_UP };
    ir_func *f = &s->f;
    if (depth == 0 || next_random() % 6 == 0) {
        const uint64_t kind = next_random() % 4;
        if (kind == 0)
            return opjit_ir_index(f, between(-20, 20));
        if (kind == 1 && s->let_count > 0)
            return opjit_ir_get(f, s->lets[next_random() % s->let_count]);
        return s->var[next_random() % VARS];
    }
    const ir_op op = ops[next_random() % (sizeof(ops) / sizeof(ops[0]))];
    const ir_ref a = random_expr(s, depth - 1);
    switch (op) {
    case IR_IMUL: return ir_expr2(f, op, IR_INDEX, a, opjit_ir_index(f, between(-5, 5)));
    case IR_IDIV:
    case IR_IMOD: return ir_expr2(f, op, IR_INDEX, a, opjit_ir_index(f, between(1, 9)));
    case IR_DOWN:
    case IR_UP: return ir_expr2(f, op, IR_INDEX, a, opjit_ir_index(f, 1 << between(0, 4)));
    case IR_CLAMP: return ir_expr3(f, op, IR_INDEX, a, random_expr(s, depth - 1), random_expr(s, depth - 1));
    default: return ir_expr2(f, op, IR_INDEX, a, random_expr(s, depth - 1));
    }
}

static int64_t value_of(const sample *s, ir_ref expr)
{
    const ir_func *f = &s->f;
    const ir_node *node = ir_at(f, expr);
    uint64_t args[3] = { 0 }, out = 0;
    if (node->op == IR_CONST)
        return (int64_t)node->imm;
    if (node->op == IR_GET)
        return value_of(s, ir_operand(f, node->ref, 0));
    for (uint32_t v = 0; v < VARS; v++)
        if (expr == s->var[v])
            return s->value[v];
    for (uint32_t i = 0; i < node->count; i++)
        args[i] = (uint64_t)value_of(s, ir_operand(f, expr, i));
    const ir_type from = (ir_type)ir_at(f, ir_operand(f, expr, 0))->type;
    ck_assert(opjit_ir_scalar((ir_op)node->op, (ir_type)node->type, from, args, &out));
    return (int64_t)out;
}

/* Three nested loops, the inner bounds from the outer variables. */
static void start_sample(sample *s)
{
    opjit_error error;
    memset(s, 0, sizeof(*s));
    ck_assert_int_eq(opjit_ir_init(&s->f, &opjit_rt_default_allocator, "random", &error), OPJIT_OK);
    for (uint32_t v = 0; v < VARS; v++) {
        const int64_t first = between(-9, 9);
        ir_ref lo = opjit_ir_index(&s->f, first), hi = opjit_ir_index(&s->f, first + between(1, TRIP));
        if (v > 0 && next_random() % 2) {
            lo = s->var[v - 1];
            hi = ir_expr2(&s->f, IR_IADD, IR_INDEX, lo, opjit_ir_index(&s->f, between(1, TRIP)));
        }
        const ir_ref loop = opjit_ir_for(&s->f, lo, hi, (uint64_t)between(1, 3));
        s->var[v] = ir_at(&s->f, loop)->ref;
    }
    for (; s->let_count < 4; s->let_count++)
        s->lets[s->let_count] = opjit_ir_let(&s->f, random_expr(s, 2));
}

/* Calls check for each value of the variables. */
static void for_all(sample *s, uint32_t v, void (*check)(sample *s, void *what), void *what)
{
    if (v == VARS) {
        check(s, what);
        return;
    }
    const ir_node *loop = ir_at(&s->f, ir_at(&s->f, s->var[v])->ref);
    const int64_t lo = value_of(s, s->f.operands[loop->first]), hi = value_of(s, s->f.operands[loop->first + 1]);
    for (int64_t i = lo; i < hi; i += (int64_t)loop->imm) {
        s->value[v] = i;
        for_all(s, v + 1, check, what);
    }
}

typedef struct claim {
    ir_ref expr;
    ir_interval interval;
    int decided;
    ir_linear linear;
    bool is_linear;
    ir_ref var;
} claim;

static void check_claim(sample *s, void *what)
{
    const claim *c = what;
    const int64_t value = value_of(s, c->expr);
    if (ir_at(&s->f, c->expr)->type == IR_BOOL) {
        ck_assert_msg(c->decided < 0 || c->decided == (int)value, "decided %d, is %d", c->decided, (int)value);
        return;
    }
    ck_assert_msg(c->interval.lo <= value && value <= c->interval.hi, "%lld is not in [%lld, %lld]", (long long)value,
                  (long long)c->interval.lo, (long long)c->interval.hi);
    if (c->is_linear)
        ck_assert_int_eq(value, c->linear.factor * value_of(s, c->var) + value_of(s, c->linear.rest));
}

START_TEST(random_expressions)
{
    static const ir_op comparisons[] = { IR_LT, IR_LE, IR_EQ, IR_NE };
    const char *text = getenv("OPJIT_SEED");
    uint32_t decided = 0, linear = 0;
    seed = text ? strtoull(text, NULL, 0) : 77;
    seed += seed == 0;
    printf("OPJIT_SEED=%llu\n", (unsigned long long)seed);
    for (int round = 0; round < 1500; round++) {
        sample s;
        start_sample(&s);
        claim c = { .expr = random_expr(&s, 3), .var = s.var[round % VARS] };
        c.interval = opjit_ir_interval(&s.f, c.expr);
        c.is_linear = opjit_ir_linear(&s.f, c.expr, c.var, &c.linear);
        if (c.is_linear)
            ck_assert(!opjit_ir_uses(&s.f, c.linear.rest, c.var));
        for_all(&s, 0, check_claim, &c);
        linear += c.is_linear && c.linear.factor != 0;
        c.expr = ir_expr2(&s.f, comparisons[next_random() % 4], IR_BOOL, c.expr, random_expr(&s, 2));
        if (next_random() % 3 == 0)
            c.expr =
                ir_expr2(&s.f, IR_AND, IR_BOOL, c.expr, ir_expr2(&s.f, IR_LE, IR_BOOL, s.var[0], random_expr(&s, 2)));
        c.decided = opjit_ir_decide(&s.f, c.expr);
        for_all(&s, 0, check_claim, &c);
        decided += c.decided >= 0;
        opjit_ir_free(&s.f);
    }
    ck_assert_uint_gt(decided, 200); /* it does decide */
    ck_assert_uint_gt(linear, 50);
}
END_TEST

/* What the analyses say of two expressions and one variable. */
typedef struct pair_claim {
    ir_ref a, b, var;
    ir_interval gap;
    int64_t span, longest, factor, slack, distance;
    bool has_span, at_most, ordered, proven, has_factor, has_distance, never, is_digit, within;
    uint64_t divisor;
    ir_digit digit;
    bool *exceeds; /* out: a > b + slack for some values */
} pair_claim;

static int64_t floor_of(int64_t x, int64_t k)
{
    return x / k - (x % k < 0);
}

static void check_pair(sample *s, void *what)
{
    const pair_claim *c = what;
    const int64_t a = value_of(s, c->a), b = value_of(s, c->b), v = value_of(s, c->var);
    ck_assert_msg(c->gap.lo <= b - a && b - a <= c->gap.hi, "%lld is no gap in [%lld, %lld]", (long long)(b - a),
                  (long long)c->gap.lo, (long long)c->gap.hi);
    ck_assert(!c->has_distance || a - b == c->distance);
    ck_assert(!c->has_span || b - a <= c->span);
    ck_assert(b - a <= c->longest);
    ck_assert(!c->at_most || a <= b);
    ck_assert(!c->ordered || a <= b);
    ck_assert(!c->proven || a <= b + c->slack);
    *c->exceeds = *c->exceeds || a > b + c->slack;
    ck_assert(!c->never || b <= a);
    ck_assert(!c->within || (a >= 0 && a < 40));
    ck_assert(a % (int64_t)c->divisor == 0);
    if (c->is_digit) {
        const int64_t high = floor_of(v, c->digit.divide), k = c->digit.modulo;
        ck_assert_int_eq(a, (k == 0 ? high : high - floor_of(high, k) * k) + c->digit.offset);
    }
}

/* Whether there is a point at which a <= b + slack is wrong; it has to be one of those that there are. */
static bool has_counterexample(const ir_func *f, const pair_claim *c)
{
    ir_affine sum = { 0 };
    if (!opjit_ir_affine_add_values(f, &sum, c->a, 1) || !opjit_ir_affine_add_values(f, &sum, c->b, -1) ||
        !checked_subi(sum.constant, c->slack, &sum.constant) || !opjit_ir_is_above(f, &sum))
        return false;
    ck_assert(*c->exceeds);
    return true;
}

/* expr = factor * var + something that var does not change. */
static void check_factor(sample *s, const pair_claim *c)
{
    for (uint32_t v = 0; v < VARS; v++)
        s->value[v] = between(-5, 5);
    int64_t *const own = &s->value[c->var == s->var[0] ? 0 : c->var == s->var[1] ? 1 : 2];
    const int64_t at = *own, rest = value_of(s, c->a) - c->factor * at;
    *own = at + between(1, 9);
    ck_assert_int_eq(value_of(s, c->a) - c->factor * *own, rest);
    *own = at;
}

START_TEST(random_pairs)
{
    uint32_t proven = 0, ordered = 0, factors = 0, digits = 0, spans = 0, least = 0, wrong = 0, refuted = 0,
             longer = 0;
    seed = 4711;
    for (int round = 0; round < 3000; round++) {
        sample s;
        start_sample(&s);
        bool exceeds = false;
        pair_claim c = {
            .a = random_expr(&s, 3), .var = s.var[round % VARS], .slack = between(-3, 6), .exceeds = &exceeds
        };
        c.b = round % 4 != 0 ? random_expr(&s, 2)
                             : ir_expr2(&s.f, IR_IADD, IR_INDEX, c.a, random_expr(&s, 1)); /* near each other */
        if (round % 8 == 1)
            c.a = ir_expr3(&s.f, IR_CLAMP, IR_INDEX, c.a, random_expr(&s, 1), c.b);
        if (round % 8 == 2)
            c.a = ir_expr2(&s.f, IR_IADD, IR_INDEX,
                           ir_expr2(&s.f, IR_IMOD, IR_INDEX,
                                    ir_expr2(&s.f, IR_IDIV, IR_INDEX, c.var, opjit_ir_index(&s.f, between(1, 3))),
                                    opjit_ir_index(&s.f, between(1, 4))),
                           opjit_ir_index(&s.f, between(-3, 3)));
        c.gap = opjit_ir_gap(&s.f, c.a, c.b);
        c.has_distance = opjit_ir_distance(&s.f, c.a, c.b, &c.distance);
        c.has_span = opjit_ir_span(&s.f, c.a, c.b, &c.span);
        c.longest = opjit_ir_longest(&s.f, c.a, c.b);
        c.at_most = opjit_ir_at_most(&s.f, c.a, c.b);
        c.ordered = opjit_ir_ordered(&s.f, c.a, c.b);
        c.proven = opjit_ir_proves_le(&s.f, c.a, c.b, c.slack);
        c.never = opjit_ir_runs_never(&s.f, c.a, c.b);
        c.within = opjit_ir_within(&s.f, c.a, 40);
        c.divisor = opjit_ir_divisor(&s.f, c.a);
        c.is_digit = opjit_ir_digit(&s.f, c.a, c.var, &c.digit);
        c.has_factor = opjit_ir_factor(&s.f, c.a, c.var, &c.factor);
        for_all(&s, 0, check_pair, &c);
        wrong += exceeds;
        refuted += has_counterexample(&s.f, &c);
        if (c.has_factor)
            check_factor(&s, &c);
        if (c.at_most && c.slack >= 0) /* the dearest prover knows what the cheapest one does */
            ck_assert(c.proven);
        const bool at_once = opjit_ir_proves_within(&s.f, c.a, c.b, c.slack, 2);
        ck_assert(!at_once || c.proven); /* what few sums show, more of them do, and some that these don't */
        longer += c.proven && !at_once;
        proven += c.proven;
        ordered += c.ordered;
        spans += c.has_span;
        factors += c.has_factor && c.factor != 0;
        digits += c.is_digit;
        least += opjit_ir_at_least(&s.f, c.a, c.b, c.gap.lo);
        opjit_ir_free(&s.f);
    }
    ck_assert_uint_gt(proven, 500); /* they do find what is there */
    ck_assert_uint_gt(longer, 0);
    ck_assert_uint_gt(ordered, 300);
    ck_assert_uint_gt(spans, 1000);
    ck_assert_uint_gt(factors, 100);
    ck_assert_uint_gt(digits, 100);
    ck_assert_uint_gt(least, 500);
    ck_assert_uint_gt(refuted, wrong / 2);
}
END_TEST

/* What the bounds of loops tell beyond intervals, and what may overflow. */
START_TEST(particular_cases)
{
    ir_func f;
    opjit_error error;
    ck_assert_int_eq(opjit_ir_init(&f, &opjit_rt_default_allocator, "cases", &error), OPJIT_OK);
    const ir_ref param = opjit_ir_param(&f, opjit_ir_param_add(&f, IR_INDEX, INT32_MIN, INT32_MAX, NULL));
    const ir_ref hi = ir_expr3(&f, IR_CLAMP, IR_INDEX, param, opjit_ir_index(&f, 0), opjit_ir_index(&f, 512));
    const ir_ref let = opjit_ir_let(&f, hi), loop = opjit_ir_for(&f, opjit_ir_index(&f, 0), opjit_ir_get(&f, let), 1);
    const ir_ref j = ir_at(&f, loop)->ref;
    ck_assert_int_eq(opjit_ir_interval(&f, j).hi, 511);
    ck_assert_int_eq(opjit_ir_decide(&f, ir_expr2(&f, IR_LT, IR_BOOL, j, opjit_ir_get(&f, let))), 1);
    ck_assert_int_eq(opjit_ir_decide(&f, ir_expr2(&f, IR_LT, IR_BOOL, j, param)), -1);
    ck_assert_int_eq(opjit_ir_decide(&f, ir_expr2(&f, IR_LE, IR_BOOL, ir_expr2(&f, IR_ISUB, IR_INDEX, param, param),
                                                  opjit_ir_index(&f, 0))),
                     1);
    const ir_ref large = ir_expr2(&f, IR_IMUL, IR_INDEX, param, opjit_ir_index(&f, (int64_t)1 << 40));
    ck_assert_int_eq(opjit_ir_interval(&f, large).hi, INT64_MAX);
    ck_assert_int_eq(opjit_ir_interval(&f, ir_expr2(&f, IR_IADD, IR_INDEX, large, opjit_ir_index(&f, -5))).hi,
                     INT64_MAX);
    const ir_ref empty = opjit_ir_for(&f, opjit_ir_index(&f, 3), opjit_ir_index(&f, 3), 1);
    const ir_interval never = opjit_ir_interval(&f, ir_at(&f, empty)->ref);
    ck_assert(never.lo > never.hi);
    /* parts of blocks of 16384: where the second part runs, it has not begun above its end, 16200 */
    const ir_ref blocks = opjit_ir_for(&f, opjit_ir_index(&f, 0), opjit_ir_index(&f, 2), 1);
    const ir_ref begin = ir_expr2(&f, IR_IMUL, IR_INDEX, ir_at(&f, blocks)->ref, opjit_ir_index(&f, 16384));
    const ir_ref limit = opjit_ir_index(&f, 40000);
    const ir_ref first = opjit_ir_let(&f, ir_expr3(&f, IR_CLAMP, IR_INDEX, opjit_ir_index(&f, 200), begin, limit));
    const ir_ref from = opjit_ir_get(&f, first);
    const ir_ref second = opjit_ir_let(&f, ir_expr3(&f, IR_CLAMP, IR_INDEX, opjit_ir_index(&f, 16200), from, limit));
    const ir_ref to = opjit_ir_get(&f, second), inner = opjit_ir_for(&f, from, to, 1);
    const ir_ref below = opjit_ir_for(&f, opjit_ir_index(&f, 0), to, 1); /* may run where the part begins at 16384 */
    ck_assert_int_eq(opjit_ir_interval(&f, ir_at(&f, inner)->ref).hi, 16199);
    ck_assert_int_eq(opjit_ir_interval(&f, ir_at(&f, below)->ref).hi, 16383);
    /* rows of 4 matrices of n: the row's number by n is the matrix's, by n again none above 0 */
    const ir_ref n = opjit_ir_param(&f, opjit_ir_param_add(&f, IR_INDEX, 1, 1500, NULL));
    const ir_ref rows = opjit_ir_for(&f, opjit_ir_index(&f, 0),
                                     ir_expr2(&f, IR_IMUL, IR_INDEX, n, opjit_ir_index(&f, 4)), 1);
    const ir_ref matrix = ir_expr2(&f, IR_IQUOT, IR_INDEX, ir_at(&f, rows)->ref, n);
    ck_assert_int_eq(opjit_ir_interval(&f, matrix).hi, 3);
    ck_assert_int_eq(opjit_ir_interval(&f, ir_expr2(&f, IR_IDIV, IR_INDEX, matrix, opjit_ir_index(&f, 2))).hi, 1);
    /* no product of n * n */
    ck_assert_int_eq(opjit_ir_interval(&f, ir_expr2(&f, IR_IQUOT, IR_INDEX, matrix, n)).hi, 3);
    /* 40 levels of x + x are 2^40 operands as a tree */
    ir_ref sum = j;
    for (int i = 0; i < 40; i++)
        sum = ir_expr2(&f, IR_IADD, IR_INDEX, sum, sum);
    ck_assert_int_eq(opjit_ir_interval(&f, sum).lo, 0);
    ck_assert(!opjit_ir_uses(&f, sum, param));
    opjit_ir_free(&f);
}
END_TEST

/* A copied block has variables and lets of its own; two copies with one map are distinct. */
START_TEST(copied_blocks)
{
    static const char text[] = "kernel @k after place { out %y: i32[4,4] stage @0 for %p in 0..4 { for %j in 0..4 {\n"
                               "let %v = elem i32 (iadd(%p, %j)) store %y[%p,%j], mul(%v, %v) } } }";
    ir_func f;
    opjit_error error;
    ir_map map = { 0 };
    ck_assert_int_eq(opjit_ir_parse(text, strlen(text), &opjit_rt_default_allocator, &f, &error), OPJIT_OK);
    const ir_ref loop = ir_at(&f, f.body)->body, p = ir_at(&f, f.body)->ref;
    ir_map_set(&f, &map, p, opjit_ir_index(&f, 2));
    const ir_ref first = opjit_ir_remake_block(&f, &map, loop), second = opjit_ir_remake_block(&f, &map, loop);
    ck_assert(first && second && ir_at(&f, first)->ref != ir_at(&f, second)->ref);
    for (int i = 0; i < 2; i++) {
        const ir_ref copy = i ? second : first, let = ir_at(&f, copy)->body, store = ir_at(&f, let)->next;
        const ir_ref product = ir_operand(&f, store, 0);
        ck_assert_uint_eq(ir_at(&f, ir_operand(&f, product, 0))->ref, let);
        ck_assert(ir_is_index_const(&f, ir_operand(&f, store, 1)));
        ck_assert_uint_eq(ir_operand(&f, store, 2), ir_at(&f, copy)->ref);
        ck_assert(!opjit_ir_uses(&f, ir_operand(&f, let, 0), p));
    }
    ck_assert(opjit_ir_uses(&f, ir_operand(&f, ir_at(&f, loop)->body, 0), p)); /* the original is as it was */
    opjit_ir_free(&f);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ir.interval");
    TCase *tests = tcase_create("interval");
    tcase_add_test(tests, random_expressions);
    tcase_add_test(tests, random_pairs);
    tcase_add_test(tests, particular_cases);
    tcase_add_test(tests, copied_blocks);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
