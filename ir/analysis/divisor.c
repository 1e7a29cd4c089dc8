/* SPDX-License-Identifier: Apache-2.0 */
/* divisor.c - powers of two that divide index expressions: a loop whose count is known to be a multiple has no
 * remainder. */
#include "ir/analysis/analysis.h"
#include "ir/core/internal.h"

#define DIVISOR_MAX ((uint64_t)1 << 62)
enum { DIVISOR_DEPTH = 64 };

static uint64_t power_of_two_in(uint64_t value)
{
    const uint64_t lowest = value & (0 - value);
    return lowest == 0 || lowest > DIVISOR_MAX ? DIVISOR_MAX : lowest;
}

/* steps: how many nodes may still be looked at; a chain of clamps reads its bounds more than once. */
static uint64_t divisor(const ir_func *f, ir_ref r, uint32_t depth, uint32_t *steps)
{
    const ir_node *n = ir_at(f, r);
    if (n->op == IR_CONST)
        return power_of_two_in(n->imm);
    if (n->op == IR_DOWN || n->op == IR_UP)
        return (uint64_t)ir_index_value(f, ir_operand(f, r, 1));
    if (depth == 0 || *steps == 0)
        return 1;
    --*steps;
    uint64_t least = DIVISOR_MAX;
    switch ((ir_op)n->op) {
    case IR_GET: return ir_at(f, n->ref)->op == IR_LET ? divisor(f, ir_operand(f, n->ref, 0), depth - 1, steps) : 1;
    case IR_IMUL: {
        const uint64_t a = divisor(f, ir_operand(f, r, 0), depth - 1, steps);
        const uint64_t b = power_of_two_in((uint64_t)ir_index_value(f, ir_operand(f, r, 1)));
        return a > DIVISOR_MAX / b ? DIVISOR_MAX : a * b;
    }
    case IR_IADD:
    case IR_ISUB:
    case IR_IMIN:
    case IR_IMAX:
    case IR_CLAMP:
        for (uint32_t i = 0; i < n->count && least > 1; i++) {
            const uint64_t one = divisor(f, ir_operand(f, r, i), depth - 1, steps);
            least = one < least ? one : least;
        }
        return least;
    default: return 1;
    }
}

uint64_t opjit_ir_divisor(const ir_func *f, ir_ref index_expr)
{
    uint32_t steps = 1024;
    return divisor(f, index_expr, DIVISOR_DEPTH, &steps);
}
