/* SPDX-License-Identifier: Apache-2.0 */
/* contract_window_alone.c - sums of products through windows of which each row of the result has its own, as in a
 * depthwise convolution: there is nothing that two rows share, so positions are a vector's lanes, and the steps of an
 * element's sum are written out.  Part of place.
 *
 *     copy what the block reads, with zeros around it
 *     for each line of positions, for each position: store the result of fma(w8, x8, ... fma(w0, x0, +0)) */
#include "ir/passes/contraction_window.h"

enum { MOST_TAPS = 32 };

bool opjit_ir_window_is_alone(const window *w)
{
    bool alone = w->group == 1 && w->c.length <= MOST_TAPS && w->c.length <= w->most;
    for (uint32_t d = 0; d < w->digit_count; d++)
        alone = alone && (w->digits[d].axis >= 0 || w->digits[d].size == 1);
    return alone;
}

/* The digits of k. */
static void set_digits(const window *w, int64_t k, ir_ref *digits)
{
    for (uint32_t d = 0; d < w->digit_count; d++) {
        digits[d] = opjit_ir_index(w->c.f, k / w->digits[d].divide);
        k %= w->digits[d].divide;
    }
}

void opjit_ir_window_alone(window *w, block *list, ir_ref lines)
{
    contraction *c = &w->c;
    ir_func *f = c->f;
    block of_y, of_x, *last = &of_y;
    ir_ref digits[WINDOW_DIGITS], weights[MOST_TAPS];
    const ir_type type = (ir_type)c->def.type;
    w->first_channel = opjit_ir_index(f, 0);
    w->here_channels = opjit_ir_index(f, w->channels);
    opjit_ir_window_copy(w, list);
    for (int64_t k = 0; k < c->length; k++) {
        set_digits(w, k, digits);
        weights[k] = opjit_ir_block_let(f, list, opjit_ir_window_weight(w, list, digits, opjit_ir_index(f, 0)));
    }
    const ir_ref y = contract_loop(c, list, lines, &of_y);
    ir_ref own = contract_plus(c, w->first_position, y), from = contract_times(c, y, w->pitch);
    if (w->axis[1].dimension >= 0) {
        c->at[w->axis[0].dimension] = own;
        own = contract_loop(c, &of_y, opjit_ir_index(f, w->axis[1].size), &of_x);
        from = contract_plus(c, from, own);
        last = &of_x;
    }
    ir_ref sum = opjit_ir_const(f, type, 0);
    for (int64_t k = 0; k < c->length; k++) {
        ir_ref at[3], x[2];
        set_digits(w, k, digits);
        opjit_ir_window_place(w, digits, at);
        at[2] = contract_plus(c, from, at[2]);
        x[1 - w->factor] = weights[k];
        x[w->factor] = opjit_ir_load(f, w->copy, at);
        sum = ir_dot_step(f, type, x[0], x[1], sum);
    }
    opjit_ir_contract_result(c, last, sum, w->of_group, own);
}
