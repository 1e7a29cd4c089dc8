/* SPDX-License-Identifier: Apache-2.0 */
/* window_skip.c - steps of padding that tiles leave out, where dilated taps lie far apart: a tile is positions
 * of one line, and has only the lines of taps, and of each the taps, of which some position reads an element.  Part of
 * place.
 *
 * A step of padding is fma(w, +0, sum): it changes the sum only if w is infinite or NaN, or if the sum is -0.  A sum
 * begins as +0, and can become -0 only where a step's exact result is below 0 and rounds to nothing.  It does not if
 * the product is a multiple of the least number of the type, as then all sums are; and it is one if
 *
 *     the exponent of w's last digit + that of x's >= the least number's
 *
 * for all steps with a product that is not 0.  So a stage before finds the smallest w of all, and each block the
 * smallest x of what it has copied.  Where these are too small, tiles have all steps.  There is a tile for each number
 * of lines and taps that occurs, in a loop that runs once or not at all. */
#include "ir/passes/contract/window.h"

#include <string.h>

enum {
    MOST_TAPS = 9,     /* whose steps a tile spells out */
    LANES = 32,        /* of accumulators */
    PART = 8,          /* one of so many steps is to be left out */
    MOST_TRIED = 4096, /* lines */
    OF_BLOCK = 1,      /* dimensions of columns that are copied once for all: matrix, block of k, tile, k, column */
    OF_K = 3,
};

typedef struct number_form { /* of a float as an integer without its sign, times 2 */
    ir_type bits;
    uint32_t exponent; /* from which bit on */
    uint64_t infinite;
    uint64_t least; /* of the sum of two exponents: products are multiples of the type's least number */
} number_form;

static number_form form_of(const window *w)
{
    return opjit_ir_type_size((ir_type)w->c.def.type) == 4
               ? (number_form){ IR_U32, 24, UINT64_C(0xff) << 24, 151 }
               : (number_form){ IR_U64, 53, UINT64_C(0x7ff) << 53, 1076 };
}

/* --- what can be left out ----------------------------------------------------------------------------------------- */

/* Whether the windows' factor is zero at all of these places of the axis. */
static bool is_zero(window *w, uint32_t axis, int64_t lo, int64_t hi)
{
    ir_func *f = w->c.f;
    const window_axis *x = &w->axis[axis];
    ir_map map = { 0 };
    const ir_ref loop = opjit_ir_for(f, opjit_ir_index(f, lo), opjit_ir_index(f, hi), 1);
    if (f->failed)
        return false;
    ir_map_set(f, &map, opjit_ir_coordinate(f, w->c.statement, (uint32_t)x->dimension), ir_at(f, loop)->ref);
    if (x->digit >= 0)
        ir_map_set(f, &map, w->digits[x->digit].probe, opjit_ir_index(f, 0));
    const ir_node *n = ir_at(f, opjit_ir_remake(f, &map, w->probed));
    return !f->failed && n->op == IR_CONST && n->imm == 0;
}

/* Finds the places of the axis before and behind which there are zeros alone. */
static void find_inside(window *w, uint32_t axis, int64_t *first, int64_t *end)
{
    const int64_t all = w->axis[axis].size + (w->axis[axis].taps - 1) * w->axis[axis].dilation;
    int64_t lo = 0, hi = all; /* zeros are [0, lo), and not [0, hi) */
    while (hi - lo > 1) {
        const int64_t middle = lo + (hi - lo) / 2;
        if (is_zero(w, axis, 0, middle))
            lo = middle;
        else
            hi = middle;
    }
    *first = lo;
    for (hi = all, lo = *first + 1; hi - lo > 0;) {
        const int64_t middle = lo + (hi - lo) / 2;
        if (is_zero(w, axis, middle, all))
            hi = middle;
        else
            lo = middle + 1;
    }
    *end = hi;
}

/* Taps of the axis of which one of positions p to last reads an element: from *lo to *hi. */
static void taps_of(const window *w, uint32_t axis, int64_t p, int64_t last, int64_t *lo, int64_t *hi)
{
    const window_axis *x = &w->axis[axis];
    const int64_t first = w->inside[axis][0] - last, end = w->inside[axis][1] - p;
    *lo = first <= 0 ? 0 : (first + x->dilation - 1) / x->dilation;
    *lo = *lo < x->taps - 1 ? *lo : x->taps - 1;
    *hi = end <= 0 ? 0 : (end - 1) / x->dilation + 1;
    *hi = *hi > x->taps ? x->taps : *hi <= *lo ? *lo + 1 : *hi;
}

/* Positions of piece n of a line. */
static int64_t piece_end(const window *w, int64_t n)
{
    const int64_t tile = w->c.side[CONTRACT_COLUMNS].tile, end = (n + 1) * tile;
    return end < w->axis[1].size ? end : w->axis[1].size;
}

bool opjit_ir_window_add_form(window *w, int64_t lines, int64_t taps)
{
    for (uint32_t v = 0; v < w->forms; v++)
        if (w->form[v][0] == lines && w->form[v][1] == taps)
            return true;
    if (w->forms == WINDOW_FORMS)
        return false;
    w->form[w->forms][0] = lines;
    w->form[w->forms++][1] = taps;
    return true;
}

/* How many taps the lines of tiles have, each number once, in the order of lines; *sum: of all lines. */
static uint32_t find_line_taps(const window *w, int64_t out[MOST_TAPS], double *sum)
{
    uint32_t count = 0;
    *sum = 0;
    for (int64_t y = 0; y < w->axis[0].size; y++) {
        int64_t lo, hi;
        uint32_t i = 0;
        taps_of(w, 0, y, y, &lo, &hi);
        *sum += (double)(hi - lo);
        while (i < count && out[i] != hi - lo)
            i++;
        if (i == count)
            out[count++] = hi - lo; /* of 1 to MOST_TAPS */
    }
    return count;
}

/* Enters the forms that tiles have; the part of the steps that they have, 1: there are too many forms. */
static double find_forms(window *w)
{
    int64_t lines_of[MOST_TAPS];
    double lines, taps = 0;
    const uint32_t kinds = find_line_taps(w, lines_of, &lines);
    w->forms = 0;
    (void)opjit_ir_window_add_form(w, w->axis[0].taps, w->axis[1].taps);
    for (int64_t n = 0; n < w->pieces; n++) {
        int64_t lo, hi;
        taps_of(w, 1, n * w->c.side[CONTRACT_COLUMNS].tile, piece_end(w, n) - 1, &lo, &hi);
        taps += (double)(hi - lo);
        for (uint32_t i = 0; i < kinds; i++)
            if (!opjit_ir_window_add_form(w, lines_of[i], hi - lo))
                return 1;
    }
    return lines / (double)(w->axis[0].size * w->axis[0].taps) * taps / (double)(w->pieces * w->axis[1].taps);
}

bool opjit_ir_window_may_skip(window *w)
{
    if (!ir_is_float((ir_type)w->c.def.type) || w->free != 1 || w->digits[0].axis >= 0 || w->depth > MOST_TAPS ||
        w->axis[0].size > MOST_TRIED || w->axis[1].dimension < 0)
        return false;
    for (uint32_t a = 0; a < WINDOW_AXES; a++) {
        window_axis *x = &w->axis[a];
        if (x->stride != 1 || x->dilation < 1 || x->taps > MOST_TAPS)
            return false;
        x->whole = false;
        x->apart = a == 0;
        x->classes = a == 0 ? x->taps : 1;
        x->reach = a == 0 ? 0 : (x->taps - 1) * x->dilation;
    }
    w->gathers = false;
    w->slots = w->axis[0].classes;
    w->pitch = w->axis[1].size + w->axis[1].reach;
    for (uint32_t a = 0; a < WINDOW_AXES; a++)
        find_inside(w, a, &w->inside[a][0], &w->inside[a][1]);
    return w->may_skip = w->axis[1].reach > 0;
}

double opjit_ir_window_inside(const window *w)
{
    return (double)w->block * (double)(w->inside[1][1] - w->inside[1][0]);
}

bool opjit_ir_window_find_skips(window *w)
{
    w->steps = find_forms(w);
    w->skips = w->steps * PART <= PART - 1;
    return w->skips;
}

/* --- whether they may be left out --------------------------------------------------------------------------------- */

/* The number of the element; -1: it is 0. */
static ir_ref size_of(const window *w, const number_form *form, ir_ref x)
{
    ir_func *f = w->c.f;
    const ir_ref one = opjit_ir_const(f, form->bits, 1);
    return ir_expr2(f, IR_SHL, form->bits, ir_expr1(f, IR_BITS, form->bits, x), one);
}

static ir_ref or_none(const window *w, const number_form *form, ir_ref size)
{
    return ir_expr2(w->c.f, IR_SUB, form->bits, size, opjit_ir_const(w->c.f, form->bits, 1));
}

/* The smallest of the other factor's elements; 0: one is infinite or NaN. */
void opjit_ir_window_share_least(window *w, block *stages)
{
    ir_func *f = w->c.f;
    const number_form form = form_of(w);
    const uint32_t of = w->other.side[CONTRACT_COLUMNS].scratch;
    ir_tensor t = { .role = IR_TEMP, .type = form.bits, .rank = 1, .sizes = { 1 }, .strides = { 0 }, .align = 64 };
    if ((!w->skips && !w->parted) || f->failed || !opjit_ir_span_bytes(&t, &t.bytes))
        return;
    const ir_tensor from = f->tensors[of];
    const ir_ref stage = opjit_ir_stage(f, opjit_ir_index(f, 0), opjit_ir_index(f, 1), 1);
    w->least = opjit_ir_tensor(f, &t);
    if (f->failed)
        return;
    block body = { .parent = stage }, blocks[8], *list = &body;
    const ir_ref acc = opjit_ir_acc(f, form.bits, IR_KMIN, LANES);
    ir_ref at[8];
    opjit_ir_block_add(f, list, acc);
    for (uint32_t d = 0; d < from.rank; list = &blocks[d++]) {
        const ir_ref steps = /* the last block may have fewer, behind which its copy has nothing */
            d == OF_K ? opjit_ir_contract_steps(&w->other, contract_times(&w->c, at[OF_BLOCK], w->other.def.block))
                      : opjit_ir_index(f, (int64_t)from.sizes[d]);
        at[d] = contract_loop(&w->c, list, steps, &blocks[d]);
    }
    const ir_ref size = size_of(w, &form, opjit_ir_load(f, of, at));
    const ir_ref finite = ir_expr2(f, IR_LT, IR_BOOL, size, opjit_ir_const(f, form.bits, form.infinite));
    const ir_ref value =
        ir_expr3(f, IR_SELECT, IR_NONE, finite, or_none(w, &form, size), opjit_ir_const(f, form.bits, 0));
    opjit_ir_block_add(f, list, opjit_ir_upd(f, acc, value, 0));
    opjit_ir_contract_store(&w->c, &body, w->least, opjit_ir_get(f, acc), (ir_ref[]){ opjit_ir_index(f, 0) });
    opjit_ir_block_add(f, stages, stage);
}

/* --- the copy ----------------------------------------------------------------------------------------------------- */

void opjit_ir_window_clear_copy(window *w, block *list)
{
    ir_func *f = w->c.f;
    block of_c, of_s, of_e;
    ir_ref at[3];
    if (!w->skips)
        return;
    at[0] = contract_loop(&w->c, list, opjit_ir_index(f, w->channels), &of_c);
    at[1] = contract_loop(&w->c, &of_c, opjit_ir_index(f, w->slots), &of_s);
    at[2] = contract_loop(&w->c, &of_s, opjit_ir_index(f, w->plane), &of_e);
    opjit_ir_contract_store(&w->c, &of_e, w->copy, opjit_ir_const(f, (ir_type)w->c.def.type, 0), at);
}

/* What the tap of these digits reads at line y and place x of the copy, if there was one tap. */
static ir_ref value_at(window *w, block *list, ir_ref channel, ir_ref y, ir_ref x)
{
    ir_ref at[9], digits[WINDOW_DIGITS];
    memcpy(at, w->c.at, sizeof at);
    for (uint32_t d = 0; d < w->digit_count; d++)
        digits[d] = d == 0 ? contract_plus(&w->c, w->first_channel, channel) : opjit_ir_index(w->c.f, 0);
    at[w->axis[0].dimension] = y;
    at[w->axis[1].dimension] = x;
    return opjit_ir_window_factor(w, list, w->factor, digits, opjit_ir_index(w->c.f, 0), at);
}

/* Whether no step may be left out with what is smallest in the copy: 1 or 0. */
static ir_ref needs_all(window *w, const number_form *form, ir_ref smallest)
{
    ir_func *f = w->c.f;
    const ir_ref zero = opjit_ir_index(f, 0), other = opjit_ir_load(f, w->least, &zero);
    const ir_ref shift = opjit_ir_const(f, form->bits, form->exponent);
    const ir_ref sum = ir_expr2(f, IR_ADD, form->bits, ir_expr2(f, IR_SHR, form->bits, smallest, shift),
                                ir_expr2(f, IR_SHR, form->bits, other, shift));
    const ir_ref far = ir_expr2(f, IR_LE, IR_BOOL, opjit_ir_const(f, form->bits, form->least), sum);
    const ir_ref finite = ir_expr2(f, IR_NE, IR_BOOL, other, opjit_ir_const(f, form->bits, 0));
    return ir_make3(f, IR_SELECT, IR_INDEX, ir_expr2(f, IR_AND, IR_BOOL, far, finite), zero, opjit_ir_index(f, 1));
}

void opjit_ir_window_copy_inside(window *w, block *list)
{
    ir_func *f = w->c.f;
    const number_form form = form_of(w);
    const ir_ref lo = opjit_ir_index(f, w->inside[0][0]), hi = opjit_ir_index(f, w->inside[0][1]);
    const ir_ref left = opjit_ir_index(f, w->inside[1][0]), right = opjit_ir_index(f, w->inside[1][1]);
    const ir_ref lines = opjit_ir_index(f, w->block), acc = opjit_ir_acc(f, form.bits, IR_KMIN, LANES);
    block of_c, of_t, of_y, of_x;
    ir_ref at[3];
    opjit_ir_block_add(f, list, acc);
    at[0] = contract_loop(&w->c, list, w->here_channels, &of_c);
    at[1] = contract_loop(&w->c, &of_c, opjit_ir_index(f, w->slots), &of_t);
    ir_ref from = contract_plus(&w->c, w->first_position, contract_times(&w->c, at[1], w->axis[0].dilation));
    const ir_ref first = opjit_ir_block_let(f, &of_t, from), end = contract_plus(&w->c, first, lines);
    from = opjit_ir_block_let(f, &of_t, ir_make3(f, IR_CLAMP, IR_INDEX, first, lo, hi));
    const ir_ref to = opjit_ir_block_let(f, &of_t, ir_make3(f, IR_CLAMP, IR_INDEX, end, lo, hi));
    const ir_ref y = contract_loop_from(&w->c, &of_t, from, to, &of_y);
    const ir_ref line = ir_make3(f, IR_CLAMP, IR_INDEX, ir_make2(f, IR_ISUB, IR_INDEX, y, first), opjit_ir_index(f, 0),
                                 opjit_ir_index(f, w->block - 1));
    const ir_ref begin = opjit_ir_block_let(f, &of_y, contract_times(&w->c, line, w->pitch));
    ir_ref x = contract_loop_from(&w->c, &of_y, left, right, &of_x);
    at[2] = contract_plus(&w->c, begin, x);
    opjit_ir_contract_store(&w->c, &of_x, w->copy, value_at(w, &of_x, at[0], y, x), at);
    /* From 0 on, as lanes of accumulators go by this number. */
    x = contract_loop(&w->c, &of_y, ir_make2(f, IR_ISUB, IR_INDEX, right, left), &of_x);
    at[2] = contract_plus(&w->c, begin, contract_plus(&w->c, x, left));
    const ir_ref size = size_of(w, &form, opjit_ir_load(f, w->copy, at));
    opjit_ir_block_add(f, &of_x, opjit_ir_upd(f, acc, or_none(w, &form, size), 0));
    w->all_steps = opjit_ir_block_let(f, list, needs_all(w, &form, opjit_ir_get(f, acc)));
}

void opjit_ir_window_look_at_copy(window *w, block *list)
{
    ir_func *f = w->c.f;
    const number_form form = form_of(w);
    const ir_ref acc = opjit_ir_acc(f, form.bits, IR_KMIN, LANES);
    block of_c, of_s, of_e;
    ir_ref at[3];
    opjit_ir_block_add(f, list, acc);
    at[0] = contract_loop(&w->c, list, w->here_channels, &of_c);
    at[1] = contract_loop(&w->c, &of_c, opjit_ir_index(f, w->slots), &of_s);
    at[2] = contract_loop(&w->c, &of_s, opjit_ir_index(f, w->plane), &of_e);
    const ir_ref size = size_of(w, &form, opjit_ir_load(f, w->copy, at));
    opjit_ir_block_add(f, &of_e, opjit_ir_upd(f, acc, or_none(w, &form, size), 0));
    w->all_steps = opjit_ir_block_let(f, list, needs_all(w, &form, opjit_ir_get(f, acc)));
}

/* --- tiles -------------------------------------------------------------------------------------------------------- */

/* The first tap of the axis that the tile has, and how many it has; p, last: its first and last position there. */
static void set_taps(window *w, block *list, uint32_t axis, ir_ref p, ir_ref last)
{
    ir_func *f = w->c.f;
    const window_axis *x = &w->axis[axis];
    const ir_ref taps = opjit_ir_index(f, x->taps), dilation = opjit_ir_index(f, x->dilation);
    const ir_ref first = opjit_ir_index(f, w->inside[axis][0] + x->dilation - 1);
    const ir_ref end = opjit_ir_index(f, w->inside[axis][1] + x->dilation - 1);
    ir_ref lo = ir_make2(f, IR_IDIV, IR_INDEX, ir_make2(f, IR_ISUB, IR_INDEX, first, last), dilation);
    ir_ref hi = ir_make2(f, IR_IDIV, IR_INDEX, ir_make2(f, IR_ISUB, IR_INDEX, end, p), dilation);
    const ir_ref some = ir_make2(f, IR_ISUB, IR_INDEX, opjit_ir_index(f, 1), w->all_steps);
    lo = ir_make3(f, IR_CLAMP, IR_INDEX, lo, opjit_ir_index(f, 0), contract_times(&w->c, some, x->taps - 1));
    lo = w->first_tap[axis] = opjit_ir_block_let(f, list, lo);
    hi = ir_make2(f, IR_IMAX, IR_INDEX, hi, contract_plus(&w->c, lo, opjit_ir_index(f, 1)));
    hi = ir_make2(f, IR_IMAX, IR_INDEX, hi, contract_times(&w->c, w->all_steps, x->taps));
    hi = ir_make2(f, IR_IMIN, IR_INDEX, hi, taps);
    w->tap_count[axis] = opjit_ir_block_let(f, list, ir_make2(f, IR_ISUB, IR_INDEX, hi, lo));
}

void opjit_ir_window_skip(window *w, block *list, ir_ref n)
{
    ir_func *f = w->c.f;
    const ir_ref pieces = opjit_ir_index(f, w->pieces);
    const int64_t tile = w->c.side[CONTRACT_COLUMNS].tile;
    const ir_ref y = contract_plus(&w->c, w->first_position, ir_make2(f, IR_IDIV, IR_INDEX, n, pieces));
    const ir_ref x = contract_times(&w->c, ir_make2(f, IR_IMOD, IR_INDEX, n, pieces), tile);
    const ir_ref last = ir_make2(f, IR_IMIN, IR_INDEX, contract_plus(&w->c, x, opjit_ir_index(f, tile - 1)),
                                 opjit_ir_index(f, w->axis[1].size - 1));
    set_taps(w, list, 0, y, y);
    set_taps(w, list, 1, x, last);
}

block *opjit_ir_window_form(window *w, block *list, uint32_t form, block *out)
{
    ir_func *f = w->c.f;
    ir_ref is = 0;
    for (uint32_t a = 0; a < WINDOW_AXES; a++) {
        const ir_ref same = ir_make2(f, IR_EQ, IR_BOOL, w->tap_count[a], opjit_ir_index(f, w->form[form][a]));
        is = is == 0 ? same : ir_make2(f, IR_AND, IR_BOOL, is, same);
    }
    const ir_ref once = ir_make3(f, IR_SELECT, IR_INDEX, is, opjit_ir_index(f, 1), opjit_ir_index(f, 0));
    (void)contract_loop(&w->c, list, opjit_ir_block_let(f, list, once), out);
    for (uint32_t a = 0; a < WINDOW_AXES; a++) {
        w->taps[a] = w->form[form][a];
        w->from_tap[a] =
            opjit_ir_block_let(f, out, ir_make3(f, IR_CLAMP, IR_INDEX, w->first_tap[a], opjit_ir_index(f, 0),
                                                opjit_ir_index(f, w->axis[a].taps - w->taps[a])));
    }
    return out;
}
