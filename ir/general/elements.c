/* SPDX-License-Identifier: Apache-2.0 */
/* elements.c - the integers that constants among elements follow from, in all samples: sizes, which are written as
 * elements, halves of these, and what is multiplied in place of a division by one. */
#include "ir/general/generalizer.h"

#include "ir/core/internal.h"

/* The integer that the constant's bits are; false: they are none. */
static bool integer_of(ir_type type, uint64_t bits, int64_t *out)
{
    *out = (int64_t)opjit_ir_convert(type, IR_I64, bits);
    return opjit_ir_element_of(type, *out) == bits;
}

/* Whether the constants are integers, or half of these. */
static bool integers_of(const generalizer *g, ir_ref r, bool halved, int64_t *series)
{
    const ir_type type = (ir_type)ir_at(g->base, r)->type;
    bool whole = true;

    for (uint32_t i = 0; i < g->s->count && whole; i++) {
        uint64_t bits = ir_at(g->s->functions[i], r)->imm;
        whole = (!halved || opjit_ir_scalar(IR_ADD, type, type, (const uint64_t[]){ bits, bits }, &bits)) &&
                integer_of(type, bits, &series[i]);
    }
    return whole;
}

ir_element_rule opjit_ir_element_series(const generalizer *g, ir_ref r, int64_t *series)
{
    const ir_type type = (ir_type)ir_at(g->base, r)->type;
    const uint64_t one = opjit_ir_element_of(type, 1);
    const bool whole = integers_of(g, r, false, series);
    bool inverse = ir_is_float(type);

    if (whole || (inverse && integers_of(g, r, true, series)))
        return whole ? IR_WHOLE : IR_HALF;
    for (uint32_t i = 0; i < g->s->count && inverse; i++) {
        const uint64_t bits = ir_at(g->s->functions[i], r)->imm;
        uint64_t by, again;
        int64_t rounded = 0;
        inverse = opjit_ir_scalar(IR_DIV, type, type, (const uint64_t[]){ one, bits }, &by) &&
                  opjit_ir_scalar(IR_RINT, type, type, &by, &by) && integer_of(type, by, &rounded) &&
                  opjit_ir_scalar(IR_DIV, type, type, (const uint64_t[]){ one, by }, &again) && again == bits;
        series[i] = rounded;
    }
    return inverse ? IR_INVERSE : IR_UNKNOWN;
}
