/* SPDX-License-Identifier: Apache-2.0 */
/* window_digits.c - the digits of k that a sum of products reads: its quotients and remainders by constants,
 * as sums of digits of which each borders on the next.  Part of place. */
#include "ir/passes/contract/window.h"

/* Adds a border between digits: a value by which k is divided.  false: it doesn't fit the others, or there are too
 * many. */
static bool add_border(int64_t *borders, uint32_t *count, int64_t border)
{
    uint32_t at = 0;
    while (at < *count && borders[at] < border)
        at++;
    if (at < *count && borders[at] == border)
        return true;
    if (*count == WINDOW_DIGITS || (at > 0 && border % borders[at - 1] != 0) ||
        (at < *count && borders[at] % border != 0))
        return false;
    for (uint32_t i = (*count)++; i > at; i--)
        borders[i] = borders[i - 1];
    borders[at] = border;
    return true;
}

bool opjit_ir_window_find_digits(window *w, ir_ref pair, ir_ref k)
{
    ir_func *f = w->c.f;
    const ir_reach seen = opjit_ir_reach_one(f, pair);
    int64_t borders[WINDOW_DIGITS] = { 1 };
    uint32_t count = 1;
    for (uint32_t i = 0; i < seen.count; i++) {
        ir_digit d;
        const ir_op op = (ir_op)ir_at(f, seen.nodes[i])->op;
        if ((op != IR_IDIV && op != IR_IMOD) || !opjit_ir_digit(f, seen.nodes[i], k, &d) || d.offset != 0)
            continue;
        int64_t end;
        if (!checked_muli(d.divide, d.modulo, &end) ||
            (d.divide < w->c.length && !add_border(borders, &count, d.divide)) ||
            (end != 0 && end < w->c.length && !add_border(borders, &count, end)))
            return false;
    }
    w->digit_count = count;
    for (uint32_t i = 0; i < count; i++) {
        window_digit *d = &w->digits[i];
        d->divide = borders[count - 1 - i];
        d->size = i == 0 ? (w->c.length + d->divide - 1) / d->divide : w->digits[i - 1].divide / d->divide;
        d->axis = -1;
        const ir_ref loop = opjit_ir_for(f, opjit_ir_index(f, 0), opjit_ir_index(f, d->size), 1);
        if (f->failed)
            return false;
        d->probe = ir_at(f, loop)->ref;
    }
    return seen.nodes != NULL && w->c.length % w->digits[0].divide == 0;
}

void opjit_ir_window_map_digits(const window *w, const ir_ref *values, ir_map *map)
{
    ir_func *f = w->c.f;
    const ir_ref k = opjit_ir_reduced(f, w->c.statement);
    const ir_reach seen = opjit_ir_reach_one(f, ir_operand(f, w->c.statement, 0));
    for (uint32_t i = 0; i < seen.count; i++) {
        ir_digit d = { 0 };
        if (!opjit_ir_digit(f, seen.nodes[i], k, &d) || d.offset != 0)
            continue;
        ir_ref sum = opjit_ir_index(f, 0);
        for (uint32_t n = 0; n < w->digit_count; n++)
            if (w->digits[n].divide >= d.divide && (d.modulo == 0 || w->digits[n].divide < d.divide * d.modulo))
                sum = contract_plus(&w->c, sum, contract_times(&w->c, values[n], w->digits[n].divide / d.divide));
        ir_map_set(f, map, seen.nodes[i], sum);
    }
}
